/* SPDX-License-Identifier: MIT */
/* Listeners, ports, and many connections; one process with itself. ndspi.md 4, ndspi-v2.md 12. */
#include "session.h"

/* One process with itself, by its own address and by 127.0.0.1 (which Windows maps to the adapter's). */

static void exchange(struct link *from, struct link *to)
{
    post_receive(to, 1, 0, 256);
    pattern_fill(from->buffer, 256, 3);
    post_send(from, 2, 0, 256, 0);
    ok_result(from->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    ok_result(to->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    pattern_check(to->buffer, 256, 3);
}

static void self(const char *destination)
{
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    if (destination) {
        USHORT port = endpoint_port(&to);

        to = endpoint_from(destination);
        endpoint_set_port(&to, port);
    }
    self_connect(&active, &passive, listener, &to);
    exchange(&active, &passive);
    exchange(&passive, &active);
    link_disconnect(&active);
    link_disconnect(&passive);
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
    host_close(&host);
}

/* tests/lists: A33, D34, D72: the same on every transport. */
ALONE(self_connection)
{
    self(NULL);
}

ALONE(self_connection_by_loopback_address)
{
    self("127.0.0.1");
}

/* Connect without Bind, and Bind to the listener's own address and port (MS-MPI; A20). */
ALONE(connector_on_the_listeners_port)
{
    struct link links[6];
    IND2Listener *listener;
    union endpoint to;
    struct host host;

    host_open(&host);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    for (int i = 0; i < 6; i++)
        link_make(&links[i], &host, NULL);
    for (int i = 0; i < 6; i += 2) {
        struct link *active = &links[i], *passive = &links[i + 1];

        if (i < 4)
            ok_status(CALL(active->connector, Bind, &to.any, endpoint_size(&to)), ND_SUCCESS);
        self_meet(active, passive, listener, &to);
        exchange(active, passive);
    }
    for (int i = 0; i < 6; i++)
        link_drop(&links[i]);
    release_last(listener);
    host_close(&host);
}

/* Listeners: ports, states, bad arguments. */

static IND2Listener *new_listener(struct host *host)
{
    IND2Listener *listener;

    ok_status(CALL(host->adapter, CreateListener, &IID_IND2Listener, host->file, (void **)&listener), ND_SUCCESS);
    return listener;
}

/* tests/lists: A21, D13. */
ALONE(listener_states)
{
    IND2Listener *listener, *second;
    union endpoint address, other = endpoint_from("203.0.113.9");
    ULONG size = sizeof(address);
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = new_listener(&host);
    ok_status(CALL(listener, GetLocalAddress, &address.any, &size), ND_INVALID_DEVICE_STATE);
    ok_uint(size, ==, 0);
    ok_status(CALL(listener, Listen, 0), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(listener, Bind, &other.any, endpoint_size(&other)), ND_INVALID_ADDRESS);
    ok(FAILED(CALL(listener, Bind, NULL, sizeof(address.v4))));
    ok(FAILED(CALL(listener, Bind, &host.address.any, 3)));
    ok_status(CALL(listener, Bind, &host.address.any, endpoint_size(&host.address)), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &host.address.any, endpoint_size(&host.address)), STATUS_ADDRESS_ALREADY_ASSOCIATED);
    /* The port is known before Listen (A19). */
    address = listener_endpoint(listener);
    size = 2;
    ok_status(CALL(listener, GetLocalAddress, &other.any, &size), ND_BUFFER_OVERFLOW);
    ok_uint(size, ==, endpoint_size(&address));
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    ok(FAILED(CALL(listener, Listen, 0)));

    ok(FAILED(CALL(listener, GetConnectionRequest, NULL, &link.ov)));
    ok(FAILED(CALL(listener, GetConnectionRequest, (IUnknown *)link.qp, &link.ov)));
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, NULL), ND_INVALID_PARAMETER);
    link_bind(&link);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &link.ov), ND_CONNECTION_ACTIVE);

    /* A busy port leaves a usable object. */
    second = new_listener(&host);
    if (CALL(second, Bind, &address.any, endpoint_size(&address)) != ND_SHARING_VIOLATION)
        ok_status(CALL(second, Listen, 0), ND_SHARING_VIOLATION);
    else
        ok_status(CALL(second, Bind, &host.address.any, endpoint_size(&host.address)), ND_SUCCESS);
    release_last(second);
    release_last(listener);
    /* Free again at once. */
    second = listen_at(&host, &address, 0);
    release_last(second);
    link_drop(&link);
    host_close(&host);
}

/* iWARP's ports are TCP's: Bind asks the connection manager alone, and Listen meets whoever listens there already. */
ALONE(port_of_a_tcp_listener)
{
    union endpoint address;
    IND2Listener *listener;
    struct host host;
    socklen_t size;
    SOCKET tcp;

    if (!runner_iwarp())
        harness_skip("RoCE has ports of its own");
    host_open(&host);
    address = host.address;
    size = endpoint_size(&address);
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    ok(tcp != INVALID_SOCKET);
    ok_int(bind(tcp, &address.any, size), ==, 0);
    ok_int(listen(tcp, 1), ==, 0);
    ok_int(getsockname(tcp, &address.any, &size), ==, 0);
    listener = new_listener(&host);
    ok_status(CALL(listener, Bind, &address.any, endpoint_size(&address)), ND_SUCCESS);
    ok_status(CALL(listener, Listen, 0), ND_SHARING_VIOLATION);
    /* A busy port leaves a usable object (D13). */
    ok_int(closesocket(tcp), ==, 0);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    release_last(listener);
    host_close(&host);
}

ALONE(connector_bind_bad_arguments)
{
    union endpoint other = endpoint_from("203.0.113.9"), loopback = endpoint_from("127.0.0.1");
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.connector, Bind, &other.any, endpoint_size(&other)), ND_INVALID_ADDRESS);
    ok_status(CALL(link.connector, Bind, &loopback.any, endpoint_size(&loopback)), ND_INVALID_ADDRESS);
    ok(FAILED(CALL(link.connector, Bind, NULL, sizeof(other.v4))));
    ok(FAILED(CALL(link.connector, Bind, &other.any, 5)));
    if (runner_wire()) {
        /* An RDMA address, but of the other adapter. */
        other = endpoint_from(runner_env("NDVERBS_PEER_ADDR"));
        ok_status(CALL(link.connector, Bind, &other.any, endpoint_size(&other)), ND_INVALID_ADDRESS);
    }
    other = host.address;
    other.any.sa_family = 77;
    ok(FAILED(CALL(link.connector, Bind, &other.any, sizeof(other.v4))));
    link_bind(&link);
    link_drop(&link);
    host_close(&host);
}

static USHORT port_of(IND2Connector *connector, bool peer)
{
    union endpoint address = { 0 };
    ULONG size = sizeof(address);

    ok_status(peer ? CALL(connector, GetPeerAddress, &address.any, &size)
                   : CALL(connector, GetLocalAddress, &address.any, &size),
              ND_SUCCESS);
    return endpoint_port(&address);
}

/* Each listener and each connector has a port of its own, by which the other side of its connection knows it. */

#define LISTENERS  20
#define CONNECTORS 4

/* tests/lists: D27. */
ALONE(port_zero)
{
    struct link active[CONNECTORS], passive[CONNECTORS];
    USHORT ports[LISTENERS + CONNECTORS];
    IND2Listener *listeners[LISTENERS];
    struct host host;
    int n = 0;

    host_open(&host);
    for (int i = 0; i < LISTENERS; i++) {
        union endpoint address;

        listeners[i] = listen_at(&host, &host.address, 0);
        address = listener_endpoint(listeners[i]);
        ports[n++] = endpoint_port(&address);
    }
    for (int i = 0; i < CONNECTORS; i++) {
        link_make(&active[i], &host, NULL);
        link_make(&passive[i], &host, NULL);
        link_bind(&active[i]);
        ports[n++] = port_of(active[i].connector, false);
    }
    for (int i = 0; i < n; i++) {
        ok_int(ports[i], !=, 0);
        for (int j = 0; j < i; j++)
            ok_int(ports[i], !=, ports[j]);
    }
    for (int i = 0; i < CONNECTORS; i++) {
        union endpoint to = listener_endpoint(listeners[i]);

        self_meet(&active[i], &passive[i], listeners[i], &to);
        ok_int(port_of(active[i].connector, false), ==, ports[LISTENERS + i]);
        ok_int(port_of(active[i].connector, true), ==, ports[i]);
        ok_int(port_of(passive[i].connector, false), ==, ports[i]);
        ok_int(port_of(passive[i].connector, true), ==, ports[LISTENERS + i]);
    }
    for (int i = 0; i < CONNECTORS; i++) {
        link_drop(&active[i]);
        link_drop(&passive[i]);
    }
    for (int i = 0; i < LISTENERS; i++)
        release_last(listeners[i]);
    host_close(&host);
}

/* Requests that came before anybody asked for one, from two listeners, are served in order of arrival at each. */

#define QUEUED 4

/* tests/lists: A23. */
SERVER(requests_wait_for_their_taker)
{
    IND2Listener *listeners[2];
    struct link links[QUEUED];
    HRESULT started[QUEUED];
    struct host host;
    ULONG size;
    BYTE data[256];

    host_open(&host);
    listeners[0] = listen_any(&host);
    listeners[1] = listen_any(&host);
    runner_sync(); /* the client has started its requests */
    for (int i = 0; i < QUEUED; i++) {
        link_make(&links[i], &host, NULL);
        link_request(&links[i], listeners[i % 2]);
        size = sizeof(data);
        ok_status(CALL(links[i].connector, GetPrivateData, data, &size), ND_SUCCESS);
        ok_uint(size, >=, 1);
        ok_int(data[0] % 2, ==, i % 2);
        started[i] = CALL(links[i].connector, Accept, (IUnknown *)links[i].qp, 0, 0, NULL, 0, &links[i].ov);
        ok_status(started[i], ND_PENDING);
    }
    /* Not one by one: the kernel may bring the requests in another order than the one in which the client completes them. */
    for (int i = 0; i < QUEUED; i++)
        ok_status(FINISH(&links[i], started[i]), ND_SUCCESS);
    runner_sync();
    for (int i = 0; i < QUEUED; i++)
        link_drop(&links[i]);
    release_last(listeners[0]);
    release_last(listeners[1]);
    host_close(&host);
}

CLIENT(requests_wait_for_their_taker)
{
    struct link links[QUEUED];
    HRESULT started[QUEUED];
    union endpoint to[2];
    struct host host;

    host_open(&host);
    to[0] = listener_of_peer();
    to[1] = listener_of_peer();
    for (int i = 0; i < QUEUED; i++) {
        BYTE number = (BYTE)i;

        link_make(&links[i], &host, NULL);
        link_bind(&links[i]);
        started[i] = CALL(links[i].connector, Connect, (IUnknown *)links[i].qp, &to[i % 2].any, endpoint_size(&to[0]),
                          0, 0, &number, 1, &links[i].ov);
        ok_status(started[i], ND_PENDING);
    }
    runner_sync();
    for (int i = 0; i < QUEUED; i++) {
        ok_status(FINISH(&links[i], started[i]), ND_SUCCESS);
        ok_status(FINISH(&links[i], CALL(links[i].connector, CompleteConnect, &links[i].ov)), ND_SUCCESS);
    }
    runner_sync();
    for (int i = 0; i < QUEUED; i++)
        link_drop(&links[i]);
    host_close(&host);
}

/* Several GetConnectionRequests pending, several connections at once, one completion queue for all of them. */

#define MANY 12

static void many_exchange(struct link *links, IND2CompletionQueue *cq, bool sends)
{
    int seen[MANY] = { 0 };

    if (sends)
        for (int i = 0; i < MANY; i++) {
            pattern_fill(links[i].buffer, 512, (ULONG)i);
            post_send(&links[i], (uintptr_t)i, 0, 512, 0);
        }
    for (int i = 0; i < MANY; i++) {
        ND2_RESULT result = result_next(cq);
        struct link *link = result.QueuePairContext;
        int at = (int)(link - links);

        ok_status(result.Status, ND_SUCCESS);
        ok(at >= 0 && at < MANY);
        ok_uint((uintptr_t)result.RequestContext, ==, (uintptr_t)at);
        ok_int(seen[at]++, ==, 0);
        ok_int(result.RequestType, ==, sends ? Nd2RequestTypeSend : Nd2RequestTypeReceive);
        if (!sends)
            ok_uint(result.BytesTransferred, ==, 512);
    }
    result_none(cq);
}

/* tests/lists: A17. */
SERVER(several_at_once)
{
    struct shape shape = { .depth = 4 };
    struct link links[MANY];
    HRESULT started[MANY];
    IND2Listener *listener;
    struct host host;

    host_open(&host);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 8 * MANY, 0, 0,
                   (void **)&shape.cq),
              ND_SUCCESS);
    listener = listen_any(&host);
    for (int i = 0; i < MANY; i++) {
        link_make(&links[i], &host, &shape);
        post_receive(&links[i], (uintptr_t)i, 0, 512);
        started[i] = CALL(listener, GetConnectionRequest, (IUnknown *)links[i].connector, &links[i].ov);
        ok_status(started[i], ND_PENDING);
    }
    runner_sync();
    for (int i = 0; i < MANY; i++) {
        ok_status(finish(listener, started[i], &links[i].ov), ND_SUCCESS);
        started[i] = CALL(links[i].connector, Accept, (IUnknown *)links[i].qp, 0, 0, NULL, 0, &links[i].ov);
        ok_status(started[i], ND_PENDING);
    }
    for (int i = 0; i < MANY; i++)
        ok_status(FINISH(&links[i], started[i]), ND_SUCCESS);
    runner_settle();
    many_exchange(links, shape.cq, false);
    runner_sync();
    many_exchange(links, shape.cq, true);
    runner_sync();
    for (int i = 0; i < MANY; i++)
        link_drop(&links[i]);
    release_last(shape.cq);
    release_last(listener);
    host_close(&host);
}

CLIENT(several_at_once)
{
    struct shape shape = { .depth = 4 };
    struct link links[MANY];
    HRESULT started[MANY];
    union endpoint to;
    struct host host;

    host_open(&host);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 8 * MANY, 0, 0,
                   (void **)&shape.cq),
              ND_SUCCESS);
    to = listener_of_peer();
    runner_sync();
    for (int i = 0; i < MANY; i++) {
        link_make(&links[i], &host, &shape);
        post_receive(&links[i], (uintptr_t)i, 1024, 512);
        link_bind(&links[i]);
        started[i] = CALL(links[i].connector, Connect, (IUnknown *)links[i].qp, &to.any, endpoint_size(&to), 0, 0, NULL,
                          0, &links[i].ov);
        ok_status(started[i], ND_PENDING);
    }
    for (int i = 0; i < MANY; i++) {
        ok_status(FINISH(&links[i], started[i]), ND_SUCCESS);
        ok_status(FINISH(&links[i], CALL(links[i].connector, CompleteConnect, &links[i].ov)), ND_SUCCESS);
    }
    runner_settle();
    many_exchange(links, shape.cq, true);
    runner_sync();
    many_exchange(links, shape.cq, false);
    runner_sync();
    for (int i = 0; i < MANY; i++)
        link_drop(&links[i]);
    release_last(shape.cq);
    host_close(&host);
}

/* The passive side sends first, as ndrping's server does (A43). */

SERVER(passive_sends_first)
{
    IND2Listener *listener;
    struct host host;
    struct link link;

    if (runner_iwarp())
        harness_skip("iWARP: the active side must send first");
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    link_accept(&link, listener);
    pattern_fill(link.buffer, 100, 9);
    post_send(&link, 1, 0, 100, 0);
    ok_result(link.cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    runner_sync();
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

CLIENT(passive_sends_first)
{
    union endpoint to;
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    to = listener_of_peer();
    post_receive(&link, 1, 0, 200);
    link_connect(&link, &to);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    pattern_check(link.buffer, 100, 9);
    runner_sync();
    link_drop(&link);
    host_close(&host);
}

/* Connect, Accept and CompleteConnect with things that are no queue pair of this adapter (A35). */

ALONE(foreign_queue_pairs)
{
    struct link active, passive, stranger;
    struct host host, other;
    IND2Listener *listener;
    union endpoint to;
    HRESULT requested, connected;

    host_open(&host);
    host_open(&other);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    link_make(&stranger, &other, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    requested = CALL(listener, GetConnectionRequest, (IUnknown *)passive.connector, &passive.ov);
    link_bind(&active);
#define CONNECT(qp, ov) \
    CALL(active.connector, Connect, (IUnknown *)(qp), &to.any, endpoint_size(&to), 0, 0, NULL, 0, (ov))
    ok(FAILED(CONNECT(NULL, &active.ov)));
    ok(FAILED(CONNECT(active.cq, &active.ov)));
    ok(FAILED(CONNECT(stranger.qp, &active.ov)));
    ok_status(CONNECT(active.qp, NULL), ND_INVALID_PARAMETER);
    ok(FAILED(CALL(active.connector, Connect, (IUnknown *)active.qp, NULL, 16, 0, 0, NULL, 0, &active.ov)));
    ok(FAILED(CALL(active.connector, Connect, (IUnknown *)active.qp, &to.any, 4, 0, 0, NULL, 0, &active.ov)));
    ok(FAILED(CALL(active.connector, Connect, (IUnknown *)active.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 4,
                   &active.ov)));
    connected = CONNECT(active.qp, &active.ov);
    ok_status(connected, ND_PENDING);
    ok_status(finish(listener, requested, &passive.ov), ND_SUCCESS);
#define ACCEPT(qp, ov) CALL(passive.connector, Accept, (IUnknown *)(qp), 0, 0, NULL, 0, (ov))
    ok(FAILED(ACCEPT(NULL, &passive.ov)));
    ok(FAILED(ACCEPT(passive.mr, &passive.ov)));
    ok(FAILED(ACCEPT(stranger.qp, &passive.ov)));
    ok_status(ACCEPT(active.qp, &passive.ov), ND_CONNECTION_ACTIVE);
    ok_status(ACCEPT(passive.qp, NULL), ND_INVALID_PARAMETER);
    requested = ACCEPT(passive.qp, &passive.ov);
    ok_status(FINISH(&active, connected), ND_SUCCESS);
    ok_status(CALL(active.connector, CompleteConnect, NULL), ND_INVALID_PARAMETER);
    ok_status(FINISH(&active, CALL(active.connector, CompleteConnect, &active.ov)), ND_SUCCESS);
    ok_status(FINISH(&passive, requested), ND_SUCCESS);
    ok_status(CALL(active.connector, NotifyDisconnect, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(active.connector, Disconnect, NULL), ND_INVALID_PARAMETER);
    exchange(&active, &passive);
    link_drop(&active);
    link_drop(&passive);
    link_drop(&stranger);
    release_last(listener);
    host_close(&other);
    host_close(&host);
}

RUNNER_MAIN
