/* SPDX-License-Identifier: MIT */

/* Shared receive queues. */

#include "fake_internal.h"

static void srq_release(struct fake_object *object)
{
    struct list *node;

    while ((node = list_pop(&((struct fake_srq *)object)->posted)) != NULL)
        fake_posted_free(list_entry(node, struct fake_posted, link));
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *public, struct ibv_srq_init_attr *init)
{
    struct fake_call call = { .fn = FAKE_ibv_create_srq, .object = public, .arg.srq = { .attr = init->attr } };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);
    struct fake_device *device = pd ? fake_context_of(pd->pd.context)->device : NULL;
    struct fake_srq *srq = NULL;

    if (!err && (!pd || init->attr.max_wr < 1 || init->attr.max_wr > (uint32_t)device->attr.max_srq_wr ||
                 init->attr.max_sge > (uint32_t)device->attr.max_srq_sge))
        err = EINVAL;
    if (!err) {
        srq = (struct fake_srq *)fake_object_new(sizeof(*srq), sizeof(srq->srq), FAKE_OBJ_SRQ);
        srq->object.release = srq_release;
        init->attr.max_wr = fake_number(init->attr.max_wr, device);
        srq->attr = init->attr;
        list_init(&srq->posted);
        srq->srq.context = public->context;
        srq->srq.srq_context = init->srq_context;
        srq->srq.pd = public;
        pd->children++;
        call.created = &srq->srq;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &srq->srq;
}

int ibv_modify_srq(struct ibv_srq *public, struct ibv_srq_attr *attr, int mask)
{
    struct fake_call call = { .fn = FAKE_ibv_modify_srq, .object = public, .arg.srq = { .attr = *attr, .mask = mask } };
    int err = fake_enter(&call);
    struct fake_srq *srq = (struct fake_srq *)fake_object_check(public, FAKE_OBJ_SRQ, call.fn);
    struct fake_device *device = srq ? fake_context_of(srq->srq.context)->device : NULL;

    if (!err && !srq)
        err = EINVAL;
    if (!err && (mask & IBV_SRQ_MAX_WR)) {
        if (!(device->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) || attr->max_wr < srq->count ||
            attr->max_wr > (uint32_t)device->attr.max_srq_wr)
            err = EINVAL;
        else
            srq->attr.max_wr = fake_number(attr->max_wr, device);
    }
    if (!err && (mask & IBV_SRQ_LIMIT)) {
        if (attr->srq_limit > srq->attr.max_wr) {
            err = EINVAL;
        } else {
            srq->attr.srq_limit = attr->srq_limit;
            srq->limit_armed = attr->srq_limit > 0;
        }
    }
    return fake_leave(&call, err);
}

int ibv_query_srq(struct ibv_srq *public, struct ibv_srq_attr *attr)
{
    struct fake_call call = { .fn = FAKE_ibv_query_srq, .object = public };
    int err = fake_enter(&call);
    struct fake_srq *srq = (struct fake_srq *)fake_object_check(public, FAKE_OBJ_SRQ, call.fn);

    if (!err && !srq)
        err = EINVAL;
    if (!err) {
        *attr = srq->attr;
        attr->srq_limit = srq->limit_armed ? srq->attr.srq_limit : 0;
    }
    return fake_leave(&call, err);
}

int ibv_destroy_srq(struct ibv_srq *public)
{
    struct fake_call call = { .fn = FAKE_ibv_destroy_srq, .object = public };
    int err = fake_enter(&call);
    struct fake_srq *srq = (struct fake_srq *)fake_object_check(public, FAKE_OBJ_SRQ, call.fn);

    if (!err && !srq)
        err = EINVAL;
    if (!err && srq->users) {
        fake_violation("ibv_destroy_srq: %u queue pairs still use it", srq->users);
        err = EBUSY;
    }
    if (!err) {
        fake_async_purge(fake_context_of(srq->srq.context), &srq->srq);
        fake_wait_acked(&srq->object, call.fn);
        srq_release(&srq->object);
        ((struct fake_pd *)fake_head(srq->srq.pd))->children--;
        fake_object_destroy(&srq->object);
    }
    return fake_leave(&call, err);
}

int fake_post_srq_recv(struct ibv_srq *public, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_call call = { .fn = FAKE_ibv_post_srq_recv, .object = public };
    int err;
    struct fake_srq *srq;

    fake_recv_to_wr(wr, &call.arg.wr);
    err = fake_enter(&call);
    srq = (struct fake_srq *)fake_object_check(public, FAKE_OBJ_SRQ, call.fn);
    if (!err && !srq)
        err = EINVAL;
    *bad = wr;
    for (; !err && wr; wr = wr->next) {
        *bad = wr;
        if (srq->count >= srq->attr.max_wr)
            err = ENOMEM;
        else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->attr.max_sge)
            err = EINVAL;
        if (err)
            break;
        list_add_tail(&srq->posted, &fake_posted_recv(wr)->link);
        srq->count++;
    }
    if (srq)
        fake_wire_progress_srq(srq);
    fake_leave(&call, err);
    return err && srq ? fake_post_result(fake_context_of(srq->srq.context)->device, err) : err;
}

/* One receive left the queue. */
void fake_srq_taken(struct fake_srq *srq)
{
    srq->count--;
    if (srq->limit_armed && srq->count < srq->attr.srq_limit) {
        srq->limit_armed = false;
        fake_async_raise(fake_context_of(srq->srq.context), IBV_EVENT_SRQ_LIMIT_REACHED, &srq->srq, 0);
    }
}

unsigned fake_srq_posted(struct ibv_srq *srq)
{
    unsigned count;

    fake_lock();
    count = ((struct fake_srq *)fake_head(srq))->count;
    fake_unlock();
    return count;
}
