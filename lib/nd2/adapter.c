/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 5. Statuses of bad arguments are numbered by their place in the method (ndspi.md A16). */

static struct nd2_adapter *impl_from_IND2Adapter(IND2Adapter *iface)
{
    return (struct nd2_adapter *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_adapter_QueryInterface(IND2Adapter *iface, REFIID iid, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2Adapter, NULL);
}

static ULONG STDMETHODCALLTYPE nd2_adapter_AddRef(IND2Adapter *iface)
{
    return nd2_addref(&impl_from_IND2Adapter(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_adapter_Release(IND2Adapter *iface)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        adapter_unref(object->adapter);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2Adapter */

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateOverlappedFile(IND2Adapter *iface, HANDLE *handle)
{
    struct file *file;

    log_trace("%p", (void *)iface);
    if (!handle)
        return ND_INVALID_PARAMETER_1;
    *handle = NULL;
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    file = file_create();
    if (!file)
        return ND_NO_MEMORY;
    *handle = file_open_handle(file, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE);
    file_unref(file); /* the handle and the objects made with it keep it */
    return *handle ? ND_SUCCESS : ND_NO_MEMORY;
}

static void fill_info(const struct adapter *adapter, ND2_ADAPTER_INFO *info)
{
    const struct adapter_limits *limits = &adapter->limits;

    info->VendorId = (UINT16)limits->vendor_id;
    info->DeviceId = (UINT16)limits->device_id;
    info->AdapterId = adapter->id;
    info->MaxRegistrationSize = (SIZE_T)limits->max_registration;
    info->MaxWindowSize = (SIZE_T)limits->max_registration;
    info->MaxInitiatorSge = limits->max_send_sge;
    info->MaxReceiveSge = limits->max_recv_sge;
    info->MaxReadSge = limits->max_read_sge;
    info->MaxTransferLength = limits->max_transfer;
    info->MaxInlineDataSize = limits->max_inline;
    info->MaxInboundReadLimit = limits->max_inbound_reads;
    info->MaxOutboundReadLimit = limits->max_outbound_reads;
    info->MaxReceiveQueueDepth = limits->max_recv_depth;
    info->MaxInitiatorQueueDepth = limits->max_send_depth;
    info->MaxSharedReceiveQueueDepth = limits->max_srq_depth;
    info->MaxCompletionQueueDepth = limits->max_cq_depth;
    info->InlineRequestThreshold = limits->inline_threshold;
    info->LargeRequestThreshold = limits->large_threshold;
    info->MaxCallerData = limits->max_caller_data;
    info->MaxCalleeData = limits->max_callee_data;
    info->AdapterFlags = limits->flags;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_Query(IND2Adapter *iface, ND2_ADAPTER_INFO *info, ULONG *size)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);

    log_trace("%p", (void *)iface);
    if (!size)
        return ND_INVALID_PARAMETER_2;
    if (nd2_dead() || adapter_removed(object->adapter)) {
        *size = 0;
        return ND_DEVICE_REMOVED;
    }
    if (!info || *size < sizeof(*info)) {
        *size = sizeof(*info);
        return ND_BUFFER_OVERFLOW;
    }
    /* The documents say 1, every program passes ND_VERSION_2 (ndspi.md A1). */
    if (info->InfoVersion != ND_VERSION_1 && info->InfoVersion != ND_VERSION_2) {
        log_info("InfoVersion 0x%x is not known", (unsigned)info->InfoVersion);
        *size = 0;
        return ND_NOT_SUPPORTED;
    }
    fill_info(object->adapter, info);
    *size = sizeof(*info);
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_QueryAddressList(IND2Adapter *iface, SOCKET_ADDRESS_LIST *list,
                                                              ULONG *size)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);

    log_trace("%p", (void *)iface);
    if (!size)
        return ND_INVALID_PARAMETER_2;
    if (nd2_dead() || adapter_removed(object->adapter)) {
        *size = 0;
        return ND_DEVICE_REMOVED;
    }
    return nd2_export_addresses(&object->adapter->id, list, size);
}

/* What all Create methods check, and clear `*out`. `place`: status for a NULL `out`. */
static HRESULT check_create(const struct nd2_adapter *object, REFIID iid, const GUID *own, const GUID *base, void **out,
                            HRESULT place)
{
    if (!out)
        return place;
    *out = NULL;
    if (!nd2_iid_is(iid, own, base))
        return E_NOINTERFACE;
    if (nd2_dead() || adapter_removed(object->adapter))
        return ND_DEVICE_REMOVED;
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateCompletionQueue(IND2Adapter *iface, REFIID iid, HANDLE handle,
                                                                   ULONG depth, USHORT group, KAFFINITY affinity,
                                                                   void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    IND2CompletionQueue *made;
    struct file *file;
    HRESULT status;

    log_trace("%p: %u", (void *)iface, (unsigned)depth);
    status = check_create(object, iid, &IID_IND2CompletionQueue, &IID_IND2Overlapped, out, ND_INVALID_PARAMETER_6);
    if (status != ND_SUCCESS)
        return status;
    if (depth == 0 || depth > object->adapter->limits.max_cq_depth)
        return ND_INVALID_PARAMETER_3;
    file = file_from_handle(handle);
    if (!file)
        return ND_INVALID_HANDLE;
    status = nd2_cq_create(object->adapter, file, depth, group, affinity, &made);
    file_unref(file);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateMemoryRegion(IND2Adapter *iface, REFIID iid, HANDLE handle,
                                                                void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    IND2MemoryRegion *made;
    struct file *file;
    HRESULT status;

    log_trace("%p", (void *)iface);
    status = check_create(object, iid, &IID_IND2MemoryRegion, &IID_IND2Overlapped, out, ND_INVALID_PARAMETER_3);
    if (status != ND_SUCCESS)
        return status;
    file = file_from_handle(handle);
    if (!file)
        return ND_INVALID_HANDLE;
    status = nd2_mr_create(object->adapter, file, &made);
    file_unref(file);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateMemoryWindow(IND2Adapter *iface, REFIID iid, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    IND2MemoryWindow *made;
    HRESULT status;

    log_trace("%p", (void *)iface);
    status = check_create(object, iid, &IID_IND2MemoryWindow, NULL, out, ND_INVALID_PARAMETER_2);
    if (status != ND_SUCCESS)
        return status;
    status = nd2_mw_create(object->adapter, &made);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

/* A threshold beyond the depth is legal, and always reached. SRQ events come with the device's others, so an affinity has no
 * effect. */
static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateSharedReceiveQueue(IND2Adapter *iface, REFIID iid, HANDLE handle,
                                                                      ULONG depth, ULONG sge, ULONG threshold,
                                                                      USHORT group, KAFFINITY affinity, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    const struct adapter_limits *limits = &object->adapter->limits;
    struct srq_config config = {
        .adapter = object->adapter, .depth = depth, .max_sge = sge, .threshold = threshold, .policy = &srq_policy_nd
    };
    IND2SharedReceiveQueue *made;
    struct file *file;
    HRESULT status;

    log_trace("%p: %u %u", (void *)iface, (unsigned)depth, (unsigned)threshold);
    (void)group;
    (void)affinity;
    status = check_create(object, iid, &IID_IND2SharedReceiveQueue, &IID_IND2Overlapped, out, ND_INVALID_PARAMETER_8);
    if (status != ND_SUCCESS)
        return status;
    if (!limits->max_srq_depth)
        return ND_NOT_SUPPORTED;
    if (depth == 0 || depth > limits->max_srq_depth)
        return ND_INVALID_PARAMETER_3;
    if (sge > limits->max_srq_sge)
        return ND_INVALID_PARAMETER_4;
    file = file_from_handle(handle);
    if (!file)
        return ND_INVALID_HANDLE;
    status = nd2_srq_create(&config, file, &made);
    file_unref(file);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

/* A CQ of another adapter object would belong to another protection domain, or to another device. */
static struct cq *own_cq(const struct nd2_adapter *object, IUnknown *unknown)
{
    struct nd2_cq *cq = unsafe_impl_from_IND2CompletionQueue(unknown);

    return cq && cq_adapter(nd2_cq_core(cq)) == object->adapter ? nd2_cq_core(cq) : NULL;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateQueuePair(IND2Adapter *iface, REFIID iid, IUnknown *recv_cq,
                                                             IUnknown *send_cq, void *context, ULONG recv_depth,
                                                             ULONG send_depth, ULONG recv_sge, ULONG send_sge,
                                                             ULONG inline_size, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    const struct adapter_limits *limits = &object->adapter->limits;
    struct qp_config config = { .adapter = object->adapter,
                                .context = context,
                                .recv_depth = recv_depth,
                                .send_depth = send_depth,
                                .recv_sge = recv_sge,
                                .send_sge = send_sge,
                                .inline_size = inline_size };
    IND2QueuePair *made;
    HRESULT status;

    log_trace("%p: %u %u", (void *)iface, (unsigned)recv_depth, (unsigned)send_depth);
    status = check_create(object, iid, &IID_IND2QueuePair, NULL, out, ND_INVALID_PARAMETER_10);
    if (status != ND_SUCCESS)
        return status;
    config.recv_cq = own_cq(object, recv_cq);
    if (!config.recv_cq)
        return ND_INVALID_PARAMETER_2;
    config.send_cq = own_cq(object, send_cq);
    if (!config.send_cq)
        return ND_INVALID_PARAMETER_3;
    if (recv_depth > limits->max_recv_depth)
        return ND_INVALID_PARAMETER_5;
    if (send_depth > limits->max_send_depth)
        return ND_INVALID_PARAMETER_6;
    if (recv_sge > limits->max_recv_sge)
        return ND_INVALID_PARAMETER_7;
    if (send_sge > limits->max_send_sge)
        return ND_INVALID_PARAMETER_8;
    if (inline_size > limits->max_inline)
        return ND_INVALID_PARAMETER_9;
    status = nd2_qp_create(&config, &made);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateQueuePairWithSrq(IND2Adapter *iface, REFIID iid, IUnknown *recv_cq,
                                                                    IUnknown *send_cq, IUnknown *srq, void *context,
                                                                    ULONG send_depth, ULONG send_sge, ULONG inline_size,
                                                                    void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    const struct adapter_limits *limits = &object->adapter->limits;
    struct nd2_srq *shared = unsafe_impl_from_IND2SharedReceiveQueue(srq);
    struct qp_config config = { .adapter = object->adapter,
                                .context = context,
                                .send_depth = send_depth,
                                .send_sge = send_sge,
                                .inline_size = inline_size };
    IND2QueuePair *made;
    HRESULT status;

    log_trace("%p: %u", (void *)iface, (unsigned)send_depth);
    status = check_create(object, iid, &IID_IND2QueuePair, NULL, out, ND_INVALID_PARAMETER_9);
    if (status != ND_SUCCESS)
        return status;
    if (!limits->max_srq_depth)
        return ND_NOT_SUPPORTED;
    config.recv_cq = own_cq(object, recv_cq);
    if (!config.recv_cq)
        return ND_INVALID_PARAMETER_2;
    config.send_cq = own_cq(object, send_cq);
    if (!config.send_cq)
        return ND_INVALID_PARAMETER_3;
    if (!shared || srq_adapter(shared->srq) != object->adapter)
        return ND_INVALID_PARAMETER_4;
    config.srq = shared->srq;
    if (send_depth > limits->max_send_depth)
        return ND_INVALID_PARAMETER_6;
    if (send_sge > limits->max_send_sge)
        return ND_INVALID_PARAMETER_7;
    if (inline_size > limits->max_inline)
        return ND_INVALID_PARAMETER_8;
    status = nd2_qp_create(&config, &made);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateConnector(IND2Adapter *iface, REFIID iid, HANDLE handle, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    IND2Connector *made;
    struct file *file;
    HRESULT status;

    log_trace("%p", (void *)iface);
    status = check_create(object, iid, &IID_IND2Connector, &IID_IND2Overlapped, out, ND_INVALID_PARAMETER_3);
    if (status != ND_SUCCESS)
        return status;
    file = file_from_handle(handle);
    if (!file)
        return ND_INVALID_HANDLE;
    status = nd2_connector_create(object->adapter, file, &made);
    file_unref(file);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_adapter_CreateListener(IND2Adapter *iface, REFIID iid, HANDLE handle, void **out)
{
    struct nd2_adapter *object = impl_from_IND2Adapter(iface);
    IND2Listener *made;
    struct file *file;
    HRESULT status;

    log_trace("%p", (void *)iface);
    status = check_create(object, iid, &IID_IND2Listener, &IID_IND2Overlapped, out, ND_INVALID_PARAMETER_3);
    if (status != ND_SUCCESS)
        return status;
    file = file_from_handle(handle);
    if (!file)
        return ND_INVALID_HANDLE;
    status = nd2_listener_create(object->adapter, file, &made);
    file_unref(file);
    if (status == ND_SUCCESS)
        *out = made;
    return status;
}

static const IND2AdapterVtbl nd2_adapter_vtbl = {
    /* IUnknown */
    nd2_adapter_QueryInterface,
    nd2_adapter_AddRef,
    nd2_adapter_Release,
    /* IND2Adapter */
    nd2_adapter_CreateOverlappedFile,
    nd2_adapter_Query,
    nd2_adapter_QueryAddressList,
    nd2_adapter_CreateCompletionQueue,
    nd2_adapter_CreateMemoryRegion,
    nd2_adapter_CreateMemoryWindow,
    nd2_adapter_CreateSharedReceiveQueue,
    nd2_adapter_CreateQueuePair,
    nd2_adapter_CreateQueuePairWithSrq,
    nd2_adapter_CreateConnector,
    nd2_adapter_CreateListener,
};

HRESULT nd2_adapter_create(struct adapter *adapter, IND2Adapter **out)
{
    struct nd2_adapter *object = calloc(1, sizeof(*object));

    if (!object)
        return ND_NO_MEMORY;
    object->IND2Adapter_iface.lpVtbl = &nd2_adapter_vtbl;
    object->refcount = 1;
    object->adapter = adapter_ref(adapter);
    nd2_object_made();
    *out = &object->IND2Adapter_iface;
    return ND_SUCCESS;
}
