/* SPDX-License-Identifier: MIT */
#ifndef _WS2TCPIP_H_
#define _WS2TCPIP_H_

/* Address text. getaddrinfo, inet_pton and the like are the system's. Source: win32-surface.md section 4.4. */

#include "winsock2.h"

typedef struct addrinfo ADDRINFOA, *PADDRINFOA;

/* 1, 0 if the text is no address of that family, -1 with WSAEAFNOSUPPORT or WSAEFAULT. Any thread. */
NDV_API INT WSAAPI InetPtonA(_In_ INT family, _In_ PCSTR text, _Out_ PVOID address) NDV_SYM(InetPtonA);
NDV_API INT WSAAPI InetPtonW(_In_ INT family, _In_ PCWSTR text, _Out_ PVOID address) NDV_SYM(InetPtonW);

/* `text`, or NULL with WSAEAFNOSUPPORT or WSA_INVALID_PARAMETER (`size`, in characters, too small). */
NDV_API PCSTR WSAAPI InetNtopA(_In_ INT family, _In_ const VOID *address, _Out_ PSTR text, _In_ size_t size)
    NDV_SYM(InetNtopA);
NDV_API PCWSTR WSAAPI InetNtopW(_In_ INT family, _In_ const VOID *address, _Out_ PWSTR text, _In_ size_t size)
    NDV_SYM(InetNtopW);

#ifdef UNICODE
#define InetPton InetPtonW
#define InetNtop InetNtopW
#else
#define InetPton InetPtonA
#define InetNtop InetNtopA
#endif

#endif
