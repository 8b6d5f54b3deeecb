/* SPDX-License-Identifier: MIT */
/* The device is deleted under open version 1 adapters, and one of version 2 in the same process: `removal` for version 1. It
 * makes the device anew, but only in the machine. */
#include "v1side.h"

#include <stdlib.h>
#include <sys/wait.h>

/* A connection, or an attempt, in each state. Each side has an adapter of its own. */
struct all {
    struct v1 active, passive; /* connected */
    struct v1 asks;            /* its request is in nobody's hands */
    struct v1 caller, called;  /* IB-type: replied, not completed */
    struct v1 idle;
    INDListen *listen, *other;             /* of `called`, and so is: */
    INDConnector *waits;                   /* for a request */
    INDMemoryWindow *window, *free_window; /* bound by `active`, and not */
    ND_RESULT revoked, received;
    ND_RESULT busy[4]; /* IB-type: the peer has no receive for the first, the others wait behind it */
    OVERLAPPED request, notify, closed;
    struct host host; /* version 2 */
    struct link link;
};

static HRESULT connect_to(struct v1 *v1, const union endpoint *to)
{
    return CALL(v1->connector, Connect, v1->endpoint, &to->any, endpoint_size(to), 123, 0, NULL, 0, &v1->ov);
}

static void set_up(struct all *all)
{
    struct v1 *sides[] = { &all->active, &all->passive, &all->asks, &all->caller, &all->called, &all->idle };
    struct v1 *active = &all->active;
    union endpoint to, other;
    ND_MW_DESCRIPTOR mw;
    ND_RESULT result;
    USHORT port = 0;

    if (!runner_iwarp())
        setenv("NDVERBS_RNR_RETRY", "7", 1); /* for ever: the Send below stays under way */
    for (size_t i = 0; i < _countof(sides); i++) {
        v1_open(sides[i], 4096);
        v1_make_connector(sides[i]);
        v1_make_endpoint(sides[i]);
    }
    overlapped_rubbish(&all->request, event_auto());
    overlapped_rubbish(&all->notify, event_auto());
    overlapped_rubbish(&all->closed, event_auto());
    ok_status(CALL(all->called.adapter, CreateConnector, &all->waits), ND_SUCCESS);
    ok_status(CALL(all->called.adapter, Listen, 0, 6, 0, &port, &all->listen), ND_SUCCESS);
    to = v1_listener(&all->called, port);
    port = 0;
    ok_status(CALL(all->called.adapter, Listen, 0, 6, 0, &port, &all->other), ND_SUCCESS);
    other = v1_listener(&all->called, port);
    v1_self_connect(active, &all->passive);
    if (!runner_iwarp()) {
        HRESULT hr = CALL(all->listen, GetConnectionRequest, all->called.connector, &all->request);

        ok_status(connect_to(&all->caller, &to), ND_PENDING);
        ok_status(v1_finish(all->listen, hr, &all->request), ND_SUCCESS);
        ok_status(CALL(all->called.connector, Accept, all->called.endpoint, NULL, 0, &all->called.ov), ND_PENDING);
        ok_status(V1_FINISH(&all->caller, ND_PENDING), ND_SUCCESS);
    }
    ok_status(CALL(active->adapter, CreateMemoryWindow, &all->revoked, &all->window), ND_SUCCESS);
    ok_status(CALL(active->adapter, CreateMemoryWindow, &all->revoked, &all->free_window), ND_SUCCESS);
    ok_status(
        CALL(active->endpoint, Bind, &result, active->mr, all->window, active->buffer, 64, ND_OP_FLAG_ALLOW_READ, &mw),
        ND_SUCCESS);
    ok_v1_result(active, &result, ND_SUCCESS);
    v1_receive(active, &all->received, 0, 64);
    ok_status(CALL(all->listen, GetConnectionRequest, all->waits, &all->request), ND_PENDING);
    ok_status(CALL(active->cq, Notify, ND_CQ_NOTIFY_ERRORS, &all->notify), ND_PENDING);
    ok_status(CALL(active->connector, NotifyDisconnect, &all->closed), ND_PENDING);
    ok_status(connect_to(&all->asks, &other), ND_PENDING);
    if (!runner_iwarp()) {
        v1_send(active, &all->busy[0], 0, 64, 0);
        v1_send(active, &all->busy[1], 0, 64, ND_OP_FLAG_SILENT_SUCCESS);
        ok_status(CALL(active->endpoint, Bind, &all->busy[2], active->mr, all->free_window, active->buffer + 64, 64,
                       ND_OP_FLAG_ALLOW_READ, &mw),
                  ND_SUCCESS);
        ok_status(CALL(active->endpoint, Invalidate, &all->busy[3], all->free_window, 0), ND_SUCCESS);
    }
    host_open(&all->host);
    link_make(&all->link, &all->host, NULL);
    ok_status(CALL(all->link.cq, Notify, ND_CQ_NOTIFY_ANY, &all->link.ov), ND_PENDING);
}

/* Each direction in the order of its posts, each once. */
static void posts_are_over(struct all *all)
{
    size_t next = runner_iwarp() ? _countof(all->busy) : 0;
    bool received = false;

    while (!received || next < _countof(all->busy)) {
        ND_RESULT *result = v1_next(&all->active);

        ok_status(result->Status, ND_CANCELED);
        if (result == &all->received) {
            ok(!received);
            received = true;
            continue;
        }
        ok_uint(next, <, _countof(all->busy));
        ok_ptr(result, ==, &all->busy[next]);
        next++;
    }
    v1_none(&all->active);
}

/* Every pending request ends in ND_DEVICE_REMOVED, posted work comes back. */
static void pending_is_over(struct all *all)
{
    struct v1 *active = &all->active;

    ok_status(v1_finish(all->listen, ND_PENDING, &all->request), ND_DEVICE_REMOVED);
    ok_status(v1_finish(active->cq, ND_PENDING, &all->notify), ND_DEVICE_REMOVED);
    ok_status(v1_finish(active->connector, ND_PENDING, &all->closed), ND_DEVICE_REMOVED);
    ok_status(V1_FINISH(&all->asks, ND_PENDING), ND_DEVICE_REMOVED);
    if (!runner_iwarp())
        ok_status(V1_FINISH(&all->called, ND_PENDING), ND_DEVICE_REMOVED);
    posts_are_over(all);
    ok_status(finish(all->link.cq, ND_PENDING, &all->link.ov), ND_DEVICE_REMOVED);
}

/* What is left to call is clean-up. */
static void nothing_works(struct all *all)
{
    struct v1 *active = &all->active, *idle = &all->idle;
    SIZE_T size = sizeof(active->info);
    ND_RESULT results[4];
    INDConnector *connector;
    INDCompletionQueue *cq;
    INDMemoryWindow *window;
    INDEndpoint *endpoint;
    ND_MW_DESCRIPTOR mw;
    INDListen *listen;
    ND_MR_HANDLE mr;
    USHORT port = 0;

    ok_status(CALL(active->adapter, Query, 1, &active->info, &size), ND_DEVICE_REMOVED);
    ok_status(CALL(active->adapter, CreateCompletionQueue, 4, &cq), ND_DEVICE_REMOVED);
    ok_ptr(cq, ==, NULL);
    ok_status(CALL(active->adapter, RegisterMemory, active->buffer, 64, &active->ov, &mr), ND_DEVICE_REMOVED);
    ok_status(CALL(active->adapter, CreateMemoryWindow, &results[0], &window), ND_DEVICE_REMOVED);
    ok_status(CALL(active->adapter, CreateConnector, &connector), ND_DEVICE_REMOVED);
    ok_status(CALL(active->adapter, Listen, 0, 6, 0, &port, &listen), ND_DEVICE_REMOVED);
    ok_status(CALL(active->cq, Notify, ND_CQ_NOTIFY_ANY, &all->notify), ND_DEVICE_REMOVED);
    ok_status(CALL(active->cq, Resize, 40), ND_DEVICE_REMOVED);
    ok_status(CALL(idle->connector, CreateEndpoint, idle->cq, idle->cq, 1, 1, 1, 1, 0, 0, NULL, &endpoint),
              ND_DEVICE_REMOVED);
    ok_status(connect_to(idle, &idle->address), ND_DEVICE_REMOVED);
    ok_status(connect_to(active, &idle->address), ND_DEVICE_REMOVED);
    ok_status(CALL(active->connector, NotifyDisconnect, &active->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(active->connector, Disconnect, &active->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, CompleteConnect, &all->caller.ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, Reject, NULL, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(all->called.connector, Accept, all->called.endpoint, NULL, 0, &all->called.ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->listen, GetConnectionRequest, all->waits, &all->request), ND_DEVICE_REMOVED);
    /* As after the end of a connection (A38). */
    v1_send(active, &results[0], 0, 64, 0);
    v1_receive(active, &results[1], 0, 64);
    ok_status(CALL(active->endpoint, Invalidate, &results[2], all->window, 0), ND_SUCCESS);
    for (int i = 0; i < 3; i++) {
        ND_RESULT *result = v1_next(active);

        ok(result >= &results[0] && result <= &results[2]);
        ok_status(result->Status, ND_CANCELED);
    }
    ok_status(CALL(active->endpoint, Bind, &results[3], active->mr, all->free_window, active->buffer, 64,
                   ND_OP_FLAG_ALLOW_READ, &mw),
              ND_SUCCESS);
    ok_v1_result(active, &results[3], ND_CANCELED);
    ok_status(CALL(active->endpoint, Flush), ND_SUCCESS);
    ok_status(CALL(active->connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(active->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(all->listen, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(active->adapter, CancelOverlappedRequests), ND_SUCCESS);
    ok(CALL(active->adapter, GetFileHandle) != INVALID_HANDLE_VALUE);
}

static void clean_up(struct all *all)
{
    release_last(all->window);
    release_last(all->free_window);
    release_last(all->listen);
    release_last(all->other);
    release_last(all->waits);
    v1_close(&all->active); /* deregisters */
    v1_close(&all->passive);
    v1_close(&all->asks);
    v1_close(&all->caller);
    v1_close(&all->called);
    v1_close(&all->idle);
    ok(CloseHandle(all->request.hEvent));
    ok(CloseHandle(all->notify.hEvent));
    ok(CloseHandle(all->closed.hEvent));
    link_drop(&all->link);
    host_close(&all->host);
}

ALONE(device_deleted)
{
    const char *device = runner_env("NDVERBS_DEVICE");
    const char *argv[] = { "rdma", "link", "delete", device, NULL };
    struct all all;
    int pid, status;

    if (!runner_machine() || !device || !runner_env("NDVERBS_NETDEV"))
        harness_skip("only in the machine, where the device can be made anew");
    set_up(&all);
    pid = runner_exec(argv);
    pending_is_over(&all);
    nothing_works(&all);
    ok_int(waitpid(pid, &status, WNOHANG), ==, 0); /* waits for the last object at least (deviations.md) */
    clean_up(&all);
    if (runner_wire()) {
        status = runner_wait(pid);
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Once that process has ended, the device can be made again and works. */
ALONE(device_made_anew)
{
    ND_RESULT in, out;
    struct v1 active, passive;

    if (!runner_machine() || !runner_env("NDVERBS_DEVICE") || !runner_env("NDVERBS_NETDEV"))
        harness_skip("only in the machine, where the device can be made anew");
    device_make_anew();
    v1_open(&active, 4096);
    v1_open(&passive, 4096);
    v1_self_connect(&active, &passive);
    v1_receive(&passive, &in, 0, 64);
    v1_send(&active, &out, 0, 64, 0);
    ok_v1_result(&active, &out, ND_SUCCESS);
    ok_v1_result(&passive, &in, ND_SUCCESS);
    v1_close(&active);
    v1_close(&passive);
}

RUNNER_MAIN
