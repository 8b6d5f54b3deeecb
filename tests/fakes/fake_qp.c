/* SPDX-License-Identifier: MIT */

/* Queue pairs: life, states, completing. */

#include "fake_internal.h"

#include <stdlib.h>

bool fake_flush_automatic = true;

static uint32_t next_qp_num = 0x11;

void fake_qp_next_num(uint32_t qp_num)
{
    fake_lock();
    next_qp_num = qp_num;
    fake_unlock();
}

struct fake_device *fake_qp_device(const struct fake_qp *qp)
{
    return fake_context_of(qp->qp.context)->device;
}

struct fake_qp *fake_qp_by_num(uint32_t qp_num)
{
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        if (object->live && object->kind == FAKE_OBJ_QP && ((struct fake_qp *)object)->qp.qp_num == qp_num)
            return (struct fake_qp *)object;
    }
    return NULL;
}

/* ---- life ---- */

static void drop_posted(struct fake_qp *qp)
{
    for (int queue = FAKE_SEND; queue <= FAKE_RECV; queue++) {
        struct list *node;

        while ((node = list_pop(&qp->posted[queue])) != NULL)
            fake_posted_free(list_entry(node, struct fake_posted, link));
        qp->count[queue] = 0;
    }
}

static void qp_release(struct fake_object *object)
{
    drop_posted((struct fake_qp *)object);
}

static int check_init(struct fake_pd *pd, const struct ibv_qp_init_attr *init)
{
    struct fake_device *device = fake_context_of(pd->pd.context)->device;
    const struct ibv_device_attr *attr = &device->attr;
    const struct ibv_qp_cap *cap = &init->cap;

    if (device->removed)
        return EIO;
    if (!init->send_cq || !init->recv_cq)
        return EINVAL;
    if (init->qp_type != IBV_QPT_RC &&
        (fake_device_is_iwarp(device) || (init->qp_type != IBV_QPT_UC && init->qp_type != IBV_QPT_UD)))
        return EOPNOTSUPP;
    if (cap->max_send_wr > (uint32_t)attr->max_qp_wr || cap->max_recv_wr > (uint32_t)attr->max_qp_wr ||
        cap->max_send_sge > (uint32_t)attr->max_sge || cap->max_recv_sge > (uint32_t)attr->max_sge ||
        cap->max_inline_data > device->max_inline)
        return EINVAL;
    if (fake_device_is_iwarp(device) && (!cap->max_send_wr || (!init->srq && !cap->max_recv_wr)))
        return EINVAL;
    if (init->send_cq->context != pd->pd.context || init->recv_cq->context != pd->pd.context ||
        (init->srq && init->srq->context != pd->pd.context)) {
        fake_violation("ibv_create_qp: objects of different contexts");
        return EINVAL;
    }
    return 0;
}

#undef ibv_create_qp
struct ibv_qp *ibv_create_qp(struct ibv_pd *public, struct ibv_qp_init_attr *init)
{
    struct fake_call call = { .fn = FAKE_ibv_create_qp, .object = public, .arg.create_qp = { .attr = *init } };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);
    struct fake_device *device;
    struct fake_qp *qp = NULL;

    if (!err)
        err = pd ? check_init(pd, init) : EINVAL;
    if (!err) {
        device = fake_context_of(public->context)->device;
        init->cap.max_send_wr = fake_number(init->cap.max_send_wr, device);
        init->cap.max_recv_wr = init->srq ? 0 : fake_number(init->cap.max_recv_wr, device);
        qp = (struct fake_qp *)fake_object_new(sizeof(*qp), sizeof(qp->qp), FAKE_OBJ_QP);
        qp->object.release = qp_release;
        qp->init = *init;
        list_init(&qp->posted[FAKE_SEND]);
        list_init(&qp->posted[FAKE_RECV]);
        qp->qp.context = public->context;
        qp->qp.qp_context = init->qp_context;
        qp->qp.pd = public;
        qp->qp.send_cq = init->send_cq;
        qp->qp.recv_cq = init->recv_cq;
        qp->qp.srq = init->srq;
        qp->qp.qp_num = next_qp_num++;
        qp->qp.qp_type = init->qp_type;
        pd->children++;
        ((struct fake_cq *)fake_head(init->send_cq))->users++;
        ((struct fake_cq *)fake_head(init->recv_cq))->users++;
        if (init->srq)
            ((struct fake_srq *)fake_head(init->srq))->users++;
        call.created = &qp->qp;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &qp->qp;
}

int ibv_destroy_qp(struct ibv_qp *public)
{
    struct fake_call call = { .fn = FAKE_ibv_destroy_qp, .object = public };
    int err = fake_enter(&call);
    struct fake_qp *qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);

    if (!err && !qp)
        err = EINVAL;
    if (!err) {
        if (qp->attached)
            fake_violation("ibv_destroy_qp of an attached queue pair: EBUSY");
        if (qp->windows)
            fake_violation("ibv_destroy_qp takes 50 s: %u windows are bound on the queue pair", qp->windows);
        fake_async_purge(fake_context_of(qp->qp.context), &qp->qp);
        fake_wait_acked(&qp->object, call.fn);
        list_for_each (node, &fake_objects) {
            struct fake_mw *mw = (struct fake_mw *)list_entry(node, struct fake_object, link);

            if (mw->object.live && mw->object.kind == FAKE_OBJ_MW && mw->qp == qp)
                fake_mw_unbind(mw);
        }
        drop_posted(qp);
        ((struct fake_pd *)fake_head(qp->qp.pd))->children--;
        ((struct fake_cq *)fake_head(qp->qp.send_cq))->users--;
        ((struct fake_cq *)fake_head(qp->qp.recv_cq))->users--;
        if (qp->qp.srq)
            ((struct fake_srq *)fake_head(qp->qp.srq))->users--;
        fake_object_destroy(&qp->object);
    }
    return fake_leave(&call, err);
}

/* ---- states ---- */

unsigned fake_qp_flush_queue(struct fake_qp *qp, enum fake_queue queue)
{
    bool solicited = queue == FAKE_RECV || !(fake_qp_device(qp)->quirks & FAKE_QUIRK_SOLICITED_NO_SEND);
    struct ibv_cq *cq = queue == FAKE_SEND ? qp->qp.send_cq : qp->qp.recv_cq;
    unsigned count = 0;

    if (queue == FAKE_RECV && (fake_qp_device(qp)->quirks & FAKE_QUIRK_SOLICITED_NO_RECV))
        solicited = false;
    list_for_each_safe (node, &qp->posted[queue]) {
        struct fake_posted *posted = list_entry(node, struct fake_posted, link);
        struct ibv_wc wc = { .wr_id = posted->wr.wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp->qp.qp_num };

        if (posted->lost)
            continue;
        list_del(node);
        qp->count[queue]--;
        fake_posted_free(posted);
        fake_cq_add((struct fake_cq *)fake_head(cq), &wc, solicited);
        count++;
    }
    return count;
}

static unsigned flush(struct fake_qp *qp)
{
    unsigned sends = fake_qp_flush_queue(qp, FAKE_SEND);

    return sends + fake_qp_flush_queue(qp, FAKE_RECV);
}

void fake_qp_to_error(struct fake_qp *qp)
{
    bool first = qp->state != IBV_QPS_ERR;

    qp->state = IBV_QPS_ERR;
    if (fake_flush_automatic)
        flush(qp);
    if (first && qp->qp.srq && (fake_qp_device(qp)->quirks & FAKE_QUIRK_LAST_WQE))
        fake_async_raise(fake_context_of(qp->qp.context), IBV_EVENT_QP_LAST_WQE_REACHED, &qp->qp, 0);
}

void fake_qp_connected(struct fake_qp *qp, uint32_t peer_qpn)
{
    if (qp->state == IBV_QPS_ERR)
        return;
    qp->state = IBV_QPS_RTS;
    qp->peer_qpn = peer_qpn;
    qp->access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    fake_wire_progress(qp);
}

static int check_ib(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD, rc = qp->qp.qp_type == IBV_QPT_RC;
    int init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    int rtr_mask = (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
                   (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    int rts_mask =
        IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    const struct fake_device *device = fake_qp_device(qp);
    int needed = 0, allowed = 0;

    switch (attr->qp_state) {
    case IBV_QPS_RESET:
    case IBV_QPS_ERR:
        return 0;
    case IBV_QPS_INIT:
        if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT)
            return EINVAL;
        needed = qp->state == IBV_QPS_RESET ? init_mask : 0;
        allowed = init_mask;
        if ((mask & IBV_QP_PORT) && (attr->port_num < 1 || attr->port_num > device->port_count))
            return EINVAL;
        if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
            return EINVAL;
        break;
    case IBV_QPS_RTR:
        if (qp->state != IBV_QPS_INIT || attr->max_dest_rd_atomic > device->attr.max_qp_rd_atom)
            return EINVAL;
        needed = rtr_mask;
        allowed = rtr_mask | IBV_QP_PKEY_INDEX | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH);
        break;
    case IBV_QPS_RTS:
        if ((qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) ||
            ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > device->attr.max_qp_init_rd_atom))
            return EINVAL;
        needed = qp->state == IBV_QPS_RTR ? rts_mask : 0;
        allowed = rts_mask | IBV_QP_CUR_STATE | (rc ? IBV_QP_MIN_RNR_TIMER : 0) |
                  (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
        break;
    default:
        return EINVAL;
    }
    mask &= ~IBV_QP_STATE;
    return (mask & needed) == needed && !(mask & ~allowed) ? 0 : EINVAL;
}

/* The kernel moves the queue pair; from outside only INIT with access flags and ERROR mean something. */
static int check_iwarp(struct fake_qp *qp, const struct ibv_qp_attr *attr)
{
    switch (attr->qp_state) {
    case IBV_QPS_ERR:
        return 0;
    case IBV_QPS_INIT:
        return qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT ? 0 : EINVAL;
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
        return qp->state == IBV_QPS_RTS ? 0 : EINVAL;
    default:
        return EINVAL;
    }
}

static void enter_state(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    bool iwarp = fake_device_is_iwarp(fake_qp_device(qp));

    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = attr->qp_access_flags;
    if (!iwarp && (mask & IBV_QP_DEST_QPN))
        qp->peer_qpn = attr->dest_qp_num;
    if (!(mask & IBV_QP_STATE))
        return;
    if (attr->qp_state <= IBV_QPS_ERR) {
        qp->attr[attr->qp_state] = *attr;
        qp->mask[attr->qp_state] = mask;
    }
    if (attr->qp_state == IBV_QPS_ERR) {
        fake_qp_to_error(qp);
    } else if (!iwarp || qp->state != IBV_QPS_RTS) {
        qp->state = attr->qp_state;
        if (qp->state == IBV_QPS_RESET) {
            drop_posted(qp);
            qp->peer_qpn = 0;
            if (fake_qp_device(qp)->quirks & FAKE_QUIRK_RESET_CLEANS) {
                fake_cq_clean((struct fake_cq *)fake_head(qp->qp.send_cq), qp->qp.qp_num);
                fake_cq_clean((struct fake_cq *)fake_head(qp->qp.recv_cq), qp->qp.qp_num);
            }
        }
    }
    qp->qp.state = qp->state;
    fake_wire_progress(qp);
}

int ibv_modify_qp(struct ibv_qp *public, struct ibv_qp_attr *attr, int mask)
{
    struct fake_call call = {
        .fn = FAKE_ibv_modify_qp,
        .object = public,
        .arg.modify_qp = { .attr = *attr, .mask = mask },
    };
    int err = fake_enter(&call);
    struct fake_qp *qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);

    if (!err && (!qp || !(mask & (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS))))
        err = EINVAL;
    if (!err && (mask & IBV_QP_STATE))
        err = fake_device_is_iwarp(fake_qp_device(qp)) ? check_iwarp(qp, attr) : check_ib(qp, attr, mask);
    if (!err)
        enter_state(qp, attr, mask);
    return fake_leave(&call, err);
}

int ibv_query_qp(struct ibv_qp *public, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct fake_call call = { .fn = FAKE_ibv_query_qp, .object = public };
    int err = fake_enter(&call);
    struct fake_qp *qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);

    (void)mask;
    if (!err && !qp)
        err = EINVAL;
    if (!err) {
        memset(attr, 0, sizeof(*attr));
        for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
            const struct ibv_qp_attr *from = &qp->attr[state];

            if (qp->mask[state] & IBV_QP_PORT)
                attr->port_num = from->port_num;
            if (qp->mask[state] & IBV_QP_QKEY)
                attr->qkey = from->qkey;
            if (qp->mask[state] & IBV_QP_AV)
                attr->ah_attr = from->ah_attr;
            if (qp->mask[state] & IBV_QP_ALT_PATH) {
                attr->alt_ah_attr = from->alt_ah_attr;
                attr->alt_pkey_index = from->alt_pkey_index;
                attr->alt_port_num = from->alt_port_num;
                attr->alt_timeout = from->alt_timeout;
            }
            if (qp->mask[state] & IBV_QP_PATH_MIG_STATE)
                attr->path_mig_state = from->path_mig_state;
            if (qp->mask[state] & IBV_QP_RETRY_CNT)
                attr->retry_cnt = from->retry_cnt;
            if (qp->mask[state] & IBV_QP_PATH_MTU)
                attr->path_mtu = from->path_mtu;
            if (qp->mask[state] & IBV_QP_RQ_PSN)
                attr->rq_psn = from->rq_psn;
            if (qp->mask[state] & IBV_QP_SQ_PSN)
                attr->sq_psn = from->sq_psn;
            if (qp->mask[state] & IBV_QP_MAX_DEST_RD_ATOMIC)
                attr->max_dest_rd_atomic = from->max_dest_rd_atomic;
            if (qp->mask[state] & IBV_QP_MAX_QP_RD_ATOMIC)
                attr->max_rd_atomic = from->max_rd_atomic;
            if (qp->mask[state] & IBV_QP_MIN_RNR_TIMER)
                attr->min_rnr_timer = from->min_rnr_timer;
            if (qp->mask[state] & IBV_QP_TIMEOUT)
                attr->timeout = from->timeout;
            if (qp->mask[state] & IBV_QP_RETRY_CNT)
                attr->retry_cnt = from->retry_cnt;
            if (qp->mask[state] & IBV_QP_RNR_RETRY)
                attr->rnr_retry = from->rnr_retry;
        }
        attr->qp_state = fake_qp_device(qp)->quirks & FAKE_QUIRK_QUERY_RESET ? IBV_QPS_RESET : qp->state;
        attr->cur_qp_state = attr->qp_state;
        attr->qp_access_flags = qp->access;
        attr->dest_qp_num = qp->peer_qpn;
        attr->cap = qp->init.cap;
        if (init)
            *init = qp->init;
    }
    return fake_leave(&call, err);
}

/* ---- completing ---- */

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_LOCAL_INV:
        return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
        return IBV_WC_BIND_MW;
    default:
        return IBV_WC_SEND;
    }
}

struct fake_posted *fake_qp_next_send(struct fake_qp *qp)
{
    return list_empty(&qp->posted[FAKE_SEND]) ? NULL : list_entry(qp->posted[FAKE_SEND].next, struct fake_posted, link);
}

struct fake_posted *fake_qp_next_recv(struct fake_qp *qp)
{
    struct list *head = qp->qp.srq ? &((struct fake_srq *)fake_head(qp->qp.srq))->posted : &qp->posted[FAKE_RECV];

    return list_empty(head) ? NULL : list_entry(head->next, struct fake_posted, link);
}

void fake_qp_finish_send(struct fake_qp *qp, enum ibv_wc_status status, uint32_t byte_len)
{
    struct fake_posted *posted = fake_qp_next_send(qp);
    struct fake_wr *wr = &posted->wr;
    struct ibv_wc wc = { .wr_id = wr->wr_id, .qp_num = qp->qp.qp_num };
    bool signalled = qp->init.sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED);

    if (status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_BIND_MW)
        status = fake_execute_bind(qp, wr);
    else if (status == IBV_WC_SUCCESS && wr->opcode == IBV_WR_LOCAL_INV)
        status = fake_execute_invalidate(qp, wr->rkey);
    wc.status = status;
    if (status == IBV_WC_SUCCESS) {
        wc.opcode = wc_opcode(wr->opcode);
        wc.byte_len = byte_len;
    }
    list_del(&posted->link);
    qp->count[FAKE_SEND]--;
    fake_posted_free(posted);
    if (signalled || status != IBV_WC_SUCCESS)
        fake_cq_add((struct fake_cq *)fake_head(qp->qp.send_cq), &wc,
                    status != IBV_WC_SUCCESS && !(fake_qp_device(qp)->quirks & FAKE_QUIRK_SOLICITED_NO_SEND));
    if (status != IBV_WC_SUCCESS)
        fake_qp_to_error(qp);
}

bool fake_qp_alerts(const struct fake_qp *qp, enum ibv_wc_status status, bool flag)
{
    if (status == IBV_WC_SUCCESS)
        return flag;
    return flag || status == IBV_WC_WR_FLUSH_ERR || !(fake_qp_device(qp)->quirks & FAKE_QUIRK_SOLICITED_BY_FLAG);
}

void fake_qp_finish_recv(struct fake_qp *qp, const struct ibv_wc *from, bool solicited)
{
    struct fake_posted *posted = fake_qp_next_recv(qp);
    struct ibv_wc wc = *from;
    bool stored;

    wc.wr_id = posted->wr.wr_id;
    wc.qp_num = qp->qp.qp_num;
    list_del(&posted->link);
    if (qp->qp.srq)
        fake_srq_taken((struct fake_srq *)fake_head(qp->qp.srq));
    else
        qp->count[FAKE_RECV]--;
    fake_posted_free(posted);
    if (fake_qp_device(qp)->quirks & FAKE_QUIRK_SOLICITED_NO_RECV)
        solicited = false;
    stored = fake_cq_add((struct fake_cq *)fake_head(qp->qp.recv_cq), &wc, solicited);
    /* A receive whose completion is lost takes its queue pair down, a send does not. */
    if (wc.status != IBV_WC_SUCCESS || !stored)
        fake_qp_to_error(qp);
}

unsigned fake_qp_complete(struct ibv_qp *public, enum fake_queue queue, unsigned n, enum ibv_wc_status status,
                          uint32_t byte_len)
{
    struct fake_qp *qp = (struct fake_qp *)fake_head(public);
    struct ibv_wc wc = { .status = status };
    unsigned done = 0;

    if (status == IBV_WC_SUCCESS && queue == FAKE_RECV) {
        wc.opcode = IBV_WC_RECV;
        wc.byte_len = byte_len;
    }
    fake_lock();
    while (done < n && (queue == FAKE_SEND ? fake_qp_next_send(qp) : fake_qp_next_recv(qp)) != NULL) {
        if (queue == FAKE_SEND)
            fake_qp_finish_send(qp, status, byte_len);
        else
            fake_qp_finish_recv(qp, &wc, fake_qp_alerts(qp, status, false));
        done++;
    }
    fake_unlock();
    return done;
}

unsigned fake_qp_complete_wc(struct ibv_qp *public, enum fake_queue queue, const struct ibv_wc *wc, bool solicited)
{
    struct fake_qp *qp = (struct fake_qp *)fake_head(public);
    struct fake_posted *posted;
    struct ibv_wc copy = *wc;
    unsigned done = 0;

    fake_lock();
    if (queue == FAKE_RECV && fake_qp_next_recv(qp)) {
        fake_qp_finish_recv(qp, wc, solicited);
        done = 1;
    } else if (queue == FAKE_SEND && (posted = fake_qp_next_send(qp)) != NULL) {
        copy.wr_id = posted->wr.wr_id;
        copy.qp_num = public->qp_num;
        list_del(&posted->link);
        qp->count[FAKE_SEND]--;
        fake_posted_free(posted);
        fake_cq_add((struct fake_cq *)fake_head(public->send_cq), &copy, solicited);
        if (wc->status != IBV_WC_SUCCESS)
            fake_qp_to_error(qp);
        done = 1;
    }
    fake_unlock();
    return done;
}

/* ---- the test's side ---- */

unsigned fake_qp_posted(struct ibv_qp *qp, enum fake_queue queue)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_qp *)fake_head(qp))->count[queue];
    fake_unlock();
    return count;
}

bool fake_qp_wr(struct ibv_qp *qp, enum fake_queue queue, unsigned index, struct fake_wr *out)
{
    bool found = false;

    fake_lock();
    list_for_each (node, &((struct fake_qp *)fake_head(qp))->posted[queue]) {
        if (index-- == 0) {
            *out = list_entry(node, struct fake_posted, link)->wr;
            found = true;
            break;
        }
    }
    fake_unlock();
    return found;
}

void fake_qp_established(struct ibv_qp *qp)
{
    fake_lock();
    fake_qp_connected((struct fake_qp *)fake_head(qp), 0);
    fake_unlock();
}

void fake_qp_fail(struct ibv_qp *qp)
{
    fake_lock();
    fake_qp_to_error((struct fake_qp *)fake_head(qp));
    fake_unlock();
}

void fake_auto_flush(bool on)
{
    fake_lock();
    fake_flush_automatic = on;
    fake_unlock();
}

unsigned fake_qp_flush(struct ibv_qp *qp)
{
    unsigned count;

    fake_lock();
    count = flush((struct fake_qp *)fake_head(qp));
    fake_unlock();
    return count;
}

enum ibv_qp_state fake_qp_state(struct ibv_qp *qp)
{
    enum ibv_qp_state state;

    fake_lock();
    state = ((struct fake_qp *)fake_head(qp))->state;
    fake_unlock();
    return state;
}

struct ibv_qp *fake_qp_from_num(uint32_t qp_num)
{
    struct fake_qp *qp;

    fake_lock();
    qp = fake_qp_by_num(qp_num);
    fake_unlock();
    return qp ? &qp->qp : NULL;
}

const struct ibv_qp_attr *fake_qp_attr(struct ibv_qp *public, enum ibv_qp_state state, int *mask)
{
    struct fake_qp *qp = (struct fake_qp *)fake_head(public);
    const struct ibv_qp_attr *attr = NULL;

    fake_lock();
    if (qp->mask[state]) {
        attr = &qp->attr[state];
        if (mask)
            *mask = qp->mask[state];
    }
    fake_unlock();
    return attr;
}
