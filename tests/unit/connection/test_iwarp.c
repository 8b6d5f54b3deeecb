/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "rig.h"

/* iWARP: the connect call blocks (a worker makes it), ESTABLISHED is the reply, the kernel moves the queue pair, and a
 * failed attempt costs the queue pair. */

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

/* siw keeps what is posted too soon, and sends it later although the post failed. */
static void not_connected_yet(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    ok_uint(p.qp->count[RIG_CONNECTED], ==, 0);
}

TEST(iWARP__connect)
{
    ULONG in, out, length = 0;
    int mask;

    active_reply_in(&a, iw, &nd_policy);
    ok_status(connector_get_read_limits(a.c, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 1); /* the event has them the other way round */
    ok_uint(out, ==, 2);
    ok_status(connector_get_private_data(a.c, NULL, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 5); /* exact */
    ok_uint(a.qp->count[RIG_CONNECTED], ==, 0);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_done(&a.complete, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_CONNECTED], ==, 1);
    ok_uint(a.qp->reads, ==, 2);
    ok_uint(fake_count(FAKE_rdma_establish), ==, 0);
    ok(fake_qp_attr(a.qp->verbs, IBV_QPS_INIT, &mask) != NULL);
    ok(fake_log_find(FAKE_rdma_connect, -1)->on_loop == false);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 1);
    active_end(&a);
}

TEST(iWARP__accept)
{
    ULONG in, out;

    passive_reply_out(&p, iw, &nd_policy);
    ok_uint(p.qp->count[RIG_CONNECTED], ==,
            1); /* the kernel has: data may be answered before ESTABLISHED is heard of */
    ok(fake_qp_attr(p.qp->verbs, IBV_QPS_RTR, NULL) == NULL || fake_count(FAKE_rdma_init_qp_attr) == 1);
    passive_end(&p);
    fake_after(FAKE_rdma_accept, not_connected_yet, NULL);
    passive_established(&p, iw, &nd_policy);
    ok_uint(p.qp->count[RIG_CONNECTED], ==, 1);
    ok_status(connector_get_read_limits(p.c, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 4); /* what the kernel made of it, not what was asked */
    ok_uint(out, ==, 3);
    ok_uint(p.qp->reads, ==, 3);
    passive_end(&p);
}

/* ---- Failures ---- */

TEST(iWARP__a_failed_attempt_replaces_the_queue_pair)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
        NTSTATUS wanted;
        bool data;
    } rows[] = {
        { RDMA_CM_EVENT_REJECTED, -ECONNRESET, ND_CONNECTION_REFUSED, true },
        { RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, ND_CONNECTION_REFUSED, true },
        { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ND_IO_TIMEOUT, false },
        { RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH, ND_HOST_UNREACHABLE, false },
        { RDMA_CM_EVENT_UNREACHABLE, -ENETUNREACH, ND_NETWORK_UNREACHABLE, false },
        { RDMA_CM_EVENT_CONNECT_ERROR, -EIO, ND_CONNECTION_ABORTED, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_cm cm = { .event = rows[i].event,
                              .status = rows[i].status,
                              .private_data = "why",
                              .private_data_len = rows[i].data ? 3 : 0 };
        ULONG length = 0;

        active_request_out(&a, iw, &nd_policy);
        fake_cm_event(rig_id(a.c), &cm);
        rig_run();
        ok_done(&a.connect, rows[i].wanted);
        ok_uint(a.qp->count[RIG_REPLACE], ==, 1);
        ok(rig_qp_ready(a.qp));
        if (rows[i].data) {
            ok_status(connector_get_private_data(a.c, NULL, &length), ND_BUFFER_OVERFLOW);
            ok_uint(length, ==, 3);
        }
        active_end(&a);
    }
}

TEST(iWARP__the_address_fails_and_the_queue_pair_stays)
{
    active_start(&a, iw, &nd_policy);
    event(a.c, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
    ok_done(&a.connect, ND_HOST_UNREACHABLE);
    ok_uint(a.qp->count[RIG_REPLACE], ==, 0);
    ok(rig_qp_ready(a.qp));
    active_end(&a);
}

/* siw reports the TCP error from the call itself. */
TEST(iWARP__the_call_fails)
{
    static const struct {
        int error;
        NTSTATUS wanted;
    } rows[] = {
        { ECONNREFUSED, ND_CONNECTION_REFUSED }, { ETIMEDOUT, ND_IO_TIMEOUT },
        { EHOSTUNREACH, ND_HOST_UNREACHABLE },   { ENETUNREACH, ND_NETWORK_UNREACHABLE },
        { ECONNRESET, ND_CONNECTION_REFUSED },   { EINVAL, ND_CONNECTION_ABORTED },
        { EPIPE, ND_CONNECTION_REFUSED },        { ENOMEM, ND_CONNECTION_REFUSED },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_fail(FAKE_rdma_connect, 1, rows[i].error);
        active_start(&a, iw, &nd_policy);
        event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        ok_msg((NTSTATUS)a.connect.Internal == rows[i].wanted, "row %zu: 0x%x", i, (unsigned)a.connect.Internal);
        ok(rig_qp_ready(a.qp));
        active_end(&a);
    }
}

/* The TCP connection of the last attempt is still there: once it is gone, this one goes on. */
TEST(iWARP__the_ports_are_busy)
{
    fake_fail(FAKE_rdma_connect, 1, EADDRNOTAVAIL);
    fake_fail(FAKE_rdma_connect, 2, EADDRNOTAVAIL);
    active_start(&a, iw, &nd_policy);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_pending(&a.connect);
    ok_uint(fake_count(FAKE_rdma_connect), ==, 3);
    event(a.c, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_done(&a.connect, ND_SUCCESS);
    active_end(&a);
}

static void request_again(void)
{
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* It stays: the attempt goes on from another port, with the same queue pair, and shows the port that the application knows. */
TEST(iWARP__the_ports_stay_busy)
{
    union address before, after;
    ULONG size = sizeof(before);
    struct rdma_cm_id *first;

    fake_fail_always(FAKE_rdma_connect, EADDRNOTAVAIL);
    active_start(&a, iw, &nd_policy);
    first = rig_id(a.c);
    ok_status(connector_get_local_address(a.c, &before.sa, &size), ND_SUCCESS);
    request_again();
    ok_pending(&a.connect);
    ok(rig_id(a.c) != first);
    ok_uint(a.qp->count[RIG_REPLACE], ==, 0);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, first, 0) != NULL);
    ok(rdma_get_src_port(rig_id(a.c)) != before.v4.sin_port);
    fake_fail_clear(FAKE_rdma_connect);
    request_again();
    event(a.c, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_done(&a.connect, ND_SUCCESS);
    size = sizeof(after);
    ok_status(connector_get_local_address(a.c, &after.sa, &size), ND_SUCCESS);
    ok_uint(after.v4.sin_port, ==, before.v4.sin_port);
    active_end(&a);
}

/* The other one is busy, too, or there is none. */
TEST(iWARP__no_port_is_free)
{
    for (int way = 0; way < 4; way++) {
        fake_fail_always(FAKE_rdma_connect, EADDRNOTAVAIL);
        active_start(&a, iw, &nd_policy);
        if (way == 1)
            fake_fail(FAKE_rdma_bind_addr, 1, EADDRINUSE);
        if (way == 2)
            fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
        if (way == 3) {
            event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
            fake_fail(FAKE_rdma_resolve_addr, 1, ENOMEM);
            event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        } else {
            request_again();
        }
        if (way == 0) {
            ok_pending(&a.connect);
            request_again();
        }
        fake_fail_clear(FAKE_rdma_connect);
        ok_done(&a.connect, ND_CONNECTION_ACTIVE);
        ok_uint(a.qp->count[RIG_UNCLAIM], ==, 1);
        ok(rig_qp_ready(a.qp));
        active_end(&a);
    }
}

TEST(iWARP__cancel_while_another_port_is_tried)
{
    fake_fail_always(FAKE_rdma_connect, EADDRNOTAVAIL);
    active_start(&a, iw, &nd_policy);
    request_again();
    ok_pending(&a.connect);
    fake_fail_clear(FAKE_rdma_connect);
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.connect, ND_CANCELED);
    ok_uint(a.qp->count[RIG_UNCLAIM], ==, 1);
    active_end(&a);
}

/* Each attempt has a record of its own, which the worker keeps if the connector goes on without it. */
TEST(iWARP__connect_out_of_memory)
{
    union address local = rig_address("10.1.2.1", 0), peer = rig_address("10.1.2.200", 4711);
    struct connector *c = rig_connector(iw, &nd_policy);
    struct qp *qp = rig_qp(iw);
    OVERLAPPED ov = OV_INIT;

    ok_status(connector_bind(c, &local.sa, 16), ND_SUCCESS);
    fake_alloc_fail(1); /* the request */
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_INSUFFICIENT_RESOURCES);
    ok(!fake_alloc_pending());
    fake_alloc_fail(2);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_NO_MEMORY);
    ok(!fake_alloc_pending());
    ok_untouched(&ov);
    ok(rig_qp_ready(qp));
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_PENDING);
    rig_drop(c);
}

TEST(iWARP__no_worker_left)
{
    active_start(&a, iw, &nd_policy);
    rig_lane_full(true);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_done(&a.connect, ND_INSUFFICIENT_RESOURCES);
    ok(rig_qp_ready(a.qp));
    rig_lane_full(false);
    active_end(&a);
}

/* The replacement fails: the queue pair is the application's to see (its receives come back), nothing leaks. */
TEST(iWARP__replacing_fails)
{
    active_request_out(&a, iw, &nd_policy);
    a.qp->replace_error = ENOMEM;
    event(a.c, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
    ok_done(&a.connect, ND_CONNECTION_REFUSED);
    ok_uint(a.qp->count[RIG_UNCLAIM], ==, 1);
    active_end(&a);
}

/* ---- While the call blocks ---- */

static void during_cancel(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.connect, ND_CANCELED);         /* at once, whatever the call does */
    ok_uint(a.qp->count[RIG_UNCLAIM], ==, 0); /* the kernel still has the queue pair */
}

TEST(iWARP__cancel_during_the_call)
{
    union address peer = rig_address("10.1.2.200", 4711);
    struct rdma_cm_id *id;
    OVERLAPPED again = OV_INIT;

    active_start(&a, iw, &nd_policy);
    id = rig_id(a.c);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    fake_on(FAKE_rdma_connect, during_cancel, NULL);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_done(&a.connect, ND_CANCELED);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) != NULL); /* by the time the call was back */
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0)->seq > fake_log_find_on(FAKE_rdma_connect, id, 0)->seq);
    ok(fake_log_find_on(FAKE_rdma_set_option, id, -1)->seq < fake_log_find_on(FAKE_rdma_connect, id, 0)->seq);
    ok_uint(a.qp->count[RIG_REPLACE], ==, 1);
    ok(rig_qp_ready(a.qp));
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    active_end(&a);
    ok_done(&again, ND_CANCELED);
}

static void during_release(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    rig_drop(a.c);
    ok_done(&a.connect, ND_CANCELED);
}

TEST(iWARP__release_during_the_call)
{
    active_start(&a, iw, &nd_policy);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    fake_on(FAKE_rdma_connect, during_release, NULL);
    fake_cm_simple(rig_id(a.c), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    rig_run();
    ok(rig_qp_ready(a.qp));
}

static void during_qp_release(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    connector_qp_released(a.qp);
    qp_release(a.qp);
    ok_done(&a.connect, ND_CANCELED);
}

/* The worker is about to name the queue pair by its number: that must not be the number of another one by then, which the
 * kernel would connect. */
TEST(iWARP__queue_pair_released_before_the_call)
{
    const struct fake_call *call;
    uint32_t number;

    active_start(&a, iw, &nd_policy);
    number = qp_number(a.qp);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    fake_on(FAKE_rdma_connect, during_qp_release, NULL);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    call = fake_log_find(FAKE_rdma_connect, 0);
    ok(call && call->arg.conn.param.qp_num == number);
    ok(fake_log_find(FAKE_ibv_destroy_qp, -1)->seq > call->seq);
    ok(fake_qp_from_num(number) == NULL);
    active_end(&a);
}

/* Events that overtake the return of the call wait for it. */
static void during_established(struct fake_call *call, void *arg)
{
    struct fake_cm established = { .event = RDMA_CM_EVENT_ESTABLISHED, .responder_resources = 5, .initiator_depth = 6 };

    (void)call;
    (void)arg;
    fake_cm_event(rig_id(a.c), &established);
    fake_cm_simple(rig_id(a.c), RDMA_CM_EVENT_DISCONNECTED, 0);
    while (rig_events())
        ;
    ok_pending(&a.connect);
}

TEST(iWARP__events_before_the_call_returns)
{
    active_start(&a, iw, &nd_policy);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    fake_after(FAKE_rdma_connect, during_established, NULL);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_done(&a.connect, ND_SUCCESS);
    ok_int(a.c->wire.state, ==, WIRE_OVER);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_ABORTED);
    active_end(&a);
}

static void during_removal(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    fake_cm_simple(rig_id(a.c), RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    while (rig_events())
        ;
    ok_done(&a.connect, ND_DEVICE_REMOVED);
}

static void connect_sees_removal(fake_hook during)
{
    active_start(&a, iw, &nd_policy);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    fake_on(FAKE_rdma_connect, during, NULL);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_done(&a.connect, ND_DEVICE_REMOVED);
    active_end(&a);
}

TEST(iWARP__device_removed_during_the_call)
{
    connect_sees_removal(during_removal);
}

/* The flag that says so is set first, and told later. */
static void removal_begins(struct fake_call *call, void *arg)
{
    (void)arg;
    __atomic_store_n(&iw->device->removed, 1, __ATOMIC_RELEASE);
    call->result = EADDRNOTAVAIL;
}

TEST(iWARP__device_removed_while_the_ports_are_busy)
{
    connect_sees_removal(removal_begins);
}

/* ---- siw: the reply is passed on a little later ---- */

static void to_settling(void)
{
    struct fake_cm reply = { .event = RDMA_CM_EVENT_ESTABLISHED, .responder_resources = 2, .initiator_depth = 1 };

    iw->device->soft = true;
    active_request_out(&a, iw, &nd_policy);
    fake_cm_event(rig_id(a.c), &reply);
    rig_run();
    ok_pending(&a.connect);
    ok_int(a.c->wire.state, ==, WIRE_REPLY_IN);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_INVALID);
}

TEST(siw__reply_settles)
{
    to_settling();
    ok_uint(rig_timers(), ==, 1);
    rig_advance(1000);
    rig_run();
    ok_done(&a.connect, ND_SUCCESS);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_done(&a.complete, ND_SUCCESS);
    active_end(&a);
}

TEST(siw__peer_closes_before_the_reply_settles)
{
    to_settling();
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.connect, ND_CONNECTION_ABORTED);
    ok(rig_qp_ready(a.qp));
    rig_run();
    ok_uint(rig_timers(), ==, 0);
    active_end(&a);
}

TEST(siw__cancel_before_the_reply_settles)
{
    union address peer = rig_address("10.1.2.200", 4711);
    OVERLAPPED again = OV_INIT;

    to_settling();
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.connect, ND_CANCELED);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok(rig_qp_ready(a.qp));
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    active_end(&a);
}

/* The application has not heard of a reply that it could reject. */
TEST(siw__reject_before_the_reply_settles)
{
    to_settling();
    ok_status(connector_reject(a.c, "no", 2), ND_CONNECTION_INVALID);
    ok_pending(&a.connect);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 0);
    rig_advance(1000);
    rig_run();
    ok_done(&a.connect, ND_SUCCESS);
    ok_status(connector_reject(a.c, "no", 2), ND_SUCCESS);
    active_end(&a);
}

TEST(siw__ends_before_the_reply_settles)
{
    to_settling();
    active_end(&a);
    ok_done(&a.connect, ND_CANCELED);
    to_settling();
    event(a.c, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    ok_done(&a.connect, ND_DEVICE_REMOVED);
    active_end(&a);
    to_settling();
    connector_qp_released(a.qp);
    qp_release(a.qp);
    ok_done(&a.connect, ND_CANCELED);
    active_end(&a);
}

/* ---- After the reply ---- */

TEST(iWARP__reject_by_the_active_side_is_a_disconnect)
{
    active_reply_in(&a, iw, &nd_policy);
    ok_status(connector_reject(a.c, "no", 2), ND_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_reject), ==, 0);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok(rig_qp_ready(a.qp));
    active_end(&a);
    active_reply_in(&a, iw, &nd_policy);
    active_end(&a); /* the last Release does the same */
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 2);
}

TEST(iWARP__the_peer_closes)
{
    passive_established(&p, iw, &nd_policy);
    ok_status(connector_notify_disconnect(p.c, &p.notify), ND_PENDING);
    event(p.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&p.notify, ND_SUCCESS);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 0); /* there is nothing to answer */
    passive_end(&p);
}

/* The peer was first: EINVAL is no failure, and no event need follow. */
TEST(iWARP__disconnect_after_the_peer)
{
    active_established(&a, iw, &nd_policy);
    fake_fail(FAKE_rdma_disconnect, 1, EINVAL);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

TEST(iWARP__accept_fails)
{
    passive_request_in(&p, iw, &nd_policy);
    fake_fail(FAKE_rdma_accept, 1, EINVAL);
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_ABORTED);
    ok_uint(p.qp->count[RIG_REPLACE], ==, 1);
    ok(rig_qp_ready(p.qp));
    passive_end(&p);
    passive_reply_out(&p, iw, &nd_policy);
    event(p.c, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
    ok_done(&p.accept, ND_CONNECTION_ABORTED);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    passive_end(&p);
}
