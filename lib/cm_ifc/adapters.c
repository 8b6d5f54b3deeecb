/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/status.h"

/* Opening an adapter costs a protection domain and an id, and the first one of a device milliseconds: connections share
 * them, as long as the client has the interface or an id. */
struct entry {
    struct list link;
    struct adapter *adapter;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list entries = { &entries, &entries };
static uint32_t users;

static void drop(struct list *list)
{
    while (!list_empty(list)) {
        struct entry *entry = list_entry(list_pop(list), struct entry, link);

        adapter_unref(entry->adapter);
        free(entry);
    }
}

/* NULL: not there. What is no longer of use goes to `old`. */
static struct adapter *find_locked(uint64_t adapter_id, struct list *old)
{
    list_for_each_safe (node, &entries) {
        struct entry *entry = list_entry(node, struct entry, link);

        if (adapter_removed(entry->adapter)) {
            list_del(node);
            list_add_tail(old, node);
        } else if (entry->adapter->id == adapter_id) {
            return adapter_ref(entry->adapter);
        }
    }
    return NULL;
}

/* The kernel waits for the adapter, the client may have the interface for ever. */
static void device_removed(struct device *device)
{
    struct list old;

    list_init(&old);
    pthread_mutex_lock(&lock);
    list_for_each_safe (node, &entries) {
        if (list_entry(node, struct entry, link)->adapter->device != device)
            continue;
        list_del(node);
        list_add_tail(&old, node);
    }
    pthread_mutex_unlock(&lock);
    drop(&old);
    service_device_removed(device);
}

static struct adapter *find(uint64_t adapter_id)
{
    struct adapter *adapter;
    struct list old;

    list_init(&old);
    pthread_mutex_lock(&lock);
    adapter = find_locked(adapter_id, &old);
    pthread_mutex_unlock(&lock);
    drop(&old);
    return adapter;
}

NTSTATUS cm_adapter_get(const struct sockaddr *local, struct adapter **out)
{
    struct address_entry address;
    struct adapter *adapter;
    struct entry *entry;
    struct list old;
    NTSTATUS status = address_find(local, &address);

    if (status != STATUS_SUCCESS)
        return status;
    *out = find(address.adapter_id);
    if (*out)
        return STATUS_SUCCESS;
    /* Without the lock, which threads on the loop take too. */
    status = adapter_open(address.adapter_id, &adapter);
    if (status != STATUS_SUCCESS)
        return status;
    *out = find(address.adapter_id);
    if (*out) { /* somebody was faster */
        adapter_unref(adapter);
        return STATUS_SUCCESS;
    }
    entry = malloc(sizeof(*entry));
    if (!entry) {
        adapter_unref(adapter);
        return STATUS_NO_MEMORY;
    }
    *out = adapter_ref(adapter);
    entry->adapter = adapter;
    list_init(&old);
    pthread_mutex_lock(&lock);
    /* Nobody would take it out any more if its device went meanwhile. A second one of the adapter does no harm. */
    list_add_tail(adapter_removed(adapter) ? &old : &entries, &entry->link);
    pthread_mutex_unlock(&lock);
    drop(&old);
    return STATUS_SUCCESS;
}

void cm_use(void)
{
    connection_bare_watch(device_removed);
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
}

void cm_unuse(void)
{
    struct list old;

    list_init(&old);
    pthread_mutex_lock(&lock);
    if (--users == 0)
        list_splice_tail(&old, &entries);
    pthread_mutex_unlock(&lock);
    drop(&old);
}
