/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <ntstatus.h>

#include "core/address.h"
#include "core/datagram.h"

/* Source: winverbs.md section 9. On Windows these methods do nothing; here they work over rdma_cm's datagram ids, whose
 * service ids and messages are those of any rdma_cm program. */

struct wv_datagram_endpoint {
    IWVDatagramEndpoint IWVDatagramEndpoint_iface;
    struct wv_object object;
    struct wv_provider *provider;
    struct datagram *datagram;
};

static struct wv_datagram_endpoint *impl_from_IWVDatagramEndpoint(IWVDatagramEndpoint *iface)
{
    return (struct wv_datagram_endpoint *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_QueryInterface(IWVDatagramEndpoint *iface, REFIID iid, void **out)
{
    log_trace("%p", (void *)iface);
    return wv_query_interface(iface, &impl_from_IWVDatagramEndpoint(iface)->object, iid, out, &IID_IWVDatagramEndpoint,
                              &IID_IWVEndpoint, &IID_IWVOverlapped);
}

static ULONG STDMETHODCALLTYPE wv_datagram_endpoint_AddRef(IWVDatagramEndpoint *iface)
{
    return wv_object_addref(&impl_from_IWVDatagramEndpoint(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_datagram_endpoint_Release(IWVDatagramEndpoint *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVDatagramEndpoint(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_CancelOverlappedRequests(IWVDatagramEndpoint *iface)
{
    log_trace("%p", (void *)iface);
    return status_wv(datagram_cancel(impl_from_IWVDatagramEndpoint(iface)->datagram));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_GetOverlappedResult(IWVDatagramEndpoint *iface,
                                                                          OVERLAPPED *overlapped, DWORD *bytes,
                                                                          BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static void destroy(struct wv_object *object)
{
    struct wv_datagram_endpoint *endpoint =
        (struct wv_datagram_endpoint *)((char *)object - offsetof(struct wv_datagram_endpoint, object));

    datagram_release(endpoint->datagram);
    datagram_unref(endpoint->datagram);
    wv_object_unpin(&endpoint->provider->object);
    free(endpoint);
}

static HRESULT import(const SOCKADDR *address, union address *out)
{
    return address ? status_wv(address_import(address, address_length(address), out)) : WV_INVALID_PARAMETER;
}

/* IWVEndpoint */

/* The route of a datagram is looked up by Lookup. */
static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Modify(IWVDatagramEndpoint *iface, DWORD option, const VOID *data,
                                                             SIZE_T length)
{
    log_trace("%p: %u", (void *)iface, (unsigned)option);
    (void)iface;
    (void)data;
    (void)length;
    return option == WV_EP_OPTION_ROUTE ? WV_NOT_SUPPORTED : WV_INVALID_PARAMETER;
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_BindAddress(IWVDatagramEndpoint *iface, SOCKADDR *address)
{
    union address local;
    HRESULT hr = import(address, &local);

    log_trace("%p", (void *)iface);
    return FAILED(hr) ? hr : status_wv(datagram_bind(impl_from_IWVDatagramEndpoint(iface)->datagram, &local));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Listen(IWVDatagramEndpoint *iface, SIZE_T backlog)
{
    log_trace("%p: %zu", (void *)iface, (size_t)backlog);
    return status_wv(datagram_listen(impl_from_IWVDatagramEndpoint(iface)->datagram,
                                     backlog < UINT32_MAX ? (uint32_t)backlog : UINT32_MAX));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Reject(IWVDatagramEndpoint *iface, const VOID *data,
                                                             SIZE_T length)
{
    log_trace("%p: %zu", (void *)iface, (size_t)length);
    return status_wv(datagram_reject(impl_from_IWVDatagramEndpoint(iface)->datagram, data, length));
}

/* IWVDatagramEndpoint */

static struct wv_datagram_endpoint *unsafe_impl_from_IWVDatagramEndpoint(IWVDatagramEndpoint *iface);

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_GetRequest(IWVDatagramEndpoint *iface, IWVDatagramEndpoint *fresh,
                                                                 OVERLAPPED *overlapped)
{
    struct wv_datagram_endpoint *endpoint = impl_from_IWVDatagramEndpoint(iface);
    struct wv_datagram_endpoint *target = unsafe_impl_from_IWVDatagramEndpoint(fresh);
    struct wv_wait wait;
    NTSTATUS status;
    HRESULT hr;

    log_trace("%p: %p", (void *)iface, (void *)fresh);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (!target || target->provider != endpoint->provider)
        return WV_INVALID_PARAMETER;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    status = datagram_get_request(endpoint->datagram, target->datagram, overlapped);
    return wv_wait_end(&wait, status_wv(status == ND_CONNECTION_ACTIVE ? (NTSTATUS)STATUS_CONNECTION_IN_USE : status));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Lookup(IWVDatagramEndpoint *iface, const SOCKADDR *address,
                                                             const VOID *data, SIZE_T length, OVERLAPPED *overlapped)
{
    struct wv_wait wait;
    union address dest;
    HRESULT hr;

    log_trace("%p: %zu", (void *)iface, (size_t)length);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = import(address, &dest);
    if (SUCCEEDED(hr))
        hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait, status_wv(datagram_lookup(impl_from_IWVDatagramEndpoint(iface)->datagram, &dest, data,
                                                        length, overlapped)));
}

/* The kernel's answer always carries the well-known key. */
static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Accept(IWVDatagramEndpoint *iface, WV_DATAGRAM_PARAM *param,
                                                             OVERLAPPED *overlapped)
{
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (!param)
        return WV_INVALID_PARAMETER;
    if (param->DataLength > WV_DATA_MAX)
        return (HRESULT)STATUS_INVALID_BUFFER_SIZE;
    if (param->Qkey != 0 && ntohl(param->Qkey) != WV_CM_UDP_QKEY)
        return WV_NOT_SUPPORTED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait,
                       status_wv(datagram_accept(impl_from_IWVDatagramEndpoint(iface)->datagram, ntohl(param->Qpn),
                                                 param->Data, param->DataLength, overlapped)));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_JoinMulticast(IWVDatagramEndpoint *iface, const SOCKADDR *address,
                                                                    OVERLAPPED *overlapped)
{
    struct wv_wait wait;
    union address group;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = import(address, &group);
    if (SUCCEEDED(hr))
        hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait,
                       status_wv(datagram_join(impl_from_IWVDatagramEndpoint(iface)->datagram, &group, overlapped)));
}

static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_LeaveMulticast(IWVDatagramEndpoint *iface,
                                                                     const SOCKADDR *address, OVERLAPPED *overlapped)
{
    struct wv_datagram_endpoint *endpoint = impl_from_IWVDatagramEndpoint(iface);
    struct wv_inline now;
    union address group;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = import(address, &group);
    if (SUCCEEDED(hr))
        hr = wv_inline_begin(&now, endpoint->provider, overlapped);
    if (FAILED(hr))
        return hr;
    return wv_inline_end(&now, status_wv(datagram_leave(endpoint->datagram, &group)), 0);
}

static void fill_vector(WV_ADDRESS_VECTOR *vector, const struct datagram_info *info)
{
    const struct ibv_ah_attr *attr = &info->ah_attr;

    vector->DLid = htons(attr->dlid);
    vector->ServiceLevel = attr->sl;
    vector->SourcePathBits = attr->src_path_bits;
    vector->StaticRate = attr->static_rate;
    vector->PortNumber = attr->port_num;
    if (!attr->is_global)
        return;
    vector->Route.Valid = 1;
    vector->Route.HopLimit = attr->grh.hop_limit;
    vector->Route.TrafficClass = attr->grh.traffic_class;
    vector->Route.FlowLabel = htonl(attr->grh.flow_label);
    memcpy(&vector->Route.DGid, &attr->grh.dgid, sizeof(vector->Route.DGid));
    if (info->source_known)
        memcpy(&vector->Route.SGid, &info->source, sizeof(vector->Route.SGid));
}

/* PeerAddress is read first: it chooses the group that is asked about. */
static HRESULT STDMETHODCALLTYPE wv_datagram_endpoint_Query(IWVDatagramEndpoint *iface, WV_DATAGRAM_ATTRIBUTES *out)
{
    struct datagram_info info;
    union address peer;
    bool named;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    named = SUCCEEDED(import(&out->PeerAddress.Sa, &peer));
    datagram_query(impl_from_IWVDatagramEndpoint(iface)->datagram, named ? &peer : NULL, &info);
    memset(out, 0, sizeof(*out));
    memcpy(&out->LocalAddress, &info.local, address_length(&info.local.sa));
    memcpy(&out->PeerAddress, &info.peer, address_length(&info.peer.sa));
    out->Device.DeviceGuid = info.device_guid;
    out->Device.PortNumber = info.port;
    out->Device.Pkey = info.pkey;
    out->Param.DataLength = info.data_length ? WV_DATA_MAX : 0;
    memcpy(out->Param.Data, info.data, info.data_length);
    if (info.known) {
        fill_vector(&out->Param.AddressVector, &info);
        out->Param.Qpn = htonl(info.qp_num);
        out->Param.Qkey = htonl(info.qkey);
    }
    return WV_SUCCESS;
}

static const IWVDatagramEndpointVtbl wv_datagram_endpoint_vtbl = {
    /* IUnknown */
    wv_datagram_endpoint_QueryInterface,
    wv_datagram_endpoint_AddRef,
    wv_datagram_endpoint_Release,
    /* IWVOverlapped */
    wv_datagram_endpoint_CancelOverlappedRequests,
    wv_datagram_endpoint_GetOverlappedResult,
    /* IWVEndpoint */
    wv_datagram_endpoint_Modify,
    wv_datagram_endpoint_BindAddress,
    wv_datagram_endpoint_Listen,
    wv_datagram_endpoint_Reject,
    /* IWVDatagramEndpoint */
    wv_datagram_endpoint_GetRequest,
    wv_datagram_endpoint_Lookup,
    wv_datagram_endpoint_Accept,
    wv_datagram_endpoint_JoinMulticast,
    wv_datagram_endpoint_LeaveMulticast,
    wv_datagram_endpoint_Query,
};

static struct wv_datagram_endpoint *unsafe_impl_from_IWVDatagramEndpoint(IWVDatagramEndpoint *iface)
{
    return iface && iface->lpVtbl == &wv_datagram_endpoint_vtbl ? impl_from_IWVDatagramEndpoint(iface) : NULL;
}

HRESULT wv_datagram_endpoint_create(struct wv_provider *provider, IWVDatagramEndpoint **out)
{
    struct wv_datagram_endpoint *endpoint;
    NTSTATUS status;

    if (wv_dead())
        return WV_DEVICE_REMOVED;
    endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return WV_NO_MEMORY;
    status = datagram_create(provider->file, &endpoint->datagram);
    if (status != ND_SUCCESS) {
        free(endpoint);
        return status_wv(status);
    }
    endpoint->IWVDatagramEndpoint_iface.lpVtbl = &wv_datagram_endpoint_vtbl;
    endpoint->provider = provider;
    wv_object_pin(&provider->object);
    wv_object_init(&endpoint->object, destroy);
    *out = &endpoint->IWVDatagramEndpoint_iface;
    return WV_SUCCESS;
}
