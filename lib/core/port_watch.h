/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_PORT_WATCH_H
#define NDVERBS_PORT_WATCH_H

/* Events of a device's ports as overlapped requests. What happens while nobody waits is kept, per port, and completes the
 * next request at once; what happens while several wait completes them all. Source: winverbs.md 4.2. */

#include "device.h"
#include "overlapped.h"

/* Bits of an event: WV_EVENT_*. */
enum port_event {
    PORT_EVENT_ERROR = 0x01, /* the device failed or is gone; on every port */
    PORT_EVENT_STATE = 0x02,
    PORT_EVENT_ADDRESS = 0x04,
    PORT_EVENT_LINK_ADDRESS = 0x08,
    PORT_EVENT_PARTITION = 0x10,
    PORT_EVENT_MANAGEMENT = 0x20,
};

struct port_watch;

/* Starts watching all ports. ND_NO_MEMORY. The owner keeps the device. */
NTSTATUS port_watch_create(struct device *device, struct port_watch **out);

/* Pending requests complete ND_CANCELED before it returns. */
void port_watch_destroy(struct port_watch *watch);

/* Completes with ND_SUCCESS, 4 bytes and *flags written when something happens on the port; *flags must stay valid until
 * then. ND_PENDING, ND_INVALID_PARAMETER_1 (no such port), ND_INVALID_PARAMETER (NULL), ND_INVALID_HANDLE,
 * ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED (and its last news were told). Any thread. */
NTSTATUS port_watch_notify(struct port_watch *watch, uint8_t port, struct file *file, OVERLAPPED *ov, DWORD *flags);

/* Every pending request completes ND_CANCELED before it returns. Any thread. */
void port_watch_cancel(struct port_watch *watch);

/* device.c, on loop: an event on a port, 0: on all. */
void port_watch_event(struct device *device, unsigned port, enum ibv_event_type type);

#endif
