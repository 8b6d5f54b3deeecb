/* SPDX-License-Identifier: MIT */

/* Eight threads on the same objects: win32-surface.md 6.2, 6.3, 6.6, 10. Most useful under a thread sanitizer. */

#include <windows.h>

#include "harness.h"

#define THREADS 8

static void run(LPTHREAD_START_ROUTINE function)
{
    HANDLE threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        ok((threads[i] = CreateThread(NULL, 0, function, (LPVOID)i, 0, NULL)) != NULL);
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
}

/* An auto-reset event as a lock: what it guards is a plain variable. */

#define ROUNDS 1000
static HANDLE token;
static unsigned guarded;

static DWORD WINAPI take_token(LPVOID arg)
{
    uintptr_t id = (uintptr_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        if (id % 2)
            ok_uint(WaitForSingleObject(token, INFINITE), ==, WAIT_OBJECT_0);
        else
            ok_uint(WaitForMultipleObjects(1, &token, id % 4 == 0, INFINITE), ==, WAIT_OBJECT_0);
        guarded++;
        SetEvent(token);
    }
    return 0;
}

TEST(race__auto_reset_event_as_a_lock)
{
    guarded = 0;
    token = CreateEventW(NULL, FALSE, TRUE, NULL);
    run(take_token);
    ok_uint(guarded, ==, THREADS * ROUNDS);
    CloseHandle(token);
}

/* Wait-all for two of four tokens each, in rings that would deadlock if tokens were taken one by one. */
static HANDLE forks[4];
static unsigned held[4];

static DWORD WINAPI dine(LPVOID arg)
{
    uintptr_t id = (uintptr_t)arg, a = id % 4, b = (id + 1) % 4;
    HANDLE pair[2];

    pair[0] = forks[a];
    pair[1] = forks[b];
    for (int i = 0; i < ROUNDS / 2; i++) {
        ok_uint(WaitForMultipleObjects(2, pair, TRUE, INFINITE), ==, WAIT_OBJECT_0);
        held[a]++;
        held[b]++;
        SetEvent(pair[0]);
        SetEvent(pair[1]);
    }
    return 0;
}

TEST(race__wait_all_takes_both_or_none)
{
    for (int i = 0; i < 4; i++) {
        held[i] = 0;
        forks[i] = CreateEventW(NULL, FALSE, TRUE, NULL);
    }
    run(dine);
    for (int i = 0; i < 4; i++) {
        ok_uint(held[i], ==, THREADS / 4 * 2 * (ROUNDS / 2));
        CloseHandle(forks[i]);
    }
}

/* Producers and consumers: each packet once, and in order for each pair of them. */

#define PRODUCERS 4
#define PACKETS   2000
static HANDLE port;
static LONG taken[PRODUCERS][PACKETS];

static DWORD WINAPI produce_or_consume(LPVOID arg)
{
    uintptr_t id = (uintptr_t)arg;
    DWORD last[PRODUCERS] = { 0 };

    if (id < PRODUCERS) {
        for (DWORD i = 0; i < PACKETS; i++)
            ok(PostQueuedCompletionStatus(port, i, id, NULL));
        /* One end for each consumer. */
        ok(PostQueuedCompletionStatus(port, 0, PRODUCERS, NULL));
        return 0;
    }
    for (;;) {
        OVERLAPPED *ov;
        ULONG_PTR key;
        DWORD number;

        ok(GetQueuedCompletionStatus(port, &number, &key, &ov, INFINITE));
        if (key == PRODUCERS)
            return 0;
        ok_uint(number + 1, >, last[key]);
        last[key] = number + 1;
        InterlockedIncrement(&taken[key][number]);
    }
}

TEST(race__port_gives_each_packet_once)
{
    OVERLAPPED *ov;
    ULONG_PTR key;
    DWORD number;

    memset((void *)taken, 0, sizeof(taken));
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    run(produce_or_consume);
    /* What the consumers left when they had all got their end. */
    while (GetQueuedCompletionStatus(port, &number, &key, &ov, 0))
        taken[key][number]++;
    for (int i = 0; i < PRODUCERS; i++) {
        for (int k = 0; k < PACKETS; k++)
            ok_int(taken[i][k], ==, 1);
    }
    CloseHandle(port);
}
