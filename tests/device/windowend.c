/* SPDX-License-Identifier: MIT */
/* How windows end: releases in every order, connections that break with windows in flight, processes that go. On rxe a queue
 * pair with a bound window takes the kernel 50 s and a warning, an invalidate too many a panic: `run` looks at its log. */
#include "session.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define READ_WRITE (ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)

struct two {
    struct host host;
    IND2Listener *listener;
    union endpoint to;
    struct link near, far;
    IND2MemoryRegion *mr;
    IND2MemoryWindow *window;
};

static void two_open(struct two *two)
{
    memset(two, 0, sizeof(*two));
    host_open(&two->host);
    two->listener = listen_at(&two->host, &two->host.address, 0);
    two->to = listener_endpoint(two->listener);
}

static void two_connect(struct two *two)
{
    link_make(&two->near, &two->host, NULL);
    link_make(&two->far, &two->host, NULL);
    self_connect(&two->near, &two->far, two->listener, &two->to);
    ok_status(CALL(two->host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, two->host.file, (void **)&two->mr),
              ND_SUCCESS);
    ok_status(finish(two->mr,
                     CALL(two->mr, Register, two->near.buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &two->near.ov),
                     &two->near.ov),
              ND_SUCCESS);
    ok_status(CALL(two->host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&two->window), ND_SUCCESS);
}

static void two_close(struct two *two)
{
    release_last(two->listener);
    host_close(&two->host);
}

static HRESULT bind_it(struct two *two, uintptr_t context, IND2MemoryWindow *window, ULONG flags)
{
    return CALL(two->near.qp, Bind, (void *)context, (IUnknown *)two->mr, (IUnknown *)window, two->near.buffer, 1024,
                flags | READ_WRITE);
}

static HRESULT invalidate(struct two *two, uintptr_t context, IND2MemoryWindow *window)
{
    return CALL(two->near.qp, Invalidate, (void *)context, (IUnknown *)window, 0);
}

enum stage {
    STAGE_NEVER_BOUND,
    STAGE_BIND_POSTED,
    STAGE_BOUND,
    STAGE_INVALIDATE_POSTED,
    STAGE_INVALIDATED,
    STAGES
};

static void reach(struct two *two, enum stage stage)
{
    if (stage == STAGE_NEVER_BOUND)
        return;
    ok_status(bind_it(two, 1, two->window, 0), ND_SUCCESS);
    if (stage == STAGE_BIND_POSTED)
        return;
    ok_result(two->near.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    if (stage == STAGE_BOUND)
        return;
    ok_status(invalidate(two, 2, two->window), ND_SUCCESS);
    if (stage == STAGE_INVALIDATED)
        ok_result(two->near.cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
}

static void release_orders(bool flushed)
{
    static const char *const orders[] = { "wqm", "wmq", "qwm", "qmw", "mwq", "mqw" };
    struct two two;

    two_open(&two);
    for (int order = 0; order < 6; order++) {
        for (int stage = 0; stage < STAGES; stage++) {
            two_connect(&two);
            reach(&two, (enum stage)stage);
            if (flushed)
                ok_status(CALL(two.near.qp, Flush), ND_SUCCESS);
            for (int i = 0; i < 3; i++) {
                switch (orders[order][i]) {
                case 'w':
                    release_last(two.window);
                    break;
                case 'q':
                    release_last(two.near.qp);
                    two.near.qp = NULL;
                    break;
                default:
                    release_last(two.mr);
                }
            }
            link_drop(&two.near);
            link_drop(&two.far);
        }
    }
    two_close(&two);
}

ALONE(release_orders)
{
    release_orders(false);
}

ALONE(release_orders_after_flush)
{
    release_orders(true);
}

/* A window released with its request on the way: the connection goes on. */
ALONE(release_window_in_flight)
{
    struct two two;

    two_open(&two);
    two_connect(&two);
    for (int i = 0; i < 100; i++) {
        ok_status(bind_it(&two, 1, two.window, i % 2 ? ND_OP_FLAG_SILENT_SUCCESS : 0), ND_SUCCESS);
        if (i % 3 == 0)
            ok_status(invalidate(&two, 2, two.window), ND_SUCCESS);
        release_last(two.window);
        ok_status(CALL(two.host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&two.window), ND_SUCCESS);
        if (i % 2 == 0)
            ok_result(two.near.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
        if (i % 3 == 0)
            ok_result(two.near.cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
    }
    post_receive(&two.far, 5, 0, 64);
    post_send(&two.near, 6, 0, 64, 0);
    ok_result(two.near.cq, Nd2RequestTypeSend, ND_SUCCESS, 6);
    ok_status(finish(two.mr, CALL(two.mr, Deregister, &two.near.ov), &two.near.ov), ND_SUCCESS);
    release_last(two.window);
    release_last(two.mr);
    link_drop(&two.near);
    link_drop(&two.far);
    two_close(&two);
}

/* The connection breaks with Binds and Invalidates in flight: all of them come back, none twice, nothing stays bound. */

enum breaker {
    BREAK_FLUSH,
    BREAK_DISCONNECT,
    BREAK_PEER_DISCONNECT,
    BREAK_PEER_RELEASE,
    BREAK_RELEASE,
    BREAKERS
};

ALONE(in_flight_when_the_connection_ends)
{
    IND2MemoryWindow *windows[8];
    struct two two;

    two_open(&two);
    for (int round = 0; round < 2 * BREAKERS; round++) {
        uintptr_t posted = 0, back = 0;
        IND2CompletionQueue *cq;

        two_connect(&two);
        cq = two.near.cq;
        CALL(cq, AddRef);
        for (int i = 0; i < 8; i++)
            ok_status(CALL(two.host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&windows[i]),
                      ND_SUCCESS);
        for (int i = 0; i < 8; i++) {
            ok_status(bind_it(&two, ++posted, windows[i], 0), ND_SUCCESS);
            if (round % 2 || i % 2)
                ok_status(invalidate(&two, ++posted, windows[i]), ND_SUCCESS);
        }
        switch (round / 2) {
        case BREAK_FLUSH:
            ok_status(CALL(two.near.qp, Flush), ND_SUCCESS);
            break;
        case BREAK_DISCONNECT:
            link_disconnect(&two.near);
            break;
        case BREAK_PEER_DISCONNECT:
            link_disconnect(&two.far);
            break;
        case BREAK_PEER_RELEASE:
            release_last(two.far.connector);
            two.far.connector = NULL;
            release_last(two.far.qp);
            two.far.qp = NULL;
            ok_status(CALL(two.near.qp, Flush), ND_SUCCESS);
            break;
        default:
            release_last(two.near.qp);
            two.near.qp = NULL;
        }
        while (back < posted) {
            ND2_RESULT result = result_next(cq);

            ok_uint((uintptr_t)result.RequestContext, ==, ++back);
            ok_msg(result.Status == ND_SUCCESS || result.Status == ND_CANCELED, "request %u: 0x%08x", (unsigned)back,
                   (unsigned)result.Status);
        }
        result_none(cq);
        if (two.near.qp)
            ok_status(CALL(two.near.qp, Flush), ND_SUCCESS);
        ok_status(finish(two.mr, CALL(two.mr, Deregister, &two.near.ov), &two.near.ov), ND_SUCCESS);
        for (int i = 0; i < 8; i++)
            release_last(windows[i]);
        release_last(two.mr);
        release_last(two.window);
        CALL(cq, Release);
        link_drop(&two.near);
        link_drop(&two.far);
    }
    two_close(&two);
}

/* On a queue pair that has ended: posts succeed and come back cancelled; the window is free for another connection. */
ALONE(after_the_end)
{
    struct link near, far;
    struct two two;

    two_open(&two);
    two_connect(&two);
    ok_status(bind_it(&two, 1, two.window, 0), ND_SUCCESS);
    ok_result(two.near.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    link_disconnect(&two.near);
    ok_status(bind_it(&two, 2, two.window, 0), ND_SUCCESS);
    ok_status(invalidate(&two, 3, two.window), ND_SUCCESS);
    ok_result(two.near.cq, Nd2RequestTypeBind, ND_CANCELED, 2);
    ok_result(two.near.cq, Nd2RequestTypeInvalidate, ND_CANCELED, 3);
    near = two.near;
    far = two.far;
    link_make(&two.near, &two.host, NULL);
    link_make(&two.far, &two.host, NULL);
    self_connect(&two.near, &two.far, two.listener, &two.to);
    ok_status(CALL(two.near.qp, Bind, (void *)4, (IUnknown *)two.near.mr, (IUnknown *)two.window, two.near.buffer, 64,
                   READ_WRITE),
              ND_SUCCESS);
    ok_result(two.near.cq, Nd2RequestTypeBind, ND_SUCCESS, 4);
    link_drop(&near);
    link_drop(&far);
    release_last(two.window);
    release_last(two.mr);
    link_drop(&two.near);
    link_drop(&two.far);
    two_close(&two);
}

/* A process that ends, or is killed, with bound windows that are older than their queue pair. */

PART(with_bound_windows)
{
    static IND2MemoryWindow *volatile windows[4]; /* found by the leak checker when main has returned */
    static struct two two;
    bool stay;

    two_open(&two);
    for (int i = 0; i < 4; i++) {
        IND2MemoryWindow *window;

        ok_status(CALL(two.host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
        windows[i] = window;
    }
    two_connect(&two);
    for (int i = 0; i < 4; i++) {
        ok_status(bind_it(&two, 1, windows[i], 0), ND_SUCCESS);
        ok_result(two.near.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    }
    runner_put(&two.to, sizeof(two.to));
    runner_get(&stay, sizeof(stay));
    /* Ends without releasing anything. */
}

static void ends_with_bound_windows(bool killed)
{
    int channel, pid = runner_spawn("with_bound_windows", ROLE_SERVER, &channel), status;
    union endpoint to;
    struct two two;
    bool stay = false;

    runner_get_from(channel, &to, sizeof(to));
    if (killed)
        runner_kill(pid);
    else
        runner_put_to(channel, &stay, sizeof(stay));
    status = runner_wait(pid);
    if (killed)
        ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        ok_int(status, ==, 0);
    two_open(&two);
    two_connect(&two);
    ok_status(bind_it(&two, 1, two.window, 0), ND_SUCCESS);
    ok_result(two.near.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    release_last(two.window);
    release_last(two.mr);
    link_drop(&two.near);
    link_drop(&two.far);
    two_close(&two);
}

ALONE(process_killed)
{
    ends_with_bound_windows(true);
}

ALONE(process_exits)
{
    ends_with_bound_windows(false);
}

RUNNER_MAIN
