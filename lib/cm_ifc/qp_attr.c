/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <errno.h>
#include <string.h>

#include "core/engine.h"
#include "core/status.h"
#include "ndverbs.h"

/* The one thing that an address vector of this interface has no field for: the GID's index, which tells RoCE's versions
 * apart. It travels, plus one, in a field that is reserved on the wire. */
static void av_fill(ib_av_attr_t *av, struct rdma_cm_id *id, const struct ibv_ah_attr *ah)
{
    union ibv_gid gid;

    memset(av, 0, sizeof(*av));
    av->port_num = ah->port_num;
    av->sl = ah->sl;
    av->dlid = htons(ah->dlid);
    av->static_rate = ah->static_rate;
    av->path_bits = ah->src_path_bits;
    av->grh_valid = ah->is_global;
    if (!ah->is_global)
        return;
    av->grh.ver_class_flow = htonl(6u << 28 | (uint32_t)ah->grh.traffic_class << 20 | (ah->grh.flow_label & 0xfffff));
    av->grh.hop_limit = ah->grh.hop_limit;
    memcpy(&av->grh.dest_gid, &ah->grh.dgid, sizeof(av->grh.dest_gid));
    if (id->verbs && ibv_query_gid(id->verbs, ah->port_num, ah->grh.sgid_index, &gid) == 0) {
        memcpy(&av->grh.src_gid, &gid, sizeof(av->grh.src_gid));
        av->grh.resv1 = (uint16_t)(ah->grh.sgid_index + 1);
    }
}

static ib_access_t access_of(unsigned int flags)
{
    ib_access_t access = IB_AC_LOCAL_WRITE;

    if (flags & IBV_ACCESS_REMOTE_WRITE)
        access |= IB_AC_RDMA_WRITE;
    if (flags & IBV_ACCESS_REMOTE_READ)
        access |= IB_AC_RDMA_READ;
    if (flags & IBV_ACCESS_REMOTE_ATOMIC)
        access |= IB_AC_ATOMIC;
    return access;
}

static bool is_iw(const struct cm_id *id)
{
    return id->wire.adapter->device->transport == DEVICE_IW;
}

/* The limits of the reply that was formatted or sent; until then, and on the active side, what has been agreed. */
static uint8_t inbound_of(const struct cm_id *id)
{
    return id->wire.state == WIRE_REQUEST_IN && id->formatted ? id->rep.resp_res : (uint8_t)id->wire.inbound;
}

static uint8_t outbound_of(const struct cm_id *id)
{
    return id->wire.state == WIRE_REQUEST_IN && id->formatted ? id->rep.init_depth : (uint8_t)id->wire.outbound;
}

static void init_fill(struct cm_id *id, const struct ibv_qp_attr *attr, ib_qp_mod_t *out)
{
    unsigned int flags = IBV_ACCESS_REMOTE_WRITE;

    if (inbound_of(id))
        flags |= IBV_ACCESS_REMOTE_READ | (is_iw(id) ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
    out->state.init.primary_port = id->wire.cmid->id->port_num;
    out->state.init.pkey_index = attr->pkey_index;
    out->state.init.access_ctrl = access_of(flags);
}

static void rtr_fill(struct cm_id *id, const struct ibv_qp_attr *attr, ib_qp_mod_t *out)
{
    struct ibv_qp_attr rts;
    int mask;

    out->state.rtr.rq_psn = htonl(attr->rq_psn);
    out->state.rtr.dest_qp = htonl(attr->dest_qp_num);
    out->state.rtr.resp_res = inbound_of(id);
    out->state.rtr.rnr_nak_timeout = attr->min_rnr_timer;
    out->state.rtr.pkey_index = attr->pkey_index;
    av_fill(&out->state.rtr.primary_av, id->wire.cmid->id, &attr->ah_attr);
    out->state.rtr.primary_av.conn.path_mtu = (uint8_t)attr->path_mtu;
    if (connection_qp_attr(&id->wire, IBV_QPS_RTS, &rts, &mask) != 0)
        return;
    out->state.rtr.primary_av.conn.local_ack_timeout = rts.timeout;
    out->state.rtr.primary_av.conn.seq_err_retry_cnt = rts.retry_cnt;
    out->state.rtr.primary_av.conn.rnr_retry_cnt = rts.rnr_retry;
}

static void rts_fill(struct cm_id *id, const struct ibv_qp_attr *attr, ib_qp_mod_t *out)
{
    out->state.rts.sq_psn = htonl(attr->sq_psn);
    out->state.rts.retry_cnt = attr->retry_cnt;
    out->state.rts.rnr_retry_cnt = attr->rnr_retry;
    out->state.rts.local_ack_timeout = attr->timeout;
    out->state.rts.init_depth = outbound_of(id);
}

static bool legal(enum cm_state state, ib_qp_state_t wanted)
{
    switch (state) {
    case CM_REQ_RCVD:
    case CM_REP_FORMATTED:
    case CM_REP_SENT:
    case CM_REP_RCVD:
    case CM_ESTABLISHED:
        return true;
    case CM_REQ_SENT: /* the peer's part is not known */
        return wanted == IB_QPS_INIT;
    default:
        return false;
    }
}

NTSTATUS cm_qp_attr_locked(struct cm_id *id, ib_qp_state_t state, ib_qp_mod_t *out)
{
    enum ibv_qp_state verbs = state == IB_QPS_INIT ? IBV_QPS_INIT : state == IB_QPS_RTR ? IBV_QPS_RTR : IBV_QPS_RTS;
    struct ibv_qp_attr attr;
    int mask, error;

    if (!legal(cm_id_state_locked(id), state))
        return STATUS_INVALID_DEVICE_STATE;
    error = connection_qp_attr(&id->wire, verbs, &attr, &mask);
    if (error)
        return error == EINVAL ? STATUS_INVALID_DEVICE_STATE : status_from_cm_errno(error);
    memset(out, 0, sizeof(*out));
    out->req_state = state;
    if (state == IB_QPS_INIT)
        init_fill(id, &attr, out);
    else if (!is_iw(id) && state == IB_QPS_RTR)
        rtr_fill(id, &attr, out);
    else if (!is_iw(id))
        rts_fill(id, &attr, out);
    return STATUS_SUCCESS;
}

NTSTATUS cm_get_qp_attr(iba_cm_id *p_id, ib_qp_state_t state, ib_qp_mod_t *p_attr)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!p_attr || (state != IB_QPS_INIT && state != IB_QPS_RTR && state != IB_QPS_RTS))
        status = STATUS_INVALID_PARAMETER;
    else
        status = cm_qp_attr_locked(id, state, p_attr);
    cm_id_leave(id);
    return status;
}

/* ---- To verbs ---- */

static unsigned int flags_of(ib_access_t access)
{
    unsigned int flags = 0;

    if (access & IB_AC_LOCAL_WRITE)
        flags |= IBV_ACCESS_LOCAL_WRITE;
    if (access & IB_AC_RDMA_WRITE)
        flags |= IBV_ACCESS_REMOTE_WRITE;
    if (access & IB_AC_RDMA_READ)
        flags |= IBV_ACCESS_REMOTE_READ;
    if (access & IB_AC_ATOMIC)
        flags |= IBV_ACCESS_REMOTE_ATOMIC;
    if (access & IB_AC_MW_BIND)
        flags |= IBV_ACCESS_MW_BIND;
    return flags;
}

static bool gid_is(struct ibv_context *context, uint8_t port, int index, const ib_gid_t *wanted)
{
    union ibv_gid gid;

    return ibv_query_gid(context, port, index, &gid) == 0 && !memcmp(&gid, wanted, sizeof(gid));
}

/* -1: the context's device has no such GID. */
static int gid_index(struct ibv_context *context, uint8_t port_num, const ib_grh_t *grh)
{
    struct ibv_port_attr port;

    if (grh->resv1 && gid_is(context, port_num, grh->resv1 - 1, &grh->src_gid))
        return grh->resv1 - 1;
    if (ibv_query_port(context, port_num, &port) != 0)
        return -1;
    for (int i = 0; i < port.gid_tbl_len; i++) {
        if (gid_is(context, port_num, i, &grh->src_gid))
            return i;
    }
    return -1;
}

static NTSTATUS ah_fill(struct ibv_context *context, const ib_av_attr_t *av, struct ibv_ah_attr *ah)
{
    uint32_t word = ntohl(av->grh.ver_class_flow);
    int index;

    ah->port_num = av->port_num;
    ah->sl = av->sl;
    ah->dlid = ntohs(av->dlid);
    ah->static_rate = av->static_rate;
    ah->src_path_bits = av->path_bits;
    if (!av->grh_valid)
        return STATUS_SUCCESS;
    index = gid_index(context, av->port_num, &av->grh);
    if (index < 0)
        return STATUS_INVALID_PARAMETER;
    ah->is_global = 1;
    ah->grh.sgid_index = (uint8_t)index;
    ah->grh.traffic_class = (uint8_t)(word >> 20);
    ah->grh.flow_label = word & 0xfffff;
    ah->grh.hop_limit = av->grh.hop_limit;
    memcpy(&ah->grh.dgid, &av->grh.dest_gid, sizeof(ah->grh.dgid));
    return STATUS_SUCCESS;
}

/* On iWARP the kernel does every later transition, when the connection comes up. */
static NTSTATUS fill_iw(const ib_qp_mod_t *mod, struct ibv_qp_attr *attr, int *mask)
{
    *mask = 0;
    if (mod->req_state == IB_QPS_INIT) {
        attr->qp_state = IBV_QPS_INIT;
        attr->port_num = mod->state.init.primary_port;
        attr->qp_access_flags = flags_of(mod->state.init.access_ctrl);
        *mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS fill_ib(struct ibv_context *context, const ib_qp_mod_t *mod, struct ibv_qp_attr *attr, int *mask)
{
    switch (mod->req_state) {
    case IB_QPS_INIT:
        attr->qp_state = IBV_QPS_INIT;
        attr->pkey_index = mod->state.init.pkey_index;
        attr->port_num = mod->state.init.primary_port;
        attr->qp_access_flags = flags_of(mod->state.init.access_ctrl);
        *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        return STATUS_SUCCESS;
    case IB_QPS_RTR:
        attr->qp_state = IBV_QPS_RTR;
        attr->path_mtu = (enum ibv_mtu)mod->state.rtr.primary_av.conn.path_mtu;
        attr->dest_qp_num = ntohl(mod->state.rtr.dest_qp);
        attr->rq_psn = ntohl(mod->state.rtr.rq_psn);
        attr->max_dest_rd_atomic = mod->state.rtr.resp_res;
        attr->min_rnr_timer = mod->state.rtr.rnr_nak_timeout;
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        return ah_fill(context, &mod->state.rtr.primary_av, &attr->ah_attr);
    case IB_QPS_RTS:
        attr->qp_state = IBV_QPS_RTS;
        attr->sq_psn = ntohl(mod->state.rts.sq_psn);
        attr->timeout = mod->state.rts.local_ack_timeout;
        attr->retry_cnt = mod->state.rts.retry_cnt;
        attr->rnr_retry = mod->state.rts.rnr_retry_cnt;
        attr->max_rd_atomic = mod->state.rts.init_depth;
        *mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
        return STATUS_SUCCESS;
    default:
        return STATUS_INVALID_PARAMETER;
    }
}

NTSTATUS ndverbs_cm_qp_attr(struct ibv_context *context, const struct _ib_qp_mod *mod, struct ibv_qp_attr *attr,
                            int *mask)
{
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!context || !mod || !attr || !mask ||
        (mod->req_state != IB_QPS_INIT && mod->req_state != IB_QPS_RTR && mod->req_state != IB_QPS_RTS))
        return STATUS_INVALID_PARAMETER;
    memset(attr, 0, sizeof(*attr));
    if (context->device->transport_type == IBV_TRANSPORT_IWARP)
        return fill_iw(mod, attr, mask);
    return fill_ib(context, mod, attr, mask);
}
