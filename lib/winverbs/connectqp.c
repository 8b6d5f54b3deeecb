/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <endian.h>

/* Source: winverbs.md section 7.6. */

static struct wv_qp *impl_from_IWVConnectQueuePair(IWVConnectQueuePair *iface)
{
    return (struct wv_qp *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_connect_qp_QueryInterface(IWVConnectQueuePair *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVConnectQueuePair(iface)->object, iid, out, &IID_IWVConnectQueuePair,
                              &IID_IWVQueuePair, &IID_IWVOverlapped);
}

static ULONG STDMETHODCALLTYPE wv_connect_qp_AddRef(IWVConnectQueuePair *iface)
{
    return wv_object_addref(&impl_from_IWVConnectQueuePair(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_connect_qp_Release(IWVConnectQueuePair *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVConnectQueuePair(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_connect_qp_CancelOverlappedRequests(IWVConnectQueuePair *iface)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    return wv_dead() ? WV_DEVICE_REMOVED : WV_SUCCESS; /* everything is over before its call returns */
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_GetOverlappedResult(IWVConnectQueuePair *iface, OVERLAPPED *overlapped,
                                                                   DWORD *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

/* IWVQueuePair */

static HRESULT STDMETHODCALLTYPE wv_connect_qp_Query(IWVConnectQueuePair *iface, WV_QP_ATTRIBUTES *attributes)
{
    log_trace("%p", (void *)iface);
    return wv_qp_query(impl_from_IWVConnectQueuePair(iface), attributes);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_Modify(IWVConnectQueuePair *iface, WV_QP_ATTRIBUTES *attributes,
                                                      DWORD options, OVERLAPPED *overlapped)
{
    log_trace("%p: 0x%x", (void *)iface, (unsigned)options);
    return wv_qp_modify(impl_from_IWVConnectQueuePair(iface), attributes, options, overlapped);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_PostReceive(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sgl,
                                                           SIZE_T count)
{
    return wv_qp_post_receive(impl_from_IWVConnectQueuePair(iface), id, sgl, count);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_PostSend(IWVConnectQueuePair *iface, WV_SEND_REQUEST *request,
                                                        WV_SEND_REQUEST **failed)
{
    return wv_qp_post_send(impl_from_IWVConnectQueuePair(iface), request, failed);
}

/* IWVConnectQueuePair */

static HRESULT STDMETHODCALLTYPE wv_connect_qp_Send(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sgl, SIZE_T count,
                                                    DWORD flags, NET32 immediate)
{
    WV_SEND_REQUEST request = {
        .WrId = id, .pSgl = sgl, .nSge = (UINT32)count, .Opcode = WvSend, .Flags = flags, .ImmediateData = immediate
    };

    if (count > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    return wv_qp_post_send(impl_from_IWVConnectQueuePair(iface), &request, NULL);
}

static HRESULT rdma(IWVConnectQueuePair *iface, WV_OPCODE opcode, UINT64 id, WV_SGE *sgl, SIZE_T count, DWORD flags,
                    NET32 immediate, NET64 address, NET32 rkey)
{
    WV_SEND_REQUEST request = { .WrId = id,
                                .pSgl = sgl,
                                .nSge = (UINT32)count,
                                .Opcode = opcode,
                                .Flags = flags,
                                .ImmediateData = immediate,
                                .Wr.Rdma = { address, rkey } };

    if (count > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    return wv_qp_post_send(impl_from_IWVConnectQueuePair(iface), &request, NULL);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_Read(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sgl, SIZE_T count,
                                                    DWORD flags, NET64 address, NET32 rkey)
{
    return rdma(iface, WvRdmaRead, id, sgl, count, flags, 0, address, rkey);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_Write(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sgl, SIZE_T count,
                                                     DWORD flags, NET32 immediate, NET64 address, NET32 rkey)
{
    return rdma(iface, WvRdmaWrite, id, sgl, count, flags, immediate, address, rkey);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_CompareExchange(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sge,
                                                               DWORD flags, NET64 compare, NET64 exchange,
                                                               NET64 address, NET32 rkey)
{
    WV_SEND_REQUEST request = { .WrId = id,
                                .pSgl = sge,
                                .nSge = 1,
                                .Opcode = WvCompareExchange,
                                .Flags = flags,
                                .Wr.CompareExchange = { address, rkey, compare, exchange } };

    return wv_qp_post_send(impl_from_IWVConnectQueuePair(iface), &request, NULL);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_FetchAdd(IWVConnectQueuePair *iface, UINT64 id, WV_SGE *sge, DWORD flags,
                                                        NET64 value, NET64 address, NET32 rkey)
{
    WV_SEND_REQUEST request = { .WrId = id,
                                .pSgl = sge,
                                .nSge = 1,
                                .Opcode = WvFetchAdd,
                                .Flags = flags,
                                .Wr.FetchAdd = { address, rkey, value, 0 } };

    return wv_qp_post_send(impl_from_IWVConnectQueuePair(iface), &request, NULL);
}

static HRESULT STDMETHODCALLTYPE wv_connect_qp_BindMemoryWindow(IWVConnectQueuePair *iface, IWVMemoryWindow *window,
                                                                UINT64 id, UINT32 lkey, DWORD access, DWORD flags,
                                                                const VOID *buffer, SIZE_T length, NET32 *rkey)
{
    log_trace("%p: %p", (void *)iface, (void *)window);
    return wv_qp_bind(impl_from_IWVConnectQueuePair(iface), window, id, lkey, access, flags, buffer, length, rkey);
}

static const IWVConnectQueuePairVtbl wv_connect_qp_vtbl = {
    /* IUnknown */
    wv_connect_qp_QueryInterface,
    wv_connect_qp_AddRef,
    wv_connect_qp_Release,
    /* IWVOverlapped */
    wv_connect_qp_CancelOverlappedRequests,
    wv_connect_qp_GetOverlappedResult,
    /* IWVQueuePair */
    wv_connect_qp_Query,
    wv_connect_qp_Modify,
    wv_connect_qp_PostReceive,
    wv_connect_qp_PostSend,
    /* IWVConnectQueuePair */
    wv_connect_qp_Send,
    wv_connect_qp_Read,
    wv_connect_qp_Write,
    wv_connect_qp_CompareExchange,
    wv_connect_qp_FetchAdd,
    wv_connect_qp_BindMemoryWindow,
};

struct wv_qp *unsafe_impl_from_IWVConnectQueuePair(IWVConnectQueuePair *iface)
{
    return iface && iface->lpVtbl == &wv_connect_qp_vtbl ? impl_from_IWVConnectQueuePair(iface) : NULL;
}

HRESULT wv_connect_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, IWVConnectQueuePair **out)
{
    struct wv_qp *qp;
    HRESULT hr = wv_qp_create(pd, attributes, &qp);

    if (FAILED(hr))
        return hr;
    qp->iface.connect.lpVtbl = &wv_connect_qp_vtbl;
    *out = &qp->iface.connect;
    return WV_SUCCESS;
}
