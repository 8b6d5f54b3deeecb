/* SPDX-License-Identifier: MIT */
#define ND_COMPAT_NATIVE_SOCKETS 1
#include <winsock2.h>
#include <ws2tcpip.h>

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "brokenpipe.h"
#include "error.h"
#include "sock.h"

static uint32_t started;

int WSAAPI WSAStartup(WORD version, LPWSADATA data)
{
    if (LOBYTE(version) == 0)
        return WSAVERNOTSUPPORTED;
    if (!data)
        return WSAEFAULT;
    memset(data, 0, sizeof(*data));
    data->wVersion = MAKEWORD(2, 2);
    data->wHighVersion = MAKEWORD(2, 2);
    snprintf(data->szDescription, sizeof(data->szDescription), "ndverbs sockets");
    snprintf(data->szSystemStatus, sizeof(data->szSystemStatus), "Running");
    broken_pipe_ignore();
    __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    return 0;
}

int WSAAPI WSACleanup(void)
{
    uint32_t count = __atomic_load_n(&started, __ATOMIC_RELAXED);

    do {
        if (count == 0) {
            SetLastError(WSANOTINITIALISED);
            return SOCKET_ERROR;
        }
    } while (!__atomic_compare_exchange_n(&started, &count, count - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 0;
}

int WSAAPI WSAGetLastError(void)
{
    return (int)GetLastError();
}

VOID WSAAPI WSASetLastError(int error)
{
    SetLastError((DWORD)error);
}

static int socket_error(DWORD error)
{
    SetLastError(error);
    return SOCKET_ERROR;
}

int WSAAPI closesocket(SOCKET socket)
{
    int saved = errno, error;

    /* close alone wakes nobody who waits for the socket. Only what is no socket is not to be closed. */
    if (shutdown(socket, SHUT_RD) == 0 || (errno != EBADF && errno != ENOTSOCK)) {
        sock_closing(socket);
        if (close(socket) == 0) {
            errno = saved;
            return 0;
        }
    }
    error = errno;
    errno = saved;
    return socket_error(error_from_errno(error));
}

#undef ioctlsocket
int WSAAPI ioctlsocket(SOCKET socket, int command, ULONG *argument)
{
    int saved = errno, value, error;

    if (!argument)
        return socket_error(WSAEFAULT);
    if ((unsigned)command != (unsigned)FIONBIO && (unsigned)command != (unsigned)FIONREAD)
        return socket_error(WSAEOPNOTSUPP);
    value = *argument != 0;
    if (ioctl(socket, (unsigned long)(unsigned)command, &value) != 0) {
        error = errno;
        errno = saved;
        return socket_error(error_from_errno(error));
    }
    if ((unsigned)command == (unsigned)FIONREAD)
        *argument = (ULONG)value;
    return 0;
}

/* Longest text: bracketed IPv6 with a scope and a port. */
#define ADDRESS_TEXT 128

/* Copies to ASCII; false if it is too long or holds other characters. */
static bool narrow(PCWSTR wide, char *text)
{
    size_t i;

    for (i = 0; wide[i]; i++) {
        if (i == ADDRESS_TEXT - 1 || (uint32_t)wide[i] > 127)
            return false;
        text[i] = (char)wide[i];
    }
    text[i] = '\0';
    return true;
}

static void widen(const char *text, PWSTR wide)
{
    do
        *wide++ = (WCHAR)(unsigned char)*text;
    while (*text++);
}

/* Decimal number up to `limit`, the whole text. */
static bool number(const char *text, uint64_t limit, uint32_t *value)
{
    uint64_t sum = 0;

    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        sum = sum * 10 + (uint64_t)(*text - '0');
        if (sum > limit)
            return false;
    }
    *value = (uint32_t)sum;
    return true;
}

static bool parse_v4(char *text, struct sockaddr_in *address)
{
    char *colon = strchr(text, ':');
    uint32_t port = 0;

    if (colon) {
        *colon = '\0';
        if (!number(colon + 1, UINT16_MAX, &port))
            return false;
    }
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, text, &address->sin_addr) == 1;
}

static bool parse_v6(char *text, struct sockaddr_in6 *address)
{
    uint32_t port = 0, scope = 0;
    char *bracket, *percent;

    if (*text == '[') {
        bracket = strchr(++text, ']');
        if (!bracket)
            return false;
        *bracket++ = '\0';
        if (*bracket && (*bracket != ':' || !number(bracket + 1, UINT16_MAX, &port)))
            return false;
    }
    percent = strchr(text, '%');
    if (percent) {
        *percent++ = '\0';
        if (!number(percent, UINT32_MAX, &scope)) {
            scope = if_nametoindex(percent);
            if (!scope)
                return false;
        }
    }
    address->sin6_family = AF_INET6;
    address->sin6_port = htons((uint16_t)port);
    address->sin6_scope_id = scope;
    return inet_pton(AF_INET6, text, &address->sin6_addr) == 1;
}

INT WSAAPI WSAStringToAddressA(LPSTR text, INT family, LPWSAPROTOCOL_INFOA info, LPSOCKADDR address, LPINT length)
{
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } parsed = { 0 };
    char copy[ADDRESS_TEXT];
    INT needed = family == AF_INET ? sizeof(parsed.v4) : sizeof(parsed.v6);
    int saved = errno;
    bool good;

    (void)info;
    if (!text || !address || !length)
        return socket_error(WSAEFAULT);
    if (family != AF_INET && family != AF_INET6)
        return socket_error(WSAEINVAL);
    if (strlen(text) >= sizeof(copy))
        return socket_error(WSAEINVAL);
    if (*length < needed) {
        *length = needed;
        return socket_error(WSAEFAULT);
    }
    strcpy(copy, text);
    good = family == AF_INET ? parse_v4(copy, &parsed.v4) : parse_v6(copy, &parsed.v6);
    errno = saved;
    if (!good)
        return socket_error(WSAEINVAL);
    memcpy(address, &parsed, (size_t)needed);
    *length = needed;
    return 0;
}

INT WSAAPI WSAStringToAddressW(LPWSTR text, INT family, LPWSAPROTOCOL_INFOW info, LPSOCKADDR address, LPINT length)
{
    char copy[ADDRESS_TEXT];

    (void)info;
    if (!text)
        return socket_error(WSAEFAULT);
    if (!narrow(text, copy))
        return socket_error(WSAEINVAL);
    return WSAStringToAddressA(copy, family, NULL, address, length);
}

/* Writes the text of an address; false if it is none. */
static bool address_format(const SOCKADDR *address, DWORD length, char *text)
{
    char ip[INET6_ADDRSTRLEN], scope[16] = "";
    uint16_t port;

    if (length >= sizeof(struct sockaddr_in) && address->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof(v4));
        inet_ntop(AF_INET, &v4.sin_addr, ip, sizeof(ip));
        port = ntohs(v4.sin_port);
        if (port)
            snprintf(text, ADDRESS_TEXT, "%s:%u", ip, port);
        else
            snprintf(text, ADDRESS_TEXT, "%s", ip);
        return true;
    }
    if (length >= sizeof(struct sockaddr_in6) && address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof(v6));
        inet_ntop(AF_INET6, &v6.sin6_addr, ip, sizeof(ip));
        port = ntohs(v6.sin6_port);
        if (v6.sin6_scope_id)
            snprintf(scope, sizeof(scope), "%%%u", v6.sin6_scope_id);
        if (port)
            snprintf(text, ADDRESS_TEXT, "[%s%s]:%u", ip, scope, port);
        else
            snprintf(text, ADDRESS_TEXT, "%s%s", ip, scope);
        return true;
    }
    return false;
}

/* Formats and checks the room; the text, or NULL with *result set. */
static const char *address_text(LPSOCKADDR address, DWORD address_length, const void *text, LPDWORD text_length,
                                char *buffer)
{
    DWORD needed;

    if (!address || !text || !text_length) {
        SetLastError(WSAEFAULT);
        return NULL;
    }
    if (!address_format(address, address_length, buffer)) {
        SetLastError(WSAEINVAL);
        return NULL;
    }
    needed = (DWORD)strlen(buffer) + 1;
    if (*text_length < needed) {
        *text_length = needed;
        SetLastError(WSAEFAULT);
        return NULL;
    }
    *text_length = needed;
    return buffer;
}

INT WSAAPI WSAAddressToStringA(LPSOCKADDR address, DWORD address_length, LPWSAPROTOCOL_INFOA info, LPSTR text,
                               LPDWORD text_length)
{
    char buffer[ADDRESS_TEXT];

    (void)info;
    if (!address_text(address, address_length, text, text_length, buffer))
        return SOCKET_ERROR;
    strcpy(text, buffer);
    return 0;
}

INT WSAAPI WSAAddressToStringW(LPSOCKADDR address, DWORD address_length, LPWSAPROTOCOL_INFOW info, LPWSTR text,
                               LPDWORD text_length)
{
    char buffer[ADDRESS_TEXT];

    (void)info;
    if (!address_text(address, address_length, text, text_length, buffer))
        return SOCKET_ERROR;
    widen(buffer, text);
    return 0;
}

INT WSAAPI InetPtonA(INT family, PCSTR text, PVOID address)
{
    int saved = errno, result;

    if (!text || !address)
        return socket_error(WSAEFAULT);
    result = inet_pton(family, text, address);
    errno = saved;
    return result < 0 ? socket_error(WSAEAFNOSUPPORT) : result;
}

INT WSAAPI InetPtonW(INT family, PCWSTR text, PVOID address)
{
    char copy[ADDRESS_TEXT];

    if (!text || !address)
        return socket_error(WSAEFAULT);
    return InetPtonA(family, narrow(text, copy) ? copy : "", address);
}

PCSTR WSAAPI InetNtopA(INT family, const VOID *address, PSTR text, size_t size)
{
    int saved = errno, error;
    PCSTR result = NULL;

    if (!address || !text) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    result = inet_ntop(family, address, text, size > UINT32_MAX ? UINT32_MAX : (socklen_t)size);
    error = errno;
    errno = saved;
    if (!result)
        SetLastError(error == EAFNOSUPPORT ? WSAEAFNOSUPPORT : ERROR_INVALID_PARAMETER);
    return result;
}

PCWSTR WSAAPI InetNtopW(INT family, const VOID *address, PWSTR text, size_t size)
{
    char buffer[INET6_ADDRSTRLEN];

    if (!address || !text) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    if (!InetNtopA(family, address, buffer, sizeof(buffer)))
        return NULL;
    if (strlen(buffer) >= size) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    widen(buffer, text);
    return text;
}
