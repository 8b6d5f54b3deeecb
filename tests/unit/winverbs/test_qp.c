/* SPDX-License-Identifier: MIT */
/* Queue pairs: creation, Query, Modify, posting. */
#include "rig.h"

#include <arpa/inet.h>
#include <endian.h>

static char memory[256];
static WV_SGE sge = { .pAddress = memory, .Length = 16, .Lkey = 0x1234 };

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

TEST(CreateQueuePair__arguments)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    IWVConnectQueuePair *qp = (IWVConnectQueuePair *)provider;
    IWVDatagramQueuePair *ud;
    IWVDevice *iw = rig_open(rig_guid("10.1.2.1"));
    IWVProtectionDomain *domain;
    IWVCompletionQueue *foreign;
    WV_DEVICE_ATTRIBUTES attributes;
    SIZE_T entries = 4;

    ok_status(CALL(pd, CreateConnectQueuePair, NULL, &qp), WV_INVALID_PARAMETER);
    ok_ptr(qp, ==, NULL);
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, NULL), WV_INVALID_PARAMETER);
    shape.pSendCq = NULL;
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INVALID_PARAMETER);
    shape.pSendCq = cq;
    shape.pReceiveCq = (IWVCompletionQueue *)pd; /* something else of ours */
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INVALID_PARAMETER);
    ok_status(CALL(iw, CreateCompletionQueue, &entries, &foreign), WV_SUCCESS);
    shape.pReceiveCq = foreign;
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INVALID_PARAMETER);
    ok_status(CALL(iw, AllocateProtectionDomain, &domain), WV_SUCCESS);
    shape.pSendCq = foreign;
    shape.QpType = WvQpTypeUd; /* iWARP has connections only */
    ok_status(CALL(domain, CreateDatagramQueuePair, &shape, &ud), WV_NOT_SUPPORTED);
    rig_release(domain);
    rig_release(foreign);
    rig_release(iw);
    shape = rig_shape(WvQpTypeReserved);
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INVALID_PARAMETER);
    shape = rig_shape(WvQpTypeRc);
    ok_status(CALL(device, Query, &attributes), WV_SUCCESS);
    shape.SendDepth = attributes.MaxQpWr + 1;
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INSUFFICIENT_RESOURCES);
    shape = rig_shape(WvQpTypeRc);
    shape.ReceiveSge = attributes.MaxSge + 1;
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INSUFFICIENT_RESOURCES);
    shape = rig_shape(WvQpTypeRc);
    shape.MaxInlineSend = attributes.MaxInlineSend + 1;
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INSUFFICIENT_RESOURCES);
    shape = rig_shape(WvQpTypeRc);
    fake_fail_always(FAKE_ibv_create_qp, ENOMEM);
    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(pd, CreateDatagramQueuePair, &shape, &ud), WV_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_qp);
    for (unsigned n = 1;; n++) {
        HRESULT hr;

        fake_alloc_fail(n);
        hr = CALL(pd, CreateConnectQueuePair, &shape, &qp);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(hr, WV_SUCCESS);
            rig_release(qp);
            break;
        }
        ok_status(hr, WV_NO_MEMORY);
        ok_ptr(qp, ==, NULL);
    }
}

TEST(Query__as_made)
{
    static const DWORD flags[] = { 0, WV_QP_SIGNAL_SENDS };

    for (size_t i = 0; i < 2; i++) {
        WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
        WV_QP_ATTRIBUTES attributes;
        IWVConnectQueuePair *qp;

        shape.QpFlags = flags[i];
        ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
        memset(&attributes, 0xa5, sizeof(attributes));
        ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
        ok_ptr(attributes.pPd, ==, pd);
        ok_ptr(attributes.pSendCq, ==, cq);
        ok_ptr(attributes.pReceiveCq, ==, cq);
        ok_ptr(attributes.pSharedReceiveQueue, ==, NULL);
        ok_uint(attributes.SendDepth, ==, 8);
        ok_uint(attributes.ReceiveDepth, ==, 8);
        ok_uint(attributes.SendSge, >=, 2);
        ok_uint(attributes.ReceiveSge, >=, 2);
        ok_uint(attributes.MaxInlineSend, >=, 64);
        ok_int(attributes.QpType, ==, WvQpTypeRc);
        ok_int(attributes.QpState, ==, WvQpStateReset);
        ok_int(attributes.CurrentQpState, ==, WvQpStateReset);
        ok_uint(attributes.Qpn, ==, htonl(rig_newest_qp()->qp_num));
        ok_uint(attributes.QpFlags, ==, flags[i]);
        ok_status(CALL(qp, Query, NULL), WV_INVALID_PARAMETER);
        fake_fail(FAKE_ibv_query_qp, 1, EINVAL);
        ok_status(CALL(qp, Query, &attributes), WV_UNSUCCESSFUL);
        rig_release(qp);
    }
}

TEST(Query__borrowed_pointers_stay)
{
    IWVConnectQueuePair *qp;
    IWVProtectionDomain *domain;
    IWVCompletionQueue *queue;
    WV_QP_ATTRIBUTES attributes;
    SIZE_T entries = 16;
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);

    ok_status(CALL(device, AllocateProtectionDomain, &domain), WV_SUCCESS);
    ok_status(CALL(device, CreateCompletionQueue, &entries, &queue), WV_SUCCESS);
    shape.pSendCq = shape.pReceiveCq = queue;
    ok_status(CALL(domain, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    rig_release(domain);
    rig_release(queue);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_ptr(attributes.pPd, ==, domain);
    /* Taken up again from what was lent. */
    ok_uint(CALL(attributes.pPd, AddRef), ==, 1);
    ok_uint(CALL(attributes.pSendCq, Poll, NULL, 0), ==, 0);
    rig_release(qp);
    rig_release(attributes.pPd);
}

TEST(Modify__to_rts_and_query)
{
    IWVConnectQueuePair *qp = rig_qp();
    const struct ibv_qp_attr *attr;
    WV_QP_ATTRIBUTES attributes;
    int mask;

    rig_to(qp, WvQpStateInit);
    attr = fake_qp_attr(rig_newest_qp(), IBV_QPS_INIT, &mask);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
    ok_uint(attr->qp_access_flags, ==, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
    rig_to(qp, WvQpStateInit); /* again */
    memset(&attributes, 0, sizeof(attributes));
    attributes.QpState = WvQpStateInit;
    attributes.AddressVector.PortNumber = 1;
    attributes.AccessFlags = WV_ACCESS_REMOTE_READ;
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL), WV_SUCCESS);
    /* Without its bit the field is not looked at. */
    ok_uint(fake_qp_attr(rig_newest_qp(), IBV_QPS_INIT, NULL)->qp_access_flags, ==, 0);
    ok_status(CALL(qp, Modify, NULL, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, CancelOverlappedRequests), WV_SUCCESS);
    rig_release(qp);

    qp = rig_qp();
    rig_to(qp, WvQpStateRts);
    attr = fake_qp_attr(rig_newest_qp(), IBV_QPS_RTR, &mask);
    ok_int(mask, ==,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER);
    ok_uint(attr->dest_qp_num, ==, 0x77);
    ok_uint(attr->rq_psn, ==, 0x123456);
    ok_int(attr->path_mtu, ==, IBV_MTU_1024);
    ok_uint(attr->ah_attr.dlid, ==, 0x1234);
    attr = fake_qp_attr(rig_newest_qp(), IBV_QPS_RTS, &mask);
    ok_int(mask, ==,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC);
    ok_uint(attr->sq_psn, ==, 0x654321);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpState, ==, WvQpStateRts);
    ok_uint(attributes.DestinationQpn, ==, htonl(0x77));
    ok_uint(attributes.ReceivePsn, ==, htonl(0x123456));
    ok_uint(attributes.SendPsn, ==, htonl(0x654321));
    ok_uint(attributes.PathMtu, ==, 1024);
    ok_uint(attributes.AddressVector.DLid, ==, htons(0x1234));
    ok_uint(attributes.AddressVector.PortNumber, ==, 1);
    ok_uint(attributes.ResponderResources, ==, 1);
    ok_uint(attributes.InitiatorDepth, ==, 1);
    ok_uint(attributes.LocalAckTimeout, ==, 14);
    ok_uint(attributes.RnrNakTimeout, ==, 12);
    ok_uint(attributes.SequenceErrorRetryCount, ==, 5);
    ok_uint(attributes.RnrRetryCount, ==, 3);
    ok_uint(attributes.AccessFlags, ==, WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE);
    rig_release(qp);
}

TEST(Modify__optional_fields)
{
    IWVConnectQueuePair *qp = rig_qp();
    WV_QP_ATTRIBUTES attributes;
    int mask;

    rig_to(qp, WvQpStateRts);
    memset(&attributes, 0xa5, sizeof(attributes));
    attributes.QpState = WvQpStateRts;
    attributes.RnrNakTimeout = 7;
    attributes.AccessFlags = WV_ACCESS_REMOTE_READ;
    attributes.CurrentQpState = WvQpStateRts;
    ok_status(CALL(qp, Modify, &attributes,
                   WV_QP_ATTR_RNR_NAK_TIMEOUT | WV_QP_ATTR_ACCESS_FLAGS | WV_QP_ATTR_CURRENT_STATE | WV_QP_ATTR_FLAGS,
                   NULL),
              WV_SUCCESS);
    ok_uint(fake_qp_attr(rig_newest_qp(), IBV_QPS_RTS, &mask)->min_rnr_timer, ==, 7);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS | IBV_QP_CUR_STATE);
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_CAPABILITIES, NULL), WV_NOT_SUPPORTED);
    rig_release(qp);
}

/* Alternate paths: set and seen where the device migrates, a documented status elsewhere. */
TEST(Modify__alternate_path)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    WV_QP_ATTRIBUTES attributes;
    IWVConnectQueuePair *qp = rig_qp();
    IWVProtectionDomain *domain;
    IWVCompletionQueue *queue;
    IWVDevice *migrating;
    SIZE_T entries = 16;

    rig_to(qp, WvQpStateRts);
    memset(&attributes, 0, sizeof(attributes));
    attributes.QpState = WvQpStateRts;
    attributes.AlternateAddressVector.PortNumber = 1;
    attributes.AlternateAddressVector.DLid = htons(0x4321);
    attributes.AlternateLocalAckTimeout = 9;
    attributes.ApmState = WvApmRearm;
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_ALTERNATE_AV, NULL), WV_NOT_SUPPORTED);
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_PATH_MIG_STATE, NULL), WV_NOT_SUPPORTED);
    rig_release(qp);

    fake_device_add("fake_apm", IBV_TRANSPORT_IB, 1);
    fake_device_attr("fake_apm")->device_cap_flags |= IBV_DEVICE_AUTO_PATH_MIG;
    fake_port_attr("fake_apm", 1)->link_layer = IBV_LINK_LAYER_INFINIBAND;
    migrating = rig_open(ibv_get_device_guid(fake_device("fake_apm")));
    ok_status(CALL(migrating, AllocateProtectionDomain, &domain), WV_SUCCESS);
    ok_status(CALL(migrating, CreateCompletionQueue, &entries, &queue), WV_SUCCESS);
    shape.pSendCq = shape.pReceiveCq = queue;
    ok_status(CALL(domain, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_ALTERNATE_AV | WV_QP_ATTR_PATH_MIG_STATE, NULL), WV_SUCCESS);
    memset(&attributes, 0, sizeof(attributes));
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.AlternateAddressVector.DLid, ==, htons(0x4321));
    ok_uint(attributes.AlternateAddressVector.PortNumber, ==, 1);
    ok_uint(attributes.AlternateLocalAckTimeout, ==, 9);
    ok_int(attributes.ApmState, ==, WvApmRearm);
    /* Over Ethernet the kernel has none, whatever the device says. */
    fake_port_attr("fake_apm", 1)->link_layer = IBV_LINK_LAYER_ETHERNET;
    attributes.QpState = WvQpStateRts;
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_ALTERNATE_AV, NULL), WV_NOT_SUPPORTED);
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_PATH_MIG_STATE, NULL), WV_NOT_SUPPORTED);
    rig_release(qp);
    rig_release(queue);
    rig_release(domain);
    rig_release(migrating);
}

TEST(Modify__refused)
{
    WV_QP_ATTRIBUTES attributes = { .QpState = WvQpStateRtr };
    IWVConnectQueuePair *qp = rig_qp();
    OVERLAPPED ov = rig_overlapped();

    attributes.PathMtu = 1000; /* no such */
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_INVALID_PARAMETER);
    attributes.PathMtu = 1024;
    attributes.AddressVector.PortNumber = 1;
    attributes.AddressVector.Route.Valid = 1; /* no GID of the port */
    memset(&attributes.AddressVector.Route.SGid, 0x44, sizeof(WV_GID));
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_INVALID_PARAMETER_2);
    attributes.AddressVector.Route.Valid = 0;
    ok_status(CALL(qp, Modify, &attributes, 0, &ov), WV_UNSUCCESSFUL); /* from RESET */
    ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    attributes.QpState = WvQpStateError;
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_UNSUCCESSFUL);
    attributes.QpState = WvQpStateSqd;
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_UNSUCCESSFUL);
    rig_release(qp);
}

/* To ERROR: completes when everything has come back. */
TEST(Modify__error_completes_after_the_flush)
{
    WV_QP_ATTRIBUTES attributes = { .QpState = WvQpStateError };
    OVERLAPPED ov = rig_overlapped();
    IWVConnectQueuePair *qp = rig_qp();
    WV_COMPLETION completion[8];

    fake_auto_flush(false);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_SUCCESS);
    ok_status(CALL(qp, Send, 2, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    ok_status(CALL(qp, Modify, &attributes, 0, &ov), WV_IO_PENDING);
    ok_io_pending(&ov);
    fake_qp_flush(rig_newest_qp());
    ok_status(CALL(qp, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 8), ==, 2);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpState, ==, WvQpStateError);
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_SUCCESS); /* again */
    fake_auto_flush(true);
    rig_release(qp);
}

/* Back to RESET and used again, from RTS and from ERROR. */
TEST(Modify__reset_is_as_new)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset }, error = { .QpState = WvQpStateError };
    IWVConnectQueuePair *qp = rig_qp();
    struct ibv_qp *verbs = rig_newest_qp();
    WV_COMPLETION completion[16];
    OVERLAPPED ov = rig_overlapped();

    for (int round = 0; round < 4; round++) {
        rig_to(qp, WvQpStateRts);
        for (UINT64 i = 0; i < 5; i++) {
            ok_status(CALL(qp, PostReceive, i, &sge, 1), WV_SUCCESS);
            ok_status(CALL(qp, Send, 10 + i, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
        }
        ok_uint(fake_qp_complete(verbs, FAKE_SEND, 2, IBV_WC_SUCCESS, 0), ==, 2);
        if (round & 1) {
            ok_status(CALL(qp, Modify, &error, 0, NULL), WV_SUCCESS);
            ok_status(CALL(qp, Send, 99, &sge, 1, 0, 0), WV_SUCCESS);
        }
        ok_status(rig_finish(CALL(qp, Modify, &reset, 0, &ov), &ov), WV_SUCCESS);
        ok_uint(CALL(cq, Poll, completion, 16), ==, round & 1 ? 10 : 2);
        ok_int(completion[0].Status, ==, WvWcSuccess);
        ok_uint(completion[0].WrId, ==, 10);
        ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_INVALID_PARAMETER);
        ok_status(CALL(qp, Send, 1, &sge, 1, 0, 0), WV_INVALID_PARAMETER);
        ok_uint(CALL(cq, Poll, completion, 16), ==, 0);
    }
    rig_release(qp);
}

/* Some devices throw the queue pair's completions away. */
TEST(Modify__reset_keeps_results)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset };
    IWVConnectQueuePair *qp;
    WV_COMPLETION completion[4];

    fake_device_quirks("fake_ib", FAKE_QUIRK_RESET_CLEANS);
    qp = rig_qp();
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_SUCCESS);
    ok_status(CALL(qp, Send, 2, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    ok_status(CALL(qp, Send, 3, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    ok_uint(fake_qp_complete(rig_newest_qp(), FAKE_SEND, 1, IBV_WC_SUCCESS, 0), ==, 1);
    ok_uint(fake_qp_complete(rig_newest_qp(), FAKE_RECV, 1, IBV_WC_SUCCESS, 8), ==, 1);
    ok_status(CALL(qp, Modify, &reset, 0, NULL), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 4), ==, 2);
    for (int i = 0; i < 2; i++) {
        ok_int(completion[i].Status, ==, WvWcSuccess);
        ok_uint(completion[i].WrId, ==, 2 - (UINT64)i);
    }
    rig_release(qp);
}

/* Results that reset has made disappear were announced, those that come later are not. */
TEST(Modify__reset_and_the_next_wake_up)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset }, error = { .QpState = WvQpStateError };
    IWVConnectQueuePair *qp = rig_qp();
    OVERLAPPED ov = rig_overlapped(), next = rig_overlapped();
    WV_COMPLETION completion[4];

    rig_to(qp, WvQpStateRts);
    ok_status(rig_finish(CALL(qp, Modify, &error, 0, &ov), &ov), WV_SUCCESS);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_SUCCESS);
    ok_status(rig_finish(CALL(cq, Notify, WvCqNextCompletion, &next), &next), WV_SUCCESS);
    ok_status(rig_finish(CALL(qp, Modify, &reset, 0, &ov), &ov), WV_SUCCESS);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, PostReceive, 2, &sge, 1), WV_SUCCESS);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_uint(fake_qp_complete(rig_newest_qp(), FAKE_RECV, 1, IBV_WC_SUCCESS, 1), ==, 1);
    ok_status(CALL(cq, GetOverlappedResult, &next, NULL, TRUE), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 4), ==, 1);
    ok_uint(completion[0].WrId, ==, 2);
    rig_release(qp);
}

/* From ERROR while the flush is still on its way. */
TEST(Modify__reset_waits_for_the_flush)
{
    WV_QP_ATTRIBUTES reset = { .QpState = WvQpStateReset }, error = { .QpState = WvQpStateError };
    IWVConnectQueuePair *qp = rig_qp();
    OVERLAPPED ended = rig_overlapped(), ov = rig_overlapped();
    WV_COMPLETION completion[4];

    fake_auto_flush(false);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Send, 1, &sge, 1, 0, 0), WV_SUCCESS);
    ok_status(CALL(qp, Modify, &error, 0, &ended), WV_IO_PENDING);
    ok_status(CALL(qp, Modify, &reset, 0, &ov), WV_IO_PENDING);
    fake_qp_flush(rig_newest_qp());
    ok_status(CALL(qp, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(qp, GetOverlappedResult, &ended, NULL, FALSE), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 4), ==, 1);
    fake_auto_flush(true);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Send, 2, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    ok_uint(fake_qp_complete(rig_newest_qp(), FAKE_SEND, 1, IBV_WC_SUCCESS, 0), ==, 1);
    ok_uint(CALL(cq, Poll, completion, 4), ==, 1);
    ok_int(completion->Status, ==, WvWcSuccess);
    rig_release(qp);
}

TEST(release__with_modify_pending)
{
    WV_QP_ATTRIBUTES error = { .QpState = WvQpStateError }, reset = { .QpState = WvQpStateReset };
    IWVConnectQueuePair *qp = rig_qp();
    OVERLAPPED ov = rig_overlapped(), second = rig_overlapped();
    WV_COMPLETION completion[4];

    fake_auto_flush(false);
    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Send, 1, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    ok_status(CALL(qp, Modify, &error, 0, &ov), WV_IO_PENDING);
    ok_status(CALL(qp, Modify, &reset, 0, &second), WV_IO_PENDING);
    rig_release(qp);
    /* The OVERLAPPEDs are the application's again. */
    ok_status(CALL(device, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(device, GetOverlappedResult, &second, NULL, FALSE), WV_CANCELLED);
    ok_uint(CALL(cq, Poll, completion, 4), ==, 1);
    ok_int(completion->Status, ==, WvWcFlushed);
    fake_auto_flush(true);
}

/* ---- address vectors ---- */

/* RoCE hardware has each GID twice, for the version first that nobody routes. */
TEST(Modify__address_vector_of_roce_v2)
{
    WV_QP_ATTRIBUTES attributes = { .QpState = WvQpStateRtr, .PathMtu = 1024 };
    IWVConnectQueuePair *qp = rig_qp();
    UINT32 index = 99;

    fake_device_quirks("fake_ib", FAKE_QUIRK_ROCE_V1);
    rig_to(qp, WvQpStateInit);
    attributes.AddressVector.PortNumber = 1;
    attributes.AddressVector.Route.Valid = 1;
    ok_status(CALL(device, QueryGid, 1, 2, &attributes.AddressVector.Route.SGid), WV_SUCCESS);
    ok_status(CALL(device, FindGid, 1, &attributes.AddressVector.Route.SGid, &index), WV_SUCCESS);
    ok_uint(index, ==, 2);
    ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_SUCCESS);
    ok_uint(fake_qp_attr(rig_newest_qp(), IBV_QPS_RTR, NULL)->ah_attr.grh.sgid_index, ==, 3);
    rig_release(qp);
}

/* ---- posting ---- */

TEST(post__states)
{
    IWVConnectQueuePair *qp = rig_qp();
    WV_COMPLETION completion;

    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, Send, 1, &sge, 1, 0, 0), WV_INVALID_PARAMETER);
    rig_to(qp, WvQpStateInit);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_SUCCESS);
    ok_status(CALL(qp, Send, 1, &sge, 1, 0, 0), WV_INVALID_PARAMETER);
    rig_release(qp);
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 1);
    ok_int(completion.Status, ==, WvWcFlushed);
    ok_int(completion.Opcode, ==, WvReceive);
}

TEST(post__limits)
{
    WV_SGE many[64];
    WV_QP_ATTRIBUTES attributes;
    IWVConnectQueuePair *qp = rig_qp();
    const SIZE_T beyond = (SIZE_T)-1 / 2 + 1; /* on 64-bit it would be 0 if it were cut to 32 */

    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    for (size_t i = 0; i < 64; i++)
        many[i] = sge;
    ok_status(CALL(qp, Send, 1, many, attributes.SendSge + 1, 0, 0), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(qp, PostReceive, 1, many, attributes.ReceiveSge + 1), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(qp, Send, 1, many, beyond, 0, 0), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(qp, PostReceive, 1, many, beyond), WV_INSUFFICIENT_RESOURCES);
    many[0].Length = (UINT32)attributes.MaxInlineSend + 1;
    ok_status(CALL(qp, Send, 1, many, 1, WV_SEND_INLINE, 0), WV_INVALID_PARAMETER);
    ok_status(CALL(qp, Send, 1, NULL, 1, 0, 0), WV_INVALID_PARAMETER);
    for (int i = 0; i < 8; i++) {
        ok_status(CALL(qp, Send, 1, &sge, 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
        ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_SUCCESS);
    }
    ok_status(CALL(qp, Send, 1, &sge, 1, WV_SEND_SIGNALED, 0), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(qp, PostReceive, 1, &sge, 1), WV_INSUFFICIENT_RESOURCES);
    rig_release(qp);
}

TEST(post__each_request_on_the_device)
{
    IWVConnectQueuePair *qp = rig_qp();
    const struct fake_wr *wr;
    NET64 address = htobe64(0x1122334455667788);
    NET32 rkey = htonl(0xaabbccdd);
    WV_SGE eight = { .pAddress = memory, .Length = 8, .Lkey = 0x1234 };

    rig_to(qp, WvQpStateRts);
    ok_status(CALL(qp, Send, 1, &sge, 1, WV_SEND_SIGNALED | WV_SEND_IMMEDIATE | WV_SEND_SOLICITED, htonl(0x55)),
              WV_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
    ok_int(wr->opcode, ==, IBV_WR_SEND_WITH_IMM);
    ok_uint(wr->imm_data, ==, htonl(0x55));
    ok_uint(wr->send_flags, ==, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    ok_uint(wr->sge[0].lkey, ==, 0x1234);

    ok_status(CALL(qp, Write, 2, &sge, 1, WV_SEND_FENCE | WV_SEND_INLINE, 0, address, rkey), WV_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
    ok_int(wr->opcode, ==, IBV_WR_RDMA_WRITE);
    ok_uint(wr->send_flags, ==, IBV_SEND_FENCE | IBV_SEND_INLINE);
    ok_uint(wr->remote_addr, ==, 0x1122334455667788);
    ok_uint(wr->rkey, ==, 0xaabbccdd);

    ok_status(CALL(qp, Write, 2, NULL, 0, WV_SEND_IMMEDIATE, htonl(7), 0, 0), WV_SUCCESS);
    ok_int(fake_log_find(FAKE_ibv_post_send, -1)->arg.wr.opcode, ==, IBV_WR_RDMA_WRITE_WITH_IMM);

    /* INLINE means nothing for a read, and programs set it. */
    ok_status(CALL(qp, Read, 3, NULL, 0, WV_SEND_INLINE, address, rkey), WV_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
    ok_int(wr->opcode, ==, IBV_WR_RDMA_READ);
    ok_uint(wr->send_flags & IBV_SEND_INLINE, ==, 0);

    ok_status(CALL(qp, CompareExchange, 4, &eight, WV_SEND_SIGNALED, htobe64(5), htobe64(6), address, rkey),
              WV_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
    ok_int(wr->opcode, ==, IBV_WR_ATOMIC_CMP_AND_SWP);
    ok_uint(wr->compare_add, ==, 5);
    ok_uint(wr->swap, ==, 6);
    ok_status(CALL(qp, FetchAdd, 5, &eight, WV_SEND_SIGNALED, htobe64(9), address, rkey), WV_SUCCESS);
    wr = &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
    ok_int(wr->opcode, ==, IBV_WR_ATOMIC_FETCH_AND_ADD);
    ok_uint(wr->compare_add, ==, 9);
    ok_uint(wr->remote_addr, ==, 0x1122334455667788);
    rig_release(qp);
}

/* Only what asks for it completes, unless the queue pair says all do. */
TEST(post__signalled_or_not)
{
    for (int all = 0; all < 2; all++) {
        WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
        WV_COMPLETION completion[8];
        IWVConnectQueuePair *qp;
        struct ibv_qp *verbs;

        shape.QpFlags = all ? WV_QP_SIGNAL_SENDS : 0;
        ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
        verbs = rig_newest_qp();
        rig_to(qp, WvQpStateRts);
        for (int round = 0; round < 10; round++) {
            for (UINT64 i = 0; i < 4; i++) {
                ok_status(CALL(qp, Send, i, &sge, 1, i == 2 ? WV_SEND_SIGNALED : 0, 0), WV_SUCCESS);
                ok_uint(fake_qp_complete(verbs, FAKE_SEND, 1, IBV_WC_SUCCESS, 0), ==, 1);
            }
            ok_uint(CALL(cq, Poll, completion, 8), ==, all ? 4 : 1);
            ok_uint(completion[0].WrId, ==, all ? 0 : 2);
        }
        rig_release(qp);
    }
}

TEST(PostSend__list_stops_at_the_first_failure)
{
    WV_SEND_REQUEST requests[4];
    WV_SEND_REQUEST copy[4], *failed = NULL;
    IWVConnectQueuePair *qp = rig_qp();

    rig_to(qp, WvQpStateRts);
    memset(requests, 0, sizeof(requests));
    for (int i = 0; i < 4; i++) {
        requests[i].WrId = (UINT64)i;
        requests[i].pNext = i < 3 ? &requests[i + 1] : NULL;
        requests[i].pSgl = &sge;
        requests[i].nSge = 1;
        requests[i].Opcode = i == 2 ? WvBindWindow : WvSend;
        requests[i].Flags = WV_SEND_SIGNALED;
    }
    memcpy(copy, requests, sizeof(copy));
    ok_status(CALL(qp, PostSend, requests, &failed), WV_INVALID_PARAMETER);
    ok_ptr(failed, ==, &requests[2]);
    ok_uint(fake_qp_posted(rig_newest_qp(), FAKE_SEND), ==, 2);
    ok_status(CALL(qp, PostSend, requests, NULL), WV_INVALID_PARAMETER);
    requests[2].Opcode = (WV_OPCODE)77;
    ok_status(CALL(qp, PostSend, &requests[2], &failed), WV_INVALID_PARAMETER);
    requests[2].Opcode = WvRdmaRead;
    failed = NULL;
    ok_status(CALL(qp, PostSend, &requests[2], &failed), WV_SUCCESS);
    ok_ptr(failed, ==, NULL);
    ok_status(CALL(qp, PostSend, NULL, NULL), WV_SUCCESS);
    requests[2].Opcode = WvBindWindow;
    ok(!memcmp(copy, requests, sizeof(copy)));
    rig_release(qp);
}
