/* SPDX-License-Identifier: MIT */

/* Asynchronous events of contexts, the removal of a device, and the texts and calls that hang on nothing else. */

#include "fake_internal.h"

struct async_entry {
    struct list link;
    struct ibv_async_event event;
};

void fake_async_drop(struct fake_context *ctx)
{
    list_for_each_safe (node, &ctx->async_events) {
        list_del(node);
        fake_free(list_entry(node, struct async_entry, link));
    }
}

void fake_async_raise(struct fake_context *ctx, enum ibv_event_type type, void *element, int port)
{
    struct async_entry *entry = (struct async_entry *)fake_malloc(sizeof(*entry));

    entry->event.event_type = type;
    if (element)
        entry->event.element.qp = (struct ibv_qp *)element;
    else
        entry->event.element.port_num = port;
    list_add_tail(&ctx->async_events, &entry->link);
    fake_signal_raise(&ctx->async);
}

void fake_async_purge(struct fake_context *ctx, const void *element)
{
    list_for_each_safe (node, &ctx->async_events) {
        struct async_entry *entry = list_entry(node, struct async_entry, link);

        if (entry->event.element.qp == element) {
            list_del(node);
            fake_free(entry);
            fake_signal_lower(&ctx->async);
        }
    }
}

/* The element whose destroy waits for the acknowledgement; NULL for port and device events. */
static struct fake_object *async_object(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return fake_head(event->element.qp);
    default:
        return NULL;
    }
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct fake_call call = { .fn = FAKE_ibv_get_async_event, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);
    struct list *node;
    struct async_entry *entry;

    if (!err && !ctx)
        err = EINVAL;
    if (!err && (node = list_pop(&ctx->async_events)) == NULL)
        return fake_return(fake_leave_quiet(&call, fake_signal_empty(&ctx->async, call.fn)));
    if (!err) {
        entry = list_entry(node, struct async_entry, link);
        *event = entry->event;
        fake_free(entry);
        fake_signal_lower(&ctx->async);
        if (async_object(event))
            fake_fetched(async_object(event));
    }
    return fake_return(fake_leave(&call, err));
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct fake_object *object = async_object(event);
    struct fake_call call = { .fn = FAKE_ibv_ack_async_event, .object = object ? fake_public(object) : NULL };

    fake_enter(&call);
    if (object)
        fake_acked(object, 1, call.fn);
    fake_leave(&call, 0);
}

void fake_async_cq(struct ibv_cq *cq, enum ibv_event_type type)
{
    fake_lock();
    fake_async_raise(fake_context_of(cq->context), type, cq, 0);
    fake_unlock();
}

void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type)
{
    fake_lock();
    fake_async_raise(fake_context_of(qp->context), type, qp, 0);
    fake_unlock();
}

void fake_async_srq(struct ibv_srq *srq, enum ibv_event_type type)
{
    fake_lock();
    fake_async_raise(fake_context_of(srq->context), type, srq, 0);
    fake_unlock();
}

static void async_all(struct fake_device *device, unsigned port, enum ibv_event_type type)
{
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        if (object->live && object->kind == FAKE_OBJ_CONTEXT && ((struct fake_context *)object)->device == device)
            fake_async_raise((struct fake_context *)object, type, NULL, (int)port);
    }
}

void fake_async_port(const char *name, unsigned port, enum ibv_event_type type)
{
    fake_lock();
    async_all(fake_device_by_name(name), port, type);
    fake_unlock();
}

void fake_device_remove(const char *name)
{
    struct fake_device *device;

    fake_lock();
    device = fake_device_by_name(name);
    device->removed = true;
    async_all(device, 0, IBV_EVENT_DEVICE_FATAL);
    fake_cm_removed(device);
    fake_unlock();
}

/* ---- texts, extended connection establishment ---- */

const char *ibv_node_type_str(enum ibv_node_type type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : type == IBV_NODE_RNIC ? "iWARP NIC" : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const text[] = { "no state change (NOP)", "down", "init", "armed", "active", "active defer" };

    return (unsigned)state < sizeof(text) / sizeof(text[0]) ? text[state] : "invalid state";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    static const char *const text[] = {
        [IBV_EVENT_CQ_ERR] = "CQ error",
        [IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
        [IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
        [IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
        [IBV_EVENT_COMM_EST] = "communication established",
        [IBV_EVENT_SQ_DRAINED] = "send queue drained",
        [IBV_EVENT_PATH_MIG] = "path migrated",
        [IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
        [IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [IBV_EVENT_LID_CHANGE] = "LID change",
        [IBV_EVENT_PKEY_CHANGE] = "P_Key change",
        [IBV_EVENT_SM_CHANGE] = "SM change",
        [IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
        [IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
        [IBV_EVENT_GID_CHANGE] = "GID table change",
        [IBV_EVENT_WQ_FATAL] = "WQ fatal",
    };

    return (unsigned)type < sizeof(text) / sizeof(text[0]) ? text[type] : "unknown";
}

/* Soft devices do not know it. */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    (void)ece;
    return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    return ece->vendor_id ? EOPNOTSUPP : 0;
}
