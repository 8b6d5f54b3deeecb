/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_OBJECT_H
#define NDVERBS_OBJECT_H

/* The head of everything a HANDLE can name: events, ports, files, threads. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "list.h"
#include "wordlock.h"

struct object;

struct object_ops {
    bool waitable;                          /* has a signal word that the wait functions understand */
    void (*closed)(struct object *object);  /* last handle closed; may be NULL. No lock held. */
    void (*destroy)(struct object *object); /* last reference gone */
};

/* Bits of object.word. While neither WAITERS nor MULTI is set, SET changes by compare-and-swap alone. */
#define SIGNAL_SET     1u
#define SIGNAL_MANUAL  2u /* stays set when a wait succeeds; never changes */
#define SIGNAL_WAITERS 4u /* the list of waiters is not empty: everything goes through the lock */
#define SIGNAL_MULTI   8u /* a wait on several objects is linked: everything goes through the dispatcher lock as well */
#define SIGNAL_POLLED  16u /* there is a descriptor, which follows SET: everything goes through the lock */

struct object {
    const struct object_ops *ops;
    uint32_t refs;     /* internal references; each handle holds one */
    uint32_t handles;  /* open handles */
    uint32_t interest; /* > 0: a wait on this object may drive the loop (design.md 2 rule 6). Event, file: pending
                        * requests that will set it. Port: files bound. */
    uint32_t word;
    struct wordlock lock; /* leaf lock: waiters, and what the object type says */
    uint32_t multi;       /* linked entries of waits on several objects; under the dispatcher lock */
    int descriptor;       /* of descriptor.h, -1: none yet; set once, under the lock */
    bool raised;          /* the descriptor is readable; under the lock, with SIGNAL_MULTI under the dispatcher lock */
    struct list waiters;  /* wait_entry, newest first; under the lock, with SIGNAL_MULTI under the dispatcher lock */
};

void object_init(struct object *object, const struct object_ops *ops, uint32_t word);
struct object *object_ref(struct object *object);
void object_unref(struct object *object);

/* Signal word. Any thread, leaf locks only, never fail, no allocation.
 * set: releases all waiters (manual) or exactly one, else stays set. What the caller wrote before is visible after the
 * wait that it ends. The thread that drives the loop is served first if it waits for this object, else the newest.
 * try: true if set, which clears an auto-reset object. Source: win32-surface.md 6.2. */
void signal_set(struct object *object);
void signal_reset(struct object *object);
bool signal_try(struct object *object);
bool signal_is_set(const struct object *object);

/* The descriptor that is readable while the object is set, made on first request; it is the object's. -1: the system has
 * no more descriptors. */
int signal_descriptor(struct object *object);

/* Waits until set (and consumes an auto-reset one) or the deadline (sleep.h). A deadline of 0 never blocks. */
bool signal_wait(struct object *object, uint64_t deadline);

/* Waits for any or all of n (1..64) waitable objects. `all`: no duplicates (the caller checked). Returns the index
 * (0 for all) or UINT32_MAX on time-out. With `all` nothing is consumed before all are set at one instant.
 * Source: win32-surface.md 6.3. */
uint32_t signal_wait_multiple(struct object *const *objects, uint32_t n, bool all, uint64_t deadline);

/* Creates an event object with one reference, no handle. NULL: out of memory. */
struct object *event_create(bool manual, bool set);
extern const struct object_ops event_ops;

#endif
