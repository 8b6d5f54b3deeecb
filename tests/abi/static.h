/* SPDX-License-Identifier: MIT */
/* Compile-time checks of the binary interface, for C and C++. Including this file is the test. The slots of C++ classes
 * are checked at run time: the standard has no constant expression for them. */
#ifndef TESTS_ABI_STATIC_H
#define TESTS_ABI_STATIC_H

#include <ndspi.h>
#include <ndsupport.h>
#include <ndverbs.h>
#include <rdma/winverbs.h>
#include <iba/ibat.h>
#include <ntstatus.h>
#include <ws2tcpip.h>
#include <tchar.h>

#ifdef __LP64__
#define ABI_WIDTH(wide, narrow) (wide)
#else
#define ABI_WIDTH(wide, narrow) (narrow)
#endif

#define SIZE(type, wide, narrow)          C_ASSERT(sizeof(type) == ABI_WIDTH(wide, narrow));
#define FIELD(type, member, wide, narrow) C_ASSERT(__builtin_offsetof(type, member) == ABI_WIDTH(wide, narrow));
#define VALUE(name, value)                C_ASSERT((name) == (value));
/* The size is the point: an uncast literal would be a positive constant of 8 bytes. */
#define STATUS(name, value) C_ASSERT((name) == (int32_t)(value) && sizeof(name) == 4);
#define ID(iface, text)
#include "layouts.h"
#undef SIZE
#undef FIELD
#undef VALUE
#undef STATUS
#undef ID

C_ASSERT((HRESULT)-1 < 0 && (LONG)-1 < 0 && (INT)-1 < 0 && (BOOL)-1 < 0 && (SSIZE_T)-1 < 0);
C_ASSERT((ULONG)-1 > 0 && (DWORD)-1 > 0 && (SIZE_T)-1 > 0 && (ULONG_PTR)-1 > 0 && (KAFFINITY)-1 > 0);
C_ASSERT(SUCCEEDED(ND_SUCCESS) && SUCCEEDED(ND_PENDING) && SUCCEEDED(ND_TIMEOUT));
C_ASSERT(SUCCEEDED(WV_TIMEOUT) && SUCCEEDED(WV_PENDING) && FAILED(WV_IO_PENDING));
C_ASSERT((WV_ACCESS_REMOTE_WRITE & WV_ACCESS_LOCAL_WRITE) != 0);
C_ASSERT(FAILED(ND_BUFFER_OVERFLOW) && FAILED(ND_CANCELED) && FAILED(E_NOINTERFACE));

#ifdef __cplusplus

#include <type_traits>

#define SLOT(iface, slot, type, method, ...) \
    static_assert(std::is_same<decltype(&iface::method), type (iface::*)(__VA_ARGS__)>::value, #iface "::" #method);
#define COUNT(iface, slots)                                                                                  \
    static_assert(sizeof(iface) == sizeof(void *) && std::is_abstract<iface>::value &&                       \
                      !std::has_virtual_destructor<iface>::value && std::is_base_of<IUnknown, iface>::value, \
                  #iface);
#include "slots.h"
static_assert(std::is_base_of<IND2Overlapped, IND2CompletionQueue>::value, "base");
static_assert(std::is_base_of<IND2Overlapped, IND2SharedReceiveQueue>::value, "base");
static_assert(std::is_base_of<IND2Overlapped, IND2MemoryRegion>::value, "base");
static_assert(std::is_base_of<IND2Overlapped, IND2Connector>::value, "base");
static_assert(std::is_base_of<IND2Overlapped, IND2Listener>::value, "base");
static_assert(!std::is_base_of<IND2Overlapped, IND2Adapter>::value, "base");
static_assert(std::is_base_of<INDOverlapped, INDAdapter>::value, "base");
static_assert(std::is_base_of<INDOverlapped, INDCompletionQueue>::value, "base");
static_assert(std::is_base_of<INDOverlapped, INDConnector>::value, "base");
static_assert(std::is_base_of<INDOverlapped, INDListen>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVDevice>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVProtectionDomain>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVCompletionQueue>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVSharedReceiveQueue>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVQueuePair>::value, "base");
static_assert(std::is_base_of<IWVQueuePair, IWVConnectQueuePair>::value, "base");
static_assert(std::is_base_of<IWVQueuePair, IWVDatagramQueuePair>::value, "base");
static_assert(std::is_base_of<IWVOverlapped, IWVEndpoint>::value, "base");
static_assert(std::is_base_of<IWVEndpoint, IWVConnectEndpoint>::value, "base");
static_assert(std::is_base_of<IWVEndpoint, IWVDatagramEndpoint>::value, "base");
static_assert(!std::is_base_of<IWVOverlapped, IWVProvider>::value, "base");

#else

#define ABI_SAME(a, b) __builtin_types_compatible_p(a, b)
#define SLOT(iface, slot, type, method, ...)                                      \
    C_ASSERT(__builtin_offsetof(iface##Vtbl, method) == (slot) * sizeof(void *)); \
    C_ASSERT(ABI_SAME(__typeof__(((iface##Vtbl *)0)->method), type (*)(iface *, ##__VA_ARGS__)));
#define COUNT(iface, slots)                                    \
    C_ASSERT(sizeof(iface##Vtbl) == (slots) * sizeof(void *)); \
    C_ASSERT(sizeof(iface) == sizeof(void *) && __builtin_offsetof(iface, lpVtbl) == 0);
#include "slots.h"
C_ASSERT(ABI_SAME(REFIID, const GUID *));

#endif

#undef SLOT
#undef COUNT

#include "iba.h"

#endif
