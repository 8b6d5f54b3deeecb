/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_AH_H
#define NDVERBS_AH_H

#include "device.h"

/* Address handles: where a datagram goes. ND_INVALID_PARAMETER (the device refuses the address), ND_INSUFFICIENT_RESOURCES,
 * ND_NO_MEMORY, ND_DEVICE_REMOVED. The caller keeps the adapter. Any thread. */
NTSTATUS ah_create(struct adapter *adapter, struct ibv_ah_attr *attr, struct ibv_ah **out);
void ah_destroy(struct ibv_ah *ah);

#endif
