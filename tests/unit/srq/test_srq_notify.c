/* SPDX-License-Identifier: MIT */

/* Notify of a shared receive queue: fewer than the threshold are posted. */

#include <errno.h>

#include "file.h"
#include "srq_rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct srq *srq;
static struct qp *qp;

static void make(uint32_t depth, uint32_t threshold)
{
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 64);
    srq = rig_srq(adapter, depth, threshold);
    qp = rig_shared_qp(adapter, srq, cq, 1);
}

SETUP
{
    rig_start();
    make(16, 4);
}

TEARDOWN
{
    if (qp)
        rig_drop(qp);
    if (srq)
        srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
    rig_end();
}

static void take(unsigned n)
{
    ND2_RESULT result;

    for (unsigned i = 0; i < n; i++)
        ok_uint(cq_get_results(cq, &result, 1), ==, 1);
}

TEST(srq_notify__arguments)
{
    OVERLAPPED ov = { .hEvent = (HANDLE)(ULONG_PTR)0x7770 };

    ok_status(srq_notify(srq, rig_file, NULL), ND_INVALID_PARAMETER);
    ok_status(srq_notify(srq, rig_file, &ov), ND_INVALID_HANDLE);
}

/* Not armed by default; once per call; by the device's event alone, nobody polls. */
TEST(srq_notify__by_the_device)
{
    struct notify one, two;

    rig_share_many(srq, 0, 8);
    ok_uint(fake_count(FAKE_ibv_modify_srq), ==, 0);
    rig_srq_notify(srq, &one);
    ok_uint(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.attr.srq_limit, ==, 4);
    ok_int(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.mask, ==, IBV_SRQ_LIMIT);
    rig_fill(qp, 4);
    rig_run();
    ok_pending(&one); /* four are not fewer than four */
    rig_fill(qp, 1);
    rig_run();
    ok_done(&one, ND_SUCCESS);
    rig_fill(qp, 1);
    rig_run();
    /* Two are posted: the next one is due at once. */
    rig_srq_notify(srq, &two);
    ok_done(&two, ND_SUCCESS);
}

/* The application polls first, the device's event comes late. */
TEST(srq_notify__by_the_poller)
{
    struct notify one, two;

    rig_share_many(srq, 0, 8);
    rig_srq_notify(srq, &one);
    rig_fill(qp, 5);
    take(4);
    ok_pending(&one);
    take(1);
    ok_done(&one, ND_SUCCESS);
    /* Its event is an old one to the next request. */
    rig_share_many(srq, 10, 10);
    rig_srq_notify(srq, &two);
    rig_run();
    ok_pending(&two);
    rig_fill(qp, 10);
    rig_run();
    ok_done(&two, ND_SUCCESS);
}

/* What was taken before the arm and not polled counts: the device has nothing more to tell. */
TEST(srq_notify__below_before_it_was_asked_for)
{
    struct notify one;

    rig_share_many(srq, 0, 5);
    rig_fill(qp, 5);
    rig_srq_notify(srq, &one);
    ok_done(&one, ND_SUCCESS);
    rig_run();
    take(5);
    ok_no_result(cq);
    /* Empty from the start. */
    rig_srq_notify(srq, &one);
    ok_done(&one, ND_SUCCESS);
}

/* A message is being received while the Notify comes: its receive is taken, but counts until it completes. */
TEST(srq_notify__a_receive_that_is_being_filled)
{
    struct notify one;

    rig_share_many(srq, 0, 4);
    rig_srq_notify(srq, &one);
    ok_pending(&one);
    rig_fill(qp, 1);
    ok_pending(&one);
    take(1);
    ok_done(&one, ND_SUCCESS);
}

/* The event comes when the receive is taken, its completion later: the device is right. */
TEST(srq_notify__event_before_the_completion)
{
    struct notify one;

    rig_share_many(srq, 0, 4);
    rig_srq_notify(srq, &one);
    fake_async_srq(rig_device_srq(), IBV_EVENT_SRQ_LIMIT_REACHED);
    rig_run();
    ok_done(&one, ND_SUCCESS);
    /* With nobody waiting an event is nothing. */
    fake_async_srq(rig_device_srq(), IBV_EVENT_SRQ_LIMIT_REACHED);
    rig_run();
    rig_share_many(srq, 4, 4);
    rig_srq_notify(srq, &one);
    rig_run();
    ok_pending(&one);
    srq_cancel_notifies(srq, ND_CANCELED);
}

/* The completion queue is full of results that nobody takes, so the count cannot be checked: the device is believed. */
TEST(srq_notify__behind_a_full_completion_queue)
{
    struct notify one;

    rig_drop(qp);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
    make(64, 4);
    ok_status(cq_resize(cq, 2), ND_SUCCESS);
    rig_share_many(srq, 0, 64);
    rig_srq_notify(srq, &one);
    rig_fill(qp, 61);
    ok_pending(&one);
    rig_run();
    ok_done(&one, ND_SUCCESS);
    rig_srq_notify(srq, &one);
    ok_done(&one, ND_SUCCESS);
}

TEST(srq_notify__several_complete_together_in_order)
{
    HANDLE handle = file_open_handle(rig_file, 0), port = CreateIoCompletionPort(handle, NULL, 0, 0);
    OVERLAPPED *out;
    struct notify n[5];
    ULONG_PTR key;
    DWORD bytes;

    rig_share_many(srq, 0, 4);
    for (int i = 0; i < 5; i++)
        rig_srq_notify(srq, &n[i]);
    for (int i = 0; i < 5; i++)
        ok_pending(&n[i]);
    rig_fill(qp, 1);
    rig_run();
    for (int i = 0; i < 5; i++) {
        ok_done(&n[i], ND_SUCCESS);
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
        ok_ptr(out, ==, &n[i].ov);
    }
    ok(CloseHandle(handle));
    ok(CloseHandle(port));
}

/* A threshold of 0: errors only. */
TEST(srq_notify__no_threshold)
{
    struct notify one;
    uint32_t threshold = 0;

    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    rig_srq_notify(srq, &one);
    ok_pending(&one);
    rig_share_many(srq, 0, 4);
    rig_fill(qp, 4);
    take(4);
    rig_run();
    ok_pending(&one);
    ok_uint(fake_count(FAKE_ibv_modify_srq), ==, 0);
    /* Then one that is met already. */
    threshold = 1;
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    ok_done(&one, ND_SUCCESS);
}

TEST(srq_notify__threshold_changes_while_it_pends)
{
    struct notify one;
    uint32_t threshold = 2;

    rig_share_many(srq, 0, 8);
    rig_srq_notify(srq, &one);
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    ok_uint(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.attr.srq_limit, ==, 2);
    rig_fill(qp, 6);
    rig_run();
    ok_pending(&one);
    threshold = 3;
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    ok_done(&one, ND_SUCCESS);
    /* Beyond what the device takes for a limit: always reached. */
    threshold = 4000;
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    rig_srq_notify(srq, &one);
    ok_done(&one, ND_SUCCESS);
}

/* A device without the limit: what the application takes is counted all the same. */
TEST(srq_notify__device_cannot_arm)
{
    struct notify one;

    fake_fail_always(FAKE_ibv_modify_srq, EOPNOTSUPP);
    rig_share_many(srq, 0, 4);
    rig_srq_notify(srq, &one);
    ok_pending(&one);
    rig_fill(qp, 1);
    take(1);
    ok_done(&one, ND_SUCCESS);
}

TEST(srq_notify__cancel_and_release)
{
    struct notify n[3];

    rig_share_many(srq, 0, 8);
    for (int i = 0; i < 3; i++)
        rig_srq_notify(srq, &n[i]);
    srq_cancel_notifies(srq, ND_CANCELED);
    for (int i = 0; i < 3; i++)
        ok_done(&n[i], ND_CANCELED);
    srq_cancel_notifies(srq, ND_CANCELED);
    /* Armed anew afterwards. */
    rig_srq_notify(srq, &n[0]);
    rig_fill(qp, 5);
    rig_run();
    ok_done(&n[0], ND_SUCCESS);
    rig_share_many(srq, 8, 8);
    rig_srq_notify(srq, &n[0]);
    ok_pending(&n[0]);
    rig_drop(qp);
    qp = NULL;
    srq_unref(srq);
    srq = NULL;
    ok_done(&n[0], ND_CANCELED);
}

/* One of them by CancelIoEx, the others stay. */
TEST(srq_notify__cancel_of_one)
{
    HANDLE handle = file_open_handle(rig_file, 0);
    struct notify n[2];

    rig_share_many(srq, 0, 4);
    rig_srq_notify(srq, &n[0]);
    rig_srq_notify(srq, &n[1]);
    ok(CancelIoEx(handle, &n[0].ov));
    ok_done(&n[0], ND_CANCELED);
    ok_pending(&n[1]);
    rig_fill(qp, 1);
    rig_run();
    ok_done(&n[1], ND_SUCCESS);
    ok(CloseHandle(handle));
}

TEST(srq_notify__error_and_removal)
{
    struct notify one;
    OVERLAPPED ov = { 0 };

    rig_share_many(srq, 0, 8);
    rig_srq_notify(srq, &one);
    fake_async_srq(rig_device_srq(), IBV_EVENT_SRQ_ERR);
    rig_run();
    ok_done(&one, ND_INTERNAL_ERROR);
    ok_status(srq_notify(srq, rig_file, &ov), ND_INTERNAL_ERROR);
    ok_status(rig_share(srq, 9), ND_INTERNAL_ERROR);
    rig_drop(qp);
    srq_unref(srq);
    srq = rig_srq(adapter, 16, 4);
    qp = NULL;
    rig_share_many(srq, 0, 8);
    rig_srq_notify(srq, &one);
    fake_device_remove("fake_ib");
    rig_run();
    ok_done(&one, ND_DEVICE_REMOVED);
    ok_status(srq_notify(srq, rig_file, &ov), ND_DEVICE_REMOVED);
}

TEST(srq_notify__out_of_requests)
{
    OVERLAPPED ov = { 0 };

    fake_alloc_fail(1);
    ok_status(srq_notify(srq, rig_file, &ov), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_clear();
    ok_status(srq_notify(srq, rig_file, &ov), ND_PENDING);
    srq_cancel_notifies(srq, ND_CANCELED);
}

/* The other way to notify: creation and Modify arm the limit once, Notify waits for the next event, whatever it is. */

static const struct srq_policy by_event = { .limit = 0x101, .last_wqe = 0x10b, .error = ND_UNSUCCESSFUL };

TEST(srq_notify__by_event)
{
    struct srq_config config = { .adapter = adapter, .depth = 16, .max_sge = 1, .threshold = 4, .policy = &by_event };
    struct srq_attributes is;
    struct notify one, two;
    uint32_t threshold = 3;

    rig_drop(qp);
    srq_unref(srq);
    ok_status(srq_create(&config, &srq), ND_SUCCESS);
    /* Empty: fewer than the threshold already, an event that nobody waited for. */
    srq_query(srq, &is);
    ok_uint(is.threshold, ==, 0);
    qp = rig_shared_qp(adapter, srq, cq, 1);
    rig_share_many(srq, 0, 8);
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    srq_query(srq, &is);
    ok_uint(is.threshold, ==, 3);
    rig_srq_notify(srq, &one);
    rig_srq_notify(srq, &two);
    rig_fill(qp, 5);
    rig_run();
    ok_pending(&one);
    rig_fill(qp, 1);
    rig_run();
    ok_done(&one, 0x101);
    ok_done(&two, 0x101);
    srq_query(srq, &is);
    ok_uint(is.threshold, ==, 0);
    /* Once. */
    rig_srq_notify(srq, &one);
    rig_fill(qp, 1);
    rig_run();
    ok_pending(&one);
    fake_async_qp(qp_verbs(qp), IBV_EVENT_QP_LAST_WQE_REACHED);
    rig_run();
    ok_done(&one, 0x10b);
    rig_srq_notify(srq, &one);
    fake_async_srq(rig_device_srq(), IBV_EVENT_SRQ_ERR);
    rig_run();
    ok_done(&one, ND_UNSUCCESSFUL);
}

static DWORD WINAPI notify_thread(LPVOID notify)
{
    rig_srq_notify(srq, (struct notify *)notify);
    return 0;
}

/* Whichever of the two is first, the threshold counts. */
TEST(srq_notify__threshold_changes_inside_the_call)
{
    uint32_t none = 0, threshold = 4;
    struct notify n;
    HANDLE thread;

    ok_status(srq_modify(srq, NULL, &none), ND_SUCCESS);
    wordlock_lock(&rig_file->lock);
    thread = CreateThread(NULL, 0, notify_thread, &n, 0, NULL);
    while (__atomic_load_n(&rig_file->lock.word, __ATOMIC_RELAXED) != 2)
        harness_yield();
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    wordlock_unlock(&rig_file->lock);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_done(&n, ND_SUCCESS); /* none is posted */
    CloseHandle(thread);
}
