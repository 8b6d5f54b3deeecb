/* SPDX-License-Identifier: MIT */
#include "ndspi.h"

#include "core/engine.h"
#include "core/module.h"
#include "factory.h"

/* The entry points by which a program that walks the provider catalogue itself gets at a provider: a class factory or the
 * provider itself (ndspi-helpers.md 2). */

NDV_API HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);
NDV_API HRESULT DllCanUnloadNow(void);

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out)
{
    (void)clsid; /* the provider's own id in the catalogue: there is one provider */
    if (!out)
        return E_POINTER;
    *out = NULL;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (iid && IsEqualGUID(iid, &IID_IClassFactory))
        return factory_create(iid, out);
    return provider_create(iid, out);
}

HRESULT DllCanUnloadNow(void)
{
    return module_objects() == 0 ? S_OK : S_FALSE;
}
