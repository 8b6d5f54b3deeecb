/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CONNECTION_RIG_H
#define NDVERBS_CONNECTION_RIG_H

/* What the tests of the connection side stand on: an engine without threads, whose work waits until the test runs it (so
 * every order of steps can be played), queue pairs that record what connectors do to them, and real adapters, files and
 * requests over the fakes. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>
#include <ntstatus.h>
#include "ndstatus.h"
#include "fakes.h"
#include "harness.h"

#include "core/connection.h"
#include "core/connector.h"
#include "core/connector_priv.h"
#include "core/device.h"
#include "core/qp.h"

/* ---- Engine ---- */

void rig_run(void);            /* calls, cm events, destroys, connects and what they bring, until nothing is left */
unsigned rig_calls(void);      /* posted calls only */
unsigned rig_events(void);     /* everything readable, one event each; how many */
unsigned rig_destroys(void);   /* destroy lane */
unsigned rig_later(void);      /* how many of them nobody waited for */
unsigned rig_connects(void);   /* connect lane */
void rig_lane_full(bool full); /* the connect lane takes nothing */
void rig_advance(uint32_t ms); /* the clock of the timers */
unsigned rig_timers(void);     /* running */
void rig_set_dead(bool dead);  /* as in a forked child */

/* ---- Queue pairs ---- */

enum rig_step {
    RIG_CLAIM,
    RIG_UNCLAIM,
    RIG_CONNECTED,
    RIG_CLOSE_POSTS,
    RIG_COLLECT,
    RIG_DRAIN,
    RIG_REPLACE,
    RIG_STEPS
};

struct qp {
    uint32_t refs;
    struct adapter *adapter;
    struct ibv_cq *cq;
    struct ibv_qp *verbs; /* NULL after qp_release */
    bool claimed, tried, used, srq, hold_drain, held;
    struct ibv_qp *grave; /* released while held */
    unsigned count[RIG_STEPS];
    uint32_t reads; /* as qp_limit_reads was told */
    int replace_error;
    struct list drains;
    void (*hook)(struct qp *qp, enum rig_step step); /* called at each step, before it */
};

struct qp *rig_qp(struct adapter *adapter); /* in INIT; freed by rig_end */
void rig_drained(struct qp *qp);            /* ends the drains that hold_drain holds back */
bool rig_qp_ready(struct qp *qp);           /* nothing has touched it: INIT, not claimed */

/* ---- Objects ---- */

extern struct adapter *ib, *iw; /* 10.1.1.1 and fd00:1:1::1; 10.1.2.1 */
extern struct file *file;
extern const struct connector_policy nd_policy, wv_policy, v1_policy;

void rig_begin(void);
void rig_end(void); /* nothing leaked, no violation */

struct connector *rig_connector(struct adapter *adapter, const struct connector_policy *policy);
void rig_drop(struct connector *c); /* the application's last Release */

union address rig_address(const char *text, uint16_t port);

/* The id of a connector; the last call of a kind on it. */
struct rdma_cm_id *rig_id(struct connector *c);

/* Requests: pending, or the status. */
bool pending(const OVERLAPPED *ov);
#define ok_done(ov, wanted)                               \
    do {                                                  \
        ok_msg(!pending(ov), "%s is still pending", #ov); \
        ok_status((NTSTATUS)(ov)->Internal, wanted);      \
    } while (0)
#define ok_pending(ov) ok_msg(pending(ov), "%s is not pending: 0x%x", #ov, (unsigned)(ov)->Internal)
/* Never started: as the test left it. */
#define UNTOUCHED        0x5A5A
#define ok_untouched(ov) ok_uint((ov)->Internal, ==, UNTOUCHED)
#define OV_INIT               \
    {                         \
        .Internal = UNTOUCHED \
    }

/* Steps of an active connection on `adapter` to a peer that only the script plays. Each leaves the connector in the
 * state of its name. */
struct active {
    struct adapter *adapter;
    struct connector *c;
    struct qp *qp;
    OVERLAPPED connect, complete, notify, disconnect;
};
void active_start(struct active *a, struct adapter *adapter, const struct connector_policy *policy); /* address */
void active_route(struct active *a);
void active_request_out(struct active *a, struct adapter *adapter, const struct connector_policy *policy);
void active_reply_in(struct active *a, struct adapter *adapter, const struct connector_policy *policy);
void active_established(struct active *a, struct adapter *adapter, const struct connector_policy *policy);
void active_end(struct active *a); /* drops what is left */

struct passive {
    struct adapter *adapter;
    struct listener *l;
    struct connector *c;
    struct qp *qp;
    struct rdma_cm_id *child;
    OVERLAPPED request, accept, notify, disconnect;
};
void passive_request_in(struct passive *p, struct adapter *adapter, const struct connector_policy *policy);
void passive_reply_out(struct passive *p, struct adapter *adapter, const struct connector_policy *policy);
void passive_established(struct passive *p, struct adapter *adapter, const struct connector_policy *policy);
void passive_end(struct passive *p);

void event(struct connector *c, enum rdma_cm_event_type type, int status); /* and runs it */

#endif
