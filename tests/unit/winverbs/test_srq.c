/* SPDX-License-Identifier: MIT */
/* IWVSharedReceiveQueue. */
#include "rig.h"

#include <errno.h>

#include "session.h"

#define LIMIT_REACHED    ((HRESULT)0x101)
#define LAST_WQE_REACHED ((HRESULT)0x10B)

static struct session s;
static IWVSharedReceiveQueue *srq;
static char memory[64];

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

static IWVSharedReceiveQueue *make(IWVProtectionDomain *domain, SIZE_T depth, SIZE_T limit)
{
    IWVSharedReceiveQueue *made = NULL;

    ok_status(CALL(domain, CreateSharedReceiveQueue, depth, 1, limit, &made), WV_SUCCESS);
    return made;
}

static void post(UINT64 first, UINT64 n)
{
    WV_SGE sge = { .pAddress = memory, .Length = sizeof(memory), .Lkey = 0x4321 };

    for (UINT64 i = 0; i < n; i++)
        ok_status(CALL(srq, PostReceive, first + i, &sge, 1), WV_SUCCESS);
}

static IWVConnectQueuePair *shared_qp(void)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    IWVConnectQueuePair *qp = NULL;

    shape.pSharedReceiveQueue = srq;
    shape.ReceiveDepth = shape.ReceiveSge = (SIZE_T)-1; /* nobody looks */
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    return qp;
}

TEST(CreateSharedReceiveQueue__arguments)
{
    WV_DEVICE_ATTRIBUTES attributes;

    ok_status(CALL(device, Query, &attributes), WV_SUCCESS);
    ok_status(CALL(pd, CreateSharedReceiveQueue, 4, 1, 0, NULL), WV_INVALID_PARAMETER);
    srq = (IWVSharedReceiveQueue *)&srq;
    ok_status(CALL(pd, CreateSharedReceiveQueue, 0, 1, 0, &srq), WV_INVALID_PARAMETER);
    ok_ptr(srq, ==, NULL);
    ok_status(CALL(pd, CreateSharedReceiveQueue, 4, 1, 5, &srq), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, CreateSharedReceiveQueue, attributes.MaxSrqWr + 1, 1, 0, &srq), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(pd, CreateSharedReceiveQueue, 4, attributes.MaxSrqSge + 1, 0, &srq), WV_INSUFFICIENT_RESOURCES);
    fake_fail_always(FAKE_ibv_create_srq, ENOMEM);
    ok_status(CALL(pd, CreateSharedReceiveQueue, 4, 1, 0, &srq), WV_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_srq);
    for (unsigned n = 1;; n++) {
        HRESULT hr;

        fake_alloc_fail(n);
        hr = CALL(pd, CreateSharedReceiveQueue, 4, 1, 0, &srq);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(hr, WV_SUCCESS);
            break;
        }
        ok(hr == WV_NO_MEMORY || hr == WV_INSUFFICIENT_RESOURCES);
        ok_ptr(srq, ==, NULL);
    }
    rig_release(srq);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
}

TEST(CreateSharedReceiveQueue__device_without)
{
    IWVProtectionDomain *domain;
    IWVDevice *poor;

    fake_device_add("fake_poor", IBV_TRANSPORT_IB, 1);
    fake_device_attr("fake_poor")->max_srq = 0;
    fake_device_attr("fake_poor")->max_srq_wr = 0;
    fake_device_attr("fake_poor")->max_srq_sge = 0;
    poor = rig_open(ibv_get_device_guid(fake_device("fake_poor")));
    ok_status(CALL(poor, AllocateProtectionDomain, &domain), WV_SUCCESS);
    ok_status(CALL(domain, CreateSharedReceiveQueue, 4, 1, 0, &srq), WV_NOT_SUPPORTED);
    rig_release(domain);
    rig_release(poor);
}

/* Both values of Modify count; the depth is not touched where it stays, as most devices cannot change it. */
TEST(IWVSharedReceiveQueue__query_and_modify)
{
    SIZE_T depth, entries, limit;

    srq = make(pd, 8, 2);
    post(0, 8);
    ok_status(CALL(srq, Query, &depth, &entries, &limit), WV_SUCCESS);
    ok_uint(depth, ==, 8);
    ok_uint(entries, >=, 1);
    ok_status(CALL(srq, Query, NULL, &entries, &limit), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Query, &depth, NULL, &limit), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Query, &depth, &entries, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, 8, 5), WV_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.mask, ==, IBV_SRQ_LIMIT);
    ok_uint(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.attr.srq_limit, ==, 5);
    ok_status(CALL(srq, Query, &depth, &entries, &limit), WV_SUCCESS);
    ok_uint(limit, ==, 5);
    ok_status(CALL(srq, Modify, 0, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, 8, 9), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, 1 << 20, 1), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(srq, Modify, 7, 1), WV_BUFFER_OVERFLOW); /* eight are posted */
    ok_status(CALL(srq, Modify, 16, 1), WV_SUCCESS);
    post(8, 8);
    rig_release(srq);
}

TEST(IWVSharedReceiveQueue_PostReceive__statuses)
{
    WV_SGE sge[64] = { { .pAddress = memory, .Length = 8, .Lkey = 1 } };

    srq = make(pd, 2, 0);
    ok_status(CALL(srq, PostReceive, 1, NULL, 1), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, PostReceive, 1, sge, 64), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(srq, PostReceive, 1, sge, (SIZE_T)-1 / 2 + 1), WV_INSUFFICIENT_RESOURCES);
    fake_fail(FAKE_ibv_post_srq_recv, 1, EINVAL);
    ok_status(CALL(srq, PostReceive, 1, sge, 1), WV_INVALID_PARAMETER);
    post(0, 2);
    ok_status(CALL(srq, PostReceive, 1, sge, 1), WV_INSUFFICIENT_RESOURCES);
    rig_release(srq);
}

/* The limit is an event of the device: told once to whoever waits, not kept, armed anew by Modify. */
TEST(IWVSharedReceiveQueue_Notify__limit)
{
    OVERLAPPED one = rig_overlapped(), two = rig_overlapped();
    IWVConnectQueuePair *qp;

    srq = make(pd, 8, 4);
    qp = shared_qp();
    rig_to(qp, WvQpStateRts);
    post(0, 8);
    ok_status(CALL(srq, Modify, 8, 4), WV_SUCCESS);
    ok_status(CALL(srq, Notify, &one), WV_IO_PENDING);
    ok_status(CALL(srq, Notify, &two), WV_IO_PENDING);
    ok_io_pending(&one);
    fake_qp_complete(rig_newest_qp(), FAKE_RECV, 4, IBV_WC_SUCCESS, 8);
    ok_io_pending(&one); /* four are not fewer than four */
    fake_qp_complete(rig_newest_qp(), FAKE_RECV, 1, IBV_WC_SUCCESS, 8);
    ok_status(CALL(srq, GetOverlappedResult, &one, NULL, TRUE), LIMIT_REACHED);
    ok_status(CALL(srq, GetOverlappedResult, &two, NULL, TRUE), LIMIT_REACHED);
    ok_status(CALL(srq, Notify, &one), WV_IO_PENDING);
    ok_io_pending(&one);
    ok_status(CALL(srq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(srq, GetOverlappedResult, &one, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(srq, GetOverlappedResult, NULL, NULL, FALSE), WV_INVALID_PARAMETER);
    one.hEvent = (HANDLE)0x7777770;
    ok_status(CALL(srq, Notify, &one), WV_INVALID_HANDLE);
    one.hEvent = NULL;
    ok_status(CALL(srq, Notify, &one), WV_IO_PENDING);
    rig_release(srq); /* its queue pair keeps it */
    ok_io_pending(&one);
    rig_release(qp);
    ok_status((HRESULT)one.Internal, WV_CANCELLED);
}

static DWORD WINAPI blocking_notify(void *argument)
{
    (void)argument;
    return (DWORD)CALL(srq, Notify, NULL);
}

/* Waiting in the call, every success is WV_SUCCESS. */
TEST(IWVSharedReceiveQueue_Notify__waits)
{
    HANDLE thread;
    DWORD hr;

    srq = make(pd, 8, 4);
    thread = CreateThread(NULL, 0, blocking_notify, NULL, 0, NULL);
    /* An event that comes before the thread waits is lost. */
    while (WaitForSingleObject(thread, 5) == WAIT_TIMEOUT)
        ok_status(CALL(srq, Modify, 8, 4), WV_SUCCESS);
    ok(GetExitCodeThread(thread, &hr));
    ok_status((HRESULT)hr, WV_SUCCESS);
    ok(CloseHandle(thread));
    rig_release(srq);
}

/* A queue pair that has taken its last receive, a queue that broke, a device that left. */
TEST(IWVSharedReceiveQueue_Notify__other_events)
{
    OVERLAPPED ov = rig_overlapped();
    IWVConnectQueuePair *qp;

    srq = make(pd, 8, 0);
    qp = shared_qp();
    ok_status(CALL(srq, Notify, &ov), WV_IO_PENDING);
    fake_async_qp(rig_newest_qp(), IBV_EVENT_QP_LAST_WQE_REACHED);
    ok_status(CALL(srq, GetOverlappedResult, &ov, NULL, TRUE), LAST_WQE_REACHED);
    ok_status(CALL(srq, Notify, &ov), WV_IO_PENDING);
    fake_async_srq(fake_object(FAKE_OBJ_SRQ, -1), IBV_EVENT_SRQ_ERR);
    ok_status(CALL(srq, GetOverlappedResult, &ov, NULL, TRUE), STATUS_UNEXPECTED_IO_ERROR);
    rig_release(qp);
    rig_release(srq);
    srq = make(pd, 8, 0);
    ok_status(CALL(srq, Notify, &ov), WV_IO_PENDING);
    fake_device_remove("fake_ib");
    ok_status(CALL(srq, GetOverlappedResult, &ov, NULL, TRUE), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, Notify, &ov), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, Modify, 8, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, PostReceive, 1, NULL, 0), WV_DEVICE_REMOVED);
    rig_release(srq);
}

/* Its queue pairs have no receives of their own, keep it, and give its receives with their own context. */
TEST(IWVSharedReceiveQueue__queue_pairs)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    WV_SGE sge = { .pAddress = memory, .Length = 8, .Lkey = 1 };
    IWVProtectionDomain *other;
    IWVConnectQueuePair *qp = NULL;
    WV_QP_ATTRIBUTES attributes;
    WV_COMPLETION completion;

    srq = make(pd, 8, 0);
    ok_status(CALL(device, AllocateProtectionDomain, &other), WV_SUCCESS);
    shape.pSharedReceiveQueue = srq;
    ok_status(CALL(other, CreateConnectQueuePair, &shape, &qp), WV_INVALID_PARAMETER);
    rig_release(other);
    qp = shared_qp();
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_ptr(attributes.pSharedReceiveQueue, ==, srq);
    ok_uint(attributes.ReceiveDepth, ==, 0);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_INVALID_PARAMETER);
    post(30, 3);
    rig_release(srq);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 1);
    ok_uint(fake_qp_complete(rig_newest_qp(), FAKE_RECV, 2, IBV_WC_SUCCESS, 8), ==, 2);
    for (UINT64 i = 0; i < 2; i++) {
        ok_uint(CALL(cq, Poll, &completion, 1), ==, 1);
        ok_uint(completion.WrId, ==, 30 + i);
        ok_int(completion.Opcode, ==, WvReceive);
        ok_ptr(completion.QpContext, ==, (void *)0x5150);
    }
    rig_release(qp);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 0); /* what nobody took gives no result */
}

/* A connection whose passive side receives from one. */
TEST(IWVSharedReceiveQueue__connected)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    WV_SGE out = { .pAddress = memory, .Length = 4 };
    WV_MEMORY_KEYS keys;
    WV_COMPLETION completion;
    unsigned received = 0;

    fake_wire(true);
    session_listen(&s, "10.1.1.1");
    srq = make(s.pd, 8, 0);
    rig_release(s.qp[1]);
    shape.pSendCq = shape.pReceiveCq = s.cq;
    shape.pSharedReceiveQueue = srq;
    ok_status(CALL(s.pd, CreateConnectQueuePair, &shape, &s.qp[1]), WV_SUCCESS);
    session_request(&s);
    session_accept(&s);
    session_complete(&s);
    ok_status(CALL(s.pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    out.Lkey = keys.Lkey;
    for (UINT64 i = 0; i < 3; i++)
        ok_status(CALL(srq, PostReceive, i, &(WV_SGE){ .pAddress = memory + 8, .Length = 8, .Lkey = keys.Lkey }, 1),
                  WV_SUCCESS);
    for (int i = 0; i < 3; i++)
        ok_status(CALL(s.qp[0], Send, 9, &out, 1, 0, 0), WV_SUCCESS);
    while (CALL(s.cq, Poll, &completion, 1)) {
        ok_int(completion.Status, ==, WvWcSuccess);
        ok_uint(completion.WrId, ==, received++);
    }
    ok_uint(received, ==, 3);
    rig_release(srq);
    session_end(&s);
}

/* ---- a queue pair that the application resets ---- */

/* What the queue pair has taken comes back in ERROR, and is lost by a device that is reset at once. */
static void give_back_in_error(struct fake_call *call, void *arg)
{
    if (call->arg.modify_qp.attr.qp_state == IBV_QPS_ERR)
        fake_qp_complete(arg, FAKE_RECV, 1, IBV_WC_WR_FLUSH_ERR, 0);
}

TEST(Modify__reset_gives_shared_receives_back)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset };
    WV_COMPLETION completion[8];
    IWVConnectQueuePair *qp;
    WV_SGE sge = { .pAddress = memory, .Length = sizeof(memory), .Lkey = 0x4321 };

    fake_device_quirks("fake_ib", FAKE_QUIRK_RESET_CLEANS | FAKE_QUIRK_LAST_WQE);
    srq = make(pd, 2, 0);
    qp = shared_qp();
    for (UINT64 round = 0; round < 3; round++) {
        struct ibv_qp *verbs = rig_newest_qp();

        rig_to(qp, WvQpStateRts);
        post(10 * round, 2);
        ok_uint(fake_qp_complete(verbs, FAKE_RECV, 1, IBV_WC_SUCCESS, 5), ==, 1);
        ok_status(CALL(qp, Send, 99, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
        fake_after(FAKE_ibv_modify_qp, give_back_in_error, verbs);
        ok_status(CALL(qp, Modify, &reset, 0, NULL), WV_SUCCESS);
        ok_uint(CALL(cq, Poll, completion, 8), ==, 2);
        for (UINT64 i = 0; i < 2; i++) {
            ok_int(completion[i].Status, ==, i ? WvWcFlushed : WvWcSuccess);
            ok_int(completion[i].Opcode, ==, WvReceive);
            ok_uint(completion[i].WrId, ==, 10 * round + i);
        }
        ok_int(fake_qp_state(verbs), ==, IBV_QPS_RESET);
    }
    rig_release(qp);
    ok_uint(CALL(cq, Poll, completion, 8), ==, 0);
    rig_release(srq);
}

static ULONGLONG took(ULONGLONG since)
{
    return GetTickCount64() - since;
}

/* The device has a moment for what it has taken unless it says that there is nothing: in each life of the queue pair, and at
 * its end. */
TEST(Modify__reset_waits_for_shared_receives)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset };
    IWVConnectQueuePair *qp;
    ULONGLONG since;

    srq = make(pd, 2, 0);
    qp = shared_qp();
    rig_to(qp, WvQpStateRts);
    fake_device_quirks("fake_ib", FAKE_QUIRK_LAST_WQE);
    ok_status(CALL(qp, Modify, &reset, 0, NULL), WV_SUCCESS);
    fake_device_quirks("fake_ib", 0);
    rig_to(qp, WvQpStateRts);
    since = GetTickCount64();
    ok_status(CALL(qp, Modify, &reset, 0, NULL), WV_SUCCESS);
    ok_uint(took(since), >=, 15);
    rig_to(qp, WvQpStateRtr);
    since = GetTickCount64();
    rig_release(qp);
    ok_uint(took(since), >=, 15);
    rig_release(srq);
}
