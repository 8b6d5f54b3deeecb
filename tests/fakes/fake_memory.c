/* SPDX-License-Identifier: MIT */

/* Protection domains, memory regions and windows, and the checks a device makes with their keys. */

#include "fake_internal.h"

static uint32_t next_key = 0x100;
static uint32_t next_handle = 1;

/* Keys are given out once in the life of the process, so a stale one never fits. */
static uint32_t new_key(void)
{
    next_key += 0x100;
    return next_key;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct fake_call call = { .fn = FAKE_ibv_alloc_pd, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);
    struct fake_pd *pd = NULL;

    if (!err)
        err = !ctx ? EINVAL : ctx->device->removed ? EIO : 0;
    if (!err) {
        pd = (struct fake_pd *)fake_object_new(sizeof(*pd), sizeof(pd->pd), FAKE_OBJ_PD);
        pd->pd.context = context;
        pd->pd.handle = next_handle++;
        fake_context_of(context)->children++;
        call.created = &pd->pd;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *public)
{
    struct fake_call call = { .fn = FAKE_ibv_dealloc_pd, .object = public };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);

    if (!err && !pd)
        err = EINVAL;
    if (!err && pd->children) {
        fake_violation("ibv_dealloc_pd: %u objects of the protection domain are still there", pd->children);
        err = EBUSY;
    }
    if (!err) {
        fake_context_of(pd->pd.context)->children--;
        fake_object_destroy(&pd->object);
    }
    return fake_leave(&call, err);
}

/* ---- regions ---- */

static struct ibv_mr *reg_mr(struct ibv_pd *public, void *addr, size_t length, unsigned access)
{
    struct fake_call call = { .fn = FAKE_ibv_reg_mr,
                              .object = public,
                              .arg.reg_mr = { .addr = addr, .length = length, .access = access } };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);
    struct fake_mr *mr = NULL;

    if (!err && (!pd || length == 0 || (uintptr_t)addr + length < (uintptr_t)addr))
        err = EINVAL;
    if (!err && (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        err = EINVAL;
    if (!err && (access & IBV_ACCESS_ON_DEMAND))
        err = EINVAL;
    if (!err && fake_context_of(public->context)->device->removed)
        err = EIO;
    if (!err) {
        mr = (struct fake_mr *)fake_object_new(sizeof(*mr), sizeof(mr->mr), FAKE_OBJ_MR);
        mr->mr.context = public->context;
        mr->mr.pd = public;
        mr->mr.addr = addr;
        mr->mr.length = length;
        mr->mr.handle = next_handle++;
        mr->mr.lkey = new_key();
        /* Another value than the lkey, so that mixing them up shows. */
        mr->mr.rkey = new_key();
        mr->access = access;
        pd->children++;
        call.created = &mr->mr;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &mr->mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg_mr(pd, addr, length, (unsigned)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    (void)iova;
    return reg_mr(pd, addr, length, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    (void)iova;
    return reg_mr(pd, addr, length, access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE);
}

int ibv_dereg_mr(struct ibv_mr *public)
{
    struct fake_call call = { .fn = FAKE_ibv_dereg_mr, .object = public };
    int err = fake_enter(&call);
    struct fake_mr *mr = (struct fake_mr *)fake_object_check(public, FAKE_OBJ_MR, call.fn);

    if (!err && !mr)
        err = EINVAL;
    if (!err && mr->windows) {
        fake_violation("ibv_dereg_mr: %u windows are bound to the region", mr->windows);
        err = EINVAL;
    }
    if (!err) {
        ((struct fake_pd *)fake_head(mr->mr.pd))->children--;
        fake_object_destroy(&mr->object);
    }
    return fake_leave(&call, err);
}

/* ---- windows ---- */

struct ibv_mw *fake_alloc_mw(struct ibv_pd *public, enum ibv_mw_type type)
{
    struct fake_call call = { .fn = FAKE_ibv_alloc_mw, .object = public, .arg.alloc_mw = { .type = type } };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);
    struct fake_mw *mw = NULL;

    if (!err && (!pd || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)))
        err = EINVAL;
    if (!err) {
        mw = (struct fake_mw *)fake_object_new(sizeof(*mw), sizeof(mw->mw), FAKE_OBJ_MW);
        mw->mw.context = public->context;
        mw->mw.pd = public;
        mw->mw.rkey = new_key();
        mw->mw.handle = next_handle++;
        mw->mw.type = type;
        mw->rkey = mw->mw.rkey;
        pd->children++;
        call.created = &mw->mw;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &mw->mw;
}

void fake_mw_unbind(struct fake_mw *mw)
{
    if (!mw->mr)
        return;
    mw->mr->windows--;
    mw->mr = NULL;
    if (mw->qp)
        mw->qp->windows--;
    mw->qp = NULL;
}

int fake_dealloc_mw(struct ibv_mw *public)
{
    struct fake_call call = { .fn = FAKE_ibv_dealloc_mw, .object = public };
    int err = fake_enter(&call);
    struct fake_mw *mw = (struct fake_mw *)fake_object_check(public, FAKE_OBJ_MW, call.fn);

    if (!err && !mw)
        err = EINVAL;
    if (!err) {
        fake_mw_unbind(mw);
        ((struct fake_pd *)fake_head(mw->mw.pd))->children--;
        fake_object_destroy(&mw->object);
    }
    return fake_leave(&call, err);
}

bool fake_mw_bound(struct ibv_mw *mw)
{
    bool bound;

    fake_lock();
    bound = ((struct fake_mw *)fake_head(mw))->mr != NULL;
    fake_unlock();
    return bound;
}

struct fake_mw *fake_mw_by_rkey(uint32_t rkey)
{
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);

        /* The upper 24 bits name the window, the rest changes with each bind. */
        if (object->live && object->kind == FAKE_OBJ_MW && (((struct fake_mw *)object)->rkey ^ rkey) >> 8 == 0)
            return (struct fake_mw *)object;
    }
    return NULL;
}

/* What rxe checks when the request is executed, not when it is posted. */
enum ibv_wc_status fake_execute_bind(struct fake_qp *qp, const struct fake_wr *wr)
{
    struct fake_mw *mw = (struct fake_mw *)fake_head(wr->mw);
    struct fake_mr *mr = wr->bind_info.mr ? (struct fake_mr *)fake_head(wr->bind_info.mr) : NULL;
    const struct ibv_mw_bind_info *info = &wr->bind_info;
    bool type1;

    if (!mw->object.live || (mr && !mr->object.live))
        return IBV_WC_MW_BIND_ERR;
    type1 = mw->mw.type == IBV_MW_TYPE_1;
    if (type1 && info->length == 0) {
        fake_mw_unbind(mw);
        return IBV_WC_SUCCESS;
    }
    if (!mr || info->length == 0 || (mw->mr && !type1) || mw->mw.pd != qp->qp.pd || mr->mr.pd != mw->mw.pd)
        return IBV_WC_MW_BIND_ERR;
    if (info->addr < (uintptr_t)mr->mr.addr || info->addr - (uintptr_t)mr->mr.addr > mr->mr.length ||
        info->length > mr->mr.length - (info->addr - (uintptr_t)mr->mr.addr))
        return IBV_WC_MW_BIND_ERR;
    if (!(mr->access & IBV_ACCESS_MW_BIND) || (info->mw_access_flags & IBV_ACCESS_ZERO_BASED))
        return IBV_WC_MW_BIND_ERR;
    if ((info->mw_access_flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(mr->access & IBV_ACCESS_LOCAL_WRITE))
        return IBV_WC_MW_BIND_ERR;
    /* Only the window's own key with another key part. */
    if (!type1 && (((wr->rkey ^ mw->rkey) >> 8) != 0 || wr->rkey == mw->rkey))
        return IBV_WC_MW_BIND_ERR;
    fake_mw_unbind(mw);
    mw->mr = mr;
    mr->windows++;
    mw->qp = type1 ? NULL : qp;
    if (mw->qp)
        qp->windows++;
    mw->addr = info->addr;
    mw->length = info->length;
    mw->access = info->mw_access_flags;
    mw->rkey = wr->rkey;
    return IBV_WC_SUCCESS;
}

enum ibv_wc_status fake_execute_invalidate(struct fake_qp *qp, uint32_t rkey)
{
    struct fake_mw *mw = fake_mw_by_rkey(rkey);

    if (!mw || mw->mw.pd != qp->qp.pd || mw->mw.type != IBV_MW_TYPE_2 || mw->rkey != rkey)
        return IBV_WC_MW_BIND_ERR;
    if (!mw->mr)
        return IBV_WC_SUCCESS;
    fake_mw_unbind(mw);
    return IBV_WC_SUCCESS;
}

/* ---- key checks ---- */

static bool inside(uint64_t base, uint64_t size, uint64_t addr, uint64_t length)
{
    return addr >= base && length <= size && addr - base <= size - length;
}

enum ibv_wc_status fake_check_local(struct ibv_pd *pd, const struct ibv_sge *sge, int count, bool write)
{
    for (int i = 0; i < count; i++) {
        struct fake_mr *found = NULL;

        if (sge[i].length == 0)
            continue;
        list_for_each (node, &fake_objects) {
            struct fake_object *object = list_entry(node, struct fake_object, link);

            if (object->live && object->kind == FAKE_OBJ_MR && ((struct fake_mr *)object)->mr.lkey == sge[i].lkey)
                found = (struct fake_mr *)object;
        }
        if (!found || found->mr.pd != pd || (write && !(found->access & IBV_ACCESS_LOCAL_WRITE)) ||
            !inside((uintptr_t)found->mr.addr, found->mr.length, sge[i].addr, sge[i].length))
            return IBV_WC_LOC_PROT_ERR;
    }
    return IBV_WC_SUCCESS;
}

/* `access` is one remote right. The right on the queue pair is checked too (invalid request if it is missing). */
enum ibv_wc_status fake_check_remote(struct fake_qp *qp, uint32_t rkey, uint64_t addr, uint64_t length, unsigned access)
{
    struct fake_mw *mw;

    if (!(qp->access & access))
        return IBV_WC_REM_INV_REQ_ERR;
    if (length == 0)
        return IBV_WC_SUCCESS;
    list_for_each (node, &fake_objects) {
        struct fake_object *object = list_entry(node, struct fake_object, link);
        struct fake_mr *mr = (struct fake_mr *)object;

        if (!object->live || object->kind != FAKE_OBJ_MR || mr->mr.rkey != rkey)
            continue;
        if (mr->mr.pd == qp->qp.pd && (mr->access & access) &&
            inside((uintptr_t)mr->mr.addr, mr->mr.length, addr, length))
            return IBV_WC_SUCCESS;
        return IBV_WC_REM_ACCESS_ERR;
    }
    mw = fake_mw_by_rkey(rkey);
    if (mw && mw->rkey == rkey && mw->mr && mw->mw.pd == qp->qp.pd && (!mw->qp || mw->qp == qp) &&
        (mw->access & access) && inside(mw->addr, mw->length, addr, length))
        return IBV_WC_SUCCESS;
    return IBV_WC_REM_ACCESS_ERR;
}
