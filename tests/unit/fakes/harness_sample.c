/* SPDX-License-Identifier: MIT */

/* Run by test_harness.c, which looks at what it prints. */

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static bool set_up;

SETUP
{
    set_up = true;
}

TEARDOWN
{
    printf("torn down %s\n", harness_name());
    fflush(stdout);
}

TEST(good__one)
{
    ok(set_up);
    ok_int(1, <, 2);
    ok_mem("abc", "abc", 3);
}

TEST(good__two)
{
    ok_str("a", "a");
}

TEST(bad__int)
{
    ok_int(1 + 1, ==, 3);
}

TEST(bad__status)
{
    ok_status(0x80000005, 0);
}

TEST(bad__memory)
{
    ok_mem("abcd", "abxd", 4);
}

TEST(skip__one)
{
    harness_skip("no such device here");
}

#ifndef HARNESS_PLAIN
TEST(crash__one)
{
    abort();
}
#endif

HARNESS_MAIN
