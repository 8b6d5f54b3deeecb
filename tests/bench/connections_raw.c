/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "connections.h"
#include "rawlayer.h"

const char *const side_program = "rawconnections", *const side_interface = "verbs";

struct conn {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct rdma_cm_id *id;
    struct layer *layer; /* NULL: none */
};

static struct {
    struct sockaddr_in address;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id; /* bound to the adapter; server: the listener */
    struct ibv_context *verbs;
    struct ibv_comp_channel *completions;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    uint8_t memory[2 * MESSAGE];
    bool iwarp;
    unsigned int sge; /* of each request */
    int epoll;        /* -1: sleeps in rdma_get_cm_event itself */
    bool turns, layer;
    int completed; /* the set with `completions` */
} side = { .sge = 1, .epoll = -1 };

static void __attribute__((noreturn)) refuse(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", side_program, what, why);
    exit(1);
}

static void check(const char *what, int result)
{
    if (result)
        refuse(what, strerror(result > 0 ? result : errno));
}

static void *made(const char *what, void *object)
{
    if (!object)
        refuse(what, strerror(errno));
    return object;
}

/* A context of its own, as the library has; librdmacm's is that of the id. */
static struct ibv_context *open_own(const struct ibv_context *like)
{
    struct ibv_device **list = made("ibv_get_device_list", ibv_get_device_list(NULL));
    struct ibv_context *verbs = NULL;

    for (int i = 0; list[i] && !verbs; i++) {
        if (strcmp(ibv_get_device_name(list[i]), ibv_get_device_name(like->device)) == 0)
            verbs = made("ibv_open_device", ibv_open_device(list[i]));
    }
    ibv_free_device_list(list);
    return made("ibv_open_device", verbs);
}

static void *idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* What of the library's price is no work of its own: each variable makes the verbs do one thing as it does. RAWCONNECTIONS_SGE:
 * room for so many entries in each request (the library: 4); RAWCONNECTIONS_EPOLL=1: sleeps in epoll_wait, then reads the event;
 * RAWCONNECTIONS_THREADS=1: there is another thread, so that the kernel counts references to descriptors;
 * RAWCONNECTIONS_TURNS=1: see turn_wait; RAWCONNECTIONS_LAYER=1: requests are posted and taken as rawlayer.h has it. */
static void imitate(void)
{
    const char *sge = getenv("RAWCONNECTIONS_SGE"), *epoll = getenv("RAWCONNECTIONS_EPOLL");
    const char *threads = getenv("RAWCONNECTIONS_THREADS"), *turns = getenv("RAWCONNECTIONS_TURNS");
    const char *layer = getenv("RAWCONNECTIONS_LAYER");
    struct epoll_event event = { .events = EPOLLIN };
    pthread_t thread;

    if (sge)
        side.sge = (unsigned int)atoi(sge);
    if (epoll && atoi(epoll)) {
        side.epoll = epoll_create1(EPOLL_CLOEXEC);
        check("epoll_ctl", epoll_ctl(side.epoll, EPOLL_CTL_ADD, side.events->fd, &event));
    }
    side.turns = turns && atoi(turns);
    side.layer = layer && atoi(layer);
    if (threads && atoi(threads))
        check("pthread_create", pthread_create(&thread, NULL, idle, NULL));
}

void side_open(const char *address, uint16_t port, bool server)
{
    struct sockaddr_in local = { .sin_family = AF_INET };

    if (inet_pton(AF_INET, address, &local.sin_addr) != 1)
        refuse(address, "no IPv4 address");
    side.address = local;
    side.address.sin_port = htons(port);
    local.sin_port = htons(server ? port : 0);
    side.events = made("rdma_create_event_channel", rdma_create_event_channel());
    imitate();
    check("rdma_create_id", rdma_create_id(side.events, &side.id, NULL, RDMA_PS_TCP));
    check("rdma_bind_addr", rdma_bind_addr(side.id, (struct sockaddr *)&local));
    if (!side.id->verbs)
        refuse(address, "no RDMA device");
    side.verbs = open_own(side.id->verbs);
    side.iwarp = side.verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    side.completions = made("ibv_create_comp_channel", ibv_create_comp_channel(side.verbs));
    if (side.turns) {
        struct epoll_event event = { .events = EPOLLIN };

        side.completed = epoll_create1(EPOLL_CLOEXEC);
        check("epoll_ctl", epoll_ctl(side.completed, EPOLL_CTL_ADD, side.completions->fd, &event));
    }
    side.pd = made("ibv_alloc_pd", ibv_alloc_pd(side.verbs));
    side.mr = made("ibv_reg_mr", ibv_reg_mr(side.pd, side.memory, sizeof(side.memory), IBV_ACCESS_LOCAL_WRITE));
    if (server)
        check("rdma_listen", rdma_listen(side.id, 1024));
}

struct conn *conn_new(void)
{
    struct conn *conn = made("calloc", calloc(1, sizeof(*conn)));

    conn->cq = made("ibv_create_cq", ibv_create_cq(side.verbs, 2 * DEPTH, conn, side.completions, 0));
    return conn;
}

/* Without an id yet, so by the values that rdma_init_qp_attr would give. */
static void to_init(struct conn *conn)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = side.id->port_num };

    check("ibv_modify_qp to INIT",
          ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void make_qp(struct conn *conn)
{
    struct ibv_qp_init_attr init = {
        .send_cq = conn->cq,
        .recv_cq = conn->cq,
        .qp_type = IBV_QPT_RC,
        .cap = { DEPTH, DEPTH, side.sge, side.sge, 0 },
    };

    conn->qp = made("ibv_create_qp", ibv_create_qp(side.pd, &init));
    if (side.layer)
        conn->layer = made("memory", layer_new(DEPTH, conn));
    to_init(conn);
}

void conn_make(struct conn *conn)
{
    make_qp(conn);
    check("rdma_create_id", rdma_create_id(side.events, &conn->id, conn, RDMA_PS_TCP));
}

void conn_drop(struct conn *conn)
{
    check("rdma_destroy_id", rdma_destroy_id(conn->id));
    check("ibv_destroy_qp", ibv_destroy_qp(conn->qp));
    layer_free(conn->layer);
}

/* The next event, acknowledged; `id`: which one it is of, or of a request the new id. */
static struct rdma_cm_id *event_wait(enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event;
    struct epoll_event ready;
    struct rdma_cm_id *id;

    while (side.epoll >= 0 && epoll_wait(side.epoll, &ready, 1, 60000) != 1)
        ;
    check("rdma_get_cm_event", rdma_get_cm_event(side.events, &event));
    if (event->event != expected)
        refuse("connection", rdma_event_str(event->event));
    id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static const struct rdma_conn_param *parameters(const struct conn *conn)
{
    static struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 6, .rnr_retry_count = 6
    };

    param.qp_num = conn->qp->qp_num;
    return &param;
}

/* From INIT to RTS by what the connection messages said. */
static void bring_up(struct conn *conn)
{
    static const enum ibv_qp_state states[] = { IBV_QPS_RTR, IBV_QPS_RTS };

    for (unsigned int i = 0; i < 2; i++) {
        struct ibv_qp_attr attr = { .qp_state = states[i] };
        int mask;

        check("rdma_init_qp_attr", rdma_init_qp_attr(conn->id, &attr, &mask));
        if (states[i] == IBV_QPS_RTR) {
            attr.min_rnr_timer = 20;
        } else {
            attr.timeout = 18;
            attr.retry_cnt = 6;
            attr.rnr_retry = 6;
        }
        check("ibv_modify_qp", ibv_modify_qp(conn->qp, &attr, mask));
    }
}

void conn_connect(struct conn *conn)
{
    struct rdma_conn_param param;
    struct sockaddr_in local = side.address;

    local.sin_port = 0;
    check("rdma_bind_addr", rdma_bind_addr(conn->id, (struct sockaddr *)&local));
    check("rdma_resolve_addr", rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)&side.address, 5000));
    event_wait(RDMA_CM_EVENT_ADDR_RESOLVED);
    check("rdma_resolve_route", rdma_resolve_route(conn->id, 5000));
    event_wait(RDMA_CM_EVENT_ROUTE_RESOLVED);
    param = *parameters(conn);
    check("rdma_connect", rdma_connect(conn->id, &param));
    if (side.iwarp) {
        event_wait(RDMA_CM_EVENT_ESTABLISHED);
        return;
    }
    event_wait(RDMA_CM_EVENT_CONNECT_RESPONSE);
    bring_up(conn);
    check("rdma_establish", rdma_establish(conn->id));
}

void conn_accept(struct conn *conn)
{
    struct rdma_conn_param param;

    make_qp(conn);
    conn->id = event_wait(RDMA_CM_EVENT_CONNECT_REQUEST);
    if (!side.iwarp)
        bring_up(conn);
    param = *parameters(conn);
    check("rdma_accept", rdma_accept(conn->id, &param));
    event_wait(RDMA_CM_EVENT_ESTABLISHED);
}

static void to_error(struct conn *conn)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    check("ibv_modify_qp to ERROR", ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE));
}

/* The poll that the library makes before it calls a connection ended. In a cycle nothing is posted, so nothing is waited for. */
static void drain(struct conn *conn)
{
    struct ibv_wc wc[DEPTH];

    while (ibv_poll_cq(conn->cq, DEPTH, wc) > 0)
        ;
}

void conn_disconnect(struct conn *conn)
{
    check("rdma_disconnect", rdma_disconnect(conn->id));
    event_wait(RDMA_CM_EVENT_DISCONNECTED);
    to_error(conn);
    drain(conn);
}

void conn_ended(struct conn *conn)
{
    event_wait(RDMA_CM_EVENT_DISCONNECTED);
    check("rdma_disconnect", rdma_disconnect(conn->id));
    to_error(conn);
    drain(conn);
}

void conn_arm(struct conn *conn)
{
    check("ibv_req_notify_cq", ibv_req_notify_cq(conn->cq, 0));
}

static struct conn *event_take(void)
{
    struct ibv_cq *cq;
    void *context;

    check("ibv_get_cq_event", ibv_get_cq_event(side.completions, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    return context;
}

/* A thread that waits its turn. */
struct turn {
    pthread_cond_t cond;
    bool mine;
    struct turn *older;
};

/* Threads at a completion port are woken by more than completions, each by itself and the newest first. So one of them sleeps in
 * epoll_wait for all that may come from the kernel, the others each for itself, and the one that has got something passes its
 * place on before it looks at what it got. */
static struct conn *turn_wait(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct turn *newest;
    static bool taken;
    struct turn turn = { .cond = PTHREAD_COND_INITIALIZER };
    struct epoll_event ready;
    struct conn *conn;

    pthread_mutex_lock(&lock);
    if (taken) {
        turn.older = newest;
        newest = &turn;
        while (!turn.mine)
            pthread_cond_wait(&turn.cond, &lock);
    }
    taken = true;
    pthread_mutex_unlock(&lock);
    while (epoll_wait(side.completed, &ready, 1, -1) != 1)
        ;
    conn = event_take();
    pthread_mutex_lock(&lock);
    taken = newest;
    if (newest) {
        newest->mine = true;
        pthread_cond_signal(&newest->cond);
        newest = newest->older;
    }
    pthread_mutex_unlock(&lock);
    return conn;
}

struct conn *side_wait(void)
{
    return side.turns ? turn_wait() : event_take();
}

void conn_receive(struct conn *conn)
{
    struct ibv_sge sge = { (uintptr_t)side.memory, MESSAGE, side.mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    check("ibv_post_recv",
          conn->layer ? layer_post_recv(conn->layer, conn->qp, &wr) : ibv_post_recv(conn->qp, &wr, &bad));
}

void conn_send(struct conn *conn)
{
    struct ibv_sge sge = { (uintptr_t)side.memory + MESSAGE, MESSAGE, side.mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;

    check("ibv_post_send",
          conn->layer ? layer_post_send(conn->layer, conn->qp, &wr) : ibv_post_send(conn->qp, &wr, &bad));
}

static unsigned int count_receive(int status, bool receive)
{
    if (status != IBV_WC_SUCCESS)
        refuse("a request", ibv_wc_status_str((enum ibv_wc_status)status));
    return receive;
}

static unsigned int take_layer(struct conn *conn)
{
    struct layer_result results[DEPTH];
    unsigned int receives = 0;
    int n;

    while ((n = layer_results(conn->layer, conn->cq, results, DEPTH)) > 0) {
        for (int i = 0; i < n; i++)
            receives += count_receive(results[i].status, results[i].kind == IBV_WC_RECV);
    }
    return receives;
}

static unsigned int take_plain(struct conn *conn)
{
    struct ibv_wc wc[DEPTH];
    unsigned int receives = 0;
    int n;

    while ((n = ibv_poll_cq(conn->cq, DEPTH, wc)) > 0) {
        for (int i = 0; i < n; i++)
            receives += count_receive(wc[i].status, (wc[i].opcode & IBV_WC_RECV) != 0);
    }
    return receives;
}

unsigned int conn_take(struct conn *conn)
{
    conn_arm(conn);
    return conn->layer ? take_layer(conn) : take_plain(conn);
}
