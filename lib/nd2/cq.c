/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "core/cq_take.h"
#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 6, ndspi.md 5.7. */

static struct nd2_cq *impl_from_IND2CompletionQueue(IND2CompletionQueue *iface)
{
    return (struct nd2_cq *)iface;
}

_Static_assert(sizeof(struct nd2_cq) <= sizeof(struct cq_front) && offsetof(struct cq, front) == 0,
               "one pointer for both");

static struct cq *core_from_IND2CompletionQueue(IND2CompletionQueue *iface)
{
    return nd2_cq_core(impl_from_IND2CompletionQueue(iface));
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_cq_QueryInterface(IND2CompletionQueue *iface, REFIID iid, void **out)
{
    struct nd2_cq *object = impl_from_IND2CompletionQueue(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2CompletionQueue,
                               &IID_IND2Overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_cq_AddRef(IND2CompletionQueue *iface)
{
    return nd2_addref(&impl_from_IND2CompletionQueue(iface)->refcount);
}

/* Queue pairs hold the core queue, so that releasing this object first is legal; nobody can take their results then. */
static ULONG STDMETHODCALLTYPE nd2_cq_Release(IND2CompletionQueue *iface)
{
    struct nd2_cq *object = impl_from_IND2CompletionQueue(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        cq_cancel_notifies(nd2_cq_core(object), ND_CANCELED);
        file_unref(object->file);
        cq_unref(nd2_cq_core(object));
        nd2_object_gone();
    }
    return count;
}

/* IND2Overlapped */

static HRESULT STDMETHODCALLTYPE nd2_cq_CancelOverlappedRequests(IND2CompletionQueue *iface)
{
    log_trace("%p", (void *)iface);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    cq_cancel_notifies(core_from_IND2CompletionQueue(iface), ND_CANCELED);
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd2_cq_GetOverlappedResult(IND2CompletionQueue *iface, OVERLAPPED *overlapped,
                                                            BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd2_overlapped_result(overlapped, wait);
}

/* IND2CompletionQueue */

static HRESULT STDMETHODCALLTYPE nd2_cq_GetNotifyAffinity(IND2CompletionQueue *iface, USHORT *group,
                                                          KAFFINITY *affinity)
{
    log_trace("%p", (void *)iface);
    return nd2_notify_affinity(cq_adapter(core_from_IND2CompletionQueue(iface)), group, affinity);
}

static HRESULT STDMETHODCALLTYPE nd2_cq_Resize(IND2CompletionQueue *iface, ULONG depth)
{
    log_trace("%p: %u", (void *)iface, (unsigned)depth);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return cq_resize(core_from_IND2CompletionQueue(iface), depth);
}

static HRESULT STDMETHODCALLTYPE nd2_cq_Notify(IND2CompletionQueue *iface, ULONG type, OVERLAPPED *overlapped)
{
    struct nd2_cq *object = impl_from_IND2CompletionQueue(iface);

    log_trace("%p: %u %p", (void *)iface, (unsigned)type, (void *)overlapped);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    return cq_notify(nd2_cq_core(object), type, object->file, overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_cq_GetResults(IND2CompletionQueue *iface, ND2_RESULT results[], ULONG count)
{
    return cq_take(core_from_IND2CompletionQueue(iface), results, count);
}

static IND2CompletionQueueVtbl nd2_cq_vtbl = {
    /* IUnknown */
    nd2_cq_QueryInterface,
    nd2_cq_AddRef,
    nd2_cq_Release,
    /* IND2Overlapped */
    nd2_cq_CancelOverlappedRequests,
    nd2_cq_GetOverlappedResult,
    /* IND2CompletionQueue */
    nd2_cq_GetNotifyAffinity,
    nd2_cq_Resize,
    nd2_cq_Notify,
    nd2_cq_GetResults,
};

/* GetResults does not ask whether this is a forked child: there it is replaced. */

static ULONG STDMETHODCALLTYPE forked_GetResults(IND2CompletionQueue *iface, ND2_RESULT results[], ULONG count)
{
    (void)iface, (void)results, (void)count;
    return 0;
}

static void in_child(void)
{
    nd2_cq_vtbl.GetResults = forked_GetResults;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

HRESULT nd2_cq_create(struct adapter *adapter, struct file *file, uint32_t depth, uint16_t group, uint64_t affinity,
                      IND2CompletionQueue **out)
{
    static pthread_once_t forks = PTHREAD_ONCE_INIT;
    struct nd2_cq *object;
    struct cq *cq;
    NTSTATUS status;

    pthread_once(&forks, watch_forks);
    status = cq_create(adapter, depth, group, affinity, &cq);
    if (status != ND_SUCCESS)
        return status;
    object = (struct nd2_cq *)cq;
    object->IND2CompletionQueue_iface.lpVtbl = &nd2_cq_vtbl;
    object->refcount = 1;
    object->file = file_ref(file);
    nd2_object_made();
    *out = &object->IND2CompletionQueue_iface;
    return ND_SUCCESS;
}

struct nd2_cq *unsafe_impl_from_IND2CompletionQueue(IUnknown *iface)
{
    if (!iface || ((IND2CompletionQueue *)iface)->lpVtbl != &nd2_cq_vtbl)
        return NULL;
    return impl_from_IND2CompletionQueue((IND2CompletionQueue *)iface);
}
