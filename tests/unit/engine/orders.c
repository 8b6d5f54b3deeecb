/* SPDX-License-Identifier: MIT */
#include "orders.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/role.h"
#include "harness.h"
#include "sleep.h"
#include "step.h"

#define DECISIONS  4096
#define EVENTS     16
#define START_TIME 1000000000ull

enum status {
    ABSENT,
    READY,
    ASLEEP,  /* futex */
    POLLING, /* in the fake source */
    HOSTING, /* in a host's loop, on the source's descriptor */
    ENDED,
};

struct thread {
    pthread_t pthread;
    sem_t go;
    enum status status;
    bool required;
    bool woken;
    bool kicks_only; /* HOSTING */
    const uint32_t *word;
    uint64_t deadline;
    jmp_buf end;
};

static struct thread threads[SCHED_THREADS];
static unsigned started;
static sem_t controller;
static const struct sched_scenario *scenario;
static struct sched_counts *counts;
static unsigned deeper; /* additional preemptions, from the environment */
static _Thread_local struct thread *me;

/* One execution. */
static uint64_t now;
static unsigned preemptions, clock_jumps;
static bool ending, hung;

/* The order: which of how many candidates was taken at each decision. */
static struct {
    uint8_t taken, of;
} decisions[DECISIONS];
static unsigned decided, replay;

/* The trail of an execution, for messages. */
static char trail[16384];
static size_t trail_length;

static struct {
    void (*run)(void *arg);
    void *arg;
} events[EVENTS];
static unsigned event_first, event_count;
static bool kicked, host_kicked, inside;
static int last_runner;

static void trail_add(const char *name, const char *what)
{
    int n = snprintf(trail + trail_length, sizeof(trail) - trail_length, "%s%s ", name, what);

    if (n > 0 && trail_length + (size_t)n < sizeof(trail))
        trail_length += (size_t)n;
}

void sched_fail(const char *file, int line, const char *text)
{
    /* The end of the trail says most. */
    const char *end = trail_length > 1500 ? trail + trail_length - 1500 : trail;

    fprintf(stderr, "%s, execution %llu: %s\n  ... %s\n", scenario->name, (unsigned long long)counts->executions, text,
            end);
    harness_fail(file, line, "%s, execution %llu: %s", scenario->name, (unsigned long long)counts->executions, text);
}

uint64_t sched_now(void)
{
    return now;
}

int sched_current(void)
{
    return me ? (int)(me - threads) : -1;
}

int source_last_runner(void)
{
    return last_runner;
}

static bool runnable(const struct thread *thread)
{
    switch (thread->status) {
    case READY:
        return true;
    case ASLEEP:
        return thread->woken || now >= thread->deadline;
    case POLLING:
        return event_count || kicked || now >= thread->deadline;
    case HOSTING:
        return host_kicked || (event_count && !thread->kicks_only);
    default:
        return false;
    }
}

/* Earliest time-out of sleepers; daemons' periods only if nothing else is left to happen. */
static uint64_t next_deadline(bool daemons)
{
    uint64_t next = SLEEP_FOREVER;

    for (unsigned i = 0; i < SCHED_THREADS; i++) {
        const struct thread *thread = &threads[i];

        if ((thread->status == ASLEEP || thread->status == POLLING) && (daemons || thread->required) &&
            thread->deadline > now && thread->deadline < next)
            next = thread->deadline;
    }
    return next;
}

static unsigned decide(unsigned of)
{
    unsigned taken = 0;

    if (of < 2)
        return 0;
    if (decided == DECISIONS) {
        fprintf(stderr, "%s: too many decisions\n", scenario->name);
        abort();
    }
    if (decided < replay)
        taken = decisions[decided].taken;
    decisions[decided].taken = (uint8_t)taken;
    decisions[decided].of = (uint8_t)of;
    decided++;
    return taken;
}

/* Who goes on; NULL: the execution is over. */
static struct thread *choose(struct thread *from)
{
    unsigned bound = scenario->preemptions + deeper;

    for (;;) {
        struct thread *candidates[SCHED_THREADS + 1];
        bool from_ready = from && from->status == READY, left = false;
        unsigned n = 0, taken;
        bool jump;

        if (from_ready)
            candidates[n++] = from;
        for (unsigned i = 0; i < SCHED_THREADS; i++) {
            left |= threads[i].required && threads[i].status != ENDED && threads[i].status != ABSENT;
            if (&threads[i] != from && runnable(&threads[i]))
                candidates[n++] = &threads[i];
            else if (&threads[i] == from && !from_ready && runnable(from))
                candidates[n++] = from;
        }
        /* Daemons finish what they are at: they end while they sleep. */
        if (!left && n == 0)
            return NULL;
        if (n == 0) {
            uint64_t next = next_deadline(true);

            if (next == SLEEP_FOREVER) {
                hung = true;
                return NULL;
            }
            now = next;
            trail_add("clock", "");
            continue;
        }
        if (from_ready && preemptions >= bound)
            return from;
        jump = clock_jumps < scenario->clock_jumps && next_deadline(false) != SLEEP_FOREVER && preemptions < bound;
        taken = decide(n + jump);
        if (taken == n) {
            clock_jumps++;
            preemptions++;
            now = next_deadline(false);
            trail_add("jump", "");
            continue;
        }
        if (from_ready && taken != 0)
            preemptions++;
        return candidates[taken];
    }
}

/* Lets the chosen thread go on, and returns when it is this one's turn again. */
static void reschedule(struct thread *from)
{
    struct thread *next = choose(from);
    bool ended = from->status == ENDED;

    counts->steps++;
    if (next == from)
        return;
    if (next)
        trail_add(scenario->threads[next - threads].name, "");
    sem_post(next ? &next->go : &controller);
    /* An ended thread may be in the next execution already. */
    if (ended)
        return;
    while (sem_wait(&from->go) != 0)
        ;
    if (ending)
        longjmp(from->end, 1);
}

void step_point(void)
{
    if (me)
        reschedule(me);
}

static const char *const point_marks[ROLE_POINTS] = {
    [ROLE_TOOK] = ":took",       [ROLE_FOLLOWS] = ":follows", [ROLE_WANTS] = ":wants",
    [ROLE_WAS_GIVEN] = ":given", [ROLE_RUNS] = ":runs",       [ROLE_RAN] = ":ran",
    [ROLE_LEAVES] = ":leaves",   [ROLE_GIVES] = ":gives",     [ROLE_LEFT] = ":left",
};

static void role_point(enum role_point point, struct waiter *waiter)
{
    (void)waiter;
    counts->points[point]++;
    if (me)
        trail_add(scenario->threads[me - threads].name, point_marks[point]);
    step_point();
}

static void fake_wait(enum sleep_class class, uint32_t *word, uint32_t value, uint64_t deadline)
{
    (void)class;
    if (!me)
        sched_fail(__FILE__, __LINE__, "set-up or check sleeps");
    step_point();
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
        return;
    me->word = word;
    me->woken = false;
    me->deadline = deadline;
    me->status = ASLEEP;
    trail_add(scenario->threads[me - threads].name, ":sleeps");
    reschedule(me);
    me->status = READY;
}

static void fake_wake(uint32_t *word, int count)
{
    for (unsigned i = 0; i < SCHED_THREADS && count > 0; i++) {
        if (threads[i].status == ASLEEP && threads[i].word == word && !threads[i].woken) {
            threads[i].woken = true;
            count--;
        }
    }
}

static const struct sleep_hooks hooks = {
    .now = sched_now,
    .wait = fake_wait,
    .wake = fake_wake,
};

static bool source_run_event(void)
{
    unsigned index = event_first % EVENTS;

    if (!event_count)
        return false;
    event_first++;
    event_count--;
    last_runner = sched_current();
    wait_forbid(true);
    events[index].run(events[index].arg);
    wait_forbid(false);
    return true;
}

static void source_run(uint64_t deadline)
{
    if (inside)
        sched_fail(__FILE__, __LINE__, "two threads run the loop");
    inside = true;
    step_point();
    if (!event_count && !kicked && now < deadline) {
        me->deadline = deadline;
        me->status = POLLING;
        trail_add(scenario->threads[me - threads].name, ":polls");
        reschedule(me);
        me->status = READY;
    }
    kicked = false;
    source_run_event();
    inside = false;
}

static void source_kick(void)
{
    kicked = host_kicked = true;
}

void source_host_poll(bool kicks_only)
{
    step_point();
    me->kicks_only = kicks_only;
    me->status = HOSTING;
    trail_add(scenario->threads[me - threads].name, ":hosts");
    reschedule(me);
    me->status = READY;
    host_kicked = false;
}

static const struct role_source source = {
    .run = source_run,
    .kick = source_kick,
};

void source_push(void (*event)(void *arg), void *arg)
{
    unsigned index = (event_first + event_count) % EVENTS;

    step_point();
    events[index].run = event;
    events[index].arg = arg;
    event_count++;
}

unsigned source_drain(void)
{
    unsigned drained = 0;

    while (source_run_event())
        drained++;
    return drained;
}

static void *thread_main(void *arg)
{
    me = arg;
    for (;;) {
        while (sem_wait(&me->go) != 0)
            ;
        if (ending) {
            me->status = ENDED;
            sem_post(&controller);
            continue;
        }
        if (setjmp(me->end) == 0) {
            scenario->threads[me - threads].body();
            me->status = ENDED;
            reschedule(me);
        } else {
            me->status = ENDED;
            sem_post(&controller);
        }
    }
    return NULL;
}

static void execute(void)
{
    struct thread *first;

    now = START_TIME;
    preemptions = clock_jumps = decided = 0;
    ending = hung = kicked = host_kicked = inside = false;
    event_first = event_count = 0;
    last_runner = -2;
    trail_length = 0;
    role_reset();
    scenario->setup();
    for (unsigned i = 0; i < SCHED_THREADS; i++) {
        threads[i].status = scenario->threads[i].body ? READY : ABSENT;
        threads[i].required = !scenario->threads[i].daemon;
    }
    first = choose(NULL);
    trail_add(scenario->threads[first - threads].name, "");
    sem_post(&first->go);
    while (sem_wait(&controller) != 0)
        ;
    if (hung)
        sched_fail(__FILE__, __LINE__, "hang: nobody can go on");
    ending = true;
    for (unsigned i = 0; i < SCHED_THREADS; i++) {
        if (threads[i].status == ABSENT || threads[i].status == ENDED)
            continue;
        sem_post(&threads[i].go);
        while (sem_wait(&controller) != 0)
            ;
    }
    ending = inside = false;
    if (!role_is_idle())
        sched_fail(__FILE__, __LINE__, "the role was not given back");
    scenario->check();
    counts->executions++;
}

/* The next order in depth-first order; false: all were played. */
static bool advance(void)
{
    while (decided > 0) {
        decided--;
        if (decisions[decided].taken + 1 < decisions[decided].of) {
            decisions[decided].taken++;
            replay = decided + 1;
            return true;
        }
    }
    return false;
}

void sched_explore(const struct sched_scenario *s, struct sched_counts *c)
{
    scenario = s;
    counts = c;
    deeper = getenv("ORDERS_DEEPER") ? (unsigned)atoi(getenv("ORDERS_DEEPER")) : 0;
    sleep_hooks = &hooks;
    role_init(&source);
    role_hook = role_point;
    if (!started) {
        sem_init(&controller, 0, 0);
        for (; started < SCHED_THREADS; started++) {
            sem_init(&threads[started].go, 0, 0);
            if (pthread_create(&threads[started].pthread, NULL, thread_main, &threads[started]) != 0)
                abort();
        }
    }
    replay = 0;
    do
        execute();
    while (advance());
}
