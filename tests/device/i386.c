/* SPDX-License-Identifier: MIT */
/* A 32-bit program and a 64-bit one talk to each other, both versions of Network Direct, every byte verified: the 32-bit provider of
 * rdma-core on the 64-bit kernel's device. */
#include "pingpong.h"
#include "session.h"

static void needs_32_bit(void)
{
    const char *program = runner_env("NDVERBS_I386");

    if (!runner_machine())
        harness_skip("only in the machine, where the 32-bit libraries may be put in their place");
    if (!program)
        harness_skip("there is no 32-bit build: tests/run i386 makes it");
    if (runner_command("%s --help >/dev/null 2>&1", program) != 0)
        harness_skip("this kernel runs no 32-bit programs");
}

ALONE(pingpong)
{
    needs_32_bit();
    pingpong_pair("i386", "ndpingpong", "--send", NULL);
    pingpong_pair("ndpingpong", "i386", "--event", NULL);
    pingpong_pair("i386", "ndpingpong", "--read", NULL);
    pingpong_pair("ndpingpong", "i386", "--write", NULL);
}

ALONE(pingpong_v1)
{
    needs_32_bit();
    pingpong_pair("i386", "ndpingpong", "--port", "--v1");
    pingpong_pair("ndpingpong", "i386", "--write", "--v1");
    pingpong_pair("i386", "i386", "--read", "--v1");
}

RUNNER_MAIN
