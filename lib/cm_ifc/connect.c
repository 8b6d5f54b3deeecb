/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <string.h>

#include "core/log.h"
#include "core/status.h"

#define COUNT_MASK 7 /* retry counts have three bits */

/* Enters in one of the states of the mask. */
#define STATE(state) (1u << (state))
static NTSTATUS enter_in(iba_cm_id *p_id, unsigned int states, struct cm_id **out)
{
    NTSTATUS status = cm_id_enter(p_id, out);

    if (status != STATUS_SUCCESS)
        return status;
    if (STATE(cm_id_state_locked(*out)) & states)
        return STATUS_SUCCESS;
    cm_id_leave(*out);
    return STATUS_INVALID_DEVICE_STATE;
}

/* ---- Active side ---- */

struct route {
    union address local, peer;
    const void *data;
    size_t length;
};

static NTSTATUS first_address(int family, union address *out)
{
    struct address_list *list = address_list_get();
    NTSTATUS status = ND_INVALID_ADDRESS;

    if (!list)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < list->count && status != STATUS_SUCCESS; i++) {
        if (list->entries[i].reason || list->entries[i].address.sa.sa_family != family)
            continue;
        *out = list->entries[i].address;
        status = STATUS_SUCCESS;
    }
    address_list_put(list);
    return status;
}

/* The local address by the route to the peer; a loopback peer means this host's RDMA address. */
static NTSTATUS find_local(struct route *route)
{
    NTSTATUS status;

    if (address_is_loopback(&route->peer.sa))
        return first_address(route->peer.sa.sa_family, &route->local);
    status = address_route(&route->peer.sa, &route->local);
    address_set_port(&route->local.sa, 0);
    return status;
}

/* A link-local peer is reached over the link of the local address. */
static void set_scope(struct route *route)
{
    struct address_entry entry;

    if (route->peer.sa.sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&route->peer.v6.sin6_addr))
        return;
    if (address_find(&route->local.sa, &entry) != STATUS_SUCCESS)
        return;
    route->local.v6.sin6_scope_id = entry.address.v6.sin6_scope_id;
    route->peer.v6.sin6_scope_id = entry.address.v6.sin6_scope_id;
}

/* Where a request goes to: what the IP header of the private data says, else the path, if its GIDs are IP addresses.
 * The kernel writes the header itself. */
static NTSTATUS find_route(const iba_cm_req *req, struct route *route)
{
    const ib_path_rec_t *path = req->p_primary_path;
    NTSTATUS status = STATUS_SUCCESS;
    uint16_t port;

    if (!cm_port_of_service(req->service_id, &port))
        return STATUS_NOT_SUPPORTED;
    route->data = req->p_pdata;
    route->length = req->p_pdata ? req->pdata_len : 0;
    if (cm_header_read(req->p_pdata, req->pdata_len, &route->local, &route->peer)) {
        route->data = (const uint8_t *)req->p_pdata + offsetof(ib_cm_rdma_req_t, pdata);
        route->length -= offsetof(ib_cm_rdma_req_t, pdata);
    } else if (cm_gid_to_address(&path->dgid, &route->peer)) {
        memset(&route->local, 0, sizeof(route->local));
        route->local.sa.sa_family = route->peer.sa.sa_family;
    } else {
        return STATUS_INVALID_PARAMETER;
    }
    if (!port || address_is_any(&route->peer.sa) || route->length > IB_REQ_CM_RDMA_PDATA_SIZE)
        return STATUS_INVALID_PARAMETER;
    address_set_port(&route->peer.sa, port);
    if (address_is_any(&route->local.sa)) {
        union address from_path;

        if (cm_gid_to_address(&path->sgid, &from_path) && from_path.sa.sa_family == route->peer.sa.sa_family)
            route->local = from_path;
        else
            status = find_local(route);
    }
    set_scope(route);
    return status;
}

static NTSTATUS check_req(const iba_cm_req *req)
{
    if (!req || !req->p_primary_path || req->pdata_len > IB_REQ_PDATA_SIZE)
        return STATUS_INVALID_PARAMETER;
    return req->qp_type == IB_QPT_RELIABLE_CONN ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
}

/* A source port that somebody has is not worth a failure: requests do not depend on it. */
static NTSTATUS bind_locked(struct connection *wire, union address local)
{
    NTSTATUS status = connection_bind(wire, &local);

    if (status != ND_SHARING_VIOLATION || !address_port(&local.sa))
        return status;
    address_set_port(&local.sa, 0);
    return connection_bind(wire, &local);
}

static NTSTATUS send_req_locked(struct cm_id *id, const iba_cm_req *req, const struct route *route,
                                struct adapter *adapter)
{
    NTSTATUS status = message_reserve_locked(id);

    if (status != STATUS_SUCCESS)
        return status;
    connection_renew(&id->wire, adapter);
    id->wire.bare_qp = (struct bare_qp){
        .number = ntohl(req->qpn),
        .retry_count = req->retry_cnt & COUNT_MASK,
        .rnr_retry_count = req->rnr_retry_cnt & COUNT_MASK,
        .flow_control = req->flow_ctrl != 0,
        .srq = req->srq != 0,
    };
    status = bind_locked(&id->wire, route->local);
    if (status == STATUS_SUCCESS)
        status = connection_connect(&id->wire, NULL, &route->peer, req->resp_res, req->init_depth, route->data,
                                    route->length);
    if (status == STATUS_SUCCESS) {
        id->data = CM_DATA_NONE;
        id->formatted = id->mra_sent = false;
    } else {
        connection_close(&id->wire);
    }
    return status;
}

NTSTATUS cm_send_req(iba_cm_id *p_id, iba_cm_req *p_req)
{
    struct adapter *adapter;
    struct route route;
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_leave(id);
    status = check_req(p_req);
    if (status == STATUS_SUCCESS)
        status = find_route(p_req, &route);
    if (status == STATUS_SUCCESS)
        status = cm_adapter_get(&route.local.sa, &adapter);
    if (status != STATUS_SUCCESS)
        return status_cm(status);
    status = cm_id_enter(p_id, &id);
    if (status == STATUS_SUCCESS) {
        enum cm_state state = cm_id_state_locked(id);

        if (state == CM_IDLE)
            status = status_cm(send_req_locked(id, p_req, &route, adapter));
        else
            status = state == CM_TIMEWAIT ? STATUS_INVALID_DEVICE_REQUEST : STATUS_INVALID_DEVICE_STATE;
        cm_id_leave(id);
    }
    adapter_unref(adapter);
    return status;
}

static bool bad_data(const void *data, uint8_t length, uint8_t most)
{
    (void)data; /* NULL: zeros */
    return length > most;
}

/* rdma_cm has no room for private data in RTU, DREQ and DREP. */
static void data_dropped(const char *message, const void *data, uint8_t length)
{
    if (data && length)
        log_info("%u bytes of private data are not sent with a %s", length, message);
}

NTSTATUS cm_send_rtu(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len)
{
    struct cm_id *id;
    NTSTATUS status;

    status = enter_in(p_id, STATE(CM_REP_RCVD), &id);
    if (status != STATUS_SUCCESS)
        return status;
    if (bad_data(p_pdata, pdata_len, IB_RTU_PDATA_SIZE)) {
        status = STATUS_INVALID_PARAMETER;
    } else {
        data_dropped("RTU", p_pdata, pdata_len);
        status = status_cm(connection_complete(&id->wire));
    }
    cm_id_leave(id);
    return status;
}

/* ---- Passive side ---- */

/* Limits of 0 and above what the request asked for are those of the request. */
static void keep_reply_locked(struct cm_id *id, const iba_cm_rep *rep)
{
    const struct adapter_limits *limits = &id->wire.adapter->limits;

    id->rep = *rep;
    if (!rep->resp_res || rep->resp_res > id->wire.inbound)
        id->rep.resp_res = (uint8_t)id->wire.inbound;
    if (id->rep.init_depth > limits->max_outbound_reads)
        id->rep.init_depth = (uint8_t)limits->max_outbound_reads;
    if (id->rep.init_depth > id->wire.outbound)
        id->rep.init_depth = (uint8_t)id->wire.outbound;
    memset(id->rep_data, 0, sizeof(id->rep_data));
    if (rep->p_pdata)
        memcpy(id->rep_data, rep->p_pdata, rep->pdata_len);
    else
        id->rep.pdata_len = 0;
    id->wire.bare_qp = (struct bare_qp){
        .number = ntohl(rep->qpn),
        .rnr_retry_count = rep->rnr_retry_cnt & COUNT_MASK,
        .flow_control = rep->flow_ctrl != 0,
        .srq = rep->srq != 0,
    };
}

static NTSTATUS format_rep_locked(struct cm_id *id, iba_cm_rep *rep, ib_qp_mod_t *init)
{
    ib_qp_mod_t rtr;
    NTSTATUS status;

    if (!id->formatted)
        id->mra_sent = false;
    keep_reply_locked(id, rep);
    id->formatted = true;
    status = init ? cm_qp_attr_locked(id, IB_QPS_INIT, init) : STATUS_SUCCESS;
    if (status == STATUS_SUCCESS && cm_qp_attr_locked(id, IB_QPS_RTR, &rtr) == STATUS_SUCCESS)
        rep->starting_psn = rtr.state.rtr.rq_psn;
    return status;
}

NTSTATUS cm_format_rep(iba_cm_id *p_id, iba_cm_rep *p_rep, ib_qp_mod_t *p_init)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REQ_RCVD) | STATE(CM_REP_FORMATTED), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!p_rep || bad_data(p_rep->p_pdata, p_rep->pdata_len, IB_REP_PDATA_SIZE))
        status = STATUS_INVALID_PARAMETER;
    else
        status = format_rep_locked(id, p_rep, p_init);
    cm_id_leave(id);
    return status;
}

/* If the peer has given up the id is idle again, as if its REJ had been seen in time. */
static NTSTATUS send_formatted_locked(struct cm_id *id)
{
    id->formatted = id->mra_sent = false;
    return status_cm(
        connection_accept(&id->wire, NULL, id->rep.resp_res, id->rep.init_depth, id->rep_data, id->rep.pdata_len));
}

NTSTATUS cm_send_formatted_rep(iba_cm_id *p_id)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REP_FORMATTED), &id);

    if (status != STATUS_SUCCESS)
        return status;
    status = send_formatted_locked(id);
    cm_id_leave(id);
    return status;
}

NTSTATUS cm_send_rep(iba_cm_id *p_id, iba_cm_rep *p_rep)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REQ_RCVD) | STATE(CM_REP_FORMATTED), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!p_rep || bad_data(p_rep->p_pdata, p_rep->pdata_len, IB_REP_PDATA_SIZE))
        status = STATUS_INVALID_PARAMETER;
    else
        status = format_rep_locked(id, p_rep, NULL);
    if (status == STATUS_SUCCESS)
        status = send_formatted_locked(id);
    cm_id_leave(id);
    return status;
}

NTSTATUS cm_established(iba_cm_id *p_id)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REP_SENT), &id);

    if (status != STATUS_SUCCESS)
        return status;
    connection_establish_bare(&id->wire);
    cm_id_leave(id);
    return STATUS_SUCCESS;
}

/* ---- Both sides ---- */

NTSTATUS cm_send_dreq(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_ESTABLISHED), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (bad_data(p_pdata, pdata_len, IB_DREQ_PDATA_SIZE)) {
        status = STATUS_INVALID_PARAMETER;
    } else {
        data_dropped("DREQ", p_pdata, pdata_len);
        connection_disconnect(&id->wire);
    }
    cm_id_leave(id);
    return status;
}

NTSTATUS cm_send_drep(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_DREQ_RCVD), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (bad_data(p_pdata, pdata_len, IB_DREP_PDATA_SIZE)) {
        status = STATUS_INVALID_PARAMETER;
    } else {
        data_dropped("DREP", p_pdata, pdata_len);
        connection_answer(&id->wire);
        id->spent = true;
        cm_id_end_locked(id);
    }
    cm_id_leave(id);
    return status;
}

NTSTATUS cm_send_rej(iba_cm_id *p_id, ib_rej_status_t reject_status, const void *p_ari, uint8_t ari_len,
                     const void *p_pdata, uint8_t pdata_len)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REQ_RCVD) | STATE(CM_REP_RCVD), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (bad_data(p_ari, ari_len, IB_ARI_SIZE) || bad_data(p_pdata, pdata_len, IB_REJ_PDATA_SIZE)) {
        status = STATUS_INVALID_PARAMETER;
    } else {
        if (reject_status != IB_REJ_USER_DEFINED)
            log_info("a rejection goes out with reason 28 instead of %u", ntohs(reject_status));
        id->spent = cm_id_state_locked(id) == CM_REP_RCVD;
        status = status_cm(connection_reject(&id->wire, p_pdata, p_pdata ? pdata_len : 0));
    }
    cm_id_leave(id);
    return status;
}

NTSTATUS cm_send_mra(iba_cm_id *p_id, uint8_t service_timeout, const void *p_pdata, uint8_t pdata_len)
{
    struct cm_id *id;
    NTSTATUS status = enter_in(p_id, STATE(CM_REQ_RCVD) | STATE(CM_REP_FORMATTED) | STATE(CM_REP_RCVD), &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (bad_data(p_pdata, pdata_len, IB_MRA_PDATA_SIZE) || service_timeout > 31)
        status = STATUS_INVALID_PARAMETER;
    else if (id->mra_sent)
        status = STATUS_INVALID_DEVICE_STATE;
    else
        id->mra_sent = true; /* the kernel sends one by itself when it takes long */
    cm_id_leave(id);
    return status;
}
