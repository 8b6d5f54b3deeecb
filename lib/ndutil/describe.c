/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "ndstatus.h"
#include "ndverbs.h"

#include "core/address.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/port_text.h"

/* Fills in what the list of addresses knows; true if the address is in it. */
static bool describe_entry(const struct address_list *list, const union address *address,
                           struct ndverbs_adapter_description *description, struct address_entry *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct address_entry *entry = &list->entries[i];

        if (!address_equal(&entry->address.sa, &address->sa))
            continue;
        snprintf(description->netdev, sizeof(description->netdev), "%s", entry->netdev);
        snprintf(description->device, sizeof(description->device), "%s", entry->device);
        description->port = *entry->device ? entry->port : 0;
        snprintf(description->reason, sizeof(description->reason), "%s", entry->reason ? entry->reason : "");
        *out = *entry;
        return true;
    }
    snprintf(description->reason, sizeof(description->reason), "it is no address of this system");
    return false;
}

HRESULT ndverbs_adapter_describe(const struct sockaddr *address, SIZE_T length,
                                 struct ndverbs_adapter_description *description)
{
    struct address_list *list;
    struct address_entry entry;
    struct adapter *adapter;
    const char *transport, *state;
    union address local;
    bool known;
    NTSTATUS status;

    if (!address || !description || description->size != sizeof(*description))
        return ND_INVALID_PARAMETER;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    *description = (struct ndverbs_adapter_description){ .size = sizeof(*description) };
    if (address_import(address, length, &local) != ND_SUCCESS) {
        snprintf(description->reason, sizeof(description->reason), "it is no IPv4 or IPv6 address");
        return ND_INVALID_ADDRESS;
    }
    list = address_list_get();
    if (!list)
        return ND_NO_MEMORY;
    known = describe_entry(list, &local, description, &entry);
    address_list_put(list);
    if (!known || entry.reason)
        return ND_INVALID_ADDRESS;

    status = adapter_open(entry.adapter_id, &adapter);
    if (status != ND_SUCCESS)
        return status;
    port_text(adapter, &transport, &state);
    adapter_unref(adapter);
    snprintf(description->transport, sizeof(description->transport), "%s", transport);
    snprintf(description->state, sizeof(description->state), "%s", state);
    return ND_SUCCESS;
}
