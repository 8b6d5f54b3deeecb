/* SPDX-License-Identifier: MIT */

/* The harness itself: output and exit status of a sample program, on Check and without. */

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static char output[8192];

static int run(const char *program, const char *arguments)
{
    char command[1000];
    size_t length;
    FILE *from;

    snprintf(command, sizeof(command), "env -u CK_FORK %s %s 2>&1", program, arguments);
    from = popen(command, "r");
    ok(from);
    length = fread(output, 1, sizeof(output) - 1, from);
    output[length] = '\0';
    return WEXITSTATUS(pclose(from));
}

static bool ends_with(const char *line)
{
    size_t all = strlen(output), part = strlen(line);

    return all >= part && strcmp(output + all - part, line) == 0;
}

static void common(const char *program)
{
    ok_int(run(program, "'good*'"), ==, 0);
    ok(ends_with("2 passed, 0 failed, 0 skipped\n"));
    ok(strstr(output, "torn down good__one\n"));
    ok_int(run(program, "good__one bad__int 'sk?p__one'"), ==, 1);
    ok(ends_with("\n1 passed, 1 failed, 1 skipped\n"));
    ok(strstr(output, "FAIL bad__int: "));
    ok(strstr(output, "1 + 1 == 3: 2 and 3"));
    ok(strstr(output, "harness_sample.c:"));
    ok(strstr(output, "SKIP skip__one: no such device here\n"));
    ok(!strstr(output, "torn down bad__int"));
    ok_int(run(program, "bad__status"), ==, 1);
    ok(strstr(output, "0x80000005 is 0x80000005, not 0 (0x00000000)"));
    ok_int(run(program, "bad__memory"), ==, 1);
    ok(strstr(output, "differ at byte 2 of 4: 0x63 and 0x78"));
    ok_int(run(program, "skip__one"), ==, 77);
    ok(ends_with("\n0 passed, 0 failed, 1 skipped\n"));
    ok_int(run(program, "nonsense"), ==, 2);
    ok_int(run(program, "--list"), ==, 0);
    ok(strstr(output, "good__one\ngood__two\nbad__int\n"));
}

TEST(check__output_and_status)
{
    common(HARNESS_SAMPLE);
    ok_int(run(HARNESS_SAMPLE, "crash__one good__one"), ==, 1);
    ok(strstr(output, "FAIL crash__one: "));
    ok(ends_with("\n1 passed, 1 failed, 0 skipped\n"));
}

TEST(plain__output_and_status)
{
    common(HARNESS_SAMPLE_PLAIN);
}

HARNESS_MAIN
