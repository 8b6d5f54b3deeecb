/* SPDX-License-Identifier: MIT */

/* Eight threads at the same objects; most useful under thread sanitizer. */

#include <ntstatus.h>
#include <windows.h>

#include "handle.h"
#include "harness.h"
#include "overlapped.h"
#include "wordlock.h"

#define THREADS 8

static void run_threads(LPTHREAD_START_ROUTINE function)
{
    HANDLE threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, function, (LPVOID)i, 0, NULL);
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
}

/* Producers and consumers: each packet once, and in order per producer. */

#define PRODUCERS 4
#define PACKETS   5000
static HANDLE port;
static uint32_t consumed;
static uint8_t seen[PRODUCERS][PACKETS];

static DWORD WINAPI produce_or_consume(LPVOID arg)
{
    uintptr_t id = (uintptr_t)arg;

    if (id < PRODUCERS) {
        for (DWORD i = 0; i < PACKETS; i++)
            ok(PostQueuedCompletionStatus(port, i, id, NULL));
        return 0;
    }
    /* What one consumer gets of one producer comes in order. */
    uint32_t last[PRODUCERS] = { 0 };
    while (__atomic_load_n(&consumed, __ATOMIC_RELAXED) < PRODUCERS * PACKETS) {
        OVERLAPPED_ENTRY entries[7];
        ULONG removed, want = id % 2 ? 7 : 1;

        if (!GetQueuedCompletionStatusEx(port, entries, want, &removed, 5, FALSE))
            continue;
        for (ULONG i = 0; i < removed; i++) {
            ULONG_PTR producer = entries[i].lpCompletionKey;
            DWORD number = entries[i].dwNumberOfBytesTransferred;

            ok_uint(number + 1, >, last[producer]);
            last[producer] = number + 1;
            ok_uint(__atomic_exchange_n(&seen[producer][number], 1, __ATOMIC_RELAXED), ==, 0);
        }
        __atomic_add_fetch(&consumed, removed, __ATOMIC_RELAXED);
    }
    return 0;
}

TEST(race__port_producers_and_consumers)
{
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    run_threads(produce_or_consume);
    ok_uint(consumed, ==, PRODUCERS * PACKETS);
    CloseHandle(port);
}

/* A token of one auto-reset event: whoever waited has it alone. */

static HANDLE token, extra;
static uint64_t inside;

static DWORD WINAPI pass_token(LPVOID arg)
{
    HANDLE both[2] = { extra, token };

    for (int i = 0; i < 3000; i++) {
        switch (((uintptr_t)arg + (unsigned)i) % 4) {
        case 0:
            ok_uint(WaitForMultipleObjects(2, both, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 1);
            break;
        case 1:
            while (WaitForSingleObject(token, 1) != WAIT_OBJECT_0)
                ;
            break;
        case 2:
            while (WaitForMultipleObjects(1, &token, TRUE, 1) != WAIT_OBJECT_0)
                ;
            break;
        default:
            ok_uint(WaitForSingleObject(token, INFINITE), ==, WAIT_OBJECT_0);
        }
        ok_uint(inside++, ==, 0);
        inside--;
        SetEvent(token);
    }
    return 0;
}

TEST(race__token_through_all_kinds_of_waits)
{
    token = CreateEventW(NULL, FALSE, TRUE, NULL);
    extra = CreateEventW(NULL, FALSE, FALSE, NULL);
    run_threads(pass_token);
    ok_uint(WaitForSingleObject(token, 0), ==, WAIT_OBJECT_0);
    CloseHandle(token);
    CloseHandle(extra);
}

/* Dining: each thread needs two neighbouring forks at one instant. */

static HANDLE forks[THREADS];
static uint32_t fork_used[THREADS];

static DWORD WINAPI dine(LPVOID arg)
{
    uintptr_t left = (uintptr_t)arg, right = (left + 1) % THREADS;
    HANDLE mine[2] = { forks[left], forks[right] };

    for (int i = 0; i < 1000; i++) {
        ok_uint(WaitForMultipleObjects(2, mine, TRUE, INFINITE), ==, WAIT_OBJECT_0);
        ok_uint(fork_used[left]++ + fork_used[right]++, ==, 0);
        fork_used[left]--;
        fork_used[right]--;
        SetEvent(mine[0]);
        SetEvent(mine[1]);
    }
    return 0;
}

TEST(race__wait_for_all_of_shared_events)
{
    for (int i = 0; i < THREADS; i++)
        forks[i] = CreateEventW(NULL, FALSE, TRUE, NULL);
    run_threads(dine);
    for (int i = 0; i < THREADS; i++) {
        ok_uint(WaitForSingleObject(forks[i], 0), ==, WAIT_OBJECT_0);
        CloseHandle(forks[i]);
    }
}

/* Handles opened, used and closed while others use stale values of them. */

static HANDLE shared_handles[4];

static DWORD WINAPI churn(LPVOID arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < 20000; i++) {
        HANDLE *place = &shared_handles[rand_r(&seed) % 4], old;

        old = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        SetEvent(old);
        WaitForSingleObject(old, 0);
        if (rand_r(&seed) % 4 == 0) {
            old = __atomic_exchange_n(place, CreateEventW(NULL, FALSE, FALSE, NULL), __ATOMIC_ACQ_REL);
            if (old)
                ok(CloseHandle(old));
        }
    }
    return 0;
}

TEST(race__handles)
{
    run_threads(churn);
    for (int i = 0; i < 4; i++) {
        if (shared_handles[i])
            ok(CloseHandle(shared_handles[i]));
    }
    ok_uint(handle_count(), ==, 0);
}

/* Requests: half of the threads start and wait in all ways, the others complete and cancel. */

static struct file *file;
static HANDLE file_handle;
static struct wordlock lock;
static struct list pending;
static uint32_t running;

static void race_cancel(struct request *request)
{
    bool linked;

    wordlock_lock(&lock);
    linked = list_linked(&request->link);
    list_del(&request->link);
    if (linked)
        request_complete(request, STATUS_CANCELLED, 0);
    wordlock_unlock(&lock);
}

static void race_start(uintptr_t id)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    unsigned seed = (unsigned)id;

    for (int i = 0; i < 3000; i++) {
        OVERLAPPED *ov = malloc(sizeof(*ov));
        struct request *request;
        DWORD bytes;

        ov->hEvent = i % 2 ? event : NULL;
        ok_status(request_alloc(file, ov, race_cancel, NULL, &request), STATUS_SUCCESS);
        request_start(request);
        wordlock_lock(&lock);
        list_add_tail(&pending, &request->link);
        wordlock_unlock(&lock);
        switch (rand_r(&seed) % 4) {
        case 0:
            overlapped_result(ov, TRUE, NULL);
            break;
        case 1:
            while (overlapped_result(ov, FALSE, NULL) == STATUS_PENDING)
                WaitForSingleObject(event, 1);
            break;
        case 2:
            while (!GetOverlappedResultEx(file_handle, ov, &bytes, 1, FALSE) && GetLastError() == WAIT_TIMEOUT)
                ;
            break;
        default:
            CancelIoEx(file_handle, ov);
            /* Whoever completed it, nobody touches it any more. */
            ok(overlapped_result(ov, FALSE, NULL) != STATUS_PENDING);
        }
        free(ov);
    }
    CloseHandle(event);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
}

static DWORD WINAPI race_requests(LPVOID arg)
{
    uintptr_t id = (uintptr_t)arg;

    if (id % 2) {
        race_start(id);
        return 0;
    }
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        struct list *link;

        if (id == 0) {
            OVERLAPPED *ov;
            ULONG_PTR key;
            DWORD bytes;

            GetQueuedCompletionStatus(port, &bytes, &key, &ov, 1);
            continue;
        }
        wordlock_lock(&lock);
        link = list_pop(&pending);
        if (link)
            request_complete(list_entry(link, struct request, link), STATUS_SUCCESS, 1);
        wordlock_unlock(&lock);
        if (!link)
            SwitchToThread();
    }
    return 0;
}

TEST(race__requests_complete_cancel_wait)
{
    list_init(&pending);
    file = file_create();
    file_handle = file_open_handle(file, 0);
    port = CreateIoCompletionPort(file_handle, NULL, 1, 0);
    running = THREADS / 2;
    run_threads(race_requests);
    CloseHandle(port);
    CloseHandle(file_handle);
    file_unref(file);
    ok_uint(handle_count(), ==, 0);
}
