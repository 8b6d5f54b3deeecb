/* SPDX-License-Identifier: MIT */
#include "mw_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ndstatus.h"

#include "log.h"
#include "status.h"

static uint64_t order;

uint64_t mw_next_order(void)
{
    return __atomic_add_fetch(&order, 1, __ATOMIC_RELAXED);
}

/* ---- references ---- */

/* mw_lock held, so that a record in the list is still there: it takes itself out before it goes. */
static bool ref_live_locked(struct mw *mw)
{
    uint32_t refs = __atomic_load_n(&mw->refs, __ATOMIC_RELAXED);

    while (refs) {
        if (__atomic_compare_exchange_n(&mw->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void mw_unref(struct mw *mw)
{
    struct adapter *adapter = mw->adapter;

    if (__atomic_sub_fetch(&mw->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    wordlock_lock(&adapter->mw_lock);
    list_del(&mw->link);
    wordlock_unlock(&adapter->mw_lock);
    pthread_mutex_destroy(&mw->control);
    free(mw);
    adapter_unref(adapter);
}

/* The windows of an adapter, one after the other, each held while it is looked at: it stays in the list meanwhile, so the
 * walk goes on from there. Starts with NULL. */
static struct mw *next_window(struct adapter *adapter, struct mw *mw)
{
    struct list *node;
    struct mw *next = NULL;

    wordlock_lock(&adapter->mw_lock);
    node = mw ? mw->link.next : adapter->mws.next;
    for (; node != &adapter->mws && !next; node = node->next) {
        if (ref_live_locked(list_entry(node, struct mw, link)))
            next = list_entry(node, struct mw, link);
    }
    wordlock_unlock(&adapter->mw_lock);
    if (mw)
        mw_unref(mw);
    return next;
}

/* ---- what the device holds ---- */

enum mw_state mw_state_of(struct mw *mw)
{
    enum mw_state state;

    wordlock_lock(&mw->adapter->mw_lock);
    state = mw->state;
    wordlock_unlock(&mw->adapter->mw_lock);
    return state;
}

static void set_free_locked(struct mw *mw)
{
    if (mw->mr)
        mr_unpin(mw->mr);
    mw_set_locked(mw, MW_FREE, NULL, NULL, 0);
}

void mw_set_free(struct mw *mw)
{
    wordlock_lock(&mw->adapter->mw_lock);
    set_free_locked(mw);
    wordlock_unlock(&mw->adapter->mw_lock);
}

static void dealloc(struct mw *mw)
{
    int error = 0;

    if (mw->verbs)
        error = ibv_dealloc_mw(mw->verbs);
    mw->verbs = NULL;
    if (error && !adapter_removed(mw->adapter))
        log_warn("ibv_dealloc_mw on %s: %s", mw->adapter->device->name, strerror(error));
}

void mw_dereg_part(struct mw *mw)
{
    int error = ibv_dereg_mr(mw->part);

    mw->part = NULL;
    if (error && !adapter_removed(mw->adapter))
        log_warn("ibv_dereg_mr of a window's memory on %s: %s", mw->adapter->device->name, strerror(error));
}

void mw_free_binding(struct mw *mw)
{
    if (mw->part)
        mw_dereg_part(mw);
    dealloc(mw);
    mw_set_free(mw);
}

static bool passed(const struct mw *mw, const struct qp *qp)
{
    return (int32_t)(__atomic_load_n(&qp->sq.tail, __ATOMIC_ACQUIRE) - mw->position) > 0;
}

/* control held. Is the last request over? It may have completed without anybody having polled. */
static bool is_over(const struct mw *mw, struct qp *qp)
{
    if (passed(mw, qp) || mw_qp_dead(qp))
        return true;
    while (cq_pull(qp->sq.cq) && !passed(mw, qp))
        ;
    cq_report(qp->sq.cq);
    return passed(mw, qp) || mw_qp_dead(qp);
}

bool mw_settle_one(struct mw *mw)
{
    enum mw_state state;
    struct qp *qp;

    /* A window of a dead queue pair is as good as unbound; one of type 1 is bound for all of the domain. */
    wordlock_lock(&mw->adapter->mw_lock);
    if (mw->state == MW_BOUND && (mw->released || (mw->kind == MW_ND && mw_qp_dead(mw->qp))))
        mw->state = MW_STALE;
    state = mw->state;
    qp = mw->qp;
    wordlock_unlock(&mw->adapter->mw_lock);
    if (state == MW_FREE)
        return true;
    if (state == MW_BOUND || (!mw->emulated && qp && !is_over(mw, qp)))
        return false;
    if (state == MW_INVALIDATING && !mw_qp_dead(qp))
        mw_set_free(mw); /* the device has unbound it */
    else
        mw_free_binding(mw);
    return true;
}

/* Gives up control, and what a released window leaves behind. */
static void leave(struct mw *mw)
{
    bool gone = mw->released && mw_state_of(mw) == MW_FREE;

    if (gone) {
        dealloc(mw);
        mw->released = false;
        __atomic_sub_fetch(&mw->adapter->mw_zombies, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&mw->control);
    if (gone)
        mw_unref(mw);
}

void mw_settle(struct adapter *adapter, const struct mr *mr)
{
    for (struct mw *mw = next_window(adapter, NULL); mw; mw = next_window(adapter, mw)) {
        bool wanted;

        pthread_mutex_lock(&mw->control);
        wordlock_lock(&adapter->mw_lock);
        wanted = !mr || mw->mr == mr;
        wordlock_unlock(&adapter->mw_lock);
        if (wanted)
            mw_settle_one(mw);
        leave(mw);
    }
}

void mw_fail_region(struct mr *mr)
{
    struct adapter *adapter = mr->adapter;

    for (struct mw *mw = next_window(adapter, NULL); mw; mw = next_window(adapter, mw)) {
        bool wanted;

        pthread_mutex_lock(&mw->control);
        wordlock_lock(&adapter->mw_lock);
        wanted = mw->mr == mr;
        if (wanted)
            mw->state = MW_STALE;
        wordlock_unlock(&adapter->mw_lock);
        if (wanted)
            mw_free_binding(mw);
        leave(mw);
    }
}

/* A type 1 window outlives its queue pair. */
void mw_fail_qp(struct qp *qp)
{
    struct adapter *adapter = qp->adapter;

    for (struct mw *mw = next_window(adapter, NULL); mw; mw = next_window(adapter, mw)) {
        bool wanted;

        pthread_mutex_lock(&mw->control);
        wordlock_lock(&adapter->mw_lock);
        wanted = mw->qp == qp;
        if (wanted && mw->kind == MW_TYPE_1 && mw->state == MW_BOUND && !mw->released) {
            mw->qp = NULL;
            wanted = false;
        } else if (wanted) {
            mw->state = MW_STALE;
        }
        wordlock_unlock(&adapter->mw_lock);
        if (wanted)
            mw_free_binding(mw);
        leave(mw);
    }
}

/* ---- creation, release ---- */

NTSTATUS mw_make_verbs(struct mw *mw)
{
    struct device *device = mw->adapter->device;
    struct ibv_mw *made;

    made = ibv_alloc_mw(mw->adapter->pd, mw->kind == MW_ND ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
    if (!made) {
        return status_warn(errno, status_from_create_errno(errno), "ibv_alloc_mw on %s", device->name);
    }
    dealloc(mw);
    mw->verbs = made;
    mw->made = mw_next_order();
    return ND_SUCCESS;
}

NTSTATUS mw_create(struct adapter *adapter, enum mw_kind kind, void *revoked, struct mw **out)
{
    const struct device *device = adapter->device;
    NTSTATUS status;
    struct mw *mw;

    if (adapter_removed(adapter))
        return ND_DEVICE_REMOVED;
    if (kind == MW_TYPE_1 && !device->has_type1)
        return ND_NOT_SUPPORTED;
    if (__atomic_load_n(&adapter->mw_zombies, __ATOMIC_RELAXED))
        mw_settle(adapter, NULL);
    mw = calloc(1, sizeof(*mw));
    if (!mw)
        return ND_NO_MEMORY;
    mw->refs = 1;
    mw->kind = kind;
    mw->emulated = kind == MW_ND && !device->has_windows;
    mw->adapter = adapter;
    mw->revoked = revoked;
    list_init(&mw->revoked_link);
    list_init(&mw->unbound_link);
    if (!mw->emulated) {
        status = mw_make_verbs(mw);
        if (status != ND_SUCCESS) {
            free(mw);
            return status;
        }
    }
    pthread_mutex_init(&mw->control, NULL);
    adapter_ref(adapter);
    wordlock_lock(&adapter->mw_lock);
    list_add_tail(&adapter->mws, &mw->link);
    wordlock_unlock(&adapter->mw_lock);
    *out = mw;
    return ND_SUCCESS;
}

/* Takes back a result that waits. The reference that the window holds keeps the CQ until here. */
static void drop_revoked(struct mw *mw)
{
    struct adapter *adapter = mw->adapter;
    struct cq *cq;
    bool linked;

    wordlock_lock(&adapter->mw_lock);
    mw->revoked = NULL;
    cq = mw->waiting_in ? cq_ref(mw->waiting_in) : NULL;
    wordlock_unlock(&adapter->mw_lock);
    if (!cq)
        return;
    cq_lock(cq);
    linked = list_linked(&mw->revoked_link);
    if (linked)
        cq_unrevoked_locked(cq, &mw->revoked_link);
    wordlock_lock(&adapter->mw_lock);
    mw->waiting_in = NULL;
    wordlock_unlock(&adapter->mw_lock);
    cq_unlock(cq);
    if (linked)
        cq_unref(cq);
    cq_unref(cq);
}

void mw_release(struct mw *mw)
{
    struct adapter *adapter = adapter_ref(mw->adapter);

    drop_revoked(mw);
    pthread_mutex_lock(&mw->control);
    mw->released = true;
    __atomic_add_fetch(&adapter->mw_zombies, 1, __ATOMIC_RELAXED);
    mw_settle_one(mw);
    leave(mw);
    adapter_unref(adapter);
}

struct adapter *mw_adapter(const struct mw *mw)
{
    return mw->adapter;
}

uint32_t mw_token(const struct mw *mw)
{
    return __atomic_load_n(&mw->token, __ATOMIC_RELAXED);
}

/* ---- invalidated by the peer ---- */

/* mw_lock held. By a send with invalidate the device has unbound the window, whichever queue pair it came in on (rxe does
 * not compare). By immediate data it has not. */
static struct mw *find_bound_locked(struct adapter *adapter, const struct ibv_wc *wc, bool by_device)
{
    uint32_t key = by_device ? wc->invalidated_rkey : ntohl(wc->imm_data);

    list_for_each (node, &adapter->mws) {
        struct mw *mw = list_entry(node, struct mw, link);

        if (mw->state == MW_BOUND && mw->kind == MW_ND && mw->key == key &&
            (by_device || qp_number(mw->qp) == wc->qp_num))
            return mw;
    }
    return NULL;
}

/* CQ lock and mw_lock held. */
static void revoke_locked(struct cq *cq, struct mw *mw, bool by_device)
{
    if (mw->revoked && !mw->waiting_in) {
        memset(&mw->result, 0, sizeof(mw->result));
        mw->result.Status = ND_SUCCESS;
        mw->result.QueuePairContext = mw->qp->sq.context;
        mw->result.RequestContext = mw->revoked;
        mw->result.RequestType = Nd2RequestTypeInvalidate;
        mw->waiting_in = cq_ref(cq);
        cq_revoked_locked(cq, &mw->revoked_link);
    }
    if (by_device && !mw->emulated) {
        set_free_locked(mw);
        return;
    }
    mw->state = MW_STALE;
    if (mw->cleaning)
        return;
    mw->cleaning = true;
    __atomic_add_fetch(&mw->refs, 1, __ATOMIC_RELAXED); /* a bound window has one */
    list_add_tail(&cq->unbound, &mw->unbound_link);
    cq->slow |= CQ_UNBOUND;
}

void mw_look_locked(struct cq *cq, const struct ibv_wc *wc, uint32_t n)
{
    struct adapter *adapter = cq->adapter;

    for (uint32_t i = 0; i < n; i++) {
        bool by_device;
        struct mw *mw;

        if (wc[i].status != IBV_WC_SUCCESS || !(wc[i].opcode & IBV_WC_RECV) ||
            !(wc[i].wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM)))
            continue;
        by_device = wc[i].wc_flags & IBV_WC_WITH_INV;
        wordlock_lock(&adapter->mw_lock);
        mw = find_bound_locked(adapter, &wc[i], by_device);
        if (mw)
            revoke_locked(cq, mw, by_device);
        wordlock_unlock(&adapter->mw_lock);
    }
}

void mw_take_revoked_locked(struct list *node, ND2_RESULT *result)
{
    struct mw *mw = list_entry(node, struct mw, revoked_link);
    struct cq *cq;

    *result = mw->result;
    wordlock_lock(&mw->adapter->mw_lock);
    cq = mw->waiting_in;
    mw->waiting_in = NULL;
    wordlock_unlock(&mw->adapter->mw_lock);
    cq_unref(cq); /* not the last: the taker has one */
}

static void clean(struct engine_work *work)
{
    struct mw *mw = (struct mw *)((char *)work - offsetof(struct mw, work));

    pthread_mutex_lock(&mw->control);
    wordlock_lock(&mw->adapter->mw_lock);
    mw->cleaning = false;
    wordlock_unlock(&mw->adapter->mw_lock);
    if (mw_state_of(mw) == MW_STALE)
        mw_settle_one(mw);
    leave(mw);
    mw_unref(mw);
}

void mw_report(struct list *unbound)
{
    struct list *node;

    while ((node = list_pop(unbound)) != NULL)
        engine_work(ENGINE_LANE_DESTROY, &list_entry(node, struct mw, unbound_link)->work, clean);
}
