/* SPDX-License-Identifier: MIT */
#include "foreign.h"

#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"

const char *free_port(void)
{
    static char text[8];

    snprintf(text, sizeof(text), "%d", 20000 + getpid() % 20000);
    return text;
}

const char *peer_address(void)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");

    return peer ? peer : runner_env("NDVERBS_ADDR");
}

int start_rawpeer(const char *role, const char *part, const char *address, const char *port, const char *room)
{
    char path[PATH_MAX];
    const char *argv[] = { path, role, part, address, port, room, NULL };

    runner_built("tests/device/rawpeer", path, sizeof(path));
    return runner_exec(argv);
}

void all_was_well(int pid)
{
    int status = runner_wait(pid);

    ok_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the foreign program failed (wait status 0x%x)", status);
}
