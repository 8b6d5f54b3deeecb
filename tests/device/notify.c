/* SPDX-License-Identifier: MIT */
/* Completion queue notification. ndspi.md 5.7. */
#include "session.h"

#include <stdlib.h>

static HRESULT notify(struct link *link, ULONG type, OVERLAPPED *ov)
{
    return CALL(link->cq, Notify, type, ov);
}

/* The peer of most cases: sends a message whenever it is told to, plain or solicited. */

static void sender(void)
{
    struct session session;
    char order;

    session_begin(&session, NULL);
    for (uintptr_t i = 0;; i++) {
        runner_get(&order, 1);
        if (order == 'q')
            break;
        post_send(&session.link, i, 0, 64, order == 's' ? ND_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0);
        ok_result(session.link.cq, Nd2RequestTypeSend, ND_SUCCESS, i);
        runner_put(&order, 1); /* has arrived */
    }
    session_end(&session);
}

static void order(char what)
{
    runner_put(&what, 1);
    if (what != 'q')
        runner_get(&what, 1);
}

/* Pends until something comes; then once, not again for what it has told. */

SERVER(any)
{
    sender();
}

CLIENT(any)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    for (uintptr_t i = 0; i < 8; i++)
        post_receive(link, i, 0, 64);
    for (uintptr_t i = 0; i < 4; i++) {
        ok_status(notify(link, ND_CQ_NOTIFY_ANY, &link->ov), ND_PENDING);
        ok_pending(link->cq, &link->ov);
        order('p');
        ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
        result_none(link->cq);
    }
    /* It came before it was asked for: at once (no lost wake-up). */
    for (uintptr_t i = 4; i < 8; i++) {
        order('p');
        ok_status(finish(link->cq, notify(link, ND_CQ_NOTIFY_ANY, &link->ov), &link->ov), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    }
    result_none(link->cq);
    ok_status(notify(link, ND_CQ_NOTIFY_ANY, &link->ov), ND_PENDING);
    ok_pending(link->cq, &link->ov);
    ok_status(CALL(link->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)link->cq, GetOverlappedResult, &link->ov, FALSE), ND_CANCELED);
    order('q');
    session_end(&session);
}

SERVER(solicited)
{
    sender();
}

CLIENT(solicited)
{
    struct session session;
    struct link *link = &session.link;
    HANDLE event = event_auto();
    OVERLAPPED any;

    session_begin(&session, &(struct shape){ .split = true });
    overlapped_rubbish(&any, event);
    for (uintptr_t i = 0; i < 8; i++)
        post_receive(link, i, 0, 64);
    ok_status(notify(link, ND_CQ_NOTIFY_SOLICITED, &link->ov), ND_PENDING);
    ok_pending(link->cq, &link->ov);
    order('s');
    ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 0);

    /* siw fires a solicited arm for no receive, rxe not for all that fail: Notify is armed for every receive there. */
    ok_status(notify(link, ND_CQ_NOTIFY_SOLICITED, &link->ov), ND_PENDING);
    ok_pending(link->cq, &link->ov);
    order('p');
    ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);

    /* ANY overrides, and completes both. */
    ok_status(notify(link, ND_CQ_NOTIFY_SOLICITED, &link->ov), ND_PENDING);
    ok_status(notify(link, ND_CQ_NOTIFY_ANY, &any), ND_PENDING);
    order('p');
    ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
    ok_status(finish(link->cq, ND_PENDING, &any), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);

    /* A failure is always worth a notification. */
    ok_status(notify(link, ND_CQ_NOTIFY_SOLICITED, &link->ov), ND_PENDING);
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
    ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
    ok_status(result_next(link->cq).Status, ND_CANCELED);
    ok(CloseHandle(event));
    order('q');
    session_end(&session);
}

/* The only receive fails by a message that is not solicited: no flush of another one comes behind it. */

SERVER(solicited_failure)
{
    struct session session;

    session_begin(&session, NULL);
    runner_sync();
    post_send(&session.link, 1, 0, 128, 0);
    result_next(session.link.cq);
    session_end(&session);
}

CLIENT(solicited_failure)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .split = true });
    post_receive(link, 1, 0, 64);
    ok_status(notify(link, ND_CQ_NOTIFY_SOLICITED, &link->ov), ND_PENDING);
    runner_sync();
    ok_status(finish(link->cq, ND_PENDING, &link->ov), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_DATA_OVERRUN, 1);
    session_end(&session);
}

SERVER(errors)
{
    sender();
}

CLIENT(errors)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    post_receive(link, 1, 0, 64);
    ok_status(notify(link, ND_CQ_NOTIFY_ERRORS, &link->ov), ND_PENDING);
    order('s');
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    ok_pending(link->cq, &link->ov);
    ok_status(CALL(link->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)link->cq, GetOverlappedResult, &link->ov, FALSE), ND_CANCELED);
    order('q');
    session_end(&session);
}

/* Several pend, one event completes all, in the order of their calls. */

SERVER(several)
{
    sender();
}

CLIENT(several)
{
    struct session session;
    struct link *link = &session.link;
    OVERLAPPED ov[5], *out;
    ULONG_PTR key;
    HANDLE port;
    DWORD bytes;

    session_begin(&session, NULL);
    port = CreateIoCompletionPort(session.host.file, NULL, 42, 0);
    ok(port != NULL);
    post_receive(link, 1, 0, 64);
    for (int i = 0; i < 5; i++) {
        overlapped_rubbish(&ov[i], NULL);
        ok_status(notify(link, ND_CQ_NOTIFY_ANY, &ov[i]), ND_PENDING);
    }
    order('p');
    for (int i = 0; i < 5; i++) {
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &out, INFINITE));
        ok_ptr(out, ==, &ov[i]);
        ok_uint(key, ==, 42);
        ok_status(CALL((IND2Overlapped *)link->cq, GetOverlappedResult, out, FALSE), ND_SUCCESS);
    }
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
    ok_ptr(out, ==, NULL);
    ok_int(GetLastError(), ==, WAIT_TIMEOUT);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    order('q');
    session_end(&session);
    ok(CloseHandle(port));
}

/* ndcq: cancelled requests are on the port when Cancel returns, in order; across queues in the order of the cancels
 * (A6, D36). */
ALONE(cancel_order)
{
    IND2CompletionQueue *cq[2];
    OVERLAPPED ov[2][3], *out;
    ULONG_PTR key;
    struct host host;
    HANDLE port;
    DWORD bytes;

    host_open(&host);
    port = CreateIoCompletionPort(host.file, NULL, 0, 0);
    for (int q = 0; q < 2; q++)
        ok_status(
            CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 16, 0, 0, (void **)&cq[q]),
            ND_SUCCESS);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            for (int q = 0; q < 2; q++) {
                overlapped_rubbish(&ov[q][i], NULL);
                ok_status(CALL(cq[q], Notify, i == 1 ? ND_CQ_NOTIFY_SOLICITED : ND_CQ_NOTIFY_ANY, &ov[q][i]),
                          ND_PENDING);
            }
        for (int q = 1; q >= 0; q--) {
            if (round == 2)
                release_last(cq[q]); /* destroying a queue cancels too */
            else
                ok_status(CALL(cq[q], CancelOverlappedRequests), ND_SUCCESS);
        }
        for (int q = 1; q >= 0; q--)
            for (int i = 0; i < 3; i++) {
                ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
                ok_ptr(out, ==, &ov[q][i]);
                ok_int(GetLastError(), ==, ERROR_OPERATION_ABORTED);
                ok_uint(ov[q][i].Internal, ==, (DWORD)ND_CANCELED);
            }
        ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
        ok_ptr(out, ==, NULL);
    }
    ok(CloseHandle(port));
    host_close(&host);
}

/* tests/lists: A35. */
ALONE(bad_arguments)
{
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(notify(&link, 3, &link.ov), ND_INVALID_PARAMETER_1);
    ok_status(notify(&link, 77, &link.ov), ND_INVALID_PARAMETER_1);
    ok_status(notify(&link, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER);
    ok_int(CALL(link.cq, GetResults, NULL, 0), ==, 0);
    ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(notify(&link, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
    link_drop(&link);
    host_close(&host);
}

/* Filled to the documented depth by both directions, nothing taken out: no overrun, nothing lost. */

#define DEPTH 64

/* tests/lists: D66. */
SERVER(full_queue)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .depth = DEPTH, .cq_depth = 2 * DEPTH });
    for (uintptr_t i = 0; i < DEPTH; i++)
        post_receive(link, i, 0, 64);
    runner_sync();
    for (uintptr_t i = 0; i < DEPTH; i++)
        post_send(link, i, 0, 64, 0);
    runner_sync(); /* the client has received all of it */
    ok_status(finish(link->cq, notify(link, ND_CQ_NOTIFY_ANY, &link->ov), &link->ov), ND_SUCCESS);
    {
        ND2_RESULT results[2 * DEPTH];
        uintptr_t next[2] = { 0, 0 };
        ULONG n = 0;

        while (n < 2 * DEPTH)
            n += CALL(link->cq, GetResults, results + n, 2 * DEPTH - n);
        for (ULONG i = 0; i < n; i++) {
            ok_status(results[i].Status, ND_SUCCESS);
            ok_int(results[i].RequestType, <=, 1);
            ok_uint((uintptr_t)results[i].RequestContext, ==, next[results[i].RequestType]++);
        }
        ok_uint(next[0], ==, DEPTH);
    }
    result_none(link->cq);
    /* The queue is alive. */
    post_receive(link, 1000, 0, 64);
    runner_sync();
    ok_status(finish(link->cq, notify(link, ND_CQ_NOTIFY_ANY, &link->ov), &link->ov), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1000);
    session_end(&session);
}

CLIENT(full_queue)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .depth = DEPTH, .cq_depth = 2 * DEPTH });
    for (uintptr_t i = 0; i < DEPTH; i++)
        post_receive(link, i, 0, 64);
    runner_sync();
    for (uintptr_t i = 0; i < DEPTH; i++)
        post_send(link, i, 0, 64, 0);
    for (int i = 0; i < 2 * DEPTH; i++)
        ok_status(result_next(link->cq).Status, ND_SUCCESS);
    runner_sync();
    runner_sync();
    post_send(link, 1, 0, 64, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    session_end(&session);
}

/* Two threads, each with a Notify of its own, take turns at one queue: every message is seen once, no wake-up is lost. */

#define MESSAGES 600
#define WINDOW   12

struct taker {
    struct link *link;
    volatile LONG *taken;
    OVERLAPPED ov;
    LONG own;
};

static DWORD WINAPI take(void *argument)
{
    struct taker *taker = argument;
    struct link *link = taker->link;

    while (*taker->taken < MESSAGES) {
        ND2_RESULT result;
        HRESULT hr = notify(link, ND_CQ_NOTIFY_ANY, &taker->ov);

        ok_status(hr, ND_PENDING);
        while (CALL(link->cq, GetResults, &result, 1) == 1) {
            LONG at;

            ok_status(result.Status, ND_SUCCESS);
            ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
            taker->own++;
            post_receive(link, 0, 0, 64);
            at = InterlockedIncrement(taker->taken);
            runner_put("t", 1);
            if (at == MESSAGES)
                CALL(link->cq, CancelOverlappedRequests); /* wakes the other thread */
        }
        if (*taker->taken == MESSAGES)
            CALL(link->cq, CancelOverlappedRequests); /* our Notify may have come behind that */
        hr = finish(link->cq, hr, &taker->ov);
        ok_msg(hr == ND_SUCCESS || hr == ND_CANCELED, "Notify: 0x%08x", (unsigned)hr);
    }
    return 0;
}

SERVER(two_threads)
{
    struct session session;
    LONG sent = 0, taken = 0;
    char byte;

    session_begin(&session, NULL);
    runner_sync();
    while (taken < MESSAGES) {
        while (sent < MESSAGES && sent < taken + WINDOW) {
            post_send(&session.link, (uintptr_t)sent, 0, 64, 0);
            ok_result(session.link.cq, Nd2RequestTypeSend, ND_SUCCESS, sent);
            sent++;
        }
        runner_get(&byte, 1);
        taken++;
    }
    session_end(&session);
}

CLIENT(two_threads)
{
    struct session session;
    struct taker takers[2];
    volatile LONG taken = 0;
    HANDLE threads[2];

    session_begin(&session, NULL);
    for (int i = 0; i < 14; i++)
        post_receive(&session.link, 0, 0, 64);
    for (int i = 0; i < 2; i++) {
        takers[i] = (struct taker){ .link = &session.link, .taken = &taken };
        overlapped_rubbish(&takers[i].ov, event_auto());
    }
    runner_sync();
    for (int i = 0; i < 2; i++) {
        threads[i] = CreateThread(NULL, 0, take, &takers[i], 0, NULL);
        ok(threads[i] != NULL);
    }
    ok_int(WaitForMultipleObjects(2, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(takers[0].own + takers[1].own, ==, MESSAGES);
    runner_note("one thread took %d, the other %d", (int)takers[0].own, (int)takers[1].own);
    for (int i = 0; i < 2; i++) {
        ok(CloseHandle(threads[i]));
        ok(CloseHandle(takers[i].ov.hEvent));
    }
    session_end(&session);
}

/* The same harder: bursts of plain and solicited messages, requests of both kinds, results taken in batches of all sizes. */

struct stress {
    struct link *link;
    volatile LONG *taken, *rounds;
    LONG messages;
    ULONG which;
    OVERLAPPED ov;
};

static DWORD WINAPI stress_take(void *argument)
{
    struct stress *stress = argument;
    struct link *link = stress->link;
    ULONG random = 77 + stress->which;

    while (*stress->taken < stress->messages) {
        ND2_RESULT results[5];
        ULONG want, got;
        HRESULT hr;

        random = random * 1664525u + 1013904223u;
        want = 1 + (random >> 16) % 5;
        hr = notify(link, stress->which == 1 && (random >> 24) % 2 ? ND_CQ_NOTIFY_SOLICITED : ND_CQ_NOTIFY_ANY,
                    &stress->ov);
        ok_status(hr, ND_PENDING);
        do {
            BYTE credit;

            got = CALL(link->cq, GetResults, results, want);
            for (ULONG i = 0; i < got; i++) {
                ok_status(results[i].Status, ND_SUCCESS);
                ok_int(results[i].RequestType, ==, Nd2RequestTypeReceive);
                post_receive(link, 0, 0, 64);
            }
            credit = (BYTE)got;
            if (got)
                runner_put(&credit, 1);
            if (got && InterlockedExchangeAdd(stress->taken, (LONG)got) + (LONG)got == stress->messages)
                CALL(link->cq, CancelOverlappedRequests); /* wakes the other thread */
        } while (got == want);
        if (*stress->taken == stress->messages)
            CALL(link->cq, CancelOverlappedRequests);
        hr = finish(link->cq, hr, &stress->ov);
        if (hr == ND_SUCCESS)
            InterlockedIncrement(stress->rounds);
        else
            ok_status(hr, ND_CANCELED);
    }
    return 0;
}

#define STRESS_WINDOW 48

static void stress_server(LONG messages)
{
    struct session session;
    LONG sent = 0, taken = 0;
    ULONG random = 5;
    BYTE credit;

    session_begin(&session, &(struct shape){ .depth = 64 });
    runner_sync();
    while (taken < messages) {
        ULONG burst;

        random = random * 1664525u + 1013904223u;
        burst = 1 + (random >> 20) % 8;
        while (burst-- && sent < messages && sent < taken + STRESS_WINDOW) {
            post_send(&session.link, (uintptr_t)sent, 0, 64,
                      (random >> burst) % 4 ? 0 : ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
            ok_result(session.link.cq, Nd2RequestTypeSend, ND_SUCCESS, sent);
            sent++;
        }
        if (sent == messages || sent == taken + STRESS_WINDOW || (random >> 28) < 6) {
            runner_get(&credit, 1);
            taken += credit;
        }
    }
    session_end(&session);
}

static void stress_client(LONG messages)
{
    struct session session;
    struct stress stress[2];
    volatile LONG taken = 0, rounds = 0;
    HANDLE threads[2];

    session_begin(&session, &(struct shape){ .depth = 64, .split = true });
    for (int i = 0; i < 50; i++)
        post_receive(&session.link, 0, 0, 64);
    runner_sync();
    for (ULONG i = 0; i < 2; i++) {
        stress[i] = (struct stress){
            .link = &session.link, .taken = &taken, .rounds = &rounds, .messages = messages, .which = i
        };
        overlapped_rubbish(&stress[i].ov, event_auto());
        threads[i] = CreateThread(NULL, 0, stress_take, &stress[i], 0, NULL);
        ok(threads[i] != NULL);
    }
    ok_int(WaitForMultipleObjects(2, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(taken, ==, messages);
    /* A message triggers one event at most, and an event completes what both have pending. */
    ok_int(rounds, <=, 2 * messages);
    ok_int(rounds, >, 0);
    runner_note("%d messages, %d requests completed", (int)messages, (int)rounds);
    result_none(session.link.cq);
    for (int i = 0; i < 2; i++) {
        ok(CloseHandle(threads[i]));
        ok(CloseHandle(stress[i].ov.hEvent));
    }
    session_end(&session);
}

SERVER(stress)
{
    stress_server(3000);
}

CLIENT(stress)
{
    stress_client(3000);
}

LONG_SERVER(stress_long)
{
    stress_server(20000);
}

LONG_CLIENT(stress_long)
{
    stress_client(20000);
}

/* More results than the device's queue holds: the queue is dead and says so. */
ALONE(overrun)
{
    OVERLAPPED errors;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    if (host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED)
        harness_skip("the device's queue grows with the queue pairs: see overrun_beyond_the_growth");
    link_make(&link, &host, &(struct shape){ .depth = host.info.MaxReceiveQueueDepth, .cq_depth = 1 });
    overlapped_rubbish(&errors, event_auto());
    ok_status(notify(&link, ND_CQ_NOTIFY_ERRORS, &errors), ND_PENDING);
    for (ULONG i = 0; i < host.info.MaxReceiveQueueDepth; i++)
        ok_status(CALL(link.qp, Receive, NULL, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link.qp, Flush), ND_SUCCESS);
    ok_status(finish(link.cq, ND_PENDING, &errors), ND_BUFFER_OVERFLOW);
    hr = notify(&link, ND_CQ_NOTIFY_ANY, &link.ov);
    ok_status(hr, ND_BUFFER_OVERFLOW);
    ok(CloseHandle(errors.hEvent));
    link_drop(&link);
    host_close(&host);
}

/* Connections whose receives fill one queue that nobody polls: the queue is dead, and with it all queue pairs that have their
 * results there, also the last one, which got no message. The other sides learn of it by the Disconnect. */

struct filled {
    struct link near, far;
    OVERLAPPED near_lost, far_lost;
};

/* Messages of no bytes for all receives of one connection, until the queue is dead. */
static void fill(struct filled *filled, const OVERLAPPED *dead)
{
    struct link *far = &filled->far;
    const ULONG messages = filled->near.shape.depth;
    ULONG sent = 0, done = 0;

    while (done < messages && !HasOverlappedIoCompleted(dead)) {
        ND2_RESULT results[16];
        ULONG n;

        if (sent < messages && sent - done < far->shape.depth) {
            ok_status(CALL(far->qp, Send, NULL, NULL, 0, 0), ND_SUCCESS);
            sent++;
            continue;
        }
        n = CALL(far->cq, GetResults, results, 16);
        done += n;
        if (!n)
            harness_yield();
    }
}

static void overrun_connected(size_t connections)
{
    struct filled *filled = calloc(connections, sizeof(*filled));
    IND2Listener *listener;
    union endpoint to;
    OVERLAPPED dead;
    struct host host;

    host_open(&host);
    listener = listen_at(&host, &host.address, 0);
    to = listener_endpoint(listener);
    overlapped_rubbish(&dead, event_auto());
    for (size_t i = 0; i < connections; i++) {
        struct filled *one = &filled[i];
        struct shape shape = { .depth = host.info.MaxReceiveQueueDepth, .cq_depth = 1 };

        if (i)
            shape.cq = filled[0].near.cq;
        link_make(&one->near, &host, &shape);
        link_make(&one->far, &host, &(struct shape){ .depth = 64 });
        for (ULONG k = 0; k < host.info.MaxReceiveQueueDepth; k++)
            ok_status(CALL(one->near.qp, Receive, NULL, NULL, 0), ND_SUCCESS);
        self_connect(&one->far, &one->near, listener, &to);
        overlapped_rubbish(&one->near_lost, event_auto());
        overlapped_rubbish(&one->far_lost, event_auto());
        ok_status(CALL(one->near.connector, NotifyDisconnect, &one->near_lost), ND_PENDING);
        ok_status(CALL(one->far.connector, NotifyDisconnect, &one->far_lost), ND_PENDING);
    }
    ok_status(notify(&filled[0].near, ND_CQ_NOTIFY_ERRORS, &dead), ND_PENDING);
    for (size_t i = 0; i < connections - 1; i++)
        fill(&filled[i], &dead);
    ok_status(finish(filled[0].near.cq, ND_PENDING, &dead), ND_BUFFER_OVERFLOW);
    ok_status(notify(&filled[0].near, ND_CQ_NOTIFY_ANY, &dead), ND_BUFFER_OVERFLOW);
    for (size_t i = 0; i < connections; i++) {
        struct filled *one = &filled[i];

        /* On iWARP the kernel tells any end of a connection as a disconnect. */
        ok_status(finish(one->near.connector, ND_PENDING, &one->near_lost),
                  runner_iwarp() ? ND_SUCCESS : (HRESULT)STATUS_CONNECTION_DISCONNECTED);
        link_disconnect(&one->near);
        ok_status(finish(one->far.connector, ND_PENDING, &one->far_lost), ND_SUCCESS);
        ok(CloseHandle(one->near_lost.hEvent));
        ok(CloseHandle(one->far_lost.hEvent));
    }
    ok(CloseHandle(dead.hEvent));
    release_last(listener);
    while (connections) {
        link_drop(&filled[--connections].far);
        link_drop(&filled[connections].near);
    }
    host_close(&host);
    free(filled);
}

ALONE(overrun_connected)
{
    struct host host;
    bool grows;

    host_open(&host);
    grows = host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
    host_close(&host);
    if (grows)
        harness_skip("the device's queue grows with the queue pairs: see overrun_beyond_the_growth");
    overrun_connected(2);
}

/* rxe's queues end at 32,767 entries, and five queue pairs have more receives. */
ALONE(overrun_beyond_the_growth)
{
    const size_t most = 32768;
    struct host host;
    ULONG depth;
    bool grows;

    if (!runner_machine())
        harness_skip("how far the queues of this device grow is not known");
    host_open(&host);
    grows = host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
    depth = host.info.MaxReceiveQueueDepth;
    host_close(&host);
    if (!grows)
        harness_skip("the device's queue does not grow: see overrun_connected");
    overrun_connected(most / depth + 2);
}

/* A blocking ping-pong: each side sleeps in its Notify until the other's message is there. */

static void ping_pong(bool first)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    post_receive(link, 0, 0, 64);
    runner_sync();
    if (first)
        post_send(link, 1, 64, 64, 0);
    for (int i = 0; i < 300;) {
        ND2_RESULT results[4];
        ULONG n;

        ok_status(finish(link->cq, notify(link, ND_CQ_NOTIFY_ANY, &link->ov), &link->ov), ND_SUCCESS);
        while ((n = CALL(link->cq, GetResults, results, 4)) > 0)
            for (ULONG r = 0; r < n; r++) {
                ok_status(results[r].Status, ND_SUCCESS);
                if (results[r].RequestType == Nd2RequestTypeSend)
                    continue;
                i++;
                post_receive(link, 0, 0, 64);
                if (i < 300 || !first)
                    post_send(link, 1, 64, 64, 0);
            }
    }
    session_end(&session);
}

SERVER(ping_pong)
{
    ping_pong(false);
}

CLIENT(ping_pong)
{
    ping_pong(true);
}

RUNNER_MAIN
