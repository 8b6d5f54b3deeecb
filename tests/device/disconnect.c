/* SPDX-License-Identifier: MIT */
/* The end of a connection: by either side, by both, by a kill; flushes. ndspi.md 4.7, 4.8, 5.6, design.md 5. */
#include "session.h"

#define RECEIVES 8

static void post_receives(struct link *link)
{
    for (uintptr_t i = 0; i < RECEIVES; i++)
        post_receive(link, 100 + i, 0, 64);
}

/* All receives, in order, are already there when this is called (ready) or come. */
static void take_flushed(struct link *link, bool ready)
{
    ND2_RESULT results[RECEIVES + 1];

    if (!ready) {
        for (uintptr_t i = 0; i < RECEIVES; i++)
            ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 100 + i);
        result_none(link->cq);
        return;
    }
    ok_int(CALL(link->cq, GetResults, results, RECEIVES + 1), ==, RECEIVES);
    for (uintptr_t i = 0; i < RECEIVES; i++) {
        ok_status(results[i].Status, ND_CANCELED);
        ok_int(results[i].RequestType, ==, Nd2RequestTypeReceive);
        ok_uint((uintptr_t)results[i].RequestContext, ==, 100 + i);
        ok_ptr(results[i].QueuePairContext, ==, link);
    }
}

/* The one that disconnects: its flushed requests are in the queue when Disconnect completes, its NotifyDisconnect has
 * completed with success. */
static void first_side(struct session *session)
{
    struct link *link = &session->link;
    OVERLAPPED notify[2];
    HANDLE events[2] = { event_auto(), event_auto() };

    post_receives(link);
    for (int i = 0; i < 2; i++) {
        overlapped_rubbish(&notify[i], events[i]);
        ok_status(CALL(link->connector, NotifyDisconnect, &notify[i]), ND_PENDING);
    }
    runner_sync();
    ok_pending(link->connector, &notify[0]);
    link_disconnect(link);
    take_flushed(link, true);
    for (int i = 0; i < 2; i++) {
        ok_internal(&notify[i], ND_SUCCESS);
        ok(CloseHandle(events[i]));
    }
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_CONNECTION_INVALID);
    ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
    runner_sync();
}

/* The other one learns it by NotifyDisconnect, gets its requests back without a call of its own, and may disconnect. */
static void second_side(struct session *session)
{
    struct link *link = &session->link;
    HANDLE event = event_auto();
    OVERLAPPED notify;

    post_receives(link);
    overlapped_rubbish(&notify, event);
    ok_status(CALL(link->connector, NotifyDisconnect, &notify), ND_PENDING);
    runner_sync();
    ok_status(finish(link->connector, ND_PENDING, &notify), ND_SUCCESS);
    take_flushed(link, false);
    ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &notify)), ND_SUCCESS);
    link_disconnect(link);
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_CONNECTION_INVALID);
    ok(CloseHandle(event));
    runner_sync();
}

/* tests/lists: A7, A8, D19, D79. */
SERVER(by_active_side)
{
    struct session session;

    session_begin(&session, NULL);
    second_side(&session);
    session_drop(&session);
}

CLIENT(by_active_side)
{
    struct session session;

    session_begin(&session, NULL);
    first_side(&session);
    session_drop(&session);
}

SERVER(by_passive_side)
{
    struct session session;

    session_begin(&session, NULL);
    first_side(&session);
    session_drop(&session);
}

CLIENT(by_passive_side)
{
    struct session session;

    session_begin(&session, NULL);
    second_side(&session);
    session_drop(&session);
}

/* Messages just before the end: the other side sees them first, then NotifyDisconnect, then its other receives come back (A7).
 * It looks at its results all the time, or only once it has been told. */

#define LAST_WORDS 4

static void last_words(void)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    runner_settle();
    runner_sync();
    for (uintptr_t i = 0; i < LAST_WORDS; i++) {
        memset(link->buffer + 64 * i, 0x30 + (int)i, 64);
        post_send(link, i, 64 * i, 64, 0);
    }
    for (uintptr_t i = 0; i < LAST_WORDS; i++)
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    link_disconnect(link);
    runner_sync();
    session_drop(&session);
}

static void hear_last_words(bool polling)
{
    struct session session;
    struct link *link = &session.link;
    ND2_RESULT results[LAST_WORDS + 1];

    session_begin(&session, NULL);
    for (uintptr_t i = 0; i < LAST_WORDS + RECEIVES; i++)
        post_receive(link, i, 64 * i, 64);
    ok_status(CALL(link->connector, NotifyDisconnect, &link->ov), ND_PENDING);
    runner_settle();
    runner_sync();
    if (polling) {
        for (int i = 0; i < LAST_WORDS; i++)
            results[i] = result_next(link->cq);
    } else {
        ok_status(finish(link->connector, ND_PENDING, &link->ov), ND_SUCCESS);
        ok_int(CALL(link->cq, GetResults, results, LAST_WORDS), ==, LAST_WORDS); /* all there */
    }
    for (uintptr_t i = 0; i < LAST_WORDS; i++) {
        ok_status(results[i].Status, ND_SUCCESS);
        ok_int(results[i].RequestType, ==, Nd2RequestTypeReceive);
        ok_uint((uintptr_t)results[i].RequestContext, ==, i);
        ok_uint(results[i].BytesTransferred, ==, 64);
        ok_int(link->buffer[64 * i + 63], ==, 0x30 + i);
    }
    for (uintptr_t i = 0; i < RECEIVES; i++) {
        ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, LAST_WORDS + i);
        if (!runner_iwarp() || !polling)
            ok_internal(&link->ov, ND_SUCCESS); /* before the first of them; the kernel of iWARP flushes by itself */
    }
    result_none(link->cq);
    if (polling)
        ok_status(finish(link->connector, ND_PENDING, &link->ov), ND_SUCCESS);
    link_disconnect(link);
    runner_sync();
    session_drop(&session);
}

SERVER(last_words_heard)
{
    hear_last_words(true);
}

CLIENT(last_words_heard)
{
    last_words();
}

SERVER(last_words_found)
{
    hear_last_words(false);
}

CLIENT(last_words_found)
{
    last_words();
}

/* Both at the same moment: success on both sides (ndmpic, MS-MPI). */

static void both(void)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    for (int i = 0; i < 5; i++) {
        post_receives(link);
        runner_sync();
        link_disconnect(link);
        take_flushed(link, true);
        runner_sync();
        release_last(link->connector);
        release_last(link->qp);
        link_make_qp(link);
        link_make_connector(link);
        if (runner_role() == ROLE_SERVER) {
            IND2Listener *listener = listen_any(&session.host);

            link_accept(link, listener);
            release_last(listener);
        } else {
            union endpoint to = listener_of_peer();

            link_connect(link, &to);
        }
    }
    session_end(&session);
}

/* tests/lists: D19. */
SERVER(by_both_sides)
{
    both();
}

CLIENT(by_both_sides)
{
    both();
}

/* Posts after Disconnect was called: accepted, never sent, cancelled behind what the device flushes (A38). */

static void posts_after(bool ours)
{
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;
    HRESULT hr;

    session_begin(&session, NULL);
    sge = sge_of(link, 2048, 64);
    memset(sge.Buffer, 0xee, 64);
    for (uintptr_t i = 0; i < 4; i++)
        post_receive(link, i, 0, 64);
    runner_sync();
    if (ours) {
        hr = CALL(link->connector, Disconnect, &link->ov);
        ok_status(hr, ND_PENDING);
    } else {
        hr = CALL(link->connector, NotifyDisconnect, &link->ov);
        ok_status(hr, ND_PENDING);
        ok_status(FINISH(link, hr), ND_SUCCESS);
    }
    ok_status(CALL(link->qp, Receive, (void *)4, &sge, 1), ND_SUCCESS);
    ok_status(CALL(link->qp, Send, (void *)5, &sge, 1, 0), ND_SUCCESS);
    ok_status(CALL(link->qp, Write, (void *)6, &sge, 1, link->remote.address + 1024, link->remote.token, 0),
              ND_SUCCESS);
    ok_status(CALL(link->qp, Read, (void *)7, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_status(CALL(link->qp, Send, (void *)8, &sge, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    if (ours)
        ok_status(FINISH(link, hr), ND_SUCCESS);
    {
        static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeReceive, Nd2RequestTypeReceive, Nd2RequestTypeReceive,
                                                  Nd2RequestTypeReceive, Nd2RequestTypeReceive, Nd2RequestTypeSend,
                                                  Nd2RequestTypeWrite,   Nd2RequestTypeRead,    Nd2RequestTypeSend };
        uintptr_t next_receive = 0, next_send = 5;

        for (int i = 0; i < 9; i++) {
            ND2_RESULT result = result_next(link->cq);
            uintptr_t context = (uintptr_t)result.RequestContext;

            ok_status(result.Status, ND_CANCELED);
            ok_uint(context, <, 9);
            ok_int(result.RequestType, ==, types[context]);
            ok_ptr(result.QueuePairContext, ==, link);
            ok_uint(context, ==, result.RequestType == Nd2RequestTypeReceive ? next_receive++ : next_send++);
        }
    }
    /* Still so when all is over. */
    ok_status(CALL(link->qp, Receive, (void *)10, &sge, 1), ND_SUCCESS);
    ok_status(CALL(link->qp, Send, (void *)11, &sge, 1, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 10);
    ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 11);
    result_none(link->cq);
    runner_sync();
    /* Nothing of the peer's late Sends and Write is in the memory, nor did its own Read bring anything. */
    for (int i = 0; i < 64; i++) {
        ok_int(link->buffer[i], ==, 0);
        ok_int(link->buffer[1024 + i], ==, 0);
        ok_int(link->buffer[2048 + i], ==, 0xee);
    }
    runner_sync();
    session_drop(&session);
}

/* tests/lists: D14. */
SERVER(posts_after)
{
    posts_after(false);
}

CLIENT(posts_after)
{
    posts_after(true);
}

/* Flush of a connected queue pair: this one only, the peer's connection ends. */

SERVER(flush_connected)
{
    struct session session;

    session_begin(&session, NULL);
    post_receives(&session.link);
    runner_sync();
    runner_sync();
    link_disconnect(&session.link);
    take_flushed(&session.link, true);
    runner_sync();
    session_drop(&session);
}

CLIENT(flush_connected)
{
    struct session session;
    IND2QueuePair *other;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    ok_status(CALL(session.host.adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)link->cq,
                   (IUnknown *)link->cq, NULL, 4, 4, 1, 1, 0, (void **)&other),
              ND_SUCCESS);
    ok_status(CALL(other, Receive, (void *)1, NULL, 0), ND_SUCCESS);
    post_receives(link);
    runner_sync();
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
    take_flushed(link, false);
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
    runner_sync();
    link_disconnect(link);
    result_none(link->cq); /* the other queue pair's receive is still posted */
    release_last(other);
    runner_sync();
    session_drop(&session);
}

/* NdReceiveFlushQP: two zero-byte receives on a queue pair that was never connected, Flush, Notify (D9). */
ALONE(flush_never_connected)
{
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link.qp, Receive, (void *)2, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link.qp, Flush), ND_SUCCESS);
    ok_status(finish(link.cq, CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), &link.ov), ND_SUCCESS);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 2);
    result_none(link.cq);
    /* And after it. */
    ok_status(CALL(link.qp, Receive, (void *)3, NULL, 0), ND_SUCCESS);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 3);
    link_drop(&link);
    host_close(&host);
}

/* Test fixtures: Disconnect and Deregister back to back on one OVERLAPPED, never waited for, then all releases. */

SERVER(fixture_teardown)
{
    struct session session;

    session_begin(&session, NULL);
    runner_sync();
    ok_status(CALL(session.link.connector, Disconnect, &session.link.ov), ND_PENDING);
    ok_status(CALL(session.link.mr, Deregister, &session.link.ov), ND_PENDING);
    release_last(session.link.mr);
    session.link.mr = NULL;
    release_last(session.link.cq);
    session.link.cq = NULL;
    release_last(session.link.qp);
    session.link.qp = NULL;
    release_last(session.link.connector);
    session.link.connector = NULL;
    memset(&session.link.ov, 0, sizeof(session.link.ov));
    session_drop(&session);
}

CLIENT(fixture_teardown)
{
    struct session session;

    session_begin(&session, NULL);
    runner_sync();
    ok_status(FINISH(&session.link, CALL(session.link.connector, NotifyDisconnect, &session.link.ov)), ND_SUCCESS);
    session_drop(&session);
}

/* Releases instead of Disconnect: the peer is told, whichever of the two objects went. */

static void released(bool connector_first)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    post_receives(link);
    if (runner_role() == ROLE_SERVER) {
        HRESULT hr = CALL(link->connector, NotifyDisconnect, &link->ov);

        ok_status(hr, ND_PENDING);
        runner_sync();
        ok_status(FINISH(link, hr), ND_SUCCESS);
        take_flushed(link, false);
    } else {
        runner_sync();
        if (connector_first) {
            release_last(link->connector);
            link->connector = NULL;
            take_flushed(link, false);
        } else {
            release_last(link->qp);
            link->qp = NULL;
            take_flushed(link, true);
            ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
        }
    }
    runner_sync();
    session_drop(&session);
}

SERVER(connector_released)
{
    released(true);
}

CLIENT(connector_released)
{
    released(true);
}

SERVER(queue_pair_released)
{
    released(false);
}

CLIENT(queue_pair_released)
{
    released(false);
}

/* NotifyDisconnect cancelled: the connection is untouched (uDAPL cancels, then disconnects). */

SERVER(notify_disconnect_cancelled)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    ok_status(CALL(link->connector, NotifyDisconnect, &link->ov), ND_PENDING);
    ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)link->connector, GetOverlappedResult, &link->ov, FALSE), ND_CANCELED);
    post_receive(link, 1, 0, 64);
    runner_sync();
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    runner_sync();
    link_disconnect(link);
    session_drop(&session);
}

CLIENT(notify_disconnect_cancelled)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, NULL);
    runner_sync();
    post_send(link, 1, 0, 64, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    runner_sync();
    ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
    session_drop(&session);
}

/* Disconnect cancelled: it finishes at once. */

SERVER(disconnect_cancelled)
{
    struct session session;
    struct link *link = &session.link;
    HRESULT hr;

    session_begin(&session, NULL);
    post_receives(link);
    runner_sync();
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_PENDING);
    ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    hr = CALL((IND2Overlapped *)link->connector, GetOverlappedResult, &link->ov, FALSE);
    ok_msg(hr == ND_SUCCESS || hr == ND_CANCELED, "0x%08x", (unsigned)hr);
    take_flushed(link, false);
    runner_sync();
    session_drop(&session);
}

CLIENT(disconnect_cancelled)
{
    struct session session;

    session_begin(&session, NULL);
    runner_sync();
    ok_status(FINISH(&session.link, CALL(session.link.connector, NotifyDisconnect, &session.link.ov)), ND_SUCCESS);
    runner_sync();
    session_drop(&session);
}

/* The peer dies: NotifyDisconnect, flush (rdma-mapping.md T5). The peer is a third process, so that it may die. */

PART(peer_killed)
{
    struct session session;

    /* This process plays the connection's other end and is killed by the client. */
    session_begin(&session, NULL);
    runner_sync();
    for (;;)
        Sleep(1000);
}

/* tests/lists: D79. */
ALONE(peer_killed_while_idle)
{
    int channel, pid = runner_spawn("peer_killed", ROLE_SERVER, &channel);
    struct session session;
    struct link *link = &session.link;
    HRESULT hr;

    session_beside(&session, channel, NULL);
    post_receives(link);
    hr = CALL(link->connector, NotifyDisconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_kill(pid);
    runner_wait(pid);
    ok_status(FINISH(link, hr), ND_SUCCESS); /* the kernel disconnects for it */
    take_flushed(link, false);
    link_disconnect(link);
    session_drop(&session);
}

RUNNER_MAIN
