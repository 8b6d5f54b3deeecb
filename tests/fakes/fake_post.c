/* SPDX-License-Identifier: MIT */

/* Posting to the queues of a queue pair. */

#include "fake_internal.h"

void fake_posted_free(struct fake_posted *posted)
{
    fake_free(posted->inlined);
    fake_free(posted);
}

int fake_post_result(const struct fake_device *device, int err)
{
    return device->quirks & FAKE_QUIRK_NEGATIVE_POST ? -err : err;
}

void fake_recv_to_wr(const struct ibv_recv_wr *from, struct fake_wr *to)
{
    to->wr_id = from->wr_id;
    to->num_sge = from->num_sge;
    for (int i = 0; i < from->num_sge && i < FAKE_MAX_SGE; i++)
        to->sge[i] = from->sg_list[i];
}

struct fake_posted *fake_posted_recv(const struct ibv_recv_wr *wr)
{
    struct fake_posted *posted = (struct fake_posted *)fake_malloc(sizeof(*posted));

    fake_recv_to_wr(wr, &posted->wr);
    return posted;
}

static void send_to_wr(const struct ibv_send_wr *from, struct fake_wr *to)
{
    to->wr_id = from->wr_id;
    to->opcode = from->opcode;
    to->send_flags = from->send_flags;
    to->num_sge = from->num_sge;
    for (int i = 0; i < from->num_sge && i < FAKE_MAX_SGE; i++)
        to->sge[i] = from->sg_list[i];
    switch (from->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
        to->remote_addr = from->wr.rdma.remote_addr;
        to->rkey = from->wr.rdma.rkey;
        to->imm_data = from->imm_data;
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        to->remote_addr = from->wr.atomic.remote_addr;
        to->rkey = from->wr.atomic.rkey;
        to->compare_add = from->wr.atomic.compare_add;
        to->swap = from->wr.atomic.swap;
        break;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
        to->rkey = from->invalidate_rkey;
        break;
    case IBV_WR_BIND_MW:
        to->mw = from->bind_mw.mw;
        to->rkey = from->bind_mw.rkey;
        to->bind_info = from->bind_mw.bind_info;
        break;
    default:
        to->imm_data = from->imm_data;
    }
}

static uint64_t total_length(const struct ibv_sge *sge, int count)
{
    uint64_t length = 0;

    for (int i = 0; i < count; i++)
        length += sge[i].length;
    return length;
}

static int check_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    struct fake_device *device = fake_qp_device(qp);
    bool iwarp = fake_device_is_iwarp(device), is_inline = wr->send_flags & IBV_SEND_INLINE;

    if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT || qp->state == IBV_QPS_RTR) {
        fake_violation("ibv_post_send before RTS: the device would send it later, or wedge");
        return iwarp ? ENOTCONN : EINVAL;
    }
    if (qp->count[FAKE_SEND] >= qp->init.cap.max_send_wr)
        return ENOMEM;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
        return EINVAL;
    if (is_inline && total_length(wr->sg_list, wr->num_sge) > qp->init.cap.max_inline_data)
        return EINVAL;
    switch (wr->opcode) {
    case IBV_WR_SEND:
    case IBV_WR_RDMA_WRITE:
        return 0;
    case IBV_WR_RDMA_READ:
        if (iwarp && !wr->num_sge)
            fake_violation("a Read without entries: siw reads over what the slot's last request named");
        if (iwarp && (wr->send_flags & IBV_SEND_FENCE))
            fake_violation("a fenced Read: siw leaves it at the head of its queue for ever");
        return wr->num_sge > device->attr.max_sge_rd || is_inline ? EINVAL : 0;
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
        return iwarp && wr->opcode != IBV_WR_SEND_WITH_INV ? EINVAL : 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return iwarp || is_inline || wr->num_sge != 1 || wr->sg_list->length != 8 ? EINVAL : 0;
    case IBV_WR_LOCAL_INV:
        return iwarp ? EINVAL : 0;
    case IBV_WR_BIND_MW:
        /* rxe in rdma-core 44 refuses a bind with rubbish where the immediate data would be. */
        return iwarp || wr->imm_data || !wr->bind_mw.mw ? EINVAL : 0;
    default:
        return EINVAL;
    }
}

static void track_window(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    struct fake_mw *mw;

    if (qp->state == IBV_QPS_ERR)
        return;
    if (wr->opcode == IBV_WR_BIND_MW) {
        ((struct fake_mw *)fake_head(wr->bind_mw.mw))->posted_bound = true;
    } else if (wr->opcode == IBV_WR_LOCAL_INV) {
        mw = fake_mw_by_rkey(wr->invalidate_rkey);
        if (mw && !mw->posted_bound)
            fake_violation("LOCAL_INV of the unbound window %p: kernel panic", (void *)&mw->mw);
        if (mw)
            mw->posted_bound = false;
    }
}

static void add_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
    struct fake_posted *posted = (struct fake_posted *)fake_malloc(sizeof(*posted));

    send_to_wr(wr, &posted->wr);
    if (wr->send_flags & IBV_SEND_INLINE) {
        size_t at = 0;

        posted->inlined = (uint8_t *)fake_malloc(total_length(wr->sg_list, wr->num_sge) + 1);
        for (int i = 0; i < wr->num_sge; i++) {
            memcpy(posted->inlined + at, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            at += wr->sg_list[i].length;
        }
    }
    track_window(qp, wr);
    list_add_tail(&qp->posted[FAKE_SEND], &posted->link);
    qp->count[FAKE_SEND]++;
    if (qp->state == IBV_QPS_ERR) {
        posted->lost = fake_qp_device(qp)->quirks & FAKE_QUIRK_DEAD_POST_LOST;
        if (fake_flush_automatic)
            fake_qp_flush_queue(qp, FAKE_SEND);
    }
}

int fake_post_send(struct ibv_qp *public, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct fake_call call = { .fn = FAKE_ibv_post_send, .object = public };
    int err;
    struct fake_qp *qp;

    send_to_wr(wr, &call.arg.wr);
    err = fake_enter(&call);
    qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);
    if (!err && !qp)
        err = EINVAL;
    *bad = wr;
    for (; !err && wr; wr = wr->next) {
        *bad = wr;
        err = check_send(qp, wr);
        if (!err)
            add_send(qp, wr);
    }
    if (qp)
        fake_wire_progress(qp);
    fake_leave(&call, err);
    return err && qp ? fake_post_result(fake_qp_device(qp), err) : err;
}

int fake_post_recv(struct ibv_qp *public, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_call call = { .fn = FAKE_ibv_post_recv, .object = public };
    int err;
    struct fake_qp *qp;
    struct fake_device *device;

    fake_recv_to_wr(wr, &call.arg.wr);
    err = fake_enter(&call);
    qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);
    device = qp ? fake_qp_device(qp) : NULL;
    if (!err && (!qp || qp->qp.srq || (qp->state == IBV_QPS_RESET && !fake_device_is_iwarp(device))))
        err = EINVAL;
    *bad = wr;
    for (; !err && wr; wr = wr->next) {
        struct fake_posted *posted;

        *bad = wr;
        if (qp->count[FAKE_RECV] >= qp->init.cap.max_recv_wr)
            err = ENOMEM;
        else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge)
            err = EINVAL;
        if (err)
            break;
        posted = fake_posted_recv(wr);
        list_add_tail(&qp->posted[FAKE_RECV], &posted->link);
        qp->count[FAKE_RECV]++;
        if (qp->state != IBV_QPS_ERR)
            continue;
        posted->lost = device->quirks & FAKE_QUIRK_DEAD_POST_LOST;
        if (fake_flush_automatic && !(device->quirks & FAKE_QUIRK_LATE_RECV_STUCK))
            fake_qp_flush_queue(qp, FAKE_RECV);
    }
    if (qp)
        fake_wire_progress(qp);
    fake_leave(&call, err);
    return err && qp ? fake_post_result(device, err) : err;
}

/* Type 1 windows go through a call of their own and the same queue. */
int fake_bind_mw(struct ibv_qp *public, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct fake_call call = { .fn = FAKE_ibv_bind_mw, .object = public };
    struct ibv_send_wr wr = { .wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags };
    int err;
    struct fake_qp *qp;

    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = bind->bind_info;
    send_to_wr(&wr, &call.arg.wr);
    err = fake_enter(&call);
    qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, call.fn);
    if (!err)
        err = qp ? check_send(qp, &wr) : EINVAL;
    if (!err) {
        add_send(qp, &wr);
        mw->rkey = wr.bind_mw.rkey;
        fake_wire_progress(qp);
    }
    return fake_leave(&call, err);
}
