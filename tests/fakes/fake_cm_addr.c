/* SPDX-License-Identifier: MIT */

/* Binding, resolving, listening. */

#include "fake_internal.h"

#include <endian.h>

#define FIRST_EPHEMERAL 33000

struct resolve_error {
    struct list link;
    struct sockaddr_storage destination;
    bool route;
    int status;
};

static struct list resolve_errors = { &resolve_errors, &resolve_errors };
static bool resolve_automatic = true;

/* Whether another id holds the port; 0, or the errno of the clash. */
static int port_clash(const struct fake_id *id, const struct sockaddr *addr, uint16_t port)
{
    list_for_each (node, &fake_objects) {
        struct fake_id *other = (struct fake_id *)list_entry(node, struct fake_object, link);
        struct sockaddr *held = &other->id.route.addr.src_addr;

        if (other->object.kind != FAKE_OBJ_ID || other == id || !other->bound || other->child ||
            other->id.ps != id->id.ps || fake_port_of(held) != port || held->sa_family != addr->sa_family)
            continue;
        if (id->reuseaddr && other->reuseaddr && other->state != FAKE_CM_LISTEN)
            continue;
        if (fake_same_ip(held, addr))
            return EADDRINUSE;
        if (fake_any_ip(held) || fake_any_ip(addr))
            return EADDRNOTAVAIL;
    }
    return 0;
}

static int bind_addr(struct fake_id *id, const struct sockaddr *addr)
{
    static uint16_t next_port = FIRST_EPHEMERAL;
    struct fake_address *address;
    uint16_t port = fake_port_of(addr);
    int err;

    if (id->state != FAKE_CM_IDLE)
        return EINVAL;
    if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
        return EAFNOSUPPORT;
    if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)addr)->sin6_addr) &&
        !((const struct sockaddr_in6 *)addr)->sin6_scope_id)
        return EINVAL;
    address = fake_address_find(addr);
    if (!address && !fake_any_ip(addr) && !fake_loopback_ip(addr))
        return EADDRNOTAVAIL;
    if (address && (!address->device || address->device->removed))
        return ENODEV;
    if (!port) {
        do {
            port = next_port++;
            if (next_port == 0)
                next_port = FIRST_EPHEMERAL;
        } while (port_clash(id, addr, port));
    } else if ((err = port_clash(id, addr, port)) != 0) {
        return err;
    }
    memcpy(&id->id.route.addr.src_storage, addr, fake_sockaddr_size(addr));
    fake_set_port(&id->id.route.addr.src_addr, port);
    id->bound = true;
    id->state = FAKE_CM_BOUND;
    if (address)
        fake_id_bind_device(id, address->device, address->port);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *public, struct sockaddr *addr)
{
    struct fake_call call = { .fn = FAKE_rdma_bind_addr };
    int err;
    struct fake_id *id;

    memcpy(&call.arg.addr.addr, addr, fake_sockaddr_size(addr));
    id = fake_id_enter(&call, public, &err);
    if (!err)
        err = bind_addr(id, addr);
    return fake_id_leave(&call, id, err);
}

static int scripted_error(const struct sockaddr *destination, bool route)
{
    list_for_each (node, &resolve_errors) {
        struct resolve_error *entry = list_entry(node, struct resolve_error, link);

        if (entry->route == route && fake_same_ip((struct sockaddr *)&entry->destination, destination))
            return entry->status;
    }
    return 0;
}

static int resolve_addr(struct fake_id *id, struct sockaddr *source, struct sockaddr *destination)
{
    struct fake_cm event = { .event = RDMA_CM_EVENT_ADDR_RESOLVED };
    struct fake_address *address;
    struct sockaddr_storage any;
    int err;

    if (id->state != FAKE_CM_IDLE && id->state != FAKE_CM_BOUND)
        return EINVAL;
    if (destination->sa_family != AF_INET && destination->sa_family != AF_INET6)
        return EINVAL;
    if (source && id->state == FAKE_CM_IDLE && (err = bind_addr(id, source)) != 0)
        return err;
    if (!id->device && !fake_loopback_ip(destination)) {
        address = fake_address_for(destination);
        if (!address)
            return ENETUNREACH;
        if (!address->device)
            return ENODEV;
        any = address->addr;
        if (id->state == FAKE_CM_IDLE && (err = bind_addr(id, (struct sockaddr *)&any)) != 0)
            return err;
        fake_id_bind_device(id, address->device, address->port);
    }
    memcpy(&id->id.route.addr.dst_storage, destination, fake_sockaddr_size(destination));
    id->state = FAKE_CM_ADDR_QUERY;
    event.status = scripted_error(destination, false);
    if (event.status)
        event.event = RDMA_CM_EVENT_ADDR_ERROR;
    if (resolve_automatic || event.status)
        fake_event_queue(id, NULL, &event);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *public, struct sockaddr *source, struct sockaddr *destination, int timeout_ms)
{
    struct fake_call call = { .fn = FAKE_rdma_resolve_addr, .arg.addr = { .timeout_ms = timeout_ms } };
    int err;
    struct fake_id *id;

    memcpy(&call.arg.addr.addr, destination, fake_sockaddr_size(destination));
    if (source)
        memcpy(&call.arg.addr.source, source, fake_sockaddr_size(source));
    id = fake_id_enter(&call, public, &err);
    if (!err)
        err = resolve_addr(id, source, destination);
    return fake_id_leave(&call, id, err);
}

int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
    struct fake_call call = { .fn = FAKE_rdma_resolve_route, .arg.addr = { .timeout_ms = timeout_ms } };
    struct fake_cm event = { .event = RDMA_CM_EVENT_ROUTE_RESOLVED };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (!err && id->state != FAKE_CM_ADDR_RESOLVED)
        err = EINVAL;
    if (!err && !id->device)
        err = ENODEV;
    if (!err) {
        id->state = FAKE_CM_ROUTE_QUERY;
        if (!id->iwarp) {
            id->id.route.path_rec = &id->path;
            id->id.route.num_paths = 1;
        }
        event.status = scripted_error(&id->id.route.addr.dst_addr, true);
        if (event.status)
            event.event = RDMA_CM_EVENT_ROUTE_ERROR;
        if (resolve_automatic || event.status)
            fake_event_queue(id, NULL, &event);
    }
    return fake_id_leave(&call, id, err);
}

int rdma_listen(struct rdma_cm_id *public, int backlog)
{
    struct fake_call call = { .fn = FAKE_rdma_listen, .arg.listen = { .backlog = backlog } };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (!err && id->state != FAKE_CM_BOUND)
        err = EINVAL;
    if (!err && port_clash(id, &id->id.route.addr.src_addr, fake_port_of(&id->id.route.addr.src_addr)))
        err = EADDRINUSE;
    if (!err) {
        id->state = FAKE_CM_LISTEN;
        id->backlog = backlog > 0 && backlog < 1024 ? backlog : 1024;
    }
    return fake_id_leave(&call, id, err);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return id->route.addr.src_addr.sa_family ? htobe16(fake_port_of(&id->route.addr.src_addr)) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return id->route.addr.dst_addr.sa_family ? htobe16(fake_port_of(&id->route.addr.dst_addr)) : 0;
}

/* ---- the test's side ---- */

void fake_auto_resolve(bool on)
{
    fake_lock();
    resolve_automatic = on;
    fake_unlock();
}

void fake_resolve_error(const char *destination, bool route, int status)
{
    struct resolve_error *entry = (struct resolve_error *)fake_malloc(sizeof(*entry));

    fake_parse(destination, &entry->destination);
    entry->route = route;
    entry->status = status;
    fake_lock();
    list_add_head(&resolve_errors, &entry->link);
    fake_unlock();
}

void fake_cm_reset(void)
{
    list_for_each_safe (node, &resolve_errors) {
        list_del(node);
        fake_free(list_entry(node, struct resolve_error, link));
    }
    resolve_automatic = true;
}
