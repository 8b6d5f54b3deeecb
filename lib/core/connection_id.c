/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"

#include <errno.h>
#include <string.h>
#include <ntstatus.h>

#include "log.h"
#include "status.h"

/* ---- Timer: one deadline at a time; libev wants it started and stopped on loop ---- */

static void timer_fire(struct engine_timer *timer)
{
    struct connection *conn = (struct connection *)((char *)timer - offsetof(struct connection, timer));

    pthread_mutex_lock(&conn->lock);
    conn->timer_running = false;
    if (conn->timer_ms) {
        conn->timer_ms = 0;
        connection_step(conn, WIRE_EV_TIMER, NULL);
    }
    conn->owner->unlock(conn);
    conn->owner->unref(conn);
}

static void timer_apply(struct connection *conn)
{
    if (conn->timer_ms) {
        if (!conn->timer_running)
            conn->owner->ref(conn);
        conn->timer_running = true;
        engine_timer_start(&conn->timer, conn->timer_ms, timer_fire);
    } else if (conn->timer_running) {
        engine_timer_stop(&conn->timer);
        conn->timer_running = false;
        conn->owner->unref(conn); /* never the last: the caller holds one */
    }
}

static void timer_call_run(struct engine_call *call)
{
    struct connection *conn = (struct connection *)((char *)call - offsetof(struct connection, timer_call));

    pthread_mutex_lock(&conn->lock);
    timer_apply(conn);
    conn->owner->unlock(conn);
    conn->owner->unref(conn);
}

void connection_set_timer(struct connection *conn, uint32_t ms)
{
    conn->timer_ms = ms;
    if (!ms && !conn->timer_running)
        return; /* a start that is still queued finds that nothing is wanted */
    if (engine_on_loop()) {
        timer_apply(conn);
        return;
    }
    conn->owner->ref(conn);
    if (!engine_post(&conn->timer_call, timer_call_run))
        conn->owner->unref(conn);
}

/* ---- Ids and the local port ---- */

static NTSTATUS id_create(struct connection *conn, struct cmid **out)
{
    NTSTATUS status = cmid_create(conn, connection_event, connection_gone, out);

    if (status == ND_SUCCESS)
        conn->owner->ref(conn);
    return status;
}

void connection_drop_id(struct connection *conn)
{
    if (conn->cmid && conn->parted)
        cmid_destroy_later(conn->cmid);
    else if (conn->cmid)
        cmid_destroy(conn->cmid);
    conn->cmid = NULL;
}

static void id_share_port(struct cmid *cmid)
{
    int on = 1;

    if (rdma_set_option(cmid->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) != 0)
        log_debug("rdma_set_option REUSEADDR: %s", strerror(errno));
}

/* 0 or errno. */
static int bind_other_port(struct connection *conn, struct cmid *cmid, const union address *address)
{
    union address copy = *address;

    address_set_port(&copy.sa, 0);
    if (rdma_bind_addr(cmid->id, &copy.sa) != 0)
        return errno;
    conn->wire_port = ntohs(rdma_get_src_port(cmid->id));
    return 0;
}

/* The kernel never lets an id share a port with a listening one, whatever its options; a connector that names our own
 * listener's port gets another one on the wire (A20). That one it keeps: the listener's would be taken from the next
 * listener, once this one is gone. */
static int bind_own_port(struct connection *conn, struct cmid *cmid, const union address *address)
{
    union address copy = *address;
    int error;

    if (conn->wire_port)
        address_set_port(&copy.sa, conn->wire_port);
    if (rdma_bind_addr(cmid->id, &copy.sa) == 0)
        return 0;
    error = errno;
    if ((error == EADDRINUSE || error == EADDRNOTAVAIL) && listener_port_is_ours(&copy))
        return bind_other_port(conn, cmid, address);
    return error;
}

static NTSTATUS id_bind(struct connection *conn, struct cmid *cmid, const union address *address, bool other_port)
{
    int error = (other_port ? bind_other_port : bind_own_port)(conn, cmid, address);

    if (!error)
        return cmid->id->verbs ? ND_SUCCESS : ND_INVALID_ADDRESS;
    return address_info(error, status_from_bind_errno(error, true, address_port(&address->sa)), "rdma_bind_addr",
                        &address->sa);
}

NTSTATUS connection_bind(struct connection *conn, const union address *address)
{
    uint16_t port = address_port(&address->sa);
    struct cmid *cmid;
    NTSTATUS status;

    if (conn->bound || conn->state != WIRE_IDLE)
        return STATUS_ADDRESS_ALREADY_ASSOCIATED;
    status = id_create(conn, &cmid);
    if (status != ND_SUCCESS)
        return status;
    /* Other connectors may name the same port, also one that is chosen here: no other program is given that. On iWARP a
     * later attempt may start while this id is in a blocking connect, when its options cannot be changed any more. */
    id_share_port(cmid);
    conn->wire_port = 0;
    status = id_bind(conn, cmid, address, false);
    if (status != ND_SUCCESS) {
        cmid_destroy(cmid);
        return status;
    }
    conn->cmid = cmid;
    conn->local = *address;
    if (!port)
        address_set_port(&conn->local.sa, ntohs(rdma_get_src_port(cmid->id)));
    conn->bound = true;
    return ND_SUCCESS;
}

/* One id is one attempt: a new id takes over the local port before the old one goes. A failure leaves no id; the next
 * attempt tries again. */
static void renew(struct connection *conn, bool other_port)
{
    struct cmid *old = conn->cmid, *fresh = NULL;

    if (!adapter_removed(conn->adapter) && id_create(conn, &fresh) == ND_SUCCESS) {
        id_share_port(fresh);
        if (id_bind(conn, fresh, &conn->local, other_port) != ND_SUCCESS) {
            cmid_destroy(fresh);
            fresh = NULL;
        }
    }
    conn->cmid = fresh;
    if (old)
        cmid_destroy(old);
}

void connection_renew_id(struct connection *conn)
{
    renew(conn, false);
}

void connection_move_id(struct connection *conn)
{
    renew(conn, true);
}
