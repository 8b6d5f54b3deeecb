/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_QP_H
#define NDVERBS_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>
#include "nddef.h"

#include "cq.h"
#include "device.h"
#include "mr.h"

/* Queue pair: slot rings, posting, ERROR, drain (design.md sections 4 and 5, rdma-mapping.md 3 and 7). */
struct qp;
struct mw;

struct qp_config {
    struct adapter *adapter;
    struct cq *recv_cq, *send_cq;
    struct srq *srq; /* of the same adapter; NULL: own receive queue. Else recv_depth and recv_sge are not looked at */
    void *context;   /* comes back in ND2_RESULT.QueuePairContext */
    uint32_t recv_depth, send_depth, recv_sge, send_sge, inline_size;
    /* As verbs have it: made in RESET and moved by the application (qp_modify, qp_reset, qp_drain), which may post as soon as
     * the state allows; any type (0: RC). */
    bool manual;
    enum ibv_qp_type type;
};

/* Creates the QP and brings it to INIT. The caller has checked the limits against adapter->limits (the parameter numbers
 * of the statuses differ per front). ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED. One reference. */
NTSTATUS qp_create(const struct qp_config *config, struct qp **out);
struct qp *qp_ref(struct qp *qp);      /* keeps the record, not the device object */
struct qp *qp_ref_live(struct qp *qp); /* NULL if the last reference is gone already (device.c, events in flight) */
void qp_unref(struct qp *qp);

/* The application's last Release: windows freed, ERROR, CQs polled into the stash, ibv_destroy_qp, on the calling
 * thread; afterwards the device cannot touch the application's memory. Later qp_* calls on the record are no-ops that
 * report an error. Does not drop the reference. */
void qp_release(struct qp *qp);

struct adapter *qp_adapter(const struct qp *qp);
uint32_t qp_number(const struct qp *qp);
bool qp_used(struct qp *qp); /* has been connected: of no use for another connection */
bool qp_has_srq(const struct qp *qp);
struct ibv_qp *qp_verbs(const struct qp *qp); /* NULL after qp_release */

/* --- for the connection side (connector.c); any thread, short, no wait --- */

/* Claims the QP for one connection attempt. ND_CONNECTION_ACTIVE: claimed already or used up by an earlier connection
 * (ndspi.md A9); ND_DEVICE_REMOVED. qp_unclaim after an attempt that failed before the QP left INIT. */
NTSTATUS qp_claim(struct qp *qp);
void qp_unclaim(struct qp *qp);
bool qp_tried(struct qp *qp); /* IB-type: an attempt has given it back, whose id may still be there */

/* ibv_modify_qp with the state kept in step; EINVAL and others as errno. Refused (EINVAL) once in error. Not for the states
 * RESET and ERROR: qp_reset, qp_drain. */
int qp_modify(struct qp *qp, struct ibv_qp_attr *attr, int mask);

/* From here on initiator posts are handed to the device (RTS reached; iWARP: the kernel has connected it). */
void qp_set_connected(struct qp *qp);

/* So many Reads at a time: with 0 one is refused where the device would keep it, and all behind it, for ever (siw, rxe). Before
 * qp_set_connected on iWARP; elsewhere qp_modify knows. */
void qp_limit_reads(struct qp *qp, uint32_t most);

/* Disconnect was called: later posts succeed, are never handed to the device, and complete ND_CANCELED after the
 * device's flushes (A38). Work in flight is unharmed. */
void qp_close_posts(struct qp *qp);

/* Polls what has arrived in both CQs into their stashes (before NotifyDisconnect completes, A7). */
void qp_collect(struct qp *qp);

/* To ERROR and drain: every posted request ends up in a stash or in the application's hands, then `done` runs, once, on
 * loop (or at once, on the caller, if nothing is outstanding and the caller is on loop). Lost completions are
 * synthesised after 1 s without progress. Concurrent drains of one QP each get their `done`. */
struct qp_drain {
    struct list link;
    void (*done)(struct qp_drain *drain);
};
void qp_drain(struct qp *qp, struct qp_drain *drain, void (*done)(struct qp_drain *drain));

/* Of a QP with config.manual: back to RESET and as good as new; requests that are posted are forgotten, results that can be
 * taken stay. 0 or errno; EBUSY: in error with requests still to come back: drain it first. */
int qp_reset(struct qp *qp);

enum ibv_qp_state qp_state(struct qp *qp);
uint8_t qp_port(struct qp *qp); /* of the device, as of the last transition to INIT */

/* Can it be moved to ERROR? Not from RESET, nor after qp_release. */
bool qp_can_fail(struct qp *qp);

/* Everything the device keeps, and what we hold against it. 0 or errno. */
struct qp_limits {
    uint32_t send_depth, recv_depth, send_sge, recv_sge, inline_size;
    enum ibv_qp_type type;
};
int qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct qp_limits *limits);

/* Multicast groups of a UD QP; those that are left go with it. 0 or errno; ENOENT: not attached to that pair. */
int qp_attach_mcast(struct qp *qp, const union ibv_gid *gid, uint16_t lid);
int qp_detach_mcast(struct qp *qp, const union ibv_gid *gid, uint16_t lid);

/* iWARP only: a failed attempt destroyed the QP in the kernel (rdma-mapping.md 1): makes a new one under the same record
 * and posts the waiting receives again. 0 or errno (then the QP is in error and its receives complete ND_CANCELED). */
int qp_replace(struct qp *qp);

/* iWARP, of a claimed QP: a worker is about to name the device QP by its number in a call that blocks. A qp_release until
 * qp_let_device leaves the destruction to that: destroyed, its number would be the next QP's, which the call would connect. */
void qp_hold_device(struct qp *qp);
void qp_let_device(struct qp *qp);

/* A region is about to lose its last reference while it is registered: QPs of the adapter that have requests posted which
 * name its key go to ERROR (design.md 3). Any thread, no lock held. */
void qp_fail_users(struct adapter *adapter, uint32_t lkey);

/* Is a Bind or Invalidate under way on a QP of the adapter that lives, and names this key? Polls first. As above. */
bool qp_window_under_way(struct adapter *adapter, uint32_t lkey);

/* device.c, on loop: async events QP_FATAL and the like; QP_LAST_WQE_REACHED; device removed. */
void qp_async_error(struct qp *qp);
void qp_last_wqe_reached(struct qp *qp);
void qp_device_removed(struct qp *qp);

/* --- data path; statuses: ndspi-v2.md section 10, ndspi-status.md section 5 --- */
HRESULT qp_send(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint32_t flags);
HRESULT qp_receive(struct qp *qp, void *context, const ND2_SGE *sge,
                   uint32_t n); /* with SRQ: ND_INVALID_DEVICE_REQUEST */
HRESULT qp_read(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint64_t address, uint32_t token,
                uint32_t flags);
HRESULT qp_write(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint64_t address, uint32_t token,
                 uint32_t flags);

/* A Send that invalidates a window of the peer by its remote token (as mw_token, network byte order), where the device
 * can: deviations.md says what happens elsewhere. Flags as qp_send; bad ones: ND_INVALID_PARAMETER_5 (their place in
 * INDEndpoint::SendAndInvalidate). */
HRESULT qp_send_invalidate(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint32_t token,
                           uint32_t flags);

/* Request batches of version 1. From start to submit, posts may be held back and are handed to the device together, at the
 * latest by submit; what fails then comes back as ND_CANCELED, with the QP in error. Start twice is one start; submit
 * without start does nothing. A queue that is not live yet does not hold back. Any thread. */
void qp_batch_start(struct qp *qp);
void qp_batch_submit(struct qp *qp);

/* Any initiator request. The caller has filled `wr` but for wr_id, next, sg_list, num_sge and send_flags; `type` is a
 * ND2_REQUEST_TYPE or REQUEST_*, `flags` are ND_OP_FLAG_*. Statuses as the four above; ND_CONNECTION_INVALID: not yet in a
 * state that sends. */
HRESULT qp_initiate(struct qp *qp, void *context, uint32_t type, const ND2_SGE *sge, uint32_t n, uint32_t flags,
                    struct ibv_send_wr *wr);

/* Flush: to ERROR, everything pending completes ND_CANCELED, possibly after the call returned. Also on a QP that was
 * never connected. Always ND_SUCCESS. */
HRESULT qp_flush(struct qp *qp);

#endif
