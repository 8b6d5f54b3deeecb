/* SPDX-License-Identifier: MIT */

/* Creation, room, Resize, overrun and the end of completion queues. */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
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

TEST(create__limits)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq;

    ok_status(cq_create(adapter, 0, 0, 0, &cq), ND_INVALID_PARAMETER_3);
    ok_status(cq_create(adapter, adapter->limits.max_cq_depth + 1, 0, 0, &cq), ND_INVALID_PARAMETER_3);
    cq_unref(rig_cq(adapter, adapter->limits.max_cq_depth));
    ok_status(cq_create(adapter, 10, 3, 0x80, &cq), ND_SUCCESS);
    ok_ptr(cq_adapter(cq), ==, adapter);
    /* Twice the depth and some. */
    ok_int(fake_log_find(FAKE_ibv_create_cq, -1)->arg.create_cq.cqe, ==, 276);
    cq_unref(cq);
    rig_close(adapter);
}

/* A processor by group and bit chooses the vector; without one the calling thread's. */
TEST(create__affinity)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq;
    cpu_set_t set, one;

    for (unsigned processor = 0; processor < 128; processor++) {
        ok_status(cq_create(adapter, 4, (uint16_t)(processor / 64), 3ull << processor % 64, &cq), ND_SUCCESS);
        ok_int(fake_log_find(FAKE_ibv_create_cq, -1)->arg.create_cq.vector, ==, processor % 2);
        cq_unref(cq);
    }
    ok_int(sched_getaffinity(0, sizeof(set), &set), ==, 0);
    for (int processor = 0; processor < 4; processor++) {
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        if (!CPU_ISSET(processor, &set) || sched_setaffinity(0, sizeof(one), &one) != 0)
            continue;
        cq = rig_cq(adapter, 4);
        ok_int(fake_log_find(FAKE_ibv_create_cq, -1)->arg.create_cq.vector, ==, processor % 2);
        cq_unref(cq);
    }
    sched_setaffinity(0, sizeof(set), &set);
    rig_close(adapter);
}

TEST(create__foreign_failures)
{
    static const struct {
        int error;
        NTSTATUS status;
    } rows[] = { { ENOMEM, ND_INSUFFICIENT_RESOURCES },
                 { EINVAL, ND_INSUFFICIENT_RESOURCES },
                 { EIO, ND_DEVICE_REMOVED } };
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_fail_always(FAKE_ibv_create_cq, rows[i].error);
        ok_status(cq_create(adapter, 4, 0, 0, &cq), rows[i].status);
        fake_fail_clear(FAKE_ibv_create_cq);
    }
    /* The generous size is a wish. */
    fake_fail(FAKE_ibv_create_cq, 1, ENOMEM);
    ok_status(cq_create(adapter, 4, 0, 0, &cq), ND_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_create_cq, -1)->arg.create_cq.cqe, ==, 4);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(create__no_memory)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq;
    NTSTATUS status = ND_NO_MEMORY;
    unsigned nth = 1;

    for (;; nth++) {
        bool unused;

        fake_alloc_fail(nth);
        status = cq_create(adapter, 8, 0, 0, &cq);
        unused = fake_alloc_pending();
        fake_alloc_clear();
        if (unused)
            break;
        ok_status(status, ND_NO_MEMORY);
        ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
    }
    ok_uint(nth, >, 2);
    ok_status(status, ND_SUCCESS);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(create__after_removal)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq;

    fake_device_remove("fake_ib");
    rig_run();
    ok_status(cq_create(adapter, 8, 0, 0, &cq), ND_DEVICE_REMOVED);
    rig_close(adapter);
}

/* A queue of depth 2 under queue pairs of depth 64 must hold all their flushes. */
TEST(attach__device_queue_grows)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 2);
    struct qp *qps[8];
    ND2_RESULT results[64];
    unsigned total = 0;

    for (int i = 0; i < 8; i++)
        qps[i] = rig_qp(adapter, cq, cq, 64);
    ok_uint((unsigned)qp_verbs(qps[0])->recv_cq->cqe, >=, 8 * 128);
    for (int i = 0; i < 8; i++) {
        for (uintptr_t n = 0; n < 64; n++)
            ok_status(rig_recv(qps[i], n), ND_SUCCESS);
        rig_drop(qps[i]);
    }
    for (uint32_t got; (got = cq_get_results(cq, results, 64)) != 0; total += got) {
        for (uint32_t i = 0; i < got; i++) {
            ok_status(results[i].Status, ND_CANCELED);
            ok_ptr(results[i].RequestContext, ==, rig_ctx((total + i) % 64));
        }
    }
    ok_uint(total, ==, 8 * 64);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(attach__growing_may_fail)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 2);
    unsigned before = fake_count(FAKE_ibv_resize_cq);
    struct qp *qp;

    fake_fail_always(FAKE_ibv_resize_cq, EINVAL);
    qp = rig_qp(adapter, cq, cq, 200);
    ok_uint(fake_count(FAKE_ibv_resize_cq), >, before);
    fake_fail_clear(FAKE_ibv_resize_cq);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    rig_drop(qp);
    ok_result(cq, Receive, 1, ND_CANCELED);
    cq_unref(cq);
    rig_close(adapter);
}

/* rxe's provider has no queue any more when its mmap failed: it must not be polled. */
TEST(attach__lost_mapping)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 2);
    struct notify n;
    struct qp *qp;
    unsigned polls;

    adapter->device->soft = true;
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    fake_fail(FAKE_ibv_resize_cq, 1, ENOMEM);
    qp = rig_qp(adapter, cq, cq, 200);
    ok_done(&n, ND_INTERNAL_ERROR);
    polls = fake_count(FAKE_ibv_poll_cq);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_no_result(cq);
    rig_drop(qp);
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_uint(fake_count(FAKE_ibv_poll_cq), ==, polls);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(Resize__table)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4);
    struct qp *qp = rig_qp(adapter, cq, cq, 8);
    ND2_RESULT results[8];

    ok_status(cq_resize(cq, 0), ND_INVALID_PARAMETER);
    ok_status(cq_resize(cq, adapter->limits.max_cq_depth + 1), ND_INVALID_PARAMETER);
    for (uintptr_t i = 0; i < 6; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    ok_status(cq_resize(cq, 100), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 6, IBV_WC_SUCCESS, 0);
    /* Results on the device count. */
    ok_status(cq_resize(cq, 5), ND_BUFFER_OVERFLOW);
    ok_status(cq_resize(cq, 6), ND_SUCCESS);
    ok_uint(cq_get_results(cq, results, 1), ==, 1);
    ok_status(cq_resize(cq, 5), ND_SUCCESS);
    ok_status(cq_resize(cq, 4), ND_BUFFER_OVERFLOW);
    ok_uint(cq_get_results(cq, results + 1, 7), ==, 5);
    for (uintptr_t i = 0; i < 6; i++)
        ok_ptr(results[i].RequestContext, ==, rig_ctx(i));
    ok_status(cq_resize(cq, 1), ND_SUCCESS);
    ok_status(cq_resize(cq, adapter->limits.max_cq_depth), ND_SUCCESS);
    ok_int(qp_verbs(qp)->recv_cq->cqe, >=, (int)adapter->limits.max_cq_depth);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}

/* Without ibv_resize_cq the device's size is the limit. */
TEST(Resize__device_that_cannot)
{
    struct adapter *adapter = rig_open(RIG_IW);
    struct cq *cq = rig_cq(adapter, 4);
    unsigned before = fake_count(FAKE_ibv_resize_cq);

    ok_status(cq_resize(cq, 200), ND_SUCCESS);
    ok_status(cq_resize(cq, 264), ND_SUCCESS);
    ok_status(cq_resize(cq, 265), ND_NOT_SUPPORTED);
    ok_status(cq_resize(cq, 3), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_resize_cq), ==, before);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(Resize__failures)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4);

    fake_fail(FAKE_ibv_resize_cq, 1, EINVAL);
    ok_status(cq_resize(cq, 1000), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_fail(1);
    ok_status(cq_resize(cq, 3000), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_clear();
    /* Within what the device has, its refusal to grow does not matter. */
    fake_fail(FAKE_ibv_resize_cq, 1, EINVAL);
    ok_status(cq_resize(cq, 250), ND_SUCCESS);
    ok_status(cq_resize(cq, 1000), ND_SUCCESS);
    cq_unref(cq);
    rig_close(adapter);
}

/* Events in flight while the last reference goes (D57). */
TEST(release__with_an_event_queued)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4), *other = rig_cq(adapter, 4);
    struct qp *qp = rig_qp(adapter, cq, cq, 4), *second = rig_qp(adapter, other, other, 4);
    struct notify n, m;

    rig_recv(qp, 1);
    rig_recv(second, 2);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_notify(other, ND_CQ_NOTIFY_ANY, &m);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    fake_qp_complete(qp_verbs(second), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    rig_drop(qp);
    cq_unref(cq);
    ok(!rig_pending(&n));
    rig_run();
    ok_done(&m, ND_SUCCESS);
    ok_result(other, Receive, 2, ND_SUCCESS);
    rig_drop(second);
    cq_unref(other);
    rig_close(adapter);
}

static struct cq *hooked;

static void drop_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    ok_ptr(cq_ref_live(hooked), ==, NULL);
}

TEST(ref_live__refuses_what_is_going)
{
    struct adapter *adapter = rig_open(RIG_IB);

    hooked = rig_cq(adapter, 4);
    ok_ptr(cq_ref_live(hooked), ==, hooked);
    cq_unref(hooked);
    fake_on(FAKE_ibv_destroy_cq, drop_hook, NULL);
    cq_unref(hooked);
    rig_close(adapter);
}

/* The tunable poll against events that the kernel lost. */
TEST(safety_poll__finds_what_no_event_told)
{
    struct adapter *adapter;
    struct cq *cq;
    struct qp *qp;
    struct notify n;

    setenv("NDVERBS_CQ_SAFETY_POLL_MS", "20", 1);
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 4);
    qp = rig_qp(adapter, cq, cq, 4);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    rig_advance(50);
    ok_pending(&n);
    /* The arm is lost along with the event. */
    fake_cq_event(qp_verbs(qp)->recv_cq);
    struct ibv_cq *event_cq;
    void *context;
    ok_int(ibv_get_cq_event(adapter->device->channel, &event_cq, &context), ==, 0);
    ibv_ack_cq_events(event_cq, 1);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    rig_run();
    ok_pending(&n);
    rig_advance(20);
    ok_done(&n, ND_SUCCESS);
    rig_advance(20);
    ok_uint(rig_timers(), ==, 0);
    rig_drop(qp);
    cq_unref(cq);
    rig_close(adapter);
}
