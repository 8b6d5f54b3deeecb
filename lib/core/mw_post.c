/* SPDX-License-Identifier: MIT */
#include "mw_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ndstatus.h"

#include "log.h"
#include "status.h"

/* ---- Bind ---- */

struct binding {
    struct mr *mr; /* NULL: unbinds (type 1) */
    const void *buffer;
    size_t length;
    int access; /* IBV_ACCESS_REMOTE_* */
};

static HRESULT check_bind(const struct qp *qp, const struct mw *mw, enum mw_kind kind, const struct binding *binding)
{
    const struct mr *mr = binding->mr;
    uintptr_t at = (uintptr_t)binding->buffer, base;

    if (mr && mr->adapter != qp->adapter)
        return ND_INVALID_PARAMETER_2;
    if (mw->adapter != qp->adapter || mw->kind != kind)
        return ND_INVALID_PARAMETER_3;
    if (!mr)
        return ND_SUCCESS;
    base = (uintptr_t)mr->mr->addr;
    if (at < base || at - base >= mr->mr->length)
        return ND_INVALID_PARAMETER_4;
    if (!binding->length || binding->length > mr->mr->length - (at - base))
        return ND_INVALID_PARAMETER_5;
    if ((binding->access & ~IBV_ACCESS_REMOTE_READ) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
        return ND_ACCESS_VIOLATION;
    return ND_SUCCESS;
}

/* control held. May the device be asked to bind the window on this queue pair? */
static bool may_bind(struct mw *mw, struct qp *qp)
{
    enum mw_state state = mw_state_of(mw);

    if (mw->kind == MW_TYPE_1)
        return true;
    /* In order behind its own invalidate. */
    if (state == MW_INVALIDATING && mw->qp == qp && !mw_qp_dead(qp))
        return true;
    return mw_settle_one(mw);
}

/* control held. The kernel frees what a process leaves in the reverse order of creation, and on rxe takes 50 s for a queue
 * pair with a bound window that is older. */
static NTSTATUS refresh(struct mw *mw, const struct qp *qp)
{
    bool older = mw->verbs && mw->made < qp->made && mw->adapter->device->soft;
    NTSTATUS status;

    if (mw->kind != MW_ND || mw_state_of(mw) != MW_FREE || (mw->verbs && !older))
        return mw->verbs ? ND_SUCCESS : mw_make_verbs(mw);
    status = mw_make_verbs(mw);
    return mw->verbs ? ND_SUCCESS : status;
}

static NTSTATUS register_part(struct mw *mw, const struct binding *binding)
{
    int access = binding->access;

    if (access & ~IBV_ACCESS_REMOTE_READ)
        access |= IBV_ACCESS_LOCAL_WRITE;
    mw->part = ibv_reg_mr(mw->adapter->pd, (void *)(uintptr_t)binding->buffer, binding->length, access);
    if (mw->part)
        return ND_SUCCESS;
    return status_warn(errno, status_from_reg_errno(errno), "ibv_reg_mr of a window of %zu bytes on %s",
                       binding->length, mw->adapter->device->name);
}

/* A write of nothing: completes in order, and the peer's device looks at neither address nor key. */
static void describe_carrier(struct ibv_send_wr *wr)
{
    memset(wr, 0, sizeof(*wr));
    wr->opcode = IBV_WR_RDMA_WRITE;
}

/* `region` also where nothing is bound: the provider of rxe looks into it whatever the length. */
static void describe_bind(struct ibv_send_wr *wr, struct mw *mw, const struct binding *binding, struct mr *region,
                          uint32_t key)
{
    memset(wr, 0, sizeof(*wr));
    wr->opcode = IBV_WR_BIND_MW;
    wr->bind_mw.mw = mw->verbs;
    wr->bind_mw.rkey = key;
    wr->bind_mw.bind_info.mr = region->mr;
    wr->bind_mw.bind_info.addr = (uintptr_t)(binding->mr ? binding->buffer : region->mr->addr);
    wr->bind_mw.bind_info.length = binding->mr ? binding->length : 0;
    wr->bind_mw.bind_info.mw_access_flags = (unsigned)binding->access;
}

/* From here on the polls of the queue pair's receives look for invalidates. */
static void watch(struct qp *qp)
{
    struct cq *cq = qp->rq.cq;

    if (__atomic_load_n(&qp->watched, __ATOMIC_ACQUIRE))
        return;
    cq_lock(cq);
    cq->slow |= CQ_WINDOWS;
    cq_unlock(cq);
    __atomic_store_n(&qp->watched, 1, __ATOMIC_RELEASE);
}

/* control held, the queue pair can be posted to as far as known. */
static HRESULT bind_on_device(struct qp *qp, void *context, struct mw *mw, const struct binding *binding,
                              uint32_t flags)
{
    struct adapter *adapter = mw->adapter;
    struct window_post post = { .type = Nd2RequestTypeBind, .flags = flags };
    struct mr *region = binding->mr, *mr_was;
    uint32_t key, key_was;
    enum mw_state was;
    struct qp *qp_was;
    HRESULT status;

    if (!region)
        region = mw->mr; /* of a type 1 window, which nobody changes meanwhile */
    if (!region) {
        /* Nothing to unbind. */
        describe_carrier(&post.wr);
        return qp_post_window(qp, context, &post);
    }
    if (binding->mr && !mr_pin(binding->mr))
        return ND_INVALID_PARAMETER_2;
    status = mw->emulated ? register_part(mw, binding) : refresh(mw, qp);
    if (status != ND_SUCCESS)
        goto err_unpin;
    if (mw->emulated) {
        describe_carrier(&post.wr);
        key = mw->part->rkey;
    } else {
        key = ibv_inc_rkey(mw->verbs->rkey);
        describe_bind(&post.wr, mw, binding, region, key);
    }
    post.local_key = region->mr->lkey;

    /* Before the device has it: the peer may invalidate the window, and another thread see that, before this one goes on. */
    if (mw->kind == MW_ND)
        watch(qp);
    wordlock_lock(&adapter->mw_lock);
    was = mw->state;
    qp_was = mw->qp;
    mr_was = mw->mr;
    key_was = mw->key;
    mw_set_locked(mw, binding->mr ? MW_BOUND : MW_INVALIDATING, qp, binding->mr, key);
    wordlock_unlock(&adapter->mw_lock);
    status = qp_post_window(qp, context, &post);
    if (status == ND_SUCCESS && post.posted) {
        mw->position = post.position;
        if (mw->verbs)
            mw->verbs->rkey = key;
        __atomic_store_n(&mw->token, htonl(key), __ATOMIC_RELAXED);
        if (mr_was) {
            __atomic_store_n(&mr_was->moved, 1, __ATOMIC_RELAXED);
            mr_unpin(mr_was);
        }
        return ND_SUCCESS;
    }
    wordlock_lock(&adapter->mw_lock);
    mw_set_locked(mw, was, qp_was, mr_was, key_was);
    wordlock_unlock(&adapter->mw_lock);
    if (mw->part)
        mw_dereg_part(mw);
err_unpin:
    if (binding->mr)
        mr_unpin(binding->mr);
    return status;
}

static HRESULT post_bind(struct qp *qp, void *context, struct mw *mw, const struct binding *binding, uint32_t flags,
                         uint32_t *token)
{
    struct window_post unseen = { .type = Nd2RequestTypeBind, .flags = flags };
    uint32_t mode = __atomic_load_n(&qp->sq.mode, __ATOMIC_RELAXED);
    HRESULT status;

    if (mode == QUEUE_IDLE)
        return ND_CONNECTION_INVALID;
    pthread_mutex_lock(&mw->control);
    if (!may_bind(mw, qp)) {
        status = ND_INVALID_DEVICE_REQUEST;
    } else if (mode == QUEUE_LIVE || mode == QUEUE_BATCH) {
        status = bind_on_device(qp, context, mw, binding, flags);
    } else {
        /* A closed queue does not open again, so the device will not see this. */
        describe_carrier(&unseen.wr);
        status = qp_post_window(qp, context, &unseen);
    }
    if (status == ND_SUCCESS && token)
        *token = mw->token;
    pthread_mutex_unlock(&mw->control);
    return status;
}

HRESULT mw_bind(struct qp *qp, void *context, struct mr *mr, struct mw *mw, const void *buffer, size_t length,
                uint32_t flags, uint32_t *token)
{
    struct binding binding = { .mr = mr, .buffer = buffer, .length = length };
    HRESULT status;

    if (flags & ~(uint32_t)MW_BIND_FLAGS)
        return ND_INVALID_PARAMETER_6;
    if (flags & ND_OP_FLAG_ALLOW_READ)
        binding.access |= IBV_ACCESS_REMOTE_READ;
    if (flags & ND_OP_FLAG_ALLOW_WRITE)
        binding.access |= IBV_ACCESS_REMOTE_WRITE;
    status = check_bind(qp, mw, MW_ND, &binding);
    if (status != ND_SUCCESS)
        return status;
    return post_bind(qp, context, mw, &binding, flags & MW_INVALIDATE_FLAGS, token);
}

HRESULT mw_bind_type1(struct qp *qp, void *context, struct mr *mr, struct mw *mw, const void *buffer, size_t length,
                      int access, uint32_t flags, uint32_t *token)
{
    struct binding binding = { .mr = length ? mr : NULL, .buffer = buffer, .length = length, .access = access };
    HRESULT status;

    if ((flags & ~(uint32_t)MW_INVALIDATE_FLAGS) ||
        (access & ~(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)))
        return ND_INVALID_PARAMETER_6;
    status = check_bind(qp, mw, MW_TYPE_1, &binding);
    if (status != ND_SUCCESS)
        return status;
    return post_bind(qp, context, mw, &binding, flags, token);
}

/* ---- Invalidate ---- */

/* control held, bound on this queue pair to the region of that key. */
static HRESULT invalidate_bound(struct qp *qp, void *context, struct mw *mw, uint32_t region_key, uint32_t flags)
{
    struct adapter *adapter = mw->adapter;
    struct window_post post = { .type = Nd2RequestTypeInvalidate, .flags = flags };
    HRESULT status;

    describe_carrier(&post.wr);
    if (mw->emulated) {
        post.revoke = mw->part;
    } else {
        post.wr.opcode = IBV_WR_LOCAL_INV;
        post.wr.invalidate_rkey = mw->verbs->rkey;
        /* The device needs the region until it has done this: qp_fail_users is to find it. */
        post.local_key = region_key;
    }
    status = qp_post_window(qp, context, &post);
    if (mw->emulated && post.posted) {
        mw->part = NULL; /* whatever the device said of the carrier */
        mw_set_free(mw);
    } else if (status == ND_SUCCESS) {
        wordlock_lock(&adapter->mw_lock);
        if (mw->state != MW_FREE)
            mw->state = post.posted ? MW_INVALIDATING : MW_STALE;
        wordlock_unlock(&adapter->mw_lock);
        if (post.posted)
            mw->position = post.position;
        else
            mw_settle_one(mw);
    }
    return status;
}

HRESULT mw_invalidate(struct qp *qp, void *context, struct mw *mw, uint32_t flags)
{
    struct window_post refused = { .type = Nd2RequestTypeInvalidate, .flags = flags, .refused = true };
    uint32_t region_key = 0;
    HRESULT status;
    bool bound;

    if (flags & ~(uint32_t)MW_INVALIDATE_FLAGS)
        return ND_INVALID_PARAMETER_3;
    if (mw->adapter != qp->adapter || mw->kind != MW_ND)
        return ND_INVALID_PARAMETER_2;
    if (__atomic_load_n(&qp->sq.mode, __ATOMIC_RELAXED) == QUEUE_IDLE)
        return ND_CONNECTION_INVALID;
    pthread_mutex_lock(&mw->control);
    wordlock_lock(&mw->adapter->mw_lock);
    bound = mw->state == MW_BOUND && mw->qp == qp;
    if (bound)
        region_key = mw->mr->mr->lkey;
    wordlock_unlock(&mw->adapter->mw_lock);
    if (bound) {
        status = invalidate_bound(qp, context, mw, region_key, flags);
    } else {
        describe_carrier(&refused.wr);
        status = qp_post_window(qp, context, &refused);
    }
    pthread_mutex_unlock(&mw->control);
    return status;
}
