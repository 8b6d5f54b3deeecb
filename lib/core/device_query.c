/* SPDX-License-Identifier: MIT */
#include "device_query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "cmid.h"
#include "log.h"
#include "ndstatus.h"
#include "status.h"

#define DEFAULT_PKEY 0xffff /* the same in both byte orders */

static NTSTATUS get_list(struct ibv_device ***list, int *count)
{
    NTSTATUS status = engine_start();

    if (status != ND_SUCCESS)
        return status;
    *list = ibv_get_device_list(count);
    if (*list)
        return ND_SUCCESS;
    /* No kernel module, or none that may be asked: no device. */
    status = errno == ENOSYS || errno == EPERM || errno == ENOENT ? ND_SUCCESS : status_from_create_errno(errno);
    if (status == ND_SUCCESS)
        *count = 0;
    return status_warn(errno, status, "ibv_get_device_list");
}

static void put_list(struct ibv_device **list)
{
    if (list)
        ibv_free_device_list(list);
}

NTSTATUS device_guids(uint64_t *guids, size_t room, size_t *count)
{
    struct ibv_device **list;
    NTSTATUS status;
    int n;

    *count = 0;
    status = get_list(&list, &n);
    if (status != ND_SUCCESS)
        return status;
    for (int i = 0; i < n; i++) {
        if (!address_device_allowed(ibv_get_device_name(list[i])))
            continue;
        if (*count < room)
            guids[*count] = ibv_get_device_guid(list[i]);
        ++*count;
    }
    put_list(list);
    return ND_SUCCESS;
}

NTSTATUS device_find_guid(uint64_t guid, char *name, size_t size)
{
    struct ibv_device **list;
    NTSTATUS status;
    int n;

    status = get_list(&list, &n);
    if (status != ND_SUCCESS)
        return status;
    status = ND_INVALID_PARAMETER;
    for (int i = 0; i < n && status != ND_SUCCESS; i++) {
        if (ibv_get_device_guid(list[i]) != guid || !address_device_allowed(ibv_get_device_name(list[i])))
            continue;
        snprintf(name, size, "%s", ibv_get_device_name(list[i]));
        status = ND_SUCCESS;
    }
    put_list(list);
    return status;
}

static NTSTATUS check_port(const struct device *device, uint8_t port)
{
    if (engine_dead() || __atomic_load_n(&device->removed, __ATOMIC_RELAXED))
        return ND_DEVICE_REMOVED;
    return port >= 1 && port <= device->attr.phys_port_cnt ? ND_SUCCESS : ND_INVALID_PARAMETER_1;
}

NTSTATUS device_query_port(struct device *device, uint8_t port, struct ibv_port_attr *attr)
{
    NTSTATUS status = check_port(device, port);
    int error;

    if (status != ND_SUCCESS)
        return status;
    error = ibv_query_port(device->verbs, port, attr);
    if (!error)
        return ND_SUCCESS;
    return status_warn(error, status_from_create_errno(error), "ibv_query_port of %s port %u", device->name, port);
}

NTSTATUS device_query_gid(struct device *device, uint8_t port, uint32_t index, union ibv_gid *gid)
{
    struct ibv_port_attr attr;
    NTSTATUS status = device_query_port(device, port, &attr);

    if (status != ND_SUCCESS)
        return status;
    if (index >= (uint32_t)attr.gid_tbl_len || ibv_query_gid(device->verbs, port, (int)index, gid) != 0)
        return ND_INVALID_PARAMETER_2;
    return ND_SUCCESS;
}

/* Entry of a table; iWARP devices have none, which is as if it were the default partition's key alone: what address_pkey gives
 * for their addresses is to be found. */
static bool partition_key(struct device *device, const struct ibv_port_attr *attr, uint8_t port, uint32_t index,
                          uint16_t *key)
{
    __be16 entry;

    if (!attr->pkey_tbl_len && index == 0) {
        *key = DEFAULT_PKEY;
        return true;
    }
    if (index >= attr->pkey_tbl_len || ibv_query_pkey(device->verbs, port, (int)index, &entry) != 0)
        return false;
    *key = entry;
    return true;
}

NTSTATUS device_query_pkey(struct device *device, uint8_t port, uint32_t index, uint16_t *pkey)
{
    struct ibv_port_attr attr;
    NTSTATUS status = device_query_port(device, port, &attr);

    if (status != ND_SUCCESS)
        return status;
    return partition_key(device, &attr, port, index, pkey) ? ND_SUCCESS : ND_INVALID_PARAMETER_2;
}

NTSTATUS device_find_gid(struct device *device, uint8_t port, const union ibv_gid *gid, uint32_t *index)
{
    struct ibv_port_attr attr;
    union ibv_gid entry;
    NTSTATUS status = device_query_port(device, port, &attr);

    if (status != ND_SUCCESS)
        return status;
    for (int i = 0; i < attr.gid_tbl_len; i++) {
        if (ibv_query_gid(device->verbs, port, i, &entry) != 0 || memcmp(&entry, gid, sizeof(entry)) != 0)
            continue;
        *index = (uint32_t)i;
        return ND_SUCCESS;
    }
    return ND_INVALID_ADDRESS;
}

NTSTATUS device_find_source_gid(struct device *device, uint8_t port, const union ibv_gid *gid, uint32_t *index)
{
    struct ibv_port_attr attr;
    struct ibv_gid_entry entry;
    NTSTATUS status = device_find_gid(device, port, gid, index);

    if (status != ND_SUCCESS)
        return status;
    status = device_query_port(device, port, &attr);
    if (status != ND_SUCCESS || attr.link_layer != IBV_LINK_LAYER_ETHERNET)
        return status;
    for (uint32_t i = *index; i < (uint32_t)attr.gid_tbl_len; i++) {
        if (ibv_query_gid_ex(device->verbs, port, i, &entry, 0) != 0 || entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
            memcmp(&entry.gid, gid, sizeof(entry.gid)) != 0)
            continue;
        *index = i;
        break;
    }
    return ND_SUCCESS;
}

NTSTATUS device_find_pkey(struct device *device, uint8_t port, uint16_t pkey, uint32_t *index)
{
    struct ibv_port_attr attr;
    uint16_t entry;
    NTSTATUS status = device_query_port(device, port, &attr);

    if (status != ND_SUCCESS)
        return status;
    for (uint32_t i = 0; i < attr.pkey_tbl_len || i == 0; i++) {
        if (!partition_key(device, &attr, port, i, &entry) || entry != pkey)
            continue;
        *index = i;
        return ND_SUCCESS;
    }
    return ND_INVALID_ADDRESS;
}

static void no_event(struct cmid *cmid, const struct cm_event *event)
{
    (void)cmid;
    (void)event;
}

NTSTATUS address_pkey(const struct sockaddr *address, uint16_t *pkey)
{
    union address local;
    struct ibv_port_attr port;
    struct cmid *cmid;
    NTSTATUS status;

    memcpy(&local, address, address_length(address));
    address_set_port(&local.sa, 0);
    status = cmid_create(NULL, no_event, NULL, &cmid);
    if (status != ND_SUCCESS)
        return status;
    if (rdma_bind_addr(cmid->id, &local.sa) != 0 || !cmid->id->verbs) {
        status = ND_INVALID_ADDRESS;
    } else {
        *pkey = DEFAULT_PKEY;
        if (ibv_query_port(cmid->id->verbs, cmid->id->port_num, &port) == 0 &&
            port.link_layer == IBV_LINK_LAYER_INFINIBAND)
            *pkey = cmid->id->route.addr.addr.ibaddr.pkey;
    }
    cmid_destroy(cmid);
    return status;
}
