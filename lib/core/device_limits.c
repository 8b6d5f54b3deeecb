/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ndstatus.h"

#include "log.h"
#include "status.h"

/* What a device says of each limit does not hold for all of them at once (entries and inline share the send queue's
 * entries, depths are rounded up), and for inline data it says nothing. So a queue pair with everything at once is tried,
 * and what the device refuses is taken back until it agrees: depth first, which programs ask the most of and need the
 * least of. Ours on top: depths of 8192, CQ depths of 16384 (ndspi.md A26, design.md 4). */

#define OUR_DEPTH    8192
#define OUR_CQ_DEPTH 16384
#define OUR_SGE      32
#define OUR_INLINE   1024
#define MIN_DEPTH    256
#define MIN_SGE      4 /* programs post two entries on queue pairs made for one (ndspi.md A44) */
#define MIN_INLINE   16

/* Vendor ids of the kernel's software devices (not PCI ids). */
#define VENDOR_RXE 0xffffffu
#define VENDOR_SIW 0x626d74u

struct trial {
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
};

static uint32_t smaller(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static uint32_t positive(int value)
{
    return value > 0 ? (uint32_t)value : 0;
}

/* Does the device make such a queue pair? errno is left as the device set it. */
static bool try_qp(const struct trial *trial, uint32_t depth, uint32_t sge, uint32_t inline_size)
{
    struct ibv_qp_init_attr init = { .send_cq = trial->cq,
                                     .recv_cq = trial->cq,
                                     .cap = { .max_send_wr = depth,
                                              .max_recv_wr = depth,
                                              .max_send_sge = sge,
                                              .max_recv_sge = sge,
                                              .max_inline_data = inline_size },
                                     .qp_type = IBV_QPT_RC };
    struct ibv_qp *qp = ibv_create_qp(trial->pd, &init);

    if (!qp)
        return false;
    ibv_destroy_qp(qp);
    return true;
}

/* The largest inline size a small queue pair is made with, to 16 bytes. */
static uint32_t find_inline(const struct trial *trial)
{
    uint32_t good = 0, bad = OUR_INLINE + MIN_INLINE;

    for (uint32_t size = OUR_INLINE; size >= 64 && good == 0; size /= 2) {
        if (try_qp(trial, 1, 1, size))
            good = size;
        else
            bad = size;
    }
    while (bad - good > MIN_INLINE) {
        uint32_t middle = (good + (bad - good) / 2) / MIN_INLINE * MIN_INLINE;

        if (middle <= good || !try_qp(trial, 1, 1, middle))
            bad = middle <= good ? good + MIN_INLINE : middle;
        else
            good = middle;
    }
    return good;
}

static bool find_together(const struct trial *trial, uint32_t *depth, uint32_t *sge, uint32_t *inline_size)
{
    for (uint32_t bytes = *inline_size;; bytes = bytes / 2 >= MIN_INLINE ? bytes / 2 : 0) {
        for (uint32_t entries = *sge; entries > 0; entries = entries / 2 >= MIN_SGE ? entries / 2 : 0) {
            for (uint32_t length = *depth; length > 0; length = length / 2 >= MIN_DEPTH ? length / 2 : 0) {
                if (try_qp(trial, length, entries, bytes)) {
                    *depth = length;
                    *sge = entries;
                    *inline_size = bytes;
                    return true;
                }
            }
        }
        if (bytes == 0)
            return false;
    }
}

static bool try_srq(const struct trial *trial, uint32_t depth, uint32_t sge)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = depth, .max_sge = sge } };
    struct ibv_srq *srq = ibv_create_srq(trial->pd, &init);

    if (!srq)
        return false;
    ibv_destroy_srq(srq);
    return true;
}

/* Shared receive queues: depth and entries at once. A depth of 0: the device has none. */
static void find_srq(struct device *device, const struct trial *trial)
{
    const struct ibv_device_attr *attr = &device->attr;
    struct adapter_limits *limits = &device->limits;
    uint32_t most = attr->max_srq > 0 ? smaller(OUR_DEPTH, positive(attr->max_srq_wr)) : 0;

    for (uint32_t sge = smaller(OUR_SGE, positive(attr->max_srq_sge)); sge > 0;
         sge = sge / 2 >= MIN_SGE ? sge / 2 : 0) {
        for (uint32_t depth = most; depth > 0; depth = depth / 2 >= MIN_DEPTH ? depth / 2 : 0) {
            if (try_srq(trial, depth, sge)) {
                limits->max_srq_depth = depth;
                limits->max_srq_sge = sge;
                return;
            }
        }
    }
}

/* The depth whose device CQ (twice that and some room, see cq.c) can be made. */
static uint32_t find_cq_depth(struct device *device)
{
    uint32_t most = positive(device->attr.max_cqe);

    for (uint32_t depth = smaller(OUR_CQ_DEPTH, most); depth > 0; depth /= 2) {
        struct ibv_cq *cq =
            ibv_create_cq(device->verbs, (int)smaller(most, 2ull * depth + MIN_DEPTH), NULL, device->channel, 0);

        if (cq) {
            ibv_destroy_cq(cq);
            return depth;
        }
    }
    return 0;
}

/* siw leaves the verb out; nothing but trying tells. */
static bool find_resize(struct device *device)
{
    struct ibv_cq *cq = ibv_create_cq(device->verbs, 1, NULL, device->channel, 0);
    bool resizes = false;

    if (cq) {
        resizes = ibv_resize_cq(cq, 2) == 0;
        ibv_destroy_cq(cq);
    }
    return resizes;
}

/* Numbers that fit ND's 16 bits; the software devices have none that do. */
static void find_ids(struct device *device)
{
    device->soft = device->attr.vendor_id == VENDOR_RXE || device->attr.vendor_id == VENDOR_SIW;
    device->limits.vendor_id = device->attr.vendor_id <= UINT16_MAX ? device->attr.vendor_id : 0;
    device->limits.device_id = device->attr.vendor_part_id <= UINT16_MAX ? device->attr.vendor_part_id : 0;
}

/* A send with invalidate that finds its window unbound (it came twice, or the owner was faster) panics the kernel of a peer
 * with rxe, and no sender can know; so between two rxe the token travels as immediate data, and the peer's library does it. */
static void find_windows(struct device *device)
{
    const struct ibv_device_attr *attr = &device->attr;

    device->has_windows =
        attr->max_mw > 0 && (attr->device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B));
    device->has_type1 = attr->max_mw > 0 && (attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    if (device->soft && device->transport == DEVICE_IB)
        device->invalidates = INVALIDATE_IMMEDIATE;
    else if (attr->device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS)
        device->invalidates = INVALIDATE_SEND;
    else
        device->invalidates = INVALIDATE_NOT;
    /* siw inlines nothing but plain sends and writes. */
    device->inlines_invalidate = !device_is_siw(device);
}

static uint32_t find_flags(const struct device *device)
{
    uint32_t flags = 0;

#if defined(__x86_64__) || defined(__i386__)
    /* Stores of the kernel and writes of a card (no relaxed ordering asked for) become visible in order there. */
    flags |= ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED;
#endif
    if (device->verbs->num_comp_vectors > 1)
        flags |= ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED;
    if (device->cq_resizes)
        flags |= ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
    /* IB-type devices loop their own addresses back, siw goes through the host's TCP; iWARP cards differ. */
    if (device->transport == DEVICE_IB || device->soft)
        flags |= ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED;
    return flags;
}

NTSTATUS device_find_limits(struct device *device)
{
    const struct ibv_device_attr *attr = &device->attr;
    struct adapter_limits *limits = &device->limits;
    uint32_t depth = smaller(OUR_DEPTH, positive(attr->max_qp_wr));
    uint32_t sge = smaller(OUR_SGE, positive(attr->max_sge));
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct trial trial = { .verbs = device->verbs };
    NTSTATUS status = ND_INSUFFICIENT_RESOURCES;
    uint32_t inline_size;

    device->cq_resizes = find_resize(device);
    find_ids(device);
    /* siw never fires one for a receive, rxe neither for a failed send nor for a receive that fails by a message without the
     * flag. */
    device->solicited_arms = device->transport == DEVICE_IB && !device->soft;
    find_windows(device);
    limits->max_cq_depth = find_cq_depth(device);
    trial.pd = ibv_alloc_pd(device->verbs);
    if (!trial.pd) {
        return status_warn(errno, status_from_create_errno(errno), "ibv_alloc_pd of %s", device->name);
    }
    trial.cq = ibv_create_cq(device->verbs, 1, NULL, device->channel, 0);
    if (!trial.cq) {
        status = status_warn(errno, status_from_create_errno(errno), "ibv_create_cq of %s", device->name);
        goto out;
    }
    inline_size = find_inline(&trial);
    if (!find_together(&trial, &depth, &sge, &inline_size)) {
        status = status_warn(errno, status_from_create_errno(errno), "ibv_create_qp of %s", device->name);
        goto out;
    }
    /* The kernel counts the pages of a registration in 32 bits; the first and the last may be partly outside. */
    limits->max_registration = attr->max_mr_size;
    if (limits->max_registration > (UINT32_MAX - 1ull) * page)
        limits->max_registration = (UINT32_MAX - 1ull) * page;
    if (limits->max_registration > SIZE_MAX)
        limits->max_registration = SIZE_MAX;
    limits->max_send_sge = limits->max_recv_sge = sge;
    limits->max_read_sge = attr->max_sge_rd > 0 ? smaller(sge, positive(attr->max_sge_rd)) : sge;
    find_srq(device, &trial);
    /* ND has one limit for the entries of a receive, wherever it is posted. */
    if (limits->max_srq_depth)
        limits->max_recv_sge = smaller(limits->max_recv_sge, limits->max_srq_sge);
    limits->max_inline = inline_size;
    limits->inline_threshold = smaller(inline_size, 256);
    limits->large_threshold = 16384;
    limits->max_inbound_reads = smaller(UINT8_MAX, positive(attr->max_qp_rd_atom)); /* 8 bits in the connect messages */
    limits->max_outbound_reads = smaller(UINT8_MAX, positive(attr->max_qp_init_rd_atom));
    limits->max_send_depth = limits->max_recv_depth = depth;
    limits->max_caller_data = 56;
    limits->max_callee_data = 148;
    limits->flags = find_flags(device);
    status = ND_SUCCESS;
    log_debug("%s: depth %u, CQ depth %u, SRQ depth %u, SGE %u, receive SGE %u, read SGE %u, inline %u", device->name,
              depth, limits->max_cq_depth, limits->max_srq_depth, sge, limits->max_recv_sge, limits->max_read_sge,
              inline_size);
out:
    if (trial.cq)
        ibv_destroy_cq(trial.cq);
    ibv_dealloc_pd(trial.pd);
    return status;
}
