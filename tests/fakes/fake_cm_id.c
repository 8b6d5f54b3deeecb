/* SPDX-License-Identifier: MIT */

/* Event channels, and the life of ids. */

#include "fake_internal.h"

static uint32_t next_psn = 0x1000;

/* ---- frame of the calls on ids ---- */

/* Also notes that the id is in use: two calls on one id at the same time are not allowed. */
struct fake_id *fake_id_enter(struct fake_call *call, struct rdma_cm_id *public, int *err)
{
    struct fake_id *id;

    fake_lock();
    id = (struct fake_id *)fake_object_check(public, FAKE_OBJ_ID, call->fn);
    if (id) {
        if (id->busy && !pthread_equal(id->busy_thread, pthread_self()))
            fake_violation("%s while another thread is in a call on the same id", fake_name(call->fn));
        id->busy++;
        id->busy_thread = pthread_self();
    }
    fake_unlock();
    call->object = public;
    *err = fake_enter(call);
    /* A hook may have destroyed it meanwhile. */
    if (!id || !id->object.live)
        *err = EINVAL;
    return id;
}

int fake_id_leave(struct fake_call *call, struct fake_id *id, int err)
{
    fake_leave(call, err);
    if (id) {
        fake_lock();
        id->busy--;
        fake_unlock();
    }
    return fake_return(err);
}

struct fake_qp *fake_id_qp(struct fake_id *id)
{
    return id->has_conn ? fake_qp_by_num(id->conn.param.qp_num) : NULL;
}

static struct fake_event_channel *channel_of(struct fake_id *id)
{
    return (struct fake_event_channel *)fake_head(id->id.channel);
}

/* ---- channels ---- */

static void channel_release(struct fake_object *object)
{
    fake_signal_close(&((struct fake_event_channel *)object)->signal);
}

static struct fake_event_channel *channel_new(void)
{
    struct fake_event_channel *channel = (struct fake_event_channel *)fake_object_new(
        sizeof(*channel), sizeof(channel->channel), FAKE_OBJ_EVENT_CHANNEL);

    channel->object.release = channel_release;
    list_init(&channel->events);
    fake_signal_open(&channel->signal);
    channel->channel.fd = channel->signal.fd;
    return channel;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct fake_call call = { .fn = FAKE_rdma_create_event_channel };
    int err = fake_enter(&call);
    struct fake_event_channel *channel = NULL;

    if (!err) {
        channel = channel_new();
        call.created = &channel->channel;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
    struct fake_call call = { .fn = FAKE_rdma_destroy_event_channel, .object = public };
    struct fake_event_channel *channel;

    fake_enter(&call);
    channel = (struct fake_event_channel *)fake_object_check(public, FAKE_OBJ_EVENT_CHANNEL, call.fn);
    if (channel) {
        if (channel->ids)
            fake_violation("rdma_destroy_event_channel: %u ids still use it", channel->ids);
        fake_signal_close(&channel->signal);
        fake_object_destroy(&channel->object);
    }
    fake_leave(&call, 0);
}

int rdma_get_cm_event(struct rdma_event_channel *public, struct rdma_cm_event **out)
{
    struct fake_call call = { .fn = FAKE_rdma_get_cm_event, .object = public };
    int err = fake_enter(&call);
    struct fake_event_channel *channel =
        (struct fake_event_channel *)fake_object_check(public, FAKE_OBJ_EVENT_CHANNEL, call.fn);
    struct fake_event *event;
    struct list *node;

    if (!err && !channel)
        err = EINVAL;
    if (!err && (node = list_pop(&channel->events)) == NULL)
        return fake_return(fake_leave_quiet(&call, fake_signal_empty(&channel->signal, call.fn)));
    if (!err) {
        event = list_entry(node, struct fake_event, link);
        event->object.hidden = false;
        fake_fetched(&event->owner->object);
        fake_signal_lower(&channel->signal);
        *out = &event->event;
        call.created = &event->event;
    }
    return fake_return(fake_leave(&call, err));
}

int rdma_ack_cm_event(struct rdma_cm_event *public)
{
    struct fake_call call = { .fn = FAKE_rdma_ack_cm_event };
    int err = fake_enter(&call);
    struct fake_event *event = (struct fake_event *)fake_object_check(public, FAKE_OBJ_CM_EVENT, call.fn);

    if (!event)
        return fake_return(fake_leave(&call, EINVAL));
    call.object = &event->owner->id;
    fake_acked(&event->owner->object, 1, call.fn);
    fake_object_destroy(&event->object);
    return fake_return(fake_leave(&call, err));
}

/* ---- ids ---- */

static struct fake_id *id_new(struct fake_event_channel *channel, void *context, enum rdma_port_space ps)
{
    struct fake_id *id = (struct fake_id *)fake_object_new(sizeof(*id), sizeof(id->id), FAKE_OBJ_ID);

    id->id.channel = &channel->channel;
    id->id.context = context;
    id->id.ps = ps;
    id->id.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    id->psn = next_psn += 0x1000;
    channel->ids++;
    return id;
}

int rdma_create_id(struct rdma_event_channel *public, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
    struct fake_call call = { .fn = FAKE_rdma_create_id, .object = public };
    int err = fake_enter(&call);
    struct fake_event_channel *channel = NULL;
    struct fake_id *id;

    if (!err && public) {
        channel = (struct fake_event_channel *)fake_object_check(public, FAKE_OBJ_EVENT_CHANNEL, call.fn);
        err = channel ? 0 : EINVAL;
    }
    if (!err) {
        if (!public) {
            channel = channel_new();
            channel->object.hidden = true;
        }
        id = id_new(channel, context, ps);
        if (!public)
            id->own_channel = channel;
        *out = &id->id;
        call.created = &id->id;
    }
    return fake_return(fake_leave(&call, err));
}

void fake_id_bind_device(struct fake_id *id, struct fake_device *device, unsigned port)
{
    id->device = device;
    id->iwarp = fake_device_is_iwarp(device);
    id->id.verbs = fake_cm_context(device);
    id->id.port_num = (uint8_t)port;
}

struct fake_id *fake_child_new(struct fake_id *listener, const struct sockaddr *local, const struct sockaddr *remote)
{
    struct fake_id *id = id_new(channel_of(listener), listener->id.context, listener->id.ps);
    struct fake_address *address = fake_address_find(local);

    id->child = true;
    id->listener = listener;
    listener->pending++;
    id->state = FAKE_CM_REQ_RECEIVED;
    memcpy(&id->id.route.addr.src_storage, local, fake_sockaddr_size(local));
    memcpy(&id->id.route.addr.dst_storage, remote, fake_sockaddr_size(remote));
    fake_id_bind_device(id, address && address->device ? address->device : listener->device,
                        address ? address->port : 1);
    return id;
}

void fake_child_settled(struct fake_id *child)
{
    struct fake_id *listener = child->listener;

    if (!listener)
        return;
    child->listener = NULL;
    listener->pending--;
    if (listener->object.live)
        fake_wire_backlog(listener);
}

/* Takes queued events of the id back; requests nobody has fetched are answered as the kernel does for a closed
 * listener. */
static void purge_events(struct fake_id *id)
{
    struct fake_event_channel *channel = channel_of(id);

    list_for_each_safe (node, &channel->events) {
        struct fake_event *event = list_entry(node, struct fake_event, link);
        struct fake_id *child;

        if (event->owner != id)
            continue;
        list_del(node);
        fake_signal_lower(&channel->signal);
        if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            child = (struct fake_id *)fake_head(event->event.id);
            if (child->object.live) {
                fake_wire_destroy(child);
                fake_child_settled(child);
                channel->ids--;
                fake_object_destroy(&child->object);
            }
        }
        fake_object_destroy(&event->object);
    }
}

int rdma_destroy_id(struct rdma_cm_id *public)
{
    struct fake_call call = { .fn = FAKE_rdma_destroy_id };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);
    struct fake_event_channel *channel;

    if (!err) {
        channel = channel_of(id);
        if (id->groups)
            fake_violation("rdma_destroy_id with groups that have not been left: librdmacm never frees their records");
        fake_wire_destroy(id);
        id->state = FAKE_CM_CLOSED;
        fake_child_settled(id);
        purge_events(id);
        fake_wait_acked(&id->object, call.fn);
        channel->ids--;
        if (id->own_channel) {
            fake_signal_close(&id->own_channel->signal);
            fake_object_destroy(&id->own_channel->object);
        }
        fake_object_destroy(&id->object);
    }
    return fake_id_leave(&call, id, err);
}

int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
    struct fake_call call = { .fn = FAKE_rdma_migrate_id };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);
    struct fake_event_channel *from, *to;

    if (!err) {
        from = channel_of(id);
        to = (struct fake_event_channel *)fake_object_check(channel, FAKE_OBJ_EVENT_CHANNEL, call.fn);
        err = to ? 0 : EINVAL;
    }
    if (!err) {
        fake_wait_acked(&id->object, call.fn);
        list_for_each_safe (node, &from->events) {
            if (list_entry(node, struct fake_event, link)->owner != id)
                continue;
            list_del(node);
            fake_signal_lower(&from->signal);
            list_add_tail(&to->events, node);
            fake_signal_raise(&to->signal);
        }
        from->ids--;
        to->ids++;
        id->id.channel = channel;
    }
    return fake_id_leave(&call, id, err);
}

unsigned fake_cm_queued(struct rdma_event_channel *channel)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_event_channel *)fake_head(channel))->signal.count;
    fake_unlock();
    return count;
}
