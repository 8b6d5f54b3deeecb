/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CQ_H
#define NDVERBS_CQ_H

#include <stdint.h>
#include <windows.h>
#include "nddef.h"

#include "device.h"
#include "overlapped.h"

/* Completion queue with a stash of ready results in front of the device's CQ (design.md section 4). */
struct cq;

/* Room for the object of a front, at the start of every CQ: a pointer to the one is a pointer to the other, so GetResults needs
 * no load to come from its interface to the CQ. It lives as long as the CQ; core does not touch it. */
struct cq_front {
    void *words[3];
};

/* Set in a forked child once a CQ or SRQ was made: the data path of the fronts reads it instead of calling engine_dead(). */
extern uint32_t cq_forked __attribute__((visibility("hidden")));
void cq_watch_forks(void);

/* ND_INVALID_PARAMETER_3 (depth 0 or beyond the adapter's limit), ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES,
 * ND_DEVICE_REMOVED. The CQ holds the adapter. One reference. The lowest processor of `affinity` in its group, or the
 * calling thread's, chooses the completion vector. */
NTSTATUS cq_create(struct adapter *adapter, uint32_t depth, uint16_t group, uint64_t affinity, struct cq **out);
struct cq *cq_ref(struct cq *cq);
struct cq *cq_ref_live(struct cq *cq); /* NULL if the last reference is gone already (device.c, events in flight) */
void cq_unref(struct cq *cq);
struct adapter *cq_adapter(const struct cq *cq);

/* What a device says of a completion beyond its result. */
struct cq_detail {
    uint64_t vendor_code;
    __be32 imm_data;
    uint32_t source_qp;
    uint32_t flags; /* IBV_WC_* */
    uint16_t pkey_index, slid;
    uint8_t status; /* enum ibv_wc_status: IBV_WC_WR_FLUSH_ERR for requests that the device never saw */
    uint8_t opcode; /* enum ibv_wc_opcode, of a success; its bit IBV_WC_RECV tells receives */
    uint8_t sl, dlid_path_bits;
};

/* A result with its detail. `result.RequestType` of an atomic is one of these. */
struct cq_completion {
    ND2_RESULT result;
    struct cq_detail detail;
};
enum {
    REQUEST_COMPARE_SWAP = 16,
    REQUEST_FETCH_ADD = 17,
};

/* Makes the CQ keep the details, before anybody uses it; its results are then taken by cq_get_completions. ND_NO_MEMORY. */
NTSTATUS cq_keep_details(struct cq *cq);

/* cq_get_results with details. */
uint32_t cq_get_completions(struct cq *cq, struct cq_completion *completions, uint32_t n);

/* Results that could be taken now, counted up to the CQ's depth. Any thread, but not on loop. */
uint32_t cq_peek(struct cq *cq);
uint32_t cq_depth(const struct cq *cq);

/* Removes up to n results; stash first, then the device in batches of at most 16. Lock: the CQ's word lock only. */
uint32_t cq_get_results(struct cq *cq, ND2_RESULT *results, uint32_t n);

/* Starts a Notify of the given type on `file` (ndspi.md 5.7, rdma-mapping.md 5): ND_PENDING, with the completion
 * possibly delivered already. ND_INVALID_PARAMETER_1 (type), ND_INVALID_PARAMETER (ov NULL), ND_BUFFER_OVERFLOW (CQ
 * overran), ND_INTERNAL_ERROR, ND_INSUFFICIENT_RESOURCES, ND_NOT_SUPPORTED (no completion channel), ND_DEVICE_REMOVED. */
NTSTATUS cq_notify(struct cq *cq, uint32_t type, struct file *file, OVERLAPPED *ov);

/* A Notify that completes when at least `count` results (1 to the depth, else ND_INVALID_PARAMETER) can be taken; at once
 * if they can already. */
NTSTATUS cq_notify_batch(struct cq *cq, uint32_t count, struct file *file, OVERLAPPED *ov);

/* Completes every pending Notify with `status`, FIFO, before it returns (ND_CANCELED: cancel or last Release). */
void cq_cancel_notifies(struct cq *cq, NTSTATUS status);

/* ND_SUCCESS, ND_INVALID_PARAMETER, ND_BUFFER_OVERFLOW, ND_INSUFFICIENT_RESOURCES, ND_NOT_SUPPORTED, ND_DEVICE_REMOVED. */
NTSTATUS cq_resize(struct cq *cq, uint32_t depth);

/* Called by device.c on loop: completion channel event of this CQ; CQ_ERR; device removed. */
void cq_event(struct cq *cq);
void cq_overrun(struct cq *cq);
void cq_device_removed(struct cq *cq);

#endif
