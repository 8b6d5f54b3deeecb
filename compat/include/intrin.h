/* SPDX-License-Identifier: MIT */
#ifndef _INTRIN_H_
#define _INTRIN_H_

/* Intrinsics of the Microsoft compiler that gcc and clang lack, beside those of the processor's own header. Any thread.
 * Source: win32-surface.md section 4.7. */

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif
#include <stdlib.h>

#include "winnt.h"
#include "ndvcompat/crt_stdlib.h"

/* Barriers for the compiler only. */
#define _ReadBarrier()      __atomic_signal_fence(__ATOMIC_ACQUIRE)
#define _WriteBarrier()     __atomic_signal_fence(__ATOMIC_RELEASE)
#define _ReadWriteBarrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#define __debugbreak()      __builtin_trap()
#define __nop()             __asm__ __volatile__("nop")
#define __assume(condition) ((condition) ? (void)0 : __builtin_unreachable())

/* *index: the lowest or highest bit that is set; 0 if there is none. An unsigned long, which is a DWORD on Windows, will do
 * as well: by an overload in C++ and by a macro in C. */
#ifdef __cplusplus
#define NDV_BIT_SCAN(name, mask_type, found)                                                                  \
    static inline unsigned char name(DWORD *index, mask_type mask)                                            \
    {                                                                                                         \
        *index = mask ? (found) : *index;                                                                     \
        return mask != 0;                                                                                     \
    }                                                                                                         \
    extern "C++" {                                                                                            \
    template <typename T>                                                                                     \
    static inline unsigned char name(T *index, mask_type mask, typename ndv_only<T, unsigned long>::type = 0) \
    {                                                                                                         \
        *index = mask ? (found) : *index;                                                                     \
        return mask != 0;                                                                                     \
    }                                                                                                         \
    }
#else
#define NDV_BIT_SCAN(name, mask_type, found)                                         \
    static inline unsigned char name(DWORD *index, mask_type mask)                   \
    {                                                                                \
        *index = mask ? (found) : *index;                                            \
        return mask != 0;                                                            \
    }                                                                                \
    static inline unsigned char ndv_long##name(unsigned long *index, mask_type mask) \
    {                                                                                \
        *index = mask ? (found) : *index;                                            \
        return mask != 0;                                                            \
    }
#endif
#if !NDV_HAS_BUILTIN(_BitScanForward)
NDV_BIT_SCAN(_BitScanForward, DWORD, (DWORD)__builtin_ctz(mask))
#ifndef __cplusplus
#define _BitScanForward(index, mask) \
    _Generic((index), unsigned long * : ndv_long_BitScanForward, default : _BitScanForward)((index), (mask))
#endif
#endif
#if !NDV_HAS_BUILTIN(_BitScanReverse)
NDV_BIT_SCAN(_BitScanReverse, DWORD, 31 - (DWORD)__builtin_clz(mask))
#ifndef __cplusplus
#define _BitScanReverse(index, mask) \
    _Generic((index), unsigned long * : ndv_long_BitScanReverse, default : _BitScanReverse)((index), (mask))
#endif
#endif
#if !NDV_HAS_BUILTIN(_BitScanForward64)
NDV_BIT_SCAN(_BitScanForward64, DWORD64, (DWORD)__builtin_ctzll(mask))
#ifndef __cplusplus
#define _BitScanForward64(index, mask) \
    _Generic((index), unsigned long * : ndv_long_BitScanForward64, default : _BitScanForward64)((index), (mask))
#endif
#endif
#if !NDV_HAS_BUILTIN(_BitScanReverse64)
NDV_BIT_SCAN(_BitScanReverse64, DWORD64, 63 - (DWORD)__builtin_clzll(mask))
#ifndef __cplusplus
#define _BitScanReverse64(index, mask) \
    _Generic((index), unsigned long * : ndv_long_BitScanReverse64, default : _BitScanReverse64)((index), (mask))
#endif
#endif

#define __popcnt(value)   ((unsigned)__builtin_popcount(value))
#define __popcnt64(value) ((unsigned long long)__builtin_popcountll(value))

#define _InterlockedIncrement              InterlockedIncrement
#define _InterlockedDecrement              InterlockedDecrement
#define _InterlockedExchange               InterlockedExchange
#define _InterlockedExchangeAdd            InterlockedExchangeAdd
#define _InterlockedExchangePointer        InterlockedExchangePointer
#define _InterlockedCompareExchange        InterlockedCompareExchange
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer
#define _InterlockedAnd                    InterlockedAnd
#define _InterlockedOr                     InterlockedOr
#define _InterlockedXor                    InterlockedXor
#define _InterlockedIncrement64            InterlockedIncrement64
#define _InterlockedDecrement64            InterlockedDecrement64
#define _InterlockedExchange64             InterlockedExchange64
#define _InterlockedExchangeAdd64          InterlockedExchangeAdd64
#define _InterlockedCompareExchange64      InterlockedCompareExchange64
#define _InterlockedCompareExchange128     InterlockedCompareExchange128

#endif
