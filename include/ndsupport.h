/* SPDX-License-Identifier: MIT */
#ifndef _NETDIRECT_H_
#define _NETDIRECT_H_

/* Helper functions: find and open adapters by address. Any thread. Except for NdStartup they return ND_DEVICE_NOT_READY
 * while nothing has started the library. Sizes are bytes. Source: ndspi-helpers.md section 1. */

#include <ndspi.h>

#define ND_HELPER_API __stdcall

/* For NdQueryAddressList: which addresses to leave out. */
#define ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES 0x00000001 /* accepted, no effect */
#define ND_QUERY_EXCLUDE_NDv1_ADDRESSES     0x00000002
#define ND_QUERY_EXCLUDE_NDv2_ADDRESSES     0x00000004

/* Adds a reference; every success needs one NdCleanup. S_OK, ND_NO_MEMORY, HRESULT_FROM_WIN32 of a system error. */
NDV_API HRESULT ND_HELPER_API NdStartup(VOID);

/* Drops a reference. Objects that are still open stay usable. */
NDV_API HRESULT ND_HELPER_API NdCleanup(VOID);

/* Unloads idle providers; there is one, and it stays. */
NDV_API VOID ND_HELPER_API NdFlushProviders(VOID);

/* All local addresses that can be used, port 0: the list, then the socket addresses, in one buffer. ND_SUCCESS with
 * *pcbAddressList 0 if there are none. ND_BUFFER_OVERFLOW: *pcbAddressList is the needed size (NULL with 0 is legal).
 * Every address serves both versions and comes once, unless both are excluded. */
NDV_API HRESULT ND_HELPER_API NdQueryAddressList(_In_ DWORD flags,
                                                 _Out_writes_bytes_opt_(*pcbAddressList)
                                                     SOCKET_ADDRESS_LIST *pAddressList,
                                                 _Inout_ SIZE_T *pcbAddressList);

/* The local address by which `pRemoteAddress` is reached, port 0. ND_BUFFER_OVERFLOW (needed size), ND_INVALID_ADDRESS
 * (bad argument, or the local address is none of ours), ND_NETWORK_UNREACHABLE, ND_UNSUCCESSFUL. */
NDV_API HRESULT ND_HELPER_API NdResolveAddress(_In_reads_bytes_(cbRemoteAddress) const struct sockaddr *pRemoteAddress,
                                               _In_ SIZE_T cbRemoteAddress,
                                               _Out_writes_bytes_(*pcbLocalAddress) struct sockaddr *pLocalAddress,
                                               _Inout_ SIZE_T *pcbLocalAddress);

/* ND_SUCCESS if this local address can be used, port ignored. ND_INVALID_ADDRESS, ND_INVALID_PARAMETER_2 (size). */
NDV_API HRESULT ND_HELPER_API NdCheckAddress(_In_reads_bytes_(cbAddress) const struct sockaddr *pAddress,
                                             _In_ SIZE_T cbAddress);

/* A new adapter object for a local address: IID_INDAdapter for version 1, any other id is asked of version 2.
 * ND_INVALID_PARAMETER_2, ND_INVALID_ADDRESS, E_NOINTERFACE, or what opening the adapter gave. */
NDV_API HRESULT ND_HELPER_API NdOpenAdapter(_In_ REFIID iid,
                                            _In_reads_bytes_(cbAddress) const struct sockaddr *pAddress,
                                            _In_ SIZE_T cbAddress, _Outptr_ VOID **ppIAdapter);

NDV_API HRESULT ND_HELPER_API NdOpenV1Adapter(_In_reads_bytes_(cbAddress) const struct sockaddr *pAddress,
                                              _In_ SIZE_T cbAddress, _Outptr_ INDAdapter **ppIAdapter);

#endif
