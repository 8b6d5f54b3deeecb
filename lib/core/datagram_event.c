/* SPDX-License-Identifier: MIT */
#include "datagram_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "log.h"
#include "ndstatus.h"
#include "status.h"
#include "tunable.h"

void datagram_finish_locked(struct request *request, NTSTATUS status)
{
    list_del(&request->link);
    request_complete(request, status, 0);
}

static void finish_lookup_locked(struct datagram *d, NTSTATUS status)
{
    list_for_each_safe (node, &d->pending) {
        struct request *request = list_entry(node, struct request, link);

        if (request->tag == DATAGRAM_OP_LOOKUP)
            datagram_finish_locked(request, status);
    }
}

void datagram_share_port(struct cmid *cmid)
{
    int on = 1;

    if (rdma_set_option(cmid->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) != 0)
        log_debug("rdma_set_option REUSEADDR: %s", strerror(errno));
}

/* librdmacm keeps a record of a group until it is left, also of one that could not be joined, and beyond the end of the id. The
 * call waits until the group's events are acknowledged, which happens before they are dispatched: never for us. */
int datagram_drop_group_locked(struct datagram *d, struct datagram_group *group)
{
    int error = 0;

    list_del(&group->link);
    if (d->cmid && rdma_leave_multicast(d->cmid->id, &group->address.sa) != 0) {
        error = errno;
        log_info("rdma_leave_multicast: %s", strerror(error));
    }
    free(group);
    return error;
}

static void drop_groups_locked(struct datagram *d)
{
    while (!list_empty(&d->groups)) {
        struct datagram_group *group = list_entry(d->groups.next, struct datagram_group, link);

        if (group->request)
            datagram_finish_locked(group->request, ND_CANCELED);
        (void)datagram_drop_group_locked(d, group);
    }
}

/* The id has had its one attempt, and its groups go with it; the next lookup makes another one, maybe before this one is gone. */
void datagram_lookup_failed_locked(struct datagram *d, NTSTATUS status)
{
    d->state = DATAGRAM_IDLE;
    drop_groups_locked(d);
    if (d->cmid && d->bound)
        datagram_share_port(d->cmid);
    if (d->cmid)
        cmid_destroy(d->cmid);
    d->cmid = NULL;
    finish_lookup_locked(d, status);
}

static void take_data(struct datagram *d, const struct cm_event *event)
{
    d->data_length = event->data_length < DATAGRAM_DATA_MAX ? event->data_length : DATAGRAM_DATA_MAX;
    memset(d->data, 0, sizeof(d->data));
    memcpy(d->data, event->data, d->data_length);
}

/* ---- looking up ---- */

static void resolve_route(struct datagram *d)
{
    if (rdma_resolve_route(d->cmid->id, (int)tunables()->resolve_timeout_ms) == 0)
        d->state = DATAGRAM_ROUTE;
    else
        datagram_lookup_failed_locked(d, status_from_route_errno(errno));
}

static void send_lookup(struct datagram *d)
{
    struct rdma_conn_param param;

    memset(&param, 0, sizeof(param));
    param.private_data = d->data_length ? d->data : NULL;
    param.private_data_len = (uint8_t)d->data_length;
    if (rdma_connect(d->cmid->id, &param) == 0) {
        d->state = DATAGRAM_LOOKUP_OUT;
    } else {
        datagram_lookup_failed_locked(
            d, status_info(errno, status_from_connect_errno(errno), "rdma_connect of a datagram id"));
    }
}

static void found(struct datagram *d, const struct cm_event *event)
{
    take_data(d, event);
    d->path.ah_attr = event->ah_attr;
    d->path.qp_num = event->qp_num;
    d->path.qkey = event->qkey;
    d->known = true;
    d->state = DATAGRAM_DONE;
    finish_lookup_locked(d, ND_SUCCESS);
}

/* UNREACHABLE is a time-out, or the answer that nobody is there or wants to. */
static NTSTATUS unreachable_status(const struct cm_event *event)
{
    return event->status == -ETIMEDOUT ? ND_IO_TIMEOUT : ND_CONNECTION_REFUSED;
}

/* ---- groups ---- */

static struct datagram_group *find_group_locked(struct datagram *d, const void *group)
{
    list_for_each (node, &d->groups) {
        struct datagram_group *each = list_entry(node, struct datagram_group, link);

        if (each == group)
            return each;
    }
    return NULL;
}

static void group_event_locked(struct datagram *d, const struct cm_event *event)
{
    struct datagram_group *group = find_group_locked(d, event->group);

    if (!group)
        return;
    group->joined = event->type == RDMA_CM_EVENT_MULTICAST_JOIN && event->status == 0;
    if (group->joined) {
        group->path.ah_attr = event->ah_attr;
        group->path.qp_num = event->qp_num;
        group->path.qkey = event->qkey;
    }
    if (group->request)
        datagram_finish_locked(group->request, group->joined                   ? ND_SUCCESS
                                               : event->status == -ENETUNREACH ? ND_HOST_UNREACHABLE
                                                                               : ND_INVALID_ADDRESS);
    group->request = NULL;
    if (!group->joined)
        (void)datagram_drop_group_locked(d, group);
}

/* ---- listening ---- */

void datagram_turn_away(struct cmid *child)
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

/* Unlinked first: as soon as the target is as new, another thread may have it wait elsewhere. */
static struct request *unlink_locked(struct datagram *target)
{
    struct request *request = target->queued;

    list_del(&target->wait_link);
    target->queued = NULL;
    return request;
}

void datagram_withdraw_locked(struct datagram *target, NTSTATUS status)
{
    struct request *request = unlink_locked(target);

    pthread_mutex_lock(&target->lock);
    if (target->state == DATAGRAM_QUEUED)
        target->state = DATAGRAM_IDLE;
    target->listener = NULL;
    pthread_mutex_unlock(&target->lock);
    request_complete(request, status, 0);
    datagram_unref(target);
}

static bool take_request(struct datagram *target, struct cmid *child, const struct cm_event *event)
{
    bool taken;

    pthread_mutex_lock(&target->lock);
    taken = target->state == DATAGRAM_QUEUED;
    if (taken) {
        cmid_give(child, datagram_ref(target), datagram_event, datagram_gone);
        target->cmid = child;
        target->state = DATAGRAM_REQUEST_IN;
        target->listener = NULL;
        memcpy(&target->local, rdma_get_local_addr(child->id), address_length(rdma_get_local_addr(child->id)));
        memcpy(&target->peer, rdma_get_peer_addr(child->id), address_length(rdma_get_peer_addr(child->id)));
        take_data(target, event);
    }
    pthread_mutex_unlock(&target->lock);
    return taken;
}

bool datagram_give_locked(struct datagram *d, struct cmid *child, const struct cm_event *event)
{
    while (!list_empty(&d->waiting)) {
        struct datagram *target = list_entry(d->waiting.next, struct datagram, wait_link);
        struct request *request = unlink_locked(target);
        bool taken = take_request(target, child, event);

        request_complete(request, taken ? ND_SUCCESS : ND_CANCELED, 0);
        datagram_unref(target);
        if (taken)
            return true;
    }
    return false;
}

static bool keep_locked(struct datagram *d, struct cmid *child, const struct cm_event *event)
{
    struct datagram_inquiry *inquiry = d->queued_count < d->queue_limit ? malloc(sizeof(*inquiry)) : NULL;

    if (!inquiry)
        return false;
    inquiry->cmid = child;
    inquiry->event = *event;
    list_add_tail(&d->inquiries, &inquiry->link);
    d->queued_count++;
    return true;
}

static void request_came(struct datagram *d, const struct cm_event *event)
{
    struct cmid *child = cmid_adopt(event->new_id, NULL, child_event, NULL);

    if (!child) {
        cmid_destroy_raw(event->new_id);
        return;
    }
    pthread_mutex_lock(&d->lock);
    if (d->state == DATAGRAM_LISTENING && (datagram_give_locked(d, child, event) || keep_locked(d, child, event)))
        child = NULL;
    pthread_mutex_unlock(&d->lock);
    if (child)
        datagram_turn_away(child);
}

/* ---- the end, events ---- */

void datagram_drop_locked(struct datagram *d, NTSTATUS status)
{
    struct list *node;

    while (!list_empty(&d->pending))
        datagram_finish_locked(list_entry(d->pending.next, struct request, link), status);
    list_for_each (group, &d->groups)
        list_entry(group, struct datagram_group, link)->request = NULL;
    while (!list_empty(&d->waiting))
        datagram_withdraw_locked(list_entry(d->waiting.next, struct datagram, wait_link), status);
    while ((node = list_pop(&d->inquiries)) != NULL) {
        struct datagram_inquiry *inquiry = list_entry(node, struct datagram_inquiry, link);

        datagram_turn_away(inquiry->cmid);
        free(inquiry);
    }
    d->queued_count = 0;
    drop_groups_locked(d);
    if (d->cmid)
        cmid_destroy(d->cmid);
    d->cmid = NULL;
    d->state = DATAGRAM_OVER;
}

static void removed_locked(struct datagram *d)
{
    d->removed = true;
    datagram_drop_locked(d, ND_DEVICE_REMOVED);
}

static void device_removed(void *object, void *arg)
{
    struct datagram *d = object;

    pthread_mutex_lock(&d->lock);
    list_for_each_safe (node, &d->inquiries) {
        struct datagram_inquiry *inquiry = list_entry(node, struct datagram_inquiry, link);

        if (!cmid_is_on(inquiry->cmid, arg))
            continue;
        list_del(&inquiry->link);
        d->queued_count--;
        datagram_turn_away(inquiry->cmid);
        free(inquiry);
    }
    if (d->cmid && cmid_is_on(d->cmid, arg))
        removed_locked(d);
    pthread_mutex_unlock(&d->lock);
    datagram_unref(d);
}

void datagram_device_removed(struct device *device)
{
    cm_entry_each(CM_DATAGRAM, device_removed, device);
}

static void event_locked(struct datagram *d, const struct cm_event *event)
{
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (d->state == DATAGRAM_ADDRESS)
            resolve_route(d);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
        if (d->state == DATAGRAM_ADDRESS)
            datagram_lookup_failed_locked(d, ND_HOST_UNREACHABLE);
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        if (d->state == DATAGRAM_ROUTE)
            send_lookup(d);
        break;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        if (d->state == DATAGRAM_ROUTE)
            datagram_lookup_failed_locked(d, ND_HOST_UNREACHABLE);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (d->state == DATAGRAM_LOOKUP_OUT)
            found(d, event);
        break;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
        if (d->state == DATAGRAM_LOOKUP_OUT)
            datagram_lookup_failed_locked(d, unreachable_status(event));
        break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
    case RDMA_CM_EVENT_MULTICAST_ERROR:
        group_event_locked(d, event);
        break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        removed_locked(d);
        break;
    default:
        break;
    }
}

void datagram_event(struct cmid *cmid, const struct cm_event *event)
{
    struct datagram *d = cmid->owner;

    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        request_came(d, event);
        return;
    }
    pthread_mutex_lock(&d->lock);
    if (d->cmid == cmid)
        event_locked(d, event);
    pthread_mutex_unlock(&d->lock);
}

void datagram_gone(struct cmid *cmid)
{
    datagram_unref(cmid->owner);
}
