/* SPDX-License-Identifier: MIT */
#include "v1side.h"

#include <stdlib.h>

#include "early.h"

/* Its OVERLAPPED is not its last argument, where CALL looks for one. */
HRESULT v1_register(struct v1 *v1, const void *buffer, SIZE_T size, ND_MR_HANDLE *mr)
{
    HRESULT started = CALL(v1->adapter, RegisterMemory, buffer, size, &v1->ov, mr);

    if (started != ND_PENDING)
        return v1_finish(v1->adapter, started, &v1->ov);
    return pair_function("INDAdapter::RegisterMemory", v1_finish(v1->adapter, started, &v1->ov));
}

void v1_open_at(struct v1 *v1, const union endpoint *address, SIZE_T size)
{
    SIZE_T info_size = sizeof(v1->info);

    memset(v1, 0, sizeof(*v1));
    harness_status_text = ndverbs_status_text;
    v1->address = *address;
    v1->size = size;
    v1->event = event_auto();
    overlapped_rubbish(&v1->ov, v1->event);
    ok_status(NdStartup(), S_OK);
    ok_status(NdOpenV1Adapter(&address->any, endpoint_size(address), &v1->adapter), ND_SUCCESS);
    ok_status(CALL(v1->adapter, Query, 1, &v1->info, &info_size), ND_SUCCESS);
    ok_status(CALL(v1->adapter, CreateCompletionQueue, 64, &v1->cq), ND_SUCCESS);
    v1->buffer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    ok(v1->buffer != NULL);
    memset(v1->buffer, 0, size);
    ok_status(v1_register(v1, v1->buffer, size, &v1->mr), ND_SUCCESS);
}

void v1_open(struct v1 *v1, SIZE_T size)
{
    union endpoint own = own_endpoint();

    v1_open_at(v1, &own, size);
}

void v1_make_connector(struct v1 *v1)
{
    ok_status(CALL(v1->adapter, CreateConnector, &v1->connector), ND_SUCCESS);
}

void v1_make_endpoint(struct v1 *v1)
{
    ok_status(CALL(v1->connector, CreateEndpoint, v1->cq, v1->cq, 16, 16, 2, 2, 1, 1, &v1->inline_size, &v1->endpoint),
              ND_SUCCESS);
}

void v1_drop(struct v1 *v1)
{
    if (v1->connector)
        release_last(v1->connector);
    if (v1->endpoint)
        release_last(v1->endpoint);
    v1->connector = NULL;
    v1->endpoint = NULL;
}

void v1_close(struct v1 *v1)
{
    v1_drop(v1);
    release_last(v1->cq);
    if (v1->mr)
        ok_status(v1_finish(v1->adapter, CALL(v1->adapter, DeregisterMemory, v1->mr, &v1->ov), &v1->ov), ND_SUCCESS);
    release_last(v1->adapter);
    ok_status(NdCleanup(), S_OK);
    free(v1->buffer);
    ok(CloseHandle(v1->event));
    memset(v1, 0, sizeof(*v1));
}

HRESULT v1_finish(void *object, HRESULT started, OVERLAPPED *ov)
{
    INDOverlapped *overlapped = object;
    SIZE_T bytes = (SIZE_T)-1;
    HRESULT status;

    ok_msg(started != ND_SUCCESS, "an overlapped call returned ND_SUCCESS");
    if (started != ND_PENDING)
        return started;
    status = CALL(overlapped, GetOverlappedResult, ov, &bytes, TRUE);
    ok_uint(bytes, ==, 0); /* all of it is written */
    return status;
}

union endpoint v1_listener(const struct v1 *v1, USHORT port)
{
    union endpoint endpoint = v1->address;

    endpoint_set_port(&endpoint, ntohs(port));
    return endpoint;
}

INDListen *v1_listen(struct v1 *v1)
{
    INDListen *listen;
    USHORT port = 0;

    ok_status(CALL(v1->adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    ok_int(port, !=, 0);
    if (runner_role() == ROLE_SERVER) {
        port = ntohs(port);
        runner_put(&port, sizeof(port));
    }
    return listen;
}

void v1_request(struct v1 *v1, INDListen *listen)
{
    ok_status(v1_finish(listen, CALL(listen, GetConnectionRequest, v1->connector, &v1->ov), &v1->ov), ND_SUCCESS);
}

HRESULT v1_try_accept(struct v1 *v1)
{
    if (!v1->endpoint)
        v1_make_endpoint(v1);
    return V1_FINISH(v1, CALL(v1->connector, Accept, v1->endpoint, NULL, 0, &v1->ov));
}

HRESULT v1_try_connect(struct v1 *v1, const union endpoint *to)
{
    return V1_FINISH(v1,
                     CALL(v1->connector, Connect, v1->endpoint, &to->any, endpoint_size(to), 123, 0, NULL, 0, &v1->ov));
}

void v1_accept(struct v1 *v1, INDListen *listen)
{
    if (!v1->connector)
        v1_make_connector(v1);
    v1_request(v1, listen);
    ok_status(v1_try_accept(v1), ND_SUCCESS);
}

void v1_connect(struct v1 *v1, const union endpoint *to)
{
    if (!v1->connector)
        v1_make_connector(v1);
    if (!v1->endpoint)
        v1_make_endpoint(v1);
    ok_status(v1_try_connect(v1, to), ND_SUCCESS);
    ok_status(V1_FINISH(v1, CALL(v1->connector, CompleteConnect, &v1->ov)), ND_SUCCESS);
}

void v1_disconnect(struct v1 *v1)
{
    ok_status(V1_FINISH(v1, CALL(v1->connector, Disconnect, &v1->ov)), ND_SUCCESS);
}

void v1_self_connect(struct v1 *active, struct v1 *passive)
{
    HRESULT requested, connected, accepted;
    INDListen *listen;
    union endpoint to;
    USHORT port = 0;

    ok_status(CALL(passive->adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(passive, port);
    if (!active->connector)
        v1_make_connector(active);
    if (!active->endpoint)
        v1_make_endpoint(active);
    if (!passive->connector)
        v1_make_connector(passive);
    requested = CALL(listen, GetConnectionRequest, passive->connector, &passive->ov);
    ok_status(requested, ND_PENDING);
    connected =
        CALL(active->connector, Connect, active->endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &active->ov);
    ok_status(connected, ND_PENDING);
    ok_status(v1_finish(listen, requested, &passive->ov), ND_SUCCESS);
    if (!passive->endpoint)
        v1_make_endpoint(passive);
    accepted = CALL(passive->connector, Accept, passive->endpoint, NULL, 0, &passive->ov);
    ok_status(accepted, ND_PENDING);
    ok_status(V1_FINISH(active, connected), ND_SUCCESS);
    ok_status(V1_FINISH(active, CALL(active->connector, CompleteConnect, &active->ov)), ND_SUCCESS);
    ok_status(V1_FINISH(passive, accepted), ND_SUCCESS);
    release_last(listen);
}

void v1_begin(struct v1 *v1, SIZE_T size)
{
    v1_open(v1, size);
    if (runner_role() == ROLE_SERVER) {
        INDListen *listen = v1_listen(v1);

        v1_accept(v1, listen);
        release_last(listen);
    } else {
        union endpoint to = listener_of_peer();

        v1_connect(v1, &to);
    }
    runner_settle();
}

void v1_end(struct v1 *v1)
{
    runner_sync();
    if (runner_role() == ROLE_CLIENT)
        v1_disconnect(v1);
    runner_sync();
    v1_close(v1);
}

ND_SGE v1_sge(const struct v1 *v1, SIZE_T offset, SIZE_T length)
{
    ND_SGE sge = { v1->buffer + offset, length, v1->mr };

    ok_uint(offset + length, <=, v1->size);
    return sge;
}

void v1_receive(struct v1 *v1, ND_RESULT *result, SIZE_T offset, SIZE_T length)
{
    ND_SGE sge = v1_sge(v1, offset, length);

    for (size_t i = 0; i < sizeof(v1->receives) / sizeof(v1->receives[0]); i++)
        if (!v1->receives[i]) {
            v1->receives[i] = result;
            break;
        }
    ok_status(CALL(v1->endpoint, Receive, result, &sge, 1), ND_SUCCESS);
}

void v1_send(struct v1 *v1, ND_RESULT *result, SIZE_T offset, SIZE_T length, DWORD flags)
{
    ND_SGE sge = v1_sge(v1, offset, length);

    ok_status(CALL(v1->endpoint, Send, result, &sge, 1, flags), ND_SUCCESS);
}

static ND_RESULT **receive_of(struct v1 *v1, const ND_RESULT *result)
{
    for (size_t i = 0; i < sizeof(v1->receives) / sizeof(v1->receives[0]); i++)
        if (v1->receives[i] == result)
            return &v1->receives[i];
    return NULL;
}

static enum early_kind kind_of(struct v1 *v1, const ND_RESULT *result)
{
    return receive_of(v1, result) ? EARLY_RECEIVE : EARLY_OTHER;
}

static ND_RESULT *poll_next(struct v1 *v1)
{
    ND_RESULT *result = NULL;

    while (CALL(v1->cq, GetResults, &result, 1) == 0)
        harness_yield();
    ok(result != NULL);
    pair_result_v1(result);
    return result;
}

static ND_RESULT *no_more_a_receive(struct v1 *v1, ND_RESULT *result)
{
    ND_RESULT **receive = receive_of(v1, result);

    if (receive)
        *receive = NULL;
    return result;
}

ND_RESULT *v1_next(struct v1 *v1)
{
    ND_RESULT *result;

    if (!early_take(v1->cq, EARLY_ANY, &result, sizeof(result)))
        result = poll_next(v1);
    return no_more_a_receive(v1, result);
}

ND_RESULT *v1_next_like(struct v1 *v1, const ND_RESULT *wanted)
{
    enum early_kind kind = kind_of(v1, wanted);
    ND_RESULT *result;

    if (early_take(v1->cq, kind, &result, sizeof(result)))
        return no_more_a_receive(v1, result);
    for (;;) {
        result = poll_next(v1);
        if (kind_of(v1, result) == kind || result->Status != ND_SUCCESS)
            return no_more_a_receive(v1, result);
        early_put(v1->cq, kind_of(v1, result), &result, sizeof(result));
    }
}

void v1_none(struct v1 *v1)
{
    ND_RESULT *result;

    ok(!early_take(v1->cq, EARLY_ANY, &result, sizeof(result)));
    ok_int(CALL(v1->cq, GetResults, &result, 1), ==, 0);
}
