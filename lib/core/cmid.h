/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CMID_H
#define NDVERBS_CMID_H

/* rdma_cm ids on the process's one event channel: creation, event dispatch (copied, acknowledged, then dispatched),
 * destruction on a worker. The rest of core never calls rdma_get_cm_event or rdma_destroy_id itself, but for ids that never
 * come to the loop: those of the address list and of resolve.c. Source: rdma-mapping.md 4. */

#include <stdint.h>
#include <rdma/rdma_cma.h>
#include <windows.h>

#include "engine.h"

/* A copy of an rdma_cm event, valid during the callback. */
struct device;

struct cm_event {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *new_id; /* CONNECT_REQUEST: the child; ours from now on */
    uint32_t qp_num;
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, flow_control, srq;
    uint16_t data_length;
    uint8_t data[256];
    /* Of ids of the port space RDMA_PS_UDP: where the peer or the group is (qp_num above is its). */
    struct ibv_ah_attr ah_attr;
    uint32_t qkey;
    void *group; /* MULTICAST_JOIN, MULTICAST_ERROR: the context of the join */
};

/* One id. Owners embed or allocate it through cmid_create; `event` runs on loop. After cmid_destroy returned, `event`
 * is not called again unless it is running on another thread at that moment: owners hold a reference of their own object
 * for the id (released in `gone`, which runs once the id is destroyed and no `event` is running, on a worker or on loop).
 * An adopted child may be given to another owner (cmid_give) until it is accepted: no event comes before. */
struct cmid {
    struct rdma_cm_id *id;
    void *owner;
    void (*event)(struct cmid *cmid, const struct cm_event *event);
    void (*gone)(struct cmid *cmid); /* may be NULL; frees nothing of the cmid itself */
    /* private */
    struct engine_work work;
    struct list link; /* among the ids that are being destroyed */
    uint64_t sequence;
    uint32_t published;
    uint32_t dead;
    bool later;
    uint32_t pins; /* the owner's claim on the id and calls that run on workers */
    uint32_t refs; /* the memory: the id itself and running dispatches */
};

/* Gives a new id, or an adopted child before it is accepted, its owner. The caller's thread then makes the call that brings an event;
 * the kernel orders the two, which neither C nor a sanitizer knows. */
static inline void cmid_give(struct cmid *cmid, void *owner, void (*event)(struct cmid *, const struct cm_event *),
                             void (*gone)(struct cmid *))
{
    cmid->owner = owner;
    cmid->event = event;
    cmid->gone = gone;
    __atomic_store_n(&cmid->published, 1, __ATOMIC_RELEASE);
}

/* Creates an id (RDMA_PS_TCP) on the shared channel, starting the engine and channel on first use.
 * ND_INSUFFICIENT_RESOURCES, ND_NO_MEMORY, ND_DEVICE_NOT_READY (no rdma_cm device), ND_DEVICE_REMOVED (forked child).
 * Any thread. */
NTSTATUS cmid_create(void *owner, void (*event)(struct cmid *, const struct cm_event *), void (*gone)(struct cmid *),
                     struct cmid **out);

NTSTATUS cmid_create_udp(void *owner, void (*event)(struct cmid *, const struct cm_event *),
                         void (*gone)(struct cmid *), struct cmid **out); /* the same in RDMA_PS_UDP */

/* Wraps the child id of a CONNECT_REQUEST. On loop. NULL: out of memory (the caller destroys the id by
 * cmid_destroy_raw). */
struct cmid *cmid_adopt(struct rdma_cm_id *id, void *owner, void (*event)(struct cmid *, const struct cm_event *),
                        void (*gone)(struct cmid *));

/* Is the id on that device? librdmacm has a context of its own, so the names are compared. Any thread that may use the id. */
bool cmid_is_on(const struct cmid *cmid, const struct device *device);

/* Marks it dead (no further events) and destroys the id on the destroy lane, once no pin is left. Returns at once. Any
 * thread, on loop too. Call it once. */
void cmid_destroy(struct cmid *cmid);
/* The same; nobody waits for the id to go: it may take a few milliseconds. */
void cmid_destroy_later(struct cmid *cmid);
void cmid_destroy_raw(struct rdma_cm_id *id);

/* An event channel, not blocking, for ids that are no business of the loop; destroyed by rdma_destroy_event_channel.
 * ND_INSUFFICIENT_RESOURCES, ND_DEVICE_NOT_READY (no rdma_cm device), ND_DEVICE_REMOVED. Any thread. */
NTSTATUS cmid_channel_create(struct rdma_event_channel **out);

/* A port is free only when the id that had it is destroyed. `cmid_mark`, before a bind: 0 if no destruction is under way.
 * `cmid_settle`, when the port was busy: waits until the destructions of the mark are through; false at once for mark 0,
 * else the bind is worth another try. Waits for the kernel, never for a peer; any thread but on loop, no lock held. */
uint64_t cmid_mark(void);
bool cmid_settle(uint64_t mark);

/* Keeps the id (not the owner) while a blocking call on it runs on a worker; the last unpin after cmid_destroy starts
 * the destruction. Pin only before cmid_destroy. Any thread. */
void cmid_pin(struct cmid *cmid);
void cmid_unpin(struct cmid *cmid);

#endif
