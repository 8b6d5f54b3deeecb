/* SPDX-License-Identifier: MIT */
#ifndef _NDDEF_H_
#define _NDDEF_H_

/* Constants of both versions of the Network Direct SPI and the structures of version 2.
 * Source: ndspi-v2.md sections 1 and 2. */

#include <windef.h>

#define ND_VERSION_1 0x1
#define ND_VERSION_2 0x20000

#ifndef NDVER
#define NDVER ND_VERSION_2
#endif

/* ND2_ADAPTER_INFO.AdapterFlags */
#define ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED            0x00000001 /* payload lands in memory in address order */
#define ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED 0x00000004
#define ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED            0x00000008 /* completion queues progress in parallel */
#define ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED               0x00000100
#define ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED    0x00010000

/* Types of Notify on a completion queue. ANY: the next completion; SOLICITED: a receive of a solicited Send, or a failed
 * completion; ERRORS: only that the queue overran or came to its end, which completes the others too. */
#define ND_CQ_NOTIFY_ERRORS    0
#define ND_CQ_NOTIFY_ANY       1
#define ND_CQ_NOTIFY_SOLICITED 2

/* Register. None set: the adapter reads the memory only. */
#define ND_MR_FLAG_ALLOW_LOCAL_WRITE  0x00000001
#define ND_MR_FLAG_ALLOW_REMOTE_READ  0x00000002
#define ND_MR_FLAG_ALLOW_REMOTE_WRITE 0x00000005 /* remote write, and local write with it */
#define ND_MR_FLAG_RDMA_READ_SINK     0x00000008 /* destination of Reads: iWARP needs to know */
#define ND_MR_FLAG_DO_NOT_SECURE_VM   0x80000000 /* no effect here */

/* Work requests */
#define ND_OP_FLAG_SILENT_SUCCESS         0x00000001 /* no result if the request succeeds */
#define ND_OP_FLAG_READ_FENCE             0x00000002 /* starts after the earlier Reads of the queue pair */
#define ND_OP_FLAG_SEND_AND_SOLICIT_EVENT 0x00000004 /* satisfies the receiver's SOLICITED */
#define ND_OP_FLAG_ALLOW_READ             0x00000008 /* Bind */
#define ND_OP_FLAG_ALLOW_WRITE            0x00000010 /* Bind */
#if NDVER >= ND_VERSION_2
#define ND_OP_FLAG_INLINE 0x00000020 /* Send, Write: the data is copied at once, tokens are ignored */
#endif

/* Limits of an adapter. The caller sets InfoVersion to 1 or ND_VERSION_2 before Query. Each limit holds for itself and
 * together with the others; memory may still run out earlier. 96 bytes, 88 on 32-bit. */
typedef struct _ND2_ADAPTER_INFO {
    ULONG InfoVersion;
    UINT16 VendorId;
    UINT16 DeviceId;
    UINT64 AdapterId; /* as from IND2Provider::ResolveAddress */
    SIZE_T MaxRegistrationSize;
    SIZE_T MaxWindowSize;
    ULONG MaxInitiatorSge; /* entries per Send or Write */
    ULONG MaxReceiveSge;
    ULONG MaxReadSge;
    ULONG MaxTransferLength;    /* bytes per request */
    ULONG MaxInlineDataSize;    /* bytes per request */
    ULONG MaxInboundReadLimit;  /* Reads of the peer in progress */
    ULONG MaxOutboundReadLimit; /* own Reads in progress */
    ULONG MaxReceiveQueueDepth;
    ULONG MaxInitiatorQueueDepth;
    ULONG MaxSharedReceiveQueueDepth; /* 0: none */
    ULONG MaxCompletionQueueDepth;
    ULONG InlineRequestThreshold; /* below, inline is faster */
    ULONG LargeRequestThreshold;  /* above, Read and Write beat Send and Receive */
    ULONG MaxCallerData;          /* private data of Connect, bytes */
    ULONG MaxCalleeData;          /* of Accept and Reject */
    ULONG AdapterFlags;
} ND2_ADAPTER_INFO, *PND2_ADAPTER_INFO;

/* The same for 32-bit callers of a 64-bit kernel: 88 bytes everywhere. */
typedef struct _ND2_ADAPTER_INFO32 {
    ULONG InfoVersion;
    UINT16 VendorId;
    UINT16 DeviceId;
    UINT64 AdapterId;
    ULONG MaxRegistrationSize;
    ULONG MaxWindowSize;
    ULONG MaxInitiatorSge;
    ULONG MaxReceiveSge;
    ULONG MaxReadSge;
    ULONG MaxTransferLength;
    ULONG MaxInlineDataSize;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxReceiveQueueDepth;
    ULONG MaxInitiatorQueueDepth;
    ULONG MaxSharedReceiveQueueDepth;
    ULONG MaxCompletionQueueDepth;
    ULONG InlineRequestThreshold;
    ULONG LargeRequestThreshold;
    ULONG MaxCallerData;
    ULONG MaxCalleeData;
    ULONG AdapterFlags;
} ND2_ADAPTER_INFO32, *PND2_ADAPTER_INFO32;

typedef enum _ND2_REQUEST_TYPE {
    Nd2RequestTypeReceive = 0,
    Nd2RequestTypeSend = 1,
    Nd2RequestTypeBind = 2,
    Nd2RequestTypeInvalidate = 3,
    Nd2RequestTypeRead = 4,
    Nd2RequestTypeWrite = 5
} ND2_REQUEST_TYPE;

/* One finished request. The contexts and the type are right on failure too; BytesTransferred is set for Receive only. */
typedef struct _ND2_RESULT {
    HRESULT Status;
    ULONG BytesTransferred;
    VOID *QueuePairContext;
    VOID *RequestContext;
    ND2_REQUEST_TYPE RequestType;
} ND2_RESULT;

/* One piece of a request's data; the token is a local one (IND2MemoryRegion::GetLocalToken), ignored for inline. */
typedef struct _ND2_SGE {
    VOID *Buffer;
    ULONG BufferLength;
    UINT32 MemoryRegionToken;
} ND2_SGE;

#endif
