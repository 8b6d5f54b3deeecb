/* SPDX-License-Identifier: MIT */

/* Completion channels and queues. */

#include "fake_internal.h"

struct comp_event {
    struct list link;
    struct fake_cq *cq;
};

/* ---- channels ---- */

static void channel_release(struct fake_object *object)
{
    struct fake_channel *channel = (struct fake_channel *)object;

    fake_signal_close(&channel->signal);
    list_for_each_safe (node, &channel->events) {
        list_del(node);
        fake_free(list_entry(node, struct comp_event, link));
    }
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct fake_call call = { .fn = FAKE_ibv_create_comp_channel, .object = context };
    int err = fake_enter(&call);
    struct fake_channel *channel = NULL;

    if (!fake_context_check(context, call.fn))
        err = EINVAL;
    if (!err) {
        channel =
            (struct fake_channel *)fake_object_new(sizeof(*channel), sizeof(channel->channel), FAKE_OBJ_COMP_CHANNEL);
        channel->object.release = channel_release;
        list_init(&channel->events);
        fake_signal_open(&channel->signal);
        channel->channel.context = context;
        channel->channel.fd = channel->signal.fd;
        fake_context_of(context)->children++;
        call.created = &channel->channel;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *public)
{
    struct fake_call call = { .fn = FAKE_ibv_destroy_comp_channel, .object = public };
    int err = fake_enter(&call);
    struct fake_channel *channel = (struct fake_channel *)fake_object_check(public, FAKE_OBJ_COMP_CHANNEL, call.fn);

    if (!err && !channel)
        err = EINVAL;
    if (!err && channel->channel.refcnt) {
        fake_violation("ibv_destroy_comp_channel: %d completion queues still use it", channel->channel.refcnt);
        err = EBUSY;
    }
    if (!err) {
        fake_context_of(channel->channel.context)->children--;
        fake_signal_close(&channel->signal);
        fake_object_destroy(&channel->object);
    }
    return fake_leave(&call, err);
}

static void queue_event(struct fake_cq *cq)
{
    struct fake_channel *channel;
    struct comp_event *event;

    cq->arm = FAKE_ARM_NONE;
    if (!cq->cq.channel)
        return;
    channel = (struct fake_channel *)fake_head(cq->cq.channel);
    event = (struct comp_event *)fake_malloc(sizeof(*event));
    event->cq = cq;
    list_add_tail(&channel->events, &event->link);
    cq->events_queued++;
    fake_signal_raise(&channel->signal);
}

int ibv_get_cq_event(struct ibv_comp_channel *public, struct ibv_cq **cq, void **context)
{
    struct fake_call call = { .fn = FAKE_ibv_get_cq_event, .object = public };
    int err = fake_enter(&call);
    struct fake_channel *channel = (struct fake_channel *)fake_object_check(public, FAKE_OBJ_COMP_CHANNEL, call.fn);
    struct list *node;
    struct comp_event *event;

    if (!err && !channel)
        err = EINVAL;
    if (!err && (node = list_pop(&channel->events)) == NULL)
        return fake_return(fake_leave_quiet(&call, fake_signal_empty(&channel->signal, call.fn)));
    if (!err) {
        event = list_entry(node, struct comp_event, link);
        *cq = &event->cq->cq;
        *context = event->cq->cq.cq_context;
        event->cq->events_queued--;
        event->cq->events_unacked++;
        fake_fetched(&event->cq->object);
        fake_free(event);
        fake_signal_lower(&channel->signal);
    }
    return fake_return(fake_leave(&call, err));
}

void ibv_ack_cq_events(struct ibv_cq *public, unsigned int n)
{
    struct fake_call call = { .fn = FAKE_ibv_ack_cq_events, .object = public };
    struct fake_cq *cq;

    fake_enter(&call);
    cq = (struct fake_cq *)fake_object_check(public, FAKE_OBJ_CQ, call.fn);
    if (cq && n > cq->events_unacked) {
        fake_violation("ibv_ack_cq_events: %u events acknowledged, %u fetched", n, cq->events_unacked);
        n = cq->events_unacked;
    }
    if (cq) {
        cq->events_unacked -= n;
        fake_acked(&cq->object, n, call.fn);
    }
    fake_leave(&call, 0);
}

/* ---- queues ---- */

static void cq_release(struct fake_object *object)
{
    fake_free(((struct fake_cq *)object)->ring);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int comp_vector)
{
    struct fake_call call = { .fn = FAKE_ibv_create_cq,
                              .object = context,
                              .arg.create_cq = {
                                  .cqe = cqe, .context = cq_context, .channel = channel, .vector = comp_vector } };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);
    struct fake_device *device = ctx ? ctx->device : NULL;
    struct fake_cq *cq = NULL;

    if (!err &&
        (!ctx || cqe < 1 || cqe > device->attr.max_cqe || comp_vector < 0 || comp_vector >= context->num_comp_vectors))
        err = EINVAL;
    if (!err && channel && channel->context != context) {
        fake_violation("ibv_create_cq: the channel belongs to another context");
        err = EINVAL;
    }
    if (!err) {
        cq = (struct fake_cq *)fake_object_new(sizeof(*cq), sizeof(cq->cq), FAKE_OBJ_CQ);
        cq->object.release = cq_release;
        cq->capacity = fake_number((uint32_t)cqe, device);
        cq->ring = (struct ibv_wc *)fake_malloc(cq->capacity * sizeof(*cq->ring));
        cq->cq.context = context;
        cq->cq.channel = channel;
        cq->cq.cq_context = cq_context;
        cq->cq.cqe = (int)cq->capacity;
        if (channel)
            channel->refcnt++;
        fake_context_of(context)->children++;
        call.created = &cq->cq;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &cq->cq;
}

int ibv_resize_cq(struct ibv_cq *public, int cqe)
{
    struct fake_call call = { .fn = FAKE_ibv_resize_cq, .object = public, .arg.create_cq = { .cqe = cqe } };
    int err = fake_enter(&call);
    struct fake_cq *cq = (struct fake_cq *)fake_object_check(public, FAKE_OBJ_CQ, call.fn);
    struct fake_device *device = cq ? fake_context_of(cq->cq.context)->device : NULL;
    struct ibv_wc *ring;

    if (!err && cq && fake_device_is_iwarp(device))
        err = EOPNOTSUPP;
    if (!err && (!cq || cqe < 1 || cqe > device->attr.max_cqe || (unsigned)cqe < cq->count))
        err = EINVAL;
    if (!err) {
        unsigned capacity = fake_number((uint32_t)cqe, device);

        ring = (struct ibv_wc *)fake_malloc(capacity * sizeof(*ring));
        for (unsigned i = 0; i < cq->count; i++)
            ring[i] = cq->ring[(cq->head + i) % cq->capacity];
        fake_free(cq->ring);
        cq->ring = ring;
        cq->head = 0;
        cq->capacity = capacity;
        cq->cq.cqe = (int)capacity;
    }
    return fake_leave(&call, err);
}

int ibv_destroy_cq(struct ibv_cq *public)
{
    struct fake_call call = { .fn = FAKE_ibv_destroy_cq, .object = public };
    int err = fake_enter(&call);
    struct fake_cq *cq = (struct fake_cq *)fake_object_check(public, FAKE_OBJ_CQ, call.fn);

    if (!err && !cq)
        err = EINVAL;
    if (!err && cq->users) {
        fake_violation("ibv_destroy_cq: %u queue pairs still use it", cq->users);
        err = EBUSY;
    }
    if (!err) {
        fake_async_purge(fake_context_of(cq->cq.context), &cq->cq);
        if (cq->cq.channel) {
            struct fake_channel *channel = (struct fake_channel *)fake_head(cq->cq.channel);

            list_for_each_safe (node, &channel->events) {
                struct comp_event *event = list_entry(node, struct comp_event, link);

                if (event->cq == cq) {
                    list_del(node);
                    fake_free(event);
                    fake_signal_lower(&channel->signal);
                }
            }
        }
        cq->events_queued = 0;
        fake_wait_acked(&cq->object, call.fn);
        if (cq->cq.channel)
            cq->cq.channel->refcnt--;
        fake_context_of(cq->cq.context)->children--;
        fake_object_destroy(&cq->object);
        /* The object stays, for what uses it once more to be found out; the trials of a device's limits make large ones. */
        fake_free(cq->ring);
        cq->ring = NULL;
    }
    return fake_leave(&call, err);
}

int fake_poll_cq(struct ibv_cq *public, int count, struct ibv_wc *wc)
{
    struct fake_call call = { .fn = FAKE_ibv_poll_cq, .object = public };
    int err = fake_enter(&call), n = 0;
    struct fake_cq *cq = (struct fake_cq *)fake_object_check(public, FAKE_OBJ_CQ, call.fn);

    if (!err && !cq)
        err = EINVAL;
    while (!err && n < count && cq->count) {
        wc[n++] = cq->ring[cq->head];
        cq->head = (cq->head + 1) % cq->capacity;
        cq->count--;
    }
    fake_leave_quiet(&call, err);
    return err ? -err : n;
}

int fake_req_notify_cq(struct ibv_cq *public, int solicited_only)
{
    struct fake_call call = {
        .fn = FAKE_ibv_req_notify_cq,
        .object = public,
        .arg.notify_cq = { .solicited_only = solicited_only },
    };
    int err = fake_enter(&call);
    struct fake_cq *cq = (struct fake_cq *)fake_object_check(public, FAKE_OBJ_CQ, call.fn);

    if (!err && !cq)
        err = EINVAL;
    /* Arming for any completion is not taken back by a later solicited-only arm. */
    if (!err && !solicited_only)
        cq->arm = FAKE_ARM_ANY;
    else if (!err && cq->arm == FAKE_ARM_NONE)
        cq->arm = FAKE_ARM_SOLICITED;
    return fake_leave(&call, err);
}

bool fake_cq_add(struct fake_cq *cq, const struct ibv_wc *wc, bool solicited)
{
    if (cq->count == cq->capacity) {
        fake_async_raise(fake_context_of(cq->cq.context), IBV_EVENT_CQ_ERR, &cq->cq, 0);
        return false;
    }
    cq->ring[(cq->head + cq->count++) % cq->capacity] = *wc;
    if (cq->arm == FAKE_ARM_ANY || (cq->arm == FAKE_ARM_SOLICITED && solicited))
        queue_event(cq);
    return true;
}

void fake_cq_clean(struct fake_cq *cq, uint32_t qp_num)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < cq->count; i++) {
        const struct ibv_wc *wc = &cq->ring[(cq->head + i) % cq->capacity];

        if (wc->qp_num != qp_num)
            cq->ring[(cq->head + kept++) % cq->capacity] = *wc;
    }
    cq->count = kept;
}

/* ---- the test's side ---- */

bool fake_cq_push(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited)
{
    bool stored;

    fake_lock();
    stored = fake_cq_add((struct fake_cq *)fake_head(cq), wc, solicited);
    fake_unlock();
    return stored;
}

unsigned fake_cq_entries(struct ibv_cq *cq)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_cq *)fake_head(cq))->count;
    fake_unlock();
    return count;
}

enum fake_arm fake_cq_armed(struct ibv_cq *cq)
{
    enum fake_arm arm;

    fake_lock();
    arm = ((struct fake_cq *)fake_head(cq))->arm;
    fake_unlock();
    return arm;
}

void fake_cq_event(struct ibv_cq *cq)
{
    fake_lock();
    queue_event((struct fake_cq *)fake_head(cq));
    fake_unlock();
}

unsigned fake_cq_events_queued(struct ibv_cq *cq)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_cq *)fake_head(cq))->events_queued;
    fake_unlock();
    return count;
}

unsigned fake_cq_events_unacked(struct ibv_cq *cq)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_cq *)fake_head(cq))->events_unacked;
    fake_unlock();
    return count;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const text[] = {
        "success",
        "local length error",
        "local QP operation error",
        "local EE context operation error",
        "local protection error",
        "Work Request Flushed Error",
        "memory management operation error",
        "bad response error",
        "local access error",
        "remote invalid request error",
        "remote access error",
        "remote operation error",
        "transport retry counter exceeded",
        "RNR retry counter exceeded",
        "local RDD violation error",
        "remote invalid RD request",
        "aborted error",
        "invalid EE context number",
        "invalid EE context state",
        "fatal error",
        "response timeout error",
        "general error",
        "TM error",
        "TM software rendezvous",
    };

    return (unsigned)status < sizeof(text) / sizeof(text[0]) ? text[status] : "unknown";
}
