/* SPDX-License-Identifier: MIT */
/* Data over a connection, every byte verified: send and receive, read, write. ndspi.md 5. */
#include "session.h"

#include <stdlib.h>

#define MIB (1 << 20)

static SIZE_T sizes[32];
static size_t n_sizes;

/* 0, 1, around the inline limit, around the path MTUs there are, 64 KiB, 1 MiB. */
static void find_sizes(const struct host *host)
{
    static const SIZE_T fixed[] = { 0, 1, 1023, 1024, 1025, 2048, 2049, 4095, 4096, 4097, 65536, MIB };
    SIZE_T limit = host->info.MaxInlineDataSize;

    n_sizes = 0;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        sizes[n_sizes++] = fixed[i];
    if (limit) {
        sizes[n_sizes++] = limit - 1;
        sizes[n_sizes++] = limit;
        sizes[n_sizes++] = limit + 1;
    }
}

/* Inline where it fits, every other time. */
static ULONG inline_flag(const struct host *host, SIZE_T size, size_t i)
{
    return size <= host->info.MaxInlineDataSize && i % 2 == 0 ? ND_OP_FLAG_INLINE : 0;
}

static struct shape large_shape(struct host *host)
{
    struct shape shape = { .size = MIB, .reads = 4 };

    host_open(host);
    shape.inline_size = host->info.MaxInlineDataSize;
    host_close(host);
    return shape;
}

static void receive_sizes(struct session *session)
{
    struct link *link = &session->link;

    for (size_t i = 0; i < n_sizes; i++) {
        ND2_RESULT result;

        memset(link->buffer, 0xcc, sizes[i] < MIB ? sizes[i] + 1 : MIB);
        post_receive(link, i, 0, sizes[i]);
        runner_sync();
        result = result_next(link->cq);
        ok_status(result.Status, ND_SUCCESS);
        ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
        ok_uint((uintptr_t)result.RequestContext, ==, i);
        ok_uint(result.BytesTransferred, ==, sizes[i]);
        ok_ptr(result.QueuePairContext, ==, link);
        pattern_check(link->buffer, sizes[i], (ULONG)i);
        if (sizes[i] < MIB)
            ok_int(link->buffer[sizes[i]], ==, 0xcc);
    }
}

static void send_sizes(struct session *session)
{
    struct link *link = &session->link;

    for (size_t i = 0; i < n_sizes; i++) {
        pattern_fill(link->buffer, sizes[i], (ULONG)i);
        runner_sync();
        post_send(link, i, 0, sizes[i], inline_flag(&session->host, sizes[i], i));
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    }
}

SERVER(send_receive)
{
    struct session session;
    struct shape shape = large_shape(&session.host);

    session_begin(&session, &shape);
    find_sizes(&session.host);
    receive_sizes(&session);
    send_sizes(&session);
    session_end(&session);
}

CLIENT(send_receive)
{
    struct session session;
    struct shape shape = large_shape(&session.host);

    session_begin(&session, &shape);
    find_sizes(&session.host);
    send_sizes(&session);
    receive_sizes(&session);
    session_end(&session);
}

/* Write into the peer's memory: it sees the bytes and no result. */

SERVER(write)
{
    struct session session;
    struct shape shape = large_shape(&session.host);
    struct link *link = &session.link;

    session_begin(&session, &shape);
    find_sizes(&session.host);
    for (size_t i = 0; i < n_sizes; i++) {
        memset(link->buffer, 0xcc, sizes[i] < MIB ? sizes[i] + 1 : MIB);
        runner_sync();
        runner_sync();
        pattern_check(link->buffer, sizes[i], (ULONG)i);
        if (sizes[i] < MIB)
            ok_int(link->buffer[sizes[i]], ==, 0xcc);
        result_none(link->cq);
    }
    session_end(&session);
}

CLIENT(write)
{
    struct session session;
    struct shape shape = large_shape(&session.host);
    struct link *link = &session.link;

    session_begin(&session, &shape);
    find_sizes(&session.host);
    for (size_t i = 0; i < n_sizes; i++) {
        ND2_SGE sge = sge_of(link, 0, sizes[i]);

        pattern_fill(link->buffer, sizes[i], (ULONG)i);
        runner_sync();
        ok_status(CALL(link->qp, Write, (void *)i, &sge, 1, link->remote.address, link->remote.token,
                       inline_flag(&session.host, sizes[i], i)),
                  ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, i);
        runner_sync();
    }
    session_end(&session);
}

SERVER(read)
{
    struct session session;
    struct shape shape = large_shape(&session.host);

    session_begin(&session, &shape);
    find_sizes(&session.host);
    for (size_t i = 0; i < n_sizes; i++) {
        pattern_fill(session.link.buffer, sizes[i], (ULONG)i);
        runner_sync();
        runner_sync();
        result_none(session.link.cq);
    }
    session_end(&session);
}

CLIENT(read)
{
    struct session session;
    struct shape shape = large_shape(&session.host);
    struct link *link = &session.link;

    session_begin(&session, &shape);
    find_sizes(&session.host);
    for (size_t i = 0; i < n_sizes; i++) {
        ND2_SGE sge = sge_of(link, 0, sizes[i]);

        memset(link->buffer, 0xcc, sizes[i] < MIB ? sizes[i] + 1 : MIB);
        runner_sync();
        ok_status(CALL(link->qp, Read, (void *)i, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
        pattern_check(link->buffer, sizes[i], (ULONG)i);
        if (sizes[i] < MIB)
            ok_int(link->buffer[sizes[i]], ==, 0xcc);
        runner_sync();
    }
    session_end(&session);
}

/* Requests without any SGE (charm#1523) (D49). */

SERVER(no_entries)
{
    struct session session;
    ND2_RESULT result;

    session_begin(&session, NULL);
    ok_status(CALL(session.link.qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
    runner_sync();
    result = result_next(session.link.cq);
    ok_status(result.Status, ND_SUCCESS);
    ok_uint(result.BytesTransferred, ==, 0);
    session_end(&session);
}

CLIENT(no_entries)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .reads = 1 });
    runner_sync();
    ok_status(CALL(link->qp, Send, (void *)1, NULL, 0, 0), ND_SUCCESS);
    ok_status(CALL(link->qp, Write, (void *)2, NULL, 0, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 2);
    session_end(&session);
}

/* Nothing moves, although every slot of the device's ring has had a request of the whole buffer before. */

#define NOTHING_DEPTH 8

SERVER(read_of_nothing)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .reads = 1, .depth = NOTHING_DEPTH });
    for (uintptr_t i = 0; i < 4 * NOTHING_DEPTH; i++) {
        post_receive(link, i, 0, link->shape.size);
        runner_sync();
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    }
    pattern_fill(link->buffer, link->shape.size, 1);
    runner_sync();
    session_end(&session);
}

CLIENT(read_of_nothing)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .reads = 1, .depth = NOTHING_DEPTH });
    ok_status(CALL(link->qp, Read, (void *)3, NULL, 0, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 3);
    for (uintptr_t i = 0; i < 4 * NOTHING_DEPTH; i++) {
        runner_sync();
        post_send(link, i, 0, link->shape.size, 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    }
    runner_sync();
    pattern_fill(link->buffer, link->shape.size, 2);
    for (uintptr_t i = 0; i < 2 * NOTHING_DEPTH; i++) {
        ok_status(CALL(link->qp, Read, (void *)i, NULL, 0, link->remote.address, link->remote.token, 0), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
    }
    pattern_check(link->buffer, link->shape.size, 2);
    session_end(&session);
}

/* Gathered from and scattered to several places; more entries than asked for at creation still work up to the real
 * capacity (A44: two), and beyond any capacity they are refused. */

SERVER(entries)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sges[2];

    session_begin(&session, NULL);
    sges[0] = sge_of(link, 0, 100);
    sges[1] = sge_of(link, 1000, 300);
    ok_status(CALL(link->qp, Receive, (void *)1, sges, 2), ND_SUCCESS);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    memmove(link->buffer + 100, link->buffer + 1000, 150);
    pattern_check(link->buffer, 250, 4);
    session_end(&session);
}

CLIENT(entries)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sges[200];

    session_begin(&session, NULL);
    for (int i = 0; i < 200; i++)
        sges[i] = sge_of(link, 0, 1);
    ok_status(CALL(link->qp, Send, NULL, sges, 200, 0), ND_DATA_OVERRUN);
    ok_status(CALL(link->qp, Receive, NULL, sges, 200), ND_DATA_OVERRUN);
    ok_status(CALL(link->qp, Write, NULL, sges, 200, link->remote.address, link->remote.token, 0), ND_DATA_OVERRUN);
    ok_status(CALL(link->qp, Read, NULL, sges, 200, link->remote.address, link->remote.token, 0), ND_DATA_OVERRUN);
    pattern_fill(link->buffer + 2000, 250, 4);
    memmove(link->buffer + 10, link->buffer + 2000, 120);
    memmove(link->buffer + 500, link->buffer + 2120, 130);
    sges[0] = sge_of(link, 10, 120);
    sges[1] = sge_of(link, 500, 130);
    runner_sync();
    ok_status(CALL(link->qp, Send, (void *)1, sges, 2, 0), ND_SUCCESS);
    memset(sges, 0, sizeof(sges)); /* read before the call returned */
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    session_end(&session);
}

/* INLINE: any memory, any token, any number of entries, exactly inlineDataSize bytes; one more is refused (D7). */

/* One entry more than the queue pair's capacity, which may be more than was asked for (A44): the least number that is refused
 * where the bytes are not inline. */
static ULONG entries_refused(struct link *link)
{
    ND2_SGE sges[256];

    for (ULONG n = 0; n < _countof(sges); n++) {
        HRESULT hr;

        sges[n] = sge_of(link, 0, 0);
        hr = CALL(link->qp, Write, NULL, sges, n + 1, link->remote.address, link->remote.token, 0);
        if (hr == ND_DATA_OVERRUN) {
            runner_note("%u entries, inline %u bytes", (unsigned)n, (unsigned)link->shape.inline_size);
            return n + 1;
        }
        ok_status(hr, ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 0);
    }
    ok_msg(false, "a queue pair for %u entries takes %zu", (unsigned)link->shape.sge, _countof(sges));
    return 0;
}

SERVER(inlined)
{
    struct session session;
    struct shape shape = large_shape(&session.host);
    struct link *link = &session.link;

    session_begin(&session, &shape);
    post_receive(link, 1, 0, shape.inline_size);
    post_receive(link, 2, 4096, shape.inline_size);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    pattern_check(link->buffer, shape.inline_size, 1);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);
    pattern_check(link->buffer + 4096, shape.inline_size, 2);
    runner_sync();
    pattern_check(link->buffer + 8192, shape.inline_size, 3);
    session_end(&session);
}

CLIENT(inlined)
{
    struct session session;
    struct shape shape = large_shape(&session.host);
    struct link *link = &session.link;
    ULONG size = shape.inline_size;
    ND2_SGE one, many[256];
    ULONG entries;
    BYTE *memory;

    if (!size)
        harness_skip("the device has no inline data");
    ok(size >= 16);
    session_begin(&session, &shape);
    entries = entries_refused(link);
    ok_uint(entries, <=, size); /* a byte for each */
    memory = malloc(size + 1);  /* not registered */
    one = (ND2_SGE){ memory, size, 0xdeadbeef };
    runner_sync();

    pattern_fill(memory, size, 1);
    ok_status(CALL(link->qp, Send, (void *)1, &one, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    pattern_fill(memory, size, 2); /* was copied */
    for (ULONG i = 0; i < entries; i++)
        many[i] = (ND2_SGE){ memory + i * (size / entries),
                             i < entries - 1 ? size / entries : size - (entries - 1) * (size / entries), i };
    ok_status(CALL(link->qp, Send, (void *)2, many, entries, ND_OP_FLAG_INLINE), ND_SUCCESS);
    pattern_fill(memory, size, 3);
    ok_status(CALL(link->qp, Write, (void *)3, many, entries, link->remote.address + 8192, link->remote.token,
                   ND_OP_FLAG_INLINE),
              ND_SUCCESS);
    memset(memory, 0, size);
    one.BufferLength = size + 1;
    ok_status(CALL(link->qp, Send, NULL, &one, 1, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    ok_status(CALL(link->qp, Write, NULL, &one, 1, link->remote.address, link->remote.token, ND_OP_FLAG_INLINE),
              ND_BUFFER_OVERFLOW);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 3);
    result_none(link->cq);
    runner_sync();
    free(memory);
    session_end(&session);
}

/* A queue pair that is made for the threshold takes so many bytes inline, from memory that is not registered (A27). */

SERVER(inlined_at_the_threshold)
{
    struct session session;
    struct link *link = &session.link;
    ULONG size;

    session_begin(&session, NULL);
    size = session.host.info.InlineRequestThreshold;
    post_receive(link, 1, 0, size);
    post_receive(link, 3, 2048, 8);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    pattern_check(link->buffer, size, 1);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 3);
    pattern_check(link->buffer + 1024, size, 2);
    session_end(&session);
}

CLIENT(inlined_at_the_threshold)
{
    struct session session;
    struct link *link = &session.link;
    struct shape shape = { 0 };
    BYTE *memory;
    ND2_SGE sge;
    ULONG size;

    host_open(&session.host);
    size = shape.inline_size = session.host.info.InlineRequestThreshold;
    host_close(&session.host);
    if (!size)
        harness_skip("the device has no inline data");
    session_begin(&session, &shape);
    memory = malloc(size);
    sge = (ND2_SGE){ memory, size, 0xdeadbeef };
    runner_sync();
    pattern_fill(memory, size, 1);
    ok_status(CALL(link->qp, Send, (void *)1, &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    pattern_fill(memory, size, 2);
    ok_status(
        CALL(link->qp, Write, (void *)2, &sge, 1, link->remote.address + 1024, link->remote.token, ND_OP_FLAG_INLINE),
        ND_SUCCESS);
    memset(memory, 0, size);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 2);
    /* Behind the Write's bytes. */
    ok_status(CALL(link->qp, Send, (void *)3, NULL, 0, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 3);
    free(memory);
    session_end(&session);
}

/* Exactly as many requests as the queue is deep. */

SERVER(queue_depth)
{
    struct session session;

    session_begin(&session, &(struct shape){ .depth = 8, .cq_depth = 32 });
    for (int round = 0; round < 2; round++) {
        if (!runner_iwarp())
            runner_sync(); /* the client's sends wait for these receives */
        for (uintptr_t i = 0; i < 8; i++)
            post_receive(&session.link, i, 0, 64);
        if (runner_iwarp())
            runner_sync();
        for (uintptr_t i = 0; i < 8; i++)
            ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
        runner_sync();
    }
    /* Nothing is on its way now: a send under way might make room while the queue is filled. */
    for (uintptr_t i = 0; i < 8; i++)
        post_receive(&session.link, i, 0, 64);
    ok_status(CALL(session.link.qp, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    runner_sync();
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    runner_sync();
    session_end(&session);
}

CLIENT(queue_depth)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    setenv("NDVERBS_RNR_RETRY", "7", 1);
    session_begin(&session, &(struct shape){ .depth = 8, .cq_depth = 32 });
    sge = sge_of(link, 0, 64);
    for (int round = 0; round < 2; round++) {
        if (runner_iwarp())
            runner_sync(); /* siw does not wait for receives */
        for (uintptr_t i = 0; i < 8; i++)
            post_send(link, i, 0, 64, 0);
        if (!runner_iwarp()) {
            ok_status(CALL(link->qp, Send, NULL, &sge, 1, 0), ND_NO_MORE_ENTRIES);
            ok_status(CALL(link->qp, Write, NULL, &sge, 1, link->remote.address, link->remote.token, 0),
                      ND_NO_MORE_ENTRIES);
            ok_status(CALL(link->qp, Read, NULL, &sge, 1, link->remote.address, link->remote.token, 0),
                      ND_NO_MORE_ENTRIES);
            runner_sync();
        }
        for (uintptr_t i = 0; i < 8; i++)
            ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
        result_none(link->cq);
        runner_sync();
    }
    runner_sync();
    for (uintptr_t i = 0; i < 8; i++)
        post_send(link, i, 0, 64, 0);
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    runner_sync();
    session_end(&session);
}

/* Flags and lengths that are not allowed: the documented status, nothing sent, the queue pair as good as before. */

SERVER(bad_posts)
{
    struct session session;

    session_begin(&session, &(struct shape){ .reads = 1 });
    post_receive(&session.link, 1, 0, 64);
    runner_sync();
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    session_end(&session);
}

CLIENT(bad_posts)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge, huge[2];

    session_begin(&session, &(struct shape){ .reads = 1, .sge = 2 });
    runner_sync();
    sge = sge_of(link, 0, 64);
#define SEND(f)  CALL(link->qp, Send, NULL, &sge, 1, (f))
#define WRITE(f) CALL(link->qp, Write, NULL, &sge, 1, link->remote.address, link->remote.token, (f))
#define READ(f)  CALL(link->qp, Read, NULL, &sge, 1, link->remote.address, link->remote.token, (f))
    ok_status(SEND(0x40), ND_INVALID_PARAMETER_4);
    ok_status(SEND(0x80000000u), ND_INVALID_PARAMETER_4);
    ok_status(SEND(ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_4);
    ok_status(SEND(ND_OP_FLAG_ALLOW_WRITE), ND_INVALID_PARAMETER_4);
    ok_status(WRITE(0x40), ND_INVALID_PARAMETER_6);
    ok_status(WRITE(ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_INVALID_PARAMETER_6);
    ok_status(WRITE(ND_OP_FLAG_ALLOW_WRITE), ND_INVALID_PARAMETER_6);
    ok_status(READ(0x100), ND_INVALID_PARAMETER_6);
    ok_status(READ(ND_OP_FLAG_INLINE), ND_INVALID_PARAMETER_6);
    ok_status(READ(ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_INVALID_PARAMETER_6);

    /* 4 GiB in two halves, which 32 bits would take for nothing. */
    huge[0] = huge[1] = (ND2_SGE){ link->buffer, 0x80000000u, link->token };
    ok_status(CALL(link->qp, Send, NULL, huge, 2, 0), ND_BUFFER_OVERFLOW);
    ok_status(CALL(link->qp, Receive, NULL, huge, 2), ND_BUFFER_OVERFLOW);
    ok_status(CALL(link->qp, Write, NULL, huge, 2, link->remote.address, link->remote.token, 0), ND_BUFFER_OVERFLOW);
    if (session.host.info.MaxReadSge >= 2)
        ok_status(CALL(link->qp, Read, NULL, huge, 2, link->remote.address, link->remote.token, 0), ND_BUFFER_OVERFLOW);
    if (session.host.info.MaxTransferLength < 0xffffffffu) {
        huge[0].BufferLength = session.host.info.MaxTransferLength + 1;
        ok_status(CALL(link->qp, Send, NULL, huge, 1, 0), ND_BUFFER_OVERFLOW);
        ok_status(CALL(link->qp, Write, NULL, huge, 1, link->remote.address, link->remote.token, 0),
                  ND_BUFFER_OVERFLOW);
        ok_status(CALL(link->qp, Read, NULL, huge, 1, link->remote.address, link->remote.token, 0), ND_BUFFER_OVERFLOW);
    }
    /* No window. */
    ok_status(CALL(link->qp, Bind, NULL, (IUnknown *)link->mr, (IUnknown *)link->mr, link->buffer, 64, 0),
              ND_INVALID_PARAMETER_3);
    ok_status(CALL(link->qp, Invalidate, NULL, (IUnknown *)link->mr, 0), ND_INVALID_PARAMETER_2);
    result_none(link->cq);
    post_send(link, 1, 0, 64, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    session_end(&session);
}

ALONE(never_connected)
{
    struct host host;
    struct link link;
    ND2_SGE sge;

    host_open(&host);
    link_make(&link, &host, NULL);
    sge = sge_of(&link, 0, 8);
    ok_status(CALL(link.qp, Send, NULL, &sge, 1, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(link.qp, Write, NULL, &sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(link.qp, Read, NULL, &sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(link.qp, Receive, NULL, &sge, 1), ND_SUCCESS);
    result_none(link.cq);
    link_drop(&link);
    host_close(&host);
}

/* Silent requests give no results, do not fill the queue for good, and one that is not silent comes after them. */

#define SILENT 300

SERVER(silent_success)
{
    struct session session;

    session_begin(&session, &(struct shape){ .depth = 8 });
    runner_sync();
    for (uintptr_t i = 0; i < SILENT / 4; i++) {
        post_receive(&session.link, i, 0, 64);
        runner_sync();
        ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    }
    session_end(&session);
}

CLIENT(silent_success)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    session_begin(&session, &(struct shape){ .depth = 8 });
    runner_sync();
    sge = sge_of(link, 0, 64);
    /* Nobody asks for results, so the queue frees itself. */
    for (int i = 0; i < SILENT; i++) {
        HRESULT hr;

        do
            hr = CALL(link->qp, Write, NULL, &sge, 1, link->remote.address, link->remote.token,
                      ND_OP_FLAG_SILENT_SUCCESS);
        while (hr == ND_NO_MORE_ENTRIES);
        ok_status(hr, ND_SUCCESS);
    }
    for (uintptr_t i = 0; i < SILENT / 4; i++) {
        HRESULT hr;

        runner_sync();
        do
            hr = CALL(link->qp, Send, (void *)i, &sge, 1, i % 7 == 6 ? 0 : ND_OP_FLAG_SILENT_SUCCESS);
        while (hr == ND_NO_MORE_ENTRIES);
        ok_status(hr, ND_SUCCESS);
        if (i % 7 == 6)
            ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
        else
            result_none(link->cq);
    }
    session_end(&session);
}

/* Both ways at once, many messages in flight, order kept. */

#define STREAM 600

static void stream(void)
{
    struct session session;
    struct link *link = &session.link;
    uintptr_t received = 0, sent = 0, completed = 0, posted = 0;
    const uintptr_t window = 16;

    /* A receive is posted again before the send that tells the peer of it: each side has at most `window` unanswered. */
    session_begin(&session, &(struct shape){ .depth = 64, .cq_depth = 128, .size = 64 * 1024 });
    for (; posted < 2 * window; posted++)
        post_receive(link, posted, (posted % 32) * 1024, 1024);
    runner_sync();
    while (received < STREAM || completed < STREAM) {
        ND2_RESULT results[8];
        ULONG n;

        while (sent < STREAM && sent < received + window && sent < completed + 32) {
            SIZE_T at = 32768 + (sent % 32) * 1024;

            pattern_fill(link->buffer + at, 700, (ULONG)sent);
            post_send(link, sent, at, 700, 0);
            sent++;
        }
        n = CALL(link->cq, GetResults, results, 8);
        if (!n)
            harness_yield();
        for (ULONG i = 0; i < n; i++) {
            ok_status(results[i].Status, ND_SUCCESS);
            if (results[i].RequestType == Nd2RequestTypeSend) {
                ok_uint((uintptr_t)results[i].RequestContext, ==, completed);
                completed++;
                continue;
            }
            ok_uint((uintptr_t)results[i].RequestContext, ==, received);
            ok_uint(results[i].BytesTransferred, ==, 700);
            pattern_check(link->buffer + (received % 32) * 1024, 700, (ULONG)received);
            received++;
            post_receive(link, posted, (posted % 32) * 1024, 1024);
            posted++;
        }
    }
    session_end(&session);
}

SERVER(both_ways)
{
    stream();
}

CLIENT(both_ways)
{
    stream();
}

RUNNER_MAIN
