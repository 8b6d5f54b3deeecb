/* SPDX-License-Identifier: MIT */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ndstatus.h"

#include "log.h"
#include "status.h"

size_t address_length(const struct sockaddr *address)
{
    switch (address->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return 0;
    }
}

bool address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a, *b6 = (const struct sockaddr_in6 *)b;

        if (a6->sin6_scope_id && b6->sin6_scope_id && a6->sin6_scope_id != b6->sin6_scope_id)
            return false;
        return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
    }
    return false;
}

bool address_is_any(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* The port is at the same place for both families. */
uint16_t address_port(const struct sockaddr *address)
{
    return address_length(address) ? ntohs(((const struct sockaddr_in *)address)->sin_port) : 0;
}

void address_set_port(struct sockaddr *address, uint16_t port)
{
    if (address_length(address))
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

const char *address_text(const struct sockaddr *address, char *buffer, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = address_port(address);

    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, host, sizeof(host));
        snprintf(buffer, size, port ? "%s:%u" : "%s", host, port);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        char scope[16] = "";

        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        if (v6->sin6_scope_id)
            snprintf(scope, sizeof(scope), "%%%u", (unsigned)v6->sin6_scope_id);
        if (port)
            snprintf(buffer, size, "[%s%s]:%u", host, scope, port);
        else
            snprintf(buffer, size, "%s%s", host, scope);
    } else {
        snprintf(buffer, size, "(address family %u)", (unsigned)address->sa_family);
    }
    return buffer;
}

NTSTATUS address_import(const struct sockaddr *address, size_t length, union address *out)
{
    sa_family_t family;
    size_t wanted;

    if (!address || length < sizeof(family))
        return ND_INVALID_ADDRESS;
    memcpy(&family, address, sizeof(family)); /* no more than that need be readable yet */
    wanted = family == AF_INET ? sizeof(struct sockaddr_in) : family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
    if (wanted == 0 || length < wanted)
        return ND_INVALID_ADDRESS;
    memset(out, 0, sizeof(*out));
    memcpy(out, address, wanted);
    if (family == AF_INET)
        memset(out->v4.sin_zero, 0, sizeof(out->v4.sin_zero));
    return ND_SUCCESS;
}

HRESULT address_report(const char *where, int error, HRESULT status, const char *call, const struct sockaddr *address)
{
    char text[64];

    return status_report(LOG_INFO, where, error, status, "%s of %s", call, address_text(address, text, sizeof(text)));
}

static NTSTATUS route_status(int error)
{
    switch (error) {
    case 0:
        return ND_SUCCESS;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
        return ND_NETWORK_UNREACHABLE;
    case EINVAL:
    case EAFNOSUPPORT:
    case EACCES: /* a broadcast address */
        return ND_INVALID_ADDRESS;
    default:
        return ND_UNSUCCESSFUL;
    }
}

static NTSTATUS no_socket(void)
{
    return errno == EAFNOSUPPORT ? ND_NETWORK_UNREACHABLE : ND_UNSUCCESSFUL;
}

static int route_socket(int family)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        status_warn(errno, no_socket(), "socket");
    return fd;
}

/* Connecting a datagram socket sends nothing: it is the kernel's route look-up and choice of source address. 0 or errno. */
static int route_look_up(int fd, const struct sockaddr *remote)
{
    union address to;
    char text[64];
    int error;

    memcpy(&to, remote, address_length(remote));
    if (address_port(&to.sa) == 0)
        address_set_port(&to.sa, 9);
    if (connect(fd, &to.sa, (socklen_t)address_length(&to.sa)) == 0)
        return 0;
    error = errno;
    status_info(error, route_status(error), "no route to %s", address_text(remote, text, sizeof(text)));
    return error;
}

NTSTATUS address_route(const struct sockaddr *remote, union address *local)
{
    socklen_t length = sizeof(*local);
    union address to;
    NTSTATUS status;
    int fd, error;

    status = address_import(remote, remote ? address_length(remote) : 0, &to);
    if (status != ND_SUCCESS)
        return status;
    fd = route_socket(to.sa.sa_family);
    if (fd < 0)
        return no_socket();
    memset(local, 0, sizeof(*local));
    error = route_look_up(fd, &to.sa);
    if (!error && getsockname(fd, &local->sa, &length) < 0)
        error = errno;
    if (!error)
        address_set_port(&local->sa, 0);
    close(fd);
    return route_status(error);
}

/* A socket is dear to make, so one of each family stays. Each look-up binds it, to any address if to none, and unconnects it
 * afterwards: that gives the port back, so that it can be bound again, and forgets the interface. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static int kept[2] = { -1, -1 };

void address_prepare(void)
{
    static bool prepared;

    pthread_mutex_lock(&kept_lock);
    for (int i = 0; i < 2 && !prepared; i++)
        kept[i] = socket(i ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    prepared = true;
    pthread_mutex_unlock(&kept_lock);
}

static NTSTATUS look_up_from(int fd, const union address *local, const union address *remote)
{
    union address from = { .sa = { .sa_family = remote->sa.sa_family } };
    int error;

    if (local && local->sa.sa_family == remote->sa.sa_family)
        from = *local;
    address_set_port(&from.sa, 0);
    if (bind(fd, &from.sa, (socklen_t)address_length(&from.sa)) != 0) {
        /* An address that the interface of a VRF has can only be bound there. Whether there is a way is for the kernel's
         * connection manager to say. */
        error = errno;
        log_debug("bind: %s", strerror(error));
        return ND_UNSUCCESSFUL;
    }
    return route_status(route_look_up(fd, &remote->sa));
}

NTSTATUS address_reachable(const union address *local, const union address *remote)
{
    const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    int *fd = &kept[remote->sa.sa_family == AF_INET6];
    NTSTATUS status;

    pthread_mutex_lock(&kept_lock);
    if (*fd < 0)
        *fd = route_socket(remote->sa.sa_family);
    if (*fd < 0) {
        status = no_socket();
    } else {
        status = look_up_from(*fd, local, remote);
        if (connect(*fd, &nowhere, sizeof(nowhere)) != 0) {
            close(*fd);
            *fd = -1;
        }
    }
    pthread_mutex_unlock(&kept_lock);
    return status;
}
