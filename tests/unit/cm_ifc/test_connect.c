/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <errno.h>

/* Requests, replies, rejections and disconnects: iba-cm.md 4, 6 and 9. */

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

static void zeros(const void *data, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        ok_uint(((const uint8_t *)data)[i], ==, 0);
}

static void whole_connection(bool iw)
{
    struct pair pair;
    const iba_cm_req_event *req = &pair.request.data.req;
    const ib_cm_rdma_req_t *header = (const ib_cm_rdma_req_t *)(const void *)req->pdata;
    iba_cm_event *event;
    const iba_cm_rep *rep;

    pair_established(&pair, iw);
    zeros(&pair.listener.event[0]->data, 0, sizeof(pair.listener.event[0]->data));
    ok_int(pair.request.type, ==, iba_cm_req_received);
    ok_uint(req->service_id, ==, service_of(PORT));
    ok_uint(req->qpn, ==, htonl(iw ? pair.qp[0]->qp_num : 0x1234));
    ok_int(req->qp_type, ==, IB_QPT_RELIABLE_CONN);
    ok_uint(header->maj_min_ver, ==, 0);
    ok_uint(header->ipv, ==, IB_REQ_CM_RDMA_IPV4);
    ok_uint(header->dst_ip_addr[3], ==, inet_addr(iw ? "10.1.2.1" : "10.1.1.1"));
    ok_uint(header->src_ip_addr[3], ==, inet_addr(iw ? "10.1.2.1" : "10.1.1.1"));
    ok_uint(header->src_port, !=, 0);
    ok_str((const char *)header->pdata, "hello");
    zeros(header->pdata, 6, sizeof(header->pdata));
    ok_uint(req->resp_res, ==, 3); /* the sender's initiator depth */
    ok_uint(req->init_depth, ==, 4);
    ok_uint(req->retry_cnt, ==, 5);
    ok_uint(req->rnr_retry_cnt, ==, 6);
    ok_uint(req->port_num, ==, 1);
    ok_uint(req->local_ca_guid, !=, 0);
    ok_uint(req->remote_ca_guid, ==, 0);
    ok_uint(req->max_cm_retries, ==, 15);

    event = client_event(&pair.active, 0, iba_cm_rep_received);
    rep = &event->data.rep.rep;
    ok_uint(rep->pdata_len, ==, IB_REP_PDATA_SIZE);
    ok_str(rep->p_pdata, "world");
    zeros(rep->p_pdata, 6, IB_REP_PDATA_SIZE);
    if (!iw) {
        ok_uint(rep->qpn, ==, htonl(0x5678));
        ok_uint(rep->starting_psn, !=, 0);
        ok_uint(rep->resp_res, ==, 1);
        ok_uint(rep->init_depth, ==, 2);
        ok_uint(rep->rnr_retry_cnt, ==, 4);
    }
    event = client_event(&pair.passive, 0, iba_cm_rtu_received);
    ok_uint(event->data.rtu.pdata_len, ==, IB_RTU_PDATA_SIZE);
    zeros(event->data.rtu.p_pdata, 0, IB_RTU_PDATA_SIZE);

    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    event = client_event(&pair.passive, 1, iba_cm_dreq_received);
    ok_uint(event->data.dreq.pdata_len, ==, IB_DREQ_PDATA_SIZE);
    zeros(event->data.dreq.p_pdata, 0, IB_DREQ_PDATA_SIZE);
    ok_status(CM.send_dreq(pair.passive.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_drep(pair.passive.id, NULL, 0), STATUS_SUCCESS);
    event = client_event(&pair.active, 1, iba_cm_drep_received);
    ok_uint(event->data.drep.pdata_len, ==, IB_DREP_PDATA_SIZE);
    ok(client_in(&pair.active, CM_TIMEWAIT));
    ok(client_in(&pair.passive, CM_TIMEWAIT));
    rig_settle();
    ok_uint(client_count(&pair.listener), ==, 1);
    ok_uint(client_count(&pair.active), ==, 2);
    ok_uint(client_count(&pair.passive), ==, 2);
    pair_end(&pair);
}

TEST(Connection__infiniband)
{
    whole_connection(false);
}

TEST(Connection__iwarp)
{
    whole_connection(true);
}

/* ---- send_req ---- */

TEST(send_req__arguments)
{
    struct client client;
    struct asked r;
    uint8_t longer[IB_REQ_PDATA_SIZE + 1] = { 0 };

    client_make(&client);
    ok_status(CM.send_req(client.id, NULL), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.req.p_primary_path = NULL;
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.req.p_pdata = longer;
    r.req.pdata_len = sizeof(longer);
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.req.qp_type = IB_QPT_UNRELIABLE_DGRM;
    ok_status(CM.send_req(client.id, &r.req), STATUS_NOT_SUPPORTED);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.req.service_id = htobe64(0x1000);
    ok_status(CM.send_req(client.id, &r.req), STATUS_NOT_SUPPORTED);
    r.req.service_id = ib_cm_rdma_cm_sid(0x11, htons(PORT));
    ok_status(CM.send_req(client.id, &r.req), STATUS_NOT_SUPPORTED);
    r.req.service_id = service_of(0);
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "0.0.0.0", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.data.maj_min_ver = 1; /* no header, and no path either */
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_PARAMETER);
    request_fill(&r, NULL, "192.0.2.1", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_NETWORK_UNREACHABLE);
    request_fill(&r, "10.1.3.1", "10.1.1.200", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_ADDRESS);
    ok_uint(client_count(&client), ==, 0);
    ok(client_in(&client, CM_IDLE));
    client_end(&client);
}

TEST(send_req__no_memory)
{
    struct client client;
    struct asked r;
    NTSTATUS status = STATUS_NO_MEMORY;
    unsigned int n;

    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "");
    for (n = 1; n < 100 && status != STATUS_SUCCESS; n++) {
        fake_alloc_fail(n);
        status = CM.send_req(client.id, &r.req);
        ok(status == STATUS_SUCCESS || status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES ||
           status == STATUS_INVALID_ADDRESS);
        if (status != STATUS_SUCCESS)
            ok(client_in(&client, CM_IDLE));
        else
            fake_alloc_clear();
    }
    ok_uint(n, >, 3);
    ok_status(status, STATUS_SUCCESS);
    client_end(&client);
}

/* What goes to the kernel: the client's numbers, and its private data without the header. */
TEST(send_req__parameters)
{
    const struct rdma_conn_param *param;
    struct client client;
    struct asked r;

    client_make(&client);
    request_fill(&r, "10.1.1.1", "10.1.1.200", "hello");
    r.data.src_port = htons(5000);
    r.req.srq = 1;
    r.req.retry_cnt = 7 | 8;
    r.req.flow_ctrl = 1;
    r.req.resp_res = r.req.init_depth = 255;
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    ok_status(CM.send_req(client.id, &r.req), STATUS_INVALID_DEVICE_STATE);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    param = &fake_cm_conn(client_rdma_id(&client))->param;
    ok_uint(param->qp_num, ==, 0x1234);
    ok_uint(param->private_data_len, ==, 56);
    ok_str(param->private_data, "hello");
    ok_uint(param->responder_resources, ==, fake_device_attr("fake_ib")->max_qp_rd_atom);
    ok_uint(param->initiator_depth, ==, fake_device_attr("fake_ib")->max_qp_init_rd_atom);
    ok_uint(param->retry_count, ==, 7);
    ok_uint(param->rnr_retry_count, ==, 6);
    ok_uint(param->srq, ==, 1);
    ok_uint(param->flow_control, ==, 1);
    ok_uint(ntohs(rdma_get_src_port(client_rdma_id(&client))), ==, 5000);
    ok_uint(ntohs(rdma_get_dst_port(client_rdma_id(&client))), ==, PORT);
    client_end(&client);
}

/* A source port that somebody has is replaced. */
TEST(send_req__source_port_in_use)
{
    struct client first, second;
    struct asked r;

    client_make(&first);
    client_make(&second);
    ok_status(CM.listen(first.id, service_of(5000), NULL, 0, 0), STATUS_SUCCESS);
    request_fill(&r, "10.1.1.1", "10.1.1.200", "");
    r.data.src_port = htons(5000);
    ok_status(CM.send_req(second.id, &r.req), STATUS_SUCCESS);
    ok_uint(ntohs(rdma_get_src_port(client_rdma_id(&second))), !=, 5000);
    client_end(&first);
    client_end(&second);
}

/* Without a header the path's GIDs are the addresses: RoCE. */
TEST(send_req__by_path)
{
    struct client client;
    struct asked r;

    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "");
    r.path.dgid.raw[10] = r.path.dgid.raw[11] = 0xff;
    inet_pton(AF_INET, "10.1.1.200", r.path.dgid.raw + 12);
    r.path.sgid = r.path.dgid;
    r.path.sgid.raw[15] = 1;
    r.req.p_pdata = "no header";
    r.req.pdata_len = 10;
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    ok_uint(fake_cm_conn(client_rdma_id(&client))->param.private_data_len, ==, 10);
    ok_uint(rdma_get_peer_addr(client_rdma_id(&client))->sa_family, ==, AF_INET);
    client_end(&client);

    client_make(&client);
    inet_pton(AF_INET6, "fd00:1:1::200", r.path.dgid.raw);
    memset(&r.path.sgid, 0, sizeof(r.path.sgid));
    r.req.p_pdata = NULL;
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    ok_uint(rdma_get_peer_addr(client_rdma_id(&client))->sa_family, ==, AF_INET6);
    client_end(&client);
}

/* Each failure that the kernel can report, and that the id may try again afterwards. */
TEST(send_req__failures)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
        iba_cm_event_type type;
        ib_rej_status_t reason;
    } rows[] = {
        { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, iba_cm_req_error, 0 },
        { RDMA_CM_EVENT_CONNECT_ERROR, -EIO, iba_cm_req_error, 0 },
        { RDMA_CM_EVENT_REJECTED, 28, iba_cm_rej_received, IB_REJ_USER_DEFINED },
        { RDMA_CM_EVENT_REJECTED, 8, iba_cm_rej_received, IB_REJ_INVALID_SID },
        { RDMA_CM_EVENT_REJECTED, 10, iba_cm_rej_received, IB_REJ_STALE_CONN },
        { RDMA_CM_EVENT_REJECTED, 4, iba_cm_rej_received, IB_REJ_TIMEOUT },
    };
    struct client client;
    struct asked r;

    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "hello");
    for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_cm event = { .event = rows[i].event,
                                 .status = rows[i].status,
                                 .private_data = "because",
                                 .private_data_len = rows[i].status == 28 ? 8 : 0 };
        iba_cm_event *told;

        ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
        ok_eventually(fake_count(FAKE_rdma_connect) == i + 1);
        fake_cm_event(client_rdma_id(&client), &event);
        told = client_event(&client, i, rows[i].type);
        ok(client_in(&client, CM_IDLE));
        if (!rows[i].reason)
            continue;
        ok_uint(told->data.rej.reason, ==, rows[i].reason);
        ok_uint(told->data.rej.ari_length, ==, 0);
        ok_uint(told->data.rej.pdata_len, ==, IB_REJ_PDATA_SIZE);
        if (rows[i].status == 28)
            ok_str(told->data.rej.p_pdata, "because");
        else
            zeros(told->data.rej.p_pdata, 0, IB_REJ_PDATA_SIZE);
    }
    fake_resolve_error("10.1.1.200", true, -ETIMEDOUT);
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    client_event(&client, 6, iba_cm_req_error);
    fake_resolve_error("10.1.1.200", false, -EHOSTUNREACH);
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    client_event(&client, 7, iba_cm_req_error);
    client_end(&client);
}

/* iWARP: a closed port is an errno of the connect call itself. */
TEST(send_req__iwarp_nobody_listens)
{
    struct pair pair;
    struct asked r;

    pair_listen(&pair, true);
    request_fill(&r, NULL, "10.1.2.1", "");
    r.req.service_id = service_of(PORT + 1);
    r.req.qpn = htonl(pair.qp[0]->qp_num);
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    ok_uint(client_event(&pair.active, 0, iba_cm_rej_received)->data.rej.reason, ==, IB_REJ_INVALID_SID);
    pair_end(&pair);
}

/* ---- The reply ---- */

TEST(send_rep__arguments_and_parameters)
{
    const struct rdma_conn_param *param;
    uint8_t most[IB_REP_PDATA_SIZE] = { [0] = 1, [IB_REP_PDATA_SIZE - 1] = 2 };
    struct pair pair;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t mod;

    pair_request(&pair, false);
    ok_status(CM.send_rep(pair.passive.id, NULL), STATUS_INVALID_PARAMETER);
    ok_status(CM.format_rep(pair.passive.id, NULL, NULL), STATUS_INVALID_PARAMETER);
    rep.p_pdata = most;
    rep.pdata_len = sizeof(most) + 1;
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_INVALID_PARAMETER);
    ok_status(CM.format_rep(pair.passive.id, &rep, &mod), STATUS_INVALID_PARAMETER);
    rep.pdata_len = sizeof(most);
    rep.resp_res = 0; /* as asked */
    rep.init_depth = 200;
    rep.rnr_retry_cnt = 7 | 8;
    rep.srq = 1;
    ok_status(CM.send_formatted_rep(pair.passive.id), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    ok_uint(rep.starting_psn, !=, 0); /* the kernel's */
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_INVALID_DEVICE_STATE);
    param = &fake_cm_conn(client_rdma_id(&pair.passive))->param;
    ok_uint(param->qp_num, ==, 0x5678);
    ok_uint(param->private_data_len, ==, sizeof(most));
    ok_mem(param->private_data, most, sizeof(most));
    ok_uint(param->responder_resources, ==, 3);
    ok_uint(param->initiator_depth, ==, 4);
    ok_uint(param->rnr_retry_count, ==, 7);
    ok_uint(param->srq, ==, 1);
    ok_mem(client_event(&pair.active, 0, iba_cm_rep_received)->data.rep.rep.p_pdata, most, sizeof(most));
    pair_end(&pair);
}

/* The reply is kept: its private data may change between format and send. */
TEST(format_rep__keeps_the_reply)
{
    char text[] = "world";
    struct pair pair;
    iba_cm_rep rep = reply_of(text);
    ib_qp_mod_t mod;

    pair_request(&pair, false);
    ok_status(CM.format_rep(pair.passive.id, &rep, &mod), STATUS_SUCCESS);
    ok_uint(mod.req_state, ==, IB_QPS_INIT);
    ok(client_in(&pair.passive, CM_REP_FORMATTED));
    ok_status(CM.send_rej(pair.passive.id, IB_REJ_USER_DEFINED, NULL, 0, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.format_rep(pair.passive.id, &rep, NULL), STATUS_SUCCESS);
    memset(text, 'x', sizeof(text));
    ok_status(CM.send_formatted_rep(pair.passive.id), STATUS_SUCCESS);
    ok_status(CM.send_formatted_rep(pair.passive.id), STATUS_INVALID_DEVICE_STATE);
    ok_str(client_event(&pair.active, 0, iba_cm_rep_received)->data.rep.rep.p_pdata, "world");
    pair_end(&pair);
}

TEST(send_rep__peer_has_given_up)
{
    struct pair pair;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t mod;

    pair_request(&pair, false);
    client_end(&pair.active);
    ok_eventually(fake_cm_state(client_rdma_id(&pair.passive)) == FAKE_CM_CLOSED);
    ok_status(CM.get_qp_attr(pair.passive.id, IB_QPS_RTR, &mod), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_INVALID_DEVICE_STATE);
    ok(client_in(&pair.passive, CM_IDLE));
    rig_settle();
    ok_uint(client_count(&pair.passive), ==, 0);
    pair_end(&pair);
}

TEST(send_rep__failures)
{
    struct pair pair;
    iba_cm_rep rep = reply_of("x");

    pair_request(&pair, false);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    fake_cm_simple(client_rdma_id(&pair.passive), RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    client_event(&pair.passive, 0, iba_cm_rep_error);
    ok(client_in(&pair.passive, CM_IDLE));
    pair_end(&pair);
}

/* The active side refuses the reply: with its data, and the passive side sees it. */
TEST(send_rej__of_a_reply)
{
    struct pair pair;
    iba_cm_event *event;

    pair_reply(&pair, false);
    ok_status(CM.send_rej(pair.active.id, IB_REJ_USER_DEFINED, NULL, 0, "sorry", 6), STATUS_SUCCESS);
    event = client_event(&pair.passive, 0, iba_cm_rej_received);
    ok_uint(event->data.rej.reason, ==, IB_REJ_USER_DEFINED);
    ok_str(event->data.rej.p_pdata, "sorry");
    ok(client_in(&pair.active, CM_TIMEWAIT));
    ok(client_in(&pair.passive, CM_IDLE));
    pair_end(&pair);
}

TEST(send_rej__of_a_request)
{
    uint8_t longer[IB_REJ_PDATA_SIZE + 1] = { 0 };
    struct pair pair;
    iba_cm_event *event;
    struct asked r;

    pair_request(&pair, false);
    ok_status(CM.send_rej(pair.passive.id, IB_REJ_USER_DEFINED, longer, IB_ARI_SIZE + 1, NULL, 0),
              STATUS_INVALID_PARAMETER);
    ok_status(CM.send_rej(pair.passive.id, IB_REJ_USER_DEFINED, NULL, 0, longer, sizeof(longer)),
              STATUS_INVALID_PARAMETER);
    ok_status(CM.send_rej(pair.active.id, IB_REJ_USER_DEFINED, NULL, 0, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rej(pair.passive.id, IB_REJ_INSUF_QP, longer, 4, "no", 3), STATUS_SUCCESS);
    event = client_event(&pair.active, 0, iba_cm_rej_received);
    ok_uint(event->data.rej.reason, ==, IB_REJ_USER_DEFINED);
    ok_str(event->data.rej.p_pdata, "no");
    ok_uint(event->data.rej.pdata_len, ==, IB_REJ_PDATA_SIZE);
    ok(client_in(&pair.passive, CM_IDLE));

    /* Both ids may begin anew. */
    request_fill(&r, NULL, "10.1.1.1", "again");
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    ok_status(CM.send_req(pair.passive.id, &r.req), STATUS_SUCCESS);
    pair_end(&pair);
}

TEST(send_rtu__reply_taken_back)
{
    struct pair pair;
    uint8_t longer[IB_RTU_PDATA_SIZE + 1] = { 0 };

    pair_reply(&pair, false);
    ok_status(CM.send_rtu(pair.passive.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rtu(pair.active.id, longer, sizeof(longer)), STATUS_INVALID_PARAMETER);
    fake_fail(FAKE_rdma_establish, 1, EINVAL);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    client_end(&pair.passive);
    client_event(&pair.active, 1, iba_cm_rej_received);
    ok(client_in(&pair.active, CM_IDLE));
    pair_end(&pair);
}

TEST(send_mra__once_each)
{
    uint8_t longer[IB_MRA_PDATA_SIZE + 1] = { 0 };
    struct pair pair;
    iba_cm_rep rep = reply_of("x");

    pair_request(&pair, false);
    ok_status(CM.send_mra(pair.passive.id, 10, longer, sizeof(longer)), STATUS_INVALID_PARAMETER);
    ok_status(CM.send_mra(pair.passive.id, 10, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_mra(pair.passive.id, 10, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.format_rep(pair.passive.id, &rep, NULL), STATUS_SUCCESS);
    ok_status(CM.send_mra(pair.passive.id, 10, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_mra(pair.passive.id, 10, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_formatted_rep(pair.passive.id), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rep_received);
    ok_status(CM.send_mra(pair.active.id, 10, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_mra(pair.active.id, 10, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.passive, 0, iba_cm_rtu_received);
    ok_status(CM.send_mra(pair.active.id, 10, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    pair_end(&pair);
}

/* The queue pair has received something: no callback, not for the RTU that follows either. */
TEST(established__without_a_callback)
{
    struct pair pair;

    pair_reply(&pair, false);
    ok_status(CM.established(pair.active.id), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.established(pair.passive.id), STATUS_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_notify), ==, 1);
    ok_status(CM.established(pair.passive.id), STATUS_INVALID_DEVICE_STATE);
    ok(client_in(&pair.passive, CM_ESTABLISHED));
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_dreq(pair.passive.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.active, 1, iba_cm_dreq_received);
    ok_status(CM.send_drep(pair.active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.passive, 0, iba_cm_drep_received);
    pair_end(&pair);
}

/* ---- Ends ---- */

TEST(send_dreq__arguments)
{
    uint8_t longer[IB_DREQ_PDATA_SIZE + 5] = { 0 };
    struct pair pair;

    pair_established(&pair, false);
    ok_status(CM.send_dreq(pair.active.id, longer, IB_DREQ_PDATA_SIZE + 1), STATUS_INVALID_PARAMETER);
    ok_status(CM.send_drep(pair.active.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_dreq(pair.active.id, longer, 4), STATUS_SUCCESS);
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    client_event(&pair.passive, 1, iba_cm_dreq_received);
    ok_status(CM.send_drep(pair.passive.id, longer, IB_DREP_PDATA_SIZE + 1), STATUS_INVALID_PARAMETER);
    ok_status(CM.send_drep(pair.passive.id, longer, 4), STATUS_SUCCESS);
    ok_status(CM.send_drep(pair.passive.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    client_event(&pair.active, 1, iba_cm_drep_received);
    pair_end(&pair);
}

TEST(send_dreq__no_answer)
{
    struct pair pair;
    struct asked r;

    pair_established(&pair, false);
    fake_wire_drop(FAKE_MSG_DREQ);
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    fake_cm_simple(client_rdma_id(&pair.active), RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    client_event(&pair.active, 1, iba_cm_dreq_error);
    request_fill(&r, NULL, "10.1.1.1", "");
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_INVALID_DEVICE_REQUEST);
    pair_end(&pair);
}

/* Both at once: each sees the end once, and the peer's DREQ gets its answer. */
TEST(send_dreq__crossing)
{
    struct pair pair;

    pair_established(&pair, false);
    fake_wire_hold(true);
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_dreq(pair.passive.id, NULL, 0), STATUS_SUCCESS);
    fake_wire_hold(false);
    client_event(&pair.active, 1, iba_cm_drep_received);
    client_event(&pair.passive, 1, iba_cm_drep_received);
    rig_settle();
    ok_uint(client_count(&pair.active), ==, 2);
    ok_uint(client_count(&pair.passive), ==, 2);
    pair_end(&pair);
}

/* The DREQ overtakes a lost RTU. */
TEST(rtu_received__by_the_disconnect)
{
    struct pair pair;

    pair_reply(&pair, false);
    fake_wire_drop(FAKE_MSG_RTU);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.passive, 0, iba_cm_rtu_received);
    client_event(&pair.passive, 1, iba_cm_dreq_received);
    ok_status(CM.send_drep(pair.passive.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.active, 1, iba_cm_drep_received);
    pair_end(&pair);
}

/* What the peer sees of a destroy, by state. */
TEST(destroy_id__on_the_wire)
{
    struct pair pair;

    pair_request(&pair, false); /* request received */
    client_end(&pair.passive);
    ok_uint(client_event(&pair.active, 0, iba_cm_rej_received)->data.rej.reason, ==, IB_REJ_USER_DEFINED);
    pair_end(&pair);
    pair_reply(&pair, false); /* reply received */
    client_end(&pair.active);
    client_event(&pair.passive, 0, iba_cm_rej_received);
    pair_end(&pair);
    pair_established(&pair, false);
    client_end(&pair.active);
    client_event(&pair.passive, 1, iba_cm_dreq_received);
    pair_end(&pair);
    pair_established(&pair, false); /* DREQ received */
    ok_status(CM.send_dreq(pair.active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.passive, 1, iba_cm_dreq_received);
    client_end(&pair.passive);
    client_event(&pair.active, 1, iba_cm_drep_received);
    pair_end(&pair);
}

TEST(Device__removed)
{
    struct pair pair;
    struct asked r;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t mod;

    pair_established(&pair, false);
    rig_remove("fake_ib");
    client_event(&pair.active, 1, iba_cm_dreq_received);
    client_event(&pair.passive, 1, iba_cm_dreq_received);
    ok_status(CM.send_drep(pair.active.id, NULL, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.get_qp_attr(pair.active.id, IB_QPS_RTS, &mod), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.send_rep(pair.active.id, &rep), STATUS_INVALID_DEVICE_STATE);
    request_fill(&r, "10.1.1.1", "10.1.1.200", "");
    client_end(&pair.active);
    client_make(&pair.active);
    ok(CM.send_req(pair.active.id, &r.req) != STATUS_SUCCESS);
    pair_end(&pair);
}

TEST(Device__removed_while_connecting)
{
    struct client client;
    struct asked r;

    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    rig_remove("fake_ib");
    client_event(&client, 0, iba_cm_req_error);
    client_end(&client);
}

/* The client has the interface still, but nothing on the device. */
TEST(Device__removed_while_nothing_uses_it)
{
    struct client client;
    struct asked r;
    unsigned closed;

    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    client_end(&client);
    request_fill(&r, "10.1.2.1", "10.1.2.200", "");
    client_make(&client);
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    closed = fake_count(FAKE_ibv_close_device);
    rig_remove("fake_ib");
    ok_eventually(fake_count(FAKE_ibv_close_device) == closed + 1);
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 1);
    client_end(&client);
}
