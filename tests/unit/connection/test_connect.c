/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

static union address peer_of(const char *text)
{
    return rig_address(text, 4711);
}

TEST(Connect__completes_on_the_reply)
{
    struct active a;
    ULONG in = 99, out = 99, length = 0;
    uint8_t data[200];
    union address address;

    active_reply_in(&a, ib, &nd_policy);
    ok(fake_qp_state(a.qp->verbs) == IBV_QPS_INIT);
    ok_uint(fake_count(FAKE_rdma_establish), ==, 0);
    ok_status(connector_get_read_limits(a.c, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 2);
    ok_uint(out, ==, 1);
    ok_status(connector_get_read_limits(a.c, NULL, NULL), ND_SUCCESS);
    ok_status(connector_get_private_data(a.c, NULL, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 148); /* 196 on the wire */
    memset(data, 0xee, sizeof(data));
    length = 3;
    ok_status(connector_get_private_data(a.c, data, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 148);
    ok_mem(data, "wor\xee", 4);
    length = sizeof(data);
    ok_status(connector_get_private_data(a.c, data, &length), ND_SUCCESS);
    ok_uint(length, ==, 148);
    ok_mem(data, "world\0\0", 7);
    ok_uint(data[148], ==, 0xee);
    length = 4;
    ok_status(connector_get_peer_address(a.c, &address.sa, &length), ND_BUFFER_OVERFLOW);
    ok_uint(length, ==, 16);
    ok_status(connector_get_peer_address(a.c, &address.sa, &length), ND_SUCCESS);
    ok_uint(address_port(&address.sa), ==, 4711);
    length = sizeof(address);
    ok_status(connector_get_local_address(a.c, &address.sa, &length), ND_SUCCESS);
    ok_uint(length, ==, 16);
    ok_uint(address_port(&address.sa), !=, 0);
    active_end(&a);
    ok(rig_qp_ready(a.qp));
}

TEST(Connect__what_is_sent)
{
    struct active a;
    const struct fake_conn_param *sent;
    const struct fake_call *call;

    active_request_out(&a, ib, &nd_policy);
    sent = fake_cm_conn(rig_id(a.c));
    ok(sent != NULL);
    ok_uint(sent->param.qp_num, ==, a.qp->verbs->qp_num);
    ok_uint(sent->param.responder_resources, ==, 4);
    ok_uint(sent->param.initiator_depth, ==, 3);
    ok_uint(sent->param.retry_count, ==, tunables()->retry_count);
    ok_uint(sent->param.rnr_retry_count, ==, tunables()->rnr_retry);
    ok_uint(sent->param.srq, ==, 0);
    ok_uint(sent->param.private_data_len, ==, 5);
    ok_mem(sent->data, "hello", 5);
    /* The acknowledge time-out is set before the route is resolved. */
    call = fake_log_find_on(FAKE_rdma_set_option, rig_id(a.c), -1);
    ok(call != NULL);
    ok_int(call->arg.option.name, ==, RDMA_OPTION_ID_ACK_TIMEOUT);
    ok_uint(call->arg.option.value, ==, tunables()->ack_timeout);
    ok(fake_log_before(FAKE_rdma_set_option, FAKE_rdma_resolve_route));
    active_end(&a);
}

TEST(Connect__limits_are_clipped_without_a_word)
{
    union address peer = peer_of("10.1.1.200");
    OVERLAPPED ov = OV_INIT;
    struct connector *c = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib);
    const struct fake_conn_param *sent;

    qp->srq = true;
    ok_status(connector_connect(c, qp, &peer.sa, 16, 100000, 100000, NULL, 0, &ov), ND_PENDING);
    rig_run();
    sent = fake_cm_conn(rig_id(c));
    ok(sent != NULL);
    ok_uint(sent->param.responder_resources, ==, ib->limits.max_inbound_reads);
    ok_uint(sent->param.initiator_depth, ==, ib->limits.max_outbound_reads);
    ok_uint(sent->param.srq, ==, 1);
    rig_drop(c);
    ok_done(&ov, ND_CANCELED);
}

TEST(CompleteConnect__moves_the_queue_pair)
{
    struct active a;
    const struct ibv_qp_attr *attr;
    int mask;

    active_established(&a, ib, &nd_policy);
    ok_uint(fake_count(FAKE_ibv_modify_qp), ==, 3); /* the first one when the queue pair was made */
    attr = fake_qp_attr(a.qp->verbs, IBV_QPS_RTR, &mask);
    ok(attr != NULL);
    ok(mask & IBV_QP_ACCESS_FLAGS);
    ok_uint(attr->qp_access_flags, ==, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    ok_uint(attr->max_dest_rd_atomic, ==, 2);
    ok_uint(attr->min_rnr_timer, ==, tunables()->min_rnr_timer);
    attr = fake_qp_attr(a.qp->verbs, IBV_QPS_RTS, &mask);
    ok(attr != NULL);
    ok_uint(attr->max_rd_atomic, ==, 1);
    ok_uint(attr->retry_cnt, ==, tunables()->retry_count);
    ok_uint(attr->rnr_retry, ==, tunables()->rnr_retry);
    ok_uint(attr->timeout, ==, tunables()->ack_timeout);
    ok_uint(fake_count(FAKE_rdma_establish), ==, 1);
    ok(fake_log_before(FAKE_ibv_modify_qp, FAKE_rdma_establish));
    ok_uint(a.qp->count[RIG_CONNECTED], ==, 1);
    active_end(&a);
}

/* The partition is the connection's, which only the kernel knows, and only INIT takes. */
TEST(CompleteConnect__moves_the_queue_pair_on_InfiniBand)
{
    const unsigned all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct active a;
    const struct ibv_qp_attr *attr;
    int mask;

    ib->ethernet = false;
    active_established(&a, ib, &nd_policy);
    ok_uint(fake_count(FAKE_ibv_modify_qp), ==, 4);
    attr = fake_qp_attr(a.qp->verbs, IBV_QPS_INIT, &mask);
    ok(attr != NULL);
    ok(mask & IBV_QP_PKEY_INDEX);
    ok_uint(attr->qp_access_flags, ==, all);
    ok(fake_qp_attr(a.qp->verbs, IBV_QPS_RTR, &mask) != NULL);
    ok(!(mask & IBV_QP_ACCESS_FLAGS));
    active_end(&a);
}

/* The peer has asked for no reads, and the reply says so. */
TEST(CompleteConnect__no_right_to_read_that_nobody_asked_for)
{
    struct active a;
    struct fake_cm reply = { .event = RDMA_CM_EVENT_CONNECT_RESPONSE, .initiator_depth = 3, .qp_num = 9 };

    active_request_out(&a, ib, &nd_policy);
    fake_cm_event(rig_id(a.c), &reply);
    rig_run();
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_done(&a.complete, ND_SUCCESS);
    ok_uint(fake_qp_attr(a.qp->verbs, IBV_QPS_RTR, NULL)->qp_access_flags, ==, IBV_ACCESS_REMOTE_WRITE);
    active_end(&a);
}

TEST(CompleteConnect__peer_with_a_shared_receive_queue)
{
    struct active a;
    struct fake_cm reply = { .event = RDMA_CM_EVENT_CONNECT_RESPONSE, .srq = 1, .qp_num = 9 };
    const struct ibv_qp_attr *attr;

    active_request_out(&a, ib, &nd_policy);
    fake_cm_event(rig_id(a.c), &reply);
    rig_run();
    a.qp->srq = true;
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_done(&a.complete, ND_SUCCESS);
    attr = fake_qp_attr(a.qp->verbs, IBV_QPS_RTS, NULL);
    ok_uint(attr->rnr_retry, ==, 7);
    ok_uint(attr->timeout, ==, tunables()->ack_timeout_srq);
    ok_uint(fake_qp_attr(a.qp->verbs, IBV_QPS_RTR, NULL)->min_rnr_timer, ==, tunables()->min_rnr_timer_srq);
    active_end(&a);
}

/* ---- ndspi-status.md section 6, active side ---- */

enum where {
    AT_ADDRESS,
    AT_ROUTE,
    AT_REQUEST,
};

static const struct {
    enum where where;
    enum rdma_cm_event_type event;
    int status;
    NTSTATUS wanted, v1;
    bool again; /* connector and queue pair can be used again */
} active_rows[] = {
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL, STATUS_BAD_NETWORK_NAME, STATUS_BAD_NETWORK_NAME, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -EAFNOSUPPORT, ND_INVALID_ADDRESS, ND_INVALID_ADDRESS, false },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH, ND_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, ND_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -EADDRNOTAVAIL, ND_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, ND_HOST_UNREACHABLE, ND_HOST_UNREACHABLE, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, ND_HOST_UNREACHABLE, ND_HOST_UNREACHABLE, true },
    { AT_ADDRESS, RDMA_CM_EVENT_ADDR_ERROR, -ENOMEM, ND_INSUFFICIENT_RESOURCES, ND_INSUFFICIENT_RESOURCES, false },
    { AT_ROUTE, RDMA_CM_EVENT_ROUTE_ERROR, -EAGAIN, ND_INSUFFICIENT_RESOURCES, ND_INSUFFICIENT_RESOURCES, false },
    { AT_ROUTE, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, ND_HOST_UNREACHABLE, ND_HOST_UNREACHABLE, true },
    { AT_ROUTE, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, ND_IO_TIMEOUT, ND_TIMEOUT, true },
    { AT_ROUTE, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ND_IO_TIMEOUT, ND_TIMEOUT, true },
    { AT_REQUEST, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ND_IO_TIMEOUT, ND_TIMEOUT, true },
    { AT_REQUEST, RDMA_CM_EVENT_UNREACHABLE, -ENETUNREACH, ND_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE, true },
    { AT_REQUEST, RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH, ND_HOST_UNREACHABLE, ND_HOST_UNREACHABLE, true },
    { AT_REQUEST, RDMA_CM_EVENT_UNREACHABLE, -EIO, ND_HOST_UNREACHABLE, ND_HOST_UNREACHABLE, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 28, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 4, ND_IO_TIMEOUT, ND_TIMEOUT, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 8, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 3, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 27, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED, true },
    { AT_REQUEST, RDMA_CM_EVENT_REJECTED, 12, ND_CONNECTION_REFUSED, ND_CONNECTION_REFUSED, true },
    { AT_REQUEST, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED, false },
    { AT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, 0, ND_CONNECTION_ABORTED, ND_CONNECTION_ABORTED, false },
    { AT_ADDRESS, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ND_DEVICE_REMOVED, ND_DEVICE_REMOVED, false },
    { AT_REQUEST, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ND_DEVICE_REMOVED, ND_DEVICE_REMOVED, false },
};

static void active_row(size_t i, const struct connector_policy *policy, NTSTATUS wanted)
{
    union address peer = peer_of("10.1.1.200");
    struct active a;
    OVERLAPPED again = OV_INIT;
    NTSTATUS status;

    active_start(&a, ib, policy);
    if (active_rows[i].where >= AT_ROUTE)
        active_route(&a);
    if (active_rows[i].where >= AT_REQUEST)
        event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    event(a.c, active_rows[i].event, active_rows[i].status);
    ok_msg(!pending(&a.connect), "row %zu: still pending", i);
    ok_msg((NTSTATUS)a.connect.Internal == wanted, "row %zu: 0x%x, not 0x%x", i, (unsigned)a.connect.Internal,
           (unsigned)wanted);
    ok_msg(rig_qp_ready(a.qp), "row %zu: the queue pair is not as before", i);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 0);
    if (active_rows[i].event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
        ok_status(connector_notify_disconnect(a.c, &again), ND_DEVICE_REMOVED);
    } else {
        status = connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again);
        ok_msg(status == (active_rows[i].again ? ND_PENDING : ND_CONNECTION_ACTIVE), "row %zu: again: 0x%x", i,
               (unsigned)status);
    }
    rig_drop(a.c);
    rig_run();
}

TEST(Connect__every_failure_of_the_table)
{
    for (size_t i = 0; i < sizeof(active_rows) / sizeof(active_rows[0]); i++) {
        active_row(i, &nd_policy, active_rows[i].wanted);
        active_row(i, &v1_policy, active_rows[i].v1);
    }
}

/* Calls of ours that fail on the way. */
TEST(Connect__calls_that_fail)
{
    static const struct {
        enum fake_fn fn;
        int error;
        NTSTATUS wanted;
        bool sync;
    } rows[] = {
        { FAKE_rdma_resolve_addr, EINVAL, STATUS_BAD_NETWORK_NAME, true },
        { FAKE_rdma_resolve_addr, ENETUNREACH, ND_NETWORK_UNREACHABLE, true },
        { FAKE_rdma_resolve_addr, ENOMEM, ND_INSUFFICIENT_RESOURCES, true },
        { FAKE_rdma_resolve_route, ENODEV, ND_HOST_UNREACHABLE, false },
        { FAKE_rdma_connect, EINVAL, ND_CONNECTION_ABORTED, false },
        { FAKE_rdma_connect, ENOMEM, ND_INSUFFICIENT_RESOURCES, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        union address peer = peer_of("10.1.1.200");
        struct connector *c = rig_connector(ib, &nd_policy);
        struct qp *qp = rig_qp(ib);
        OVERLAPPED ov = OV_INIT;
        NTSTATUS status;

        fake_fail(rows[i].fn, 1, rows[i].error);
        status = connector_connect(c, qp, &peer.sa, 16, 1, 1, NULL, 0, &ov);
        if (rows[i].sync) {
            ok_status(status, rows[i].wanted);
            ok_untouched(&ov);
        } else {
            ok_status(status, ND_PENDING);
            rig_run();
            ok_msg((NTSTATUS)ov.Internal == rows[i].wanted, "row %zu: 0x%x", i, (unsigned)ov.Internal);
        }
        ok(rig_qp_ready(qp));
        rig_drop(c);
        rig_run();
    }
}

/* ---- Retry ---- */

TEST(Connect__again_after_a_refusal)
{
    static const char words[] = "go away";
    struct fake_cm reject = {
        .event = RDMA_CM_EVENT_REJECTED, .status = 28, .private_data = words, .private_data_len = sizeof(words)
    };
    union address peer = peer_of("10.1.1.200"), before, after;
    struct rdma_cm_id *first;
    struct active a;
    OVERLAPPED again = OV_INIT;
    ULONG length = sizeof(before);
    uint8_t data[148];

    active_request_out(&a, ib, &nd_policy);
    first = rig_id(a.c);
    ok_status(connector_get_local_address(a.c, &before.sa, &length), ND_SUCCESS);
    ok_status(connector_get_private_data(a.c, NULL, &length), ND_CONNECTION_INVALID);
    ok_uint(length, ==, 0); /* nothing for a caller that looks at it all the same (D11) */
    fake_cm_event(first, &reject);
    rig_run();
    ok_done(&a.connect, ND_CONNECTION_REFUSED);
    length = sizeof(data);
    ok_status(connector_get_private_data(a.c, data, &length), ND_SUCCESS);
    ok_uint(length, ==, 148);
    ok_str((char *)data, words);
    ok_status(connector_get_read_limits(a.c, NULL, NULL), ND_CONNECTION_INVALID);
    ok_status(connector_get_peer_address(a.c, NULL, &length), ND_CONNECTION_INVALID);
    ok_uint(length, ==, 0);
    ok_status(connector_complete_connect(a.c, &again), ND_CONNECTION_INVALID);
    ok_status(connector_disconnect(a.c, &again), ND_CONNECTION_INVALID);
    ok_status(connector_notify_disconnect(a.c, &again), ND_CONNECTION_INVALID);
    ok_untouched(&again);

    ok_ptr(rig_id(a.c), !=, first);
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 4, 3, NULL, 0, &again), ND_PENDING);
    ok_status(connector_get_private_data(a.c, data, &length), ND_CONNECTION_INVALID);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_done(&again, ND_SUCCESS);
    length = sizeof(after);
    ok_status(connector_get_local_address(a.c, &after.sa, &length), ND_SUCCESS);
    ok_uint(address_port(&after.sa), ==, address_port(&before.sa));
    ok_uint(rdma_get_src_port(rig_id(a.c)), ==, htons(address_port(&before.sa)));
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_done(&a.complete, ND_SUCCESS);
    active_end(&a);
}

/* The new id holds the port before the old one lets go. */
TEST(Connect__no_gap_at_the_local_port)
{
    struct active a;
    struct rdma_cm_id *first, *second;
    const struct fake_call *bind, *destroy;

    active_request_out(&a, ib, &nd_policy);
    first = rig_id(a.c);
    event(a.c, RDMA_CM_EVENT_REJECTED, 28);
    second = rig_id(a.c);
    bind = fake_log_find_on(FAKE_rdma_bind_addr, second, 0);
    destroy = fake_log_find_on(FAKE_rdma_destroy_id, first, 0);
    ok(bind && destroy);
    ok_int(bind->result, ==, 0);
    ok_uint(bind->seq, <, destroy->seq);
    active_end(&a);
}

/* No new id can be had at once: the next Connect makes it. */
TEST(Connect__renewing_the_id_fails)
{
    union address peer = peer_of("10.1.1.200");
    struct active a;
    OVERLAPPED again = OV_INIT;

    active_request_out(&a, ib, &nd_policy);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    event(a.c, RDMA_CM_EVENT_REJECTED, 28);
    ok_done(&a.connect, ND_CONNECTION_REFUSED);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_INSUFFICIENT_RESOURCES);
    ok_untouched(&again);
    ok(rig_qp_ready(a.qp));
    ok_status(connector_connect(a.c, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &again), ND_PENDING);
    active_end(&a);
    ok_done(&again, ND_CANCELED);
}

TEST(Connect__stale_connection_is_retried_once)
{
    struct active a;
    struct rdma_cm_id *first;

    active_request_out(&a, ib, &nd_policy);
    first = rig_id(a.c);
    event(a.c, RDMA_CM_EVENT_REJECTED, 10);
    ok_pending(&a.connect);
    ok_ptr(rig_id(a.c), !=, first);
    ok_int(a.c->wire.state, ==, WIRE_ADDRESS);
    ok_uint(a.qp->count[RIG_UNCLAIM], ==, 0);
    event(a.c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_mem(fake_cm_conn(rig_id(a.c))->data, "hello", 5);
    event(a.c, RDMA_CM_EVENT_REJECTED, 10);
    ok_done(&a.connect, ND_CONNECTION_REFUSED);
    ok(rig_qp_ready(a.qp));
    active_end(&a);
}

TEST(Connect__stale_connection_and_no_new_id)
{
    struct active a;

    active_request_out(&a, ib, &nd_policy);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    event(a.c, RDMA_CM_EVENT_REJECTED, 10);
    ok_done(&a.connect, ND_CONNECTION_REFUSED);
    ok(rig_qp_ready(a.qp));
    active_end(&a);
}

TEST(Connect__own_time_out)
{
    struct active a;
    struct rdma_cm_id *first;

    ok_int(setenv("NDVERBS_CONNECT_TIMEOUT_MS", "700", 1), ==, 0);
    tunables_reload();
    active_request_out(&a, ib, &nd_policy);
    first = rig_id(a.c);
    rig_advance(699);
    rig_run();
    ok_pending(&a.connect);
    rig_advance(1);
    rig_run();
    ok_done(&a.connect, ND_IO_TIMEOUT);
    ok(rig_qp_ready(a.qp));
    ok(fake_log_find_on(FAKE_rdma_destroy_id, first, 0) != NULL);
    active_end(&a);

    /* In time: the timer is gone. */
    active_reply_in(&a, ib, &nd_policy);
    ok_uint(rig_timers(), ==, 0);
    rig_advance(5000);
    rig_run();
    ok_int(a.c->wire.state, ==, WIRE_REPLY_IN);
    active_end(&a);
    unsetenv("NDVERBS_CONNECT_TIMEOUT_MS");
    tunables_reload();
}

/* ---- Arguments and addresses ---- */

/* A sandbox, or an emulator, may not have the call that reads private data; a bad pointer is a status there too. */
static bool no_readv;

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
                         unsigned long remotes, unsigned long flags)
{
    if (no_readv) {
        errno = EPERM;
        return -1;
    }
    return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
}

TEST(Connect__private_data_in_a_sandbox)
{
    union address peer = peer_of("10.1.1.200");
    struct connector *c = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OVERLAPPED ov = OV_INIT;

    ok(page != MAP_FAILED);
    ok_int(munmap(page + 4096, 4096), ==, 0);
    no_readv = true;
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, (void *)8, 1, &ov), ND_ACCESS_VIOLATION);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, page + 4090, 12, &ov), ND_ACCESS_VIOLATION);
    strcpy(page + 4090, "hello");
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, page + 4090, 6, &ov), ND_PENDING);
    no_readv = false;
    ok_mem(c->wire.data, "hello", 6);
    ok_int(munmap(page, 4096), ==, 0);
    rig_drop(c);
    ok_done(&ov, ND_CANCELED);
}

TEST(Connect__arguments)
{
    union address peer = peer_of("10.1.1.200"), any = rig_address("0.0.0.0", 1), far = peer_of("192.0.2.7");
    struct connector *c = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib), *other = rig_qp(iw);
    OVERLAPPED ov = OV_INIT;
    uint8_t data[300] = { 0 };

    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, NULL), ND_INVALID_PARAMETER);
    ok_status(connector_connect(c, other, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 1, &ov), ND_ACCESS_VIOLATION);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, (void *)8, 1, &ov), ND_ACCESS_VIOLATION);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, data, 57, &ov), ND_INVALID_BUFFER_SIZE);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, data, 300, &ov), ND_INVALID_BUFFER_SIZE);
    ok_status(connector_connect(c, qp, &peer.sa, 8, 0, 0, NULL, 0, &ov), ND_INVALID_ADDRESS);
    ok_status(connector_connect(c, qp, NULL, 16, 0, 0, NULL, 0, &ov), ND_INVALID_ADDRESS);
    ok_status(connector_connect(c, qp, &any.sa, 16, 0, 0, NULL, 0, &ov), STATUS_BAD_NETWORK_NAME);
    ok_status(connector_connect(c, qp, &far.sa, 16, 0, 0, NULL, 0, &ov), ND_NETWORK_UNREACHABLE);
    ok_untouched(&ov);
    ok_uint(qp->count[RIG_CLAIM], ==, qp->count[RIG_UNCLAIM]);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, data, 56, &ov), ND_PENDING);
    ok_status(connector_connect(c, other, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    ok_pending(&ov);
    rig_drop(c);
    ok_done(&ov, ND_CANCELED);
}

TEST(Connect__busy)
{
    union address peer = peer_of("10.1.1.200");
    struct active a;
    struct connector *second = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib);
    OVERLAPPED ov = OV_INIT;

    active_reply_in(&a, ib, &nd_policy);
    ok_status(connector_connect(a.c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_CONNECTION_ACTIVE);
    ok_status(connector_connect(second, a.qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_CONNECTION_ACTIVE);
    ok_status(connector_accept(a.c, qp, 0, 0, NULL, 0, &ov), ND_CONNECTION_ACTIVE);
    ok_status(connector_accept(second, qp, 0, 0, NULL, 0, &ov), ND_CONNECTION_INVALID);
    ok_status(connector_disconnect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_status(connector_notify_disconnect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_untouched(&ov);
    ok(rig_qp_ready(qp));
    rig_drop(second);
    active_end(&a);
}

TEST(Connect__without_Bind_and_to_loopback)
{
    union address peer = rig_address("127.0.0.1", 99), address;
    struct connector *c = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib);
    OVERLAPPED ov = OV_INIT;
    ULONG length = sizeof(address);
    const struct fake_call *call;

    ok_status(connector_get_local_address(c, NULL, &length), ND_CONNECTION_INVALID);
    ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_PENDING);
    length = sizeof(address);
    ok_status(connector_get_local_address(c, &address.sa, &length), ND_SUCCESS);
    peer = rig_address("10.1.1.1", 99);
    ok(address_equal(&address.sa, &peer.sa));
    ok_uint(address_port(&address.sa), !=, 0);
    call = fake_log_find(FAKE_rdma_resolve_addr, -1);
    ok(address_equal((struct sockaddr *)&call->arg.addr.addr, &peer.sa));
    ok_uint(address_port((struct sockaddr *)&call->arg.addr.addr), ==, 99);
    rig_drop(c);
}

TEST(Bind__statuses)
{
    union address own = rig_address("10.1.1.1", 0), other = rig_address("10.1.2.1", 0), foreign = peer_of("10.1.1.200"),
                  loop = rig_address("127.0.0.1", 0), any = rig_address("0.0.0.0", 600),
                  low = rig_address("10.1.1.1", 80);
    struct connector *c = rig_connector(ib, &nd_policy);
    union address got;
    ULONG length = sizeof(got);

    ok_status(connector_bind(c, NULL, 16), ND_INVALID_ADDRESS);
    ok_status(connector_bind(c, &own.sa, 15), ND_INVALID_ADDRESS);
    ok_status(connector_bind(c, &other.sa, 16), ND_INVALID_ADDRESS);
    ok_status(connector_bind(c, &foreign.sa, 16), ND_INVALID_ADDRESS);
    ok_status(connector_bind(c, &loop.sa, 16), ND_INVALID_ADDRESS);
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRINUSE);
    ok_status(connector_bind(c, &low.sa, 16), ND_SHARING_VIOLATION);
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EACCES);
    ok_status(connector_bind(c, &low.sa, 16), ND_SHARING_VIOLATION);
    rig_run();
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRNOTAVAIL);
    ok_status(connector_bind(c, &low.sa, 16), ND_SHARING_VIOLATION);
    fake_fail(FAKE_rdma_bind_addr, 1, EADDRNOTAVAIL);
    ok_status(connector_bind(c, &own.sa, 16), ND_TOO_MANY_ADDRESSES);
    fake_fail(FAKE_rdma_bind_addr, 1, ENODEV);
    ok_status(connector_bind(c, &own.sa, 16), ND_INVALID_ADDRESS);
    fake_fail(FAKE_rdma_create_id, 1, EMFILE);
    ok_status(connector_bind(c, &own.sa, 16), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_fail(1);
    ok_status(connector_bind(c, &own.sa, 16), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_status(connector_bind(c, &any.sa, 16), ND_SUCCESS);
    ok_status(connector_get_local_address(c, &got.sa, &length), ND_SUCCESS);
    ok(address_equal(&got.sa, &own.sa));
    ok_uint(address_port(&got.sa), ==, 600);
    ok_status(connector_bind(c, &own.sa, 16), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(connector_bind(c, &foreign.sa, 16), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    rig_drop(c);
}

TEST(Bind__many_connectors_on_one_port)
{
    union address local = rig_address("10.1.1.1", 4000);
    struct connector *a = rig_connector(ib, &nd_policy), *b = rig_connector(ib, &nd_policy);

    ok_status(connector_bind(a, &local.sa, 16), ND_SUCCESS);
    ok_status(connector_bind(b, &local.sa, 16), ND_SUCCESS);
    rig_drop(a);
    rig_drop(b);
}

/* The same with a port that was chosen for the first one. */
TEST(Bind__a_port_that_another_connector_was_given)
{
    struct adapter *adapters[] = { ib, iw };

    for (int i = 0; i < 2; i++) {
        union address local = rig_address(i ? "10.1.2.1" : "10.1.1.1", 0);
        struct connector *first = rig_connector(adapters[i], &nd_policy), *b = rig_connector(adapters[i], &nd_policy);
        ULONG length = sizeof(local);

        ok_status(connector_bind(first, &local.sa, 16), ND_SUCCESS);
        ok_status(connector_get_local_address(first, &local.sa, &length), ND_SUCCESS);
        ok_uint(address_port(&local.sa), !=, 0);
        ok_status(connector_bind(b, &local.sa, 16), ND_SUCCESS);
        rig_drop(first);
        rig_drop(b);
    }
}

/* A connector that goes by another port on the wire leaves the listener's to the next listener, when the first one is gone. */
TEST(Bind__keeps_the_other_port_on_the_wire)
{
    union address local = rig_address("10.1.1.1", 4000), peer = rig_address("10.1.1.200", 4711), got;
    struct connector *c = rig_connector(ib, &nd_policy);
    struct qp *qp = rig_qp(ib);
    ULONG length = sizeof(got);
    struct listener *l;
    uint16_t wire;

    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_status(connector_bind(c, &local.sa, 16), ND_SUCCESS);
    wire = ntohs(rdma_get_src_port(rig_id(c)));
    ok_uint(wire, !=, 4000);
    listener_release(l);
    listener_unref(l);
    rig_run();
    for (int i = 0; i < 2; i++) {
        OVERLAPPED ov = OV_INIT;

        ok_status(connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov), ND_PENDING);
        rig_run();
        ok_int(c->wire.state, ==, WIRE_REQUEST_OUT);
        event(c, RDMA_CM_EVENT_REJECTED, 8);
        ok_done(&ov, ND_CONNECTION_REFUSED);
        ok_uint(ntohs(rdma_get_src_port(rig_id(c))), ==, wire);
        ok_status(connector_get_local_address(c, &got.sa, &length), ND_SUCCESS);
        ok_uint(address_port(&got.sa), ==, 4000);
    }
    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    rig_drop(c);
    listener_release(l);
    listener_unref(l);
}

/* The kernel looks the way up from the address that the id is bound to: so do we, bound or not yet (D28). */
TEST(Connect__a_route_for_the_own_address_alone)
{
    union address own = rig_address("10.1.1.1", 0), far = rig_address("10.77.1.1", 4711);
    struct qp *qp = rig_qp(ib), *other = rig_qp(iw);
    OVERLAPPED ov = OV_INIT;

    fake_auto_resolve(false);
    fake_route_from("10.1.1.1", "10.77.1.1");
    for (int bound = 0; bound < 2; bound++) {
        struct connector *c = rig_connector(ib, &nd_policy);

        if (bound)
            ok_status(connector_bind(c, &own.sa, 16), ND_SUCCESS);
        ok_status(connector_connect(c, qp, &far.sa, 16, 0, 0, NULL, 0, &ov), ND_PENDING);
        rig_drop(c);
        ok_done(&ov, ND_CANCELED);
    }
    {
        struct connector *c = rig_connector(iw, &nd_policy);

        ok_status(connector_connect(c, other, &far.sa, 16, 0, 0, NULL, 0, &ov), ND_NETWORK_UNREACHABLE);
        rig_drop(c);
    }
}

/* An adapter can be opened by such an address: then a connector can be bound to it. */
TEST(Bind__link_local_without_a_scope)
{
    union address own = rig_address("fe80::5", 4000), address;
    struct connector *c = rig_connector(ib, &nd_policy);
    ULONG length = sizeof(address);

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(connector_bind(c, &own.sa, 28), ND_SUCCESS);
    ok_status(connector_get_local_address(c, &address.sa, &length), ND_SUCCESS);
    ok(address_equal(&address.sa, &own.sa));
    ok_uint(address.v6.sin6_scope_id, ==, 3);
    ok_uint(address_port(&address.sa), ==, 4000);
    rig_drop(c);
}

/* A20: the kernel refuses to share a port with a listening id; the address shown is the one asked for. */
TEST(Bind__port_of_the_own_listener)
{
    union address local = rig_address("10.1.1.1", 4000), got;
    struct connector *c = rig_connector(ib, &nd_policy), *d = rig_connector(ib, &nd_policy);
    struct listener *l;
    ULONG length = sizeof(got);

    ok_status(listener_create(ib, file, &l), ND_SUCCESS);
    ok_status(listener_bind(l, &local.sa, 16), ND_SUCCESS);
    ok_status(connector_bind(d, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_listen(l, 0), ND_SUCCESS);
    ok_status(connector_bind(c, &local.sa, 16), ND_SUCCESS);
    ok_status(connector_get_local_address(c, &got.sa, &length), ND_SUCCESS);
    ok_uint(address_port(&got.sa), ==, 4000);
    rig_drop(c);
    rig_drop(d);
    listener_release(l);
    listener_unref(l);
}

/* ---- Between reply and CompleteConnect ---- */

TEST(CompleteConnect__reply_taken_back)
{
    static const struct {
        enum rdma_cm_event_type event;
        int status;
    } rows[] = {
        { RDMA_CM_EVENT_REJECTED, 28 },
        { RDMA_CM_EVENT_REJECTED, 4 },
        { RDMA_CM_EVENT_REJECTED, 10 },
        { RDMA_CM_EVENT_DISCONNECTED, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct active a;

        active_reply_in(&a, ib, &nd_policy);
        event(a.c, rows[i].event, rows[i].status);
        ok(rig_qp_ready(a.qp));
        ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_ABORTED);
        ok_status(connector_reject(a.c, NULL, 0), ND_CONNECTION_ABORTED);
        ok_untouched(&a.complete);
        active_end(&a);
    }
}

TEST(CompleteConnect__calls_that_fail)
{
    static const struct {
        bool ethernet;
        enum fake_fn fn;
        unsigned nth;
        bool moved; /* the queue pair has left INIT */
    } rows[] = {
        { false, FAKE_rdma_init_qp_attr, 1, false }, { false, FAKE_rdma_init_qp_attr, 2, false },
        { false, FAKE_rdma_init_qp_attr, 3, true },  { false, FAKE_ibv_modify_qp, 1, false },
        { false, FAKE_ibv_modify_qp, 2, false },     { false, FAKE_ibv_modify_qp, 3, true },
        { false, FAKE_rdma_establish, 1, true },     { true, FAKE_rdma_init_qp_attr, 1, false },
        { true, FAKE_rdma_init_qp_attr, 2, true },   { true, FAKE_ibv_modify_qp, 1, false },
        { true, FAKE_ibv_modify_qp, 2, true },       { true, FAKE_rdma_establish, 1, true },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct active a;

        ib->ethernet = rows[i].ethernet;
        active_reply_in(&a, ib, &nd_policy);
        fake_fail(rows[i].fn, rows[i].nth, EINVAL);
        ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_ABORTED);
        ok_untouched(&a.complete);
        rig_run();
        ok_uint(a.qp->count[RIG_DRAIN], ==, rows[i].moved);
        ok_int(rig_qp_ready(a.qp), ==, !rows[i].moved);
        ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_INVALID);
        active_end(&a);
    }
}

TEST(CompleteConnect__wrong_state)
{
    struct active a;
    OVERLAPPED ov = OV_INIT;

    active_request_out(&a, ib, &nd_policy);
    ok_status(connector_complete_connect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_status(connector_complete_connect(a.c, NULL), ND_INVALID_PARAMETER);
    event(a.c, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_status(connector_complete_connect(a.c, &ov), ND_CONNECTION_INVALID);
    ok_untouched(&ov);
    active_end(&a);
}

TEST(Reject__by_the_active_side)
{
    struct active a;
    uint8_t data[149] = "no";

    active_reply_in(&a, ib, &nd_policy);
    ok_status(connector_reject(a.c, data, 149), ND_INVALID_BUFFER_SIZE);
    ok_status(connector_reject(a.c, NULL, 1), ND_ACCESS_VIOLATION);
    ok_status(connector_reject(a.c, (void *)8, 1), ND_ACCESS_VIOLATION);
    ok_int(a.c->wire.state, ==, WIRE_REPLY_IN);
    ok_status(connector_reject(a.c, data, 3), ND_SUCCESS);
    ok_uint(fake_log_find(FAKE_rdma_reject, -1)->arg.conn.param.private_data_len, ==, 3);
    ok(rig_qp_ready(a.qp));
    ok_status(connector_reject(a.c, NULL, 0), ND_CONNECTION_INVALID);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_CONNECTION_INVALID);
    active_end(&a);
}

/* Kernel 6.0 and later report a changed neighbour as UNREACHABLE whatever the state. */
TEST(UNREACHABLE__is_ignored_once_the_reply_is_in)
{
    struct active a;
    struct passive p;

    active_reply_in(&a, ib, &nd_policy);
    event(a.c, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    ok_int(a.c->wire.state, ==, WIRE_REPLY_IN);
    ok_status(connector_complete_connect(a.c, &a.complete), ND_PENDING);
    ok_status(connector_notify_disconnect(a.c, &a.notify), ND_PENDING);
    event(a.c, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    event(a.c, RDMA_CM_EVENT_ADDR_CHANGE, 0);
    event(a.c, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    event(a.c, RDMA_CM_EVENT_ESTABLISHED, 0);
    ok_int(a.c->wire.state, ==, WIRE_ESTABLISHED);
    ok_pending(&a.notify);
    ok_uint(a.qp->count[RIG_DRAIN], ==, 0);
    active_end(&a);
    passive_established(&p, ib, &nd_policy);
    event(p.c, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    ok_int(p.c->wire.state, ==, WIRE_ESTABLISHED);
    passive_end(&p);
}

/* Walks the allocations of bind and connect: each failure is reported and leaves nothing behind. */
TEST(Connect__out_of_memory)
{
    union address local = rig_address("10.1.1.1", 0), peer = peer_of("10.1.1.200");
    struct qp *qp = rig_qp(ib);
    struct active first;

    active_request_out(&first, ib, &nd_policy); /* what a thread and a file need once */
    active_end(&first);
    for (unsigned n = 1;; n++) {
        struct connector *c = NULL;
        OVERLAPPED ov = OV_INIT;
        NTSTATUS status;
        bool walked;

        fake_alloc_fail(n);
        status = connector_create(ib, file, &nd_policy, &c);
        if (status == ND_SUCCESS)
            status = connector_bind(c, &local.sa, 16);
        if (status == ND_SUCCESS)
            status = connector_connect(c, qp, &peer.sa, 16, 0, 0, NULL, 0, &ov);
        walked = fake_alloc_pending();
        fake_alloc_clear();
        if (status == ND_PENDING)
            rig_run();
        else
            ok(status == ND_NO_MEMORY || status == ND_INSUFFICIENT_RESOURCES);
        if (c)
            rig_drop(c);
        rig_run();
        ok(rig_qp_ready(qp));
        if (walked)
            break;
    }
}
