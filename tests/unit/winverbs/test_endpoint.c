/* SPDX-License-Identifier: MIT */
/* Connect endpoints: addresses, connecting, what Query says. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>

#include "session.h"

SETUP
{
    rig_setup();
    fake_wire(true);
}

TEARDOWN
{
    rig_teardown();
}

static IWVConnectEndpoint *endpoint_at(const char *text, USHORT port)
{
    SOCKADDR_IN local = rig_v4(text, port);
    IWVConnectEndpoint *endpoint = session_endpoint();

    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    return endpoint;
}

TEST(BindAddress__statuses)
{
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0);
    IWVConnectEndpoint *endpoint = session_endpoint(), *other = session_endpoint();
    WV_CONNECT_ATTRIBUTES attributes;

    memset(&attributes, 0xa5, sizeof(attributes));
    ok_status(CALL(endpoint, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.LocalAddress.Sa.sa_family, ==, 0);
    ok_uint(attributes.PeerAddress.Sa.sa_family, ==, 0);
    ok_uint(attributes.Device.DeviceGuid, ==, 0);
    ok_uint(attributes.Param.DataLength, ==, 0);
    ok_status(CALL(endpoint, Query, NULL), WV_INVALID_PARAMETER);

    ok_status(CALL(endpoint, BindAddress, NULL), WV_INVALID_PARAMETER);
    local = rig_v4("10.9.9.9", 0);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_INVALID_ADDRESS);
    local.sin_family = 99;
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_INVALID_ADDRESS);
    local = rig_v4("10.1.1.1", 0);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    ok_status(CALL(endpoint, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.LocalAddress.Sin.sin_addr.s_addr, ==, local.sin_addr.s_addr);
    ok_uint(attributes.LocalAddress.Sin.sin_port, !=, 0);
    ok_uint(attributes.Device.DeviceGuid, ==, rig_guid("10.1.1.1"));
    ok_uint(attributes.Device.PortNumber, ==, 1);
    ok_uint(attributes.Device.Pkey, ==, 0xffff);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_NOT_SUPPORTED);
    /* A port that somebody listens on is taken. */
    ok_status(CALL(endpoint, Listen, 1), WV_SUCCESS);
    local = attributes.LocalAddress.Sin;
    ok_status(CALL(other, BindAddress, (SOCKADDR *)&local), WV_SUCCESS); /* ours: another one on the wire */
    ok_status(CALL(other, Listen, 1), WV_ADDRESS_ALREADY_EXISTS);
    rig_release(other);
    rig_release(endpoint);
}

/* Another program has the port. */
TEST(BindAddress__busy_port)
{
    IWVConnectEndpoint *first = endpoint_at("10.1.1.1", 0), *endpoint = session_endpoint();
    SOCKADDR_IN local = rig_v4("10.1.1.1", 700);

    fake_fail_always(FAKE_rdma_bind_addr, EADDRINUSE); /* it is tried again if an id of ours was on its way out */
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_ADDRESS_ALREADY_EXISTS);
    fake_fail_clear(FAKE_rdma_bind_addr);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    rig_release(endpoint);
    rig_release(first);
}

/* The next address may be another device's. */
TEST(BindAddress__a_failure_ties_to_no_device)
{
    SOCKADDR_IN local = rig_v4("10.1.1.1", 700), other = rig_v4("10.1.2.1", 700);
    IWVConnectEndpoint *endpoint = session_endpoint(),
                       *first[2] = { endpoint_at("10.1.1.1", 0), endpoint_at("10.1.2.1", 0) };

    fake_fail_always(FAKE_rdma_bind_addr, EADDRINUSE);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_ADDRESS_ALREADY_EXISTS);
    fake_fail_clear(FAKE_rdma_bind_addr);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&other), WV_SUCCESS);
    rig_release(endpoint);
    /* It gave its port up for a listener and got neither. */
    endpoint = endpoint_at("10.1.1.1", 700);
    fake_fail_always(FAKE_rdma_bind_addr, ENOMEM);
    ok_status(CALL(endpoint, Listen, 1), WV_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_rdma_bind_addr);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&other), WV_SUCCESS);
    rig_release(endpoint);
    rig_release(first[0]);
    rig_release(first[1]);
}

/* The address list has the scope. */
TEST(BindAddress__link_local_without_a_scope)
{
    SOCKADDR_IN6 local = rig_v6("fe80::5", 700);
    IWVConnectEndpoint *endpoint = session_endpoint();
    WV_CONNECT_ATTRIBUTES attributes;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    ok_status(CALL(endpoint, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.LocalAddress.Sin6.sin6_scope_id, ==, 3);
    ok_uint(attributes.LocalAddress.Sin6.sin6_port, ==, htons(700));
    ok_status(CALL(endpoint, Listen, 1), WV_SUCCESS);
    rig_release(endpoint);
}

static void bind_is_refused(IWVConnectEndpoint *endpoint)
{
    static const char *const addresses[] = { "10.1.1.1", "0.0.0.0", "127.0.0.1" };

    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        SOCKADDR_IN local = rig_v4(addresses[i], 0);

        ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_NOT_SUPPORTED);
    }
}

TEST(BindAddress__not_idle)
{
    IWVConnectEndpoint *parked = session_endpoint();
    SOCKADDR_IN any = rig_v4("0.0.0.0", 0);
    OVERLAPPED ov = rig_overlapped();
    struct session s;

    session_listen(&s, "10.1.1.1");
    ok_status(CALL(s.listener, GetRequest, parked, &ov), WV_IO_PENDING);
    bind_is_refused(parked);
    ok_status(CALL(s.listener, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(parked, BindAddress, (SOCKADDR *)&any), WV_SUCCESS);
    session_request(&s);
    bind_is_refused(s.passive);
    session_accept(&s);
    session_complete(&s);
    bind_is_refused(s.passive);
    bind_is_refused(s.active);
    session_end(&s);
    rig_release(parked);
}

TEST(Modify__route)
{
    IWVConnectEndpoint *endpoint = session_endpoint();
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0);
    UINT8 route[64] = { 0 };

    ok_status(CALL(endpoint, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    ok_status(CALL(endpoint, Modify, 7, route, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Modify, WV_EP_OPTION_ROUTE, route, 63), HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER));
    ok_status(CALL(endpoint, Modify, WV_EP_OPTION_ROUTE, NULL, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_SUCCESS);
    rig_release(endpoint);
}

/* What a Connect has used cannot be changed. */
TEST(Modify__route_after_connect)
{
    UINT8 route[64] = { 0 };
    struct session s;

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    ok_status(CALL(s.active, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    ok_status(CALL(s.passive, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    session_drop(&s);
}

/* Every method of an endpoint that has never met a device. */
TEST(endpoint__without_anything)
{
    IWVConnectEndpoint *endpoint = session_endpoint(), *fresh = session_endpoint();
    IWVConnectQueuePair *qp = rig_qp();
    SOCKADDR_IN dest = rig_v4("10.1.1.1", 5000);
    WV_CONNECT_PARAM param = { 0 };
    INdvConnectEndpoint *extension;
    OVERLAPPED ov = rig_overlapped();

    ok_status(CALL(endpoint, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, Reject, NULL, 0), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, GetRequest, fresh, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, Accept, qp, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, Disconnect, &ov), WV_CONNECTION_INVALID);
    ok_status(CALL(endpoint, Disconnect, NULL), WV_CONNECTION_INVALID);
    ok_status(CALL(endpoint, NotifyDisconnect, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(endpoint, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_status(CALL(extension, DisconnectAndFlush, qp, &ov), WV_CONNECTION_INVALID);
    ok_status(CALL(extension, DisconnectAndFlush, (IWVConnectQueuePair *)cq, &ov), WV_INVALID_PARAMETER);
    ok_uint(CALL(extension, Release), ==, 1);
    ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    rig_release(endpoint);
    rig_release(fresh);
    rig_release(qp);
}

TEST(Connect__arguments)
{
    IWVConnectEndpoint *endpoint = endpoint_at("10.1.1.1", 0);
    IWVConnectQueuePair *qp = rig_qp();
    SOCKADDR_IN dest = rig_v4("10.1.1.1", 5000);
    WV_CONNECT_PARAM param = { .DataLength = 57 };
    OVERLAPPED ov = rig_overlapped();

    ok_status(CALL(endpoint, Connect, NULL, (SOCKADDR *)&dest, &param, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Connect, (IWVConnectQueuePair *)cq, (SOCKADDR *)&dest, &param, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Connect, qp, NULL, &param, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), STATUS_INVALID_BUFFER_SIZE);
    param.DataLength = 0;
    dest.sin_family = 99;
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_INVALID_ADDRESS);
    dest = rig_v4("10.77.0.1", 5000);
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_HOST_UNREACHABLE);
    ok_status(CALL(endpoint, Reject, "x", 57), STATUS_INVALID_BUFFER_SIZE);
    ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    rig_release(endpoint);
    rig_release(qp);
}

/* rdma_cm connects reliably; the queue pair would get stuck half way. */
TEST(Connect__unreliable_queue_pair)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeUc);
    WV_CONNECT_PARAM param = { 0 };
    OVERLAPPED ov = rig_overlapped();
    IWVConnectQueuePair *qp;
    struct session s;

    session_listen(&s, "10.1.1.1");
    shape.pSendCq = shape.pReceiveCq = s.cq;
    ok_status(CALL(s.pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    s.from = NULL;
    session_request(&s);
    ok_status(CALL(s.passive, Accept, qp, &param, &ov), WV_NOT_SUPPORTED);
    ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    session_accept(&s);
    session_complete(&s);
    session_end(&s);
    {
        IWVConnectEndpoint *endpoint = endpoint_at("10.1.1.1", 0);
        SOCKADDR_IN dest = rig_v4("10.1.1.200", 5999);

        ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_NOT_SUPPORTED);
        rig_release(endpoint);
    }
    rig_release(qp);
}

TEST(session__limits_data_and_addresses)
{
    struct session s;
    WV_CONNECT_ATTRIBUTES at;
    WV_QP_ATTRIBUTES attributes;

    session_listen(&s, "10.1.1.1");
    s.param.DataLength = 5;
    memcpy(s.param.Data, "hello", 5);
    s.param.ResponderResources = 3;
    s.param.InitiatorDepth = 2;
    s.param.RetryCount = 5;
    s.param.RnrRetryCount = 4;
    session_request(&s);

    /* The passive side's own point of view. */
    ok_status(CALL(s.passive, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok(!memcmp(at.Param.Data, "hello\0\0", 7));
    ok_uint(at.Param.ResponderResources, ==, 2);
    ok_uint(at.Param.InitiatorDepth, ==, 3);
    ok_uint(at.Param.RnrRetryCount, ==, 4);
    ok_uint(at.LocalAddress.Sin.sin_addr.s_addr, ==, s.address.sin_addr.s_addr);
    ok_uint(at.LocalAddress.Sin.sin_port, ==, 0);
    ok_uint(at.PeerAddress.Sin.sin_addr.s_addr, ==, s.address.sin_addr.s_addr);
    ok_uint(at.PeerAddress.Sin.sin_port, !=, 0);
    ok_uint(at.Device.DeviceGuid, ==, rig_guid("10.1.1.1"));

    memset(&s.answer, 0, sizeof(s.answer));
    s.answer.DataLength = 3;
    memcpy(s.answer.Data, "yes", 3);
    s.answer.ResponderResources = 4;
    s.answer.InitiatorDepth = 1;
    s.answer.RnrRetryCount = 6;
    session_accept(&s);

    /* The active side sees the reply's values as they are. */
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok(!memcmp(at.Param.Data, "yes\0\0", 5));
    ok_uint(at.Param.ResponderResources, ==, 4);
    ok_uint(at.Param.InitiatorDepth, ==, 1);
    ok_uint(at.LocalAddress.Sin.sin_port, !=, 0);
    ok_uint(at.PeerAddress.Sin.sin_port, ==, s.address.sin_port);

    session_complete(&s);
    ok_status(CALL(s.qp[0], Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpState, ==, WvQpStateRts);
    ok_uint(attributes.SequenceErrorRetryCount, ==, 5);
    ok_status(CALL(s.qp[1], Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpState, ==, WvQpStateRts);
    /* As given, not agreed. */
    ok_uint(attributes.ResponderResources, ==, 4);
    ok_uint(attributes.InitiatorDepth, ==, 1);
    session_send(&s, 0);
    session_send(&s, 1);
    session_end(&s);
}

static DWORD WINAPI disconnect(void *endpoint)
{
    ok_status(CALL((IWVConnectEndpoint *)endpoint, Disconnect, NULL), WV_SUCCESS);
    return 0;
}

TEST(session__blocking_calls)
{
    struct session s;
    WV_CONNECT_PARAM none = { 0 };
    HANDLE thread;

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    ok_status(CALL(s.passive, Accept, s.qp[1], &none, &s.accept), WV_IO_PENDING);
    ok_status(CALL(s.active, GetOverlappedResult, &s.connect, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(s.active, Accept, NULL, &none, NULL), WV_SUCCESS);
    ok_status(CALL(s.passive, GetOverlappedResult, &s.accept, NULL, TRUE), WV_SUCCESS);
    thread = CreateThread(NULL, 0, disconnect, s.active, 0, NULL);
    ok_status(CALL(s.passive, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(s.passive, Disconnect, NULL), WV_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    session_drop(&s);
}

TEST(session__iwarp)
{
    struct session s;

    session_listen(&s, "10.1.2.1");
    session_request(&s);
    session_accept(&s);
    session_complete(&s);
    session_send(&s, 0);
    session_end(&s);
}

/* The event of a reply has the two the other way round. */
TEST(session__iwarp_limits)
{
    WV_CONNECT_ATTRIBUTES at;
    struct session s;

    session_listen(&s, "10.1.2.1");
    s.param.ResponderResources = 3;
    s.param.InitiatorDepth = 2;
    session_request(&s);
    s.answer.ResponderResources = 2;
    s.answer.InitiatorDepth = 1;
    session_accept(&s);
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.ResponderResources, ==, 2);
    ok_uint(at.Param.InitiatorDepth, ==, 3); /* of our own the kernel takes nothing back */
    session_complete(&s);
    session_end(&s);
}

TEST(Listen__wildcard_serves_every_device)
{
    static const char *const addresses[] = { "10.1.1.1", "10.1.2.1" };

    for (int i = 0; i < 2; i++) {
        struct session s;
        WV_CONNECT_ATTRIBUTES at;

        session_listen_at(&s, addresses[i], "0.0.0.0");
        ok_status(CALL(s.listener, Query, &at), WV_SUCCESS);
        ok_uint(at.Device.DeviceGuid, ==, 0);
        session_request(&s);
        ok_status(CALL(s.passive, Query, &at), WV_SUCCESS);
        ok_uint(at.Device.DeviceGuid, ==, rig_guid(addresses[i]));
        session_accept(&s);
        session_complete(&s);
        session_end(&s);
    }
}

TEST(Connect__from_the_wildcard_address)
{
    struct session s;
    SOCKADDR_IN any = rig_v4("0.0.0.0", 0);
    WV_CONNECT_ATTRIBUTES at;
    USHORT port;

    session_listen(&s, "10.1.1.1");
    s.from = &any;
    session_request(&s);
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    port = at.LocalAddress.Sin.sin_port;
    ok_uint(at.LocalAddress.Sin.sin_addr.s_addr, ==, s.address.sin_addr.s_addr);
    ok_uint(port, !=, 0);
    session_accept(&s);
    session_complete(&s);
    session_end(&s);
}

/* The port of the address is the connection's, whatever port the application has put the queue pair on. */
TEST(Accept__queue_pairs_in_init_on_the_other_port)
{
    static const char *const addresses[] = { "10.1.7.1", "10.1.8.1" };

    fake_device_add("fake_two", IBV_TRANSPORT_IB, 2);
    for (unsigned port = 1; port <= 2; port++)
        ok(fake_address_add(addresses[port - 1], "fake_two", port));
    for (unsigned port = 1; port <= 2; port++) {
        WV_QP_ATTRIBUTES init = { .QpState = WvQpStateInit };
        struct session s;

        session_listen(&s, addresses[port - 1]);
        init.AddressVector.PortNumber = (UINT8)(3 - port);
        for (int i = 0; i < 2; i++)
            ok_status(CALL(s.qp[i], Modify, &init, 0, NULL), WV_SUCCESS);
        session_request(&s);
        session_accept(&s);
        session_complete(&s);
        for (int i = 0; i < 2; i++)
            ok_uint(fake_qp_attr(s.verbs[i], IBV_QPS_INIT, NULL)->port_num, ==, port);
        session_end(&s);
    }
}

/* What cannot be reached by any device leaves the endpoint and its port as they were. */
TEST(Connect__from_the_wildcard_address_fails)
{
    struct session s;
    SOCKADDR_IN any = rig_v4("0.0.0.0", 790), dest = rig_v4("10.66.0.9", 790);
    WV_CONNECT_ATTRIBUTES at;

    session_listen(&s, "10.1.1.1");
    ok(fake_address_add("10.66.0.1", NULL, 0));
    ok_status(CALL(s.active, BindAddress, (SOCKADDR *)&any), WV_SUCCESS);
    ok_status(CALL(s.active, Connect, s.qp[0], (SOCKADDR *)&dest, &s.param, &s.connect), WV_INVALID_ADDRESS);
    dest = s.address;
    fake_fail(FAKE_rdma_bind_addr, 1, ENOMEM);
    ok_status(CALL(s.active, Connect, s.qp[0], (SOCKADDR *)&dest, &s.param, &s.connect), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    ok_uint(at.LocalAddress.Sin.sin_addr.s_addr, ==, 0);
    ok_uint(at.LocalAddress.Sin.sin_port, ==, htons(790));
    ok_status(CALL(s.active, Listen, 1), WV_SUCCESS);
    session_drop(&s);
}

/* 127.x means the adapter's own address: of the queue pair's device. */
TEST(Connect__from_the_wildcard_address_to_loopback)
{
    struct session s;
    SOCKADDR_IN any = rig_v4("0.0.0.0", 0), dest = rig_v4("127.0.0.1", 0);
    WV_CONNECT_ATTRIBUTES at;

    session_listen(&s, "10.1.1.1");
    dest.sin_port = s.address.sin_port;
    ok_status(CALL(s.active, BindAddress, (SOCKADDR *)&any), WV_SUCCESS);
    ok_status(CALL(s.listener, GetRequest, s.passive, &s.request), WV_IO_PENDING);
    ok_status(CALL(s.active, Connect, s.qp[0], (SOCKADDR *)&dest, &s.param, &s.connect), WV_IO_PENDING);
    ok_status(CALL(s.listener, GetOverlappedResult, &s.request, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    ok_uint(at.LocalAddress.Sin.sin_addr.s_addr, ==, s.address.sin_addr.s_addr);
    session_accept(&s);
    session_complete(&s);
    session_end(&s);
}

/* A call that is refused changes nothing of the attempt that is under way. */
TEST(Connect__out_of_turn)
{
    WV_CONNECT_PARAM other = { .RetryCount = 1, .RnrRetryCount = 1 };
    OVERLAPPED ov = rig_overlapped();
    WV_QP_ATTRIBUTES attributes;
    struct session s;

    session_listen(&s, "10.1.1.1");
    s.param.RetryCount = 5;
    session_request(&s);
    ok_status(CALL(s.active, Connect, s.qp[0], (SOCKADDR *)&s.address, &other, &ov), WV_NOT_SUPPORTED);
    session_accept(&s);
    session_complete(&s);
    ok_status(CALL(s.qp[0], Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.SequenceErrorRetryCount, ==, 5);
    session_end(&s);
}

TEST(Connect__nobody_listens)
{
    IWVConnectEndpoint *endpoint = endpoint_at("10.1.1.1", 0);
    IWVConnectQueuePair *qp = rig_qp();
    SOCKADDR_IN dest = rig_v4("10.1.1.1", 5999);
    WV_CONNECT_PARAM param = { 0 };
    OVERLAPPED ov = rig_overlapped();

    ok_status(rig_finish(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), &ov), WV_CONNECTION_REFUSED);
    /* A refusal ends the endpoint, not the queue pair. */
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(rig_finish(CALL(endpoint, NotifyDisconnect, &ov), &ov), WV_SUCCESS);
    ok_status(CALL(endpoint, Disconnect, &ov), STATUS_INVALID_DEVICE_STATE);
    rig_release(endpoint);
    endpoint = endpoint_at("10.1.1.1", 0);
    ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, NULL), WV_CONNECTION_REFUSED);
    rig_release(endpoint);
    rig_release(qp);
}

TEST(Connect__times_out_and_may_be_repeated)
{
    IWVConnectEndpoint *endpoint = endpoint_at("10.1.1.1", 0);
    IWVConnectQueuePair *qp = rig_qp();
    SOCKADDR_IN dest = rig_v4("10.1.1.200", 5999);
    WV_CONNECT_PARAM param = { 0 };

    for (int i = 0; i < 2; i++) {
        OVERLAPPED ov = rig_overlapped();
        struct rdma_cm_id *id;

        ok_status(CALL(endpoint, Connect, qp, (SOCKADDR *)&dest, &param, &ov), WV_IO_PENDING);
        ok_eventually(fake_count(FAKE_rdma_connect) == (unsigned)i + 1);
        id = (struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_connect, -1)->object;
        fake_cm_simple(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        /* A success-class code. */
        ok_status(CALL(endpoint, GetOverlappedResult, &ov, NULL, TRUE), WV_TIMEOUT);
    }
    rig_release(endpoint);
    rig_release(qp);
}

TEST(Connect__refused_by_the_application)
{
    struct session s;
    WV_CONNECT_ATTRIBUTES at;

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    ok_status(CALL(s.passive, Reject, "no", 2), WV_SUCCESS);
    ok_status(CALL(s.passive, Reject, "no", 2), WV_NOT_SUPPORTED);
    ok_status(CALL(s.active, GetOverlappedResult, &s.connect, NULL, TRUE), WV_CONNECTION_REFUSED);
    ok_status(CALL(s.active, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok(!memcmp(at.Param.Data, "no\0", 3));
    session_drop(&s);
}

TEST(Accept__refused_after_the_reply)
{
    struct session s;

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    session_accept(&s);
    ok_status(CALL(s.active, Reject, "late", 4), WV_SUCCESS);
    ok_status(CALL(s.passive, GetOverlappedResult, &s.accept, NULL, TRUE), WV_CONNECTION_REFUSED);
    session_drop(&s);
}

/* What else may become of a reply. */
TEST(Accept__not_answered)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
        HRESULT hr;
    } ends[] = {
        { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, WV_IO_TIMEOUT },
        { RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, WV_CONNECTION_ABORTED },
    };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct session s;

        session_listen(&s, "10.1.1.1");
        session_request(&s);
        session_accept(&s);
        fake_cm_simple((struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_accept, -1)->object, ends[i].event,
                       ends[i].status);
        ok_status(CALL(s.passive, GetOverlappedResult, &s.accept, NULL, TRUE), ends[i].hr);
        session_drop(&s);
    }
}

TEST(Connect__error)
{
    struct session s;

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    fake_cm_simple((struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_connect, -1)->object,
                   RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
    ok_status(CALL(s.active, GetOverlappedResult, &s.connect, NULL, TRUE), WV_CONNECTION_ABORTED);
    session_drop(&s);
}

TEST(Accept__arguments)
{
    struct session s;
    WV_CONNECT_PARAM param = { .DataLength = 57 };
    OVERLAPPED ov = rig_overlapped();
    IWVDatagramQueuePair *ud = rig_ud();

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    ok_status(CALL(s.passive, Accept, s.qp[1], &param, &ov), STATUS_INVALID_BUFFER_SIZE);
    param.DataLength = 0;
    ok_status(CALL(s.passive, Accept, s.qp[1], NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(s.passive, Accept, NULL, &param, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(s.passive, Accept, (IWVConnectQueuePair *)ud, &param, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(s.passive, Accept, s.qp[0], &param, &ov), WV_CONNECTION_ACTIVE); /* the other side's */
    ok_status(CALL(s.passive, Disconnect, &ov), STATUS_INVALID_DEVICE_STATE);
    ok_status(CALL(s.passive, NotifyDisconnect, &ov), WV_NOT_SUPPORTED);
    ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    session_accept(&s);
    ok_status(CALL(s.passive, Accept, s.qp[1], &param, &ov), WV_NOT_SUPPORTED);
    session_complete(&s);
    ok_status(CALL(s.active, Accept, NULL, &param, &ov), WV_NOT_SUPPORTED);
    session_end(&s);
    rig_release(ud);
}

TEST(GetRequest__fifo_fresh_and_cancelled)
{
    IWVConnectEndpoint *listener = endpoint_at("10.1.1.1", 0), *other = endpoint_at("10.1.1.1", 0);
    IWVConnectEndpoint *fresh[2] = { session_endpoint(), session_endpoint() };
    OVERLAPPED ov[2] = { rig_overlapped(), rig_overlapped() }, late = rig_overlapped();

    ok_status(CALL(listener, Listen, (SIZE_T)-1), WV_SUCCESS);
    ok_status(CALL(listener, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(listener, GetRequest, NULL, &late), WV_INVALID_PARAMETER);
    ok_status(CALL(listener, GetRequest, (IWVConnectEndpoint *)cq, &late), WV_INVALID_PARAMETER);
    ok_status(CALL(listener, GetRequest, other, &late), STATUS_CONNECTION_IN_USE);
    ok_status(CALL(listener, GetRequest, listener, &late), STATUS_CONNECTION_IN_USE);
    for (int i = 0; i < 2; i++)
        ok_status(CALL(listener, GetRequest, fresh[i], &ov[i]), WV_IO_PENDING);
    ok_status(CALL(listener, GetRequest, fresh[0], &late), STATUS_CONNECTION_IN_USE);
    ok_status(CALL(listener, CancelOverlappedRequests), WV_SUCCESS);
    for (int i = 0; i < 2; i++)
        ok_status(CALL(listener, GetOverlappedResult, &ov[i], NULL, FALSE), WV_CANCELLED);
    /* Back to what they were. */
    ok_status(CALL(listener, GetRequest, fresh[0], &ov[0]), WV_IO_PENDING);
    ok_status(CALL(listener, GetRequest, fresh[1], &ov[1]), WV_IO_PENDING);
    rig_release(fresh[1]);
    ok_status(CALL(listener, GetOverlappedResult, &ov[1], NULL, FALSE), WV_CANCELLED);
    rig_release(listener);
    ok_status(CALL(device, GetOverlappedResult, &ov[0], NULL, FALSE), WV_CANCELLED);
    rig_release(fresh[0]);
    rig_release(other);
}

/* Cancelling completes the request and nothing else: the attempt goes on. */
TEST(CancelOverlappedRequests__connect_stays_in_flight)
{
    struct session s;
    WV_CONNECT_PARAM none = { 0 };

    fake_wire_hold(true);
    session_listen(&s, "10.1.1.1");
    session_start(&s);
    ok_status(CALL(s.active, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(s.active, GetOverlappedResult, &s.connect, NULL, FALSE), WV_CANCELLED);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    fake_wire_hold(false);
    ok_status(CALL(s.listener, GetOverlappedResult, &s.request, NULL, TRUE), WV_SUCCESS);
    session_accept_only(&s);
    ok_eventually(CALL(s.active, Accept, NULL, &none, NULL) == WV_SUCCESS);
    ok_status(CALL(s.passive, GetOverlappedResult, &s.accept, NULL, TRUE), WV_SUCCESS);
    session_end(&s);
}

TEST(endpoint__device_removed)
{
    struct session s;
    OVERLAPPED notify = rig_overlapped(), disconnect = rig_overlapped();

    session_listen(&s, "10.1.1.1");
    session_request(&s);
    session_accept(&s);
    session_complete(&s);
    ok_status(CALL(s.active, NotifyDisconnect, &notify), WV_IO_PENDING);
    fake_device_remove("fake_ib");
    ok_status(CALL(s.active, GetOverlappedResult, &notify, NULL, TRUE), WV_DEVICE_REMOVED);
    ok_status(CALL(s.active, Disconnect, &disconnect), WV_DEVICE_REMOVED);
    session_drop(&s);
}
