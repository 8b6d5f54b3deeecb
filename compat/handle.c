/* SPDX-License-Identifier: MIT */
#include "handle.h"

#include <pthread.h>
#include <stdlib.h>

#include "descriptor.h"
#include "thread.h"

/* Handle value: generation, index, two zero bits. Generation 0 is never used, so no handle is NULL; the last index is
 * never used, so no handle looks like the pseudo-handles -1 and -2 with their low bits masked. */
#if UINTPTR_MAX > 0xffffffffu
#define INDEX_BITS       24
#define GENERATION_SHIFT 32
#define GENERATION_MASK  0xffffffffu
#else
#define INDEX_BITS       18
#define GENERATION_SHIFT 20
#define GENERATION_MASK  0xfffu
#endif
#define CHUNK_BITS  10
#define CHUNK_SLOTS (1u << CHUNK_BITS)
#define CHUNKS      (1u << (INDEX_BITS - CHUNK_BITS))
#define INDEX_LIMIT ((1u << INDEX_BITS) - 1)
#define NO_INDEX    UINT32_MAX

/* Slot state: generation in the upper half, then pins (24 bits), then flags. An open handle holds one pin itself. */
#define STATE_OPEN       1u
#define STATE_PIN        0x100u
#define STATE_PINS(s)    (((uint32_t)(s)) >> 8)
#define STATE_GENERATION 32

struct slot {
    uint64_t state;
    struct object *object;
    uint32_t next_free;
};

static struct slot *chunks[CHUNKS];
static struct wordlock table_lock; /* free list, growth */
static uint32_t table_used;        /* slots ever handed out */
static uint32_t free_first = NO_INDEX, free_last = NO_INDEX;
static uint32_t open_handles;

static struct slot *slot_at(uint32_t index)
{
    struct slot *chunk = __atomic_load_n(&chunks[index >> CHUNK_BITS], __ATOMIC_ACQUIRE);

    return chunk ? &chunk[index & (CHUNK_SLOTS - 1)] : NULL;
}

static HANDLE handle_value(uint32_t generation, uint32_t index)
{
    return (HANDLE)(((uintptr_t)generation << GENERATION_SHIFT) | ((uintptr_t)index << 2));
}

static struct slot *slot_of(HANDLE handle, uint32_t *generation)
{
    uintptr_t value = (uintptr_t)handle;
    uint32_t index = (uint32_t)(value >> 2) & INDEX_LIMIT;

    *generation = (uint32_t)(value >> GENERATION_SHIFT) & GENERATION_MASK;
#if UINTPTR_MAX > 0xffffffffu
    if ((uint32_t)value >> (INDEX_BITS + 2))
        return NULL;
#endif
    if (index == INDEX_LIMIT || *generation == 0)
        return NULL;
    return slot_at(index);
}

/* Of a handle that is pinned. */
static struct slot *slot_pinned(HANDLE handle, uint32_t *index)
{
    *index = (uint32_t)((uintptr_t)handle >> 2) & INDEX_LIMIT;
    return &__atomic_load_n(&chunks[*index >> CHUNK_BITS], __ATOMIC_RELAXED)[*index & (CHUNK_SLOTS - 1)];
}

/* First in, first out, so that a stale value stays recognisable for as many generations as possible. */
static void slot_free(struct slot *slot, uint32_t index)
{
    wordlock_lock(&table_lock);
    slot->next_free = NO_INDEX;
    if (free_last == NO_INDEX)
        free_first = index;
    else
        slot_at(free_last)->next_free = index;
    free_last = index;
    wordlock_unlock(&table_lock);
}

static struct slot *slot_alloc(uint32_t *index)
{
    struct slot *slot = NULL, *chunk;

    wordlock_lock(&table_lock);
    if (free_first != NO_INDEX) {
        *index = free_first;
        slot = slot_at(free_first);
        free_first = slot->next_free;
        if (free_first == NO_INDEX)
            free_last = NO_INDEX;
    } else if (table_used < INDEX_LIMIT) {
        if (!chunks[table_used >> CHUNK_BITS]) {
            chunk = calloc(CHUNK_SLOTS, sizeof(*chunk));
            __atomic_store_n(&chunks[table_used >> CHUNK_BITS], chunk, __ATOMIC_RELEASE);
        }
        slot = slot_at(table_used);
        if (slot)
            *index = table_used++;
    }
    wordlock_unlock(&table_lock);
    return slot;
}

HANDLE handle_open(struct object *object)
{
    uint32_t index, generation;
    struct slot *slot = slot_alloc(&index);

    if (!slot)
        return NULL;
    generation =
        ((uint32_t)(__atomic_load_n(&slot->state, __ATOMIC_RELAXED) >> STATE_GENERATION) + 1) & GENERATION_MASK;
    if (generation == 0)
        generation = 1;
    slot->object = object_ref(object);
    __atomic_add_fetch(&object->handles, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&open_handles, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, (uint64_t)generation << STATE_GENERATION | STATE_PIN | STATE_OPEN, __ATOMIC_RELEASE);
    return handle_value(generation, index);
}

struct object *handle_pin(HANDLE handle, const struct object_ops *ops)
{
    uint32_t generation;
    struct slot *slot = slot_of(handle, &generation);
    uint64_t state;

    if (!slot)
        return NULL;
    state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
    do {
        if ((state >> STATE_GENERATION) != generation || !(state & STATE_OPEN))
            return NULL;
    } while (!__atomic_compare_exchange_n(&slot->state, &state, state + STATE_PIN, true, __ATOMIC_ACQUIRE,
                                          __ATOMIC_RELAXED));
    if (ops && slot->object->ops != ops) {
        handle_unpin(handle);
        return NULL;
    }
    return slot->object;
}

void handle_unpin(HANDLE handle)
{
    uint32_t index;
    struct slot *slot = slot_pinned(handle, &index);
    struct object *object = slot->object;

    if (STATE_PINS(__atomic_sub_fetch(&slot->state, STATE_PIN, __ATOMIC_ACQ_REL)) != 0)
        return;
    slot_free(slot, index);
    object_unref(object);
}

struct object *handle_ref(HANDLE handle, const struct object_ops *ops)
{
    struct object *object = handle_pin(handle, ops);

    if (object) {
        object_ref(object);
        handle_unpin(handle);
    }
    return object;
}

uint32_t handle_count(void)
{
    return __atomic_load_n(&open_handles, __ATOMIC_RELAXED);
}

void object_init(struct object *object, const struct object_ops *ops, uint32_t word)
{
    object->ops = ops;
    object->refs = 1;
    object->handles = 0;
    object->interest = 0;
    object->word = word;
    wordlock_init(&object->lock);
    object->multi = 0;
    object->descriptor = -1;
    object->raised = false;
    list_init(&object->waiters);
}

struct object *object_ref(struct object *object)
{
    __atomic_add_fetch(&object->refs, 1, __ATOMIC_RELAXED);
    return object;
}

/* Release, so that the uses before are seen by the thread that destroys; acquire for that thread. */
void object_unref(struct object *object)
{
    if (__atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        descriptor_close(object);
        object->ops->destroy(object);
    }
}

/* INVALID_HANDLE_VALUE is the process pseudo-handle and -2 the thread's: closing them has no effect. */
BOOL WINAPI CloseHandle(HANDLE handle)
{
    uint32_t generation;
    struct slot *slot;
    struct object *object;
    uint64_t state;

    if (handle == GetCurrentProcess() || handle == GetCurrentThread())
        return TRUE;
    slot = slot_of(handle, &generation);
    if (!slot)
        goto err_invalid;
    state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
    do {
        if ((state >> STATE_GENERATION) != generation || !(state & STATE_OPEN))
            goto err_invalid;
    } while (!__atomic_compare_exchange_n(&slot->state, &state, state & ~(uint64_t)STATE_OPEN, true, __ATOMIC_ACQUIRE,
                                          __ATOMIC_RELAXED));
    object = slot->object;
    __atomic_sub_fetch(&open_handles, 1, __ATOMIC_RELAXED);
    if (__atomic_sub_fetch(&object->handles, 1, __ATOMIC_ACQ_REL) == 0 && object->ops->closed)
        object->ops->closed(object);
    handle_unpin(handle);
    return TRUE;

err_invalid:
    SetLastError(ERROR_INVALID_HANDLE);
    return FALSE;
}

static void process_destroy(struct object *object)
{
    (void)object;
}

static const struct object_ops process_ops = {
    .waitable = true,
    .destroy = process_destroy,
};

/* Never set: whoever could see that has ended. */
static struct object process;

static void process_init(void)
{
    object_init(&process, &process_ops, SIGNAL_MANUAL);
}

static struct object *process_object(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, process_init);
    return object_ref(&process);
}

/* The object behind a handle or a pseudo-handle, with a reference; NULL with the last error set. */
static struct object *any_object(HANDLE handle)
{
    struct object *object;

    if (handle == GetCurrentProcess())
        return process_object();
    if (handle == GetCurrentThread()) {
        object = thread_object();
        if (!object)
            SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return object;
    }
    object = handle_ref(handle, NULL);
    if (!object)
        SetLastError(ERROR_INVALID_HANDLE);
    return object;
}

static bool is_this_process(HANDLE handle)
{
    if (handle == GetCurrentProcess())
        return true;
    if (!handle_pin(handle, &process_ops))
        return false;
    handle_unpin(handle);
    return true;
}

/* Same process only, and the copy has the same rights: nothing surveyed asks for more (win32-surface.md 4.1). */
BOOL WINAPI DuplicateHandle(HANDLE source_process, HANDLE source, HANDLE target_process, LPHANDLE target, DWORD access,
                            BOOL inherit, DWORD options)
{
    struct object *object;

    (void)access;
    (void)inherit;
    if (!is_this_process(source_process) || !is_this_process(target_process)) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return FALSE;
    }
    object = any_object(source);
    if (!object)
        return FALSE;
    if (target) {
        *target = handle_open(object);
        if (!*target) {
            object_unref(object);
            SetLastError(ERROR_NOT_ENOUGH_MEMORY);
            return FALSE;
        }
    }
    object_unref(object);
    if (options & DUPLICATE_CLOSE_SOURCE)
        CloseHandle(source);
    return TRUE;
}
