/* SPDX-License-Identifier: MIT */
#include "resolve.h"

#include <errno.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include <ntstatus.h>

#include "cmid.h"
#include "engine.h"
#include "log.h"
#include "sleep.h"
#include "status.h"
#include "tunable.h"

static NTSTATUS await(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, uint64_t deadline)
{
    for (;;) {
        struct rdma_cm_event *event;
        enum rdma_cm_event_type type;
        int status;

        if (rdma_get_cm_event(channel, &event) != 0) {
            if (errno != EAGAIN && errno != EINTR) {
                return status_warn(errno, status_from_create_errno(errno), "rdma_get_cm_event");
            }
            if (!readable_wait(SLEEP_POLL, channel->fd, deadline))
                return ND_IO_TIMEOUT;
            continue;
        }
        type = event->event;
        status = event->status;
        rdma_ack_cm_event(event);
        log_debug("%s %d", rdma_event_str(type), status);
        if (type == wanted)
            return ND_SUCCESS;
        if (type == RDMA_CM_EVENT_ADDR_ERROR)
            return status_from_resolve_errno(-status);
        if (type == RDMA_CM_EVENT_ROUTE_ERROR)
            return status_from_route_errno(-status);
        if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
            return ND_DEVICE_REMOVED;
        /* Others (ADDR_CHANGE of a bond) are no answer. */
    }
}

/* What connection_connect() makes of a destination, and refuses. */
static NTSTATUS aim(const union address *local, union address *remote)
{
    if (address_is_any(&remote->sa) || remote->sa.sa_family != local->sa.sa_family)
        return STATUS_BAD_NETWORK_NAME;
    if (address_is_loopback(&remote->sa))
        *remote = *local;
    /* A link-local one is reached over the link of the local address. */
    if (remote->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&remote->v6.sin6_addr) && !remote->v6.sin6_scope_id)
        remote->v6.sin6_scope_id = local->v6.sin6_scope_id;
    /* A bound id takes a destination without a route for one on its own link and waits for it in vain. */
    return address_reachable(local, remote) == ND_NETWORK_UNREACHABLE ? ND_NETWORK_UNREACHABLE : ND_SUCCESS;
}

static NTSTATUS find_path(struct rdma_cm_id *id, union address *local, union address *remote)
{
    const struct tunables *limits = tunables();
    uint64_t deadline = limits->connect_timeout_ms ? sleep_deadline(limits->connect_timeout_ms) : SLEEP_FOREVER;
    NTSTATUS status;

    if (rdma_bind_addr(id, &local->sa) != 0)
        return address_info(errno, status_from_bind_errno(errno, true, 0), "rdma_bind_addr", &local->sa);
    if (!id->verbs)
        return ND_INVALID_ADDRESS;
    if (rdma_resolve_addr(id, NULL, &remote->sa, (int)limits->resolve_timeout_ms) != 0)
        return address_info(errno, status_from_resolve_errno(errno), "rdma_resolve_addr", &remote->sa);
    status = await(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
    if (status != ND_SUCCESS)
        return status;
    if (rdma_resolve_route(id, (int)limits->resolve_timeout_ms) != 0)
        return status_info(errno, status_from_route_errno(errno), "rdma_resolve_route");
    return await(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline);
}

/* What librdmacm gives for a path record is not one in all its fields: on Ethernet there are pieces of a MAC address
 * where the LIDs are on InfiniBand, and its own flags for the path take the place of the preference. */
static void take_record(const struct rdma_cm_id *id, struct ibv_sa_path_rec *path)
{
    struct ibv_port_attr port;

    memset(path, 0, sizeof(*path));
    if (id->route.num_paths <= 0)
        return;
    *path = id->route.path_rec[0];
    path->preference = 0;
    if (ibv_query_port(id->verbs, id->port_num, &port) != 0 || port.link_layer == IBV_LINK_LAYER_ETHERNET)
        path->dlid = path->slid = 0;
}

NTSTATUS resolve_path(const union address *local, const union address *remote, struct ibv_sa_path_rec *path)
{
    struct rdma_event_channel *channel;
    struct address_entry entry;
    union address to = *remote;
    struct rdma_cm_id *id;
    NTSTATUS status;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    status = address_find(&local->sa, &entry); /* with its scope, and no port */
    if (status == ND_SUCCESS)
        status = aim(&entry.address, &to);
    if (status == ND_SUCCESS)
        status = cmid_channel_create(&channel);
    if (status != ND_SUCCESS)
        return status;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) {
        status = status_warn(errno, status_from_create_errno(errno), "rdma_create_id");
        goto out;
    }
    status = find_path(id, &entry.address, &to);
    if (status == ND_SUCCESS)
        take_record(id, path);
    if (rdma_destroy_id(id) != 0)
        log_warn("rdma_destroy_id: %s", strerror(errno));
out:
    rdma_destroy_event_channel(channel);
    return status;
}
