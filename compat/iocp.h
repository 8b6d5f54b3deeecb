/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_IOCP_H
#define NDVERBS_IOCP_H

/* Completion ports, as overlapped.c and the callback pool see them. Source: win32-surface.md 6.6. */

#include "object.h"
#include "overlapped.h"
#include "wait.h"

struct port;

/* The node by which a packet queues. Requests embed theirs, so that completing cannot fail. */
struct port_node {
    struct list link;
    struct packet packet;
    struct request *request; /* referenced while queued; NULL: a node of PostQueuedCompletionStatus */
};

/* NULL: out of memory. One reference. */
struct port *port_create(void);
struct object *port_object(struct port *port);
extern const struct object_ops port_ops;

/* Gives the packet of a completed request to a waiter (the driving thread first, else the newest), or queues `node` with
 * a reference on `request`. Dropped if the port is closed. Leaf locks only, cannot fail. */
void port_push_request(struct port *port, const struct packet *packet, struct port_node *node, struct request *request);

/* Queues a packet of no request. False: out of memory. */
bool port_post(struct port *port, const struct packet *packet);

/* Takes up to n packets; waits for the first until the deadline. Returns their number; 0: time-out, or *closed set. */
uint32_t port_get(struct port *port, struct packet *packets, uint32_t n, uint64_t deadline, bool *closed);

/* The descriptor that is readable while packets are queued, made on first request; it is the port's. -1: the system has
 * no more descriptors. */
int port_descriptor(struct object *object);

/* Number of threads that wait in port_get(). */
uint32_t port_waiters(struct port *port);

#endif
