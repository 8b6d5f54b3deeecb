/* SPDX-License-Identifier: MIT */
/* The way in, the provider and the device. */
#include "rig.h"

#include <arpa/inet.h>

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

TEST(WvGetObject__ids)
{
    void *out = &out;

    ok_status(WvGetObject(&IID_IWVDevice, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(WvGetObject(&IID_IUnknown, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(WvGetObject(&IID_IWVProvider, NULL), E_POINTER);
    ok_status(WvGetObject(&IID_IWVProvider, &out), WV_SUCCESS);
    ok_status(DllCanUnloadNow(), S_FALSE);
    ok(CALL((IWVProvider *)out, GetFileHandle) != CALL(provider, GetFileHandle));
    rig_release(out);
}

TEST(WvGetObject__no_memory)
{
    for (unsigned n = 1;; n++) {
        void *out = &out;
        HRESULT hr;

        fake_alloc_fail(n);
        hr = WvGetObject(&IID_IWVProvider, &out);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(hr, WV_SUCCESS);
            rig_release(out);
            break;
        }
        ok_status(hr, WV_NO_MEMORY);
        ok_ptr(out, ==, NULL);
    }
}

TEST(QueryInterface__each_object)
{
    IWVConnectQueuePair *qp = rig_qp();
    IWVConnectEndpoint *endpoint;
    INdvConnectEndpoint *extension;
    IWVQueuePair *base;
    void *out;

    ok_status(CALL(provider, QueryInterface, &IID_IUnknown, &out), WV_SUCCESS);
    ok_uint(CALL((IUnknown *)out, Release), ==, 1);
    ok_status(CALL(provider, QueryInterface, &IID_IWVOverlapped, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(device, QueryInterface, &IID_IWVDevice, &out), WV_SUCCESS);
    ok_uint(CALL((IUnknown *)out, Release), ==, 1);
    ok_status(CALL(device, QueryInterface, &IID_IWVDevice, NULL), E_POINTER);
    ok_status(CALL(pd, QueryInterface, &IID_IWVDevice, &out), E_NOINTERFACE);
    ok_status(CALL(cq, QueryInterface, &IID_IWVOverlapped, &out), WV_SUCCESS);
    ok_uint(CALL((IUnknown *)out, Release), ==, 1);
    ok_status(CALL(qp, QueryInterface, &IID_IWVQueuePair, (void **)&base), WV_SUCCESS);
    ok_status(CALL(base, QueryInterface, &IID_IWVConnectQueuePair, &out), WV_SUCCESS);
    ok_uint(CALL((IUnknown *)out, Release), ==, 2);
    ok_status(CALL(base, QueryInterface, &IID_IWVDatagramQueuePair, &out), E_NOINTERFACE);
    ok_uint(CALL(base, Release), ==, 1);
    rig_release(qp);

    ok_status(CALL(provider, CreateConnectEndpoint, &endpoint), WV_SUCCESS);
    ok_status(CALL(endpoint, QueryInterface, &IID_IWVEndpoint, &out), WV_SUCCESS);
    ok_uint(CALL((IUnknown *)out, Release), ==, 1);
    ok_status(CALL(endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_status(CALL(extension, QueryInterface, &IID_IWVConnectEndpoint, &out), WV_SUCCESS);
    ok_ptr(out, ==, endpoint);
    ok_uint(CALL(endpoint, Release), ==, 2);
    ok_uint(CALL(extension, AddRef), ==, 3);
    ok_uint(CALL(extension, Release), ==, 2);
    ok_uint(CALL(extension, Release), ==, 1);
    rig_release(endpoint);
}

TEST(QueryDeviceList__sizes)
{
    NET64 guids[8];
    SIZE_T size = 0;

    ok_status(CALL(provider, QueryDeviceList, NULL, &size), WV_SUCCESS);
    ok_uint(size, ==, 2 * sizeof(NET64));
    memset(guids, 0, sizeof(guids));
    size = sizeof(NET64);
    ok_status(CALL(provider, QueryDeviceList, guids, &size), WV_SUCCESS);
    ok_uint(size, ==, 2 * sizeof(NET64));
    ok_uint(guids[0], !=, 0);
    ok_uint(guids[1], ==, 0);
    size = sizeof(guids);
    ok_status(CALL(provider, QueryDeviceList, guids, &size), WV_SUCCESS);
    ok_uint(size, ==, 2 * sizeof(NET64));
    ok(guids[0] == rig_guid("10.1.1.1") || guids[1] == rig_guid("10.1.1.1"));
    ok_status(CALL(provider, QueryDeviceList, guids, NULL), WV_INVALID_PARAMETER);
    fake_fail(FAKE_ibv_get_device_list, 1, ENOMEM);
    ok_status(CALL(provider, QueryDeviceList, guids, &size), WV_INSUFFICIENT_RESOURCES);
}

TEST(QueryDevice__unknown_and_known)
{
    WV_DEVICE_ATTRIBUTES attributes;

    ok_status(CALL(provider, QueryDevice, 0x1234, &attributes), WV_FILE_NOT_FOUND);
    ok_status(CALL(provider, QueryDevice, rig_guid("10.1.2.1"), NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(provider, QueryDevice, rig_guid("10.1.2.1"), &attributes), WV_SUCCESS);
    ok_int(attributes.DeviceType, ==, WvDeviceIwarp);
}

/* The address list has the scope. */
TEST(TranslateAddress__link_local_without_a_scope)
{
    SOCKADDR_IN6 address = rig_v6("fe80::5", 0);
    WV_DEVICE_ADDRESS found;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_SUCCESS);
    ok_uint(found.DeviceGuid, ==, ibv_get_device_guid(fake_device("fake_ib")));
}

TEST(TranslateAddress__statuses)
{
    SOCKADDR_IN address = rig_v4("10.1.2.1", 80);
    WV_DEVICE_ADDRESS found;

    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_SUCCESS);
    ok_uint(found.PortNumber, ==, 1);
    ok_uint(found.Pkey, ==, 0xffff);
    ok_uint(found.DeviceGuid, ==, ibv_get_device_guid(fake_device("fake_iw")));
    address = rig_v4("0.0.0.0", 0);
    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_INVALID_ADDRESS);
    address = rig_v4("127.0.0.1", 0);
    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_INVALID_ADDRESS);
    address = rig_v4("10.9.9.9", 0);
    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_INVALID_ADDRESS);
    address.sin_family = 77;
    ok_status(CALL(provider, TranslateAddress, (SOCKADDR *)&address, &found), WV_INVALID_ADDRESS);
    ok_status(CALL(provider, TranslateAddress, NULL, &found), WV_INVALID_PARAMETER);
}

TEST(OpenDevice__statuses)
{
    WV_DEVICE_ATTRIBUTES attributes;
    IWVDevice *made = device;

    ok_status(CALL(provider, OpenDevice, 0x1234, &made), WV_FILE_NOT_FOUND);
    ok_ptr(made, ==, NULL);
    ok_status(CALL(provider, OpenDevice, 0x1234, NULL), WV_INVALID_PARAMETER);
    fake_fail(FAKE_ibv_alloc_pd, 1, ENOMEM);
    made = device;
    ok_status(CALL(provider, OpenDevice, rig_guid("10.1.1.1"), &made), WV_INSUFFICIENT_RESOURCES);
    ok_ptr(made, ==, NULL);
    fake_fail(FAKE_ibv_alloc_pd, 1, ENOMEM);
    ok_status(CALL(provider, QueryDevice, rig_guid("10.1.1.1"), &attributes), WV_INSUFFICIENT_RESOURCES);
}

TEST(Device__no_address_at_all)
{
    IWVDevice *other;

    fake_device_add("fake_bare", IBV_TRANSPORT_IB, 2);
    fake_device_guid("fake_bare", 0x1122334455667788);
    other = rig_open(ibv_get_device_guid(fake_device("fake_bare")));
    rig_release(other);
}

TEST(Device_Query__what_the_device_says)
{
    const struct ibv_device_attr *attr = fake_device_attr("fake_ib");
    WV_DEVICE_ATTRIBUTES attributes;

    memset(&attributes, 0xa5, sizeof(attributes));
    ok_status(CALL(device, Query, &attributes), WV_SUCCESS);
    ok_uint(attributes.NodeGuid, ==, attr->node_guid);
    ok_uint(attributes.MaxQp, ==, attr->max_qp);
    ok_uint(attributes.MaxMr, ==, attr->max_mr);
    ok_uint(attributes.MaxQpWr, <=, 8192);
    ok_uint(attributes.MaxQpWr, >, 0);
    ok_uint(attributes.MaxCqEntries, <=, 16384);
    ok_uint(attributes.MaxInlineSend, >, 0);
    ok_uint(attributes.MaxFmr, ==, 0);
    ok_int(attributes.DeviceType, ==, WvDeviceInfiniband);
    ok_uint(attributes.PhysPortCount, ==, 1);
    ok(attributes.CapabilityFlags & WV_DEVICE_BATCH_NOTIFY_CQ);
    ok_status(CALL(device, Query, NULL), WV_INVALID_PARAMETER);
}

TEST(Device_ports_and_tables)
{
    WV_PORT_ATTRIBUTES port;
    WV_GID gid, past;
    UINT16 index16;
    DWORD index;
    NET16 pkey;

    ok_status(CALL(device, QueryPort, 1, &port), WV_SUCCESS);
    ok_int(port.State, ==, WvPortActive);
    ok_uint(port.Transport, ==, WvPortTransportRdmaoe);
    ok_uint(port.ActiveMtu, ==, 128u << fake_port_attr("fake_ib", 1)->active_mtu);
    ok_status(CALL(device, QueryPort, 2, &port), E_HANDLE);
    ok_status(CALL(device, QueryPort, 0, &port), E_HANDLE);
    ok_status(CALL(device, QueryPort, 1, NULL), WV_INVALID_PARAMETER);

    ok_status(CALL(device, QueryGid, 1, 0, &gid), WV_SUCCESS);
    ok_status(CALL(device, QueryGid, 1, port.GidTableLength, &past), WV_INVALID_PARAMETER_2);
    ok_status(CALL(device, QueryGid, 9, 0, &past), WV_INVALID_PARAMETER_1);
    ok_status(CALL(device, QueryGid, 1, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(device, FindGid, 1, &gid, &index), WV_SUCCESS);
    ok_uint(index, ==, 0);
    memset(&gid, 0x77, sizeof(gid));
    ok_status(CALL(device, FindGid, 1, &gid, &index), WV_INVALID_PARAMETER_2);
    ok_status(CALL(device, FindGid, 3, &gid, &index), WV_INVALID_PARAMETER_1);
    ok_status(CALL(device, FindGid, 1, &gid, NULL), WV_INVALID_PARAMETER);

    ok_status(CALL(device, QueryPkey, 1, 0, &pkey), WV_SUCCESS);
    ok_uint(pkey, ==, 0xffff);
    ok_status(CALL(device, QueryPkey, 1, 0xffff, &pkey), WV_INVALID_PARAMETER_2);
    ok_status(CALL(device, QueryPkey, 2, 0, &pkey), WV_INVALID_PARAMETER_1);
    ok_status(CALL(device, QueryPkey, 1, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(device, FindPkey, 1, 0xffff, &index16), WV_SUCCESS);
    ok_uint(index16, ==, 0);
    ok_status(CALL(device, FindPkey, 1, htons(0x7fff), &index16), WV_INVALID_ADDRESS);
    ok_status(CALL(device, FindPkey, 2, 0xffff, &index16), WV_INVALID_PARAMETER_1);
    ok_status(CALL(device, FindPkey, 1, 0xffff, NULL), WV_INVALID_PARAMETER);
}

/* A device without a table of partition keys, as siw: what TranslateAddress gives for its addresses is found. */
TEST(Device_pkeys__without_a_table)
{
    WV_PORT_ATTRIBUTES port;
    UINT16 index = 9;
    NET16 pkey = 0;

    fake_port_attr("fake_ib", 1)->pkey_tbl_len = 0;
    ok_status(CALL(device, QueryPort, 1, &port), WV_SUCCESS);
    ok_uint(port.PkeyTableLength, ==, 1);
    ok_status(CALL(device, QueryPkey, 1, 0, &pkey), WV_SUCCESS);
    ok_uint(pkey, ==, 0xffff);
    ok_status(CALL(device, FindPkey, 1, 0xffff, &index), WV_SUCCESS);
    ok_uint(index, ==, 0);
    ok_status(CALL(device, QueryPkey, 1, 1, &pkey), WV_INVALID_PARAMETER_2);
    ok_status(CALL(device, FindPkey, 1, 0x7fff, &index), WV_INVALID_ADDRESS);
}

TEST(CreateCompletionQueue__arguments)
{
    IWVCompletionQueue *made = cq;
    WV_DEVICE_ATTRIBUTES attributes;
    SIZE_T entries = 0;

    ok_status(CALL(device, CreateCompletionQueue, &entries, &made), WV_INVALID_PARAMETER);
    ok_ptr(made, ==, NULL);
    ok_status(CALL(device, CreateCompletionQueue, NULL, &made), WV_INVALID_PARAMETER);
    ok_status(CALL(device, CreateCompletionQueue, &entries, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(device, Query, &attributes), WV_SUCCESS);
    entries = attributes.MaxCqEntries + 1;
    ok_status(CALL(device, CreateCompletionQueue, &entries, &made), WV_INSUFFICIENT_RESOURCES);
    entries = 4;
    fake_fail(FAKE_ibv_create_cq, 1, ENOMEM);
    fake_fail(FAKE_ibv_create_cq, 2, ENOMEM);
    ok_status(CALL(device, CreateCompletionQueue, &entries, &made), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(device, AllocateProtectionDomain, NULL), WV_INVALID_PARAMETER);
}

/* ---- Notify ---- */

TEST(Device_Notify__kept_and_delivered)
{
    OVERLAPPED ov = rig_overlapped(), other = rig_overlapped();
    DWORD flags = 0, other_flags = 0, bytes = 0;

    /* Nobody waits: the events are kept together. */
    fake_async_port("fake_ib", 1, IBV_EVENT_PORT_ERR);
    fake_async_port("fake_ib", 1, IBV_EVENT_GID_CHANGE);
    ok_eventually(fake_count(FAKE_ibv_ack_async_event) == 2);
    ok_status(CALL(device, Notify, 1, &ov, &flags), WV_IO_PENDING);
    ok_status(CALL(device, GetOverlappedResult, &ov, &bytes, TRUE), WV_SUCCESS);
    ok_uint(flags & WV_EVENT_STATE, !=, 0);
    ok_uint(bytes, ==, sizeof(DWORD));

    /* Whatever else is kept goes first; then two wait and both are told the same. */
    while (CALL(device, Notify, 1, &ov, &flags), CALL(device, GetOverlappedResult, &ov, NULL, FALSE) != WV_PENDING)
        ;
    ok_status(CALL(device, Notify, 1, &other, &other_flags), WV_IO_PENDING);
    ok_io_pending(&other);
    fake_async_port("fake_ib", 1, IBV_EVENT_PKEY_CHANGE);
    ok_status(CALL(device, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(device, GetOverlappedResult, &other, NULL, TRUE), WV_SUCCESS);
    ok_uint(flags, ==, WV_EVENT_PARTITION);
    ok_uint(other_flags, ==, WV_EVENT_PARTITION);
}

TEST(Device_Notify__each_event)
{
    static const struct {
        enum ibv_event_type type;
        DWORD flag;
    } events[] = {
        { IBV_EVENT_PORT_ERR, WV_EVENT_STATE },
        { IBV_EVENT_PORT_ACTIVE, WV_EVENT_STATE },
        { IBV_EVENT_GID_CHANGE, WV_EVENT_ADDRESS },
        { IBV_EVENT_LID_CHANGE, WV_EVENT_LINK_ADDRESS },
        { IBV_EVENT_PKEY_CHANGE, WV_EVENT_PARTITION },
        { IBV_EVENT_SM_CHANGE, WV_EVENT_MANAGEMENT },
        { IBV_EVENT_CLIENT_REREGISTER, WV_EVENT_MANAGEMENT },
    };

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        OVERLAPPED ov = rig_overlapped();
        DWORD flags = 0;

        ok_status(CALL(device, Notify, 1, &ov, &flags), WV_IO_PENDING);
        fake_async_port("fake_ib", 1, events[i].type);
        ok_status(CALL(device, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
        ok_uint(flags, ==, events[i].flag);
    }
}

TEST(Device_Notify__arguments_cancel_release)
{
    OVERLAPPED ov = rig_overlapped(), last = rig_overlapped();
    IWVDevice *other = rig_open(rig_guid("10.1.1.1"));
    DWORD flags = 0x55, bytes = 0;

    ok_status(CALL(device, Notify, 2, &ov, &flags), E_HANDLE);
    ok_status(CALL(device, Notify, 1, &ov, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(device, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(device, Notify, 1, &ov, &flags), WV_IO_PENDING);
    ok_status(CALL(device, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(device, GetOverlappedResult, &ov, &bytes, FALSE), WV_CANCELLED);
    ok_status(CALL(device, Notify, 1, &ov, &flags), WV_IO_PENDING);
    ok(CancelIoEx(CALL(provider, GetFileHandle), &ov));
    ok_status(CALL(device, GetOverlappedResult, &ov, &bytes, FALSE), WV_CANCELLED);
    ok_uint(flags, ==, 0x55);
    ok_status(CALL(other, Notify, 1, &last, &flags), WV_IO_PENDING);
    rig_release(other);
    ok_status(CALL(device, GetOverlappedResult, &last, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(device, GetOverlappedResult, NULL, NULL, FALSE), WV_INVALID_PARAMETER);
}

static DWORD WINAPI make_event(void *argument)
{
    (void)argument;
    fake_async_port("fake_ib", 1, IBV_EVENT_SM_CHANGE);
    return 0;
}

/* Without an OVERLAPPED the call waits, and the application's port sees nothing of it. */
TEST(Device_Notify__waits)
{
    HANDLE port = CreateIoCompletionPort(CALL(provider, GetFileHandle), NULL, 7, 0), thread;
    OVERLAPPED *dequeued;
    ULONG_PTR key;
    DWORD flags = 0, bytes;

    thread = CreateThread(NULL, 0, make_event, NULL, 0, NULL);
    ok_status(CALL(device, Notify, 1, NULL, &flags), WV_SUCCESS);
    ok_uint(flags, ==, WV_EVENT_MANAGEMENT);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok_ptr(dequeued, ==, NULL);
    ok(CloseHandle(thread));
    ok(CloseHandle(port));
}

TEST(Device__removed)
{
    IWVConnectQueuePair *qp = rig_qp();
    OVERLAPPED ov = rig_overlapped(), notify = rig_overlapped();
    WV_DEVICE_ATTRIBUTES attributes;
    WV_QP_ATTRIBUTES qp_attributes;
    IWVCompletionQueue *made;
    IWVProtectionDomain *domain;
    IWVMemoryWindow *window;
    WV_MEMORY_KEYS keys;
    WV_PORT_ATTRIBUTES port;
    SIZE_T entries = 4;
    DWORD flags = 0;
    char memory[64];

    ok_status(CALL(device, Notify, 1, &ov, &flags), WV_IO_PENDING);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &notify), WV_IO_PENDING);
    fake_device_remove("fake_ib");
    ok_status(CALL(device, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    ok_uint(flags, ==, WV_EVENT_ERROR);
    ok_status(CALL(device, Notify, 1, &ov, &flags), WV_DEVICE_REMOVED);
    ok_status(CALL(device, Notify, 1, NULL, &flags), WV_DEVICE_REMOVED);
    ok_status(CALL(cq, GetOverlappedResult, &notify, NULL, TRUE), WV_DEVICE_REMOVED);
    ok_status(CALL(device, Query, &attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(device, QueryPort, 1, &port), WV_DEVICE_REMOVED);
    ok_status(CALL(device, CreateCompletionQueue, &entries, &made), WV_DEVICE_REMOVED);
    ok_status(CALL(device, AllocateProtectionDomain, &domain), WV_DEVICE_REMOVED);
    ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), 0, NULL, &keys), WV_DEVICE_REMOVED);
    ok_status(CALL(pd, AllocateMemoryWindow, &window), WV_DEVICE_REMOVED);
    ok_status(CALL(qp, Query, &qp_attributes), WV_DEVICE_REMOVED);
    memset(&qp_attributes, 0, sizeof(qp_attributes));
    ok_status(CALL(qp, Modify, &qp_attributes, 0, NULL), WV_DEVICE_REMOVED);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &notify), WV_DEVICE_REMOVED);
    rig_release(qp);
}
