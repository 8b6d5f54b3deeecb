/* SPDX-License-Identifier: MIT */

/* SILENT_SUCCESS: no entry for a success, one for a failure, and no stream of silent requests ever stalls. */

#include "rig.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

/* The application never calls GetResults. */
TEST(silent__stream_without_polling_never_stalls)
{
    for (uint32_t depth = 1; depth <= 17; depth++) {
        struct adapter *adapter = rig_open(RIG_IB);
        struct cq *cq = rig_cq(adapter, 1);
        struct qp *qp = rig_qp(adapter, cq, cq, depth);

        rig_connect(qp);
        for (unsigned i = 0; i < 20 * depth + 20; i++) {
            HRESULT hr = rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS);

            if (hr == ND_NO_MORE_ENTRIES) {
                /* Only what the device still works on may fill the queue. */
                ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), >, 0);
                fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1 + i % depth, IBV_WC_SUCCESS, 0);
                if (fake_qp_posted(qp_verbs(qp), FAKE_SEND) == 0)
                    ok_status(rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
            } else {
                ok_status(hr, ND_SUCCESS);
            }
        }
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, depth, IBV_WC_SUCCESS, 0);
        ok_no_result(cq);
        ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
        ok_result(cq, Send, 1, ND_SUCCESS);
        ok_no_result(cq);
        rig_drop(qp);
        ok_no_result(cq);
        cq_unref(cq);
        rig_close(adapter);
    }
}

/* Signals are rare: two a ring. */
TEST(silent__signals_are_rare)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 1);
    struct qp *qp = rig_qp(adapter, cq, cq, 32);
    unsigned signalled = 0;

    rig_connect(qp);
    for (unsigned i = 0; i < 320; i++) {
        ok_status(rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        signalled += (fake_log_find(FAKE_ibv_post_send, -1)->arg.wr.send_flags & IBV_SEND_SIGNALED) != 0;
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    }
    ok_uint(signalled, ==, 20);
    rig_drop(qp);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Receives that nobody takes fill the stash to the depth; the silent sends on the same queue go on all the same, as long as
 * the application keeps to the depth of its completion queue. */
TEST(silent__beside_untaken_results)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 9);
    struct qp *qp = rig_qp(adapter, cq, cq, 8);

    rig_connect(qp);
    for (uintptr_t i = 0; i < 8; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 8, IBV_WC_SUCCESS, 0);
    for (unsigned i = 0; i < 200; i++) {
        ok_status(rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    }
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(cq, Receive, i, ND_SUCCESS);
    ok_no_result(cq);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(silent__mixed_with_loud_ones)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 7);
    uint32_t random = 1;
    uintptr_t loud = 0, taken = 0;
    ND2_RESULT result;

    rig_connect(qp);
    for (unsigned i = 0; i < 3000; i++) {
        random = random * 1664525u + 1013904223u;
        if (random & 0x10000) {
            bool silent = random & 0x20000;
            HRESULT hr = rig_send(qp, loud, silent ? ND_OP_FLAG_SILENT_SUCCESS : 0);

            if (hr == ND_SUCCESS)
                loud += !silent;
            else
                ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), >, 0);
        } else if (random & 0x20000) {
            fake_qp_complete(qp_verbs(qp), FAKE_SEND, (random >> 20) % 4, IBV_WC_SUCCESS, 0);
        } else if (cq_get_results(cq, &result, 1)) {
            ok_status(result.Status, ND_SUCCESS);
            ok_ptr(result.RequestContext, ==, rig_ctx(taken++));
        }
    }
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 7, IBV_WC_SUCCESS, 0);
    while (cq_get_results(cq, &result, 1))
        ok_ptr(result.RequestContext, ==, rig_ctx(taken++));
    ok_uint(taken, ==, loud);
    ok_uint(loud, >, 100);
    rig_drop(qp);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* The second of three silent requests fails: it and what is behind it come back, the first does not. */
TEST(silent__failures_are_told)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 16);

    rig_connect(qp);
    ok_status(rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(qp_write(qp, rig_ctx(2), NULL, 0, 0, 0, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(qp_read(qp, rig_ctx(3), NULL, 0, 0, 0, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_REM_ACCESS_ERR, 0);
    ok_result(cq, Write, 2, ND_ACCESS_VIOLATION);
    ok_result(cq, Read, 3, ND_CANCELED);
    ok_no_result(cq);
    /* Also one that never reaches the device. */
    ok_status(rig_send(qp, 4, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    rig_run();
    ok_result(cq, Send, 4, ND_CANCELED);
    ok_no_result(cq);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* Their flushes come late, and so must they. */
static void flushed_late(uint32_t depth, uint32_t silent, bool loud)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, depth);
    uintptr_t n = 0;

    rig_connect(qp);
    fake_auto_flush(false);
    for (; n < silent; n++)
        ok_status(rig_send(qp, n, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    if (loud)
        ok_status(rig_send(qp, n++, 0), ND_SUCCESS);
    ok_status(qp_flush(qp), ND_SUCCESS);
    rig_advance(30);
    ok_no_result(cq);
    fake_qp_flush(qp_verbs(qp));
    rig_advance(2);
    ok_uint(rig_timers(), ==, 0);
    for (uintptr_t i = 0; i < n; i++)
        ok_result(cq, Send, i, ND_CANCELED);
    ok_no_result(cq);
    fake_auto_flush(true);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(silent__before_a_loud_one_flushed_late)
{
    flushed_late(8, 1, true);
}

/* The device signals every fourth. */
TEST(silent__signalled_behind_the_back_flushed_late)
{
    flushed_late(8, 4, false);
    flushed_late(8, 5, false);
}

/* A device that throws the completions of a destroyed queue pair away. */
TEST(silent__before_a_loud_one_released)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct qp *qp = rig_qp(adapter, cq, cq, 8);

    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    rig_drop(qp);
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_no_result(cq);
    fake_auto_flush(true);
    cq_unref(cq);
    rig_close(adapter);
}

/* Silent requests that had succeeded when the queue pair ended have no completion behind them: no result either, and the end
 * does not wait for one as for a lost completion. */
TEST(silent__succeeded_before_the_end)
{
    for (int way = 0; way < 2; way++) {
        struct adapter *adapter = rig_open(RIG_IB);
        struct cq *cq = rig_cq(adapter, 16);
        struct qp *qp = rig_qp(adapter, cq, cq, 8);

        rig_connect(qp);
        ok_status(rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(rig_send(qp, 2, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
        if (way == 0) {
            ok_status(qp_flush(qp), ND_SUCCESS);
            rig_advance(50);
            ok_uint(rig_timers(), ==, 0);
            ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
            ok_result(cq, Send, 3, ND_CANCELED);
        }
        rig_drop(qp);
        ok_no_result(cq);
        cq_unref(cq);
        rig_close(adapter);
    }
}
