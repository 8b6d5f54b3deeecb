/* SPDX-License-Identifier: MIT */

/* Data between connected queue pairs, memory windows, shared receive queues, allocation failures, threads. */

#include "fakes.h"
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *a, *b;
static struct ibv_mr *mr, *target;
static uint8_t memory[256], remote[256];
static struct ibv_wc wc[16];

static void modify(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
{
    struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .dest_qp_num = peer, .max_dest_rd_atomic = 1 };
    int mask = IBV_QP_STATE;

    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (state == IBV_QPS_INIT)
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    else if (state == IBV_QPS_RTR)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                IBV_QP_MIN_RNR_TIMER;
    else if (state == IBV_QPS_RTS)
        mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    ok_int(ibv_modify_qp(qp, &attr, mask), ==, 0);
}

static void connect_qps(void)
{
    modify(a, IBV_QPS_INIT, 0);
    modify(b, IBV_QPS_INIT, 0);
    modify(a, IBV_QPS_RTR, b->qp_num);
    modify(b, IBV_QPS_RTR, a->qp_num);
    modify(a, IBV_QPS_RTS, 0);
    modify(b, IBV_QPS_RTS, 0);
}

static struct ibv_qp *make_qp(struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 4, 4, 64 }
    };

    return ibv_create_qp(pd, &init);
}

static struct ibv_sge sge(uint8_t *at, uint32_t length)
{
    struct ibv_sge entry = { (uintptr_t)at, length, at >= remote && at < remote + 256 ? target->lkey : mr->lkey };

    return entry;
}

static void recv_on(struct ibv_qp *qp, uint64_t id, uint8_t *at, uint32_t length)
{
    struct ibv_sge list = sge(at, length);
    struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &list, .num_sge = 1 }, *bad;

    ok_int(ibv_post_recv(qp, &wr, &bad), ==, 0);
}

static void send_on(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode, uint8_t *at, uint32_t length,
                    uint8_t *to, uint32_t rkey)
{
    struct ibv_sge list = sge(at, length);
    struct ibv_send_wr wr = { .wr_id = id,
                              .sg_list = &list,
                              .num_sge = 1,
                              .opcode = opcode,
                              .send_flags = IBV_SEND_SIGNALED },
                       *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)to;
    wr.wr.rdma.rkey = rkey;
    ok_int(ibv_post_send(qp, &wr, &bad), ==, 0);
}

static void bind_window(struct ibv_qp *qp, struct ibv_mw *mw, uint8_t *at, uint64_t length)
{
    struct ibv_send_wr wr = { .wr_id = 77, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;

    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info.mr = target;
    wr.bind_mw.bind_info.addr = (uintptr_t)at;
    wr.bind_mw.bind_info.length = length;
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ok_int(ibv_post_send(qp, &wr, &bad), ==, 0);
    mw->rkey = wr.bind_mw.rkey;
}

static void invalidate(struct ibv_qp *qp, uint32_t rkey)
{
    struct ibv_send_wr wr = { .wr_id = 78, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED }, *bad;

    wr.invalidate_rkey = rkey;
    ok_int(ibv_post_send(qp, &wr, &bad), ==, 0);
}

static void polled(int count)
{
    ok_int(ibv_poll_cq(cq, 16, wc), ==, count);
}

SETUP
{
    fake_reset();
    context = ibv_open_device(fake_device("fake_ib"));
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    target = ibv_reg_mr(pd, remote, sizeof(remote),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
    a = make_qp(NULL);
    b = make_qp(NULL);
    ok(a && b && mr && target);
    for (int i = 0; i < 256; i++)
        memory[i] = (uint8_t)i;
    memset(remote, 0, sizeof(remote));
    fake_wire(true);
    connect_qps();
}

TEARDOWN
{
    ok_int(ibv_destroy_qp(a), ==, 0);
    ok_int(ibv_destroy_qp(b), ==, 0);
    ok_int(ibv_dereg_mr(mr), ==, 0);
    ok_int(ibv_dereg_mr(target), ==, 0);
    ok_int(ibv_destroy_cq(cq), ==, 0);
    ok_int(ibv_dealloc_pd(pd), ==, 0);
    ok_int(ibv_close_device(context), ==, 0);
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
}

TEST(send__gather_and_scatter)
{
    struct ibv_sge from[3] = { sge(memory, 3), sge(memory + 10, 0), sge(memory + 20, 5) };
    struct ibv_sge to[2] = { sge(remote, 4), sge(remote + 100, 100) };
    struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = to, .num_sge = 2 }, *bad_recv;
    struct ibv_send_wr send = { .wr_id = 2,
                                .sg_list = from,
                                .num_sge = 3,
                                .opcode = IBV_WR_SEND_WITH_IMM,
                                .send_flags = IBV_SEND_SIGNALED,
                                .imm_data = 0x1234 },
                       *bad_send;
    uint8_t first[4] = { 0, 1, 2, 20 }, second[5] = { 21, 22, 23, 24, 0 };

    ok_int(ibv_post_recv(b, &recv, &bad_recv), ==, 0);
    ok_int(ibv_post_send(a, &send, &bad_send), ==, 0);
    polled(2);
    ok_int(wc[0].wr_id, ==, 1);
    ok_int(wc[0].byte_len, ==, 8);
    ok_int(wc[0].qp_num, ==, b->qp_num);
    ok_int(wc[0].wc_flags, ==, IBV_WC_WITH_IMM);
    ok_int(wc[0].imm_data, ==, 0x1234);
    ok_int(wc[1].wr_id, ==, 2);
    ok_mem(remote, first, 4);
    ok_mem(remote + 100, second, 5);
}

TEST(send__waits_for_a_receive_and_keeps_order)
{
    send_on(a, 1, IBV_WR_SEND, memory, 4, NULL, 0);
    send_on(a, 2, IBV_WR_RDMA_WRITE, memory, 4, remote + 50, target->rkey);
    polled(0);
    ok_int(remote[51], ==, 0);
    recv_on(b, 3, remote, 10);
    polled(3);
    ok_int(wc[0].wr_id, ==, 3);
    ok_int(wc[1].wr_id, ==, 1);
    ok_int(wc[2].wr_id, ==, 2);
    ok_int(wc[2].opcode, ==, IBV_WC_RDMA_WRITE);
    ok_int(remote[51], ==, 1);
}

TEST(send__inline_data_may_be_reused_at_once)
{
    uint8_t outside[4] = { 9, 8, 7, 6 }, sent[4] = { 9, 8, 7, 6 };
    struct ibv_sge list = { (uintptr_t)outside, 4, 0 };
    struct ibv_send_wr wr = { .sg_list = &list, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE },
                       *bad;

    ok_int(ibv_post_send(a, &wr, &bad), ==, 0);
    memset(outside, 0, sizeof(outside));
    recv_on(b, 1, remote, 10);
    polled(1); /* the send was not signalled */
    ok_mem(remote, sent, 4);
    list.length = 65;
    ok_int(ibv_post_send(a, &wr, &bad), ==, EINVAL);
}

TEST(send__longer_than_the_receive)
{
    recv_on(b, 1, remote, 3);
    recv_on(b, 2, remote, 3);
    send_on(a, 3, IBV_WR_SEND, memory, 4, NULL, 0);
    polled(3);
    ok_int(wc[0].status, ==, IBV_WC_LOC_LEN_ERR);
    ok_int(wc[1].status, ==, IBV_WC_WR_FLUSH_ERR);
    ok_int(wc[2].status, ==, IBV_WC_REM_INV_REQ_ERR);
    ok_int(fake_qp_state(a), ==, IBV_QPS_ERR);
    ok_int(fake_qp_state(b), ==, IBV_QPS_ERR);
}

TEST(send__local_rights)
{
    struct ibv_mr *read_only = ibv_reg_mr(pd, remote, 16, 0);
    struct ibv_sge list = { (uintptr_t)remote, 16, read_only->lkey };
    struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &list, .num_sge = 1 }, *bad;

    ok_int(ibv_post_recv(b, &wr, &bad), ==, 0);
    send_on(a, 2, IBV_WR_SEND, memory, 4, NULL, 0);
    polled(2);
    ok_int(wc[0].status, ==, IBV_WC_LOC_PROT_ERR);
    ok_int(wc[1].status, ==, IBV_WC_REM_OP_ERR);
    ok_int(ibv_dereg_mr(read_only), ==, 0);
}

TEST(send__to_a_dead_queue_pair_stays_posted)
{
    modify(b, IBV_QPS_ERR, 0);
    send_on(a, 1, IBV_WR_SEND, memory, 4, NULL, 0);
    ok_int(fake_qp_posted(a, FAKE_SEND), ==, 1);
    polled(0);
    ok_int(fake_qp_complete(a, FAKE_SEND, 1, IBV_WC_RETRY_EXC_ERR, 0), ==, 1);
    polled(1);
    ok_int(fake_qp_state(a), ==, IBV_QPS_ERR);
}

TEST(rdma__read_write_and_wrong_key)
{
    send_on(a, 1, IBV_WR_RDMA_WRITE, memory, 16, remote, target->rkey);
    ok_mem(remote, memory, 16);
    memset(memory, 0, 16);
    send_on(a, 2, IBV_WR_RDMA_READ, memory, 16, remote, target->rkey);
    ok_mem(memory, remote, 16);
    send_on(a, 3, IBV_WR_RDMA_WRITE, memory, 0, NULL, 0); /* nothing written: no key needed */
    polled(3);
    ok_int(wc[1].opcode, ==, IBV_WC_RDMA_READ);
    ok_int(wc[2].status, ==, IBV_WC_SUCCESS);
    recv_on(b, 4, remote, 4);
    send_on(a, 5, IBV_WR_RDMA_WRITE, memory, 16, remote + 250, target->rkey);
    polled(2);
    ok_int(wc[0].status, ==, IBV_WC_WR_FLUSH_ERR); /* the responder fails too */
    ok_int(wc[1].status, ==, IBV_WC_REM_ACCESS_ERR);
}

TEST(window__bind_write_invalidate)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    uint32_t first;

    ok(mw);
    bind_window(b, mw, remote + 16, 16);
    first = mw->rkey;
    ok(fake_mw_bound(mw));
    send_on(a, 1, IBV_WR_RDMA_WRITE, memory + 1, 16, remote + 16, first);
    ok_int(remote[16], ==, 1);
    invalidate(b, first);
    ok(!fake_mw_bound(mw));
    bind_window(b, mw, remote, 16);
    ok(mw->rkey != first);
    invalidate(b, mw->rkey);
    bind_window(b, mw, remote, 16);
    polled(6);
    for (int i = 0; i < 6; i++)
        ok_int(wc[i].status, ==, IBV_WC_SUCCESS);
    send_on(a, 2, IBV_WR_RDMA_WRITE, memory, 16, remote, first); /* a dead key */
    polled(1);
    ok_int(wc[0].status, ==, IBV_WC_REM_ACCESS_ERR);
    ok_int(ibv_dealloc_mw(mw), ==, 0);
}

TEST(window__violations)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_qp *c = b;

    invalidate(b, mw->rkey);
    ok(strstr(fake_violations(), "kernel panic"));
    fake_violations_clear();
    bind_window(b, mw, remote, 16);
    invalidate(b, mw->rkey);
    ok_int(fake_violation_count(), ==, 0);
    invalidate(b, mw->rkey);
    ok_int(fake_violation_count(), ==, 1);
    bind_window(b, mw, remote, 16);
    ok_int(ibv_dereg_mr(target), ==, EINVAL);
    ok(strstr(fake_violations(), "windows are bound"));
    ok_int(ibv_destroy_qp(c), ==, 0);
    ok(strstr(fake_violations(), "50 s"));
    fake_violations_clear();
    b = make_qp(NULL);
    ok_int(ibv_dealloc_mw(mw), ==, 0);
}

TEST(window__invalidated_by_messages)
{
    struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED }, *bad;
    struct ibv_recv_wr recv = { .wr_id = 4 }, *bad_recv;
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

    bind_window(b, mw, remote, 16);
    polled(1);
    wr.invalidate_rkey = mw->rkey;
    for (int i = 0; i < 2; i++) {
        ok_int(ibv_post_recv(b, &recv, &bad_recv), ==, 0);
        ok_int(ibv_post_send(a, &wr, &bad), ==, 0);
        polled(2);
        ok_int(wc[0].status, ==, IBV_WC_SUCCESS);
        ok_uint(wc[0].wc_flags, ==, IBV_WC_WITH_INV);
        ok_uint(wc[0].invalidated_rkey, ==, mw->rkey);
        ok(!fake_mw_bound(mw));
        ok_int(fake_violation_count(), ==, i);
    }
    fake_violations_clear();
    ok_int(ibv_dealloc_mw(mw), ==, 0);
}

TEST(window__bad_bind_fails_the_queue_pair)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

    bind_window(b, mw, remote, 0);
    polled(1);
    ok_int(wc[0].status, ==, IBV_WC_MW_BIND_ERR);
    ok_int(fake_qp_state(b), ==, IBV_QPS_ERR);
    ok_int(ibv_dealloc_mw(mw), ==, 0);
}

TEST(window__none_on_iwarp)
{
    struct ibv_context *other = ibv_open_device(fake_device("fake_iw"));
    struct ibv_pd *other_pd = ibv_alloc_pd(other);

    ok_ptr(ibv_alloc_mw(other_pd, IBV_MW_TYPE_2), ==, NULL);
    ok_int(errno, ==, EOPNOTSUPP);
    ok_int(ibv_dealloc_pd(other_pd), ==, 0);
    ok_int(ibv_close_device(other), ==, 0);
}

TEST(srq__shared_receives_and_limit)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 2, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_srq_attr attr = { .srq_limit = 2 };
    struct ibv_sge list = sge(remote, 16);
    struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &list, .num_sge = 1 }, *bad;
    struct ibv_async_event event;

    ok(srq);
    ok_int(ibv_destroy_qp(b), ==, 0);
    b = make_qp(srq);
    modify(b, IBV_QPS_INIT, 0);
    modify(b, IBV_QPS_RTR, a->qp_num);
    ok_int(ibv_destroy_qp(a), ==, 0);
    a = make_qp(NULL);
    modify(a, IBV_QPS_INIT, 0);
    modify(a, IBV_QPS_RTR, b->qp_num);
    modify(a, IBV_QPS_RTS, 0);
    ok_int(ibv_destroy_qp(b), ==, 0);
    b = make_qp(srq);
    modify(b, IBV_QPS_INIT, 0);
    modify(b, IBV_QPS_RTR, a->qp_num);
    ok_int(ibv_post_recv(b, &wr, &bad), ==, EINVAL);
    ok_int(ibv_post_srq_recv(srq, &wr, &bad), ==, 0);
    wr.wr_id = 2;
    ok_int(ibv_post_srq_recv(srq, &wr, &bad), ==, 0);
    ok_int(ibv_post_srq_recv(srq, &wr, &bad), ==, ENOMEM);
    ok_int(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    ok_int(fake_qp_complete(b, FAKE_RECV, 1, IBV_WC_SUCCESS, 4), ==, 1);
    polled(1);
    ok_int(wc[0].wr_id, ==, 1);
    ok_int(wc[0].qp_num, ==, b->qp_num);
    ok_int(ibv_get_async_event(context, &event), ==, 0);
    ok_int(event.event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&event);
    ok_int(ibv_destroy_srq(srq), ==, EBUSY);
    fake_violations_clear();
    modify(b, IBV_QPS_ERR, 0);
    polled(0); /* shared receives are not flushed */
    ok_int(fake_srq_posted(srq), ==, 1);
    ok_int(ibv_destroy_qp(b), ==, 0);
    b = make_qp(NULL);
    ok_int(ibv_destroy_srq(srq), ==, 0);
}

TEST(wire__held_data)
{
    fake_wire_hold_data(true);
    recv_on(b, 1, remote, 4);
    send_on(a, 2, IBV_WR_SEND, memory, 4, NULL, 0);
    polled(0);
    fake_wire_hold_data(false);
    polled(2);
}

/* Through pointers, since a compiler may leave out an allocation that nobody uses. */
static void *(*volatile take)(size_t size) = malloc;
static void *(*volatile take_zeroed)(size_t count, size_t size) = calloc;
static char *(*volatile take_copy)(const char *text) = strdup;

TEST(alloc__nth_fails)
{
    void *first, *second, *third = NULL;

    fake_alloc_fail(2);
    first = take(8);
    second = take_zeroed(1, 8);
    ok(!fake_alloc_pending());
    ok(posix_memalign(&third, 16, 16) == 0);
    ok(first && !second && third);
    free(first);
    free(third);
    fake_alloc_fail(1);
    ok_ptr(take_copy("x"), ==, NULL);
    ok_int(errno, ==, ENOMEM);
    /* The fakes themselves are not concerned. */
    fake_alloc_fail(1);
    first = ibv_alloc_pd(context);
    ok(first);
    ok(fake_alloc_pending());
    fake_alloc_clear();
    ok_int(ibv_dealloc_pd((struct ibv_pd *)first), ==, 0);
}

static void *other_thread(void *arg)
{
    void *memory_of_thread = take(8);

    *(bool *)arg = memory_of_thread != NULL;
    free(memory_of_thread);
    return NULL;
}

TEST(alloc__own_thread_or_any)
{
    bool got = false;
    pthread_t thread;

    ok_int(pthread_create(&thread, NULL, other_thread, &got), ==, 0);
    pthread_join(thread, NULL);
    ok(got);
    fake_alloc_fail(1);
    ok_int(pthread_create(&thread, NULL, other_thread, &got), ==, 0);
    pthread_join(thread, NULL);
    ok(got);
    ok(fake_alloc_pending());
    fake_alloc_clear();
    fake_alloc_fail_any(1);
    ok_int(pthread_create(&thread, NULL, other_thread, &got), ==, 0);
    pthread_join(thread, NULL);
    ok(!got);
}

/* One thread fetches an event, another destroys: it waits for the acknowledgement as the real call does. */
static int destroyed;

static void *destroyer(void *arg)
{
    int result = ibv_destroy_cq((struct ibv_cq *)arg);

    __atomic_store_n(&destroyed, result == 0 ? 1 : -1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(threads__destroy_waits_for_the_ack_of_another)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *other = ibv_create_cq(context, 4, NULL, channel, 0), *got;
    void *got_context;
    pthread_t thread;

    destroyed = 0;
    fake_cq_event(other);
    ok_int(ibv_get_cq_event(channel, &got, &got_context), ==, 0);
    ok_int(pthread_create(&thread, NULL, destroyer, other), ==, 0);
    ok_eventually(fake_count(FAKE_ibv_destroy_cq) == 1);
    ok_int(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST), ==, 0);
    ibv_ack_cq_events(other, 1);
    pthread_join(thread, NULL);
    ok_int(destroyed, ==, 1);
    ok_int(ibv_destroy_comp_channel(channel), ==, 0);
}

static void *sender(void *arg)
{
    for (uint64_t i = 0; i < 2000; i++) {
        struct ibv_sge list = { (uintptr_t)memory, 8, mr->lkey };
        struct ibv_send_wr wr = { .wr_id = i, .sg_list = &list, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

        while (ibv_post_send((struct ibv_qp *)arg, &wr, &bad) == ENOMEM)
            harness_yield();
    }
    return NULL;
}

TEST(threads__data_from_two_sides)
{
    pthread_t thread;
    unsigned received = 0, posted = 0;

    ok_int(pthread_create(&thread, NULL, sender, a), ==, 0);
    while (received < 2000) {
        while (posted < 2000 && posted - received < 8)
            recv_on(b, posted++, remote, 8);
        for (int n = ibv_poll_cq(cq, 16, wc), i = 0; i < n; i++) {
            ok_int(wc[i].status, ==, IBV_WC_SUCCESS);
            ok_int(wc[i].wr_id, ==, received++);
        }
    }
    pthread_join(thread, NULL);
}

HARNESS_MAIN
