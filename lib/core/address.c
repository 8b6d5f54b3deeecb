/* SPDX-License-Identifier: MIT */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ndstatus.h"

#include "log.h"

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

/* Connecting a datagram socket sends nothing: it is the kernel's route look-up and choice of source address. */
NTSTATUS address_route(const struct sockaddr *remote, union address *local)
{
    socklen_t length = sizeof(*local);
    union address to;
    NTSTATUS status;
    char text[64];
    int fd;

    status = address_import(remote, remote ? address_length(remote) : 0, &to);
    if (status != ND_SUCCESS)
        return status;
    fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        log_warn("socket: %s", strerror(errno));
        return errno == EAFNOSUPPORT ? ND_NETWORK_UNREACHABLE : ND_UNSUCCESSFUL;
    }
    if (address_port(&to.sa) == 0)
        address_set_port(&to.sa, 9);
    memset(local, 0, sizeof(*local));
    if (connect(fd, &to.sa, (socklen_t)address_length(&to.sa)) < 0 || getsockname(fd, &local->sa, &length) < 0) {
        switch (errno) {
        case ENETUNREACH:
        case EHOSTUNREACH:
        case ENETDOWN:
        case EADDRNOTAVAIL:
            status = ND_NETWORK_UNREACHABLE;
            break;
        case EINVAL:
        case EAFNOSUPPORT:
        case EACCES: /* a broadcast address */
            status = ND_INVALID_ADDRESS;
            break;
        default:
            status = ND_UNSUCCESSFUL;
        }
        log_info("no route to %s: %s", address_text(remote, text, sizeof(text)), strerror(errno));
    } else {
        address_set_port(&local->sa, 0);
    }
    close(fd);
    return status;
}
