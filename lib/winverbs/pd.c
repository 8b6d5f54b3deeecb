/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <ntstatus.h>

/* Source: winverbs.md section 6.1. Regions have no object: they are found by their local key, in this domain alone. */

struct wv_region {
    struct list link;
    uint32_t lkey;
    struct mr *mr;
};

static struct wv_pd *impl_from_IWVProtectionDomain(IWVProtectionDomain *iface)
{
    return (struct wv_pd *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_pd_QueryInterface(IWVProtectionDomain *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVProtectionDomain(iface)->object, iid, out, &IID_IWVProtectionDomain,
                              &IID_IWVOverlapped, NULL);
}

static ULONG STDMETHODCALLTYPE wv_pd_AddRef(IWVProtectionDomain *iface)
{
    return wv_object_addref(&impl_from_IWVProtectionDomain(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_pd_Release(IWVProtectionDomain *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVProtectionDomain(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_pd_CancelOverlappedRequests(IWVProtectionDomain *iface)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    return wv_dead() ? WV_DEVICE_REMOVED : WV_SUCCESS; /* everything is over before its call returns */
}

static HRESULT STDMETHODCALLTYPE wv_pd_GetOverlappedResult(IWVProtectionDomain *iface, OVERLAPPED *overlapped,
                                                           DWORD *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static struct list *bucket_of(struct wv_pd *pd, uint32_t lkey)
{
    return &pd->regions[(lkey ^ lkey >> 8 ^ lkey >> 16) % WV_PD_BUCKETS];
}

static void destroy(struct wv_object *object)
{
    struct wv_pd *pd = (struct wv_pd *)((char *)object - offsetof(struct wv_pd, object));
    struct list *node;

    for (unsigned i = 0; i < WV_PD_BUCKETS; i++) {
        while ((node = list_pop(&pd->regions[i])) != NULL) {
            struct wv_region *region = list_entry(node, struct wv_region, link);

            mr_release(region->mr);
            free(region);
        }
    }
    adapter_unref(pd->adapter);
    pthread_mutex_destroy(&pd->lock);
    wv_object_unpin(&pd->device->object);
    free(pd);
}

/* IWVProtectionDomain */

static HRESULT removed(const struct wv_pd *pd)
{
    return wv_dead() || adapter_removed(pd->adapter) ? WV_DEVICE_REMOVED : WV_SUCCESS;
}

/* What the makers share: clears *out, then looks whether there is still a device. */
static HRESULT check(const struct wv_pd *pd, void **out)
{
    if (!out)
        return WV_INVALID_PARAMETER;
    *out = NULL;
    return removed(pd);
}

static HRESULT STDMETHODCALLTYPE wv_pd_CreateSharedReceiveQueue(IWVProtectionDomain *iface, SIZE_T max_wr,
                                                                SIZE_T max_sge, SIZE_T limit,
                                                                IWVSharedReceiveQueue **out)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    HRESULT hr = check(pd, (void **)out);

    log_trace("%p: %zu", (void *)iface, (size_t)max_wr);
    return FAILED(hr) ? hr : wv_srq_create(pd, max_wr, max_sge, limit, out);
}

static HRESULT STDMETHODCALLTYPE wv_pd_CreateConnectQueuePair(IWVProtectionDomain *iface, WV_QP_CREATE *attributes,
                                                              IWVConnectQueuePair **out)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    HRESULT hr = check(pd, (void **)out);

    log_trace("%p", (void *)iface);
    return FAILED(hr) ? hr : wv_connect_qp_create(pd, attributes, out);
}

static HRESULT STDMETHODCALLTYPE wv_pd_CreateDatagramQueuePair(IWVProtectionDomain *iface, WV_QP_CREATE *attributes,
                                                               IWVDatagramQueuePair **out)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    HRESULT hr = check(pd, (void **)out);

    log_trace("%p", (void *)iface);
    return FAILED(hr) ? hr : wv_datagram_qp_create(pd, attributes, out);
}

static struct wv_region *find_locked(struct wv_pd *pd, uint32_t lkey)
{
    list_for_each (node, bucket_of(pd, lkey)) {
        struct wv_region *region = list_entry(node, struct wv_region, link);

        if (region->lkey == lkey)
            return region;
    }
    return NULL;
}

struct mr *wv_pd_pin_region(struct wv_pd *pd, uint32_t lkey)
{
    struct wv_region *region;
    struct mr *mr = NULL;

    pthread_mutex_lock(&pd->lock);
    region = find_locked(pd, lkey);
    if (region && mr_pin(region->mr))
        mr = region->mr;
    pthread_mutex_unlock(&pd->lock);
    return mr;
}

static HRESULT register_region(struct wv_pd *pd, const VOID *buffer, SIZE_T length, DWORD access, WV_MEMORY_KEYS *keys)
{
    struct wv_region *region = calloc(1, sizeof(*region));
    NTSTATUS status;

    if (!region)
        return WV_NO_MEMORY;
    status = mr_register_access(pd->adapter, buffer, length, wv_access_to_ibv(access), &region->mr);
    if (status != ND_SUCCESS) {
        free(region);
        return status_wv(status);
    }
    region->lkey = region->mr->mr->lkey;
    pthread_mutex_lock(&pd->lock);
    list_add_tail(bucket_of(pd, region->lkey), &region->link);
    pthread_mutex_unlock(&pd->lock);
    keys->Lkey = region->lkey;
    keys->Rkey = htonl(region->mr->mr->rkey);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_pd_RegisterMemory(IWVProtectionDomain *iface, const VOID *buffer, SIZE_T length,
                                                      DWORD access, OVERLAPPED *overlapped, WV_MEMORY_KEYS *keys)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    struct wv_inline now;
    HRESULT hr = removed(pd);

    log_trace("%p: %p %zu 0x%x", (void *)iface, buffer, (size_t)length, (unsigned)access);
    if (FAILED(hr))
        return hr;
    if (!keys || !buffer || !length)
        return WV_INVALID_PARAMETER;
    hr = wv_inline_begin(&now, pd->device->provider, overlapped);
    if (FAILED(hr))
        return hr;
    return wv_inline_end(&now, register_region(pd, buffer, length, access, keys), sizeof(*keys));
}

static HRESULT deregister_region(struct wv_pd *pd, uint32_t lkey)
{
    struct wv_region *region;
    NTSTATUS status;

    pthread_mutex_lock(&pd->lock);
    region = find_locked(pd, lkey);
    if (region)
        list_del(&region->link); /* nobody else finds it meanwhile */
    pthread_mutex_unlock(&pd->lock);
    if (!region)
        return WV_NOT_FOUND;
    status = mr_deregister(region->mr);
    if (status != ND_SUCCESS) {
        pthread_mutex_lock(&pd->lock);
        list_add_tail(bucket_of(pd, lkey), &region->link);
        pthread_mutex_unlock(&pd->lock);
        return status_wv(status);
    }
    free(region);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_pd_DeregisterMemory(IWVProtectionDomain *iface, UINT32 lkey, OVERLAPPED *overlapped)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    struct wv_inline now;
    HRESULT hr;

    log_trace("%p: 0x%x", (void *)iface, (unsigned)lkey);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = wv_inline_begin(&now, pd->device->provider, overlapped);
    if (FAILED(hr))
        return hr;
    return wv_inline_end(&now, deregister_region(pd, lkey), 0);
}

static HRESULT STDMETHODCALLTYPE wv_pd_AllocateMemoryWindow(IWVProtectionDomain *iface, IWVMemoryWindow **out)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    HRESULT hr = check(pd, (void **)out);

    log_trace("%p", (void *)iface);
    return FAILED(hr) ? hr : wv_mw_create(pd, out);
}

static HRESULT STDMETHODCALLTYPE wv_pd_CreateAddressHandle(IWVProtectionDomain *iface, WV_ADDRESS_VECTOR *address,
                                                           IWVAddressHandle **out, ULONG_PTR *key)
{
    struct wv_pd *pd = impl_from_IWVProtectionDomain(iface);
    HRESULT hr = check(pd, (void **)out);

    log_trace("%p", (void *)iface);
    if (FAILED(hr))
        return hr;
    return address && key ? wv_ah_create(pd, address, out, key) : WV_INVALID_PARAMETER;
}

static const IWVProtectionDomainVtbl wv_pd_vtbl = {
    /* IUnknown */
    wv_pd_QueryInterface,
    wv_pd_AddRef,
    wv_pd_Release,
    /* IWVOverlapped */
    wv_pd_CancelOverlappedRequests,
    wv_pd_GetOverlappedResult,
    /* IWVProtectionDomain */
    wv_pd_CreateSharedReceiveQueue,
    wv_pd_CreateConnectQueuePair,
    wv_pd_CreateDatagramQueuePair,
    wv_pd_RegisterMemory,
    wv_pd_DeregisterMemory,
    wv_pd_AllocateMemoryWindow,
    wv_pd_CreateAddressHandle,
};

HRESULT wv_pd_create(struct wv_device *device, struct adapter *adapter, IWVProtectionDomain **out)
{
    struct wv_pd *pd = calloc(1, sizeof(*pd));

    if (!pd)
        return WV_NO_MEMORY;
    pthread_mutex_init(&pd->lock, NULL);
    for (unsigned i = 0; i < WV_PD_BUCKETS; i++)
        list_init(&pd->regions[i]);
    pd->IWVProtectionDomain_iface.lpVtbl = &wv_pd_vtbl;
    pd->device = device;
    pd->adapter = adapter_ref(adapter);
    wv_object_pin(&device->object);
    wv_object_init(&pd->object, destroy);
    *out = &pd->IWVProtectionDomain_iface;
    return WV_SUCCESS;
}
