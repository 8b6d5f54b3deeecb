/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ND1_H
#define NDVERBS_ND1_H

/* What the files of the Network Direct v1 front share. The conventions are those of nd2/nd2.h: one file and one vtable
 * per interface, two counts, core objects only, interface pointers recognised by their vtable. In addition:
 *
 * - Everything made from an adapter shares the adapter's home: the one file, the address it was opened by, its regions.
 *   The home lives as long as any of them, so a child keeps its parent alive in every order of Releases.
 * - core speaks version 2 statuses. nd1_status() translates those that differ, call by call where a method has names of
 *   its own (ndspi-v1.md).
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <ntstatus.h>
#include "ndspi.h"

#include "com/object.h"
#include "core/address.h"
#include "core/connector.h"
#include "core/cq.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/module.h"
#include "core/mr.h"
#include "core/mw.h"
#include "core/qp.h"
#include "core/status.h"
#include "overlapped.h"
#include "wordlock.h"

#define ND1_REGION_BUCKETS 64

struct nd1_home {
    uint32_t refs;
    struct adapter *adapter;
    struct file *file;
    HANDLE handle;         /* to `file`; an application may have closed it */
    union address address; /* port 0 */
    pthread_mutex_t lock;  /* leaf: the two above and below */
    struct list regions[ND1_REGION_BUCKETS];
};

/* What an endpoint and the connector that made it both know. */
struct nd1_tie {
    uint32_t refs;
    struct wordlock lock;
    struct qp *qp; /* NULL once the endpoint has been released */
};

struct nd1_adapter {
    INDAdapter INDAdapter_iface;
    uint32_t refcount;
    struct nd1_home *home;
};

struct nd1_cq {
    INDCompletionQueue INDCompletionQueue_iface;
    uint32_t refcount;
    struct cq *cq;
    struct nd1_home *home;
};

struct nd1_mw {
    IND2MemoryWindow IND2MemoryWindow_iface; /* and so an INDMemoryWindow */
    uint32_t refcount;
    struct mw *mw;
    struct nd1_home *home;
};

struct nd1_endpoint {
    INDEndpoint INDEndpoint_iface;
    uint32_t refcount;
    struct qp *qp;
    struct nd1_home *home;
    struct nd1_tie *tie;
    uint32_t inline_size;       /* Sends and Writes of at most so many bytes are inlined */
    uint32_t send_sge;          /* entries of one request, inlined or not */
    uint32_t inbound, outbound; /* read limits */
};

struct nd1_connector {
    INDConnector INDConnector_iface;
    uint32_t refcount;
    struct nd1_home *home;
    pthread_mutex_t lock;        /* leaf: the two below */
    struct connector *connector; /* replaced when a Connect follows an ended connection */
    struct nd1_tie *tie;         /* of the last endpoint, or NULL */
};

struct nd1_listen {
    INDListen INDListen_iface;
    uint32_t refcount;
    struct listener *listener;
    struct nd1_home *home;
};

/* Makers: as in nd2.h. They take references of their own on the home. */
HRESULT nd1_adapter_create(struct adapter *adapter, const union address *address, INDAdapter **out);
HRESULT nd1_cq_create(struct nd1_home *home, uint32_t depth, INDCompletionQueue **out);
HRESULT nd1_endpoint_create(const struct qp_config *config, struct nd1_home *home, struct nd1_tie *tie,
                            uint32_t inbound, uint32_t outbound, INDEndpoint **out);
HRESULT nd1_mw_create(struct nd1_home *home, ND_RESULT *revoked, INDMemoryWindow **out);
HRESULT nd1_connector_create(struct nd1_home *home, INDConnector **out);
HRESULT nd1_listen_create(struct nd1_home *home, uint32_t backlog, uint16_t port, uint16_t *assigned, INDListen **out);

/* Each in the file of its interface; NULL for a pointer that is not ours. */
struct nd1_cq *unsafe_impl_from_INDCompletionQueue(INDCompletionQueue *iface);
struct nd1_mw *unsafe_impl_from_INDMemoryWindow(INDMemoryWindow *iface);
struct nd1_endpoint *unsafe_impl_from_INDEndpoint(INDEndpoint *iface);
struct nd1_connector *unsafe_impl_from_INDConnector(INDConnector *iface);

/* The connector of core that an object has at the moment, with a reference. */
struct connector *nd1_connector_core(struct nd1_connector *object);

/* ---- home.c ---- */

/* ND_NO_MEMORY. One reference; the last one closes the handle and deregisters what is still registered. */
HRESULT nd1_home_create(struct adapter *adapter, const union address *address, struct nd1_home **out);
struct nd1_home *nd1_home_ref(struct nd1_home *home);
void nd1_home_unref(struct nd1_home *home);

/* The adapter's handle; a new one if the application has closed it. INVALID_HANDLE_VALUE: none can be had. */
HANDLE nd1_home_handle(struct nd1_home *home);

struct nd1_tie *nd1_tie_create(void);
struct nd1_tie *nd1_tie_ref(struct nd1_tie *tie);
void nd1_tie_unref(struct nd1_tie *tie); /* NULL is fine */

/* True: gone, or a forked child, where nothing may be touched. */
static inline bool nd1_removed(const struct nd1_home *home)
{
    return engine_dead() || adapter_removed(home->adapter);
}

/* ---- regions: mr.c ---- */

/* What an ND_MR_HANDLE points to. The memory of these records is never given back, so that a handle that has gone stale
 * names no key, or another region's, and never foreign memory. */
struct nd1_mr {
    struct list link; /* in home->regions */
    uint32_t lkey;    /* atomic; 0: no region */
    struct mr *mr;
    struct nd1_mr *next_free;
};

HRESULT nd1_register(struct nd1_home *home, const void *buffer, SIZE_T length, OVERLAPPED *overlapped,
                     ND_MR_HANDLE *out);
HRESULT nd1_deregister(struct nd1_home *home, ND_MR_HANDLE handle, OVERLAPPED *overlapped);
void nd1_deregister_all(struct nd1_home *home); /* nobody else uses the home any more */

/* The region of a handle of this home, which stays registered until mr_unpin; NULL: stale, foreign, or on its way out. */
struct mr *nd1_mr_pin(struct nd1_home *home, ND_MR_HANDLE handle);

/* For posting, where no look-up is affordable. NULL is allowed: inlined requests need no region. */
static inline uint32_t nd1_lkey(ND_MR_HANDLE handle)
{
    return handle ? __atomic_load_n(&((struct nd1_mr *)(void *)handle)->lkey, __ATOMIC_RELAXED) : 0;
}

/* ---- statuses ---- */

/* Statuses of the connection calls: ND_TIMEOUT, and private data that is too long. */
static inline HRESULT nd1_status(HRESULT status)
{
    return status == ND_INVALID_BUFFER_SIZE ? ND_BUFFER_OVERFLOW : status_v1(status);
}

/* Binding to a port. */
static inline HRESULT nd1_bind_status(HRESULT status)
{
    if (status == ND_SHARING_VIOLATION)
        return ND_ADDRESS_ALREADY_EXISTS;
    return status == ND_TOO_MANY_ADDRESSES ? ND_INSUFFICIENT_RESOURCES : status;
}

/* GetOverlappedResult of every object. */
static inline HRESULT nd1_overlapped_result(OVERLAPPED *overlapped, SIZE_T *bytes, BOOL wait)
{
    ULONG_PTR done = 0;
    NTSTATUS status = ND_INVALID_PARAMETER;

    if (overlapped)
        status = engine_dead() ? ND_DEVICE_REMOVED : overlapped_result(overlapped, wait, &done);
    if (bytes)
        *bytes = done;
    return status;
}

#endif
