/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SRQ_PRIV_H
#define NDVERBS_SRQ_PRIV_H

/* What srq.c and srq_notify.c share with the poller and the queue pair.
 *
 * A slot is free, posted, or given back. Posters take free ones under the SRQ's lock; pollers, who hold a CQ's lock and may
 * take no other, put those of completed receives on the stack `returned`, which posters take as a whole.
 *
 * Locks: srq->control before cq->control; the SRQ's lock and the notify lock before nothing of ours. */

#include "cq_priv.h"
#include "srq.h"

/* slot.seq. Neither is the tail of the SRQ's struct queue, so the poller's fast path never takes such a slot. */
#define SLOT_FREE   1u
#define SLOT_POSTED 2u

struct slot_chunk {
    struct slot_chunk *next;
    struct slot slots[];
};

struct srq {
    /* Posters; under `lock` but for `verbs`. */
    struct wordlock lock;
    uint32_t depth;
    uint32_t max_sge;      /* set once */
    uint32_t max_transfer; /* set once */
    struct ibv_srq *verbs; /* set once */
    struct slot *free;     /* linked by slot.context */
    NTSTATUS dead;         /* atomic; set under the notify lock, 0 while alive */

    /* Pollers; all atomic but `queue`, which only says whose slot it is. */
    struct queue queue;
    struct slot never;     /* the slot at that queue's tail: no completion is of it */
    struct slot *returned; /* linked by slot.context */
    uint32_t outstanding;  /* posted and not given back */
    uint32_t low;          /* a Notify is due when fewer are outstanding; 0: nobody waits. Set under the notify lock */

    uint32_t refs;
    struct adapter *adapter;
    struct device_link device_link;
    const struct srq_policy *policy;

    pthread_mutex_t control; /* from here on */
    struct list shares;      /* struct cq_share.srq_link */
    struct slot_chunk *chunks;
    uint32_t slots;     /* in all chunks */
    uint32_t capacity;  /* of the device's queue */
    uint32_t threshold; /* atomic */
    uint32_t users;     /* QPs; atomic */

    struct list notifies; /* notify lock: struct request.link, oldest first */
};

/* Poller, CQ lock held: the receive of this slot is over. True: cq_report is to look after the SRQ's Notify requests. */
static inline bool srq_give_back_locked(struct srq *srq, struct slot *slot)
{
    struct slot *top = __atomic_load_n(&srq->returned, __ATOMIC_RELAXED);
    uint32_t left;

    slot->seq = SLOT_FREE;
    do {
        slot->context = top;
    } while (!__atomic_compare_exchange_n(&srq->returned, &top, slot, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    left = __atomic_sub_fetch(&srq->outstanding, 1, __ATOMIC_SEQ_CST);
    return unlikely(left < __atomic_load_n(&srq->low, __ATOMIC_SEQ_CST));
}

/* --- srq.c --- */

/* A QP whose receives come from the SRQ, with that receive CQ: stash room for the SRQ's depth, once per CQ. ND_NO_MEMORY. */
NTSTATUS srq_attach(struct srq *srq, struct cq *cq);
void srq_detach(struct srq *srq, struct cq *cq);

/* What the device's CQs have, into the stashes. One batch of each CQ: true if there was any. No lock held. */
bool srq_pull(struct srq *srq);

/* All of it: false if a CQ has more than its depth allows to be taken. No lock held. */
bool srq_collect(struct srq *srq);

struct ibv_srq *srq_verbs(const struct srq *srq);

/* --- srq_notify.c --- */

/* Completes what is due. cq->control may be held. */
void srq_fire_if_low(struct srq *srq);

/* The threshold is a new one. No lock held. */
void srq_threshold_changed(struct srq *srq);

/* Ends the SRQ: pending requests and later calls get `status`. The first status stays. */
void srq_die(struct srq *srq, NTSTATUS status);

#endif
