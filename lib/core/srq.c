/* SPDX-License-Identifier: MIT */
#include "srq_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "sge.h"
#include "status.h"

/* More entries than asked for, where the device has them, as of queue pairs (ndspi.md A44). */
#define SGE_USUAL 4

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- slots ---- */

/* srq->control held (or nobody knows the SRQ yet): `more` further free slots. They stay until the SRQ ends. */
static bool add_slots(struct srq *srq, uint32_t more)
{
    struct slot_chunk *chunk;
    struct slot *first = NULL;

    if (!more)
        return true;
    chunk = calloc(1, sizeof(*chunk) + more * sizeof(chunk->slots[0]));
    if (!chunk)
        return false;
    for (uint32_t i = more; i-- > 0;) {
        struct slot *slot = &chunk->slots[i];

        slot->queue = &srq->queue;
        slot->seq = SLOT_FREE;
        slot->type = Nd2RequestTypeReceive;
        slot->context = first;
        first = slot;
    }
    chunk->next = srq->chunks;
    srq->chunks = chunk;
    srq->slots += more;
    wordlock_lock(&srq->lock);
    chunk->slots[more - 1].context = srq->free;
    srq->free = first;
    wordlock_unlock(&srq->lock);
    return true;
}

/* SRQ lock held. A slot is given back before `outstanding` says so: while that is below the depth, there is one. */
static struct slot *take_slot_locked(struct srq *srq)
{
    struct slot *slot = srq->free;

    if (!slot)
        slot = __atomic_exchange_n(&srq->returned, NULL, __ATOMIC_ACQUIRE);
    srq->free = slot->context;
    return slot;
}

/* ---- life ---- */

/* Room to grow for SRQs whose device cannot: our own depth is enforced here anyway. */
static uint32_t device_depth(const struct adapter *adapter, uint32_t depth)
{
    bool resizes = adapter->device->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE;

    return resizes ? depth : adapter->limits.max_srq_depth;
}

static int try_verbs(struct srq *srq, uint32_t depth, uint32_t sge)
{
    struct ibv_srq_init_attr init = { .srq_context = srq, .attr = { .max_wr = depth, .max_sge = sge } };

    srq->verbs = ibv_create_srq(srq->adapter->pd, &init);
    if (!srq->verbs)
        return errno;
    srq->capacity = init.attr.max_wr > depth ? init.attr.max_wr : depth;
    srq->max_sge = init.attr.max_sge > sge ? init.attr.max_sge : sge;
    return 0;
}

static int make_verbs(struct srq *srq, const struct srq_config *config)
{
    uint32_t asked = config->max_sge ? config->max_sge : 1;
    uint32_t wish = smaller(asked > SGE_USUAL ? asked : SGE_USUAL, srq->adapter->limits.max_srq_sge);
    uint32_t depth = device_depth(srq->adapter, config->depth);
    int error = try_verbs(srq, depth, wish);

    if (error && (depth > config->depth || wish > asked))
        error = try_verbs(srq, config->depth, asked);
    if (error)
        status_warn(error, status_from_create_errno(error), "ibv_create_srq (%u requests, %u entries) on %s",
                    config->depth, asked, srq->adapter->device->name);
    return error;
}

static void queue_init(struct srq *srq)
{
    struct queue *queue = &srq->queue;

    queue->srq = srq;
    queue->kind = QUEUE_RECEIVES;
    queue->ring = &srq->never; /* ring_mask 0: the tail is always that one */
    srq->never.queue = queue;
    list_init(&queue->ready_link);
    list_init(&queue->queue_link);
}

NTSTATUS srq_create(const struct srq_config *config, struct srq **out)
{
    struct adapter *adapter = config->adapter;
    NTSTATUS status = ND_NO_MEMORY;
    struct srq *srq;
    int error;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    if (!adapter->limits.max_srq_depth)
        return ND_NOT_SUPPORTED;
    if (posix_memalign((void **)&srq, CACHE_LINE, sizeof(*srq)) != 0)
        return ND_NO_MEMORY;
    memset(srq, 0, sizeof(*srq));
    srq->refs = 1;
    srq->adapter = adapter;
    srq->policy = config->policy;
    srq->depth = config->depth;
    srq->threshold = config->threshold;
    srq->max_transfer = adapter->limits.max_transfer;
    queue_init(srq);
    list_init(&srq->shares);
    list_init(&srq->notifies);
    list_init(&srq->device_link.link);
    pthread_mutex_init(&srq->control, NULL);
    cq_watch_forks();
    if (!add_slots(srq, config->depth))
        goto err_free;
    error = make_verbs(srq, config);
    if (error) {
        status = status_from_create_errno(error);
        goto err_slots;
    }
    adapter_ref(adapter);
    if (!device_link_add(adapter->device, &adapter->device->srqs, &srq->device_link, srq))
        srq_device_removed(srq);
    if (!srq->policy->arms_on_notify)
        srq_threshold_changed(srq);
    *out = srq;
    return ND_SUCCESS;

err_slots:
    free(srq->chunks);
err_free:
    pthread_mutex_destroy(&srq->control);
    free(srq);
    return status;
}

struct srq *srq_ref(struct srq *srq)
{
    __atomic_add_fetch(&srq->refs, 1, __ATOMIC_RELAXED);
    return srq;
}

struct srq *srq_ref_live(struct srq *srq)
{
    uint32_t refs = __atomic_load_n(&srq->refs, __ATOMIC_RELAXED);

    while (refs) {
        if (__atomic_compare_exchange_n(&srq->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return srq;
    }
    return NULL;
}

void srq_unref(struct srq *srq)
{
    struct slot_chunk *chunk, *next;
    int error;

    if (__atomic_sub_fetch(&srq->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    srq_cancel_notifies(srq, ND_CANCELED);
    device_link_del(srq->adapter->device, &srq->device_link);
    error = ibv_destroy_srq(srq->verbs);
    if (error)
        log_warn("ibv_destroy_srq: %s", strerror(error));
    adapter_unref(srq->adapter);
    for (chunk = srq->chunks; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    pthread_mutex_destroy(&srq->control);
    free(srq);
}

struct adapter *srq_adapter(const struct srq *srq)
{
    return srq->adapter;
}

struct ibv_srq *srq_verbs(const struct srq *srq)
{
    return srq->verbs;
}

/* ---- CQs ---- */

static struct cq_share *find_share(struct srq *srq, const struct cq *cq)
{
    list_for_each (node, &srq->shares) {
        struct cq_share *share = list_entry(node, struct cq_share, srq_link);

        if (share->cq == cq)
            return share;
    }
    return NULL;
}

NTSTATUS srq_attach(struct srq *srq, struct cq *cq)
{
    NTSTATUS status = ND_SUCCESS;
    struct cq_share *share;

    pthread_mutex_lock(&srq->control);
    share = find_share(srq, cq);
    if (!share) {
        share = calloc(1, sizeof(*share));
        if (!share) {
            status = ND_NO_MEMORY;
            goto unlock;
        }
        share->srq = srq;
        share->cq = cq;
        list_init(&share->cq_link);
        status = cq_reserve(cq, srq->depth, share);
        if (status != ND_SUCCESS) {
            free(share);
            goto unlock;
        }
        list_add_tail(&srq->shares, &share->srq_link);
    }
    share->users++;
    __atomic_add_fetch(&srq->users, 1, __ATOMIC_RELAXED);
unlock:
    pthread_mutex_unlock(&srq->control);
    return status;
}

void srq_detach(struct srq *srq, struct cq *cq)
{
    struct cq_share *share;

    pthread_mutex_lock(&srq->control);
    share = find_share(srq, cq);
    __atomic_sub_fetch(&srq->users, 1, __ATOMIC_RELAXED);
    if (--share->users == 0) {
        list_del(&share->srq_link);
        cq_unreserve(cq, srq->depth, share);
        free(share);
    }
    pthread_mutex_unlock(&srq->control);
}

/* The nth CQ with a reference: CQs may come and go while they are polled one after the other. */
static struct cq *nth_cq(struct srq *srq, uint32_t n)
{
    struct cq *found = NULL;

    pthread_mutex_lock(&srq->control);
    list_for_each (node, &srq->shares) {
        if (n-- == 0) {
            found = cq_ref(list_entry(node, struct cq_share, srq_link)->cq);
            break;
        }
    }
    pthread_mutex_unlock(&srq->control);
    return found;
}

bool srq_pull(struct srq *srq)
{
    bool any = false;
    struct cq *cq;

    for (uint32_t n = 0; (cq = nth_cq(srq, n)) != NULL; n++) {
        any |= cq_pull(cq);
        cq_report(cq);
        cq_unref(cq);
    }
    return any;
}

bool srq_collect(struct srq *srq)
{
    bool all = true;
    struct cq *cq;

    for (uint32_t n = 0; (cq = nth_cq(srq, n)) != NULL; n++) {
        all &= cq_collect(cq, false);
        cq_unref(cq);
    }
    return all;
}

/* ---- Receive ---- */

static int post(struct srq *srq, struct slot *slot, struct ibv_sge *sges, uint32_t n)
{
    struct ibv_sge nothing = { 0, 0, 0 };
    struct ibv_recv_wr wr = { .wr_id = (uintptr_t)slot, .sg_list = sges, .num_sge = (int)n }, *bad;
    int error = post_errno(ibv_post_srq_recv(srq->verbs, &wr, &bad));

    /* siw refuses a receive without entries, and takes one of no bytes. */
    if (!n && error == EINVAL) {
        wr.sg_list = &nothing;
        wr.num_sge = 1;
        error = post_errno(ibv_post_srq_recv(srq->verbs, &wr, &bad));
    }
    return error;
}

/* SRQ lock held. */
static int receive_locked(struct srq *srq, void *context, struct ibv_sge *sges, uint32_t n)
{
    struct slot *slot = take_slot_locked(srq);
    int error;

    slot->context = context;
    slot->seq = SLOT_POSTED;
    __atomic_add_fetch(&srq->outstanding, 1, __ATOMIC_SEQ_CST);
    error = post(srq, slot, sges, n);
    if (unlikely(error)) {
        slot->seq = SLOT_FREE;
        slot->context = srq->free;
        srq->free = slot;
        __atomic_sub_fetch(&srq->outstanding, 1, __ATOMIC_SEQ_CST);
    }
    return error;
}

HRESULT srq_receive(struct srq *srq, void *context, const ND2_SGE *sge, uint32_t n)
{
    struct ibv_sge copy[SGE_COPIES];
    NTSTATUS dead, status;
    int error = 0;

    if (n > srq->max_sge)
        return ND_DATA_OVERRUN;
    if (!sge && n)
        return ND_INVALID_PARAMETER_2;
    if (total_length(sge, n) > srq->max_transfer)
        return ND_BUFFER_OVERFLOW;
    wordlock_lock(&srq->lock);
    /* Completed receives may wait on the device for a poll. */
    while (unlikely(__atomic_load_n(&srq->outstanding, __ATOMIC_RELAXED) >= srq->depth)) {
        bool more;

        wordlock_unlock(&srq->lock);
        more = srq_pull(srq);
        wordlock_lock(&srq->lock);
        if (!more && __atomic_load_n(&srq->outstanding, __ATOMIC_RELAXED) >= srq->depth) {
            wordlock_unlock(&srq->lock);
            return ND_NO_MORE_ENTRIES;
        }
    }
    dead = __atomic_load_n(&srq->dead, __ATOMIC_RELAXED);
    if (likely(!dead))
        error = receive_locked(srq, context, device_sges(copy, sge, n), n);
    wordlock_unlock(&srq->lock);
    if (likely(!dead && !error))
        return ND_SUCCESS;
    if (dead)
        return dead;
    status = status_from_post_errno(error);
    return error == ENOMEM ? status : status_warn(error, status, "posting to a shared receive queue");
}

/* ---- Modify ---- */

void srq_query(struct srq *srq, struct srq_attributes *out)
{
    pthread_mutex_lock(&srq->control);
    out->depth = srq->depth;
    out->max_sge = srq->max_sge;
    out->threshold = srq->policy->arms_on_notify ? srq->threshold : __atomic_load_n(&srq->low, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&srq->control);
}

/* srq->control held. */
static NTSTATUS grow_device(struct srq *srq, uint32_t depth)
{
    struct ibv_srq_attr attr = { .max_wr = depth };
    const struct device *device = srq->adapter->device;
    NTSTATUS status;
    int error;

    if (depth <= srq->capacity)
        return ND_SUCCESS;
    error = post_errno(ibv_modify_srq(srq->verbs, &attr, IBV_SRQ_MAX_WR));
    if (!error) {
        srq->capacity = depth;
        return ND_SUCCESS;
    }
    status =
        status_warn(error, status_from_create_errno(error), "ibv_modify_srq to %u requests on %s", depth, device->name);
    if (error == ENOMEM && device->soft) {
        /* As with completion queues (cq.c): the provider of rxe has lost its mapping if it was the mmap that failed. */
        log_warn("a shared receive queue of %s cannot be used any more", device->name);
        srq_die(srq, srq->policy->error);
    }
    return status;
}

/* srq->control held. All CQs have room for `more` further results, or none has. */
static NTSTATUS reserve_all(struct srq *srq, uint32_t more)
{
    list_for_each (node, &srq->shares) {
        struct cq_share *share = list_entry(node, struct cq_share, srq_link);
        NTSTATUS status = cq_reserve(share->cq, more, NULL);

        if (status != ND_SUCCESS) {
            for (node = node->prev; node != &srq->shares; node = node->prev)
                cq_unreserve(list_entry(node, struct cq_share, srq_link)->cq, more, NULL);
            return ND_INSUFFICIENT_RESOURCES;
        }
    }
    return ND_SUCCESS;
}

static void unreserve_all(struct srq *srq, uint32_t less)
{
    list_for_each (node, &srq->shares)
        cq_unreserve(list_entry(node, struct cq_share, srq_link)->cq, less, NULL);
}

/* srq->control held. */
static NTSTATUS grow(struct srq *srq, uint32_t depth)
{
    uint32_t more = depth - srq->depth;
    NTSTATUS status = reserve_all(srq, more);

    if (status != ND_SUCCESS)
        return status;
    if (depth > srq->slots && !add_slots(srq, depth - srq->slots))
        status = ND_INSUFFICIENT_RESOURCES;
    if (status == ND_SUCCESS)
        status = grow_device(srq, depth);
    if (status != ND_SUCCESS) {
        unreserve_all(srq, more);
        return status;
    }
    wordlock_lock(&srq->lock);
    srq->depth = depth;
    wordlock_unlock(&srq->lock);
    return ND_SUCCESS;
}

/* srq->control held. The device's queue keeps its size. */
static NTSTATUS shrink(struct srq *srq, uint32_t depth)
{
    uint32_t less = srq->depth - depth;
    bool fits;

    wordlock_lock(&srq->lock);
    fits = __atomic_load_n(&srq->outstanding, __ATOMIC_RELAXED) <= depth;
    if (fits)
        srq->depth = depth;
    wordlock_unlock(&srq->lock);
    if (!fits)
        return ND_BUFFER_OVERFLOW;
    unreserve_all(srq, less);
    return ND_SUCCESS;
}

NTSTATUS srq_modify(struct srq *srq, const uint32_t *depth, const uint32_t *threshold)
{
    NTSTATUS status = __atomic_load_n(&srq->dead, __ATOMIC_ACQUIRE);

    if (adapter_removed(srq->adapter))
        return ND_DEVICE_REMOVED;
    if (status)
        return status;
    if (depth && (!*depth || *depth > srq->adapter->limits.max_srq_depth))
        return ND_INVALID_PARAMETER;
    /* Completed receives do not count, though nobody may have polled for them yet. */
    if (depth)
        srq_collect(srq);
    pthread_mutex_lock(&srq->control);
    if (depth && *depth != srq->depth)
        status = *depth > srq->depth ? grow(srq, *depth) : shrink(srq, *depth);
    if (status == ND_SUCCESS && threshold)
        __atomic_store_n(&srq->threshold, *threshold, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&srq->control);
    if (status == ND_SUCCESS && threshold)
        srq_threshold_changed(srq);
    return status;
}

/* ---- the end ---- */

void srq_error_event(struct srq *srq)
{
    srq_die(srq, srq->policy->error);
}

void srq_device_removed(struct srq *srq)
{
    srq_die(srq, ND_DEVICE_REMOVED);
}
