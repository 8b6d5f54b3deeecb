/* SPDX-License-Identifier: MIT */

/* Nd*, Dll* and ndverbs_*: ndspi-helpers.md sections 1 and 2. */

#include "front.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

SETUP
{
    front_setup();
}

TEARDOWN
{
    front_teardown();
}

/* tests/lists: D23. */
TEST(NdStartup__counts)
{
    struct sockaddr_in address = front_v4("10.1.1.1");

    ok_status(NdStartup(), S_OK);
    ok_status(NdCleanup(), S_OK);
    ok_status(NdCheckAddress((struct sockaddr *)&address, sizeof(address)), ND_SUCCESS);
    for (int i = 0; i < 1000; i++)
        ok_status(NdStartup(), S_OK);
    for (int i = 0; i < 1000; i++)
        ok_status(NdCleanup(), S_OK);
    ok_status(NdCleanup(), S_OK);
    ok_status(NdCleanup(), ND_DEVICE_NOT_READY);
    ok_status(NdStartup(), S_OK);
}

TEST(helpers__not_started)
{
    struct sockaddr_in address = front_v4("10.1.1.1"), local;
    void *adapter = &address;
    SIZE_T size = 77;

    ok_status(NdCleanup(), S_OK);
    NdFlushProviders();
    ok_status(NdQueryAddressList(0, NULL, &size), ND_DEVICE_NOT_READY);
    ok_uint(size, ==, 0);
    size = sizeof(local);
    ok_status(NdResolveAddress((struct sockaddr *)&address, sizeof(address), (struct sockaddr *)&local, &size),
              ND_DEVICE_NOT_READY);
    ok_status(NdCheckAddress((struct sockaddr *)&address, sizeof(address)), ND_DEVICE_NOT_READY);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &adapter),
              ND_DEVICE_NOT_READY);
    ok_ptr(adapter, ==, NULL);
    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, sizeof(address), (INDAdapter **)&adapter),
              ND_DEVICE_NOT_READY);
    ok_status(NdStartup(), S_OK);
}

TEST(NdQueryAddressList__size_contract)
{
    size_t needed = offsetof(SOCKET_ADDRESS_LIST, Address) + 3 * sizeof(SOCKET_ADDRESS) + 16 + 28 + 16;
    SOCKET_ADDRESS_LIST *list = malloc(needed + 64);
    SIZE_T size = 0;

    ok_status(NdQueryAddressList(0, NULL, NULL), ND_INVALID_PARAMETER_3);
    ok_status(NdQueryAddressList(0, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, needed);
    memset(list, 0x5a, needed + 64);
    size = needed - 1;
    ok_status(NdQueryAddressList(0, list, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, needed);
    ok_int(((unsigned char *)list)[0], ==, 0x5a);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES | ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size),
              ND_SUCCESS);
    ok_int(list->iAddressCount, ==, 3);
    ok_int(((unsigned char *)list)[needed], ==, 0x5a);
    size = needed + 64;
    ok_status(NdQueryAddressList(0, list, &size), ND_SUCCESS);
    ok_uint(size, ==, needed + 64); /* not reduced */
    for (int i = 0; i < 3; i++)
        ok_int(((struct sockaddr_in *)list->Address[i].lpSockaddr)->sin_port, ==, 0);
    free(list);
}

/* tests/lists: A29, D23. */
TEST(NdQueryAddressList__none)
{
    SIZE_T size = 500;

    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES | ND_QUERY_EXCLUDE_NDv2_ADDRESSES, NULL, &size),
              ND_SUCCESS);
    ok_uint(size, ==, 0);
    fake_address_clear();
    NdFlushProviders();
    size = 500;
    ok_status(NdQueryAddressList(0, NULL, &size), ND_SUCCESS);
    ok_uint(size, ==, 0);
}

TEST(NdQueryAddressList__out_of_memory)
{
    SIZE_T size = 0;

    NdFlushProviders();
    fake_alloc_fail(1); /* the list */
    ok_status(NdQueryAddressList(0, NULL, &size), ND_NO_MEMORY);
    ok_uint(size, ==, 0);
    fake_alloc_clear();
}

TEST(NdResolveAddress__statuses)
{
    struct sockaddr_in remote = front_v4("10.1.1.200"), local;
    struct sockaddr_in6 remote6 = front_v6("fd00:1:1::77");
    struct sockaddr_in6 local6;
    SIZE_T size = sizeof(local);

    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, NULL),
              ND_INVALID_PARAMETER_4);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, &size), S_OK);
    ok_uint(size, ==, sizeof(local));
    ok_int(local.sin_addr.s_addr, ==, front_v4("10.1.1.1").sin_addr.s_addr);
    ok_int(local.sin_port, ==, 0);
    size = sizeof(local6);
    ok_status(NdResolveAddress((struct sockaddr *)&remote6, sizeof(remote6), (struct sockaddr *)&local6, &size), S_OK);
    ok_uint(size, ==, sizeof(local6));
    size = 15;
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, &size),
              ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(local));
    size = sizeof(local);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), NULL, &size), ND_BUFFER_OVERFLOW);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, 15, (struct sockaddr *)&local, &size), ND_INVALID_ADDRESS);
    ok_uint(size, ==, 0);
    size = sizeof(local);
    ok_status(NdResolveAddress(NULL, sizeof(remote), (struct sockaddr *)&local, &size), ND_INVALID_ADDRESS);
    remote = front_v4("172.30.0.1");
    size = sizeof(local);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, &size),
              ND_NETWORK_UNREACHABLE);
    /* A route by an address without RDMA: the buffer is filled all the same. */
    fake_address_add("192.168.9.1", NULL, 0);
    fake_route_add("172.30.0.1", "192.168.9.1");
    size = sizeof(local);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, &size),
              ND_INVALID_ADDRESS);
    ok_int(local.sin_addr.s_addr, ==, front_v4("192.168.9.1").sin_addr.s_addr);
    /* Nothing to ask with. */
    fake_fail(FAKE_socket, 1, EMFILE);
    size = sizeof(local);
    ok_status(NdResolveAddress((struct sockaddr *)&remote, sizeof(remote), (struct sockaddr *)&local, &size),
              ND_UNSUCCESSFUL);
    ok_uint(size, ==, 0);
}

/* The checks that NdCheckAddress and NdOpenAdapter share. */
static const struct {
    const char *text;
    SIZE_T length;
    int family; /* 0: as the text */
    HRESULT status;
} address_rows[] = {
    { "10.1.1.1", 16, 0, ND_SUCCESS },
    { "10.1.2.1", 28, 0, ND_SUCCESS },
    { "10.1.1.1", 0, 0, ND_INVALID_PARAMETER_2 },
    { "10.1.1.1", 15, 0, ND_INVALID_PARAMETER_2 },
    { "10.1.1.1", (SIZE_T)UINT32_MAX + 1, 0, ND_INVALID_PARAMETER_2 },
    { "fd00:1:1::1", 28, 0, ND_SUCCESS },
    { "fd00:1:1::1", 27, 0, ND_INVALID_PARAMETER_2 },
    { "fd00:1:1::1", 16, 0, ND_INVALID_PARAMETER_2 },
    { "10.1.1.1", 16, AF_UNIX, ND_INVALID_ADDRESS },
    { "10.1.1.1", 16, AF_UNSPEC + 77, ND_INVALID_ADDRESS },
    { "10.1.1.9", 16, 0, ND_INVALID_ADDRESS },
    { "127.0.0.1", 16, 0, ND_INVALID_ADDRESS },
    { "0.0.0.0", 16, 0, ND_INVALID_ADDRESS },
    { "::1", 28, 0, ND_INVALID_ADDRESS },
};

static void make_row(size_t i, struct sockaddr_storage *address)
{
    memset(address, 0, sizeof(*address));
    if (strchr(address_rows[i].text, ':'))
        *(struct sockaddr_in6 *)address = front_v6(address_rows[i].text);
    else
        *(struct sockaddr_in *)address = front_v4(address_rows[i].text);
    if (address_rows[i].family)
        address->ss_family = (sa_family_t)address_rows[i].family;
    ((struct sockaddr_in *)address)->sin_port = 0x1234; /* ignored */
}

TEST(NdCheckAddress__rows)
{
    struct sockaddr_storage address;

    ok_status(NdCheckAddress(NULL, 16), ND_INVALID_PARAMETER_2);
    for (size_t i = 0; i < COUNT(address_rows); i++) {
        make_row(i, &address);
        ok_msg(NdCheckAddress((struct sockaddr *)&address, address_rows[i].length) == address_rows[i].status,
               "%s, length %zu", address_rows[i].text, (size_t)address_rows[i].length);
    }
}

TEST(NdOpenAdapter__rows)
{
    struct sockaddr_storage address;
    void *adapter;

    for (size_t i = 0; i < COUNT(address_rows); i++) {
        HRESULT status;

        make_row(i, &address);
        adapter = &address;
        status = NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, address_rows[i].length, &adapter);
        ok_msg(status == address_rows[i].status, "%s, length %zu", address_rows[i].text,
               (size_t)address_rows[i].length);
        ok(!!adapter == (status == ND_SUCCESS));
        if (adapter)
            front_release(adapter);
    }
    make_row(0, &address);
    adapter = &address;
    ok_status(NdOpenAdapter(&IID_IND2Adapter, NULL, 16, &adapter), ND_INVALID_PARAMETER_2);
    ok_ptr(adapter, ==, NULL);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, 16, NULL), ND_INVALID_PARAMETER_4);
    adapter = &address;
    ok_status(NdOpenAdapter(NULL, (struct sockaddr *)&address, 16, &adapter), E_NOINTERFACE);
    ok_ptr(adapter, ==, NULL);
    adapter = &address;
    ok_status(NdOpenAdapter(&IID_IND2Connector, (struct sockaddr *)&address, 16, &adapter), E_NOINTERFACE);
    ok_ptr(adapter, ==, NULL);
    ok_status(NdOpenAdapter(&IID_IUnknown, (struct sockaddr *)&address, 16, &adapter), S_OK);
    front_release(adapter);
    adapter = &address;
    ok_status(NdOpenAdapter(&IID_INDProvider, (struct sockaddr *)&address, 16, &adapter), E_NOINTERFACE);
    ok_ptr(adapter, ==, NULL);
    ok_status(NdOpenAdapter(&IID_INDAdapter, (struct sockaddr *)&address, 16, &adapter), S_OK);
    front_release(adapter);
    ok_status(NdOpenV1Adapter((struct sockaddr *)&address, 16, NULL), ND_INVALID_PARAMETER_4);
}

/* tests/lists: D22. */
TEST(NdOpenAdapter__each_address_its_device)
{
    IND2Adapter *ib = front_open("10.1.1.1"), *iw = front_open("10.1.2.1"), *again = front_open("10.1.1.1");
    ND2_ADAPTER_INFO ib_info = { .InfoVersion = ND_VERSION_2 }, iw_info = ib_info, again_info = ib_info;
    ULONG size = sizeof(ib_info);

    ok_ptr(ib, !=, again);
    ok_status(CALL(ib, Query, &ib_info, &size), ND_SUCCESS);
    ok_status(CALL(iw, Query, &iw_info, &size), ND_SUCCESS);
    ok_status(CALL(again, Query, &again_info, &size), ND_SUCCESS);
    ok(ib_info.AdapterId == again_info.AdapterId);
    ok(ib_info.AdapterId != iw_info.AdapterId);
    front_release(ib);
    front_release(iw);
    front_release(again);
}

TEST(NdOpenAdapter__failures)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    void *adapter;

    ok_status(NdCheckAddress((struct sockaddr *)&address, sizeof(address)), ND_SUCCESS);
    fake_fail(FAKE_ibv_open_device, 1, ENOMEM);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &adapter),
              ND_INSUFFICIENT_RESOURCES);
    ok_ptr(adapter, ==, NULL);
    fake_fail(FAKE_ibv_open_device, 1, ENODEV);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &adapter),
              ND_DEVICE_REMOVED);
    fake_device_remove("fake_ib");
    NdFlushProviders();
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &adapter),
              ND_INVALID_ADDRESS);
}

TEST(NdOpenAdapter__out_of_memory)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    void *adapter = NULL;
    unsigned n = 1;

    front_release(front_open("10.1.1.1")); /* what lives as long as the process is there */
    for (;; n++) {
        HRESULT status;

        fake_alloc_fail(n);
        status = NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &adapter);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        /* The first allocation is the provider's, whose failure the reference reports so. */
        ok_status(status, n == 1 ? ND_INVALID_ADDRESS : ND_NO_MEMORY);
        ok_ptr(adapter, ==, NULL);
    }
    fake_alloc_clear();
    ok_uint(n, >, 3);
    front_release(adapter);
}

TEST(DllGetClassObject__rows)
{
    void *object = &object;

    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IND2Provider, NULL), E_POINTER);
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_INDAdapter, &object), E_NOINTERFACE);
    ok_ptr(object, ==, NULL);
    object = &object;
    ok_status(DllGetClassObject(&IID_IUnknown, NULL, &object), E_NOINTERFACE);
    ok_ptr(object, ==, NULL);
    ok_status(DllGetClassObject(NULL, &IID_IND2Provider, &object), S_OK);
    ok_status(DllCanUnloadNow(), S_FALSE);
    front_release(object);
    ok_status(DllCanUnloadNow(), S_OK);
    ok_status(DllGetClassObject(NULL, &IID_IUnknown, &object), S_OK);
    front_release(object);
    fake_alloc_fail(1);
    ok_status(DllGetClassObject(NULL, &IID_IND2Provider, &object), E_OUTOFMEMORY);
    fake_alloc_clear();
    ok_ptr(object, ==, NULL);
}

/* One of each. The queue pair is made between queues that are released before it. */
#define KINDS 7
static void make_every_kind(IND2Adapter *adapter, void *objects[KINDS])
{
    HANDLE file = front_file(adapter);

    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, &objects[0]), ND_SUCCESS);
    ok_status(CALL(adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, &objects[1]), ND_SUCCESS);
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 16, 0, 0, &objects[2]), ND_SUCCESS);
    ok_status(CALL(adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, file, 16, 1, 0, 0, 0, &objects[3]),
              ND_SUCCESS);
    ok_status(CALL(adapter, CreateConnector, &IID_IND2Connector, file, &objects[4]), ND_SUCCESS);
    ok_status(CALL(adapter, CreateListener, &IID_IND2Listener, file, &objects[5]), ND_SUCCESS);
    ok_status(CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)objects[2], (IUnknown *)objects[2], NULL,
                   4, 4, 1, 1, 0, &objects[6]),
              ND_SUCCESS);
    CloseHandle(file);
}

/* Whichever is the last: the parents went first, and every child keeps what it needs. */
TEST(DllCanUnloadNow__counts_every_object)
{
    for (int last = 0; last < KINDS; last++) {
        IND2Adapter *adapter = front_open("10.1.1.1");
        void *objects[KINDS];

        make_every_kind(adapter, objects);
        front_release(adapter);
        for (int i = 0; i < KINDS; i++)
            if (i != last) {
                ok_status(DllCanUnloadNow(), S_FALSE);
                front_release(objects[i]);
            }
        ok_status(DllCanUnloadNow(), S_FALSE);
        front_release(objects[last]);
        ok_status(DllCanUnloadNow(), S_OK);
    }
}

static void *use_helpers(void *arg)
{
    const char *text = arg;
    struct sockaddr_in address = front_v4(text);
    char buffer[1024];

    for (int i = 0; i < 50; i++) {
        SIZE_T size = sizeof(buffer);
        IND2Adapter *adapter;
        void *object;

        ok_status(NdStartup(), S_OK);
        ok_status(NdQueryAddressList(0, (SOCKET_ADDRESS_LIST *)buffer, &size), ND_SUCCESS);
        ok(((SOCKET_ADDRESS_LIST *)buffer)->iAddressCount >= 3);
        ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), (void **)&adapter),
                  S_OK);
        ok_status(DllGetClassObject(NULL, &IID_IND2Provider, &object), S_OK);
        ok_status(DllCanUnloadNow(), S_FALSE);
        front_release(object);
        front_release(adapter);
        NdFlushProviders();
        ok_status(NdCleanup(), S_OK);
    }
    return NULL;
}

TEST(helpers__from_several_threads)
{
    static const char *const texts[] = { "10.1.1.1", "10.1.2.1", "10.1.1.1", "10.1.2.1" };
    pthread_t threads[COUNT(texts)];

    for (size_t i = 0; i < COUNT(texts); i++)
        ok_int(pthread_create(&threads[i], NULL, use_helpers, (void *)(uintptr_t)texts[i]), ==, 0);
    for (int i = 0; i < 50; i++) {
        fake_address_add("10.1.1.77", "fake_ib", 1);
        NdFlushProviders();
        fake_address_remove("10.1.1.77");
    }
    for (size_t i = 0; i < COUNT(texts); i++)
        pthread_join(threads[i], NULL);
}

TEST(ndverbs_adapter_describe__rows)
{
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct sockaddr_in address = front_v4("10.1.1.1"), other = front_v4("192.168.44.1");
    struct sockaddr_in unknown = front_v4("172.16.1.1");

    ok_status(ndverbs_adapter_describe(NULL, sizeof(address), &description), ND_INVALID_PARAMETER);
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&address, sizeof(address), NULL), ND_INVALID_PARAMETER);
    description.size--;
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&address, sizeof(address), &description),
              ND_INVALID_PARAMETER);
    description.size++;
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&address, sizeof(address), &description), ND_SUCCESS);
    ok_str(description.device, "fake_ib");
    ok_uint(description.port, ==, 1);
    ok_str(description.transport, "RoCE");
    ok_str(description.state, "active");
    ok_str(description.reason, "");
    address = front_v4("10.1.2.1");
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&address, sizeof(address), &description), ND_SUCCESS);
    ok_str(description.device, "fake_iw");
    ok_str(description.transport, "iWARP");
    fake_address_add("192.168.44.1", NULL, 0);
    NdFlushProviders();
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&other, sizeof(other), &description), ND_INVALID_ADDRESS);
    ok_str(description.device, "");
    ok_uint(description.port, ==, 0);
    ok(strstr(description.reason, "no RDMA device"));
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&unknown, sizeof(unknown), &description), ND_INVALID_ADDRESS);
    ok(*description.reason);
    ok_status(ndverbs_adapter_describe((struct sockaddr *)&address, 3, &description), ND_INVALID_ADDRESS);
    ok(*description.reason);
}

TEST(ndverbs__version_and_names)
{
    ok_uint(ndverbs_version(), ==, NDVERBS_VERSION);
    ok_str(ndverbs_status_text(ND_CONNECTION_REFUSED), "ND_CONNECTION_REFUSED");
    ok_str(ndverbs_status_text((HRESULT)0x12345678), "unknown status");
}

static void in_forked_child(void)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    pid_t child = fork();
    SIZE_T size = 0;
    int status;
    void *out;

    if (child == 0) {
        ok_status(NdStartup(), ND_DEVICE_REMOVED);
        ok_status(NdQueryAddressList(0, NULL, &size), ND_DEVICE_REMOVED);
        ok_status(NdCheckAddress((struct sockaddr *)&address, sizeof(address)), ND_DEVICE_REMOVED);
        ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), &out),
                  ND_DEVICE_REMOVED);
        ok_status(DllGetClassObject(NULL, &IID_IND2Provider, &out), ND_DEVICE_REMOVED);
        ok_status(NdCleanup(), ND_DEVICE_REMOVED);
        _exit(0);
    }
    ok_int(waitpid(child, &status, 0), ==, child);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Nothing is open, but sockets are there, and locks that another thread may have. */
TEST(helpers__forked_child_of_a_look)
{
    SIZE_T size = 0;

    ok_status(NdQueryAddressList(0, NULL, &size), ND_BUFFER_OVERFLOW);
    in_forked_child();
    ok_status(NdQueryAddressList(0, NULL, &size), ND_BUFFER_OVERFLOW);
}

TEST(helpers__forked_child)
{
    IND2Adapter *adapter = front_open("10.1.1.1");
    pid_t child;
    int status;

    in_forked_child();
    child = fork();
    if (child == 0) {
        front_release(adapter);
        _exit(0);
    }
    ok_int(waitpid(child, &status, 0), ==, child);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    front_release(adapter);
}
