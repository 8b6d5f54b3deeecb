/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SRQ_RIG_H
#define NDVERBS_SRQ_RIG_H

/* Shared receive queues on the rig of the completion queues. */

#include "core/srq.h"
#include "rig.h"

struct srq *rig_srq(struct adapter *adapter, uint32_t depth, uint32_t threshold);

/* A QP that takes its receives there; its context is a number, and it is connected unless on iWARP. */
struct qp *rig_shared_qp(struct adapter *adapter, struct srq *srq, struct cq *cq, uintptr_t context);

/* Posts a receive without entries; n is its context. */
HRESULT rig_share(struct srq *srq, uintptr_t n);
void rig_share_many(struct srq *srq, uintptr_t from, uintptr_t n); /* all must succeed */

/* The device fills n receives of the SRQ by way of that QP. */
void rig_fill(struct qp *qp, unsigned n);

/* The next result: a receive with these two contexts. */
void rig_shared_result(const char *file, int line, struct cq *cq, uintptr_t qp_context, uintptr_t n, HRESULT status);
#define ok_shared(cq, qp_context, n, status) rig_shared_result(__FILE__, __LINE__, cq, qp_context, n, status)

void rig_srq_notify(struct srq *srq, struct notify *notify);

/* The device's SRQ object, the newest one. */
struct ibv_srq *rig_device_srq(void);

#endif
