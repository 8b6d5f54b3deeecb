/* SPDX-License-Identifier: MIT */

/* Overlapped requests: win32-surface.md 6.4, 6.8. */

#include <windows.h>

#include <stdlib.h>

#include "file.h"
#include "harness.h"

static struct test_file *file;

SETUP
{
    file = test_file_open();
}

TEARDOWN
{
    test_file_close(file);
}

static bool is_set(HANDLE event)
{
    return WaitForSingleObject(event, 0) == WAIT_OBJECT_0;
}

/* Only hEvent matters at the start; the event of a request that finished unwaited is cleared. */
TEST(start__of_an_uninitialised_structure)
{
    OVERLAPPED ov;

    memset(&ov, 0xa5, sizeof(ov));
    ov.Offset = ov.OffsetHigh = 0; /* a pipe on Windows looks at it */
    ov.hEvent = CreateEventW(NULL, TRUE, TRUE, NULL);
    test_file_start(file, &ov);
    ok_uint((DWORD)ov.Internal, ==, FILE_PENDING);
    ok(!HasOverlappedIoCompleted(&ov));
    ok(!is_set(ov.hEvent));
    test_file_finish(file, 3);
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok(HasOverlappedIoCompleted(&ov));
    ok_uint((DWORD)ov.Internal, ==, 0);
    ok_uint(ov.InternalHigh, ==, 3);
    CloseHandle(ov.hEvent);
}

TEST(GetOverlappedResult__pending)
{
    OVERLAPPED ov;
    DWORD bytes = 0;

    memset(&ov, 0, sizeof(ov));
    test_file_start(file, &ov);
    ok(!GetOverlappedResult(test_file_handle(file), &ov, &bytes, FALSE));
    ok_uint(GetLastError(), ==, ERROR_IO_INCOMPLETE);
    test_file_finish(file, 5);
    ok(GetOverlappedResult(test_file_handle(file), &ov, &bytes, TRUE));
    ok_uint(bytes, ==, 5);
    bytes = 0;
    ok(GetOverlappedResult(test_file_handle(file), &ov, &bytes, FALSE));
    ok_uint(bytes, ==, 5);
}

static DWORD delay;

static DWORD WINAPI finish_later(LPVOID arg)
{
    Sleep(delay);
    test_file_finish(file, (DWORD)(uintptr_t)arg);
    return 0;
}

static void wait_for_result(OVERLAPPED *ov, DWORD wanted)
{
    HANDLE thread;
    DWORD bytes = 0;

    test_file_start(file, ov);
    thread = CreateThread(NULL, 0, finish_later, (LPVOID)(uintptr_t)wanted, 0, NULL);
    ok(GetOverlappedResult(test_file_handle(file), ov, &bytes, TRUE));
    ok_uint(bytes, ==, wanted);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
}

/* The wait consumes the signal of an auto-reset event, as a wait on the event would. */
TEST(GetOverlappedResult__waits_with_an_auto_reset_event)
{
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (DWORD i = 1; i <= 3; i++) {
        /* A request that has finished before the call is not waited for: longer and longer, until it is. */
        for (delay = 1; delay < 1000; delay *= 2) {
            wait_for_result(&ov, i);
            if (!is_set(ov.hEvent))
                break;
        }
        ok_uint(delay, <, 1000);
    }
    CloseHandle(ov.hEvent);
}

TEST(GetOverlappedResult__waits_with_a_manual_reset_event)
{
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    wait_for_result(&ov, 2);
    ok(is_set(ov.hEvent));
    CloseHandle(ov.hEvent);
}

TEST(GetOverlappedResult__waits_without_an_event)
{
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    for (DWORD i = 1; i <= 3; i++)
        wait_for_result(&ov, i);
}

/* A request that has finished is not waited for, so its event stays. */
TEST(GetOverlappedResult__leaves_the_event_of_a_finished_request)
{
    OVERLAPPED ov;
    DWORD bytes;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, FALSE, FALSE, NULL);
    test_file_start(file, &ov);
    test_file_finish(file, 1);
    while (!HasOverlappedIoCompleted(&ov))
        harness_yield();
    ok(GetOverlappedResult(test_file_handle(file), &ov, &bytes, TRUE));
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(ov.hEvent);
}

TEST(GetOverlappedResult__of_a_cancelled_request)
{
    OVERLAPPED ov;
    DWORD bytes;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    test_file_start(file, &ov);
    ok_int(CancelIoEx(test_file_handle(file), &ov), ==, TRUE);
    ok(!GetOverlappedResult(test_file_handle(file), &ov, &bytes, TRUE));
    ok_uint(GetLastError(), ==, ERROR_OPERATION_ABORTED);
    ok_uint((DWORD)ov.Internal, ==, FILE_CANCELLED);
    ok(is_set(ov.hEvent));
    CloseHandle(ov.hEvent);
}

TEST(CancelIoEx__one_of_them_all_of_them_none)
{
    OVERLAPPED ov[3];
    DWORD bytes;

    memset(ov, 0, sizeof(ov));
    if (!under_wine()) {
        ok(!CancelIoEx(test_file_handle(file), NULL));
        ok_uint(GetLastError(), ==, ERROR_NOT_FOUND);
    }
    for (int i = 0; i < 3; i++) {
        ov[i].hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
        test_file_start(file, &ov[i]);
    }
    ok(CancelIoEx(test_file_handle(file), &ov[1]));
    ok_uint(WaitForSingleObject(ov[1].hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok(!HasOverlappedIoCompleted(&ov[0]) && !HasOverlappedIoCompleted(&ov[2]));
    ok(!CancelIoEx(test_file_handle(file), &ov[1]));
    ok_uint(GetLastError(), ==, ERROR_NOT_FOUND);
    ok(CancelIoEx(test_file_handle(file), NULL));
    for (int i = 0; i < 3; i++) {
        ok_uint(WaitForSingleObject(ov[i].hEvent, INFINITE), ==, WAIT_OBJECT_0);
        ok(!GetOverlappedResult(test_file_handle(file), &ov[i], &bytes, FALSE));
        ok_uint(GetLastError(), ==, ERROR_OPERATION_ABORTED);
        CloseHandle(ov[i].hEvent);
    }
}

static DWORD WINAPI cancel_own(LPVOID arg)
{
    (void)arg;
    return (DWORD)CancelIo(test_file_handle(file));
}

/* Those that the calling thread has started; success also if there are none. */
TEST(CancelIo__of_the_calling_thread)
{
    OVERLAPPED ov;
    HANDLE thread;
    DWORD code = 0;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    test_file_start(file, &ov);
    thread = CreateThread(NULL, 0, cancel_own, NULL, 0, NULL);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == TRUE);
    CloseHandle(thread);
    ok(!HasOverlappedIoCompleted(&ov));
    ok(CancelIo(test_file_handle(file)));
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint((DWORD)ov.Internal, ==, FILE_CANCELLED);
    CloseHandle(ov.hEvent);
}

static OVERLAPPED *shared;
static HANDLE shared_event;

static DWORD WINAPI free_at_once(LPVOID arg)
{
    (void)arg;
    WaitForSingleObject(shared_event, INFINITE);
    memset(shared, 0x5a, sizeof(*shared));
    free(shared);
    return 0;
}

/* After the event is set, nobody touches the structure any more: most useful under an address sanitizer. */
TEST(completion__then_the_structure_is_the_waiters)
{
    shared_event = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < 200; i++) {
        HANDLE thread;

        shared = (OVERLAPPED *)calloc(1, sizeof(*shared));
        shared->hEvent = shared_event;
        test_file_start(file, shared);
        thread = CreateThread(NULL, 0, free_at_once, NULL, 0, NULL);
        test_file_finish(file, 1);
        ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
        CloseHandle(thread);
    }
    CloseHandle(shared_event);
}
