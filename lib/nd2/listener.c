/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/status.h"
#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 12, ndspi.md section 4. Everything is in core/listener.c; this is its v2 face. */

static struct nd2_listener *impl_from_IND2Listener(IND2Listener *iface)
{
    return (struct nd2_listener *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_listener_QueryInterface(IND2Listener *iface, REFIID iid, void **out)
{
    struct nd2_listener *object = impl_from_IND2Listener(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2Listener, &IID_IND2Overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_listener_AddRef(IND2Listener *iface)
{
    return nd2_addref(&impl_from_IND2Listener(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_listener_Release(IND2Listener *iface)
{
    struct nd2_listener *object = impl_from_IND2Listener(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        listener_release(object->listener);
        listener_unref(object->listener);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2Overlapped */

static HRESULT STDMETHODCALLTYPE nd2_listener_CancelOverlappedRequests(IND2Listener *iface)
{
    log_trace("%p", (void *)iface);
    return listener_cancel(impl_from_IND2Listener(iface)->listener);
}

static HRESULT STDMETHODCALLTYPE nd2_listener_GetOverlappedResult(IND2Listener *iface, OVERLAPPED *overlapped,
                                                                  BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd2_overlapped_result(overlapped, wait);
}

/* IND2Listener */

static HRESULT STDMETHODCALLTYPE nd2_listener_Bind(IND2Listener *iface, const struct sockaddr *address, ULONG length)
{
    log_trace("%p", (void *)iface);
    return status_without_no_memory(listener_bind(impl_from_IND2Listener(iface)->listener, address, length));
}

static HRESULT STDMETHODCALLTYPE nd2_listener_Listen(IND2Listener *iface, ULONG backlog)
{
    log_trace("%p: %u", (void *)iface, (unsigned)backlog);
    return listener_listen(impl_from_IND2Listener(iface)->listener, backlog);
}

static HRESULT STDMETHODCALLTYPE nd2_listener_GetLocalAddress(IND2Listener *iface, struct sockaddr *address,
                                                              ULONG *length)
{
    log_trace("%p", (void *)iface);
    return listener_get_local_address(impl_from_IND2Listener(iface)->listener, address, length);
}

static HRESULT STDMETHODCALLTYPE nd2_listener_GetConnectionRequest(IND2Listener *iface, IUnknown *connector,
                                                                   OVERLAPPED *overlapped)
{
    struct nd2_listener *object = impl_from_IND2Listener(iface);
    struct nd2_connector *target;

    log_trace("%p: %p", (void *)iface, (void *)connector);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    target = unsafe_impl_from_IND2Connector(connector);
    if (!target)
        return ND_INVALID_PARAMETER_1;
    return listener_get_connection_request(object->listener, target->connector, overlapped);
}

static const IND2ListenerVtbl nd2_listener_vtbl = {
    /* IUnknown */
    nd2_listener_QueryInterface,
    nd2_listener_AddRef,
    nd2_listener_Release,
    /* IND2Overlapped */
    nd2_listener_CancelOverlappedRequests,
    nd2_listener_GetOverlappedResult,
    /* IND2Listener */
    nd2_listener_Bind,
    nd2_listener_Listen,
    nd2_listener_GetLocalAddress,
    nd2_listener_GetConnectionRequest,
};

HRESULT nd2_listener_create(struct adapter *adapter, struct file *file, IND2Listener **out)
{
    struct nd2_listener *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = listener_create(adapter, file, &object->listener);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->IND2Listener_iface.lpVtbl = &nd2_listener_vtbl;
    object->refcount = 1;
    nd2_object_made();
    *out = &object->IND2Listener_iface;
    return ND_SUCCESS;
}
