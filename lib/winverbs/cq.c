/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* Source: winverbs.md section 5. */

#define POLL_BATCH 16

static struct wv_cq *impl_from_IWVCompletionQueue(IWVCompletionQueue *iface)
{
    return (struct wv_cq *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_cq_QueryInterface(IWVCompletionQueue *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVCompletionQueue(iface)->object, iid, out, &IID_IWVCompletionQueue,
                              &IID_IWVOverlapped, NULL);
}

static ULONG STDMETHODCALLTYPE wv_cq_AddRef(IWVCompletionQueue *iface)
{
    return wv_object_addref(&impl_from_IWVCompletionQueue(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_cq_Release(IWVCompletionQueue *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVCompletionQueue(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_cq_CancelOverlappedRequests(IWVCompletionQueue *iface)
{
    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    cq_cancel_notifies(impl_from_IWVCompletionQueue(iface)->cq, ND_CANCELED);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_cq_GetOverlappedResult(IWVCompletionQueue *iface, OVERLAPPED *overlapped,
                                                           DWORD *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static void destroy(struct wv_object *object)
{
    struct wv_cq *cq = (struct wv_cq *)((char *)object - offsetof(struct wv_cq, object));

    cq_cancel_notifies(cq->cq, ND_CANCELED);
    cq_unref(cq->cq);
    wv_object_unpin(&cq->device->object);
    free(cq);
}

/* IWVCompletionQueue */

static HRESULT STDMETHODCALLTYPE wv_cq_Resize(IWVCompletionQueue *iface, SIZE_T *entries)
{
    struct wv_cq *cq = impl_from_IWVCompletionQueue(iface);
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (!entries || !*entries)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (*entries > cq_adapter(cq->cq)->limits.max_cq_depth)
        return WV_INSUFFICIENT_RESOURCES;
    status = cq_resize(cq->cq, (uint32_t)*entries);
    if (status == ND_SUCCESS)
        *entries = cq_depth(cq->cq);
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_cq_Peek(IWVCompletionQueue *iface, SIZE_T *count)
{
    log_trace("%p", (void *)iface);
    if (!count)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    *count = cq_peek(impl_from_IWVCompletionQueue(iface)->cq);
    return WV_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE wv_cq_Notify(IWVCompletionQueue *iface, WV_CQ_NOTIFY_TYPE type, OVERLAPPED *overlapped)
{
    struct wv_cq *cq = impl_from_IWVCompletionQueue(iface);
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p: %u", (void *)iface, (unsigned)type);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if ((unsigned)type > WvCqSolicited)
        return WV_INVALID_PARAMETER;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    /* The types have the same numbers. */
    return wv_wait_end(&wait, status_wv(cq_notify(cq->cq, type, cq->device->provider->file, overlapped)));
}

static HRESULT STDMETHODCALLTYPE wv_cq_BatchNotify(IWVCompletionQueue *iface, SIZE_T count, OVERLAPPED *overlapped)
{
    struct wv_cq *cq = impl_from_IWVCompletionQueue(iface);
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p: %zu", (void *)iface, (size_t)count);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (count > UINT32_MAX)
        return WV_INVALID_PARAMETER;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait,
                       status_wv(cq_notify_batch(cq->cq, (uint32_t)count, cq->device->provider->file, overlapped)));
}

/* On a failure only the direction of the request and its status mean anything; the type is our own record. */
static WV_OPCODE opcode_of(const struct cq_completion *from)
{
    switch ((unsigned)from->result.RequestType) {
    case Nd2RequestTypeReceive:
        return from->detail.status == IBV_WC_SUCCESS && from->detail.opcode == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM
                   ? WvReceiveRdmaWrite
                   : WvReceive;
    case Nd2RequestTypeRead:
        return WvRdmaRead;
    case Nd2RequestTypeWrite:
        return WvRdmaWrite;
    case REQUEST_COMPARE_SWAP:
        return WvCompareExchange;
    case REQUEST_FETCH_ADD:
        return WvFetchAdd;
    case Nd2RequestTypeBind:
        return WvBindWindow;
    default:
        return WvSend;
    }
}

static void fill(WV_COMPLETION *to, const struct cq_completion *from)
{
    const struct cq_detail *detail = &from->detail;

    to->QpContext = from->result.QueuePairContext;
    to->WrId = (UINT64)(uintptr_t)from->result.RequestContext;
    to->Opcode = opcode_of(from);
    to->Length = from->result.BytesTransferred;
    to->VendorCode = detail->vendor_code;
    to->Status = wv_wc_status((enum ibv_wc_status)detail->status);
    to->Flags =
        (detail->flags & IBV_WC_WITH_IMM ? WV_WC_IMMEDIATE : 0) | (detail->flags & IBV_WC_GRH ? WV_WC_GRH_VALID : 0);
    to->ImmediateData = detail->imm_data;
    to->SourceQpn = htonl(detail->source_qp);
    to->PkeyIndex = detail->pkey_index;
    to->SLid = htons(detail->slid);
    to->SL = detail->sl;
    to->DLidPathBits = detail->dlid_path_bits;
}

static SIZE_T STDMETHODCALLTYPE wv_cq_Poll(IWVCompletionQueue *iface, WV_COMPLETION completions[], SIZE_T entries)
{
    struct wv_cq *cq = impl_from_IWVCompletionQueue(iface);
    struct cq_completion batch[POLL_BATCH];
    SIZE_T filled = 0;
    uint32_t want, got;

    if (cq_forked || !completions)
        return 0;
    do {
        want = entries - filled < POLL_BATCH ? (uint32_t)(entries - filled) : POLL_BATCH;
        got = want ? cq_get_completions(cq->cq, batch, want) : 0;
        for (uint32_t i = 0; i < got; i++)
            fill(&completions[filled++], &batch[i]);
    } while (want && got == want);
    return filled;
}

static const IWVCompletionQueueVtbl wv_cq_vtbl = {
    /* IUnknown */
    wv_cq_QueryInterface,
    wv_cq_AddRef,
    wv_cq_Release,
    /* IWVOverlapped */
    wv_cq_CancelOverlappedRequests,
    wv_cq_GetOverlappedResult,
    /* IWVCompletionQueue */
    wv_cq_Resize,
    wv_cq_Peek,
    wv_cq_Notify,
    wv_cq_BatchNotify,
    wv_cq_Poll,
};

struct wv_cq *unsafe_impl_from_IWVCompletionQueue(IWVCompletionQueue *iface)
{
    return iface && iface->lpVtbl == &wv_cq_vtbl ? impl_from_IWVCompletionQueue(iface) : NULL;
}

HRESULT wv_cq_create(struct wv_device *device, uint32_t entries, IWVCompletionQueue **out)
{
    struct wv_cq *cq = calloc(1, sizeof(*cq));
    NTSTATUS status;

    if (!cq)
        return WV_NO_MEMORY;
    status = cq_create(device->adapter, entries, 0, 0, &cq->cq);
    if (status != ND_SUCCESS)
        goto err_free;
    status = cq_keep_details(cq->cq);
    if (status != ND_SUCCESS)
        goto err_cq;
    cq->IWVCompletionQueue_iface.lpVtbl = &wv_cq_vtbl;
    cq->device = device;
    wv_object_pin(&device->object);
    wv_object_init(&cq->object, destroy);
    *out = &cq->IWVCompletionQueue_iface;
    return WV_SUCCESS;

err_cq:
    cq_unref(cq->cq);
err_free:
    free(cq);
    return status_wv(status);
}
