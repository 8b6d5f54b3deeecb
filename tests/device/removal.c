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

/* One connection attempt or connection in each state, and objects that were never used. */
struct all {
    struct host host;
    IND2Listener *listener, *other, *bound, *fresh;
    struct link active, passive; /* connected */
    struct link waits;           /* for a request */
    struct link asks;            /* its request is in nobody's hands */
    struct link caller, called;  /* IB-type: replied, not completed */
    struct link idle;
    IND2MemoryRegion *region;    /* nothing registered */
    IND2SharedReceiveQueue *srq; /* with a receive and a Notify pending */
    OVERLAPPED request, notify, accept, low;
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

static HRESULT connect_to(struct link *link, const union endpoint *to)
{
    return CALL(link->connector, Connect, (IUnknown *)link->qp, &to->any, endpoint_size(to), 0, 0, NULL, 0, &link->ov);
}

static void set_up(struct all *all)
{
    struct link *links[] = { &all->active, &all->passive, &all->waits, &all->asks,
                             &all->caller, &all->called,  &all->idle };
    struct host *host = &all->host;
    union endpoint to, other;

    host_open(host);
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
    overlapped_rubbish(&all->request, event_auto());
    overlapped_rubbish(&all->notify, event_auto());
    overlapped_rubbish(&all->accept, event_auto());
    overlapped_rubbish(&all->low, event_auto());
    ok_status(CALL(host->adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, host->file, 4, 1, 1, 0, 0,
                   (void **)&all->srq),
              ND_SUCCESS);
    ok_status(CALL(all->srq, Receive, NULL, NULL, 0), ND_SUCCESS);
    ok_status(CALL(all->srq, Notify, &all->low), ND_PENDING);
    self_connect(&all->active, &all->passive, all->listener, &to);
    if (!runner_iwarp()) {
        HRESULT hr = CALL(all->listener, GetConnectionRequest, (IUnknown *)all->called.connector, &all->request);

        ok_status(connect_to(&all->caller, &to), ND_PENDING);
        ok_status(finish(all->listener, hr, &all->request), ND_SUCCESS);
        ok_status(CALL(all->called.connector, Accept, (IUnknown *)all->called.qp, 0, 0, NULL, 0, &all->accept),
                  ND_PENDING);
        ok_status(finish(all->caller.connector, ND_PENDING, &all->caller.ov), ND_SUCCESS);
    }
    post_receive(&all->active, 5, 0, 64);
    ok_status(CALL(all->listener, GetConnectionRequest, (IUnknown *)all->waits.connector, &all->request), ND_PENDING);
    ok_status(CALL(all->active.cq, Notify, ND_CQ_NOTIFY_ERRORS, &all->notify), ND_PENDING);
    ok_status(CALL(all->active.connector, NotifyDisconnect, &all->active.ov), ND_PENDING);
    ok_status(connect_to(&all->asks, &other), ND_PENDING);
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

    ok_status(finish(all->listener, ND_PENDING, &all->request), ND_DEVICE_REMOVED);
    ok_status(finish(link->cq, ND_PENDING, &all->notify), ND_DEVICE_REMOVED);
    ok_status(finish(link->connector, ND_PENDING, &link->ov), ND_DEVICE_REMOVED);
    ok_status(finish(all->asks.connector, ND_PENDING, &all->asks.ov), ND_DEVICE_REMOVED);
    if (!runner_iwarp())
        ok_status(finish(all->called.connector, ND_PENDING, &all->accept), ND_DEVICE_REMOVED);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 5);

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
    ok_status(CALL(link->cq, Notify, ND_CQ_NOTIFY_ANY, &all->notify), ND_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Resize, 40), ND_DEVICE_REMOVED);
    ok_status(CALL(link->cq, GetNotifyAffinity, &group, &affinity), ND_DEVICE_REMOVED);
    ok_status(CALL(all->region, Register, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &all->notify),
              ND_DEVICE_REMOVED);
    /* As after the end of a connection (A38). */
    ok_status(CALL(link->qp, Send, (void *)6, &sge, 1, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 6);
    ok_status(CALL(all->idle.connector, Bind, &address->any, endpoint_size(address)), ND_DEVICE_REMOVED);
    ok_status(connect_to(&all->idle, address), ND_DEVICE_REMOVED);
    ok_status(connect_to(link, address), ND_DEVICE_REMOVED);
    ok_status(CALL(link->connector, NotifyDisconnect, &link->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(link->connector, Disconnect, &link->ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, CompleteConnect, &all->caller.ov), ND_DEVICE_REMOVED);
    ok_status(CALL(all->caller.connector, Reject, NULL, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(all->called.connector, Accept, (IUnknown *)all->called.qp, 0, 0, NULL, 0, &all->accept),
              ND_DEVICE_REMOVED);
    ok_status(CALL(all->fresh, Bind, &address->any, endpoint_size(address)), ND_DEVICE_REMOVED);
    ok_status(CALL(all->bound, Listen, 0), ND_DEVICE_REMOVED);
    ok_status(CALL(all->listener, GetConnectionRequest, (IUnknown *)all->idle.connector, &all->request),
              ND_DEVICE_REMOVED);

    ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(link->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(all->listener, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
}

static void clean_up(struct all *all)
{
    release_last(all->listener);
    release_last(all->other);
    release_last(all->bound);
    release_last(all->fresh);
    release_last(all->region);
    link_drop(&all->active); /* deregisters */
    link_drop(&all->passive);
    link_drop(&all->waits);
    link_drop(&all->asks);
    link_drop(&all->caller);
    link_drop(&all->called);
    link_drop(&all->idle);
    ok(CloseHandle(all->request.hEvent));
    ok(CloseHandle(all->notify.hEvent));
    ok(CloseHandle(all->accept.hEvent));
    ok(CloseHandle(all->low.hEvent));
    host_close(&all->host);
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
    start = GetTickCount64();
    pid = runner_exec(argv);
    everything_is_over(&all);
    shared_queue_is_over(&all.host, all.active.cq, all.srq, &all.low);
    runner_note("everything pending ended within %u ms", (unsigned)(GetTickCount64() - start));
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

RUNNER_MAIN
