/* SPDX-License-Identifier: MIT */
/* How WinVerbs connections end: the order of Disconnect, DisconnectAndFlush and the same composed of public calls, messages that
 * are lost or cross, peers that are stopped or killed. winverbs.md 8.4. */
#include "wvside.h"

#include <stdlib.h>

static INdvConnectEndpoint *extension_of(IWVConnectEndpoint *endpoint)
{
    INdvConnectEndpoint *extension = NULL;

    ok_status(CALL(endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    return extension;
}

static void receives(struct wvlink *link, UINT64 n)
{
    for (UINT64 i = 0; i < n; i++)
        wv_receive(link, i, 0, 64);
}

static void ok_flushed(struct wvlink *link, UINT64 n)
{
    for (UINT64 i = 0; i < n; i++)
        ok_completion(link->cq, WvReceive, WvWcFlushed, i);
    wv_none(link->cq);
}

/* DREQ; both queue pairs work on until the peer disconnects too; then NotifyDisconnect, the flush, and Disconnect. */
ALONE(order)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    OVERLAPPED notify[2], peer;

    if (runner_iwarp())
        harness_skip("iWARP: the kernel ends the peer's queue pair, before anybody is told");
    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    for (int i = 0; i < 2; i++)
        overlapped_rubbish(&notify[i], NULL);
    overlapped_rubbish(&peer, NULL);
    receives(a, 3);
    receives(b, 2);
    ok_status(CALL(a->endpoint, NotifyDisconnect, &notify[0]), WV_IO_PENDING);
    ok_status(CALL(b->endpoint, NotifyDisconnect, &notify[1]), WV_IO_PENDING);
    ok_status(CALL(a->endpoint, Disconnect, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(b->endpoint, &notify[1], WV_IO_PENDING), WV_SUCCESS);
    ok_io_pending(a->endpoint, &notify[0]);
    ok_io_pending(a->endpoint, &a->ov);
    /* Data still crosses, both ways. */
    wv_send(b, 50, 0, 8, 0);
    ok_completion(b->cq, WvSend, WvWcSuccess, 50);
    ok_completion(a->cq, WvReceive, WvWcSuccess, 0);
    wv_send(a, 51, 0, 8, 0);
    ok_completion(a->cq, WvSend, WvWcSuccess, 51);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 0);
    ok_status(WV_FINISH(b->endpoint, &b->ov, CALL(b->endpoint, Disconnect, &b->ov)), WV_SUCCESS);
    ok_int(wv_state(b->qp), ==, WvQpStateError);
    ok_completion(b->cq, WvReceive, WvWcFlushed, 1);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_internal(&notify[0], WV_SUCCESS); /* was told before */
    ok_int(wv_state(a->qp), ==, WvQpStateError);
    ok_completion(a->cq, WvReceive, WvWcFlushed, 1);
    ok_completion(a->cq, WvReceive, WvWcFlushed, 2);
    wv_none(a->cq);
    /* Once more: over is over. */
    ok_status(CALL(a->endpoint, Disconnect, &a->ov), STATUS_INVALID_DEVICE_STATE);
    ok_status(CALL(a->endpoint, Disconnect, NULL), STATUS_INVALID_DEVICE_STATE);
    ok_status(WV_FINISH(a->endpoint, &a->ov, CALL(a->endpoint, NotifyDisconnect, &a->ov)), WV_SUCCESS);
    wv_pair_drop(&pair);
}

/* Both at once: each takes the other's request for its answer. */
ALONE(crossing)
{
    struct wvpair pair;
    OVERLAPPED notify[2];

    for (int round = 0; round < 4; round++) {
        wv_pair(&pair, NULL);
        for (int i = 0; i < 2; i++) {
            overlapped_rubbish(&notify[i], NULL);
            receives(&pair.link[i], 2);
            ok_status(CALL(pair.link[i].endpoint, NotifyDisconnect, &notify[i]), WV_IO_PENDING);
        }
        for (int i = 0; i < 2; i++)
            ok_status(CALL(pair.link[i].endpoint, Disconnect, &pair.link[i].ov), WV_IO_PENDING);
        for (int i = 0; i < 2; i++) {
            ok_status(WV_FINISH(pair.link[i].endpoint, &pair.link[i].ov, WV_IO_PENDING), WV_SUCCESS);
            ok_internal(&notify[i], WV_SUCCESS);
            ok_flushed(&pair.link[i], 2);
        }
        wv_pair_drop(&pair);
    }
}

/* Released instead of disconnected: the peer is told (or answered), nobody waits, and the queue pair stays as it is. */
ALONE(released)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    OVERLAPPED notify;

    if (runner_iwarp())
        harness_skip("iWARP: the kernel ends the queue pair");
    for (int answer = 0; answer < 2; answer++) {
        wv_pair(&pair, NULL);
        a = &pair.link[0], b = &pair.link[1];
        overlapped_rubbish(&notify, NULL);
        receives(b, 2);
        ok_status(CALL(b->endpoint, NotifyDisconnect, &notify), WV_IO_PENDING);
        if (answer) {
            /* `b` is asked, and goes. */
            ok_status(CALL(a->endpoint, Disconnect, &a->ov), WV_IO_PENDING);
            ok_status(WV_FINISH(b->endpoint, &notify, WV_IO_PENDING), WV_SUCCESS);
            release_last(b->endpoint);
            b->endpoint = NULL;
            ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
        } else {
            release_last(b->endpoint);
            b->endpoint = NULL;
            ok_internal(&notify, WV_CANCELLED);
            ok_status(CALL(a->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
        }
        ok_int(wv_state(b->qp), ==, WvQpStateRts);
        wv_none(b->cq);
        wv_pair_drop(&pair);
    }
}

/* Cancelled while it waits for the answer: the disconnect goes on, its end can still be learned. */
ALONE(cancelled)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    INdvConnectEndpoint *extension;

    if (runner_iwarp())
        harness_skip("iWARP: the kernel answers");
    for (int way = 0; way < 2; way++) {
        wv_pair(&pair, NULL);
        a = &pair.link[0], b = &pair.link[1];
        receives(a, 2);
        extension = extension_of(a->endpoint);
        if (way)
            ok_status(CALL(extension, DisconnectAndFlush, NULL, &a->ov), WV_IO_PENDING);
        else
            ok_status(CALL(a->endpoint, Disconnect, &a->ov), WV_IO_PENDING);
        ok_int(CALL(extension, Release), ==, 1);
        ok_status(CALL(a->endpoint, CancelOverlappedRequests), WV_SUCCESS);
        ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_CANCELLED);
        ok_status(CALL(b->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
        ok_status(CALL(b->endpoint, Disconnect, NULL), WV_SUCCESS);
        ok_status(CALL(a->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
        ok_flushed(a, 2);
        wv_pair_drop(&pair);
    }
}

/* ---- DisconnectAndFlush, and what it stands for ---- */

/* The variant of the design discussion, of public calls alone: the outcome of Disconnect by NotifyDisconnect on a private
 * OVERLAPPED, whose event has its low bit set so that the port does not see it; then the queue pair to ERROR by the user's. */
static HRESULT composed(struct wvlink *link, OVERLAPPED *user)
{
    HANDLE event = CreateEvent(NULL, TRUE, FALSE, NULL), other = CreateEvent(NULL, TRUE, FALSE, NULL);
    OVERLAPPED notify, disconnect;
    HRESULT hr;

    overlapped_rubbish(&notify, (HANDLE)((ULONG_PTR)event | 1));
    overlapped_rubbish(&disconnect, (HANDLE)((ULONG_PTR)other | 1));
    ok_status(CALL(link->endpoint, NotifyDisconnect, &notify), WV_IO_PENDING);
    ok_status(CALL(link->endpoint, Disconnect, &disconnect), WV_IO_PENDING);
    ok_int(WaitForSingleObject(event, INFINITE), ==, WAIT_OBJECT_0);
    ok_status(CALL(link->endpoint, GetOverlappedResult, &notify, NULL, FALSE), WV_SUCCESS);
    hr = wv_to_error(link->qp, user);
    ok_int(WaitForSingleObject(other, INFINITE), ==, WAIT_OBJECT_0);
    ok_status(CALL(link->endpoint, GetOverlappedResult, &disconnect, NULL, FALSE), WV_SUCCESS);
    ok(CloseHandle(event));
    ok(CloseHandle(other));
    return hr;
}

static DWORD WINAPI answer(void *argument)
{
    struct wvlink *link = argument;

    ok_status(CALL(link->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(link->endpoint, Disconnect, NULL), WV_SUCCESS);
    return 0;
}

/* Both leave the same behind: the one packet of the user, the state, every posted request in the queue by then. */
ALONE(disconnect_and_flush)
{
    struct wvpair pair;
    struct wvlink *a;
    INdvConnectEndpoint *extension;
    OVERLAPPED *dequeued;
    HANDLE port, thread;
    ULONG_PTR key;
    DWORD bytes;
    HRESULT hr;

    for (int way = 0; way < 2; way++) {
        wv_pair(&pair, NULL);
        a = &pair.link[0];
        port = CreateIoCompletionPort(CALL(pair.host[0].provider, GetFileHandle), NULL, 3, 0);
        receives(a, 5);
        overlapped_rubbish(&a->ov, NULL);
        thread = CreateThread(NULL, 0, answer, &pair.link[1], 0, NULL);
        if (way) {
            hr = composed(a, &a->ov);
        } else {
            extension = extension_of(a->endpoint);
            ok_status(CALL(extension, DisconnectAndFlush, pair.link[1].qp, &a->ov), WV_INVALID_PARAMETER);
            hr = CALL(extension, DisconnectAndFlush, a->qp, &a->ov);
            ok_int(CALL(extension, Release), ==, 1);
        }
        ok(hr == WV_IO_PENDING || (way && hr == WV_SUCCESS));
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, INFINITE));
        ok_ptr(dequeued, ==, &a->ov);
        ok_uint(key, ==, 3);
        ok_status(WV_FINISH(a->endpoint, &a->ov, hr), WV_SUCCESS);
        ok_flushed(a, 5);
        ok_int(wv_state(a->qp), ==, WvQpStateError);
        ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
        ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
        ok(CloseHandle(thread));
        ok(CloseHandle(port));
        wv_pair_drop(&pair);
    }
}

/* On the other side: the peer has asked, the call answers and flushes; without an OVERLAPPED it blocks until that is done. */
ALONE(disconnect_and_flush_answers)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    INdvConnectEndpoint *extension;

    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    receives(b, 4);
    ok_status(CALL(a->endpoint, Disconnect, &a->ov), WV_IO_PENDING);
    ok_status(CALL(b->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
    extension = extension_of(b->endpoint);
    ok_status(CALL(extension, DisconnectAndFlush, NULL, NULL), WV_SUCCESS);
    ok_flushed(b, 4);
    ok_status(CALL(extension, DisconnectAndFlush, b->qp, &b->ov), STATUS_INVALID_DEVICE_STATE);
    ok_int(CALL(extension, Release), ==, 1);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    wv_pair_drop(&pair);
}

struct other_user {
    struct wvlink *link;
    int kind;
};

static DWORD WINAPI use_meanwhile(void *argument)
{
    struct other_user *user = argument;
    WV_SGE sge = wv_sge(user->link, 0, 8);

    for (int i = 0; i < 300; i++) {
        CALL(user->link->qp, PostReceive, 1, &sge, 1);
        CALL(user->link->qp, Send, 2, &sge, 1, 0, 0);
        if (user->kind == 1 && i == 100)
            wv_to_error(user->link->qp, NULL);
    }
    if (user->kind == 2)
        release_last(user->link->qp);
    return 0;
}

/* While another thread posts; moves the queue pair to ERROR itself; releases it. */
ALONE(disconnect_and_flush_while_used)
{
    struct wvpair pair;
    INdvConnectEndpoint *extension;
    WV_COMPLETION completions[16];
    HANDLE thread[2];

    for (int kind = 0; kind < 3; kind++) {
        struct other_user user = { &pair.link[0], kind };

        wv_pair(&pair, NULL);
        extension = extension_of(pair.link[0].endpoint);
        thread[0] = CreateThread(NULL, 0, answer, &pair.link[1], 0, NULL);
        thread[1] = CreateThread(NULL, 0, use_meanwhile, &user, 0, NULL);
        ok_status(CALL(extension, DisconnectAndFlush, NULL, &pair.link[0].ov), WV_IO_PENDING);
        while (CALL(pair.link[0].endpoint, GetOverlappedResult, &pair.link[0].ov, NULL, FALSE) == WV_PENDING) {
            CALL(pair.link[0].cq, Poll, completions, 16);
            harness_yield();
        }
        ok_internal(&pair.link[0].ov, WV_SUCCESS);
        ok_int(WaitForMultipleObjects(2, thread, TRUE, INFINITE), ==, WAIT_OBJECT_0);
        for (int i = 0; i < 2; i++)
            ok(CloseHandle(thread[i]));
        while (CALL(pair.link[0].cq, Poll, completions, 16))
            continue;
        if (kind == 2)
            pair.link[0].qp = NULL;
        ok_int(CALL(extension, Release), ==, 1);
        wv_pair_drop(&pair);
    }
}

/* ---- with an application of Network Direct version 2 in the same process ---- */

ALONE(network_direct_peer)
{
    struct wvhost host;
    struct wvlink link;
    struct host nd_host;
    struct link nd;
    WV_CONNECT_PARAM answer, ask;
    IND2Listener *nd_listener;
    IWVConnectEndpoint *listener;
    union endpoint to;
    HRESULT accepted, connected;

    for (int active = 0; active < 2; active++) {
        wv_open(&host);
        wv_make(&link, &host, NULL);
        host_open(&nd_host);
        link_make(&nd, &nd_host, NULL);
        answer = ask = wv_param(&link);
        if (active) {
            nd_listener = listen_any(&nd_host);
            to = listener_endpoint(nd_listener);
            ok_status(CALL(nd_listener, GetConnectionRequest, (IUnknown *)nd.connector, &nd.ov), ND_PENDING);
            wv_bind(&link);
            connected = CALL(link.endpoint, Connect, link.qp, &to.any, &ask, &link.ov);
            ok_status(finish(nd_listener, ND_PENDING, &nd.ov), ND_SUCCESS);
            accepted = CALL(nd.connector, Accept, (IUnknown *)nd.qp, 0, 0, NULL, 0, &nd.ov);
            ok_status(WV_FINISH(link.endpoint, &link.ov, connected), WV_SUCCESS);
            ok_status(wv_complete(&link), WV_SUCCESS);
            ok_status(FINISH(&nd, accepted), ND_SUCCESS);
            release_last(nd_listener);
        } else {
            listener = wv_listen(&host);
            to = wv_listener(listener);
            ok_status(CALL(listener, GetRequest, link.endpoint, &link.ov), WV_IO_PENDING);
            link_bind(&nd);
            connected =
                CALL(nd.connector, Connect, (IUnknown *)nd.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &nd.ov);
            ok_status(connected, ND_PENDING);
            ok_status(WV_FINISH(listener, &link.ov, WV_IO_PENDING), WV_SUCCESS);
            accepted = CALL(link.endpoint, Accept, link.qp, &answer, &link.ov);
            ok_status(FINISH(&nd, connected), ND_SUCCESS);
            ok_status(FINISH(&nd, CALL(nd.connector, CompleteConnect, &nd.ov)), ND_SUCCESS);
            ok_status(WV_FINISH(link.endpoint, &link.ov, accepted), WV_SUCCESS);
            release_last(listener);
        }
        wv_settle();
        wv_receive(&link, 1, 0, 64);
        post_receive(&nd, 2, 0, 64);
        post_send(&nd, 3, 100, 20, 0);
        ok_completion(link.cq, WvReceive, WvWcSuccess, 1);
        ok_result(nd.cq, Nd2RequestTypeSend, ND_SUCCESS, 3);
        wv_send(&link, 4, 100, 20, 0);
        ok_completion(link.cq, WvSend, WvWcSuccess, 4);
        ok_result(nd.cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);
        wv_settle();
        /* Either way round who asks first. */
        if (active) {
            ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS); /* ND answers by itself */
            ok_status(FINISH(&nd, CALL(nd.connector, NotifyDisconnect, &nd.ov)), ND_SUCCESS);
            link_disconnect(&nd);
        } else {
            ok_status(CALL(nd.connector, Disconnect, &nd.ov), ND_PENDING);
            ok_status(CALL(link.endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
            ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
            ok_status(FINISH(&nd, ND_PENDING), ND_SUCCESS);
        }
        link_drop(&nd);
        host_close(&nd_host);
        wv_drop(&link);
        wv_close(&host);
    }
}

/* ---- messages of the disconnect that the wire loses ---- */

/* The request is lost, or the answer: the kernel sends again, both sides end with success, in the order. */
static void lost(bool the_answer)
{
    const char *netdev = runner_env(the_answer ? "NDVERBS_PEER_NETDEV" : "NDVERBS_NETDEV");
    struct wvpair pair;
    struct wvlink *a, *b;
    OVERLAPPED notify[2];
    ULONGLONG start;
    HRESULT hr;

    runner_need_lossy_wire();
    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    receives(a, 2);
    for (int i = 0; i < 2; i++) {
        overlapped_rubbish(&notify[i], NULL);
        ok_status(CALL(pair.link[i].endpoint, NotifyDisconnect, &notify[i]), WV_IO_PENDING);
    }
    runner_lose(netdev, 100);
    start = GetTickCount64();
    ok_status(CALL(a->endpoint, Disconnect, &a->ov), WV_IO_PENDING);
    if (the_answer) {
        ok_status(WV_FINISH(b->endpoint, &notify[1], WV_IO_PENDING), WV_SUCCESS);
        hr = CALL(b->endpoint, Disconnect, &b->ov); /* its DREP goes nowhere */
        ok_status(WV_FINISH(b->endpoint, &b->ov, hr), WV_SUCCESS);
    } else {
        Sleep(300);
        ok_io_pending(b->endpoint, &notify[1]);
    }
    ok_io_pending(a->endpoint, &notify[0]);
    ok_io_pending(a->endpoint, &a->ov);
    ok_int(wv_state(a->qp), ==, WvQpStateRts);
    wv_none(a->cq);
    runner_mend(netdev);
    if (!the_answer) {
        ok_status(WV_FINISH(b->endpoint, &notify[1], WV_IO_PENDING), WV_SUCCESS);
        ok_status(CALL(b->endpoint, Disconnect, NULL), WV_SUCCESS);
    }
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_internal(&notify[0], WV_SUCCESS);
    ok_flushed(a, 2);
    runner_note("Disconnect took %u ms", (unsigned)(GetTickCount64() - start));
    wv_pair_drop(&pair);
}

/* Messages of the connection: all that follow the request. The acceptor is told of one time-out, the caller of the other. */
LONG_ALONE(reply_lost)
{
    const char *const netdevs[] = { runner_env("NDVERBS_NETDEV"), runner_env("NDVERBS_PEER_NETDEV") };
    WV_CONNECT_PARAM param;
    struct wvpair pair;
    struct wvlink *a, *b;
    HRESULT accepted;

    runner_need_lossy_wire();
    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    param = wv_param(a);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &param, &a->ov), WV_IO_PENDING);
    wv_request(b, pair.listener);
    for (int i = 0; i < 2; i++)
        runner_lose(netdevs[i], 100);
    param = wv_param(b);
    accepted = CALL(b->endpoint, Accept, b->qp, &param, &b->ov);
    ok_status(accepted, WV_IO_PENDING);
    ok_status(WV_FINISH(b->endpoint, &b->ov, accepted), WV_IO_TIMEOUT);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_TIMEOUT);
    for (int i = 0; i < 2; i++)
        runner_mend(netdevs[i]);
    wv_pair_drop(&pair);
}

ALONE(request_lost)
{
    lost(false);
}

ALONE(answer_lost)
{
    lost(true);
}

/* Both requests are lost, so that they cross when they are sent again. */
ALONE(crossing_on_the_wire)
{
    const char *netdev[2] = { runner_env("NDVERBS_NETDEV"), runner_env("NDVERBS_PEER_NETDEV") };
    struct wvpair pair;
    OVERLAPPED notify[2];

    runner_need_lossy_wire();
    wv_pair(&pair, NULL);
    for (int i = 0; i < 2; i++) {
        overlapped_rubbish(&notify[i], NULL);
        receives(&pair.link[i], 2);
        ok_status(CALL(pair.link[i].endpoint, NotifyDisconnect, &notify[i]), WV_IO_PENDING);
        runner_lose(netdev[i], 100);
    }
    for (int i = 0; i < 2; i++)
        ok_status(CALL(pair.link[i].endpoint, Disconnect, &pair.link[i].ov), WV_IO_PENDING);
    Sleep(200);
    for (int i = 0; i < 2; i++) {
        ok_io_pending(pair.link[i].endpoint, &pair.link[i].ov);
        ok_io_pending(pair.link[i].endpoint, &notify[i]);
        ok_int(wv_state(pair.link[i].qp), ==, WvQpStateRts);
    }
    for (int i = 0; i < 2; i++)
        runner_mend(netdev[i]);
    for (int i = 0; i < 2; i++) {
        ok_status(WV_FINISH(pair.link[i].endpoint, &pair.link[i].ov, WV_IO_PENDING), WV_SUCCESS);
        ok_internal(&notify[i], WV_SUCCESS);
        ok_flushed(&pair.link[i], 2);
    }
    wv_pair_drop(&pair);
}

/* ---- peers that do not answer ---- */

PART(connected_peer)
{
    static struct wvsession session; /* found by the leak checker, should this process be let to its end */

    wv_part_begin(&session, NULL);
    receives(&session.link, 8);
    runner_sync();
    for (;;)
        Sleep(1000);
}

static int begin(struct wvsession *session, const struct wvshape *shape)
{
    int channel, pid = runner_spawn("connected_peer", ROLE_SERVER, &channel);
    char byte = 's';

    wv_beside(session, channel, shape);
    runner_put_to(channel, &byte, 1);
    runner_get_from(channel, &byte, 1);
    return pid;
}

/* Stopped: nobody answers. Disconnect ends by our own deadline, with its success code for that; nobody else is told of a
 * time-out. The same by DisconnectAndFlush. */
ALONE(peer_stopped)
{
    struct wvsession session;
    struct wvlink *link = &session.link;
    OVERLAPPED notify;
    HRESULT hr;
    int pid;

    setenv("NDVERBS_DISCONNECT_TIMEOUT_MS", "2000", 1);
    pid = begin(&session, NULL);
    overlapped_rubbish(&notify, NULL);
    receives(link, 3);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &notify), WV_IO_PENDING);
    runner_stop(pid);
    hr = CALL(link->endpoint, Disconnect, &link->ov);
    ok_status(hr, WV_IO_PENDING);
    if (!runner_iwarp()) {
        ok_io_pending(link->endpoint, &link->ov);
        ok_io_pending(link->endpoint, &notify);
        ok_int(wv_state(link->qp), ==, WvQpStateRts);
        wv_none(link->cq);
    }
    /* The kernel of iWARP answers for it. */
    ok_status(WV_FINISH(link->endpoint, &link->ov, hr), runner_iwarp() ? WV_SUCCESS : WV_TIMEOUT);
    ok_internal(&notify, WV_SUCCESS);
    ok_flushed(link, 3);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
    wv_session_drop(&session);
}

/* Without an OVERLAPPED that is plain success. */
ALONE(peer_stopped_blocking)
{
    struct wvsession session;
    struct wvlink *link = &session.link;
    int pid;

    setenv("NDVERBS_DISCONNECT_TIMEOUT_MS", "700", 1);
    pid = begin(&session, NULL);
    receives(link, 3);
    runner_stop(pid);
    ok_status(CALL(link->endpoint, Disconnect, NULL), WV_SUCCESS);
    ok_flushed(link, 3);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
    wv_session_drop(&session);
}

/* By the extension. */
ALONE(peer_stopped_and_flush)
{
    struct wvsession session;
    struct wvlink *link = &session.link;
    INdvConnectEndpoint *extension;
    HRESULT hr;
    int pid;

    setenv("NDVERBS_DISCONNECT_TIMEOUT_MS", "700", 1);
    pid = begin(&session, NULL);
    receives(link, 3);
    runner_stop(pid);
    extension = extension_of(link->endpoint);
    hr = CALL(extension, DisconnectAndFlush, link->qp, &link->ov);
    ok_status(hr, WV_IO_PENDING);
    ok_status(WV_FINISH(link->endpoint, &link->ov, hr), runner_iwarp() ? WV_SUCCESS : WV_TIMEOUT);
    ok_flushed(link, 3);
    ok_int(CALL(extension, Release), ==, 1);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
    wv_session_drop(&session);
}

/* Killed: the kernel disconnects for it. NotifyDisconnect tells; requests in flight come back once each; the queue pair stays
 * the application's until it disconnects. */
ALONE(peer_killed)
{
    struct wvsession session;
    struct wvlink *link = &session.link;
    OVERLAPPED notify;
    int pid;

    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    pid = begin(&session, NULL);
    overlapped_rubbish(&notify, NULL);
    receives(link, 3);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &notify), WV_IO_PENDING);
    runner_stop(pid);
    wv_send(link, 70, 0, 8, 0);
    runner_kill(pid);
    runner_wait(pid);
    ok_status(WV_FINISH(link->endpoint, &notify, WV_IO_PENDING), WV_SUCCESS);
    ok_status(WV_FINISH(link->endpoint, &link->ov, CALL(link->endpoint, Disconnect, &link->ov)), WV_SUCCESS);
    for (int receives_back = 0, all = 0; all < 4; all++) {
        WV_COMPLETION completion = wv_next(link->cq);

        ok_ptr(completion.QpContext, ==, link);
        if (completion.Opcode & WvReceive) {
            ok_uint(completion.WrId, ==, (UINT64)receives_back++);
            ok_int(completion.Status, ==, WvWcFlushed);
        } else {
            ok_uint(completion.WrId, ==, 70);
        }
    }
    wv_none(link->cq);
    wv_session_drop(&session);
}

RUNNER_MAIN
