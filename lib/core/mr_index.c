/* SPDX-License-Identifier: MIT */
#include "mr.h"

#include <search.h>

/* siw completes a request that it cannot send for whatever reason as other devices complete one with a bad local key. So that
 * the poller can tell the two, posts to siw look their memory up here (post.c). Other devices pay nothing for it. */

static int compare(const void *a, const void *b)
{
    uint32_t key_a = ((const struct ibv_mr *)a)->lkey, key_b = ((const struct ibv_mr *)b)->lkey;

    return (key_a > key_b) - (key_a < key_b);
}

bool mr_index_add(struct mr *mr)
{
    struct adapter *adapter = mr->adapter;
    bool added;

    if (!device_is_siw(adapter->device))
        return true;
    pthread_mutex_lock(&adapter->lock);
    added = tsearch(mr->mr, &adapter->mr_index, compare) != NULL;
    pthread_mutex_unlock(&adapter->lock);
    return added;
}

void mr_index_del(struct mr *mr)
{
    struct adapter *adapter = mr->adapter;

    if (!device_is_siw(adapter->device))
        return;
    pthread_mutex_lock(&adapter->lock);
    tdelete(mr->mr, &adapter->mr_index, compare);
    pthread_mutex_unlock(&adapter->lock);
}

static bool covers(const struct ibv_mr *mr, const ND2_SGE *sge)
{
    uintptr_t offset = (uintptr_t)sge->Buffer - (uintptr_t)mr->addr;

    return offset <= mr->length && sge->BufferLength <= mr->length - offset;
}

bool mr_cover(struct adapter *adapter, const ND2_SGE *sge, uint32_t n)
{
    bool all = true;

    pthread_mutex_lock(&adapter->lock);
    for (uint32_t i = 0; i < n && all; i++) {
        struct ibv_mr wanted = { .lkey = sge[i].MemoryRegionToken }, *const * found;

        if (!sge[i].BufferLength)
            continue;
        found = tfind(&wanted, &adapter->mr_index, compare);
        all = found && covers(*found, &sge[i]);
    }
    pthread_mutex_unlock(&adapter->lock);
    return all;
}
