/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "connector.h"
#include "log.h"
#include "ndstatus.h"
#include "sleep.h"
#include "srq.h"
#include "status.h"

/* How a QP ends (rdma-mapping.md 3): close the queues, ERROR, count the completions home. Requests posted after the close,
 * and those whose completion never comes, stay in their slots; once the device's part is over GetResults takes them
 * straight from there, so they need no room and are bounded by the depth. */

static uint64_t now_ms(void)
{
    return sleep_now() / 1000000;
}

/* ---- closing ---- */

static void close_locked(struct queue *queue)
{
    /* Accepted before the close: what fails of it is as good as posted after. */
    if (__atomic_load_n(&queue->mode, __ATOMIC_RELAXED) == QUEUE_BATCH)
        batch_post_locked(queue);
    if (__atomic_load_n(&queue->mode, __ATOMIC_RELAXED) != QUEUE_IDLE)
        __atomic_store_n(&queue->mode, QUEUE_SOFT, __ATOMIC_RELAXED);
    if (!queue->closed) {
        queue->closed = 1;
        queue->closed_at = queue->head - batch_drop_locked(queue);
    }
}

void queue_close(struct queue *queue)
{
    wordlock_lock(&queue->lock);
    close_locked(queue);
    wordlock_unlock(&queue->lock);
}

/* The poller's side of closing: it may not take the queue's lock; the next poster, or queue_close, does the rest. Compare
 * qp_set_connected, which looks at err after it opened the queue. */
static void soften(struct queue *queue)
{
    uint32_t mode = __atomic_load_n(&queue->mode, __ATOMIC_SEQ_CST);

    while (mode != QUEUE_IDLE && mode != QUEUE_SOFT &&
           !__atomic_compare_exchange_n(&queue->mode, &mode, QUEUE_SOFT, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

bool qp_note_error(struct qp *qp)
{
    if (__atomic_exchange_n(&qp->err, 1, __ATOMIC_SEQ_CST))
        return false;
    soften(&qp->sq);
    soften(&qp->rq);
    return true;
}

bool qp_outlives_failures(const struct qp *qp)
{
    return qp->init.qp_type != IBV_QPT_RC;
}

bool qp_swallows_locked(struct queue *queue, const struct ibv_wc *wc)
{
    struct qp *qp = queue->qp;

    if (likely(!__atomic_load_n(&qp->attempt, __ATOMIC_ACQUIRE)) || queue != &qp->rq ||
        wc->status != IBV_WC_WR_FLUSH_ERR || __atomic_load_n(&qp->err, __ATOMIC_ACQUIRE))
        return false;
    __atomic_store_n(&qp->swallowed, 1, __ATOMIC_RELEASE);
    return true;
}

struct list *qp_failed_link(struct qp *qp)
{
    return &qp->failed_link;
}

struct qp *qp_from_failed_link(struct list *link)
{
    return list_entry(link, struct qp, failed_link);
}

/* qp->control held. */
void qp_modify_to_error(struct qp *qp)
{
    struct ibv_qp_attr attr;
    int error;

    if (!qp->verbs || qp->state == IBV_QPS_RESET)
        return; /* nothing can be posted, and the device has no such transition */
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_ERR;
    error = post_errno(ibv_modify_qp(qp->verbs, &attr, IBV_QP_STATE));
    if (error && qp->state != IBV_QPS_ERR)
        log_warn("ibv_modify_qp of QP %u to ERROR: %s", qp->number, strerror(error));
    if (qp->state != IBV_QPS_ERR)
        qp->failed_at = sleep_now();
    qp->state = IBV_QPS_ERR;
}

void qp_fail(struct qp *qp)
{
    qp_note_error(qp);
    queue_close(&qp->sq);
    queue_close(&qp->rq);
    pthread_mutex_lock(&qp->control);
    if (qp->state != IBV_QPS_ERR)
        qp_modify_to_error(qp);
    pthread_mutex_unlock(&qp->control);
}

/* ---- counting home ---- */

/* Requests that the device has and has not completed. */
static uint32_t outstanding(struct queue *queue)
{
    uint32_t n;

    wordlock_lock(&queue->lock);
    n = queue->flushed ? 0 : queue->closed_at - __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE);
    wordlock_unlock(&queue->lock);
    return n;
}

/* The device's part is over; what is left in the ring is ready to be taken. `lost`: that includes requests that the device
 * had, whose completions, should they come after all, must not be seen. */
static void queue_flushed(struct queue *queue, bool lost)
{
    struct cq *cq = queue->cq;

    wordlock_lock(&queue->lock);
    if (!queue->flushed) {
        uint32_t tail;

        queue->flushed = 1;
        cq_lock(cq);
        tail = queue->tail;
        if (lost && tail != queue->closed_at) {
            queue->kind = QUEUE_LOST;
            cq_unsure(cq);
            for (uint32_t i = tail; i != queue->closed_at; i++)
                queue->slots[i & queue->mask].seq = i ^ SLOT_SILENT;
        }
        cq_ready_locked(cq, queue, queue->head - tail);
        cq_unlock(cq);
    }
    wordlock_unlock(&queue->lock);
}

/* The device gives no completion of a success. */
static bool ends_in_silence(const struct queue *queue, uint32_t position)
{
    const struct slot *slot = &queue->slots[position & queue->mask];

    return slot->seq == (position ^ SLOT_SILENT) && slot->length != SLOT_SIGNALLED &&
           !is_window((ND2_REQUEST_TYPE)slot->type);
}

/* Silent requests at the end of a queue have no completion behind them that would tell that they succeeded, and the device
 * flushes in order: if it has flushed nothing for a while, they did. Before a request that is to have a completion they may
 * have failed as well as that one, whose completion is late. True: nothing but such requests was left; they are done with. */
static bool forgive_silent(struct queue *queue)
{
    uint32_t end;
    bool all;

    wordlock_lock(&queue->lock);
    cq_lock(queue->cq);
    all = queue->flushed;
    if (!all) {
        end = queue->tail;
        while (end != queue->closed_at && ends_in_silence(queue, end))
            end++;
        all = end == queue->closed_at;
        if (all)
            __atomic_store_n(&queue->tail, end, __ATOMIC_RELEASE);
    }
    cq_unlock(queue->cq);
    wordlock_unlock(&queue->lock);
    return all;
}

bool qp_drain_step(struct qp *qp, uint64_t now)
{
    uint32_t sq_left, rq_left, sq_tail, rq_tail;
    bool swallowed;

    if (qp->drained)
        return true;
    cq_collect(qp->rq.cq, true);
    if (qp->sq.cq != qp->rq.cq)
        cq_collect(qp->sq.cq, true);
    sq_left = outstanding(&qp->sq);
    rq_left = outstanding(&qp->rq);
    /* Their flushes have come already, and were put aside. */
    swallowed = __atomic_load_n(&qp->swallowed, __ATOMIC_ACQUIRE);
    if (swallowed)
        rq_left = 0;
    sq_tail = __atomic_load_n(&qp->sq.tail, __ATOMIC_RELAXED);
    rq_tail = __atomic_load_n(&qp->rq.tail, __ATOMIC_RELAXED);
    if (!qp->draining || sq_tail != qp->seen_sq || rq_tail != qp->seen_rq) {
        qp->draining = true;
        qp->seen_sq = sq_tail;
        qp->seen_rq = rq_tail;
        qp->progress_at = qp->kick_at = now;
    }
    if (sq_left && now - qp->progress_at >= DRAIN_SILENT_MS && forgive_silent(&qp->sq))
        sq_left = 0;
    if (sq_left || rq_left) {
        if (now - qp->progress_at < DRAIN_LOST_MS) {
            if (now - qp->kick_at >= DRAIN_KICK_MS) {
                /* On rxe this flushes receives that slipped in late. */
                qp->kick_at = now;
                qp_modify_to_error(qp);
            }
            return false;
        }
        log_warn("QP %u: %u requests and %u receives never completed", qp->number, sq_left, rq_left);
    }
    queue_flushed(&qp->sq, sq_left != 0);
    queue_flushed(&qp->rq, rq_left != 0 || swallowed);
    qp->drained = true;
    return true;
}

/* Hardware says so by an event. rxe only needs its tasklet to run, and says nothing: on a busy machine that took longer than
 * two milliseconds, and the receive was lost. */
void qp_settle_shared(struct qp *qp)
{
    uint64_t until = qp->failed_at + 20 * 1000000ull;

    for (int i = 0; i < 4 && !__atomic_load_n(&qp->last_wqe, __ATOMIC_ACQUIRE) && sleep_now() < until; i++)
        futex_wait(SLEEP_LOCK, &qp->last_wqe, 0, until);
}

void queue_retire(struct queue *queue)
{
    struct cq *cq = queue->cq;
    uint32_t left;

    if (queue == &queue->qp->sq)
        forgive_silent(queue);
    wordlock_lock(&queue->lock);
    queue->flushed = 1;
    cq_lock(cq);
    cq_unready_locked(cq, queue);
    left = queue->head - queue->tail;
    cq_unlock(cq);
    wordlock_unlock(&queue->lock);
    /* Reserved long ago, unless other queue pairs overdrew. */
    if (!cq_grow(cq, left))
        log_warn("no memory for the results of a queue pair");
    while (left) {
        cq_lock(cq);
        for (uint32_t i = 0; left && i < CQ_BATCH; i++, left--) {
            cq_push_slot_locked(cq, queue, &queue->slots[queue->tail & queue->mask], ND_CANCELED);
            __atomic_store_n(&queue->tail, queue->tail + 1, __ATOMIC_RELEASE);
        }
        cq_unlock(cq);
    }
}

/* ---- on the loop ---- */

static void kick_both(struct qp *qp)
{
    cq_kick(qp->rq.cq);
    if (qp->sq.cq != qp->rq.cq)
        cq_kick(qp->sq.cq);
}

static void timer_fired(struct engine_timer *timer);

static void work(struct qp *qp)
{
    struct list done;
    struct list *node;
    bool failed, finished, wait;

    list_init(&done);
    /* Not if it was reset meanwhile: then there is nothing to bring back any more. */
    failed = __atomic_load_n(&qp->err, __ATOMIC_ACQUIRE);
    if (failed)
        qp_fail(qp);
    pthread_mutex_lock(&qp->control);
    /* qp_release does the rest itself, and comes back for the drains. */
    finished = !failed || (qp->released ? qp->drained : qp_drain_step(qp, now_ms()));
    wait = !finished && !qp->released;
    if (finished)
        list_splice_tail(&done, &qp->drains);
    pthread_mutex_unlock(&qp->control);
    if (wait) {
        if (!qp->timing) {
            qp->timing = true;
            qp_ref(qp);
        }
        engine_timer_start(&qp->timer, DRAIN_POLL_MS, timer_fired);
    }
    if (finished)
        kick_both(qp);
    while ((node = list_pop(&done)) != NULL) {
        struct qp_drain *drain = list_entry(node, struct qp_drain, link);

        drain->done(drain);
    }
}

static void timer_fired(struct engine_timer *timer)
{
    struct qp *qp = (struct qp *)((char *)timer - offsetof(struct qp, timer));

    qp->timing = false;
    work(qp);
    qp_unref(qp);
}

static void work_called(struct engine_call *call)
{
    struct qp *qp = (struct qp *)((char *)call - offsetof(struct qp, work));

    work(qp);
    if (__atomic_exchange_n(&qp->lost, 0, __ATOMIC_ACQUIRE))
        connector_qp_failed(qp);
    qp_unref(qp);
}

void qp_post_work(struct qp *qp)
{
    qp_ref(qp);
    if (!engine_post(&qp->work, work_called))
        qp_unref(qp);
}

void qp_report_error(struct qp *qp)
{
    qp_note_error(qp);
    qp_post_work(qp);
    qp_unref(qp);
}

void qp_report_overrun(struct qp *qp)
{
    __atomic_store_n(&qp->lost, 1, __ATOMIC_RELEASE);
    qp_report_error(qp);
}

/* ---- who wants a drain ---- */

void queue_failed(struct queue *queue)
{
    qp_ref(queue->qp);
    qp_report_error(queue->qp);
}

bool queue_took_all_the_same(const struct queue *queue, int error, const void *bad)
{
    if (queue != &queue->qp->sq || !queue->qp->iwarp)
        return false;
    return error == ENOTCONN || (error == EINVAL && !bad);
}

void qp_async_error(struct qp *qp)
{
    qp_note_error(qp);
    qp_post_work(qp);
}

void qp_last_wqe_reached(struct qp *qp)
{
    __atomic_store_n(&qp->last_wqe, 1, __ATOMIC_RELEASE);
    futex_wake(&qp->last_wqe, INT_MAX);
    if (qp->rq.srq)
        srq_last_wqe(qp->rq.srq);
}

void qp_device_removed(struct qp *qp)
{
    qp_async_error(qp);
}

void qp_drain(struct qp *qp, struct qp_drain *drain, void (*done)(struct qp_drain *drain))
{
    qp_fail(qp);
    drain->done = done;
    pthread_mutex_lock(&qp->control);
    list_add_tail(&qp->drains, &drain->link);
    pthread_mutex_unlock(&qp->control);
    qp_post_work(qp);
}

/* Most devices have flushed when the modify returns, so that the caller finds its results at once. */
HRESULT qp_flush(struct qp *qp)
{
    bool finished;

    qp_fail(qp);
    pthread_mutex_lock(&qp->control);
    finished = qp->released || qp_drain_step(qp, now_ms());
    pthread_mutex_unlock(&qp->control);
    if (finished)
        kick_both(qp);
    else
        qp_post_work(qp);
    return ND_SUCCESS;
}
