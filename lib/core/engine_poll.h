/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ENGINE_POLL_H
#define NDVERBS_ENGINE_POLL_H

/* Where the holder of the role sleeps: an epoll set of ours with every descriptor that libev has. libev's own poll would do,
 * but it has the kernel arm a timer for every sleep (of a minute, if nothing is due sooner) and reads the clock twice: a quarter
 * of what a blocking wait cost above plain verbs. libev keeps the timers, and runs what is ready for a host. For engine.c. */

#include "engine.h"

/* The descriptors of the set; once in a process. False: there are none left. */
bool poller_make(void);

/* On loop: a descriptor is watched from now on, or no longer. */
void poller_watch(struct engine_io *io);
void poller_unwatch(struct engine_io *io);

/* Sleeps until a descriptor is ready, somebody kicks, or `until` (ns of sleep_now(), SLEEP_FOREVER); not at all if `kicked`
 * says so, which is asked behind the point from which on a kick ends the sleep. The watch that is ready, else NULL. One at a
 * time; the kernel takes them in turns. It costs no system call if `kicked`, but not twice in a row: work that makes more
 * work holds up no descriptor. By the holder of the role. */
struct engine_io *poller_sleep(uint64_t until, bool (*kicked)(void));

/* Ends the sleep; no system call if nobody sleeps. What `kicked` looks at is stored before. Any thread. */
void poller_kick(void);

#endif
