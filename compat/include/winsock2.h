/* SPDX-License-Identifier: MIT */
#ifndef _WINSOCK2API_
#define _WINSOCK2API_

/* Sockets: the system's types and calls (htons, getaddrinfo, ...) plus what only Winsock has.
 * Source: win32-surface.md sections 2 and 4.4.
 *
 * accept, bind, connect, gethostname, getpeername, getsockname, getsockopt, listen, recv, recvfrom, select, send, sendto,
 * setsockopt, shutdown and socket are the system's calls with Winsock's behaviour, in sources that have not included <sys/socket.h>
 * before (ndvcompat/socket_bind.h). A call that fails sets the last error to Winsock's code, besides errno. Then:
 * - connect on a socket that does not block: WSAEWOULDBLOCK while it is under way (errno EINPROGRESS).
 * - A receive, send or accept whose time is up (SO_RCVTIMEO, SO_SNDTIMEO): WSAETIMEDOUT. The two options are a DWORD of
 *   milliseconds; a struct timeval, known by its size, is taken too.
 * - A datagram longer than the buffer: WSAEMSGSIZE, with the buffer filled.
 * - accept on a listening socket that another thread closes: WSAEINTR. The new socket blocks if the listener does.
 * - send never raises SIGPIPE.
 * - A socket of AF_INET6 takes and reaches IPv6 alone, unless IPV6_V6ONLY is set to 0.
 * - select does not use its first argument, leaves the time as it was and goes on after a signal; no socket in any set:
 *   WSAEINVAL. A connect that failed is in the third set and not in the second, if the third has the socket.
 * - bind takes a port over connections that a listener has left behind: listen sets SO_REUSEADDR, which then shows.
 * - SO_ERROR is Winsock's code; SO_EXCLUSIVEADDRUSE is accepted and has no effect: it is how the system binds anyway.
 * - gethostname: WSAEFAULT for a buffer that is too small.
 * In C++ a length may be an int and the time of select const, as they are on Windows. Any thread. */

#include "ndvcompat/socket_bind.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "windows.h"
#include "ws2def.h"
#include "ws2ipdef.h"

/* A file descriptor. Windows has an unsigned type of pointer width; code that prints or stores it as such still works. */
typedef int SOCKET;
#define INVALID_SOCKET ((SOCKET)-1)
#define SOCKET_ERROR   (-1)

#define SD_RECEIVE SHUT_RD
#define SD_SEND    SHUT_WR
#define SD_BOTH    SHUT_RDWR

#define SO_EXCLUSIVEADDRUSE (~SO_REUSEADDR)

typedef struct hostent HOSTENT, *PHOSTENT, *LPHOSTENT;
typedef struct timeval TIMEVAL, *PTIMEVAL, *LPTIMEVAL;
typedef fd_set FD_SET, *PFD_SET, *LPFD_SET;
typedef OVERLAPPED WSAOVERLAPPED, *LPWSAOVERLAPPED;
typedef HANDLE WSAEVENT;

#define WSADESCRIPTION_LEN 256
#define WSASYS_STATUS_LEN  128

typedef struct WSAData {
    WORD wVersion;
    WORD wHighVersion;
    USHORT iMaxSockets;
    USHORT iMaxUdpDg;
    CHAR *lpVendorInfo;
    CHAR szDescription[WSADESCRIPTION_LEN + 1];
    CHAR szSystemStatus[WSASYS_STATUS_LEN + 1];
} WSADATA, *LPWSADATA;

#define MAX_PROTOCOL_CHAIN 7
#define WSAPROTOCOL_LEN    255

typedef struct _WSAPROTOCOLCHAIN {
    int ChainLen;
    DWORD ChainEntries[MAX_PROTOCOL_CHAIN];
} WSAPROTOCOLCHAIN, *LPWSAPROTOCOLCHAIN;

/* One entry of the provider catalogue; the W form is larger than on Windows, because wchar_t is. */
typedef struct _WSAPROTOCOL_INFOA {
    DWORD dwServiceFlags1;
    DWORD dwServiceFlags2;
    DWORD dwServiceFlags3;
    DWORD dwServiceFlags4;
    DWORD dwProviderFlags;
    GUID ProviderId;
    DWORD dwCatalogEntryId;
    WSAPROTOCOLCHAIN ProtocolChain;
    int iVersion;
    int iAddressFamily;
    int iMaxSockAddr;
    int iMinSockAddr;
    int iSocketType;
    int iProtocol;
    int iProtocolMaxOffset;
    int iNetworkByteOrder;
    int iSecurityScheme;
    DWORD dwMessageSize;
    DWORD dwProviderReserved;
    CHAR szProtocol[WSAPROTOCOL_LEN + 1];
} WSAPROTOCOL_INFOA, *LPWSAPROTOCOL_INFOA;

typedef struct _WSAPROTOCOL_INFOW {
    DWORD dwServiceFlags1;
    DWORD dwServiceFlags2;
    DWORD dwServiceFlags3;
    DWORD dwServiceFlags4;
    DWORD dwProviderFlags;
    GUID ProviderId;
    DWORD dwCatalogEntryId;
    WSAPROTOCOLCHAIN ProtocolChain;
    int iVersion;
    int iAddressFamily;
    int iMaxSockAddr;
    int iMinSockAddr;
    int iSocketType;
    int iProtocol;
    int iProtocolMaxOffset;
    int iNetworkByteOrder;
    int iSecurityScheme;
    DWORD dwMessageSize;
    DWORD dwProviderReserved;
    WCHAR szProtocol[WSAPROTOCOL_LEN + 1];
} WSAPROTOCOL_INFOW, *LPWSAPROTOCOL_INFOW;

#define XP1_CONNECTIONLESS      0x00000001
#define XP1_GUARANTEED_DELIVERY 0x00000002
#define XP1_GUARANTEED_ORDER    0x00000004
#define XP1_MESSAGE_ORIENTED    0x00000008
#define XP1_PSEUDO_STREAM       0x00000010
#define XP1_CONNECT_DATA        0x00000080

#define PFL_MULTIPLE_PROTO_ENTRIES 0x00000001
#define PFL_HIDDEN                 0x00000004
#define PFL_NETWORKDIRECT_PROVIDER 0x00000010

/* Fills *data with version 2.2 and counts. 0, or WSAVERNOTSUPPORTED for version 0, WSAEFAULT for NULL. Nothing in this
 * library depends on it having been called. Any thread. */
NDV_API int WSAAPI WSAStartup(_In_ WORD version, _Out_ LPWSADATA data) NDV_SYM(WSAStartup);
/* 0, or SOCKET_ERROR with WSANOTINITIALISED. */
NDV_API int WSAAPI WSACleanup(void) NDV_SYM(WSACleanup);

/* The calling thread's last error: the same cell as GetLastError. */
NDV_API int WSAAPI WSAGetLastError(void) NDV_SYM(WSAGetLastError);
NDV_API VOID WSAAPI WSASetLastError(_In_ int error) NDV_SYM(WSASetLastError);

/* "1.2.3.4", "1.2.3.4:port", "fe80::1%eth0", "[fe80::1%eth0]:port" to a socket address of that family. 0, or
 * SOCKET_ERROR with WSAEINVAL (text), WSAEFAULT (*length too short: set to what is needed). `info` is ignored. */
NDV_API INT WSAAPI WSAStringToAddressA(_In_ LPSTR text, _In_ INT family, _In_opt_ LPWSAPROTOCOL_INFOA info,
                                       _Out_ LPSOCKADDR address, _Inout_ LPINT length) NDV_SYM(WSAStringToAddressA);
NDV_API INT WSAAPI WSAStringToAddressW(_In_ LPWSTR text, _In_ INT family, _In_opt_ LPWSAPROTOCOL_INFOW info,
                                       _Out_ LPSOCKADDR address, _Inout_ LPINT length) NDV_SYM(WSAStringToAddressW);

/* The reverse; the port is written unless it is 0. *text_length counts characters including the terminator, in and out.
 * 0, or SOCKET_ERROR with WSAEFAULT (too short: set to what is needed), WSAEINVAL. */
NDV_API INT WSAAPI WSAAddressToStringA(_In_ LPSOCKADDR address, _In_ DWORD address_length,
                                       _In_opt_ LPWSAPROTOCOL_INFOA info, _Out_ LPSTR text, _Inout_ LPDWORD text_length)
    NDV_SYM(WSAAddressToStringA);
NDV_API INT WSAAPI WSAAddressToStringW(_In_ LPSOCKADDR address, _In_ DWORD address_length,
                                       _In_opt_ LPWSAPROTOCOL_INFOW info, _Out_ LPWSTR text,
                                       _Inout_ LPDWORD text_length) NDV_SYM(WSAAddressToStringW);

/* close and ioctl (FIONBIO, FIONREAD) with Winsock's error codes; errno stays as it was. Threads that wait in accept, recv or
 * select for the socket return. */
NDV_API int WSAAPI closesocket(_In_ SOCKET socket) NDV_SYM(closesocket);
NDV_API int WSAAPI ioctlsocket(_In_ SOCKET socket, _In_ int command, _Inout_ ULONG *argument) NDV_SYM(ioctlsocket);

/* The argument is an u_long on Windows, which is an unsigned long here. */
static inline int ndv_long_ioctlsocket(SOCKET socket, int command, unsigned long *argument)
{
    ULONG value = command != (int)FIONREAD && argument && *argument;
    int result = ioctlsocket(socket, command, argument ? &value : NULL);

    if (result == 0 && command == (int)FIONREAD)
        *argument = value;
    return result;
}
#ifdef __cplusplus
extern "C++" {
template <typename T>
static inline typename ndv_only<T, unsigned long>::type ioctlsocket(SOCKET socket, int command, T *argument)
{
    return ndv_long_ioctlsocket(socket, command, argument);
}
}
#else
#define ioctlsocket(socket, command, argument) \
    _Generic((argument), unsigned long * : ndv_long_ioctlsocket, default : ioctlsocket)((socket), (command), (argument))
#endif

typedef unsigned int GROUP;
#define FROM_PROTOCOL_INFO         (-1)
#define WSA_FLAG_OVERLAPPED        0x01
#define WSA_FLAG_NO_HANDLE_INHERIT 0x80

/* socket(), or INVALID_SOCKET with its error as a Winsock code. A value of FROM_PROTOCOL_INFO is taken from *info; the flags
 * have no effect. Any thread. */
NDV_API SOCKET WSAAPI WSASocketA(_In_ int family, _In_ int type, _In_ int protocol, _In_opt_ LPWSAPROTOCOL_INFOA info,
                                 _In_ GROUP group, _In_ DWORD flags) NDV_SYM(WSASocketA);
NDV_API SOCKET WSAAPI WSASocketW(_In_ int family, _In_ int type, _In_ int protocol, _In_opt_ LPWSAPROTOCOL_INFOW info,
                                 _In_ GROUP group, _In_ DWORD flags) NDV_SYM(WSASocketW);

/* Codes of WSAIoctl besides FIONBIO and FIONREAD. */
#define IOC_WS2                      0x08000000
#define _WSAIO(group, code)          (0x20000000 | (group) | (code))
#define _WSAIOR(group, code)         (0x40000000 | (group) | (code))
#define _WSAIOW(group, code)         (0x80000000 | (group) | (code))
#define _WSAIORW(group, code)        (0xC0000000 | (group) | (code))
#define SIO_ROUTING_INTERFACE_QUERY  _WSAIORW(IOC_WS2, 20)
#define SIO_ROUTING_INTERFACE_CHANGE _WSAIOW(IOC_WS2, 21)
#define SIO_ADDRESS_LIST_QUERY       _WSAIOR(IOC_WS2, 22)
#define SIO_ADDRESS_LIST_CHANGE      _WSAIO(IOC_WS2, 23)

typedef VOID(WSAAPI *LPWSAOVERLAPPED_COMPLETION_ROUTINE)(DWORD error, DWORD bytes, LPWSAOVERLAPPED overlapped,
                                                         DWORD flags);

/* ADDRESS_LIST_QUERY: a SOCKET_ADDRESS_LIST of the local addresses of the socket's family, those of the loopback interface
 * left out. ROUTING_INTERFACE_QUERY: the local address by which the given one is reached, port 0. 0, or SOCKET_ERROR with
 * WSAEFAULT (buffer too small: *bytes is what is needed), WSAENOTSOCK, WSAEOPNOTSUPP (another code, a completion routine), or
 * a network error. A call with an OVERLAPPED that succeeds completes it as well; ADDRESS_LIST_CHANGE and
 * ROUTING_INTERFACE_CHANGE need one, return WSA_IO_PENDING and complete with WSA_OPERATION_ABORTED when the socket is closed:
 * changes are not reported. Any thread. */
NDV_API int WSAAPI WSAIoctl(_In_ SOCKET socket, _In_ DWORD code, _In_opt_ LPVOID in, _In_ DWORD in_size,
                            _Out_opt_ LPVOID out, _In_ DWORD out_size, _Out_ LPDWORD bytes,
                            _Inout_opt_ LPWSAOVERLAPPED overlapped, _In_opt_ LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
    NDV_SYM(WSAIoctl);

/* GetOverlappedResult for those requests; *flags becomes 0. */
NDV_API BOOL WSAAPI WSAGetOverlappedResult(_In_ SOCKET socket, _In_ LPWSAOVERLAPPED overlapped, _Out_ LPDWORD bytes,
                                           _In_ BOOL wait, _Out_ LPDWORD flags) NDV_SYM(WSAGetOverlappedResult);

/* Notification of changes of the provider catalogue, of which there are none: *notification (NULL before the first call) is
 * a handle for CloseHandle. 0, or SOCKET_ERROR with WSA_IO_PENDING for a request with an OVERLAPPED, which completes with
 * WSA_OPERATION_ABORTED when the handle is closed; WSA_INVALID_HANDLE if it is none of these. */
NDV_API int WSAAPI WSAProviderConfigChange(_Inout_ LPHANDLE notification, _Inout_opt_ LPWSAOVERLAPPED overlapped,
                                           _In_opt_ LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
    NDV_SYM(WSAProviderConfigChange);

#ifdef UNICODE
#define WSASocket WSASocketW
typedef WSAPROTOCOL_INFOW WSAPROTOCOL_INFO, *LPWSAPROTOCOL_INFO;
#define WSAStringToAddress WSAStringToAddressW
#define WSAAddressToString WSAAddressToStringW
#else
#define WSASocket          WSASocketA
typedef WSAPROTOCOL_INFOA WSAPROTOCOL_INFO, *LPWSAPROTOCOL_INFO;
#define WSAStringToAddress WSAStringToAddressA
#define WSAAddressToString WSAAddressToStringA
#endif

#endif
