/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_GATE_H
#define NDVERBS_GATE_H

/* A lock in one 32-bit word whose free state is one of two: open, nothing stands in the way of a thread that has work of the
 * usual kind only; or shut, whoever takes it has to look first. So the usual work costs one addition that takes the lock if it is
 * free and open, and one subtraction that frees it again, where a compare-and-swap and a look at flags would cost five
 * instructions more. Who holds the lock decides what it is left as. Not recursive.
 *
 * The word is negative while the lock is free: -1 open, about GATE_SHUT shut. It is 0 and more while it is held: 0 nobody else
 * came, about GATE_SLEEPERS somebody may sleep. A thread that fails to pass leaves the word one too high: a shut gate stays shut
 * with that, and the holder of a disturbed lock frees it by setting the word instead of counting it down. */

#include <stdbool.h>
#include <stdint.h>

#include "step.h"

struct gate {
    int32_t word;
};

enum {
    GATE_OPEN = -1,
    GATE_SHUT = -0x20000000,
    GATE_SLEEPERS = 0x40000000, /* at least half is left of it when a holder has begun to free the lock */
};

/* Out of line (sleep.c). gate_leave: what is left to do where gate_free says false. */
void gate_lock_slow(struct gate *gate);
void gate_leave(struct gate *gate, int32_t state);

static inline void gate_init(struct gate *gate)
{
    __atomic_store_n(&gate->word, GATE_OPEN, __ATOMIC_RELAXED);
}

/* Takes the lock if it is free and open. Who fails must take it by gate_lock: failures that nobody follows up would add up. */
static inline bool gate_pass(struct gate *gate)
{
    step_point();
    return __builtin_expect(__atomic_add_fetch(&gate->word, 1, __ATOMIC_ACQUIRE) == 0, 1);
}

/* Takes the lock if it is free. */
static inline bool gate_trylock(struct gate *gate)
{
    int32_t word = __atomic_load_n(&gate->word, __ATOMIC_RELAXED);

    return word < 0 && __atomic_compare_exchange_n(&gate->word, &word, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void gate_lock(struct gate *gate)
{
    step_point();
    if (__builtin_expect(!gate_trylock(gate), 0))
        gate_lock_slow(gate);
}

/* The lock's holder: frees it as GATE_OPEN or GATE_SHUT, and then its memory may be gone. False: somebody came meanwhile, it is still
 * held, and gate_leave has to free it. */
static inline bool gate_free(struct gate *gate, int32_t state)
{
    step_point();
    return __builtin_expect(__atomic_add_fetch(&gate->word, state, __ATOMIC_RELEASE) < 0, 1);
}

static inline void gate_unlock(struct gate *gate, int32_t state)
{
    if (!gate_free(gate, state))
        gate_leave(gate, state);
}

#endif
