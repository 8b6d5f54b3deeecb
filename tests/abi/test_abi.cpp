/* SPDX-License-Identifier: MIT */
/* The parts of the binary interface that show at run time only: slots of C++ classes, objects of one language used by
 * the other, values of the interface ids. */
#include "static.h"
#include "object.h"

#include <memory>
#include <new>

static unsigned passed, failed;

static void check(bool right, const char *what, const char *more = "")
{
    if (right) {
        passed++;
    } else {
        failed++;
        printf("FAIL %s%s%s\n", what, *more ? " " : "", more);
    }
}

/* Slot of a virtual function from its member pointer, in the form of the Itanium C++ ABI: offset in the table plus one,
 * or on ARM the plain offset with the mark in the second word. */
template <typename M> static size_t slot_of(M method)
{
    uintptr_t words[2];

    static_assert(sizeof(method) == sizeof(words), "member pointer");
    memcpy(words, &method, sizeof(words));
#if defined(__aarch64__) || defined(__arm__)
    return words[0] / sizeof(void *);
#else
    return (words[0] - 1) / sizeof(void *);
#endif
}

static void check_slots()
{
#define SLOT(iface, slot, type, method, ...) \
    check(slot_of(static_cast<type (iface::*)(__VA_ARGS__)>(&iface::method)) == slot, #iface, #method);
#define COUNT(iface, slots)
#include "slots.h"
#undef SLOT
#undef COUNT
}

static void check_id(const GUID &id, const char *text, const char *name)
{
    unsigned int a, b, c, d[8];
    int n = sscanf(text, "%8x-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x", &a, &b, &c, &d[0], &d[1], &d[2], &d[3], &d[4], &d[5],
                   &d[6], &d[7]);
    bool right = n == 11 && id.Data1 == a && id.Data2 == b && id.Data3 == c;

    for (int i = 0; i < 8; i++)
        right = right && id.Data4[i] == d[i];
    check(right, "id of", name);
}

static void check_ids()
{
#define SIZE(type, wide, narrow)
#define FIELD(type, member, wide, narrow)
#define VALUE(name, value)
#define STATUS(name, value)
#define ID(iface, text)                  \
    check_id(IID_##iface, text, #iface); \
    check(__uuidof(iface) == IID_##iface, "__uuidof", #iface);
#include "layouts.h"
    check(IID_IND2Adapter != IID_IND2Provider && !IsEqualGUID(IID_IND2Adapter, IID_IND2Provider), "ids differ");
    check(IID_IND2MemoryWindow == IID_INDMemoryWindow, "memory windows of both versions share an id");
}

static void record(const char *method, const void *self, std::initializer_list<uint64_t> arguments)
{
    size_t i = 0;

    seen.method = method;
    seen.self = self;
    memset(seen.arguments, 0, sizeof(seen.arguments));
    for (uint64_t argument : arguments)
        seen.arguments[i++] = argument;
}

static uint64_t P(const volatile void *pointer)
{
    return reinterpret_cast<uintptr_t>(pointer);
}

/* An object in C++, as a provider or a test double of an application would write it. */
class Region : public IND2MemoryRegion
{
  public:
    STDMETHODIMP QueryInterface(REFIID riid, VOID **object) override
    {
        record("QueryInterface", this, { P(&riid), P(object) });
        if (riid == IID_IUnknown || riid == IID_IND2Overlapped || riid == IID_IND2MemoryRegion) {
            *object = this;
            return S_OK;
        }
        *object = nullptr;
        return E_NOINTERFACE;
    }
    STDMETHODIMP_(ULONG) AddRef() override
    {
        record("AddRef", this, {});
        return 2;
    }
    STDMETHODIMP_(ULONG) Release() override
    {
        record("Release", this, {});
        return 1;
    }
    STDMETHODIMP CancelOverlappedRequests() override
    {
        record("CancelOverlappedRequests", this, {});
        return ND_SUCCESS;
    }
    STDMETHODIMP GetOverlappedResult(OVERLAPPED *ov, BOOL wait) override
    {
        record("GetOverlappedResult", this, { P(ov), static_cast<uint64_t>(wait) });
        return ND_CANCELED;
    }
    STDMETHODIMP Register(const VOID *buffer, SIZE_T length, ULONG flags, OVERLAPPED *ov) override
    {
        record("Register", this, { P(buffer), length, flags, P(ov) });
        return ND_PENDING;
    }
    STDMETHODIMP Deregister(OVERLAPPED *ov) override
    {
        record("Deregister", this, { P(ov) });
        return ND_PENDING;
    }
    STDMETHODIMP_(UINT32) GetLocalToken() override
    {
        record("GetLocalToken", this, {});
        return REGION_LOCAL_TOKEN;
    }
    STDMETHODIMP_(UINT32) GetRemoteToken() override
    {
        record("GetRemoteToken", this, {});
        return REGION_REMOTE_TOKEN;
    }
};

static bool arrived(const char *method, const void *self, std::initializer_list<uint64_t> arguments)
{
    size_t i = 0;
    bool right = !strcmp(seen.method, method) && seen.self == self;

    for (uint64_t argument : arguments)
        right = right && seen.arguments[i++] == argument;
    return right;
}

/* The same calls as drive_region_c, through the classes. */
static void drive_region(IND2MemoryRegion *region, const char *whose)
{
    OVERLAPPED ov;
    char buffer[1];
    IND2Overlapped *overlapped = nullptr, *base = static_cast<IND2Overlapped *>(region);
    IUnknown *unknown = region;

    check(region->QueryInterface(IID_PPV_ARGS(&overlapped)) == S_OK && overlapped == base &&
              arrived("QueryInterface", region, { P(&IID_IND2Overlapped), P(&overlapped) }),
          "C++ call of QueryInterface", whose);
    check(unknown->QueryInterface(IID_IND2Adapter, reinterpret_cast<void **>(&overlapped)) == E_NOINTERFACE &&
              !overlapped,
          "C++ call of QueryInterface for another id", whose);
    check(unknown->AddRef() == 2 && arrived("AddRef", region, {}), "C++ call of AddRef", whose);
    check(region->Release() == 1 && arrived("Release", region, {}), "C++ call of Release", whose);
    check(base->CancelOverlappedRequests() == ND_SUCCESS && arrived("CancelOverlappedRequests", region, {}),
          "C++ call of CancelOverlappedRequests", whose);
    check(base->GetOverlappedResult(&ov, TRUE) == ND_CANCELED && arrived("GetOverlappedResult", region, { P(&ov), 1 }),
          "C++ call of GetOverlappedResult", whose);
    check(region->Register(buffer, REGION_LENGTH, ND_MR_FLAG_DO_NOT_SECURE_VM, &ov) == ND_PENDING &&
              arrived("Register", region, { P(buffer), REGION_LENGTH, ND_MR_FLAG_DO_NOT_SECURE_VM, P(&ov) }),
          "C++ call of Register", whose);
    check(region->Deregister(&ov) == ND_PENDING && arrived("Deregister", region, { P(&ov) }), "C++ call of Deregister",
          whose);
    check(region->GetLocalToken() == REGION_LOCAL_TOKEN && arrived("GetLocalToken", region, {}),
          "C++ call of GetLocalToken", whose);
    check(region->GetRemoteToken() == REGION_REMOTE_TOKEN && arrived("GetRemoteToken", region, {}),
          "C++ call of GetRemoteToken", whose);
}

static void drive_adapter(IND2Adapter *adapter)
{
    IND2MemoryRegion *receive = c_region();
    void *out;

    check(adapter->CreateQueuePair(IID_IND2QueuePair, receive, adapter, &out, 1, 2, 3, 4, 0xffffffff, &out) ==
                  ND_INVALID_PARAMETER_9 &&
              arrived("CreateQueuePair", adapter,
                      { P(&IID_IND2QueuePair), P(receive), P(adapter), P(&out), 1, 2, 3, 4, 0xffffffff, P(&out) }),
          "C++ call of CreateQueuePair");
    check(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, reinterpret_cast<HANDLE>(8), 16, 0xffff,
                                         static_cast<KAFFINITY>(-2), &out) == ND_INVALID_PARAMETER_3 &&
              arrived("CreateCompletionQueue", adapter,
                      { P(&IID_IND2CompletionQueue), 8, 16, 0xffff, static_cast<KAFFINITY>(-2), P(&out) }),
          "C++ call of CreateCompletionQueue");
}

/* What C++ applications do with the types. */
struct Request : OVERLAPPED {
    int tag;
};
struct Record {
    int tag;
    OVERLAPPED ov;
};
struct CloseIt {
    void operator()(HANDLE) const
    {
    }
};

static void check_language()
{
    std::unique_ptr<std::remove_pointer<HANDLE>::type, CloseIt> handle(reinterpret_cast<HANDLE>(4));
    std::unique_ptr<Request> request(new (std::nothrow) Request());
    volatile unsigned narrow = 1;
    volatile long wide = 0x7fffffff;
    LONG plain = 5;
    void *pointer = nullptr;
    enum class Code : int {
        canceled = ND_CANCELED
    };

    Record entry = {};

    check(static_cast<Request *>(static_cast<OVERLAPPED *>(request.get())) == request.get(), "derived OVERLAPPED");
    check(CONTAINING_RECORD(&entry.ov, Record, ov) == &entry, "CONTAINING_RECORD");
    check(InterlockedIncrement(&narrow) == 2 && narrow == 2, "InterlockedIncrement of unsigned");
    check(InterlockedIncrement(&wide) == (long)0x80000000UL && wide == (long)0x80000000UL,
          "InterlockedIncrement of long");
    check(InterlockedExchangeAdd(&plain, 3) == 5 && plain == 8, "InterlockedExchangeAdd gives the old value");
    check(InterlockedAdd(&plain, 3) == 11, "InterlockedAdd gives the new value");
    check(InterlockedCompareExchange(&plain, 1, 11) == 11 && plain == 1, "InterlockedCompareExchange");
    check(InterlockedCompareExchange(&plain, 7, 11) == 1 && plain == 1, "InterlockedCompareExchange that loses");
    check(!InterlockedExchangePointer(&pointer, &plain) && pointer == &plain, "InterlockedExchangePointer");
    check(min(3u, static_cast<size_t>(2)) == 2 && max(3u, 4u) == 4, "min and max of different types");
    check(static_cast<HRESULT>(Code::canceled) < 0, "status as enumerator");
    check(HRESULT_FROM_WIN32(ERROR_IO_PENDING) == static_cast<HRESULT>(0x800703E5), "HRESULT_FROM_WIN32");
    check(HRESULT_FROM_WIN32(static_cast<ULONG>(E_FAIL)) == E_FAIL, "HRESULT_FROM_WIN32 of an HRESULT");
}

int main()
{
    Region region;
    unsigned calls = 0, wrong;

    check_slots();
    check_ids();
    check_language();

    drive_region(c_region(), "on an object in C");
    drive_region(&region, "on an object in C++");
    drive_adapter(c_adapter());
    wrong = drive_region_c(c_region(), &calls) + drive_region_c(&region, &calls) + drive_adapter_c(c_adapter(), &calls);
    failed += wrong;
    passed += calls - wrong;

    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
