/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <stdlib.h>

#include "descriptor.h"
#include "handle.h"
#include "wait.h"

/* What makes a change of the word go through the locks. */
#define SIGNAL_LOCKED (SIGNAL_WAITERS | SIGNAL_MULTI | SIGNAL_POLLED)

/* Serialises everything about objects that have SIGNAL_MULTI set: their word, their list, their blocks. Taken before
 * any object's lock. Waits on a single object never need it. Source: win32-surface.md 6.3. */
static struct wordlock dispatcher;

struct wait_multi {
    struct waiter *waiter;
    uint32_t count;
    bool all;
    struct wait_entry entries[MAXIMUM_WAIT_OBJECTS];
};

/* Locks the object, and the dispatcher as well if a multiple wait is linked (result: true). */
static bool object_lock(struct object *object)
{
    if (!(__atomic_load_n(&object->word, __ATOMIC_ACQUIRE) & SIGNAL_MULTI)) {
        wordlock_lock(&object->lock);
        if (!(__atomic_load_n(&object->word, __ATOMIC_ACQUIRE) & SIGNAL_MULTI))
            return false;
        wordlock_unlock(&object->lock);
    }
    wordlock_lock(&dispatcher);
    wordlock_lock(&object->lock);
    return true;
}

static void object_unlock(struct object *object, bool dispatched)
{
    wordlock_unlock(&object->lock);
    if (dispatched)
        wordlock_unlock(&dispatcher);
}

static uint32_t word_load(const struct object *object)
{
    return __atomic_load_n(&object->word, __ATOMIC_ACQUIRE);
}

static void word_change(struct object *object, uint32_t set, uint32_t clear)
{
    if (clear)
        __atomic_fetch_and(&object->word, ~clear, __ATOMIC_ACQ_REL);
    if (set)
        __atomic_fetch_or(&object->word, set, __ATOMIC_ACQ_REL);
}

bool signal_is_set(const struct object *object)
{
    return word_load(object) & SIGNAL_SET;
}

/* Consumes; the locks that the word's marks ask for are held. */
static bool word_consume(struct object *object)
{
    uint32_t word = word_load(object);

    do {
        if (!(word & SIGNAL_SET))
            return false;
        if (word & SIGNAL_MANUAL)
            return true;
    } while (!__atomic_compare_exchange_n(&object->word, &word, word & ~SIGNAL_SET, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    descriptor_follow_locked(object, false);
    return true;
}

bool signal_try(struct object *object)
{
    uint32_t word = word_load(object);
    bool dispatched, taken;

    do {
        if (!(word & SIGNAL_SET))
            return false;
        if (word & SIGNAL_MANUAL)
            return true;
        if (word & SIGNAL_LOCKED) {
            dispatched = object_lock(object);
            taken = word_consume(object);
            object_unlock(object, dispatched);
            return taken;
        }
    } while (!__atomic_compare_exchange_n(&object->word, &word, word & ~SIGNAL_SET, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return true;
}

void signal_reset(struct object *object)
{
    uint32_t word = word_load(object);
    bool dispatched;

    while (word & SIGNAL_SET) {
        if (word & SIGNAL_LOCKED) {
            dispatched = object_lock(object);
            word_change(object, 0, SIGNAL_SET);
            descriptor_follow_locked(object, false);
            object_unlock(object, dispatched);
            return;
        }
        if (__atomic_compare_exchange_n(&object->word, &word, word & ~SIGNAL_SET, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    }
}

static void marks_update_locked(struct object *object)
{
    word_change(object, 0,
                (list_empty(&object->waiters) ? SIGNAL_WAITERS : 0) | (object->multi == 0 ? SIGNAL_MULTI : 0));
}

/* Dispatcher held: every object of the block has SIGNAL_MULTI, so nothing else changes them. */
static void multi_unlink(struct wait_multi *multi)
{
    for (uint32_t i = 0; i < multi->count; i++) {
        struct object *object = multi->entries[i].object;

        list_del(&multi->entries[i].link);
        object->multi--;
    }
    /* Marks last: with SIGNAL_MULTI gone an object's list is no longer ours to touch. Duplicates come by twice. */
    for (uint32_t i = 0; i < multi->count; i++) {
        struct object *object = multi->entries[i].object;

        if (object->multi == 0 && (word_load(object) & SIGNAL_MULTI))
            marks_update_locked(object);
    }
}

static bool multi_satisfied(const struct wait_multi *multi, uint32_t *index)
{
    for (uint32_t i = 0; i < multi->count; i++) {
        bool set = word_load(multi->entries[i].object) & SIGNAL_SET;

        if (set && !multi->all) {
            *index = i;
            return true;
        }
        if (!set && multi->all)
            return false;
    }
    *index = 0;
    return multi->all;
}

static void multi_consume(const struct wait_multi *multi, uint32_t index)
{
    if (!multi->all) {
        word_consume(multi->entries[index].object);
        return;
    }
    for (uint32_t i = 0; i < multi->count; i++)
        word_consume(multi->entries[i].object);
}

/* Serves waiters while the object is set. Returns one waiter to wake after unlocking (the usual case), wakes further
 * ones (manual-reset) under the lock: they must all be released by this set. */
static struct waiter *signal_serve_locked(struct object *object)
{
    struct waiter *first = NULL, *here = waiter_driving_here();
    struct list skipped;

    list_init(&skipped);
    while ((word_load(object) & SIGNAL_SET) && !list_empty(&object->waiters)) {
        struct wait_entry *entry =
            here ? wait_entry_pick_locked(object) : list_entry(object->waiters.next, struct wait_entry, link);
        struct wait_multi *multi = entry->multi;
        struct waiter *waiter = entry->waiter;
        uint32_t index = 0;

        list_del(&entry->link);
        if (multi) {
            if (!multi_satisfied(multi, &index)) {
                list_add_tail(&skipped, &entry->link);
                continue;
            }
            multi_consume(multi, index);
            multi_unlink(multi);
        } else {
            word_consume(object);
        }
        /* With the assignment the wait may be over and the entry gone. */
        waiter->result = index;
        waiter_assign(waiter);
        if (!first)
            first = waiter;
        else
            waiter_wake(waiter);
    }
    list_splice_tail(&skipped, &object->waiters);
    list_splice_tail(&object->waiters, &skipped);
    marks_update_locked(object);
    return first;
}

void signal_set(struct object *object)
{
    uint32_t word = word_load(object);
    struct waiter *waiter;
    bool dispatched;

    do {
        if (word & SIGNAL_LOCKED) {
            dispatched = object_lock(object);
            word_change(object, SIGNAL_SET, 0);
            waiter = signal_serve_locked(object);
            descriptor_follow_locked(object, word_load(object) & SIGNAL_SET);
            object_unlock(object, dispatched);
            if (waiter)
                waiter_wake(waiter);
            return;
        }
        /* Also when it is set already: the waiter must see what this caller wrote before. */
    } while (!__atomic_compare_exchange_n(&object->word, &word, word | SIGNAL_SET, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

int signal_descriptor(struct object *object)
{
    bool dispatched = object_lock(object);

    if (descriptor_make_locked(object)) {
        /* The mark first: after it nobody changes the word without the lock. */
        word_change(object, SIGNAL_POLLED, 0);
        descriptor_follow_locked(object, word_load(object) & SIGNAL_SET);
    }
    object_unlock(object, dispatched);
    return object->descriptor;
}

bool signal_wait(struct object *object, uint64_t deadline)
{
    struct waiter *waiter;
    bool dispatched, signalled;

    if (signal_try(object))
        return true;
    if (deadline == 0)
        return false;
    waiter = waiter_self();
    waiter_begin(waiter);
    dispatched = object_lock(object);
    /* The mark first: after it nobody sets the word without the lock, so a set is either seen here or served. */
    word_change(object, SIGNAL_WAITERS, 0);
    if (word_consume(object)) {
        marks_update_locked(object);
        object_unlock(object, dispatched);
        return true;
    }
    wait_entry_link_locked(&waiter->entry, waiter, object);
    object_unlock(object, dispatched);

    wait_block(waiter, deadline, object_interested(object));

    if (waiter_signalled(waiter))
        return true;
    dispatched = object_lock(object);
    signalled = waiter_signalled(waiter);
    if (!signalled) {
        list_del(&waiter->entry.link);
        marks_update_locked(object);
    }
    object_unlock(object, dispatched);
    return signalled;
}

uint32_t signal_wait_multiple(struct object *const *objects, uint32_t n, bool all, uint64_t deadline)
{
    struct waiter *waiter = waiter_self();
    struct wait_multi multi = { .waiter = waiter, .count = n, .all = all };
    bool interested = false;
    uint32_t index;

    waiter_begin(waiter);
    wordlock_lock(&dispatcher);
    for (uint32_t i = 0; i < n; i++) {
        struct wait_entry *entry = &multi.entries[i];

        /* The object's own lock once more, to be sure that nobody is between its check of the mark and its work. */
        wordlock_lock(&objects[i]->lock);
        word_change(objects[i], SIGNAL_MULTI | SIGNAL_WAITERS, 0);
        wait_entry_link_locked(entry, waiter, objects[i]);
        entry->multi = &multi;
        objects[i]->multi++;
        wordlock_unlock(&objects[i]->lock);
        interested |= object_interested(objects[i]);
    }
    if (multi_satisfied(&multi, &index)) {
        multi_consume(&multi, index);
        multi_unlink(&multi);
        wordlock_unlock(&dispatcher);
        return index;
    }
    if (deadline == 0) {
        multi_unlink(&multi);
        wordlock_unlock(&dispatcher);
        return UINT32_MAX;
    }
    wordlock_unlock(&dispatcher);

    wait_block(waiter, deadline, interested);

    if (waiter_signalled(waiter))
        return waiter->result;
    wordlock_lock(&dispatcher);
    if (waiter_signalled(waiter)) {
        index = waiter->result;
    } else {
        multi_unlink(&multi);
        index = UINT32_MAX;
    }
    wordlock_unlock(&dispatcher);
    return index;
}
