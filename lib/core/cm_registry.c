/* SPDX-License-Identifier: MIT */
#include "cm_registry.h"

#include <pthread.h>
#include <stdbool.h>

#define BUCKETS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list buckets[BUCKETS]; /* a bucket that was never used is zero */
static uint32_t visits;

static struct list *bucket_of(const void *key)
{
    uintptr_t bits = (uintptr_t)key >> 5;
    struct list *bucket = &buckets[(bits ^ bits >> 8) % BUCKETS];

    if (!bucket->next)
        list_init(bucket);
    return bucket;
}

static bool take(struct cm_entry *entry)
{
    uint32_t refs = __atomic_load_n(entry->refs, __ATOMIC_RELAXED);

    while (refs) {
        if (__atomic_compare_exchange_n(entry->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

void cm_entry_add(struct cm_entry *entry, enum cm_kind kind, const void *key, void *object, uint32_t *refs)
{
    pthread_mutex_lock(&lock);
    entry->kind = kind;
    entry->key = key;
    entry->object = object;
    entry->refs = refs;
    entry->visit = visits;
    list_add_tail(bucket_of(key), &entry->link);
    pthread_mutex_unlock(&lock);
}

void cm_entry_del(struct cm_entry *entry)
{
    pthread_mutex_lock(&lock);
    if (entry->link.next)
        list_del(&entry->link);
    pthread_mutex_unlock(&lock);
}

void *cm_entry_find(enum cm_kind kind, const void *key)
{
    void *object = NULL;

    pthread_mutex_lock(&lock);
    list_for_each (node, bucket_of(key)) {
        struct cm_entry *entry = list_entry(node, struct cm_entry, link);

        if (entry->kind == kind && entry->key == key && take(entry)) {
            object = entry->object;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return object;
}

static void *next_unvisited(struct list *bucket, enum cm_kind kind, uint32_t visit)
{
    void *object = NULL;

    pthread_mutex_lock(&lock);
    if (bucket->next) {
        list_for_each (node, bucket) {
            struct cm_entry *entry = list_entry(node, struct cm_entry, link);

            if (entry->kind != kind || entry->visit == visit)
                continue;
            entry->visit = visit;
            if (take(entry)) {
                object = entry->object;
                break;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return object;
}

void cm_entry_each(enum cm_kind kind, void (*fn)(void *object, void *arg), void *arg)
{
    uint32_t visit;
    void *object;

    pthread_mutex_lock(&lock);
    visit = ++visits;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < BUCKETS; i++) {
        while ((object = next_unvisited(&buckets[i], kind, visit)) != NULL)
            fn(object, arg);
    }
}
