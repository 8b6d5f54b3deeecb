/* SPDX-License-Identifier: MIT */
/* Memory keys, and the three outcomes of an overlapped call on the simplest one. */
#include "rig.h"

#include <arpa/inet.h>

static char memory[4096];

SETUP
{
    rig_setup();
}

TEARDOWN
{
    rig_teardown();
}

/* The keys of both forms are right when the call returns, before any completion was taken. */
TEST(RegisterMemory__keys_at_return)
{
    OVERLAPPED ov = rig_overlapped();
    WV_MEMORY_KEYS keys = { 0, 0 };
    struct ibv_mr *mr;
    DWORD bytes = 0;

    ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_LOCAL_WRITE, NULL, &keys), WV_SUCCESS);
    mr = fake_object(FAKE_OBJ_MR, -1);
    ok_uint(keys.Lkey, ==, mr->lkey);
    ok_uint(keys.Rkey, ==, htonl(mr->rkey));
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);

    memset(&keys, 0, sizeof(keys));
    ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_LOCAL_WRITE, &ov, &keys), WV_SUCCESS);
    mr = fake_object(FAKE_OBJ_MR, -1);
    ok_uint(keys.Lkey, ==, mr->lkey);
    ok_uint(keys.Rkey, ==, htonl(mr->rkey));
    ok_status(CALL(pd, GetOverlappedResult, &ov, &bytes, FALSE), WV_SUCCESS);
    ok_uint(bytes, ==, 8);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, &ov), WV_SUCCESS);
    ok_status(CALL(pd, GetOverlappedResult, &ov, &bytes, FALSE), WV_SUCCESS);
    ok_uint(bytes, ==, 0);
    ok_status(CALL(pd, CancelOverlappedRequests), WV_SUCCESS);
}

TEST(RegisterMemory__rights)
{
    static const struct {
        DWORD wv;
        unsigned ibv;
    } rights[] = {
        { 0, 0 },
        { WV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE },
        { WV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ },
        { WV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE },
        { 0x2, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE },
        { WV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE },
        { WV_ACCESS_MW_BIND, IBV_ACCESS_MW_BIND },
        { WV_ACCESS_NON_CACHABLE | WV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE },
    };

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        WV_MEMORY_KEYS keys;

        ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), rights[i].wv, NULL, &keys), WV_SUCCESS);
        ok_uint(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.access, ==, rights[i].ibv);
        ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    }
}

TEST(RegisterMemory__failures)
{
    static const struct {
        int error;
        HRESULT hr;
    } failures[] = { { EFAULT, WV_ACCESS_VIOLATION },
                     { EINVAL, WV_INVALID_PARAMETER },
                     { ENOMEM, WV_INSUFFICIENT_RESOURCES },
                     { EIO, WV_DEVICE_REMOVED } };
    OVERLAPPED ov = rig_overlapped();
    WV_MEMORY_KEYS keys;

    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        fake_fail(FAKE_ibv_reg_mr, 1, failures[i].error);
        ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), 0, &ov, &keys), failures[i].hr);
        /* Nothing was queued. */
        ok_uint((ULONG)ov.Internal, ==, 0xa5a5a5a5);
    }
    ok_status(CALL(pd, RegisterMemory, memory, 0, 0, NULL, &keys), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, RegisterMemory, NULL, 1, 0, NULL, &keys), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, NULL, NULL), WV_INVALID_PARAMETER);
    ov.hEvent = (HANDLE)0x7777770;
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_INVALID_HANDLE);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    for (unsigned n = 1;; n++) {
        HRESULT hr;

        fake_alloc_fail(n);
        hr = CALL(pd, RegisterMemory, memory, 1, 0, NULL, &keys);
        if (fake_alloc_pending()) {
            fake_alloc_clear();
            ok_status(hr, WV_SUCCESS);
            break;
        }
        ok(hr == WV_NO_MEMORY || hr == WV_INSUFFICIENT_RESOURCES);
    }
}

TEST(DeregisterMemory__by_key_in_this_domain)
{
    IWVProtectionDomain *other;
    WV_MEMORY_KEYS keys;

    ok_status(CALL(device, AllocateProtectionDomain, &other), WV_SUCCESS);
    ok_status(CALL(pd, RegisterMemory, memory, sizeof(memory), 0, NULL, &keys), WV_SUCCESS);
    ok_status(CALL(other, DeregisterMemory, keys.Lkey, NULL), WV_NOT_FOUND);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey + 1, NULL), WV_NOT_FOUND);
    fake_fail(FAKE_ibv_dereg_mr, 1, EBUSY);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_DEVICE_BUSY);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_status(CALL(pd, DeregisterMemory, keys.Lkey, NULL), WV_NOT_FOUND);
    /* What is left goes with its domain. */
    for (int i = 0; i < 100; i++)
        ok_status(CALL(other, RegisterMemory, memory + i, 1, 0, NULL, &keys), WV_SUCCESS);
    rig_release(other);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
}

static unsigned dequeue(HANDLE port, OVERLAPPED *ov)
{
    OVERLAPPED *dequeued = NULL;
    ULONG_PTR key = 0;
    DWORD bytes = 0;

    if (!GetQueuedCompletionStatus(port, &bytes, &key, &dequeued, 0))
        return 0;
    ok_ptr(dequeued, ==, ov);
    ok_uint(key, ==, 9);
    return 1;
}

/* Success at once still delivers; not to a port whose owner wants none for that, nor with the low bit of hEvent. */
TEST(overlapped__success_still_delivers)
{
    HANDLE port = CreateIoCompletionPort(CALL(provider, GetFileHandle), NULL, 9, 0);
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    OVERLAPPED ov = rig_overlapped();
    WV_MEMORY_KEYS keys;

    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_SUCCESS);
    ok_uint(dequeue(port, &ov), ==, 1);
    ov.hEvent = event;
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_SUCCESS);
    ok_int(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(dequeue(port, &ov), ==, 1);
    ov.hEvent = (HANDLE)((ULONG_PTR)event | 1);
    ok(ResetEvent(event));
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_SUCCESS);
    ok_int(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(dequeue(port, &ov), ==, 0);
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, NULL, &keys), WV_SUCCESS);
    ok_uint(dequeue(port, &ov), ==, 0);
    ok(SetFileCompletionNotificationModes(CALL(provider, GetFileHandle), FILE_SKIP_COMPLETION_PORT_ON_SUCCESS));
    ov.hEvent = event;
    ok(ResetEvent(event));
    ok_status(CALL(pd, RegisterMemory, memory, 1, 0, &ov, &keys), WV_SUCCESS);
    ok_int(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_uint(dequeue(port, &ov), ==, 0);
    ok(CloseHandle(event));
    ok(CloseHandle(port));
}

TEST(CreateAddressHandle__statuses)
{
    WV_ADDRESS_VECTOR vector = { .PortNumber = 1 };
    IWVAddressHandle *ah = NULL;
    ULONG_PTR key = 0;
    IUnknown *unknown;

    /* RoCE goes by GIDs only. */
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_INVALID_PARAMETER);
    ok_ptr(ah, ==, NULL);
    vector.Route.Valid = 1;
    memset(&vector.Route.SGid, 0x33, sizeof(vector.Route.SGid));
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_INVALID_PARAMETER_2);
    ok_status(CALL(device, QueryGid, 1, 0, &vector.Route.SGid), WV_SUCCESS);
    ok_status(CALL(pd, CreateAddressHandle, NULL, &ah, &key), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, CreateAddressHandle, &vector, NULL, &key), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, NULL), WV_INVALID_PARAMETER);
    fake_fail(FAKE_ibv_create_ah, 1, ENOMEM);
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_NO_MEMORY);
    fake_fail(FAKE_ibv_create_ah, 1, EOPNOTSUPP); /* iWARP */
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_NOT_SUPPORTED);
    fake_fail(FAKE_ibv_create_ah, 1, EMFILE);
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_INSUFFICIENT_RESOURCES);
    ok_status(CALL(pd, CreateAddressHandle, &vector, &ah, &key), WV_SUCCESS);
    ok_ptr((void *)key, ==, fake_object(FAKE_OBJ_AH, -1));
    ok_status(CALL(ah, QueryInterface, &IID_IWVAddressHandle, (void **)&unknown), WV_SUCCESS);
    ok_uint(CALL(unknown, Release), ==, 1);
    rig_release(ah);
    ok_uint(fake_live(FAKE_OBJ_AH), ==, 0);
}
