/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SLEEP_H
#define NDVERBS_SLEEP_H

/* The one place where a thread of the library goes to sleep (besides libev's poll, which reports itself here), and the
 * clock that all deadlines are read from. Unit tests count the sleeps by class and may replace sleep and clock. */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Why a thread sleeps. Only SLEEP_WAIT and SLEEP_POLL may occur on an application's thread inside a blocking call. */
enum sleep_class {
    SLEEP_WAIT,    /* parked in wait_block() */
    SLEEP_POLL,    /* in the loop's poll, or for a descriptor of the call's own */
    SLEEP_LOCK,    /* a contended word lock, or a completion another thread is just delivering: short */
    SLEEP_WORD,    /* critical sections, SRW locks, condition variables of the application */
    SLEEP_LIBRARY, /* idle library threads: workers, background thread, callback pool start */
    SLEEP_CLASSES,
};

#define SLEEP_FOREVER UINT64_MAX

/* CLOCK_MONOTONIC in ns. */
uint64_t sleep_now(void);

/* Deadline for a Windows time-out in ms: SLEEP_FOREVER for INFINITE (0xffffffff). Rounded so that it is never early. */
uint64_t sleep_deadline(uint32_t ms);

/* Sleeps while *word == value, until futex_wake() or the deadline (ns of sleep_now()); may return for no reason. */
void futex_wait(enum sleep_class class, uint32_t *word, uint32_t value, uint64_t deadline);

/* Wakes up to `count` sleepers of the word. Preserves errno. The word's memory is not touched. */
void futex_wake(uint32_t *word, int count);

/* A deadline as the time-out of poll and epoll_wait: -1 for ever. Rounded up: who looks at the clock afterwards finds the time
 * over. */
int sleep_poll_ms(uint64_t deadline);

/* poll() with a deadline, which it never returns 0 before; its result and errno. */
int poll_wait(enum sleep_class class, struct pollfd *polled, nfds_t count, uint64_t deadline);

/* Sleeps until the descriptor is readable, a signal comes, or the deadline: never earlier than that. False: the deadline. */
bool readable_wait(enum sleep_class class, int fd, uint64_t deadline);

/* Counts a sleep that goes through neither (the loop's poll). */
void sleep_count(enum sleep_class class);

/* Sleeps so far in the calling thread and in the process, for tests. */
uint64_t sleep_counted(enum sleep_class class);
uint64_t sleep_counted_here(enum sleep_class class);

/* Test seam: NULL in production. `wait` and `wake` replace the futex, `now` the clock. Set while no other thread uses
 * the library. */
struct sleep_hooks {
    uint64_t (*now)(void);
    void (*wait)(enum sleep_class class, uint32_t *word, uint32_t value, uint64_t deadline);
    void (*wake)(uint32_t *word, int count);
};
extern const struct sleep_hooks *sleep_hooks;

#endif
