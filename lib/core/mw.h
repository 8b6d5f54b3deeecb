/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MW_H
#define NDVERBS_MW_H

/* Memory windows: one core for three fronts (design.md section 4, rdma-mapping.md section 6).
 *
 * MW_ND is what both Network Direct versions call a window: bound to one queue pair at a time, invalidated before it is
 * bound again. Devices that have type 2 windows do it; on others a Bind registers the sub-range and a write of nothing
 * carries its completion. MW_TYPE_1 is what WinVerbs calls one: any number of Binds, each ends the one before; devices
 * without windows have none.
 *
 * Any thread. Windows hold their adapter. The caller keeps window, region and queue pair alive during a call. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>
#include "nddef.h"

#include "device.h"
#include "mr.h"

struct mw;
struct cq;
struct qp;

/* Flags that the posts take. */
#define MW_BIND_FLAGS \
    (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)
#define MW_INVALIDATE_FLAGS (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE)

enum mw_kind {
    MW_ND,
    MW_TYPE_1,
};

/* An unbound window, one reference. `revoked`: the RequestContext of the result (ND_SUCCESS, Nd2RequestTypeInvalidate, the
 * queue pair's context) that appears in the receive CQ, behind the Receive that did it, when the peer invalidates the
 * window by qp_send_invalidate; NULL: none wanted. At most one such result waits per window.
 * ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED; ND_NOT_SUPPORTED (MW_TYPE_1 on a device without windows). */
NTSTATUS mw_create(struct adapter *adapter, enum mw_kind kind, void *revoked, struct mw **out);

/* The application's last Release: unbound, the device's window freed (that of a request still under way as soon as the
 * device has answered it, or with its queue pair), a `revoked` result that nobody took is gone. Drops the reference. */
void mw_release(struct mw *mw);

struct adapter *mw_adapter(const struct mw *mw);

/* Remote token (network byte order) of the last Bind; 0 before the first. */
uint32_t mw_token(const struct mw *mw);

/* Posts a Bind of an MW_ND window to part of `mr`; `flags`: MW_BIND_FLAGS. The token is new and right when the call returns; *token (unless NULL) receives it, untouched on failure. ND_SUCCESS
 * also for a queue pair that is closed or in error: ND_CANCELED follows and the window stays unbound.
 * At once, by their place in IND2QueuePair::Bind and INDEndpoint::Bind: ND_INVALID_PARAMETER_2 (region of another
 * adapter, or on its way out), _3 (window of another adapter or kind), _4 (buffer does not begin in the region), _5
 * (length 0, or beyond the region's end), _6 (flags); ND_ACCESS_VIOLATION (write asked for, the region has no local write
 * access), ND_INVALID_DEVICE_REQUEST (bound, or its Invalidate on another queue pair has not completed),
 * ND_CONNECTION_INVALID (never connected), ND_NO_MORE_ENTRIES, ND_INSUFFICIENT_RESOURCES (memory could not be registered,
 * or no new device window), ND_UNSUCCESSFUL, ND_DEVICE_REMOVED.
 * Sources: IND2QueuePair::Bind, INDEndpoint::Bind; ndspi.md 5.8. */
HRESULT mw_bind(struct qp *qp, void *context, struct mr *mr, struct mw *mw, const void *buffer, size_t length,
                uint32_t flags, uint32_t *token);

/* The same for an MW_TYPE_1 window, bound or not. `access`: IBV_ACCESS_REMOTE_READ, _WRITE, _ATOMIC; `flags`:
 * MW_INVALIDATE_FLAGS. Length 0 unbinds (`mr` and `buffer` are not looked at).
 * Source: IWVConnectQueuePair::BindMemoryWindow; winverbs.md 6.1. */
HRESULT mw_bind_type1(struct qp *qp, void *context, struct mr *mr, struct mw *mw, const void *buffer, size_t length,
                      int access, uint32_t flags, uint32_t *token);

/* Posts an Invalidate of an MW_ND window; `flags`: MW_INVALIDATE_FLAGS. The window counts as unbound when
 * the call returns and may be bound again on the same queue pair, elsewhere after the completion. A window that is not
 * bound on this queue pair (by then: the peer may have invalidated it) completes ND_INVALID_DEVICE_REQUEST, in order, and
 * the connection stays: such an invalidate never reaches the device (it panics the kernel of rxe). On a queue pair that
 * is closed or in error the window is unbound and the request comes back as ND_CANCELED.
 * At once: ND_INVALID_PARAMETER_2 (window of another adapter or kind), _3 (flags), ND_CONNECTION_INVALID,
 * ND_NO_MORE_ENTRIES, ND_UNSUCCESSFUL, ND_DEVICE_REMOVED. Sources: IND2QueuePair::Invalidate, INDEndpoint::Invalidate. */
HRESULT mw_invalidate(struct qp *qp, void *context, struct mw *mw, uint32_t flags);

/* --- for mr.c, qp.c, cq.c, cq_poll.c --- */

/* Frees what the device still holds of windows of the adapter that are unbound or dead, of those on `mr` only unless NULL,
 * as far as no request of theirs is under way. No lock held. */
void mw_settle(struct adapter *adapter, const struct mr *mr);

/* Unbinds every window of the region at once (its last Release). */
void mw_fail_region(struct mr *mr);

/* Frees the device windows bound on a QP whose queues are closed, before it is destroyed (design.md section 4). */
void mw_fail_qp(struct qp *qp);

/* CQ lock held: looks for Receives that invalidated a window; what they leave to do is in cq->revoked and cq->unbound. */
void mw_look_locked(struct cq *cq, const struct ibv_wc *wc, uint32_t n);

/* CQ lock held: the result of a window that was just taken out of cq->revoked. */
void mw_take_revoked_locked(struct list *node, ND2_RESULT *result);

/* Has a worker free what was in cq->unbound. No lock held. */
void mw_report(struct list *unbound);

/* Place in the order of creation of windows and queue pairs. */
uint64_t mw_next_order(void);

#endif
