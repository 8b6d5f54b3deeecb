/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SRQ_H
#define NDVERBS_SRQ_H

#include <stdint.h>
#include <windows.h>
#include "nddef.h"

#include "device.h"
#include "overlapped.h"

/* Shared receive queue: receives that any of its QPs may take; their results appear on the receive CQ of the QP that took
 * them, with that QP's context (ndspi-v2.md 7, winverbs.md 6.3, rdma-mapping.md 7). The death of a QP cancels none of them
 * but one that it was filling. What is still posted when the SRQ ends has no CQ and gives no result. */
struct srq;

/* How a front's Notify works, and its final statuses. */
struct srq_policy {
    bool arms_on_notify; /* Notify waits for "fewer than the threshold are posted", which may be so already (ND); else
                          * creation and srq_modify arm the threshold once, and Notify waits for the next event (WinVerbs) */
    NTSTATUS limit;      /* fewer posted than the threshold */
    NTSTATUS last_wqe;   /* a QP took its last receive; 0: not told */
    NTSTATUS error;      /* the SRQ is broken */
};
extern const struct srq_policy srq_policy_nd;

struct srq_config {
    struct adapter *adapter;
    uint32_t depth;     /* most receives posted at a time */
    uint32_t max_sge;   /* entries of a receive; the SRQ may take more (ndspi.md A44) */
    uint32_t threshold; /* 0: none. May be beyond the depth: fewer are always posted then */
    const struct srq_policy *policy;
};

/* The caller has checked depth and max_sge against adapter->limits (the parameter numbers differ per front).
 * ND_NOT_SUPPORTED (the device has none), ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED. Any thread. One
 * reference; QPs hold their own. */
NTSTATUS srq_create(const struct srq_config *config, struct srq **out);
struct srq *srq_ref(struct srq *srq);
struct srq *srq_ref_live(struct srq *srq); /* NULL if the last reference is gone already (device.c, events in flight) */
void srq_unref(struct srq *srq);
struct adapter *srq_adapter(const struct srq *srq);

struct srq_attributes {
    uint32_t depth, max_sge, threshold; /* threshold: without arms_on_notify 0 once it was told */
};
void srq_query(struct srq *srq, struct srq_attributes *out);

/* NULL leaves that value as it is; a failure leaves both. Receives that are posted are not disturbed. A threshold counts for
 * pending Notify requests too. ND_SUCCESS, ND_INVALID_PARAMETER (depth 0 or beyond the adapter's limit),
 * ND_BUFFER_OVERFLOW (more receives are posted), ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED, the policy's error. Any
 * thread. */
NTSTATUS srq_modify(struct srq *srq, const uint32_t *depth, const uint32_t *threshold);

/* Posts a receive; in any state of any QP, also while there is none. ND_SUCCESS, ND_NO_MORE_ENTRIES (depth),
 * ND_DATA_OVERRUN (entries), ND_BUFFER_OVERFLOW (bytes), ND_INVALID_PARAMETER_2, ND_DEVICE_REMOVED, ND_UNSUCCESSFUL, the
 * policy's error. Any thread. */
HRESULT srq_receive(struct srq *srq, void *context, const ND2_SGE *sge, uint32_t n);

/* Starts a Notify on `file`: ND_PENDING, with the completion possibly delivered already. One event completes all that are
 * pending, in order. ND_INVALID_PARAMETER (ov NULL), ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED, the policy's error. */
NTSTATUS srq_notify(struct srq *srq, struct file *file, OVERLAPPED *ov);

/* Completes every pending Notify with `status`, FIFO, before it returns (ND_CANCELED: cancel or last Release). */
void srq_cancel_notifies(struct srq *srq, NTSTATUS status);

/* device.c, on loop: SRQ_LIMIT_REACHED, SRQ_ERR, device removed; QP_LAST_WQE_REACHED of one of its QPs (qp.c). */
void srq_limit_event(struct srq *srq);
void srq_error_event(struct srq *srq);
void srq_device_removed(struct srq *srq);
void srq_last_wqe(struct srq *srq);

#endif
