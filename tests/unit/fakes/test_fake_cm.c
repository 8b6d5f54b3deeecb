/* SPDX-License-Identifier: MIT */

/* The fakes of librdmacm: states, events, the messages between ids of one process. Expectations are the rows of
 * rdma-mapping.md sections 1 to 4 and 14. */

#include "fakes.h"
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_event *event;
static struct rdma_cm_id *listener, *active, *passive;

static struct sockaddr_storage address(const char *text, uint16_t port)
{
    struct sockaddr_storage storage = { 0 };
    struct sockaddr_in *in = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;

    if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else {
        ok_int(inet_pton(AF_INET6, text, &in6->sin6_addr), ==, 1);
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    }
    return storage;
}

static int bind_to(struct rdma_cm_id *id, const char *text, uint16_t port)
{
    struct sockaddr_storage storage = address(text, port);

    return rdma_bind_addr(id, (struct sockaddr *)&storage);
}

static struct rdma_cm_id *new_id(void)
{
    struct rdma_cm_id *id = NULL;

    ok_int(rdma_create_id(channel, &id, &channel, RDMA_PS_TCP), ==, 0);
    return id;
}

static void no_event(void)
{
    struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };

    ok_int(poll(&poll_fd, 1, 0), ==, 0);
    ok_int(fake_cm_queued(channel), ==, 0);
    ok_int(rdma_get_cm_event(channel, &event), ==, -1);
    ok_int(errno, ==, EAGAIN);
}

/* Fetches the next event, which must be this one; it stays in `event` until acked. */
static void expect(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
    struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };

    ok_int(poll(&poll_fd, 1, 0), ==, 1);
    ok_int(rdma_get_cm_event(channel, &event), ==, 0);
    ok_str(rdma_event_str(event->event), rdma_event_str(type));
    if (id)
        ok_ptr(event->id, ==, id);
    ok_int(event->status, ==, status);
}

static void ack(void)
{
    ok_int(rdma_ack_cm_event(event), ==, 0);
}

static void expect_ack(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
    expect(id, type, status);
    ack();
}

static int resolve(struct rdma_cm_id *id, const char *text, uint16_t port)
{
    struct sockaddr_storage storage = address(text, port);

    return rdma_resolve_addr(id, NULL, (struct sockaddr *)&storage, 1000);
}

static void route(struct rdma_cm_id *id, const char *text, uint16_t port)
{
    ok_int(resolve(id, text, port), ==, 0);
    expect_ack(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    ok_int(rdma_resolve_route(id, 1000), ==, 0);
    expect_ack(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static int connect_id(struct rdma_cm_id *id, uint32_t qp_num, const char *data)
{
    struct rdma_conn_param param = { .responder_resources = 3,
                                     .initiator_depth = 5,
                                     .retry_count = 6,
                                     .rnr_retry_count = 7,
                                     .private_data = data,
                                     .private_data_len = (uint8_t)strlen(data),
                                     .qp_num = qp_num };

    return rdma_connect(id, &param);
}

static int accept_id(struct rdma_cm_id *id, uint32_t qp_num, const char *data)
{
    struct rdma_conn_param param = { .responder_resources = 4,
                                     .initiator_depth = 2,
                                     .rnr_retry_count = 6,
                                     .private_data = data,
                                     .private_data_len = (uint8_t)strlen(data),
                                     .qp_num = qp_num };

    return rdma_accept(id, &param);
}

static void listen_on(const char *text, uint16_t port, int backlog)
{
    listener = new_id();
    ok_int(bind_to(listener, text, port), ==, 0);
    ok_int(rdma_listen(listener, backlog), ==, 0);
}

/* An active id whose request has reached the listener as `passive`. */
static void requested(void)
{
    fake_wire(true);
    listen_on("10.1.1.1", 7000, 0);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 0x21, "hello"), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    ok_ptr(event->listen_id, ==, listener);
    passive = event->id;
    ack();
}

static void replied(void)
{
    requested();
    ok_int(accept_id(passive, 0x22, "welcome"), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
}

static void established(void)
{
    replied();
    ok_int(rdma_establish(active), ==, 0);
    expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    no_event();
}

static void destroy(struct rdma_cm_id **id)
{
    if (*id)
        ok_int(rdma_destroy_id(*id), ==, 0);
    *id = NULL;
}

SETUP
{
    fake_reset();
    channel = rdma_create_event_channel();
    ok(channel);
    ok_int(fcntl(channel->fd, F_SETFL, O_NONBLOCK), ==, 0);
}

TEARDOWN
{
    destroy(&active);
    destroy(&passive);
    destroy(&listener);
    rdma_destroy_event_channel(channel);
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
    ok_int(fake_open_fds(), ==, 0);
}

TEST(bind__devices_and_errors)
{
    active = new_id();
    ok_int(bind_to(active, "10.9.9.9", 0), ==, -1);
    ok_int(errno, ==, EADDRNOTAVAIL);
    ok(fake_address_add("10.9.9.9", NULL, 0));
    ok_int(bind_to(active, "10.9.9.9", 0), ==, -1);
    ok_int(errno, ==, ENODEV);
    ok_int(bind_to(active, "fd00:1:1::1", 0), ==, 0);
    ok_str(active->verbs->device->name, "fake_ib");
    ok_int(active->port_num, ==, 1);
    ok(rdma_get_src_port(active) != 0);
    ok_ptr(active->context, ==, &channel);
    destroy(&active);
    active = new_id();
    ok_int(bind_to(active, "127.0.0.1", 0), ==, 0);
    ok_ptr(active->verbs, ==, NULL);
    ok_int(bind_to(active, "10.1.1.1", 0), ==, -1);
    ok_int(errno, ==, EINVAL);
}

TEST(bind__port_clashes)
{
    int on = 1, off = 0;

    active = new_id();
    passive = new_id();
    ok_int(bind_to(active, "10.1.1.1", 5000), ==, 0);
    ok_int(bind_to(passive, "10.1.1.1", 5000), ==, -1);
    ok_int(errno, ==, EADDRINUSE);
    ok_int(bind_to(passive, "0.0.0.0", 5000), ==, -1);
    ok_int(errno, ==, EADDRNOTAVAIL);
    ok_int(rdma_set_option(active, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), ==, 0);
    ok_int(bind_to(passive, "10.1.1.1", 5000), ==, -1);
    ok_int(rdma_set_option(passive, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), ==, 0);
    ok_int(bind_to(passive, "10.1.1.1", 5000), ==, 0);
    ok_int(rdma_set_option(passive, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(fake_log_find(FAKE_rdma_set_option, -1)->arg.option.name, ==, RDMA_OPTION_ID_REUSEADDR);
}

TEST(resolve__order_and_scripted_errors)
{
    active = new_id();
    ok_int(rdma_resolve_route(active, 1), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(resolve(active, "192.168.77.1", 1), ==, -1);
    ok_int(errno, ==, ENETUNREACH);
    fake_resolve_error("10.1.1.77", false, -ETIMEDOUT);
    ok_int(resolve(active, "10.1.1.77", 1), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
    fake_resolve_error("10.1.1.78", true, -EHOSTUNREACH);
    ok_int(resolve(active, "10.1.1.78", 1), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    ok_int(rdma_resolve_route(active, 1), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_ROUTE_ERROR, -EHOSTUNREACH);
    ok_int(fake_cm_state(active), ==, FAKE_CM_ADDR_RESOLVED);
}

TEST(resolve__by_script_only)
{
    active = new_id();
    fake_auto_resolve(false);
    ok_int(bind_to(active, "10.1.1.1", 0), ==, 0);
    ok_int(resolve(active, "10.1.1.9", 1), ==, 0);
    no_event();
    fake_cm_simple(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    expect_ack(active, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    ok_int(fake_cm_state(active), ==, FAKE_CM_ADDR_RESOLVED);
}

TEST(connect__parameters_and_private_data_cross)
{
    uint8_t data[56] = "hello", reply[196] = "welcome";
    const struct fake_conn_param *sent;

    fake_wire(true);
    listen_on("0.0.0.0", 7000, 0);
    ok_ptr(listener->verbs, ==, NULL);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 0x21, "hello"), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    passive = event->id;
    ok_ptr(passive->context, ==, &channel);
    ok_str(passive->verbs->device->name, "fake_ib");
    ok_int(event->param.conn.responder_resources, ==, 5);
    ok_int(event->param.conn.initiator_depth, ==, 3);
    ok_int(event->param.conn.qp_num, ==, 0x21);
    ok_int(event->param.conn.private_data_len, ==, 56);
    ok_mem(event->param.conn.private_data, data, 56);
    ack();
    sent = fake_cm_conn(active);
    ok_int(sent->param.rnr_retry_count, ==, 7);
    ok_mem(sent->param.private_data, "hello", 5);
    ok_mem(fake_log_find(FAKE_rdma_connect, -1)->arg.conn.param.private_data, "hello", 5);
    no_event();
    ok_int(accept_id(passive, 0x22, "welcome"), ==, 0);
    expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_int(event->param.conn.responder_resources, ==, 2);
    ok_int(event->param.conn.initiator_depth, ==, 4);
    ok_int(event->param.conn.qp_num, ==, 0x22);
    ok_int(event->param.conn.private_data_len, ==, 196);
    ok_mem(event->param.conn.private_data, reply, 196);
    ack();
    ok_int(rdma_establish(active), ==, 0);
    expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(event->param.conn.responder_resources, ==, 0);
    ack();
    ok_int(rdma_establish(active), ==, -1);
    ok_int(errno, ==, EINVAL);
}

TEST(init_qp_attr__masks_and_values)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
    int mask = 0;

    active = new_id();
    ok_int(bind_to(active, "10.1.1.1", 0), ==, 0);
    ok_int(rdma_init_qp_attr(active, &attr, &mask), ==, 0);
    ok_int(mask, ==, 0x39);
    ok_int(attr.qp_access_flags, ==, 0);
    attr.qp_state = IBV_QPS_RTR;
    ok_int(rdma_init_qp_attr(active, &attr, &mask), ==, -1);
    destroy(&active);
    replied();
    attr.qp_state = IBV_QPS_INIT;
    ok_int(rdma_init_qp_attr(passive, &attr, &mask), ==, 0);
    ok_int(attr.qp_access_flags, ==, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    attr.qp_state = IBV_QPS_RTR;
    ok_int(rdma_init_qp_attr(passive, &attr, &mask), ==, 0);
    ok_int(mask, ==, 0x129181);
    ok_int(attr.dest_qp_num, ==, 0x21);
    ok_int(attr.max_dest_rd_atomic, ==, 5); /* the peer's wish, not what was accepted */
    ok_int(attr.min_rnr_timer, ==, 0);
    ok_int(rdma_init_qp_attr(active, &attr, &mask), ==, 0);
    ok_int(attr.dest_qp_num, ==, 0x22);
    attr.qp_state = IBV_QPS_RTS;
    ok_int(rdma_init_qp_attr(active, &attr, &mask), ==, 0);
    ok_int(mask, ==, 0x12e01);
    ok_int(attr.rnr_retry, ==, 6);
    ok_int(attr.timeout, ==, 19);
}

TEST(connect__nobody_listens)
{
    fake_wire(true);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 1, ""), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 8);
    /* One id, one attempt. */
    ok_int(connect_id(active, 1, ""), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(resolve(active, "10.1.1.1", 7000), ==, -1);
}

TEST(connect__peer_outside_never_answers)
{
    fake_wire(true);
    active = new_id();
    route(active, "10.1.1.55", 7000);
    ok_int(connect_id(active, 1, ""), ==, 0);
    no_event();
    fake_cm_simple(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    expect_ack(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    ok_int(fake_cm_state(active), ==, FAKE_CM_CLOSED);
}

TEST(reject__passive_with_data)
{
    uint8_t data[148] = "no";

    requested();
    ok_int(rdma_reject(passive, "no", 2), ==, 0);
    expect(active, RDMA_CM_EVENT_REJECTED, 28);
    ok_int(event->param.conn.private_data_len, ==, 148);
    ok_mem(event->param.conn.private_data, data, 148);
    ack();
    ok_int(accept_id(passive, 1, ""), ==, -1);
    ok_int(errno, ==, EINVAL);
}

TEST(reject__active_after_the_reply)
{
    replied();
    ok_int(rdma_reject(active, "no", 2), ==, 0);
    expect_ack(passive, RDMA_CM_EVENT_REJECTED, 28);
    ok_int(rdma_establish(active), ==, -1);
}

TEST(destroy__in_every_state)
{
    requested();
    destroy(&passive);
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 28);
    destroy(&active);
    destroy(&listener);

    requested();
    destroy(&active); /* hidden from a child that was not accepted */
    no_event();
    ok_int(accept_id(passive, 1, ""), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(rdma_reject(passive, NULL, 0), ==, -1);
    destroy(&passive);
    destroy(&listener);

    replied();
    destroy(&passive);
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 28);
    ok_int(rdma_establish(active), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(rdma_disconnect(active), ==, 0);
    destroy(&active);
    destroy(&listener);

    replied();
    destroy(&active);
    expect_ack(passive, RDMA_CM_EVENT_REJECTED, 28);
    destroy(&passive);
    destroy(&listener);

    established();
    destroy(&active);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
}

TEST(destroy__listener_with_an_unfetched_request)
{
    fake_wire(true);
    listen_on("10.1.1.1", 7000, 0);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 1, ""), ==, 0);
    ok_int(fake_live(FAKE_OBJ_ID), ==, 3);
    destroy(&listener);
    ok_int(fake_live(FAKE_OBJ_ID), ==, 1);
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 28);
    no_event();
}

TEST(disconnect__one_side)
{
    established();
    ok_int(rdma_disconnect(active), ==, 0);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
    no_event(); /* the answer waits for the passive side */
    ok_int(rdma_disconnect(passive), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_DISCONNECTED, 0);
    no_event();
    ok_int(rdma_disconnect(active), ==, 0);
    no_event();
}

TEST(disconnect__destroy_answers_it)
{
    established();
    ok_int(rdma_disconnect(passive), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_DISCONNECTED, 0);
    destroy(&active);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
}

TEST(disconnect__crossing)
{
    established();
    fake_wire_hold(true);
    ok_int(rdma_disconnect(active), ==, 0);
    ok_int(rdma_disconnect(passive), ==, 0);
    ok_int(fake_wire_held(), ==, 2);
    ok_int(fake_wire_deliver(2), ==, 2);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
    expect_ack(active, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_int(rdma_disconnect(active), ==, 0);
    ok_int(rdma_disconnect(passive), ==, 0);
    fake_wire_hold(false);
    no_event(); /* each side is told once */
}

TEST(disconnect__between_reply_and_rtu_sends_nothing)
{
    replied();
    ok_int(rdma_disconnect(active), ==, 0);
    ok_int(rdma_disconnect(passive), ==, 0);
    no_event();
    destroy(&active);
    expect_ack(passive, RDMA_CM_EVENT_REJECTED, 28);
}

TEST(rtu_lost__notify_or_disconnect)
{
    replied();
    fake_wire_drop(FAKE_MSG_RTU);
    ok_int(rdma_establish(active), ==, 0);
    no_event();
    ok_int(rdma_notify(passive, IBV_EVENT_COMM_EST), ==, 0);
    expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(rdma_notify(passive, IBV_EVENT_COMM_EST), ==, -1);
    ok_int(errno, ==, EISCONN);
    destroy(&active);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
    destroy(&passive);
    destroy(&listener);

    replied();
    fake_wire_drop(FAKE_MSG_RTU);
    ok_int(rdma_establish(active), ==, 0);
    ok_int(rdma_disconnect(active), ==, 0);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0); /* and never ESTABLISHED */
    no_event();
}

TEST(wire__held_messages_in_order)
{
    enum fake_msg msg;

    fake_wire(true);
    fake_wire_hold(true);
    listen_on("10.1.1.1", 7000, 0);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 1, ""), ==, 0);
    no_event();
    ok(fake_wire_next(&msg));
    ok_int(msg, ==, FAKE_MSG_REQ);
    ok_int(fake_wire_deliver(1), ==, 1);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    passive = event->id;
    ack();
    ok_int(rdma_reject(passive, NULL, 0), ==, 0);
    /* The rejected side goes before the message arrives. */
    destroy(&active);
    fake_wire_hold(false);
    no_event();
}

TEST(listen__backlog)
{
    struct rdma_cm_id *second;

    fake_wire(true);
    listen_on("10.1.1.1", 7000, 1);
    active = new_id();
    route(active, "10.1.1.1", 7000);
    ok_int(connect_id(active, 1, ""), ==, 0);
    second = new_id();
    ok_int(resolve(second, "10.1.1.1", 7000), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    passive = event->id;
    ack();
    expect_ack(second, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    ok_int(rdma_resolve_route(second, 1), ==, 0);
    expect_ack(second, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_int(connect_id(second, 2, ""), ==, 0);
    no_event(); /* dropped in silence, until there is room at the resend */
    ok_int(rdma_reject(passive, NULL, 0), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    destroy(&passive);
    passive = event->id;
    ack();
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 28);
    destroy(&second);
}

TEST(events__injected)
{
    struct fake_cm request = { .private_data = "abc", .private_data_len = 3, .qp_num = 9, .srq = 1 };
    struct fake_cm reply = { .event = RDMA_CM_EVENT_CONNECT_RESPONSE, .initiator_depth = 8, .qp_num = 10 };

    listen_on("10.1.1.1", 7000, 0);
    passive = fake_cm_request(listener, &request, "10.1.1.201");
    expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    ok_int(event->param.conn.srq, ==, 1);
    ok_int(event->param.conn.private_data_len, ==, 56);
    ok_mem(event->param.conn.private_data, "abc", 4);
    ack();
    ok_int(accept_id(passive, 1, ""), ==, 0);
    fake_cm_simple(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(rdma_disconnect(passive), ==, 0);
    ok_int(fake_cm_state(passive), ==, FAKE_CM_DREQ_SENT);
    fake_cm_simple(passive, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    active = new_id();
    route(active, "10.1.1.55", 1);
    ok_int(connect_id(active, 1, ""), ==, 0);
    ok_int(rdma_establish(active), ==, -1);
    fake_cm_event(active, &reply);
    expect(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_int(event->param.conn.initiator_depth, ==, 8);
    ack();
    fake_cm_simple(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT); /* spurious */
    expect_ack(active, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    ok_int(rdma_establish(active), ==, 0);
}

TEST(iwarp__connect_disconnect)
{
    struct ibv_context *context = ibv_open_device(fake_device("fake_iw"));
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
    struct ibv_qp *a = ibv_create_qp(pd, &init), *b = ibv_create_qp(pd, &init);
    struct ibv_recv_wr wr = { .wr_id = 5 }, *bad;
    struct ibv_wc wc;

    ok(a && b);
    ok_int(ibv_post_recv(a, &wr, &bad), ==, 0);
    fake_wire(true);
    active = new_id();
    route(active, "10.1.2.1", 7000);
    ok_int(connect_id(active, a->qp_num, "hello"), ==, -1);
    ok_int(errno, ==, ECONNREFUSED);
    destroy(&active);
    listen_on("10.1.2.1", 7000, 0);
    active = new_id();
    route(active, "10.1.2.1", 7000);
    ok_int(connect_id(active, a->qp_num, "hello"), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    passive = event->id;
    ok_int(event->param.conn.private_data_len, ==, 5);
    ok_int(event->param.conn.responder_resources, ==, 5);
    ack();
    ok_int(accept_id(passive, b->qp_num, "yes"), ==, 0);
    expect(active, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(event->param.conn.private_data_len, ==, 3);
    ok_int(event->param.conn.initiator_depth, ==, 3);     /* own inbound limit */
    ok_int(event->param.conn.responder_resources, ==, 5); /* the acceptor's inbound was raised to it */
    ack();
    expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(event->param.conn.initiator_depth, ==, 5);
    ok_int(event->param.conn.responder_resources, ==, 2);
    ack();
    ok_int(fake_qp_state(a), ==, IBV_QPS_RTS);
    ok_int(fake_qp_state(b), ==, IBV_QPS_RTS);
    ok_int(rdma_establish(active), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(rdma_disconnect(passive), ==, 0);
    expect_ack(active, RDMA_CM_EVENT_DISCONNECTED, 0);
    expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_int(ibv_poll_cq(cq, 1, &wc), ==, 1);
    ok_int(wc.status, ==, IBV_WC_WR_FLUSH_ERR);
    ok_int(rdma_disconnect(active), ==, -1);
    ok_int(errno, ==, EINVAL);
    destroy(&active);
    destroy(&passive);
    ok_int(ibv_destroy_qp(a), ==, 0);
    ok_int(ibv_destroy_qp(b), ==, 0);
    ok_int(ibv_destroy_cq(cq), ==, 0);
    ok_int(ibv_dealloc_pd(pd), ==, 0);
    ok_int(ibv_close_device(context), ==, 0);
}

TEST(iwarp__reject_takes_the_queue_pair)
{
    struct ibv_context *context = ibv_open_device(fake_device("fake_iw"));
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    fake_wire(true);
    listen_on("10.1.2.1", 7000, 0);
    active = new_id();
    route(active, "10.1.2.1", 7000);
    ok_int(connect_id(active, 0x7fff, ""), ==, -1); /* no such queue pair */
    ok_int(connect_id(active, qp->qp_num, ""), ==, 0);
    expect(NULL, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    passive = event->id;
    ack();
    ok_int(rdma_reject(passive, "no", 2), ==, 0);
    expect(active, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
    ok_int(event->param.conn.private_data_len, ==, 2);
    ack();
    ok_int(fake_qp_state(qp), ==, IBV_QPS_ERR);
    destroy(&active);
    ok_int(ibv_destroy_qp(qp), ==, 0);
    ok_int(ibv_destroy_cq(cq), ==, 0);
    ok_int(ibv_dealloc_pd(pd), ==, 0);
    ok_int(ibv_close_device(context), ==, 0);
}

TEST(device_removal__ids_and_contexts)
{
    struct ibv_context *context = ibv_open_device(fake_device("fake_ib"));
    struct ibv_async_event async;

    active = new_id();
    ok_int(bind_to(active, "10.1.1.1", 0), ==, 0);
    fake_device_remove("fake_ib");
    expect_ack(active, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    ok_int(ibv_get_async_event(context, &async), ==, 0);
    ok_int(async.event_type, ==, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&async);
    passive = new_id();
    ok_int(bind_to(passive, "10.1.1.1", 0), ==, -1);
    ok_int(errno, ==, ENODEV);
    ok_ptr(ibv_alloc_pd(context), ==, NULL);
    ok_int(ibv_close_device(context), ==, 0);
}

TEST(violations__destroy_inside_its_own_event)
{
    active = new_id();
    ok_int(bind_to(active, "10.1.1.1", 0), ==, 0);
    fake_cm_simple(active, RDMA_CM_EVENT_ADDR_CHANGE, 0);
    expect(active, RDMA_CM_EVENT_ADDR_CHANGE, 0);
    ok_int(fake_live(FAKE_OBJ_CM_EVENT), ==, 1);
    destroy(&active);
    ok(strstr(fake_violations(), "rdma_destroy_id hangs"));
    ack();
    fake_violations_clear();
}

static void *destroyer(void *arg)
{
    ok_int(rdma_destroy_id((struct rdma_cm_id *)arg), ==, 0);
    return NULL;
}

/* Inside a call on the id: another thread destroys it. */
static void destroy_meanwhile(struct fake_call *call, void *arg)
{
    pthread_t thread;

    ok_ptr(call->object, ==, arg);
    ok_int(pthread_create(&thread, NULL, destroyer, arg), ==, 0);
    pthread_join(thread, NULL);
}

TEST(violations__two_calls_on_one_id)
{
    active = new_id();
    fake_on(FAKE_rdma_disconnect, destroy_meanwhile, active);
    ok_int(rdma_disconnect(active), ==, -1);
    ok(strstr(fake_violations(), "rdma_destroy_id while another thread is in a call on the same id"));
    fake_violations_clear();
    active = NULL;
}

TEST(reject__keeps_the_data_for_the_test)
{
    requested();
    ok_int(rdma_reject(passive, "why", 3), ==, 0);
    ok_int(fake_cm_conn(passive)->param.private_data_len, ==, 3);
    ok_mem(fake_cm_conn(passive)->param.private_data, "why", 3);
    expect_ack(active, RDMA_CM_EVENT_REJECTED, 28);
}

TEST(violations__get_on_a_blocking_channel)
{
    ok_int(fcntl(channel->fd, F_SETFL, 0), ==, 0);
    ok_int(rdma_get_cm_event(channel, &event), ==, -1);
    ok(strstr(fake_violations(), "rdma_get_cm_event hangs"));
    fake_violations_clear();
}

TEST(host__addresses_and_routes)
{
    struct ifaddrs *list, *entry;
    struct sockaddr_storage to = address("10.1.1.99", 9), local;
    struct sockaddr_in *in = (struct sockaddr_in *)&local;
    socklen_t size = sizeof(local);
    int found = 0, fd = socket(AF_INET, SOCK_DGRAM, 0);

    ok(fake_address_add("10.5.0.1", "fake_ib", 1));
    ok_int(getifaddrs(&list), ==, 0);
    for (entry = list; entry; entry = entry->ifa_next)
        found += entry->ifa_addr->sa_family == AF_INET;
    freeifaddrs(list);
    ok_int(found, ==, 4);
    ok_int(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), ==, 0);
    ok_int(getsockname(fd, (struct sockaddr *)&local, &size), ==, 0);
    ok_int(ntohl(in->sin_addr.s_addr), ==, 0x0a010101);
    fake_route_add("10.1.1.99", "10.5.0.1");
    ok_int(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), ==, 0);
    ok_int(getsockname(fd, (struct sockaddr *)&local, &size), ==, 0);
    ok_int(ntohl(in->sin_addr.s_addr), ==, 0x0a050001);
    fake_route_add("10.1.1.99", NULL);
    ok_int(connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in)), ==, -1);
    ok_int(errno, ==, ENETUNREACH);
    close(fd);
}

TEST(host__netlink_tells_of_changes)
{
    struct sockaddr_nl any = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct nlmsghdr header;

    ok_int(bind(fd, (struct sockaddr *)&any, sizeof(any)), ==, 0);
    ok_int(recv(fd, &header, sizeof(header), 0), ==, -1);
    ok_int(errno, ==, EAGAIN);
    ok(fake_address_add("10.5.0.1", "fake_ib", 1));
    ok_int(recv(fd, &header, sizeof(header), MSG_TRUNC), >, 0);
    ok_int(header.nlmsg_type, ==, RTM_NEWADDR);
    ok_int(recv(fd, &header, sizeof(header), 0), ==, -1);
    fake_address_remove("10.5.0.1");
    ok_int(recv(fd, &header, sizeof(header), MSG_TRUNC), >, 0);
    ok_int(fake_open_fds(), ==, 2); /* this one and the channel's */
    close(fd);
}

HARNESS_MAIN
