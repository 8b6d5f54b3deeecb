/* SPDX-License-Identifier: MIT */
/* Version 1: opening, limits, the file, memory, making objects, and what each refuses. ndspi-v1.md 4 to 7. */
#include "holdings.h"
#include "v1side.h"

#include <stdlib.h>
#include <sys/mman.h>

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

#define NOWHERE "203.0.113.9"
#define SIZE    8192

ALONE(open_adapter)
{
    union endpoint own = own_endpoint(), other = endpoint_from(NOWHERE);
    INDAdapter *adapter = (void *)&own, *second;

    harness_status_text = ndverbs_status_text;
    ok_status(NdOpenV1Adapter(&own.any, endpoint_size(&own), &adapter), ND_DEVICE_NOT_READY);
    ok_ptr(adapter, ==, NULL);
    ok_status(NdStartup(), S_OK);
    ok_status(NdOpenV1Adapter(&other.any, endpoint_size(&other), &adapter), ND_INVALID_ADDRESS);
    ok_status(NdOpenV1Adapter(&own.any, 3, &adapter), ND_INVALID_PARAMETER_2);
    ok_status(NdOpenV1Adapter(&own.any, endpoint_size(&own), NULL), ND_INVALID_PARAMETER_4); /* NdOpenAdapter's */
    ok_status(NdOpenV1Adapter(&own.any, endpoint_size(&own), &adapter), ND_SUCCESS);
    ok_status(NdOpenAdapter(&IID_INDAdapter, &own.any, endpoint_size(&own), (void **)&second), ND_SUCCESS);
    ok(CALL(adapter, GetFileHandle) != CALL(second, GetFileHandle));
    release_last(adapter);
    release_last(second);
    ok_status(NdCleanup(), S_OK);
}

/* The way of programs that walk the provider catalogue. */
ALONE(class_factory)
{
    union endpoint own = own_endpoint(), other = endpoint_from(NOWHERE);
    SOCKET_ADDRESS_LIST *list;
    IClassFactory *factory;
    INDProvider *provider;
    INDAdapter *adapter;
    SIZE_T size = 0;
    void *out;

    harness_status_text = ndverbs_status_text;
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, (IUnknown *)factory, &IID_INDProvider, &out), CLASS_E_NOAGGREGATION);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDAdapter, &out), E_NOINTERFACE);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, NULL), E_POINTER);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, (void **)&provider), S_OK);
    ok_status(CALL(factory, LockServer, TRUE), S_OK);
    release_last(factory);
    ok_status(CALL(provider, QueryAddressList, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    list = calloc(1, size);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_int(list->iAddressCount, >, 0);
    free(list);
    ok_status(CALL(provider, OpenAdapter, &other.any, endpoint_size(&other), &adapter), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, OpenAdapter, &own.any, 4, &adapter), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, OpenAdapter, &own.any, endpoint_size(&own), NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(provider, OpenAdapter, &own.any, endpoint_size(&own), &adapter), ND_SUCCESS);
    release_last(provider);
    ok(CALL(adapter, GetFileHandle) != INVALID_HANDLE_VALUE);
    release_last(adapter);
}

ALONE(query_interface)
{
    const GUID *own[] = { &IID_INDAdapter, &IID_INDCompletionQueue, &IID_INDConnector, &IID_INDListen,
                          &IID_INDEndpoint };
    INDListen *listen;
    struct v1 v1;
    void *out;

    v1_open(&v1, SIZE);
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    listen = v1_listen(&v1);
    {
        IUnknown *objects[] = { (IUnknown *)v1.adapter, (IUnknown *)v1.cq, (IUnknown *)v1.connector, (IUnknown *)listen,
                                (IUnknown *)v1.endpoint };

        for (int i = 0; i < 5; i++) {
            ok_status(CALL(objects[i], QueryInterface, own[i], &out), S_OK);
            ok_ptr(out, ==, objects[i]);
            ok_int(CALL(objects[i], Release), ==, 1);
            ok_status(CALL(objects[i], QueryInterface, &IID_IUnknown, &out), S_OK);
            ok_int(CALL(objects[i], Release), ==, 1);
            ok_status(CALL(objects[i], QueryInterface, &IID_INDOverlapped, &out), i < 4 ? S_OK : E_NOINTERFACE);
            if (i < 4)
                ok_int(CALL(objects[i], Release), ==, 1);
            out = &v1;
            ok_status(CALL(objects[i], QueryInterface, &IID_IND2Overlapped, &out), E_NOINTERFACE);
            ok_ptr(out, ==, NULL);
        }
    }
    release_last(listen);
    v1_close(&v1);
}

ALONE(query)
{
    ND_ADAPTER_INFO info;
    SIZE_T size = 0;
    struct v1 v1;

    v1_open(&v1, SIZE);
    ok_status(CALL(v1.adapter, Query, 0, &info, &size), ND_NOT_SUPPORTED);
    ok_status(CALL(v1.adapter, Query, 2, &info, &size), ND_NOT_SUPPORTED);
    ok_status(CALL(v1.adapter, Query, 1, &info, NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(v1.adapter, Query, 1, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(info));
    size--;
    ok_status(CALL(v1.adapter, Query, 1, &info, &size), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.adapter, Query, 1, &info, &size), ND_SUCCESS);
    ok_uint(info.MaxCallerData, ==, 56);
    ok_uint(info.MaxCalleeData, ==, 148);
    ok_uint(info.MaxInboundRequests, >=, 256);
    ok_uint(info.MaxOutboundRequests, >=, 256);
    ok_uint(info.MaxInboundSge, >=, 1);
    ok_uint(info.MaxOutboundSge, >=, 1);
    ok_uint(info.MaxCqEntries, >=, 512);
    ok_uint(info.MaxOutboundLength, >=, 1 << 20);
    ok_uint(info.MaxRegistrationSize, >=, 1 << 20);
    ok_status(CALL(v1.adapter, Control, 1, NULL, 0, NULL, 0, &size, &v1.ov), ND_NOT_SUPPORTED);
    v1_close(&v1);
}

/* All maxima hold together: one endpoint of them, on a queue of the maximum. */
ALONE(endpoint_of_all_maxima)
{
    SIZE_T inline_size = 0;
    INDCompletionQueue *cq;
    ND_RESULT result;
    struct v1 v1;

    v1_open(&v1, SIZE);
    v1_make_connector(&v1);
    ok_status(CALL(v1.adapter, CreateCompletionQueue, v1.info.MaxCqEntries, &cq), ND_SUCCESS);
    ok_status(CALL(v1.connector, CreateEndpoint, cq, cq, v1.info.MaxInboundRequests, v1.info.MaxOutboundRequests,
                   v1.info.MaxInboundSge, v1.info.MaxOutboundSge, v1.info.MaxInboundReadLimit,
                   v1.info.MaxOutboundReadLimit, &inline_size, &v1.endpoint),
              ND_SUCCESS);
    ok_uint(inline_size, <=, v1.info.MaxInlineData);
    v1_receive(&v1, &result, 0, 16);
    release_last(v1.endpoint);
    v1.endpoint = NULL;
    release_last(cq);
    v1_close(&v1);
}

ALONE(create_bad_arguments)
{
    INDEndpoint *endpoint;
    INDCompletionQueue *cq;
    INDConnector *connector;
    INDListen *listen;
    struct v1 v1, other;
    USHORT port = 0;

    v1_open(&v1, SIZE);
    v1_open(&other, SIZE);
    ok_status(CALL(v1.adapter, CreateCompletionQueue, 4, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.adapter, CreateCompletionQueue, 0, &cq), ND_INVALID_PARAMETER);
    ok_status(CALL(v1.adapter, CreateCompletionQueue, v1.info.MaxCqEntries + 1, &cq), ND_INVALID_PARAMETER);
    ok_ptr(cq, ==, NULL);
    ok_status(CALL(v1.adapter, CreateConnector, NULL), ND_INVALID_PARAMETER_1);
    v1_make_connector(&v1);
    connector = v1.connector;
#define ENDPOINT(in, out, ...) CALL(connector, CreateEndpoint, in, out, __VA_ARGS__, NULL, &endpoint)
    ok_status(ENDPOINT(NULL, v1.cq, 4, 4, 1, 1, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(ENDPOINT(other.cq, v1.cq, 4, 4, 1, 1, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(ENDPOINT(v1.cq, other.cq, 4, 4, 1, 1, 0, 0), ND_INVALID_PARAMETER_2);
    ok_status(ENDPOINT(v1.cq, v1.cq, v1.info.MaxInboundRequests + 1, 4, 1, 1, 0, 0), ND_INVALID_PARAMETER_3);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, v1.info.MaxOutboundRequests + 1, 1, 1, 0, 0), ND_INVALID_PARAMETER_4);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, 4, v1.info.MaxInboundSge + 1, 1, 0, 0), ND_INVALID_PARAMETER_5);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, 4, 1, v1.info.MaxOutboundSge + 1, 0, 0), ND_INVALID_PARAMETER_6);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, 4, 1, 1, v1.info.MaxInboundReadLimit + 1, 0), ND_INVALID_PARAMETER_7);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, 4, 1, 1, 0, v1.info.MaxOutboundReadLimit + 1), ND_INVALID_PARAMETER_8);
    ok_ptr(endpoint, ==, NULL);
    ok_status(CALL(connector, CreateEndpoint, v1.cq, v1.cq, 4, 4, 1, 1, 0, 0, NULL, NULL), ND_INVALID_PARAMETER_10);
    v1_make_endpoint(&v1);
    ok_status(ENDPOINT(v1.cq, v1.cq, 4, 4, 1, 1, 0, 0), ND_NOT_SUPPORTED); /* one at a time */
#undef ENDPOINT

    ok_status(CALL(v1.adapter, Listen, 0, -1, 0, &port, &listen), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.adapter, Listen, 0, 256, 0, &port, &listen), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1.adapter, Listen, 0, 17, 0, &port, &listen), ND_NOT_SUPPORTED);
    ok_status(CALL(v1.adapter, Listen, 0, 6, 0, NULL, &listen), ND_INVALID_PARAMETER_MIX);
    ok_status(CALL(v1.adapter, Listen, 0, 6, 0, &port, NULL), ND_INVALID_PARAMETER_5);
    v1_close(&other);
    v1_close(&v1);
}

ALONE(listen_ports)
{
    INDListen *listen, *second;
    USHORT port = 0, given = 0;
    struct v1 v1;

    v1_open(&v1, SIZE);
    ok_status(CALL(v1.adapter, Listen, 0, 6, 0, &port, &listen), ND_SUCCESS);
    ok_int(port, !=, 0);
    ok_status(CALL(v1.adapter, Listen, 0, 6, port, &given, &second), ND_ADDRESS_ALREADY_EXISTS);
    ok_ptr(second, ==, NULL);
    release_last(listen);
    /* Free again at once, and told again. */
    ok_status(CALL(v1.adapter, Listen, 3, 123, port, &given, &listen), ND_SUCCESS);
    ok_int(given, ==, port);
    release_last(listen);
    ok_status(CALL(v1.adapter, Listen, 3, 123, port, NULL, &listen), ND_SUCCESS);
    release_last(listen);
    v1_close(&v1);
}

ALONE(file_handle)
{
    ULONG_PTR key = 0;
    OVERLAPPED *got = NULL;
    ND_MR_HANDLE mr;
    DWORD bytes;
    HANDLE port, handle;
    struct v1 v1;

    v1_open(&v1, SIZE);
    handle = CALL(v1.adapter, GetFileHandle);
    ok_ptr(CALL(v1.adapter, GetFileHandle), ==, handle);
    port = CreateIoCompletionPort(handle, NULL, 42, 0);
    ok(port != NULL);
    v1.ov.hEvent = NULL;
    /* What is done when the call returns queues its packet all the same. */
    ok_status(CALL(v1.adapter, RegisterMemory, v1.buffer, SIZE, &v1.ov, &mr), ND_PENDING);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok_ptr(got, ==, &v1.ov);
    ok_uint(key, ==, 42);
    ok_status(CALL(v1.adapter, DeregisterMemory, mr, &v1.ov), ND_PENDING);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    /* Closing it is not the application's to do, and harms nothing. */
    ok(CloseHandle(handle));
    ok_status(CALL(v1.adapter, RegisterMemory, v1.buffer, SIZE, &v1.ov, &mr), ND_PENDING);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok_status(CALL(v1.adapter, DeregisterMemory, mr, &v1.ov), ND_PENDING);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok(CALL(v1.adapter, GetFileHandle) != INVALID_HANDLE_VALUE);
    v1.ov.hEvent = v1.event;
    v1_close(&v1);
    ok(CloseHandle(port));
}

ALONE(register_memory)
{
    void *hole = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ND_MR_HANDLE mr = NULL, many[32];
    struct v1 v1, other;
    HRESULT hr;

    v1_open(&v1, SIZE);
    v1_open(&other, SIZE);
#define REGISTER(buffer, size) v1_register(&v1, (buffer), (size), &mr)
#define DEREGISTER(handle)     v1_finish(v1.adapter, CALL(v1.adapter, DeregisterMemory, (handle), &v1.ov), &v1.ov)
    ok_status(REGISTER(NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(REGISTER(v1.buffer, 0), ND_INVALID_PARAMETER_2);
    if (v1.info.MaxRegistrationSize < (SIZE_T)-1)
        ok_status(REGISTER(v1.buffer, v1.info.MaxRegistrationSize + 1), ND_INVALID_PARAMETER_2);
    ok_status(REGISTER(hole, SIZE), ND_ACCESS_VIOLATION);
    ok_status(REGISTER(NULL, 16), ND_ACCESS_VIOLATION);
    hr = REGISTER(v1.buffer, (SIZE_T)-4096);
    ok_msg(hr == ND_INVALID_PARAMETER_2 || hr == ND_ACCESS_VIOLATION, "0x%08x", (unsigned)hr);
    ok_ptr((void *)mr, ==, NULL);
    ok_status(CALL(v1.adapter, RegisterMemory, v1.buffer, SIZE, &v1.ov, NULL), ND_INVALID_PARAMETER_4);
    ok_status(CALL(v1.adapter, RegisterMemory, v1.buffer, SIZE, NULL, &mr), ND_INVALID_PARAMETER);
    ok_status(REGISTER(v1.buffer + 3, SIZE - 7), ND_SUCCESS);
    ok_status(CALL(other.adapter, DeregisterMemory, mr, &other.ov), ND_INVALID_HANDLE);
    ok_status(CALL(v1.adapter, DeregisterMemory, mr, NULL), ND_INVALID_PARAMETER);
    ok_status(DEREGISTER(mr), ND_SUCCESS);
    ok_status(DEREGISTER(mr), ND_INVALID_HANDLE);
    ok_status(DEREGISTER(NULL), ND_INVALID_HANDLE);
    ok_status(DEREGISTER((ND_MR_HANDLE)(void *)&v1), ND_INVALID_HANDLE);
    for (int i = 0; i < 32; i++) {
        ok_status(REGISTER(v1.buffer, SIZE), ND_SUCCESS);
        many[i] = mr;
    }
    for (int i = 0; i < 31; i++)
        ok_status(DEREGISTER(many[i]), ND_SUCCESS);
    ok_status(CALL(v1.adapter, CancelOverlappedRequests), ND_SUCCESS);
#undef REGISTER
#undef DEREGISTER
    v1_close(&other);
    v1_close(&v1); /* one is left: it goes with the adapter */
    ok_int(munmap(hole, SIZE), ==, 0);
}

ALONE(memory_lock_limit)
{
    void *large = aligned_alloc(4096, 4 << 20);
    ND_MR_HANDLE mr = NULL;
    struct v1 v1;

    limit_locked_memory(1 << 20);
    v1_open(&v1, SIZE);
    ok(large != NULL);
    memset(large, 1, 4 << 20);
    ok_status(v1_register(&v1, large, 4 << 20, &mr), ND_INSUFFICIENT_RESOURCES);
    ok_ptr((void *)mr, ==, NULL);
    free(large);
    v1_close(&v1);
}

/* More results than the device's queue holds: the queue is dead and says so. */
ALONE(overrun)
{
    ND_RESULT *results;
    OVERLAPPED errors;
    struct host host;
    struct v1 v1;

    host_open(&host);
    if (host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED)
        harness_skip("the device's queue grows with the endpoints: see notify.overrun_beyond_the_growth");
    host_close(&host);
    v1_open(&v1, SIZE);
    v1_make_connector(&v1);
    release_last(v1.cq);
    ok_status(CALL(v1.adapter, CreateCompletionQueue, 1, &v1.cq), ND_SUCCESS);
    ok_status(
        CALL(v1.connector, CreateEndpoint, v1.cq, v1.cq, v1.info.MaxInboundRequests, 1, 1, 1, 0, 0, NULL, &v1.endpoint),
        ND_SUCCESS);
    results = calloc(v1.info.MaxInboundRequests, sizeof(*results));
    overlapped_rubbish(&errors, event_auto());
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_ERRORS, &errors), ND_PENDING);
    for (SIZE_T i = 0; i < v1.info.MaxInboundRequests; i++)
        ok_status(CALL(v1.endpoint, Receive, &results[i], NULL, 0), ND_SUCCESS);
    ok_status(CALL(v1.endpoint, Flush), ND_SUCCESS);
    ok_status(v1_finish(v1.cq, ND_PENDING, &errors), ND_BUFFER_OVERFLOW);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_ANY, &errors), ND_BUFFER_OVERFLOW);
    ok(CloseHandle(errors.hEvent));
    v1_close(&v1);
    free(results);
}

ALONE(nothing_stays_pinned)
{
    unsigned long pinned;
    int descriptors;
    struct v1 v1;

    v1_open(&v1, SIZE);
    v1_close(&v1);
    pinned = process_status("VmPin") + process_status("VmLck");
    descriptors = open_descriptors();
    for (int i = 0; i < 20; i++) {
        ND_MR_HANDLE mr;

        v1_open(&v1, SIZE);
        ok_status(v1_register(&v1, v1.buffer, SIZE, &mr), ND_SUCCESS);
        v1_make_connector(&v1);
        v1_make_endpoint(&v1);
        ok_uint(process_status("VmPin") + process_status("VmLck"), >, pinned);
        v1_close(&v1);
    }
    ok_uint(process_status("VmPin") + process_status("VmLck"), ==, pinned);
    ok_eventually(open_descriptors() <= descriptors); /* closing a device is a worker's */
}

ALONE(completion_queue)
{
    OVERLAPPED first, second;
    ND_RESULT results[4];
    struct v1 v1;

    v1_open(&v1, SIZE);
    overlapped_rubbish(&first, NULL);
    overlapped_rubbish(&second, NULL);
    ok_status(CALL(v1.cq, Resize, 0), ND_INVALID_PARAMETER);
    ok_status(CALL(v1.cq, Resize, v1.info.MaxCqEntries + 1), ND_INVALID_PARAMETER);
    ok_status(CALL(v1.cq, Resize, 64), ND_SUCCESS);
    ok_status(CALL(v1.cq, Notify, 3, &first), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_ANY, &first), ND_PENDING);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_SOLICITED, &second), ND_PENDING);
    ok_status(CALL(v1.cq, GetOverlappedResult, &first, NULL, FALSE), ND_PENDING);
    ok_status(CALL(v1.cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(v1.cq, GetOverlappedResult, &first, NULL, FALSE), ND_CANCELED);
    ok_status(CALL(v1.cq, GetOverlappedResult, &second, NULL, FALSE), ND_CANCELED);
    /* Flushed receives of an endpoint that was never connected (A36): a Notify, and fewer places than results. */
    v1_make_connector(&v1);
    v1_make_endpoint(&v1);
    for (int i = 0; i < 4; i++)
        v1_receive(&v1, &results[i], 0, 8);
    ok_status(CALL(v1.cq, Notify, ND_CQ_NOTIFY_ANY, &first), ND_PENDING);
    ok_status(CALL(v1.endpoint, Flush), ND_SUCCESS);
    ok_status(v1_finish(v1.cq, ND_PENDING, &first), ND_SUCCESS);
    for (int i = 0; i < 4; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_none(&v1);
    ok_status(CALL(v1.cq, Resize, 2), ND_SUCCESS);
    v1_receive(&v1, &results[0], 0, 8); /* in error: comes back */
    v1_receive(&v1, &results[1], 0, 8);
    v1_receive(&v1, &results[2], 0, 8);
    ok_status(CALL(v1.cq, Resize, 2), ND_SUCCESS);
    ok_status(CALL(v1.cq, Resize, 1), ND_BUFFER_OVERFLOW);
    for (int i = 0; i < 3; i++)
        ok_v1_result(&v1, &results[i], ND_CANCELED);
    v1_close(&v1);
}

/* The device's queue cannot grow: version 1 has no other word for it. */
ALONE(resize_without_the_verb)
{
    struct host host;
    struct v1 v1;

    host_open(&host);
    if (host.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED)
        harness_skip("the device resizes its queues");
    host_close(&host);
    v1_open(&v1, SIZE);
    ok_status(CALL(v1.cq, Resize, v1.info.MaxCqEntries), ND_INSUFFICIENT_RESOURCES);
    v1_close(&v1);
}

/* Parents first; the last Release of each object gives 0. */
ALONE(release_orders)
{
    for (int order = 0; order < 4; order++) {
        ND_RESULT result;
        struct v1 v1;

        v1_open(&v1, SIZE);
        v1_make_connector(&v1);
        v1_make_endpoint(&v1);
        v1_receive(&v1, &result, 0, 64);
        if (order & 1)
            release_last(v1.adapter);
        if (order & 2)
            release_last(v1.cq);
        release_last(v1.connector);
        release_last(v1.endpoint);
        if (!(order & 2)) {
            ok_v1_result(&v1, &result, ND_CANCELED);
            release_last(v1.cq);
        }
        if (!(order & 1))
            release_last(v1.adapter);
        ok_status(NdCleanup(), S_OK);
        free(v1.buffer);
        ok(CloseHandle(v1.event));
    }
}

RUNNER_MAIN
