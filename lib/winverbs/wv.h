/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_WV_H
#define NDVERBS_WV_H

/* What the files of the WinVerbs front share. Conventions:
 *
 * - One file and one vtable per interface; the interface is the first member, so an interface pointer of ours is a pointer
 *   to the object.
 * - Two counts (struct wv_object). `refcount` is the application's: AddRef and Release return it. `internal` has one for all
 *   of those and one for each child: children pin their parents, so parents may be released first, and the pointers that
 *   IWVQueuePair::Query gives stay good (winverbs.md 1.4). At 0 of the second the object goes, on the calling thread.
 * - Interface pointers from the application are recognised by their vtable (unsafe_impl_from_*): NULL for a NULL pointer
 *   or an object that is not ours.
 * - Overlapped methods: pOverlapped NULL waits (struct wv_wait); else WV_IO_PENDING, or WV_SUCCESS with the completion
 *   delivered all the same (struct wv_inline), or an error and no completion (winverbs.md 1.5).
 * - In a forked child nothing may be touched: methods return WV_DEVICE_REMOVED (wv_dead), Release only counts.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "rdma/winverbs.h"
#include "ndverbs.h"

#include "core/connector.h"
#include "core/cq.h"
#include "core/device.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/module.h"
#include "core/mr.h"
#include "core/qp.h"
#include "core/status.h"
#include "overlapped.h"

/* The largest private data of the interface, and what it always reports. */
#define WV_DATA_MAX 56

struct wv_object {
    uint32_t refcount;
    uint32_t internal;
    void (*destroy)(struct wv_object *object);
};

struct wv_provider {
    IWVProvider IWVProvider_iface;
    struct wv_object object;
    struct file *file;
    HANDLE handle;
    pthread_mutex_t lock;
    struct list shared; /* struct wv_shared: adapters that endpoints are bound to */
};

struct wv_device {
    IWVDevice IWVDevice_iface;
    struct wv_object object;
    struct wv_provider *provider;
    struct adapter *adapter;
    struct port_watch *watch;
};

#define WV_PD_BUCKETS 64
struct wv_pd {
    IWVProtectionDomain IWVProtectionDomain_iface;
    struct wv_object object;
    struct wv_device *device;
    struct adapter *adapter; /* its own: one protection domain each */
    pthread_mutex_t lock;
    struct list regions[WV_PD_BUCKETS]; /* struct wv_region */
};

struct wv_cq {
    IWVCompletionQueue IWVCompletionQueue_iface;
    struct wv_object object;
    struct wv_device *device;
    struct cq *cq;
};

struct wv_srq {
    IWVSharedReceiveQueue IWVSharedReceiveQueue_iface;
    struct wv_object object;
    struct wv_pd *pd;
    struct srq *srq;
};

struct wv_mw {
    IWVMemoryWindow IWVMemoryWindow_iface;
    struct wv_object object;
    struct wv_pd *pd;
    struct mw *mw;
};

struct wv_ah {
    IWVAddressHandle IWVAddressHandle_iface;
    struct wv_object object;
    struct wv_pd *pd;
    struct ibv_ah *ah;
};

struct wv_qp {
    union {
        IWVConnectQueuePair connect;
        IWVDatagramQueuePair datagram;
    } iface;
    struct wv_object object;
    struct wv_pd *pd;
    struct wv_cq *send_cq, *recv_cq;
    struct wv_srq *srq; /* may be NULL */
    struct qp *qp;
    WV_QP_CREATE attributes; /* as made */
    struct list endings;     /* qp.c: Modify to ERROR, or to RESET from there, under way */
};

struct wv_connect_endpoint {
    IWVConnectEndpoint IWVConnectEndpoint_iface;
    INdvConnectEndpoint INdvConnectEndpoint_iface;
    struct wv_object object;
    struct wv_provider *provider;
    struct connector *connector;
    pthread_mutex_t lock; /* what follows; before every lock of core */
    struct listener *listener;
    bool bound, wide, listening; /* `wide`: to a wildcard address */
    union address address;       /* as bound, with the port */
    struct wv_qp *qp;            /* of the last Connect or Accept */
};

/* Makers, called with checked arguments. They take references of their own on what they are given and return the interface
 * with one reference, or a status that the method passes on (`*out` is then untouched). Any thread. */
HRESULT wv_device_create(struct wv_provider *provider, struct adapter *adapter, IWVDevice **out);
HRESULT wv_pd_create(struct wv_device *device, struct adapter *adapter, IWVProtectionDomain **out);
HRESULT wv_cq_create(struct wv_device *device, uint32_t entries, IWVCompletionQueue **out);
HRESULT wv_srq_create(struct wv_pd *pd, SIZE_T max_wr, SIZE_T max_sge, SIZE_T limit, IWVSharedReceiveQueue **out);
HRESULT wv_mw_create(struct wv_pd *pd, IWVMemoryWindow **out);
HRESULT wv_ah_create(struct wv_pd *pd, const WV_ADDRESS_VECTOR *vector, IWVAddressHandle **out, ULONG_PTR *key);
HRESULT wv_connect_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, IWVConnectQueuePair **out);
HRESULT wv_datagram_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, IWVDatagramQueuePair **out);
HRESULT wv_connect_endpoint_create(struct wv_provider *provider, IWVConnectEndpoint **out);
HRESULT wv_datagram_endpoint_create(struct wv_provider *provider, IWVDatagramEndpoint **out);

/* Each in the file of its interface. */
struct wv_cq *unsafe_impl_from_IWVCompletionQueue(IWVCompletionQueue *iface);
struct wv_srq *unsafe_impl_from_IWVSharedReceiveQueue(IWVSharedReceiveQueue *iface);
struct wv_mw *unsafe_impl_from_IWVMemoryWindow(IWVMemoryWindow *iface);
struct wv_qp *unsafe_impl_from_IWVConnectQueuePair(IWVConnectQueuePair *iface);
struct wv_connect_endpoint *unsafe_impl_from_IWVConnectEndpoint(IWVConnectEndpoint *iface);

/* --- object.c --- */

/* Counts 1 and 1. */
void wv_object_init(struct wv_object *object, void (*destroy)(struct wv_object *object));
ULONG wv_object_addref(struct wv_object *object);
ULONG wv_object_release(struct wv_object *object);
void wv_object_pin(struct wv_object *object);
void wv_object_unpin(struct wv_object *object);

/* QueryInterface: IUnknown, `own`, and up to two more of its bases (NULL: none), which are all the one interface. */
HRESULT wv_query_interface(void *iface, struct wv_object *object, REFIID iid, void **out, const GUID *own,
                           const GUID *base, const GUID *root);

/* A call with pOverlapped NULL waits on an OVERLAPPED of its own, which the application's port does not see:
 *     hr = wv_wait_begin(&wait, &overlapped);
 *     return FAILED(hr) ? hr : wv_wait_end(&wait, <the call with overlapped>);
 * Success-class results of the wait are WV_SUCCESS (winverbs.md 1.5). */
struct wv_wait {
    OVERLAPPED overlapped;
    bool used;
};
HRESULT wv_wait_begin(struct wv_wait *wait, OVERLAPPED **overlapped);
HRESULT wv_wait_end(struct wv_wait *wait, HRESULT hr);

/* An operation that is over before its call returns: wv_inline_begin before it, so that it is not done when its completion
 * could not be delivered, wv_inline_end after it with its result. */
struct wv_inline {
    struct request *request;
};
HRESULT wv_inline_begin(struct wv_inline *now, struct wv_provider *provider, OVERLAPPED *overlapped);
HRESULT wv_inline_end(struct wv_inline *now, HRESULT hr, ULONG_PTR bytes);

/* IWVOverlapped::GetOverlappedResult of every object. */
HRESULT wv_overlapped_result(OVERLAPPED *overlapped, DWORD *bytes, BOOL wait);

static inline bool wv_dead(void)
{
    return engine_dead();
}

/* --- provider.c --- */

/* The adapter on which endpoints with that entry's address are bound; kept until the provider goes. */
HRESULT wv_provider_adapter(struct wv_provider *provider, const struct address_entry *entry, struct adapter **out);

/* --- qp.c: the slots that both kinds of queue pair have --- */

HRESULT wv_qp_create(struct wv_pd *pd, const WV_QP_CREATE *attributes, struct wv_qp **out);
HRESULT wv_qp_query(struct wv_qp *qp, WV_QP_ATTRIBUTES *attributes);
HRESULT wv_qp_modify(struct wv_qp *qp, const WV_QP_ATTRIBUTES *attributes, DWORD options, OVERLAPPED *overlapped);
HRESULT wv_qp_post_receive(struct wv_qp *qp, UINT64 id, const WV_SGE *sgl, SIZE_T count);
HRESULT wv_qp_post_send(struct wv_qp *qp, WV_SEND_REQUEST *request, WV_SEND_REQUEST **failed);

/* pd.c: the region with that key, which stays registered until mr_unpin. NULL: there is none. */
struct mr *wv_pd_pin_region(struct wv_pd *pd, uint32_t lkey);

/* mw.c: BindMemoryWindow. */
HRESULT wv_qp_bind(struct wv_qp *qp, IWVMemoryWindow *window, UINT64 id, uint32_t lkey, DWORD access, DWORD flags,
                   const VOID *buffer, SIZE_T length, NET32 *rkey);

/* One request; `wr` has opcode and what follows from it, `type` a ND2_REQUEST_TYPE or REQUEST_*. */
HRESULT wv_qp_initiate(struct wv_qp *qp, UINT64 id, uint32_t type, const WV_SGE *sgl, SIZE_T count, DWORD flags,
                       struct ibv_send_wr *wr);

/* --- convert.c: names and numbers of WinVerbs and of verbs --- */

void wv_device_attributes(const struct adapter *adapter, WV_DEVICE_ATTRIBUTES *out);
void wv_port_attributes(const struct device *device, const struct ibv_port_attr *attr, WV_PORT_ATTRIBUTES *out);
int wv_access_to_ibv(DWORD access);
DWORD wv_access_from_ibv(unsigned access);
WV_WC_STATUS wv_wc_status(enum ibv_wc_status status);
UINT32 wv_mtu_from_ibv(enum ibv_mtu mtu);
bool wv_mtu_to_ibv(UINT32 bytes, enum ibv_mtu *mtu); /* false: no such MTU */

/* An address vector as the device wants it; looks the source GID up. WV_INVALID_PARAMETER_2: the port has no such GID. */
HRESULT wv_av_to_ibv(struct device *device, const WV_ADDRESS_VECTOR *vector, struct ibv_ah_attr *attr);
void wv_av_from_ibv(struct device *device, const struct ibv_ah_attr *attr, WV_ADDRESS_VECTOR *vector);

/* The caller's entries as core takes them; `copy` has room for WV_SGE_COPIES on 32-bit systems, where it is needed. */
#ifdef __LP64__
#define WV_SGE_COPIES 1
#else
#define WV_SGE_COPIES 64
#endif
const ND2_SGE *wv_sgl(ND2_SGE *copy, const WV_SGE *sgl, SIZE_T count);

#endif
