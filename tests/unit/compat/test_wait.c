/* SPDX-License-Identifier: MIT */

/* Waits on several objects (win32-surface.md 6.3). */

#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include <windows.h>

#include "harness.h"
#include "sleep.h"

static HANDLE events[MAXIMUM_WAIT_OBJECTS + 1];

static void events_make(unsigned n, BOOL manual)
{
    for (unsigned i = 0; i < n; i++)
        events[i] = CreateEventW(NULL, manual, FALSE, NULL);
}

static void events_close(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ok(CloseHandle(events[i]));
}

static bool is_set(HANDLE handle)
{
    return WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
}

TEST(any__lowest_index_and_only_that_is_consumed)
{
    events_make(4, FALSE);
    SetEvent(events[3]);
    SetEvent(events[1]);
    ok_uint(WaitForMultipleObjects(4, events, FALSE, 0), ==, WAIT_OBJECT_0 + 1);
    ok_uint(WaitForMultipleObjects(4, events, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 3);
    ok_uint(WaitForMultipleObjects(4, events, FALSE, 0), ==, WAIT_TIMEOUT);
    ok_uint(WaitForMultipleObjects(4, events, FALSE, 3), ==, WAIT_TIMEOUT);
    events_close(4);
}

TEST(any__the_same_handle_twice)
{
    HANDLE twice[2];

    events_make(1, FALSE);
    twice[0] = twice[1] = events[0];
    SetEvent(events[0]);
    ok_uint(WaitForMultipleObjects(2, twice, FALSE, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForMultipleObjects(2, twice, FALSE, 2), ==, WAIT_TIMEOUT);
    /* Nothing of the wait is left behind: single waits are fast and right again. */
    SetEvent(events[0]);
    ok(is_set(events[0]));
    ok(!is_set(events[0]));
    events_close(1);
}

TEST(all__time_out_touches_nothing)
{
    events_make(3, FALSE);
    SetEvent(events[0]);
    SetEvent(events[2]);
    ok_uint(WaitForMultipleObjects(3, events, TRUE, 0), ==, WAIT_TIMEOUT);
    ok_uint(WaitForMultipleObjects(3, events, TRUE, 3), ==, WAIT_TIMEOUT);
    ok(is_set(events[0]) && !is_set(events[1]) && is_set(events[2]));
    events_close(3);
}

/* tests/lists: D86. */
TEST(all__consumes_together)
{
    events_make(3, FALSE);
    for (int i = 0; i < 3; i++)
        SetEvent(events[i]);
    ok_uint(WaitForMultipleObjects(3, events, TRUE, 0), ==, WAIT_OBJECT_0);
    for (int i = 0; i < 3; i++)
        ok(!is_set(events[i]));
    events_close(3);
}

TEST(all__manual_reset_stays_set)
{
    events_make(2, TRUE);
    SetEvent(events[0]);
    SetEvent(events[1]);
    ok_uint(WaitForMultipleObjectsEx(2, events, TRUE, INFINITE, TRUE), ==, WAIT_OBJECT_0);
    ok(is_set(events[0]) && is_set(events[1]));
    events_close(2);
}

TEST(count__limits)
{
    HANDLE twice[2];

    events_make(MAXIMUM_WAIT_OBJECTS + 1, FALSE);
    ok_uint(WaitForMultipleObjects(0, events, FALSE, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_uint(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS + 1, events, FALSE, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    SetEvent(events[63]);
    ok_uint(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, events, FALSE, 0), ==, WAIT_OBJECT_0 + 63);
    for (int i = 0; i < MAXIMUM_WAIT_OBJECTS; i++)
        SetEvent(events[i]);
    ok_uint(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS, events, TRUE, 0), ==, WAIT_OBJECT_0);
    twice[0] = twice[1] = events[0];
    ok_uint(WaitForMultipleObjects(2, twice, TRUE, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    events_close(MAXIMUM_WAIT_OBJECTS + 1);
}

TEST(handle__stale_in_the_middle)
{
    events_make(3, FALSE);
    CloseHandle(events[1]);
    SetEvent(events[0]);
    ok_uint(WaitForMultipleObjects(3, events, FALSE, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok(is_set(events[0]));
    CloseHandle(events[0]);
    CloseHandle(events[2]);
}

static DWORD result;

static DWORD WINAPI wait_all(LPVOID arg)
{
    (void)arg;
    result = WaitForMultipleObjects(3, events, TRUE, INFINITE);
    return 0;
}

static DWORD WINAPI quick(LPVOID arg)
{
    (void)arg;
    return 0;
}

TEST(all__sets_from_another_thread)
{
    uint64_t parked = sleep_counted(SLEEP_WAIT);
    HANDLE thread;

    events_make(3, FALSE);
    result = 99;
    thread = CreateThread(NULL, 0, wait_all, NULL, 0, NULL);
    ok_eventually(sleep_counted(SLEEP_WAIT) > parked);
    SetEvent(events[1]);
    SetEvent(events[0]);
    /* Others may take what the wait for all only looks at. */
    ok(is_set(events[0]));
    SetEvent(events[2]);
    ok(WaitForSingleObject(thread, 5) == WAIT_TIMEOUT);
    SetEvent(events[0]);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(result, ==, WAIT_OBJECT_0);
    for (int i = 0; i < 3; i++)
        ok(!is_set(events[i]));
    CloseHandle(thread);
    events_close(3);
}

TEST(any__threads_and_events)
{
    events_make(1, FALSE);
    events[1] = CreateThread(NULL, 0, quick, NULL, 0, NULL);
    ok_uint(WaitForMultipleObjects(2, events, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 1);
    ok_uint(WaitForMultipleObjects(2, events, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 1);
    SetEvent(events[0]);
    ok_uint(WaitForMultipleObjects(2, events, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    events_close(2);
}

TEST(readable__descriptor_and_deadline)
{
    uint64_t begun = sleep_now(), waited = sleep_counted_here(SLEEP_POLL);
    int ends[2];

    ok_int(sleep_poll_ms(SLEEP_FOREVER), ==, -1);
    ok_int(sleep_poll_ms(begun), ==, 0);
    ok_int(sleep_poll_ms(SLEEP_FOREVER - 1), ==, INT_MAX);
    ok_int(pipe(ends), ==, 0);
    errno = 4711;
    ok(!readable_wait(SLEEP_POLL, ends[0], begun));
    ok(!readable_wait(SLEEP_POLL, ends[0], begun + 20000000));
    ok(sleep_now() >= begun + 20000000);
    ok_int(errno, ==, 4711);
    ok_int((int)write(ends[1], "x", 1), ==, 1);
    ok(readable_wait(SLEEP_POLL, ends[0], SLEEP_FOREVER));
    ok_uint(sleep_counted_here(SLEEP_POLL), ==, waited + 3);
    close(ends[0]);
    close(ends[1]);
}
