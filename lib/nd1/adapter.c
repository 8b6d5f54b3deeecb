/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 5. */

static struct nd1_adapter *impl_from_INDAdapter(INDAdapter *iface)
{
    return (struct nd1_adapter *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_adapter_QueryInterface(INDAdapter *iface, REFIID iid, void **out)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDAdapter, &IID_INDOverlapped);
}

static ULONG STDMETHODCALLTYPE nd1_adapter_AddRef(INDAdapter *iface)
{
    return com_addref(&impl_from_INDAdapter(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_adapter_Release(INDAdapter *iface)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        nd1_home_unref(object->home);
        free(object);
        module_object_gone();
    }
    return count;
}

/* INDOverlapped */

/* Registrations are never pending when another call can see them. */
static HRESULT STDMETHODCALLTYPE nd1_adapter_CancelOverlappedRequests(INDAdapter *iface)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    return engine_dead() ? ND_DEVICE_REMOVED : ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_GetOverlappedResult(INDAdapter *iface, OVERLAPPED *overlapped,
                                                                 SIZE_T *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd1_overlapped_result(overlapped, bytes, wait);
}

/* INDAdapter */

static HANDLE STDMETHODCALLTYPE nd1_adapter_GetFileHandle(INDAdapter *iface)
{
    log_trace("%p", (void *)iface);
    return engine_dead() ? INVALID_HANDLE_VALUE : nd1_home_handle(impl_from_INDAdapter(iface)->home);
}

static void fill_info(const struct adapter *adapter, ND_ADAPTER_INFO *info)
{
    const struct adapter_limits *limits = &adapter->limits;

    memset(info, 0, sizeof(*info));
    info->VendorId = limits->vendor_id;
    info->DeviceId = limits->device_id;
    info->MaxInboundSge = limits->max_recv_sge;
    info->MaxInboundRequests = limits->max_recv_depth;
    info->MaxInboundLength = limits->max_transfer;
    info->MaxOutboundSge = limits->max_send_sge;
    info->MaxOutboundRequests = limits->max_send_depth;
    info->MaxOutboundLength = limits->max_transfer;
    info->MaxInlineData = limits->max_inline;
    info->MaxInboundReadLimit = limits->max_inbound_reads;
    info->MaxOutboundReadLimit = limits->max_outbound_reads;
    info->MaxCqEntries = limits->max_cq_depth;
    info->MaxRegistrationSize = (SIZE_T)limits->max_registration;
    info->MaxWindowSize = (SIZE_T)limits->max_registration;
    info->LargeRequestThreshold = limits->large_threshold;
    info->MaxCallerData = limits->max_caller_data;
    info->MaxCalleeData = limits->max_callee_data;
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_Query(INDAdapter *iface, DWORD version, ND_ADAPTER_INFO *info,
                                                   SIZE_T *size)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p: %u", (void *)iface, (unsigned)version);
    if (!size)
        return ND_INVALID_PARAMETER_3;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    if (version != ND_VERSION_1) {
        log_info("version 0x%x of the adapter's information is not known", (unsigned)version);
        return ND_NOT_SUPPORTED;
    }
    if (!info || *size < sizeof(*info)) {
        *size = sizeof(*info);
        return ND_BUFFER_OVERFLOW;
    }
    fill_info(object->home->adapter, info);
    *size = sizeof(*info);
    return ND_SUCCESS;
}

/* There is nothing of a vendor's own behind it. */
static HRESULT STDMETHODCALLTYPE nd1_adapter_Control(INDAdapter *iface, DWORD code, const void *in, SIZE_T in_size,
                                                     void *out, SIZE_T out_size, SIZE_T *returned,
                                                     OVERLAPPED *overlapped)
{
    log_trace("%p: 0x%x", (void *)iface, (unsigned)code);
    (void)iface, (void)code, (void)in, (void)in_size, (void)out, (void)out_size, (void)overlapped;
    if (returned)
        *returned = 0;
    return engine_dead() ? ND_DEVICE_REMOVED : ND_NOT_SUPPORTED;
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_CreateCompletionQueue(INDAdapter *iface, SIZE_T entries,
                                                                   INDCompletionQueue **out)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p: %zu", (void *)iface, (size_t)entries);
    if (!out)
        return ND_INVALID_PARAMETER_2;
    *out = NULL;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    if (entries == 0 || entries > object->home->adapter->limits.max_cq_depth)
        return ND_INVALID_PARAMETER;
    return nd1_cq_create(object->home, (uint32_t)entries, out);
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_RegisterMemory(INDAdapter *iface, const void *buffer, SIZE_T length,
                                                            OVERLAPPED *overlapped, ND_MR_HANDLE *handle)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p: %p %zu", (void *)iface, buffer, (size_t)length);
    if (!handle)
        return ND_INVALID_PARAMETER_4;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    return nd1_register(object->home, buffer, length, overlapped, handle);
}

/* Works after the device is gone, too. */
static HRESULT STDMETHODCALLTYPE nd1_adapter_DeregisterMemory(INDAdapter *iface, ND_MR_HANDLE handle,
                                                              OVERLAPPED *overlapped)
{
    log_trace("%p: %p", (void *)iface, (void *)handle);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return nd1_deregister(impl_from_INDAdapter(iface)->home, handle, overlapped);
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_CreateMemoryWindow(INDAdapter *iface, ND_RESULT *result,
                                                                INDMemoryWindow **out)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p", (void *)iface);
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (!out)
        return ND_INVALID_PARAMETER_2;
    *out = NULL;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    return nd1_mw_create(object->home, result, out);
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_CreateConnector(INDAdapter *iface, INDConnector **out)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p", (void *)iface);
    if (!out)
        return ND_INVALID_PARAMETER_1;
    *out = NULL;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    return nd1_connector_create(object->home, out);
}

static HRESULT STDMETHODCALLTYPE nd1_adapter_Listen(INDAdapter *iface, SIZE_T backlog, INT protocol, USHORT port,
                                                    USHORT *assigned, INDListen **out)
{
    struct nd1_adapter *object = impl_from_INDAdapter(iface);

    log_trace("%p: %d %u", (void *)iface, protocol, (unsigned)ntohs(port));
    if (!out)
        return ND_INVALID_PARAMETER_5;
    *out = NULL;
    if (nd1_removed(object->home))
        return ND_DEVICE_REMOVED;
    if (protocol < 0 || protocol > UINT8_MAX)
        return ND_INVALID_PARAMETER_2;
    if (protocol == IPPROTO_UDP)
        return ND_NOT_SUPPORTED;
    if (!port && !assigned)
        return ND_INVALID_PARAMETER_MIX;
    return nd1_listen_create(object->home, backlog > UINT32_MAX ? UINT32_MAX : (uint32_t)backlog, port, assigned, out);
}

static const INDAdapterVtbl nd1_adapter_vtbl = {
    /* IUnknown */
    nd1_adapter_QueryInterface,
    nd1_adapter_AddRef,
    nd1_adapter_Release,
    /* INDOverlapped */
    nd1_adapter_CancelOverlappedRequests,
    nd1_adapter_GetOverlappedResult,
    /* INDAdapter */
    nd1_adapter_GetFileHandle,
    nd1_adapter_Query,
    nd1_adapter_Control,
    nd1_adapter_CreateCompletionQueue,
    nd1_adapter_RegisterMemory,
    nd1_adapter_DeregisterMemory,
    nd1_adapter_CreateMemoryWindow,
    nd1_adapter_CreateConnector,
    nd1_adapter_Listen,
};

HRESULT nd1_adapter_create(struct adapter *adapter, const union address *address, INDAdapter **out)
{
    struct nd1_adapter *object = calloc(1, sizeof(*object));
    HRESULT status;

    if (!object)
        return ND_NO_MEMORY;
    status = nd1_home_create(adapter, address, &object->home);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->INDAdapter_iface.lpVtbl = &nd1_adapter_vtbl;
    object->refcount = 1;
    module_object_made();
    *out = &object->INDAdapter_iface;
    return ND_SUCCESS;
}
