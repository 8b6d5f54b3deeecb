/* SPDX-License-Identifier: MIT */
/* Network Direct against programs that know nothing of it: rawpeer (plain librdmacm and libibverbs) and rping.
 *
 * With rawpeer: private data both ways; a message each way, the active side first; both tell where their buffer is; both
 * read the other's block, write it back to another place there, and send one byte when that is done; the active side
 * disconnects. What is on the wire is the application's bytes and nothing else (libfabric#7351). */
#include "session.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "foreign.h"
#include "interop.h"

/* What runner_settle is for, with a program that knows nothing of it. */
static void settle(void)
{
    if (runner_iwarp())
        Sleep(200);
}

/* Tries until the foreign server listens. */
static void connect_to_foreign(struct link *link, const char *port, const void *data, ULONG size)
{
    union endpoint to = endpoint_from(peer_address());
    HRESULT hr;

    endpoint_set_port(&to, (USHORT)atoi(port));
    link_bind(link);
    do {
        hr = FINISH(link, CALL(link->connector, Connect, (IUnknown *)link->qp, &to.any, endpoint_size(&to), 2, 2, data,
                               size, &link->ov));
        if (hr == ND_CONNECTION_REFUSED)
            Sleep(20);
    } while (hr == ND_CONNECTION_REFUSED);
    ok_status(hr, ND_SUCCESS);
}

static void check_private_data(struct link *link, const char *wanted, ULONG size)
{
    char data[256];
    ULONG got = sizeof(data);

    ok_status(CALL(link->connector, GetPrivateData, data, &got), ND_SUCCESS);
    ok_uint(got, >=, size);
    ok_mem(data, wanted, size);
}

/* Waits until so many in all have completed; receives may come before the own requests are told. */
struct progress {
    int sent, received;
};

static void until(struct link *link, struct progress *progress, int sends, int receives)
{
    while (progress->sent < sends || progress->received < receives) {
        ND2_RESULT result = result_next(link->cq);

        ok_status(result.Status, ND_SUCCESS);
        if (result.RequestType == Nd2RequestTypeReceive)
            progress->received++;
        else
            progress->sent++;
    }
}

static void exchange(struct link *link, bool active)
{
    struct interop_info mine, its;
    ND2_SGE block = sge_of(link, INTEROP_SINK, INTEROP_BLOCK);
    struct progress progress = { 0, 0 };

    mine.address = htobe64((UINT64)(uintptr_t)link->buffer);
    mine.token = CALL(link->mr, GetRemoteToken); /* in network byte order as it is */
    mine.size = htonl(INTEROP_BUFFER);
    interop_fill(link->buffer + INTEROP_SOURCE, INTEROP_BLOCK, active ? 'r' : 's');
    interop_fill(link->buffer + INTEROP_OUT, INTEROP_MESSAGE, active ? 'a' : 'p');
    memcpy(link->buffer + INTEROP_INFO_OUT, &mine, sizeof(mine));
    if (active)
        post_send(link, 1, INTEROP_OUT, INTEROP_MESSAGE, 0);
    until(link, &progress, 0, 1);
    ok(interop_same(link->buffer + INTEROP_IN, INTEROP_MESSAGE, active ? 'p' : 'a'));
    /* Both before the other side can send: siw does not wait for receives. */
    post_receive(link, 2, INTEROP_INFO_IN, sizeof(its));
    post_receive(link, 3, INTEROP_BYTE_IN, 1);
    if (active) {
        post_send(link, 2, INTEROP_INFO_OUT, sizeof(mine), 0);
        until(link, &progress, 2, 2);
    } else {
        post_send(link, 1, INTEROP_OUT, INTEROP_MESSAGE, 0);
        until(link, &progress, 1, 2);
        post_send(link, 2, INTEROP_INFO_OUT, sizeof(mine), 0);
        until(link, &progress, 2, 2);
    }
    memcpy(&its, link->buffer + INTEROP_INFO_IN, sizeof(its));
    ok_uint(ntohl(its.size), ==, INTEROP_BUFFER);
    ok_status(CALL(link->qp, Read, (void *)4, &block, 1, be64toh(its.address) + INTEROP_SOURCE, its.token, 0),
              ND_SUCCESS);
    until(link, &progress, 3, 2);
    ok(interop_same(link->buffer + INTEROP_SINK, INTEROP_BLOCK, active ? 's' : 'r'));
    ok_status(CALL(link->qp, Write, (void *)5, &block, 1, be64toh(its.address) + INTEROP_TARGET, its.token, 0),
              ND_SUCCESS);
    post_send(link, 6, INTEROP_OUT, 1, 0);
    until(link, &progress, 5, 3);
    ok(interop_same(link->buffer + INTEROP_TARGET, INTEROP_BLOCK, active ? 'r' : 's'));
}

static const struct shape shape = { .size = INTEROP_BUFFER, .reads = 2 };

static void against_raw_server(const char *queue_pair)
{
    const char *port = free_port();
    int pid = start_rawpeer("server", queue_pair, peer_address(), port, NULL);
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, &shape);
    post_receive(&link, 1, INTEROP_IN, INTEROP_MESSAGE);
    connect_to_foreign(&link, port, INTEROP_CALLER_DATA, sizeof(INTEROP_CALLER_DATA));
    check_private_data(&link, INTEROP_CALLEE_DATA, sizeof(INTEROP_CALLEE_DATA));
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    settle();
    exchange(&link, true);
    link_disconnect(&link);
    all_was_well(pid);
    link_drop(&link);
    host_close(&host);
}

static void against_raw_client(const char *queue_pair)
{
    const char *port = free_port();
    struct host host;
    struct link link;
    IND2Listener *listener;
    union endpoint address;
    int pid;

    host_open(&host);
    link_make(&link, &host, &shape);
    address = host.address;
    endpoint_set_port(&address, (USHORT)atoi(port));
    listener = listen_at(&host, &address, 0);
    pid = start_rawpeer("client", queue_pair, own_address(), port, NULL);
    post_receive(&link, 1, INTEROP_IN, INTEROP_MESSAGE);
    link_request(&link, listener);
    check_private_data(&link, INTEROP_CALLER_DATA, sizeof(INTEROP_CALLER_DATA));
    ok_status(FINISH(&link, CALL(link.connector, Accept, (IUnknown *)link.qp, 2, 2, INTEROP_CALLEE_DATA,
                                 sizeof(INTEROP_CALLEE_DATA), &link.ov)),
              ND_SUCCESS);
    exchange(&link, false);
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    all_was_well(pid);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

/* tests/lists: D8. */
ALONE(raw_server_attached)
{
    against_raw_server("attached");
}

ALONE(raw_server_external)
{
    against_raw_server("external");
}

ALONE(raw_client_attached)
{
    against_raw_client("attached");
}

ALONE(raw_client_external)
{
    against_raw_client("external");
}

/* ND_OP_FLAG_SEND_AND_SOLICIT_EVENT is in the message: rawpeer waits for solicited receives only, takes those that are not
 * without an event, and gets one for each that is. It answers each message. */
ALONE(solicited)
{
    const char *port = free_port();
    struct host host;
    struct link link;
    int pid;

    if (runner_iwarp())
        harness_skip("siw has no event for solicited receives only");
    pid = start_rawpeer("server", "solicited", peer_address(), port, NULL);
    host_open(&host);
    link_make(&link, &host, &shape);
    connect_to_foreign(&link, port, NULL, 0);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    for (uintptr_t i = 0; i < INTEROP_MESSAGES; i++) {
        struct progress progress = { 0, 0 };

        post_receive(&link, i, INTEROP_BYTE_IN, 1);
        post_send(&link, i, INTEROP_OUT, 1, interop_solicited(i) ? ND_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0);
        until(&link, &progress, 1, 1);
    }
    link_disconnect(&link);
    all_was_well(pid);
    link_drop(&link);
    host_close(&host);
}

/* What the other side's device refuses, and what comes of it here. */

static void end_with_foreign(struct link *link, int pid)
{
    struct host *host = link->host;

    link_disconnect(link);
    all_was_well(pid);
    result_none(link->cq);
    link_drop(link);
    host_close(host);
}

/* Its queue pair takes no remote access at all, so that the request as such is refused. */
static void no_access(bool read)
{
    const char *port = free_port();
    struct host host;
    struct link link;
    ND2_SGE sge;
    int pid;

    if (runner_iwarp())
        harness_skip("siw does not look at the queue pair's rights");
    pid = start_rawpeer("server", "no_access", peer_address(), port, NULL);
    host_open(&host);
    link_make(&link, &host, &shape);
    post_receive(&link, 1, INTEROP_BYTE_IN, 1);
    connect_to_foreign(&link, port, NULL, 0);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    sge = sge_of(&link, 0, 64);
    if (read)
        ok_status(CALL(link.qp, Read, (void *)2, &sge, 1, 4096, 1, 0), ND_SUCCESS);
    else
        ok_status(CALL(link.qp, Write, (void *)2, &sge, 1, 4096, 1, 0), ND_SUCCESS);
    ok_result(link.cq, read ? Nd2RequestTypeRead : Nd2RequestTypeWrite, ND_REMOTE_ERROR, 2);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    end_with_foreign(&link, pid);
}

ALONE(read_refused_by_the_queue_pair)
{
    no_access(true);
}

ALONE(write_refused_by_the_queue_pair)
{
    no_access(false);
}

/* It writes with immediate data, which takes a receive, to where it may not. */
ALONE(receive_of_a_refused_write)
{
    const char *port = free_port();
    struct host host;
    struct link link;
    int pid;

    if (runner_iwarp())
        harness_skip("siw has no immediate data");
    pid = start_rawpeer("server", "bad_immediate", peer_address(), port, NULL);
    host_open(&host);
    link_make(&link, &host, &shape);
    post_receive(&link, 1, INTEROP_BYTE_IN, 1);
    post_receive(&link, 2, INTEROP_BYTE_IN, 1);
    connect_to_foreign(&link, port, NULL, 0);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_ACCESS_VIOLATION, 1);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 2);
    end_with_foreign(&link, pid);
}

/* rping's protocol: the client says where its block is, the server reads it and says go; the client says where it wants
 * it, the server writes it there and says so. Every message is one struct interop_info. */

#define ROUNDS  5
#define ROUND   3000
#define MESSAGE sizeof(struct interop_info)

static bool rping_missing(void)
{
    return system("command -v rping >/dev/null") != 0;
}

/* "My block is there." */
static void say(struct link *link, SIZE_T offset)
{
    struct interop_info info = { htobe64((UINT64)(uintptr_t)link->buffer + offset), CALL(link->mr, GetRemoteToken),
                                 htonl(ROUND) };

    memcpy(link->buffer + INTEROP_INFO_OUT, &info, sizeof(info));
    post_send(link, 9, INTEROP_INFO_OUT, MESSAGE, 0);
}

ALONE(rping_client)
{
    const char *port = free_port(), *address = own_address();
    const char *argv[] = { "rping", "-c", "-a", address, "-p", port, "-C", "5", "-S", "3000", "-V", "-d", NULL };
    struct progress progress = { 0, 0 };
    struct interop_info its;
    struct host host;
    struct link link;
    IND2Listener *listener;
    union endpoint own;
    int pid;

    if (runner_iwarp())
        harness_skip("siw may never look at rping's first message, which rping sends at once");
    if (rping_missing())
        harness_skip("rping (rdmacm-utils) is not installed");
    host_open(&host);
    link_make(&link, &host, &(struct shape){ .size = INTEROP_BUFFER, .reads = 1 });
    own = host.address;
    endpoint_set_port(&own, (USHORT)atoi(port));
    listener = listen_at(&host, &own, 0);
    pid = runner_exec(argv);
    post_receive(&link, 1, INTEROP_INFO_IN, MESSAGE);
    link_accept(&link, listener);
    for (int step = 0; step < 2 * ROUNDS; step++) {
        ND2_SGE block = sge_of(&link, INTEROP_SINK, ROUND);

        until(&link, &progress, 2 * step, step + 1);
        memcpy(&its, link.buffer + INTEROP_INFO_IN, sizeof(its));
        post_receive(&link, 1, INTEROP_INFO_IN, MESSAGE);
        if (step % 2)
            ok_status(CALL(link.qp, Write, (void *)2, &block, 1, be64toh(its.address), its.token, 0), ND_SUCCESS);
        else
            ok_status(CALL(link.qp, Read, (void *)2, &block, 1, be64toh(its.address), its.token, 0), ND_SUCCESS);
        until(&link, &progress, 2 * step + 1, step + 1);
        say(&link, 0);
    }
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    all_was_well(pid);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

ALONE(rping_server)
{
    const char *port = free_port();
    const char *argv[] = { "rping", "-s", "-a", peer_address(), "-p", port, "-C", "5", "-S", "3000", "-d", NULL };
    struct progress progress = { 0, 0 };
    struct host host;
    struct link link;
    int pid;

    if (rping_missing())
        harness_skip("rping (rdmacm-utils) is not installed");
    pid = runner_exec(argv);
    host_open(&host);
    link_make(&link, &host, &(struct shape){ .size = INTEROP_BUFFER, .reads = 1 });
    connect_to_foreign(&link, port, NULL, 0);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    settle();
    for (int round = 0; round < ROUNDS; round++) {
        /* rping's server writes back as text what it read. */
        for (int i = 0; i < ROUND - 1; i++)
            link.buffer[INTEROP_SOURCE + i] = (BYTE)('A' + (i + round) % 50);
        link.buffer[INTEROP_SOURCE + ROUND - 1] = 0;
        memset(link.buffer + INTEROP_TARGET, 0, ROUND);
        for (int half = 0; half < 2; half++) {
            int step = 2 * round + half;

            post_receive(&link, 1, INTEROP_INFO_IN, MESSAGE);
            say(&link, half ? INTEROP_TARGET : INTEROP_SOURCE);
            until(&link, &progress, step + 1, step + 1);
        }
        ok_mem(link.buffer + INTEROP_TARGET, link.buffer + INTEROP_SOURCE, ROUND);
    }
    link_disconnect(&link);
    (void)runner_wait(pid); /* rping's server reports a disconnect in the middle of its wait as it likes */
    link_drop(&link);
    host_close(&host);
}

/* What the quick start does in the end: the example against itself, every byte compared (D73). */
ALONE(ping_pong_example)
{
    char path[PATH_MAX];
    const char *port = free_port(), *address = peer_address();
    const char *server[] = { path, "-s", "-b", address, "-p", port, NULL };
    int pid, status;

    runner_built("examples/ndpingpong", path, sizeof(path));
    if (access(path, X_OK) != 0)
        harness_skip("the examples are not built");
    pid = runner_exec(server);
    /* Until the server listens. */
    do
        status = runner_command("%s -c %s -b %s -p %s --write --port -n 20 -S 1K,64K -V", path, address, own_address(),
                                port);
    while (status != 0 && (Sleep(100), waitpid(pid, NULL, WNOHANG) == 0));
    ok_int(status, ==, 0);
    all_was_well(pid);
}

RUNNER_MAIN
