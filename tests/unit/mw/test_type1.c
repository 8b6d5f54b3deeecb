/* SPDX-License-Identifier: MIT */

/* Windows of type 1, as WinVerbs has them. */

#include <arpa/inet.h>
#include <errno.h>

#include "pair.h"

static struct mw *mw;

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

static void make(void)
{
    pair_make(KIND_WINDOWS);
    ok_status(mw_create(pair.adapter, MW_TYPE_1, NULL, &mw), ND_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_alloc_mw, -1)->arg.alloc_mw.type, ==, IBV_MW_TYPE_1);
}

static HRESULT bind_at(struct qp *qp, uintptr_t n, size_t at, size_t length, uint32_t *token)
{
    return mw_bind_type1(qp, rig_ctx(n), pair.mr, mw, pair_bytes + at, length,
                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, 0, token);
}

TEST(type1__rebind_without_invalidate)
{
    const struct fake_wr *wr;
    uint32_t first, second;

    make();
    ok_status(bind_at(pair.qp, 1, 0, 64, &first), ND_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr;
    ok_uint(wr->bind_info.addr, ==, (uintptr_t)pair_bytes);
    ok_uint(wr->bind_info.length, ==, 64);
    ok_uint(wr->send_flags, ==, IBV_SEND_SIGNALED);
    ok_uint(ntohl(first), ==, wr->rkey);
    ok_status(bind_at(pair.qp, 2, 64, 64, &second), ND_SUCCESS);
    ok_uint(first, !=, second);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(pair_access(second, 64), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(pair_access(first, 0), ND_ACCESS_VIOLATION);
    ok_uint(pair_posts(IBV_WR_LOCAL_INV), ==, 0);
    mw_release(mw);
    pair_unmake();
}

TEST(type1__other_region_at_once)
{
    struct mr *second;

    make();
    second = pair_region(pair_bytes, 100, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    ok_status(bind_at(pair.qp, 1, 0, 64, NULL), ND_SUCCESS);
    ok_status(mw_bind_type1(pair.qp, rig_ctx(2), second, mw, pair_bytes, 8, 0, 0, NULL), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    pair_run();
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    mw_release(mw);
    ok_status(mr_deregister(second), ND_SUCCESS);
    pair_unmake();
}

TEST(type1__unbind)
{
    uint32_t token;

    make();
    ok_status(bind_at(pair.qp, 1, 0, 64, &token), ND_SUCCESS);
    ok_status(mw_bind_type1(pair.qp, rig_ctx(2), NULL, mw, NULL, 0, 0, 0, NULL), ND_SUCCESS);
    ok_uint(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.bind_info.length, ==, 0);
    /* The provider of rxe looks into it. */
    ok_ptr(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.bind_info.mr, ==, pair.mr->mr);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY); /* the request names it */
    ok_status(mw_bind_type1(pair.qp, rig_ctx(3), NULL, mw, NULL, 0, 0, 0, NULL), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_result(pair.cq, Bind, 3, ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_bind_mw), ==, 2);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_status(pair_access(token, 0), ND_ACCESS_VIOLATION);
    mw_release(mw);
    pair_unmake();
}

/* Bound for the whole domain: the end of the queue pair does not matter. */
TEST(type1__outlives_its_queue_pair)
{
    struct qp *other;
    uint32_t token;

    make();
    other = pair_other_qp();
    ok_status(bind_at(other, 1, 0, 64, &token), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    rig_drop(other);
    ok_status(pair_access(token, 5), ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(bind_at(pair.qp, 2, 0, 64, &token), ND_SUCCESS);
    mw_release(mw); /* under way */
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 2);
    pair_run();
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 1);
    pair_unmake();
}

TEST(type1__statuses)
{
    make();
    ok_status(bind_at(pair.qp, 1, 0, 4097, NULL), ND_INVALID_PARAMETER_5);
    ok_status(mw_bind_type1(pair.qp, NULL, pair.mr, pair.mw, pair_bytes, 8, 0, 0, NULL), ND_INVALID_PARAMETER_3);
    ok_status(mw_bind(pair.qp, NULL, pair.mr, mw, pair_bytes, 8, 0, NULL), ND_INVALID_PARAMETER_3);
    ok_status(mw_invalidate(pair.qp, NULL, mw, 0), ND_INVALID_PARAMETER_2);
    ok_status(mw_bind_type1(pair.qp, NULL, pair.mr, mw, pair_bytes, 8, IBV_ACCESS_LOCAL_WRITE, 0, NULL),
              ND_INVALID_PARAMETER_6);
    ok_status(mw_bind_type1(pair.qp, NULL, pair.mr, mw, pair_bytes, 8, 0, ND_OP_FLAG_INLINE, NULL),
              ND_INVALID_PARAMETER_6);
    fake_fail(FAKE_ibv_bind_mw, 1, ENOMEM);
    ok_status(bind_at(pair.qp, 1, 0, 64, NULL), ND_NO_MORE_ENTRIES);
    fake_fail(FAKE_ibv_bind_mw, 1, EINVAL);
    ok_status(bind_at(pair.qp, 1, 0, 64, NULL), ND_UNSUCCESSFUL);
    ok_uint(mw_token(mw), ==, 0);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    mw_release(mw);
    pair_unmake();
}
