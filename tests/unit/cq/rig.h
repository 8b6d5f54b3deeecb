/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CQ_RIG_H
#define NDVERBS_CQ_RIG_H

/* Queue pairs and completion queues on the fakes, with an engine and a clock that the test moves by hand. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>
#include "ndspi.h"

#include "core/cq.h"
#include "core/engine.h"
#include "core/qp.h"
#include "fakes.h"
#include "harness.h"
#include "ndstatus.h"
#include "overlapped.h"

/* SETUP and TEARDOWN of every file of cases. The end checks leaks and violations of the fakes. */
void rig_start(void);
void rig_end(void);

/* The loop, as far as it comes without time passing: posted calls, ready descriptors, works. */
void rig_run(void);
unsigned rig_calls(void);  /* posted calls only */
unsigned rig_ready(void);  /* one event of each ready descriptor */
unsigned rig_timers(void); /* timers that run */

/* Time passes, a millisecond at a time, with everything that falls due. */
void rig_advance(uint32_t ms);

/* The adapter of an address of the fakes; close it after everything that uses it. */
struct adapter *rig_open(const char *address);
#define RIG_IB "10.1.1.1"
#define RIG_IW "10.1.2.1"
void rig_close(struct adapter *adapter);

struct cq *rig_cq(struct adapter *adapter, uint32_t depth);

/* A QP with one CQ for both, or two; context CONTEXT; 1 SGE and 64 bytes inline. */
#define RIG_CONTEXT ((void *)(uintptr_t)0xc0de)
struct qp *rig_qp(struct adapter *adapter, struct cq *recv_cq, struct cq *send_cq, uint32_t depth);
struct qp_config rig_config(struct adapter *adapter, struct cq *recv_cq, struct cq *send_cq, uint32_t depth);
void rig_connect(struct qp *qp); /* IB-type: INIT, RTR, RTS, connected */
void rig_drop(struct qp *qp);    /* qp_release and qp_unref */

/* A context pointer for a number. */
static inline void *rig_ctx(uintptr_t n)
{
    return (void *)n;
}

/* Posts a request of one registered byte, or none; n is its context. */
HRESULT rig_send(struct qp *qp, uintptr_t n, uint32_t flags);
HRESULT rig_recv(struct qp *qp, uintptr_t n);

/* The next result must be this one; no result must be left. */
void rig_result(const char *file, int line, struct cq *cq, ND2_REQUEST_TYPE type, uintptr_t n, HRESULT status);
void rig_none(const char *file, int line, struct cq *cq);
#define ok_result(cq, type, n, status) rig_result(__FILE__, __LINE__, cq, Nd2RequestType##type, n, status)
#define ok_no_result(cq)               rig_none(__FILE__, __LINE__, cq)

/* Notify with an OVERLAPPED of its own. */
struct notify {
    OVERLAPPED ov;
};
void rig_notify(struct cq *cq, uint32_t type, struct notify *notify);
bool rig_pending(const struct notify *notify);
extern struct file *rig_file;
#define ok_pending(n) ok(rig_pending(n))
#define ok_done(n, status)                            \
    do {                                              \
        ok(!rig_pending(n));                          \
        ok_status((HRESULT)(n)->ov.Internal, status); \
    } while (0)

/* Told by the front. */
extern unsigned rig_connectors_told;

#endif
