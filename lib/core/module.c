/* SPDX-License-Identifier: MIT */
#include "module.h"

static uint32_t objects;

void module_object_made(void)
{
    __atomic_add_fetch(&objects, 1, __ATOMIC_RELAXED);
}

/* Release, so that whoever sees 0 also sees what the objects did before they went. */
void module_object_gone(void)
{
    __atomic_sub_fetch(&objects, 1, __ATOMIC_RELEASE);
}

uint32_t module_objects(void)
{
    return __atomic_load_n(&objects, __ATOMIC_ACQUIRE);
}
