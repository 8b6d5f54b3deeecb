/* SPDX-License-Identifier: MIT */
#include "overlapped.h"

#include <ntstatus.h>
#include <stdlib.h>

#include "error.h"
#include "file.h"
#include "handle.h"
#include "wait.h"

/* record.state, a futex word for request_wait_done(). */
enum {
    REQUEST_IDLE,
    REQUEST_PENDING,
    REQUEST_COMPLETING,
    REQUEST_COMPLETING_WAITED, /* somebody sleeps until DONE */
    REQUEST_DONE,
};

/* Spins before request_wait_done() sleeps: delivering takes a few hundred instructions unless it is preempted. */
#define DONE_SPINS 256

struct record {
    struct request request;
    uint32_t state;
    uint32_t refs;
    struct file *file;
    OVERLAPPED *overlapped; /* not touched from COMPLETING on, except by the one that completes */
    struct object *event;   /* NULL: none */
    bool no_packet;         /* low bit of hEvent */
    struct waiter *starter; /* whose request it is for CancelIo() */
    struct list pending;    /* file->pending, under file->lock, from the start until it is delivered */
    uint64_t sequence;
    struct port_node node;
    struct record *next_free;
};

static struct record *record_of(struct request *request)
{
    return (struct record *)request;
}

static struct record *record_take(struct file *file)
{
    struct record *record;

    wordlock_lock(&file->lock);
    record = file->pool;
    if (record)
        file->pool = record->next_free;
    wordlock_unlock(&file->lock);
    return record ? record : malloc(sizeof(*record));
}

void records_free(struct record *pool)
{
    struct record *next;

    for (; pool; pool = next) {
        next = pool->next_free;
        free(pool);
    }
}

static void record_give(struct record *record)
{
    struct file *file = record->file;

    if (record->event)
        object_unref(record->event);
    wordlock_lock(&file->lock);
    record->next_free = file->pool;
    file->pool = record;
    wordlock_unlock(&file->lock);
    file_unref(file);
}

NTSTATUS request_alloc(struct file *file, OVERLAPPED *ov, request_cancel_fn cancel, void *owner, struct request **out)
{
    struct object *event = NULL;
    struct record *record;
    HANDLE handle;

    if (!ov)
        return STATUS_INVALID_PARAMETER;
    handle = ov->hEvent;
    if ((uintptr_t)handle & ~(uintptr_t)3) {
        event = handle_ref(handle, &event_ops);
        if (!event)
            return STATUS_INVALID_HANDLE;
    }
    record = record_take(file);
    if (!record) {
        if (event)
            object_unref(event);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    list_init(&record->request.link);
    record->request.owner = owner;
    record->request.tag = 0;
    record->request.cancel = cancel;
    record->state = REQUEST_IDLE;
    record->refs = 1;
    record->file = file_ref(file);
    record->overlapped = ov;
    record->event = event;
    record->no_packet = (uintptr_t)handle & 1;
    record->starter = NULL;
    list_init(&record->pending);
    list_init(&record->node.link);
    *out = &record->request;
    return STATUS_SUCCESS;
}

void request_discard(struct request *request)
{
    request_unref(request);
}

struct request *request_ref(struct request *request)
{
    __atomic_add_fetch(&record_of(request)->refs, 1, __ATOMIC_RELAXED);
    return request;
}

void request_unref(struct request *request)
{
    struct record *record = record_of(request);

    if (__atomic_sub_fetch(&record->refs, 1, __ATOMIC_ACQ_REL) == 0)
        record_give(record);
}

/* Sequentially consistent: GetOverlappedResult(TRUE) raises the bucket's counter and then reads Internal, a completion
 * stores Internal and then reads the counter. */
static NTSTATUS internal_load(const OVERLAPPED *ov)
{
    return (NTSTATUS)(ULONG)__atomic_load_n(&ov->Internal, __ATOMIC_SEQ_CST);
}

static void internal_store(OVERLAPPED *ov, NTSTATUS status)
{
    __atomic_store_n(&ov->Internal, (ULONG_PTR)(ULONG)status, __ATOMIC_SEQ_CST);
}

void request_start(struct request *request)
{
    struct record *record = record_of(request);
    struct file *file = record->file;
    struct object *signal = record->event ? record->event : &file->object;

    __atomic_store_n(&record->overlapped->InternalHigh, 0, __ATOMIC_RELAXED);
    internal_store(record->overlapped, STATUS_PENDING);
    /* A set left over from a request that finished unwaited would end the next wait early. */
    signal_reset(signal);
    object_interest_add(signal);
    record->starter = waiter_self();
    __atomic_store_n(&record->state, REQUEST_PENDING, __ATOMIC_RELAXED);
    wordlock_lock(&file->lock);
    record->sequence = file->next_sequence++;
    list_add_tail(&file->pending, &record->pending);
    wordlock_unlock(&file->lock);
}

/* GetOverlappedResult(TRUE) parks here, hashed by the address of the structure. */
struct bucket {
    struct wordlock lock;
    uint32_t waiting;
    struct list waiters; /* wait_entry; initialised with the first waiter */
};
#define BUCKET_BITS 8
static struct bucket buckets[1 << BUCKET_BITS];

static struct bucket *bucket_of(const OVERLAPPED *ov)
{
    return &buckets[((uint32_t)((uintptr_t)ov >> 3) * 2654435769u) >> (32 - BUCKET_BITS)];
}

/* The last step of a completion. `ov` is only compared. */
static void bucket_release(const OVERLAPPED *ov)
{
    struct bucket *bucket = bucket_of(ov);

    if (__atomic_load_n(&bucket->waiting, __ATOMIC_SEQ_CST) == 0)
        return;
    wordlock_lock(&bucket->lock);
    if (bucket->waiting) {
        list_for_each_safe (node, &bucket->waiters) {
            struct waiter *waiter = list_entry(node, struct wait_entry, link)->waiter;

            if (waiter->address != ov)
                continue;
            list_del(node);
            __atomic_sub_fetch(&bucket->waiting, 1, __ATOMIC_RELAXED);
            waiter_assign(waiter);
            waiter_wake(waiter);
        }
    }
    wordlock_unlock(&bucket->lock);
}

static void complete(struct request *request, NTSTATUS status, ULONG_PTR bytes, bool returned)
{
    struct record *record = record_of(request);
    struct file *file = record->file;
    OVERLAPPED *ov = record->overlapped;
    struct object *signal = record->event ? record->event : &file->object;
    uint32_t pending = REQUEST_PENDING;
    struct port *port;

    step_point();
    if (!__atomic_compare_exchange_n(&record->state, &pending, REQUEST_COMPLETING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    step_point();
    __atomic_store_n(&ov->InternalHigh, bytes, __ATOMIC_RELAXED);
    internal_store(ov, status);
    /* From here on a poller may have freed *ov. */
    step_point();

    object_interest_drop(signal);
    if (record->event || !(__atomic_load_n(&file->modes, __ATOMIC_RELAXED) & FILE_SKIP_SET_EVENT_ON_HANDLE))
        signal_set(signal);

    /* Consulted now, not at the start: applications bind a port after the request was started. */
    port = record->no_packet ? NULL : __atomic_load_n(&file->port, __ATOMIC_ACQUIRE);
    if (returned && status >= 0 &&
        (__atomic_load_n(&file->modes, __ATOMIC_RELAXED) & FILE_SKIP_COMPLETION_PORT_ON_SUCCESS))
        port = NULL;
    if (port) {
        struct packet packet = { .key = file->key, .overlapped = ov, .status = status, .bytes = (DWORD)bytes };

        port_push_request(port, &packet, &record->node, request);
    }

    step_point();
    if (__atomic_exchange_n(&record->state, REQUEST_DONE, __ATOMIC_ACQ_REL) == REQUEST_COMPLETING_WAITED)
        futex_wake(&record->state, INT32_MAX);
    /* Not before: CancelIoEx() must find what is being delivered, and wait for it. */
    wordlock_lock(&file->lock);
    list_del(&record->pending);
    wordlock_unlock(&file->lock);
    step_point();
    bucket_release(ov);
    request_unref(request);
}

void request_complete(struct request *request, NTSTATUS status, ULONG_PTR bytes)
{
    complete(request, status, bytes, false);
}

void request_complete_returned(struct request *request, NTSTATUS status, ULONG_PTR bytes)
{
    complete(request, status, bytes, true);
}

void request_wait_done(struct request *request)
{
    uint32_t *word = &record_of(request)->state, state;

    for (int i = 0; i < DONE_SPINS; i++) {
        state = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (state != REQUEST_COMPLETING && state != REQUEST_COMPLETING_WAITED)
            return;
        YieldProcessor();
    }
    for (;;) {
        state = REQUEST_COMPLETING;
        __atomic_compare_exchange_n(word, &state, REQUEST_COMPLETING_WAITED, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
        if (state != REQUEST_COMPLETING && state != REQUEST_COMPLETING_WAITED)
            return;
        futex_wait(SLEEP_LOCK, word, REQUEST_COMPLETING_WAITED, SLEEP_FOREVER);
    }
}

/* Parks until a completion of *ov is delivered. False: time is up. */
static bool overlapped_park(const OVERLAPPED *ov, struct waiter *waiter, uint64_t deadline)
{
    struct bucket *bucket = bucket_of(ov);
    bool released;

    waiter_begin(waiter);
    waiter->address = ov;
    waiter->entry.waiter = waiter;
    wordlock_lock(&bucket->lock);
    if (!bucket->waiters.next)
        list_init(&bucket->waiters);
    __atomic_add_fetch(&bucket->waiting, 1, __ATOMIC_SEQ_CST);
    if (internal_load(ov) != STATUS_PENDING) {
        __atomic_sub_fetch(&bucket->waiting, 1, __ATOMIC_RELAXED);
        wordlock_unlock(&bucket->lock);
        return true;
    }
    list_add_tail(&bucket->waiters, &waiter->entry.link);
    wordlock_unlock(&bucket->lock);

    wait_block(waiter, deadline, true);

    if (waiter_signalled(waiter))
        return true;
    wordlock_lock(&bucket->lock);
    released = waiter_signalled(waiter);
    if (!released) {
        list_del(&waiter->entry.link);
        __atomic_sub_fetch(&bucket->waiting, 1, __ATOMIC_RELAXED);
    }
    wordlock_unlock(&bucket->lock);
    return released;
}

/* False: still pending at the deadline. */
static bool overlapped_wait(OVERLAPPED *ov, uint64_t deadline)
{
    struct object *event = NULL;
    bool done = true;

    if (internal_load(ov) != STATUS_PENDING) {
        if (deadline != 0)
            wait_visit();
        return true;
    }
    if (deadline == 0)
        return false;
    if ((uintptr_t)ov->hEvent & ~(uintptr_t)3)
        event = handle_ref(ov->hEvent, &event_ops);
    /* More than once only if the structure was started anew while its last completion was being delivered. */
    while (done && internal_load(ov) == STATUS_PENDING)
        done = overlapped_park(ov, waiter_self(), deadline);
    if (event) {
        /* The wait consumes the signal as a wait on the event would have done; never before the completion set it. */
        if (done && !(__atomic_load_n(&event->word, __ATOMIC_RELAXED) & SIGNAL_MANUAL))
            signal_reset(event);
        object_unref(event);
    }
    return done;
}

NTSTATUS overlapped_result(OVERLAPPED *ov, BOOL wait, ULONG_PTR *bytes)
{
    NTSTATUS status;

    if (!ov)
        return STATUS_INVALID_PARAMETER;
    if (wait)
        overlapped_wait(ov, SLEEP_FOREVER);
    status = internal_load(ov);
    if (bytes)
        *bytes = __atomic_load_n(&ov->InternalHigh, __ATOMIC_RELAXED);
    return status;
}

BOOL WINAPI GetOverlappedResultEx(HANDLE file, LPOVERLAPPED ov, LPDWORD bytes, DWORD milliseconds, BOOL alertable)
{
    NTSTATUS status;

    (void)file;
    (void)alertable;
    if (!ov) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (!overlapped_wait(ov, milliseconds ? sleep_deadline(milliseconds) : 0)) {
        SetLastError(milliseconds ? WAIT_TIMEOUT : ERROR_IO_INCOMPLETE);
        return FALSE;
    }
    status = internal_load(ov);
    if (bytes)
        *bytes = (DWORD)__atomic_load_n(&ov->InternalHigh, __ATOMIC_RELAXED);
    if (status >= 0)
        return TRUE;
    SetLastError(error_from_status(status));
    return FALSE;
}

BOOL WINAPI GetOverlappedResult(HANDLE file, LPOVERLAPPED ov, LPDWORD bytes, BOOL wait)
{
    return GetOverlappedResultEx(file, ov, bytes, wait ? INFINITE : 0, FALSE);
}

/* Cancels what was pending when it was called, in the order of its start; true if there was any. What is started
 * meanwhile has a higher sequence and stays. */
static bool file_cancel(struct file *file, const OVERLAPPED *ov, const struct waiter *starter)
{
    uint64_t cursor = 0, end;
    bool any = false;

    wordlock_lock(&file->lock);
    end = file->next_sequence;
    for (;;) {
        struct record *found = NULL;

        list_for_each (node, &file->pending) {
            struct record *record = list_entry(node, struct record, pending);

            if (record->sequence < cursor || record->sequence >= end || (ov && record->overlapped != ov) ||
                (starter && record->starter != starter))
                continue;
            found = record;
            break;
        }
        if (!found)
            break;
        request_ref(&found->request);
        cursor = found->sequence + 1;
        wordlock_unlock(&file->lock);

        any = true;
        if (found->request.cancel)
            found->request.cancel(&found->request);
        request_wait_done(&found->request);
        request_unref(&found->request);

        wordlock_lock(&file->lock);
    }
    wordlock_unlock(&file->lock);
    return any;
}

BOOL WINAPI CancelIoEx(HANDLE handle, LPOVERLAPPED ov)
{
    struct file *file = file_from_handle(handle);
    bool any;

    if (!file) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    any = file_cancel(file, ov, NULL);
    file_unref(file);
    if (!any)
        SetLastError(ERROR_NOT_FOUND);
    return any;
}

BOOL WINAPI CancelIo(HANDLE handle)
{
    struct file *file = file_from_handle(handle);

    if (!file) {
        SetLastError(ERROR_INVALID_HANDLE);
        return FALSE;
    }
    file_cancel(file, NULL, waiter_self());
    file_unref(file);
    return TRUE;
}
