/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"
#include "connector_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ntstatus.h>

#include "log.h"
#include "status.h"
#include "tunable.h"

/* How often a port that the kernel chose for the first address may turn out to be taken on the next one. */
#define PORT_TRIES 16

/* A connection request that nobody has fetched yet. */
struct inquiry {
    struct list link;
    struct cmid *cmid;
    struct cm_event event;
};

struct listener {
    pthread_mutex_t lock; /* before a connector's lock */
    uint32_t refs;
    struct cm_entry entry;
    struct adapter **adapters; /* one, unless it listens on all addresses of several */
    size_t adapter_count;
    struct file *file;
    bool wide; /* WinVerbs: bound to the wildcard address it serves several adapters */
    bool listening, released, removed;
    uint32_t ids; /* 0: not bound */
    struct cmid **id;
    union address local;
    struct list waiting;   /* connector.waiting: pending GetConnectionRequests, in the order of the calls */
    struct list inquiries; /* requests that wait for a GetConnectionRequest, oldest first */
    uint32_t queued, limit;
    struct list bound_link; /* in `bound`, under bound_lock */
};

/* Listeners that own a port. */
static pthread_mutex_t bound_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list bound = { &bound, &bound };

bool listener_port_is_ours(const union address *address)
{
    bool ours = false;

    pthread_mutex_lock(&bound_lock);
    list_for_each (node, &bound) {
        const struct listener *l = list_entry(node, struct listener, bound_link);

        if (address_port(&l->local.sa) == address_port(&address->sa) &&
            l->local.sa.sa_family == address->sa.sa_family &&
            (address_is_any(&l->local.sa) || address_equal(&l->local.sa, &address->sa)))
            ours = true;
    }
    pthread_mutex_unlock(&bound_lock);
    return ours;
}

static NTSTATUS create(struct adapter *const *adapters, size_t count, bool wide, struct file *file,
                       struct listener **out)
{
    struct listener *l;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    l = calloc(1, sizeof(*l));
    if (!l)
        return ND_NO_MEMORY;
    l->adapters = calloc(count + 1, sizeof(*l->adapters));
    if (!l->adapters) {
        free(l);
        return ND_NO_MEMORY;
    }
    pthread_mutex_init(&l->lock, NULL);
    l->refs = 1;
    l->wide = wide;
    while (l->adapter_count < count) {
        l->adapters[l->adapter_count] = adapter_ref(adapters[l->adapter_count]);
        l->adapter_count++;
    }
    l->file = file_ref(file);
    list_init(&l->waiting);
    list_init(&l->inquiries);
    list_init(&l->bound_link);
    cm_entry_add(&l->entry, CM_LISTENER, l, l, &l->refs);
    *out = l;
    return ND_SUCCESS;
}

NTSTATUS listener_create(struct adapter *adapter, struct file *file, struct listener **out)
{
    return adapter_removed(adapter) ? ND_DEVICE_REMOVED : create(&adapter, 1, false, file, out);
}

NTSTATUS listener_create_wide(struct adapter *const *adapters, size_t count, struct file *file, struct listener **out)
{
    return create(adapters, count, true, file, out);
}

struct listener *listener_ref(struct listener *listener)
{
    __atomic_add_fetch(&listener->refs, 1, __ATOMIC_RELAXED);
    return listener;
}

void listener_unref(struct listener *listener)
{
    if (__atomic_sub_fetch(&listener->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    cm_entry_del(&listener->entry);
    file_unref(listener->file);
    for (size_t i = 0; i < listener->adapter_count; i++)
        adapter_unref(listener->adapters[i]);
    free(listener->adapters);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

/* A wide one lives as long as it has an address. */
static bool gone(const struct listener *l)
{
    return engine_dead() || (!l->wide && adapter_removed(l->adapters[0]));
}

static struct adapter *adapter_of_id(const struct listener *l, uint64_t adapter_id)
{
    for (size_t i = 0; i < l->adapter_count; i++) {
        if (l->adapters[i]->id == adapter_id)
            return l->adapters[i];
    }
    return NULL;
}

/* The adapter behind an id of ours. */
static struct adapter *adapter_of_cmid(const struct listener *l, const struct cmid *cmid)
{
    for (size_t i = 0; i < l->adapter_count && l->wide; i++) {
        if (l->adapters[i]->port == cmid->id->port_num && cmid_is_on(cmid, l->adapters[i]->device))
            return l->adapters[i];
    }
    return l->adapters[0];
}

static void drop_ids_locked(struct listener *l)
{
    pthread_mutex_lock(&bound_lock);
    list_del(&l->bound_link);
    pthread_mutex_unlock(&bound_lock);
    while (l->ids)
        cmid_destroy(l->id[--l->ids]);
    free(l->id);
    l->id = NULL;
    l->listening = false;
}

/* ---- Pending GetConnectionRequests ---- */

/* Unlinked first: as soon as the connector is as new, another thread may have it wait elsewhere. */
static struct request *unlink_locked(struct connector *c)
{
    struct request *request = c->queued;

    list_del(&c->waiting);
    c->queued = NULL;
    return request;
}

static void withdraw_locked(struct connector *c, NTSTATUS status)
{
    struct request *request = unlink_locked(c);

    connector_unqueue(c);
    request_complete(request, status, 0);
    connector_unref(c);
}

static void cancel_waiting_locked(struct listener *l, NTSTATUS status)
{
    list_for_each_safe (node, &l->waiting)
        withdraw_locked(list_entry(node, struct connector, waiting), status);
}

/* CancelIoEx. */
static void cancel_request(struct request *request)
{
    struct listener *l = cm_entry_find(CM_LISTENER, request->owner);

    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    list_for_each_safe (node, &l->waiting) {
        struct connector *c = list_entry(node, struct connector, waiting);

        if (c->queued == request) {
            withdraw_locked(c, ND_CANCELED);
            break;
        }
    }
    pthread_mutex_unlock(&l->lock);
    listener_unref(l);
}

void listener_withdraw(struct listener *l, struct connector *c, NTSTATUS status)
{
    pthread_mutex_lock(&l->lock);
    if (list_linked(&c->waiting))
        withdraw_locked(c, status);
    pthread_mutex_unlock(&l->lock);
}

NTSTATUS listener_cancel(struct listener *l)
{
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&l->lock);
    cancel_waiting_locked(l, ND_CANCELED);
    pthread_mutex_unlock(&l->lock);
    return ND_SUCCESS;
}

/* ---- Requests from the wire ---- */

static void turn_away(struct cmid *child)
{
    if (rdma_reject(child->id, NULL, 0) != 0)
        log_debug("rdma_reject: %s", strerror(errno));
    cmid_destroy(child);
}

/* A child that is not accepted gets no events. */
static void child_event(struct cmid *cmid, const struct cm_event *event)
{
    (void)cmid;
    (void)event;
}

/* Gives a request to the first connector that waits and still can take it. False: there is none. */
static bool give_locked(struct listener *l, struct cmid *child, const struct cm_event *event)
{
    while (!list_empty(&l->waiting)) {
        struct connector *c = list_entry(l->waiting.next, struct connector, waiting);
        struct request *request = unlink_locked(c);
        bool taken = connector_give(c, adapter_of_cmid(l, child), child, event);

        request_complete(request, taken ? ND_SUCCESS : ND_CANCELED, 0);
        connector_unref(c);
        if (taken)
            return true;
    }
    return false;
}

static void drop_inquiries_locked(struct listener *l)
{
    while (!list_empty(&l->inquiries)) {
        struct inquiry *inquiry = list_entry(list_pop(&l->inquiries), struct inquiry, link);

        turn_away(inquiry->cmid);
        free(inquiry);
    }
    l->queued = 0;
}

static bool keep_locked(struct listener *l, struct cmid *child, const struct cm_event *event)
{
    struct inquiry *inquiry;

    if (l->queued >= l->limit) {
        log_info("a connection request is rejected: %u are waiting to be fetched", l->queued);
        return false;
    }
    inquiry = malloc(sizeof(*inquiry));
    if (!inquiry)
        return false;
    inquiry->cmid = child;
    inquiry->event = *event;
    list_add_tail(&l->inquiries, &inquiry->link);
    l->queued++;
    return true;
}

static bool uses_device(const struct listener *l, const struct cmid *cmid, const struct device *device)
{
    return adapter_of_cmid(l, cmid)->device == device;
}

/* One of several devices is gone: its ids and requests go, the others stay. */
static void remove_part_locked(struct listener *l, const struct device *device)
{
    uint32_t kept = 0;

    list_for_each_safe (node, &l->inquiries) {
        struct inquiry *inquiry = list_entry(node, struct inquiry, link);

        if (!uses_device(l, inquiry->cmid, device))
            continue;
        list_del(&inquiry->link);
        l->queued--;
        turn_away(inquiry->cmid);
        free(inquiry);
    }
    for (uint32_t i = 0; i < l->ids; i++) {
        if (uses_device(l, l->id[i], device))
            cmid_destroy(l->id[i]);
        else
            l->id[kept++] = l->id[i];
    }
    l->ids = kept;
}

/* The kernel lets go of the device when all its ids are destroyed, unfetched requests included. */
static void remove_locked(struct listener *l, const struct device *device)
{
    if (l->wide && l->ids) {
        remove_part_locked(l, device);
        if (l->ids)
            return;
    }
    l->removed = true;
    cancel_waiting_locked(l, ND_DEVICE_REMOVED);
    drop_inquiries_locked(l);
    drop_ids_locked(l);
}

static void listener_event(struct cmid *cmid, const struct cm_event *event)
{
    struct listener *l = cmid->owner;
    struct cmid *child = NULL;

    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        child = cmid_adopt(event->new_id, NULL, child_event, NULL);
        if (!child)
            cmid_destroy_raw(event->new_id); /* the kernel rejects it */
    }
    pthread_mutex_lock(&l->lock);
    if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        remove_locked(l, adapter_of_cmid(l, cmid)->device);
    if (child && l->listening && (give_locked(l, child, event) || keep_locked(l, child, event)))
        child = NULL;
    pthread_mutex_unlock(&l->lock);
    if (child)
        turn_away(child);
}

static void listener_gone(struct cmid *cmid)
{
    listener_unref(cmid->owner);
}

NTSTATUS listener_get_connection_request(struct listener *l, struct connector *c, OVERLAPPED *ov)
{
    struct request *request;
    struct inquiry *inquiry = NULL;
    NTSTATUS status;

    if (gone(l))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    /* An endpoint of WinVerbs gets its adapter with the request. */
    if (c->wire.adapter != l->adapters[0] && !(c->policy->wv && !c->wire.adapter))
        return ND_INVALID_PARAMETER_1;
    pthread_mutex_lock(&l->lock);
    status = l->removed ? ND_DEVICE_REMOVED : l->listening ? ND_SUCCESS : ND_INVALID_DEVICE_STATE;
    if (status == ND_SUCCESS)
        status = request_alloc(l->file, ov, cancel_request, l, &request);
    if (status != ND_SUCCESS)
        goto out;
    status = connector_queue(c, l);
    if (status != ND_SUCCESS) {
        request_discard(request);
        goto out;
    }
    request_start(request);
    c->queued = request;
    connector_ref(c);
    list_add_tail(&l->waiting, &c->waiting);
    if (!list_empty(&l->inquiries)) {
        inquiry = list_entry(list_pop(&l->inquiries), struct inquiry, link);
        l->queued--;
        if (!give_locked(l, inquiry->cmid, &inquiry->event))
            turn_away(inquiry->cmid);
        free(inquiry);
    }
    status = ND_PENDING;
out:
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* ---- Bind and Listen ---- */

static NTSTATUS bind_one_locked(struct listener *l, union address *address)
{
    struct cmid *cmid;
    NTSTATUS status = cmid_create(l, listener_event, listener_gone, &cmid);

    if (status != ND_SUCCESS)
        return status;
    listener_ref(l);
    if (rdma_bind_addr(cmid->id, &address->sa) != 0) {
        status = address_info(errno, status_from_bind_errno(errno, true, address_port(&address->sa)), "rdma_bind_addr",
                              &address->sa);
    } else if (!cmid->id->verbs) {
        status = ND_INVALID_ADDRESS;
    }
    if (status != ND_SUCCESS) {
        cmid_destroy(cmid);
        return status;
    }
    address_set_port(&address->sa, ntohs(rdma_get_src_port(cmid->id)));
    l->id[l->ids++] = cmid;
    return ND_SUCCESS;
}

/* One id per address of the adapter, all on one port; rdma_cm's own wildcard would span every device. */
static NTSTATUS bind_each_locked(struct listener *l, const struct address_list *list, uint16_t *port)
{
    NTSTATUS status = ND_INVALID_ADDRESS;

    for (size_t i = 0; i < list->count; i++) {
        const struct address_entry *entry = &list->entries[i];
        union address address = entry->address;

        if (entry->reason || !adapter_of_id(l, entry->adapter_id) || address.sa.sa_family != l->local.sa.sa_family)
            continue;
        address_set_port(&address.sa, *port);
        status = bind_one_locked(l, &address);
        if (status != ND_SUCCESS)
            return status;
        *port = address_port(&address.sa);
    }
    return status;
}

static NTSTATUS bind_all_locked(struct listener *l)
{
    struct address_list *list = address_list_get();
    uint16_t wanted = address_port(&l->local.sa), port = wanted;
    NTSTATUS status = ND_NO_MEMORY;

    if (!list)
        return ND_NO_MEMORY;
    for (int i = 0; i < PORT_TRIES; i++) {
        port = wanted;
        l->id = calloc(list->count + 1, sizeof(struct cmid *));
        status = l->id ? bind_each_locked(l, list, &port) : ND_NO_MEMORY;
        if (status == ND_SUCCESS || wanted || status != ND_SHARING_VIOLATION)
            break;
        drop_ids_locked(l); /* the port chosen for the first address is taken on another one */
    }
    address_set_port(&l->local.sa, port);
    address_list_put(list);
    return status;
}

static NTSTATUS bind_locked(struct listener *l)
{
    union address address = l->local;
    struct address_entry entry;
    NTSTATUS status;

    if (address_is_any(&address.sa))
        return bind_all_locked(l);
    status = address_find_own(&address, &entry);
    if (status != ND_SUCCESS)
        return status;
    if (!adapter_of_id(l, entry.adapter_id))
        return ND_INVALID_ADDRESS;
    l->id = calloc(1, sizeof(struct cmid *));
    if (!l->id)
        return ND_NO_MEMORY;
    status = bind_one_locked(l, &address);
    l->local = address;
    return status;
}

static NTSTATUS bind_once(struct listener *l, const union address *local)
{
    NTSTATUS status;

    pthread_mutex_lock(&l->lock);
    if (l->ids || l->released || l->removed) {
        status = STATUS_ADDRESS_ALREADY_ASSOCIATED;
    } else {
        l->local = *local;
        status = bind_locked(l);
        if (status == ND_SUCCESS) {
            pthread_mutex_lock(&bound_lock);
            list_add_tail(&bound, &l->bound_link);
            pthread_mutex_unlock(&bound_lock);
        } else {
            drop_ids_locked(l);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

NTSTATUS listener_bind(struct listener *l, const struct sockaddr *address, size_t length)
{
    NTSTATUS status;
    union address local;
    uint64_t mark = cmid_mark();

    if (gone(l))
        return ND_DEVICE_REMOVED;
    status = address_import(address, length, &local);
    if (status != ND_SUCCESS)
        return status;
    status = bind_once(l, &local);
    /* The port's last owner may be ours and on its way out: a server that opens its listener anew at once. */
    if (status == ND_SHARING_VIOLATION && cmid_settle(mark))
        status = bind_once(l, &local);
    return status;
}

NTSTATUS listener_listen(struct listener *l, uint32_t backlog)
{
    NTSTATUS status = ND_SUCCESS;
    uint64_t limit = (uint64_t)backlog + tunables()->listen_queue_max;

    if (gone(l))
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&l->lock);
    if (!l->ids || l->listening || l->released) {
        status = ND_INVALID_DEVICE_STATE;
        goto out;
    }
    l->limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    for (uint32_t i = 0; i < l->ids; i++) {
        /* 0: the most the kernel allows. What overflows there is dropped without a word, so requests are taken from it
         * at once and counted here. */
        if (rdma_listen(l->id[i]->id, 0) == 0)
            continue;
        status = status_info(errno, status_from_bind_errno(errno, true, address_port(&l->local.sa)), "rdma_listen");
        if (i > 0)
            drop_ids_locked(l); /* some listen already and cannot go back: the listener is of no further use */
        goto out;
    }
    l->listening = true;
out:
    pthread_mutex_unlock(&l->lock);
    return status;
}

NTSTATUS listener_get_local_address(struct listener *l, struct sockaddr *buffer, ULONG *length)
{
    NTSTATUS status = ND_INVALID_DEVICE_STATE;
    ULONG need, room;

    if (engine_dead()) {
        if (length)
            *length = 0;
        return ND_DEVICE_REMOVED;
    }
    if (!length)
        return ND_INVALID_PARAMETER_2;
    pthread_mutex_lock(&l->lock);
    room = buffer ? *length : 0;
    *length = 0;
    if (l->ids) {
        need = (ULONG)address_length(&l->local.sa);
        *length = need;
        status = room < need ? ND_BUFFER_OVERFLOW : ND_SUCCESS;
        if (status == ND_SUCCESS)
            memcpy(buffer, &l->local, need);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* ---- Ends ---- */

void listener_release(struct listener *l)
{
    if (engine_dead())
        return;
    pthread_mutex_lock(&l->lock);
    l->released = true;
    cancel_waiting_locked(l, ND_CANCELED);
    drop_inquiries_locked(l);
    drop_ids_locked(l);
    pthread_mutex_unlock(&l->lock);
}

static void device_removed(void *object, void *arg)
{
    struct listener *l = object;
    bool concerned = false;

    for (size_t i = 0; i < l->adapter_count; i++)
        concerned |= l->adapters[i]->device == arg;
    if (concerned) {
        pthread_mutex_lock(&l->lock);
        remove_locked(l, arg);
        pthread_mutex_unlock(&l->lock);
    }
    listener_unref(l);
}

void listener_device_removed(struct device *device)
{
    cm_entry_each(CM_LISTENER, device_removed, device);
}
