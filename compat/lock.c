/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include "sleep.h"

/* Locks of the application sleep on words of their own and never drive the loop (design.md 2 rule 6). All-zero memory is
 * an initialised lock of each kind: applications rely on it (win32-surface.md 2, 6.10). */

static inline uint32_t *word_of(void *lock)
{
    return lock;
}

static inline uint32_t word_load(uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool word_replace(uint32_t *word, uint32_t *old, uint32_t new, int order)
{
    return __atomic_compare_exchange_n(word, old, new, false, order, __ATOMIC_RELAXED);
}

/* Critical section: LockCount is the word (0 free, 1 held, 2 held and somebody may sleep). */

#define CRITICAL_SPINS 100

static HANDLE critical_me(void)
{
    return (HANDLE)(ULONG_PTR)GetCurrentThreadId();
}

static bool critical_owned(LPCRITICAL_SECTION lock)
{
    return __atomic_load_n(&lock->OwningThread, __ATOMIC_RELAXED) == critical_me();
}

BOOL WINAPI InitializeCriticalSectionEx(LPCRITICAL_SECTION lock, DWORD spin_count, DWORD flags)
{
    (void)flags;
    memset(lock, 0, sizeof(*lock));
    lock->SpinCount = spin_count;
    return TRUE;
}

VOID WINAPI InitializeCriticalSection(LPCRITICAL_SECTION lock)
{
    InitializeCriticalSectionEx(lock, 0, 0);
}

BOOL WINAPI InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lock, DWORD spin_count)
{
    return InitializeCriticalSectionEx(lock, spin_count, 0);
}

VOID WINAPI DeleteCriticalSection(LPCRITICAL_SECTION lock)
{
    memset(lock, 0, sizeof(*lock));
}

static void critical_taken(LPCRITICAL_SECTION lock)
{
    __atomic_store_n(&lock->OwningThread, critical_me(), __ATOMIC_RELAXED);
    lock->RecursionCount = 1;
}

BOOL WINAPI TryEnterCriticalSection(LPCRITICAL_SECTION lock)
{
    uint32_t old = 0;

    if (critical_owned(lock)) {
        lock->RecursionCount++;
        return TRUE;
    }
    if (!word_replace(word_of(&lock->LockCount), &old, 1, __ATOMIC_ACQUIRE))
        return FALSE;
    critical_taken(lock);
    return TRUE;
}

VOID WINAPI EnterCriticalSection(LPCRITICAL_SECTION lock)
{
    uint32_t *word = word_of(&lock->LockCount);

    if (TryEnterCriticalSection(lock))
        return;
    for (ULONG_PTR i = lock->SpinCount ? lock->SpinCount : CRITICAL_SPINS; i > 0; i--) {
        if (word_load(word) == 0 && TryEnterCriticalSection(lock))
            return;
        YieldProcessor();
    }
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(SLEEP_WORD, word, 2, SLEEP_FOREVER);
    critical_taken(lock);
}

VOID WINAPI LeaveCriticalSection(LPCRITICAL_SECTION lock)
{
    uint32_t *word = word_of(&lock->LockCount);

    if (--lock->RecursionCount > 0)
        return;
    __atomic_store_n(&lock->OwningThread, NULL, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(word, 1);
}

/* Reader-writer lock: one word in the pointer. A sleeper keeps new readers out, so that writers get their turn; the
 * release that frees the lock wakes all sleepers. */

#define SRW_WRITER  1u
#define SRW_WAITING 2u
#define SRW_READER  4u

VOID WINAPI InitializeSRWLock(PSRWLOCK lock)
{
    lock->Ptr = NULL;
}

BOOLEAN WINAPI TryAcquireSRWLockExclusive(PSRWLOCK lock)
{
    uint32_t old = 0;

    return word_replace(word_of(lock), &old, SRW_WRITER, __ATOMIC_ACQUIRE);
}

BOOLEAN WINAPI TryAcquireSRWLockShared(PSRWLOCK lock)
{
    uint32_t old = word_load(word_of(lock));

    while (!(old & (SRW_WRITER | SRW_WAITING))) {
        if (word_replace(word_of(lock), &old, old + SRW_READER, __ATOMIC_ACQUIRE))
            return TRUE;
    }
    return FALSE;
}

static void srw_acquire(PSRWLOCK lock, BOOLEAN (*attempt)(PSRWLOCK), uint32_t barred)
{
    uint32_t *word = word_of(lock), old;

    while (!attempt(lock)) {
        old = word_load(word);
        /* Open again since the attempt. */
        if (!(old & barred))
            continue;
        if (!(old & SRW_WAITING) && !word_replace(word, &old, old | SRW_WAITING, __ATOMIC_RELAXED))
            continue;
        futex_wait(SLEEP_WORD, word, old | SRW_WAITING, SLEEP_FOREVER);
    }
}

VOID WINAPI AcquireSRWLockExclusive(PSRWLOCK lock)
{
    srw_acquire(lock, TryAcquireSRWLockExclusive, UINT32_MAX);
}

VOID WINAPI AcquireSRWLockShared(PSRWLOCK lock)
{
    srw_acquire(lock, TryAcquireSRWLockShared, SRW_WRITER | SRW_WAITING);
}

VOID WINAPI ReleaseSRWLockExclusive(PSRWLOCK lock)
{
    if (__atomic_exchange_n(word_of(lock), 0, __ATOMIC_RELEASE) & SRW_WAITING)
        futex_wake(word_of(lock), INT32_MAX);
}

VOID WINAPI ReleaseSRWLockShared(PSRWLOCK lock)
{
    uint32_t old = word_load(word_of(lock)), left;

    do {
        left = old - SRW_READER;
        if (left == SRW_WAITING)
            left = 0;
    } while (!word_replace(word_of(lock), &old, left, __ATOMIC_RELEASE));
    if (left == 0 && old & SRW_WAITING)
        futex_wake(word_of(lock), INT32_MAX);
}

/* Condition variable: a sequence in the upper bits, the lowest says that somebody may sleep. */

#define CONDITION_WAITING 1u
#define CONDITION_STEP    2u

VOID WINAPI InitializeConditionVariable(PCONDITION_VARIABLE condition)
{
    condition->Ptr = NULL;
}

VOID WINAPI WakeConditionVariable(PCONDITION_VARIABLE condition)
{
    uint32_t *word = word_of(condition);

    if (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & CONDITION_WAITING))
        return;
    __atomic_fetch_add(word, CONDITION_STEP, __ATOMIC_SEQ_CST);
    futex_wake(word, 1);
}

VOID WINAPI WakeAllConditionVariable(PCONDITION_VARIABLE condition)
{
    uint32_t *word = word_of(condition), old = __atomic_load_n(word, __ATOMIC_SEQ_CST);

    do {
        if (!(old & CONDITION_WAITING))
            return;
    } while (!word_replace(word, &old, (old + CONDITION_STEP) & ~CONDITION_WAITING, __ATOMIC_SEQ_CST));
    futex_wake(word, INT32_MAX);
}

/* The mark is set before the application's lock is released: a wake by somebody who took that lock sees it. */
static uint32_t condition_enter(PCONDITION_VARIABLE condition)
{
    return __atomic_fetch_or(word_of(condition), CONDITION_WAITING, __ATOMIC_SEQ_CST) | CONDITION_WAITING;
}

static BOOL condition_sleep(PCONDITION_VARIABLE condition, uint32_t seen, uint64_t deadline)
{
    futex_wait(SLEEP_WORD, word_of(condition), seen, deadline);
    if (word_load(word_of(condition)) == seen && deadline != SLEEP_FOREVER && sleep_now() >= deadline)
        return FALSE;
    return TRUE;
}

static BOOL condition_result(BOOL woken)
{
    if (!woken)
        SetLastError(ERROR_TIMEOUT);
    return woken;
}

BOOL WINAPI SleepConditionVariableCS(PCONDITION_VARIABLE condition, PCRITICAL_SECTION lock, DWORD milliseconds)
{
    uint32_t seen = condition_enter(condition);
    BOOL woken;

    LeaveCriticalSection(lock);
    woken = condition_sleep(condition, seen, sleep_deadline(milliseconds));
    EnterCriticalSection(lock);
    return condition_result(woken);
}

BOOL WINAPI SleepConditionVariableSRW(PCONDITION_VARIABLE condition, PSRWLOCK lock, DWORD milliseconds, ULONG flags)
{
    uint32_t seen = condition_enter(condition);
    BOOL woken;

    if (flags & CONDITION_VARIABLE_LOCKMODE_SHARED)
        ReleaseSRWLockShared(lock);
    else
        ReleaseSRWLockExclusive(lock);
    woken = condition_sleep(condition, seen, sleep_deadline(milliseconds));
    if (flags & CONDITION_VARIABLE_LOCKMODE_SHARED)
        AcquireSRWLockShared(lock);
    else
        AcquireSRWLockExclusive(lock);
    return condition_result(woken);
}
