/* SPDX-License-Identifier: MIT */
#include "port_text.h"

#include <string.h>

#include "log.h"

static const char *state_text(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_NOP:
        return "no change";
    case IBV_PORT_DOWN:
        return "down";
    case IBV_PORT_INIT:
        return "initialising";
    case IBV_PORT_ARMED:
        return "armed";
    case IBV_PORT_ACTIVE:
        return "active";
    case IBV_PORT_ACTIVE_DEFER:
        return "active, link going down";
    }
    return "unknown";
}

int port_text(const struct adapter *adapter, const char **transport, const char **state)
{
    struct ibv_port_attr attr = { 0 };
    int error = ibv_query_port(adapter->device->verbs, adapter->port, &attr);

    if (error)
        log_warn("ibv_query_port of %s port %u: %s", adapter->device->name, adapter->port, strerror(error));
    if (adapter->device->transport == DEVICE_IW)
        *transport = "iWARP";
    else
        *transport = !error && attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
    *state = error ? "unknown" : state_text(attr.state);
    return error;
}
