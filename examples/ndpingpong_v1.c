/* SPDX-License-Identifier: MIT */
/* The ping-pong by way of Network Direct version 1: the adapter has the one file, endpoints come from their connector,
 * results are our own structures, and memory is named to the peer by windows, which can be bound only once the connection
 * stands. So for RDMA each side sends the other its descriptor before the ping-pong begins. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong_nd.h"

/* Any number from 0 to 255: both sides must name the same one. */
#define PROTOCOL 6

/* One request under way. The result is first: its address is what comes back. */
struct v1_request {
    ND_RESULT result;
    uintptr_t context;
    const char *type;
    struct v1_request *next;
};

struct v1 {
    struct pp_link link;
    struct pp_session session;
    struct address local, remote;
    INDAdapter *adapter;
    ND_ADAPTER_INFO info;
    HANDLE port;
    HANDLE event;
    OVERLAPPED ov; /* of every call that is waited for at once */
    ND_MR_HANDLE mr;
    SIZE_T size; /* of the session's memory; behind it: our descriptor and the peer's */
    INDCompletionQueue *cq;
    HANDLE cq_event;
    OVERLAPPED cq_ov;
    INDConnector *connector;
    INDEndpoint *endpoint;
    INDMemoryWindow *window;
    ND_RESULT revoked; /* by the peer, which does not */
    ND_MW_DESCRIPTOR peer;
    struct v1_request *requests, *free;
    struct pp_result early; /* of the ping-pong, while the descriptors were on their way */
    bool has_early;
};

#define DESCRIPTOR_OUT(v1) ((v1)->size)
#define DESCRIPTOR_IN(v1)  ((v1)->size + 64)
#define MEMORY_SIZE(v1)    ((v1)->size + 128)

static struct v1 *v1_from_link(struct pp_link *link)
{
    return CONTAINING_RECORD(link, struct v1, link);
}

/* Waits for the outcome of a call that was given v1->ov. */
#define FINISH(v1, object, call) v1_finish(v1, (INDOverlapped *)(object), (call))
static HRESULT v1_finish(struct v1 *v1, INDOverlapped *object, HRESULT status)
{
    SIZE_T bytes;

    if (status == ND_PENDING)
        status = object->lpVtbl->GetOverlappedResult(object, &v1->ov, &bytes, TRUE);
    return status;
}

/* --- the adapter and its objects --- */

static void v1_open(struct v1 *v1)
{
    SIZE_T size = sizeof(v1->info);

    check(v1->local.text, NdOpenV1Adapter(&v1->local.any, v1->local.length, &v1->adapter));
    check("Query", v1->adapter->lpVtbl->Query(v1->adapter, 1, &v1->info, &size));
    v1->event = CreateEvent(NULL, FALSE, FALSE, NULL);
    v1->cq_event = CreateEvent(NULL, FALSE, FALSE, NULL);
    if (!v1->event || !v1->cq_event)
        refuse("CreateEvent", "no more handles");
    /* The low bit: connections and registrations set the event and queue no packet, whatever the file is bound to. */
    v1->ov.hEvent = (HANDLE)((ULONG_PTR)v1->event | 1);
}

static SIZE_T read_limit(const struct v1 *v1, SIZE_T limit)
{
    return min((SIZE_T)v1->session.depth, limit);
}

/* What a session needs, once it is known what the session is; the connector is there. */
static void v1_prepare(struct v1 *v1)
{
    struct pp_session *session = &v1->session;
    SIZE_T depth = PP_QUEUE_DEPTH(session) + 2; /* the descriptor, and the window's Bind */
    char text[160];

    v1->size = pp_memory_size(session);
    if (depth > v1->info.MaxInboundRequests || depth > v1->info.MaxOutboundRequests ||
        2 * depth > v1->info.MaxCqEntries)
        refuse("-q", "deeper than the adapter's queues");
    if (session->max_size > v1->info.MaxOutboundLength)
        refuse("-S", "longer than one request may be on this adapter");
    v1->link.memory = VirtualAlloc(NULL, MEMORY_SIZE(v1), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    v1->requests = calloc(2 * depth, sizeof(*v1->requests));
    if (!v1->link.memory || !v1->requests)
        refuse("VirtualAlloc", "out of memory");
    for (SIZE_T i = 0; i < 2 * depth; i++) {
        v1->requests[i].next = v1->free;
        v1->free = &v1->requests[i];
    }
    snprintf(text, sizeof(text), "registering %zu bytes", (size_t)MEMORY_SIZE(v1));
    check(text,
          FINISH(v1, v1->adapter,
                 v1->adapter->lpVtbl->RegisterMemory(v1->adapter, v1->link.memory, MEMORY_SIZE(v1), &v1->ov, &v1->mr)));
    check("CreateCompletionQueue", v1->adapter->lpVtbl->CreateCompletionQueue(v1->adapter, 2 * depth, &v1->cq));
    check("CreateEndpoint",
          v1->connector->lpVtbl->CreateEndpoint(v1->connector, v1->cq, v1->cq, depth, depth, 1, 1,
                                                read_limit(v1, v1->info.MaxInboundReadLimit),
                                                read_limit(v1, v1->info.MaxOutboundReadLimit), NULL, &v1->endpoint));
    if (session->wait == PP_PORT) {
        v1->port = CreateIoCompletionPort(v1->adapter->lpVtbl->GetFileHandle(v1->adapter), NULL, 0, 1);
        if (!v1->port)
            refuse("CreateIoCompletionPort", "failed");
    } else {
        v1->cq_ov.hEvent = v1->cq_event;
    }
}

static void v1_release(void *object)
{
    IUnknown *unknown = object;

    if (unknown)
        unknown->lpVtbl->Release(unknown);
}

static void v1_close(struct v1 *v1)
{
    v1_release(v1->connector);
    v1_release(v1->endpoint);
    v1_release(v1->window);
    v1_release(v1->cq);
    if (v1->mr)
        FINISH(v1, v1->adapter, v1->adapter->lpVtbl->DeregisterMemory(v1->adapter, v1->mr, &v1->ov));
    v1_release(v1->adapter);
    if (v1->port)
        CloseHandle(v1->port);
    CloseHandle(v1->event);
    CloseHandle(v1->cq_event);
    free(v1->requests);
    if (v1->link.memory)
        VirtualFree(v1->link.memory, 0, MEM_RELEASE);
}

/* --- the link: work requests and completions --- */

static struct v1_request *v1_request(struct v1 *v1, uintptr_t context, const char *type)
{
    struct v1_request *request = v1->free;

    if (!request)
        refuse(type, "more requests than the queues hold");
    v1->free = request->next;
    request->context = context;
    request->type = type;
    return request;
}

static SIZE_T v1_sge(const struct v1 *v1, ND_SGE *sge, size_t offset, uint32_t length)
{
    sge->pAddr = v1->link.memory + offset;
    sge->Length = length;
    sge->hMr = v1->mr;
    return length ? 1 : 0;
}

static void v1_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct v1 *v1 = v1_from_link(link);
    struct v1_request *request = v1_request(v1, context, "Send");
    ND_SGE sge;
    SIZE_T n = v1_sge(v1, &sge, offset, length);

    check("Send", v1->endpoint->lpVtbl->Send(v1->endpoint, &request->result, &sge, n, 0));
}

static void v1_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    struct v1 *v1 = v1_from_link(link);
    struct v1_request *request = v1_request(v1, context, "Receive");
    ND_SGE sge;
    SIZE_T n = v1_sge(v1, &sge, offset, length);

    check("Receive", v1->endpoint->lpVtbl->Receive(v1->endpoint, &request->result, &sge, n));
}

static void v1_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct v1 *v1 = v1_from_link(link);
    struct v1_request *request = v1_request(v1, context, "Write");
    ND_SGE sge;
    SIZE_T n = v1_sge(v1, &sge, offset, length);

    check("Write", v1->endpoint->lpVtbl->Write(v1->endpoint, &request->result, &sge, n, &v1->peer, remote, 0));
}

static void v1_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct v1 *v1 = v1_from_link(link);
    struct v1_request *request = v1_request(v1, context, "Read");
    ND_SGE sge;
    SIZE_T n = v1_sge(v1, &sge, offset, length);

    check("Read", v1->endpoint->lpVtbl->Read(v1->endpoint, &request->result, &sge, n, &v1->peer, remote, 0));
}

static unsigned int poll_results(struct v1 *v1, struct pp_result *out, unsigned int n)
{
    ND_RESULT *results[16];
    SIZE_T got = v1->cq->lpVtbl->GetResults(v1->cq, results, min(n, 16u));

    for (SIZE_T i = 0; i < got; i++) {
        struct v1_request *request = CONTAINING_RECORD(results[i], struct v1_request, result);

        if (request->result.Status == ND_CANCELED)
            refuse("the connection is gone", "the peer has ended or disconnected");
        check(request->type, request->result.Status);
        out[i].context = request->context;
        out[i].bytes = (uint32_t)request->result.BytesTransferred;
        request->next = v1->free;
        v1->free = request;
    }
    return (unsigned int)got;
}

static unsigned int v1_results(struct pp_link *link, struct pp_result *out, unsigned int n)
{
    struct v1 *v1 = v1_from_link(link);

    if (!v1->has_early || !n)
        return poll_results(v1, out, n);
    *out = v1->early;
    v1->has_early = false;
    return 1;
}

static void v1_wait(struct pp_link *link)
{
    struct v1 *v1 = v1_from_link(link);
    OVERLAPPED *done;
    ULONG_PTR key;
    SIZE_T size;
    DWORD bytes;
    HRESULT status;

    if (v1->session.wait == PP_POLL)
        return;
    status = v1->cq->lpVtbl->Notify(v1->cq, ND_CQ_NOTIFY_ANY, &v1->cq_ov);
    if (status == ND_PENDING) {
        if (v1->session.wait == PP_EVENT)
            WaitForSingleObject(v1->cq_event, INFINITE);
        else if (v1->session.wait == PP_PORT)
            GetQueuedCompletionStatus(v1->port, &bytes, &key, &done, INFINITE);
        status = v1->cq->lpVtbl->GetOverlappedResult(v1->cq, &v1->cq_ov, &size, v1->session.wait == PP_RESULT);
    }
    check("Notify", status);
}

static void v1_yield(void)
{
    SwitchToThread();
}

static const struct pp_link_ops v1_ops = {
    .send = v1_send,
    .receive = v1_receive,
    .write = v1_write,
    .read = v1_read,
    .results = v1_results,
    .wait = v1_wait,
    .yield = v1_yield,
};

/* --- the windows --- */

#define CONTEXT_DESCRIPTOR_IN  (UINTPTR_MAX - 1)
#define CONTEXT_DESCRIPTOR_OUT (UINTPTR_MAX - 2)
#define CONTEXT_BIND           (UINTPTR_MAX - 3)

/* Until this request has completed. The peer's descriptor may come meanwhile, and, when it has ours, its first message. */
static void wait_for(struct v1 *v1, uintptr_t context, bool *got_descriptor)
{
    struct pp_result result;

    do {
        while (poll_results(v1, &result, 1) == 0)
            SwitchToThread();
        if (result.context == CONTEXT_DESCRIPTOR_IN) {
            *got_descriptor = true;
        } else if (result.context < CONTEXT_BIND) {
            v1->early = result;
            v1->has_early = true;
        }
    } while (result.context != context);
}

/* Both sides: bind, tell, be told. The receive of the peer's descriptor was posted before the connection stood. The server goes
 * second: on iWARP the first message is the client's. */
static void trade_windows(struct v1 *v1)
{
    ND_MW_DESCRIPTOR *own = (ND_MW_DESCRIPTOR *)(v1->link.memory + DESCRIPTOR_OUT(v1));
    bool told = false;

    if (v1->session.server)
        wait_for(v1, CONTEXT_DESCRIPTOR_IN, &told);
    check("CreateMemoryWindow", v1->adapter->lpVtbl->CreateMemoryWindow(v1->adapter, &v1->revoked, &v1->window));
    check("Bind",
          v1->endpoint->lpVtbl->Bind(v1->endpoint, &v1_request(v1, CONTEXT_BIND, "Bind")->result, v1->mr, v1->window,
                                     v1->link.memory, v1->size, ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE, own));
    wait_for(v1, CONTEXT_BIND, &told);
    v1_send(&v1->link, CONTEXT_DESCRIPTOR_OUT, DESCRIPTOR_OUT(v1), sizeof(*own));
    wait_for(v1, CONTEXT_DESCRIPTOR_OUT, &told);
    if (!told)
        wait_for(v1, CONTEXT_DESCRIPTOR_IN, &told);
    memcpy(&v1->peer, v1->link.memory + DESCRIPTOR_IN(v1), sizeof(v1->peer));
}

/* A peer of version 2 has told where its memory is when it was connected. */
static void peer_from_session(struct v1 *v1)
{
    v1->peer.Base = htobe64(v1->session.remote_address);
    v1->peer.Length = htobe64(v1->size);
    v1->peer.Token = v1->session.remote_token;
}

/* --- the two sides --- */

bool v1_run_client(const struct pp_options *options)
{
    struct v1 v1 = { .link.ops = &v1_ops };
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct pp_report report = { .options = options,
                                .interface = "Network Direct version 1",
                                .device = description.device };
    const bool rdma = options->op != PP_SEND;
    struct pp_hello hello;
    BYTE data[256];
    SIZE_T length = sizeof(data);
    const char *why;
    HRESULT status;
    bool right;

    address_parse(&v1.remote, options->connect);
    address_set_port(&v1.remote, options->port);
    address_name(&v1.remote);
    address_local(&v1.local, options, &v1.remote, ND_QUERY_EXCLUDE_NDv2_ADDRESSES);
    pp_session_from_options(&v1.session, options);
    v1_open(&v1);
    check("CreateConnector", v1.adapter->lpVtbl->CreateConnector(v1.adapter, &v1.connector));
    v1_prepare(&v1);
    pp_hello_fill(&hello, &v1.session, v1.session.notify, 0, 0);
    if (rdma)
        hello.flags |= PP_FLAG_WINDOW;
    do {
        status = FINISH(&v1, v1.connector,
                        v1.connector->lpVtbl->Connect(v1.connector, v1.endpoint, &v1.remote.any, v1.remote.length,
                                                      PROTOCOL, 0, &hello, sizeof(hello), &v1.ov));
    } while (status == ND_TIMEOUT); /* a success to FAILED(), and an invitation to try again */
    if (status != ND_SUCCESS) {
        char text[128];

        snprintf(text, sizeof(text), "connecting to %s", v1.remote.text);
        fail(text, status);
    }
    status = v1.connector->lpVtbl->GetConnectionData(v1.connector, NULL, NULL, data, &length);
    if (status != ND_SUCCESS && status != ND_BUFFER_OVERFLOW)
        fail("GetConnectionData", status);
    why = pp_welcome_read(data, min(length, sizeof(data)), &v1.session);
    if (!why && options->op == PP_WRITE && !v1.session.window)
        why = "it has no windows of version 1, which --write needs: start it with --v1";
    if (why)
        refuse(v1.remote.text, why);
    if (v1.session.window)
        v1_receive(&v1.link, CONTEXT_DESCRIPTOR_IN, DESCRIPTOR_IN(&v1), sizeof(ND_MW_DESCRIPTOR));
    check("CompleteConnect", FINISH(&v1, v1.connector, v1.connector->lpVtbl->CompleteConnect(v1.connector, &v1.ov)));
    if (v1.session.window)
        trade_windows(&v1);
    else
        peer_from_session(&v1);

    ndverbs_adapter_describe(&v1.local.any, v1.local.length, &description);
    report.local = v1.local.text;
    report.remote = v1.remote.text;
    right = pp_client(&v1.link, &v1.session, options, &report);
    check("Disconnect", FINISH(&v1, v1.connector, v1.connector->lpVtbl->Disconnect(v1.connector, &v1.ov)));
    v1_close(&v1);
    return right;
}

/* Takes one connection request and serves it. */
static bool serve(struct v1 *v1, INDListen *listen)
{
    struct pp_welcome welcome;
    BYTE data[256];
    SIZE_T length = sizeof(data), address_length = sizeof(v1->remote.v6);
    const char *why;
    HRESULT status;
    bool right;

    check("CreateConnector", v1->adapter->lpVtbl->CreateConnector(v1->adapter, &v1->connector));
    check("GetConnectionRequest",
          FINISH(v1, listen, listen->lpVtbl->GetConnectionRequest(listen, v1->connector, &v1->ov)));
    status = v1->connector->lpVtbl->GetConnectionData(v1->connector, NULL, NULL, data, &length);
    if (status == ND_SUCCESS || status == ND_BUFFER_OVERFLOW)
        status = v1->connector->lpVtbl->GetPeerAddress(v1->connector, &v1->remote.any, &address_length);
    check("reading the connection request", status);
    v1->remote.length = (ULONG)address_length;
    address_name(&v1->remote);
    why = pp_hello_read(data, min(length, sizeof(data)), &v1->session);
    if (!why && v1->session.op != PP_SEND && !v1->session.window)
        why = "it wants to read or write memory, which version 1 names only to peers of version 1";
    if (why) {
        fprintf(stderr, "%s: %s turned away: %s\n", PROGRAM, v1->remote.text, why);
        v1->connector->lpVtbl->Reject(v1->connector, NULL, 0);
        return false;
    }
    printf("%s: %s, %s, depth %u, up to %u bytes%s\n", v1->remote.text, pp_op_name(v1->session.op),
           pp_wait_name(v1->session.wait), v1->session.depth, v1->session.max_size,
           v1->session.verify ? ", every byte verified" : "");
    fflush(stdout);

    v1_prepare(v1);
    if (v1->session.window)
        v1_receive(&v1->link, CONTEXT_DESCRIPTOR_IN, DESCRIPTOR_IN(v1), sizeof(ND_MW_DESCRIPTOR));
    pp_server_prepare(&v1->link);
    pp_welcome_fill(&welcome, false, 0, 0);
    if (v1->session.window)
        welcome.flags |= PP_FLAG_WINDOW;
    check("Accept",
          FINISH(v1, v1->connector,
                 v1->connector->lpVtbl->Accept(v1->connector, v1->endpoint, &welcome, sizeof(welcome), &v1->ov)));
    if (v1->session.window)
        trade_windows(v1);
    right = pp_server(&v1->link, &v1->session);

    /* The client disconnects when it is done. */
    check("NotifyDisconnect",
          FINISH(v1, v1->connector, v1->connector->lpVtbl->NotifyDisconnect(v1->connector, &v1->ov)));
    check("Disconnect", FINISH(v1, v1->connector, v1->connector->lpVtbl->Disconnect(v1->connector, &v1->ov)));
    if (v1->session.verify && v1->session.op != PP_READ)
        printf("%s: %llu bytes verified here%s\n", v1->remote.text, (unsigned long long)v1->session.verified,
               right ? "" : ": NOT all as sent");
    fflush(stdout);
    return right;
}

bool v1_run_server(const struct pp_options *options)
{
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    bool right = true, listening = false;

    do {
        /* An adapter for each client: its file may be bound to one completion port only. */
        struct v1 v1 = { .link.ops = &v1_ops };
        INDListen *listen;

        address_local(&v1.local, options, NULL, ND_QUERY_EXCLUDE_NDv2_ADDRESSES);
        v1_open(&v1);
        check(v1.local.text, v1.adapter->lpVtbl->Listen(v1.adapter, 0, PROTOCOL, htons(options->port), NULL, &listen));
        if (!listening) {
            ndverbs_adapter_describe(&v1.local.any, v1.local.length, &description);
            printf("listening on %s (%s)\n", v1.local.text, description.device);
            fflush(stdout);
            listening = true;
        }
        right = serve(&v1, listen) && right;
        v1_release(listen);
        v1_close(&v1);
    } while (options->keep);
    return right;
}
