/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <ntstatus.h>

#include "engine.h"
#include "log.h"
#include "sleep.h"
#include "thread.h"
#include "wordlock.h"

/* Blocking connects at a time: one thread each (design.md section 2). */
#define CONNECT_THREADS_MAX 64

/* How long the kept thread lets what is not urgent gather, once it has something to do: where connections come and go all the
 * time, waking it for each of them costs more than what it does. */
#define LINGER_NS 5000000ull

/* Destroys may block for seconds one by one; a few more threads keep one slow peer from holding up all. */
#define DESTROY_EXTRA_MAX 7

static struct {
    struct wordlock lock; /* a leaf lock, for everything below */
    struct engine_work *first, **last;
    uint32_t posted; /* futex word of the kept thread */
    bool idle;       /* the kept thread waits for something to do, */
    bool lingers;    /* but will look by itself soon, */
    bool called;     /* or has been woken */
    uint32_t extra;
    uint32_t connects;
    bool kept; /* the thread that never ends runs */
} lane = { .last = &lane.first };

static _Thread_local bool connecting; /* has a place among the connects */

/* Runs queued destroys until the queue is empty. Lock held on entry and exit. */
static void destroys_run_locked(void)
{
    while (lane.first) {
        struct engine_work *work = lane.first;

        lane.first = work->next;
        if (!lane.first)
            lane.last = &lane.first;
        wordlock_unlock(&lane.lock);
        work->run(work);
        wordlock_lock(&lane.lock);
    }
}

static void *kept_main(void *arg)
{
    wordlock_lock(&lane.lock);
    for (;;) {
        bool worked = lane.first != NULL;
        uint32_t posted;

        destroys_run_locked();
        posted = __atomic_load_n(&lane.posted, __ATOMIC_RELAXED);
        lane.idle = true;
        lane.lingers = worked;
        wordlock_unlock(&lane.lock);
        futex_wait(SLEEP_LIBRARY, &lane.posted, posted, worked ? sleep_now() + LINGER_NS : SLEEP_FOREVER);
        wordlock_lock(&lane.lock);
        lane.idle = lane.lingers = lane.called = false;
    }
    return arg;
}

static void *extra_main(void *arg)
{
    wordlock_lock(&lane.lock);
    destroys_run_locked();
    lane.extra--;
    wordlock_unlock(&lane.lock);
    return arg;
}

void engine_connect_over(void)
{
    if (!connecting)
        return;
    connecting = false;
    wordlock_lock(&lane.lock);
    lane.connects--;
    wordlock_unlock(&lane.lock);
}

static void *connect_main(void *arg)
{
    struct engine_work *work = arg;

    connecting = true;
    work->run(work);
    engine_connect_over();
    return NULL;
}

bool worker_start(void)
{
    bool kept;

    wordlock_lock(&lane.lock);
    kept = lane.kept;
    lane.kept = true;
    wordlock_unlock(&lane.lock);
    if (kept)
        return true;
    kept = thread_start_detached(kept_main, NULL);
    if (!kept) {
        wordlock_lock(&lane.lock);
        lane.kept = false;
        wordlock_unlock(&lane.lock);
    }
    return kept;
}

static void destroy_submit(struct engine_work *work, bool later)
{
    bool wake, grow;

    work->next = NULL;
    wordlock_lock(&lane.lock);
    *lane.last = work;
    lane.last = &work->next;
    wake = lane.idle && !lane.called && !(later && lane.lingers);
    /* What the kept thread was woken for may block until this is done: the end of an attempt waits for the peer's answer, which the
     * end of our own listener gives. */
    grow = (!lane.idle || (lane.called && !later)) && lane.extra < DESTROY_EXTRA_MAX;
    if (wake) {
        lane.called = true;
        __atomic_add_fetch(&lane.posted, 1, __ATOMIC_RELAXED);
    }
    lane.extra += grow;
    wordlock_unlock(&lane.lock);
    if (wake)
        futex_wake(&lane.posted, 1);
    /* Failing is fine: the kept thread comes to it. */
    if (grow && !thread_start_detached(extra_main, NULL)) {
        wordlock_lock(&lane.lock);
        lane.extra--;
        wordlock_unlock(&lane.lock);
    }
}

NTSTATUS engine_work(enum engine_lane kind, struct engine_work *work, void (*run)(struct engine_work *work))
{
    bool full;

    work->run = run;
    if (kind != ENGINE_LANE_CONNECT) {
        destroy_submit(work, kind == ENGINE_LANE_LATER);
        return STATUS_SUCCESS;
    }
    wordlock_lock(&lane.lock);
    full = lane.connects == CONNECT_THREADS_MAX;
    lane.connects += !full;
    wordlock_unlock(&lane.lock);
    if (full) {
        log_info("declined a connect: %d blocking connects run already", CONNECT_THREADS_MAX);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (!thread_start_detached(connect_main, work)) {
        wordlock_lock(&lane.lock);
        lane.connects--;
        wordlock_unlock(&lane.lock);
        log_warn("pthread_create failed for a connect");
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    return STATUS_SUCCESS;
}
