/* SPDX-License-Identifier: MIT */
#include "ah.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "status.h"

static NTSTATUS create_status(int error)
{
    if (error == ENOMEM)
        return ND_NO_MEMORY;
    /* Some providers refuse an address and set no errno; one whose neighbour does not answer is unreachable. */
    if (error == 0 || error == EINVAL || error == ENOENT || error == ETIMEDOUT)
        return ND_INVALID_PARAMETER;
    if (error == EOPNOTSUPP || error == ENOSYS) /* iWARP */
        return ND_NOT_SUPPORTED;
    return status_from_create_errno(error);
}

NTSTATUS ah_create(struct adapter *adapter, struct ibv_ah_attr *attr, struct ibv_ah **out)
{
    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    errno = 0;
    *out = ibv_create_ah(adapter->pd, attr);
    if (*out)
        return ND_SUCCESS;
    return status_info(errno, create_status(errno), "ibv_create_ah on %s", adapter->device->name);
}

void ah_destroy(struct ibv_ah *ah)
{
    int error = ibv_destroy_ah(ah);

    if (error)
        log_warn("ibv_destroy_ah: %s", strerror(error));
}
