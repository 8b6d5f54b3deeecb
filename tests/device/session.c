/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "early.h"

ULONG endpoint_size(const union endpoint *endpoint)
{
    return endpoint->any.sa_family == AF_INET6 ? sizeof(endpoint->v6) : sizeof(endpoint->v4);
}

USHORT endpoint_port(const union endpoint *endpoint)
{
    return ntohs(endpoint->any.sa_family == AF_INET6 ? endpoint->v6.sin6_port : endpoint->v4.sin_port);
}

void endpoint_set_port(union endpoint *endpoint, USHORT port)
{
    if (endpoint->any.sa_family == AF_INET6)
        endpoint->v6.sin6_port = htons(port);
    else
        endpoint->v4.sin_port = htons(port);
}

union endpoint endpoint_from(const char *text)
{
    union endpoint endpoint = { 0 };

    if (strchr(text, ':')) {
        endpoint.v6.sin6_family = AF_INET6;
        ok_msg(inet_pton(AF_INET6, text, &endpoint.v6.sin6_addr) == 1, "%s is no address", text);
    } else {
        endpoint.v4.sin_family = AF_INET;
        ok_msg(inet_pton(AF_INET, text, &endpoint.v4.sin_addr) == 1, "%s is no address", text);
    }
    return endpoint;
}

const char *own_address(void)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");

    return runner_role() == ROLE_SERVER && peer ? peer : runner_env("NDVERBS_ADDR");
}

union endpoint own_endpoint(void)
{
    return endpoint_from(own_address());
}

/* Adapters. */

void host_open_at(struct host *host, const union endpoint *address)
{
    ULONG size = sizeof(host->info);

    memset(host, 0, sizeof(*host));
    harness_status_text = ndverbs_status_text;
    host->address = *address;
    ok_status(NdStartup(), S_OK);
    ok_status(NdOpenAdapter(&IID_IND2Adapter, &address->any, endpoint_size(address), (void **)&host->adapter),
              ND_SUCCESS);
    ok_status(CALL(host->adapter, CreateOverlappedFile, &host->file), ND_SUCCESS);
    host->info.InfoVersion = ND_VERSION_2;
    ok_status(CALL(host->adapter, Query, &host->info, &size), ND_SUCCESS);
}

void host_open(struct host *host)
{
    union endpoint own = own_endpoint();

    host_open_at(host, &own);
}

void host_close(struct host *host)
{
    ok(CloseHandle(host->file));
    release_last(host->adapter);
    ok_status(NdCleanup(), S_OK);
    memset(host, 0, sizeof(*host));
}

void release_last(void *object)
{
    IUnknown *unknown = object;

    ok_int(CALL(unknown, Release), ==, 0);
}

/* Requests. */

HANDLE event_auto(void)
{
    HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);

    ok(event != NULL);
    return event;
}

void overlapped_rubbish(OVERLAPPED *ov, HANDLE event)
{
    memset(ov, 0xa5, sizeof(*ov));
    ov->hEvent = event;
}

HRESULT finish(void *object, HRESULT started, OVERLAPPED *ov)
{
    IND2Overlapped *overlapped = object;

    ok_msg(started != ND_SUCCESS, "an overlapped call returned ND_SUCCESS");
    if (started != ND_PENDING)
        return started;
    return CALL(overlapped, GetOverlappedResult, ov, TRUE);
}

/* Links. */

void link_make_qp(struct link *link)
{
    const struct shape *shape = &link->shape;
    IND2CompletionQueue *initiator_cq = link->initiator_cq ? link->initiator_cq : link->cq;

    if (shape->srq) {
        ok_status(CALL(link->host->adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, (IUnknown *)link->cq,
                       (IUnknown *)initiator_cq, (IUnknown *)shape->srq, shape->context, shape->depth, shape->sge,
                       shape->inline_size, (void **)&link->qp),
                  ND_SUCCESS);
        return;
    }
    ok_status(CALL(link->host->adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)link->cq,
                   (IUnknown *)initiator_cq, shape->context, shape->depth, shape->depth, shape->sge, shape->sge,
                   shape->inline_size, (void **)&link->qp),
              ND_SUCCESS);
}

void link_make_connector(struct link *link)
{
    ok_status(
        CALL(link->host->adapter, CreateConnector, &IID_IND2Connector, link->host->file, (void **)&link->connector),
        ND_SUCCESS);
}

void link_make(struct link *link, struct host *host, const struct shape *shape)
{
    static const struct shape none;
    IND2Adapter *adapter = host->adapter;

    memset(link, 0, sizeof(*link));
    link->host = host;
    link->shape = shape ? *shape : none;
    shape = &link->shape;
    if (!shape->depth)
        link->shape.depth = 16;
    if (!shape->sge)
        link->shape.sge = 1;
    if (!shape->cq_depth)
        link->shape.cq_depth = 2 * shape->depth;
    if (!shape->size)
        link->shape.size = 4096;
    if (!shape->context)
        link->shape.context = link;
    link->event = event_auto();
    overlapped_rubbish(&link->ov, link->event);

    link->buffer = aligned_alloc(4096, (shape->size + 4095) / 4096 * 4096);
    ok(link->buffer != NULL);
    memset(link->buffer, 0, shape->size);
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, host->file, (void **)&link->mr), ND_SUCCESS);
    ok_status(finish(link->mr,
                     CALL(link->mr, Register, link->buffer, shape->size,
                          ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE |
                              ND_MR_FLAG_RDMA_READ_SINK,
                          &link->ov),
                     &link->ov),
              ND_SUCCESS);
    link->token = CALL(link->mr, GetLocalToken);
    if (shape->cq) {
        link->cq = shape->cq;
        CALL(link->cq, AddRef);
    } else {
        ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host->file, shape->cq_depth, 0, 0,
                       (void **)&link->cq),
                  ND_SUCCESS);
    }
    if (shape->split)
        ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host->file, shape->cq_depth, 0, 0,
                       (void **)&link->initiator_cq),
                  ND_SUCCESS);
    link_make_qp(link);
    link_make_connector(link);
}

void link_drop(struct link *link)
{
    if (link->connector)
        release_last(link->connector);
    if (link->qp)
        release_last(link->qp);
    if (link->shape.cq)
        CALL(link->cq, Release);
    else if (link->cq)
        release_last(link->cq);
    if (link->initiator_cq)
        release_last(link->initiator_cq);
    if (link->mr) {
        ok_status(finish(link->mr, CALL(link->mr, Deregister, &link->ov), &link->ov), ND_SUCCESS);
        release_last(link->mr);
    }
    free(link->buffer);
    ok(CloseHandle(link->event));
    memset(link, 0, sizeof(*link));
}

union endpoint listener_endpoint(IND2Listener *listener)
{
    union endpoint endpoint = { 0 };
    ULONG size = sizeof(endpoint);

    ok_status(CALL(listener, GetLocalAddress, &endpoint.any, &size), ND_SUCCESS);
    ok_int(size, ==, endpoint_size(&endpoint));
    ok_int(endpoint_port(&endpoint), !=, 0);
    return endpoint;
}

static bool tcp_listens(const char *table, unsigned port)
{
    FILE *file = fopen(table, "r");
    unsigned local, state;
    bool found = false;
    char line[512];

    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file))
        found = sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &state) == 2 && local == port &&
                state == 0x0a;
    fclose(file);
    return found;
}

void listener_gone(const union endpoint *at)
{
    if (runner_iwarp())
        ok_eventually(!tcp_listens("/proc/net/tcp", endpoint_port(at)) &&
                      !tcp_listens("/proc/net/tcp6", endpoint_port(at)));
}

IND2Listener *listen_at(struct host *host, const union endpoint *address, ULONG backlog)
{
    IND2Listener *listener;

    ok_status(CALL(host->adapter, CreateListener, &IID_IND2Listener, host->file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &address->any, endpoint_size(address)), ND_SUCCESS);
    ok_status(CALL(listener, Listen, backlog), ND_SUCCESS);
    return listener;
}

IND2Listener *listen_any(struct host *host)
{
    IND2Listener *listener = listen_at(host, &host->address, 0);

    if (runner_role() == ROLE_SERVER) {
        union endpoint endpoint = listener_endpoint(listener);
        USHORT port = endpoint_port(&endpoint);

        runner_put(&port, sizeof(port));
    }
    return listener;
}

union endpoint listener_of_peer(void)
{
    const char *address = runner_env("NDVERBS_PEER_ADDR");
    union endpoint endpoint = endpoint_from(address ? address : runner_env("NDVERBS_ADDR"));
    USHORT port;

    runner_get(&port, sizeof(port));
    endpoint_set_port(&endpoint, port);
    return endpoint;
}

void link_request(struct link *link, IND2Listener *listener)
{
    ok_status(finish(listener, CALL(listener, GetConnectionRequest, (IUnknown *)link->connector, &link->ov), &link->ov),
              ND_SUCCESS);
}

HRESULT link_try_accept(struct link *link)
{
    return FINISH(link, CALL(link->connector, Accept, (IUnknown *)link->qp, link->shape.reads, link->shape.reads, NULL,
                             0, &link->ov));
}

void link_accept(struct link *link, IND2Listener *listener)
{
    link_request(link, listener);
    ok_status(link_try_accept(link), ND_SUCCESS);
}

void link_bind(struct link *link)
{
    union endpoint local = link->host->address;

    endpoint_set_port(&local, 0);
    ok_status(CALL(link->connector, Bind, &local.any, endpoint_size(&local)), ND_SUCCESS);
}

HRESULT link_try_connect(struct link *link, const union endpoint *to)
{
    return FINISH(link, CALL(link->connector, Connect, (IUnknown *)link->qp, &to->any, endpoint_size(to),
                             link->shape.reads, link->shape.reads, NULL, 0, &link->ov));
}

void link_connect(struct link *link, const union endpoint *to)
{
    link_bind(link);
    ok_status(link_try_connect(link, to), ND_SUCCESS);
    ok_status(FINISH(link, CALL(link->connector, CompleteConnect, &link->ov)), ND_SUCCESS);
}

void link_trade(struct link *link)
{
    link->remote.address = (UINT64)(uintptr_t)link->buffer;
    link->remote.size = link->shape.size;
    link->remote.token = CALL(link->mr, GetRemoteToken);
    runner_put(&link->remote, sizeof(link->remote));
    runner_get(&link->remote, sizeof(link->remote));
}

void link_disconnect(struct link *link)
{
    ok_status(FINISH(link, CALL(link->connector, Disconnect, &link->ov)), ND_SUCCESS);
}

void self_meet(struct link *active, struct link *passive, IND2Listener *listener, const union endpoint *to)
{
    HRESULT requested = CALL(listener, GetConnectionRequest, (IUnknown *)passive->connector, &passive->ov);
    HRESULT connected, accepted;

    ok_status(requested, ND_PENDING);
    connected = CALL(active->connector, Connect, (IUnknown *)active->qp, &to->any, endpoint_size(to),
                     active->shape.reads, active->shape.reads, NULL, 0, &active->ov);
    ok_status(connected, ND_PENDING);
    ok_status(finish(listener, requested, &passive->ov), ND_SUCCESS);
    accepted = CALL(passive->connector, Accept, (IUnknown *)passive->qp, passive->shape.reads, passive->shape.reads,
                    NULL, 0, &passive->ov);
    ok_status(accepted, ND_PENDING);
    ok_status(FINISH(active, connected), ND_SUCCESS);
    ok_status(FINISH(active, CALL(active->connector, CompleteConnect, &active->ov)), ND_SUCCESS);
    ok_status(FINISH(passive, accepted), ND_SUCCESS);
}

void self_connect(struct link *active, struct link *passive, IND2Listener *listener, const union endpoint *to)
{
    link_bind(active);
    self_meet(active, passive, listener, to);
}

/* Strangers. */

#define MPA_REQUEST 20 /* and no data */

static DWORD WINAPI answer_nonsense(void *argument)
{
    /* As long as MPA's reply, and none. Its last two bytes are the length of the data: were they not 0, siw would copy from
     * address 4 (README.md). */
    static const char answer[20] = "HTTP/1.1 400\r\n\r\n";
    struct stranger *stranger = argument;
    char data[MPA_REQUEST];

    for (int i = 0; i < stranger->calls; i++) {
        SOCKET taken = accept(stranger->socket, NULL, NULL);
        int got;

        ok(taken != INVALID_SOCKET);
        for (int n = 0; n < MPA_REQUEST; n += got) {
            got = recv(taken, data + n, MPA_REQUEST - n, 0);
            ok_int(got, >, 0);
        }
        ok_int(send(taken, answer, sizeof(answer), 0), ==, sizeof(answer));
        while (recv(taken, data, sizeof(data), 0) > 0)
            continue;
        ok_int(closesocket(taken), ==, 0);
    }
    return 0;
}

void stranger_begin(struct stranger *stranger, const union endpoint *address, int calls)
{
    socklen_t size = sizeof(stranger->at);

    stranger->calls = calls;
    stranger->at = *address;
    endpoint_set_port(&stranger->at, 0);
    stranger->socket = socket(address->any.sa_family, SOCK_STREAM, IPPROTO_TCP);
    ok(stranger->socket != INVALID_SOCKET);
    ok_int(bind(stranger->socket, &stranger->at.any, (int)endpoint_size(address)), ==, 0);
    ok_int(listen(stranger->socket, calls), ==, 0);
    ok_int(getsockname(stranger->socket, &stranger->at.any, &size), ==, 0);
    stranger->thread = CreateThread(NULL, 0, answer_nonsense, stranger, 0, NULL);
    ok(stranger->thread != NULL);
}

void stranger_end(struct stranger *stranger)
{
    ok_int(WaitForSingleObject(stranger->thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(stranger->thread));
    ok_int(closesocket(stranger->socket), ==, 0);
}

/* Sessions. */

void session_begin(struct session *session, const struct shape *shape)
{
    host_open(&session->host);
    link_make(&session->link, &session->host, shape);
    if (runner_role() == ROLE_SERVER) {
        IND2Listener *listener = listen_any(&session->host);

        link_accept(&session->link, listener);
        release_last(listener);
    } else {
        union endpoint to = listener_of_peer();

        link_connect(&session->link, &to);
    }
    link_trade(&session->link);
}

/* The active side of a session with a PART that runner_spawn has started, and that does session_begin and runner_sync: for
 * peers that are to die, or to be stopped. */
void session_beside(struct session *session, int channel, const struct shape *shape)
{
    const char *address = runner_env("NDVERBS_PEER_ADDR");
    union endpoint to = endpoint_from(address ? address : runner_env("NDVERBS_ADDR"));
    struct link *link = &session->link;
    char byte = 's';
    USHORT port;

    host_open(&session->host);
    link_make(link, &session->host, shape);
    runner_get_from(channel, &port, sizeof(port));
    endpoint_set_port(&to, port);
    link_connect(link, &to);
    link->remote.address = (UINT64)(uintptr_t)link->buffer;
    link->remote.size = link->shape.size;
    link->remote.token = CALL(link->mr, GetRemoteToken);
    runner_put_to(channel, &link->remote, sizeof(link->remote));
    runner_get_from(channel, &link->remote, sizeof(link->remote));
    runner_put_to(channel, &byte, 1);
    runner_get_from(channel, &byte, 1);
}

void session_drop(struct session *session)
{
    link_drop(&session->link);
    host_close(&session->host);
}

void session_end(struct session *session)
{
    runner_sync();
    if (runner_role() == ROLE_CLIENT)
        link_disconnect(&session->link);
    runner_sync();
    session_drop(session);
}

/* Results. */

static enum early_kind kind_of(ND2_REQUEST_TYPE type)
{
    return type == Nd2RequestTypeReceive ? EARLY_RECEIVE : EARLY_OTHER;
}

static ND2_RESULT poll_next(IND2CompletionQueue *cq)
{
    ND2_RESULT result;

    memset(&result, 0xa5, sizeof(result));
    while (CALL(cq, GetResults, &result, 1) == 0)
        harness_yield();
    pair_result(&result);
    return result;
}

ND2_RESULT result_next(IND2CompletionQueue *cq)
{
    ND2_RESULT result;

    return early_take(cq, EARLY_ANY, &result, sizeof(result)) ? result : poll_next(cq);
}

ND2_RESULT result_of(IND2CompletionQueue *cq, ND2_REQUEST_TYPE type)
{
    ND2_RESULT result;

    if (early_take(cq, kind_of(type), &result, sizeof(result)))
        return result;
    for (;;) {
        result = poll_next(cq);
        if (kind_of(result.RequestType) == kind_of(type) || result.Status != ND_SUCCESS)
            return result;
        early_put(cq, kind_of(result.RequestType), &result, sizeof(result));
    }
}

void result_none(IND2CompletionQueue *cq)
{
    ND2_RESULT result;

    ok(!early_take(cq, EARLY_ANY, &result, sizeof(result)));
    ok_int(CALL(cq, GetResults, &result, 1), ==, 0);
}

ND2_SGE sge_of(const struct link *link, SIZE_T offset, SIZE_T length)
{
    ND2_SGE sge = { link->buffer + offset, (ULONG)length, link->token };

    ok_uint(offset + length, <=, link->shape.size);
    return sge;
}

void post_receive(struct link *link, uintptr_t context, SIZE_T offset, SIZE_T length)
{
    ND2_SGE sge = sge_of(link, offset, length);

    ok_status(CALL(link->qp, Receive, (void *)context, &sge, 1), ND_SUCCESS);
}

void post_send(struct link *link, uintptr_t context, SIZE_T offset, SIZE_T length, ULONG flags)
{
    ND2_SGE sge = sge_of(link, offset, length);

    ok_status(CALL(link->qp, Send, (void *)context, &sge, 1, flags), ND_SUCCESS);
}

SIZE_T read_that_lasts(void)
{
    return runner_wire() ? 512 * 1024 : 4096 * 1024;
}

static BYTE pattern_byte(SIZE_T at, ULONG seed)
{
    return (BYTE)((at * 167 + (at >> 8) * 13 + seed * 101 + 7) & 0xff);
}

void pattern_fill(void *memory, SIZE_T size, ULONG seed)
{
    BYTE *byte = memory;

    for (SIZE_T i = 0; i < size; i++)
        byte[i] = pattern_byte(i, seed);
}

void pattern_check(const void *memory, SIZE_T size, ULONG seed)
{
    const BYTE *byte = memory;

    for (SIZE_T i = 0; i < size; i++)
        ok_msg(byte[i] == pattern_byte(i, seed), "byte %zu of %zu is 0x%02x, should be 0x%02x", (size_t)i, (size_t)size,
               byte[i], pattern_byte(i, seed));
}

void device_make_anew(void)
{
    const char *device = runner_env("NDVERBS_DEVICE");

    while (runner_command("[ ! -e /sys/class/infiniband/%s ]", device) != 0)
        Sleep(20);
    ok_int(runner_command("rdma link add %s type %s netdev %s", device, runner_env("NDVERBS_TRANSPORT"),
                          runner_env("NDVERBS_NETDEV")),
           ==, 0);
}

/* Which addresses are adapters. */

bool address_is_listed(const union endpoint *address)
{
    SOCKET_ADDRESS_LIST *list;
    bool found = false;
    SIZE_T size = 0;
    HRESULT hr;

    hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, NULL, &size);
    if (hr == ND_SUCCESS && size == 0)
        return false; /* there are none at all */
    ok_status(hr, ND_BUFFER_OVERFLOW);
    size += 4096; /* another one may come between the two calls */
    list = calloc(1, size);
    ok_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size), ND_SUCCESS);
    for (INT i = 0; i < list->iAddressCount; i++) {
        const union endpoint *entry = (const union endpoint *)list->Address[i].lpSockaddr;

        if (entry->any.sa_family != address->any.sa_family)
            continue;
        found |= address->any.sa_family == AF_INET6
                     ? !memcmp(&entry->v6.sin6_addr, &address->v6.sin6_addr, sizeof(entry->v6.sin6_addr)) &&
                           entry->v6.sin6_scope_id == address->v6.sin6_scope_id
                     : entry->v4.sin_addr.s_addr == address->v4.sin_addr.s_addr;
    }
    free(list);
    return found;
}

HRESULT address_try(const union endpoint *address)
{
    IND2Adapter *adapter;
    HRESULT hr = NdOpenAdapter(&IID_IND2Adapter, &address->any, endpoint_size(address), (void **)&adapter);

    if (hr == ND_SUCCESS)
        CALL(adapter, Release);
    return hr;
}

const char *address_reason(const char *text)
{
    static struct ndverbs_adapter_description description;
    union endpoint address = endpoint_from(text);

    description.size = sizeof(description);
    if (ndverbs_adapter_describe(&address.any, endpoint_size(&address), &description) == ND_SUCCESS)
        return "";
    ok_msg(description.reason[0] != 0, "no reason is given for %s", text);
    return description.reason;
}
