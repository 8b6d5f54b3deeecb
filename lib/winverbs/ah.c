/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <stdlib.h>

#include "core/ah.h"

/* Source: winverbs.md section 6.1 and 6.2. */

static struct wv_ah *impl_from_IWVAddressHandle(IWVAddressHandle *iface)
{
    return (struct wv_ah *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_ah_QueryInterface(IWVAddressHandle *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVAddressHandle(iface)->object, iid, out, &IID_IWVAddressHandle, NULL,
                              NULL);
}

static ULONG STDMETHODCALLTYPE wv_ah_AddRef(IWVAddressHandle *iface)
{
    return wv_object_addref(&impl_from_IWVAddressHandle(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_ah_Release(IWVAddressHandle *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVAddressHandle(iface)->object);
}

static void destroy(struct wv_object *object)
{
    struct wv_ah *ah = (struct wv_ah *)((char *)object - offsetof(struct wv_ah, object));

    ah_destroy(ah->ah);
    wv_object_unpin(&ah->pd->object);
    free(ah);
}

static const IWVAddressHandleVtbl wv_ah_vtbl = {
    /* IUnknown */
    wv_ah_QueryInterface,
    wv_ah_AddRef,
    wv_ah_Release,
};

HRESULT wv_ah_create(struct wv_pd *pd, const WV_ADDRESS_VECTOR *vector, IWVAddressHandle **out, ULONG_PTR *key)
{
    struct ibv_ah_attr attr;
    struct wv_ah *ah;
    NTSTATUS status;
    HRESULT hr;

    hr = wv_av_to_ibv(pd->adapter->device, vector, &attr);
    if (FAILED(hr))
        return hr;
    ah = calloc(1, sizeof(*ah));
    if (!ah)
        return WV_NO_MEMORY;
    status = ah_create(pd->adapter, &attr, &ah->ah);
    if (status != ND_SUCCESS) {
        free(ah);
        return status_wv(status);
    }
    ah->IWVAddressHandle_iface.lpVtbl = &wv_ah_vtbl;
    ah->pd = pd;
    wv_object_pin(&pd->object);
    wv_object_init(&ah->object, destroy);
    *out = &ah->IWVAddressHandle_iface;
    *key = (ULONG_PTR)ah->ah;
    return WV_SUCCESS;
}
