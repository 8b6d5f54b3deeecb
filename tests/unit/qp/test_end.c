/* SPDX-License-Identifier: MIT */

/* Errors, flush, drain, release: every request comes back once, whatever the device does and in whatever order. */

#include <errno.h>
#include <string.h>

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;

static void make(uint32_t depth)
{
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 64);
    qp = rig_qp(adapter, cq, cq, depth);
}

static void unmake(void)
{
    rig_drop(qp);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

static unsigned error_modifies(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_log_length(); i++) {
        const struct fake_call *call = fake_log_at(i);

        if (call->fn == FAKE_ibv_modify_qp && call->arg.modify_qp.attr.qp_state == IBV_QPS_ERR)
            count++;
    }
    return count;
}

static unsigned drained;

static void on_drained(struct qp_drain *drain)
{
    ok(!list_linked(&drain->link));
    ok(engine_on_loop());
    drained++;
}

SETUP
{
    rig_start();
    drained = 0;
}

TEARDOWN
{
    rig_end();
}

/* NdReceiveFlushQP: both entries at once after Flush, on a queue pair that was never connected. */
TEST(Flush__never_connected)
{
    struct notify n;
    ND2_RESULT results[4];

    make(4);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_status(qp_flush(qp), ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_SUCCESS);
    ok_uint(cq_get_results(cq, results, 4), ==, 2);
    ok_status(qp_flush(qp), ND_SUCCESS);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    ok_result(cq, Receive, 3, ND_CANCELED);
    /* It never had a connection. */
    ok_status(rig_send(qp, 4, 0), ND_CONNECTION_INVALID);
    unmake();
}

/* A device that does not flush from INIT at all. */
TEST(Flush__device_stays_silent)
{
    make(4);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_status(qp_flush(qp), ND_SUCCESS);
    rig_advance(900);
    ok_no_result(cq);
    rig_advance(200);
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    unmake();
}

TEST(Flush__leaves_other_queue_pairs_alone)
{
    struct qp *other;

    make(4);
    other = rig_qp(adapter, cq, cq, 4);
    ok_status(rig_recv(other, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_status(qp_flush(qp), ND_SUCCESS);
    ok_result(cq, Receive, 2, ND_CANCELED);
    ok_no_result(cq);
    fake_qp_complete(qp_verbs(other), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Receive, 1, ND_SUCCESS);
    rig_drop(other);
    unmake();
}

/* The first failure: real status, the rest cancelled, one modify to ERROR although many completions fail. */
TEST(error__first_failure_moves_the_queue_pair)
{
    make(8);
    rig_connect(qp);
    for (uintptr_t i = 0; i < 4; i++) {
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 10 + i), ND_SUCCESS);
    }
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_RETRY_EXC_ERR, 0);
    ok_uint(error_modifies(), ==, 0);
    ok_result(cq, Send, 0, ND_IO_TIMEOUT);
    rig_run();
    ok_uint(error_modifies(), ==, 1);
    for (uintptr_t i = 1; i < 4; i++)
        ok_result(cq, Send, i, ND_CANCELED);
    for (uintptr_t i = 0; i < 4; i++)
        ok_result(cq, Receive, 10 + i, ND_CANCELED);
    rig_advance(100);
    ok_uint(error_modifies(), ==, 1);
    ok_uint(rig_timers(), ==, 0);
    unmake();
}

/* Posts between the failure and its discovery go to the device, posts after it do not. */
TEST(error__late_posts)
{
    unsigned sends;

    make(8);
    rig_connect(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_REM_ACCESS_ERR, 0);
    ok_result(cq, Send, 1, ND_ACCESS_VIOLATION);
    sends = fake_count(FAKE_ibv_post_send);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, sends);
    ok_uint(fake_count(FAKE_ibv_post_recv), ==, 0);
    ok_no_result(cq);
    rig_run();
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Receive, 3, ND_CANCELED);
    /* From now on at once. */
    ok_status(rig_send(qp, 4, 0), ND_SUCCESS);
    ok_result(cq, Send, 4, ND_CANCELED);
    unmake();
}

/* Late posts are bounded by the depth until their results are taken. */
TEST(error__late_posts_are_bounded)
{
    make(3);
    rig_connect(qp);
    qp_flush(qp);
    rig_run();
    for (int round = 0; round < 3; round++) {
        for (uintptr_t i = 0; i < 3; i++)
            ok_status(rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(rig_send(qp, 9, 0), ND_NO_MORE_ENTRIES);
        for (uintptr_t i = 0; i < 3; i++)
            ok_status(rig_recv(qp, i), ND_SUCCESS);
        ok_status(rig_recv(qp, 9), ND_NO_MORE_ENTRIES);
        ok_result(cq, Send, 0, ND_CANCELED);
        ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
        for (uintptr_t i = 1; i < 4; i++)
            ok_result(cq, Send, i, ND_CANCELED);
        for (uintptr_t i = 0; i < 3; i++)
            ok_result(cq, Receive, i, ND_CANCELED);
        ok_no_result(cq);
    }
    unmake();
}

/* A Notify is satisfied by results that no device event announces. */
TEST(error__late_posts_complete_notify)
{
    struct notify n;

    make(4);
    rig_connect(qp);
    qp_flush(qp);
    rig_run();
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    rig_run();
    ok_pending(&n);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_done(&n, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_run();
    ok_pending(&n);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    ok_done(&n, ND_SUCCESS);
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    unmake();
}

/* Disconnect was called: later posts wait behind the flushes of what is in flight, which still works (A38). */
TEST(close_posts__in_flight_work_goes_on)
{
    struct qp_drain drain;

    make(8);
    rig_connect(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 11), ND_SUCCESS);
    qp_close_posts(qp);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 12), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 2);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Send, 1, ND_SUCCESS);
    rig_advance(50);
    ok_no_result(cq);
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_RTS);
    qp_drain(qp, &drain, on_drained);
    rig_run();
    ok_uint(drained, ==, 1);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Receive, 11, ND_CANCELED);
    ok_result(cq, Send, 3, ND_CANCELED);
    ok_result(cq, Receive, 12, ND_CANCELED);
    unmake();
}

/* The application took everything, and posts on until the drain: nothing may come before the queue pair is in ERROR. */
TEST(close_posts__nothing_in_flight)
{
    struct qp_drain drain;

    make(2);
    rig_connect(qp);
    qp_close_posts(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 3, 0), ND_NO_MORE_ENTRIES);
    ok_no_result(cq);
    qp_drain(qp, &drain, on_drained);
    rig_run();
    ok_uint(drained, ==, 1);
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Send, 2, ND_CANCELED);
    unmake();
}

/* ---- drain ---- */

TEST(drain__flushes_come_late)
{
    struct qp_drain drain;

    make(8);
    rig_connect(qp);
    fake_auto_flush(false);
    for (uintptr_t i = 0; i < 8; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    rig_advance(5);
    ok_uint(drained, ==, 0);
    fake_qp_flush(qp_verbs(qp));
    ok_uint(drained, ==, 0);
    rig_advance(1);
    ok_uint(drained, ==, 1);
    /* The results are there before the drain is over, without a poll of the device. */
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 0);
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(cq, Receive, i, ND_CANCELED);
    unmake();
}

/* The application polls while the drain waits. */
TEST(drain__application_takes_the_flushes)
{
    struct qp_drain drain;

    make(4);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    rig_advance(3);
    fake_qp_flush(qp_verbs(qp));
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_uint(drained, ==, 0);
    rig_advance(1);
    ok_uint(drained, ==, 1);
    unmake();
}

/* rxe: a receive that slipped into the ring after ERROR is flushed by the next modify to ERROR. */
static void fail_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    fake_qp_fail(qp_verbs(qp));
}

TEST(drain__receive_that_slipped_in_on_rxe)
{
    struct qp_drain drain;

    fake_device_quirks("fake_ib", FAKE_QUIRK_RXE);
    make(4);
    rig_connect(qp);
    fake_on(FAKE_ibv_post_recv, fail_hook, NULL);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 0);
    qp_drain(qp, &drain, on_drained);
    rig_advance(50);
    ok_uint(drained, ==, 1);
    ok_result(cq, Receive, 1, ND_CANCELED);
    unmake();
}

TEST(drain__kicks_every_ten_milliseconds)
{
    struct qp_drain drain;

    make(4);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    ok_uint(error_modifies(), ==, 1);
    rig_advance(9);
    ok_uint(error_modifies(), ==, 1);
    rig_advance(1);
    ok_uint(error_modifies(), ==, 2);
    rig_advance(30);
    ok_uint(error_modifies(), ==, 5);
    ok_uint(drained, ==, 0);
    fake_qp_flush(qp_verbs(qp));
    rig_advance(1);
    ok_uint(drained, ==, 1);
    rig_advance(100);
    ok_uint(error_modifies(), ==, 5);
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    unmake();
}

/* Completions that never come are made up after a second without progress; progress starts the second again. */
TEST(drain__lost_completions)
{
    struct qp_drain drain;

    make(8);
    rig_connect(qp);
    fake_auto_flush(false);
    for (uintptr_t i = 0; i < 4; i++) {
        ok_status(rig_send(qp, i, i & 1 ? ND_OP_FLAG_SILENT_SUCCESS : 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 10 + i), ND_SUCCESS);
    }
    qp_drain(qp, &drain, on_drained);
    rig_advance(900);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_WR_FLUSH_ERR, 0);
    rig_advance(900);
    ok_uint(drained, ==, 0);
    ok_result(cq, Receive, 10, ND_CANCELED);
    ok_no_result(cq);
    rig_advance(101);
    ok_uint(drained, ==, 1);
    /* They come after all: nobody sees them twice. */
    fake_qp_flush(qp_verbs(qp));
    ok_uint(fake_cq_entries(qp_verbs(qp)->recv_cq), ==, 7);
    for (uintptr_t i = 0; i < 4; i++)
        ok_result(cq, Send, i, ND_CANCELED);
    for (uintptr_t i = 1; i < 4; i++)
        ok_result(cq, Receive, 10 + i, ND_CANCELED);
    ok_no_result(cq);
    ok_status(rig_send(qp, 20, 0), ND_SUCCESS);
    ok_result(cq, Send, 20, ND_CANCELED);
    ok_no_result(cq);
    unmake();
}

/* Late ones also while the made-up results are still in their slots, and the ring has gone on. */
TEST(drain__lost_completions_come_into_a_reused_ring)
{
    struct qp_drain drain;
    ND2_RESULT results[8];

    make(2);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    rig_advance(1001);
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    fake_qp_flush(qp_verbs(qp));
    ok_uint(cq_get_results(cq, results, 8), ==, 2);
    ok_ptr(results[0].RequestContext, ==, rig_ctx(2));
    ok_ptr(results[1].RequestContext, ==, rig_ctx(3));
    unmake();
}

TEST(drain__several_and_again)
{
    struct qp_drain first, second, third;

    make(4);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    qp_drain(qp, &first, on_drained);
    rig_advance(2);
    qp_drain(qp, &second, on_drained);
    ok_status(qp_flush(qp), ND_SUCCESS);
    rig_advance(2);
    ok_uint(drained, ==, 0);
    fake_qp_flush(qp_verbs(qp));
    rig_advance(1);
    ok_uint(drained, ==, 2);
    qp_drain(qp, &third, on_drained);
    ok_uint(drained, ==, 2);
    rig_run();
    ok_uint(drained, ==, 3);
    ok_result(cq, Receive, 1, ND_CANCELED);
    unmake();
}

/* The last Release while a drain waits: it ends too, and the requests come back. */
TEST(drain__released_meanwhile)
{
    struct qp_drain drain;

    make(4);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    rig_advance(2);
    qp_ref(qp);
    rig_drop(qp);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Receive, 1, ND_CANCELED);
    rig_run();
    ok_uint(drained, ==, 1);
    qp_drain(qp, &drain, on_drained);
    rig_run();
    ok_uint(drained, ==, 2);
    qp_unref(qp);
    rig_advance(20);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* An application that never takes its results, on a queue shared with a busy queue pair: the drain makes the room. */
TEST(drain__beside_an_overdrawn_neighbour)
{
    struct qp_drain drain;
    struct qp *busy;
    uintptr_t posted = 0, seen = 0;
    ND2_RESULT result;
    bool mine = false;

    make(4);
    busy = rig_qp(adapter, cq, cq, 16);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 0xfffff), ND_SUCCESS);
    qp_drain(qp, &drain, on_drained);
    for (int i = 0; i < 200; i++) {
        while (rig_recv(busy, posted) == ND_SUCCESS)
            posted++;
        fake_qp_complete(qp_verbs(busy), FAKE_RECV, 16, IBV_WC_SUCCESS, 0);
        rig_advance(1);
    }
    fake_qp_flush(qp_verbs(qp));
    rig_advance(1);
    ok_uint(drained, ==, 1);
    rig_drop(busy);
    while (cq_get_results(cq, &result, 1)) {
        if (result.RequestContext == rig_ctx(0xfffff)) {
            ok(!mine);
            mine = true;
        } else {
            ok_ptr(result.RequestContext, ==, rig_ctx(seen++));
        }
    }
    ok(mine);
    ok_uint(seen, ==, posted);
    ok_uint(posted, >, 2000);
    unmake();
}

/* ---- events ---- */

TEST(async__fatal_event)
{
    make(4);
    rig_connect(qp);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    fake_async_qp(qp_verbs(qp), IBV_EVENT_QP_FATAL);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_ERR);
    ok_result(cq, Receive, 1, ND_CANCELED);
    unmake();
}

TEST(async__device_removed)
{
    make(4);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    rig_advance(1001);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Send, 3, ND_CANCELED);
    ok_result(cq, Receive, 1, ND_CANCELED);
    unmake();
}

/* ---- release ---- */

/* Arrived results stay what they are; the rest is cancelled; order is kept; nothing touches memory afterwards. */
TEST(release__results_of_a_dead_queue_pair_remain)
{
    struct qp *other;

    make(8);
    other = rig_qp(adapter, cq, cq, 4);
    rig_connect(qp);
    for (uintptr_t i = 0; i < 4; i++) {
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 10 + i), ND_SUCCESS);
    }
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
    ok_status(rig_recv(other, 30), ND_SUCCESS);
    rig_drop(qp);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 1);
    fake_qp_complete(qp_verbs(other), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Send, 0, ND_SUCCESS);
    ok_result(cq, Send, 1, ND_SUCCESS);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Send, 3, ND_CANCELED);
    for (uintptr_t i = 0; i < 4; i++)
        ok_result(cq, Receive, 10 + i, ND_CANCELED);
    ok_result(cq, Receive, 30, ND_SUCCESS);
    qp = other;
    unmake();
}

/* A device that drops the work of a destroyed queue pair without a word. */
TEST(release__device_says_nothing)
{
    struct notify n;

    make(8);
    rig_connect(qp);
    fake_auto_flush(false);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_drop(qp);
    ok_done(&n, ND_SUCCESS);
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Receive, 3, ND_CANCELED);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* With late posts ready in their slots, and twice. */
TEST(release__with_results_waiting_in_their_slots)
{
    make(4);
    rig_connect(qp);
    qp_flush(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    ok_result(cq, Send, 1, ND_CANCELED);
    qp_release(qp);
    qp_release(qp);
    qp_unref(qp);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Receive, 3, ND_CANCELED);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Two queues, the first released before the queue pair: its results have nobody, and go with it. */
TEST(release__queue_first)
{
    struct cq *recv;

    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 8);
    recv = rig_cq(adapter, 8);
    qp = rig_qp(adapter, recv, cq, 4);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    cq_unref(recv);
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
    unmake();
    ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
}

/* An error found by the poll of a post, reported when the queue's lock is free. */
TEST(error__found_while_posting)
{
    make(2);
    rig_connect(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_LOC_PROT_ERR, 0);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 2);
    rig_run();
    ok_uint(error_modifies(), ==, 1);
    ok_result(cq, Send, 1, ND_ACCESS_VIOLATION);
    ok_result(cq, Send, 2, ND_CANCELED);
    ok_result(cq, Send, 3, ND_CANCELED);
    unmake();
}

/* Every order of {drain, device flush, poll, release, 1.1 s} over a queue pair with something of everything posted. */
TEST(end__all_orders)
{
    enum {
        DRAIN,
        FLUSH,
        POLL,
        TIME,
        RELEASE,
        STEPS
    };

    for (unsigned code = 0; code < 3125; code++) {
        unsigned rest = code, seen = 0, got[8] = { 0 };
        struct qp_drain drain[5];
        bool released = false;
        unsigned drains = 0;

        make(4);
        drained = 0;
        rig_connect(qp);
        fake_auto_flush(false);
        ok_status(rig_send(qp, 0, 0), ND_SUCCESS);
        ok_status(rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(rig_recv(qp, 2), ND_SUCCESS);
        ok_status(rig_recv(qp, 3), ND_SUCCESS);
        qp_close_posts(qp);
        ok_status(rig_send(qp, 4, 0), ND_SUCCESS);
        ok_status(rig_recv(qp, 5), ND_SUCCESS);
        for (unsigned i = 0; i < 6; i++, rest /= STEPS) {
            ND2_RESULT results[3];
            uint32_t n = 0;

            switch (i == 5 ? RELEASE : rest % STEPS) {
            case DRAIN:
                if (!released)
                    qp_drain(qp, &drain[drains++], on_drained);
                break;
            case FLUSH:
                if (!released && fake_qp_state(qp_verbs(qp)) == IBV_QPS_ERR)
                    fake_qp_flush(qp_verbs(qp));
                break;
            case POLL:
                n = cq_get_results(cq, results, 3);
                break;
            case TIME:
                rig_advance(1100);
                break;
            case RELEASE:
                if (!released)
                    rig_drop(qp);
                released = true;
                break;
            }
            for (uint32_t j = 0; j < n; j++, seen++)
                got[(uintptr_t)results[j].RequestContext]++;
        }
        rig_run();
        ok_uint(drained, ==, drains);
        for (ND2_RESULT result; cq_get_results(cq, &result, 1); seen++) {
            ok_status(result.Status, ND_CANCELED);
            got[(uintptr_t)result.RequestContext]++;
        }
        ok_msg(seen == 6, "order %u: %u results", code, seen);
        for (unsigned i = 0; i < 6; i++)
            ok_msg(got[i] == 1, "order %u: request %u came %u times", code, i, got[i]);
        fake_auto_flush(true);
        cq_unref(cq);
        rig_close(adapter);
        if (code % 100 == 0)
            fake_reset_script();
    }
}
