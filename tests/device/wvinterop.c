/* SPDX-License-Identifier: MIT */
/* WinVerbs against programs that know nothing of it, in both roles: rawpeer (plain librdmacm and libibverbs; its protocol is that
 * of interop.c), ucmatose and udaddy of rdmacm-utils.
 *
 * ucmatose: the server sends its messages, the client sends as many back, the server disconnects. udaddy: the client sends its
 * messages, each with its queue pair's number as immediate data, the server sends as many back. */
#include "wvside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "foreign.h"
#include "interop.h"

#define UDADDY_PORT "7174" /* it has no option for that */

#define COUNT 10 /* messages each way, and their size: the defaults of both programs */
#define SIZE  100

static void need_program(const char *name)
{
    if (runner_command("command -v %s >/dev/null", name) != 0)
        harness_skip("rdmacm-utils is not installed");
}

static union endpoint at_port(const char *address, const char *port)
{
    union endpoint to = endpoint_from(address);

    endpoint_set_port(&to, (USHORT)atoi(port));
    return to;
}

/* Until the foreign server listens: a refusal ends an endpoint. */
static void connect_to_foreign(struct wvlink *link, const char *port, const char *data)
{
    union endpoint to = at_port(peer_address(), port);
    WV_CONNECT_PARAM param = wv_param(link);
    HRESULT hr;

    if (data) {
        param.DataLength = strlen(data) + 1;
        memcpy(param.Data, data, param.DataLength);
    }
    for (;;) {
        wv_bind(link);
        hr = CALL(link->endpoint, Connect, link->qp, &to.any, &param, NULL);
        if (hr != WV_CONNECTION_REFUSED)
            break;
        release_last(link->endpoint);
        link->endpoint = wv_make_endpoint(link->host);
        Sleep(20);
    }
    ok_status(hr, WV_SUCCESS);
}

static void check_data(struct wvlink *link, const char *wanted, size_t size)
{
    WV_CONNECT_ATTRIBUTES at;

    ok_status(CALL(link->endpoint, Query, &at), WV_SUCCESS);
    ok_uint(at.Param.DataLength, ==, 56);
    ok_mem(at.Param.Data, wanted, min(size, (size_t)56)); /* what is longer is cut */
}

static IWVConnectEndpoint *listen_at_port(struct wvhost *host, const char *port)
{
    IWVConnectEndpoint *listener = wv_make_endpoint(host);
    union endpoint address = at_port(own_address(), port);

    ok_status(CALL(listener, BindAddress, &address.any), WV_SUCCESS);
    ok_status(CALL(listener, Listen, 1), WV_SUCCESS);
    return listener;
}

#define LAST 1000 /* identifier of the byte that ends the exchange with rawpeer */

/* Waits until so many in all have completed. */
struct progress {
    int sent, received;
};

static void until(struct wvlink *link, struct progress *progress, int sends, int receives)
{
    while (progress->sent < sends || progress->received < receives) {
        WV_COMPLETION completion = wv_next(link->cq);

        /* The peer may end once it has the last byte, and its device then acknowledges that no more. */
        if (completion.WrId != LAST || (completion.Opcode & WvReceive))
            ok_int(completion.Status, ==, WvWcSuccess);
        if (completion.Opcode & WvReceive)
            progress->received++;
        else
            progress->sent++;
    }
}

/* ---- rawpeer ---- */

static const struct wvshape raw_shape = { .size = INTEROP_BUFFER, .reads = 2 };

static void exchange(struct wvlink *link, bool active)
{
    struct interop_info mine, its;
    WV_SGE block = wv_sge(link, INTEROP_SINK, INTEROP_BLOCK);
    struct progress progress = { 0, 0 };

    mine.address = wv_net64((UINT64)(uintptr_t)link->buffer);
    mine.token = link->keys.Rkey; /* in network byte order as it is */
    mine.size = htonl(INTEROP_BUFFER);
    interop_fill(link->buffer + INTEROP_SOURCE, INTEROP_BLOCK, active ? 'r' : 's');
    interop_fill(link->buffer + INTEROP_OUT, INTEROP_MESSAGE, active ? 'a' : 'p');
    memcpy(link->buffer + INTEROP_INFO_OUT, &mine, sizeof(mine));
    if (active)
        wv_send(link, 1, INTEROP_OUT, INTEROP_MESSAGE, 0);
    until(link, &progress, 0, 1);
    ok(interop_same(link->buffer + INTEROP_IN, INTEROP_MESSAGE, active ? 'p' : 'a'));
    /* Both before the other side can send: siw does not wait for receives. */
    wv_receive(link, 2, INTEROP_INFO_IN, sizeof(its));
    wv_receive(link, 3, INTEROP_BYTE_IN, 1);
    if (active) {
        wv_send(link, 2, INTEROP_INFO_OUT, sizeof(mine), 0);
        until(link, &progress, 2, 2);
    } else {
        wv_send(link, 1, INTEROP_OUT, INTEROP_MESSAGE, 0);
        until(link, &progress, 1, 2);
        wv_send(link, 2, INTEROP_INFO_OUT, sizeof(mine), 0);
        until(link, &progress, 2, 2);
    }
    memcpy(&its, link->buffer + INTEROP_INFO_IN, sizeof(its));
    ok_uint(ntohl(its.size), ==, INTEROP_BUFFER);
    ok_status(CALL(link->qp, Read, 4, &block, 1, 0, wv_net64(wv_net64(its.address) + INTEROP_SOURCE), its.token),
              WV_SUCCESS);
    until(link, &progress, 3, 2);
    ok(interop_same(link->buffer + INTEROP_SINK, INTEROP_BLOCK, active ? 's' : 'r'));
    ok_status(CALL(link->qp, Write, 5, &block, 1, 0, 0, wv_net64(wv_net64(its.address) + INTEROP_TARGET), its.token),
              WV_SUCCESS);
    wv_send(link, LAST, INTEROP_OUT, 1, 0);
    until(link, &progress, 5, 3);
    ok(interop_same(link->buffer + INTEROP_TARGET, INTEROP_BLOCK, active ? 'r' : 's'));
}

static void against_raw_server(const char *queue_pair)
{
    const char *port = free_port();
    int pid = start_rawpeer("server", queue_pair, peer_address(), port, "56");
    struct wvhost host;
    struct wvlink link;

    wv_open(&host);
    wv_make(&link, &host, &raw_shape);
    wv_receive(&link, 1, INTEROP_IN, INTEROP_MESSAGE);
    connect_to_foreign(&link, port, INTEROP_CALLER_DATA);
    check_data(&link, INTEROP_CALLEE_DATA, sizeof(INTEROP_CALLEE_DATA));
    ok_status(wv_complete(&link), WV_SUCCESS);
    wv_settle();
    exchange(&link, true);
    ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
    all_was_well(pid);
    wv_drop(&link);
    wv_close(&host);
}

static void against_raw_client(const char *queue_pair)
{
    const char *port = free_port();
    IWVConnectEndpoint *listener;
    WV_CONNECT_PARAM answer;
    struct wvhost host;
    struct wvlink link;
    int pid;

    wv_open(&host);
    wv_make(&link, &host, &raw_shape);
    listener = listen_at_port(&host, port);
    pid = start_rawpeer("client", queue_pair, own_address(), port, "56");
    wv_receive(&link, 1, INTEROP_IN, INTEROP_MESSAGE);
    wv_request(&link, listener);
    check_data(&link, INTEROP_CALLER_DATA, sizeof(INTEROP_CALLER_DATA));
    answer = wv_param(&link);
    answer.DataLength = 56; /* the interface's most, as the program was told */
    memcpy(answer.Data, INTEROP_CALLEE_DATA, 56);
    ok_status(CALL(link.endpoint, Accept, link.qp, &answer, NULL), WV_SUCCESS);
    exchange(&link, false);
    ok_status(CALL(link.endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
    all_was_well(pid);
    release_last(listener);
    wv_drop(&link);
    wv_close(&host);
}

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

/* WV_SEND_SOLICITED is in the message, as interop.solicited has it of Network Direct. */
ALONE(solicited)
{
    const char *port = free_port();
    struct wvhost host;
    struct wvlink link;
    int pid;

    if (runner_iwarp())
        harness_skip("siw has no event for solicited receives only");
    pid = start_rawpeer("server", "solicited", peer_address(), port, NULL);
    wv_open(&host);
    wv_make(&link, &host, &raw_shape);
    connect_to_foreign(&link, port, NULL);
    ok_status(wv_complete(&link), WV_SUCCESS);
    for (UINT64 i = 0; i < INTEROP_MESSAGES; i++) {
        struct progress progress = { 0, 0 };

        wv_receive(&link, i, INTEROP_BYTE_IN, 1);
        wv_send(&link, i, INTEROP_OUT, 1, interop_solicited(i) ? WV_SEND_SOLICITED : 0);
        until(&link, &progress, 1, 1);
    }
    ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
    all_was_well(pid);
    wv_drop(&link);
    wv_close(&host);
}

/* ---- ucmatose ---- */

static const struct wvshape matose_shape = { .depth = COUNT + 2, .size = 2 * COUNT * SIZE };

static void receives(struct wvlink *link)
{
    for (UINT64 i = 0; i < COUNT; i++)
        wv_receive(link, i, i * SIZE, SIZE);
}

static void sends(struct wvlink *link)
{
    for (UINT64 i = 0; i < COUNT; i++)
        wv_send(link, i, (COUNT + i) * SIZE, SIZE, 0);
}

/* The server here. */
ALONE(ucmatose_client)
{
    const char *port = free_port(), *address = own_address();
    const char *argv[] = { "ucmatose", "-s", address, "-b", runner_env("NDVERBS_ADDR"), "-p", port, NULL };
    struct progress progress = { 0, 0 };
    IWVConnectEndpoint *listener;
    struct wvhost host;
    struct wvlink link;
    int pid;

    need_program("ucmatose");
    wv_open(&host);
    wv_make(&link, &host, &matose_shape);
    listener = listen_at_port(&host, port);
    pid = runner_exec(argv);
    receives(&link);
    wv_request(&link, listener);
    ok_status(wv_try_accept(&link), WV_SUCCESS);
    wv_settle();
    sends(&link);
    until(&link, &progress, COUNT, COUNT);
    ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
    all_was_well(pid);
    release_last(listener);
    wv_drop(&link);
    wv_close(&host);
}

/* The client here. */
ALONE(ucmatose_server)
{
    const char *port = free_port(), *address = peer_address();
    const char *argv[] = { "ucmatose", "-b", address, "-p", port, NULL };
    struct progress progress = { 0, 0 };
    struct wvhost host;
    struct wvlink link;
    int pid;

    if (runner_iwarp())
        harness_skip("siw takes what a server sends first for a part of its reply, and ucmatose's does");
    need_program("ucmatose");
    pid = runner_exec(argv);
    wv_open(&host);
    wv_make(&link, &host, &matose_shape);
    receives(&link);
    connect_to_foreign(&link, port, NULL);
    ok_status(wv_complete(&link), WV_SUCCESS);
    until(&link, &progress, 0, COUNT);
    sends(&link);
    until(&link, &progress, COUNT, COUNT);
    ok_status(CALL(link.endpoint, NotifyDisconnect, NULL), WV_SUCCESS);
    ok_status(CALL(link.endpoint, Disconnect, NULL), WV_SUCCESS);
    all_was_well(pid);
    wv_drop(&link);
    wv_close(&host);
}

/* ---- udaddy ---- */

static void need_datagrams(void)
{
    if (runner_iwarp())
        harness_skip("iWARP has no datagrams");
    need_program("udaddy");
}

ALONE(udaddy_client)
{
    const char *address = own_address();
    const char *argv[] = { "udaddy", "-s", address, "-b", runner_env("NDVERBS_ADDR"), NULL };
    union endpoint own = at_port(address, UDADDY_PORT);
    IWVDatagramEndpoint *listener, *request;
    WV_DATAGRAM_PARAM answer = { 0 };
    struct wvhost host;
    struct wvud ud;
    int pid;

    need_datagrams();
    wv_open(&host);
    wv_ud_make(&ud, &host, 2 * COUNT, SIZE);
    listener = wv_make_datagram(&host);
    request = wv_make_datagram(&host);
    ok_status(CALL(listener, BindAddress, &own.any), WV_SUCCESS);
    ok_status(CALL(listener, Listen, 1), WV_SUCCESS);
    pid = runner_exec(argv);
    ok_status(CALL(listener, GetRequest, request, NULL), WV_SUCCESS);
    answer.Qpn = ud.qpn;
    answer.Qkey = htonl(WV_CM_UDP_QKEY);
    ok_status(CALL(request, Accept, &answer, NULL), WV_SUCCESS);
    for (int i = 0; i < COUNT; i++) {
        WV_COMPLETION completion = wv_next(ud.cq);

        ok_int(completion.Status, ==, WvWcSuccess);
        ok_int(completion.Opcode, ==, WvReceive);
        ok_uint(completion.Length, ==, SIZE + WV_GRH);
        ok(completion.Flags & WV_WC_IMMEDIATE);
        ok_uint(completion.ImmediateData, ==, completion.SourceQpn);
        if (i == 0)
            wv_ud_back(&ud, &completion, completion.ImmediateData);
    }
    for (UINT64 i = 0; i < COUNT; i++) {
        wv_ud_send(&ud, i, WV_SEND_SIGNALED | WV_SEND_IMMEDIATE, ud.qpn);
        ok_completion(ud.cq, WvSend, WvWcSuccess, i);
    }
    all_was_well(pid);
    release_last(request);
    release_last(listener);
    wv_ud_drop(&ud);
    wv_close(&host);
}

ALONE(udaddy_server)
{
    const char *address = peer_address();
    const char *argv[] = { "udaddy", "-b", address, NULL };
    union endpoint to = at_port(address, UDADDY_PORT), local;
    WV_DATAGRAM_ATTRIBUTES at = { 0 };
    IWVDatagramEndpoint *d;
    struct wvhost host;
    struct wvud ud;
    HRESULT hr;
    int pid;

    need_datagrams();
    pid = runner_exec(argv);
    wv_open(&host);
    wv_ud_make(&ud, &host, 2 * COUNT, SIZE);
    d = wv_make_datagram(&host);
    local = host.address;
    ok_status(CALL(d, BindAddress, &local.any), WV_SUCCESS);
    while ((hr = CALL(d, Lookup, &to.any, NULL, 0, NULL)) == WV_CONNECTION_REFUSED)
        Sleep(20); /* until it listens */
    ok_status(hr, WV_SUCCESS);
    ok_status(CALL(d, Query, &at), WV_SUCCESS);
    wv_ud_to(&ud, &at.Param);
    for (UINT64 i = 0; i < COUNT; i++) {
        wv_ud_send(&ud, i, WV_SEND_SIGNALED | WV_SEND_IMMEDIATE, ud.qpn);
        ok_completion(ud.cq, WvSend, WvWcSuccess, i);
    }
    for (int i = 0; i < COUNT; i++) {
        WV_COMPLETION completion = wv_next(ud.cq);

        ok_int(completion.Status, ==, WvWcSuccess);
        ok_uint(completion.Length, ==, SIZE + WV_GRH);
    }
    all_was_well(pid);
    release_last(d);
    wv_ud_drop(&ud);
    wv_close(&host);
}

RUNNER_MAIN
