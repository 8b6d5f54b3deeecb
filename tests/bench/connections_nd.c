/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

#include "connections.h"

const char *const side_program = "ndconnections", *const side_interface = "Network Direct";

struct conn {
    IND2CompletionQueue *cq;
    IND2QueuePair *qp;
    IND2Connector *connector;
    OVERLAPPED notify;
};

static struct {
    struct sockaddr_in address;
    IND2Adapter *adapter;
    IND2Listener *listener;
    IND2MemoryRegion *mr;
    HANDLE file, port, event;
    OVERLAPPED ov; /* of every call that is waited for at once */
    BYTE memory[2 * MESSAGE];
    UINT32 token;
} side;

static void check(const char *what, HRESULT status)
{
    if (status == ND_SUCCESS)
        return;
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", side_program, what, ndverbs_status_text(status));
    exit(1);
}

/* Waits for the outcome of a call that was given side.ov. */
static void finish(const char *what, void *object, HRESULT status)
{
    IND2Overlapped *overlapped = object;

    if (status == ND_PENDING)
        status = overlapped->lpVtbl->GetOverlappedResult(overlapped, &side.ov, TRUE);
    check(what, status);
}

void side_open(const char *address, uint16_t port, bool server)
{
    WSADATA data;

    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
        exit(1);
    check("NdStartup", NdStartup());
    side.address.sin_family = AF_INET;
    if (inet_pton(AF_INET, address, &side.address.sin_addr) != 1)
        check(address, ND_INVALID_ADDRESS);
    check("NdOpenAdapter", NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&side.address, sizeof(side.address),
                                         (void **)&side.adapter));
    check("CreateOverlappedFile", side.adapter->lpVtbl->CreateOverlappedFile(side.adapter, &side.file));
    side.event = CreateEvent(NULL, FALSE, FALSE, NULL);
    side.port = CreateIoCompletionPort(side.file, NULL, 0, 0);
    /* The low bit: these calls queue no packet. */
    side.ov.hEvent = (HANDLE)((ULONG_PTR)side.event | 1);
    check("CreateMemoryRegion",
          side.adapter->lpVtbl->CreateMemoryRegion(side.adapter, &IID_IND2MemoryRegion, side.file, (void **)&side.mr));
    finish(
        "Register", side.mr,
        side.mr->lpVtbl->Register(side.mr, side.memory, sizeof(side.memory), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &side.ov));
    side.token = side.mr->lpVtbl->GetLocalToken(side.mr);
    if (server) {
        struct sockaddr_in local = side.address;

        local.sin_port = htons(port);
        check("CreateListener", side.adapter->lpVtbl->CreateListener(side.adapter, &IID_IND2Listener, side.file,
                                                                     (void **)&side.listener));
        check("Bind", side.listener->lpVtbl->Bind(side.listener, (struct sockaddr *)&local, sizeof(local)));
        check("Listen", side.listener->lpVtbl->Listen(side.listener, 0));
    }
    side.address.sin_port = htons(port);
}

struct conn *conn_new(void)
{
    struct conn *conn = calloc(1, sizeof(*conn));

    if (!conn)
        exit(1);
    check("CreateCompletionQueue",
          side.adapter->lpVtbl->CreateCompletionQueue(side.adapter, &IID_IND2CompletionQueue, side.file, 2 * DEPTH, 0,
                                                      0, (void **)&conn->cq));
    return conn;
}

void conn_make(struct conn *conn)
{
    check("CreateQueuePair",
          side.adapter->lpVtbl->CreateQueuePair(side.adapter, &IID_IND2QueuePair, (IUnknown *)conn->cq,
                                                (IUnknown *)conn->cq, conn, DEPTH, DEPTH, 1, 1, 0, (void **)&conn->qp));
    check("CreateConnector", side.adapter->lpVtbl->CreateConnector(side.adapter, &IID_IND2Connector, side.file,
                                                                   (void **)&conn->connector));
}

void conn_drop(struct conn *conn)
{
    conn->connector->lpVtbl->Release(conn->connector);
    conn->qp->lpVtbl->Release(conn->qp);
}

void conn_connect(struct conn *conn)
{
    struct sockaddr_in local = side.address;

    local.sin_port = 0;
    check("Bind", conn->connector->lpVtbl->Bind(conn->connector, (struct sockaddr *)&local, sizeof(local)));
    finish("Connect", conn->connector,
           conn->connector->lpVtbl->Connect(conn->connector, (IUnknown *)conn->qp, (struct sockaddr *)&side.address,
                                            sizeof(side.address), 1, 1, NULL, 0, &side.ov));
    finish("CompleteConnect", conn->connector, conn->connector->lpVtbl->CompleteConnect(conn->connector, &side.ov));
}

void conn_accept(struct conn *conn)
{
    conn_make(conn);
    finish("GetConnectionRequest", side.listener,
           side.listener->lpVtbl->GetConnectionRequest(side.listener, (IUnknown *)conn->connector, &side.ov));
    finish("Accept", conn->connector,
           conn->connector->lpVtbl->Accept(conn->connector, (IUnknown *)conn->qp, 1, 1, NULL, 0, &side.ov));
}

void conn_disconnect(struct conn *conn)
{
    finish("Disconnect", conn->connector, conn->connector->lpVtbl->Disconnect(conn->connector, &side.ov));
}

void conn_ended(struct conn *conn)
{
    finish("NotifyDisconnect", conn->connector, conn->connector->lpVtbl->NotifyDisconnect(conn->connector, &side.ov));
    conn_disconnect(conn);
}

void conn_arm(struct conn *conn)
{
    HRESULT status = conn->cq->lpVtbl->Notify(conn->cq, ND_CQ_NOTIFY_ANY, &conn->notify);

    if (status != ND_PENDING)
        check("Notify", status);
}

struct conn *side_wait(void)
{
    OVERLAPPED *done;
    ULONG_PTR key;
    DWORD bytes;

    if (!GetQueuedCompletionStatus(side.port, &bytes, &key, &done, INFINITE))
        check("GetQueuedCompletionStatus", ND_UNSUCCESSFUL);
    return CONTAINING_RECORD(done, struct conn, notify);
}

void conn_receive(struct conn *conn)
{
    ND2_SGE sge = { side.memory, MESSAGE, side.token };

    check("Receive", conn->qp->lpVtbl->Receive(conn->qp, NULL, &sge, 1));
}

void conn_send(struct conn *conn)
{
    ND2_SGE sge = { side.memory + MESSAGE, MESSAGE, side.token };

    check("Send", conn->qp->lpVtbl->Send(conn->qp, NULL, &sge, 1, 0));
}

unsigned int conn_take(struct conn *conn)
{
    ND2_RESULT results[DEPTH];
    unsigned int receives = 0;
    ULONG n;

    while ((n = conn->cq->lpVtbl->GetResults(conn->cq, results, DEPTH)) != 0) {
        for (ULONG i = 0; i < n; i++) {
            check("a request", results[i].Status);
            receives += results[i].RequestType == Nd2RequestTypeReceive;
        }
    }
    conn_arm(conn);
    return receives;
}
