/* SPDX-License-Identifier: MIT */

/* Completion ports (win32-surface.md 6.6, 6.7). */

#include <ntstatus.h>
#include <windows.h>

#include "handle.h"
#include "harness.h"
#include "overlapped.h"
#include "sleep.h"

static struct file *file;
static HANDLE file_handle, port;

SETUP
{
    file = file_create();
    file_handle = file_open_handle(file, 0);
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
}

TEARDOWN
{
    CloseHandle(file_handle);
    file_unref(file);
    CloseHandle(port);
    ok_uint(handle_count(), ==, 0);
}

static struct request *start(OVERLAPPED *ov)
{
    struct request *request;

    ok_status(request_alloc(file, ov, NULL, NULL, &request), STATUS_SUCCESS);
    request_start(request);
    return request;
}

#define UNTOUCHED_BYTES 0x11111111u
#define UNTOUCHED_KEY   ((ULONG_PTR)0x22222222u)
#define GARBAGE         ((OVERLAPPED *)0x10)

static struct got {
    BOOL result;
    DWORD bytes, error;
    ULONG_PTR key;
    OVERLAPPED *ov;
} got;

#define ERROR_BEFORE 0xabcd

static void get(HANDLE from, DWORD ms)
{
    got = (struct got){ 0, UNTOUCHED_BYTES, 0, UNTOUCHED_KEY, GARBAGE };
    SetLastError(ERROR_BEFORE);
    got.result = GetQueuedCompletionStatus(from, &got.bytes, &got.key, &got.ov, ms);
    got.error = GetLastError();
}

static void ok_got(BOOL result, OVERLAPPED *ov, DWORD bytes, ULONG_PTR key, DWORD error)
{
    ok_int(got.result, ==, result);
    ok_ptr(got.ov, ==, ov);
    ok_uint(got.bytes, ==, bytes);
    ok_uint(got.key, ==, key);
    ok_uint(got.error, ==, error);
}

/* The result table, row by row. */

TEST(GetQueuedCompletionStatus__success)
{
    OVERLAPPED ov = { 0 };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_SUCCESS, 9);
    get(port, 0);
    ok_got(TRUE, &ov, 9, 42, ERROR_BEFORE);
}

/* Success severity is success, also when it is no plain 0. */
TEST(GetQueuedCompletionStatus__success_severity)
{
    OVERLAPPED ov = { 0 };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_TIMEOUT, 0);
    get(port, INFINITE);
    ok_got(TRUE, &ov, 0, 42, ERROR_BEFORE);
}

TEST(GetQueuedCompletionStatus__posted_null)
{
    ok(PostQueuedCompletionStatus(port, 1, 2, NULL));
    get(port, 0);
    ok_got(TRUE, NULL, 1, 2, ERROR_BEFORE);
}

TEST(GetQueuedCompletionStatus__failed_request)
{
    static const struct {
        NTSTATUS status;
        DWORD error;
    } rows[] = {
        { STATUS_CANCELLED, ERROR_OPERATION_ABORTED },   { STATUS_CONNECTION_REFUSED, ERROR_CONNECTION_REFUSED },
        { STATUS_IO_TIMEOUT, ERROR_SEM_TIMEOUT },        { STATUS_BUFFER_OVERFLOW, ERROR_MORE_DATA },
        { STATUS_DEVICE_REMOVED, ERROR_DEVICE_REMOVED }, { (NTSTATUS)0xc0ffee00, ERROR_MR_MID_NOT_FOUND },
    };
    OVERLAPPED ov = { 0 };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        request_complete(start(&ov), rows[i].status, 3);
        get(port, 0);
        ok_got(FALSE, &ov, 3, 42, rows[i].error);
    }
}

TEST(GetQueuedCompletionStatus__time_out)
{
    get(port, 0);
    ok_got(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY, WAIT_TIMEOUT);
    uint64_t start_time = sleep_now();
    get(port, 3);
    ok_got(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY, WAIT_TIMEOUT);
    ok_uint(sleep_now() - start_time, >=, 3000000);
}

TEST(GetQueuedCompletionStatus__bad_handle)
{
    get(NULL, 0);
    ok_got(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY, ERROR_INVALID_HANDLE);
    get(file_handle, INFINITE);
    ok_got(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY, ERROR_INVALID_HANDLE);
}

static uint32_t closed_right;

static DWORD WINAPI wait_until_closed(LPVOID arg)
{
    OVERLAPPED *ov = GARBAGE;
    DWORD bytes = UNTOUCHED_BYTES;
    ULONG_PTR key = UNTOUCHED_KEY;

    (void)arg;
    if (!GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE) && GetLastError() == ERROR_ABANDONED_WAIT_0 &&
        !ov && bytes == UNTOUCHED_BYTES && key == UNTOUCHED_KEY)
        __atomic_add_fetch(&closed_right, 1, __ATOMIC_RELAXED);
    return 0;
}

/* tests/lists: D83. */
TEST(GetQueuedCompletionStatus__closed_while_waiting)
{
    uint64_t parked = sleep_counted(SLEEP_WAIT);
    HANDLE threads[3];

    for (int i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, wait_until_closed, NULL, 0, NULL);
    ok_eventually(sleep_counted(SLEEP_WAIT) >= parked + 3);
    ok(CloseHandle(port));
    ok_uint(WaitForMultipleObjects(3, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(closed_right, ==, 3);
    for (int i = 0; i < 3; i++)
        CloseHandle(threads[i]);
    ok(!PostQueuedCompletionStatus(port, 0, 0, NULL));
}

/* Packets and requests of a port that is closed with them are given back, later ones dropped. */
TEST(CloseHandle__port_with_packets)
{
    OVERLAPPED ov = { 0 }, later = { 0 };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_SUCCESS, 0);
    PostQueuedCompletionStatus(port, 0, 0, NULL);
    ok(CloseHandle(port));
    request_complete(start(&later), STATUS_SUCCESS, 0);
    ok_status(overlapped_result(&later, FALSE, NULL), STATUS_SUCCESS);
}

TEST(CreateIoCompletionPort__forms)
{
    struct file *second = file_create();
    HANDLE second_handle = file_open_handle(second, 0), other;

    ok_ptr(CreateIoCompletionPort(file_handle, port, 1, (DWORD)-1), ==, port);
    ok_ptr(CreateIoCompletionPort(file_handle, port, 1, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_ptr(CreateIoCompletionPort(file_handle, NULL, 1, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    other = CreateIoCompletionPort(second_handle, NULL, 2, 7);
    ok_ptr(other, !=, NULL);
    ok_ptr(other, !=, INVALID_HANDLE_VALUE);
    ok_ptr(CreateIoCompletionPort(second_handle, other, 2, 7), ==, NULL);
    ok_ptr(CreateIoCompletionPort(NULL, port, 2, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_ptr(CreateIoCompletionPort(other, port, 2, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_ptr(CreateIoCompletionPort(file_handle, file_handle, 2, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_ptr(CreateIoCompletionPort(INVALID_HANDLE_VALUE, port, 2, 0), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    CloseHandle(other);
    CloseHandle(second_handle);
    file_unref(second);
}

TEST(CreateIoCompletionPort__after_the_request_started)
{
    OVERLAPPED ov = { 0 };
    struct request *request = start(&ov);

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(request, STATUS_SUCCESS, 0);
    get(port, 0);
    ok_got(TRUE, &ov, 0, 42, ERROR_BEFORE);
}

TEST(packet__low_bit_of_the_event_suppresses_it)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = (HANDLE)((uintptr_t)event | 1) };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_SUCCESS, 0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    get(port, 0);
    ok_got(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY, WAIT_TIMEOUT);
    /* Applications close it with the bit still set. */
    ok(CloseHandle(ov.hEvent));
}

TEST(packet__event_and_packet_together)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_SUCCESS, 0);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    get(port, 0);
    ok_got(TRUE, &ov, 0, 42, ERROR_BEFORE);
    CloseHandle(ov.hEvent);
}

/* A call that returned pending always queues: the skip mode is about calls that returned success. */
TEST(packet__skip_mode_does_not_concern_pending)
{
    OVERLAPPED ov = { 0 };

    ok(SetFileCompletionNotificationModes(file_handle,
                                          FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE));
    ok(!SetFileCompletionNotificationModes(file_handle, 0x80));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov), STATUS_SUCCESS, 0);
    get(port, 0);
    ok_got(TRUE, &ov, 0, 42, ERROR_BEFORE);
    /* And the file itself is not set. */
    ok_uint(WaitForSingleObject(file_handle, 0), ==, WAIT_TIMEOUT);
}

TEST(file__is_set_by_requests_without_event)
{
    OVERLAPPED ov = { 0 };
    struct request *request = start(&ov);

    ok_uint(WaitForSingleObject(file_handle, 0), ==, WAIT_TIMEOUT);
    request_complete(request, STATUS_SUCCESS, 0);
    ok_uint(WaitForSingleObject(file_handle, 0), ==, WAIT_OBJECT_0);
    request = start(&ov);
    ok_uint(WaitForSingleObject(file_handle, 0), ==, WAIT_TIMEOUT);
    request_complete(request, STATUS_SUCCESS, 0);
}

/* Status and bytes come from the request: the application may have written, or freed, the structure. */
TEST(packet__independent_of_the_structure)
{
    OVERLAPPED *ov = calloc(1, sizeof(*ov));
    volatile uintptr_t address = (uintptr_t)ov;

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(ov), STATUS_CANCELLED, 6);
    free(ov);
    get(port, 0);
    ok_got(FALSE, (OVERLAPPED *)address, 6, 42, ERROR_OPERATION_ABORTED);
    /* A posted packet reports success whatever Internal says. */
    ov = calloc(1, sizeof(*ov));
    ov->Internal = (ULONG_PTR)(ULONG)STATUS_CANCELLED;
    PostQueuedCompletionStatus(port, 6, 7, ov);
    get(port, 0);
    ok_got(TRUE, ov, 6, 7, ERROR_BEFORE);
    free(ov);
}

TEST(port__first_in_first_out)
{
    OVERLAPPED ov[8];

    CreateIoCompletionPort(file_handle, port, 42, 0);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 8; i += 2) {
            ov[i].hEvent = NULL;
            request_complete(start(&ov[i]), STATUS_SUCCESS, i);
            PostQueuedCompletionStatus(port, i + 1, 42, &ov[i + 1]);
        }
        for (unsigned i = 0; i < 8; i++) {
            get(port, 0);
            ok_got(TRUE, &ov[i], i, 42, ERROR_BEFORE);
        }
    }
}

static uint32_t turn[2];

static DWORD WINAPI wait_in_turn(LPVOID arg)
{
    OVERLAPPED *ov;
    ULONG_PTR key;
    DWORD bytes;

    if (GetQueuedCompletionStatus(port, &bytes, &key, &ov, INFINITE))
        turn[key] = (uint32_t)(uintptr_t)arg;
    return 0;
}

/* tests/lists: D84. */
TEST(port__newest_waiter_first)
{
    HANDLE threads[2];

    for (uintptr_t i = 0; i < 2; i++) {
        uint64_t parked = sleep_counted(SLEEP_WAIT);

        threads[i] = CreateThread(NULL, 0, wait_in_turn, (LPVOID)(i + 1), 0, NULL);
        ok_eventually(sleep_counted(SLEEP_WAIT) > parked);
    }
    PostQueuedCompletionStatus(port, 0, 0, NULL);
    PostQueuedCompletionStatus(port, 0, 1, NULL);
    ok_uint(WaitForMultipleObjects(2, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(turn[0], ==, 2);
    ok_uint(turn[1], ==, 1);
    CloseHandle(threads[0]);
    CloseHandle(threads[1]);
}

/* tests/lists: D83. */
TEST(GetQueuedCompletionStatusEx__batches)
{
    OVERLAPPED_ENTRY entries[40];
    OVERLAPPED ov[2] = { 0 };
    ULONG removed = 99;

    ok(!GetQueuedCompletionStatusEx(port, entries, 40, &removed, 0, FALSE));
    ok_uint(GetLastError(), ==, WAIT_TIMEOUT);
    ok_uint(removed, ==, 0);
    ok(!GetQueuedCompletionStatusEx(port, entries, 40, &removed, 2, TRUE));
    ok_uint(GetLastError(), ==, WAIT_TIMEOUT);
    ok(!GetQueuedCompletionStatusEx(port, entries, 0, &removed, 0, FALSE));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok(!GetQueuedCompletionStatusEx(NULL, entries, 1, &removed, 0, FALSE));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);

    CreateIoCompletionPort(file_handle, port, 42, 0);
    request_complete(start(&ov[0]), STATUS_CANCELLED, 4);
    for (ULONG i = 1; i < 50; i++)
        PostQueuedCompletionStatus(port, i, i, &ov[1]);
    SetLastError(ERROR_BEFORE);
    /* TRUE also if requests failed. */
    ok_int(GetQueuedCompletionStatusEx(port, entries, 40, &removed, INFINITE, FALSE), ==, 1);
    ok_uint(GetLastError(), ==, ERROR_BEFORE);
    ok_uint(removed, ==, 40);
    ok_ptr(entries[0].lpOverlapped, ==, &ov[0]);
    ok_status(entries[0].Internal, STATUS_CANCELLED);
    ok_uint(entries[0].lpCompletionKey, ==, 42);
    ok_uint(entries[0].dwNumberOfBytesTransferred, ==, 4);
    for (ULONG i = 1; i < 40; i++)
        ok_uint(entries[i].lpCompletionKey, ==, i);
    ok(GetQueuedCompletionStatusEx(port, entries, 40, &removed, INFINITE, FALSE));
    ok_uint(removed, ==, 10);
    ok_uint(entries[9].lpCompletionKey, ==, 49);
}

TEST(port__post_and_get_never_sleep)
{
    uint64_t sleeps = sleep_counted_here(SLEEP_WAIT) + sleep_counted_here(SLEEP_LOCK);

    for (int i = 0; i < 1000; i++) {
        PostQueuedCompletionStatus(port, 0, 0, NULL);
        get(port, INFINITE);
        ok(got.result);
    }
    ok_uint(sleep_counted_here(SLEEP_WAIT) + sleep_counted_here(SLEEP_LOCK), ==, sleeps);
}

/* Callbacks. */

static struct {
    DWORD error, bytes, thread;
    OVERLAPPED *ov;
    uint32_t count;
} called;
static HANDLE callback_event;

static VOID WINAPI callback(DWORD error, DWORD bytes, LPOVERLAPPED ov)
{
    called.error = error;
    called.bytes = bytes;
    called.thread = GetCurrentThreadId();
    called.ov = ov;
    __atomic_add_fetch(&called.count, 1, __ATOMIC_RELEASE);
}

/* The first waits for what only the second does. */
static VOID WINAPI callback_in_pairs(DWORD error, DWORD bytes, LPOVERLAPPED ov)
{
    (void)error;
    (void)ov;
    if (bytes)
        SetEvent(callback_event);
    else
        WaitForSingleObject(callback_event, INFINITE);
    __atomic_add_fetch(&called.count, 1, __ATOMIC_RELEASE);
}

TEST(BindIoCompletionCallback__gets_the_status)
{
    OVERLAPPED ov = { 0 };

    ok_int(BindIoCompletionCallback(file_handle, callback, 0), ==, 1);
    ok(!BindIoCompletionCallback(file_handle, callback, 0));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok(!BindIoCompletionCallback(port, callback, 0));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok(!CreateIoCompletionPort(file_handle, port, 0, 0));
    request_complete(start(&ov), STATUS_CANCELLED, 5);
    ok_eventually(__atomic_load_n(&called.count, __ATOMIC_ACQUIRE) == 1);
    ok_status(called.error, STATUS_CANCELLED);
    ok_uint(called.bytes, ==, 5);
    ok_ptr(called.ov, ==, &ov);
    ok_uint(called.thread, !=, GetCurrentThreadId());
}

TEST(BindIoCompletionCallback__callbacks_may_wait_for_each_other)
{
    OVERLAPPED ov[2] = { 0 };

    callback_event = CreateEventW(NULL, FALSE, FALSE, NULL);
    ok(BindIoCompletionCallback(file_handle, callback_in_pairs, 0));
    request_complete(start(&ov[0]), STATUS_SUCCESS, 0);
    request_complete(start(&ov[1]), STATUS_SUCCESS, 1);
    ok_eventually(__atomic_load_n(&called.count, __ATOMIC_ACQUIRE) == 2);
    CloseHandle(callback_event);
}
