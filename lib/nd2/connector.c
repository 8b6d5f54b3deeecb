/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/status.h"
#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 11, ndspi.md section 4. Everything is in core/connector.c; this is its v2 face. */

static const struct connector_policy nd2_connector_policy = {
    .qp_owner = true,
    .auto_drep = true,
    .flush_on_peer = true,
    .cancel_abandons = true,
    .disconnect_timeout_status = ND_SUCCESS,
    .v1_timeouts = false,
};

static const IND2ConnectorVtbl nd2_connector_vtbl;

static struct nd2_connector *impl_from_IND2Connector(IND2Connector *iface)
{
    return (struct nd2_connector *)iface;
}

struct nd2_connector *unsafe_impl_from_IND2Connector(IUnknown *iface)
{
    IND2Connector *connector = (IND2Connector *)iface;

    return connector && connector->lpVtbl == &nd2_connector_vtbl ? impl_from_IND2Connector(connector) : NULL;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_connector_QueryInterface(IND2Connector *iface, REFIID iid, void **out)
{
    struct nd2_connector *object = impl_from_IND2Connector(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2Connector, &IID_IND2Overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_connector_AddRef(IND2Connector *iface)
{
    return nd2_addref(&impl_from_IND2Connector(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_connector_Release(IND2Connector *iface)
{
    struct nd2_connector *object = impl_from_IND2Connector(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        connector_release(object->connector);
        connector_unref(object->connector);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2Overlapped */

static HRESULT STDMETHODCALLTYPE nd2_connector_CancelOverlappedRequests(IND2Connector *iface)
{
    log_trace("%p", (void *)iface);
    return connector_cancel(impl_from_IND2Connector(iface)->connector);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_GetOverlappedResult(IND2Connector *iface, OVERLAPPED *overlapped,
                                                                   BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd2_overlapped_result(overlapped, wait);
}

/* IND2Connector */

static HRESULT STDMETHODCALLTYPE nd2_connector_Bind(IND2Connector *iface, const struct sockaddr *address, ULONG length)
{
    log_trace("%p", (void *)iface);
    return status_without_no_memory(connector_bind(impl_from_IND2Connector(iface)->connector, address, length));
}

static HRESULT STDMETHODCALLTYPE nd2_connector_Connect(IND2Connector *iface, IUnknown *queue_pair,
                                                       const struct sockaddr *address, ULONG length, ULONG inbound,
                                                       ULONG outbound, const void *data, ULONG data_length,
                                                       OVERLAPPED *overlapped)
{
    struct nd2_connector *object = impl_from_IND2Connector(iface);
    struct nd2_qp *qp;

    log_trace("%p: %p %u/%u %u bytes", (void *)iface, (void *)queue_pair, (unsigned)inbound, (unsigned)outbound,
              (unsigned)data_length);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    qp = unsafe_impl_from_IND2QueuePair(queue_pair);
    if (!qp)
        return ND_INVALID_PARAMETER_1;
    return status_without_no_memory(connector_connect(object->connector, qp->qp, address, length, inbound, outbound,
                                                      data, data_length, overlapped));
}

static HRESULT STDMETHODCALLTYPE nd2_connector_CompleteConnect(IND2Connector *iface, OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return connector_complete_connect(impl_from_IND2Connector(iface)->connector, overlapped);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_Accept(IND2Connector *iface, IUnknown *queue_pair, ULONG inbound,
                                                      ULONG outbound, const void *data, ULONG data_length,
                                                      OVERLAPPED *overlapped)
{
    struct nd2_connector *object = impl_from_IND2Connector(iface);
    struct nd2_qp *qp;

    log_trace("%p: %p %u/%u %u bytes", (void *)iface, (void *)queue_pair, (unsigned)inbound, (unsigned)outbound,
              (unsigned)data_length);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    qp = unsafe_impl_from_IND2QueuePair(queue_pair);
    if (!qp)
        return ND_INVALID_PARAMETER_1;
    return connector_accept(object->connector, qp->qp, inbound, outbound, data, data_length, overlapped);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_Reject(IND2Connector *iface, const void *data, ULONG length)
{
    log_trace("%p: %u bytes", (void *)iface, (unsigned)length);
    return connector_reject(impl_from_IND2Connector(iface)->connector, data, length);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_GetReadLimits(IND2Connector *iface, ULONG *inbound, ULONG *outbound)
{
    log_trace("%p", (void *)iface);
    return connector_get_read_limits(impl_from_IND2Connector(iface)->connector, inbound, outbound);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_GetPrivateData(IND2Connector *iface, void *data, ULONG *length)
{
    log_trace("%p", (void *)iface);
    return connector_get_private_data(impl_from_IND2Connector(iface)->connector, data, length);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_GetLocalAddress(IND2Connector *iface, struct sockaddr *address,
                                                               ULONG *length)
{
    log_trace("%p", (void *)iface);
    return connector_get_local_address(impl_from_IND2Connector(iface)->connector, address, length);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_GetPeerAddress(IND2Connector *iface, struct sockaddr *address,
                                                              ULONG *length)
{
    log_trace("%p", (void *)iface);
    return connector_get_peer_address(impl_from_IND2Connector(iface)->connector, address, length);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_NotifyDisconnect(IND2Connector *iface, OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return connector_notify_disconnect(impl_from_IND2Connector(iface)->connector, overlapped);
}

static HRESULT STDMETHODCALLTYPE nd2_connector_Disconnect(IND2Connector *iface, OVERLAPPED *overlapped)
{
    log_trace("%p", (void *)iface);
    return connector_disconnect(impl_from_IND2Connector(iface)->connector, overlapped);
}

static const IND2ConnectorVtbl nd2_connector_vtbl = {
    /* IUnknown */
    nd2_connector_QueryInterface,
    nd2_connector_AddRef,
    nd2_connector_Release,
    /* IND2Overlapped */
    nd2_connector_CancelOverlappedRequests,
    nd2_connector_GetOverlappedResult,
    /* IND2Connector */
    nd2_connector_Bind,
    nd2_connector_Connect,
    nd2_connector_CompleteConnect,
    nd2_connector_Accept,
    nd2_connector_Reject,
    nd2_connector_GetReadLimits,
    nd2_connector_GetPrivateData,
    nd2_connector_GetLocalAddress,
    nd2_connector_GetPeerAddress,
    nd2_connector_NotifyDisconnect,
    nd2_connector_Disconnect,
};

HRESULT nd2_connector_create(struct adapter *adapter, struct file *file, IND2Connector **out)
{
    struct nd2_connector *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = connector_create(adapter, file, &nd2_connector_policy, &object->connector);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->IND2Connector_iface.lpVtbl = &nd2_connector_vtbl;
    object->refcount = 1;
    nd2_object_made();
    *out = &object->IND2Connector_iface;
    return ND_SUCCESS;
}
