/* SPDX-License-Identifier: MIT */
/* Every call that allocates, with each of its allocations failing in turn: a status, nothing made, nothing queued. */
#include "rig.h"

#include <arpa/inet.h>

#include "session.h"

static char memory[64];

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

typedef HRESULT (*maker)(void **out);

/* Until it succeeds; `wanted` has come at least once. */
static void starve(maker make, HRESULT wanted)
{
    bool seen = false;
    void *made;
    HRESULT hr;

    for (unsigned n = 1;; n++) {
        made = NULL;
        fake_alloc_fail(n);
        hr = make(&made);
        if (fake_alloc_pending())
            break;
        if (SUCCEEDED(hr)) { /* it can do without that one */
            if (made)
                rig_release(made);
            continue;
        }
        ok_msg(hr == WV_NO_MEMORY || hr == WV_INSUFFICIENT_RESOURCES, "0x%08x", (unsigned)hr);
        ok_ptr(made, ==, NULL);
        seen |= hr == wanted;
    }
    fake_alloc_clear();
    ok_status(hr, WV_SUCCESS);
    ok(seen);
    if (made)
        rig_release(made);
}

static NET64 guid;

static HRESULT query_device(void **out)
{
    WV_DEVICE_ATTRIBUTES attributes;

    (void)out;
    return CALL(provider, QueryDevice, guid, &attributes);
}

static HRESULT open_device(void **out)
{
    return CALL(provider, OpenDevice, guid, (IWVDevice **)out);
}

TEST(Provider__no_memory)
{
    guid = rig_guid("10.1.1.1");
    starve(query_device, WV_NO_MEMORY);
    starve(open_device, WV_NO_MEMORY);
}

static HRESULT connect_endpoint(void **out)
{
    return CALL(provider, CreateConnectEndpoint, (IWVConnectEndpoint **)out);
}

static HRESULT datagram_endpoint(void **out)
{
    return CALL(provider, CreateDatagramEndpoint, (IWVDatagramEndpoint **)out);
}

TEST(CreateEndpoint__no_memory)
{
    starve(connect_endpoint, WV_NO_MEMORY);
    starve(datagram_endpoint, WV_NO_MEMORY);
}

static HRESULT completion_queue(void **out)
{
    SIZE_T entries = 4;

    return CALL(device, CreateCompletionQueue, &entries, (IWVCompletionQueue **)out);
}

static HRESULT protection_domain(void **out)
{
    return CALL(device, AllocateProtectionDomain, (IWVProtectionDomain **)out);
}

TEST(Device__no_memory)
{
    starve(completion_queue, WV_NO_MEMORY);
    starve(protection_domain, WV_NO_MEMORY);
}

static HRESULT datagram_qp(void **out)
{
    WV_QP_CREATE shape = rig_shape(WvQpTypeUd);

    return CALL(pd, CreateDatagramQueuePair, &shape, (IWVDatagramQueuePair **)out);
}

static HRESULT shared_queue(void **out)
{
    return CALL(pd, CreateSharedReceiveQueue, 4, 1, 0, (IWVSharedReceiveQueue **)out);
}

TEST(ProtectionDomain__no_memory)
{
    starve(datagram_qp, WV_NO_MEMORY);
    starve(shared_queue, WV_NO_MEMORY);
}

/* ---- what is begun ---- */

#define MANY 4096

static OVERLAPPED ov, many[MANY];
static DWORD flags;
static unsigned begun;

/* Requests come from a pool of the provider's file: taken until it is empty and can get no more, also when those that other
 * threads still had in hand are back. */
static void empty_pool(void)
{
    begun = 0;
    for (int refused = 0; refused < 4;) {
        HRESULT hr;

        ok_uint(begun, <, MANY);
        many[begun] = rig_overlapped();
        fake_alloc_fail(1);
        hr = CALL(device, Notify, 1, &many[begun], &flags);
        fake_alloc_clear();
        if (hr == WV_IO_PENDING) {
            begun++;
            continue;
        }
        ok_status(hr, WV_INSUFFICIENT_RESOURCES);
        ok_uint((ULONG)many[begun].Internal, ==, 0xa5a5a5a5);
        refused++;
        Sleep(2);
    }
}

static void fill_pool(void)
{
    ok_status(CALL(device, CancelOverlappedRequests), WV_SUCCESS);
    for (unsigned i = 0; i < begun; i++)
        ok_status((HRESULT)many[i].Internal, WV_CANCELLED);
}

/* *ov untouched, and the object as usable as before. */
#define ok_refuses(object, method, ...)                                                      \
    do {                                                                                     \
        HRESULT refused_;                                                                    \
        ov = rig_overlapped();                                                               \
        for (unsigned n_ = 1; n_ < 3; n_++) { /* it may need something before its request */ \
            fake_alloc_fail(n_);                                                             \
            refused_ = CALL((object), method, ##__VA_ARGS__);                                \
            fake_alloc_clear();                                                              \
            if (refused_ == WV_INSUFFICIENT_RESOURCES)                                       \
                break;                                                                       \
        }                                                                                    \
        ok_status(refused_, WV_INSUFFICIENT_RESOURCES);                                      \
        ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);                                         \
    } while (0)

TEST(overlapped__no_memory)
{
    WV_QP_ATTRIBUTES init = { .QpState = WvQpStateInit }, error = { .QpState = WvQpStateError };
    IWVConnectQueuePair *qp = rig_qp();
    IWVDatagramQueuePair *ud = rig_ud();
    IWVSharedReceiveQueue *srq = NULL;
    WV_GID group = { { 0xff, 0x0e } };
    WV_MEMORY_KEYS keys, more;

    init.AddressVector.PortNumber = 1;
    rig_to(qp, WvQpStateInit);
    ok_status(CALL(pd, CreateSharedReceiveQueue, 4, 1, 0, &srq), WV_SUCCESS);
    ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), 0, NULL, &keys), WV_SUCCESS);
    empty_pool();
    ok_refuses(cq, Notify, WvCqNextCompletion, &ov);
    ok_refuses(cq, BatchNotify, 4, &ov);
    ok_refuses(srq, Notify, &ov);
    ok_refuses(pd, RegisterMemory, memory, sizeof(memory), 0, &ov, &more);
    ok_refuses(pd, DeregisterMemory, keys.Lkey, &ov);
    ok_refuses(qp, Modify, &init, 0, &ov);
    ok_refuses(qp, Modify, &error, 0, &ov);
    ok_refuses(ud, Modify, &error, 0, &ov);
    ok_refuses(ud, AttachMulticast, &group, 0, &ov);
    ok_status(CALL(ud, AttachMulticast, &group, 0, NULL), WV_SUCCESS);
    ok_refuses(ud, DetachMulticast, &group, 0, &ov);
    fill_pool();
    ok_status(CALL(ud, DetachMulticast, &group, 0, NULL), WV_SUCCESS);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_status(rig_finish(CALL(qp, Modify, &error, 0, &ov), &ov), WV_SUCCESS);
    rig_release(srq);
    rig_release(ud);
    rig_release(qp);
}

TEST(connect_endpoint__no_memory)
{
    INdvConnectEndpoint *extension;
    IWVConnectEndpoint *fresh;
    WV_CONNECT_PARAM none = { 0 };
    SOCKADDR_IN local;
    struct session s;

    fake_wire(true);
    session_listen(&s, "10.1.1.1");
    fresh = session_endpoint();
    local = s.address;
    local.sin_port = 0;
    ok_status(CALL(fresh, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    empty_pool();
    ok_refuses(s.listener, GetRequest, s.passive, &ov);
    ok_refuses(fresh, Connect, s.qp[0], (SOCKADDR *)&s.address, &s.param, &ov);
    fill_pool();
    session_request(&s);
    empty_pool();
    ok_refuses(s.passive, Accept, s.qp[1], &s.answer, &ov);
    fill_pool();
    session_accept(&s);
    empty_pool();
    ok_refuses(s.active, Accept, NULL, &none, &ov);
    fill_pool();
    session_complete(&s);
    empty_pool();
    ok_refuses(s.active, NotifyDisconnect, &ov);
    ok_refuses(s.active, Disconnect, &ov);
    ok_status(CALL(s.active, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_refuses(extension, DisconnectAndFlush, NULL, &ov);
    ok_uint(CALL(extension, Release), ==, 1);
    fill_pool();
    rig_release(fresh);
    session_send(&s, 0);
    session_end(&s);
}

TEST(datagram_endpoint__no_memory)
{
    IWVDatagramEndpoint *service, *datagram, *caller;
    WV_DATAGRAM_PARAM answer = { .Qpn = htonl(0x77) };
    struct fake_cm request = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
    SOCKADDR_IN group = rig_v4("224.2.3.4", 0), address = rig_v4("10.1.1.1", 0), peer = rig_v4("10.1.1.200", 7);
    OVERLAPPED get = rig_overlapped();

    ok_status(CALL(provider, CreateDatagramEndpoint, &service), WV_SUCCESS);
    ok_status(CALL(provider, CreateDatagramEndpoint, &datagram), WV_SUCCESS);
    ok_status(CALL(provider, CreateDatagramEndpoint, &caller), WV_SUCCESS);
    ok_status(CALL(caller, BindAddress, (SOCKADDR *)&address), WV_SUCCESS);
    ok_status(CALL(service, BindAddress, (SOCKADDR *)&address), WV_SUCCESS);
    ok_status(CALL(service, Listen, 1), WV_SUCCESS);
    empty_pool();
    ok_refuses(service, GetRequest, datagram, &ov);
    ok_refuses(caller, JoinMulticast, (SOCKADDR *)&group, &ov);
    ok_refuses(caller, LeaveMulticast, (SOCKADDR *)&group, &ov);
    ok_refuses(caller, Lookup, (SOCKADDR *)&peer, NULL, 0, &ov);
    fill_pool();
    ok_status(CALL(service, GetRequest, datagram, &get), WV_IO_PENDING);
    fake_cm_request(fake_object(FAKE_OBJ_ID, -1), &request, NULL);
    ok_status(CALL(service, GetOverlappedResult, &get, NULL, TRUE), WV_SUCCESS);
    empty_pool();
    ok_refuses(datagram, Accept, &answer, &ov);
    fill_pool();
    ok_status(rig_finish(CALL(datagram, Accept, &answer, &ov), &ov), WV_SUCCESS);
    rig_release(caller);
    rig_release(datagram);
    rig_release(service);
}
