/* SPDX-License-Identifier: MIT */
/* Latency and bandwidth over WinVerbs: messages, RDMA writes or RDMA reads on a reliable connection, or datagrams (--ud).
 * Everything that touches the device is in this file and wvpingpong_ud.c, in the calls that it would make on Windows;
 * pingpong_run.c decides what is sent when. Its peer may as well be ndpingpong: the bytes on the wire are the same. */
#include "wvpingpong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "wvpingpong";

void __attribute__((noreturn)) wv_fail(const char *what, HRESULT hr)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s (0x%08X)\n", program, what, ndverbs_status_text(hr), (unsigned int)hr);
    exit(1);
}

void __attribute__((noreturn)) wv_refuse(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", program, what, why);
    exit(1);
}

/* Of calls that wait by themselves: success, or the end. */
void wv_check(const char *what, HRESULT hr)
{
    if (FAILED(hr))
        wv_fail(what, hr);
}

struct rc {
    struct pp_link link;
    struct pp_session session;
    struct wv_host *host;
    IWVCompletionQueue *cq;
    IWVConnectQueuePair *qp;
    IWVConnectEndpoint *endpoint;
    WV_MEMORY_KEYS keys;
    HANDLE port, event;
    OVERLAPPED ov;
    UINT32 inline_size;
};

static struct rc *rc_from_link(struct pp_link *link)
{
    return CONTAINING_RECORD(link, struct rc, link);
}

/* --- addresses, the device --- */

void wv_address_parse(struct wv_address *address, const char *text, USHORT port)
{
    INT length = sizeof(address->sock.Sin6);

    memset(address, 0, sizeof(*address));
    if (WSAStringToAddressA((LPSTR)text, AF_INET, NULL, &address->sock.Sa, &length) != 0) {
        length = sizeof(address->sock.Sin6);
        if (WSAStringToAddressA((LPSTR)text, AF_INET6, NULL, &address->sock.Sa, &length) != 0)
            wv_refuse(text, "no IPv4 or IPv6 address");
    }
    if (address->sock.Sa.sa_family == AF_INET)
        address->sock.Sin.sin_port = htons(port);
    else
        address->sock.Sin6.sin6_port = htons(port);
    snprintf(address->text, sizeof(address->text), "%s port %u", text, port);
}

/* The address given with -b, else the one towards the server: the route knows. */
static void local_address(struct wv_address *local, const struct pp_options *options)
{
    SIZE_T size = sizeof(local->sock);
    struct wv_address remote;

    if (options->bind) {
        wv_address_parse(local, options->bind, options->server ? options->port : 0);
        return;
    }
    if (options->server)
        wv_refuse("-b", "a server needs a local address");
    wv_address_parse(&remote, options->connect, options->port);
    memset(local, 0, sizeof(*local));
    wv_check("NdStartup", NdStartup());
    wv_check("finding the local address towards the server",
             NdResolveAddress(&remote.sock.Sa, remote.sock.Sa.sa_family == AF_INET ? 16 : 28, &local->sock.Sa, &size));
    NdCleanup();
    snprintf(local->text, sizeof(local->text), "the address towards %s", options->connect);
}

void wv_host_open(struct wv_host *host, const struct pp_options *options)
{
    memset(host, 0, sizeof(*host));
    local_address(&host->local, options);
    wv_check("WvGetObject", WvGetObject(&IID_IWVProvider, (void **)&host->provider));
    wv_check(host->local.text, CALL(host->provider, TranslateAddress, &host->local.sock.Sa, &host->where));
    wv_check("OpenDevice", CALL(host->provider, OpenDevice, host->where.DeviceGuid, &host->device));
    wv_check("IWVDevice::Query", CALL(host->device, Query, &host->attributes));
    wv_check("AllocateProtectionDomain", CALL(host->device, AllocateProtectionDomain, &host->pd));
}

void wv_host_close(struct wv_host *host)
{
    CALL(host->pd, Release);
    CALL(host->device, Release);
    CALL(host->provider, Release);
}

/* --- what a session needs --- */

static void rc_prepare(struct rc *rc, struct wv_host *host)
{
    struct pp_session *session = &rc->session;
    SIZE_T size = pp_memory_size(session), entries = PP_CQ_DEPTH(session), depth = PP_QUEUE_DEPTH(session);
    WV_QP_CREATE create = { 0 };

    rc->host = host;
    if (depth > host->attributes.MaxQpWr || entries > host->attributes.MaxCqEntries)
        wv_refuse("-q", "deeper than the device's queues");
    rc->inline_size = (UINT32)min((SIZE_T)session->inline_size, host->attributes.MaxInlineSend);
    rc->link.memory = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!rc->link.memory)
        wv_refuse("VirtualAlloc", "out of memory");
    /* On iWARP the data of a read arrives as a remote write. */
    wv_check("RegisterMemory", CALL(host->pd, RegisterMemory, rc->link.memory, size,
                                    WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE, NULL, &rc->keys));
    wv_check("CreateCompletionQueue", CALL(host->device, CreateCompletionQueue, &entries, &rc->cq));
    create.pSendCq = create.pReceiveCq = rc->cq;
    create.Context = rc;
    create.SendDepth = create.ReceiveDepth = depth;
    create.SendSge = create.ReceiveSge = 1;
    create.MaxInlineSend = rc->inline_size;
    create.QpType = WvQpTypeRc;
    create.QpFlags = WV_QP_SIGNAL_SENDS;
    wv_check("CreateConnectQueuePair", CALL(host->pd, CreateConnectQueuePair, &create, &rc->qp));
    if (session->wait == PP_PORT) {
        rc->port = CreateIoCompletionPort(CALL(host->provider, GetFileHandle), NULL, 0, 1);
        if (!rc->port)
            wv_refuse("CreateIoCompletionPort", "failed");
    } else {
        rc->event = CreateEvent(NULL, FALSE, FALSE, NULL);
        rc->ov.hEvent = rc->event;
    }
}

/* Receives may be posted from INIT on; Connect and Accept bring the queue pair there again, with the right rights. */
static void rc_to_init(struct rc *rc)
{
    WV_QP_ATTRIBUTES attributes = { 0 };

    attributes.QpState = WvQpStateInit;
    attributes.AddressVector.PortNumber = rc->host->where.PortNumber;
    wv_check("FindPkey",
             CALL(rc->host->device, FindPkey, rc->host->where.PortNumber, rc->host->where.Pkey, &attributes.PkeyIndex));
    wv_check("Modify", CALL(rc->qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL));
}

/* In any order: every object keeps what it stands on. */
static void rc_close(struct rc *rc)
{
    if (rc->endpoint)
        CALL(rc->endpoint, Release);
    if (!rc->qp)
        return;
    CALL(rc->qp, Release);
    CALL(rc->cq, Release);
    CALL(rc->host->pd, DeregisterMemory, rc->keys.Lkey, NULL);
    if (rc->event)
        CloseHandle(rc->event);
    if (rc->port)
        CloseHandle(rc->port);
    VirtualFree(rc->link.memory, 0, MEM_RELEASE);
}

/* --- the link: work requests and completions --- */

static WV_SGE rc_sge(const struct rc *rc, size_t offset, uint32_t length)
{
    WV_SGE sge = { .pAddress = rc->link.memory + offset, .Length = length, .Lkey = rc->keys.Lkey };

    return sge;
}

static DWORD rc_flags(const struct rc *rc, uint32_t length)
{
    return length && length <= rc->inline_size ? WV_SEND_INLINE : 0;
}

static void rc_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct rc *rc = rc_from_link(link);
    WV_SGE sge = rc_sge(rc, offset, length);

    wv_check("Send", CALL(rc->qp, Send, context, &sge, length != 0, rc_flags(rc, length), 0));
}

static void rc_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct rc *rc = rc_from_link(link);
    WV_SGE sge = rc_sge(rc, offset, length);

    wv_check("PostReceive", CALL(rc->qp, PostReceive, context, &sge, length != 0));
}

static NET64 net64(UINT64 value)
{
    return (NET64)htonl((UINT32)value) << 32 | htonl((UINT32)(value >> 32));
}

static void rc_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct rc *rc = rc_from_link(link);
    WV_SGE sge = rc_sge(rc, offset, length);

    wv_check("Write", CALL(rc->qp, Write, context, &sge, length != 0, rc_flags(rc, length), 0,
                           net64(rc->session.remote_address + remote), rc->session.remote_token));
}

static void rc_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct rc *rc = rc_from_link(link);
    WV_SGE sge = rc_sge(rc, offset, length);

    wv_check("Read", CALL(rc->qp, Read, context, &sge, length != 0, 0, net64(rc->session.remote_address + remote),
                          rc->session.remote_token));
}

static unsigned int rc_results(struct pp_link *link, struct pp_result *out, unsigned int n)
{
    struct rc *rc = rc_from_link(link);
    WV_COMPLETION completions[16];
    SIZE_T got = CALL(rc->cq, Poll, completions, min(n, 16u));

    for (SIZE_T i = 0; i < got; i++) {
        if (completions[i].Status == WvWcFlushed)
            wv_refuse("the connection is gone", "the peer has ended or disconnected");
        if (completions[i].Status != WvWcSuccess) {
            fprintf(stderr, "%s: completion status %d of opcode %d\n", program, completions[i].Status,
                    completions[i].Opcode);
            exit(1);
        }
        out[i].context = (uintptr_t)completions[i].WrId;
        out[i].bytes = completions[i].Length;
    }
    return (unsigned int)got;
}

/* Arms and waits. What came before the arming is announced, too. */
static void rc_wait(struct pp_link *link)
{
    struct rc *rc = rc_from_link(link);
    OVERLAPPED *done;
    ULONG_PTR key;
    DWORD bytes;
    HRESULT hr;

    if (rc->session.wait == PP_POLL)
        return;
    hr = CALL(rc->cq, Notify, WvCqNextCompletion, &rc->ov);
    if (hr == WV_IO_PENDING) {
        if (rc->session.wait == PP_EVENT)
            WaitForSingleObject(rc->event, INFINITE);
        else if (rc->session.wait == PP_PORT)
            GetQueuedCompletionStatus(rc->port, &bytes, &key, &done, INFINITE);
        hr = CALL(rc->cq, GetOverlappedResult, &rc->ov, &bytes, rc->session.wait == PP_RESULT);
    }
    wv_check("Notify", hr);
}

static void rc_yield(void)
{
    SwitchToThread();
}

static const struct pp_link_ops rc_ops = {
    .send = rc_send,
    .receive = rc_receive,
    .write = rc_write,
    .read = rc_read,
    .results = rc_results,
    .wait = rc_wait,
    .yield = rc_yield,
};

/* --- the two sides --- */

static void set_limits(const struct rc *rc, WV_CONNECT_PARAM *param)
{
    param->ResponderResources = min((SIZE_T)rc->session.depth, rc->host->attributes.MaxQpResponderResources);
    param->InitiatorDepth = min((SIZE_T)rc->session.depth, rc->host->attributes.MaxQpInitiatorDepth);
    param->RetryCount = 6;
    param->RnrRetryCount = 6;
}

static bool run_client(const struct pp_options *options)
{
    struct rc rc = { .link.ops = &rc_ops };
    struct pp_report report = { .options = options, .interface = "WinVerbs", .device = "" };
    struct wv_address remote;
    struct wv_host host;
    WV_CONNECT_PARAM param = { 0 }, none = { 0 };
    WV_CONNECT_ATTRIBUTES attributes;
    struct pp_hello hello;
    const char *why;
    bool right;

    wv_address_parse(&remote, options->connect, options->port);
    wv_host_open(&host, options);
    pp_session_from_options(&rc.session, options);
    rc_prepare(&rc, &host);
    rc_to_init(&rc);
    wv_check("CreateConnectEndpoint", CALL(host.provider, CreateConnectEndpoint, &rc.endpoint));
    wv_check(host.local.text, CALL(rc.endpoint, BindAddress, &host.local.sock.Sa));
    pp_hello_fill(&hello, &rc.session, rc.session.notify, (uintptr_t)rc.link.memory, rc.keys.Rkey);
    memcpy(param.Data, &hello, sizeof(hello));
    param.DataLength = sizeof(hello);
    set_limits(&rc, &param);
    wv_check(remote.text, CALL(rc.endpoint, Connect, rc.qp, &remote.sock.Sa, &param, NULL));
    wv_check("Query", CALL(rc.endpoint, Query, &attributes));
    why = pp_welcome_read(attributes.Param.Data, attributes.Param.DataLength, &rc.session);
    if (why)
        wv_refuse(remote.text, why);
    wv_check("Accept", CALL(rc.endpoint, Accept, NULL, &none, NULL));

    report.local = host.local.text;
    report.remote = remote.text;
    right = pp_client(&rc.link, &rc.session, options, &report);

    wv_check("Disconnect", CALL(rc.endpoint, Disconnect, NULL));
    rc_close(&rc);
    wv_host_close(&host);
    return right;
}

/* Takes one connection request and serves it. */
static bool serve(struct wv_host *host, IWVConnectEndpoint *listener)
{
    struct rc rc = { .link.ops = &rc_ops, .host = host };
    WV_CONNECT_ATTRIBUTES attributes;
    WV_CONNECT_PARAM param = { 0 };
    struct pp_welcome welcome;
    const char *why;
    bool right;

    wv_check("CreateConnectEndpoint", CALL(host->provider, CreateConnectEndpoint, &rc.endpoint));
    wv_check("GetRequest", CALL(listener, GetRequest, rc.endpoint, NULL));
    wv_check("Query", CALL(rc.endpoint, Query, &attributes));
    why = pp_hello_read(attributes.Param.Data, attributes.Param.DataLength, &rc.session);
    if (why) {
        fprintf(stderr, "%s: a client was turned away: %s\n", program, why);
        CALL(rc.endpoint, Reject, NULL, 0);
        rc_close(&rc);
        return false;
    }
    printf("a client: %s, %s, depth %u, up to %u bytes%s\n", pp_op_name(rc.session.op), pp_wait_name(rc.session.wait),
           rc.session.depth, rc.session.max_size, rc.session.verify ? ", every byte verified" : "");
    fflush(stdout);

    rc_prepare(&rc, host);
    rc_to_init(&rc);
    pp_server_prepare(&rc.link);
    pp_welcome_fill(&welcome, false, (uintptr_t)rc.link.memory, rc.keys.Rkey);
    memcpy(param.Data, &welcome, sizeof(welcome));
    param.DataLength = sizeof(welcome);
    set_limits(&rc, &param);
    wv_check("Accept", CALL(rc.endpoint, Accept, rc.qp, &param, NULL));
    right = pp_server(&rc.link, &rc.session);

    /* The client disconnects when it is done, and waits for our part of it. */
    wv_check("NotifyDisconnect", CALL(rc.endpoint, NotifyDisconnect, NULL));
    wv_check("Disconnect", CALL(rc.endpoint, Disconnect, NULL));
    if (rc.session.verify && rc.session.op != PP_READ)
        printf("%llu bytes verified here%s\n", (unsigned long long)rc.session.verified,
               right ? "" : ": NOT all as sent");
    fflush(stdout);
    rc_close(&rc);
    return right;
}

static bool run_server(const struct pp_options *options)
{
    IWVConnectEndpoint *listener;
    struct wv_host host;
    bool right = true;

    wv_host_open(&host, options);
    wv_check("CreateConnectEndpoint", CALL(host.provider, CreateConnectEndpoint, &listener));
    wv_check(host.local.text, CALL(listener, BindAddress, &host.local.sock.Sa));
    wv_check("Listen", CALL(listener, Listen, 16));
    printf("listening on %s\n", host.local.text);
    fflush(stdout);
    do {
        right = serve(&host, listener) && right;
    } while (options->keep);
    CALL(listener, Release);
    wv_host_close(&host);
    return right;
}

int main(int argc, char **argv)
{
    struct pp_options options;
    WSADATA data;
    bool ud = false, right;
    int left = 1;

    /* The one option that the other ping-pongs do not have. */
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--ud") == 0)
            ud = true;
        else
            argv[left++] = argv[i];
    }
    argv[left] = NULL;
    pp_options_parse(&options, program, true, left, argv);
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
        wv_refuse("WSAStartup", "failed");
    if (ud)
        right = wv_run_ud(&options);
    else
        right = options.server ? run_server(&options) : run_client(&options);
    WSACleanup();
    return right ? 0 : 1;
}
