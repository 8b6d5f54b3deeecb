/* SPDX-License-Identifier: MIT */

/* Notify: every order of request, completion, device event and poll. */

#include <errno.h>
#include <string.h>

#include "core/cq_priv.h"
#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;
static struct ibv_cq *device_cq;

static void make(const char *address, uint32_t depth)
{
    adapter = rig_open(address);
    cq = rig_cq(adapter, depth);
    qp = rig_qp(adapter, cq, cq, 16);
    device_cq = qp_verbs(qp)->recv_cq;
    for (uintptr_t i = 0; i < 8; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
}

static void unmake(void)
{
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

static void arrive(unsigned n)
{
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_RECV, n, IBV_WC_SUCCESS, 1), ==, n);
}

static uint32_t take(uint32_t n)
{
    ND2_RESULT results[16];

    return cq_get_results(cq, results, n);
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(Notify__arguments)
{
    OVERLAPPED ov = { .Internal = 77 };

    make(RIG_IB, 8);
    ok_status(cq_notify(cq, 3, rig_file, &ov), ND_INVALID_PARAMETER_1);
    ok_status(cq_notify(cq, ~0u, rig_file, &ov), ND_INVALID_PARAMETER_1);
    ok_status(cq_notify(cq, ND_CQ_NOTIFY_ANY, rig_file, NULL), ND_INVALID_PARAMETER);
    ov.hEvent = (HANDLE)(uintptr_t)0x12344;
    ok_status(cq_notify(cq, ND_CQ_NOTIFY_ANY, rig_file, &ov), ND_INVALID_HANDLE);
    ok_uint(ov.Internal, ==, 77);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 0);
    unmake();
}

/* Without memory for the request nothing is armed, and the queue can be asked again. */
TEST(Notify__out_of_requests)
{
    OVERLAPPED ov = { .Internal = 77 };
    struct notify n;

    make(RIG_IB, 8);
    fake_alloc_fail(1);
    ok_status(cq_notify(cq, ND_CQ_NOTIFY_ANY, rig_file, &ov), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_clear();
    ok_uint(ov.Internal, ==, 77);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 0);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_pending(&n);
    arrive(1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_uint(take(2), ==, 1);
    unmake();
}

TEST(Notify__completion_after_the_arm)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    rig_run();
    ok_pending(&n);
    arrive(1);
    ok_pending(&n);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_uint(take(2), ==, 1);
    unmake();
}

TEST(Notify__completion_before_needs_no_arm)
{
    struct notify n;

    make(RIG_IB, 8);
    arrive(1);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 0);
    ok_uint(take(2), ==, 1);
    unmake();
}

static void arrive_hook(struct fake_call *call, void *arg)
{
    (void)call;
    arrive(*(unsigned *)arg);
}

/* The completion that gives no event: it came after the first look and before the arm. */
TEST(Notify__completion_just_before_the_arm)
{
    unsigned one = 1;
    struct notify n;

    make(RIG_IB, 8);
    fake_on(FAKE_ibv_req_notify_cq, arrive_hook, &one);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_uint(fake_cq_events_queued(device_cq), ==, 0);
    ok_done(&n, ND_SUCCESS);
    ok_uint(take(2), ==, 1);
    unmake();
}

/* It fires, and the second look finds it too: one completion, and the event is nobody's. */
TEST(Notify__completion_just_after_the_arm)
{
    unsigned one = 1;
    struct notify n, next;

    make(RIG_IB, 8);
    fake_after(FAKE_ibv_req_notify_cq, arrive_hook, &one);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_SUCCESS);
    ok_uint(fake_cq_events_queued(device_cq), ==, 1);
    ok_uint(take(2), ==, 1);
    /* The stale event must not complete the next one, but leave it armed. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &next);
    rig_run();
    ok_pending(&next);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    arrive(1);
    rig_run();
    ok_done(&next, ND_SUCCESS);
    unmake();
}

/* An entry completes one round of Notify, although nobody has taken it. */
TEST(Notify__an_entry_triggers_once)
{
    struct notify first, second, third;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &first);
    arrive(1);
    rig_run();
    ok_done(&first, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &second);
    rig_run();
    ok_pending(&second);
    arrive(1);
    rig_run();
    ok_done(&second, ND_SUCCESS);
    ok_uint(take(1), ==, 1);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &third);
    rig_run();
    ok_pending(&third);
    ok_uint(take(4), ==, 1);
    cq_cancel_notifies(cq, ND_CANCELED);
    ok_done(&third, ND_CANCELED);
    unmake();
}

/* Entries that came while nobody waited have triggered nothing yet, even if one before them has. */
TEST(Notify__entries_behind_the_announced_one_are_news)
{
    struct notify first, second, third;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &first);
    arrive(2);
    rig_run();
    ok_done(&first, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &second);
    ok_done(&second, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &third);
    rig_run();
    ok_pending(&third);
    ok_uint(take(4), ==, 2);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

/* Also with the stash full to the depth, where internal polls stop. */
TEST(Notify__full_stash)
{
    struct notify n[6];

    make(RIG_IB, 2);
    arrive(4);
    for (int i = 0; i < 4; i++) {
        rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[i]);
        ok_done(&n[i], ND_SUCCESS);
    }
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[4]);
    rig_run();
    ok_pending(&n[4]);
    arrive(1);
    rig_run();
    ok_done(&n[4], ND_SUCCESS);
    ok_uint(take(8), ==, 5);
    unmake();
}

TEST(Notify__several_complete_together_in_order)
{
    struct notify n[3];
    HANDLE handle = file_open_handle(rig_file, 0), port;
    OVERLAPPED *ov;
    ULONG_PTR key;
    DWORD bytes;

    port = CreateIoCompletionPort(handle, NULL, 5, 0);
    ok(port != NULL);
    make(RIG_IB, 8);
    for (int i = 0; i < 3; i++)
        rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[i]);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 1);
    arrive(1);
    rig_run();
    for (int i = 0; i < 3; i++) {
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0));
        ok_ptr(ov, ==, &n[i].ov);
        ok_uint(key, ==, 5);
    }
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0));
    ok_uint(take(4), ==, 1);
    unmake();
    CloseHandle(handle);
    CloseHandle(port);
}

/* A thread that polls takes the entry before the loop sees its event: the waiter must hear of it all the same. */
TEST(Notify__entry_taken_by_a_polling_thread)
{
    struct notify n, next;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    ok_uint(take(4), ==, 1);
    ok_pending(&n);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &next);
    rig_run();
    ok_pending(&next);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

/* Where a completion can only be a result, its event is enough: nobody looks before GetResults does. */
TEST(Notify__completed_by_the_event_alone)
{
    struct notify n, next;
    unsigned looks;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    looks = fake_count(FAKE_ibv_poll_cq);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_poll_cq), ==, looks);
    /* Told of, although it was not looked at: the next one waits for another. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_run();
    ok_pending(&n);
    ok_uint(take(4), ==, 1);
    arrive(2);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    /* Of two only the first. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &next);
    ok_done(&next, ND_SUCCESS);
    ok_uint(take(4), ==, 2);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &next);
    rig_run();
    ok_pending(&next);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

/* Its event is not enough if somebody has taken the completion: the next one is news. */
TEST(Notify__event_of_an_entry_that_was_taken)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    ok_uint(take(4), ==, 1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    arrive(1);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* The same if it is in the stash: announced once. */
TEST(Notify__event_of_an_entry_in_the_stash)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    qp_collect(qp);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_run();
    ok_pending(&n);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

/* The event of an arm whose request was cancelled, and whose completion was taken, comes to the next request. */
TEST(Notify__event_of_a_cancelled_request)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    cq_cancel_notifies(cq, ND_CANCELED);
    ok_uint(take(4), ==, 1);
    ok_uint(take(4), ==, 0);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_run();
    ok_pending(&n);
    arrive(1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* A mutex is taken for each acknowledgement: one for all events, when the CQ goes. */
TEST(events__acknowledged_together)
{
    struct notify n;

    make(RIG_IB, 8);
    for (int i = 0; i < 3; i++) {
        rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
        arrive(1);
        rig_run();
        ok_done(&n, ND_SUCCESS);
        ok_uint(take(4), ==, 1);
    }
    ok_uint(fake_count(FAKE_ibv_ack_cq_events), ==, 0);
    ok_uint(fake_cq_events_unacked(device_cq), ==, 3);
    unmake();
    ok_uint(fake_count(FAKE_ibv_ack_cq_events), ==, 1);
}

/* The same through the stash, where an internal poll had put it. */
TEST(Notify__entry_taken_out_of_the_stash)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    qp_collect(qp);
    ok_uint(take(4), ==, 1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* An entry taken before the request came does not count, even if its event is still on its way. */
TEST(Notify__entry_taken_before_the_request)
{
    struct notify first, second;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &first);
    arrive(1);
    ok_uint(take(4), ==, 1);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &second);
    cq_cancel_notifies(cq, ND_CANCELED);
    ok_done(&first, ND_CANCELED);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &second);
    rig_run();
    ok_pending(&second);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

TEST(Notify__errors_only_waits_for_the_end)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ERRORS, &n);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 0);
    arrive(2);
    qp_flush(qp);
    rig_run();
    ok_pending(&n);
    fake_async_cq(device_cq, IBV_EVENT_CQ_ERR);
    rig_run();
    ok_done(&n, ND_BUFFER_OVERFLOW);
    unmake();
}

TEST(Notify__any_draws_solicited_along_and_makes_the_arm_stronger)
{
    struct notify solicited, any;

    make(RIG_IB, 8);
    rig_connect(qp);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &solicited);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_SOLICITED);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &any);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    rig_run();
    ok_done(&any, ND_SUCCESS);
    ok_done(&solicited, ND_SUCCESS);
    unmake();
}

TEST(Notify__solicited_is_not_satisfied_by_a_send)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_connect(qp);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    rig_run();
    ok_pending(&n);
    ok_result(cq, Send, 1, ND_SUCCESS);
    rig_run();
    ok_pending(&n);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_RETRY_EXC_ERR, 0);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_result(cq, Send, 2, ND_IO_TIMEOUT);
    unmake();
}

/* rxe does not fire a solicited arm for a failed send, nor for a receive that fails by a message without the flag, siw not
 * for any receive: ANY is armed, and what is no reason is filtered here. */
static void be_rxe(void)
{
    fake_device_quirks("fake_ib", FAKE_QUIRK_RXE);
    fake_device_attr("fake_ib")->vendor_id = 0xffffff;
}

TEST(Notify__solicited_on_rxe)
{
    struct notify n;

    be_rxe();
    make(RIG_IB, 8);
    rig_connect(qp);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    rig_run();
    ok_pending(&n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_RETRY_EXC_ERR, 0);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

TEST(Notify__solicited_on_siw)
{
    struct notify n;

    fake_device_quirks("fake_iw", FAKE_QUIRK_SIW);
    make(RIG_IW, 8);
    adapter->device->solicited_arms = false;
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    arrive(1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* The only receive on a queue that takes no sends' results: no flush of another one comes behind it. */
TEST(Notify__solicited_by_a_failed_receive_on_rxe)
{
    struct notify n;
    struct cq *sends;

    be_rxe();
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 8);
    sends = rig_cq(adapter, 8);
    qp = rig_qp(adapter, cq, sends, 4);
    rig_connect(qp);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_LOC_LEN_ERR, 0);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_result(cq, Receive, 1, ND_DATA_OVERRUN);
    cq_unref(sends);
    unmake();
}

/* Nothing in a completion says that its message had the flag, so there every receive may be what is waited for. */
TEST(Notify__solicited_by_any_receive_on_rxe)
{
    struct notify n;

    be_rxe();
    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    arrive(1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* Elsewhere the device knows. */
TEST(Notify__solicited_not_by_a_plain_receive)
{
    struct ibv_wc wc = { .opcode = IBV_WC_RECV };
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_SOLICITED);
    arrive(1);
    rig_run();
    ok_pending(&n);
    fake_qp_complete_wc(qp_verbs(qp), FAKE_RECV, &wc, true);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

/* Signals that the library asks for behind the application's back are nobody's business. */
TEST(Notify__hidden_successes_satisfy_nothing)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_connect(qp);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    for (uintptr_t i = 0; i < 16; i++)
        ok_status(rig_send(qp, i, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 16, IBV_WC_SUCCESS, 0);
    ok_uint(fake_cq_events_queued(device_cq), ==, 1);
    rig_run();
    ok_pending(&n);
    ok_int(fake_cq_armed(device_cq), ==, FAKE_ARM_ANY);
    arrive(1);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    ok_uint(take(16), ==, 1);
    unmake();
}

TEST(Notify__failures_complete_any_and_solicited)
{
    static const uint32_t types[] = { ND_CQ_NOTIFY_ANY, ND_CQ_NOTIFY_SOLICITED };

    for (int i = 0; i < 2; i++) {
        struct notify n;

        make(RIG_IB, 16);
        rig_notify(cq, types[i], &n);
        fake_qp_fail(qp_verbs(qp));
        rig_run();
        ok_done(&n, ND_SUCCESS);
        ok_uint(take(16), ==, 8);
        unmake();
    }
}

TEST(Notify__arm_fails)
{
    struct notify errors, n, next;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ERRORS, &errors);
    fake_fail(FAKE_ibv_req_notify_cq, 1, EIO);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_INTERNAL_ERROR);
    ok_pending(&errors);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &next);
    arrive(1);
    rig_run();
    ok_done(&next, ND_SUCCESS);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}

/* tests/lists: D44. */
TEST(Notify__without_a_completion_channel)
{
    OVERLAPPED ov = { 0 };

    fake_fail(FAKE_ibv_create_comp_channel, 1, ENOSYS);
    make(RIG_IB, 8);
    for (uint32_t type = ND_CQ_NOTIFY_ERRORS; type <= ND_CQ_NOTIFY_SOLICITED; type++)
        ok_status(cq_notify(cq, type, rig_file, &ov), ND_NOT_SUPPORTED);
    arrive(1);
    ok_uint(take(2), ==, 1);
    unmake();
}

/* tests/lists: D66. */
TEST(Notify__overrun)
{
    struct notify n[2];
    OVERLAPPED ov = { .Internal = 5 };

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[0]);
    rig_notify(cq, ND_CQ_NOTIFY_ERRORS, &n[1]);
    for (int i = 0; i < 3; i++)
        fake_async_cq(device_cq, IBV_EVENT_CQ_ERR);
    rig_run();
    ok_done(&n[0], ND_BUFFER_OVERFLOW);
    ok_done(&n[1], ND_BUFFER_OVERFLOW);
    ok_status(cq_notify(cq, ND_CQ_NOTIFY_ANY, rig_file, &ov), ND_BUFFER_OVERFLOW);
    ok_uint(ov.Internal, ==, 5);
    /* Its queue pairs are dead. */
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_ERR);
    ok_uint(take(16), ==, 8);
    unmake();
}

TEST(Notify__device_removed)
{
    struct notify n;
    OVERLAPPED ov = { 0 };

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n);
    fake_device_remove("fake_ib");
    rig_run();
    ok_done(&n, ND_DEVICE_REMOVED);
    ok_status(cq_notify(cq, ND_CQ_NOTIFY_ANY, rig_file, &ov), ND_DEVICE_REMOVED);
    ok_status(cq_resize(cq, 9), ND_DEVICE_REMOVED);
    rig_advance(1100);
    ok_uint(take(16), ==, 8);
    unmake();
}

/* ---- cancel ---- */

TEST(cancel__in_order_and_complete_on_return)
{
    struct notify n[3];
    HANDLE handle = file_open_handle(rig_file, 0), port;
    OVERLAPPED *ov;
    ULONG_PTR key;
    DWORD bytes;

    port = CreateIoCompletionPort(handle, NULL, 1, 0);
    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ERRORS, &n[0]);
    rig_notify(cq, ND_CQ_NOTIFY_SOLICITED, &n[1]);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[2]);
    cq_cancel_notifies(cq, ND_CANCELED);
    for (int i = 0; i < 3; i++) {
        ok(!GetQueuedCompletionStatus(port, &bytes, &key, &ov, 0));
        ok_ptr(ov, ==, &n[i].ov);
        ok_done(&n[i], ND_CANCELED);
    }
    /* Nothing to cancel: nothing happens; a later Notify works, and the event of the old arm is a stale one. */
    cq_cancel_notifies(cq, ND_CANCELED);
    arrive(1);
    ok_uint(take(1), ==, 1);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[0]);
    rig_run();
    ok_pending(&n[0]);
    arrive(1);
    rig_run();
    ok_done(&n[0], ND_SUCCESS);
    unmake();
    CloseHandle(handle);
    CloseHandle(port);
}

TEST(cancel__one_by_CancelIoEx)
{
    struct notify n[2];
    HANDLE handle = file_open_handle(rig_file, 0);

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[0]);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[1]);
    ok(CancelIoEx(handle, &n[0].ov));
    ok_done(&n[0], ND_CANCELED);
    ok_pending(&n[1]);
    ok(!CancelIoEx(handle, &n[0].ov));
    arrive(1);
    rig_run();
    ok_done(&n[1], ND_SUCCESS);
    unmake();
    CloseHandle(handle);
}

/* The event is fetched, and the request cancelled before the loop looks. */
TEST(cancel__races_with_the_event)
{
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    arrive(1);
    cq_cancel_notifies(cq, ND_CANCELED);
    ok_done(&n, ND_CANCELED);
    rig_run();
    ok_done(&n, ND_CANCELED);
    /* The entry has triggered nothing that completed: the next Notify completes. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_done(&n, ND_SUCCESS);
    unmake();
}

TEST(release__completes_what_is_pending)
{
    struct notify n[2];

    make(RIG_IB, 8);
    rig_drop(qp);
    while (take(16))
        ;
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n[0]);
    rig_notify(cq, ND_CQ_NOTIFY_ERRORS, &n[1]);
    cq_unref(cq);
    ok_done(&n[0], ND_CANCELED);
    ok_done(&n[1], ND_CANCELED);
    rig_close(adapter);
}

/* Every order of {request, completion, run of the loop, poll} of one entry ends in: the request completes exactly when the
 * entry came after the last poll that found nothing, or was taken while the request was pending (D50). */
TEST(Notify__all_orders)
{
    enum {
        REQUEST,
        ARRIVE,
        LOOP,
        POLL,
        STEPS
    };
    unsigned played = 0;

    for (unsigned code = 0; code < STEPS * STEPS * STEPS * STEPS * STEPS; code++) {
        unsigned count[STEPS] = { 0 }, order[5], rest = code, requested = 5, arrived = 5;
        bool legal, taken = false;
        struct notify n;

        for (unsigned i = 0; i < 5; i++, rest /= STEPS) {
            order[i] = rest % STEPS;
            count[order[i]]++;
        }
        legal = count[REQUEST] == 1 && count[ARRIVE] == 1;
        if (!legal)
            continue;
        played++;
        make(RIG_IB, 8);
        for (unsigned i = 0; i < 5; i++) {
            switch (order[i]) {
            case REQUEST:
                requested = i;
                rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
                break;
            case ARRIVE:
                arrived = i;
                arrive(1);
                break;
            case LOOP:
                rig_run();
                break;
            case POLL:
                if (take(2)) {
                    ok(!taken);
                    taken = true;
                    if (requested == 5) /* taken before the request */
                        arrived = 6;
                }
                break;
            }
        }
        rig_run();
        if (arrived == 6)
            ok_msg(rig_pending(&n), "order %u: completed for an entry taken before", code);
        else
            ok_msg(!rig_pending(&n), "order %u: lost", code);
        if (!taken)
            ok_uint(take(2), ==, 1);
        cq_cancel_notifies(cq, ND_CANCELED);
        unmake();
    }
    ok_uint(played, >, 100);
}

/* Random mixes of both kinds against the same rule, told in numbers: a Notify that pends after the loop ran means that no
 * matching entry is unannounced. */
TEST(Notify__random_mix_never_loses_a_wake_up)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        uint32_t random = seed * 2654435761u, present = 0, announced = 0;

        make(RIG_IB, 16);
        rig_connect(qp);
        for (int step = 0; step < 300; step++) {
            struct notify n;

            random = random * 1664525u + 1013904223u;
            switch (random >> 29) {
            case 0:
            case 1:
            case 2:
                if (present < 16 && rig_recv(qp, 0) == ND_SUCCESS) {
                    arrive(1);
                    present++;
                }
                break;
            case 3:
                /* Every other time without: they keep the library from what it does where each completion is a result. */
                if (seed % 2 && rig_send(qp, 1, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS)
                    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
                break;
            case 4: {
                uint32_t got = take((random >> 8) % 4);

                present -= got;
                announced -= got < announced ? got : announced;
                break;
            }
            default:
                rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
                rig_run();
                if (rig_pending(&n)) {
                    ok_uint(announced, ==, present);
                    cq_cancel_notifies(cq, ND_CANCELED);
                } else {
                    ok_uint(announced, <, present);
                    announced++;
                }
            }
        }
        while (take(16))
            ;
        unmake();
        rig_run();
    }
}

static DWORD WINAPI notify_thread(LPVOID notify)
{
    rig_notify(cq, ND_CQ_NOTIFY_ANY, (struct notify *)notify);
    return 0;
}

/* What CancelIoEx has found it has cancelled, wherever in the call the request was. */
TEST(Notify__cancelled_inside_the_call)
{
    struct notify n = { .ov = { .Internal = 0 } };
    HANDLE file = file_open_handle(rig_file, 0), thread;
    BOOL found;

    make(RIG_IB, 8);
    cq_lock(cq);
    thread = CreateThread(NULL, 0, notify_thread, &n, 0, NULL);
    while (__atomic_load_n(&cq->lock.word, __ATOMIC_RELAXED) < GATE_SLEEPERS / 2)
        harness_yield();
    found = CancelIoEx(file, &n.ov);
    cq_unlock(cq);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    rig_run();
    if (found)
        ok_done(&n, ND_CANCELED);
    else
        ok_pending(&n);
    cq_cancel_notifies(cq, ND_CANCELED);
    CloseHandle(thread);
    CloseHandle(file);
    unmake();
}

/* A result that no device event announces, which another thread takes before it is announced. */
TEST(Notify__result_of_software_taken_by_a_polling_thread)
{
    const struct slot slot = { .type = Nd2RequestTypeSend };
    struct notify n;

    make(RIG_IB, 8);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    cq_lock(cq);
    cq_push_slot_locked(cq, list_entry(cq->queues.next, struct queue, queue_link), &slot, ND_CANCELED);
    cq_unlock(cq);
    ok_uint(take(2), ==, 1);
    ok_pending(&n);
    cq_kick(cq);
    ok_done(&n, ND_SUCCESS);
    /* That one is told of. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    cq_kick(cq);
    rig_run();
    ok_pending(&n);
    cq_cancel_notifies(cq, ND_CANCELED);
    unmake();
}
