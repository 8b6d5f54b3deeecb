/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_MW_PRIV_H
#define NDVERBS_MW_PRIV_H

#include "mw.h"
#include "qp_priv.h"

/* What may never happen: an invalidate of a window that is not bound reaches the device (rxe of 6.1 panics), a queue pair
 * is destroyed with a window bound on it (50 s on rxe), a window is freed while its Bind or Invalidate is under way (the
 * request would fail and take the connection along). So the state here runs ahead of the device: it changes when a request
 * is posted, and what the device holds of a window is given up only when that request is known to be over, or dead. */

enum mw_state {
    MW_FREE,         /* the device holds nothing */
    MW_BOUND,        /* or will be, once the posted Bind is carried out */
    MW_INVALIDATING, /* an invalidate is posted, and maybe carried out */
    MW_STALE,        /* unbound for the application; the device may still have it bound */
};

struct mw {
    uint32_t refs;
    enum mw_kind kind;
    bool emulated; /* set once: the device has no windows */
    struct adapter *adapter;
    void *revoked; /* context of the result of a remote invalidate; NULL: none wanted */
    uint32_t token;
    struct list link; /* adapter->mws */

    /* One call or release at a time, across system calls. Never taken with a queue's or a CQ's lock held. */
    pthread_mutex_t control;
    struct ibv_mw *verbs; /* NULL: to be made at the next Bind */
    struct ibv_mr *part;  /* emulation: the registered sub-range */
    uint64_t made;        /* place of `verbs` in the order of windows and queue pairs */
    uint32_t position;    /* of the last request in the ring of `qp` */
    bool released;        /* by the application; goes when MW_FREE is reached */

    /* adapter->mw_lock; changed by the holder of `control`, but that a remote invalidate ends MW_BOUND of MW_ND. */
    enum mw_state state;
    struct qp *qp;         /* not MW_FREE: of the last request */
    struct mr *mr;         /* not MW_FREE: pinned, unless unbound by length 0 */
    uint32_t key;          /* as bound, host order */
    bool cleaning;         /* queued for a worker */
    struct cq *waiting_in; /* holds a reference while the result below waits there */

    struct list revoked_link; /* cq->revoked: its lock */
    ND2_RESULT result;
    struct list unbound_link; /* cq->unbound: its lock */
    struct engine_work work;
};

/* The rest wants `control` held. */

/* Gives up what the device holds of a window that is unbound, released, or of a dead queue pair, if its last request is
 * over. True: MW_FREE. */
bool mw_settle_one(struct mw *mw);

/* Whatever the device holds of the window is gone afterwards: freeing a bound window unbinds it. */
void mw_free_binding(struct mw *mw);

void mw_dereg_part(struct mw *mw);

/* A new device window; the old one, unbound, goes only then. ND_INSUFFICIENT_RESOURCES, ND_DEVICE_REMOVED. */
NTSTATUS mw_make_verbs(struct mw *mw);

void mw_set_free(struct mw *mw);
enum mw_state mw_state_of(struct mw *mw);

/* mw_lock held. */
static inline void mw_set_locked(struct mw *mw, enum mw_state state, struct qp *qp, struct mr *mr, uint32_t key)
{
    mw->state = state;
    mw->qp = qp;
    mw->mr = mr;
    mw->key = key;
}

/* No request of such a queue pair reaches the device any more. */
static inline bool mw_qp_dead(struct qp *qp)
{
    return __atomic_load_n(&qp->err, __ATOMIC_ACQUIRE) != 0;
}

#endif
