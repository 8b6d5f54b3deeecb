/* SPDX-License-Identifier: MIT */
/* WinVerbs' requests of every kind and what both sides are told when they fail; memory windows; shared receive queues.
 * winverbs.md 5, 6, 7.5. */
#include "wvside.h"

#include <endian.h>
#include <stdlib.h>

ALONE(every_request)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_COMPLETION completion;
    WV_SGE sge, parts[2];

    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0], b = &pair.link[1];
    /* Two pieces. */
    pattern_fill(a->buffer, 1000, 1);
    parts[0] = wv_sge(a, 0, 600);
    parts[1] = wv_sge(a, 600, 400);
    wv_receive(b, 1, 0, 1000);
    ok_status(CALL(a->qp, Send, 2, parts, 2, 0, 0), WV_SUCCESS);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    completion = wv_next(b->cq);
    ok_int(completion.Status, ==, WvWcSuccess);
    ok_int(completion.Opcode, ==, WvReceive);
    ok_uint(completion.Length, ==, 1000);
    ok_uint(completion.Flags & WV_WC_IMMEDIATE, ==, 0); /* Soft-RoCE sets the one for the header always */
    ok_ptr(completion.QpContext, ==, b);
    pattern_check(b->buffer, 1000, 1);
    /* Nothing at all. */
    wv_receive(b, 3, 0, 10);
    ok_status(CALL(a->qp, Send, 4, NULL, 0, WV_SEND_FENCE, 0), WV_SUCCESS);
    ok_completion(a->cq, WvSend, WvWcSuccess, 4);
    completion = wv_next(b->cq);
    ok_uint(completion.Length, ==, 0);
    ok_uint(completion.WrId, ==, 3);
    sge = wv_sge(a, 2000, 500);
    pattern_fill(a->buffer + 2000, 500, 5);
    ok_status(CALL(a->qp, Write, 5, &sge, 1, 0, 0, wv_remote(a, 3000), a->remote.rkey), WV_SUCCESS);
    ok_completion(a->cq, WvRdmaWrite, WvWcSuccess, 5);
    sge = wv_sge(a, 1000, 500);
    ok_status(CALL(a->qp, Read, 6, &sge, 1, WV_SEND_INLINE, wv_remote(a, 3000), a->remote.rkey),
              WV_SUCCESS); /* the flag for inline data means nothing to it */
    completion = wv_next(a->cq);
    ok_int(completion.Status, ==, WvWcSuccess);
    ok_int(completion.Opcode, ==, WvRdmaRead);
    ok_uint(completion.Length, ==, 500);
    pattern_check(a->buffer + 1000, 500, 5);
    if (pair.host[0].attributes.MaxInlineSend) {
        wv_receive(b, 7, 0, 64);
        a->buffer[100] = 0x42;
        sge = wv_sge(a, 100, 1);
        sge.Lkey = 0; /* nobody looks */
        ok_status(CALL(a->qp, Send, 8, &sge, 1, WV_SEND_INLINE, 0), WV_SUCCESS);
        a->buffer[100] = 0;
        ok_completion(a->cq, WvSend, WvWcSuccess, 8);
        ok_completion(b->cq, WvReceive, WvWcSuccess, 7);
        ok_uint(b->buffer[0], ==, 0x42);
    }
    wv_pair_drop(&pair);
}

/* ---- what iWARP's software device does not have ---- */

ALONE(immediate_data)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_COMPLETION completion;
    WV_SGE sge;

    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    sge = wv_sge(a, 0, 100);
    wv_receive(b, 1, 0, 100);
    wv_receive(b, 2, 0, 100);
    if (runner_iwarp()) {
        ok_status(CALL(a->qp, Send, 1, &sge, 1, WV_SEND_IMMEDIATE, htonl(5)), WV_INVALID_PARAMETER);
        wv_pair_drop(&pair);
        return;
    }
    ok_status(CALL(a->qp, Send, 1, &sge, 1, WV_SEND_IMMEDIATE, htonl(0x11223344)), WV_SUCCESS);
    completion = wv_next(b->cq);
    ok_int(completion.Opcode, ==, WvReceive);
    ok(completion.Flags & WV_WC_IMMEDIATE);
    ok_uint(completion.ImmediateData, ==, htonl(0x11223344));
    ok_uint(completion.Length, ==, 100);
    ok_completion(a->cq, WvSend, WvWcSuccess, 1);
    pattern_fill(a->buffer, 100, 9);
    ok_status(CALL(a->qp, Write, 2, &sge, 1, WV_SEND_IMMEDIATE, htonl(0x55667788), wv_remote(a, 2000), a->remote.rkey),
              WV_SUCCESS);
    completion = wv_next(b->cq);
    ok_uint(completion.WrId, ==, 2);
    ok_int(completion.Status, ==, WvWcSuccess);
    ok_int(completion.Opcode, ==, WvReceiveRdmaWrite);
    ok(completion.Flags & WV_WC_IMMEDIATE);
    ok_uint(completion.ImmediateData, ==, htonl(0x55667788));
    pattern_check(b->buffer + 2000, 100, 9);
    ok_completion(a->cq, WvRdmaWrite, WvWcSuccess, 2);
    wv_pair_drop(&pair);
}

ALONE(atomics)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_SGE sge;
    UINT64 *there, *here;

    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0], b = &pair.link[1];
    there = (UINT64 *)(b->buffer + 64), here = (UINT64 *)a->buffer;
    sge = wv_sge(a, 0, 8);
    *there = 40;
    if (pair.host[0].attributes.AtomicCapability == WvAtomicNone) {
        ok_status(CALL(a->qp, FetchAdd, 1, &sge, 0, wv_net64(2), wv_remote(a, 64), a->remote.rkey),
                  WV_INVALID_PARAMETER);
        ok_status(CALL(a->qp, CompareExchange, 1, &sge, 0, wv_net64(2), wv_net64(3), wv_remote(a, 64), a->remote.rkey),
                  WV_INVALID_PARAMETER);
        wv_pair_drop(&pair);
        return;
    }
    ok_status(CALL(a->qp, FetchAdd, 1, &sge, WV_SEND_SIGNALED, wv_net64(2), wv_remote(a, 64), a->remote.rkey),
              WV_SUCCESS);
    ok_completion(a->cq, WvFetchAdd, WvWcSuccess, 1);
    ok_uint(*here, ==, 40);
    ok_uint(*there, ==, 42);
    ok_status(CALL(a->qp, CompareExchange, 2, &sge, 0, wv_net64(42), wv_net64(0x1122334455667788), wv_remote(a, 64),
                   a->remote.rkey),
              WV_SUCCESS);
    ok_completion(a->cq, WvCompareExchange, WvWcSuccess, 2);
    ok_uint(*here, ==, 42);
    ok_uint(*there, ==, 0x1122334455667788);
    ok_status(CALL(a->qp, CompareExchange, 3, &sge, 0, wv_net64(42), wv_net64(1), wv_remote(a, 64), a->remote.rkey),
              WV_SUCCESS);
    ok_completion(a->cq, WvCompareExchange, WvWcSuccess, 3);
    ok_uint(*there, ==, 0x1122334455667788);
    /* A key that is none. */
    ok_status(CALL(a->qp, FetchAdd, 4, &sge, 0, wv_net64(2), wv_remote(a, 64), ~a->remote.rkey), WV_SUCCESS);
    ok_completion(a->cq, WvFetchAdd, WvWcRemoteAccessError, 4);
    ok_status(CALL(a->qp, CompareExchange, 5, &sge, 0, 0, 0, wv_remote(a, 64), a->remote.rkey), WV_SUCCESS);
    ok_completion(a->cq, WvCompareExchange, WvWcFlushed, 5);
    ok_status(CALL(a->qp, FetchAdd, 6, &sge, 0, wv_net64(2), wv_remote(a, 64), a->remote.rkey), WV_SUCCESS);
    ok_completion(a->cq, WvFetchAdd, WvWcFlushed, 6);
    wv_pair_drop(&pair);
    /* The other one of the two has to be the first on its queue pair. */
    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0], b = &pair.link[1];
    there = (UINT64 *)(b->buffer + 64);
    *there = 40;
    sge = wv_sge(a, 0, 8);
    ok_status(CALL(a->qp, CompareExchange, 1, &sge, 0, wv_net64(40), wv_net64(41), wv_remote(a, 64), ~a->remote.rkey),
              WV_SUCCESS);
    ok_completion(a->cq, WvCompareExchange, WvWcRemoteAccessError, 1);
    ok_uint(*there, ==, 40);
    wv_pair_drop(&pair);
}

/* With an InitiatorDepth of 0: software devices would keep them, and all behind them. */
ALONE(atomics_none_allowed)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_SGE sge;

    if (!runner_machine())
        harness_skip("the device may have an answer of its own");
    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    wv_receive(b, 1, 0, 100);
    sge = wv_sge(a, 0, 8);
    ok_status(CALL(a->qp, FetchAdd, 1, &sge, 0, wv_net64(2), wv_remote(a, 64), a->remote.rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, CompareExchange, 2, &sge, 0, wv_net64(2), wv_net64(3), wv_remote(a, 64), a->remote.rkey),
              WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, Send, 3, &sge, 1, 0, 0), WV_SUCCESS);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    ok_completion(a->cq, WvSend, WvWcSuccess, 3);
    wv_pair_drop(&pair);
}

/* Behind another Read and alone; a Send goes on behind it. */
ALONE(fenced_read)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_SGE sge;

    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0];
    b = &pair.link[1];
    pattern_fill(b->buffer, 1000, 7);
    wv_receive(b, 9, 2000, 64);
    for (UINT64 i = 0; i < 4; i++) {
        sge = wv_sge(a, 250 * i, 250);
        ok_status(CALL(a->qp, Read, i, &sge, 1, i % 3 ? 0 : WV_SEND_FENCE, wv_remote(a, 250 * i), a->remote.rkey),
                  WV_SUCCESS);
    }
    sge = wv_sge(a, 2000, 64);
    ok_status(CALL(a->qp, Send, 4, &sge, 1, 0, 0), WV_SUCCESS);
    for (UINT64 i = 0; i < 4; i++)
        ok_completion(a->cq, WvRdmaRead, WvWcSuccess, i);
    ok_completion(a->cq, WvSend, WvWcSuccess, 4);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 9);
    pattern_check(a->buffer, 1000, 7);
    wv_pair_drop(&pair);
}

/* A fenced Send has the bytes that the Read in front of it brings. The first Read is what reads.fence_holds_back has it for. */
ALONE(fence_holds_back)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    const SIZE_T size = 16384, first_size = read_that_lasts();

    wv_pair(&pair, &(struct wvshape){ .reads = 1, .size = size + first_size });
    a = &pair.link[0];
    b = &pair.link[1];
    for (ULONG round = 0; round < 16; round++) {
        WV_SGE sge = wv_sge(a, 0, size), first = wv_sge(a, size, first_size);

        pattern_fill(b->buffer, size, round);
        memset(b->buffer + size, 0xcc, size);
        wv_receive(b, round, size, size);
        ok_status(CALL(a->qp, Read, 0, &first, 1, 0, wv_remote(a, 0), a->remote.rkey), WV_SUCCESS);
        ok_status(CALL(a->qp, Read, 1, &sge, 1, 0, wv_remote(a, 0), a->remote.rkey), WV_SUCCESS);
        wv_send(a, 2, 0, size, WV_SEND_FENCE);
        ok_completion(a->cq, WvRdmaRead, WvWcSuccess, 0);
        ok_completion(a->cq, WvRdmaRead, WvWcSuccess, 1);
        ok_completion(a->cq, WvSend, WvWcSuccess, 2);
        ok_completion(b->cq, WvReceive, WvWcSuccess, round);
        pattern_check(b->buffer + size, size, round);
    }
    wv_pair_drop(&pair);
}

/* A Read without entries touches no memory, whatever the slot's last request had; and with a limit of 0 there are none. */
ALONE(read_of_nothing)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    WV_SGE sge;

    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0];
    b = &pair.link[1];
    for (UINT64 i = 0; i < 64; i++) {
        wv_receive(b, i, 0, 1000);
        sge = wv_sge(a, 0, 1000);
        ok_status(CALL(a->qp, Send, i, &sge, 1, 0, 0), WV_SUCCESS);
        ok_completion(a->cq, WvSend, WvWcSuccess, i);
        ok_completion(b->cq, WvReceive, WvWcSuccess, i);
    }
    pattern_fill(a->buffer, 1000, 1);
    for (UINT64 i = 0; i < 32; i++) {
        ok_status(CALL(a->qp, Read, i, NULL, 0, 0, wv_remote(a, 0), a->remote.rkey), WV_SUCCESS);
        ok_completion(a->cq, WvRdmaRead, WvWcSuccess, i);
    }
    pattern_check(a->buffer, 1000, 1);
    wv_pair_drop(&pair);
    wv_pair(&pair, NULL);
    a = &pair.link[0];
    b = &pair.link[1];
    sge = wv_sge(a, 0, 8);
    ok_status(CALL(a->qp, Read, 1, &sge, 1, 0, wv_remote(a, 0), a->remote.rkey), WV_INVALID_PARAMETER);
    wv_receive(b, 2, 0, 8);
    ok_status(CALL(a->qp, Send, 3, &sge, 1, 0, 0), WV_SUCCESS);
    ok_completion(a->cq, WvSend, WvWcSuccess, 3);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 2);
    wv_pair_drop(&pair);
}

/* ---- what goes wrong ---- */

/* The request that failed and the one behind it; the passive side's receive comes back too. */
static void over(struct wvpair *pair, WV_OPCODE opcode, WV_WC_STATUS status, WV_WC_STATUS peer)
{
    struct wvlink *a = &pair->link[0], *b = &pair->link[1];
    WV_SGE sge = wv_sge(a, 0, 8);

    ok_completion(a->cq, opcode, status, 1);
    ok_status(CALL(a->qp, Send, 2, &sge, 1, 0, 0), WV_SUCCESS);
    ok_completion(a->cq, WvSend, WvWcFlushed, 2);
    if (peer != WvWcSuccess)
        ok_completion(b->cq, WvReceive, peer, 7);
    ok_status(wv_to_error(b->qp, NULL), WV_SUCCESS);
    wv_pair_drop(pair);
}

ALONE(remote_access)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_SGE sge;

    for (int read = 0; read < 2; read++) {
        wv_pair(&pair, &(struct wvshape){ .reads = 1 });
        a = &pair.link[0];
        sge = wv_sge(a, 0, 8);
        wv_receive(&pair.link[1], 7, 0, 64);
        if (read)
            ok_status(CALL(a->qp, Read, 1, &sge, 1, 0, wv_remote(a, 0), ~a->remote.rkey), WV_SUCCESS);
        else
            ok_status(CALL(a->qp, Write, 1, &sge, 1, 0, 0, wv_remote(a, 4090), a->remote.rkey), WV_SUCCESS);
        if (runner_iwarp() && !read) {
            /* A refused Write succeeds at the writer; the connection breaks. */
            ok_completion(a->cq, WvRdmaWrite, WvWcSuccess, 1);
            ok_completion(pair.link[1].cq, WvReceive, WvWcFlushed, 7);
            wv_pair_drop(&pair);
            continue;
        }
        over(&pair, read ? WvRdmaRead : WvRdmaWrite, runner_iwarp() ? WvWcFlushed : WvWcRemoteAccessError, WvWcFlushed);
    }
}

ALONE(no_receive)
{
    struct wvpair pair;
    struct wvlink *a;

    if (runner_iwarp())
        harness_skip("siw: a message without a receive ends the connection, and the sender's request succeeds");
    wv_pair(&pair, &(struct wvshape){ .impatient = true });
    a = &pair.link[0];
    wv_send(a, 1, 0, 8, 0);
    over(&pair, WvSend, WvWcRnrRetryError, WvWcSuccess);
    /* With retries it waits for one. */
    wv_pair(&pair, NULL);
    a = &pair.link[0];
    wv_send(a, 1, 0, 8, 0);
    wv_receive(&pair.link[1], 7, 0, 64);
    ok_completion(pair.link[1].cq, WvReceive, WvWcSuccess, 7);
    ok_completion(a->cq, WvSend, WvWcSuccess, 1);
    wv_pair_drop(&pair);
}

/* Soft-RoCE gives both sides one of two statuses. */
ALONE(too_long)
{
    struct wvpair pair;
    WV_COMPLETION sent, received;

    if (runner_iwarp())
        harness_skip("siw: the sender's request succeeds");
    wv_pair(&pair, NULL);
    wv_receive(&pair.link[1], 7, 0, 4);
    wv_send(&pair.link[0], 1, 0, 8, 0);
    sent = wv_next(pair.link[0].cq);
    ok_msg(sent.Status == WvWcRemoteOpError || sent.Status == WvWcRemoteInvalidRequest, "sent: status %d", sent.Status);
    received = wv_next(pair.link[1].cq);
    ok_msg(received.Status == WvWcLocalOpError || received.Status == WvWcLocalLengthError, "received: status %d",
           received.Status);
    ok_int(received.Opcode, ==, WvReceive);
    ok_uint(received.WrId, ==, 7);
    wv_pair_drop(&pair);
}

ALONE(local_key)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_COMPLETION completion;
    WV_SGE sge;

    wv_pair(&pair, NULL);
    a = &pair.link[0];
    sge = wv_sge(a, 0, 8);
    sge.Lkey = ~sge.Lkey;
    ok_status(CALL(a->qp, Send, 1, &sge, 1, 0, 0), WV_SUCCESS);
    completion = wv_next(a->cq);
    ok_uint(completion.WrId, ==, 1);
    ok_int(completion.Opcode, ==, WvSend);
    ok_msg(completion.Status == WvWcLocalProtectionError || completion.Status == WvWcLocalOpError,
           "a bad local key is status %d", completion.Status);
    wv_pair_drop(&pair);
}

/* The peer's queue pair is gone: nobody answers. */
ALONE(no_answer)
{
    struct wvpair pair;
    struct wvlink *a;

    if (runner_iwarp())
        harness_skip("siw rides on TCP, which tells the end");
    setenv("NDVERBS_ACK_TIMEOUT", "12", 1);
    wv_pair(&pair, NULL);
    a = &pair.link[0];
    wv_receive(a, 3, 0, 64);
    ok_status(wv_to_error(pair.link[1].qp, NULL), WV_SUCCESS);
    wv_send(a, 1, 0, 8, 0);
    ok_completion(a->cq, WvSend, WvWcTimeoutRetryError, 1);
    ok_completion(a->cq, WvReceive, WvWcFlushed, 3);
    wv_pair_drop(&pair);
}

/* Requests of each kind that are posted in the error state come back with their own type and queue pair. */
ALONE(flushed)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_SGE sge;

    wv_pair(&pair, &(struct wvshape){ .unsignalled = true, .reads = 1 });
    a = &pair.link[0];
    sge = wv_sge(a, 0, 8);
    ok_status(wv_to_error(a->qp, NULL), WV_SUCCESS);
    ok_int(wv_state(a->qp), ==, WvQpStateError);
    ok_status(CALL(a->qp, Send, 1, &sge, 1, 0, 0), WV_SUCCESS);
    ok_status(CALL(a->qp, Write, 2, &sge, 1, 0, 0, wv_remote(a, 0), a->remote.rkey), WV_SUCCESS);
    ok_status(CALL(a->qp, Read, 3, &sge, 1, 0, wv_remote(a, 0), a->remote.rkey), WV_SUCCESS);
    ok_status(CALL(a->qp, PostReceive, 4, &sge, 1), WV_SUCCESS);
    for (int i = 0; i < 4; i++) {
        static const WV_OPCODE opcodes[] = { 0, WvSend, WvRdmaWrite, WvRdmaRead, WvReceive };
        WV_COMPLETION completion = wv_next(a->cq);

        ok_int(completion.Status, ==, WvWcFlushed);
        ok_uint(completion.WrId, >=, 1);
        ok_uint(completion.WrId, <=, 4);
        ok_int(completion.Opcode, ==, opcodes[completion.WrId]);
        ok_ptr(completion.QpContext, ==, a);
    }
    wv_none(a->cq);
    wv_pair_drop(&pair);
}

/* ---- memory windows ---- */

static HRESULT bind_part(struct wvlink *link, IWVMemoryWindow *window, UINT64 id, SIZE_T offset, SIZE_T length,
                         DWORD access, NET32 *rkey)
{
    return CALL(link->qp, BindMemoryWindow, window, id, link->keys.Lkey, access, 0, link->buffer + offset, length,
                rkey);
}

/* The new key is right when the call returns, before the request has been done or its completion taken. */
ALONE(windows)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    IWVMemoryWindow *window = NULL;
    NET32 first = 0, second = 0, third = 0;
    WV_SGE sge;

    wv_pair(&pair, &(struct wvshape){ .reads = 1 });
    a = &pair.link[0], b = &pair.link[1];
    ok_status(CALL(pair.host[1].pd, AllocateMemoryWindow, NULL), WV_INVALID_PARAMETER);
    if (!pair.host[1].attributes.MaxMw) {
        ok_status(CALL(pair.host[1].pd, AllocateMemoryWindow, &window), WV_NOT_SUPPORTED);
        ok_ptr(window, ==, NULL);
        ok_status(bind_part(b, (IWVMemoryWindow *)b->cq, 1, 0, 64, WV_ACCESS_REMOTE_READ, &first),
                  WV_INVALID_PARAMETER);
        wv_pair_drop(&pair);
        return;
    }
    ok_status(CALL(pair.host[1].pd, AllocateMemoryWindow, &window), WV_SUCCESS);
    ok_status(bind_part(b, NULL, 1, 0, 64, WV_ACCESS_REMOTE_READ, &first), WV_INVALID_PARAMETER);
    ok_status(bind_part(b, window, 1, 0, 64, WV_ACCESS_REMOTE_READ, NULL), WV_INVALID_PARAMETER);
    ok_status(bind_part(b, window, 1, 4000, 200, WV_ACCESS_REMOTE_READ, &first), WV_INVALID_PARAMETER);
    ok_status(CALL(b->qp, BindMemoryWindow, window, 1, ~b->keys.Lkey, WV_ACCESS_REMOTE_READ, 0, b->buffer, 64, &first),
              WV_INVALID_PARAMETER);
    ok_status(bind_part(a, window, 1, 0, 64, WV_ACCESS_REMOTE_READ, &first),
              WV_INVALID_PARAMETER); /* of another domain */
    ok_uint(first, ==, 0);
    ok_status(bind_part(b, window, 1, 1000, 500, WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE, &first), WV_SUCCESS);
    ok_uint(first, !=, 0);
    ok_completion(b->cq, WvBindWindow, WvWcSuccess, 1);
    sge = wv_sge(a, 0, 500);
    pattern_fill(a->buffer, 500, 2);
    ok_status(CALL(a->qp, Write, 10, &sge, 1, 0, 0, wv_remote(a, 1000), first), WV_SUCCESS);
    ok_completion(a->cq, WvRdmaWrite, WvWcSuccess, 10);
    pattern_check(b->buffer + 1000, 500, 2);
    /* Bound again without an invalidate: the old key is dead, the new one works. */
    ok_status(bind_part(b, window, 2, 2000, 500, WV_ACCESS_REMOTE_READ, &second), WV_SUCCESS);
    ok_uint(second, !=, first);
    ok_status(CALL(pair.host[1].pd, DeregisterMemory, b->keys.Lkey, NULL), WV_DEVICE_BUSY);
    ok_completion(b->cq, WvBindWindow, WvWcSuccess, 2);
    pattern_fill(b->buffer + 2000, 500, 4);
    ok_status(CALL(a->qp, Read, 11, &sge, 1, 0, wv_remote(a, 2000), second), WV_SUCCESS);
    ok_completion(a->cq, WvRdmaRead, WvWcSuccess, 11);
    pattern_check(a->buffer, 500, 4);
    /* Length 0 unbinds, and so frees the region. */
    ok_status(bind_part(b, window, 3, 0, 0, 0, &third), WV_SUCCESS);
    ok_completion(b->cq, WvBindWindow, WvWcSuccess, 3);
    ok_status(CALL(a->qp, Read, 12, &sge, 1, 0, wv_remote(a, 2000), second), WV_SUCCESS);
    ok_completion(a->cq, WvRdmaRead, WvWcRemoteAccessError, 12);
    /* A queue pair in error: comes back. */
    ok_status(wv_to_error(b->qp, NULL), WV_SUCCESS);
    ok_status(bind_part(b, window, 4, 0, 64, WV_ACCESS_REMOTE_READ, &third), WV_SUCCESS);
    ok_completion(b->cq, WvBindWindow, WvWcFlushed, 4);
    release_last(window);
    wv_pair_drop(&pair);
}

/* Writing through a window needs a region that may be written. */
ALONE(window_of_a_read_only_region)
{
    struct wvpair pair;
    struct wvlink *b;
    IWVMemoryWindow *window;
    WV_MEMORY_KEYS keys;
    NET32 rkey = 0;

    wv_pair_make(&pair, NULL);
    b = &pair.link[1];
    if (!pair.host[1].attributes.MaxMw)
        harness_skip("the device has no memory windows");
    ok_status(CALL(pair.host[1].pd, AllocateMemoryWindow, &window), WV_SUCCESS);
    ok_status(CALL(pair.host[1].pd, RegisterMemory, b->buffer, 4096, WV_ACCESS_MW_BIND, NULL, &keys), WV_SUCCESS);
    ok_status(CALL(b->qp, BindMemoryWindow, window, 1, keys.Lkey, WV_ACCESS_REMOTE_WRITE, 0, b->buffer, 64, &rkey),
              WV_ACCESS_VIOLATION);
    /* Before there is a connection nothing can be posted. */
    ok_status(CALL(b->qp, BindMemoryWindow, window, 1, keys.Lkey, WV_ACCESS_REMOTE_READ, 0, b->buffer, 64, &rkey),
              WV_INVALID_PARAMETER);
    ok_uint(rkey, ==, 0);
    ok_status(CALL(pair.host[1].pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    release_last(window);
    wv_pair_drop(&pair);
}

/* ---- shared receive queues ---- */

ALONE(srq_statuses)
{
    struct wvhost host;
    IWVSharedReceiveQueue *srq;
    SIZE_T wr, entries, limit, max_wr, max_sge;
    BYTE *memory = aligned_alloc(4096, 4096);
    WV_MEMORY_KEYS keys;
    WV_SGE sge[64];
    OVERLAPPED ov;

    wv_open(&host);
    max_wr = host.attributes.MaxSrqWr, max_sge = host.attributes.MaxSrqSge;
    ok_status(CALL(host.pd, RegisterMemory, memory, 4096, WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    for (int i = 0; i < 64; i++)
        sge[i] = (WV_SGE){ .pAddress = memory, .Length = 8, .Lkey = keys.Lkey };
    overlapped_rubbish(&ov, NULL);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, 1, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 0, 1, 0, &srq), WV_INVALID_PARAMETER);
    ok_ptr(srq, ==, NULL);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, 1, 5, &srq), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, max_wr + 1, 1, 0, &srq), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, max_sge + 1, 0, &srq), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, 2, 0, &srq), WV_SUCCESS);
    ok_status(CALL(srq, Query, &wr, &entries, &limit), WV_SUCCESS);
    ok_uint(wr, >=, 4);
    ok_uint(entries, >=, 2);
    ok_uint(limit, ==, 0);
    ok_status(CALL(srq, Query, NULL, &entries, &limit), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, 0, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, wr, wr + 1), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, Modify, max_wr + 1, 0), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(srq, PostReceive, 1, NULL, 1), WV_INVALID_PARAMETER);
    ok_status(CALL(srq, PostReceive, 1, sge, entries + 1 > 64 ? 64 : entries + 1), WV_INSUFFICIENT_RESOURCES);
    for (SIZE_T i = 0; i < wr; i++)
        ok_status(CALL(srq, PostReceive, i, sge, 1), WV_SUCCESS);
    ok_status(CALL(srq, PostReceive, 1, sge, 1), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(srq, Modify, wr - 1, 0), WV_BUFFER_OVERFLOW);
    ok_status(CALL(srq, Modify, wr, 1), WV_SUCCESS);
    ok_status(CALL(srq, Query, &wr, &entries, &limit), WV_SUCCESS);
    ok_uint(limit, ==, 1);
    ov.hEvent = (HANDLE)(ULONG_PTR)0x7770;
    ok_status(CALL(srq, Notify, &ov), WV_INVALID_HANDLE);
    ov.hEvent = NULL;
    ok_status(CALL(srq, Notify, &ov), WV_IO_PENDING);
    ok_io_pending(srq, &ov);
    ok_status(CALL(srq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(WV_FINISH(srq, &ov, WV_IO_PENDING), WV_CANCELLED);
    release_last(srq);
    wv_close(&host);
    free(memory);
}

/* Two queue pairs take from one queue; the limit is told once, by its own success code, and armed anew by Modify. */
ALONE(srq_shared)
{
    struct wvpair pair;
    IWVSharedReceiveQueue *srq;
    WV_QP_ATTRIBUTES attributes;
    SIZE_T wr, entries, limit;
    struct wvlink *a, *b;
    OVERLAPPED ov;
    HRESULT hr;
    WV_SGE sge;

    wv_pair_make(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    overlapped_rubbish(&ov, NULL);
    ok_status(CALL(pair.host[1].pd, CreateSharedReceiveQueue, 8, 1, 3, &srq), WV_SUCCESS);
    /* The passive side's queue pair made anew. */
    release_last(b->qp);
    b->shape.srq = srq;
    b->qp = wv_make_qp(b);
    wv_to_init(b, b->qp);
    sge = wv_sge(b, 0, 64);
    ok_status(CALL(b->qp, PostReceive, 1, &sge, 1), WV_INVALID_PARAMETER);
    ok_status(CALL(b->qp, Query, &attributes), WV_SUCCESS);
    ok_ptr(attributes.pSharedReceiveQueue, ==, srq);
    ok_uint(attributes.ReceiveDepth, ==, 0);
    for (UINT64 i = 0; i < 5; i++)
        ok_status(CALL(srq, PostReceive, i, &sge, 1), WV_SUCCESS);
    wv_pair_connect(&pair);
    ok_status(CALL(srq, Modify, 8, 3), WV_SUCCESS); /* creation armed it with nothing posted */
    hr = CALL(srq, Notify, &ov);
    ok_status(hr, WV_IO_PENDING);
    for (UINT64 i = 0; i < 3; i++) {
        if (i == 1)
            ok_io_pending(srq, &ov);
        wv_send(a, i, 0, 8, 0);
        ok_completion(a->cq, WvSend, WvWcSuccess, i);
        ok_completion(b->cq, WvReceive, WvWcSuccess, i);
    }
    ok_status(WV_FINISH(srq, &ov, hr), 0x101); /* success, by a code of its own */
    ok_status(CALL(srq, Query, &wr, &entries, &limit), WV_SUCCESS);
    ok_status(CALL(srq, Notify, &ov), WV_IO_PENDING);
    wv_send(a, 9, 0, 8, 0);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 3);
    ok_io_pending(srq, &ov); /* once only */
    release_last(srq);       /* the queue pair keeps it; it is told nothing any more */
    srq = attributes.pSharedReceiveQueue;
    ok_status(CALL(b->qp, Query, &attributes), WV_SUCCESS);
    ok_ptr(attributes.pSharedReceiveQueue, ==, srq);
    wv_pair_drop(&pair);
    ok_internal(&ov, WV_CANCELLED);
}

RUNNER_MAIN
