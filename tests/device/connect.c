/* SPDX-License-Identifier: MIT */
/* Connections that come about: data, limits and addresses on the way. ndspi.md 4. */
#include "session.h"

#include <stdlib.h>

/* One whole connection, with what each connector answers in each of its states (A21, A40, D11). */

SERVER(states)
{
    ULONG size = sizeof(union endpoint), in = 77, out = 77;
    union endpoint address;
    struct host host;
    struct link link;
    IND2Listener *listener;
    BYTE byte;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.connector, GetReadLimits, &in, &out), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, GetPeerAddress, &address.any, &size), ND_CONNECTION_INVALID);
    ok_uint(size, ==, 0);
    size = sizeof(address);
    ok_status(CALL(link.connector, GetLocalAddress, &address.any, &size), ND_CONNECTION_INVALID);
    ok_uint(size, ==, 0);
    size = 1;
    byte = 0x33;
    ok_status(CALL(link.connector, GetPrivateData, &byte, &size), ND_CONNECTION_INVALID);
    ok_uint(size, ==, 0);
    ok_int(byte, ==, 0x33);
    ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, NotifyDisconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(link_try_accept(&link), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);

    listener = listen_any(&host);
    link_request(&link, listener);
    ok_status(CALL(link.connector, GetReadLimits, &in, &out), ND_SUCCESS);
    size = sizeof(address);
    ok_status(CALL(link.connector, GetPeerAddress, &address.any, &size), ND_SUCCESS);
    size = sizeof(address);
    ok_status(CALL(link.connector, GetLocalAddress, &address.any, &size), ND_SUCCESS);
    ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, NotifyDisconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov), ND_CONNECTION_ACTIVE);
    ok_status(link_try_accept(&link), ND_SUCCESS);

    ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    ok(FAILED(CALL(link.connector, Bind, &host.address.any, endpoint_size(&host.address))));
    ok(FAILED(link_try_accept(&link)));
    ok_status(CALL(link.connector, GetReadLimits, NULL, NULL), ND_SUCCESS);
    runner_sync();
    link_disconnect(&link);
    runner_sync();
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

CLIENT(states)
{
    union endpoint to, address;
    ULONG size = sizeof(address);
    IND2QueuePair *first;
    struct host host;
    struct link link, other;

    host_open(&host);
    link_make(&link, &host, NULL);
    link_make(&other, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    ok_status(CALL(link.connector, GetLocalAddress, &address.any, &size), ND_SUCCESS);
    ok_int(endpoint_port(&address), !=, 0);
    ok_status(CALL(link.connector, Bind, &host.address.any, endpoint_size(&host.address)),
              STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, NotifyDisconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);

    ok_status(link_try_connect(&link, &to), ND_SUCCESS);
    /* Replied, not completed. */
    ok_status(link_try_connect(&link, &to), ND_CONNECTION_ACTIVE);
    ok_status(CALL(link.connector, Bind, &host.address.any, endpoint_size(&host.address)),
              STATUS_ADDRESS_ALREADY_ASSOCIATED);
    ok_status(CALL(link.connector, GetReadLimits, NULL, &size), ND_SUCCESS);
    ok_status(CALL(link.connector, NotifyDisconnect, &link.ov), ND_CONNECTION_INVALID);
    /* One queue pair, one connection. */
    link_bind(&other);
    first = other.qp;
    other.qp = link.qp;
    ok_status(link_try_connect(&other, &to), ND_CONNECTION_ACTIVE);
    other.qp = first;

    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    ok_status(CALL(link.connector, CompleteConnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(link_try_connect(&link, &to), ND_CONNECTION_ACTIVE);
    ok_status(CALL(link.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    size = sizeof(address);
    ok_status(CALL(link.connector, GetPeerAddress, &address.any, &size), ND_SUCCESS);
    ok_int(endpoint_port(&address), ==, endpoint_port(&to));
    runner_sync();
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    runner_sync();
    link_disconnect(&link); /* the peer was first: at once */
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(FINISH(&link, CALL(link.connector, NotifyDisconnect, &link.ov)), ND_SUCCESS);
    link_drop(&other);
    link_drop(&link);
    host_close(&host);
}

/* Private data both ways; sizes beyond the limit change nothing and may be tried again (NdLargePrivateData). */

static const ULONG caller_sizes[] = { 0, 1, 13, 56 };
static const ULONG callee_sizes[] = { 0, 1, 77, 148 };
#define N_SIZES 4

/* What arrived begins with the pattern and has nothing but padding behind it. */
static void check_data(IND2Connector *connector, ULONG sent, ULONG limit, ULONG seed)
{
    BYTE data[512], part[4];
    ULONG size = 0, full;
    HRESULT hr;

    hr = CALL(connector, GetPrivateData, NULL, &size);
    ok_status(hr, size ? ND_BUFFER_OVERFLOW : ND_SUCCESS);
    full = size;
    ok_uint(full, >=, sent);
    ok_uint(full, <=, limit);
    if (runner_iwarp())
        ok_uint(full, ==, sent);
    size = sizeof(data);
    memset(data, 0xee, sizeof(data));
    ok_status(CALL(connector, GetPrivateData, data, &size), ND_SUCCESS);
    ok_uint(size, ==, full);
    pattern_check(data, sent, seed);
    for (ULONG i = sent; i < full; i++)
        ok_int(data[i], ==, 0);
    ok_int(data[full], ==, 0xee);
    if (full > sizeof(part)) {
        /* MS-MPI reads one field and takes the rest as an overflow. */
        size = sizeof(part);
        memset(part, 0xee, sizeof(part));
        ok_status(CALL(connector, GetPrivateData, part, &size), ND_BUFFER_OVERFLOW);
        ok_uint(size, ==, full);
        ok_mem(part, data, sizeof(part));
    }
}

SERVER(private_data)
{
    IND2Listener *listener;
    BYTE data[256];
    struct host host;
    struct link link;

    host_open(&host);
    listener = listen_any(&host);
    pattern_fill(data, sizeof(data), 2);
    for (int i = 0; i < N_SIZES; i++) {
        link_make(&link, &host, NULL);
        link_request(&link, listener);
        check_data(link.connector, caller_sizes[i], 56, 1);
        ok_status(CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, data, host.info.MaxCalleeData + 1, &link.ov),
                  ND_INVALID_BUFFER_SIZE);
        ok_status(CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, (void *)8, 16, &link.ov),
                  ND_ACCESS_VIOLATION);
        ok_status(
            FINISH(&link, CALL(link.connector, Accept, (IUnknown *)link.qp, 0, 0, data, callee_sizes[i], &link.ov)),
            ND_SUCCESS);
        check_data(link.connector, caller_sizes[i], 56, 1);
        runner_sync();
        link_disconnect(&link);
        link_drop(&link);
    }
    release_last(listener);
    host_close(&host);
}

CLIENT(private_data)
{
    union endpoint to;
    BYTE data[256];
    struct host host;
    struct link link;

    host_open(&host);
    to = listener_of_peer();
    pattern_fill(data, sizeof(data), 1);
    for (int i = 0; i < N_SIZES; i++) {
        link_make(&link, &host, NULL);
        link_bind(&link);
        ok_status(CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, data,
                       host.info.MaxCallerData + 1, &link.ov),
                  ND_INVALID_BUFFER_SIZE);
        ok_status(CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, (void *)8, 16,
                       &link.ov),
                  ND_ACCESS_VIOLATION);
        ok_status(FINISH(&link, CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0,
                                     data, caller_sizes[i], &link.ov)),
                  ND_SUCCESS);
        check_data(link.connector, callee_sizes[i], 148, 2);
        ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
        check_data(link.connector, callee_sizes[i], 148, 2);
        runner_sync();
        link_disconnect(&link);
        link_drop(&link);
    }
    host_close(&host);
}

/* Read limits: silently reduced to the adapters' and, for the acceptor, to what the caller offered. */

static const struct {
    ULONG client_in, client_out, server_in, server_out; /* asked */
    ULONG in, out;                                      /* the client's in the end */
} limits[] = {
    { 0, 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1 },       { 4, 2, 8, 8, 4, 2 }, { 8, 8, 2, 1, 1, 2 },
    { 0, 4, 4, 4, 0, 4 }, { 1000, 1000, 3, 5, 5, 3 }, { 6, 0, 6, 6, 6, 0 }, { 16, 16, 1000, 1000, 16, 16 },
};

SERVER(read_limits)
{
    IND2Listener *listener;
    struct host host;
    struct link link;
    ULONG in, out;

    host_open(&host);
    listener = listen_any(&host);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        ULONG offered_in = limits[i].client_out, offered_out = limits[i].client_in;

        if (offered_in > host.info.MaxInboundReadLimit)
            offered_in = host.info.MaxInboundReadLimit;
        if (offered_out > host.info.MaxOutboundReadLimit)
            offered_out = host.info.MaxOutboundReadLimit;
        link_make(&link, &host, NULL);
        link_request(&link, listener);
        ok_status(CALL(link.connector, GetReadLimits, &in, &out), ND_SUCCESS);
        ok_uint(in, ==, offered_in);
        ok_uint(out, ==, offered_out);
        ok_status(FINISH(&link, CALL(link.connector, Accept, (IUnknown *)link.qp, limits[i].server_in,
                                     limits[i].server_out, NULL, 0, &link.ov)),
                  ND_SUCCESS);
        runner_sync();
        link_disconnect(&link);
        link_drop(&link);
    }
    release_last(listener);
    host_close(&host);
}

CLIENT(read_limits)
{
    union endpoint to;
    struct host host;
    struct link link;
    ULONG in = 99, out = 99;

    host_open(&host);
    to = listener_of_peer();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        link_make(&link, &host, NULL);
        link_bind(&link);
        ok_status(FINISH(&link, CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to),
                                     limits[i].client_in, limits[i].client_out, NULL, 0, &link.ov)),
                  ND_SUCCESS);
        ok_status(CALL(link.connector, GetReadLimits, &in, &out), ND_SUCCESS);
        /* siw's acceptor raises its limit to what the caller wants (rdma-mapping.md 14, T11). */
        if (runner_iwarp()) {
            ok_uint(in, <=, limits[i].client_in);
            ok_uint(out, <=, limits[i].client_out);
        } else {
            ok_uint(in, ==, limits[i].in);
            ok_uint(out, ==, limits[i].out);
        }
        ok_status(CALL(link.connector, GetReadLimits, &in, NULL), ND_SUCCESS);
        ok_status(CALL(link.connector, GetReadLimits, NULL, &out), ND_SUCCESS);
        ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
        runner_sync();
        link_disconnect(&link);
        link_drop(&link);
    }
    host_close(&host);
}

/* Addresses of both ends, with ports; a buffer that is too small stays as it was. */

static union endpoint get_address(IND2Connector *connector, bool peer)
{
    union endpoint address = { 0 };
    BYTE small[8];
    ULONG size = 0, need;

    ok_status(peer ? CALL(connector, GetPeerAddress, NULL, &size) : CALL(connector, GetLocalAddress, NULL, &size),
              ND_BUFFER_OVERFLOW);
    need = size;
    size = sizeof(small);
    memset(small, 0x33, sizeof(small));
    ok_status(peer ? CALL(connector, GetPeerAddress, (struct sockaddr *)small, &size)
                   : CALL(connector, GetLocalAddress, (struct sockaddr *)small, &size),
              ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, need);
    for (size_t i = 0; i < sizeof(small); i++)
        ok_int(small[i], ==, 0x33);
    size = sizeof(address);
    ok_status(peer ? CALL(connector, GetPeerAddress, &address.any, &size)
                   : CALL(connector, GetLocalAddress, &address.any, &size),
              ND_SUCCESS);
    ok_uint(size, ==, need);
    ok_uint(size, ==, endpoint_size(&address));
    return address;
}

static void ok_same_address(const union endpoint *a, const union endpoint *b)
{
    ok_uint(endpoint_size(a), ==, endpoint_size(b));
    ok_mem(a, b, endpoint_size(a));
}

/* The one's local address is the other's peer address. */
static void swap_addresses(struct link *link)
{
    union endpoint local = get_address(link->connector, false), peer = get_address(link->connector, true);
    union endpoint its_local, its_peer;

    runner_put(&local, sizeof(local));
    runner_put(&peer, sizeof(peer));
    runner_get(&its_local, sizeof(its_local));
    runner_get(&its_peer, sizeof(its_peer));
    ok_same_address(&local, &its_peer);
    ok_same_address(&peer, &its_local);
}

/* tests/lists: A22, D11. */
SERVER(addresses)
{
    union endpoint address, caller;
    IND2Listener *listener;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    link_request(&link, listener);
    /* Before Accept, as MS-MPI does. */
    runner_get(&caller, sizeof(caller));
    address = get_address(link.connector, true);
    ok_same_address(&address, &caller);
    address = get_address(link.connector, false);
    caller = listener_endpoint(listener);
    ok_same_address(&address, &caller);
    ok_status(link_try_accept(&link), ND_SUCCESS);
    swap_addresses(&link);
    runner_sync();
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(addresses)
{
    union endpoint to, own, address;
    struct host host;
    struct link link;
    HRESULT hr;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_bind(&link);
    own = get_address(link.connector, false);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING);
    runner_put(&own, sizeof(own));
    ok_status(FINISH(&link, hr), ND_SUCCESS);
    ok_status(FINISH(&link, CALL(link.connector, CompleteConnect, &link.ov)), ND_SUCCESS);
    address = get_address(link.connector, false);
    ok_same_address(&address, &own);
    swap_addresses(&link);
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

/* IPv6, and data over it. */

static void six(const char *name)
{
    union endpoint own;
    struct host host;
    struct link link;

    if (!runner_env(name))
        harness_skip("no IPv6 address given");
    own = endpoint_from(runner_env(name));
    host_open_at(&host, &own);
    link_make(&link, &host, NULL);
    if (runner_role() == ROLE_SERVER) {
        IND2Listener *listener = listen_any(&host);

        post_receive(&link, 1, 0, 64);
        link_accept(&link, listener);
        runner_settle();
        ok_result(link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
        pattern_check(link.buffer, 64, 6);
        ok_int(get_address(link.connector, true).any.sa_family, ==, AF_INET6);
        release_last(listener);
    } else {
        const char *peer = runner_env("NDVERBS_PEER_ADDR6");
        union endpoint to = endpoint_from(peer ? peer : runner_env(name));
        USHORT port;

        runner_get(&port, sizeof(port));
        endpoint_set_port(&to, port);
        link_connect(&link, &to);
        runner_settle();
        pattern_fill(link.buffer, 64, 6);
        post_send(&link, 1, 0, 64, 0);
        ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
        ok_int(get_address(link.connector, false).any.sa_family, ==, AF_INET6);
    }
    runner_sync();
    link_disconnect(&link);
    link_drop(&link);
    host_close(&host);
}

/* tests/lists: D71. */
SERVER(ipv6)
{
    six(runner_env("NDVERBS_PEER_ADDR6") ? "NDVERBS_PEER_ADDR6" : "NDVERBS_ADDR6");
}

CLIENT(ipv6)
{
    six("NDVERBS_ADDR6");
}

/* A listener on the any-address takes what comes for any address of its adapter. */

SERVER(wildcard_listener)
{
    union endpoint any = { 0 };
    IND2Listener *listener;
    struct host host;
    struct link link;
    USHORT port;

    host_open(&host);
    link_make(&link, &host, NULL);
    any.v4.sin_family = AF_INET;
    listener = listen_at(&host, &any, 0);
    any = listener_endpoint(listener);
    port = endpoint_port(&any);
    runner_put(&port, sizeof(port));
    link_accept(&link, listener);
    runner_sync();
    link_disconnect(&link);
    release_last(listener);
    link_drop(&link);
    host_close(&host);
}

CLIENT(wildcard_listener)
{
    union endpoint to;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    link_connect(&link, &to);
    runner_sync();
    link_disconnect(&link);
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
