/* SPDX-License-Identifier: MIT */
/* WinVerbs' datagrams: queue pairs, address handles, lookups, multicast. winverbs.md 7.7, 9. iWARP has none. */
#include "wvside.h"

#include <stdio.h>

#define MESSAGES 20
#define SIZE     300

static void need_datagrams(void)
{
    if (runner_iwarp())
        harness_skip("iWARP has no datagrams");
}

static void bind_to(IWVDatagramEndpoint *endpoint, const struct wvhost *host)
{
    union endpoint local = host->address;

    endpoint_set_port(&local, 0);
    ok_status(CALL(endpoint, BindAddress, &local.any), WV_SUCCESS);
}

static WV_DATAGRAM_ATTRIBUTES attributes_of(IWVDatagramEndpoint *endpoint, const union endpoint *peer)
{
    WV_DATAGRAM_ATTRIBUTES attributes;

    memset(&attributes, 0, sizeof(attributes));
    if (peer)
        memcpy(&attributes.PeerAddress, peer, sizeof(attributes.PeerAddress));
    ok_status(CALL(endpoint, Query, &attributes), WV_SUCCESS);
    return attributes;
}

static union endpoint listening(IWVDatagramEndpoint *endpoint, const struct wvhost *host)
{
    union endpoint to = host->address;

    bind_to(endpoint, host);
    ok_status(CALL(endpoint, Listen, 4), WV_SUCCESS);
    to.v4.sin_port = attributes_of(endpoint, NULL).LocalAddress.Sin.sin_port;
    return to;
}

/* Everything that an endpoint refuses before, while and after it does something. */
ALONE(endpoint_out_of_turn)
{
    union endpoint group = endpoint_from("239.7.7.7"), foreign = endpoint_from("192.0.2.1"), to;
    IWVDatagramEndpoint *d, *fresh, *listener;
    WV_DATAGRAM_PARAM param = { 0 };
    struct wvhost host, other;
    OVERLAPPED ov, before;
    UINT8 route[64] = { 0 };

    need_datagrams();
    wv_open(&host);
    wv_open(&other);
    d = wv_make_datagram(&host), fresh = wv_make_datagram(&host), listener = wv_make_datagram(&host);
    overlapped_rubbish(&ov, NULL);
    before = ov;
    ok_status(CALL(d, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Modify, 2, route, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(d, BindAddress, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(d, BindAddress, &foreign.any), WV_INVALID_ADDRESS);
    ok_status(CALL(d, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Reject, NULL, 0), WV_NOT_SUPPORTED);
    ok_status(CALL(d, GetRequest, fresh, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, GetRequest, NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Accept, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Accept, NULL, &ov), WV_INVALID_PARAMETER);
    param.DataLength = 57;
    ok_status(CALL(d, Accept, &param, &ov), STATUS_INVALID_BUFFER_SIZE);
    ok_status(CALL(d, JoinMulticast, &group.any, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, JoinMulticast, NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, LeaveMulticast, &group.any, &ov), WV_INVALID_ADDRESS);
    ok_status(CALL(d, LeaveMulticast, NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Lookup, NULL, NULL, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Lookup, &foreign.any, route, 57, &ov), STATUS_INVALID_BUFFER_SIZE);
    ok_status(CALL(d, Query, NULL), WV_INVALID_PARAMETER);
    to = listening(listener, &host);
    ok_status(CALL(listener, BindAddress, &host.address.any), WV_NOT_SUPPORTED);
    ok_status(CALL(listener, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(listener, Lookup, &to.any, NULL, 0, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(listener, GetRequest, listener, &ov), STATUS_CONNECTION_IN_USE);
    bind_to(d, &other);
    ok_status(CALL(d, Reject, route, 57), STATUS_INVALID_BUFFER_SIZE);
    ok_mem(&ov, &before, sizeof(ov));
    release_last(fresh);
    fresh = wv_make_datagram(&other);
    ok_status(CALL(listener, GetRequest, fresh, &ov), WV_INVALID_PARAMETER); /* of another provider */
    release_last(fresh);
    fresh = wv_make_datagram(&host);
    {
        HRESULT hr = CALL(fresh, BindAddress, &to.any);

        ok_msg(hr == WV_ADDRESS_ALREADY_EXISTS ||
                   (hr == WV_SUCCESS && CALL(fresh, Listen, 1) == WV_ADDRESS_ALREADY_EXISTS),
               "a port that is taken: 0x%08x", (unsigned)hr);
    }
    release_last(fresh);
    release_last(listener);
    release_last(d);
    wv_close(&other);
    wv_close(&host);
}

/* Asked, answered with a key that is none of ours, refused, accepted; who asks learns where to send. */
ALONE(lookup)
{
    IWVDatagramEndpoint *listener, *d, *request;
    WV_DATAGRAM_PARAM answer = { 0 };
    WV_DATAGRAM_ATTRIBUTES at;
    struct wvhost host, peer;
    union endpoint to, nobody;
    OVERLAPPED get, ask, ov;
    struct wvud ud;
    HRESULT hr;
    const char *address = runner_env("NDVERBS_PEER_ADDR");
    union endpoint there = endpoint_from(address ? address : runner_env("NDVERBS_ADDR"));

    need_datagrams();
    wv_open(&host);
    wv_open_at(&peer, &there);
    wv_ud_make(&ud, &peer, 4, SIZE);
    listener = wv_make_datagram(&peer);
    d = wv_make_datagram(&host);
    to = listening(listener, &peer);
    overlapped_rubbish(&get, NULL);
    overlapped_rubbish(&ask, NULL);
    overlapped_rubbish(&ov, NULL);
    bind_to(d, &host);
    nobody = to;
    endpoint_set_port(&nobody, (USHORT)(endpoint_port(&to) - 1));
    hr = WV_FINISH(d, &ask, CALL(d, Lookup, &nobody.any, NULL, 0, &ask));
    ok_msg(hr == WV_CONNECTION_REFUSED || hr == WV_IO_TIMEOUT, "nobody listens: 0x%08x", (unsigned)hr);
    for (int accept = 0; accept < 2; accept++) {
        request = wv_make_datagram(&peer);
        ok_status(CALL(listener, GetRequest, request, &get), WV_IO_PENDING);
        ok_status(CALL(d, Lookup, &to.any, "where are you", 13, &ask), WV_IO_PENDING);
        ok_status(WV_FINISH(listener, &get, WV_IO_PENDING), WV_SUCCESS);
        at = attributes_of(request, NULL);
        ok_mem(at.Param.Data, "where are you", 14);
        answer.Qpn = ud.qpn;
        answer.Qkey = htonl(0x55);
        ok_status(CALL(request, Accept, &answer, &ov), WV_NOT_SUPPORTED);
        answer.Qkey = htonl(WV_CM_UDP_QKEY);
        answer.DataLength = 4;
        memcpy(answer.Data, "here", 4);
        if (accept) {
            ok_status(WV_FINISH(request, &ov, CALL(request, Accept, &answer, &ov)), WV_SUCCESS);
            ok_status(CALL(request, Accept, &answer, &ov), WV_NOT_SUPPORTED);
            ok_status(WV_FINISH(d, &ask, WV_IO_PENDING), WV_SUCCESS);
        } else {
            ok_status(CALL(request, Reject, "no", 57), STATUS_INVALID_BUFFER_SIZE);
            ok_status(CALL(request, Reject, "no", 2), WV_SUCCESS);
            ok_status(WV_FINISH(d, &ask, WV_IO_PENDING), WV_CONNECTION_REFUSED);
        }
        release_last(request);
    }
    at = attributes_of(d, NULL);
    ok_uint(at.Param.Qpn, ==, ud.qpn);
    ok_uint(at.Param.Qkey, ==, htonl(WV_CM_UDP_QKEY));
    ok_mem(at.Param.Data, "here", 4);
    ok_uint(at.Param.AddressVector.Route.Valid, ==, 1);
    ok_uint(at.Device.DeviceGuid, ==, host.where.DeviceGuid);
    /* Two that wait and are given up. */
    request = wv_make_datagram(&peer);
    ok_status(CALL(listener, GetRequest, request, &get), WV_IO_PENDING);
    ok_status(CALL(listener, GetRequest, request, &ov), STATUS_CONNECTION_IN_USE);
    ok_status(CALL(listener, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(listener, &get, WV_IO_PENDING), WV_CANCELLED);
    release_last(d);
    d = wv_make_datagram(&host);
    bind_to(d, &host);
    ok_status(CALL(d, Lookup, &to.any, NULL, 0, &ask), WV_IO_PENDING);
    ok_status(CALL(d, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(d, &ask, WV_IO_PENDING), WV_CANCELLED);
    release_last(request);
    release_last(d);
    release_last(listener);
    wv_ud_drop(&ud);
    wv_close(&peer);
    wv_close(&host);
}

/* ---- messages between two queue pairs of this process ---- */

static void interfaces_of(IWVDatagramQueuePair *qp)
{
    const GUID *known[] = { &IID_IWVDatagramQueuePair, &IID_IWVQueuePair, &IID_IWVOverlapped, &IID_IUnknown };
    void *out;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        ok_status(CALL(qp, QueryInterface, known[i], &out), WV_SUCCESS);
        ok_int(CALL((IUnknown *)out, Release), ==, 1);
    }
    ok_status(CALL(qp, QueryInterface, &IID_IWVConnectQueuePair, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(qp, QueryInterface, &IID_IWVQueuePair, NULL), E_POINTER);
}

ALONE(messages)
{
    struct wvhost host;
    struct wvud a, b;
    WV_DATAGRAM_PARAM param = { 0 };
    WV_COMPLETION completion;
    WV_SEND_REQUEST request = { 0 };
    WV_SEND_DATAGRAM send = { 0 };
    WV_SGE sge;

    need_datagrams();
    wv_open(&host);
    wv_ud_make(&a, &host, 4, SIZE);
    interfaces_of(a.qp);
    wv_ud_make(&b, &host, 4, SIZE);
    param.Qpn = b.qpn;
    param.Qkey = htonl(WV_CM_UDP_QKEY);
    param.AddressVector.PortNumber = host.where.PortNumber;
    param.AddressVector.Route.Valid = 1;
    param.AddressVector.Route.HopLimit = 64;
    param.AddressVector.Route.SGid.Raw[10] = param.AddressVector.Route.SGid.Raw[11] = 0xff;
    memcpy(&param.AddressVector.Route.SGid.Raw[12], &host.address.v4.sin_addr, 4);
    param.AddressVector.Route.DGid = param.AddressVector.Route.SGid;
    wv_ud_to(&a, &param);
    pattern_fill(wv_ud_place(&a, 4), SIZE, 8);
    sge = (WV_SGE){ .pAddress = wv_ud_place(&a, 4), .Length = SIZE, .Lkey = a.keys.Lkey };
    /* The simple form, the general one with immediate data, one of a list; each comes back by the header in front. */
    ok_status(CALL(a.qp, Send, 70, a.ah_key, &sge, WV_SEND_SIGNALED, b.qpn, htonl(WV_CM_UDP_QKEY)), WV_SUCCESS);
    ok_completion(a.cq, WvSend, WvWcSuccess, 70);
    completion = wv_next(b.cq);
    ok_int(completion.Status, ==, WvWcSuccess);
    ok_int(completion.Opcode, ==, WvReceive);
    ok_uint(completion.Length, ==, SIZE + WV_GRH);
    ok_uint(completion.SourceQpn, ==, a.qpn);
    ok_uint(completion.Flags, ==, WV_WC_GRH_VALID);
    ok_ptr(completion.QpContext, ==, &b);
    pattern_check(wv_ud_place(&b, completion.WrId), SIZE, 8);
    wv_ud_back(&b, &completion, completion.SourceQpn);
    wv_ud_send(&b, 71, WV_SEND_SIGNALED | WV_SEND_IMMEDIATE, htonl(99));
    ok_completion(b.cq, WvSend, WvWcSuccess, 71);
    completion = wv_next(a.cq);
    ok_uint(completion.ImmediateData, ==, htonl(99));
    ok_uint(completion.Flags, ==, WV_WC_GRH_VALID | WV_WC_IMMEDIATE);
    request.pSgl = &sge;
    request.nSge = 1;
    request.Flags = WV_SEND_SIGNALED;
    request.Wr.Datagram.AhKey = a.ah_key;
    request.Wr.Datagram.DestinationQpn = b.qpn;
    request.Wr.Datagram.DestinationQkey = htonl(WV_CM_UDP_QKEY);
    ok_status(CALL(a.qp, PostSend, &request, NULL), WV_SUCCESS);
    ok_completion(a.cq, WvSend, WvWcSuccess, 0);
    ok_completion(b.cq, WvReceive, WvWcSuccess, 1);
    /* A wrong key is not delivered, and that is nobody's error. */
    ok_status(CALL(a.qp, Send, 72, a.ah_key, &sge, WV_SEND_SIGNALED, b.qpn, htonl(1)), WV_SUCCESS);
    ok_completion(a.cq, WvSend, WvWcSuccess, 72);
    /* What such a queue pair does not take. */
    ok_status(CALL(a.qp, Send, 1, 0, &sge, 0, b.qpn, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(a.qp, SendMessage, NULL), WV_INVALID_PARAMETER);
    send.AhKey = a.ah_key;
    send.pSgl = &sge;
    send.nSge = 40;
    ok_status(CALL(a.qp, SendMessage, &send), WV_INSUFFICIENT_RESOURCES);
    request.Opcode = WvRdmaWrite;
    ok_status(CALL(a.qp, PostSend, &request, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(a.qp, PostReceive, 1, NULL, 1), WV_INVALID_PARAMETER);
    for (int i = 0; i < 2; i++) {
        HRESULT hr = CALL(a.qp, PostReceive, 90, &sge, 1);

        ok_status(hr, i ? WV_INSUFFICIENT_RESOURCES : WV_SUCCESS); /* three are still posted */
    }
    wv_none(b.cq);
    wv_ud_drop(&a);
    wv_ud_drop(&b);
    wv_close(&host);
}

ALONE(multicast_statuses)
{
    union endpoint group = endpoint_from("239.7.7.8"), single;
    WV_DATAGRAM_ATTRIBUTES at;
    IWVDatagramEndpoint *d;
    struct wvhost host;
    struct wvud ud;
    OVERLAPPED ov;
    WV_GID gid;

    need_datagrams();
    wv_open(&host);
    wv_ud_make(&ud, &host, 4, SIZE);
    d = wv_make_datagram(&host);
    bind_to(d, &host);
    overlapped_rubbish(&ov, NULL);
    ok_status(WV_FINISH(d, &ov, CALL(d, JoinMulticast, &group.any, &ov)), WV_SUCCESS);
    ok_status(CALL(d, JoinMulticast, &group.any, &ov), WV_ADDRESS_ALREADY_EXISTS);
    at = attributes_of(d, &group);
    ok_uint(at.Param.Qpn, ==, htonl(0xffffff));
    gid = at.Param.AddressVector.Route.DGid;
    ok_status(WV_FINISH(ud.qp, &ov, CALL(ud.qp, AttachMulticast, &gid, at.Param.AddressVector.DLid, &ov)), WV_SUCCESS);
    ok_status(CALL(ud.qp, GetOverlappedResult, &ov, NULL, FALSE), WV_SUCCESS);
    ok_status(CALL(ud.qp, GetOverlappedResult, NULL, NULL, FALSE), WV_INVALID_PARAMETER);
    ok_status(CALL(ud.qp, CancelOverlappedRequests), WV_SUCCESS); /* nothing ever waits */
    ok_status(CALL(ud.qp, AttachMulticast, NULL, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(ud.qp, DetachMulticast, NULL, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(ud.qp, DetachMulticast, &gid, at.Param.AddressVector.DLid, NULL), WV_SUCCESS);
    ok_status(CALL(ud.qp, DetachMulticast, &gid, at.Param.AddressVector.DLid, NULL), WV_NOT_FOUND);
    memset(&single, 0, sizeof(single));
    ok_status(CALL(ud.qp, AttachMulticast, (WV_GID *)&single, 0, NULL), WV_INVALID_PARAMETER); /* no group's */
    ok_status(WV_FINISH(d, &ov, CALL(d, LeaveMulticast, &group.any, &ov)), WV_SUCCESS);
    ok_status(CALL(d, LeaveMulticast, &group.any, NULL), WV_INVALID_ADDRESS);
    ok_status(CALL(d, JoinMulticast, &group.any, NULL), WV_SUCCESS); /* and left by the release */
    release_last(d);
    wv_ud_drop(&ud);
    wv_close(&host);
}

/* rxe lets that many queue pairs into a group (RXE_MAX_MCAST_QP_ATTACH); the next one may come when another one has left. */
#define GROUP_MOST 56

ALONE(multicast_group_is_full)
{
    union endpoint group = endpoint_from("239.7.7.6");
    IWVDatagramQueuePair *qp[GROUP_MOST + 1];
    WV_QP_CREATE create = { 0 };
    WV_DATAGRAM_ATTRIBUTES at;
    IWVDatagramEndpoint *d;
    IWVCompletionQueue *cq;
    struct wvhost host;
    SIZE_T entries = 2 * (GROUP_MOST + 1);
    WV_GID gid;

    need_datagrams();
    wv_open(&host);
    d = wv_make_datagram(&host);
    bind_to(d, &host);
    ok_status(CALL(d, JoinMulticast, &group.any, NULL), WV_SUCCESS);
    at = attributes_of(d, &group);
    gid = at.Param.AddressVector.Route.DGid;
    ok_status(CALL(host.device, CreateCompletionQueue, &entries, &cq), WV_SUCCESS);
    create.pSendCq = create.pReceiveCq = cq;
    create.SendDepth = create.ReceiveDepth = create.SendSge = create.ReceiveSge = 1;
    create.QpType = WvQpTypeUd;
    for (int i = 0; i <= GROUP_MOST; i++) {
        ok_status(CALL(host.pd, CreateDatagramQueuePair, &create, &qp[i]), WV_SUCCESS);
        ok_status(CALL(qp[i], AttachMulticast, &gid, at.Param.AddressVector.DLid, NULL),
                  i < GROUP_MOST ? WV_SUCCESS : WV_INSUFFICIENT_RESOURCES);
    }
    ok_status(CALL(qp[GROUP_MOST], DetachMulticast, &gid, at.Param.AddressVector.DLid, NULL), WV_NOT_FOUND);
    ok_status(CALL(qp[3], DetachMulticast, &gid, at.Param.AddressVector.DLid, NULL), WV_SUCCESS);
    ok_status(CALL(qp[GROUP_MOST], AttachMulticast, &gid, at.Param.AddressVector.DLid, NULL), WV_SUCCESS);
    for (int i = 0; i <= GROUP_MOST; i++)
        release_last(qp[i]);
    release_last(cq);
    release_last(d);
    wv_close(&host);
}

/* A group's messages are received by another process: as many as were sent, each once. */

static void join(struct wvhost *host, struct wvud *ud, IWVDatagramEndpoint **d, WV_DATAGRAM_PARAM *param)
{
    union endpoint group = endpoint_from("239.7.7.9");
    OVERLAPPED ov;

    wv_open(host);
    wv_ud_make(ud, host, MESSAGES, SIZE);
    *d = wv_make_datagram(host);
    bind_to(*d, host);
    overlapped_rubbish(&ov, NULL);
    ok_status(WV_FINISH(*d, &ov, CALL(*d, JoinMulticast, &group.any, &ov)), WV_SUCCESS);
    *param = attributes_of(*d, &group).Param;
}

SERVER(multicast)
{
    WV_DATAGRAM_PARAM param;
    IWVDatagramEndpoint *d;
    struct wvhost host;
    struct wvud ud;
    unsigned received = 0;

    need_datagrams();
    join(&host, &ud, &d, &param);
    ok_status(CALL(ud.qp, AttachMulticast, &param.AddressVector.Route.DGid, param.AddressVector.DLid, NULL),
              WV_SUCCESS);
    runner_sync();
    for (; received < MESSAGES; received++) {
        WV_COMPLETION completion = wv_next(ud.cq);

        ok_int(completion.Status, ==, WvWcSuccess);
        ok_uint(completion.Length, ==, SIZE + WV_GRH);
        pattern_check(wv_ud_place(&ud, completion.WrId), SIZE, received);
        runner_put(&received, sizeof(received)); /* the next one, please */
    }
    runner_sync();
    wv_none(ud.cq);
    release_last(d);
    wv_ud_drop(&ud);
    wv_close(&host);
}

CLIENT(multicast)
{
    WV_DATAGRAM_PARAM param;
    IWVDatagramEndpoint *d;
    struct wvhost host;
    struct wvud ud;

    need_datagrams();
    join(&host, &ud, &d, &param);
    wv_ud_to(&ud, &param);
    runner_sync();
    for (unsigned i = 0; i < MESSAGES; i++) {
        unsigned received;

        pattern_fill(wv_ud_place(&ud, MESSAGES), SIZE, i);
        wv_ud_send(&ud, i, WV_SEND_SIGNALED, 0);
        ok_completion(ud.cq, WvSend, WvWcSuccess, i);
        runner_get(&received, sizeof(received));
        ok_uint(received, ==, i);
    }
    runner_sync();
    wv_none(ud.cq); /* not attached: nothing comes back */
    release_last(d);
    wv_ud_drop(&ud);
    wv_close(&host);
}

RUNNER_MAIN
