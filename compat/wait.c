/* SPDX-License-Identifier: MIT */
#include "wait.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Initial-exec: one load instead of a call in every wait; the few bytes fit the loader's reserve also under dlopen. */
#define THREAD_LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))

THREAD_LOCAL struct waiter *self;

static struct wordlock pool_lock;
static struct waiter *pool;       /* waiters of threads that ended */
static struct waiter *all_blocks; /* keeps every waiter reachable for leak checkers */
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static const struct wait_driver *driver;

uint32_t wait_unvisited;

static void waiter_recycle(void *arg)
{
    struct waiter *waiter = arg;

    /* A destructor of the application that runs later and waits gets a waiter anew. */
    self = NULL;
    wordlock_lock(&pool_lock);
    waiter->next_free = pool;
    pool = waiter;
    wordlock_unlock(&pool_lock);
}

static void exit_key_make(void)
{
    if (pthread_key_create(&exit_key, waiter_recycle) != 0)
        abort();
}

/* Whole blocks, never freed: see struct waiter. The first of a block links the blocks. */
#define BLOCK 16

static struct waiter *waiter_make(void)
{
    struct waiter *block, *waiter;

    pthread_once(&exit_once, exit_key_make);
    wordlock_lock(&pool_lock);
    if (!pool) {
        block = calloc(BLOCK, sizeof(*block));
        if (!block) {
            fprintf(stderr, "ndverbs: no memory for a waiting thread\n");
            abort();
        }
        block[0].next_free = all_blocks;
        all_blocks = block;
        for (int i = 1; i < BLOCK; i++) {
            list_init(&block[i].role_link);
            list_init(&block[i].entry.link);
            block[i].next_free = pool;
            pool = &block[i];
        }
    }
    waiter = pool;
    pool = waiter->next_free;
    wordlock_unlock(&pool_lock);
    waiter->forbidden = false;
    self = waiter;
    pthread_setspecific(exit_key, waiter);
    return waiter;
}

struct waiter *waiter_self(void)
{
    return __builtin_expect(self != NULL, 1) ? self : waiter_make();
}

struct waiter *waiter_driving_here(void)
{
    return self && __atomic_load_n(&self->driving, __ATOMIC_RELAXED) ? self : NULL;
}

/* `driving` is read after the result was stored, and the driver stores it before it looks for a result: one of the two
 * sees the other. A stale view costs a futile kick or futex call. */
void waiter_wake(struct waiter *waiter)
{
    const struct wait_driver *ops;

    if (waiter == self)
        return;
    step_point();
    if (__atomic_load_n(&waiter->driving, __ATOMIC_SEQ_CST)) {
        ops = __atomic_load_n(&driver, __ATOMIC_ACQUIRE);
        ops->kick();
    } else {
        futex_wake(&waiter->state, 1);
    }
}

void waiter_wake_parked(struct waiter *waiter)
{
    futex_wake(&waiter->state, 1);
}

void waiter_park(struct waiter *waiter, uint64_t deadline)
{
    while (__atomic_load_n(&waiter->state, __ATOMIC_SEQ_CST) == 0) {
        if (deadline != SLEEP_FOREVER && sleep_now() >= deadline)
            return;
        futex_wait(SLEEP_WAIT, &waiter->state, 0, deadline);
    }
}

void wait_block(struct waiter *waiter, uint64_t deadline, bool interested)
{
    const struct wait_driver *ops = interested ? __atomic_load_n(&driver, __ATOMIC_ACQUIRE) : NULL;

    step_point();
    assert(!waiter->forbidden && "a loop callback waits");
    if (ops)
        ops->wait(waiter, deadline);
    else
        waiter_park(waiter, deadline);
}

void wait_forbid(bool forbid)
{
    waiter_self()->forbidden = forbid;
}

void wait_register(const struct wait_driver *ops)
{
    __atomic_store_n(&driver, ops, __ATOMIC_RELEASE);
}

struct wait_entry *wait_entry_pick_locked(struct object *object)
{
    struct waiter *here = waiter_driving_here();

    if (here) {
        list_for_each (node, &object->waiters) {
            struct wait_entry *entry = list_entry(node, struct wait_entry, link);

            if (entry->waiter == here)
                return entry;
        }
    }
    return list_entry(object->waiters.next, struct wait_entry, link);
}
