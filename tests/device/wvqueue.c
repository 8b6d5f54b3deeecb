/* SPDX-License-Identifier: MIT */
/* WinVerbs' completion queues and queue pairs: notification, Query and Modify, requests of every kind, and what is told when they
 * fail. winverbs.md 5, 7. */
#include "wvside.h"

#include <stdlib.h>

/* ---- completion queues ---- */

ALONE(cq_statuses)
{
    struct wvhost host;
    IWVCompletionQueue *cq;
    SIZE_T entries = 10, max, count = 99;
    OVERLAPPED ov;

    wv_open(&host);
    max = host.attributes.MaxCqEntries;
    overlapped_rubbish(&ov, NULL);
    ok_status(CALL(host.device, CreateCompletionQueue, &entries, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.device, CreateCompletionQueue, NULL, &cq), WV_INVALID_PARAMETER);
    ok_ptr(cq, ==, NULL);
    entries = 0;
    ok_status(CALL(host.device, CreateCompletionQueue, &entries, &cq), WV_INVALID_PARAMETER);
    entries = max + 1;
    ok_status(CALL(host.device, CreateCompletionQueue, &entries, &cq), WV_INSUFFICIENT_RESOURCES);
    entries = 10;
    ok_status(CALL(host.device, CreateCompletionQueue, &entries, &cq), WV_SUCCESS);
    ok_uint(entries, >=, 10);
    ok_status(CALL(cq, Peek, &count), WV_SUCCESS);
    ok_uint(count, ==, 0);
    ok_status(CALL(cq, Peek, NULL), WV_INVALID_PARAMETER);
    wv_none(cq);
    ok_status(CALL(cq, Resize, NULL), WV_INVALID_PARAMETER);
    entries = 0;
    ok_status(CALL(cq, Resize, &entries), WV_INVALID_PARAMETER);
    entries = max + 1;
    ok_status(CALL(cq, Resize, &entries), WV_INSUFFICIENT_RESOURCES);
    entries = 40; /* there is room for that */
    ok_status(CALL(cq, Resize, &entries), WV_SUCCESS);
    ok_uint(entries, >=, 40);
    entries = max;
    ok_status(CALL(cq, Resize, &entries), runner_iwarp() ? WV_NOT_SUPPORTED : WV_SUCCESS);
    if (!runner_iwarp())
        ok_uint(entries, >=, max);
    ok_status(CALL(cq, Notify, (WV_CQ_NOTIFY_TYPE)3, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, BatchNotify, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, BatchNotify, max + 1, &ov), WV_INVALID_PARAMETER);
    ov.hEvent = (HANDLE)(ULONG_PTR)0x7770;
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &ov), WV_INVALID_HANDLE);
    ok_status(CALL(cq, BatchNotify, 1, &ov), WV_INVALID_HANDLE);
    release_last(cq);
    wv_close(&host);
}

static HRESULT notified(struct wvlink *link, OVERLAPPED *ov)
{
    return WV_FINISH(link->cq, ov, WV_IO_PENDING);
}

struct sender {
    struct wvlink *link;
    unsigned count;
};

static DWORD WINAPI send_later(void *argument)
{
    struct sender *sender = argument;

    Sleep(20);
    for (unsigned i = 0; i < sender->count; i++)
        wv_send(sender->link, 100 + i, 0, 8, 0);
    return 0;
}

ALONE(notify)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    OVERLAPPED next, solicited, error;
    HANDLE event[3] = { event_auto(), event_auto(), event_auto() }, thread;
    struct sender sender;

    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    overlapped_rubbish(&next, event[0]);
    overlapped_rubbish(&solicited, event[1]);
    overlapped_rubbish(&error, event[2]);
    for (UINT64 i = 0; i < 8; i++)
        wv_receive(b, i, 0, 64);
    /* Any completion; one event serves both kinds; the error kind waits on. */
    ok_status(CALL(b->cq, Notify, WvCqError, &error), WV_IO_PENDING);
    ok_status(CALL(b->cq, Notify, WvCqSolicited, &solicited), WV_IO_PENDING);
    ok_status(CALL(b->cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_io_pending(b->cq, &next);
    wv_send(a, 1, 0, 8, 0);
    ok_status(notified(b, &next), WV_SUCCESS);
    ok_status(notified(b, &solicited), WV_SUCCESS);
    ok_io_pending(b->cq, &error);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 0);
    ok_completion(a->cq, WvSend, WvWcSuccess, 1);
    /* What came before is polled once more by the caller; a message after the arm is told. */
    ok_status(CALL(b->cq, Notify, WvCqSolicited, &solicited), WV_IO_PENDING);
    wv_send(a, 2, 0, 8, WV_SEND_SOLICITED);
    ok_status(notified(b, &solicited), WV_SUCCESS);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 1);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    /* Without an OVERLAPPED it blocks until then. */
    sender = (struct sender){ a, 1 };
    thread = CreateThread(NULL, 0, send_later, &sender, 0, NULL);
    ok_status(CALL(b->cq, Notify, WvCqNextCompletion, NULL), WV_SUCCESS);
    ok_completion(b->cq, WvReceive, WvWcSuccess, 2);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok_completion(a->cq, WvSend, WvWcSuccess, 100);
    ok_status(CALL(b->cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_status(CALL(b->cq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(notified(b, &next), WV_CANCELLED);
    ok_status(notified(b, &error), WV_CANCELLED);
    for (int i = 0; i < 3; i++)
        ok(CloseHandle(event[i]));
    wv_pair_drop(&pair);
}

ALONE(batch_notify)
{
    struct wvpair pair;
    struct wvlink *a, *b;
    OVERLAPPED ov;
    HANDLE event = event_auto(), thread;
    struct sender sender;
    SIZE_T count;

    wv_pair(&pair, NULL);
    a = &pair.link[0], b = &pair.link[1];
    overlapped_rubbish(&ov, event);
    for (UINT64 i = 0; i < 8; i++)
        wv_receive(b, i, 0, 64);
    ok_status(CALL(b->cq, BatchNotify, 3, &ov), WV_IO_PENDING);
    for (UINT64 i = 0; i < 2; i++) {
        wv_send(a, i, 0, 8, 0);
        do
            ok_status(CALL(b->cq, Peek, &count), WV_SUCCESS);
        while (count < i + 1);
        ok_io_pending(b->cq, &ov);
    }
    wv_send(a, 2, 0, 8, 0);
    ok_status(notified(b, &ov), WV_SUCCESS);
    ok_status(CALL(b->cq, Peek, &count), WV_SUCCESS);
    ok_uint(count, ==, 3);
    count = 2;
    ok_status(CALL(b->cq, Resize, &count), WV_BUFFER_OVERFLOW); /* not below what is in there */
    /* They are there already. */
    ok_status(WV_FINISH(b->cq, &ov, CALL(b->cq, BatchNotify, 2, &ov)), WV_SUCCESS);
    for (UINT64 i = 0; i < 3; i++) {
        ok_completion(b->cq, WvReceive, WvWcSuccess, i);
        ok_completion(a->cq, WvSend, WvWcSuccess, i);
    }
    sender = (struct sender){ a, 4 };
    thread = CreateThread(NULL, 0, send_later, &sender, 0, NULL);
    ok_status(CALL(b->cq, BatchNotify, 4, NULL), WV_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    for (UINT64 i = 0; i < 4; i++) {
        ok_completion(b->cq, WvReceive, WvWcSuccess, 3 + i);
        ok_completion(a->cq, WvSend, WvWcSuccess, 100 + i);
    }
    ok_status(CALL(b->cq, BatchNotify, 1, &ov), WV_IO_PENDING);
    ok_status(CALL(b->cq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(notified(b, &ov), WV_CANCELLED);
    ok(CloseHandle(event));
    wv_pair_drop(&pair);
}

/* ---- queue pairs ---- */

ALONE(create_statuses)
{
    struct wvhost host;
    struct wvlink link;
    WV_QP_CREATE good = { 0 }, create;
    IWVConnectQueuePair *qp;
    IWVDatagramQueuePair *ud;
    SIZE_T max;

    wv_open(&host);
    wv_make(&link, &host, NULL);
    max = host.attributes.MaxQpWr;
    good.pSendCq = good.pReceiveCq = link.cq;
    good.SendDepth = good.ReceiveDepth = 4;
    good.SendSge = good.ReceiveSge = 1;
    ok_status(CALL(host.pd, CreateConnectQueuePair, NULL, &qp), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateConnectQueuePair, &good, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateDatagramQueuePair, NULL, &ud), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateDatagramQueuePair, &good, NULL), WV_INVALID_PARAMETER);
    create = good;
    create.pSendCq = NULL;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INVALID_PARAMETER);
    ok_ptr(qp, ==, NULL);
    create = good;
    create.pReceiveCq = (IWVCompletionQueue *)host.pd; /* no such object */
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INVALID_PARAMETER);
    create = good;
    create.QpType = WvQpTypeReserved;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INVALID_PARAMETER);
    create = good;
    create.SendDepth = max + 1;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INSUFFICIENT_RESOURCES);
    create.QpType = WvQpTypeUd;
    ok_status(CALL(host.pd, CreateDatagramQueuePair, &create, &ud),
              runner_iwarp() ? WV_NOT_SUPPORTED : WV_INSUFFICIENT_RESOURCES);
    create = good;
    create.ReceiveSge = host.attributes.MaxSge + 1000;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INSUFFICIENT_RESOURCES);
    create = good;
    create.MaxInlineSend = host.attributes.MaxInlineSend + 1;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_INSUFFICIENT_RESOURCES);
    /* Every maximum at once. */
    create = good;
    create.SendDepth = create.ReceiveDepth = max;
    create.SendSge = create.ReceiveSge = host.attributes.MaxSge;
    create.MaxInlineSend = host.attributes.MaxInlineSend;
    ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_SUCCESS);
    release_last(qp);
    create = good;
    create.QpType = WvQpTypeUc;
    if (runner_iwarp()) {
        ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_NOT_SUPPORTED);
    } else {
        ok_status(CALL(host.pd, CreateConnectQueuePair, &create, &qp), WV_SUCCESS);
        release_last(qp);
    }
    create.QpType = WvQpTypeUd;
    if (runner_iwarp()) {
        ok_status(CALL(host.pd, CreateDatagramQueuePair, &create, &ud), WV_NOT_SUPPORTED);
    } else {
        ok_status(CALL(host.pd, CreateDatagramQueuePair, &create, &ud), WV_SUCCESS);
        release_last(ud);
    }
    wv_drop(&link);
    wv_close(&host);
}

/* Everything that creation was told comes back, SignalSends in both settings. */
ALONE(query_as_made)
{
    struct wvhost host;
    struct wvlink link;
    WV_QP_ATTRIBUTES attributes;

    wv_open(&host);
    for (int signal = 0; signal < 2; signal++) {
        wv_make(&link, &host, &(struct wvshape){ .depth = 20, .sge = 3, .reads = 1, .unsignalled = !signal });
        memset(&attributes, 0x5a, sizeof(attributes));
        ok_status(CALL(link.qp, Query, &attributes), WV_SUCCESS);
        ok_uint(attributes.QpFlags, ==, signal ? WV_QP_SIGNAL_SENDS : 0);
        ok_ptr(attributes.pPd, ==, host.pd);
        ok_ptr(attributes.pSendCq, ==, link.cq);
        ok_ptr(attributes.pReceiveCq, ==, link.cq);
        ok_ptr(attributes.pSharedReceiveQueue, ==, NULL);
        ok_uint(attributes.SendDepth, >=, 20);
        ok_uint(attributes.ReceiveDepth, >=, 20);
        ok_uint(attributes.SendSge, >=, 3);
        ok_uint(attributes.ReceiveSge, >=, 3);
        ok_uint(attributes.InitiatorDepth, ==, 1);
        ok_uint(attributes.ResponderResources, ==, 1);
        ok_int(attributes.QpType, ==, WvQpTypeRc);
        ok_int(attributes.QpState, ==, WvQpStateInit);
        ok_uint(attributes.Qpn, !=, 0);
        ok_status(CALL(link.qp, Query, NULL), WV_INVALID_PARAMETER);
        wv_drop(&link);
    }
    wv_close(&host);
}

/* Two queue pairs without any connection manager: each told by Modify where the other is. */

static WV_GID gid_of(const struct wvhost *host)
{
    WV_GID gid = { { 0 } };

    if (host->address.any.sa_family == AF_INET6) {
        memcpy(&gid, &host->address.v6.sin6_addr, sizeof(gid));
        return gid;
    }
    gid.Raw[10] = gid.Raw[11] = 0xff;
    memcpy(&gid.Raw[12], &host->address.v4.sin_addr, 4);
    return gid;
}

static WV_ADDRESS_VECTOR vector_to(const struct wvhost *from, const struct wvhost *to)
{
    WV_ADDRESS_VECTOR vector = { 0 };

    vector.Route.Valid = 1;
    vector.Route.HopLimit = 64;
    vector.Route.SGid = gid_of(from);
    vector.Route.DGid = gid_of(to);
    vector.PortNumber = from->where.PortNumber;
    return vector;
}

static void fill_rtr(WV_QP_ATTRIBUTES *attributes, struct wvpair *pair, int side, IWVConnectQueuePair *peer)
{
    WV_QP_ATTRIBUTES other;
    WV_PORT_ATTRIBUTES port;

    ok_status(CALL(peer, Query, &other), WV_SUCCESS);
    ok_status(CALL(pair->host[side].device, QueryPort, pair->host[side].where.PortNumber, &port), WV_SUCCESS);
    memset(attributes, 0xa5, sizeof(*attributes));
    attributes->QpState = WvQpStateRtr;
    attributes->ReceivePsn = htonl(side ? 0x100 : 0x200);
    attributes->DestinationQpn = other.Qpn;
    attributes->AddressVector = vector_to(&pair->host[side], &pair->host[!side]);
    attributes->ResponderResources = 1;
    attributes->RnrNakTimeout = 12;
    attributes->PathMtu = port.ActiveMtu;
}

static void fill_rts(WV_QP_ATTRIBUTES *attributes, int side)
{
    memset(attributes, 0xa5, sizeof(*attributes));
    attributes->QpState = WvQpStateRts;
    attributes->SendPsn = htonl(side ? 0x200 : 0x100);
    attributes->SequenceErrorRetryCount = 5;
    attributes->RnrRetryCount = 6;
    attributes->LocalAckTimeout = 14;
    attributes->InitiatorDepth = 1;
}

static void one_message(struct wvpair *pair, IWVConnectQueuePair *from, IWVConnectQueuePair *to)
{
    WV_SGE in = wv_sge(&pair->link[1], 0, 500), out = wv_sge(&pair->link[0], 0, 500);

    pattern_fill(pair->link[0].buffer, 500, 3);
    ok_status(CALL(to, PostReceive, 51, &in, 1), WV_SUCCESS);
    ok_status(CALL(from, Send, 52, &out, 1, 0, 0), WV_SUCCESS);
    ok_completion(pair->link[0].cq, WvSend, WvWcSuccess, 52);
    ok_completion(pair->link[1].cq, WvReceive, WvWcSuccess, 51);
    pattern_check(pair->link[1].buffer, 500, 3);
}

ALONE(modify_by_hand)
{
    struct wvpair pair;
    WV_QP_ATTRIBUTES attributes;
    IWVConnectQueuePair *qp[2];
    OVERLAPPED ov;
    HANDLE event = event_auto();

    wv_pair_make(&pair, NULL);
    overlapped_rubbish(&ov, event);
    qp[0] = pair.link[0].qp, qp[1] = pair.link[1].qp;
    fill_rtr(&attributes, &pair, 0, qp[1]);
    attributes.PathMtu = 1000; /* no such */
    ok_status(CALL(qp[0], Modify, &attributes, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(qp[0], Modify, NULL, 0, NULL), WV_INVALID_PARAMETER);
    fill_rts(&attributes, 0);
    ok_status(CALL(qp[0], Modify, &attributes, 0, &ov), WV_UNSUCCESSFUL); /* not from INIT */
    if (runner_iwarp()) {
        /* The kernel connects, nobody else. */
        fill_rtr(&attributes, &pair, 0, qp[1]);
        ok(FAILED(CALL(qp[0], Modify, &attributes, 0, NULL)));
        goto done;
    }
    fill_rtr(&attributes, &pair, 0, qp[1]);
    memset(&attributes.AddressVector.Route.SGid, 0x77, sizeof(WV_GID));
    ok_status(CALL(qp[0], Modify, &attributes, 0, NULL), WV_INVALID_PARAMETER_2);
    fill_rtr(&attributes, &pair, 0, qp[1]);
    attributes.AddressVector.PortNumber = 99;
    ok_status(CALL(qp[0], Modify, &attributes, 0, NULL), WV_INVALID_PARAMETER_1);
    for (int again = 0; again < 2; again++) {
        for (int side = 0; side < 2; side++) {
            fill_rtr(&attributes, &pair, side, qp[!side]);
            ok_status(WV_FINISH(qp[side], &ov, CALL(qp[side], Modify, &attributes, WV_QP_ATTR_STATE, &ov)), WV_SUCCESS);
        }
        for (int side = 0; side < 2; side++) {
            fill_rts(&attributes, side);
            ok_status(CALL(qp[side], Modify, &attributes, WV_QP_ATTR_STATE, NULL), WV_SUCCESS);
        }
        ok_status(CALL(qp[0], Query, &attributes), WV_SUCCESS);
        ok_int(attributes.QpState, ==, WvQpStateRts);
        ok_uint(attributes.SequenceErrorRetryCount, ==, 5);
        ok_uint(attributes.RnrRetryCount, ==, 6);
        ok_uint(attributes.LocalAckTimeout, ==, 14);
        ok_uint(attributes.RnrNakTimeout, ==, 12);
        ok_uint(attributes.AddressVector.Route.Valid, ==, 1);
        {
            WV_GID source = gid_of(&pair.host[0]), dest = gid_of(&pair.host[1]);

            ok_mem(&attributes.AddressVector.Route.SGid, &source, sizeof(source));
            ok_mem(&attributes.AddressVector.Route.DGid, &dest, sizeof(dest));
        }
        one_message(&pair, qp[0], qp[1]);
        /* To ERROR: over when everything has come back; by the posted OVERLAPPED, and blocking. */
        wv_receive(&pair.link[0], 7, 0, 64);
        wv_receive(&pair.link[0], 8, 0, 64);
        ok_status(WV_FINISH(qp[0], &ov, again ? wv_to_error(qp[0], NULL) : wv_to_error(qp[0], &ov)), WV_SUCCESS);
        ok_completion(pair.link[0].cq, WvReceive, WvWcFlushed, 7);
        ok_completion(pair.link[0].cq, WvReceive, WvWcFlushed, 8);
        wv_none(pair.link[0].cq);
        ok_status(wv_to_error(qp[1], NULL), WV_SUCCESS);
        /* And anew. */
        for (int side = 0; side < 2; side++) {
            memset(&attributes, 0xa5, sizeof(attributes));
            attributes.QpState = WvQpStateReset;
            ok_status(CALL(qp[side], Modify, &attributes, 0, NULL), WV_SUCCESS);
            ok_int(wv_state(qp[side]), ==, WvQpStateReset);
            ok_status(wv_to_error(qp[side], NULL), WV_UNSUCCESSFUL);
            wv_to_init(&pair.link[side], qp[side]);
        }
    }
done:
    ok(CloseHandle(event));
    wv_pair_drop(&pair);
}

/* The alternate vector is set and seen where the device migrates paths, and is WV_NOT_SUPPORTED elsewhere. */
ALONE(alternate_path)
{
    struct wvpair pair;
    WV_QP_ATTRIBUTES attributes, seen;
    WV_PORT_ATTRIBUTES port;

    wv_pair(&pair, NULL);
    ok_status(CALL(pair.host[0].device, QueryPort, pair.host[0].where.PortNumber, &port), WV_SUCCESS);
    memset(&attributes, 0xa5, sizeof(attributes));
    attributes.QpState = WvQpStateRts;
    attributes.AlternateAddressVector = vector_to(&pair.host[0], &pair.host[1]);
    attributes.AlternateAddressVector.ServiceLevel = 3;
    attributes.AlternateLocalAckTimeout = 9;
    attributes.AlternatePkeyIndex = 0;
    attributes.ApmState = WvApmRearm;
    ok_status(CALL(pair.link[0].qp, Modify, &attributes, WV_QP_ATTR_CAPABILITIES, NULL), WV_NOT_SUPPORTED);
    if (port.Transport != WvPortTransportIb) {
        /* Soft-RoCE says that it migrates paths, and the kernel does not do it over Ethernet. */
        ok_status(CALL(pair.link[0].qp, Modify, &attributes, WV_QP_ATTR_ALTERNATE_AV, NULL), WV_NOT_SUPPORTED);
        ok_status(CALL(pair.link[0].qp, Modify, &attributes, WV_QP_ATTR_PATH_MIG_STATE, NULL), WV_NOT_SUPPORTED);
    } else {
        ok_status(CALL(pair.link[0].qp, Modify, &attributes, WV_QP_ATTR_ALTERNATE_AV | WV_QP_ATTR_PATH_MIG_STATE, NULL),
                  WV_SUCCESS);
        ok_status(CALL(pair.link[0].qp, Query, &seen), WV_SUCCESS);
        ok_uint(seen.AlternateAddressVector.ServiceLevel, ==, 3);
        ok_uint(seen.AlternateLocalAckTimeout, ==, 9);
    }
    /* The connection goes on. */
    one_message(&pair, pair.link[0].qp, pair.link[1].qp);
    wv_pair_drop(&pair);
}

/* ---- requests ---- */

ALONE(signalled_or_not)
{
    struct wvpair pair;
    struct wvlink *a, *b;

    for (int signal = 0; signal < 2; signal++) {
        wv_pair(&pair, &(struct wvshape){ .unsignalled = !signal });
        a = &pair.link[0], b = &pair.link[1];
        for (UINT64 i = 0; i < 3; i++)
            wv_receive(b, i, 0, 64);
        wv_send(a, 0, 0, 8, 0);
        wv_send(a, 1, 0, 8, WV_SEND_SIGNALED);
        wv_send(a, 2, 0, 8, 0);
        for (UINT64 i = 0; i < 3; i++)
            ok_completion(b->cq, WvReceive, WvWcSuccess, i);
        if (signal)
            ok_completion(a->cq, WvSend, WvWcSuccess, 0);
        ok_completion(a->cq, WvSend, WvWcSuccess, 1);
        if (signal)
            ok_completion(a->cq, WvSend, WvWcSuccess, 2);
        wv_none(a->cq);
        wv_pair_drop(&pair);
    }
}

ALONE(post_statuses)
{
    struct wvpair pair;
    struct wvlink *a;
    WV_SEND_REQUEST list[3], *failed = NULL;
    WV_SGE sge, many[64];
    WV_QP_ATTRIBUTES attributes;
    IWVConnectQueuePair *reset;
    NET64 one = wv_net64(1);

    wv_pair_make(&pair, &(struct wvshape){ .depth = 4 });
    a = &pair.link[0];
    sge = wv_sge(a, 0, 8);
    for (size_t i = 0; i < 64; i++)
        many[i] = sge;
    reset = wv_make_qp(a);
    ok_status(CALL(reset, PostReceive, 1, &sge, 1), WV_INVALID_PARAMETER);
    release_last(reset);
    /* In INIT: receives alone. */
    ok_status(CALL(a->qp, Send, 1, &sge, 1, 0, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, Read, 1, &sge, 1, 0, a->remote.address, a->remote.rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, Write, 1, &sge, 1, 0, 0, a->remote.address, a->remote.rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, CompareExchange, 1, &sge, 0, one, one, a->remote.address, a->remote.rkey),
              WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, FetchAdd, 1, &sge, 0, one, a->remote.address, a->remote.rkey), WV_INVALID_PARAMETER);
    wv_pair_connect(&pair);
    ok_status(CALL(a->qp, Query, &attributes), WV_SUCCESS);
    ok_status(CALL(a->qp, PostReceive, 1, NULL, 1), WV_INVALID_PARAMETER);
    ok_status(CALL(a->qp, PostReceive, 1, many, attributes.ReceiveSge + 1), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(a->qp, Send, 1, many, attributes.SendSge + 1, 0, 0), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(a->qp, Write, 1, many, attributes.SendSge + 1, 0, 0, a->remote.address, a->remote.rkey),
              WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(a->qp, Read, 1, many, 50, 0, a->remote.address, a->remote.rkey), WV_INSUFFICIENT_RESOURCES);
    sge.Length = (UINT32)attributes.MaxInlineSend + 1;
    ok_status(CALL(a->qp, Send, 1, &sge, 1, WV_SEND_INLINE, 0), WV_INVALID_PARAMETER);
    sge.Length = 8;
    /* A list is taken up to the first that does not fit. */
    memset(list, 0, sizeof(list));
    for (int i = 0; i < 3; i++) {
        list[i].WrId = (UINT64)(70 + i);
        list[i].pNext = i < 2 ? &list[i + 1] : NULL;
        list[i].pSgl = &sge;
        list[i].nSge = 1;
        list[i].Opcode = i == 1 ? WvBindWindow : WvSend;
    }
    wv_receive(&pair.link[1], 5, 0, 64);
    ok_status(CALL(a->qp, PostSend, list, &failed), WV_INVALID_PARAMETER);
    ok_ptr(failed, ==, &list[1]);
    ok_completion(a->cq, WvSend, WvWcSuccess, 70);
    ok_completion(pair.link[1].cq, WvReceive, WvWcSuccess, 5);
    list[0].pNext = NULL;
    wv_receive(&pair.link[1], 6, 0, 64);
    ok_status(CALL(a->qp, PostSend, list, NULL), WV_SUCCESS);
    ok_completion(a->cq, WvSend, WvWcSuccess, 70);
    ok_completion(pair.link[1].cq, WvReceive, WvWcSuccess, 6);
    /* Full queues. */
    for (SIZE_T i = 0; i < attributes.ReceiveDepth; i++)
        wv_receive(a, i, 0, 8);
    ok_status(CALL(a->qp, PostReceive, 1, &sge, 1), WV_INSUFFICIENT_RESOURCES);
    wv_pair_drop(&pair);
}

RUNNER_MAIN
