/* SPDX-License-Identifier: MIT */
/* Results that came before they were asked for. No device promises that an acknowledged Send is told before the receive of its answer,
 * so that a success of one queue (receives, or everything else) waits here while the other queue's is asked for. */
#ifndef NDVERBS_TESTS_DEVICE_EARLY_H
#define NDVERBS_TESTS_DEVICE_EARLY_H

#include <stdbool.h>
#include <stddef.h>

enum early_kind {
    EARLY_OTHER,
    EARLY_RECEIVE,
    EARLY_ANY, /* to take only */
};

/* `size` bytes of a result of that completion queue; taken in the order of arrival. Any thread. */
void early_put(const void *cq, enum early_kind kind, const void *result, size_t size);
bool early_take(const void *cq, enum early_kind kind, void *result, size_t size);

/* Every one has been asked for: at the end of a case, or a result that nobody expected would go unseen. */
void early_none(void);

#endif
