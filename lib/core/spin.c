/* SPDX-License-Identifier: MIT */
#include "spin.h"

#include <stddef.h>

#include "tunable.h"

#define NS_PER_US 1000ull

static void (*registered)(void);

uint64_t spin_ns(void)
{
    return __atomic_load_n(&registered, __ATOMIC_ACQUIRE) ? tunables()->spin_us * NS_PER_US : 0;
}

void spin_look(void)
{
    __atomic_load_n(&registered, __ATOMIC_ACQUIRE)();
}

void spin_register(void (*look)(void))
{
    __atomic_store_n(&registered, look, __ATOMIC_RELEASE);
}
