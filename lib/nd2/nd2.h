/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ND2_H
#define NDVERBS_ND2_H

/* What the files of the Network Direct v2 front share. Conventions:
 *
 * - One file and one `static const IND2XVtbl nd2_x_vtbl` per interface; the interface is the first member, so an
 *   interface pointer of ours is a pointer to the object.
 * - Two counts. `refcount` is the application's: AddRef and Release return it, and at 0 the object is released (core
 *   x_release: pending requests completed, device objects gone), gives up its core reference and file, and is freed.
 *   What other objects still need lives in the core object, whose references no application sees. So any order of
 *   Releases is right and the last one returns 0 (ndspi.md 1.3, 3).
 * - Objects hold core objects only, never another front object.
 * - Interface pointers from the application are recognised by their vtable (unsafe_impl_from_*): NULL for a NULL pointer
 *   or an object that is not ours. A pointer to freed memory cannot be recognised.
 * - nd2_object_made/gone once per object, for DllCanUnloadNow.
 * - In a forked child nothing may be touched: methods return ND_DEVICE_REMOVED (nd2_dead), Release only counts.
 */

#include <stdbool.h>
#include <stdint.h>
#include "ndspi.h"

#include "com/object.h"
#include "core/connector.h"
#include "core/cq.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/module.h"
#include "core/mr.h"
#include "core/mw.h"
#include "core/qp.h"
#include "core/srq.h"
#include "overlapped.h"

struct nd2_adapter {
    IND2Adapter IND2Adapter_iface;
    uint32_t refcount;
    struct adapter *adapter;
};

struct nd2_mw {
    IND2MemoryWindow IND2MemoryWindow_iface;
    uint32_t refcount;
    struct mw *mw;
};

/* In the memory of its core object (struct cq_front), which ends with the last core reference. */
struct nd2_cq {
    IND2CompletionQueue IND2CompletionQueue_iface;
    uint32_t refcount;
    struct file *file;
};

static inline struct cq *nd2_cq_core(struct nd2_cq *object)
{
    return (struct cq *)object;
}

struct nd2_srq {
    IND2SharedReceiveQueue IND2SharedReceiveQueue_iface;
    uint32_t refcount;
    struct srq *srq;
    struct file *file;
};

struct nd2_qp {
    IND2QueuePair IND2QueuePair_iface;
    uint32_t refcount;
    struct qp *qp;
};

struct nd2_connector {
    IND2Connector IND2Connector_iface;
    uint32_t refcount;
    struct connector *connector;
};

struct nd2_listener {
    IND2Listener IND2Listener_iface;
    uint32_t refcount;
    struct listener *listener;
};

/* Makers, called by provider.c and adapter.c with checked arguments (IID, file handle, limits, queues). They take
 * references of their own on what they are given and return the interface with one reference, or a status that the Create
 * method passes on (`*out` is then untouched). Any thread. */
HRESULT nd2_adapter_create(struct adapter *adapter, IND2Adapter **out);
HRESULT nd2_mr_create(struct adapter *adapter, struct file *file, IND2MemoryRegion **out);
HRESULT nd2_mw_create(struct adapter *adapter, IND2MemoryWindow **out);
HRESULT nd2_cq_create(struct adapter *adapter, struct file *file, uint32_t depth, uint16_t group, uint64_t affinity,
                      IND2CompletionQueue **out);
HRESULT nd2_srq_create(const struct srq_config *config, struct file *file, IND2SharedReceiveQueue **out);
HRESULT nd2_qp_create(const struct qp_config *config, IND2QueuePair **out);
HRESULT nd2_connector_create(struct adapter *adapter, struct file *file, IND2Connector **out);
HRESULT nd2_listener_create(struct adapter *adapter, struct file *file, IND2Listener **out);

/* Each in the file of its interface. */
struct nd2_cq *unsafe_impl_from_IND2CompletionQueue(IUnknown *iface);
struct nd2_srq *unsafe_impl_from_IND2SharedReceiveQueue(IUnknown *iface);
struct nd2_qp *unsafe_impl_from_IND2QueuePair(IUnknown *iface);
struct nd2_mw *unsafe_impl_from_IND2MemoryWindow(IUnknown *iface);
struct nd2_connector *unsafe_impl_from_IND2Connector(IUnknown *iface);

/* The registered region of an IND2MemoryRegion of ours, kept registered until mr_unpin; NULL: not ours, or not registered. */
struct mr *nd2_mr_pin(IUnknown *iface);

/* QueryAddressList of provider (adapter_id NULL) and adapter: address_list_query with a ULONG. ND_INVALID_PARAMETER_2:
 * size NULL. */
HRESULT nd2_export_addresses(const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out, ULONG *size);

/* GetNotifyAffinity of completion queues and shared receive queues: a group and the processors of the process in it.
 * ND_INVALID_PARAMETER, ND_DEVICE_REMOVED, ND_NOT_SUPPORTED. */
HRESULT nd2_notify_affinity(const struct adapter *adapter, USHORT *group, KAFFINITY *affinity);

/* As their namesakes of com/object.h. */
static inline HRESULT nd2_query_interface(IUnknown *iface, uint32_t *refcount, REFIID iid, void **out, const GUID *own,
                                          const GUID *base)
{
    return com_query_interface(iface, refcount, iid, out, own, base);
}

static inline bool nd2_iid_is(REFIID iid, const GUID *own, const GUID *base)
{
    return com_iid_is(iid, own, base);
}

static inline ULONG nd2_addref(uint32_t *refcount)
{
    return com_addref(refcount);
}

static inline ULONG nd2_release(uint32_t *refcount)
{
    return com_release(refcount);
}

static inline void nd2_object_made(void)
{
    module_object_made();
}

static inline void nd2_object_gone(void)
{
    module_object_gone();
}

/* True in a forked child. */
static inline bool nd2_dead(void)
{
    return engine_dead();
}

static inline HRESULT nd2_overlapped_result(OVERLAPPED *overlapped, BOOL wait)
{
    if (!overlapped)
        return ND_INVALID_PARAMETER;
    return nd2_dead() ? ND_DEVICE_REMOVED : overlapped_result(overlapped, wait, NULL);
}

#endif
