/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CONNECTOR_H
#define NDVERBS_CONNECTOR_H

/* Overlapped connection objects on top of the wire machine (connection.c): what ND v1, ND v2 and WinVerbs connectors and
 * listeners share. The policy record holds everything in which the fronts differ (design.md section 5). */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <windows.h>

#include "address.h"
#include "device.h"
#include "overlapped.h"
#include "qp.h"

struct connector_policy {
    bool qp_owner;                     /* the front's QP is put to ERROR by us */
    bool auto_drep;                    /* answer the peer's DREQ at once (ND), or at Disconnect (WinVerbs) */
    bool flush_on_peer;                /* the peer's disconnect flushes our requests (A7) */
    bool cancel_abandons;              /* CancelOverlappedRequests abandons a pending Connect or Accept */
    HRESULT disconnect_timeout_status; /* result of a Disconnect whose DREQ timed out */
    bool v1_timeouts;                  /* ND_TIMEOUT instead of ND_IO_TIMEOUT */
    bool wv;                           /* the rules of WinVerbs' endpoints in everything else: see below */
};

/* What `wv` means: the queue pair is the application's, and goes to ERROR and drains only when it disconnects; limits and
 * retries are as given; QPs of any protection domain of the device will do; a connector may be made without an adapter (NULL)
 * and gets it by connector_bind_on or from the request it fetches; a refusal ends it; cancelling completes requests and
 * changes nothing else; Disconnect may be called again; statuses are WinVerbs'. */

struct connector;
struct listener;

/* All statuses as in ndspi-v2.md sections 11 and 12, spec/ndspi.md section 4 and spec/ndspi-status.md section 6; fronts
 * pass them through. Every function: any thread. The overlapped ones return ND_PENDING or an error, never ND_SUCCESS. */
NTSTATUS connector_create(struct adapter *adapter, struct file *file, const struct connector_policy *policy,
                          struct connector **out);
struct connector *connector_ref(struct connector *connector);
void connector_unref(struct connector *connector);

/* The application's last Release: pending requests complete ND_CANCELED before it returns, the attempt is abandoned or
 * the connection disconnected, ids go to a worker. Does not drop the reference. */
void connector_release(struct connector *connector);

NTSTATUS connector_bind(struct connector *c, const struct sockaddr *address, size_t length);

/* WinVerbs: binds on that adapter, which becomes the connector's. Gives the address and its port up again, for a
 * listener to take: no attempt may have been made. */
NTSTATUS connector_bind_on(struct connector *c, struct adapter *adapter, const struct sockaddr *address, size_t length);
void connector_unbind(struct connector *c);

/* WinVerbs: what the next Connect or Accept says to the peer. */
void connector_set_retries(struct connector *c, uint8_t retry, uint8_t rnr_retry);

/* Everything that is known; fields of what is not are 0. */
struct connector_info {
    union address local, peer;
    bool passive, active; /* who asked; neither: no attempt yet */
    uint64_t device_guid; /* host order; 0: no device */
    uint8_t port;
    uint8_t retry, rnr_retry;  /* the peer's words, as they came */
    uint8_t inbound, outbound; /* the same */
    uint16_t data_length;      /* of the peer's data; 0 if there is none yet */
    uint8_t data[148];
};
/* Neither bound, waiting for a request, nor ever part of a connection. */
bool connector_unused(struct connector *c);
void connector_query(struct connector *c, struct connector_info *info);
NTSTATUS connector_connect(struct connector *c, struct qp *qp, const struct sockaddr *dest, size_t length,
                           uint32_t inbound, uint32_t outbound, const void *data, size_t data_length, OVERLAPPED *ov);
NTSTATUS connector_complete_connect(struct connector *c, OVERLAPPED *ov);
NTSTATUS connector_accept(struct connector *c, struct qp *qp, uint32_t inbound, uint32_t outbound, const void *data,
                          size_t data_length, OVERLAPPED *ov);
NTSTATUS connector_reject(struct connector *c, const void *data, size_t data_length);
NTSTATUS connector_get_read_limits(struct connector *c, ULONG *inbound, ULONG *outbound);
NTSTATUS connector_get_private_data(struct connector *c, void *buffer, ULONG *length);
NTSTATUS connector_get_local_address(struct connector *c, struct sockaddr *buffer, ULONG *length);
NTSTATUS connector_get_peer_address(struct connector *c, struct sockaddr *buffer, ULONG *length);
NTSTATUS connector_notify_disconnect(struct connector *c, OVERLAPPED *ov);
NTSTATUS connector_disconnect(struct connector *c, OVERLAPPED *ov);

/* WinVerbs: the same if `qp` is NULL or the connection's, else ND_INVALID_PARAMETER. */
NTSTATUS connector_disconnect_qp(struct connector *c, struct qp *qp, OVERLAPPED *ov);

/* The QP serves this connector's attempt or connection, or is being drained after it. */
bool connector_uses(struct connector *c, const struct qp *qp);

/* A further Connect from this local port (host order; 0: any) needs another connector: this one's connection is over, with
 * nothing left to finish, or it is bound to another port and idle. */
bool connector_spent(struct connector *c, uint16_t port);

/* CancelOverlappedRequests: ndspi.md 2.5. Every cancelled request is completed before it returns. */
NTSTATUS connector_cancel(struct connector *c);

/* The QP's last Release (called by the front before qp_release, whether a connector uses it or not): an implicit
 * disconnect. */
void connector_qp_released(struct qp *qp);

/* IBV_EVENT_COMM_EST of that QP: data came before the RTU. On loop. */
void connector_comm_established(struct qp *qp);

/* An event of that QP which leaves it of no use: the connection is lost (iWARP: the kernel tells). On loop. */
void connector_qp_failed(struct qp *qp);

/* The device is gone: whatever is pending on its connectors and listeners completes with ND_DEVICE_REMOVED. On loop,
 * called by device_set_removed. */
void connector_device_removed(struct device *device);
void listener_device_removed(struct device *device);

/* WinVerbs: bound to a wildcard address it listens on the addresses of all these adapters (at least one). A connector that
 * fetches a request needs no adapter of its own. */
NTSTATUS listener_create_wide(struct adapter *const *adapters, size_t count, struct file *file, struct listener **out);
NTSTATUS listener_create(struct adapter *adapter, struct file *file, struct listener **out);
struct listener *listener_ref(struct listener *listener);
void listener_unref(struct listener *listener);
void listener_release(struct listener *listener); /* as connector_release; queued requests are rejected */
NTSTATUS listener_bind(struct listener *l, const struct sockaddr *address, size_t length);
NTSTATUS listener_listen(struct listener *l, uint32_t backlog);
NTSTATUS listener_get_local_address(struct listener *l, struct sockaddr *buffer, ULONG *length);
NTSTATUS listener_get_connection_request(struct listener *l, struct connector *connector, OVERLAPPED *ov);
NTSTATUS listener_cancel(struct listener *l);

#endif
