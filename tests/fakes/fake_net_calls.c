/* SPDX-License-Identifier: MIT */

/* The calls by which the code under test sees addresses and routes: getifaddrs, a connected datagram socket, netlink. */

#include "fake_internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CONNECTED 64
#define MAX_NETLINK   16

int __real_connect(int fd, const struct sockaddr *addr, socklen_t length);
int __real_getsockname(int fd, struct sockaddr *addr, socklen_t *length);
int __real_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *addr, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t length);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *length);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t length);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

/* A datagram socket that was bound or "connected", told apart from a later one with the same number by its inode. */
struct connected {
    int fd;
    ino_t inode;
    bool bound;                    /* to an address of its own */
    bool ported;                   /* it has a port: it cannot be bound before it is unconnected */
    struct sockaddr_storage local; /* if bound or connected */
};

struct ifaddrs_block {
    struct ifaddrs entry;
    struct sockaddr_storage addr, mask;
    char name[32];
};

/* A netlink socket is one end of a pair; the announcements go in at the other. */
struct netlink {
    int fd; /* the caller's end; 0: unused entry */
    ino_t inode;
    int other;
};

static struct connected connected[MAX_CONNECTED];
static unsigned connected_next;
static struct netlink netlinks[MAX_NETLINK];

static struct ifaddrs *ifaddrs_entry(const struct sockaddr_storage *addr, const char *name, unsigned flags)
{
    struct ifaddrs_block *block = (struct ifaddrs_block *)fake_malloc(sizeof(*block));

    block->addr = *addr;
    block->mask.ss_family = addr->ss_family;
    if (addr->ss_family == AF_INET)
        ((struct sockaddr_in *)&block->mask)->sin_addr.s_addr = htonl(0xffffff00);
    else
        memset(&((struct sockaddr_in6 *)&block->mask)->sin6_addr, 0xff, 8);
    snprintf(block->name, sizeof(block->name), "%s", name);
    block->entry.ifa_name = block->name;
    block->entry.ifa_flags = flags;
    block->entry.ifa_addr = (struct sockaddr *)&block->addr;
    block->entry.ifa_netmask = (struct sockaddr *)&block->mask;
    return &block->entry;
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
    struct fake_call call = { .fn = FAKE_getifaddrs };
    struct sockaddr_storage loopback;
    struct ifaddrs **end = list;
    int err = fake_enter(&call);

    *list = NULL;
    if (!err) {
        fake_parse("127.0.0.1", &loopback);
        *end = ifaddrs_entry(&loopback, "lo", IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
        end = &(*end)->ifa_next;
        fake_parse("::1", &loopback);
        *end = ifaddrs_entry(&loopback, "lo", IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
        end = &(*end)->ifa_next;
        list_for_each (node, &fake_addresses) {
            struct fake_address *address = list_entry(node, struct fake_address, link);
            char name[32];

            snprintf(name, sizeof(name), "%.16s_net%u", address->device ? address->device->device.name : "plain",
                     address->port);
            *end = ifaddrs_entry(&address->addr, name, IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST);
            end = &(*end)->ifa_next;
        }
    }
    return fake_return(fake_leave(&call, err));
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    while (list) {
        struct ifaddrs *next = list->ifa_next;

        fake_free(list); /* the first member of its block */
        list = next;
    }
}

static bool is_ip_datagram(int fd)
{
    int type = 0, domain = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && (domain == AF_INET || domain == AF_INET6);
}

static struct connected *connected_find(int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return NULL;
    for (unsigned i = 0; i < MAX_CONNECTED; i++) {
        if (connected[i].fd == fd && connected[i].inode == info.st_ino)
            return &connected[i];
    }
    return NULL;
}

/* That of an earlier socket with this number, or an unused one: no thread loses what another has just asked for. */
static struct connected *connected_new(int fd)
{
    struct connected *unused = NULL;

    for (unsigned i = 0; i < MAX_CONNECTED; i++) {
        if (connected[i].fd == fd)
            return &connected[i];
        if (connected[i].fd <= 0 && !unused)
            unused = &connected[i];
    }
    return unused ? unused : &connected[connected_next++ % MAX_CONNECTED];
}

/* With the lock. The record of a datagram socket, made if there is none yet; NULL: it is something else. */
static struct connected *connected_of(int fd)
{
    struct connected *entry;
    struct stat info;

    if (!is_ip_datagram(fd) || fstat(fd, &info) != 0)
        return NULL;
    entry = connected_find(fd);
    if (entry)
        return entry;
    entry = connected_new(fd);
    memset(entry, 0, sizeof(*entry));
    entry->fd = fd;
    entry->inode = info.st_ino;
    return entry;
}

static int look_up(struct connected *entry, const struct sockaddr *addr)
{
    struct fake_address *address = fake_address_for(addr);
    struct sockaddr *local = (struct sockaddr *)&entry->local;

    if (entry->bound)
        return address || fake_loopback_ip(addr) || fake_rule_for(local, addr) ? 0 : ENETUNREACH;
    memset(&entry->local, 0, sizeof(entry->local));
    if (!address && !fake_loopback_ip(addr))
        return ENETUNREACH;
    if (address)
        entry->local = address->addr;
    else
        memcpy(&entry->local, addr, fake_sockaddr_size(addr));
    fake_set_port(local, 40000);
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t length)
{
    bool away = addr->sa_family == AF_UNSPEC;
    struct connected *entry = NULL;
    int err = 0;

    fake_lock();
    if (addr->sa_family == AF_INET || addr->sa_family == AF_INET6 || away)
        entry = connected_of(fd);
    if (entry)
        entry->ported = !away;
    if (entry && !away)
        err = look_up(entry, addr);
    fake_unlock();
    return entry && !away ? fake_return(err) : __real_connect(fd, addr, length);
}

int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *length)
{
    struct connected *entry;
    int result = 0;

    fake_lock();
    entry = connected_find(fd);
    if (entry && !entry->local.ss_family)
        entry = NULL;
    if (entry) {
        socklen_t size = fake_sockaddr_size((struct sockaddr *)&entry->local);

        memcpy(addr, &entry->local, *length < size ? *length : size);
        *length = size;
    }
    fake_unlock();
    if (!entry)
        result = __real_getsockname(fd, addr, length);
    return result;
}

/* ---- netlink ---- */

static bool still_open(const struct netlink *entry)
{
    struct stat info;

    return fstat(entry->fd, &info) == 0 && info.st_ino == entry->inode;
}

/* Forgets those that were closed. */
static void netlink_sweep(void)
{
    for (unsigned i = 0; i < MAX_NETLINK; i++) {
        if (netlinks[i].fd && !still_open(&netlinks[i])) {
            close(netlinks[i].other);
            netlinks[i].fd = 0;
        }
    }
}

int fake_net_fds(void)
{
    int count = 0;

    netlink_sweep();
    for (unsigned i = 0; i < MAX_NETLINK; i++)
        count += netlinks[i].fd != 0;
    return count;
}

void fake_net_announce(void)
{
    struct {
        struct nlmsghdr header;
        struct ifaddrmsg address;
    } message = { .header = { .nlmsg_len = sizeof(message), .nlmsg_type = RTM_NEWADDR } };

    netlink_sweep();
    for (unsigned i = 0; i < MAX_NETLINK; i++) {
        if (netlinks[i].fd)
            (void)!send(netlinks[i].other, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* A real one, unless a test makes it fail. */
static int socket_ip(int domain, int type, int protocol)
{
    struct fake_call call = { .fn = FAKE_socket };
    int err = fake_enter(&call), fd = -1;

    if (!err && (fd = __real_socket(domain, type, protocol)) < 0)
        err = errno;
    return fake_return(fake_leave(&call, err)) == 0 ? fd : -1;
}

int __wrap_socket(int domain, int type, int protocol)
{
    struct netlink *entry = NULL;
    struct stat info;
    int pair[2];

    if (domain == AF_INET || domain == AF_INET6)
        return socket_ip(domain, type, protocol);
    if (domain != AF_NETLINK || protocol != NETLINK_ROUTE)
        return __real_socket(domain, type, protocol);
    if (socketpair(AF_UNIX, SOCK_DGRAM | (type & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0, pair) != 0)
        return -1;
    fake_lock();
    netlink_sweep();
    for (unsigned i = 0; i < MAX_NETLINK && !entry; i++)
        entry = netlinks[i].fd ? NULL : &netlinks[i];
    if (entry && fstat(pair[0], &info) == 0) {
        entry->fd = pair[0];
        entry->inode = info.st_ino;
        entry->other = pair[1];
    } else {
        close(pair[1]);
    }
    fake_unlock();
    return pair[0];
}

static int bind_ip(struct connected *entry, const struct sockaddr *addr)
{
    if (entry->ported)
        return EINVAL;
    if (!fake_any_ip(addr) && !fake_loopback_ip(addr) && !fake_address_find(addr))
        return EADDRNOTAVAIL;
    entry->bound = !fake_any_ip(addr);
    entry->ported = true;
    memset(&entry->local, 0, sizeof(entry->local));
    memcpy(&entry->local, addr, fake_sockaddr_size(addr));
    return 0;
}

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t length)
{
    struct connected *entry = NULL;
    bool ours = false;
    int err = 0;

    if (addr->sa_family == AF_INET || addr->sa_family == AF_INET6) {
        fake_lock();
        entry = connected_of(fd);
        if (entry)
            err = bind_ip(entry, addr);
        fake_unlock();
        return entry ? fake_return(err) : __real_bind(fd, addr, length);
    }
    if (addr->sa_family != AF_NETLINK)
        return __real_bind(fd, addr, length);
    fake_lock();
    for (unsigned i = 0; i < MAX_NETLINK; i++)
        ours |= netlinks[i].fd == fd && still_open(&netlinks[i]);
    fake_unlock();
    return ours ? 0 : __real_bind(fd, addr, length);
}
