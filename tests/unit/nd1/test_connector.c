/* SPDX-License-Identifier: MIT */

/* INDConnector and INDListen, call by call: ndspi-v1.md sections 9 and 10. */

#include "side.h"

#include <arpa/inet.h>
#include <errno.h>

static struct side s;
static struct sockaddr_in to;

SETUP
{
    front_setup();
    side_open(&s, "10.1.1.1");
    side_connector(&s);
    side_endpoint(&s);
    to = front_v4("10.1.1.200");
    to.sin_port = htons(4000);
}

TEARDOWN
{
    side_close(&s);
    front_teardown();
}

static HRESULT connect_to(const struct sockaddr_in *address, USHORT local, SIZE_T data_length)
{
    static const char data[200];

    overlapped_fresh(&s.ov);
    return CALL(s.connector, Connect, s.endpoint, (const struct sockaddr *)address, sizeof(*address), 6, local, data,
                data_length, &s.ov);
}

static struct rdma_cm_id *newest_id(void)
{
    return fake_object(FAKE_OBJ_ID, -1);
}

/* Brings the attempt to the point where the request is on the wire. */
static struct rdma_cm_id *request_out(void)
{
    ok_eventually(fake_cm_conn(newest_id()) != NULL);
    return newest_id();
}

TEST(Connect_v1__bad_arguments)
{
    struct sockaddr_in6 six = front_v6("fd00:1:1::1");
    struct side other;
    OVERLAPPED ov;

    overlapped_fresh(&ov);
    side_open(&other, "10.1.1.1");
    side_connector(&other);
    side_endpoint(&other);
    ok_status(CALL(s.connector, Connect, NULL, (struct sockaddr *)&to, 16, 6, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Connect, (INDEndpoint *)&front_foreign, (struct sockaddr *)&to, 16, 6, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Connect, other.endpoint, (struct sockaddr *)&to, 16, 6, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, -1, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, 256, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, IPPROTO_UDP, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 15, 6, 0, NULL, 0, &ov),
              ND_INVALID_ADDRESS);
    ok_status(CALL(s.connector, Connect, s.endpoint, NULL, 16, 6, 0, NULL, 0, &ov), ND_INVALID_ADDRESS);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&six, 28, 6, 0, NULL, 0, &ov),
              ND_INVALID_ADDRESS);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, 6, 0, &to, 57, &ov),
              ND_BUFFER_OVERFLOW);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, 6, 0, (void *)8, 8, &ov),
              ND_ACCESS_VIOLATION);
    ok_status(CALL(s.connector, Connect, s.endpoint, (struct sockaddr *)&to, 16, 6, 0, NULL, 0, NULL),
              ND_INVALID_PARAMETER);
    ok_untouched(&ov);
    side_close(&other);
    /* As good as new. */
    ok_status(connect_to(&to, 0, 56), ND_PENDING);
    ok_status(connect_to(&to, 0, 0), ND_CONNECTION_ACTIVE);
    s.ov.Internal = ND_PENDING; /* the second one used the same structure */
}

TEST(Connector_v1__states_before_a_connection)
{
    struct sockaddr_in address = { .sin_port = 0x5a5a }, before = address;
    SIZE_T length = sizeof(address), in, out;
    OVERLAPPED ov;

    overlapped_fresh(&ov);
    ok_status(CALL(s.connector, CompleteConnect, &ov), ND_CONNECTION_INVALID);
    ok_status(CALL(s.connector, Accept, s.endpoint, NULL, 0, &ov), ND_CONNECTION_INVALID);
    ok_status(CALL(s.connector, Accept, NULL, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(s.connector, Reject, &to, 149), ND_BUFFER_OVERFLOW);
    ok_status(CALL(s.connector, GetConnectionData, &in, &out, NULL, NULL), ND_CONNECTION_INVALID);
    /* Nothing for a caller that looks at it all the same (D11). */
    ok_status(CALL(s.connector, GetConnectionData, NULL, NULL, &address, &length), ND_CONNECTION_INVALID);
    ok_uint(length, ==, 0);
    ok_status(CALL(s.connector, GetLocalAddress, (struct sockaddr *)&address, NULL), ND_INVALID_PARAMETER_2);
    length = sizeof(address);
    ok_status(CALL(s.connector, GetLocalAddress, (struct sockaddr *)&address, &length), ND_CONNECTION_INVALID);
    ok_uint(length, ==, 0);
    length = sizeof(address);
    ok_status(CALL(s.connector, GetPeerAddress, (struct sockaddr *)&address, &length), ND_CONNECTION_INVALID);
    ok_uint(length, ==, 0);
    ok_mem(&address, &before, sizeof(address));
    ok_status(CALL(s.connector, NotifyDisconnect, &ov), ND_CONNECTION_INVALID);
    ok_status(CALL(s.connector, Disconnect, &ov), ND_CONNECTION_INVALID);
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_untouched(&ov);
}

/* ND_TIMEOUT is a success to a completion port, and the same connector and endpoint try again. */
TEST(Connect_v1__timeout_and_again)
{
    HANDLE port = CreateIoCompletionPort(CALL(s.adapter, GetFileHandle), NULL, 1, 0);
    ND_RESULT receive;
    OVERLAPPED *got;
    ULONG_PTR key;
    DWORD bytes;

    ok_status(side_receive(&s, &receive), ND_SUCCESS);
    for (int i = 0; i < 3; i++) {
        struct rdma_cm_id *id;

        ok_status(connect_to(&to, 0, 4), ND_PENDING);
        id = request_out();
        fake_cm_simple(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
        ok_ptr(got, ==, &s.ov);
        ok_status(CALL(s.connector, GetOverlappedResult, &s.ov, NULL, FALSE), ND_TIMEOUT);
        ok_no_result(&s);
    }
    ok_status(connect_to(&to, 0, 4), ND_PENDING);
    fake_cm_simple(request_out(), RDMA_CM_EVENT_REJECTED, 28);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok_ptr(got, ==, &s.ov);
    ok_status(CALL(s.connector, GetOverlappedResult, &s.ov, NULL, FALSE), ND_CONNECTION_REFUSED);
    CloseHandle(port);
}

/* The data of a refusal is read although there is no connection: limits are 0 then. */
TEST(Connect_v1__refusal_data)
{
    const struct fake_cm rejected = {
        .event = RDMA_CM_EVENT_REJECTED, .status = 28, .private_data = "because", .private_data_len = 8
    };
    SIZE_T in = 9, out = 9, length = 4;
    char data[200] = { 0 };

    ok_status(connect_to(&to, 0, 0), ND_PENDING);
    fake_cm_event(request_out(), &rejected);
    ok_status(FINISH(s.connector, &s.ov, ND_PENDING), ND_CONNECTION_REFUSED);
    ok_status(CALL(s.connector, GetConnectionData, &in, &out, data, &length), ND_BUFFER_OVERFLOW);
    ok_mem(data, "becau", 4); /* as much as fits */
    ok_uint(data[4], ==, 0);
    ok_uint(in, ==, 0);
    ok_uint(out, ==, 0);
    ok_uint(length, >=, 8);
    ok_status(CALL(s.connector, GetConnectionData, NULL, NULL, NULL, &length), ND_BUFFER_OVERFLOW);
    length = sizeof(data);
    ok_status(CALL(s.connector, GetConnectionData, NULL, NULL, data, &length), ND_SUCCESS);
    ok_str(data, "because");
    in = out = 9;
    ok_status(CALL(s.connector, GetConnectionData, &in, &out, NULL, NULL), ND_CONNECTION_INVALID);
    ok_uint(in, ==, 9);
    ok_uint(out, ==, 9);
}

TEST(Connect_v1__local_port)
{
    struct sockaddr_in local;
    SIZE_T length = sizeof(local);
    struct side other;

    ok_status(connect_to(&to, htons(5123), 0), ND_PENDING);
    ok_status(CALL(s.connector, GetLocalAddress, (struct sockaddr *)&local, &length), ND_SUCCESS);
    ok_uint(local.sin_port, ==, htons(5123));
    ok_uint(local.sin_addr.s_addr, ==, front_v4("10.1.1.1").sin_addr.s_addr);
    length = 4;
    ok_status(CALL(s.connector, GetLocalAddress, (struct sockaddr *)&local, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, sizeof(local));
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status((HRESULT)s.ov.Internal, ND_CANCELED);
    /* The same port again, any port, and another one. */
    ok_status(connect_to(&to, htons(5123), 0), ND_PENDING);
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(connect_to(&to, 0, 0), ND_PENDING);
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(connect_to(&to, htons(5124), 0), ND_PENDING);
    length = sizeof(local);
    ok_status(CALL(s.connector, GetLocalAddress, (struct sockaddr *)&local, &length), ND_SUCCESS);
    ok_uint(local.sin_port, ==, htons(5124));
    side_open(&other, "10.1.1.1");
    side_connector(&other);
    side_endpoint(&other);
    fake_fail_always(FAKE_rdma_bind_addr, EADDRINUSE);
    ok_status(CALL(other.connector, Connect, other.endpoint, (struct sockaddr *)&to, sizeof(to), 6, htons(5124), NULL,
                   0, &other.ov),
              ND_ADDRESS_ALREADY_EXISTS);
    fake_fail_clear(FAKE_rdma_bind_addr);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    ok_status(
        CALL(other.connector, Connect, other.endpoint, (struct sockaddr *)&to, sizeof(to), 6, 0, NULL, 0, &other.ov),
        ND_INSUFFICIENT_RESOURCES);
    fake_alloc_fail(1); /* the id; the file has kept the request of the last one */
    ok_status(
        CALL(other.connector, Connect, other.endpoint, (struct sockaddr *)&to, sizeof(to), 6, 0, NULL, 0, &other.ov),
        ND_INSUFFICIENT_RESOURCES);
    ok(!fake_alloc_pending());
    side_close(&other);
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
}

TEST(Connector_v1_Release__completes_what_is_pending)
{
    ok_status(connect_to(&to, 0, 0), ND_PENDING);
    request_out();
    front_release(s.connector);
    s.connector = NULL;
    ok_status((HRESULT)s.ov.Internal, ND_CANCELED);
}

TEST(GetConnectionRequest_v1__rows)
{
    struct side other;
    OVERLAPPED ov, first = { 0 };
    INDListen *listen;
    SIZE_T bytes = 5;
    USHORT port;

    overlapped_fresh(&ov);
    side_open(&other, "10.1.1.1");
    side_connector(&other);
    ok_status(CALL(s.adapter, Listen, 0, 6, 0, &port, &listen), ND_SUCCESS);
    ok_status(CALL(listen, GetConnectionRequest, NULL, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listen, GetConnectionRequest, (INDConnector *)&front_foreign, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listen, GetConnectionRequest, other.connector, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listen, GetConnectionRequest, s.connector, NULL), ND_INVALID_PARAMETER);
    ok_untouched(&ov);
    ok_status(CALL(listen, GetConnectionRequest, s.connector, &first), ND_PENDING);
    ok_status(CALL(listen, GetConnectionRequest, s.connector, &ov), ND_CONNECTION_ACTIVE);
    ok_untouched(&ov);
    ok_status(CALL(listen, GetOverlappedResult, &first, &bytes, FALSE), ND_PENDING);
    ok_status(CALL(listen, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(listen, GetOverlappedResult, &first, &bytes, FALSE), ND_CANCELED);
    ok_uint(bytes, ==, 0);
    ok_status(CALL(listen, GetConnectionRequest, s.connector, &first), ND_PENDING);
    front_release(listen);
    ok_status((HRESULT)first.Internal, ND_CANCELED);
    side_close(&other);
}
