/* SPDX-License-Identifier: MIT */

/* Windows on a device that has none. */

#include <arpa/inet.h>
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

/* tests/lists: D47. */
TEST(emulated__bind_and_invalidate)
{
    const struct fake_call *reg;
    uint32_t token, second;

    pair_make(KIND_EMULATED);
    ok_status(pair_bind(1, 100, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    reg = fake_log_find(FAKE_ibv_reg_mr, -1);
    ok_ptr(reg->arg.reg_mr.addr, ==, pair_bytes + 100);
    ok_uint(reg->arg.reg_mr.length, ==, 64);
    ok_uint(reg->arg.reg_mr.access, ==, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    ok_uint(ntohl(token), ==, ((struct ibv_mr *)reg->created)->rkey);
    ok_int(pair_last_post()->opcode, ==, IBV_WR_RDMA_WRITE);
    ok_int(pair_last_post()->num_sge, ==, 0);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(pair_bind(2, 0, 64, 0), ND_INVALID_DEVICE_REQUEST);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_status(pair_access(token, 163), ND_SUCCESS);

    ok_status(mw_invalidate(pair.qp, rig_ctx(3), pair.mw, 0), ND_SUCCESS);
    /* Gone before the request can complete. */
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    ok(fake_log_before(FAKE_ibv_dereg_mr, FAKE_ibv_post_send));
    ok_status(pair_bind(4, 100, 64, 0), ND_SUCCESS);
    second = mw_token(pair.mw);
    ok_uint(second, !=, token);
    pair_run();
    ok_result(pair.cq, Invalidate, 3, ND_SUCCESS);
    ok_result(pair.cq, Bind, 4, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(pair_access(second, 99 + 64), ND_SUCCESS);
    ok_status(pair_access(token, 100), ND_ACCESS_VIOLATION);
    ok_uint(pair_posts(IBV_WR_BIND_MW) + pair_posts(IBV_WR_LOCAL_INV), ==, 0);
    ok_uint(fake_count(FAKE_ibv_alloc_mw), ==, 0);
    pair_unmake();
}

TEST(emulated__rights_and_bounds)
{
    static const struct {
        uint32_t flags;
        unsigned access;
    } rows[] = {
        { 0, 0 },
        { ND_OP_FLAG_ALLOW_READ, IBV_ACCESS_REMOTE_READ },
        { ND_OP_FLAG_ALLOW_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
    };

    for (unsigned i = 0; i < 3; i++) {
        pair_make(KIND_EMULATED);
        ok_status(mw_bind(pair.qp, rig_ctx(1), pair.mr, pair.mw, pair_bytes + 10, 20, rows[i].flags, NULL), ND_SUCCESS);
        ok_uint(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.access, ==, rows[i].access);
        pair_run();
        ok_result(pair.cq, Bind, 1, ND_SUCCESS);
        ok_status(pair_access(mw_token(pair.mw), 29),
                  rows[i].flags & ND_OP_FLAG_ALLOW_WRITE ? ND_SUCCESS : ND_ACCESS_VIOLATION);
        if (rows[i].flags & ND_OP_FLAG_ALLOW_WRITE)
            ok_status(pair_access(mw_token(pair.mw), 30), ND_ACCESS_VIOLATION);
        pair_unmake();
    }
}

TEST(emulated__failures)
{
    static const struct {
        int error;
        HRESULT status;
    } rows[] = {
        { ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { EPERM, ND_INSUFFICIENT_RESOURCES },
        { EFAULT, ND_ACCESS_VIOLATION },
        { EIO, ND_DEVICE_REMOVED },
    };
    uint32_t token;

    pair_make(KIND_EMULATED);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_fail(FAKE_ibv_reg_mr, 1, rows[i].error);
        ok_status(pair_bind(1, 0, 64, 0), rows[i].status);
    }
    fake_fail(FAKE_ibv_post_send, 1, EINVAL);
    ok_status(pair_bind(2, 0, 64, 0), ND_UNSUCCESSFUL);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    ok_uint(mw_token(pair.mw), ==, 0);
    ok_no_result(pair.cq);

    /* No room: the window stays bound. */
    ok_status(pair_bind(3, 0, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_send(pair.qp, i, 0), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(4), pair.mw, 0), ND_NO_MORE_ENTRIES);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_recv(pair.peer, i), ND_SUCCESS);
    pair_run();
    pair_discard(pair.cq);
    pair_discard(pair.peer_cq);
    ok_status(pair_access(token, 3), ND_SUCCESS);
    /* The carrier fails: revoked all the same. */
    fake_fail(FAKE_ibv_post_send, 1, EINVAL);
    ok_status(mw_invalidate(pair.qp, rig_ctx(5), pair.mw, 0), ND_UNSUCCESSFUL);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    pair_unmake();
}

TEST(emulated__dead_queue_pair)
{
    struct qp *other;

    pair_make(KIND_EMULATED);
    other = pair_other_qp();
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_status(qp_flush(pair.qp), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    ok_status(mw_bind(other, rig_ctx(3), pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 2);
    rig_drop(other);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    pair_unmake();
}

TEST(emulated__none_of_type_1)
{
    struct mw *mw;

    pair_make(KIND_EMULATED);
    ok_status(mw_create(pair.adapter, MW_TYPE_1, NULL, &mw), ND_NOT_SUPPORTED);
    pair_unmake();
}
