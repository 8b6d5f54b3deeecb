/* SPDX-License-Identifier: MIT */
/* The structures that are handed through without a copy. */
#include "static.h"
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __LP64__
C_ASSERT(sizeof(ND2_SGE) == sizeof(struct ibv_sge));
C_ASSERT(FIELD_OFFSET(ND2_SGE, Buffer) == FIELD_OFFSET(struct ibv_sge, addr));
C_ASSERT(FIELD_OFFSET(ND2_SGE, BufferLength) == FIELD_OFFSET(struct ibv_sge, length));
C_ASSERT(FIELD_OFFSET(ND2_SGE, MemoryRegionToken) == FIELD_OFFSET(struct ibv_sge, lkey));
C_ASSERT(sizeof(WV_SGE) == sizeof(struct ibv_sge));
C_ASSERT(FIELD_OFFSET(WV_SGE, pAddress) == FIELD_OFFSET(struct ibv_sge, addr));
C_ASSERT(FIELD_OFFSET(WV_SGE, Length) == FIELD_OFFSET(struct ibv_sge, length));
C_ASSERT(FIELD_OFFSET(WV_SGE, Lkey) == FIELD_OFFSET(struct ibv_sge, lkey));
#endif
