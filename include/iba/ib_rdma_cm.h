/* SPDX-License-Identifier: MIT */
#ifndef _IB_RDMA_CM_H_
#define _IB_RDMA_CM_H_

/* The IP addressing annex as WinVerbs sees it; the same bytes as ib_cm_rdma_req_t of ib_types.h. Source: iba-cm.md 2.5. */

#include "ib_types.h"

#define IB_CMA_VERSION             0x00
#define IB_CMA_SERVICE_ID          NDV_NET64(0x0000000001000000ull)
#define IB_CMA_SERVICE_ID_MASK     NDV_NET64(0xFFFFFFFFFF000000ull)
#define IB_CMA_CM_RESPONSE_TIMEOUT 20
#define IB_CMA_MAX_CM_RETRIES      15

typedef union _IB_CMA_IP_ADDRESS {
    UINT8 Ip6Address[16];
    struct {
        UINT32 Pad[3];
        UINT32 Address;
    } Ip4;
} IB_CMA_IP_ADDRESS;

typedef struct _IB_CMA_HEADER {
    UINT8 CmaVersion;
    UINT8 IpVersion; /* in bits 7:4 */
    UINT16 Port;     /* source port, network byte order */
    IB_CMA_IP_ADDRESS SrcAddress;
    IB_CMA_IP_ADDRESS DstAddress;
} IB_CMA_HEADER;

#endif
