/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/status.h"
#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 9, ndspi.md 5.8. */

static struct nd2_mw *impl_from_IND2MemoryWindow(IND2MemoryWindow *iface)
{
    return (struct nd2_mw *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_mw_QueryInterface(IND2MemoryWindow *iface, REFIID iid, void **out)
{
    struct nd2_mw *object = impl_from_IND2MemoryWindow(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2MemoryWindow, NULL);
}

static ULONG STDMETHODCALLTYPE nd2_mw_AddRef(IND2MemoryWindow *iface)
{
    return nd2_addref(&impl_from_IND2MemoryWindow(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_mw_Release(IND2MemoryWindow *iface)
{
    struct nd2_mw *object = impl_from_IND2MemoryWindow(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        mw_release(object->mw);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2MemoryWindow */

static UINT32 STDMETHODCALLTYPE nd2_mw_GetRemoteToken(IND2MemoryWindow *iface)
{
    return mw_token(impl_from_IND2MemoryWindow(iface)->mw);
}

static const IND2MemoryWindowVtbl nd2_mw_vtbl = {
    /* IUnknown */
    nd2_mw_QueryInterface,
    nd2_mw_AddRef,
    nd2_mw_Release,
    /* IND2MemoryWindow */
    nd2_mw_GetRemoteToken,
};

HRESULT nd2_mw_create(struct adapter *adapter, IND2MemoryWindow **out)
{
    struct nd2_mw *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_INSUFFICIENT_RESOURCES; /* CreateMemoryWindow has no ND_NO_MEMORY */
    status = mw_create(adapter, MW_ND, NULL, &object->mw);
    if (status != ND_SUCCESS) {
        free(object);
        return status_without_no_memory(status);
    }
    object->IND2MemoryWindow_iface.lpVtbl = &nd2_mw_vtbl;
    object->refcount = 1;
    nd2_object_made();
    *out = &object->IND2MemoryWindow_iface;
    return ND_SUCCESS;
}

struct nd2_mw *unsafe_impl_from_IND2MemoryWindow(IUnknown *iface)
{
    if (!iface || ((IND2MemoryWindow *)iface)->lpVtbl != &nd2_mw_vtbl)
        return NULL;
    return impl_from_IND2MemoryWindow((IND2MemoryWindow *)iface);
}
