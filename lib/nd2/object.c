/* SPDX-License-Identifier: MIT */
#include <sched.h>

#include "nd2.h"

/* Events are seen by whatever thread runs the loop, so the processors of the process are the truth (ndspi.md A34): those of
 * the first group that has one. */
HRESULT nd2_notify_affinity(const struct adapter *adapter, USHORT *group, KAFFINITY *affinity)
{
    const unsigned width = 8 * sizeof(*affinity);
    cpu_set_t set;

    if (!group || !affinity)
        return ND_INVALID_PARAMETER;
    if (nd2_dead() || adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return ND_NOT_SUPPORTED; /* more processors than fit */
    *affinity = 0;
    for (unsigned i = 0; i < CPU_SETSIZE && (*affinity == 0 || i % width != 0); i++) {
        if (CPU_ISSET(i, &set)) {
            *group = (USHORT)(i / width);
            *affinity |= (KAFFINITY)1 << i % width;
        }
    }
    return ND_SUCCESS;
}
