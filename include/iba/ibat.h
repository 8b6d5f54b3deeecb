/* SPDX-License-Identifier: MIT */
/* InfiniBand address translation of WinOF: how a WinVerbs application finds the path between two IP addresses, which it
 * gives to its endpoint before it connects. Source: winverbs.md section 8.3; the record: iba-cm.md section 2.4. */
#ifndef _IBAT_H_
#define _IBAT_H_

#include <winsock2.h>
#include <rdma/wvstatus.h>

/* For IWVEndpoint::Modify(WV_EP_OPTION_ROUTE). The bytes are an ib_path_rec_t (iba/ib_types.h): copy them into one to
 * look at them. */
typedef struct _IBAT_PATH_BLOB {
    UINT8 byte[64];
} IBAT_PATH_BLOB;

/* The path from a local RDMA address to a remote address, found by the kernel as for Connect; ports are not looked at.
 * Blocks, about as long as Connect would until it sends its request (NDVERBS_RESOLVE_TIMEOUT_MS for the address, and again
 * for the route). Nothing is kept: *pPath, the caller's, has it all. It is all zeros without WV_SUCCESS, and on iWARP,
 * which has no path records.
 *
 * WV_SUCCESS. WV_INVALID_PARAMETER: a pointer is NULL. WV_INVALID_ADDRESS: neither IPv4 nor IPv6, or pLocalAddress is of
 * no RDMA device (as are the wildcard and loopback addresses). WV_HOST_UNREACHABLE: no route, nobody answers there, or the
 * two are of different families. WV_TIMEOUT, as Connect completes: nobody answers about the route; SUCCEEDED() is true of
 * it. WV_ADDRESS_ALREADY_EXISTS: no local port is free. WV_INSUFFICIENT_RESOURCES. WV_NOT_INITIALIZED: the connection
 * manager cannot be opened. WV_DEVICE_REMOVED: the device went, or a forked child. Any thread. */
NDV_API HRESULT IbatQueryPath(const SOCKADDR *pLocalAddress, const SOCKADDR *pRemoteAddress, IBAT_PATH_BLOB *pPath);

#ifdef __cplusplus
extern "C++" {
namespace IBAT
{
/* The same by its C++ name. */
inline HRESULT QueryPath(const SOCKADDR *pLocalAddress, const SOCKADDR *pRemoteAddress, IBAT_PATH_BLOB *pPath)
{
    return IbatQueryPath(pLocalAddress, pRemoteAddress, pPath);
}
} // namespace IBAT
}
#endif

#endif
