/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SPIN_H
#define NDVERBS_SPIN_H

/* What a thread that drives the loop may look at before it sleeps in the poll: completions, which it sees without a system
 * call. Off unless the tunable spin_us says how long. */

#include <stdbool.h>
#include <stdint.h>

/* For how long, in ns; 0: not at all, or nobody has registered. */
uint64_t spin_ns(void);

/* One look: completes what it finds. On the thread that drives, outside of the loop. */
void spin_look(void);

/* Who looks; the same function each time. Any thread. */
void spin_register(void (*look)(void));

#endif
