/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "core/tunable.h"
#include "rig.h"

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

static struct active a;
static struct passive p;

/* ---- Own Disconnect ---- */

static void own_order(struct qp *qp, enum rig_step step)
{
    (void)qp;
    switch (step) {
    case RIG_CLOSE_POSTS: /* before anything is on the wire, and still so when the answer comes */
        ok_uint(fake_count(FAKE_rdma_disconnect), ==, a.qp->count[RIG_CLOSE_POSTS]);
        ok_pending(&a.notify);
        break;
    case RIG_DRAIN: /* after NotifyDisconnect, before Disconnect */
        ok_done(&a.notify, ND_SUCCESS);
        ok_pending(&a.disconnect);
        break;
    default:
        break;
    }
}

TEST(Disconnect__order)
{
    active_established(&a, ib, &nd_policy);
    a.qp->hook = own_order;
    a.qp->hold_drain = true;
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_int(a.c->wire.state, ==, WIRE_DREQ_OUT);
    ok_uint(a.qp->count[RIG_CLOSE_POSTS], ==, 1);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    rig_run();
    /* Until the answer comes the queue pair works. */
    ok_uint(a.qp->count[RIG_DRAIN], ==, 0);
    ok(fake_qp_state(a.qp->verbs) == IBV_QPS_RTS);
    ok_pending(&a.disconnect);
    ok_uint(rig_timers(), ==, 1);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    ok_uint(rig_timers(), ==, 0);
    ok_done(&a.notify, ND_SUCCESS);
    ok_pending(&a.disconnect); /* everything posted comes back first */
    rig_drained(a.qp);
    ok_done(&a.disconnect, ND_SUCCESS);
    rig_run();
    ok(a.c->wire.cmid == NULL);
    ok_uint(rig_later(), ==, 1); /* both sides have said all there is: the id need not go at once */
    active_end(&a);
}

TEST(Disconnect__second_one)
{
    OVERLAPPED ov = OV_INIT, notify = OV_INIT;

    active_established(&a, ib, &nd_policy);
    ok_status(connector_disconnect(a.c, NULL), ND_INVALID_PARAMETER);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_status(connector_disconnect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_untouched(&ov);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_pending(&a.notify);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_done(&a.notify, ND_SUCCESS);
    ok_status(connector_disconnect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_untouched(&ov);
    ok_status(connector_notify_disconnect(a.c, &notify), ND_PENDING);
    ok_done(&notify, ND_SUCCESS);
    ok_status(connector_get_read_limits(a.c, NULL, NULL), ND_CONNECTION_INVALID);
    active_end(&a);
}

/* Each way a disconnect can end without the peer's answer (A8). */
TEST(Disconnect__no_answer)
{
    static const struct {
        enum rdma_cm_event_type event; /* 0: our own deadline */
        int status;
        bool timed_out;
    } rows[] = {
        { RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, true },
        { RDMA_CM_EVENT_REJECTED, 10, false },
        { RDMA_CM_EVENT_REJECTED, 4, false },
        { 0, 0, true },
    };
    unsigned later = 0;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        bool wv = i & 1;

        active_established(&a, ib, wv ? &wv_policy : &nd_policy);
        ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
        ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
        rig_run();
        if (rows[i / 2].event) {
            event(a.c, rows[i / 2].event, rows[i / 2].status);
        } else {
            rig_advance(tunables()->disconnect_timeout_ms - 1);
            rig_run();
            ok_pending(&a.disconnect);
            rig_advance(1);
            rig_run();
        }
        /* A local disconnect is never reported as a time-out to NotifyDisconnect. */
        ok_done(&a.notify, ND_SUCCESS);
        ok_done(&a.disconnect, wv && rows[i / 2].timed_out ? ND_TIMEOUT : ND_SUCCESS);
        ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
        if (rows[i / 2].timed_out)
            ok_uint(rig_later(), ==, later); /* what is still under way to the peer ends now */
        later = rig_later();
        active_end(&a);
    }
}

TEST(Disconnect__call_fails)
{
    active_established(&a, ib, &nd_policy);
    fake_fail(FAKE_rdma_disconnect, 1, EINVAL);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    rig_run();
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    active_end(&a);
}

/* Both sides at once: our event is the peer's DREQ, which wants its answer too. */
TEST(Disconnect__crossing)
{
    active_established(&a, ib, &nd_policy);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 2);
    active_end(&a);
}

/* ---- The peer's ---- */

static void peer_order(struct qp *qp, enum rig_step step)
{
    (void)qp;
    switch (step) {
    case RIG_COLLECT: /* arrived data is in the queue before anybody hears of the disconnect */
        ok_pending(&p.notify);
        ok_uint(fake_count(FAKE_rdma_disconnect), ==, 0);
        break;
    case RIG_CLOSE_POSTS: /* who hears of it and posts must not reach the peer, whose queue pair still works */
        ok_pending(&p.notify);
        break;
    case RIG_DRAIN:
        ok_done(&p.notify, ND_SUCCESS);
        ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
        break;
    default:
        break;
    }
}

TEST(NotifyDisconnect__the_peers_disconnect)
{
    OVERLAPPED late = OV_INIT, second = OV_INIT;

    passive_established(&p, ib, &nd_policy);
    p.qp->hook = peer_order;
    p.qp->hold_drain = true;
    ok_status(connector_notify_disconnect(p.c, NULL), ND_INVALID_PARAMETER);
    ok_status(connector_notify_disconnect(p.c, &p.notify), ND_PENDING);
    ok_status(connector_notify_disconnect(p.c, &second), ND_PENDING);
    event(p.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&p.notify, ND_SUCCESS);
    ok_done(&second, ND_SUCCESS);
    ok_uint(p.qp->count[RIG_COLLECT], ==, 1);
    ok_uint(p.qp->count[RIG_CLOSE_POSTS], ==, 1);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    ok_status(connector_get_read_limits(p.c, NULL, NULL), ND_SUCCESS);
    ok_status(connector_notify_disconnect(p.c, &late), ND_PENDING);
    ok_done(&late, ND_SUCCESS);
    ok_status(connector_disconnect(p.c, &p.disconnect), ND_PENDING);
    ok_pending(&p.disconnect); /* not before the flush */
    rig_drained(p.qp);
    ok_done(&p.disconnect, ND_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_status(connector_disconnect(p.c, &late), ND_CONNECTION_INVALID);
    passive_end(&p);
}

TEST(Disconnect__after_the_peers_flush)
{
    active_established(&a, ib, &nd_policy);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_done(&a.notify, ND_SUCCESS);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

/* WinVerbs: the peer's disconnect is only told; its answer and the queue pair are the application's affair. */
TEST(NotifyDisconnect__the_peers_disconnect_in_WinVerbs)
{
    passive_established(&p, ib, &wv_policy);
    ok_status(connector_notify_disconnect(p.c, &p.notify), ND_PENDING);
    event(p.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&p.notify, ND_SUCCESS);
    ok_uint(p.qp->count[RIG_COLLECT] + p.qp->count[RIG_CLOSE_POSTS] + p.qp->count[RIG_DRAIN], ==, 0);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 0);
    ok_status(connector_disconnect(p.c, &p.disconnect), ND_PENDING);
    rig_run();
    ok_done(&p.disconnect, ND_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    passive_end(&p);
    passive_established(&p, ib, &wv_policy);
    event(p.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    passive_end(&p); /* the last Release answers */
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 2);
}

/* A peer that restarted rejects the connection it no longer knows. */
TEST(NotifyDisconnect__a_reject_is_a_disconnect)
{
    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_REJECTED, 10);
    ok_done(&a.notify, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    active_end(&a);
}

static void lost_order(struct qp *qp, enum rig_step step)
{
    (void)qp;
    if (step == RIG_CLOSE_POSTS)
        ok_pending(&a.notify);
}

TEST(NotifyDisconnect__a_lost_connection)
{
    OVERLAPPED late = OV_INIT;

    active_established(&a, ib, &nd_policy);
    a.qp->hook = lost_order;
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_CONNECT_ERROR, -EIO);
    ok_done(&a.notify, STATUS_CONNECTION_DISCONNECTED);
    ok_uint(a.qp->count[RIG_CLOSE_POSTS], ==, 1);
    ok_status(connector_notify_disconnect(a.c, &late), ND_PENDING);
    ok_done(&late, STATUS_CONNECTION_DISCONNECTED);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

/* On InfiniBand nobody but the queue pair tells of it: rdma_cm does not know that one. The connection still stands between
 * the connection managers, and ends there in the usual way. */
TEST(NotifyDisconnect__the_queue_pair_fails)
{
    static const enum ibv_event_type events[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR };
    static const struct connector_policy *const policies[] = { &nd_policy, &v1_policy, &wv_policy };

    for (size_t i = 0; i < 9; i++) {
        bool wv = policies[i % 3] == &wv_policy;
        NTSTATUS wanted = wv ? ND_SUCCESS : STATUS_CONNECTION_DISCONNECTED;
        OVERLAPPED late = OV_INIT, again = OV_INIT;

        active_established(&a, ib, policies[i % 3]);
        a.qp->hook = wv ? NULL : lost_order;
        ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
        fake_async_qp(a.qp->verbs, events[i / 3]);
        rig_run();
        ok_done(&a.notify, wanted);
        ok_uint(a.qp->count[RIG_CLOSE_POSTS], ==, wv ? 0 : 1);
        ok_uint(a.qp->count[RIG_DRAIN], ==, wv ? 0 : 1);
        a.qp->hook = NULL;
        ok_status(connector_notify_disconnect(a.c, &late), ND_PENDING);
        ok_done(&late, wanted);
        fake_async_qp(a.qp->verbs, events[i / 3]);
        rig_run();
        ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
        ok_pending(&a.disconnect);
        ok_status(connector_notify_disconnect(a.c, &again), ND_PENDING);
        ok_done(&again, wanted);
        event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
        ok_done(&a.disconnect, ND_SUCCESS);
        ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
        active_end(&a);
    }
}

/* The kernel ends the connection itself, and says so; siw has the other event also where the peer has just closed it. */
TEST(NotifyDisconnect__the_queue_pair_fails_on_iWARP)
{
    active_established(&a, iw, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    fake_async_qp(a.qp->verbs, IBV_EVENT_QP_FATAL);
    rig_run();
    ok_pending(&a.notify);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.notify, ND_SUCCESS);
    active_end(&a);
}

/* The peer ends what our queue pair has broken: it gets its answer, and Disconnect has nothing to wait for. */
TEST(NotifyDisconnect__the_peer_disconnects_after_the_queue_pair_failed)
{
    active_established(&a, ib, &nd_policy);
    fake_async_qp(a.qp->verbs, IBV_EVENT_QP_FATAL);
    rig_run();
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_done(&a.notify, STATUS_CONNECTION_DISCONNECTED);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    active_end(&a);
}

/* Before the peer's last word: Accept tells what became of the handshake, NotifyDisconnect of the connection. Once our own
 * Disconnect is under way the failure is of no interest any more. */
TEST(NotifyDisconnect__the_queue_pair_fails_in_other_states)
{
    struct fake_cm established = { .event = RDMA_CM_EVENT_ESTABLISHED };

    passive_reply_out(&p, ib, &nd_policy);
    fake_async_qp(p.qp->verbs, IBV_EVENT_QP_FATAL);
    rig_run();
    ok_pending(&p.accept);
    fake_cm_event(rig_id(p.c), &established);
    rig_run();
    ok_done(&p.accept, ND_SUCCESS);
    ok_status(connector_notify_disconnect(p.c, &p.notify), ND_PENDING);
    ok_done(&p.notify, STATUS_CONNECTION_DISCONNECTED);
    passive_end(&p);
    passive_reply_out(&p, ib, &nd_policy);
    fake_async_qp(p.qp->verbs, IBV_EVENT_QP_FATAL);
    rig_run();
    passive_end(&p);
    ok_done(&p.accept, ND_CANCELED);

    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    fake_async_qp(a.qp->verbs, IBV_EVENT_QP_FATAL);
    rig_run();
    ok_pending(&a.notify);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.notify, ND_SUCCESS);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

/* ---- Release of the queue pair ---- */

static void release_qp(struct qp *qp)
{
    connector_qp_released(qp);
    qp_release(qp);
}

TEST(QueuePair_Release__disconnects)
{
    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    release_qp(a.qp);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_pending(&a.notify);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_pending(&a.disconnect);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.notify, ND_SUCCESS);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 0);
    active_end(&a);
}

TEST(QueuePair_Release__while_disconnecting)
{
    active_established(&a, ib, &nd_policy);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    release_qp(a.qp);
    ok_pending(&a.disconnect);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

/* The release brings everything back; a drain under way has to end as well. */
TEST(QueuePair_Release__while_draining)
{
    active_established(&a, ib, &nd_policy);
    a.qp->hold_drain = true;
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    release_qp(a.qp);
    ok_pending(&a.disconnect);
    rig_drained(a.qp);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

TEST(QueuePair_Release__during_Connect)
{
    union address peer = rig_address("10.1.1.200", 4711);
    OVERLAPPED again = OV_INIT;
    struct qp *other = rig_qp(ib);

    active_request_out(&a, ib, &nd_policy);
    release_qp(a.qp);
    ok_done(&a.connect, ND_CANCELED);
    ok_status(connector_connect(a.c, other, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_done(&again, ND_SUCCESS);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(other->count[RIG_DRAIN], ==, 1);
    active_end(&a);
}

TEST(QueuePair_Release__after_the_reply_and_during_Accept)
{
    active_reply_in(&a, ib, &nd_policy);
    release_qp(a.qp);
    ok_uint(fake_count(FAKE_rdma_reject), ==, 1);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_INVALID);
    active_end(&a);
    passive_reply_out(&p, ib, &nd_policy);
    release_qp(p.qp);
    ok_done(&p.accept, ND_CANCELED);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 0);
    passive_end(&p);
}

TEST(QueuePair_Release__that_no_connector_uses)
{
    struct qp *qp = rig_qp(ib);

    release_qp(qp);
}

/* ---- Release of the connector while the wire has something to finish ---- */

TEST(Release__of_a_standing_connection)
{
    struct rdma_cm_id *id;

    active_established(&a, ib, &nd_policy);
    id = rig_id(a.c);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    rig_drop(a.c);
    ok_done(&a.notify, ND_CANCELED);
    rig_run();
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_uint(a.qp->count[RIG_CLOSE_POSTS], ==, 1);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 0);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) == NULL); /* so that the DREQ is repeated if it is lost */
    fake_cm_simple(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_run();
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) != NULL);
}

TEST(Release__and_the_peer_never_answers)
{
    active_established(&a, ib, &nd_policy);
    rig_drop(a.c);
    rig_run();
    rig_advance(tunables()->disconnect_timeout_ms);
    rig_run();
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
}

TEST(Release__with_Disconnect_pending)
{
    struct rdma_cm_id *id;

    active_established(&a, ib, &nd_policy);
    id = rig_id(a.c);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    rig_drop(a.c);
    ok_done(&a.disconnect, ND_CANCELED);
    a.disconnect.Internal = UNTOUCHED;
    fake_cm_simple(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_run();
    ok_untouched(&a.disconnect);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
}

TEST(Release__while_draining)
{
    active_established(&a, ib, &nd_policy);
    a.qp->hold_drain = true;
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_drop(a.c);
    ok_done(&a.disconnect, ND_CANCELED);
    a.disconnect.Internal = UNTOUCHED;
    rig_drained(a.qp);
    ok_untouched(&a.disconnect);
}
