/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdlib.h>

#include "nd2/nd2.h"

/* Source: ndspi-v2.md section 8, ndspi.md 5.8. Registering and deregistering happen on the calling thread, so the tokens
 * are right when the call returns; only the completion goes through the request, and is delivered before the call returns
 * ND_PENDING. Nothing is ever left for CancelOverlappedRequests or the last Release to complete. */

enum nd2_mr_state {
    ND2_MR_EMPTY,
    ND2_MR_BUSY, /* one call registers or deregisters; no lock is held meanwhile */
    ND2_MR_REGISTERED,
};

struct nd2_mr {
    IND2MemoryRegion IND2MemoryRegion_iface;
    uint32_t refcount;
    struct adapter *adapter;
    struct file *file;
    uint32_t state;       /* enum nd2_mr_state, atomic; who sets BUSY owns the rest */
    pthread_mutex_t lock; /* whoever ends the registration, and Bind, which uses it */
    struct mr *mr;
    uint32_t local_token, remote_token; /* atomic: read by any thread */
};

static struct nd2_mr *impl_from_IND2MemoryRegion(IND2MemoryRegion *iface)
{
    return (struct nd2_mr *)iface;
}

static bool enter(struct nd2_mr *object, uint32_t from)
{
    return __atomic_compare_exchange_n(&object->state, &from, ND2_MR_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void leave(struct nd2_mr *object, uint32_t to)
{
    __atomic_store_n(&object->state, to, __ATOMIC_RELEASE);
}

static void set_tokens(struct nd2_mr *object, uint32_t local, uint32_t remote)
{
    __atomic_store_n(&object->local_token, local, __ATOMIC_RELAXED);
    __atomic_store_n(&object->remote_token, remote, __ATOMIC_RELAXED);
}

/* IUnknown */

static HRESULT STDMETHODCALLTYPE nd2_mr_QueryInterface(IND2MemoryRegion *iface, REFIID iid, void **out)
{
    struct nd2_mr *object = impl_from_IND2MemoryRegion(iface);

    log_trace("%p", (void *)iface);
    return nd2_query_interface((IUnknown *)iface, &object->refcount, iid, out, &IID_IND2MemoryRegion,
                               &IID_IND2Overlapped);
}

static ULONG STDMETHODCALLTYPE nd2_mr_AddRef(IND2MemoryRegion *iface)
{
    return nd2_addref(&impl_from_IND2MemoryRegion(iface)->refcount);
}

static ULONG STDMETHODCALLTYPE nd2_mr_Release(IND2MemoryRegion *iface)
{
    struct nd2_mr *object = impl_from_IND2MemoryRegion(iface);
    ULONG count = nd2_release(&object->refcount);

    log_trace("%p: %u", (void *)iface, (unsigned)count);
    if (count == 0 && !nd2_dead()) {
        if (object->mr) {
            qp_fail_users(object->adapter, object->mr->mr->lkey);
            mr_release(object->mr);
        }
        file_unref(object->file);
        adapter_unref(object->adapter);
        pthread_mutex_destroy(&object->lock);
        free(object);
        nd2_object_gone();
    }
    return count;
}

/* IND2Overlapped */

/* Nothing is ever pending when another call can see it. */
static HRESULT STDMETHODCALLTYPE nd2_mr_CancelOverlappedRequests(IND2MemoryRegion *iface)
{
    log_trace("%p", (void *)iface);
    (void)iface;
    return nd2_dead() ? ND_DEVICE_REMOVED : ND_SUCCESS;
}

static HRESULT STDMETHODCALLTYPE nd2_mr_GetOverlappedResult(IND2MemoryRegion *iface, OVERLAPPED *overlapped, BOOL wait)
{
    log_trace("%p: %p", (void *)iface, (void *)overlapped);
    (void)iface;
    return nd2_overlapped_result(overlapped, wait);
}

/* IND2MemoryRegion */

/* A registration that is under way cannot be cancelled; it completes by itself. */
static void no_cancel(struct request *request)
{
    (void)request;
}

static HRESULT STDMETHODCALLTYPE nd2_mr_Register(IND2MemoryRegion *iface, const void *buffer, SIZE_T length,
                                                 ULONG flags, OVERLAPPED *overlapped)
{
    struct nd2_mr *object = impl_from_IND2MemoryRegion(iface);
    struct request *request;
    NTSTATUS status;
    struct mr *mr;

    log_trace("%p: %p %zu 0x%x", (void *)iface, buffer, (size_t)length, (unsigned)flags);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    if (!enter(object, ND2_MR_EMPTY))
        return ND_INVALID_DEVICE_STATE;
    status = request_alloc(object->file, overlapped, no_cancel, object, &request);
    if (status != ND_SUCCESS) {
        leave(object, ND2_MR_EMPTY);
        return status;
    }
    status = mr_register(object->adapter, buffer, length, flags, &mr);
    if (status != ND_SUCCESS) {
        request_discard(request);
        leave(object, ND2_MR_EMPTY);
        return status;
    }
    set_tokens(object, mr->mr->lkey, htonl(mr->mr->rkey));
    pthread_mutex_lock(&object->lock);
    object->mr = mr;
    pthread_mutex_unlock(&object->lock);
    leave(object, ND2_MR_REGISTERED);
    request_start(request);
    request_complete(request, ND_SUCCESS, 0);
    return ND_PENDING;
}

static HRESULT STDMETHODCALLTYPE nd2_mr_Deregister(IND2MemoryRegion *iface, OVERLAPPED *overlapped)
{
    struct nd2_mr *object = impl_from_IND2MemoryRegion(iface);
    struct request *request;
    NTSTATUS status;

    log_trace("%p", (void *)iface);
    if (nd2_dead())
        return ND_DEVICE_REMOVED;
    if (!enter(object, ND2_MR_REGISTERED))
        return ND_INVALID_DEVICE_STATE;
    status = request_alloc(object->file, overlapped, no_cancel, object, &request);
    if (status != ND_SUCCESS) {
        leave(object, ND2_MR_REGISTERED);
        return status;
    }
    pthread_mutex_lock(&object->lock);
    status = mr_deregister(object->mr);
    if (status == ND_SUCCESS)
        object->mr = NULL;
    pthread_mutex_unlock(&object->lock);
    if (status != ND_SUCCESS) {
        request_discard(request);
        leave(object, ND2_MR_REGISTERED);
        return status;
    }
    set_tokens(object, 0, 0);
    leave(object, ND2_MR_EMPTY);
    request_start(request);
    request_complete(request, ND_SUCCESS, 0);
    return ND_PENDING;
}

static UINT32 STDMETHODCALLTYPE nd2_mr_GetLocalToken(IND2MemoryRegion *iface)
{
    return __atomic_load_n(&impl_from_IND2MemoryRegion(iface)->local_token, __ATOMIC_RELAXED);
}

static UINT32 STDMETHODCALLTYPE nd2_mr_GetRemoteToken(IND2MemoryRegion *iface)
{
    return __atomic_load_n(&impl_from_IND2MemoryRegion(iface)->remote_token, __ATOMIC_RELAXED);
}

static const IND2MemoryRegionVtbl nd2_mr_vtbl = {
    /* IUnknown */
    nd2_mr_QueryInterface,
    nd2_mr_AddRef,
    nd2_mr_Release,
    /* IND2Overlapped */
    nd2_mr_CancelOverlappedRequests,
    nd2_mr_GetOverlappedResult,
    /* IND2MemoryRegion */
    nd2_mr_Register,
    nd2_mr_Deregister,
    nd2_mr_GetLocalToken,
    nd2_mr_GetRemoteToken,
};

HRESULT nd2_mr_create(struct adapter *adapter, struct file *file, IND2MemoryRegion **out)
{
    struct nd2_mr *object = calloc(1, sizeof(*object));

    if (!object)
        return ND_NO_MEMORY;
    object->IND2MemoryRegion_iface.lpVtbl = &nd2_mr_vtbl;
    object->refcount = 1;
    object->adapter = adapter_ref(adapter);
    object->file = file_ref(file);
    pthread_mutex_init(&object->lock, NULL);
    nd2_object_made();
    *out = &object->IND2MemoryRegion_iface;
    return ND_SUCCESS;
}

struct mr *nd2_mr_pin(IUnknown *iface)
{
    struct nd2_mr *object;
    struct mr *mr;

    if (!iface || ((IND2MemoryRegion *)iface)->lpVtbl != &nd2_mr_vtbl)
        return NULL;
    object = impl_from_IND2MemoryRegion((IND2MemoryRegion *)iface);
    pthread_mutex_lock(&object->lock);
    mr = object->mr && mr_pin(object->mr) ? object->mr : NULL;
    pthread_mutex_unlock(&object->lock);
    return mr;
}
