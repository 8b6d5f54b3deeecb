/* SPDX-License-Identifier: MIT */
#include "cq_priv.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <ntstatus.h>

#include "log.h"
#include "ndstatus.h"
#include "qp.h"
#include "status.h"

/* Beyond twice the depth: silent requests that need a signal now and then, and the flushes of a queue pair or two. */
#define ENTRIES_EXTRA 256

uint32_t cq_forked;

static void in_child(void)
{
    cq_forked = 1;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void cq_watch_forks(void)
{
    static pthread_once_t forks = PTHREAD_ONCE_INIT;

    pthread_once(&forks, watch_forks);
}

static uint32_t entries_wanted(const struct cq *cq, uint32_t depth)
{
    uint64_t want = 2 * (uint64_t)depth + ENTRIES_EXTRA, attached = (uint64_t)cq->reserved + ENTRIES_EXTRA;
    uint64_t most = (uint64_t)cq->adapter->device->attr.max_cqe;

    if (want < attached)
        want = attached;
    return (uint32_t)(want < most ? want : most);
}

/* The processor asked for, else the calling thread's (ndspi-v2.md 5). Windows numbers processors in groups of a mask's
 * width. Which processor a vector interrupts is the administrator's matter; one after the other is the usual setting. */
static int completion_vector(const struct device *device, uint16_t group, uint64_t affinity)
{
    int vectors = device->verbs->num_comp_vectors, processor = sched_getcpu();

    if (affinity)
        processor = group * (int)(8 * sizeof(KAFFINITY)) + __builtin_ctzll(affinity);
    return processor > 0 && vectors > 1 ? processor % vectors : 0;
}

static bool make_device_cq(struct cq *cq, uint32_t entries, int vector)
{
    struct device *device = cq->adapter->device;

    cq->verbs = ibv_create_cq(device->verbs, (int)entries, cq, device->channel, vector);
    return cq->verbs != NULL;
}

NTSTATUS cq_keep_details(struct cq *cq)
{
    cq->details = calloc(cq->stash_size, sizeof(*cq->details));
    return cq->details ? ND_SUCCESS : ND_NO_MEMORY;
}

uint32_t cq_depth(const struct cq *cq)
{
    return __atomic_load_n(&cq->depth, __ATOMIC_RELAXED);
}

uint32_t cq_peek(struct cq *cq)
{
    uint32_t count;

    cq_collect(cq, false);
    cq_lock(cq);
    count = cq_count_locked(cq);
    cq_unlock(cq);
    return count;
}

NTSTATUS cq_create(struct adapter *adapter, uint32_t depth, uint16_t group, uint64_t affinity, struct cq **out)
{
    struct device *device = adapter->device;
    struct cq *cq;
    NTSTATUS status = ND_NO_MEMORY;
    uint32_t size = depth > CQ_BATCH ? depth : CQ_BATCH;
    int vector;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    if (!depth || depth > adapter->limits.max_cq_depth)
        return ND_INVALID_PARAMETER_3;
    if (posix_memalign((void **)&cq, CACHE_LINE, sizeof(*cq)) != 0)
        return ND_NO_MEMORY;
    memset(cq, 0, sizeof(*cq));
    gate_init(&cq->lock);
    cq->refs = 1;
    cq->depth = depth;
    cq->adapter = adapter;
    list_init(&cq->ready);
    list_init(&cq->failed);
    list_init(&cq->revoked);
    list_init(&cq->unbound);
    list_init(&cq->queues);
    list_init(&cq->shares);
    list_init(&cq->notifies);
    list_init(&cq->spin_link);
    list_init(&cq->device_link.link);
    pthread_mutex_init(&cq->control, NULL);
    cq_watch_forks();
    cq->stash = calloc(size, sizeof(*cq->stash));
    if (!cq->stash)
        goto err_free;
    cq->stash_size = size;
    vector = completion_vector(device, group, affinity);
    if (!make_device_cq(cq, entries_wanted(cq, depth), vector) && !make_device_cq(cq, depth, vector)) {
        status = status_warn(errno, status_from_create_errno(errno), "ibv_create_cq of %u entries on %s", depth,
                             device->name);
        goto err_stash;
    }
    cq->entries = (uint32_t)cq->verbs->cqe;
    adapter_ref(adapter);
    if (!device_link_add(device, &device->cqs, &cq->device_link, cq))
        cq->dead = ND_DEVICE_REMOVED;
    *out = cq;
    return ND_SUCCESS;

err_stash:
    free(cq->stash);
err_free:
    pthread_mutex_destroy(&cq->control);
    free(cq);
    return status;
}

struct cq *cq_ref(struct cq *cq)
{
    __atomic_add_fetch(&cq->refs, 1, __ATOMIC_RELAXED);
    return cq;
}

struct cq *cq_ref_live(struct cq *cq)
{
    uint32_t refs = __atomic_load_n(&cq->refs, __ATOMIC_RELAXED);

    while (refs) {
        if (__atomic_compare_exchange_n(&cq->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return cq;
    }
    return NULL;
}

/* ibv_destroy_cq waits until all events that were taken are acknowledged, which is done here: it takes a mutex, so it is
 * not done for each. Of one that the loop has just taken, it is done there: it finds no reference left (device.c). */
void cq_unref(struct cq *cq)
{
    int error;

    if (__atomic_sub_fetch(&cq->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    cq_cancel_notifies(cq, ND_CANCELED);
    cq_spin_forget(cq);
    device_link_del(cq->adapter->device, &cq->device_link);
    if (cq->events)
        ibv_ack_cq_events(cq->verbs, cq->events);
    error = ibv_destroy_cq(cq->verbs);
    if (error)
        log_warn("ibv_destroy_cq: %s", strerror(error));
    adapter_unref(cq->adapter);
    pthread_mutex_destroy(&cq->control);
    free(cq->numbers);
    free(cq->stash);
    free(cq->details);
    free(cq);
}

struct adapter *cq_adapter(const struct cq *cq)
{
    return cq->adapter;
}

/* ---- room ---- */

#define LARGE_STASH 256

/* Small ones as they are needed, since there may be thousands; large ones, of a CQ with many queue pairs, with room for the
 * next ones, since they are copied. */
static uint32_t stash_size_for(uint32_t results)
{
    if (results > LARGE_STASH)
        results += results / 8;
    return (results + CQ_BATCH - 1) / CQ_BATCH * CQ_BATCH;
}

/* cq->control held. Room for `more` results beside those there are. */
static bool grow_stash(struct cq *cq, uint64_t more)
{
    struct cq_detail *details = NULL, *old_details;
    ND2_RESULT *made, *old;
    uint32_t size, count;

retry:
    cq_lock(cq);
    count = cq->stash_count;
    cq_unlock(cq);
    if (count + more <= cq->stash_size)
        return true;
    if (count + more > UINT32_MAX / 4)
        return false;
    size = stash_size_for((uint32_t)(count + more));
    made = calloc(size, sizeof(*made));
    if (made && cq->details)
        details = calloc(size, sizeof(*details));
    if (!made || (cq->details && !details)) {
        free(made);
        return false;
    }
    cq_lock(cq);
    /* Internal polls may have added some while the memory was fetched. */
    if (unlikely(cq->stash_count > count)) {
        cq_unlock(cq);
        free(made);
        free(details);
        goto retry;
    }
    count = cq->stash_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = cq_stash_at_locked(cq, i);

        made[i] = cq->stash[at];
        if (details)
            details[i] = cq->details[at];
    }
    old = cq->stash;
    old_details = cq->details;
    cq->stash = made;
    cq->details = details;
    cq->stash_size = size;
    cq->stash_head = 0;
    cq_unlock(cq);
    free(old);
    free(old_details);
    return true;
}

bool cq_grow(struct cq *cq, uint32_t more)
{
    bool grown;

    pthread_mutex_lock(&cq->control);
    grown = grow_stash(cq, more);
    pthread_mutex_unlock(&cq->control);
    return grown;
}

/* cq->control held. 0 or errno; the queue keeps its size on failure. */
static int grow_device(struct cq *cq, uint32_t entries)
{
    const struct device *device = cq->adapter->device;
    int error;

    error = ibv_resize_cq(cq->verbs, (int)entries);
    if (!error) {
        __atomic_store_n(&cq->entries, (uint32_t)cq->verbs->cqe, __ATOMIC_RELAXED);
        return 0;
    }
    if (error < 0)
        error = errno;
    log_info("ibv_resize_cq to %u entries on %s: %s", entries, device->name, strerror(error));
    if (error == ENOMEM && device->soft) {
        /* The provider of rxe has lost its mapping of the queue if it was the mmap that failed, and would crash. */
        cq_lock(cq);
        cq->slow |= CQ_GONE;
        cq_unlock(cq);
        log_warn("a completion queue of %s cannot be used any more", device->name);
        cq_die(cq, ND_INTERNAL_ERROR);
    }
    return error;
}

/* cq->control held. */
static NTSTATUS reserve(struct cq *cq, uint32_t depth)
{
    uint32_t want;

    if (!grow_stash(cq, (uint64_t)cq->depth + cq->reserved + depth))
        return ND_NO_MEMORY;
    cq->reserved += depth;
    want = entries_wanted(cq, cq->depth);
    if (want > cq->entries && cq->adapter->device->cq_resizes)
        grow_device(cq, want);
    return ND_SUCCESS;
}

NTSTATUS cq_attach(struct cq *cq, struct queue *queue)
{
    NTSTATUS status;

    pthread_mutex_lock(&cq->control);
    status = reserve(cq, queue->depth);
    if (status == ND_SUCCESS)
        list_add_tail(&cq->queues, &queue->queue_link);
    pthread_mutex_unlock(&cq->control);
    return status;
}

void cq_detach(struct cq *cq, struct queue *queue)
{
    pthread_mutex_lock(&cq->control);
    if (list_linked(&queue->queue_link)) {
        list_del(&queue->queue_link);
        cq->reserved -= queue->depth;
    }
    pthread_mutex_unlock(&cq->control);
}

NTSTATUS cq_reserve(struct cq *cq, uint32_t depth, struct cq_share *share)
{
    NTSTATUS status;

    pthread_mutex_lock(&cq->control);
    status = reserve(cq, depth);
    if (status == ND_SUCCESS && share) {
        cq_unsure(cq); /* an SRQ that ran low is seen when its receives are polled */
        list_add_tail(&cq->shares, &share->cq_link);
    }
    pthread_mutex_unlock(&cq->control);
    return status;
}

void cq_unreserve(struct cq *cq, uint32_t depth, struct cq_share *share)
{
    pthread_mutex_lock(&cq->control);
    cq->reserved -= depth;
    if (share)
        list_del(&share->cq_link);
    pthread_mutex_unlock(&cq->control);
}

/* ---- QPs with an SRQ by their numbers ---- */

static struct queue **bucket_of(struct queue **numbers, uint32_t mask, uint32_t number)
{
    return &numbers[number & mask];
}

/* cq->control held: room for one more. */
static bool grow_numbers(struct cq *cq)
{
    uint32_t size = cq->numbers ? 2 * (cq->numbers_mask + 1) : CQ_BATCH;
    struct queue **made, **old;

    if (cq->numbers && cq->numbered <= cq->numbers_mask)
        return true;
    made = calloc(size, sizeof(*made));
    if (!made)
        return false;
    cq_lock(cq);
    old = cq->numbers;
    for (uint32_t i = 0; old && i <= cq->numbers_mask; i++) {
        struct queue *queue = old[i], *next;

        for (; queue; queue = next) {
            struct queue **bucket = bucket_of(made, size - 1, queue->number);

            next = queue->number_next;
            queue->number_next = *bucket;
            *bucket = queue;
        }
    }
    cq->numbers = made;
    cq->numbers_mask = size - 1;
    cq_unlock(cq);
    free(old);
    return true;
}

/* cq->control and CQ lock held. */
static void take_number_locked(struct cq *cq, struct queue *queue)
{
    struct queue **link;

    if (!queue || !queue->numbered)
        return;
    for (link = bucket_of(cq->numbers, cq->numbers_mask, queue->number); *link != queue; link = &(*link)->number_next)
        ;
    *link = queue->number_next;
    queue->numbered = false;
    cq->numbered--;
}

/* A device may give the number of a destroyed QP to the next one before qp_release has polled what is left of the first. */
NTSTATUS cq_number_add(struct cq *cq, struct queue *queue, uint32_t number)
{
    struct queue *other, **bucket;

    cq_lock(cq);
    other = cq_find_number_locked(cq, number);
    cq_unlock(cq);
    if (other)
        cq_collect(cq, true);
    pthread_mutex_lock(&cq->control);
    if (!grow_numbers(cq)) {
        pthread_mutex_unlock(&cq->control);
        return ND_NO_MEMORY;
    }
    cq_lock(cq);
    take_number_locked(cq, cq_find_number_locked(cq, number));
    take_number_locked(cq, queue);
    queue->number = number;
    queue->numbered = true;
    cq->numbered++;
    bucket = bucket_of(cq->numbers, cq->numbers_mask, number);
    queue->number_next = *bucket;
    *bucket = queue;
    cq_unlock(cq);
    pthread_mutex_unlock(&cq->control);
    return ND_SUCCESS;
}

void cq_number_del(struct cq *cq, struct queue *queue)
{
    pthread_mutex_lock(&cq->control);
    cq_lock(cq);
    take_number_locked(cq, queue);
    cq_unlock(cq);
    pthread_mutex_unlock(&cq->control);
}

/* ---- Resize ---- */

/* cq->control held. How many results are queued, counted no further than `enough`: results on the device show only by being
 * polled. The caller reports failures afterwards. */
static uint32_t count_up_to(struct cq *cq, uint32_t enough)
{
    uint32_t count, want, polled;

    do {
        cq_lock(cq);
        count = cq_count_locked(cq);
        want = count < enough ? enough - count : 0;
        want = want < CQ_BATCH ? want : CQ_BATCH;
        polled = want ? cq_pull_locked(cq, want) : 0;
        count = cq_count_locked(cq);
        cq_unlock(cq);
    } while (want && polled == want);
    return count;
}

NTSTATUS cq_resize(struct cq *cq, uint32_t depth)
{
    NTSTATUS status = ND_SUCCESS;
    uint32_t want;
    int error;

    if (adapter_removed(cq->adapter))
        return ND_DEVICE_REMOVED;
    if (!depth || depth > cq->adapter->limits.max_cq_depth)
        return ND_INVALID_PARAMETER;
    pthread_mutex_lock(&cq->control);
    if (!grow_stash(cq, (uint64_t)depth + 1 + cq->reserved)) {
        status = ND_INSUFFICIENT_RESOURCES;
        goto unlock;
    }
    if (depth < cq->depth && count_up_to(cq, depth + 1) > depth) {
        status = ND_BUFFER_OVERFLOW;
        goto unlock;
    }
    want = entries_wanted(cq, depth);
    if (want > cq->entries && cq->adapter->device->cq_resizes) {
        error = grow_device(cq, want);
        if (error && depth > cq->entries)
            status = ND_INSUFFICIENT_RESOURCES;
    } else if (depth > cq->entries) {
        status = ND_NOT_SUPPORTED;
    }
    if (status == ND_SUCCESS) {
        cq_lock(cq);
        cq->depth = depth;
        cq_unlock(cq);
    }
unlock:
    pthread_mutex_unlock(&cq->control);
    cq_report(cq);
    return status;
}

/* ---- the end ---- */

void cq_overrun(struct cq *cq)
{
    /* The status of Windows' WinVerbs has no name there. */
    cq_die(cq, cq->details ? STATUS_UNEXPECTED_IO_ERROR : ND_BUFFER_OVERFLOW);
    pthread_mutex_lock(&cq->control);
    list_for_each (node, &cq->queues) {
        struct queue *queue = list_entry(node, struct queue, queue_link);

        if (qp_ref_live(queue->qp))
            qp_report_overrun(queue->qp);
    }
    pthread_mutex_unlock(&cq->control);
}

void cq_device_removed(struct cq *cq)
{
    cq_die(cq, ND_DEVICE_REMOVED);
}
