/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* Source: winverbs.md section 7.7. */

static struct wv_qp *impl_from_IWVDatagramQueuePair(IWVDatagramQueuePair *iface)
{
    return (struct wv_qp *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_QueryInterface(IWVDatagramQueuePair *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVDatagramQueuePair(iface)->object, iid, out,
                              &IID_IWVDatagramQueuePair, &IID_IWVQueuePair, &IID_IWVOverlapped);
}

static ULONG STDMETHODCALLTYPE wv_datagram_qp_AddRef(IWVDatagramQueuePair *iface)
{
    return wv_object_addref(&impl_from_IWVDatagramQueuePair(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_datagram_qp_Release(IWVDatagramQueuePair *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVDatagramQueuePair(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_CancelOverlappedRequests(IWVDatagramQueuePair *iface)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    return wv_dead() ? WV_DEVICE_REMOVED : WV_SUCCESS; /* everything is over before its call returns */
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_GetOverlappedResult(IWVDatagramQueuePair *iface, OVERLAPPED *overlapped,
                                                                    DWORD *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

/* IWVQueuePair */

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_Query(IWVDatagramQueuePair *iface, WV_QP_ATTRIBUTES *attributes)
{
    log_trace("%p", (void *)iface);
    return wv_qp_query(impl_from_IWVDatagramQueuePair(iface), attributes);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_Modify(IWVDatagramQueuePair *iface, WV_QP_ATTRIBUTES *attributes,
                                                       DWORD options, OVERLAPPED *overlapped)
{
    log_trace("%p: 0x%x", (void *)iface, (unsigned)options);
    return wv_qp_modify(impl_from_IWVDatagramQueuePair(iface), attributes, options, overlapped);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_PostReceive(IWVDatagramQueuePair *iface, UINT64 id, WV_SGE *sgl,
                                                            SIZE_T count)
{
    return wv_qp_post_receive(impl_from_IWVDatagramQueuePair(iface), id, sgl, count);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_PostSend(IWVDatagramQueuePair *iface, WV_SEND_REQUEST *request,
                                                         WV_SEND_REQUEST **failed)
{
    return wv_qp_post_send(impl_from_IWVDatagramQueuePair(iface), request, failed);
}

/* IWVDatagramQueuePair */

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_Send(IWVDatagramQueuePair *iface, UINT64 id, ULONG_PTR ah, WV_SGE *sge,
                                                     DWORD flags, NET32 qpn, NET32 qkey)
{
    WV_SEND_REQUEST request = { .WrId = id,
                                .pSgl = sge,
                                .nSge = 1,
                                .Opcode = WvSend,
                                .Flags = flags & ~(DWORD)WV_SEND_IMMEDIATE,
                                .Wr.Datagram = { ah, qpn, qkey } };

    return wv_qp_post_send(impl_from_IWVDatagramQueuePair(iface), &request, NULL);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_SendMessage(IWVDatagramQueuePair *iface, WV_SEND_DATAGRAM *send)
{
    WV_SEND_REQUEST request = { .Opcode = WvSend };

    if (!send)
        return WV_INVALID_PARAMETER;
    if (send->nSge > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    request.WrId = send->WrId;
    request.pSgl = send->pSgl;
    request.nSge = (UINT32)send->nSge;
    request.Flags = send->Flags;
    request.ImmediateData = send->ImmediateData;
    request.Wr.Datagram.AhKey = send->AhKey;
    request.Wr.Datagram.DestinationQpn = send->DestinationQpn;
    request.Wr.Datagram.DestinationQkey = send->DestinationQkey;
    return wv_qp_post_send(impl_from_IWVDatagramQueuePair(iface), &request, NULL);
}

static HRESULT mcast(IWVDatagramQueuePair *iface, const WV_GID *gid, NET16 lid, OVERLAPPED *overlapped,
                     int (*call)(struct qp *, const union ibv_gid *, uint16_t))
{
    struct wv_qp *qp = impl_from_IWVDatagramQueuePair(iface);
    struct wv_inline now;
    union ibv_gid group;
    HRESULT hr;
    int error;

    if (!gid)
        return WV_INVALID_PARAMETER;
    if (wv_dead() || adapter_removed(qp->pd->adapter))
        return WV_DEVICE_REMOVED;
    hr = wv_inline_begin(&now, qp->pd->device->provider, overlapped);
    if (FAILED(hr))
        return hr;
    memcpy(&group, gid, sizeof(group));
    error = call(qp->qp, &group, ntohs(lid));
    switch (error) {
    case 0:
        break;
    case ENOENT:
        hr = WV_NOT_FOUND;
        break;
    case EOPNOTSUPP:
    case ENOSYS:
        hr = WV_NOT_SUPPORTED;
        break;
    case EINVAL:
        hr = WV_INVALID_PARAMETER;
        break;
    case ENODEV:
        hr = WV_DEVICE_REMOVED;
        break;
    default:
        hr = WV_INSUFFICIENT_RESOURCES;
        break;
    }
    return wv_inline_end(&now, hr, 0);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_AttachMulticast(IWVDatagramQueuePair *iface, WV_GID *gid, NET16 lid,
                                                                OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return mcast(iface, gid, lid, overlapped, qp_attach_mcast);
}

static HRESULT STDMETHODCALLTYPE wv_datagram_qp_DetachMulticast(IWVDatagramQueuePair *iface, WV_GID *gid, NET16 lid,
                                                                OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return mcast(iface, gid, lid, overlapped, qp_detach_mcast);
}

static const IWVDatagramQueuePairVtbl wv_datagram_qp_vtbl = {
    /* IUnknown */
    wv_datagram_qp_QueryInterface,
    wv_datagram_qp_AddRef,
    wv_datagram_qp_Release,
    /* IWVOverlapped */
    wv_datagram_qp_CancelOverlappedRequests,
    wv_datagram_qp_GetOverlappedResult,
    /* IWVQueuePair */
    wv_datagram_qp_Query,
    wv_datagram_qp_Modify,
    wv_datagram_qp_PostReceive,
    wv_datagram_qp_PostSend,
    /* IWVDatagramQueuePair */
    wv_datagram_qp_Send,
    wv_datagram_qp_SendMessage,
    wv_datagram_qp_AttachMulticast,
    wv_datagram_qp_DetachMulticast,
};

HRESULT wv_datagram_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, IWVDatagramQueuePair **out)
{
    struct wv_qp *qp;
    HRESULT hr = wv_qp_create(pd, attributes, &qp);

    if (FAILED(hr))
        return hr;
    qp->iface.datagram.lpVtbl = &wv_datagram_qp_vtbl;
    *out = &qp->iface.datagram;
    return WV_SUCCESS;
}
