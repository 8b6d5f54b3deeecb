/* SPDX-License-Identifier: MIT */
#define ND_COMPAT_NATIVE_SOCKETS 1
#include <winsock2.h>

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <ntstatus.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "error.h"
#include "handle.h"
#include "overlapped.h"
#include "sock.h"
#include "wordlock.h"

/* WSASocket, WSAIoctl and what notifies of changes. Source: win32-surface.md section 4.4. */

static int socket_error(DWORD error)
{
    SetLastError(error);
    return SOCKET_ERROR;
}

static int errno_error(int saved)
{
    int error = errno;

    errno = saved;
    return socket_error(error_from_errno(error));
}

void sock_made(SOCKET socket, int family)
{
    int only = 1, saved = errno;

    if (socket == INVALID_SOCKET || family != AF_INET6)
        return;
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    errno = saved;
}

/* INVALID_SOCKET and SOCKET_ERROR are the same value. */
static SOCKET socket_make(int family, int type, int protocol)
{
    int saved = errno, fd = socket(family, type | SOCK_CLOEXEC, protocol);

    sock_made(fd, family);
    return fd >= 0 ? fd : errno_error(saved);
}

SOCKET WSAAPI WSASocketA(int family, int type, int protocol, LPWSAPROTOCOL_INFOA info, GROUP group, DWORD flags)
{
    (void)group;
    (void)flags;
    return socket_make(family == FROM_PROTOCOL_INFO && info ? info->iAddressFamily : family,
                       type == FROM_PROTOCOL_INFO && info ? info->iSocketType : type,
                       protocol == FROM_PROTOCOL_INFO && info ? info->iProtocol : protocol);
}

SOCKET WSAAPI WSASocketW(int family, int type, int protocol, LPWSAPROTOCOL_INFOW info, GROUP group, DWORD flags)
{
    (void)group;
    (void)flags;
    return socket_make(family == FROM_PROTOCOL_INFO && info ? info->iAddressFamily : family,
                       type == FROM_PROTOCOL_INFO && info ? info->iSocketType : type,
                       protocol == FROM_PROTOCOL_INFO && info ? info->iProtocol : protocol);
}

/* Requests that wait for a change. None is ever reported: they end when their socket or notification handle is closed. */
struct watch {
    struct list link;
    SOCKET socket;
    const struct object *notification; /* NULL: the socket's */
    struct request *request;
};

static struct {
    struct wordlock lock;
    struct file *file; /* of all requests of sockets */
    struct list watches;
} state = { .watches = { &state.watches, &state.watches } };

static struct file *requests_file(void)
{
    struct file *file = __atomic_load_n(&state.file, __ATOMIC_ACQUIRE), *none = NULL;

    if (file)
        return file;
    file = file_create();
    if (!file || __atomic_compare_exchange_n(&state.file, &none, file, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return file;
    file_unref(file);
    return none;
}

/* A started request for `ov`; otherwise SOCKET_ERROR's last error is set. */
static struct request *request_begin(LPWSAOVERLAPPED ov)
{
    struct file *file = requests_file();
    struct request *request;
    NTSTATUS status = file ? request_alloc(file, ov, NULL, NULL, &request) : STATUS_INSUFFICIENT_RESOURCES;

    if (status != STATUS_SUCCESS) {
        SetLastError(status == STATUS_INVALID_HANDLE ? WSA_INVALID_HANDLE : WSAENOBUFS);
        return NULL;
    }
    request_start(request);
    return request;
}

static int watch_start(SOCKET socket, const struct object *notification, LPWSAOVERLAPPED ov)
{
    struct watch *watch = malloc(sizeof(*watch));

    if (!watch)
        return socket_error(WSAENOBUFS);
    watch->socket = socket;
    watch->notification = notification;
    watch->request = request_begin(ov);
    if (!watch->request) {
        free(watch);
        return SOCKET_ERROR;
    }
    wordlock_lock(&state.lock);
    list_add_tail(&state.watches, &watch->link);
    wordlock_unlock(&state.lock);
    return socket_error(WSA_IO_PENDING);
}

static void watches_end(SOCKET socket, const struct object *notification)
{
    struct list ended, *link;

    list_init(&ended);
    wordlock_lock(&state.lock);
    list_for_each_safe (node, &state.watches) {
        struct watch *watch = list_entry(node, struct watch, link);

        if (watch->socket != socket || watch->notification != notification)
            continue;
        list_del(node);
        list_add_tail(&ended, node);
    }
    wordlock_unlock(&state.lock);
    while ((link = list_pop(&ended))) {
        struct watch *watch = list_entry(link, struct watch, link);

        request_complete(watch->request, STATUS_CANCELLED, 0);
        free(watch);
    }
}

void sock_closing(SOCKET socket)
{
    watches_end(socket, NULL);
}

static int socket_family(SOCKET socket)
{
    int family = -1;
    socklen_t length = sizeof(family);

    return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 ? family : -1;
}

static bool listed(const struct ifaddrs *entry, int family)
{
    return entry->ifa_addr && entry->ifa_addr->sa_family == family && entry->ifa_flags & IFF_UP &&
           !(entry->ifa_flags & IFF_LOOPBACK);
}

/* The addresses of the socket's family on interfaces that are up, as the list and then the addresses. */
static int address_list(int family, void *out, DWORD size, LPDWORD bytes)
{
    size_t each = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), needed;
    SOCKET_ADDRESS_LIST *list = out;
    struct ifaddrs *all;
    int count = 0, saved = errno;
    char *place;

    if (getifaddrs(&all) != 0)
        return errno_error(saved);
    for (struct ifaddrs *entry = all; entry; entry = entry->ifa_next)
        count += listed(entry, family);
    needed = offsetof(SOCKET_ADDRESS_LIST, Address) + (size_t)count * sizeof(SOCKET_ADDRESS);
    place = (char *)out + needed;
    needed += (size_t)count * each;
    *bytes = (DWORD)needed;
    if (!out || size < needed) {
        freeifaddrs(all);
        return socket_error(WSAEFAULT);
    }
    list->iAddressCount = 0;
    for (struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
        SOCKET_ADDRESS *slot = &list->Address[list->iAddressCount];

        if (!listed(entry, family))
            continue;
        memcpy(place, entry->ifa_addr, each);
        slot->lpSockaddr = (LPSOCKADDR)place;
        slot->iSockaddrLength = (INT)each;
        place += each;
        list->iAddressCount++;
    }
    freeifaddrs(all);
    return 0;
}

/* The local address by which the system would send there: what a connected datagram socket has. */
static int routing_interface(const void *to, DWORD to_length, void *out, DWORD size, LPDWORD bytes)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = { 0 };
    socklen_t length = sizeof(address);
    int saved = errno, fd, result;

    if (!to || to_length < sizeof(address.v4) || !out)
        return socket_error(WSAEFAULT);
    memcpy(&address, to, to_length < sizeof(address) ? to_length : sizeof(address));
    if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6)
        return socket_error(WSAEAFNOSUPPORT);
    if (address.any.sa_family == AF_INET6 && to_length < sizeof(address.v6))
        return socket_error(WSAEFAULT);
    if (!address.v4.sin_port)
        address.v4.sin_port = htons(9);
    fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno_error(saved);
    result = connect(fd, &address.any, address.any.sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6));
    if (result == 0)
        result = getsockname(fd, &address.any, &length);
    if (result != 0)
        result = errno_error(saved);
    close(fd);
    if (result != 0)
        return result;
    *bytes = length;
    if (size < length)
        return socket_error(WSAEFAULT);
    address.v4.sin_port = 0;
    memcpy(out, &address, length);
    return 0;
}

/* Reports a call that has succeeded through its OVERLAPPED as well, if it has one. */
static int report(LPWSAOVERLAPPED ov, DWORD bytes)
{
    struct request *request;

    if (!ov)
        return 0;
    request = request_begin(ov);
    if (!request)
        return SOCKET_ERROR;
    request_complete(request, STATUS_SUCCESS, bytes);
    return 0;
}

int WSAAPI WSAIoctl(SOCKET socket, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD bytes,
                    LPWSAOVERLAPPED ov, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
    int family = socket_family(socket), result;
    DWORD written = 0;
    ULONG value = 0;

    if (family < 0)
        return socket_error(WSAENOTSOCK);
    if (routine)
        return socket_error(WSAEOPNOTSUPP);
    if (!bytes && !ov)
        return socket_error(WSAEFAULT);
    switch (code) {
    case (DWORD)FIONBIO:
        if (!in || in_size < sizeof(value))
            return socket_error(WSAEFAULT);
        memcpy(&value, in, sizeof(value));
        result = ioctlsocket(socket, (int)code, &value);
        break;
    case (DWORD)FIONREAD:
        if (!out || out_size < sizeof(value))
            return socket_error(WSAEFAULT);
        result = ioctlsocket(socket, (int)code, &value);
        memcpy(out, &value, sizeof(value));
        written = sizeof(value);
        break;
    case SIO_ADDRESS_LIST_QUERY:
        if (family != AF_INET && family != AF_INET6)
            return socket_error(WSAEOPNOTSUPP);
        result = address_list(family, out, out_size, &written);
        break;
    case SIO_ROUTING_INTERFACE_QUERY:
        result = routing_interface(in, in_size, out, out_size, &written);
        break;
    case SIO_ADDRESS_LIST_CHANGE:
    case SIO_ROUTING_INTERFACE_CHANGE:
        return ov ? watch_start(socket, NULL, ov) : socket_error(WSAEOPNOTSUPP);
    default:
        return socket_error(WSAEOPNOTSUPP);
    }
    if (bytes)
        *bytes = written;
    return result == 0 ? report(ov, written) : result;
}

BOOL WSAAPI WSAGetOverlappedResult(SOCKET socket, LPWSAOVERLAPPED ov, LPDWORD bytes, BOOL wait, LPDWORD flags)
{
    (void)socket;
    if (!ov || !bytes || !flags) {
        SetLastError(WSAEFAULT);
        return FALSE;
    }
    *flags = 0;
    return GetOverlappedResult(NULL, ov, bytes, wait);
}

static void notification_closed(struct object *object)
{
    watches_end(INVALID_SOCKET, object);
}

/* A request may have come while the handle was closed. */
static void notification_destroy(struct object *object)
{
    watches_end(INVALID_SOCKET, object);
    free(object);
}

/* The catalogue never changes: nobody sets it. */
static const struct object_ops notification_ops = {
    .waitable = true,
    .closed = notification_closed,
    .destroy = notification_destroy,
};

static HANDLE notification_open(void)
{
    struct object *object = malloc(sizeof(*object));
    HANDLE handle;

    if (!object)
        return NULL;
    object_init(object, &notification_ops, SIGNAL_MANUAL);
    handle = handle_open(object);
    object_unref(object);
    return handle;
}

int WSAAPI WSAProviderConfigChange(LPHANDLE notification, LPWSAOVERLAPPED ov,
                                   LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
    struct object *object;
    HANDLE handle;
    int result;

    if (!notification)
        return socket_error(WSAEFAULT);
    if (routine)
        return socket_error(WSAEOPNOTSUPP);
    if (!*notification) {
        *notification = notification_open();
        if (!*notification)
            return socket_error(WSAENOBUFS);
        if (!ov)
            return 0;
    }
    handle = *notification;
    object = handle_pin(handle, &notification_ops);
    if (!object)
        return socket_error(WSA_INVALID_HANDLE);
    result = ov ? watch_start(INVALID_SOCKET, object, ov) : socket_error(WSAEOPNOTSUPP);
    handle_unpin(handle);
    return result;
}
