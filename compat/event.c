/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <stdlib.h>

#include "handle.h"
#include "sleep.h"

static void event_destroy(struct object *object)
{
    free(object);
}

const struct object_ops event_ops = {
    .waitable = true,
    .destroy = event_destroy,
};

struct object *event_create(bool manual, bool set)
{
    struct object *event = malloc(sizeof(*event));

    if (event)
        object_init(event, &event_ops, (manual ? SIGNAL_MANUAL : 0) | (set ? SIGNAL_SET : 0));
    return event;
}

static HANDLE event_open(BOOL manual, BOOL set, const void *name)
{
    struct object *event;
    HANDLE handle;

    if (name) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return NULL;
    }
    event = event_create(manual, set);
    handle = event ? handle_open(event) : NULL;
    if (event)
        object_unref(event);
    if (!handle)
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return handle;
}

HANDLE WINAPI CreateEventW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL initial_state, LPCWSTR name)
{
    (void)security;
    return event_open(manual_reset, initial_state, name);
}

HANDLE WINAPI CreateEventA(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL initial_state, LPCSTR name)
{
    (void)security;
    return event_open(manual_reset, initial_state, name);
}

BOOL WINAPI SetEvent(HANDLE handle)
{
    struct object *event = handle_pin(handle, &event_ops);

    if (!event) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    signal_set(event);
    handle_unpin(handle);
    return TRUE;
}

BOOL WINAPI ResetEvent(HANDLE handle)
{
    struct object *event = handle_pin(handle, &event_ops);

    if (!event) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    signal_reset(event);
    handle_unpin(handle);
    return TRUE;
}

DWORD WINAPI WaitForSingleObject(HANDLE handle, DWORD milliseconds)
{
    struct object *object = handle_pin(handle, NULL);
    bool set;

    if (!object || !object->ops->waitable) {
        if (object)
            handle_unpin(handle);
        SetLastError(ERROR_INVALID_HANDLE);
        return WAIT_FAILED;
    }
    /* A signal that is there costs no look at the clock. */
    set = signal_try(object) || (milliseconds && signal_wait(object, sleep_deadline(milliseconds)));
    handle_unpin(handle);
    return set ? WAIT_OBJECT_0 : WAIT_TIMEOUT;
}

DWORD WINAPI WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL alertable)
{
    (void)alertable;
    return WaitForSingleObject(handle, milliseconds);
}

DWORD WINAPI WaitForMultipleObjects(DWORD count, const HANDLE *handles, BOOL all, DWORD milliseconds)
{
    struct object *objects[MAXIMUM_WAIT_OBJECTS];
    DWORD error = 0, pinned, index = WAIT_FAILED;

    if (!handles || count == 0 || count > MAXIMUM_WAIT_OBJECTS) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return WAIT_FAILED;
    }
    for (pinned = 0; pinned < count && !error; pinned++) {
        objects[pinned] = handle_pin(handles[pinned], NULL);
        if (!objects[pinned]) {
            error = ERROR_INVALID_HANDLE;
            break;
        }
        if (!objects[pinned]->ops->waitable)
            error = ERROR_INVALID_HANDLE;
        for (DWORD i = 0; all && i < pinned; i++) {
            if (objects[i] == objects[pinned])
                error = ERROR_INVALID_PARAMETER;
        }
    }
    if (!error)
        index = signal_wait_multiple(objects, count, all, milliseconds ? sleep_deadline(milliseconds) : 0);
    for (DWORD i = 0; i < pinned; i++)
        handle_unpin(handles[i]);
    if (error) {
        SetLastError(error);
        return WAIT_FAILED;
    }
    return index == UINT32_MAX ? WAIT_TIMEOUT : WAIT_OBJECT_0 + index;
}

DWORD WINAPI WaitForMultipleObjectsEx(DWORD count, const HANDLE *handles, BOOL all, DWORD milliseconds, BOOL alertable)
{
    (void)alertable;
    return WaitForMultipleObjects(count, handles, all, milliseconds);
}
