/* SPDX-License-Identifier: MIT */

/* Events and waits on one object: win32-surface.md 6.2, 6.3. */

#include <windows.h>

#include "harness.h"

static HANDLE event, go, threads[8];
static LONG woken;
static int payload;

static DWORD WINAPI wait_once(LPVOID arg)
{
    (void)arg;
    if (WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0)
        InterlockedIncrement(&woken);
    return 0;
}

static void start(unsigned n, LPTHREAD_START_ROUTINE function)
{
    woken = 0;
    for (unsigned i = 0; i < n; i++) {
        threads[i] = CreateThread(NULL, 0, function, (LPVOID)(uintptr_t)i, 0, NULL);
        ok(threads[i] != NULL);
    }
}

static void finish(unsigned n)
{
    ok_uint(WaitForMultipleObjects(n, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (unsigned i = 0; i < n; i++)
        ok(CloseHandle(threads[i]));
}

TEST(event__initial_state)
{
    for (int manual = 0; manual < 2; manual++) {
        for (int set = 0; set < 2; set++) {
            event = manual ? CreateEventA(NULL, manual, set, NULL) : CreateEventW(NULL, manual, set, NULL);
            ok_uint(WaitForSingleObject(event, 0), ==, set ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
            ok_uint(WaitForSingleObject(event, 0), ==, set && manual ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
            CloseHandle(event);
        }
    }
}

TEST(event__any_nonzero_is_true)
{
    event = CreateEventW(NULL, 0x100, 0x200, NULL);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    CloseHandle(event);
}

/* Setting a set event is lost, not counted; what it returns is exactly TRUE. */
TEST(SetEvent__is_not_counted)
{
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < 3; i++)
        ok_int(SetEvent(event), ==, TRUE);
    ok_uint(WaitForSingleObject(event, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    CloseHandle(event);
}

TEST(ResetEvent__clears)
{
    for (int manual = 0; manual < 2; manual++) {
        event = CreateEventW(NULL, manual, TRUE, NULL);
        ok_int(ResetEvent(event), ==, TRUE);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
        ok_int(ResetEvent(event), ==, TRUE);
        ok_int(SetEvent(event), ==, TRUE);
        ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
        CloseHandle(event);
    }
}

TEST(SetEvent__auto_reset_releases_one)
{
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    start(5, wait_once);
    for (LONG i = 1; i <= 5; i++) {
        SetEvent(event);
        ok_eventually(InterlockedExchangeAdd(&woken, 0) >= i);
        ok_int(InterlockedExchangeAdd(&woken, 0), ==, i);
    }
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    finish(5);
    CloseHandle(event);
}

TEST(SetEvent__manual_reset_releases_all)
{
    event = CreateEventW(NULL, TRUE, FALSE, NULL);
    start(5, wait_once);
    SetEvent(event);
    finish(5);
    ok_int(woken, ==, 5);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    CloseHandle(event);
}

static DWORD WINAPI read_payload(LPVOID arg)
{
    (void)arg;
    for (int i = 1; i <= 2000; i++) {
        if (WaitForSingleObject(event, INFINITE) != WAIT_OBJECT_0 || payload != i)
            return 1;
        SetEvent(go);
    }
    return 0;
}

/* What was written before SetEvent is there after the wait; no set is lost in a ping-pong. */
TEST(SetEvent__orders_memory)
{
    DWORD code = 99;

    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    go = CreateEventW(NULL, FALSE, FALSE, NULL);
    payload = 0;
    start(1, read_payload);
    for (int i = 1; i <= 2000; i++) {
        payload = i;
        SetEvent(event);
        ok_uint(WaitForSingleObject(go, INFINITE), ==, WAIT_OBJECT_0);
    }
    ok_uint(WaitForSingleObject(threads[0], INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(threads[0], &code));
    ok_uint(code, ==, 0);
    CloseHandle(threads[0]);
    CloseHandle(event);
    CloseHandle(go);
}

static double now_ms(void)
{
    LARGE_INTEGER count, frequency;

    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    return (double)count.QuadPart * 1000 / (double)frequency.QuadPart;
}

/* Windows may be early by a clock tick (15.6 ms): the bound that holds on both is what programs can count on. */
TEST(WaitForSingleObject__time_out)
{
    double begun;

    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    begun = now_ms();
    ok_uint(WaitForSingleObject(event, 40), ==, WAIT_TIMEOUT);
    ok(now_ms() - begun >= 24);
    /* A wait that timed out has taken nothing. */
    SetEvent(event);
    ok_uint(WaitForSingleObject(event, 40), ==, WAIT_OBJECT_0);
    CloseHandle(event);
}

TEST(WaitForSingleObject__zero_consumes)
{
    event = CreateEventW(NULL, FALSE, TRUE, NULL);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    CloseHandle(event);
}

/* Nothing queues an APC, so an alertable wait is a plain one. */
TEST(WaitForSingleObjectEx__alertable)
{
    event = CreateEventW(NULL, FALSE, TRUE, NULL);
    ok_uint(WaitForSingleObjectEx(event, INFINITE, TRUE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObjectEx(event, 5, TRUE), ==, WAIT_TIMEOUT);
    CloseHandle(event);
}
