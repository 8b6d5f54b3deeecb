/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_QUERY_H
#define NDVERBS_DEVICE_QUERY_H

#include <netinet/in.h>

#include "device.h"

/* What can be asked about devices and their ports. Any thread but on loop; each call may be a system call. */

/* Node GUIDs (network order) of the devices there are, in the system's order: copies at most `room` of them, returns how
 * many there are. ND_SUCCESS, ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED (forked child). */
NTSTATUS device_guids(uint64_t *guids, size_t room, size_t *count);

/* Name of the device with that GUID (network order). ND_SUCCESS, ND_INVALID_PARAMETER (there is none), as device_guids. */
NTSTATUS device_find_guid(uint64_t guid, char *name, size_t size);

/* ND_INVALID_PARAMETER_1: no such port. ND_DEVICE_REMOVED. */
NTSTATUS device_query_port(struct device *device, uint8_t port, struct ibv_port_attr *attr);

/* One entry of a port's tables. ND_INVALID_PARAMETER_1 (port), ND_INVALID_PARAMETER_2 (past the end), ND_DEVICE_REMOVED. */
NTSTATUS device_query_gid(struct device *device, uint8_t port, uint32_t index, union ibv_gid *gid);
NTSTATUS device_query_pkey(struct device *device, uint8_t port, uint32_t index, uint16_t *pkey); /* network order */

/* The first entry that equals. ND_INVALID_PARAMETER_1 (port), ND_INVALID_ADDRESS (none does), ND_DEVICE_REMOVED. */
NTSTATUS device_find_gid(struct device *device, uint8_t port, const union ibv_gid *gid, uint32_t *index);
/* The one to send from: of those that equal, RoCE v2's, which is routed; RoCE v1's has the same GID and a lower index. As above. */
NTSTATUS device_find_source_gid(struct device *device, uint8_t port, const union ibv_gid *gid, uint32_t *index);
NTSTATUS device_find_pkey(struct device *device, uint8_t port, uint16_t pkey, uint32_t *index);

/* The partition key (network order) with which rdma_cm uses a local address: 0xffff where there are none. ND_SUCCESS,
 * ND_INVALID_ADDRESS, and as cmid_create. */
NTSTATUS address_pkey(const struct sockaddr *address, uint16_t *pkey);

#endif
