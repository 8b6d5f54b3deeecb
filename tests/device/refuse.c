/* SPDX-License-Identifier: MIT */
/* Connections that do not come about: refused, unreachable, given up, cancelled. ndspi.md 4.2, 4.5, 2.5. */
#include "session.h"

#include <stdlib.h>

/* Rejections with data, then the same connector and queue pair connect, and their receives are used in order. */

static const ULONG reject_sizes[] = { 0, 1, 60, 148 };
#define REJECTIONS 4

/* tests/lists: A39, D10. */
SERVER(reject_then_connect)
{
    IND2Listener *listener;
    BYTE data[256];
    struct host host;
    struct link link;

    host_open(&host);
    listener = listen_any(&host);
    pattern_fill(data, sizeof(data), 5);
    for (int i = 0; i < REJECTIONS; i++) {
        link_make(&link, &host, NULL);
        link_request(&link, listener);
        ok_status(CALL(link.connector, Reject, data, host.info.MaxCalleeData + 1), ND_INVALID_BUFFER_SIZE);
        ok_status(CALL(link.connector, Reject, (void *)8, 8), ND_ACCESS_VIOLATION);
        ok_status(CALL(link.connector, Reject, data, reject_sizes[i]), ND_SUCCESS);
        ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
        ok_status(link_try_accept(&link), ND_CONNECTION_INVALID);
        link_drop(&link);
    }
    link_make(&link, &host, NULL);
    link_accept(&link, listener);
    runner_settle();
    for (ULONG i = 0; i < 4; i++) {
        pattern_fill(link.buffer, 100, i);
        post_send(&link, i, 0, 100, 0);
        ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    }
    runner_sync();
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(reject_then_connect)
{
    union endpoint to;
    BYTE data[256];
    struct host host;
    struct link link;
    ULONG size;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    for (ULONG i = 0; i < 4; i++)
        post_receive(&link, i, i * 200, 200);
    link_bind(&link);
    for (int i = 0; i < REJECTIONS; i++) {
        ok_status(link_try_connect(&link, &to), ND_CONNECTION_REFUSED);
        size = sizeof(data);
        memset(data, 0xee, sizeof(data));
        ok_status(CALL(link.connector, GetPrivateData, data, &size), ND_SUCCESS);
        ok_uint(size, >=, reject_sizes[i]);
        ok_uint(size, <=, 148);
        pattern_check(data, reject_sizes[i], 5);
        ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
        ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
        result_none(link.cq);
    }
    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    runner_settle();
    for (ULONG i = 0; i < 4; i++) {
        ok_result(link.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
        pattern_check(link.buffer + i * 200, 100, i);
    }
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

/* Nobody listens, or the listener goes. */

ALONE(no_listener)
{
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    release_last(listener);
    listener_gone(&to);
    link_bind(&active);
    for (int i = 0; i < 3; i++)
        ok_status(link_try_connect(&active, &to), ND_CONNECTION_REFUSED);
    /* Somebody does now. */
    listener = listen_at(&host, &to, 0);
    release_last(active.connector);
    link_make_connector(&active);
    self_connect(&active, &passive, listener, &to);
    link_drop(&active);
    link_drop(&passive);
    release_last(listener);
    host_close(&host);
}

SERVER(listener_released_with_a_request)
{
    IND2Listener *listener;
    struct host host;

    host_open(&host);
    listener = listen_any(&host);
    runner_sync();
    Sleep(300); /* lets the request arrive; the result is the same if it comes too late */
    release_last(listener);
    runner_sync();
    host_close(&host);
}

CLIENT(listener_released_with_a_request)
{
    union endpoint to;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov);
    runner_sync();
    ok_status(FINISH(&link, hr), ND_CONNECTION_REFUSED);
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

/* More requests than the backlog allows are refused, not left to time out. */

SERVER(backlog_full)
{
    IND2Listener *listener;
    struct link link;
    struct host host;
    union endpoint address;
    USHORT port;

    setenv("NDVERBS_LISTEN_QUEUE_MAX", "1", 1);
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_at(&host, &host.address, 1);
    address = listener_endpoint(listener);
    port = endpoint_port(&address);
    runner_put(&port, sizeof(port));
    runner_sync(); /* the third was refused */
    for (int i = 0; i < 2; i++) {
        link_request(&link, listener);
        ok_status(CALL(link.connector, Reject, NULL, 0), ND_SUCCESS);
        release_last(link.connector);
        link_make_connector(&link);
    }
    runner_sync();
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(backlog_full)
{
    struct link links[3];
    HRESULT hr = ND_PENDING;
    union endpoint to;
    struct host host;
    int refused = 0;

    host_open(&host);
    to = listener_of_peer();
    for (int i = 0; i < 3; i++) {
        link_make(&links[i], &host, NULL);
        link_bind(&links[i]);
        hr = CALL(links[i].connector, Connect, (IUnknown *)links[i].qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0,
                  &links[i].ov);
        ok_status(hr, ND_PENDING);
    }
    /* They arrive in any order: the last one is refused. */
    while (hr == ND_PENDING) {
        refused = (refused + 1) % 3;
        hr = CALL((IND2Overlapped *)links[refused].connector, GetOverlappedResult, &links[refused].ov, FALSE);
        harness_yield();
    }
    ok_status(hr, ND_CONNECTION_REFUSED);
    for (int i = 1; i < 3; i++)
        ok_pending(links[(refused + i) % 3].connector, &links[(refused + i) % 3].ov);
    runner_sync();
    for (int i = 1; i < 3; i++)
        ok_status(FINISH(&links[(refused + i) % 3], ND_PENDING), ND_CONNECTION_REFUSED);
    runner_sync();
    for (int i = 0; i < 3; i++)
        link_drop(&links[i]);
    host_close(&host);
}

/* Destinations that cannot be reached. */

static HRESULT connect_to(struct link *link, const char *address)
{
    union endpoint to = endpoint_from(address);

    endpoint_set_port(&to, 4711);
    return link_try_connect(link, &to);
}

ALONE(unreachable)
{
    struct link link, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    if (!runner_machine())
        harness_skip("the routes of this host are not known");
    setenv("NDVERBS_RESOLVE_TIMEOUT_MS", "800", 1);
    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "1500", 1);
    host_open(&host);
    link_make(&link, &host, NULL);
    link_make(&passive, &host, NULL);
    link_bind(&link);
    ok_status(connect_to(&link, "0.0.0.0"), STATUS_BAD_NETWORK_NAME);
    ok_status(connect_to(&link, "203.0.113.9"), ND_NETWORK_UNREACHABLE);
    if (runner_wire()) {
        /* On the wire, nobody answers for it: address resolution fails. */
        ok_status(connect_to(&link, "10.9.0.77"), ND_HOST_UNREACHABLE);
    } else if (!runner_iwarp()) {
        /* No address resolution on a dummy interface: the request is never answered. */
        ok_status(connect_to(&link, "10.8.0.77"), ND_IO_TIMEOUT);
    } else {
        /* Nor is TCP's, but the kernel keeps trying for two minutes, and the queue pair for it. */
        struct link lost;

        link_make(&lost, &host, NULL);
        link_bind(&lost);
        ok_status(connect_to(&lost, "10.8.0.77"), ND_IO_TIMEOUT);
        ok_status(connect_to(&lost, "10.8.0.77"), ND_CONNECTION_ACTIVE);
        link_drop(&lost);
    }
    /* Connector, port and queue pair are as before. */
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    self_meet(&link, &passive, listener, &to);
    link_drop(&link);
    link_drop(&passive);
    release_last(listener);
    host_close(&host);
}

/* Something else than an RDMA device listens there. Each connector fails for good, the queue pair connects elsewhere. */
ALONE(answer_of_something_else)
{
    struct link link, passive;
    struct stranger stranger;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    if (!runner_iwarp())
        harness_skip("only iWARP connects over TCP");
    host_open(&host);
    link_make(&link, &host, NULL);
    link_make(&passive, &host, NULL);
    stranger_begin(&stranger, &host.address, 3);
    for (int i = 0; i < 3; i++) {
        link_bind(&link);
        ok_status(link_try_connect(&link, &stranger.at), ND_CONNECTION_ABORTED);
        ok(FAILED(link_try_connect(&link, &stranger.at)));
        result_none(link.cq);
        release_last(link.connector);
        link_make_connector(&link);
    }
    stranger_end(&stranger);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    self_connect(&link, &passive, listener, &to);
    link_drop(&link);
    link_drop(&passive);
    release_last(listener);
    host_close(&host);
}

/* The active side backs out after the reply: Accept is refused (NdConnReject, NdConnClose; A10). */

enum way_out {
    WAY_REJECT,
    WAY_RELEASE,
    WAY_EXIT
};

static void back_out_server(void)
{
    IND2Listener *listener;
    struct host host;
    struct link link;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once the acceptor has replied");
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    post_receive(&link, 1, 0, 64);
    link_request(&link, listener);
    ok_status(link_try_accept(&link), ND_CONNECTION_REFUSED);
    /* The connector is of no more use; the queue pair's receive comes back. */
    ok(FAILED(link_try_accept(&link)));
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

static void back_out_client(enum way_out way)
{
    union endpoint to;
    BYTE data[20];
    static struct host host; /* found by the leak checker when main has returned, WAY_EXIT */
    static struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    pattern_fill(data, sizeof(data), 8);
    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    if (way == WAY_EXIT)
        return; /* the process ends with everything open */
    if (way == WAY_REJECT)
        ok_status(CALL(link.connector, Reject, data, sizeof(data)), ND_SUCCESS);
    else
        release_last(link.connector), link.connector = NULL;
    link_drop(&link);
    host_close(&host);
}

SERVER(active_rejects_the_reply)
{
    back_out_server();
}

CLIENT(active_rejects_the_reply)
{
    back_out_client(WAY_REJECT);
}

SERVER(active_releases_after_the_reply)
{
    back_out_server();
}

CLIENT(active_releases_after_the_reply)
{
    back_out_client(WAY_RELEASE);
}

SERVER(active_ends_after_the_reply)
{
    back_out_server();
}

CLIENT(active_ends_after_the_reply)
{
    back_out_client(WAY_EXIT);
}

/* The passive side is gone between its reply and CompleteConnect. */

SERVER(passive_ends_after_the_reply)
{
    static IND2Listener *volatile listener; /* found by the leak checker when main has returned */
    static struct host host;
    static struct link link;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once the acceptor has replied");
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    link_request(&link, listener);
    ok_status(CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, NULL, 0, &link.ov), ND_PENDING);
    runner_sync();
}

CLIENT(passive_ends_after_the_reply)
{
    struct link link, other;
    union endpoint to;
    struct host host;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    link_make(&other, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    link_bind(&other);
    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    runner_sync();
    /* Once its end is known the queue pair is free for another connector. */
    while ((hr = CALL(other.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0,
                      &other.ov)) == ND_CONNECTION_ACTIVE)
        Sleep(10);
    ok_status(hr, ND_PENDING);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_CONNECTION_ABORTED);
    link_drop(&other);
    link_drop(&link);
    host_close(&host);
}

/* The active side gives up before Accept: cancelled (the connector may connect again) or released. */

static void give_up_server(void)
{
    IND2Listener *listener;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    link_request(&link, listener);
    runner_sync(); /* it is in our hands */
    runner_sync(); /* it was given up */
    Sleep(1000);
    if (runner_iwarp()) {
        /* The acceptor may win: then it learns by the disconnect. */
        HRESULT hr = link_try_accept(&link);

        ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_SUCCESS, "Accept: 0x%08x", (unsigned)hr);
    } else {
        ok_status(link_try_accept(&link), ND_CONNECTION_ABORTED);
        ok(FAILED(CALL(link.connector, Reject, NULL, 0)));
    }
    /* The next request is taken by another connector. */
    release_last(link.connector);
    release_last(link.qp);
    link_make_qp(&link);
    link_make_connector(&link);
    link_accept(&link, listener);
    runner_sync();
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

static void give_up_client(bool release)
{
    union endpoint to;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    post_receive(&link, 3, 0, 64);
    link_bind(&link);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    ok_pending(link.connector, &link.ov);
    if (release) {
        release_last(link.connector);
        ok_internal(&link.ov, ND_CANCELED);
        link_make_connector(&link);
        link_bind(&link);
    } else {
        ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);
        ok_status(CALL((IND2Overlapped *)link.connector, GetOverlappedResult, &link.ov, FALSE), ND_CANCELED);
    }
    result_none(link.cq);
    runner_sync();
    /* On iWARP the queue pair is busy until the kernel's call has come back. */
    while ((hr = link_try_connect(&link, &to)) == ND_CONNECTION_ACTIVE && runner_iwarp())
        Sleep(10);
    ok_status(hr, ND_SUCCESS);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

SERVER(connect_cancelled)
{
    give_up_server();
}

CLIENT(connect_cancelled)
{
    give_up_client(false);
}

SERVER(connector_released_while_connecting)
{
    give_up_server();
}

CLIENT(connector_released_while_connecting)
{
    give_up_client(true);
}

/* Cancelling Accept and CompleteConnect ends the attempt. */

SERVER(accept_cancelled)
{
    IND2Listener *listener;
    struct host host;
    struct link link;

    if (runner_iwarp())
        harness_skip("iWARP: Accept completes by itself");
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    for (int i = 0; i < 2; i++) {
        post_receive(&link, 4, 0, 64);
        link_request(&link, listener);
        ok_status(CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, NULL, 0, &link.ov), ND_PENDING);
        runner_sync(); /* the other side has the reply and does not complete */
        ok_pending(link.connector, &link.ov);
        if (i == 0)
            ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);
        else
            release_last(link.connector);
        ok_internal(&link.ov, ND_CANCELED);
        runner_sync();
        ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 4);
        if (i == 0)
            release_last(link.connector);
        release_last(link.qp);
        link_make_qp(&link);
        link_make_connector(&link);
    }
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(accept_cancelled)
{
    union endpoint to;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    for (int i = 0; i < 2; i++) {
        link_bind(&link);
        ok_status(link_try_connect(&link, &to), ND_SUCCESS);
        runner_sync();
        runner_sync();
        Sleep(200);
        hr = FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov));
        ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_CONNECTION_INVALID || hr == ND_IO_TIMEOUT, "0x%08x",
               (unsigned)hr);
        release_last(link.connector);
        release_last(link.qp);
        link_make_qp(&link);
        link_make_connector(&link);
    }
    link_drop(&link);
    host_close(&host);
}

/* GetConnectionRequest: cancelled in order, connectors are idle again; completed by the listener's release. */
ALONE(requests_cancelled)
{
    struct link links[4], active;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    host_open(&host);
    link_make(&active, &host, NULL);
    listener = listen_any(&host);
    for (int i = 0; i < 4; i++)
        link_make(&links[i], &host, NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)links[i].connector, &links[i].ov), ND_PENDING);
        ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)links[2].connector, &active.ov),
                  ND_CONNECTION_ACTIVE);
        ok(FAILED(CALL(links[1].connector, Bind, &host.address.any, endpoint_size(&host.address))));
        if (round == 2) {
            release_last(listener);
        } else {
            ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
            ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
        }
        for (int i = 0; i < 4; i++) {
            ok_internal(&links[i].ov, ND_CANCELED);
            ok_int(WaitForSingleObject(links[i].event, 0), ==, WAIT_OBJECT_0);
        }
    }
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    self_connect(&active, &links[3], listener, &to);
    release_last(links[0].connector);
    links[0].connector = NULL;
    for (int i = 0; i < 4; i++)
        link_drop(&links[i]);
    link_drop(&active);
    release_last(listener);
    host_close(&host);
}

/* A connector whose last reference goes while it waits for a request; the listener goes on. */
ALONE(connector_released_while_queued)
{
    struct link links[2], active;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&links[0], &host, NULL);
    link_make(&links[1], &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)links[0].connector, &links[0].ov), ND_PENDING);
    CALL(links[0].connector, Release);
    links[0].connector = NULL;
    /* The provider holds the connector while the request pends: it completes with the listener at the latest. */
    if (links[0].ov.Internal == ND_PENDING)
        ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
    ok_internal(&links[0].ov, ND_CANCELED);
    self_connect(&active, &links[1], listener, &to);
    link_drop(&links[0]);
    link_drop(&links[1]);
    link_drop(&active);
    release_last(listener);
    host_close(&host);
}

RUNNER_MAIN
