/* SPDX-License-Identifier: MIT */

/* The fakes of libibverbs: what they do by default, and what a test can script. */

#include "fakes.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;

static struct ibv_qp *make_qp(void)
{
    struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 2, 2, 64 } };

    return ibv_create_qp(pd, &init);
}

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

    ok_int(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), ==, 0);
}

static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .dest_qp_num = peer, .max_dest_rd_atomic = 1 };

    to_init(qp);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    ok_int(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS),
           ==, 0);
    attr.qp_state = IBV_QPS_RTS;
    ok_int(ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
}

static void to_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    ok_int(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, 0);
}

static int post_send(struct ibv_qp *qp, uint64_t id, unsigned flags)
{
    struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = flags }, *bad = NULL;

    return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp, uint64_t id)
{
    struct ibv_recv_wr wr = { .wr_id = id }, *bad = NULL;

    return ibv_post_recv(qp, &wr, &bad);
}

static bool readable(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    return poll(&poll_fd, 1, 0) == 1;
}

static void nonblocking(int fd)
{
    ok_int(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
}

SETUP
{
    fake_reset();
    context = ibv_open_device(fake_device("fake_ib"));
    ok(context);
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    nonblocking(channel->fd);
    nonblocking(context->async_fd);
    cq = ibv_create_cq(context, 8, &cq, channel, 0);
    ok(pd && channel && cq);
}

TEARDOWN
{
    ok_int(ibv_destroy_cq(cq), ==, 0);
    ok_int(ibv_destroy_comp_channel(channel), ==, 0);
    ok_int(ibv_dealloc_pd(pd), ==, 0);
    ok_int(ibv_close_device(context), ==, 0);
    ok_str(fake_leaks(), "");
    ok_int(fake_live_objects(), ==, 0);
    ok_str(fake_violations(), "");
    ok_int(fake_open_fds(), ==, 0);
}

TEST(devices__list)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    ok_int(count, ==, 2);
    ok_str(ibv_get_device_name(list[0]), "fake_ib");
    ok_str(ibv_get_device_name(list[1]), "fake_iw");
    ok_int(list[1]->transport_type, ==, IBV_TRANSPORT_IWARP);
    ok(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
    ok_int(fake_live(FAKE_OBJ_DEVICE_LIST), ==, 1);
    ibv_free_device_list(list);
}

TEST(queries__inline_wrappers_reach_the_fake)
{
    struct ibv_port_attr port;
    struct ibv_device_attr attr;
    struct ibv_device_attr_ex ex;
    struct ibv_gid_entry table[8];
    union ibv_gid gid;

    fake_port_attr("fake_ib", 1)->state = IBV_PORT_DOWN;
    ok_int(ibv_query_port(context, 1, &port), ==, 0);
    ok_int(port.state, ==, IBV_PORT_DOWN);
    ok_int(ibv_query_port(context, 2, &port), ==, EINVAL);
    fake_device_attr("fake_ib")->max_sge = 7;
    ok_int(ibv_query_device(context, &attr), ==, 0);
    ok_int(attr.max_sge, ==, 7);
    ok_int(ibv_query_device_ex(context, NULL, &ex), ==, 0);
    ok_int(ex.orig_attr.max_sge, ==, 7);
    ok_int(ibv_query_gid(context, 1, 1, &gid), ==, 0);
    ok_int(gid.raw[12], ==, 10);
    ok_int(ibv_query_gid_table(context, table, 8, 0), ==, 3);
    ok_int(fake_count(FAKE_ibv_query_device), ==, 2);
}

TEST(fail__nth_call_with_the_errno_of_its_kind)
{
    char buffer[16];
    struct ibv_mr *mr;

    fake_fail(FAKE_ibv_reg_mr, 2, ENOMEM);
    mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
    ok(mr);
    errno = 0;
    ok_ptr(ibv_reg_mr(pd, buffer, sizeof(buffer), 0), ==, NULL);
    ok_int(errno, ==, ENOMEM);
    ok_int(fake_log_find(FAKE_ibv_reg_mr, -1)->result, ==, ENOMEM);
    ok_int(fake_log_find(FAKE_ibv_reg_mr, 0)->arg.reg_mr.length, ==, 16);
    ok_ptr(fake_log_find(FAKE_ibv_reg_mr, 0)->created, ==, mr);
    fake_fail_always(FAKE_ibv_dereg_mr, EBUSY);
    ok_int(ibv_dereg_mr(mr), ==, EBUSY);
    ok_int(ibv_dereg_mr(mr), ==, EBUSY);
    fake_fail_clear(FAKE_ibv_dereg_mr);
    ok_int(ibv_dereg_mr(mr), ==, 0);
    ok_int(fake_count(FAKE_ibv_dereg_mr), ==, 3);
}

static void count_hook(struct fake_call *call, void *arg)
{
    ok_int(call->fn, ==, FAKE_ibv_alloc_pd);
    ++*(int *)arg;
}

static void failing_hook(struct fake_call *call, void *arg)
{
    call->result = *(int *)arg;
}

TEST(hooks__before_after_and_failing)
{
    int before = 0, after = 0, err = EPERM;
    struct ibv_pd *other;

    fake_on(FAKE_ibv_alloc_pd, count_hook, &before);
    fake_after(FAKE_ibv_alloc_pd, count_hook, &after);
    other = ibv_alloc_pd(context);
    ok_int(ibv_dealloc_pd(other), ==, 0);
    ok_int(before, ==, 1);
    ok_int(after, ==, 1);
    fake_on(FAKE_ibv_alloc_pd, failing_hook, &err);
    ok_ptr(ibv_alloc_pd(context), ==, NULL);
    ok_int(errno, ==, EPERM);
    ok_int(before, ==, 1);
    ok(fake_log_before(FAKE_ibv_dealloc_pd, FAKE_ibv_alloc_pd));
    ok(!fake_log_before(FAKE_ibv_alloc_pd, FAKE_ibv_dealloc_pd));
}

TEST(mr__access_rules)
{
    char buffer[16];
    unsigned access = IBV_ACCESS_REMOTE_WRITE;

    ok_ptr(ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_REMOTE_WRITE), ==, NULL);
    ok_int(errno, ==, EINVAL);
    /* The header picks another function when the flags are no constant. */
    ok_ptr(ibv_reg_mr(pd, buffer, sizeof(buffer), access), ==, NULL);
    ok_ptr(ibv_reg_mr(pd, buffer, 0, 0), ==, NULL);
    ok_int(fake_count(FAKE_ibv_reg_mr), ==, 3);
}

TEST(qp__states_and_masks)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    int mask = 0;

    ok_int(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ==, EINVAL);
    ok_int(post_recv(qp, 1), ==, EINVAL);
    to_rts(qp, 0x999);
    ok_int(fake_qp_state(qp), ==, IBV_QPS_RTS);
    ok(fake_qp_attr(qp, IBV_QPS_RTR, &mask));
    ok_int(fake_qp_attr(qp, IBV_QPS_RTR, &mask)->dest_qp_num, ==, 0x999);
    ok_int(mask, ==, 0x129181 | IBV_QP_ACCESS_FLAGS);
    ok_ptr(fake_qp_attr(qp, IBV_QPS_ERR, NULL), ==, NULL);
    ok_ptr(fake_qp_from_num(qp->qp_num), ==, qp);
    ok_ptr(fake_object(FAKE_OBJ_QP, -1), ==, qp);
    ok_int(ibv_destroy_qp(qp), ==, 0);
    ok_ptr(fake_qp_from_num(1), ==, NULL);
}

TEST(qp__script_completes_posted_work)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_wc wc[8];
    struct fake_wr wr;

    to_rts(qp, 0x999);
    ok_int(post_send(qp, 1, 0), ==, 0);
    ok_int(post_send(qp, 2, IBV_SEND_SIGNALED), ==, 0);
    ok_int(post_recv(qp, 3), ==, 0);
    ok_int(fake_qp_posted(qp, FAKE_SEND), ==, 2);
    ok(fake_qp_wr(qp, FAKE_SEND, 1, &wr));
    ok_int(wr.wr_id, ==, 2);
    ok_int(ibv_poll_cq(cq, 8, wc), ==, 0);
    ok_int(fake_qp_complete(qp, FAKE_SEND, 9, IBV_WC_SUCCESS, 0), ==, 2);
    ok_int(ibv_poll_cq(cq, 8, wc), ==, 1); /* the first was not signalled */
    ok_int(wc[0].wr_id, ==, 2);
    ok_int(fake_qp_complete(qp, FAKE_RECV, 1, IBV_WC_SUCCESS, 77), ==, 1);
    ok_int(ibv_poll_cq(cq, 8, wc), ==, 1);
    ok_int(wc[0].byte_len, ==, 77);
    ok_int(wc[0].opcode, ==, IBV_WC_RECV);
    ok_int(post_send(qp, 4, 0), ==, 0);
    ok_int(post_send(qp, 5, 0), ==, 0);
    ok_int(post_recv(qp, 6), ==, 0);
    ok_int(fake_qp_complete(qp, FAKE_SEND, 1, IBV_WC_RETRY_EXC_ERR, 0), ==, 1);
    ok_int(fake_qp_state(qp), ==, IBV_QPS_ERR);
    ok_int(ibv_poll_cq(cq, 8, wc), ==, 3);
    ok_int(wc[0].status, ==, IBV_WC_RETRY_EXC_ERR);
    ok_int(wc[1].wr_id, ==, 5);
    ok_int(wc[1].status, ==, IBV_WC_WR_FLUSH_ERR);
    ok_int(wc[2].wr_id, ==, 6);
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

TEST(qp__full_queue_and_limits)
{
    struct ibv_qp *qp = make_qp();

    to_rts(qp, 0x999);
    for (int i = 0; i < 4; i++)
        ok_int(post_send(qp, (uint64_t)i, 0), ==, 0);
    ok_int(post_send(qp, 4, 0), ==, ENOMEM);
    ok_int(fake_log_find(FAKE_ibv_post_send, -1)->result, ==, ENOMEM);
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

TEST(qp__late_receive_by_quirk)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_wc wc[4];

    to_init(qp);
    to_error(qp);
    ok_int(post_recv(qp, 1), ==, 0);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 1);
    fake_device_quirks("fake_ib", FAKE_QUIRK_LATE_RECV_STUCK);
    ok_int(post_recv(qp, 2), ==, 0);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 0);
    to_error(qp);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 1);
    ok_int(wc[0].wr_id, ==, 2);
    fake_device_quirks("fake_ib", FAKE_QUIRK_DEAD_POST_LOST);
    ok_int(post_recv(qp, 3), ==, 0);
    ok_int(post_send(qp, 4, 0), ==, 0);
    to_error(qp);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 0);
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

TEST(qp__flush_on_demand)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_wc wc[4];

    to_init(qp);
    fake_auto_flush(false);
    ok_int(post_recv(qp, 1), ==, 0);
    to_error(qp);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 0);
    ok_int(fake_qp_flush(qp), ==, 1);
    ok_int(ibv_poll_cq(cq, 4, wc), ==, 1);
    ok_int(wc[0].status, ==, IBV_WC_WR_FLUSH_ERR);
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

TEST(cq__arm_fires_once_and_only_for_new_entries)
{
    struct ibv_wc wc = { .wr_id = 1 };
    struct ibv_cq *got;
    void *got_context;

    ok(fake_cq_push(cq, &wc, false));
    ok_int(ibv_req_notify_cq(cq, 0), ==, 0);
    ok(!readable(channel->fd));
    ok(fake_cq_push(cq, &wc, false));
    ok(fake_cq_push(cq, &wc, false));
    ok(readable(channel->fd));
    ok_int(fake_cq_events_queued(cq), ==, 1);
    ok_int(ibv_get_cq_event(channel, &got, &got_context), ==, 0);
    ok_ptr(got, ==, cq);
    ok_ptr(got_context, ==, &cq);
    ok(!readable(channel->fd));
    ok_int(fake_cq_events_unacked(cq), ==, 1);
    ibv_ack_cq_events(cq, 1);
    ok_int(ibv_get_cq_event(channel, &got, &got_context), ==, -1);
    ok_int(errno, ==, EAGAIN);
}

TEST(cq__solicited_rules)
{
    struct ibv_qp *qp = make_qp();
    struct ibv_wc wc = { .wr_id = 1 };

    ok_int(ibv_req_notify_cq(cq, 1), ==, 0);
    ok(fake_cq_push(cq, &wc, false));
    ok_int(fake_cq_armed(cq), ==, FAKE_ARM_SOLICITED);
    ok(fake_cq_push(cq, &wc, true));
    ok_int(fake_cq_events_queued(cq), ==, 1);
    /* Any stays any. */
    ok_int(ibv_req_notify_cq(cq, 0), ==, 0);
    ok_int(ibv_req_notify_cq(cq, 1), ==, 0);
    ok_int(fake_cq_armed(cq), ==, FAKE_ARM_ANY);
    ok(fake_cq_push(cq, &wc, false));
    ok_int(fake_cq_events_queued(cq), ==, 2);
    /* A flushed send fires it on a good device, not on rxe. */
    to_rts(qp, 0x999);
    ok_int(post_send(qp, 1, 0), ==, 0);
    ok_int(ibv_req_notify_cq(cq, 1), ==, 0);
    fake_device_quirks("fake_ib", FAKE_QUIRK_SOLICITED_NO_SEND);
    to_error(qp);
    ok_int(fake_cq_events_queued(cq), ==, 2);
    fake_device_quirks("fake_ib", 0);
    ok_int(post_send(qp, 2, 0), ==, 0);
    ok_int(fake_cq_events_queued(cq), ==, 3);
    ok_int(ibv_destroy_qp(qp), ==, 0);
    /* Nor does a receive that fails there; a flushed one does. */
    for (int rxe = 0; rxe < 2; rxe++) {
        unsigned before;

        fake_device_quirks("fake_ib", rxe ? FAKE_QUIRK_RXE : 0);
        qp = make_qp();
        to_rts(qp, 0x999);
        ok_int(post_recv(qp, 3), ==, 0);
        ok_int(ibv_req_notify_cq(cq, 1), ==, 0);
        before = fake_cq_events_queued(cq);
        ok_uint(fake_qp_complete(qp, FAKE_RECV, 1, IBV_WC_LOC_LEN_ERR, 0), ==, 1);
        ok_uint(fake_cq_events_queued(cq), ==, before + !rxe);
        ok_int(ibv_destroy_qp(qp), ==, 0);
    }
    qp = make_qp();
    to_rts(qp, 0x999);
    ok_int(post_recv(qp, 4), ==, 0);
    to_error(qp);
    ok_int(fake_cq_armed(cq), ==, FAKE_ARM_NONE);
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

TEST(cq__overflow_loses_and_tells)
{
    struct ibv_wc wc = { .wr_id = 1 }, out[16];
    struct ibv_async_event event;

    for (int i = 0; i < 8; i++)
        ok(fake_cq_push(cq, &wc, false));
    ok(!fake_cq_push(cq, &wc, false));
    ok(!fake_cq_push(cq, &wc, false));
    ok(readable(context->async_fd));
    ok_int(ibv_get_async_event(context, &event), ==, 0);
    ok_int(event.event_type, ==, IBV_EVENT_CQ_ERR);
    ok_ptr(event.element.cq, ==, cq);
    ibv_ack_async_event(&event);
    ok_int(ibv_poll_cq(cq, 16, out), ==, 8);
    /* The second event is still queued: destroy takes it back. */
    ok(readable(context->async_fd));
}

TEST(cq__resize)
{
    struct ibv_wc wc = { 0 }, out[4];

    for (uint64_t i = 1; i <= 3; i++) {
        wc.wr_id = i;
        ok(fake_cq_push(cq, &wc, false));
    }
    ok_int(ibv_poll_cq(cq, 1, out), ==, 1);
    ok_int(ibv_resize_cq(cq, 1), ==, EINVAL);
    ok_int(ibv_resize_cq(cq, 2), ==, 0);
    ok(!fake_cq_push(cq, &wc, false));
    ok_int(ibv_poll_cq(cq, 4, out), ==, 2);
    ok_int(out[0].wr_id, ==, 2);
    ok_int(out[1].wr_id, ==, 3);
}

TEST(violations__children_and_double_destroy)
{
    struct ibv_pd *other = ibv_alloc_pd(context);
    char buffer[8];
    struct ibv_mr *mr = ibv_reg_mr(other, buffer, sizeof(buffer), 0);

    ok_int(ibv_dealloc_pd(other), ==, EBUSY);
    ok(strstr(fake_violations(), "ibv_dealloc_pd: 1 objects"));
    ok_int(ibv_dereg_mr(mr), ==, 0);
    ok_int(ibv_dealloc_pd(other), ==, 0);
    ok_int(ibv_dealloc_pd(other), ==, EINVAL);
    ok(strstr(fake_violations(), "destroyed already"));
    ok_int(fake_violation_count(), ==, 2);
    fake_violations_clear();
}

TEST(violations__unacknowledged_event)
{
    struct ibv_cq *got, *other = ibv_create_cq(context, 4, NULL, channel, 0);
    void *got_context;

    fake_cq_event(other);
    ok_int(ibv_get_cq_event(channel, &got, &got_context), ==, 0);
    ok_int(ibv_destroy_cq(other), ==, 0);
    ok(strstr(fake_violations(), "ibv_destroy_cq hangs"));
    fake_violations_clear();
}

TEST(violations__send_before_rts)
{
    struct ibv_qp *qp = make_qp();

    to_init(qp);
    ok_int(post_send(qp, 1, 0), ==, EINVAL);
    ok_int(fake_violation_count(), ==, 1);
    fake_violations_clear();
    ok_int(ibv_destroy_qp(qp), ==, 0);
}

static bool on_loop(void)
{
    return true;
}

TEST(violations__blocking_call_on_the_loop)
{
    char buffer[8];
    struct ibv_mr *mr;

    fake_loop_test(on_loop);
    mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 0);
    fake_loop_test(NULL);
    ok(fake_log_find(FAKE_ibv_reg_mr, -1)->on_loop);
    ok(strstr(fake_violations(), "ibv_reg_mr may block"));
    fake_violations_clear();
    ok_int(ibv_dereg_mr(mr), ==, 0);
}

TEST(live_objects__names_what_leaked)
{
    struct ibv_pd *other = ibv_alloc_pd(context);

    ok_int(fake_live(FAKE_OBJ_PD), ==, 2);
    ok(strstr(fake_leaks(), "protection domain"));
    fake_live_ignore(FAKE_OBJ_PD);
    ok(!strstr(fake_leaks(), "protection domain"));
    ok_int(ibv_dealloc_pd(other), ==, 0);
}

HARNESS_MAIN
