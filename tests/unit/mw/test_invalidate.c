/* SPDX-License-Identifier: MIT */

/* Invalidate, and what Deregister says meanwhile. */

#include <errno.h>

#include "pair.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(Invalidate__what_the_device_gets)
{
    uint32_t key;

    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    key = pair_last_post()->rkey;
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    ok_int(pair_last_post()->opcode, ==, IBV_WR_LOCAL_INV);
    ok_uint(pair_last_post()->rkey, ==, key);
    ok_uint(pair_last_post()->send_flags, ==, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    pair_run();
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(mw_invalidate(pair.qp, NULL, pair.mw, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_3);
    ok_status(mw_invalidate(pair.qp, NULL, pair.mw, ND_OP_FLAG_INLINE), ND_INVALID_PARAMETER_3);
    pair_unmake();
}

TEST(Invalidate__then_access)
{
    uint32_t token;

    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    pair_run();
    ok_status(pair_access(token, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(pair_access(token, 0), ND_ACCESS_VIOLATION);
    pair_unmake();
}

/* Never bound, invalidated twice, bound on another queue pair: in order, and the device does not see it. */
TEST(Invalidate__unbound)
{
    struct qp *other;
    struct adapter *stranger;
    struct mw *strange;

    pair_make(KIND_WINDOWS);
    other = pair_other_qp();
    ok_status(mw_invalidate(pair.qp, rig_ctx(1), pair.mw, 0), ND_SUCCESS);
    ok_status(pair_bind(2, 0, 64, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(3), pair.mw, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(4), pair.mw, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(5), pair.mw, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 1, ND_INVALID_DEVICE_REQUEST);
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 3, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 4, ND_INVALID_DEVICE_REQUEST);
    ok_result(pair.cq, Invalidate, 5, ND_INVALID_DEVICE_REQUEST);
    ok_no_result(pair.cq);
    ok_uint(pair_posts(IBV_WR_LOCAL_INV), ==, 1);

    /* The connection lives. */
    ok_status(mw_bind(other, rig_ctx(6), pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    pair_run();
    ok_status(mw_invalidate(pair.qp, rig_ctx(7), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 6, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 7, ND_INVALID_DEVICE_REQUEST);
    ok_uint(pair_posts(IBV_WR_LOCAL_INV), ==, 1);

    stranger = rig_open(RIG_IB);
    ok_status(mw_create(stranger, MW_ND, NULL, &strange), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, NULL, strange, 0), ND_INVALID_PARAMETER_2);
    mw_release(strange);
    rig_close(stranger);
    rig_drop(other);
    pair_unmake();
}

/* Windows' requests have a completion each, silent ones too, that a device may take its time for, or throw away together with
 * the queue pair. */
TEST(Invalidate__unbound_and_flushed_late)
{
    for (int way = 0; way < 4; way++) {
        bool released = way & 1, silent = way & 2;
        uint32_t flags = silent ? ND_OP_FLAG_SILENT_SUCCESS : 0;
        struct ibv_qp *verbs;

        pair_make(KIND_WINDOWS);
        verbs = qp_verbs(pair.qp);
        fake_auto_flush(false);
        ok_status(rig_send(pair.qp, 1, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, flags), ND_SUCCESS);
        if (silent)
            ok_status(pair_bind(3, 0, 64, flags), ND_SUCCESS);
        if (released) {
            rig_drop(pair.qp);
            pair.qp = NULL;
        } else {
            ok_status(qp_flush(pair.qp), ND_SUCCESS);
            rig_advance(50);
            ok_no_result(pair.cq);
            fake_qp_flush(verbs);
            rig_advance(2);
            ok_uint(rig_timers(), ==, 0);
        }
        ok_result(pair.cq, Send, 1, ND_CANCELED);
        ok_result(pair.cq, Invalidate, 2, ND_CANCELED);
        if (silent)
            ok_result(pair.cq, Bind, 3, ND_CANCELED);
        ok_no_result(pair.cq);
        fake_auto_flush(true);
        pair_unmake();
    }
}

/* Its flush when the connection breaks is a plain one. */
TEST(Invalidate__unbound_and_flushed)
{
    pair_make(KIND_WINDOWS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(1), pair.mw, 0), ND_SUCCESS);
    ok_status(qp_flush(pair.qp), ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 1, ND_CANCELED);
    ok_no_result(pair.cq);
    pair_unmake();
}

/* tests/lists: A25, D6. */
TEST(Deregister__while_bound)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    pair_run();
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY); /* the device has not done it */
    ok_uint(fake_count(FAKE_ibv_dereg_mr), ==, 0);
    pair_run();
    ok_status(mr_deregister(pair.mr), ND_SUCCESS); /* nobody has polled */
    pair.mr = NULL;
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    ok_no_result(pair.cq);
    pair_unmake();
}

/* tests/lists: D6. */
TEST(Deregister__after_the_window_was_released)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    mw_release(pair.mw);
    pair.mw = NULL;
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    pair_unmake();
}

/* Released with its Bind on the way: the device must find the window, or the connection would break. */
TEST(Release__bind_under_way)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    mw_release(pair.mw);
    pair.mw = NULL;
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 1);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 0);
    ok_status(rig_send(pair.qp, 2, 0), ND_SUCCESS); /* alive */
    ok_status(rig_recv(pair.peer, 3), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Send, 2, ND_SUCCESS);
    pair_unmake();
}

TEST(Release__invalidate_under_way)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    mw_release(pair.mw);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    /* The next window made sweeps up. */
    pair.mw = pair_window();
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 1);
    pair_unmake();
}

TEST(Rebind__same_queue_pair_before_the_invalidate_completed)
{
    uint32_t token;

    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_status(pair_bind(3, 64, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    ok_result(pair.cq, Bind, 3, ND_SUCCESS);
    ok_status(pair_access(token, 64), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    pair_unmake();
}

/* Nothing of it carried out yet: the region of the first Bind is needed still. */
TEST(Rebind__other_region_at_once)
{
    struct mr *second;

    pair_make(KIND_WINDOWS);
    second = pair_region(pair_bytes, 100, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_status(mw_bind(pair.qp, rig_ctx(3), second, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(mr_deregister(second), ND_DEVICE_BUSY);
    pair_run();
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_status(mr_deregister(second), ND_DEVICE_BUSY);
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    ok_result(pair.cq, Bind, 3, ND_SUCCESS);
    mw_release(pair.mw);
    pair.mw = NULL;
    ok_status(mr_deregister(second), ND_SUCCESS);
    pair_unmake();
}

/* tests/lists: D47. */
TEST(Rebind__elsewhere)
{
    struct mr *second;
    struct qp *other;

    pair_make(KIND_WINDOWS);
    second = pair_region(pair_bytes, 100, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    other = pair_other_qp();
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    /* The other queue pair is in no order with this one. */
    ok_status(mw_bind(other, rig_ctx(3), second, pair.mw, pair_bytes, 8, 0, NULL), ND_INVALID_DEVICE_REQUEST);
    pair_run();
    ok_status(mw_bind(other, rig_ctx(4), second, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_status(mr_deregister(second), ND_DEVICE_BUSY);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Bind, 4, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(mw_invalidate(other, rig_ctx(5), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 5, ND_SUCCESS);
    ok_status(mr_deregister(second), ND_SUCCESS);
    rig_drop(other);
    pair_unmake();
}

/* On to another region on the same queue pair, which then dies before the device did any of it. */
TEST(Rebind__other_region_and_the_connection_breaks)
{
    struct mr *second;

    pair_make(KIND_WINDOWS);
    second = pair_region(pair_bytes, 100, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_status(mw_bind(pair.qp, rig_ctx(3), second, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    fake_qp_fail(qp_verbs(pair.qp));
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Invalidate, 2, ND_CANCELED);
    ok_result(pair.cq, Bind, 3, ND_CANCELED);
    rig_run();
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_uint(fake_violation_count(), ==, 1); /* the device refused first, since it still had the window bound there */
    fake_violations_clear();
    ok_status(mr_deregister(second), ND_SUCCESS);
    pair_unmake();
}

/* A dead queue pair's windows count as unbound. */
TEST(dead__deregister)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_status(qp_flush(pair.qp), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    pair_unmake();
}

TEST(dead__bind_elsewhere)
{
    struct qp *other;

    pair_make(KIND_WINDOWS);
    other = pair_other_qp();
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_status(qp_flush(pair.qp), ND_SUCCESS);
    ok_status(mw_bind(other, rig_ctx(2), pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    rig_drop(other);
    pair_unmake();
}

/* Posts to a queue that is closed or dead succeed, come back cancelled, and the device sees none of them. */
TEST(closed__bind_and_invalidate)
{
    static const bool close_only[] = { true, false };

    for (unsigned i = 0; i < 2; i++) {
        uint32_t token;
        unsigned posts;
        struct mw *fresh;

        pair_make(KIND_WINDOWS);
        fresh = pair_window();
        ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
        token = mw_token(pair.mw);
        pair_run();
        posts = fake_count(FAKE_ibv_post_send);
        if (close_only[i])
            qp_close_posts(pair.qp);
        else
            qp_flush(pair.qp);
        ok_status(mw_bind(pair.qp, rig_ctx(2), pair.mr, fresh, pair_bytes, 8, 0, NULL), ND_SUCCESS);
        ok_status(mw_invalidate(pair.qp, rig_ctx(3), pair.mw, 0), ND_SUCCESS);
        ok_status(mw_invalidate(pair.qp, rig_ctx(4), fresh, 0), ND_SUCCESS);
        ok_uint(mw_token(fresh), ==, 0);
        ok_uint(mw_token(pair.mw), ==, token);
        ok_uint(fake_count(FAKE_ibv_post_send), ==, posts);
        /* Unbound though it was never carried out. */
        ok_status(mr_deregister(pair.mr), ND_SUCCESS);
        pair.mr = NULL;
        qp_flush(pair.qp);
        ok_result(pair.cq, Bind, 1, ND_SUCCESS);
        ok_result(pair.cq, Bind, 2, ND_CANCELED);
        ok_result(pair.cq, Invalidate, 3, ND_CANCELED);
        ok_result(pair.cq, Invalidate, 4, ND_CANCELED);
        ok_no_result(pair.cq);
        mw_release(fresh);
        pair_unmake();
    }
}

TEST(removed__device)
{
    struct mw *mw;

    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(mw_create(pair.adapter, MW_ND, NULL, &mw), ND_DEVICE_REMOVED);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    rig_advance(1100);
    ok_result(pair.cq, Invalidate, 2, ND_CANCELED);
    pair_unmake();
}
