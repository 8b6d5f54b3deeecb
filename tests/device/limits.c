/* SPDX-License-Identifier: MIT */
/* Every limit of Query at once, and used (ndspi.md A26): one connection with a queue pair of all maxima on a completion queue of
 * its maximum, one whose receives come from a shared queue of its maximum. */
#include "session.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define WRITE_SIZE 8
#define AREA       65536 /* before the long transfers */

struct maxima {
    struct host host;
    const ND2_ADAPTER_INFO *info;
    IND2SharedReceiveQueue *srq;
    struct link plain, shared;
    SIZE_T length; /* of the longest transfer that is tried here; those of MaxTransferLength are cases of their own */
};

static void maximal_qp(struct maxima *maxima, struct link *link, IND2SharedReceiveQueue *srq)
{
    const ND2_ADAPTER_INFO *info = maxima->info;

    release_last(link->qp);
    if (srq)
        ok_status(CALL(maxima->host.adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)link->cq,
                       (IUnknown *)link->cq, (IUnknown *)srq, link, info->MaxInitiatorQueueDepth, info->MaxInitiatorSge,
                       info->MaxInlineDataSize, (void **)&link->qp),
                  ND_SUCCESS);
    else
        ok_status(CALL(maxima->host.adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)link->cq,
                       (IUnknown *)link->cq, link, info->MaxReceiveQueueDepth, info->MaxInitiatorQueueDepth,
                       info->MaxReceiveSge, info->MaxInitiatorSge, info->MaxInlineDataSize, (void **)&link->qp),
                  ND_SUCCESS);
}

static HRESULT connect_all(struct maxima *maxima, struct link *link, const union endpoint *to)
{
    const ND2_ADAPTER_INFO *info = maxima->info;
    BYTE data[256];

    pattern_fill(data, info->MaxCallerData, 5);
    link_bind(link);
    return FINISH(link,
                  CALL(link->connector, Connect, (IUnknown *)link->qp, &to->any, endpoint_size(to),
                       info->MaxInboundReadLimit, info->MaxOutboundReadLimit, data, info->MaxCallerData, &link->ov));
}

static HRESULT accept_all(struct maxima *maxima, struct link *link)
{
    const ND2_ADAPTER_INFO *info = maxima->info;
    BYTE data[256];

    pattern_fill(data, info->MaxCalleeData, 6);
    return FINISH(link, CALL(link->connector, Accept, (IUnknown *)link->qp, info->MaxInboundReadLimit,
                             info->MaxOutboundReadLimit, data, info->MaxCalleeData, &link->ov));
}

static void check_data(struct link *link, ULONG size, ULONG seed)
{
    BYTE data[256];
    ULONG got = sizeof(data);

    ok_status(CALL(link->connector, GetPrivateData, data, &got), ND_SUCCESS);
    ok_uint(got, >=, size);
    pattern_check(data, size, seed);
}

static void maxima_begin(struct maxima *maxima)
{
    const ND2_ADAPTER_INFO *info;
    struct shape shape = { 0 };
    ULONG inbound, outbound;

    host_open(&maxima->host);
    info = maxima->info = &maxima->host.info;
    maxima->length = info->MaxTransferLength < 8u << 20 ? info->MaxTransferLength : 8u << 20;
    shape.cq_depth = info->MaxCompletionQueueDepth;
    shape.size = AREA + maxima->length;
    link_make(&maxima->plain, &maxima->host, &shape);
    shape.size = AREA;
    link_make(&maxima->shared, &maxima->host, &shape);
    ok_status(CALL(maxima->host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, maxima->host.file,
                   info->MaxSharedReceiveQueueDepth, info->MaxReceiveSge, info->MaxSharedReceiveQueueDepth, 0, 0,
                   (void **)&maxima->srq),
              ND_SUCCESS);
    maximal_qp(maxima, &maxima->plain, NULL);
    maximal_qp(maxima, &maxima->shared, maxima->srq);
    if (runner_role() == ROLE_SERVER) {
        IND2Listener *listener = listen_any(&maxima->host);

        link_request(&maxima->plain, listener);
        check_data(&maxima->plain, info->MaxCallerData, 5);
        ok_status(accept_all(maxima, &maxima->plain), ND_SUCCESS);
        link_request(&maxima->shared, listener);
        ok_status(accept_all(maxima, &maxima->shared), ND_SUCCESS);
        release_last(listener);
    } else {
        union endpoint to = listener_of_peer();

        ok_status(connect_all(maxima, &maxima->plain, &to), ND_SUCCESS);
        check_data(&maxima->plain, info->MaxCalleeData, 6);
        ok_status(FINISH(&maxima->plain, CALL(maxima->plain.connector, CompleteConnect, &maxima->plain.ov)),
                  ND_SUCCESS);
        ok_status(connect_all(maxima, &maxima->shared, &to), ND_SUCCESS);
        ok_status(FINISH(&maxima->shared, CALL(maxima->shared.connector, CompleteConnect, &maxima->shared.ov)),
                  ND_SUCCESS);
    }
    ok_status(CALL(maxima->plain.connector, GetReadLimits, &inbound, &outbound), ND_SUCCESS);
    ok_uint(inbound, ==, info->MaxInboundReadLimit);
    ok_uint(outbound, ==, info->MaxOutboundReadLimit);
    runner_settle();
    link_trade(&maxima->plain);
    link_trade(&maxima->shared);
}

static void maxima_end(struct maxima *maxima)
{
    runner_sync();
    if (runner_role() == ROLE_CLIENT) {
        link_disconnect(&maxima->plain);
        link_disconnect(&maxima->shared);
    }
    runner_sync();
    link_drop(&maxima->plain);
    link_drop(&maxima->shared);
    release_last(maxima->srq);
    host_close(&maxima->host);
}

/* `n` entries of three bytes each with a gap between, from `offset` on. */
static void spread(const struct link *link, ND2_SGE *sges, ULONG n, SIZE_T offset)
{
    for (ULONG i = 0; i < n; i++)
        sges[i] = sge_of(link, offset + 5 * i, 3);
}

/* The bytes of such entries against the pattern of `size` bytes that was sent. */
static void check_spread(const ND2_SGE *sges, ULONG n, SIZE_T size, ULONG seed)
{
    BYTE joined[1024];

    for (ULONG i = 0; i < n; i++)
        memcpy(joined + 3 * i, sges[i].Buffer, 3);
    pattern_check(joined, size, seed);
}

static void fill_spread(const ND2_SGE *sges, ULONG n, ULONG seed)
{
    BYTE joined[1024];

    pattern_fill(joined, 3 * n, seed);
    for (ULONG i = 0; i < n; i++)
        memcpy(sges[i].Buffer, joined + 3 * i, 3);
}

static ULONG smaller(ULONG a, ULONG b)
{
    return a < b ? a : b;
}

/* So many results at once, the queue being filled with them before any is taken. */
static void take_all(struct link *link, ULONG receives, ULONG initiated)
{
    ULONG left = receives + initiated;
    ND2_RESULT results[64];

    while (left) {
        ULONG n = CALL(link->cq, GetResults, results, 64);

        for (ULONG i = 0; i < n; i++) {
            ok_status(results[i].Status, ND_SUCCESS);
            ok_ptr(results[i].QueuePairContext, ==, link);
            if (results[i].RequestType == Nd2RequestTypeReceive)
                receives--;
            else
                initiated--;
        }
        left -= n;
        if (!n)
            harness_yield();
    }
    ok_uint(receives, ==, 0);
    ok_uint(initiated, ==, 0);
    result_none(link->cq);
}

SERVER(all_maxima_used)
{
    struct maxima maxima;
    struct link *link = &maxima.plain;
    const ND2_ADAPTER_INFO *info;
    ND2_SGE sges[64];
    ULONG n;

    maxima_begin(&maxima);
    info = maxima.info;

    /* Entries, inline data, the longest message; all receives of both queues are posted beforehand. */
    n = smaller(info->MaxReceiveSge, info->MaxInitiatorSge);
    spread(link, sges, info->MaxReceiveSge, 1000);
    ok_status(CALL(link->qp, Receive, (void *)1, sges, info->MaxReceiveSge), ND_SUCCESS);
    post_receive(link, 2, 4096, info->MaxInlineDataSize);
    post_receive(link, 3, AREA, maxima.length);
    for (ULONG i = 3; i < info->MaxReceiveQueueDepth; i++)
        ok_status(CALL(link->qp, Receive, (void *)(uintptr_t)4, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link->qp, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    spread(&maxima.shared, sges, info->MaxReceiveSge, 1000);
    for (ULONG i = 0; i < info->MaxSharedReceiveQueueDepth; i++)
        ok_status(CALL(maxima.srq, Receive, (void *)(uintptr_t)i, sges, info->MaxReceiveSge), ND_SUCCESS);
    ok_status(CALL(maxima.srq, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    spread(link, sges, info->MaxReceiveSge, 1000);
    check_spread(sges, n, 3 * n, 1);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);
    pattern_check(link->buffer + 4096, info->MaxInlineDataSize, 2);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 3);
    pattern_check(link->buffer + AREA, maxima.length, 3);
    for (ULONG i = 0; i < 20; i++)
        ok_result(maxima.shared.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    spread(&maxima.shared, sges, info->MaxReceiveSge, 1000);
    check_spread(sges, n, 3 * n, 1);
    runner_sync(); /* the client writes and reads */
    runner_sync();
    pattern_check(link->buffer + 8192, 3 * info->MaxInitiatorSge, 4);
    pattern_check(link->buffer + AREA, maxima.length, 5);

    /* The queues to the brim, both on one completion queue, nothing taken until all is there. */
    for (ULONG i = 0; i < info->MaxInitiatorQueueDepth; i++) {
        ND2_SGE sge = sge_of(link, 0, WRITE_SIZE);

        ok_status(CALL(link->qp, Write, NULL, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    }
    runner_sync(); /* the client's sends are through */
    take_all(link, info->MaxReceiveQueueDepth - 3, info->MaxInitiatorQueueDepth);
    maxima_end(&maxima);
}

CLIENT(all_maxima_used)
{
    struct maxima maxima;
    struct link *link = &maxima.plain;
    const ND2_ADAPTER_INFO *info;
    ULONG n, sent = 0, done = 0;
    ND2_SGE sges[64], sge;
    ND2_RESULT results[64];

    maxima_begin(&maxima);
    info = maxima.info;
    n = smaller(info->MaxReceiveSge, info->MaxInitiatorSge);
    runner_sync();
    spread(link, sges, n, 2000);
    fill_spread(sges, n, 1);
    ok_status(CALL(link->qp, Send, (void *)1, sges, n, 0), ND_SUCCESS);
    pattern_fill(link->buffer + 4096, info->MaxInlineDataSize, 2);
    post_send(link, 2, 4096, info->MaxInlineDataSize, info->MaxInlineDataSize ? ND_OP_FLAG_INLINE : 0);
    pattern_fill(link->buffer + AREA, maxima.length, 3);
    post_send(link, 3, AREA, maxima.length, 0);
    for (uintptr_t i = 1; i <= 3; i++)
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    spread(&maxima.shared, sges, n, 2000);
    fill_spread(sges, n, 1);
    for (uintptr_t i = 0; i < 20; i++)
        ok_status(CALL(maxima.shared.qp, Send, (void *)i, sges, n, 0), ND_SUCCESS);
    for (uintptr_t i = 0; i < 20; i++)
        ok_result(maxima.shared.cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    runner_sync();

    spread(link, sges, info->MaxInitiatorSge, 2000);
    fill_spread(sges, info->MaxInitiatorSge, 4);
    ok_status(CALL(link->qp, Write, (void *)4, sges, info->MaxInitiatorSge, link->remote.address + 8192,
                   link->remote.token, 0),
              ND_SUCCESS);
    pattern_fill(link->buffer + AREA, maxima.length, 5);
    sge = sge_of(link, AREA, maxima.length);
    ok_status(CALL(link->qp, Write, (void *)5, &sge, 1, link->remote.address + AREA, link->remote.token, 0),
              ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 4);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 5);
    memset(link->buffer + AREA, 0, maxima.length);
    ok_status(CALL(link->qp, Read, (void *)6, &sge, 1, link->remote.address + AREA, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 6);
    pattern_check(link->buffer + AREA, maxima.length, 5);
    spread(link, sges, info->MaxReadSge, 2000);
    for (ULONG i = 0; i < info->MaxReadSge; i++)
        memset(sges[i].Buffer, 0, 3);
    /* As many Reads at a time as the limit says, each with all entries. */
    for (uintptr_t i = 0; i < info->MaxOutboundReadLimit; i++)
        ok_status(
            CALL(link->qp, Read, (void *)i, sges, info->MaxReadSge, link->remote.address + 8192, link->remote.token, 0),
            ND_SUCCESS);
    for (uintptr_t i = 0; i < info->MaxOutboundReadLimit; i++)
        ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, i);
    check_spread(sges, info->MaxReadSge, 3 * info->MaxReadSge, 4);
    runner_sync();

    /* The server's remaining receives, while it writes into this buffer. */
    while (done < info->MaxReceiveQueueDepth - 3) {
        ULONG got;

        while (sent < info->MaxReceiveQueueDepth - 3 && sent - done < info->MaxInitiatorQueueDepth) {
            ok_status(CALL(link->qp, Send, NULL, NULL, 0, 0), ND_SUCCESS);
            sent++;
        }
        got = CALL(link->cq, GetResults, results, 64);
        for (ULONG i = 0; i < got; i++)
            ok_status(results[i].Status, ND_SUCCESS);
        done += got;
        if (!got)
            harness_yield();
    }
    runner_sync();
    maxima_end(&maxima);
}

/* ---- messages of MaxTransferLength ---- */

/* More than the machine has memory for: the address space has one piece over and over. */

#define PIECE ((SIZE_T)4 << 20)

struct longest {
    IND2MemoryRegion *mr;
    BYTE *memory;
    SIZE_T length, piece, mapped;
};

static void longest_make(struct longest *longest, struct link *link)
{
    SIZE_T length = link->host->info.MaxTransferLength;
    int fd = memfd_create("piece", 0);

    longest->length = length;
    longest->piece = length < PIECE ? (length + 4095) / 4096 * 4096 : PIECE;
    longest->mapped = (length + longest->piece - 1) / longest->piece * longest->piece;
    ok(fd >= 0);
    ok_int(ftruncate(fd, (off_t)longest->piece), ==, 0);
    longest->memory = mmap(NULL, longest->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ok(longest->memory != MAP_FAILED);
    for (SIZE_T at = 0; at < longest->mapped; at += longest->piece)
        ok(mmap(longest->memory + at, longest->piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
           MAP_FAILED);
    close(fd);
    ok_status(
        CALL(link->host->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, link->host->file, (void **)&longest->mr),
        ND_SUCCESS);
    ok_status(finish(longest->mr,
                     CALL(longest->mr, Register, longest->memory, longest->mapped,
                          ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE |
                              ND_MR_FLAG_RDMA_READ_SINK,
                          &link->ov),
                     &link->ov),
              ND_SUCCESS);
}

static void longest_drop(struct longest *longest, struct link *link)
{
    ok_status(finish(longest->mr, CALL(longest->mr, Deregister, &link->ov), &link->ov), ND_SUCCESS);
    release_last(longest->mr);
    munmap(longest->memory, longest->mapped);
}

/* One message of that length, and one of a byte more is refused. */
static void longest(ND2_REQUEST_TYPE type)
{
    struct longest from, into;
    IND2Listener *listener;
    struct link near, far;
    union endpoint to;
    struct host host;
    struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
    ND2_SGE near_sge, far_sge;
    UINT32 from_token, into_token;
    ND2_RESULT result;

    /* siw counts each page as often as it is mapped, root's too. */
    ok_int(setrlimit(RLIMIT_MEMLOCK, &unlimited), ==, 0);
    host_open(&host);
    listener = listen_at(&host, &host.address, 0);
    to = listener_endpoint(listener);
    link_make(&near, &host, &(struct shape){ .reads = 1 });
    link_make(&far, &host, &(struct shape){ .reads = 1 });
    longest_make(&from, &near);
    longest_make(&into, &far);
    self_connect(&near, &far, listener, &to);
    if (runner_iwarp())
        Sleep(50);
    from_token = CALL(from.mr, GetRemoteToken);
    into_token = CALL(into.mr, GetRemoteToken);
    near_sge = (ND2_SGE){ from.memory, (ULONG)from.length, CALL(from.mr, GetLocalToken) };
    far_sge = (ND2_SGE){ into.memory, (ULONG)into.length, CALL(into.mr, GetLocalToken) };
    pattern_fill(from.memory, from.piece, type);
    memset(into.memory, 0, into.piece);
    switch (type) {
    case Nd2RequestTypeSend:
        ok_status(CALL(far.qp, Receive, (void *)1, &far_sge, 1), ND_SUCCESS);
        ok_status(CALL(near.qp, Send, (void *)2, &near_sge, 1, 0), ND_SUCCESS);
        result = result_next(far.cq);
        ok_status(result.Status, ND_SUCCESS);
        ok_uint(result.BytesTransferred, ==, from.length);
        ok_result(near.cq, type, ND_SUCCESS, 2);
        near_sge.BufferLength++;
        ok_status(CALL(near.qp, Send, NULL, &near_sge, 1, 0), ND_BUFFER_OVERFLOW);
        ok_status(CALL(near.qp, Receive, NULL, &near_sge, 1), ND_BUFFER_OVERFLOW);
        break;
    case Nd2RequestTypeWrite:
        post_receive(&far, 1, 0, 8);
        ok_status(CALL(near.qp, Write, (void *)2, &near_sge, 1, (UINT64)(uintptr_t)into.memory, into_token, 0),
                  ND_SUCCESS);
        ok_status(CALL(near.qp, Send, (void *)3, NULL, 0, 0), ND_SUCCESS); /* behind the bytes */
        ok_result(near.cq, type, ND_SUCCESS, 2);
        ok_result(near.cq, Nd2RequestTypeSend, ND_SUCCESS, 3);
        ok_result(far.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        near_sge.BufferLength++;
        ok_status(CALL(near.qp, Write, NULL, &near_sge, 1, (UINT64)(uintptr_t)into.memory, into_token, 0),
                  ND_BUFFER_OVERFLOW);
        break;
    default:
        ok_status(CALL(far.qp, Read, (void *)2, &far_sge, 1, (UINT64)(uintptr_t)from.memory, from_token, 0),
                  ND_SUCCESS);
        ok_result(far.cq, type, ND_SUCCESS, 2);
        far_sge.BufferLength++;
        ok_status(CALL(far.qp, Read, NULL, &far_sge, 1, (UINT64)(uintptr_t)from.memory, from_token, 0),
                  ND_BUFFER_OVERFLOW);
        break;
    }
    ok(!memcmp(from.memory, into.memory, from.length < from.piece ? from.length : from.piece));
    runner_note("%zu bytes", (size_t)from.length);
    link_disconnect(&near);
    longest_drop(&from, &near);
    longest_drop(&into, &far);
    link_drop(&near);
    link_drop(&far);
    release_last(listener);
    host_close(&host);
}

LONG_ALONE(longest_send)
{
    longest(Nd2RequestTypeSend);
}

LONG_ALONE(longest_write)
{
    longest(Nd2RequestTypeWrite);
}

LONG_ALONE(longest_read)
{
    longest(Nd2RequestTypeRead);
}

RUNNER_MAIN
