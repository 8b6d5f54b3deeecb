/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ENGINE_HOST_H
#define NDVERBS_ENGINE_HOST_H

/* A host: a program whose own event loop drives ours (design.md section 2, last bullet). It waits on an epoll descriptor
 * that holds everything the loop waits for, and calls engine_host_dispatch() when that is readable. While there is a host
 * the background thread stays parked. */

#include "engine.h"

/* Declares the host and gives its descriptor, which stays the library's and the same. ND_INSUFFICIENT_RESOURCES and what
 * engine_start() returns. Any thread, any number of times. */
NTSTATUS engine_host_start(int *fd);

/* The background thread drives again. Any thread. */
void engine_host_stop(void);

/* Runs the loop once without waiting. ND_SUCCESS; ND_DEVICE_NOT_READY: no host is declared; ND_DEVICE_BUSY: another thread
 * runs the loop at this moment, in a wait of its own, and will see to what is ready. Any thread. */
NTSTATUS engine_host_dispatch(void);

/* From here on for engine.c. On loop: a descriptor is watched from now on, or no longer; a timer was started that fires at
 * `due` (ns of sleep_now()); the loop was run for the host. */
void host_watch(int fd);
void host_unwatch(int fd);
void host_timer(uint64_t due);
void host_ran(void);

/* Makes the host's descriptor readable: there is work that no kernel event announces. Any thread. */
void host_kick(void);

/* In engine.c. On loop: each descriptor that is watched; the earliest time at which a timer fires, SLEEP_FOREVER if none
 * runs. */
void engine_each_watched(void (*each)(int fd));
uint64_t engine_next_timer(void);

#endif
