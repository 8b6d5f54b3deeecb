/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "object.h"

struct seen seen;

static HRESULT record(const char *method, const void *self, unsigned n, const uint64_t *arguments)
{
    seen.method = method;
    seen.self = self;
    memset(seen.arguments, 0, sizeof(seen.arguments));
    memcpy(seen.arguments, arguments, n * sizeof(*arguments));
    return ND_PENDING;
}
#define RECORD(method, self, ...) \
    record(method, self, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), (uint64_t[]){ __VA_ARGS__ })
#define P(pointer) ((uint64_t)(uintptr_t)(pointer))

static HRESULT region_QueryInterface(IND2MemoryRegion *iface, REFIID riid, VOID **object)
{
    RECORD("QueryInterface", iface, P(riid), P(object));
    if (IsEqualIID(riid, &IID_IND2MemoryRegion) || IsEqualIID(riid, &IID_IND2Overlapped) ||
        IsEqualIID(riid, &IID_IUnknown)) {
        *object = iface;
        return S_OK;
    }
    *object = NULL;
    return E_NOINTERFACE;
}

static ULONG region_AddRef(IND2MemoryRegion *iface)
{
    RECORD("AddRef", iface, 0);
    return 2;
}

static ULONG region_Release(IND2MemoryRegion *iface)
{
    RECORD("Release", iface, 0);
    return 1;
}

static HRESULT region_CancelOverlappedRequests(IND2MemoryRegion *iface)
{
    RECORD("CancelOverlappedRequests", iface, 0);
    return ND_SUCCESS;
}

static HRESULT region_GetOverlappedResult(IND2MemoryRegion *iface, OVERLAPPED *ov, BOOL wait)
{
    RECORD("GetOverlappedResult", iface, P(ov), (uint64_t)wait);
    return ND_CANCELED;
}

static HRESULT region_Register(IND2MemoryRegion *iface, const VOID *buffer, SIZE_T length, ULONG flags, OVERLAPPED *ov)
{
    return RECORD("Register", iface, P(buffer), length, flags, P(ov));
}

static HRESULT region_Deregister(IND2MemoryRegion *iface, OVERLAPPED *ov)
{
    return RECORD("Deregister", iface, P(ov));
}

static UINT32 region_GetLocalToken(IND2MemoryRegion *iface)
{
    RECORD("GetLocalToken", iface, 0);
    return REGION_LOCAL_TOKEN;
}

static UINT32 region_GetRemoteToken(IND2MemoryRegion *iface)
{
    RECORD("GetRemoteToken", iface, 0);
    return REGION_REMOTE_TOKEN;
}

static const IND2MemoryRegionVtbl region_vtbl = {
    region_QueryInterface,      region_AddRef,   region_Release,    region_CancelOverlappedRequests,
    region_GetOverlappedResult, region_Register, region_Deregister, region_GetLocalToken,
    region_GetRemoteToken,
};

IND2MemoryRegion *c_region(void)
{
    static IND2MemoryRegion region = { &region_vtbl };

    return &region;
}

static HRESULT adapter_CreateQueuePair(IND2Adapter *iface, REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq,
                                       VOID *context, ULONG receive_depth, ULONG initiator_depth, ULONG receive_sge,
                                       ULONG initiator_sge, ULONG inline_size, VOID **out)
{
    RECORD("CreateQueuePair", iface, P(iid), P(receive_cq), P(initiator_cq), P(context), receive_depth, initiator_depth,
           receive_sge, initiator_sge, inline_size, P(out));
    return ND_INVALID_PARAMETER_9;
}

static HRESULT adapter_CreateCompletionQueue(IND2Adapter *iface, REFIID iid, HANDLE file, ULONG depth, USHORT group,
                                             KAFFINITY affinity, VOID **out)
{
    RECORD("CreateCompletionQueue", iface, P(iid), P(file), depth, group, affinity, P(out));
    return ND_INVALID_PARAMETER_3;
}

/* Only the slots that are driven. */
static const IND2AdapterVtbl adapter_vtbl = {
    .CreateQueuePair = adapter_CreateQueuePair,
    .CreateCompletionQueue = adapter_CreateCompletionQueue,
};

IND2Adapter *c_adapter(void)
{
    static IND2Adapter adapter = { &adapter_vtbl };

    return &adapter;
}

#define CHECK(returned, name, object, ...)                                                     \
    do {                                                                                       \
        uint64_t expected[10] = { __VA_ARGS__ };                                               \
        bool right = (returned);                                                               \
        ++*calls;                                                                              \
        if (!right || strcmp(seen.method, name) != 0 || seen.self != (const void *)(object) || \
            memcmp(seen.arguments, expected, sizeof(expected)) != 0) {                         \
            printf("FAIL C call of %s: arrived as %s\n", name, seen.method);                   \
            ++wrong;                                                                           \
        }                                                                                      \
    } while (0)

unsigned drive_region_c(IND2MemoryRegion *region, unsigned *calls)
{
    OVERLAPPED ov;
    char buffer[1];
    void *out = NULL;
    unsigned wrong = 0;

    CHECK(region->lpVtbl->QueryInterface(region, &IID_IND2Overlapped, &out) == S_OK && out == region, "QueryInterface",
          region, P(&IID_IND2Overlapped), P(&out));
    CHECK(region->lpVtbl->QueryInterface(region, &IID_IND2Adapter, &out) == E_NOINTERFACE && !out, "QueryInterface",
          region, P(&IID_IND2Adapter), P(&out));
    CHECK(region->lpVtbl->AddRef(region) == 2, "AddRef", region, 0);
    CHECK(region->lpVtbl->Release(region) == 1, "Release", region, 0);
    CHECK(region->lpVtbl->CancelOverlappedRequests(region) == ND_SUCCESS, "CancelOverlappedRequests", region, 0);
    CHECK(region->lpVtbl->GetOverlappedResult(region, &ov, TRUE) == ND_CANCELED, "GetOverlappedResult", region, P(&ov),
          1);
    CHECK(region->lpVtbl->Register(region, buffer, REGION_LENGTH, ND_MR_FLAG_DO_NOT_SECURE_VM, &ov) == ND_PENDING,
          "Register", region, P(buffer), REGION_LENGTH, ND_MR_FLAG_DO_NOT_SECURE_VM, P(&ov));
    CHECK(region->lpVtbl->Deregister(region, &ov) == ND_PENDING, "Deregister", region, P(&ov));
    CHECK(region->lpVtbl->GetLocalToken(region) == REGION_LOCAL_TOKEN, "GetLocalToken", region, 0);
    CHECK(region->lpVtbl->GetRemoteToken(region) == REGION_REMOTE_TOKEN, "GetRemoteToken", region, 0);
    return wrong;
}

unsigned drive_adapter_c(IND2Adapter *adapter, unsigned *calls)
{
    IUnknown *receive = (IUnknown *)c_region(), *initiator = (IUnknown *)adapter;
    void *out;
    unsigned wrong = 0;

    CHECK(adapter->lpVtbl->CreateQueuePair(adapter, &IID_IND2QueuePair, receive, initiator, &out, 1, 2, 3, 4,
                                           0xffffffff, &out) == ND_INVALID_PARAMETER_9,
          "CreateQueuePair", adapter, P(&IID_IND2QueuePair), P(receive), P(initiator), P(&out), 1, 2, 3, 4, 0xffffffff,
          P(&out));
    CHECK(adapter->lpVtbl->CreateCompletionQueue(adapter, &IID_IND2CompletionQueue, (HANDLE)8, 16, 0xffff,
                                                 (KAFFINITY)-2, &out) == ND_INVALID_PARAMETER_3,
          "CreateCompletionQueue", adapter, P(&IID_IND2CompletionQueue), 8, 16, 0xffff, (KAFFINITY)-2, P(&out));
    return wrong;
}
