/* SPDX-License-Identifier: MIT */
/* Ends that go wrong or come at the wrong moment: Disconnect in every state, a peer that is stopped or killed, lost
 * messages, slow sides. ndspi.md 4.6 to 4.8, design.md 5. */
#include "session.h"

#include <stdlib.h>
#include <sys/wait.h>

/* Disconnect and NotifyDisconnect where there is no connection: refused at the call, OVERLAPPED and event untouched, and
 * whatever was under way goes on. */
static void no_connection(IND2Connector *connector)
{
    OVERLAPPED ov, before;
    HANDLE event = event_auto();

    overlapped_rubbish(&ov, event);
    before = ov;
    ok(SetEvent(event));
    ok_status(CALL(connector, Disconnect, &ov), ND_CONNECTION_INVALID);
    ok_status(CALL(connector, NotifyDisconnect, &ov), ND_CONNECTION_INVALID);
    ok_mem(&ov, &before, sizeof(ov));
    ok_int(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(CloseHandle(event));
}

SERVER(disconnect_in_every_state)
{
    IND2Listener *listener;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_at(&host, &host.address, 0);
    no_connection(link.connector); /* fresh */
    hr = CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov);
    ok_status(hr, ND_PENDING);
    no_connection(link.connector); /* queued */
    {
        union endpoint address = listener_endpoint(listener);
        USHORT port = endpoint_port(&address);

        runner_put(&port, sizeof(port));
    }
    ok_status(finish(listener, hr, &link.ov), ND_SUCCESS);
    no_connection(link.connector); /* request in */
    runner_sync();                 /* and the client's out */
    hr = CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    if (!runner_iwarp())
        no_connection(link.connector); /* reply out */
    runner_sync();
    ok_status(FINISH(&link, hr), ND_SUCCESS);
    runner_sync();
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    link_disconnect(&link);
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(disconnect_in_every_state)
{
    union endpoint to;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    no_connection(link.connector); /* fresh */
    link_bind(&link);
    no_connection(link.connector); /* bound */
    to = listener_of_peer();
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    no_connection(link.connector); /* address, route or request */
    runner_sync();
    ok_status(FINISH(&link, hr), ND_SUCCESS);
    no_connection(link.connector); /* reply in */
    runner_sync();                 /* the server's reply is out and not answered */
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    runner_sync();
    link_disconnect(&link);
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Bind, &host.address.any, endpoint_size(&host.address)),
              STATUS_ADDRESS_ALREADY_ASSOCIATED);
    link_drop(&link);
    host_close(&host);
}

/* A queue pair that was connected is of no more use to another connection, on either side (A9). */

SERVER(queue_pair_serves_once)
{
    struct session session;
    struct link *link = &session.link;
    IND2Listener *listener;

    session_begin(&session, NULL);
    ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
    link_disconnect(link);
    release_last(link->connector);
    link_make_connector(link);
    listener = listen_any(&session.host);
    link_request(link, listener);
    ok_status(link_try_accept(link), ND_CONNECTION_ACTIVE);
    release_last(link->qp);
    link_make_qp(link);
    ok_status(link_try_accept(link), ND_SUCCESS);
    runner_sync();
    release_last(listener);
    session_drop(&session);
}

CLIENT(queue_pair_serves_once)
{
    struct session session;
    struct link *link = &session.link;
    union endpoint to;

    session_begin(&session, NULL);
    link_disconnect(link);
    to = listener_of_peer();
    /* The connector too. */
    ok(FAILED(link_try_connect(link, &to)));
    release_last(link->connector);
    link_make_connector(link);
    link_bind(link);
    ok_status(link_try_connect(link, &to), ND_CONNECTION_ACTIVE);
    release_last(link->qp);
    link_make_qp(link);
    ok_status(link_try_connect(link, &to), ND_SUCCESS);
    ok_status(FINISH(link, CALL(link->connector, CompleteConnect, &link->ov)), ND_SUCCESS);
    runner_sync();
    session_drop(&session);
}

/* The peer's process is stopped: nobody answers the disconnect. Ours ends by our own deadline, with success (A8). */

PART(connected_peer)
{
    static struct session session; /* found by the leak checker, should this process be let to its end */

    session_begin(&session, &(struct shape){ .reads = 2 });
    for (uintptr_t i = 0; i < 8; i++)
        post_receive(&session.link, i, 0, 64);
    runner_sync();
    for (;;)
        Sleep(1000);
}

ALONE(peer_stopped)
{
    int channel, pid = runner_spawn("connected_peer", ROLE_SERVER, &channel);
    struct session session;
    struct link *link = &session.link;
    HANDLE event = event_auto();
    OVERLAPPED notify;
    HRESULT hr;

    setenv("NDVERBS_DISCONNECT_TIMEOUT_MS", "2000", 1);
    session_beside(&session, channel, NULL);
    post_receive(link, 1, 0, 64);
    overlapped_rubbish(&notify, event);
    ok_status(CALL(link->connector, NotifyDisconnect, &notify), ND_PENDING);
    runner_stop(pid);
    hr = CALL(link->connector, Disconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    if (!runner_iwarp()) {
        /* Until then nothing has come back: the queue pair works for what is under way. */
        ok_pending(link->connector, &link->ov);
        ok_pending(link->connector, &notify);
    }
    ok_status(FINISH(link, hr), ND_SUCCESS);
    ok_internal(&notify, ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    result_none(link->cq);
    ok(CloseHandle(event));
    session_drop(&session);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
}

/* The same, and nobody waits: the release ends the request at once; posted work comes back when the peer has answered or the
 * deadline is over. */
ALONE(released_while_disconnecting)
{
    int channel, pid = runner_spawn("connected_peer", ROLE_SERVER, &channel);
    struct session session;
    struct link *link = &session.link;

    if (runner_iwarp())
        harness_skip("iWARP: the kernel answers for a stopped process");
    setenv("NDVERBS_DISCONNECT_TIMEOUT_MS", "2000", 1);
    session_beside(&session, channel, NULL);
    post_receive(link, 1, 0, 64);
    runner_stop(pid);
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_PENDING);
    ok_pending(link->connector, &link->ov);
    release_last(link->connector);
    link->connector = NULL;
    ok_internal(&link->ov, ND_CANCELED);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    session_drop(&session);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
}

/* The peer is killed with requests of every kind in flight: each comes back once, with its own type, context and a status
 * of its table, in order per queue. */

#define FLIGHT 12

ALONE(peer_killed_in_traffic)
{
    static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeSend, Nd2RequestTypeWrite, Nd2RequestTypeRead };
    int channel, pid = runner_spawn("connected_peer", ROLE_SERVER, &channel);
    uintptr_t next_send = 0, next_receive = 100;
    struct session session;
    struct link *link = &session.link;
    bool failed = false;
    ND2_SGE sge;
    HRESULT hr;

    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    session_beside(&session, channel, &(struct shape){ .reads = 2, .depth = 32 });
    for (uintptr_t i = 0; i < 4; i++)
        post_receive(link, 100 + i, 0, 64);
    runner_stop(pid); /* rxe answers for it all the same; what needs its process does not */
    sge = sge_of(link, 0, 64);
    for (uintptr_t i = 0; i < FLIGHT; i++) {
        if (i == FLIGHT / 2)
            runner_kill(pid);
        switch (types[i % 3]) {
        case Nd2RequestTypeSend:
            post_send(link, i, 0, 64, 0);
            break;
        case Nd2RequestTypeWrite:
            ok_status(CALL(link->qp, Write, (void *)i, &sge, 1, link->remote.address, link->remote.token, 0),
                      ND_SUCCESS);
            break;
        default:
            ok_status(CALL(link->qp, Read, (void *)i, &sge, 1, link->remote.address, link->remote.token, 0),
                      ND_SUCCESS);
            break;
        }
    }
    runner_wait(pid);
    for (int i = 0; i < FLIGHT + 4; i++) {
        ND2_RESULT result = result_next(link->cq);
        uintptr_t context = (uintptr_t)result.RequestContext;

        ok_ptr(result.QueuePairContext, ==, link);
        if (result.RequestType == Nd2RequestTypeReceive) {
            ok_uint(context, ==, next_receive++);
            ok_status(result.Status, ND_CANCELED);
            continue;
        }
        ok_uint(context, ==, next_send++);
        ok_int(result.RequestType, ==, types[context % 3]);
        /* Successes, then at most one request that says why, then the rest. */
        if (result.Status == ND_SUCCESS) {
            ok(!failed);
        } else if (result.Status != ND_CANCELED) {
            ok(!failed);
            ok_msg(result.Status == ND_IO_TIMEOUT || result.Status == ND_ACCESS_VIOLATION ||
                       result.Status == ND_REMOTE_ERROR,
                   "request %u: 0x%08x", (unsigned)context, (unsigned)result.Status);
        }
        failed |= result.Status != ND_SUCCESS;
    }
    result_none(link->cq);
    hr = FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov));
    ok_msg(hr == ND_SUCCESS || hr == STATUS_CONNECTION_DISCONNECTED, "NotifyDisconnect: 0x%08x", (unsigned)hr);
    link_disconnect(link);
    session_drop(&session);
}

/* Messages of the disconnect that the wire loses: sent again by the kernel, both sides end with success. */

static void message_lost_server(bool answer)
{
    struct session session;
    struct link *link = &session.link;
    HRESULT hr;

    runner_need_lossy_wire();
    session_begin(&session, NULL);
    post_receive(link, 1, 0, 64);
    hr = CALL(link->connector, NotifyDisconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_sync(); /* one direction is cut */
    if (answer)
        ok_status(FINISH(link, hr), ND_SUCCESS); /* the request arrives, the answer is lost */
    else
        ok_pending(link->connector, &link->ov);
    runner_sync(); /* whole again */
    if (!answer)
        ok_status(FINISH(link, hr), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    link_disconnect(link);
    runner_sync();
    session_drop(&session);
}

static void message_lost_client(bool answer)
{
    const char *netdev = runner_env(answer ? "NDVERBS_PEER_NETDEV" : "NDVERBS_NETDEV");
    HANDLE event = event_auto();
    struct session session;
    struct link *link = &session.link;
    OVERLAPPED notify;
    ULONGLONG start;
    HRESULT hr;

    runner_need_lossy_wire();
    session_begin(&session, NULL);
    post_receive(link, 1, 0, 64);
    overlapped_rubbish(&notify, event);
    ok_status(CALL(link->connector, NotifyDisconnect, &notify), ND_PENDING);
    runner_lose(netdev, 100);
    start = GetTickCount64();
    hr = CALL(link->connector, Disconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    Sleep(300);
    ok_pending(link->connector, &link->ov);
    ok_pending(link->connector, &notify);
    runner_mend(netdev);
    runner_sync();
    ok_status(FINISH(link, hr), ND_SUCCESS);
    ok_internal(&notify, ND_SUCCESS);
    runner_note("Disconnect took %u ms", (unsigned)(GetTickCount64() - start));
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    ok(CloseHandle(event));
    runner_sync();
    session_drop(&session);
}

SERVER(request_of_the_disconnect_lost)
{
    message_lost_server(false);
}

CLIENT(request_of_the_disconnect_lost)
{
    message_lost_client(false);
}

SERVER(answer_to_the_disconnect_lost)
{
    message_lost_server(true);
}

CLIENT(answer_to_the_disconnect_lost)
{
    message_lost_client(true);
}

/* Nobody is timed out for being slow: longer than the connection manager waits for an answer, so that it asks again. */

#define SLOW_MS 5000

SERVER(slow_sides)
{
    IND2Listener *listener;
    struct host host;
    struct link link, other;

    host_open(&host);
    link_make(&link, &host, NULL);
    link_make(&other, &host, NULL);
    listener = listen_any(&host);
    link_request(&link, listener);
    Sleep(SLOW_MS);
    ok_status(link_try_accept(&link), ND_SUCCESS);
    runner_settle();
    post_receive(&link, 1, 0, 64);
    runner_sync();
    ok_result(link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    /* The repeated request was no second one. */
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)other.connector, &other.ov), ND_PENDING);
    ok_pending(listener, &other.ov);
    ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
    runner_sync();
    link_disconnect(&link);
    link_drop(&link);
    link_drop(&other);
    release_last(listener);
    host_close(&host);
}

CLIENT(slow_sides)
{
    union endpoint to;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    if (!runner_iwarp())
        Sleep(SLOW_MS);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    runner_settle();
    runner_sync();
    post_send(&link, 1, 0, 64, 0);
    ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    runner_sync();
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    link_drop(&link);
    host_close(&host);
}

/* The active side never completes (its process is stopped): the kernel gives the acceptor up after a minute or two. */

PART(never_completes)
{
    static struct host host;
    static struct link link;
    union endpoint to;

    host_open(&host);
    link_make(&link, &host, NULL);
    runner_get(&to, sizeof(to));
    link_bind(&link);
    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    runner_sync();
    for (;;)
        Sleep(1000);
}

LONG_ALONE(accept_never_completed)
{
    int channel, pid = runner_spawn("never_completes", ROLE_SERVER, &channel);
    union endpoint to;
    struct host host;
    struct link link;
    IND2Listener *listener;
    ULONGLONG start;
    char byte = 's';
    HRESULT hr;

    if (runner_iwarp())
        harness_skip("iWARP: Accept completes by itself");
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    runner_put_to(channel, &to, sizeof(to));
    link_request(&link, listener);
    post_receive(&link, 1, 0, 64);
    hr = CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    runner_put_to(channel, &byte, 1);
    runner_get_from(channel, &byte, 1);
    runner_stop(pid);
    start = GetTickCount64();
    ok_status(FINISH(&link, hr), ND_IO_TIMEOUT);
    runner_note("Accept took %u s", (unsigned)((GetTickCount64() - start) / 1000));
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    runner_continue(pid);
    runner_kill(pid);
    runner_wait(pid);
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

/* The connecting side gave up while its request was in our hands, and we reject it without having noticed. */

SERVER(reject_after_the_peer_gave_up)
{
    IND2Listener *listener;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    link_request(&link, listener);
    runner_sync();
    runner_sync(); /* it has */
    Sleep(1000);
    hr = CALL(link.connector, Reject, NULL, 0);
    if (runner_iwarp())
        ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_SUCCESS, "Reject: 0x%08x", (unsigned)hr);
    else
        ok_status(hr, ND_CONNECTION_ABORTED);
    ok_status(link_try_accept(&link), ND_CONNECTION_INVALID);
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(reject_after_the_peer_gave_up)
{
    union endpoint to;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    ok_status(CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov),
              ND_PENDING);
    runner_sync();
    ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_internal(&link.ov, ND_CANCELED);
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
