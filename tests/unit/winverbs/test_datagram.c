/* SPDX-License-Identifier: MIT */
/* Datagrams: queue pairs, groups, endpoints. */
#include "rig.h"

#include <arpa/inet.h>

static char memory[64];
static WV_SGE sge = { .pAddress = memory, .Length = 8, .Lkey = 0x1111 };

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

static IWVDatagramEndpoint *endpoint(void)
{
    IWVDatagramEndpoint *made = NULL;

    ok_status(CALL(provider, CreateDatagramEndpoint, &made), WV_SUCCESS);
    return made;
}

static IWVDatagramEndpoint *bound(const char *text)
{
    IWVDatagramEndpoint *made = endpoint();
    SOCKADDR_IN local = rig_v4(text, 0);

    ok_status(CALL(made, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    return made;
}

static struct rdma_cm_id *newest_id(void)
{
    return fake_object(FAKE_OBJ_ID, -1);
}

TEST(datagram_qp__masks_and_failures)
{
    IWVDatagramQueuePair *qp = rig_ud();
    struct ibv_qp *verbs = rig_newest_qp();
    WV_QP_ATTRIBUTES attributes;
    WV_COMPLETION completion[4];
    struct ibv_ah ah;
    int mask;

    ok_uint(fake_qp_attr(verbs, IBV_QPS_INIT, &mask)->qkey, ==, 0x11111111);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY);
    fake_qp_attr(verbs, IBV_QPS_RTR, &mask);
    ok_int(mask, ==, IBV_QP_STATE);
    fake_qp_attr(verbs, IBV_QPS_RTS, &mask);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_SQ_PSN);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpType, ==, WvQpTypeUd);
    ok_uint(attributes.Qkey, ==, htonl(0x11111111));

    ok_status(CALL(qp, Send, 1, 0, &sge, 0, 0, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, SendMessage, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, Send, 1, (ULONG_PTR)&ah, &sge, WV_SEND_SIGNALED, htonl(0x42), htonl(0x11111111)), WV_SUCCESS);
    /* A datagram that fails is not the end of its queue pair. */
    ok_uint(fake_qp_posted(verbs, FAKE_SEND), ==, 1);
    {
        struct ibv_wc wc = { .wr_id = fake_log_find(FAKE_ibv_post_send, -1)->arg.wr.wr_id,
                             .status = IBV_WC_LOC_QP_OP_ERR,
                             .qp_num = verbs->qp_num };

        ok(fake_cq_push(verbs->send_cq, &wc, false));
    }
    ok_uint(CALL(cq, Poll, completion, 4), ==, 1);
    ok_int(completion->Status, ==, WvWcLocalOpError);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpState, ==, WvQpStateRts);
    ok_status(CALL(qp, PostReceive, 9, &sge, 1), WV_SUCCESS);
    ok_uint(fake_qp_posted(verbs, FAKE_RECV), ==, 1);
    rig_release(qp);
}

TEST(datagram_qp__requests_that_do_not_fit)
{
    IWVDatagramQueuePair *qp = rig_ud();
    WV_SEND_REQUEST request = { .Opcode = WvRdmaWrite, .pSgl = &sge, .nSge = 1 };
    WV_CONNECT_PARAM param = { 0 };
    IWVConnectEndpoint *connect;
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0);
    OVERLAPPED ov = rig_overlapped();

    ok_status(CALL(qp, PostSend, &request, NULL), WV_INVALID_PARAMETER);
    request.Opcode = WvFetchAdd;
    ok_status(CALL(qp, PostSend, &request, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(provider, CreateConnectEndpoint, &connect), WV_SUCCESS);
    ok_status(CALL(connect, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    ok_status(CALL(connect, Connect, (IWVConnectQueuePair *)qp, (SOCKADDR *)&local, &param, &ov), WV_INVALID_PARAMETER);
    rig_release(connect);
    rig_release(qp);
}

TEST(AttachMulticast__pairs)
{
    IWVDatagramQueuePair *qp = rig_ud();
    OVERLAPPED ov = rig_overlapped();
    WV_GID gid;

    memset(&gid, 0xff, sizeof(gid));
    ok_status(CALL(qp, AttachMulticast, NULL, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, AttachMulticast, &gid, htons(0xc001), &ov), WV_SUCCESS);
    ok_status(CALL(qp, GetOverlappedResult, &ov, NULL, FALSE), WV_SUCCESS);
    ok_status(CALL(qp, DetachMulticast, &gid, htons(0xc002), NULL), WV_NOT_FOUND);
    ok_status(CALL(qp, DetachMulticast, &gid, htons(0xc001), NULL), WV_SUCCESS);
    ok_status(CALL(qp, DetachMulticast, &gid, htons(0xc001), NULL), WV_NOT_FOUND);
    fake_fail(FAKE_ibv_attach_mcast, 1, EOPNOTSUPP);
    ok_status(CALL(qp, AttachMulticast, &gid, 0, &ov), WV_NOT_SUPPORTED);
    fake_fail(FAKE_ibv_attach_mcast, 1, EINVAL);
    ok_status(CALL(qp, AttachMulticast, &gid, 0, &ov), WV_INVALID_PARAMETER);
    fake_fail(FAKE_ibv_attach_mcast, 1, ENOMEM);
    ok_status(CALL(qp, AttachMulticast, &gid, 0, &ov), WV_INSUFFICIENT_RESOURCES);
    /* What is left goes with the queue pair. */
    ok_status(CALL(qp, AttachMulticast, &gid, 0, NULL), WV_SUCCESS);
    ok_status(CALL(qp, AttachMulticast, &gid, 0, NULL), WV_SUCCESS);
    fake_device_remove("fake_ib");
    ok_eventually(CALL(qp, AttachMulticast, &gid, 0, &ov) == WV_DEVICE_REMOVED);
    rig_release(qp);
}

/* ---- endpoints ---- */

TEST(datagram_endpoint__out_of_turn)
{
    IWVDatagramEndpoint *d = endpoint(), *fresh = endpoint();
    SOCKADDR_IN group = rig_v4("224.2.3.4", 0), local = rig_v4("10.1.1.1", 0);
    WV_DATAGRAM_ATTRIBUTES attributes = { 0 };
    WV_DATAGRAM_PARAM param = { 0 };
    OVERLAPPED ov = rig_overlapped();
    char route[64] = { 0 };

    ok_status(CALL(d, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Modify, 2, route, 64), WV_INVALID_PARAMETER);
    ok_status(CALL(d, BindAddress, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Listen, 1), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Reject, NULL, 0), WV_NOT_SUPPORTED);
    ok_status(CALL(d, GetRequest, fresh, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, GetRequest, NULL, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Accept, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, Accept, NULL, &ov), WV_INVALID_PARAMETER);
    param.DataLength = 57;
    ok_status(CALL(d, Accept, &param, &ov), STATUS_INVALID_BUFFER_SIZE);
    param.DataLength = 0;
    param.Qkey = htonl(0x55);
    ok_status(CALL(d, Accept, &param, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group, &ov), WV_NOT_SUPPORTED);
    ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group, &ov), WV_INVALID_ADDRESS);
    ok_status(CALL(d, Lookup, NULL, NULL, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&local, "x", 57, &ov), STATUS_INVALID_BUFFER_SIZE);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&local, NULL, 1, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(d, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(d, Query, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(d, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.Param.Qpn, ==, 0);
    local = rig_v4("10.9.9.9", 0);
    ok_status(CALL(d, BindAddress, (SOCKADDR *)&local), WV_INVALID_ADDRESS);
    rig_release(d);
    rig_release(fresh);
}

/* The address list has the scope. */
TEST(datagram_endpoint__link_local_without_a_scope)
{
    IWVDatagramEndpoint *d = endpoint();
    SOCKADDR_IN6 local = rig_v6("fe80::5", 700);

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(CALL(d, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    rig_release(d);
}

/* Another program has the port. */
TEST(datagram_endpoint__ports)
{
    IWVDatagramEndpoint *d = endpoint();
    SOCKADDR_IN local = rig_v4("10.1.1.1", 700);

    fake_fail_always(FAKE_rdma_bind_addr, EADDRINUSE); /* it is tried again if an id of ours was on its way out */
    ok_status(CALL(d, BindAddress, (SOCKADDR *)&local), WV_ADDRESS_ALREADY_EXISTS);
    fake_fail_clear(FAKE_rdma_bind_addr);
    ok_status(CALL(d, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    fake_fail_always(FAKE_rdma_listen, EADDRINUSE);
    ok_status(CALL(d, Listen, 1), WV_ADDRESS_ALREADY_EXISTS);
    fake_fail_clear(FAKE_rdma_listen);
    ok_status(CALL(d, Listen, 1), WV_SUCCESS);
    rig_release(d);
}

TEST(Lookup__found)
{
    IWVDatagramEndpoint *d = bound("10.1.1.1");
    SOCKADDR_IN dest = rig_v4("10.1.1.200", 777);
    WV_DATAGRAM_ATTRIBUTES attributes;
    OVERLAPPED ov = rig_overlapped();
    struct fake_cm answer = { .event = RDMA_CM_EVENT_ESTABLISHED,
                              .private_data = "here",
                              .private_data_len = 4,
                              .qp_num = 0x55,
                              .qkey = 0x01234567,
                              .ah_attr = { .is_global = 1, .port_num = 1, .dlid = 9, .sl = 2 } };

    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, "where", 5, &ov), WV_IO_PENDING);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    ok(!memcmp(fake_cm_conn(newest_id())->data, "where", 5));
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_NOT_SUPPORTED);
    fake_cm_event(newest_id(), &answer);
    ok_status(CALL(d, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    memset(&attributes, 0, sizeof(attributes));
    ok_status(CALL(d, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.Param.Qpn, ==, htonl(0x55));
    ok_uint(attributes.Param.Qkey, ==, htonl(WV_CM_UDP_QKEY));
    ok_uint(attributes.Param.DataLength, ==, 56);
    ok(!memcmp(attributes.Param.Data, "here\0", 5));
    ok_uint(attributes.Param.AddressVector.DLid, ==, htons(9));
    ok_uint(attributes.Param.AddressVector.ServiceLevel, ==, 2);
    ok_uint(attributes.Param.AddressVector.Route.Valid, ==, 1);
    ok_uint(attributes.PeerAddress.Sin.sin_addr.s_addr, ==, dest.sin_addr.s_addr);
    ok_uint(attributes.Device.DeviceGuid, ==, rig_guid("10.1.1.1"));
    rig_release(d);
}

TEST(Lookup__fails_and_may_be_repeated)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
        HRESULT hr;
    } ends[] = {
        { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, WV_IO_TIMEOUT },
        { RDMA_CM_EVENT_UNREACHABLE, 1, WV_CONNECTION_REFUSED },
        { RDMA_CM_EVENT_REJECTED, 28, WV_CONNECTION_REFUSED },
    };
    IWVDatagramEndpoint *d = bound("10.1.1.1");
    SOCKADDR_IN dest = rig_v4("10.1.1.200", 777);
    OVERLAPPED ov;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        ov = rig_overlapped();
        ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_IO_PENDING);
        ok_eventually(fake_count(FAKE_rdma_connect) == i + 1);
        fake_cm_simple(newest_id(), ends[i].event, ends[i].status);
        ok_status(CALL(d, GetOverlappedResult, &ov, NULL, TRUE), ends[i].hr);
    }
    fake_auto_resolve(false);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_IO_PENDING);
    ok_status(CALL(d, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(d, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_IO_PENDING);
    ok(CancelIoEx(CALL(provider, GetFileHandle), &ov));
    ok_status(CALL(d, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
    fake_auto_resolve(true);
    fake_resolve_error("10.1.1.200", false, -EHOSTUNREACH);
    ok_status(rig_finish(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), &ov), WV_HOST_UNREACHABLE);
    fake_auto_resolve(false);
    dest = rig_v4("10.1.1.201", 777);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_IO_PENDING);
    rig_release(d);
    ok_status(CALL(device, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
}

TEST(GetRequest__accept_and_reject)
{
    IWVDatagramEndpoint *listener = bound("10.1.1.1"), *fresh[3] = { endpoint(), endpoint(), endpoint() };
    struct fake_cm request = { .event = RDMA_CM_EVENT_CONNECT_REQUEST, .private_data = "hi", .private_data_len = 2 };
    WV_DATAGRAM_PARAM answer = { .Qpn = htonl(0x77), .DataLength = 2, .Data = "ok" };
    WV_DATAGRAM_ATTRIBUTES attributes = { 0 };
    struct rdma_cm_id *listening = newest_id(), *child;
    OVERLAPPED ov = rig_overlapped(), accept = rig_overlapped();

    ok_status(CALL(listener, Listen, 2), WV_SUCCESS);
    ok_status(CALL(listener, Listen, 2), WV_NOT_SUPPORTED);
    ok_status(CALL(listener, GetRequest, listener, &ov), STATUS_CONNECTION_IN_USE);
    ok_status(CALL(listener, GetRequest, fresh[0], &ov), WV_IO_PENDING);
    ok_status(CALL(listener, GetRequest, fresh[0], &accept), STATUS_CONNECTION_IN_USE);
    child = fake_cm_request(listening, &request, NULL);
    ok_status(CALL(listener, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(fresh[0], Query, &attributes), WV_SUCCESS);
    ok(!memcmp(attributes.Param.Data, "hi\0", 3));
    ok_status(rig_finish(CALL(fresh[0], Accept, &answer, &accept), &accept), WV_SUCCESS);
    ok_uint(fake_cm_conn(child)->param.qp_num, ==, 0x77);
    ok(!memcmp(fake_cm_conn(child)->data, "ok", 2));
    ok_status(CALL(fresh[0], Accept, &answer, &accept), WV_NOT_SUPPORTED);

    /* A request that waits to be fetched. */
    child = fake_cm_request(listening, &request, NULL);
    ok_eventually(fake_count(FAKE_rdma_ack_cm_event) == 2);
    ok_status(rig_finish(CALL(listener, GetRequest, fresh[1], &ov), &ov), WV_SUCCESS);
    ok_status(CALL(fresh[1], Reject, "no", 2), WV_SUCCESS);
    ok(!memcmp(fake_cm_conn(child)->data, "no", 2));
    ok_status(CALL(listener, GetRequest, fresh[2], &ov), WV_IO_PENDING);
    ok_status(CALL(listener, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(listener, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(listener, GetRequest, fresh[2], &ov), WV_IO_PENDING);
    rig_release(fresh[2]);
    ok_status(CALL(listener, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
    fake_cm_request(listening, &request, NULL); /* nobody ever fetches it */
    ok_eventually(fake_count(FAKE_rdma_ack_cm_event) == 3);
    rig_release(listener);
    rig_release(fresh[0]);
    rig_release(fresh[1]);
}

TEST(JoinMulticast__several_groups)
{
    IWVDatagramEndpoint *d = bound("10.1.1.1");
    SOCKADDR_IN group[2] = { rig_v4("224.2.3.4", 0), rig_v4("224.2.3.5", 0) };
    OVERLAPPED ov[2] = { rig_overlapped(), rig_overlapped() }, leave = rig_overlapped();
    struct fake_cm joined = { .event = RDMA_CM_EVENT_MULTICAST_JOIN, .qp_num = 0xffffff, .qkey = 0x01234567 };
    WV_DATAGRAM_ATTRIBUTES attributes;

    for (int i = 0; i < 2; i++) {
        ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[i], &ov[i]), WV_IO_PENDING);
        ok_io_pending(&ov[i]);
        ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[i], &leave), WV_ADDRESS_ALREADY_EXISTS);
        joined.group = fake_cm_group(newest_id());
        joined.ah_attr.dlid = (uint16_t)(0xc000 + i);
        fake_cm_event(newest_id(), &joined);
        ok_status(CALL(d, GetOverlappedResult, &ov[i], NULL, TRUE), WV_SUCCESS);
    }
    for (int i = 0; i < 2; i++) {
        memset(&attributes, 0, sizeof(attributes));
        attributes.PeerAddress.Sin = group[i];
        ok_status(CALL(d, Query, &attributes), WV_SUCCESS);
        ok_uint(attributes.Param.AddressVector.DLid, ==, htons((uint16_t)(0xc000 + i)));
        ok_uint(attributes.Param.Qpn, ==, htonl(0xffffff));
        ok_uint(attributes.PeerAddress.Sin.sin_addr.s_addr, ==, group[i].sin_addr.s_addr);
    }
    ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group[0], &leave), WV_SUCCESS);
    ok_status(CALL(d, GetOverlappedResult, &leave, NULL, FALSE), WV_SUCCESS);
    ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group[0], &leave), WV_INVALID_ADDRESS);

    /* A join that fails, one that is cancelled, one that is left while it joins. */
    ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[0], &ov[0]), WV_IO_PENDING);
    joined.event = RDMA_CM_EVENT_MULTICAST_ERROR;
    joined.status = -ENETUNREACH;
    joined.group = fake_cm_group(newest_id());
    fake_cm_event(newest_id(), &joined);
    ok_status(CALL(d, GetOverlappedResult, &ov[0], NULL, TRUE), WV_HOST_UNREACHABLE);
    ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[0], &ov[0]), WV_IO_PENDING);
    ok_status(CALL(d, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(d, GetOverlappedResult, &ov[0], NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group[0], NULL), WV_SUCCESS);
    ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[0], &ov[0]), WV_IO_PENDING);
    ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group[0], NULL), WV_SUCCESS);
    ok_status(CALL(d, GetOverlappedResult, &ov[0], NULL, FALSE), WV_CANCELLED);
    fake_fail(FAKE_rdma_join_multicast, 1, ENOSYS);
    ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[0], &ov[0]), WV_NOT_SUPPORTED);
    rig_release(d);
}

/* The id of a failed lookup goes, and its groups with it: left once each, and none is found afterwards. */
TEST(JoinMulticast__ends_with_a_failed_lookup)
{
    IWVDatagramEndpoint *d = bound("10.1.1.1");
    SOCKADDR_IN group[2] = { rig_v4("224.2.3.4", 0), rig_v4("224.2.3.5", 0) }, dest = rig_v4("10.1.1.200", 4711);
    OVERLAPPED ov[2] = { rig_overlapped(), rig_overlapped() }, lookup = rig_overlapped();
    struct fake_cm joined = { .event = RDMA_CM_EVENT_MULTICAST_JOIN };

    fake_auto_resolve(false); /* or the answer may overtake the error */
    for (int i = 0; i < 2; i++)
        ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group[i], &ov[i]), WV_IO_PENDING);
    joined.group = fake_cm_group(newest_id()); /* the second; the first is still joining */
    fake_cm_event(newest_id(), &joined);
    ok_status(CALL(d, GetOverlappedResult, &ov[1], NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &lookup), WV_IO_PENDING);
    fake_cm_simple(newest_id(), RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
    ok_status(CALL(d, GetOverlappedResult, &lookup, NULL, TRUE), WV_HOST_UNREACHABLE);
    ok_status(CALL(d, GetOverlappedResult, &ov[0], NULL, FALSE), WV_CANCELLED);
    ok_uint(fake_count(FAKE_rdma_leave_multicast), ==, 2);
    for (int i = 0; i < 2; i++)
        ok_status(CALL(d, LeaveMulticast, (SOCKADDR *)&group[i], NULL), WV_INVALID_ADDRESS);
    rig_release(d);
}

/* The endpoint is bound as before. */
TEST(Lookup__fails_and_something_else_follows)
{
    SOCKADDR_IN group = rig_v4("224.2.3.4", 0), dest = rig_v4("10.1.1.200", 4711);
    OVERLAPPED ov = rig_overlapped(), join = rig_overlapped();

    fake_resolve_error("10.1.1.200", false, -EHOSTUNREACH);
    for (int listens = 0; listens < 2; listens++) {
        IWVDatagramEndpoint *d = bound("10.1.1.1");

        ok_status(rig_finish(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), &ov), WV_HOST_UNREACHABLE);
        if (listens)
            ok_status(CALL(d, Listen, 1), WV_SUCCESS);
        else
            ok_status(CALL(d, JoinMulticast, (SOCKADDR *)&group, &join), WV_IO_PENDING);
        rig_release(d);
    }
    ok_status(CALL(device, GetOverlappedResult, &join, NULL, FALSE), WV_CANCELLED);
}

TEST(datagram_endpoint__device_removed)
{
    IWVDatagramEndpoint *d = bound("10.1.1.1");
    SOCKADDR_IN dest = rig_v4("10.1.1.200", 777);
    OVERLAPPED ov = rig_overlapped();

    fake_auto_resolve(false);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_IO_PENDING);
    fake_device_remove("fake_ib");
    ok_status(CALL(d, GetOverlappedResult, &ov, NULL, TRUE), WV_DEVICE_REMOVED);
    ok_status(CALL(d, Lookup, (SOCKADDR *)&dest, NULL, 0, &ov), WV_DEVICE_REMOVED);
    rig_release(d);
}

/* A request that is not accepted gets no events of its own, and the device may go without a word from rdma_cm. */
TEST(datagram_endpoint__device_fails)
{
    IWVDatagramEndpoint *listener = bound("10.1.1.1"), *wide = bound("0.0.0.0"), *other = bound("10.1.2.1");
    IWVDatagramEndpoint *fresh[5] = { endpoint(), endpoint(), endpoint(), endpoint(), endpoint() };
    IWVDatagramEndpoint *const listeners[] = { listener, wide, other };
    struct fake_cm request = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
    SOCKADDR_IN group = rig_v4("224.2.3.4", 0);
    IWVDatagramEndpoint *joining = bound("10.1.1.1");
    WV_DATAGRAM_PARAM answer = { 0 };
    OVERLAPPED ov[5], join = rig_overlapped(), accept = rig_overlapped();

    ok_status(CALL(joining, JoinMulticast, (SOCKADDR *)&group, &join), WV_IO_PENDING);
    for (int i = 0; i < 3; i++)
        ok_status(CALL(listeners[i], Listen, 2), WV_SUCCESS);
    for (int i = 0; i < 5; i++) {
        ov[i] = rig_overlapped();
        ok_status(CALL(i < 3 ? listener : listeners[i - 2], GetRequest, fresh[i], &ov[i]), WV_IO_PENDING);
        if (i < 2) {
            fake_cm_request((struct rdma_cm_id *)(uintptr_t)fake_log_find(FAKE_rdma_listen, 0)->object, &request, NULL);
            ok_status(CALL(listener, GetOverlappedResult, &ov[i], NULL, TRUE), WV_SUCCESS);
        }
    }
    fake_async_port("fake_ib", 1, IBV_EVENT_DEVICE_FATAL);
    ok_status(CALL(listener, GetOverlappedResult, &ov[2], NULL, TRUE), WV_DEVICE_REMOVED);
    ok_status(CALL(joining, GetOverlappedResult, &join, NULL, TRUE), WV_DEVICE_REMOVED);
    ok_eventually(CALL(fresh[0], Accept, &answer, &accept) == WV_DEVICE_REMOVED);
    ok_eventually(CALL(fresh[1], Reject, NULL, 0) == WV_DEVICE_REMOVED);
    ok_status(CALL(listener, GetRequest, fresh[2], &accept), WV_DEVICE_REMOVED);
    /* Those of the other device, and of all addresses, go on. */
    ok_io_pending(&ov[3]);
    ok_io_pending(&ov[4]);
    for (int i = 0; i < 3; i++)
        rig_release(listeners[i]);
    for (int i = 0; i < 5; i++)
        rig_release(fresh[i]);
    rig_release(joining);
}
