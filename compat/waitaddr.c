/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include "wait.h"
#include "wordlock.h"

/* WaitOnAddress: waiters in a table hashed by address. A futex on the application's word would compare 4 bytes only and
 * miss a change in the upper half (win32-surface.md 6.10). */

#define BUCKET_BITS 8
static struct bucket {
    struct wordlock lock;
    struct list waiters; /* wait_entry, oldest first; initialised with the first waiter */
} buckets[1 << BUCKET_BITS];

static struct bucket *bucket_of(const volatile void *address)
{
    return &buckets[((uint32_t)((uintptr_t)address >> 2) * 2654435769u) >> (32 - BUCKET_BITS)];
}

static bool equal(const volatile void *address, const void *compare, SIZE_T size)
{
    switch (size) {
    case 1:
        return __atomic_load_n((const volatile uint8_t *)address, __ATOMIC_ACQUIRE) == *(const uint8_t *)compare;
    case 2:
        return __atomic_load_n((const volatile uint16_t *)address, __ATOMIC_ACQUIRE) == *(const uint16_t *)compare;
    case 4:
        return __atomic_load_n((const volatile uint32_t *)address, __ATOMIC_ACQUIRE) == *(const uint32_t *)compare;
    default: {
        uint64_t value;

        memcpy(&value, compare, sizeof(value));
#if UINTPTR_MAX > 0xffffffffu
        return __atomic_load_n((const volatile uint64_t *)address, __ATOMIC_ACQUIRE) == value;
#else
        return *(const volatile uint64_t *)address == value;
#endif
    }
    }
}

BOOL WINAPI WaitOnAddress(volatile VOID *address, PVOID compare, SIZE_T size, DWORD milliseconds)
{
    uint64_t deadline = milliseconds ? sleep_deadline(milliseconds) : 0;
    struct bucket *bucket = bucket_of(address);
    struct waiter *waiter = waiter_self();
    bool woken;

    if ((size != 1 && size != 2 && size != 4 && size != 8) || (uintptr_t)address % size) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    waiter_begin(waiter);
    waiter->address = (const void *)address;
    waiter->entry.waiter = waiter;
    wordlock_lock(&bucket->lock);
    if (!bucket->waiters.next)
        list_init(&bucket->waiters);
    /* The waker changes the value and then takes this lock: the change is seen here, or the waiter by it. */
    if (!equal(address, compare, size)) {
        wordlock_unlock(&bucket->lock);
        return TRUE;
    }
    if (deadline == 0) {
        wordlock_unlock(&bucket->lock);
        SetLastError(ERROR_TIMEOUT);
        return FALSE;
    }
    list_add_tail(&bucket->waiters, &waiter->entry.link);
    wordlock_unlock(&bucket->lock);

    wait_block(waiter, deadline, false);

    if (waiter_signalled(waiter))
        return TRUE;
    wordlock_lock(&bucket->lock);
    woken = waiter_signalled(waiter);
    if (!woken)
        list_del(&waiter->entry.link);
    wordlock_unlock(&bucket->lock);
    if (!woken)
        SetLastError(ERROR_TIMEOUT);
    return woken;
}

static void wake(const void *address, bool all)
{
    struct bucket *bucket = bucket_of(address);

    wordlock_lock(&bucket->lock);
    if (bucket->waiters.next) {
        list_for_each_safe (node, &bucket->waiters) {
            struct waiter *waiter = list_entry(node, struct wait_entry, link)->waiter;

            if (waiter->address != address)
                continue;
            list_del(node);
            waiter_assign(waiter);
            waiter_wake(waiter);
            if (!all)
                break;
        }
    }
    wordlock_unlock(&bucket->lock);
}

VOID WINAPI WakeByAddressSingle(PVOID address)
{
    wake(address, false);
}

VOID WINAPI WakeByAddressAll(PVOID address)
{
    wake(address, true);
}
