/* SPDX-License-Identifier: MIT */
/* Shared receive queues. ndspi-v2.md 7, CreateQueuePairWithSrq in 5. */
#include "session.h"

#include <stdlib.h>

/* One shared queue and a buffer for its receives: SLOT bytes each, the context is the slot's number. */

#define SLOT  1024
#define SLOTS 64

struct pool {
    IND2SharedReceiveQueue *srq;
    IND2MemoryRegion *mr;
    IND2CompletionQueue *cq;
    BYTE *memory;
    HANDLE event;
    OVERLAPPED ov;
};

static IND2SharedReceiveQueue *make_srq(struct host *host, ULONG depth, ULONG threshold)
{
    IND2SharedReceiveQueue *srq;

    ok_status(CALL(host->adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host->file, depth, 1,
                   threshold, 0, 0, (void **)&srq),
              ND_SUCCESS);
    return srq;
}

static void pool_make(struct pool *pool, struct host *host, ULONG depth, ULONG threshold)
{
    memset(pool, 0, sizeof(*pool));
    pool->event = event_auto();
    overlapped_rubbish(&pool->ov, pool->event);
    pool->memory = aligned_alloc(4096, SLOTS * SLOT);
    ok(pool->memory != NULL);
    ok_status(CALL(host->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host->file, (void **)&pool->mr),
              ND_SUCCESS);
    ok_status(finish(pool->mr,
                     CALL(pool->mr, Register, pool->memory, SLOTS * SLOT, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &pool->ov),
                     &pool->ov),
              ND_SUCCESS);
    ok_status(CALL(host->adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host->file, 4 * SLOTS, 0, 0,
                   (void **)&pool->cq),
              ND_SUCCESS);
    pool->srq = make_srq(host, depth, threshold);
}

static void pool_drop(struct pool *pool)
{
    if (pool->srq)
        release_last(pool->srq);
    release_last(pool->cq);
    ok_status(finish(pool->mr, CALL(pool->mr, Deregister, &pool->ov), &pool->ov), ND_SUCCESS);
    release_last(pool->mr);
    free(pool->memory);
    ok(CloseHandle(pool->event));
}

static HRESULT pool_try(struct pool *pool, uintptr_t slot)
{
    ND2_SGE sge = { pool->memory + slot * SLOT, SLOT, CALL(pool->mr, GetLocalToken) };

    return CALL(pool->srq, Receive, (void *)slot, &sge, 1);
}

static void pool_post(struct pool *pool, uintptr_t from, uintptr_t n)
{
    for (uintptr_t slot = from; slot < from + n; slot++)
        ok_status(pool_try(pool, slot), ND_SUCCESS);
}

/* The next receive's result; it must be a success over that link. */
static uintptr_t pool_next(struct pool *pool, const void *context)
{
    ND2_RESULT result = result_of(pool->cq, Nd2RequestTypeReceive);

    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_status(result.Status, ND_SUCCESS);
    ok_ptr(result.QueuePairContext, ==, context);
    return (uintptr_t)result.RequestContext;
}

/* Server and client of several connections: all of the server's take from one queue. */

#define LINKS 3

struct party {
    struct host host;
    struct pool pool; /* server only */
    struct link links[LINKS];
    ULONG count;
};

static void party_begin(struct party *party, ULONG count, ULONG depth, ULONG threshold)
{
    struct shape shape = { .depth = SLOTS, .size = 65536 };

    host_open(&party->host);
    party->count = count;
    if (runner_role() == ROLE_SERVER) {
        IND2Listener *listener;

        pool_make(&party->pool, &party->host, depth, threshold);
        shape.srq = party->pool.srq;
        shape.cq = party->pool.cq;
        listener = listen_any(&party->host);
        for (ULONG i = 0; i < count; i++) {
            link_make(&party->links[i], &party->host, &shape);
            link_accept(&party->links[i], listener);
        }
        release_last(listener);
    } else {
        union endpoint to = listener_of_peer();

        for (ULONG i = 0; i < count; i++) {
            link_make(&party->links[i], &party->host, &shape);
            link_connect(&party->links[i], &to);
        }
    }
    runner_settle();
}

static void party_end(struct party *party)
{
    runner_sync();
    if (runner_role() == ROLE_CLIENT) {
        for (ULONG i = 0; i < party->count; i++)
            link_disconnect(&party->links[i]);
    }
    runner_sync();
    for (ULONG i = 0; i < party->count; i++)
        link_drop(&party->links[i]);
    if (runner_role() == ROLE_SERVER)
        pool_drop(&party->pool);
    host_close(&party->host);
}

/* Client: a message over one of its links, and its result. */
static void say(struct link *link, ULONG seed, SIZE_T size)
{
    pattern_fill(link->buffer, size, seed);
    post_send(link, seed, 0, size, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, seed);
}

/* Receives posted before there is a connection serve all of them; each result names the queue pair that took it. */

SERVER(shared)
{
    struct party party;
    struct pool *pool = &party.pool;

    party_begin(&party, LINKS, 16, 0);
    ok_status(CALL(party.links[0].qp, Receive, NULL, NULL, 0), ND_INVALID_DEVICE_REQUEST);
    pool_post(pool, 0, 16);
    ok_status(pool_try(pool, 16), ND_NO_MORE_ENTRIES);
    runner_sync();
    for (ULONG i = 0; i < 60; i++) {
        uintptr_t slot;

        if (i)
            runner_sync();
        slot = pool_next(pool, &party.links[i % LINKS]);
        pattern_check(pool->memory + slot * SLOT, 10 * i + 1, i);
        memset(pool->memory + slot * SLOT, 0, SLOT);
        ok_status(pool_try(pool, slot), ND_SUCCESS);
    }
    result_none(pool->cq);
    party_end(&party);
}

CLIENT(shared)
{
    struct party party;

    party_begin(&party, LINKS, 0, 0);
    for (ULONG i = 0; i < 60; i++) {
        runner_sync();
        say(&party.links[i % LINKS], i, 10 * i + 1);
    }
    party_end(&party);
}

/* A15: a message that finds the queue empty waits for a receive. siw ends its connection instead, and only that one. */

static void empty_ends_the_connection(void)
{
    struct party party;
    struct pool *pool = &party.pool;

    party_begin(&party, 2, 8, 0);
    if (runner_role() == ROLE_SERVER) {
        struct link *first = &party.links[0];

        ok_status(FINISH(first, CALL(first->connector, NotifyDisconnect, &first->ov)), ND_SUCCESS);
        pool_post(pool, 0, 1);
        runner_sync();
        pool_next(pool, &party.links[1]);
        result_none(pool->cq);
    } else {
        post_send(&party.links[0], 1, 0, 64, 0);
        runner_sync();
        say(&party.links[1], 2, 64);
    }
    runner_sync();
    for (ULONG i = 0; i < party.count; i++)
        link_drop(&party.links[i]);
    if (runner_role() == ROLE_SERVER)
        pool_drop(pool);
    host_close(&party.host);
}

SERVER(empty)
{
    struct party party;
    struct pool *pool = &party.pool;

    if (runner_iwarp()) {
        empty_ends_the_connection();
        return;
    }
    party_begin(&party, 2, 8, 0);
    for (ULONG round = 0; round < 3; round++) {
        runner_sync(); /* has been sent */
        Sleep(200);
        result_none(pool->cq);
        pool_post(pool, 0, 1);
        pool_next(pool, &party.links[0]);
        pool_post(pool, 1, 1);
        pool_next(pool, &party.links[1]);
        runner_sync();
    }
    party_end(&party);
}

CLIENT(empty)
{
    struct party party;

    if (runner_iwarp()) {
        empty_ends_the_connection();
        return;
    }
    party_begin(&party, 2, 0, 0);
    for (ULONG round = 0; round < 3; round++) {
        post_send(&party.links[0], 1, 0, 64, 0);
        runner_sync();
        ok_result(party.links[0].cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
        post_send(&party.links[1], 2, 0, 64, 0);
        ok_result(party.links[1].cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
        runner_sync();
    }
    party_end(&party);
}

/* Notify: when fewer than the threshold are posted, without anybody polling; not before; at once if it is so already. */

static HRESULT notify_state(struct pool *pool)
{
    return CALL((IND2Overlapped *)pool->srq, GetOverlappedResult, &pool->ov, FALSE);
}

SERVER(notify)
{
    struct party party;
    struct pool *pool = &party.pool;
    HANDLE event = event_auto();
    OVERLAPPED more;

    party_begin(&party, 1, 8, 4);
    overlapped_rubbish(&more, event);
    pool_post(pool, 0, 8);
    ok_status(CALL(pool->srq, Notify, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(pool->srq, Notify, &pool->ov), ND_PENDING);
    ok_status(CALL(pool->srq, Notify, &more), ND_PENDING);
    runner_sync(); /* four messages */
    runner_sync();
    for (int i = 0; i < 4; i++)
        pool_next(pool, &party.links[0]);
    ok_status(notify_state(pool), ND_PENDING);
    runner_sync(); /* the fifth */
    ok_status(CALL((IND2Overlapped *)pool->srq, GetOverlappedResult, &pool->ov, TRUE), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)pool->srq, GetOverlappedResult, &more, TRUE), ND_SUCCESS);
    pool_next(pool, &party.links[0]);

    /* Three are posted. */
    ok_status(finish(pool->srq, CALL(pool->srq, Notify, &pool->ov), &pool->ov), ND_SUCCESS);
    /* Eight again: not any more. The old event is none of this request's. */
    pool_post(pool, 0, 5);
    ok_status(CALL(pool->srq, Notify, &pool->ov), ND_PENDING);
    ok_status(notify_state(pool), ND_PENDING);
    ok_status(CALL(pool->srq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(notify_state(pool), ND_CANCELED);

    /* The threshold of a pending request changes. */
    ok_status(CALL(pool->srq, Notify, &pool->ov), ND_PENDING);
    ok_status(CALL(pool->srq, Modify, 0, 8), ND_SUCCESS);
    ok_status(notify_state(pool), ND_PENDING);
    ok_status(CALL(pool->srq, Modify, 0, 9), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)pool->srq, GetOverlappedResult, &pool->ov, TRUE), ND_SUCCESS);

    /* The last Release ends what is pending. */
    ok_status(CALL(pool->srq, Modify, 0, 1), ND_SUCCESS);
    ok_status(CALL(pool->srq, Notify, &pool->ov), ND_PENDING);
    release_last(pool->srq);
    pool->srq = NULL;
    ok_status((HRESULT)pool->ov.Internal, ND_CANCELED);
    ok(CloseHandle(event));
    party_end(&party);
}

CLIENT(notify)
{
    struct party party;

    party_begin(&party, 1, 0, 0);
    runner_sync();
    for (ULONG i = 0; i < 4; i++)
        say(&party.links[0], i, 64);
    runner_sync();
    runner_sync();
    say(&party.links[0], 4, 64);
    party_end(&party);
}

/* The end of one connection cancels none of the receives; a failed receive breaks its connection only. */

SERVER(one_of_them_ends)
{
    struct party party;
    struct pool *pool = &party.pool;
    ND2_RESULT result;

    party_begin(&party, LINKS, 12, 0);
    pool_post(pool, 0, 12);
    runner_sync();
    pool_next(pool, &party.links[0]);
    runner_sync(); /* the client disconnects the first */
    ok_status(FINISH(&party.links[0], CALL(party.links[0].connector, NotifyDisconnect, &party.links[0].ov)),
              ND_SUCCESS);
    release_last(party.links[0].qp);
    party.links[0].qp = NULL;
    result_none(pool->cq);
    runner_sync(); /* too long a message over the second */
    result = result_next(pool->cq);
    ok_status(result.Status, ND_DATA_OVERRUN);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_ptr(result.QueuePairContext, ==, &party.links[1]);
    runner_sync();
    /* The ten that are left, over the third. */
    for (ULONG i = 0; i < 10; i++) {
        uintptr_t slot;

        runner_sync();
        slot = pool_next(pool, &party.links[2]);
        pattern_check(pool->memory + slot * SLOT, 100, i);
    }
    result_none(pool->cq);
    pool_post(pool, 0, 12);
    ok_status(pool_try(pool, 12), ND_NO_MORE_ENTRIES);
    runner_sync();
    for (ULONG i = 0; i < LINKS; i++)
        link_drop(&party.links[i]);
    result_none(pool->cq);
    pool_drop(pool);
    host_close(&party.host);
}

CLIENT(one_of_them_ends)
{
    struct party party;

    party_begin(&party, LINKS, 0, 0);
    runner_sync();
    say(&party.links[0], 0, 100);
    runner_sync();
    link_disconnect(&party.links[0]);
    runner_sync();
    post_send(&party.links[1], 1, 0, SLOT + 1, 0);
    result_next(party.links[1].cq);
    runner_sync();
    for (ULONG i = 0; i < 10; i++) {
        say(&party.links[2], i, 100);
        runner_sync();
    }
    runner_sync();
    for (ULONG i = 0; i < LINKS; i++)
        link_drop(&party.links[i]);
    host_close(&party.host);
}

/* Modify: more and less, with receives posted and a connection at work. */

SERVER(modify)
{
    struct party party;
    struct pool *pool = &party.pool;

    party_begin(&party, 1, 2, 0);
    pool_post(pool, 0, 2);
    ok_status(CALL(pool->srq, Modify, 0, 0), ND_SUCCESS);
    ok_status(pool_try(pool, 2), ND_NO_MORE_ENTRIES);
    ok_status(CALL(pool->srq, Modify, party.host.info.MaxSharedReceiveQueueDepth + 1, 0), ND_INVALID_PARAMETER);
    ok_status(CALL(pool->srq, Modify, 1, 0), ND_BUFFER_OVERFLOW);
    ok_status(pool_try(pool, 2), ND_NO_MORE_ENTRIES);
    ok_status(CALL(pool->srq, Modify, SLOTS, 0), ND_SUCCESS);
    pool_post(pool, 2, SLOTS - 2);
    ok_status(pool_try(pool, 0), ND_NO_MORE_ENTRIES);
    runner_sync();
    for (ULONG i = 0; i < SLOTS; i++) {
        uintptr_t slot = pool_next(pool, &party.links[0]);

        ok_uint(slot, ==, i);
        pattern_check(pool->memory + slot * SLOT, 100, 7);
    }
    ok_status(CALL(pool->srq, Modify, 3, 0), ND_SUCCESS);
    pool_post(pool, 0, 3);
    ok_status(pool_try(pool, 3), ND_NO_MORE_ENTRIES);
    ok_status(CALL(pool->srq, Modify, party.host.info.MaxSharedReceiveQueueDepth, 1), ND_SUCCESS);
    pool_post(pool, 3, 1);
    party_end(&party);
}

CLIENT(modify)
{
    struct party party;

    party_begin(&party, 1, 0, 0);
    runner_sync();
    pattern_fill(party.links[0].buffer, 100, 7);
    for (ULONG i = 0; i < SLOTS; i++) {
        post_send(&party.links[0], i, 0, 100, 0);
        ok_result(party.links[0].cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    }
    party_end(&party);
}

/* Queue pairs are released in the middle of a long message: the receive that each had taken comes back, and no other is
 * gone. At the end as many messages fit as receives are posted. */

#define BREAKS       10
#define LONG_MESSAGE (1 << 20)
#define BREAK_DEPTH  4

SERVER(nothing_gets_lost)
{
    uintptr_t posted = 0, back = 0, cancelled = 0, left;
    IND2CompletionQueue *cq;
    IND2Listener *listener;
    struct link memory, link;
    struct shape shape = { .depth = 4 };
    volatile BYTE *arrived;
    struct host host;
    ND2_RESULT result;
    ND2_SGE sge;

    host_open(&host);
    link_make(&memory, &host, &(struct shape){ .size = LONG_MESSAGE });
    arrived = memory.buffer;
    sge = sge_of(&memory, 0, LONG_MESSAGE);
    shape.srq = make_srq(&host, BREAK_DEPTH, 0);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 64, 0, 0, (void **)&cq),
              ND_SUCCESS);
    shape.cq = cq;
    listener = listen_any(&host);
    for (int i = 0; i <= BREAKS; i++) {
        for (; posted - back < BREAK_DEPTH; posted++)
            ok_status(CALL(shape.srq, Receive, (void *)posted, &sge, 1), ND_SUCCESS);
        *arrived = 0;
        link_make(&link, &host, &shape);
        link_accept(&link, listener);
        runner_settle();
        if (i == BREAKS)
            break;
        while (!*arrived)
            harness_yield();
        release_last(link.qp);
        link.qp = NULL;
        link_drop(&link);
        while (CALL(cq, GetResults, &result, 1)) {
            ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
            cancelled += result.Status == ND_CANCELED;
            back++;
        }
        runner_sync();
    }
    left = posted - back;
    runner_note("%u receives posted, %u came back, %u of them cancelled", (unsigned)posted, (unsigned)back,
                (unsigned)cancelled);
    runner_put(&left, sizeof(left));
    for (uintptr_t i = 0; i < left; i++)
        ok_status(result_next(cq).Status, ND_SUCCESS);
    for (uintptr_t i = 0; i < BREAK_DEPTH; i++)
        ok_status(CALL(shape.srq, Receive, NULL, &sge, 1), ND_SUCCESS);
    ok_status(CALL(shape.srq, Receive, NULL, &sge, 1), ND_NO_MORE_ENTRIES);
    runner_sync();
    link_drop(&link);
    release_last(listener);
    release_last(shape.srq);
    release_last(cq);
    link_drop(&memory);
    host_close(&host);
}

CLIENT(nothing_gets_lost)
{
    struct shape shape = { .size = LONG_MESSAGE };
    union endpoint to = listener_of_peer();
    struct host host;
    struct link link;
    uintptr_t left;

    host_open(&host);
    for (int i = 0; i <= BREAKS; i++) {
        link_make(&link, &host, &shape);
        memset(link.buffer, 0xff, LONG_MESSAGE);
        link_connect(&link, &to);
        runner_settle();
        if (i == BREAKS)
            break;
        post_send(&link, 1, 0, LONG_MESSAGE, 0);
        result_next(link.cq);
        link_drop(&link);
        runner_sync();
    }
    runner_get(&left, sizeof(left));
    for (uintptr_t i = 0; i < left; i++) {
        post_send(&link, i, 0, 64, 0);
        ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    }
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

/* Arguments, limits, interfaces; releases in any order with receives posted. */

ALONE(arguments)
{
    static const GUID *const answered[] = { &IID_IUnknown, &IID_IND2Overlapped, &IID_IND2SharedReceiveQueue };
    IND2SharedReceiveQueue *srq;
    ND2_ADAPTER_INFO *info;
    KAFFINITY affinity = 0;
    struct host host;
    struct pool pool;
    USHORT group = 5;
    ULONG depth;
    void *out;

    host_open(&host);
    info = &host.info;
    depth = info->MaxSharedReceiveQueueDepth;
    if (!depth)
        harness_skip("the device has no shared receive queues");
#define CREATE(depth, sge, out)                                                                                   \
    CALL(host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host.file, (depth), (sge), 0, 0, 0, \
         (void **)(out))
    ok_status(CREATE(0, 1, &srq), ND_INVALID_PARAMETER_3);
    ok_ptr(srq, ==, NULL);
    ok_status(CREATE(depth + 1, 1, &srq), ND_INVALID_PARAMETER_3);
    ok_status(CREATE(16, 1000, &srq), ND_INVALID_PARAMETER_4);
    ok(FAILED(CREATE(16, 1, NULL)));
    ok_status(CALL(host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, NULL, 16, 1, 0, 0, 0, &out),
              ND_INVALID_HANDLE);
    ok_status(CALL(host.adapter, CreateSharedReceiveQueue, &IID_IND2MemoryRegion, host.file, 16, 1, 0, 0, 0, &out),
              E_NOINTERFACE);
    /* An affinity and a group are wishes. */
    ok_status(CALL(host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host.file, depth,
                   info->MaxReceiveSge, depth, 1, 0x2, (void **)&srq),
              ND_SUCCESS);
    for (size_t i = 0; i < 3; i++) {
        ok_status(CALL(srq, QueryInterface, answered[i], &out), S_OK);
        ok_ptr(out, ==, srq);
        ok_int(CALL(srq, Release), ==, 1);
    }
    ok_status(CALL(srq, QueryInterface, &IID_IND2CompletionQueue, &out), E_NOINTERFACE);
    ok_status(CALL(srq, GetNotifyAffinity, &group, &affinity), ND_SUCCESS);
    ok_int(group, ==, 0);
    ok_uint(affinity, !=, 0);
    ok_status(CALL(srq, GetNotifyAffinity, NULL, NULL), ND_INVALID_PARAMETER);
    for (ULONG i = 0; i < depth; i++)
        ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
    ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    release_last(srq);

    pool_make(&pool, &host, 4, 0);
    {
        ND2_SGE sge[200];

        for (int i = 0; i < 200; i++)
            sge[i] = (ND2_SGE){ pool.memory, 0x80000000u, CALL(pool.mr, GetLocalToken) };
        ok_status(CALL(pool.srq, Receive, NULL, sge, 200), ND_DATA_OVERRUN);
        ok_status(CALL(pool.srq, Receive, NULL, sge, 2), ND_BUFFER_OVERFLOW);
        if (info->MaxTransferLength < 0xffffffffu) {
            sge[0].BufferLength = info->MaxTransferLength + 1;
            ok_status(CALL(pool.srq, Receive, NULL, sge, 1), ND_BUFFER_OVERFLOW);
        }
    }
    ok_status(pool_try(&pool, 0), ND_SUCCESS);
    pool_drop(&pool);
    host_close(&host);
#undef CREATE
}

ALONE(queue_pair_arguments)
{
    IND2SharedReceiveQueue *srq, *other_srq;
    struct host host, other;
    ND2_ADAPTER_INFO *info;
    IND2QueuePair *qp;
    struct link link;

    host_open(&host);
    host_open(&other);
    link_make(&link, &host, NULL);
    srq = make_srq(&host, 4, 0);
    other_srq = make_srq(&other, 4, 0);
    info = &host.info;
#define CREATE(rcq, scq, srq, depth, sge, inline_size)                                                   \
    CALL(host.adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)(rcq), (IUnknown *)(scq), \
         (IUnknown *)(srq), NULL, (depth), (sge), (inline_size), (void **)&qp)
    ok_status(CREATE(NULL, link.cq, srq, 4, 1, 0), ND_INVALID_PARAMETER_2);
    ok_ptr(qp, ==, NULL);
    ok_status(CREATE(link.cq, link.mr, srq, 4, 1, 0), ND_INVALID_PARAMETER_3);
    ok_status(CREATE(link.cq, link.cq, NULL, 4, 1, 0), ND_INVALID_PARAMETER_4);
    ok_status(CREATE(link.cq, link.cq, link.cq, 4, 1, 0), ND_INVALID_PARAMETER_4);
    ok_status(CREATE(link.cq, link.cq, other_srq, 4, 1, 0), ND_INVALID_PARAMETER_4);
    ok_status(CREATE(link.cq, link.cq, srq, info->MaxInitiatorQueueDepth + 1, 1, 0), ND_INVALID_PARAMETER_6);
    ok_status(CREATE(link.cq, link.cq, srq, 4, info->MaxInitiatorSge + 1, 0), ND_INVALID_PARAMETER_7);
    ok_status(CREATE(link.cq, link.cq, srq, 4, 1, info->MaxInlineDataSize + 1), ND_INVALID_PARAMETER_8);
    ok_status(CALL(host.adapter, CreateQueuePairWithSrq, &IID_IND2Connector, (IUnknown *)link.cq, (IUnknown *)link.cq,
                   (IUnknown *)srq, NULL, 4, 1, 0, (void **)&qp),
              E_NOINTERFACE);
    ok_status(
        CREATE(link.cq, link.cq, srq, info->MaxInitiatorQueueDepth, info->MaxInitiatorSge, info->MaxInlineDataSize),
        ND_SUCCESS);
    ok_status(CALL(qp, Receive, NULL, NULL, 0), ND_INVALID_DEVICE_REQUEST);
    ok_status(CALL(qp, Send, NULL, NULL, 0, 0), ND_CONNECTION_INVALID);
    release_last(qp);
    release_last(other_srq);
    host_close(&other);
    release_last(srq);
    link_drop(&link);
    host_close(&host);
#undef CREATE
}

/* Every order of the last Releases of queue, shared queue and queue pair. */
ALONE(release_orders)
{
    static const char orders[6][4] = { "scq", "sqc", "csq", "cqs", "qsc", "qcs" };
    struct host host;

    host_open(&host);
    for (int order = 0; order < 6; order++) {
        IND2SharedReceiveQueue *srq = make_srq(&host, 8, 4);
        IND2CompletionQueue *cq;
        IND2QueuePair *qp;

        ok_status(
            CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 16, 0, 0, (void **)&cq),
            ND_SUCCESS);
        ok_status(CALL(host.adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq,
                       (IUnknown *)srq, NULL, 8, 1, 0, (void **)&qp),
                  ND_SUCCESS);
        for (int i = 0; i < 8; i++)
            ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
        if (order % 2)
            ok_status(CALL(qp, Flush), ND_SUCCESS);
        for (int i = 0; i < 3; i++) {
            if (orders[order][i] == 's')
                release_last(srq);
            else if (orders[order][i] == 'c')
                release_last(cq);
            else
                release_last(qp);
        }
    }
    host_close(&host);
}

RUNNER_MAIN
