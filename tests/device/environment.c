/* SPDX-License-Identifier: MIT */
/* What a case finds around it, and what it does to the network. */
#include "runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *runner_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

bool runner_iwarp(void)
{
    const char *transport = runner_env("NDVERBS_TRANSPORT");

    return transport && !strcmp(transport, "siw");
}

bool runner_wire(void)
{
    const char *net = runner_env("NDVERBS_NET");

    return net && !strcmp(net, "wire");
}

void runner_need_wire(void)
{
    if (!runner_wire())
        harness_skip("no wire: NDVERBS_NET is not wire");
}

void runner_need_lossy_wire(void)
{
    runner_need_wire();
    if (runner_iwarp())
        harness_skip("siw rides on TCP, which sends again by itself");
}

void runner_lose(const char *netdev, int percent)
{
    ok_int(runner_command("tc qdisc add dev %s root netem loss %d%%", netdev, percent), ==, 0);
}

void runner_mend(const char *netdev)
{
    ok_int(runner_command("tc qdisc del dev %s root", netdev), ==, 0);
}

bool runner_machine(void)
{
    return runner_env("NDVERBS_NET") != NULL;
}

int runner_log_lines(const char *path, const char *text)
{
    FILE *file = fopen(path, "r");
    char line[1000];
    int n = 0;

    ok(file != NULL);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, text) != NULL;
    fclose(file);
    return n;
}

void runner_log_to(const char *path)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);

    ok_int(fd, >=, 0);
    setenv("NDVERBS_LOG", "info", 1);
    ok_int(dup2(fd, STDERR_FILENO), ==, STDERR_FILENO);
    close(fd);
}
