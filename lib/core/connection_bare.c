/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"

#include <errno.h>
#include <string.h>

#include "cm_registry.h"
#include "log.h"
#include "status.h"

/* Connections of queue pairs that are not ours: their owner moves them, so all that is left are the messages. */

void connection_renew(struct connection *conn, struct adapter *adapter)
{
    connection_close(conn);
    if (conn->adapter != adapter) {
        if (conn->adapter)
            adapter_unref(conn->adapter);
        conn->adapter = adapter_ref(adapter);
    }
    conn->bound = conn->passive = conn->peer_known = conn->data_in = conn->timed_out = false;
    conn->reject = 0;
    conn->state = WIRE_IDLE;
}

/* If the peer has taken its reply back, the event that says so is on its way: the id stays for it. */
NTSTATUS connection_complete_bare(struct connection *conn)
{
    if (!connection_is_iw(conn) && rdma_establish(conn->cmid->id) != 0) {
        return status_info(errno, connection_lost_status(conn), "rdma_establish");
    }
    conn->state = WIRE_ESTABLISHED;
    return ND_SUCCESS;
}

NTSTATUS connection_accept_bare(struct connection *conn, struct rdma_conn_param *param)
{
    NTSTATUS status;

    if (rdma_accept(conn->cmid->id, param) == 0) {
        conn->state = WIRE_REPLY_OUT;
        return ND_SUCCESS;
    }
    status = status_info(errno, connection_lost_status(conn), "rdma_accept");
    connection_close(conn);
    return status;
}

void connection_establish_bare(struct connection *conn)
{
    connection_comm_established(conn);
    conn->state = WIRE_ESTABLISHED; /* in which the ESTABLISHED that follows means nothing */
}

static void device_removed(void *object, void *arg)
{
    struct connection *conn = object;

    pthread_mutex_lock(&conn->lock);
    if (conn->adapter && conn->adapter->device == arg)
        connection_device_removed(conn);
    conn->owner->unlock(conn);
    conn->owner->unref(conn);
}

static void (*watcher)(struct device *device);

void connection_bare_watch(void (*removed)(struct device *device))
{
    __atomic_store_n(&watcher, removed, __ATOMIC_RELEASE);
}

void connection_bare_removed(struct device *device)
{
    void (*removed)(struct device *) = __atomic_load_n(&watcher, __ATOMIC_ACQUIRE);

    cm_entry_each(CM_BARE, device_removed, device);
    if (removed)
        removed(device);
}
