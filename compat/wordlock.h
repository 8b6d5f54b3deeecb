/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_WORDLOCK_H
#define NDVERBS_WORDLOCK_H

/* A lock in one 32-bit word: one compare-and-swap when free, a futex when contended. All-zero is the unlocked state, no
 * destruction. Not recursive. Leaf lock of compat, queue and CQ lock of core (design.md section 4). The word is 0 free,
 * 1 held, 2 held and somebody may sleep. */

#include <stdbool.h>
#include <stdint.h>

#include "step.h"

struct wordlock {
    uint32_t word;
};

#define WORDLOCK_INIT \
    {                 \
        0             \
    }

/* Contended halves, out of line (sleep.c). wordlock_wake: the word is 1 and held by the caller; frees it and wakes one. */
void wordlock_lock_slow(struct wordlock *lock);
void wordlock_wake(struct wordlock *lock);

static inline void wordlock_init(struct wordlock *lock)
{
    __atomic_store_n(&lock->word, 0, __ATOMIC_RELAXED);
}

static inline bool wordlock_trylock(struct wordlock *lock)
{
    uint32_t free_word = 0;

    return __atomic_compare_exchange_n(&lock->word, &free_word, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void wordlock_lock(struct wordlock *lock)
{
    step_point();
    if (__builtin_expect(!wordlock_trylock(lock), 0))
        wordlock_lock_slow(lock);
}

/* From 1 the word becomes 0 and the lock is free; from 2 it becomes 1, which is still held, and the rest is out of line.
 * The lock's memory may be freed by the next holder as soon as the word is 0: nothing of ours reads it later. */
static inline void wordlock_unlock(struct wordlock *lock)
{
    if (__builtin_expect(__atomic_sub_fetch(&lock->word, 1, __ATOMIC_RELEASE) != 0, 0))
        wordlock_wake(lock);
}

#endif
