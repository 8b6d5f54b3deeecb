/* SPDX-License-Identifier: MIT */

/* How queue pairs, completion queues and shared receive queues end: in any order, with nothing lost. */

#include <errno.h>

#include "srq_rig.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

static void nothing(struct qp_drain *drain)
{
    drain->done = NULL;
}

/* The receives that nobody took stay for the others. */
TEST(srq_end__of_a_queue_pair_cancels_nothing)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp[2] = { rig_shared_qp(adapter, srq, cq, 1), rig_shared_qp(adapter, srq, cq, 2) };
    struct qp_drain drain;

    rig_share_many(srq, 0, 8);
    rig_fill(qp[0], 1);
    ok_status(rig_send(qp[0], 50, 0), ND_SUCCESS);
    qp_drain(qp[0], &drain, nothing);
    rig_run();
    ok_ptr(drain.done, ==, NULL);
    ok_shared(cq, 1, 0, ND_SUCCESS);
    {
        ND2_RESULT result;

        ok_uint(cq_get_results(cq, &result, 1), ==, 1);
        ok_int(result.RequestType, ==, Nd2RequestTypeSend);
        ok_status(result.Status, ND_CANCELED);
    }
    ok_no_result(cq);
    rig_fill(qp[1], 1);
    ok_shared(cq, 2, 1, ND_SUCCESS);
    rig_drop(qp[0]);
    ok_no_result(cq);
    ok_uint(fake_srq_posted(rig_device_srq()), ==, 6);
    rig_fill(qp[1], 6);
    for (uintptr_t i = 2; i < 8; i++)
        ok_shared(cq, 2, i, ND_SUCCESS);
    rig_drop(qp[1]);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* The one that a queue pair had taken when it died comes back cancelled, once, with its context, and its place is free. */
TEST(srq_end__a_receive_that_was_being_filled)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 2, 0);
    struct qp *qp[2] = { rig_shared_qp(adapter, srq, cq, 1), rig_shared_qp(adapter, srq, cq, 2) };
    struct ibv_wc late;

    rig_share_many(srq, 0, 2);
    fake_qp_complete(qp_verbs(qp[0]), FAKE_RECV, 1, IBV_WC_WR_FLUSH_ERR, 0);
    ok_shared(cq, 1, 0, ND_CANCELED);
    ok_no_result(cq);
    rig_run();
    /* It broke this connection only. */
    ok_status(rig_send(qp[1], 9, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp[1]), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    rig_share_many(srq, 2, 1);
    late = (struct ibv_wc){ .status = IBV_WC_LOC_LEN_ERR };
    fake_qp_complete_wc(qp_verbs(qp[1]), FAKE_RECV, &late, true);
    {
        ND2_RESULT result;

        ok_uint(cq_get_results(cq, &result, 1), ==, 1);
        ok_status(result.Status, ND_SUCCESS);
        ok_uint(cq_get_results(cq, &result, 1), ==, 1);
        ok_status(result.Status, ND_DATA_OVERRUN);
        ok_ptr(result.QueuePairContext, ==, rig_ctx(2));
        ok_ptr(result.RequestContext, ==, rig_ctx(1));
    }
    /* The same completion again, as no device should give it: not seen twice. */
    rig_run();
    late.wr_id = fake_log_find(FAKE_ibv_post_srq_recv, 1)->arg.wr.wr_id;
    late.qp_num = qp_number(qp[1]);
    fake_cq_push(fake_object(FAKE_OBJ_CQ, 0), &late, false);
    ok_no_result(cq);
    rig_drop(qp[0]);
    rig_drop(qp[1]);
    ok_status(rig_share(srq, 3), ND_SUCCESS);
    ok_status(rig_share(srq, 4), ND_NO_MORE_ENTRIES);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Results of a dead queue pair are told apart from those of one that got its number, even while the first is being
 * destroyed. */
static struct {
    struct adapter *adapter;
    struct srq *srq;
    struct cq *cq;
    struct qp *made;
} again;

static void make_again(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    again.made = rig_shared_qp(again.adapter, again.srq, again.cq, 2);
}

TEST(srq_end__numbers_are_used_again)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp = rig_shared_qp(adapter, srq, cq, 1);
    uint32_t number = qp_number(qp);
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .byte_len = 7, .qp_num = number };

    rig_share_many(srq, 0, 3);
    rig_fill(qp, 1);
    again.adapter = adapter;
    again.srq = srq;
    again.cq = cq;
    fake_qp_next_num(number);
    fake_after(FAKE_ibv_destroy_qp, make_again, NULL);
    /* What the first leaves in the device's queue is there when the second is made. */
    wc.wr_id = fake_log_find(FAKE_ibv_post_srq_recv, 1)->arg.wr.wr_id;
    qp_release(qp);
    ok_uint(qp_number(again.made), ==, number);
    ok_shared(cq, 1, 0, ND_SUCCESS);
    ok_no_result(cq);
    qp_unref(qp);
    rig_fill(again.made, 2);
    ok_shared(cq, 2, 1, ND_SUCCESS);
    ok_shared(cq, 2, 2, ND_SUCCESS);
    rig_drop(again.made);
    /* A completion with the number of no queue pair: no result, no crash, and the place is free again. */
    rig_share_many(srq, 3, 1);
    wc.wr_id = fake_log_find(FAKE_ibv_post_srq_recv, -1)->arg.wr.wr_id;
    fake_cq_push(fake_object(FAKE_OBJ_CQ, 0), &wc, false);
    ok_no_result(cq);
    rig_share_many(srq, 4, 7); /* the device believes to have it still */
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

static void leave_one(struct fake_call *call, void *arg)
{
    (void)call;
    fake_cq_push(fake_object(FAKE_OBJ_CQ, 0), arg, false);
    make_again(NULL, NULL);
}

TEST(srq_end__a_completion_that_the_destroyed_queue_pair_left)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp = rig_shared_qp(adapter, srq, cq, 1);
    struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp_number(qp) };

    rig_share_many(srq, 0, 1);
    wc.wr_id = fake_log_find(FAKE_ibv_post_srq_recv, -1)->arg.wr.wr_id;
    again.adapter = adapter;
    again.srq = srq;
    again.cq = cq;
    fake_qp_next_num(wc.qp_num);
    fake_after(FAKE_ibv_destroy_qp, leave_one, &wc);
    rig_drop(qp);
    ok_shared(cq, 1, 0, ND_CANCELED);
    ok_no_result(cq);
    rig_drop(again.made);
    ok_no_result(cq);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Any order of releases; the device's queue goes when the last of the application and the queue pairs is gone. */
TEST(srq_end__release_orders)
{
    for (unsigned order = 0; order < 6; order++) {
        static const unsigned char orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                                    { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
        struct adapter *adapter = rig_open(RIG_IB);
        struct cq *cq = rig_cq(adapter, 16);
        struct srq *srq = rig_srq(adapter, 8, 0);
        struct qp *qp = rig_shared_qp(adapter, srq, cq, 1);

        rig_share_many(srq, 0, 8);
        rig_fill(qp, 3);
        for (int i = 0; i < 3; i++) {
            if (orders[order][i] == 0)
                srq_unref(srq);
            else if (orders[order][i] == 1)
                rig_drop(qp);
            else
                cq_unref(cq);
        }
        rig_run();
        ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
        ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
        rig_close(adapter);
    }
}

/* iWARP: the device queue pair that replaces one after a failed attempt has another number; the shared receives are not
 * disturbed. */
TEST(srq_end__replaced_queue_pair)
{
    struct adapter *adapter = rig_open(RIG_IW);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp = rig_shared_qp(adapter, srq, cq, 1);
    uint32_t number = qp_number(qp);

    rig_share_many(srq, 0, 4);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_fail(qp_verbs(qp));
    ok_int(qp_replace(qp), ==, 0);
    ok_uint(qp_number(qp), !=, number);
    qp_unclaim(qp);
    ok_uint(fake_srq_posted(rig_device_srq()), ==, 4);
    ok_status(rig_recv(qp, 1), ND_INVALID_DEVICE_REQUEST);
    qp_set_connected(qp);
    rig_run();
    rig_fill(qp, 2);
    ok_shared(cq, 1, 0, ND_SUCCESS);
    ok_shared(cq, 1, 1, ND_SUCCESS);
    ok_no_result(cq);
    rig_drop(qp);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Hardware tells when the last receive that a queue pair had taken is back; the release waits for it a moment. */
static void flush_late(struct fake_call *call, void *arg)
{
    (void)call;
    fake_qp_complete(arg, FAKE_RECV, 1, IBV_WC_WR_FLUSH_ERR, 0);
}

TEST(srq_end__last_receive_comes_back_before_the_destroy)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    struct srq *srq = rig_srq(adapter, 1, 0);
    struct qp *qp;

    fake_device_quirks("fake_ib", FAKE_QUIRK_LAST_WQE);
    qp = rig_shared_qp(adapter, srq, cq, 1);
    rig_share_many(srq, 0, 1);
    fake_after(FAKE_ibv_modify_qp, flush_late, qp_verbs(qp));
    qp_flush(qp);
    rig_run(); /* LAST_WQE_REACHED is told */
    rig_drop(qp);
    ok_shared(cq, 1, 0, ND_CANCELED);
    ok_no_result(cq);
    ok_status(rig_share(srq, 1), ND_SUCCESS);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* The queue of one pair overran: the others of the shared queue go on. */
TEST(srq_end__completion_queue_overrun)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq[2] = { rig_cq(adapter, 8), rig_cq(adapter, 8) };
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp[2] = { rig_shared_qp(adapter, srq, cq[0], 1), rig_shared_qp(adapter, srq, cq[1], 2) };

    rig_share_many(srq, 0, 8);
    fake_async_cq(fake_object(FAKE_OBJ_CQ, 0), IBV_EVENT_CQ_ERR);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp[0])), ==, IBV_QPS_ERR);
    ok_int(fake_qp_state(qp_verbs(qp[1])), !=, IBV_QPS_ERR);
    rig_fill(qp[1], 1);
    ok_shared(cq[1], 2, 0, ND_SUCCESS);
    rig_drop(qp[0]);
    rig_drop(qp[1]);
    srq_unref(srq);
    cq_unref(cq[0]);
    cq_unref(cq[1]);
    rig_close(adapter);
}
