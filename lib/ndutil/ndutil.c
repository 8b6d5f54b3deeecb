/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "ndsupport.h"

#include "core/address.h"
#include "core/engine.h"
#include "core/log.h"
#include "nd1/entry.h"
#include "nd2/entry.h"

/* The helper functions of ndspi-helpers.md section 1. There is one provider and it is always loaded, so what starts and
 * stops here is only the permission to ask. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* leaf: starts */
static uint32_t starts;

HRESULT ND_HELPER_API NdStartup(VOID)
{
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&lock);
    starts++;
    pthread_mutex_unlock(&lock);
    return S_OK;
}

HRESULT ND_HELPER_API NdCleanup(VOID)
{
    bool started, last;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&lock);
    started = starts > 0;
    last = starts == 1;
    if (started)
        starts--;
    pthread_mutex_unlock(&lock);
    if (last)
        address_list_invalidate();
    return started ? S_OK : ND_DEVICE_NOT_READY;
}

/* S_OK while the functions may be used. */
static HRESULT check_started(void)
{
    bool started;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&lock);
    started = starts > 0;
    pthread_mutex_unlock(&lock);
    return started ? S_OK : ND_DEVICE_NOT_READY;
}

VOID ND_HELPER_API NdFlushProviders(VOID)
{
    if (check_started() == S_OK)
        address_list_invalidate();
}

#define BOTH_VERSIONS (ND_QUERY_EXCLUDE_NDv1_ADDRESSES | ND_QUERY_EXCLUDE_NDv2_ADDRESSES)

HRESULT ND_HELPER_API NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST *out, SIZE_T *size)
{
    HRESULT status = check_started();
    struct address_list *list = NULL;
    size_t needed;

    if (!size)
        return ND_INVALID_PARAMETER_3;
    if (status != S_OK) {
        *size = 0;
        return status;
    }
    /* Every address serves both versions; it is listed once. */
    if ((flags & BOTH_VERSIONS) != BOTH_VERSIONS) {
        list = address_list_get();
        if (!list) {
            *size = 0;
            return ND_NO_MEMORY;
        }
    }
    /* "Success and size 0" is how a program sees that there is nothing (usable entries come first). */
    if (!list || list->count == 0 || list->entries[0].reason) {
        address_list_put(list);
        *size = 0;
        return ND_SUCCESS;
    }
    needed = address_list_bytes(list, NULL);
    if (!out || *size < needed) {
        *size = needed;
        status = ND_BUFFER_OVERFLOW;
    } else {
        address_list_export(list, NULL, out); /* *size stays as passed */
    }
    address_list_put(list);
    return status;
}

/* Is it one of ours? The pages have no other answer for one that cannot be looked up for want of memory. */
static HRESULT check_local(const union address *local)
{
    NTSTATUS status = address_find(&local->sa, NULL);

    return status == ND_NO_MEMORY ? ND_INVALID_ADDRESS : status;
}

HRESULT ND_HELPER_API NdResolveAddress(const struct sockaddr *remote, SIZE_T remote_length, struct sockaddr *local,
                                       SIZE_T *local_length)
{
    HRESULT status = check_started();
    union address to, from;
    size_t needed;
    char text[64];

    if (!local_length)
        return ND_INVALID_PARAMETER_4;
    if (status == S_OK)
        status = address_import(remote, remote_length, &to);
    if (status == S_OK)
        status = address_route(&to.sa, &from);
    if (status != S_OK) {
        *local_length = 0;
        return status;
    }
    needed = address_length(&from.sa);
    if (!local || *local_length < needed) {
        *local_length = needed;
        return ND_BUFFER_OVERFLOW;
    }
    /* The reference fills the buffer before it looks whether the address is one of its own. */
    memcpy(local, &from, needed);
    *local_length = needed;
    status = check_local(&from);
    if (status != S_OK)
        log_info("the route leaves by %s, which is no RDMA address", address_text(&from.sa, text, sizeof(text)));
    return status;
}

/* The argument checks that NdCheckAddress and NdOpenAdapter share. */
static HRESULT import_local(const struct sockaddr *address, SIZE_T length, union address *out)
{
    if (!address || length < sizeof(struct sockaddr) || length > UINT32_MAX)
        return ND_INVALID_PARAMETER_2;
    if (address->sa_family == AF_INET6 && length < sizeof(struct sockaddr_in6))
        return ND_INVALID_PARAMETER_2;
    return address_import(address, length, out);
}

HRESULT ND_HELPER_API NdCheckAddress(const struct sockaddr *address, SIZE_T length)
{
    HRESULT status = check_started();
    union address local;

    if (status == S_OK)
        status = import_local(address, length, &local);
    return status == S_OK ? check_local(&local) : status;
}

HRESULT ND_HELPER_API NdOpenAdapter(REFIID iid, const struct sockaddr *address, SIZE_T length, VOID **out)
{
    IND2Provider *provider = NULL;
    union address local;
    HRESULT status;
    UINT64 id;

    if (!out)
        return ND_INVALID_PARAMETER_4;
    *out = NULL;
    if (!iid)
        return E_NOINTERFACE;
    status = check_started();
    if (status == S_OK)
        status = import_local(address, length, &local);
    if (status != S_OK)
        return status;
    if (IsEqualGUID(iid, &IID_INDAdapter))
        return nd1_open_adapter(&local.sa, address_length(&local.sa), (INDAdapter **)out);
    if (nd2_provider_create(&IID_IND2Provider, (void **)&provider) != S_OK)
        return ND_INVALID_ADDRESS;
    if (provider->lpVtbl->ResolveAddress(provider, &local.sa, (ULONG)address_length(&local.sa), &id) == ND_SUCCESS)
        status = provider->lpVtbl->OpenAdapter(provider, iid, id, out);
    else
        status = ND_INVALID_ADDRESS;
    provider->lpVtbl->Release(provider);
    return status;
}

HRESULT ND_HELPER_API NdOpenV1Adapter(const struct sockaddr *address, SIZE_T length, INDAdapter **out)
{
    return NdOpenAdapter(&IID_INDAdapter, address, length, (VOID **)out);
}
