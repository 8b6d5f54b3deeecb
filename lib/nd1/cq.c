/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 6, ndspi.md 5.4 and 5.7. */

/* Results that are fetched from core at a time. */
#define RESULTS_AT_ONCE 16

static struct nd1_cq *impl_from_INDCompletionQueue(INDCompletionQueue *iface)
{
    return (struct nd1_cq *)iface;
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd1_cq_QueryInterface(INDCompletionQueue *iface, REFIID iid, void **out)
{
    struct nd1_cq *object = impl_from_INDCompletionQueue(iface);

    log_trace("%p", (void *)iface);
    return com_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_INDCompletionQueue,
                               &IID_INDOverlapped);
}

static ULONG STDMETHODCALLTYPE nd1_cq_AddRef(INDCompletionQueue *iface)
{
    return com_addref(&impl_from_INDCompletionQueue(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd1_cq_Release(INDCompletionQueue *iface)
{
    struct nd1_cq *object = impl_from_INDCompletionQueue(iface);
    ULONG count = com_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !engine_dead()) {
        cq_cancel_notifies(object->cq, ND_CANCELED);
        cq_unref(object->cq);
        nd1_home_unref(object->home);
        free(object);
        module_object_gone();
    }
    return count;
}

/* INDOverlapped */

static HRESULT STDMETHODCALLTYPE nd1_cq_CancelOverlappedRequests(INDCompletionQueue *iface)
{
    log_trace("%p", (void *)iface);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    cq_cancel_notifies(impl_from_INDCompletionQueue(iface)->cq, ND_CANCELED);
    return ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd1_cq_GetOverlappedResult(INDCompletionQueue *iface, OVERLAPPED *overlapped,
                                                            SIZE_T *bytes, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd1_overlapped_result(overlapped, bytes, wait);
}

/* INDCompletionQueue */

static HRESULT STDMETHODCALLTYPE nd1_cq_Resize(INDCompletionQueue *iface, SIZE_T entries)
{
    struct nd1_cq *object = impl_from_INDCompletionQueue(iface);
    NTSTATUS status;

    log_trace("%p: %zu", (void *)iface, (size_t)entries);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (entries > cq_adapter(object->cq)->limits.max_cq_depth)
        return ND_INVALID_PARAMETER;
    status = cq_resize(object->cq, (uint32_t)entries);
    return status == ND_NOT_SUPPORTED ? ND_INSUFFICIENT_RESOURCES : status;
}

static HRESULT STDMETHODCALLTYPE nd1_cq_Notify(INDCompletionQueue *iface, DWORD type, OVERLAPPED *overlapped)
{
    struct nd1_cq *object = impl_from_INDCompletionQueue(iface);

    log_trace("%p: %u %p", (void *)iface, (unsigned)type, (void *)overlapped);
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    return cq_notify(object->cq, type, object->home->file, overlapped);
}

/* The contexts of all requests of a version 1 endpoint are the application's ND_RESULTs. */
static SIZE_T STDMETHODCALLTYPE nd1_cq_GetResults(INDCompletionQueue *iface, ND_RESULT *results[], SIZE_T count)
{
    struct cq *cq = impl_from_INDCompletionQueue(iface)->cq;
    ND2_RESULT taken[RESULTS_AT_ONCE];
    SIZE_T filled = 0;
    uint32_t want, got;

    if (__builtin_expect(cq_forked || !results, 0))
        return 0;
    do {
        want = count - filled < RESULTS_AT_ONCE ? (uint32_t)(count - filled) : RESULTS_AT_ONCE;
        got = cq_get_results(cq, taken, want);
        for (uint32_t i = 0; i < got; i++) {
            ND_RESULT *result = taken[i].RequestContext;

            result->Status = status_v1(taken[i].Status);
            result->BytesTransferred = taken[i].BytesTransferred;
            results[filled++] = result;
        }
    } while (got == RESULTS_AT_ONCE && filled < count);
    return filled;
}

static const INDCompletionQueueVtbl nd1_cq_vtbl = {
    /* IUnknown */
    nd1_cq_QueryInterface,
    nd1_cq_AddRef,
    nd1_cq_Release,
    /* INDOverlapped */
    nd1_cq_CancelOverlappedRequests,
    nd1_cq_GetOverlappedResult,
    /* INDCompletionQueue */
    nd1_cq_Resize,
    nd1_cq_Notify,
    nd1_cq_GetResults,
};

HRESULT nd1_cq_create(struct nd1_home *home, uint32_t depth, INDCompletionQueue **out)
{
    struct nd1_cq *object = calloc(1, sizeof(*object));
    NTSTATUS status;

    if (!object)
        return ND_NO_MEMORY;
    status = cq_create(home->adapter, depth, 0, 0, &object->cq);
    if (status != ND_SUCCESS) {
        free(object);
        return status;
    }
    object->INDCompletionQueue_iface.lpVtbl = &nd1_cq_vtbl;
    object->refcount = 1;
    object->home = nd1_home_ref(home);
    module_object_made();
    *out = &object->INDCompletionQueue_iface;
    return ND_SUCCESS;
}

struct nd1_cq *unsafe_impl_from_INDCompletionQueue(INDCompletionQueue *iface)
{
    return iface && iface->lpVtbl == &nd1_cq_vtbl ? impl_from_INDCompletionQueue(iface) : NULL;
}
