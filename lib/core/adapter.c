/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ndstatus.h"

#include "address.h"
#include "log.h"
#include "status.h"

/* ND's largest transfer is a 32-bit number; WinOFED's providers name 2^31. */
#define MAX_TRANSFER (1ull << 31)

/* The anchor id's events, on loop. */
static void anchor_event(struct cmid *cmid, const struct cm_event *event)
{
    struct adapter *adapter = cmid->owner;

    if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        device_set_removed(adapter->device);
    else
        log_debug("%s: anchor event %d", adapter->device->name, (int)event->type);
}

/* The id is destroyed, so no event looks at the record any more. */
static void anchor_gone(struct cmid *cmid)
{
    struct adapter *adapter = cmid->owner;

    device_unref(adapter->device);
    pthread_mutex_destroy(&adapter->lock);
    free(adapter);
}

static NTSTATUS find_port(struct adapter *adapter)
{
    struct ibv_port_attr port;
    int error = ibv_query_port(adapter->device->verbs, adapter->port, &port);

    if (error) {
        return status_warn(error, status_from_create_errno(error), "ibv_query_port of %s port %u",
                           adapter->device->name, adapter->port);
    }
    adapter->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    adapter->limits.max_transfer =
        port.max_msg_sz && port.max_msg_sz < MAX_TRANSFER ? port.max_msg_sz : (uint32_t)MAX_TRANSFER;
    /* siw says 4 GiB, and its kernel counts a message's bytes in an int. */
    if (device_is_siw(adapter->device) && adapter->limits.max_transfer > INT32_MAX)
        adapter->limits.max_transfer = INT32_MAX;
    return ND_SUCCESS;
}

static NTSTATUS anchor_bind(struct adapter *adapter, const struct address_entry *entry)
{
    union address address = entry->address;
    NTSTATUS status = cmid_create(adapter, anchor_event, anchor_gone, &adapter->anchor);
    char text[64];

    if (status != ND_SUCCESS)
        return status == ND_DEVICE_NOT_READY ? ND_INSUFFICIENT_RESOURCES : status;
    if (rdma_bind_addr(adapter->anchor->id, &address.sa) == 0)
        return ND_SUCCESS;
    status = errno == ENODEV ? ND_DEVICE_REMOVED : ND_INSUFFICIENT_RESOURCES;
    status_warn(errno, status, "rdma_bind_addr of %s", address_text(&address.sa, text, sizeof(text)));
    address_list_invalidate();
    return status;
}

/* `anchor`: where the anchor is bound, NULL: there is none. */
static NTSTATUS open_on(const char *name, uint8_t port, const struct address_entry *anchor, struct adapter **out)
{
    struct adapter *adapter;
    struct device *device;
    NTSTATUS status;

    adapter = calloc(1, sizeof(*adapter));
    if (!adapter)
        return ND_NO_MEMORY;
    status = device_open(name, &device);
    if (status != ND_SUCCESS) {
        address_list_invalidate(); /* a device that left since the list was made */
        goto err_free;
    }
    adapter->refs = 1;
    adapter->device = device;
    adapter->port = port;
    adapter->id = device->guid + (port ? port - 1u : 0);
    adapter->limits = device->limits;
    pthread_mutex_init(&adapter->lock, NULL);
    list_init(&adapter->link);
    list_init(&adapter->mrs);
    list_init(&adapter->mws);
    status = find_port(adapter);
    if (status != ND_SUCCESS)
        goto err_device;
    adapter->pd = ibv_alloc_pd(device->verbs);
    if (!adapter->pd) {
        status = status_warn(errno, status_from_create_errno(errno), "ibv_alloc_pd of %s", device->name);
        goto err_device;
    }
    pthread_mutex_lock(&device->lock);
    list_add_tail(&device->adapters, &adapter->link);
    pthread_mutex_unlock(&device->lock);
    status = anchor ? anchor_bind(adapter, anchor) : ND_SUCCESS;
    if (status != ND_SUCCESS)
        goto err_unref;
    *out = adapter;
    return ND_SUCCESS;

err_unref:
    adapter_unref(adapter);
    return status;
err_device:
    pthread_mutex_destroy(&adapter->lock);
    device_unref(device);
err_free:
    free(adapter);
    return status;
}

NTSTATUS adapter_open(uint64_t id, struct adapter **out)
{
    struct address_entry entry;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    status = address_find_adapter(id, &entry);
    if (status != ND_SUCCESS) {
        log_info("there is no adapter %016llx", (unsigned long long)id);
        return status;
    }
    return open_on(entry.device, entry.port, &entry, out);
}

NTSTATUS adapter_open_device(const char *name, uint8_t port, struct adapter **out)
{
    struct address_entry entry;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return open_on(name, port, address_of_device(name, &entry) ? &entry : NULL, out);
}

struct adapter *adapter_ref(struct adapter *adapter)
{
    __atomic_add_fetch(&adapter->refs, 1, __ATOMIC_RELAXED);
    return adapter;
}

void adapter_unref(struct adapter *adapter)
{
    struct device *device = adapter->device;
    struct cmid *anchor = adapter->anchor;
    int error;

    if (__atomic_sub_fetch(&adapter->refs, 1, __ATOMIC_ACQ_REL) != 0 || engine_dead())
        return;
    pthread_mutex_lock(&device->lock);
    list_del(&adapter->link);
    pthread_mutex_unlock(&device->lock);
    error = ibv_dealloc_pd(adapter->pd);
    if (error)
        log_warn("ibv_dealloc_pd of %s: %s", device->name, strerror(error));
    if (anchor) {
        cmid_destroy(anchor); /* ends in anchor_gone, which frees the record */
    } else {
        pthread_mutex_destroy(&adapter->lock);
        free(adapter);
        device_unref(device);
    }
}

bool adapter_port_down(const struct adapter *adapter)
{
    uint32_t bit = adapter->port >= 1 && adapter->port <= 32 ? 1u << (adapter->port - 1) : 0;

    return (__atomic_load_n(&adapter->device->ports_down, __ATOMIC_RELAXED) & bit) != 0;
}
