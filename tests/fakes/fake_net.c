/* SPDX-License-Identifier: MIT */

/* The host's addresses and routes. */

#include "fake_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

struct route {
    struct list link;
    struct sockaddr_storage destination, local;
    bool reachable;
    bool rule; /* `local` is the source that it is for */
};

struct list fake_addresses = { &fake_addresses, &fake_addresses };

static struct list routes = { &routes, &routes };

bool fake_parse(const char *text, struct sockaddr_storage *addr)
{
    struct sockaddr_in *in = (struct sockaddr_in *)addr;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
    char host[INET6_ADDRSTRLEN + 1];
    const char *percent = strchr(text, '%');
    size_t length = percent ? (size_t)(percent - text) : strlen(text);

    memset(addr, 0, sizeof(*addr));
    if (length >= sizeof(host))
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        return true;
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        if (percent)
            in6->sin6_scope_id = (uint32_t)strtoul(percent + 1, NULL, 10);
        return true;
    }
    return false;
}

bool fake_same_ip(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

bool fake_any_ip(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET)
        return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

bool fake_loopback_ip(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

uint16_t fake_port_of(const struct sockaddr *addr)
{
    return ntohs(addr->sa_family == AF_INET ? ((const struct sockaddr_in *)addr)->sin_port
                                            : ((const struct sockaddr_in6 *)addr)->sin6_port);
}

void fake_set_port(struct sockaddr *addr, uint16_t port)
{
    if (addr->sa_family == AF_INET)
        ((struct sockaddr_in *)addr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

socklen_t fake_sockaddr_size(const struct sockaddr *addr)
{
    return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static bool same_subnet(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) ^
                 ntohl(((const struct sockaddr_in *)b)->sin_addr.s_addr)) >>
                8) == 0;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 8) == 0;
}

struct fake_address *fake_address_find(const struct sockaddr *addr)
{
    list_for_each (node, &fake_addresses) {
        struct fake_address *address = list_entry(node, struct fake_address, link);

        if (fake_same_ip((struct sockaddr *)&address->addr, addr))
            return address;
    }
    return NULL;
}

struct fake_address *fake_address_nth(const struct fake_device *device, unsigned port, unsigned n)
{
    list_for_each (node, &fake_addresses) {
        struct fake_address *address = list_entry(node, struct fake_address, link);

        if (address->device == device && address->port == port && n-- == 0)
            return address;
    }
    return NULL;
}

static struct route *route_find(const struct sockaddr *destination)
{
    list_for_each (node, &routes) {
        struct route *route = list_entry(node, struct route, link);

        if (!route->rule && fake_same_ip((struct sockaddr *)&route->destination, destination))
            return route;
    }
    return NULL;
}

bool fake_rule_for(const struct sockaddr *source, const struct sockaddr *destination)
{
    list_for_each (node, &routes) {
        struct route *route = list_entry(node, struct route, link);

        if (route->rule && fake_same_ip((struct sockaddr *)&route->destination, destination) &&
            fake_same_ip((struct sockaddr *)&route->local, source))
            return true;
    }
    return false;
}

struct fake_address *fake_address_for(const struct sockaddr *destination)
{
    struct route *route = route_find(destination);
    struct fake_address *own = fake_address_find(destination);

    if (route)
        return route->reachable ? fake_address_find((struct sockaddr *)&route->local) : NULL;
    if (own)
        return own;
    list_for_each (node, &fake_addresses) {
        struct fake_address *address = list_entry(node, struct fake_address, link);

        if (same_subnet((struct sockaddr *)&address->addr, destination))
            return address;
    }
    return NULL;
}

static void address_add(const struct sockaddr_storage *addr, struct fake_device *device, unsigned port)
{
    struct fake_address *address = (struct fake_address *)fake_malloc(sizeof(*address));

    address->addr = *addr;
    address->device = device;
    address->port = port;
    list_add_tail(&fake_addresses, &address->link);
}

/* Without the lock's first-use step, which calls this. */
static bool address_add_text(const char *text, const char *device, unsigned port)
{
    struct sockaddr_storage addr;

    if (!fake_parse(text, &addr))
        return false;
    address_add(&addr, device ? fake_device_by_name(device) : NULL, port ? port : 1);
    return true;
}

bool fake_address_add(const char *text, const char *device, unsigned port)
{
    bool added;

    fake_lock();
    added = address_add_text(text, device, port);
    fake_net_announce();
    fake_unlock();
    return added;
}

void fake_address_remove(const char *text)
{
    struct sockaddr_storage addr;
    struct fake_address *address;

    fake_lock();
    if (fake_parse(text, &addr) && (address = fake_address_find((struct sockaddr *)&addr)) != NULL) {
        list_del(&address->link);
        fake_free(address);
        fake_net_announce();
    }
    fake_unlock();
}

static void free_list(struct list *head)
{
    list_for_each_safe (node, head) {
        list_del(node);
        fake_free(node); /* the link is the first member of both kinds */
    }
}

void fake_address_clear(void)
{
    fake_lock();
    free_list(&fake_addresses);
    fake_net_announce();
    fake_unlock();
}

static void route_add(const char *destination, const char *local, bool rule)
{
    struct route *route = (struct route *)fake_malloc(sizeof(*route));

    route->rule = rule;
    fake_lock();
    if (!fake_parse(destination, &route->destination) || (local && !fake_parse(local, &route->local))) {
        fake_violation("fake_route_add: %s is no address", destination);
        fake_free(route);
    } else {
        route->reachable = local != NULL;
        list_add_head(&routes, &route->link);
    }
    fake_unlock();
}

void fake_route_add(const char *destination, const char *local)
{
    route_add(destination, local, false);
}

void fake_route_from(const char *source, const char *destination)
{
    route_add(destination, source, true);
}

void fake_net_reset(void)
{
    free_list(&fake_addresses);
    free_list(&routes);
    address_add_text("10.1.1.1", "fake_ib", 1);
    address_add_text("fd00:1:1::1", "fake_ib", 1);
    address_add_text("10.1.2.1", "fake_iw", 1);
}
