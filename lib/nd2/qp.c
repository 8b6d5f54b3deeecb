/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>

#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 10, ndspi.md 5.1 to 5.6. */

static struct nd2_qp *impl_from_IND2QueuePair(IND2QueuePair *iface)
{
    return (struct nd2_qp *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_qp_QueryInterface(IND2QueuePair *iface, REFIID iid, void **out)
{
    struct nd2_qp *object = impl_from_IND2QueuePair(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2QueuePair, NULL);
}

static ULONG STDMETHODCALLTYPE nd2_qp_AddRef(IND2QueuePair *iface)
{
    return nd2_addref(&impl_from_IND2QueuePair(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_qp_Release(IND2QueuePair *iface)
{
    struct nd2_qp *object = impl_from_IND2QueuePair(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        connector_qp_released(object->qp);
        qp_release(object->qp);
        qp_unref(object->qp);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2QueuePair */

static HRESULT STDMETHODCALLTYPE nd2_qp_Flush(IND2QueuePair *iface)
{
    log_trace("%p", (void *)iface);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return qp_flush(impl_from_IND2QueuePair(iface)->qp);
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Send(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count,
                                             ULONG flags)
{
    return qp_send(impl_from_IND2QueuePair(iface)->qp, context, sge, count, flags);
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Receive(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count)
{
    return qp_receive(impl_from_IND2QueuePair(iface)->qp, context, sge, count);
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Bind(IND2QueuePair *iface, void *context, IUnknown *region, IUnknown *window,
                                             const void *buffer, SIZE_T length, ULONG flags)
{
    struct nd2_mw *mw = unsafe_impl_from_IND2MemoryWindow(window);
    struct mr *mr;
    HRESULT status;

    log_trace("%p: %p %p", (void *)iface, (void *)region, (void *)window);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    if (flags & ~(ULONG)MW_BIND_FLAGS)
        return ND_INVALID_PARAMETER_6;
    mr = nd2_mr_pin(region);
    if (!mr)
        return ND_INVALID_PARAMETER_2;
    status = mw ? mw_bind(impl_from_IND2QueuePair(iface)->qp, context, mr, mw->mw, buffer, length, flags, NULL)
                : ND_INVALID_PARAMETER_3;
    mr_unpin(mr);
    return status;
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Invalidate(IND2QueuePair *iface, void *context, IUnknown *window, ULONG flags)
{
    struct nd2_mw *mw = unsafe_impl_from_IND2MemoryWindow(window);

    log_trace("%p: %p", (void *)iface, (void *)window);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    if (flags & ~(ULONG)MW_INVALIDATE_FLAGS)
        return ND_INVALID_PARAMETER_3;
    if (!mw)
        return ND_INVALID_PARAMETER_2;
    return mw_invalidate(impl_from_IND2QueuePair(iface)->qp, context, mw->mw, flags);
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Read(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count,
                                             UINT64 address, UINT32 token, ULONG flags)
{
    return qp_read(impl_from_IND2QueuePair(iface)->qp, context, sge, count, address, token, flags);
}

static HRESULT STDMETHODCALLTYPE nd2_qp_Write(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count,
                                              UINT64 address, UINT32 token, ULONG flags)
{
    return qp_write(impl_from_IND2QueuePair(iface)->qp, context, sge, count, address, token, flags);
}

static IND2QueuePairVtbl nd2_qp_vtbl = {
    /* IUnknown */
    nd2_qp_QueryInterface,
    nd2_qp_AddRef,
    nd2_qp_Release,
    /* IND2QueuePair */
    nd2_qp_Flush,
    nd2_qp_Send,
    nd2_qp_Receive,
    nd2_qp_Bind,
    nd2_qp_Invalidate,
    nd2_qp_Read,
    nd2_qp_Write,
};

/* The methods of the data path do not ask whether this is a forked child: there they are replaced. */

static HRESULT STDMETHODCALLTYPE forked_transfer(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count,
                                                 UINT64 address, UINT32 token, ULONG flags)
{
    (void)iface, (void)context, (void)sge, (void)count, (void)address, (void)token, (void)flags;
    return ND_DEVICE_REMOVED;
}

static HRESULT STDMETHODCALLTYPE forked_Send(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count,
                                             ULONG flags)
{
    (void)iface, (void)context, (void)sge, (void)count, (void)flags;
    return ND_DEVICE_REMOVED;
}

static HRESULT STDMETHODCALLTYPE forked_Receive(IND2QueuePair *iface, void *context, const ND2_SGE sge[], ULONG count)
{
    (void)iface, (void)context, (void)sge, (void)count;
    return ND_DEVICE_REMOVED;
}

static void in_child(void)
{
    nd2_qp_vtbl.Send = forked_Send;
    nd2_qp_vtbl.Receive = forked_Receive;
    nd2_qp_vtbl.Read = forked_transfer;
    nd2_qp_vtbl.Write = forked_transfer;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

HRESULT nd2_qp_create(const struct qp_config *config, IND2QueuePair **out)
{
    static pthread_once_t forks = PTHREAD_ONCE_INIT;
    struct nd2_qp *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    pthread_once(&forks, watch_forks);
    status = qp_create(config, &object->qp);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->IND2QueuePair_iface.lpVtbl = &nd2_qp_vtbl;
    object->refcount = 1;
    nd2_object_made();
    *out = &object->IND2QueuePair_iface;
    return ND_SUCCESS;
}

struct nd2_qp *unsafe_impl_from_IND2QueuePair(IUnknown *iface)
{
    if (!iface || ((IND2QueuePair *)iface)->lpVtbl != &nd2_qp_vtbl)
        return NULL;
    return impl_from_IND2QueuePair((IND2QueuePair *)iface);
}
