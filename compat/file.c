/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <stdlib.h>

#include "handle.h"

static struct file *file_from_object(struct object *object)
{
    return (struct file *)object;
}

static void file_destroy(struct object *object)
{
    struct file *file = file_from_object(object);

    if (file->port) {
        object_interest_drop(port_object(file->port));
        object_unref(port_object(file->port));
    }
    records_free(file->pool);
    free(file);
}

/* Closing the last handle cancels nothing: objects keep using the file they were created with (win32-surface.md 6.5). */
const struct object_ops file_ops = {
    .waitable = true,
    .destroy = file_destroy,
};

struct file *file_create(void)
{
    struct file *file = calloc(1, sizeof(*file));

    if (!file)
        return NULL;
    object_init(&file->object, &file_ops, SIGNAL_MANUAL);
    list_init(&file->pending);
    return file;
}

struct file *file_ref(struct file *file)
{
    object_ref(&file->object);
    return file;
}

void file_unref(struct file *file)
{
    object_unref(&file->object);
}

HANDLE file_open_handle(struct file *file, UCHAR modes)
{
    __atomic_fetch_or(&file->modes, modes, __ATOMIC_RELAXED);
    return handle_open(&file->object);
}

struct file *file_from_handle(HANDLE handle)
{
    struct object *object = handle_ref(handle, &file_ops);

    return object ? file_from_object(object) : NULL;
}

bool file_bind(struct file *file, struct port *port, ULONG_PTR key)
{
    bool bound = false;

    wordlock_lock(&file->lock);
    if (!file->port) {
        object_ref(port_object(port));
        object_interest_add(port_object(port));
        file->key = key;
        __atomic_store_n(&file->port, port, __ATOMIC_RELEASE);
        bound = true;
    }
    wordlock_unlock(&file->lock);
    return bound;
}

BOOL WINAPI SetFileCompletionNotificationModes(HANDLE handle, UCHAR flags)
{
    struct object *object;

    if (flags & ~(FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE)) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    object = handle_pin(handle, &file_ops);
    if (!object) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    __atomic_fetch_or(&file_from_object(object)->modes, flags, __ATOMIC_RELAXED);
    handle_unpin(handle);
    return TRUE;
}
