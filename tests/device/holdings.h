/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_HOLDINGS_H
#define NDVERBS_DEVICE_HOLDINGS_H

/* What a case's process holds of the system, and may hold. */

#include <stddef.h>

/* Descriptors that this process has open; kB pinned by this process; context switches of all its threads. */
int open_descriptors(void);
unsigned long process_status(const char *field);

/* Objects of all RDMA devices as the kernel counts them (rdma resource), of all processes. */
unsigned long kernel_objects(void);

/* What the process and the system hold. Memory is the C library's count of what is in use; RUNNER_MAIN_EXACT makes it exact. */
struct holdings {
    int descriptors;
    size_t memory;
    unsigned long pinned;
    unsigned long objects; /* kernel_objects */
};
struct holdings holdings_now(void);
/* Waits until all of it is as it was: what workers still have to destroy, they destroy. Of memory `slack` bytes more. What it is
 * then is noted. */
void holdings_back_at(const struct holdings *before, size_t slack);

/* RLIMIT_MEMLOCK, and no right to pass it. Before the device is opened: the kernel remembers who opened it. */
void limit_locked_memory(size_t size);

#endif
