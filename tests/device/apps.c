/* SPDX-License-Identifier: MIT */
/* Runs the applications of tests/apps, each server and client as processes of their own. What they check is in them; here
 * is only that both end well. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"

#define WORDS_MAX 8

/* Starts `name` with the words of `arguments`; *out reads what it prints. */
static pid_t start(const char *where, const char *name, const char *arguments, FILE **out)
{
    char words[512], path[PATH_MAX], below[64], *argv[WORDS_MAX + 2], *rest = words, *word;
    int ends[2], n = 1;
    pid_t pid;

    snprintf(words, sizeof(words), "%s", arguments);
    snprintf(below, sizeof(below), "%s/%s", where, name);
    runner_built(below, path, sizeof(path));
    ok_msg(access(path, X_OK) == 0, "%s is not there", path);
    argv[0] = path;
    while ((word = strsep(&rest, " ")))
        if (*word && n <= WORDS_MAX)
            argv[n++] = word;
    argv[n] = NULL;
    fflush(NULL);
    ok_int(pipe(ends), ==, 0);
    pid = fork();
    ok_int(pid, >=, 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
            close(fd);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    *out = fdopen(ends[0], "r");
    return pid;
}

static pid_t app_start(const char *name, const char *arguments, FILE **out)
{
    return start("tests/apps", name, arguments, out);
}

/* Passes its output on until a line has `word` in it, or to the end. The line. */
static const char *app_read(FILE *out, const char *word)
{
    static char line[512];

    while (fgets(line, sizeof(line), out)) {
        fputs(line, stdout);
        if (word && strstr(line, word))
            return line;
    }
    return NULL;
}

/* Its last words and its wait status. */
static int app_end(pid_t pid, FILE *out)
{
    app_read(out, NULL);
    fclose(out);
    fflush(stdout);
    return runner_wait(pid);
}

static void app_was_well(const char *what, int status)
{
    ok_msg(!WIFSIGNALED(status), "the %s was ended by signal %d", what, WTERMSIG(status));
    ok_msg(status == 0, "the %s ended with %d", what, WEXITSTATUS(status));
}

/* A client that failed has perhaps left a server that waits for it: what that one has said so far is of interest too. */
static void pair_end(pid_t client, FILE *client_out, pid_t server, FILE *server_out)
{
    int client_status = app_end(client, client_out), server_status;

    if (client_status != 0) {
        sleep(1);
        runner_kill(server);
    }
    server_status = app_end(server, server_out);
    app_was_well("client", client_status);
    app_was_well("server", server_status);
}

static const char *address(void)
{
    const char *text = runner_env("NDVERBS_PEER_ADDR");

    if (!text)
        text = runner_env("NDVERBS_ADDR");
    ok(text != NULL);
    return text;
}

static void run_alone(const char *name)
{
    FILE *out;
    pid_t pid = app_start(name, address(), &out);

    app_was_well("program", app_end(pid, out));
}

/* The server's and the client's arguments, each with one %s for the address. */
static void run_pair(const char *name, const char *ready, const char *server_format, const char *client_format)
{
    char server_words[256], client_words[256];
    FILE *server_out, *client_out;
    pid_t server, client;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(server_words, sizeof(server_words), server_format, address());
    snprintf(client_words, sizeof(client_words), client_format, address());
#pragma GCC diagnostic pop
    server = app_start(name, server_words, &server_out);
    ok_msg(app_read(server_out, ready) != NULL, "the server ended before it was ready");
    client = app_start(name, client_words, &client_out);
    pair_end(client, client_out, server, server_out);
}

ALONE(ping)
{
    run_pair("ping", "waiting", "-s %s:5301", "-c %s:5301 -n 20 -l 16");
    run_pair("ping", "waiting", "-s %s:5301", "-c %s:5301 -n 10 -l 65536 -b");
}

/* An application that needs what siw does not do. */
static void not_on_siw(const char *why)
{
    if (runner_iwarp())
        harness_skip(why);
}

ALONE(ring)
{
    not_on_siw("siw reports success to the writer of a Write that its peer refuses, and the program wants the refusal");
    run_pair("ring", "listening", "-s %s 5302", "-c %s 5302");
}

ALONE(notify)
{
    run_alone("notify");
}

ALONE(conn)
{
    run_pair("conn", "listening", "server %s 5303 12", "client %s 5303 12");
}

ALONE(cross)
{
    not_on_siw("both sides send at once, and siw takes what the accepting one sends first for a broken reply (MPA)");
    run_pair("cross", "ready", "0 %s 5304 5305 4", "1 %s 5304 5305 4");
}

/* The server picks the port and tells it. */
ALONE(channel)
{
    char words[256], client_words[256];
    FILE *server_out, *client_out;
    pid_t server, client;
    const char *line;

    not_on_siw("both sides send at once, and siw takes what the accepting one sends first for a broken reply (MPA)");
    snprintf(words, sizeof(words), "listen %s 3", address());
    server = app_start("channel", words, &server_out);
    line = app_read(server_out, "port ");
    ok_msg(line != NULL, "the server ended before it was ready");
    snprintf(client_words, sizeof(client_words), "join %s %d 3", address(), atoi(strstr(line, "port ") + 5));
    client = app_start("channel", client_words, &client_out);
    pair_end(client, client_out, server, server_out);
}

ALONE(fabric)
{
    run_pair("fabric", "listening", "-l %s 5306", "-d %s 5306");
}

ALONE(dapl)
{
    run_pair("dapl", "listening", "psp %s 5307", "ep %s 5307");
}

ALONE(netplugin)
{
    run_pair("netplugin", "listening", "recv %s 5308", "send %s 5308");
}

ALONE(rpc)
{
    if (runner_wire())
        harness_skip("the server asks for the way to its own address: on the wire it leads to the other device");
    run_pair("rpc", "listening", "server %s 5309", "client %s 5309");
}

ALONE(nvme)
{
    run_pair("nvme", "listening", "target %s 5310", "host %s 5310");
}

ALONE(datapath)
{
    run_pair("datapath", "listening", "server %s 5311 4", "client %s 5311 4");
}

ALONE(coro)
{
    run_alone("coro");
}

ALONE(easy)
{
    run_pair("easy", "listening", "listen %s 5312", "connect %s 5312");
}

/* The examples with event loops of their own. */

static void run_example(const char *name)
{
    FILE *out;
    pid_t pid = start("examples", name, address(), &out);

    app_was_well("program", app_end(pid, out));
}

ALONE(example_epoll_host)
{
    run_example("ndembed_epoll");
}

ALONE(example_libev_host)
{
    run_example("ndembed_libev");
}

RUNNER_MAIN
