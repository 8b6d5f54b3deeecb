/* SPDX-License-Identifier: MIT */

/* Windows that the peer invalidates with a message. */

#include <arpa/inet.h>

#include "pair.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

static void bind_it(void)
{
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
}

/* The message of the peer, with its receive posted. */
static void invalidate_by_peer(uintptr_t n, uint32_t token)
{
    ok_status(rig_recv(pair.qp, n), ND_SUCCESS);
    ok_status(qp_send_invalidate(pair.peer, rig_ctx(n + 1), NULL, 0, token, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.peer_cq, Send, n + 1, ND_SUCCESS);
}

static void ok_revoked(void)
{
    ND2_RESULT result;

    ok_uint(cq_get_results(pair.cq, &result, 1), ==, 1);
    ok_status(result.Status, ND_SUCCESS);
    ok_int(result.RequestType, ==, Nd2RequestTypeInvalidate);
    ok_ptr(result.RequestContext, ==, PAIR_REVOKED);
    ok_ptr(result.QueuePairContext, ==, RIG_CONTEXT);
    ok_uint(result.BytesTransferred, ==, 0);
}

static void by_kind(enum device_kind kind)
{
    uint32_t token;

    pair_make(kind);
    bind_it();
    token = mw_token(pair.mw);
    ok_status(pair_access(token, 7), ND_SUCCESS);
    invalidate_by_peer(10, token);
    ok_int(pair_posts(kind == KIND_RXE ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND_WITH_INV), ==, 1);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY); /* nobody has looked yet */
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_revoked();
    ok_no_result(pair.cq);
    rig_run();
    /* An invalidate of ours comes too late, and must not reach the device. */
    ok_status(mw_invalidate(pair.qp, rig_ctx(20), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 20, ND_INVALID_DEVICE_REQUEST);
    ok_uint(pair_posts(IBV_WR_LOCAL_INV), ==, 0);
    ok_status(pair_bind(21, 0, 64, 0), ND_SUCCESS);
    ok_uint(mw_token(pair.mw), !=, token);
    pair_run();
    ok_result(pair.cq, Bind, 21, ND_SUCCESS);
    ok_status(pair_access(mw_token(pair.mw), 8), ND_SUCCESS);
    ok_status(pair_access(token, 9), ND_ACCESS_VIOLATION);
    pair_unmake();
}

TEST(revoked__by_send_with_invalidate)
{
    by_kind(KIND_WINDOWS);
}

/* To rxe no invalidate goes over the wire: one of an unbound window would panic the peer's kernel. */
TEST(revoked__by_immediate_data)
{
    by_kind(KIND_RXE);
}

TEST(revoked__access_ends_and_region_is_free)
{
    for (unsigned kind = KIND_WINDOWS; kind <= KIND_RXE; kind++) {
        uint32_t token;

        pair_make((enum device_kind)kind);
        bind_it();
        token = mw_token(pair.mw);
        invalidate_by_peer(10, token);
        ok_result(pair.cq, Receive, 10, ND_SUCCESS);
        rig_run(); /* the worker */
        ok_uint(fake_live(FAKE_OBJ_MW), ==, kind == KIND_RXE ? 0 : 1);
        ok_status(pair_access(token, 7), ND_ACCESS_VIOLATION);
        ok_status(mr_deregister(pair.mr), ND_SUCCESS);
        pair.mr = NULL;
        ok_revoked();
        pair_unmake();
    }
}

/* The token goes twice, and to a window that was invalidated here. */
TEST(revoked__twice_on_rxe)
{
    uint32_t token;

    pair_make(KIND_RXE);
    bind_it();
    token = mw_token(pair.mw);
    ok_status(rig_recv(pair.qp, 10), ND_SUCCESS);
    ok_status(rig_recv(pair.qp, 11), ND_SUCCESS);
    ok_status(rig_recv(pair.qp, 12), ND_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        ok_status(qp_send_invalidate(pair.peer, rig_ctx(i), NULL, 0, token, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_status(mw_invalidate(pair.qp, rig_ctx(1), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 1, ND_SUCCESS);
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_result(pair.cq, Receive, 11, ND_SUCCESS);
    ok_result(pair.cq, Receive, 12, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_int(fake_qp_state(qp_verbs(pair.qp)), ==, IBV_QPS_RTS);
    pair_unmake();
}

/* A window of another connection is not this peer's to invalidate by immediate data. */
TEST(revoked__foreign_window)
{
    struct qp *other;

    pair_make(KIND_RXE);
    other = pair_other_qp();
    ok_status(mw_bind(other, rig_ctx(1), pair.mr, pair.mw, pair_bytes, 8, 0, NULL), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Bind, 1, ND_SUCCESS);
    invalidate_by_peer(10, mw_token(pair.mw));
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    ok_status(mw_invalidate(other, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    pair_run();
    ok_result(pair.cq, Invalidate, 2, ND_SUCCESS);
    rig_drop(other);
    pair_unmake();
}

/* Completes a Notify, is counted, comes behind its receive through the stash too. */
TEST(revoked__notify_and_stash)
{
    struct notify notify;

    pair_make(KIND_RXE);
    bind_it();
    ok_no_result(pair.cq);
    rig_notify(pair.cq, ND_CQ_NOTIFY_ANY, &notify);
    rig_run();
    ok_pending(&notify);
    invalidate_by_peer(10, mw_token(pair.mw));
    rig_run();
    ok_done(&notify, ND_SUCCESS);
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_revoked();
    ok_no_result(pair.cq);
    rig_notify(pair.cq, ND_CQ_NOTIFY_ANY, &notify);
    rig_run();
    ok_pending(&notify);
    cq_cancel_notifies(pair.cq, ND_CANCELED);
    pair_unmake();
}

/* Nobody takes the result. */
TEST(revoked__released_with_its_result)
{
    for (unsigned first = 0; first < 2; first++) {
        pair_make(KIND_RXE);
        bind_it();
        invalidate_by_peer(10, mw_token(pair.mw));
        ok_result(pair.cq, Receive, 10, ND_SUCCESS);
        if (first)
            rig_run();
        mw_release(pair.mw);
        pair.mw = NULL;
        ok_no_result(pair.cq);
        rig_run();
        pair_unmake();
    }
}

/* One result waits at most, whatever the peer does; a window without context gives none. */
TEST(revoked__one_result)
{
    struct mw *quiet;

    pair_make(KIND_RXE);
    bind_it();
    invalidate_by_peer(10, mw_token(pair.mw));
    qp_collect(pair.qp);
    rig_run();
    ok_status(pair_bind(1, 0, 64, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    pair_run();
    invalidate_by_peer(12, mw_token(pair.mw));
    qp_collect(pair.qp);
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_result(pair.cq, Receive, 12, ND_SUCCESS);
    ok_revoked();
    ok_no_result(pair.cq);
    ok_status(mw_create(pair.adapter, MW_ND, NULL, &quiet), ND_SUCCESS);
    ok_status(mw_bind(pair.qp, NULL, pair.mr, quiet, pair_bytes, 8, ND_OP_FLAG_SILENT_SUCCESS, NULL), ND_SUCCESS);
    pair_run();
    invalidate_by_peer(14, mw_token(quiet));
    ok_result(pair.cq, Receive, 14, ND_SUCCESS);
    pair_discard(pair.cq);
    rig_run();
    mw_release(quiet);
    pair_unmake();
}

TEST(send_invalidate__flags_and_bytes)
{
    char byte = 1;
    ND2_SGE sge = { &byte, 1, 0 };

    pair_make(KIND_WINDOWS);
    ok_status(qp_send_invalidate(pair.peer, NULL, NULL, 0, 0, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_5);
    ok_status(qp_send_invalidate(pair.peer, NULL, NULL, 0, 0, 0x40), ND_INVALID_PARAMETER_5);
    ok_status(qp_send_invalidate(pair.peer, rig_ctx(1), &sge, 1, htonl(0x11223344),
                                 ND_OP_FLAG_INLINE | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT),
              ND_SUCCESS);
    ok_int(pair_last_post()->opcode, ==, IBV_WR_SEND_WITH_INV);
    ok_uint(pair_last_post()->rkey, ==, 0x11223344);
    ok_uint(pair_last_post()->send_flags, ==,
            IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
    pair_unmake();
}

/* A device that can do neither sends the message. */
TEST(send_invalidate__device_without)
{
    pair_make(KIND_MUTE);
    bind_it();
    invalidate_by_peer(10, mw_token(pair.mw));
    ok_int(pair_last_post()->opcode, ==, IBV_WR_SEND);
    ok_result(pair.cq, Receive, 10, ND_SUCCESS);
    ok_no_result(pair.cq);
    ok_status(mr_deregister(pair.mr), ND_DEVICE_BUSY);
    pair_unmake();
}

/* siw's provider refuses to inline it (v1window.revoked_by_the_peer). */
TEST(send_invalidate__not_inlined_on_siw)
{
    struct ibv_device_attr *attr = fake_device_attr("fake_iw");
    char byte = 1;
    ND2_SGE sge = { &byte, 1, 0 };
    struct adapter *adapter;
    bool inlines;

    attr->vendor_id = 0x626d74;
    adapter = rig_open(RIG_IW);
    inlines = adapter->device->inlines_invalidate;
    rig_close(adapter);
    ok(!inlines);
    pair_make(KIND_WINDOWS);
    ok(pair.adapter->device->inlines_invalidate);
    pair.adapter->device->inlines_invalidate = inlines;
    ok_status(qp_send_invalidate(pair.peer, rig_ctx(1), &sge, 1, htonl(0x11223344), ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_int(pair_last_post()->opcode, ==, IBV_WR_SEND_WITH_INV);
    ok_uint(pair_last_post()->send_flags, ==, IBV_SEND_SIGNALED);
    pair_unmake();
}
