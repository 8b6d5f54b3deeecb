/* SPDX-License-Identifier: MIT */
/* The device is deleted under WinVerbs objects with everything pending; then made anew, but only in the machine. */
#include "wvside.h"

#include <sys/wait.h>

struct all {
    struct wvpair pair; /* connected */
    struct wvlink waits, asks, idle;
    IWVConnectEndpoint *other, *bound;
    IWVSharedReceiveQueue *srq;
    IWVDatagramEndpoint *datagram;
    IWVDatagramQueuePair *ud;
    OVERLAPPED request, notify, batch, low, port, lookup;
    DWORD flags;
};

static void set_up(struct all *all)
{
    struct wvlink *link = &all->pair.link[0];
    struct wvhost *host = &all->pair.host[0];
    OVERLAPPED *overlapped[] = { &all->request, &all->notify, &all->batch, &all->low, &all->port, &all->lookup };
    WV_CONNECT_PARAM ask;
    union endpoint to;
    WV_SGE sge;

    wv_pair(&all->pair, NULL);
    for (size_t i = 0; i < sizeof(overlapped) / sizeof(overlapped[0]); i++)
        overlapped_rubbish(overlapped[i], NULL);
    wv_make(&all->waits, host, NULL);
    wv_make(&all->asks, host, NULL);
    wv_make(&all->idle, host, NULL);
    all->other = wv_listen(host);
    to = wv_listener(all->other);
    all->bound = wv_make_endpoint(host);
    ok_status(CALL(all->bound, BindAddress, &host->address.any), WV_SUCCESS);
    ask = wv_param(link);
    ok_status(CALL(host->pd, CreateSharedReceiveQueue, 4, 1, 0, &all->srq), WV_SUCCESS);
    sge = wv_sge(link, 0, 64);
    ok_status(CALL(all->srq, PostReceive, 1, &sge, 1), WV_SUCCESS);
    ok_status(CALL(all->srq, Notify, &all->low), WV_IO_PENDING);
    wv_receive(link, 5, 0, 64);
    ok_status(CALL(link->cq, Notify, WvCqError, &all->notify), WV_IO_PENDING);
    ok_status(CALL(link->cq, BatchNotify, 8, &all->batch), WV_IO_PENDING);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &link->ov), WV_IO_PENDING);
    wv_bind(&all->asks);
    ok_status(CALL(all->asks.endpoint, Connect, all->asks.qp, &to.any, &ask, &all->asks.ov), WV_IO_PENDING);
    ok_status(CALL(all->bound, Listen, 1), WV_SUCCESS);
    ok_status(CALL(all->bound, GetRequest, all->waits.endpoint, &all->request), WV_IO_PENDING);
    if (!runner_iwarp()) {
        WV_QP_CREATE create = { .pSendCq = link->cq, .pReceiveCq = link->cq, .SendDepth = 2, .ReceiveDepth = 2 };

        create.QpType = WvQpTypeUd;
        ok_status(CALL(host->pd, CreateDatagramQueuePair, &create, &all->ud), WV_SUCCESS);
        all->datagram = wv_make_datagram(host);
        ok_status(CALL(all->datagram, BindAddress, &host->address.any), WV_SUCCESS);
        ok_status(CALL(all->datagram, Listen, 1), WV_SUCCESS);
    }
    ok_status(CALL(host->device, Notify, host->where.PortNumber, &all->port, &all->flags), WV_IO_PENDING);
}

/* Every pending request ends, posted work comes back, and what is left to call is clean-up. */
static void everything_is_over(struct all *all)
{
    struct wvlink *link = &all->pair.link[0];
    struct wvhost *host = &all->pair.host[0];
    UINT8 n = host->where.PortNumber;
    WV_CONNECT_PARAM param = wv_param(link);
    WV_DEVICE_ATTRIBUTES attributes;
    WV_QP_ATTRIBUTES qp = { 0 };
    WV_QP_CREATE create = { 0 };
    WV_PORT_ATTRIBUTES port;
    WV_MEMORY_KEYS keys;
    INdvConnectEndpoint *extension;
    SIZE_T entries = 4, out[3];
    WV_SGE sge = wv_sge(link, 0, 8);
    WV_ADDRESS_VECTOR vector = { 0 };
    ULONG_PTR key;
    NET16 pkey = host->where.Pkey;
    UINT16 place;
    DWORD index;
    WV_GID gid = { { 0 } };
    void *made;
    HRESULT hr;

    ok_status(WV_FINISH(all->bound, &all->request, WV_IO_PENDING), WV_DEVICE_REMOVED);
    ok_status(WV_FINISH(link->cq, &all->notify, WV_IO_PENDING), WV_DEVICE_REMOVED);
    ok_status(WV_FINISH(link->cq, &all->batch, WV_IO_PENDING), WV_DEVICE_REMOVED);
    ok_status(WV_FINISH(all->srq, &all->low, WV_IO_PENDING), WV_DEVICE_REMOVED);
    ok_status(WV_FINISH(link->endpoint, &link->ov, WV_IO_PENDING), WV_DEVICE_REMOVED);
    ok_status(WV_FINISH(all->asks.endpoint, &all->asks.ov, WV_IO_PENDING), WV_DEVICE_REMOVED);
    /* The device's own news. */
    ok_status(WV_FINISH(host->device, &all->port, WV_IO_PENDING), WV_SUCCESS);
    ok(all->flags & (WV_EVENT_ERROR | WV_EVENT_STATE | WV_EVENT_ADDRESS));
    while ((hr = WV_FINISH(host->device, &all->port, CALL(host->device, Notify, n, &all->port, &all->flags))) ==
           WV_SUCCESS)
        continue; /* what else there was to tell */
    ok_status(hr, WV_DEVICE_REMOVED);
    ok_completion(link->cq, WvReceive, WvWcFlushed, 5);

    ok_status(CALL(host->device, Query, &attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, QueryPort, n, &port), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, QueryGid, n, 0, &gid), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, FindGid, n, &gid, &index), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, QueryPkey, n, 0, &pkey), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, FindPkey, n, pkey, &place), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, CreateCompletionQueue, &entries, (IWVCompletionQueue **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, AllocateProtectionDomain, (IWVProtectionDomain **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, RegisterMemory, link->buffer, 64, 0, &all->port, &keys), WV_DEVICE_REMOVED);
    create.pSendCq = create.pReceiveCq = link->cq;
    ok_status(CALL(host->pd, CreateConnectQueuePair, &create, (IWVConnectQueuePair **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, CreateDatagramQueuePair, &create, (IWVDatagramQueuePair **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, CreateSharedReceiveQueue, 4, 1, 0, (IWVSharedReceiveQueue **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, AllocateMemoryWindow, (IWVMemoryWindow **)&made), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, CreateAddressHandle, &vector, (IWVAddressHandle **)&made, &key), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Notify, WvCqNextCompletion, &all->notify), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, BatchNotify, 1, &all->notify), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Resize, &entries), WV_DEVICE_REMOVED);
    ok_status(CALL(all->srq, Notify, &all->low), WV_DEVICE_REMOVED);
    ok_status(CALL(all->srq, PostReceive, 1, &sge, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(all->srq, Modify, 4, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(all->srq, Query, &out[0], &out[1], &out[2]), WV_SUCCESS); /* what we know ourselves */
    ok_status(CALL(link->qp, Query, &qp), WV_DEVICE_REMOVED);
    ok_status(wv_to_error(link->qp, &all->notify), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Disconnect, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_status(CALL(extension, DisconnectAndFlush, NULL, &link->ov), WV_DEVICE_REMOVED);
    ok_int(CALL(extension, Release), ==, 1);
    ok_status(CALL(all->bound, GetRequest, all->idle.endpoint, &all->request), WV_DEVICE_REMOVED);
    ok_status(CALL(all->asks.endpoint, Accept, NULL, &param, &all->request), WV_DEVICE_REMOVED);
    /* As verbs have it: comes back. */
    ok_status(CALL(link->qp, Send, 6, &sge, 1, 0, 0), WV_SUCCESS);
    ok_completion(link->cq, WvSend, WvWcFlushed, 6);
    ok_status(CALL(link->endpoint, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(all->bound, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(link->cq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(host->device, CancelOverlappedRequests), WV_SUCCESS);
}

static void clean_up(struct all *all)
{
    release_last(all->other);
    release_last(all->bound);
    release_last(all->srq);
    if (all->ud)
        release_last(all->ud);
    if (all->datagram)
        release_last(all->datagram);
    wv_drop(&all->waits); /* deregisters */
    wv_drop(&all->asks);
    wv_drop(&all->idle);
    wv_pair_drop(&all->pair);
}

ALONE(device_deleted)
{
    const char *device = runner_env("NDVERBS_DEVICE");
    const char *argv[] = { "rdma", "link", "delete", device, NULL };
    static struct all all;
    int pid;

    if (!runner_machine() || !device)
        harness_skip("only in the machine, where the device can be made anew");
    set_up(&all);
    pid = runner_exec(argv);
    everything_is_over(&all);
    clean_up(&all);
    if (runner_wire()) /* of the only device the delete returns when this process ends */
        runner_wait(pid);
}

ALONE(device_made_anew)
{
    const char *device = runner_env("NDVERBS_DEVICE"), *netdev = runner_env("NDVERBS_NETDEV");
    struct wvpair pair;

    if (!runner_machine() || !device || !netdev)
        harness_skip("only in the machine, where the device can be made anew");
    while (runner_command("[ ! -e /sys/class/infiniband/%s ]", device) != 0)
        Sleep(20);
    ok_int(runner_command("rdma link add %s type %s netdev %s", device, runner_env("NDVERBS_TRANSPORT"), netdev), ==,
           0);
    wv_pair(&pair, NULL);
    wv_receive(&pair.link[1], 1, 0, 64);
    wv_send(&pair.link[0], 2, 0, 64, 0);
    ok_completion(pair.link[0].cq, WvSend, WvWcSuccess, 2);
    ok_completion(pair.link[1].cq, WvReceive, WvWcSuccess, 1);
    wv_pair_drop(&pair);
}

RUNNER_MAIN
