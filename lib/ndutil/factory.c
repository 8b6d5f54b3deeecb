/* SPDX-License-Identifier: MIT */
#include "factory.h"

#include <stdlib.h>

#include "core/engine.h"
#include "core/module.h"
#include "nd1/entry.h"
#include "nd2/entry.h"

/* What the catalogue walk of libfabric and of version 1 asks for: IClassFactory, then CreateInstance of the provider
 * (ndspi-helpers.md 2, win32-surface.md 6.9). A factory has no state of its own. */
struct factory {
    IClassFactory IClassFactory_iface;
    uint32_t refcount;
};

HRESULT provider_create(REFIID iid, void **out)
{
    return iid && IsEqualGUID(iid, &IID_INDProvider) ? nd1_provider_create(iid, out) : nd2_provider_create(iid, out);
}

static struct factory *impl_from_IClassFactory(IClassFactory *iface)
{
    return (struct factory *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE factory_QueryInterface(IClassFactory *iface, REFIID iid, void **out)
{
    if (!out)
        return E_POINTER;
    *out = NULL;
    if (!iid || (!IsEqualGUID(iid, &IID_IUnknown) && !IsEqualGUID(iid, &IID_IClassFactory)))
        return E_NOINTERFACE;
    iface->lpVtbl->AddRef(iface);
    *out = iface;
    return S_OK;
}

static ULONG STDMETHODCALLTYPE factory_AddRef(IClassFactory *iface)
{
    return __atomic_add_fetch(&impl_from_IClassFactory(iface)->refcount, 1, __ATOMIC_RELAXED);
}

static ULONG STDMETHODCALLTYPE factory_Release(IClassFactory *iface)
{
    struct factory *factory = impl_from_IClassFactory(iface);
    ULONG count = __atomic_sub_fetch(&factory->refcount, 1, __ATOMIC_ACQ_REL);

    if (count == 0) {
        free(factory);
        module_object_gone();
    }
    return count;
}

/* IClassFactory */

static HRESULT STDMETHODCALLTYPE factory_CreateInstance(IClassFactory *iface, IUnknown *outer, REFIID iid, void **out)
{
    (void)iface;
    if (!out)
        return E_POINTER;
    *out = NULL;
    if (outer)
        return CLASS_E_NOAGGREGATION;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return provider_create(iid, out);
}

/* Keeps DllCanUnloadNow from saying S_OK. */
static HRESULT STDMETHODCALLTYPE factory_LockServer(IClassFactory *iface, BOOL lock)
{
    (void)iface;
    if (lock)
        module_object_made();
    else
        module_object_gone();
    return S_OK;
}

static const IClassFactoryVtbl factory_vtbl = {
    /* IUnknown */
    factory_QueryInterface,
    factory_AddRef,
    factory_Release,
    /* IClassFactory */
    factory_CreateInstance,
    factory_LockServer,
};

HRESULT factory_create(REFIID iid, void **out)
{
    struct factory *factory;

    *out = NULL;
    if (!iid || !IsEqualGUID(iid, &IID_IClassFactory))
        return E_NOINTERFACE;
    factory = calloc(1, sizeof(*factory));
    if (!factory)
        return E_OUTOFMEMORY;
    factory->IClassFactory_iface.lpVtbl = &factory_vtbl;
    factory->refcount = 1;
    module_object_made();
    *out = &factory->IClassFactory_iface;
    return S_OK;
}
