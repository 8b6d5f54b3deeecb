/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"

#include <errno.h>
#include <string.h>
#include <ntstatus.h>

#include "log.h"
#include "status.h"
#include "tunable.h"

#define SIW_SETTLE_MS 20

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void connection_init(struct connection *conn, struct adapter *adapter, const struct connection_owner *owner)
{
    memset(conn, 0, sizeof(*conn));
    pthread_mutex_init(&conn->lock, NULL);
    conn->owner = owner;
    conn->bare = !adapter;
    connection_set_adapter(conn, adapter);
}

void connection_set_adapter(struct connection *conn, struct adapter *adapter)
{
    if (!conn->adapter && adapter)
        __atomic_store_n(&conn->adapter, adapter_ref(adapter), __ATOMIC_RELEASE);
}

void connection_forget_adapter(struct connection *conn)
{
    struct adapter *adapter = conn->adapter;

    __atomic_store_n(&conn->adapter, NULL, __ATOMIC_RELEASE);
    if (adapter)
        adapter_unref(adapter);
}

void connection_fini(struct connection *conn)
{
    connection_drop_qp(conn);
    if (conn->adapter)
        adapter_unref(conn->adapter);
    pthread_mutex_destroy(&conn->lock);
}

/* ---- The QP of the attempt ---- */

void connection_drop_qp(struct connection *conn)
{
    struct qp *qp = conn->qp;

    conn->qp = NULL;
    conn->qp_moved = false;
    if (qp)
        qp_unref(qp);
}

/* Gives a QP back that the application can use again. `issued`: the kernel has seen the request; on iWARP that has cost
 * the QP its life, and another one takes its place under the same record. */
void connection_give_back_qp(struct qp *qp, bool replace)
{
    int error = replace && qp_verbs(qp) ? qp_replace(qp) : 0;

    if (error)
        log_warn("replacing a queue pair after a failed attempt: %s", strerror(error));
    qp_unclaim(qp);
    qp_unref(qp);
}

static void restore_qp(struct connection *conn, bool issued)
{
    struct qp *qp = conn->qp;

    conn->qp = NULL;
    conn->qp_moved = false;
    if (qp)
        connection_give_back_qp(qp, issued && connection_is_iw(conn));
}

void connection_fail(struct connection *conn, NTSTATUS status)
{
    conn->failure = status;
    connection_step(conn, WIRE_EV_CALL_FAILED, NULL);
}

NTSTATUS connection_lost_status(const struct connection *conn)
{
    return adapter_removed(conn->adapter) ? ND_DEVICE_REMOVED : ND_CONNECTION_ABORTED;
}

/* EINVAL of rdma_connect is no verdict on the address, which has been resolved: the id or the QP is past use. Nor is
 * EADDRNOTAVAIL: on iWARP the kernel has a TCP connection between the same ports. */
NTSTATUS connection_connect_status(int error)
{
    if (error == EADDRNOTAVAIL)
        return ND_CONNECTION_ACTIVE;
    return error == EINVAL ? ND_CONNECTION_ABORTED : status_from_connect_errno(error);
}

/* ---- Active side ---- */

static int resolve_address(struct connection *conn)
{
    union address dest = conn->peer;

    if (rdma_resolve_addr(conn->cmid->id, NULL, &dest.sa, (int)tunables()->resolve_timeout_ms) == 0)
        return 0;
    address_info(errno, status_from_resolve_errno(errno), "rdma_resolve_addr", &dest.sa);
    return errno;
}

static void resolve_route(struct connection *conn)
{
    connection_set_ack_timeout(conn->cmid, false);
    if (rdma_resolve_route(conn->cmid->id, (int)tunables()->resolve_timeout_ms) == 0)
        return;
    connection_fail(conn, status_info(errno, status_from_route_errno(errno), "rdma_resolve_route"));
}

void connection_fill_param(const struct connection *conn, struct rdma_conn_param *param, const void *data,
                           size_t length)
{
    memset(param, 0, sizeof(*param));
    param->private_data = length ? data : NULL;
    param->private_data_len = (uint8_t)length;
    param->responder_resources = (uint8_t)conn->inbound;
    param->initiator_depth = (uint8_t)conn->outbound;
    if (conn->bare) {
        param->retry_count = conn->bare_qp.retry_count;
        param->rnr_retry_count = conn->bare_qp.rnr_retry_count;
        param->flow_control = conn->bare_qp.flow_control;
        param->srq = conn->bare_qp.srq;
        param->qp_num = conn->bare_qp.number;
        return;
    }
    param->retry_count = (uint8_t)tunables()->retry_count;
    param->rnr_retry_count = (uint8_t)tunables()->rnr_retry;
    if (conn->as_given) {
        param->retry_count = conn->retry;
        param->rnr_retry_count = conn->rnr_retry;
    }
    param->srq = qp_has_srq(conn->qp);
    param->qp_num = qp_number(conn->qp);
}

static void send_request(struct connection *conn)
{
    struct rdma_conn_param param;
    NTSTATUS status;

    if (conn->attempt) {
        status = connection_start_attempt(conn);
        if (status != ND_SUCCESS)
            connection_fail(conn, status);
        return;
    }
    connection_fill_param(conn, &param, conn->data, conn->data_length);
    if (rdma_connect(conn->cmid->id, &param) == 0)
        return;
    connection_fail(conn, status_warn(errno, connection_connect_status(errno), "rdma_connect"));
}

/* Windows takes a loopback destination for the adapter's own address (rdma-mapping.md 8). */
static void map_loopback(struct connection *conn, union address *dest)
{
    struct address_entry entry;
    union address own;
    uint16_t port = address_port(&dest->sa);

    if (!address_is_loopback(&dest->sa) || address_find(&dest->sa, &entry) == ND_SUCCESS)
        return;
    if (conn->bound && conn->local.sa.sa_family == dest->sa.sa_family)
        own = conn->local;
    else if (address_of_adapter(conn->adapter->id, dest->sa.sa_family, &own) != ND_SUCCESS)
        return;
    *dest = own;
    address_set_port(&dest->sa, port);
}

/* The address that the id is bound to, or will be; NULL: there is none. */
static const union address *source_of(const struct connection *conn, int family, union address *own)
{
    if (conn->bound)
        return &conn->local;
    return address_of_adapter(conn->adapter->id, family, own) == ND_SUCCESS ? own : NULL;
}

static NTSTATUS ensure_id(struct connection *conn, int family)
{
    union address own;
    NTSTATUS status;

    if (!conn->bound) {
        status = address_of_adapter(conn->adapter->id, family, &own);
        return status == ND_SUCCESS ? connection_bind(conn, &own) : status;
    }
    if (!conn->cmid)
        connection_renew_id(conn);
    return conn->cmid ? ND_SUCCESS : ND_INSUFFICIENT_RESOURCES;
}

NTSTATUS connection_connect(struct connection *conn, struct qp *qp, const union address *dest, uint32_t inbound,
                            uint32_t outbound, const void *data, size_t length)
{
    const struct adapter_limits *limits = &conn->adapter->limits;
    union address target = *dest, own;
    NTSTATUS status;
    int error;

    if (address_is_any(&target.sa))
        return STATUS_BAD_NETWORK_NAME;
    map_loopback(conn, &target);
    /* A bound id takes a destination without a route for one on its own link and waits for it in vain. */
    if (address_reachable(source_of(conn, target.sa.sa_family, &own), &target) == ND_NETWORK_UNREACHABLE)
        return ND_NETWORK_UNREACHABLE;
    status = qp ? qp_claim(qp) : ND_SUCCESS;
    if (status != ND_SUCCESS)
        return status;
    status = ensure_id(conn, target.sa.sa_family);
    if (status != ND_SUCCESS)
        goto err_unclaim;
    status = ND_NO_MEMORY;
    if (connection_is_iw(conn) && !connection_new_attempt(conn))
        goto err_unclaim;
    conn->peer = target;
    error = resolve_address(conn);
    if (error) {
        status = status_from_resolve_errno(error);
        goto err_attempt;
    }
    conn->qp = qp ? qp_ref(qp) : NULL;
    conn->qp_moved = conn->retried = conn->data_in = conn->peer_srq = conn->peer_known = false;
    conn->inbound = lower(inbound, lower(limits->max_inbound_reads, UINT8_MAX));
    conn->outbound = lower(outbound, lower(limits->max_outbound_reads, UINT8_MAX));
    conn->data_length = (uint16_t)length;
    if (length)
        memcpy(conn->data, data, length);
    conn->state = WIRE_ADDRESS;
    connection_set_timer(conn, tunables()->connect_timeout_ms);
    return ND_SUCCESS;

err_attempt:
    connection_orphan_attempt(conn);
err_unclaim:
    if (qp)
        qp_unclaim(qp);
    return status;
}

/* iWARP: the kernel has moved the queue pair, with the limits that the messages agreed on. */
static void set_connected(struct connection *conn)
{
    qp_limit_reads(conn->qp, conn->outbound);
    qp_set_connected(conn->qp);
}

NTSTATUS connection_complete(struct connection *conn)
{
    NTSTATUS status = ND_CONNECTION_ABORTED;

    if (conn->bare)
        return connection_complete_bare(conn);
    if (connection_is_iw(conn)) {
        conn->qp_moved = true;
        set_connected(conn);
    }
    if (connection_is_iw(conn) || connection_qp_establish(conn)) {
        conn->state = WIRE_ESTABLISHED;
        return ND_SUCCESS;
    }
    if (adapter_removed(conn->adapter))
        status = ND_DEVICE_REMOVED;
    if (!conn->qp_moved)
        restore_qp(conn, true);
    connection_close(conn);
    return status;
}

/* ---- Passive side ---- */

static void take_data(struct connection *conn, const struct cm_event *cm)
{
    size_t length = lower(cm->data_length, conn->owner->data_max);

    while (tunables()->trim_private_data && length && !cm->data[length - 1])
        length--;
    memcpy(conn->data, cm->data, length);
    conn->data_length = (uint16_t)length;
    conn->data_in = true;
}

static void take_peer_qp(struct connection *conn, const struct cm_event *cm)
{
    conn->peer_qp.number = cm->qp_num;
    conn->peer_qp.retry_count = cm->retry_count;
    conn->peer_qp.rnr_retry_count = cm->rnr_retry_count;
    conn->peer_qp.flow_control = cm->flow_control;
    conn->peer_qp.srq = cm->srq;
}

static void take_address(union address *to, const struct sockaddr *from)
{
    size_t length = address_length(from);

    if (length)
        memcpy(to, from, length);
}

/* The request that brings the addresses has no scopes; both ends of link-local ones are on our own link. */
static void take_scopes(struct connection *conn)
{
    struct sockaddr_in6 *local = &conn->local.v6, *peer = &conn->peer.v6;

    if (local->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&local->sin6_addr))
        return;
    if (!local->sin6_scope_id)
        local->sin6_scope_id = address_scope(conn->adapter->id, &conn->local.sa);
    if (peer->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&peer->sin6_addr) && !peer->sin6_scope_id)
        peer->sin6_scope_id = local->sin6_scope_id;
}

static void take_words(struct connection *conn, const struct cm_event *cm)
{
    /* As with take_limits. */
    bool swapped = connection_is_iw(conn) && cm->type == RDMA_CM_EVENT_ESTABLISHED;

    conn->told_in = swapped ? cm->initiator_depth : cm->responder_resources;
    conn->told_out = swapped ? cm->responder_resources : cm->initiator_depth;
    conn->told_retry = cm->retry_count;
    conn->told_rnr = cm->rnr_retry_count;
}

void connection_take(struct connection *conn, struct adapter *adapter, struct cmid *cmid,
                     const struct cm_event *request)
{
    const struct adapter_limits *limits = &adapter->limits;

    connection_set_adapter(conn, adapter);
    take_words(conn, request);

    cmid_give(cmid, conn, connection_event, connection_gone);
    conn->owner->ref(conn);
    conn->cmid = cmid;
    conn->passive = true;
    conn->peer_srq = request->srq;
    conn->inbound = lower(request->responder_resources, limits->max_inbound_reads);
    conn->outbound = lower(request->initiator_depth, limits->max_outbound_reads);
    take_data(conn, request);
    take_peer_qp(conn, request);
    take_address(&conn->local, rdma_get_local_addr(cmid->id));
    take_address(&conn->peer, rdma_get_peer_addr(cmid->id));
    take_scopes(conn);
    conn->peer_known = true;
    conn->state = WIRE_REQUEST_IN;
}

NTSTATUS connection_accept(struct connection *conn, struct qp *qp, uint32_t inbound, uint32_t outbound,
                           const void *data, size_t length)
{
    uint32_t offered_in = conn->inbound, offered_out = conn->outbound;
    struct rdma_conn_param param;
    NTSTATUS status = qp ? qp_claim(qp) : ND_SUCCESS;
    bool ready;

    if (status != ND_SUCCESS)
        return status;
    conn->qp = qp ? qp_ref(qp) : NULL;
    conn->qp_moved = false;
    if (conn->as_given) {
        offered_in = lower(conn->adapter->limits.max_inbound_reads, UINT8_MAX);
        offered_out = lower(conn->adapter->limits.max_outbound_reads, UINT8_MAX);
    }
    conn->inbound = lower(inbound, offered_in);
    conn->outbound = lower(outbound, offered_out);
    connection_fill_param(conn, &param, data, length);
    if (conn->bare)
        return connection_accept_bare(conn, &param);
    ready = connection_is_iw(conn) ? (connection_qp_prepare_iw(conn), true) : connection_qp_ready(conn);
    if (ready && rdma_accept(conn->cmid->id, &param) == 0) {
        conn->state = WIRE_REPLY_OUT;
        conn->qp_moved = true;
        /* Not sooner: siw keeps what is posted before the kernel has connected it, and sends it after all. */
        if (connection_is_iw(conn))
            set_connected(conn);
        return ND_SUCCESS;
    }
    status = connection_lost_status(conn);
    if (ready)
        status_info(errno, status, "rdma_accept");
    if (!conn->qp_moved)
        restore_qp(conn, ready);
    connection_close(conn);
    return status;
}

/* ---- Ends ---- */

NTSTATUS connection_reject(struct connection *conn, const void *data, size_t length)
{
    bool established = connection_is_iw(conn) && conn->state == WIRE_REPLY_IN;
    int result = established ? rdma_disconnect(conn->cmid->id)
                             : rdma_reject(conn->cmid->id, length ? data : NULL, (uint8_t)length);
    NTSTATUS status = ND_SUCCESS;

    if (result != 0) {
        status = connection_lost_status(conn);
        status_info(errno, status, "%s", established ? "rdma_disconnect" : "rdma_reject");
    }
    restore_qp(conn, true);
    connection_close(conn);
    return status;
}

void connection_disconnect(struct connection *conn)
{
    conn->state = WIRE_DREQ_OUT;
    connection_set_timer(conn, tunables()->disconnect_timeout_ms);
    if (rdma_disconnect(conn->cmid->id) == 0)
        return;
    /* iWARP: the peer was first. Nothing was sent, so nothing is to be waited for. */
    log_debug("rdma_disconnect: %s", strerror(errno));
    connection_fail(conn, ND_SUCCESS);
}

void connection_disconnect_now(struct connection *conn)
{
    connection_fail(conn, ND_SUCCESS);
}

void connection_answer(struct connection *conn)
{
    if (conn->cmid && !connection_is_iw(conn) && rdma_disconnect(conn->cmid->id) != 0)
        log_debug("rdma_disconnect: %s", strerror(errno));
}

void connection_abandon(struct connection *conn, bool keep)
{
    bool issued = conn->state == WIRE_REQUEST_OUT || conn->state == WIRE_REPLY_IN;

    if (conn->state == WIRE_REQUEST_IN || (conn->state == WIRE_REPLY_IN && !keep)) {
        connection_reject(conn, NULL, 0);
        return;
    }
    if (conn->state == WIRE_REPLY_IN && rdma_disconnect(conn->cmid->id) != 0)
        log_debug("rdma_disconnect: %s", strerror(errno));
    conn->settling = false;
    connection_set_timer(conn, 0);
    connection_orphan_attempt(conn);
    if (!conn->qp_moved)
        restore_qp(conn, issued);
    if (keep) {
        connection_renew_id(conn);
        conn->state = WIRE_IDLE;
        return;
    }
    connection_close(conn);
}

void connection_close(struct connection *conn)
{
    conn->settling = false;
    connection_set_timer(conn, 0);
    connection_orphan_attempt(conn);
    connection_drop_id(conn);
    conn->state = WIRE_OVER;
}

/* On IB-type the kernel has nothing left to tell the peer; on iWARP the destruction may be what ends it. */
void connection_part(struct connection *conn)
{
    conn->parted = !connection_is_iw(conn) && !conn->timed_out;
    connection_close(conn);
}

/* ---- Events ---- */

static bool can_retry(const struct connection *conn, NTSTATUS status)
{
    if (status == ND_CONNECTION_REFUSED && conn->once)
        return false;
    return status == ND_NETWORK_UNREACHABLE || status == ND_HOST_UNREACHABLE || status == ND_CONNECTION_REFUSED ||
           status == ND_IO_TIMEOUT || status == STATUS_BAD_NETWORK_NAME || status == ND_CONNECTION_ACTIVE;
}

static NTSTATUS event_status(const struct connection *conn, enum wire_event event, const struct cm_event *cm)
{
    bool passive = conn->passive;

    switch (event) {
    case WIRE_EV_ADDR_ERROR:
        return status_from_resolve_errno(-cm->status);
    case WIRE_EV_ROUTE_ERROR:
        return status_from_route_errno(-cm->status);
    case WIRE_EV_UNREACHABLE:
        return status_from_connect_errno(-cm->status);
    case WIRE_EV_REJECTED:
    case WIRE_EV_STALE:
        return status_from_reject(cm->status, passive);
    case WIRE_EV_TIMER:
        return ND_IO_TIMEOUT;
    case WIRE_EV_CALL_FAILED:
        return conn->failure;
    case WIRE_EV_REMOVED:
        return ND_DEVICE_REMOVED;
    case WIRE_EV_CONNECT_ERROR:
    case WIRE_EV_DISCONNECTED:
        return ND_CONNECTION_ABORTED;
    default:
        return ND_SUCCESS;
    }
}

/* Limits of a reply, from our own point of view. On iWARP the two come the other way round, and the kernel may have
 * raised them (rdma-mapping.md 1). */
static void take_limits(struct connection *conn, const struct cm_event *cm)
{
    if (connection_is_iw(conn)) {
        conn->inbound = lower(cm->initiator_depth, conn->adapter->limits.max_inbound_reads);
        conn->outbound = lower(cm->responder_resources, conn->adapter->limits.max_outbound_reads);
        return;
    }
    conn->inbound = lower(cm->responder_resources, conn->inbound);
    conn->outbound = lower(cm->initiator_depth, conn->outbound);
}

/* A reject's data is the application's only when the peer's application sent it. */
static void take_reject(struct connection *conn, enum wire_event event, const struct cm_event *cm)
{
    conn->reject = event == WIRE_EV_REJECTED || event == WIRE_EV_STALE ? cm->status : 0;
    if (event != WIRE_EV_REJECTED && !(conn->bare && event == WIRE_EV_STALE))
        return;
    if (cm->status == 28 || cm->status < 0) {
        take_data(conn, cm);
    } else {
        conn->data_length = 0;
        conn->data_in = true;
    }
}

static void attempt_failed(struct connection *conn, enum wire_state from, NTSTATUS status)
{
    connection_set_timer(conn, 0);
    connection_orphan_attempt(conn);
    restore_qp(conn, from == WIRE_REQUEST_OUT);
    if (conn->bare || !can_retry(conn, status)) {
        connection_close(conn);
        return;
    }
    connection_renew_id(conn);
    conn->state = WIRE_IDLE;
}

/* True: the reply waits. siw's acceptor sends its reply before it reads the socket on the queue pair's behalf; what comes in
 * between stays unread until something follows it, which with one message in flight is never. So that our application's
 * first message does not get there, it hears of the reply a little later. */
static bool take_reply(struct connection *conn, const struct cm_event *cm)
{
    take_data(conn, cm);
    take_peer_qp(conn, cm);
    take_words(conn, cm);
    take_limits(conn, cm);
    conn->peer_srq = !connection_is_iw(conn) && cm->srq;
    conn->peer_known = true;
    conn->settling = device_is_siw(conn->adapter->device);
    connection_set_timer(conn, conn->settling ? SIW_SETTLE_MS : 0);
    return conn->settling;
}

bool connection_try_again(struct connection *conn, void (*renew_id)(struct connection *conn), const char *why)
{
    if (conn->retried)
        return false;
    conn->retried = true;
    log_debug("%s; trying once more", why);
    renew_id(conn);
    if (!conn->cmid || resolve_address(conn) != 0)
        return false;
    conn->state = WIRE_ADDRESS;
    return true;
}

void connection_step(struct connection *conn, enum wire_event event, const struct cm_event *cm)
{
    struct wire_cell cell = wire_cell(conn->adapter->device->transport, conn->state, event);
    enum wire_state from = conn->state;
    enum wire_note note = cell.note;
    NTSTATUS status = event_status(conn, event, cm);

    conn->state = cell.next;
    if (note != NOTE_NONE && conn->bare)
        take_reject(conn, event, cm);
    switch (note) {
    case NOTE_NONE:
        return;
    case NOTE_RESOLVE_ROUTE:
        resolve_route(conn);
        return;
    case NOTE_SEND_REQUEST:
        send_request(conn);
        return;
    case NOTE_RETRY:
        /* A new id has a new starting sequence number. */
        if (!conn->bare && connection_try_again(conn, connection_renew_id, "the peer knows our queue pair from before"))
            return;
        note = NOTE_CONNECT_FAILED;
        /* fall through */
    case NOTE_CONNECT_FAILED:
        take_reject(conn, event, cm);
        attempt_failed(conn, from, status);
        break;
    case NOTE_REPLY:
        if (event != WIRE_EV_TIMER && take_reply(conn, cm))
            return;
        conn->settling = false;
        status = ND_SUCCESS;
        break;
    case NOTE_REPLY_LOST:
        conn->settling = false;
        restore_qp(conn, true);
        connection_close(conn);
        break;
    case NOTE_ACCEPTED:
        if (connection_is_iw(conn)) {
            take_limits(conn, cm);
            if (conn->qp)
                qp_limit_reads(conn->qp, conn->outbound);
        }
        break;
    case NOTE_ACCEPT_FAILED:
        connection_close(conn);
        break;
    case NOTE_ACCEPTED_CLOSED:
    case NOTE_PEER_CLOSED:
    case NOTE_LOST:
        break;
    case NOTE_CLOSED:
        connection_set_timer(conn, 0);
        conn->timed_out = event == WIRE_EV_TIMER || (event == WIRE_EV_DISCONNECTED && cm->status == -ETIMEDOUT);
        break;
    case NOTE_REMOVED:
        if (!conn->qp_moved)
            restore_qp(conn, false);
        connection_close(conn);
        break;
    case WIRE_NOTES:
        break;
    }
    conn->owner->note(conn, note, status);
}

static enum wire_event event_of(const struct connection *conn, const struct cm_event *cm)
{
    switch (cm->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        return WIRE_EV_ADDR_RESOLVED;
    case RDMA_CM_EVENT_ADDR_ERROR:
        return WIRE_EV_ADDR_ERROR;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return WIRE_EV_ROUTE_RESOLVED;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        return WIRE_EV_ROUTE_ERROR;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return WIRE_EV_RESPONSE;
    case RDMA_CM_EVENT_ESTABLISHED:
        return WIRE_EV_ESTABLISHED;
    case RDMA_CM_EVENT_REJECTED:
        return !connection_is_iw(conn) && cm->status == 10 ? WIRE_EV_STALE : WIRE_EV_REJECTED;
    case RDMA_CM_EVENT_UNREACHABLE:
        return WIRE_EV_UNREACHABLE;
    case RDMA_CM_EVENT_CONNECT_ERROR:
        return WIRE_EV_CONNECT_ERROR;
    case RDMA_CM_EVENT_DISCONNECTED:
        return WIRE_EV_DISCONNECTED;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return WIRE_EV_REMOVED;
    default:
        return WIRE_EV_OTHER;
    }
}

/* While a worker is inside rdma_connect, events wait for it to come out; the end of the device does not. */
void connection_deliver(struct connection *conn, const struct cm_event *cm)
{
    enum wire_event event = event_of(conn, cm);

    if (event == WIRE_EV_OTHER || (event != WIRE_EV_REMOVED && connection_hold_event(conn, cm)))
        return;
    connection_step(conn, event, cm);
}

void connection_event(struct cmid *cmid, const struct cm_event *event)
{
    struct connection *conn = cmid->owner;

    pthread_mutex_lock(&conn->lock);
    if (conn->cmid == cmid)
        connection_deliver(conn, event);
    conn->owner->unlock(conn);
}

void connection_gone(struct cmid *cmid)
{
    struct connection *conn = cmid->owner;

    conn->owner->unref(conn);
}

void connection_device_removed(struct connection *conn)
{
    connection_step(conn, WIRE_EV_REMOVED, NULL);
}

void connection_qp_failed(struct connection *conn)
{
    connection_step(conn, WIRE_EV_QP_FAILED, NULL);
}

void connection_comm_established(struct connection *conn)
{
    if (conn->state == WIRE_REPLY_OUT && !connection_is_iw(conn) &&
        rdma_notify(conn->cmid->id, IBV_EVENT_COMM_EST) != 0)
        log_debug("rdma_notify: %s", strerror(errno)); /* EISCONN: the RTU was there already */
}
