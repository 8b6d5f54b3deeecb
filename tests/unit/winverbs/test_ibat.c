/* SPDX-License-Identifier: MIT */
/* IbatQueryPath: what is found, every way in which nothing is, and that nothing is left of it. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <iba/ib_types.h>
#include <iba/ibat.h>

#include "session.h"

#include "core/address.h"
#include "core/cmid.h"
#include "core/tunable.h"

static int fds;
static unsigned ids;

/* With what the first query opens for good. */
SETUP
{
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0), peer = rig_v4("10.1.1.200", 0);
    IBAT_PATH_BLOB blob;

    rig_setup();
    ok_status(IbatQueryPath((SOCKADDR *)&local, (SOCKADDR *)&peer, &blob), WV_SUCCESS);
    cmid_settle(cmid_mark()); /* ids of the rig are on their way out */
    ids = fake_live(FAKE_OBJ_ID);
    fds = fake_open_fds();
}

TEARDOWN
{
    ok_eventually(fake_live(FAKE_OBJ_ID) <= ids);
    ok_uint(fake_live(FAKE_OBJ_EVENT_CHANNEL), ==, 1); /* the loop's */
    ok_int(fake_open_fds(), ==, fds);
    rig_teardown();
}

static HRESULT query(const char *from, const char *to, IBAT_PATH_BLOB *blob)
{
    SOCKADDR_IN local = rig_v4(from, 4711), peer = rig_v4(to, 4712);

    return IbatQueryPath((SOCKADDR *)&local, (SOCKADDR *)&peer, blob);
}

static SOCKADDR_IN6 v6(const char *text, ULONG scope)
{
    SOCKADDR_IN6 address = { .sin6_family = AF_INET6, .sin6_scope_id = scope };

    ok_int(inet_pton(AF_INET6, text, &address.sin6_addr), ==, 1);
    return address;
}

static HRESULT query_v6(const SOCKADDR_IN6 *local, const SOCKADDR_IN6 *peer)
{
    IBAT_PATH_BLOB blob;

    return IbatQueryPath((const SOCKADDR *)local, (const SOCKADDR *)peer, &blob);
}

/* That status, and the blob is all zeros; nothing of the query is left when it returns. */
static void ok_no_path(const char *from, const char *to, HRESULT wanted)
{
    static const IBAT_PATH_BLOB none;
    IBAT_PATH_BLOB blob;

    memset(&blob, 0xa5, sizeof(blob));
    ok_status(query(from, to, &blob), wanted);
    ok_mem(&blob, &none, sizeof(blob));
    ok_uint(fake_live(FAKE_OBJ_ID), <=, ids);
    ok_uint(fake_live(FAKE_OBJ_EVENT_CHANNEL), ==, 1);
    ok_uint(fake_live(FAKE_OBJ_CM_EVENT), ==, 0);
}

/* Where the last resolution went. */
static union address destination(void)
{
    union address address;

    memcpy(&address, &fake_log_find(FAKE_rdma_resolve_addr, -1)->arg.addr.addr, sizeof(address));
    return address;
}

/* ---- what is found ---- */

static void describe(struct fake_call *call, void *arg)
{
    ((const struct rdma_cm_id *)call->object)->route.path_rec[0] = *(const struct ibv_sa_path_rec *)arg;
}

TEST(IbatQueryPath__record)
{
    struct ibv_sa_path_rec record = { .dlid = htons(0x1234),
                                      .slid = htons(0x5678),
                                      .raw_traffic = 1,
                                      .flow_label = htonl(0xabcde),
                                      .hop_limit = 64,
                                      .traffic_class = 0x21,
                                      .reversible = 1,
                                      .numb_path = 1,
                                      .pkey = htons(0x8001),
                                      .sl = 5,
                                      .mtu_selector = 2,
                                      .mtu = IBV_MTU_2048,
                                      .rate_selector = 2,
                                      .rate = IBV_RATE_100_GBPS,
                                      .packet_life_time_selector = 2,
                                      .packet_life_time = 18,
                                      .preference = 0x2b }; /* flags of librdmacm */
    static const uint8_t wanted[24] = { 0x12, 0x34, 0x56, 0x78, 0x8a, 0xbc, 0xde, 0x40, 0x21, 0x81, 0x80, 0x01,
                                        0x00, 0x05, 0x84, 0x90, 0x92, 0,    0,    0,    0,    0,    0,    0 };
    static const uint8_t zeros[8];
    IBAT_PATH_BLOB blob;
    ib_path_rec_t path;

    inet_pton(AF_INET6, "::ffff:10.1.1.200", &record.dgid);
    inet_pton(AF_INET6, "::ffff:10.1.1.1", &record.sgid);
    fake_port_attr("fake_ib", 1)->link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake_after(FAKE_rdma_resolve_route, describe, &record);
    memset(&blob, 0xa5, sizeof(blob));
    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    ok_mem(blob.byte, zeros, 8);
    ok_mem(blob.byte + 8, &record.dgid, 16);
    ok_mem(blob.byte + 24, &record.sgid, 16);
    ok_mem(blob.byte + 40, wanted, 24);
    memcpy(&path, &blob, sizeof(path));
    ok_uint(path.mtu & 0x3f, ==, IB_MTU_LEN_2048);
    ok_uint(path.mtu >> 6, ==, IB_PATH_SELECTOR_EXACTLY);

    /* Over Ethernet there are no LIDs, whatever the record says. */
    record.raw_traffic = record.reversible = 0;
    fake_port_attr("fake_ib", 1)->link_layer = IBV_LINK_LAYER_ETHERNET;
    fake_after(FAKE_rdma_resolve_route, describe, &record);
    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    ok_uint(blob.byte[44], ==, 0x0a);
    ok_uint(blob.byte[49], ==, 1);
    ok_mem(blob.byte + 40, zeros, 4);
    fake_port_attr("fake_ib", 1)->link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake_after(FAKE_rdma_resolve_route, describe, &record);
    fake_fail(FAKE_ibv_query_port, 1, ENODEV);
    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    ok_mem(blob.byte + 40, zeros, 4);
}

TEST(IbatQueryPath__as_asked)
{
    const struct fake_call *call;
    IBAT_PATH_BLOB blob;

    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    call = fake_log_find(FAKE_rdma_bind_addr, -1);
    ok_uint(((const struct sockaddr_in *)&call->arg.addr.addr)->sin_port, ==, 0);
    ok(!call->on_loop);
    call = fake_log_find(FAKE_rdma_resolve_addr, -1);
    ok_int(call->arg.addr.timeout_ms, ==, (int)tunables()->resolve_timeout_ms);
    call = fake_log_find(FAKE_rdma_resolve_route, -1);
    ok_int(call->arg.addr.timeout_ms, ==, (int)tunables()->resolve_timeout_ms);
    ok_uint(fake_count(FAKE_rdma_connect), ==, 0);
}

TEST(IbatQueryPath__iwarp_has_none)
{
    ok_no_path("10.1.2.1", "10.1.2.200", WV_SUCCESS);
}

/* As a destination of Connect. */
TEST(IbatQueryPath__to_oneself)
{
    SOCKADDR_IN own = rig_v4("10.1.1.1", 0);
    union address last;
    IBAT_PATH_BLOB blob;

    ok_status(query("10.1.1.1", "10.1.1.1", &blob), WV_SUCCESS);
    ok_status(query("10.1.1.1", "127.0.0.1", &blob), WV_SUCCESS);
    last = destination();
    ok_uint(last.v4.sin_addr.s_addr, ==, own.sin_addr.s_addr);
}

TEST(IbatQueryPath__a_route_for_the_own_address_alone)
{
    IBAT_PATH_BLOB blob;

    ok_status(query("10.1.1.1", "10.77.1.1", &blob), WV_HOST_UNREACHABLE);
    fake_route_from("10.1.1.1", "10.77.1.1");
    ok_status(query("10.1.1.1", "10.77.1.1", &blob), WV_SUCCESS);
}

TEST(IbatQueryPath__link_local)
{
    SOCKADDR_IN6 local = v6("fe80::5", 0), peer = v6("fe80::6", 0);
    union address last;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    ok_status(query_v6(&local, &peer), WV_SUCCESS);
    last = destination();
    ok_uint(last.v6.sin6_scope_id, ==, 3);
    local.sin6_scope_id = peer.sin6_scope_id = 3;
    ok_status(query_v6(&local, &peer), WV_SUCCESS);
    local.sin6_scope_id = 4;
    ok_status(query_v6(&local, &peer), WV_INVALID_ADDRESS);
    local = v6("fd00:1:1::1", 0), peer = v6("fd00:1:1::200", 0);
    ok_status(query_v6(&local, &peer), WV_SUCCESS);
}

/* As applications do it: the path of the addresses as the endpoint has them, which it then gets. */
TEST(IbatQueryPath__before_Connect)
{
    WV_CONNECT_ATTRIBUTES attributes;
    IBAT_PATH_BLOB blob;
    SOCKADDR_IN local;
    struct session s;

    fake_wire(true);
    session_listen(&s, "10.1.1.1");
    local = s.address;
    local.sin_port = 0;
    ok_status(CALL(s.active, BindAddress, (SOCKADDR *)&local), WV_SUCCESS);
    ok_status(CALL(s.active, Query, &attributes), WV_SUCCESS);
    ok_status(IbatQueryPath(&attributes.LocalAddress.Sa, (SOCKADDR *)&s.address, &blob), WV_SUCCESS);
    ok_status(CALL(s.active, Modify, WV_EP_OPTION_ROUTE, &blob, sizeof(blob)), WV_SUCCESS);
    ok_status(CALL(s.listener, GetRequest, s.passive, &s.request), WV_IO_PENDING);
    ok_status(CALL(s.active, Connect, s.qp[0], (SOCKADDR *)&s.address, &s.param, &s.connect), WV_IO_PENDING);
    ok_status(CALL(s.listener, GetOverlappedResult, &s.request, NULL, TRUE), WV_SUCCESS);
    session_accept(&s);
    session_complete(&s);
    session_send(&s, 0);
    session_end(&s);
    ids++; /* the endpoint's adapter, which stays with the provider */
}

/* ---- why nothing is found ---- */

TEST(IbatQueryPath__arguments)
{
    SOCKADDR_IN local = rig_v4("10.1.1.1", 0), peer = rig_v4("10.1.1.200", 0), odd = peer;
    SOCKADDR_IN6 other = v6("fd00:1:1::200", 0);
    static const IBAT_PATH_BLOB none;
    IBAT_PATH_BLOB blob;

    ok_status(IbatQueryPath((SOCKADDR *)&local, (SOCKADDR *)&peer, NULL), WV_INVALID_PARAMETER);
    memset(&blob, 0xa5, sizeof(blob));
    ok_status(IbatQueryPath(NULL, (SOCKADDR *)&peer, &blob), WV_INVALID_PARAMETER);
    ok_mem(&blob, &none, sizeof(blob));
    ok_status(IbatQueryPath((SOCKADDR *)&local, NULL, &blob), WV_INVALID_PARAMETER);
    odd.sin_family = 99;
    ok_status(IbatQueryPath((SOCKADDR *)&local, (SOCKADDR *)&odd, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath((SOCKADDR *)&odd, (SOCKADDR *)&peer, &blob), WV_INVALID_ADDRESS);
    ok_status(IbatQueryPath((SOCKADDR *)&local, (SOCKADDR *)&other, &blob), WV_HOST_UNREACHABLE);
    ok_no_path("10.9.9.9", "10.1.1.200", WV_INVALID_ADDRESS);
    ok_no_path("0.0.0.0", "10.1.1.200", WV_INVALID_ADDRESS);
    ok_no_path("127.0.0.1", "10.1.1.200", WV_INVALID_ADDRESS);
    fake_address_add("10.1.9.1", NULL, 0); /* no RDMA */
    ok_no_path("10.1.9.1", "10.1.1.200", WV_INVALID_ADDRESS);
    ok_uint(fake_count(FAKE_rdma_resolve_addr), ==, 1); /* the first one */
}

TEST(IbatQueryPath__unreachable)
{
    ok_no_path("10.1.1.1", "0.0.0.0", WV_HOST_UNREACHABLE);
    ok_no_path("10.1.1.1", "192.0.2.77", WV_HOST_UNREACHABLE);
    ok_uint(fake_count(FAKE_rdma_resolve_addr), ==, 1);
    fake_resolve_error("10.1.1.201", false, -ETIMEDOUT);
    ok_no_path("10.1.1.1", "10.1.1.201", WV_HOST_UNREACHABLE);
    fake_resolve_error("10.1.1.202", false, -ENETUNREACH);
    ok_no_path("10.1.1.1", "10.1.1.202", WV_HOST_UNREACHABLE);
    fake_resolve_error("10.1.1.203", true, -EINVAL);
    ok_no_path("10.1.1.1", "10.1.1.203", WV_HOST_UNREACHABLE);
    fake_fail(FAKE_rdma_resolve_addr, 1, ENODEV);
    ok_no_path("10.1.1.1", "10.1.1.200", WV_HOST_UNREACHABLE);
    fake_fail(FAKE_rdma_resolve_route, 1, ENODEV);
    ok_no_path("10.1.1.1", "10.1.1.200", WV_HOST_UNREACHABLE);
}

TEST(IbatQueryPath__route_times_out)
{
    fake_resolve_error("10.1.1.203", true, -ETIMEDOUT);
    ok_no_path("10.1.1.1", "10.1.1.203", WV_TIMEOUT);
}

static void tick(int number)
{
    (void)number;
}

/* The application's limit for a whole Connect; signals meanwhile change nothing. */
TEST(IbatQueryPath__times_out)
{
    struct sigaction on_tick = { .sa_handler = tick, .sa_flags = SA_RESTART };
    struct itimerval every = { { 0, 5000 }, { 0, 5000 } }, never = { 0 };
    ULONGLONG begun;

    setenv("NDVERBS_CONNECT_TIMEOUT_MS", "60", 1);
    tunables_reload();
    fake_auto_resolve(false);
    sigaction(SIGALRM, &on_tick, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    begun = GetTickCount64();
    ok_no_path("10.1.1.1", "10.1.1.200", WV_TIMEOUT);
    ok_uint(GetTickCount64() - begun, >=, 50);
    setitimer(ITIMER_REAL, &never, NULL);
    unsetenv("NDVERBS_CONNECT_TIMEOUT_MS");
    tunables_reload();
}

static void remove_device(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    fake_device_remove("fake_ib");
}

static void change_address(struct fake_call *call, void *arg)
{
    (void)arg;
    fake_cm_simple((struct rdma_cm_id *)(uintptr_t)call->object, RDMA_CM_EVENT_ADDR_CHANGE, 0);
}

TEST(IbatQueryPath__events)
{
    IBAT_PATH_BLOB blob;

    fake_on(FAKE_rdma_resolve_route, change_address, NULL); /* comes first, and is not what is waited for */
    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    fake_auto_resolve(false);
    fake_after(FAKE_rdma_resolve_addr, remove_device, NULL);
    ok_no_path("10.1.1.1", "10.1.1.200", WV_DEVICE_REMOVED);
    ok_no_path("10.1.1.1", "10.1.1.200", WV_INVALID_ADDRESS);
}

/* Good for a second, so that the next query makes none. */
static struct address_list *fresh_list(void)
{
    address_list_invalidate();
    return address_list_get();
}

TEST(IbatQueryPath__resources)
{
    static const struct {
        enum fake_fn fn;
        int error;
        HRESULT wanted;
    } rows[] = {
        { FAKE_rdma_create_event_channel, EMFILE, WV_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_create_event_channel, ENOENT, WV_NOT_INITIALIZED },
        { FAKE_rdma_create_id, ENOMEM, WV_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_bind_addr, EADDRNOTAVAIL, WV_ADDRESS_ALREADY_EXISTS }, /* all ports are taken */
        { FAKE_rdma_bind_addr, ENODEV, WV_INVALID_ADDRESS },
        { FAKE_rdma_resolve_addr, ENOMEM, WV_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_resolve_route, ENOMEM, WV_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_get_cm_event, ENOMEM, WV_INSUFFICIENT_RESOURCES },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        address_list_put(fresh_list());
        fake_fail(rows[i].fn, 1, rows[i].error);
        ok_no_path("10.1.1.1", "10.1.1.200", rows[i].wanted);
    }
}

/* It needs no memory but what librdmacm needs. */
TEST(IbatQueryPath__no_memory)
{
    IBAT_PATH_BLOB blob;

    address_list_put(fresh_list());
    fake_alloc_fail(1);
    ok_status(query("10.1.1.1", "10.1.1.200", &blob), WV_SUCCESS);
    ok(fake_alloc_pending());
    fake_alloc_clear();
}

TEST(IbatQueryPath__forked_child)
{
    int status = -1;
    pid_t pid = fork();

    ok_int(pid, >=, 0);
    if (pid == 0) {
        static const IBAT_PATH_BLOB none;
        IBAT_PATH_BLOB blob;

        memset(&blob, 0xa5, sizeof(blob));
        _exit(query("10.1.1.1", "10.1.1.200", &blob) == WV_DEVICE_REMOVED && !memcmp(&blob, &none, sizeof(blob)) ? 0
                                                                                                                 : 1);
    }
    ok_int(waitpid(pid, &status, 0), ==, pid);
    ok_int(status, ==, 0);
}
