/* SPDX-License-Identifier: MIT */

/* What the code under test asks the system about processors: the truth, unless a test makes it fail. */

#include "fake_internal.h"

#include <sched.h>

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    struct fake_call call = { .fn = FAKE_sched_getaffinity };
    int err = fake_enter(&call);

    if (!err && __real_sched_getaffinity(pid, size, set) != 0)
        err = errno;
    return fake_return(fake_leave(&call, err));
}
