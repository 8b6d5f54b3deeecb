/* SPDX-License-Identifier: MIT */

/* Releases of window, queue pair and region in every order and every state of the window: no queue pair is destroyed with a
 * window bound on it, no region deregistered under one, no request loses its window while the connection lives, nothing is
 * left. */

#include "pair.h"

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

enum stage {
    STAGE_NEVER_BOUND,
    STAGE_BIND_POSTED,
    STAGE_BOUND,
    STAGE_INVALIDATE_POSTED,
    STAGE_BIND_AND_INVALIDATE_POSTED,
    STAGE_INVALIDATED,
    STAGE_REBIND_POSTED,
    STAGES
};

enum ending {
    ENDING_ALIVE,
    ENDING_FLUSHED,
    ENDING_FAILED, /* the device knows, we do not yet */
    ENDINGS
};

static void reach(enum stage stage)
{
    if (stage == STAGE_NEVER_BOUND)
        return;
    ok_status(pair_bind(1, 0, 64, 0), ND_SUCCESS);
    if (stage == STAGE_BIND_POSTED)
        return;
    if (stage != STAGE_BIND_AND_INVALIDATE_POSTED)
        pair_run();
    if (stage == STAGE_BOUND)
        return;
    ok_status(mw_invalidate(pair.qp, rig_ctx(2), pair.mw, 0), ND_SUCCESS);
    if (stage == STAGE_INVALIDATED)
        pair_run();
    if (stage == STAGE_REBIND_POSTED)
        ok_status(pair_bind(3, 100, 64, 0), ND_SUCCESS);
}

static void release(char what)
{
    switch (what) {
    case 'w':
        mw_release(pair.mw);
        pair.mw = NULL;
        break;
    case 'q':
        rig_drop(pair.qp);
        pair.qp = NULL;
        break;
    default:
        /* As IND2MemoryRegion's last Release does. */
        qp_fail_users(pair.adapter, pair.mr->mr->lkey);
        mr_release(pair.mr);
        pair.mr = NULL;
    }
}

static void play(const char *order, enum stage stage, enum ending ending, enum device_kind kind, bool run_between)
{
    pair_make(kind);
    reach(stage);
    if (ending == ENDING_FLUSHED)
        ok_status(qp_flush(pair.qp), ND_SUCCESS);
    else if (ending == ENDING_FAILED)
        fake_qp_fail(qp_verbs(pair.qp));
    for (unsigned i = 0; i < 3; i++) {
        release(order[i]);
        if (run_between && pair.qp)
            pair_run();
        rig_run();
    }
    ok_uint(fake_live(FAKE_OBJ_MW), ==, 0);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    ok_msg(!*fake_violations(), "%s, stage %d, ending %d, kind %d: %s", order, stage, ending, kind, fake_violations());
    pair_unmake();
}

TEST(Release__every_order)
{
    static const char *const orders[] = { "wqm", "wmq", "qwm", "qmw", "mwq", "mqw" };

    for (unsigned order = 0; order < 6; order++) {
        for (unsigned kind = 0; kind < 2 * 2 * STAGES * ENDINGS; kind++) {
            unsigned rest = kind / 4;

            play(orders[order], (enum stage)(rest % STAGES), (enum ending)(rest / STAGES),
                 kind & 1 ? KIND_EMULATED : KIND_RXE, kind & 2);
        }
    }
}

/* The window goes first, with a request of it under way, and the connection goes on. */
TEST(Release__window_and_the_connection_lives)
{
    for (unsigned stage = 0; stage < STAGES; stage++) {
        pair_make(KIND_RXE);
        reach((enum stage)stage);
        release('w');
        ok_status(rig_recv(pair.peer, 9), ND_SUCCESS);
        ok_status(rig_send(pair.qp, 8, 0), ND_SUCCESS);
        pair_run();
        ok_result(pair.peer_cq, Receive, 9, ND_SUCCESS);
        pair_discard(pair.cq);
        ok_int(fake_qp_state(qp_verbs(pair.qp)), ==, IBV_QPS_RTS);
        ok_status(mr_deregister(pair.mr), ND_SUCCESS);
        pair.mr = NULL;
        ok_uint(fake_live(FAKE_OBJ_MW), ==, 0);
        pair_unmake();
    }
}
