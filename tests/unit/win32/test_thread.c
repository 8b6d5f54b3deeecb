/* SPDX-License-Identifier: MIT */

/* Threads, locks, interlocked operations, WaitOnAddress: win32-surface.md 6.10. */

#include <windows.h>
#include <process.h>

#ifndef _WIN32
#include <sys/resource.h>
#endif

#include "harness.h"

#define THREADS 6

static HANDLE threads[THREADS];

static void run(LPTHREAD_START_ROUTINE function)
{
    for (uintptr_t i = 0; i < THREADS; i++)
        ok((threads[i] = CreateThread(NULL, 0, function, (LPVOID)i, 0, NULL)) != NULL);
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
}

static HANDLE hold;

static DWORD WINAPI held_thread(LPVOID arg)
{
    WaitForSingleObject(hold, INFINITE);
    return (DWORD)(uintptr_t)arg;
}

TEST(CreateThread__exit_code)
{
    HANDLE thread;
    DWORD code = 0, id = 0;

    hold = CreateEventW(NULL, TRUE, FALSE, NULL);
    thread = CreateThread(NULL, 0, held_thread, (LPVOID)0xfffffff0, 0, &id);
    ok(thread != NULL);
    ok_uint(id, !=, 0);
    ok_uint(id, !=, GetCurrentThreadId());
    ok(GetExitCodeThread(thread, &code));
    ok_uint(code, ==, STILL_ACTIVE);
    ok_uint(WaitForSingleObject(thread, 0), ==, WAIT_TIMEOUT);
    SetEvent(hold);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code));
    ok_uint(code, ==, 0xfffffff0);
    ok(CloseHandle(thread));
    CloseHandle(hold);
}

static LONG closed_ran;

static DWORD WINAPI closed_thread(LPVOID arg)
{
    (void)arg;
    WaitForSingleObject(hold, INFINITE);
    InterlockedIncrement(&closed_ran);
    return 0;
}

TEST(CreateThread__closed_while_it_runs)
{
    closed_ran = 0;
    hold = CreateEventW(NULL, TRUE, FALSE, NULL);
    ok(CloseHandle(CreateThread(NULL, 65536, closed_thread, NULL, 0, NULL)));
    SetEvent(hold);
    ok_eventually(InterlockedExchangeAdd(&closed_ran, 0) == 1);
}

/* What a function with large variables needs. */
static DWORD WINAPI use_stack(LPVOID arg)
{
    volatile char room[512 * 1024];

    for (size_t i = sizeof(room); i >= 512; i -= 512)
        room[i - 512] = 1;
    return room[0] + (DWORD)(uintptr_t)arg;
}

static unsigned __stdcall begun_use_stack(void *arg)
{
    return use_stack(arg);
}

/* A size is what is committed at the start; without the flag the reserve stays that of the program, 1 MiB by default. */
TEST(CreateThread__a_small_stack_grows)
{
    DWORD code = 0;
    HANDLE thread = CreateThread(NULL, 1, use_stack, (LPVOID)6, 0, NULL);

    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == 7);
    CloseHandle(thread);
    thread = (HANDLE)_beginthreadex(NULL, 65536, begun_use_stack, (void *)8, 0, NULL);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == 9);
    CloseHandle(thread);
}

static unsigned __stdcall begun_thread(void *arg)
{
    return (unsigned)(uintptr_t)arg + 1;
}

static unsigned __stdcall ended_thread(void *arg)
{
    (void)arg;
    _endthreadex(77);
    return 1;
}

TEST(_beginthreadex__exit_code)
{
    unsigned id = 0;
    HANDLE thread = (HANDLE)_beginthreadex(NULL, 0, begun_thread, (void *)41, 0, &id);
    DWORD code = 0;

    ok(thread != NULL && id != 0);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == 42);
    CloseHandle(thread);
    thread = (HANDLE)_beginthreadex(NULL, 0, ended_thread, NULL, 0, &id);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == 77);
    CloseHandle(thread);
}

TEST(thread__priority_and_affinity)
{
    DWORD_PTR old;

    ok(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL));
    ok_int(GetThreadPriority(GetCurrentThread()), ==, THREAD_PRIORITY_BELOW_NORMAL);
    ok(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_NORMAL));
    ok(!SetThreadPriority(NULL, THREAD_PRIORITY_NORMAL));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    old = SetThreadAffinityMask(GetCurrentThread(), 1);
    ok_uint(old, !=, 0);
    ok_uint(SetThreadAffinityMask(GetCurrentThread(), old), ==, 1);
    ok_uint(SetThreadAffinityMask(GetCurrentThread(), 0), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
}

#ifndef _WIN32 /* The level of the system behind it. */
static DWORD WINAPI lower_itself(LPVOID arg)
{
    (void)arg;
    ok(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST));
    return (DWORD)getpriority(PRIO_PROCESS, GetCurrentThreadId());
}

TEST(SetThreadPriority__counts_from_the_level_of_the_start)
{
    int base = getpriority(PRIO_PROCESS, 0);
    DWORD code = 0;
    HANDLE thread;

    ok_int(base, <=, 9);
    for (int i = 0; i < 2; i++) {
        ok(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL));
        ok_int(getpriority(PRIO_PROCESS, 0), ==, base + 5);
    }
    thread = CreateThread(NULL, 0, lower_itself, NULL, 0, NULL);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code));
    ok_int(code, ==, base + 10);
    CloseHandle(thread);
}
#endif

TEST(process__ids)
{
    ok_uint(GetCurrentProcessId(), !=, 0);
    ok(GetCurrentProcess() == (HANDLE)(LONG_PTR)-1);
    ok(GetCurrentThread() == (HANDLE)(LONG_PTR)-2);
    YieldProcessor();
    SwitchToThread();
    Sleep(0);
    Sleep(1);
}

static CRITICAL_SECTION section;
static unsigned guarded;

static DWORD WINAPI enter_nested(LPVOID arg)
{
    for (int i = 0; i < 2000; i++) {
        if ((uintptr_t)arg % 2) {
            while (!TryEnterCriticalSection(&section))
                harness_yield();
        } else {
            EnterCriticalSection(&section);
        }
        EnterCriticalSection(&section);
        guarded++;
        LeaveCriticalSection(&section);
        guarded++;
        LeaveCriticalSection(&section);
    }
    return 0;
}

static DWORD WINAPI try_enter(LPVOID arg)
{
    (void)arg;
    return (DWORD)TryEnterCriticalSection(&section);
}

static DWORD result_of(LPTHREAD_START_ROUTINE function)
{
    HANDLE thread = CreateThread(NULL, 0, function, NULL, 0, NULL);
    DWORD code = 99;

    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}

TEST(CRITICAL_SECTION__is_recursive_and_owned)
{
    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    ok_int(TryEnterCriticalSection(&section), ==, TRUE);
    ok_uint(result_of(try_enter), ==, FALSE);
    LeaveCriticalSection(&section);
    ok_uint(result_of(try_enter), ==, FALSE);
    LeaveCriticalSection(&section);
    guarded = 0;
    run(enter_nested);
    ok_uint(guarded, ==, THREADS * 2000 * 2);
    DeleteCriticalSection(&section);
    ok_int(InitializeCriticalSectionAndSpinCount(&section, 4000), ==, TRUE);
    EnterCriticalSection(&section);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
}

/* Zeroed memory is a free lock: no initialisation. */
static SRWLOCK lock;
static unsigned value[2];
static LONG readers_wrong;

static DWORD WINAPI read_or_write(LPVOID arg)
{
    for (int i = 0; i < 2000; i++) {
        if ((uintptr_t)arg < 3) {
            AcquireSRWLockExclusive(&lock);
            value[0]++;
            value[1]++;
            ReleaseSRWLockExclusive(&lock);
        } else {
            AcquireSRWLockShared(&lock);
            if (value[0] != value[1])
                InterlockedIncrement(&readers_wrong);
            ReleaseSRWLockShared(&lock);
        }
    }
    return 0;
}

static DWORD WINAPI try_shared(LPVOID arg)
{
    (void)arg;
    if (!TryAcquireSRWLockShared(&lock))
        return 0;
    ReleaseSRWLockShared(&lock);
    return 1;
}

static DWORD WINAPI try_exclusive(LPVOID arg)
{
    (void)arg;
    if (!TryAcquireSRWLockExclusive(&lock))
        return 0;
    ReleaseSRWLockExclusive(&lock);
    return 1;
}

TEST(SRWLOCK__in_zeroed_memory)
{
    ok_uint(sizeof(lock), ==, sizeof(void *));
    memset(&lock, 0, sizeof(lock));
    AcquireSRWLockShared(&lock);
    ok_uint(result_of(try_shared), ==, 1);
    ok_uint(result_of(try_exclusive), ==, 0);
    ReleaseSRWLockShared(&lock);
    AcquireSRWLockExclusive(&lock);
    ok_uint(result_of(try_shared), ==, 0);
    ok_uint(result_of(try_exclusive), ==, 0);
    ReleaseSRWLockExclusive(&lock);
    ok_uint(result_of(try_exclusive), ==, 1);
    value[0] = value[1] = 0;
    readers_wrong = 0;
    run(read_or_write);
    ok_uint(value[0], ==, 3 * 2000);
    ok_int(readers_wrong, ==, 0);
}

static CONDITION_VARIABLE condition;
static unsigned stock, consumed;

static DWORD WINAPI consume(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++) {
        AcquireSRWLockExclusive(&lock);
        while (stock == 0)
            ok(SleepConditionVariableSRW(&condition, &lock, INFINITE, 0));
        stock--;
        consumed++;
        ReleaseSRWLockExclusive(&lock);
    }
    return 0;
}

TEST(CONDITION_VARIABLE__in_zeroed_memory)
{
    memset(&condition, 0, sizeof(condition));
    memset(&lock, 0, sizeof(lock));
    stock = consumed = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, consume, (LPVOID)i, 0, NULL);
    for (int i = 0; i < THREADS * 500; i++) {
        AcquireSRWLockExclusive(&lock);
        stock++;
        ReleaseSRWLockExclusive(&lock);
        if (i % 2)
            WakeConditionVariable(&condition);
        else
            WakeAllConditionVariable(&condition);
    }
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(consumed, ==, THREADS * 500);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);

    InitializeCriticalSection(&section);
    EnterCriticalSection(&section);
    ok_int(SleepConditionVariableCS(&condition, &section, 5), ==, FALSE);
    ok_uint(GetLastError(), ==, ERROR_TIMEOUT);
    ok_uint(result_of(try_enter), ==, FALSE);
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
}

TEST(Interlocked__results)
{
    LONG a = 5;
    LONG64 b = 5;
    PVOID p = &a;

    ok_int(InterlockedIncrement(&a), ==, 6);
    ok_int(InterlockedDecrement(&a), ==, 5);
    ok_int(InterlockedExchange(&a, 9), ==, 5);
    ok_int(InterlockedExchangeAdd(&a, 2), ==, 9);
    ok_int(a, ==, 11);
    ok_int(InterlockedCompareExchange(&a, 1, 12), ==, 11);
    ok_int(a, ==, 11);
    ok_int(InterlockedCompareExchange(&a, 1, 11), ==, 11);
    ok_int(a, ==, 1);
    a = 0x7fffffff;
    ok_int(InterlockedIncrement(&a), ==, -0x7fffffff - 1);

    ok_int(InterlockedIncrement64(&b), ==, 6);
    ok_int(InterlockedDecrement64(&b), ==, 5);
    ok_int(InterlockedExchange64(&b, 1ll << 40), ==, 5);
    ok_int(InterlockedExchangeAdd64(&b, 1), ==, 1ll << 40);
    ok_int(InterlockedAdd64(&b, 1), ==, (1ll << 40) + 2);
    ok_int(InterlockedCompareExchange64(&b, 3, (1ll << 40) + 2), ==, (1ll << 40) + 2);
    ok_int(b, ==, 3);

    ok(InterlockedCompareExchangePointer(&p, &b, NULL) == &a);
    ok(InterlockedCompareExchangePointer(&p, &b, &a) == &a);
    ok(InterlockedExchangePointer(&p, NULL) == &b);
    ok(p == NULL);
}

/* mingw-w64's headers lack the name. */
#if !defined(_WIN32) && defined(__LP64__)
TEST(InterlockedCompareExchange128__high_and_low)
{
    LONG64 target[2] __attribute__((aligned(16))) = { 1, 2 }, expected[2] = { 1, 3 };

    ok_uint(InterlockedCompareExchange128(target, 20, 10, expected), ==, 0);
    ok(expected[0] == 1 && expected[1] == 2 && target[0] == 1 && target[1] == 2);
    ok_uint(InterlockedCompareExchange128(target, 20, 10, expected), ==, 1);
    ok(target[0] == 10 && target[1] == 20);
    ok(expected[0] == 1 && expected[1] == 2);
}
#endif

static volatile LONG64 word64;
static volatile LONG word32;

static DWORD WINAPI wait_on_words(LPVOID arg)
{
    LONG64 zero64 = 0;
    LONG zero32 = 0;

    (void)arg;
    while (InterlockedCompareExchange64(&word64, 0, 0) == 0)
        ok(WaitOnAddress(&word64, &zero64, 8, INFINITE));
    while (InterlockedCompareExchange(&word32, 0, 0) == 0)
        ok(WaitOnAddress(&word32, &zero32, 4, INFINITE));
    return 0;
}

/* A change in the upper half only is one. */
TEST(WaitOnAddress__wakes)
{
    LONG64 other = 1;
    BYTE byte = 0, zero = 0;

    word64 = 0;
    word32 = 0;
    ok_int(WaitOnAddress(&word64, &other, 8, INFINITE), ==, TRUE);
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, wait_on_words, (LPVOID)i, 0, NULL);
    Sleep(5);
    InterlockedExchange64(&word64, 1ll << 40);
    WakeByAddressAll((PVOID)&word64);
    Sleep(5);
    InterlockedExchange(&word32, 1);
    for (int i = 0; i < THREADS; i++)
        WakeByAddressSingle((PVOID)&word32);
    ok_uint(WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    for (int i = 0; i < THREADS; i++)
        CloseHandle(threads[i]);
    ok_int(WaitOnAddress(&byte, &zero, 1, 3), ==, FALSE);
    ok_uint(GetLastError(), ==, ERROR_TIMEOUT);
    ok_int(WaitOnAddress(&byte, &zero, 3, 0), ==, FALSE);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
}
