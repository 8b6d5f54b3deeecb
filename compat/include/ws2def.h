/* SPDX-License-Identifier: MIT */
#ifndef _WS2DEF_
#define _WS2DEF_

/* Socket types. The structures are the system's: port and addresses lie as on Windows; only AF_INET6 has another value.
 * The Winsock spellings of address members (S_un, u.Byte) are not offered: a macro of such a name would rewrite
 * unrelated code. Source: win32-surface.md section 2, ndspi.md section 1.2. */

#include "ndvcompat/socket_bind.h"
#include <netinet/in.h>

#include "winnt.h"

typedef sa_family_t ADDRESS_FAMILY;

typedef struct sockaddr SOCKADDR, *PSOCKADDR, *LPSOCKADDR;
typedef struct sockaddr_in SOCKADDR_IN, *PSOCKADDR_IN, *LPSOCKADDR_IN;
typedef struct sockaddr_storage SOCKADDR_STORAGE, *PSOCKADDR_STORAGE, *LPSOCKADDR_STORAGE, SOCKADDR_STORAGE_LH;
typedef struct in_addr IN_ADDR, *PIN_ADDR, *LPIN_ADDR;

typedef struct _SOCKET_ADDRESS {
    LPSOCKADDR lpSockaddr;
    INT iSockaddrLength;
} SOCKET_ADDRESS, *PSOCKET_ADDRESS, *LPSOCKET_ADDRESS;

/* iAddressCount entries; whoever fills the list puts the socket addresses behind them, in the same buffer. */
typedef struct _SOCKET_ADDRESS_LIST {
    INT iAddressCount;
    SOCKET_ADDRESS Address[1];
} SOCKET_ADDRESS_LIST, *PSOCKET_ADDRESS_LIST, *LPSOCKET_ADDRESS_LIST;

#endif
