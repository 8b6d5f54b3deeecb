/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/address.h"
#include "core/device_query.h"

/* Source: winverbs.md sections 1.2 and 3. Each provider has a file of its own: the handle on which everything that is made
 * below it completes. */

struct wv_shared {
    struct list link;
    struct adapter *adapter;
};

static struct wv_provider *impl_from_IWVProvider(IWVProvider *iface)
{
    return (struct wv_provider *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_provider_QueryInterface(IWVProvider *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVProvider(iface)->object, iid, out, &IID_IWVProvider, NULL, NULL);
}

static ULONG STDMETHODCALLTYPE wv_provider_AddRef(IWVProvider *iface)
{
    return wv_object_addref(&impl_from_IWVProvider(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_provider_Release(IWVProvider *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVProvider(iface)->object);
}

static void destroy(struct wv_object *object)
{
    struct wv_provider *provider = (struct wv_provider *)((char *)object - offsetof(struct wv_provider, object));
    struct list *node;

    while ((node = list_pop(&provider->shared)) != NULL) {
        struct wv_shared *shared = list_entry(node, struct wv_shared, link);

        adapter_unref(shared->adapter);
        free(shared);
    }
    pthread_mutex_destroy(&provider->lock);
    CloseHandle(provider->handle);
    file_unref(provider->file);
    free(provider);
}

/* IWVProvider */

static HANDLE STDMETHODCALLTYPE wv_provider_GetFileHandle(IWVProvider *iface)
{
    return impl_from_IWVProvider(iface)->handle;
}

static HRESULT STDMETHODCALLTYPE wv_provider_QueryDeviceList(IWVProvider *iface, NET64 *list, SIZE_T *size)
{
    size_t count;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    (void)iface;
    if (!size)
        return WV_INVALID_PARAMETER;
    status = device_guids((uint64_t *)list, list ? *size / sizeof(*list) : 0, &count);
    if (status != ND_SUCCESS)
        return status_wv(status);
    *size = count * sizeof(*list);
    return WV_SUCCESS;
}

static HRESULT open_guid(NET64 guid, struct adapter **out)
{
    char name[64];
    NTSTATUS status;

    if (wv_dead())
        return WV_DEVICE_REMOVED;
    status = device_find_guid(guid, name, sizeof(name));
    if (status == ND_SUCCESS)
        status = adapter_open_device(name, 1, out);
    return status == ND_INVALID_PARAMETER ? WV_FILE_NOT_FOUND : status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_provider_QueryDevice(IWVProvider *iface, NET64 guid,
                                                         WV_DEVICE_ATTRIBUTES *attributes)
{
    struct adapter *adapter;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    (void)iface;
    if (!attributes)
        return WV_INVALID_PARAMETER;
    hr = open_guid(guid, &adapter);
    if (FAILED(hr))
        return hr;
    wv_device_attributes(adapter, attributes);
    adapter_unref(adapter);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_provider_TranslateAddress(IWVProvider *iface, const SOCKADDR *address,
                                                              WV_DEVICE_ADDRESS *out)
{
    struct address_entry entry;
    union address local;
    uint16_t pkey;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    (void)iface;
    if (!address || !out)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    status = address_import(address, address_length(address), &local);
    if (status == ND_SUCCESS)
        status = address_find_own(&local, &entry);
    if (status == ND_SUCCESS)
        status = address_pkey(&local.sa, &pkey);
    if (status != ND_SUCCESS)
        return status_wv(status);
    memset(out, 0, sizeof(*out));
    out->DeviceGuid = htobe64(entry.guid);
    out->Pkey = pkey;
    out->PortNumber = entry.port;
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_provider_OpenDevice(IWVProvider *iface, NET64 guid, IWVDevice **out)
{
    struct wv_provider *provider = impl_from_IWVProvider(iface);
    struct adapter *adapter;
    IWVDevice *made;
    HRESULT hr;

    log_trace("%p: %016llx", (void *)iface, (unsigned long long)be64toh(guid));
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    hr = open_guid(guid, &adapter);
    if (FAILED(hr))
        return hr;
    hr = wv_device_create(provider, adapter, &made);
    adapter_unref(adapter);
    if (SUCCEEDED(hr))
        *out = made;
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_provider_CreateConnectEndpoint(IWVProvider *iface, IWVConnectEndpoint **out)
{
    IWVConnectEndpoint *made;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    hr = wv_connect_endpoint_create(impl_from_IWVProvider(iface), &made);
    if (SUCCEEDED(hr))
        *out = made;
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_provider_CreateDatagramEndpoint(IWVProvider *iface, IWVDatagramEndpoint **out)
{
    IWVDatagramEndpoint *made;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    hr = wv_datagram_endpoint_create(impl_from_IWVProvider(iface), &made);
    if (SUCCEEDED(hr))
        *out = made;
    return hr;
}

static const IWVProviderVtbl wv_provider_vtbl = {
    /* IUnknown */
    wv_provider_QueryInterface,
    wv_provider_AddRef,
    wv_provider_Release,
    /* IWVProvider */
    wv_provider_GetFileHandle,
    wv_provider_QueryDeviceList,
    wv_provider_QueryDevice,
    wv_provider_TranslateAddress,
    wv_provider_OpenDevice,
    wv_provider_CreateConnectEndpoint,
    wv_provider_CreateDatagramEndpoint,
};

/* ---- adapters of endpoints ---- */

static struct adapter *find_shared_locked(struct wv_provider *provider, const struct address_entry *entry)
{
    list_for_each (node, &provider->shared) {
        struct adapter *adapter = list_entry(node, struct wv_shared, link)->adapter;

        if (adapter->id == entry->adapter_id && !adapter_removed(adapter))
            return adapter;
    }
    return NULL;
}

HRESULT wv_provider_adapter(struct wv_provider *provider, const struct address_entry *entry, struct adapter **out)
{
    struct wv_shared *shared;
    NTSTATUS status = ND_SUCCESS;

    pthread_mutex_lock(&provider->lock);
    *out = find_shared_locked(provider, entry);
    if (!*out) {
        shared = calloc(1, sizeof(*shared));
        status = shared ? adapter_open(entry->adapter_id, &shared->adapter) : ND_NO_MEMORY;
        if (status == ND_SUCCESS) {
            list_add_tail(&provider->shared, &shared->link);
            *out = shared->adapter;
        } else {
            free(shared);
        }
    }
    pthread_mutex_unlock(&provider->lock);
    return status_wv(status);
}

/* ---- the way in ---- */

HRESULT WvGetObject(REFIID riid, LPVOID FAR *ppvObj)
{
    struct wv_provider *provider;

    if (!ppvObj)
        return E_POINTER;
    *ppvObj = NULL;
    if (!riid || !IsEqualGUID(riid, &IID_IWVProvider))
        return E_NOINTERFACE;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return WV_NO_MEMORY;
    provider->file = file_create();
    if (!provider->file)
        goto err_free;
    provider->handle = file_open_handle(provider->file, 0);
    if (!provider->handle)
        goto err_file;
    pthread_mutex_init(&provider->lock, NULL);
    list_init(&provider->shared);
    provider->IWVProvider_iface.lpVtbl = &wv_provider_vtbl;
    wv_object_init(&provider->object, destroy);
    *ppvObj = &provider->IWVProvider_iface;
    return WV_SUCCESS;

err_file:
    file_unref(provider->file);
err_free:
    free(provider);
    return WV_NO_MEMORY;
}
