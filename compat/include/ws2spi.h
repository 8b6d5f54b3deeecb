/* SPDX-License-Identifier: MIT */
#ifndef _WINSOCK2SPI_
#define _WINSOCK2SPI_

/* The provider catalogue: this library has one hidden entry of Network Direct for each address family. Any thread.
 * Source: win32-surface.md section 6.9. */

#include "winsock2.h"

/* All entries if `protocols` is NULL, else those of the protocol numbers in it, of which there are none. Returns their
 * number; SOCKET_ERROR with *error WSAENOBUFS (*length, in bytes, is set to what is needed) or WSAEFAULT. */
NDV_API int WSPAPI WSCEnumProtocols(_In_opt_ LPINT protocols, _Out_ LPWSAPROTOCOL_INFOW buffer, _Inout_ LPDWORD length,
                                    _Out_ LPINT error) NDV_SYM(WSCEnumProtocols);

/* The file of an entry's provider, for LoadLibrary; *length counts characters with the terminator. 0, or SOCKET_ERROR with
 * *error WSAEINVAL (no such provider), WSAEFAULT (too short: *length is set to what is needed). */
NDV_API int WSPAPI WSCGetProviderPath(_In_ LPGUID provider_id, _Out_ LPWSTR path, _Inout_ LPINT length,
                                      _Out_ LPINT error) NDV_SYM(WSCGetProviderPath);

#endif
