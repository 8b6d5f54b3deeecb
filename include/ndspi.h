/* SPDX-License-Identifier: MIT */
#ifndef _NDSPI_H_
#define _NDSPI_H_

/* The Network Direct service provider interface, versions 2 and 1: abstract classes in C++, tables of functions behind
 * lpVtbl in C. The order of the methods is the binary interface.
 *
 * Common to all methods unless they say otherwise: any thread, concurrently; they return an ND status; sizes are bytes;
 * every object keeps what it was made from alive; Release never waits for a peer. "Overlapped" methods return ND_PENDING,
 * with the completion possibly delivered already, or an error known at once, after which the OVERLAPPED is not touched;
 * the OVERLAPPED and what it points to stay the library's until completion, which sets the event and queues a packet
 * (none if the low bit of hEvent is set), and whose status GetOverlappedResult gives. After a device vanished, methods
 * return ND_DEVICE_REMOVED and only Release, Deregister and cancelling work.
 * Source: ndspi.md sections 1 to 5, ndspi-v2.md, ndspi-v1.md. */

#include <winsock2.h>
#include <unknwn.h>

#include "ndstatus.h"
#include "nddef.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wsuggest-override"
#endif

/* The slots that every interface begins with. */
#define ND_IUNKNOWN_METHODS                                                    \
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, _Out_ VOID * *ppvObj) PURE; \
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;                                    \
    IFACEMETHOD_(ULONG, Release)(THIS) PURE

/* ---- version 2 ---- */

/* Base of the objects that have overlapped methods: reaps and cancels the requests of that object. */
DEFINE_GUID(IID_IND2Overlapped, 0xABF72719, 0xB016, 0x4A40, 0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C);

#undef INTERFACE
#define INTERFACE IND2Overlapped
DECLARE_INTERFACE_(IND2Overlapped, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    /* Completes every pending request of the object before it returns, with ND_CANCELED where that makes sense (a
     * Disconnect finishes, registrations run to their end). ND_SUCCESS. */
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;

    /* The status of a request: ND_PENDING while it runs and !wait. `wait` works for any hEvent, NULL included. */
    STDMETHOD(GetOverlappedResult)(THIS_ _In_ OVERLAPPED * pOverlapped, BOOL wait) PURE;
};

#define ND2_OVERLAPPED_METHODS                        \
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE; \
    IFACEMETHOD(GetOverlappedResult)(THIS_ _In_ OVERLAPPED * pOverlapped, BOOL wait) PURE

/* Completion queue, for the results of any number of queue pairs. ndspi-v2.md section 6. */
DEFINE_GUID(IID_IND2CompletionQueue, 0x20CC445E, 0x64A0, 0x4CBB, 0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E);

#undef INTERFACE
#define INTERFACE IND2CompletionQueue
DECLARE_INTERFACE_(IND2CompletionQueue, IND2Overlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    ND2_OVERLAPPED_METHODS;

    /* IND2CompletionQueue */
    /* The processor group and affinity in use. ND_NOT_SUPPORTED, ND_INVALID_PARAMETER (NULL). */
    STDMETHOD(GetNotifyAffinity)(THIS_ _Out_ USHORT * pGroup, _Out_ KAFFINITY * pAffinity) PURE;

    /* No result is lost. ND_INVALID_PARAMETER (beyond the limit), ND_BUFFER_OVERFLOW (more are queued),
     * ND_INSUFFICIENT_RESOURCES, ND_NOT_SUPPORTED (ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED clear). */
    STDMETHOD(Resize)(THIS_ ULONG queueDepth) PURE;

    /* Overlapped, one-shot; type ND_CQ_NOTIFY_*. Completes with the next matching result, at once if one has arrived that
     * completed no Notify yet; several complete together, in order. ND_CANCELED, ND_INVALID_PARAMETER_1 (type),
     * ND_BUFFER_OVERFLOW (the queue overran and is dead), ND_INTERNAL_ERROR, ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Notify)(THIS_ ULONG type, _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* Takes up to nResults results out and returns their number; fewer than asked means the queue was empty. Each result is
     * delivered once, whichever thread asks. */
    STDMETHOD_(ULONG, GetResults)(THIS_ _Out_writes_to_(nResults, return ) ND2_RESULT results[], ULONG nResults) PURE;
};

/* Receives shared by several queue pairs. ndspi-v2.md section 7. */
DEFINE_GUID(IID_IND2SharedReceiveQueue, 0xAABD67DC, 0x459A, 0x4DB1, 0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83);

#undef INTERFACE
#define INTERFACE IND2SharedReceiveQueue
DECLARE_INTERFACE_(IND2SharedReceiveQueue, IND2Overlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    ND2_OVERLAPPED_METHODS;

    /* IND2SharedReceiveQueue */
    STDMETHOD(GetNotifyAffinity)(THIS_ _Out_ USHORT * pGroup, _Out_ KAFFINITY * pAffinity) PURE;

    /* 0 leaves a value as it is. ND_INVALID_PARAMETER, ND_BUFFER_OVERFLOW (below what is posted),
     * ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Modify)(THIS_ ULONG queueDepth, ULONG notifyThreshold) PURE;

    /* Overlapped: completes when fewer receives than the threshold are posted, or the queue failed. */
    STDMETHOD(Notify)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* As IND2QueuePair::Receive; the result comes in the receive queue of the queue pair that used the entry. */
    STDMETHOD(Receive)(THIS_ _In_opt_ VOID * requestContext, _In_reads_opt_(nSge) const ND2_SGE sge[], ULONG nSge) PURE;
};

/* Memory window: remote access to a part of a region, while bound. ndspi-v2.md section 9. */
DEFINE_GUID(IID_IND2MemoryWindow, 0x070FE1F5, 0x0AB5, 0x4361, 0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);

#undef INTERFACE
#define INTERFACE IND2MemoryWindow
DECLARE_INTERFACE_(IND2MemoryWindow, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2MemoryWindow */
    /* In network byte order. Valid from the return of IND2QueuePair::Bind until Invalidate. */
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

/* Memory region: at most one registered buffer at a time. ndspi-v2.md section 8. */
DEFINE_GUID(IID_IND2MemoryRegion, 0x55DFEA2F, 0xBC56, 0x4982, 0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13);

#undef INTERFACE
#define INTERFACE IND2MemoryRegion
DECLARE_INTERFACE_(IND2MemoryRegion, IND2Overlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    ND2_OVERLAPPED_METHODS;

    /* IND2MemoryRegion */
    /* Overlapped; flags ND_MR_FLAG_*. ND_ACCESS_VIOLATION, ND_INVALID_PARAMETER (too long, NULL), ND_INVALID_BUFFER_SIZE
     * (0), ND_INVALID_DEVICE_STATE (registered already), ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Register)
    (THIS_ _In_reads_bytes_(cbBuffer) const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags,
     _Inout_ OVERLAPPED *pOverlapped) PURE;

    /* Overlapped. ND_DEVICE_BUSY (windows are bound to it), ND_INVALID_DEVICE_STATE (not registered). */
    STDMETHOD(Deregister)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* For ND2_SGE; opaque. Valid when Register has completed. */
    STDMETHOD_(UINT32, GetLocalToken)(THIS) PURE;

    /* For the peer's Read and Write, in network byte order: send it as it is. */
    STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

/* Queue pair. Posts never wait: the outcome comes as a result. Entries of a request are read before the call returns, its
 * memory stays in use until the result. ndspi-v2.md section 10, ndspi.md section 5. */
DEFINE_GUID(IID_IND2QueuePair, 0xEEF2F332, 0xB75D, 0x4063, 0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE);

#undef INTERFACE
#define INTERFACE IND2QueuePair
DECLARE_INTERFACE_(IND2QueuePair, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2QueuePair */
    /* Every posted request completes, with ND_CANCELED if it has not finished, possibly after the call returned; also on a
     * queue pair that was never connected. The queue pair cannot be used afterwards. Always ND_SUCCESS. */
    STDMETHOD(Flush)(THIS) PURE;

    /* Flags: SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, INLINE. ND_CONNECTION_INVALID (never connected),
     * ND_BUFFER_OVERFLOW (bytes), ND_NO_MORE_ENTRIES (queue full), ND_DATA_OVERRUN (entries),
     * ND_INVALID_PARAMETER_4 (flags). */
    STDMETHOD(Send)
    (THIS_ _In_opt_ VOID * requestContext, _In_reads_opt_(nSge) const ND2_SGE sge[], ULONG nSge, ULONG flags) PURE;

    /* In any state. ND_BUFFER_OVERFLOW, ND_NO_MORE_ENTRIES, ND_DATA_OVERRUN, ND_INVALID_DEVICE_REQUEST (receives come from
     * a shared queue). */
    STDMETHOD(Receive)(THIS_ _In_opt_ VOID * requestContext, _In_reads_opt_(nSge) const ND2_SGE sge[], ULONG nSge) PURE;

    /* Flags: SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE. ND_CONNECTION_INVALID, ND_NO_MORE_ENTRIES,
     * ND_ACCESS_VIOLATION (the region lacks the access), ND_INVALID_DEVICE_REQUEST (bound already),
     * ND_INVALID_PARAMETER_6 (flags). */
    STDMETHOD(Bind)
    (THIS_ _In_opt_ VOID * requestContext, _In_ IUnknown * pMemoryRegion, _In_ IUnknown * pMemoryWindow,
     _In_reads_bytes_(cbBuffer) const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags) PURE;

    /* Flags: SILENT_SUCCESS, READ_FENCE. ND_CONNECTION_INVALID, ND_NO_MORE_ENTRIES, ND_INVALID_PARAMETER_3 (flags). */
    STDMETHOD(Invalidate)(THIS_ _In_opt_ VOID * requestContext, _In_ IUnknown * pMemoryWindow, ULONG flags) PURE;

    /* From the peer's memory. Flags: SILENT_SUCCESS, READ_FENCE. As Send, flags ND_INVALID_PARAMETER_6. */
    STDMETHOD(Read)
    (THIS_ _In_opt_ VOID * requestContext, _In_reads_opt_(nSge) const ND2_SGE sge[], ULONG nSge, UINT64 remoteAddress,
     UINT32 remoteToken, ULONG flags) PURE;

    /* To the peer's memory. Flags: SILENT_SUCCESS, READ_FENCE, INLINE. As Send, flags ND_INVALID_PARAMETER_6. */
    STDMETHOD(Write)
    (THIS_ _In_opt_ VOID * requestContext, _In_reads_opt_(nSge) const ND2_SGE sge[], ULONG nSge, UINT64 remoteAddress,
     UINT32 remoteToken, ULONG flags) PURE;
};

/* One end of a connection. ndspi-v2.md section 11, ndspi.md section 4. */
DEFINE_GUID(IID_IND2Connector, 0x7DD615C4, 0x6B4C, 0x4866, 0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02);

#undef INTERFACE
#define INTERFACE IND2Connector
DECLARE_INTERFACE_(IND2Connector, IND2Overlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    ND2_OVERLAPPED_METHODS;

    /* IND2Connector */
    /* The local address; port 0: the library picks one. ND_SHARING_VIOLATION (in use), ND_TOO_MANY_ADDRESSES (no port left),
     * ND_ADDRESS_ALREADY_EXISTS, ND_INVALID_ADDRESS (not of this adapter), 0xC0000238 (bound already). */
    STDMETHOD(Bind)(THIS_ _In_reads_bytes_(cbAddress) const struct sockaddr *pAddress, ULONG cbAddress) PURE;

    /* Overlapped: completes when the peer accepted or rejected. Read limits beyond the adapter's are reduced. After a
     * failure connector and queue pair are as before. ND_INVALID_BUFFER_SIZE (private data), ND_CONNECTION_ACTIVE,
     * ND_NETWORK_UNREACHABLE, ND_HOST_UNREACHABLE, ND_CONNECTION_REFUSED, ND_IO_TIMEOUT, ND_CANCELED, 0xC00000CC (no such
     * host). */
    STDMETHOD(Connect)
    (THIS_ _In_ IUnknown * pQueuePair, _In_reads_bytes_(cbDestAddress) const struct sockaddr *pDestAddress,
     ULONG cbDestAddress, ULONG inboundReadLimit, ULONG outboundReadLimit,
     _In_reads_bytes_opt_(cbPrivateData) const VOID *pPrivateData, ULONG cbPrivateData, _Inout_ OVERLAPPED *pOverlapped)
        PURE;

    /* Overlapped, after Connect completed: the connection is up. ND_CONNECTION_INVALID, ND_CONNECTION_ABORTED,
     * ND_IO_TIMEOUT. */
    STDMETHOD(CompleteConnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* Overlapped, on a connector from GetConnectionRequest: completes when the peer's CompleteConnect arrived.
     * ND_INVALID_BUFFER_SIZE (private data), ND_CONNECTION_ACTIVE, ND_CONNECTION_ABORTED, ND_CONNECTION_REFUSED,
     * ND_IO_TIMEOUT, ND_CANCELED. */
    STDMETHOD(Accept)
    (THIS_ _In_ IUnknown * pQueuePair, ULONG inboundReadLimit, ULONG outboundReadLimit,
     _In_reads_bytes_opt_(cbPrivateData) const VOID *pPrivateData, ULONG cbPrivateData, _Inout_ OVERLAPPED *pOverlapped)
        PURE;

    /* Either side, instead of Accept or CompleteConnect. ND_INVALID_BUFFER_SIZE, ND_CONNECTION_INVALID,
     * ND_CONNECTION_ABORTED. */
    STDMETHOD(Reject)(THIS_ _In_reads_bytes_opt_(cbPrivateData) const VOID *pPrivateData, ULONG cbPrivateData) PURE;

    /* The limits as this side may use them; either pointer may be NULL. ND_CONNECTION_INVALID. */
    STDMETHOD(GetReadLimits)(THIS_ _Out_opt_ ULONG * pInboundReadLimit, _Out_opt_ ULONG * pOutboundReadLimit) PURE;

    /* What the peer sent with Connect, Accept or Reject; may be longer than what it passed, padded with zeros.
     * ND_BUFFER_OVERFLOW: what fits is copied, *pcbPrivateData is the full size. ND_CONNECTION_INVALID. */
    STDMETHOD(GetPrivateData)
    (THIS_ _Out_writes_bytes_opt_(*pcbPrivateData) VOID * pPrivateData, _Inout_ ULONG * pcbPrivateData) PURE;

    /* ND_BUFFER_OVERFLOW: nothing is copied, *pcbAddress is the size. ND_CONNECTION_INVALID. */
    STDMETHOD(GetLocalAddress)
    (THIS_ _Out_writes_bytes_opt_(*pcbAddress) struct sockaddr * pAddress, _Inout_ ULONG * pcbAddress) PURE;
    STDMETHOD(GetPeerAddress)
    (THIS_ _Out_writes_bytes_opt_(*pcbAddress) struct sockaddr * pAddress, _Inout_ ULONG * pcbAddress) PURE;

    /* Overlapped: completes ND_SUCCESS when either side disconnected, 0xC000020C when the connection was lost otherwise.
     * ND_CONNECTION_INVALID (never connected), ND_CANCELED. */
    STDMETHOD(NotifyDisconnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* Overlapped: completes when the peer knows (or does not answer) and every request of the queue pair has come back.
     * ND_SUCCESS, ND_CONNECTION_INVALID. */
    STDMETHOD(Disconnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;
};

/* Listens for connections on one address. ndspi-v2.md section 12. */
DEFINE_GUID(IID_IND2Listener, 0x65D23D83, 0x3A57, 0x4E02, 0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30);

#undef INTERFACE
#define INTERFACE IND2Listener
DECLARE_INTERFACE_(IND2Listener, IND2Overlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Overlapped */
    ND2_OVERLAPPED_METHODS;

    /* IND2Listener */
    /* Port 0: the library picks one. ND_SHARING_VIOLATION, ND_TOO_MANY_ADDRESSES, ND_INVALID_ADDRESS,
     * ND_INSUFFICIENT_RESOURCES, 0xC0000238 (bound already). */
    STDMETHOD(Bind)(THIS_ _In_reads_bytes_(cbAddress) const struct sockaddr *pAddress, ULONG cbAddress) PURE;

    /* Requests kept while no GetConnectionRequest is pending; 0: as many as the library allows. ND_INVALID_DEVICE_STATE,
     * ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(Listen)(THIS_ ULONG backlog) PURE;

    /* As IND2Connector::GetLocalAddress. ND_INVALID_DEVICE_STATE (not bound). */
    STDMETHOD(GetLocalAddress)
    (THIS_ _Out_writes_bytes_opt_(*pcbAddress) struct sockaddr * pAddress, _Inout_ ULONG * pcbAddress) PURE;

    /* Overlapped: gives the next request to a fresh connector of the same adapter. Several may be pending; they are served
     * in order. ND_INVALID_DEVICE_STATE (not listening), ND_CONNECTION_ACTIVE (connector in use), ND_CANCELED. */
    STDMETHOD(GetConnectionRequest)(THIS_ _In_ IUnknown * pConnector, _Inout_ OVERLAPPED * pOverlapped) PURE;
};

/* One opened adapter: the objects below share its protection domain. ndspi-v2.md section 5. All methods are synchronous. */
DEFINE_GUID(IID_IND2Adapter, 0xD89C798C, 0x4823, 0x4D69, 0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3);

#undef INTERFACE
#define INTERFACE IND2Adapter
DECLARE_INTERFACE_(IND2Adapter, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Adapter */
    /* A new file for overlapped requests, the caller's to close: bind it to a completion port or leave it. Closing it hurts
     * no object created on it. ND_NO_MEMORY. */
    STDMETHOD(CreateOverlappedFile)(THIS_ _Out_ HANDLE * phOverlappedFile) PURE;

    /* The caller sets pInfo->InfoVersion. ND_BUFFER_OVERFLOW (*pcbInfo is the needed size; NULL with 0 is legal),
     * ND_NOT_SUPPORTED (version). */
    STDMETHOD(Query)(THIS_ _Inout_updates_bytes_opt_(*pcbInfo) ND2_ADAPTER_INFO * pInfo, _Inout_ ULONG * pcbInfo) PURE;

    /* The adapter's local addresses, port 0, in one buffer. ND_BUFFER_OVERFLOW (NULL with 0 is legal). */
    STDMETHOD(QueryAddressList)
    (THIS_ _Out_writes_bytes_opt_(*pcbAddressList) SOCKET_ADDRESS_LIST * pAddressList, _Inout_ ULONG * pcbAddressList)
        PURE;

    /* group and affinity: wished processors, 0 for any. ND_INVALID_PARAMETER_3 (depth), ND_INSUFFICIENT_RESOURCES,
     * ND_NO_MEMORY; E_NOINTERFACE, here and below, with NULL in the out parameter. */
    STDMETHOD(CreateCompletionQueue)
    (THIS_ _In_ REFIID iid, _In_ HANDLE hOverlappedFile, ULONG queueDepth, USHORT group, KAFFINITY affinity,
     _Outptr_ VOID * *ppCompletionQueue) PURE;

    STDMETHOD(CreateMemoryRegion)
    (THIS_ _In_ REFIID iid, _In_ HANDLE hOverlappedFile, _Outptr_ VOID * *ppMemoryRegion) PURE;

    STDMETHOD(CreateMemoryWindow)(THIS_ _In_ REFIID iid, _Outptr_ VOID * *ppMemoryWindow) PURE;

    /* ND_INVALID_PARAMETER_3 (depth), ND_INVALID_PARAMETER_4 (entries), ND_NOT_SUPPORTED. */
    STDMETHOD(CreateSharedReceiveQueue)
    (THIS_ _In_ REFIID iid, _In_ HANDLE hOverlappedFile, ULONG queueDepth, ULONG maxRequestSge, ULONG notifyThreshold,
     USHORT group, KAFFINITY affinity, _Outptr_ VOID * *ppSharedReceiveQueue) PURE;

    /* `context` comes back in each ND2_RESULT. Both completion queues may be the same. ND_INVALID_PARAMETER_2 and _3 (the
     * queues), _5 and _6 (depths), _7 and _8 (entries), _9 (inline size), ND_INSUFFICIENT_RESOURCES. */
    STDMETHOD(CreateQueuePair)
    (THIS_ _In_ REFIID iid, _In_ IUnknown * pReceiveCompletionQueue, _In_ IUnknown * pInitiatorCompletionQueue,
     _In_opt_ VOID * context, ULONG receiveQueueDepth, ULONG initiatorQueueDepth, ULONG maxReceiveRequestSge,
     ULONG maxInitiatorRequestSge, ULONG inlineDataSize, _Outptr_ VOID * *ppQueuePair) PURE;

    /* As CreateQueuePair; _4 is the shared queue, _6 the depth, _7 the entries, _8 the inline size. ND_NOT_SUPPORTED. */
    STDMETHOD(CreateQueuePairWithSrq)
    (THIS_ _In_ REFIID iid, _In_ IUnknown * pReceiveCompletionQueue, _In_ IUnknown * pInitiatorCompletionQueue,
     _In_ IUnknown * pSharedReceiveQueue, _In_opt_ VOID * context, ULONG initiatorQueueDepth,
     ULONG maxInitiatorRequestSge, ULONG inlineDataSize, _Outptr_ VOID * *ppQueuePair) PURE;

    STDMETHOD(CreateConnector)(THIS_ _In_ REFIID iid, _In_ HANDLE hOverlappedFile, _Outptr_ VOID * *ppConnector) PURE;

    STDMETHOD(CreateListener)(THIS_ _In_ REFIID iid, _In_ HANDLE hOverlappedFile, _Outptr_ VOID * *ppListener) PURE;
};

/* What DllGetClassObject gives for version 2. ndspi-v2.md section 3. */
DEFINE_GUID(IID_IND2Provider, 0x49EAE6C1, 0x76C4, 0x46D0, 0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E);

#undef INTERFACE
#define INTERFACE IND2Provider
DECLARE_INTERFACE_(IND2Provider, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* IND2Provider */
    /* All local addresses that can be used, port 0, in one buffer. ND_BUFFER_OVERFLOW (NULL with 0 is legal). */
    STDMETHOD(QueryAddressList)
    (THIS_ _Out_writes_bytes_opt_(*pcbAddressList) SOCKET_ADDRESS_LIST * pAddressList, _Inout_ ULONG * pcbAddressList)
        PURE;

    /* The adapter of a local address; the port is ignored. ND_INVALID_ADDRESS. */
    STDMETHOD(ResolveAddress)
    (THIS_ _In_reads_bytes_(cbAddress) const struct sockaddr *pAddress, ULONG cbAddress, _Out_ UINT64 *pAdapterId) PURE;

    /* A new adapter object. ND_INVALID_PARAMETER (unknown id), E_NOINTERFACE. */
    STDMETHOD(OpenAdapter)(THIS_ _In_ REFIID iid, UINT64 adapterId, _Outptr_ VOID * *ppAdapter) PURE;
};

    /* ---- version 1 ---- */

#define ND_LOCAL_LENGTH       ND_DATA_OVERRUN
#define ND_INVALIDATION_ERROR ND_INVALID_DEVICE_REQUEST

DECLARE_HANDLE(ND_MR_HANDLE);

typedef struct INDCompletionQueue INDCompletionQueue;
typedef struct INDMemoryWindow INDMemoryWindow;
typedef struct INDEndpoint INDEndpoint;
typedef struct INDConnector INDConnector;
typedef struct INDListen INDListen;
typedef struct INDAdapter INDAdapter;

/* 128 bytes, 68 on 32-bit. */
typedef struct _ND_ADAPTER_INFO1 {
    UINT32 VendorId;
    UINT32 DeviceId;
    SIZE_T MaxInboundSge;
    SIZE_T MaxInboundRequests;
    SIZE_T MaxInboundLength; /* bytes per Receive */
    SIZE_T MaxOutboundSge;
    SIZE_T MaxOutboundRequests;
    SIZE_T MaxOutboundLength; /* bytes per Send, Read or Write */
    SIZE_T MaxInlineData;
    SIZE_T MaxInboundReadLimit;
    SIZE_T MaxOutboundReadLimit;
    SIZE_T MaxCqEntries;
    SIZE_T MaxRegistrationSize;
    SIZE_T MaxWindowSize;
    SIZE_T LargeRequestThreshold;
    SIZE_T MaxCallerData;
    SIZE_T MaxCalleeData;
} ND_ADAPTER_INFO1;
#define ND_ADAPTER_INFO ND_ADAPTER_INFO1

/* The application's, from the post until GetResults gave its address back. */
typedef struct _ND_RESULT {
    HRESULT Status;
    SIZE_T BytesTransferred;
} ND_RESULT;

/* Names a bound window to the peer: all members in network byte order, sent as it is. Base is opaque. */
#pragma pack(push, 1)
typedef struct _ND_MW_DESCRIPTOR {
    UINT64 Base;
    UINT64 Length;
    UINT32 Token;
} ND_MW_DESCRIPTOR;
#pragma pack(pop)

typedef struct _ND_SGE {
    VOID *pAddr;
    SIZE_T Length;
    ND_MR_HANDLE hMr;
} ND_SGE;

/* As IND2Overlapped. ndspi-v1.md section 3. */
DEFINE_GUID(IID_INDOverlapped, 0xC859E15E, 0x75E2, 0x4FE3, 0x8D, 0x6D, 0x0D, 0xFF, 0x36, 0xF0, 0x24, 0x42);

#undef INTERFACE
#define INTERFACE INDOverlapped
DECLARE_INTERFACE_(INDOverlapped, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDOverlapped */
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;

    /* *pNumberOfBytesTransferred is written, 0 where it has no meaning. */
    STDMETHOD(GetOverlappedResult)
    (THIS_ _Inout_ OVERLAPPED * pOverlapped, _Out_ SIZE_T * pNumberOfBytesTransferred, BOOL bWait) PURE;
};

#define ND_OVERLAPPED_METHODS                         \
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE; \
    IFACEMETHOD(GetOverlappedResult)                  \
    (THIS_ _Inout_ OVERLAPPED * pOverlapped, _Out_ SIZE_T * pNumberOfBytesTransferred, BOOL bWait) PURE

/* As IND2CompletionQueue. ndspi-v1.md section 6. */
DEFINE_GUID(IID_INDCompletionQueue, 0x1245A633, 0x2A32, 0x473A, 0x83, 0x0C, 0xE0, 0x5D, 0x1F, 0x86, 0x9D, 0x02);

#undef INTERFACE
#define INTERFACE INDCompletionQueue
DECLARE_INTERFACE_(INDCompletionQueue, INDOverlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDOverlapped */
    ND_OVERLAPPED_METHODS;

    /* INDCompletionQueue */
    STDMETHOD(Resize)(THIS_ SIZE_T nEntries) PURE;
    STDMETHOD(Notify)(THIS_ DWORD Type, _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* Fills the array with the application's own ND_RESULT pointers, completed. */
    STDMETHOD_(SIZE_T, GetResults)(THIS_ _Out_writes_to_(nResults, return ) ND_RESULT * pResults[], SIZE_T nResults)
        PURE;
};

/* Bound by INDEndpoint::Bind. The id is the one of IND2MemoryWindow, whose table begins alike. ndspi-v1.md section 7. */
DEFINE_GUID(IID_INDMemoryWindow, 0x070FE1F5, 0x0AB5, 0x4361, 0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);

#undef INTERFACE
#define INTERFACE INDMemoryWindow
DECLARE_INTERFACE_(INDMemoryWindow, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;
};

/* Queue pair of one connector. Flags as in version 2, without INLINE: small Sends and Writes are inlined by the library.
 * ndspi-v1.md section 8. */
DEFINE_GUID(IID_INDEndpoint, 0xDBD00EAB, 0xB679, 0x44A9, 0xBD, 0x65, 0xE8, 0x2F, 0x3D, 0xE1, 0x2D, 0x1A);

#undef INTERFACE
#define INTERFACE INDEndpoint
DECLARE_INTERFACE_(INDEndpoint, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDEndpoint */
    STDMETHOD(Flush)(THIS) PURE;

    /* Between the two, requests may be held back and handed over together. */
    STDMETHOD_(VOID, StartRequestBatch)(THIS) PURE;
    STDMETHOD_(VOID, SubmitRequestBatch)(THIS) PURE;

    /* ND_CONNECTION_INVALID, ND_BUFFER_OVERFLOW, ND_NO_MORE_ENTRIES, ND_DATA_OVERRUN; likewise below. */
    STDMETHOD(Send)
    (THIS_ _Out_ ND_RESULT * pResult, _In_reads_opt_(nSge) const ND_SGE *pSgl, SIZE_T nSge, DWORD Flags) PURE;
    STDMETHOD(SendAndInvalidate)
    (THIS_ _Out_ ND_RESULT * pResult, _In_reads_opt_(nSge) const ND_SGE *pSgl, SIZE_T nSge,
     _In_ const ND_MW_DESCRIPTOR *pRemoteMwDescriptor, DWORD Flags) PURE;
    STDMETHOD(Receive)(THIS_ _Out_ ND_RESULT * pResult, _In_reads_opt_(nSge) const ND_SGE *pSgl, SIZE_T nSge) PURE;

    /* *pMwDescriptor is valid when the call returns. */
    STDMETHOD(Bind)
    (THIS_ _Out_ ND_RESULT * pResult, _In_ ND_MR_HANDLE hMr, _In_ INDMemoryWindow * pMw,
     _In_reads_bytes_(BufferSize) const VOID *pBuffer, SIZE_T BufferSize, DWORD Flags,
     _Out_ ND_MW_DESCRIPTOR *pMwDescriptor) PURE;
    STDMETHOD(Invalidate)(THIS_ _Out_ ND_RESULT * pResult, _In_ INDMemoryWindow * pMw, DWORD Flags) PURE;

    /* Offset counts from the start of the window. */
    STDMETHOD(Read)
    (THIS_ _Out_ ND_RESULT * pResult, _In_reads_opt_(nSge) const ND_SGE *pSgl, SIZE_T nSge,
     _In_ const ND_MW_DESCRIPTOR *pRemoteMwDescriptor, ULONGLONG Offset, DWORD Flags) PURE;
    STDMETHOD(Write)
    (THIS_ _Out_ ND_RESULT * pResult, _In_reads_opt_(nSge) const ND_SGE *pSgl, SIZE_T nSge,
     _In_ const ND_MW_DESCRIPTOR *pRemoteMwDescriptor, ULONGLONG Offset, DWORD Flags) PURE;
};

/* One end of a connection, with its endpoint. ndspi-v1.md section 9. */
DEFINE_GUID(IID_INDConnector, 0x1BCAF2D1, 0xE274, 0x4AEB, 0xAC, 0x57, 0xCD, 0x5D, 0x43, 0x76, 0xE0, 0xB7);

#undef INTERFACE
#define INTERFACE INDConnector
DECLARE_INTERFACE_(INDConnector, INDOverlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDOverlapped */
    ND_OVERLAPPED_METHODS;

    /* INDConnector */
    /* *pMaxInlineData (may be NULL): bytes that are sent inline. ND_INVALID_PARAMETER_1 to _8 in the order of the arguments. */
    STDMETHOD(CreateEndpoint)
    (THIS_ _In_ INDCompletionQueue * pInboundCq, _In_ INDCompletionQueue * pOutboundCq, SIZE_T nInboundEntries,
     SIZE_T nOutboundEntries, SIZE_T nInboundSge, SIZE_T nOutboundSge, SIZE_T InboundReadLimit,
     SIZE_T OutboundReadLimit, _Out_opt_ SIZE_T * pMaxInlineData, _Outptr_ INDEndpoint * *ppEndpoint) PURE;

    /* Overlapped. Protocol must be the listener's; LocalPort in network order, 0: the library picks one.
     * ND_BUFFER_OVERFLOW (private data), ND_TIMEOUT (success severity) when the peer does not answer, else as version 2. */
    STDMETHOD(Connect)
    (THIS_ _In_ INDEndpoint * pEndpoint, _In_reads_bytes_(AddressLength) const struct sockaddr *pAddress,
     SIZE_T AddressLength, INT Protocol, USHORT LocalPort,
     _In_reads_bytes_opt_(PrivateDataLength) const VOID *pPrivateData, SIZE_T PrivateDataLength,
     _Inout_ OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(CompleteConnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;
    STDMETHOD(Accept)
    (THIS_ _In_ INDEndpoint * pEndpoint, _In_reads_bytes_opt_(PrivateDataLength) const VOID *pPrivateData,
     SIZE_T PrivateDataLength, _Inout_ OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Reject)
    (THIS_ _In_reads_bytes_opt_(PrivateDataLength) const VOID *pPrivateData, SIZE_T PrivateDataLength) PURE;

    /* Any pointer may be NULL. */
    STDMETHOD(GetConnectionData)
    (THIS_ _Out_opt_ SIZE_T * pInboundReadLimit, _Out_opt_ SIZE_T * pOutboundReadLimit,
     _Out_writes_bytes_opt_(*pPrivateDataLength) VOID * pPrivateData, _Inout_opt_ SIZE_T * pPrivateDataLength) PURE;
    STDMETHOD(GetLocalAddress)
    (THIS_ _Out_writes_bytes_opt_(*pAddressLength) struct sockaddr * pAddress, _Inout_ SIZE_T * pAddressLength) PURE;
    STDMETHOD(GetPeerAddress)
    (THIS_ _Out_writes_bytes_opt_(*pAddressLength) struct sockaddr * pAddress, _Inout_ SIZE_T * pAddressLength) PURE;
    STDMETHOD(NotifyDisconnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;
    STDMETHOD(Disconnect)(THIS_ _Inout_ OVERLAPPED * pOverlapped) PURE;
};

/* A listening port. ndspi-v1.md section 10. */
DEFINE_GUID(IID_INDListen, 0xBB902588, 0xBA3F, 0x4441, 0x9F, 0xE1, 0x3B, 0x67, 0x95, 0xE4, 0xE6, 0x68);

#undef INTERFACE
#define INTERFACE INDListen
DECLARE_INTERFACE_(INDListen, INDOverlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDOverlapped */
    ND_OVERLAPPED_METHODS;

    /* INDListen */
    /* Overlapped; the connector is a fresh one. */
    STDMETHOD(GetConnectionRequest)(THIS_ _In_ INDConnector * pConnector, _Inout_ OVERLAPPED * pOverlapped) PURE;
};

/* One opened adapter, bound to the address it was opened by. ndspi-v1.md section 5. */
DEFINE_GUID(IID_INDAdapter, 0xA023C5A0, 0x5B73, 0x43BC, 0x8D, 0x20, 0x33, 0xAA, 0x07, 0xE9, 0x51, 0x0F);

#undef INTERFACE
#define INTERFACE INDAdapter
DECLARE_INTERFACE_(INDAdapter, INDOverlapped)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDOverlapped */
    ND_OVERLAPPED_METHODS;

    /* INDAdapter */
    /* The adapter's own file, not the caller's to close. */
    STDMETHOD_(HANDLE, GetFileHandle)(THIS) PURE;
    STDMETHOD(Query)
    (THIS_ DWORD VersionRequested, _Out_writes_bytes_opt_(*pBufferSize) ND_ADAPTER_INFO * pInfo,
     _Inout_ SIZE_T * pBufferSize) PURE;
    STDMETHOD(Control)
    (THIS_ DWORD IoControlCode, _In_reads_bytes_opt_(InBufferSize) const VOID *pInBuffer, SIZE_T InBufferSize,
     _Out_writes_bytes_opt_(OutBufferSize) VOID *pOutBuffer, SIZE_T OutBufferSize, _Out_ SIZE_T *pBytesReturned,
     _Inout_ OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(CreateCompletionQueue)(THIS_ SIZE_T nEntries, _Outptr_ INDCompletionQueue * *ppCq) PURE;

    /* Overlapped; *phMr is set before the call returns. Local rights and window binding only. */
    STDMETHOD(RegisterMemory)
    (THIS_ _In_reads_bytes_(BufferSize) const VOID *pBuffer, SIZE_T BufferSize, _Inout_ OVERLAPPED *pOverlapped,
     _Out_ ND_MR_HANDLE *phMr) PURE;
    STDMETHOD(DeregisterMemory)(THIS_ _In_ ND_MR_HANDLE hMr, _Inout_ OVERLAPPED * pOverlapped) PURE;

    /* *pInvalidateResult completes when the peer invalidates the window. */
    STDMETHOD(CreateMemoryWindow)(THIS_ _Out_ ND_RESULT * pInvalidateResult, _Outptr_ INDMemoryWindow * *ppMw) PURE;
    STDMETHOD(CreateConnector)(THIS_ _Outptr_ INDConnector * *ppConnector) PURE;

    /* Ports in network order; Port 0 takes a free one, told in *pAssignedPort. */
    STDMETHOD(Listen)
    (THIS_ SIZE_T Backlog, INT Protocol, USHORT Port, _Out_opt_ USHORT * pAssignedPort, _Outptr_ INDListen * *ppListen)
        PURE;
};

/* What the class factory of version 1 creates. ndspi-v1.md section 4. */
DEFINE_GUID(IID_INDProvider, 0x0C5DD316, 0x5FDF, 0x47E6, 0xB2, 0xD0, 0x2A, 0x6E, 0xDA, 0x8D, 0x39, 0xDD);

#undef INTERFACE
#define INTERFACE INDProvider
DECLARE_INTERFACE_(INDProvider, IUnknown)
{
    /* IUnknown */
    ND_IUNKNOWN_METHODS;

    /* INDProvider */
    STDMETHOD(QueryAddressList)
    (THIS_ _Out_writes_bytes_opt_(*pBufferSize) SOCKET_ADDRESS_LIST * pAddressList, _Inout_ SIZE_T * pBufferSize) PURE;
    STDMETHOD(OpenAdapter)
    (THIS_ _In_reads_bytes_(AddressLength) const struct sockaddr *pAddress, SIZE_T AddressLength,
     _Outptr_ INDAdapter **ppAdapter) PURE;
};

#undef INTERFACE

#ifdef __cplusplus
NDV_UUID(IND2Overlapped);
NDV_UUID(IND2CompletionQueue);
NDV_UUID(IND2SharedReceiveQueue);
NDV_UUID(IND2MemoryWindow);
NDV_UUID(IND2MemoryRegion);
NDV_UUID(IND2QueuePair);
NDV_UUID(IND2Connector);
NDV_UUID(IND2Listener);
NDV_UUID(IND2Adapter);
NDV_UUID(IND2Provider);
NDV_UUID(INDOverlapped);
NDV_UUID(INDCompletionQueue);
NDV_UUID(INDMemoryWindow);
NDV_UUID(INDEndpoint);
NDV_UUID(INDConnector);
NDV_UUID(INDListen);
NDV_UUID(INDAdapter);
NDV_UUID(INDProvider);
#pragma GCC diagnostic pop
#endif

#endif
