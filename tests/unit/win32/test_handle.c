/* SPDX-License-Identifier: MIT */

/* Handles: win32-surface.md 6.1. What is stated here holds on Windows and is tested there too. */

#include <windows.h>

#include "file.h"
#include "harness.h"

static HANDLE tagged(HANDLE handle, unsigned bits)
{
    return (HANDLE)((uintptr_t)handle | bits);
}

TEST(handle__is_a_multiple_of_four_and_not_null)
{
    HANDLE handles[20];

    for (int i = 0; i < 20; i++) {
        handles[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
        ok(handles[i] != NULL && handles[i] != INVALID_HANDLE_VALUE);
        ok_uint((uintptr_t)handles[i] & 3, ==, 0);
        for (int k = 0; k < i; k++)
            ok(handles[i] != handles[k]);
    }
    for (int i = 0; i < 20; i++)
        ok(CloseHandle(handles[i]));
}

TEST(handle__low_bits_are_ignored)
{
    for (unsigned bits = 1; bits < 4; bits++) {
        HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);

        ok_int(SetEvent(tagged(event, bits)), ==, 1);
        ok_uint(WaitForSingleObject(tagged(event, bits), 0), ==, WAIT_OBJECT_0);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
        ok_int(SetEvent(event), ==, 1);
        ok_int(ResetEvent(tagged(event, bits)), ==, 1);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
        ok_int(CloseHandle(tagged(event, bits)), ==, 1);
        ok(!SetEvent(event));
    }
}

static void ok_invalid(BOOL result)
{
    ok_int(result, ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

TEST(handle__use_after_close)
{
    HANDLE event = CreateEventW(NULL, TRUE, TRUE, NULL);

    ok(CloseHandle(event));
    SetLastError(0);
    ok_invalid(CloseHandle(event));
    SetLastError(0);
    ok_invalid(SetEvent(event));
    SetLastError(0);
    ok_invalid(ResetEvent(event));
    SetLastError(0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    SetLastError(0);
    ok_uint(WaitForMultipleObjects(1, &event, FALSE, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

TEST(handle__null_and_nonsense)
{
    SetLastError(0);
    ok_invalid(CloseHandle(NULL));
    SetLastError(0);
    ok_invalid(SetEvent(NULL));
    SetLastError(0);
    ok_invalid(SetEvent((HANDLE)(uintptr_t)0x7fff0));
    ok_uint(WaitForSingleObject(NULL, 0), ==, WAIT_FAILED);
}

/* It is the pseudo-handle of the process; a deleter that passes it on does no harm. */
TEST(CloseHandle__of_the_pseudo_handles)
{
    ok(GetCurrentProcess() == INVALID_HANDLE_VALUE);
    ok(CloseHandle(INVALID_HANDLE_VALUE));
    ok(CloseHandle(GetCurrentThread()));
    ok_uint(GetCurrentThreadId(), !=, 0);
}

TEST(handle__of_another_type)
{
    HANDLE event = CreateEventW(NULL, TRUE, TRUE, NULL),
           port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    OVERLAPPED *ov;
    ULONG_PTR key;
    DWORD bytes;

    ok_invalid(SetEvent(port));
    ok_invalid(PostQueuedCompletionStatus(event, 0, 0, NULL));
    ok_invalid(GetQueuedCompletionStatus(event, &bytes, &key, &ov, 0));
    CloseHandle(event);
    CloseHandle(port);
}

/* The request holds the event itself. */
TEST(CloseHandle__of_an_event_that_a_request_names)
{
    struct test_file *file = test_file_open();
    OVERLAPPED ov;
    DWORD bytes = 0;

    memset(&ov, 0, sizeof(ov));
    ov.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
    test_file_start(file, &ov);
    ok(CloseHandle(ov.hEvent));
    test_file_finish(file, 7);
    while (!HasOverlappedIoCompleted(&ov))
        harness_yield();
    ov.hEvent = NULL;
    ok(GetOverlappedResult(test_file_handle(file), &ov, &bytes, FALSE));
    ok_uint(bytes, ==, 7);
    test_file_close(file);
}

TEST(DuplicateHandle__names_the_same_object)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), copy = NULL;

    ok(DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    ok(copy != NULL && copy != event);
    ok(SetEvent(event));
    ok_uint(WaitForSingleObject(copy, 0), ==, WAIT_OBJECT_0);
    ok(CloseHandle(event));
    ok(SetEvent(copy));
    ok_uint(WaitForSingleObject(copy, 0), ==, WAIT_OBJECT_0);
    ok(DuplicateHandle(GetCurrentProcess(), copy, GetCurrentProcess(), &event, 0, FALSE,
                       DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE));
    /* Wine closes first, and gives the new handle the value of the old one. */
    if (!under_wine())
        ok_invalid(SetEvent(copy));
    ok(SetEvent(event));
    ok(CloseHandle(event));
    ok(!DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

static HANDLE own;

static DWORD WINAPI duplicates_itself(LPVOID arg)
{
    (void)arg;
    ok(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &own, 0, FALSE,
                       DUPLICATE_SAME_ACCESS));
    ok(own != NULL && own != GetCurrentThread());
    ok_uint(WaitForSingleObject(own, 0), ==, WAIT_TIMEOUT);
    ok_uint(GetThreadId(own), ==, GetCurrentThreadId());
    return 17;
}

TEST(DuplicateHandle__of_the_current_thread)
{
    HANDLE thread = CreateThread(NULL, 0, duplicates_itself, NULL, 0, NULL), copy = NULL;
    DWORD code = 0;

    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok_uint(WaitForSingleObject(own, 0), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(own, &code) && code == 17);
    ok(CloseHandle(own));

    /* The thread that no call of Windows has started. */
    for (int i = 0; i < 2; i++) {
        ok(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL));
        ok(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &copy, 0, FALSE,
                           DUPLICATE_SAME_ACCESS));
        ok_uint(WaitForSingleObject(copy, 0), ==, WAIT_TIMEOUT);
        ok_uint(GetThreadId(copy), ==, GetCurrentThreadId());
        ok_int(GetThreadPriority(copy), ==, THREAD_PRIORITY_BELOW_NORMAL);
        ok(GetExitCodeThread(copy, &code) && code == STILL_ACTIVE);
        ok(CloseHandle(copy));
    }
}

TEST(DuplicateHandle__of_the_current_process)
{
    HANDLE process = NULL, event = CreateEventW(NULL, TRUE, FALSE, NULL), copy = NULL;

    ok(DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), GetCurrentProcess(), &process, 0, FALSE,
                       DUPLICATE_SAME_ACCESS));
    ok(process != NULL && process != GetCurrentProcess());
    ok_uint(WaitForSingleObject(process, 0), ==, WAIT_TIMEOUT);
    ok(DuplicateHandle(process, event, process, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    ok(CloseHandle(copy));
    ok(!DuplicateHandle(event, event, process, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    ok(CloseHandle(event));
    ok(CloseHandle(process));
}
