/* SPDX-License-Identifier: MIT */
#include "rig.h"

/* get_qp_attr and what becomes of it: iba-cm.md 7. */

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

static struct ibv_context *context;

static void open_ib(const char *name)
{
    context = ibv_open_device(fake_device(name));
    ok(context != NULL);
}

static void close_ib(void)
{
    ok_int(ibv_close_device(context), ==, 0);
}

TEST(get_qp_attr__states)
{
    static const ib_qp_state_t others[] = { 0, IB_QPS_RESET, IB_QPS_SQD, IB_QPS_ERROR, IB_QPS_TIME_WAIT, 3 };
    struct pair pair;
    struct asked r;
    ib_qp_mod_t mod;

    pair_listen(&pair, false);
    request_fill(&r, NULL, "10.1.1.1", "");
    fake_auto_resolve(false);
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_INIT, &mod), STATUS_SUCCESS); /* from the request on */
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTR, &mod), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTS, &mod), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_INIT, NULL), STATUS_INVALID_PARAMETER);
    ok_status(CM.get_qp_attr(pair.listener.id, IB_QPS_INIT, &mod), STATUS_INVALID_DEVICE_STATE);
    for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ok_status(CM.get_qp_attr(pair.active.id, others[i], &mod), STATUS_INVALID_PARAMETER);
    pair_end(&pair);
    fake_auto_resolve(true);
    pair_established(&pair, false);
    for (ib_qp_state_t state = IB_QPS_INIT; state <= IB_QPS_RTS; state *= 2) {
        ok_status(CM.get_qp_attr(pair.active.id, state, &mod), STATUS_SUCCESS);
        ok_status(CM.get_qp_attr(pair.passive.id, state, &mod), STATUS_SUCCESS);
    }
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTS, &mod), STATUS_INVALID_DEVICE_STATE);
    pair_end(&pair);
}

TEST(get_qp_attr__active)
{
    struct pair pair;
    ib_qp_mod_t mod;

    pair_reply(&pair, false);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_INIT, &mod), STATUS_SUCCESS);
    ok_uint(mod.req_state, ==, IB_QPS_INIT);
    ok_uint(mod.state.init.primary_port, ==, 1);
    ok_uint(mod.state.init.qkey, ==, 0);
    ok_uint(mod.state.init.access_ctrl, ==, IB_AC_LOCAL_WRITE | IB_AC_RDMA_WRITE | IB_AC_RDMA_READ | IB_AC_ATOMIC);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rtr.dest_qp, ==, htonl(0x5678));
    ok_uint(mod.state.rtr.resp_res, ==, 1); /* what the reply left of the request's 4 */
    ok_uint(mod.state.rtr.rnr_nak_timeout, ==, 20);
    ok_uint(mod.state.rtr.opts, ==, 0);
    ok_uint(mod.state.rtr.primary_av.port_num, ==, 1);
    ok_int(mod.state.rtr.primary_av.grh_valid, ==, 1);
    ok_uint(mod.state.rtr.primary_av.conn.path_mtu, ==, fake_port_attr("fake_ib", 1)->active_mtu);
    ok_uint(mod.state.rtr.primary_av.conn.rnr_retry_cnt, ==, 4);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTS, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rts.init_depth, ==, 2);
    ok_uint(mod.state.rts.retry_cnt, ==, 5);
    ok_uint(mod.state.rts.rnr_retry_cnt, ==, 4); /* the reply's */
    ok_uint(mod.state.rts.local_ack_timeout, ==, 18);
    ok_uint(mod.state.rts.sq_psn, ==, pair.active.event[0]->data.rep.rep.starting_psn);
    pair_end(&pair);
}

/* Before the reply is formatted: the peer's wishes. Then: what the reply grants, before it is sent and after. */
TEST(get_qp_attr__passive_in_two_steps)
{
    struct pair pair;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t mod, init;

    pair_request(&pair, false);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rtr.resp_res, ==, 3);
    ok_uint(mod.state.rtr.dest_qp, ==, htonl(0x1234));
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTS, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rts.init_depth, ==, 4);
    ok_uint(mod.state.rts.sq_psn, ==, pair.request.data.req.starting_psn);
    ok_uint(mod.state.rts.retry_cnt, ==, 5);
    ok_uint(mod.state.rts.rnr_retry_cnt, ==, 6);
    rep.srq = 1;
    ok_status(CM.format_rep(pair.passive.id, &rep, &init), STATUS_SUCCESS);
    ok_uint(init.state.init.access_ctrl, ==, IB_AC_LOCAL_WRITE | IB_AC_RDMA_WRITE | IB_AC_RDMA_READ | IB_AC_ATOMIC);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rtr.resp_res, ==, 2);
    ok_uint(mod.state.rtr.rnr_nak_timeout, ==, 12); /* a shared receive queue */
    ok_uint(mod.state.rtr.rq_psn, ==, rep.starting_psn);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTS, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rts.init_depth, ==, 1);
    ok_status(CM.send_formatted_rep(pair.passive.id), STATUS_SUCCESS);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rtr.resp_res, ==, 2);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTS, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.rts.init_depth, ==, 1);
    pair_end(&pair);
}

TEST(get_qp_attr__no_reads)
{
    struct pair pair;
    struct asked r;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t init;

    pair_listen(&pair, false);
    request_fill(&r, NULL, "10.1.1.1", "");
    r.req.init_depth = 0;
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    client_event(&pair.listener, 0, iba_cm_req_received);
    ok_status(CM.get_request_ex(pair.listener.id, record, &pair.passive, &pair.passive.id, &pair.request),
              STATUS_SUCCESS);
    ok_status(CM.format_rep(pair.passive.id, &rep, &init), STATUS_SUCCESS);
    ok_uint(init.state.init.access_ctrl, ==, IB_AC_LOCAL_WRITE | IB_AC_RDMA_WRITE);
    pair_end(&pair);
}

/* What a client's queue pair gets is what the kernel said. */
TEST(qp_attr__to_verbs)
{
    static const ib_qp_state_t states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
    static const int masks[] = { 0x39, 0x129181, 0x12e01 };
    struct ibv_qp_attr attr, kernel;
    struct pair pair;
    ib_qp_mod_t mod;
    int mask;

    open_ib("fake_ib");
    pair_reply(&pair, false);
    for (int i = 0; i < 3; i++) {
        ok_status(CM.get_qp_attr(pair.active.id, states[i], &mod), STATUS_SUCCESS);
        ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_SUCCESS);
        ok_uint(mask, ==, masks[i]);
        memset(&kernel, 0, sizeof(kernel));
        kernel.qp_state = (enum ibv_qp_state)(IBV_QPS_INIT + i);
        ok_int(rdma_init_qp_attr(client_rdma_id(&pair.active), &kernel, &mask), ==, 0);
        ok_int(attr.qp_state, ==, kernel.qp_state);
        ok_int(attr.port_num, ==, states[i] == IB_QPS_INIT ? kernel.port_num : 0);
        ok_int(attr.path_mtu, ==, kernel.path_mtu);
        ok_uint(attr.dest_qp_num, ==, kernel.dest_qp_num);
        ok_uint(attr.rq_psn, ==, kernel.rq_psn);
        ok_uint(attr.sq_psn, ==, kernel.sq_psn);
        ok_uint(attr.timeout, ==, kernel.timeout);
        ok_uint(attr.retry_cnt, ==, kernel.retry_cnt);
        ok_uint(attr.rnr_retry, ==, kernel.rnr_retry);
        ok_uint(attr.ah_attr.grh.sgid_index, ==, kernel.ah_attr.grh.sgid_index);
        ok_mem(&attr.ah_attr.grh.dgid, &kernel.ah_attr.grh.dgid, 16);
    }
    mod.req_state = IB_QPS_ERROR;
    ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_INVALID_PARAMETER);
    ok_status(ndverbs_cm_qp_attr(NULL, &mod, &attr, &mask), STATUS_INVALID_PARAMETER);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    mod.state.rtr.primary_av.grh.src_gid.raw[3] ^= 0x55; /* a GID that the device has not */
    ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_INVALID_PARAMETER);
    pair_end(&pair);
    close_ib();
}

/* iWARP: the kernel moves the queue pair; the rights are all there is to set. */
TEST(qp_attr__iwarp)
{
    struct ibv_qp_attr attr;
    struct pair pair;
    ib_qp_mod_t mod;
    int mask;

    open_ib("fake_iw");
    pair_established(&pair, true);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_INIT, &mod), STATUS_SUCCESS);
    ok_uint(mod.state.init.access_ctrl, ==, IB_AC_LOCAL_WRITE | IB_AC_RDMA_WRITE | IB_AC_RDMA_READ);
    ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_SUCCESS);
    ok_uint(mask, ==, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTR, &mod), STATUS_SUCCESS);
    ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_SUCCESS);
    ok_uint(mask, ==, 0);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTS, &mod), STATUS_SUCCESS);
    ok_status(ndverbs_cm_qp_attr(context, &mod, &attr, &mask), STATUS_SUCCESS);
    ok_uint(mask, ==, 0);
    pair_end(&pair);
    close_ib();
}
