/* SPDX-License-Identifier: MIT */
/* Reads and what waits for them: the outbound limit, READ_FENCE, results in order. ndspi.md 5. */
#include "session.h"

/* More Reads than the outbound limit wait in the queue; a fenced Send goes after them; results come in order. */

SERVER(read_limit_and_fence)
{
    struct session session;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 1, .depth = 12 });
    pattern_fill(session.link.buffer, 65536 - 64, 1);
    post_receive(&session.link, 1, 65536 - 64, 64);
    runner_sync();
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    session_end(&session);
}

CLIENT(read_limit_and_fence)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 1, .depth = 12 });
    runner_sync();
    for (uintptr_t i = 0; i < 8; i++) {
        sge = sge_of(link, i * 8000, 8000);
        ok_status(CALL(link->qp, Read, (void *)i, &sge, 1, link->remote.address + i * 8000, link->remote.token, 0),
                  ND_SUCCESS);
    }
    sge = sge_of(link, 65536 - 64, 64);
    ok_status(CALL(link->qp, Send, (void *)8, &sge, 1, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 8);
    pattern_check(link->buffer, 64000, 1);
    session_end(&session);
}

/* READ_FENCE: what a Read brings is what the fenced request behind it sends, a Send or a Write. The bytes differ in each round,
 * so that a request that does not wait shows: behind a first Read that lasts the two that matter are both in the queue when
 * their turn comes. */

#define FENCED_SIZE   16384
#define FENCED_ROUNDS 16

SERVER(fence_holds_back)
{
    struct session session;
    struct link *link = &session.link;
    BYTE *source, *target;

    session_begin(&session, &(struct shape){ .size = read_that_lasts(), .reads = 1 });
    source = link->buffer;
    target = link->buffer + FENCED_SIZE;
    for (ULONG round = 0; round < FENCED_ROUNDS; round++) {
        pattern_fill(source, FENCED_SIZE, round);
        memset(target, 0xcc, FENCED_SIZE);
        post_receive(link, round, FENCED_SIZE, FENCED_SIZE);
        runner_sync();
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, round);
        pattern_check(target, FENCED_SIZE, round);
    }
    session_end(&session);
}

CLIENT(fence_holds_back)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .size = FENCED_SIZE + read_that_lasts(), .reads = 1 });
    for (ULONG round = 0; round < FENCED_ROUNDS; round++) {
        ND2_SGE sge = sge_of(link, 0, FENCED_SIZE), first = sge_of(link, FENCED_SIZE, read_that_lasts());

        runner_sync();
        ok_status(CALL(link->qp, Read, (void *)0, &first, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
        ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
        if (round % 2) {
            ok_status(CALL(link->qp, Write, (void *)2, &sge, 1, link->remote.address + FENCED_SIZE, link->remote.token,
                           ND_OP_FLAG_READ_FENCE),
                      ND_SUCCESS);
            ok_status(CALL(link->qp, Send, (void *)3, NULL, 0, 0), ND_SUCCESS); /* behind the Write's bytes */
        } else {
            ok_status(CALL(link->qp, Send, (void *)2, &sge, 1, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
        }
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 0);
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 1);
        ok_result(link->cq, round % 2 ? Nd2RequestTypeWrite : Nd2RequestTypeSend, ND_SUCCESS, 2);
        if (round % 2)
            ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 3);
    }
    session_end(&session);
}

/* A fenced Read is legal, on a queue that is idle and behind other Reads, and what is behind it goes on. */

SERVER(fenced_read)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 1, .depth = 12 });
    pattern_fill(link->buffer, 65536 - 64, 3);
    post_receive(link, 1, 65536 - 64, 64);
    post_receive(link, 2, 65536 - 64, 64);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);
    session_end(&session);
}

CLIENT(fenced_read)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 1, .depth = 12 });
    runner_sync();
    sge = sge_of(link, 0, 8000);
    ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, link->remote.address, link->remote.token, ND_OP_FLAG_READ_FENCE),
              ND_SUCCESS);
    post_send(link, 2, 65536 - 64, 64, 0);
    ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 1);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    pattern_check(link->buffer, 8000, 3);
    for (uintptr_t i = 0; i < 8; i++) {
        sge = sge_of(link, i * 8000, 8000);
        ok_status(CALL(link->qp, Read, (void *)i, &sge, 1, link->remote.address + i * 8000, link->remote.token,
                       i & 1 ? ND_OP_FLAG_READ_FENCE : 0),
                  ND_SUCCESS);
    }
    post_send(link, 8, 65536 - 64, 64, ND_OP_FLAG_READ_FENCE);
    for (uintptr_t i = 0; i < 8; i++)
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 8);
    pattern_check(link->buffer, 64000, 3);
    session_end(&session);
}

/* A Read is over, and its bytes are there, when its result comes; so it is when the device is done with a later request first. */

SERVER(read_before_others)
{
    struct session session;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 4, .depth = 8 });
    pattern_fill(session.link.buffer, 65536, 3);
    runner_sync();
    runner_sync();
    session_end(&session);
}

CLIENT(read_before_others)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    session_begin(&session, &(struct shape){ .size = 65536, .reads = 4, .depth = 8 });
    runner_sync();
    for (unsigned round = 0; round < 100; round++) {
        ULONG silent = round & 1 ? ND_OP_FLAG_SILENT_SUCCESS : 0;

        memset(link->buffer, 0, 65536);
        for (uintptr_t i = 0; i < 2; i++) {
            sge = sge_of(link, i * 32768, 32768);
            ok_status(CALL(link->qp, Read, (void *)i, &sge, 1, link->remote.address + i * 32768, link->remote.token, 0),
                      ND_SUCCESS);
        }
        ok_status(CALL(link->qp, Write, (void *)2, NULL, 0, link->remote.address, link->remote.token, silent),
                  ND_SUCCESS);
        ok_status(CALL(link->qp, Write, (void *)3, NULL, 0, link->remote.address, link->remote.token, 0), ND_SUCCESS);
        for (uintptr_t i = 0; i < 2; i++)
            ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
        pattern_check(link->buffer, 65536, 3);
        if (!silent)
            ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 2);
        ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 3);
    }
    runner_sync();
    session_end(&session);
}

/* An outbound limit of 0 is "no Reads": one is refused, where it would stand in the queue for ever, and the queue works on. */

SERVER(no_reads)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    post_receive(link, 1, 0, 64);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    session_end(&session);
}

CLIENT(no_reads)
{
    struct session session;
    struct link *link = &session.link;
    ULONG in = 7, out = 7;
    ND2_SGE sge;

    session_begin(&session, NULL);
    ok_status(CALL(link->connector, GetReadLimits, &in, &out), ND_SUCCESS);
    ok_uint(out, ==, 0);
    runner_sync();
    sge = sge_of(link, 0, 8);
    for (ULONG flags = 0; flags <= ND_OP_FLAG_READ_FENCE; flags++) {
        ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, link->remote.address, link->remote.token, flags),
                  ND_INVALID_DEVICE_REQUEST);
        ok_status(CALL(link->qp, Read, (void *)1, NULL, 0, link->remote.address, link->remote.token, flags),
                  ND_INVALID_DEVICE_REQUEST);
    }
    post_send(link, 2, 0, 64, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    result_none(link->cq);
    session_end(&session);
}

RUNNER_MAIN
