/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <stdlib.h>
#include <ntstatus.h>

#include "core/srq.h"

/* Source: winverbs.md section 6.3. Two of the final codes have no name in WinVerbs; both are of the success class. */

#define LIMIT_REACHED    ((NTSTATUS)0x00000101)
#define LAST_WQE_REACHED ((NTSTATUS)0x0000010B)

static const struct srq_policy wv_srq_policy = {
    .arms_on_notify = false,
    .limit = LIMIT_REACHED,
    .last_wqe = LAST_WQE_REACHED,
    .error = STATUS_UNEXPECTED_IO_ERROR,
};

static struct wv_srq *impl_from_IWVSharedReceiveQueue(IWVSharedReceiveQueue *iface)
{
    return (struct wv_srq *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_srq_QueryInterface(IWVSharedReceiveQueue *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVSharedReceiveQueue(iface)->object, iid, out,
                              &IID_IWVSharedReceiveQueue, &IID_IWVOverlapped, NULL);
}

static ULONG STDMETHODCALLTYPE wv_srq_AddRef(IWVSharedReceiveQueue *iface)
{
    return wv_object_addref(&impl_from_IWVSharedReceiveQueue(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_srq_Release(IWVSharedReceiveQueue *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVSharedReceiveQueue(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_srq_CancelOverlappedRequests(IWVSharedReceiveQueue *iface)
{
    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    srq_cancel_notifies(impl_from_IWVSharedReceiveQueue(iface)->srq, ND_CANCELED);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_srq_GetOverlappedResult(IWVSharedReceiveQueue *iface, OVERLAPPED *overlapped,
                                                            DWORD *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static void destroy(struct wv_object *object)
{
    struct wv_srq *srq = (struct wv_srq *)((char *)object - offsetof(struct wv_srq, object));

    srq_cancel_notifies(srq->srq, ND_CANCELED);
    srq_unref(srq->srq);
    wv_object_unpin(&srq->pd->object);
    free(srq);
}

/* IWVSharedReceiveQueue */

static HRESULT STDMETHODCALLTYPE wv_srq_Query(IWVSharedReceiveQueue *iface, SIZE_T *max_wr, SIZE_T *max_sge,
                                              SIZE_T *limit)
{
    struct srq_attributes attributes;

    log_trace("%p", (void *)iface);
    if (!max_wr || !max_sge || !limit)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    srq_query(impl_from_IWVSharedReceiveQueue(iface)->srq, &attributes);
    *max_wr = attributes.depth;
    *max_sge = attributes.max_sge;
    *limit = attributes.threshold;
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_srq_Modify(IWVSharedReceiveQueue *iface, SIZE_T max_wr, SIZE_T limit)
{
    struct wv_srq *srq = impl_from_IWVSharedReceiveQueue(iface);
    struct srq_attributes now;
    uint32_t depth, threshold;

    log_trace("%p: %zu %zu", (void *)iface, (size_t)max_wr, (size_t)limit);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (max_wr > srq_adapter(srq->srq)->limits.max_srq_depth)
        return WV_INSUFFICIENT_RESOURCES;
    if (!max_wr || limit > max_wr)
        return WV_INVALID_PARAMETER;
    srq_query(srq->srq, &now);
    depth = (uint32_t)max_wr;
    threshold = (uint32_t)limit;
    return status_wv(srq_modify(srq->srq, depth == now.depth ? NULL : &depth, &threshold));
}

static HRESULT STDMETHODCALLTYPE wv_srq_PostReceive(IWVSharedReceiveQueue *iface, UINT64 id, WV_SGE *sgl, SIZE_T count)
{
    ND2_SGE copy[WV_SGE_COPIES];

    if (cq_forked)
        return WV_DEVICE_REMOVED;
    if (count > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    return status_wv_post(srq_receive(impl_from_IWVSharedReceiveQueue(iface)->srq, (void *)(uintptr_t)id,
                                      wv_sgl(copy, sgl, count), (uint32_t)count));
}

static HRESULT STDMETHODCALLTYPE wv_srq_Notify(IWVSharedReceiveQueue *iface, OVERLAPPED *overlapped)
{
    struct wv_srq *srq = impl_from_IWVSharedReceiveQueue(iface);
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait, status_wv(srq_notify(srq->srq, srq->pd->device->provider->file, overlapped)));
}

static const IWVSharedReceiveQueueVtbl wv_srq_vtbl = {
    /* IUnknown */
    wv_srq_QueryInterface,
    wv_srq_AddRef,
    wv_srq_Release,
    /* IWVOverlapped */
    wv_srq_CancelOverlappedRequests,
    wv_srq_GetOverlappedResult,
    /* IWVSharedReceiveQueue */
    wv_srq_Query,
    wv_srq_Modify,
    wv_srq_PostReceive,
    wv_srq_Notify,
};

struct wv_srq *unsafe_impl_from_IWVSharedReceiveQueue(IWVSharedReceiveQueue *iface)
{
    return iface && iface->lpVtbl == &wv_srq_vtbl ? impl_from_IWVSharedReceiveQueue(iface) : NULL;
}

HRESULT wv_srq_create(struct wv_pd *pd, SIZE_T max_wr, SIZE_T max_sge, SIZE_T limit, IWVSharedReceiveQueue **out)
{
    const struct adapter_limits *limits = &pd->adapter->limits;
    struct srq_config config = { .adapter = pd->adapter, .policy = &wv_srq_policy };
    struct wv_srq *srq;
    NTSTATUS status;

    if (max_wr > limits->max_srq_depth || max_sge > limits->max_srq_sge)
        return limits->max_srq_depth ? WV_INSUFFICIENT_RESOURCES : WV_NOT_SUPPORTED;
    if (!max_wr || limit > max_wr)
        return WV_INVALID_PARAMETER;
    config.depth = (uint32_t)max_wr;
    config.max_sge = max_sge ? (uint32_t)max_sge : 1;
    config.threshold = (uint32_t)limit;
    srq = calloc(1, sizeof(*srq));
    if (!srq)
        return WV_NO_MEMORY;
    status = srq_create(&config, &srq->srq);
    if (status != ND_SUCCESS) {
        free(srq);
        return status_wv(status);
    }
    srq->IWVSharedReceiveQueue_iface.lpVtbl = &wv_srq_vtbl;
    srq->pd = pd;
    wv_object_pin(&pd->object);
    wv_object_init(&srq->object, destroy);
    *out = &srq->IWVSharedReceiveQueue_iface;
    return WV_SUCCESS;
}
