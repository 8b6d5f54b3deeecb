/* SPDX-License-Identifier: MIT */

/* Creation, claims, and what creation asks of the device. */

#include <errno.h>
#include <string.h>

#include "rig.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(create__asks_for_what_was_asked_and_goes_to_init)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *recv = rig_cq(adapter, 8), *send = rig_cq(adapter, 8);
    struct qp_config config = rig_config(adapter, recv, send, 5);
    const struct ibv_qp_init_attr *attr;
    struct qp *qp;
    int mask;

    config.recv_depth = 9;
    config.send_sge = 7;
    ok_status(qp_create(&config, &qp), ND_SUCCESS);
    attr = &fake_log_find(FAKE_ibv_create_qp, -1)->arg.create_qp.attr;
    ok_uint(attr->cap.max_send_wr, ==, 5);
    ok_uint(attr->cap.max_recv_wr, ==, 9);
    ok_uint(attr->cap.max_send_sge, ==, 7);
    ok_uint(attr->cap.max_recv_sge, ==, 4);
    ok_uint(attr->cap.max_inline_data, ==, 64);
    ok_int(attr->sq_sig_all, ==, 0);
    ok_ptr(attr->qp_context, ==, qp);
    ok_ptr(attr->send_cq, !=, attr->recv_cq);
    ok_ptr(fake_qp_attr(qp_verbs(qp), IBV_QPS_INIT, &mask), !=, NULL);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    ok_uint(qp_number(qp), ==, qp_verbs(qp)->qp_num);
    ok_ptr(qp_adapter(qp), ==, adapter);
    ok(!qp_has_srq(qp));
    /* Releasing the queues first is legal. */
    cq_unref(recv);
    cq_unref(send);
    ok_uint(fake_live(FAKE_OBJ_CQ), ==, 2);
    rig_drop(qp);
    ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
    rig_close(adapter);
}

/* Every maximum at once (A26), also on a device that refuses more entries than asked for. */
TEST(create__all_maxima)
{
    static const char *const addresses[] = { RIG_IB, RIG_IW };

    for (int i = 0; i < 2; i++) {
        struct adapter *adapter = rig_open(addresses[i]);
        struct cq *cq = rig_cq(adapter, adapter->limits.max_cq_depth);
        struct qp_config config = rig_config(adapter, cq, cq, 1);
        struct qp *qp;

        config.recv_depth = adapter->limits.max_recv_depth;
        config.send_depth = adapter->limits.max_send_depth;
        config.recv_sge = adapter->limits.max_recv_sge;
        config.send_sge = adapter->limits.max_send_sge;
        config.inline_size = adapter->limits.max_inline;
        ok_status(qp_create(&config, &qp), ND_SUCCESS);
        rig_drop(qp);
        cq_unref(cq);
        rig_close(adapter);
    }
}

TEST(create__entries_beyond_the_request_are_a_wish)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp;

    fake_fail(FAKE_ibv_create_qp, 1, EINVAL);
    qp = rig_qp(adapter, cq, cq, 4);
    ok_uint(fake_log_find(FAKE_ibv_create_qp, -1)->arg.create_qp.attr.cap.max_send_sge, ==, 1);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(create__foreign_failures)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp_config config = rig_config(adapter, cq, cq, 4);
    struct qp *qp;

    fake_fail_always(FAKE_ibv_create_qp, ENOMEM);
    ok_status(qp_create(&config, &qp), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_qp);
    fake_fail_always(FAKE_ibv_create_qp, EIO);
    ok_status(qp_create(&config, &qp), ND_DEVICE_REMOVED);
    fake_fail_clear(FAKE_ibv_create_qp);
    fake_fail_always(FAKE_ibv_modify_qp, EINVAL);
    ok_status(qp_create(&config, &qp), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_modify_qp);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 0);
    ok_status(qp_create(&config, &qp), ND_SUCCESS);
    rig_drop(qp);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(qp_create(&config, &qp), ND_DEVICE_REMOVED);
    cq_unref(cq);
    rig_close(adapter);
}

/* The completion queue overruns, or the device queue pair fails, while the rest is made and fails: the loop has heard of a queue
 * pair that there will not be. */
static void overrun_hook(struct fake_call *call, void *cq)
{
    (void)call;
    cq_overrun(cq);
}

static void fatal_hook(struct fake_call *call, void *unused)
{
    (void)unused;
    fake_async_qp((struct ibv_qp *)call->created, IBV_EVENT_QP_FATAL);
    ok_uint(rig_ready(), >, 0);
}

TEST(create__fails_while_the_loop_holds_it)
{
    for (int way = 0; way < 3; way++) {
        struct adapter *adapter = rig_open(RIG_IB);
        struct cq *send = rig_cq(adapter, 8), *recv = rig_cq(adapter, 8);
        struct qp_config config = rig_config(adapter, recv, send, 4);
        enum fake_fn failing = way ? FAKE_ibv_modify_qp : FAKE_ibv_create_qp;
        struct qp *qp;

        if (way < 2)
            fake_on(FAKE_ibv_create_qp, overrun_hook, way ? recv : send);
        else
            fake_after(FAKE_ibv_create_qp, fatal_hook, NULL);
        fake_fail_always(failing, ENOMEM);
        ok_status(qp_create(&config, &qp), ND_INSUFFICIENT_RESOURCES);
        fake_fail_clear(failing);
        cq_unref(send);
        cq_unref(recv);
        rig_run();
        ok_uint(fake_live(FAKE_OBJ_QP), ==, 0);
        ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
        rig_close(adapter);
        fake_reset_script();
    }
}

/* It is made all the same: what is posted comes back. */
TEST(create__overrun_meanwhile)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp;

    fake_on(FAKE_ibv_create_qp, overrun_hook, cq);
    qp = rig_qp(adapter, cq, cq, 4);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    rig_run();
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_status(qp_claim(qp), ND_CONNECTION_ACTIVE);
    rig_drop(qp);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

static void no_memory(const char *address)
{
    struct adapter *adapter = rig_open(address);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp_config config = rig_config(adapter, cq, cq, 100);
    struct qp *qp = NULL;
    NTSTATUS status;
    unsigned nth = 1;

    for (;; nth++) {
        bool unused;

        fake_alloc_fail(nth);
        status = qp_create(&config, &qp);
        unused = fake_alloc_pending();
        fake_alloc_clear();
        if (unused)
            break;
        ok_status(status, ND_NO_MEMORY);
        ok_uint(fake_live(FAKE_OBJ_QP), ==, 0);
    }
    ok_uint(nth, >, 3);
    ok_status(status, ND_SUCCESS);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(create__no_memory)
{
    no_memory(RIG_IB);
    no_memory(RIG_IW);
}

/* tests/lists: A9. */
TEST(claim__one_attempt_at_a_time_and_one_connection_ever)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 4), *flushed = rig_qp(adapter, cq, cq, 4);

    ok_status(qp_claim(qp), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_CONNECTION_ACTIVE);
    qp_unclaim(qp);
    rig_connect(qp);
    qp_unclaim(qp);
    ok_status(qp_claim(qp), ND_CONNECTION_ACTIVE);
    ok_status(qp_flush(flushed), ND_SUCCESS);
    ok_status(qp_claim(flushed), ND_CONNECTION_ACTIVE);
    qp_unclaim(flushed);
    qp_release(flushed);
    ok_status(qp_claim(flushed), ND_CONNECTION_ACTIVE);
    ok_ptr(qp_verbs(flushed), ==, NULL);
    qp_unref(flushed);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(qp_claim(qp), ND_DEVICE_REMOVED);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(modify__refused_once_in_error)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 4);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

    fake_fail(FAKE_ibv_modify_qp, 1, EAGAIN);
    ok_int(qp_modify(qp, &attr, IBV_QP_STATE), ==, EAGAIN);
    qp_flush(qp);
    attr.qp_state = IBV_QPS_INIT;
    ok_int(qp_modify(qp, &attr, IBV_QP_STATE), ==, EINVAL);
    qp_release(qp);
    ok_int(qp_modify(qp, &attr, IBV_QP_STATE), ==, EINVAL);
    qp_unref(qp);
    cq_unref(cq);
    rig_close(adapter);
}
