/* SPDX-License-Identifier: MIT */

/* Request batches: what is kept between start and submit, and every way it can end. */

#include <errno.h>
#include <string.h>

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;

static void make(const char *address, bool connected)
{
    adapter = rig_open(address);
    cq = rig_cq(adapter, 64);
    qp = rig_qp(adapter, cq, cq, 20);
    if (connected)
        rig_connect(qp);
}

static unsigned posted(enum fake_queue queue)
{
    return fake_qp_posted(qp_verbs(qp), queue);
}

static void drop(void)
{
    if (qp)
        rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
    qp = NULL;
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(batch__nothing_before_submit)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    for (uintptr_t i = 0; i < 5; i++) {
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 10 + i), ND_SUCCESS);
    }
    ok_uint(posted(FAKE_SEND), ==, 0);
    ok_uint(posted(FAKE_RECV), ==, 0);
    qp_batch_submit(qp);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 1);
    ok_uint(fake_count(FAKE_ibv_post_recv), ==, 1);
    ok_uint(posted(FAKE_SEND), ==, 5);
    ok_uint(posted(FAKE_RECV), ==, 5);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 5, IBV_WC_SUCCESS, 0);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 5, IBV_WC_SUCCESS, 1);
    for (uintptr_t i = 0; i < 5; i++)
        ok_result(cq, Send, i, ND_SUCCESS);
    for (uintptr_t i = 0; i < 5; i++)
        ok_result(cq, Receive, 10 + i, ND_SUCCESS);
    drop();
}

/* Submit without start, start twice, an empty batch. */
TEST(batch__odd_calls)
{
    make(RIG_IB, true);
    qp_batch_submit(qp);
    qp_batch_start(qp);
    qp_batch_submit(qp);
    qp_batch_start(qp);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_uint(posted(FAKE_SEND), ==, 0);
    qp_batch_submit(qp);
    ok_uint(posted(FAKE_SEND), ==, 1);
    qp_batch_submit(qp);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_uint(posted(FAKE_SEND), ==, 2);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 2);
    drop();
}

/* A long batch goes in pieces; its requests stay in order. */
TEST(batch__longer_than_a_chain)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    for (uintptr_t i = 0; i < 20; i++)
        ok_status(rig_send(qp, i, i % 3 ? ND_OP_FLAG_SILENT_SUCCESS : 0), ND_SUCCESS);
    ok_uint(posted(FAKE_SEND), ==, 16);
    ok_status(rig_send(qp, 20, 0), ND_NO_MORE_ENTRIES); /* full: what was kept has been handed over */
    ok_uint(posted(FAKE_SEND), ==, 20);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 20, IBV_WC_SUCCESS, 0);
    ok_status(rig_send(qp, 20, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    for (uintptr_t i = 0; i <= 20; i++) {
        if (i % 3 == 0 || i == 20)
            ok_result(cq, Send, i, ND_SUCCESS);
    }
    ok_no_result(cq);
    drop();
}

/* Before the connection: receives are kept for submit, sends are refused as ever. */
TEST(batch__before_the_connection)
{
    make(RIG_IB, false);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 1, 0), ND_CONNECTION_INVALID);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_uint(posted(FAKE_RECV), ==, 0);
    qp_batch_submit(qp);
    ok_uint(posted(FAKE_RECV), ==, 1);
    /* A batch that is open while the connection comes does not hold the sends. */
    qp_batch_start(qp);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    rig_connect(qp);
    ok_status(rig_send(qp, 4, 0), ND_SUCCESS);
    ok_uint(posted(FAKE_SEND), ==, 1);
    ok_uint(posted(FAKE_RECV), ==, 1);
    qp_batch_submit(qp);
    ok_uint(posted(FAKE_RECV), ==, 2);
    drop();
}

/* iWARP keeps receives for a second attempt: they go out at once, those without entries as the device likes them. */
TEST(batch__iwarp)
{
    make(RIG_IW, false);
    qp_batch_start(qp);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_uint(posted(FAKE_RECV), ==, 1);
    qp_batch_submit(qp);
    drop();
}

/* Disconnect: what was posted before goes out first. */
TEST(batch__closed_posts)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    qp_close_posts(qp);
    ok_uint(posted(FAKE_SEND), ==, 1);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    ok_uint(posted(FAKE_SEND), ==, 1);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    qp_flush(qp);
    ok_result(cq, Send, 1, ND_SUCCESS);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_no_result(cq);
    drop();
}

/* Flush, a failure and the last Release with a batch open: every request comes back once. */
TEST(batch__flushed)
{
    make(RIG_IB, true);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 4), ND_SUCCESS);
    qp_flush(qp);
    ok_status(rig_send(qp, 5, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 1);
    {
        ND2_RESULT results[8];
        uint32_t n = cq_get_results(cq, results, 8), seen = 0;

        ok_uint(n, ==, 5);
        for (uint32_t i = 0; i < n; i++) {
            ok_status(results[i].Status, ND_CANCELED);
            seen |= 1u << (uintptr_t)results[i].RequestContext;
        }
        ok_uint(seen, ==, 0x3e);
    }
    ok_no_result(cq);
    drop();
}

TEST(batch__failed_by_the_device)
{
    make(RIG_IB, true);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_REM_ACCESS_ERR, 0);
    ok_result(cq, Send, 1, ND_ACCESS_VIOLATION);
    qp_batch_submit(qp);
    rig_run();
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    ok_result(cq, Send, 3, ND_CANCELED);
    ok_no_result(cq);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 1);
    drop();
}

TEST(batch__released)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    rig_drop(qp);
    qp = NULL;
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    ok_no_result(cq);
    drop();
}

/* The device refuses the chain: the callers have heard ND_SUCCESS, so it all comes back, and the QP is of no more use. */
static void refused(bool sends)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    for (uintptr_t i = 0; i < 3; i++)
        ok_status(sends ? rig_send(qp, i, 0) : rig_recv(qp, i), ND_SUCCESS);
    fake_fail(sends ? FAKE_ibv_post_send : FAKE_ibv_post_recv, 1, EINVAL);
    qp_batch_submit(qp);
    rig_run();
    for (uintptr_t i = 0; i < 3; i++) {
        if (sends)
            ok_result(cq, Send, i, ND_CANCELED);
        else
            ok_result(cq, Receive, i, ND_CANCELED);
    }
    ok_no_result(cq);
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_ERR);
    drop();
}

TEST(batch__refused_sends)
{
    refused(true);
}

TEST(batch__refused_receives)
{
    refused(false);
}

/* In the middle of a batch that has outgrown its chain. */
TEST(batch__refused_before_submit)
{
    make(RIG_IB, true);
    qp_batch_start(qp);
    fake_fail(FAKE_ibv_post_send, 1, EINVAL);
    for (uintptr_t i = 0; i < 18; i++)
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    rig_run();
    for (uintptr_t i = 0; i < 18; i++)
        ok_result(cq, Send, i, ND_CANCELED);
    ok_no_result(cq);
    drop();
}

/* Inline data is the caller's again when the post returns. */
TEST(batch__copies_inline_data)
{
    char text[8] = "before";
    ND2_SGE sge[2] = { { text, 3, 0 }, { text + 3, 4, 0 } };
    struct fake_wr wr;

    make(RIG_IB, true);
    qp_batch_start(qp);
    ok_status(qp_send(qp, rig_ctx(1), sge, 2, ND_OP_FLAG_INLINE), ND_SUCCESS);
    strcpy(text, "after");
    qp_batch_submit(qp);
    ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, 0, &wr));
    ok_int(wr.num_sge, ==, 1);
    ok_uint(wr.sge[0].length, ==, 7);
    ok_uint(wr.send_flags & IBV_SEND_INLINE, ==, IBV_SEND_INLINE);
    ok_mem((void *)(uintptr_t)wr.sge[0].addr, "before", 7);
    drop();
}

TEST(batch__no_memory)
{
    make(RIG_IB, true);
    fake_alloc_fail(1);
    qp_batch_start(qp);
    ok(!fake_alloc_pending());
    fake_alloc_clear();
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_uint(posted(FAKE_SEND), ==, 1); /* no memory for that queue's batch */
    ok_uint(posted(FAKE_RECV), ==, 0);
    qp_batch_submit(qp);
    ok_uint(posted(FAKE_RECV), ==, 1);
    drop();
}
