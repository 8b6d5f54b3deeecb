/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 7, ndspi.md 5.8. The interface has the id of version 2's window, whose table it begins with: so
 * whoever asks by that id finds all of it, GetRemoteToken too. */

static struct nd1_mw *impl_from_IND2MemoryWindow(IND2MemoryWindow *iface)
{
    return (struct nd1_mw *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_mw_QueryInterface(IND2MemoryWindow *iface, REFIID iid, void **out)
{
    struct nd1_mw *object = impl_from_IND2MemoryWindow(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDMemoryWindow, NULL);
}

static ULONG STDMETHODCALLTYPE nd1_mw_AddRef(IND2MemoryWindow *iface)
{
    return com_addref(&impl_from_IND2MemoryWindow(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_mw_Release(IND2MemoryWindow *iface)
{
    struct nd1_mw *object = impl_from_IND2MemoryWindow(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        mw_release(object->mw);
        nd1_home_unref(object->home);
        free(object);
        module_object_gone();
    }
    return count;
}

/* IND2MemoryWindow */

static UINT32 STDMETHODCALLTYPE nd1_mw_GetRemoteToken(IND2MemoryWindow *iface)
{
    return mw_token(impl_from_IND2MemoryWindow(iface)->mw);
}

static const IND2MemoryWindowVtbl nd1_mw_vtbl = {
    /* IUnknown */
    nd1_mw_QueryInterface,
    nd1_mw_AddRef,
    nd1_mw_Release,
    /* IND2MemoryWindow */
    nd1_mw_GetRemoteToken,
};

HRESULT nd1_mw_create(struct nd1_home *home, ND_RESULT *revoked, INDMemoryWindow **out)
{
    struct nd1_mw *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = mw_create(home->adapter, MW_ND, revoked, &object->mw);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->IND2MemoryWindow_iface.lpVtbl = &nd1_mw_vtbl;
    object->refcount = 1;
    object->home = nd1_home_ref(home);
    module_object_made();
    *out = (INDMemoryWindow *)&object->IND2MemoryWindow_iface;
    return ND_SUCCESS;
}

struct nd1_mw *unsafe_impl_from_INDMemoryWindow(INDMemoryWindow *iface)
{
    IND2MemoryWindow *window = (IND2MemoryWindow *)iface;

    return window && window->lpVtbl == &nd1_mw_vtbl ? impl_from_IND2MemoryWindow(window) : NULL;
}
