/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <assert.h>
#include <errno.h>
#include <ntstatus.h>
#include <pthread.h>

#include "brokenpipe.h"
#include "engine_host.h"
#include "engine_poll.h"
#include "log.h"
#include "role.h"
#include "spin.h"
#include "tunable.h"
#include "worker.h"

enum engine_state {
    ENGINE_NONE,
    ENGINE_RUNNING,
};

/* What libev's tables have room for from the start: descriptors up to the usual limit of a process; timers, and events at a time. */
#define RESERVED_DESCRIPTORS 1024
#define RESERVED_EVENTS      256
#define RESERVED_MEMORY      (96 << 10) /* more than they take while they grow */

static struct wordlock start_lock;
static uint32_t state;
static uint32_t dead;
static bool fork_hook; /* atomic; changed under start_lock */
static struct ev_loop *loop;
static uint32_t posted; /* something is queued, or the holder of the role is to return from its sleep */

static struct wordlock queue_lock; /* a leaf lock, for the two queues below */
static struct engine_call *calls_first, **calls_last = &calls_first;
static struct list io_changes = { &io_changes, &io_changes };

/* On loop. */
static struct list watched = { &watched, &watched };
static struct list timers = { &timers, &timers };

static _Thread_local bool on_loop __attribute__((tls_model("initial-exec")));

bool engine_dead(void)
{
    return __atomic_load_n(&dead, __ATOMIC_RELAXED);
}

bool engine_on_loop(void)
{
    return on_loop;
}

static void fork_child(void)
{
    __atomic_store_n(&dead, 1, __ATOMIC_RELAXED);
    role_fork_child();
}

/* Every callback runs between these two. */
static void enter(void)
{
    on_loop = true;
    wait_forbid(true);
}

static void leave(void)
{
    wait_forbid(false);
    on_loop = false;
}

static void invoke_pending(struct ev_loop *l)
{
    enter();
    ev_invoke_pending(l);
    leave();
}

static bool kicked(void)
{
    return __atomic_load_n(&posted, __ATOMIC_SEQ_CST);
}

/* No system call while nobody sleeps; a sleep that begins later returns at once. A host polls somewhere else. */
static void loop_kick(void)
{
    __atomic_store_n(&posted, 1, __ATOMIC_SEQ_CST);
    poller_kick();
    host_kick();
}

static uint64_t guard_ns(void)
{
    return tunables()->guard_ms * 1000000ull;
}

static void io_ready(struct ev_loop *l, ev_io *watcher, int events)
{
    struct engine_io *io = (struct engine_io *)watcher;

    (void)l;
    (void)events;
    io->ready(io);
}

static void removed_nothing(struct engine_io *io)
{
    (void)io;
}

/* The one function by which descriptors go to the set, to libev and to the host. */
static void io_start(struct engine_io *io)
{
    poller_watch(io);
    ev_io_start(loop, &io->watcher);
    list_add_tail(&watched, &io->watched);
    host_watch(io->fd);
}

static void io_stop(struct engine_io *io)
{
    poller_unwatch(io);
    ev_io_stop(loop, &io->watcher);
    list_del(&io->watched);
    host_unwatch(io->fd);
}

void engine_each_watched(void (*each)(int fd))
{
    list_for_each (node, &watched)
        each(list_entry(node, struct engine_io, watched)->fd);
}

static void io_changes_run_on_loop(void)
{
    for (;;) {
        void (*removed)(struct engine_io * io);
        struct engine_io *io;
        struct list *link;

        wordlock_lock(&queue_lock);
        link = list_pop(&io_changes);
        io = link ? list_entry(link, struct engine_io, link) : NULL;
        removed = io ? io->removed : NULL;
        wordlock_unlock(&queue_lock);
        if (!io)
            return;
        if (removed) {
            io_stop(io);
            removed(io);
        } else {
            io_start(io);
        }
    }
}

static void calls_run_on_loop(void)
{
    struct engine_call *call, *next;

    wordlock_lock(&queue_lock);
    call = calls_first;
    calls_first = NULL;
    calls_last = &calls_first;
    wordlock_unlock(&queue_lock);
    for (; call; call = next) {
        void (*run)(struct engine_call * call) = call->run;

        next = call->next;
        /* From here on it may be posted again, and `run` may free it. */
        __atomic_store_n(&call->queued, 0, __ATOMIC_RELEASE);
        run(call);
    }
}

static void run_posted(void)
{
    if (!kicked())
        return;
    /* Before the look: what is queued behind it is seen the next time. */
    __atomic_store_n(&posted, 0, __ATOMIC_SEQ_CST);
    enter();
    io_changes_run_on_loop();
    calls_run_on_loop();
    leave();
}

/* One readiness, one run of what was posted, the timers that are due: in each turn all three, so that none of them keeps
 * another waiting. The sleep only ends at the deadline; the driver decides by the clock. */
static void loop_run(uint64_t deadline)
{
    struct engine_io *ready;
    uint64_t timer;

    if (deadline == 0) {
        run_posted();
        ev_run(loop, EVRUN_NOWAIT);
        host_ran();
        return;
    }
    sleep_count(SLEEP_POLL);
    timer = engine_next_timer();
    ready = poller_sleep(timer < deadline ? timer : deadline, kicked);
    if (ready) {
        enter();
        ready->ready(ready);
        leave();
    }
    run_posted();
    if (!list_empty(&timers) && engine_next_timer() <= sleep_now())
        ev_run(loop, EVRUN_NOWAIT);
}

static const struct role_source loop_source = {
    .run = loop_run,
    .kick = loop_kick,
    .spin_ns = spin_ns,
    .look = spin_look,
    .guard_ns = guard_ns,
};

static bool watch_fork_locked(void)
{
    if (!fork_hook && pthread_atfork(NULL, NULL, fork_child) == 0)
        __atomic_store_n(&fork_hook, true, __ATOMIC_RELEASE);
    return fork_hook;
}

bool engine_watch_fork(void)
{
    bool is_watched = __atomic_load_n(&fork_hook, __ATOMIC_ACQUIRE);

    if (!is_watched) {
        wordlock_lock(&start_lock);
        is_watched = watch_fork_locked();
        wordlock_unlock(&start_lock);
    }
    return is_watched;
}

/* libev ends the process where there is no memory for a table of its. */
static bool memory_for_libev(void)
{
    void *volatile memory = malloc(RESERVED_MEMORY); /* volatile: no compiler leaves out both calls */

    free(memory);
    return memory != NULL;
}

static void reserve_nothing(struct ev_loop *l, ev_timer *watcher, int events)
{
    (void)l;
    (void)watcher;
    (void)events;
}

/* The tables get their size here, where memory_for_libev() has just seen to it, and not on the loop: they never shrink. */
static bool tables_reserve(void)
{
    ev_timer *timers_due = calloc(RESERVED_EVENTS, sizeof(*timers_due));
    ev_io watcher;

    if (!timers_due)
        return false;
    for (int i = 0; i <= RESERVED_EVENTS; i++) {
        ev_io_init(&watcher, io_ready, i < RESERVED_EVENTS ? i : RESERVED_DESCRIPTORS - 1, EV_READ);
        ev_io_start(loop, &watcher);
        ev_io_stop(loop, &watcher);
    }
    for (int i = 0; i < RESERVED_EVENTS; i++) {
        ev_timer_init(&timers_due[i], reserve_nothing, -1., 0.);
        ev_timer_start(loop, &timers_due[i]);
    }
    ev_run(loop, EVRUN_NOWAIT); /* all at once; none is left */
    free(timers_due);
    return true;
}

static bool loop_make(void)
{
    if (!memory_for_libev()) {
        log_error("no memory for the loop");
        return false;
    }
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!loop) {
        log_error("ev_loop_new failed: no epoll descriptor");
        return false;
    }
    if (!tables_reserve() || !poller_make()) {
        log_error("no memory or no descriptors for the loop: errno %d", errno);
        ev_loop_destroy(loop);
        loop = NULL;
        return false;
    }
    ev_set_invoke_pending_cb(loop, invoke_pending);
    return true;
}

static NTSTATUS start_locked(void)
{
    if (!watch_fork_locked())
        return STATUS_NO_MEMORY;
    if (!loop && !loop_make())
        return STATUS_INSUFFICIENT_RESOURCES;
    if (!worker_start()) {
        log_error("pthread_create failed for the worker of destroys");
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    broken_pipe_ignore();
    role_init(&loop_source);
    if (role_start_background() != STATUS_SUCCESS) {
        log_error("pthread_create failed for the background thread");
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    return STATUS_SUCCESS;
}

NTSTATUS engine_start(void)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (engine_dead())
        return STATUS_DEVICE_REMOVED;
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == ENGINE_RUNNING)
        return STATUS_SUCCESS;
    wordlock_lock(&start_lock);
    if (state == ENGINE_NONE) {
        status = start_locked();
        if (status == STATUS_SUCCESS)
            __atomic_store_n(&state, ENGINE_RUNNING, __ATOMIC_RELEASE);
    }
    wordlock_unlock(&start_lock);
    return status;
}

void engine_io_add(struct engine_io *io, int fd, void (*ready)(struct engine_io *io))
{
    ev_io_init(&io->watcher, io_ready, fd, EV_READ);
    io->fd = fd;
    io->ready = ready;
    io->removed = NULL;
    list_init(&io->watched);
    wordlock_lock(&queue_lock);
    list_add_tail(&io_changes, &io->link);
    wordlock_unlock(&queue_lock);
    loop_kick();
}

void engine_io_remove(struct engine_io *io, void (*removed)(struct engine_io *io))
{
    wordlock_lock(&queue_lock);
    io->removed = removed ? removed : removed_nothing;
    /* Still queued for its start: the same entry now says stop. */
    if (!list_linked(&io->link))
        list_add_tail(&io_changes, &io->link);
    wordlock_unlock(&queue_lock);
    loop_kick();
}

bool engine_post(struct engine_call *call, void (*run)(struct engine_call *call))
{
    int free_call = 0;

    if (!__atomic_compare_exchange_n(&call->queued, &free_call, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    call->run = run;
    call->next = NULL;
    wordlock_lock(&queue_lock);
    *calls_last = call;
    calls_last = &call->next;
    wordlock_unlock(&queue_lock);
    loop_kick();
    return true;
}

static void timer_fired(struct ev_loop *l, ev_timer *watcher, int events)
{
    struct engine_timer *timer = (struct engine_timer *)watcher;

    (void)l;
    (void)events;
    list_del(&timer->running);
    timer->fire(timer);
}

uint64_t engine_next_timer(void)
{
    uint64_t next = SLEEP_FOREVER;

    list_for_each (node, &timers) {
        struct engine_timer *timer = list_entry(node, struct engine_timer, running);

        if (timer->due < next)
            next = timer->due;
    }
    return next;
}

/* One microsecond more than asked for, as libev computes in double seconds; two for the host, so that libev agrees. */
#define ROUNDING_S  1e-6
#define ROUNDING_NS 2000
#define NS_PER_MS   1000000ull

void engine_timer_start(struct engine_timer *timer, uint32_t ms, void (*fire)(struct engine_timer *timer))
{
    assert(on_loop);
    engine_timer_stop(timer);
    ev_now_update(loop);
    ev_timer_init(&timer->watcher, timer_fired, ms / 1e3 + ROUNDING_S, 0.);
    timer->fire = fire;
    timer->due = sleep_now() + ms * NS_PER_MS + ROUNDING_NS;
    ev_timer_start(loop, &timer->watcher);
    list_add_tail(&timers, &timer->running);
    host_timer(timer->due);
}

void engine_timer_stop(struct engine_timer *timer)
{
    assert(on_loop);
    ev_timer_stop(loop, &timer->watcher);
    if (!timer->running.next)
        list_init(&timer->running);
    list_del(&timer->running);
}
