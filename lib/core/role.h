/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ROLE_H
#define NDVERBS_ROLE_H

/* Who runs the loop: the role of design.md section 2 (rules 4-8, 10-12). Knows nothing of libev, so that a unit test can
 * put a source of its own behind it. */

#include <stdbool.h>
#include <stdint.h>

#include "wait.h"

/* What the holder of the role runs. `run` polls once: it returns after it ran callbacks, after a kick (also one sent
 * before the poll), or at the deadline (sleep.h). `kick` may be called on any thread. */
struct role_source {
    void (*run)(uint64_t deadline); /* 0: what is ready, without waiting */
    void (*kick)(void);
    uint64_t (*spin_ns)(
        void); /* for how long an application thread looks before it polls, 0: not at all; may be NULL */
    void (*look)(void);
    uint64_t (*guard_ns)(void); /* period of the background thread's looks; NULL: 2 ms */
};

/* Sets the source and registers with wait_block(). Once in a process (again in unit tests, while nobody waits). */
void role_init(const struct role_source *source);

/* Starts the background thread, which runs the loop while no application thread does. STATUS_SUCCESS or
 * STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS role_start_background(void);

/* A host program drives by role_dispatch() and the background thread stays parked, or no longer. Any thread. */
void role_host(bool declared);

/* Takes the role for one run that does not wait, and passes it on. False: somebody else has it; the source is kicked when
 * it is free again. Any thread, while a host is declared. */
bool role_dispatch(void);

/* In the child of fork(): nobody drives any more; waits only park. */
void role_fork_child(void);

/* For unit tests. idle: no application thread holds the role, wants it or follows. reset: as before the background
 * thread first ran; call it while no thread is inside. background_main: the body of the background thread. */
bool role_is_idle(void);
void role_reset(void);
void *role_background_main(void *arg);

/* Points at which the role changes or is about to, outside of all locks; `waiter` NULL: the background thread. */
enum role_point {
    ROLE_TOOK,      /* took it, nobody had it */
    ROLE_FOLLOWS,   /* somebody has it: parked as a follower */
    ROLE_WANTS,     /* the background thread has it: asked for it */
    ROLE_WAS_GIVEN, /* a follower learnt that it holds it */
    ROLE_RUNS,      /* before each poll */
    ROLE_RAN,       /* after each poll */
    ROLE_LEAVES,    /* a wait is over, before the exit's work */
    ROLE_GIVES,     /* passed it on, before the wake-up */
    ROLE_LEFT,      /* nobody holds it */
    ROLE_POINTS,
};

/* NULL in production. */
extern void (*role_hook)(enum role_point point, struct waiter *waiter);

#endif
