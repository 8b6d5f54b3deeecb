/* SPDX-License-Identifier: MIT */

/* What datagrams need: address handles, multicast groups on queue pairs and on ids. No datagram is carried. */

#include "fake_internal.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *public, struct ibv_ah_attr *attr)
{
    struct fake_call call = { .fn = FAKE_ibv_create_ah, .object = public };
    int err = fake_enter(&call);
    struct fake_pd *pd = (struct fake_pd *)fake_object_check(public, FAKE_OBJ_PD, call.fn);
    struct fake_device *device = pd ? fake_context_of(public->context)->device : NULL;
    struct fake_ah *ah = NULL;

    if (!err && (!pd || attr->port_num < 1 || attr->port_num > device->port_count))
        err = EINVAL;
    /* RoCE has no other way than by GIDs. */
    if (!err && !attr->is_global && device->ports[attr->port_num - 1].link_layer == IBV_LINK_LAYER_ETHERNET)
        err = EINVAL;
    if (!err && device->removed)
        err = EIO;
    if (!err) {
        ah = (struct fake_ah *)fake_object_new(sizeof(*ah), sizeof(ah->ah), FAKE_OBJ_AH);
        ah->ah.context = public->context;
        ah->ah.pd = public;
        ah->attr = *attr;
        pd->children++;
        call.created = &ah->ah;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *public)
{
    struct fake_call call = { .fn = FAKE_ibv_destroy_ah, .object = public };
    int err = fake_enter(&call);
    struct fake_ah *ah = (struct fake_ah *)fake_object_check(public, FAKE_OBJ_AH, call.fn);

    if (!err && !ah)
        err = EINVAL;
    if (!err) {
        ((struct fake_pd *)fake_head(ah->ah.pd))->children--;
        fake_object_destroy(&ah->object);
    }
    return fake_leave(&call, err);
}

static int change_attached(struct ibv_qp *public, enum fake_fn fn, int by)
{
    struct fake_call call = { .fn = fn, .object = public };
    int err = fake_enter(&call);
    struct fake_qp *qp = (struct fake_qp *)fake_object_check(public, FAKE_OBJ_QP, fn);

    if (!err && (!qp || qp->qp.qp_type != IBV_QPT_UD || (by < 0 && !qp->attached)))
        err = EINVAL;
    if (!err)
        qp->attached += (unsigned)by;
    return fake_leave(&call, err);
}

int ibv_attach_mcast(struct ibv_qp *public, const union ibv_gid *gid, uint16_t lid)
{
    (void)gid;
    (void)lid;
    return change_attached(public, FAKE_ibv_attach_mcast, 1);
}

int ibv_detach_mcast(struct ibv_qp *public, const union ibv_gid *gid, uint16_t lid)
{
    (void)gid;
    (void)lid;
    return change_attached(public, FAKE_ibv_detach_mcast, -1);
}

/* The test answers with an event whose `group` is that of the call: fake_cm_group(). */
int rdma_join_multicast(struct rdma_cm_id *public, struct sockaddr *addr, void *context)
{
    struct fake_call call = { .fn = FAKE_rdma_join_multicast };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    (void)addr;
    if (!err &&
        (!id->device || id->id.ps != RDMA_PS_UDP || (id->state != FAKE_CM_BOUND && id->state != FAKE_CM_ADDR_RESOLVED)))
        err = EINVAL;
    if (!err) {
        id->group = context;
        id->groups++;
    }
    return fake_id_leave(&call, id, err);
}

int rdma_leave_multicast(struct rdma_cm_id *public, struct sockaddr *addr)
{
    struct fake_call call = { .fn = FAKE_rdma_leave_multicast };
    int err;
    struct fake_id *id = fake_id_enter(&call, public, &err);

    (void)addr;
    if (!err && !id->groups)
        err = EADDRNOTAVAIL;
    if (!err)
        id->groups--;
    return fake_id_leave(&call, id, err);
}

void *fake_cm_group(struct rdma_cm_id *id)
{
    return ((struct fake_id *)fake_head(id))->group;
}
