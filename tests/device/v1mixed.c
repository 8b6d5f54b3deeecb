/* SPDX-License-Identifier: MIT */
/* Versions 1 and 2 talk to each other, as two processes and as one that has both on one device. */
#include "v1side.h"

#include <endian.h>

#define SIZE 65536

/* A version 2 region as a version 1 descriptor: what its application would send. */
static ND_MW_DESCRIPTOR describe(const struct link *link)
{
    ND_MW_DESCRIPTOR mw = { .Base = htobe64((UINT64)(uintptr_t)link->buffer),
                            .Length = htobe64(link->shape.size),
                            .Token = CALL(link->mr, GetRemoteToken) };

    return mw;
}

/* Messages of some sizes from version 1 to version 2 and back; both ends are in step. */

static const SIZE_T sizes[] = { 1, 100, 160, 161, 4096, SIZE / 2 };

static void one_sends(struct v1 *v1, SIZE_T size, ULONG seed)
{
    ND_RESULT result;

    pattern_fill(v1->buffer, size, seed);
    v1_send(v1, &result, 0, size, 0);
    ok_v1_result(v1, &result, ND_SUCCESS);
}

static void two_receives(struct link *link, SIZE_T size, ULONG seed)
{
    ND2_RESULT result = result_of(link->cq, Nd2RequestTypeReceive);

    ok_status(result.Status, ND_SUCCESS);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_uint(result.BytesTransferred, ==, size);
    pattern_check(link->buffer + SIZE / 2, size, seed);
}

static void one_part(struct v1 *v1)
{
    ND_MW_DESCRIPTOR mw;
    ND_RESULT in, out;
    ND_SGE sge;

    runner_settle();
    for (ULONG i = 0; i < _countof(sizes); i++) {
        v1_receive(v1, &in, SIZE / 2, SIZE / 2);
        runner_sync();
        one_sends(v1, sizes[i], i);
        runner_sync(); /* or the answer might be there before the acknowledgement */
        ok_v1_result(v1, &in, ND_SUCCESS);
        ok_uint(in.BytesTransferred, ==, sizes[i]);
        pattern_check(v1->buffer + SIZE / 2, sizes[i], i + 50);
    }
    /* Write into the peer's memory behind the start of its window, and read it back. */
    runner_get(&mw, sizeof(mw));
    pattern_fill(v1->buffer, 5000, 77);
    sge = v1_sge(v1, 0, 5000);
    ok_status(CALL(v1->endpoint, Write, &out, &sge, 1, &mw, 300, 0), ND_SUCCESS);
    ok_v1_result(v1, &out, ND_SUCCESS);
    ok_uint(out.BytesTransferred, ==, 5000);
    runner_sync();
    sge = v1_sge(v1, 6000, 5000);
    ok_status(CALL(v1->endpoint, Read, &out, &sge, 1, &mw, 300, 0), ND_SUCCESS);
    ok_v1_result(v1, &out, ND_SUCCESS);
    pattern_check(v1->buffer + 6000, 5000, 77);
    runner_sync();
}

static void two_part(struct link *link)
{
    ND_MW_DESCRIPTOR mw = describe(link);

    runner_settle();
    for (ULONG i = 0; i < _countof(sizes); i++) {
        post_receive(link, 1, SIZE / 2, SIZE / 2);
        runner_sync();
        two_receives(link, sizes[i], i);
        runner_sync();
        pattern_fill(link->buffer, sizes[i], i + 50);
        post_send(link, 2, 0, sizes[i], 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    }
    runner_put(&mw, sizeof(mw));
    runner_sync();
    pattern_check(link->buffer + 300, 5000, 77);
    runner_sync();
}

static const struct shape two_shape = { .size = SIZE, .reads = 1 };

/* The other side's link_trade. */
static void trade_with_link(void)
{
    struct link link = { 0 };

    runner_put(&link.remote, sizeof(link.remote));
    runner_get(&link.remote, sizeof(link.remote));
}

SERVER(v1_client_v2_server)
{
    struct session session;

    session_begin(&session, &two_shape);
    two_part(&session.link);
    session_end(&session);
}

CLIENT(v1_client_v2_server)
{
    union endpoint to;
    struct v1 v1;

    v1_open(&v1, SIZE);
    to = listener_of_peer();
    v1_connect(&v1, &to);
    trade_with_link();
    one_part(&v1);
    v1_end(&v1);
}

SERVER(v2_client_v1_server)
{
    struct v1 v1;
    INDListen *listen;

    v1_open(&v1, SIZE);
    listen = v1_listen(&v1);
    v1_accept(&v1, listen);
    release_last(listen);
    trade_with_link();
    one_part(&v1);
    v1_end(&v1);
}

CLIENT(v2_client_v1_server)
{
    struct session session;

    session_begin(&session, &two_shape);
    two_part(&session.link);
    session_end(&session);
}

/* A version 2 window, told to the version 1 side as a descriptor: read and written through, invalidated by the version 1 side,
 * bound again, invalidated by its owner. */

#define AT     4096
#define LENGTH 8192

SERVER(window_of_v2)
{
    struct session session;
    struct link *link = &session.link;
    IND2MemoryWindow *window;
    IND2MemoryRegion *mr;
    ND_MW_DESCRIPTOR mw;

    session_begin(&session, &two_shape);
    ok_status(CALL(session.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, session.host.file, (void **)&mr),
              ND_SUCCESS);
    ok_status(finish(mr, CALL(mr, Register, link->buffer, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &link->ov), &link->ov),
              ND_SUCCESS);
    ok_status(CALL(session.host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
    pattern_fill(link->buffer + AT, LENGTH, 3);
    runner_settle();
    for (int round = 0; round < 2; round++) {
        post_receive(link, 7, 0, 64);
        ok_status(CALL(link->qp, Bind, (void *)1, (IUnknown *)mr, (IUnknown *)window, link->buffer + AT, LENGTH,
                       ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE),
                  ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
        mw.Base = htobe64((UINT64)(uintptr_t)link->buffer + AT);
        mw.Length = htobe64(LENGTH);
        mw.Token = CALL(window, GetRemoteToken);
        runner_put(&mw, sizeof(mw));
        if (round == 0)
            ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 7);
        else
            runner_sync(); /* read and written */
        pattern_check(link->buffer + AT + 100, LENGTH - 100, 4 + (ULONG)round);
        /* The first was the peer's to end; siw does not tell. */
        ok_status(CALL(link->qp, Invalidate, (void *)2, (IUnknown *)window, 0), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeInvalidate,
                  round == 0 && !runner_iwarp() ? ND_INVALID_DEVICE_REQUEST : ND_SUCCESS, 2);
    }
    pattern_fill(link->buffer, SIZE, 9);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 7);
    pattern_check(link->buffer, SIZE, 9);
    runner_sync();
    release_last(window);
    ok_status(finish(mr, CALL(mr, Deregister, &link->ov), &link->ov), ND_SUCCESS);
    release_last(mr);
    session_drop(&session);
}

CLIENT(window_of_v2)
{
    ND_MW_DESCRIPTOR mw;
    union endpoint to;
    ND_RESULT result;
    struct v1 v1;
    ND_SGE sge;

    v1_open(&v1, SIZE);
    to = listener_of_peer();
    v1_connect(&v1, &to);
    trade_with_link();
    runner_settle();
    for (int round = 0; round < 2; round++) {
        runner_get(&mw, sizeof(mw));
        ok_uint(be64toh(mw.Length), ==, LENGTH);
        if (round == 0) {
            sge = v1_sge(&v1, 0, LENGTH);
            ok_status(CALL(v1.endpoint, Read, &result, &sge, 1, &mw, 0, 0), ND_SUCCESS);
            ok_v1_result(&v1, &result, ND_SUCCESS);
            pattern_check(v1.buffer, LENGTH, 3);
        }
        pattern_fill(v1.buffer, LENGTH - 100, 4 + (ULONG)round);
        sge = v1_sge(&v1, 0, LENGTH - 100);
        ok_status(CALL(v1.endpoint, Write, &result, &sge, 1, &mw, 100, 0), ND_SUCCESS);
        ok_v1_result(&v1, &result, ND_SUCCESS);
        if (round == 0) {
            ok_status(CALL(v1.endpoint, SendAndInvalidate, &result, NULL, 0, &mw, 0), ND_SUCCESS);
            ok_v1_result(&v1, &result, ND_SUCCESS);
        } else {
            sge = v1_sge(&v1, 0, 1);
            ok_status(CALL(v1.endpoint, Read, &result, &sge, 1, &mw, 0, 0), ND_SUCCESS); /* the write is there */
            ok_v1_result(&v1, &result, ND_SUCCESS);
            runner_sync();
        }
    }
    runner_sync();
    sge = v1_sge(&v1, 0, 64);
    ok_status(CALL(v1.endpoint, Write, &result, &sge, 1, &mw, 0, 0), ND_SUCCESS);
    ok_ptr(v1_next(&v1), ==, &result);
    ok_msg(result.Status == ND_ACCESS_VIOLATION || runner_iwarp(), "0x%08x", (unsigned)result.Status);
    runner_sync();
    v1_close(&v1);
}

/* And the reverse: base and token of a version 1 descriptor are what version 2 takes. */

SERVER(window_of_v1)
{
    ND_RESULT binding, revoked, received;
    INDMemoryWindow *window;
    ND_MW_DESCRIPTOR mw;
    INDListen *listen;
    struct v1 v1;

    v1_open(&v1, SIZE);
    listen = v1_listen(&v1);
    v1_accept(&v1, listen);
    release_last(listen);
    trade_with_link();
    pattern_fill(v1.buffer, SIZE, 3);
    ok_status(CALL(v1.adapter, CreateMemoryWindow, &revoked, &window), ND_SUCCESS);
    v1_receive(&v1, &received, 0, 64);
    runner_settle();
    ok_status(CALL(v1.endpoint, Bind, &binding, v1.mr, window, v1.buffer + AT, LENGTH,
                   ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE, &mw),
              ND_SUCCESS);
    ok_v1_result(&v1, &binding, ND_SUCCESS);
    runner_put(&mw, sizeof(mw));
    ok_v1_result(&v1, &received, ND_SUCCESS); /* read and written */
    pattern_check(v1.buffer + AT, LENGTH, 4);
    ok_status(CALL(v1.endpoint, Invalidate, &binding, window, 0), ND_SUCCESS);
    ok_v1_result(&v1, &binding, ND_SUCCESS);
    release_last(window);
    v1_end(&v1);
}

CLIENT(window_of_v1)
{
    static BYTE expected[AT + LENGTH];
    struct session session;
    struct link *link = &session.link;
    ND_MW_DESCRIPTOR mw;
    ND2_SGE sge;

    session_begin(&session, &two_shape);
    runner_settle();
    runner_get(&mw, sizeof(mw));
    pattern_fill(expected, AT + LENGTH, 3);
    sge = sge_of(link, 0, LENGTH - 16);
    ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, be64toh(mw.Base) + 16, mw.Token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 1);
    ok_mem(link->buffer, expected + AT + 16, LENGTH - 16);
    pattern_fill(link->buffer, LENGTH, 4);
    sge = sge_of(link, 0, LENGTH);
    ok_status(CALL(link->qp, Write, (void *)2, &sge, 1, be64toh(mw.Base), mw.Token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 2);
    post_send(link, 3, 0, 8, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 3);
    session_end(&session);
}

/* D1: both versions in one process, on one device: two adapters, two domains, one context. */

static void message_each_way(struct v1 *v1, struct link *link)
{
    ND_RESULT in;

    if (runner_iwarp())
        Sleep(50);
    for (ULONG i = 0; i < _countof(sizes); i++) {
        post_receive(link, 1, SIZE / 2, SIZE / 2);
        one_sends(v1, sizes[i], i);
        two_receives(link, sizes[i], i);
        v1_receive(v1, &in, SIZE / 2, SIZE / 2);
        pattern_fill(link->buffer, sizes[i], i + 50);
        post_send(link, 2, 0, sizes[i], 0);
        ok_v1_result(v1, &in, ND_SUCCESS);
        pattern_check(v1->buffer + SIZE / 2, sizes[i], i + 50);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    }
}

/* tests/lists: D1. */
ALONE(one_process)
{
    union endpoint own = own_endpoint(), to;
    IND2Listener *listener;
    INDListen *listen;
    struct host host;
    struct link link;
    struct v1 v1;
    USHORT port;
    HRESULT hr;

    host_open(&host);
    v1_open_at(&v1, &own, SIZE);
    link_make(&link, &host, &two_shape);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    /* Version 1 calls. */
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)v1.connector, &link.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov), ND_PENDING);
    hr = CALL(v1.connector, Connect, v1.endpoint, &to.any, endpoint_size(&to), 6, 0, NULL, 0, &v1.ov);
    ok_status(hr, ND_PENDING);
    ok_status(finish(listener, ND_PENDING, &link.ov), ND_SUCCESS);
    ok_status(CALL(link.connector, Accept, (IUnknown *)link.qp, 1, 1, NULL, 0, &link.ov), ND_PENDING);
    ok_status(V1_FINISH(&v1, hr), ND_SUCCESS);
    ok_status(V1_FINISH(&v1, CALL(v1.connector, CompleteConnect, &v1.ov)), ND_SUCCESS);
    ok_status(FINISH(&link, ND_PENDING), ND_SUCCESS);
    message_each_way(&v1, &link);
    v1_disconnect(&v1);
    link_disconnect(&link);
    release_last(listener);
    v1_drop(&v1);
    release_last(link.connector);
    release_last(link.qp);

    /* Version 2 calls. */
    link_make_qp(&link);
    link_make_connector(&link);
    v1_make_connector(&v1);
    ok_status(CALL(v1.adapter, Listen, 0, 6, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(&v1, port);
    ok_status(CALL(listen, GetConnectionRequest, (INDConnector *)link.connector, &v1.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listen, GetConnectionRequest, v1.connector, &v1.ov), ND_PENDING);
    link_bind(&link);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 1, 1, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    ok_status(v1_finish(listen, ND_PENDING, &v1.ov), ND_SUCCESS);
    v1_make_endpoint(&v1);
    ok_status(CALL(v1.connector, Accept, v1.endpoint, NULL, 0, &v1.ov), ND_PENDING);
    ok_status(FINISH(&link, hr), ND_SUCCESS);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    ok_status(V1_FINISH(&v1, ND_PENDING), ND_SUCCESS);
    message_each_way(&v1, &link);
    link_disconnect(&link);
    v1_disconnect(&v1);
    release_last(listen);
    v1_close(&v1);
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
