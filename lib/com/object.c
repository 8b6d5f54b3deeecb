/* SPDX-License-Identifier: MIT */
#include "object.h"

bool com_iid_is(REFIID iid, const GUID *own, const GUID *base)
{
    return iid && (IsEqualGUID(iid, own) || IsEqualGUID(iid, &IID_IUnknown) || (base && IsEqualGUID(iid, base)));
}

HRESULT com_query_interface(IUnknown *iface, uint32_t *refcount, REFIID iid, void **out, const GUID *own,
                            const GUID *base)
{
    if (!out)
        return E_POINTER;
    if (!com_iid_is(iid, own, base)) {
        *out = NULL;
        return E_NOINTERFACE;
    }
    com_addref(refcount);
    *out = iface;
    return S_OK;
}
