/* SPDX-License-Identifier: MIT */
#include "file.h"
#include "thread.h"

#include <stdlib.h>

/* BindIoCompletionCallback: one hidden port for all files, whose key is the callback, and a few threads that wait on it.
 * QueueUserWorkItem: packets with key 0. Source: win32-surface.md 6.7. */

/* Callbacks may wait for each other: a thread more whenever none is left, up to what Windows has by default. */
#define THREADS_MAX 500

static struct {
    struct wordlock lock; /* a leaf lock, for everything below */
    struct port *port;
    uint32_t threads;
    uint32_t inside; /* threads that run a callback */
} pool;

static void *pool_main(void *arg);

/* Starts a thread if none is left to wait for the next packet. */
static bool pool_grow(bool first)
{
    bool grow;

    wordlock_lock(&pool.lock);
    grow = first ? pool.threads == 0 : pool.inside == pool.threads && pool.threads < THREADS_MAX;
    pool.threads += grow;
    wordlock_unlock(&pool.lock);
    if (!grow)
        return true;
    if (thread_start_callbacks(pool_main, NULL))
        return true;
    wordlock_lock(&pool.lock);
    pool.threads--;
    wordlock_unlock(&pool.lock);
    return false;
}

static void pool_inside(int change)
{
    wordlock_lock(&pool.lock);
    pool.inside += (uint32_t)change;
    wordlock_unlock(&pool.lock);
}

struct work {
    LPTHREAD_START_ROUTINE function;
    PVOID parameter;
};

static void packet_run(const struct packet *packet)
{
    LPOVERLAPPED_COMPLETION_ROUTINE callback = (LPOVERLAPPED_COMPLETION_ROUTINE)packet->key;
    struct work *item, work;

    if (callback) {
        /* The status itself, not a Win32 error: applications compare it with ND values (ndspi.md 2.2). */
        callback((DWORD)packet->status, packet->bytes, packet->overlapped);
        return;
    }
    item = (struct work *)packet->overlapped;
    work = *item;
    free(item);
    work.function(work.parameter);
}

static void *pool_main(void *arg)
{
    struct packet packet;
    bool closed;

    while (port_get(pool.port, &packet, 1, SLEEP_FOREVER, &closed)) {
        pool_inside(1);
        pool_grow(false);
        packet_run(&packet);
        pool_inside(-1);
    }
    return arg;
}

static struct port *pool_port(void)
{
    struct port *port, *made = NULL;

    wordlock_lock(&pool.lock);
    port = pool.port;
    wordlock_unlock(&pool.lock);
    if (port)
        return port;
    made = port_create();
    wordlock_lock(&pool.lock);
    if (!pool.port) {
        pool.port = made;
        made = NULL;
    }
    port = pool.port;
    wordlock_unlock(&pool.lock);
    if (made)
        object_unref(port_object(made));
    return port;
}

BOOL WINAPI BindIoCompletionCallback(HANDLE handle, LPOVERLAPPED_COMPLETION_ROUTINE function, ULONG flags)
{
    struct file *file;
    struct port *port;
    DWORD error = 0;

    (void)flags;
    if (!function) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    file = file_from_handle(handle);
    if (!file) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    port = pool_port();
    if (!port || !pool_grow(true))
        error = ERROR_NOT_ENOUGH_MEMORY;
    else if (!file_bind(file, port, (ULONG_PTR)function))
        error = ERROR_INVALID_PARAMETER;
    file_unref(file);
    if (error) {
        SetLastError(error);
        return FALSE;
    }
    return TRUE;
}

BOOL WINAPI QueueUserWorkItem(LPTHREAD_START_ROUTINE function, PVOID parameter, ULONG flags)
{
    struct packet packet = { 0 };
    struct work *work;
    struct port *port;

    (void)flags;
    if (!function) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    port = pool_port();
    work = malloc(sizeof(*work));
    if (!port || !work || !pool_grow(true))
        goto err_memory;
    *work = (struct work){ function, parameter };
    packet.overlapped = (OVERLAPPED *)work;
    if (!port_post(port, &packet))
        goto err_memory;
    return TRUE;

err_memory:
    free(work);
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return FALSE;
}
