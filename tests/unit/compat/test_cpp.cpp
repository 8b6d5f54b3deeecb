/* SPDX-License-Identifier: MIT */

/* What C++ applications use beyond C: overloads, deduced array sizes, std::printf, ComPtr, handles in smart pointers
 * (win32-surface.md 3.3, 3.4, 4.5, 6.10). */

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <objbase.h>
#include <tchar.h>
#include <wrl/client.h>

#include <algorithm>
#include <cstdio>
#include <cwchar>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "harness.h"

using namespace std;
using Microsoft::WRL::ComPtr;

TEST(cpp__interlocked_keeps_the_width_of_the_variable)
{
    volatile long wide = 0x7fffffff;
    volatile unsigned small = 0xffffffffu;
    volatile unsigned long unsigned_wide = 0xffffffffu;
    volatile LONG plain = 5;
    volatile int number = 5;
    LONG64 big = 0x7fffffff;
    long result = InterlockedIncrement(&plain);

    ok_int(result, ==, 6);
    ok_int(InterlockedIncrement(&number), ==, 6);
    ok_int(InterlockedIncrement(&wide), ==, sizeof(long) == 8 ? 0x80000000ll : -0x80000000ll);
    ok_uint(InterlockedIncrement(&small), ==, 0);
    ok_uint(InterlockedExchangeAdd(&unsigned_wide, 1), ==, 0xffffffffu);
    ok_uint(unsigned_wide, ==, sizeof(long) == 8 ? 0x100000000ull : 0);
    ok_int(InterlockedIncrement64(&big), ==, 0x80000000ll);
    ok_int(InterlockedCompareExchange(&number, 9, 6), ==, 6);
    static_assert(is_same<decltype(InterlockedIncrement(&small)), unsigned>::value, "");

    int object = 0;
    int *pointer = nullptr;
    PVOID *as_void = reinterpret_cast<PVOID *>(&pointer);
    ok(InterlockedCompareExchangePointer(as_void, &object, nullptr) == nullptr);
    ok(InterlockedExchangePointer(as_void, nullptr) == &object);
}

TEST(cpp__lengths_of_sockets_are_int)
{
    SOCKADDR_IN address = {};
    SOCKET socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    int length = sizeof(address), kind = 0, size = sizeof(kind);
    char byte = 0;

    ok_int(getsockname(socket, reinterpret_cast<SOCKADDR *>(&address), &length), ==, 0);
    ok(length == sizeof(address) && address.sin_family == AF_INET);
    ok_int(getsockopt(socket, SOL_SOCKET, SO_TYPE, reinterpret_cast<char *>(&kind), &size), ==, 0);
    ok(size == sizeof(kind) && kind == SOCK_DGRAM);
    ok_int(recvfrom(socket, &byte, 1, MSG_DONTWAIT, reinterpret_cast<SOCKADDR *>(&address), &length), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEWOULDBLOCK);
    ok_int(accept(socket, NULL, NULL), ==, INVALID_SOCKET);
    ok_int(WSAGetLastError(), ==, WSAEOPNOTSUPP);
    closesocket(socket);
}

TEST(cpp__min_and_max_beside_the_library)
{
    DWORD a = 3;
    ULONG b = 5;
    SIZE_T c = 4;

    ok_uint(min(a, b), ==, 3);
    ok_uint(min(b, c), ==, 4);
    ok_uint(max(a, c), ==, 4);
    ok_uint((std::min)(a, b), ==, 3);
    ok_uint(std::min<ULONG>(a, b), ==, 3);
    ok_int(max(-1, 1), ==, 1);
}

TEST(cpp__deduced_sizes)
{
    char text[6];
    wchar_t wide[6];
    TCHAR either[6];

    ok_int(strcpy_s(text, "12345"), ==, 0);
    ok_int(strcpy_s(text, "123456"), ==, ERANGE);
    ok_str(text, "");
    ok_int(wcscpy_s(wide, L"12345"), ==, 0);
    ok_int(wcscat_s(wide, L"6"), ==, ERANGE);
    ok_int(sprintf_s(text, "%I64d", 123ll), ==, 3);
    ok_str(text, "123");
    ok_int(sprintf_s(text, sizeof(text), "%d", 7), ==, 1);
    ok_int(swprintf_s(wide, L"%s", L"abc"), ==, 3);
    ok_int(_stprintf_s(either, _T("%d"), 5), ==, 1);
    ok_int(_snprintf_s(text, _TRUNCATE, "%s", "123456789"), ==, -1);
    ok_str(text, "12345");
    ok_int(strncpy_s(text, "abcdef", 2), ==, 0);
    ok_str(text, "ab");
}

/* Through the names of the C++ library as well, also where it uses them itself. */
TEST(cpp__std_printf)
{
    char text[40];
    wchar_t wide[40];

    ok_int(std::snprintf(text, sizeof(text), "%I64d|%Id", 5000000000ll, size_t(7)), ==, 12);
    ok_str(text, "5000000000|7");
    ok_int(std::sprintf(text, "%I64x", 255ull), ==, 2);
    ok_int(std::swprintf(wide, 40, L"%s", L"wide"), ==, 4);
    ok(wstring(wide) == L"wide");
    ok(to_string(1.5) == "1.500000" && to_wstring(-7) == L"-7");
}

TEST(cpp__guids)
{
    map<string, GUID> ids;
    GUID other = IID_IUnknown;

    ids["unknown"] = IID_IUnknown;
    ok(ids["unknown"] == IID_IUnknown && other != IID_IClassFactory);
    ok(InlineIsEqualGUID(other, IID_IUnknown) && IsEqualIID(other, __uuidof(IUnknown)));
}

/* An application's class of requests. */
struct Request : public OVERLAPPED {
    Request() : number(7)
    {
        memset(static_cast<OVERLAPPED *>(this), 0, sizeof(OVERLAPPED));
    }
    int number;
};

TEST(cpp__overlapped_as_a_base_and_handles_in_pointers)
{
    unique_ptr<remove_pointer<HANDLE>::type, BOOL (*)(HANDLE)> port(
        CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0), CloseHandle);
    Request request;
    OVERLAPPED *ov = nullptr;
    ULONG_PTR key = 0;
    DWORD bytes = 0;

    ok(PostQueuedCompletionStatus(port.get(), 1, 2, &request));
    bool success = GetQueuedCompletionStatus(port.get(), &bytes, &key, &ov, INFINITE);
    ok(success == true);
    ok_int(static_cast<Request *>(ov)->number, ==, 7);
}

static int alive;

struct Thing final : public IClassFactory {
    ULONG count;
    Thing() : count(1)
    {
        alive++;
    }
    HRESULT QueryInterface(REFIID id, void **object) override
    {
        *object = nullptr;
        if (id != IID_IUnknown && id != IID_IClassFactory)
            return E_NOINTERFACE;
        *object = static_cast<IClassFactory *>(this);
        AddRef();
        return S_OK;
    }
    ULONG AddRef() override
    {
        return ++count;
    }
    /* Inlined, it makes the compiler warn of uses after a Release that is not the last. */
    __attribute__((noinline)) ULONG Release() override
    {
        ULONG left = --count;

        if (left == 0) {
            alive--;
            delete this;
        }
        return left;
    }
    HRESULT CreateInstance(IUnknown *, REFIID id, void **object) override
    {
        return QueryInterface(id, object);
    }
    HRESULT LockServer(BOOL) override
    {
        return S_OK;
    }
};

static HRESULT make(REFIID id, void **object)
{
    Thing *thing = new (nothrow) Thing;
    HRESULT hr = thing->QueryInterface(id, object);

    thing->Release();
    return hr;
}

TEST(cpp__ComPtr)
{
    {
        ComPtr<IClassFactory> factory, copy;
        ComPtr<IUnknown> unknown;

        ok(!factory && factory == nullptr && factory.Get() == nullptr);
        ok_status(make(IID_PPV_ARGS(&factory)), S_OK);
        ok(factory && factory != nullptr);
        ok_int(alive, ==, 1);
        copy = factory;
        ok(copy == factory && copy.Get() == factory.Get());
        ok_status(factory.As(&unknown), S_OK);
        ok(unknown == factory);
        ok_uint(factory->AddRef(), ==, 4);
        ok_uint(factory->Release(), ==, 3);
        copy.Reset();
        ok_uint(factory->AddRef(), ==, 3);
        ok_uint(factory->Release(), ==, 2);
        copy = std::move(factory);
        ok(!factory && copy);
        IClassFactory *raw = copy.Detach();
        ok(!copy);
        factory.Attach(raw);
        /* & gives up what is there, GetAddressOf of a filled one does not. */
        ok_status(make(__uuidof(IClassFactory), reinterpret_cast<void **>(factory.ReleaseAndGetAddressOf())), S_OK);
        ok_int(alive, ==, 2);
        unknown = nullptr;
        ok_int(alive, ==, 1);
        ok_status(make(IID_PPV_ARGS(factory.ReleaseAndGetAddressOf())), S_OK);
        ok_int(alive, ==, 1);
        ComPtr<IUnknown> base(factory);
        ComPtr<IUnknown> moved(std::move(factory));
        ok(base == moved);
        ok_status(moved.CopyTo(&raw), S_OK);
        raw->Release();
        base.Swap(moved);
        ok_status(make(GUID(), &copy), E_NOINTERFACE);
        ok(!copy);
    }
    ok_int(alive, ==, 0);
}
