/* SPDX-License-Identifier: MIT */

/* Two sources of a program, of which one has Winsock's calls and the other the system's: each keeps its own, also those with a
 * length of int. Linked in both orders. */

#include "sockets.h"

int main(void)
{
    int failures = failures_of("Winsock's", WSAENOTSOCK) + native_failures();

    std::printf("%d passed, %d failed, 0 skipped\n", 10 - failures, failures);
    return failures != 0;
}
