/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <string.h>

#define DEPTH 16

char pair_bytes[4096];
struct pair pair;

void pair_connect(struct qp *qp, struct qp *peer)
{
    struct ibv_qp_attr attr;

    ok_status(qp_claim(qp), ND_SUCCESS);
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer ? qp_number(peer) : 0xffff;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    ok_int(qp_modify(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS),
           ==, 0);
    attr.qp_state = IBV_QPS_RTS;
    ok_int(qp_modify(qp, &attr,
                     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
    qp_set_connected(qp);
}

struct mr *pair_region(void *buffer, size_t length, uint32_t flags)
{
    struct mr *mr;

    ok_status(mr_register(pair.adapter, buffer, length, flags, &mr), ND_SUCCESS);
    return mr;
}

struct mw *pair_window(void)
{
    struct mw *mw;

    ok_status(mw_create(pair.adapter, MW_ND, PAIR_REVOKED, &mw), ND_SUCCESS);
    return mw;
}

struct qp *pair_other_qp(void)
{
    struct qp *qp = rig_qp(pair.adapter, pair.cq, pair.cq, DEPTH);

    pair_connect(qp, NULL);
    return qp;
}

void pair_make(enum device_kind kind)
{
    struct ibv_device_attr *attr = fake_device_attr("fake_ib");

    memset(&pair, 0, sizeof(pair));
    attr->vendor_id = kind == KIND_RXE ? 0xffffff : 0x1234;
    attr->max_mw = kind == KIND_EMULATED ? 0 : 4096;
    attr->device_cap_flags |= IBV_DEVICE_MEM_MGT_EXTENSIONS;
    if (kind == KIND_MUTE || kind == KIND_EMULATED)
        attr->device_cap_flags &= ~(unsigned)IBV_DEVICE_MEM_MGT_EXTENSIONS;
    fake_wire(true);
    fake_wire_hold_data(true);
    pair.adapter = rig_open(RIG_IB);
    pair.cq = rig_cq(pair.adapter, 64);
    pair.peer_cq = rig_cq(pair.adapter, 64);
    pair.qp = rig_qp(pair.adapter, pair.cq, pair.cq, DEPTH);
    pair.peer = rig_qp(pair.adapter, pair.peer_cq, pair.peer_cq, DEPTH);
    pair_connect(pair.qp, pair.peer);
    pair_connect(pair.peer, pair.qp);
    pair.mr = pair_region(pair_bytes, sizeof(pair_bytes), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    pair.mw = pair_window();
}

void pair_unmake(void)
{
    if (pair.mw)
        mw_release(pair.mw);
    if (pair.qp)
        rig_drop(pair.qp);
    if (pair.peer)
        rig_drop(pair.peer);
    if (pair.mr)
        ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair_discard(pair.cq);
    pair_discard(pair.peer_cq);
    cq_unref(pair.cq);
    cq_unref(pair.peer_cq);
    rig_close(pair.adapter);
    ok_str(fake_violations(), "");
    ok_str(fake_leaks(), "");
    fake_reset_script();
}

void pair_run(void)
{
    fake_wire_hold_data(false);
    fake_wire_hold_data(true);
}

HRESULT pair_bind(uintptr_t n, size_t at, size_t length, uint32_t flags)
{
    return mw_bind(pair.qp, rig_ctx(n), pair.mr, pair.mw, pair_bytes + at, length,
                   flags | ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE, NULL);
}

HRESULT pair_access(uint32_t token, size_t at)
{
    char byte = (char)(at + 1);
    ND2_SGE sge = { &byte, 1, 0 };
    ND2_RESULT result;

    ok_status(qp_write(pair.peer, rig_ctx(0xacce55), &sge, 1, (uintptr_t)&pair_bytes[at], token, ND_OP_FLAG_INLINE),
              ND_SUCCESS);
    pair_run();
    ok_uint(cq_get_results(pair.peer_cq, &result, 1), ==, 1);
    ok_ptr(result.RequestContext, ==, rig_ctx(0xacce55));
    if (result.Status == ND_SUCCESS)
        ok_int(pair_bytes[at], ==, byte);
    return result.Status;
}

unsigned pair_posts(enum ibv_wr_opcode opcode)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_log_length(); i++) {
        const struct fake_call *call = fake_log_at(i);

        if ((call->fn == FAKE_ibv_post_send || call->fn == FAKE_ibv_bind_mw) && call->arg.wr.opcode == opcode &&
            !call->result)
            count++;
    }
    return count;
}

const struct fake_wr *pair_last_post(void)
{
    return &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
}

void pair_discard(struct cq *cq)
{
    ND2_RESULT results[16];

    while (cq_get_results(cq, results, 16))
        ;
}
