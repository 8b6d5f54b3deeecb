/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "status.h"

/* Request batches of version 1: between start and submit, posts to a live queue are kept here and then handed over as one
 * chain. A kept request has its slot already, as if it were posted: what the caller was told stays true, and if the queue
 * closes first the request comes back like any other that never reached the device. Batching is a mode of the queue, so
 * that posts outside of a batch pay nothing for it. */

#define BATCH_MAX 16

struct batch {
    uint32_t count;
    uint32_t sge_max; /* of each request */
    struct ibv_sge *sges;
    char *inlined; /* bytes of inline requests, which are copied when posted */
    union {
        struct ibv_send_wr send[BATCH_MAX];
        struct ibv_recv_wr recv[BATCH_MAX];
    };
};

static struct batch *batch_make(const struct queue *queue)
{
    uint32_t sge_max = queue->max_sge ? queue->max_sge : 1;
    size_t sge_bytes = (size_t)BATCH_MAX * sge_max * sizeof(struct ibv_sge);
    struct batch *batch = malloc(sizeof(*batch) + sge_bytes + (size_t)BATCH_MAX * queue->inline_size);

    if (!batch)
        return NULL;
    batch->count = 0;
    batch->sge_max = sge_max;
    batch->sges = (struct ibv_sge *)(batch + 1);
    batch->inlined = (char *)batch->sges + sge_bytes;
    return batch;
}

/* Queue lock held. Without memory for it there is no batch, and requests go one by one. */
static void start(struct queue *queue)
{
    uint32_t live = QUEUE_LIVE;

    wordlock_lock(&queue->lock);
    if (!queue->batch)
        queue->batch = batch_make(queue);
    if (queue->batch)
        __atomic_compare_exchange_n(&queue->mode, &live, QUEUE_BATCH, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    wordlock_unlock(&queue->lock);
}

uint32_t batch_drop_locked(struct queue *queue)
{
    uint32_t count = queue->batch ? queue->batch->count : 0;

    if (count)
        queue->batch->count = 0;
    return count;
}

/* Hands the chain over. Index of the first request that the device refused, `count` if none. */
static uint32_t post_chain(struct queue *queue, struct batch *batch, int *error, bool *took)
{
    uint32_t count = batch->count;

    *took = false;
    if (queue == &queue->qp->rq) {
        struct ibv_recv_wr *bad = NULL;

        for (uint32_t i = 0; i < count; i++)
            batch->recv[i].next = i + 1 < count ? &batch->recv[i + 1] : NULL;
        *error = post_errno(ibv_post_recv(queue->verbs, batch->recv, &bad));
        return !*error ? count : bad ? (uint32_t)(bad - batch->recv) : 0;
    } else {
        struct ibv_send_wr *bad = NULL;

        for (uint32_t i = 0; i < count; i++)
            batch->send[i].next = i + 1 < count ? &batch->send[i + 1] : NULL;
        *error = post_errno(ibv_post_send(queue->verbs, batch->send, &bad));
        *took = *error && queue_took_all_the_same(queue, *error, bad);
        return !*error ? count : bad ? (uint32_t)(bad - batch->send) : 0;
    }
}

bool batch_post_locked(struct queue *queue)
{
    struct batch *batch = queue->batch;
    uint32_t done;
    bool took;
    int error;

    if (!batch || !batch->count)
        return true;
    done = post_chain(queue, batch, &error, &took);
    if (!error) {
        batch->count = 0;
        return true;
    }
    if (took) {
        batch->count = 0;
        __atomic_store_n(&queue->mode, QUEUE_SOFT, __ATOMIC_RELAXED);
        return false;
    }
    /* Their callers have heard ND_SUCCESS: they come back cancelled, after everything before them. */
    log_warn("a batch of %u requests to QP %u: %s from the %u. on", batch->count, queue->qp->number, strerror(error),
             done + 1);
    queue->closed = 1;
    queue->closed_at = queue->head - (batch_drop_locked(queue) - done);
    __atomic_store_n(&queue->mode, QUEUE_SOFT, __ATOMIC_RELAXED);
    return false;
}

static void submit(struct queue *queue)
{
    uint32_t mode = QUEUE_BATCH;
    bool posted = true;

    wordlock_lock(&queue->lock);
    /* A queue that failed meanwhile keeps the chain until it is closed. */
    if (__atomic_load_n(&queue->mode, __ATOMIC_SEQ_CST) == QUEUE_BATCH)
        posted = batch_post_locked(queue);
    if (posted) {
        __atomic_compare_exchange_n(&queue->mode, &mode, QUEUE_LIVE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    wordlock_unlock(&queue->lock);
    if (!posted)
        queue_failed(queue);
}

void qp_batch_start(struct qp *qp)
{
    start(&qp->sq);
    if (!qp->rq.srq)
        start(&qp->rq);
}

void qp_batch_submit(struct qp *qp)
{
    submit(&qp->rq);
    submit(&qp->sq);
}

/* ---- for post.c ---- */

static void keep_sges(struct batch *batch, const struct ibv_sge *from, int n, struct ibv_sge **to)
{
    *to = n ? &batch->sges[(size_t)batch->count * batch->sge_max] : NULL;
    if (n)
        memcpy(*to, from, (size_t)n * sizeof(*from));
}

/* One entry with a copy of the bytes. */
static void keep_bytes(const struct queue *sq, struct batch *batch, struct ibv_send_wr *wr)
{
    struct ibv_sge *sge = &batch->sges[(size_t)batch->count * batch->sge_max];
    char *at = batch->inlined + (size_t)batch->count * sq->inline_size, *end = at;

    for (int i = 0; i < wr->num_sge; i++) {
        if (wr->sg_list[i].length)
            end = mempcpy(end, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
    }
    sge->addr = (uintptr_t)at;
    sge->length = (uint32_t)(end - at);
    sge->lkey = 0;
    wr->sg_list = sge;
    wr->num_sge = 1;
}

bool batch_send_locked(struct queue *sq, const struct ibv_send_wr *wr)
{
    struct batch *batch = sq->batch;
    struct ibv_send_wr *kept = &batch->send[batch->count];

    *kept = *wr;
    if (wr->send_flags & IBV_SEND_INLINE)
        keep_bytes(sq, batch, kept);
    else
        keep_sges(batch, wr->sg_list, wr->num_sge, &kept->sg_list);
    sq->head++;
    return ++batch->count < BATCH_MAX || batch_post_locked(sq);
}

bool batch_receive_locked(struct queue *rq, uint64_t wr_id, const struct ibv_sge *sges, uint32_t n)
{
    static const struct ibv_sge nothing;
    struct batch *batch = rq->batch;
    struct ibv_recv_wr *kept = &batch->recv[batch->count];

    kept->wr_id = wr_id;
    /* siw refuses a receive without entries, and takes one of no bytes. */
    if (!n && rq->qp->iwarp) {
        sges = &nothing;
        n = 1;
    }
    kept->num_sge = (int)n;
    keep_sges(batch, sges, (int)n, &kept->sg_list);
    rq->head++;
    return ++batch->count < BATCH_MAX || batch_post_locked(rq);
}
