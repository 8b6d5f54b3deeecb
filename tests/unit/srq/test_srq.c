/* SPDX-License-Identifier: MIT */

/* Shared receive queues: creation, receives, completions, Modify. */

#include <errno.h>
#include <string.h>

#include "srq_rig.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

/* ---- creation ---- */

TEST(srq_create__asks_for_what_was_asked)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct srq *srq = rig_srq(adapter, 9, 3);
    const struct ibv_srq_attr *attr = &fake_log_find(FAKE_ibv_create_srq, -1)->arg.srq.attr;
    struct srq_attributes is;

    ok_uint(attr->max_wr, ==, 9);
    ok_uint(attr->max_sge, ==, 4); /* A44 */
    srq_query(srq, &is);
    ok_uint(is.depth, ==, 9);
    ok_uint(is.max_sge, ==, 4);
    ok_uint(is.threshold, ==, 3);
    ok_ptr(srq_adapter(srq), ==, adapter);
    ok_ptr(rig_device_srq()->srq_context, ==, srq);
    srq_unref(srq);
    ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
    rig_close(adapter);
}

/* A device that cannot resize one is asked for all that Modify might want; if it has not so much, for the depth. */
TEST(srq_create__room_to_grow)
{
    struct adapter *adapter = rig_open(RIG_IW);
    struct srq *srq = rig_srq(adapter, 9, 0);

    ok_uint(fake_log_find(FAKE_ibv_create_srq, -1)->arg.srq.attr.max_wr, ==, 8192);
    srq_unref(srq);
    fake_fail(FAKE_ibv_create_srq, 1, ENOMEM);
    srq = rig_srq(adapter, 9, 0);
    ok_uint(fake_log_find(FAKE_ibv_create_srq, -1)->arg.srq.attr.max_wr, ==, 9);
    ok_uint(fake_log_find(FAKE_ibv_create_srq, -1)->arg.srq.attr.max_sge, ==, 1);
    srq_unref(srq);
    rig_close(adapter);
}

TEST(srq_create__failures)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct srq_config config = { .adapter = adapter, .depth = 4, .max_sge = 1, .policy = &srq_policy_nd };
    struct srq *srq;

    fake_fail_always(FAKE_ibv_create_srq, ENOMEM);
    ok_status(srq_create(&config, &srq), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_srq);
    fake_fail_always(FAKE_ibv_create_srq, EIO);
    ok_status(srq_create(&config, &srq), ND_DEVICE_REMOVED);
    fake_fail_clear(FAKE_ibv_create_srq);
    for (unsigned n = 1;; n++) {
        NTSTATUS status;

        fake_alloc_fail(n);
        status = srq_create(&config, &srq);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(status, ND_SUCCESS);
            ok_uint(n, >, 2);
            break;
        }
        ok_status(status, ND_NO_MEMORY);
        ok_uint(fake_live(FAKE_OBJ_SRQ), ==, 0);
    }
    srq_unref(srq);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(srq_create(&config, &srq), ND_DEVICE_REMOVED);
    rig_close(adapter);
}

/* Nothing of a queue pair that could not be made stays behind: no room, no number, no reference. */
TEST(srq_qp_create__failures)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4);
    struct srq *srq = rig_srq(adapter, 4, 0);
    struct qp_config config = rig_config(adapter, cq, cq, 4);
    const struct ibv_qp_init_attr *attr;
    struct qp *qp;

    config.srq = srq;
    config.recv_depth = config.recv_sge = 99; /* not looked at */
    fake_fail_always(FAKE_ibv_create_qp, ENOMEM);
    ok_status(qp_create(&config, &qp), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_qp);
    for (unsigned n = 1;; n++) {
        NTSTATUS status;

        fake_alloc_fail(n);
        status = qp_create(&config, &qp);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(status, ND_SUCCESS);
            ok_uint(n, >, 4);
            break;
        }
        ok_status(status, ND_NO_MEMORY);
        ok_uint(fake_live(FAKE_OBJ_QP), ==, 0);
    }
    attr = &fake_log_find(FAKE_ibv_create_qp, -1)->arg.create_qp.attr;
    ok_ptr(attr->srq, ==, rig_device_srq());
    ok_uint(attr->cap.max_recv_wr, ==, 0);
    ok_uint(attr->cap.max_recv_sge, ==, 0);
    ok(qp_has_srq(qp));
    rig_drop(qp);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* ---- receives ---- */

TEST(srq_receive__arguments)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct srq *srq = rig_srq(adapter, 4, 0);
    static char byte;
    ND2_SGE sge[28];

    for (int i = 0; i < 28; i++)
        sge[i] = (ND2_SGE){ &byte, 1, 0 };
    ok_status(srq_receive(srq, NULL, sge, 5), ND_DATA_OVERRUN);
    ok_status(srq_receive(srq, NULL, sge, ~0u), ND_DATA_OVERRUN);
    ok_status(srq_receive(srq, NULL, NULL, 1), ND_INVALID_PARAMETER_2);
    sge[0].BufferLength = adapter->limits.max_transfer;
    ok_status(srq_receive(srq, NULL, sge, 2), ND_BUFFER_OVERFLOW);
    sge[0].BufferLength = sge[1].BufferLength = 0x80000000u;
    ok_status(srq_receive(srq, NULL, sge, 2), ND_BUFFER_OVERFLOW);
    ok_uint(fake_srq_posted(rig_device_srq()), ==, 0);
    sge[0].BufferLength = sge[1].BufferLength = 1;
    ok_status(srq_receive(srq, NULL, sge, 4), ND_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_post_srq_recv, -1)->arg.wr.num_sge, ==, 4);
    fake_fail(FAKE_ibv_post_srq_recv, 1, ENOMEM);
    ok_status(rig_share(srq, 1), ND_NO_MORE_ENTRIES);
    fake_fail(FAKE_ibv_post_srq_recv, 1, EPERM);
    ok_status(rig_share(srq, 1), ND_UNSUCCESSFUL);
    /* What failed takes no place. */
    rig_share_many(srq, 1, 3);
    ok_status(rig_share(srq, 4), ND_NO_MORE_ENTRIES);
    srq_unref(srq);
    rig_close(adapter);
}

/* siw refuses a receive without entries. */
TEST(srq_receive__no_entries_on_siw)
{
    struct adapter *adapter = rig_open(RIG_IW);
    struct srq *srq = rig_srq(adapter, 4, 0);

    fake_fail(FAKE_ibv_post_srq_recv, 1, EINVAL);
    ok_status(rig_share(srq, 1), ND_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_post_srq_recv, -1)->arg.wr.num_sge, ==, 1);
    ok_uint(fake_log_find(FAKE_ibv_post_srq_recv, -1)->arg.wr.sge[0].length, ==, 0);
    srq_unref(srq);
    rig_close(adapter);
}

/* The result is on the CQ of the QP that took the receive, with that QP's context. */
TEST(srq_receive__completes_where_it_was_taken)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq[2] = { rig_cq(adapter, 16), rig_cq(adapter, 16) };
    struct srq *srq = rig_srq(adapter, 8, 0);
    struct qp *qp[3];

    rig_share_many(srq, 10, 4); /* before there is any QP */
    for (uintptr_t i = 0; i < 3; i++)
        qp[i] = rig_shared_qp(adapter, srq, cq[i / 2], 100 + i);
    rig_share_many(srq, 14, 4);
    ok_status(rig_share(srq, 18), ND_NO_MORE_ENTRIES);
    ok_status(rig_recv(qp[0], 1), ND_INVALID_DEVICE_REQUEST);
    rig_fill(qp[2], 1);
    rig_fill(qp[0], 2);
    rig_fill(qp[1], 1);
    rig_fill(qp[0], 1);
    ok_shared(cq[0], 100, 11, ND_SUCCESS);
    ok_shared(cq[0], 100, 12, ND_SUCCESS);
    ok_shared(cq[0], 101, 13, ND_SUCCESS);
    ok_shared(cq[0], 100, 14, ND_SUCCESS);
    ok_no_result(cq[0]);
    ok_shared(cq[1], 102, 10, ND_SUCCESS);
    ok_no_result(cq[1]);
    /* Many at once, mixed with sends. */
    rig_share_many(srq, 20, 5);
    for (uintptr_t i = 0; i < 3; i++)
        ok_status(rig_send(qp[i], i, 0), ND_SUCCESS);
    rig_fill(qp[0], 2);
    fake_qp_complete(qp_verbs(qp[0]), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    rig_fill(qp[1], 1);
    {
        ND2_RESULT results[8];

        ok_uint(cq_get_results(cq[0], results, 8), ==, 4);
        ok_ptr(results[0].RequestContext, ==, rig_ctx(15));
        ok_ptr(results[1].RequestContext, ==, rig_ctx(16));
        ok_int(results[2].RequestType, ==, Nd2RequestTypeSend);
        ok_ptr(results[2].QueuePairContext, ==, rig_ctx(100));
        ok_ptr(results[3].RequestContext, ==, rig_ctx(17));
        ok_ptr(results[3].QueuePairContext, ==, rig_ctx(101));
    }
    for (int i = 0; i < 3; i++)
        rig_drop(qp[i]);
    srq_unref(srq);
    cq_unref(cq[0]);
    cq_unref(cq[1]);
    rig_close(adapter);
}

/* A QP posted to by mistake may fill its SRQ without ever being asked for results: the queue frees itself, as far as the
 * completion queue's depth allows. */
TEST(srq_receive__posting_without_polling)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct srq *srq = rig_srq(adapter, 4, 0);
    struct qp *qp = rig_shared_qp(adapter, srq, cq, 5);

    for (uintptr_t i = 0; i < 64; i += 4) {
        rig_share_many(srq, i, 4);
        rig_fill(qp, 4);
    }
    for (uintptr_t i = 0; i < 64; i++)
        ok_shared(cq, 5, i, ND_SUCCESS);
    ok_no_result(cq);
    rig_drop(qp);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

/* Slots go round in any order, never two receives in one. */
TEST(srq_receive__random_model)
{
    enum {
        DEPTH = 13,
        QPS = 5,
    };
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq[2] = { rig_cq(adapter, 512), rig_cq(adapter, 512) };
    struct srq *srq = rig_srq(adapter, DEPTH, 0);
    struct qp *qp[QPS];
    uintptr_t posted = 0, filled = 0, taken = 0, next[2] = { 0 };
    unsigned char owner[8192];
    uint32_t random = 7;

    for (uintptr_t i = 0; i < QPS; i++)
        qp[i] = rig_shared_qp(adapter, srq, cq[i % 2], i);
    while (posted < sizeof(owner)) {
        unsigned pick, which;

        random = random * 1664525u + 1013904223u;
        pick = random >> 28;
        which = (random >> 20) % QPS;
        if (pick < 6) {
            HRESULT hr = rig_share(srq, posted);

            /* Full: so many are with the device, since it frees what has completed. */
            if (posted - filled == DEPTH) {
                ok_status(hr, ND_NO_MORE_ENTRIES);
            } else {
                ok_status(hr, ND_SUCCESS);
                posted++;
            }
        } else if (pick < 11) {
            if (filled < posted) {
                rig_fill(qp[which], 1);
                owner[filled++] = (unsigned char)which;
            }
        } else if (pick == 11) {
            /* A QP comes and goes. */
            rig_drop(qp[which]);
            qp[which] = rig_shared_qp(adapter, srq, cq[which % 2], which);
        } else {
            ND2_RESULT results[3];
            uint32_t n = cq_get_results(cq[which % 2], results, 3);

            for (uint32_t i = 0; i < n; i++) {
                uintptr_t *at = &next[which % 2];

                while (owner[*at] % 2 != which % 2)
                    ++*at;
                ok_ptr(results[i].RequestContext, ==, rig_ctx(*at));
                ok_ptr(results[i].QueuePairContext, ==, rig_ctx(owner[*at]));
                ok_status(results[i].Status, ND_SUCCESS);
                ++*at;
                taken++;
            }
        }
    }
    for (int i = 0; i < QPS; i++)
        rig_drop(qp[i]);
    for (int i = 0; i < 2; i++) {
        ND2_RESULT result;

        while (cq_get_results(cq[i], &result, 1))
            taken++;
    }
    ok_uint(taken, ==, filled);
    srq_unref(srq);
    cq_unref(cq[0]);
    cq_unref(cq[1]);
    rig_close(adapter);
}

/* ---- Modify ---- */

static NTSTATUS set_depth(struct srq *srq, uint32_t depth)
{
    return srq_modify(srq, &depth, NULL);
}

TEST(srq_modify__depth)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 64);
    struct srq *srq = rig_srq(adapter, 4, 0);
    struct qp *qp = rig_shared_qp(adapter, srq, cq, 5);
    uint32_t threshold = 2;
    struct srq_attributes is;

    rig_share_many(srq, 0, 4);
    ok_status(rig_share(srq, 4), ND_NO_MORE_ENTRIES);
    ok_status(set_depth(srq, 0), ND_INVALID_PARAMETER);
    ok_status(set_depth(srq, adapter->limits.max_srq_depth + 1), ND_INVALID_PARAMETER);
    ok_status(set_depth(srq, 3), ND_BUFFER_OVERFLOW);
    ok_status(set_depth(srq, 4), ND_SUCCESS);
    ok_status(rig_share(srq, 4), ND_NO_MORE_ENTRIES);
    ok_status(set_depth(srq, 6), ND_SUCCESS);
    ok_uint(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.attr.max_wr, ==, 6);
    ok_int(fake_log_find(FAKE_ibv_modify_srq, -1)->arg.srq.mask, ==, IBV_SRQ_MAX_WR);
    rig_share_many(srq, 4, 2);
    ok_status(rig_share(srq, 6), ND_NO_MORE_ENTRIES);
    /* Those that have completed do not count, polled or not. */
    rig_fill(qp, 3);
    ok_status(set_depth(srq, 2), ND_BUFFER_OVERFLOW);
    ok_status(set_depth(srq, 3), ND_SUCCESS);
    ok_status(rig_share(srq, 6), ND_NO_MORE_ENTRIES);
    ok_status(set_depth(srq, adapter->limits.max_srq_depth), ND_SUCCESS);
    rig_share_many(srq, 6, 100);
    srq_query(srq, &is);
    ok_uint(is.depth, ==, adapter->limits.max_srq_depth);
    ok_status(srq_modify(srq, NULL, &threshold), ND_SUCCESS);
    ok_status(srq_modify(srq, NULL, NULL), ND_SUCCESS);
    srq_query(srq, &is);
    ok_uint(is.threshold, ==, 2);
    for (uintptr_t i = 0; i < 3; i++)
        ok_shared(cq, 5, i, ND_SUCCESS);
    rig_fill(qp, 50);
    for (uintptr_t i = 3; i < 53; i++)
        ok_shared(cq, 5, i, ND_SUCCESS);
    rig_drop(qp);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}

TEST(srq_modify__failures_leave_it)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq[2] = { rig_cq(adapter, 4), rig_cq(adapter, 4) };
    struct srq *srq = rig_srq(adapter, 4, 1);
    struct qp *qp[2] = { rig_shared_qp(adapter, srq, cq[0], 1), rig_shared_qp(adapter, srq, cq[1], 2) };
    uint32_t depth = 4096, threshold = 7, bad = 0;
    struct srq_attributes is;

    for (unsigned n = 1;; n++) {
        NTSTATUS status;

        fake_alloc_fail(n);
        status = srq_modify(srq, &depth, NULL);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(status, ND_SUCCESS);
            ok_uint(n, >=, 3); /* stashes, slots */
            break;
        }
        ok_status(status, ND_INSUFFICIENT_RESOURCES);
        srq_query(srq, &is);
        ok_uint(is.depth, ==, 4);
    }
    depth = 8192;
    fake_fail(FAKE_ibv_modify_srq, 1, ENOMEM);
    ok_status(srq_modify(srq, &depth, &threshold), ND_INSUFFICIENT_RESOURCES);
    ok_status(srq_modify(srq, &bad, &threshold), ND_INVALID_PARAMETER);
    srq_query(srq, &is);
    ok_uint(is.depth, ==, 4096);
    ok_uint(is.threshold, ==, 1);
    rig_drop(qp[0]);
    rig_drop(qp[1]);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(srq_modify(srq, &depth, NULL), ND_DEVICE_REMOVED);
    ok_status(rig_share(srq, 1), ND_DEVICE_REMOVED);
    srq_unref(srq);
    cq_unref(cq[0]);
    cq_unref(cq[1]);
    rig_close(adapter);
}

/* Room for all its receives once in each CQ, whatever the number of QPs: the device's CQ shows what was reserved. */
TEST(srq_attach__room_once_per_completion_queue)
{
    struct adapter *adapter = rig_open(RIG_IB);
    struct cq *cq = rig_cq(adapter, 4);
    struct srq *srq = rig_srq(adapter, 1000, 0);
    unsigned resizes = fake_count(FAKE_ibv_resize_cq);
    struct qp *qp[100];

    for (uintptr_t i = 0; i < 100; i++)
        qp[i] = rig_shared_qp(adapter, srq, cq, i);
    ok_uint(fake_count(FAKE_ibv_resize_cq), >, resizes);
    ok_int(fake_log_find(FAKE_ibv_resize_cq, -1)->arg.create_cq.cqe, <, 2000);
    rig_share_many(srq, 0, 1000);
    for (uintptr_t i = 0; i < 100; i++)
        rig_fill(qp[i], 10);
    /* All are released with nothing polled: nothing is lost. */
    for (uintptr_t i = 0; i < 100; i++)
        rig_drop(qp[i]);
    for (uintptr_t i = 0; i < 1000; i++)
        ok_shared(cq, i / 10, i, ND_SUCCESS);
    ok_no_result(cq);
    srq_unref(srq);
    cq_unref(cq);
    rig_close(adapter);
}
