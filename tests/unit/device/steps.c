/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <poll.h>
#include <stddef.h>
#include "harness.h"
#include "ndstatus.h"

#include "core/connector.h"
#include "core/datagram.h"
#include "core/cq.h"
#include "core/engine.h"
#include "core/mw.h"
#include "core/qp.h"
#include "core/srq.h"

static struct list ios = { &ios, &ios }, leaving = { &leaving, &leaving };
static struct engine_call *calls, **calls_end = &calls;
static struct engine_work *works, **works_end = &works;
static NTSTATUS start_status = ND_SUCCESS;
static bool dead, on_loop;

NTSTATUS engine_start(void)
{
    return start_status;
}

bool engine_dead(void)
{
    return dead;
}

bool engine_watch_fork(void)
{
    return true;
}

bool engine_on_loop(void)
{
    return on_loop;
}

void engine_io_add(struct engine_io *io, int fd, void (*ready)(struct engine_io *io))
{
    io->fd = fd;
    io->ready = ready;
    list_add_tail(&ios, &io->link);
}

void engine_io_remove(struct engine_io *io, void (*removed)(struct engine_io *io))
{
    io->removed = removed;
    list_del(&io->link);
    list_add_tail(&leaving, &io->link);
}

bool engine_post(struct engine_call *call, void (*run)(struct engine_call *call))
{
    if (call->queued)
        return false;
    call->queued = 1;
    call->run = run;
    call->next = NULL;
    *calls_end = call;
    calls_end = &call->next;
    return true;
}

NTSTATUS engine_work(enum engine_lane lane, struct engine_work *work, void (*run)(struct engine_work *work))
{
    (void)lane;
    work->run = run;
    work->next = NULL;
    *works_end = work;
    works_end = &work->next;
    return ND_SUCCESS;
}

unsigned steps_calls(void)
{
    unsigned count = 0;

    while (calls) {
        struct engine_call *call = calls;

        calls = call->next;
        if (!calls)
            calls_end = &calls;
        call->queued = 0;
        on_loop = true;
        call->run(call);
        on_loop = false;
        count++;
    }
    return count;
}

unsigned steps_removals(void)
{
    struct list *node;
    unsigned count = 0;

    while ((node = list_pop(&leaving)) != NULL) {
        struct engine_io *io = list_entry(node, struct engine_io, link);

        on_loop = true;
        if (io->removed)
            io->removed(io);
        on_loop = false;
        count++;
    }
    return count;
}

unsigned steps_works(void)
{
    unsigned count = 0;

    while (works) {
        struct engine_work *work = works;

        works = work->next;
        if (!works)
            works_end = &works;
        work->run(work);
        count++;
    }
    return count;
}

unsigned steps_ready(void)
{
    list_for_each (node, &ios) {
        struct engine_io *io = list_entry(node, struct engine_io, link);
        struct pollfd fd = { .fd = io->fd, .events = POLLIN };

        if (poll(&fd, 1, 0) != 1)
            continue;
        on_loop = true;
        io->ready(io);
        on_loop = false;
        return 1; /* the callback may have changed the list */
    }
    return 0;
}

void steps_run(void)
{
    while (steps_calls() + steps_removals() + steps_ready() + steps_works() > 0)
        ;
}

unsigned steps_watched(void)
{
    unsigned count = 0;

    list_for_each (node, &ios)
        count++;
    return count;
}

void steps_fail_start(NTSTATUS status)
{
    start_status = status;
}

void steps_set_dead(bool is_dead)
{
    dead = is_dead;
}

void steps_set_on_loop(bool is_on_loop)
{
    on_loop = is_on_loop;
}

/* --- stand-ins --- */

unsigned steps_connectors_told, steps_listeners_told;

void connector_device_removed(struct device *device)
{
    (void)device;
    steps_connectors_told++;
}

void datagram_device_removed(struct device *device)
{
    (void)device;
}

void listener_device_removed(struct device *device)
{
    (void)device;
    steps_listeners_told++;
}

void connector_comm_established(struct qp *qp)
{
    ((struct stand_in *)qp)->established++;
}

void connector_qp_failed(struct qp *qp)
{
    ((struct stand_in *)qp)->lost++;
}

static struct stand_in *ref_live(void *object)
{
    struct stand_in *stand_in = object;

    if (stand_in->refs == 0)
        return NULL;
    stand_in->refs++;
    return stand_in;
}

static void unref(void *object)
{
    struct stand_in *stand_in = object;

    ok_uint(stand_in->refs, >, 0);
    stand_in->refs--;
}

/* There are no windows here. */
void mw_settle(struct adapter *adapter, const struct mr *mr)
{
    (void)adapter, (void)mr;
}

void mw_fail_region(struct mr *mr)
{
    (void)mr;
}

bool qp_window_under_way(struct adapter *adapter, uint32_t lkey)
{
    (void)adapter, (void)lkey;
    return false;
}

struct qp *qp_ref_live(struct qp *qp)
{
    return (struct qp *)ref_live(qp);
}

void qp_unref(struct qp *qp)
{
    unref(qp);
}

void qp_async_error(struct qp *qp)
{
    ((struct stand_in *)qp)->errors++;
}

void qp_last_wqe_reached(struct qp *qp)
{
    ((struct stand_in *)qp)->last_wqes++;
}

void qp_device_removed(struct qp *qp)
{
    ((struct stand_in *)qp)->removals++;
}

struct cq *cq_ref_live(struct cq *cq)
{
    return (struct cq *)ref_live(cq);
}

void cq_unref(struct cq *cq)
{
    unref(cq);
}

void cq_event(struct cq *cq)
{
    ((struct stand_in *)cq)->events++;
}

void cq_overrun(struct cq *cq)
{
    ((struct stand_in *)cq)->overruns++;
}

void cq_device_removed(struct cq *cq)
{
    ((struct stand_in *)cq)->removals++;
}

struct srq *srq_ref_live(struct srq *srq)
{
    return (struct srq *)ref_live(srq);
}

void srq_unref(struct srq *srq)
{
    unref(srq);
}

void srq_limit_event(struct srq *srq)
{
    ((struct stand_in *)srq)->events++;
}

void srq_error_event(struct srq *srq)
{
    ((struct stand_in *)srq)->errors++;
}

void srq_device_removed(struct srq *srq)
{
    ((struct stand_in *)srq)->removals++;
}
