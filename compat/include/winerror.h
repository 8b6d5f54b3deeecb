/* SPDX-License-Identifier: MIT */
#ifndef _WINERROR_
#define _WINERROR_

/* Win32, Winsock and HRESULT codes. Winsock codes are 10000 plus the BSD number and no errno values. HRESULTs are cast
 * to a signed 32-bit type inside of the macro: the bare literal would be a positive 64-bit constant here.
 * Source: win32-surface.md section 5, ndspi-status.md section 2. */

#include "windef.h"

#define SUCCEEDED(hr)        ((HRESULT)(hr) >= 0)
#define FAILED(hr)           ((HRESULT)(hr) < 0)
#define IS_ERROR(status)     ((ULONG)(status) >> 31 == 1)
#define HRESULT_CODE(hr)     ((hr)&0xFFFF)
#define HRESULT_FACILITY(hr) (((hr) >> 16) & 0x1FFF)
#define HRESULT_SEVERITY(hr) (((hr) >> 31) & 1)
#define MAKE_HRESULT(severity, facility, code) \
    ((HRESULT)((ULONG)(severity) << 31 | (ULONG)(facility) << 16 | (ULONG)(code)))
#define FACILITY_NULL    0
#define FACILITY_WIN32   7
#define FACILITY_NT_BIT  0x10000000
#define SEVERITY_SUCCESS 0
#define SEVERITY_ERROR   1

/* Values that are no positive Win32 code, HRESULTs among them, stay as they are. */
static inline HRESULT HRESULT_FROM_WIN32(ULONG code)
{
    return (HRESULT)code <= 0 ? (HRESULT)code : (HRESULT)((code & 0xFFFF) | FACILITY_WIN32 << 16 | 0x80000000);
}
#define HRESULT_FROM_NT(status) ((HRESULT)((status) | FACILITY_NT_BIT))

#define S_OK    ((HRESULT)0x00000000)
#define S_FALSE ((HRESULT)0x00000001)
#ifndef NOERROR
#define NOERROR ((HRESULT)0x00000000)
#endif
#define E_UNEXPECTED              ((HRESULT)0x8000FFFF)
#define E_NOTIMPL                 ((HRESULT)0x80004001)
#define E_NOINTERFACE             ((HRESULT)0x80004002)
#define E_POINTER                 ((HRESULT)0x80004003)
#define E_ABORT                   ((HRESULT)0x80004004)
#define E_FAIL                    ((HRESULT)0x80004005)
#define E_ACCESSDENIED            ((HRESULT)0x80070005)
#define E_HANDLE                  ((HRESULT)0x80070006)
#define E_OUTOFMEMORY             ((HRESULT)0x8007000E)
#define E_INVALIDARG              ((HRESULT)0x80070057)
#define CLASS_E_NOAGGREGATION     ((HRESULT)0x80040110)
#define CLASS_E_CLASSNOTAVAILABLE ((HRESULT)0x80040111)
#define CO_E_CLASSSTRING          ((HRESULT)0x800401F3)

#define NO_ERROR                         0
#define ERROR_SUCCESS                    0
#define ERROR_INVALID_FUNCTION           1
#define ERROR_FILE_NOT_FOUND             2
#define ERROR_PATH_NOT_FOUND             3
#define ERROR_ACCESS_DENIED              5
#define ERROR_INVALID_HANDLE             6
#define ERROR_NOT_ENOUGH_MEMORY          8
#define ERROR_INVALID_ACCESS             12
#define ERROR_INVALID_DATA               13
#define ERROR_OUTOFMEMORY                14
#define ERROR_NOT_READY                  21
#define ERROR_BAD_COMMAND                22
#define ERROR_CRC                        23
#define ERROR_BAD_LENGTH                 24
#define ERROR_GEN_FAILURE                31
#define ERROR_SHARING_VIOLATION          32
#define ERROR_HANDLE_EOF                 38
#define ERROR_NOT_SUPPORTED              50
#define ERROR_REM_NOT_LIST               51
#define ERROR_DUP_NAME                   52
#define ERROR_BAD_NETPATH                53
#define ERROR_UNEXP_NET_ERR              59
#define ERROR_NETNAME_DELETED            64
#define ERROR_BAD_NET_NAME               67
#define ERROR_TOO_MANY_NAMES             68
#define ERROR_REQ_NOT_ACCEP              71
#define ERROR_INVALID_PARAMETER          87
#define ERROR_CALL_NOT_IMPLEMENTED       120
#define ERROR_SEM_TIMEOUT                121
#define ERROR_INSUFFICIENT_BUFFER        122
#define ERROR_MOD_NOT_FOUND              126
#define ERROR_PROC_NOT_FOUND             127
#define ERROR_BUSY                       170
#define ERROR_ALREADY_EXISTS             183
#define ERROR_ENVVAR_NOT_FOUND           203
#define ERROR_MORE_DATA                  234
#define ERROR_NO_MORE_ITEMS              259
#define ERROR_MR_MID_NOT_FOUND           317
#define ERROR_ABANDONED_WAIT_0           735
#define ERROR_OPERATION_ABORTED          995
#define ERROR_IO_INCOMPLETE              996
#define ERROR_IO_PENDING                 997
#define ERROR_NOACCESS                   998
#define ERROR_INVALID_FLAGS              1004
#define ERROR_NO_UNICODE_TRANSLATION     1113
#define ERROR_IO_DEVICE                  1117
#define ERROR_NOT_FOUND                  1168
#define ERROR_CANCELLED                  1223
#define ERROR_CONNECTION_REFUSED         1225
#define ERROR_ADDRESS_ALREADY_ASSOCIATED 1227
#define ERROR_CONNECTION_INVALID         1229
#define ERROR_CONNECTION_ACTIVE          1230
#define ERROR_NETWORK_UNREACHABLE        1231
#define ERROR_HOST_UNREACHABLE           1232
#define ERROR_CONNECTION_ABORTED         1236
#define ERROR_INTERNAL_ERROR             1359
#define ERROR_NO_SYSTEM_RESOURCES        1450
#define ERROR_TIMEOUT                    1460
#define ERROR_DEVICE_REMOVED             1617
#define ERROR_INVALID_USER_BUFFER        1784

#define WSAEINTR              10004
#define WSAEBADF              10009
#define WSAEACCES             10013
#define WSAEFAULT             10014
#define WSAEINVAL             10022
#define WSAEMFILE             10024
#define WSAEWOULDBLOCK        10035
#define WSAEINPROGRESS        10036
#define WSAEALREADY           10037
#define WSAENOTSOCK           10038
#define WSAEDESTADDRREQ       10039
#define WSAEMSGSIZE           10040
#define WSAEPROTOTYPE         10041
#define WSAENOPROTOOPT        10042
#define WSAEPROTONOSUPPORT    10043
#define WSAESOCKTNOSUPPORT    10044
#define WSAEOPNOTSUPP         10045
#define WSAEPFNOSUPPORT       10046
#define WSAEAFNOSUPPORT       10047
#define WSAEADDRINUSE         10048
#define WSAEADDRNOTAVAIL      10049
#define WSAENETDOWN           10050
#define WSAENETUNREACH        10051
#define WSAENETRESET          10052
#define WSAECONNABORTED       10053
#define WSAECONNRESET         10054
#define WSAENOBUFS            10055
#define WSAEISCONN            10056
#define WSAENOTCONN           10057
#define WSAESHUTDOWN          10058
#define WSAETOOMANYREFS       10059
#define WSAETIMEDOUT          10060
#define WSAECONNREFUSED       10061
#define WSAELOOP              10062
#define WSAENAMETOOLONG       10063
#define WSAEHOSTDOWN          10064
#define WSAEHOSTUNREACH       10065
#define WSAENOTEMPTY          10066
#define WSAEPROCLIM           10067
#define WSAEUSERS             10068
#define WSAEDQUOT             10069
#define WSAESTALE             10070
#define WSAEREMOTE            10071
#define WSASYSNOTREADY        10091
#define WSAVERNOTSUPPORTED    10092
#define WSANOTINITIALISED     10093
#define WSAEDISCON            10101
#define WSABASEERR            10000
#define WSA_INVALID_HANDLE    ERROR_INVALID_HANDLE
#define WSA_NOT_ENOUGH_MEMORY ERROR_NOT_ENOUGH_MEMORY
#define WSA_INVALID_PARAMETER ERROR_INVALID_PARAMETER
#define WSA_OPERATION_ABORTED ERROR_OPERATION_ABORTED
#define WSA_IO_INCOMPLETE     ERROR_IO_INCOMPLETE
#define WSA_IO_PENDING        ERROR_IO_PENDING
#define WSAHOST_NOT_FOUND     11001
#define WSATRY_AGAIN          11002
#define WSANO_RECOVERY        11003
#define WSANO_DATA            11004

#endif
