/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "mw.h"
#include "ndstatus.h"
#include "srq_priv.h"
#include "status.h"

/* More entries than asked for, where the device has them: programs count on it (ndspi.md A44). */
#define SGE_USUAL 4

/* Inline data may have to be gathered on the stack. */
#define INLINE_MOST 1024

static uint32_t ring_size(uint32_t depth)
{
    uint32_t size = 1;

    while (size < depth)
        size <<= 1;
    return size;
}

static uint32_t sge_capacity(uint32_t asked, uint32_t most)
{
    uint32_t want = asked > SGE_USUAL ? asked : SGE_USUAL;

    return want < most ? want : most;
}

/* ---- the device QP ---- */

static int to_init(struct qp *qp, struct ibv_qp *verbs)
{
    struct ibv_qp_attr attr;
    int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_INIT;
    if (qp->iwarp) {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    } else {
        /* The peer's rights come with the connection. */
        attr.port_num = qp->port = qp->adapter->port;
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    }
    return post_errno(ibv_modify_qp(verbs, &attr, mask));
}

/* A device QP in INIT, or in RESET if that is our state; `init` becomes what the device made of it. 0 or errno. */
static int make_verbs(struct qp *qp, struct ibv_qp_init_attr *init, struct ibv_qp **out)
{
    struct ibv_qp *verbs;
    int error;

    verbs = ibv_create_qp(qp->adapter->pd, init);
    if (!verbs)
        return errno;
    error = qp->state == IBV_QPS_RESET ? 0 : to_init(qp, verbs);
    if (error) {
        log_warn("ibv_modify_qp to INIT: %s", strerror(error));
        ibv_destroy_qp(verbs);
        return error;
    }
    *out = verbs;
    return 0;
}

/* ---- creation ---- */

static void queue_init(struct queue *queue, struct qp *qp, struct cq *cq, uint32_t depth, enum queue_mode mode)
{
    queue->qp = qp;
    queue->cq = cq;
    queue->context = qp->sq.context;
    queue->mask = queue->ring_mask = ring_size(depth) - 1;
    queue->depth = queue->limit = depth;
    queue->period = depth / 2 ? depth / 2 : 1;
    queue->max_transfer = qp->adapter->limits.max_transfer;
    /* siw completes what it has sent at once, also behind a Read that is not answered yet, and a completion says that what is
     * before it is over. */
    queue->fence = device_is_siw(qp->adapter->device) ? IBV_SEND_FENCE : 0;
    /* And its requests go the long way, which looks at their memory. */
    queue->short_most = device_is_siw(qp->adapter->device) ? 0 : queue->max_transfer;
    queue->mode = mode;
    queue->one.num_sge = 1;
    list_init(&queue->ready_link);
    list_init(&queue->queue_link);
}

/* One allocation for both rings. Each has a slot behind its end that is never used: the poller compares with the slot after
 * the last one. */
static bool make_slots(struct qp *qp)
{
    size_t sq_size = (size_t)qp->sq.mask + 1, rq_size = (size_t)qp->rq.mask + 1;

    if (posix_memalign((void **)&qp->sq.slots, CACHE_LINE, (sq_size + rq_size + 2) * sizeof(struct slot)) != 0) {
        qp->sq.slots = NULL;
        return false;
    }
    qp->rq.slots = qp->sq.slots + sq_size + 1;
    qp->sq.ring = qp->sq.slots;
    qp->rq.ring = qp->rq.slots;
    memset(qp->sq.slots, 0, (sq_size + rq_size + 2) * sizeof(struct slot));
    for (size_t i = 0; i < sq_size; i++)
        qp->sq.slots[i].queue = &qp->sq;
    for (size_t i = 0; i < rq_size; i++) {
        qp->rq.slots[i].queue = &qp->rq;
        qp->rq.slots[i].type = Nd2RequestTypeReceive;
    }
    return true;
}

static bool make_saved(struct qp *qp)
{
    size_t size = (size_t)qp->rq.mask + 1;

    if (!qp->iwarp)
        return true;
    qp->rq.sges = calloc(size * qp->rq.max_sge, sizeof(*qp->rq.sges));
    qp->rq.sge_counts = calloc(size, sizeof(*qp->rq.sge_counts));
    return qp->rq.sges && qp->rq.sge_counts;
}

static void describe(struct qp *qp, const struct qp_config *config)
{
    const struct adapter_limits *limits = &qp->adapter->limits;
    struct ibv_qp_cap *cap = &qp->init.cap;

    qp->init.qp_context = qp;
    qp->init.send_cq = config->send_cq->verbs;
    qp->init.recv_cq = config->recv_cq->verbs;
    qp->init.qp_type = config->type ? config->type : IBV_QPT_RC;
    /* siw wants at least one of each. */
    cap->max_send_wr = config->send_depth ? config->send_depth : 1;
    cap->max_send_sge = sge_capacity(config->send_sge, limits->max_send_sge);
    cap->max_inline_data = config->inline_size;
    if (config->srq) {
        qp->init.srq = srq_verbs(config->srq);
    } else {
        cap->max_recv_wr = config->recv_depth ? config->recv_depth : 1;
        cap->max_recv_sge = sge_capacity(config->recv_sge, limits->max_recv_sge);
    }
}

static int make_first(struct qp *qp, const struct qp_config *config, struct ibv_qp **out)
{
    struct ibv_qp_init_attr init = qp->init;
    struct ibv_qp_cap *cap = &qp->init.cap;
    int error = make_verbs(qp, &init, out);

    if (error && (cap->max_send_sge > config->send_sge || cap->max_recv_sge > config->recv_sge)) {
        cap->max_send_sge = config->send_sge ? config->send_sge : 1;
        if (!config->srq)
            cap->max_recv_sge = config->recv_sge ? config->recv_sge : 1;
        init = qp->init;
        error = make_verbs(qp, &init, out);
    }
    if (error) {
        status_warn(error, status_from_create_errno(error),
                    "ibv_create_qp (%u/%u requests, %u/%u entries, %u bytes inline) on %s", cap->max_send_wr,
                    cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge, cap->max_inline_data,
                    qp->adapter->device->name);
        return error;
    }
    /* The device may have given more. */
    qp->sq.max_sge = init.cap.max_send_sge > cap->max_send_sge ? init.cap.max_send_sge : cap->max_send_sge;
    qp->rq.max_sge = init.cap.max_recv_sge > cap->max_recv_sge ? init.cap.max_recv_sge : cap->max_recv_sge;
    if (qp->manual && init.cap.max_inline_data > qp->sq.inline_size)
        qp->sq.inline_size =
            init.cap.max_inline_data < INLINE_MOST ? init.cap.max_inline_data : qp->adapter->limits.max_inline;
    return 0;
}

static void set_verbs(struct qp *qp, struct ibv_qp *verbs)
{
    __atomic_store_n(&qp->verbs, verbs, __ATOMIC_RELEASE);
}

static void destroy_verbs(struct ibv_qp *verbs)
{
    int error = ibv_destroy_qp(verbs);

    if (error)
        log_warn("ibv_destroy_qp: %s", strerror(error));
}

/* A device QP that a worker destroys, and what it stands on. The kernel destroys one only once its connection manager has let
 * go of it: siw does so ten seconds after a request that nobody answered. The caller may be the application or the loop. */
struct grave {
    struct engine_work work;
    struct ibv_qp *verbs;
    struct adapter *adapter;
    struct cq *send_cq, *recv_cq;
    struct srq *srq;
};

static void bury(struct engine_work *work)
{
    struct grave *grave = (struct grave *)((char *)work - offsetof(struct grave, work));

    destroy_verbs(grave->verbs);
    if (grave->srq)
        srq_unref(grave->srq);
    cq_unref(grave->send_cq);
    cq_unref(grave->recv_cq);
    adapter_unref(grave->adapter);
    free(grave);
}

static struct grave *grave_make(struct qp *qp, struct ibv_qp *verbs)
{
    struct grave *grave = malloc(sizeof(*grave));

    if (!grave)
        return NULL;
    grave->verbs = verbs;
    grave->adapter = adapter_ref(qp->adapter);
    grave->send_cq = cq_ref(qp->sq.cq);
    grave->recv_cq = cq_ref(qp->rq.cq);
    grave->srq = qp->rq.srq ? srq_ref(qp->rq.srq) : NULL;
    return grave;
}

static NTSTATUS join_srq(struct qp *qp)
{
    NTSTATUS status = srq_attach(qp->rq.srq, qp->rq.cq);

    if (status != ND_SUCCESS)
        return status;
    status = cq_number_add(qp->rq.cq, &qp->rq, qp->number);
    if (status != ND_SUCCESS)
        srq_detach(qp->rq.srq, qp->rq.cq);
    return status;
}

/* The loop may have heard of it already, by an overrun of a queue or from the device, and hold a reference. */
static void abandon(struct qp *qp)
{
    struct ibv_qp *verbs;

    pthread_mutex_lock(&qp->control);
    qp->released = qp->drained = true;
    verbs = qp->verbs;
    set_verbs(qp, NULL);
    pthread_mutex_unlock(&qp->control);
    if (verbs)
        destroy_verbs(verbs);
    cq_detach(qp->sq.cq, &qp->sq);
    cq_detach(qp->rq.cq, &qp->rq);
    qp_unref(qp);
}

NTSTATUS qp_create(const struct qp_config *config, struct qp **out)
{
    struct adapter *adapter = config->adapter;
    NTSTATUS status = ND_NO_MEMORY;
    struct ibv_qp *verbs;
    struct qp *qp;
    int error;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    if (posix_memalign((void **)&qp, CACHE_LINE, sizeof(*qp)) != 0)
        return ND_NO_MEMORY;
    memset(qp, 0, sizeof(*qp));
    qp->refs = 1;
    qp->adapter = adapter;
    qp->iwarp = adapter->device->transport == DEVICE_IW;
    qp->manual = config->manual;
    qp->sq.context = config->context;
    qp->state = config->manual ? IBV_QPS_RESET : IBV_QPS_INIT;
    list_init(&qp->mcasts);
    list_init(&qp->drains);
    list_init(&qp->failed_link);
    list_init(&qp->device_link.link);
    pthread_mutex_init(&qp->control, NULL);
    queue_init(&qp->sq, qp, config->send_cq, config->send_depth, QUEUE_IDLE);
    queue_init(&qp->rq, qp, config->recv_cq, config->srq ? 0 : config->recv_depth,
               qp->manual  ? QUEUE_IDLE
               : qp->iwarp ? QUEUE_SAVE
                           : QUEUE_LIVE);
    qp->rq.srq = config->srq;
    qp->sq.inline_size = config->inline_size;
    qp->rq.kind = QUEUE_RECEIVES;
    describe(qp, config);
    adapter_ref(adapter);
    cq_ref(qp->sq.cq);
    cq_ref(qp->rq.cq);
    if (qp->rq.srq)
        srq_ref(qp->rq.srq);
    if (!make_slots(qp))
        goto err_abandon;
    if (qp->iwarp)
        cq_unsure(qp->rq.cq); /* a failed attempt flushes receives, which is not to be seen */
    status = cq_attach(qp->sq.cq, &qp->sq);
    if (status != ND_SUCCESS)
        goto err_abandon;
    status = cq_attach(qp->rq.cq, &qp->rq);
    if (status != ND_SUCCESS)
        goto err_abandon;
    error = make_first(qp, config, &verbs);
    if (error) {
        status = status_from_create_errno(error);
        goto err_abandon;
    }
    pthread_mutex_lock(&qp->control);
    qp->made = mw_next_order();
    qp->number = verbs->qp_num;
    qp->sq.verbs = qp->rq.verbs = verbs;
    set_verbs(qp, verbs);
    pthread_mutex_unlock(&qp->control);
    qp->sq.max_read_sge = adapter->limits.max_read_sge < qp->sq.max_sge ? adapter->limits.max_read_sge : qp->sq.max_sge;
    status = ND_NO_MEMORY;
    if (!make_saved(qp))
        goto err_abandon;
    if (config->srq) {
        status = join_srq(qp);
        if (status != ND_SUCCESS)
            goto err_abandon;
    }
    if (!device_link_add(adapter->device, &adapter->device->qps, &qp->device_link, qp))
        qp_device_removed(qp);
    *out = qp;
    return ND_SUCCESS;

err_abandon:
    abandon(qp);
    return status;
}

/* ---- references, release ---- */

struct qp *qp_ref(struct qp *qp)
{
    __atomic_add_fetch(&qp->refs, 1, __ATOMIC_RELAXED);
    return qp;
}

struct qp *qp_ref_live(struct qp *qp)
{
    uint32_t refs = __atomic_load_n(&qp->refs, __ATOMIC_RELAXED);

    while (refs) {
        if (__atomic_compare_exchange_n(&qp->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return qp;
    }
    return NULL;
}

void qp_unref(struct qp *qp)
{
    if (__atomic_sub_fetch(&qp->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    device_link_del(qp->adapter->device, &qp->device_link);
    if (qp->rq.srq)
        srq_unref(qp->rq.srq);
    cq_unref(qp->sq.cq);
    cq_unref(qp->rq.cq);
    adapter_unref(qp->adapter);
    pthread_mutex_destroy(&qp->control);
    free(qp->sq.batch);
    free(qp->rq.batch);
    free(qp->rq.sges);
    free(qp->rq.sge_counts);
    free(qp->sq.slots);
    free(qp);
}

static void collect_both(struct qp *qp, bool drain)
{
    cq_collect(qp->rq.cq, drain);
    if (qp->sq.cq != qp->rq.cq)
        cq_collect(qp->sq.cq, drain);
}

void qp_collect(struct qp *qp)
{
    collect_both(qp, false);
}

void qp_collect_all(struct qp *qp)
{
    collect_both(qp, true);
}

void qp_release(struct qp *qp)
{
    struct ibv_qp *verbs;
    bool waited_for, held;

    pthread_mutex_lock(&qp->control);
    if (qp->released) {
        pthread_mutex_unlock(&qp->control);
        return;
    }
    qp->released = true;
    pthread_mutex_unlock(&qp->control);
    qp_fail(qp);
    if (qp_takes_shared(qp))
        qp_settle_shared(qp);
    /* Some providers throw the completions of a destroyed QP away, others leave them: poll before and after. */
    collect_both(qp, true);
    mw_fail_qp(qp);
    pthread_mutex_lock(&qp->control);
    verbs = qp->verbs;
    set_verbs(qp, NULL);
    held = qp->held && (qp->grave = grave_make(qp, verbs)) != NULL;
    pthread_mutex_unlock(&qp->control);
    qp_drop_mcasts(qp, verbs);
    if (!held)
        destroy_verbs(verbs);
    pthread_mutex_lock(&qp->control);
    collect_both(qp, true);
    queue_retire(&qp->sq);
    queue_retire(&qp->rq);
    qp->drained = true;
    waited_for = !list_empty(&qp->drains);
    pthread_mutex_unlock(&qp->control);
    cq_detach(qp->sq.cq, &qp->sq);
    cq_detach(qp->rq.cq, &qp->rq);
    if (qp->rq.srq) {
        cq_number_del(qp->rq.cq, &qp->rq);
        srq_detach(qp->rq.srq, qp->rq.cq);
    }
    cq_report(qp->sq.cq);
    cq_report(qp->rq.cq);
    cq_kick(qp->rq.cq);
    if (qp->sq.cq != qp->rq.cq)
        cq_kick(qp->sq.cq);
    if (waited_for)
        qp_post_work(qp);
}

struct adapter *qp_adapter(const struct qp *qp)
{
    return qp->adapter;
}

uint32_t qp_number(const struct qp *qp)
{
    return __atomic_load_n(&qp->number, __ATOMIC_ACQUIRE);
}

bool qp_used(struct qp *qp)
{
    bool used;

    pthread_mutex_lock(&qp->control);
    used = qp->used;
    pthread_mutex_unlock(&qp->control);
    return used;
}

bool qp_has_srq(const struct qp *qp)
{
    return qp->rq.srq != NULL;
}

struct ibv_qp *qp_verbs(const struct qp *qp)
{
    return __atomic_load_n(&qp->verbs, __ATOMIC_ACQUIRE);
}

/* ---- the connection's side ---- */

NTSTATUS qp_claim(struct qp *qp)
{
    NTSTATUS status = ND_SUCCESS;

    if (adapter_removed(qp->adapter))
        return ND_DEVICE_REMOVED;
    pthread_mutex_lock(&qp->control);
    if (qp->claimed || qp->used || qp->released || __atomic_load_n(&qp->err, __ATOMIC_ACQUIRE))
        status = ND_CONNECTION_ACTIVE;
    else
        qp->claimed = true;
    if (status == ND_SUCCESS && qp->iwarp)
        __atomic_store_n(&qp->attempt, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&qp->control);
    return status;
}

void qp_unclaim(struct qp *qp)
{
    pthread_mutex_lock(&qp->control);
    qp->claimed = false;
    qp->tried = true;
    __atomic_store_n(&qp->attempt, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&qp->control);
}

void qp_hold_device(struct qp *qp)
{
    pthread_mutex_lock(&qp->control);
    qp->held = true;
    pthread_mutex_unlock(&qp->control);
}

void qp_let_device(struct qp *qp)
{
    struct grave *grave;

    pthread_mutex_lock(&qp->control);
    qp->held = false;
    grave = qp->grave;
    qp->grave = NULL;
    pthread_mutex_unlock(&qp->control);
    if (grave)
        engine_work(ENGINE_LANE_DESTROY, &grave->work, bury);
}

bool qp_tried(struct qp *qp)
{
    bool tried;

    pthread_mutex_lock(&qp->control);
    tried = qp->tried && !qp->iwarp;
    pthread_mutex_unlock(&qp->control);
    return tried;
}

void qp_limit_reads(struct qp *qp, uint32_t most)
{
    __atomic_store_n(&qp->sq.no_reads, !most && qp->adapter->device->soft, __ATOMIC_RELAXED);
}

int qp_modify(struct qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int error = EINVAL;

    pthread_mutex_lock(&qp->control);
    if (qp->verbs && !__atomic_load_n(&qp->err, __ATOMIC_ACQUIRE)) {
        error = post_errno(ibv_modify_qp(qp->verbs, attr, mask));
        if (!error && (mask & IBV_QP_MAX_QP_RD_ATOMIC))
            qp_limit_reads(qp, attr->max_rd_atomic);
        if (!error && (mask & IBV_QP_PORT))
            qp->port = attr->port_num;
        if (!error && (mask & IBV_QP_STATE)) {
            qp->state = attr->qp_state;
            qp->moved |= qp->manual && attr->qp_state >= IBV_QPS_RTR && attr->qp_state <= IBV_QPS_SQE;
            if (qp->manual)
                qp_open_queues(qp);
        }
    }
    pthread_mutex_unlock(&qp->control);
    return error;
}

void queue_open(struct queue *queue, enum queue_mode from)
{
    uint32_t mode = from;

    wordlock_lock(&queue->lock);
    if (!queue->closed)
        __atomic_compare_exchange_n(&queue->mode, &mode, QUEUE_LIVE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    else if (mode == QUEUE_IDLE)
        __atomic_store_n(&queue->mode, QUEUE_SOFT, __ATOMIC_SEQ_CST);
    wordlock_unlock(&queue->lock);
    /* A poller that found an error saw the queue either open, and closed it, or not: then its flag is seen here. */
    mode = QUEUE_LIVE;
    if (__atomic_load_n(&queue->qp->err, __ATOMIC_SEQ_CST))
        __atomic_compare_exchange_n(&queue->mode, &mode, QUEUE_SOFT, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void qp_set_connected(struct qp *qp)
{
    bool dead;

    pthread_mutex_lock(&qp->control);
    qp->used = true;
    __atomic_store_n(&qp->attempt, 0, __ATOMIC_RELEASE);
    dead = __atomic_load_n(&qp->swallowed, __ATOMIC_ACQUIRE);
    pthread_mutex_unlock(&qp->control);
    queue_open(&qp->sq, QUEUE_IDLE);
    queue_open(&qp->rq, QUEUE_SAVE);
    /* The peer came, and went before we heard of it. */
    if (dead)
        qp_async_error(qp);
}

void qp_close_posts(struct qp *qp)
{
    queue_close(&qp->sq);
    queue_close(&qp->rq);
}

/* ---- iWARP: a new device QP after a failed attempt ---- */

static void hold(struct queue *rq, uint32_t from, uint32_t to)
{
    wordlock_lock(&rq->lock);
    __atomic_compare_exchange_n(&rq->mode, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    wordlock_unlock(&rq->lock);
}

/* What the application has posted comes back now. */
static void lay_to_rest(struct qp *qp, struct ibv_qp *old)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct grave *grave = grave_make(qp, old);

    if (!grave) {
        destroy_verbs(old);
        return;
    }
    if (ibv_modify_qp(old, &attr, IBV_QP_STATE) != 0)
        log_info("ibv_modify_qp to ERROR: %s", strerror(errno));
    engine_work(ENGINE_LANE_DESTROY, &grave->work, bury);
}

int qp_replace(struct qp *qp)
{
    struct ibv_qp_init_attr init = qp->init;
    struct ibv_qp *old, *made = NULL;
    int error = EINVAL;

    pthread_mutex_lock(&qp->control);
    if (qp->released || !qp->iwarp || __atomic_load_n(&qp->err, __ATOMIC_ACQUIRE))
        goto unlock;
    /* Receives posted from here on wait; what the old QP still gives back is not to be seen. */
    hold(&qp->rq, QUEUE_SAVE, QUEUE_HOLD);
    __atomic_store_n(&qp->swallowed, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&qp->attempt, 1, __ATOMIC_RELEASE);
    error = make_verbs(qp, &init, &made);
    if (error)
        goto unlock;
    old = qp->verbs;
    set_verbs(qp, made);
    __atomic_store_n(&qp->number, made->qp_num, __ATOMIC_RELEASE);
    qp->state = IBV_QPS_INIT;
    lay_to_rest(qp, old);
    collect_both(qp, true);
    if (qp->rq.srq && cq_number_add(qp->rq.cq, &qp->rq, made->qp_num) != ND_SUCCESS) {
        error = ENOMEM;
        goto unlock;
    }
    wordlock_lock(&qp->rq.lock);
    qp->rq.verbs = qp->sq.verbs = made;
    if (__atomic_load_n(&qp->rq.mode, __ATOMIC_RELAXED) == QUEUE_HOLD) {
        error = queue_repost_locked(&qp->rq);
        if (!error) {
            uint32_t mode = QUEUE_HOLD;

            __atomic_store_n(&qp->swallowed, 0, __ATOMIC_RELEASE);
            __atomic_compare_exchange_n(&qp->rq.mode, &mode, QUEUE_SAVE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
    }
    wordlock_unlock(&qp->rq.lock);
unlock:
    pthread_mutex_unlock(&qp->control);
    if (error && !__atomic_load_n(&qp->err, __ATOMIC_ACQUIRE)) {
        log_warn("QP %u cannot be used again: %s", qp->number, strerror(error));
        qp_async_error(qp);
    }
    return error;
}
