/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CQ_TAKE_H
#define NDVERBS_CQ_TAKE_H

/* The way of GetResults that is taken nearly always: nothing is set aside, and the device has nothing or one result. In line, for
 * a front whose object is the CQ's own. */

#include <stddef.h>
#include <string.h>

#include "cq_priv.h"
#include "ndstatus.h"

#if UINTPTR_MAX == UINT64_MAX
/* Context and type of a result are one 16-byte copy from the slot; the word behind the type is padding. */
_Static_assert(offsetof(struct slot, type) == offsetof(struct slot, context) + 8, "slot tail");
_Static_assert(offsetof(ND2_RESULT, RequestType) == offsetof(ND2_RESULT, RequestContext) + 8, "result tail");
_Static_assert(sizeof(struct slot) == 32 && sizeof(ND2_RESULT) == 32, "sizes");
#define RESULT_TAIL 16
#endif

/* What cq_take keeps while it polls, in one place that the device has an address in: so an empty poll saves no registers for it. */
struct taking {
    struct ibv_wc wc[CQ_BATCH + 1];
    struct wanted {
        struct cq *cq;
        ND2_RESULT *results;
        uint32_t n; /* at most CQ_BATCH */
    } wanted;
};

/* CQ lock held, released here: `polled` completions. Given the address of a part that the caller had no use for before it polled:
 * one that it had would sit in a saved register meanwhile. */
uint32_t cq_deliver(struct wanted *wanted, uint32_t polled);

/* CQ lock held, nothing set aside, somebody wants it: released here. Returns what it is given: nothing has to be kept for it. */
uint32_t cq_leave(struct cq *cq, uint32_t got);

/* Something is set aside, or the lock is held. */
uint32_t cq_take_slow(struct cq *cq, ND2_RESULT *results, uint32_t n);

/* More than one batch. */
uint32_t cq_take_many(struct cq *cq, ND2_RESULT *results, uint32_t n);

static inline void copy_tail(ND2_RESULT *result, const struct slot *slot)
{
#ifdef RESULT_TAIL
    memcpy(&result->RequestContext, &slot->context, RESULT_TAIL);
#else
    result->RequestContext = slot->context;
    result->RequestType = (ND2_REQUEST_TYPE)slot->type;
#endif
}

/* cq_deliver for a single completion, which is what a ping-pong sees. */
static inline uint32_t deliver_one(struct taking *taking)
{
    const struct ibv_wc *wc = taking->wc;
    const struct slot *slot = slot_from_wr_id(wc->wr_id);
    struct queue *queue = slot->queue;
    ND2_RESULT *result = taking->wanted.results;
    uint32_t tail = queue->tail;
    struct cq *cq;

    /* A request that was given up on has no such position any more. */
    if (unlikely(slot->seq != tail || wc->status != IBV_WC_SUCCESS || !result))
        return cq_deliver(&taking->wanted, 1);
    result->Status = ND_SUCCESS;
    result->BytesTransferred = slot->type == Nd2RequestTypeReceive ? wc->byte_len : slot->length;
    result->QueuePairContext = queue->context;
    copy_tail(result, slot);
    __atomic_store_n(&queue->tail, tail + 1, __ATOMIC_RELEASE);
    cq = taking->wanted.cq;
    return gate_free(&cq->lock, GATE_OPEN) ? 1 : cq_leave(cq, 1);
}

/* CQ lock held, released here; nothing is set aside. */
static inline __attribute__((always_inline)) uint32_t cq_take_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    struct taking taking;
    int polled;

    taking.wanted.cq = cq;
    taking.wanted.results = results;
    taking.wanted.n = n;
    polled = ibv_poll_cq(cq->verbs, (int)OPAQUE(n), taking.wc);
    cq = taking.wanted.cq;
    if (likely(IS_ZERO(polled)))
        return gate_free(&cq->lock, GATE_OPEN) ? (uint32_t)polled : cq_leave(cq, 0);
    if (polled == 1)
        return deliver_one(&taking);
    if (unlikely(polled < 1))
        return cq_leave(cq, 0);
    return cq_deliver(&taking.wanted, (uint32_t)polled);
}

/* cq_get_results. */
static inline __attribute__((always_inline)) uint32_t cq_take(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    if (unlikely(n > CQ_BATCH))
        return cq_take_many(cq, results, n);
    if (unlikely(!gate_pass(&cq->lock)))
        return cq_take_slow(cq, results, n);
    return cq_take_locked(cq, results, n);
}

#endif
