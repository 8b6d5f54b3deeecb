/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/entry.h"
#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 4. All providers are alike: they have no state of their own. */

struct nd1_provider {
    INDProvider INDProvider_iface;
    uint32_t refcount;
};

static struct nd1_provider *impl_from_INDProvider(INDProvider *iface)
{
    return (struct nd1_provider *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_provider_QueryInterface(INDProvider *iface, REFIID iid, void **out)
{
    struct nd1_provider *provider = impl_from_INDProvider(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &provider->refcount, iid, out, &IID_INDProvider, NULL);
}

static ULONG STDMETHODCALLTYPE nd1_provider_AddRef(INDProvider *iface)
{
    return com_addref(&impl_from_INDProvider(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_provider_Release(INDProvider *iface)
{
    struct nd1_provider *provider = impl_from_INDProvider(iface);
    ULONG count = com_release(&provider->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0) {
        free(provider);
        module_object_gone();
    }
    return count;
}

/* INDProvider */

static HRESULT STDMETHODCALLTYPE nd1_provider_QueryAddressList(INDProvider *iface, SOCKET_ADDRESS_LIST *list,
                                                               SIZE_T *size)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    if (!size)
        return ND_INVALID_PARAMETER_2;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return address_list_query(NULL, list, size);
}

HRESULT nd1_open_adapter(const struct sockaddr *address, SIZE_T length, INDAdapter **out)
{
    struct address_entry entry;
    struct adapter *adapter;
    union address local;
    NTSTATUS status;

    status = address_import(address, length, &local);
    if (status == ND_SUCCESS)
        status = address_find(&local.sa, &entry);
    if (status != ND_SUCCESS)
        return status;
    status = adapter_open(entry.adapter_id, &adapter);
    if (status != ND_SUCCESS) /* an id that is not known any more: the address has just gone */
        return status == ND_INVALID_PARAMETER ? ND_INVALID_ADDRESS : status;
    status = nd1_adapter_create(adapter, &entry.address, out);
    adapter_unref(adapter);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_provider_OpenAdapter(INDProvider *iface, const struct sockaddr *address,
                                                          SIZE_T length, INDAdapter **out)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    if (!out)
        return ND_INVALID_PARAMETER_3;
    *out = NULL;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return nd1_open_adapter(address, length, out);
}

static const INDProviderVtbl nd1_provider_vtbl = {
    /* IUnknown */
    nd1_provider_QueryInterface,
    nd1_provider_AddRef,
    nd1_provider_Release,
    /* INDProvider */
    nd1_provider_QueryAddressList,
    nd1_provider_OpenAdapter,
};

HRESULT nd1_provider_create(REFIID iid, void **out)
{
    struct nd1_provider *provider;

    *out = NULL;
    if (!com_iid_is(iid, &IID_INDProvider, NULL))
        return E_NOINTERFACE;
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return E_OUTOFMEMORY;
    provider->INDProvider_iface.lpVtbl = &nd1_provider_vtbl;
    provider->refcount = 1;
    module_object_made();
    *out = &provider->INDProvider_iface;
    return S_OK;
}
