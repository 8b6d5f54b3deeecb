/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CONNECTION_PRIV_H
#define NDVERBS_CONNECTION_PRIV_H

/* What the files of the wire machine share: connection.c (attempts and events), connection_id.c (ids, the local port, the
 * deadline), connection_iw.c (connects that block), connection_qp.c (the QP), connection_bare.c (QPs that are not ours). All with the connection's lock held unless
 * said otherwise. */

#include "connection.h"

static inline bool connection_is_iw(const struct connection *conn)
{
    return conn->adapter->device->transport == DEVICE_IW;
}

/* connection.c. What happens next on an event; `cm` is NULL for events of our own. */
void connection_step(struct connection *conn, enum wire_event event, const struct cm_event *cm);
void connection_deliver(struct connection *conn, const struct cm_event *cm);
void connection_fail(struct connection *conn, NTSTATUS status);         /* a call of ours failed */
void connection_event(struct cmid *cmid, const struct cm_event *event); /* without lock */
void connection_gone(struct cmid *cmid);                                /* without lock */
/* A second try of a Connect, with another id, and once only. False: there is none, or it failed. */
bool connection_try_again(struct connection *conn, void (*renew_id)(struct connection *conn), const char *why);
NTSTATUS connection_connect_status(int error);
NTSTATUS connection_lost_status(const struct connection *conn); /* of one that does not go on */
void connection_fill_param(const struct connection *conn, struct rdma_conn_param *param, const void *data,
                           size_t length);

/* Gives a QP back that the application can use again (consumes the reference). `replace`: on iWARP the kernel has seen
 * the request, which costs the QP its life; another one takes its place under the same record. With or without lock. */
void connection_give_back_qp(struct qp *qp, bool replace);

/* connection_bare.c: the two calls that differ when the QP is not ours. */
NTSTATUS connection_complete_bare(struct connection *conn);
NTSTATUS connection_accept_bare(struct connection *conn, struct rdma_conn_param *param);

/* connection_id.c. A worker may be inside a call on the old id. No id afterwards: it could not be bound. */
void connection_renew_id(struct connection *conn);
void connection_move_id(struct connection *conn); /* on the wire it has another port */
void connection_drop_id(struct connection *conn);
void connection_set_timer(struct connection *conn, uint32_t ms); /* 0: none */

/* connection_iw.c. A new attempt may fail for memory, its start for workers. Given up while a worker runs it, it takes
 * the QP with it. */
bool connection_new_attempt(struct connection *conn);
NTSTATUS connection_start_attempt(struct connection *conn);
void connection_orphan_attempt(struct connection *conn);
bool connection_hold_event(struct connection *conn, const struct cm_event *cm); /* false: nothing is running */

/* listener.c, without lock: true if a listener of this process owns the port of that address, or of all addresses. */
bool listener_port_is_ours(const union address *address);

#endif
