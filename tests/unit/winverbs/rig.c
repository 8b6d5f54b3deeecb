/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <arpa/inet.h>

#include "core/address.h"
#include "core/engine.h"
#include "core/status.h"

IWVProvider *provider;
IWVDevice *device;
IWVProtectionDomain *pd;
IWVCompletionQueue *cq;

SOCKADDR_IN6 rig_v6(const char *text, USHORT port)
{
    SOCKADDR_IN6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

    ok_int(inet_pton(AF_INET6, text, &address.sin6_addr), ==, 1);
    return address;
}

SOCKADDR_IN rig_v4(const char *text, USHORT port)
{
    SOCKADDR_IN address = { .sin_family = AF_INET, .sin_port = htons(port) };

    ok_int(inet_pton(AF_INET, text, &address.sin_addr), ==, 1);
    return address;
}

NET64 rig_guid(const char *address)
{
    SOCKADDR_IN local = rig_v4(address, 0);
    WV_DEVICE_ADDRESS found;

    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&local, &found), WV_SUCCESS);
    return found.DeviceGuid;
}

IWVDevice *rig_open(NET64 guid)
{
    IWVDevice *made = NULL;

    ok_status(CALL(provider, OpenDevice, guid, &made), WV_SUCCESS);
    ok(made != NULL);
    return made;
}

void rig_setup(void)
{
    SIZE_T entries = 64;

    fake_reset();
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    fake_loop_test(engine_on_loop);
    address_list_invalidate();
    ok_status(WvGetObject(&IID_IWVProvider, (void **)&provider), WV_SUCCESS);
    device = rig_open(rig_guid("10.1.1.1"));
    ok_status(CALL(device, AllocateProtectionDomain, &pd), WV_SUCCESS);
    ok_status(CALL(device, CreateCompletionQueue, &entries, &cq), WV_SUCCESS);
    ok_uint(entries, >=, 64);
}

void rig_teardown(void)
{
    /* The order does not matter. */
    rig_release(provider);
    rig_release(device);
    rig_release(pd);
    rig_release(cq);
    ok_eventually(fake_live_objects() == 0); /* ids and contexts go on a worker */
    ok_status(DllCanUnloadNow(), S_OK);
    ok_str(fake_violations(), "");
}

void rig_release(void *object)
{
    ok_uint(CALL((IUnknown *)object, Release), ==, 0);
}

WV_QP_CREATE rig_shape(WV_QP_TYPE type)
{
    WV_QP_CREATE shape = { .pSendCq = cq,
                           .pReceiveCq = cq,
                           .Context = (VOID *)0x5150,
                           .SendDepth = 8,
                           .SendSge = 2,
                           .ReceiveDepth = 8,
                           .ReceiveSge = 2,
                           .MaxInlineSend = 64,
                           .InitiatorDepth = 1,
                           .ResponderResources = 1,
                           .QpType = type };

    return shape;
}

IWVConnectQueuePair *rig_qp(void)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeRc);
    IWVConnectQueuePair *qp = NULL;

    ok_status(CALL(pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    return qp;
}

struct ibv_qp *rig_newest_qp(void)
{
    return fake_object(FAKE_OBJ_QP, -1);
}

static WV_QP_ATTRIBUTES state_attributes(WV_QP_STATE state)
{
    WV_QP_ATTRIBUTES attributes;

    /* Only the fields of the transition may be looked at. */
    memset(&attributes, 0xa5, sizeof(attributes));
    attributes.QpState = state;
    switch (state) {
    case WvQpStateInit:
        attributes.AddressVector.PortNumber = 1;
        attributes.PkeyIndex = 0;
        attributes.AccessFlags = WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE;
        attributes.Qkey = htonl(0x11111111);
        break;
    case WvQpStateRtr:
        attributes.ReceivePsn = htonl(0x123456);
        attributes.DestinationQpn = htonl(0x000077);
        memset(&attributes.AddressVector, 0, sizeof(attributes.AddressVector));
        attributes.AddressVector.PortNumber = 1;
        attributes.AddressVector.DLid = htons(0x1234);
        attributes.ResponderResources = 1;
        attributes.RnrNakTimeout = 12;
        attributes.PathMtu = 1024;
        break;
    case WvQpStateRts:
        attributes.SendPsn = htonl(0x654321);
        attributes.SequenceErrorRetryCount = 5;
        attributes.RnrRetryCount = 3;
        attributes.LocalAckTimeout = 14;
        attributes.InitiatorDepth = 1;
        break;
    default:
        break;
    }
    return attributes;
}

void rig_to(IWVConnectQueuePair *qp, WV_QP_STATE state)
{
    for (int i = WvQpStateInit; i <= (int)state; i++) {
        WV_QP_ATTRIBUTES attributes = state_attributes((WV_QP_STATE)i);

        ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_ACCESS_FLAGS & (i == WvQpStateInit ? ~0u : 0), NULL),
                  WV_SUCCESS);
    }
}

IWVDatagramQueuePair *rig_ud(void)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeUd);
    IWVDatagramQueuePair *qp = NULL;

    ok_status(CALL(pd, CreateDatagramQueuePair, &shape, &qp), WV_SUCCESS);
    for (int i = WvQpStateInit; i <= WvQpStateRts; i++) {
        WV_QP_ATTRIBUTES attributes = state_attributes((WV_QP_STATE)i);

        ok_status(CALL(qp, Modify, &attributes, 0, NULL), WV_SUCCESS);
    }
    return qp;
}

OVERLAPPED rig_overlapped(void)
{
    OVERLAPPED ov;

    memset(&ov, 0xa5, sizeof(ov));
    ov.hEvent = NULL;
    return ov;
}

HRESULT rig_finish(HRESULT started, OVERLAPPED *ov)
{
    if (FAILED(started) && started != WV_IO_PENDING)
        return started;
    return CALL(device, GetOverlappedResult, ov, NULL, TRUE);
}

__attribute__((constructor)) static void name_statuses(void)
{
    harness_status_text = status_name;
}

HARNESS_MAIN
