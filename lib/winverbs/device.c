/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <stdlib.h>
#include <string.h>

#include "core/device_query.h"
#include "core/port_watch.h"

/* Source: winverbs.md section 4. */

static struct wv_device *impl_from_IWVDevice(IWVDevice *iface)
{
    return (struct wv_device *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_device_QueryInterface(IWVDevice *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVDevice(iface)->object, iid, out, &IID_IWVDevice, &IID_IWVOverlapped,
                              NULL);
}

static ULONG STDMETHODCALLTYPE wv_device_AddRef(IWVDevice *iface)
{
    return wv_object_addref(&impl_from_IWVDevice(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_device_Release(IWVDevice *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVDevice(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_device_CancelOverlappedRequests(IWVDevice *iface)
{
    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    port_watch_cancel(impl_from_IWVDevice(iface)->watch);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_device_GetOverlappedResult(IWVDevice *iface, OVERLAPPED *overlapped, DWORD *bytes,
                                                               BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static void destroy(struct wv_object *object)
{
    struct wv_device *device = (struct wv_device *)((char *)object - offsetof(struct wv_device, object));

    port_watch_destroy(device->watch);
    adapter_unref(device->adapter);
    wv_object_unpin(&device->provider->object);
    free(device);
}

/* IWVDevice */

static struct device *core_device(IWVDevice *iface)
{
    return impl_from_IWVDevice(iface)->adapter->device;
}

static HRESULT removed(const struct wv_device *device)
{
    return wv_dead() || adapter_removed(device->adapter) ? WV_DEVICE_REMOVED : WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_device_Query(IWVDevice *iface, WV_DEVICE_ATTRIBUTES *attributes)
{
    struct wv_device *device = impl_from_IWVDevice(iface);
    HRESULT hr = removed(device);

    log_trace("%p", (void *)iface);
    if (!attributes)
        return WV_INVALID_PARAMETER;
    if (SUCCEEDED(hr))
        wv_device_attributes(device->adapter, attributes);
    return hr;
}

/* A port that does not exist is what Windows' driver calls an invalid handle. */
static HRESULT STDMETHODCALLTYPE wv_device_QueryPort(IWVDevice *iface, UINT8 port, WV_PORT_ATTRIBUTES *attributes)
{
    struct ibv_port_attr attr;
    NTSTATUS status;

    log_trace("%p: %u", (void *)iface, port);
    if (!attributes)
        return WV_INVALID_PARAMETER;
    status = device_query_port(core_device(iface), port, &attr);
    if (status == ND_INVALID_PARAMETER_1)
        return E_HANDLE;
    if (status == ND_SUCCESS)
        wv_port_attributes(core_device(iface), &attr, attributes);
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_device_QueryGid(IWVDevice *iface, UINT8 port, DWORD index, WV_GID *gid)
{
    union ibv_gid entry;
    NTSTATUS status;

    log_trace("%p: %u %u", (void *)iface, port, (unsigned)index);
    if (!gid)
        return WV_INVALID_PARAMETER;
    status = device_query_gid(core_device(iface), port, index, &entry);
    if (status == ND_SUCCESS)
        memcpy(gid, &entry, sizeof(*gid));
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_device_FindGid(IWVDevice *iface, UINT8 port, WV_GID *gid, DWORD *index)
{
    union ibv_gid entry;
    uint32_t found;
    NTSTATUS status;

    log_trace("%p: %u", (void *)iface, port);
    if (!gid || !index)
        return WV_INVALID_PARAMETER;
    memcpy(&entry, gid, sizeof(entry));
    status = device_find_gid(core_device(iface), port, &entry, &found);
    if (status == ND_INVALID_ADDRESS)
        return WV_INVALID_PARAMETER_2; /* of the query past the end, which the search ends with */
    if (status == ND_SUCCESS)
        *index = found;
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_device_QueryPkey(IWVDevice *iface, UINT8 port, UINT16 index, NET16 *pkey)
{
    uint16_t entry;
    NTSTATUS status;

    log_trace("%p: %u %u", (void *)iface, port, index);
    if (!pkey)
        return WV_INVALID_PARAMETER;
    status = device_query_pkey(core_device(iface), port, index, &entry);
    if (status == ND_SUCCESS)
        *pkey = entry;
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_device_FindPkey(IWVDevice *iface, UINT8 port, NET16 pkey, UINT16 *index)
{
    uint32_t found;
    NTSTATUS status;

    log_trace("%p: %u", (void *)iface, port);
    if (!index)
        return WV_INVALID_PARAMETER;
    status = device_find_pkey(core_device(iface), port, pkey, &found);
    if (status == ND_SUCCESS)
        *index = (UINT16)found;
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_device_CreateCompletionQueue(IWVDevice *iface, SIZE_T *entries,
                                                                 IWVCompletionQueue **out)
{
    struct wv_device *device = impl_from_IWVDevice(iface);
    IWVCompletionQueue *made;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    if (!entries || !*entries)
        return WV_INVALID_PARAMETER;
    hr = removed(device);
    if (FAILED(hr))
        return hr;
    if (*entries > device->adapter->limits.max_cq_depth)
        return WV_INSUFFICIENT_RESOURCES;
    hr = wv_cq_create(device, (uint32_t)*entries, &made);
    if (SUCCEEDED(hr))
        *out = made;
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_device_AllocateProtectionDomain(IWVDevice *iface, IWVProtectionDomain **out)
{
    struct wv_device *device = impl_from_IWVDevice(iface);
    IWVProtectionDomain *made;
    struct adapter *adapter;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    hr = removed(device);
    if (FAILED(hr))
        return hr;
    hr = adapter_open_device(device->adapter->device->name, device->adapter->port, &adapter);
    if (hr == ND_INVALID_PARAMETER) /* it left this moment */
        return WV_DEVICE_REMOVED;
    if (hr != ND_SUCCESS)
        return status_wv(hr);
    hr = wv_pd_create(device, adapter, &made);
    adapter_unref(adapter);
    if (SUCCEEDED(hr))
        *out = made;
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_device_Notify(IWVDevice *iface, UINT8 port, OVERLAPPED *overlapped, DWORD *flags)
{
    struct wv_device *device = impl_from_IWVDevice(iface);
    struct wv_wait wait;
    NTSTATUS status;
    HRESULT hr;

    log_trace("%p: %u", (void *)iface, port);
    if (!flags)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    status = port_watch_notify(device->watch, port, device->provider->file, overlapped, flags);
    return wv_wait_end(&wait, status == ND_INVALID_PARAMETER_1 ? E_HANDLE : status_wv(status));
}

static const IWVDeviceVtbl wv_device_vtbl = {
    /* IUnknown */
    wv_device_QueryInterface,
    wv_device_AddRef,
    wv_device_Release,
    /* IWVOverlapped */
    wv_device_CancelOverlappedRequests,
    wv_device_GetOverlappedResult,
    /* IWVDevice */
    wv_device_Query,
    wv_device_QueryPort,
    wv_device_QueryGid,
    wv_device_FindGid,
    wv_device_QueryPkey,
    wv_device_FindPkey,
    wv_device_CreateCompletionQueue,
    wv_device_AllocateProtectionDomain,
    wv_device_Notify,
};

HRESULT wv_device_create(struct wv_provider *provider, struct adapter *adapter, IWVDevice **out)
{
    struct wv_device *device = calloc(1, sizeof(*device));
    NTSTATUS status;

    if (!device)
        return WV_NO_MEMORY;
    status = port_watch_create(adapter->device, &device->watch);
    if (status != ND_SUCCESS) {
        free(device);
        return status_wv(status);
    }
    device->IWVDevice_iface.lpVtbl = &wv_device_vtbl;
    device->provider = provider;
    device->adapter = adapter_ref(adapter);
    wv_object_pin(&provider->object);
    wv_object_init(&device->object, destroy);
    *out = &device->IWVDevice_iface;
    return WV_SUCCESS;
}
