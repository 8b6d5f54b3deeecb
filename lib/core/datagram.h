/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DATAGRAM_H
#define NDVERBS_DATAGRAM_H

/* Endpoints for datagrams: where a service is (SIDR over rdma_cm's port space RDMA_PS_UDP), and multicast groups. They
 * move no data and know no queue pair. Source: winverbs.md section 9, rdma-mapping.md 4. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <windows.h>

#include "address.h"
#include "overlapped.h"
#include <infiniband/verbs.h>

#define DATAGRAM_DATA_MAX 56

struct datagram;
struct device;

/* Every function: any thread. The overlapped ones return ND_PENDING or an error, never ND_SUCCESS. Out of turn:
 * ND_NOT_SUPPORTED. */
NTSTATUS datagram_create(struct file *file, struct datagram **out);
struct datagram *datagram_ref(struct datagram *datagram);
void datagram_unref(struct datagram *datagram);

/* The last Release: pending requests complete ND_CANCELED before it returns, groups are left, requests not answered are
 * rejected. Does not drop the reference. */
void datagram_release(struct datagram *d);

/* Statuses of connector_bind; a wildcard address is every device's. */
NTSTATUS datagram_bind(struct datagram *d, const union address *address);
NTSTATUS datagram_listen(struct datagram *d, uint32_t backlog);

/* Completes when somebody looks the listening endpoint's address up; `target`, which must be fresh (else
 * ND_CONNECTION_ACTIVE), has the request then. */
NTSTATUS datagram_get_request(struct datagram *d, struct datagram *target, OVERLAPPED *ov);

/* Finds out queue pair, key and path of whoever listens at the address: ND_SUCCESS, ND_CONNECTION_REFUSED,
 * ND_IO_TIMEOUT, ND_HOST_UNREACHABLE, ND_CANCELED, ND_DEVICE_REMOVED. It may be tried again after a failure. */
NTSTATUS datagram_lookup(struct datagram *d, const union address *dest, const void *data, size_t length,
                         OVERLAPPED *ov);

/* Answers the request that was fetched. */
NTSTATUS datagram_accept(struct datagram *d, uint32_t qp_num, const void *data, size_t length, OVERLAPPED *ov);
NTSTATUS datagram_reject(struct datagram *d, const void *data, size_t length);

/* Joining completes when the group may be used (datagram_query tells how); several at a time are fine. Leave:
 * ND_INVALID_ADDRESS if the group is not joined. */
NTSTATUS datagram_join(struct datagram *d, const union address *group, OVERLAPPED *ov);
NTSTATUS datagram_leave(struct datagram *d, const union address *group);

NTSTATUS datagram_cancel(struct datagram *d);

/* The device is gone, as with connector_device_removed. */
void datagram_device_removed(struct device *device);

/* What is known; `known` false: nothing about a peer. */
struct datagram_info {
    union address local, peer;
    uint64_t device_guid; /* network order, 0: no device yet */
    uint8_t port;
    uint16_t pkey; /* network order */
    bool known;
    bool source_known;
    union ibv_gid source; /* of ah_attr.grh.sgid_index */
    struct ibv_ah_attr ah_attr;
    uint32_t qp_num, qkey;
    uint16_t data_length;
    uint8_t data[DATAGRAM_DATA_MAX];
};

/* `peer`: a group that was joined, to learn about that; else (NULL or another address) the one peer of the endpoint. */
void datagram_query(struct datagram *d, const union address *peer, struct datagram_info *info);

#endif
