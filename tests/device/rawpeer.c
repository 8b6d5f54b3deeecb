/* SPDX-License-Identifier: MIT */
/* usage: rawpeer server|client PART ADDRESS PORT [ROOM]
 * The other end of the interop cases, on librdmacm and libibverbs alone: nothing of this project is in it. "attached":
 * the queue pair belongs to the rdma_cm id and librdmacm moves it; "external": this program moves it (rdma-mapping.md 1).
 * What is exchanged is described in interop.c. Exit status 0 if all of it was as it should be.
 * As server also these parts, whose queue pair is moved by this program; not on iWARP:
 * "solicited": messages of one byte come, and each is answered; only those that are solicited give an event (interop.h).
 * "no_access": the queue pair allows no remote access whatever; the other side's request ends the connection.
 * "bad_immediate": writes with immediate data and a key that is none, and expects to be refused. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "interop.h"

#define CHECK(expr)                                                    \
    do {                                                               \
        if (!(expr)) {                                                 \
            fprintf(stderr, "rawpeer:%d: %s (%m)\n", __LINE__, #expr); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id, *listener;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *receive_cq; /* one and the same but where solicited receives are waited for */
static struct ibv_comp_channel *events;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buffer[INTEROP_BUFFER];
static const char *part;
static bool external;

static bool plays(const char *name)
{
    return !strcmp(part, name);
}

/* The next event, which must be `wanted`; its private data begins with `data` if that is given. */
static void expect(enum rdma_cm_event_type wanted, const void *data, size_t length)
{
    struct rdma_cm_event *event;

    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != wanted) {
        fprintf(stderr, "rawpeer: %s (status %d) instead of %s\n", rdma_event_str(event->event), event->status,
                rdma_event_str(wanted));
        exit(1);
    }
    if (data) {
        CHECK(event->param.conn.private_data_len >= length);
        CHECK(!memcmp(event->param.conn.private_data, data, length));
    }
    if (wanted == RDMA_CM_EVENT_CONNECT_REQUEST)
        id = event->id;
    CHECK(rdma_ack_cm_event(event) == 0);
}

static void move(enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask;

    CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
    if (plays("no_access"))
        attr.qp_access_flags = 0;
    CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
}

static void make_objects(void)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 }
    };

    CHECK((pd = ibv_alloc_pd(id->verbs)));
    CHECK((cq = ibv_create_cq(id->verbs, 32, NULL, NULL, 0)));
    receive_cq = cq;
    if (plays("solicited")) {
        CHECK((events = ibv_create_comp_channel(id->verbs)));
        CHECK((receive_cq = ibv_create_cq(id->verbs, 32, NULL, events, 0)));
        CHECK(ibv_req_notify_cq(receive_cq, 1) == 0);
    }
    attr.send_cq = cq;
    attr.recv_cq = receive_cq;
    if (external) {
        CHECK((qp = ibv_create_qp(pd, &attr)));
        move(IBV_QPS_INIT);
    } else {
        CHECK(rdma_create_qp(id, pd, &attr) == 0);
        qp = id->qp;
    }
    CHECK((mr = ibv_reg_mr(pd, buffer, sizeof(buffer),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)));
}

static void post_receive(size_t offset, size_t length)
{
    struct ibv_sge sge = { (uintptr_t)buffer + offset, (uint32_t)length, mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    CHECK(ibv_post_recv(qp, &wr, &bad) == 0);
}

static void post(enum ibv_wr_opcode opcode, size_t offset, size_t length, uint64_t address, uint32_t rkey)
{
    struct ibv_sge sge = { (uintptr_t)buffer + offset, (uint32_t)length, mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED }, *bad;

    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

/* Waits until so many in all have completed; receives may come before the own requests are told. */
static void until(int sends, int receives)
{
    static int sent, received;
    struct ibv_wc wc;

    while (sent < sends || received < receives) {
        int n = ibv_poll_cq(cq, 1, &wc);

        CHECK(n >= 0);
        if (!n)
            continue;
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "rawpeer: completion: %s\n", ibv_wc_status_str(wc.status));
            exit(1);
        }
        if (!(wc.opcode & IBV_WC_RECV))
            sent++;
        else if (received++ == 0)
            CHECK(wc.byte_len == INTEROP_MESSAGE);
    }
}

static void exchange(bool active)
{
    struct interop_info mine = { htobe64((uintptr_t)buffer), htonl(mr->rkey), htonl(sizeof(buffer)) }, its;

    interop_fill(buffer + INTEROP_SOURCE, INTEROP_BLOCK, active ? 'r' : 's');
    interop_fill(buffer + INTEROP_OUT, INTEROP_MESSAGE, active ? 'a' : 'p');
    memcpy(buffer + INTEROP_INFO_OUT, &mine, sizeof(mine));
    if (active)
        post(IBV_WR_SEND, INTEROP_OUT, INTEROP_MESSAGE, 0, 0);
    until(0, 1);
    CHECK(interop_same(buffer + INTEROP_IN, INTEROP_MESSAGE, active ? 'p' : 'a'));
    /* Both before the other side can send: siw does not wait for receives. */
    post_receive(INTEROP_INFO_IN, sizeof(its));
    post_receive(INTEROP_BYTE_IN, 1);
    if (active) {
        post(IBV_WR_SEND, INTEROP_INFO_OUT, sizeof(mine), 0, 0);
        until(2, 2);
    } else {
        post(IBV_WR_SEND, INTEROP_OUT, INTEROP_MESSAGE, 0, 0);
        until(1, 2);
        post(IBV_WR_SEND, INTEROP_INFO_OUT, sizeof(mine), 0, 0);
        until(2, 2);
    }
    memcpy(&its, buffer + INTEROP_INFO_IN, sizeof(its));
    CHECK(ntohl(its.size) == sizeof(buffer));
    /* Read what the other side prepared, write it back elsewhere; then one byte says so. */
    post(IBV_WR_RDMA_READ, INTEROP_SINK, INTEROP_BLOCK, be64toh(its.address) + INTEROP_SOURCE, ntohl(its.token));
    until(3, 2);
    CHECK(interop_same(buffer + INTEROP_SINK, INTEROP_BLOCK, active ? 's' : 'r'));
    post(IBV_WR_RDMA_WRITE, INTEROP_SINK, INTEROP_BLOCK, be64toh(its.address) + INTEROP_TARGET, ntohl(its.token));
    post(IBV_WR_SEND, INTEROP_OUT, 1, 0, 0);
    until(5, 3);
    CHECK(interop_same(buffer + INTEROP_TARGET, INTEROP_BLOCK, active ? 'r' : 's'));
}

/* The next completion. */
static enum ibv_wc_status next_status(struct ibv_cq *from)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(from, 1, &wc)) == 0)
        ;
    CHECK(n == 1);
    return wc.status;
}

/* Takes each message off, and only then answers it: an event that its receive has given is there before the next message
 * comes. The event of a solicited one is waited for, and the next one armed before the answer. */
static void take_solicited(void)
{
    struct pollfd descriptor = { .fd = events->fd, .events = POLLIN };
    struct ibv_cq *which;
    void *context;

    for (size_t i = 0; i < INTEROP_MESSAGES; i++) {
        if (interop_solicited(i)) {
            CHECK(ibv_get_cq_event(events, &which, &context) == 0);
            CHECK(which == receive_cq);
            ibv_ack_cq_events(which, 1);
        }
        CHECK(next_status(receive_cq) == IBV_WC_SUCCESS);
        CHECK(poll(&descriptor, 1, 0) == 0);
        if (interop_solicited(i))
            CHECK(ibv_req_notify_cq(receive_cq, 1) == 0);
        post_receive(INTEROP_BYTE_IN, 1);
        post(IBV_WR_SEND, INTEROP_OUT, 1, 0, 0);
        CHECK(next_status(cq) == IBV_WC_SUCCESS);
    }
}

static void play(bool active)
{
    if (plays("solicited")) {
        take_solicited();
    } else if (plays("bad_immediate")) {
        enum ibv_wc_status status;

        post(IBV_WR_RDMA_WRITE_WITH_IMM, INTEROP_OUT, 64, 4096, 1);
        /* rxe drops its negative acknowledgement where its queue pair is in ERROR by then (error.send_too_long). */
        status = next_status(cq);
        CHECK(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_RETRY_EXC_ERR);
    } else if (!plays("no_access")) {
        exchange(active);
    }
}

int main(int argc, char **argv)
{
    struct rdma_conn_param param = {
        .responder_resources = 2, .initiator_depth = 2, .retry_count = 6, .rnr_retry_count = 7
    };
    struct sockaddr_in address = { .sin_family = AF_INET };
    size_t callee_data = sizeof(INTEROP_CALLEE_DATA);
    bool active;

    CHECK(argc == 5 || argc == 6);
    if (argc == 6) /* the other side's interface has room for less */
        callee_data = (size_t)atoi(argv[5]);
    active = !strcmp(argv[1], "client");
    part = argv[2];
    external = !plays("attached");
    CHECK(inet_pton(AF_INET, argv[3], &address.sin_addr) == 1);
    address.sin_port = htons((uint16_t)atoi(argv[4]));
    CHECK((channel = rdma_create_event_channel()));
    if (active) {
        CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
        CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 5000) == 0);
        expect(RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
        CHECK(rdma_resolve_route(id, 5000) == 0);
        expect(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, 0);
    } else {
        CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
        CHECK(rdma_bind_addr(listener, (struct sockaddr *)&address) == 0);
        CHECK(rdma_listen(listener, 4) == 0);
        if (plays("attached") || plays("external"))
            expect(RDMA_CM_EVENT_CONNECT_REQUEST, INTEROP_CALLER_DATA, sizeof(INTEROP_CALLER_DATA));
        else
            expect(RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    }
    make_objects();
    post_receive(INTEROP_IN, INTEROP_MESSAGE);
    param.qp_num = qp->qp_num;
    param.private_data = active ? INTEROP_CALLER_DATA : INTEROP_CALLEE_DATA;
    param.private_data_len = active ? sizeof(INTEROP_CALLER_DATA) : sizeof(INTEROP_CALLEE_DATA);
    if (active) {
        bool iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;

        CHECK(rdma_connect(id, &param) == 0);
        expect(external && !iwarp ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED, INTEROP_CALLEE_DATA,
               callee_data);
        if (external && !iwarp) {
            move(IBV_QPS_INIT); /* now with the access that the read limits call for */
            move(IBV_QPS_RTR);
            move(IBV_QPS_RTS);
            CHECK(rdma_establish(id) == 0);
        }
    } else {
        if (external && id->verbs->device->transport_type != IBV_TRANSPORT_IWARP) {
            move(IBV_QPS_INIT);
            move(IBV_QPS_RTR);
            move(IBV_QPS_RTS);
        }
        CHECK(rdma_accept(id, &param) == 0);
        expect(RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    }
    if (active && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
        usleep(200000); /* siw may never look at data that comes while its accept is still at work */
    play(active);
    /* The active side ends it. */
    if (active) {
        CHECK(rdma_disconnect(id) == 0);
        expect(RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    } else {
        expect(RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
        rdma_disconnect(id);
    }
    if (external)
        CHECK(ibv_destroy_qp(qp) == 0);
    else
        rdma_destroy_qp(id);
    CHECK(ibv_dereg_mr(mr) == 0);
    CHECK(ibv_destroy_cq(cq) == 0);
    if (events) {
        CHECK(ibv_destroy_cq(receive_cq) == 0);
        CHECK(ibv_destroy_comp_channel(events) == 0);
    }
    CHECK(rdma_destroy_id(id) == 0);
    if (listener)
        CHECK(rdma_destroy_id(listener) == 0);
    CHECK(ibv_dealloc_pd(pd) == 0);
    rdma_destroy_event_channel(channel);
    return 0;
}
