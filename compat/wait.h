/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_WAIT_H
#define NDVERBS_WAIT_H

/* Where threads sleep (design.md section 2, rules 1-4 and 6-11), and the seam through which lib/core lets a waiting
 * thread drive the event loop. compat knows nothing of what is driven. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "list.h"
#include "object.h"
#include "sleep.h"
#include "step.h"

#define WAITER_SIGNALLED 1u /* a result is there */
#define WAITER_ROLE      2u /* the right to run the loop was handed to this waiter */

struct waiter;
struct wait_multi;

/* One link of a waiter in one object's list, under that object's lock. */
struct wait_entry {
    struct list link;
    struct waiter *waiter;
    struct object *object;
    struct wait_multi *multi; /* NULL: a wait on this object alone */
};

/* A packet of a completion port, by value. */
struct packet {
    ULONG_PTR key;
    OVERLAPPED *overlapped;
    NTSTATUS status;
    DWORD bytes;
};

/* One per thread. The memory is never given back to the system, only recycled, so that a thread that wakes another may
 * look at `driving` after the other has returned. */
struct waiter {
    uint32_t state;   /* futex word: WAITER_* */
    uint32_t driving; /* the thread is, or is about to be, in the loop's poll: wake it by kick */
    uint32_t result;  /* assigned with WAITER_SIGNALLED: index of a multiple wait, or the object type's use */
    struct packet packet;
    struct wait_entry entry;
    const void *address;   /* WaitOnAddress, GetOverlappedResult: what it waits for */
    struct list role_link; /* core's list of followers */
    bool forbidden;        /* on loop: waiting here is a bug of ours */
    struct waiter *next_free;
};

/* The calling thread's waiter. Never NULL (a process without memory for it is ended). */
struct waiter *waiter_self(void);

/* The calling thread's waiter if it drives the loop at this moment, else NULL. */
struct waiter *waiter_driving_here(void);

/* Clears the last result, before the waiter is linked anywhere. */
static inline void waiter_begin(struct waiter *waiter)
{
    __atomic_store_n(&waiter->state, 0, __ATOMIC_RELAXED);
}

static inline bool waiter_signalled(struct waiter *waiter)
{
    return __atomic_load_n(&waiter->state, __ATOMIC_SEQ_CST) & WAITER_SIGNALLED;
}

/* Makes the stored result final. Under the lock of the object that the waiter was just unlinked from, so that a waiter
 * that finds itself unlinked finds its result as well. */
static inline void waiter_assign(struct waiter *waiter)
{
    __atomic_fetch_or(&waiter->state, WAITER_SIGNALLED, __ATOMIC_SEQ_CST);
    step_point();
}

/* Wakes it after waiter_assign(); preferably without locks. */
void waiter_wake(struct waiter *waiter);

/* For core: marks that the role was handed to it (under the engine's lock, so that no late mark hits a later wait), and
 * wakes it afterwards. */
static inline void waiter_mark_role(struct waiter *waiter)
{
    __atomic_fetch_or(&waiter->state, WAITER_ROLE, __ATOMIC_SEQ_CST);
}

static inline void waiter_clear_role(struct waiter *waiter)
{
    __atomic_fetch_and(&waiter->state, ~WAITER_ROLE, __ATOMIC_SEQ_CST);
}

void waiter_wake_parked(struct waiter *waiter);

/* Parks the calling thread until any bit of `state` is set or the deadline passed. For core and wait_block(). */
void waiter_park(struct waiter *waiter, uint64_t deadline);

/* The one function in which blocking calls block. Returns when the waiter is signalled or the deadline passed; the
 * caller then locks the object it waited for and looks. `interested`: the wait may drive the loop meanwhile. */
void wait_block(struct waiter *waiter, uint64_t deadline, bool interested);

/* True while the calling thread may not wait (loop callbacks); wait_block() asserts it. */
void wait_forbid(bool forbid);

/* The event loop as wait_block() sees it. `wait` does what wait_block() has to do for an interested waiter, driving the
 * loop if it can; `kick` makes the poll of the driver return. Registered once, by the engine. */
struct wait_driver {
    void (*wait)(struct waiter *waiter, uint64_t deadline);
    void (*kick)(void);
};
void wait_register(const struct wait_driver *driver);

/* Set by core while its background thread has the loop, cleared by a wait that would have driven it and had no need to block,
 * as that thread was faster. */
extern uint32_t wait_unvisited;

static inline void wait_visit(void)
{
    if (__builtin_expect(__atomic_load_n(&wait_unvisited, __ATOMIC_RELAXED) != 0, 0))
        __atomic_store_n(&wait_unvisited, 0, __ATOMIC_RELAXED);
}

static inline bool object_interested(const struct object *object)
{
    return __atomic_load_n(&object->interest, __ATOMIC_RELAXED) != 0;
}

static inline void object_interest_add(struct object *object)
{
    __atomic_add_fetch(&object->interest, 1, __ATOMIC_RELAXED);
}

static inline void object_interest_drop(struct object *object)
{
    __atomic_sub_fetch(&object->interest, 1, __ATOMIC_RELAXED);
}

/* Links the waiter into the object's list (lock held) as newest; unlinks it. */
static inline void wait_entry_link_locked(struct wait_entry *entry, struct waiter *waiter, struct object *object)
{
    entry->waiter = waiter;
    entry->object = object;
    entry->multi = NULL;
    list_add_head(&object->waiters, &entry->link);
}

/* Whom to serve: the thread that drives the loop here if it is in the list, else the newest. Lock held. */
struct wait_entry *wait_entry_pick_locked(struct object *object);

#endif
