/* SPDX-License-Identifier: MIT */

/* Work carried out between connected queue pairs of this process, with the data really copied. */

#include "fake_internal.h"

bool fake_wire_on;

static bool data_held;

static uint64_t total(const struct fake_wr *wr)
{
    uint64_t length = 0;

    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sge[i].length;
    return length;
}

/* A walk over the bytes of a request's memory; an inline send's bytes are in one piece. */
struct cursor {
    const struct fake_wr *wr;
    uint8_t *flat; /* NULL: by the scatter/gather list */
    uint64_t left; /* of the flat piece */
    int index;
    uint32_t offset;
};

static uint32_t cursor_piece(struct cursor *c, uint8_t **at)
{
    if (c->flat) {
        *at = c->flat;
        return c->left > UINT32_MAX ? UINT32_MAX : (uint32_t)c->left;
    }
    while (c->index < c->wr->num_sge && c->offset == c->wr->sge[c->index].length) {
        c->index++;
        c->offset = 0;
    }
    if (c->index == c->wr->num_sge)
        return 0;
    *at = (uint8_t *)(uintptr_t)c->wr->sge[c->index].addr + c->offset;
    return c->wr->sge[c->index].length - c->offset;
}

static void cursor_move(struct cursor *c, uint32_t bytes)
{
    if (c->flat) {
        c->flat += bytes;
        c->left -= bytes;
    } else {
        c->offset += bytes;
    }
}

static void copy(struct cursor to, struct cursor from)
{
    uint8_t *target = NULL, *source = NULL;
    uint32_t room, have, bytes;

    while ((have = cursor_piece(&from, &source)) != 0 && (room = cursor_piece(&to, &target)) != 0) {
        bytes = have < room ? have : room;
        memmove(target, source, bytes);
        cursor_move(&from, bytes);
        cursor_move(&to, bytes);
    }
}

static struct cursor cursor_flat(void *at, uint64_t length)
{
    return (struct cursor){ .flat = (uint8_t *)at, .left = length };
}

static struct cursor cursor_wr(const struct fake_wr *wr)
{
    return (struct cursor){ .wr = wr };
}

static struct cursor cursor_send(const struct fake_posted *posted)
{
    return posted->inlined ? cursor_flat(posted->inlined, total(&posted->wr)) : cursor_wr(&posted->wr);
}

/* Both ends fail: the receiver's completion first, then the sender's. */
static void fail_both(struct fake_qp *qp, enum ibv_wc_status here, struct fake_qp *peer, enum ibv_wc_status there)
{
    bool flag = fake_qp_next_send(qp)->wr.send_flags & IBV_SEND_SOLICITED;
    struct ibv_wc wc = { .status = there };

    if (there != IBV_WC_SUCCESS)
        fake_qp_finish_recv(peer, &wc, fake_qp_alerts(peer, there, flag));
    else
        fake_qp_to_error(peer);
    fake_qp_finish_send(qp, here, 0);
}

static void do_send(struct fake_qp *qp, struct fake_posted *send, struct fake_qp *peer, struct fake_posted *recv)
{
    struct fake_wr *wr = &send->wr;
    uint64_t length = total(wr), room = total(&recv->wr);
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = (uint32_t)length };

    if (length > room) {
        fail_both(qp, IBV_WC_REM_INV_REQ_ERR, peer, IBV_WC_LOC_LEN_ERR);
        return;
    }
    if (length &&
        fake_check_local(peer->qp.srq ? peer->qp.srq->pd : peer->qp.pd, recv->wr.sge, recv->wr.num_sge, true)) {
        fail_both(qp, IBV_WC_REM_OP_ERR, peer, IBV_WC_LOC_PROT_ERR);
        return;
    }
    copy(cursor_wr(&recv->wr), cursor_send(send));
    if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = wr->imm_data;
    } else if (wr->opcode == IBV_WR_SEND_WITH_INV) {
        struct fake_mw *mw = fake_mw_by_rkey(wr->rkey);

        if (mw && mw->rkey == wr->rkey && !mw->mr)
            fake_violation("a send with invalidate of the unbound window %p: kernel panic", (void *)&mw->mw);
        if (fake_execute_invalidate(peer, wr->rkey) != IBV_WC_SUCCESS) {
            fail_both(qp, IBV_WC_REM_ACCESS_ERR, peer, IBV_WC_LOC_QP_OP_ERR);
            return;
        }
        if (mw)
            mw->posted_bound = false;
        wc.wc_flags = IBV_WC_WITH_INV;
        wc.invalidated_rkey = wr->rkey;
    }
    fake_qp_finish_recv(peer, &wc, wr->send_flags & IBV_SEND_SOLICITED);
    fake_qp_finish_send(qp, IBV_WC_SUCCESS, (uint32_t)length);
}

static void do_write(struct fake_qp *qp, struct fake_posted *send, struct fake_qp *peer, struct fake_posted *recv)
{
    struct fake_wr *wr = &send->wr;
    uint64_t length = total(wr);
    enum ibv_wc_status status = fake_check_remote(peer, wr->rkey, wr->remote_addr, length, IBV_ACCESS_REMOTE_WRITE);

    /* The rights of the queue pair do not matter to a write of nothing, which devices without windows use as carrier. */
    if (status != IBV_WC_SUCCESS && length) {
        fail_both(qp, status, peer, IBV_WC_SUCCESS);
        return;
    }
    copy(cursor_flat((void *)(uintptr_t)wr->remote_addr, length), cursor_send(send));
    if (recv) {
        struct ibv_wc wc = { .status = IBV_WC_SUCCESS,
                             .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                             .byte_len = (uint32_t)length,
                             .wc_flags = IBV_WC_WITH_IMM,
                             .imm_data = wr->imm_data };

        fake_qp_finish_recv(peer, &wc, wr->send_flags & IBV_SEND_SOLICITED);
    }
    fake_qp_finish_send(qp, IBV_WC_SUCCESS, (uint32_t)length);
}

static void do_read(struct fake_qp *qp, struct fake_posted *send, struct fake_qp *peer)
{
    struct fake_wr *wr = &send->wr;
    uint64_t length = total(wr);
    enum ibv_wc_status status = fake_check_remote(peer, wr->rkey, wr->remote_addr, length, IBV_ACCESS_REMOTE_READ);

    if (status != IBV_WC_SUCCESS) {
        fail_both(qp, status, peer, IBV_WC_SUCCESS);
        return;
    }
    copy(cursor_wr(wr), cursor_flat((void *)(uintptr_t)wr->remote_addr, length));
    fake_qp_finish_send(qp, IBV_WC_SUCCESS, (uint32_t)length);
}

/* Carries out the oldest request; false: it has to wait (for a receive, or as while retrying). */
static bool do_one(struct fake_qp *qp)
{
    struct fake_posted *send = fake_qp_next_send(qp), *recv = NULL;
    struct fake_qp *peer;
    struct fake_wr *wr;
    bool takes_receive;

    if (!send || qp->state != IBV_QPS_RTS)
        return false;
    wr = &send->wr;
    if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV) {
        fake_qp_finish_send(qp, IBV_WC_SUCCESS, 0);
        return true;
    }
    peer = fake_qp_by_num(qp->peer_qpn);
    if (!peer || peer->peer_qpn != qp->qp.qp_num || (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS))
        return false;
    if (!send->inlined &&
        fake_check_local(qp->qp.pd, wr->sge, wr->num_sge, wr->opcode == IBV_WR_RDMA_READ) != IBV_WC_SUCCESS) {
        fake_qp_finish_send(qp, IBV_WC_LOC_PROT_ERR, 0);
        return true;
    }
    takes_receive = wr->opcode != IBV_WR_RDMA_READ && wr->opcode != IBV_WR_RDMA_WRITE;
    if (takes_receive && (recv = fake_qp_next_recv(peer)) == NULL)
        return false;
    if (wr->opcode == IBV_WR_RDMA_READ)
        do_read(qp, send, peer);
    else if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        do_write(qp, send, peer, recv);
    else
        do_send(qp, send, peer, recv);
    return true;
}

static void progress(struct fake_qp *qp)
{
    struct fake_qp *peer = qp->peer_qpn ? fake_qp_by_num(qp->peer_qpn) : NULL;

    while (do_one(qp))
        ;
    while (peer && peer->peer_qpn == qp->qp.qp_num && do_one(peer))
        ;
}

static void progress_all(void)
{
    list_for_each (node, &fake_objects) {
        struct fake_qp *qp = (struct fake_qp *)list_entry(node, struct fake_object, link);

        if (qp->object.kind == FAKE_OBJ_QP)
            progress(qp);
    }
}

void fake_wire_progress(struct fake_qp *qp)
{
    if (!fake_wire_on || data_held || !qp->object.live)
        return;
    progress(qp);
}

void fake_wire_progress_srq(struct fake_srq *srq)
{
    if (!fake_wire_on || data_held)
        return;
    list_for_each (node, &fake_objects) {
        struct fake_qp *qp = (struct fake_qp *)list_entry(node, struct fake_object, link);

        if (qp->object.kind == FAKE_OBJ_QP && qp->qp.srq == &srq->srq)
            progress(qp);
    }
}

void fake_wire(bool on)
{
    fake_lock();
    fake_wire_on = on;
    if (on && !data_held)
        progress_all();
    fake_unlock();
}

void fake_wire_hold_data(bool on)
{
    fake_lock();
    data_held = on;
    if (fake_wire_on && !on)
        progress_all();
    fake_unlock();
}

void fake_wire_reset(void)
{
    fake_wire_on = false;
    data_held = false;
}
