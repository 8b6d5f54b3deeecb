/* SPDX-License-Identifier: MIT */

/* Events and single waits (win32-surface.md 6.2, 6.3). */

#include <windows.h>

#include "harness.h"
#include "sleep.h"

static HANDLE event;
static uint32_t woken;

static DWORD WINAPI wait_once(LPVOID arg)
{
    (void)arg;
    if (WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0)
        __atomic_add_fetch(&woken, 1, __ATOMIC_RELEASE);
    return 0;
}

#define WAITERS 5
static HANDLE threads[WAITERS];

/* All are parked: each sleeps in wait_block. */
static void waiters_start(void)
{
    uint64_t parked = sleep_counted(SLEEP_WAIT);

    for (int i = 0; i < WAITERS; i++)
        threads[i] = CreateThread(NULL, 0, wait_once, NULL, 0, NULL);
    ok_eventually(sleep_counted(SLEEP_WAIT) >= parked + WAITERS);
}

static void waiters_end(void)
{
    for (int i = 0; i < WAITERS; i++) {
        ok_uint(WaitForSingleObject(threads[i], INFINITE), ==, WAIT_OBJECT_0);
        CloseHandle(threads[i]);
    }
}

TEST(CreateEvent__initial_state)
{
    HANDLE set_auto = CreateEventW(NULL, FALSE, TRUE, NULL), set_manual = CreateEventA(NULL, TRUE, TRUE, NULL);
    HANDLE clear = CreateEventW(NULL, FALSE, FALSE, NULL);

    ok_uint(WaitForSingleObject(set_auto, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(set_auto, 0), ==, WAIT_TIMEOUT);
    ok_uint(WaitForSingleObject(set_manual, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(set_manual, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(clear, 0), ==, WAIT_TIMEOUT);
    CloseHandle(set_auto);
    CloseHandle(set_manual);
    CloseHandle(clear);
}

TEST(CreateEvent__named)
{
    ok_ptr(CreateEventW(NULL, FALSE, FALSE, L"name"), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_NOT_SUPPORTED);
    ok_ptr(CreateEventA(NULL, FALSE, FALSE, "name"), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_NOT_SUPPORTED);
}

TEST(SetEvent__before_the_wait_is_kept_once)
{
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    ok_int(SetEvent(event), ==, 1);
    ok_int(SetEvent(event), ==, 1);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    CloseHandle(event);
}

TEST(ResetEvent__clears_both_kinds)
{
    for (BOOL manual = FALSE; manual <= TRUE; manual++) {
        event = CreateEventW(NULL, manual, TRUE, NULL);
        ok_int(ResetEvent(event), ==, 1);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
        ok_int(ResetEvent(event), ==, 1);
        CloseHandle(event);
    }
}

TEST(SetEvent__auto_releases_one_of_n)
{
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    waiters_start();
    for (uint32_t i = 1; i <= WAITERS; i++) {
        SetEvent(event);
        ok_eventually(__atomic_load_n(&woken, __ATOMIC_ACQUIRE) >= i);
        ok_uint(__atomic_load_n(&woken, __ATOMIC_ACQUIRE), ==, i);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    }
    waiters_end();
    CloseHandle(event);
}

TEST(SetEvent__manual_releases_all_and_stays)
{
    event = CreateEventW(NULL, TRUE, FALSE, NULL);
    waiters_start();
    SetEvent(event);
    /* Those that waited are released by the set, whatever comes after. */
    ResetEvent(event);
    waiters_end();
    ok_uint(woken, ==, WAITERS);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    SetEvent(event);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(event);
}

TEST(WaitForSingleObject__never_early)
{
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (DWORD ms = 1; ms <= 10; ms++) {
        uint64_t start = sleep_now();

        ok_uint(WaitForSingleObject(event, ms), ==, WAIT_TIMEOUT);
        ok_uint(sleep_now() - start, >=, ms * 1000000ull);
    }
    CloseHandle(event);
}

TEST(WaitForSingleObject__keeps_last_error)
{
    event = CreateEventW(NULL, FALSE, TRUE, NULL);
    SetLastError(12345);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, 1), ==, WAIT_TIMEOUT);
    ok_uint(WaitForSingleObjectEx(event, 1, TRUE), ==, WAIT_TIMEOUT);
    ok_uint(GetLastError(), ==, 12345);
    CloseHandle(event);
}

/* No system call on the fast paths, and a wait that need not sleep does not count as one. */
TEST(event__uncontended_never_sleeps)
{
    uint64_t sleeps = 0, after = 0;

    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int class = 0; class < SLEEP_CLASSES; class ++)
        sleeps += sleep_counted_here((enum sleep_class) class);
    for (int i = 0; i < 1000; i++) {
        SetEvent(event);
        ok_uint(WaitForSingleObject(event, INFINITE), ==, WAIT_OBJECT_0);
    }
    for (int class = 0; class < SLEEP_CLASSES; class ++)
        after += sleep_counted_here((enum sleep_class) class);
    ok_uint(after, ==, sleeps);
    CloseHandle(event);
}

static HANDLE ping, pong;
#define PINGS 100000

static DWORD WINAPI answer(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < PINGS; i++) {
        ok_uint(WaitForSingleObject(ping, INFINITE), ==, WAIT_OBJECT_0);
        SetEvent(pong);
    }
    return 7;
}

TEST(event__ping_pong_without_loss)
{
    HANDLE thread;

    ping = CreateEventW(NULL, FALSE, FALSE, NULL);
    pong = CreateEventW(NULL, FALSE, FALSE, NULL);
    thread = CreateThread(NULL, 0, answer, NULL, 0, NULL);
    for (int i = 0; i < PINGS; i++) {
        SetEvent(ping);
        ok_uint(WaitForSingleObject(pong, INFINITE), ==, WAIT_OBJECT_0);
    }
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
    CloseHandle(ping);
    CloseHandle(pong);
}
