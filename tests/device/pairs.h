/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_PAIRS_H
#define NDVERBS_DEVICE_PAIRS_H

/* What the device tests saw each method return. CALL notes (method, status) of every call of a Network Direct or WinVerbs interface; a
 * request that pends is noted with the status that GetOverlappedResult gives for its OVERLAPPED later; results by their type,
 * those of version 1 ("INDResult::Send") by the method that the ND_RESULT was given to. The
 * runner writes what the processes of a case that passed have noted to $NDVERBS_OUT/pairs.txt, a line
 * "METHOD STATUS PROGRAM.CASE" each; tests/coverage makes the table of it. Any thread. */

#include "ndspi.h"
#include "ndsupport.h"
#include "ndverbs.h"
#include "rdma/winverbs.h"
#include "iba/ibat.h"

/* `interface`: NULL notes nothing. `last`, `first`: the call's last argument (or the one before it) and its first after the object,
 * where they are OVERLAPPEDs; `result`: the first where it is an ND_RESULT. */
void pair_note(const char *interface, const char *method, HRESULT status, const void *last, const void *first,
               const void *result);
void pair_result(const ND2_RESULT *result);
void pair_result_v1(const ND_RESULT *result);
void pair_completion(const WV_COMPLETION *completion);
void pair_internal(const OVERLAPPED *overlapped); /* a request that is over, without a call of GetOverlappedResult */
HRESULT pair_function(const char *name, HRESULT status);

static inline void pair_note_number(const char *interface, const char *method, SIZE_T value, const void *last,
                                    const void *first, const void *result)
{
    (void)interface, (void)method, (void)value, (void)last, (void)first, (void)result;
}

static inline void pair_note_handle(const char *interface, const char *method, HANDLE value, const void *last,
                                    const void *first, const void *result)
{
    (void)interface, (void)method, (void)value, (void)last, (void)first, (void)result;
}

/* clang-format off: it knows no _Generic. */

/* Name of an interface pointer's type. */
#define PAIR_INTERFACE(object)                               \
    _Generic((object), IUnknown *                            \
             : "IUnknown", IND2Provider *                    \
             : "Provider", IND2Adapter *                     \
             : "Adapter", IND2Overlapped *                   \
             : "Overlapped", IND2CompletionQueue *           \
             : "CompletionQueue", IND2SharedReceiveQueue *   \
             : "SharedReceiveQueue", IND2MemoryRegion *      \
             : "MemoryRegion", IND2MemoryWindow *            \
             : "MemoryWindow", IND2QueuePair *               \
             : "QueuePair", IND2Connector *                  \
             : "Connector", IND2Listener *                   \
             : "Listener", IClassFactory *                   \
             : "IClassFactory", INDProvider *                \
             : "INDProvider", INDAdapter *                   \
             : "INDAdapter", INDOverlapped *                 \
             : "INDOverlapped", INDCompletionQueue *         \
             : "INDCompletionQueue", INDMemoryWindow *       \
             : "INDMemoryWindow", INDEndpoint *              \
             : "INDEndpoint", INDConnector *                 \
             : "INDConnector", INDListen *                   \
             : "INDListen", IWVProvider *                    \
             : "IWVProvider", IWVOverlapped *                \
             : "IWVOverlapped", IWVDevice *                  \
             : "IWVDevice", IWVProtectionDomain *            \
             : "IWVProtectionDomain", IWVCompletionQueue *   \
             : "IWVCompletionQueue", IWVMemoryWindow *       \
             : "IWVMemoryWindow", IWVAddressHandle *         \
             : "IWVAddressHandle", IWVSharedReceiveQueue *   \
             : "IWVSharedReceiveQueue", IWVQueuePair *       \
             : "IWVQueuePair", IWVConnectQueuePair *         \
             : "IWVConnectQueuePair", IWVDatagramQueuePair * \
             : "IWVDatagramQueuePair", IWVConnectEndpoint *  \
             : "IWVConnectEndpoint", IWVDatagramEndpoint *   \
             : "IWVDatagramEndpoint", INdvConnectEndpoint *  \
             : "INdvConnectEndpoint", default                \
             : NULL)

#define PAIR_OVERLAPPED(argument) \
    _Generic((argument), OVERLAPPED * : (const void *)(uintptr_t)(argument), default : NULL)
#define PAIR_RESULT(argument) _Generic((argument), ND_RESULT * : (const void *)(uintptr_t)(argument), default : NULL)

/* The last of up to twelve arguments, and the second. */
#define PAIR_SELECT(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, name, ...) name
#define PAIR_1(a)                                                                 a
#define PAIR_2(a, b)                                                              b
#define PAIR_3(a, b, c)                                                           c
#define PAIR_4(a, b, c, d)                                                        d
#define PAIR_5(a, b, c, d, e)                                                     e
#define PAIR_6(a, b, c, d, e, f)                                                  f
#define PAIR_7(a, b, c, d, e, f, g)                                               g
#define PAIR_8(a, b, c, d, e, f, g, h)                                            h
#define PAIR_9(a, b, c, d, e, f, g, h, i)                                         i
#define PAIR_10(a, b, c, d, e, f, g, h, i, j)                                     j
#define PAIR_11(a, b, c, d, e, f, g, h, i, j, k)                                  k
#define PAIR_12(a, b, c, d, e, f, g, h, i, j, k, l)                               l
#define PAIR_LAST(...)                                                                                          \
    PAIR_SELECT(__VA_ARGS__, PAIR_12, PAIR_11, PAIR_10, PAIR_9, PAIR_8, PAIR_7, PAIR_6, PAIR_5, PAIR_4, PAIR_3, \
                PAIR_2, PAIR_1, )                                                                               \
    (__VA_ARGS__)
/* The one before the last; 0 if there is no other. */
#define PAIR_BEFORE_1(a)                                   0
#define PAIR_BEFORE_2(a, b)                                a
#define PAIR_BEFORE_3(a, b, c)                             b
#define PAIR_BEFORE_4(a, b, c, d)                          c
#define PAIR_BEFORE_5(a, b, c, d, e)                       d
#define PAIR_BEFORE_6(a, b, c, d, e, f)                    e
#define PAIR_BEFORE_7(a, b, c, d, e, f, g)                 f
#define PAIR_BEFORE_8(a, b, c, d, e, f, g, h)              g
#define PAIR_BEFORE_9(a, b, c, d, e, f, g, h, i)           h
#define PAIR_BEFORE_10(a, b, c, d, e, f, g, h, i, j)       i
#define PAIR_BEFORE_11(a, b, c, d, e, f, g, h, i, j, k)    j
#define PAIR_BEFORE_12(a, b, c, d, e, f, g, h, i, j, k, l) k
#define PAIR_BEFORE(...)                                                                                   \
    PAIR_SELECT(__VA_ARGS__, PAIR_BEFORE_12, PAIR_BEFORE_11, PAIR_BEFORE_10, PAIR_BEFORE_9, PAIR_BEFORE_8, \
                PAIR_BEFORE_7, PAIR_BEFORE_6, PAIR_BEFORE_5, PAIR_BEFORE_4, PAIR_BEFORE_3, PAIR_BEFORE_2,  \
                PAIR_BEFORE_1, )                                                                           \
    (__VA_ARGS__)
#define PAIR_SECOND_(a, b, ...) b
#define PAIR_SECOND(...)        PAIR_SECOND_(__VA_ARGS__, 0, )

/* The one that the call keeps: its last, or as with two of WinVerbs' methods the one before. */
#define PAIR_KEPT(...)                                          \
    _Generic(PAIR_LAST(__VA_ARGS__), OVERLAPPED *               \
             : PAIR_OVERLAPPED(PAIR_LAST(__VA_ARGS__)), default \
             : PAIR_OVERLAPPED(PAIR_BEFORE(__VA_ARGS__)))

/* A method of an interface, in C. */
#define CALL(object, method, ...)                                                                                     \
    ({                                                                                                                \
        __auto_type call_result_ = (object)->lpVtbl->method((object), ##__VA_ARGS__);                                 \
        _Generic(call_result_, HRESULT                                                                                \
                 : pair_note, HANDLE                                                                                  \
                 : pair_note_handle, default                                                                          \
                 : pair_note_number)(PAIR_INTERFACE(object), #method, call_result_, PAIR_KEPT(object, ##__VA_ARGS__), \
                                     PAIR_OVERLAPPED(PAIR_SECOND(object, ##__VA_ARGS__)),                             \
                                     PAIR_RESULT(PAIR_SECOND(object, ##__VA_ARGS__)));                                \
        call_result_;                                                                                                 \
    })

/* One that returns nothing. */
#define CALL_VOID(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))

/* clang-format on */

/* A request that is over, seen in its OVERLAPPED: the object may be gone. */
#define ok_internal(ov, wanted)                       \
    do {                                              \
        pair_internal(ov);                            \
        ok_uint((ov)->Internal, ==, (DWORD)(wanted)); \
    } while (0)

#define NdStartup()             pair_function("NdStartup", NdStartup())
#define NdCleanup()             pair_function("NdCleanup", NdCleanup())
#define NdQueryAddressList(...) pair_function("NdQueryAddressList", NdQueryAddressList(__VA_ARGS__))
#define NdResolveAddress(...)   pair_function("NdResolveAddress", NdResolveAddress(__VA_ARGS__))
#define NdCheckAddress(...)     pair_function("NdCheckAddress", NdCheckAddress(__VA_ARGS__))
#define NdOpenAdapter(...)      pair_function("NdOpenAdapter", NdOpenAdapter(__VA_ARGS__))
#define NdOpenV1Adapter(...)    pair_function("NdOpenV1Adapter", NdOpenV1Adapter(__VA_ARGS__))
#define WvGetObject(...)        pair_function("WvGetObject", WvGetObject(__VA_ARGS__))
#define IbatQueryPath(...)      pair_function("IbatQueryPath", IbatQueryPath(__VA_ARGS__))

#endif
