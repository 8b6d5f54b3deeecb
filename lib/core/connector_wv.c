/* SPDX-License-Identifier: MIT */
#include "connector_priv.h"

#include <string.h>

#include "ndstatus.h"

/* What only WinVerbs' endpoints need of a connector. */

static void lock(struct connector *c)
{
    pthread_mutex_lock(&c->wire.lock);
}

static bool unused_locked(const struct connector *c)
{
    return c->wire.state == WIRE_IDLE && !c->wire.bound && !c->listener && !c->released;
}

static NTSTATUS bind_once(struct connector *c, struct adapter *adapter, const union address *local)
{
    NTSTATUS status = ND_NOT_SUPPORTED;

    lock(c);
    if (unused_locked(c) && (!c->wire.adapter || c->wire.adapter == adapter)) {
        status = connection_bind(&c->wire, local);
        if (status == ND_SUCCESS)
            connection_set_adapter(&c->wire, adapter);
    }
    connector_unlock(c);
    return status;
}

NTSTATUS connector_bind_on(struct connector *c, struct adapter *adapter, const struct sockaddr *address, size_t length)
{
    union address local;
    uint64_t mark = cmid_mark();
    NTSTATUS status;

    if (engine_dead() || adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    status = address_import(address, length, &local);
    if (status != ND_SUCCESS)
        return status;
    status = bind_once(c, adapter, &local);
    /* The port's last owner may be ours and on its way out. */
    if (status == ND_SHARING_VIOLATION && cmid_settle(mark))
        status = bind_once(c, adapter, &local);
    return status;
}

bool connector_unused(struct connector *c)
{
    bool unused;

    lock(c);
    unused = unused_locked(c);
    connector_unlock(c);
    return unused;
}

void connector_unbind(struct connector *c)
{
    lock(c);
    if (c->wire.state == WIRE_IDLE && c->wire.bound) {
        connection_close(&c->wire);
        c->wire.state = WIRE_IDLE;
        c->wire.bound = false;
        connection_forget_adapter(&c->wire);
    }
    connector_unlock(c);
}

void connector_set_retries(struct connector *c, uint8_t retry, uint8_t rnr_retry)
{
    lock(c);
    /* Those of an attempt that is under way stay. */
    if (c->wire.state == WIRE_IDLE || c->wire.state == WIRE_REQUEST_IN) {
        c->wire.retry = retry < 7 ? retry : 7; /* three bits in the messages */
        c->wire.rnr_retry = rnr_retry < 7 ? rnr_retry : 7;
    }
    connector_unlock(c);
}

void connector_query(struct connector *c, struct connector_info *info)
{
    const struct connection *wire = &c->wire;

    memset(info, 0, sizeof(*info));
    lock(c);
    info->passive = wire->passive;
    info->active = !wire->passive && c->attempted;
    if (wire->bound || wire->passive)
        info->local = wire->local;
    if (wire->peer_known || info->active)
        info->peer = wire->peer;
    if (wire->adapter && (wire->bound || wire->passive)) {
        info->device_guid = wire->adapter->device->guid;
        info->port = wire->adapter->port;
    }
    info->retry = wire->told_retry;
    info->rnr_retry = wire->told_rnr;
    info->inbound = wire->told_in;
    info->outbound = wire->told_out;
    if (wire->data_in) {
        info->data_length = wire->data_length;
        memcpy(info->data, wire->data, wire->data_length);
    }
    connector_unlock(c);
}
