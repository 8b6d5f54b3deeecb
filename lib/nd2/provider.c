/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/address.h"
#include "nd2/entry.h"
#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 3. All providers are alike: they have no state of their own. */
struct nd2_provider {
    IND2Provider IND2Provider_iface;
    uint32_t refcount;
};

static struct nd2_provider *impl_from_IND2Provider(IND2Provider *iface)
{
    return (struct nd2_provider *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_provider_QueryInterface(IND2Provider *iface, REFIID iid, void **out)
{
    struct nd2_provider *provider = impl_from_IND2Provider(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &provider->refcount, iid, out, &IID_IND2Provider, NULL);
}

static ULONG STDMETHODCALLTYPE nd2_provider_AddRef(IND2Provider *iface)
{
    return nd2_addref(&impl_from_IND2Provider(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_provider_Release(IND2Provider *iface)
{
    struct nd2_provider *provider = impl_from_IND2Provider(iface);
    ULONG count = nd2_release(&provider->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0) {
        free(provider);
        nd2_object_gone();
    }
    return count;
}

/* IND2Provider */

HRESULT nd2_export_addresses(const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out, ULONG *size)
{
    NTSTATUS status;
    size_t bytes;

    if (!size)
        return ND_INVALID_PARAMETER_2;
    bytes = *size;
    status = address_list_query(adapter_id, out, &bytes);
    *size = (ULONG)bytes;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_provider_QueryAddressList(IND2Provider *iface, SOCKET_ADDRESS_LIST *list,
                                                               ULONG *size)
{
    log_trace("%p", (void *)iface);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return nd2_export_addresses(NULL, list, size);
}

static HRESULT STDMETHODCALLTYPE nd2_provider_ResolveAddress(IND2Provider *iface, const struct sockaddr *address,
                                                             ULONG length, UINT64 *id)
{
    struct address_entry entry;
    union address local;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (!id)
        return ND_INVALID_PARAMETER_3;
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    status = address_import(address, length, &local);
    if (status == ND_SUCCESS)
        status = address_find(&local.sa, &entry);
    if (status == ND_SUCCESS)
        *id = entry.adapter_id;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_provider_OpenAdapter(IND2Provider *iface, REFIID iid, UINT64 id, void **out)
{
    struct adapter *adapter;
    IND2Adapter *made;
    NTSTATUS status;

    log_trace("%p: %016llx", (void *)iface, (unsigned long long)id);
    if (!out)
        return ND_INVALID_PARAMETER_3;
    *out = NULL;
    if (!nd2_iid_is(iid, &IID_IND2Adapter, NULL))
        return E_NOINTERFACE;
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    status = adapter_open(id, &adapter);
    if (status != ND_SUCCESS)
        return status;
    status = nd2_adapter_create(adapter, &made);
    adapter_unref(adapter);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static const IND2ProviderVtbl nd2_provider_vtbl = {
    /* IUnknown */
    nd2_provider_QueryInterface,
    nd2_provider_AddRef,
    nd2_provider_Release,
    /* IND2Provider */
    nd2_provider_QueryAddressList,
    nd2_provider_ResolveAddress,
    nd2_provider_OpenAdapter,
};

HRESULT nd2_provider_create(REFIID iid, void **out)
{
    struct nd2_provider *provider;

    *out = NULL;
    if (!nd2_iid_is(iid, &IID_IND2Provider, NULL))
        return E_NOINTERFACE;
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return E_OUTOFMEMORY;
    provider->IND2Provider_iface.lpVtbl = &nd2_provider_vtbl;
    provider->refcount = 1;
    nd2_object_made();
    *out = &provider->IND2Provider_iface;
    return S_OK;
}
