/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MW_PAIR_H
#define NDVERBS_MW_PAIR_H

/* Two queue pairs of one adapter, connected to each other, with one region and one window. Work is carried out by
 * pair_run() only, so that a test decides what the device has done. */

#include "core/mw.h"
#include "rig.h"

enum device_kind {
    KIND_WINDOWS,  /* type 1 and 2, send with invalidate */
    KIND_RXE,      /* the same, known as rxe */
    KIND_MUTE,     /* windows, no send with invalidate */
    KIND_EMULATED, /* none of these */
};

struct pair {
    struct adapter *adapter;
    struct cq *cq, *peer_cq;
    struct qp *qp, *peer;
    struct mr *mr; /* of `bytes`, local write only */
    struct mw *mw; /* ND, revoked result PAIR_REVOKED */
};
#define PAIR_REVOKED ((void *)(uintptr_t)0xdead)

extern char pair_bytes[4096];
extern struct pair pair;

void pair_make(enum device_kind kind);
void pair_unmake(void); /* what is not NULL any more; nothing is left, nothing was done wrong */
void pair_run(void);    /* the devices carry out all that is posted */

struct mr *pair_region(void *buffer, size_t length, uint32_t flags);
struct mw *pair_window(void);
struct qp *pair_other_qp(void); /* connected to nobody: its requests wait */
void pair_connect(struct qp *qp, struct qp *peer);

/* Bind of the pair's region [at, at + length) with both rights; n is its context. */
HRESULT pair_bind(uintptr_t n, size_t at, size_t length, uint32_t flags);

/* The peer writes one byte to pair_bytes[at] with this token: the status of its result. */
HRESULT pair_access(uint32_t token, size_t at);

unsigned pair_posts(enum ibv_wr_opcode opcode); /* logged so far */
const struct fake_wr *pair_last_post(void);
void pair_discard(struct cq *cq); /* takes all results */

#endif
