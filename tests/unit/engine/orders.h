/* SPDX-License-Identifier: MIT */
#ifndef ORDERS_H
#define ORDERS_H

/* Plays a small scenario in all orders of its threads' steps, up to a number of preemptions. One thread runs at a time;
 * another may go on at each step_point(), role hook, futex sleep and poll of the fake progress source. The clock is
 * fake: it stands still unless everybody sleeps, or as one more choice jumps to the nearest time-out. Threads that sleep
 * for ever although somebody should have woken them are found: a futex sleeper goes on only if it was woken. */

#include <stdbool.h>
#include <stdint.h>

#define SCHED_THREADS 8

struct sched_thread_def {
    const char *name;
    void (*body)(void);
    bool daemon; /* ends with the scenario, in the middle of whatever sleep or step it is in */
};

struct sched_scenario {
    const char *name;
    void (*setup)(void);
    void (*check)(void); /* after all threads ended; frees what setup made */
    struct sched_thread_def threads[SCHED_THREADS];
    unsigned preemptions; /* bound, raised by ORDERS_DEEPER=n; switches at sleeps and ends are free */
    unsigned clock_jumps; /* how often the clock may run ahead of runnable threads */
};

struct sched_counts {
    uint64_t executions;
    uint64_t steps;
    uint64_t points[16]; /* by enum role_point */
};

/* Runs every order; fails the case on the first that hangs or breaks a check. */
void sched_explore(const struct sched_scenario *scenario, struct sched_counts *counts);

/* Ends the case with the order of steps that led here. */
void sched_fail(const char *file, int line, const char *text);
#define sched_ok(expr)                             \
    do {                                           \
        if (!(expr))                               \
            sched_fail(__FILE__, __LINE__, #expr); \
    } while (0)

/* The fake progress source: an event is a function that whoever drives runs "on loop". Any thread. */
void source_push(void (*event)(void *arg), void *arg);

/* What a host's loop does: sleeps until an event is there or the source was kicked; `kicks_only`: an event alone does not
 * end it (somebody else is at it). */
void source_host_poll(bool kicks_only);

/* Runs what nobody has run yet; for checks. Returns the number of events. */
unsigned source_drain(void);

/* The thread that ran the last event: index into scenario.threads, -1 the checker. */
int source_last_runner(void);
int sched_current(void);

uint64_t sched_now(void);

#endif
