/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/engine.h"
#include "core/status.h"

/* The number of bytes that a message of each kind has room for is what its receiver is told, as on Windows: on InfiniBand
 * the length is not on the wire. */
uint8_t cm_data_export_locked(struct cm_id *id, void *to)
{
    const struct connection *wire = &id->wire;
    size_t length = wire->data_in ? wire->data_length : 0, most;
    ib_cm_rdma_req_t request = { 0 };

    memset(to, 0, IB_REP_PDATA_SIZE);
    switch (id->data) {
    case CM_DATA_REQ:
        cm_header_write(&request, &wire->peer, &wire->local);
        memcpy(request.pdata, wire->data, length < sizeof(request.pdata) ? length : sizeof(request.pdata));
        memcpy(to, &request, sizeof(request));
        return IB_REQ_PDATA_SIZE;
    case CM_DATA_REP:
        most = IB_REP_PDATA_SIZE;
        break;
    case CM_DATA_REJ:
        most = IB_REJ_PDATA_SIZE;
        break;
    default:
        return 0;
    }
    memcpy(to, wire->data, length < most ? length : most);
    return (uint8_t)most;
}

/* The sequence number that the peer starts with, which only the attributes tell; 0 on iWARP, which has none. */
static net32_t peer_psn_locked(struct cm_id *id)
{
    struct ibv_qp_attr attr;
    int mask;

    if (id->wire.adapter->device->transport == DEVICE_IW || connection_qp_attr(&id->wire, IBV_QPS_RTS, &attr, &mask))
        return 0;
    return htonl(attr.sq_psn);
}

static uint16_t pkey_index_of(const struct rdma_cm_id *id)
{
    int index = id->verbs ? ibv_get_pkey_index(id->verbs, id->port_num, id->route.addr.addr.ibaddr.pkey) : -1;

    return index < 0 ? 0 : (uint16_t)index;
}

/* Time-outs and the peer's guid are not known in user space: the values that rdma_cm itself puts on the wire, and 0. */
void cm_req_event_fill_locked(struct cm_id *id, const struct cm_event *request, iba_cm_event *event)
{
    iba_cm_req_event *req = &event->data.req;
    struct connection *wire = &id->wire;
    uint8_t data[IB_REP_PDATA_SIZE];
    struct ibv_qp_attr attr;
    int mask;
    bool known =
        wire->adapter->device->transport != DEVICE_IW && connection_qp_attr(wire, IBV_QPS_RTR, &attr, &mask) == 0;

    memset(event, 0, sizeof(*event));
    event->type = iba_cm_req_received;
    req->service_id = id->service_id;
    cm_path_fill(wire, known ? &attr : NULL, &req->primary_path);
    req->primary_path.service_id = id->service_id;
    req->qpn = htonl(request->qp_num);
    req->qp_type = IB_QPT_RELIABLE_CONN;
    req->starting_psn = peer_psn_locked(id);
    cm_data_export_locked(id, data);
    memcpy(req->pdata, data, sizeof(req->pdata));
    req->max_cm_retries = 15;
    req->resp_res = request->responder_resources;
    req->init_depth = request->initiator_depth;
    req->remote_resp_timeout = 20;
    req->local_resp_timeout = 20;
    req->flow_ctrl = request->flow_control;
    req->rnr_retry_cnt = request->rnr_retry_count;
    req->retry_cnt = request->retry_count;
    req->srq = request->srq;
    req->local_ca_guid = htobe64(wire->adapter->device->guid);
    req->pkey_index = pkey_index_of(wire->cmid->id);
    req->port_num = wire->cmid->id->port_num;
}

/* ---- Notes ---- */

static void tell_locked(struct cm_id *id, iba_cm_event_type type)
{
    struct cm_message *message = message_take_locked(id, type);

    if (!message)
        return;
    switch (type) {
    case iba_cm_rtu_received:
    case iba_cm_drep_received:
        message->event.data.rtu = (iba_cm_rtu_event){ message->data, IB_RTU_PDATA_SIZE };
        break;
    case iba_cm_dreq_received:
        message->event.data.dreq = (iba_cm_dreq_event){ message->data, IB_DREQ_PDATA_SIZE };
        break;
    default:
        break;
    }
    message_deliver_locked(id, message);
}

static void tell_reply_locked(struct cm_id *id)
{
    const struct bare_qp *peer = &id->wire.peer_qp;
    struct cm_message *message = message_take_locked(id, iba_cm_rep_received);
    iba_cm_rep *rep;

    id->data = CM_DATA_REP;
    id->mra_sent = false;
    if (!message)
        return;
    rep = &message->event.data.rep.rep;
    rep->qpn = htonl(peer->number);
    rep->starting_psn = peer_psn_locked(id);
    rep->pdata_len = cm_data_export_locked(id, message->data);
    rep->p_pdata = message->data;
    rep->resp_res = (uint8_t)id->wire.inbound;
    rep->init_depth = (uint8_t)id->wire.outbound;
    rep->flow_ctrl = peer->flow_control;
    rep->rnr_retry_cnt = peer->rnr_retry_count;
    rep->srq = peer->srq;
    message_deliver_locked(id, message);
}

/* On iWARP a refusal is an errno: nobody listens there, or somebody refused. */
static ib_rej_status_t reason_of(int reject)
{
    if (reject > 0)
        return NDV_NET16(reject);
    return reject == -ECONNREFUSED ? IB_REJ_INVALID_SID : IB_REJ_USER_DEFINED;
}

static void tell_reject_locked(struct cm_id *id, int reject)
{
    struct cm_message *message = message_take_locked(id, iba_cm_rej_received);

    id->data = CM_DATA_REJ;
    if (!message)
        return;
    message->event.data.rej.reason = reason_of(reject);
    message->event.data.rej.pdata_len = cm_data_export_locked(id, message->data);
    message->event.data.rej.p_pdata = message->data;
    message_deliver_locked(id, message);
}

static void connect_failed_locked(struct cm_id *id, NTSTATUS status)
{
    if (id->wire.reject)
        tell_reject_locked(id, id->wire.reject);
    else if (status == ND_CONNECTION_REFUSED) /* a call said so (iWARP) */
        tell_reject_locked(id, -ECONNREFUSED);
    else
        tell_locked(id, iba_cm_req_error);
}

static void closed_locked(struct cm_id *id)
{
    bool timed_out = id->wire.timed_out;

    /* The peer's own DREQ may have been what ended the wait: then it wants an answer. */
    if (!timed_out)
        connection_answer(&id->wire);
    id->spent = true;
    cm_id_end_locked(id);
    tell_locked(id, timed_out ? iba_cm_dreq_error : iba_cm_drep_received);
}

static void removed_locked(struct cm_id *id, enum cm_state before)
{
    id->spent = true;
    switch (before) {
    case CM_REQ_SENT:
        tell_locked(id, iba_cm_req_error);
        break;
    case CM_REP_SENT:
        tell_locked(id, iba_cm_rep_error);
        break;
    case CM_REP_RCVD:
    case CM_ESTABLISHED:
        tell_locked(id, iba_cm_dreq_received);
        break;
    case CM_DREQ_SENT:
        tell_locked(id, iba_cm_dreq_error);
        break;
    default:
        break;
    }
}

static void wire_note(struct connection *conn, enum wire_note note, NTSTATUS status)
{
    struct cm_id *id = cm_from_wire(conn);

    if (id->destroying)
        return;
    switch (note) {
    case NOTE_REPLY:
        tell_reply_locked(id);
        break;
    case NOTE_CONNECT_FAILED:
        connect_failed_locked(id, status);
        break;
    case NOTE_REPLY_LOST:
        tell_reject_locked(id, conn->reject);
        break;
    case NOTE_ACCEPTED:
        tell_locked(id, iba_cm_rtu_received);
        break;
    case NOTE_ACCEPTED_CLOSED:
        tell_locked(id, iba_cm_rtu_received);
        tell_locked(id, iba_cm_dreq_received);
        break;
    case NOTE_ACCEPT_FAILED:
        if (conn->reject)
            tell_reject_locked(id, conn->reject);
        else
            tell_locked(id, iba_cm_rep_error);
        break;
    case NOTE_PEER_CLOSED:
    case NOTE_LOST:
        tell_locked(id, iba_cm_dreq_received);
        break;
    case NOTE_CLOSED:
        closed_locked(id);
        break;
    case NOTE_REMOVED:
        removed_locked(id, id->before);
        break;
    default:
        break;
    }
}

static void wire_unlock(struct connection *conn)
{
    cm_id_unlock(cm_from_wire(conn));
}

static void wire_ref(struct connection *conn)
{
    cm_id_ref(cm_from_wire(conn));
}

static void wire_unref(struct connection *conn)
{
    cm_id_unref(cm_from_wire(conn));
}

const struct connection_owner cm_wire_owner = {
    .data_max = CONNECTION_REPLY_MAX,
    .note = wire_note,
    .unlock = wire_unlock,
    .ref = wire_ref,
    .unref = wire_unref,
};
