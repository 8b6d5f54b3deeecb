/* SPDX-License-Identifier: MIT */
#include "embed.h"

#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))
#define RELEASE(object)           ((object)->lpVtbl->Release(object))

#define MESSAGE 1024

struct end;

/* An overlapped request and what is to be done when its packet comes. */
struct step {
    OVERLAPPED overlapped;
    IND2Overlapped *object;
    struct end *end;
    void (*done)(struct end *end);
    const char *what;
};

struct end {
    struct embed *embed;
    IND2MemoryRegion *region;
    IND2CompletionQueue *queue;
    IND2QueuePair *pair;
    IND2Connector *connector;
    struct step connecting, notify;
    char in[MESSAGE], out[MESSAGE];
};

struct embed {
    IND2Adapter *adapter;
    IND2Listener *listener;
    HANDLE file, port;
    struct step request;
    struct end active, passive;
    unsigned rounds, round, up;
    bool over;
};

void embed_fail(const char *what, HRESULT status)
{
    fprintf(stderr, "%s: %s\n", what, ndverbs_status_text(status));
    exit(1);
}

static void check(HRESULT status, const char *what)
{
    if (status != ND_SUCCESS)
        embed_fail(what, status);
}

static OVERLAPPED *step(struct step *step, struct end *end, void *object, void (*done)(struct end *end),
                        const char *what)
{
    *step = (struct step){ .object = object, .end = end, .done = done, .what = what };
    return &step->overlapped;
}

/* Every packet comes later, also of what has finished already. */
static void started(HRESULT status, const char *what)
{
    if (status != ND_PENDING)
        embed_fail(what, status);
}

static void receive(struct end *end)
{
    ND2_SGE sge = { end->in, MESSAGE, CALL(end->region, GetLocalToken) };

    check(CALL(end->pair, Receive, NULL, &sge, 1), "Receive");
}

static void send_message(struct end *end)
{
    ND2_SGE sge = { end->out, MESSAGE, CALL(end->region, GetLocalToken) };

    check(CALL(end->pair, Send, NULL, &sge, 1, ND_OP_FLAG_SILENT_SUCCESS), "Send");
}

static void passive_disconnected(struct end *end)
{
    end->embed->over = true;
}

static void active_disconnected(struct end *end)
{
    struct end *passive = &end->embed->passive;

    started(CALL(passive->connector, Disconnect,
                 step(&passive->connecting, passive, passive->connector, passive_disconnected, "Disconnect")),
            "Disconnect");
}

/* A message has arrived: the passive end sends it back, the active end sends the next or hangs up. */
static void arrived(struct end *end)
{
    struct embed *embed = end->embed;

    if (end == &embed->passive) {
        memcpy(end->out, end->in, MESSAGE);
        receive(end);
        send_message(end);
        return;
    }
    if (memcmp(end->in, end->out, MESSAGE) != 0)
        embed_fail("a message came back changed", ND_INTERNAL_ERROR);
    if (++embed->round == embed->rounds) {
        started(CALL(end->connector, Disconnect,
                     step(&end->connecting, end, end->connector, active_disconnected, "Disconnect")),
                "Disconnect");
        return;
    }
    memset(end->out, (int)embed->round, MESSAGE);
    receive(end);
    send_message(end);
}

/* Ask to be told first, then look: what comes in between is not missed. */
static void look(struct end *end)
{
    ND2_RESULT result;

    started(CALL(end->queue, Notify, ND_CQ_NOTIFY_ANY, step(&end->notify, end, end->queue, look, "Notify")), "Notify");
    while (CALL(end->queue, GetResults, &result, 1) == 1) {
        if (result.Status == ND_CANCELED)
            continue;
        check(result.Status, "a request");
        if (result.RequestType == Nd2RequestTypeReceive)
            arrived(end);
    }
}

static void established(struct end *end)
{
    struct embed *embed = end->embed;

    if (++embed->up < 2)
        return;
    look(&embed->passive);
    look(&embed->active);
    send_message(&embed->active);
}

static void connected(struct end *end)
{
    started(CALL(end->connector, CompleteConnect,
                 step(&end->connecting, end, end->connector, established, "CompleteConnect")),
            "CompleteConnect");
}

static void requested(struct end *end)
{
    started(CALL(end->connector, Accept, (IUnknown *)end->pair, 0, 0, NULL, 0,
                 step(&end->connecting, end, end->connector, established, "Accept")),
            "Accept");
}

static void end_open(struct embed *embed, struct end *end)
{
    IND2Adapter *adapter = embed->adapter;
    /* The low bit keeps the packet away: this one is waited for right here. */
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { .hEvent = (HANDLE)((ULONG_PTR)event | 1) };
    HRESULT status;

    end->embed = embed;
    check(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, embed->file, (void **)&end->region),
          "CreateMemoryRegion");
    check(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, embed->file, 8, 0, 0, (void **)&end->queue),
          "CreateCompletionQueue");
    check(CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)end->queue, (IUnknown *)end->queue, end, 4, 4,
               1, 1, 0, (void **)&end->pair),
          "CreateQueuePair");
    check(CALL(adapter, CreateConnector, &IID_IND2Connector, embed->file, (void **)&end->connector), "CreateConnector");
    status = CALL(end->region, Register, end, sizeof(*end), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov);
    check(status == ND_PENDING ? CALL(end->region, GetOverlappedResult, &ov, TRUE) : status, "Register");
    CloseHandle(event);
    receive(end);
}

static void end_close(struct end *end)
{
    OVERLAPPED ov = { .hEvent = NULL };

    RELEASE(end->connector);
    RELEASE(end->pair);
    RELEASE(end->queue);
    if (CALL(end->region, Deregister, &ov) == ND_PENDING)
        CALL(end->region, GetOverlappedResult, &ov, TRUE);
    RELEASE(end->region);
}

/* The address as text, or the first of the list. */
static void find_address(const char *text, SOCKADDR_INET *address, ULONG *length)
{
    SOCKET_ADDRESS_LIST *list = NULL;
    SIZE_T size = 0;
    HRESULT status;

    memset(address, 0, sizeof(*address));
    if (text) {
        address->si_family = strchr(text, ':') ? AF_INET6 : AF_INET;
        *length = address->si_family == AF_INET ? sizeof(address->Ipv4) : sizeof(address->Ipv6);
        if (InetPtonA(address->si_family, text,
                      address->si_family == AF_INET ? (void *)&address->Ipv4.sin_addr
                                                    : (void *)&address->Ipv6.sin6_addr) != 1)
            embed_fail(text, ND_INVALID_ADDRESS);
        return;
    }
    while ((status = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size)) == ND_BUFFER_OVERFLOW) {
        free(list);
        list = malloc(size);
    }
    check(status, "NdQueryAddressList");
    if (!size)
        embed_fail("no adapter (ndlist --all says why)", ND_DEVICE_NOT_READY);
    *length = (ULONG)list->Address[0].iSockaddrLength;
    memcpy(address, list->Address[0].lpSockaddr, *length);
    free(list);
}

struct embed *embed_open(const char *text, unsigned rounds)
{
    struct embed *embed = calloc(1, sizeof(*embed));
    SOCKADDR_INET address;
    ULONG length;

    if (!embed)
        embed_fail("embed_open", ND_NO_MEMORY);
    embed->rounds = rounds;
    check(NdStartup(), "NdStartup");
    find_address(text, &address, &length);
    check(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, length, (void **)&embed->adapter),
          "NdOpenAdapter");
    check(CALL(embed->adapter, CreateOverlappedFile, &embed->file), "CreateOverlappedFile");
    embed->port = CreateIoCompletionPort(embed->file, NULL, 0, 1);
    if (!embed->port)
        embed_fail("CreateIoCompletionPort", ND_NO_MEMORY);
    end_open(embed, &embed->active);
    end_open(embed, &embed->passive);

    check(CALL(embed->adapter, CreateListener, &IID_IND2Listener, embed->file, (void **)&embed->listener),
          "CreateListener");
    check(CALL(embed->listener, Bind, (struct sockaddr *)&address, length), "Bind");
    check(CALL(embed->listener, Listen, 1), "Listen");
    check(CALL(embed->active.connector, Bind, (struct sockaddr *)&address, length), "Bind");
    check(CALL(embed->listener, GetLocalAddress, (struct sockaddr *)&address, &length), "GetLocalAddress");
    started(CALL(embed->listener, GetConnectionRequest, (IUnknown *)embed->passive.connector,
                 step(&embed->request, &embed->passive, embed->listener, requested, "GetConnectionRequest")),
            "GetConnectionRequest");
    started(CALL(embed->active.connector, Connect, (IUnknown *)embed->active.pair, (struct sockaddr *)&address, length,
                 0, 0, NULL, 0,
                 step(&embed->active.connecting, &embed->active, embed->active.connector, connected, "Connect")),
            "Connect");
    return embed;
}

HANDLE embed_port(struct embed *embed)
{
    return embed->port;
}

bool embed_step(struct embed *embed)
{
    OVERLAPPED *overlapped;
    ULONG_PTR key;
    DWORD bytes;

    while (GetQueuedCompletionStatus(embed->port, &bytes, &key, &overlapped, 0) || overlapped) {
        struct step *step = CONTAINING_RECORD(overlapped, struct step, overlapped);

        check(CALL(step->object, GetOverlappedResult, overlapped, FALSE), step->what);
        step->done(step->end);
    }
    return !embed->over;
}

void embed_close(struct embed *embed)
{
    RELEASE(embed->listener);
    end_close(&embed->active);
    end_close(&embed->passive);
    CloseHandle(embed->file);
    RELEASE(embed->adapter);
    CloseHandle(embed->port);
    free(embed);
    NdCleanup();
}
