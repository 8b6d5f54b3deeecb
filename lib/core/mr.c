/* SPDX-License-Identifier: MIT */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "nddef.h"
#include "ndstatus.h"

#include "log.h"
#include "mw.h"
#include "qp.h"
#include "status.h"

#define ALL_FLAGS                                                                                  \
    (ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE | \
     ND_MR_FLAG_RDMA_READ_SINK | ND_MR_FLAG_DO_NOT_SECURE_VM)
#define REMOTE_WRITE_BIT (ND_MR_FLAG_ALLOW_REMOTE_WRITE & ~ND_MR_FLAG_ALLOW_LOCAL_WRITE)

static int access_from_flags(const struct device *device, uint32_t flags)
{
    int access = 0;

    if (flags & (ND_MR_FLAG_ALLOW_LOCAL_WRITE | REMOTE_WRITE_BIT | ND_MR_FLAG_RDMA_READ_SINK))
        access |= IBV_ACCESS_LOCAL_WRITE;
    if (flags & ND_MR_FLAG_ALLOW_REMOTE_READ)
        access |= IBV_ACCESS_REMOTE_READ;
    if (flags & REMOTE_WRITE_BIT)
        access |= IBV_ACCESS_REMOTE_WRITE;
    /* The data of a read arrives at an iWARP card as a remote write. */
    if ((flags & ND_MR_FLAG_RDMA_READ_SINK) && device->transport == DEVICE_IW)
        access |= IBV_ACCESS_REMOTE_WRITE;
    /* Windows with remote rights are bound to regions that have none of their own. */
    if (device->has_windows)
        access |= IBV_ACCESS_MW_BIND;
    return access;
}

/* The usual cause of ENOMEM and EPERM is the limit on locked memory, so the line names it. */
static NTSTATUS report_failure(const struct adapter *adapter, size_t length, int error)
{
    NTSTATUS status = status_from_reg_errno(error);
    struct rlimit limit;

    if ((error == ENOMEM || error == EPERM) && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        return status_warn(error, status,
                           "ibv_reg_mr of %zu bytes on %s (RLIMIT_MEMLOCK, \"ulimit -l\", is %llu bytes)", length,
                           adapter->device->name, (unsigned long long)limit.rlim_cur);
    return status_warn(error, status, "ibv_reg_mr of %zu bytes on %s", length, adapter->device->name);
}

static NTSTATUS check_arguments(const struct adapter *adapter, const void *buffer, size_t length)
{
    if (length == 0)
        return buffer ? ND_INVALID_BUFFER_SIZE : ND_INVALID_PARAMETER;
    if (length > adapter->limits.max_registration) {
        log_info("registration of %zu bytes refused: MaxRegistrationSize is %llu", length,
                 (unsigned long long)adapter->limits.max_registration);
        return ND_INVALID_PARAMETER;
    }
    if (!buffer || (uintptr_t)buffer + (length - 1) < (uintptr_t)buffer)
        return ND_ACCESS_VIOLATION;
    return ND_SUCCESS;
}

NTSTATUS mr_register_access(struct adapter *adapter, const void *buffer, size_t length, int access, struct mr **out)
{
    NTSTATUS status;
    struct mr *mr;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    status = check_arguments(adapter, buffer, length);
    if (status != ND_SUCCESS)
        return status;
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return ND_INSUFFICIENT_RESOURCES; /* Register has no ND_NO_MEMORY */
    mr->access = access;
    mr->mr = ibv_reg_mr(adapter->pd, (void *)(uintptr_t)buffer, length, mr->access);
    if (!mr->mr) {
        status = report_failure(adapter, length, errno);
        free(mr);
        return status;
    }
    mr->adapter = adapter;
    if (!mr_index_add(mr)) {
        ibv_dereg_mr(mr->mr);
        free(mr);
        return ND_INSUFFICIENT_RESOURCES;
    }
    adapter_ref(adapter);
    pthread_mutex_lock(&adapter->lock);
    list_add_tail(&adapter->mrs, &mr->link);
    pthread_mutex_unlock(&adapter->lock);
    *out = mr;
    return ND_SUCCESS;
}

NTSTATUS mr_register(struct adapter *adapter, const void *buffer, size_t length, uint32_t nd_flags, struct mr **out)
{
    NTSTATUS status;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    if (length && nd_flags & ~(uint32_t)ALL_FLAGS)
        return ND_INVALID_PARAMETER;
    status = mr_register_access(adapter, buffer, length, access_from_flags(adapter->device, nd_flags), out);
    if (status == ND_SUCCESS)
        (*out)->nd_flags = nd_flags;
    return status;
}

static void mr_free(struct mr *mr)
{
    struct adapter *adapter = mr->adapter;

    pthread_mutex_lock(&adapter->lock);
    list_del(&mr->link);
    pthread_mutex_unlock(&adapter->lock);
    free(mr);
    adapter_unref(adapter);
}

bool mr_pin(struct mr *mr)
{
    uint32_t bound = __atomic_load_n(&mr->bound, __ATOMIC_RELAXED);

    while (bound != MR_CLOSED) {
        if (__atomic_compare_exchange_n(&mr->bound, &bound, bound + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

void mr_unpin(struct mr *mr)
{
    __atomic_sub_fetch(&mr->bound, 1, __ATOMIC_RELEASE);
}

static bool close_region(struct mr *mr)
{
    uint32_t bound = 0;

    return __atomic_compare_exchange_n(&mr->bound, &bound, MR_CLOSED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The region is closed, so no further window comes. */
static bool moved_under_way(struct mr *mr)
{
    return __atomic_load_n(&mr->moved, __ATOMIC_RELAXED) && qp_window_under_way(mr->adapter, mr->mr->lkey);
}

static int dereg(struct mr *mr)
{
    int error;

    mr_index_del(mr); /* before the key may be another region's */
    error = ibv_dereg_mr(mr->mr);
    if (!error || adapter_removed(mr->adapter) || !__atomic_load_n(&mr->moved, __ATOMIC_RELAXED))
        return error;
    /* A window that went on to another region, and whose invalidate was never carried out. */
    mw_settle(mr->adapter, NULL);
    return ibv_dereg_mr(mr->mr);
}

NTSTATUS mr_deregister(struct mr *mr)
{
    struct adapter *adapter = mr->adapter;
    int error;

    if (!close_region(mr)) {
        mw_settle(adapter, mr);
        if (!close_region(mr))
            return ND_DEVICE_BUSY;
    }
    if (moved_under_way(mr)) {
        __atomic_store_n(&mr->bound, 0, __ATOMIC_RELEASE);
        return ND_DEVICE_BUSY;
    }
    error = dereg(mr);
    /* A device that was torn away has forgotten the region already. */
    if (error && !adapter_removed(adapter)) {
        mr_index_add(mr);
        __atomic_store_n(&mr->bound, 0, __ATOMIC_RELEASE);
        return status_warn(error, ND_DEVICE_BUSY, "ibv_dereg_mr on %s", adapter->device->name);
    }
    mr_free(mr);
    return ND_SUCCESS;
}

void mr_release(struct mr *mr)
{
    int error;

    if (!close_region(mr)) {
        mw_settle(mr->adapter, mr);
        mw_fail_region(mr);
    }
    error = dereg(mr);
    if (error)
        log_warn("ibv_dereg_mr on %s: %s; the memory stays pinned", mr->adapter->device->name, strerror(error));
    mr_free(mr);
}
