/* SPDX-License-Identifier: MIT */

/* Connecting: requests, replies, rejects, disconnects; the attributes that the cm gives for the queue pair. */

#include "fake_internal.h"

static void keep_param(struct fake_conn_param *to, const struct rdma_conn_param *from)
{
    memset(to, 0, sizeof(*to));
    if (from) {
        to->param = *from;
        if (from->private_data && from->private_data_len)
            memcpy(to->data, from->private_data, from->private_data_len);
    }
    to->param.private_data = to->data;
}

static int check_param(const struct fake_id *id, const struct fake_conn_param *conn, unsigned limit)
{
    const struct rdma_conn_param *param = &conn->param;

    if (param->private_data_len > (id->iwarp ? 252 : limit))
        return EINVAL;
    if (param->responder_resources > id->device->attr.max_qp_rd_atom ||
        param->initiator_depth > id->device->attr.max_qp_init_rd_atom)
        return EINVAL;
    if (id->iwarp && !fake_qp_by_num(param->qp_num))
        return EINVAL;
    return 0;
}

int rdma_connect(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
    struct fake_call call = { .fn = FAKE_rdma_connect };
    int err;
    struct fake_id *id;

    keep_param(&call.arg.conn, param);
    id = fake_id_enter(&call, public, &err);
    if (id && id->iwarp && call.on_loop)
        fake_violation("rdma_connect of an iWARP id may block and was called on the loop");
    if (!err && id->state != FAKE_CM_ROUTE_RESOLVED)
        err = EINVAL;
    if (!err)
        err = check_param(id, &call.arg.conn, 56);
    if (!err) {
        id->state = FAKE_CM_REQ_SENT;
        id->conn = call.arg.conn;
        id->conn.param.private_data = id->conn.data;
        id->has_conn = true;
        id->responder_resources = id->conn.param.responder_resources;
        id->initiator_depth = id->conn.param.initiator_depth;
        err = fake_wire_connect(id);
        if (err)
            id->state = FAKE_CM_CLOSED;
    }
    return fake_id_leave(&call, id, err);
}

int rdma_accept(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
    struct fake_call call = { .fn = FAKE_rdma_accept };
    int err;
    struct fake_id *id;

    keep_param(&call.arg.conn, param);
    id = fake_id_enter(&call, public, &err);
    if (!err && id->state != FAKE_CM_REQ_RECEIVED)
        err = EINVAL;
    if (!err)
        err = check_param(id, &call.arg.conn, 196);
    if (!err) {
        id->state = FAKE_CM_REP_SENT;
        id->accepted = true;
        id->conn = call.arg.conn;
        id->conn.param.private_data = id->conn.data;
        id->has_conn = true;
        fake_child_settled(id);
        fake_wire_accept(id);
    }
    return fake_id_leave(&call, id, err);
}

int rdma_establish(struct rdma_cm_id *public)
{
    struct fake_call call = { .fn = FAKE_rdma_establish };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (!err && (id->iwarp || id->state != FAKE_CM_REP_RECEIVED || id->id.qp))
        err = EINVAL;
    if (!err) {
        id->state = FAKE_CM_ESTABLISHED;
        fake_wire_establish(id);
    }
    return fake_id_leave(&call, id, err);
}

int rdma_reject(struct rdma_cm_id *public, const void *data, uint8_t length)
{
    struct fake_call call = { .fn = FAKE_rdma_reject };
    struct rdma_conn_param param = { .private_data = data, .private_data_len = length };
    int err;
    struct fake_id *id;

    keep_param(&call.arg.conn, &param);
    id = fake_id_enter(&call, public, &err);
    if (!err && id->state != FAKE_CM_REQ_RECEIVED && (id->iwarp || id->state != FAKE_CM_REP_RECEIVED))
        err = EINVAL;
    if (!err && length > (id->iwarp ? 252 : 148))
        err = EINVAL;
    if (!err) {
        id->state = FAKE_CM_CLOSED;
        if (!id->has_conn) {
            id->conn = call.arg.conn;
            id->conn.param.private_data = id->conn.data;
        }
        fake_child_settled(id);
        fake_wire_reject(id, call.arg.conn.data, length);
    }
    return fake_id_leave(&call, id, err);
}

int rdma_notify(struct rdma_cm_id *public, enum ibv_event_type type)
{
    struct fake_call call = { .fn = FAKE_rdma_notify, .arg.notify = { .event = type } };
    struct fake_cm event = { .event = RDMA_CM_EVENT_ESTABLISHED };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (err || id->iwarp)
        return fake_id_leave(&call, id, err);
    if (type != IBV_EVENT_COMM_EST)
        err = EINVAL;
    else if (id->state == FAKE_CM_ESTABLISHED)
        err = EISCONN;
    else if (id->state != FAKE_CM_REP_SENT)
        err = EINVAL;
    else
        fake_event_queue(id, NULL, &event);
    return fake_id_leave(&call, id, err);
}

static int disconnect(struct fake_id *id)
{
    struct fake_qp *qp;

    if (id->state < FAKE_CM_REQ_SENT)
        return EINVAL;
    if (id->iwarp) {
        if (id->state != FAKE_CM_ESTABLISHED)
            return EINVAL;
        id->state = FAKE_CM_DREQ_SENT;
        /* The kernel closes the queue pair before the peer knows. */
        if ((qp = fake_id_qp(id)) != NULL)
            fake_qp_to_error(qp);
        fake_wire_disconnect(id);
        return 0;
    }
    if (id->state == FAKE_CM_ESTABLISHED || id->state == FAKE_CM_DREQ_RECEIVED) {
        bool answer = id->state == FAKE_CM_DREQ_RECEIVED;

        fake_wire_disconnect(id);
        if (answer)
            id->state = FAKE_CM_CLOSED;
    }
    return 0;
}

int rdma_disconnect(struct rdma_cm_id *public)
{
    struct fake_call call = { .fn = FAKE_rdma_disconnect };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (!err)
        err = disconnect(id);
    return fake_id_leave(&call, id, err);
}

/* ---- attributes and options ---- */

static int init_attr_ib(struct fake_id *id, struct ibv_qp_attr *attr, int *mask)
{
    bool asked = id->state >= FAKE_CM_REQ_SENT && id->state < FAKE_CM_CLOSED;
    bool peer_known = asked && id->state != FAKE_CM_REQ_SENT;

    if (!id->device || id->state == FAKE_CM_CLOSED)
        return EINVAL;
    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        attr->port_num = id->id.port_num;
        attr->pkey_index = 0;
        attr->qp_access_flags = asked ? IBV_ACCESS_REMOTE_WRITE : 0;
        if (asked && id->responder_resources)
            attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        return 0;
    case IBV_QPS_RTR:
        if (!peer_known)
            return EINVAL;
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->ah_attr.is_global = 1;
        attr->ah_attr.port_num = id->id.port_num;
        attr->path_mtu = id->device->ports[id->id.port_num - 1].active_mtu;
        attr->dest_qp_num = id->remote.qp_num;
        attr->rq_psn = id->psn + 1;
        attr->max_dest_rd_atomic = id->responder_resources;
        attr->min_rnr_timer = 0;
        return 0;
    case IBV_QPS_RTS:
        if (!peer_known)
            return EINVAL;
        *mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
        attr->sq_psn = id->psn;
        attr->timeout = id->ack_timeout ? id->ack_timeout : 19;
        attr->retry_cnt = id->child ? id->remote.retry_count : id->conn.param.retry_count;
        attr->rnr_retry = id->remote.rnr_retry_count;
        attr->max_rd_atomic = id->initiator_depth;
        return 0;
    default:
        return EINVAL;
    }
}

static int init_attr_iwarp(struct fake_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (id->state == FAKE_CM_CLOSED || attr->qp_state < IBV_QPS_INIT || attr->qp_state > IBV_QPS_RTS)
        return EINVAL;
    attr->port_num = id->id.port_num;
    *mask = IBV_QP_PORT;
    if (attr->qp_state != IBV_QPS_RTS) {
        *mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    }
    return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *public, struct ibv_qp_attr *attr, int *mask)
{
    struct fake_call call = { .fn = FAKE_rdma_init_qp_attr, .arg.modify_qp = { .attr = *attr } };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    if (!err)
        err = id->iwarp ? init_attr_iwarp(id, attr, mask) : init_attr_ib(id, attr, mask);
    if (!err) {
        call.arg.modify_qp.attr = *attr;
        call.arg.modify_qp.mask = *mask;
    }
    return fake_id_leave(&call, id, err);
}

int rdma_set_option(struct rdma_cm_id *public, int level, int name, void *value, size_t size)
{
    struct fake_call call = { .fn = FAKE_rdma_set_option, .arg.option = { .level = level, .name = name } };
    int err;
    struct fake_id *id;

    memcpy(&call.arg.option.value, value, size < sizeof(uint64_t) ? size : sizeof(uint64_t));
    id = fake_id_enter(&call, public, &err);
    if (err)
        return fake_id_leave(&call, id, err);
    if (level != RDMA_OPTION_ID) {
        err = ENOSYS;
    } else if (name == RDMA_OPTION_ID_REUSEADDR && size == sizeof(int)) {
        bool on = call.arg.option.value != 0;

        if (id->state == FAKE_CM_LISTEN || (!on && id->reuseaddr && id->state != FAKE_CM_IDLE))
            err = EINVAL;
        else
            id->reuseaddr = on;
    } else if (name == RDMA_OPTION_ID_ACK_TIMEOUT && size == sizeof(uint8_t)) {
        id->ack_timeout = (uint8_t)call.arg.option.value;
    } else if (!(name == RDMA_OPTION_ID_TOS && size == sizeof(uint8_t)) &&
               !(name == RDMA_OPTION_ID_AFONLY && size == sizeof(int))) {
        err = EINVAL;
    }
    return fake_id_leave(&call, id, err);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const text[] = {
        "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
        "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
        "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
        "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
        "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
        "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };

    return (unsigned)event < sizeof(text) / sizeof(text[0]) ? text[event] : "UNKNOWN EVENT";
}

/* ---- the test's side ---- */

const struct fake_conn_param *fake_cm_conn(struct rdma_cm_id *public)
{
    struct fake_id *id = (struct fake_id *)fake_head(public);
    const struct fake_conn_param *conn;

    fake_lock();
    conn = id->conn.param.private_data ? &id->conn : NULL;
    fake_unlock();
    return conn;
}

enum fake_cm_state fake_cm_state(struct rdma_cm_id *id)
{
    enum fake_cm_state state;

    fake_lock();
    state = ((struct fake_id *)fake_head(id))->state;
    fake_unlock();
    return state;
}
