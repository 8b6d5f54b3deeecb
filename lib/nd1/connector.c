/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/tunable.h"
#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 9, ndspi.md section 4. A connector of core serves one connection. Version 1 lets the same
 * connector begin another one after it, which gets a core connector of its own. */

static const struct connector_policy nd1_connector_policy = {
    .qp_owner = true,
    .auto_drep = true,
    .flush_on_peer = true,
    .cancel_abandons = true,
    .disconnect_timeout_status = ND_SUCCESS,
    .v1_timeouts = true,
};

static const INDConnectorVtbl nd1_connector_vtbl;

static struct nd1_connector *impl_from_INDConnector(INDConnector *iface)
{
    return (struct nd1_connector *)iface;
}

struct nd1_connector *unsafe_impl_from_INDConnector(INDConnector *iface)
{
    return iface && iface->lpVtbl == &nd1_connector_vtbl ? impl_from_INDConnector(iface) : NULL;
}

struct connector *nd1_connector_core(struct nd1_connector *object)
{
    struct connector *c;

    pthread_mutex_lock(&object->lock);
    c = connector_ref(object->connector);
    pthread_mutex_unlock(&object->lock);
    return c;
}

/* The core connector for a Connect from `port` (0: any): a new one if this one has had its connection, or is bound
 * elsewhere. ND_NO_MEMORY, ND_DEVICE_REMOVED. */
static NTSTATUS core_to_connect(struct nd1_connector *object, uint16_t port, struct connector **out)
{
    struct connector *made, *old = nd1_connector_core(object);
    NTSTATUS status;

    *out = old;
    if (!connector_spent(old, port))
        return ND_SUCCESS;
    status = connector_create(object->home->adapter, object->home->file, &nd1_connector_policy, &made);
    if (status != ND_SUCCESS) {
        connector_unref(old);
        return status;
    }
    pthread_mutex_lock(&object->lock);
    if (object->connector == old) {
        object->connector = connector_ref(made);
        *out = made;
        made = NULL;
    } else { /* another Connect was faster */
        *out = connector_ref(object->connector);
    }
    pthread_mutex_unlock(&object->lock);
    if (made) {
        connector_release(made);
        connector_unref(made);
    } else {
        connector_release(old);
        connector_unref(old); /* the object's */
    }
    connector_unref(old);
    return ND_SUCCESS;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_connector_QueryInterface(INDConnector *iface, REFIID iid, void **out)
{
    struct nd1_connector *object = impl_from_INDConnector(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDConnector, &IID_INDOverlapped);
}

static ULONG STDMETHODCALLTYPE nd1_connector_AddRef(INDConnector *iface)
{
    return com_addref(&impl_from_INDConnector(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_connector_Release(INDConnector *iface)
{
    struct nd1_connector *object = impl_from_INDConnector(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        connector_release(object->connector);
        connector_unref(object->connector);
        nd1_tie_unref(object->tie);
        nd1_home_unref(object->home);
        pthread_mutex_destroy(&object->lock);
        free(object);
        module_object_gone();
    }
    return count;
}

/* INDOverlapped */

static HRESULT STDMETHODCALLTYPE nd1_connector_CancelOverlappedRequests(INDConnector *iface)
{
    struct connector *c;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = connector_cancel(c);
    connector_unref(c);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_GetOverlappedResult(INDConnector *iface, OVERLAPPED *overlapped,
                                                                   SIZE_T *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd1_overlapped_result(overlapped, bytes, wait);
}

/* INDConnector */

/* A CQ of another adapter object would belong to another protection domain, or to another device. */
static struct cq *own_cq(const struct nd1_connector *object, INDCompletionQueue *iface)
{
    struct nd1_cq *cq = unsafe_impl_from_INDCompletionQueue(iface);

    return cq && cq->home == object->home ? cq->cq : NULL;
}

/* True while the connector has an endpoint that has not been connected yet, or whose connection is not over. */
static bool has_endpoint(struct nd1_connector *object)
{
    struct connector *c;
    struct nd1_tie *tie;
    struct qp *qp = NULL;
    bool has;

    pthread_mutex_lock(&object->lock);
    tie = object->tie ? nd1_tie_ref(object->tie) : NULL;
    pthread_mutex_unlock(&object->lock);
    if (tie) {
        wordlock_lock(&tie->lock);
        qp = tie->qp ? qp_ref(tie->qp) : NULL;
        wordlock_unlock(&tie->lock);
        nd1_tie_unref(tie);
    }
    if (!qp)
        return false;
    c = nd1_connector_core(object);
    has = !qp_used(qp) || connector_uses(c, qp);
    connector_unref(c);
    qp_unref(qp);
    return has;
}

static HRESULT check_endpoint(struct nd1_connector *object, const struct qp_config *config, SIZE_T recv_depth,
                              SIZE_T send_depth, SIZE_T recv_sge, SIZE_T send_sge, SIZE_T inbound, SIZE_T outbound)
{
    const struct adapter_limits *limits = &object->home->adapter->limits;

    if (!config->recv_cq)
        return ND_INVALID_PARAMETER_1;
    if (!config->send_cq)
        return ND_INVALID_PARAMETER_2;
    if (recv_depth > limits->max_recv_depth)
        return ND_INVALID_PARAMETER_3;
    if (send_depth > limits->max_send_depth)
        return ND_INVALID_PARAMETER_4;
    if (recv_sge > limits->max_recv_sge)
        return ND_INVALID_PARAMETER_5;
    if (send_sge > limits->max_send_sge)
        return ND_INVALID_PARAMETER_6;
    if (inbound > limits->max_inbound_reads)
        return ND_INVALID_PARAMETER_7;
    if (outbound > limits->max_outbound_reads)
        return ND_INVALID_PARAMETER_8;
    return has_endpoint(object) ? ND_NOT_SUPPORTED : ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_CreateEndpoint(INDConnector *iface, INDCompletionQueue *recv_cq,
                                                              INDCompletionQueue *send_cq, SIZE_T recv_depth,
                                                              SIZE_T send_depth, SIZE_T recv_sge, SIZE_T send_sge,
                                                              SIZE_T inbound, SIZE_T outbound, SIZE_T *max_inline,
                                                              INDEndpoint **out)
{
    struct nd1_connector *object = impl_from_INDConnector(iface);
    const struct adapter_limits *limits = &object->home->adapter->limits;
    struct qp_config config = { .adapter = object->home->adapter };
    struct nd1_tie *tie, *old;
    HRESULT status;

    log_trace("%p: %zu %zu", (void *)iface, (size_t)recv_depth, (size_t)send_depth);
    if (!out)
        return ND_INVALID_PARAMETER_10;
    *out = NULL;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    config.recv_cq = own_cq(object, recv_cq);
    config.send_cq = own_cq(object, send_cq);
    status = check_endpoint(object, &config, recv_depth, send_depth, recv_sge, send_sge, inbound, outbound);
    if (status != ND_SUCCESS)
        return status;
    config.recv_depth = (uint32_t)recv_depth;
    config.send_depth = (uint32_t)send_depth;
    config.recv_sge = (uint32_t)recv_sge;
    config.send_sge = (uint32_t)send_sge;
    config.inline_size =
        tunables()->v1_inline_size < limits->max_inline ? tunables()->v1_inline_size : limits->max_inline;
    tie = nd1_tie_create();
    if (!tie)
        return ND_NO_MEMORY;
    status = nd1_endpoint_create(&config, object->home, tie, (uint32_t)inbound, (uint32_t)outbound, out);
    if (status != ND_SUCCESS) {
        nd1_tie_unref(tie);
        return status;
    }
    pthread_mutex_lock(&object->lock);
    old = object->tie;
    object->tie = tie;
    pthread_mutex_unlock(&object->lock);
    nd1_tie_unref(old);
    if (max_inline)
        *max_inline = config.inline_size;
    return ND_SUCCESS;
}

static struct nd1_endpoint *own_endpoint(struct nd1_connector *object, INDEndpoint *iface)
{
    struct nd1_endpoint *endpoint = unsafe_impl_from_INDEndpoint(iface);
    bool own = false;

    if (endpoint) {
        pthread_mutex_lock(&object->lock);
        own = object->tie == endpoint->tie;
        pthread_mutex_unlock(&object->lock);
    }
    return own ? endpoint : NULL;
}

/* Binds to the adapter's address, unless that has happened: in an earlier attempt, which keeps its port. What else is wrong
 * with the connector's state is said by the call that follows. */
static NTSTATUS bind_local(const struct nd1_home *home, struct connector *c, uint16_t port)
{
    union address local = home->address;
    NTSTATUS status;

    address_set_port(&local.sa, port);
    status = connector_bind(c, &local.sa, address_length(&local.sa));
    return status == STATUS_ADDRESS_ALREADY_ASSOCIATED ? ND_SUCCESS : nd1_bind_status(status);
}

static HRESULT STDMETHODCALLTYPE nd1_connector_Connect(INDConnector *iface, INDEndpoint *endpoint,
                                                       const struct sockaddr *address, SIZE_T length, INT protocol,
                                                       USHORT local_port, const void *data, SIZE_T data_length,
                                                       OVERLAPPED *overlapped)
{
    struct nd1_connector *object = impl_from_INDConnector(iface);
    struct nd1_home *home = object->home;
    struct nd1_endpoint *own;
    struct connector *c;
    union address dest;
    NTSTATUS status;

    log_trace("%p: %p %d %zu bytes", (void *)iface, (void *)endpoint, protocol, (size_t)data_length);
    if (nd1_removed(home))
        return ND_DEVICE_REMOVED;
    own = own_endpoint(object, endpoint);
    if (!own)
        return ND_INVALID_PARAMETER_1;
    if (protocol < 0 || protocol > UINT8_MAX || protocol == IPPROTO_UDP)
        return ND_INVALID_PARAMETER_4;
    if (!overlapped)
        return ND_INVALID_PARAMETER;
    if (data_length > home->adapter->limits.max_caller_data)
        return ND_BUFFER_OVERFLOW;
    status = address_import(address, length, &dest);
    if (status == ND_SUCCESS && dest.sa.sa_family != home->address.sa.sa_family)
        status = ND_INVALID_ADDRESS;
    if (status != ND_SUCCESS)
        return status;
    status = core_to_connect(object, ntohs(local_port), &c);
    if (status != ND_SUCCESS)
        return status_without_no_memory(status);
    status = bind_local(home, c, ntohs(local_port));
    if (status == ND_SUCCESS)
        status = nd1_status(connector_connect(c, own->qp, &dest.sa, address_length(&dest.sa), own->inbound,
                                              own->outbound, data, data_length, overlapped));
    connector_unref(c);
    return status_without_no_memory(status);
}

static HRESULT STDMETHODCALLTYPE nd1_connector_CompleteConnect(INDConnector *iface, OVERLAPPED *overlapped)
{
    struct connector *c;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = nd1_status(connector_complete_connect(c, overlapped));
    connector_unref(c);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_Accept(INDConnector *iface, INDEndpoint *endpoint, const void *data,
                                                      SIZE_T data_length, OVERLAPPED *overlapped)
{
    struct nd1_connector *object = impl_from_INDConnector(iface);
    struct nd1_endpoint *own;
    struct connector *c;
    NTSTATUS status;

    log_trace("%p: %p %zu bytes", (void *)iface, (void *)endpoint, (size_t)data_length);
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    own = own_endpoint(object, endpoint);
    if (!own)
        return ND_INVALID_PARAMETER_1;
    c = nd1_connector_core(object);
    status = nd1_status(connector_accept(c, own->qp, own->inbound, own->outbound, data, data_length, overlapped));
    connector_unref(c);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_Reject(INDConnector *iface, const void *data, SIZE_T length)
{
    struct connector *c;
    NTSTATUS status;

    log_trace("%p: %zu bytes", (void *)iface, (size_t)length);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = nd1_status(connector_reject(c, data, length));
    connector_unref(c);
    return status;
}

/* A buffer of more than 4 GiB has room enough. */
static ULONG clip(SIZE_T size)
{
    return size > UINT32_MAX ? UINT32_MAX : (ULONG)size;
}

/* In a forked child. A caller that looks at the length after a failure finds nothing. */
static HRESULT nothing(SIZE_T *length)
{
    if (length)
        *length = 0;
    return ND_DEVICE_REMOVED;
}

/* The data of a refusal can be read although there is no connection and hence no limits. */
static HRESULT STDMETHODCALLTYPE nd1_connector_GetConnectionData(INDConnector *iface, SIZE_T *inbound, SIZE_T *outbound,
                                                                 void *data, SIZE_T *length)
{
    ULONG in = 0, out = 0, size = length ? clip(*length) : 0;
    NTSTATUS limits, status;
    struct connector *c;

    log_trace("%p", (void *)iface);
    if (engine_dead())
        return nothing(length);
    c = nd1_connector_core(impl_from_INDConnector(iface));
    limits = connector_get_read_limits(c, &in, &out);
    status = connector_get_private_data(c, length ? data : NULL, &size);
    connector_unref(c);
    if (limits != ND_SUCCESS && (!length || (FAILED(status) && status != ND_BUFFER_OVERFLOW))) {
        if (length)
            *length = 0;
        return limits;
    }
    if (inbound)
        *inbound = in;
    if (outbound)
        *outbound = out;
    if (!length)
        return ND_SUCCESS;
    if (FAILED(status) && status != ND_BUFFER_OVERFLOW) {
        *length = 0; /* the peer sent none */
        return ND_SUCCESS;
    }
    *length = size;
    return status;
}

typedef NTSTATUS get_address(struct connector *c, struct sockaddr *buffer, ULONG *length);

static HRESULT address_of(INDConnector *iface, get_address *get, struct sockaddr *address, SIZE_T *length)
{
    struct connector *c;
    NTSTATUS status;
    ULONG size;

    if (engine_dead())
        return nothing(length);
    if (!length)
        return ND_INVALID_PARAMETER_2;
    size = clip(*length);
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = get(c, address, &size);
    connector_unref(c);
    *length = size;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_GetLocalAddress(INDConnector *iface, struct sockaddr *address,
                                                               SIZE_T *length)
{
    log_trace("%p", (void *)iface);
    return address_of(iface, connector_get_local_address, address, length);
}

static HRESULT STDMETHODCALLTYPE nd1_connector_GetPeerAddress(INDConnector *iface, struct sockaddr *address,
                                                              SIZE_T *length)
{
    log_trace("%p", (void *)iface);
    return address_of(iface, connector_get_peer_address, address, length);
}

static HRESULT STDMETHODCALLTYPE nd1_connector_NotifyDisconnect(INDConnector *iface, OVERLAPPED *overlapped)
{
    struct connector *c;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = connector_notify_disconnect(c, overlapped);
    connector_unref(c);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_connector_Disconnect(INDConnector *iface, OVERLAPPED *overlapped)
{
    struct connector *c;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    c = nd1_connector_core(impl_from_INDConnector(iface));
    status = connector_disconnect(c, overlapped);
    connector_unref(c);
    return status;
}

static const INDConnectorVtbl nd1_connector_vtbl = {
    /* IUnknown */
    nd1_connector_QueryInterface,
    nd1_connector_AddRef,
    nd1_connector_Release,
    /* INDOverlapped */
    nd1_connector_CancelOverlappedRequests,
    nd1_connector_GetOverlappedResult,
    /* INDConnector */
    nd1_connector_CreateEndpoint,
    nd1_connector_Connect,
    nd1_connector_CompleteConnect,
    nd1_connector_Accept,
    nd1_connector_Reject,
    nd1_connector_GetConnectionData,
    nd1_connector_GetLocalAddress,
    nd1_connector_GetPeerAddress,
    nd1_connector_NotifyDisconnect,
    nd1_connector_Disconnect,
};

HRESULT nd1_connector_create(struct nd1_home *home, INDConnector **out)
{
    struct nd1_connector *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = connector_create(home->adapter, home->file, &nd1_connector_policy, &object->connector);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->INDConnector_iface.lpVtbl = &nd1_connector_vtbl;
    object->refcount = 1;
    object->home = nd1_home_ref(home);
    pthread_mutex_init(&object->lock, NULL);
    module_object_made();
    *out = &object->INDConnector_iface;
    return ND_SUCCESS;
}
