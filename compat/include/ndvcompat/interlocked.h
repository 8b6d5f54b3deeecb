/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_INTERLOCKED_H
#define NDVCOMPAT_INTERLOCKED_H

/* Interlocked operations: sequentially consistent, inline, and of the width of the variable they are given. An
 * application's `volatile long` has 8 bytes here and its `volatile unsigned` 4, and both are incremented by
 * InterlockedIncrement; so the C form is type-neutral and the C++ form is a template. Increment, Decrement and Add return
 * the new value, the others the old one. Source: win32-surface.md sections 4.2 and 6.10. */

#include "../windef.h"

#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define YieldProcessor() __asm__ __volatile__("yield" ::: "memory")
#else
#define YieldProcessor() __asm__ __volatile__("" ::: "memory")
#endif
#define MemoryBarrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Replaces 16 bytes, aligned to 16, if they equal those at `comparand`, which get the old value in any case. The result:
 * whether they did. */
#if defined(__x86_64__)
static inline BOOLEAN InterlockedCompareExchange128(LONG64 volatile *target, LONG64 high, LONG64 low, LONG64 *comparand)
{
    struct pair {
        LONG64 low, high;
    };
    BOOLEAN equal;

    /* The instruction itself: as a built-in it needs -mcx16 or a library. */
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(equal), "+m"(*(struct pair volatile *)target), "+a"(comparand[0]), "+d"(comparand[1])
                         : "b"(low), "c"(high)
                         : "memory");
    return equal;
}
#elif defined(__LP64__)
static inline BOOLEAN InterlockedCompareExchange128(LONG64 volatile *target, LONG64 high, LONG64 low, LONG64 *comparand)
{
    __extension__ typedef unsigned __int128 wide;
    wide exchange = (wide)(ULONG64)high << 64 | (ULONG64)low;
    wide expected = (wide)(ULONG64)comparand[1] << 64 | (ULONG64)comparand[0];
    wide old = __sync_val_compare_and_swap((wide volatile *)target, expected, exchange);

    comparand[0] = (LONG64)(ULONG64)old;
    comparand[1] = (LONG64)(ULONG64)(old >> 64);
    return old == expected;
}
#endif

#ifdef __cplusplus

extern "C++" {
/* Keeps a parameter out of template argument deduction: the variable alone decides the type. */
template <typename T> struct ndv_same {
    typedef T type;
};

template <typename T> inline T InterlockedIncrement(T volatile *target)
{
    return __atomic_add_fetch(target, 1, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedDecrement(T volatile *target)
{
    return __atomic_sub_fetch(target, 1, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedAdd(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_add_fetch(target, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedExchangeAdd(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_fetch_add(target, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedExchange(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);
}
template <typename T>
inline T InterlockedCompareExchange(T volatile *target, typename ndv_same<T>::type exchange,
                                    typename ndv_same<T>::type comparand)
{
    return __sync_val_compare_and_swap(target, comparand, exchange);
}
template <typename T> inline T InterlockedAnd(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_fetch_and(target, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedOr(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_fetch_or(target, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T InterlockedXor(T volatile *target, typename ndv_same<T>::type value)
{
    return __atomic_fetch_xor(target, value, __ATOMIC_SEQ_CST);
}
template <typename T> inline T *InterlockedExchangePointer(T *volatile *target, typename ndv_same<T *>::type value)
{
    return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);
}
template <typename T>
inline T *InterlockedCompareExchangePointer(T *volatile *target, typename ndv_same<T *>::type exchange,
                                            typename ndv_same<T *>::type comparand)
{
    return __sync_val_compare_and_swap(target, comparand, exchange);
}
}

#else

#define InterlockedIncrement(target)          __atomic_add_fetch((target), 1, __ATOMIC_SEQ_CST)
#define InterlockedDecrement(target)          __atomic_sub_fetch((target), 1, __ATOMIC_SEQ_CST)
#define InterlockedAdd(target, value)         __atomic_add_fetch((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedExchangeAdd(target, value) __atomic_fetch_add((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedExchange(target, value)    __atomic_exchange_n((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedAnd(target, value)         __atomic_fetch_and((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedOr(target, value)          __atomic_fetch_or((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedXor(target, value)         __atomic_fetch_xor((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedCompareExchange(target, exchange, comparand) \
    __sync_val_compare_and_swap((target), (comparand), (exchange))

/* Functions, so that a result may be left unused, and for pointers of any type without a cast, as C has it on Windows. */
static inline void *ndv_exchange_pointer(volatile void *target, void *value)
{
    return __atomic_exchange_n((void *volatile *)target, value, __ATOMIC_SEQ_CST);
}
static inline void *ndv_compare_exchange_pointer(volatile void *target, void *exchange, void *comparand)
{
    return __sync_val_compare_and_swap((void *volatile *)target, comparand, exchange);
}
#define InterlockedExchangePointer(target, value) ndv_exchange_pointer((target), (value))
#define InterlockedCompareExchangePointer(target, exchange, comparand) \
    ndv_compare_exchange_pointer((target), (exchange), (comparand))

#endif

/* The 64-bit names: the width is the variable's anyway. */
#define InterlockedIncrement64       InterlockedIncrement
#define InterlockedDecrement64       InterlockedDecrement
#define InterlockedAdd64             InterlockedAdd
#define InterlockedExchangeAdd64     InterlockedExchangeAdd
#define InterlockedExchange64        InterlockedExchange
#define InterlockedAnd64             InterlockedAnd
#define InterlockedOr64              InterlockedOr
#define InterlockedXor64             InterlockedXor
#define InterlockedCompareExchange64 InterlockedCompareExchange

#endif
