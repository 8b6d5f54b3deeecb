/* SPDX-License-Identifier: MIT */
#include "wvside.h"

#include <stdlib.h>

#include "early.h"

void wv_open_at(struct wvhost *host, const union endpoint *address)
{
    memset(host, 0, sizeof(*host));
    harness_status_text = ndverbs_status_text;
    host->address = *address;
    ok_status(WvGetObject(&IID_IWVProvider, (void **)&host->provider), WV_SUCCESS);
    ok_status(CALL(host->provider, TranslateAddress, &address->any, &host->where), WV_SUCCESS);
    ok_status(CALL(host->provider, OpenDevice, host->where.DeviceGuid, &host->device), WV_SUCCESS);
    ok_status(CALL(host->device, Query, &host->attributes), WV_SUCCESS);
    ok_status(CALL(host->device, AllocateProtectionDomain, &host->pd), WV_SUCCESS);
}

void wv_open(struct wvhost *host)
{
    union endpoint own = own_endpoint();

    wv_open_at(host, &own);
}

void wv_close(struct wvhost *host)
{
    release_last(host->pd);
    release_last(host->device);
    release_last(host->provider);
    memset(host, 0, sizeof(*host));
}

/* ---- links ---- */

IWVConnectQueuePair *wv_make_qp(struct wvlink *link)
{
    const struct wvshape *shape = &link->shape;
    WV_QP_CREATE create = { 0 };
    IWVConnectQueuePair *qp;

    create.pSendCq = create.pReceiveCq = link->cq;
    create.pSharedReceiveQueue = shape->srq;
    create.Context = link;
    create.SendDepth = create.ReceiveDepth = shape->depth;
    create.SendSge = create.ReceiveSge = shape->sge;
    create.MaxInlineSend = min((SIZE_T)64, link->host->attributes.MaxInlineSend);
    create.InitiatorDepth = create.ResponderResources = shape->reads;
    create.QpType = WvQpTypeRc;
    create.QpFlags = shape->flags | (shape->unsignalled ? 0 : WV_QP_SIGNAL_SENDS);
    ok_status(CALL(link->host->pd, CreateConnectQueuePair, &create, &qp), WV_SUCCESS);
    return qp;
}

void wv_to_init(struct wvlink *link, IWVConnectQueuePair *qp)
{
    struct wvhost *host = link->host;
    WV_QP_ATTRIBUTES attributes;

    memset(&attributes, 0xa5, sizeof(attributes)); /* only what the transition needs may be looked at */
    attributes.QpState = WvQpStateInit;
    attributes.AddressVector.PortNumber = host->where.PortNumber;
    ok_status(CALL(host->device, FindPkey, host->where.PortNumber, host->where.Pkey, &attributes.PkeyIndex),
              WV_SUCCESS);
    ok_status(CALL(qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL), WV_SUCCESS);
}

HRESULT wv_to_error(IWVConnectQueuePair *qp, OVERLAPPED *ov)
{
    WV_QP_ATTRIBUTES attributes;

    memset(&attributes, 0xa5, sizeof(attributes));
    attributes.QpState = WvQpStateError;
    return CALL(qp, Modify, &attributes, WV_QP_ATTR_STATE, ov);
}

WV_QP_STATE wv_state(IWVConnectQueuePair *qp)
{
    WV_QP_ATTRIBUTES attributes;

    ok_status(CALL(qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.CurrentQpState, ==, attributes.QpState);
    return attributes.QpState;
}

IWVConnectEndpoint *wv_make_endpoint(struct wvhost *host)
{
    IWVConnectEndpoint *endpoint;

    ok_status(CALL(host->provider, CreateConnectEndpoint, &endpoint), WV_SUCCESS);
    return endpoint;
}

IWVDatagramEndpoint *wv_make_datagram(struct wvhost *host)
{
    IWVDatagramEndpoint *endpoint;

    ok_status(CALL(host->provider, CreateDatagramEndpoint, &endpoint), WV_SUCCESS);
    return endpoint;
}

void wv_make(struct wvlink *link, struct wvhost *host, const struct wvshape *shape)
{
    SIZE_T entries;

    memset(link, 0, sizeof(*link));
    link->host = host;
    if (shape)
        link->shape = *shape;
    shape = &link->shape;
    if (!shape->depth)
        link->shape.depth = 16;
    if (!shape->sge)
        link->shape.sge = 2;
    if (!shape->size)
        link->shape.size = 4096;
    link->event = event_auto();
    overlapped_rubbish(&link->ov, link->event);
    link->buffer = aligned_alloc(4096, (shape->size + 4095) / 4096 * 4096);
    ok(link->buffer != NULL);
    memset(link->buffer, 0, shape->size);
    ok_status(CALL(host->pd, RegisterMemory, link->buffer, shape->size,
                   WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE | WV_ACCESS_REMOTE_ATOMIC |
                       (host->attributes.MaxMw ? WV_ACCESS_MW_BIND : 0),
                   NULL, &link->keys),
              WV_SUCCESS);
    entries = 4 * shape->depth;
    ok_status(CALL(host->device, CreateCompletionQueue, &entries, &link->cq), WV_SUCCESS);
    link->qp = wv_make_qp(link);
    wv_to_init(link, link->qp);
    link->endpoint = wv_make_endpoint(host);
}

void wv_drop(struct wvlink *link)
{
    if (link->endpoint)
        release_last(link->endpoint);
    if (link->qp)
        release_last(link->qp);
    if (link->cq)
        release_last(link->cq);
    if (link->buffer)
        ok_status(CALL(link->host->pd, DeregisterMemory, link->keys.Lkey, NULL), WV_SUCCESS);
    free(link->buffer);
    ok(CloseHandle(link->event));
    memset(link, 0, sizeof(*link));
}

HRESULT wv_finish(HRESULT started, OVERLAPPED *ov, IWVOverlapped *object)
{
    if (FAILED(started) && started != WV_IO_PENDING)
        return started;
    return CALL(object, GetOverlappedResult, ov, NULL, TRUE);
}

/* ---- connecting ---- */

union endpoint wv_listener(IWVConnectEndpoint *listener)
{
    WV_CONNECT_ATTRIBUTES attributes;
    union endpoint endpoint = { 0 };

    ok_status(CALL(listener, Query, &attributes), WV_SUCCESS);
    memcpy(&endpoint, &attributes.LocalAddress, sizeof(attributes.LocalAddress));
    ok_int(endpoint_port(&endpoint), !=, 0);
    return endpoint;
}

IWVConnectEndpoint *wv_listen(struct wvhost *host)
{
    IWVConnectEndpoint *listener = wv_make_endpoint(host);

    endpoint_set_port(&host->address, 0);
    ok_status(CALL(listener, BindAddress, &host->address.any), WV_SUCCESS);
    ok_status(CALL(listener, Listen, 8), WV_SUCCESS);
    if (runner_role() == ROLE_SERVER) {
        union endpoint endpoint = wv_listener(listener);
        USHORT port = endpoint_port(&endpoint);

        runner_put(&port, sizeof(port));
    }
    return listener;
}

void wv_bind(struct wvlink *link)
{
    endpoint_set_port(&link->host->address, 0);
    ok_status(CALL(link->endpoint, BindAddress, &link->host->address.any), WV_SUCCESS);
}

WV_CONNECT_PARAM wv_param(const struct wvlink *link)
{
    WV_CONNECT_PARAM param = { 0 };

    param.ResponderResources = param.InitiatorDepth = link->shape.reads;
    param.RetryCount = 6;
    param.RnrRetryCount = link->shape.impatient ? 0 : 6;
    return param;
}

HRESULT wv_try_connect(struct wvlink *link, const union endpoint *to)
{
    WV_CONNECT_PARAM param = wv_param(link);

    return WV_FINISH(link->endpoint, &link->ov, CALL(link->endpoint, Connect, link->qp, &to->any, &param, &link->ov));
}

HRESULT wv_complete(struct wvlink *link)
{
    WV_CONNECT_PARAM none = { 0 };

    return WV_FINISH(link->endpoint, &link->ov, CALL(link->endpoint, Accept, NULL, &none, &link->ov));
}

void wv_request(struct wvlink *link, IWVConnectEndpoint *listener)
{
    ok_status(WV_FINISH(listener, &link->ov, CALL(listener, GetRequest, link->endpoint, &link->ov)), WV_SUCCESS);
}

HRESULT wv_try_accept(struct wvlink *link)
{
    WV_CONNECT_PARAM param = wv_param(link);

    return WV_FINISH(link->endpoint, &link->ov, CALL(link->endpoint, Accept, link->qp, &param, &link->ov));
}

/* ---- both sides in one process ---- */

static union endpoint address_of_peer(void)
{
    const char *peer = runner_env("NDVERBS_PEER_ADDR");

    return endpoint_from(peer ? peer : runner_env("NDVERBS_ADDR"));
}

void wv_settle(void)
{
    if (runner_iwarp())
        Sleep(100);
}

void wv_pair_make(struct wvpair *pair, const struct wvshape *shape)
{
    union endpoint peer = address_of_peer();

    memset(pair, 0, sizeof(*pair));
    wv_open(&pair->host[0]);
    wv_open_at(&pair->host[1], &peer);
    for (int i = 0; i < 2; i++)
        wv_make(&pair->link[i], &pair->host[i], shape);
    for (int i = 0; i < 2; i++) {
        pair->link[i].remote.address = wv_net64((UINT64)(uintptr_t)pair->link[!i].buffer);
        pair->link[i].remote.rkey = pair->link[!i].keys.Rkey;
    }
    pair->listener = wv_listen(&pair->host[1]);
    pair->to = wv_listener(pair->listener);
}

void wv_pair_meet(struct wvpair *pair)
{
    struct wvlink *active = &pair->link[0], *passive = &pair->link[1];
    WV_CONNECT_PARAM ask = wv_param(active), answer = wv_param(passive);
    HRESULT accepted;

    ok_status(CALL(pair->listener, GetRequest, passive->endpoint, &passive->ov), WV_IO_PENDING);
    ok_status(CALL(active->endpoint, Connect, active->qp, &pair->to.any, &ask, &active->ov), WV_IO_PENDING);
    ok_status(WV_FINISH(pair->listener, &passive->ov, WV_IO_PENDING), WV_SUCCESS);
    accepted = CALL(passive->endpoint, Accept, passive->qp, &answer, &passive->ov);
    ok_status(accepted, WV_IO_PENDING);
    ok_status(WV_FINISH(active->endpoint, &active->ov, WV_IO_PENDING), WV_SUCCESS);
    ok_status(wv_complete(active), WV_SUCCESS);
    ok_status(WV_FINISH(passive->endpoint, &passive->ov, accepted), WV_SUCCESS);
    wv_settle();
}

void wv_pair_connect(struct wvpair *pair)
{
    wv_bind(&pair->link[0]);
    wv_pair_meet(pair);
}

void wv_pair(struct wvpair *pair, const struct wvshape *shape)
{
    wv_pair_make(pair, shape);
    wv_pair_connect(pair);
}

void wv_pair_drop(struct wvpair *pair)
{
    if (pair->listener)
        release_last(pair->listener);
    for (int i = 0; i < 2; i++)
        wv_drop(&pair->link[i]);
    for (int i = 0; i < 2; i++)
        wv_close(&pair->host[i]);
}

/* ---- with a process that is to die, or to be stopped ---- */

void wv_part_begin(struct wvsession *session, const struct wvshape *shape)
{
    struct wvlink *link = &session->link;
    IWVConnectEndpoint *listener;

    wv_open(&session->host);
    wv_make(link, &session->host, shape);
    listener = wv_listen(&session->host);
    wv_request(link, listener);
    ok_status(wv_try_accept(link), WV_SUCCESS);
    link->remote.address = wv_net64((UINT64)(uintptr_t)link->buffer);
    link->remote.rkey = link->keys.Rkey;
    runner_put(&link->remote, sizeof(link->remote));
    runner_get(&link->remote, sizeof(link->remote));
    release_last(listener);
}

void wv_beside(struct wvsession *session, int channel, const struct wvshape *shape)
{
    struct wvlink *link = &session->link;
    union endpoint to = address_of_peer();
    USHORT port;

    wv_open(&session->host);
    wv_make(link, &session->host, shape);
    runner_get_from(channel, &port, sizeof(port));
    endpoint_set_port(&to, port);
    wv_bind(link);
    ok_status(wv_try_connect(link, &to), WV_SUCCESS);
    ok_status(wv_complete(link), WV_SUCCESS);
    link->remote.address = wv_net64((UINT64)(uintptr_t)link->buffer);
    link->remote.rkey = link->keys.Rkey;
    runner_put_to(channel, &link->remote, sizeof(link->remote));
    runner_get_from(channel, &link->remote, sizeof(link->remote));
}

void wv_session_drop(struct wvsession *session)
{
    wv_drop(&session->link);
    wv_close(&session->host);
}

/* ---- datagrams ---- */

BYTE *wv_ud_place(const struct wvud *ud, UINT64 i)
{
    return ud->buffer + i * (WV_GRH + ud->size) + WV_GRH;
}

void wv_ud_receive(struct wvud *ud, UINT64 i)
{
    WV_SGE sge = { .pAddress = wv_ud_place(ud, i) - WV_GRH,
                   .Length = (UINT32)(WV_GRH + ud->size),
                   .Lkey = ud->keys.Lkey };

    ok_status(CALL(ud->qp, PostReceive, i, &sge, 1), WV_SUCCESS);
}

void wv_ud_make(struct wvud *ud, struct wvhost *host, SIZE_T depth, SIZE_T size)
{
    SIZE_T entries = 2 * depth, bytes = (depth + 1) * (WV_GRH + size);
    WV_QP_CREATE create = { 0 };
    WV_QP_ATTRIBUTES attributes;

    memset(ud, 0, sizeof(*ud));
    ud->host = host;
    ud->depth = depth;
    ud->size = size;
    ud->buffer = calloc(1, bytes);
    ok(ud->buffer != NULL);
    ok_status(CALL(host->pd, RegisterMemory, ud->buffer, bytes, WV_ACCESS_LOCAL_WRITE, NULL, &ud->keys), WV_SUCCESS);
    ok_status(CALL(host->device, CreateCompletionQueue, &entries, &ud->cq), WV_SUCCESS);
    create.pSendCq = create.pReceiveCq = ud->cq;
    create.Context = ud;
    create.SendDepth = create.ReceiveDepth = depth;
    create.SendSge = create.ReceiveSge = 1;
    create.QpType = WvQpTypeUd;
    ok_status(CALL(host->pd, CreateDatagramQueuePair, &create, &ud->qp), WV_SUCCESS);
    memset(&attributes, 0xa5, sizeof(attributes));
    attributes.AddressVector.PortNumber = host->where.PortNumber;
    attributes.Qkey = htonl(WV_CM_UDP_QKEY);
    attributes.SendPsn = 0;
    ok_status(CALL(host->device, FindPkey, host->where.PortNumber, host->where.Pkey, &attributes.PkeyIndex),
              WV_SUCCESS);
    for (int state = WvQpStateInit; state <= WvQpStateRts; state++) {
        attributes.QpState = (WV_QP_STATE)state;
        ok_status(CALL(ud->qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL), WV_SUCCESS);
    }
    ok_status(CALL(ud->qp, Query, &attributes), WV_SUCCESS);
    ok_int(attributes.QpType, ==, WvQpTypeUd);
    ok_int(attributes.QpState, ==, WvQpStateRts);
    ud->qpn = attributes.Qpn;
    for (UINT64 i = 0; i < depth; i++)
        wv_ud_receive(ud, i);
}

void wv_ud_drop(struct wvud *ud)
{
    if (ud->ah)
        release_last(ud->ah);
    release_last(ud->qp);
    release_last(ud->cq);
    ok_status(CALL(ud->host->pd, DeregisterMemory, ud->keys.Lkey, NULL), WV_SUCCESS);
    free(ud->buffer);
    memset(ud, 0, sizeof(*ud));
}

static void make_ah(struct wvud *ud, WV_ADDRESS_VECTOR *vector)
{
    if (ud->ah)
        release_last(ud->ah);
    ok_status(CALL(ud->host->pd, CreateAddressHandle, vector, &ud->ah, &ud->ah_key), WV_SUCCESS);
}

void wv_ud_to(struct wvud *ud, const WV_DATAGRAM_PARAM *param)
{
    WV_ADDRESS_VECTOR vector = param->AddressVector;

    make_ah(ud, &vector);
    ud->peer_qpn = param->Qpn;
    ud->peer_qkey = param->Qkey;
}

/* RoCE: the header in front of the data is that of IP; version 4 has its 20 bytes at the end. */
void wv_ud_back(struct wvud *ud, const WV_COMPLETION *completion, NET32 qpn)
{
    const BYTE *header = wv_ud_place(ud, completion->WrId) - WV_GRH;
    WV_ADDRESS_VECTOR vector = { 0 };

    ok(completion->Flags & WV_WC_GRH_VALID);
    vector.PortNumber = ud->host->where.PortNumber;
    vector.Route.Valid = 1;
    vector.Route.HopLimit = 64;
    if (header[0] >> 4 == 6) {
        memcpy(&vector.Route.DGid, header + 8, 16);
        memcpy(&vector.Route.SGid, header + 24, 16);
    } else {
        vector.Route.DGid.Raw[10] = vector.Route.DGid.Raw[11] = 0xff;
        vector.Route.SGid.Raw[10] = vector.Route.SGid.Raw[11] = 0xff;
        memcpy(&vector.Route.DGid.Raw[12], header + 32, 4);
        memcpy(&vector.Route.SGid.Raw[12], header + 36, 4);
    }
    make_ah(ud, &vector);
    ud->peer_qpn = qpn;
    ud->peer_qkey = htonl(WV_CM_UDP_QKEY);
}

void wv_ud_send(struct wvud *ud, UINT64 id, DWORD flags, NET32 immediate)
{
    WV_SGE sge = { .pAddress = wv_ud_place(ud, ud->depth), .Length = (UINT32)ud->size, .Lkey = ud->keys.Lkey };
    WV_SEND_DATAGRAM send = { .WrId = id,
                              .AhKey = ud->ah_key,
                              .pSgl = &sge,
                              .nSge = 1,
                              .Flags = flags,
                              .ImmediateData = immediate,
                              .DestinationQpn = ud->peer_qpn,
                              .DestinationQkey = ud->peer_qkey };

    ok_status(CALL(ud->qp, SendMessage, &send), WV_SUCCESS);
}

/* ---- work ---- */

NET64 wv_net64(UINT64 value)
{
    return (NET64)htonl((UINT32)value) << 32 | htonl((UINT32)(value >> 32));
}

NET64 wv_remote(const struct wvlink *link, SIZE_T offset)
{
    return wv_net64(wv_net64(link->remote.address) + offset);
}

WV_SGE wv_sge(const struct wvlink *link, SIZE_T offset, SIZE_T length)
{
    WV_SGE sge = { .pAddress = link->buffer + offset, .Length = (UINT32)length, .Lkey = link->keys.Lkey };

    ok_uint(offset + length, <=, link->shape.size);
    return sge;
}

void wv_receive(struct wvlink *link, UINT64 id, SIZE_T offset, SIZE_T length)
{
    WV_SGE sge = wv_sge(link, offset, length);

    ok_status(CALL(link->qp, PostReceive, id, &sge, 1), WV_SUCCESS);
}

void wv_send(struct wvlink *link, UINT64 id, SIZE_T offset, SIZE_T length, DWORD flags)
{
    WV_SGE sge = wv_sge(link, offset, length);

    ok_status(CALL(link->qp, Send, id, &sge, 1, flags, 0), WV_SUCCESS);
}

static enum early_kind kind_of(WV_OPCODE opcode)
{
    return opcode & WvReceive ? EARLY_RECEIVE : EARLY_OTHER;
}

static WV_COMPLETION poll_next(IWVCompletionQueue *cq)
{
    WV_COMPLETION completion;

    memset(&completion, 0xa5, sizeof(completion));
    while (CALL(cq, Poll, &completion, 1) == 0)
        harness_yield();
    pair_completion(&completion);
    return completion;
}

WV_COMPLETION wv_next(IWVCompletionQueue *cq)
{
    WV_COMPLETION completion;

    return early_take(cq, EARLY_ANY, &completion, sizeof(completion)) ? completion : poll_next(cq);
}

WV_COMPLETION wv_next_of(IWVCompletionQueue *cq, WV_OPCODE opcode)
{
    WV_COMPLETION completion;

    if (early_take(cq, kind_of(opcode), &completion, sizeof(completion)))
        return completion;
    for (;;) {
        completion = poll_next(cq);
        if (kind_of(completion.Opcode) == kind_of(opcode) || completion.Status != WvWcSuccess)
            return completion;
        early_put(cq, kind_of(completion.Opcode), &completion, sizeof(completion));
    }
}

void wv_none(IWVCompletionQueue *cq)
{
    WV_COMPLETION completion;

    ok(!early_take(cq, EARLY_ANY, &completion, sizeof(completion)));
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 0);
}
