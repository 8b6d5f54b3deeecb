/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_H
#define NDVERBS_DEVICE_H

/* Devices (one reference-counted context, async descriptor and completion channel per device and process) and adapters
 * (device + port + one protection domain per adapter object). design.md sections 2, 4, 6. */

#include <stdbool.h>
#include <stdint.h>
#include <pthread.h>
#include <infiniband/verbs.h>
#include <windows.h>
#include "nddef.h"

#include "cmid.h"
#include "engine.h"
#include "list.h"
#include "wordlock.h"

struct qp;
struct cq;
struct srq;

/* How device.c finds its QPs, CQs and SRQs. Embedded in struct qp, cq and srq (`self` points to that); linked with
 * device_link_add once the verbs object exists (its qp_context, cq_context or srq_context is `self` too), and taken out with
 * device_link_del before the record's memory goes. device.c takes its references with qp_ref_live and the like. */
struct device_link {
    struct list link;
    void *self;
};

enum device_transport {
    DEVICE_IB, /* InfiniBand, RoCE, rxe: we do the QP transitions */
    DEVICE_IW, /* iWARP, siw: the kernel provider does them */
};

/* How a send invalidates a window of the peer. */
enum device_invalidate {
    INVALIDATE_NOT,       /* the device cannot: a plain send */
    INVALIDATE_SEND,      /* a send with invalidate */
    INVALIDATE_IMMEDIATE, /* the token as immediate data, for the peer's library (rxe: device_limits.c) */
};

/* What the library advertises: truthful and jointly satisfiable (ndspi.md A26). */
struct adapter_limits {
    uint64_t max_registration;
    uint32_t max_send_sge, max_recv_sge, max_read_sge, max_srq_sge;
    uint32_t max_transfer, max_inline, inline_threshold, large_threshold;
    uint32_t max_inbound_reads, max_outbound_reads;
    uint32_t max_recv_depth, max_send_depth, max_srq_depth, max_cq_depth;
    uint32_t max_caller_data, max_callee_data;
    uint32_t vendor_id, device_id;
    uint32_t flags; /* ND_ADAPTER_FLAG_* */
};

struct device {
    uint32_t refs;
    struct list link; /* in the list of open devices, under its lock */
    struct ibv_context *verbs;
    char name[64];
    uint64_t guid; /* host order */
    enum device_transport transport;
    bool soft;        /* rxe, siw */
    bool has_windows; /* type 2 windows usable */
    bool has_type1;   /* and type 1 */
    enum device_invalidate invalidates;
    bool inlines_invalidate;
    bool solicited_arms; /* a SOLICITED arm fires for all that it has to (false on siw and rxe: arm ANY) */
    bool cq_resizes;
    struct ibv_device_attr attr;
    struct ibv_comp_channel *channel; /* NULL: the device has none; Notify fails with ND_NOT_SUPPORTED */
    struct engine_io async_io, channel_io;
    uint32_t removed;              /* atomic; set once by device_set_removed */
    uint32_t ports_down;           /* atomic bit set, bit p-1 */
    pthread_mutex_t lock;          /* leaf of adapter level: covers the lists below */
    struct list adapters;          /* struct adapter.link */
    struct list qps;               /* struct device_link */
    struct list cqs;               /* struct device_link */
    struct list srqs;              /* struct device_link */
    struct list watches;           /* port_watch.c's */
    struct adapter_limits limits;  /* what all ports have in common; found by trial once (device_limits.c) */
    struct engine_call close_call; /* the last reference is gone */
    struct engine_work close_work;
    bool async_watched, channel_watched; /* on loop only */
};

/* One opened adapter. Fronts hold it by adapter_ref; children of the front's adapter too. */
struct adapter {
    uint32_t refs;
    struct list link; /* in device->adapters */
    struct device *device;
    uint8_t port;
    bool ethernet; /* the port's link */
    uint64_t id;   /* AdapterId */
    struct ibv_pd *pd;
    struct cmid *anchor; /* scratch id bound to one of its addresses: guarantees a DEVICE_REMOVAL event */
    struct adapter_limits limits;
    pthread_mutex_t lock;
    struct list mrs;         /* struct mr.link: look-up of handles before they are touched */
    void *mr_index;          /* siw: their device objects by local key (mr_index.c) */
    struct wordlock mw_lock; /* leaf: the list, and the states of its windows (mw.c) */
    struct list mws;         /* struct mw.link */
    uint32_t mw_zombies;     /* atomic: released windows whose last request the device still has */
};

/* iWARP in software. */
static inline bool device_is_siw(const struct device *device)
{
    return device->soft && device->transport == DEVICE_IW;
}

/* The open device of that name with a reference taken; opened if nobody has it. ND_INVALID_PARAMETER (no such device),
 * ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED. Any thread but not on loop; milliseconds the first time. */
NTSTATUS device_open(const char *name, struct device **out);
void device_unref(struct device *device); /* any thread; the last one closes the device on the destroy lane */

/* Fills limits, max inline and the capability flags of a device whose verbs and attr are set. ND_INSUFFICIENT_RESOURCES:
 * not even a small queue pair can be made. */
NTSTATUS device_find_limits(struct device *device);

/* Opens the adapter with that AdapterId. ND_INVALID_PARAMETER (unknown id), ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES,
 * ND_DEVICE_REMOVED. Any thread; may take milliseconds the first time. */
NTSTATUS adapter_open(uint64_t id, struct adapter **out);

/* A port of a device by its name, whether it has an address or not: without one the device's removal is noticed by its own
 * events only. ND_INVALID_PARAMETER (no such device), and as adapter_open. Any thread but on loop. */
NTSTATUS adapter_open_device(const char *name, uint8_t port, struct adapter **out);
struct adapter *adapter_ref(struct adapter *adapter);
void adapter_unref(struct adapter *adapter);
static inline bool adapter_removed(const struct adapter *adapter)
{
    return __atomic_load_n(&adapter->device->removed, __ATOMIC_RELAXED) != 0;
}

/* True while the adapter's port is down. */
bool adapter_port_down(const struct adapter *adapter);

/* Puts a QP, CQ or SRQ into the device's list of its kind, and takes it out (any number of times). False: the device was removed
 * before, so the object will not be told; it is linked all the same. Any thread. */
bool device_link_add(struct device *device, struct list *to, struct device_link *link, void *self);
void device_link_del(struct device *device, struct device_link *link);

/* Marks the device removed: every pending request of its objects ends in ND_DEVICE_REMOVED, later calls only clean up.
 * Idempotent. On loop. Calls qp_device_removed, cq_device_removed, srq_device_removed and connectors through their lists. */
void device_set_removed(struct device *device);

#endif
