/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <string.h>

void wv_object_init(struct wv_object *object, void (*destroy)(struct wv_object *object))
{
    object->refcount = 1;
    object->internal = 1;
    object->destroy = destroy;
    module_object_made();
}

/* From 0: by a pointer that a child has lent, as Windows allows. */
ULONG wv_object_addref(struct wv_object *object)
{
    ULONG count = __atomic_add_fetch(&object->refcount, 1, __ATOMIC_RELAXED);

    if (count == 1)
        wv_object_pin(object);
    return count;
}

ULONG wv_object_release(struct wv_object *object)
{
    ULONG count = __atomic_sub_fetch(&object->refcount, 1, __ATOMIC_ACQ_REL);

    if (count == 0)
        wv_object_unpin(object);
    return count;
}

void wv_object_pin(struct wv_object *object)
{
    __atomic_add_fetch(&object->internal, 1, __ATOMIC_RELAXED);
}

void wv_object_unpin(struct wv_object *object)
{
    if (__atomic_sub_fetch(&object->internal, 1, __ATOMIC_ACQ_REL) != 0 || wv_dead())
        return;
    object->destroy(object);
    module_object_gone();
}

HRESULT wv_query_interface(void *iface, struct wv_object *object, REFIID iid, void **out, const GUID *own,
                           const GUID *base, const GUID *root)
{
    if (!out)
        return E_POINTER;
    if (!iid || !(IsEqualGUID(iid, own) || IsEqualGUID(iid, &IID_IUnknown) || (base && IsEqualGUID(iid, base)) ||
                  (root && IsEqualGUID(iid, root)))) {
        *out = NULL;
        return E_NOINTERFACE;
    }
    wv_object_addref(object);
    *out = iface;
    return WV_SUCCESS;
}

/* ---- overlapped calls ---- */

HRESULT wv_wait_begin(struct wv_wait *wait, OVERLAPPED **overlapped)
{
    HANDLE event;

    wait->used = !*overlapped;
    if (*overlapped)
        return WV_SUCCESS;
    /* An event of its own, so that nobody who waits on the file's handle is disturbed; the low bit keeps the port out. */
    event = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!event)
        return WV_INSUFFICIENT_RESOURCES;
    memset(&wait->overlapped, 0, sizeof(wait->overlapped));
    wait->overlapped.hEvent = (HANDLE)((ULONG_PTR)event | 1);
    *overlapped = &wait->overlapped;
    return WV_SUCCESS;
}

HRESULT wv_wait_end(struct wv_wait *wait, HRESULT hr)
{
    if (!wait->used)
        return hr;
    if (hr == WV_IO_PENDING)
        hr = overlapped_result(&wait->overlapped, TRUE, NULL);
    CloseHandle((HANDLE)((ULONG_PTR)wait->overlapped.hEvent & ~(ULONG_PTR)1));
    return SUCCEEDED(hr) ? WV_SUCCESS : hr;
}

static void no_cancel(struct request *request)
{
    (void)request; /* never pending when another call can see it */
}

HRESULT wv_inline_begin(struct wv_inline *now, struct wv_provider *provider, OVERLAPPED *overlapped)
{
    now->request = NULL;
    return overlapped ? request_alloc(provider->file, overlapped, no_cancel, provider, &now->request) : WV_SUCCESS;
}

HRESULT wv_inline_end(struct wv_inline *now, HRESULT hr, ULONG_PTR bytes)
{
    if (!now->request)
        return hr;
    if (FAILED(hr)) {
        request_discard(now->request);
        return hr;
    }
    request_start(now->request);
    request_complete_returned(now->request, hr, bytes);
    return hr;
}

HRESULT wv_overlapped_result(OVERLAPPED *overlapped, DWORD *bytes, BOOL wait)
{
    ULONG_PTR transferred;
    HRESULT hr;

    if (!overlapped)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    hr = overlapped_result(overlapped, wait, &transferred);
    if (bytes && hr != WV_PENDING)
        *bytes = (DWORD)transferred;
    return hr;
}
