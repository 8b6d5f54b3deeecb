/* SPDX-License-Identifier: MIT */

/* A thread that spins sees completions before their event does. */

#include <stdlib.h>

#include "core/spin.h"
#include "core/tunable.h"
#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;

SETUP
{
    rig_start();
    ok_int(setenv("NDVERBS_SPIN_US", "50", 1), ==, 0);
    tunables_reload();
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 8);
    qp = rig_qp(adapter, cq, cq, 16);
    for (uintptr_t i = 0; i < 8; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
}

TEARDOWN
{
    rig_drop(qp);
    cq_unref(cq);
    spin_look();
    rig_close(adapter);
    unsetenv("NDVERBS_SPIN_US");
    tunables_reload();
    rig_end();
}

static void arrive(unsigned n)
{
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_RECV, n, IBV_WC_SUCCESS, 1), ==, n);
}

TEST(spin__finds_before_the_event)
{
    ND2_RESULT results[16];
    struct notify n, later;

    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    ok_uint(spin_ns(), ==, 50000);
    spin_look();
    ok_pending(&n);
    arrive(1);
    spin_look();
    ok_done(&n, ND_SUCCESS);
    ok_uint(cq_get_results(cq, results, 16), ==, 1);

    /* The event is still on its way, so the next Notify needs no arm; the event completes nothing by itself. */
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &later);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 1);
    rig_run();
    ok_pending(&later);
    ok_uint(fake_count(FAKE_ibv_req_notify_cq), ==, 2);
    arrive(1);
    rig_run();
    ok_done(&later, ND_SUCCESS);
    spin_look(); /* nobody waits any more */
}

TEST(spin__every_queue_in_its_turn)
{
    struct notify first, n[8];
    struct cq *queues[8];

    rig_notify(cq, ND_CQ_NOTIFY_ANY, &first);
    for (int i = 0; i < 8; i++) {
        queues[i] = rig_cq(adapter, 8);
        rig_notify(queues[i], ND_CQ_NOTIFY_ANY, &n[i]);
    }
    arrive(1);
    for (int i = 0; i < 3; i++)
        spin_look();
    ok_done(&first, ND_SUCCESS);
    for (int i = 0; i < 8; i++) {
        ok_pending(&n[i]);
        cq_unref(queues[i]);
        ok_done(&n[i], ND_CANCELED);
    }
}
