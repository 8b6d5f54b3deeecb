/* SPDX-License-Identifier: MIT */
#include "datagram_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "status.h"
#include "tunable.h"

NTSTATUS datagram_create(struct file *file, struct datagram **out)
{
    struct datagram *d;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    d = calloc(1, sizeof(*d));
    if (!d)
        return ND_NO_MEMORY;
    pthread_mutex_init(&d->lock, NULL);
    d->refs = 1;
    d->file = file_ref(file);
    list_init(&d->pending);
    list_init(&d->groups);
    list_init(&d->waiting);
    list_init(&d->inquiries);
    list_init(&d->wait_link);
    cm_entry_add(&d->entry, CM_DATAGRAM, d, d, &d->refs);
    *out = d;
    return ND_SUCCESS;
}

struct datagram *datagram_ref(struct datagram *datagram)
{
    __atomic_add_fetch(&datagram->refs, 1, __ATOMIC_RELAXED);
    return datagram;
}

void datagram_unref(struct datagram *datagram)
{
    if (__atomic_sub_fetch(&datagram->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    cm_entry_del(&datagram->entry);
    file_unref(datagram->file);
    pthread_mutex_destroy(&datagram->lock);
    free(datagram);
}

static NTSTATUS out_of_turn(const struct datagram *d)
{
    return d->removed ? ND_DEVICE_REMOVED : ND_NOT_SUPPORTED;
}

/* ---- cancelling ---- */

static void forget_join_locked(struct datagram *d, const struct request *request)
{
    list_for_each (node, &d->groups) {
        struct datagram_group *group = list_entry(node, struct datagram_group, link);

        /* The join itself goes on: leaving it is the application's matter, as with a cancelled connect. */
        if (group->request == request)
            group->request = NULL;
    }
}

static void cancel_one_locked(struct datagram *d, struct request *request)
{
    if (request->tag == DATAGRAM_OP_LOOKUP)
        datagram_lookup_failed_locked(d, ND_CANCELED);
    else
        forget_join_locked(d, request);
    if (list_linked(&request->link))
        datagram_finish_locked(request, ND_CANCELED);
}

static void cancel_request(struct request *request)
{
    struct datagram *d = cm_entry_find(CM_DATAGRAM, request->owner);

    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    if (list_linked(&request->link))
        cancel_one_locked(d, request);
    pthread_mutex_unlock(&d->lock);
    datagram_unref(d);
}

static void cancel_waiting(struct request *request)
{
    struct datagram *d = cm_entry_find(CM_DATAGRAM, request->owner);

    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    list_for_each_safe (node, &d->waiting) {
        struct datagram *target = list_entry(node, struct datagram, wait_link);

        if (target->queued == request) {
            datagram_withdraw_locked(target, ND_CANCELED);
            break;
        }
    }
    pthread_mutex_unlock(&d->lock);
    datagram_unref(d);
}

NTSTATUS datagram_cancel(struct datagram *d)
{
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&d->lock);
    while (!list_empty(&d->pending))
        cancel_one_locked(d, list_entry(d->pending.next, struct request, link));
    while (!list_empty(&d->waiting))
        datagram_withdraw_locked(list_entry(d->waiting.next, struct datagram, wait_link), ND_CANCELED);
    pthread_mutex_unlock(&d->lock);
    return ND_SUCCESS;
}

void datagram_release(struct datagram *d)
{
    struct datagram *listener;

    if (engine_dead())
        return;
    pthread_mutex_lock(&d->lock);
    listener = d->state == DATAGRAM_QUEUED && d->listener ? datagram_ref(d->listener) : NULL;
    if (d->state == DATAGRAM_REQUEST_IN && rdma_reject(d->cmid->id, NULL, 0) != 0)
        log_debug("rdma_reject: %s", strerror(errno));
    datagram_drop_locked(d, ND_CANCELED);
    pthread_mutex_unlock(&d->lock);
    if (!listener)
        return;
    pthread_mutex_lock(&listener->lock);
    if (list_linked(&d->wait_link))
        datagram_withdraw_locked(d, ND_CANCELED);
    pthread_mutex_unlock(&listener->lock);
    datagram_unref(listener);
}

/* ---- addresses ---- */

/* An id, bound if the application has bound the endpoint. */
static NTSTATUS ensure_id_locked(struct datagram *d)
{
    union address local = d->local;
    struct cmid *cmid;
    NTSTATUS status;

    if (d->cmid)
        return ND_SUCCESS;
    status = cmid_create_udp(d, datagram_event, datagram_gone, &cmid);
    if (status != ND_SUCCESS)
        return status == ND_DEVICE_NOT_READY ? ND_INSUFFICIENT_RESOURCES : status;
    datagram_ref(d);
    if (d->bound)
        datagram_share_port(cmid);
    if (d->bound && rdma_bind_addr(cmid->id, &local.sa) != 0) {
        status = address_info(errno, status_from_bind_errno(errno, true, address_port(&local.sa)), "rdma_bind_addr",
                              &local.sa);
        cmid_destroy(cmid);
        return status;
    }
    d->cmid = cmid;
    return ND_SUCCESS;
}

static NTSTATUS bind_locked(struct datagram *d, const union address *address)
{
    union address local = *address;
    struct cmid *cmid;
    NTSTATUS status;

    if (d->state != DATAGRAM_IDLE || d->bound || d->cmid)
        return out_of_turn(d);
    status = cmid_create_udp(d, datagram_event, datagram_gone, &cmid);
    if (status != ND_SUCCESS)
        return status == ND_DEVICE_NOT_READY ? ND_INSUFFICIENT_RESOURCES : status;
    datagram_ref(d);
    if (rdma_bind_addr(cmid->id, &local.sa) != 0) {
        status = address_info(errno, status_from_bind_errno(errno, true, address_port(&local.sa)), "rdma_bind_addr",
                              &local.sa);
        cmid_destroy(cmid);
        return status;
    }
    address_set_port(&local.sa, ntohs(rdma_get_src_port(cmid->id)));
    d->local = local;
    d->bound = true;
    d->cmid = cmid;
    return ND_SUCCESS;
}

NTSTATUS datagram_bind(struct datagram *d, const union address *address)
{
    union address local = *address;
    uint64_t mark = cmid_mark();
    struct address_entry entry;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!address_is_any(&address->sa)) {
        status = address_find_own(&local, &entry);
        if (status != ND_SUCCESS)
            return status;
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&d->lock);
        status = bind_locked(d, &local);
        pthread_mutex_unlock(&d->lock);
        /* The port's last owner may be ours and on its way out. */
        if (status != ND_SHARING_VIOLATION || attempt || !cmid_settle(mark))
            break;
    }
    return status;
}

static NTSTATUS listen_locked(struct datagram *d, uint64_t limit)
{
    NTSTATUS status = d->state == DATAGRAM_IDLE && d->bound ? ensure_id_locked(d) : out_of_turn(d);

    if (status != ND_SUCCESS)
        return status;
    if (rdma_listen(d->cmid->id, 0) != 0) {
        return status_info(errno, status_from_bind_errno(errno, true, address_port(&d->local.sa)), "rdma_listen");
    }
    d->queue_limit = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
    d->state = DATAGRAM_LISTENING;
    return ND_SUCCESS;
}

NTSTATUS datagram_listen(struct datagram *d, uint32_t backlog)
{
    uint64_t limit = (uint64_t)backlog + tunables()->listen_queue_max, mark = cmid_mark();
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&d->lock);
        status = listen_locked(d, limit);
        pthread_mutex_unlock(&d->lock);
        /* The id of a lookup that failed may still have the port, and who listens shares it with nobody. */
        if (status != ND_SHARING_VIOLATION || attempt || !cmid_settle(mark))
            break;
    }
    return status;
}

/* ---- requests ---- */

static NTSTATUS queue(struct datagram *target, struct datagram *listener)
{
    NTSTATUS status = ND_CONNECTION_ACTIVE;

    pthread_mutex_lock(&target->lock);
    if (target->state == DATAGRAM_IDLE && !target->bound && !target->cmid) {
        target->state = DATAGRAM_QUEUED;
        target->listener = listener; /* which takes it back before it goes */
        status = ND_SUCCESS;
    }
    pthread_mutex_unlock(&target->lock);
    return status;
}

NTSTATUS datagram_get_request(struct datagram *d, struct datagram *target, OVERLAPPED *ov)
{
    struct datagram_inquiry *inquiry;
    struct request *request;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (d == target)
        return ND_CONNECTION_ACTIVE;
    pthread_mutex_lock(&d->lock);
    status = d->state == DATAGRAM_LISTENING ? request_alloc(d->file, ov, cancel_waiting, d, &request) : out_of_turn(d);
    if (status != ND_SUCCESS)
        goto out;
    status = queue(target, d);
    if (status != ND_SUCCESS) {
        request_discard(request);
        goto out;
    }
    request_start(request);
    target->queued = request;
    datagram_ref(target);
    list_add_tail(&d->waiting, &target->wait_link);
    if (!list_empty(&d->inquiries)) {
        inquiry = list_entry(list_pop(&d->inquiries), struct datagram_inquiry, link);
        d->queued_count--;
        if (!datagram_give_locked(d, inquiry->cmid, &inquiry->event))
            datagram_turn_away(inquiry->cmid);
        free(inquiry);
    }
    status = ND_PENDING;
out:
    pthread_mutex_unlock(&d->lock);
    return status;
}

NTSTATUS datagram_lookup(struct datagram *d, const union address *dest, const void *data, size_t length, OVERLAPPED *ov)
{
    union address target = *dest;
    struct request *request;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (length > DATAGRAM_DATA_MAX)
        return ND_INVALID_BUFFER_SIZE;
    if (length && !data)
        return ND_INVALID_PARAMETER;
    pthread_mutex_lock(&d->lock);
    status = d->state == DATAGRAM_IDLE ? request_alloc(d->file, ov, cancel_request, d, &request) : out_of_turn(d);
    if (status != ND_SUCCESS)
        goto out;
    status = ensure_id_locked(d);
    if (status == ND_SUCCESS &&
        rdma_resolve_addr(d->cmid->id, NULL, &target.sa, (int)tunables()->resolve_timeout_ms) != 0) {
        status = address_info(errno, status_from_resolve_errno(errno), "rdma_resolve_addr", &target.sa);
    }
    if (status != ND_SUCCESS) {
        request_discard(request);
        goto out;
    }
    d->peer = target;
    d->known = false;
    d->data_length = (uint16_t)length;
    if (length)
        memcpy(d->data, data, length);
    d->state = DATAGRAM_ADDRESS;
    request->tag = DATAGRAM_OP_LOOKUP;
    request_start(request);
    list_add_tail(&d->pending, &request->link);
    status = ND_PENDING;
out:
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* SIDR's answer is one message: accepting is over when it is sent. */
NTSTATUS datagram_accept(struct datagram *d, uint32_t qp_num, const void *data, size_t length, OVERLAPPED *ov)
{
    struct rdma_conn_param param;
    struct request *request;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (length > DATAGRAM_DATA_MAX)
        return ND_INVALID_BUFFER_SIZE;
    memset(&param, 0, sizeof(param));
    param.qp_num = qp_num;
    param.private_data = length ? data : NULL;
    param.private_data_len = (uint8_t)length;
    pthread_mutex_lock(&d->lock);
    status = d->state == DATAGRAM_REQUEST_IN ? request_alloc(d->file, ov, cancel_request, d, &request) : out_of_turn(d);
    if (status != ND_SUCCESS)
        goto out;
    if (rdma_accept(d->cmid->id, &param) != 0) {
        status = status_info(errno, ND_CONNECTION_ABORTED, "rdma_accept of a datagram id");
        request_discard(request);
        datagram_drop_locked(d, ND_CONNECTION_ABORTED);
        goto out;
    }
    d->state = DATAGRAM_DONE;
    request_start(request);
    request_complete(request, ND_SUCCESS, 0);
    status = ND_PENDING;
out:
    pthread_mutex_unlock(&d->lock);
    return status;
}

NTSTATUS datagram_reject(struct datagram *d, const void *data, size_t length)
{
    NTSTATUS status = ND_SUCCESS;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (length > DATAGRAM_DATA_MAX)
        return ND_INVALID_BUFFER_SIZE;
    if (length && !data)
        return ND_INVALID_PARAMETER;
    pthread_mutex_lock(&d->lock);
    if (d->state != DATAGRAM_REQUEST_IN) {
        status = out_of_turn(d);
    } else {
        if (rdma_reject(d->cmid->id, length ? data : NULL, (uint8_t)length) != 0) {
            status = status_info(errno, ND_CONNECTION_ABORTED, "rdma_reject of a datagram id");
        }
        datagram_drop_locked(d, ND_CANCELED);
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* ---- multicast ---- */

static struct datagram_group *find_group_locked(struct datagram *d, const union address *address)
{
    list_for_each (node, &d->groups) {
        struct datagram_group *group = list_entry(node, struct datagram_group, link);

        if (address_equal(&group->address.sa, &address->sa))
            return group;
    }
    return NULL;
}

static NTSTATUS join_status(int error)
{
    if (error == ENOSYS || error == EOPNOTSUPP)
        return ND_NOT_SUPPORTED;
    return error == EINVAL || error == EADDRNOTAVAIL ? ND_INVALID_ADDRESS : status_from_create_errno(error);
}

static NTSTATUS join_locked(struct datagram *d, const union address *address, struct datagram_group *group)
{
    group->address = *address;
    /* The event may be dispatched before the call returns; it waits for our lock. */
    if (rdma_join_multicast(d->cmid->id, &group->address.sa, group) == 0) {
        list_add_tail(&d->groups, &group->link);
        return ND_SUCCESS;
    }
    return status_info(errno, join_status(errno), "rdma_join_multicast");
}

NTSTATUS datagram_join(struct datagram *d, const union address *address, OVERLAPPED *ov)
{
    struct datagram_group *group;
    struct request *request = NULL;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    group = calloc(1, sizeof(*group));
    if (!group)
        return ND_NO_MEMORY;
    pthread_mutex_lock(&d->lock);
    /* Without a device there is nothing to join on. */
    status = d->state == DATAGRAM_IDLE && d->bound ? ensure_id_locked(d) : out_of_turn(d);
    if (status == ND_SUCCESS && !d->cmid->id->verbs)
        status = out_of_turn(d);
    if (status == ND_SUCCESS && find_group_locked(d, address))
        status = ND_ADDRESS_ALREADY_EXISTS;
    if (status == ND_SUCCESS)
        status = request_alloc(d->file, ov, cancel_request, d, &request);
    if (status == ND_SUCCESS) {
        status = join_locked(d, address, group);
        if (status != ND_SUCCESS)
            request_discard(request);
    }
    if (status == ND_SUCCESS) {
        request->tag = DATAGRAM_OP_JOIN;
        request_start(request);
        list_add_tail(&d->pending, &request->link);
        group->request = request;
        group = NULL;
        status = ND_PENDING;
    }
    pthread_mutex_unlock(&d->lock);
    free(group);
    return status;
}

NTSTATUS datagram_leave(struct datagram *d, const union address *address)
{
    struct datagram_group *group;
    NTSTATUS status = ND_INVALID_ADDRESS;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&d->lock);
    group = find_group_locked(d, address);
    if (!group) {
        status = d->removed ? ND_DEVICE_REMOVED : ND_INVALID_ADDRESS;
    } else {
        int error;

        if (group->request)
            datagram_finish_locked(group->request, ND_CANCELED);
        error = datagram_drop_group_locked(d, group);
        status = error ? status_from_create_errno(error) : ND_SUCCESS;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* ---- what is known ---- */

void datagram_query(struct datagram *d, const union address *peer, struct datagram_info *info)
{
    const struct datagram_path *path = NULL;
    const struct datagram_group *group;
    const struct rdma_cm_id *id;

    memset(info, 0, sizeof(*info));
    pthread_mutex_lock(&d->lock);
    id = d->cmid ? d->cmid->id : NULL;
    group = peer && peer->sa.sa_family ? find_group_locked(d, peer) : NULL;
    info->local = d->local;
    info->peer = d->peer;
    if (group && group->joined) {
        info->peer = group->address;
        path = &group->path;
    } else if (d->known) {
        path = &d->path;
    }
    if (id && id->verbs) {
        info->device_guid = ibv_get_device_guid(id->verbs->device);
        info->port = id->port_num;
        info->pkey = id->route.addr.addr.ibaddr.pkey ? id->route.addr.addr.ibaddr.pkey : 0xffff;
    }
    if (path) {
        info->known = true;
        info->ah_attr = path->ah_attr;
        info->qp_num = path->qp_num;
        info->qkey = path->qkey;
        info->source_known =
            path->ah_attr.is_global && id && id->verbs &&
            ibv_query_gid(id->verbs, path->ah_attr.port_num, path->ah_attr.grh.sgid_index, &info->source) == 0;
    }
    if ((d->known || d->state == DATAGRAM_REQUEST_IN || d->state == DATAGRAM_DONE) && !(group && group->joined)) {
        info->data_length = d->data_length;
        memcpy(info->data, d->data, d->data_length);
    }
    pthread_mutex_unlock(&d->lock);
}
