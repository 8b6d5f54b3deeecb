/* SPDX-License-Identifier: MIT */

/* IND2SharedReceiveQueue as programs see it. */

#include <string.h>

#include "nd2/nd2.h"
#include "srq_rig.h"

#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))

static struct adapter *adapter;
static struct cq *cq;
static IND2SharedReceiveQueue *srq;

SETUP
{
    struct srq_config config = { .depth = 8, .max_sge = 1, .threshold = 2, .policy = &srq_policy_nd };

    rig_start();
    config.adapter = adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 16);
    ok_status(nd2_srq_create(&config, rig_file, &srq), ND_SUCCESS);
}

TEARDOWN
{
    if (srq)
        ok_uint(CALL(srq, Release), ==, 0);
    cq_unref(cq);
    rig_close(adapter);
    rig_end();
}

TEST(IND2SharedReceiveQueue__interfaces)
{
    void *out;

    ok_status(CALL(srq, QueryInterface, &IID_IND2SharedReceiveQueue, &out), S_OK);
    ok_ptr(out, ==, srq);
    ok_status(CALL(srq, QueryInterface, &IID_IND2Overlapped, &out), S_OK);
    ok_ptr(out, ==, srq);
    ok_status(CALL(srq, QueryInterface, &IID_IND2CompletionQueue, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_uint(CALL(srq, AddRef), ==, 4);
    for (ULONG n = 3; n > 0; n--)
        ok_uint(CALL(srq, Release), ==, n);
}

/* 0 leaves a value as it is. */
TEST(IND2SharedReceiveQueue_Modify__zero_is_unchanged)
{
    struct srq *core = unsafe_impl_from_IND2SharedReceiveQueue((IUnknown *)srq)->srq;
    struct srq_attributes is;

    ok_status(CALL(srq, Modify, 0, 0), ND_SUCCESS);
    ok_status(CALL(srq, Modify, 6, 0), ND_SUCCESS);
    srq_query(core, &is);
    ok_uint(is.depth, ==, 6);
    ok_uint(is.threshold, ==, 2);
    ok_status(CALL(srq, Modify, 0, 3), ND_SUCCESS);
    ok_status(CALL(srq, Modify, 8193, 5), ND_INVALID_PARAMETER);
    for (uintptr_t i = 0; i < 6; i++)
        ok_status(CALL(srq, Receive, rig_ctx(i), NULL, 0), ND_SUCCESS);
    ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    ok_status(CALL(srq, Modify, 5, 6), ND_BUFFER_OVERFLOW);
    srq_query(core, &is);
    ok_uint(is.depth, ==, 6);
    ok_uint(is.threshold, ==, 3);
}

TEST(IND2SharedReceiveQueue__notify_cancel_release)
{
    OVERLAPPED ov[2];

    memset(ov, 0, sizeof(ov));
    for (uintptr_t i = 0; i < 4; i++)
        ok_status(CALL(srq, Receive, rig_ctx(i), NULL, 0), ND_SUCCESS);
    ok_status(CALL(srq, Notify, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(srq, GetOverlappedResult, NULL, FALSE), ND_INVALID_PARAMETER);
    ok_status(CALL(srq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(srq, Notify, &ov[0]), ND_PENDING);
    ok_status(CALL(srq, GetOverlappedResult, &ov[0], FALSE), ND_PENDING);
    ok_status(CALL(srq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(srq, GetOverlappedResult, &ov[0], TRUE), ND_CANCELED);
    ok_status(CALL(srq, Notify, &ov[1]), ND_PENDING);
    ok_uint(CALL(srq, Release), ==, 0);
    srq = NULL;
    ok_status((HRESULT)ov[1].Internal, ND_CANCELED);
}

/* Released while a queue pair uses it: the count is 0, Notify is over, receives go on. */
TEST(IND2SharedReceiveQueue_Release__before_its_queue_pair)
{
    struct qp *qp = rig_shared_qp(adapter, unsafe_impl_from_IND2SharedReceiveQueue((IUnknown *)srq)->srq, cq, 3);
    OVERLAPPED ov = { 0 };

    for (uintptr_t i = 0; i < 4; i++)
        ok_status(CALL(srq, Receive, rig_ctx(i), NULL, 0), ND_SUCCESS);
    ok_status(CALL(srq, Notify, &ov), ND_PENDING);
    ok_uint(CALL(srq, Release), ==, 0);
    srq = NULL;
    ok_status((HRESULT)ov.Internal, ND_CANCELED);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 1);
    rig_fill(qp, 2);
    ok_shared(cq, 3, 0, ND_SUCCESS);
    ok_shared(cq, 3, 1, ND_SUCCESS);
    rig_drop(qp);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
    ok_no_result(cq);
}

TEST(IND2SharedReceiveQueue__affinity)
{
    KAFFINITY affinity = 0;
    USHORT group = 9;

    ok_status(CALL(srq, GetNotifyAffinity, &group, &affinity), ND_SUCCESS);
    ok_uint(group, ==, 0);
    ok_uint(affinity, !=, 0);
    ok_status(CALL(srq, GetNotifyAffinity, NULL, &affinity), ND_INVALID_PARAMETER);
    ok_status(CALL(srq, GetNotifyAffinity, &group, NULL), ND_INVALID_PARAMETER);
    fake_fail(FAKE_sched_getaffinity, 1, EINVAL); /* more processors than fit */
    ok_status(CALL(srq, GetNotifyAffinity, &group, &affinity), ND_NOT_SUPPORTED);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(CALL(srq, GetNotifyAffinity, &group, &affinity), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, Modify, 4, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_DEVICE_REMOVED);
}
