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

static struct listener *listening(struct adapter *adapter, const char *text, uint16_t port, uint32_t backlog)
{
    union address local = rig_address(text, port);
    struct listener *l;

    ok_status(listener_create(adapter, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &local.sa, (size_t)(local.sa.sa_family == AF_INET ? 16 : 28)), ND_SUCCESS);
    ok_status(listener_listen(l, backlog), ND_SUCCESS);
    return l;
}

static void drop(struct listener *l)
{
    listener_release(l);
    listener_unref(l);
    rig_run();
}

static uint16_t port_of(struct listener *l)
{
    union address got;
    ULONG length = sizeof(got);

    ok_status(listener_get_local_address(l, &got.sa, &length), ND_SUCCESS);
    return address_port(&got.sa);
}

TEST(Listener__bind_and_listen_statuses)
{
    union address own = rig_address("10.1.1.1", 0), foreign = rig_address("10.1.1.9", 0),
                  port = rig_address("10.1.1.1", 77);
    struct listener *l;
    ULONG length = 16;

    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_INVALID_DEVICE_STATE);
    ok_status(listener_get_local_address(l, NULL, &length), ND_INVALID_DEVICE_STATE);
    ok_uint(length, ==, 0);
    ok_status(listener_bind(l, NULL, 16), ND_INVALID_ADDRESS);
    ok_status(listener_bind(l, &own.sa, 3), ND_INVALID_ADDRESS);
    ok_status(listener_bind(l, &foreign.sa, 16), ND_INVALID_ADDRESS);
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRINUSE);
    ok_status(listener_bind(l, &port.sa, 16), ND_SHARING_VIOLATION);
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EACCES);
    ok_status(listener_bind(l, &port.sa, 16), ND_SHARING_VIOLATION);
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRNOTAVAIL);
    ok_status(listener_bind(l, &own.sa, 16), ND_TOO_MANY_ADDRESSES);
    fake_fail(FAKE_rdma_bind_addr, 1, ENOMEM);
    ok_status(listener_bind(l, &own.sa, 16), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_fail(1);
    ok_status(listener_bind(l, &own.sa, 16), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_status(listener_get_local_address(l, NULL, &length), ND_INVALID_DEVICE_STATE);
    ok_status(listener_bind(l, &own.sa, 16), ND_SUCCESS);
    ok_status(listener_bind(l, &own.sa, 16), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(listener_get_local_address(l, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(listener_get_local_address(l, NULL, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 16);
    ok_uint(port_of(l), !=, 0);
    fake_fail(FAKE_rdma_listen, 1, EADDRINUSE);
    ok_status(listener_listen(l, 0), ND_SHARING_VIOLATION);
    fake_fail(FAKE_rdma_listen, 1, ENOMEM);
    ok_status(listener_listen(l, 0), ND_INSUFFICIENT_RESOURCES);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_int(fake_log_find(FAKE_rdma_listen, -1)->arg.listen.backlog, ==, 0);
    ok_status(listener_listen(l, 0), ND_INVALID_DEVICE_STATE);
    drop(l);
}

TEST(Listener__second_listener_on_the_port)
{
    union address local = rig_address("10.1.1.1", 4000);
    struct listener *first = listening(ib, "10.1.1.1", 4000, 0), *second;

    ok_status(listener_create(ib, file, &second), ND_SUCCESS);
    ok_status(listener_bind(second, &local.sa, 16), ND_SHARING_VIOLATION);
    drop(first);
    ok_status(listener_bind(second, &local.sa, 16), ND_SUCCESS);
    drop(second);
}

/* The ids of the old listener are still on their way to the kernel. */
TEST(Listener__bind_the_port_of_one_just_released)
{
    union address local = rig_address("10.1.1.1", 4000);
    struct listener *first = listening(ib, "10.1.1.1", 4000, 0), *second;
    struct connector *c = rig_connector(ib, &nd_policy), *d = rig_connector(ib, &nd_policy);

    listener_release(first);
    listener_unref(first);
    ok_status(listener_create(ib, file, &second), ND_SUCCESS);
    ok_status(listener_bind(second, &local.sa, 16), ND_SUCCESS);
    listener_release(second);
    listener_unref(second);
    ok_status(connector_bind(c, &local.sa, 16), ND_SUCCESS);
    rig_drop(c);
    ok_status(listener_create(ib, file, &second), ND_SUCCESS);
    ok_status(listener_bind(second, &local.sa, 16), ND_SUCCESS);
    drop(second);
    /* Nothing on its way: refused at once. */
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRINUSE);
    ok_status(connector_bind(d, &local.sa, 16), ND_SHARING_VIOLATION);
    rig_drop(d);
}

/* rdma_cm's wildcard would span every device. */
TEST(Listener__any_address_is_every_address_of_the_adapter)
{
    struct listener *l;
    unsigned before;

    ok(fake_address_add("10.1.1.2", "fake_ib", 1));
    address_list_invalidate();
    before = fake_live(FAKE_OBJ_ID);
    l = listening(ib, "0.0.0.0", 0, 0);
    ok_uint(fake_live(FAKE_OBJ_ID), ==, before + 2);
    for (int i = -2; i < 0; i++) {
        struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, i);

        ok_uint(ntohs(rdma_get_src_port(id)), ==, port_of(l));
        ok(!address_is_any(rdma_get_local_addr(id)));
        ok(fake_cm_state(id) == FAKE_CM_LISTEN);
    }
    drop(l);
}

/* The port that was free on the first address is taken on the second: all over with another one. */
TEST(Listener__any_address_and_a_port_in_the_way)
{
    struct listener *l;
    unsigned before, binds;

    ok(fake_address_add("10.1.1.2", "fake_ib", 1));
    address_list_invalidate();
    address_list_put(address_list_get()); /* which binds, too, to find each address's device */
    before = fake_live(FAKE_OBJ_ID);
    binds = fake_count(FAKE_rdma_bind_addr);
    fake_fail(FAKE_rdma_bind_addr, 2, EADDRINUSE);
    l = listening(ib, "0.0.0.0", 0, 0);
    rig_run(); /* the ids of the first attempt are gone */
    /* Both anew, and on one port. */
    ok_uint(fake_count(FAKE_rdma_bind_addr), ==, binds + 4);
    ok_uint(fake_live(FAKE_OBJ_ID), ==, before + 2);
    for (int i = -2; i < 0; i++) {
        struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, i);

        ok_uint(ntohs(rdma_get_src_port(id)), ==, port_of(l));
        ok(!address_is_any(rdma_get_local_addr(id)));
        ok(fake_cm_state(id) == FAKE_CM_LISTEN);
    }
    ok(!address_equal(rdma_get_local_addr(fake_object(FAKE_OBJ_ID, -2)),
                      rdma_get_local_addr(fake_object(FAKE_OBJ_ID, -1))));
    drop(l);
}

TEST(Listener__listen_fails_half_way)
{
    union address any = rig_address("0.0.0.0", 4000);
    struct connector *c = rig_connector(ib, &nd_policy);
    struct listener *l;
    OVERLAPPED ov = OV_INIT;

    ok(fake_address_add("10.1.1.2", "fake_ib", 1));
    address_list_invalidate();
    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &any.sa, 16), ND_SUCCESS);
    fake_fail(FAKE_rdma_listen, 2, EADDRINUSE);
    ok_status(listener_listen(l, 0), ND_SHARING_VIOLATION);
    ok_status(listener_get_connection_request(l, c, &ov), ND_INVALID_DEVICE_STATE);
    rig_drop(c);
    drop(l);
}

TEST(Listener__ipv6)
{
    struct listener *l = listening(ib, "fd00:1:1::1", 0, 0);
    struct connector *c = rig_connector(ib, &nd_policy);
    OVERLAPPED ov = OV_INIT;
    union address peer, wanted = rig_address("fd00:1:1::200", 0);
    ULONG length = 0;

    ok_status(listener_get_connection_request(l, c, &ov), ND_PENDING);
    fake_cm_request(fake_object(FAKE_OBJ_ID, -1), NULL, "fd00:1:1::200");
    rig_run();
    ok_done(&ov, ND_SUCCESS);
    ok_status(connector_get_peer_address(c, NULL, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 28);
    ok_status(connector_get_peer_address(c, &peer.sa, &length), ND_SUCCESS);
    ok(address_equal(&peer.sa, &wanted.sa));
    rig_drop(c);
    drop(l);
}

/* The request names no scope, the application needs one. */
TEST(Listener__link_local)
{
    struct connector *c = rig_connector(ib, &nd_policy);
    union address own = rig_address("fe80::5", 0), address;
    ULONG length = sizeof(address);
    OVERLAPPED ov = OV_INIT;
    struct listener *l;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    own.v6.sin6_scope_id = 3;
    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &own.sa, 28), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_status(listener_get_connection_request(l, c, &ov), ND_PENDING);
    fake_cm_request(fake_object(FAKE_OBJ_ID, -1), NULL, "fe80::9");
    rig_run();
    ok_done(&ov, ND_SUCCESS);
    ok_status(connector_get_local_address(c, &address.sa, &length), ND_SUCCESS);
    ok(address_equal(&address.sa, &own.sa));
    ok_uint(address.v6.sin6_scope_id, ==, 3);
    ok_status(connector_get_peer_address(c, &address.sa, &length), ND_SUCCESS);
    ok_uint(address.v6.sin6_scope_id, ==, 3);
    rig_drop(c);
    drop(l);
}

/* An adapter can be opened by such an address: then it can be listened on, too. */
TEST(Listener__link_local_without_a_scope)
{
    union address own = rig_address("fe80::5", 4000), address;
    ULONG length = sizeof(address);
    struct listener *l;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &own.sa, 28), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_status(listener_get_local_address(l, &address.sa, &length), ND_SUCCESS);
    ok(address_equal(&address.sa, &own.sa));
    ok_uint(address.v6.sin6_scope_id, ==, 3);
    ok_uint(address_port(&address.sa), ==, 4000);
    drop(l);
}

TEST(GetConnectionRequest__statuses)
{
    union address local = rig_address("10.1.1.1", 0);
    struct connector *fresh = rig_connector(ib, &nd_policy), *bound = rig_connector(ib, &nd_policy),
                     *other = rig_connector(iw, &nd_policy);
    struct listener *l, *second = listening(ib, "10.1.1.1", 0, 0);
    OVERLAPPED ov = OV_INIT, again = OV_INIT;
    struct active a;

    active_reply_in(&a, ib, &nd_policy);
    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_get_connection_request(l, fresh, &ov), ND_INVALID_DEVICE_STATE);
    ok_status(listener_bind(l, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_get_connection_request(l, fresh, &ov), ND_INVALID_DEVICE_STATE);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_status(listener_get_connection_request(l, fresh, NULL), ND_INVALID_PARAMETER);
    ok_status(listener_get_connection_request(l, other, &ov), ND_INVALID_PARAMETER_1);
    ok_status(connector_bind(bound, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_get_connection_request(l, bound, &ov), ND_CONNECTION_ACTIVE);
    ok_status(listener_get_connection_request(l, a.c, &ov), ND_CONNECTION_ACTIVE);
    ok_untouched(&ov);
    ok_status(listener_get_connection_request(l, fresh, &ov), ND_PENDING);
    ok_status(listener_get_connection_request(l, fresh, &again), ND_CONNECTION_ACTIVE);
    ok_status(listener_get_connection_request(second, fresh, &again), ND_CONNECTION_ACTIVE);
    /* A queued connector is of no other use. */
    ok_status(connector_bind(fresh, &local.sa, 16), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(connector_connect(fresh, a.qp, &local.sa, 16, 0, 0, NULL, 0, &again), ND_CONNECTION_ACTIVE);
    ok_status(connector_cancel(fresh), ND_SUCCESS);
    ok_pending(&ov);
    /* Taken back it is fresh again. */
    ok_status(listener_cancel(l), ND_SUCCESS);
    ok_done(&ov, ND_CANCELED);
    ok_status(listener_get_connection_request(second, fresh, &again), ND_PENDING);
    drop(second);
    ok_done(&again, ND_CANCELED);
    ok_status(connector_bind(fresh, &local.sa, 16), ND_SUCCESS);
    rig_drop(fresh);
    rig_drop(bound);
    rig_drop(other);
    drop(l);
    active_end(&a);
}

/* Requests before and after the calls: both are served in order. */
TEST(GetConnectionRequest__order)
{
    struct listener *l = listening(ib, "10.1.1.1", 0, 1);
    struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, -1), *child[4];
    struct connector *c[4];
    OVERLAPPED ov[4];

    for (int i = 0; i < 4; i++) {
        c[i] = rig_connector(ib, &nd_policy);
        ov[i] = (OVERLAPPED)OV_INIT;
    }
    for (int i = 0; i < 2; i++) {
        child[i] = fake_cm_request(id, NULL, NULL);
        rig_run();
    }
    for (int i = 0; i < 4; i++)
        ok_status(listener_get_connection_request(l, c[i], &ov[i]), ND_PENDING);
    for (int i = 0; i < 2; i++) {
        ok_done(&ov[i], ND_SUCCESS);
        ok_ptr(rig_id(c[i]), ==, child[i]);
    }
    ok_pending(&ov[2]);
    for (int i = 2; i < 4; i++) {
        child[i] = fake_cm_request(id, NULL, NULL);
        rig_run();
        ok_done(&ov[i], ND_SUCCESS);
        ok_ptr(rig_id(c[i]), ==, child[i]);
    }
    drop(l); /* the connectors are independent of it */
    ok_int(c[3]->wire.state, ==, WIRE_REQUEST_IN);
    for (int i = 0; i < 4; i++)
        rig_drop(c[i]);
}

TEST(Listener__overflow_is_rejected)
{
    struct listener *l;
    struct rdma_cm_id *id, *last = NULL;
    struct connector *c = rig_connector(ib, &nd_policy);
    OVERLAPPED ov = OV_INIT;

    ok_int(setenv("NDVERBS_LISTEN_QUEUE_MAX", "3", 1), ==, 0);
    tunables_reload();
    l = listening(ib, "10.1.1.1", 0, 2);
    id = fake_object(FAKE_OBJ_ID, -1);
    for (int i = 0; i < 5; i++)
        fake_cm_request(id, NULL, NULL);
    rig_run();
    ok_uint(fake_count(FAKE_rdma_reject), ==, 0);
    last = fake_cm_request(id, NULL, NULL);
    rig_run();
    ok_uint(fake_count(FAKE_rdma_reject), ==, 1);
    ok(fake_log_find_on(FAKE_rdma_reject, last, 0) != NULL);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, last, 0) != NULL);
    /* One is fetched: there is room for one. */
    ok_status(listener_get_connection_request(l, c, &ov), ND_PENDING);
    ok_done(&ov, ND_SUCCESS);
    fake_cm_request(id, NULL, NULL);
    rig_run();
    ok_uint(fake_count(FAKE_rdma_reject), ==, 1);
    drop(l); /* the five unfetched ones are rejected */
    ok_uint(fake_count(FAKE_rdma_reject), ==, 6);
    rig_drop(c);
    unsetenv("NDVERBS_LISTEN_QUEUE_MAX");
    tunables_reload();
}

TEST(Listener__no_memory_for_a_request)
{
    struct listener *l = listening(ib, "10.1.1.1", 0, 0);
    struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, -1), *child;

    for (unsigned n = 1; n <= 2; n++) {
        child = fake_cm_request(id, NULL, NULL);
        fake_alloc_fail(n);
        rig_events();
        fake_alloc_clear();
        rig_run();
        ok(fake_log_find_on(FAKE_rdma_destroy_id, child, 0) != NULL);
    }
    ok_uint(fake_count(FAKE_rdma_reject), ==, 1); /* without a cmid the kernel does it */
    drop(l);
}

/* A request that was read when the listener went is rejected by the destruction of its id. */
TEST(Listener__release_with_a_request_on_its_way)
{
    struct listener *l = listening(ib, "10.1.1.1", 0, 0);
    struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, -1), *child = fake_cm_request(id, NULL, NULL);

    listener_release(l);
    listener_unref(l);
    rig_events();
    rig_run();
    ok(fake_log_find_on(FAKE_rdma_destroy_id, child, 0) != NULL);
}

/* The connector goes while it waits. */
TEST(GetConnectionRequest__release_of_the_connector)
{
    struct listener *l = listening(ib, "10.1.1.1", 0, 0);
    struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, -1), *child;
    struct connector *first = rig_connector(ib, &nd_policy), *second = rig_connector(ib, &nd_policy);
    OVERLAPPED one = OV_INIT, two = OV_INIT;

    ok_status(listener_get_connection_request(l, first, &one), ND_PENDING);
    ok_status(listener_get_connection_request(l, second, &two), ND_PENDING);
    rig_drop(first);
    ok_done(&one, ND_CANCELED);
    ok_pending(&two);
    child = fake_cm_request(id, NULL, NULL);
    rig_run();
    ok_done(&two, ND_SUCCESS);
    ok_ptr(rig_id(second), ==, child);
    rig_drop(second);
    drop(l);
}

TEST(CancelIoEx__one_GetConnectionRequest)
{
    HANDLE handle = file_open_handle(file, 0);
    struct listener *l = listening(ib, "10.1.1.1", 0, 0);
    struct connector *c[3];
    OVERLAPPED ov[3];

    for (int i = 0; i < 3; i++) {
        c[i] = rig_connector(ib, &nd_policy);
        ov[i] = (OVERLAPPED)OV_INIT;
        ok_status(listener_get_connection_request(l, c[i], &ov[i]), ND_PENDING);
    }
    ok(CancelIoEx(handle, &ov[1]));
    ok_pending(&ov[0]);
    ok_done(&ov[1], ND_CANCELED);
    ok_pending(&ov[2]);
    fake_cm_request(fake_object(FAKE_OBJ_ID, -1), NULL, NULL);
    rig_run();
    ok_done(&ov[0], ND_SUCCESS);
    drop(l);
    ok_done(&ov[2], ND_CANCELED);
    for (int i = 0; i < 3; i++)
        rig_drop(c[i]);
    CloseHandle(handle);
}

TEST(Listener__device_removal)
{
    struct listener *l = listening(ib, "10.1.1.1", 0, 0);
    struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, -1);
    struct connector *c = rig_connector(ib, &nd_policy);
    OVERLAPPED ov = OV_INIT;

    fake_cm_request(id, NULL, NULL);
    rig_run();
    ok_status(listener_get_connection_request(l, c, &ov), ND_PENDING);
    ok_done(&ov, ND_SUCCESS);
    rig_drop(c);
    c = rig_connector(ib, &nd_policy);
    ok_status(listener_get_connection_request(l, c, &ov), ND_PENDING);
    fake_cm_simple(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    rig_run();
    ok_done(&ov, ND_DEVICE_REMOVED);
    ok(fake_log_find_on(FAKE_rdma_destroy_id, id, 0) != NULL); /* the kernel waits for it */
    ok_status(listener_get_connection_request(l, c, &ov), ND_DEVICE_REMOVED);
    rig_drop(c);
    drop(l);
}
