/* SPDX-License-Identifier: MIT */
/* The CM-only interface on a device: queue pairs of verbs against Network Direct in one process, in both roles, where what
 * the Network Direct side sees is compared with what it sees of its own kind; and the ping-pong programs in all pairs. */
#include "pingpong.h"
#include "session.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>
#include <iba/ib_cm_ifc.h>

#define FROM_CALLER "from the caller"
#define FROM_CALLED "from the one called, which may be longer than the caller's data can be: more than 56 bytes"
#define SIZE        256

static INFINIBAND_INTERFACE_CM ifc;

/* A client of the interface with its queue pair; events by descriptor. */
struct side {
    iba_cm_id *id;
    int fd;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    BYTE buffer[2 * SIZE];
};

static void side_id(struct side *side)
{
    ok_status(ifc.CM.create_id(NULL, side, &side->id), STATUS_SUCCESS);
    ok_status(ndverbs_cm_event_fd(side->id, &side->fd), STATUS_SUCCESS);
}

static void side_qp(struct side *side, const union endpoint *local)
{
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
    };
    struct ibv_device **list;
    int count;

    ok_status(ndverbs_adapter_describe(&local->any, endpoint_size(local), &description), ND_SUCCESS);
    ok((list = ibv_get_device_list(&count)) != NULL);
    for (int i = 0; i < count; i++)
        if (!strcmp(ibv_get_device_name(list[i]), description.device))
            side->context = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    ok(side->context != NULL);
    ok((side->pd = ibv_alloc_pd(side->context)) != NULL);
    ok((side->cq = ibv_create_cq(side->context, 8, NULL, NULL, 0)) != NULL);
    init.send_cq = init.recv_cq = side->cq;
    ok((side->qp = ibv_create_qp(side->pd, &init)) != NULL);
    ok((side->mr = ibv_reg_mr(side->pd, side->buffer, sizeof(side->buffer), IBV_ACCESS_LOCAL_WRITE)) != NULL);
}

static void side_end(struct side *side)
{
    if (side->id)
        ifc.CM.destroy_id(side->id);
    side->id = NULL;
    if (!side->context)
        return;
    ok_int(ibv_destroy_qp(side->qp), ==, 0);
    ok_int(ibv_dereg_mr(side->mr), ==, 0);
    ok_int(ibv_destroy_cq(side->cq), ==, 0);
    ok_int(ibv_dealloc_pd(side->pd), ==, 0);
    ok_int(ibv_close_device(side->context), ==, 0);
}

/* The next event, which must be of this type. */
static iba_cm_event *take(struct side *side, iba_cm_event_type type)
{
    struct pollfd fd = { .fd = side->fd, .events = POLLIN };
    iba_cm_event *event;

    ok_int(poll(&fd, 1, -1), ==, 1);
    ok_status(ndverbs_cm_get_event(side->id, &event), STATUS_SUCCESS);
    ok_int(event->type, ==, type);
    return event;
}

static void take_only(struct side *side, iba_cm_event_type type)
{
    ndverbs_cm_free_event(take(side, type));
}

static void move(struct side *side, const ib_qp_mod_t *mod)
{
    struct ibv_qp_attr attr;
    int mask;

    ok_status(ndverbs_cm_qp_attr(side->context, mod, &attr, &mask), STATUS_SUCCESS);
    ok_msg(!mask || ibv_modify_qp(side->qp, &attr, mask) == 0, "ibv_modify_qp to 0x%x, mask 0x%x: %m", mod->req_state,
           mask);
}

static void move_to(struct side *side, ib_qp_state_t state)
{
    ib_qp_mod_t mod;

    ok_status(ifc.CM.get_qp_attr(side->id, state, &mod), STATUS_SUCCESS);
    move(side, &mod);
}

static void side_receive(struct side *side)
{
    struct ibv_sge sge = { (uintptr_t)side->buffer, SIZE, side->mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

    ok_int(ibv_post_recv(side->qp, &wr, &bad), ==, 0);
}

static void side_send(struct side *side, ULONG seed)
{
    struct ibv_sge sge = { (uintptr_t)side->buffer + SIZE, SIZE, side->mr->lkey };
    struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

    wr.send_flags = IBV_SEND_SIGNALED;
    pattern_fill(side->buffer + SIZE, SIZE, seed);
    ok_int(ibv_post_send(side->qp, &wr, &bad), ==, 0);
}

static void side_results(struct side *side, int wanted)
{
    struct ibv_wc wc;

    while (wanted) {
        int got = ibv_poll_cq(side->cq, 1, &wc);

        ok_int(got, >=, 0);
        if (!got)
            Sleep(1);
        ok_msg(!got || wc.status == IBV_WC_SUCCESS, "a request of the raw side: %s", ibv_wc_status_str(wc.status));
        wanted -= got;
    }
}

/* From the device of the queue pair: on the test wire the route to an own address leads elsewhere. */
static void request(struct side *side, const union endpoint *from, const union endpoint *to)
{
    ib_path_rec_t path = { 0 };
    ib_cm_rdma_req_t data = { .ipv = to->any.sa_family == AF_INET6 ? IB_REQ_CM_RDMA_IPV6 : IB_REQ_CM_RDMA_IPV4,
                              .pdata = FROM_CALLER };
    iba_cm_req req = { .service_id = ib_cm_rdma_cm_sid(6, htons(endpoint_port(to))),
                       .p_primary_path = &path,
                       .qpn = htonl(side->qp->qp_num),
                       .p_pdata = &data,
                       .pdata_len = sizeof(data),
                       .resp_res = 3,
                       .init_depth = 2,
                       .retry_cnt = 6,
                       .rnr_retry_cnt = 6 };

    if (to->any.sa_family == AF_INET6) {
        memcpy(data.src_ip_addr, &from->v6.sin6_addr, 16);
        memcpy(data.dst_ip_addr, &to->v6.sin6_addr, 16);
    } else {
        data.src_ip_addr[3] = from->v4.sin_addr.s_addr;
        data.dst_ip_addr[3] = to->v4.sin_addr.s_addr;
    }
    ok_status(ifc.CM.send_req(side->id, &req), STATUS_SUCCESS);
}

static void begin(struct host *host)
{
    host_open(host);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(ifc), INFINIBAND_INTERFACE_CM_VERSION, &ifc),
              STATUS_SUCCESS);
}

static void end(struct host *host)
{
    ifc.InterfaceHeader.InterfaceDereference(ifc.InterfaceHeader.Context);
    host_close(host);
}

static void check_private_data(struct link *link, const char *wanted)
{
    char data[256];
    ULONG got = sizeof(data);

    ok_status(CALL(link->connector, GetPrivateData, data, &got), ND_SUCCESS);
    ok_uint(got, >, strlen(wanted));
    ok_str(data, wanted);
}

static void check_limits(struct link *link, ULONG inbound, ULONG outbound)
{
    ULONG in, out;

    ok_status(CALL(link->connector, GetReadLimits, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, inbound);
    ok_uint(out, ==, outbound);
}

/* A message from the active side, and one back. */
static void exchange(struct side *side, struct link *link, bool side_first)
{
    if (runner_iwarp())
        Sleep(200); /* what runner_settle is for */
    if (side_first)
        side_send(side, 1);
    else
        post_send(link, 2, SIZE, SIZE, 0);
    if (side_first) {
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        post_send(link, 2, SIZE, SIZE, 0);
        side_results(side, 2);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    } else {
        side_results(side, 1);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
        side_send(side, 1);
        ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        side_results(side, 1);
    }
    pattern_check(link->buffer, SIZE, 1);
    pattern_check(side->buffer, SIZE, 2);
}

/* Network Direct accepts; the client of the CM-only interface connects and disconnects. */
ALONE(nd_accepts)
{
    struct side side = { .id = NULL };
    struct host host;
    struct link link;
    IND2Listener *listener;
    union endpoint to;
    iba_cm_event *event;
    const iba_cm_rep *rep;
    OVERLAPPED notify;
    HRESULT accepted;

    begin(&host);
    link_make(&link, &host, &(struct shape){ .reads = 2 });
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    side_id(&side);
    side_qp(&side, &host.address);
    request(&side, &host.address, &to);
    move_to(&side, IB_QPS_INIT);
    side_receive(&side);
    link_request(&link, listener);
    check_private_data(&link, FROM_CALLER);
    check_limits(&link, 2, 3);
    post_receive(&link, 1, 0, SIZE);
    pattern_fill(link.buffer + SIZE, SIZE, 2);
    accepted = CALL(link.connector, Accept, (IUnknown *)link.qp, 2, 2, FROM_CALLED, sizeof(FROM_CALLED), &link.ov);
    ok_status(accepted, ND_PENDING);
    event = take(&side, iba_cm_rep_received);
    rep = &event->data.rep.rep;
    ok_str(rep->p_pdata, FROM_CALLED);
    ok_uint(rep->init_depth, ==, 2);
    if (!runner_iwarp()) { /* iWARP has no reply of its own: the connection stands */
        ok_uint(rep->resp_res, ==, 2);
        ok_uint(rep->qpn, !=, 0);
        ok_uint(rep->starting_psn, !=, 0);
        ok_pending(link.connector, &link.ov);
        move_to(&side, IB_QPS_INIT);
    }
    ndverbs_cm_free_event(event);
    move_to(&side, IB_QPS_RTR);
    move_to(&side, IB_QPS_RTS);
    ok_status(ifc.CM.send_rtu(side.id, NULL, 0), STATUS_SUCCESS);
    ok_status(finish(link.connector, accepted, &link.ov), ND_SUCCESS);
    overlapped_rubbish(&notify, event_auto());
    ok_status(CALL(link.connector, NotifyDisconnect, &notify), ND_PENDING);
    exchange(&side, &link, true);
    ok_pending(link.connector, &notify);
    ok_status(ifc.CM.send_dreq(side.id, NULL, 0), STATUS_SUCCESS);
    ok_status(finish(link.connector, ND_PENDING, &notify), ND_SUCCESS);
    take_only(&side, iba_cm_drep_received);
    ok_status(FINISH(&link, CALL(link.connector, Disconnect, &link.ov)), ND_SUCCESS);
    CloseHandle(notify.hEvent);
    side_end(&side);
    release_last(listener);
    link_drop(&link);
    end(&host);
}

static void side_listen(struct side *side, union endpoint *address)
{
    NTSTATUS status;

    side_id(side);
    do {
        endpoint_set_port(address, (USHORT)(20000 + rand() % 20000));
        status = ifc.CM.listen(side->id, ib_cm_rdma_cm_sid(6, htons(endpoint_port(address))), NULL, 0, 0);
    } while (status == STATUS_INVALID_PARAMETER); /* taken */
    ok_status(status, STATUS_SUCCESS);
}

static void side_take(struct side *listener, struct side *side, iba_cm_event *event)
{
    NTSTATUS status;

    while ((status = ifc.CM.get_request_ex(listener->id, NULL, side, &side->id, event)) == STATUS_NO_MORE_ENTRIES)
        take_only(listener, iba_cm_req_received);
    ok_status(status, STATUS_SUCCESS);
    ok_status(ndverbs_cm_event_fd(side->id, &side->fd), STATUS_SUCCESS);
}

static HRESULT start_connect(struct link *link, const union endpoint *to)
{
    return CALL(link->connector, Connect, (IUnknown *)link->qp, &to->any, endpoint_size(to), 2, 3, FROM_CALLER,
                sizeof(FROM_CALLER), &link->ov);
}

/* Network Direct connects and disconnects; the reply goes out in two steps. */
ALONE(nd_connects)
{
    struct side listener = { .id = NULL }, side = { .id = NULL };
    struct host host;
    struct link link;
    union endpoint to;
    iba_cm_event event;
    const iba_cm_req_event *req = &event.data.req;
    iba_cm_rep rep = { .p_pdata = FROM_CALLED, .pdata_len = sizeof(FROM_CALLED), .resp_res = 2, .init_depth = 1 };
    ib_qp_mod_t init, rtr;
    HRESULT connected;

    begin(&host);
    link_make(&link, &host, &(struct shape){ .reads = 2 });
    to = host.address;
    side_listen(&listener, &to);
    link_bind(&link);
    post_receive(&link, 1, 0, SIZE);
    pattern_fill(link.buffer + SIZE, SIZE, 2);
    connected = start_connect(&link, &to);
    side_take(&listener, &side, &event);
    ok_str((const char *)req->pdata + 36, FROM_CALLER);
    ok_uint(req->pdata[1], ==, to.any.sa_family == AF_INET6 ? IB_REQ_CM_RDMA_IPV6 : IB_REQ_CM_RDMA_IPV4);
    ok_uint(req->resp_res, ==, 3);
    ok_uint(req->init_depth, ==, 2);
    ok_uint(req->port_num, ==, 1);
    ok_uint(req->local_ca_guid, !=, 0);
    ok(!req->primary_path.dlid == !req->primary_path.slid); /* InfiniBand has both, Ethernet neither */
    ok_uint(req->primary_path.preference, ==, 0);
    if (!runner_iwarp()) { /* whose messages have neither */
        ok_uint(req->qpn, !=, 0);
        ok_uint(req->starting_psn, !=, 0);
    }
    side_qp(&side, &host.address);
    rep.qpn = htonl(side.qp->qp_num);
    ok_status(ifc.CM.format_rep(side.id, &rep, &init), STATUS_SUCCESS);
    move(&side, &init);
    side_receive(&side);
    ok_status(ifc.CM.get_qp_attr(side.id, IB_QPS_RTR, &rtr), STATUS_SUCCESS);
    if (!runner_iwarp()) {
        ok_uint(rtr.state.rtr.resp_res, ==, 2);
        ok_uint(rtr.state.rtr.rq_psn, ==, rep.starting_psn);
        ok_uint(rtr.state.rtr.dest_qp, ==, req->qpn);
        ok_pending(link.connector, &link.ov);
    }
    move_to(&side, IB_QPS_RTR);
    move_to(&side, IB_QPS_RTS);
    ok_status(ifc.CM.send_formatted_rep(side.id), STATUS_SUCCESS);
    ok_status(finish(link.connector, connected, &link.ov), ND_SUCCESS);
    check_private_data(&link, FROM_CALLED);
    if (!runner_iwarp())
        check_limits(&link, 1, 2);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    take_only(&side, iba_cm_rtu_received);
    exchange(&side, &link, false);
    connected = CALL(link.connector, Disconnect, &link.ov);
    take_only(&side, iba_cm_dreq_received);
    if (!runner_iwarp()) {
        Sleep(50);
        ok_pending(link.connector, &link.ov); /* until the answer */
    }
    ok_status(ifc.CM.send_drep(side.id, NULL, 0), STATUS_SUCCESS);
    ok_status(finish(link.connector, connected, &link.ov), ND_SUCCESS);
    side_end(&side);
    side_end(&listener);
    link_drop(&link);
    end(&host);
}

/* Refused by send_rej, by destroy_id, and by nobody listening: as by Network Direct. */
ALONE(nd_is_refused)
{
    struct side listener = { .id = NULL }, side = { .id = NULL };
    struct host host;
    struct link link;
    union endpoint to;
    iba_cm_event event;
    HRESULT connected;

    begin(&host);
    link_make(&link, &host, NULL);
    to = host.address;
    side_listen(&listener, &to);
    link_bind(&link);
    connected = start_connect(&link, &to);
    side_take(&listener, &side, &event);
    ok_status(ifc.CM.send_rej(side.id, IB_REJ_USER_DEFINED, NULL, 0, FROM_CALLED, sizeof(FROM_CALLED)), STATUS_SUCCESS);
    ok_status(finish(link.connector, connected, &link.ov), ND_CONNECTION_REFUSED);
    check_private_data(&link, FROM_CALLED);
    side_end(&side);
    connected = start_connect(&link, &to);
    side_take(&listener, &side, &event);
    side_end(&side);
    ok_status(finish(link.connector, connected, &link.ov), ND_CONNECTION_REFUSED);
    ok_status(ifc.CM.get_request(listener.id, &side.id, &event), STATUS_NO_MORE_ENTRIES); /* tell of the next */
    side.id = NULL;
    connected = start_connect(&link, &to);
    take_only(&listener, iba_cm_req_received);
    ok_status(ifc.CM.cancel_listen(listener.id), STATUS_SUCCESS);
    ok_status(finish(link.connector, connected, &link.ov), ND_CONNECTION_REFUSED);
    listener_gone(&to);
    ok_status(finish(link.connector, start_connect(&link, &to), &link.ov), ND_CONNECTION_REFUSED);
    side_end(&listener);
    link_drop(&link);
    end(&host);
}

/* One of the two reasons for which a request is refused when a listener goes away. */
static UINT16 refused_by(struct side *side)
{
    iba_cm_event *event = take(side, iba_cm_rej_received);
    UINT16 reason = event->data.rej.reason;

    ok(reason == IB_REJ_USER_DEFINED || reason == IB_REJ_INVALID_SID);
    ndverbs_cm_free_event(event);
    return reason;
}

/* Network Direct refuses a request, a reply, and goes away. */
ALONE(nd_refuses)
{
    struct side listener = { .id = NULL }, side = { .id = NULL }, passive = { .id = NULL };
    struct host host;
    struct link link;
    IND2Listener *nd_listener;
    union endpoint to;
    iba_cm_event *event, request_event;
    iba_cm_rep rep = { .p_pdata = "x", .pdata_len = 2 };
    HRESULT connected;

    begin(&host);
    link_make(&link, &host, NULL);
    nd_listener = listen_any(&host);
    to = listener_endpoint(nd_listener);
    side_id(&side);
    side_qp(&side, &host.address);
    request(&side, &host.address, &to);
    link_request(&link, nd_listener);
    ok_status(CALL(link.connector, Reject, FROM_CALLED, sizeof(FROM_CALLED)), ND_SUCCESS);
    event = take(&side, iba_cm_rej_received);
    ok_uint(event->data.rej.reason, ==, IB_REJ_USER_DEFINED);
    ok_str(event->data.rej.p_pdata, FROM_CALLED);
    ndverbs_cm_free_event(event);
    if (!runner_iwarp()) {                  /* there a refusal costs the queue pair its life */
        request(&side, &host.address, &to); /* the same id, the same queue pair */
        release_last(nd_listener);
        refused_by(&side); /* it may have come too late for the listener */
        do { /* what comes before the listener's id is destroyed is refused by the destruction; then nobody listens */
            request(&side, &host.address, &to);
        } while (refused_by(&side) == IB_REJ_USER_DEFINED);
    } else {
        release_last(nd_listener);
    }
    link_drop(&link);

    link_make(&link, &host, NULL);
    to = host.address;
    side_listen(&listener, &to);
    link_bind(&link);
    connected = start_connect(&link, &to);
    side_take(&listener, &passive, &request_event);
    side_qp(&passive, &host.address);
    rep.qpn = htonl(passive.qp->qp_num);
    ok_status(ifc.CM.send_rep(passive.id, &rep), STATUS_SUCCESS);
    ok_status(finish(link.connector, connected, &link.ov), ND_SUCCESS);
    if (!runner_iwarp()) {
        ok_status(CALL(link.connector, Reject, FROM_CALLER, sizeof(FROM_CALLER)), ND_SUCCESS);
        event = take(&passive, iba_cm_rej_received);
        ok_uint(event->data.rej.reason, ==, IB_REJ_USER_DEFINED);
        ok_str(event->data.rej.p_pdata, FROM_CALLER);
        ndverbs_cm_free_event(event);
    }
    side_end(&passive);
    side_end(&side);
    side_end(&listener);
    link_drop(&link);
    end(&host);
}

/* ---- The ping-pong programs ---- */

ALONE(pingpong_with_itself)
{
    pingpong_pair("cmpingpong", "cmpingpong", "--event", NULL);
    pingpong_pair("cmpingpong", "cmpingpong", "--read", NULL);
}

ALONE(pingpong_with_network_direct)
{
    pingpong_pair("ndpingpong", "cmpingpong", "--send", NULL);
    pingpong_pair("cmpingpong", "ndpingpong", "--write", NULL);
}

ALONE(pingpong_with_librdmacm)
{
    pingpong_pair("rawpingpong", "cmpingpong", "--write", NULL);
    if (!runner_iwarp()) /* siw may never look at the first message of a plain program */
        pingpong_pair("cmpingpong", "rawpingpong", "--send", NULL);
}

/* Every pair, in both roles, with each operation. */
LONG_ALONE(pingpong_in_all_ways)
{
    static const char *const programs[] = { "cmpingpong", "ndpingpong", "rawpingpong" };
    static const char *const ways[] = { "--send", "--write", "--read", "--event" };

    for (unsigned int i = 0; i < 3; i++) {
        for (unsigned int way = 0; way < 4; way++) {
            pingpong_pair(programs[i], "cmpingpong", ways[way], NULL);
            if (!runner_iwarp() || strcmp(programs[i], "rawpingpong") != 0)
                pingpong_pair("cmpingpong", programs[i], ways[way], NULL);
        }
    }
}

RUNNER_MAIN
