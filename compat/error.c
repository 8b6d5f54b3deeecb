/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <errno.h>
#include <stddef.h>

static _Thread_local DWORD last_error __attribute__((tls_model("initial-exec")));

DWORD WINAPI GetLastError(void)
{
    return last_error;
}

VOID WINAPI SetLastError(DWORD error)
{
    last_error = error;
}

/* Sorted by status. Source: win32-surface.md 5.2. */
static const struct {
    ULONG status;
    DWORD error;
} status_map[] = {
    { 0x00000000, NO_ERROR },
    { 0x00000102, WAIT_TIMEOUT },
    { 0x00000103, ERROR_IO_PENDING },
    { 0x80000005, ERROR_MORE_DATA },
    { 0x80000011, ERROR_BUSY },
    { 0x8000001a, ERROR_NO_MORE_ITEMS },
    { 0xc0000001, ERROR_GEN_FAILURE },
    { 0xc0000005, ERROR_NOACCESS },
    { 0xc0000008, ERROR_INVALID_HANDLE },
    { 0xc000000d, ERROR_INVALID_PARAMETER },
    { 0xc0000010, ERROR_INVALID_FUNCTION },
    { 0xc0000017, ERROR_NOT_ENOUGH_MEMORY },
    { 0xc0000030, ERROR_INVALID_PARAMETER },
    { 0xc000003c, ERROR_IO_DEVICE },
    { 0xc000003e, ERROR_CRC },
    { 0xc0000043, ERROR_SHARING_VIOLATION },
    { 0xc000009a, ERROR_NO_SYSTEM_RESOURCES },
    { 0xc00000a3, ERROR_NOT_READY },
    { 0xc00000b5, ERROR_SEM_TIMEOUT },
    { 0xc00000bb, ERROR_NOT_SUPPORTED },
    { 0xc00000cc, ERROR_BAD_NET_NAME },
    { 0xc00000e5, ERROR_INTERNAL_ERROR },
    { 0xc00000ef, ERROR_INVALID_PARAMETER },
    { 0xc00000f0, ERROR_INVALID_PARAMETER },
    { 0xc00000f1, ERROR_INVALID_PARAMETER },
    { 0xc00000f2, ERROR_INVALID_PARAMETER },
    { 0xc00000f3, ERROR_INVALID_PARAMETER },
    { 0xc00000f4, ERROR_INVALID_PARAMETER },
    { 0xc00000f5, ERROR_INVALID_PARAMETER },
    { 0xc00000f6, ERROR_INVALID_PARAMETER },
    { 0xc00000f7, ERROR_INVALID_PARAMETER },
    { 0xc00000f8, ERROR_INVALID_PARAMETER },
    { 0xc0000120, ERROR_OPERATION_ABORTED },
    { 0xc000013d, ERROR_REM_NOT_LIST },
    { 0xc0000141, ERROR_UNEXP_NET_ERR },
    { 0xc0000184, ERROR_BAD_COMMAND },
    { 0xc0000206, ERROR_INVALID_USER_BUFFER },
    { 0xc0000209, ERROR_TOO_MANY_NAMES },
    { 0xc000020a, ERROR_DUP_NAME },
    { 0xc000020c, ERROR_NETNAME_DELETED },
    { 0xc0000236, ERROR_CONNECTION_REFUSED },
    { 0xc0000238, ERROR_ADDRESS_ALREADY_ASSOCIATED },
    { 0xc000023a, ERROR_CONNECTION_INVALID },
    { 0xc000023b, ERROR_CONNECTION_ACTIVE },
    { 0xc000023c, ERROR_NETWORK_UNREACHABLE },
    { 0xc000023d, ERROR_HOST_UNREACHABLE },
    { 0xc0000241, ERROR_CONNECTION_ABORTED },
    { 0xc00002b6, ERROR_DEVICE_REMOVED },
};

/* A status that already wraps a Win32 code (0x8007xxxx, WinVerbs has some) gives that code back. */
DWORD error_from_status(NTSTATUS status)
{
    size_t low = 0, high = ARRAYSIZE(status_map);

    if (((ULONG)status & 0xffff0000) == 0x80070000)
        return (ULONG)status & 0xffff;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (status_map[middle].status == (ULONG)status)
            return status_map[middle].error;
        if (status_map[middle].status < (ULONG)status)
            low = middle + 1;
        else
            high = middle;
    }
    return ERROR_MR_MID_NOT_FOUND;
}

/* Winsock codes are 10000 plus the BSD number, which is not Linux's. Source: win32-surface.md 5.1. */
static const struct {
    int error;
    DWORD code;
} errno_map[] = {
    { EINTR, WSAEINTR },
    { EBADF, WSAENOTSOCK }, /* the descriptor is no socket of ours (any more) */
    { EACCES, WSAEACCES },
    { EPERM, WSAEACCES },
    { EFAULT, WSAEFAULT },
    { EINVAL, WSAEINVAL },
    { EMFILE, WSAEMFILE },
    { ENFILE, WSAEMFILE },
    { EAGAIN, WSAEWOULDBLOCK },
    { EINPROGRESS, WSAEINPROGRESS },
    { EALREADY, WSAEALREADY },
    { ENOTSOCK, WSAENOTSOCK },
    { ENOTTY, WSAENOTSOCK },
    { EDESTADDRREQ, WSAEDESTADDRREQ },
    { EMSGSIZE, WSAEMSGSIZE },
    { EPROTOTYPE, WSAEPROTOTYPE },
    { ENOPROTOOPT, WSAENOPROTOOPT },
    { EPROTONOSUPPORT, WSAEPROTONOSUPPORT },
    { ESOCKTNOSUPPORT, WSAESOCKTNOSUPPORT },
    { EOPNOTSUPP, WSAEOPNOTSUPP },
    { EPFNOSUPPORT, WSAEPFNOSUPPORT },
    { EAFNOSUPPORT, WSAEAFNOSUPPORT },
    { EADDRINUSE, WSAEADDRINUSE },
    { EADDRNOTAVAIL, WSAEADDRNOTAVAIL },
    { ENETDOWN, WSAENETDOWN },
    { ENETUNREACH, WSAENETUNREACH },
    { ENETRESET, WSAENETRESET },
    { ECONNABORTED, WSAECONNABORTED },
    { ECONNRESET, WSAECONNRESET },
    { EPIPE, WSAECONNRESET },
    { ENOBUFS, WSAENOBUFS },
    { ENOMEM, WSAENOBUFS },
    { EISCONN, WSAEISCONN },
    { ENOTCONN, WSAENOTCONN },
    { ESHUTDOWN, WSAESHUTDOWN },
    { ETIMEDOUT, WSAETIMEDOUT },
    { ECONNREFUSED, WSAECONNREFUSED },
    { EHOSTDOWN, WSAEHOSTDOWN },
    { EHOSTUNREACH, WSAEHOSTUNREACH },
};

DWORD error_from_errno(int error)
{
    for (size_t i = 0; i < ARRAYSIZE(errno_map); i++) {
        if (errno_map[i].error == error)
            return errno_map[i].code;
    }
    return WSAEINVAL;
}
