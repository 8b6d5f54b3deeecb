/* SPDX-License-Identifier: MIT */

/* Overlapped requests (win32-surface.md 6.4, 6.5, 6.8; ndspi.md 2). */

#include <ntstatus.h>
#include <windows.h>

#include "handle.h"
#include "harness.h"
#include "overlapped.h"
#include "sleep.h"
#include "wordlock.h"

/* Requests of one owner. */
static struct file *file;
static HANDLE file_handle;
static struct wordlock lock;
static struct list pending;
static unsigned cancels;

SETUP
{
    file = file_create();
    file_handle = file_open_handle(file, 0);
    list_init(&pending);
}

TEARDOWN
{
    CloseHandle(file_handle);
    file_unref(file);
    ok_uint(handle_count(), ==, 0);
}

static void cancel(struct request *request)
{
    bool linked;

    ok_ptr(request->owner, ==, &pending);
    wordlock_lock(&lock);
    cancels++;
    linked = list_linked(&request->link);
    list_del(&request->link);
    wordlock_unlock(&lock);
    if (linked)
        request_complete(request, STATUS_CANCELLED, 0);
}

/* An operation that cancelling does not end (a disconnect, a registration). */
static void cancel_ignored(struct request *request)
{
    (void)request;
    cancels++;
}

static struct request *begin(OVERLAPPED *ov, request_cancel_fn cancel_fn)
{
    struct request *request;

    ok_status(request_alloc(file, ov, cancel_fn, &pending, &request), STATUS_SUCCESS);
    request_start(request);
    wordlock_lock(&lock);
    list_add_tail(&pending, &request->link);
    wordlock_unlock(&lock);
    return request;
}

static void end(struct request *request, NTSTATUS status)
{
    wordlock_lock(&lock);
    list_del(&request->link);
    wordlock_unlock(&lock);
    request_complete(request, status, 12);
}

TEST(request__uninitialised_structure)
{
    OVERLAPPED ov;
    ULONG_PTR bytes = 0;
    struct request *request;

    memset(&ov, 0xdd, sizeof(ov));
    ov.hEvent = NULL;
    request = begin(&ov, cancel);
    ok_status(ov.Internal, STATUS_PENDING);
    ok_uint(ov.InternalHigh, ==, 0);
    ok(!HasOverlappedIoCompleted(&ov));
    ok_status(overlapped_result(&ov, FALSE, &bytes), STATUS_PENDING);
    end(request, STATUS_SUCCESS);
    ok(HasOverlappedIoCompleted(&ov));
    ok_status(overlapped_result(&ov, FALSE, &bytes), STATUS_SUCCESS);
    ok_uint(bytes, ==, 12);
    ok_status(overlapped_result(&ov, TRUE, &bytes), STATUS_SUCCESS);
}

TEST(request__alloc_and_discard_touch_nothing)
{
    OVERLAPPED ov, before;
    struct request *request;

    memset(&ov, 0x5a, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, TRUE, TRUE, NULL);
    before = ov;
    ok_status(request_alloc(file, &ov, cancel, NULL, &request), STATUS_SUCCESS);
    ok_mem(&ov, &before, sizeof(ov));
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    ok(!CancelIoEx(file_handle, NULL));
    request_discard(request);
    ok_mem(&ov, &before, sizeof(ov));
    CloseHandle(ov.hEvent);
}

TEST(request__bad_arguments)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    struct request *request;
    OVERLAPPED ov = { 0 };

    ok_status(request_alloc(file, NULL, cancel, NULL, &request), STATUS_INVALID_PARAMETER);
    ov.hEvent = file_handle;
    ok_status(request_alloc(file, &ov, cancel, NULL, &request), STATUS_INVALID_HANDLE);
    ov.hEvent = event;
    CloseHandle(event);
    ok_status(request_alloc(file, &ov, cancel, NULL, &request), STATUS_INVALID_HANDLE);
    ok_status(overlapped_result(NULL, TRUE, NULL), STATUS_INVALID_PARAMETER);
}

TEST(request__event_left_set_is_cleared_at_the_start)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, TRUE, NULL) };
    struct request *request = begin(&ov, cancel);

    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_TIMEOUT);
    end(request, STATUS_SUCCESS);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    CloseHandle(ov.hEvent);
}

TEST(request__event_closed_while_pending)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct request *request = begin(&ov, cancel);

    CloseHandle(ov.hEvent);
    end(request, STATUS_SUCCESS);
    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_SUCCESS);
}

TEST(request__file_handle_closed_while_pending)
{
    struct file *other = file_create();
    HANDLE handle = file_open_handle(other, 0), port = CreateIoCompletionPort(handle, NULL, 8, 0);
    OVERLAPPED ov = { 0 }, *got;
    struct request *request;
    ULONG_PTR key;
    DWORD bytes;

    ok_status(request_alloc(other, &ov, cancel, NULL, &request), STATUS_SUCCESS);
    request_start(request);
    CloseHandle(handle);
    file_unref(other);
    request_complete(request, STATUS_SUCCESS, 0);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
    ok_ptr(got, ==, &ov);
    CloseHandle(port);
}

TEST(complete__only_the_first_counts)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct request *request = request_ref(begin(&ov, cancel));

    end(request, STATUS_SUCCESS);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    request_complete(request, STATUS_CANCELLED, 99);
    ok_status(ov.Internal, STATUS_SUCCESS);
    ok_uint(ov.InternalHigh, ==, 12);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_TIMEOUT);
    request_wait_done(request);
    request_unref(request);
    CloseHandle(ov.hEvent);
}

/* A poller that saw the final status may free the structure at once. */
TEST(complete__structure_freed_by_a_poller)
{
    for (int i = 0; i < 200; i++) {
        OVERLAPPED *ov = calloc(1, sizeof(*ov));

        end(begin(ov, cancel), STATUS_SUCCESS);
        ok_status(overlapped_result(ov, FALSE, NULL), STATUS_SUCCESS);
        free(ov);
    }
}

TEST(result__never_started)
{
    OVERLAPPED ov = { 0 };

    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_SUCCESS);
    ov.hEvent = (HANDLE)1;
    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_SUCCESS);
}

static struct request *to_end;

static DWORD WINAPI end_later(LPVOID arg)
{
    uint64_t parked = (uint64_t)(uintptr_t)arg;

    ok_eventually(sleep_counted(SLEEP_WAIT) > parked);
    end(to_end, STATUS_IO_TIMEOUT);
    return 0;
}

static HANDLE end_when_parked(struct request *request)
{
    to_end = request;
    return CreateThread(NULL, 0, end_later, (LPVOID)(uintptr_t)sleep_counted(SLEEP_WAIT), 0, NULL);
}

static void join(HANDLE thread)
{
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
}

/* tests/lists: A4. */
TEST(result__blocks_without_event)
{
    OVERLAPPED ov = { 0 };
    HANDLE thread = end_when_parked(begin(&ov, cancel));

    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_IO_TIMEOUT);
    join(thread);
}

/* The wait consumes the signal of an auto-reset event, with or without its low bit, and leaves a manual-reset one. */
TEST(result__blocking_consumes_auto_reset)
{
    for (int kind = 0; kind < 3; kind++) {
        HANDLE event = CreateEventW(NULL, kind == 2, FALSE, NULL), thread;
        OVERLAPPED ov = { .hEvent = kind == 1 ? (HANDLE)((uintptr_t)event | 1) : event };

        thread = end_when_parked(begin(&ov, cancel));
        ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_IO_TIMEOUT);
        ok_uint(WaitForSingleObject(event, 0), ==, kind == 2 ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
        join(thread);
        CloseHandle(event);
    }
}

/* Applications share one event between requests: another's signal must not end the wait. */
TEST(result__does_not_wait_on_the_event)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct request *request = begin(&ov, cancel);
    HANDLE thread;

    SetEvent(ov.hEvent);
    thread = end_when_parked(request);
    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_IO_TIMEOUT);
    join(thread);
    CloseHandle(ov.hEvent);
}

TEST(GetOverlappedResult__win32_form)
{
    OVERLAPPED ov = { 0 };
    struct request *request = begin(&ov, cancel);
    DWORD bytes = 0;

    ok(!GetOverlappedResult(file_handle, &ov, &bytes, FALSE));
    ok_uint(GetLastError(), ==, ERROR_IO_INCOMPLETE);
    ok(!GetOverlappedResultEx(file_handle, &ov, &bytes, 0, FALSE));
    ok_uint(GetLastError(), ==, ERROR_IO_INCOMPLETE);
    ok(!GetOverlappedResultEx(file_handle, &ov, &bytes, 3, FALSE));
    ok_uint(GetLastError(), ==, WAIT_TIMEOUT);
    end(request, STATUS_SUCCESS);
    ok_int(GetOverlappedResult(file_handle, &ov, &bytes, TRUE), ==, 1);
    ok_uint(bytes, ==, 12);
    end(begin(&ov, cancel), STATUS_CONNECTION_REFUSED);
    ok_int(GetOverlappedResult(file_handle, &ov, &bytes, TRUE), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_CONNECTION_REFUSED);
}

/* Cancel (D83). */

TEST(CancelIoEx__one_and_all)
{
    OVERLAPPED ov[3] = { 0 }, other = { 0 };

    for (int i = 0; i < 3; i++)
        begin(&ov[i], cancel);
    ok(!CancelIoEx(file_handle, &other));
    ok_uint(GetLastError(), ==, ERROR_NOT_FOUND);
    ok_int(CancelIoEx(file_handle, &ov[1]), ==, 1);
    ok_status(ov[0].Internal, STATUS_PENDING);
    ok_status(ov[1].Internal, STATUS_CANCELLED);
    ok_status(ov[2].Internal, STATUS_PENDING);
    ok_int(CancelIoEx(file_handle, NULL), ==, 1);
    ok_status(ov[0].Internal, STATUS_CANCELLED);
    ok_status(ov[2].Internal, STATUS_CANCELLED);
    ok(!CancelIoEx(file_handle, NULL));
    ok_uint(GetLastError(), ==, ERROR_NOT_FOUND);
    ok_uint(cancels, ==, 3);
}

/* As ndcq does it: the packets are there when the call returns, in the order of the starts. */
TEST(CancelIoEx__packets_are_there_in_order)
{
    HANDLE port = CreateIoCompletionPort(file_handle, NULL, 3, 0);
    OVERLAPPED ov[4] = { 0 }, *got;
    ULONG_PTR key;
    DWORD bytes;

    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 4; i++)
            begin(&ov[i], cancel);
        ok(CancelIoEx(file_handle, NULL));
        for (int i = 0; i < 4; i++) {
            ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
            ok_uint(GetLastError(), ==, ERROR_OPERATION_ABORTED);
            ok_ptr(got, ==, &ov[i]);
        }
    }
    CloseHandle(port);
}

TEST(CancelIoEx__operation_that_goes_on)
{
    OVERLAPPED ov = { 0 };
    struct request *request = begin(&ov, cancel_ignored);

    ok(CancelIoEx(file_handle, NULL));
    ok_uint(cancels, ==, 1);
    ok_status(ov.Internal, STATUS_PENDING);
    end(request, STATUS_SUCCESS);
}

static OVERLAPPED theirs;

static DWORD WINAPI begin_theirs(LPVOID arg)
{
    (void)arg;
    begin(&theirs, cancel);
    return 0;
}

TEST(CancelIo__own_requests_only)
{
    OVERLAPPED ov = { 0 };
    HANDLE thread;

    ok_int(CancelIo(file_handle), ==, 1);
    begin(&ov, cancel);
    thread = CreateThread(NULL, 0, begin_theirs, NULL, 0, NULL);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(CancelIo(file_handle), ==, 1);
    ok_status(ov.Internal, STATUS_CANCELLED);
    ok_status(theirs.Internal, STATUS_PENDING);
    ok(CancelIoEx(file_handle, NULL));
    CloseHandle(thread);
}

/* Records come from the file's pool and go back to it, but not while they are queued at the port. */
TEST(request__pool)
{
    HANDLE port = CreateIoCompletionPort(file_handle, NULL, 3, 0);
    OVERLAPPED ov[16] = { 0 }, *got;
    struct request *requests[16], *again;
    ULONG_PTR key;
    DWORD bytes;

    for (int i = 0; i < 16; i++)
        requests[i] = begin(&ov[i], cancel);
    for (int i = 0; i < 16; i++)
        end(requests[i], STATUS_SUCCESS);
    /* All are queued at the port still. */
    again = begin(&ov[0], cancel);
    for (int i = 0; i < 16; i++)
        ok_ptr(again, !=, requests[i]);
    end(again, STATUS_SUCCESS);
    for (int i = 0; i < 17; i++)
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
    /* Now none is: a new request is one of the old records. */
    struct request *old = again;
    bool reused = false;

    again = begin(&ov[0], cancel);
    for (int i = 0; i < 16; i++)
        reused |= again == requests[i];
    ok(reused || again == old);
    end(again, STATUS_SUCCESS);
    CloseHandle(port);
}
