/* SPDX-License-Identifier: MIT */

/* IND2Provider and IND2Adapter: ndspi-v2.md sections 3 and 5, statuses of bad input, failures, limits. */

#include "front.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static IND2Provider *provider;
static IND2Adapter *adapter;
static IND2CompletionQueue *cq;
static IND2SharedReceiveQueue *srq;
static HANDLE file;
static ND2_ADAPTER_INFO info;

SETUP
{
    ULONG size = sizeof(info);

    front_setup();
    ok_status(DllGetClassObject(NULL, &IID_IND2Provider, (void **)&provider), S_OK);
    adapter = front_open("10.1.1.1");
    file = front_file(adapter);
    info.InfoVersion = ND_VERSION_2;
    ok_status(CALL(adapter, Query, &info, &size), ND_SUCCESS);
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 16, 0, 0, (void **)&cq), ND_SUCCESS);
    ok_status(CALL(adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, file, 16, 1, 0, 0, 0, (void **)&srq),
              ND_SUCCESS);
}

TEARDOWN
{
    CloseHandle(file);
    front_release(srq);
    front_release(cq);
    front_release(adapter);
    front_release(provider);
    front_teardown();
}

/* --- the provider --- */

/* tests/lists: A29. */
TEST(Provider_QueryAddressList__size_contract)
{
    ULONG needed = offsetof(SOCKET_ADDRESS_LIST, Address) + 3 * sizeof(SOCKET_ADDRESS) + 16 + 28 + 16;
    SOCKET_ADDRESS_LIST *list = malloc(needed + 8);
    ULONG size = 0;

    ok_status(CALL(provider, QueryAddressList, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, needed);
    memset(list, 0x5a, needed + 8);
    size = needed - 1;
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_BUFFER_OVERFLOW);
    ok_int(((unsigned char *)list)[0], ==, 0x5a);
    ok_uint(size, ==, needed);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_int(list->iAddressCount, ==, 3);
    size = needed + 8;
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_uint(size, ==, needed); /* what was used */
    fake_address_clear();
    NdFlushProviders();
    size = 0;
    ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(SOCKET_ADDRESS_LIST));
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_SUCCESS);
    ok_int(list->iAddressCount, ==, 0);
    NdFlushProviders();
    fake_alloc_fail(1);
    ok_status(CALL(provider, QueryAddressList, list, &size), ND_NO_MEMORY);
    ok_uint(size, ==, 0);
    fake_alloc_clear();
    free(list);
}

TEST(Provider_ResolveAddress__rows)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    struct sockaddr_in6 address6 = front_v6("fd00:1:1::1");
    UINT64 id = 1, id6 = 2;

    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 16, NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(provider, ResolveAddress, NULL, 16, &id), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 15, &id), ND_INVALID_ADDRESS);
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address6, 27, &id), ND_INVALID_ADDRESS);
    ok_uint(id, ==, 1); /* untouched */
    address.sin_port = 99;
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 16, &id), ND_SUCCESS);
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address6, 28, &id6), ND_SUCCESS);
    ok_uint(id, ==, id6); /* two addresses of one port */
    ok_uint(id, ==, info.AdapterId);
    address = front_v4("10.1.1.3");
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 16, &id), ND_INVALID_ADDRESS);
}

TEST(Provider_ResolveAddress__out_of_memory)
{
    struct sockaddr_in address = front_v4("10.1.1.1"), unknown = front_v4("10.1.1.3");
    UINT64 id = 1;

    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 16, &id), ND_SUCCESS);
    ok_uint(id, ==, info.AdapterId);
    id = 1;
    fake_alloc_fail(1); /* a new list, in which it might be */
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&unknown, 16, &id), ND_NO_MEMORY);
    ok_uint(id, ==, 1);
    NdFlushProviders();
    fake_alloc_fail(1);
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, 16, &id), ND_SUCCESS);
    ok_uint(id, ==, info.AdapterId);
    fake_alloc_clear();
}

TEST(Provider_OpenAdapter__rows)
{
    void *opened = &opened;

    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId, NULL), ND_INVALID_PARAMETER_3);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId + 5, &opened), ND_INVALID_PARAMETER);
    ok_ptr(opened, ==, NULL);
    opened = &opened;
    ok_status(CALL(provider, OpenAdapter, &IID_INDAdapter, info.AdapterId, &opened), E_NOINTERFACE);
    ok_ptr(opened, ==, NULL);
    opened = &opened;
    ok_status(CALL(provider, OpenAdapter, NULL, info.AdapterId, &opened), E_NOINTERFACE);
    ok_ptr(opened, ==, NULL);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId, &opened), ND_SUCCESS);
    front_release(opened);
    fake_fail(FAKE_ibv_alloc_pd, 1, ENOMEM);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId, &opened), ND_INSUFFICIENT_RESOURCES);
    ok_ptr(opened, ==, NULL);
}

/* Wherever memory ends. */
TEST(Provider_OpenAdapter__out_of_memory)
{
    void *opened;
    unsigned n;

    for (n = 1;; n++) {
        HRESULT status;

        opened = &opened;
        fake_alloc_fail(n);
        status = CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId, &opened);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok_status(status, ND_NO_MEMORY);
        ok_ptr(opened, ==, NULL);
    }
    fake_alloc_clear();
    ok_uint(n, >, 2);
    front_release(opened);
}

/* --- every object --- */

static void check_unknown(void *object, REFIID own, REFIID base)
{
    IUnknown *unknown = object, *out, *again;

    ok_uint(CALL(unknown, AddRef), ==, 2);
    ok_uint(CALL(unknown, Release), ==, 1);
    ok_status(CALL(unknown, QueryInterface, own, NULL), E_POINTER);
    out = object;
    ok_status(CALL(unknown, QueryInterface, &IID_INDProvider, (void **)&out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = object;
    ok_status(CALL(unknown, QueryInterface, NULL, (void **)&out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(unknown, QueryInterface, own, (void **)&out), S_OK);
    ok_status(CALL(unknown, QueryInterface, &IID_IUnknown, (void **)&again), S_OK);
    ok_ptr(again, ==, unknown);
    ok_uint(CALL(out, Release), ==, 2);
    ok_uint(CALL(again, Release), ==, 1);
    if (base) {
        ok_status(CALL(unknown, QueryInterface, base, (void **)&out), S_OK);
        ok_uint(CALL(out, Release), ==, 1);
    } else {
        ok_status(CALL(unknown, QueryInterface, &IID_IND2Overlapped, (void **)&out), E_NOINTERFACE);
    }
}

TEST(IUnknown__of_provider_adapter_and_region)
{
    IND2MemoryRegion *region;

    check_unknown(provider, &IID_IND2Provider, NULL);
    check_unknown(adapter, &IID_IND2Adapter, NULL);
    check_unknown(cq, &IID_IND2CompletionQueue, &IID_IND2Overlapped);
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&region), ND_SUCCESS);
    check_unknown(region, &IID_IND2MemoryRegion, &IID_IND2Overlapped);
    front_release(region);
}

/* --- the adapter --- */

TEST(CreateOverlappedFile__rows)
{
    HANDLE other = NULL;

    ok_status(CALL(adapter, CreateOverlappedFile, NULL), ND_INVALID_PARAMETER_1);
    ok_status(CALL(adapter, CreateOverlappedFile, &other), ND_SUCCESS);
    ok(other != file);
    ok(CloseHandle(other));
    ok(!CloseHandle(other));
    for (unsigned n = 1;; n++) {
        HRESULT status;

        other = file;
        fake_alloc_fail(n);
        status = CALL(adapter, CreateOverlappedFile, &other);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok_status(status, ND_NO_MEMORY);
        ok_ptr(other, ==, NULL);
    }
    fake_alloc_clear();
    CloseHandle(other);
}

TEST(Query__size_contract)
{
    struct {
        ND2_ADAPTER_INFO info;
        char more[16];
    } big;
    ULONG size = 0;

    ok_status(CALL(adapter, Query, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(adapter, Query, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(ND2_ADAPTER_INFO));
    memset(&big, 0x5a, sizeof(big));
    size = sizeof(big.info) - 1;
    ok_status(CALL(adapter, Query, &big.info, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, sizeof(big.info));
    ok_uint(big.info.InfoVersion, ==, 0x5a5a5a5a);
    ok_status(CALL(adapter, Query, &big.info, &size), ND_NOT_SUPPORTED); /* that is no version */
    ok_uint(size, ==, 0);
    ok_uint(big.info.VendorId, ==, 0x5a5a);
    size = sizeof(big);
    big.info.InfoVersion = ND_VERSION_1;
    ok_status(CALL(adapter, Query, &big.info, &size), ND_SUCCESS);
    ok_uint(size, ==, sizeof(big.info));
    ok_uint(big.info.InfoVersion, ==, ND_VERSION_1); /* as passed */
    ok_int(big.more[0], ==, 0x5a);
    ok_uint(big.info.MaxCallerData, ==, 56);
    ok_uint(big.info.MaxCalleeData, ==, 148);
    ok_uint(big.info.MaxSharedReceiveQueueDepth, ==, 8192);
    ok_uint(big.info.MaxWindowSize, ==, big.info.MaxRegistrationSize);
}

TEST(QueryAddressList__this_adapter_only)
{
    char buffer[512];
    SOCKET_ADDRESS_LIST *list = (SOCKET_ADDRESS_LIST *)buffer;
    ULONG size = 0, needed = offsetof(SOCKET_ADDRESS_LIST, Address) + 2 * sizeof(SOCKET_ADDRESS) + 16 + 28;

    ok_status(CALL(adapter, QueryAddressList, list, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(adapter, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, needed);
    size = sizeof(buffer);
    ok_status(CALL(adapter, QueryAddressList, list, &size), ND_SUCCESS);
    ok_uint(size, ==, needed);
    ok_int(list->iAddressCount, ==, 2);
}

/* One Create method with everything but `iid`, `handle` and `out` right. */
typedef HRESULT (*create_fn)(REFIID iid, HANDLE handle, void **out);

static HRESULT create_cq(REFIID iid, HANDLE handle, void **out)
{
    return CALL(adapter, CreateCompletionQueue, iid, handle, 16, 0, 0, out);
}

static HRESULT create_region(REFIID iid, HANDLE handle, void **out)
{
    return CALL(adapter, CreateMemoryRegion, iid, handle, out);
}

static HRESULT create_window(REFIID iid, HANDLE handle, void **out)
{
    (void)handle;
    return CALL(adapter, CreateMemoryWindow, iid, out);
}

static HRESULT create_srq(REFIID iid, HANDLE handle, void **out)
{
    return CALL(adapter, CreateSharedReceiveQueue, iid, handle, 16, 1, 0, 0, 0, out);
}

static HRESULT create_qp(REFIID iid, HANDLE handle, void **out)
{
    (void)handle;
    return CALL(adapter, CreateQueuePair, iid, (IUnknown *)cq, (IUnknown *)cq, NULL, 4, 4, 1, 1, 0, out);
}

static HRESULT create_qp_srq(REFIID iid, HANDLE handle, void **out)
{
    (void)handle;
    return CALL(adapter, CreateQueuePairWithSrq, iid, (IUnknown *)cq, (IUnknown *)cq, (IUnknown *)srq, NULL, 4, 1, 0,
                out);
}

static HRESULT create_connector(REFIID iid, HANDLE handle, void **out)
{
    return CALL(adapter, CreateConnector, iid, handle, out);
}

static HRESULT create_listener(REFIID iid, HANDLE handle, void **out)
{
    return CALL(adapter, CreateListener, iid, handle, out);
}

static const struct create_row {
    const char *name;
    create_fn create;
    const GUID *iid;
    HRESULT null_out, no_memory;
    bool has_file, supported;
} creates[] = {
    { "CreateCompletionQueue", create_cq, &IID_IND2CompletionQueue, ND_INVALID_PARAMETER_6, ND_NO_MEMORY, true, true },
    { "CreateMemoryRegion", create_region, &IID_IND2MemoryRegion, ND_INVALID_PARAMETER_3, ND_NO_MEMORY, true, true },
    { "CreateMemoryWindow", create_window, &IID_IND2MemoryWindow, ND_INVALID_PARAMETER_2, ND_INSUFFICIENT_RESOURCES,
      false, true },
    { "CreateSharedReceiveQueue", create_srq, &IID_IND2SharedReceiveQueue, ND_INVALID_PARAMETER_8, ND_NO_MEMORY, true,
      true },
    { "CreateQueuePair", create_qp, &IID_IND2QueuePair, ND_INVALID_PARAMETER_10, ND_NO_MEMORY, false, true },
    { "CreateQueuePairWithSrq", create_qp_srq, &IID_IND2QueuePair, ND_INVALID_PARAMETER_9, ND_NO_MEMORY, false, true },
    { "CreateConnector", create_connector, &IID_IND2Connector, ND_INVALID_PARAMETER_3, ND_NO_MEMORY, true, true },
    { "CreateListener", create_listener, &IID_IND2Listener, ND_INVALID_PARAMETER_3, ND_NO_MEMORY, true, true },
};

static void expect(const struct create_row *row, REFIID iid, HANDLE handle, HRESULT wanted)
{
    void *out = &out;
    HRESULT status = row->create(iid, handle, &out);

    ok_msg(status == wanted, "%s: %s, not %s", row->name, ndverbs_status_text(status), ndverbs_status_text(wanted));
    if (status == ND_SUCCESS)
        front_release(out);
    else
        ok_ptr(out, ==, NULL);
}

TEST(Create__every_method)
{
    for (size_t i = 0; i < COUNT(creates); i++) {
        const struct create_row *row = &creates[i];
        HRESULT good = row->supported ? ND_SUCCESS : ND_NOT_SUPPORTED;
        HRESULT bad_file = row->has_file && row->supported ? ND_INVALID_HANDLE : good;

        ok_status(row->create(row->iid, file, NULL), row->null_out);
        expect(row, row->iid, file, good);
        expect(row, &IID_IUnknown, file, good);
        expect(row, &IID_IND2Adapter, file, E_NOINTERFACE);
        expect(row, NULL, file, E_NOINTERFACE);
        expect(row, row->iid, NULL, bad_file);
        expect(row, row->iid, INVALID_HANDLE_VALUE, bad_file);
        expect(row, row->iid, (HANDLE)(ULONG_PTR)0x1234, bad_file);
        expect(row, row->iid, file, good); /* still usable */
    }
}

TEST(Create__out_of_memory)
{
    for (size_t i = 0; i < COUNT(creates); i++) {
        const struct create_row *row = &creates[i];
        unsigned n = 1;
        void *out;

        if (!row->supported)
            continue;
        for (;; n++) {
            HRESULT status;

            out = &out;
            fake_alloc_fail(n);
            status = row->create(row->iid, file, &out);
            if (fake_alloc_pending())
                break;
            fake_alloc_clear();
            ok_msg(status == row->no_memory, "%s, allocation %u: %s", row->name, n, ndverbs_status_text(status));
            ok_ptr(out, ==, NULL);
        }
        fake_alloc_clear();
        ok_uint(n, >, 1);
        front_release(out);
    }
}

TEST(Create__device_refuses)
{
    static const struct {
        unsigned create;
        enum fake_fn fn;
        int error;
        HRESULT status;
    } rows[] = {
        { 0, FAKE_ibv_create_cq, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { 0, FAKE_ibv_create_cq, EINVAL, ND_INSUFFICIENT_RESOURCES },
        { 0, FAKE_ibv_create_cq, EIO, ND_DEVICE_REMOVED },
        { 2, FAKE_ibv_alloc_mw, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { 2, FAKE_ibv_alloc_mw, EIO, ND_DEVICE_REMOVED },
        { 4, FAKE_ibv_create_qp, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { 4, FAKE_ibv_create_qp, EINVAL, ND_INSUFFICIENT_RESOURCES },
        { 4, FAKE_ibv_create_qp, EIO, ND_DEVICE_REMOVED },
        { 4, FAKE_ibv_modify_qp, EINVAL, ND_INSUFFICIENT_RESOURCES },
        { 3, FAKE_ibv_create_srq, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { 3, FAKE_ibv_create_srq, EINVAL, ND_INSUFFICIENT_RESOURCES },
        { 3, FAKE_ibv_create_srq, EIO, ND_DEVICE_REMOVED },
        { 5, FAKE_ibv_create_qp, ENOMEM, ND_INSUFFICIENT_RESOURCES },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct create_row *row = &creates[rows[i].create];

        fake_fail_always(rows[i].fn, rows[i].error);
        expect(row, row->iid, file, rows[i].status);
        fake_fail_clear(rows[i].fn);
        expect(row, row->iid, file, ND_SUCCESS);
    }
}

TEST(CreateCompletionQueue__depth)
{
    IND2CompletionQueue *made = (IND2CompletionQueue *)&made;

    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 0, 0, 0, (void **)&made),
              ND_INVALID_PARAMETER_3);
    ok_ptr(made, ==, NULL);
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, info.MaxCompletionQueueDepth + 1, 0,
                   0, (void **)&made),
              ND_INVALID_PARAMETER_3);
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, info.MaxCompletionQueueDepth, 0, 0,
                   (void **)&made),
              ND_SUCCESS);
    front_release(made);
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 1, 0, 0xffff, (void **)&made),
              ND_SUCCESS); /* an affinity is a wish */
    front_release(made);
}

TEST(CreateQueuePair__arguments)
{
    IND2Adapter *other = front_open("10.1.1.1");
    HANDLE other_file = front_file(other);
    IND2CompletionQueue *other_cq;
    IUnknown *good = (IUnknown *)cq;
    IND2QueuePair *made;
    const ND2_ADAPTER_INFO *i = &info;

    ok_status(CALL(other, CreateCompletionQueue, &IID_IND2CompletionQueue, other_file, 16, 0, 0, (void **)&other_cq),
              ND_SUCCESS);
    {
        const struct {
            IUnknown *recv, *send;
            ULONG recv_depth, send_depth, recv_sge, send_sge, inline_size;
            HRESULT status;
        } rows[] = {
            { NULL, good, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_2 },
            { good, NULL, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_3 },
            { &front_foreign, good, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_2 },
            { good, &front_foreign, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_3 },
            { (IUnknown *)adapter, good, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_2 },
            { (IUnknown *)other_cq, good, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_2 },
            { good, (IUnknown *)other_cq, 4, 4, 1, 1, 0, ND_INVALID_PARAMETER_3 },
            { good, good, i->MaxReceiveQueueDepth + 1, 4, 1, 1, 0, ND_INVALID_PARAMETER_5 },
            { good, good, 4, i->MaxInitiatorQueueDepth + 1, 1, 1, 0, ND_INVALID_PARAMETER_6 },
            { good, good, 4, 4, i->MaxReceiveSge + 1, 1, 0, ND_INVALID_PARAMETER_7 },
            { good, good, 4, 4, 1, i->MaxInitiatorSge + 1, 0, ND_INVALID_PARAMETER_8 },
            { good, good, 4, 4, 1, 1, i->MaxInlineDataSize + 1, ND_INVALID_PARAMETER_9 },
            { good, good, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, ND_INVALID_PARAMETER_5 },
            { good, good, 0, 4, 0, 1, 0, ND_SUCCESS },
            { good, good, 4, 0, 1, 0, 0, ND_SUCCESS },
            { good, good, 0, 0, 0, 0, 0, ND_SUCCESS },
            { good, good, i->MaxReceiveQueueDepth, i->MaxInitiatorQueueDepth, i->MaxReceiveSge, i->MaxInitiatorSge,
              i->MaxInlineDataSize, ND_SUCCESS },
            { good, good, 4, 4, 1, 1, i->InlineRequestThreshold, ND_SUCCESS },
        };

        for (size_t k = 0; k < COUNT(rows); k++) {
            HRESULT status;

            made = (IND2QueuePair *)&made;
            status = CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, rows[k].recv, rows[k].send, &made,
                          rows[k].recv_depth, rows[k].send_depth, rows[k].recv_sge, rows[k].send_sge,
                          rows[k].inline_size, (void **)&made);
            ok_msg(status == rows[k].status, "row %zu: %s, not %s", k, ndverbs_status_text(status),
                   ndverbs_status_text(rows[k].status));
            if (status == ND_SUCCESS)
                front_release(made);
            else
                ok_ptr(made, ==, NULL);
        }
    }
    CloseHandle(other_file);
    front_release(other_cq);
    front_release(other);
}

TEST(CreateSharedReceiveQueue__arguments)
{
    static const struct {
        ULONG depth, sge, threshold;
        HRESULT status;
    } rows[] = {
        { 0, 1, 0, ND_INVALID_PARAMETER_3 },
        { 8193, 1, 0, ND_INVALID_PARAMETER_3 },
        { 0xffffffff, 1, 0, ND_INVALID_PARAMETER_3 },
        { 16, 28, 0, ND_INVALID_PARAMETER_4 },
        { 16, 0xffffffff, 0, ND_INVALID_PARAMETER_4 },
        { 8192, 27, 8192, ND_SUCCESS },
        { 1, 0, 0, ND_SUCCESS },
        { 1, 1, 0xffffffff, ND_SUCCESS }, /* always reached */
    };

    ok_uint(info.MaxSharedReceiveQueueDepth, ==, 8192);
    ok_uint(info.MaxReceiveSge, ==, 27);
    for (size_t k = 0; k < COUNT(rows); k++) {
        IND2SharedReceiveQueue *made = (IND2SharedReceiveQueue *)&made;
        HRESULT status = CALL(adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, file, rows[k].depth,
                              rows[k].sge, rows[k].threshold, 3, 0xff, (void **)&made);

        ok_msg(status == rows[k].status, "row %zu: %s", k, ndverbs_status_text(status));
        if (status == ND_SUCCESS)
            front_release(made);
        else
            ok_ptr(made, ==, NULL);
    }
}

TEST(CreateQueuePairWithSrq__arguments)
{
    IND2Adapter *other = front_open("10.1.1.1");
    HANDLE other_file = front_file(other);
    IND2SharedReceiveQueue *other_srq;
    IUnknown *good = (IUnknown *)cq, *shared = (IUnknown *)srq;
    IND2QueuePair *made;

    ok_status(CALL(other, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, other_file, 16, 1, 0, 0, 0,
                   (void **)&other_srq),
              ND_SUCCESS);
    {
        const struct {
            IUnknown *recv, *send, *srq;
            ULONG depth, sge, inline_size;
            HRESULT status;
        } rows[] = {
            { NULL, good, shared, 4, 1, 0, ND_INVALID_PARAMETER_2 },
            { good, shared, shared, 4, 1, 0, ND_INVALID_PARAMETER_3 },
            { good, good, NULL, 4, 1, 0, ND_INVALID_PARAMETER_4 },
            { good, good, good, 4, 1, 0, ND_INVALID_PARAMETER_4 },
            { good, good, (IUnknown *)other_srq, 4, 1, 0, ND_INVALID_PARAMETER_4 },
            { good, good, shared, info.MaxInitiatorQueueDepth + 1, 1, 0, ND_INVALID_PARAMETER_6 },
            { good, good, shared, 4, info.MaxInitiatorSge + 1, 0, ND_INVALID_PARAMETER_7 },
            { good, good, shared, 4, 1, info.MaxInlineDataSize + 1, ND_INVALID_PARAMETER_8 },
            { good, good, shared, 0, 0, 0, ND_SUCCESS },
            { good, good, shared, info.MaxInitiatorQueueDepth, info.MaxInitiatorSge, info.MaxInlineDataSize,
              ND_SUCCESS },
        };

        for (size_t k = 0; k < COUNT(rows); k++) {
            HRESULT status;

            made = (IND2QueuePair *)&made;
            status = CALL(adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, rows[k].recv, rows[k].send, rows[k].srq,
                          &made, rows[k].depth, rows[k].sge, rows[k].inline_size, (void **)&made);
            ok_msg(status == rows[k].status, "row %zu: %s, not %s", k, ndverbs_status_text(status),
                   ndverbs_status_text(rows[k].status));
            if (status == ND_SUCCESS)
                front_release(made);
            else
                ok_ptr(made, ==, NULL);
        }
    }
    CloseHandle(other_file);
    front_release(other_srq);
    front_release(other);
}

/* A device that says it has none. */
TEST(CreateSharedReceiveQueue__not_supported)
{
    IND2Adapter *without;
    void *made = &made;
    HANDLE other_file;

    fake_device_attr("fake_iw")->max_srq = 0;
    without = front_open("10.1.2.1");
    other_file = front_file(without);
    ok_status(CALL(without, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, other_file, 16, 1, 0, 0, 0, &made),
              ND_NOT_SUPPORTED);
    ok_ptr(made, ==, NULL);
    made = &made;
    ok_status(CALL(without, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq, (IUnknown *)srq,
                   NULL, 4, 1, 0, &made),
              ND_NOT_SUPPORTED);
    ok_ptr(made, ==, NULL);
    CloseHandle(other_file);
    front_release(without);
}

TEST(adapter__device_removed)
{
    ULONG size = sizeof(info);
    HANDLE more;

    fake_device_remove("fake_ib");
    ok_eventually(CALL(adapter, Query, &info, &size) == ND_DEVICE_REMOVED);
    ok_uint(size, ==, 0);
    for (size_t i = 0; i < COUNT(creates); i++)
        expect(&creates[i], creates[i].iid, file, ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, QueryAddressList, NULL, &size), ND_DEVICE_REMOVED);
    ok_status(CALL(adapter, CreateOverlappedFile, &more), ND_SUCCESS); /* knows nothing of the device */
    CloseHandle(more);
}

TEST(adapter__forked_child)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        ULONG size = sizeof(info);
        UINT64 id;
        void *out;

        ok_status(CALL(adapter, Query, &info, &size), ND_DEVICE_REMOVED);
        ok_status(CALL(adapter, QueryAddressList, NULL, &size), ND_DEVICE_REMOVED);
        ok_status(CALL(adapter, CreateOverlappedFile, (HANDLE *)&out), ND_DEVICE_REMOVED);
        for (size_t i = 0; i < COUNT(creates); i++)
            expect(&creates[i], creates[i].iid, file, ND_DEVICE_REMOVED);
        ok_status(CALL(provider, QueryAddressList, NULL, &size), ND_DEVICE_REMOVED);
        ok_status(CALL(provider, ResolveAddress, NULL, 0, &id), ND_DEVICE_REMOVED);
        ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, info.AdapterId, &out), ND_DEVICE_REMOVED);
        front_release(srq);
        front_release(cq);
        front_release(adapter);
        front_release(provider);
        _exit(0);
    }
    ok_int(waitpid(child, &status, 0), ==, child);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
