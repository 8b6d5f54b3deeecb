/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ENGINE_H
#define NDVERBS_ENGINE_H

/* The process-wide event loop (design.md section 2): descriptors, timers, commands from other threads, worker lanes.
 * Callbacks marked "on loop" run on whatever thread holds the role at that moment, possibly an application's: at most
 * 8 KiB of stack, no wait, no blocking foreign call, no application code. */

#include <stdbool.h>
#include <stdint.h>
#include <ev.h>
#include <windows.h>

#include "list.h"

/* Starts the engine on first use; later calls are one load. Never stopped. ND_INSUFFICIENT_RESOURCES, ND_NO_MEMORY.
 * ND_DEVICE_REMOVED in a forked child. Any thread. */
NTSTATUS engine_start(void);

/* True in a child made by fork() once the engine has started or engine_watch_fork() was called: nothing of the engine or of
 * the verbs objects may be used. */
bool engine_dead(void);

/* For what is kept without the engine: sockets, and locks that another thread may have at the fork. False: out of memory. Any
 * thread. */
bool engine_watch_fork(void);

/* True while the calling thread runs a loop callback. */
bool engine_on_loop(void);

/* A descriptor watched for reading. Embed it; `ready` is called on loop, once per readiness (level-triggered: read one
 * event per call unless more is documented at the caller). */
struct engine_io {
    ev_io watcher;
    int fd;
    void (*ready)(struct engine_io *io);
    void (*removed)(struct engine_io *io);
    struct list link;
    struct list watched; /* on loop: of all that are started */
};

/* Starts watching (handed to the loop; returns at once). Any thread. */
void engine_io_add(struct engine_io *io, int fd, void (*ready)(struct engine_io *io));

/* Stops watching; `removed` runs on loop when `ready` will not be called again. Any thread. */
void engine_io_remove(struct engine_io *io, void (*removed)(struct engine_io *io));

/* A function to run on loop. Embed it. Calls run in the order they were posted; posting one that is queued already is a
 * no-op (returns false). Any thread. */
struct engine_call {
    struct engine_call *next;
    int queued;
    void (*run)(struct engine_call *call);
};
bool engine_post(struct engine_call *call, void (*run)(struct engine_call *call));

/* One-shot timers, in milliseconds on CLOCK_MONOTONIC, never early. Start and stop on loop only; a stopped timer does
 * not fire. Starting a running timer moves it. */
struct engine_timer {
    ev_timer watcher;
    void (*fire)(struct engine_timer *timer);
    uint64_t due;
    struct list running; /* on loop: of all that run; zero before the first start */
};
void engine_timer_start(struct engine_timer *timer, uint32_t ms, void (*fire)(struct engine_timer *timer));
void engine_timer_stop(struct engine_timer *timer);

/* Blocking kernel calls. ENGINE_LANE_DESTROY: destroys of ids, context closes; one thread is always kept for them, so
 * submitting cannot fail. ENGINE_LANE_LATER: the same lane for what nobody waits for; it may take a few milliseconds to
 * begin, unless something for ENGINE_LANE_DESTROY comes behind it. ENGINE_LANE_CONNECT: blocking connects, one thread each
 * up to 64, then ND_INSUFFICIENT_RESOURCES. `run` is called on a worker thread (all signals blocked), never on loop. Any
 * thread. */
enum engine_lane {
    ENGINE_LANE_DESTROY,
    ENGINE_LANE_LATER,
    ENGINE_LANE_CONNECT,
};
struct engine_work {
    struct engine_work *next;
    void (*run)(struct engine_work *work);
};
NTSTATUS engine_work(enum engine_lane lane, struct engine_work *work, void (*run)(struct engine_work *work));

/* By `run` of ENGINE_LANE_CONNECT: the connect is over, so that another one, which what follows may bring, can have its place of
 * the 64. Without it that is when `run` returns. */
void engine_connect_over(void);

#endif
