/* SPDX-License-Identifier: MIT */
/* Version 1: messages of every size that matters, batches, flags, and requests that fail. ndspi-v1.md 6 and 8. */
#include "v1side.h"

#include <stdlib.h>

#define LARGE (1 << 18)

static SIZE_T sizes[24];
static size_t n_sizes;

static void find_sizes(const struct v1 *v1)
{
    static const SIZE_T fixed[] = { 0, 1, 1023, 1024, 1025, 4095, 4096, 4097, 65536, LARGE };

    n_sizes = 0;
    for (size_t i = 0; i < _countof(fixed); i++)
        sizes[n_sizes++] = fixed[i];
    for (int i = -1; v1->inline_size && i < 2; i++)
        sizes[n_sizes++] = v1->inline_size + (SIZE_T)i;
}

static void receive_all(struct v1 *v1)
{
    for (size_t i = 0; i < n_sizes; i++) {
        ND_RESULT result;

        memset(v1->buffer, 0xcc, LARGE);
        v1_receive(v1, &result, 0, LARGE);
        runner_sync();
        ok_v1_result(v1, &result, ND_SUCCESS);
        ok_uint(result.BytesTransferred, ==, sizes[i]);
        pattern_check(v1->buffer, sizes[i], (ULONG)i);
        if (sizes[i] < LARGE)
            ok_int(v1->buffer[sizes[i]], ==, 0xcc);
    }
}

static void send_all(struct v1 *v1)
{
    for (size_t i = 0; i < n_sizes; i++) {
        ND_RESULT result;

        pattern_fill(v1->buffer, sizes[i], (ULONG)i);
        runner_sync();
        v1_send(v1, &result, 0, sizes[i], i % 2 ? ND_OP_FLAG_READ_FENCE : 0);
        ok_v1_result(v1, &result, ND_SUCCESS);
        ok_uint(result.BytesTransferred, ==, sizes[i]);
    }
}

SERVER(send_receive)
{
    struct v1 v1;

    v1_begin(&v1, LARGE);
    find_sizes(&v1);
    receive_all(&v1);
    send_all(&v1);
    v1_end(&v1);
}

CLIENT(send_receive)
{
    struct v1 v1;

    v1_begin(&v1, LARGE);
    find_sizes(&v1);
    send_all(&v1);
    receive_all(&v1);
    v1_end(&v1);
}

/* Batches: more requests than a chain holds, some silent, in order; inlined bytes may change once they are posted. */

#define BATCH  16
#define ROUNDS 8

/* Silent ones of the round before keep their places until the device is done with them: on siw that may be after the peer has them. */
static void send_when_room(struct v1 *v1, ND_RESULT *result, SIZE_T offset, SIZE_T length, DWORD flags)
{
    ND_SGE sge = v1_sge(v1, offset, length);
    HRESULT hr;

    do
        hr = CALL(v1->endpoint, Send, result, &sge, 1, flags);
    while (hr == ND_NO_MORE_ENTRIES);
    ok_status(hr, ND_SUCCESS);
}

SERVER(batches)
{
    ND_RESULT results[BATCH];
    struct v1 v1;

    v1_begin(&v1, 65536);
    for (int round = 0; round < ROUNDS; round++) {
        CALL_VOID(v1.endpoint, StartRequestBatch);
        for (int i = 0; i < BATCH; i++)
            v1_receive(&v1, &results[i], (SIZE_T)i * 512, 512);
        CALL_VOID(v1.endpoint, SubmitRequestBatch);
        runner_sync();
        for (int i = 0; i < BATCH; i++) {
            ok_v1_result(&v1, &results[i], ND_SUCCESS);
            ok_uint(results[i].BytesTransferred, ==, i * 20);
            pattern_check(v1.buffer + i * 512, (SIZE_T)i * 20, (ULONG)(round + i));
        }
        runner_sync();
    }
    v1_end(&v1);
}

CLIENT(batches)
{
    ND_RESULT results[BATCH];
    struct v1 v1;

    v1_begin(&v1, 65536);
    for (int round = 0; round < ROUNDS; round++) {
        runner_sync();
        CALL_VOID(v1.endpoint, StartRequestBatch);
        for (int i = 0; i < BATCH; i++) {
            SIZE_T size = (SIZE_T)i * 20, at = size <= v1.inline_size ? 0 : (SIZE_T)i * 512;

            pattern_fill(v1.buffer + at, size, (ULONG)(round + i));
            send_when_room(&v1, &results[i], at, size, i % 4 ? ND_OP_FLAG_SILENT_SUCCESS : 0);
        }
        CALL_VOID(v1.endpoint, SubmitRequestBatch);
        for (int i = 0; i < BATCH; i += 4)
            ok_v1_result(&v1, &results[i], ND_SUCCESS);
        runner_sync();
    }
    v1_none(&v1);
    v1_end(&v1);
}

/* Bad posts: a status at once, and the endpoint goes on. */

SERVER(bad_posts)
{
    ND_RESULT result;
    struct v1 v1;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &result, 0, 64);
    runner_sync();
    ok_v1_result(&v1, &result, ND_SUCCESS);
    v1_end(&v1);
}

CLIENT(bad_posts)
{
    ND_MW_DESCRIPTOR mw = { 0 };
    ND_SGE sges[80];
    ND_RESULT r, posted[16];
    struct v1 v1;

    v1_begin(&v1, 4096);
    for (size_t i = 0; i < _countof(sges); i++)
        sges[i] = v1_sge(&v1, 0, 8);
    ok_status(CALL(v1.endpoint, Send, NULL, sges, 1, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.endpoint, Receive, NULL, sges, 1), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.endpoint, Send, &r, NULL, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.endpoint, Send, &r, sges, 1, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.endpoint, Write, &r, sges, 1, &mw, 0, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_6);
    ok_status(CALL(v1.endpoint, Read, &r, sges, 1, &mw, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_INVALID_PARAMETER_6);
    ok_status(CALL(v1.endpoint, Read, &r, sges, 1, NULL, 0, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.endpoint, Write, &r, sges, 1, NULL, 0, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, NULL, sges, 1, &mw, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &r, NULL, 1, &mw, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &r, sges, 1, NULL, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &r, sges, 1, &mw, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_5);
    ok_status(CALL(v1.endpoint, Read, NULL, sges, 1, &mw, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.endpoint, Read, &r, NULL, 1, &mw, 0, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.endpoint, Write, NULL, sges, 1, &mw, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.endpoint, Write, &r, NULL, 1, &mw, 0, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.endpoint, Receive, &r, NULL, 1), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.endpoint, Send, &r, sges, v1.info.MaxOutboundSge + 40, 0), ND_DATA_OVERRUN);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &r, sges, v1.info.MaxOutboundSge + 40, &mw, 0), ND_DATA_OVERRUN);
    ok_status(CALL(v1.endpoint, Read, &r, sges, v1.info.MaxOutboundSge + 40, &mw, 0, 0), ND_DATA_OVERRUN);
    ok_status(CALL(v1.endpoint, Write, &r, sges, v1.info.MaxOutboundSge + 40, &mw, 0, 0), ND_DATA_OVERRUN);
    ok_status(CALL(v1.endpoint, Receive, &r, sges, 80), ND_DATA_OVERRUN);
    sges[0].Length = sges[1].Length = UINT32_MAX;
    ok_status(CALL(v1.endpoint, Send, &r, sges, 2, 0), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &r, sges, 2, &mw, 0), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.endpoint, Read, &r, sges, 1, &mw, 0, 0), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.endpoint, Write, &r, sges, 2, &mw, 0, 0), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.endpoint, Receive, &r, sges, 2), ND_BUFFER_OVERFLOW);
    for (int i = 0; i < 16; i++)
        v1_receive(&v1, &posted[i], 64, 8);
    ok_status(CALL(v1.endpoint, Receive, &r, NULL, 0), ND_NO_MORE_ENTRIES);
    runner_sync();
    v1_send(&v1, &r, 0, 8, 0);
    ok_v1_result(&v1, &r, ND_SUCCESS);
    v1_end(&v1);
}

/* An endpoint that allows no Reads of its own: refused, and what comes behind works. */
ALONE(no_reads)
{
    ND_MW_DESCRIPTOR mw = { 0 };
    struct v1 near, far;
    ND_RESULT r, received;
    ND_SGE sge;

    v1_open(&near, 4096);
    v1_open(&far, 4096);
    v1_make_connector(&near);
    ok_status(CALL(near.connector, CreateEndpoint, near.cq, near.cq, 16, 16, 2, 2, 0, 0, NULL, &near.endpoint),
              ND_SUCCESS);
    v1_self_connect(&near, &far);
    sge = v1_sge(&near, 0, 8);
    ok_status(CALL(near.endpoint, Read, &r, &sge, 1, &mw, 0, 0), ND_INVALID_DEVICE_REQUEST);
    v1_receive(&far, &received, 0, 8);
    v1_send(&near, &r, 0, 8, 0);
    ok_v1_result(&near, &r, ND_SUCCESS);
    ok_v1_result(&far, &received, ND_SUCCESS);
    v1_disconnect(&near);
    v1_close(&near);
    v1_close(&far);
}

/* A solicited message wakes who waits for one. */

SERVER(solicited)
{
    ND_RESULT results[2];
    OVERLAPPED notify;
    struct v1 v1;

    v1_begin(&v1, 4096);
    overlapped_rubbish(&notify, NULL);
    v1_receive(&v1, &results[0], 0, 64);
    v1_receive(&v1, &results[1], 0, 64);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_SOLICITED, &notify), ND_PENDING);
    runner_sync();
    ok_status(v1_finish(v1.cq, ND_PENDING, &notify), ND_SUCCESS);
    ok_v1_result(&v1, &results[0], ND_SUCCESS);
    ok_v1_result(&v1, &results[1], ND_SUCCESS);
    v1_end(&v1);
}

CLIENT(solicited)
{
    ND_RESULT results[2];
    struct v1 v1;

    v1_begin(&v1, 4096);
    runner_sync();
    v1_send(&v1, &results[0], 0, 8, 0);
    v1_send(&v1, &results[1], 0, 8, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    ok_v1_result(&v1, &results[0], ND_SUCCESS);
    ok_v1_result(&v1, &results[1], ND_SUCCESS);
    v1_end(&v1);
}

/* Nobody has posted a receive: version 1 calls it ND_TIMEOUT. */

SERVER(no_receive)
{
    struct v1 v1;

    if (runner_iwarp())
        harness_skip("siw ends the connection at once");
    setenv("NDVERBS_MIN_RNR_TIMER", "10", 1);
    v1_begin(&v1, 4096);
    runner_sync();
    v1_close(&v1);
}

CLIENT(no_receive)
{
    ND_RESULT results[3];
    struct v1 v1;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &results[2], 64, 8);
    v1_send(&v1, &results[0], 0, 8, 0);
    v1_send(&v1, &results[1], 0, 8, ND_OP_FLAG_SILENT_SUCCESS);
    ok_v1_result(&v1, &results[0], ND_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        ND_RESULT *rest = v1_next(&v1);

        ok(rest == &results[1] || rest == &results[2]);
        ok_status(rest->Status, ND_CANCELED);
    }
    v1_none(&v1);
    runner_sync();
    v1_close(&v1);
}

SERVER(send_too_long)
{
    ND_RESULT result;
    struct v1 v1;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &result, 0, 1023);
    runner_sync();
    ok_v1_result(&v1, &result, ND_LOCAL_LENGTH);
    runner_sync();
    v1_close(&v1);
}

CLIENT(send_too_long)
{
    ND_RESULT result;
    struct v1 v1;

    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    v1_begin(&v1, 4096);
    runner_sync();
    v1_send(&v1, &result, 0, 1024, 0);
    ok_ptr(v1_next(&v1), ==, &result);
    /* rxe drops its negative acknowledgement where the receiver is in error by then (error.send_too_long). */
    ok_msg(result.Status == STATUS_DATA_ERROR || result.Status == ND_TIMEOUT || runner_iwarp(), "Send: 0x%08x",
           (unsigned)result.Status);
    runner_sync();
    v1_close(&v1);
}

/* A region that was deregistered, and one that ends too soon. */

SERVER(bad_region)
{
    ND_RESULT result;
    struct v1 v1;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &result, 0, 64);
    runner_sync();
    runner_sync();
    ok_v1_result(&v1, &result, ND_CANCELED); /* the peer's end of it failed without a word, and is released now */
    v1_close(&v1);
}

CLIENT(bad_region)
{
    ND_MR_HANDLE stale;
    ND_RESULT result;
    struct v1 v1;
    ND_SGE sge;

    v1_begin(&v1, 4096);
    ok_status(v1_register(&v1, v1.buffer, 4096, &stale), ND_SUCCESS);
    ok_status(v1_finish(v1.adapter, CALL(v1.adapter, DeregisterMemory, stale, &v1.ov), &v1.ov), ND_SUCCESS);
    sge = (ND_SGE){ v1.buffer, 2000, stale };
    runner_sync();
    ok_status(CALL(v1.endpoint, Send, &result, &sge, 1, 0), ND_SUCCESS);
    ok_v1_result(&v1, &result, ND_ACCESS_VIOLATION);
    runner_sync();
    v1_close(&v1);
}

/* The same of a Receive: what the message that arrives for it finds is told as in error.receive_bad_token. */

SERVER(receive_into_bad_region)
{
    ND_RESULT bad, good;
    ND_MR_HANDLE stale;
    struct v1 v1;
    ND_SGE sge;

    v1_begin(&v1, 4096);
    ok_status(v1_register(&v1, v1.buffer, 4096, &stale), ND_SUCCESS);
    ok_status(v1_finish(v1.adapter, CALL(v1.adapter, DeregisterMemory, stale, &v1.ov), &v1.ov), ND_SUCCESS);
    sge = (ND_SGE){ v1.buffer, 64, stale };
    ok_status(CALL(v1.endpoint, Receive, &bad, &sge, 1), ND_SUCCESS);
    v1_receive(&v1, &good, 64, 64);
    memset(v1.buffer, 0xcc, 128);
    runner_sync();
    ok_v1_result(&v1, &bad, runner_iwarp() ? ND_INTERNAL_ERROR : ND_LOCAL_LENGTH);
    ok_v1_result(&v1, &good, ND_CANCELED);
    for (int i = 0; i < 128; i++)
        ok_int(v1.buffer[i], ==, 0xcc);
    runner_sync();
    v1_close(&v1);
}

CLIENT(receive_into_bad_region)
{
    ND_RESULT sent, received;
    struct v1 v1;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &received, 64, 64);
    runner_sync();
    v1_send(&v1, &sent, 0, 64, 0);
    ok_ptr(v1_next(&v1), ==, &sent);
    ok_msg(sent.Status == STATUS_DATA_ERROR || sent.Status == ND_TIMEOUT ||
               (runner_iwarp() && (sent.Status == ND_SUCCESS || sent.Status == ND_CANCELED)),
           "Send: 0x%08x", (unsigned)sent.Status);
    ok_v1_result(&v1, &received, ND_CANCELED);
    runner_sync();
    v1_close(&v1);
}

RUNNER_MAIN
