/* SPDX-License-Identifier: MIT */
#include "address.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#include "ndstatus.h"

#include "engine.h"
#include "log.h"
#include "tunable.h"

/* Which local addresses are RDMA addresses is the kernel's decision, asked for by binding a scratch id to each of them
 * (rdma-mapping.md 8). The netlink socket is read when somebody asks for the list: a change made before the call is then
 * always seen by it, and an idle process is not woken by the system's address traffic. */

#define AGE_SETTLED_NS   1000000000ull /* a device that comes or goes is reported by nobody */
#define AGE_UNSETTLED_NS 100000000ull  /* after a change the kernel fills the device's GID table a little later */
#define SETTLE_NS        2000000000ull

#define LOOK_DESCRIPTORS 4 /* rdma_cm's, the device's, and what libibverbs reads */
#define LOOK_MEMORY      (64 << 10)

/* Reasons are compared by address to tell what changed, so each exists once. */
static const char reason_down[] = "the interface is down";
static const char reason_loopback[] = "a loopback address cannot be used by rdma_cm";
static const char reason_address[] = "not named by NDVERBS_ONLY_ADDRESS";
static const char reason_device[] = "its device is not named by NDVERBS_ONLY_DEVICE";
static const char reason_no_devices[] = "the system has no RDMA device";
static const char reason_no_cm[] = "rdma_cm cannot be used";
static const char reason_no_rdma[] = "no RDMA device has this address";
static const char reason_guid[] = "its device has the node GUID 0, which rdma_cm cannot handle";
static const char reason_bind[] = "rdma_cm refuses the address";
static const char reason_query[] = "its port cannot be queried";
static const char reason_port[] = "its port is not active";

static pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER; /* one builder; held across system calls */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;  /* leaf: the three below */
static struct address_list *current;
static uint64_t built_at, changed_at; /* CLOCK_MONOTONIC, ns; 0: never */

static uint32_t generation = 1, built_generation; /* atomic; unequal: the list is stale */
static int netlink_fd = -1;                       /* under build_lock */
static int unavailable;                           /* what was last logged as missing, under build_lock */

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

void address_list_invalidate(void)
{
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
}

/* Without the socket the list's age alone decides. */
static void netlink_open(void)
{
    struct sockaddr_nl address = { .nl_family = AF_NETLINK,
                                   .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    int fd;

    if (netlink_fd >= 0)
        return;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        log_info("netlink: %s; address changes are seen a second later", strerror(errno));
    netlink_fd = fd;
}

/* Takes every waiting message; ENOBUFS (messages were lost) counts as one. */
static void netlink_drain(void)
{
    char message[64];
    bool changed = false;
    ssize_t got;

    if (netlink_fd < 0)
        return;
    do {
        got = recv(netlink_fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
        if (got > 0 || (got < 0 && errno == ENOBUFS))
            changed = true;
    } while (got > 0 || (got < 0 && (errno == EINTR || errno == ENOBUFS)));
    if (changed)
        address_list_invalidate();
}

/* Is `name` an entry of the comma-separated list? */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (list && *list) {
        const char *end = strchrnul(list, ',');

        if ((size_t)(end - list) == length && strncmp(list, name, length) == 0)
            return true;
        list = *end ? end + 1 : end;
    }
    return false;
}

bool address_device_allowed(const char *device)
{
    return !tunables()->only_device || is_listed(tunables()->only_device, device);
}

/* Compared as addresses, since IPv6 has many spellings. */
static bool address_allowed(const struct address_entry *entry)
{
    const char *item = tunables()->only_address;

    if (!item)
        return true;
    while (*item) {
        const char *end = strchrnul(item, ',');
        struct in6_addr v6;
        struct in_addr v4;
        char text[64];

        snprintf(text, sizeof(text), "%.*s", (int)(end - item), item);
        if (entry->address.sa.sa_family == AF_INET && inet_pton(AF_INET, text, &v4) == 1 &&
            v4.s_addr == entry->address.v4.sin_addr.s_addr)
            return true;
        if (entry->address.sa.sa_family == AF_INET6 && inet_pton(AF_INET6, text, &v6) == 1 &&
            IN6_ARE_ADDR_EQUAL(&v6, &entry->address.v6.sin6_addr))
            return true;
        item = *end ? end + 1 : end;
    }
    return false;
}

/* What the bound id says about its device. */
static void probe_device(struct address_entry *entry, struct rdma_cm_id *id)
{
    struct ibv_port_attr attr;

    if (!id->verbs) {
        entry->reason = reason_no_rdma; /* 127.0.0.1 on rxe binds without a device */
        return;
    }
    snprintf(entry->device, sizeof(entry->device), "%s", ibv_get_device_name(id->verbs->device));
    entry->port = id->port_num;
    entry->guid = be64toh(ibv_get_device_guid(id->verbs->device));
    entry->adapter_id = entry->guid + (entry->port ? entry->port - 1u : 0);
    if (entry->guid == 0) {
        entry->reason = reason_guid;
    } else if (!address_device_allowed(entry->device)) {
        entry->reason = reason_device;
    } else if ((entry->error = ibv_query_port(id->verbs, entry->port, &attr)) != 0) {
        entry->reason = reason_query;
        log_warn("ibv_query_port of %s port %u: %s", entry->device, entry->port, strerror(entry->error));
    } else if (attr.state != IBV_PORT_ACTIVE) {
        entry->reason = reason_port;
    }
}

/* A bound id that never did anything is destroyed at once, so that needs no worker (an id in use does: cmid.h). */
static void probe(struct address_entry *entry, struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id;

    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) {
        entry->error = errno;
        entry->reason = reason_no_cm;
        return;
    }
    if (rdma_bind_addr(id, &entry->address.sa) == 0) {
        probe_device(entry, id);
    } else {
        entry->error = errno;
        entry->reason = errno == ENODEV || errno == EADDRNOTAVAIL ? reason_no_rdma : reason_bind;
    }
    rdma_destroy_id(id);
}

/* Devices whose GUID is 0 crash librdmacm 44 once an address resolves over them (rdma-mapping.md 4); all that can be done
 * is to say so, since the address itself then looks like one without a device. */
static int count_devices(void)
{
    static int before; /* under build_lock */
    struct ibv_context **contexts;
    struct ibv_device **devices;
    int count = 0;

    errno = 0;
    devices = ibv_get_device_list(&count);
    if (!devices)
        return 0;
    for (int i = 0; i < count; i++) {
        if (ibv_get_device_guid(devices[i]) == 0)
            log_info("%s is not used: its node GUID is 0", ibv_get_device_name(devices[i]));
    }
    ibv_free_device_list(devices);
    /* The probes made librdmacm open every device, and it lets go of one that is being deleted in this call only. */
    if (count < before && (contexts = rdma_get_devices(NULL)) != NULL)
        rdma_free_devices(contexts);
    before = count;
    return count;
}

/* One line when the library becomes unable to find anything, not one per look. */
static void report_missing(int what, const char *text, int error)
{
    if (unavailable == what)
        return;
    unavailable = what;
    if (what)
        log_warn("%s%s%s", text, error ? ": " : "", error ? strerror(error) : "");
}

static const char *open_channel(struct rdma_event_channel **channel, int *error)
{
    *channel = NULL;
    *error = 0;
    if (count_devices() == 0) {
        *error = errno;
        report_missing(
            1, "no RDMA device: no driver is loaded, or /dev/infiniband and /sys/class/infiniband are not there",
            *error);
        return reason_no_devices;
    }
    *channel = rdma_create_event_channel();
    if (!*channel) {
        *error = errno ? errno : ENODEV;
        report_missing(
            2, "rdma_create_event_channel failed: is rdma_ucm loaded and /dev/infiniband/rdma_cm accessible?", *error);
        return reason_no_cm;
    }
    report_missing(0, "", 0);
    return NULL;
}

static int compare_addresses(const union address *a, const union address *b)
{
    if (a->sa.sa_family != b->sa.sa_family)
        return a->sa.sa_family == AF_INET ? -1 : 1;
    if (a->sa.sa_family == AF_INET)
        return memcmp(&a->v4.sin_addr, &b->v4.sin_addr, sizeof(a->v4.sin_addr));
    if (a->v6.sin6_scope_id != b->v6.sin6_scope_id)
        return a->v6.sin6_scope_id < b->v6.sin6_scope_id ? -1 : 1;
    return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr));
}

static int compare_entries(const void *left, const void *right)
{
    const struct address_entry *a = left, *b = right;
    int order;

    if (!a->reason != !b->reason)
        return a->reason ? 1 : -1;
    order = strverscmp(a->device, b->device);
    if (order == 0)
        order = (int)a->port - (int)b->port;
    if (order == 0 && a->reason)
        order = strverscmp(a->netdev, b->netdev);
    return order ? order : compare_addresses(&a->address, &b->address);
}

static const struct address_entry *entry_of(const struct address_list *list, const union address *address)
{
    for (size_t i = 0; i < list->count; i++) {
        if (compare_addresses(&list->entries[i].address, address) == 0)
            return &list->entries[i];
    }
    return NULL;
}

/* False: no address of ours, or listed before (an alias). */
static bool take_address(struct address_list *list, const struct ifaddrs *from)
{
    struct address_entry *entry = &list->entries[list->count];

    memset(entry, 0, sizeof(*entry));
    if (!from->ifa_addr ||
        address_import(from->ifa_addr, address_length(from->ifa_addr), &entry->address) != ND_SUCCESS)
        return false;
    address_set_port(&entry->address.sa, 0);
    if (entry_of(list, &entry->address))
        return false;
    snprintf(entry->netdev, sizeof(entry->netdev), "%s", from->ifa_name);
    if (!(from->ifa_flags & IFF_UP))
        entry->reason = reason_down;
    else if (address_is_loopback(&entry->address.sa))
        entry->reason = reason_loopback;
    else if (!address_allowed(entry))
        entry->reason = reason_address;
    list->count++;
    return true;
}

/* Each new decline one line; `old` is the list before. */
static void report_declines(const struct address_list *list, const struct address_list *old)
{
    char text[64];

    for (size_t i = 0; i < list->count; i++) {
        const struct address_entry *entry = &list->entries[i];
        const struct address_entry *before = old ? entry_of(old, &entry->address) : NULL;

        if (entry->reason && (!before || before->reason != entry->reason))
            log_info("%s (%s) is not used: %s%s%s", address_text(&entry->address.sa, text, sizeof(text)), entry->netdev,
                     entry->reason, entry->error ? ": " : "", entry->error ? strerror(entry->error) : "");
    }
}

static bool is_want(int error)
{
    return error == ENOMEM || error == ENOBUFS || error == EMFILE || error == ENFILE;
}

/* Is what one look takes at a time not to be had? rdma-core's libraries tell that as "no devices" and "no such device". */
static bool in_want(void)
{
    void *volatile memory = malloc(LOOK_MEMORY); /* or a compiler may leave out both calls */
    int fd[LOOK_DESCRIPTORS], count = 0;
    bool want = !memory;

    free(memory);
    while (count < LOOK_DESCRIPTORS && (fd[count] = open("/", O_PATH | O_CLOEXEC)) >= 0)
        count++;
    want |= count < LOOK_DESCRIPTORS && is_want(errno);
    while (count > 0)
        close(fd[--count]);
    return want;
}

/* Does `list` miss an address that `old` has, for want of memory or descriptors rather than because it is gone? */
static bool is_doubtful(const struct address_list *list, const struct address_list *old)
{
    bool missing = false, want = is_want(list->error);

    for (size_t i = 0; i < old->count && !old->entries[i].reason; i++) {
        const struct address_entry *entry = entry_of(list, &old->entries[i].address);

        missing |= !entry || entry->reason;
        want |= entry && is_want(entry->error);
    }
    return missing && (want || in_want());
}

/* NULL: out of memory. */
static struct address_list *build(void)
{
    struct rdma_event_channel *channel;
    struct ifaddrs *addresses = NULL;
    struct address_list *list;
    const char *missing;
    size_t count = 0;
    int error, unknown = 0;

    if (getifaddrs(&addresses) != 0) {
        unknown = errno;
        if (unknown == ENOMEM)
            return NULL;
        log_warn("getifaddrs: %s", strerror(unknown));
        addresses = NULL;
    }
    for (const struct ifaddrs *from = addresses; from; from = from->ifa_next)
        count++;
    list = malloc(sizeof(*list) + count * sizeof(list->entries[0]));
    if (!list)
        goto out;
    list->refs = 1;
    list->error = unknown;
    list->count = 0;
    missing = open_channel(&channel, &error);
    for (const struct ifaddrs *from = addresses; from; from = from->ifa_next) {
        struct address_entry *entry = &list->entries[list->count];

        if (!take_address(list, from) || entry->reason)
            continue;
        if (channel) {
            probe(entry, channel);
        } else {
            entry->reason = missing;
            entry->error = error;
        }
    }
    if (channel)
        rdma_destroy_event_channel(channel);
    qsort(list->entries, list->count, sizeof(list->entries[0]), compare_entries);
out:
    if (addresses)
        freeifaddrs(addresses);
    return list;
}

static bool is_fresh_locked(void)
{
    uint64_t now = now_ns();

    if (!current || __atomic_load_n(&generation, __ATOMIC_ACQUIRE) != built_generation)
        return false;
    return now - built_at < (now - changed_at < SETTLE_NS ? AGE_UNSETTLED_NS : AGE_SETTLED_NS);
}

static struct address_list *ref_locked(void)
{
    if (current)
        __atomic_add_fetch(&current->refs, 1, __ATOMIC_RELAXED);
    return current;
}

/* `aged`: a list that is merely old will do, one that is known to be stale only where there is no memory for another. */
static struct address_list *get(bool aged)
{
    struct address_list *list, *old;
    uint32_t seen;

    if (engine_dead() || !engine_watch_fork())
        return NULL;
    if (engine_on_loop()) {
        pthread_mutex_lock(&list_lock);
        list = ref_locked();
        pthread_mutex_unlock(&list_lock);
        if (list)
            return list;
    }
    pthread_mutex_lock(&build_lock);
    netlink_open();
    address_prepare();
    netlink_drain();
    seen = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&list_lock);
    list = is_fresh_locked() || (aged && current && seen == built_generation) ? ref_locked() : NULL;
    if (!list && seen != built_generation)
        changed_at = now_ns();
    old = list ? NULL : ref_locked();
    pthread_mutex_unlock(&list_lock);
    if (!list) {
        list = build();
        if (old && (list ? is_doubtful(list, old) : aged)) {
            log_info("the list of addresses stays as it was: memory or descriptors are wanting");
            free(list);
            list = old;
            old = NULL;
        } else if (list) {
            report_declines(list, old);
            pthread_mutex_lock(&list_lock);
            if (current)
                address_list_put(current);
            current = list;
            built_generation = seen;
            built_at = now_ns();
            ref_locked();
            pthread_mutex_unlock(&list_lock);
        }
        address_list_put(old);
    }
    pthread_mutex_unlock(&build_lock);
    return list;
}

struct address_list *address_list_get(void)
{
    return get(false);
}

void address_list_put(struct address_list *list)
{
    if (list && __atomic_sub_fetch(&list->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(list);
}

static bool is_exported(const struct address_entry *entry, const uint64_t *adapter_id)
{
    return !entry->reason && (!adapter_id || entry->adapter_id == *adapter_id);
}

size_t address_list_bytes(const struct address_list *list, const uint64_t *adapter_id)
{
    size_t bytes = offsetof(SOCKET_ADDRESS_LIST, Address);

    for (size_t i = 0; i < list->count; i++) {
        if (is_exported(&list->entries[i], adapter_id))
            bytes += sizeof(SOCKET_ADDRESS) + address_length(&list->entries[i].address.sa);
    }
    return bytes < sizeof(SOCKET_ADDRESS_LIST) ? sizeof(SOCKET_ADDRESS_LIST) : bytes;
}

void address_list_export(const struct address_list *list, const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out)
{
    INT count = 0;
    char *to;

    for (size_t i = 0; i < list->count; i++)
        count += is_exported(&list->entries[i], adapter_id);
    out->iAddressCount = count;
    to = (char *)&out->Address[count];
    count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct address_entry *entry = &list->entries[i];
        size_t length = address_length(&entry->address.sa);

        if (!is_exported(entry, adapter_id))
            continue;
        memcpy(to, &entry->address, length);
        out->Address[count].lpSockaddr = (struct sockaddr *)to;
        out->Address[count].iSockaddrLength = (INT)length;
        to += length;
        count++;
    }
}

NTSTATUS address_list_query(const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out, size_t *size)
{
    struct address_list *list = address_list_get();
    NTSTATUS status = ND_SUCCESS;
    size_t needed;

    if (!list) {
        *size = 0;
        return ND_NO_MEMORY;
    }
    needed = address_list_bytes(list, adapter_id);
    if (!out || *size < needed)
        status = ND_BUFFER_OVERFLOW;
    else
        address_list_export(list, adapter_id, out);
    *size = needed;
    address_list_put(list);
    return status;
}

/* The first usable entry that `matches`; a miss in a list that was there before asks the system once more. */
static NTSTATUS find(bool (*matches)(const struct address_entry *entry, const void *what), const void *what,
                     NTSTATUS missing, struct address_entry *out)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        struct address_list *list = get(attempt == 0);
        bool found = false;

        if (!list)
            return engine_dead() ? missing : ND_NO_MEMORY;
        for (size_t i = 0; i < list->count && !found; i++) {
            found = !list->entries[i].reason && matches(&list->entries[i], what);
            if (found && out)
                *out = list->entries[i];
        }
        address_list_put(list);
        if (found)
            return ND_SUCCESS;
        if (attempt == 0)
            address_list_invalidate();
    }
    return missing;
}

static bool matches_address(const struct address_entry *entry, const void *what)
{
    return address_equal(&entry->address.sa, what);
}

NTSTATUS address_find(const struct sockaddr *address, struct address_entry *out)
{
    if (address_is_any(address) || address_is_loopback(address))
        return ND_INVALID_ADDRESS;
    return find(matches_address, address, ND_INVALID_ADDRESS, out);
}

NTSTATUS address_find_own(union address *address, struct address_entry *out)
{
    NTSTATUS status = address_find(&address->sa, out);

    if (status == ND_SUCCESS && address->sa.sa_family == AF_INET6)
        address->v6.sin6_scope_id = out->address.v6.sin6_scope_id;
    return status;
}

static bool matches_adapter(const struct address_entry *entry, const void *what)
{
    return entry->adapter_id == *(const uint64_t *)what;
}

NTSTATUS address_find_adapter(uint64_t adapter_id, struct address_entry *out)
{
    return find(matches_adapter, &adapter_id, ND_INVALID_PARAMETER, out);
}

struct adapter_address {
    uint64_t adapter_id;
    const struct sockaddr *address;
};

static bool matches_both(const struct address_entry *entry, const void *what)
{
    const struct adapter_address *wanted = what;

    return entry->adapter_id == wanted->adapter_id && address_equal(&entry->address.sa, wanted->address);
}

uint32_t address_scope(uint64_t adapter_id, const struct sockaddr *address)
{
    const struct adapter_address wanted = { adapter_id, address };
    struct address_entry entry;

    if (address->sa_family != AF_INET6 || find(matches_both, &wanted, ND_INVALID_ADDRESS, &entry) != ND_SUCCESS)
        return 0;
    return entry.address.v6.sin6_scope_id;
}

struct adapter_family {
    uint64_t adapter_id;
    int family;
};

static bool matches_family(const struct address_entry *entry, const void *what)
{
    const struct adapter_family *wanted = what;

    return entry->adapter_id == wanted->adapter_id &&
           (wanted->family == AF_UNSPEC || entry->address.sa.sa_family == wanted->family);
}

NTSTATUS address_of_adapter(uint64_t adapter_id, int family, union address *out)
{
    const struct adapter_family wanted = { adapter_id, family };
    struct address_entry entry;
    NTSTATUS status = find(matches_family, &wanted, ND_INVALID_ADDRESS, &entry);

    if (status == ND_SUCCESS)
        *out = entry.address;
    return status;
}

static bool matches_device(const struct address_entry *entry, const void *what)
{
    return strcmp(entry->device, what) == 0;
}

bool address_of_device(const char *device, struct address_entry *out)
{
    return find(matches_device, device, ND_INVALID_ADDRESS, out) == ND_SUCCESS;
}
