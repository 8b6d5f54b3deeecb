/* SPDX-License-Identifier: MIT */
#ifndef _WS2IPDEF_
#define _WS2IPDEF_

#include "ws2def.h"

typedef struct sockaddr_in6 SOCKADDR_IN6, *PSOCKADDR_IN6, *LPSOCKADDR_IN6;
typedef struct in6_addr IN6_ADDR, *PIN6_ADDR, *LPIN6_ADDR;

typedef union _SOCKADDR_INET {
    SOCKADDR_IN Ipv4;
    SOCKADDR_IN6 Ipv6;
    ADDRESS_FAMILY si_family;
} SOCKADDR_INET, *PSOCKADDR_INET;

#endif
