/* SPDX-License-Identifier: MIT */
/* Latency and bandwidth between two Network Direct adapters: messages, RDMA writes or RDMA reads; by polling, by an event
 * or by a completion port. Everything that touches the adapter is in this file, and for --v1 in ndpingpong_v1.c, in the
 * calls that it would make on Windows; pingpong_run.c decides what is sent when. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

#include "pingpong.h"
#include "pingpong_nd.h"

struct nd {
    struct pp_link link;
    struct pp_session session;
    struct address local, remote;
    IND2Adapter *adapter;
    ND2_ADAPTER_INFO info;
    HANDLE file, port;
    HANDLE event;
    OVERLAPPED ov; /* of every call that is waited for at once */
    IND2MemoryRegion *mr;
    IND2CompletionQueue *cq;
    HANDLE cq_event;
    OVERLAPPED cq_ov;
    IND2QueuePair *qp;
    IND2Connector *connector;
    ULONG inline_size;
    UINT32 token;
};

static struct nd *nd_from_link(struct pp_link *link)
{
    return CONTAINING_RECORD(link, struct nd, link);
}

/* --- overlapped calls --- */

/* Waits for the outcome of a call that was given nd->ov. */
#define FINISH(nd, object, call) nd_finish(nd, (IND2Overlapped *)(object), (call))
static HRESULT nd_finish(struct nd *nd, IND2Overlapped *object, HRESULT status)
{
    if (status == ND_PENDING)
        status = object->lpVtbl->GetOverlappedResult(object, &nd->ov, TRUE);
    return status;
}

/* --- the adapter and its objects --- */

static void nd_open(struct nd *nd)
{
    ULONG size = sizeof(nd->info);

    check(nd->local.text, NdOpenAdapter(&IID_IND2Adapter, &nd->local.any, nd->local.length, (void **)&nd->adapter));
    nd->info.InfoVersion = ND_VERSION_2;
    check("Query", nd->adapter->lpVtbl->Query(nd->adapter, &nd->info, &size));
    check("CreateOverlappedFile", nd->adapter->lpVtbl->CreateOverlappedFile(nd->adapter, &nd->file));
    nd->event = CreateEvent(NULL, FALSE, FALSE, NULL);
    nd->cq_event = CreateEvent(NULL, FALSE, FALSE, NULL);
    if (!nd->event || !nd->cq_event)
        refuse("CreateEvent", "no more handles");
    /* The low bit: connections and registrations set the event and queue no packet, whatever the file is bound to. */
    nd->ov.hEvent = (HANDLE)((ULONG_PTR)nd->event | 1);
}

/* What a session needs, once it is known what the session is. */
static void nd_prepare(struct nd *nd)
{
    struct pp_session *session = &nd->session;
    SIZE_T size = pp_memory_size(session);
    ULONG depth = PP_QUEUE_DEPTH(session);
    char text[160];

    if (depth > nd->info.MaxReceiveQueueDepth || depth > nd->info.MaxInitiatorQueueDepth ||
        PP_CQ_DEPTH(session) > nd->info.MaxCompletionQueueDepth)
        refuse("-q", "deeper than the adapter's queues");
    if (session->max_size > nd->info.MaxTransferLength)
        refuse("-S", "longer than one request may be on this adapter");
    nd->inline_size = min(session->inline_size, nd->info.MaxInlineDataSize);

    nd->link.memory = VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!nd->link.memory)
        refuse("VirtualAlloc", "out of memory");
    check("CreateMemoryRegion",
          nd->adapter->lpVtbl->CreateMemoryRegion(nd->adapter, &IID_IND2MemoryRegion, nd->file, (void **)&nd->mr));
    snprintf(text, sizeof(text), "registering %zu bytes", size);
    check(text, FINISH(nd, nd->mr,
                       nd->mr->lpVtbl->Register(nd->mr, nd->link.memory, size,
                                                ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                                                    ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK,
                                                &nd->ov)));
    nd->token = nd->mr->lpVtbl->GetLocalToken(nd->mr);
    check("CreateCompletionQueue",
          nd->adapter->lpVtbl->CreateCompletionQueue(nd->adapter, &IID_IND2CompletionQueue, nd->file,
                                                     PP_CQ_DEPTH(session), 0, 0, (void **)&nd->cq));
    check("CreateQueuePair",
          nd->adapter->lpVtbl->CreateQueuePair(nd->adapter, &IID_IND2QueuePair, (IUnknown *)nd->cq, (IUnknown *)nd->cq,
                                               nd, depth, depth, 1, 1, nd->inline_size, (void **)&nd->qp));
    if (session->wait == PP_PORT) {
        nd->port = CreateIoCompletionPort(nd->file, NULL, 0, 1);
        if (!nd->port)
            refuse("CreateIoCompletionPort", "failed");
    } else {
        nd->cq_ov.hEvent = nd->cq_event;
    }
}

static bool nd_needs_notify(const struct nd *nd)
{
    return !(nd->info.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED);
}

static void nd_release(void *object)
{
    IUnknown *unknown = object;

    if (unknown)
        unknown->lpVtbl->Release(unknown);
}

/* In any order: every object keeps what it stands on. */
static void nd_close_session(struct nd *nd)
{
    nd_release(nd->connector);
    nd_release(nd->qp);
    nd_release(nd->cq);
    if (nd->mr)
        FINISH(nd, nd->mr, nd->mr->lpVtbl->Deregister(nd->mr, &nd->ov));
    nd_release(nd->mr);
    if (nd->port)
        CloseHandle(nd->port);
    if (nd->link.memory)
        VirtualFree(nd->link.memory, 0, MEM_RELEASE);
}

static void nd_close(struct nd *nd)
{
    nd_release(nd->adapter);
    CloseHandle(nd->file);
    CloseHandle(nd->event);
    CloseHandle(nd->cq_event);
}

/* --- the link: work requests and completions --- */

static ULONG nd_sge(const struct nd *nd, ND2_SGE *sge, size_t offset, uint32_t length)
{
    sge->Buffer = nd->link.memory + offset;
    sge->BufferLength = length;
    sge->MemoryRegionToken = nd->token;
    return length ? 1 : 0;
}

static ULONG nd_flags(const struct nd *nd, uint32_t length)
{
    return length && length <= nd->inline_size ? ND_OP_FLAG_INLINE : 0;
}

static void nd_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct nd *nd = nd_from_link(link);
    ND2_SGE sge;
    ULONG n = nd_sge(nd, &sge, offset, length);
    HRESULT status = nd->qp->lpVtbl->Send(nd->qp, (void *)context, &sge, n, nd_flags(nd, length));

    if (status != ND_SUCCESS)
        fail("Send", status);
}

static void nd_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct nd *nd = nd_from_link(link);
    ND2_SGE sge;
    ULONG n = nd_sge(nd, &sge, offset, length);
    HRESULT status = nd->qp->lpVtbl->Receive(nd->qp, (void *)context, &sge, n);

    if (status != ND_SUCCESS)
        fail("Receive", status);
}

static void nd_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct nd *nd = nd_from_link(link);
    ND2_SGE sge;
    ULONG n = nd_sge(nd, &sge, offset, length);
    HRESULT status = nd->qp->lpVtbl->Write(nd->qp, (void *)context, &sge, n, nd->session.remote_address + remote,
                                           nd->session.remote_token, nd_flags(nd, length));

    if (status != ND_SUCCESS)
        fail("Write", status);
}

static void nd_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct nd *nd = nd_from_link(link);
    ND2_SGE sge;
    ULONG n = nd_sge(nd, &sge, offset, length);
    HRESULT status = nd->qp->lpVtbl->Read(nd->qp, (void *)context, &sge, n, nd->session.remote_address + remote,
                                          nd->session.remote_token, 0);

    if (status != ND_SUCCESS)
        fail("Read", status);
}

static void __attribute__((noreturn, cold)) nd_failed(const ND2_RESULT *result)
{
    static const char *const types[] = { "Receive", "Send", "Bind", "Invalidate", "Read", "Write" };

    if (result->Status == ND_CANCELED)
        refuse("the connection is gone", "the peer has ended or disconnected");
    fail(types[result->RequestType], result->Status);
}

static unsigned int nd_results(struct pp_link *link, struct pp_result *out, unsigned int n)
{
    struct nd *nd = nd_from_link(link);
    ND2_RESULT results[16];
    ULONG got = nd->cq->lpVtbl->GetResults(nd->cq, results, n);

    for (ULONG i = 0; i < got; i++) {
        if (results[i].Status != ND_SUCCESS)
            nd_failed(&results[i]);
        out[i].context = (uintptr_t)results[i].RequestContext;
        out[i].bytes = results[i].BytesTransferred;
    }
    return got;
}

/* Asks for a notification and waits for it. A result that came in between completes it at once. */
static void nd_wait(struct pp_link *link)
{
    struct nd *nd = nd_from_link(link);
    OVERLAPPED *done;
    ULONG_PTR key;
    DWORD bytes;
    HRESULT status;

    if (nd->session.wait == PP_POLL)
        return;
    status = nd->cq->lpVtbl->Notify(nd->cq, ND_CQ_NOTIFY_ANY, &nd->cq_ov);
    if (status == ND_PENDING) {
        if (nd->session.wait == PP_EVENT)
            WaitForSingleObject(nd->cq_event, INFINITE);
        else if (nd->session.wait == PP_PORT)
            GetQueuedCompletionStatus(nd->port, &bytes, &key, &done, INFINITE);
        status = nd->cq->lpVtbl->GetOverlappedResult(nd->cq, &nd->cq_ov, nd->session.wait == PP_RESULT);
    }
    if (status != ND_SUCCESS)
        fail("Notify", status);
}

static void nd_yield(void)
{
    SwitchToThread();
}

static const struct pp_link_ops nd_ops = {
    .send = nd_send,
    .receive = nd_receive,
    .write = nd_write,
    .read = nd_read,
    .results = nd_results,
    .wait = nd_wait,
    .yield = nd_yield,
};

/* --- the two sides --- */

static ULONG read_limit(const struct nd *nd, ULONG limit)
{
    return min((ULONG)nd->session.depth, limit);
}

static bool run_client(const struct pp_options *options)
{
    struct nd nd = { .link.ops = &nd_ops };
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct pp_report report = { .options = options, .interface = "Network Direct", .device = description.device };
    struct pp_hello hello;
    BYTE data[256];
    ULONG length = sizeof(data);
    const char *why;
    HRESULT status;
    bool right;

    address_parse(&nd.remote, options->connect);
    address_set_port(&nd.remote, options->port);
    address_name(&nd.remote);
    address_local(&nd.local, options, &nd.remote, ND_QUERY_EXCLUDE_NDv1_ADDRESSES);
    pp_session_from_options(&nd.session, options);
    nd_open(&nd);
    nd_prepare(&nd);

    check("CreateConnector",
          nd.adapter->lpVtbl->CreateConnector(nd.adapter, &IID_IND2Connector, nd.file, (void **)&nd.connector));
    check(nd.local.text, nd.connector->lpVtbl->Bind(nd.connector, &nd.local.any, nd.local.length));
    pp_hello_fill(&hello, &nd.session, nd.session.notify || nd_needs_notify(&nd), (uintptr_t)nd.link.memory,
                  nd.mr->lpVtbl->GetRemoteToken(nd.mr));
    status = FINISH(&nd, nd.connector,
                    nd.connector->lpVtbl->Connect(nd.connector, (IUnknown *)nd.qp, &nd.remote.any, nd.remote.length,
                                                  read_limit(&nd, nd.info.MaxInboundReadLimit),
                                                  read_limit(&nd, nd.info.MaxOutboundReadLimit), &hello, sizeof(hello),
                                                  &nd.ov));
    if (status != ND_SUCCESS) {
        char text[128];

        snprintf(text, sizeof(text), "connecting to %s", nd.remote.text);
        fail(text, status);
    }
    status = nd.connector->lpVtbl->GetPrivateData(nd.connector, data, &length);
    if (status != ND_SUCCESS && status != ND_BUFFER_OVERFLOW)
        fail("GetPrivateData", status);
    nd.session.notify |= nd_needs_notify(&nd);
    why = pp_welcome_read(data, min(length, (ULONG)sizeof(data)), &nd.session);
    if (why)
        refuse(nd.remote.text, why);
    check("CompleteConnect", FINISH(&nd, nd.connector, nd.connector->lpVtbl->CompleteConnect(nd.connector, &nd.ov)));

    ndverbs_adapter_describe(&nd.local.any, nd.local.length, &description);
    report.local = nd.local.text;
    report.remote = nd.remote.text;
    right = pp_client(&nd.link, &nd.session, options, &report);

    check("Disconnect", FINISH(&nd, nd.connector, nd.connector->lpVtbl->Disconnect(nd.connector, &nd.ov)));
    nd_close_session(&nd);
    nd_close(&nd);
    return right;
}

/* Takes one connection request and serves it. */
static bool serve(struct nd *nd, IND2Listener *listener)
{
    struct pp_welcome welcome;
    BYTE data[256];
    ULONG length = sizeof(data), address_length = sizeof(nd->remote.v6);
    const char *why;
    HRESULT status;
    bool right;

    check("CreateConnector",
          nd->adapter->lpVtbl->CreateConnector(nd->adapter, &IID_IND2Connector, nd->file, (void **)&nd->connector));
    check("GetConnectionRequest",
          FINISH(nd, listener, listener->lpVtbl->GetConnectionRequest(listener, (IUnknown *)nd->connector, &nd->ov)));
    status = nd->connector->lpVtbl->GetPrivateData(nd->connector, data, &length);
    if (status == ND_SUCCESS || status == ND_BUFFER_OVERFLOW)
        status = nd->connector->lpVtbl->GetPeerAddress(nd->connector, &nd->remote.any, &address_length);
    if (status != ND_SUCCESS)
        fail("reading the connection request", status);
    nd->remote.length = address_length;
    address_name(&nd->remote);
    why = pp_hello_read(data, min(length, (ULONG)sizeof(data)), &nd->session);
    if (!why && nd->session.window && nd->session.op == PP_WRITE)
        why = "it names its memory by windows of version 1; --v1 serves that";
    if (why) {
        fprintf(stderr, "%s: %s turned away: %s\n", PROGRAM, nd->remote.text, why);
        nd->connector->lpVtbl->Reject(nd->connector, NULL, 0);
        return false;
    }
    printf("%s: %s, %s, depth %u, up to %u bytes%s\n", nd->remote.text, pp_op_name(nd->session.op),
           pp_wait_name(nd->session.wait), nd->session.depth, nd->session.max_size,
           nd->session.verify ? ", every byte verified" : "");
    fflush(stdout);

    nd_prepare(nd);
    pp_server_prepare(&nd->link);
    pp_welcome_fill(&welcome, nd_needs_notify(nd), (uintptr_t)nd->link.memory, nd->mr->lpVtbl->GetRemoteToken(nd->mr));
    check("Accept", FINISH(nd, nd->connector,
                           nd->connector->lpVtbl->Accept(
                               nd->connector, (IUnknown *)nd->qp, read_limit(nd, nd->info.MaxInboundReadLimit),
                               read_limit(nd, nd->info.MaxOutboundReadLimit), &welcome, sizeof(welcome), &nd->ov)));
    right = pp_server(&nd->link, &nd->session);

    /* The client disconnects when it is done. */
    check("NotifyDisconnect",
          FINISH(nd, nd->connector, nd->connector->lpVtbl->NotifyDisconnect(nd->connector, &nd->ov)));
    check("Disconnect", FINISH(nd, nd->connector, nd->connector->lpVtbl->Disconnect(nd->connector, &nd->ov)));
    if (nd->session.verify && nd->session.op != PP_READ)
        printf("%s: %llu bytes verified here%s\n", nd->remote.text, (unsigned long long)nd->session.verified,
               right ? "" : ": NOT all as sent");
    fflush(stdout);
    return right;
}

static bool run_server(const struct pp_options *options)
{
    struct nd base = { .link.ops = &nd_ops };
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    IND2Listener *listener;
    bool right = true;

    address_local(&base.local, options, NULL, ND_QUERY_EXCLUDE_NDv1_ADDRESSES);
    nd_open(&base);
    check("CreateListener",
          base.adapter->lpVtbl->CreateListener(base.adapter, &IID_IND2Listener, base.file, (void **)&listener));
    check(base.local.text, listener->lpVtbl->Bind(listener, &base.local.any, base.local.length));
    check("Listen", listener->lpVtbl->Listen(listener, 0));
    ndverbs_adapter_describe(&base.local.any, base.local.length, &description);
    printf("listening on %s (%s)\n", base.local.text, description.device);
    fflush(stdout);
    do {
        struct nd nd = base;

        /* A file of its own: each client may want another completion port, or none. */
        check("CreateOverlappedFile", nd.adapter->lpVtbl->CreateOverlappedFile(nd.adapter, &nd.file));
        right = serve(&nd, listener) && right;
        nd_close_session(&nd);
        CloseHandle(nd.file);
    } while (options->keep);
    nd_release(listener);
    nd_close(&base);
    return right;
}

int main(int argc, char **argv)
{
    struct pp_options options;
    WSADATA data;
    bool right;

    pp_options_parse(&options, PROGRAM, true, argc, argv);
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
        refuse("WSAStartup", "failed");
    check("NdStartup", NdStartup());
    if (options.v1)
        right = options.server ? v1_run_server(&options) : v1_run_client(&options);
    else
        right = options.server ? run_server(&options) : run_client(&options);
    check("NdCleanup", NdCleanup());
    WSACleanup();
    return right ? 0 : 1;
}
