/* SPDX-License-Identifier: MIT */

/* Locks, condition variables and WaitOnAddress (win32-surface.md 4.2, 6.10). */

#include <windows.h>

#include "harness.h"
#include "sleep.h"

#define THREADS 8
#define ROUNDS  20000

static CRITICAL_SECTION critical;
static SRWLOCK srw;
static CONDITION_VARIABLE condition;
static uint64_t counter, readers_inside, writers_inside;

static void run_threads(LPTHREAD_START_ROUTINE function)
{
    HANDLE threads[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, function, (LPVOID)i, 0, NULL);
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
}

static DWORD WINAPI critical_count(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        EnterCriticalSection(&critical);
        if (i % 3 == 0)
            EnterCriticalSection(&critical);
        counter++;
        if (i % 3 == 0)
            LeaveCriticalSection(&critical);
        LeaveCriticalSection(&critical);
    }
    return 0;
}

TEST(critical_section__excludes)
{
    InitializeCriticalSection(&critical);
    run_threads(critical_count);
    ok_uint(counter, ==, THREADS * ROUNDS);
    DeleteCriticalSection(&critical);
}

/* Zeroed memory works as well. */
static DWORD WINAPI critical_try(LPVOID arg)
{
    *(BOOL *)arg = TryEnterCriticalSection(&critical);
    return 0;
}

TEST(critical_section__recursion_and_try)
{
    BOOL entered = TRUE;
    HANDLE thread;

    ok_int(TryEnterCriticalSection(&critical), ==, 1);
    ok_int(TryEnterCriticalSection(&critical), ==, 1);
    LeaveCriticalSection(&critical);
    thread = CreateThread(NULL, 0, critical_try, &entered, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    ok_int(entered, ==, 0);
    LeaveCriticalSection(&critical);
    thread = CreateThread(NULL, 0, critical_try, &entered, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
    ok_int(entered, ==, 1);
    ok(InitializeCriticalSectionAndSpinCount(&critical, 4000));
    ok(InitializeCriticalSectionEx(&critical, 10, 0));
}

static DWORD WINAPI srw_count(LPVOID arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (((uintptr_t)arg + (unsigned)i) % 4 == 0) {
            AcquireSRWLockExclusive(&srw);
            ok_uint(__atomic_add_fetch(&writers_inside, 1, __ATOMIC_RELAXED), ==, 1);
            ok_uint(__atomic_load_n(&readers_inside, __ATOMIC_RELAXED), ==, 0);
            counter++;
            __atomic_sub_fetch(&writers_inside, 1, __ATOMIC_RELAXED);
            ReleaseSRWLockExclusive(&srw);
        } else {
            AcquireSRWLockShared(&srw);
            __atomic_add_fetch(&readers_inside, 1, __ATOMIC_RELAXED);
            ok_uint(__atomic_load_n(&writers_inside, __ATOMIC_RELAXED), ==, 0);
            __atomic_sub_fetch(&readers_inside, 1, __ATOMIC_RELAXED);
            ReleaseSRWLockShared(&srw);
        }
    }
    return 0;
}

TEST(srw__excludes)
{
    InitializeSRWLock(&srw);
    run_threads(srw_count);
    ok_uint(counter, ==, THREADS * ROUNDS / 4);
    ok_ptr(srw.Ptr, ==, NULL);
}

TEST(srw__try)
{
    ok(TryAcquireSRWLockShared(&srw));
    ok(TryAcquireSRWLockShared(&srw));
    ok(!TryAcquireSRWLockExclusive(&srw));
    ReleaseSRWLockShared(&srw);
    ReleaseSRWLockShared(&srw);
    ok(TryAcquireSRWLockExclusive(&srw));
    ok(!TryAcquireSRWLockShared(&srw));
    ok(!TryAcquireSRWLockExclusive(&srw));
    ReleaseSRWLockExclusive(&srw);
    ok_ptr(srw.Ptr, ==, NULL);
}

/* A bounded buffer of one: each side waits for the other. */
static uint64_t slot, taken;

static DWORD WINAPI condition_cs(LPVOID arg)
{
    for (int i = 0; i < 2000; i++) {
        EnterCriticalSection(&critical);
        if ((uintptr_t)arg % 2) {
            while (slot)
                ok(SleepConditionVariableCS(&condition, &critical, INFINITE));
            slot = 1;
        } else {
            while (!slot)
                ok(SleepConditionVariableCS(&condition, &critical, INFINITE));
            slot = 0;
            taken++;
        }
        WakeAllConditionVariable(&condition);
        LeaveCriticalSection(&critical);
    }
    return 0;
}

TEST(condition__critical_section)
{
    InitializeConditionVariable(&condition);
    run_threads(condition_cs);
    ok_uint(taken, ==, THREADS / 2 * 2000);
}

static DWORD WINAPI condition_srw(LPVOID arg)
{
    AcquireSRWLockExclusive(&srw);
    while (!slot)
        ok(SleepConditionVariableSRW(&condition, &srw, INFINITE, 0));
    slot--;
    taken++;
    ReleaseSRWLockExclusive(&srw);
    (void)arg;
    return 0;
}

static DWORD WINAPI condition_feed(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < THREADS; i++) {
        AcquireSRWLockExclusive(&srw);
        slot++;
        ReleaseSRWLockExclusive(&srw);
        WakeConditionVariable(&condition);
    }
    return 0;
}

TEST(condition__srw_wake_one_by_one)
{
    HANDLE feeder = CreateThread(NULL, 0, condition_feed, NULL, 0, NULL);

    run_threads(condition_srw);
    ok_uint(taken, ==, THREADS);
    WaitForSingleObject(feeder, INFINITE);
    CloseHandle(feeder);
}

TEST(condition__time_out)
{
    uint64_t start = sleep_now();

    EnterCriticalSection(&critical);
    ok_int(SleepConditionVariableCS(&condition, &critical, 4), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_TIMEOUT);
    ok_uint(sleep_now() - start, >=, 4000000);
    LeaveCriticalSection(&critical);
    AcquireSRWLockShared(&srw);
    ok(!SleepConditionVariableSRW(&condition, &srw, 2, CONDITION_VARIABLE_LOCKMODE_SHARED));
    ReleaseSRWLockShared(&srw);
    ok_ptr(srw.Ptr, ==, NULL);
}

/* WaitOnAddress. */

static volatile ULONGLONG wide;
static uint32_t woken;

static DWORD WINAPI wait_on_wide(LPVOID arg)
{
    ULONGLONG undesired = 0;

    (void)arg;
    while (__atomic_load_n(&wide, __ATOMIC_ACQUIRE) == 0)
        ok(WaitOnAddress(&wide, &undesired, sizeof(undesired), INFINITE));
    __atomic_add_fetch(&woken, 1, __ATOMIC_RELEASE);
    return 0;
}

/* A change of the upper half only is seen. */
TEST(WaitOnAddress__eight_bytes_wake_all)
{
    uint64_t parked = sleep_counted(SLEEP_WAIT);
    HANDLE threads[3];

    for (int i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, wait_on_wide, NULL, 0, NULL);
    ok_eventually(sleep_counted(SLEEP_WAIT) >= parked + 3);
    __atomic_store_n(&wide, 1ull << 40, __ATOMIC_RELEASE);
    WakeByAddressSingle((PVOID)&wide);
    ok_eventually(__atomic_load_n(&woken, __ATOMIC_ACQUIRE) == 1);
    WakeByAddressAll((PVOID)&wide);
    for (int i = 0; i < 3; i++) {
        ok_uint(WaitForSingleObject(threads[i], INFINITE), ==, WAIT_OBJECT_0);
        CloseHandle(threads[i]);
    }
}

TEST(WaitOnAddress__sizes)
{
    uint64_t value = 0x0807060504030201ull, same = value, different = ~value;

    for (SIZE_T size = 1; size <= 8; size *= 2) {
        ok(WaitOnAddress(&value, &different, size, INFINITE));
        ok(!WaitOnAddress(&value, &same, size, 0));
        ok_uint(GetLastError(), ==, ERROR_TIMEOUT);
        ok(!WaitOnAddress(&value, &same, size, 2));
        ok_uint(GetLastError(), ==, ERROR_TIMEOUT);
    }
    ok(!WaitOnAddress(&value, &same, 3, 0));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    WakeByAddressAll(&value);
}
