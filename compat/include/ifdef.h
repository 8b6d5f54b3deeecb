/* SPDX-License-Identifier: MIT */
#ifndef _IFDEF_
#define _IFDEF_

#include "winnt.h"

/* Interface identifiers: types only. */
typedef union _NET_LUID_LH {
    ULONG64 Value;
} NET_LUID_LH, *PNET_LUID_LH, NET_LUID, *PNET_LUID, IF_LUID, *PIF_LUID;
typedef ULONG NET_IFINDEX, *PNET_IFINDEX, IF_INDEX;

#endif
