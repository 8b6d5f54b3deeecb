/* SPDX-License-Identifier: MIT */
/* WinVerbs' connect endpoints: addresses, requests, private data, refusals, cancels, each call out of turn. winverbs.md 8. */
#include "holdings.h"
#include "wvside.h"

#include <stdlib.h>
#include <iba/ib_types.h>

/* Both ways to say it: what each side is told of the other. */
ALONE(session)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_ATTRIBUTES at;
    WV_CONNECT_PARAM ask, answer;
    HRESULT accepted;

    wv_pair_make(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0], b = &pair.link[1];
    ask = wv_param(a), answer = wv_param(b);
    memset(ask.Data, 0x31, sizeof(ask.Data));
    ask.DataLength = 56;
    memset(answer.Data, 0x32, 20);
    answer.DataLength = 20;
    ok_status(CALL(a->endpoint, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 0);
    ok_uint(at.Device.DeviceGuid, ==, 0);
    ok_status(CALL(a->endpoint, Query, NULL), WV_INVALID_PARAMETER);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Query, &at), WV_SUCCESS);
    ok_mem(&at.Device, &pair.host[0].where, sizeof(at.Device));
    ok_uint(at.LocalAddress.Sin.sin_port, !=, 0);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok_mem(at.Param.Data, ask.Data, 56);
    ok_uint(at.LocalAddress.Sin.sin_port, ==, 0); /* of a request: without the port */
    ok_mem(&at.LocalAddress.Sin.sin_addr, &pair.to.v4.sin_addr, 4);
    ok_mem(&at.PeerAddress.Sin.sin_addr, &pair.host[0].address.v4.sin_addr, 4);
    ok_uint(at.PeerAddress.Sin.sin_port, !=, 0);
    ok_uint(at.Device.DeviceGuid, ==, pair.host[1].where.DeviceGuid);
    if (!runner_iwarp()) {
        ok_uint(at.Param.ResponderResources, ==, 1);
        ok_uint(at.Param.InitiatorDepth, ==, 1);
        ok_uint(at.Param.RetryCount, ==, 6);
        ok_uint(at.Param.RnrRetryCount, ==, 6);
    }
    accepted = CALL(b->endpoint, Accept, b->qp, &answer, &b->ov);
    ok_status(accepted, WV_IO_PENDING);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(a->endpoint, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok_mem(at.Param.Data, answer.Data, 20);
    ok_mem(&at.PeerAddress.Sin.sin_addr, &pair.to.v4.sin_addr, 4);
    ok_status(wv_complete(a), WV_SUCCESS);
    ok_status(WV_FINISH(b->endpoint, &b->ov, accepted), WV_SUCCESS);
    wv_settle();
    wv_receive(b, 1, 0, 64);
    wv_send(a, 2, 0, 64, 0);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    wv_pair_drop(&pair);
}

/* Each overlapped call without an OVERLAPPED. */

static DWORD WINAPI blocking_server(void *argument)
{
    struct wvpair *pair = argument;
    struct wvlink *b = &pair->link[1];
    WV_CONNECT_PARAM answer = wv_param(b);

    ok_status(CALL(pair->listener, GetRequest, b->endpoint, NULL), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Accept, b->qp, &answer, NULL), WV_SUCCESS);
    ok_status(CALL(b->endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Disconnect, NULL), WV_SUCCESS);
    return 0;
}

ALONE(blocking_calls)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_CONNECT_PARAM ask, none = { 0 };
    HANDLE port, thread;
    OVERLAPPED *dequeued;
    ULONG_PTR key;
    DWORD bytes;

    wv_pair_make(&pair, NULL);
    a = &pair.link[0];
    ask = wv_param(a);
    port = CreateIoCompletionPort(CALL(pair.host[0].provider, GetFileHandle), NULL, 1, 0);
    thread = CreateThread(NULL, 0, blocking_server, &pair, 0, NULL);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, NULL), WV_SUCCESS);
    ok_status(CALL(a->endpoint, Accept, NULL, &none, NULL), WV_SUCCESS);
    ok_status(CALL(a->endpoint, Disconnect, NULL), WV_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    /* The application's port has seen none of them. */
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok(CloseHandle(port));
    wv_pair_drop(&pair);
}

/* ---- refusals ---- */

/* By the one called, with and without waiting in the call, before Accept; by the caller, after the reply. */
ALONE(rejected)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_ATTRIBUTES at;
    WV_CONNECT_PARAM ask, answer;
    HRESULT accepted;
    BYTE data[64];

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    ask = wv_param(a), answer = wv_param(b);
    memset(data, 0x66, sizeof(data));
    wv_bind(a);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Reject, data, 57), STATUS_INVALID_BUFFER_SIZE); /* and nothing has happened */
    ok_status(CALL(b->endpoint, Reject, data, 56), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Reject, data, 56), WV_NOT_SUPPORTED);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_CONNECTION_REFUSED);
    ok_status(CALL(a->endpoint, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok_mem(at.Param.Data, data, 56);
    /* That endpoint does not connect again; the queue pair does. */
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_NOT_SUPPORTED);
    release_last(a->endpoint);
    release_last(b->endpoint);
    a->endpoint = wv_make_endpoint(&pair.host[0]);
    b->endpoint = wv_make_endpoint(&pair.host[1]);
    if (!runner_iwarp()) {
        wv_bind(a);
        ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
        ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
        ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
        accepted = CALL(b->endpoint, Accept, b->qp, &answer, &b->ov);
        ok_status(accepted, WV_IO_PENDING);
        ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
        ok_status(CALL(a->endpoint, Reject, data, 10), WV_SUCCESS);
        ok_status(WV_FINISH(b->endpoint, &b->ov, accepted), WV_CONNECTION_REFUSED);
        release_last(a->endpoint);
        release_last(b->endpoint);
        a->endpoint = wv_make_endpoint(&pair.host[0]);
        b->endpoint = wv_make_endpoint(&pair.host[1]);
        /* The passive queue pair has been to RTS. */
        release_last(b->qp);
        b->qp = wv_make_qp(b);
        wv_to_init(b, b->qp);
    }
    wv_pair_connect(&pair);
    wv_pair_drop(&pair);
}

ALONE(nobody_there)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_CONNECT_PARAM ask;
    union endpoint away = endpoint_from("192.0.2.77");

    wv_pair_make(&pair, NULL);
    a = &pair.link[0];
    ask = wv_param(a);
    release_last(pair.listener);
    pair.listener = NULL;
    listener_gone(&pair.to);
    wv_bind(a);
    ok_status(wv_try_connect(a, &pair.to), WV_CONNECTION_REFUSED);
    release_last(a->endpoint);
    a->endpoint = wv_make_endpoint(&pair.host[0]);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, NULL), WV_CONNECTION_REFUSED);
    release_last(a->endpoint);
    a->endpoint = wv_make_endpoint(&pair.host[0]);
    wv_bind(a);
    endpoint_set_port(&away, 5000);
    ok_status(wv_try_connect(a, &away), WV_HOST_UNREACHABLE);
    wv_pair_drop(&pair);
}

/* Something else than an RDMA device listens there. */
ALONE(answer_of_something_else)
{
    struct stranger stranger;
    struct wvpair pair;
    struct wvlink *a = &pair.link[0];

    if (!runner_iwarp())
        harness_skip("only iWARP connects over TCP");
    wv_pair_make(&pair, NULL);
    stranger_begin(&stranger, &pair.host[1].address, 1);
    wv_bind(a);
    ok_status(wv_try_connect(a, &stranger.at), WV_CONNECTION_ABORTED);
    stranger_end(&stranger);
    release_last(a->endpoint);
    a->endpoint = wv_make_endpoint(&pair.host[0]);
    wv_pair_connect(&pair);
    wv_pair_drop(&pair);
}

/* The request arrives nowhere, and a limit of our own is over before the kernel's: the endpoint and the queue pair may try again. */
ALONE(no_answer)
{
    union endpoint away = endpoint_from("10.8.0.77");
    struct wvpair pair;
    struct wvlink *a;

    if (!runner_machine() || runner_wire() || runner_iwarp())
        harness_skip("needs an address that takes packets and never answers");
    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "300", 1);
    wv_pair_make(&pair, NULL);
    a = &pair.link[0];
    wv_bind(a);
    endpoint_set_port(&away, 5000);
    for (int i = 0; i < 2; i++)
        ok_status(wv_try_connect(a, &away), WV_TIMEOUT);
    wv_pair_meet(&pair);
    wv_pair_drop(&pair);
}

/* ---- the path before it ---- */

/* The device's port has that address of the path, and says of itself what the path says. */
static void ok_end_of_path(struct wvhost *host, const ib_gid_t *gid, const ib_path_rec_t *path)
{
    WV_PORT_ATTRIBUTES port;
    WV_GID wanted;
    DWORD index;

    memcpy(&wanted, gid, sizeof(wanted));
    ok_status(CALL(host->device, FindGid, host->where.PortNumber, &wanted, &index), WV_SUCCESS);
    ok_status(CALL(host->device, QueryPort, host->where.PortNumber, &port), WV_SUCCESS);
    ok_uint(path->mtu, ==, IB_PATH_SELECTOR_EXACTLY << 6 | (path->mtu & 0x3f));
    ok_uint(128u << (path->mtu & 0x3f), ==, port.ActiveMtu);
    ok_uint(path->pkey, ==, host->where.Pkey);
    if (port.Transport == WvPortTransportRdmaoe)
        ok(!path->dlid && !path->slid);
    ok_uint(path->service_id, ==, 0);
}

/* As applications connect: BindAddress, IbatQueryPath, Modify, Connect. */
ALONE(queried_path)
{
    static const IBAT_PATH_BLOB none;
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_ATTRIBUTES at;
    IBAT_PATH_BLOB blob, again;
    ib_path_rec_t path;
    int fds;

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    wv_bind(a);
    ok_status(CALL(a->endpoint, Query, &at), WV_SUCCESS);
    memset(&blob, 0xa5, sizeof(blob));
    ok_status(IbatQueryPath(&at.LocalAddress.Sa, &pair.to.any, &blob), WV_SUCCESS);
    if (runner_iwarp()) {
        ok_mem(&blob, &none, sizeof(blob));
    } else {
        memcpy(&path, &blob, sizeof(path));
        ok_end_of_path(&pair.host[0], &path.sgid, &path);
        ok_end_of_path(&pair.host[1], &path.dgid, &path);
    }
    fds = open_descriptors();
    for (int i = 0; i < 20; i++) {
        ok_status(IbatQueryPath(&pair.host[0].address.any, &pair.to.any, &again), WV_SUCCESS);
        ok_mem(again.byte, blob.byte, 44); /* and then a flow label of the call's own port */
        ok_mem(again.byte + 48, blob.byte + 48, 16);
    }
    ok_int(open_descriptors(), ==, fds);
    ok_status(CALL(a->endpoint, Modify, WV_EP_OPTION_ROUTE, &blob, sizeof(blob)), WV_SUCCESS);
    wv_pair_meet(&pair);
    wv_receive(b, 1, 0, 64);
    wv_send(a, 2, 0, 64, 0);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    wv_pair_drop(&pair);
}

/* With the statuses of BindAddress and Connect; of a neighbour that is not there, after the time-out of resolving. */
ALONE(no_path)
{
    static const IBAT_PATH_BLOB none;
    union endpoint away = endpoint_from("192.0.2.77"), any = endpoint_from("0.0.0.0"),
                   loop = endpoint_from("127.0.0.1");
    union endpoint own, silent, odd;
    IBAT_PATH_BLOB blob;
    struct wvpair pair;
    int fds;

    setenv("NDVERBS_RESOLVE_TIMEOUT_MS", "500", 1);
    wv_pair_make(&pair, NULL);
    own = pair.host[0].address;
    silent = odd = pair.to;
    ((BYTE *)&silent.v4.sin_addr)[3] ^= 0x40;
    odd.any.sa_family = 99;
    ok_status(IbatQueryPath(&own.any, &own.any, &blob), WV_SUCCESS);
    fds = open_descriptors();
    ok_status(IbatQueryPath(NULL, &pair.to.any, &blob), WV_INVALID_PARAMETER);
    ok_status(IbatQueryPath(&own.any, NULL, &blob), WV_INVALID_PARAMETER);
    ok_status(IbatQueryPath(&own.any, &pair.to.any, NULL), WV_INVALID_PARAMETER);
    ok_status(IbatQueryPath(&odd.any, &pair.to.any, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath(&own.any, &odd.any, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath(&away.any, &pair.to.any, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath(&loop.any, &pair.to.any, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath(&any.any, &pair.to.any, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath(&own.any, &any.any, &blob), WV_HOST_UNREACHABLE);
    ok_status(IbatQueryPath(&own.any, &away.any, &blob), WV_HOST_UNREACHABLE);
    ok_mem(&blob, &none, sizeof(blob));
    ok_int(open_descriptors(), ==, fds);
    if (runner_wire()) { /* a dummy interface takes every neighbour for one that is there */
        ok_status(IbatQueryPath(&own.any, &silent.any, &blob), WV_HOST_UNREACHABLE);
        ok_int(open_descriptors(), ==, fds);
        wv_bind(&pair.link[0]);
        ok_status(wv_try_connect(&pair.link[0], &silent), WV_HOST_UNREACHABLE);
    }
    wv_pair_drop(&pair);
}

/* ---- out of turn ---- */

static void nothing_works(struct wvlink *link, const union endpoint *to)
{
    WV_CONNECT_PARAM param = wv_param(link);
    INdvConnectEndpoint *extension;
    OVERLAPPED ov, before;

    overlapped_rubbish(&ov, NULL);
    before = ov;
    ok_status(CALL(link->endpoint, Reject, NULL, 0), WV_NOT_SUPPORTED);
    ok_status(CALL(link->endpoint, Accept, link->qp, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(link->endpoint, Disconnect, &ov), WV_CONNECTION_INVALID);
    ok_status(CALL(link->endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_status(CALL(extension, DisconnectAndFlush, NULL, &ov), WV_CONNECTION_INVALID);
    ok_status(CALL(extension, DisconnectAndFlush, (IWVConnectQueuePair *)link->cq, &ov), WV_INVALID_PARAMETER);
    ok_int(CALL(extension, Release), ==, 1);
    if (to)
        ok_status(CALL(link->endpoint, Connect, link->qp, &to->any, &param, &ov), WV_NOT_SUPPORTED);
    ok_mem(&ov, &before, sizeof(ov)); /* nothing was queued */
}

ALONE(out_of_turn)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_PARAM param, large;
    union endpoint odd, foreign = endpoint_from("192.0.2.1");
    IWVConnectEndpoint *other;
    UINT8 route[64] = { 0 };

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    param = wv_param(a);
    large = param;
    large.DataLength = 57;
    odd = pair.to;
    odd.any.sa_family = 99;
    /* Fresh. */
    nothing_works(a, &pair.to);
    ok_status(CALL(a->endpoint, Listen, 1), WV_NOT_SUPPORTED);
    other = wv_make_endpoint(&pair.host[0]);
    ok_status(CALL(a->endpoint, GetRequest, other, &a->ov), WV_NOT_SUPPORTED);
    release_last(other);
    ok_status(CALL(a->endpoint, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    ok_status(CALL(a->endpoint, BindAddress, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, BindAddress, &foreign.any), WV_INVALID_ADDRESS);
    ok_status(CALL(a->endpoint, BindAddress, &odd.any), WV_INVALID_ADDRESS);
    /* Bound. */
    wv_bind(a);
    nothing_works(a, NULL);
    ok_status(CALL(a->endpoint, BindAddress, &pair.host[0].address.any), WV_NOT_SUPPORTED);
    ok_status(CALL(a->endpoint, Modify, 7, route, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, Modify, WV_EP_OPTION_ROUTE, route, 63), HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER));
    ok_status(CALL(a->endpoint, Modify, WV_EP_OPTION_ROUTE, NULL, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_SUCCESS);
    ok_status(CALL(a->endpoint, Connect, NULL, &pair.to.any, &param, &a->ov), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, Connect, a->qp, NULL, &param, &a->ov), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, NULL, &a->ov), WV_INVALID_PARAMETER);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &large, &a->ov), STATUS_INVALID_BUFFER_SIZE);
    ok_status(CALL(a->endpoint, Connect, a->qp, &odd.any, &param, &a->ov), WV_INVALID_ADDRESS);
    other = wv_make_endpoint(&pair.host[1]);
    endpoint_set_port(&pair.host[1].address, 0);
    ok_status(CALL(other, BindAddress, &pair.host[1].address.any), WV_SUCCESS);
    ok_status(CALL(pair.listener, GetRequest, other, &b->ov), STATUS_CONNECTION_IN_USE);
    release_last(other);
    /* Listening, on a port that another one has. */
    nothing_works(&(struct wvlink){ .endpoint = pair.listener, .qp = b->qp, .cq = b->cq }, &pair.to);
    ok_status(CALL(pair.listener, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(pair.listener, GetRequest, NULL, &b->ov), WV_INVALID_PARAMETER);
    other = wv_make_endpoint(&pair.host[0]); /* of another provider */
    ok_status(CALL(pair.listener, GetRequest, other, &b->ov), WV_INVALID_PARAMETER);
    release_last(other);
    other = wv_make_endpoint(&pair.host[1]);
    {
        HRESULT hr = CALL(other, BindAddress, &pair.to.any);

        ok_msg(hr == WV_ADDRESS_ALREADY_EXISTS ||
                   (hr == WV_SUCCESS && CALL(other, Listen, 1) == WV_ADDRESS_ALREADY_EXISTS),
               "a port that is taken: 0x%08x", (unsigned)hr);
    }
    release_last(other);
    /* Waiting for a request. */
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &a->ov), STATUS_CONNECTION_IN_USE);
    nothing_works(b, NULL);
    ok_status(CALL(pair.listener, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_CANCELLED);
    /* Its request is in. */
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &param, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Accept, b->qp, NULL, &b->ov), WV_INVALID_PARAMETER);
    ok_status(CALL(b->endpoint, Accept, NULL, &param, &b->ov), WV_INVALID_PARAMETER);
    ok_status(CALL(b->endpoint, Accept, b->qp, &large, &b->ov), STATUS_INVALID_BUFFER_SIZE);
    ok_status(CALL(b->endpoint, Connect, b->qp, &pair.to.any, &param, &b->ov), WV_NOT_SUPPORTED);
    ok_status(CALL(b->endpoint, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(b->endpoint, Reject, NULL, 0), WV_SUCCESS);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_CONNECTION_REFUSED);
    wv_pair_drop(&pair);
}

/* ---- cancels and releases ---- */

/* First come, first served; a cancel gives every waiting endpoint back. */
ALONE(requests_in_order)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    IWVConnectEndpoint *second, *callers[2];
    IWVConnectQueuePair *qps[2];
    WV_CONNECT_PARAM ask;
    WV_CONNECT_ATTRIBUTES at;
    OVERLAPPED ov, call[2];

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    second = wv_make_endpoint(&pair.host[1]);
    overlapped_rubbish(&ov, NULL);
    for (int round = 0; round < 2; round++) {
        ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
        ok_status(CALL(pair.listener, GetRequest, second, &ov), WV_IO_PENDING);
        if (round)
            break;
        ok_status(CALL(pair.listener, CancelOverlappedRequests), WV_SUCCESS);
        ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_CANCELLED);
        ok_status(WV_FINISH(pair.listener, &ov, WV_IO_PENDING), WV_CANCELLED);
    }
    ask = wv_param(a);
    ask.DataLength = 1;
    for (int i = 0; i < 2; i++) {
        callers[i] = wv_make_endpoint(&pair.host[0]);
        qps[i] = wv_make_qp(a);
        wv_to_init(a, qps[i]);
        ok_status(CALL(callers[i], BindAddress, &pair.host[0].address.any), WV_SUCCESS);
        overlapped_rubbish(&call[i], NULL);
        ask.Data[0] = (UINT8)(100 + i);
        ok_status(CALL(callers[i], Connect, qps[i], &pair.to.any, &ask, &call[i]), WV_IO_PENDING);
        ok_status(WV_FINISH(pair.listener, i ? &ov : &b->ov, WV_IO_PENDING), WV_SUCCESS);
        ok_status(CALL(i ? second : b->endpoint, Query, &at), WV_SUCCESS);
        ok_uint(at.Param.Data[0], ==, 100 + i);
    }
    /* Released with a request in hand: refused. */
    release_last(second);
    ok_status(WV_FINISH(callers[1], &call[1], WV_IO_PENDING), WV_CONNECTION_REFUSED);
    /* Released with a Connect under way: cancelled before the release returns. */
    release_last(callers[0]);
    ok_internal(&call[0], WV_CANCELLED);
    release_last(callers[1]);
    for (int i = 0; i < 2; i++)
        release_last(qps[i]);
    wv_pair_drop(&pair);
}

/* A cancelled Connect is still under way: the reply may be completed. */
ALONE(connect_cancelled)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_PARAM ask, answer;
    HRESULT accepted, hr;

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    ask = wv_param(a), answer = wv_param(b);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(a->endpoint, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_CANCELLED);
    accepted = CALL(b->endpoint, Accept, b->qp, &answer, &b->ov);
    ok_status(accepted, WV_IO_PENDING);
    /* Until the reply is in, there is nothing to complete. */
    while ((hr = wv_complete(a)) == WV_NOT_SUPPORTED)
        harness_yield();
    ok_status(hr, WV_SUCCESS);
    ok_status(WV_FINISH(b->endpoint, &b->ov, accepted), WV_SUCCESS);
    wv_settle();
    wv_receive(b, 1, 0, 64);
    wv_send(a, 2, 0, 64, 0);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    ok_status(CALL(b->endpoint, NotifyDisconnect, &b->ov), WV_IO_PENDING);
    ok_status(CALL(b->endpoint, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(b->endpoint, &b->ov, WV_IO_PENDING), WV_CANCELLED);
    wv_pair_drop(&pair);
}

/* A cancelled Accept: the reply is out, and the caller may complete. */
ALONE(accept_cancelled)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_PARAM ask, answer;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once it is accepted");
    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    ask = wv_param(a), answer = wv_param(b);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(b->endpoint, Accept, b->qp, &answer, &b->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(b->endpoint, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(b->endpoint, &b->ov, WV_IO_PENDING), WV_CANCELLED);
    wv_receive(b, 1, 0, 64);
    ok_status(wv_complete(a), WV_SUCCESS);
    wv_send(a, 2, 0, 64, 0);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    wv_pair_drop(&pair);
}

/* The caller goes away while its request is answered. */
ALONE(caller_gone)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_CONNECT_PARAM ask, answer;
    HRESULT accepted;

    if (runner_iwarp())
        harness_skip("iWARP: the connection stands once it is accepted");
    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    ask = wv_param(a), answer = wv_param(b);
    ok_status(CALL(pair.listener, GetRequest, b->endpoint, &b->ov), WV_IO_PENDING);
    wv_bind(a);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair.listener, &b->ov, WV_IO_PENDING), WV_SUCCESS);
    accepted = CALL(b->endpoint, Accept, b->qp, &answer, &b->ov);
    ok_status(accepted, WV_IO_PENDING);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_SUCCESS);
    release_last(a->endpoint);
    a->endpoint = NULL;
    ok_status(WV_FINISH(b->endpoint, &b->ov, accepted), WV_CONNECTION_REFUSED);
    wv_pair_drop(&pair);
}

/* Bound to every address, the listener serves the device all the same; so does the way out. */
ALONE(wildcard)
{
    struct wvpair pair;
    struct wvlink *a;
    union endpoint any = endpoint_from("0.0.0.0");
    WV_CONNECT_ATTRIBUTES at;
    WV_CONNECT_PARAM ask;
    IWVConnectEndpoint *listener;

    wv_pair_make(&pair, NULL);
    a = &pair.link[0];
    listener = wv_make_endpoint(&pair.host[1]);
    ok_status(CALL(listener, BindAddress, &any.any), WV_SUCCESS);
    ok_status(CALL(listener, Query, &at), WV_SUCCESS);
    ok_uint(at.Device.DeviceGuid, ==, 0);
    ok_uint(at.LocalAddress.Sin.sin_port, !=, 0);
    ok_status(CALL(listener, Listen, 1), WV_SUCCESS);
    release_last(pair.listener);
    pair.listener = listener;
    pair.to.v4.sin_port = at.LocalAddress.Sin.sin_port;
    ask = wv_param(a);
    ok_status(CALL(listener, GetRequest, pair.link[1].endpoint, &pair.link[1].ov), WV_IO_PENDING);
    ok_status(CALL(a->endpoint, BindAddress, &any.any), WV_SUCCESS);
    ok_status(CALL(a->endpoint, Connect, a->qp, &pair.to.any, &ask, &a->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(listener, &pair.link[1].ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(CALL(pair.link[1].endpoint, Reject, NULL, 0), WV_SUCCESS);
    ok_status(WV_FINISH(a->endpoint, &a->ov, WV_IO_PENDING), WV_CONNECTION_REFUSED);
    wv_pair_drop(&pair);
}

RUNNER_MAIN
