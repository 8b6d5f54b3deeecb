/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <stdlib.h>

#include "core/mw.h"

/* Source: winverbs.md sections 6.1, 6.2 and 7.6. */

static struct wv_mw *impl_from_IWVMemoryWindow(IWVMemoryWindow *iface)
{
    return (struct wv_mw *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_mw_QueryInterface(IWVMemoryWindow *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVMemoryWindow(iface)->object, iid, out, &IID_IWVMemoryWindow, NULL,
                              NULL);
}

static ULONG STDMETHODCALLTYPE wv_mw_AddRef(IWVMemoryWindow *iface)
{
    return wv_object_addref(&impl_from_IWVMemoryWindow(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_mw_Release(IWVMemoryWindow *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVMemoryWindow(iface)->object);
}

static void destroy(struct wv_object *object)
{
    struct wv_mw *mw = (struct wv_mw *)((char *)object - offsetof(struct wv_mw, object));

    mw_release(mw->mw);
    wv_object_unpin(&mw->pd->object);
    free(mw);
}

static const IWVMemoryWindowVtbl wv_mw_vtbl = {
    /* IUnknown */
    wv_mw_QueryInterface,
    wv_mw_AddRef,
    wv_mw_Release,
};

struct wv_mw *unsafe_impl_from_IWVMemoryWindow(IWVMemoryWindow *iface)
{
    return iface && iface->lpVtbl == &wv_mw_vtbl ? impl_from_IWVMemoryWindow(iface) : NULL;
}

HRESULT wv_mw_create(struct wv_pd *pd, IWVMemoryWindow **out)
{
    struct wv_mw *mw = calloc(1, sizeof(*mw));
    NTSTATUS status;

    if (!mw)
        return WV_NO_MEMORY;
    status = mw_create(pd->adapter, MW_TYPE_1, NULL, &mw->mw);
    if (status != ND_SUCCESS) {
        free(mw);
        return status_wv(status);
    }
    mw->IWVMemoryWindow_iface.lpVtbl = &wv_mw_vtbl;
    mw->pd = pd;
    wv_object_pin(&pd->object);
    wv_object_init(&mw->object, destroy);
    *out = &mw->IWVMemoryWindow_iface;
    return WV_SUCCESS;
}

static uint32_t bind_flags(const struct wv_qp *qp, DWORD flags)
{
    uint32_t op = flags & WV_SEND_FENCE ? ND_OP_FLAG_READ_FENCE : 0;

    if (!(flags & WV_SEND_SIGNALED) && !(qp->attributes.QpFlags & WV_QP_SIGNAL_SENDS))
        op |= ND_OP_FLAG_SILENT_SUCCESS;
    return op;
}

HRESULT wv_qp_bind(struct wv_qp *qp, IWVMemoryWindow *window, UINT64 id, uint32_t lkey, DWORD access, DWORD flags,
                   const VOID *buffer, SIZE_T length, NET32 *rkey)
{
    struct wv_mw *mw = unsafe_impl_from_IWVMemoryWindow(window);
    struct mr *mr = NULL;
    HRESULT hr;

    if (cq_forked)
        return WV_DEVICE_REMOVED;
    if (!mw || mw->pd != qp->pd || !rkey)
        return WV_INVALID_PARAMETER;
    if (length) {
        mr = wv_pd_pin_region(qp->pd, lkey);
        if (!mr)
            return WV_INVALID_PARAMETER;
    }
    hr = mw_bind_type1(qp->qp, (void *)(uintptr_t)id, mr, mw->mw, buffer, length,
                       wv_access_to_ibv(access) &
                           (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
                       bind_flags(qp, flags), rkey);
    if (mr)
        mr_unpin(mr);
    if (hr == ND_ACCESS_VIOLATION || hr == ND_INSUFFICIENT_RESOURCES)
        return hr;
    return status_wv_post(hr);
}
