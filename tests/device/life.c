/* SPDX-License-Identifier: MIT */
/* Life and end of objects and processes: odd orders, exits, many cycles, doing nothing. ndspi.md 3, demand.md. */
#include "holdings.h"
#include "session.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A connected pair with everything pending, released in some order: each last Release gives 0, every request has
 * completed when its object is gone. */

enum part {
    PART_CQ,
    PART_QP,
    PART_CONNECTOR,
    PART_MR,
    PART_ADAPTER,
    PART_FILE,
    PARTS
};

static const enum part orders[][PARTS] = {
    { PART_MR, PART_CQ, PART_QP, PART_CONNECTOR, PART_FILE, PART_ADAPTER }, /* the samples' */
    { PART_ADAPTER, PART_FILE, PART_CQ, PART_MR, PART_QP, PART_CONNECTOR },
    { PART_ADAPTER, PART_CONNECTOR, PART_QP, PART_CQ, PART_MR, PART_FILE },
    { PART_FILE, PART_QP, PART_CQ, PART_CONNECTOR, PART_MR, PART_ADAPTER },
    { PART_CQ, PART_ADAPTER, PART_CONNECTOR, PART_FILE, PART_MR, PART_QP },
    { PART_CONNECTOR, PART_MR, PART_ADAPTER, PART_QP, PART_FILE, PART_CQ },
    { PART_QP, PART_CONNECTOR, PART_CQ, PART_MR, PART_FILE, PART_ADAPTER },
    { PART_MR, PART_ADAPTER, PART_QP, PART_FILE, PART_CONNECTOR, PART_CQ },
};

static void drop_in_order(const enum part *order, struct host *host, struct link *link, OVERLAPPED *notify)
{
    for (int i = 0; i < PARTS; i++)
        switch (order[i]) {
        case PART_CQ:
            release_last(link->cq);
            ok_internal(notify, ND_CANCELED);
            break;
        case PART_QP:
            release_last(link->qp);
            break;
        case PART_CONNECTOR:
            release_last(link->connector);
            ok_uint(link->ov.Internal, !=, ND_PENDING);
            break;
        case PART_MR:
            release_last(link->mr);
            break;
        case PART_ADAPTER:
            release_last(host->adapter);
            break;
        default:
            ok(CloseHandle(host->file));
            break;
        }
    free(link->buffer);
    ok(CloseHandle(link->event));
    ok_status(NdCleanup(), S_OK);
}

/* tests/lists: A41, D18, D57. */
ALONE(release_orders)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct link links[2];
        OVERLAPPED notify[2];
        struct host hosts[2];
        IND2Listener *listener;
        union endpoint to;

        for (int side = 0; side < 2; side++) {
            host_open(&hosts[side]);
            link_make(&links[side], &hosts[side], NULL);
            post_receive(&links[side], 1, 0, 64);
            overlapped_rubbish(&notify[side], NULL);
        }
        listener = listen_any(&hosts[1]);
        to = listener_endpoint(listener);
        self_connect(&links[0], &links[1], listener, &to);
        release_last(listener);
        for (int side = 0; side < 2; side++) {
            ok_status(CALL(links[side].cq, Notify, ND_CQ_NOTIFY_ERRORS, &notify[side]), ND_PENDING);
            ok_status(CALL(links[side].connector, NotifyDisconnect, &links[side].ov), ND_PENDING);
        }
        drop_in_order(orders[i], &hosts[0], &links[0], &notify[0]);
        drop_in_order(orders[(i + 3) % (sizeof(orders) / sizeof(orders[0]))], &hosts[1], &links[1], &notify[1]);
    }
}

/* NdCleanup, any number of times, with everything open: what is open stays usable, and a later NdStartup finds all in order. */
ALONE(cleanup_with_live_objects)
{
    struct link active, passive, later;
    IND2Listener *listener;
    struct host host, again;
    union endpoint to;

    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    ok_status(NdCleanup(), S_OK);
    NdFlushProviders();
    self_connect(&active, &passive, listener, &to);
    ok_status(CALL(passive.connector, NotifyDisconnect, &passive.ov), ND_PENDING);
    for (int i = 0; i < 3; i++) {
        post_receive(&passive, 1, 0, 64);
        if (runner_iwarp())
            Sleep(100); /* runner_settle of one process with itself */
        post_send(&active, 2, 64, 64, 0);
        ok_result(active.cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
        ok_result(passive.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        ok_status(NdStartup(), S_OK);
        ok_status(NdCleanup(), S_OK);
    }
    host_open(&again);
    link_make(&later, &again, NULL);
    link_drop(&later);
    link_disconnect(&active);
    ok_status(finish(passive.connector, ND_PENDING, &passive.ov), ND_SUCCESS);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
    host_close(&host);
    ok(CloseHandle(again.file));
    release_last(again.adapter);
    ok_status(NdCleanup(), ND_DEVICE_NOT_READY);
}

/* A region whose last reference goes while a queue pair has it posted: the device no longer touches the memory. */

SERVER(region_released_while_posted)
{
    struct session session;

    session_begin(&session, NULL);
    post_receive(&session.link, 1, 0, 64);
    post_receive(&session.link, 2, 64, 64);
    release_last(session.link.mr);
    session.link.mr = NULL;
    memset(session.link.buffer, 0x42, 4096);
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_CANCELED, 2);
    runner_sync();
    runner_sync();
    for (int i = 0; i < 4096; i++)
        ok_int(session.link.buffer[i], ==, 0x42);
    session_drop(&session);
}

CLIENT(region_released_while_posted)
{
    struct session session;
    ND2_SGE sge;
    HRESULT hr;

    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    session_begin(&session, NULL);
    runner_sync();
    sge = sge_of(&session.link, 0, 64);
    hr = CALL(session.link.qp, Send, (void *)1, &sge, 1, 0);
    ok_status(hr, ND_SUCCESS);
    hr = result_next(session.link.cq).Status; /* how depends on who is told first */
    if (!runner_iwarp())
        ok(FAILED(hr));
    runner_sync();
    session_drop(&session);
}

/* A process ends with everything open and pending, by return and by _exit; the peer learns it, the exit does not hang. */

PART(ends_with_live_objects)
{
    static struct session session; /* found by the leak checker when main has returned */
    HANDLE event = event_auto();
    OVERLAPPED notify;
    char how;

    session_begin(&session, NULL);
    overlapped_rubbish(&notify, event);
    for (uintptr_t i = 0; i < 4; i++)
        post_receive(&session.link, i, 0, 64);
    ok_status(CALL(session.link.cq, Notify, ND_CQ_NOTIFY_ANY, &notify), ND_PENDING);
    ok_status(CALL(session.link.connector, NotifyDisconnect, &session.link.ov), ND_PENDING);
    runner_sync();
    runner_get(&how, 1);
    if (how == 'e')
        exit(7);
    if (how == '_')
        _exit(7);
}

static void peer_ends(char how, int status)
{
    int channel, pid = runner_spawn("ends_with_live_objects", ROLE_SERVER, &channel);
    struct session session;
    struct link *link = &session.link;
    int ended;

    session_beside(&session, channel, NULL);
    post_receive(link, 9, 0, 64);
    runner_put_to(channel, &how, 1);
    ended = runner_wait(pid);
    ok(WIFEXITED(ended));
    ok_int(WEXITSTATUS(ended), ==, status);
    /* The kernel disconnects for it. */
    ok_status(FINISH(link, CALL(link->connector, NotifyDisconnect, &link->ov)), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 9);
    session_drop(&session);
}

ALONE(peer_returns_from_main)
{
    peer_ends('r', 0);
}

ALONE(peer_calls_exit)
{
    peer_ends('e', 7);
}

ALONE(peer_calls__exit)
{
    peer_ends('_', 7);
}

/* In a forked child the library is dead, and the parent's objects are not hurt. */
ALONE(forked_child)
{
    struct host host;
    struct link link;
    int status;
    pid_t pid;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    pid = fork();
    ok_int(pid, >=, 0);
    if (pid == 0) {
        ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
        ULONG size = sizeof(info);
        OVERLAPPED ov = { 0 };

        ok_status(CALL(host.adapter, Query, &info, &size), ND_DEVICE_REMOVED);
        ok_status(CALL(link.qp, Receive, NULL, NULL, 0), ND_DEVICE_REMOVED);
        ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_DEVICE_REMOVED);
        ok_int(CALL(link.qp, Release), ==, 0);
        ok_int(CALL(link.cq, Release), ==, 0);
        ok_int(CALL(host.adapter, Release), ==, 0);
        _exit(33);
    }
    status = runner_wait(pid);
    ok(WIFEXITED(status));
    ok_int(WEXITSTATUS(status), ==, 33);
    ok_pending(link.cq, &link.ov);
    ok_status(CALL(link.qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link.qp, Flush), ND_SUCCESS);
    ok_status(finish(link.cq, ND_PENDING, &link.ov), ND_SUCCESS);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    link_drop(&link);
    host_close(&host);
}

/* Connect, use, disconnect, release, again and again: descriptors, memory, the kernel's objects and threads as before. */

#define WARM_UP 5
#define SLACK   1024 /* of memory: seen are 0, and 16 bytes (32 of the heap) for each of 95 cycles are more */

static void reconnect(int cycles)
{
    struct holdings before = { 0 };
    unsigned long threads = 0;
    ULONGLONG start = 0;
    IND2Listener *listener = NULL;
    union endpoint to;
    struct host host;
    struct link link;

    host_open(&host);
    if (runner_role() == ROLE_SERVER)
        listener = listen_any(&host);
    else
        to = listener_of_peer();
    for (int i = 0; i < cycles; i++) {
        if (i == WARM_UP) {
            start = GetTickCount64();
            threads = process_status("Threads");
            runner_sync(); /* what both sides hold between two cycles */
            Sleep(200);    /* lets workers finish what the first cycles left, so that the count is not too high */
            before = holdings_now();
            runner_sync();
        }
        link_make(&link, &host, NULL);
        post_receive(&link, 1, 0, 64);
        if (runner_role() == ROLE_SERVER) {
            link_accept(&link, listener);
            runner_settle();
            ok_result(link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
            post_send(&link, 2, 0, 64, 0);
            ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
            runner_settle();
            ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
            if (i % 2)
                link_disconnect(&link);
        } else {
            link_connect(&link, &to);
            runner_settle();
            post_send(&link, 1, 0, 64, 0);
            for (int n = 0; n < 2; n++) {
                /* The answer may overtake the acknowledgement. */
                ND2_RESULT result = result_next(link.cq);

                ok_status(result.Status, ND_SUCCESS);
                ok_uint((uintptr_t)result.RequestContext, ==, 1);
            }
            runner_settle();
            link_disconnect(&link);
        }
        link_drop(&link);
        runner_sync();
    }
    if (runner_role() == ROLE_CLIENT)
        runner_note("%d cycles, %.1f ms each", cycles, (double)(GetTickCount64() - start) / (cycles - WARM_UP));
    holdings_back_at(&before, SLACK);
    ok_uint(process_status("Threads"), <=, threads + 1);
    runner_sync();
    if (listener)
        release_last(listener);
    host_close(&host);
}

/* tests/lists: D32. */
SERVER(reconnect_100)
{
    reconnect(100);
}

CLIENT(reconnect_100)
{
    reconnect(100);
}

/* tests/lists: D74. */
LONG_SERVER(reconnect_10000)
{
    reconnect(10000);
}

LONG_CLIENT(reconnect_10000)
{
    reconnect(10000);
}

/* Adapters opened and closed, and refused connections: nothing stays (D59). */
ALONE(adapters_and_refusals_leave_nothing)
{
    int descriptors = 0;

    for (int i = 0; i < 16; i++) {
        IND2Listener *listener;
        union endpoint to;
        struct host host;
        struct link link;

        if (i == 5)
            descriptors = open_descriptors();
        host_open(&host);
        link_make(&link, &host, NULL);
        listener = listen_any(&host);
        to = listener_endpoint(listener);
        release_last(listener);
        listener_gone(&to);
        link_bind(&link);
        ok_status(link_try_connect(&link, &to), ND_CONNECTION_REFUSED);
        link_drop(&link);
        host_close(&host);
    }
    ok_eventually(open_descriptors() <= descriptors);
}

/* Attempts that fail in each way, one after the other with one connector and queue pair, which then connect. */

static HRESULT try_again(struct link *link, const union endpoint *to)
{
    HRESULT hr;

    /* On iWARP the queue pair is busy until the kernel's call has come back. */
    while ((hr = link_try_connect(link, to)) == ND_CONNECTION_ACTIVE && runner_iwarp())
        Sleep(10);
    return hr;
}

static void fail_and_connect(struct host *host)
{
    union endpoint nowhere = endpoint_from("203.0.113.9"), to;
    struct link active, passive;
    IND2Listener *listener;

    link_make(&active, host, NULL);
    link_make(&passive, host, NULL);
    listener = listen_at(host, &host->address, 0);
    to = listener_endpoint(listener);
    release_last(listener);
    listener_gone(&to);
    link_bind(&active);
    ok_status(link_try_connect(&active, &to), ND_CONNECTION_REFUSED);
    endpoint_set_port(&nowhere, 4711);
    ok_status(try_again(&active, &nowhere), ND_NETWORK_UNREACHABLE);
    /* Nobody takes the request before the time is over. */
    listener = listen_at(host, &to, 0);
    ok_status(try_again(&active, &to), ND_IO_TIMEOUT);
    release_last(listener);
    listener_gone(&to);
    result_none(active.cq);
    ok_status(try_again(&active, &to), ND_CONNECTION_REFUSED);

    listener = listen_at(host, &to, 0);
    self_meet(&active, &passive, listener, &to);
    post_receive(&passive, 1, 0, 64);
    if (runner_iwarp())
        Sleep(100); /* runner_settle of one process with itself */
    post_send(&active, 2, 64, 64, 0);
    ok_result(active.cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    ok_result(passive.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
}

#define ROUNDS 5

/* tests/lists: D59. */
ALONE(failed_attempts_leave_nothing)
{
    struct holdings before = { 0 };
    struct host host;

    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "3000", 1); /* for the others far too much, and for one a round not too long */
    host_open(&host);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (i == ROUNDS) {
            Sleep(200); /* as above */
            before = holdings_now();
        }
        fail_and_connect(&host);
    }
    holdings_back_at(&before, SLACK);
    host_close(&host);
}

/* Many connections dropped at once. */

#define DROPPED 100

static void drop_many(void)
{
    struct shape shape = { .depth = 2 };
    struct link links[DROPPED];
    IND2Listener *listener = NULL;
    union endpoint to;
    struct host host;

    host_open(&host);
    if (runner_role() == ROLE_SERVER)
        listener = listen_any(&host);
    else
        to = listener_of_peer();
    for (int i = 0; i < DROPPED; i++) {
        link_make(&links[i], &host, &shape);
        post_receive(&links[i], 1, 0, 64);
        if (listener)
            link_accept(&links[i], listener);
        else
            link_connect(&links[i], &to);
    }
    runner_sync();
    if (runner_role() == ROLE_CLIENT)
        for (int i = 0; i < DROPPED; i++)
            link_drop(&links[i]);
    else
        for (int i = 0; i < DROPPED; i++) {
            ok_status(FINISH(&links[i], CALL(links[i].connector, NotifyDisconnect, &links[i].ov)), ND_SUCCESS);
            ok_result(links[i].cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
            link_drop(&links[i]);
        }
    runner_sync();
    if (listener)
        release_last(listener);
    host_close(&host);
}

/* tests/lists: D61. */
SERVER(many_dropped_at_once)
{
    drop_many();
}

CLIENT(many_dropped_at_once)
{
    drop_many();
}

/* The last references go on the thread that took the packet. */

struct reaper {
    HANDLE port;
    struct link *link;
};

static DWORD WINAPI reap(void *argument)
{
    struct reaper *reaper = argument;
    OVERLAPPED *out;
    ULONG_PTR key;
    DWORD bytes;

    ok(GetQueuedCompletionStatus(reaper->port, &bytes, &key, &out, INFINITE));
    ok_ptr(out, ==, &reaper->link->ov);
    release_last(reaper->link->connector);
    release_last(reaper->link->qp);
    release_last(reaper->link->cq);
    release_last(reaper->link->mr);
    reaper->link->connector = NULL;
    reaper->link->qp = NULL;
    reaper->link->cq = NULL;
    reaper->link->mr = NULL;
    return 0;
}

/* tests/lists: D60. */
ALONE(released_on_the_port_thread)
{
    struct link active, passive;
    IND2Listener *listener;
    struct host host, other;
    struct reaper reaper;
    union endpoint to;
    HANDLE thread;

    host_open(&host);
    host_open(&other);
    link_make(&active, &host, NULL);
    link_make(&passive, &other, NULL);
    listener = listen_any(&other);
    to = listener_endpoint(listener);
    self_connect(&active, &passive, listener, &to);
    post_receive(&active, 1, 0, 64);
    reaper.port = CreateIoCompletionPort(host.file, NULL, 0, 0);
    reaper.link = &active;
    ok_status(CALL(active.connector, NotifyDisconnect, &active.ov), ND_PENDING);
    thread = CreateThread(NULL, 0, reap, &reaper, 0, NULL);
    link_disconnect(&passive);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok(CloseHandle(reaper.port));
    link_drop(&active);
    link_drop(&passive);
    release_last(listener);
    host_close(&other);
    host_close(&host);
}

/* Connected, Notify and NotifyDisconnect pending, nothing to do for 10 s: no thread wakes up, no processor time. */

static unsigned long voluntary_switches(void)
{
    DIR *directory = opendir("/proc/self/task");
    unsigned long sum = 0;
    struct dirent *entry;

    ok(directory != NULL);
    while ((entry = readdir(directory))) {
        char path[300], line[200];
        FILE *file;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof(line), file))
            if (!strncmp(line, "voluntary_ctxt_switches:", 24))
                sum += strtoul(line + 24, NULL, 10);
        if (file)
            fclose(file);
    }
    closedir(directory);
    return sum;
}

static double processor_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void idle(void)
{
    struct session session;
    struct link *link = &session.link;
    HANDLE event = event_auto();
    unsigned long switches;
    OVERLAPPED gone;
    double used;

    session_begin(&session, NULL);
    overlapped_rubbish(&gone, event);
    post_receive(link, 1, 0, 64);
    ok_status(CALL(link->cq, Notify, ND_CQ_NOTIFY_ANY, &link->ov), ND_PENDING);
    ok_status(CALL(link->connector, NotifyDisconnect, &gone), ND_PENDING);
    runner_sync();
    Sleep(1000); /* whatever connecting left to do is done */
    switches = voluntary_switches();
    used = processor_seconds();
    Sleep(10000);
    used = processor_seconds() - used;
    switches = voluntary_switches() - switches;
    runner_note("%lu wake-ups of the library's threads and %.0f ms of processor time in 10 s", switches, used * 1e3);
    ok_uint(switches, ==, 0);
    runner_sync();
    if (runner_role() == ROLE_CLIENT)
        link_disconnect(link);
    ok_status(finish(link->connector, ND_PENDING, &gone), ND_SUCCESS);
    ok(CloseHandle(event));
    session_drop(&session);
}

/* tests/lists: D54. */
SERVER(idle_10_seconds)
{
    idle();
}

CLIENT(idle_10_seconds)
{
    idle();
}

RUNNER_MAIN_EXACT
