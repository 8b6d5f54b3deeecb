/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MR_H
#define NDVERBS_MR_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "device.h"

/* One registered buffer. `bound` counts the windows bound to it, or being bound (atomic); MR_CLOSED: on its way out. */
#define MR_CLOSED UINT32_MAX
struct mr {
    struct list link; /* adapter->mrs */
    struct adapter *adapter;
    struct ibv_mr *mr;
    uint32_t bound;
    uint32_t moved;    /* atomic: a window went on from here with a request that names this region maybe under way */
    uint32_t nd_flags; /* ND_MR_FLAG_* as passed */
    int access;        /* IBV_ACCESS_* as registered */
};

/* Registers on the calling thread. ND_INVALID_PARAMETER, ND_INVALID_BUFFER_SIZE, ND_ACCESS_VIOLATION,
 * ND_INSUFFICIENT_RESOURCES, ND_NO_MEMORY, ND_DEVICE_REMOVED. `nd_flags`: ND_MR_FLAG_*. Any thread.
 * Source: ndspi-v2.md section 8, rdma-mapping.md section 6. */
NTSTATUS mr_register(struct adapter *adapter, const void *buffer, size_t length, uint32_t nd_flags, struct mr **out);

/* Keeps the region registered until mr_unpin: mr_deregister refuses. False: it is being deregistered. Any thread; the
 * caller makes sure that the record is there. */
bool mr_pin(struct mr *mr);
void mr_unpin(struct mr *mr);

/* The same with IBV_ACCESS_* as they are. */
NTSTATUS mr_register_access(struct adapter *adapter, const void *buffer, size_t length, int access, struct mr **out);

/* Deregisters on the calling thread and frees the record. ND_DEVICE_BUSY while windows are bound (record kept): a window
 * counts as bound until its Invalidate has completed, or it was released, or its queue pair has failed. */
NTSTATUS mr_deregister(struct mr *mr);

/* siw only: has every entry with a byte the local key of a region of the adapter that it lies in? Any thread; takes the
 * adapter's lock. */
bool mr_cover(struct adapter *adapter, const ND2_SGE *sge, uint32_t n);

/* For mr.c: a region is in the index while its device object is there. False: no memory. Nothing is done but on siw. */
bool mr_index_add(struct mr *mr);
void mr_index_del(struct mr *mr);

/* Deregisters whatever is bound (last Release). Never fails. The caller calls qp_fail_users first. */
void mr_release(struct mr *mr);

#endif
