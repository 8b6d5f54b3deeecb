/* SPDX-License-Identifier: MIT */

/* Waits on several objects: win32-surface.md 6.3. */

#include <windows.h>

#include "file.h"
#include "harness.h"

static HANDLE events[MAXIMUM_WAIT_OBJECTS + 1];

static void make(unsigned n, BOOL manual)
{
    for (unsigned i = 0; i < n; i++)
        ok((events[i] = CreateEventW(NULL, manual, FALSE, NULL)) != NULL);
}

static void unmake(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ok(CloseHandle(events[i]));
}

static bool is_set(unsigned i)
{
    return WaitForSingleObject(events[i], 0) == WAIT_OBJECT_0;
}

static DWORD WINAPI set_event(LPVOID arg)
{
    return (DWORD)SetEvent(events[(uintptr_t)arg]);
}

TEST(any__lowest_index_wins_and_only_that_is_consumed)
{
    make(5, FALSE);
    SetEvent(events[4]);
    SetEvent(events[1]);
    SetEvent(events[2]);
    ok_uint(WaitForMultipleObjects(5, events, FALSE, 0), ==, WAIT_OBJECT_0 + 1);
    ok_uint(WaitForMultipleObjects(5, events, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 2);
    ok_uint(WaitForMultipleObjectsEx(5, events, FALSE, INFINITE, TRUE), ==, WAIT_OBJECT_0 + 4);
    ok_uint(WaitForMultipleObjects(5, events, FALSE, 0), ==, WAIT_TIMEOUT);
    unmake(5);
}

TEST(all__touches_nothing_before_all_are_set)
{
    make(3, FALSE);
    SetEvent(events[0]);
    SetEvent(events[2]);
    ok_uint(WaitForMultipleObjects(3, events, TRUE, 0), ==, WAIT_TIMEOUT);
    ok_uint(WaitForMultipleObjects(3, events, TRUE, 20), ==, WAIT_TIMEOUT);
    ok(is_set(0) && !is_set(1) && is_set(2));
    unmake(3);
}

TEST(all__consumes_all)
{
    make(4, FALSE);
    for (int i = 0; i < 4; i++)
        SetEvent(events[i]);
    ok_uint(WaitForMultipleObjects(4, events, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (unsigned i = 0; i < 4; i++)
        ok(!is_set(i));
    unmake(4);
}

TEST(count__limits)
{
    make(MAXIMUM_WAIT_OBJECTS + 1, FALSE);
    SetEvent(events[63]);
    ok_uint(WaitForMultipleObjects(64, events, FALSE, 0), ==, WAIT_OBJECT_0 + 63);
    for (int i = 0; i < 64; i++)
        SetEvent(events[i]);
    ok_uint(WaitForMultipleObjects(64, events, TRUE, 0), ==, WAIT_OBJECT_0);
    for (int all = 0; all < 2; all++) {
        ok_uint(WaitForMultipleObjects(65, events, all, 0), ==, WAIT_FAILED);
        ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
        ok_uint(WaitForMultipleObjects(0, events, all, 0), ==, WAIT_FAILED);
        ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    }
    unmake(MAXIMUM_WAIT_OBJECTS + 1);
}

/* The same object twice: nothing special for any, refused for all. */
TEST(duplicates__any_and_all)
{
    HANDLE twice[3];

    make(2, FALSE);
    twice[0] = events[1];
    twice[1] = twice[2] = events[0];
    SetEvent(events[0]);
    ok_uint(WaitForMultipleObjects(3, twice, FALSE, 0), ==, WAIT_OBJECT_0 + 1);
    ok_uint(WaitForMultipleObjects(3, twice, FALSE, 0), ==, WAIT_TIMEOUT);
    SetEvent(events[0]);
    SetEvent(events[1]);
    if (!under_wine()) {
        ok_uint(WaitForMultipleObjects(3, twice, TRUE, 0), ==, WAIT_FAILED);
        ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
        ok(is_set(0) && is_set(1));
    }
    unmake(2);
}

TEST(all__set_by_several_threads_in_any_order)
{
    HANDLE threads[3];

    make(3, FALSE);
    for (int round = 0; round < 50; round++) {
        for (uintptr_t i = 0; i < 3; i++)
            threads[i] = CreateThread(NULL, 0, set_event, (LPVOID)((i + (unsigned)round) % 3), 0, NULL);
        ok_uint(WaitForMultipleObjects(3, events, TRUE, INFINITE), ==, WAIT_OBJECT_0);
        for (unsigned i = 0; i < 3; i++)
            ok(!is_set(i));
        ok_uint(WaitForMultipleObjects(3, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
        for (int i = 0; i < 3; i++)
            CloseHandle(threads[i]);
    }
    unmake(3);
}

TEST(bad_handle__fails_and_takes_nothing)
{
    HANDLE closed;

    make(3, FALSE);
    closed = events[1];
    CloseHandle(events[1]);
    SetEvent(events[0]);
    for (int all = 0; all < 2; all++) {
        ok_uint(WaitForMultipleObjects(3, events, all, 0), ==, WAIT_FAILED);
        ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    }
    ok(closed == events[1] && is_set(0));
    CloseHandle(events[0]);
    CloseHandle(events[2]);
}

static LONG thieves_done;

/* Takes the first event now and then and gives it back. */
static DWORD WINAPI thief(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++) {
        if (WaitForSingleObject(events[0], 0) == WAIT_OBJECT_0)
            SetEvent(events[0]);
    }
    InterlockedIncrement(&thieves_done);
    return 0;
}

/* Both at one instant: a thief between check and consumption would make the wait return without both. */
TEST(all__at_one_instant)
{
    HANDLE threads[3];

    make(2, FALSE);
    thieves_done = 0;
    SetEvent(events[0]);
    for (int i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, thief, NULL, 0, NULL);
    while (InterlockedExchangeAdd(&thieves_done, 0) < 3) {
        SetEvent(events[1]);
        if (WaitForMultipleObjects(2, events, TRUE, 0) == WAIT_OBJECT_0) {
            ok(!is_set(1));
            SetEvent(events[0]);
        }
        ResetEvent(events[1]);
    }
    ok_uint(WaitForMultipleObjects(3, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok(is_set(0));
    for (int i = 0; i < 3; i++)
        CloseHandle(threads[i]);
    unmake(2);
}

static DWORD WINAPI return_arg(LPVOID arg)
{
    return (DWORD)(uintptr_t)arg;
}

/* A thread stays set once it has finished; a file is set by a request without an event. */
TEST(waitable__threads_and_files)
{
    struct test_file *file = test_file_open();
    HANDLE handles[2];
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    handles[0] = CreateThread(NULL, 0, return_arg, (LPVOID)4711, 0, NULL);
    handles[1] = test_file_handle(file);
    test_file_start(file, &ov);
    ok_uint(WaitForSingleObject(handles[1], 0), ==, WAIT_TIMEOUT);
    test_file_finish(file, 1);
    ok_uint(WaitForMultipleObjects(2, handles, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForMultipleObjects(2, handles, FALSE, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(handles[0], 0), ==, WAIT_OBJECT_0);
    CloseHandle(handles[0]);
    test_file_close(file);
}
