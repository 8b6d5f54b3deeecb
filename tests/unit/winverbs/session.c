/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <arpa/inet.h>

static char memory[2][64];

IWVConnectEndpoint *session_endpoint(void)
{
    IWVConnectEndpoint *endpoint = NULL;

    ok_status(CALL(provider, CreateConnectEndpoint, &endpoint), WV_SUCCESS);
    return endpoint;
}

void session_listen_at(struct session *s, const char *address, const char *listen_at)
{
    SOCKADDR_IN at = rig_v4(listen_at, 0);
    WV_CONNECT_ATTRIBUTES attributes;
    SIZE_T entries = 64;

    memset(s, 0, sizeof(*s));
    s->address = rig_v4(address, 0);
    s->request = s->connect = s->accept = rig_overlapped();
    s->device = rig_open(rig_guid(address));
    ok_status(CALL(s->device, AllocateProtectionDomain, &s->pd), WV_SUCCESS);
    ok_status(CALL(s->device, CreateCompletionQueue, &entries, &s->cq), WV_SUCCESS);
    for (int i = 0; i < 2; i++) {
        WV_QP_CREATE shape = rig_shape(WvQpTypeRc);

        shape.pSendCq = shape.pReceiveCq = s->cq;
        shape.Context = &memory[i];
        ok_status(CALL(s->pd, CreateConnectQueuePair, &shape, &s->qp[i]), WV_SUCCESS);
        s->verbs[i] = rig_newest_qp();
    }
    s->listener = session_endpoint();
    ok_status(CALL(s->listener, BindAddress, (SOCKADDR *)&at), WV_SUCCESS);
    ok_status(CALL(s->listener, Listen, 4), WV_SUCCESS);
    ok_status(CALL(s->listener, Query, &attributes), WV_SUCCESS);
    s->address.sin_port = attributes.LocalAddress.Sin.sin_port;
    ok_uint(s->address.sin_port, !=, 0);
    s->passive = session_endpoint();
    s->active = session_endpoint();
}

void session_listen(struct session *s, const char *address)
{
    session_listen_at(s, address, address);
}

void session_start(struct session *s)
{
    SOCKADDR_IN local = s->address;

    local.sin_port = 0;
    ok_status(CALL(s->active, BindAddress, (SOCKADDR *)(s->from ? s->from : &local)), WV_SUCCESS);
    ok_status(CALL(s->listener, GetRequest, s->passive, &s->request), WV_IO_PENDING);
    ok_status(CALL(s->active, Connect, s->qp[0], (SOCKADDR *)&s->address, &s->param, &s->connect), WV_IO_PENDING);
}

void session_request(struct session *s)
{
    session_start(s);
    ok_status(CALL(s->listener, GetOverlappedResult, &s->request, NULL, TRUE), WV_SUCCESS);
}

void session_accept_only(struct session *s)
{
    ok_status(CALL(s->passive, Accept, s->qp[1], &s->answer, &s->accept), WV_IO_PENDING);
}

void session_accept(struct session *s)
{
    session_accept_only(s);
    ok_status(CALL(s->active, GetOverlappedResult, &s->connect, NULL, TRUE), WV_SUCCESS);
}

void session_complete(struct session *s)
{
    WV_CONNECT_PARAM none = { 0 };
    OVERLAPPED ov = rig_overlapped();

    ok_status(rig_finish(CALL(s->active, Accept, NULL, &none, &ov), &ov), WV_SUCCESS);
    ok_status(CALL(s->passive, GetOverlappedResult, &s->accept, NULL, TRUE), WV_SUCCESS);
}

void session_connect(struct session *s)
{
    session_listen(s, "10.1.1.1");
    session_request(s);
    session_accept(s);
    session_complete(s);
}

void session_send(struct session *s, int from)
{
    WV_COMPLETION completion;
    WV_SGE sge[2];
    WV_MEMORY_KEYS keys[2];

    for (int i = 0; i < 2; i++) {
        ok_status(CALL(s->pd, RegisterMemory, memory[i], sizeof(memory[i]), WV_ACCESS_LOCAL_WRITE, NULL, &keys[i]),
                  WV_SUCCESS);
        sge[i] = (WV_SGE){ .pAddress = memory[i], .Length = sizeof(memory[i]), .Lkey = keys[i].Lkey };
    }
    memset(memory[from], 0x40 + from, sizeof(memory[from]));
    memset(memory[!from], 0, sizeof(memory[!from]));
    ok_status(CALL(s->qp[!from], PostReceive, 11, &sge[!from], 1), WV_SUCCESS);
    ok_status(CALL(s->qp[from], Send, 22, &sge[from], 1, WV_SEND_SIGNALED, 0), WV_SUCCESS);
    for (int i = 0; i < 2; i++) {
        ok_uint(CALL(s->cq, Poll, &completion, 1), ==, 1);
        ok_int(completion.Status, ==, WvWcSuccess);
        if (completion.Opcode & WvReceive) {
            ok_uint(completion.WrId, ==, 11);
            ok_uint(completion.Length, ==, sizeof(memory[0]));
            ok_ptr(completion.QpContext, ==, &memory[!from]);
        } else {
            ok_uint(completion.WrId, ==, 22);
            ok_ptr(completion.QpContext, ==, &memory[from]);
        }
    }
    ok(!memcmp(memory[0], memory[1], sizeof(memory[0])));
    for (int i = 0; i < 2; i++)
        ok_status(CALL(s->pd, DeregisterMemory, keys[i].Lkey, NULL), WV_SUCCESS);
}

void session_drop(struct session *s)
{
    void *objects[] = { s->qp[0], s->listener, s->active, s->passive, s->qp[1], s->pd, s->cq, s->device };

    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (objects[i])
            rig_release(objects[i]);
    }
}

void session_end(struct session *s)
{
    OVERLAPPED ov = rig_overlapped(), peer = rig_overlapped();

    ok_status(CALL(s->passive, NotifyDisconnect, &peer), WV_IO_PENDING);
    ok_status(CALL(s->active, Disconnect, &ov), WV_IO_PENDING);
    ok_status(CALL(s->passive, GetOverlappedResult, &peer, NULL, TRUE), WV_SUCCESS);
    ok_status(rig_finish(CALL(s->passive, Disconnect, &peer), &peer), WV_SUCCESS);
    ok_status(CALL(s->active, GetOverlappedResult, &ov, NULL, TRUE), WV_SUCCESS);
    session_drop(s);
}
