/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_STEPS_H
#define NDVERBS_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

/* An engine without threads, in place of lib/core/engine.c: work waits until the test runs it, so that every order of
 * steps can be played. Also stand-ins for queue pairs, completion and shared receive queues that record what device.c tells them. */

/* Runs posted calls, removals, works and ready descriptors until nothing is left to do. */
void steps_run(void);

/* One kind of step at a time; how many were run. */
unsigned steps_calls(void);
unsigned steps_removals(void);
unsigned steps_works(void);
unsigned steps_ready(void); /* one event of one ready descriptor */

unsigned steps_watched(void); /* descriptors in the loop */
void steps_fail_start(NTSTATUS status);
void steps_set_dead(bool dead);
void steps_set_on_loop(bool on_loop);

/* The stand-ins: made by the test, found through the context pointer of the verbs object. */
struct stand_in {
    uint32_t refs; /* 0: its last reference is gone */
    unsigned events, overruns, errors, removals, established, last_wqes, lost;
};

/* Devices whose connectors and listeners were told of the removal. */
extern unsigned steps_connectors_told, steps_listeners_told;

#endif
