/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "status.h"

/* Queue pairs that the application moves from state to state itself, as verbs programs do (WinVerbs). The queues' modes
 * follow the state: a device's library may take a request in a state in which the device refuses it. */

#define QUERY_ALL                                                                                                   \
    (IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY |        \
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN |           \
     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
     IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_DEST_QPN)

struct mcast {
    struct list link;
    union ibv_gid gid;
    uint16_t lid;
};

void qp_open_queues(struct qp *qp)
{
    enum ibv_qp_state state = qp->state;

    if (state == IBV_QPS_INIT && qp->iwarp) {
        uint32_t mode = QUEUE_IDLE;

        /* A failed connect costs the device QP its life: see qp_replace. */
        wordlock_lock(&qp->rq.lock);
        __atomic_compare_exchange_n(&qp->rq.mode, &mode, QUEUE_SAVE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        wordlock_unlock(&qp->rq.lock);
    } else if (state != IBV_QPS_RESET && state != IBV_QPS_ERR) {
        queue_open(&qp->rq, QUEUE_IDLE);
    }
    if (state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE)
        queue_open(&qp->sq, QUEUE_IDLE);
}

/* The queue's requests are forgotten: completions of them that might still come find no slot of theirs. */
static void reset_queue(struct queue *queue)
{
    struct cq *cq = queue->cq;

    wordlock_lock(&queue->lock);
    cq_lock(cq);
    cq_forget_ready_locked(cq, queue);
    __atomic_store_n(&queue->tail, queue->head, __ATOMIC_RELEASE);
    queue->kind = queue == &queue->qp->rq ? QUEUE_RECEIVES : QUEUE_SENDS;
    cq_unlock(cq);
    queue->limit = queue->head + queue->depth;
    queue->silent = 0;
    queue->closed = queue->flushed = 0;
    __atomic_store_n(&queue->mode, QUEUE_IDLE, __ATOMIC_SEQ_CST);
    wordlock_unlock(&queue->lock);
}

/* A receive that the QP has taken from a shared queue comes back only by way of ERROR, where its own requests come back too:
 * they are forgotten before. qp->control held, and let go meanwhile. */
static void recall_shared(struct qp *qp)
{
    (void)qp_note_error(qp); /* or the first flush would start a drain */
    reset_queue(&qp->sq);
    reset_queue(&qp->rq);
    qp_modify_to_error(qp);
    if (engine_on_loop())
        return; /* which drained it, and does not wait */
    pthread_mutex_unlock(&qp->control);
    qp_settle_shared(qp);
    pthread_mutex_lock(&qp->control);
}

int qp_reset(struct qp *qp)
{
    struct ibv_qp_attr attr;
    bool recalled = false;
    int error = EINVAL;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RESET;
    pthread_mutex_lock(&qp->control);
    if (!qp->verbs || !qp->manual)
        goto unlock;
    error = EBUSY;
    if (__atomic_load_n(&qp->err, __ATOMIC_ACQUIRE) && !qp->drained)
        goto unlock;
    cq_unsure(qp->sq.cq);
    cq_unsure(qp->rq.cq);
    /* Some providers throw the completions away, others leave them: poll before and after. */
    qp_collect_all(qp);
    if (qp_takes_shared(qp) && !qp->iwarp) {
        recalled = true;
        recall_shared(qp);
        error = EINVAL;
        if (!qp->verbs)
            goto unlock;
        qp_collect_all(qp);
    }
    error = post_errno(ibv_modify_qp(qp->verbs, &attr, IBV_QP_STATE));
    if (error) {
        log_info("ibv_modify_qp of QP %u to RESET: %s", qp->number, strerror(error));
        goto unlock;
    }
    qp_collect_all(qp);
    qp->state = IBV_QPS_RESET;
    qp->claimed = qp->used = qp->moved = false;
    qp->draining = qp->drained = false;
    __atomic_store_n(&qp->swallowed, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&qp->attempt, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&qp->last_wqe, 0, __ATOMIC_RELEASE);
    reset_queue(&qp->sq);
    reset_queue(&qp->rq);
    __atomic_store_n(&qp->err, 0, __ATOMIC_SEQ_CST);
unlock:
    pthread_mutex_unlock(&qp->control);
    if (error && recalled)
        qp_post_work(qp); /* it stays in ERROR */
    return error;
}

enum ibv_qp_state qp_state(struct qp *qp)
{
    enum ibv_qp_state state;

    pthread_mutex_lock(&qp->control);
    state = qp->state;
    pthread_mutex_unlock(&qp->control);
    return state;
}

uint8_t qp_port(struct qp *qp)
{
    uint8_t port;

    pthread_mutex_lock(&qp->control);
    port = qp->port;
    pthread_mutex_unlock(&qp->control);
    return port;
}

bool qp_can_fail(struct qp *qp)
{
    bool can;

    pthread_mutex_lock(&qp->control);
    can = qp->verbs && qp->state != IBV_QPS_RESET;
    pthread_mutex_unlock(&qp->control);
    return can;
}

int qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct qp_limits *limits)
{
    struct ibv_qp_init_attr init;
    int error = ENODEV;

    pthread_mutex_lock(&qp->control);
    if (qp->verbs) {
        memset(attr, 0, sizeof(*attr));
        error = post_errno(ibv_query_qp(qp->verbs, attr, QUERY_ALL, &init));
    }
    if (!error) {
        /* siw always says RESET. */
        if (qp->iwarp)
            attr->qp_state = attr->cur_qp_state = qp->used ? IBV_QPS_RTS : qp->state;
        /* A failure that we know of and the device is not told yet. */
        if (__atomic_load_n(&qp->err, __ATOMIC_ACQUIRE))
            attr->qp_state = attr->cur_qp_state = IBV_QPS_ERR;
        limits->send_depth = qp->sq.depth;
        limits->recv_depth = qp->rq.depth;
        limits->send_sge = qp->sq.max_sge;
        limits->recv_sge = qp->rq.max_sge;
        limits->inline_size = qp->sq.inline_size;
        limits->type = qp->init.qp_type;
    } else {
        log_info("ibv_query_qp of QP %u: %s", qp->number, strerror(error));
    }
    pthread_mutex_unlock(&qp->control);
    return error;
}

/* ---- multicast ---- */

/* qp->control held. */
static struct mcast *find_mcast(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    list_for_each (node, &qp->mcasts) {
        struct mcast *mcast = list_entry(node, struct mcast, link);

        if (mcast->lid == lid && memcmp(&mcast->gid, gid, sizeof(*gid)) == 0)
            return mcast;
    }
    return NULL;
}

int qp_attach_mcast(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct mcast *mcast = malloc(sizeof(*mcast));
    int error = ENODEV;

    if (!mcast)
        return ENOMEM;
    mcast->gid = *gid;
    mcast->lid = lid;
    pthread_mutex_lock(&qp->control);
    if (qp->verbs)
        error = find_mcast(qp, gid, lid) ? 0 : post_errno(ibv_attach_mcast(qp->verbs, gid, lid));
    if (!error && !find_mcast(qp, gid, lid)) {
        list_add_tail(&qp->mcasts, &mcast->link);
        mcast = NULL;
    }
    pthread_mutex_unlock(&qp->control);
    free(mcast);
    if (error)
        log_info("ibv_attach_mcast: %s", strerror(error));
    return error;
}

int qp_detach_mcast(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct mcast *mcast;
    int error = ENOENT;

    pthread_mutex_lock(&qp->control);
    mcast = find_mcast(qp, gid, lid);
    if (mcast)
        error = qp->verbs ? post_errno(ibv_detach_mcast(qp->verbs, gid, lid)) : ENODEV;
    if (mcast && !error) {
        list_del(&mcast->link);
        free(mcast);
    }
    pthread_mutex_unlock(&qp->control);
    return error;
}

/* The kernel does not destroy a queue pair that is attached. */
void qp_drop_mcasts(struct qp *qp, struct ibv_qp *verbs)
{
    struct list *node;

    while ((node = list_pop(&qp->mcasts)) != NULL) {
        struct mcast *mcast = list_entry(node, struct mcast, link);
        int error = post_errno(ibv_detach_mcast(verbs, &mcast->gid, mcast->lid));

        if (error)
            log_warn("ibv_detach_mcast: %s", strerror(error));
        free(mcast);
    }
}
