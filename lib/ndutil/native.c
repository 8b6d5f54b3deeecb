/* SPDX-License-Identifier: MIT */
#include "ndverbs.h"

#include "ndstatus.h"

#include "core/engine.h"
#include "core/engine_host.h"
#include "core/status.h"
#include "descriptor.h"

unsigned int ndverbs_version(void)
{
    return NDVERBS_VERSION;
}

const char *ndverbs_status_text(HRESULT status)
{
    const char *name = status_name(status);

    return name ? name : "unknown status";
}

HRESULT ndverbs_handle_fd(HANDLE handle, int *fd)
{
    if (!fd)
        return ND_INVALID_PARAMETER;
    *fd = -1;
    return engine_dead() ? ND_DEVICE_REMOVED : handle_descriptor(handle, fd);
}

HRESULT ndverbs_engine_fd(int *fd)
{
    if (!fd)
        return ND_INVALID_PARAMETER;
    *fd = -1;
    return engine_host_start(fd);
}

HRESULT ndverbs_engine_dispatch(void)
{
    return engine_host_dispatch();
}

HRESULT ndverbs_engine_leave(void)
{
    if (!engine_dead())
        engine_host_stop();
    return ND_SUCCESS;
}
