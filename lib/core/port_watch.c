/* SPDX-License-Identifier: MIT */
#include "port_watch.h"

#include <stdlib.h>

#include "ndstatus.h"

struct port_watch {
    struct list link; /* device->watches, under watch_lock */
    struct device *device;
    struct list pending; /* struct request.link, oldest first */
    uint32_t *latched;   /* per port */
};

/* One leaf lock for all watches: events are rare. A cancel that holds a request but no watch may take it; a request that is
 * linked proves that its watch exists. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

/* Of a request: `tag` is the port, `owner` where the flags go. */
static void finish_locked(struct request *request, NTSTATUS status, uint32_t flags)
{
    DWORD *out = request->owner;

    list_del(&request->link);
    if (status == ND_SUCCESS)
        *out = flags;
    request_complete(request, status, status == ND_SUCCESS ? sizeof(DWORD) : 0);
}

static void cancel_request(struct request *request)
{
    pthread_mutex_lock(&watch_lock);
    if (list_linked(&request->link))
        finish_locked(request, ND_CANCELED, 0);
    pthread_mutex_unlock(&watch_lock);
}

NTSTATUS port_watch_create(struct device *device, struct port_watch **out)
{
    struct port_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return ND_NO_MEMORY;
    watch->latched = calloc((size_t)device->attr.phys_port_cnt + 1, sizeof(*watch->latched));
    if (!watch->latched) {
        free(watch);
        return ND_NO_MEMORY;
    }
    watch->device = device;
    list_init(&watch->pending);
    pthread_mutex_lock(&watch_lock);
    list_add_tail(&device->watches, &watch->link);
    pthread_mutex_unlock(&watch_lock);
    *out = watch;
    return ND_SUCCESS;
}

static void cancel_locked(struct port_watch *watch)
{
    while (!list_empty(&watch->pending))
        finish_locked(list_entry(watch->pending.next, struct request, link), ND_CANCELED, 0);
}

void port_watch_destroy(struct port_watch *watch)
{
    pthread_mutex_lock(&watch_lock);
    list_del(&watch->link);
    cancel_locked(watch);
    pthread_mutex_unlock(&watch_lock);
    free(watch->latched);
    free(watch);
}

void port_watch_cancel(struct port_watch *watch)
{
    pthread_mutex_lock(&watch_lock);
    cancel_locked(watch);
    pthread_mutex_unlock(&watch_lock);
}

NTSTATUS port_watch_notify(struct port_watch *watch, uint8_t port, struct file *file, OVERLAPPED *ov, DWORD *flags)
{
    struct request *request;
    NTSTATUS status;

    if (!ov || !flags)
        return ND_INVALID_PARAMETER;
    if (port < 1 || port > watch->device->attr.phys_port_cnt)
        return ND_INVALID_PARAMETER_1;
    status = request_alloc(file, ov, cancel_request, flags, &request);
    if (status != ND_SUCCESS)
        return status;
    request->tag = port;
    pthread_mutex_lock(&watch_lock);
    /* After its last news there is none to wait for. */
    if (!watch->latched[port] && __atomic_load_n(&watch->device->removed, __ATOMIC_RELAXED)) {
        pthread_mutex_unlock(&watch_lock);
        request_discard(request);
        return ND_DEVICE_REMOVED;
    }
    request_start(request);
    list_add_tail(&watch->pending, &request->link);
    if (watch->latched[port]) {
        uint32_t events = watch->latched[port];

        watch->latched[port] = 0;
        finish_locked(request, ND_SUCCESS, events);
    }
    pthread_mutex_unlock(&watch_lock);
    return ND_PENDING;
}

static uint32_t event_flag(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
        return PORT_EVENT_ERROR;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
        return PORT_EVENT_STATE;
    case IBV_EVENT_GID_CHANGE:
        return PORT_EVENT_ADDRESS;
    case IBV_EVENT_LID_CHANGE:
        return PORT_EVENT_LINK_ADDRESS;
    case IBV_EVENT_PKEY_CHANGE:
        return PORT_EVENT_PARTITION;
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        return PORT_EVENT_MANAGEMENT;
    default:
        return 0;
    }
}

static void happened_locked(struct port_watch *watch, unsigned port, uint32_t flag)
{
    bool taken = false;

    list_for_each_safe (node, &watch->pending) {
        struct request *request = list_entry(node, struct request, link);

        if (request->tag != port)
            continue;
        finish_locked(request, ND_SUCCESS, flag);
        taken = true;
    }
    if (!taken)
        watch->latched[port] |= flag;
}

void port_watch_event(struct device *device, unsigned port, enum ibv_event_type type)
{
    unsigned last = device->attr.phys_port_cnt;
    uint32_t flag = event_flag(type);

    if (!flag || port > last)
        return;
    pthread_mutex_lock(&watch_lock);
    list_for_each (node, &device->watches) {
        struct port_watch *watch = list_entry(node, struct port_watch, link);

        for (unsigned p = port ? port : 1; p <= (port ? port : last); p++)
            happened_locked(watch, p, flag);
    }
    pthread_mutex_unlock(&watch_lock);
}
