/* SPDX-License-Identifier: MIT */
/* The device is deleted under an open adapter (design.md 2; T17: when does the delete return?). The last program: it makes
 * the device anew, but only in the machine. */
#include "session.h"

#include <sys/wait.h>
#include <iba/ib_cm_ifc.h>

static bool gone(int pid, int *status)
{
    return waitpid(pid, status, WNOHANG) == pid;
}

/* What can be read of a connection, and of the memory. */
struct known {
    BYTE data[256];
    ULONG data_size;
    union endpoint local, peer;
    UINT32 tokens[2], window_token;
};

/* The requests that are pending: GetConnectionRequest, Notify of either queue, Accept, NotifyDisconnect, Connect, Disconnect. */
enum {
    REQUEST,
    NOTIFY,
    LOW,
    ACCEPT,
    CLOSING,
    ASKING,
    LEAVING,
    PENDING
};

/* One connection attempt or connection in each state, requests of every kind, and objects that were never used. */
struct all {
    struct host host;
    HANDLE port; /* of every file: each request that pends ends there, once */
    IND2Listener *listener, *other, *bound, *fresh;
    struct link active, passive; /* connected */
    struct link waits;           /* for a request */
    struct link asks;            /* its request is in nobody's hands */
    struct link caller, called;  /* IB-type: replied, not completed */
    struct link busy, target;    /* connected; nothing of what was posted comes to an end */
    struct link idle;
    struct session parting;       /* IB-type: its Disconnect waits for a process that is stopped */
    int stopped;                  /* that process */
    IND2MemoryRegion *region;     /* nothing registered */
    IND2MemoryRegion *parts[2];   /* of the busy link's buffer: a window is bound to each */
    IND2MemoryWindow *windows[3]; /* the two; the third one's Bind and Invalidate are under way */
    IND2SharedReceiveQueue *srq;  /* with a receive and a Notify pending */
    IND2SharedReceiveQueue *dry;  /* IB-type: of the target, without a receive */
    OVERLAPPED pending[PENDING];
    bool ended[PENDING]; /* at the port */
    struct known known;
};

static IND2Listener *new_listener(struct host *host)
{
    IND2Listener *listener;

    ok_status(CALL(host->adapter, CreateListener, &IID_IND2Listener, host->file, (void **)&listener), ND_SUCCESS);
    return listener;
}

/* The same of a shared receive queue. */
static void shared_queue_is_over(struct host *host, IND2CompletionQueue *cq, IND2SharedReceiveQueue *srq,
                                 OVERLAPPED *notify)
{
    KAFFINITY affinity;
    USHORT group;
    void *out;

    ok_status(finish(srq, ND_PENDING, notify), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, GetNotifyAffinity, &group, &affinity), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, Notify, notify), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, Receive, NULL, NULL, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, Modify, 8, 1), ND_DEVICE_REMOVED);
    ok_status(CALL(srq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(
        CALL(host->adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host->file, 4, 1, 0, 0, 0, &out),
        ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq,
                   (IUnknown *)srq, NULL, 4, 1, 0, &out),
              ND_DEVICE_REMOVED);
    release_last(srq);
}

static HRESULT connect_to(struct link *link, const union endpoint *to, OVERLAPPED *ov)
{
    return CALL(link->connector, Connect, (IUnknown *)link->qp, &to->any, endpoint_size(to), 0, 0, NULL, 0, ov);
}

/* What the stopped process does until then. */
PART(stopped_peer)
{
    struct session session;
    char byte;

    session_begin(&session, NULL);
    runner_sync();
    runner_get(&byte, 1);
}

static IND2MemoryWindow *bind_window(struct all *all, uintptr_t context, IND2MemoryRegion *region, SIZE_T at)
{
    struct link *link = &all->busy;
    IND2MemoryWindow *window;

    ok_status(CALL(all->host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
    ok_status(CALL(link->qp, Bind, (void *)context, (IUnknown *)region, (IUnknown *)window, link->buffer + at, 512,
                   ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE),
              ND_SUCCESS);
    return window;
}

/* What a connection with itself crosses: on the wire both ends of the veth. */
static void lose_everything(void)
{
    runner_lose("lo", 100);
    if (runner_wire()) {
        runner_lose(runner_env("NDVERBS_NETDEV"), 100);
        runner_lose(runner_env("NDVERBS_PEER_NETDEV"), 100);
    }
}

static void lose_nothing(void)
{
    runner_mend("lo");
    if (runner_wire()) {
        runner_mend(runner_env("NDVERBS_NETDEV"));
        runner_mend(runner_env("NDVERBS_PEER_NETDEV"));
    }
}

/* The connection for those, and two windows that stay bound on it. */
static void connect_busy(struct all *all, const union endpoint *to)
{
    struct shape shape = { .reads = 1 };
    struct link *link = &all->busy;

    link_make(link, &all->host, &shape);
    if (!runner_iwarp()) {
        ok_status(CALL(all->host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, all->host.file, 4, 1,
                       0, 0, 0, (void **)&all->dry),
                  ND_SUCCESS);
        shape.srq = all->dry;
    }
    link_make(&all->target, &all->host, &shape);
    self_connect(link, &all->target, all->listener, to);
    link->remote.address = (UINT64)(uintptr_t)all->target.buffer;
    link->remote.token = CALL(all->target.mr, GetRemoteToken);
    for (int i = 0; i < 2; i++) {
        ok_status(
            CALL(all->host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, all->host.file, (void **)&all->parts[i]),
            ND_SUCCESS);
        ok_status(finish(all->parts[i],
                         CALL(all->parts[i], Register, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &link->ov),
                         &link->ov),
                  ND_SUCCESS);
        all->windows[i] = bind_window(all, 8, all->parts[i], 0);
        ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 8);
    }
}

/* Requests that stay under way. InfiniBand's kind: the peer's shared queue has no receive for the Send, which is sent again
 * and again; the others wait behind it. siw, where that would end the connection: the answer to a Read is lost, the others
 * wait behind that. */
static void keep_busy(struct all *all)
{
    struct link *link = &all->busy;
    ND2_SGE sge = sge_of(link, 0, 64);

    if (runner_iwarp())
        lose_everything();
    else
        post_send(link, 10, 0, 64, 0);
    ok_status(CALL(link->qp, Read, (void *)11, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_status(CALL(link->qp, Write, (void *)12, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    post_send(link, 13, 0, 64, ND_OP_FLAG_SILENT_SUCCESS);
    all->windows[2] = bind_window(all, 14, all->parts[0], 1024);
    ok_status(CALL(link->qp, Invalidate, (void *)15, (IUnknown *)all->windows[2], 0), ND_SUCCESS);
    post_receive(link, 16, 0, 64);
}

static void busy_is_over(struct link *link)
{
    static const ND2_REQUEST_TYPE types[] = { Nd2RequestTypeSend, Nd2RequestTypeRead, Nd2RequestTypeWrite,
                                              Nd2RequestTypeSend, Nd2RequestTypeBind, Nd2RequestTypeInvalidate };
    uintptr_t next = runner_iwarp() ? 11 : 10;
    bool received = false;

    /* Each direction in the order of its posts. */
    while (!received || next <= 15) {
        ND2_RESULT result = result_next(link->cq);
        uintptr_t context = (uintptr_t)result.RequestContext;

        ok_status(result.Status, ND_CANCELED);
        if (result.RequestType == Nd2RequestTypeReceive) {
            ok_uint(context, ==, 16);
            ok(!received);
            received = true;
            continue;
        }
        ok_uint(context, ==, next);
        ok_int(result.RequestType, ==, types[next - 10]);
        next++;
    }
    result_none(link->cq);
}

/* Connected to a process that is stopped then: in the kernel of InfiniBand's kind a disconnect waits for its answer. */
static void begin_to_part(struct all *all, int channel)
{
    struct link *link = &all->parting.link;

    session_beside(&all->parting, channel, NULL);
    ok(CreateIoCompletionPort(all->parting.host.file, all->port, 0, 0) == all->port);
    post_receive(link, 20, 0, 64);
    runner_stop(all->stopped);
    ok_status(CALL(link->connector, Disconnect, &all->pending[LEAVING]), ND_PENDING);
}

static void learn(struct all *all, struct known *known)
{
    IND2Connector *connector = all->active.connector;
    ULONG size = sizeof(known->local);

    memset(known, 0, sizeof(*known));
    known->data_size = sizeof(known->data);
    ok_status(CALL(connector, GetPrivateData, known->data, &known->data_size), ND_SUCCESS);
    ok_status(CALL(connector, GetLocalAddress, &known->local.any, &size), ND_SUCCESS);
    size = sizeof(known->peer);
    ok_status(CALL(connector, GetPeerAddress, &known->peer.any, &size), ND_SUCCESS);
    known->tokens[0] = CALL(all->active.mr, GetLocalToken);
    known->tokens[1] = CALL(all->active.mr, GetRemoteToken);
    known->window_token = CALL(all->windows[0], GetRemoteToken);
}

static void set_up(struct all *all)
{
    struct link *links[] = { &all->active, &all->passive, &all->waits, &all->asks,
                             &all->caller, &all->called,  &all->idle };
    struct host *host = &all->host;
    union endpoint to, other;
    int channel = -1;

    memset(all, 0, sizeof(*all));
    if (!runner_iwarp())
        all->stopped = runner_spawn("stopped_peer", ROLE_SERVER, &channel);
    host_open(host);
    all->port = CreateIoCompletionPort(host->file, NULL, 0, 0);
    ok(all->port != NULL);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        link_make(links[i], host, NULL);
    all->listener = listen_any(host);
    all->other = listen_any(host);
    all->bound = new_listener(host);
    ok_status(CALL(all->bound, Bind, &host->address.any, endpoint_size(&host->address)), ND_SUCCESS);
    all->fresh = new_listener(host);
    ok_status(CALL(host->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host->file, (void **)&all->region),
              ND_SUCCESS);
    to = listener_endpoint(all->listener);
    other = listener_endpoint(all->other);
    for (int i = 0; i < PENDING; i++)
        overlapped_rubbish(&all->pending[i], event_auto());
    ok_status(CALL(host->adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host->file, 4, 1, 1, 0, 0,
                   (void **)&all->srq),
              ND_SUCCESS);
    ok_status(CALL(all->srq, Receive, NULL, NULL, 0), ND_SUCCESS);
    ok_status(CALL(all->srq, Notify, &all->pending[LOW]), ND_PENDING);
    self_connect(&all->active, &all->passive, all->listener, &to);
    connect_busy(all, &to);
    if (!runner_iwarp()) {
        HRESULT hr = CALL(all->listener, GetConnectionRequest, (IUnknown *)all->called.connector, &all->called.ov);

        ok_status(connect_to(&all->caller, &to, &all->caller.ov), ND_PENDING);
        ok_status(finish(all->listener, hr, &all->called.ov), ND_SUCCESS);
        ok_status(CALL(all->called.connector, Accept, (IUnknown *)all->called.qp, 0, 0, NULL, 0, &all->pending[ACCEPT]),
                  ND_PENDING);
        ok_status(finish(all->caller.connector, ND_PENDING, &all->caller.ov), ND_SUCCESS);
        begin_to_part(all, channel);
    } else {
        /* Neither waits: the kernel's accept says itself that the connection stands, and Disconnect needs no answer. */
        all->ended[ACCEPT] = all->ended[LEAVING] = true;
    }
    post_receive(&all->active, 5, 0, 64);
    ok_status(CALL(all->listener, GetConnectionRequest, (IUnknown *)all->waits.connector, &all->pending[REQUEST]),
              ND_PENDING);
    ok_status(CALL(all->active.cq, Notify, ND_CQ_NOTIFY_ERRORS, &all->pending[NOTIFY]), ND_PENDING);
    ok_status(CALL(all->active.connector, NotifyDisconnect, &all->pending[CLOSING]), ND_PENDING);
    ok_status(connect_to(&all->asks, &other, &all->pending[ASKING]), ND_PENDING);
    if (runner_iwarp()) /* its TCP connection stands before anything is lost */
        ok_eventually(runner_command("grep -q ':%04X [0-9A-F]*:[0-9A-F]* 01 ' /proc/net/tcp", endpoint_port(&other)) ==
                      0);
    learn(all, &all->known);
    keep_busy(all);
}

/* Every request that was pending ends at the port, once. */
static void each_ended_once(struct all *all)
{
    int left = 0;

    for (int i = 0; i < PENDING; i++)
        left += !all->ended[i];
    for (;;) {
        OVERLAPPED *ov = NULL;
        ULONG_PTR key;
        DWORD bytes;

        (void)GetQueuedCompletionStatus(all->port, &bytes, &key, &ov, left ? INFINITE : 0);
        if (!ov)
            break;
        for (int i = 0; i < PENDING; i++)
            if (ov == &all->pending[i]) {
                ok_msg(!all->ended[i], "request %d ended twice", i);
                all->ended[i] = true;
                left--;
            }
    }
}

/* Every pending request ends in ND_DEVICE_REMOVED, posted work comes back, and what is left to call is clean-up. */
static void everything_is_over(struct all *all)
{
    struct link *link = &all->active;
    struct host *host = &all->host;
    union endpoint *address = &host->address;
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    ULONG size = sizeof(info);
    KAFFINITY affinity;
    USHORT group;
    ND2_SGE sge = sge_of(link, 0, 64);
    void *out;

    ok_status(finish(all->listener, ND_PENDING, &all->pending[REQUEST]), ND_DEVICE_REMOVED);
    ok_status(finish(link->cq, ND_PENDING, &all->pending[NOTIFY]), ND_DEVICE_REMOVED);
    ok_status(finish(link->connector, ND_PENDING, &all->pending[CLOSING]), ND_DEVICE_REMOVED);
    ok_status(finish(all->asks.connector, ND_PENDING, &all->pending[ASKING]), ND_DEVICE_REMOVED);
    if (!runner_iwarp()) {
        ok_status(finish(all->called.connector, ND_PENDING, &all->pending[ACCEPT]), ND_DEVICE_REMOVED);
        ok_status(finish(all->parting.link.connector, ND_PENDING, &all->pending[LEAVING]), ND_DEVICE_REMOVED);
        ok_result(all->parting.link.cq, Nd2RequestTypeReceive, ND_CANCELED, 20);
        result_none(all->parting.link.cq);
    }
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 5);
    result_none(link->cq);
    busy_is_over(&all->busy);

    ok_status(CALL(host->adapter, Query, &info, &size), ND_DEVICE_REMOVED);
    size = 0;
    ok_status(CALL(host->adapter, QueryAddressList, NULL, &size), ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host->file, 4, 0, 0, &out),
              ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host->file, &out), ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, &out), ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateConnector, &IID_IND2Connector, host->file, &out), ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateListener, &IID_IND2Listener, host->file, &out), ND_DEVICE_REMOVED);
    ok_status(CALL(host->adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)link->cq, (IUnknown *)link->cq, NULL,
                   4, 4, 1, 1, 0, &out),
              ND_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Notify, ND_CQ_NOTIFY_ANY, &all->pending[NOTIFY]), ND_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Resize, 40), ND_DEVICE_REMOVED);
    ok_status(CALL(link->cq, GetNotifyAffinity, &group, &affinity), ND_DEVICE_REMOVED);
    ok_status(CALL(all->region, Register, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &all->pending[NOTIFY]),
              ND_DEVICE_REMOVED);
    /* As after the end of a connection (A38). */
    ok_status(CALL(link->qp, Send, (void *)6, &sge, 1, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 6);
    ok_status(CALL(all->idle.connector, Bind, &address->any, endpoint_size(address)), ND_DEVICE_REMOVED);
    ok_status(connect_to(&all->idle, address, &all->idle.ov), ND_DEVICE_REMOVED);
    ok_status(connect_to(link, address, &link->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(link->connector, NotifyDisconnect, &link->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, CompleteConnect, &all->caller.ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, Reject, NULL, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(all->called.connector, Accept, (IUnknown *)all->called.qp, 0, 0, NULL, 0, &all->pending[ACCEPT]),
              ND_DEVICE_REMOVED);
    ok_status(CALL(all->fresh, Bind, &address->any, endpoint_size(address)), ND_DEVICE_REMOVED);
    ok_status(CALL(all->bound, Listen, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(all->listener, GetConnectionRequest, (IUnknown *)all->idle.connector, &all->pending[REQUEST]),
              ND_DEVICE_REMOVED);

    ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(link->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(all->listener, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
    result_none(link->cq);
}

/* The calls that are neither clean-up nor refused with ND_DEVICE_REMOVED (deviations.md, "Adapters"): they read what is kept
 * in memory, or ask for nothing of the device, or are out of turn for other reasons than its end. */
static void other_calls(struct all *all)
{
    struct link *link = &all->busy, *never = &all->idle;
    struct host *host = &all->host;
    ND2_SGE sge = sge_of(link, 0, 64);
    IUnknown *region = (IUnknown *)all->parts[0], *window = (IUnknown *)all->windows[2], *same;
    ULONG inbound, outbound;
    ND2_RESULT result;
    struct known now;
    HANDLE file;

    ok_status(CALL(host->adapter, CreateOverlappedFile, &file), ND_SUCCESS);
    ok(CloseHandle(file));
    ok_status(CALL(host->adapter, QueryInterface, &IID_IND2Adapter, (void **)&same), ND_SUCCESS);
    ok_ptr(same, ==, (IUnknown *)host->adapter);
    ok_int(CALL(same, Release), >, 0);
    learn(all, &now);
    ok_mem(&now, &all->known, sizeof(now));
    inbound = sizeof(now.local);
    ok_status(CALL(all->listener, GetLocalAddress, &now.local.any, &inbound), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(all->active.connector, GetReadLimits, &inbound, &outbound), ND_CONNECTION_INVALID);
    inbound = sizeof(now.local);
    ok_status(CALL(never->connector, GetLocalAddress, &now.local.any, &inbound), ND_CONNECTION_INVALID);
    ok_status(CALL(link->mr, Register, link->buffer, 4096, 0, &link->ov), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(all->region, Deregister, &link->ov), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(all->region, CancelOverlappedRequests), ND_SUCCESS);
    /* What was pending keeps its status. */
    ok_status(CALL(link->cq, GetOverlappedResult, &all->pending[NOTIFY], FALSE), ND_DEVICE_REMOVED);

    /* Posts to a connection that was: A38. */
    ok_status(CALL(link->qp, Receive, (void *)30, &sge, 1), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 30);
    ok_status(CALL(link->qp, Read, (void *)31, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeRead, ND_CANCELED, 31);
    ok_status(CALL(link->qp, Write, (void *)32, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_CANCELED, 32);
    ok_status(CALL(link->qp, Bind, (void *)33, region, window, link->buffer, 64, ND_OP_FLAG_ALLOW_READ), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeBind, ND_CANCELED, 33);
    ok_status(CALL(link->qp, Invalidate, (void *)34, window, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_CANCELED, 34);
    result_none(link->cq);
    /* And to one that never was. */
    ok_status(CALL(never->qp, Send, NULL, NULL, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(never->qp, Read, NULL, NULL, 0, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(never->qp, Write, NULL, NULL, 0, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(never->qp, Bind, NULL, region, window, link->buffer, 64, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(never->qp, Invalidate, NULL, window, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(never->qp, Receive, (void *)35, NULL, 0), ND_SUCCESS);
    ok_result(never->cq, Nd2RequestTypeReceive, ND_CANCELED, 35);
    ok_uint(CALL(never->cq, GetResults, &result, 1), ==, 0);
    ok_status(NdCheckAddress(&host->address.any, endpoint_size(&host->address)), ND_INVALID_ADDRESS);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &host->address.any, endpoint_size(&host->address), (void **)&same),
              ND_INVALID_ADDRESS);
}

static void clean_up(struct all *all)
{

    release_last(all->listener);
    release_last(all->other);
    release_last(all->bound);
    release_last(all->fresh);
    release_last(all->region);
    /* Their queue pair has failed, so that they do not count as bound: the region may go first, in both ways, or later. */
    ok_status(finish(all->parts[0], CALL(all->parts[0], Deregister, &all->busy.ov), &all->busy.ov), ND_SUCCESS);
    release_last(all->windows[0]);
    release_last(all->parts[0]);
    release_last(all->parts[1]);
    release_last(all->windows[1]);
    release_last(all->windows[2]);
    link_drop(&all->active); /* deregisters */
    link_drop(&all->passive);
    link_drop(&all->waits);
    link_drop(&all->asks);
    link_drop(&all->caller);
    link_drop(&all->called);
    link_drop(&all->busy);
    link_drop(&all->target);
    link_drop(&all->idle);
    if (all->dry)
        release_last(all->dry);
    if (all->stopped) {
        session_drop(&all->parting);
        runner_kill(all->stopped);
        (void)runner_wait(all->stopped);
    }
    host_close(&all->host);
    each_ended_once(all);
    ok(CloseHandle(all->port));
    for (int i = 0; i < PENDING; i++)
        ok(CloseHandle(all->pending[i].hEvent));
}

/* The deletion returns when the process has no context of the device any more: with another RDMA device in the system
 * once the last object is released, else when the process ends (deviations.md). D63. */
ALONE(device_deleted)
{
    const char *device = runner_env("NDVERBS_DEVICE"), *netdev = runner_env("NDVERBS_NETDEV");
    const char *argv[] = { "rdma", "link", "delete", device, NULL };
    struct all all;
    bool returned = false;
    ULONGLONG start;
    int pid, status;

    if (!runner_machine() || !device || !netdev)
        harness_skip("only in the machine, where the device can be made anew");
    set_up(&all);
    if (all.stopped)
        ok_pending(all.parting.link.connector, &all.pending[LEAVING]);
    result_none(all.busy.cq);
    start = GetTickCount64();
    pid = runner_exec(argv);
    everything_is_over(&all);
    shared_queue_is_over(&all.host, all.active.cq, all.srq, &all.pending[LOW]);
    each_ended_once(&all);
    runner_note("everything pending ended within %u ms", (unsigned)(GetTickCount64() - start));
    other_calls(&all);
    if (runner_iwarp())
        lose_nothing();
    ok_msg(!gone(pid, &status), "the delete returned while the device was in use");
    clean_up(&all);
    start = GetTickCount64();
    if (runner_wire()) {
        while (!gone(pid, &status))
            Sleep(5);
        runner_note("the delete returned %u ms after the last Release", (unsigned)(GetTickCount64() - start));
        ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        /* The other device works, and one of that name may come back to this process. */
        if (runner_env("NDVERBS_PEER_ADDR")) {
            union endpoint other = endpoint_from(runner_env("NDVERBS_PEER_ADDR"));
            struct host host;

            host_open_at(&host, &other);
            host_close(&host);
        }
        return;
    }
    while (GetTickCount64() - start < 500 && !returned) {
        returned = gone(pid, &status);
        Sleep(5);
    }
    runner_note("half a second after the last Release the delete %s", returned ? "has returned" : "still waits");
}

/* Once that process has ended, the device can be made again and works. */
ALONE(device_made_anew)
{
    const char *device = runner_env("NDVERBS_DEVICE"), *netdev = runner_env("NDVERBS_NETDEV");
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    if (!runner_machine() || !device || !netdev)
        harness_skip("only in the machine, where the device can be made anew");
    if (runner_iwarp()) /* where the case before has failed */
        (void)runner_command("tc qdisc del dev lo root 2>/dev/null");
    device_make_anew();
    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    self_connect(&active, &passive, listener, &to);
    post_receive(&passive, 1, 0, 64);
    post_send(&active, 2, 0, 64, 0);
    ok_result(active.cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    ok_result(passive.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
    host_close(&host);
}

/* A client of the CM-only interface that had a connection on the device, and has the interface still. */
ALONE(device_deleted_behind_the_cm_interface)
{
    const char *device = runner_env("NDVERBS_DEVICE"), *peer = runner_env("NDVERBS_PEER_ADDR");
    const char *argv[] = { "rdma", "link", "delete", device, NULL };
    ib_cm_rdma_req_t data = { .ipv = IB_REQ_CM_RDMA_IPV4 };
    ib_path_rec_t path = { 0 };
    iba_cm_req req = { .service_id = ib_cm_rdma_cm_sid(6, htons(4711)),
                       .p_primary_path = &path,
                       .qpn = htonl(1),
                       .p_pdata = &data,
                       .pdata_len = sizeof(data) };
    INFINIBAND_INTERFACE_CM ifc;
    union endpoint from, to;
    ULONGLONG start;
    iba_cm_id *id;
    int pid, status;

    if (!runner_machine() || !runner_wire() || !device || !peer)
        harness_skip("only in the machine, with another device");
    from = own_endpoint();
    to = endpoint_from(peer);
    if (to.any.sa_family != AF_INET)
        harness_skip("once, on IPv4");
    data.src_ip_addr[3] = from.v4.sin_addr.s_addr;
    data.dst_ip_addr[3] = to.v4.sin_addr.s_addr;
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(ifc), INFINIBAND_INTERFACE_CM_VERSION, &ifc),
              STATUS_SUCCESS);
    ok_status(ifc.CM.create_id(NULL, NULL, &id), STATUS_SUCCESS);
    ok_status(ifc.CM.send_req(id, &req), STATUS_SUCCESS);
    ifc.CM.destroy_id(id);
    start = GetTickCount64();
    pid = runner_exec(argv);
    while (!gone(pid, &status))
        Sleep(5);
    runner_note("the delete returned after %u ms", (unsigned)(GetTickCount64() - start));
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ifc.InterfaceHeader.InterfaceDereference(ifc.InterfaceHeader.Context);
    device_make_anew();
}

/* A process that has looked for addresses and opened none of the device: librdmacm has, to tell (address_list.c). */
ALONE(device_deleted_that_was_listed)
{
    const char *device = runner_env("NDVERBS_DEVICE");
    const char *argv[] = { "rdma", "link", "delete", device, NULL };
    union endpoint own;
    int pid, status;

    if (!runner_machine() || !runner_wire() || !device)
        harness_skip("only in the machine, with another device");
    own = own_endpoint();
    ok_status(NdStartup(), S_OK);
    ok(address_is_listed(&own));
    pid = runner_exec(argv);
    while (!gone(pid, &status)) {
        (void)address_is_listed(&own); /* looks anew each second */
        Sleep(20);
    }
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ok(!address_is_listed(&own));
    ok_status(NdCleanup(), S_OK);
    device_make_anew();
}

RUNNER_MAIN
