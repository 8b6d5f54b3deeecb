/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CQ_PRIV_H
#define NDVERBS_CQ_PRIV_H

/* What cq.c, cq_poll.c, notify.c share with the queue pair: rings of slots, the stash, the device's CQ.
 *
 * Locks, in this order: qp->control, cq->control, a queue's lock, the CQ's lock; the notify lock before the CQ's lock. The
 * CQ lock is held for at most 16 completions and never across a system call. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cq.h"
#include "gate.h"
#include "list.h"
#include "wordlock.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Keeps a value from the compiler's knowledge. Where it knows that another one equals it, or how to make it anew, it keeps
 * values in registers that have to be saved: an empty poll paid ten instructions of forty for that. */
#define OPAQUE(value)                        \
    __extension__({                          \
        __typeof__(value) opaque_ = (value); \
        __asm__("" : "+r"(opaque_));         \
        opaque_;                             \
    })

/* Whether a value is 0, untold to the compiler: where it knows, it makes the 0 that it has in a register already. */
#if defined(__GCC_ASM_FLAG_OUTPUTS__) && (defined(__x86_64__) || defined(__i386__))
#define IS_ZERO(value)                                        \
    __extension__({                                           \
        bool zero_;                                           \
        __asm__("test %1, %1" : "=@ccz"(zero_) : "r"(value)); \
        zero_;                                                \
    })
#else
#define IS_ZERO(value) (!(value))
#endif

#define CACHE_LINE 64
#define CQ_BATCH   16

struct queue;
struct qp;
struct srq;
struct batch;

/* One posted request; its address is the wr_id, with the lowest bit set for a silent one. So the poller's fast path needs
 * one compare with the slot at the tail to know that a completion is the queue's next and wants a result. */
struct slot {
    struct queue *queue; /* set once */
    uint32_t seq;    /* position in the endless sequence of the ring's requests; SLOT_SILENT turns the top bit over */
    uint32_t length; /* bytes of an initiator request */
    void *context;
    uint32_t type; /* ND2_REQUEST_TYPE */
    uint32_t
        spare; /* local key of the one entry; 0 without entries or inline, SLOT_KEYS_MANY for several (qp_memory.c) */
};
#define SLOT_KEYS_MANY UINT32_MAX
#define SLOT_KEYS_BAD  (UINT32_MAX - 1) /* siw: several or one, and not all of them of memory that is registered */
#define SLOT_SILENT    0x80000000u
#define SLOT_SIGNALLED UINT32_MAX /* length of a silent request that the device signals none the less */
#define WR_ID_SILENT   1u

static inline struct slot *slot_from_wr_id(uint64_t wr_id)
{
    return (struct slot *)(uintptr_t)(wr_id & ~(uint64_t)WR_ID_SILENT);
}

/* What a post does (struct queue.mode). */
enum queue_mode {
    QUEUE_LIVE,  /* goes to the device */
    QUEUE_IDLE,  /* initiator, never connected, or a state that takes none: refused */
    QUEUE_SAVE,  /* receive on iWARP before the connection: to the device, and the SGEs are kept for qp_replace */
    QUEUE_HOLD,  /* receive while qp_replace is at work: kept only */
    QUEUE_SOFT,  /* in error or closed: kept, comes back as ND_CANCELED */
    QUEUE_BATCH, /* live, and requests are held back to go to the device together (batch.c) */
};

/* What the poller finds in the ring (struct queue.kind). */
enum queue_kind {
    QUEUE_SENDS,
    QUEUE_RECEIVES,
    QUEUE_LOST, /* completions that still arrive are of requests given up on; their slots may hold later ones */
};

/* One direction of a QP: a ring of slots between the posters and the pollers. */
struct queue {
    /* Queue lock: posters, and whoever closes the queue. */
    struct wordlock lock;
    uint32_t mode;  /* enum queue_mode; atomic: an error seen by a poller turns it without this lock */
    uint32_t head;  /* next request */
    uint32_t limit; /* tail + depth, as of the last look */
    uint32_t mask;  /* set once; for posters, pollers have their own */
    uint32_t max_transfer;
    uint32_t fence;      /* siw: IBV_SEND_FENCE, for all but Reads; else 0; set once */
    uint32_t short_most; /* of an entry's length that goes the short way (post.c); set once */
    uint32_t max_sge;
    struct slot *slots;
    struct ibv_qp *verbs;
    uint32_t silent; /* silent requests since the last signal they needed */
    uint32_t period; /* so many silent requests need a signal */
    uint32_t inline_size;
    uint32_t no_reads; /* atomic: the connection allows none, and the device would not say so */
    uint32_t max_read_sge;
    uint32_t depth;
    uint32_t closed;        /* requests from closed_at on were never given to the device */
    uint32_t closed_at;     /* head at that moment */
    uint32_t flushed;       /* and all before have come back (CQ lock too) */
    struct ibv_sge *sges;   /* QUEUE_SAVE: max_sge entries a slot; NULL elsewhere */
    uint32_t *sge_counts;   /* QUEUE_SAVE */
    struct list queue_link; /* in cq->queues */
    struct ibv_recv_wr one; /* a receive of one entry, but for its id and the entry */
    struct ibv_recv_wr *bad;
    struct srq
        *srq; /* set once. A QP's receive queue: the SRQ that it takes from, its own ring is empty. An SRQ's: itself */
    struct batch *batch; /* NULL until the first batch */

    /* CQ lock, but seldom used: here they cost no line of their own. */
    struct queue *number_next;
    uint32_t ready;  /* requests at the tail that come back as ND_CANCELED, straight from their slots */
    uint32_t number; /* of the QP, while `numbered` */
    bool numbered;   /* in cq->numbers */

    /* Written by the holder of the CQ lock; `tail` is read by posters. */
    _Alignas(CACHE_LINE) uint32_t tail; /* oldest request that the device has not completed */
    uint32_t kind;                      /* enum queue_kind */
    struct slot *ring;                  /* `slots` again, in this line */
    uint32_t ring_mask;
    void *context; /* of the QP, for the results */
    struct qp *qp; /* NULL: of an SRQ, whose slots complete in any order and on any CQ (srq_priv.h) */
    struct cq *cq;
    struct list ready_link; /* in cq->ready while `ready` is not 0 */
};

/* Why GetResults may not go straight to the device (cq->slow). */
enum {
    CQ_STASH = 1 << 0,   /* the stash has results */
    CQ_READY = 1 << 1,   /* a queue has */
    CQ_WAITING = 1 << 2, /* a Notify may be pending: count what is taken */
    CQ_FAILED = 1 << 3,  /* queue pairs wait in `failed` to be reported */
    CQ_GONE = 1 << 4,    /* the device's CQ is unusable */
    CQ_SPILLED = 1 << 5, /* a result found no room */
    CQ_WINDOWS = 1 << 6, /* windows were bound on its queue pairs: receives may invalidate them; stays set */
    CQ_REVOKED = 1 << 7, /* one was, and its result waits in `revoked` */
    CQ_UNBOUND = 1 << 8, /* one waits in `unbound` to be reported */
    CQ_LOW = 1 << 9,     /* an SRQ ran low that a Notify waits for */
    CQ_OWED = 1 << 10,   /* a Notify was completed by the device's event alone: the next result has been told of */
};
#define CQ_KEPT    (CQ_STASH | CQ_READY | CQ_REVOKED)             /* results that need no poll */
#define CQ_REPORTS (CQ_FAILED | CQ_SPILLED | CQ_UNBOUND | CQ_LOW) /* what cq_report is to be called for */

/* An SRQ whose receives may complete on a CQ. */
struct cq_share {
    struct list cq_link;  /* in cq->shares */
    struct list srq_link; /* in srq->shares */
    struct srq *srq;
    struct cq *cq;
    uint32_t users; /* QPs that have both; srq->control */
};

struct cq {
    struct cq_front front; /* beside what its GetResults needs of the CQ */

    /* CQ lock */
    struct gate lock; /* shut while `slow` is not 0 */
    uint32_t slow;
    struct ibv_cq *verbs; /* set once */
    ND2_RESULT *stash;
    uint32_t stash_size, stash_head, stash_count; /* a ring, of any size: memory of connections adds up */
    uint32_t depth;                               /* as the application asked */
    /* Results in the stash and in ready queues: alerts are what SOLICITED waits for (receives, failures), others the rest.
     * told_*: how many of each kind, the oldest of it, have completed a Notify already. */
    uint32_t others, alerts, told_others, told_alerts;
    uint32_t taken, taken_alerts; /* results taken straight from the device while CQ_WAITING */
    uint32_t consumed;            /* completions taken from the device, all of them while CQ_WAITING */
    struct list ready;            /* struct queue.ready_link */
    struct list failed;           /* struct qp.failed_link, each with a reference */
    struct list revoked, unbound; /* struct mw; unbound: each with a reference */
    struct queue **numbers;       /* receive queues of QPs with an SRQ by QP number: buckets linked by number_next */
    uint32_t numbers_mask;

    _Alignas(CACHE_LINE) uint32_t refs;
    uint32_t waiting;          /* atomic: pending Notify requests */
    struct cq_detail *details; /* CQ lock: beside each entry of the stash; NULL: not kept */
    NTSTATUS dead;             /* atomic; set under the notify lock, 0 while alive */
    struct adapter *adapter;
    struct device_link device_link;

    pthread_mutex_t control; /* down to `entries`, and growing the stash, the table or the device's CQ */
    struct list queues;      /* attached: struct queue.queue_link */
    struct list shares;      /* struct cq_share.cq_link */
    uint32_t numbered;       /* entries of the table */
    uint32_t reserved;       /* sum of their depths, an SRQ's once */
    uint32_t entries;        /* of the device's CQ */

    struct list notifies;      /* notify lock: struct request.link, oldest first */
    uint32_t armed;            /* notify lock: enum cq_arm */
    uint32_t rearmed;          /* notify lock: ever armed while it was: an event may be late */
    struct request *armed_for; /* notify lock: listed, and the device was armed for it alone; else NULL */
    uint32_t armed_at;         /* notify lock: `consumed` at that moment */
    uint32_t unsure;           /* atomic: a completion need not be a result; stays set */
    uint32_t events;           /* loop: taken from the channel, not acknowledged yet */
    struct list spin_link;     /* notify.c: looked at by threads that spin */
    struct engine_call safety_call;
    struct engine_timer safety_timer;
    bool safety_on; /* on loop */
};

/* From here on a completion of the CQ need not be a result: it may be of a silent request, of one that was given up on, or
 * be taken back by the device together with its queue pair. Called before that can come. Any thread, any lock. */
static inline void cq_unsure(struct cq *cq)
{
    if (unlikely(!__atomic_load_n(&cq->unsure, __ATOMIC_RELAXED)))
        __atomic_store_n(&cq->unsure, 1, __ATOMIC_SEQ_CST);
}

/* The CQ lock. What is in `slow` changes only under it. */
static inline void cq_lock(struct cq *cq)
{
    gate_lock(&cq->lock);
}

static inline void cq_unlock(struct cq *cq)
{
    gate_unlock(&cq->lock, cq->slow ? GATE_SHUT : GATE_OPEN);
}

/* --- cq.c --- */

/* Reserves stash room for a queue, lets the device's CQ grow; undone by cq_detach (once). ND_NO_MEMORY. */
NTSTATUS cq_attach(struct cq *cq, struct queue *queue);
void cq_detach(struct cq *cq, struct queue *queue);

/* The same for an SRQ of that depth; `share` (already linked: NULL) goes into cq->shares. */
NTSTATUS cq_reserve(struct cq *cq, uint32_t depth, struct cq_share *share);
void cq_unreserve(struct cq *cq, uint32_t depth, struct cq_share *share);

/* From here on receives of an SRQ that complete with this QP number are the QP's; until the end of its last completion,
 * after its device QP was destroyed and the CQ polled. ND_NO_MEMORY. */
NTSTATUS cq_number_add(struct cq *cq, struct queue *queue, uint32_t number);
void cq_number_del(struct cq *cq, struct queue *queue);

/* Makes room for `more` further results beyond those there are. False: no memory. No lock of a queue or CQ held. */
bool cq_grow(struct cq *cq, uint32_t more);

/* --- cq_poll.c --- */

/* CQ lock held: polls at most n (<= CQ_BATCH) completions into the stash; how many the device gave. */
uint32_t cq_pull_locked(struct cq *cq, uint32_t n);

/* One batch into the stash, up to the ND depth: true if the device gave any. The queue's lock may be held: call
 * cq_report afterwards without it. */
bool cq_pull(struct cq *cq);

/* Everything the device has, into the stash. `drain`: into the reserved room and beyond; else up to the ND depth, false if
 * it came to that. No lock held but qp->control. */
bool cq_collect(struct cq *cq, bool drain);

/* Reports the queue pairs that failed in completions polled so far; a result without room makes the CQ overrun; SRQs that ran
 * low have their Notify requests completed. No lock held but qp->control. */
void cq_report(struct cq *cq);

/* CQ lock held: a result for a slot of the queue. The slot's ring position is the caller's matter. */
void cq_push_slot_locked(struct cq *cq, struct queue *queue, const struct slot *slot, HRESULT status);

/* CQ lock held: n more requests at the queue's end come back as ND_CANCELED; all of them are taken back, for the caller to give
 * as many results in another way; or without any. */
void cq_ready_locked(struct cq *cq, struct queue *queue, uint32_t n);
void cq_unready_locked(struct cq *cq, struct queue *queue);
void cq_forget_ready_locked(struct cq *cq, struct queue *queue);

/* CQ lock held: a result of an invalidated window, and none again. */
void cq_revoked_locked(struct cq *cq, struct list *link);
void cq_unrevoked_locked(struct cq *cq, struct list *link);

/* CQ lock held: the receive queue of the QP with that number; NULL: none has it here. */
static inline struct queue *cq_find_number_locked(const struct cq *cq, uint32_t number)
{
    struct queue *queue = cq->numbers ? cq->numbers[number & cq->numbers_mask] : NULL;

    while (queue && queue->number != number)
        queue = queue->number_next;
    return queue;
}

/* CQ lock held: where the stash's nth result is, or the next one goes (n = stash_count). */
static inline uint32_t cq_stash_at_locked(const struct cq *cq, uint32_t n)
{
    uint32_t at = cq->stash_head + n;

    return at < cq->stash_size ? at : at - cq->stash_size;
}

static inline uint32_t cq_stash_room_locked(const struct cq *cq)
{
    return cq->stash_size - cq->stash_count;
}

static inline uint32_t cq_count_locked(const struct cq *cq)
{
    return cq->others + cq->alerts;
}

/* Results that have completed no Notify yet. */
static inline bool cq_news_locked(const struct cq *cq, bool any)
{
    return cq->alerts > cq->told_alerts || (any && cq->others > cq->told_others);
}

/* One of them completes one. The choice of ANY leaves the others to what SOLICITED waits for. */
static inline void cq_tell_locked(struct cq *cq, bool any)
{
    if (any && cq->others > cq->told_others)
        cq->told_others++;
    else
        cq->told_alerts++;
}

/* --- notify.c --- */

/* New results that no device event announces: completes the Notify requests they satisfy. No lock held. */
void cq_kick(struct cq *cq);

/* No thread looks at it any more. */
void cq_spin_forget(struct cq *cq);

/* Ends the CQ for Notify: pending requests and later calls get `status`. The first status stays. */
void cq_die(struct cq *cq, NTSTATUS status);

/* --- the QP's side, called by the poller with the CQ lock held (qp.c) --- */

/* True if the completion is of a device QP that a failed iWARP attempt has killed and qp_replace will replace. */
bool qp_swallows_locked(struct queue *queue, const struct ibv_wc *wc);

/* False: a failed request is the end of the QP (a reliable connection). */
bool qp_outlives_failures(const struct qp *qp);

/* First failure of the QP: true, later posts go nowhere, and the caller must report it. */
bool qp_note_error(struct qp *qp);

struct list *qp_failed_link(struct qp *qp);
struct qp *qp_from_failed_link(struct list *link);

/* To ERROR and drained, on the loop. Takes over the caller's reference. */
void qp_report_error(struct qp *qp);

/* The same for what rdma_cm may not know of: the connector is told too. */
void qp_report_overrun(struct qp *qp);

#endif
