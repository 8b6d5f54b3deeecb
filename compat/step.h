/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_STEP_H
#define NDVERBS_STEP_H

/* Points at which a unit test may let another thread run: before each word lock and between the steps of waits, wake-ups
 * and completions. Compiled in only where NDVERBS_STEPS is defined, by the test that plays all orders. */

#ifdef NDVERBS_STEPS
void step_point(void);
#else
#define step_point() ((void)0)
#endif

#endif
