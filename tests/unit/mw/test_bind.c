/* SPDX-License-Identifier: MIT */

/* Bind: what the device gets, tokens, every status, and what a failure leaves behind. */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(Bind__what_the_device_gets)
{
    static const struct {
        uint32_t flags;
        unsigned device, access;
    } rows[] = {
        { 0, IBV_SEND_SIGNALED, 0 },
        { ND_OP_FLAG_ALLOW_READ, IBV_SEND_SIGNALED, IBV_ACCESS_REMOTE_READ },
        { ND_OP_FLAG_ALLOW_WRITE, IBV_SEND_SIGNALED, IBV_ACCESS_REMOTE_WRITE },
        { ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE | ND_OP_FLAG_READ_FENCE, IBV_SEND_SIGNALED | IBV_SEND_FENCE,
          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE },
        /* Signalled all the same: its end must show. */
        { ND_OP_FLAG_SILENT_SUCCESS, IBV_SEND_SIGNALED, 0 },
    };

    pair_make(KIND_WINDOWS);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mw *mw = pair_window();
        const struct fake_wr *wr;
        uint32_t token = 0;

        ok_uint(mw_token(mw), ==, 0);
        ok_status(mw_bind(pair.qp, rig_ctx(i), pair.mr, mw, pair_bytes + 100, 200, rows[i].flags, &token), ND_SUCCESS);
        wr = pair_last_post();
        ok_int(wr->opcode, ==, IBV_WR_BIND_MW);
        ok_uint(wr->send_flags, ==, rows[i].device);
        ok_uint(wr->imm_data, ==, 0);
        ok_uint(wr->rkey, ==, ntohl(token));
        ok_uint(wr->bind_info.addr, ==, (uintptr_t)pair_bytes + 100);
        ok_uint(wr->bind_info.length, ==, 200);
        ok_uint(wr->bind_info.mw_access_flags, ==, rows[i].access);
        ok_ptr(wr->bind_info.mr, ==, pair.mr->mr);
        ok_uint(mw_token(mw), ==, token);
        pair_run();
        if (!(rows[i].flags & ND_OP_FLAG_SILENT_SUCCESS))
            ok_result(pair.cq, Bind, i, ND_SUCCESS);
        ok_no_result(pair.cq);
        mw_release(mw);
    }
    pair_unmake();
}

/* The token is right at once, a new one each time, and the one before is dead (D48). */
TEST(Bind__tokens)
{
    uint32_t tokens[300];

    pair_make(KIND_WINDOWS);
    for (unsigned i = 0; i < 300; i++) {
        ok_status(pair_bind(1, i, 100, 0), ND_SUCCESS);
        tokens[i] = mw_token(pair.mw);
        ok(i == 0 || tokens[i] != tokens[i - 1]);
        pair_run();
        ok_result(pair.cq, Bind, 1, ND_SUCCESS);
        ok_status(pair_access(tokens[i], i + 5), ND_SUCCESS);
        ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
        pair_run();
        ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    }
    ok_status(pair_bind(1, 0, 100, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_status(pair_access(tokens[299], 5), ND_ACCESS_VIOLATION);
    pair_unmake();
}

/* The pages want a right, programs bind without one and expect success (A24). */
TEST(Bind__no_rights)
{
    pair_make(KIND_WINDOWS);
    ok_status(mw_bind(pair.qp, rig_ctx(1), pair.mr, pair.mw, pair_bytes, 64, 0, NULL), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(pair_access(mw_token(pair.mw), 0), ND_ACCESS_VIOLATION);
    pair_unmake();
}

TEST(Bind__bad_arguments)
{
    struct adapter *other;
    struct mr *other_mr, *read_only, *inner;
    struct mw *other_mw;
    uint32_t token = 0x1234;

    pair_make(KIND_WINDOWS);
    other = rig_open(RIG_IB);
    ok_status(mr_register(other, pair_bytes, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &other_mr), ND_SUCCESS);
    ok_status(mw_create(other, MW_ND, NULL, &other_mw), ND_SUCCESS);
    read_only = pair_region(pair_bytes, 4096, ND_MR_FLAG_ALLOW_REMOTE_READ);
    inner = pair_region(pair_bytes + 1, 4095, 0);
    {
        struct mw *mw = pair.mw;
        char *at = pair_bytes;
        const struct {
            struct mr *mr;
            struct mw *mw;
            char *buffer;
            size_t length;
            uint32_t flags;
            HRESULT status;
        } rows[] = {
            { other_mr, mw, at, 10, 0, ND_INVALID_PARAMETER_2 },
            { pair.mr, other_mw, at, 10, 0, ND_INVALID_PARAMETER_3 },
            { inner, mw, at, 10, 0, ND_INVALID_PARAMETER_4 },
            { pair.mr, mw, at + 4096, 1, 0, ND_INVALID_PARAMETER_4 },
            { pair.mr, mw, NULL, 1, 0, ND_INVALID_PARAMETER_4 },
            { pair.mr, mw, at, 0, 0, ND_INVALID_PARAMETER_5 },
            { pair.mr, mw, at, 4097, 0, ND_INVALID_PARAMETER_5 },
            { pair.mr, mw, at + 4095, 2, 0, ND_INVALID_PARAMETER_5 },
            { pair.mr, mw, at + 1, SIZE_MAX, 0, ND_INVALID_PARAMETER_5 },
            { pair.mr, mw, at, 10, ND_OP_FLAG_INLINE, ND_INVALID_PARAMETER_6 },
            { pair.mr, mw, at, 10, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT, ND_INVALID_PARAMETER_6 },
            { pair.mr, mw, at, 10, 0x40, ND_INVALID_PARAMETER_6 },
            { read_only, mw, at, 10, ND_OP_FLAG_ALLOW_WRITE, ND_ACCESS_VIOLATION },
        };

        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            ok_status(
                mw_bind(pair.qp, NULL, rows[i].mr, rows[i].mw, rows[i].buffer, rows[i].length, rows[i].flags, &token),
                rows[i].status);
            ok_uint(token, ==, 0x1234);
        }
    }
    ok_uint(pair_posts(IBV_WR_BIND_MW), ==, 0);
    ok_status(mw_bind(pair.qp, rig_ctx(1), read_only, pair.mw, pair_bytes + 4095, 1, ND_OP_FLAG_ALLOW_READ, NULL),
              ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    mw_release(other_mw);
    ok_status(mr_deregister(other_mr), ND_SUCCESS);
    rig_close(other);
    mw_release(pair.mw);
    pair.mw = NULL;
    ok_status(mr_deregister(read_only), ND_SUCCESS);
    ok_status(mr_deregister(inner), ND_SUCCESS);
    pair_unmake();
}

TEST(Bind__bound_already)
{
    uint32_t token;

    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    ok_status(pair_bind(2, 64, 64, 0), ND_INVALID_DEVICE_REQUEST);
    pair_run();
    ok_status(pair_bind(3, 64, 64, 0), ND_INVALID_DEVICE_REQUEST);
    ok_uint(mw_token(pair.mw), ==, token);
    ok_uint(pair_posts(IBV_WR_BIND_MW), ==, 1);
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(pair_access(token, 10), ND_SUCCESS);
    pair_unmake();
}

TEST(Bind__never_connected)
{
    struct qp *fresh;

    pair_make(KIND_WINDOWS);
    fresh = rig_qp(pair.adapter, pair.cq, pair.cq, 4);
    ok_status(mw_bind(fresh, NULL, pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_CONNECTION_INVALID);
    ok_status(mw_invalidate(fresh, NULL, pair.mw, 0), ND_CONNECTION_INVALID);
    rig_drop(fresh);
    pair_unmake();
}

TEST(Bind__queue_full)
{
    ND2_RESULT results[16];
    uint32_t token;

    pair_make(KIND_WINDOWS);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_send(pair.qp, i, 0), ND_SUCCESS);
    ok_status(pair_bind(15, 0, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    ok_status(mw_invalidate(pair.qp, rig_ctx(16), pair.mw, 0), ND_NO_MORE_ENTRIES);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_recv(pair.peer, i), ND_SUCCESS);
    pair_run();
    ok_uint(cq_get_results(pair.cq, results, 16), ==, 16);
    pair_discard(pair.peer_cq);
    /* The refused Invalidate changed nothing. */
    ok_status(pair_access(token, 3), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(17), pair.mw, 0), ND_SUCCESS);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_send(pair.qp, i, 0), ND_SUCCESS);
    ok_status(pair_bind(18, 0, 64, 0), ND_NO_MORE_ENTRIES);
    ok_uint(mw_token(pair.mw), ==, token);
    for (unsigned i = 0; i < 15; i++)
        ok_status(rig_recv(pair.peer, i), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 17, ND_SUCCESS);
    ok_uint(cq_get_results(pair.cq, results, 16), ==, 15);
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    pair_unmake();
}

TEST(Bind__device_refuses)
{
    uint32_t token;

    pair_make(KIND_WINDOWS);
    fake_fail(FAKE_ibv_post_send, 1, EINVAL);
    ok_status(pair_bind(1, 0, 64, 0), ND_UNSUCCESSFUL);
    ok_uint(mw_token(pair.mw), ==, 0);
    ok_status(pair_bind(2, 0, 64, 0), ND_SUCCESS);
    token = mw_token(pair.mw);
    fake_fail(FAKE_ibv_post_send, 1, EINVAL);
    ok_status(mw_invalidate(pair.qp, rig_ctx(3), pair.mw, 0), ND_UNSUCCESSFUL);
    pair_run();
    ok_result(pair.cq, Bind, 2, ND_SUCCESS);
    ok_status(pair_access(token, 3), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(4), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 4, ND_SUCCESS);
    ok_no_result(pair.cq);
    pair_unmake();
}

/* An error of the device, as hardware may report it. */
TEST(Bind__fails_on_the_device)
{
    pair_make(KIND_WINDOWS);
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    ok_uint(fake_qp_complete(qp_verbs(pair.qp), FAKE_SEND, 1, IBV_WC_MW_BIND_ERR, 0), ==, 1);
    ok_result(pair.cq, Bind, 1, ND_ACCESS_VIOLATION);
    rig_run();
    ok_status(mr_deregister(pair.mr), ND_SUCCESS);
    pair.mr = NULL;
    pair_unmake();
}

TEST(create__failures)
{
    static const struct {
        int error;
        HRESULT status;
    } rows[] = {
        { ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { EINVAL, ND_INSUFFICIENT_RESOURCES },
        { EIO, ND_DEVICE_REMOVED },
        { ENODEV, ND_DEVICE_REMOVED },
    };
    struct mw *mw;

    pair_make(KIND_WINDOWS);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_fail(FAKE_ibv_alloc_mw, 1, rows[i].error);
        ok_status(mw_create(pair.adapter, MW_ND, NULL, &mw), rows[i].status);
    }
    fake_alloc_fail(1);
    ok_status(mw_create(pair.adapter, MW_ND, NULL, &mw), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 1);
    pair_unmake();
}

/* What a killed process leaves on rxe must not hold the kernel up: the device's window is younger than the queue pair. */
TEST(Bind__device_window_is_younger_than_its_queue_pair)
{
    struct qp *young;
    struct mw *mw;
    const struct fake_call *made_qp, *made_mw;

    pair_make(KIND_RXE);
    mw = pair_window();
    young = pair_other_qp();
    ok_status(mw_bind(young, NULL, pair.mr, mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    made_qp = fake_log_find(FAKE_ibv_create_qp, -1);
    made_mw = fake_log_find(FAKE_ibv_alloc_mw, -1);
    ok_uint(made_mw->seq, >, made_qp->seq);
    ok_ptr(pair_last_post()->mw, ==, made_mw->created);
    /* This one is already. */
    ok_status(mw_bind(pair.qp, NULL, pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    ok_ptr(fake_log_find(FAKE_ibv_alloc_mw, -1), ==, made_mw);
    rig_drop(young);
    mw_release(mw);
    pair_unmake();
}

TEST(Bind__no_younger_device_window)
{
    struct qp *young;

    pair_make(KIND_RXE);
    young = pair_other_qp();
    fake_fail_always(FAKE_ibv_alloc_mw, ENOMEM);
    ok_status(mw_bind(young, NULL, pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    fake_fail_clear(FAKE_ibv_alloc_mw);
    rig_drop(young);
    /* Its window went with the queue pair; the next Bind wants another, and there is none. */
    fake_fail_always(FAKE_ibv_alloc_mw, ENOMEM);
    ok_status(pair_bind(1, 0, 8, 0), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_alloc_mw);
    ok_status(pair_bind(2, 0, 8, 0), ND_SUCCESS);
    pair_unmake();
}
