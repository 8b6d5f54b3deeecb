/* SPDX-License-Identifier: MIT */
/* WinVerbs: verbs-style access to RDMA devices for applications (OpenFabrics for Windows). Sources include it as
 * <rdma\winverbs.h> on Windows and as <rdma/winverbs.h> here. Field names, order and values are the interface;
 * NETxx are integers in network byte order, everything else is in host order. */
#ifndef _WINVERBS_H_
#define _WINVERBS_H_
#pragma once

#include <initguid.h>
#include <winsock2.h>
#include <ws2tcpip.h>
#include <unknwn.h>
#include <rdma/wvstatus.h>

typedef UINT16 NET16;
typedef UINT32 NET32;
typedef UINT64 NET64;

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ enumerations */

typedef enum _WV_DEVICE_TYPE {
    WvDeviceUnknown = 0,
    WvDeviceInfiniband = 1,
    WvDeviceIwarp = 2
} WV_DEVICE_TYPE;

typedef enum _WV_ATOMIC_CAPABILITIES {
    WvAtomicNone = 0,
    WvAtomicDevice = 1,
    WvAtomicNode = 2
} WV_ATOMIC_CAPABILITIES;

typedef enum _WV_PORT_STATE {
    WvPortNop = 0,
    WvPortDown = 1,
    WvPortInit = 2,
    WvPortArmed = 3,
    WvPortActive = 4,
    WvPortActiveDefer = 5
} WV_PORT_STATE;

typedef enum _WV_PORT_TRANSPORT {
    WvPortTransportIb = 0,
    WvPortTransportIwarp = 1,
    WvPortTransportRdmaoe = 2
} WV_PORT_TRANSPORT;

typedef enum _WV_CQ_NOTIFY_TYPE {
    WvCqError = 0,
    WvCqNextCompletion = 1,
    WvCqSolicited = 2
} WV_CQ_NOTIFY_TYPE;

typedef enum _WV_OPCODE {
    WvSend = 0,
    WvRdmaWrite = 1,
    WvRdmaRead = 2,
    WvCompareExchange = 3,
    WvFetchAdd = 4,
    WvBindWindow = 5,
    WvReceive = 1 << 7,
    WvReceiveRdmaWrite = 129
} WV_OPCODE;

typedef enum _WV_WC_STATUS {
    WvWcSuccess = 0,
    WvWcLocalLengthError = 1,
    WvWcLocalOpError = 2,
    WvWcLocalProtectionError = 3,
    WvWcFlushed = 4,
    WvWcMwBindError = 5,
    WvWcRemoteAccessError = 6,
    WvWcRemoteOpError = 7,
    WvWcRnrRetryError = 8,
    WvWcTimeoutRetryError = 9,
    WvWcRemoteInvalidRequest = 10,
    WvWcBadResponse = 11,
    WvWcLocalAccessError = 12,
    WvWcError = 13
} WV_WC_STATUS;

typedef enum _WV_QP_TYPE {
    WvQpTypeRc = 0,
    WvQpTypeUc = 1,
    WvQpTypeReserved = 2,
    WvQpTypeUd = 3
} WV_QP_TYPE;

typedef enum _WV_QP_STATE {
    WvQpStateReset = 0,
    WvQpStateInit = 1,
    WvQpStateRtr = 2,
    WvQpStateRts = 3,
    WvQpStateSqd = 4,
    WvQpStateSqError = 5,
    WvQpStateError = 6
} WV_QP_STATE;

typedef enum _WV_APM_STATE {
    WvApmMigrated = 1,
    WvApmRearm = 2,
    WvApmArmed = 3
} WV_APM_STATE;

/* ------------------------------------------------------------------ flags */

#define WV_DEVICE_RESIZE_MAX_WR         0x00000001
#define WV_DEVICE_BAD_PKEY_COUNTER      0x00000002
#define WV_DEVICE_BAD_QKEY_COUNTER      0x00000004
#define WV_DEVICE_PATH_MIGRATION        0x00000010
#define WV_DEVICE_CHANGE_PHYSICAL_PORT  0x00000020
#define WV_DEVICE_AH_PORT_CHECKING      0x00000040
#define WV_DEVICE_QP_STATE_MODIFIER     0x00000080
#define WV_DEVICE_SHUTDOWN_PORT         0x00000100
#define WV_DEVICE_INIT_TYPE             0x00000200
#define WV_DEVICE_PORT_ACTIVE_EVENT     0x00000400
#define WV_DEVICE_SYSTEM_IMAGE_GUID     0x00000800
#define WV_DEVICE_RC_RNR_NAK_GENERATION 0x00001000
#define WV_DEVICE_SRQ_RESIZE            0x00002000
#define WV_DEVICE_BATCH_NOTIFY_CQ       0x00004000

#define WV_EVENT_ERROR        0x00000001
#define WV_EVENT_STATE        0x00000002
#define WV_EVENT_ADDRESS      0x00000004
#define WV_EVENT_LINK_ADDRESS 0x00000008
#define WV_EVENT_PARTITION    0x00000010
#define WV_EVENT_MANAGEMENT   0x00000020

#define WV_WC_IMMEDIATE 0x00000001
#define WV_WC_GRH_VALID 0x00000004

#define WV_ACCESS_REMOTE_READ   0x00000001
#define WV_ACCESS_REMOTE_WRITE  0x0000000A /* contains WV_ACCESS_LOCAL_WRITE */
#define WV_ACCESS_REMOTE_ATOMIC 0x00000004
#define WV_ACCESS_LOCAL_WRITE   0x00000008
#define WV_ACCESS_MW_BIND       0x00000010
#define WV_ACCESS_NON_CACHABLE  0x80000000

#define WV_SEND_IMMEDIATE 0x00000001
#define WV_SEND_FENCE     0x00000002
#define WV_SEND_SIGNALED  0x00000004
#define WV_SEND_SOLICITED 0x00000008
#define WV_SEND_INLINE    0x00000010

#define WV_QP_SIGNAL_SENDS      0x00000001
#define WV_QP_MEMORY_MANAGEMENT 0x00000002

#define WV_QP_ATTR_CAPABILITIES        0x00000001
#define WV_QP_ATTR_INITIATOR_DEPTH     0x00000002
#define WV_QP_ATTR_RESPONDER_RESOURCES 0x00000004
#define WV_QP_ATTR_CURRENT_STATE       0x00000008
#define WV_QP_ATTR_STATE               0x00000010
#define WV_QP_ATTR_PATH_MIG_STATE      0x00000020
#define WV_QP_ATTR_DESTINATION_QPN     0x00000040
#define WV_QP_ATTR_QKEY                0x00000080
#define WV_QP_ATTR_SEND_PSN            0x00000100
#define WV_QP_ATTR_RECEIVE_PSN         0x00000200
#define WV_QP_ATTR_FLAGS               0x00000400
#define WV_QP_ATTR_ACCESS_FLAGS        0x00000800
#define WV_QP_ATTR_AV                  0x00001000
#define WV_QP_ATTR_ALTERNATE_AV        0x00002000
#define WV_QP_ATTR_PORT_NUMBER         0x00004000
#define WV_QP_ATTR_PKEY_INDEX          0x00008000
#define WV_QP_ATTR_ACK_TIMEOUT         0x00010000
#define WV_QP_ATTR_RNR_NAK_TIMEOUT     0x00020000
#define WV_QP_ATTR_ERROR_RETRY_COUNT   0x00040000
#define WV_QP_ATTR_RNR_RETRY_COUNT     0x00080000

#define WV_EP_OPTION_ROUTE 0x00000001

#define WV_CM_UDP_QKEY 0x01234567

/* ------------------------------------------------------------------ structures */

typedef union _WV_GID {
    UINT8 Raw[16]; /* network order */
} WV_GID;

typedef struct _WV_DEVICE_ATTRIBUTES {
    UINT64 FwVersion;
    NET64 NodeGuid;
    NET64 SystemImageGuid;
    UINT32 VendorId;
    UINT32 VendorPartId;
    UINT32 HwVersion;
    DWORD CapabilityFlags;
    WV_ATOMIC_CAPABILITIES AtomicCapability;
    DWORD PageSizeCapabilityFlags;
    SIZE_T MaxMrSize;
    SIZE_T MaxQp;
    SIZE_T MaxQpWr;
    SIZE_T MaxSge;
    SIZE_T MaxCq;
    SIZE_T MaxCqEntries;
    SIZE_T MaxMr;
    SIZE_T MaxPd;
    SIZE_T MaxQpResponderResources;
    SIZE_T MaxResponderResources;
    SIZE_T MaxQpInitiatorDepth;
    SIZE_T MaxInlineSend;
    SIZE_T MaxMw;
    SIZE_T MaxMulticast;
    SIZE_T MaxQpAttach;
    SIZE_T MaxMulticastQp;
    SIZE_T MaxAh;
    SIZE_T MaxFmr;
    SIZE_T MaxMapPerFmr;
    SIZE_T MaxSrq;
    SIZE_T MaxSrqWr;
    SIZE_T MaxSrqSge;
    SIZE_T MaxPkeys;
    WV_DEVICE_TYPE DeviceType;
    UINT8 LocalAckDelay;
    UINT8 PhysPortCount;
} WV_DEVICE_ATTRIBUTES;

typedef struct _WV_PORT_ATTRIBUTES {
    DWORD PortCabilityFlags; /* the spelling of the interface */
    WV_PORT_STATE State;
    UINT32 MaxMtu;    /* bytes */
    UINT32 ActiveMtu; /* bytes */
    UINT32 GidTableLength;
    UINT32 MaxMessageSize;
    UINT32 BadPkeyCounter;
    UINT32 QkeyViolationCounter;
    UINT16 PkeyTableLength;
    NET16 Lid;
    NET16 SmLid;
    UINT8 Lmc;
    UINT8 MaxVls;
    UINT8 SmSl;
    UINT8 SubnetTimeout;
    UINT8 InitTypeReply;
    UINT8 ActiveWidth;
    UINT8 ActiveSpeed;
    UINT8 PhysicalState;
    UINT8 Transport; /* a WV_PORT_TRANSPORT value */
    UINT8 ExtActiveSpeed;
    UINT8 LinkEncoding;
} WV_PORT_ATTRIBUTES;

typedef struct _WV_DEVICE_ADDRESS {
    NET64 DeviceGuid;
    NET16 Pkey;
    UINT8 PortNumber; /* from 1 */
} WV_DEVICE_ADDRESS;

typedef struct _WV_COMPLETION {
    VOID *QpContext;
    UINT64 WrId;
    WV_OPCODE Opcode;
    UINT32 Length;
    UINT64 VendorCode;
    WV_WC_STATUS Status;
    DWORD Flags;
    NET32 ImmediateData;
    NET32 SourceQpn;
    UINT16 PkeyIndex;
    NET16 SLid;
    UINT8 SL;
    UINT8 DLidPathBits;
} WV_COMPLETION;

typedef struct _WV_MEMORY_KEYS {
    UINT32 Lkey;
    NET32 Rkey;
} WV_MEMORY_KEYS;

typedef struct _WV_SGE {
    VOID *pAddress;
#if !defined(__LP64__) && !defined(_WIN64)
    UINT32 Reserved; /* zeroed by the library */
#endif
    UINT32 Length;
    UINT32 Lkey;
} WV_SGE;

typedef struct _WV_SEND_DATAGRAM {
    UINT64 WrId;
    ULONG_PTR AhKey;
    WV_SGE *pSgl;
    SIZE_T nSge;
    DWORD Flags;
    NET32 ImmediateData;
    NET32 DestinationQpn;
    NET32 DestinationQkey;
} WV_SEND_DATAGRAM;

typedef struct _WV_SEND_REQUEST {
    UINT64 WrId;
    struct _WV_SEND_REQUEST *pNext;
    WV_SGE *pSgl;
    UINT32 nSge;
    WV_OPCODE Opcode;
    DWORD Flags;
    NET32 ImmediateData;
    union {
        struct {
            NET64 RemoteAddress;
            NET32 Rkey;
        } Rdma;
        struct {
            NET64 RemoteAddress;
            NET32 Rkey;
            NET64 Compare;
            NET64 Exchange;
        } CompareExchange;
        struct {
            NET64 RemoteAddress;
            NET32 Rkey;
            NET64 Add;
            UINT64 Reserved;
        } FetchAdd;
        struct {
            ULONG_PTR AhKey;
            NET32 DestinationQpn;
            NET32 DestinationQkey;
        } Datagram;
    } Wr;
} WV_SEND_REQUEST;

typedef struct _WV_NETWORK_ROUTE {
    UINT8 Valid;
    UINT8 Reserved;
    UINT8 HopLimit;
    UINT8 TrafficClass;
    NET32 FlowLabel;
    WV_GID SGid;
    WV_GID DGid;
} WV_NETWORK_ROUTE;

typedef struct _WV_ADDRESS_VECTOR {
    WV_NETWORK_ROUTE Route;
    UINT16 Reserved;
    NET16 DLid;
    UINT8 ServiceLevel;
    UINT8 SourcePathBits;
    UINT8 StaticRate;
    UINT8 PortNumber;
} WV_ADDRESS_VECTOR;

#ifdef __cplusplus
}
struct IWVCompletionQueue;
struct IWVSharedReceiveQueue;
struct IWVProtectionDomain;
struct IWVMemoryWindow;
struct IWVAddressHandle;
struct IWVConnectQueuePair;
struct IWVDatagramQueuePair;
struct IWVConnectEndpoint;
struct IWVDatagramEndpoint;
struct IWVDevice;
extern "C" {
#else
typedef struct IWVCompletionQueue IWVCompletionQueue;
typedef struct IWVSharedReceiveQueue IWVSharedReceiveQueue;
typedef struct IWVProtectionDomain IWVProtectionDomain;
typedef struct IWVMemoryWindow IWVMemoryWindow;
typedef struct IWVAddressHandle IWVAddressHandle;
typedef struct IWVConnectQueuePair IWVConnectQueuePair;
typedef struct IWVDatagramQueuePair IWVDatagramQueuePair;
typedef struct IWVConnectEndpoint IWVConnectEndpoint;
typedef struct IWVDatagramEndpoint IWVDatagramEndpoint;
typedef struct IWVDevice IWVDevice;
#endif

typedef struct _WV_QP_CREATE {
    IWVCompletionQueue *pSendCq;
    IWVCompletionQueue *pReceiveCq;
    IWVSharedReceiveQueue *pSharedReceiveQueue;
    VOID *Context;
    SIZE_T SendDepth;
    SIZE_T SendSge;
    SIZE_T ReceiveDepth;
    SIZE_T ReceiveSge;
    SIZE_T MaxInlineSend;
    SIZE_T InitiatorDepth;
    SIZE_T ResponderResources;
    WV_QP_TYPE QpType;
    DWORD QpFlags;
} WV_QP_CREATE;

typedef struct _WV_QP_ATTRIBUTES {
    IWVProtectionDomain *pPd;
    IWVCompletionQueue *pSendCq;
    IWVCompletionQueue *pReceiveCq;
    IWVSharedReceiveQueue *pSharedReceiveQueue;
    SIZE_T SendDepth;
    SIZE_T SendSge;
    SIZE_T ReceiveDepth;
    SIZE_T ReceiveSge;
    SIZE_T MaxInlineSend;
    SIZE_T InitiatorDepth;
    SIZE_T ResponderResources;
    WV_QP_TYPE QpType;
    WV_QP_STATE CurrentQpState;
    WV_QP_STATE QpState;
    WV_APM_STATE ApmState;
    NET32 Qpn;
    NET32 DestinationQpn;
    NET32 Qkey;
    NET32 SendPsn;
    NET32 ReceivePsn;
    DWORD QpFlags;
    DWORD AccessFlags;
    WV_ADDRESS_VECTOR AddressVector;
    WV_ADDRESS_VECTOR AlternateAddressVector;
    UINT32 PathMtu;          /* bytes */
    UINT32 AlternatePathMtu; /* bytes */
    UINT16 PkeyIndex;
    UINT16 AlternatePkeyIndex;
    UINT8 LocalAckTimeout;
    UINT8 AlternateLocalAckTimeout;
    UINT8 RnrNakTimeout;
    UINT8 SequenceErrorRetryCount;
    UINT8 RnrRetryCount;
} WV_QP_ATTRIBUTES;

typedef struct _WV_CONNECT_PARAM {
    SIZE_T DataLength;
    SIZE_T ResponderResources;
    SIZE_T InitiatorDepth;
    UINT8 RetryCount; /* ignored when accepting */
    UINT8 RnrRetryCount;
    UINT8 Reserved[2];
    UINT8 Data[56];
} WV_CONNECT_PARAM;

typedef struct _WV_DATAGRAM_PARAM {
    SIZE_T DataLength;
    WV_ADDRESS_VECTOR AddressVector;
    NET32 Qpn;
    NET32 Qkey;
    UINT8 Data[56];
} WV_DATAGRAM_PARAM;

typedef union _WV_SOCKADDR {
    SOCKADDR Sa;
    SOCKADDR_IN Sin;
    SOCKADDR_IN6 Sin6;
} WV_SOCKADDR;

typedef struct _WV_CONNECT_ATTRIBUTES {
    WV_SOCKADDR LocalAddress;
    WV_SOCKADDR PeerAddress;
    WV_DEVICE_ADDRESS Device;
    WV_CONNECT_PARAM Param;
} WV_CONNECT_ATTRIBUTES;

typedef struct _WV_DATAGRAM_ATTRIBUTES {
    WV_SOCKADDR LocalAddress;
    WV_SOCKADDR PeerAddress; /* filled by the caller of Query */
    WV_DEVICE_ADDRESS Device;
    WV_DATAGRAM_PARAM Param;
} WV_DATAGRAM_ATTRIBUTES;

#ifdef __cplusplus
}
/* No interface has a virtual destructor: it would take a slot. Objects end by Release. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wsuggest-override"
#endif

/* ------------------------------------------------------------------ interfaces */

/* IWVOverlapped : IUnknown */
/* clang-format off */
DEFINE_GUID(IID_IWVOverlapped, 0x64687592, 0xaa67, 0x4b55, 0xbc, 0x4b, 0xe1, 0x89, 0xbd, 0xd2, 0xfc, 0x4f);
#undef INTERFACE
#define INTERFACE IWVOverlapped
DECLARE_INTERFACE_(IWVOverlapped, IUnknown)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
    STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
};
/* clang-format on */

/* IWVCompletionQueue : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVCompletionQueue, 0xa5f6a8de, 0x18a6, 0x4086, 0xaa, 0x93, 0x7b, 0x66, 0x60, 0x7a, 0x29, 0x0a);
#undef INTERFACE
#define INTERFACE IWVCompletionQueue
DECLARE_INTERFACE_(IWVCompletionQueue, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVCompletionQueue */
    STDMETHOD(Resize)(THIS_ SIZE_T *pEntries) PURE;
    STDMETHOD(Peek)(THIS_ SIZE_T *pCompletedEntries) PURE;
    STDMETHOD(Notify)(THIS_ WV_CQ_NOTIFY_TYPE Type, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(BatchNotify)(THIS_ SIZE_T CompletedEntries, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD_(SIZE_T, Poll)(THIS_ WV_COMPLETION Completions[], SIZE_T Entries) PURE;
};
/* clang-format on */

/* IWVMemoryWindow : IUnknown */
/* clang-format off */
DEFINE_GUID(IID_IWVMemoryWindow, 0xe8ae206f, 0xb31f, 0x4709, 0x8d, 0xc9, 0x6e, 0x87, 0x62, 0x5f, 0x93, 0xfc);
#undef INTERFACE
#define INTERFACE IWVMemoryWindow
DECLARE_INTERFACE_(IWVMemoryWindow, IUnknown)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
};
/* clang-format on */

/* IWVAddressHandle : IUnknown */
/* clang-format off */
DEFINE_GUID(IID_IWVAddressHandle, 0x95903fde, 0xfdac, 0x4007, 0x92, 0xb7, 0xe0, 0x12, 0x86, 0xcd, 0x36, 0xe8);
#undef INTERFACE
#define INTERFACE IWVAddressHandle
DECLARE_INTERFACE_(IWVAddressHandle, IUnknown)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
};
/* clang-format on */

/* IWVSharedReceiveQueue : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVSharedReceiveQueue, 0xb2bf30e4, 0x8c2e, 0x4659, 0xac, 0x7a, 0x4c, 0x5e, 0x0d, 0x2c, 0x71, 0x14);
#undef INTERFACE
#define INTERFACE IWVSharedReceiveQueue
DECLARE_INTERFACE_(IWVSharedReceiveQueue, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVSharedReceiveQueue */
    STDMETHOD(Query)(THIS_ SIZE_T *pMaxWr, SIZE_T *pMaxSge, SIZE_T *pSrqLimit) PURE;
    STDMETHOD(Modify)(THIS_ SIZE_T MaxWr, SIZE_T SrqLimit) PURE;
    STDMETHOD(PostReceive)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge) PURE;
    STDMETHOD(Notify)(THIS_ OVERLAPPED *pOverlapped) PURE;
};
/* clang-format on */

/* IWVQueuePair : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVQueuePair, 0x35c64226, 0x6a1f, 0x4c8d, 0x94, 0x65, 0xc6, 0xfe, 0xe8, 0x05, 0x3c, 0xdd);
#undef INTERFACE
#define INTERFACE IWVQueuePair
DECLARE_INTERFACE_(IWVQueuePair, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVQueuePair */
    STDMETHOD(Query)(THIS_ WV_QP_ATTRIBUTES *pAttributes) PURE;
    STDMETHOD(Modify)(THIS_ WV_QP_ATTRIBUTES *pAttributes, DWORD Options, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(PostReceive)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge) PURE;
    STDMETHOD(PostSend)(THIS_ WV_SEND_REQUEST *pSend, WV_SEND_REQUEST **ppFailed) PURE;
};
/* clang-format on */

/* IWVConnectQueuePair : IWVQueuePair */
/* clang-format off */
DEFINE_GUID(IID_IWVConnectQueuePair, 0xdf905570, 0xaeeb, 0x4114, 0xb3, 0x0e, 0x4d, 0xc3, 0xeb, 0x5a, 0x9a, 0xd6);
#undef INTERFACE
#define INTERFACE IWVConnectQueuePair
DECLARE_INTERFACE_(IWVConnectQueuePair, IWVQueuePair)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVQueuePair */
    IFACEMETHOD(Query)(THIS_ WV_QP_ATTRIBUTES *pAttributes) PURE;
    IFACEMETHOD(Modify)(THIS_ WV_QP_ATTRIBUTES *pAttributes, DWORD Options, OVERLAPPED *pOverlapped) PURE;
    IFACEMETHOD(PostReceive)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge) PURE;
    IFACEMETHOD(PostSend)(THIS_ WV_SEND_REQUEST *pSend, WV_SEND_REQUEST **ppFailed) PURE;
    /* IWVConnectQueuePair */
    STDMETHOD(Send)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge, DWORD Flags, NET32 ImmediateData) PURE;
    STDMETHOD(Read)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge, DWORD Flags, NET64 Address, NET32 Rkey) PURE;
    STDMETHOD(Write)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge, DWORD Flags, NET32 ImmediateData, NET64 Address, NET32 Rkey) PURE;
    STDMETHOD(CompareExchange)(THIS_ UINT64 WrId, WV_SGE *pSge, DWORD Flags, NET64 Compare, NET64 Exchange, NET64 Address, NET32 Rkey) PURE;
    STDMETHOD(FetchAdd)(THIS_ UINT64 WrId, WV_SGE *pSge, DWORD Flags, NET64 Value, NET64 Address, NET32 Rkey) PURE;
    STDMETHOD(BindMemoryWindow)(THIS_ IWVMemoryWindow *pMw, UINT64 WrId, UINT32 Lkey, DWORD AccessFlags, DWORD SendFlags, const VOID *pBuffer, SIZE_T BufferLength, NET32 *pRkey) PURE;
};
/* clang-format on */

/* IWVDatagramQueuePair : IWVQueuePair */
/* clang-format off */
DEFINE_GUID(IID_IWVDatagramQueuePair, 0x3ba2f15e, 0xd961, 0x4df8, 0x8f, 0xc2, 0x60, 0x43, 0xa6, 0xd6, 0x78, 0x26);
#undef INTERFACE
#define INTERFACE IWVDatagramQueuePair
DECLARE_INTERFACE_(IWVDatagramQueuePair, IWVQueuePair)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVQueuePair */
    IFACEMETHOD(Query)(THIS_ WV_QP_ATTRIBUTES *pAttributes) PURE;
    IFACEMETHOD(Modify)(THIS_ WV_QP_ATTRIBUTES *pAttributes, DWORD Options, OVERLAPPED *pOverlapped) PURE;
    IFACEMETHOD(PostReceive)(THIS_ UINT64 WrId, WV_SGE *pSgl, SIZE_T nSge) PURE;
    IFACEMETHOD(PostSend)(THIS_ WV_SEND_REQUEST *pSend, WV_SEND_REQUEST **ppFailed) PURE;
    /* IWVDatagramQueuePair */
    STDMETHOD(Send)(THIS_ UINT64 WrId, ULONG_PTR AhKey, WV_SGE *pSge, DWORD Flags, NET32 DestinationQpn, NET32 DestinationQkey) PURE;
    STDMETHOD(SendMessage)(THIS_ WV_SEND_DATAGRAM *pSend) PURE;
    STDMETHOD(AttachMulticast)(THIS_ WV_GID *pGid, NET16 Lid, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(DetachMulticast)(THIS_ WV_GID *pGid, NET16 Lid, OVERLAPPED *pOverlapped) PURE;
};
/* clang-format on */

/* IWVProtectionDomain : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVProtectionDomain, 0xe3657abe, 0x8c4e, 0x4994, 0xbe, 0x32, 0x45, 0xb4, 0x9b, 0xae, 0x95, 0xe4);
#undef INTERFACE
#define INTERFACE IWVProtectionDomain
DECLARE_INTERFACE_(IWVProtectionDomain, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVProtectionDomain */
    STDMETHOD(CreateSharedReceiveQueue)(THIS_ SIZE_T MaxWr, SIZE_T MaxSge, SIZE_T SrqLimit, IWVSharedReceiveQueue **ppSrq) PURE;
    STDMETHOD(CreateConnectQueuePair)(THIS_ WV_QP_CREATE *pAttributes, IWVConnectQueuePair **ppQp) PURE;
    STDMETHOD(CreateDatagramQueuePair)(THIS_ WV_QP_CREATE *pAttributes, IWVDatagramQueuePair **ppQp) PURE;
    STDMETHOD(RegisterMemory)(THIS_ const VOID *pBuffer, SIZE_T BufferLength, DWORD AccessFlags, OVERLAPPED *pOverlapped, WV_MEMORY_KEYS *pKeys) PURE;
    STDMETHOD(DeregisterMemory)(THIS_ UINT32 Lkey, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(AllocateMemoryWindow)(THIS_ IWVMemoryWindow **ppMw) PURE;
    STDMETHOD(CreateAddressHandle)(THIS_ WV_ADDRESS_VECTOR *pAddress, IWVAddressHandle **ppAh, ULONG_PTR *pAhKey) PURE;
};
/* clang-format on */

/* IWVEndpoint : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVEndpoint, 0xeb2fbd8e, 0xb9b6, 0x4b24, 0x9a, 0x5e, 0x94, 0xc2, 0x6a, 0xe2, 0x65, 0xf0);
#undef INTERFACE
#define INTERFACE IWVEndpoint
DECLARE_INTERFACE_(IWVEndpoint, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVEndpoint */
    STDMETHOD(Modify)(THIS_ DWORD Option, const VOID *pOptionData, SIZE_T OptionLength) PURE;
    STDMETHOD(BindAddress)(THIS_ SOCKADDR *pAddress) PURE;
    STDMETHOD(Listen)(THIS_ SIZE_T Backlog) PURE;
    STDMETHOD(Reject)(THIS_ const VOID *pUserData, SIZE_T UserDataLength) PURE;
};
/* clang-format on */

/* IWVConnectEndpoint : IWVEndpoint */
/* clang-format off */
DEFINE_GUID(IID_IWVConnectEndpoint, 0x8fda0ee7, 0xe7f7, 0x48cc, 0x83, 0xd3, 0x17, 0xe9, 0xc8, 0x71, 0xfe, 0xa3);
#undef INTERFACE
#define INTERFACE IWVConnectEndpoint
DECLARE_INTERFACE_(IWVConnectEndpoint, IWVEndpoint)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVEndpoint */
    IFACEMETHOD(Modify)(THIS_ DWORD Option, const VOID *pOptionData, SIZE_T OptionLength) PURE;
    IFACEMETHOD(BindAddress)(THIS_ SOCKADDR *pAddress) PURE;
    IFACEMETHOD(Listen)(THIS_ SIZE_T Backlog) PURE;
    IFACEMETHOD(Reject)(THIS_ const VOID *pUserData, SIZE_T UserDataLength) PURE;
    /* IWVConnectEndpoint */
    STDMETHOD(GetRequest)(THIS_ IWVConnectEndpoint *pEndpoint, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Connect)(THIS_ IWVConnectQueuePair *pQp, const SOCKADDR *pAddress, WV_CONNECT_PARAM *pParam, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Accept)(THIS_ IWVConnectQueuePair *pQp, WV_CONNECT_PARAM *pParam, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Disconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(NotifyDisconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Query)(THIS_ WV_CONNECT_ATTRIBUTES *pAttributes) PURE;
};
/* clang-format on */

/* IWVDatagramEndpoint : IWVEndpoint */
/* clang-format off */
DEFINE_GUID(IID_IWVDatagramEndpoint, 0x1d879de6, 0xf2af, 0x4a8a, 0x88, 0x93, 0x52, 0xe0, 0xab, 0x86, 0x81, 0x30);
#undef INTERFACE
#define INTERFACE IWVDatagramEndpoint
DECLARE_INTERFACE_(IWVDatagramEndpoint, IWVEndpoint)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVEndpoint */
    IFACEMETHOD(Modify)(THIS_ DWORD Option, const VOID *pOptionData, SIZE_T OptionLength) PURE;
    IFACEMETHOD(BindAddress)(THIS_ SOCKADDR *pAddress) PURE;
    IFACEMETHOD(Listen)(THIS_ SIZE_T Backlog) PURE;
    IFACEMETHOD(Reject)(THIS_ const VOID *pUserData, SIZE_T UserDataLength) PURE;
    /* IWVDatagramEndpoint */
    STDMETHOD(GetRequest)(THIS_ IWVDatagramEndpoint *pEndpoint, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Lookup)(THIS_ const SOCKADDR *pAddress, const VOID *pUserData, SIZE_T UserDataLength, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Accept)(THIS_ WV_DATAGRAM_PARAM *pParam, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(JoinMulticast)(THIS_ const SOCKADDR *pAddress, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(LeaveMulticast)(THIS_ const SOCKADDR *pAddress, OVERLAPPED *pOverlapped) PURE;
    STDMETHOD(Query)(THIS_ WV_DATAGRAM_ATTRIBUTES *pAttributes) PURE;
};
/* clang-format on */

/* IWVDevice : IWVOverlapped */
/* clang-format off */
DEFINE_GUID(IID_IWVDevice, 0x244af78c, 0xb1ac, 0x40e4, 0x98, 0x96, 0x27, 0x1d, 0x58, 0xd5, 0x91, 0xb8);
#undef INTERFACE
#define INTERFACE IWVDevice
DECLARE_INTERFACE_(IWVDevice, IWVOverlapped)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVOverlapped */
    IFACEMETHOD(CancelOverlappedRequests)(THIS) PURE;
    IFACEMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, DWORD *pNumberOfBytesTransferred, BOOL bWait) PURE;
    /* IWVDevice */
    STDMETHOD(Query)(THIS_ WV_DEVICE_ATTRIBUTES *pAttributes) PURE;
    STDMETHOD(QueryPort)(THIS_ UINT8 PortNumber, WV_PORT_ATTRIBUTES *pAttributes) PURE;
    STDMETHOD(QueryGid)(THIS_ UINT8 PortNumber, DWORD Index, WV_GID *pGid) PURE;
    STDMETHOD(FindGid)(THIS_ UINT8 PortNumber, WV_GID *pGid, DWORD *pIndex) PURE;
    STDMETHOD(QueryPkey)(THIS_ UINT8 PortNumber, UINT16 Index, NET16 *pPkey) PURE;
    STDMETHOD(FindPkey)(THIS_ UINT8 PortNumber, NET16 Pkey, UINT16 *pIndex) PURE;
    STDMETHOD(CreateCompletionQueue)(THIS_ SIZE_T *pEntries, IWVCompletionQueue **ppCq) PURE;
    STDMETHOD(AllocateProtectionDomain)(THIS_ IWVProtectionDomain **ppPd) PURE;
    STDMETHOD(Notify)(THIS_ UINT8 PortNumber, OVERLAPPED *pOverlapped, DWORD *pFlags) PURE;
};
/* clang-format on */

/* IWVProvider : IUnknown */
/* clang-format off */
DEFINE_GUID(IID_IWVProvider, 0x75ad0eda, 0x23c9, 0x4687, 0x8f, 0xff, 0xd1, 0xb3, 0x4e, 0x1e, 0xf5, 0xbe);
#undef INTERFACE
#define INTERFACE IWVProvider
DECLARE_INTERFACE_(IWVProvider, IUnknown)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;
    /* IWVProvider */
    STDMETHOD_(HANDLE, GetFileHandle)(THIS) PURE;
    STDMETHOD(QueryDeviceList)(THIS_ NET64 *pGuidList, SIZE_T *pBufferSize) PURE;
    STDMETHOD(QueryDevice)(THIS_ NET64 Guid, WV_DEVICE_ATTRIBUTES *pAttributes) PURE;
    STDMETHOD(TranslateAddress)(THIS_ const SOCKADDR *pAddress, WV_DEVICE_ADDRESS *pDeviceAddress) PURE;
    STDMETHOD(OpenDevice)(THIS_ NET64 Guid, IWVDevice **ppDevice) PURE;
    STDMETHOD(CreateConnectEndpoint)(THIS_ IWVConnectEndpoint **ppConnectEndpoint) PURE;
    STDMETHOD(CreateDatagramEndpoint)(THIS_ IWVDatagramEndpoint **ppDatagramEndpoint) PURE;
};
    /* clang-format on */

#undef INTERFACE

#ifdef __cplusplus
NDV_UUID(IWVOverlapped);
NDV_UUID(IWVCompletionQueue);
NDV_UUID(IWVMemoryWindow);
NDV_UUID(IWVAddressHandle);
NDV_UUID(IWVSharedReceiveQueue);
NDV_UUID(IWVQueuePair);
NDV_UUID(IWVConnectQueuePair);
NDV_UUID(IWVDatagramQueuePair);
NDV_UUID(IWVProtectionDomain);
NDV_UUID(IWVEndpoint);
NDV_UUID(IWVConnectEndpoint);
NDV_UUID(IWVDatagramEndpoint);
NDV_UUID(IWVDevice);
NDV_UUID(IWVProvider);
#pragma GCC diagnostic pop
#endif

/* The way in: only IID_IWVProvider is accepted. WV_SUCCESS with a provider of one reference, E_NOINTERFACE (another IID),
 * WV_NO_MEMORY, WV_INSUFFICIENT_RESOURCES; *ppvObj is NULL on every failure. Any thread. */
NDV_API HRESULT WvGetObject(REFIID riid, LPVOID FAR *ppvObj);

#endif
