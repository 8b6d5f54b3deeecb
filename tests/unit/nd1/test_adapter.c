/* SPDX-License-Identifier: MIT */

/* INDProvider, its class factory and INDAdapter: ndspi-v1.md sections 4 and 5. */

#include "side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static INDAdapter *adapter;

SETUP
{
    front_setup();
    adapter = side_adapter("10.1.1.1");
}

TEARDOWN
{
    front_release(adapter);
    front_teardown();
}

/* --- the class factory and the provider --- */

static INDProvider *make_provider(void)
{
    IClassFactory *factory;
    INDProvider *provider;

    ok_status(DllGetClassObject(NULL, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, (void **)&provider), S_OK);
    front_release(factory);
    return provider;
}

TEST(Factory_v1__rows)
{
    IClassFactory *factory;
    void *out = &out;

    ok_status(DllGetClassObject(NULL, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, &front_foreign, &IID_INDProvider, &out), CLASS_E_NOAGGREGATION);
    ok_ptr(out, ==, NULL);
    out = &out;
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDAdapter, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, NULL), E_POINTER);
    fake_alloc_fail(1);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, &out), E_OUTOFMEMORY);
    fake_alloc_clear();
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, &out), S_OK);
    front_release(factory);
    ok_status(DllCanUnloadNow(), S_FALSE);
    front_release(out);
}

TEST(Provider_v1_QueryAddressList__size_contract)
{
    SIZE_T needed = offsetof(SOCKET_ADDRESS_LIST, Address) + 3 * sizeof(SOCKET_ADDRESS) + 16 + 28 + 16, size = 0;
    SOCKET_ADDRESS_LIST *list = malloc(needed);
    INDProvider *provider = make_provider();

    ok_status(CALL(provider, QueryAddressList, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, needed);
    size = needed - 1;
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_BUFFER_OVERFLOW);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_int(list->iAddressCount, ==, 3);
    NdFlushProviders();
    fake_alloc_fail(1);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_NO_MEMORY);
    ok_uint(size, ==, 0);
    fake_alloc_clear();
    front_release(provider);
    free(list);
}

TEST(Provider_v1_OpenAdapter__rows)
{
    struct sockaddr_in address = front_v4("10.1.1.1"), foreign = front_v4("10.1.1.3");
    struct sockaddr_in6 address6 = front_v6("fd00:1:1::1");
    INDProvider *provider = make_provider();
    INDAdapter *out = adapter;

    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&address, 16, NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(provider, OpenAdapter, NULL, 16, &out), ND_INVALID_ADDRESS);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&address, 15, &out), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&foreign, 16, &out), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&address, 16, &out), ND_SUCCESS);
    front_release(out);
    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&address6, 28, &out), ND_SUCCESS);
    front_release(out);
    fake_fail(FAKE_ibv_alloc_pd, 1, ENOMEM);
    ok_status(CALL(provider, OpenAdapter, (struct sockaddr *)&address, 16, &out), ND_INSUFFICIENT_RESOURCES);
    ok_ptr(out, ==, NULL);
    front_release(provider);
}

/* Nothing leaks wherever memory ends. */
TEST(Provider_v1_OpenAdapter__out_of_memory)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    INDProvider *provider = make_provider();
    INDAdapter *out;
    unsigned n;

    for (n = 1;; n++) {
        HRESULT status;

        out = adapter;
        fake_alloc_fail(n);
        status = CALL(provider, OpenAdapter, (struct sockaddr *)&address, 16, &out);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok_status(status, ND_NO_MEMORY);
        ok_ptr(out, ==, NULL);
    }
    fake_alloc_clear();
    ok_uint(n, >, 2);
    front_release(out);
    front_release(provider);
}

TEST(NdOpenV1Adapter__rows)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    void *out = &out;

    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, 15, (INDAdapter **)&out), ND_INVALID_PARAMETER_2);
    ok_ptr(out, ==, NULL);
    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, 16, NULL), ND_INVALID_PARAMETER_4);
    address = front_v4("10.1.1.3");
    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, 16, (INDAdapter **)&out), ND_INVALID_ADDRESS);
    address = front_v4("10.1.1.1");
    fake_fail(FAKE_ibv_alloc_pd, 1, ENOMEM);
    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, 16, (INDAdapter **)&out), ND_INSUFFICIENT_RESOURCES);
    ok_ptr(out, ==, NULL);
    for (unsigned n = 1;; n++) { /* ND_NO_MEMORY wherever memory ends */
        HRESULT status;

        fake_alloc_fail(n);
        status = NdOpenV1Adapter((struct sockaddr *)&address, 16, (INDAdapter **)&out);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        if (status == ND_SUCCESS) /* what failed was not necessary */
            front_release(out);
        else
            ok_status(status, ND_NO_MEMORY);
    }
    fake_alloc_clear();
    front_release(out);
    ok_status(NdOpenAdapter(&IID_INDAdapter, (struct sockaddr *)&address, 16, &out), ND_SUCCESS);
    front_release(out);
}

/* Both versions have every address; each is listed once. */
TEST(NdQueryAddressList__versions)
{
    SIZE_T both = 0, one = 0, two = 0, none = 7;

    ok_status(NdQueryAddressList(0, NULL, &both), ND_BUFFER_OVERFLOW);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv2_ADDRESSES, NULL, &one), ND_BUFFER_OVERFLOW);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, NULL, &two), ND_BUFFER_OVERFLOW);
    ok_uint(one, ==, both);
    ok_uint(two, ==, both);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES | ND_QUERY_EXCLUDE_NDv2_ADDRESSES, NULL, &none),
              ND_SUCCESS);
    ok_uint(none, ==, 0);
}

/* --- every object --- */

static void check_unknown(void *object, REFIID own, bool overlapped)
{
    static const GUID foreign = { 1, 2, 3, { 4 } };
    const GUID *good[] = { &IID_IUnknown, own, &IID_INDOverlapped };
    IUnknown *unknown = object;
    void *out;

    for (int i = 0; i < (overlapped ? 3 : 2); i++) {
        out = NULL;
        ok_status(CALL(unknown, QueryInterface, good[i], &out), S_OK);
        ok_ptr(out, ==, object);
        ok_uint(CALL(unknown, Release), ==, 1);
    }
    out = object;
    ok_status(CALL(unknown, QueryInterface, &foreign, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    if (!overlapped)
        ok_status(CALL(unknown, QueryInterface, &IID_INDOverlapped, &out), E_NOINTERFACE);
    ok_status(CALL(unknown, QueryInterface, &IID_IND2Overlapped, &out), E_NOINTERFACE);
    ok_status(CALL(unknown, QueryInterface, own, NULL), E_POINTER);
    ok_uint(CALL(unknown, AddRef), ==, 2);
    ok_uint(CALL(unknown, Release), ==, 1);
}

TEST(v1_objects__interfaces_and_counts)
{
    INDProvider *provider = make_provider();
    INDListen *listen;
    struct side s;
    USHORT port;

    side_open(&s, "10.1.1.1");
    side_connector(&s);
    side_endpoint(&s);
    ok_status(CALL(s.adapter, Listen, 1, 6, 0, &port, &listen), ND_SUCCESS);
    check_unknown(provider, &IID_INDProvider, false);
    check_unknown(s.adapter, &IID_INDAdapter, true);
    check_unknown(s.cq, &IID_INDCompletionQueue, true);
    check_unknown(s.connector, &IID_INDConnector, true);
    check_unknown(s.endpoint, &IID_INDEndpoint, false);
    check_unknown(listen, &IID_INDListen, true);
    front_release(listen);
    front_release(provider);
    side_close(&s);
}

/* Parents first: the last Release of each returns 0, and the children go on. */
TEST(v1_objects__any_order_of_release)
{
    ND_RESULT result;
    struct side s;

    side_open(&s, "10.1.1.1");
    side_connector(&s);
    side_endpoint(&s);
    front_release(s.adapter);
    front_release(s.connector);
    ok_status(side_receive(&s, &result), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Flush), ND_SUCCESS);
    ok_result(&s, &result, ND_CANCELED);
    front_release(s.cq);
    front_release(s.endpoint); /* the region goes with the last of them */
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
}

/* --- the adapter --- */

TEST(Adapter_v1_Query__rows)
{
    ND_ADAPTER_INFO info;
    SIZE_T size = 0;

    ok_status(CALL(adapter, Query, 1, &info, NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(adapter, Query, 2, &info, &size), ND_NOT_SUPPORTED);
    ok_status(CALL(adapter, Query, ND_VERSION_2, &info, &size), ND_NOT_SUPPORTED);
    ok_status(CALL(adapter, Query, 1, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(info));
    memset(&info, 0x5a, sizeof(info));
    size = sizeof(info) - 1;
    ok_status(CALL(adapter, Query, 1, &info, &size), ND_BUFFER_OVERFLOW);
    ok_uint(info.MaxCalleeData, ==, (SIZE_T)0x5a5a5a5a5a5a5a5a);
    ok_status(CALL(adapter, Query, 1, &info, &size), ND_SUCCESS);
    ok_uint(info.MaxCallerData, ==, 56);
    ok_uint(info.MaxCalleeData, ==, 148);
    ok_uint(info.MaxInboundRequests, >, 0);
    ok_uint(info.MaxOutboundRequests, >, 0);
    ok_uint(info.MaxCqEntries, >, 0);
    ok_uint(info.MaxRegistrationSize, >, 0);
    ok_uint(info.MaxWindowSize, ==, info.MaxRegistrationSize);
    size = 2 * sizeof(info);
    ok_status(CALL(adapter, Query, 1, &info, &size), ND_SUCCESS);
    ok_uint(size, ==, sizeof(info));
}

TEST(Adapter_v1_Control__rows)
{
    OVERLAPPED ov;
    SIZE_T bytes = 7;
    char byte = 0;

    overlapped_fresh(&ov);
    ok_status(CALL(adapter, Control, 1, &byte, 1, &byte, 1, &bytes, &ov), ND_NOT_SUPPORTED);
    ok_uint(bytes, ==, 0);
    ok_untouched(&ov);
    ok_status(CALL(adapter, Control, 1, NULL, 0, NULL, 0, NULL, &ov), ND_NOT_SUPPORTED);
}

TEST(Adapter_v1_GetFileHandle__is_the_adapters)
{
    HANDLE handle = CALL(adapter, GetFileHandle), other = CreateEventW(NULL, FALSE, FALSE, NULL), again;
    HANDLE port = CreateIoCompletionPort(handle, NULL, 5, 0);

    ok(handle && handle != INVALID_HANDLE_VALUE);
    ok(port != NULL);
    ok_ptr(CALL(adapter, GetFileHandle), ==, handle);
    /* Not the application's to close, but harmless. */
    ok(CloseHandle(handle));
    CloseHandle(other);
    other = CreateEventW(NULL, FALSE, FALSE, NULL);
    again = CALL(adapter, GetFileHandle);
    ok(again && again != INVALID_HANDLE_VALUE && again != handle);
    ok_ptr(CALL(adapter, GetFileHandle), ==, again);
    ok(CreateIoCompletionPort(again, port, 6, 0) == NULL); /* the same file: it is attached already */
    ok(CloseHandle(other));
    CloseHandle(port);
}

TEST(Adapter_v1_GetFileHandle__closed_at_the_end)
{
    HANDLE first = CreateEventW(NULL, FALSE, FALSE, NULL), events[64];
    INDAdapter *second = side_adapter("10.1.1.1");

    ok(CloseHandle(CALL(second, GetFileHandle)));
    for (int i = 0; i < 64; i++) /* handles in the place of the closed one */
        events[i] = CreateEventW(NULL, TRUE, FALSE, NULL);
    front_release(second);
    for (int i = 0; i < 64; i++) {
        ok(SetEvent(events[i]));
        ok(CloseHandle(events[i]));
    }
    ok(CloseHandle(first));
}

/* Version 1: a request that is done at once queues its packet all the same, modes or not. */
TEST(v1_completions__always_a_packet)
{
    HANDLE handle = CALL(adapter, GetFileHandle);
    HANDLE port = CreateIoCompletionPort(handle, NULL, 77, 0);
    OVERLAPPED ov, *got;
    char buffer[64] = { 0 };
    ND_MR_HANDLE mr;
    ULONG_PTR key;
    SIZE_T size;
    DWORD bytes;

    for (int i = 0; i < 2; i++) {
        overlapped_fresh(&ov);
        ok_status(CALL(adapter, RegisterMemory, buffer, sizeof(buffer), &ov, &mr), ND_PENDING);
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
        ok_ptr(got, ==, &ov);
        ok_uint(key, ==, 77);
        ok_status(CALL(adapter, GetOverlappedResult, &ov, &size, FALSE), ND_SUCCESS);
        ok_uint(size, ==, 0);
        overlapped_fresh(&ov);
        ok_status(CALL(adapter, DeregisterMemory, mr, &ov), ND_PENDING);
        ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
        ok_ptr(got, ==, &ov);
        ok(SetFileCompletionNotificationModes(handle, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS));
    }
    /* Not with the low bit of the event. */
    overlapped_fresh(&ov);
    ov.hEvent = (HANDLE)((ULONG_PTR)CreateEventW(NULL, FALSE, FALSE, NULL) | 1);
    ok_status(CALL(adapter, RegisterMemory, buffer, sizeof(buffer), &ov, &mr), ND_PENDING);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
    ok_ptr(got, ==, NULL);
    ok_status(CALL(adapter, GetOverlappedResult, &ov, NULL, TRUE), ND_SUCCESS);
    CloseHandle((HANDLE)((ULONG_PTR)ov.hEvent & ~(ULONG_PTR)1));
    ok_status(CALL(adapter, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(adapter, GetOverlappedResult, NULL, &size, FALSE), ND_INVALID_PARAMETER);
    CloseHandle(port);
}

TEST(Adapter_v1_CreateCompletionQueue__rows)
{
    INDCompletionQueue *cq = (void *)adapter;
    ND_ADAPTER_INFO info;
    SIZE_T size = sizeof(info);

    ok_status(CALL(adapter, Query, 1, &info, &size), ND_SUCCESS);
    ok_status(CALL(adapter, CreateCompletionQueue, 16, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(adapter, CreateCompletionQueue, 0, &cq), ND_INVALID_PARAMETER);
    ok_ptr(cq, ==, NULL);
    ok_status(CALL(adapter, CreateCompletionQueue, info.MaxCqEntries + 1, &cq), ND_INVALID_PARAMETER);
    ok_status(CALL(adapter, CreateCompletionQueue, (SIZE_T)-1, &cq), ND_INVALID_PARAMETER);
    fake_fail_always(FAKE_ibv_create_cq, ENOMEM);
    ok_status(CALL(adapter, CreateCompletionQueue, 16, &cq), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_cq);
    fake_alloc_fail(1);
    ok_status(CALL(adapter, CreateCompletionQueue, 16, &cq), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_status(CALL(adapter, CreateCompletionQueue, info.MaxCqEntries, &cq), ND_SUCCESS);
    front_release(cq);
}

TEST(Adapter_v1_CreateConnector__rows)
{
    INDConnector *connector = (void *)adapter;

    ok_status(CALL(adapter, CreateConnector, NULL), ND_INVALID_PARAMETER_1);
    for (unsigned n = 1; n <= 2; n++) { /* ours and core's */
        fake_alloc_fail(n);
        ok_status(CALL(adapter, CreateConnector, &connector), ND_NO_MEMORY);
        fake_alloc_clear();
        ok_ptr(connector, ==, NULL);
    }
    ok_status(CALL(adapter, CreateConnector, &connector), ND_SUCCESS);
    front_release(connector);
}

TEST(CompletionQueue_v1__rows)
{
    INDCompletionQueue *cq;
    ND_ADAPTER_INFO info;
    SIZE_T size = sizeof(info);
    ND_RESULT *results[4];
    OVERLAPPED ov, first = { 0 };

    ok_status(CALL(adapter, Query, 1, &info, &size), ND_SUCCESS);
    ok_status(CALL(adapter, CreateCompletionQueue, 16, &cq), ND_SUCCESS);
    overlapped_fresh(&ov);
    ok_status(CALL(cq, Resize, 0), ND_INVALID_PARAMETER);
    ok_status(CALL(cq, Resize, info.MaxCqEntries + 1), ND_INVALID_PARAMETER);
    ok_status(CALL(cq, Resize, 20), ND_SUCCESS);
    ok_status(CALL(cq, Notify, 3, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER);
    ok_untouched(&ov);
    ok_uint(CALL(cq, GetResults, NULL, 4), ==, 0);
    ok_uint(CALL(cq, GetResults, results, 0), ==, 0);
    ok_uint(CALL(cq, GetResults, results, 4), ==, 0);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &first), ND_PENDING);
    ok_status(CALL(cq, GetOverlappedResult, &first, &size, FALSE), ND_PENDING);
    ok_status(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(cq, GetOverlappedResult, &first, &size, TRUE), ND_CANCELED);
    ok_uint(size, ==, 0);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ERRORS, &first), ND_PENDING);
    front_release(cq);
    ok_status((HRESULT)first.Internal, ND_CANCELED);
}

TEST(CompletionQueue_v1__out_of_requests)
{
    INDCompletionQueue *cq;
    OVERLAPPED ov;

    ok_status(CALL(adapter, CreateCompletionQueue, 16, &cq), ND_SUCCESS);
    overlapped_fresh(&ov);
    fake_alloc_fail(1);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_clear();
    ok_untouched(&ov);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
    front_release(cq);
    ok_status((HRESULT)ov.Internal, ND_CANCELED);
}

/* No name of version 1 for a device that cannot: the queue stays as it is. */
TEST(CompletionQueue_v1__resize_refused)
{
    INDAdapter *iw = side_adapter("10.1.2.1");
    INDCompletionQueue *cq;

    ok_status(CALL(iw, CreateCompletionQueue, 4, &cq), ND_SUCCESS);
    ok_status(CALL(cq, Resize, 4000), ND_INSUFFICIENT_RESOURCES);
    ok_status(CALL(cq, Resize, 8), ND_SUCCESS);
    front_release(cq);
    front_release(iw);
}

TEST(Adapter_v1_Listen__rows)
{
    INDListen *listen = (void *)adapter, *second;
    USHORT port = 0, same = 0;

    ok_status(CALL(adapter, Listen, 0, 6, 0, &port, NULL), ND_INVALID_PARAMETER_5);
    ok_status(CALL(adapter, Listen, 0, -1, 0, &port, &listen), ND_INVALID_PARAMETER_2);
    ok_ptr(listen, ==, NULL);
    ok_status(CALL(adapter, Listen, 0, 256, 0, &port, &listen), ND_INVALID_PARAMETER_2);
    ok_status(CALL(adapter, Listen, 0, IPPROTO_UDP, 0, &port, &listen), ND_NOT_SUPPORTED);
    ok_status(CALL(adapter, Listen, 0, 6, 0, NULL, &listen), ND_INVALID_PARAMETER_MIX);
    ok_uint(port, ==, 0);
    ok_status(CALL(adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    ok_uint(port, !=, 0);
    ok_status(CALL(adapter, Listen, 0, 123, port, &same, &second), ND_ADDRESS_ALREADY_EXISTS);
    ok_ptr(second, ==, NULL);
    front_release(listen);
    ok_status(CALL(adapter, Listen, (SIZE_T)-1, 0, port, &same, &second), ND_SUCCESS);
    ok_uint(same, ==, port);
    front_release(second);
    ok_status(CALL(adapter, Listen, 5, 255, port, NULL, &second), ND_SUCCESS);
    front_release(second);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    ok_status(CALL(adapter, Listen, 0, 6, 0, &port, &listen), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_fail(1);
    ok_status(CALL(adapter, Listen, 0, 6, 0, &port, &listen), ND_NO_MEMORY);
    fake_alloc_clear();
}

TEST(Adapter_v1__device_removed)
{
    INDConnector *connector;
    INDCompletionQueue *cq;
    INDListen *listen;
    ND_ADAPTER_INFO info;
    SIZE_T size = sizeof(info);
    OVERLAPPED ov = { 0 };
    ND_MR_HANDLE mr, other;
    char buffer[8] = { 0 };
    USHORT port;

    ok_status(CALL(adapter, RegisterMemory, buffer, 8, &ov, &mr), ND_PENDING);
    fake_device_remove("fake_ib");
    ok_eventually(CALL(adapter, Query, 1, &info, &size) == ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, CreateCompletionQueue, 4, &cq), ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, CreateConnector, &connector), ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, Listen, 0, 6, 0, &port, &listen), ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, RegisterMemory, buffer, 8, &ov, &other), ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, DeregisterMemory, mr, &ov), ND_PENDING); /* cleaning up still works */
}

TEST(Adapter_v1__forked_child)
{
    int status = 0;
    pid_t child;
    struct side s;

    side_open(&s, "10.1.1.1");
    side_connector(&s);
    side_endpoint(&s);
    child = fork();
    if (child == 0) {
        ND_RESULT *result;
        ND_MR_HANDLE mr;
        OVERLAPPED ov;
        USHORT port;
        INDListen *listen;
        SIZE_T size = 0;

        ok_status(CALL(s.adapter, RegisterMemory, s.buffer, 1, &ov, &mr), ND_DEVICE_REMOVED);
        ok_status(CALL(s.adapter, DeregisterMemory, s.mr, &ov), ND_DEVICE_REMOVED);
        ok_status(CALL(s.adapter, Query, 1, NULL, &size), ND_DEVICE_REMOVED);
        ok_status(CALL(s.adapter, CancelOverlappedRequests), ND_DEVICE_REMOVED);
        ok_status(CALL(s.adapter, Listen, 0, 6, 0, &port, &listen), ND_DEVICE_REMOVED);
        ok_ptr(CALL(s.adapter, GetFileHandle), ==, INVALID_HANDLE_VALUE);
        ok_uint(CALL(s.cq, GetResults, &result, 1), ==, 0);
        ok_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_DEVICE_REMOVED);
        ok_status(CALL(s.endpoint, Send, &s.result, NULL, 0, 0), ND_DEVICE_REMOVED);
        ok_status(CALL(s.endpoint, Receive, &s.result, NULL, 0), ND_DEVICE_REMOVED);
        ok_status(CALL(s.endpoint, Flush), ND_DEVICE_REMOVED);
        CALL(s.endpoint, StartRequestBatch);
        CALL(s.endpoint, SubmitRequestBatch);
        ok_status(CALL(s.connector, Disconnect, &ov), ND_DEVICE_REMOVED);
        ok_status(CALL(s.connector, Reject, NULL, 0), ND_DEVICE_REMOVED);
        size = 7;
        ok_status(CALL(s.connector, GetConnectionData, NULL, NULL, NULL, &size), ND_DEVICE_REMOVED);
        ok_uint(size, ==, 0);
        size = 7;
        ok_status(CALL(s.connector, GetLocalAddress, NULL, &size), ND_DEVICE_REMOVED);
        ok_uint(size, ==, 0);
        size = 7;
        ok_status(CALL(s.connector, GetPeerAddress, NULL, &size), ND_DEVICE_REMOVED);
        ok_uint(size, ==, 0);
        ok_uint(CALL(s.endpoint, Release), ==, 0);
        _exit(0);
    }
    ok_int(waitpid(child, &status, 0), ==, child);
    ok_int(status, ==, 0);
    side_close(&s);
}
