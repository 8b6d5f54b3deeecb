/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_RESOLVE_H
#define NDVERBS_RESOLVE_H

/* The path to an address without a connection. Source: winverbs.md section 8.3, rdma-mapping.md 4. */

#include <infiniband/sa.h>
#include <windows.h>

#include "address.h"

/* The kernel's path record from the local RDMA address to the remote one; ports do not matter. A loopback destination
 * means the local address, as for a connection. Over Ethernet it has no LIDs; all zeros after a success: there is none
 * (iWARP). The preference is always 0.
 *
 * Blocks until the kernel has resolved address and route: it gives up by resolve_timeout_ms for each of the two, and
 * connect_timeout_ms, if set, bounds the whole. The id and its event channel are the call's own and end with it, so the
 * loop has no part in it. Any thread but on loop, no lock held.
 *
 * ND_SUCCESS; otherwise *path is untouched, and the status is what binding or connecting would have ended with:
 * ND_INVALID_ADDRESS (the local one is of no usable device), STATUS_BAD_NETWORK_NAME, ND_NETWORK_UNREACHABLE,
 * ND_HOST_UNREACHABLE (no way there), ND_IO_TIMEOUT, ND_TOO_MANY_ADDRESSES, ND_INSUFFICIENT_RESOURCES,
 * ND_DEVICE_NOT_READY, ND_DEVICE_REMOVED (also: forked child). */
NTSTATUS resolve_path(const union address *local, const union address *remote, struct ibv_sa_path_rec *path);

#endif
