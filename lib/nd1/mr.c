/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "nd1/nd1.h"

/* Source: ndspi-v1.md section 5, nd-over-winverbs.md section 4. An ND_MR_HANDLE is a pointer to our record, whose key may
 * be wider than a pointer. Registering happens on the calling thread: a failure is known when the call returns and leaves
 * no record, and the key is right at once; only the completion goes through the request. */

#define RECORDS_AT_ONCE 64

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* leaf */
/* First in, first out, so that a stale handle stays recognisable for as long as possible. */
static struct nd1_mr *pool_first, **pool_end = &pool_first;
/* Blocks of records, which stay: see nd1.h. */
static struct block {
    struct block *next;
    struct nd1_mr records[RECORDS_AT_ONCE];
} * blocks;

static void give_locked(struct nd1_mr *record)
{
    record->next_free = NULL;
    *pool_end = record;
    pool_end = &record->next_free;
}

static struct nd1_mr *record_take(void)
{
    struct nd1_mr *record;

    pthread_mutex_lock(&pool_lock);
    if (!pool_first) {
        struct block *block = calloc(1, sizeof(*block));

        if (block) {
            block->next = blocks;
            blocks = block;
            for (int i = 0; i < RECORDS_AT_ONCE; i++)
                give_locked(&block->records[i]);
        }
    }
    record = pool_first;
    if (record) {
        pool_first = record->next_free;
        if (!pool_first)
            pool_end = &pool_first;
    }
    pthread_mutex_unlock(&pool_lock);
    return record;
}

static void record_give(struct nd1_mr *record)
{
    record->mr = NULL;
    pthread_mutex_lock(&pool_lock);
    give_locked(record);
    pthread_mutex_unlock(&pool_lock);
}

static struct list *bucket_of(struct nd1_home *home, const void *record)
{
    return &home->regions[(uintptr_t)record / sizeof(struct nd1_mr) % ND1_REGION_BUCKETS];
}

/* home->lock held. Compares only: the handle may be anything. */
static struct nd1_mr *find_locked(struct nd1_home *home, ND_MR_HANDLE handle)
{
    list_for_each (node, bucket_of(home, handle)) {
        struct nd1_mr *record = list_entry(node, struct nd1_mr, link);

        if ((void *)record == (void *)handle)
            return record;
    }
    return NULL;
}

static void enlist(struct nd1_home *home, struct nd1_mr *record)
{
    __atomic_store_n(&record->lkey, record->mr->mr->lkey, __ATOMIC_RELAXED);
    pthread_mutex_lock(&home->lock);
    list_add_tail(bucket_of(home, record), &record->link);
    pthread_mutex_unlock(&home->lock);
}

/* A registration that is under way cannot be cancelled; it completes by itself. */
static void no_cancel(struct request *request)
{
    (void)request;
}

static void deliver(struct request *request)
{
    request_start(request);
    request_complete(request, ND_SUCCESS, 0);
}

HRESULT nd1_register(struct nd1_home *home, const void *buffer, SIZE_T length, OVERLAPPED *overlapped,
                     ND_MR_HANDLE *out)
{
    /* An iWARP card writes the data of a Read like a remote write, and any region may be what a Read fills. */
    const uint32_t flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_RDMA_READ_SINK;
    struct request *request;
    struct nd1_mr *record;
    NTSTATUS status;

    status = request_alloc(home->file, overlapped, no_cancel, home, &request);
    if (status != ND_SUCCESS)
        return status;
    record = record_take();
    if (!record) {
        request_discard(request);
        return ND_NO_MEMORY;
    }
    status = mr_register(home->adapter, buffer, length, flags, &record->mr);
    if (status != ND_SUCCESS) {
        record_give(record);
        request_discard(request);
        return status == ND_INVALID_PARAMETER || status == ND_INVALID_BUFFER_SIZE ? ND_INVALID_PARAMETER_2 : status;
    }
    enlist(home, record);
    *out = (ND_MR_HANDLE)(void *)record;
    deliver(request);
    return ND_PENDING;
}

/* Takes the record out of the set, so that of several callers one goes on. */
static HRESULT claim(struct nd1_home *home, ND_MR_HANDLE handle, struct nd1_mr **out)
{
    HRESULT status = ND_SUCCESS;

    pthread_mutex_lock(&home->lock);
    *out = find_locked(home, handle);
    if (!*out)
        status = ND_INVALID_HANDLE;
    else
        list_del(&(*out)->link);
    pthread_mutex_unlock(&home->lock);
    return status;
}

HRESULT nd1_deregister(struct nd1_home *home, ND_MR_HANDLE handle, OVERLAPPED *overlapped)
{
    struct request *request;
    struct nd1_mr *record;
    NTSTATUS status;

    status = claim(home, handle, &record);
    if (status != ND_SUCCESS)
        return status;
    status = request_alloc(home->file, overlapped, no_cancel, home, &request);
    if (status != ND_SUCCESS)
        goto err_enlist;
    status = mr_deregister(record->mr);
    if (status != ND_SUCCESS)
        goto err_request;
    __atomic_store_n(&record->lkey, 0, __ATOMIC_RELAXED);
    record_give(record);
    deliver(request);
    return ND_PENDING;

err_request:
    request_discard(request);
err_enlist:
    enlist(home, record);
    return status;
}

void nd1_deregister_all(struct nd1_home *home)
{
    for (int i = 0; i < ND1_REGION_BUCKETS; i++) {
        struct list *node;

        while ((node = list_pop(&home->regions[i])) != NULL) {
            struct nd1_mr *record = list_entry(node, struct nd1_mr, link);

            __atomic_store_n(&record->lkey, 0, __ATOMIC_RELAXED);
            mr_release(record->mr);
            record_give(record);
        }
    }
}

struct mr *nd1_mr_pin(struct nd1_home *home, ND_MR_HANDLE handle)
{
    struct nd1_mr *record;
    struct mr *mr;

    pthread_mutex_lock(&home->lock);
    record = find_locked(home, handle);
    mr = record && mr_pin(record->mr) ? record->mr : NULL;
    pthread_mutex_unlock(&home->lock);
    return mr;
}
