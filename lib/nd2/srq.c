/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 7. */

static struct nd2_srq *impl_from_IND2SharedReceiveQueue(IND2SharedReceiveQueue *iface)
{
    return (struct nd2_srq *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_srq_QueryInterface(IND2SharedReceiveQueue *iface, REFIID iid, void **out)
{
    struct nd2_srq *object = impl_from_IND2SharedReceiveQueue(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2SharedReceiveQueue,
                               &IID_IND2Overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_srq_AddRef(IND2SharedReceiveQueue *iface)
{
    return nd2_addref(&impl_from_IND2SharedReceiveQueue(iface)->refcount);
}

/* Queue pairs hold the core queue and go on taking from it. Receives that nobody took have no completion queue to come back
 * in: they end without a result. */
static ULONG STDMETHODCALLTYPE nd2_srq_Release(IND2SharedReceiveQueue *iface)
{
    struct nd2_srq *object = impl_from_IND2SharedReceiveQueue(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        srq_cancel_notifies(object->srq, ND_CANCELED);
        srq_unref(object->srq);
        file_unref(object->file);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2Overlapped */

static HRESULT STDMETHODCALLTYPE nd2_srq_CancelOverlappedRequests(IND2SharedReceiveQueue *iface)
{
    log_trace("%p", (void *)iface);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    srq_cancel_notifies(impl_from_IND2SharedReceiveQueue(iface)->srq, ND_CANCELED);
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd2_srq_GetOverlappedResult(IND2SharedReceiveQueue *iface, OVERLAPPED *overlapped,
                                                             BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd2_overlapped_result(overlapped, wait);
}

/* IND2SharedReceiveQueue */

static HRESULT STDMETHODCALLTYPE nd2_srq_GetNotifyAffinity(IND2SharedReceiveQueue *iface, USHORT *group,
                                                           KAFFINITY *affinity)
{
    log_trace("%p", (void *)iface);
    return nd2_notify_affinity(srq_adapter(impl_from_IND2SharedReceiveQueue(iface)->srq), group, affinity);
}

static HRESULT STDMETHODCALLTYPE nd2_srq_Modify(IND2SharedReceiveQueue *iface, ULONG depth, ULONG threshold)
{
    log_trace("%p: %u %u", (void *)iface, (unsigned)depth, (unsigned)threshold);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return srq_modify(impl_from_IND2SharedReceiveQueue(iface)->srq, depth ? &depth : NULL,
                      threshold ? &threshold : NULL);
}

static HRESULT STDMETHODCALLTYPE nd2_srq_Notify(IND2SharedReceiveQueue *iface, OVERLAPPED *overlapped)
{
    struct nd2_srq *object = impl_from_IND2SharedReceiveQueue(iface);

    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return srq_notify(object->srq, object->file, overlapped);
}

static HRESULT STDMETHODCALLTYPE nd2_srq_Receive(IND2SharedReceiveQueue *iface, void *context, const ND2_SGE sge[],
                                                 ULONG count)
{
    if (__builtin_expect(cq_forked, 0))
        return ND_DEVICE_REMOVED;
    return srq_receive(impl_from_IND2SharedReceiveQueue(iface)->srq, context, sge, count);
}

static const IND2SharedReceiveQueueVtbl nd2_srq_vtbl = {
    /* IUnknown */
    nd2_srq_QueryInterface,
    nd2_srq_AddRef,
    nd2_srq_Release,
    /* IND2Overlapped */
    nd2_srq_CancelOverlappedRequests,
    nd2_srq_GetOverlappedResult,
    /* IND2SharedReceiveQueue */
    nd2_srq_GetNotifyAffinity,
    nd2_srq_Modify,
    nd2_srq_Notify,
    nd2_srq_Receive,
};

HRESULT nd2_srq_create(const struct srq_config *config, struct file *file, IND2SharedReceiveQueue **out)
{
    struct nd2_srq *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = srq_create(config, &object->srq);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->IND2SharedReceiveQueue_iface.lpVtbl = &nd2_srq_vtbl;
    object->refcount = 1;
    object->file = file_ref(file);
    nd2_object_made();
    *out = &object->IND2SharedReceiveQueue_iface;
    return ND_SUCCESS;
}

struct nd2_srq *unsafe_impl_from_IND2SharedReceiveQueue(IUnknown *iface)
{
    if (!iface || ((IND2SharedReceiveQueue *)iface)->lpVtbl != &nd2_srq_vtbl)
        return NULL;
    return impl_from_IND2SharedReceiveQueue((IND2SharedReceiveQueue *)iface);
}
