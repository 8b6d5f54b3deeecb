/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SGE_H
#define NDVERBS_SGE_H

/* Scatter/gather entries of the application as the device takes them. */

#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "nddef.h"

#if UINTPTR_MAX == UINT64_MAX
/* The caller's array is the device's. */
_Static_assert(sizeof(ND2_SGE) == sizeof(struct ibv_sge) &&
                   offsetof(ND2_SGE, Buffer) == offsetof(struct ibv_sge, addr) &&
                   offsetof(ND2_SGE, BufferLength) == offsetof(struct ibv_sge, length) &&
                   offsetof(ND2_SGE, MemoryRegionToken) == offsetof(struct ibv_sge, lkey),
               "ND2_SGE has the layout of struct ibv_sge");
#define SGE_COPIES 1
static inline struct ibv_sge *device_sges(struct ibv_sge *copy, const ND2_SGE *sge, uint32_t n)
{
    (void)copy, (void)n;
    return (struct ibv_sge *)(uintptr_t)sge;
}
#else
#define SGE_COPIES 64
static inline struct ibv_sge *device_sges(struct ibv_sge *copy, const ND2_SGE *sge, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        copy[i].addr = (uintptr_t)sge[i].Buffer;
        copy[i].length = sge[i].BufferLength;
        copy[i].lkey = sge[i].MemoryRegionToken;
    }
    return copy;
}
#endif

static inline uint64_t total_length(const ND2_SGE *sge, uint32_t n)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++)
        total += sge[i].BufferLength;
    return total;
}

#endif
