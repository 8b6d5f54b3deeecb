/* SPDX-License-Identifier: MIT */
#ifndef __IPHLPAPI_H__
#define __IPHLPAPI_H__

/* Interface numbers. The tables and notifications of IP Helper are not offered: getifaddrs lists addresses. */

#include "winsock2.h"
#include "ifdef.h"
#include <net/if.h>

#endif
