/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_QP_PRIV_H
#define NDVERBS_QP_PRIV_H

/* What qp.c, post.c and drain.c share. Lock order: cq_priv.h. */

#include "cq_priv.h"
#include "qp.h"

struct qp {
    struct queue sq, rq;

    uint32_t refs;
    uint32_t number;
    struct adapter *adapter;
    struct device_link device_link;
    struct list failed_link; /* CQ lock of the queue that failed first */
    uint32_t err;            /* atomic: failed or flushed; no post reaches the device any more */
    uint32_t watched;        /* atomic: polls of the receive CQ look for windows that the peer invalidates (mw.c) */
    uint32_t lost;           /* atomic: the loop has to tell the connector that the QP is past use */
    uint64_t made;           /* set once: mw_next_order() */

    /* iWARP: an attempt is on, and if it fails the kernel flushes the receives although they are to survive (atomic). */
    uint32_t attempt;
    uint32_t swallowed; /* some were, and are not to be seen */

    uint32_t last_wqe; /* atomic, a futex: the device has given back the last receive that it had taken from the SRQ */

    pthread_mutex_t control; /* from here on */
    struct ibv_qp *verbs;    /* NULL after qp_release */
    struct ibv_qp_init_attr init;
    enum ibv_qp_state state;
    uint8_t port;
    bool iwarp;  /* set once */
    bool manual; /* set once: the application moves it */
    struct list mcasts;
    bool claimed;
    bool tried; /* an attempt has given it back */
    bool used;  /* has been connected */
    bool moved; /* its application has brought it to a state in which it receives */
    bool released;
    bool held;           /* qp_hold_device */
    struct grave *grave; /* of the device QP, released while held */
    uint64_t failed_at;  /* ns, when the device QP went to ERROR */

    /* Draining, from the first error on. */
    struct list drains; /* struct qp_drain.link */
    bool draining, drained;
    uint32_t seen_sq, seen_rq; /* tails at progress_at */
    uint64_t progress_at, kick_at;
    struct engine_call work;
    struct engine_timer timer;
    bool timing; /* on loop: the timer runs and holds a reference */
};

/* --- post.c --- */

/* The device signals all of them. */
static inline bool is_window(ND2_REQUEST_TYPE type)
{
    return type == Nd2RequestTypeBind || type == Nd2RequestTypeInvalidate;
}

/* qp_replace: hands the kept receives to the new device QP. Queue lock held. 0 or errno. */
int queue_repost_locked(struct queue *queue);

/* A Bind or Invalidate, for mw.c. */
struct window_post {
    ND2_REQUEST_TYPE type;
    uint32_t flags;        /* ND_OP_FLAG_SILENT_SUCCESS, _READ_FENCE */
    uint32_t local_key;    /* of the region that the device needs for it; 0: none */
    struct ibv_mr *revoke; /* deregistered once the queue has taken the request, before the device has; NULL: none */
    bool refused;          /* completes ND_INVALID_DEVICE_REQUEST, in order */
    struct ibv_send_wr wr; /* without wr_id and flags */
    bool posted;           /* out, also with a bad status of the device: it was handed to the device... */
    uint32_t position;     /* ...and has this place in the ring */
};

/* ND_SUCCESS without `posted`: the queue is closed, ND_CANCELED follows. ND_CONNECTION_INVALID, ND_NO_MORE_ENTRIES,
 * ND_UNSUCCESSFUL. The device signals all of them, so that their end shows. */
HRESULT qp_post_window(struct qp *qp, void *context, struct window_post *post);

/* --- batch.c; queue lock held --- */

/* One more request for the chain, in a slot that is filled (QUEUE_BATCH, room in the ring); takes the slot. False: the
 * chain was full and its post failed: queue_failed without the lock. */
bool batch_send_locked(struct queue *sq, const struct ibv_send_wr *wr);
bool batch_receive_locked(struct queue *rq, uint64_t wr_id, const struct ibv_sge *sges, uint32_t n);

/* Hands the chain over. False: failed, the queue is closed at the first request that the device refused; queue_failed without
 * the lock. */
bool batch_post_locked(struct queue *queue);

/* Takes the chain back: so many requests at the head of the queue were never given to the device. */
uint32_t batch_drop_locked(struct queue *queue);

/* --- qp.c --- */

/* As qp_collect, beyond the depths of the CQs: the QP is to lose its completions. */
void qp_collect_all(struct qp *qp);

/* Lets posts through to the device that were kept from it in the mode `from`; not if the queue is closed. */
void queue_open(struct queue *queue, enum queue_mode from);

/* --- qp_manual.c --- */

/* qp->control held: the state allows more than before. */
void qp_open_queues(struct qp *qp);

void qp_drop_mcasts(struct qp *qp, struct ibv_qp *verbs); /* before `verbs` is destroyed */

/* --- drain.c --- */

/* No post reaches the device after this returned. No queue lock held. */
void queue_close(struct queue *queue);

/* The device refused what the queue needs: to ERROR, from the loop. No lock held. */
void queue_failed(struct queue *queue);

/* A post failed with `error` at the request `bad`, and the device has them all none the less. siw's provider puts them into the
 * ring before it asks the kernel, which says ENOTCONN while the connection is on its way out and flushes the ring, or does
 * not: the request comes back with the others. EINVAL is what the kernel says of the ring's head, which stays there. Then
 * queue_failed. Of receives it has none. */
bool queue_took_all_the_same(const struct queue *queue, int error, const void *bad);

/* To ERROR: queues closed, device QP modified. No lock held. qp_modify_to_error: the device QP only; qp->control held. */
void qp_modify_to_error(struct qp *qp);
void qp_fail(struct qp *qp);

/* Another round of drain on the loop. */
void qp_post_work(struct qp *qp);

/* qp->control held: one look at a failed QP at the time `now` (ms). True: everything has come back or been given up. */
bool qp_drain_step(struct qp *qp, uint64_t now);

/* qp->control held, device QP destroyed and its CQs polled: the remaining requests go to the stash. */
void queue_retire(struct queue *queue);

/* May it have taken receives from a shared queue? qp->control held, or `released` set. */
static inline bool qp_takes_shared(const struct qp *qp)
{
    return qp->rq.srq && (qp->used || qp->moved);
}

/* In ERROR, no lock held, not on loop: gives the device the moment it needs to complete a receive that the QP took from its SRQ and did
 * not fill, since with the QP destroyed it would never come back. */
void qp_settle_shared(struct qp *qp);

#define DRAIN_POLL_MS   1
#define DRAIN_KICK_MS   10
#define DRAIN_SILENT_MS 20
#define DRAIN_LOST_MS   1000

#endif
