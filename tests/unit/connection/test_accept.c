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

TEST(GetConnectionRequest__what_is_known_before_Accept)
{
    struct passive p;
    union address address, wanted = rig_address("10.1.1.200", 0);
    ULONG in, out, length = sizeof(address);
    uint8_t data[56];

    passive_request_in(&p, ib, &nd_policy);
    ok_status(connector_get_read_limits(p.c, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 4);
    ok_uint(out, ==, 3);
    ok_status(connector_get_peer_address(p.c, &address.sa, &length), ND_SUCCESS);
    ok(address_equal(&address.sa, &wanted.sa));
    length = sizeof(address);
    ok_status(connector_get_local_address(p.c, &address.sa, &length), ND_SUCCESS);
    ok_uint(address_port(&address.sa), ==, 4711);
    length = sizeof(data);
    ok_status(connector_get_private_data(p.c, data, &length), ND_SUCCESS);
    ok_uint(length, ==, 56);
    ok_mem(data, "hello\0", 6);
    ok_status(connector_bind(p.c, &address.sa, 16), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(connector_complete_connect(p.c, &p.accept), ND_CONNECTION_INVALID);
    ok_status(connector_disconnect(p.c, &p.accept), ND_CONNECTION_INVALID);
    ok_status(connector_notify_disconnect(p.c, &p.accept), ND_CONNECTION_INVALID);
    passive_end(&p);
}

TEST(GetPrivateData__trimmed_on_wish)
{
    struct passive p;
    ULONG length = 0;

    ok_int(setenv("NDVERBS_TRIM_PRIVATE_DATA", "1", 1), ==, 0);
    tunables_reload();
    passive_request_in(&p, ib, &nd_policy);
    ok_status(connector_get_private_data(p.c, NULL, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 5);
    passive_end(&p);
    unsetenv("NDVERBS_TRIM_PRIVATE_DATA");
    tunables_reload();
}

TEST(Accept__completes_on_established)
{
    struct passive p;
    const struct fake_conn_param *sent;
    const struct ibv_qp_attr *attr;
    int mask;
    ULONG in, out;

    passive_reply_out(&p, ib, &nd_policy);
    ok(fake_qp_state(p.qp->verbs) == IBV_QPS_RTS);
    ok_uint(p.qp->count[RIG_CONNECTED], ==, 1); /* data may be answered before the RTU comes */
    sent = fake_cm_conn(p.child);
    ok(sent != NULL);
    ok_uint(sent->param.qp_num, ==, p.qp->verbs->qp_num);
    ok_uint(sent->param.responder_resources, ==, 2);
    ok_uint(sent->param.initiator_depth, ==, 3); /* 9 asked, 3 offered */
    ok_uint(sent->param.rnr_retry_count, ==, tunables()->rnr_retry);
    ok_uint(sent->param.private_data_len, ==, 5);
    ok_mem(sent->data, "world", 5);
    attr = fake_qp_attr(p.qp->verbs, IBV_QPS_RTR, &mask);
    ok(mask & IBV_QP_ACCESS_FLAGS);
    ok_uint(attr->qp_access_flags, ==, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    ok_uint(attr->max_dest_rd_atomic, ==, 2);
    ok_uint(attr->min_rnr_timer, ==, tunables()->min_rnr_timer);
    attr = fake_qp_attr(p.qp->verbs, IBV_QPS_RTS, NULL);
    ok_uint(attr->max_rd_atomic, ==, 3);
    ok_uint(attr->retry_cnt, ==, tunables()->retry_count);
    ok_uint(attr->rnr_retry, ==, tunables()->rnr_retry);
    ok(fake_log_before(FAKE_ibv_modify_qp, FAKE_rdma_accept));
    ok_uint(attr->timeout, ==, tunables()->ack_timeout); /* whatever the child would say */

    event(p.c, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_done(&p.accept, ND_SUCCESS);
    ok_status(connector_get_read_limits(p.c, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 2); /* what was sent; the event carries nothing */
    ok_uint(out, ==, 3);
    passive_end(&p);
}

TEST(Accept__peer_with_a_shared_receive_queue)
{
    struct passive p;

    passive_request_in(&p, ib, &nd_policy);
    p.c->wire.peer_srq = true;
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_PENDING);
    ok_uint(fake_qp_attr(p.qp->verbs, IBV_QPS_RTS, NULL)->rnr_retry, ==, 7);
    ok_uint(fake_qp_attr(p.qp->verbs, IBV_QPS_RTS, NULL)->timeout, ==, tunables()->ack_timeout_srq);
    passive_end(&p);
}

/* ndspi-status.md section 6, passive side. */
TEST(Accept__every_failure_of_the_table)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
        NTSTATUS wanted, v1;
    } rows[] = {
        { RDMA_CM_EVENT_REJECTED, 28, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED },
        { RDMA_CM_EVENT_REJECTED, 4, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED },
        { RDMA_CM_EVENT_REJECTED, 10, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED },
        { RDMA_CM_EVENT_REJECTED, 3, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED },
        { RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ND_IO_TIMEOUT, ND_TIMEOUT },
        { RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED },
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        bool v1 = i & 1;
        struct passive p;
        NTSTATUS wanted = v1 ? rows[i / 2].v1 : rows[i / 2].wanted;

        passive_reply_out(&p, ib, v1 ? &v1_policy : &nd_policy);
        event(p.c, rows[i / 2].event, rows[i / 2].status);
        ok_msg((NTSTATUS)p.accept.Internal == wanted, "row %zu: 0x%x, not 0x%x", i, (unsigned)p.accept.Internal,
               (unsigned)wanted);
        ok_uint(p.qp->count[RIG_CLOSE_POSTS], ==, 1);
        ok_uint(p.qp->count[RIG_DRAIN], ==, 1); /* it was in RTS: nothing posted may be lost */
        ok_status(connector_disconnect(p.c, &p.disconnect), ND_CONNECTION_INVALID);
        ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.disconnect), ND_CONNECTION_INVALID);
        passive_end(&p);
    }
}

/* The RTU was lost and the peer has disconnected already: the connection stood. */
TEST(Accept__disconnect_overtakes_the_rtu)
{
    struct passive p;

    passive_reply_out(&p, ib, &nd_policy);
    event(p.c, RDMA_CM_EVENT_DISCONNECTED, 0);
    ok_done(&p.accept, ND_SUCCESS);
    ok_uint(p.qp->count[RIG_COLLECT], ==, 1);
    ok_uint(p.qp->count[RIG_DRAIN], ==, 1);
    ok_uint(fake_count(FAKE_rdma_disconnect), ==, 1);
    ok_status(connector_notify_disconnect(p.c, &p.notify), ND_PENDING);
    ok_done(&p.notify, ND_SUCCESS);
    ok_status(connector_disconnect(p.c, &p.disconnect), ND_PENDING);
    ok_done(&p.disconnect, ND_SUCCESS);
    passive_end(&p);
}

/* The peer gave up before Accept: nothing is heard, the calls fail with EINVAL. */
TEST(Accept__calls_that_fail)
{
    static const struct {
        bool ethernet;
        enum fake_fn fn;
        unsigned nth;
        bool moved;
    } rows[] = {
        { false, FAKE_rdma_init_qp_attr, 1, false }, { false, FAKE_rdma_init_qp_attr, 2, false },
        { false, FAKE_rdma_init_qp_attr, 3, true },  { false, FAKE_ibv_modify_qp, 2, false },
        { false, FAKE_ibv_modify_qp, 3, true },      { false, FAKE_rdma_accept, 1, true },
        { true, FAKE_rdma_init_qp_attr, 1, false },  { true, FAKE_rdma_init_qp_attr, 2, true },
        { true, FAKE_ibv_modify_qp, 1, false },      { true, FAKE_ibv_modify_qp, 2, true },
        { true, FAKE_rdma_accept, 1, true },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct passive p;

        ib->ethernet = rows[i].ethernet;
        passive_request_in(&p, ib, &nd_policy);
        fake_fail(rows[i].fn, rows[i].nth, EINVAL);
        ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_ABORTED);
        ok_untouched(&p.accept);
        rig_run();
        ok_uint(p.qp->count[RIG_DRAIN], ==, rows[i].moved);
        ok_int(rig_qp_ready(p.qp), ==, !rows[i].moved);
        ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_INVALID);
        ok_status(connector_reject(p.c, NULL, 0), ND_CONNECTION_INVALID);
        passive_end(&p);
    }
}

TEST(Accept__arguments)
{
    struct passive p;
    struct active a;
    struct qp *other = rig_qp(iw);
    uint8_t data[149] = { 0 };

    active_reply_in(&a, ib, &nd_policy);
    passive_request_in(&p, ib, &nd_policy);
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, NULL), ND_INVALID_PARAMETER);
    ok_status(connector_accept(p.c, other, 0, 0, NULL, 0, &p.accept), ND_INVALID_PARAMETER_1);
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 3, &p.accept), ND_ACCESS_VIOLATION);
    ok_status(connector_accept(p.c, p.qp, 0, 0, (void *)8, 3, &p.accept), ND_ACCESS_VIOLATION);
    ok_status(connector_accept(p.c, p.qp, 0, 0, data, 149, &p.accept), ND_INVALID_BUFFER_SIZE);
    ok_status(connector_accept(p.c, a.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_ACTIVE);
    ok_untouched(&p.accept);
    ok_int(p.c->wire.state, ==, WIRE_REQUEST_IN);
    ok_status(connector_accept(p.c, p.qp, 0, 0, data, 148, &p.accept), ND_PENDING);
    ok_status(connector_accept(p.c, p.qp, 0, 0, data, 148, &p.accept), ND_CONNECTION_ACTIVE);
    passive_end(&p);
    ok_done(&p.accept, ND_CANCELED);
    active_end(&a);
}

TEST(Reject__by_the_passive_side)
{
    struct passive p;
    struct rdma_cm_id *child;

    passive_request_in(&p, ib, &nd_policy);
    child = p.child;
    ok_status(connector_reject(p.c, "sorry", 5), ND_SUCCESS);
    ok_mem(fake_cm_conn(child)->data, "sorry", 5);
    ok_status(connector_reject(p.c, NULL, 0), ND_CONNECTION_INVALID);
    ok_status(connector_accept(p.c, p.qp, 0, 0, NULL, 0, &p.accept), ND_CONNECTION_INVALID);
    passive_end(&p);
    passive_request_in(&p, ib, &nd_policy);
    fake_fail(FAKE_rdma_reject, 1, EINVAL);
    ok_status(connector_reject(p.c, NULL, 0), ND_CONNECTION_ABORTED);
    passive_end(&p);
}

TEST(Accept__early_data_completes_it)
{
    struct passive p;

    passive_reply_out(&p, ib, &nd_policy);
    connector_comm_established(p.qp);
    rig_run();
    ok_uint(fake_count(FAKE_rdma_notify), ==, 1);
    ok_done(&p.accept, ND_SUCCESS);
    connector_comm_established(p.qp);
    ok_uint(fake_count(FAKE_rdma_notify), ==, 1);
    passive_end(&p);
}
