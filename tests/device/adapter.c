/* SPDX-License-Identifier: MIT */
/* Start-up, addresses, adapters, and making objects. ndspi-helpers.md 1, ndspi-v2.md 3 and 5. */
#include "holdings.h"
#include "session.h"

#include <stdlib.h>

/* Addresses that are nobody's: TEST-NET-3 and TEST-NET-1. */
#define NOWHERE "203.0.113.9"

static bool list_has(const SOCKET_ADDRESS_LIST *list, const union endpoint *address)
{
    for (INT i = 0; i < list->iAddressCount; i++) {
        const union endpoint *entry = (const union endpoint *)list->Address[i].lpSockaddr;

        if (entry->any.sa_family != address->any.sa_family)
            continue;
        ok_int(list->Address[i].iSockaddrLength, ==, endpoint_size(address));
        ok_int(endpoint_port(entry), ==, 0);
        if (address->any.sa_family == AF_INET6
                ? !memcmp(&entry->v6.sin6_addr, &address->v6.sin6_addr, sizeof(entry->v6.sin6_addr))
                : entry->v4.sin_addr.s_addr == address->v4.sin_addr.s_addr)
            return true;
    }
    return false;
}

/* tests/lists: D23. */
ALONE(startup)
{
    union endpoint own = own_endpoint(), local;
    SIZE_T size = 0;
    void *adapter;

    harness_status_text = ndverbs_status_text;
    ok_status(NdCleanup(), ND_DEVICE_NOT_READY);
    ok_status(NdQueryAddressList(0, NULL, &size), ND_DEVICE_NOT_READY);
    size = sizeof(local);
    ok_status(NdResolveAddress(&own.any, endpoint_size(&own), &local.any, &size), ND_DEVICE_NOT_READY);
    ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_DEVICE_NOT_READY);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &own.any, endpoint_size(&own), &adapter), ND_DEVICE_NOT_READY);
    NdFlushProviders();

    for (int i = 0; i < 3; i++) {
        ok_status(NdStartup(), S_OK);
        ok_status(NdStartup(), S_OK);
        ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
        NdFlushProviders();
        ok_status(NdCleanup(), S_OK);
        ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
        ok_status(NdCleanup(), S_OK);
        ok_status(NdCleanup(), ND_DEVICE_NOT_READY);
    }
}

ALONE(address_list)
{
    union endpoint own = own_endpoint();
    SOCKET_ADDRESS_LIST *list;
    SIZE_T need = 0, size;

    ok_status(NdStartup(), S_OK);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, NULL, &need), ND_BUFFER_OVERFLOW);
    ok_uint(need, >, sizeof(SOCKET_ADDRESS_LIST));
    list = calloc(1, need);
    size = need - 1;
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, need);
    ok_int(list->iAddressCount, ==, 0);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size), ND_SUCCESS);
    ok(list_has(list, &own));
    if (runner_env("NDVERBS_ADDR6")) {
        union endpoint six = endpoint_from(runner_env("NDVERBS_ADDR6"));

        ok(list_has(list, &six));
    }
    free(list);
    ok_status(NdCleanup(), S_OK);
}

ALONE(check_address)
{
    union endpoint own = own_endpoint(), other = endpoint_from(NOWHERE);

    ok_status(NdStartup(), S_OK);
    ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
    endpoint_set_port(&own, 4711);
    ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
    ok_status(NdCheckAddress(&own.any, sizeof(struct sockaddr) - 1), ND_INVALID_PARAMETER_2);
    ok_status(NdCheckAddress(&other.any, endpoint_size(&other)), ND_INVALID_ADDRESS);
    own.any.sa_family = AF_UNIX;
    ok_status(NdCheckAddress(&own.any, sizeof(own.v4)), ND_INVALID_ADDRESS);
    own.any.sa_family = AF_INET6;
    ok_status(NdCheckAddress(&own.any, sizeof(struct sockaddr)), ND_INVALID_PARAMETER_2);
    ok_status(NdCleanup(), S_OK);
}

/* tests/lists: D28. */
ALONE(resolve_address)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");
    union endpoint own = own_endpoint(), remote = peer ? endpoint_from(peer) : own, local;
    SIZE_T size = sizeof(local);

    ok_status(NdStartup(), S_OK);
    memset(&local, 0, sizeof(local));
    ok_status(NdResolveAddress(&remote.any, endpoint_size(&remote), &local.any, &size), ND_SUCCESS);
    ok_uint(size, ==, endpoint_size(&own));
    ok_uint(local.v4.sin_addr.s_addr, ==, own.v4.sin_addr.s_addr);
    ok_int(endpoint_port(&local), ==, 0);

    size = 3;
    ok_status(NdResolveAddress(&remote.any, endpoint_size(&remote), &local.any, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, endpoint_size(&own));
    if (runner_machine()) {
        remote = endpoint_from(NOWHERE);
        size = sizeof(local);
        ok_status(NdResolveAddress(&remote.any, endpoint_size(&remote), &local.any, &size), ND_NETWORK_UNREACHABLE);
    }
    /* Reached by an address that is no RDMA address. */
    remote = endpoint_from("127.0.0.1");
    size = sizeof(local);
    ok_status(NdResolveAddress(&remote.any, endpoint_size(&remote), &local.any, &size), ND_INVALID_ADDRESS);
    ok_status(NdCleanup(), S_OK);
}

ALONE(open_adapter)
{
    union endpoint own = own_endpoint(), other = endpoint_from(NOWHERE), loopback = endpoint_from("127.0.0.1");
    IND2Adapter *one, *two;
    void *out;

    ok_status(NdStartup(), S_OK);
    out = &own;
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &other.any, endpoint_size(&other), &out), ND_INVALID_ADDRESS);
    ok_ptr(out, ==, NULL);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &loopback.any, endpoint_size(&loopback), &out), ND_INVALID_ADDRESS);
    out = &own;
    ok_status(NdOpenAdapter(&IID_IND2Listener, &own.any, endpoint_size(&own), &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &own.any, 3, &out), ND_INVALID_PARAMETER_2);
    ok(FAILED(NdOpenAdapter(&IID_IND2Adapter, &own.any, endpoint_size(&own), NULL)));

    /* Each call gives an adapter of its own. */
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &own.any, endpoint_size(&own), (void **)&one), ND_SUCCESS);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &own.any, endpoint_size(&own), (void **)&two), ND_SUCCESS);
    ok_ptr(one, !=, two);
    release_last(one);
    ok_status(NdCleanup(), S_OK);
    /* An open adapter stays usable. */
    ok_status(CALL(two, CreateOverlappedFile, &out), ND_SUCCESS);
    ok(CloseHandle(out));
    release_last(two);
}

/* tests/lists: A1, A32, D37, D81. */
ALONE(query)
{
    ND2_ADAPTER_INFO info[2];
    struct host host;
    ULONG size = 0;

    host_open(&host);
    ok_status(CALL(host.adapter, Query, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(info[0]));
    size = sizeof(info[0]) - 1;
    memset(info, 0x5a, sizeof(info));
    ok_status(CALL(host.adapter, Query, info, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(info[0]));
    ok_uint(info[0].InfoVersion, ==, 0x5a5a5a5a);
    ok_uint(info[0].MaxInitiatorSge, ==, 0x5a5a5a5a);

    size = sizeof(info);
    info[0].InfoVersion = ND_VERSION_2;
    ok_status(CALL(host.adapter, Query, info, &size), ND_SUCCESS);
    ok_uint(size, ==, sizeof(info[0]));
    ok_mem(info, &host.info, sizeof(info[0]));
    info[0].InfoVersion = ND_VERSION_1;
    ok_status(CALL(host.adapter, Query, info, &size), ND_SUCCESS);
    ok_uint(info[0].InfoVersion, ==, ND_VERSION_1);
    info[0].InfoVersion = 0x30000;
    ok_status(CALL(host.adapter, Query, info, &size), ND_NOT_SUPPORTED);

    /* What MS-MPI asks for at least, and the relations that programs rely on (A26, A27). */
    ok_uint(host.info.MaxCallerData, ==, 56);
    ok_uint(host.info.MaxCalleeData, ==, 148);
    ok_uint(host.info.MaxCompletionQueueDepth, >=, 160);
    ok_uint(host.info.MaxInitiatorQueueDepth, >=, 32);
    ok_uint(host.info.MaxReceiveQueueDepth, >=, 128);
    ok_uint(host.info.MaxReceiveQueueDepth, <=, host.info.MaxInitiatorQueueDepth);
    ok_uint(host.info.InlineRequestThreshold, <=, host.info.MaxInlineDataSize);
    ok_uint(host.info.MaxReadSge, <=, host.info.MaxInitiatorSge);
    ok_uint(host.info.MaxReadSge, >=, 1);
    ok_uint(host.info.MaxReceiveSge, >=, 1);
    ok_uint(host.info.MaxSharedReceiveQueueDepth, >=, 128);
    ok_uint(host.info.MaxTransferLength, >=, 1 << 20);
    ok_uint(host.info.MaxRegistrationSize, >=, 1 << 20);
    ok_uint(host.info.MaxWindowSize, ==, host.info.MaxRegistrationSize);
    ok_uint(host.info.MaxInboundReadLimit, >=, 1);
    ok_uint(host.info.MaxOutboundReadLimit, >=, 1);
    ok_uint(host.info.AdapterId, !=, 0);
    ok(host.info.AdapterFlags & ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED);
    ok(host.info.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED);
    runner_note("queues %u/%u, CQ %u, SGE %u/%u/%u, inline %u, reads %u/%u, transfer %u, flags 0x%x",
                host.info.MaxReceiveQueueDepth, host.info.MaxInitiatorQueueDepth, host.info.MaxCompletionQueueDepth,
                host.info.MaxReceiveSge, host.info.MaxInitiatorSge, host.info.MaxReadSge, host.info.MaxInlineDataSize,
                host.info.MaxInboundReadLimit, host.info.MaxOutboundReadLimit, host.info.MaxTransferLength,
                host.info.AdapterFlags);
    host_close(&host);
}

ALONE(adapter_addresses)
{
    union endpoint own = own_endpoint();
    SOCKET_ADDRESS_LIST *list;
    ULONG size = 0, need;
    struct host host;

    host_open(&host);
    ok_status(CALL(host.adapter, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    need = size;
    list = calloc(1, need);
    size = need - 1;
    ok_status(CALL(host.adapter, QueryAddressList, list, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, need);
    ok_status(CALL(host.adapter, QueryAddressList, list, &size), ND_SUCCESS);
    ok_uint(size, ==, need);
    ok(list_has(list, &own));
    if (runner_wire()) {
        union endpoint peer = endpoint_from(runner_env("NDVERBS_PEER_ADDR"));

        /* The other device's. */
        ok(!list_has(list, &peer));
    }
    free(list);
    host_close(&host);
}

/* Answers its own interface, its base, IUnknown, and nothing else. */
static void check_interface(void *object, const GUID *own, bool overlapped)
{
    IUnknown *unknown = object;
    void *out;

    ok_status(CALL(unknown, QueryInterface, own, &out), S_OK);
    ok_ptr(out, ==, object);
    ok_status(CALL(unknown, QueryInterface, &IID_IUnknown, &out), S_OK);
    ok_ptr(out, ==, object);
    ok_int(CALL(unknown, Release), ==, 2);
    ok_int(CALL(unknown, Release), ==, 1);
    out = &out;
    ok_status(CALL(unknown, QueryInterface, &IID_IND2Overlapped, &out), overlapped ? S_OK : E_NOINTERFACE);
    ok_ptr(out, ==, overlapped ? object : NULL);
    if (overlapped)
        ok_int(CALL(unknown, Release), ==, 1);
    out = &out;
    ok_status(CALL(unknown, QueryInterface, &IID_IND2Provider, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok(FAILED(CALL(unknown, QueryInterface, own, NULL)));
    ok_int(CALL(unknown, AddRef), ==, 2);
    ok_int(CALL(unknown, Release), ==, 1);
}

/* tests/lists: D39. */
ALONE(query_interface)
{
    IND2MemoryWindow *window;
    IND2Listener *listener;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(host.adapter, CreateListener, &IID_IND2Listener, host.file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
    check_interface(host.adapter, &IID_IND2Adapter, false);
    check_interface(link.cq, &IID_IND2CompletionQueue, true);
    check_interface(link.mr, &IID_IND2MemoryRegion, true);
    check_interface(link.qp, &IID_IND2QueuePair, false);
    check_interface(link.connector, &IID_IND2Connector, true);
    check_interface(listener, &IID_IND2Listener, true);
    check_interface(window, &IID_IND2MemoryWindow, false);
    release_last(window);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

#define CREATE_QP(iid, rq, sq, rd, sd, rs, ss, in) \
    CALL(host.adapter, CreateQueuePair, iid, (IUnknown *)(rq), (IUnknown *)(sq), NULL, rd, sd, rs, ss, in, (void **)&qp)

/* tests/lists: A16, D16. */
ALONE(create_bad_arguments)
{
    IND2CompletionQueue *cq, *none = NULL, *other_cq;
    struct host host, other;
    ND2_ADAPTER_INFO *info = &host.info;
    IND2QueuePair *qp;
    struct link link;
    void *out;

    host_open(&host);
    host_open(&other);
    link_make(&link, &host, NULL);
    cq = link.cq;
    out = &out;
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 0, 0, 0, &out),
              ND_INVALID_PARAMETER_3);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file,
                   info->MaxCompletionQueueDepth + 1, 0, 0, &out),
              ND_INVALID_PARAMETER_3);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, ~0u, 0, 0, &out),
              ND_INVALID_PARAMETER_3);
    ok_status(
        CALL(other.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, other.file, 16, 0, 0, (void **)&other_cq),
        ND_SUCCESS);

    ok_status(CREATE_QP(&IID_IND2QueuePair, none, cq, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, none, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_3);
    /* Objects that are no completion queue, or one of another adapter object. */
    ok_status(CREATE_QP(&IID_IND2QueuePair, link.connector, cq, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, link.mr, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_3);
    ok_status(CREATE_QP(&IID_IND2QueuePair, other_cq, cq, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, other_cq, 4, 4, 1, 1, 0), ND_INVALID_PARAMETER_3);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, info->MaxReceiveQueueDepth + 1, 4, 1, 1, 0),
              ND_INVALID_PARAMETER_5);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, 4, info->MaxInitiatorQueueDepth + 1, 1, 1, 0),
              ND_INVALID_PARAMETER_6);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, 4, 4, info->MaxReceiveSge + 1, 1, 0), ND_INVALID_PARAMETER_7);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, 4, 4, 1, info->MaxInitiatorSge + 1, 0), ND_INVALID_PARAMETER_8);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, 4, 4, 1, 1, info->MaxInlineDataSize + 1), ND_INVALID_PARAMETER_9);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, ~0u, ~0u, ~0u, ~0u, ~0u), ND_INVALID_PARAMETER_5);

    /* Foreign interfaces. */
    out = &out;
    ok_status(CREATE_QP(&IID_IND2Connector, cq, cq, 4, 4, 1, 1, 0), E_NOINTERFACE);
    ok_ptr(qp, ==, NULL);
    ok_status(CALL(host.adapter, CreateConnector, &IID_IND2Listener, host.file, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(CALL(host.adapter, CreateListener, &IID_IND2Connector, host.file, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(CALL(host.adapter, CreateMemoryRegion, &IID_IND2Adapter, host.file, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2Adapter, host.file, 4, 0, 0, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(CALL(host.adapter, CreateMemoryWindow, &IID_IND2MemoryRegion, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, NULL), ND_INVALID_PARAMETER_2);

    /* Out pointers and files. */
    ok(FAILED(CALL(host.adapter, CreateOverlappedFile, NULL)));
    ok(FAILED(CALL(host.adapter, CreateConnector, &IID_IND2Connector, host.file, NULL)));
    ok(FAILED(CALL(host.adapter, CreateListener, &IID_IND2Listener, host.file, NULL)));
    ok(FAILED(CALL(host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host.file, NULL)));
    ok(FAILED(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 4, 0, 0, NULL)));
    ok(FAILED(CALL(host.adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq, NULL, 4, 4, 1, 1,
                   0, NULL)));
    ok(FAILED(CALL(host.adapter, Query, &other.info, NULL)));
    ok_status(CALL(host.adapter, CreateConnector, &IID_IND2Connector, NULL, &out), ND_INVALID_HANDLE);
    ok_status(CALL(host.adapter, CreateConnector, &IID_IND2Connector, link.event, &out), ND_INVALID_HANDLE);
    ok_status(CALL(host.adapter, CreateConnector, &IID_IND2Connector, (HANDLE)(ULONG_PTR)0x12345678, &out),
              ND_INVALID_HANDLE);

    /* Nothing of this hurt anybody. */
    release_last(other_cq);
    host_close(&other);
    ok_status(CREATE_QP(&IID_IND2QueuePair, cq, cq, 4, 4, 1, 1, 0), ND_SUCCESS);
    release_last(qp);
    link_drop(&link);
    host_close(&host);
}

ALONE(create_unused_directions)
{
    struct host host;
    struct link link;
    IND2QueuePair *qp;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CREATE_QP(&IID_IND2QueuePair, link.cq, link.cq, 0, 4, 0, 1, 0), ND_SUCCESS);
    ok_status(CALL(qp, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
    release_last(qp);
    ok_status(CREATE_QP(&IID_IND2QueuePair, link.cq, link.cq, 4, 0, 1, 0, 0), ND_SUCCESS);
    ok_status(CALL(qp, Receive, NULL, NULL, 0), ND_SUCCESS);
    release_last(qp);
    link_drop(&link);
    host_close(&host);
}

/* The provider, as a program that walks the catalogue gets it. */
HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);
HRESULT DllCanUnloadNow(void);

ALONE(provider)
{
    union endpoint own = own_endpoint(), other = endpoint_from(NOWHERE);
    SOCKET_ADDRESS_LIST *list;
    ULONG size = 0, need;
    IND2Provider *provider;
    IND2Adapter *adapter;
    UINT64 id = 0;
    void *out = &out;

    ok_status(DllCanUnloadNow(), S_OK);
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IND2Provider, (void **)&provider), S_OK);
    ok_status(DllCanUnloadNow(), S_FALSE);
    ok_status(CALL(provider, QueryInterface, &IID_IND2Adapter, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(provider, QueryInterface, &IID_IND2Provider, &out), S_OK);
    CALL(provider, Release);
    ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    need = size;
    list = calloc(1, need);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_uint(size, ==, need);
    ok(list_has(list, &own));
    free(list);
    endpoint_set_port(&own, 4711);
    ok_status(CALL(provider, ResolveAddress, &own.any, endpoint_size(&own), &id), ND_SUCCESS);
    ok_status(CALL(provider, ResolveAddress, &other.any, endpoint_size(&other), &id), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, ResolveAddress, &own.any, endpoint_size(&own), &id), ND_SUCCESS);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, id ^ 0x5555, (void **)&adapter), ND_INVALID_PARAMETER);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Listener, id, (void **)&adapter), E_NOINTERFACE);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, id, (void **)&adapter), ND_SUCCESS);
    /* The provider may go first; the module stays while an object is there. */
    release_last(provider);
    ok_status(DllCanUnloadNow(), S_FALSE);
    release_last(adapter);
    ok_status(DllCanUnloadNow(), S_OK);
}

/* Queues take no descriptor each (D68). */
ALONE(many_queues_few_descriptors)
{
    IND2CompletionQueue *queues[100];
    struct host host;
    int before;

    host_open(&host);
    before = open_descriptors();
    for (int i = 0; i < 100; i++)
        ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 4, 0, 0,
                       (void **)&queues[i]),
                  ND_SUCCESS);
    ok_int(open_descriptors(), ==, before);
    for (int i = 0; i < 100; i++)
        release_last(queues[i]);
    host_close(&host);
}

/* A26: the limits hold all at once (NdQpMax, libfabric#7213) (A18, D3, D20). */
ALONE(queue_pair_of_all_maxima)
{
    IND2CompletionQueue *rcq, *scq;
    ND2_ADAPTER_INFO *info;
    IND2QueuePair *qp;
    struct host host;

    host_open(&host);
    info = &host.info;
    for (int i = 0; i < 2; i++) {
        ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file,
                       info->MaxCompletionQueueDepth, 0, 0, (void **)&rcq),
                  ND_SUCCESS);
        ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file,
                       info->MaxCompletionQueueDepth, 0, 0, (void **)&scq),
                  ND_SUCCESS);
        ok_status(CREATE_QP(&IID_IND2QueuePair, rcq, scq, info->MaxReceiveQueueDepth, info->MaxInitiatorQueueDepth,
                            info->MaxReceiveSge, info->MaxInitiatorSge, info->MaxInlineDataSize),
                  ND_SUCCESS);
        for (ULONG n = 0; n < info->MaxReceiveQueueDepth; n++)
            ok_status(CALL(qp, Receive, NULL, NULL, 0), ND_SUCCESS);
        ok_status(CALL(qp, Receive, NULL, NULL, 0), ND_NO_MORE_ENTRIES);
        /* Queues first: the pair keeps them alive, and the counts are the application's own. */
        release_last(scq);
        release_last(rcq);
        release_last(qp);
    }
    host_close(&host);
}

/* tests/lists: A33. */
ALONE(completion_queue_resize)
{
    struct host host;
    struct link link;
    bool resizes;

    host_open(&host);
    resizes = host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
    /* The pages describe each of the two flags with the other's words; nothing in the interface moderates. */
    ok_uint(host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED, ==, 0);
    link_make(&link, &host, NULL);
    if (!resizes) {
        /* Up to what the device's queue was made with it is the library's own business. */
        ok_status(CALL(link.cq, Resize, host.info.MaxCompletionQueueDepth), ND_NOT_SUPPORTED);
    } else {
        ok_status(CALL(link.cq, Resize, 0), ND_INVALID_PARAMETER);
        ok_status(CALL(link.cq, Resize, host.info.MaxCompletionQueueDepth + 1), ND_INVALID_PARAMETER);
        ok_status(CALL(link.cq, Resize, host.info.MaxCompletionQueueDepth), ND_SUCCESS);
        /* Results that are waiting survive it, and bound it from below. */
        for (uintptr_t i = 0; i < 8; i++)
            ok_status(CALL(link.qp, Receive, (void *)(i + 1), NULL, 0), ND_SUCCESS);
        ok_status(CALL(link.qp, Flush), ND_SUCCESS);
        ok_status(finish(link.cq, CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), &link.ov), ND_SUCCESS);
        while (CALL(link.cq, Resize, 7) == ND_SUCCESS)
            harness_yield(); /* until all eight are there */
        ok_status(CALL(link.cq, Resize, 7), ND_BUFFER_OVERFLOW);
        ok_status(CALL(link.cq, Resize, 8), ND_SUCCESS);
        for (uintptr_t i = 0; i < 8; i++)
            ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, i + 1);
        result_none(link.cq);
    }
    link_drop(&link);
    host_close(&host);
}

/* tests/lists: A34. */
ALONE(notify_affinity)
{
    USHORT group = 7;
    KAFFINITY affinity = 0;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    hr = CALL(link.cq, GetNotifyAffinity, &group, &affinity);
    if (hr != ND_NOT_SUPPORTED) {
        ok_status(hr, ND_SUCCESS);
        ok_int(group, ==, 0);
        ok_uint(affinity, !=, 0);
        ok_status(CALL(link.cq, GetNotifyAffinity, NULL, NULL), ND_INVALID_PARAMETER);
    }
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
