/* SPDX-License-Identifier: MIT */
#include "cmid.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "log.h"
#include "object.h"
#include "sleep.h"
#include "status.h"

/* How often somebody who waits for destructions looks by himself. */
#define SETTLE_MS 20

/* The channel and its watcher live as long as the process, like the engine. */
static pthread_mutex_t channel_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdma_event_channel *channel; /* set once, under channel_lock, read atomically */
static struct engine_io channel_io;

/* Ids without a cmid that wait for the destroy lane, linked through rdma_cm_id.context: no memory is needed. */
static pthread_mutex_t raw_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdma_cm_id *raw_ids;
static bool raw_queued;
static struct engine_work raw_work;

static void cmid_unref(struct cmid *cmid)
{
    if (__atomic_sub_fetch(&cmid->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (cmid->gone)
        cmid->gone(cmid);
    free(cmid);
}

static void event_copy_udp(struct cm_event *to, const struct rdma_cm_event *from)
{
    const struct rdma_ud_param *param = &from->param.ud;

    switch (from->event) {
    case RDMA_CM_EVENT_MULTICAST_JOIN:
    case RDMA_CM_EVENT_MULTICAST_ERROR:
        to->group = (void *)(uintptr_t)param->private_data;
        break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        to->new_id = from->id;
        /* fall through */
    case RDMA_CM_EVENT_ESTABLISHED:
        if (param->private_data && param->private_data_len) {
            to->data_length = param->private_data_len;
            memcpy(to->data, param->private_data, param->private_data_len);
        }
        break;
    default:
        return;
    }
    to->qp_num = param->qp_num;
    to->qkey = param->qkey;
    to->ah_attr = param->ah_attr;
}

static void event_copy(struct cm_event *to, const struct rdma_cm_event *from)
{
    const struct rdma_conn_param *param = &from->param.conn;

    memset(to, 0, sizeof(*to));
    to->type = from->event;
    to->status = from->status;
    if (from->id->ps == RDMA_PS_UDP) {
        event_copy_udp(to, from);
        return;
    }
    switch (from->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        to->new_id = from->id;
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_DISCONNECTED:
        break;
    default:
        return; /* the parameter part means something else, or nothing */
    }
    to->qp_num = param->qp_num;
    to->responder_resources = param->responder_resources;
    to->initiator_depth = param->initiator_depth;
    to->retry_count = param->retry_count;
    to->rnr_retry_count = param->rnr_retry_count;
    to->flow_control = param->flow_control;
    to->srq = param->srq;
    if (param->private_data && param->private_data_len) {
        to->data_length = param->private_data_len;
        memcpy(to->data, param->private_data, param->private_data_len);
    }
}

/* One event per readiness. Acknowledged before it is dispatched, so that rdma_destroy_id on a worker never waits for a
 * callback; until then the unacknowledged event keeps the id, and with it the cmid, in memory. */
static void channel_ready(struct engine_io *io)
{
    struct rdma_cm_event *raw;
    struct cm_event event;
    struct cmid *cmid;

    (void)io;
    if (rdma_get_cm_event(channel, &raw) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            log_warn("rdma_get_cm_event: %s", strerror(errno));
        return;
    }
    event_copy(&event, raw);
    cmid = event.new_id ? raw->listen_id->context : raw->id->context;
    (void)__atomic_load_n(&cmid->published, __ATOMIC_ACQUIRE);
    __atomic_add_fetch(&cmid->refs, 1, __ATOMIC_RELAXED);
    rdma_ack_cm_event(raw);
    log_debug("%s %d on id %p", rdma_event_str(event.type), event.status, (void *)cmid);
    if (!__atomic_load_n(&cmid->dead, __ATOMIC_ACQUIRE))
        cmid->event(cmid, &event);
    else if (event.new_id)
        cmid_destroy_raw(event.new_id);
    cmid_unref(cmid);
}

NTSTATUS cmid_channel_create(struct rdma_event_channel **out)
{
    struct rdma_event_channel *made = rdma_create_event_channel();
    NTSTATUS status;
    int error;

    if (!made) {
        error = errno;
        status = error == ENOENT || error == ENODEV || error == ENXIO || error == EACCES || error == EPERM
                     ? ND_DEVICE_NOT_READY
                     : status_from_create_errno(error);
        return status_warn(error, status, "rdma_create_event_channel");
    }
    if (fcntl(made->fd, F_SETFL, fcntl(made->fd, F_GETFL) | O_NONBLOCK) != 0) {
        status = status_warn(errno, ND_INSUFFICIENT_RESOURCES, "fcntl");
        rdma_destroy_event_channel(made);
        return status;
    }
    *out = made;
    return ND_SUCCESS;
}

static NTSTATUS channel_start(void)
{
    struct rdma_event_channel *made;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (__atomic_load_n(&channel, __ATOMIC_ACQUIRE))
        return ND_SUCCESS;
    status = engine_start();
    if (status != ND_SUCCESS)
        return status;
    pthread_mutex_lock(&channel_lock);
    if (!channel && (status = cmid_channel_create(&made)) == ND_SUCCESS) {
        __atomic_store_n(&channel, made, __ATOMIC_RELEASE);
        engine_io_add(&channel_io, made->fd, channel_ready);
    }
    pthread_mutex_unlock(&channel_lock);
    return status;
}

static struct cmid *cmid_alloc(void *owner, void (*event)(struct cmid *, const struct cm_event *),
                               void (*gone)(struct cmid *))
{
    struct cmid *cmid = calloc(1, sizeof(*cmid));

    if (!cmid)
        return NULL;
    cmid->pins = 1;
    cmid->refs = 1;
    cmid_give(cmid, owner, event, gone);
    return cmid;
}

static NTSTATUS create(void *owner, void (*event)(struct cmid *, const struct cm_event *), void (*gone)(struct cmid *),
                       enum rdma_port_space space, struct cmid **out)
{
    NTSTATUS status = channel_start();
    struct cmid *cmid;

    if (status != ND_SUCCESS)
        return status;
    cmid = cmid_alloc(owner, event, gone);
    if (!cmid)
        return ND_NO_MEMORY;
    if (rdma_create_id(channel, &cmid->id, cmid, space) != 0) {
        status = status_warn(errno, status_from_create_errno(errno), "rdma_create_id");
        free(cmid);
        return status;
    }
    *out = cmid;
    return ND_SUCCESS;
}

NTSTATUS cmid_create(void *owner, void (*event)(struct cmid *, const struct cm_event *), void (*gone)(struct cmid *),
                     struct cmid **out)
{
    return create(owner, event, gone, RDMA_PS_TCP, out);
}

NTSTATUS cmid_create_udp(void *owner, void (*event)(struct cmid *, const struct cm_event *),
                         void (*gone)(struct cmid *), struct cmid **out)
{
    return create(owner, event, gone, RDMA_PS_UDP, out);
}

struct cmid *cmid_adopt(struct rdma_cm_id *id, void *owner, void (*event)(struct cmid *, const struct cm_event *),
                        void (*gone)(struct cmid *))
{
    struct cmid *cmid = cmid_alloc(owner, event, gone);

    if (!cmid)
        return NULL;
    cmid->id = id;
    id->context = cmid; /* the kernel holds back every event of a child until it is accepted */
    return cmid;
}

/* Ids on the destroy lane, in the order in which they came there. */
static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list leaving = { &leaving, &leaving };
static uint64_t leaving_sequence = 1;
static struct object *left; /* set when one is through; made by the first who waits */
static struct engine_work hurry_work;
static bool hurrying; /* it is on the lane */

static void cmid_destroy_run(struct engine_work *work)
{
    struct cmid *cmid = (struct cmid *)((char *)work - offsetof(struct cmid, work));

    if (rdma_destroy_id(cmid->id) != 0)
        log_warn("rdma_destroy_id: %s", strerror(errno));
    pthread_mutex_lock(&leaving_lock);
    list_del(&cmid->link);
    if (left)
        signal_set(left);
    pthread_mutex_unlock(&leaving_lock);
    cmid_unref(cmid);
}

uint64_t cmid_mark(void)
{
    uint64_t mark;

    if (engine_dead())
        return 0;
    pthread_mutex_lock(&leaving_lock);
    mark = list_empty(&leaving) ? 0 : leaving_sequence;
    pthread_mutex_unlock(&leaving_lock);
    return mark;
}

static void hurried(struct engine_work *work)
{
    (void)work;
    pthread_mutex_lock(&leaving_lock);
    hurrying = false;
    pthread_mutex_unlock(&leaving_lock);
}

bool cmid_settle(uint64_t mark)
{
    bool done, hurry;

    if (!mark)
        return false;
    pthread_mutex_lock(&leaving_lock);
    if (!left)
        left = event_create(true, false);
    for (;;) {
        done = !left || list_empty(&leaving) || list_entry(leaving.next, struct cmid, link)->sequence >= mark;
        hurry = !done && !hurrying;
        hurrying |= hurry;
        if (!done)
            signal_reset(left);
        pthread_mutex_unlock(&leaving_lock);
        if (done)
            return true;
        /* What could come later comes now. */
        if (hurry)
            engine_work(ENGINE_LANE_DESTROY, &hurry_work, hurried);
        /* Others reset the event as well: look again by oneself now and then. */
        signal_wait(left, sleep_deadline(SETTLE_MS));
        pthread_mutex_lock(&leaving_lock);
    }
}

void cmid_pin(struct cmid *cmid)
{
    __atomic_add_fetch(&cmid->pins, 1, __ATOMIC_RELAXED);
}

void cmid_unpin(struct cmid *cmid)
{
    if (__atomic_sub_fetch(&cmid->pins, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    pthread_mutex_lock(&leaving_lock);
    cmid->sequence = leaving_sequence++;
    list_add_tail(&leaving, &cmid->link);
    pthread_mutex_unlock(&leaving_lock);
    engine_work(cmid->later ? ENGINE_LANE_LATER : ENGINE_LANE_DESTROY, &cmid->work, cmid_destroy_run);
}

bool cmid_is_on(const struct cmid *cmid, const struct device *device)
{
    const struct ibv_context *verbs = cmid->id->verbs;

    return verbs && strcmp(ibv_get_device_name(verbs->device), device->name) == 0;
}

void cmid_destroy(struct cmid *cmid)
{
    if (engine_dead())
        return; /* the parent's id */
    __atomic_store_n(&cmid->dead, 1, __ATOMIC_RELEASE);
    cmid_unpin(cmid);
}

void cmid_destroy_later(struct cmid *cmid)
{
    cmid->later = true;
    cmid_destroy(cmid);
}

static void raw_destroy_run(struct engine_work *work)
{
    struct rdma_cm_id *id;

    (void)work;
    for (;;) {
        pthread_mutex_lock(&raw_lock);
        id = raw_ids;
        if (id)
            raw_ids = id->context;
        else
            raw_queued = false;
        pthread_mutex_unlock(&raw_lock);
        if (!id)
            return;
        if (rdma_destroy_id(id) != 0)
            log_warn("rdma_destroy_id: %s", strerror(errno));
    }
}

void cmid_destroy_raw(struct rdma_cm_id *id)
{
    bool queue;

    if (engine_dead())
        return;
    pthread_mutex_lock(&raw_lock);
    id->context = raw_ids;
    raw_ids = id;
    queue = !raw_queued;
    raw_queued = true;
    pthread_mutex_unlock(&raw_lock);
    if (queue)
        engine_work(ENGINE_LANE_DESTROY, &raw_work, raw_destroy_run);
}
