/* SPDX-License-Identifier: MIT */

/* Allocation failures, by the linker's --wrap, so that only the test program's own objects are concerned. */

#include "fake_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);

/* 0: none pending. Atomic, not under the lock: allocations are made with any lock held. */
static _Thread_local unsigned fail_own;
static atomic_uint fail_any;
static atomic_ulong allocations;

static bool fails(void)
{
    unsigned n = atomic_load(&fail_any);
    bool fail = false;

    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    if (fail_own && --fail_own == 0)
        fail = true;
    while (n && !atomic_compare_exchange_weak(&fail_any, &n, n - 1))
        ;
    if (n == 1)
        fail = true;
    if (fail)
        errno = ENOMEM;
    return fail;
}

void fake_alloc_fail(unsigned nth)
{
    fail_own = nth;
}

void fake_alloc_fail_any(unsigned nth)
{
    atomic_store(&fail_any, nth);
}

bool fake_alloc_pending(void)
{
    return fail_own != 0 || atomic_load(&fail_any) != 0;
}

void fake_alloc_clear(void)
{
    fail_own = 0;
    atomic_store(&fail_any, 0);
}

unsigned long fake_alloc_count(void)
{
    return atomic_load(&allocations);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
    return fails() ? NULL : __real_strndup(text, length);
}

void *fake_malloc(size_t size)
{
    void *memory = __real_calloc(1, size);

    if (!memory)
        abort();
    return memory;
}

void fake_free(void *memory)
{
    free(memory);
}

void *fake_copy(const void *data, size_t size)
{
    void *copy = fake_malloc(size);

    memcpy(copy, data, size);
    return copy;
}
