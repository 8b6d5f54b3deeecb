/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 10, ndspi.md section 4. Everything is in core/listener.c; this is its v1 face. */

static struct nd1_listen *impl_from_INDListen(INDListen *iface)
{
    return (struct nd1_listen *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_listen_QueryInterface(INDListen *iface, REFIID iid, void **out)
{
    struct nd1_listen *object = impl_from_INDListen(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDListen, &IID_INDOverlapped);
}

static ULONG STDMETHODCALLTYPE nd1_listen_AddRef(INDListen *iface)
{
    return com_addref(&impl_from_INDListen(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_listen_Release(INDListen *iface)
{
    struct nd1_listen *object = impl_from_INDListen(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        listener_release(object->listener);
        listener_unref(object->listener);
        nd1_home_unref(object->home);
        free(object);
        module_object_gone();
    }
    return count;
}

/* INDOverlapped */

static HRESULT STDMETHODCALLTYPE nd1_listen_CancelOverlappedRequests(INDListen *iface)
{
    log_trace("%p", (void *)iface);
    return listener_cancel(impl_from_INDListen(iface)->listener);
}

static HRESULT STDMETHODCALLTYPE nd1_listen_GetOverlappedResult(INDListen *iface, OVERLAPPED *overlapped, SIZE_T *bytes,
                                                                BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd1_overlapped_result(overlapped, bytes, wait);
}

/* INDListen */

static HRESULT STDMETHODCALLTYPE nd1_listen_GetConnectionRequest(INDListen *iface, INDConnector *connector,
                                                                 OVERLAPPED *overlapped)
{
    struct nd1_listen *object = impl_from_INDListen(iface);
    struct nd1_connector *target;
    struct connector *c;
    NTSTATUS status;

    log_trace("%p: %p", (void *)iface, (void *)connector);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    target = unsafe_impl_from_INDConnector(connector);
    if (!target)
        return ND_INVALID_PARAMETER_1;
    c = nd1_connector_core(target);
    status = listener_get_connection_request(object->listener, c, overlapped);
    connector_unref(c);
    return status;
}

static const INDListenVtbl nd1_listen_vtbl = {
    /* IUnknown */
    nd1_listen_QueryInterface,
    nd1_listen_AddRef,
    nd1_listen_Release,
    /* INDOverlapped */
    nd1_listen_CancelOverlappedRequests,
    nd1_listen_GetOverlappedResult,
    /* INDListen */
    nd1_listen_GetConnectionRequest,
};

/* On the adapter's address; `port` and *assigned in network order. */
static NTSTATUS bind_and_listen(const struct nd1_home *home, struct listener *listener, uint32_t backlog, uint16_t port,
                                uint16_t *assigned)
{
    union address local = home->address;
    ULONG size = sizeof(local);
    NTSTATUS status;

    address_set_port(&local.sa, ntohs(port));
    status = nd1_bind_status(listener_bind(listener, &local.sa, address_length(&local.sa)));
    if (status == ND_SUCCESS)
        status = nd1_bind_status(listener_listen(listener, backlog));
    if (status == ND_SUCCESS && assigned) {
        status = listener_get_local_address(listener, &local.sa, &size);
        *assigned = htons(address_port(&local.sa));
    }
    return status;
}

HRESULT nd1_listen_create(struct nd1_home *home, uint32_t backlog, uint16_t port, uint16_t *assigned, INDListen **out)
{
    struct nd1_listen *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = listener_create(home->adapter, home->file, &object->listener);
    if (status != ND_SUCCESS)
        goto err_free;
    status = bind_and_listen(home, object->listener, backlog, port, assigned);
    if (status != ND_SUCCESS)
        goto err_listener;
    object->INDListen_iface.lpVtbl = &nd1_listen_vtbl;
    object->refcount = 1;
    object->home = nd1_home_ref(home);
    module_object_made();
    *out = &object->INDListen_iface;
    return ND_SUCCESS;

err_listener:
    listener_release(object->listener);
    listener_unref(object->listener);
err_free:
    free(object);
    return status;
}
