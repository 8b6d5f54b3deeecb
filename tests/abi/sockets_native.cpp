/* SPDX-License-Identifier: MIT */

/* The other source of sockets_bound.cpp. */

#define ND_COMPAT_NATIVE_SOCKETS 1
#include "sockets.h"

int native_failures(void)
{
    return failures_of("the system's", 4711);
}
