/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "status.h"
#include "tunable.h"

/* Attribute bits with which old kernels filled in Ethernet addresses; an InfiniBand port refuses them. */
#define ETHERNET_BITS 0xe00000

static uint8_t clip(uint32_t value, int device_max)
{
    uint32_t most = device_max > UINT8_MAX ? UINT8_MAX : (uint32_t)device_max;

    return (uint8_t)(value < most ? value : most);
}

/* What rdma_cm gets wrong for us: the kernel still holds the peer's wishes for the read limits (passive side), or what a
 * foreign peer claimed; no receiver-not-ready timer of its own (0 means 655 ms); and the retry numbers are the peer's. */
static void override(struct connection *conn, struct ibv_qp_attr *attr, enum ibv_qp_state state)
{
    const struct ibv_device_attr *device = &conn->adapter->device->attr;
    const struct tunables *tune = tunables();

    if (state == IBV_QPS_RTR) {
        attr->max_dest_rd_atomic = clip(conn->inbound, device->max_qp_rd_atom);
        attr->min_rnr_timer = (uint8_t)(qp_has_srq(conn->qp) ? tune->min_rnr_timer_srq : tune->min_rnr_timer);
    } else if (state == IBV_QPS_RTS) {
        attr->max_rd_atomic = clip(conn->outbound, device->max_qp_init_rd_atom);
        attr->retry_cnt = (uint8_t)tune->retry_count;
        attr->rnr_retry = (uint8_t)(conn->peer_srq ? 7 : tune->rnr_retry);
        if (conn->as_given) {
            /* The request carried the one, each side's message the other side's other. 7 is "for ever" on rxe. */
            attr->retry_cnt = conn->passive ? conn->told_retry : conn->retry;
            if (attr->retry_cnt > 6)
                attr->retry_cnt = 6;
            attr->rnr_retry = conn->told_rnr;
        }
        attr->timeout = (uint8_t)(conn->peer_srq ? tune->ack_timeout_srq : tune->ack_timeout);
    }
}

/* `attr` and `mask` for the state, without the bits that an InfiniBand port refuses. 0 or errno. */
static int init_attr(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
    struct ibv_port_attr port;

    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    *mask = 0;
    if (rdma_init_qp_attr(id, attr, mask) != 0) {
        int error = errno;

        log_info("rdma_init_qp_attr to state %d: %s", state, strerror(error));
        return error;
    }
    if ((*mask & ETHERNET_BITS) && ibv_query_port(id->verbs, id->port_num, &port) == 0 &&
        port.link_layer == IBV_LINK_LAYER_INFINIBAND)
        *mask &= ~ETHERNET_BITS;
    return 0;
}

/* What the kernel would say with INIT, by the same rule: the peer reads only if the connection messages allow it. */
static void add_rights(const struct connection *conn, struct ibv_qp_attr *attr, int *mask)
{
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (conn->told_in)
        attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    *mask |= IBV_QP_ACCESS_FLAGS;
}

static bool move(struct connection *conn, enum ibv_qp_state state, bool rights)
{
    struct ibv_qp_attr attr;
    int mask, error;

    if (init_attr(conn->cmid->id, state, &attr, &mask) != 0)
        return false;
    override(conn, &attr, state);
    if (rights)
        add_rights(conn, &attr, &mask);
    error = qp_modify(conn->qp, &attr, mask);
    if (error) {
        status_warn(error, connection_lost_status(conn), "ibv_modify_qp to state %d", state);
        return false;
    }
    if (state != IBV_QPS_INIT)
        conn->qp_moved = true;
    return true;
}

int connection_qp_attr(struct connection *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
    const struct tunables *tune = tunables();
    int error;

    if (!conn->cmid)
        return EINVAL;
    if (connection_is_iw(conn)) {
        /* The kernel has nothing to say, and the id may be in a connect that blocks. */
        memset(attr, 0, sizeof(*attr));
        attr->qp_state = state;
        *mask = 0;
        return 0;
    }
    error = init_attr(conn->cmid->id, state, attr, mask);
    if (!error && state == IBV_QPS_RTR)
        attr->min_rnr_timer = (uint8_t)(conn->bare_qp.srq ? tune->min_rnr_timer_srq : tune->min_rnr_timer);
    return error;
}

/* Only now are the rights for the peer's reads and writes known, and the partition; the QP has been in INIT since it was made, or
 * since its application put it there, on a port of its choice. Ethernet has one partition, and RTR takes the rights as well,
 * which saves two calls. */
static bool needs_init(const struct connection *conn)
{
    return !conn->adapter->ethernet || conn->cmid->id->port_num != qp_port(conn->qp) ||
           qp_state(conn->qp) != IBV_QPS_INIT;
}

/* Posts are let through before the call that lets the peer send: its first message may be answered while that call has not
 * returned yet. */
bool connection_qp_ready(struct connection *conn)
{
    bool init = needs_init(conn);

    if ((init && !move(conn, IBV_QPS_INIT, false)) || !move(conn, IBV_QPS_RTR, !init) ||
        !move(conn, IBV_QPS_RTS, false))
        return false;
    qp_set_connected(conn->qp);
    return true;
}

bool connection_qp_establish(struct connection *conn)
{
    if (!connection_qp_ready(conn))
        return false;
    if (rdma_establish(conn->cmid->id) == 0)
        return true;
    status_info(errno, connection_lost_status(conn), "rdma_establish");
    return false;
}

void connection_qp_prepare_iw(struct connection *conn)
{
    struct ibv_qp_attr attr;
    int mask = 0, error;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_INIT;
    error = rdma_init_qp_attr(conn->cmid->id, &attr, &mask) == 0 ? qp_modify(conn->qp, &attr, mask) : errno;
    if (error)
        log_debug("access rights of a queue pair: %s", strerror(error));
}

/* Before the route is resolved it also sets the time-outs of the connection messages; on a child only the QP's. */
void connection_set_ack_timeout(struct cmid *cmid, bool peer_srq)
{
    uint8_t value = (uint8_t)(peer_srq ? tunables()->ack_timeout_srq : tunables()->ack_timeout);

    if (rdma_set_option(cmid->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, sizeof(value)) != 0)
        log_debug("rdma_set_option ACK_TIMEOUT: %s", strerror(errno));
}
