/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <ntstatus.h>

#include "ndspi.h"
#include "ndsupport.h"

#include "fakes.h"
#include "harness.h"

#include "core/engine.h"

/* Whole sessions through the version 2 interfaces, over the library with its real engine and threads and the fakes' wire.
 * Expected statuses: ndspi-v2.md sections 11 and 12. */

#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))

struct side {
    IND2Adapter *adapter;
    HANDLE file;
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    IND2MemoryRegion *mr;
    uint8_t buffer[64];
    OVERLAPPED ov;
};

static const char *address_text = "10.1.1.1";

static struct sockaddr_in address_of(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

    inet_pton(AF_INET, address_text, &address.sin_addr);
    return address;
}

/* What an overlapped call on an object comes to. */
#define FINISH(object, ov_, call) \
    ((call_status = (call)) == ND_PENDING ? CALL(object, GetOverlappedResult, ov_, TRUE) : call_status)
static __thread HRESULT call_status;

SETUP
{
    fake_reset();
    fake_wire(true);
    fake_loop_test(engine_on_loop);
    ok_status(NdStartup(), ND_SUCCESS);
}

TEARDOWN
{
    ok_status(NdCleanup(), ND_SUCCESS);
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    ok_eventually(fake_live(FAKE_OBJ_ID) == 0 && fake_live(FAKE_OBJ_CONTEXT) == 0);
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
}

static void side_open(struct side *s)
{
    struct sockaddr_in address = address_of(0);

    memset(s, 0, sizeof(*s));
    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), (void **)&s->adapter),
              ND_SUCCESS);
    ok_status(CALL(s->adapter, CreateOverlappedFile, &s->file), ND_SUCCESS);
    ok_status(CALL(s->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, s->file, (void **)&s->mr), ND_SUCCESS);
    ok_status(FINISH(s->mr, &s->ov,
                     CALL(s->mr, Register, s->buffer, sizeof(s->buffer), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &s->ov)),
              ND_SUCCESS);
    ok_status(CALL(s->adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, s->file, 16, 0, 0, (void **)&s->cq),
              ND_SUCCESS);
}

static void side_link(struct side *s)
{
    ok_status(CALL(s->adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)s->cq, (IUnknown *)s->cq, s, 4, 4, 1, 1,
                   0, (void **)&s->qp),
              ND_SUCCESS);
    ok_status(CALL(s->adapter, CreateConnector, &IID_IND2Connector, s->file, (void **)&s->connector), ND_SUCCESS);
}

static void side_unlink(struct side *s)
{
    if (s->connector)
        ok_uint(CALL(s->connector, Release), ==, 0);
    if (s->qp)
        ok_uint(CALL(s->qp, Release), ==, 0);
    s->connector = NULL;
    s->qp = NULL;
}

static void side_close(struct side *s)
{
    side_unlink(s);
    ok_uint(CALL(s->mr, Release), ==, 0);
    ok_uint(CALL(s->cq, Release), ==, 0);
    CloseHandle(s->file);
    ok_uint(CALL(s->adapter, Release), ==, 0);
}

static IND2Listener *listen_on(struct side *s, struct sockaddr_in *address)
{
    IND2Listener *listener;
    ULONG length = sizeof(*address);

    *address = address_of(0);
    ok_status(CALL(s->adapter, CreateListener, &IID_IND2Listener, s->file, (void **)&listener), ND_SUCCESS);
    ok_status(CALL(listener, Bind, (struct sockaddr *)address, sizeof(*address)), ND_SUCCESS);
    ok_status(CALL(listener, GetLocalAddress, (struct sockaddr *)address, &length), ND_SUCCESS);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    return listener;
}

/* Both sides, of which the server has the client's request. */
static IND2Listener *request_pair(struct side *server, struct side *client)
{
    IND2Listener *listener;
    struct sockaddr_in to;
    OVERLAPPED request = { 0 };

    side_open(server);
    side_open(client);
    side_link(server);
    side_link(client);
    listener = listen_on(server, &to);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)server->connector, &request), ND_PENDING);
    ok_status(CALL(client->connector, Connect, (IUnknown *)client->qp, (struct sockaddr *)&to, sizeof(to), 0, 0, NULL,
                   0, &client->ov),
              ND_PENDING);
    ok_status(CALL(listener, GetOverlappedResult, &request, TRUE), ND_SUCCESS);
    return listener;
}

static ND2_RESULT result_of(struct side *s)
{
    ND2_RESULT result;

    ok_eventually(CALL(s->cq, GetResults, &result, 1) == 1);
    return result;
}

static void receive(struct side *s)
{
    ND2_SGE sge = { s->buffer, sizeof(s->buffer), CALL(s->mr, GetLocalToken) };

    ok_status(CALL(s->qp, Receive, s, &sge, 1), ND_SUCCESS);
}

static void send_text(struct side *s, const char *text)
{
    ND2_SGE sge = { s->buffer, (ULONG)strlen(text) + 1, CALL(s->mr, GetLocalToken) };

    strcpy((char *)s->buffer, text);
    ok_status(CALL(s->qp, Send, s, &sge, 1, 0), ND_SUCCESS);
}

TEST(Session__from_end_to_end)
{
    struct side server, client;
    struct sockaddr_in to, from = address_of(0);
    OVERLAPPED request = { 0 }, notify = { 0 };
    IND2Listener *listener;
    ND2_RESULT result;
    uint8_t data[148];
    ULONG length, in, out;

    side_open(&server);
    side_open(&client);
    side_link(&server);
    side_link(&client);
    listener = listen_on(&server, &to);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)server.connector, &request), ND_PENDING);
    receive(&client);
    ok_status(CALL(client.connector, Bind, (struct sockaddr *)&from, sizeof(from)), ND_SUCCESS);
    ok_status(CALL(client.connector, Connect, (IUnknown *)client.qp, (struct sockaddr *)&to, sizeof(to), 2, 1, "ping",
                   4, &client.ov),
              ND_PENDING);
    ok_status(CALL(listener, GetOverlappedResult, &request, TRUE), ND_SUCCESS);
    length = sizeof(data);
    ok_status(CALL(server.connector, GetPrivateData, data, &length), ND_SUCCESS);
    ok_mem(data, "ping", 5);
    receive(&server);
    ok_status(CALL(server.connector, Accept, (IUnknown *)server.qp, 1, 2, "pong", 4, &server.ov), ND_PENDING);
    ok_status(CALL(client.connector, GetOverlappedResult, &client.ov, TRUE), ND_SUCCESS);
    length = sizeof(data);
    ok_status(CALL(client.connector, GetPrivateData, data, &length), ND_SUCCESS);
    ok_mem(data, "pong", 5);
    ok_status(CALL(client.connector, GetReadLimits, &in, &out), ND_SUCCESS);
    ok_uint(in, ==, 2);
    ok_uint(out, ==, 1);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)), ND_SUCCESS);
    ok_status(CALL(server.connector, GetOverlappedResult, &server.ov, TRUE), ND_SUCCESS);
    ok_status(CALL(server.connector, NotifyDisconnect, &notify), ND_PENDING);

    send_text(&client, "hello");
    result = result_of(&server);
    ok_status(result.Status, ND_SUCCESS);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_ptr(result.QueuePairContext, ==, &server);
    ok_str((char *)server.buffer, "hello");
    ok_status(result_of(&client).Status, ND_SUCCESS);
    receive(&server);

    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
    result = result_of(&client); /* the receive is back before Disconnect completed */
    ok_status(result.Status, ND_CANCELED);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_status(CALL(server.connector, GetOverlappedResult, &notify, TRUE), ND_SUCCESS);
    ok_status(result_of(&server).Status, ND_CANCELED);
    ok_status(FINISH(server.connector, &server.ov, CALL(server.connector, Disconnect, &server.ov)), ND_SUCCESS);
    ok_status(CALL(server.connector, Disconnect, &server.ov), ND_CONNECTION_INVALID);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&server);
    side_close(&client);
}

/* The last Release gives 0 while the queue pair lives, and the peer hears of it. */
TEST(Session__connector_released_first)
{
    struct side server, client;
    OVERLAPPED notify = { 0 };
    IND2Listener *listener;

    listener = request_pair(&server, &client);
    ok_status(CALL(server.connector, Accept, (IUnknown *)server.qp, 0, 0, NULL, 0, &server.ov), ND_PENDING);
    ok_status(CALL(client.connector, GetOverlappedResult, &client.ov, TRUE), ND_SUCCESS);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)), ND_SUCCESS);
    ok_status(CALL(server.connector, GetOverlappedResult, &server.ov, TRUE), ND_SUCCESS);
    ok_status(CALL(server.connector, NotifyDisconnect, &notify), ND_PENDING);
    receive(&client);
    ok_uint(CALL(client.connector, Release), ==, 0);
    client.connector = NULL;
    ok_status(CALL(server.connector, GetOverlappedResult, &notify, TRUE), ND_SUCCESS);
    ok_status(result_of(&client).Status, ND_CANCELED);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&server);
    side_close(&client);
}

static void connect_pair(struct side *server, struct side *client, IND2Listener **listener)
{
    *listener = request_pair(server, client);
    ok_status(CALL(server->connector, Accept, (IUnknown *)server->qp, 0, 0, NULL, 0, &server->ov), ND_PENDING);
    ok_status(CALL(client->connector, GetOverlappedResult, &client->ov, TRUE), ND_SUCCESS);
    ok_status(FINISH(client->connector, &client->ov, CALL(client->connector, CompleteConnect, &client->ov)),
              ND_SUCCESS);
    ok_status(CALL(server->connector, GetOverlappedResult, &server->ov, TRUE), ND_SUCCESS);
}

static HRESULT send_nothing(struct side *s)
{
    return CALL(s->qp, Send, s, NULL, 0, 0);
}

static void answer(struct fake_call *call, void *arg)
{
    (void)call;
    ok_status(send_nothing(arg), ND_SUCCESS);
}

/* A message of the peer can be here, and be answered by another thread, before the call has returned that lets the peer send. */
TEST(Send__while_the_connection_is_being_made)
{
    struct side server, client;
    IND2Listener *listener;

    for (int i = 0; i < 2; i++) {
        struct side *early = i ? &client : &server;

        fake_on(i ? FAKE_rdma_establish : FAKE_rdma_accept, answer, early);
        connect_pair(&server, &client, &listener);
        receive(i ? &server : &client);
        ok_status(result_of(early).Status, ND_SUCCESS);
        ok_uint(CALL(listener, Release), ==, 0);
        side_close(&server);
        side_close(&client);
    }
}

/* What was sent before a call that then fails comes back, as everything posted does. */
TEST(Send__and_the_connection_fails)
{
    static const enum fake_fn calls[] = { FAKE_rdma_accept, FAKE_rdma_establish };
    struct side server, client;
    struct sockaddr_in to;

    for (int i = 0; i < 2; i++) {
        struct side *early = i ? &client : &server;
        OVERLAPPED request = { 0 };
        IND2Listener *listener;
        HRESULT status;

        side_open(&server);
        side_open(&client);
        side_link(&server);
        side_link(&client);
        listener = listen_on(&server, &to);
        ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)server.connector, &request), ND_PENDING);
        ok_status(CALL(client.connector, Connect, (IUnknown *)client.qp, (struct sockaddr *)&to, sizeof(to), 0, 0, NULL,
                       0, &client.ov),
                  ND_PENDING);
        ok_status(CALL(listener, GetOverlappedResult, &request, TRUE), ND_SUCCESS);
        fake_on(calls[i], answer, early);
        fake_fail(calls[i], 1, EINVAL);
        status = CALL(server.connector, Accept, (IUnknown *)server.qp, 0, 0, NULL, 0, &server.ov);
        if (i) {
            ok_status(CALL(client.connector, GetOverlappedResult, &client.ov, TRUE), ND_SUCCESS);
            status = CALL(client.connector, CompleteConnect, &client.ov);
        }
        ok_status(status, ND_CONNECTION_ABORTED);
        ok_status(result_of(early).Status, ND_CANCELED);
        ok_status(send_nothing(early), ND_SUCCESS);
        ok_status(result_of(early).Status, ND_CANCELED);
        ok_uint(CALL(listener, Release), ==, 0);
        side_close(&server);
        side_close(&client);
    }
}

static unsigned held_up;

/* On the loop, which has nothing else to do here. */
static void hold_up(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    while (__atomic_load_n(&held_up, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void hold_events(struct fake_call *call, void *arg)
{
    (void)call;
    (void)arg;
    __atomic_store_n(&held_up, 1, __ATOMIC_RELEASE);
    fake_on_every(FAKE_rdma_get_cm_event, hold_up, NULL);
}

/* The kernel has connected the queue pair when rdma_accept returns; the event that says so comes when it comes. */
TEST(Send__before_Accept_completes_on_iWARP)
{
    struct side server, client;
    IND2Listener *listener;

    address_text = "10.1.2.1";
    listener = request_pair(&server, &client);
    fake_on(FAKE_rdma_accept, hold_events, NULL);
    ok_status(CALL(server.connector, Accept, (IUnknown *)server.qp, 0, 0, NULL, 0, &server.ov), ND_PENDING);
    ok_status(send_nothing(&server), ND_SUCCESS);
    ok_status((NTSTATUS)server.ov.Internal, ND_PENDING);
    __atomic_store_n(&held_up, 0, __ATOMIC_RELEASE);
    ok_status(CALL(client.connector, GetOverlappedResult, &client.ov, TRUE), ND_SUCCESS);
    receive(&client);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, CompleteConnect, &client.ov)), ND_SUCCESS);
    ok_status(CALL(server.connector, GetOverlappedResult, &server.ov, TRUE), ND_SUCCESS);
    ok_status(result_of(&server).Status, ND_SUCCESS);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&server);
    side_close(&client);
    address_text = "10.1.1.1";
}

/* The device says that the queue pair is of no more use (ndspi.md 4.8). */
TEST(Session__a_fatal_event_of_the_queue_pair)
{
    struct side server, client;
    OVERLAPPED notify = { 0 };
    IND2Listener *listener;

    connect_pair(&server, &client, &listener);
    receive(&client);
    ok_status(CALL(client.connector, NotifyDisconnect, &notify), ND_PENDING);
    fake_async_qp(fake_object(FAKE_OBJ_QP, -1), IBV_EVENT_QP_FATAL);
    ok_status(CALL(client.connector, GetOverlappedResult, &notify, TRUE), STATUS_CONNECTION_DISCONNECTED);
    ok_status(CALL(client.qp, Receive, &client, NULL, 0), ND_SUCCESS);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
    ok_status(result_of(&client).Status, ND_CANCELED);
    ok_status(result_of(&client).Status, ND_CANCELED);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&server);
    side_close(&client);
}

/* An overrun ends the queue pairs of the completion queue, which rdma_cm does not know of. */
TEST(Session__the_completion_queue_overruns)
{
    const struct ibv_qp *qp;
    struct side server, client;
    OVERLAPPED notify = { 0 };
    IND2Listener *listener;

    connect_pair(&server, &client, &listener);
    ok_status(CALL(client.connector, NotifyDisconnect, &notify), ND_PENDING);
    qp = fake_object(FAKE_OBJ_QP, -1);
    fake_async_cq(qp->recv_cq, IBV_EVENT_CQ_ERR);
    ok_status(CALL(client.connector, GetOverlappedResult, &notify, TRUE), STATUS_CONNECTION_DISCONNECTED);
    ok_status(FINISH(client.connector, &client.ov, CALL(client.connector, Disconnect, &client.ov)), ND_SUCCESS);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&server);
    side_close(&client);
}

/* ---- The front itself ---- */

static HRESULT STDMETHODCALLTYPE foreign_query(IUnknown *iface, REFIID iid, void **out)
{
    (void)iface;
    (void)iid;
    *out = NULL;
    return E_NOINTERFACE;
}

static ULONG STDMETHODCALLTYPE foreign_count(IUnknown *iface)
{
    (void)iface;
    return 1;
}

TEST(Front__interfaces_and_pointers)
{
    static const IUnknownVtbl foreign_vtbl = { foreign_query, foreign_count, foreign_count };
    IUnknown foreign = { &foreign_vtbl }, *same, *unknown;
    struct sockaddr_in to;
    struct side s;
    OVERLAPPED ov = { 0 };
    IND2Listener *listener;

    side_open(&s);
    side_link(&s);
    listener = listen_on(&s, &to);
    ok_status(CALL(s.connector, QueryInterface, &IID_IND2Connector, NULL), E_POINTER);
    ok_status(CALL(s.connector, QueryInterface, &IID_IND2Listener, (void **)&same), E_NOINTERFACE);
    ok_ptr(same, ==, NULL);
    ok_status(CALL(s.connector, QueryInterface, &IID_IUnknown, (void **)&unknown), ND_SUCCESS);
    ok_status(CALL(s.connector, QueryInterface, &IID_IND2Overlapped, (void **)&same), ND_SUCCESS);
    ok_ptr(same, ==, unknown);
    ok_uint(CALL(s.connector, AddRef), ==, 4);
    for (ULONG left = 3; left >= 1; left--)
        ok_uint(CALL(s.connector, Release), ==, left);
    ok_status(CALL(listener, QueryInterface, &IID_IND2Listener, (void **)&same), ND_SUCCESS);
    ok_status(CALL(listener, QueryInterface, &IID_IND2Overlapped, (void **)&same), ND_SUCCESS);
    ok_status(CALL(listener, QueryInterface, &IID_IND2Connector, (void **)&same), E_NOINTERFACE);
    ok_uint(CALL(listener, Release), ==, 2);
    ok_uint(CALL(listener, Release), ==, 1);

    ok_status(CALL(s.connector, Connect, NULL, (struct sockaddr *)&to, sizeof(to), 0, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Connect, &foreign, (struct sockaddr *)&to, sizeof(to), 0, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Connect, (IUnknown *)s.cq, (struct sockaddr *)&to, sizeof(to), 0, 0, NULL, 0, &ov),
              ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, Accept, &foreign, 0, 0, NULL, 0, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listener, GetConnectionRequest, NULL, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listener, GetConnectionRequest, &foreign, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)listener, &ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.connector, GetOverlappedResult, NULL, FALSE), ND_INVALID_PARAMETER);
    ok_status(CALL(listener, GetOverlappedResult, NULL, FALSE), ND_INVALID_PARAMETER);
    ok_status(CALL(s.connector, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    ok_status(CALL(s.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(s.connector, GetPrivateData, NULL, NULL), ND_INVALID_PARAMETER_2);
    ok_status(CALL(s.connector, Reject, NULL, 0), ND_CONNECTION_INVALID);
    ok_uint(CALL(listener, Release), ==, 0);
    side_close(&s);
}

/* ---- Many threads ---- */

#define PAIRS  3
#define CYCLES 60

struct pair {
    struct side server, client;
    struct sockaddr_in to;
    IND2Listener *listener;
    unsigned seed;
    pthread_barrier_t step;
    unsigned connected;
};

/* Everything that can come of an attempt that somebody ends at a random moment. */
static bool expected(HRESULT status)
{
    return status == ND_SUCCESS || status == ND_CANCELED || status == ND_CONNECTION_REFUSED ||
           status == ND_CONNECTION_ABORTED || status == ND_CONNECTION_INVALID || status == ND_IO_TIMEOUT;
}

static void ok_expected(HRESULT status)
{
    ok_msg(expected(status), "status 0x%x", (unsigned)status);
}

static void *serve(void *arg)
{
    struct pair *pair = arg;
    struct side *s = &pair->server;
    OVERLAPPED notify = { 0 };
    unsigned seed = pair->seed * 7919;

    for (int i = 0; i < CYCLES; i++) {
        HRESULT status, told;

        side_link(s);
        receive(s);
        ok_status(FINISH(pair->listener, &s->ov,
                         CALL(pair->listener, GetConnectionRequest, (IUnknown *)s->connector, &s->ov)),
                  ND_SUCCESS);
        if (rand_r(&seed) % 8 == 0) {
            ok_expected(CALL(s->connector, Reject, "no", 2));
        } else {
            status = FINISH(s->connector, &s->ov, CALL(s->connector, Accept, (IUnknown *)s->qp, 1, 1, NULL, 0, &s->ov));
            ok_expected(status);
            if (status == ND_SUCCESS) {
                status = CALL(s->connector, NotifyDisconnect, &notify);
                ok_status(status, ND_PENDING);
                if (rand_r(&seed) % 2)
                    ok_status(FINISH(s->connector, &s->ov, CALL(s->connector, Disconnect, &s->ov)), ND_SUCCESS);
                told = CALL(s->connector, GetOverlappedResult, &notify, TRUE);
                ok_status(told, ND_SUCCESS);
            }
        }
        side_unlink(s);
        while (CALL(s->cq, GetResults, &(ND2_RESULT){ 0 }, 1))
            ;
        pthread_barrier_wait(&pair->step);
    }
    return NULL;
}

static void *call(void *arg)
{
    struct pair *pair = arg;
    struct side *s = &pair->client;
    unsigned seed = pair->seed * 104729;

    for (int i = 0; i < CYCLES; i++) {
        HRESULT status;

        side_link(s);
        receive(s);
        status = CALL(s->connector, Connect, (IUnknown *)s->qp, (struct sockaddr *)&pair->to, sizeof(pair->to), 1, 1,
                      NULL, 0, &s->ov);
        ok_status(status, ND_PENDING);
        status = CALL(s->connector, GetOverlappedResult, &s->ov, TRUE);
        ok_expected(status);
        switch (status == ND_SUCCESS ? rand_r(&seed) % 6 : 6) {
        case 0:
            ok_expected(CALL(s->connector, Reject, NULL, 0));
            break;
        case 1:
            break; /* releases it */
        case 2:
            ok_expected(FINISH(s->connector, &s->ov, CALL(s->connector, CompleteConnect, &s->ov)));
            break;
        case 6:
            break;
        default:
            status = FINISH(s->connector, &s->ov, CALL(s->connector, CompleteConnect, &s->ov));
            ok_expected(status);
            if (status != ND_SUCCESS)
                break;
            pair->connected++;
            send_text(s, "x");
            status = CALL(s->connector, Disconnect, &s->ov);
            ok_status(status, ND_PENDING);
            if (rand_r(&seed) % 2)
                ok_status(CALL(s->connector, GetOverlappedResult, &s->ov, TRUE), ND_SUCCESS);
            else
                ok_status(CALL(s->connector, CancelOverlappedRequests), ND_SUCCESS);
            break;
        }
        side_unlink(s);
        while (CALL(s->cq, GetResults, &(ND2_RESULT){ 0 }, 1))
            ;
        pthread_barrier_wait(&pair->step);
    }
    return NULL;
}

static void run_pairs(const char *text)
{
    static struct pair pairs[PAIRS];
    pthread_t threads[2 * PAIRS];

    address_text = text;
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(&pairs[i], 0, sizeof(pairs[i]));
        pairs[i].seed = i + 1;
        pthread_barrier_init(&pairs[i].step, NULL, 2);
        side_open(&pairs[i].server);
        side_open(&pairs[i].client);
        pairs[i].listener = listen_on(&pairs[i].server, &pairs[i].to);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        ok_int(pthread_create(&threads[2 * i], NULL, serve, &pairs[i]), ==, 0);
        ok_int(pthread_create(&threads[2 * i + 1], NULL, call, &pairs[i]), ==, 0);
    }
    for (unsigned i = 0; i < 2 * PAIRS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < PAIRS; i++) {
        ok_uint(pairs[i].connected, >, 0);
        ok_uint(CALL(pairs[i].listener, Release), ==, 0);
        side_close(&pairs[i].server);
        side_close(&pairs[i].client);
        pthread_barrier_destroy(&pairs[i].step);
    }
}

TEST(Threads__connect_and_end_in_every_way)
{
    run_pairs("10.1.1.1");
}

TEST(Threads__the_same_on_iWARP)
{
    run_pairs("10.1.2.1");
}
