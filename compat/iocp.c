/* SPDX-License-Identifier: MIT */
#include "iocp.h"

#include <stdlib.h>

#include "descriptor.h"
#include "error.h"
#include "file.h"
#include "handle.h"

/* Nodes kept for PostQueuedCompletionStatus; a burst beyond it goes back to the heap. */
#define SPARE_NODES 1024

struct port {
    struct object object; /* its lock covers everything below; waiters are there only while `packets` is empty */
    struct list packets;  /* port_node, oldest first */
    struct list spare;    /* nodes for posted packets */
    uint32_t spares;
    uint32_t waiting;
    bool closed; /* last handle gone: packets are dropped from now on */
};

/* Values of waiter.result for waits on a port. */
enum {
    PORT_PACKET,
    PORT_CLOSED,
};

static struct port *port_from_object(struct object *object)
{
    return (struct port *)object;
}

struct object *port_object(struct port *port)
{
    return &port->object;
}

static void nodes_drop(struct list *nodes)
{
    struct list *link;

    while ((link = list_pop(nodes))) {
        struct port_node *node = list_entry(link, struct port_node, link);

        if (node->request)
            request_unref(node->request);
        else
            free(node);
    }
}

static void port_closed(struct object *object)
{
    struct port *port = port_from_object(object);
    struct list dropped, *link;

    list_init(&dropped);
    wordlock_lock(&object->lock);
    port->closed = true;
    list_splice_tail(&dropped, &port->packets);
    descriptor_follow_locked(object, false);
    while ((link = list_pop(&object->waiters))) {
        struct waiter *waiter = list_entry(link, struct wait_entry, link)->waiter;

        port->waiting--;
        waiter->result = PORT_CLOSED;
        waiter_assign(waiter);
        waiter_wake(waiter);
    }
    wordlock_unlock(&object->lock);
    nodes_drop(&dropped);
}

static void port_destroy(struct object *object)
{
    struct port *port = port_from_object(object);

    nodes_drop(&port->packets);
    nodes_drop(&port->spare);
    free(port);
}

const struct object_ops port_ops = {
    .waitable = false,
    .closed = port_closed,
    .destroy = port_destroy,
};

struct port *port_create(void)
{
    struct port *port = calloc(1, sizeof(*port));

    if (!port)
        return NULL;
    object_init(&port->object, &port_ops, 0);
    list_init(&port->packets);
    list_init(&port->spare);
    return port;
}

/* Hands the packet to a waiter, by value. Returns the waiter to wake after unlocking, or NULL if none waits. */
static struct waiter *port_hand_over_locked(struct port *port, const struct packet *packet)
{
    struct wait_entry *entry;
    struct waiter *waiter;

    if (list_empty(&port->object.waiters))
        return NULL;
    entry = wait_entry_pick_locked(&port->object);
    waiter = entry->waiter;
    list_del(&entry->link);
    port->waiting--;
    waiter->packet = *packet;
    waiter->result = PORT_PACKET;
    waiter_assign(waiter);
    return waiter;
}

void port_push_request(struct port *port, const struct packet *packet, struct port_node *node, struct request *request)
{
    struct waiter *waiter;

    wordlock_lock(&port->object.lock);
    waiter = port_hand_over_locked(port, packet);
    if (!waiter && !port->closed) {
        node->packet = *packet;
        node->request = request_ref(request);
        list_add_tail(&port->packets, &node->link);
        descriptor_follow_locked(&port->object, true);
    }
    wordlock_unlock(&port->object.lock);
    if (waiter)
        waiter_wake(waiter);
}

bool port_post(struct port *port, const struct packet *packet)
{
    struct waiter *waiter;
    struct port_node *node = NULL;
    struct list *link;

    wordlock_lock(&port->object.lock);
    waiter = port_hand_over_locked(port, packet);
    if (waiter) {
        wordlock_unlock(&port->object.lock);
        waiter_wake(waiter);
        return true;
    }
    link = list_pop(&port->spare);
    if (link) {
        port->spares--;
        node = list_entry(link, struct port_node, link);
    } else {
        wordlock_unlock(&port->object.lock);
        node = malloc(sizeof(*node));
        if (!node)
            return false;
        node->request = NULL;
        list_init(&node->link);
        wordlock_lock(&port->object.lock);
        waiter = port_hand_over_locked(port, packet);
    }
    if (!waiter) {
        node->packet = *packet;
        list_add_tail(&port->packets, &node->link);
        descriptor_follow_locked(&port->object, true);
        node = NULL;
    }
    wordlock_unlock(&port->object.lock);
    if (waiter)
        waiter_wake(waiter);
    free(node);
    return true;
}

/* Pops packets by value; the nodes of requests go to `requests`, to be released without the lock. */
static uint32_t port_pop_locked(struct port *port, struct packet *packets, uint32_t n, struct list *done)
{
    struct list *link;
    uint32_t count = 0;

    while (count < n && (link = list_pop(&port->packets))) {
        struct port_node *node = list_entry(link, struct port_node, link);

        packets[count++] = node->packet;
        if (!node->request && port->spares < SPARE_NODES) {
            port->spares++;
            list_add_head(&port->spare, &node->link);
        } else {
            list_add_tail(done, &node->link);
        }
    }
    descriptor_follow_locked(&port->object, !list_empty(&port->packets));
    return count;
}

uint32_t port_get(struct port *port, struct packet *packets, uint32_t n, uint64_t deadline, bool *closed)
{
    struct object *object = &port->object;
    struct waiter *waiter;
    struct list done;
    uint32_t count;

    *closed = false;
    list_init(&done);
    wordlock_lock(&object->lock);
    count = port_pop_locked(port, packets, n, &done);
    if (count || deadline == 0 || port->closed) {
        *closed = !count && port->closed;
        wordlock_unlock(&object->lock);
        nodes_drop(&done);
        return count;
    }
    waiter = waiter_self();
    waiter_begin(waiter);
    port->waiting++;
    wait_entry_link_locked(&waiter->entry, waiter, object);
    wordlock_unlock(&object->lock);

    wait_block(waiter, deadline, object_interested(object));

    if (!waiter_signalled(waiter) || n > 1) {
        wordlock_lock(&object->lock);
        if (!waiter_signalled(waiter)) {
            port->waiting--;
            list_del(&waiter->entry.link);
            wordlock_unlock(&object->lock);
            return 0;
        }
        if (n > 1 && waiter->result == PORT_PACKET)
            count = port_pop_locked(port, packets + 1, n - 1, &done);
        wordlock_unlock(&object->lock);
        nodes_drop(&done);
    }
    if (waiter->result == PORT_CLOSED) {
        *closed = true;
        return 0;
    }
    packets[0] = waiter->packet;
    return count + 1;
}

int port_descriptor(struct object *object)
{
    struct port *port = port_from_object(object);

    wordlock_lock(&object->lock);
    if (descriptor_make_locked(object))
        descriptor_follow_locked(object, !list_empty(&port->packets));
    wordlock_unlock(&object->lock);
    return object->descriptor;
}

uint32_t port_waiters(struct port *port)
{
    uint32_t waiting;

    wordlock_lock(&port->object.lock);
    waiting = port->waiting;
    wordlock_unlock(&port->object.lock);
    return waiting;
}

/* The concurrency value is accepted and not enforced: no application surveyed depends on it (win32-surface.md 6.6). */
HANDLE WINAPI CreateIoCompletionPort(HANDLE file_handle, HANDLE port_handle, ULONG_PTR key, DWORD concurrency)
{
    HANDLE handle = port_handle;
    struct file *file = NULL;
    struct object *object;

    (void)concurrency;
    if (file_handle == INVALID_HANDLE_VALUE) {
        if (port_handle) {
            SetLastError(ERROR_INVALID_PARAMETER);
            return NULL;
        }
    } else {
        file = file_from_handle(file_handle);
        if (!file) {
            SetLastError(ERROR_INVALID_HANDLE);
            return NULL;
        }
    }
    if (port_handle) {
        object = handle_ref(port_handle, &port_ops);
        if (!object) {
            SetLastError(ERROR_INVALID_HANDLE);
            handle = NULL;
            goto out;
        }
    } else {
        struct port *port = port_create();

        object = port ? &port->object : NULL;
        handle = port ? handle_open(object) : NULL;
        if (!handle) {
            SetLastError(ERROR_NOT_ENOUGH_MEMORY);
            goto out_object;
        }
    }
    if (file && !file_bind(file, port_from_object(object), key)) {
        if (!port_handle)
            CloseHandle(handle);
        SetLastError(ERROR_INVALID_PARAMETER);
        handle = NULL;
    }
out_object:
    if (object)
        object_unref(object);
out:
    if (file)
        file_unref(file);
    return handle;
}

static uint32_t port_get_by_handle(HANDLE handle, struct packet *packets, uint32_t n, DWORD milliseconds)
{
    struct object *object = handle_pin(handle, &port_ops);
    uint32_t count;
    bool closed;

    if (!object) {
        SetLastError(ERROR_INVALID_HANDLE);
        return 0;
    }
    /* A packet that is there costs no look at the clock. */
    count = port_get(port_from_object(object), packets, n, 0, &closed);
    if (!count && !closed && milliseconds)
        count = port_get(port_from_object(object), packets, n, sleep_deadline(milliseconds), &closed);
    handle_unpin(handle);
    if (!count)
        SetLastError(closed ? ERROR_ABANDONED_WAIT_0 : WAIT_TIMEOUT);
    return count;
}

/* Rows of the result table in win32-surface.md 6.6. */
BOOL WINAPI GetQueuedCompletionStatus(HANDLE handle, LPDWORD bytes, PULONG_PTR key, LPOVERLAPPED *overlapped,
                                      DWORD milliseconds)
{
    struct packet packet;

    if (!port_get_by_handle(handle, &packet, 1, milliseconds)) {
        if (overlapped)
            *overlapped = NULL;
        return FALSE;
    }
    if (bytes)
        *bytes = packet.bytes;
    if (key)
        *key = packet.key;
    if (overlapped)
        *overlapped = packet.overlapped;
    if (packet.status >= 0)
        return TRUE;
    SetLastError(error_from_status(packet.status));
    return FALSE;
}

#define BATCH 16

BOOL WINAPI GetQueuedCompletionStatusEx(HANDLE handle, LPOVERLAPPED_ENTRY entries, ULONG count, PULONG removed,
                                        DWORD milliseconds, BOOL alertable)
{
    struct packet packets[BATCH];
    ULONG total = 0, got;

    (void)alertable;
    if (!entries || !count || !removed) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    *removed = 0;
    /* Only the first round may wait. */
    do {
        ULONG want = count - total < BATCH ? count - total : BATCH;
        DWORD saved = GetLastError();

        got = port_get_by_handle(handle, packets, want, total ? 0 : milliseconds);
        if (!got) {
            if (total)
                SetLastError(saved);
            break;
        }
        for (ULONG i = 0; i < got; i++) {
            entries[total + i].lpCompletionKey = packets[i].key;
            entries[total + i].lpOverlapped = packets[i].overlapped;
            entries[total + i].Internal = (ULONG_PTR)(ULONG)packets[i].status;
            entries[total + i].dwNumberOfBytesTransferred = packets[i].bytes;
        }
        total += got;
    } while (got == BATCH && total < count);
    *removed = total;
    return total != 0;
}

BOOL WINAPI PostQueuedCompletionStatus(HANDLE handle, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped)
{
    struct packet packet = { .key = key, .overlapped = overlapped, .status = 0, .bytes = bytes };
    struct object *object = handle_pin(handle, &port_ops);
    bool posted;

    if (!object) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    posted = port_post(port_from_object(object), &packet);
    handle_unpin(handle);
    if (!posted)
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return posted;
}
