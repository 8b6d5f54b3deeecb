/* SPDX-License-Identifier: MIT */

/* Which local addresses are RDMA addresses, and look-ups among them. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "fakes.h"
#include "harness.h"
#include "ndstatus.h"

#include "core/address.h"
#include "core/engine.h"
#include "core/tunable.h"
#include "steps.h"

static union address parse(const char *text)
{
    union address address;

    memset(&address, 0, sizeof(address));
    if (strchr(text, ':')) {
        char plain[64];
        const char *scope = strchr(text, '%');

        snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(text, "%"), text);
        address.v6.sin6_family = AF_INET6;
        ok_int(inet_pton(AF_INET6, plain, &address.v6.sin6_addr), ==, 1);
        address.v6.sin6_scope_id = scope ? (uint32_t)atoi(scope + 1) : 0;
    } else {
        address.v4.sin_family = AF_INET;
        ok_int(inet_pton(AF_INET, text, &address.v4.sin_addr), ==, 1);
    }
    return address;
}

static const struct address_entry *entry_of(const struct address_list *list, const char *text)
{
    union address wanted = parse(text);

    for (size_t i = 0; i < list->count; i++) {
        if (address_equal(&list->entries[i].address.sa, &wanted.sa))
            return &list->entries[i];
    }
    harness_fail(__FILE__, __LINE__, "%s is not in the list", text);
}

static unsigned usable(const struct address_list *list)
{
    unsigned count = 0;

    for (size_t i = 0; i < list->count; i++) {
        count += !list->entries[i].reason;
        if (i > 0 && !list->entries[i].reason)
            ok(!list->entries[i - 1].reason); /* usable ones first */
    }
    return count;
}

SETUP
{
    fake_reset();
    fake_loop_test(engine_on_loop);
}

TEARDOWN
{
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
}

/* tests/lists: D29. */
TEST(address_list__usable_and_declined)
{
    struct address_list *list;
    const struct address_entry *entry;

    ok(fake_address_add("192.168.7.1", NULL, 0));
    list = address_list_get();
    ok_uint(usable(list), ==, 3);
    entry = entry_of(list, "10.1.1.1");
    ok_ptr(entry->reason, ==, NULL);
    ok_str(entry->device, "fake_ib");
    ok_int(entry->port, ==, 1);
    ok_uint(entry->adapter_id, ==, entry->guid);
    ok_uint(entry->guid, !=, 0);
    ok_int(address_port(&entry->address.sa), ==, 0);
    ok_str(entry_of(list, "fd00:1:1::1")->device, "fake_ib");
    ok_str(entry_of(list, "10.1.2.1")->device, "fake_iw");
    entry = entry_of(list, "192.168.7.1");
    ok(strstr(entry->reason, "no RDMA device"));
    ok_int(entry->error, ==, ENODEV);
    ok(strstr(entry_of(list, "127.0.0.1")->reason, "loopback"));
    ok(strstr(entry_of(list, "::1")->reason, "loopback"));
    address_list_put(list);
}

/* tests/lists: D33. */
TEST(address_list__order_does_not_depend_on_the_system)
{
    char first[1024] = "", second[1024] = "", text[64];
    struct address_list *list;

    fake_address_clear();
    fake_address_add("10.1.2.1", "fake_iw", 1);
    fake_address_add("fd00:1:1::1", "fake_ib", 1);
    fake_address_add("10.1.1.9", "fake_ib", 1);
    fake_address_add("10.1.1.1", "fake_ib", 1);
    list = address_list_get();
    ok_uint(usable(list), ==, 4);
    for (unsigned i = 0; i < 4; i++)
        strcat(strcat(first, address_text(&list->entries[i].address.sa, text, sizeof(text))), " ");
    address_list_put(list);
    ok_str(first, "10.1.1.1 10.1.1.9 fd00:1:1::1 10.1.2.1 ");

    fake_address_clear();
    fake_address_add("10.1.1.1", "fake_ib", 1);
    fake_address_add("10.1.1.9", "fake_ib", 1);
    fake_address_add("fd00:1:1::1", "fake_ib", 1);
    fake_address_add("10.1.2.1", "fake_iw", 1);
    address_list_invalidate();
    list = address_list_get();
    for (unsigned i = 0; i < 4; i++)
        strcat(strcat(second, address_text(&list->entries[i].address.sa, text, sizeof(text))), " ");
    address_list_put(list);
    ok_str(second, first);
}

TEST(address_list__second_port_is_another_adapter)
{
    struct address_list *list;
    uint64_t first, second;

    fake_device_add("fake_two", IBV_TRANSPORT_IB, 2);
    fake_address_add("10.3.0.1", "fake_two", 1);
    fake_address_add("10.3.0.2", "fake_two", 2);
    fake_address_add("10.3.0.3", "fake_two", 1);
    list = address_list_get();
    first = entry_of(list, "10.3.0.1")->adapter_id;
    second = entry_of(list, "10.3.0.2")->adapter_id;
    ok_uint(second, ==, first + 1);
    ok_uint(entry_of(list, "10.3.0.3")->adapter_id, ==, first);
    address_list_put(list);
}

TEST(address_list__bind_without_a_device_is_no_rdma_address)
{
    struct address_list *list = address_list_get();

    /* 127.0.0.1 binds on rxe and leaves verbs NULL: never probed here, and never usable. */
    ok(entry_of(list, "127.0.0.1")->reason);
    for (int i = 0; fake_log_find(FAKE_rdma_bind_addr, i); i++)
        ok(!address_is_loopback((const struct sockaddr *)&fake_log_find(FAKE_rdma_bind_addr, i)->arg.addr.addr));
    address_list_put(list);
}

static void clear_verbs(struct fake_call *call, void *arg)
{
    (void)arg;
    ((struct rdma_cm_id *)(uintptr_t)call->object)->verbs = NULL;
}

TEST(address_list__verbs_not_set)
{
    struct address_list *list;

    fake_address_clear();
    fake_address_add("10.1.1.1", "fake_ib", 1);
    fake_after(FAKE_rdma_bind_addr, clear_verbs, NULL);
    list = address_list_get();
    ok_uint(usable(list), ==, 0);
    ok(strstr(entry_of(list, "10.1.1.1")->reason, "no RDMA device"));
    address_list_put(list);
}

TEST(address_list__guid_zero)
{
    struct address_list *list;

    fake_device_guid("fake_ib", 0);
    list = address_list_get();
    ok_uint(usable(list), ==, 1);
    ok(strstr(entry_of(list, "10.1.1.1")->reason, "GUID"));
    address_list_put(list);
}

TEST(address_list__port_down)
{
    struct address_list *list;

    fake_port_attr("fake_iw", 1)->state = IBV_PORT_DOWN;
    list = address_list_get();
    ok_uint(usable(list), ==, 2);
    ok(strstr(entry_of(list, "10.1.2.1")->reason, "not active"));
    address_list_put(list);
}

/* tests/lists: D28, D78. */
TEST(address_list__pinned_device)
{
    struct address_list *list;

    setenv("NDVERBS_ONLY_DEVICE", "other,fake_iw", 1);
    tunables_reload();
    list = address_list_get();
    ok_uint(usable(list), ==, 1);
    ok_str(list->entries[0].device, "fake_iw");
    ok(strstr(entry_of(list, "10.1.1.1")->reason, "NDVERBS_ONLY_DEVICE"));
    address_list_put(list);
}

/* tests/lists: D28, D78. */
TEST(address_list__pinned_address)
{
    struct address_list *list;

    setenv("NDVERBS_ONLY_ADDRESS", "10.1.2.1,fd00:1:1:0:0::1", 1);
    tunables_reload();
    list = address_list_get();
    ok_uint(usable(list), ==, 2);
    ok_ptr(entry_of(list, "10.1.2.1")->reason, ==, NULL);
    ok_ptr(entry_of(list, "fd00:1:1::1")->reason, ==, NULL);
    ok(strstr(entry_of(list, "10.1.1.1")->reason, "NDVERBS_ONLY_ADDRESS"));
    address_list_put(list);
}

/* tests/lists: D76. */
TEST(address_list__no_devices)
{
    struct address_list *list;

    fake_device_remove("fake_ib");
    fake_device_remove("fake_iw");
    list = address_list_get();
    ok(list != NULL);
    ok_uint(usable(list), ==, 0);
    ok_uint(fake_count(FAKE_rdma_create_event_channel), ==, 0);
    address_list_put(list);
}

/* tests/lists: D77. */
TEST(address_list__foreign_failures)
{
    static const struct {
        enum fake_fn fn;
        int error;
        unsigned usable;
    } rows[] = {
        { FAKE_ibv_get_device_list, ENOSYS, 0 },
        { FAKE_rdma_create_event_channel, ENOENT, 0 },
        { FAKE_rdma_create_event_channel, EACCES, 0 },
        { FAKE_rdma_create_id, ENOMEM, 0 },
        { FAKE_rdma_bind_addr, EADDRNOTAVAIL, 0 },
        { FAKE_rdma_bind_addr, EMFILE, 0 },
        { FAKE_ibv_query_port, EINVAL, 0 },
        { FAKE_getifaddrs, EMFILE, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address_list *list;

        fake_fail_always(rows[i].fn, rows[i].error);
        address_list_invalidate();
        list = address_list_get();
        ok(list != NULL);
        ok_msg(usable(list) == rows[i].usable, "%s failing: %u usable", fake_name(rows[i].fn), usable(list));
        for (size_t k = 0; k < list->count; k++)
            ok(list->entries[k].reason != NULL);
        address_list_put(list);
        fake_fail_clear(rows[i].fn);
        ok_str(fake_leaks(), "");
    }
    address_list_invalidate();
    {
        struct address_list *list = address_list_get();

        ok_uint(usable(list), ==, 3); /* and everything is back */
        address_list_put(list);
    }
}

static void take_descriptors(struct fake_call *call, void *arg)
{
    const struct rlimit none = { .rlim_cur = 3, .rlim_max = ((struct rlimit *)arg)->rlim_max };

    (void)call;
    ok_int(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
}

TEST(address_list__stays_where_memory_or_descriptors_are_wanting)
{
    static const struct {
        enum fake_fn fn;
        int error;
        bool no_descriptors; /* what is wrong the error does not tell */
        bool stays;
    } rows[] = {
        { FAKE_getifaddrs, EMFILE, false, true },           { FAKE_getifaddrs, EACCES, false, false },
        { FAKE_ibv_get_device_list, ENOMEM, false, true },  { FAKE_ibv_get_device_list, ENOSYS, true, true },
        { FAKE_ibv_get_device_list, ENOSYS, false, false }, { FAKE_rdma_create_event_channel, ENFILE, false, true },
        { FAKE_rdma_create_id, ENOMEM, false, true },       { FAKE_rdma_bind_addr, ENOBUFS, false, true },
        { FAKE_rdma_bind_addr, ENODEV, true, true },        { FAKE_rdma_bind_addr, ENODEV, false, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address_list *list = address_list_get(), *during, *after;
        struct rlimit limit;

        ok_uint(usable(list), ==, 3);
        ok_int(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        fake_fail_always(rows[i].fn, rows[i].error);
        address_list_invalidate();
        if (rows[i].no_descriptors)
            fake_on(rows[i].fn, take_descriptors, &limit);
        during = address_list_get();
        ok_int(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        fake_fail_clear(rows[i].fn);
        ok_msg((during == list) == rows[i].stays, "row %zu, %s failing: %u usable", i, fake_name(rows[i].fn),
               usable(during));
        if (!rows[i].stays)
            address_list_invalidate();
        after = address_list_get(); /* one that only stayed is looked for again */
        ok_ptr(after, !=, during);
        ok_uint(usable(after), ==, 3);
        address_list_put(after);
        address_list_put(during);
        address_list_put(list);
        ok_str(fake_leaks(), "");
    }
}

TEST(address_list__out_of_memory)
{
    struct address_list *list;
    unsigned n = 1;

    for (;; n++) {
        address_list_invalidate();
        fake_alloc_fail(n);
        list = address_list_get();
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        address_list_put(list);
        ok_str(fake_leaks(), "");
    }
    fake_alloc_clear();
    ok_uint(n, >, 1);
    ok_uint(usable(list), ==, 3);
    address_list_put(list);
}

TEST(address_find__out_of_memory)
{
    union address own = parse("10.1.1.1"), foreign = parse("10.9.9.9");

    ok_status(address_find(&own.sa, NULL), ND_SUCCESS);
    for (unsigned n = 1;; n++) {
        address_list_invalidate();
        fake_alloc_fail(n);
        ok_status(address_find(&own.sa, NULL), ND_SUCCESS);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
    }
    fake_alloc_clear();
    fake_alloc_fail(1);
    ok_status(address_find(&foreign.sa, NULL), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_status(address_find(&foreign.sa, NULL), ND_INVALID_ADDRESS);
}

TEST(address_list__kept_until_something_changes)
{
    struct address_list *list = address_list_get(), *again = address_list_get(), *changed;

    ok_ptr(list, ==, again);
    ok_uint(fake_count(FAKE_getifaddrs), ==, 1);
    fake_address_add("10.1.1.77", "fake_ib", 1);
    address_list_invalidate();
    changed = address_list_get();
    ok_ptr(changed, !=, list);
    ok_uint(usable(changed), ==, 4);
    ok_uint(usable(list), ==, 3); /* who holds the old one keeps it */
    address_list_put(changed);
    address_list_put(again);
    address_list_put(list);
}

TEST(address_list__on_loop_nothing_is_probed)
{
    struct address_list *list = address_list_get(), *known;
    unsigned ids = fake_count(FAKE_rdma_create_id);

    address_list_invalidate();
    steps_set_on_loop(true);
    known = address_list_get();
    steps_set_on_loop(false);
    ok_ptr(known, ==, list);
    ok_uint(fake_count(FAKE_rdma_create_id), ==, ids);
    address_list_put(known);
    address_list_put(list);
}

TEST(address_list__forked_child)
{
    steps_set_dead(true);
    ok_ptr(address_list_get(), ==, NULL);
}

TEST(address_find__by_address)
{
    struct address_entry entry;
    union address address = parse("10.1.2.1");

    address_set_port(&address.sa, 7777);
    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    ok_str(entry.device, "fake_iw");
    address = parse("10.1.2.2");
    ok_status(address_find(&address.sa, &entry), ND_INVALID_ADDRESS);
    address = parse("127.0.0.1");
    ok_status(address_find(&address.sa, NULL), ND_INVALID_ADDRESS);
    address = parse("0.0.0.0");
    ok_status(address_find(&address.sa, NULL), ND_INVALID_ADDRESS);
    address = parse("::");
    ok_status(address_find(&address.sa, NULL), ND_INVALID_ADDRESS);
}

TEST(address_find__link_local_scope)
{
    union address address = parse("fe80::5");
    struct address_entry entry;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    ok_uint(entry.address.v6.sin6_scope_id, ==, 3);
    address.v6.sin6_scope_id = 3;
    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    address.v6.sin6_scope_id = 4;
    ok_status(address_find(&address.sa, &entry), ND_INVALID_ADDRESS);
}

TEST(address_scope__by_adapter)
{
    union address address = parse("fe80::5"), other = parse("fe80::6"), four = parse("10.1.1.1"),
                  on_iw = parse("10.1.2.1");
    struct address_entry ib, iw;

    ok(fake_address_add("fe80::6%4", "fake_iw", 1));
    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    address_list_invalidate();
    ok_status(address_find(&four.sa, &ib), ND_SUCCESS);
    ok_status(address_find(&on_iw.sa, &iw), ND_SUCCESS);
    ok_uint(address_scope(ib.adapter_id, &address.sa), ==, 3);
    ok_uint(address_scope(iw.adapter_id, &other.sa), ==, 4);
    ok_uint(address_scope(ib.adapter_id, &other.sa), ==, 0);
    ok_uint(address_scope(ib.adapter_id, &four.sa), ==, 0);
}

TEST(address_find__added_at_run_time)
{
    union address address = parse("10.1.1.42");

    ok_status(address_find(&address.sa, NULL), ND_INVALID_ADDRESS);
    fake_address_add("10.1.1.42", "fake_ib", 1); /* nothing tells: the miss asks again */
    ok_status(address_find(&address.sa, NULL), ND_SUCCESS);
}

TEST(address_find_adapter__known_and_unknown)
{
    union address address = parse("10.1.2.1"), found;
    struct address_entry entry, other;

    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    ok_status(address_find_adapter(entry.adapter_id, &other), ND_SUCCESS);
    ok_str(other.device, "fake_iw");
    ok_status(address_find_adapter(12345, &other), ND_INVALID_PARAMETER);
    ok_status(address_of_adapter(entry.adapter_id, AF_INET, &found), ND_SUCCESS);
    ok(address_equal(&found.sa, &address.sa));
    ok_status(address_of_adapter(entry.adapter_id, AF_INET6, &found), ND_INVALID_ADDRESS);
    ok_status(address_of_adapter(entry.adapter_id, AF_UNSPEC, &found), ND_SUCCESS);
}

TEST(address_import__lengths_and_families)
{
    union address v4 = parse("10.1.1.1"), v6 = parse("fd00:1:1::1"), out;

    memset(v4.v4.sin_zero, 0xee, sizeof(v4.v4.sin_zero));
    ok_status(address_import(NULL, 16, &out), ND_INVALID_ADDRESS);
    ok_status(address_import(&v4.sa, 0, &out), ND_INVALID_ADDRESS);
    ok_status(address_import(&v4.sa, 1, &out), ND_INVALID_ADDRESS);
    ok_status(address_import(&v4.sa, 15, &out), ND_INVALID_ADDRESS);
    ok_status(address_import(&v4.sa, 16, &out), ND_SUCCESS);
    ok_int(out.v4.sin_zero[0], ==, 0);
    ok_status(address_import(&v4.sa, sizeof(struct sockaddr_storage), &out), ND_SUCCESS);
    ok_status(address_import(&v6.sa, 27, &out), ND_INVALID_ADDRESS);
    ok_status(address_import(&v6.sa, 28, &out), ND_SUCCESS);
    v4.sa.sa_family = AF_UNIX;
    ok_status(address_import(&v4.sa, 28, &out), ND_INVALID_ADDRESS);
}

TEST(address_text__forms)
{
    union address address = parse("10.1.1.1");
    char text[64];

    ok_str(address_text(&address.sa, text, sizeof(text)), "10.1.1.1");
    address_set_port(&address.sa, 18515);
    ok_str(address_text(&address.sa, text, sizeof(text)), "10.1.1.1:18515");
    ok_int(address_port(&address.sa), ==, 18515);
    address = parse("fe80::1%7");
    ok_str(address_text(&address.sa, text, sizeof(text)), "fe80::1%7");
    address_set_port(&address.sa, 1);
    ok_str(address_text(&address.sa, text, sizeof(text)), "[fe80::1%7]:1");
    address.sa.sa_family = 77;
    ok_str(address_text(&address.sa, text, sizeof(text)), "(address family 77)");
    ok_str(address_text(&address.sa, text, 6), "(addr");
}

TEST(address_route__statuses)
{
    union address remote = parse("10.1.1.200"), local;

    ok_status(address_route(&remote.sa, &local), ND_SUCCESS);
    ok_int(local.v4.sin_addr.s_addr, ==, inet_addr("10.1.1.1"));
    ok_int(address_port(&local.sa), ==, 0);
    remote = parse("10.1.1.1"); /* ourselves */
    ok_status(address_route(&remote.sa, &local), ND_SUCCESS);
    ok_int(local.v4.sin_addr.s_addr, ==, inet_addr("10.1.1.1"));
    remote = parse("fd00:1:1::99");
    ok_status(address_route(&remote.sa, &local), ND_SUCCESS);
    ok_int(local.sa.sa_family, ==, AF_INET6);
    remote = parse("172.31.1.1");
    ok_status(address_route(&remote.sa, &local), ND_NETWORK_UNREACHABLE);
    fake_route_add("172.31.1.1", "10.1.2.1");
    ok_status(address_route(&remote.sa, &local), ND_SUCCESS);
    ok_int(local.v4.sin_addr.s_addr, ==, inet_addr("10.1.2.1"));
    ok_status(address_route(NULL, &local), ND_INVALID_ADDRESS);
    remote.sa.sa_family = AF_UNIX;
    ok_status(address_route(&remote.sa, &local), ND_INVALID_ADDRESS);
}

/* One socket for all of them, and none remembers the one before. */
TEST(address_reachable__statuses)
{
    union address here = parse("10.1.1.200"), there = parse("172.31.1.1"), v6 = parse("fd00:1:1::99");
    int sockets;

    address_prepare();
    sockets = fake_open_fds();
    for (int i = 0; i < 2; i++) {
        ok_status(address_reachable(NULL, &there), ND_NETWORK_UNREACHABLE);
        ok_status(address_reachable(NULL, &here), ND_SUCCESS);
        ok_status(address_reachable(NULL, &v6), ND_SUCCESS);
    }
    ok_int(fake_open_fds(), ==, sockets);
    fake_route_add("172.31.1.1", "10.1.2.1");
    ok_status(address_reachable(NULL, &there), ND_SUCCESS);
}

/* Where the source address decides, each look-up is from its own. An address that is none says nothing. */
TEST(address_reachable__from_an_address)
{
    union address own = parse("10.1.1.1"), other = parse("10.1.2.1"), gone = parse("10.1.1.99"),
                  v6 = parse("fd00:1:1::1"), there = parse("10.77.1.1"), there6 = parse("fd77::1");
    int sockets;

    own.v4.sin_port = htons(700); /* not a port to be taken here */
    address_prepare();
    sockets = fake_open_fds();
    fake_route_from("10.1.1.1", "10.77.1.1");
    fake_route_from("fd00:1:1::1", "fd77::1");
    for (int i = 0; i < 2; i++) {
        ok_status(address_reachable(&own, &there), ND_SUCCESS);
        ok_status(address_reachable(&other, &there), ND_NETWORK_UNREACHABLE);
        ok_status(address_reachable(&gone, &there), ND_UNSUCCESSFUL);
        ok_status(address_reachable(NULL, &there), ND_NETWORK_UNREACHABLE);
        ok_status(address_reachable(&v6, &there6), ND_SUCCESS);
        ok_status(address_reachable(NULL, &there6), ND_NETWORK_UNREACHABLE);
        ok_status(address_reachable(&v6, &there), ND_NETWORK_UNREACHABLE); /* another family's is no source */
    }
    ok_int(fake_open_fds(), ==, sockets);
}

TEST(address_list_export__layout)
{
    struct address_list *list = address_list_get();
    uint64_t id = entry_of(list, "10.1.1.1")->adapter_id, nobody = 1;
    size_t bytes = address_list_bytes(list, NULL);
    SOCKET_ADDRESS_LIST *out = malloc(bytes);
    char *end = (char *)out + bytes;

    ok_uint(bytes, ==, offsetof(SOCKET_ADDRESS_LIST, Address) + 3 * sizeof(SOCKET_ADDRESS) + 16 + 28 + 16);
    address_list_export(list, NULL, out);
    ok_int(out->iAddressCount, ==, 3);
    for (int i = 0; i < 3; i++) {
        char *at = (char *)out->Address[i].lpSockaddr;

        ok(at >= (char *)&out->Address[3] && at + out->Address[i].iSockaddrLength <= end);
        ok_int(out->Address[i].iSockaddrLength, ==, out->Address[i].lpSockaddr->sa_family == AF_INET ? 16 : 28);
    }
    free(out);
    ok_uint(address_list_bytes(list, &id), ==,
            offsetof(SOCKET_ADDRESS_LIST, Address) + 2 * sizeof(SOCKET_ADDRESS) + 16 + 28);
    ok_uint(address_list_bytes(list, &nobody), ==, sizeof(SOCKET_ADDRESS_LIST));
    out = malloc(sizeof(*out));
    address_list_export(list, &nobody, out);
    ok_int(out->iAddressCount, ==, 0);
    free(out);
    address_list_put(list);
}
