/* SPDX-License-Identifier: MIT */
/* How connections end: the order of Disconnect, DisconnectAndFlush, the same composed of public calls, releases. */
#include "rig.h"

#include "session.h"

static struct session s;

SETUP
{
    rig_setup();
    fake_wire(true);
    session_connect(&s);
}

TEARDOWN
{
    rig_teardown();
}

static unsigned work_of(IWVConnectQueuePair *qp, unsigned n)
{
    static char memory[16];
    WV_SGE sge = { .pAddress = memory, .Length = sizeof(memory), .Lkey = 0x4321 };

    for (unsigned i = 0; i < n; i++)
        ok_status(CALL(qp, PostReceive, 70 + i, &sge, 1), WV_SUCCESS);
    return n;
}

static unsigned flushed(void)
{
    WV_COMPLETION completion;
    unsigned n = 0;

    while (CALL(s.cq, Poll, &completion, 1)) {
        ok_int(completion.Status, ==, WvWcFlushed);
        n++;
    }
    return n;
}

static WV_QP_STATE state_of(IWVConnectQueuePair *qp)
{
    WV_QP_ATTRIBUTES attributes;

    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    return attributes.QpState;
}

static INdvConnectEndpoint *extension_of(IWVConnectEndpoint *endpoint)
{
    INdvConnectEndpoint *extension = NULL;

    ok_status(CALL(endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    return extension;
}

static void expect_pending(OVERLAPPED *ov)
{
    ok_status(CALL(s.active, GetOverlappedResult, ov, NULL, FALSE), WV_PENDING);
}

static void wait_for(OVERLAPPED *ov, HRESULT hr)
{
    ok_status(CALL(s.active, GetOverlappedResult, ov, NULL, TRUE), hr);
}

/* The passive side hears of a disconnect whose message was lost: so that its own end need not wait. */
static void passive_hears(void)
{
    fake_cm_simple((struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_accept, -1)->object,
                   RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_status(CALL(s.passive, NotifyDisconnect, NULL), WV_SUCCESS);
}

/* DREQ; the queue pair works on until the answer; NotifyDisconnect; flush; then Disconnect. */
TEST(Disconnect__order)
{
    OVERLAPPED notify = rig_overlapped(), disconnect = rig_overlapped(), peer = rig_overlapped();

    work_of(s.qp[0], 3);
    work_of(s.qp[1], 2);
    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    fake_auto_flush(false);
    ok_status(CALL(s.active, Disconnect, &disconnect), WV_IO_PENDING);
    wait_for(&peer, WV_SUCCESS);
    expect_pending(&notify);
    expect_pending(&disconnect);
    ok_int(state_of(s.qp[0]), ==, WvQpStateRts);
    ok_int(state_of(s.qp[1]), ==, WvQpStateRts);
    work_of(s.qp[0], 1); /* as verbs */
    ok_uint(flushed(), ==, 0);
    ok_uint(fake_qp_posted(s.verbs[0], FAKE_RECV), ==, 4);

    /* The peer's answer comes with its own Disconnect only. */
    ok_status(CALL(s.passive, Disconnect, &peer), WV_IO_PENDING);
    wait_for(&notify, WV_SUCCESS);
    ok_eventually(fake_qp_state(s.verbs[0]) == IBV_QPS_ERR);
    expect_pending(&disconnect);
    fake_qp_flush(s.verbs[0]);
    wait_for(&disconnect, WV_SUCCESS);
    fake_qp_flush(s.verbs[1]);
    wait_for(&peer, WV_SUCCESS);
    ok_uint(flushed(), ==, 6);
    ok_status(CALL(s.active, Disconnect, &disconnect), STATUS_INVALID_DEVICE_STATE);
    ok_status(CALL(s.active, Disconnect, NULL), STATUS_INVALID_DEVICE_STATE);
    ok_status(rig_finish(CALL(s.active, NotifyDisconnect, &notify), &notify), WV_SUCCESS);
    fake_auto_flush(true);
    session_drop(&s);
}

TEST(Disconnect__no_answer_is_a_time_out_of_disconnect_alone)
{
    OVERLAPPED notify = rig_overlapped(), disconnect = rig_overlapped();
    struct rdma_cm_id *id = (struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_establish, -1)->object;

    fake_wire_drop(FAKE_MSG_DREQ);
    work_of(s.qp[0], 2);
    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    ok_status(CALL(s.active, Disconnect, &disconnect), WV_IO_PENDING);
    expect_pending(&disconnect);
    fake_cm_simple(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    wait_for(&disconnect, WV_TIMEOUT);
    wait_for(&notify, WV_SUCCESS);
    ok_uint(flushed(), ==, 2);
    passive_hears();
    session_drop(&s);
}

TEST(Disconnect__crossing)
{
    OVERLAPPED ov[4] = { rig_overlapped(), rig_overlapped(), rig_overlapped(), rig_overlapped() };

    fake_wire_hold(true);
    ok_status(CALL(s.active, NotifyDisconnect, &ov[0]), WV_IO_PENDING);
    ok_status(CALL(s.passive, NotifyDisconnect, &ov[1]), WV_IO_PENDING);
    ok_status(CALL(s.active, Disconnect, &ov[2]), WV_IO_PENDING);
    ok_status(CALL(s.passive, Disconnect, &ov[3]), WV_IO_PENDING);
    fake_wire_hold(false);
    for (int i = 0; i < 4; i++)
        wait_for(&ov[i], WV_SUCCESS);
    session_drop(&s);
}

/* A second Disconnect waits for the peer no longer. */
TEST(Disconnect__twice)
{
    OVERLAPPED first = rig_overlapped(), second = rig_overlapped();

    fake_wire_drop(FAKE_MSG_DREQ);
    work_of(s.qp[0], 2);
    ok_status(CALL(s.active, Disconnect, &first), WV_IO_PENDING);
    expect_pending(&first);
    ok_status(CALL(s.active, Disconnect, &second), WV_IO_PENDING);
    wait_for(&second, WV_SUCCESS);
    wait_for(&first, WV_SUCCESS);
    ok_uint(flushed(), ==, 2);
    passive_hears();
    session_drop(&s);
}

TEST(Disconnect__cancelled_goes_on)
{
    OVERLAPPED notify = rig_overlapped(), disconnect = rig_overlapped(), peer = rig_overlapped();

    work_of(s.qp[0], 2);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    ok_status(CALL(s.active, Disconnect, &disconnect), WV_IO_PENDING);
    ok_status(CALL(s.active, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(s.active, GetOverlappedResult, &disconnect, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    wait_for(&peer, WV_SUCCESS);
    ok_status(CALL(s.passive, Disconnect, NULL), WV_SUCCESS);
    wait_for(&notify, WV_SUCCESS);
    ok_eventually(fake_qp_state(s.verbs[0]) == IBV_QPS_ERR);
    session_drop(&s);
    ok_uint(CALL(cq, Poll, NULL, 0), ==, 0);
}

/* The peer's DREQ is only told; release answers it and leaves the queue pair alone. */
TEST(Release__answers_and_does_not_flush)
{
    OVERLAPPED peer = rig_overlapped(), disconnect = rig_overlapped();

    work_of(s.qp[1], 2);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    ok_status(CALL(s.active, Disconnect, &disconnect), WV_IO_PENDING);
    wait_for(&peer, WV_SUCCESS);
    expect_pending(&disconnect);
    rig_release(s.passive);
    s.passive = NULL;
    wait_for(&disconnect, WV_SUCCESS);
    ok_int(state_of(s.qp[1]), ==, WvQpStateRts);
    ok_uint(flushed(), ==, 0);
    session_drop(&s);
}

/* Released while connected: one DREQ and no wait; pending requests are cancelled; the queue pair stays what it is. */
TEST(Release__while_connected)
{
    OVERLAPPED notify = rig_overlapped(), peer = rig_overlapped();

    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    rig_release(s.active);
    s.active = NULL;
    ok_status(CALL(s.passive, GetOverlappedResult, &notify, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(s.passive, GetOverlappedResult, &peer, NULL, TRUE), WV_SUCCESS);
    ok_int(state_of(s.qp[0]), ==, WvQpStateRts);
    session_drop(&s);
}

/* An endpoint keeps the queue pair it was given: released first it is still there for the connection. */
TEST(Release__queue_pair_first)
{
    OVERLAPPED peer = rig_overlapped();

    rig_release(s.qp[0]);
    s.qp[0] = NULL;
    ok_int(fake_qp_state(s.verbs[0]), ==, IBV_QPS_RTS);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    expect_pending(&peer);
    rig_release(s.active);
    s.active = NULL;
    ok_status(CALL(s.passive, GetOverlappedResult, &peer, NULL, TRUE), WV_SUCCESS);
    session_drop(&s);
}

/* ---- DisconnectAndFlush ---- */

TEST(DisconnectAndFlush__one_request_for_all_of_it)
{
    INdvConnectEndpoint *active = extension_of(s.active), *passive = extension_of(s.passive);
    OVERLAPPED ov = rig_overlapped(), notify = rig_overlapped(), peer = rig_overlapped();

    work_of(s.qp[0], 4);
    work_of(s.qp[1], 1);
    ok_status(CALL(active, DisconnectAndFlush, s.qp[1], &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    ok_status(CALL(s.passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    ok_status(CALL(active, DisconnectAndFlush, s.qp[0], &ov), WV_IO_PENDING);
    wait_for(&peer, WV_SUCCESS);
    expect_pending(&ov);
    ok_uint(flushed(), ==, 0);
    ok_status(CALL(passive, DisconnectAndFlush, NULL, NULL), WV_SUCCESS);
    ok_uint(flushed(), >=, 1);
    wait_for(&ov, WV_SUCCESS);
    ok_status(CALL(s.active, GetOverlappedResult, &notify, NULL, FALSE), WV_SUCCESS);
    flushed();
    ok_uint(fake_qp_posted(s.verbs[0], FAKE_RECV), ==, 0);
    ok_status(CALL(active, DisconnectAndFlush, s.qp[0], &ov), STATUS_INVALID_DEVICE_STATE);
    ok_uint(CALL(active, Release), ==, 1);
    ok_uint(CALL(passive, Release), ==, 1);
    session_drop(&s);
}

/* The variant of public calls alone: Disconnect's outcome by NotifyDisconnect on a private OVERLAPPED that the port does not
 * see, then the queue pair to ERROR with the user's OVERLAPPED. */
static HRESULT composed(IWVConnectEndpoint *endpoint, IWVConnectQueuePair *qp, OVERLAPPED *user)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    OVERLAPPED hidden = rig_overlapped(), other = rig_overlapped();
    WV_QP_ATTRIBUTES error = { .QpState = WvQpStateError };
    HRESULT hr;

    hidden.hEvent = (HANDLE)((ULONG_PTR)event | 1);
    other.hEvent = hidden.hEvent;
    ok_status(CALL(endpoint, NotifyDisconnect, &hidden), WV_IO_PENDING);
    ok_status(CALL(endpoint, Disconnect, &other), WV_IO_PENDING);
    ok_status(CALL(endpoint, GetOverlappedResult, &hidden, NULL, TRUE), WV_SUCCESS);
    hr = CALL(qp, Modify, &error, WV_QP_ATTR_STATE, user);
    ok_status(CALL(endpoint, GetOverlappedResult, &other, NULL, TRUE), WV_SUCCESS);
    ok(CloseHandle(event));
    return hr;
}

static DWORD WINAPI answer(void *argument)
{
    (void)argument;
    ok_status(CALL(s.passive, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(s.passive, Disconnect, NULL), WV_SUCCESS);
    return 0;
}

/* What either way leaves behind: results, the state, the packets of the port. */
static void end_by(bool extension)
{
    HANDLE port = CreateIoCompletionPort(CALL(provider, GetFileHandle), NULL, 3, 0), thread;
    INdvConnectEndpoint *active = extension_of(s.active);
    OVERLAPPED user = rig_overlapped(), *dequeued;
    WV_COMPLETION completion[8];
    ULONG_PTR key;
    DWORD bytes;

    work_of(s.qp[0], 5);
    thread = CreateThread(NULL, 0, answer, NULL, 0, NULL);
    if (extension)
        ok_status(CALL(active, DisconnectAndFlush, s.qp[0], &user), WV_IO_PENDING);
    else
        ok_status(rig_finish(composed(s.active, s.qp[0], &user), &user), WV_SUCCESS);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, INFINITE));
    ok_ptr(dequeued, ==, &user);
    ok_status((HRESULT)user.Internal, WV_SUCCESS);
    /* At that moment everything has come back. */
    ok_uint(CALL(s.cq, Poll, completion, 8), ==, 5);
    for (int i = 0; i < 5; i++)
        ok_int(completion[i].Status, ==, WvWcFlushed);
    ok_int(state_of(s.qp[0]), ==, WvQpStateError);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok(CloseHandle(port));
    ok_uint(CALL(active, Release), ==, 1);
    session_drop(&s);
}

TEST(DisconnectAndFlush__by_the_extension)
{
    end_by(true);
}

TEST(DisconnectAndFlush__composed_of_public_calls)
{
    end_by(false);
}

static DWORD WINAPI post_and_modify(void *argument)
{
    static char memory[16];
    WV_SGE sge = { .pAddress = memory, .Length = sizeof(memory) };
    WV_QP_ATTRIBUTES error = { .QpState = WvQpStateError };

    (void)argument;
    for (int i = 0; i < 200; i++) {
        CALL(s.qp[0], PostReceive, 1, &sge, 1);
        CALL(s.qp[0], Send, 2, &sge, 1, WV_SEND_SIGNALED, 0);
        if (i == 150)
            CALL(s.qp[0], Modify, &error, 0, NULL);
    }
    rig_release(s.qp[0]);
    return 0;
}

/* While another thread posts, modifies and releases the queue pair. */
TEST(DisconnectAndFlush__while_others_use_the_queue_pair)
{
    INdvConnectEndpoint *active = extension_of(s.active);
    OVERLAPPED user = rig_overlapped();
    HANDLE thread, other = CreateThread(NULL, 0, answer, NULL, 0, NULL);
    WV_COMPLETION completion[16];

    thread = CreateThread(NULL, 0, post_and_modify, NULL, 0, NULL);
    ok_status(CALL(active, DisconnectAndFlush, NULL, &user), WV_IO_PENDING);
    while (CALL(s.active, GetOverlappedResult, &user, NULL, FALSE) == WV_PENDING)
        CALL(s.cq, Poll, completion, 16);
    wait_for(&user, WV_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(WaitForSingleObject(other, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok(CloseHandle(other));
    s.qp[0] = NULL;
    ok_uint(CALL(active, Release), ==, 1);
    session_drop(&s);
}

/* ---- parked here and there ---- */

static bool over;

static DWORD WINAPI cancel_on(void *listener)
{
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        ok_status(CALL((IWVConnectEndpoint *)listener, CancelOverlappedRequests), WV_SUCCESS);
    return 0;
}

/* As soon as one listener has let go of an endpoint another one may have it. */
TEST(GetRequest__parked_again_while_it_is_cancelled)
{
    IWVConnectEndpoint *listener[2], *fresh = session_endpoint();
    OVERLAPPED ov[2] = { rig_overlapped(), rig_overlapped() };
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0);
    HANDLE threads[2];

    __atomic_store_n(&over, false, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        listener[i] = session_endpoint();
        ok_status(CALL(listener[i], BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
        ok_status(CALL(listener[i], Listen, 1), WV_SUCCESS);
        threads[i] = CreateThread(NULL, 0, cancel_on, listener[i], 0, NULL);
    }
    for (int i = 0; i < 300; i++) {
        HRESULT hr;

        do
            hr = CALL(listener[i & 1], GetRequest, fresh, &ov[i & 1]);
        while (hr == STATUS_CONNECTION_IN_USE);
        ok_status(hr, WV_IO_PENDING);
        if (i)
            ok_status(CALL(device, GetOverlappedResult, &ov[!(i & 1)], NULL, TRUE), WV_CANCELLED);
    }
    ok_status(CALL(device, GetOverlappedResult, &ov[1], NULL, TRUE), WV_CANCELLED);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        ok_int(WaitForSingleObject(threads[i], INFINITE), ==, WAIT_OBJECT_0);
        ok(CloseHandle(threads[i]));
        rig_release(listener[i]);
    }
    rig_release(fresh);
    session_end(&s);
}
