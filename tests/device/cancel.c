/* SPDX-License-Identifier: MIT */
/* Each kind of request cancelled again and again: once each, and descriptors, memory and the kernel's objects are as before
 * in the end (D32). ndspi.md 2.5. The counts of --long are those of the project's promise: 1,000 of each. */
#include "holdings.h"
#include "session.h"

#include <stdlib.h>

#define WARM_UP 5

/* Of memory, whatever the number of cycles: a block of 16 bytes (32 of the heap) that each cycle leaves shows long before the
 * 1,000th. Seen: 512 bytes and less after as many. */
#define SLACK 1024

/* The connection's two ends and the listener between them, all in this process. */
struct scene {
    struct host host;
    IND2Listener *listener;
    union endpoint to;
    struct link active, passive;
    IND2SharedReceiveQueue *srq; /* cycle_srq_notify only */
};

static void scene_open(struct scene *scene)
{
    host_open(&scene->host);
    scene->listener = listen_any(&scene->host);
    scene->to = listener_endpoint(scene->listener);
    link_make(&scene->active, &scene->host, NULL);
    link_make(&scene->passive, &scene->host, NULL);
}

static void scene_close(struct scene *scene)
{
    if (scene->srq)
        release_last(scene->srq);
    link_drop(&scene->active);
    link_drop(&scene->passive);
    release_last(scene->listener);
    host_close(&scene->host);
}

/* Queue pair and connector of a side anew. */
static void renew(struct link *link)
{
    ND2_RESULT results[16];

    release_last(link->connector);
    release_last(link->qp);
    while (CALL(link->cq, GetResults, results, 16))
        continue;
    link_make_qp(link);
    link_make_connector(link);
}

static void cancel_now(void *object, OVERLAPPED *ov)
{
    IND2Overlapped *overlapped = object;

    ok_status(CALL(overlapped, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(overlapped, GetOverlappedResult, ov, FALSE), ND_CANCELED);
}

/* The active side's request goes out and reaches the passive side's connector. */
static void ask(struct scene *scene)
{
    struct link *active = &scene->active, *passive = &scene->passive;
    HRESULT hr;

    hr = CALL(scene->listener, GetConnectionRequest, (IUnknown *)passive->connector, &passive->ov);
    ok_status(hr, ND_PENDING);
    ok_status(CALL(active->connector, Connect, (IUnknown *)active->qp, &scene->to.any, endpoint_size(&scene->to), 0, 0,
                   NULL, 0, &active->ov),
              ND_PENDING);
    ok_status(finish(scene->listener, hr, &passive->ov), ND_SUCCESS);
}

static void cycle_notify(struct scene *scene, int i)
{
    static const ULONG types[] = { ND_CQ_NOTIFY_ANY, ND_CQ_NOTIFY_ERRORS, ND_CQ_NOTIFY_SOLICITED };

    ok_status(CALL(scene->active.cq, Notify, types[i % 3], &scene->active.ov), ND_PENDING);
    ok_status(CALL(scene->active.cq, Notify, types[(i + 1) % 3], &scene->passive.ov), ND_PENDING);
    cancel_now(scene->active.cq, &scene->active.ov);
    ok_status((HRESULT)scene->passive.ov.Internal, ND_CANCELED);
}

#define SRQ_DEPTH 8

/* Two that wait for the device's limit, and then one that is not cancelled: there are fewer than it asks for. */
static void cycle_srq_notify(struct scene *scene, int i)
{
    if (i == 0) {
        ok_status(CALL(scene->host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, scene->host.file,
                       SRQ_DEPTH, 1, 0, 0, 0, (void **)&scene->srq),
                  ND_SUCCESS);
        for (int n = 0; n < SRQ_DEPTH; n++)
            ok_status(CALL(scene->srq, Receive, NULL, NULL, 0), ND_SUCCESS);
    }
    ok_status(CALL(scene->srq, Modify, 0, i % 2 ? 1 : SRQ_DEPTH / 2), ND_SUCCESS);
    ok_status(CALL(scene->srq, Notify, &scene->active.ov), ND_PENDING);
    ok_status(CALL(scene->srq, Notify, &scene->passive.ov), ND_PENDING);
    cancel_now(scene->srq, &scene->active.ov);
    ok_status((HRESULT)scene->passive.ov.Internal, ND_CANCELED);
    ok_status(CALL(scene->srq, Modify, 0, SRQ_DEPTH + 1), ND_SUCCESS);
    ok_status(finish(scene->srq, CALL(scene->srq, Notify, &scene->active.ov), &scene->active.ov), ND_SUCCESS);
    ok_status((HRESULT)scene->passive.ov.Internal, ND_CANCELED);
}

static void cycle_request(struct scene *scene, int i)
{
    (void)i;
    ok_status(CALL(scene->listener, GetConnectionRequest, (IUnknown *)scene->passive.connector, &scene->passive.ov),
              ND_PENDING);
    cancel_now(scene->listener, &scene->passive.ov);
}

/* At once, or when the request is in the other side's hands; connector and queue pair go on. */
static void cycle_connect(struct scene *scene, int i)
{
    struct link *active = &scene->active, *passive = &scene->passive;

    if (i % 2) {
        ok_status(CALL(active->connector, Connect, (IUnknown *)active->qp, &scene->to.any, endpoint_size(&scene->to), 0,
                       0, NULL, 0, &active->ov),
                  ND_PENDING);
        cancel_now(active->connector, &active->ov);
        /* A request that was out all the same is somebody's to find. On iWARP the kernel waits ten seconds for an answer
         * to it, and the next cycle for the kernel: there it gets some time to arrive. */
        ok_status(CALL(scene->listener, GetConnectionRequest, (IUnknown *)passive->connector, &passive->ov),
                  ND_PENDING);
        for (int j = 0; j < 200 && runner_iwarp() && !HasOverlappedIoCompleted(&passive->ov); j++)
            Sleep(10);
        ok_status(CALL(scene->listener, CancelOverlappedRequests), ND_SUCCESS);
    } else {
        ask(scene);
        cancel_now(active->connector, &active->ov);
    }
    renew(passive);
    if (runner_iwarp())
        renew(active); /* busy until the kernel has given up */
}

/* Replied, not completed. On iWARP Accept is over by itself. */
static void cycle_accept(struct scene *scene, int i)
{
    struct link *active = &scene->active, *passive = &scene->passive;
    HRESULT hr;

    (void)i;
    ask(scene);
    ok_status(CALL(passive->connector, Accept, (IUnknown *)passive->qp, 0, 0, NULL, 0, &passive->ov), ND_PENDING);
    ok_status(FINISH(active, ND_PENDING), ND_SUCCESS);
    cancel_now(passive->connector, &passive->ov);
    hr = FINISH(active, CALL(active->connector, CompleteConnect, &active->ov));
    ok_msg(hr == ND_SUCCESS || hr == ND_CONNECTION_ABORTED, "CompleteConnect: 0x%08x", (unsigned)hr);
    renew(passive);
    renew(active);
}

static void connect_both(struct scene *scene)
{
    struct link *active = &scene->active, *passive = &scene->passive;
    HRESULT hr;

    ask(scene);
    hr = CALL(passive->connector, Accept, (IUnknown *)passive->qp, 0, 0, NULL, 0, &passive->ov);
    ok_status(hr, ND_PENDING);
    ok_status(FINISH(active, ND_PENDING), ND_SUCCESS);
    ok_status(FINISH(active, CALL(active->connector, CompleteConnect, &active->ov)), ND_SUCCESS);
    ok_status(FINISH(passive, hr), ND_SUCCESS);
}

/* The connection stays. */
static void cycle_notify_disconnect(struct scene *scene, int i)
{
    if (i == 0)
        connect_both(scene);
    ok_status(CALL(scene->active.connector, NotifyDisconnect, &scene->active.ov), ND_PENDING);
    ok_status(CALL(scene->active.connector, NotifyDisconnect, &scene->passive.ov), ND_PENDING);
    cancel_now(scene->active.connector, &scene->active.ov);
    ok_status((HRESULT)scene->passive.ov.Internal, ND_CANCELED);
}

/* Not taken back but made to end at once. */
static void cycle_disconnect(struct scene *scene, int i)
{
    struct link *active = &scene->active, *passive = &scene->passive;

    (void)i;
    connect_both(scene);
    ok_status(CALL(active->connector, Disconnect, &active->ov), ND_PENDING);
    ok_status(CALL(active->connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)active->connector, GetOverlappedResult, &active->ov, FALSE), ND_SUCCESS);
    ok_status(FINISH(passive, CALL(passive->connector, NotifyDisconnect, &passive->ov)), ND_SUCCESS);
    renew(passive);
    renew(active);
}

/* A cancelled request may reach the listener behind the word that it is cancelled, and waits there for somebody. */
static void take_strays(struct scene *scene)
{
    OVERLAPPED *ov = &scene->passive.ov;

    for (;;) {
        ok_status(CALL(scene->listener, GetConnectionRequest, (IUnknown *)scene->passive.connector, ov), ND_PENDING);
        ok_status(CALL(scene->listener, CancelOverlappedRequests), ND_SUCCESS);
        if (CALL((IND2Overlapped *)scene->listener, GetOverlappedResult, ov, FALSE) == ND_CANCELED)
            return;
        renew(&scene->passive);
    }
}

static void run(void (*cycle)(struct scene *, int), int cycles)
{
    struct holdings before = { 0 };
    struct scene scene = { 0 };

    scene_open(&scene);
    if (cycle == cycle_srq_notify && !scene.host.info.MaxSharedReceiveQueueDepth)
        harness_skip("the device has no shared receive queues");
    for (int i = 0; i < cycles + WARM_UP; i++) {
        if (i == WARM_UP) {
            if (cycle == cycle_connect)
                take_strays(&scene);
            Sleep(200); /* lets workers finish what the first cycles left, so that the count is not too high */
            before = holdings_now();
        }
        cycle(&scene, i);
    }
    Sleep(50);
    if (cycle == cycle_connect)
        take_strays(&scene);
    holdings_back_at(&before, SLACK);
    scene_close(&scene);
}

#define CYCLES(name, needs_ib)                                                                     \
    ALONE(name)                                                                                    \
    {                                                                                              \
        if (needs_ib && runner_iwarp())                                                            \
            harness_skip("iWARP: there is nothing to cancel by then");                             \
        run(cycle_##name, runner_env("NDVERBS_CYCLES") ? atoi(runner_env("NDVERBS_CYCLES")) : 20); \
    }                                                                                              \
    LONG_ALONE(name##_1000)                                                                        \
    {                                                                                              \
        if (needs_ib && runner_iwarp())                                                            \
            harness_skip("iWARP: there is nothing to cancel by then");                             \
        run(cycle_##name, 1000);                                                                   \
    }

CYCLES(notify, false)
CYCLES(srq_notify, false)
CYCLES(request, false)
CYCLES(connect, false)
CYCLES(accept, true)
CYCLES(notify_disconnect, false)
CYCLES(disconnect, false)

RUNNER_MAIN_EXACT
