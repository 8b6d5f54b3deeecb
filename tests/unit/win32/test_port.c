/* SPDX-License-Identifier: MIT */

/* Completion ports: win32-surface.md 6.4, 6.6, 6.7. */

#include <windows.h>

#include <stdlib.h>

#include "file.h"
#include "harness.h"

static struct test_file *file;
static HANDLE port;

SETUP
{
    file = test_file_open();
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    ok(port != NULL);
}

TEARDOWN
{
    test_file_close(file);
    CloseHandle(port);
}

#define UNTOUCHED_BYTES 0x11111111u
#define UNTOUCHED_KEY   ((ULONG_PTR)0x22222222u)
#define GARBAGE         ((OVERLAPPED *)0x10)
#define ERROR_BEFORE    0xabcd

static BOOL result;
static DWORD bytes, error;
static ULONG_PTR key;
static OVERLAPPED *ov;

static void get(HANDLE from, DWORD ms)
{
    bytes = UNTOUCHED_BYTES;
    key = UNTOUCHED_KEY;
    ov = GARBAGE;
    SetLastError(ERROR_BEFORE);
    result = GetQueuedCompletionStatus(from, &bytes, &key, &ov, ms);
    error = GetLastError();
}

static void ok_packet(BOOL wanted, OVERLAPPED *wanted_ov, DWORD wanted_bytes, ULONG_PTR wanted_key)
{
    ok_int(result, ==, wanted);
    ok(ov == wanted_ov);
    ok_uint(bytes, ==, wanted_bytes);
    ok_uint(key, ==, wanted_key);
}

static void ok_nothing(DWORD wanted_error)
{
    ok_packet(FALSE, NULL, UNTOUCHED_BYTES, UNTOUCHED_KEY);
    ok_uint(error, ==, wanted_error);
}

static void bind_file(ULONG_PTR with)
{
    ok(CreateIoCompletionPort(test_file_handle(file), port, with, 0) == port);
}

/* The result table, row by row. */

TEST(row__success)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    bind_file(42);
    test_file_start(file, &one);
    test_file_finish(file, 9);
    get(port, INFINITE);
    ok_packet(TRUE, &one, 9, 42);
    ok_uint(error, ==, ERROR_BEFORE);
}

TEST(row__posted_without_a_structure)
{
    ok_int(PostQueuedCompletionStatus(port, 7, 8, NULL), ==, TRUE);
    get(port, 0);
    ok_packet(TRUE, NULL, 7, 8);
    ok_uint(error, ==, ERROR_BEFORE);
}

TEST(row__failed_request)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    bind_file(42);
    test_file_start(file, &one);
    ok(CancelIoEx(test_file_handle(file), &one));
    get(port, INFINITE);
    ok_packet(FALSE, &one, 0, 42);
    ok_uint(error, ==, ERROR_OPERATION_ABORTED);
}

TEST(row__time_out)
{
    get(port, 0);
    ok_nothing(WAIT_TIMEOUT);
    get(port, 5);
    ok_nothing(WAIT_TIMEOUT);
}

TEST(row__bad_handle)
{
    HANDLE closed = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);

    CloseHandle(closed);
    get(closed, INFINITE);
    ok_nothing(ERROR_INVALID_HANDLE);
    get(NULL, INFINITE);
    ok_nothing(ERROR_INVALID_HANDLE);
    ok(!PostQueuedCompletionStatus(closed, 0, 0, NULL));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

TEST(create__forms)
{
    struct test_file *second = test_file_open();
    HANDLE other;

    bind_file(1);
    /* Once only. */
    ok(CreateIoCompletionPort(test_file_handle(file), port, 1, 0) == NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    /* Makes and binds. */
    other = CreateIoCompletionPort(test_file_handle(second), NULL, 2, 7);
    ok(other != NULL && other != INVALID_HANDLE_VALUE && other != port);
    ok(CreateIoCompletionPort(test_file_handle(second), port, 2, 0) == NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    /* Bad handles. */
    ok(CreateIoCompletionPort(NULL, port, 2, 0) == NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    test_file_close(second);
    CloseHandle(other);
    /* Any concurrency. */
    other = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, (DWORD)-1);
    ok(other != NULL);
    CloseHandle(other);
}

TEST(bind__of_a_file_whose_request_runs_already)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    test_file_start(file, &one);
    bind_file(5);
    test_file_finish(file, 1);
    get(port, INFINITE);
    ok_packet(TRUE, &one, 1, 5);
}

/* Also a request that succeeds before the call returns queues its packet. */
TEST(packet__of_a_request_that_succeeds_at_once)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    bind_file(5);
    for (DWORD i = 1; i < 10; i++) {
        test_file_start_done(file, &one, i);
        get(port, INFINITE);
        ok_packet(TRUE, &one, i, 5);
    }
    get(port, 0);
    ok_nothing(WAIT_TIMEOUT);
}

/* The skip mode is about calls that returned success: one that returned pending queues all the same. */
TEST(packet__skip_mode)
{
    OVERLAPPED one, two;

    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    bind_file(5);
    ok_int(SetFileCompletionNotificationModes(test_file_handle(file), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS), ==, TRUE);
    test_file_start(file, &one);
    test_file_finish(file, 1);
    get(port, INFINITE);
    ok_packet(TRUE, &one, 1, 5);
    test_file_start_done(file, &two, 2);
    ok(HasOverlappedIoCompleted(&two) && two.InternalHigh == 2);
    get(port, 0);
    ok_nothing(WAIT_TIMEOUT);
    ok(!SetFileCompletionNotificationModes(NULL, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

TEST(packet__and_event)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    one.hEvent = CreateEventW(NULL, FALSE, FALSE, NULL);
    bind_file(5);
    test_file_start(file, &one);
    test_file_finish(file, 1);
    get(port, INFINITE);
    ok_packet(TRUE, &one, 1, 5);
    ok_uint(WaitForSingleObject(one.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(one.hEvent);
}

TEST(packet__suppressed_by_the_low_bit)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    one.hEvent = (HANDLE)((uintptr_t)CreateEventW(NULL, FALSE, FALSE, NULL) | 1);
    bind_file(5);
    test_file_start(file, &one);
    test_file_finish(file, 1);
    ok_uint(WaitForSingleObject(one.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    get(port, 0);
    ok_nothing(WAIT_TIMEOUT);
    ok(CloseHandle(one.hEvent));
}

/* Status of a posted packet: success, whatever the structure says, which is passed through unread. */
TEST(post__passes_through)
{
    OVERLAPPED one;

    memset(&one, 0xff, sizeof(one));
    ok(PostQueuedCompletionStatus(port, 3, 4, &one));
    get(port, 0);
    ok_packet(TRUE, &one, 3, 4);
    ok(PostQueuedCompletionStatus(port, 0xffffffffu, ~(ULONG_PTR)0, GARBAGE));
    get(port, 0);
    ok_packet(TRUE, GARBAGE, 0xffffffffu, ~(ULONG_PTR)0);
}

TEST(order__first_in_first_out)
{
    for (DWORD i = 0; i < 100; i++)
        ok(PostQueuedCompletionStatus(port, i, i, NULL));
    for (DWORD i = 0; i < 100; i++) {
        get(port, 0);
        ok_packet(TRUE, NULL, i, i);
    }
}

/* What the files of a closed port bring later goes nowhere, and their requests end as ever. */
TEST(close__of_a_port_with_files_and_packets)
{
    OVERLAPPED one, two;

    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    bind_file(5);
    test_file_start(file, &one);
    test_file_start(file, &two);
    test_file_finish(file, 1);
    ok(PostQueuedCompletionStatus(port, 0, 0, NULL));
    ok(CloseHandle(port));
    test_file_finish(file, 2);
    while (!HasOverlappedIoCompleted(&one) || !HasOverlappedIoCompleted(&two))
        harness_yield();
    ok(one.InternalHigh == 1 && two.InternalHigh == 2);
    get(port, 0);
    ok_nothing(ERROR_INVALID_HANDLE);
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
}

TEST(order__of_cancelled_requests)
{
    OVERLAPPED many[8];

    memset(many, 0, sizeof(many));
    bind_file(5);
    for (int i = 0; i < 8; i++)
        test_file_start(file, &many[i]);
    for (int i = 0; i < 8; i++)
        ok(CancelIoEx(test_file_handle(file), &many[i]));
    for (int i = 0; i < 8; i++) {
        get(port, INFINITE);
        ok_packet(FALSE, &many[i], 0, 5);
    }
}

TEST(batch__up_to_n)
{
    OVERLAPPED_ENTRY entries[16];
    OVERLAPPED one;
    ULONG removed = 99;

    SetLastError(0);
    ok(!GetQueuedCompletionStatusEx(port, entries, 16, &removed, 0, FALSE));
    ok_uint(GetLastError(), ==, WAIT_TIMEOUT);
    memset(&one, 0, sizeof(one));
    bind_file(6);
    test_file_start(file, &one);
    ok(CancelIoEx(test_file_handle(file), &one));
    for (ULONG i = 1; i < 20; i++)
        ok(PostQueuedCompletionStatus(port, i, i, NULL));
    /* TRUE also with a failed request among them: the status is in the entry. */
    ok_int(GetQueuedCompletionStatusEx(port, entries, 16, &removed, INFINITE, FALSE), ==, TRUE);
    ok_uint(removed, ==, 16);
    for (ULONG i = 0; i < removed; i++) {
        bool failed_one = entries[i].lpOverlapped == &one;

        ok_uint(entries[i].lpCompletionKey, ==, failed_one ? 6 : entries[i].dwNumberOfBytesTransferred);
        ok_uint((DWORD)entries[i].Internal, ==, failed_one ? FILE_CANCELLED : 0);
    }
    ok(GetQueuedCompletionStatusEx(port, entries, 16, &removed, 0, TRUE));
    ok_uint(removed, ==, 4);
}

static LONG abandoned;

static DWORD WINAPI wait_until_closed(LPVOID arg)
{
    HANDLE waited = (HANDLE)arg;
    OVERLAPPED *none = GARBAGE;
    ULONG_PTR k = UNTOUCHED_KEY;
    DWORD b = UNTOUCHED_BYTES;

    if (!GetQueuedCompletionStatus(waited, &b, &k, &none, INFINITE) && GetLastError() == ERROR_ABANDONED_WAIT_0 &&
        !none && b == UNTOUCHED_BYTES && k == UNTOUCHED_KEY)
        InterlockedIncrement(&abandoned);
    return 0;
}

/* A thread that comes after the close gets error 6 instead, so that each is tried alone, with time to arrive. */
TEST(row__closed_while_waiting)
{
    if (under_wine())
        harness_skip("closing a port does not end waits on it in Wine");
    abandoned = 0;
    for (int i = 0; i < 200 && InterlockedExchangeAdd(&abandoned, 0) == 0; i++) {
        HANDLE mine = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
        HANDLE thread = CreateThread(NULL, 0, wait_until_closed, mine, 0, NULL);

        Sleep((DWORD)i);
        ok(CloseHandle(mine));
        ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
        CloseHandle(thread);
    }
    ok_int(abandoned, ==, 1);
}

/* The structure is its owner's again as soon as the packet is out, or earlier: freed under an address sanitizer. */
TEST(packet__then_the_structure_is_the_takers)
{
    bind_file(5);
    for (int i = 0; i < 100; i++) {
        OVERLAPPED *one = (OVERLAPPED *)calloc(1, sizeof(*one));

        test_file_start(file, one);
        test_file_finish(file, 1);
        get(port, INFINITE);
        ok(ov == one);
        free(one);
    }
}

/* Callbacks of the thread pool. */

static LONG calls, calls_failed;
static DWORD call_error;
static OVERLAPPED *call_ov;
static HANDLE called;

static VOID CALLBACK callback(DWORD code, DWORD count, OVERLAPPED *one)
{
    call_error = code;
    call_ov = one;
    if (count != 1)
        InterlockedIncrement(&calls_failed);
    InterlockedIncrement(&calls);
    SetEvent(called);
}

TEST(BindIoCompletionCallback__calls)
{
    OVERLAPPED one;

    memset(&one, 0, sizeof(one));
    calls = calls_failed = 0;
    called = CreateEventW(NULL, FALSE, FALSE, NULL);
    ok_int(BindIoCompletionCallback(test_file_handle(file), callback, 0), ==, TRUE);
    ok(!BindIoCompletionCallback(test_file_handle(file), callback, 0));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok(CreateIoCompletionPort(test_file_handle(file), port, 0, 0) == NULL);
    for (int i = 0; i < 10; i++) {
        test_file_start(file, &one);
        test_file_finish(file, 1);
        ok_uint(WaitForSingleObject(called, INFINITE), ==, WAIT_OBJECT_0);
        ok(call_error == 0 && call_ov == &one);
    }
    ok_int(calls, ==, 10);
    ok_int(calls_failed, ==, 0);
    test_file_start(file, &one);
    ok(CancelIoEx(test_file_handle(file), &one));
    ok_uint(WaitForSingleObject(called, INFINITE), ==, WAIT_OBJECT_0);
    /* An NTSTATUS, not a Win32 code. */
    ok(call_error == FILE_CANCELLED || (under_wine() && call_error == ERROR_OPERATION_ABORTED));
    CloseHandle(called);
}

static DWORD WINAPI work(LPVOID arg)
{
    InterlockedExchangeAdd(&calls, (LONG)(uintptr_t)arg);
    SetEvent(called);
    return 0;
}

TEST(QueueUserWorkItem__calls)
{
    calls = 0;
    called = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (uintptr_t i = 1; i <= 50; i++)
        ok_int(QueueUserWorkItem(work, (LPVOID)i, WT_EXECUTEDEFAULT), ==, TRUE);
    while (InterlockedExchangeAdd(&calls, 0) < 50 * 51 / 2)
        ok_uint(WaitForSingleObject(called, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(calls, ==, 50 * 51 / 2);
    CloseHandle(called);
}

static LONG gathered, wanted;
static HANDLE all_here;

static DWORD WINAPI gather(LPVOID arg)
{
    (void)arg;
    if (InterlockedIncrement(&gathered) == wanted)
        SetEvent(all_here);
    WaitForSingleObject(all_here, INFINITE);
    InterlockedDecrement(&gathered);
    return 0;
}

TEST(QueueUserWorkItem__items_wait_for_each_other)
{
    SYSTEM_INFO system;

    GetSystemInfo(&system);
    wanted = (LONG)system.dwNumberOfProcessors + 20;
    gathered = 0;
    all_here = CreateEventW(NULL, TRUE, FALSE, NULL);
    for (LONG i = 0; i < wanted; i++)
        ok_int(QueueUserWorkItem(gather, NULL, WT_EXECUTELONGFUNCTION), ==, TRUE);
    ok_uint(WaitForSingleObject(all_here, 60000), ==, WAIT_OBJECT_0);
    ok_eventually(InterlockedExchangeAdd(&gathered, 0) == 0);
    CloseHandle(all_here);
}

static HANDLE used;

static DWORD WINAPI use_stack(LPVOID arg)
{
    volatile char room[512 * 1024];

    (void)arg;
    for (size_t i = sizeof(room); i >= 512; i -= 512)
        room[i - 512] = 1;
    SetEvent(used);
    return 0;
}

TEST(QueueUserWorkItem__items_have_the_stack_of_a_thread)
{
    used = CreateEventW(NULL, TRUE, FALSE, NULL);
    ok_int(QueueUserWorkItem(use_stack, NULL, WT_EXECUTEDEFAULT), ==, TRUE);
    ok_uint(WaitForSingleObject(used, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(used);
}
