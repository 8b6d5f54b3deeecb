/* SPDX-License-Identifier: MIT */

/* GetResults: what a result says, in which order, and that none is lost or doubled. */

#include <string.h>

#include "core/cq_priv.h"
#include "rig.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

/* tests/lists: D15. */
TEST(GetResults__every_field_is_written)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 4);
    ND2_RESULT results[4], zero[2];
    char byte[40];
    ND2_SGE sge = { byte, sizeof(byte), 1 };

    rig_connect(qp);
    ok_status(qp_send(qp, rig_ctx(1), &sge, 1, 0), ND_SUCCESS);
    ok_status(qp_read(qp, rig_ctx(2), &sge, 1, 0x1000, 0, 0), ND_SUCCESS);
    ok_status(qp_receive(qp, rig_ctx(3), &sge, 1), ND_SUCCESS);
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0xabc), ==, 2);
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 17), ==, 1);
    memset(results, 0x55, sizeof(results));
    ok_uint(cq_get_results(cq, results, 4), ==, 3);
    ok_status(results[0].Status, ND_SUCCESS);
    ok_uint(results[0].BytesTransferred, ==, 40);
    ok_ptr(results[0].QueuePairContext, ==, RIG_CONTEXT);
    ok_ptr(results[0].RequestContext, ==, rig_ctx(1));
    ok_int(results[0].RequestType, ==, Nd2RequestTypeSend);
    ok_int(results[1].RequestType, ==, Nd2RequestTypeRead);
    ok_ptr(results[1].RequestContext, ==, rig_ctx(2));
    ok_int(results[2].RequestType, ==, Nd2RequestTypeReceive);
    ok_uint(results[2].BytesTransferred, ==, 17);
    ok_status(results[2].Status, ND_SUCCESS);
    /* The rest of the array is the application's. */
    memset(zero, 0x55, sizeof(zero));
    ok_mem(&results[3], zero, sizeof(*zero));
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* Of a failed completion the device fills in only wr_id, status and qp_num. */
TEST(GetResults__error_fields_come_from_the_slot)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 4);
    struct ibv_wc wc = { .status = IBV_WC_REM_ACCESS_ERR, .opcode = IBV_WC_RECV, .byte_len = 0x77777777 };

    rig_connect(qp);
    ok_status(qp_write(qp, rig_ctx(1), NULL, 0, 0, 0, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    fake_qp_complete_wc(qp_verbs(qp), FAKE_SEND, &wc, false);
    ok_result(cq, Write, 1, ND_ACCESS_VIOLATION);
    ok_result(cq, Receive, 2, ND_CANCELED);
    ok_no_result(cq);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(GetResults__in_posting_order_over_many_rounds_of_the_ring)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 16);
    ND2_RESULT results[7];
    uintptr_t posted = 0, seen = 0;

    for (uint32_t depth = 1; depth <= 7; depth++) {
        struct qp *qp = rig_qp(adapter, cq, cq, depth);

        posted = seen = 0;
        for (int round = 0; round < 50; round++) {
            uint32_t n = 0, got;

            while (rig_recv(qp, posted) == ND_SUCCESS) {
                posted++;
                n++;
            }
            /* The ring rounds up to a power of two, the depth does not. */
            ok_uint(posted - seen, ==, depth);
            fake_qp_complete(qp_verbs(qp), FAKE_RECV, (unsigned)round % depth + 1, IBV_WC_SUCCESS, 1);
            got = cq_get_results(cq, results, 7);
            ok_uint(got, ==, (unsigned)round % depth + 1);
            for (uint32_t i = 0; i < got; i++)
                ok_ptr(results[i].RequestContext, ==, rig_ctx(seen++));
        }
        rig_drop(qp);
        while (cq_get_results(cq, results, 1))
            ok_ptr(results[0].RequestContext, ==, rig_ctx(seen++));
        ok_uint(seen, ==, posted);
    }
    cq_unref(cq);
    rig_close(adapter);
}

TEST(GetResults__batches_beyond_sixteen_and_zero)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 64);
    ND2_RESULT results[64];

    for (uintptr_t i = 0; i < 50; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 50, IBV_WC_SUCCESS, 0);
    ok_uint(cq_get_results(cq, results, 0), ==, 0);
    ok_uint(cq_get_results(cq, results, 32), ==, 32);
    ok_uint(cq_get_results(cq, results + 32, 17), ==, 17);
    ok_uint(cq_get_results(cq, results + 49, 15), ==, 1);
    ok_uint(cq_get_results(cq, results, 64), ==, 0);
    for (uintptr_t i = 0; i < 50; i++)
        ok_ptr(results[i].RequestContext, ==, rig_ctx(i));
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* Fewer than asked means drained: hidden completions must not make a call return early. */
TEST(GetResults__hidden_successes_do_not_end_a_call)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 2);
    ND2_RESULT results[4];

    rig_connect(qp);
    /* At depth 2 every silent request is signalled. */
    ok_status(rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
    ok_uint(fake_cq_entries(qp_verbs(qp)->send_cq), ==, 2);
    ok_result(cq, Send, 2, ND_SUCCESS);
    ok_uint(cq_get_results(cq, results, 4), ==, 0);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* The stash is in front of the device's queue. */
TEST(GetResults__stash_before_device)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 8);
    ND2_RESULT results[8];

    for (uintptr_t i = 0; i < 6; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 3, IBV_WC_SUCCESS, 0);
    qp_collect(qp);
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 0);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 3, IBV_WC_SUCCESS, 0);
    ok_uint(cq_get_results(cq, results, 2), ==, 2);
    ok_uint(cq_get_results(cq, results + 2, 6), ==, 4);
    for (uintptr_t i = 0; i < 6; i++)
        ok_ptr(results[i].RequestContext, ==, rig_ctx(i));
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* Internal polls stop at the depth, so that nothing but a drain needs the room kept for it. */
TEST(stash__internal_polls_stop_at_the_depth)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 3);
    struct qp *qp = rig_qp(adapter, cq, cq, 16);
    ND2_RESULT results[16];

    for (uintptr_t i = 0; i < 10; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 10, IBV_WC_SUCCESS, 0);
    qp_collect(qp);
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 7);
    qp_flush(qp);
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 0);
    ok_uint(cq_get_results(cq, results, 16), ==, 10);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* A completion queue of the device that overran has swallowed completions: what they were of must not vanish. */
TEST(GetResults__lost_completions_are_made_up)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 8);
    struct fake_wr wr;
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .byte_len = 5 };

    rig_connect(qp);
    for (uintptr_t i = 0; i < 4; i++) {
        ok_status(rig_send(qp, 10 + i, i == 1 ? ND_OP_FLAG_SILENT_SUCCESS : 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 20 + i), ND_SUCCESS);
    }
    wc.qp_num = qp_number(qp);
    ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, 3, &wr));
    wc.wr_id = wr.wr_id;
    ok(fake_cq_push(qp_verbs(qp)->send_cq, &wc, false));
    ok(fake_qp_wr(qp_verbs(qp), FAKE_RECV, 1, &wr));
    wc.wr_id = wr.wr_id;
    ok(fake_cq_push(qp_verbs(qp)->recv_cq, &wc, false));
    /* Sends before a successful one succeeded, the silent one silently; of a receive nobody knows. */
    ok_result(cq, Send, 10, ND_SUCCESS);
    ok_result(cq, Send, 12, ND_SUCCESS);
    ok_result(cq, Send, 13, ND_SUCCESS);
    ok_result(cq, Receive, 20, ND_CANCELED);
    ok_result(cq, Receive, 21, ND_SUCCESS);
    ok_no_result(cq);
    rig_drop(qp);
    /* The fake still had them, and flushed them: no second result for those that have one. */
    ok_result(cq, Receive, 22, ND_CANCELED);
    ok_result(cq, Receive, 23, ND_CANCELED);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* A negative result of the poll is no result. */
TEST(GetResults__failing_poll)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4);

    fake_fail(FAKE_ibv_poll_cq, 1, EIO);
    ok_no_result(cq);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Whether polls may go straight to the device is told by the lock, and only while nothing is set aside. Polls that can take
 * nothing change nothing about it. */
TEST(GetResults__goes_straight_when_nothing_is_set_aside)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 8);
    struct qp *qp = rig_qp(adapter, cq, cq, 4);
    struct notify notify;
    ND2_RESULT result;

    ok_int(cq->lock.word, ==, GATE_OPEN);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 2, IBV_WC_SUCCESS, 0);
    ok_uint(cq_get_results(cq, &result, 0), ==, 0);
    ok_int(cq->lock.word, ==, GATE_OPEN);
    /* It looks at the device, and what it finds waits in the stash. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &notify);
    ok(!rig_pending(&notify));
    for (int i = 0; i < 3; i++) {
        ok_uint(cq_get_results(cq, NULL, 4), ==, 0);
        ok_uint(cq_get_results(cq, &result, 0), ==, 0);
        ok_int(cq->lock.word, <, GATE_SHUT / 2);
    }
    ok_result(cq, Receive, 1, ND_SUCCESS);
    ok_result(cq, Receive, 2, ND_SUCCESS);
    ok_no_result(cq);
    ok_int(cq->lock.word, ==, GATE_OPEN);
    ok_no_result(cq);
    ok_int(cq->lock.word, ==, GATE_OPEN);
    /* Not under a Notify: what is taken counts for it. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &notify);
    ok(rig_pending(&notify));
    ok_no_result(cq);
    ok_int(cq->lock.word, <, GATE_SHUT / 2);
    cq_cancel_notifies(cq, ND_CANCELED);
    ok_no_result(cq);
    ok_int(cq->lock.word, ==, GATE_OPEN);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}
