/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/device_query.h"

/* What both kinds of queue pair have in common. Source: winverbs.md section 7. */

/* To ERROR, or to RESET from there: over when everything posted has come back. */
struct ending {
    struct list link; /* wv_qp.endings, while it has its request */
    struct qp_drain drain;
    struct request *request; /* NULL: the queue pair was released first */
    struct qp *qp;
    bool reset;
};

/* The drain may outlive the object. */
static pthread_mutex_t endings_lock = PTHREAD_MUTEX_INITIALIZER;

/* The release brings everything back itself: what is under way is cancelled, but not before it has. */
static void take_requests(struct wv_qp *qp, struct list *requests)
{
    struct list *node;

    pthread_mutex_lock(&endings_lock);
    while ((node = list_pop(&qp->endings)) != NULL) {
        struct ending *ending = list_entry(node, struct ending, link);

        list_add_tail(requests, &ending->request->link);
        ending->request = NULL;
    }
    pthread_mutex_unlock(&endings_lock);
}

static void cancel_requests(struct list *requests)
{
    struct list *node;

    while ((node = list_pop(requests)) != NULL)
        request_complete(list_entry(node, struct request, link), WV_CANCELLED, 0);
}

static void destroy(struct wv_object *object)
{
    struct wv_qp *qp = (struct wv_qp *)((char *)object - offsetof(struct wv_qp, object));
    struct list cancelled;

    list_init(&cancelled);
    take_requests(qp, &cancelled);
    connector_qp_released(qp->qp);
    qp_release(qp->qp);
    cancel_requests(&cancelled);
    qp_unref(qp->qp);
    if (qp->srq)
        wv_object_unpin(&qp->srq->object);
    wv_object_unpin(&qp->recv_cq->object);
    wv_object_unpin(&qp->send_cq->object);
    wv_object_unpin(&qp->pd->object);
    free(qp);
}

static bool type_to_ibv(WV_QP_TYPE type, enum ibv_qp_type *out)
{
    switch (type) {
    case WvQpTypeRc:
        *out = IBV_QPT_RC;
        return true;
    case WvQpTypeUc:
        *out = IBV_QPT_UC;
        return true;
    case WvQpTypeUd:
        *out = IBV_QPT_UD;
        return true;
    default:
        return false;
    }
}

static HRESULT find_config(struct wv_pd *pd, struct wv_qp *qp, struct qp_config *config)
{
    const WV_QP_CREATE *attributes = &qp->attributes;
    const struct adapter_limits *limits = &pd->adapter->limits;

    *config = (struct qp_config){ .adapter = pd->adapter, .context = attributes->Context, .manual = true };
    if (!type_to_ibv(attributes->QpType, &config->type))
        return WV_INVALID_PARAMETER;
    if (config->type != IBV_QPT_RC && pd->adapter->device->transport == DEVICE_IW)
        return WV_NOT_SUPPORTED;
    qp->send_cq = unsafe_impl_from_IWVCompletionQueue(attributes->pSendCq);
    qp->recv_cq = unsafe_impl_from_IWVCompletionQueue(attributes->pReceiveCq);
    if (!qp->send_cq || !qp->recv_cq || qp->send_cq->device->adapter->device != pd->adapter->device ||
        qp->recv_cq->device->adapter->device != pd->adapter->device)
        return WV_INVALID_PARAMETER;
    if (attributes->pSharedReceiveQueue) {
        qp->srq = unsafe_impl_from_IWVSharedReceiveQueue(attributes->pSharedReceiveQueue);
        if (!qp->srq || qp->srq->pd != pd)
            return WV_INVALID_PARAMETER;
        config->srq = qp->srq->srq;
    } else if (attributes->ReceiveDepth > limits->max_recv_depth || attributes->ReceiveSge > limits->max_recv_sge) {
        return WV_INSUFFICIENT_RESOURCES;
    } else {
        config->recv_depth = (uint32_t)attributes->ReceiveDepth;
        config->recv_sge = (uint32_t)attributes->ReceiveSge;
    }
    if (attributes->SendDepth > limits->max_send_depth || attributes->SendSge > limits->max_send_sge ||
        attributes->MaxInlineSend > limits->max_inline)
        return WV_INSUFFICIENT_RESOURCES;
    config->send_cq = qp->send_cq->cq;
    config->recv_cq = qp->recv_cq->cq;
    config->send_depth = (uint32_t)attributes->SendDepth;
    config->send_sge = (uint32_t)attributes->SendSge;
    config->inline_size = (uint32_t)attributes->MaxInlineSend;
    return WV_SUCCESS;
}

HRESULT wv_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, struct wv_qp **out)
{
    struct qp_config config;
    struct wv_qp *qp;
    HRESULT hr;

    if (!attributes)
        return WV_INVALID_PARAMETER;
    qp = calloc(1, sizeof(*qp));
    if (!qp)
        return WV_NO_MEMORY;
    qp->pd = pd;
    qp->attributes = *attributes;
    list_init(&qp->endings);
    hr = find_config(pd, qp, &config);
    if (SUCCEEDED(hr))
        hr = status_wv(qp_create(&config, &qp->qp));
    if (FAILED(hr)) {
        free(qp);
        return hr;
    }
    wv_object_pin(&pd->object);
    wv_object_pin(&qp->send_cq->object);
    wv_object_pin(&qp->recv_cq->object);
    if (qp->srq)
        wv_object_pin(&qp->srq->object);
    wv_object_init(&qp->object, destroy);
    *out = qp;
    return WV_SUCCESS;
}

/* ---- Query ---- */

HRESULT wv_qp_query(struct wv_qp *qp, WV_QP_ATTRIBUTES *out)
{
    struct device *device = qp->pd->adapter->device;
    struct qp_limits limits;
    struct ibv_qp_attr attr;

    if (!out)
        return WV_INVALID_PARAMETER;
    if (wv_dead() || adapter_removed(qp->pd->adapter))
        return WV_DEVICE_REMOVED;
    if (qp_query(qp->qp, &attr, &limits) != 0)
        return adapter_removed(qp->pd->adapter) ? WV_DEVICE_REMOVED : WV_UNSUCCESSFUL;
    memset(out, 0, sizeof(*out));
    out->pPd = &qp->pd->IWVProtectionDomain_iface;
    out->pSendCq = &qp->send_cq->IWVCompletionQueue_iface;
    out->pReceiveCq = &qp->recv_cq->IWVCompletionQueue_iface;
    out->pSharedReceiveQueue = qp->srq ? &qp->srq->IWVSharedReceiveQueue_iface : NULL;
    out->SendDepth = limits.send_depth;
    out->SendSge = limits.send_sge;
    out->ReceiveDepth = qp->srq ? 0 : limits.recv_depth;
    out->ReceiveSge = qp->srq ? 0 : limits.recv_sge;
    out->MaxInlineSend = limits.inline_size;
    /* What was asked for, until the device knows better. */
    out->InitiatorDepth = attr.qp_state == IBV_QPS_RTS || attr.qp_state == IBV_QPS_SQD ? attr.max_rd_atomic
                                                                                       : qp->attributes.InitiatorDepth;
    out->ResponderResources =
        attr.qp_state == IBV_QPS_RTR || attr.qp_state == IBV_QPS_RTS || attr.qp_state == IBV_QPS_SQD
            ? attr.max_dest_rd_atomic
            : qp->attributes.ResponderResources;
    out->QpType = qp->attributes.QpType;
    out->QpState = (WV_QP_STATE)attr.qp_state;
    out->CurrentQpState = out->QpState;
    out->ApmState = (WV_APM_STATE)((int)attr.path_mig_state + 1);
    out->Qpn = htonl(qp_number(qp->qp));
    out->DestinationQpn = htonl(attr.dest_qp_num);
    out->Qkey = htonl(attr.qkey);
    out->SendPsn = htonl(attr.sq_psn);
    out->ReceivePsn = htonl(attr.rq_psn);
    out->QpFlags = qp->attributes.QpFlags & (WV_QP_SIGNAL_SENDS | WV_QP_MEMORY_MANAGEMENT);
    out->AccessFlags = wv_access_from_ibv(attr.qp_access_flags);
    wv_av_from_ibv(device, &attr.ah_attr, &out->AddressVector);
    if (!out->AddressVector.PortNumber)
        out->AddressVector.PortNumber = attr.port_num;
    wv_av_from_ibv(device, &attr.alt_ah_attr, &out->AlternateAddressVector);
    if (!out->AlternateAddressVector.PortNumber)
        out->AlternateAddressVector.PortNumber = attr.alt_port_num;
    out->PathMtu = wv_mtu_from_ibv(attr.path_mtu);
    out->AlternatePathMtu = attr.alt_port_num ? out->PathMtu : 0;
    out->PkeyIndex = attr.pkey_index;
    out->AlternatePkeyIndex = attr.alt_pkey_index;
    out->LocalAckTimeout = attr.timeout;
    out->AlternateLocalAckTimeout = attr.alt_timeout;
    out->RnrNakTimeout = attr.min_rnr_timer;
    out->SequenceErrorRetryCount = attr.retry_cnt;
    out->RnrRetryCount = attr.rnr_retry;
    return WV_SUCCESS;
}

/* ---- Modify ---- */

static int to_init(const struct wv_qp *qp, const WV_QP_ATTRIBUTES *from, DWORD options, struct ibv_qp_attr *attr)
{
    attr->pkey_index = from->PkeyIndex;
    attr->port_num = from->AddressVector.PortNumber;
    if (qp->attributes.QpType == WvQpTypeUd) {
        attr->qkey = ntohl(from->Qkey);
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    }
    if (options & WV_QP_ATTR_ACCESS_FLAGS)
        attr->qp_access_flags = (unsigned)wv_access_to_ibv(from->AccessFlags);
    if (qp->pd->adapter->device->transport == DEVICE_IW)
        return IBV_QP_ACCESS_FLAGS;
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

/* Devices for Ethernet claim it too; the kernel lets none of them. */
static bool migrates(const struct wv_qp *qp)
{
    struct device *device = qp->pd->adapter->device;
    struct ibv_port_attr port;

    return (device->attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) &&
           device_query_port(device, qp->pd->adapter->port, &port) == ND_SUCCESS &&
           port.link_layer != IBV_LINK_LAYER_ETHERNET;
}

static HRESULT set_alternate(const struct wv_qp *qp, const WV_QP_ATTRIBUTES *from, struct ibv_qp_attr *attr)
{
    if (!migrates(qp))
        return WV_NOT_SUPPORTED;
    attr->alt_pkey_index = from->AlternatePkeyIndex;
    attr->alt_port_num = from->AlternateAddressVector.PortNumber;
    attr->alt_timeout = from->AlternateLocalAckTimeout;
    return wv_av_to_ibv(qp->pd->adapter->device, &from->AlternateAddressVector, &attr->alt_ah_attr);
}

/* The fields that a bit of Options asks for, as bits of verbs. */
static int optional(const WV_QP_ATTRIBUTES *from, DWORD options, struct ibv_qp_attr *attr)
{
    int mask = 0;

    if (options & WV_QP_ATTR_QKEY) {
        attr->qkey = ntohl(from->Qkey);
        mask |= IBV_QP_QKEY;
    }
    if (options & WV_QP_ATTR_PKEY_INDEX) {
        attr->pkey_index = from->PkeyIndex;
        mask |= IBV_QP_PKEY_INDEX;
    }
    if (options & WV_QP_ATTR_ACCESS_FLAGS) {
        attr->qp_access_flags = (unsigned)wv_access_to_ibv(from->AccessFlags);
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    return mask;
}

static HRESULT to_rtr(struct wv_qp *qp, const WV_QP_ATTRIBUTES *from, DWORD options, struct ibv_qp_attr *attr,
                      int *mask)
{
    HRESULT hr = WV_SUCCESS;

    *mask |= optional(from, options, attr);
    if (qp->attributes.QpType == WvQpTypeUd)
        return WV_SUCCESS;
    if (!wv_mtu_to_ibv(from->PathMtu, &attr->path_mtu))
        return WV_INVALID_PARAMETER;
    *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    attr->dest_qp_num = ntohl(from->DestinationQpn);
    attr->rq_psn = ntohl(from->ReceivePsn);
    if (qp->attributes.QpType == WvQpTypeRc) {
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = (uint8_t)(from->ResponderResources < 255 ? from->ResponderResources : 255);
        attr->min_rnr_timer = from->RnrNakTimeout & 31;
    }
    if (options & WV_QP_ATTR_ALTERNATE_AV) {
        *mask |= IBV_QP_ALT_PATH;
        hr = set_alternate(qp, from, attr);
    }
    return FAILED(hr) ? hr : wv_av_to_ibv(qp->pd->adapter->device, &from->AddressVector, &attr->ah_attr);
}

static HRESULT to_rts(struct wv_qp *qp, const WV_QP_ATTRIBUTES *from, DWORD options, struct ibv_qp_attr *attr,
                      int *mask)
{
    enum ibv_qp_state state = qp_state(qp->qp);
    HRESULT hr = WV_SUCCESS;

    /* From a state that has sent already only what is asked for changes. */
    if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_SQE) {
        *mask |= IBV_QP_SQ_PSN;
        attr->sq_psn = ntohl(from->SendPsn);
        if (qp->attributes.QpType == WvQpTypeRc) {
            *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
            attr->timeout = from->LocalAckTimeout;
            attr->retry_cnt = from->SequenceErrorRetryCount;
            attr->rnr_retry = from->RnrRetryCount;
            attr->max_rd_atomic = (uint8_t)(from->InitiatorDepth < 255 ? from->InitiatorDepth : 255);
        }
    }
    *mask |= optional(from, options, attr);
    if (options & WV_QP_ATTR_RNR_NAK_TIMEOUT) {
        attr->min_rnr_timer = from->RnrNakTimeout & 31;
        *mask |= IBV_QP_MIN_RNR_TIMER;
    }
    if (options & WV_QP_ATTR_CURRENT_STATE) {
        attr->cur_qp_state = (enum ibv_qp_state)from->CurrentQpState;
        *mask |= IBV_QP_CUR_STATE;
    }
    if (options & WV_QP_ATTR_RESPONDER_RESOURCES) {
        attr->max_dest_rd_atomic = (uint8_t)(from->ResponderResources < 255 ? from->ResponderResources : 255);
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC;
    }
    if (options & WV_QP_ATTR_PORT_NUMBER) {
        attr->port_num = from->AddressVector.PortNumber;
        *mask |= IBV_QP_PORT;
    }
    if (options & WV_QP_ATTR_PATH_MIG_STATE) {
        if (!migrates(qp))
            return WV_NOT_SUPPORTED;
        attr->path_mig_state = (enum ibv_mig_state)((int)from->ApmState - 1);
        *mask |= IBV_QP_PATH_MIG_STATE;
    }
    if (options & WV_QP_ATTR_AV) {
        *mask |= IBV_QP_AV;
        hr = wv_av_to_ibv(qp->pd->adapter->device, &from->AddressVector, &attr->ah_attr);
    }
    if (SUCCEEDED(hr) && (options & WV_QP_ATTR_ALTERNATE_AV)) {
        *mask |= IBV_QP_ALT_PATH;
        hr = set_alternate(qp, from, attr);
    }
    return hr;
}

/* A transition that the device makes at once. */
static HRESULT move(struct wv_qp *qp, const WV_QP_ATTRIBUTES *from, DWORD options)
{
    struct ibv_qp_attr attr;
    int mask = IBV_QP_STATE;
    HRESULT hr = WV_SUCCESS;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = (enum ibv_qp_state)from->QpState;
    /* Our rings have the depths of creation. */
    if ((options & WV_QP_ATTR_CAPABILITIES) && (from->QpState == WvQpStateRtr || from->QpState == WvQpStateRts))
        return WV_NOT_SUPPORTED;
    if (from->QpState == WvQpStateInit)
        mask |= to_init(qp, from, options, &attr);
    else if (from->QpState == WvQpStateRtr)
        hr = to_rtr(qp, from, options, &attr, &mask);
    else if (from->QpState == WvQpStateRts)
        hr = to_rts(qp, from, options, &attr, &mask);
    if (SUCCEEDED(hr) && qp_modify(qp->qp, &attr, mask) != 0)
        hr = adapter_removed(qp->pd->adapter) ? WV_DEVICE_REMOVED : WV_UNSUCCESSFUL;
    return hr;
}

static void ended(struct qp_drain *drain)
{
    struct ending *ending = (struct ending *)((char *)drain - offsetof(struct ending, drain));
    HRESULT hr = ending->reset && qp_reset(ending->qp) != 0 ? WV_UNSUCCESSFUL : WV_SUCCESS;

    pthread_mutex_lock(&endings_lock);
    /* Under the lock, so that no release finds it over before its request is completed. */
    if (ending->request) {
        list_del(&ending->link);
        request_complete(ending->request, hr, 0);
    }
    pthread_mutex_unlock(&endings_lock);
    qp_unref(ending->qp);
    free(ending);
}

static void no_cancel(struct request *request)
{
    (void)request; /* it ends by itself, and soon */
}

static HRESULT end(struct wv_qp *qp, bool reset, OVERLAPPED *overlapped)
{
    struct ending *ending = calloc(1, sizeof(*ending));
    NTSTATUS status;

    if (!ending)
        return WV_INSUFFICIENT_RESOURCES;
    status = request_alloc(qp->pd->device->provider->file, overlapped, no_cancel, ending, &ending->request);
    if (status != ND_SUCCESS) {
        free(ending);
        return status_wv(status);
    }
    ending->qp = qp_ref(qp->qp);
    ending->reset = reset;
    request_start(ending->request);
    pthread_mutex_lock(&endings_lock);
    list_add_tail(&qp->endings, &ending->link);
    pthread_mutex_unlock(&endings_lock);
    qp_drain(qp->qp, &ending->drain, ended);
    return WV_IO_PENDING;
}

static HRESULT end_and_wait(struct wv_qp *qp, bool reset, OVERLAPPED *overlapped)
{
    struct wv_wait wait;
    HRESULT hr = wv_wait_begin(&wait, &overlapped);

    return FAILED(hr) ? hr : wv_wait_end(&wait, end(qp, reset, overlapped));
}

HRESULT wv_qp_modify(struct wv_qp *qp, const WV_QP_ATTRIBUTES *attributes, DWORD options, OVERLAPPED *overlapped)
{
    struct wv_inline now;
    int error;
    HRESULT hr;

    if (!attributes)
        return WV_INVALID_PARAMETER;
    if (wv_dead() || adapter_removed(qp->pd->adapter))
        return WV_DEVICE_REMOVED;
    if (attributes->QpState == WvQpStateError || (unsigned)attributes->QpState > WvQpStateError)
        return qp_can_fail(qp->qp) ? end_and_wait(qp, false, overlapped) : WV_UNSUCCESSFUL;
    hr = wv_inline_begin(&now, qp->pd->device->provider, overlapped);
    if (FAILED(hr))
        return hr;
    if (attributes->QpState != WvQpStateReset)
        return wv_inline_end(&now, move(qp, attributes, options), 0);
    error = qp_reset(qp->qp);
    hr = wv_inline_end(&now, error ? WV_UNSUCCESSFUL : WV_SUCCESS, 0);
    return error == EBUSY ? end_and_wait(qp, true, overlapped) : hr;
}

/* ---- posting ---- */

/* An identifier is 64 bits wide everywhere, a slot holds a pointer. */
static void *context_of(UINT64 id)
{
    return (void *)(uintptr_t)id;
}

static uint32_t op_flags(const struct wv_qp *qp, DWORD flags)
{
    uint32_t op = 0;

    if (!(flags & WV_SEND_SIGNALED) && !(qp->attributes.QpFlags & WV_QP_SIGNAL_SENDS))
        op |= ND_OP_FLAG_SILENT_SUCCESS;
    if (flags & WV_SEND_FENCE)
        op |= ND_OP_FLAG_READ_FENCE;
    if (flags & WV_SEND_SOLICITED)
        op |= ND_OP_FLAG_SEND_AND_SOLICIT_EVENT;
    if (flags & WV_SEND_INLINE)
        op |= ND_OP_FLAG_INLINE;
    return op;
}

HRESULT wv_qp_post_receive(struct wv_qp *qp, UINT64 id, const WV_SGE *sgl, SIZE_T count)
{
    ND2_SGE copy[WV_SGE_COPIES];

    if (cq_forked)
        return WV_DEVICE_REMOVED;
    if (qp->srq)
        return WV_INVALID_PARAMETER;
    if (count > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    return status_wv_post(qp_receive(qp->qp, context_of(id), wv_sgl(copy, sgl, count), (uint32_t)count));
}

HRESULT wv_qp_initiate(struct wv_qp *qp, UINT64 id, uint32_t type, const WV_SGE *sgl, SIZE_T count, DWORD flags,
                       struct ibv_send_wr *wr)
{
    ND2_SGE copy[WV_SGE_COPIES];

    if (cq_forked)
        return WV_DEVICE_REMOVED;
    if (count > UINT32_MAX)
        return WV_INSUFFICIENT_RESOURCES;
    return status_wv_post(
        qp_initiate(qp->qp, context_of(id), type, wv_sgl(copy, sgl, count), (uint32_t)count, op_flags(qp, flags), wr));
}

static HRESULT post_one(struct wv_qp *qp, const WV_SEND_REQUEST *request)
{
    DWORD flags = request->Flags;
    struct ibv_send_wr wr;
    uint32_t type;

    wr.imm_data = request->ImmediateData;
    switch (request->Opcode) {
    case WvSend:
        wr.opcode = flags & WV_SEND_IMMEDIATE ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        type = Nd2RequestTypeSend;
        if (qp->attributes.QpType == WvQpTypeUd) {
            if (!request->Wr.Datagram.AhKey)
                return WV_INVALID_PARAMETER;
            wr.wr.ud.ah = (struct ibv_ah *)request->Wr.Datagram.AhKey;
            wr.wr.ud.remote_qpn = ntohl(request->Wr.Datagram.DestinationQpn);
            wr.wr.ud.remote_qkey = ntohl(request->Wr.Datagram.DestinationQkey);
        }
        break;
    case WvRdmaWrite:
    case WvRdmaRead:
        if (request->Opcode == WvRdmaRead) {
            wr.opcode = IBV_WR_RDMA_READ;
            type = Nd2RequestTypeRead;
            flags &= ~(DWORD)WV_SEND_INLINE; /* set on reads of no bytes by programs that exist */
        } else {
            wr.opcode = flags & WV_SEND_IMMEDIATE ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
            type = Nd2RequestTypeWrite;
        }
        wr.wr.rdma.remote_addr = be64toh(request->Wr.Rdma.RemoteAddress);
        wr.wr.rdma.rkey = ntohl(request->Wr.Rdma.Rkey);
        break;
    case WvCompareExchange:
        wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        type = REQUEST_COMPARE_SWAP;
        flags &= ~(DWORD)WV_SEND_INLINE;
        wr.wr.atomic.remote_addr = be64toh(request->Wr.CompareExchange.RemoteAddress);
        wr.wr.atomic.rkey = ntohl(request->Wr.CompareExchange.Rkey);
        wr.wr.atomic.compare_add = be64toh(request->Wr.CompareExchange.Compare);
        wr.wr.atomic.swap = be64toh(request->Wr.CompareExchange.Exchange);
        break;
    case WvFetchAdd:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        type = REQUEST_FETCH_ADD;
        flags &= ~(DWORD)WV_SEND_INLINE;
        wr.wr.atomic.remote_addr = be64toh(request->Wr.FetchAdd.RemoteAddress);
        wr.wr.atomic.rkey = ntohl(request->Wr.FetchAdd.Rkey);
        wr.wr.atomic.compare_add = be64toh(request->Wr.FetchAdd.Add);
        wr.wr.atomic.swap = 0;
        break;
    default: /* a window is bound by BindMemoryWindow only */
        return WV_INVALID_PARAMETER;
    }
    /* The device looks at the kind of request no sooner than it is on its way, some never. */
    if (type != Nd2RequestTypeSend &&
        (qp->attributes.QpType == WvQpTypeUd || (type != Nd2RequestTypeWrite && qp->attributes.QpType == WvQpTypeUc)))
        return WV_INVALID_PARAMETER;
    return wv_qp_initiate(qp, request->WrId, type, request->pSgl, request->nSge, flags, &wr);
}

HRESULT wv_qp_post_send(struct wv_qp *qp, WV_SEND_REQUEST *request, WV_SEND_REQUEST **failed)
{
    for (; request; request = request->pNext) {
        HRESULT hr = post_one(qp, request);

        if (FAILED(hr)) {
            if (failed)
                *failed = request;
            return hr;
        }
    }
    return WV_SUCCESS;
}
