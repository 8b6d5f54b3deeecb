/* SPDX-License-Identifier: MIT */
/* Version 1: requests that are cancelled, sides that give up, die or never answer, and requests that fail on the way.
 * ndspi-v1.md 8 to 11, ndspi-status.md 4. */
#include "v1side.h"

#include <stdlib.h>

/* ---- one process, both ends ---- */

struct two {
    struct v1 near, far;
};

static void two_open(struct two *two)
{
    v1_open(&two->near, 4096);
    v1_open(&two->far, 4096);
}

static void two_close(struct two *two)
{
    v1_close(&two->near);
    v1_close(&two->far);
}

/* What has not been taken from the queues. */
static void empty(struct two *two)
{
    ND_RESULT *rest[16];

    while (CALL(two->near.cq, GetResults, rest, 16) || CALL(two->far.cq, GetResults, rest, 16))
        ;
}

/* The request of `near` in the hands of `far`. */
static INDListen *ask(struct two *two)
{
    struct v1 *near = &two->near, *far = &two->far;
    INDListen *listen;
    union endpoint to;
    USHORT port = 0;
    HRESULT hr;

    ok_status(CALL(far->adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(far, port);
    if (!near->connector)
        v1_make_connector(near);
    if (!near->endpoint)
        v1_make_endpoint(near);
    if (!far->connector)
        v1_make_connector(far);
    hr = CALL(listen, GetConnectionRequest, far->connector, &far->ov);
    ok_status(hr, ND_PENDING);
    ok_status(CALL(near->connector, Connect, near->endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &near->ov),
              ND_PENDING);
    ok_status(v1_finish(listen, hr, &far->ov), ND_SUCCESS);
    return listen;
}

/* Accept is taken back: the reply was out, the caller hears of it when it completes. */
ALONE(accept_cancelled)
{
    INDListen *listen;
    struct two two;
    HRESULT hr;

    if (runner_iwarp())
        harness_skip("iWARP: Accept is over when the acceptor has replied");
    two_open(&two);
    listen = ask(&two);
    v1_make_endpoint(&two.far);
    ok_status(CALL(two.far.connector, Accept, two.far.endpoint, NULL, 0, &two.far.ov), ND_PENDING);
    ok_status(V1_FINISH(&two.near, ND_PENDING), ND_SUCCESS);
    ok_status(CALL(two.far.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(two.far.connector, GetOverlappedResult, &two.far.ov, NULL, FALSE), ND_CANCELED);
    hr = V1_FINISH(&two.near, CALL(two.near.connector, CompleteConnect, &two.near.ov));
    ok_msg(hr == ND_SUCCESS || hr == ND_CONNECTION_ABORTED, "CompleteConnect: 0x%08x", (unsigned)hr);
    release_last(listen);
    two_close(&two);
}

/* Accept of a request whose caller already has a connection by it. */
ALONE(accept_twice)
{
    INDListen *listen;
    struct two two;

    two_open(&two);
    listen = ask(&two);
    v1_make_endpoint(&two.far);
    ok_status(CALL(two.far.connector, Accept, NULL, NULL, 0, &two.far.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(two.far.connector, Accept, two.near.endpoint, NULL, 0, &two.far.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(two.far.connector, Accept, two.far.endpoint, NULL, 0, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(two.far.connector, Accept, two.far.endpoint, NULL, 0, &two.far.ov), ND_PENDING);
    ok_status(V1_FINISH(&two.near, ND_PENDING), ND_SUCCESS);
    ok_status(CALL(two.near.connector, CompleteConnect, NULL), ND_INVALID_PARAMETER);
    ok_status(V1_FINISH(&two.near, CALL(two.near.connector, CompleteConnect, &two.near.ov)), ND_SUCCESS);
    ok_status(V1_FINISH(&two.far, ND_PENDING), ND_SUCCESS);
    ok_status(CALL(two.far.connector, Accept, two.far.endpoint, NULL, 0, &two.far.ov), ND_CONNECTION_ACTIVE);
    ok_status(CALL(two.far.connector, NotifyDisconnect, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(two.far.connector, Disconnect, NULL), ND_INVALID_PARAMETER);
    v1_disconnect(&two.near);
    release_last(listen);
    two_close(&two);
}

/* The caller gives up before the passive side has answered: by its Release, without a Cancel. */
ALONE(caller_released)
{
    INDListen *listen;
    struct two two;
    HRESULT hr;

    if (runner_iwarp())
        harness_skip("iWARP: the kernel's connect cannot be interrupted");
    two_open(&two);
    listen = ask(&two);
    release_last(two.near.connector);
    two.near.connector = NULL;
    ok_internal(&two.near.ov, ND_CANCELED);
    Sleep(200);
    hr = CALL(two.far.connector, Reject, NULL, 0);
    ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_SUCCESS, "Reject: 0x%08x", (unsigned)hr);
    release_last(listen);
    two_close(&two);
}

/* A cancelled Disconnect ends at once; everything is flushed all the same. */
ALONE(disconnect_cancelled)
{
    ND_RESULT results[4];
    OVERLAPPED closed;
    struct two two;
    HRESULT hr;

    two_open(&two);
    v1_self_connect(&two.near, &two.far);
    for (int i = 0; i < 4; i++)
        v1_receive(&two.near, &results[i], 0, 64);
    overlapped_rubbish(&closed, NULL);
    ok_status(CALL(two.far.connector, NotifyDisconnect, &closed), ND_PENDING);
    ok_status(CALL(two.near.connector, Disconnect, &two.near.ov), ND_PENDING);
    ok_status(CALL(two.near.connector, CancelOverlappedRequests), ND_SUCCESS);
    hr = CALL(two.near.connector, GetOverlappedResult, &two.near.ov, NULL, FALSE);
    ok_msg(hr == ND_SUCCESS || hr == ND_CANCELED, "Disconnect: 0x%08x", (unsigned)hr);
    for (int i = 0; i < 4; i++)
        ok_v1_result(&two.near, &results[i], ND_CANCELED);
    v1_none(&two.near);
    ok_status(v1_finish(two.far.connector, ND_PENDING, &closed), ND_SUCCESS);
    two_close(&two);
}

/* Each pending request and its object's last Release. */
ALONE(released_while_pending)
{
    OVERLAPPED closed;
    struct two two;

    two_open(&two);
    v1_self_connect(&two.near, &two.far);
    overlapped_rubbish(&closed, NULL);
    ok_status(CALL(two.near.connector, NotifyDisconnect, &closed), ND_PENDING);
    ok_status(CALL(two.near.cq, Notify, ND_CQ_NOTIFY_ANY, &two.near.ov), ND_PENDING);
    release_last(two.near.connector);
    two.near.connector = NULL;
    ok_internal(&closed, ND_CANCELED);
    release_last(two.near.endpoint);
    two.near.endpoint = NULL;
    release_last(two.near.cq);
    ok_internal(&two.near.ov, ND_CANCELED);
    ok_status(CALL(two.near.adapter, CreateCompletionQueue, 64, &two.near.cq), ND_SUCCESS);
    /* The other side hears of it. */
    ok_status(V1_FINISH(&two.far, CALL(two.far.connector, NotifyDisconnect, &two.far.ov)), ND_SUCCESS);
    two_close(&two);
}

/* Two processes of an MPI job call each other at once; one of the two refuses, with a reason. */
ALONE(crossing_calls)
{
    HRESULT requested[2], connected[2], accepted;
    INDConnector *passive[2];
    OVERLAPPED request[2];
    INDListen *listen[2];
    INDEndpoint *endpoint;
    BYTE reason = 0;
    SIZE_T size = 1;
    struct two two;
    struct v1 *sides[] = { &two.near, &two.far };
    ND_RESULT in, out;
    union endpoint to[2];
    ND_SGE sge;

    two_open(&two);
    for (int i = 0; i < 2; i++) {
        USHORT port = 0;

        overlapped_rubbish(&request[i], event_auto());
        ok_status(CALL(sides[i]->adapter, Listen, 0, 123, 0, &port, &listen[i]), ND_SUCCESS);
        ok_status(CALL(sides[i]->adapter, CreateConnector, &passive[i]), ND_SUCCESS);
        requested[i] = CALL(listen[i], GetConnectionRequest, passive[i], &request[i]);
        ok_status(requested[i], ND_PENDING);
        to[i] = v1_listener(sides[i], port);
        v1_make_connector(sides[i]);
        v1_make_endpoint(sides[i]);
    }
    for (int i = 0; i < 2; i++) {
        connected[i] = CALL(sides[i]->connector, Connect, sides[i]->endpoint, &to[!i].any, endpoint_size(&to[!i]), 123,
                            0, "hello", 6, &sides[i]->ov);
        ok_status(connected[i], ND_PENDING);
    }
    for (int i = 0; i < 2; i++)
        ok_status(v1_finish(listen[i], requested[i], &request[i]), ND_SUCCESS);
    ok_status(CALL(passive[0], Reject, "x", 1), ND_SUCCESS);
    ok_status(CALL(passive[1], CreateEndpoint, two.far.cq, two.far.cq, 4, 4, 1, 1, 0, 0, NULL, &endpoint), ND_SUCCESS);
    sge = v1_sge(&two.far, 0, 64);
    ok_status(CALL(endpoint, Receive, &in, &sge, 1), ND_SUCCESS);
    accepted = CALL(passive[1], Accept, endpoint, NULL, 0, &request[1]);
    ok_status(accepted, ND_PENDING);
    ok_status(V1_FINISH(&two.far, connected[1]), ND_CONNECTION_REFUSED);
    ok_status(CALL(two.far.connector, GetConnectionData, NULL, NULL, &reason, &size),
              runner_iwarp() ? ND_SUCCESS : ND_BUFFER_OVERFLOW);
    ok_int(reason, ==, 'x');
    ok_status(V1_FINISH(&two.near, connected[0]), ND_SUCCESS);
    ok_status(V1_FINISH(&two.near, CALL(two.near.connector, CompleteConnect, &two.near.ov)), ND_SUCCESS);
    ok_status(v1_finish(passive[1], accepted, &request[1]), ND_SUCCESS);
    if (runner_iwarp())
        Sleep(50);
    v1_send(&two.near, &out, 0, 10, 0);
    ok_v1_result(&two.near, &out, ND_SUCCESS);
    ok_v1_result(&two.far, &in, ND_SUCCESS);
    v1_disconnect(&two.near);
    release_last(endpoint);
    for (int i = 0; i < 2; i++) {
        release_last(passive[i]);
        release_last(listen[i]);
        ok(CloseHandle(request[i].hEvent));
    }
    two_close(&two);
}

/* ---- ports ---- */

/* A local port of the caller's choice is the one that the peer sees; in use elsewhere: a status, and the connector goes on. */

SERVER(local_port)
{
    union endpoint peer;
    SIZE_T size = sizeof(peer);
    INDListen *listen;
    struct v1 v1;
    USHORT port;

    v1_open(&v1, 4096);
    listen = v1_listen(&v1);
    v1_accept(&v1, listen);
    runner_get(&port, sizeof(port));
    ok_status(CALL(v1.connector, GetPeerAddress, &peer.any, &size), ND_SUCCESS);
    ok_int(endpoint_port(&peer), ==, port);
    release_last(listen);
    v1_end(&v1);
}

CLIENT(local_port)
{
    union endpoint to, local;
    SIZE_T size = sizeof(local);
    INDListen *listen;
    USHORT taken, port = 0;
    struct v1 v1;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    taken = htons(endpoint_port(&to));
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    /* A port that nobody has. */
    ok_status(CALL(v1.adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    release_last(listen);
    if (!runner_wire()) { /* both sides have one address */
        ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, taken, NULL, 0, &v1.ov),
                  ND_ADDRESS_ALREADY_EXISTS);
        ok_status(CALL(v1.adapter, Listen, 0, 123, taken, NULL, &listen), ND_ADDRESS_ALREADY_EXISTS);
        ok_ptr(listen, ==, NULL);
    }
    ok_status(V1_FINISH(&v1, CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, port, NULL, 0,
                                  &v1.ov)),
              ND_SUCCESS);
    ok_status(V1_FINISH(&v1, CALL(v1.connector, CompleteConnect, &v1.ov)), ND_SUCCESS);
    ok_status(CALL(v1.connector, GetLocalAddress, &local.any, &size), ND_SUCCESS);
    ok_int(endpoint_port(&local), ==, ntohs(port));
    port = ntohs(port);
    runner_put(&port, sizeof(port));
    v1_end(&v1);
}

/* ---- a peer that goes ---- */

/* How an MPI process leaves a connection in a hurry: Flush, cancel, release, no Disconnect. */

SERVER(abandoned)
{
    ND_RESULT results[2];
    struct v1 v1;

    v1_begin(&v1, 4096);
    for (int i = 0; i < 2; i++)
        v1_receive(&v1, &results[i], 0, 64);
    runner_sync();
    ok_status(CALL(v1.endpoint, Flush), ND_SUCCESS);
    ok_status(CALL(v1.connector, CancelOverlappedRequests), ND_SUCCESS);
    for (int i = 0; i < 2; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_drop(&v1);
    runner_sync();
    v1_close(&v1);
}

CLIENT(abandoned)
{
    ND_RESULT results[2];
    OVERLAPPED closed;
    struct v1 v1;

    v1_begin(&v1, 4096);
    overlapped_rubbish(&closed, NULL);
    for (int i = 0; i < 2; i++)
        v1_receive(&v1, &results[i], 0, 64);
    ok_status(CALL(v1.connector, NotifyDisconnect, &closed), ND_PENDING);
    runner_sync();
    ok_status(v1_finish(v1.connector, ND_PENDING, &closed), ND_SUCCESS);
    for (int i = 0; i < 2; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_disconnect(&v1);
    runner_sync();
    v1_close(&v1);
}

/* The peer is a third process, so that it may die. */

PART(killed)
{
    struct v1 v1;

    v1_begin(&v1, 4096);
    runner_sync();
    for (;;)
        Sleep(1000);
}

ALONE(peer_killed)
{
    int channel, pid = runner_spawn("killed", ROLE_SERVER, &channel);
    const char *address = runner_env("NDVERBS_PEER_ADDR");
    union endpoint to = endpoint_from(address ? address : runner_env("NDVERBS_ADDR"));
    ND_RESULT received;
    OVERLAPPED closed;
    char byte = 's';
    struct v1 v1;
    USHORT port;

    v1_open(&v1, 4096);
    runner_get_from(channel, &port, sizeof(port));
    endpoint_set_port(&to, port);
    v1_connect(&v1, &to);
    for (int steps = runner_iwarp() ? 2 : 1; steps; steps--) { /* v1_begin and runner_sync */
        runner_put_to(channel, &byte, 1);
        runner_get_from(channel, &byte, 1);
    }
    overlapped_rubbish(&closed, NULL);
    v1_receive(&v1, &received, 0, 64);
    ok_status(CALL(v1.connector, NotifyDisconnect, &closed), ND_PENDING);
    runner_kill(pid);
    runner_wait(pid);
    ok_status(v1_finish(v1.connector, ND_PENDING, &closed), ND_SUCCESS); /* the kernel disconnects for it */
    ok_v1_result(&v1, &received, ND_CANCELED);
    v1_disconnect(&v1);
    v1_close(&v1);
}

/* ---- requests that fail ---- */

enum operation {
    SEND,
    SEND_INVALIDATE,
    READ,
    WRITE,
    OPERATIONS
};
static const char *const names[OPERATIONS] = { "Send", "SendAndInvalidate", "Read", "Write" };

static HRESULT start(struct v1 *v1, enum operation operation, ND_RESULT *result, const ND_SGE *sge,
                     const ND_MW_DESCRIPTOR *mw)
{
    switch (operation) {
    case SEND:
        return CALL(v1->endpoint, Send, result, sge, 1, 0);
    case SEND_INVALIDATE:
        return CALL(v1->endpoint, SendAndInvalidate, result, sge, 1, mw, 0);
    case READ:
        return CALL(v1->endpoint, Read, result, sge, 1, mw, 0, 0);
    default:
        return CALL(v1->endpoint, Write, result, sge, 1, mw, 0, 0);
    }
}

/* A message of 1,024 bytes to a receive of `room`, or none (-1); its region is gone, or the peer's end is in error; the first
 * error ends everything else. */
static void fails(enum operation operation, int room, bool stale, bool peer_in_error, HRESULT status, HRESULT also)
{
    ND_RESULT received, result, later;
    INDMemoryWindow *window;
    ND_MW_DESCRIPTOR mw;
    ND_RESULT revoked, binding;
    struct two two;
    struct v1 *near = &two.near, *far = &two.far;
    ND_MR_HANDLE mr;
    ND_SGE sge;

    two_open(&two);
    v1_self_connect(near, far);
    ok_status(CALL(far->adapter, CreateMemoryWindow, &revoked, &window), ND_SUCCESS);
    ok_status(CALL(far->endpoint, Bind, &binding, far->mr, window, far->buffer, 4096,
                   ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE, &mw),
              ND_SUCCESS);
    ok_v1_result(far, &binding, ND_SUCCESS);
    sge = v1_sge(near, 0, 1024);
    if (stale) {
        ok_status(v1_register(near, near->buffer, 4096, &mr), ND_SUCCESS);
        ok_status(v1_finish(near->adapter, CALL(near->adapter, DeregisterMemory, mr, &near->ov), &near->ov),
                  ND_SUCCESS);
        sge.hMr = mr;
    }
    if (room >= 0)
        v1_receive(far, &received, 0, (SIZE_T)room);
    if (peer_in_error)
        ok_status(CALL(far->endpoint, Flush), ND_SUCCESS);
    ok_status(start(near, operation, &result, &sge, &mw), ND_SUCCESS);
    sge = v1_sge(near, 0, 8);
    ok_status(start(near, operation, &later, &sge, &mw), ND_SUCCESS);
    ok_ptr(v1_next(near), ==, &result);
    ok_msg(result.Status == status || result.Status == also, "%s: 0x%08x %s", names[operation], (unsigned)result.Status,
           ndverbs_status_text(result.Status));
    ok_v1_result(near, &later, ND_CANCELED);
    v1_none(near);
    release_last(window);
    v1_drop(near);
    v1_drop(far);
    empty(&two);
    two_close(&two);
}

static void only_ib(void)
{
    if (runner_iwarp())
        harness_skip("iWARP ends the connection, and tells the sender little (README.md)");
}

ALONE(region_is_gone)
{
    only_ib();
    for (int i = 0; i < OPERATIONS; i++)
        fails((enum operation)i, 1024, true, false, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION);
}

/* Version 1 calls a peer that does not answer ND_TIMEOUT, which is no failure to FAILED(). */
ALONE(peer_is_silent)
{
    only_ib();
    setenv("NDVERBS_ACK_TIMEOUT", "12", 1);
    for (int i = 0; i < OPERATIONS; i++)
        fails((enum operation)i, 1024, false, true, ND_TIMEOUT, ND_TIMEOUT);
}

/* The receiver may be in error before its device has answered (README.md, lib/doc/deviations.md). */
ALONE(message_too_long)
{
    only_ib();
    setenv("NDVERBS_ACK_TIMEOUT", "12", 1);
    fails(SEND, 1023, false, false, (HRESULT)STATUS_DATA_ERROR, ND_TIMEOUT);
    fails(SEND_INVALIDATE, 1023, false, false, (HRESULT)STATUS_DATA_ERROR, ND_TIMEOUT);
}

/* ---- an answer that never arrives ---- */

/* As ends.accept_never_completed, and shorter: nothing comes through any more once the request has, and both kernels give up. */
LONG_ALONE(reply_lost)
{
    const char *const netdevs[] = { runner_env("NDVERBS_NETDEV"), runner_env("NDVERBS_PEER_NETDEV") };
    HRESULT connected, accepted;
    ND_RESULT received;
    union endpoint to;
    INDListen *listen;
    struct v1 a, b;
    USHORT port = 0;

    runner_need_lossy_wire();
    to = endpoint_from(runner_env("NDVERBS_PEER_ADDR"));
    v1_open(&a, 4096);
    v1_open_at(&b, &to, 4096);
    ok_status(CALL(b.adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(&b, port);
    v1_make_connector(&a);
    v1_make_endpoint(&a);
    v1_make_connector(&b);
    connected = CALL(a.connector, Connect, a.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &a.ov);
    ok_status(connected, ND_PENDING);
    v1_request(&b, listen);
    v1_make_endpoint(&b);
    v1_receive(&b, &received, 0, 64);
    for (int i = 0; i < 2; i++)
        runner_lose(netdevs[i], 100);
    accepted = CALL(b.connector, Accept, b.endpoint, NULL, 0, &b.ov);
    ok_status(accepted, ND_PENDING);
    ok_status(V1_FINISH(&b, accepted), ND_TIMEOUT);
    ok_v1_result(&b, &received, ND_CANCELED);
    ok_status(V1_FINISH(&a, connected), ND_TIMEOUT);
    for (int i = 0; i < 2; i++)
        runner_mend(netdevs[i]);
    release_last(listen);
    v1_close(&a);
    v1_close(&b);
}

/* ---- a time-out to a completion port ---- */

ALONE(timeout_is_no_failure_to_a_port)
{
    union endpoint to;
    OVERLAPPED *got = NULL;
    ULONG_PTR key = 0;
    DWORD bytes;
    struct v1 v1;
    HANDLE port;

    if (!runner_machine() || runner_wire() || runner_iwarp())
        harness_skip("needs an address that takes packets and never answers");
    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "300", 1);
    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    port = CreateIoCompletionPort(CALL(v1.adapter, GetFileHandle), NULL, 5, 0);
    ok(port != NULL);
    to = endpoint_from("10.8.0.77");
    endpoint_set_port(&to, 4711);
    v1.ov.hEvent = NULL;
    for (int i = 0; i < 2; i++) { /* the same connector and endpoint try again */
        ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &v1.ov),
                  ND_PENDING);
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
        ok_ptr(got, ==, &v1.ov);
        ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_TIMEOUT);
    }
    v1.ov.hEvent = v1.event;
    v1_close(&v1);
    ok(CloseHandle(port));
}

RUNNER_MAIN
