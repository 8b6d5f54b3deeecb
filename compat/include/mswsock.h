/* SPDX-License-Identifier: MIT */
#ifndef _MSWSOCK_
#define _MSWSOCK_

/* Microsoft's extensions of Winsock. None is offered (AcceptEx, ConnectEx, ...): sockets are the system's. */

#include "winsock2.h"

#endif
