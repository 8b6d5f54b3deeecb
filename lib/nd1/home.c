/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/nd1.h"

HRESULT nd1_home_create(struct adapter *adapter, const union address *address, struct nd1_home **out)
{
    struct nd1_home *home = calloc(1, sizeof(*home));

    if (!home)
        return ND_NO_MEMORY;
    home->file = file_create();
    if (!home->file)
        goto err_free;
    /* No skip modes: a request that is done when the call returns still queues its packet. */
    home->handle = file_open_handle(home->file, 0);
    if (!home->handle)
        goto err_file;
    home->refs = 1;
    home->adapter = adapter_ref(adapter);
    home->address = *address;
    pthread_mutex_init(&home->lock, NULL);
    for (int i = 0; i < ND1_REGION_BUCKETS; i++)
        list_init(&home->regions[i]);
    *out = home;
    return ND_SUCCESS;

err_file:
    file_unref(home->file);
err_free:
    free(home);
    return ND_NO_MEMORY;
}

struct nd1_home *nd1_home_ref(struct nd1_home *home)
{
    __atomic_add_fetch(&home->refs, 1, __ATOMIC_RELAXED);
    return home;
}

/* A closed handle's value may be another object's by now. */
static bool handle_is_ours(const struct nd1_home *home)
{
    struct file *file = home->handle ? file_from_handle(home->handle) : NULL;

    if (file)
        file_unref(file);
    return file == home->file;
}

void nd1_home_unref(struct nd1_home *home)
{
    if (__atomic_sub_fetch(&home->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    nd1_deregister_all(home);
    if (handle_is_ours(home))
        CloseHandle(home->handle);
    file_unref(home->file);
    adapter_unref(home->adapter);
    pthread_mutex_destroy(&home->lock);
    free(home);
}

HANDLE nd1_home_handle(struct nd1_home *home)
{
    HANDLE handle;

    pthread_mutex_lock(&home->lock);
    if (!handle_is_ours(home))
        home->handle = file_open_handle(home->file, 0);
    handle = home->handle;
    pthread_mutex_unlock(&home->lock);
    return handle ? handle : INVALID_HANDLE_VALUE;
}

struct nd1_tie *nd1_tie_create(void)
{
    struct nd1_tie *tie = calloc(1, sizeof(*tie));

    if (tie)
        tie->refs = 1;
    return tie;
}

struct nd1_tie *nd1_tie_ref(struct nd1_tie *tie)
{
    __atomic_add_fetch(&tie->refs, 1, __ATOMIC_RELAXED);
    return tie;
}

void nd1_tie_unref(struct nd1_tie *tie)
{
    if (tie && __atomic_sub_fetch(&tie->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(tie);
}
