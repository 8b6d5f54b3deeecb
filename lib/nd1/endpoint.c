/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <stdlib.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 8, ndspi.md 5.1 to 5.6. Statuses of bad arguments are numbered by their place in the method.
 * The context of each request in core is the application's ND_RESULT. */

/* More entries than any queue pair takes. */
#define SGE_MAX 64

static struct nd1_endpoint *impl_from_INDEndpoint(INDEndpoint *iface)
{
    return (struct nd1_endpoint *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_endpoint_QueryInterface(INDEndpoint *iface, REFIID iid, void **out)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDEndpoint, NULL);
}

static ULONG STDMETHODCALLTYPE nd1_endpoint_AddRef(INDEndpoint *iface)
{
    return com_addref(&impl_from_INDEndpoint(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_endpoint_Release(INDEndpoint *iface)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        wordlock_lock(&object->tie->lock);
        object->tie->qp = NULL;
        wordlock_unlock(&object->tie->lock);
        connector_qp_released(object->qp);
        qp_release(object->qp);
        qp_unref(object->qp);
        nd1_tie_unref(object->tie);
        nd1_home_unref(object->home);
        free(object);
        module_object_gone();
    }
    return count;
}

/* INDEndpoint */

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Flush(INDEndpoint *iface)
{
    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return qp_flush(impl_from_INDEndpoint(iface)->qp);
}

static void STDMETHODCALLTYPE nd1_endpoint_StartRequestBatch(INDEndpoint *iface)
{
    if (!cq_forked)
        qp_batch_start(impl_from_INDEndpoint(iface)->qp);
}

static void STDMETHODCALLTYPE nd1_endpoint_SubmitRequestBatch(INDEndpoint *iface)
{
    if (!cq_forked)
        qp_batch_submit(impl_from_INDEndpoint(iface)->qp);
}

/* The entries as core takes them, and their length. */
static inline HRESULT import_sges(const ND_SGE *sgl, SIZE_T n, ND2_SGE *out, uint64_t *total)
{
    *total = 0;
    if (n > SGE_MAX)
        return ND_DATA_OVERRUN;
    if (n && !sgl)
        return ND_INVALID_PARAMETER_2;
    for (SIZE_T i = 0; i < n; i++) {
        uint64_t length = sgl[i].Length;

        if (length > UINT32_MAX)
            return ND_BUFFER_OVERFLOW;
        out[i].Buffer = sgl[i].pAddr;
        out[i].BufferLength = (ULONG)length;
        out[i].MemoryRegionToken = nd1_lkey(sgl[i].hMr);
        *total += length;
    }
    return ND_SUCCESS;
}

/* Small Sends and Writes are inlined without being asked. */
static inline DWORD inline_flag(const struct nd1_endpoint *object, SIZE_T n, uint64_t total)
{
    return total && total <= object->inline_size && n <= object->send_sge ? ND_OP_FLAG_INLINE : 0;
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Send(INDEndpoint *iface, ND_RESULT *result, const ND_SGE *sgl, SIZE_T n,
                                                   DWORD flags)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);
    ND2_SGE sges[SGE_MAX];
    uint64_t total;
    HRESULT status;

    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (flags & ~(DWORD)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT))
        return ND_INVALID_PARAMETER_4;
    status = import_sges(sgl, n, sges, &total);
    if (status != ND_SUCCESS)
        return status;
    return qp_send(object->qp, result, sges, (uint32_t)n, flags | inline_flag(object, n, total));
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_SendAndInvalidate(INDEndpoint *iface, ND_RESULT *result,
                                                                const ND_SGE *sgl, SIZE_T n,
                                                                const ND_MW_DESCRIPTOR *descriptor, DWORD flags)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);
    ND2_SGE sges[SGE_MAX];
    uint64_t total;
    HRESULT status;

    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (!descriptor)
        return ND_INVALID_PARAMETER_4;
    if (flags & ~(DWORD)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT))
        return ND_INVALID_PARAMETER_5;
    status = import_sges(sgl, n, sges, &total);
    if (status != ND_SUCCESS)
        return status;
    return qp_send_invalidate(object->qp, result, sges, (uint32_t)n, descriptor->Token,
                              flags | inline_flag(object, n, total));
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Receive(INDEndpoint *iface, ND_RESULT *result, const ND_SGE *sgl,
                                                      SIZE_T n)
{
    ND2_SGE sges[SGE_MAX];
    uint64_t total;
    HRESULT status;

    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    status = import_sges(sgl, n, sges, &total);
    if (status != ND_SUCCESS)
        return status;
    return qp_receive(impl_from_INDEndpoint(iface)->qp, result, sges, (uint32_t)n);
}

/* core numbers its statuses by the places in version 2's Bind, which are the same. */
static HRESULT STDMETHODCALLTYPE nd1_endpoint_Bind(INDEndpoint *iface, ND_RESULT *result, ND_MR_HANDLE handle,
                                                   INDMemoryWindow *window, const void *buffer, SIZE_T length,
                                                   DWORD flags, ND_MW_DESCRIPTOR *descriptor)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);
    struct nd1_mw *mw = unsafe_impl_from_INDMemoryWindow(window);
    struct mr *mr;
    HRESULT status;
    uint32_t token;

    log_trace("%p: %p %p", (void *)iface, (void *)handle, (void *)window);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (flags & ~(DWORD)MW_BIND_FLAGS)
        return ND_INVALID_PARAMETER_6;
    if (!descriptor)
        return ND_INVALID_PARAMETER_7;
    mr = nd1_mr_pin(object->home, handle);
    if (!mr)
        return ND_INVALID_PARAMETER_2;
    status = mw ? mw_bind(object->qp, result, mr, mw->mw, buffer, length, flags, &token) : ND_INVALID_PARAMETER_3;
    mr_unpin(mr);
    if (status == ND_SUCCESS) {
        descriptor->Base = htobe64((uintptr_t)buffer);
        descriptor->Length = htobe64(length);
        descriptor->Token = token;
    }
    return status;
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Invalidate(INDEndpoint *iface, ND_RESULT *result, INDMemoryWindow *window,
                                                         DWORD flags)
{
    struct nd1_mw *mw = unsafe_impl_from_INDMemoryWindow(window);

    log_trace("%p: %p", (void *)iface, (void *)window);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (flags & ~(DWORD)MW_INVALIDATE_FLAGS)
        return ND_INVALID_PARAMETER_3;
    if (!mw)
        return ND_INVALID_PARAMETER_2;
    return mw_invalidate(impl_from_INDEndpoint(iface)->qp, result, mw->mw, flags);
}

/* Base is opaque to the peer, and to be added to. */
static inline uint64_t target_address(const ND_MW_DESCRIPTOR *descriptor, ULONGLONG offset)
{
    return be64toh(descriptor->Base) + offset;
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Read(INDEndpoint *iface, ND_RESULT *result, const ND_SGE *sgl, SIZE_T n,
                                                   const ND_MW_DESCRIPTOR *descriptor, ULONGLONG offset, DWORD flags)
{
    ND2_SGE sges[SGE_MAX];
    uint64_t total;
    HRESULT status;

    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (!descriptor)
        return ND_INVALID_PARAMETER_4;
    status = import_sges(sgl, n, sges, &total);
    if (status != ND_SUCCESS)
        return status;
    return qp_read(impl_from_INDEndpoint(iface)->qp, result, sges, (uint32_t)n, target_address(descriptor, offset),
                   descriptor->Token, flags);
}

static HRESULT STDMETHODCALLTYPE nd1_endpoint_Write(INDEndpoint *iface, ND_RESULT *result, const ND_SGE *sgl, SIZE_T n,
                                                    const ND_MW_DESCRIPTOR *descriptor, ULONGLONG offset, DWORD flags)
{
    struct nd1_endpoint *object = impl_from_INDEndpoint(iface);
    ND2_SGE sges[SGE_MAX];
    uint64_t total;
    HRESULT status;

    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    if (!result)
        return ND_INVALID_PARAMETER_1;
    if (!descriptor)
        return ND_INVALID_PARAMETER_4;
    if (flags & ~(DWORD)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE))
        return ND_INVALID_PARAMETER_6;
    status = import_sges(sgl, n, sges, &total);
    if (status != ND_SUCCESS)
        return status;
    return qp_write(object->qp, result, sges, (uint32_t)n, target_address(descriptor, offset), descriptor->Token,
                    flags | inline_flag(object, n, total));
}

static const INDEndpointVtbl nd1_endpoint_vtbl = {
    /* IUnknown */
    nd1_endpoint_QueryInterface,
    nd1_endpoint_AddRef,
    nd1_endpoint_Release,
    /* INDEndpoint */
    nd1_endpoint_Flush,
    nd1_endpoint_StartRequestBatch,
    nd1_endpoint_SubmitRequestBatch,
    nd1_endpoint_Send,
    nd1_endpoint_SendAndInvalidate,
    nd1_endpoint_Receive,
    nd1_endpoint_Bind,
    nd1_endpoint_Invalidate,
    nd1_endpoint_Read,
    nd1_endpoint_Write,
};

HRESULT nd1_endpoint_create(const struct qp_config *config, struct nd1_home *home, struct nd1_tie *tie,
                            uint32_t inbound, uint32_t outbound, INDEndpoint **out)
{
    struct nd1_endpoint *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = qp_create(config, &object->qp);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->INDEndpoint_iface.lpVtbl = &nd1_endpoint_vtbl;
    object->refcount = 1;
    object->home = nd1_home_ref(home);
    object->tie = nd1_tie_ref(tie);
    tie->qp = object->qp;
    object->inline_size = config->inline_size;
    object->send_sge = config->send_sge ? config->send_sge : 1;
    object->inbound = inbound;
    object->outbound = outbound;
    module_object_made();
    *out = &object->INDEndpoint_iface;
    return ND_SUCCESS;
}

struct nd1_endpoint *unsafe_impl_from_INDEndpoint(INDEndpoint *iface)
{
    return iface && iface->lpVtbl == &nd1_endpoint_vtbl ? impl_from_INDEndpoint(iface) : NULL;
}
