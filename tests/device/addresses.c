/* SPDX-License-Identifier: MIT */
/* Which addresses are adapters, while they come and go: design.md 6. What changes interfaces runs in the machine only. */
#include "session.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void need_machine(void)
{
    if (!runner_machine() || !runner_env("NDVERBS_NETDEV") || !runner_env("NDVERBS_DEVICE"))
        harness_skip("only in the machine, whose interfaces may be changed");
}

#define RUN(...) ok_int(runner_command(__VA_ARGS__), ==, 0)

/* A message each way between two links of this process. */
static void exchange(struct link *from, struct link *to)
{
    for (int way = 0; way < 2; way++) {
        pattern_fill(from->buffer, 1000, (ULONG)way);
        post_receive(to, 1, 2048, 1000);
        if (runner_iwarp())
            Sleep(100); /* runner_settle of one process with itself */
        post_send(from, 2, 0, 1000, 0);
        ok_result(from->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
        ok_result(to->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        pattern_check(to->buffer + 2048, 1000, (ULONG)way);
        {
            struct link *swap = from;

            from = to;
            to = swap;
        }
    }
}

/* A whole connection of the adapter with itself. */
static void connect_itself(struct host *host)
{
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to;

    link_make(&active, host, NULL);
    link_make(&passive, host, NULL);
    listener = listen_at(host, &host->address, 0);
    to = listener_endpoint(listener);
    self_connect(&active, &passive, listener, &to);
    exchange(&active, &passive);
    link_disconnect(&active);
    link_disconnect(&passive);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
}

/* An address comes and goes while the process runs. */
ALONE(added_and_removed)
{
    const char *netdev = runner_env("NDVERBS_NETDEV");
    union endpoint added = endpoint_from("10.66.1.1");
    struct host host, other;

    need_machine();
    host_open(&host);
    ok(!address_is_listed(&added));
    ok_status(NdCheckAddress(&added.any, endpoint_size(&added)), ND_INVALID_ADDRESS);
    ok_status(address_try(&added), ND_INVALID_ADDRESS);
    for (int i = 0; i < 2; i++) {
        RUN("ip addr add 10.66.1.1/24 dev %s", netdev);
        ok_eventually(address_is_listed(&added)); /* the kernel fills the device's table a moment later */
        ok_status(NdCheckAddress(&added.any, endpoint_size(&added)), ND_SUCCESS);
        host_open_at(&other, &added);
        ok_uint(other.info.AdapterId, ==, host.info.AdapterId);
        connect_itself(&other);
        RUN("ip addr del 10.66.1.1/24 dev %s", netdev);
        ok(!address_is_listed(&added));
        ok_status(address_try(&added), ND_INVALID_ADDRESS);
        ok_status(NdCheckAddress(&added.any, endpoint_size(&added)), ND_INVALID_ADDRESS);
        /* What is open stays usable: it is the device's. */
        other.address = host.address;
        connect_itself(&other);
        host_close(&other);
    }
    host_close(&host);
}

/* A listener on the any-address is reached at each address of its adapter, on one port, and by the address that was asked for. */

static void reached_at_both(const char *any, const char *const addresses[2])
{
    union endpoint to[2], at = endpoint_from(any);
    IND2Listener *listener;
    struct host host;

    for (int i = 0; i < 2; i++) {
        to[i] = endpoint_from(addresses[i]);
        ok_eventually(address_is_listed(&to[i]));
    }
    host_open_at(&host, &to[0]);
    listener = listen_at(&host, &at, 0);
    at = listener_endpoint(listener);
    for (int i = 0; i < 2; i++) {
        struct link active, passive;
        union endpoint told[2];

        endpoint_set_port(&to[i], endpoint_port(&at));
        host.address = to[i];
        link_make(&active, &host, NULL);
        link_make(&passive, &host, NULL);
        self_connect(&active, &passive, listener, &to[i]);
        for (int side = 0; side < 2; side++) {
            ULONG size = sizeof(told[side]);

            memset(&told[side], 0, sizeof(told[side]));
            ok_status(side ? CALL(active.connector, GetPeerAddress, &told[side].any, &size)
                           : CALL(passive.connector, GetLocalAddress, &told[side].any, &size),
                      ND_SUCCESS);
            ok_uint(size, ==, endpoint_size(&to[i]));
            ok_mem(&told[side], &to[i], endpoint_size(&to[i]));
        }
        exchange(&active, &passive);
        link_disconnect(&active);
        link_disconnect(&passive);
        link_drop(&active);
        link_drop(&passive);
    }
    release_last(listener);
    host_close(&host);
}

ALONE(any_address_is_all_of_them)
{
    const char *netdev = runner_env("NDVERBS_NETDEV");

    need_machine();
    ok_status(NdStartup(), S_OK);
    RUN("ip addr add 10.66.4.1/24 dev %s", netdev);
    reached_at_both("0.0.0.0", (const char *const[]){ runner_env("NDVERBS_ADDR"), "10.66.4.1" });
    RUN("ip addr del 10.66.4.1/24 dev %s", netdev);
    ok_status(NdCleanup(), S_OK);
}

ALONE(any_ipv6_address_is_all_of_them)
{
    const char *netdev = runner_env("NDVERBS_NETDEV");

    need_machine();
    if (!runner_env("NDVERBS_ADDR6"))
        harness_skip("no IPv6 address given");
    ok_status(NdStartup(), S_OK);
    RUN("ip addr add fd00:66:4::1/64 dev %s nodad", netdev);
    reached_at_both("::", (const char *const[]){ runner_env("NDVERBS_ADDR6"), "fd00:66:4::1" });
    RUN("ip addr del fd00:66:4::1/64 dev %s", netdev);
    ok_status(NdCleanup(), S_OK);
}

/* IPv6 with a scope: the interface's own address, which needs the scope to be told from others (design.md 6). */
ALONE(link_local)
{
    union endpoint address = endpoint_from("fe80::66:1"), wrong;
    const char *netdev = runner_env("NDVERBS_NETDEV");
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to, local;
    ULONG size = sizeof(local);
    struct host host;

    need_machine();
    address.v6.sin6_scope_id = if_nametoindex(netdev);
    RUN("ip addr add fe80::66:1/64 dev %s nodad", netdev);
    ok_status(NdStartup(), S_OK);
    ok_eventually(address_is_listed(&address));
    wrong = address;
    wrong.v6.sin6_scope_id = if_nametoindex("lo");
    ok_status(address_try(&wrong), ND_INVALID_ADDRESS);
    host_open_at(&host, &address);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    listener = listen_at(&host, &address, 0);
    to = listener_endpoint(listener);
    ok_uint(to.v6.sin6_scope_id, ==, address.v6.sin6_scope_id);
    self_connect(&active, &passive, listener, &to);
    ok_status(CALL(passive.connector, GetLocalAddress, &local.any, &size), ND_SUCCESS);
    ok_mem(&local.v6.sin6_addr, &address.v6.sin6_addr, sizeof(local.v6.sin6_addr));
    ok_uint(local.v6.sin6_scope_id, ==, address.v6.sin6_scope_id);
    ok_int(endpoint_port(&local), ==, endpoint_port(&to));
    size = sizeof(local);
    ok_status(CALL(passive.connector, GetPeerAddress, &local.any, &size), ND_SUCCESS);
    ok_mem(&local.v6.sin6_addr, &address.v6.sin6_addr, sizeof(local.v6.sin6_addr));
    ok_uint(local.v6.sin6_scope_id, ==, address.v6.sin6_scope_id);
    exchange(&active, &passive);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
    /* The scope is the library's to know. */
    address.v6.sin6_scope_id = 0;
    link_make(&active, &host, NULL);
    ok_status(CALL(active.connector, Bind, &address.any, endpoint_size(&address)), ND_SUCCESS);
    listener = listen_at(&host, &address, 0);
    local = listener_endpoint(listener);
    ok_uint(local.v6.sin6_scope_id, ==, to.v6.sin6_scope_id);
    release_last(listener);
    link_drop(&active);
    host_close(&host);
    ok_status(NdCleanup(), S_OK);
    RUN("ip addr del fe80::66:1/64 dev %s", netdev);
}

/* A destination that only the routes of the own address reach (D28). Nobody answers there. */
ALONE(source_rule)
{
    const char *netdev = runner_env("NDVERBS_NETDEV"), *own = runner_env("NDVERBS_ADDR");
    union endpoint far = endpoint_from("10.77.1.1");
    struct host host;
    struct link link;
    HRESULT hr;

    need_machine();
    host_open(&host);
    link_make(&link, &host, NULL);
    link_bind(&link);
    endpoint_set_port(&far, 700);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &far.any, endpoint_size(&far), 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_NETWORK_UNREACHABLE);
    RUN("ip route add 10.77.0.0/16 dev %s table 177 && ip rule add from %s lookup 177", netdev, own);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &far.any, endpoint_size(&far), 0, 0, NULL, 0, &link.ov);
    RUN("ip rule del from %s lookup 177 && ip route flush table 177", own);
    ok_status(hr, ND_PENDING);
    ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);
    hr = CALL(link.connector, GetOverlappedResult, &link.ov, TRUE);
    ok_msg(hr == ND_CANCELED || hr == ND_HOST_UNREACHABLE, "0x%08x", (unsigned)hr);
    link_drop(&link);
    host_close(&host);
}

/* Two devices in one process: each address its own adapter, a connection between them, objects that do not mix (D43). */
ALONE(two_devices)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");
    union endpoint other_address, to, local;
    struct host hosts[2];
    struct link links[2];
    IND2Listener *listener;
    SIZE_T size = sizeof(local);
    HRESULT hr;
    void *out;

    if (!runner_wire())
        harness_skip("one device: NDVERBS_NET is not wire");
    other_address = endpoint_from(peer);
    host_open(&hosts[0]);
    host_open_at(&hosts[1], &other_address);
    ok_uint(hosts[0].info.AdapterId, !=, hosts[1].info.AdapterId);
    ok_status(NdResolveAddress(&other_address.any, endpoint_size(&other_address), &local.any, &size), ND_SUCCESS);
    ok_uint(local.v4.sin_addr.s_addr, ==, hosts[0].address.v4.sin_addr.s_addr);
    link_make(&links[0], &hosts[0], NULL);
    link_make(&links[1], &hosts[1], NULL);
    ok_status(CALL(hosts[0].adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)links[1].cq,
                   (IUnknown *)links[0].cq, NULL, 4, 4, 1, 1, 0, &out),
              ND_INVALID_PARAMETER_2);
    listener = listen_at(&hosts[1], &hosts[1].address, 0);
    to = listener_endpoint(listener);
    hr = CALL(links[0].connector, Bind, &other_address.any, endpoint_size(&other_address));
    ok_status(hr, ND_INVALID_ADDRESS);
    hr = CALL(links[0].connector, Connect, (IUnknown *)links[1].qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0,
              &links[0].ov);
    ok_status(hr, ND_INVALID_PARAMETER_1);
    self_connect(&links[0], &links[1], listener, &to);
    exchange(&links[0], &links[1]);
    /* The one goes, the other stays. */
    release_last(listener);
    link_drop(&links[0]);
    host_close(&hosts[0]);
    ok_status(FINISH(&links[1], CALL(links[1].connector, NotifyDisconnect, &links[1].ov)), ND_SUCCESS);
    link_drop(&links[1]);
    connect_itself(&hosts[1]);
    host_close(&hosts[1]);
}

/* Loads a module of the machine's kernel that it does not start with. */
static void need_module(const char *name)
{
    if (!runner_env("NDVERBS_KERNEL"))
        harness_skip("the kernel's modules are not at hand");
    if (runner_command("modprobe -d '%s' %s", runner_env("NDVERBS_KERNEL"), name) != 0)
        harness_skip("the kernel has no such module");
}

/* An interface on top of the device's: its address belongs to the device. */
static void stacked(const char *address)
{
    union endpoint own = endpoint_from(address);
    struct host host, stack;

    host_open(&host);
    ok_eventually(address_is_listed(&own));
    host_open_at(&stack, &own);
    ok_uint(stack.info.AdapterId, ==, host.info.AdapterId);
    connect_itself(&stack);
    host_close(&stack);
    host_close(&host);
}

ALONE(vlan)
{
    const char *netdev = runner_env("NDVERBS_NETDEV");

    need_machine();
    need_module("8021q");
    RUN("ip link add link %s name ndvlan type vlan id 7 && ip addr add 10.66.7.1/24 dev ndvlan && ip link set ndvlan "
        "up",
        netdev);
    stacked("10.66.7.1");
    RUN("ip link del ndvlan");
}

ALONE(bond)
{
    union endpoint own = endpoint_from("10.66.8.1");
    struct host host;

    need_machine();
    need_module("bonding");
    RUN("ip link add ndslave type dummy && ip link add ndbond type bond mode active-backup miimon 100 && "
        "ip link set ndslave master ndbond && ip addr add 10.66.8.1/24 dev ndbond && ip link set ndbond up && "
        "ip link set ndslave up && rdma link add ndbondrdma type %s netdev ndbond",
        runner_env("NDVERBS_TRANSPORT"));
    ok_status(NdStartup(), S_OK);
    ok_eventually(address_is_listed(&own));
    host_open_at(&host, &own);
    connect_itself(&host);
    host_close(&host);
    ok_status(NdCleanup(), S_OK);
    /* The device goes with this process (removal.c). */
}

ALONE(bond_is_gone)
{
    union endpoint own = endpoint_from("10.66.8.1");

    need_machine();
    if (access("/sys/class/infiniband/ndbondrdma", F_OK) != 0)
        harness_skip("there is no bond: the case before made none");
    /* Before this process has looked for addresses: librdmacm would keep the device (deviations.md, "Adapters"). */
    RUN("rdma link delete ndbondrdma");
    ok(access("/sys/class/infiniband/ndbondrdma", F_OK) != 0);
    ok_status(NdStartup(), S_OK);
    ok(!address_is_listed(&own));
    ok_status(address_try(&own), ND_INVALID_ADDRESS);
    ok_msg(!strcmp(address_reason("10.66.8.1"), "no RDMA device has this address"), "%s", address_reason("10.66.8.1"));
    RUN("ip link del ndbond && ip link del ndslave");
    ok(!address_is_listed(&own));
    ok_msg(strstr(address_reason("10.66.8.1"), "no address of this system") != NULL, "%s", address_reason("10.66.8.1"));
    ok_status(NdCleanup(), S_OK);
}

/* Why an address is none, and one log line for each that says so (D29, D40, D42). */

static void make_unusable(void)
{
    RUN("ip link add nddown type dummy && ip addr add 10.66.2.1/24 dev nddown && "
        "ip link add ndplain type dummy && ip addr add 10.66.3.1/24 dev ndplain && ip link set ndplain up");
}

ALONE(reasons)
{
    static const char log[] = "/tmp/ndverbs-reasons.log";

    need_machine();
    runner_log_to(log);
    make_unusable();
    ok_status(NdStartup(), S_OK);
    for (int i = 0; i < 3; i++) {
        ok_msg(!strcmp(address_reason("10.66.2.1"), "the interface is down"), "%s", address_reason("10.66.2.1"));
        ok_msg(!strcmp(address_reason("10.66.3.1"), "no RDMA device has this address"), "%s",
               address_reason("10.66.3.1"));
        ok_msg(strstr(address_reason("127.0.0.1"), "loopback") != NULL, "%s", address_reason("127.0.0.1"));
        ok_msg(strstr(address_reason("203.0.113.9"), "no address of this system") != NULL, "%s",
               address_reason("203.0.113.9"));
        ok_msg(!*address_reason(runner_env("NDVERBS_ADDR")), "%s", address_reason(runner_env("NDVERBS_ADDR")));
        Sleep(400); /* the list is made anew in between */
    }
    ok_int(runner_log_lines(log, "10.66.2.1 (nddown) is not used: the interface is down"), ==, 1);
    ok_int(runner_log_lines(log, "10.66.2.1"), ==, 1);
    ok_int(runner_log_lines(log, "10.66.3.1"), ==, 1);
    RUN("ip link set nddown up");
    ok_msg(!strcmp(address_reason("10.66.2.1"), "no RDMA device has this address"), "%s", address_reason("10.66.2.1"));
    ok_int(runner_log_lines(log, "10.66.2.1"), ==, 2);
    ok_status(NdCleanup(), S_OK);
    RUN("ip link del nddown && ip link del ndplain");
}

ALONE(reasons_in_ndlist)
{
    static const char list[] = "/tmp/ndverbs-reasons.txt";
    char path[PATH_MAX];

    need_machine();
    runner_built("examples/ndlist", path, sizeof(path));
    if (access(path, X_OK) != 0)
        harness_skip("examples/ndlist is not built (build option examples)");
    make_unusable();
    RUN("%s -v >%s", path, list);
    ok_int(runner_log_lines(list, runner_env("NDVERBS_ADDR")), >=, 1);
    ok_int(runner_log_lines(list, "10.66.2.1 (nddown) is no adapter: the interface is down"), ==, 1);
    ok_int(runner_log_lines(list, "10.66.3.1 (ndplain) is no adapter: no RDMA device has this address"), ==, 1);
    ok_int(runner_log_lines(list, "127.0.0.1 (lo) is no adapter"), ==, 1);
    ok_int(runner_log_lines(list, "MaxInitiatorQueueDepth"), >=, 1);
    RUN("NDVERBS_ONLY_DEVICE=nosuch %s -v 2>%s; test $? = 1", path, list);
    ok_int(runner_log_lines(list, "carries no adapter: not named by NDVERBS_ONLY_DEVICE"), >=, 1);
    ok_int(runner_log_lines(list, runner_env("NDVERBS_DEVICE")), >=, 1);
    RUN("ip link del nddown && ip link del ndplain");
}

/* What fails names the address: an adapter that cannot be opened, a destination without a route (D22). */
ALONE(failures_name_the_address)
{
    static const char log[] = "/tmp/ndverbs-named.log";
    union endpoint plain = endpoint_from("10.66.3.1"), far = endpoint_from("203.0.113.9"), local;
    SIZE_T size = sizeof(local);
    struct host host;

    need_machine();
    runner_log_to(log);
    RUN("ip link add ndplain type dummy && ip addr add 10.66.3.1/24 dev ndplain && ip link set ndplain up");
    host_open(&host);
    ok_status(address_try(&plain), ND_INVALID_ADDRESS);
    ok_int(runner_log_lines(log, "10.66.3.1 (ndplain) is not used: no RDMA device has this address"), ==, 1);
    ok_status(NdResolveAddress(&far.any, endpoint_size(&far), &local.any, &size), ND_NETWORK_UNREACHABLE);
    ok_int(runner_log_lines(log, "no route to 203.0.113.9: Network is unreachable"), ==, 1);
    host_close(&host);
    RUN("ip link del ndplain");
}

/* A call of the system that fails makes one line, with its name and errno (D4, D40). */
ALONE(one_line_per_failure)
{
    static const char log[] = "/tmp/ndverbs-failure.log";
    IND2MemoryRegion *mr;
    OVERLAPPED ov;
    struct host host;

    runner_log_to(log);
    host_open(&host);
    ok_status(CALL(host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host.file, (void **)&mr), ND_SUCCESS);
    overlapped_rubbish(&ov, NULL);
    ok_status(finish(mr, CALL(mr, Register, (void *)0x10000, 8192, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov), &ov),
              ND_ACCESS_VIOLATION);
    ok_int(runner_log_lines(log, "ibv_reg_mr"), ==, 1);
    ok_int(runner_log_lines(log, "Bad address"), ==, 1);
    release_last(mr);
    host_close(&host);
}

/* All ports of the system are taken: the documented status, and the objects work once one is free. */
ALONE(no_ports_left)
{
    union endpoint any;
    struct host host;
    struct link links[6];
    IND2Listener *listener;
    int bound = 0;
    HRESULT hr = ND_SUCCESS;

    need_machine();
    host_open(&host);
    any = host.address;
    endpoint_set_port(&any, 0);
    RUN("cp /proc/sys/net/ipv4/ip_local_port_range /tmp/ndverbs-ports && "
        "echo 47001 47004 >/proc/sys/net/ipv4/ip_local_port_range");
    for (int i = 0; i < 6; i++) {
        link_make(&links[i], &host, NULL);
        hr = CALL(links[i].connector, Bind, &any.any, endpoint_size(&any));
        if (hr == ND_SUCCESS)
            bound++;
    }
    ok_status(CALL(host.adapter, CreateListener, &IID_IND2Listener, host.file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &any.any, endpoint_size(&any)), ND_TOO_MANY_ADDRESSES);
    RUN("cat /tmp/ndverbs-ports >/proc/sys/net/ipv4/ip_local_port_range");
    ok_int(bound, <=, 4);
    ok_status(hr, ND_TOO_MANY_ADDRESSES);
    ok_status(CALL(links[5].connector, Bind, &any.any, endpoint_size(&any)), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &any.any, endpoint_size(&any)), ND_SUCCESS);
    release_last(listener);
    for (int i = 0; i < 6; i++)
        link_drop(&links[i]);
    host_close(&host);
}

/* Ports are shared with the other connectors of the process (A20), also one that was chosen for the first of them. */
ALONE(shared_port)
{
    union endpoint any, chosen;
    struct link links[2];
    struct host host;
    ULONG size = sizeof(chosen);

    host_open(&host);
    any = host.address;
    endpoint_set_port(&any, 0);
    link_make(&links[0], &host, NULL);
    link_make(&links[1], &host, NULL);
    ok_status(CALL(links[0].connector, Bind, &any.any, endpoint_size(&any)), ND_SUCCESS);
    ok_status(CALL(links[0].connector, GetLocalAddress, &chosen.any, &size), ND_SUCCESS);
    ok_status(CALL(links[1].connector, Bind, &chosen.any, endpoint_size(&chosen)), ND_SUCCESS);
    link_drop(&links[0]);
    link_drop(&links[1]);
    host_close(&host);
}

/* The same two ports once more, of which the system may still have something: while a connection stands, and when it has ended, by
 * either side. */
ALONE(same_ports_again)
{
    union endpoint own, to;
    IND2Listener *listener;
    struct host host;

    host_open(&host);
    own = host.address;
    endpoint_set_port(&own, 0);
    listener = listen_at(&host, &host.address, 0);
    to = listener_endpoint(listener);
    for (int round = 0; round < 4; round++) {
        struct link active[2], passive[2];

        for (int i = 0; i < 2; i++) {
            ULONG size = sizeof(own);

            link_make(&active[i], &host, NULL);
            link_make(&passive[i], &host, NULL);
            ok_status(CALL(active[i].connector, Bind, &own.any, endpoint_size(&own)), ND_SUCCESS);
            ok_status(CALL(active[i].connector, GetLocalAddress, &own.any, &size), ND_SUCCESS);
            self_meet(&active[i], &passive[i], listener, &to);
            post_receive(&passive[i], 1, 0, 64);
            if (runner_iwarp())
                Sleep(100); /* runner_settle of one process with itself */
            post_send(&active[i], 2, 64, 64, 0);
            ok_result(active[i].cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
            ok_result(passive[i].cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        }
        for (int i = 0; i < 2; i++)
            link_disconnect(round & 1 ? &passive[i] : &active[i]);
        for (int i = 0; i < 2; i++) {
            link_drop(&active[i]);
            link_drop(&passive[i]);
        }
    }
    release_last(listener);
    host_close(&host);
}

/* A connector that was bound to the listener's port leaves it to the next listener (A20). */
ALONE(port_for_the_next_listener)
{
    IND2Listener *listener;
    struct host host;
    union endpoint at;
    struct link link;
    HRESULT hr;

    host_open(&host);
    listener = listen_at(&host, &host.address, 0);
    at = listener_endpoint(listener);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.connector, Bind, &at.any, endpoint_size(&at)), ND_SUCCESS);
    release_last(listener);
    listener_gone(&at);
    hr = FINISH(&link, CALL(link.connector, Connect, (IUnknown *)link.qp, &at.any, endpoint_size(&at), 0, 0, NULL, 0,
                            &link.ov));
    ok_status(hr, ND_CONNECTION_REFUSED);
    listener = listen_at(&host, &at, 0);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

/* The port of another process's listener (A20). */

static void hold_a_port(void)
{
    IND2Listener *listener;
    struct host host;

    host_open(&host);
    listener = listen_any(&host);
    runner_sync();
    release_last(listener);
    host_close(&host);
    runner_sync();
}

static union endpoint port_that_is_held(struct host *host)
{
    union endpoint taken;

    host_open(host);
    taken = listener_of_peer();
    if (taken.v4.sin_addr.s_addr != host->address.v4.sin_addr.s_addr) {
        runner_sync();
        runner_sync();
        harness_skip("the other side has another address");
    }
    return taken;
}

SERVER(port_of_another_process)
{
    hold_a_port();
}

CLIENT(port_of_another_process)
{
    IND2Listener *listener;
    union endpoint taken;
    struct host host;
    struct link link;
    HRESULT hr;

    taken = port_that_is_held(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.connector, Bind, &taken.any, endpoint_size(&taken)), ND_SHARING_VIOLATION);
    ok_status(CALL(host.adapter, CreateListener, &IID_IND2Listener, host.file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &taken.any, endpoint_size(&taken)), ND_SHARING_VIOLATION);
    runner_sync();
    runner_sync();
    /* Both objects are as new. The other side's port is free a moment after its Release. */
    while ((hr = CALL(listener, Bind, &taken.any, endpoint_size(&taken))) == ND_SHARING_VIOLATION)
        Sleep(5);
    ok_status(hr, ND_SUCCESS);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    link_bind(&link);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

/* The line of a Bind that fails names the address, of a connector and of a listener (D22). A line for each call of the kernel's: an
 * attempt is made again where an id of our own was on its way out. */

SERVER(failed_bind_names_the_address)
{
    hold_a_port();
}

CLIENT(failed_bind_names_the_address)
{
    static const char log[] = "/tmp/ndverbs-bind.log";
    IND2Listener *listener;
    union endpoint taken;
    char line[200];
    struct host host;
    struct link link;
    int lines;

    runner_log_to(log);
    taken = port_that_is_held(&host);
    snprintf(line, sizeof(line), "rdma_bind_addr of %s:%u: Address already in use", own_address(),
             endpoint_port(&taken));
    link_make(&link, &host, NULL);
    ok_status(CALL(link.connector, Bind, &taken.any, endpoint_size(&taken)), ND_SHARING_VIOLATION);
    lines = runner_log_lines(log, line);
    ok_msg(lines > 0, "a connector: there is no line \"%s\"", line);
    ok_status(CALL(host.adapter, CreateListener, &IID_IND2Listener, host.file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &taken.any, endpoint_size(&taken)), ND_SHARING_VIOLATION);
    ok_msg(runner_log_lines(log, line) > lines, "a listener: there is no line \"%s\"", line);
    runner_sync();
    runner_sync();
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
