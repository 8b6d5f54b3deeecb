/* SPDX-License-Identifier: MIT */

/* Whole sessions of version 1, alone and with version 2, over the library's real engine and the fakes' wire. */

#include "side.h"

#include <arpa/inet.h>

static struct side client, server;
static ND_RESULT results[8];

SETUP
{
    front_setup();
    fake_wire(true);
    memset(results, 0, sizeof(results));
    side_open(&client, "10.1.1.1");
    side_open(&server, "10.1.1.1");
}

TEARDOWN
{
    side_close(&client);
    side_close(&server);
    front_teardown();
}

/* The sequence of ndspi-v1.md section 11. */
TEST(Session_v1__from_end_to_end)
{
    struct sockaddr_in to, address;
    INDListen *listen = side_listen(&server, &to);
    OVERLAPPED request = { 0 }, notify = { 0 }, own_notify = { 0 };
    SIZE_T in = 9, out = 9, length = 1;
    char data[200];

    side_connector(&server);
    side_connector(&client);
    ok_status(CALL(client.connector, CreateEndpoint, client.cq, client.cq, 4, 4, 1, 1, 2, 1, NULL, &client.endpoint),
              ND_SUCCESS);
    ok_status(CALL(listen, GetConnectionRequest, server.connector, &request), ND_PENDING);
    ok_status(side_receive(&client, &results[0]), ND_SUCCESS);
    ok_status(CALL(client.connector, Connect, client.endpoint, (struct sockaddr *)&to, sizeof(to), 123, 0, "caller", 6,
                   &client.ov),
              ND_PENDING);
    ok_status(CALL(listen, GetOverlappedResult, &request, NULL, TRUE), ND_SUCCESS);
    ok_status(CALL(server.connector, GetConnectionData, &in, &out, data, &length), ND_BUFFER_OVERFLOW);
    ok_int(data[0], ==, 'c');
    ok_uint(in, ==, 1); /* what the caller may have in flight towards us */
    ok_uint(out, ==, 2);
    length = sizeof(address);
    ok_status(CALL(server.connector, GetPeerAddress, (struct sockaddr *)&address, &length), ND_SUCCESS);
    ok_uint(address.sin_addr.s_addr, ==, front_v4("10.1.1.1").sin_addr.s_addr);
    ok_status(CALL(server.connector, CreateEndpoint, server.cq, server.cq, 4, 4, 1, 1, in, out, NULL, &server.endpoint),
              ND_SUCCESS);
    CALL(server.endpoint, StartRequestBatch);
    for (int i = 1; i < 4; i++)
        ok_status(side_receive(&server, &results[i]), ND_SUCCESS);
    CALL(server.endpoint, SubmitRequestBatch);
    ok_status(CALL(server.connector, Accept, server.endpoint, data, 149, &server.ov), ND_BUFFER_OVERFLOW);
    ok_status(CALL(server.connector, Accept, client.endpoint, data, 1, &server.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(server.connector, Accept, server.endpoint, "!", 1, &server.ov), ND_PENDING);
    ok_status(FINISH(client.connector, &client.ov, ND_PENDING), ND_SUCCESS);
    length = 1;
    ok_status(CALL(client.connector, GetConnectionData, NULL, NULL, data, &length), ND_BUFFER_OVERFLOW);
    ok_int(data[0], ==, '!');
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)), ND_SUCCESS);
    ok_status(FINISH(server.connector, &server.ov, ND_PENDING), ND_SUCCESS);
    ok_status(CALL(server.connector, NotifyDisconnect, &notify), ND_PENDING);
    ok_status(CALL(client.connector, NotifyDisconnect, &own_notify), ND_PENDING);

    strcpy((char *)client.buffer, "hello");
    ok_status(side_send(&client, &results[5], 6, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    ok_result(&server, &results[1], ND_SUCCESS);
    ok_uint(results[1].BytesTransferred, ==, 6);
    ok_str((char *)server.buffer, "hello");
    ok_result(&client, &results[5], ND_SUCCESS);

    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
    ok_result(&client, &results[0], ND_CANCELED);        /* back before Disconnect completed */
    ok_status((HRESULT)own_notify.Internal, ND_SUCCESS); /* a local disconnect is no error */
    ok_status(CALL(server.connector, GetOverlappedResult, &notify, &length, TRUE), ND_SUCCESS);
    ok_result(&server, &results[2], ND_CANCELED);
    ok_result(&server, &results[3], ND_CANCELED);
    ok_status(FINISH(server.connector, &server.ov, CALL(server.connector, Disconnect, &server.ov)), ND_SUCCESS);
    ok_status(CALL(server.connector, Disconnect, &server.ov), ND_CONNECTION_INVALID);
    front_release(listen);
}

/* After a Disconnect the connector has no endpoint, gets a new one, and connects again. */
TEST(Session_v1__connector_again)
{
    struct sockaddr_in to;
    INDListen *listen = side_listen(&server, &to);
    INDEndpoint *old;

    side_connector(&client);
    for (int i = 0; i < 3; i++) {
        OVERLAPPED request = { 0 };

        side_connector(&server);
        side_endpoint(&client);
        old = client.endpoint;
        ok_status(CALL(listen, GetConnectionRequest, server.connector, &request), ND_PENDING);
        ok_status(CALL(client.connector, Connect, client.endpoint, (struct sockaddr *)&to, sizeof(to), 123, 0, NULL, 0,
                       &client.ov),
                  ND_PENDING);
        ok_status(CALL(listen, GetOverlappedResult, &request, NULL, TRUE), ND_SUCCESS);
        side_endpoint(&server);
        ok_status(CALL(server.connector, Accept, server.endpoint, NULL, 0, &server.ov), ND_PENDING);
        ok_status(FINISH(client.connector, &client.ov, ND_PENDING), ND_SUCCESS);
        ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)),
                  ND_SUCCESS);
        ok_status(FINISH(server.connector, &server.ov, ND_PENDING), ND_SUCCESS);
        ok_status(
            CALL(client.connector, CreateEndpoint, client.cq, client.cq, 4, 4, 1, 1, 0, 0, NULL, &client.endpoint),
            ND_NOT_SUPPORTED);
        ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
        side_drop(&server);
        if (i == 1) { /* the old endpoint is past use, and need not be gone */
            client.endpoint = old;
            ok_status(
                CALL(client.connector, Connect, old, (struct sockaddr *)&to, sizeof(to), 123, 0, NULL, 0, &client.ov),
                ND_CONNECTION_ACTIVE);
            side_endpoint(&client);
            ok_status(
                CALL(client.connector, Connect, old, (struct sockaddr *)&to, sizeof(to), 123, 0, NULL, 0, &client.ov),
                ND_INVALID_PARAMETER_1);
            front_release(client.endpoint);
        }
        front_release(old);
        client.endpoint = NULL;
    }
    front_release(listen);
}

TEST(Session_v1__rejected)
{
    struct sockaddr_in to;
    INDListen *listen = side_listen(&server, &to);
    OVERLAPPED request = { 0 };
    char data[200];
    SIZE_T length = sizeof(data);

    side_connector(&server);
    side_connector(&client);
    side_endpoint(&client);
    ok_status(CALL(listen, GetConnectionRequest, server.connector, &request), ND_PENDING);
    ok_status(CALL(client.connector, Connect, client.endpoint, (struct sockaddr *)&to, sizeof(to), 123, 0, NULL, 0,
                   &client.ov),
              ND_PENDING);
    ok_status(CALL(listen, GetOverlappedResult, &request, NULL, TRUE), ND_SUCCESS);
    ok_status(CALL(server.connector, Reject, "no", 3), ND_SUCCESS);
    ok_status(CALL(server.connector, Reject, "no", 3), ND_CONNECTION_INVALID);
    ok_status(FINISH(client.connector, &client.ov, ND_PENDING), ND_CONNECTION_REFUSED);
    ok_status(CALL(client.connector, GetConnectionData, NULL, NULL, data, &length), ND_SUCCESS);
    ok_str(data, "no");
    front_release(listen);
}

/* One process, one device, both versions; neither can tell what the other is. */
struct two {
    IND2Adapter *adapter;
    HANDLE file;
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    IND2MemoryRegion *mr;
    uint8_t buffer[256];
    OVERLAPPED ov;
};

static void two_open(struct two *t)
{
    memset(t, 0, sizeof(*t));
    t->adapter = front_open("10.1.1.1");
    t->file = front_file(t->adapter);
    ok_status(CALL(t->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, t->file, (void **)&t->mr), ND_SUCCESS);
    ok_status(CALL(t->mr, Register, t->buffer, sizeof(t->buffer),
                   ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ, &t->ov),
              ND_PENDING);
    ok_status(CALL(t->adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, t->file, 16, 0, 0, (void **)&t->cq),
              ND_SUCCESS);
    ok_status(CALL(t->adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)t->cq, (IUnknown *)t->cq, t, 4, 4, 1, 1,
                   0, (void **)&t->qp),
              ND_SUCCESS);
    ok_status(CALL(t->adapter, CreateConnector, &IID_IND2Connector, t->file, (void **)&t->connector), ND_SUCCESS);
}

static void two_close(struct two *t)
{
    front_release(t->connector);
    front_release(t->qp);
    front_release(t->cq);
    front_release(t->mr);
    CloseHandle(t->file);
    front_release(t->adapter);
}

static void two_receive(struct two *t)
{
    ND2_SGE sge = { t->buffer, sizeof(t->buffer), CALL(t->mr, GetLocalToken) };

    ok_status(CALL(t->qp, Receive, t, &sge, 1), ND_SUCCESS);
}

static ND2_RESULT two_result(struct two *t)
{
    ND2_RESULT result;

    ok_eventually(CALL(t->cq, GetResults, &result, 1) == 1);
    return result;
}

/* A message each way once the connection stands. */
static void talk(struct side *one, struct two *two)
{
    ND2_SGE sge = { two->buffer, 4, CALL(two->mr, GetLocalToken) };
    ND_RESULT in, out;

    two_receive(two);
    strcpy((char *)one->buffer, "from one");
    ok_status(side_send(one, &out, 9, 0), ND_SUCCESS);
    ok_status(two_result(two).Status, ND_SUCCESS);
    ok_str((char *)two->buffer, "from one");
    ok_result(one, &out, ND_SUCCESS);
    ok_status(side_receive(one, &in), ND_SUCCESS);
    strcpy((char *)two->buffer, "two");
    ok_status(CALL(two->qp, Send, two, &sge, 1, 0), ND_SUCCESS);
    ok_result(one, &in, ND_SUCCESS);
    ok_str((char *)one->buffer, "two");
    ok_status(two_result(two).Status, ND_SUCCESS);
}

TEST(Session__v1_client_of_a_v2_server)
{
    struct sockaddr_in to = front_v4("10.1.1.1");
    IND2Listener *listener;
    OVERLAPPED request = { 0 };
    ULONG size = sizeof(to);
    struct two two;

    two_open(&two);
    ok_status(CALL(two.adapter, CreateListener, &IID_IND2Listener, two.file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, (struct sockaddr *)&to, sizeof(to)), ND_SUCCESS);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    ok_status(CALL(listener, GetLocalAddress, (struct sockaddr *)&to, &size), ND_SUCCESS);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)two.connector, &request), ND_PENDING);
    /* Objects of the other version are not taken for one's own. */
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)client.adapter, &request), ND_INVALID_PARAMETER_1);
    side_connector(&client);
    side_endpoint(&client);
    ok_status(CALL(client.connector, Connect, client.endpoint, (struct sockaddr *)&to, sizeof(to), 6, 0, "one", 4,
                   &client.ov),
              ND_PENDING);
    ok_status(CALL(listener, GetOverlappedResult, &request, TRUE), ND_SUCCESS);
    ok_status(CALL(two.connector, Accept, (IUnknown *)two.qp, 1, 1, NULL, 0, &two.ov), ND_PENDING);
    ok_status(FINISH(client.connector, &client.ov, ND_PENDING), ND_SUCCESS);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)), ND_SUCCESS);
    ok_status(CALL(two.connector, GetOverlappedResult, &two.ov, TRUE), ND_SUCCESS);
    talk(&client, &two);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
    front_release(listener);
    two_close(&two);
}

TEST(Session__v2_client_of_a_v1_server)
{
    struct sockaddr_in to, from = front_v4("10.1.1.1");
    INDListen *listen = side_listen(&server, &to);
    OVERLAPPED request = { 0 };
    struct two two;

    two_open(&two);
    side_connector(&server);
    ok_status(CALL(listen, GetConnectionRequest, server.connector, &request), ND_PENDING);
    ok_status(CALL(two.connector, Bind, (struct sockaddr *)&from, sizeof(from)), ND_SUCCESS);
    ok_status(
        CALL(two.connector, Connect, (IUnknown *)two.qp, (struct sockaddr *)&to, sizeof(to), 1, 1, NULL, 0, &two.ov),
        ND_PENDING);
    ok_status(CALL(listen, GetOverlappedResult, &request, NULL, TRUE), ND_SUCCESS);
    side_endpoint(&server);
    ok_status(CALL(server.connector, Accept, server.endpoint, NULL, 0, &server.ov), ND_PENDING);
    ok_status(CALL(two.connector, GetOverlappedResult, &two.ov, TRUE), ND_SUCCESS);
    ok_status(CALL(two.connector, CompleteConnect, &two.ov), ND_PENDING);
    ok_status(FINISH(server.connector, &server.ov, ND_PENDING), ND_SUCCESS);
    talk(&server, &two);
    ok_status(CALL(two.connector, Disconnect, &two.ov), ND_PENDING);
    ok_status(CALL(two.connector, GetOverlappedResult, &two.ov, TRUE), ND_SUCCESS);
    front_release(listen);
    two_close(&two);
}
