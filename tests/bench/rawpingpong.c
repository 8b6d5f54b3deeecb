/* SPDX-License-Identifier: MIT */
/* ndpingpong on raw verbs and librdmacm: the same options, protocol, signalling, inline sizes and kinds of waiting, so that
 * the difference of the two is the library's. Either can be the other's peer. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "examples/pingpong.h"
#include "rawlayer.h"

/* Polls that find nothing between two looks for the peer. */
#define LOOK_POLLS 4096

static const char *program = "rawpingpong";

struct raw {
    struct pp_link link;
    struct pp_session session;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct rdma_cm_event *event; /* the last one, not acknowledged */
    struct ibv_device_attr attr;
    struct ibv_pd *pd;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint32_t inline_size;
    struct layer *layer; /* NULL: none */
    int epoll;           /* -1: the program sleeps in ibv_get_cq_event */
    bool iwarp, armed;
};

static struct raw *raw_from_link(struct pp_link *link)
{
    return (struct raw *)((char *)link - offsetof(struct raw, link));
}

static void __attribute__((noreturn)) refuse(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", program, what, why);
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

/* With RAWPINGPONG_EPOLL=1 the program sleeps in epoll_wait on the completion channel, and then reads the event: what a
 * library has to pay that waits for several descriptors, without the library. */
static int epoll_for(const struct raw *raw)
{
    struct epoll_event event = { .events = EPOLLIN };
    int epoll;

    if (!getenv("RAWPINGPONG_EPOLL"))
        return -1;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    check("epoll_create1", epoll < 0 ? -1 : 0);
    check("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, raw->completions->fd, &event));
    return epoll;
}

static void epoll_sleep(const struct raw *raw)
{
    struct epoll_event event;

    while (epoll_wait(raw->epoll, &event, 1, -1) < 1)
        ;
}

/* --- addresses and connection events --- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static union address address_parse(const char *text, uint16_t port)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *info;
    union address address;

    if (getaddrinfo(text, NULL, &hints, &info) != 0)
        refuse(text, "no IPv4 or IPv6 address");
    memset(&address, 0, sizeof(address));
    memcpy(&address, info->ai_addr, info->ai_addrlen);
    freeaddrinfo(info);
    if (address.any.sa_family == AF_INET)
        address.v4.sin_port = htons(port);
    else
        address.v6.sin6_port = htons(port);
    return address;
}

static const char *address_text(const struct sockaddr *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN + 16], service[8];
    socklen_t length = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

    if (getnameinfo(address, length, host, sizeof(host), service, sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV) !=
        0)
        return "?";
    snprintf(text, size, address->sa_family == AF_INET ? "%s:%s" : "[%s]:%s", host, service);
    return text;
}

static void event_done(struct raw *raw)
{
    if (raw->event)
        rdma_ack_cm_event(raw->event);
    raw->event = NULL;
}

static void event_wait(struct raw *raw, enum rdma_cm_event_type expected)
{
    event_done(raw);
    check("rdma_get_cm_event", rdma_get_cm_event(raw->channel, &raw->event));
    if (raw->event->event != expected) {
        char text[160];

        snprintf(text, sizeof(text), "%s (status %d) instead of %s", rdma_event_str(raw->event->event),
                 raw->event->status, rdma_event_str(expected));
        refuse("connection", text);
    }
}

/* --- the adapter's objects --- */

static void prepare(struct raw *raw, bool passive)
{
    struct pp_session *session = &raw->session;
    size_t size = pp_memory_size(session);
    uint32_t depth = PP_QUEUE_DEPTH(session);
    struct ibv_qp_init_attr init = { 0 };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
    int mask;

    check("ibv_query_device", ibv_query_device(raw->id->verbs, &raw->attr));
    raw->iwarp = raw->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    raw->pd = made("ibv_alloc_pd", ibv_alloc_pd(raw->id->verbs));
    raw->link.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw->link.memory == MAP_FAILED)
        refuse("mmap", strerror(errno));
    raw->mr = made("ibv_reg_mr", ibv_reg_mr(raw->pd, raw->link.memory, size,
                                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
    if (session->wait != PP_POLL)
        raw->completions = made("ibv_create_comp_channel", ibv_create_comp_channel(raw->id->verbs));
    raw->epoll = raw->completions ? epoll_for(raw) : -1;
    raw->cq =
        made("ibv_create_cq", ibv_create_cq(raw->id->verbs, (int)PP_CQ_DEPTH(session), NULL, raw->completions, 0));

    /* Devices differ in how much they take inline, and none tells. */
    for (raw->inline_size = session->inline_size;; raw->inline_size /= 2) {
        init = (struct ibv_qp_init_attr){
            .send_cq = raw->cq,
            .recv_cq = raw->cq,
            .qp_type = IBV_QPT_RC,
            .cap = { depth, depth, 1, 1, raw->inline_size },
        };
        raw->qp = ibv_create_qp(raw->pd, &init);
        if (raw->qp || !raw->inline_size)
            break;
    }
    made("ibv_create_qp", raw->qp);
    if (getenv("RAWPINGPONG_LAYER"))
        raw->layer = made("memory", layer_new(depth, raw));
    if (passive || raw->iwarp) {
        check("rdma_init_qp_attr", rdma_init_qp_attr(raw->id, &attr, &mask));
    } else {
        /* Not connected to a path yet, but the receives may be posted. */
        attr.port_num = raw->id->port_num;
        mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }
    check("ibv_modify_qp to INIT", ibv_modify_qp(raw->qp, &attr, mask));
}

static bool needs_notify(const struct raw *raw)
{
    return raw->iwarp; /* as the library decides: iWARP promises no order of placement */
}

static uint8_t read_limit(const struct raw *raw, int limit)
{
    uint32_t depth = raw->session.depth < 255 ? raw->session.depth : 255;

    return (uint8_t)((int)depth < limit ? (int)depth : limit);
}

static struct rdma_conn_param parameters(const struct raw *raw, const void *data, uint8_t length)
{
    return (struct rdma_conn_param){
        .private_data = data,
        .private_data_len = length,
        .responder_resources = read_limit(raw, raw->attr.max_qp_rd_atom),
        .initiator_depth = read_limit(raw, raw->attr.max_qp_init_rd_atom),
        .retry_count = 6,
        .rnr_retry_count = 6,
        .qp_num = raw->qp->qp_num,
    };
}

/* To RTS by what the connection messages said; the timers are the library's defaults. */
static void bring_up(struct raw *raw)
{
    static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

    for (unsigned int i = 0; i < 3; i++) {
        struct ibv_qp_attr attr = { .qp_state = states[i] };
        int mask;

        check("rdma_init_qp_attr", rdma_init_qp_attr(raw->id, &attr, &mask));
        if (states[i] == IBV_QPS_RTR) {
            attr.min_rnr_timer = 20;
        } else if (states[i] == IBV_QPS_RTS) {
            attr.timeout = 18;
            attr.retry_cnt = 6;
            attr.rnr_retry = 6;
        }
        check("ibv_modify_qp", ibv_modify_qp(raw->qp, &attr, mask));
    }
}

static void release(struct raw *raw)
{
    event_done(raw);
    if (raw->qp)
        ibv_destroy_qp(raw->qp);
    if (raw->cq)
        ibv_destroy_cq(raw->cq);
    layer_free(raw->layer);
    if (raw->epoll >= 0)
        close(raw->epoll);
    if (raw->completions)
        ibv_destroy_comp_channel(raw->completions);
    if (raw->mr)
        ibv_dereg_mr(raw->mr);
    if (raw->pd)
        ibv_dealloc_pd(raw->pd);
    if (raw->link.memory)
        munmap(raw->link.memory, pp_memory_size(&raw->session));
    rdma_destroy_id(raw->id);
}

/* --- the link --- */

static void post(struct raw *raw, struct ibv_send_wr *wr, size_t offset, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)raw->link.memory + offset, length, raw->mr->lkey };
    struct ibv_send_wr *bad;

    wr->sg_list = &sge;
    wr->num_sge = length || wr->opcode == IBV_WR_RDMA_READ ? 1 : 0;
    wr->send_flags = IBV_SEND_SIGNALED;
    if (length && length <= raw->inline_size && wr->opcode != IBV_WR_RDMA_READ)
        wr->send_flags |= IBV_SEND_INLINE;
    check("ibv_post_send", raw->layer ? layer_post_send(raw->layer, raw->qp, wr) : ibv_post_send(raw->qp, wr, &bad));
}

static void raw_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct ibv_send_wr wr = { .wr_id = context, .opcode = IBV_WR_SEND };

    post(raw_from_link(link), &wr, offset, length);
}

static void raw_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct raw *raw = raw_from_link(link);
    struct ibv_sge sge = { (uintptr_t)link->memory + offset, length, raw->mr->lkey };
    /* siw takes no receive without an entry. */
    struct ibv_recv_wr wr = { .wr_id = context, .sg_list = &sge, .num_sge = length || raw->iwarp ? 1 : 0 }, *bad;

    check("ibv_post_recv", raw->layer ? layer_post_recv(raw->layer, raw->qp, &wr) : ibv_post_recv(raw->qp, &wr, &bad));
}

static void raw_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct raw *raw = raw_from_link(link);
    struct ibv_send_wr wr = { .wr_id = context, .opcode = IBV_WR_RDMA_WRITE };

    wr.wr.rdma.remote_addr = raw->session.remote_address + remote;
    wr.wr.rdma.rkey = ntohl(raw->session.remote_token);
    post(raw, &wr, offset, length);
}

static void raw_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct raw *raw = raw_from_link(link);
    struct ibv_send_wr wr = { .wr_id = context, .opcode = IBV_WR_RDMA_READ };

    wr.wr.rdma.remote_addr = raw->session.remote_address + remote;
    wr.wr.rdma.rkey = ntohl(raw->session.remote_token);
    post(raw, &wr, offset, length);
}

static unsigned int layer_take(struct raw *raw, struct pp_result *out, unsigned int n)
{
    struct layer_result results[16];
    int got = layer_results(raw->layer, raw->cq, results, n);

    if (got < 0)
        refuse("ibv_poll_cq", "failed");
    for (int i = 0; i < got; i++) {
        if (results[i].status != IBV_WC_SUCCESS)
            refuse("a request", ibv_wc_status_str((enum ibv_wc_status)results[i].status));
        out[i].context = results[i].context;
        out[i].bytes = results[i].bytes;
    }
    return (unsigned int)got;
}

static unsigned int raw_results(struct pp_link *link, struct pp_result *out, unsigned int n)
{
    struct raw *raw = raw_from_link(link);
    struct ibv_wc wc[16];
    int got;

    if (raw->layer)
        return layer_take(raw, out, n);
    got = ibv_poll_cq(raw->cq, (int)n, wc);

    if (got < 0)
        refuse("ibv_poll_cq", "failed");
    for (int i = 0; i < got; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            refuse("a request", ibv_wc_status_str(wc[i].status));
        out[i].context = (uintptr_t)wc[i].wr_id;
        out[i].bytes = wc[i].byte_len;
    }
    return (unsigned int)got;
}

/* Called when the queue was found empty: arms it, and sleeps only if it is empty still. */
static void raw_wait(struct pp_link *link)
{
    struct raw *raw = raw_from_link(link);
    struct ibv_cq *cq;
    void *context;

    if (!raw->completions)
        return;
    if (raw->armed) {
        if (raw->epoll >= 0)
            epoll_sleep(raw);
        check("ibv_get_cq_event", ibv_get_cq_event(raw->completions, &cq, &context));
        ibv_ack_cq_events(cq, 1);
        raw->armed = false;
    } else {
        check("ibv_req_notify_cq", ibv_req_notify_cq(raw->cq, 0));
        raw->armed = true;
    }
}

static struct rdma_event_channel *watched;

static bool gone; /* of the present connection */

/* Also looks now and then whether the peer is gone: nothing else would tell a polling program. What came before that is
 * looked at once more: the last message may have come behind the last look. */
static void raw_yield(void)
{
    static uint32_t idle;
    struct pollfd fd = { watched->fd, POLLIN, 0 };

    sched_yield();
    idle += pp_spin;
    if (idle < LOOK_POLLS)
        return;
    idle = 0;
    if (gone)
        refuse("the connection is gone", "the peer has ended or disconnected");
    gone = poll(&fd, 1, 0) > 0;
}

static const struct pp_link_ops raw_ops = {
    .send = raw_send,
    .receive = raw_receive,
    .write = raw_write,
    .read = raw_read,
    .results = raw_results,
    .wait = raw_wait,
    .yield = raw_yield,
};

/* --- the two sides --- */

static bool run_client(const struct pp_options *options)
{
    struct raw raw = { .link.ops = &raw_ops };
    struct pp_report report = { .options = options, .interface = "verbs" };
    union address remote = address_parse(options->connect, options->port), local;
    struct rdma_conn_param param;
    struct pp_hello hello;
    char local_text[80], remote_text[80];
    const char *why;
    bool right;

    pp_session_from_options(&raw.session, options);
    watched = raw.channel = made("rdma_create_event_channel", rdma_create_event_channel());
    check("rdma_create_id", rdma_create_id(raw.channel, &raw.id, NULL, RDMA_PS_TCP));
    if (options->bind) {
        local = address_parse(options->bind, 0);
        check("rdma_bind_addr", rdma_bind_addr(raw.id, &local.any));
    }
    check("rdma_resolve_addr", rdma_resolve_addr(raw.id, NULL, &remote.any, 5000));
    event_wait(&raw, RDMA_CM_EVENT_ADDR_RESOLVED);
    check("rdma_resolve_route", rdma_resolve_route(raw.id, 5000));
    event_wait(&raw, RDMA_CM_EVENT_ROUTE_RESOLVED);
    prepare(&raw, false);

    pp_hello_fill(&hello, &raw.session, raw.session.notify || needs_notify(&raw), (uintptr_t)raw.link.memory,
                  htonl(raw.mr->rkey));
    raw.session.notify |= needs_notify(&raw);
    param = parameters(&raw, &hello, sizeof(hello));
    check("rdma_connect", rdma_connect(raw.id, &param));
    event_wait(&raw, raw.iwarp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE);
    why = pp_welcome_read(raw.event->param.conn.private_data, raw.event->param.conn.private_data_len, &raw.session);
    if (why)
        refuse(options->connect, why);
    event_done(&raw);
    if (!raw.iwarp) {
        bring_up(&raw);
        check("rdma_establish", rdma_establish(raw.id));
    }

    report.device = ibv_get_device_name(raw.id->verbs->device);
    report.local = address_text(rdma_get_local_addr(raw.id), local_text, sizeof(local_text));
    report.remote = address_text(rdma_get_peer_addr(raw.id), remote_text, sizeof(remote_text));
    right = pp_client(&raw.link, &raw.session, options, &report);

    check("rdma_disconnect", rdma_disconnect(raw.id));
    event_wait(&raw, RDMA_CM_EVENT_DISCONNECTED);
    release(&raw);
    rdma_destroy_event_channel(raw.channel);
    return right;
}

static bool serve(struct raw *raw, struct rdma_cm_id *listener)
{
    struct rdma_conn_param param;
    struct pp_welcome welcome;
    char text[80];
    const char *why;
    bool right;

    raw->id = listener;
    event_wait(raw, RDMA_CM_EVENT_CONNECT_REQUEST);
    raw->id = raw->event->id;
    address_text(rdma_get_peer_addr(raw->id), text, sizeof(text));
    why = pp_hello_read(raw->event->param.conn.private_data, raw->event->param.conn.private_data_len, &raw->session);
    event_done(raw);
    if (why) {
        fprintf(stderr, "%s: %s turned away: %s\n", program, text, why);
        rdma_reject(raw->id, NULL, 0);
        rdma_destroy_id(raw->id);
        return false;
    }
    printf("%s: %s, %s, depth %u, up to %u bytes%s\n", text, pp_op_name(raw->session.op),
           pp_wait_name(raw->session.wait), raw->session.depth, raw->session.max_size,
           raw->session.verify ? ", every byte verified" : "");
    fflush(stdout);

    prepare(raw, true);
    pp_server_prepare(&raw->link);
    pp_welcome_fill(&welcome, needs_notify(raw), (uintptr_t)raw->link.memory, htonl(raw->mr->rkey));
    param = parameters(raw, &welcome, sizeof(welcome));
    if (!raw->iwarp)
        bring_up(raw);
    check("rdma_accept", rdma_accept(raw->id, &param));
    event_wait(raw, RDMA_CM_EVENT_ESTABLISHED);
    event_done(raw);
    gone = false;
    right = pp_server(&raw->link, &raw->session);

    /* The client disconnects when it is done. */
    event_wait(raw, RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(raw->id);
    if (raw->session.verify && raw->session.op != PP_READ)
        printf("%s: %llu bytes verified here%s\n", text, (unsigned long long)raw->session.verified,
               right ? "" : ": NOT all as sent");
    fflush(stdout);
    release(raw);
    return right;
}

static bool run_server(const struct pp_options *options)
{
    union address local = { .v4 = { .sin_family = AF_INET, .sin_port = htons(options->port) } };
    struct rdma_cm_id *listener;
    char text[80];
    bool right = true;

    if (options->bind)
        local = address_parse(options->bind, options->port);
    watched = made("rdma_create_event_channel", rdma_create_event_channel());
    check("rdma_create_id", rdma_create_id(watched, &listener, NULL, RDMA_PS_TCP));
    check("rdma_bind_addr", rdma_bind_addr(listener, &local.any));
    check("rdma_listen", rdma_listen(listener, 16));
    printf("listening on %s\n", address_text(&local.any, text, sizeof(text)));
    fflush(stdout);
    do {
        struct raw raw = { .link.ops = &raw_ops, .channel = watched };

        right = serve(&raw, listener) && right;
    } while (options->keep);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(watched);
    return right;
}

int main(int argc, char **argv)
{
    struct pp_options options;

    pp_options_parse(&options, program, false, argc, argv);
    return (options.server ? run_server(&options) : run_client(&options)) ? 0 : 1;
}
