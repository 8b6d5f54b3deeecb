/* SPDX-License-Identifier: MIT */
/* What needs the two devices joined by a wire (NDVERBS_NET=wire): the bytes really cross it, losses do not show. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long long counter(const char *netdev, const char *name)
{
    unsigned long long value = 0;
    char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", netdev, name);
    file = fopen(path, "r");
    ok_msg(file != NULL, "%s does not open", path);
    ok_int(fscanf(file, "%llu", &value), ==, 1);
    fclose(file);
    return value;
}

/* Sent bytes leave one end and come in at the other, and the same for what is written and read. */

#define PART_SIZE 262144

SERVER(bytes_cross)
{
    struct session session;

    runner_need_wire();
    session_begin(&session, &(struct shape){ .size = PART_SIZE, .reads = 1 });
    post_receive(&session.link, 1, 0, PART_SIZE);
    runner_sync();
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    pattern_check(session.link.buffer, PART_SIZE, 1);
    session_end(&session);
}

CLIENT(bytes_cross)
{
    const char *here = runner_env("NDVERBS_NETDEV"), *there = runner_env("NDVERBS_PEER_NETDEV");
    unsigned long long out, in, back;
    struct session session;
    struct link *link = &session.link;
    ND2_SGE sge;

    runner_need_wire();
    session_begin(&session, &(struct shape){ .size = PART_SIZE, .reads = 1 });
    pattern_fill(link->buffer, PART_SIZE, 1);
    sge = sge_of(link, 0, PART_SIZE);
    runner_sync();
    out = counter(here, "tx_bytes");
    in = counter(there, "rx_bytes");
    back = counter(here, "rx_bytes");
    post_send(link, 1, 0, PART_SIZE, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    ok_uint(counter(here, "tx_bytes") - out, >=, PART_SIZE);
    ok_uint(counter(there, "rx_bytes") - in, >=, PART_SIZE);
    out = counter(here, "tx_bytes");
    ok_status(CALL(link->qp, Write, (void *)2, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeWrite, ND_SUCCESS, 2);
    ok_uint(counter(here, "tx_bytes") - out, >=, PART_SIZE);
    back = counter(here, "rx_bytes");
    ok_status(CALL(link->qp, Read, (void *)3, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeRead, ND_SUCCESS, 3);
    ok_uint(counter(here, "rx_bytes") - back, >=, PART_SIZE);
    pattern_check(link->buffer, PART_SIZE, 1);
    session_end(&session);
}

/* One packet of a hundred lost, both ways: everything arrives, once, in order. */

#define LOSSY 150

static void lossy(void)
{
    struct session session;
    struct link *link = &session.link;
    bool first = runner_role() == ROLE_CLIENT;

    runner_need_wire();
    /* Short, so that the case is: about 67 ms a retry. */
    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    if (first) {
        runner_lose(runner_env("NDVERBS_NETDEV"), 1);
        runner_lose(runner_env("NDVERBS_PEER_NETDEV"), 1);
    }
    runner_sync();
    session_begin(&session, &(struct shape){ .size = 16384 });
    post_receive(link, 0, 0, 8000);
    runner_sync();
    for (ULONG i = 0; i < LOSSY; i++) {
        bool received = false, sent = false;

        if (first) {
            pattern_fill(link->buffer + 8192, 8000, i);
            post_send(link, i, 8192, 8000, 0);
        }
        while (!received || (first && !sent)) {
            ND2_RESULT result = result_next(link->cq);

            ok_status(result.Status, ND_SUCCESS);
            if (result.RequestType == Nd2RequestTypeSend) {
                sent = true;
                continue;
            }
            received = true;
            ok_uint(result.BytesTransferred, ==, 8000);
            pattern_check(link->buffer, 8000, first ? i + 1000 : i);
            post_receive(link, 0, 0, 8000);
        }
        if (!first) {
            pattern_fill(link->buffer + 8192, 8000, i + 1000);
            post_send(link, i, 8192, 8000, 0);
            /* Its result comes with the next message at the latest, or is the last one. */
        }
    }
    runner_sync();
    if (first)
        ok_int(runner_command("tc -s qdisc show dev %s; tc qdisc del dev %s root; tc qdisc del dev %s root",
                              runner_env("NDVERBS_NETDEV"), runner_env("NDVERBS_NETDEV"),
                              runner_env("NDVERBS_PEER_NETDEV")),
               ==, 0);
    session_end(&session);
}

SERVER(ping_pong_with_losses)
{
    lossy();
}

CLIENT(ping_pong_with_losses)
{
    lossy();
}

/* The wire is cut: a send ends in ND_IO_TIMEOUT, and nothing else tells (rdma-mapping.md T5) (D25). */

static void cut_server(void)
{
    struct session session;
    HRESULT hr;

    runner_need_wire();
    if (runner_iwarp())
        harness_skip("siw rides on TCP, which keeps trying for minutes");
    session_begin(&session, &(struct shape){ .reads = 1 });
    post_receive(&session.link, 1, 0, 64);
    hr = CALL(session.link.connector, NotifyDisconnect, &session.link.ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    runner_sync(); /* the wire is whole again; the client's disconnect, or its end, arrives */
    hr = FINISH(&session.link, hr);
    ok_msg(hr == ND_SUCCESS || hr == STATUS_CONNECTION_DISCONNECTED, "NotifyDisconnect: 0x%08x", (unsigned)hr);
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    session_drop(&session);
}

static void cut_client(ND2_REQUEST_TYPE type)
{
    struct session session;
    struct link *link = &session.link;
    ULONGLONG start;
    ND2_SGE sge;
    HRESULT hr;

    runner_need_wire();
    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    session_begin(&session, &(struct shape){ .reads = 1 });
    sge = sge_of(link, 0, 64);
    hr = CALL(link->connector, NotifyDisconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    runner_lose(runner_env("NDVERBS_NETDEV"), 100);
    start = GetTickCount64();
    if (type == Nd2RequestTypeSend)
        post_send(link, 1, 0, 64, 0);
    else if (type == Nd2RequestTypeRead)
        ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    else
        ok_status(CALL(link->qp, Write, (void *)1, &sge, 1, link->remote.address, link->remote.token, 0), ND_SUCCESS);
    post_send(link, 2, 0, 64, 0);
    ok_result(link->cq, type, ND_IO_TIMEOUT, 1);
    runner_note("ND_IO_TIMEOUT after %u ms (ack timeout 14, 6 retries)", (unsigned)(GetTickCount64() - start));
    ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 2);
    runner_mend(runner_env("NDVERBS_NETDEV"));
    if (CALL((IND2Overlapped *)link->connector, GetOverlappedResult, &link->ov, FALSE) == ND_PENDING)
        ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
    link_disconnect(link);
    runner_sync();
    session_drop(&session);
}

#define CUT(name, type)   \
    SERVER(name)          \
    {                     \
        cut_server();     \
    }                     \
    CLIENT(name)          \
    {                     \
        cut_client(type); \
    }

CUT(cut_under_a_send, Nd2RequestTypeSend)
CUT(cut_under_a_read, Nd2RequestTypeRead)
CUT(cut_under_a_write, Nd2RequestTypeWrite)

/* The own link goes down with a connection open, and comes back. While it is down the address is no adapter's (deviations.md,
 * "Adapters"), and on rxe the other end's neither, as its port is not active then. rxe: the first Send fails, what else is
 * posted comes back, and NotifyDisconnect stays pending (deviations.md, "Transports"), as no event of the connection manager
 * comes with that. siw ends its connections when its interface goes down, and says so. Afterwards the same adapter object
 * connects again. */

SERVER(own_link_down)
{
    struct session session;
    struct link *link = &session.link, again;
    IND2Listener *listener;
    HRESULT hr;

    runner_need_wire();
    session_begin(&session, NULL);
    post_receive(link, 1, 0, 64);
    hr = CALL(link->connector, NotifyDisconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    runner_sync(); /* the link is up again; then the client disconnects */
    ok_status(FINISH(link, hr), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    result_none(link->cq);
    link_make(&again, &session.host, NULL);
    post_receive(&again, 2, 0, 64);
    listener = listen_any(&session.host);
    link_accept(&again, listener);
    release_last(listener);
    runner_settle();
    ok_result(again.cq, Nd2RequestTypeReceive, ND_SUCCESS, 2);
    runner_sync();
    link_drop(&again);
    session_drop(&session);
}

static void ok_no_adapter(const union endpoint *address, const char *text, const char *reason)
{
    ok_eventually(!address_is_listed(address)); /* the kernel tells the other end's device a moment later */
    ok_status(NdCheckAddress(&address->any, endpoint_size(address)), ND_INVALID_ADDRESS);
    ok_status(address_try(address), ND_INVALID_ADDRESS);
    ok_msg(!strcmp(address_reason(text), reason), "%s", address_reason(text));
}

/* Routes, and IPv6 addresses, went with the link. */
static void link_up(const char *netdev)
{
    const char *six = runner_env("NDVERBS_ADDR6");

    ok_int(runner_command("ip link set %s up && ip route replace %s/32 dev %s src %s table 101", netdev,
                          runner_env("NDVERBS_PEER_ADDR"), netdev, runner_env("NDVERBS_ADDR")),
           ==, 0);
    if (six)
        ok_int(runner_command(
                   "ip -6 addr replace %s/64 dev %s nodad && ip -6 route replace %s/128 dev %s src %s table 101", six,
                   netdev, runner_env("NDVERBS_PEER_ADDR6"), netdev, six),
               ==, 0);
}

CLIENT(own_link_down)
{
    const char *netdev = runner_env("NDVERBS_NETDEV"), *address = runner_env("NDVERBS_ADDR");
    const char *peer_address = runner_env("NDVERBS_PEER_ADDR");
    union endpoint own, peer, to;
    struct session session;
    struct link *link = &session.link, again;
    OVERLAPPED notify;
    struct host host;
    HRESULT hr;

    runner_need_wire();
    own = endpoint_from(address);
    peer = endpoint_from(peer_address);
    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    session_begin(&session, NULL);
    ok(address_is_listed(&own) && address_is_listed(&peer));
    post_receive(link, 5, 0, 64);
    overlapped_rubbish(&notify, event_auto());
    ok_status(CALL(link->cq, Notify, ND_CQ_NOTIFY_ANY, &notify), ND_PENDING);
    hr = CALL(link->connector, NotifyDisconnect, &link->ov);
    ok_status(hr, ND_PENDING);
    runner_sync();
    ok_int(runner_command("ip link set %s down", netdev), ==, 0);
    ok_no_adapter(&own, address, "the interface is down");
    if (!runner_iwarp()) /* siw does not look at the carrier */
        ok_no_adapter(&peer, peer_address, "its port is not active");
    if (runner_iwarp()) {
        ok_status(FINISH(link, hr), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 5);
        post_send(link, 1, 0, 64, 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 1);
    } else {
        ok_pending(link->connector, &link->ov);
        ok_pending(link->cq, &notify);
        post_send(link, 1, 0, 64, 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_IO_TIMEOUT, 1);
        ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 5);
        ok_pending(link->connector, &link->ov);
    }
    result_none(link->cq);
    ok_status(finish(link->cq, ND_PENDING, &notify), ND_SUCCESS);
    ok_no_adapter(&own, address, "the interface is down");

    link_up(netdev);
    ok_eventually(address_is_listed(&own) && address_is_listed(&peer));
    host_open_at(&host, &own);
    ok_uint(host.info.AdapterId, ==, session.host.info.AdapterId);
    host_close(&host);
    runner_sync();
    if (!runner_iwarp()) {
        ok_pending(link->connector, &link->ov);
        ok_status(CALL(link->connector, CancelOverlappedRequests), ND_SUCCESS);
        ok_status(FINISH(link, hr), ND_CANCELED);
    }
    link_disconnect(link);
    result_none(link->cq);

    link_make(&again, &session.host, NULL);
    to = listener_of_peer();
    link_connect(&again, &to);
    runner_settle();
    post_send(&again, 2, 0, 64, 0);
    ok_result(again.cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    runner_sync();
    link_drop(&again);
    ok(CloseHandle(notify.hEvent));
    session_drop(&session);
}

/* After all that, the wire carries a new session. */

SERVER(works_again)
{
    struct session session;

    runner_need_wire();
    session_begin(&session, NULL);
    post_receive(&session.link, 1, 0, 64);
    runner_sync();
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    session_end(&session);
}

CLIENT(works_again)
{
    struct session session;

    runner_need_wire();
    session_begin(&session, NULL);
    runner_sync();
    post_send(&session.link, 1, 0, 64, 0);
    ok_result(session.link.cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    session_end(&session);
}

RUNNER_MAIN
