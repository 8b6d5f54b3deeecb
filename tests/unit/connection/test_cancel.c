/* SPDX-License-Identifier: MIT */
#include <errno.h>

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

static void to_address(void)
{
    active_start(&a, ib, &nd_policy);
}

static void to_route(void)
{
    active_start(&a, ib, &nd_policy);
    active_route(&a);
}

static void to_request_out(void)
{
    active_request_out(&a, ib, &nd_policy);
}

static void to_reply_in(void)
{
    active_reply_in(&a, ib, &nd_policy);
}

static void to_established(void)
{
    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
}

static void to_dreq_out(void)
{
    to_established();
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    rig_run();
}

static void to_draining(void)
{
    to_established();
    a.qp->hold_drain = true;
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void to_dreq_in(void)
{
    to_established();
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void to_over(void)
{
    to_dreq_out();
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void to_refused(void)
{
    active_request_out(&a, ib, &nd_policy);
    event(a.c, RDMA_CM_EVENT_REJECTED, 28);
}

/* What is pending in each state, and what Cancel makes of it. 0: nothing is pending. */
static const struct {
    const char *name;
    void (*enter)(void);
    NTSTATUS connect, notify, disconnect;
    enum wire_state after;
    bool pends_connect, pends_notify, pends_disconnect;
    unsigned drains;
} states[] = {
    { "address", to_address, ND_CANCELED, 0, 0, WIRE_IDLE, true, false, false, 0 },
    { "route", to_route, ND_CANCELED, 0, 0, WIRE_IDLE, true, false, false, 0 },
    { "request out", to_request_out, ND_CANCELED, 0, 0, WIRE_IDLE, true, false, false, 0 },
    { "reply in", to_reply_in, 0, 0, 0, WIRE_REPLY_IN, false, false, false, 0 },
    { "refused", to_refused, 0, 0, 0, WIRE_IDLE, false, false, false, 0 },
    { "established", to_established, 0, ND_CANCELED, 0, WIRE_ESTABLISHED, false, true, false, 0 },
    { "dreq out", to_dreq_out, 0, ND_CANCELED, ND_SUCCESS, WIRE_DREQ_OUT, false, true, true, 1 },
    { "draining", to_draining, 0, 0, ND_SUCCESS, WIRE_OVER, false, false, true, 1 },
    { "dreq in", to_dreq_in, 0, 0, 0, WIRE_OVER, false, false, false, 1 },
    { "over", to_over, 0, 0, 0, WIRE_OVER, false, false, false, 1 },
};

static void check_pending(size_t i, bool yes)
{
    ok_msg(pending(&a.connect) == (yes && states[i].pends_connect), "%s: Connect", states[i].name);
    ok_msg(pending(&a.notify) == (yes && states[i].pends_notify), "%s: NotifyDisconnect", states[i].name);
    ok_msg(pending(&a.disconnect) == (yes && states[i].pends_disconnect), "%s: Disconnect", states[i].name);
}

static void check_results(size_t i, NTSTATUS disconnect)
{
    check_pending(i, false);
    if (states[i].pends_connect)
        ok_done(&a.connect, ND_CANCELED);
    if (states[i].pends_notify)
        ok_done(&a.notify, ND_CANCELED);
    if (states[i].pends_disconnect)
        ok_done(&a.disconnect, disconnect);
}

/* tests/lists: A6. */
TEST(Cancel__in_every_state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        states[i].enter();
        check_pending(i, true);
        ok_status(connector_cancel(a.c), ND_SUCCESS);
        check_results(i, ND_SUCCESS);
        ok_msg(a.c->wire.state == states[i].after, "%s: state %d", states[i].name, a.c->wire.state);
        ok_msg(a.qp->count[RIG_DRAIN] == states[i].drains, "%s: %u drains", states[i].name, a.qp->count[RIG_DRAIN]);
        if (states[i].pends_connect)
            ok(rig_qp_ready(a.qp));
        ok_status(connector_cancel(a.c), ND_SUCCESS);
        rig_drained(a.qp);
        active_end(&a);
    }
}

/* CancelIoEx on each request alone does the same. */
TEST(CancelIoEx__in_every_state)
{
    HANDLE handle = file_open_handle(file, 0);

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        states[i].enter();
        ok_int(CancelIoEx(handle, &a.connect) != 0, ==, states[i].pends_connect);
        ok_int(CancelIoEx(handle, &a.notify) != 0, ==, states[i].pends_notify);
        ok_int(CancelIoEx(handle, &a.disconnect) != 0, ==, states[i].pends_disconnect);
        check_results(i, ND_SUCCESS);
        rig_drained(a.qp);
        active_end(&a);
    }
    CloseHandle(handle);
}

/* tests/lists: D18. */
TEST(Release__in_every_state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        states[i].enter();
        check_pending(i, true);
        connector_ref(a.c);
        rig_drop(a.c);
        check_results(i, ND_CANCELED);
        if (states[i].pends_connect)
            ok(rig_qp_ready(a.qp));
        a.connect.Internal = a.notify.Internal = a.disconnect.Internal = UNTOUCHED;
        rig_run();
        if (a.c->wire.state == WIRE_DREQ_OUT)
            event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
        rig_drained(a.qp);
        rig_run();
        ok_int(a.c->wire.state, ==, WIRE_OVER);
        ok(a.c->wire.cmid == NULL);
        connector_unref(a.c);
        /* Never touched again. */
        ok_untouched(&a.connect);
        ok_untouched(&a.notify);
        ok_untouched(&a.disconnect);
    }
}

TEST(Device_removal__in_every_state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        OVERLAPPED ov = OV_INIT;
        bool had_id;

        states[i].enter();
        had_id = a.c->wire.cmid != NULL;
        if (had_id) {
            event(a.c, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
            check_pending(i, false);
            if (states[i].pends_connect)
                ok_done(&a.connect, ND_DEVICE_REMOVED);
            if (states[i].pends_notify)
                ok_done(&a.notify, ND_DEVICE_REMOVED);
            if (states[i].pends_disconnect)
                ok_done(&a.disconnect, ND_DEVICE_REMOVED);
            ok(a.c->wire.cmid == NULL);
            ok_status(connector_disconnect(a.c, &ov), ND_DEVICE_REMOVED);
            ok_status(connector_notify_disconnect(a.c, &ov), ND_DEVICE_REMOVED);
            ok_status(connector_complete_connect(a.c, &ov), ND_DEVICE_REMOVED);
            ok_status(connector_reject(a.c, NULL, 0), ND_DEVICE_REMOVED);
            ok_status(connector_accept(a.c, a.qp, 0, 0, NULL, 0, &ov), ND_DEVICE_REMOVED);
            ok_untouched(&ov);
            ok_status(connector_cancel(a.c), ND_SUCCESS);
        }
        rig_drained(a.qp);
        active_end(&a);
    }
}

/* The device says so itself, without an event on the ids. */
TEST(Device_removal__by_the_device)
{
    struct active waiting;
    OVERLAPPED ov = OV_INIT;
    struct connector *fresh = rig_connector(ib, &nd_policy);
    struct active other;

    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    passive_reply_out(&p, ib, &nd_policy);
    ok_status(listener_get_connection_request(p.l, fresh, &ov), ND_PENDING);
    active_request_out(&waiting, ib, &nd_policy);
    active_request_out(&other, iw, &nd_policy);
    device_set_removed(ib->device);
    ok_done(&a.notify, ND_DEVICE_REMOVED);
    ok_done(&p.accept, ND_DEVICE_REMOVED);
    ok_done(&ov, ND_DEVICE_REMOVED);
    ok_done(&waiting.connect, ND_DEVICE_REMOVED);
    ok_pending(&other.connect);
    ok_status(connector_notify_disconnect(a.c, &ov), ND_DEVICE_REMOVED);
    ok_status(listener_listen(p.l, 0), ND_DEVICE_REMOVED);
    ok_status(listener_get_connection_request(p.l, fresh, &ov), ND_DEVICE_REMOVED);
    rig_drop(fresh);
    active_end(&a);
    active_end(&waiting);
    active_end(&other);
    passive_end(&p);
}

/* ---- Particular cases ---- */

/* The abandoned attempt is over for the peer; connector and queue pair are as before. */
TEST(Cancel__Connect_and_connect_again)
{
    union address peer = rig_address("10.1.1.200", 4711);
    struct rdma_cm_id *first;
    OVERLAPPED again = OV_INIT;

    active_request_out(&a, ib, &nd_policy);
    first = rig_id(a.c);
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.connect, ND_CANCELED);
    rig_run();
    ok(fake_log_find_on(FAKE_rdma_destroy_id, first, 0) != NULL);
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_done(&again, ND_SUCCESS);
    active_end(&a);
}

/* The peer has to hear of the end of the old attempt first: it refuses a queue pair that it knows already. */
TEST(Release__Connect_by_another_connector)
{
    union address local = rig_address("10.1.1.1", 0), peer = rig_address("10.1.1.200", 4711);
    struct connector *first, *other;
    struct rdma_cm_id *id;
    OVERLAPPED again = OV_INIT;

    active_request_out(&a, ib, &nd_policy);
    id = rig_id(a.c);
    first = a.c;
    other = rig_connector(ib, &nd_policy);
    ok_status(connector_bind(other, &local.sa, 16), ND_SUCCESS);
    rig_drop(first);
    ok_done(&a.connect, ND_CANCELED);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) == NULL);
    ok_status(connector_connect(other, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) != NULL);
    a.c = other;
    active_end(&a);
    ok_done(&again, ND_CANCELED);
}

/* The reply is read but not dispatched yet when Cancel comes: it is nobody's. */
TEST(Cancel__Connect_with_the_reply_on_its_way)
{
    active_request_out(&a, ib, &nd_policy);
    fake_cm_simple(rig_id(a.c), RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.connect, ND_CANCELED);
    rig_run();
    ok_done(&a.connect, ND_CANCELED);
    ok_int(a.c->wire.state, ==, WIRE_IDLE);
    active_end(&a);
}

TEST(Cancel__Accept)
{
    passive_reply_out(&p, ib, &nd_policy);
    ok_status(connector_cancel(p.c), ND_SUCCESS);
    ok_done(&p.accept, ND_CANCELED);
    ok_int(p.c->wire.state, ==, WIRE_OVER);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    rig_run();
    ok(fake_log_find_on(FAKE_rdma_destroy_id, p.child, 0) != NULL);
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_INVALID);
    passive_end(&p);
}

TEST(Release__of_the_passive_side)
{
    struct rdma_cm_id *child;

    passive_request_in(&p, ib, &nd_policy);
    child = p.child;
    passive_end(&p);
    ok_uint(fake_count(FAKE_rdma_reject), ==, 1);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, child, 0) != NULL);
    passive_reply_out(&p, ib, &nd_policy);
    passive_end(&p);
    ok_done(&p.accept, ND_CANCELED);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
}

/* uDAPL: Cancel takes the NotifyDisconnects back, the connection stands, Disconnect works. */
TEST(Cancel__NotifyDisconnects_then_Disconnect)
{
    OVERLAPPED second = OV_INIT;

    active_established(&a, ib, &nd_policy);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    ok_status(connector_notify_disconnect(a.c, &second), ND_PENDING);
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    ok_done(&a.notify, ND_CANCELED);
    ok_done(&second, ND_CANCELED);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&a.disconnect, ND_SUCCESS);
    active_end(&a);
}

/* Packets arrive in the order the calls were made, before Cancel returns (A6). */
TEST(Cancel__is_fifo)
{
    OVERLAPPED many[5], *got;
    HANDLE handle = file_open_handle(file, 0), port;
    ULONG_PTR key;
    DWORD bytes;

    port = CreateIoCompletionPort(handle, NULL, 7, 0);
    ok(port != NULL);
    active_established(&a, ib, &nd_policy);
    while (GetQueuedCompletionStatus(port, &bytes, &key, &got, 0))
        ;
    for (size_t i = 0; i < 5; i++) {
        many[i] = (OVERLAPPED){ 0 };
        ok_status(connector_notify_disconnect(a.c, &many[i]), ND_PENDING);
    }
    ok_status(connector_cancel(a.c), ND_SUCCESS);
    for (size_t i = 0; i < 5; i++) {
        ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
        ok_ptr(got, ==, &many[i]);
        ok_uint(GetLastError(), ==, ERROR_OPERATION_ABORTED);
    }
    active_end(&a);
    CloseHandle(port);
    CloseHandle(handle);
}

/* The teardown of the samples: one OVERLAPPED for two requests, nothing waited for. */
TEST(Release__two_requests_on_one_OVERLAPPED)
{
    struct rdma_cm_id *id;

    active_established(&a, ib, &nd_policy);
    id = rig_id(a.c);
    ok_status(connector_notify_disconnect(a.c, &a.disconnect), ND_PENDING);
    ok_status(connector_disconnect(a.c, &a.disconnect), ND_PENDING);
    rig_drop(a.c);
    ok_done(&a.disconnect, ND_CANCELED);
    a.disconnect.Internal = UNTOUCHED;
    fake_cm_simple(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_run();
    ok_untouched(&a.disconnect);
}

/* In a forked child nothing is touched. */
TEST(Forked_child)
{
    union address local = rig_address("10.1.1.1", 0);
    struct connector *c = rig_connector(ib, &nd_policy), *made;
    struct listener *l;
    struct qp *qp = rig_qp(ib);
    OVERLAPPED ov = OV_INIT;
    unsigned calls;

    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    calls = (unsigned)fake_log_length();
    rig_set_dead(true);
    ok_status(connector_create(ib, file, &nd_policy, &made), ND_DEVICE_REMOVED);
    ok_status(connector_bind(c, &local.sa, 16), ND_DEVICE_REMOVED);
    ok_status(connector_connect(c, qp, &local.sa, 16, 0, 0, NULL, 0, &ov), ND_DEVICE_REMOVED);
    ok_status(connector_complete_connect(c, &ov), ND_DEVICE_REMOVED);
    ok_status(connector_accept(c, qp, 0, 0, NULL, 0, &ov), ND_DEVICE_REMOVED);
    ok_status(connector_reject(c, NULL, 0), ND_DEVICE_REMOVED);
    ok_status(connector_get_read_limits(c, NULL, NULL), ND_DEVICE_REMOVED);
    ok_status(connector_get_private_data(c, NULL, NULL), ND_DEVICE_REMOVED);
    ok_status(connector_get_local_address(c, NULL, NULL), ND_DEVICE_REMOVED);
    ok_status(connector_get_peer_address(c, NULL, NULL), ND_DEVICE_REMOVED);
    ok_status(connector_notify_disconnect(c, &ov), ND_DEVICE_REMOVED);
    ok_status(connector_disconnect(c, &ov), ND_DEVICE_REMOVED);
    ok_status(connector_cancel(c), ND_DEVICE_REMOVED);
    ok_status(listener_bind(l, &local.sa, 16), ND_DEVICE_REMOVED);
    ok_status(listener_listen(l, 0), ND_DEVICE_REMOVED);
    ok_status(listener_get_local_address(l, NULL, NULL), ND_DEVICE_REMOVED);
    ok_status(listener_get_connection_request(l, c, &ov), ND_DEVICE_REMOVED);
    ok_status(listener_cancel(l), ND_DEVICE_REMOVED);
    for (int i = 0; i < 4; i++) {
        ULONG length = 7;

        ok_status(i == 0   ? connector_get_private_data(c, &local, &length)
                  : i == 1 ? connector_get_local_address(c, &local.sa, &length)
                  : i == 2 ? connector_get_peer_address(c, &local.sa, &length)
                           : listener_get_local_address(l, &local.sa, &length),
                  ND_DEVICE_REMOVED);
        ok_uint(length, ==, 0);
    }
    connector_release(c);
    listener_release(l);
    connector_qp_released(qp);
    ok_untouched(&ov);
    ok_uint(fake_log_length(), ==, calls);
    rig_set_dead(false);
    rig_drop(c);
    listener_release(l);
    listener_unref(l);
}
