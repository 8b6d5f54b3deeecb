/* SPDX-License-Identifier: MIT */
/* What the library's data path costs above plain verbs, in instructions: the same work once through the version 2
 * interfaces and once through ibv_post_send, ibv_post_recv and ibv_poll_cq, on a provider that does next to nothing. Each
 * measured loop is a function of its own, so that callgrind's inclusive cost of it is what it took; tests/bench/instructions
 * runs it and compares. Without callgrind it only shows that both sides do the same work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <poll.h>

#include "ndspi.h"
#include "ndsupport.h"
#include "ndverbs.h"

#include "fakes.h"

#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))
#define ROUNDS                    64
#define BATCH                     16
/* Measured by name: a copy made for constant arguments would have another. */
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

static void check(const char *what, HRESULT status)
{
    if (FAILED(status)) {
        fprintf(stderr, "instructions: %s: 0x%08x\n", what, (unsigned)status);
        exit(1);
    }
}

/* ---- The provider: a ring of what was posted, which a poll gives back as completed ---- */

struct ring {
    uint64_t ids[1024];
    uint32_t head, tail;
};
static struct ring posted;
static uint32_t result_qp;
static uint32_t held; /* polls that find nothing yet, whatever is in the ring */
static bool armed;    /* the last of them is followed by the completion's event */

static KEEP int stub_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)qp, (void)bad;
    posted.ids[posted.head++ % 1024] = wr->wr_id;
    return 0;
}

static KEEP int stub_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp, (void)bad;
    posted.ids[posted.head++ % 1024] = wr->wr_id;
    return 0;
}

static KEEP int stub_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int n = 0;

    if (held) {
        if (--held == 0 && armed) {
            armed = false;
            fake_cq_event(cq);
        }
        return 0;
    }
    for (; n < most && posted.tail != posted.head; n++) {
        wc[n].wr_id = posted.ids[posted.tail++ % 1024];
        wc[n].status = IBV_WC_SUCCESS;
        wc[n].opcode = IBV_WC_SEND;
        wc[n].byte_len = 0;
        wc[n].qp_num = result_qp;
        wc[n].wc_flags = 0;
    }
    return n;
}

/* What was posted completes behind the poll that follows the arm, and the event comes. */
static KEEP int stub_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq, (void)solicited_only;
    held = 1;
    armed = true;
    return 0;
}

/* ---- The work ---- */

struct work {
    IND2QueuePair *nd_qp;
    IND2CompletionQueue *nd_cq;
    ND2_SGE nd_sge;
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_sge sge;
    uint32_t token;
    uint64_t bytes; /* so that no result is unused */
    HANDLE event, port;
    OVERLAPPED event_ov, port_ov;
};

static KEEP void nd_send(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++)
        check("Send", CALL(w->nd_qp, Send, (void *)i, &w->nd_sge, 1, 0));
}

static KEEP void raw_send(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++) {
        struct ibv_send_wr wr = {
            .wr_id = i, .sg_list = &w->sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
        };
        struct ibv_send_wr *bad;

        check("ibv_post_send", ibv_post_send(w->qp, &wr, &bad) ? E_FAIL : S_OK);
    }
}

static KEEP void nd_write(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++)
        check("Write", CALL(w->nd_qp, Write, (void *)i, &w->nd_sge, 1, (uintptr_t)w, w->token, 0));
}

static KEEP void raw_write(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++) {
        struct ibv_send_wr wr = { .wr_id = i,
                                  .sg_list = &w->sge,
                                  .num_sge = 1,
                                  .opcode = IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma = { .remote_addr = (uintptr_t)w, .rkey = w->token } };
        struct ibv_send_wr *bad;

        check("ibv_post_send", ibv_post_send(w->qp, &wr, &bad) ? E_FAIL : S_OK);
    }
}

static KEEP void nd_read(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++)
        check("Read", CALL(w->nd_qp, Read, (void *)i, &w->nd_sge, 1, (uintptr_t)w, w->token, 0));
}

static KEEP void raw_read(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++) {
        struct ibv_send_wr wr = { .wr_id = i,
                                  .sg_list = &w->sge,
                                  .num_sge = 1,
                                  .opcode = IBV_WR_RDMA_READ,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma = { .remote_addr = (uintptr_t)w, .rkey = w->token } };
        struct ibv_send_wr *bad;

        check("ibv_post_send", ibv_post_send(w->qp, &wr, &bad) ? E_FAIL : S_OK);
    }
}

static KEEP void nd_receive(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++)
        check("Receive", CALL(w->nd_qp, Receive, (void *)i, &w->nd_sge, 1));
}

static KEEP void raw_receive(struct work *w)
{
    for (uintptr_t i = 0; i < BATCH; i++) {
        struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &w->sge, .num_sge = 1 }, *bad;

        check("ibv_post_recv", ibv_post_recv(w->qp, &wr, &bad) ? E_FAIL : S_OK);
    }
}

static KEEP void nd_poll_sixteen(struct work *w)
{
    ND2_RESULT results[BATCH];

    check("16 results", CALL(w->nd_cq, GetResults, results, BATCH) == BATCH ? S_OK : E_FAIL);
    w->bytes += results[BATCH - 1].BytesTransferred;
}

static KEEP void raw_poll_sixteen(struct work *w)
{
    struct ibv_wc wc[BATCH];

    check("16 completions", ibv_poll_cq(w->cq, BATCH, wc) == BATCH ? S_OK : E_FAIL);
    w->bytes += wc[BATCH - 1].byte_len;
}

static KEEP void nd_poll_one(struct work *w)
{
    ND2_RESULT result;

    for (int i = 0; i < BATCH; i++) {
        check("1 result", CALL(w->nd_cq, GetResults, &result, 1) == 1 ? S_OK : E_FAIL);
        w->bytes += result.BytesTransferred;
    }
}

static KEEP void raw_poll_one(struct work *w)
{
    struct ibv_wc wc;

    for (int i = 0; i < BATCH; i++) {
        check("1 completion", ibv_poll_cq(w->cq, 1, &wc) == 1 ? S_OK : E_FAIL);
        w->bytes += wc.byte_len;
    }
}

static KEEP void nd_poll_empty(struct work *w)
{
    ND2_RESULT result;

    for (int i = 0; i < BATCH; i++)
        check("no result", CALL(w->nd_cq, GetResults, &result, 1) == 0 ? S_OK : E_FAIL);
}

static KEEP void raw_poll_empty(struct work *w)
{
    struct ibv_wc wc;

    for (int i = 0; i < BATCH; i++)
        check("no completion", ibv_poll_cq(w->cq, 1, &wc) == 0 ? S_OK : E_FAIL);
}

/* A request, the poll that finds nothing, the arm, the sleep, the result. */
static void nd_wait_begin(struct work *w, OVERLAPPED *ov)
{
    ND2_RESULT result;

    check("Send", CALL(w->nd_qp, Send, w, &w->nd_sge, 1, 0));
    held = 2; /* Notify looks before it arms */
    check("no result", CALL(w->nd_cq, GetResults, &result, 1) == 0 ? S_OK : E_FAIL);
    check("Notify", CALL(w->nd_cq, Notify, ND_CQ_NOTIFY_ANY, ov));
}

static void nd_wait_end(struct work *w)
{
    ND2_RESULT result;

    check("1 result", CALL(w->nd_cq, GetResults, &result, 1) == 1 ? S_OK : E_FAIL);
    w->bytes += result.BytesTransferred;
}

static KEEP void nd_wait_event(struct work *w)
{
    for (int i = 0; i < BATCH; i++) {
        nd_wait_begin(w, &w->event_ov);
        check("wait", WaitForSingleObject(w->event, INFINITE) == WAIT_OBJECT_0 ? S_OK : E_FAIL);
        nd_wait_end(w);
    }
}

static KEEP void nd_wait_result(struct work *w)
{
    for (int i = 0; i < BATCH; i++) {
        nd_wait_begin(w, &w->event_ov);
        check("wait", CALL(w->nd_cq, GetOverlappedResult, &w->event_ov, TRUE));
        nd_wait_end(w);
    }
}

static KEEP void nd_wait_port(struct work *w)
{
    OVERLAPPED *done;
    ULONG_PTR key;
    DWORD bytes;

    for (int i = 0; i < BATCH; i++) {
        nd_wait_begin(w, &w->port_ov);
        check("wait", GetQueuedCompletionStatus(w->port, &bytes, &key, &done, INFINITE) ? S_OK : E_FAIL);
        nd_wait_end(w);
    }
}

static KEEP void raw_wait(struct work *w)
{
    struct pollfd fd = { .fd = w->cq->channel->fd, .events = POLLIN };
    struct ibv_wc wc;

    for (int i = 0; i < BATCH; i++) {
        struct ibv_send_wr wr = {
            .wr_id = 0, .sg_list = &w->sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
        };
        struct ibv_send_wr *bad;
        struct ibv_cq *cq;
        void *context;

        check("ibv_post_send", ibv_post_send(w->qp, &wr, &bad) ? E_FAIL : S_OK);
        held = 1;
        check("no completion", ibv_poll_cq(w->cq, 1, &wc) == 0 ? S_OK : E_FAIL);
        check("ibv_req_notify_cq", ibv_req_notify_cq(w->cq, 0) ? E_FAIL : S_OK);
        check("no completion", ibv_poll_cq(w->cq, 1, &wc) == 0 ? S_OK : E_FAIL);
        check("poll", poll(&fd, 1, -1) == 1 ? S_OK : E_FAIL);
        check("ibv_get_cq_event", ibv_get_cq_event(w->cq->channel, &cq, &context) ? E_FAIL : S_OK);
        ibv_ack_cq_events(cq, 1);
        check("1 completion", ibv_poll_cq(w->cq, 1, &wc) == 1 ? S_OK : E_FAIL);
        w->bytes += wc.byte_len;
    }
}

/* Nobody waits: what SetEvent and a port cost by themselves. */
static KEEP void nd_event_pair(struct work *w)
{
    for (int i = 0; i < BATCH; i++) {
        SetEvent(w->event);
        check("wait", WaitForSingleObject(w->event, INFINITE) == WAIT_OBJECT_0 ? S_OK : E_FAIL);
    }
}

static KEEP void nd_port_pair(struct work *w)
{
    OVERLAPPED *done;
    ULONG_PTR key;
    DWORD bytes;

    for (int i = 0; i < BATCH; i++) {
        PostQueuedCompletionStatus(w->port, 1, 2, NULL);
        check("get", GetQueuedCompletionStatus(w->port, &bytes, &key, &done, INFINITE) ? S_OK : E_FAIL);
    }
}

typedef void (*loop)(struct work *w);

static void both(struct work *w, loop nd, loop raw, loop nd_poll, loop raw_poll)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (nd)
            nd(w);
        nd_poll(w);
        if (raw)
            raw(w);
        raw_poll(w);
    }
}

/* ---- A connected queue pair ---- */

struct side {
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    OVERLAPPED ov;
};
static IND2Adapter *adapter;
static HANDLE file;

static void make(struct side *s)
{
    check("CreateCompletionQueue",
          CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 256, 0, 0, (void **)&s->cq));
    check("CreateQueuePair", CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)s->cq, (IUnknown *)s->cq, s,
                                  64, 64, 4, 4, 64, (void **)&s->qp));
    check("CreateConnector", CALL(adapter, CreateConnector, &IID_IND2Connector, file, (void **)&s->connector));
}

static void finish(struct side *s, HRESULT status)
{
    if (status == ND_PENDING)
        status = CALL(s->connector, GetOverlappedResult, &s->ov, TRUE);
    check("connecting", status);
}

int main(void)
{
    static uint8_t memory[4096];
    static struct side server, client;
    static struct work w;
    struct sockaddr_in address = { .sin_family = AF_INET };
    ULONG length = sizeof(address);
    IND2Listener *listener;
    IND2MemoryRegion *region;
    OVERLAPPED ov = { 0 };
    HRESULT status;
    int fd;

    fake_reset();
    fake_wire(true);
    inet_pton(AF_INET, "10.1.1.1", &address.sin_addr);
    check("NdStartup", NdStartup());
    check("NdOpenAdapter", NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, length, (void **)&adapter));
    check("CreateOverlappedFile", CALL(adapter, CreateOverlappedFile, &file));
    check("CreateMemoryRegion", CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&region));
    status = CALL(region, Register, memory, sizeof(memory), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov);
    check("Register", status == ND_PENDING ? CALL(region, GetOverlappedResult, &ov, TRUE) : status);
    make(&server);
    make(&client);

    check("CreateListener", CALL(adapter, CreateListener, &IID_IND2Listener, file, (void **)&listener));
    check("Bind", CALL(listener, Bind, (struct sockaddr *)&address, length));
    check("GetLocalAddress", CALL(listener, GetLocalAddress, (struct sockaddr *)&address, &length));
    check("Listen", CALL(listener, Listen, 0));
    check("GetConnectionRequest", CALL(listener, GetConnectionRequest, (IUnknown *)server.connector, &ov));
    check("Connect", CALL(client.connector, Connect, (IUnknown *)client.qp, (struct sockaddr *)&address, length, 1, 1,
                          NULL, 0, &client.ov));
    check("request", CALL(listener, GetOverlappedResult, &ov, TRUE));
    check("Accept", CALL(server.connector, Accept, (IUnknown *)server.qp, 1, 1, NULL, 0, &server.ov));
    finish(&client, ND_PENDING);
    finish(&client, CALL(client.connector, CompleteConnect, &client.ov));
    finish(&server, ND_PENDING);

    w.nd_qp = client.qp;
    w.nd_cq = client.cq;
    w.nd_sge = (ND2_SGE){ memory, 64, CALL(region, GetLocalToken) };
    w.sge = (struct ibv_sge){ (uintptr_t)memory, 64, w.nd_sge.MemoryRegionToken };
    w.token = CALL(region, GetRemoteToken);
    w.qp = fake_object(FAKE_OBJ_QP, 1);
    w.cq = w.qp->send_cq;
    result_qp = w.qp->qp_num;
    w.qp->context->ops.post_send = stub_post_send;
    w.qp->context->ops.post_recv = stub_post_recv;
    w.qp->context->ops.poll_cq = stub_poll_cq;

    both(&w, nd_send, raw_send, nd_poll_one, raw_poll_one);
    both(&w, nd_write, raw_write, nd_poll_sixteen, raw_poll_sixteen);
    both(&w, nd_read, raw_read, nd_poll_sixteen, raw_poll_sixteen);
    both(&w, nd_receive, raw_receive, nd_poll_sixteen, raw_poll_sixteen);
    both(&w, NULL, NULL, nd_poll_empty, raw_poll_empty);

    w.qp->context->ops.req_notify_cq = stub_req_notify_cq;
    w.event = w.event_ov.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        nd_wait_event(&w);
        nd_wait_result(&w);
    }
    w.port = CreateIoCompletionPort(file, NULL, 0, 1);
    for (int i = 0; i < ROUNDS; i++)
        nd_wait_port(&w);
    for (int i = 0; i < ROUNDS; i++) {
        nd_event_pair(&w);
        nd_port_pair(&w);
    }
    /* The background thread must not take the events away: a host that never drives keeps it from it. */
    check("ndverbs_engine_fd", ndverbs_engine_fd(&fd));
    for (int i = 0; i < ROUNDS; i++)
        raw_wait(&w);
    fprintf(stderr, "calls per loop: %d\n", ROUNDS * BATCH);
    /* The provider is not one that could take the objects apart. */
    _Exit(0);
}
