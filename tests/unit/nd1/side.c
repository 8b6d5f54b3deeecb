/* SPDX-License-Identifier: MIT */
#include "side.h"

#include <arpa/inet.h>

INDAdapter *side_adapter(const char *text)
{
    struct sockaddr_in address = front_v4(text);
    INDAdapter *adapter = NULL;

    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, sizeof(address), &adapter), ND_SUCCESS);
    ok(adapter != NULL);
    return adapter;
}

HRESULT side_finish(INDOverlapped *object, OVERLAPPED *ov, HRESULT started)
{
    SIZE_T bytes = 99;
    HRESULT status;

    ok(started != ND_SUCCESS);
    if (started != ND_PENDING)
        return started;
    status = CALL(object, GetOverlappedResult, ov, &bytes, TRUE);
    ok_uint(bytes, ==, 0);
    return status;
}

void side_open(struct side *s, const char *text)
{
    memset(s, 0, sizeof(*s));
    s->adapter = side_adapter(text);
    ok_status(
        FINISH(s->adapter, &s->ov, CALL(s->adapter, RegisterMemory, s->buffer, sizeof(s->buffer), &s->ov, &s->mr)),
        ND_SUCCESS);
    ok_status(CALL(s->adapter, CreateCompletionQueue, 16, &s->cq), ND_SUCCESS);
}

void side_connector(struct side *s)
{
    ok_status(CALL(s->adapter, CreateConnector, &s->connector), ND_SUCCESS);
}

void side_endpoint(struct side *s)
{
    ok_status(CALL(s->connector, CreateEndpoint, s->cq, s->cq, 4, 4, 1, 1, 1, 1, NULL, &s->endpoint), ND_SUCCESS);
}

void side_drop(struct side *s)
{
    if (s->connector)
        front_release(s->connector);
    if (s->endpoint)
        front_release(s->endpoint);
    s->connector = NULL;
    s->endpoint = NULL;
}

void side_close(struct side *s)
{
    side_drop(s);
    front_release(s->cq);
    ok_status(FINISH(s->adapter, &s->ov, CALL(s->adapter, DeregisterMemory, s->mr, &s->ov)), ND_SUCCESS);
    front_release(s->adapter);
}

INDListen *side_listen(struct side *s, struct sockaddr_in *address)
{
    INDListen *listen;
    USHORT port = 0;

    ok_status(CALL(s->adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    ok_uint(port, !=, 0);
    *address = front_v4("10.1.1.1");
    address->sin_port = port;
    return listen;
}

void side_connect(struct side *client, struct side *server)
{
    struct sockaddr_in to;
    INDListen *listen = side_listen(server, &to);
    OVERLAPPED request = { 0 };

    side_connector(server);
    side_connector(client);
    side_endpoint(client);
    ok_status(CALL(listen, GetConnectionRequest, server->connector, &request), ND_PENDING);
    ok_status(CALL(client->connector, Connect, client->endpoint, (struct sockaddr *)&to, sizeof(to), 123, 0, NULL, 0,
                   &client->ov),
              ND_PENDING);
    ok_status(CALL(listen, GetOverlappedResult, &request, NULL, TRUE), ND_SUCCESS);
    side_endpoint(server);
    ok_status(CALL(server->connector, Accept, server->endpoint, NULL, 0, &server->ov), ND_PENDING);
    ok_status(FINISH(client->connector, &client->ov, ND_PENDING), ND_SUCCESS);
    ok_status(FINISH(client->connector, &client->ov, CALL(client->connector, CompleteConnect, &client->ov)),
              ND_SUCCESS);
    ok_status(FINISH(server->connector, &server->ov, ND_PENDING), ND_SUCCESS);
    front_release(listen);
}

HRESULT side_receive(struct side *s, ND_RESULT *r)
{
    ND_SGE sge = { s->buffer, sizeof(s->buffer), s->mr };

    return CALL(s->endpoint, Receive, r, &sge, 1);
}

HRESULT side_send(struct side *s, ND_RESULT *r, size_t length, DWORD flags)
{
    ND_SGE sge = { s->buffer, length, s->mr };

    return CALL(s->endpoint, Send, r, &sge, 1, flags);
}

void side_result(const char *file, int line, struct side *s, const ND_RESULT *r, HRESULT status)
{
    ND_RESULT *got = NULL;

    ok_eventually(CALL(s->cq, GetResults, &got, 1) == 1);
    if (got != r)
        harness_fail(file, line, "result %p, not %p", (void *)got, (const void *)r);
    if (got->Status != status)
        harness_fail_status(file, line, "result", "expected", got->Status, status);
}
