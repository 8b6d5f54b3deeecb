/* SPDX-License-Identifier: MIT */

/* Events of ids, and the messages between ids of this process. */

#include "fake_internal.h"

#define MSG_KINDS       (FAKE_MSG_DREP + 1)
#define REJECT_TIMEOUT  4
#define REJECT_NOBODY   8
#define REJECT_CONSUMER 28

struct message {
    struct list link;
    enum fake_msg kind;
    struct fake_id *from, *to; /* either may be destroyed by the time of delivery; REQ: `to` is found then */
    struct fake_conn_param param;
    int status; /* REJ */
};

static struct list held = { &held, &held };
static struct list backlogged = { &backlogged, &backlogged };
static bool holding;
static unsigned drops[MSG_KINDS];

/* ---- events ---- */

/* On IB-type the data of a message is a block of fixed size, zero-padded. */
static uint8_t data_block(enum rdma_cm_event_type event)
{
    switch (event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        return 56;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return 196;
    case RDMA_CM_EVENT_REJECTED:
        return 148;
    default:
        return 0;
    }
}

static void keep_remote(struct fake_id *id, const struct rdma_conn_param *param)
{
    id->remote = *param;
    id->remote.private_data = NULL;
    id->responder_resources = param->responder_resources;
    id->initiator_depth = param->initiator_depth;
}

/* The state of the kernel's id once it has raised the event. */
static void follow_state(struct fake_id *id, const struct rdma_cm_event *event)
{
    struct fake_qp *qp = id->iwarp ? fake_id_qp(id) : NULL;

    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        id->state = FAKE_CM_ADDR_RESOLVED;
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
        id->state = FAKE_CM_BOUND;
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        id->state = FAKE_CM_ROUTE_RESOLVED;
        break;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        id->state = FAKE_CM_ADDR_RESOLVED;
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        id->state = FAKE_CM_REP_RECEIVED;
        keep_remote(id, &event->param.conn);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        id->state = FAKE_CM_ESTABLISHED;
        if (qp && qp->state != IBV_QPS_RTS)
            fake_qp_connected(qp, event->param.conn.qp_num);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
        /* Spurious on an established id and after the reply. */
        if (id->state == FAKE_CM_ESTABLISHED || id->state == FAKE_CM_REP_RECEIVED)
            return;
        /* fall through */
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
        id->state = FAKE_CM_CLOSED;
        if (qp)
            fake_qp_to_error(qp);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        id->disconnect_told = true;
        id->state = id->iwarp || id->state == FAKE_CM_DREQ_SENT ? FAKE_CM_CLOSED : FAKE_CM_DREQ_RECEIVED;
        if (qp)
            fake_qp_to_error(qp);
        break;
    default:
        break;
    }
}

void fake_event_queue(struct fake_id *id, struct fake_id *listener, const struct fake_cm *from)
{
    struct fake_id *owner = listener ? listener : id;
    struct fake_event_channel *channel = (struct fake_event_channel *)fake_head(owner->id.channel);
    struct fake_event *event =
        (struct fake_event *)fake_object_new(sizeof(*event), sizeof(event->event), FAKE_OBJ_CM_EVENT);
    struct rdma_conn_param *param = &event->event.param.conn;
    uint8_t block = id->iwarp ? 0 : data_block(from->event);

    event->object.hidden = true;
    event->owner = owner;
    event->event.id = &id->id;
    event->event.listen_id = listener ? &listener->id : NULL;
    event->event.event = from->event;
    event->event.status = from->status;
    if (from->private_data_len)
        memcpy(event->data, from->private_data, from->private_data_len);
    param->private_data_len = from->private_data_len > block ? from->private_data_len : block;
    param->private_data = param->private_data_len ? event->data : NULL;
    if (id->id.ps == RDMA_PS_UDP) {
        struct rdma_ud_param *ud = &event->event.param.ud;

        ud->private_data = from->event == RDMA_CM_EVENT_MULTICAST_JOIN || from->event == RDMA_CM_EVENT_MULTICAST_ERROR
                               ? from->group
                               : event->data;
        ud->private_data_len = from->private_data_len;
        ud->ah_attr = from->ah_attr;
        ud->qp_num = from->qp_num;
        ud->qkey = from->qkey;
        goto queue;
    }
    param->responder_resources = from->responder_resources;
    param->initiator_depth = from->initiator_depth;
    param->retry_count = from->retry_count;
    param->rnr_retry_count = from->rnr_retry_count;
    param->srq = from->srq;
    param->qp_num = from->qp_num;
    if (from->event == RDMA_CM_EVENT_CONNECT_REQUEST)
        keep_remote(id, param);
queue:
    list_add_tail(&channel->events, &event->link);
    fake_signal_raise(&channel->signal);
    follow_state(id, &event->event);
}

static void event_simple(struct fake_id *id, enum rdma_cm_event_type type, int status)
{
    struct fake_cm event = { .event = type, .status = status };

    fake_event_queue(id, NULL, &event);
}

void fake_cm_event(struct rdma_cm_id *id, const struct fake_cm *event)
{
    fake_lock();
    fake_event_queue((struct fake_id *)fake_head(id), NULL, event);
    fake_unlock();
}

void fake_cm_simple(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status)
{
    fake_lock();
    event_simple((struct fake_id *)fake_head(id), event, status);
    fake_unlock();
}

struct rdma_cm_id *fake_cm_request(struct rdma_cm_id *public, const struct fake_cm *from, const char *peer)
{
    struct fake_cm event = { .responder_resources = 1, .initiator_depth = 1, .qp_num = 0x1234 };
    struct fake_id *listener = (struct fake_id *)fake_head(public), *child;
    struct sockaddr_storage remote, local = public->route.addr.src_storage;
    bool ip6 = local.ss_family == AF_INET6;

    if (!fake_parse(peer ? peer : ip6 ? "fd00:1:1::200" : "10.1.1.200", &remote))
        return NULL;
    fake_lock();
    fake_set_port((struct sockaddr *)&remote, 50000);
    if (fake_any_ip((struct sockaddr *)&local)) {
        uint16_t port = fake_port_of((struct sockaddr *)&local);

        fake_parse(ip6 ? "fd00:1:1::1" : "10.1.1.1", &local);
        fake_set_port((struct sockaddr *)&local, port);
    }
    if (ip6)
        ((struct sockaddr_in6 *)&local)->sin6_scope_id = 0; /* the request has none */
    child = fake_child_new(listener, (struct sockaddr *)&local, (struct sockaddr *)&remote);
    if (from)
        event = *from;
    event.event = RDMA_CM_EVENT_CONNECT_REQUEST;
    fake_event_queue(child, listener, &event);
    fake_unlock();
    return &child->id;
}

void fake_cm_removed(struct fake_device *device)
{
    list_for_each (node, &fake_objects) {
        struct fake_id *id = (struct fake_id *)list_entry(node, struct fake_object, link);

        if (id->object.kind == FAKE_OBJ_ID && id->device == device && !(id->child && !id->accepted))
            event_simple(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    }
}

/* ---- delivery ---- */

static struct fake_id *find_listener(const struct sockaddr *addr, enum rdma_port_space ps)
{
    struct fake_id *wildcard = NULL;

    list_for_each (node, &fake_objects) {
        struct fake_id *id = (struct fake_id *)list_entry(node, struct fake_object, link);
        struct sockaddr *at = &id->id.route.addr.src_addr;

        if (id->object.kind != FAKE_OBJ_ID || id->state != FAKE_CM_LISTEN || id->id.ps != ps ||
            at->sa_family != addr->sa_family || fake_port_of(at) != fake_port_of(addr))
            continue;
        if (fake_same_ip(at, addr))
            return id;
        if (fake_any_ip(at))
            wildcard = id;
    }
    return wildcard;
}

/* The sender's parameters as the receiver sees them: its resources are the other side's depth. */
static void fill_event(struct fake_cm *event, const struct message *message)
{
    const struct rdma_conn_param *param = &message->param.param;

    event->private_data = message->param.data;
    event->private_data_len = param->private_data_len;
    event->responder_resources = param->initiator_depth;
    event->initiator_depth = param->responder_resources;
    event->retry_count = param->retry_count;
    event->rnr_retry_count = param->rnr_retry_count;
    event->srq = param->srq;
    event->qp_num = param->qp_num;
}

static void post(enum fake_msg kind, struct fake_id *from, struct fake_id *to, const void *data, uint8_t length,
                 int status);

/* False: the backlog is full; the message stays for the resend. */
static bool deliver_req(const struct message *message)
{
    struct fake_id *from = message->from, *listener, *child;
    struct fake_cm event = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
    struct sockaddr *destination = &from->id.route.addr.dst_addr;

    if (!from->object.live || from->state != FAKE_CM_REQ_SENT || !fake_address_find(destination))
        return true;
    listener = find_listener(destination, from->id.ps);
    if (!listener) {
        event_simple(from, RDMA_CM_EVENT_REJECTED, from->iwarp ? -ECONNREFUSED : REJECT_NOBODY);
        return true;
    }
    if (listener->pending >= (unsigned)listener->backlog)
        return false;
    child = fake_child_new(listener, destination, &from->id.route.addr.src_addr);
    child->peer = from;
    from->peer = child;
    fill_event(&event, message);
    fake_event_queue(child, listener, &event);
    return true;
}

/* iWARP: the event shows this side's own limits, inbound as initiator depth. */
static void established_iwarp(struct fake_id *id, uint8_t inbound, uint8_t outbound, const struct message *message)
{
    struct fake_cm event = { .event = RDMA_CM_EVENT_ESTABLISHED };

    if (message) {
        event.private_data = message->param.data;
        event.private_data_len = message->param.param.private_data_len;
    }
    event.initiator_depth = inbound;
    event.responder_resources = outbound;
    event.qp_num = id->remote.qp_num;
    fake_event_queue(id, NULL, &event);
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static void deliver_rep(const struct message *message)
{
    struct fake_id *to = message->to;
    struct fake_cm event = { .event = RDMA_CM_EVENT_CONNECT_RESPONSE };

    if (to->state != FAKE_CM_REQ_SENT)
        return;
    fill_event(&event, message);
    if (!to->iwarp) {
        fake_event_queue(to, NULL, &event);
        return;
    }
    to->remote = message->param.param;
    established_iwarp(to, to->conn.param.responder_resources,
                      min_u8(to->conn.param.initiator_depth, message->param.param.responder_resources), message);
}

static void deliver_rej(const struct message *message)
{
    struct fake_id *to = message->to;
    struct fake_cm event = { .event = RDMA_CM_EVENT_REJECTED, .status = message->status };

    if (to->state == FAKE_CM_REQ_RECEIVED) {
        to->state = FAKE_CM_CLOSED; /* hidden: the child has not been accepted */
        return;
    }
    if (to->state < FAKE_CM_REQ_SENT || to->state == FAKE_CM_CLOSED)
        return;
    event.private_data = message->param.data;
    event.private_data_len = message->param.param.private_data_len;
    fake_event_queue(to, NULL, &event);
}

static void deliver_dreq(const struct message *message)
{
    struct fake_id *to = message->to;
    bool crossing = to->state == FAKE_CM_DREQ_SENT;

    if (to->state != FAKE_CM_ESTABLISHED && to->state != FAKE_CM_REP_SENT && !crossing)
        return;
    if (!to->disconnect_told)
        event_simple(to, RDMA_CM_EVENT_DISCONNECTED, 0);
    if (to->iwarp)
        post(FAKE_MSG_DREP, to, message->from, NULL, 0, 0);
    else
        to->state = FAKE_CM_DREQ_RECEIVED;
}

static bool deliver(const struct message *message)
{
    if (message->kind == FAKE_MSG_REQ)
        return deliver_req(message);
    if (!message->to || !message->to->object.live)
        return true;
    switch (message->kind) {
    case FAKE_MSG_REP:
        deliver_rep(message);
        break;
    case FAKE_MSG_RTU:
        if (message->to->state == FAKE_CM_REP_SENT)
            event_simple(message->to, RDMA_CM_EVENT_ESTABLISHED, 0);
        break;
    case FAKE_MSG_REJ:
        deliver_rej(message);
        break;
    case FAKE_MSG_DREQ:
        deliver_dreq(message);
        break;
    default:
        if (message->to->state == FAKE_CM_DREQ_SENT && !message->to->disconnect_told)
            event_simple(message->to, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    return true;
}

static void deliver_or_wait(struct message *message)
{
    if (deliver(message))
        fake_free(message);
    else
        list_add_tail(&backlogged, &message->link);
}

static void post(enum fake_msg kind, struct fake_id *from, struct fake_id *to, const void *data, uint8_t length,
                 int status)
{
    struct message *message;

    if (!fake_wire_on)
        return;
    if (drops[kind]) {
        drops[kind]--;
        return;
    }
    message = (struct message *)fake_malloc(sizeof(*message));
    message->kind = kind;
    message->from = from;
    message->to = to;
    message->status = status;
    if (kind == FAKE_MSG_REQ || kind == FAKE_MSG_REP)
        message->param = from->conn;
    if (length) {
        memcpy(message->param.data, data, length);
        message->param.param.private_data_len = length;
    }
    if (holding)
        list_add_tail(&held, &message->link);
    else
        deliver_or_wait(message);
}

/* ---- what the calls send ---- */

int fake_wire_connect(struct fake_id *id)
{
    struct sockaddr *destination = &id->id.route.addr.dst_addr;

    if (fake_wire_on && id->iwarp && fake_address_find(destination) && !find_listener(destination, id->id.ps))
        return ECONNREFUSED;
    post(FAKE_MSG_REQ, id, NULL, NULL, 0, 0);
    return 0;
}

void fake_wire_accept(struct fake_id *id)
{
    struct fake_qp *qp = id->iwarp ? fake_id_qp(id) : NULL;

    if (!fake_wire_on || !id->peer) {
        post(FAKE_MSG_REP, id, id->peer, NULL, 0, 0);
        return;
    }
    if (qp) {
        const struct rdma_conn_param *own = &id->conn.param, *remote = &id->remote;
        uint8_t inbound = own->responder_resources;

        /* The acceptor's inbound limit is raised to what the peer may have outstanding. */
        if (inbound < remote->responder_resources)
            inbound = remote->responder_resources;
        fake_qp_connected(qp, remote->qp_num);
        id->conn.param.responder_resources = inbound;
        post(FAKE_MSG_REP, id, id->peer, NULL, 0, 0);
        established_iwarp(id, inbound, min_u8(own->initiator_depth, remote->initiator_depth), NULL);
        return;
    }
    post(FAKE_MSG_REP, id, id->peer, NULL, 0, 0);
}

void fake_wire_establish(struct fake_id *id)
{
    post(FAKE_MSG_RTU, id, id->peer, NULL, 0, 0);
}

void fake_wire_reject(struct fake_id *id, const void *data, uint8_t length)
{
    post(FAKE_MSG_REJ, id, id->peer, data, length, id->iwarp ? -ECONNRESET : REJECT_CONSUMER);
}

void fake_wire_disconnect(struct fake_id *id)
{
    if (id->state == FAKE_CM_DREQ_RECEIVED) {
        post(FAKE_MSG_DREP, id, id->peer, NULL, 0, 0);
    } else {
        id->state = FAKE_CM_DREQ_SENT;
        post(FAKE_MSG_DREQ, id, id->peer, NULL, 0, 0);
    }
}

void fake_wire_destroy(struct fake_id *id)
{
    switch (id->state) {
    case FAKE_CM_REQ_SENT:
        post(FAKE_MSG_REJ, id, id->peer, NULL, 0, id->iwarp ? -ECONNRESET : REJECT_TIMEOUT);
        break;
    case FAKE_CM_REP_RECEIVED:
    case FAKE_CM_REQ_RECEIVED:
    case FAKE_CM_REP_SENT:
        post(FAKE_MSG_REJ, id, id->peer, NULL, 0, id->iwarp ? -ECONNRESET : REJECT_CONSUMER);
        break;
    case FAKE_CM_ESTABLISHED:
        if (id->iwarp && fake_id_qp(id))
            fake_qp_to_error(fake_id_qp(id));
        post(FAKE_MSG_DREQ, id, id->peer, NULL, 0, 0);
        break;
    case FAKE_CM_DREQ_RECEIVED:
        post(FAKE_MSG_DREP, id, id->peer, NULL, 0, 0);
        break;
    default:
        break;
    }
}

/* There is room again: as if the peer had sent its request once more. */
void fake_wire_backlog(struct fake_id *listener)
{
    struct list *node;

    (void)listener;
    if ((node = list_pop(&backlogged)) != NULL)
        deliver_or_wait(list_entry(node, struct message, link));
}

/* ---- the test's side ---- */

unsigned fake_wire_deliver(unsigned n)
{
    struct list *node;
    unsigned done = 0;

    fake_lock();
    while (done < n && (node = list_pop(&held)) != NULL) {
        deliver_or_wait(list_entry(node, struct message, link));
        done++;
    }
    fake_unlock();
    return done;
}

void fake_wire_hold(bool on)
{
    fake_lock();
    holding = on;
    if (!on)
        fake_wire_deliver(UINT32_MAX);
    fake_unlock();
}

unsigned fake_wire_held(void)
{
    unsigned count = 0;

    fake_lock();
    list_for_each (node, &held)
        count++;
    fake_unlock();
    return count;
}

bool fake_wire_next(enum fake_msg *msg)
{
    bool any;

    fake_lock();
    any = !list_empty(&held);
    if (any)
        *msg = list_entry(held.next, struct message, link)->kind;
    fake_unlock();
    return any;
}

void fake_wire_drop(enum fake_msg msg)
{
    fake_lock();
    drops[msg]++;
    fake_unlock();
}

void fake_cm_wire_reset(void)
{
    list_splice_tail(&held, &backlogged);
    list_for_each_safe (node, &held) {
        list_del(node);
        fake_free(list_entry(node, struct message, link));
    }
    holding = false;
    memset(drops, 0, sizeof(drops));
}
