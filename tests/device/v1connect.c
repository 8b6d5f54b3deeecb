/* SPDX-License-Identifier: MIT */
/* Version 1: connections, from the request to the disconnect, and those that do not come about. ndspi-v1.md 9 and 10. */
#include "v1side.h"

#include <stdlib.h>

/* The call sequence of a real application (ndspi-v1.md 11): every completion by the port that the adapter's file is
 * attached to, receives posted in a batch, private data both ways. */

#define RECEIVES 8

static void take(HANDLE port, OVERLAPPED *wanted)
{
    OVERLAPPED *got = NULL;
    ULONG_PTR key = 0;
    DWORD bytes;

    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok_ptr(got, ==, wanted);
    ok_uint(key, ==, 7);
}

static HANDLE attach(struct v1 *v1)
{
    HANDLE port = CreateIoCompletionPort(CALL(v1->adapter, GetFileHandle), NULL, 7, 0);

    ok(port != NULL);
    v1->ov.hEvent = NULL; /* no event: everything goes to the port */
    return port;
}

static void post_batch(struct v1 *v1, ND_RESULT *results)
{
    CALL_VOID(v1->endpoint, StartRequestBatch);
    for (int i = 0; i < RECEIVES; i++)
        v1_receive(v1, &results[i], (SIZE_T)i * 64, 64);
    CALL_VOID(v1->endpoint, SubmitRequestBatch);
}

/* Notify by the port, then the messages in order. */
static void messages(struct v1 *v1, HANDLE port, ND_RESULT *results, OVERLAPPED *notify)
{
    for (int seen = 0; seen < RECEIVES / 2;) {
        ND_RESULT *got[RECEIVES];
        SIZE_T n;

        ok_status(CALL(v1->cq, Notify, ND_CQ_NOTIFY_ANY, notify), ND_PENDING);
        take(port, notify);
        ok_status(CALL(v1->cq, GetOverlappedResult, notify, NULL, FALSE), ND_SUCCESS);
        n = CALL(v1->cq, GetResults, got, RECEIVES);
        for (SIZE_T i = 0; i < n; i++, seen++) {
            ok_ptr(got[i], ==, &results[seen]);
            pair_result_v1(got[i]);
            ok_status(got[i]->Status, ND_SUCCESS);
            ok_uint(got[i]->BytesTransferred, ==, 10 + seen);
            pattern_check(v1->buffer + seen * 64, 10 + seen, (ULONG)seen);
        }
    }
}

SERVER(session)
{
    OVERLAPPED request, closed, notify;
    ND_RESULT results[RECEIVES];
    SIZE_T in = 9, out = 9, size = 4;
    union endpoint peer;
    INDListen *listen;
    BYTE data[200];
    struct v1 v1;
    HANDLE port;

    v1_open(&v1, 4096);
    port = attach(&v1);
    overlapped_rubbish(&request, NULL);
    overlapped_rubbish(&closed, NULL);
    overlapped_rubbish(&notify, NULL);
    listen = v1_listen(&v1);
    v1_make_connector(&v1);
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, &request), ND_PENDING);
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, &closed), ND_CONNECTION_ACTIVE);
    take(port, &request);
    ok_status(CALL(listen, GetOverlappedResult, &request, NULL, FALSE), ND_SUCCESS);
    memset(data, 0xee, sizeof(data));
    ok_status(CALL(v1.connector, GetConnectionData, &in, &out, data, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, >=, 28);
    pattern_check(data, 4, 3);
    ok_int(data[4], ==, 0xee);
    size = sizeof(data);
    ok_status(CALL(v1.connector, GetConnectionData, NULL, NULL, data, &size), ND_SUCCESS);
    pattern_check(data, 28, 3);
    ok_uint(in, ==, 1);
    ok_uint(out, ==, 1);
    size = 3;
    ok_status(CALL(v1.connector, GetPeerAddress, &peer.any, &size), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.connector, GetPeerAddress, &peer.any, &size), ND_SUCCESS);
    ok_uint(size, ==, endpoint_size(&peer));
    ok_int(endpoint_port(&peer), !=, 0);
    ok_status(CALL(v1.connector, CreateEndpoint, v1.cq, v1.cq, RECEIVES, 4, 1, 1, in, out, NULL, &v1.endpoint),
              ND_SUCCESS);
    post_batch(&v1, results);
    pattern_fill(data, 148, 4);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, data, v1.info.MaxCalleeData + 1, &v1.ov), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, (void *)8, 8, &v1.ov), ND_ACCESS_VIOLATION);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, data, v1.info.MaxCalleeData, &v1.ov), ND_PENDING);
    take(port, &v1.ov);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_SUCCESS);
    ok_status(CALL(v1.connector, NotifyDisconnect, &closed), ND_PENDING);
    runner_settle();
    messages(&v1, port, results, &notify);
    runner_sync();
    /* The rest comes back when the peer is gone, behind NotifyDisconnect. */
    take(port, &closed);
    ok_status(CALL(v1.connector, GetOverlappedResult, &closed, NULL, FALSE), ND_SUCCESS);
    for (int i = RECEIVES / 2; i < RECEIVES; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    ok_status(CALL(v1.connector, Disconnect, &v1.ov), ND_PENDING);
    take(port, &v1.ov);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_SUCCESS);
    ok_status(CALL(v1.connector, Disconnect, &v1.ov), ND_CONNECTION_INVALID);
    v1.ov.hEvent = v1.event;
    release_last(listen);
    v1_close(&v1);
    ok(CloseHandle(port));
}

CLIENT(session)
{
    union endpoint to, local, peer;
    ND_RESULT results[RECEIVES], sends[RECEIVES / 2];
    SIZE_T in = 9, out = 9, size = sizeof(local);
    ND_MW_DESCRIPTOR mw = { 0 };
    OVERLAPPED closed;
    BYTE data[200];
    struct v1 v1;
    HANDLE port;

    v1_open(&v1, 4096);
    port = attach(&v1);
    overlapped_rubbish(&closed, NULL);
    to = listener_of_peer();
    v1_make_connector(&v1);
    ok_status(CALL(v1.connector, Connect, NULL, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &v1.ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.connector, CompleteConnect, &v1.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, NotifyDisconnect, &v1.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, Disconnect, &v1.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, GetConnectionData, &in, &out, data, &size), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, GetLocalAddress, &local.any, &size), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.connector, GetPeerAddress, &local.any, &size), ND_CONNECTION_INVALID);
    v1_make_endpoint(&v1);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, NULL, 0, &v1.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.endpoint, Send, &sends[0], NULL, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &sends[0], NULL, 0, &mw, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.endpoint, Read, &sends[0], NULL, 0, &mw, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(v1.endpoint, Write, &sends[0], NULL, 0, &mw, 0, 0), ND_CONNECTION_INVALID);
    post_batch(&v1, results);
    pattern_fill(data, sizeof(data), 3);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, data,
                   v1.info.MaxCallerData + 1, &v1.ov),
              ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 256, 0, NULL, 0, &v1.ov),
              ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, 3, 123, 0, NULL, 0, &v1.ov), ND_INVALID_ADDRESS);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, NULL),
              ND_INVALID_PARAMETER);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, (void *)8, 8, &v1.ov),
              ND_ACCESS_VIOLATION);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, data, 28, &v1.ov),
              ND_PENDING);
    ok_status(CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, data, 28, &closed),
              ND_CONNECTION_ACTIVE);
    take(port, &v1.ov);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_SUCCESS);
    size = 1;
    ok_status(CALL(v1.connector, GetConnectionData, &in, &out, data, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, v1.info.MaxCalleeData);
    pattern_check(data, 1, 4);
    ok_uint(in, ==, 1);
    ok_uint(out, ==, 1);
    size = sizeof(data);
    ok_status(CALL(v1.connector, GetConnectionData, NULL, NULL, data, &size), ND_SUCCESS);
    pattern_check(data, 148, 4);
    ok_status(CALL(v1.connector, CompleteConnect, &v1.ov), ND_PENDING);
    take(port, &v1.ov);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_SUCCESS);
    ok_status(CALL(v1.connector, GetLocalAddress, &local.any, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.connector, GetPeerAddress, &peer.any, NULL), ND_INVALID_PARAMETER_2);
    size = 2;
    ok_status(CALL(v1.connector, GetLocalAddress, &local.any, &size), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.connector, GetLocalAddress, &local.any, &size), ND_SUCCESS);
    ok_uint(size, ==, endpoint_size(&local));
    ok_int(endpoint_port(&local), !=, 0);
    size = sizeof(peer);
    ok_status(CALL(v1.connector, GetPeerAddress, &peer.any, &size), ND_SUCCESS);
    ok_mem(&peer, &to, size);
    ok_status(CALL(v1.connector, NotifyDisconnect, &closed), ND_PENDING);
    runner_settle();
    CALL_VOID(v1.endpoint, StartRequestBatch);
    for (int i = 0; i < RECEIVES / 2; i++) {
        pattern_fill(v1.buffer + 1024 + i * 64, 10 + (SIZE_T)i, (ULONG)i);
        v1_send(&v1, &sends[i], 1024 + (SIZE_T)i * 64, 10 + (SIZE_T)i, ND_OP_FLAG_READ_FENCE);
    }
    CALL_VOID(v1.endpoint, SubmitRequestBatch);
    for (int i = 0; i < RECEIVES / 2; i++) {
        ok_v1_result(&v1, &sends[i], ND_SUCCESS);
        ok_uint(sends[i].BytesTransferred, ==, 10 + i);
    }
    runner_sync(); /* or the end may overtake the last Notify */
    ok_status(CALL(v1.connector, Disconnect, &v1.ov), ND_PENDING);
    take(port, &closed); /* success, and before the Disconnect */
    take(port, &v1.ov);
    ok_status(CALL(v1.connector, GetOverlappedResult, &closed, NULL, FALSE), ND_SUCCESS);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_SUCCESS);
    for (int i = 0; i < RECEIVES; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_none(&v1);
    v1.ov.hEvent = v1.event;
    v1_close(&v1);
    ok(CloseHandle(port));
}

/* A connector has one endpoint at a time, and connects again with a new one after a Disconnect. */

#define AGAIN 3

SERVER(connector_again)
{
    INDListen *listen;
    struct v1 v1;

    v1_open(&v1, 4096);
    listen = v1_listen(&v1);
    for (int i = 0; i < AGAIN; i++) {
        ND_RESULT result;

        v1_accept(&v1, listen);
        v1_receive(&v1, &result, 0, 64);
        runner_sync();
        ok_v1_result(&v1, &result, ND_SUCCESS);
        ok_uint(result.BytesTransferred, ==, 10 + i);
        runner_sync();
        v1_disconnect(&v1);
        v1_drop(&v1);
    }
    release_last(listen);
    v1_close(&v1);
}

CLIENT(connector_again)
{
    INDEndpoint *second;
    union endpoint to;
    struct v1 v1;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    for (int i = 0; i < AGAIN; i++) {
        ND_RESULT result;

        v1_connect(&v1, &to);
        ok_status(CALL(v1.connector, CreateEndpoint, v1.cq, v1.cq, 1, 1, 1, 1, 0, 0, NULL, &second), ND_NOT_SUPPORTED);
        runner_sync();
        v1_send(&v1, &result, 0, 10 + (SIZE_T)i, 0);
        ok_v1_result(&v1, &result, ND_SUCCESS);
        runner_sync();
        v1_disconnect(&v1);
        ok_status(V1_FINISH(&v1, CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0,
                                      &v1.ov)),
                  ND_CONNECTION_ACTIVE);
        release_last(v1.endpoint);
        v1.endpoint = NULL;
    }
    v1_close(&v1);
}

/* Rejections with data, then the same connector and endpoint connect, and their receives are used in order. */

static const SIZE_T reject_sizes[] = { 0, 1, 148 };

SERVER(reject_then_connect)
{
    INDListen *listen;
    ND_RESULT sent;
    BYTE data[200];
    struct v1 v1;

    v1_open(&v1, 4096);
    listen = v1_listen(&v1);
    pattern_fill(data, sizeof(data), 5);
    for (size_t i = 0; i < _countof(reject_sizes); i++) {
        v1_make_connector(&v1);
        v1_request(&v1, listen);
        ok_status(CALL(v1.connector, Reject, data, v1.info.MaxCalleeData + 1), ND_BUFFER_OVERFLOW);
        ok_status(CALL(v1.connector, Reject, (void *)8, 8), ND_ACCESS_VIOLATION);
        ok_status(CALL(v1.connector, Reject, data, reject_sizes[i]), ND_SUCCESS);
        ok_status(CALL(v1.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
        v1_drop(&v1);
    }
    v1_accept(&v1, listen);
    runner_settle();
    pattern_fill(v1.buffer, 100, 1);
    v1_send(&v1, &sent, 0, 100, 0);
    ok_v1_result(&v1, &sent, ND_SUCCESS);
    runner_sync();
    release_last(listen);
    v1_close(&v1);
}

CLIENT(reject_then_connect)
{
    ND_RESULT received;
    union endpoint to;
    BYTE data[200];
    struct v1 v1;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    v1_receive(&v1, &received, 0, 200);
    for (size_t i = 0; i < _countof(reject_sizes); i++) {
        SIZE_T size = sizeof(data), in = 9, out = 9;

        ok_status(v1_try_connect(&v1, &to), ND_CONNECTION_REFUSED);
        ok_status(CALL(v1.connector, GetConnectionData, &in, &out, data, &size), ND_SUCCESS);
        ok_uint(size, >=, reject_sizes[i]);
        pattern_check(data, reject_sizes[i], 5);
        ok_uint(in, ==, 0);
        ok_uint(out, ==, 0);
        v1_none(&v1);
    }
    ok_status(v1_try_connect(&v1, &to), ND_SUCCESS);
    ok_status(V1_FINISH(&v1, CALL(v1.connector, CompleteConnect, &v1.ov)), ND_SUCCESS);
    runner_settle();
    ok_v1_result(&v1, &received, ND_SUCCESS);
    pattern_check(v1.buffer, 100, 1);
    runner_sync();
    v1_close(&v1);
}

/* Nobody there. A time-out is ND_TIMEOUT, which a port takes for a success; the same connector tries again. */

static HRESULT connect_to(struct v1 *v1, const char *address)
{
    union endpoint to = endpoint_from(address);

    endpoint_set_port(&to, 4711);
    return v1_try_connect(v1, &to);
}

ALONE(unreachable)
{
    struct v1 v1;

    if (!runner_machine())
        harness_skip("the routes of this host are not known");
    setenv("NDVERBS_RESOLVE_TIMEOUT_MS", "800", 1);
    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "1500", 1);
    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    ok_status(connect_to(&v1, "0.0.0.0"), STATUS_BAD_NETWORK_NAME);
    ok_status(connect_to(&v1, "203.0.113.9"), ND_NETWORK_UNREACHABLE);
    ok_status(connect_to(&v1, own_address()), ND_CONNECTION_REFUSED);
    if (runner_wire()) {
        ok_status(connect_to(&v1, "10.9.0.77"), ND_HOST_UNREACHABLE);
    } else if (!runner_iwarp()) {
        for (int i = 0; i < 2; i++)
            ok_status(connect_to(&v1, "10.8.0.77"), ND_TIMEOUT);
    }
    ok_status(connect_to(&v1, own_address()), ND_CONNECTION_REFUSED);
    /* TCP, too, is never answered on a dummy interface, but the kernel keeps trying for two minutes. */
    if (runner_iwarp() && !runner_wire())
        ok_status(connect_to(&v1, "10.8.0.77"), ND_TIMEOUT);
    v1_close(&v1);
}

/* Something else than an RDMA device listens there. */
ALONE(answer_of_something_else)
{
    struct stranger stranger;
    struct v1 v1;

    if (!runner_iwarp())
        harness_skip("only iWARP connects over TCP");
    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    stranger_begin(&stranger, &v1.address, 2);
    for (int i = 0; i < 2; i++)
        ok_status(v1_try_connect(&v1, &stranger.at), ND_CONNECTION_ABORTED);
    stranger_end(&stranger);
    v1_close(&v1);
}

/* Cancelled by either side of the request. */

SERVER(connect_cancelled)
{
    INDListen *listen;
    struct v1 v1;

    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    listen = v1_listen(&v1);
    v1_request(&v1, listen);
    v1_make_endpoint(&v1);
    runner_sync();
    runner_sync(); /* it was given up */
    Sleep(1000);
    if (runner_iwarp()) {
        HRESULT hr = v1_try_accept(&v1);

        ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_SUCCESS, "Accept: 0x%08x", (unsigned)hr);
    } else {
        ok_status(v1_try_accept(&v1), ND_CONNECTION_ABORTED);
    }
    v1_drop(&v1);
    v1_accept(&v1, listen);
    runner_sync();
    release_last(listen);
    v1_close(&v1);
}

CLIENT(connect_cancelled)
{
    union endpoint to;
    struct v1 v1;
    HRESULT hr;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    hr = CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &v1.ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_PENDING);
    ok_status(CALL(v1.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(v1.connector, GetOverlappedResult, &v1.ov, NULL, FALSE), ND_CANCELED);
    runner_sync();
    /* iWARP: the kernel cannot be interrupted in its connect; until it is back the endpoint is taken. */
    while ((hr = v1_try_connect(&v1, &to)) == ND_CONNECTION_ACTIVE && runner_iwarp())
        Sleep(10);
    ok_status(hr, ND_SUCCESS);
    ok_status(V1_FINISH(&v1, CALL(v1.connector, CompleteConnect, &v1.ov)), ND_SUCCESS);
    runner_sync();
    v1_close(&v1);
}

SERVER(reply_rejected)
{
    INDListen *listen;
    struct v1 v1;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once the acceptor has replied");
    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    listen = v1_listen(&v1);
    v1_request(&v1, listen);
    ok_status(v1_try_accept(&v1), ND_CONNECTION_REFUSED);
    release_last(listen);
    v1_close(&v1);
}

CLIENT(reply_rejected)
{
    union endpoint to;
    struct v1 v1;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    ok_status(v1_try_connect(&v1, &to), ND_SUCCESS);
    ok_status(CALL(v1.connector, Reject, "no", 3), ND_SUCCESS);
    v1_close(&v1);
}

SERVER(passive_gone_after_the_reply)
{
    INDListen *listen;
    struct v1 v1;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once the acceptor has replied");
    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    listen = v1_listen(&v1);
    v1_request(&v1, listen);
    v1_make_endpoint(&v1);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, NULL, 0, &v1.ov), ND_PENDING);
    runner_sync();
    release_last(v1.connector);
    v1.connector = NULL;
    ok_status(v1_finish(v1.adapter, ND_PENDING, &v1.ov), ND_CANCELED);
    runner_sync();
    release_last(listen);
    v1_close(&v1);
}

CLIENT(passive_gone_after_the_reply)
{
    union endpoint to;
    struct v1 v1;
    HRESULT hr;

    v1_open(&v1, 4096);
    to = listener_of_peer();
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    ok_status(v1_try_connect(&v1, &to), ND_SUCCESS);
    runner_sync();
    runner_sync();
    Sleep(200);
    hr = V1_FINISH(&v1, CALL(v1.connector, CompleteConnect, &v1.ov));
    ok_msg(hr == ND_CONNECTION_ABORTED || hr == ND_CONNECTION_INVALID, "CompleteConnect: 0x%08x", (unsigned)hr);
    v1_close(&v1);
}

ALONE(requests_cancelled)
{
    INDConnector *more[2];
    OVERLAPPED ov[3];
    INDListen *listen;
    struct v1 v1;

    v1_open(&v1, 4096);
    v1_make_connector(&v1);
    listen = v1_listen(&v1);
    for (int i = 0; i < 3; i++)
        overlapped_rubbish(&ov[i], NULL);
    for (int i = 0; i < 2; i++)
        ok_status(CALL(v1.adapter, CreateConnector, &more[i]), ND_SUCCESS);
    ok_status(CALL(listen, GetConnectionRequest, NULL, &ov[0]), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, &ov[0]), ND_PENDING);
    ok_status(CALL(listen, GetConnectionRequest, more[0], &ov[1]), ND_PENDING);
    ok_status(CALL(listen, CancelOverlappedRequests), ND_SUCCESS);
    for (int i = 0; i < 2; i++)
        ok_status(CALL(listen, GetOverlappedResult, &ov[i], NULL, FALSE), ND_CANCELED);
    /* The connectors are as new; the listener's last Release and a connector's end theirs. */
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, &ov[0]), ND_PENDING);
    ok_status(CALL(listen, GetConnectionRequest, more[0], &ov[1]), ND_PENDING);
    ok_status(CALL(listen, GetConnectionRequest, more[1], &ov[2]), ND_PENDING);
    release_last(more[0]);
    ok_status(CALL(listen, GetOverlappedResult, &ov[1], NULL, FALSE), ND_CANCELED);
    release_last(listen);
    ok_status(CALL(v1.adapter, GetOverlappedResult, &ov[0], NULL, FALSE), ND_CANCELED);
    ok_status(CALL(v1.adapter, GetOverlappedResult, &ov[2], NULL, FALSE), ND_CANCELED);
    release_last(more[1]);
    v1_close(&v1);
}

/* Disconnect by the passive side, with a request of each kind pending. */

SERVER(disconnect)
{
    ND_RESULT results[3];
    OVERLAPPED notify;
    struct v1 v1;

    v1_begin(&v1, 4096);
    overlapped_rubbish(&notify, NULL);
    ok_status(CALL(v1.connector, NotifyDisconnect, &notify), ND_PENDING);
    ok_status(CALL(v1.connector, CancelOverlappedRequests), ND_SUCCESS); /* the connection stays */
    ok_status(CALL(v1.connector, GetOverlappedResult, &notify, NULL, FALSE), ND_CANCELED);
    ok_status(CALL(v1.connector, NotifyDisconnect, &notify), ND_PENDING);
    for (int i = 0; i < 3; i++)
        v1_receive(&v1, &results[i], 0, 64);
    runner_sync();
    v1_disconnect(&v1);
    ok_status(CALL(v1.connector, GetOverlappedResult, &notify, NULL, FALSE), ND_SUCCESS);
    for (int i = 0; i < 3; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_none(&v1);
    v1_send(&v1, &results[0], 0, 8, 0); /* after the end: taken, and cancelled */
    ok_v1_result(&v1, &results[0], ND_CANCELED);
    runner_sync();
    v1_close(&v1);
}

CLIENT(disconnect)
{
    ND_RESULT result;
    OVERLAPPED notify;
    struct v1 v1;

    v1_begin(&v1, 4096);
    overlapped_rubbish(&notify, NULL);
    v1_receive(&v1, &result, 0, 64);
    ok_status(CALL(v1.connector, NotifyDisconnect, &notify), ND_PENDING);
    runner_sync();
    ok_status(v1_finish(v1.connector, ND_PENDING, &notify), ND_SUCCESS);
    ok_v1_result(&v1, &result, ND_CANCELED);
    v1_disconnect(&v1);
    ok_status(V1_FINISH(&v1, CALL(v1.connector, NotifyDisconnect, &v1.ov)), ND_SUCCESS);
    runner_sync();
    v1_close(&v1);
}

RUNNER_MAIN
