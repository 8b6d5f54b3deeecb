/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <ntstatus.h>

#include "core/address.h"
#include "core/device_query.h"

/* Source: winverbs.md section 8. The states are those of core/connector.c; what is here is the part before there is a
 * device: addresses, and whether the endpoint listens or connects. */

/* Size of the path record that Modify takes. */
#define ROUTE_SIZE 64

static const struct connector_policy wv_policy = {
    .qp_owner = false,
    .auto_drep = false,
    .flush_on_peer = false,
    .cancel_abandons = false,
    .disconnect_timeout_status = WV_TIMEOUT,
    .wv = true,
};

static struct wv_connect_endpoint *impl_from_IWVConnectEndpoint(IWVConnectEndpoint *iface)
{
    return (struct wv_connect_endpoint *)iface;
}

/* The listener with a reference taken; NULL: it does not listen. */
static struct listener *listener_of(struct wv_connect_endpoint *endpoint)
{
    struct listener *listener = NULL;

    pthread_mutex_lock(&endpoint->lock);
    if (endpoint->listening)
        listener = listener_ref(endpoint->listener);
    pthread_mutex_unlock(&endpoint->lock);
    return listener;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_QueryInterface(IWVConnectEndpoint *iface, REFIID iid, void **out)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);

    log_trace("%p", (void *)iface);
    if (out && iid && IsEqualGUID(iid, &IID_INdvConnectEndpoint)) {
        wv_object_addref(&endpoint->object);
        *out = &endpoint->INdvConnectEndpoint_iface;
        return WV_SUCCESS;
    }
    return wv_query_interface(iface, &endpoint->object, iid, out, &IID_IWVConnectEndpoint, &IID_IWVEndpoint,
                              &IID_IWVOverlapped);
}

static ULONG STDMETHODCALLTYPE wv_connect_endpoint_AddRef(IWVConnectEndpoint *iface)
{
    return wv_object_addref(&impl_from_IWVConnectEndpoint(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_connect_endpoint_Release(IWVConnectEndpoint *iface)
{
    log_trace("%p", (void *)iface);
    return wv_object_release(&impl_from_IWVConnectEndpoint(iface)->object);
}

/* IWVOverlapped */

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_CancelOverlappedRequests(IWVConnectEndpoint *iface)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct listener *listener;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    listener = listener_of(endpoint);
    if (listener) {
        listener_cancel(listener);
        listener_unref(listener);
    }
    return status_wv(connector_cancel(endpoint->connector));
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_GetOverlappedResult(IWVConnectEndpoint *iface,
                                                                         OVERLAPPED *overlapped, DWORD *bytes,
                                                                         BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return wv_overlapped_result(overlapped, bytes, wait);
}

static void destroy(struct wv_object *object)
{
    struct wv_connect_endpoint *endpoint =
        (struct wv_connect_endpoint *)((char *)object - offsetof(struct wv_connect_endpoint, object));

    if (endpoint->listener) {
        listener_release(endpoint->listener);
        listener_unref(endpoint->listener);
    }
    connector_release(endpoint->connector);
    connector_unref(endpoint->connector);
    if (endpoint->qp)
        wv_object_unpin(&endpoint->qp->object);
    pthread_mutex_destroy(&endpoint->lock);
    wv_object_unpin(&endpoint->provider->object);
    free(endpoint);
}

/* ---- addresses ---- */

static HRESULT bind_specific_locked(struct wv_connect_endpoint *endpoint, const union address *address)
{
    union address local = *address;
    struct address_entry entry;
    struct adapter *adapter;
    NTSTATUS status;
    HRESULT hr;

    status = address_find_own(&local, &entry);
    if (status != ND_SUCCESS)
        return status_wv(status);
    hr = wv_provider_adapter(endpoint->provider, &entry, &adapter);
    if (FAILED(hr))
        return hr;
    return status_wv(connector_bind_on(endpoint->connector, adapter, &local.sa, address_length(&local.sa)));
}

/* The adapters of all usable addresses, each once. */
static HRESULT all_adapters(struct wv_provider *provider, struct adapter ***out, size_t *count)
{
    struct address_list *list = address_list_get();
    struct adapter **adapters;
    HRESULT hr = WV_NO_MEMORY;

    *count = 0;
    if (!list)
        return WV_NO_MEMORY;
    adapters = calloc(list->count + 1, sizeof(struct adapter *));
    for (size_t i = 0; adapters && i < list->count && !list->entries[i].reason; i++) {
        struct adapter *adapter;
        bool known = false;

        hr = wv_provider_adapter(provider, &list->entries[i], &adapter);
        if (FAILED(hr))
            continue; /* the others still serve */
        for (size_t k = 0; k < *count; k++)
            known |= adapters[k] == adapter;
        if (!known)
            adapters[(*count)++] = adapter;
    }
    address_list_put(list);
    *out = adapters;
    if (*count)
        return WV_SUCCESS;
    free(adapters);
    return adapters ? WV_INVALID_ADDRESS : WV_NO_MEMORY;
}

/* Bound to every address: only listeners are, so it is one from the start; Connect makes something else of it. */
static HRESULT bind_wide_locked(struct wv_connect_endpoint *endpoint, const union address *address)
{
    union address any = *address;
    struct adapter **adapters;
    size_t count;
    ULONG length = sizeof(any);
    NTSTATUS status;
    HRESULT hr = all_adapters(endpoint->provider, &adapters, &count);

    if (FAILED(hr))
        return hr;
    if (any.sa.sa_family == AF_INET)
        any.v4.sin_addr.s_addr = INADDR_ANY; /* 127.x listens everywhere, too */
    else
        any.v6.sin6_addr = in6addr_any;
    status = listener_create_wide(adapters, count, endpoint->provider->file, &endpoint->listener);
    free(adapters);
    if (status != ND_SUCCESS)
        return status_wv(status);
    status = listener_bind(endpoint->listener, &any.sa, address_length(&any.sa));
    if (status == ND_SUCCESS)
        status = listener_get_local_address(endpoint->listener, &any.sa, &length);
    if (status != ND_SUCCESS) {
        listener_release(endpoint->listener);
        listener_unref(endpoint->listener);
        endpoint->listener = NULL;
        return status_wv(status);
    }
    address_set_port(&endpoint->address.sa, address_port(&any.sa));
    return WV_SUCCESS;
}

static HRESULT bind_locked(struct wv_connect_endpoint *endpoint, const union address *address)
{
    bool wide = address_is_any(&address->sa) || address_is_loopback(&address->sa);
    struct connector_info info;
    HRESULT hr;

    if (endpoint->bound || !connector_unused(endpoint->connector))
        return WV_NOT_SUPPORTED;
    endpoint->address = *address;
    hr = wide ? bind_wide_locked(endpoint, address) : bind_specific_locked(endpoint, address);
    if (FAILED(hr))
        return hr;
    if (!wide) {
        connector_query(endpoint->connector, &info);
        endpoint->address = info.local;
    }
    endpoint->wide = wide;
    endpoint->bound = true;
    return WV_SUCCESS;
}

/* IWVEndpoint */

/* The path of rdma_cm is looked up by Connect; the record is only checked. */
static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Modify(IWVConnectEndpoint *iface, DWORD option, const VOID *data,
                                                            SIZE_T length)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct connector_info info;
    HRESULT hr;

    log_trace("%p: %u", (void *)iface, (unsigned)option);
    if (option != WV_EP_OPTION_ROUTE)
        return WV_INVALID_PARAMETER;
    if (length < ROUTE_SIZE)
        return HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER);
    if (!data)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    pthread_mutex_lock(&endpoint->lock);
    connector_query(endpoint->connector, &info);
    hr = endpoint->bound && !endpoint->listening && !info.active ? WV_SUCCESS : WV_NOT_SUPPORTED;
    pthread_mutex_unlock(&endpoint->lock);
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_BindAddress(IWVConnectEndpoint *iface, SOCKADDR *address)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    union address local;
    NTSTATUS status;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (!address)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    status = address_import(address, address_length(address), &local);
    if (status != ND_SUCCESS)
        return status_wv(status);
    pthread_mutex_lock(&endpoint->lock);
    hr = bind_locked(endpoint, &local);
    pthread_mutex_unlock(&endpoint->lock);
    return hr;
}

/* The connector has the port so far; it gives it up for a listener. */
static HRESULT make_listener_locked(struct wv_connect_endpoint *endpoint)
{
    size_t length = address_length(&endpoint->address.sa);
    struct address_entry entry;
    struct adapter *adapter;
    NTSTATUS status;
    HRESULT hr;

    status = address_find(&endpoint->address.sa, &entry);
    if (status != ND_SUCCESS)
        return status_wv(status);
    hr = wv_provider_adapter(endpoint->provider, &entry, &adapter);
    if (FAILED(hr))
        return hr;
    status = listener_create_wide(&adapter, 1, endpoint->provider->file, &endpoint->listener);
    if (status != ND_SUCCESS)
        return status_wv(status);
    connector_unbind(endpoint->connector);
    status = listener_bind(endpoint->listener, &endpoint->address.sa, length);
    if (status == ND_SUCCESS)
        return WV_SUCCESS;
    listener_release(endpoint->listener);
    listener_unref(endpoint->listener);
    endpoint->listener = NULL;
    /* As it was, if that is possible. */
    if (connector_bind_on(endpoint->connector, adapter, &endpoint->address.sa, length) != ND_SUCCESS)
        endpoint->bound = false;
    return status_wv(status);
}

static HRESULT listen_locked(struct wv_connect_endpoint *endpoint, SIZE_T backlog)
{
    struct connector_info info;
    NTSTATUS status;
    HRESULT hr;

    connector_query(endpoint->connector, &info);
    if (!endpoint->bound || endpoint->listening || info.active)
        return WV_NOT_SUPPORTED;
    hr = endpoint->listener ? WV_SUCCESS : make_listener_locked(endpoint);
    if (FAILED(hr))
        return hr;
    status = listener_listen(endpoint->listener, backlog < UINT32_MAX ? (uint32_t)backlog : UINT32_MAX);
    if (status == ND_SUCCESS)
        endpoint->listening = true;
    return status_wv(status);
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Listen(IWVConnectEndpoint *iface, SIZE_T backlog)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    HRESULT hr;

    log_trace("%p: %zu", (void *)iface, (size_t)backlog);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    pthread_mutex_lock(&endpoint->lock);
    hr = listen_locked(endpoint, backlog);
    pthread_mutex_unlock(&endpoint->lock);
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Reject(IWVConnectEndpoint *iface, const VOID *data, SIZE_T length)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);

    log_trace("%p: %zu", (void *)iface, (size_t)length);
    if (length > WV_DATA_MAX)
        return (HRESULT)STATUS_INVALID_BUFFER_SIZE;
    return status_wv(connector_reject(endpoint->connector, data, length));
}

/* IWVConnectEndpoint */

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_GetRequest(IWVConnectEndpoint *iface, IWVConnectEndpoint *fresh,
                                                                OVERLAPPED *overlapped)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct wv_connect_endpoint *target = unsafe_impl_from_IWVConnectEndpoint(fresh);
    struct listener *listener;
    struct wv_wait wait;
    NTSTATUS status;
    HRESULT hr;

    log_trace("%p: %p", (void *)iface, (void *)fresh);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (!target || target->provider != endpoint->provider)
        return WV_INVALID_PARAMETER;
    listener = listener_of(endpoint);
    if (!listener)
        return WV_NOT_SUPPORTED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (SUCCEEDED(hr)) {
        /* Until it is parked nobody may bind it. */
        pthread_mutex_lock(&target->lock);
        status = target->bound ? ND_CONNECTION_ACTIVE
                               : listener_get_connection_request(listener, target->connector, overlapped);
        pthread_mutex_unlock(&target->lock);
        if (status == ND_CONNECTION_ACTIVE)
            status = STATUS_CONNECTION_IN_USE;
        if (status == ND_INVALID_DEVICE_STATE)
            status = WV_NOT_SUPPORTED;
        hr = wv_wait_end(&wait, status_wv(status));
    }
    listener_unref(listener);
    return hr;
}

/* The local address towards the destination, with the device's entry. 127.x stands for one of the queue pair's device. */
static HRESULT find_source(const struct wv_qp *qp, const SOCKADDR *dest, union address *local,
                           struct address_entry *entry)
{
    const struct device *device = qp->pd->adapter->device;
    NTSTATUS status = address_route(dest, local);

    if (status != ND_SUCCESS)
        return status == ND_INVALID_ADDRESS ? WV_INVALID_ADDRESS : WV_HOST_UNREACHABLE;
    status = address_find_own(local, entry);
    for (uint8_t i = 0; i < device->attr.phys_port_cnt && status != ND_SUCCESS && address_is_loopback(dest); i++) {
        status = address_of_adapter(device->guid + i, dest->sa_family, local);
        if (status == ND_SUCCESS)
            status = address_find_own(local, entry);
    }
    return status_wv(status);
}

/* Bound to the wildcard address: the route to the destination chooses the device. */
static HRESULT choose_address_locked(struct wv_connect_endpoint *endpoint, const struct wv_qp *qp, const SOCKADDR *dest)
{
    union address wide = endpoint->address, local;
    struct address_entry entry;
    struct adapter *adapter;
    HRESULT hr = find_source(qp, dest, &local, &entry);

    if (SUCCEEDED(hr))
        hr = wv_provider_adapter(endpoint->provider, &entry, &adapter);
    if (FAILED(hr))
        return hr;
    address_set_port(&local.sa, address_port(&wide.sa));
    listener_release(endpoint->listener);
    listener_unref(endpoint->listener);
    endpoint->listener = NULL;
    endpoint->wide = false;
    hr = status_wv(connector_bind_on(endpoint->connector, adapter, &local.sa, address_length(&local.sa)));
    if (SUCCEEDED(hr)) {
        endpoint->address = local;
        return hr;
    }
    /* As it was, if that is possible. */
    endpoint->bound = endpoint->wide = SUCCEEDED(bind_wide_locked(endpoint, &wide));
    return hr;
}

static void keep_qp_locked(struct wv_connect_endpoint *endpoint, struct wv_qp *qp, struct wv_qp **old)
{
    *old = endpoint->qp;
    wv_object_pin(&qp->object);
    endpoint->qp = qp;
}

static HRESULT connect_locked(struct wv_connect_endpoint *endpoint, struct wv_qp *qp, const union address *dest,
                              const WV_CONNECT_PARAM *param, OVERLAPPED *overlapped, struct wv_qp **old)
{
    HRESULT hr = WV_SUCCESS;

    /* rdma_cm connects reliably. */
    if (!endpoint->bound || endpoint->listening || qp->attributes.QpType == WvQpTypeUc)
        return WV_NOT_SUPPORTED;
    if (endpoint->wide)
        hr = choose_address_locked(endpoint, qp, &dest->sa);
    if (FAILED(hr))
        return hr;
    connector_set_retries(endpoint->connector, param->RetryCount, param->RnrRetryCount);
    hr = status_wv(connector_connect(endpoint->connector, qp->qp, &dest->sa, address_length(&dest->sa),
                                     param->ResponderResources < 255 ? (uint32_t)param->ResponderResources : 255,
                                     param->InitiatorDepth < 255 ? (uint32_t)param->InitiatorDepth : 255, param->Data,
                                     param->DataLength, overlapped));
    if (hr == WV_IO_PENDING)
        keep_qp_locked(endpoint, qp, old);
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Connect(IWVConnectEndpoint *iface, IWVConnectQueuePair *queue_pair,
                                                             const SOCKADDR *address, WV_CONNECT_PARAM *param,
                                                             OVERLAPPED *overlapped)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct wv_qp *qp = unsafe_impl_from_IWVConnectQueuePair(queue_pair), *old = NULL;
    struct wv_wait wait;
    union address dest;
    NTSTATUS status;
    HRESULT hr;

    log_trace("%p: %p", (void *)iface, (void *)queue_pair);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (!qp || qp->attributes.QpType == WvQpTypeUd || !address || !param)
        return WV_INVALID_PARAMETER;
    if (param->DataLength > WV_DATA_MAX)
        return (HRESULT)STATUS_INVALID_BUFFER_SIZE;
    status = address_import(address, address_length(address), &dest);
    if (status != ND_SUCCESS)
        return status_wv(status);
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    pthread_mutex_lock(&endpoint->lock);
    hr = connect_locked(endpoint, qp, &dest, param, overlapped, &old);
    pthread_mutex_unlock(&endpoint->lock);
    if (old)
        wv_object_unpin(&old->object);
    return wv_wait_end(&wait, hr);
}

static HRESULT accept_locked(struct wv_connect_endpoint *endpoint, struct wv_qp *qp, const WV_CONNECT_PARAM *param,
                             OVERLAPPED *overlapped, struct wv_qp **old)
{
    struct connector_info info;
    HRESULT hr;

    connector_query(endpoint->connector, &info);
    /* The queue pair of Connect stays, whatever is named here. */
    if (info.active)
        return status_wv(connector_complete_connect(endpoint->connector, overlapped));
    if (!info.passive)
        return WV_NOT_SUPPORTED;
    if (!qp)
        return WV_INVALID_PARAMETER;
    if (qp->attributes.QpType == WvQpTypeUc)
        return WV_NOT_SUPPORTED;
    connector_set_retries(endpoint->connector, 0, param->RnrRetryCount);
    hr = status_wv(connector_accept(endpoint->connector, qp->qp,
                                    param->ResponderResources < 255 ? (uint32_t)param->ResponderResources : 255,
                                    param->InitiatorDepth < 255 ? (uint32_t)param->InitiatorDepth : 255, param->Data,
                                    param->DataLength, overlapped));
    if (hr == WV_IO_PENDING)
        keep_qp_locked(endpoint, qp, old);
    return hr;
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Accept(IWVConnectEndpoint *iface, IWVConnectQueuePair *queue_pair,
                                                            WV_CONNECT_PARAM *param, OVERLAPPED *overlapped)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct wv_qp *qp = unsafe_impl_from_IWVConnectQueuePair(queue_pair), *old = NULL;
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p: %p", (void *)iface, (void *)queue_pair);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    if (!param || (queue_pair && !qp) || (qp && qp->attributes.QpType == WvQpTypeUd))
        return WV_INVALID_PARAMETER;
    if (param->DataLength > WV_DATA_MAX)
        return (HRESULT)STATUS_INVALID_BUFFER_SIZE;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    pthread_mutex_lock(&endpoint->lock);
    hr = accept_locked(endpoint, qp, param, overlapped, &old);
    pthread_mutex_unlock(&endpoint->lock);
    if (old)
        wv_object_unpin(&old->object);
    return wv_wait_end(&wait, hr);
}

static HRESULT disconnect(struct wv_connect_endpoint *endpoint, struct wv_qp *qp, OVERLAPPED *overlapped)
{
    struct wv_wait wait;
    HRESULT hr;

    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait, status_wv(connector_disconnect_qp(endpoint->connector, qp ? qp->qp : NULL, overlapped)));
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Disconnect(IWVConnectEndpoint *iface, OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return disconnect(impl_from_IWVConnectEndpoint(iface), NULL, overlapped);
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_NotifyDisconnect(IWVConnectEndpoint *iface, OVERLAPPED *overlapped)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct wv_wait wait;
    HRESULT hr;

    log_trace("%p", (void *)iface);
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = wv_wait_begin(&wait, &overlapped);
    if (FAILED(hr))
        return hr;
    return wv_wait_end(&wait, status_wv(connector_notify_disconnect(endpoint->connector, overlapped)));
}

static void fill_param(WV_CONNECT_PARAM *param, const struct connector_info *info)
{
    size_t length = info->data_length < WV_DATA_MAX ? info->data_length : WV_DATA_MAX;

    /* Always the whole field once there is any; who connected sees the reply's values as they are, who is called from
     * his own point of view. */
    param->DataLength = info->data_length ? WV_DATA_MAX : 0;
    memcpy(param->Data, info->data, length);
    param->ResponderResources = info->passive ? info->inbound : info->outbound;
    param->InitiatorDepth = info->passive ? info->outbound : info->inbound;
    param->RetryCount = info->passive ? info->retry : 0;
    param->RnrRetryCount = info->rnr_retry;
}

static void fill_address(WV_SOCKADDR *to, const union address *from)
{
    memcpy(to, from, address_length(&from->sa));
}

static HRESULT STDMETHODCALLTYPE wv_connect_endpoint_Query(IWVConnectEndpoint *iface, WV_CONNECT_ATTRIBUTES *out)
{
    struct wv_connect_endpoint *endpoint = impl_from_IWVConnectEndpoint(iface);
    struct connector_info info;
    struct address_entry entry;

    log_trace("%p", (void *)iface);
    if (!out)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    memset(out, 0, sizeof(*out));
    connector_query(endpoint->connector, &info);
    fill_param(&out->Param, &info);
    fill_address(&out->PeerAddress, &info.peer);
    fill_address(&out->LocalAddress, &info.local);
    /* The address of a request comes without the port it was made to. */
    if (info.passive)
        address_set_port(&out->LocalAddress.Sa, 0);
    pthread_mutex_lock(&endpoint->lock);
    if (endpoint->bound) {
        fill_address(&out->LocalAddress, &endpoint->address);
        if (!info.device_guid && !endpoint->wide && address_find(&endpoint->address.sa, &entry) == ND_SUCCESS) {
            info.device_guid = entry.guid;
            info.port = entry.port;
        }
    }
    pthread_mutex_unlock(&endpoint->lock);
    if (info.device_guid) {
        union address local;

        out->Device.DeviceGuid = htobe64(info.device_guid);
        out->Device.PortNumber = info.port;
        memcpy(&local, &out->LocalAddress, sizeof(out->LocalAddress));
        if (address_pkey(&local.sa, &out->Device.Pkey) != ND_SUCCESS)
            out->Device.Pkey = 0xffff;
    }
    return WV_SUCCESS;
}

static const IWVConnectEndpointVtbl wv_connect_endpoint_vtbl = {
    /* IUnknown */
    wv_connect_endpoint_QueryInterface,
    wv_connect_endpoint_AddRef,
    wv_connect_endpoint_Release,
    /* IWVOverlapped */
    wv_connect_endpoint_CancelOverlappedRequests,
    wv_connect_endpoint_GetOverlappedResult,
    /* IWVEndpoint */
    wv_connect_endpoint_Modify,
    wv_connect_endpoint_BindAddress,
    wv_connect_endpoint_Listen,
    wv_connect_endpoint_Reject,
    /* IWVConnectEndpoint */
    wv_connect_endpoint_GetRequest,
    wv_connect_endpoint_Connect,
    wv_connect_endpoint_Accept,
    wv_connect_endpoint_Disconnect,
    wv_connect_endpoint_NotifyDisconnect,
    wv_connect_endpoint_Query,
};

struct wv_connect_endpoint *unsafe_impl_from_IWVConnectEndpoint(IWVConnectEndpoint *iface)
{
    return iface && iface->lpVtbl == &wv_connect_endpoint_vtbl ? impl_from_IWVConnectEndpoint(iface) : NULL;
}

/* INdvConnectEndpoint */

static struct wv_connect_endpoint *impl_from_INdvConnectEndpoint(INdvConnectEndpoint *iface)
{
    return (struct wv_connect_endpoint *)((char *)iface -
                                          offsetof(struct wv_connect_endpoint, INdvConnectEndpoint_iface));
}

static HRESULT STDMETHODCALLTYPE wv_flush_QueryInterface(INdvConnectEndpoint *iface, REFIID iid, void **out)
{
    struct wv_connect_endpoint *endpoint = impl_from_INdvConnectEndpoint(iface);

    return wv_connect_endpoint_QueryInterface(&endpoint->IWVConnectEndpoint_iface, iid, out);
}

static ULONG STDMETHODCALLTYPE wv_flush_AddRef(INdvConnectEndpoint *iface)
{
    return wv_object_addref(&impl_from_INdvConnectEndpoint(iface)->object);
}

static ULONG STDMETHODCALLTYPE wv_flush_Release(INdvConnectEndpoint *iface)
{
    return wv_object_release(&impl_from_INdvConnectEndpoint(iface)->object);
}

static HRESULT STDMETHODCALLTYPE wv_flush_DisconnectAndFlush(INdvConnectEndpoint *iface,
                                                             IWVConnectQueuePair *queue_pair, OVERLAPPED *overlapped)
{
    struct wv_qp *qp = unsafe_impl_from_IWVConnectQueuePair(queue_pair);

    log_trace("%p: %p", (void *)iface, (void *)queue_pair);
    if (queue_pair && !qp)
        return WV_INVALID_PARAMETER;
    return disconnect(impl_from_INdvConnectEndpoint(iface), qp, overlapped);
}

static const INdvConnectEndpointVtbl wv_flush_vtbl = {
    /* IUnknown */
    wv_flush_QueryInterface,
    wv_flush_AddRef,
    wv_flush_Release,
    /* INdvConnectEndpoint */
    wv_flush_DisconnectAndFlush,
};

HRESULT wv_connect_endpoint_create(struct wv_provider *provider, IWVConnectEndpoint **out)
{
    struct wv_connect_endpoint *endpoint;
    NTSTATUS status;

    if (wv_dead())
        return WV_DEVICE_REMOVED;
    endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return WV_NO_MEMORY;
    status = connector_create(NULL, provider->file, &wv_policy, &endpoint->connector);
    if (status != ND_SUCCESS) {
        free(endpoint);
        return status_wv(status);
    }
    pthread_mutex_init(&endpoint->lock, NULL);
    endpoint->IWVConnectEndpoint_iface.lpVtbl = &wv_connect_endpoint_vtbl;
    endpoint->INdvConnectEndpoint_iface.lpVtbl = &wv_flush_vtbl;
    endpoint->provider = provider;
    wv_object_pin(&provider->object);
    wv_object_init(&endpoint->object, destroy);
    *out = &endpoint->IWVConnectEndpoint_iface;
    return WV_SUCCESS;
}
