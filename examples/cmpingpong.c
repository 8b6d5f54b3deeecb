/* SPDX-License-Identifier: MIT */
/* The ping-pong on queue pairs of one's own, from libibverbs, connected by the CM-only interface. On the wire it is the
 * same as ndpingpong: each can be the other's peer. Everything that has to do with the connection is in the second part
 * of this file. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <ntstatus.h>
#include <iba/ib_cm_ifc.h>
#include <ndverbs.h>

#include "pingpong.h"

static const char *program = "cmpingpong";
static INFINIBAND_INTERFACE_CM ifc;

static void __attribute__((noreturn)) refuse(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", program, what, why);
    exit(1);
}

static void check(const char *what, NTSTATUS status)
{
    if (status != STATUS_SUCCESS)
        refuse(what, ndverbs_status_text(status));
}

static void check_errno(const char *what, int result)
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

/* Events, from the callback's thread to the one that waits. */
struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    iba_cm_event *event[8];
    unsigned int count;
};

struct peer {
    struct pp_link link;
    struct pp_session session;
    struct mailbox mail;
    iba_cm_id *id;
    struct ibv_context *context;
    struct ibv_device_attr attr;
    uint8_t port;
    struct ibv_pd *pd;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint32_t inline_size;
    bool iwarp, armed;
};

/* --- the queue pair --- */

static void open_device(struct peer *peer, const char *name)
{
    int count = 0;
    struct ibv_device **list = made("ibv_get_device_list", ibv_get_device_list(&count));

    for (int i = 0; i < count && !peer->context; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name))
            peer->context = made("ibv_open_device", ibv_open_device(list[i]));
    }
    ibv_free_device_list(list);
    if (!peer->context)
        refuse(name, "no such device");
    check_errno("ibv_query_device", ibv_query_device(peer->context, &peer->attr));
    peer->iwarp = peer->context->device->transport_type == IBV_TRANSPORT_IWARP;
}

static void prepare(struct peer *peer, const struct sockaddr *local, socklen_t length)
{
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct pp_session *session = &peer->session;
    size_t size = pp_memory_size(session);
    uint32_t depth = PP_QUEUE_DEPTH(session);

    if (ndverbs_adapter_describe(local, length, &description) != STATUS_SUCCESS)
        refuse("the local address", description.reason[0] ? description.reason : "is none of an RDMA device");
    open_device(peer, description.device);
    peer->port = (uint8_t)description.port;
    peer->pd = made("ibv_alloc_pd", ibv_alloc_pd(peer->context));
    peer->link.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (peer->link.memory == MAP_FAILED)
        refuse("mmap", strerror(errno));
    peer->mr =
        made("ibv_reg_mr", ibv_reg_mr(peer->pd, peer->link.memory, size,
                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
    if (session->wait != PP_POLL)
        peer->completions = made("ibv_create_comp_channel", ibv_create_comp_channel(peer->context));
    peer->cq =
        made("ibv_create_cq", ibv_create_cq(peer->context, (int)PP_CQ_DEPTH(session), NULL, peer->completions, 0));
    /* Devices differ in how much they take inline, and none tells. */
    for (peer->inline_size = session->inline_size;; peer->inline_size /= 2) {
        struct ibv_qp_init_attr init = {
            .send_cq = peer->cq,
            .recv_cq = peer->cq,
            .qp_type = IBV_QPT_RC,
            .cap = { depth, depth, 1, 1, peer->inline_size },
        };

        peer->qp = ibv_create_qp(peer->pd, &init);
        if (peer->qp || !peer->inline_size)
            break;
    }
    made("ibv_create_qp", peer->qp);
}

static void release(struct peer *peer)
{
    check_errno("ibv_destroy_qp", ibv_destroy_qp(peer->qp));
    check_errno("ibv_destroy_cq", ibv_destroy_cq(peer->cq));
    if (peer->completions)
        ibv_destroy_comp_channel(peer->completions);
    check_errno("ibv_dereg_mr", ibv_dereg_mr(peer->mr));
    munmap(peer->link.memory, pp_memory_size(&peer->session));
    check_errno("ibv_dealloc_pd", ibv_dealloc_pd(peer->pd));
    ibv_close_device(peer->context);
    for (unsigned int i = 0; i < peer->mail.count; i++)
        ndverbs_cm_free_event(peer->mail.event[i]);
}

static uint8_t read_limit(const struct peer *peer, int limit)
{
    int depth = peer->session.depth < 255 ? (int)peer->session.depth : 255;

    return (uint8_t)(depth < limit ? depth : limit);
}

static struct peer *peer_of(struct pp_link *link)
{
    return (struct peer *)((char *)link - offsetof(struct peer, link));
}

static void post(struct peer *peer, struct ibv_send_wr *wr, size_t offset, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)peer->link.memory + offset, length, peer->mr->lkey };
    struct ibv_send_wr *bad;

    wr->sg_list = &sge;
    wr->num_sge = length || wr->opcode == IBV_WR_RDMA_READ ? 1 : 0;
    wr->send_flags = IBV_SEND_SIGNALED;
    if (length && length <= peer->inline_size && wr->opcode != IBV_WR_RDMA_READ)
        wr->send_flags |= IBV_SEND_INLINE;
    check_errno("ibv_post_send", ibv_post_send(peer->qp, wr, &bad));
}

static void link_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct ibv_send_wr wr = { .wr_id = context, .opcode = IBV_WR_SEND };

    post(peer_of(link), &wr, offset, length);
}

static void link_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct peer *peer = peer_of(link);
    struct ibv_sge sge = { (uintptr_t)link->memory + offset, length, peer->mr->lkey };
    /* siw takes no receive without an entry. */
    struct ibv_recv_wr wr = { .wr_id = context, .sg_list = &sge, .num_sge = length || peer->iwarp ? 1 : 0 }, *bad;

    check_errno("ibv_post_recv", ibv_post_recv(peer->qp, &wr, &bad));
}

static void remote(struct peer *peer, enum ibv_wr_opcode opcode, uintptr_t context, size_t offset, uint32_t length,
                   size_t to)
{
    struct ibv_send_wr wr = { .wr_id = context, .opcode = opcode };

    wr.wr.rdma.remote_addr = peer->session.remote_address + to;
    wr.wr.rdma.rkey = ntohl(peer->session.remote_token);
    post(peer, &wr, offset, length);
}

static void link_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t to)
{
    remote(peer_of(link), IBV_WR_RDMA_WRITE, context, offset, length, to);
}

static void link_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t to)
{
    remote(peer_of(link), IBV_WR_RDMA_READ, context, offset, length, to);
}

static unsigned int link_results(struct pp_link *link, struct pp_result *out, unsigned int n)
{
    struct ibv_wc wc[16];
    int got = ibv_poll_cq(peer_of(link)->cq, n < 16 ? (int)n : 16, wc);

    if (got < 0)
        refuse("ibv_poll_cq", "failed");
    for (int i = 0; i < got; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            refuse("a request", ibv_wc_status_str(wc[i].status));
        out[i] = (struct pp_result){ .context = (uintptr_t)wc[i].wr_id, .bytes = wc[i].byte_len };
    }
    return (unsigned int)got;
}

/* Called when the queue was found empty: arms it, and sleeps only if it is empty still. */
static void link_wait(struct pp_link *link)
{
    struct peer *peer = peer_of(link);
    struct ibv_cq *cq;
    void *context;

    if (!peer->completions)
        return;
    if (peer->armed) {
        check_errno("ibv_get_cq_event", ibv_get_cq_event(peer->completions, &cq, &context));
        ibv_ack_cq_events(cq, 1);
    } else {
        check_errno("ibv_req_notify_cq", ibv_req_notify_cq(peer->cq, 0));
    }
    peer->armed = !peer->armed;
}

static struct peer *watched;

static bool gone; /* of the present connection */

/* Also looks whether the peer is gone: nothing else would tell a polling program. What came before that is looked at once more:
 * the last message may have come behind the last look. */
static void link_yield(void)
{
    sched_yield();
    if (gone)
        refuse("the connection is gone", "the peer has ended or disconnected");
    gone = __atomic_load_n(&watched->mail.count, __ATOMIC_RELAXED) != 0;
}

static const struct pp_link_ops link_ops = {
    .send = link_send,
    .receive = link_receive,
    .write = link_write,
    .read = link_read,
    .results = link_results,
    .wait = link_wait,
    .yield = link_yield,
};

static void peer_init(struct peer *peer)
{
    *peer = (struct peer){ .link.ops = &link_ops };
    pthread_mutex_init(&peer->mail.lock, NULL);
    pthread_cond_init(&peer->mail.arrived, NULL);
    watched = peer;
}

/* --- the connection --- */

/* The event is the library's and ends with the callback; a copy goes to whoever waits. */
static NTSTATUS event_received(iba_cm_id *id, iba_cm_event *event)
{
    struct mailbox *mail = id->context;

    pthread_mutex_lock(&mail->lock);
    if (mail->count < 8 && ndverbs_cm_copy_event(event, &mail->event[mail->count]) == STATUS_SUCCESS)
        __atomic_store_n(&mail->count, mail->count + 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&mail->arrived);
    pthread_mutex_unlock(&mail->lock);
    return STATUS_SUCCESS;
}

/* The next event, which must be of this type; the caller frees it. */
static iba_cm_event *event_wait(struct mailbox *mail, iba_cm_event_type expected)
{
    static const char *const names[] = { "req_error",  "req_received",  "rep_error",     "rep_received", "rtu_received",
                                         "dreq_error", "dreq_received", "drep_received", "rej_received" };
    iba_cm_event *event;

    pthread_mutex_lock(&mail->lock);
    while (!mail->count)
        pthread_cond_wait(&mail->arrived, &mail->lock);
    event = mail->event[0];
    memmove(mail->event, mail->event + 1, --mail->count * sizeof(mail->event[0]));
    pthread_mutex_unlock(&mail->lock);
    if (event->type != expected) {
        char text[80];
        int reason = event->type == iba_cm_rej_received ? ntohs(event->data.rej.reason) : 0;

        snprintf(text, sizeof(text), "%s (reason %d) instead of %s",
                 event->type <= iba_cm_rej_received ? names[event->type] : "an event", reason, names[expected]);
        refuse("connection", text);
    }
    return event;
}

static void event_expect(struct mailbox *mail, iba_cm_event_type expected)
{
    ndverbs_cm_free_event(event_wait(mail, expected));
}

/* The attributes of the connection messages, for our own queue pair. */
static void move(struct peer *peer, ib_qp_state_t state)
{
    struct ibv_qp_attr attr;
    ib_qp_mod_t mod;
    int mask;

    check("get_qp_attr", ifc.CM.get_qp_attr(peer->id, state, &mod));
    check("ndverbs_cm_qp_attr", ndverbs_cm_qp_attr(peer->context, &mod, &attr, &mask));
    if (mask)
        check_errno("ibv_modify_qp", ibv_modify_qp(peer->qp, &attr, mask));
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_size(const union address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

static union address address_parse(const char *text, uint16_t port)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM }, *info;
    union address address = { .v6 = { 0 } };

    if (getaddrinfo(text, NULL, &hints, &info) != 0)
        refuse(text, "no IPv4 or IPv6 address");
    memcpy(&address, info->ai_addr, info->ai_addrlen);
    freeaddrinfo(info);
    if (address.any.sa_family == AF_INET)
        address.v4.sin_port = htons(port);
    else
        address.v6.sin6_port = htons(port);
    return address;
}

static const char *address_text(const union address *address, char *text, size_t size)
{
    const void *ip = address->any.sa_family == AF_INET6 ? (const void *)&address->v6.sin6_addr : &address->v4.sin_addr;

    return inet_ntop(address->any.sa_family, ip, text, (socklen_t)size);
}

/* The local address towards the peer. */
static union address address_local(const union address *peer)
{
    union address local;
    socklen_t length = sizeof(local);
    int fd = socket(peer->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, &peer->any, address_size(peer)) != 0 || getsockname(fd, &local.any, &length) != 0)
        refuse("the way to the server", strerror(errno));
    close(fd);
    return local;
}

static void ip_write(ib_net32_t to[4], const union address *from)
{
    if (from->any.sa_family == AF_INET6)
        memcpy(to, &from->v6.sin6_addr, 16);
    else
        to[3] = from->v4.sin_addr.s_addr;
}

/* The IP header that stands in front of a request's private data. */
static void header_fill(ib_cm_rdma_req_t *header, const union address *source, const union address *destination)
{
    memset(header, 0, sizeof(*header));
    header->maj_min_ver = IB_REQ_CM_RDMA_VER;
    header->ipv = destination->any.sa_family == AF_INET6 ? IB_REQ_CM_RDMA_IPV6 : IB_REQ_CM_RDMA_IPV4;
    if (source)
        ip_write(header->src_ip_addr, source);
    ip_write(header->dst_ip_addr, destination);
}

static union address header_local(const ib_cm_rdma_req_t *header)
{
    union address address = { .v6 = { 0 } };

    if (header->ipv == IB_REQ_CM_RDMA_IPV6) {
        address.v6.sin6_family = AF_INET6;
        memcpy(&address.v6.sin6_addr, header->dst_ip_addr, 16);
    } else {
        address.v4.sin_family = AF_INET;
        address.v4.sin_addr.s_addr = header->dst_ip_addr[3];
    }
    return address;
}

static void connect_to(struct peer *peer, const union address *local, const union address *to, uint16_t port)
{
    ib_path_rec_t path = { 0 }; /* the header says it all */
    ib_cm_rdma_req_t data;
    iba_cm_req req = {
        .service_id = ib_cm_rdma_cm_sid(6, htons(port)),
        .p_primary_path = &path,
        .qpn = htonl(peer->qp->qp_num),
        .qp_type = IB_QPT_RELIABLE_CONN,
        .p_pdata = &data,
        .pdata_len = sizeof(data),
        .resp_res = read_limit(peer, peer->attr.max_qp_rd_atom),
        .init_depth = read_limit(peer, peer->attr.max_qp_init_rd_atom),
        .retry_cnt = 6,
        .rnr_retry_cnt = 6,
        .max_cm_retries = 15,
    };
    struct pp_hello hello;
    iba_cm_event *reply;
    const char *why;

    header_fill(&data, local, to);
    pp_hello_fill(&hello, &peer->session, peer->session.notify || peer->iwarp, (uintptr_t)peer->link.memory,
                  htonl(peer->mr->rkey));
    peer->session.notify |= peer->iwarp; /* iWARP promises no order of placement */
    memcpy(data.pdata, &hello, sizeof(hello));
    check("create_id", ifc.CM.create_id(event_received, &peer->mail, &peer->id));
    check("send_req", ifc.CM.send_req(peer->id, &req));
    move(peer, IB_QPS_INIT);
    reply = event_wait(&peer->mail, iba_cm_rep_received);
    why = pp_welcome_read(reply->data.rep.rep.p_pdata, reply->data.rep.rep.pdata_len, &peer->session);
    if (why)
        refuse("the server", why);
    ndverbs_cm_free_event(reply);
    move(peer, IB_QPS_INIT); /* now with the rights that the read limits call for */
    move(peer, IB_QPS_RTR);
    move(peer, IB_QPS_RTS);
    check("send_rtu", ifc.CM.send_rtu(peer->id, NULL, 0));
}

static bool run_client(const struct pp_options *options)
{
    struct peer peer;
    struct pp_report report = { .options = options, .interface = "verbs, CM-only interface" };
    union address to = address_parse(options->connect, options->port), local;
    char local_text[80], remote_text[80];
    bool right;

    peer_init(&peer);
    pp_session_from_options(&peer.session, options);
    local = options->bind ? address_parse(options->bind, 0) : address_local(&to);
    prepare(&peer, &local.any, address_size(&local));
    connect_to(&peer, &local, &to, options->port);
    report.device = ibv_get_device_name(peer.context->device);
    report.local = address_text(&local, local_text, sizeof(local_text));
    report.remote = address_text(&to, remote_text, sizeof(remote_text));
    right = pp_client(&peer.link, &peer.session, options, &report);
    check("send_dreq", ifc.CM.send_dreq(peer.id, NULL, 0));
    event_expect(&peer.mail, iba_cm_drep_received);
    ifc.CM.destroy_id(peer.id);
    release(&peer);
    return right;
}

/* The reply in two steps, so that the queue pair is ready, with the limits of the reply, before the client knows. */
static void answer(struct peer *peer)
{
    struct pp_welcome welcome;
    iba_cm_rep rep = {
        .qpn = htonl(peer->qp->qp_num),
        .p_pdata = &welcome,
        .pdata_len = sizeof(welcome),
        .resp_res = read_limit(peer, peer->attr.max_qp_rd_atom),
        .init_depth = read_limit(peer, peer->attr.max_qp_init_rd_atom),
        .rnr_retry_cnt = 6,
    };
    struct ibv_qp_attr attr;
    ib_qp_mod_t init;
    int mask;

    pp_welcome_fill(&welcome, peer->iwarp, (uintptr_t)peer->link.memory, htonl(peer->mr->rkey));
    check("format_rep", ifc.CM.format_rep(peer->id, &rep, &init));
    check("ndverbs_cm_qp_attr", ndverbs_cm_qp_attr(peer->context, &init, &attr, &mask));
    check_errno("ibv_modify_qp", ibv_modify_qp(peer->qp, &attr, mask));
    pp_server_prepare(&peer->link);
    move(peer, IB_QPS_RTR);
    move(peer, IB_QPS_RTS);
    check("send_formatted_rep", ifc.CM.send_formatted_rep(peer->id));
    event_expect(&peer->mail, iba_cm_rtu_received);
}

static bool serve(struct peer *peer, iba_cm_id *listener, struct mailbox *mail)
{
    ib_cm_rdma_req_t data;
    iba_cm_event request;
    union address local;
    NTSTATUS status;
    const char *why;
    bool right;

    while ((status = ifc.CM.get_request_ex(listener, event_received, &peer->mail, &peer->id, &request)) ==
           STATUS_NO_MORE_ENTRIES)
        event_expect(mail, iba_cm_req_received);
    check("get_request_ex", status);
    memcpy(&data, request.data.req.pdata, sizeof(data));
    local = header_local(&data);
    why = pp_hello_read(data.pdata, sizeof(data.pdata), &peer->session);
    if (why) {
        fprintf(stderr, "%s: a client is turned away: %s\n", program, why);
        check("send_rej", ifc.CM.send_rej(peer->id, IB_REJ_USER_DEFINED, NULL, 0, NULL, 0));
        ifc.CM.destroy_id(peer->id);
        return false;
    }
    printf("%s, %s, depth %u, up to %u bytes%s\n", pp_op_name(peer->session.op), pp_wait_name(peer->session.wait),
           peer->session.depth, peer->session.max_size, peer->session.verify ? ", every byte verified" : "");
    fflush(stdout);
    prepare(peer, &local.any, address_size(&local));
    answer(peer);
    gone = false;
    right = pp_server(&peer->link, &peer->session);
    event_expect(&peer->mail, iba_cm_dreq_received); /* the client disconnects when it is done */
    check("send_drep", ifc.CM.send_drep(peer->id, NULL, 0));
    ifc.CM.destroy_id(peer->id);
    if (peer->session.verify && peer->session.op != PP_READ)
        printf("%llu bytes verified here%s\n", (unsigned long long)peer->session.verified,
               right ? "" : ": NOT all as sent");
    fflush(stdout);
    release(peer);
    return right;
}

static bool run_server(const struct pp_options *options)
{
    struct mailbox mail = { .lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER };
    ib_cm_rdma_req_t compare;
    union address local;
    iba_cm_id *listener;
    bool right;

    check("create_id", ifc.CM.create_id(event_received, &mail, &listener));
    if (options->bind) {
        local = address_parse(options->bind, 0);
        header_fill(&compare, NULL, &local);
    }
    check("listen", ifc.CM.listen(listener, ib_cm_rdma_cm_sid(6, htons(options->port)), options->bind ? &compare : NULL,
                                  sizeof(compare), options->bind ? IB_REQ_CM_RDMA_CMP_DST_IP : 0));
    printf("listening on port %u\n", options->port);
    fflush(stdout);
    do {
        struct peer peer;

        peer_init(&peer);
        right = serve(&peer, listener, &mail);
    } while (options->keep);
    ifc.CM.destroy_id(listener);
    for (unsigned int i = 0; i < mail.count; i++)
        ndverbs_cm_free_event(mail.event[i]);
    return right;
}

int main(int argc, char **argv)
{
    struct pp_options options;
    bool right;

    pp_options_parse(&options, program, false, argc, argv);
    check("iba_cm_query_interface",
          iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(ifc), INFINIBAND_INTERFACE_CM_VERSION, &ifc));
    right = options.server ? run_server(&options) : run_client(&options);
    ifc.InterfaceHeader.InterfaceDereference(ifc.InterfaceHeader.Context);
    return right ? 0 : 1;
}
