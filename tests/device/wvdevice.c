/* SPDX-License-Identifier: MIT */
/* WinVerbs' provider, device and protection domain: what they tell, what they make and what they refuse. winverbs.md 3, 4, 6.1. */
#include "wvside.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

ALONE(get_object)
{
    IWVProvider *one, *two;
    void *other = &one;

    harness_status_text = ndverbs_status_text;
    ok_status(WvGetObject(&IID_IWVProvider, (void **)&one), WV_SUCCESS);
    ok_status(WvGetObject(&IID_IWVProvider, (void **)&two), WV_SUCCESS);
    ok_ptr(one, !=, two);
    ok(CALL(one, GetFileHandle) != CALL(two, GetFileHandle));
    ok_status(WvGetObject(&IID_IWVDevice, &other), E_NOINTERFACE);
    ok_ptr(other, ==, NULL);
    ok_status(WvGetObject(&IID_IWVProvider, NULL), E_POINTER);
    release_last(two);
    release_last(one);
}

/* Its own interface, IUnknown and the bases; nothing else. */
#define ok_interfaces(object, own, base)                                                   \
    do {                                                                                   \
        void *out_;                                                                        \
        const GUID *good_[] = { &(own), &IID_IUnknown, (base) };                           \
        for (size_t i_ = 0; i_ < 3 && good_[i_]; i_++) {                                   \
            ok_status(CALL((object), QueryInterface, good_[i_], &out_), WV_SUCCESS);       \
            ok_int(CALL((IUnknown *)out_, Release), ==, 1);                                \
        }                                                                                  \
        out_ = &out_;                                                                      \
        ok_status(CALL((object), QueryInterface, &IID_IND2Adapter, &out_), E_NOINTERFACE); \
        ok_ptr(out_, ==, NULL);                                                            \
        ok_status(CALL((object), QueryInterface, &(own), NULL), E_POINTER);                \
    } while (0)

/* Every object tells the result of any request of its provider, and may be asked to cancel what it has. */
#define ok_overlapped(object, ov)                                                               \
    do {                                                                                        \
        DWORD bytes_ = 99;                                                                      \
        ok_status(CALL((object), GetOverlappedResult, (ov), &bytes_, FALSE), WV_SUCCESS);       \
        ok_uint(bytes_, ==, 8);                                                                 \
        ok_status(CALL((object), GetOverlappedResult, (ov), NULL, TRUE), WV_SUCCESS);           \
        ok_status(CALL((object), GetOverlappedResult, NULL, NULL, TRUE), WV_INVALID_PARAMETER); \
        ok_status(CALL((object), CancelOverlappedRequests), WV_SUCCESS);                        \
    } while (0)

ALONE(interfaces)
{
    struct wvhost host;
    struct wvlink link;
    IWVDatagramEndpoint *datagram;
    INdvConnectEndpoint *extension;
    WV_MEMORY_KEYS keys;
    IWVMemoryWindow *window;
    IWVSharedReceiveQueue *srq;
    void *back;

    wv_open(&host);
    wv_make(&link, &host, NULL);
    datagram = wv_make_datagram(&host);
    ok_status(CALL(host.pd, RegisterMemory, link.buffer, 64, 0, &link.ov, &keys), WV_SUCCESS);
    ok_interfaces(host.provider, IID_IWVProvider, NULL);
    ok_interfaces(host.device, IID_IWVDevice, &IID_IWVOverlapped);
    ok_interfaces(host.pd, IID_IWVProtectionDomain, &IID_IWVOverlapped);
    ok_interfaces(link.cq, IID_IWVCompletionQueue, &IID_IWVOverlapped);
    ok_interfaces(link.qp, IID_IWVConnectQueuePair, &IID_IWVQueuePair);
    ok_interfaces(link.endpoint, IID_IWVConnectEndpoint, &IID_IWVEndpoint);
    ok_interfaces(datagram, IID_IWVDatagramEndpoint, &IID_IWVEndpoint);
    ok_overlapped(host.device, &link.ov);
    ok_overlapped(host.pd, &link.ov);
    ok_overlapped(link.cq, &link.ov);
    ok_overlapped(link.qp, &link.ov);
    ok_overlapped(link.endpoint, &link.ov);
    ok_overlapped(datagram, &link.ov);
    ok_status(CALL(link.endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    ok_status(CALL(extension, QueryInterface, &IID_IWVConnectEndpoint, &back), WV_SUCCESS);
    ok_ptr(back, ==, link.endpoint);
    ok_status(CALL(extension, QueryInterface, &IID_IWVDevice, &back), E_NOINTERFACE);
    ok_int(CALL(extension, Release), ==, 2);
    ok_int(CALL(link.endpoint, Release), ==, 1);
    if (host.attributes.MaxMw) {
        ok_status(CALL(host.pd, AllocateMemoryWindow, &window), WV_SUCCESS);
        ok_interfaces(window, IID_IWVMemoryWindow, NULL);
        release_last(window);
    }
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, 1, 0, &srq), WV_SUCCESS);
    ok_interfaces(srq, IID_IWVSharedReceiveQueue, &IID_IWVOverlapped);
    ok_overlapped(srq, &link.ov);
    release_last(srq);
    ok_status(CALL(host.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_status(CALL(host.pd, DeregisterMemory, link.keys.Lkey, NULL), WV_SUCCESS);
    /* Children pin their parents: any order of releases. */
    release_last(host.provider);
    release_last(host.device);
    release_last(host.pd);
    release_last(link.cq);
    ok_int(wv_state(link.qp), ==, WvQpStateInit);
    release_last(link.qp);
    release_last(link.endpoint);
    release_last(datagram);
    ok(CloseHandle(link.event));
    free(link.buffer);
}

ALONE(device_list)
{
    NET64 guids[64];
    SIZE_T size = 0, needed;
    WV_DEVICE_ATTRIBUTES attributes;
    struct wvhost host;
    IWVDevice *device = (IWVDevice *)&host;
    bool found = false;

    wv_open(&host);
    ok_status(CALL(host.provider, QueryDeviceList, NULL, &size), WV_SUCCESS);
    ok_uint(size, >=, sizeof(guids[0]));
    needed = size;
    size = needed - 1;
    ok_status(CALL(host.provider, QueryDeviceList, guids, &size), WV_SUCCESS);
    ok_uint(size, ==, needed);
    size = sizeof(guids);
    ok_status(CALL(host.provider, QueryDeviceList, guids, &size), WV_SUCCESS);
    ok_uint(size, ==, needed);
    for (size_t i = 0; i < size / sizeof(guids[0]); i++) {
        ok_status(CALL(host.provider, QueryDevice, guids[i], &attributes), WV_SUCCESS);
        ok_uint(attributes.NodeGuid, ==, guids[i]);
        if (guids[i] != host.where.DeviceGuid)
            continue;
        found = true;
        ok_mem(&attributes, &host.attributes, sizeof(attributes));
    }
    ok(found);
    ok_status(CALL(host.provider, QueryDeviceList, guids, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.provider, QueryDevice, ~guids[0], &attributes), WV_FILE_NOT_FOUND);
    ok_status(CALL(host.provider, QueryDevice, guids[0], NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.provider, OpenDevice, ~guids[0], &device), WV_FILE_NOT_FOUND);
    ok_ptr(device, ==, NULL);
    ok_status(CALL(host.provider, OpenDevice, guids[0], NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.provider, CreateConnectEndpoint, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.provider, CreateDatagramEndpoint, NULL), WV_INVALID_PARAMETER);
    wv_close(&host);
}

ALONE(translate_address)
{
    union endpoint other = endpoint_from("192.0.2.1"), any = endpoint_from("0.0.0.0"), own = own_endpoint();
    WV_DEVICE_ADDRESS where;
    struct wvhost host;

    wv_open(&host);
    ok_uint(host.where.PortNumber, >=, 1);
    ok_uint(host.where.PortNumber, <=, host.attributes.PhysPortCount);
    ok_uint(host.where.DeviceGuid, ==, host.attributes.NodeGuid);
    endpoint_set_port(&own, 1234); /* has no meaning here */
    ok_status(CALL(host.provider, TranslateAddress, &own.any, &where), WV_SUCCESS);
    ok_mem(&where, &host.where, sizeof(where));
    ok_status(CALL(host.provider, TranslateAddress, &other.any, &where), WV_INVALID_ADDRESS);
    ok_status(CALL(host.provider, TranslateAddress, &any.any, &where), WV_INVALID_ADDRESS);
    ok_status(CALL(host.provider, TranslateAddress, NULL, &where), WV_INVALID_PARAMETER);
    ok_status(CALL(host.provider, TranslateAddress, &own.any, NULL), WV_INVALID_PARAMETER);
    wv_close(&host);
}

/* The same device as Network Direct sees it. */
ALONE(device_query)
{
    struct wvhost host;
    struct host nd;
    const WV_DEVICE_ATTRIBUTES *attributes = &host.attributes;

    wv_open(&host);
    host_open(&nd);
    ok_int(attributes->DeviceType, ==, runner_iwarp() ? WvDeviceIwarp : WvDeviceInfiniband);
    ok(attributes->CapabilityFlags & WV_DEVICE_BATCH_NOTIFY_CQ);
    ok_uint(attributes->MaxQpWr, ==, min(nd.info.MaxInitiatorQueueDepth, nd.info.MaxReceiveQueueDepth));
    ok_uint(attributes->MaxCqEntries, ==, nd.info.MaxCompletionQueueDepth);
    ok_uint(attributes->MaxSrqWr, ==, nd.info.MaxSharedReceiveQueueDepth);
    ok_uint(attributes->MaxMrSize, ==, nd.info.MaxRegistrationSize);
    ok_uint(attributes->MaxQpResponderResources, ==, nd.info.MaxInboundReadLimit);
    ok_uint(attributes->MaxQpInitiatorDepth, ==, nd.info.MaxOutboundReadLimit);
    ok_uint(attributes->MaxInlineSend, ==, nd.info.MaxInlineDataSize);
    ok_uint(attributes->PhysPortCount, >=, 1);
    ok_uint(attributes->MaxPkeys, <=, 65535);
    ok_uint(attributes->MaxFmr, ==, 0);
    if (!runner_iwarp())
        ok_uint(attributes->MaxAh, >, 0);
    ok_status(CALL(host.device, Query, NULL), WV_INVALID_PARAMETER);
    host_close(&nd);
    wv_close(&host);
}

ALONE(ports_and_tables)
{
    static const WV_GID zero, odd = { { 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } };
    struct wvhost host;
    WV_PORT_ATTRIBUTES port;
    WV_GID gid, same;
    DWORD index;
    UINT16 place;
    NET16 pkey;
    UINT8 n;

    wv_open(&host);
    n = host.where.PortNumber;
    ok_status(CALL(host.device, QueryPort, n, &port), WV_SUCCESS);
    ok_int(port.State, ==, WvPortActive);
    ok_int(port.Transport, ==, runner_iwarp() ? WvPortTransportIwarp : WvPortTransportRdmaoe);
    ok_uint(port.ActiveMtu, >=, 256);
    ok_uint(port.ActiveMtu, <=, port.MaxMtu);
    ok_uint(port.GidTableLength, >=, 1);
    for (DWORD i = 0; i < port.GidTableLength && i < 32; i++) {
        ok_status(CALL(host.device, QueryGid, n, i, &gid), WV_SUCCESS);
        ok_status(CALL(host.device, FindGid, n, &gid, &index), WV_SUCCESS);
        ok_uint(index, <=, i); /* the first that equals */
        ok_status(CALL(host.device, QueryGid, n, index, &same), WV_SUCCESS);
        ok_mem(&gid, &same, sizeof(gid));
        if (i == 0)
            ok(memcmp(&gid, &zero, sizeof(gid)) != 0);
    }
    same = odd;
    ok_status(CALL(host.device, FindGid, n, &same, &index), WV_INVALID_PARAMETER_2);
    ok_status(CALL(host.device, FindGid, 99, &same, &index), WV_INVALID_PARAMETER_1);
    ok_status(CALL(host.device, FindGid, n, NULL, &index), WV_INVALID_PARAMETER);
    ok_status(CALL(host.device, QueryGid, n, port.GidTableLength, &gid), WV_INVALID_PARAMETER_2);
    ok_status(CALL(host.device, QueryGid, 0, 0, &gid), WV_INVALID_PARAMETER_1);
    ok_status(CALL(host.device, QueryGid, n, 0, NULL), WV_INVALID_PARAMETER);
    for (UINT16 i = 0; i < port.PkeyTableLength && i < 16; i++) {
        ok_status(CALL(host.device, QueryPkey, n, i, &pkey), WV_SUCCESS);
        ok_status(CALL(host.device, FindPkey, n, pkey, &place), WV_SUCCESS);
        ok_uint(place, <=, i);
    }
    ok_status(CALL(host.device, FindPkey, n, host.where.Pkey, &place), WV_SUCCESS);
    ok_status(CALL(host.device, FindPkey, n, htons(0x7abc), &place), WV_INVALID_ADDRESS);
    ok_status(CALL(host.device, FindPkey, 99, host.where.Pkey, &place), WV_INVALID_PARAMETER_1);
    ok_status(CALL(host.device, FindPkey, n, host.where.Pkey, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.device, QueryPkey, n, port.PkeyTableLength, &pkey), WV_INVALID_PARAMETER_2);
    ok_status(CALL(host.device, QueryPkey, 0, 0, &pkey), WV_INVALID_PARAMETER_1);
    ok_status(CALL(host.device, QueryPkey, n, 0, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.device, QueryPort, 0, &port), E_HANDLE);
    ok_status(CALL(host.device, QueryPort, (UINT8)(host.attributes.PhysPortCount + 1), &port), E_HANDLE);
    ok_status(CALL(host.device, QueryPort, n, NULL), WV_INVALID_PARAMETER);
    wv_close(&host);
}

static DWORD WINAPI blocking_notify(void *argument)
{
    struct wvhost *host = argument;
    DWORD flags = 0;

    return CALL(host->device, Notify, host->where.PortNumber, NULL, &flags) == WV_SUCCESS ? flags : ~0u;
}

/* An address of the interface that comes and goes changes the table of GIDs. */
ALONE(port_notify)
{
    struct wvhost host;
    OVERLAPPED one, two;
    DWORD flags[2] = { 0, 0 }, bytes = 0, told;
    HANDLE event[2] = { event_auto(), event_auto() }, thread;
    UINT8 n;

    wv_open(&host);
    n = host.where.PortNumber;
    overlapped_rubbish(&one, event[0]);
    overlapped_rubbish(&two, event[1]);
    ok_status(CALL(host.device, Notify, 99, &one, flags), E_HANDLE);
    ok_status(CALL(host.device, Notify, n, &one, NULL), WV_INVALID_PARAMETER);
    one.hEvent = (HANDLE)(ULONG_PTR)0x7770;
    ok_status(CALL(host.device, Notify, n, &one, flags), WV_INVALID_HANDLE);
    one.hEvent = event[0];
    ok_status(CALL(host.device, Notify, n, &one, &flags[0]), WV_IO_PENDING);
    ok_status(CALL(host.device, GetOverlappedResult, &one, &bytes, FALSE), WV_PENDING);
    ok_status(CALL(host.device, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(host.device, GetOverlappedResult, &one, &bytes, TRUE), WV_CANCELLED);
    if (!runner_machine() || runner_iwarp()) /* siw has one GID for good */
        goto done;
    ok_status(CALL(host.device, Notify, n, &one, &flags[0]), WV_IO_PENDING);
    ok_status(CALL(host.device, Notify, n, &two, &flags[1]), WV_IO_PENDING);
    ok_int(runner_command("ip addr add 10.77.0.1/32 dev %s", runner_env("NDVERBS_NETDEV")), ==, 0);
    ok_status(CALL(host.device, GetOverlappedResult, &one, &bytes, TRUE), WV_SUCCESS);
    ok_uint(bytes, ==, sizeof(DWORD));
    ok_status(CALL(host.device, GetOverlappedResult, &two, &bytes, TRUE), WV_SUCCESS);
    ok_uint(flags[0], ==, WV_EVENT_ADDRESS);
    ok_uint(flags[1], ==, WV_EVENT_ADDRESS);
    /* Nobody asks: it is kept, or comes while the next one waits. */
    ok_int(runner_command("ip addr del 10.77.0.1/32 dev %s", runner_env("NDVERBS_NETDEV")), ==, 0);
    thread = CreateThread(NULL, 0, blocking_notify, &host, 0, NULL);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &told));
    ok_uint(told, ==, WV_EVENT_ADDRESS);
    ok(CloseHandle(thread));
done:
    for (int i = 0; i < 2; i++)
        ok(CloseHandle(event[i]));
    wv_close(&host);
}

/* ---- memory ---- */

/* The keys of both forms are right when the call returns: read, and used by the peer, before any completion was taken. */
ALONE(keys_before_completion)
{
    struct wvpair pair;
    WV_MEMORY_KEYS keys[2] = { { 0, 0 }, { 0, 0 } }, read;
    HANDLE event, port;
    OVERLAPPED ov, *dequeued;
    ULONG_PTR key;
    DWORD bytes;
    BYTE *memory = aligned_alloc(4096, 2 * 4096);

    wv_pair(&pair, NULL);
    ok(memory != NULL);
    memset(memory, 0, 2 * 4096);
    event = CreateEvent(NULL, TRUE, FALSE, NULL);
    port = CreateIoCompletionPort(CALL(pair.host[1].provider, GetFileHandle), NULL, 7, 0);
    overlapped_rubbish(&ov, event);
    for (int i = 0; i < 2; i++) {
        WV_SGE sge;
        HRESULT hr = CALL(pair.host[1].pd, RegisterMemory, memory + 4096 * i, 4096,
                          WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE, i ? &ov : NULL, &keys[i]);

        read = keys[i];
        ok(hr == WV_SUCCESS || (i && hr == WV_IO_PENDING));
        ok_uint(read.Lkey, !=, 0);
        ok_uint(read.Rkey, !=, 0);
        pattern_fill(pair.link[0].buffer, 1000, (ULONG)i);
        sge = wv_sge(&pair.link[0], 0, 1000);
        ok_status(CALL(pair.link[0].qp, Write, 10 + i, &sge, 1, 0, 0, wv_net64((UINT64)(uintptr_t)(memory + 4096 * i)),
                       read.Rkey),
                  WV_SUCCESS);
        ok_completion(pair.link[0].cq, WvRdmaWrite, WvWcSuccess, 10 + i);
        /* The local key: sent from there. */
        sge = (WV_SGE){ .pAddress = memory + 4096 * i, .Length = 1000, .Lkey = read.Lkey };
        wv_receive(&pair.link[0], 20 + i, 2000, 1000);
        wv_settle(); /* siw tells of a write before it has arrived */
        ok_status(CALL(pair.link[1].qp, Send, 30 + i, &sge, 1, 0, 0), WV_SUCCESS);
        ok_completion(pair.link[1].cq, WvSend, WvWcSuccess, 30 + i);
        ok_completion(pair.link[0].cq, WvReceive, WvWcSuccess, 20 + i);
        pattern_check(pair.link[0].buffer + 2000, 1000, (ULONG)i);
    }
    /* Success still delivers: event and packet, once. */
    ok_int(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok_ptr(dequeued, ==, &ov);
    ok_uint(bytes, ==, sizeof(WV_MEMORY_KEYS));
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok_status(CALL(pair.host[1].pd, DeregisterMemory, keys[0].Lkey, &ov), WV_SUCCESS);
    ok_status(CALL(pair.host[1].pd, DeregisterMemory, keys[1].Lkey, NULL), WV_SUCCESS);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0));
    ok(CloseHandle(port));
    ok(CloseHandle(event));
    wv_pair_drop(&pair);
    free(memory);
}

ALONE(memory_statuses)
{
    struct wvhost host;
    WV_MEMORY_KEYS keys;
    BYTE *memory = aligned_alloc(4096, 4096);
    void *unmapped = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IWVProtectionDomain *other;
    OVERLAPPED ov, before;

    wv_open(&host);
    overlapped_rubbish(&ov, NULL);
    before = ov;
    ok_status(CALL(host.pd, RegisterMemory, NULL, 1, 0, &ov, &keys), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, RegisterMemory, memory, 0, 0, &ov, &keys), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, RegisterMemory, memory, 1, 0, &ov, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, RegisterMemory, unmapped, 4096, WV_ACCESS_LOCAL_WRITE, &ov, &keys), WV_ACCESS_VIOLATION);
    ok_status(CALL(host.pd, DeregisterMemory, 0xabcdef, &ov), WV_NOT_FOUND);
    ok_mem(&ov, &before, sizeof(ov)); /* nothing was queued */
    ov.hEvent = (HANDLE)(ULONG_PTR)0x7770;
    ok_status(CALL(host.pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_INVALID_HANDLE);
    ok_status(CALL(host.pd, RegisterMemory, memory, 4096, WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    ok_status(CALL(host.pd, DeregisterMemory, keys.Lkey, &ov), WV_INVALID_HANDLE);
    ok_status(CALL(host.device, AllocateProtectionDomain, &other), WV_SUCCESS);
    ok_status(CALL(other, DeregisterMemory, keys.Lkey, NULL), WV_NOT_FOUND);
    ok_status(CALL(host.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_status(CALL(host.pd, DeregisterMemory, keys.Lkey, NULL), WV_NOT_FOUND);
    /* What is still registered goes with its domain. */
    ok_status(CALL(other, RegisterMemory, memory, 4096, WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    release_last(other);
    ok_status(CALL(host.device, AllocateProtectionDomain, NULL), WV_INVALID_PARAMETER);
    wv_close(&host);
    munmap(unmapped, 8192);
    free(memory);
}

ALONE(memory_lock_limit)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];
    struct rlimit limit = { 1 << 20, 1 << 20 };
    WV_MEMORY_KEYS keys;
    struct wvhost host;
    BYTE *memory = aligned_alloc(4096, 4 << 20);

    wv_open(&host);
    ok(memory != NULL);
    memset(memory, 1, 4 << 20);
    ok_int(syscall(SYS_capget, &header, data), ==, 0);
    data[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
    data[CAP_IPC_LOCK / 32].permitted &= ~(1u << (CAP_IPC_LOCK % 32));
    ok_int(syscall(SYS_capset, &header, data), ==, 0);
    ok_int(setrlimit(RLIMIT_MEMLOCK, &limit), ==, 0);
    ok_status(CALL(host.pd, RegisterMemory, memory, 4 << 20, WV_ACCESS_LOCAL_WRITE, NULL, &keys),
              WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(host.pd, RegisterMemory, memory, 4096, WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    ok_status(CALL(host.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    wv_close(&host);
    free(memory);
}

/* ---- address handles ---- */

ALONE(address_handles)
{
    WV_ADDRESS_VECTOR vector = { 0 };
    IWVAddressHandle *ah;
    struct wvhost host;
    ULONG_PTR key = 0;
    WV_GID gid;

    wv_open(&host);
    ok_status(CALL(host.device, QueryGid, host.where.PortNumber, 0, &gid), WV_SUCCESS);
    vector.Route.Valid = 1;
    vector.Route.HopLimit = 64;
    vector.Route.SGid = vector.Route.DGid = gid;
    vector.PortNumber = host.where.PortNumber;
    ok_status(CALL(host.pd, CreateAddressHandle, NULL, &ah, &key), WV_INVALID_PARAMETER);
    ok_ptr(ah, ==, NULL);
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, NULL, &key), WV_INVALID_PARAMETER);
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, NULL), WV_INVALID_PARAMETER);
    if (runner_iwarp()) {
        ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, &key), WV_NOT_SUPPORTED);
        wv_close(&host);
        return;
    }
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, &key), WV_SUCCESS);
    ok_uint(key, !=, 0);
    ok_interfaces(ah, IID_IWVAddressHandle, NULL);
    release_last(ah);
    memset(&vector.Route.SGid, 0x5a, sizeof(vector.Route.SGid));
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, &key), WV_INVALID_PARAMETER_2);
    vector.PortNumber = 99;
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, &key), WV_INVALID_PARAMETER_1);
    vector.PortNumber = host.where.PortNumber;
    vector.Route.Valid = 0; /* RoCE wants a route */
    ok_status(CALL(host.pd, CreateAddressHandle, &vector, &ah, &key), WV_INVALID_PARAMETER);
    wv_close(&host);
}

/* In a forked child the library is dead, and the parent's objects are not hurt. */
static void child(struct wvhost *host, struct wvlink *link, IWVSharedReceiveQueue *srq, IWVDatagramEndpoint *datagram,
                  IWVDatagramQueuePair *ud)
{
    WV_SGE sge = wv_sge(link, 0, 64);
    WV_CONNECT_PARAM param = wv_param(link);
    WV_DATAGRAM_PARAM datagram_param = { 0 };
    WV_DATAGRAM_ATTRIBUTES datagram_attributes = { 0 };
    WV_CONNECT_ATTRIBUTES connect_attributes;
    WV_DEVICE_ATTRIBUTES attributes;
    WV_DEVICE_ADDRESS where;
    union endpoint to = host->address;
    IWVProvider *provider;
    IWVDevice *device;
    IWVConnectEndpoint *endpoint;
    IWVDatagramEndpoint *other;
    SIZE_T out[3], size = 0;
    UINT8 route[64] = { 0 };
    IBAT_PATH_BLOB path;
    DWORD flags;

    ok_status(WvGetObject(&IID_IWVProvider, (void **)&provider), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, QueryDeviceList, NULL, &size), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, QueryDevice, host->where.DeviceGuid, &attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, OpenDevice, host->where.DeviceGuid, &device), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, TranslateAddress, &to.any, &where), WV_DEVICE_REMOVED);
    ok_status(IbatQueryPath(&to.any, &to.any, &path), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, CreateConnectEndpoint, &endpoint), WV_DEVICE_REMOVED);
    ok_status(CALL(host->provider, CreateDatagramEndpoint, &other), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, BindAddress, &to.any), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, Listen, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, GetRequest, datagram, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, Lookup, &to.any, NULL, 0, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, Accept, &datagram_param, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, Reject, NULL, 0), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, JoinMulticast, &to.any, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, LeaveMulticast, &to.any, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, Query, &datagram_attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(datagram, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, Query, &attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, Notify, 1, &link->ov, &flags), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(host->device, GetOverlappedResult, &link->ov, NULL, FALSE), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(host->pd, DeregisterMemory, link->keys.Lkey, NULL), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Notify, WvCqNextCompletion, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, Peek, &out[0]), WV_DEVICE_REMOVED);
    ok_status(CALL(link->cq, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(link->qp, PostReceive, 1, &sge, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(link->qp, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    if (ud)
        ok_status(CALL(ud, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, Query, &out[0], &out[1], &out[2]), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, PostReceive, 1, &sge, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(srq, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, BindAddress, &to.any), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Modify, WV_EP_OPTION_ROUTE, route, 64), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Listen, 1), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, GetRequest, link->endpoint, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Connect, link->qp, &to.any, &param, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Accept, link->qp, &param, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Reject, NULL, 0), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Disconnect, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, NotifyDisconnect, &link->ov), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, Query, &connect_attributes), WV_DEVICE_REMOVED);
    ok_status(CALL(link->endpoint, CancelOverlappedRequests), WV_DEVICE_REMOVED);
    ok_int(CALL(link->endpoint, Release), ==, 0);
    ok_int(CALL(link->qp, Release), ==, 0);
    _exit(33);
}

ALONE(forked_child)
{
    IWVDatagramQueuePair *ud = NULL;
    IWVDatagramEndpoint *datagram;
    IWVSharedReceiveQueue *srq;
    struct wvhost host;
    struct wvlink link;
    int status, pid;

    wv_open(&host);
    wv_make(&link, &host, NULL);
    ok_status(CALL(host.pd, CreateSharedReceiveQueue, 4, 1, 0, &srq), WV_SUCCESS);
    datagram = wv_make_datagram(&host);
    if (!runner_iwarp()) {
        WV_QP_CREATE create = { .pSendCq = link.cq, .pReceiveCq = link.cq, .QpType = WvQpTypeUd };

        create.SendDepth = create.ReceiveDepth = create.SendSge = create.ReceiveSge = 1;
        ok_status(CALL(host.pd, CreateDatagramQueuePair, &create, &ud), WV_SUCCESS);
    }
    pid = fork();
    ok_int(pid, >=, 0);
    if (pid == 0)
        child(&host, &link, srq, datagram, ud);
    status = runner_wait(pid);
    ok(WIFEXITED(status));
    ok_int(WEXITSTATUS(status), ==, 33);
    wv_receive(&link, 1, 0, 64);
    if (ud)
        release_last(ud);
    release_last(datagram);
    release_last(srq);
    wv_drop(&link);
    wv_close(&host);
}

RUNNER_MAIN
