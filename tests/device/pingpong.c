/* SPDX-License-Identifier: MIT */
#include "pingpong.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

static const char *peer_address(void)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");

    return peer ? peer : runner_env("NDVERBS_ADDR");
}

/* Full path of a program of the build tree, behind this one's folder; "i386": the 32-bit ndpingpong. */
static char *program_path(const char *name)
{
    static char paths[2][PATH_MAX];
    static int next;
    char *path = paths[next++ % 2], below[64];

    if (!strcmp(name, "i386")) {
        snprintf(path, PATH_MAX, "%s", runner_env("NDVERBS_I386"));
        return path;
    }
    snprintf(below, sizeof(below), "%s/%s", !strcmp(name, "rawpingpong") ? "tests/bench" : "examples", name);
    runner_built(below, path, PATH_MAX);
    return path;
}

void pingpong_pair(const char *server, const char *client, const char *how, const char *kind)
{
    static int port = 0;
    /* A datagram is one packet. */
    const char *sizes = kind && !strcmp(kind, "--ud") ? "64,900" : "64,5000";
    char text[8];
    char *server_path = program_path(server), *client_path = program_path(client);
    const char *server_argv[] = { server_path, "-s", "-b", peer_address(), "-p", text, kind, NULL };
    const char *client_argv[] = { client_path,
                                  "-c",
                                  peer_address(),
                                  "-b",
                                  runner_env("NDVERBS_ADDR"),
                                  "-p",
                                  text,
                                  "-n",
                                  "40",
                                  "-S",
                                  sizes,
                                  "-q",
                                  "4",
                                  "-V",
                                  how,
                                  kind,
                                  NULL };
    int pid, status = 1;

    if (access(server_path, X_OK) != 0 || access(client_path, X_OK) != 0)
        harness_skip("the ping-pong programs are not built (options examples, bench)");
    if (!port)
        port = 20000 + getpid() % 20000;
    snprintf(text, sizeof(text), "%d", port++);
    pid = runner_exec(server_argv);
    for (int tries = 0; tries < 100 && status; tries++) {
        status = runner_wait(runner_exec(client_argv));
        if (status)
            Sleep(50);
    }
    ok_msg(status == 0, "the client failed (wait status 0x%x)", status);
    status = runner_wait(pid);
    ok_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the server failed (wait status 0x%x)", status);
}
