/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/log.h"
#include "core/status.h"
#include "core/tunable.h"

/* Listening. Several ids may listen to one service id if they compare different things, but the kernel knows one
 * listener per address and port: a service is that listener, and its requests go to the id whose comparison they meet. */
struct service {
    struct list link;    /* in `services`, while an id listens and the device is there */
    uint32_t refs;       /* one for the ids that listen, one for each cmid */
    union address local; /* with port; the wildcard of IPv4 stands for both families */
    struct cmid *cmid[2];
    unsigned int cmids;
    struct list listens; /* cm_id.listen_link */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list services = { &services, &services };

static void service_unref(struct service *service)
{
    if (__atomic_sub_fetch(&service->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(service);
}

/* ---- Requests ---- */

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

static bool same_ip(const struct sockaddr *is, const ib_net32_t wanted[4], uint8_t ipv)
{
    if (ipv == IB_REQ_CM_RDMA_IPV6)
        return is->sa_family == AF_INET6 && !memcmp(&((const struct sockaddr_in6 *)is)->sin6_addr, wanted, 16);
    return is->sa_family == AF_INET && ((const struct sockaddr_in *)is)->sin_addr.s_addr == wanted[3];
}

/* A header names one, whatever else of it is compared. */
static bool same_version(const struct sockaddr *is, uint8_t ipv)
{
    return !ipv || is->sa_family == (ipv == IB_REQ_CM_RDMA_IPV6 ? AF_INET6 : AF_INET);
}

static bool meets(const struct cm_id *id, struct rdma_cm_id *child)
{
    const ib_cm_rdma_req_t *compare = &id->compare;
    const struct sockaddr *source = rdma_get_peer_addr(child), *destination = rdma_get_local_addr(child);

    if (!same_version(destination, compare->ipv))
        return false;
    if ((id->compare_mask & IB_REQ_CM_RDMA_CMP_SRC_PORT) && compare->src_port != htons(address_port(source)))
        return false;
    if ((id->compare_mask & IB_REQ_CM_RDMA_CMP_SRC_IP) && !same_ip(source, compare->src_ip_addr, compare->ipv))
        return false;
    return !(id->compare_mask & IB_REQ_CM_RDMA_CMP_DST_IP) || same_ip(destination, compare->dst_ip_addr, compare->ipv);
}

/* One notification for any number of requests, until the client has seen the queue empty. */
static void notify_locked(struct cm_id *id)
{
    struct cm_message *message;

    if (id->told)
        return;
    message = message_take_locked(id, iba_cm_req_received);
    if (!message)
        return;
    id->told = true;
    message_deliver_locked(id, message);
}

static bool queue_request_locked(struct cm_id *id, struct cmid *child, const struct cm_event *event)
{
    struct cm_request *request;

    if (id->requests_queued >= tunables()->listen_queue_max) {
        log_info("a connection request is rejected: %u are waiting to be fetched", id->requests_queued);
        return false;
    }
    request = malloc(sizeof(*request));
    if (!request)
        return false;
    request->cmid = child;
    request->event = *event;
    list_add_tail(&id->requests, &request->link);
    id->requests_queued++;
    notify_locked(id);
    return true;
}

static bool give_locked(struct service *service, struct cmid *child, const struct cm_event *event)
{
    list_for_each (node, &service->listens) {
        struct cm_id *id = list_entry(node, struct cm_id, listen_link);
        bool taken;

        if (!meets(id, child->id))
            continue;
        cm_id_lock(id);
        taken = queue_request_locked(id, child, event);
        cm_id_unlock(id);
        return taken;
    }
    return false;
}

/* Requests on a device that is going are of no use, and the kernel waits for their ids. `device` NULL: all. */
static void drop_requests_locked(struct service *service, const struct device *device)
{
    list_for_each (node, &service->listens) {
        struct cm_id *id = list_entry(node, struct cm_id, listen_link);

        cm_id_lock(id);
        list_for_each_safe (link, &id->requests) {
            struct cm_request *request = list_entry(link, struct cm_request, link);

            if (device && !cmid_is_on(request->cmid, device))
                continue;
            list_del(&request->link);
            id->requests_queued--;
            cmid_destroy(request->cmid);
            free(request);
        }
        cm_id_unlock(id);
    }
}

static void device_gone_locked(struct service *service)
{
    list_del(&service->link); /* who listens from now on would hear nothing of it */
    while (service->cmids)
        cmid_destroy(service->cmid[--service->cmids]);
    drop_requests_locked(service, NULL);
}

/* The wildcards belong to no device and are not told. */
void service_device_removed(const struct device *device)
{
    pthread_mutex_lock(&lock);
    list_for_each (node, &services)
        drop_requests_locked(list_entry(node, struct service, link), device);
    pthread_mutex_unlock(&lock);
}

static void service_event(struct cmid *cmid, const struct cm_event *event)
{
    struct service *service = cmid->owner;
    struct cmid *child = NULL;

    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        child = cmid_adopt(event->new_id, NULL, child_event, NULL);
        if (!child)
            cmid_destroy_raw(event->new_id); /* the kernel rejects it */
    }
    pthread_mutex_lock(&lock);
    if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
        device_gone_locked(service);
    if (child && give_locked(service, child, event))
        child = NULL;
    pthread_mutex_unlock(&lock);
    if (child)
        turn_away(child);
}

static void service_gone(struct cmid *cmid)
{
    service_unref(cmid->owner);
}

/* ---- Listen ---- */

static int bind_and_listen(struct service *service, const union address *address)
{
    union address copy = *address;
    struct cmid *cmid;
    int on = 1, error = 0;

    if (cmid_create(service, service_event, service_gone, &cmid) != STATUS_SUCCESS)
        return ENOMEM;
    __atomic_add_fetch(&service->refs, 1, __ATOMIC_RELAXED);
    /* The wildcards of both families stand side by side only if each is content with its own. */
    if (rdma_set_option(cmid->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)) != 0)
        log_debug("rdma_set_option AFONLY: %s", strerror(errno));
    if (rdma_bind_addr(cmid->id, &copy.sa) != 0 || rdma_listen(cmid->id, 0) != 0)
        error = errno;
    if (error) {
        status_info(error, status_from_cm_errno(error), "rdma_bind_addr or rdma_listen");
        cmid_destroy(cmid);
        return error;
    }
    service->cmid[service->cmids++] = cmid;
    return 0;
}

/* The address is known to be one of a device, so what is not available is the port. */
static NTSTATUS start_locked(const union address *local, struct service **out)
{
    struct service *service = calloc(1, sizeof(*service));
    union address v6 = { .v6 = { .sin6_family = AF_INET6 } };
    int error;

    if (!service)
        return STATUS_NO_MEMORY;
    service->refs = 1;
    service->local = *local;
    list_init(&service->link);
    list_init(&service->listens);
    error = bind_and_listen(service, local);
    if (error) {
        service_unref(service);
        return error == EADDRNOTAVAIL ? STATUS_INVALID_PARAMETER : status_from_cm_errno(error);
    }
    if (address_is_any(&local->sa)) {
        address_set_port(&v6.sa, address_port(&local->sa));
        (void)bind_and_listen(service, &v6); /* a host may have no IPv6 */
    }
    list_add_tail(&services, &service->link);
    *out = service;
    return STATUS_SUCCESS;
}

/* What an id compares besides the local address, which the service stands for. */
static bool overlaps(const struct cm_id *a, const struct cm_id *b)
{
    const uint8_t source = IB_REQ_CM_RDMA_CMP_SRC_PORT | IB_REQ_CM_RDMA_CMP_SRC_IP;
    uint8_t both = a->compare_mask & b->compare_mask & source;

    if (a->compare.ipv && b->compare.ipv && a->compare.ipv != b->compare.ipv)
        return false;
    if ((both & IB_REQ_CM_RDMA_CMP_SRC_PORT) && a->compare.src_port != b->compare.src_port)
        return false;
    return !(both & IB_REQ_CM_RDMA_CMP_SRC_IP) ||
           !memcmp(a->compare.src_ip_addr, b->compare.src_ip_addr, sizeof(a->compare.src_ip_addr));
}

static NTSTATUS join_locked(struct cm_id *id, const union address *local)
{
    struct service *service = NULL;
    NTSTATUS status;

    list_for_each (node, &services) {
        struct service *other = list_entry(node, struct service, link);

        if (other->local.sa.sa_family == local->sa.sa_family && address_equal(&other->local.sa, &local->sa) &&
            address_port(&other->local.sa) == address_port(&local->sa))
            service = other;
    }
    if (service) {
        list_for_each (node, &service->listens) {
            if (overlaps(id, list_entry(node, struct cm_id, listen_link)))
                return STATUS_INVALID_PARAMETER;
        }
    } else {
        status = start_locked(local, &service);
        if (status != STATUS_SUCCESS)
            return status;
    }
    list_add_tail(&service->listens, &id->listen_link);
    id->service = service;
    return STATUS_SUCCESS;
}

static NTSTATUS try_listen(iba_cm_id *p_id, net64_t service_id, const union address *local,
                           const ib_cm_rdma_req_t *compare, uint8_t mask)
{
    struct cm_id *id;
    NTSTATUS status;

    pthread_mutex_lock(&lock);
    status = cm_id_enter(p_id, &id);
    if (status != STATUS_SUCCESS)
        goto out;
    status = cm_id_state_locked(id) == CM_IDLE ? message_reserve_locked(id) : STATUS_INVALID_DEVICE_STATE;
    if (status != STATUS_SUCCESS)
        goto leave;
    id->compare = *compare;
    id->compare_mask = mask;
    status = join_locked(id, local);
    if (status == STATUS_SUCCESS) {
        id->service_id = service_id;
        id->listening = true;
        id->told = false;
    }
leave:
    cm_id_leave(id);
out:
    pthread_mutex_unlock(&lock);
    return status;
}

/* The header to compare with, and the address to listen on. */
static NTSTATUS read_compare(const void *buffer, uint8_t length, uint8_t mask, ib_cm_rdma_req_t *compare,
                             union address *local)
{
    struct address_entry entry;
    union address source, destination;

    memset(compare, 0, sizeof(*compare));
    memset(local, 0, sizeof(*local));
    local->sa.sa_family = AF_INET;
    if (!buffer)
        return STATUS_SUCCESS;
    if (mask & ~(IB_REQ_CM_RDMA_CMP_SRC_PORT | IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP) ||
        !cm_header_read(buffer, length, &source, &destination))
        return STATUS_INVALID_PARAMETER;
    memcpy(compare, buffer, offsetof(ib_cm_rdma_req_t, pdata));
    if (!(mask & IB_REQ_CM_RDMA_CMP_DST_IP))
        return STATUS_SUCCESS;
    if (address_is_any(&destination.sa))
        return STATUS_INVALID_PARAMETER;
    *local = destination;
    return address_find_own(local, &entry);
}

NTSTATUS cm_listen(iba_cm_id *p_id, net64_t service_id, void *p_compare_buf, uint8_t compare_len,
                   uint8_t compare_offset)
{
    uint8_t mask = p_compare_buf ? compare_offset : 0;
    ib_cm_rdma_req_t compare;
    union address local;
    struct cm_id *id;
    uint64_t mark;
    NTSTATUS status = cm_id_enter(p_id, &id);
    uint16_t port;

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_leave(id);
    if (!cm_port_of_service(service_id, &port))
        return STATUS_NOT_SUPPORTED;
    if (!port)
        return STATUS_INVALID_PARAMETER;
    status = read_compare(p_compare_buf, compare_len, mask, &compare, &local);
    if (status != STATUS_SUCCESS)
        return status;
    address_set_port(&local.sa, port);
    mark = cmid_mark();
    status = try_listen(p_id, service_id, &local, &compare, mask);
    /* The port's last owner may be ours and on its way out: an id that listens anew at once. */
    if (status == STATUS_INVALID_PARAMETER && cmid_settle(mark))
        status = try_listen(p_id, service_id, &local, &compare, mask);
    return status;
}

/* There is nothing to fetch any more. */
static void forget_notification_locked(struct cm_id *id)
{
    list_for_each_safe (node, &id->events) {
        struct cm_message *message = list_entry(node, struct cm_message, link);

        if (message->event.type != iba_cm_req_received)
            continue;
        list_del(node);
        message_recycle_locked(id, message);
    }
    message_fd_update_locked(id);
}

static void stop_locked(struct cm_id *id, struct list *requests)
{
    struct service *service = id->service;

    list_del(&id->listen_link);
    id->service = NULL;
    if (list_empty(&service->listens)) {
        list_del(&service->link);
        while (service->cmids)
            cmid_destroy(service->cmid[--service->cmids]);
        service_unref(service);
    }
    cm_id_lock(id);
    list_splice_tail(requests, &id->requests);
    id->requests_queued = 0;
    id->listening = false;
    forget_notification_locked(id);
    cm_id_unlock(id);
}

void service_stop(struct cm_id *id)
{
    struct list requests;

    list_init(&requests);
    pthread_mutex_lock(&lock);
    if (id->service)
        stop_locked(id, &requests);
    pthread_mutex_unlock(&lock);
    while (!list_empty(&requests)) {
        struct cm_request *request = list_entry(list_pop(&requests), struct cm_request, link);

        turn_away(request->cmid);
        free(request);
    }
}

NTSTATUS cm_cancel_listen(iba_cm_id *p_id)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_unlock(id);
    service_stop(id);
    cm_id_unref(id);
    return STATUS_SUCCESS;
}

/* ---- Taking requests ---- */

/* STATUS_NO_MORE_ENTRIES makes the next request tell the client again. */
static NTSTATUS next_request(iba_cm_id *p_listen_id, struct cm_request **out, net64_t *service_id)
{
    struct cm_id *id;
    struct list *link;
    NTSTATUS status = cm_id_enter(p_listen_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!id->listening) {
        cm_id_leave(id);
        return STATUS_INVALID_DEVICE_STATE;
    }
    link = list_pop(&id->requests);
    if (link) {
        *out = list_entry(link, struct cm_request, link);
        *service_id = id->service_id;
        id->requests_queued--;
    } else {
        id->told = false;
        status = message_reserve_locked(id) == STATUS_SUCCESS ? STATUS_NO_MORE_ENTRIES : STATUS_NO_MEMORY;
    }
    cm_id_leave(id);
    return status;
}

/* `id` is new: nobody else knows it. */
static NTSTATUS take_request(struct cm_id *id, struct cm_request *request, iba_cm_event *event)
{
    struct adapter *adapter;
    NTSTATUS status = cm_adapter_get(rdma_get_local_addr(request->cmid->id), &adapter);

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_lock(id);
    status = message_reserve_locked(id);
    if (status == STATUS_SUCCESS) {
        connection_renew(&id->wire, adapter);
        connection_take(&id->wire, id->wire.adapter, request->cmid, &request->event);
        connection_set_ack_timeout(request->cmid, request->event.srq);
        id->data = CM_DATA_REQ;
        cm_req_event_fill_locked(id, &request->event, event);
    }
    cm_id_unlock(id);
    adapter_unref(adapter);
    return status;
}

static NTSTATUS get_request(iba_cm_id *p_listen_id, NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context,
                            bool lacks_callback, iba_cm_id **pp_id, iba_cm_event *p_event)
{
    struct cm_request *request;
    net64_t service_id;
    struct cm_id *id = NULL;
    NTSTATUS status;

    if (!pp_id || !p_event)
        return STATUS_INVALID_PARAMETER;
    status = next_request(p_listen_id, &request, &service_id);
    if (status != STATUS_SUCCESS)
        return status;
    status = cm_id_new(callback, context, &id);
    if (status == STATUS_SUCCESS) {
        id->service_id = service_id;
        id->lacks_callback = lacks_callback;
        status = take_request(id, request, p_event);
    }
    if (status == STATUS_SUCCESS) {
        *pp_id = &id->pub;
    } else {
        turn_away(request->cmid);
        if (id)
            cm_id_unref(id);
    }
    free(request);
    return status;
}

NTSTATUS cm_get_request(iba_cm_id *p_listen_id, iba_cm_id **pp_id, iba_cm_event *p_event)
{
    return get_request(p_listen_id, NULL, p_listen_id, true, pp_id, p_event);
}

NTSTATUS cm_get_request_ex(iba_cm_id *p_listen_id, NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context,
                           iba_cm_id **pp_id, iba_cm_event *p_event)
{
    return get_request(p_listen_id, callback, context, false, pp_id, p_event);
}
