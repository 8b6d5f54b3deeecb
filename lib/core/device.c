/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndstatus.h"

#include "address.h"
#include "connector.h"
#include "cq.h"
#include "datagram.h"
#include "log.h"
#include "port_watch.h"
#include "qp.h"
#include "srq.h"
#include "status.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;    /* one opens at a time; held across system calls */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER; /* leaf: the list and references to its members */
static struct list devices = { &devices, &devices };

/* --- events, on loop --- */

/* An event's object stays in memory until the event is acknowledged (its destroy call waits for that); the reference is
 * taken before, so it stays afterwards too. NULL: it is on its way out and needs no event any more. */
static void dispatch_qp(struct device *device, struct ibv_async_event *event)
{
    struct qp *qp = qp_ref_live(event->element.qp->qp_context);
    uint32_t number = event->element.qp->qp_num;
    enum ibv_event_type type = event->event_type;

    ibv_ack_async_event(event);
    log_info("%s: %s on QP %u", device->name, ibv_event_type_str(type), number);
    if (!qp)
        return;
    if (type == IBV_EVENT_COMM_EST) {
        connector_comm_established(qp);
    } else if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
        qp_last_wqe_reached(qp);
    } else {
        qp_async_error(qp);
        connector_qp_failed(qp);
    }
    qp_unref(qp);
}

static void dispatch_cq(struct device *device, struct ibv_async_event *event)
{
    struct cq *cq = cq_ref_live(event->element.cq->cq_context);

    ibv_ack_async_event(event);
    if (cq) {
        log_warn("%s: a completion queue overran", device->name);
        cq_overrun(cq);
        cq_unref(cq);
    }
}

static void dispatch_srq(struct device *device, struct ibv_async_event *event)
{
    struct srq *srq = srq_ref_live(event->element.srq->srq_context);
    enum ibv_event_type type = event->event_type;

    ibv_ack_async_event(event);
    if (!srq)
        return;
    if (type == IBV_EVENT_SRQ_LIMIT_REACHED) {
        srq_limit_event(srq);
    } else {
        log_warn("%s: %s", device->name, ibv_event_type_str(type));
        srq_error_event(srq);
    }
    srq_unref(srq);
}

static void dispatch_port(struct device *device, struct ibv_async_event *event)
{
    unsigned port = (unsigned)event->element.port_num;
    enum ibv_event_type type = event->event_type;
    uint32_t bit = port >= 1 && port <= 32 ? 1u << (port - 1) : 0;

    log_info("%s port %u: %s", device->name, port, ibv_event_type_str(event->event_type));
    if (event->event_type == IBV_EVENT_PORT_ERR)
        __atomic_or_fetch(&device->ports_down, bit, __ATOMIC_RELAXED);
    else if (event->event_type == IBV_EVENT_PORT_ACTIVE)
        __atomic_and_fetch(&device->ports_down, ~bit, __ATOMIC_RELAXED);
    ibv_ack_async_event(event);
    address_list_invalidate();
    port_watch_event(device, port, type);
}

static void stop_watching(struct device *device, bool *watched, struct engine_io *io)
{
    (void)device;
    if (*watched) {
        *watched = false;
        engine_io_remove(io, NULL);
    }
}

/* A descriptor that only gives errors (a device that was torn away) would keep the loop awake for ever. */
static void descriptor_failed(struct device *device, const char *call)
{
    log_warn("%s: %s: %s", device->name, call, strerror(errno));
    stop_watching(device, &device->async_watched, &device->async_io);
    stop_watching(device, &device->channel_watched, &device->channel_io);
    device_set_removed(device);
}

static void async_ready(struct engine_io *io)
{
    struct device *device = (struct device *)((char *)io - offsetof(struct device, async_io));
    struct ibv_async_event event;

    if (ibv_get_async_event(device->verbs, &event) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            descriptor_failed(device, "ibv_get_async_event");
        return;
    }
    switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        dispatch_qp(device, &event);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
        dispatch_srq(device, &event);
        break;
    case IBV_EVENT_CQ_ERR:
        dispatch_cq(device, &event);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        dispatch_port(device, &event);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        ibv_ack_async_event(&event);
        log_warn("%s: %s", device->name, ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
        device_set_removed(device);
        break;
    default: /* SQ_DRAINED, ...: nobody waits for them */
        log_debug("%s: %s", device->name, ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
}

/* One event per readiness (design.md 2 rule 15). It is acknowledged when the CQ goes, by whoever has the last reference
 * (cq.c); if that was given up before, here, so that nobody's ibv_destroy_cq waits for more than this. */
static void channel_ready(struct engine_io *io)
{
    struct device *device = (struct device *)((char *)io - offsetof(struct device, channel_io));
    struct ibv_cq *verbs_cq;
    void *context;
    struct cq *cq;

    if (ibv_get_cq_event(device->channel, &verbs_cq, &context) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            descriptor_failed(device, "ibv_get_cq_event");
        return;
    }
    cq = cq_ref_live(context);
    if (!cq) {
        ibv_ack_cq_events(verbs_cq, 1);
        return;
    }
    cq_event(cq);
    cq_unref(cq);
}

bool device_link_add(struct device *device, struct list *to, struct device_link *link, void *self)
{
    bool present;

    pthread_mutex_lock(&device->lock);
    link->self = self;
    list_add_tail(to, &link->link);
    present = !device->removed;
    pthread_mutex_unlock(&device->lock);
    return present;
}

void device_link_del(struct device *device, struct device_link *link)
{
    pthread_mutex_lock(&device->lock);
    list_del(&link->link);
    pthread_mutex_unlock(&device->lock);
}

enum told_kind {
    TOLD_QP,
    TOLD_CQ,
    TOLD_SRQ,
};

/* True: it was told, and the lock is given up. False: it is on its way out. */
static bool tell(void *self, enum told_kind kind, pthread_mutex_t *lock)
{
    switch (kind) {
    case TOLD_QP:
        if (!qp_ref_live(self))
            return false;
        pthread_mutex_unlock(lock);
        qp_device_removed(self);
        qp_unref(self);
        break;
    case TOLD_CQ:
        if (!cq_ref_live(self))
            return false;
        pthread_mutex_unlock(lock);
        cq_device_removed(self);
        cq_unref(self);
        break;
    case TOLD_SRQ:
        if (!srq_ref_live(self))
            return false;
        pthread_mutex_unlock(lock);
        srq_device_removed(self);
        srq_unref(self);
        break;
    }
    return true;
}

/* Takes the members out one by one, so that the lock is not held while one of them is told; each then waits in a list of
 * its own, from which device_link_del may take it at any time. */
static void tell_all(struct device *device, struct list *from, enum told_kind kind)
{
    struct list told;
    struct list *node;

    list_init(&told);
    pthread_mutex_lock(&device->lock);
    while ((node = list_pop(from)) != NULL) {
        list_add_tail(&told, node);
        if (tell(list_entry(node, struct device_link, link)->self, kind, &device->lock))
            pthread_mutex_lock(&device->lock);
    }
    list_splice_tail(from, &told);
    pthread_mutex_unlock(&device->lock);
}

void device_set_removed(struct device *device)
{
    bool before;

    pthread_mutex_lock(&device->lock);
    before = device->removed;
    __atomic_store_n(&device->removed, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&device->lock);
    if (before)
        return;
    log_warn("%s: the device is being removed", device->name);
    address_list_invalidate();
    connector_device_removed(device);
    listener_device_removed(device);
    datagram_device_removed(device);
    tell_all(device, &device->qps, TOLD_QP);
    tell_all(device, &device->srqs, TOLD_SRQ);
    tell_all(device, &device->cqs, TOLD_CQ);
    port_watch_event(device, 0, IBV_EVENT_DEVICE_FATAL);
}

/* --- opening --- */

static bool set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return true;
    log_warn("fcntl: %s", strerror(errno));
    return false;
}

/* Kernels before 5.12 need it, later ones would only pay for it (rdma-mapping.md 10). */
static void prepare_fork(void)
{
    if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) {
        int error = ibv_fork_init();

        if (error)
            log_info("ibv_fork_init: %s; fork may disturb registered memory", strerror(error));
    }
}

static NTSTATUS open_verbs(const char *name, struct device *device)
{
    struct ibv_device **list;
    NTSTATUS status = ND_INVALID_PARAMETER;
    int count = 0;

    list = ibv_get_device_list(&count);
    if (!list) {
        return status_warn(errno, status_from_create_errno(errno), "ibv_get_device_list");
    }
    for (int i = 0; i < count && status == ND_INVALID_PARAMETER; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) != 0)
            continue;
        prepare_fork();
        device->guid = be64toh(ibv_get_device_guid(list[i]));
        device->transport = list[i]->transport_type == IBV_TRANSPORT_IWARP ? DEVICE_IW : DEVICE_IB;
        device->verbs = ibv_open_device(list[i]);
        status = ND_SUCCESS;
        if (!device->verbs)
            status = status_warn(errno, status_from_create_errno(errno), "ibv_open_device of %s", name);
    }
    ibv_free_device_list(list);
    return status;
}

/* Without a channel the device works, but only polled. */
static void open_channel(struct device *device)
{
    device->channel = ibv_create_comp_channel(device->verbs);
    if (!device->channel) {
        log_warn("ibv_create_comp_channel of %s: %s; Notify is not supported", device->name, strerror(errno));
    } else if (!set_nonblocking(device->channel->fd)) {
        ibv_destroy_comp_channel(device->channel);
        device->channel = NULL;
    }
}

static void find_ports_down(struct device *device)
{
    struct ibv_port_attr attr;

    for (unsigned port = 1; port <= device->attr.phys_port_cnt && port <= 32; port++) {
        if (ibv_query_port(device->verbs, (uint8_t)port, &attr) == 0 && attr.state == IBV_PORT_DOWN)
            device->ports_down |= 1u << (port - 1);
    }
}

static NTSTATUS device_create(const char *name, struct device **out)
{
    struct device *device;
    NTSTATUS status;
    int error;

    device = calloc(1, sizeof(*device));
    if (!device)
        return ND_NO_MEMORY;
    device->refs = 1;
    snprintf(device->name, sizeof(device->name), "%s", name);
    pthread_mutex_init(&device->lock, NULL);
    list_init(&device->link);
    list_init(&device->adapters);
    list_init(&device->qps);
    list_init(&device->cqs);
    list_init(&device->srqs);
    list_init(&device->watches);
    status = open_verbs(name, device);
    if (status != ND_SUCCESS)
        goto err_free;
    error = ibv_query_device(device->verbs, &device->attr);
    if (error) {
        status = status_warn(error, status_from_create_errno(error), "ibv_query_device of %s", name);
        goto err_close;
    }
    if (!set_nonblocking(device->verbs->async_fd)) {
        status = ND_INSUFFICIENT_RESOURCES;
        goto err_close;
    }
    open_channel(device);
    status = device_find_limits(device);
    if (status != ND_SUCCESS)
        goto err_channel;
    find_ports_down(device);
    device->async_watched = true;
    engine_io_add(&device->async_io, device->verbs->async_fd, async_ready);
    if (device->channel) {
        device->channel_watched = true;
        engine_io_add(&device->channel_io, device->channel->fd, channel_ready);
    }
    *out = device;
    return ND_SUCCESS;

err_channel:
    if (device->channel)
        ibv_destroy_comp_channel(device->channel);
err_close:
    ibv_close_device(device->verbs);
err_free:
    pthread_mutex_destroy(&device->lock);
    free(device);
    return status;
}

static struct device *find_open(const char *name)
{
    struct device *found = NULL;

    pthread_mutex_lock(&devices_lock);
    list_for_each (node, &devices) {
        struct device *device = list_entry(node, struct device, link);

        if (strcmp(device->name, name) == 0 && !__atomic_load_n(&device->removed, __ATOMIC_ACQUIRE)) {
            device->refs++;
            found = device;
            break;
        }
    }
    pthread_mutex_unlock(&devices_lock);
    return found;
}

NTSTATUS device_open(const char *name, struct device **out)
{
    NTSTATUS status = engine_start();

    if (status != ND_SUCCESS)
        return status;
    *out = find_open(name);
    if (*out)
        return ND_SUCCESS;
    pthread_mutex_lock(&open_lock);
    *out = find_open(name);
    if (!*out) {
        status = device_create(name, out);
        if (status == ND_SUCCESS) {
            pthread_mutex_lock(&devices_lock);
            list_add_tail(&devices, &(*out)->link);
            pthread_mutex_unlock(&devices_lock);
        }
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

/* --- closing --- */

/* librdmacm keeps a context of its own for each device it has met, and the kernel deletes no device of which a process has
 * one. It lets go of those that are no more in the system when it looks at the list of devices (not if the list is empty:
 * cma.c, sync_devices_list, which nothing but this call reaches). */
static void forget_removed(void)
{
    struct ibv_context **contexts = rdma_get_devices(NULL);

    if (contexts)
        rdma_free_devices(contexts);
    else
        log_info("rdma_get_devices: %s; librdmacm keeps the device until the process ends", strerror(errno));
}

static void close_run(struct engine_work *work)
{
    struct device *device = (struct device *)((char *)work - offsetof(struct device, close_work));
    int error;

    if (device->channel) {
        error = ibv_destroy_comp_channel(device->channel);
        if (error)
            log_warn("ibv_destroy_comp_channel of %s: %s", device->name, strerror(error));
    }
    error = ibv_close_device(device->verbs);
    if (error)
        log_warn("ibv_close_device of %s: %s", device->name, strerror(error));
    if (device->removed)
        forget_removed();
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static void close_channel_removed(struct engine_io *io)
{
    struct device *device = (struct device *)((char *)io - offsetof(struct device, channel_io));

    engine_work(ENGINE_LANE_DESTROY, &device->close_work, close_run);
}

static void close_async_removed(struct engine_io *io)
{
    struct device *device = (struct device *)((char *)io - offsetof(struct device, async_io));

    if (device->channel_watched)
        engine_io_remove(&device->channel_io, close_channel_removed);
    else
        engine_work(ENGINE_LANE_DESTROY, &device->close_work, close_run);
}

static void close_on_loop(struct engine_call *call)
{
    struct device *device = (struct device *)((char *)call - offsetof(struct device, close_call));

    if (device->async_watched)
        engine_io_remove(&device->async_io, close_async_removed);
    else
        close_async_removed(&device->async_io);
}

void device_unref(struct device *device)
{
    bool last;

    pthread_mutex_lock(&devices_lock);
    last = --device->refs == 0;
    if (last)
        list_del(&device->link);
    pthread_mutex_unlock(&devices_lock);
    if (last)
        engine_post(&device->close_call, close_on_loop);
}
