/* SPDX-License-Identifier: MIT */
/* Eight threads that connect, transfer, cancel and release at random on one adapter, each call at any moment: every
 * request and every posted piece of work comes back once, with a status of its table; in the end nothing is left. The same
 * order of choices for the same NDVERBS_SEED. */
#include "holdings.h"
#include "session.h"

#include <stdlib.h>

#define THREADS 8 /* half of them connect, half accept */
#define WORK    4

struct stress {
    struct host host;
    IND2Listener *listener;
    union endpoint to;
    volatile LONG stop, accepting;
    volatile LONG connections, transfers, ends; /* how often all went well; the rest ended in some other way */
};

struct worker {
    struct stress *stress;
    unsigned seed;
    int posted, came; /* work of the present queue pair */
};

static LONG look(volatile LONG *flag)
{
    return InterlockedCompareExchange(flag, 0, 0);
}

static unsigned chance(struct worker *worker, unsigned n)
{
    worker->seed = worker->seed * 1103515245u + 12345u;
    return (worker->seed >> 16) % n;
}

static void allowed(const char *what, HRESULT hr, const HRESULT *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == hr)
            return;
    harness_fail(__FILE__, __LINE__, "%s gave 0x%08x (%s)", what, (unsigned)hr, ndverbs_status_text(hr));
}
#define ALLOWED(what, hr, ...)                                          \
    do {                                                                \
        static const HRESULT list_[] = { __VA_ARGS__ };                 \
        allowed((what), (hr), list_, sizeof(list_) / sizeof(list_[0])); \
    } while (0)

/* Takes what has come; contexts are handed out in order for each direction. */
static void take(struct worker *worker, struct link *link)
{
    ND2_RESULT results[WORK];
    ULONG n;

    while ((n = CALL(link->cq, GetResults, results, WORK)) != 0)
        for (ULONG i = 0; i < n; i++) {
            pair_result(&results[i]);
            ok_ptr(results[i].QueuePairContext, ==, link);
            ALLOWED("a result", results[i].Status, ND_SUCCESS, ND_CANCELED, ND_IO_TIMEOUT, ND_ACCESS_VIOLATION,
                    ND_REMOTE_ERROR);
            worker->came++;
            ok_int(worker->came, <=, worker->posted);
        }
}

static void take_all(struct worker *worker, struct link *link)
{
    while (worker->came < worker->posted) {
        take(worker, link);
        harness_yield();
    }
}

static void post_receives(struct worker *worker, struct link *link)
{
    for (uintptr_t i = 0; i < WORK; i++)
        post_receive(link, i, 512 * i, 64);
    worker->posted = WORK;
    worker->came = 0;
}

/* The end of a connection that stands, in one of the ways there are. */
static void end(struct worker *worker, struct link *link)
{
    OVERLAPPED notify;
    bool notified = chance(worker, 2);
    HRESULT hr;

    overlapped_rubbish(&notify, NULL);
    if (notified)
        ok_status(CALL(link->connector, NotifyDisconnect, &notify), ND_PENDING);
    switch (chance(worker, 6)) {
    case 0: /* nothing: the releases do it */
        break;
    case 1:
        ok_status(CALL(link->qp, Flush), ND_SUCCESS);
        take_all(worker, link);
        break;
    case 2:
        release_last(link->qp);
        link->qp = NULL;
        take_all(worker, link);
        break;
    case 3:
        release_last(link->connector);
        link->connector = NULL;
        take_all(worker, link);
        break;
    case 4:
        ok_status(CALL(link->connector, Disconnect, &link->ov), ND_PENDING);
        ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
        hr = CALL((IND2Overlapped *)link->connector, GetOverlappedResult, &link->ov, FALSE);
        ALLOWED("a cancelled Disconnect", hr, ND_SUCCESS, ND_CANCELED);
        take_all(worker, link);
        break;
    default:
        ok_status(FINISH(link, CALL(link->connector, Disconnect, &link->ov)), ND_SUCCESS);
        take_all(worker, link);
        InterlockedIncrement(&worker->stress->ends);
        break;
    }
    if (link->connector)
        release_last(link->connector);
    link->connector = NULL;
    if (notified)
        ALLOWED("NotifyDisconnect", (HRESULT)notify.Internal, ND_SUCCESS, ND_CANCELED, STATUS_CONNECTION_DISCONNECTED);
}

static void transfer(struct worker *worker, struct link *link)
{
    for (uintptr_t i = 0; i < WORK && chance(worker, 8); i++) {
        post_send(link, 100 + i, 2048, 64, chance(worker, 2) ? ND_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0);
        worker->posted++;
        if (chance(worker, 3) == 0)
            take(worker, link);
        InterlockedIncrement(&worker->stress->transfers);
    }
}

/* What a Connect may end with; also one whose connector is released, which comes too late for a request that has ended. */
#define CONNECT_ENDS ND_SUCCESS, ND_CANCELED, ND_CONNECTION_REFUSED, ND_CONNECTION_ABORTED

static void active_side(struct worker *worker, struct link *link)
{
    struct stress *stress = worker->stress;
    HRESULT hr;

    post_receives(worker, link);
    link_bind(link);
    for (int tries = 0; tries < 3; tries++) {
        hr = CALL(link->connector, Connect, (IUnknown *)link->qp, &stress->to.any, endpoint_size(&stress->to), 0, 0,
                  NULL, 0, &link->ov);
        if (hr == ND_CONNECTION_ACTIVE && runner_iwarp() && tries)
            return; /* the cancelled attempt is still with the kernel */
        ok_status(hr, ND_PENDING);
        if (chance(worker, 6) == 0) {
            if (chance(worker, 2))
                Sleep(chance(worker, 8));
            ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
        } else if (chance(worker, 12) == 0) {
            release_last(link->connector);
            link->connector = NULL;
            ALLOWED("Connect, released", (HRESULT)link->ov.Internal, CONNECT_ENDS);
            return;
        }
        hr = FINISH(link, hr);
        ALLOWED("Connect", hr, CONNECT_ENDS);
        if (hr == ND_SUCCESS || hr == ND_CONNECTION_ABORTED)
            break;
    }
    if (hr != ND_SUCCESS)
        return;
    switch (chance(worker, 8)) {
    case 0:
        hr = CALL(link->connector, Reject, NULL, 0);
        ALLOWED("Reject of the reply", hr, ND_SUCCESS, ND_CONNECTION_ABORTED);
        return;
    case 1:
        return;
    default:
        break;
    }
    hr = FINISH(link, CALL(link->connector, CompleteConnect, &link->ov));
    ALLOWED("CompleteConnect", hr, ND_SUCCESS, ND_CONNECTION_ABORTED);
    if (hr != ND_SUCCESS)
        return;
    InterlockedIncrement(&stress->connections);
    transfer(worker, link);
    end(worker, link);
}

static void passive_side(struct worker *worker, struct link *link)
{
    struct stress *stress = worker->stress;
    HRESULT hr;

    post_receives(worker, link);
    hr = finish(stress->listener, CALL(stress->listener, GetConnectionRequest, (IUnknown *)link->connector, &link->ov),
                &link->ov);
    ALLOWED("GetConnectionRequest", hr, ND_SUCCESS, ND_CANCELED);
    if (hr != ND_SUCCESS)
        return;
    switch (chance(worker, 8)) {
    case 0:
        hr = CALL(link->connector, Reject, "no", 2);
        ALLOWED("Reject", hr, ND_SUCCESS, ND_CONNECTION_ABORTED);
        return;
    case 1:
        return;
    default:
        break;
    }
    hr = CALL(link->connector, Accept, (IUnknown *)link->qp, 0, 0, NULL, 0, &link->ov);
    if (hr == ND_PENDING && chance(worker, 8) == 0)
        ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    hr = FINISH(link, hr);
    /* The kernel takes the messages of a connection manager in any order: a REJ of a cancelled Connect that is seen before its
     * REQ is dropped, and nobody answers the reply. */
    ALLOWED("Accept", hr, ND_SUCCESS, ND_CANCELED, ND_CONNECTION_REFUSED, ND_CONNECTION_ABORTED, ND_IO_TIMEOUT);
    if (hr != ND_SUCCESS)
        return;
    if (chance(worker, 3))
        ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
    else
        transfer(worker, link);
    end(worker, link);
}

static DWORD WINAPI work(void *argument)
{
    struct worker *worker = argument;
    struct stress *stress = worker->stress;
    bool active = worker->seed % 2;
    struct link link;

    while (!look(&stress->stop) || (!active && look(&stress->accepting))) {
        link_make(&link, &stress->host, NULL);
        if (active)
            active_side(worker, &link);
        else
            passive_side(worker, &link);
        /* What is left goes in any order. */
        if (link.connector && chance(worker, 2)) {
            release_last(link.connector);
            link.connector = NULL;
        }
        if (link.qp && chance(worker, 2)) {
            release_last(link.qp);
            link.qp = NULL;
            take_all(worker, &link);
        }
        link_drop(&link);
    }
    return 0;
}

static void stress_for(ULONGLONG milliseconds)
{
    const char *text = runner_env("NDVERBS_SEED");
    unsigned seed = text ? (unsigned)atoi(text) : (unsigned)GetTickCount64();
    struct worker workers[THREADS];
    HANDLE threads[THREADS];
    struct stress stress;
    unsigned long objects;
    int descriptors;

    setenv("NDVERBS_ACK_TIMEOUT", "12", 1); /* a peer that is gone is to be noticed soon */
    runner_note("NDVERBS_SEED=%u", seed);
    memset(&stress, 0, sizeof(stress));
    host_open(&stress.host);
    stress.listener = listen_any(&stress.host);
    stress.to = listener_endpoint(stress.listener);
    stress.accepting = 1;
    descriptors = open_descriptors();
    objects = kernel_objects();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .stress = &stress, .seed = seed * THREADS + i };
        threads[i] = CreateThread(NULL, 0, work, &workers[i], 0, NULL);
        ok(threads[i] != NULL);
    }
    Sleep((DWORD)milliseconds);
    InterlockedExchange(&stress.stop, 1);
    for (unsigned i = 1; i < THREADS; i += 2)
        ok_int(WaitForSingleObject(threads[i], INFINITE), ==, WAIT_OBJECT_0);
    InterlockedExchange(&stress.accepting, 0);
    for (unsigned i = 0; i < THREADS; i += 2)
        while (WaitForSingleObject(threads[i], 20) != WAIT_OBJECT_0)
            ok_status(CALL(stress.listener, CancelOverlappedRequests), ND_SUCCESS);
    for (unsigned i = 0; i < THREADS; i++)
        ok(CloseHandle(threads[i]));
    runner_note("%d connections, %d sends, %d orderly ends", (int)stress.connections, (int)stress.transfers,
                (int)stress.ends);
    ok_int(stress.connections, >, 0);
    release_last(stress.listener);
    ok_eventually(kernel_objects() <= objects);
    ok_eventually(open_descriptors() <= descriptors);
    host_close(&stress.host);
}

ALONE(eight_threads)
{
    stress_for(5000);
}

LONG_ALONE(eight_threads_two_minutes)
{
    stress_for(120000);
}

RUNNER_MAIN
