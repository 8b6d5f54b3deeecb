/* SPDX-License-Identifier: MIT */

/* Opening and closing devices and adapters, their limits, events and removal, and memory registration. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "fakes.h"
#include "harness.h"
#include "ndstatus.h"

#include "core/address.h"
#include "core/device.h"
#include "core/mr.h"
#include "steps.h"

static uint64_t id_of(const char *text)
{
    union address address = { .v4 = { .sin_family = AF_INET } };
    struct address_entry entry;

    ok_int(inet_pton(AF_INET, text, &address.v4.sin_addr), ==, 1);
    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    return entry.adapter_id;
}

static struct adapter *open_one(const char *text)
{
    struct adapter *adapter;

    ok_status(adapter_open(id_of(text), &adapter), ND_SUCCESS);
    return adapter;
}

static void close_one(struct adapter *adapter)
{
    adapter_unref(adapter);
    steps_run();
}

SETUP
{
    fake_reset();
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    fake_loop_test(engine_on_loop);
}

TEARDOWN
{
    steps_run();
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
    ok_uint(steps_watched(), <=, 1); /* the process's event channel */
}

TEST(adapter_open__one_context_per_device)
{
    struct adapter *first = open_one("10.1.1.1"), *second = open_one("10.1.1.1"), *other = open_one("10.1.2.1");

    ok_ptr(first->device, ==, second->device);
    ok_ptr(first->pd, !=, second->pd);
    ok_ptr(first->device, !=, other->device);
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 2);
    ok_uint(fake_live(FAKE_OBJ_PD), ==, 3);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 0); /* the trials are gone */
    ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
    ok_int(first->device->transport, ==, DEVICE_IB);
    ok_int(other->device->transport, ==, DEVICE_IW);
    ok(first->device->has_windows && !other->device->has_windows);
    ok(first->device->cq_resizes && !other->device->cq_resizes);
    ok(first->device->solicited_arms && !other->device->solicited_arms);
    adapter_unref(first);
    steps_run();
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 2);
    adapter_unref(second);
    adapter_unref(other);
    steps_run();
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 0);
}

TEST(adapter_open__again_after_the_last_release)
{
    struct adapter *adapter = open_one("10.1.1.1"), *again;

    adapter_unref(adapter);
    steps_works();                /* the anchor id goes, and with it the last reference of the device */
    again = open_one("10.1.1.1"); /* while the old context is still on its way out */
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 2);
    steps_run();
    ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 1);
    close_one(again);
}

TEST(adapter_open__unknown_id)
{
    struct adapter *adapter;

    ok_status(adapter_open(0x1234, &adapter), ND_INVALID_PARAMETER);
}

TEST(adapter_open__device_left_since_the_list_was_made)
{
    uint64_t id = id_of("10.1.1.1");
    struct adapter *adapter;

    fake_device_remove("fake_ib");
    ok_status(adapter_open(id, &adapter), ND_INVALID_PARAMETER);
    ok_status(adapter_open(id, &adapter), ND_INVALID_PARAMETER);
}

TEST(adapter_open__forked_child)
{
    uint64_t id = id_of("10.1.1.1");
    struct adapter *adapter = open_one("10.1.1.1"), *other;
    unsigned calls = (unsigned)fake_log_length();

    steps_set_dead(true);
    ok_status(adapter_open(id, &other), ND_DEVICE_REMOVED);
    adapter_ref(adapter);
    adapter_unref(adapter);
    adapter_unref(adapter); /* the last one: counts, touches nothing */
    ok_uint(fake_log_length(), ==, calls);
    steps_set_dead(false);
    adapter->refs = 1;
    close_one(adapter);
}

TEST(adapter_open__engine_cannot_start)
{
    uint64_t id = id_of("10.1.1.1");
    struct adapter *adapter;

    steps_fail_start(ND_INSUFFICIENT_RESOURCES);
    ok_status(adapter_open(id, &adapter), ND_INSUFFICIENT_RESOURCES);
    steps_fail_start(ND_SUCCESS);
}

TEST(adapter_open__foreign_failures)
{
    static const struct {
        enum fake_fn fn;
        int error;
        NTSTATUS status;
    } rows[] = {
        { FAKE_ibv_get_device_list, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_open_device, EACCES, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_open_device, ENODEV, ND_DEVICE_REMOVED },
        { FAKE_ibv_query_device, EIO, ND_DEVICE_REMOVED },
        { FAKE_ibv_query_device, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_query_port, EINVAL, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_alloc_pd, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_alloc_pd, EIO, ND_DEVICE_REMOVED },
        { FAKE_ibv_create_cq, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_create_qp, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_ibv_create_qp, EIO, ND_DEVICE_REMOVED },
        { FAKE_rdma_create_event_channel, EMFILE, ND_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_create_event_channel, ENOENT, ND_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_create_id, ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { FAKE_rdma_bind_addr, ENODEV, ND_DEVICE_REMOVED },
        { FAKE_rdma_bind_addr, EADDRNOTAVAIL, ND_INSUFFICIENT_RESOURCES },
    };
    struct adapter *adapter;
    uint64_t id = id_of("10.1.1.1");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        NTSTATUS status;

        address_list_put(address_list_get()); /* fresh, so that only adapter_open meets the failure */
        fake_fail_always(rows[i].fn, rows[i].error);
        status = adapter_open(id, &adapter);
        ok_msg(status == rows[i].status, "%s errno %d: 0x%x", fake_name(rows[i].fn), rows[i].error, (unsigned)status);
        fake_fail_clear(rows[i].fn);
        steps_run();
        ok_msg(fake_live_objects() == 0, "%s errno %d: %s", fake_name(rows[i].fn), rows[i].error, fake_leaks());
        address_list_invalidate();
    }
    close_one(open_one("10.1.1.1"));
}

TEST(adapter_open__no_completion_channel)
{
    struct adapter *adapter;

    fake_fail(FAKE_ibv_create_comp_channel, 1, EOPNOTSUPP);
    adapter = open_one("10.1.1.1");
    ok_ptr(adapter->device->channel, ==, NULL);
    close_one(adapter);
}

TEST(adapter_open__out_of_memory)
{
    uint64_t id = id_of("10.1.1.1");
    struct adapter *adapter = NULL;
    unsigned n = 1;

    for (;; n++) {
        NTSTATUS status;

        fake_alloc_fail(n);
        status = adapter_open(id, &adapter);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok_status(status, ND_NO_MEMORY);
        steps_run();
        ok_str(fake_leaks(), "");
    }
    fake_alloc_clear();
    ok_uint(n, >, 2); /* the adapter, the device, ... */
    close_one(adapter);
}

TEST(adapter_open__fork_support_only_where_needed)
{
    close_one(open_one("10.1.1.1"));
    ok_uint(fake_count(FAKE_ibv_fork_init), ==, 0);
    fake_fork_status(IBV_FORK_DISABLED);
    close_one(open_one("10.1.1.1"));
    ok_uint(fake_count(FAKE_ibv_fork_init), ==, 1);
    fake_fail(FAKE_ibv_fork_init, 1, EINVAL);
    close_one(open_one("10.1.1.1"));
}

/* --- limits --- */

TEST(limits__of_the_fake_devices)
{
    struct adapter *ib = open_one("10.1.1.1"), *iw = open_one("10.1.2.1");

    ok_uint(ib->limits.max_send_depth, ==, 8192);
    ok_uint(ib->limits.max_recv_depth, <=, ib->limits.max_send_depth);
    ok_uint(ib->limits.max_cq_depth, ==, 16384);
    ok_uint(ib->limits.max_send_sge, ==, 32);
    ok_uint(ib->limits.max_read_sge, ==, 32);
    ok_uint(ib->limits.max_inline, ==, 512);
    ok_uint(ib->limits.inline_threshold, <=, ib->limits.max_inline);
    ok_uint(ib->limits.max_transfer, ==, 8u << 20);
    ok_uint(ib->limits.max_inbound_reads, ==, 128);
    ok_uint(ib->limits.max_caller_data, ==, 56);
    ok_uint(ib->limits.max_callee_data, ==, 148);
    ok_uint(ib->limits.max_srq_depth, ==, 8192);
    ok_uint(ib->limits.max_srq_sge, ==, 27);
    ok_uint(ib->limits.max_recv_sge, ==, 27); /* one limit for receives, wherever they are posted */
    ok_uint(ib->limits.vendor_id, ==, 0x1234);
    ok(ib->limits.flags & ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED);
    ok(ib->limits.flags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED);
    ok(!(ib->limits.flags & ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED));
    ok_uint(iw->limits.max_send_sge, ==, 6);
    ok_uint(iw->limits.max_read_sge, ==, 1);
    ok_uint(iw->limits.max_inline, ==, 80);
    ok_uint(iw->limits.max_transfer, ==, 1u << 31);
    ok(!(iw->limits.flags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED));
    adapter_unref(ib);
    close_one(iw);
}

/* A device with less, one that refuses what it says, one without. */
TEST(limits__shared_receive_queues)
{
    struct ibv_device_attr *attr = fake_device_attr("fake_ib");
    struct adapter *adapter;

    attr->max_srq_wr = 100;
    attr->max_srq_sge = 64;
    adapter = open_one("10.1.1.1");
    ok_uint(adapter->limits.max_srq_depth, ==, 100);
    ok_uint(adapter->limits.max_srq_sge, ==, 32);
    ok_uint(adapter->limits.max_recv_sge, ==, 32);
    close_one(adapter);
    attr->max_srq_wr = 8192;
    fake_fail(FAKE_ibv_create_srq, 1, ENOMEM);
    fake_fail(FAKE_ibv_create_srq, 2, ENOMEM);
    adapter = open_one("10.1.1.1");
    ok_uint(adapter->limits.max_srq_depth, ==, 2048);
    close_one(adapter);
    fake_fail_always(FAKE_ibv_create_srq, EOPNOTSUPP);
    adapter = open_one("10.1.1.1");
    ok_uint(adapter->limits.max_srq_depth, ==, 0);
    ok_uint(adapter->limits.max_recv_sge, ==, 32);
    close_one(adapter);
    fake_fail_clear(FAKE_ibv_create_srq);
    attr->max_srq = 0;
    adapter = open_one("10.1.1.1");
    ok_uint(adapter->limits.max_srq_depth, ==, 0);
    close_one(adapter);
}

static void refuse_big(struct fake_call *call, void *arg)
{
    const struct ibv_qp_cap *cap = &call->arg.create_qp.attr.cap;
    uint64_t limit = *(const uint64_t *)arg;

    if ((uint64_t)cap->max_send_wr * (16u * cap->max_send_sge + cap->max_inline_data) > limit)
        call->result = EINVAL;
}

/* tests/lists: D3. */
TEST(limits__hold_together_on_a_device_that_adds_them_up)
{
    uint64_t limit = 2u << 20; /* a send queue of 2 MiB */
    const struct adapter_limits *limits;
    struct adapter *adapter;

    fake_on_every(FAKE_ibv_create_qp, refuse_big, &limit);
    adapter = open_one("10.1.1.1");
    limits = &adapter->limits;
    ok_uint((uint64_t)limits->max_send_depth * (16u * limits->max_send_sge + limits->max_inline), <=, limit);
    ok_uint(limits->max_send_sge, ==, 32); /* depth goes first */
    ok_uint(limits->max_inline, ==, 512);
    ok_uint(limits->max_send_depth, >=, 256);
    close_one(adapter);
}

TEST(limits__small_device)
{
    struct ibv_device_attr *attr = fake_device_attr("fake_ib");
    struct adapter *adapter;

    attr->max_qp_wr = 100;
    attr->max_sge = 2;
    attr->max_sge_rd = 0; /* says nothing: as the others */
    attr->max_cqe = 200;
    attr->max_mr_size = 1 << 20;
    attr->max_qp_rd_atom = 1000;
    attr->max_qp_init_rd_atom = 4;
    attr->vendor_id = 0xffffff;
    attr->vendor_part_id = 0x12345;
    fake_device_max_inline("fake_ib", 0);
    fake_port_attr("fake_ib", 1)->max_msg_sz = 0;
    adapter = open_one("10.1.1.1");
    ok_uint(adapter->limits.max_send_depth, ==, 100);
    ok_uint(adapter->limits.max_send_sge, ==, 2);
    ok_uint(adapter->limits.max_read_sge, ==, 2);
    ok_uint(adapter->limits.max_cq_depth, ==, 200);
    ok_uint(adapter->limits.max_registration, ==, 1 << 20);
    ok_uint(adapter->limits.max_inbound_reads, ==, 255);
    ok_uint(adapter->limits.max_outbound_reads, ==, 4);
    ok_uint(adapter->limits.max_inline, ==, 0);
    ok_uint(adapter->limits.inline_threshold, ==, 0);
    ok_uint(adapter->limits.max_transfer, ==, 1u << 31);
    ok(!adapter->device->solicited_arms);      /* as rxe calls itself */
    ok_uint(adapter->limits.vendor_id, ==, 0); /* no PCI number */
    ok_uint(adapter->limits.device_id, ==, 0);
    close_one(adapter);
}

TEST(limits__inline_to_sixteen_bytes)
{
    static const unsigned sizes[] = { 16, 48, 64, 80, 96, 220, 512, 828, 1024, 4096 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned wanted = sizes[i] > 1024 ? 1024 : sizes[i] / 16 * 16;
        struct adapter *adapter;

        fake_device_max_inline("fake_ib", sizes[i]);
        adapter = open_one("10.1.1.1");
        ok_uint(adapter->limits.max_inline, ==, wanted);
        close_one(adapter);
    }
}

/* --- events --- */

/* tests/lists: D53. */
TEST(events__ports)
{
    struct adapter *adapter = open_one("10.1.1.1");
    struct address_list *list = address_list_get(), *after;

    ok(!adapter_port_down(adapter));
    fake_async_port("fake_ib", 1, IBV_EVENT_PORT_ERR);
    steps_run();
    ok(adapter_port_down(adapter));
    after = address_list_get();
    ok_ptr(after, !=, list); /* made anew */
    address_list_put(after);
    address_list_put(list);
    fake_async_port("fake_ib", 1, IBV_EVENT_PORT_ACTIVE);
    fake_async_port("fake_ib", 1, IBV_EVENT_GID_CHANGE);
    steps_run();
    ok(!adapter_port_down(adapter));
    ok_uint(fake_count(FAKE_ibv_ack_async_event), ==, 3);
    close_one(adapter);
}

/* tests/lists: D53. */
TEST(events__several_in_a_row_are_all_read)
{
    struct adapter *adapter = open_one("10.1.1.1");

    for (int i = 0; i < 85; i++) /* rxe sends one for each lost completion */
        fake_async_port("fake_ib", 1, IBV_EVENT_GID_CHANGE);
    steps_run();
    ok_uint(fake_count(FAKE_ibv_ack_async_event), ==, 85);
    close_one(adapter);
}

struct objects {
    struct adapter *adapter;
    struct stand_in cq_object, qp_object;
    struct device_link cq_link, qp_link;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static void make_objects(struct objects *objects)
{
    struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

    memset(objects, 0, sizeof(*objects));
    objects->adapter = open_one("10.1.1.1");
    objects->cq_object.refs = objects->qp_object.refs = 1;
    objects->cq =
        ibv_create_cq(objects->adapter->device->verbs, 8, &objects->cq_object, objects->adapter->device->channel, 0);
    init.send_cq = init.recv_cq = objects->cq;
    init.qp_context = &objects->qp_object;
    objects->qp = ibv_create_qp(objects->adapter->pd, &init);
    ok(device_link_add(objects->adapter->device, &objects->adapter->device->cqs, &objects->cq_link,
                       &objects->cq_object));
    ok(device_link_add(objects->adapter->device, &objects->adapter->device->qps, &objects->qp_link,
                       &objects->qp_object));
}

static void destroy_objects(struct objects *objects)
{
    device_link_del(objects->adapter->device, &objects->qp_link);
    device_link_del(objects->adapter->device, &objects->qp_link); /* any number of times */
    device_link_del(objects->adapter->device, &objects->cq_link);
    ok_int(ibv_destroy_qp(objects->qp), ==, 0);
    ok_int(ibv_destroy_cq(objects->cq), ==, 0);
    close_one(objects->adapter);
}

/* tests/lists: D51. */
TEST(events__completion_channel)
{
    struct objects objects;

    make_objects(&objects);
    fake_cq_event(objects.cq);
    fake_cq_event(objects.cq);
    ok_uint(steps_ready(), ==, 1);
    ok_uint(objects.cq_object.events, ==, 1); /* one event per readiness */
    steps_run();
    ok_uint(objects.cq_object.events, ==, 2);
    ok_uint(objects.cq_object.refs, ==, 1);
    ok_uint(fake_cq_events_unacked(objects.cq), ==, 2); /* for the CQ to acknowledge when it goes */
    fake_cq_event(objects.cq);
    objects.cq_object.refs = 0; /* its last reference is gone: acknowledged here, not told */
    steps_run();
    ok_uint(objects.cq_object.events, ==, 2);
    ok_uint(fake_cq_events_unacked(objects.cq), ==, 2);
    ibv_ack_cq_events(objects.cq, 2);
    destroy_objects(&objects);
}

TEST(events__queue_errors)
{
    static const enum ibv_event_type kinds[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR };
    struct objects objects;

    make_objects(&objects);
    for (unsigned i = 0; i < 3; i++) {
        fake_async_qp(objects.qp, kinds[i]);
        steps_run();
        ok_uint(objects.qp_object.errors, ==, i + 1);
        ok_uint(objects.qp_object.lost, ==, i + 1);
    }
    fake_async_qp(objects.qp, IBV_EVENT_COMM_EST);
    fake_async_qp(objects.qp, IBV_EVENT_SQ_DRAINED);
    fake_async_cq(objects.cq, IBV_EVENT_CQ_ERR);
    steps_run();
    ok_uint(objects.qp_object.errors, ==, 3);
    ok_uint(objects.qp_object.lost, ==, 3);
    ok_uint(objects.qp_object.established, ==, 1);
    ok_uint(objects.cq_object.overruns, ==, 1);
    objects.qp_object.refs = objects.cq_object.refs = 0;
    fake_async_qp(objects.qp, IBV_EVENT_QP_FATAL);
    fake_async_cq(objects.cq, IBV_EVENT_CQ_ERR);
    steps_run();
    ok_uint(objects.qp_object.errors, ==, 3);
    ok_uint(objects.cq_object.overruns, ==, 1);
    destroy_objects(&objects);
}

TEST(events__shared_receive_queue)
{
    struct objects objects;
    struct stand_in owner = { .refs = 1 };
    struct ibv_srq_init_attr init = { .srq_context = &owner, .attr = { .max_wr = 1, .max_sge = 1 } };
    struct ibv_srq *srq;

    make_objects(&objects);
    srq = ibv_create_srq(objects.adapter->pd, &init);
    ok(srq != NULL);
    fake_async_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    steps_run();
    ok_uint(owner.events, ==, 1);
    ok_uint(owner.errors, ==, 0);
    fake_async_srq(srq, IBV_EVENT_SRQ_ERR);
    steps_run();
    ok_uint(owner.errors, ==, 1);
    ok_uint(owner.refs, ==, 1);
    owner.refs = 0;
    fake_async_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    steps_run();
    ok_uint(owner.events, ==, 1);
    fake_async_qp(objects.qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    steps_run();
    ok_uint(objects.qp_object.last_wqes, ==, 1);
    ok_uint(objects.qp_object.errors, ==, 0);
    ok_int(ibv_destroy_srq(srq), ==, 0);
    destroy_objects(&objects);
}

/* tests/lists: D58. */
TEST(events__read_errors_are_not_repeated_for_ever)
{
    struct objects objects;

    make_objects(&objects);
    fake_async_port("fake_ib", 1, IBV_EVENT_GID_CHANGE);
    fake_fail(FAKE_ibv_get_async_event, 1, EINTR);
    steps_run(); /* tried again */
    ok_uint(objects.qp_object.removals, ==, 0);
    fake_async_port("fake_ib", 1, IBV_EVENT_GID_CHANGE);
    fake_fail_always(FAKE_ibv_get_async_event, EIO);
    steps_run(); /* ends: the descriptor is not watched any more */
    ok_uint(objects.qp_object.removals, ==, 1);
    ok(adapter_removed(objects.adapter));
    fake_fail_clear(FAKE_ibv_get_async_event);
    destroy_objects(&objects);
}

/* --- removal --- */

TEST(removal__by_device_fatal)
{
    struct stand_in late_object = { .refs = 1 };
    struct objects objects;
    struct device_link late;
    struct adapter *other;

    make_objects(&objects);
    other = open_one("10.1.2.1");
    fake_async_port("fake_ib", 1, IBV_EVENT_DEVICE_FATAL);
    fake_async_port("fake_ib", 1, IBV_EVENT_DEVICE_FATAL); /* told once */
    steps_run();
    ok(adapter_removed(objects.adapter));
    ok(!adapter_removed(other));
    ok_uint(objects.qp_object.removals, ==, 1);
    ok_uint(objects.cq_object.removals, ==, 1);
    ok_uint(objects.qp_object.refs, ==, 1);
    ok_uint(steps_connectors_told, ==, 1);
    ok_uint(steps_listeners_told, ==, 1);
    ok(!device_link_add(objects.adapter->device, &objects.adapter->device->qps, &late, &late_object));
    device_link_del(objects.adapter->device, &late);
    adapter_unref(other);
    destroy_objects(&objects);
}

TEST(removal__by_the_anchor_id)
{
    struct objects objects;
    struct adapter *again;
    uint64_t id;

    make_objects(&objects);
    id = objects.adapter->id;
    objects.qp_object.refs = 0; /* on its way out: not told */
    fake_cm_simple(objects.adapter->anchor->id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
    steps_run();
    ok(adapter_removed(objects.adapter));
    ok_uint(objects.qp_object.removals, ==, 0);
    ok_uint(objects.cq_object.removals, ==, 1);
    /* The device comes back: a new context, the old objects stay removed. */
    ok_status(adapter_open(id, &again), ND_SUCCESS);
    ok_ptr(again->device, !=, objects.adapter->device);
    ok(!adapter_removed(again));
    adapter_unref(again);
    destroy_objects(&objects);
}

/* librdmacm lets go of a device that is gone when it is made to look at the list, once our last use of it has ended. */
TEST(removal__librdmacm_is_made_to_forget_the_device)
{
    for (int fails = 0; fails < 2; fails++) {
        struct adapter *other = open_one("10.1.2.1"), *adapter = open_one("10.1.1.1"), *again = open_one("10.1.1.1");
        unsigned asked = fake_count(FAKE_rdma_get_devices);

        if (fails)
            fake_fail_always(FAKE_rdma_get_devices, ENODEV); /* it was the only one */
        adapter_unref(other);
        steps_run();
        ok_uint(fake_count(FAKE_rdma_get_devices), ==, asked); /* that device is as it was */
        fake_async_port("fake_ib", 1, IBV_EVENT_DEVICE_FATAL);
        steps_run();
        adapter_unref(again);
        steps_run();
        ok_uint(fake_count(FAKE_rdma_get_devices), ==, asked);
        adapter_unref(adapter);
        steps_run();
        ok_uint(fake_count(FAKE_rdma_get_devices), ==, asked + 1);
        ok(fake_log_before(FAKE_ibv_close_device, FAKE_rdma_get_devices));
        ok_uint(fake_live(FAKE_OBJ_CONTEXT), ==, 0);
        fake_fail_clear(FAKE_rdma_get_devices);
    }
}

TEST(removal__other_anchor_events_are_ignored)
{
    struct adapter *adapter = open_one("10.1.1.1");

    fake_cm_simple(adapter->anchor->id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
    steps_run();
    ok(!adapter_removed(adapter));
    close_one(adapter);
}

TEST(removal__address_list_forgets_the_device)
{
    struct adapter *adapter = open_one("10.1.1.1");
    uint64_t id = adapter->id;
    struct adapter *again;
    struct mr *mr;
    char buffer[16];

    fake_device_remove("fake_ib");
    steps_run();
    ok(adapter_removed(adapter));
    ok_status(mr_register(adapter, buffer, sizeof(buffer), 0, &mr), ND_DEVICE_REMOVED);
    ok_status(adapter_open(id, &again), ND_INVALID_PARAMETER);
    close_one(adapter);
}

/* --- memory --- */

TEST(mr_register__access)
{
    static const struct {
        uint32_t flags;
        unsigned ib, iw;
    } rows[] = {
        { 0, IBV_ACCESS_MW_BIND, 0 },
        { ND_MR_FLAG_ALLOW_LOCAL_WRITE, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE },
        { ND_MR_FLAG_ALLOW_REMOTE_READ, IBV_ACCESS_MW_BIND | IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ },
        { ND_MR_FLAG_ALLOW_REMOTE_WRITE, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
        { 4, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
        { ND_MR_FLAG_RDMA_READ_SINK, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE,
          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
        { ND_MR_FLAG_DO_NOT_SECURE_VM, IBV_ACCESS_MW_BIND, 0 },
    };
    struct adapter *ib = open_one("10.1.1.1"), *iw = open_one("10.1.2.1");
    char buffer[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mr *mr;

        ok_status(mr_register(ib, buffer, sizeof(buffer), rows[i].flags, &mr), ND_SUCCESS);
        ok_uint(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.access, ==, rows[i].ib);
        ok_status(mr_deregister(mr), ND_SUCCESS);
        ok_status(mr_register(iw, buffer, sizeof(buffer), rows[i].flags, &mr), ND_SUCCESS);
        ok_uint(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.access, ==, rows[i].iw);
        ok_status(mr_deregister(mr), ND_SUCCESS);
    }
    adapter_unref(ib);
    close_one(iw);
}

TEST(mr_register__arguments)
{
    struct adapter *adapter = open_one("10.1.1.1");
    char buffer[16];
    struct mr *mr;

    ok_status(mr_register(adapter, NULL, 0, 0, &mr), ND_INVALID_PARAMETER);
    ok_status(mr_register(adapter, buffer, 0, 0, &mr), ND_INVALID_BUFFER_SIZE);
    ok_status(mr_register(adapter, NULL, 16, 0, &mr), ND_ACCESS_VIOLATION);
    if (adapter->limits.max_registration < SIZE_MAX)
        ok_status(mr_register(adapter, buffer, (size_t)adapter->limits.max_registration + 1, 0, &mr),
                  ND_INVALID_PARAMETER);
    ok_status(mr_register(adapter, (void *)(UINTPTR_MAX - 7), 16, 0, &mr), ND_ACCESS_VIOLATION);
    ok_status(mr_register(adapter, buffer, 16, 0x10, &mr), ND_INVALID_PARAMETER);
    ok_uint(fake_count(FAKE_ibv_reg_mr), ==, 0);
    close_one(adapter);
}

TEST(mr_register__foreign_failures)
{
    static const struct {
        int error;
        NTSTATUS status;
    } rows[] = {
        { EFAULT, ND_ACCESS_VIOLATION },           { ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { EPERM, ND_INSUFFICIENT_RESOURCES },      { EAGAIN, ND_INSUFFICIENT_RESOURCES },
        { EINVAL, ND_INVALID_PARAMETER },          { EIO, ND_DEVICE_REMOVED },
        { EOPNOTSUPP, ND_INSUFFICIENT_RESOURCES },
    };
    struct adapter *adapter = open_one("10.1.1.1");
    char buffer[16];
    struct mr *mr;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_fail(FAKE_ibv_reg_mr, 1, rows[i].error);
        ok_status(mr_register(adapter, buffer, sizeof(buffer), 0, &mr), rows[i].status);
    }
    fake_alloc_fail(1);
    ok_status(mr_register(adapter, buffer, sizeof(buffer), 0, &mr), ND_INSUFFICIENT_RESOURCES);
    fake_alloc_clear();
    ok(list_empty(&adapter->mrs));
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    close_one(adapter);
}

TEST(mr_deregister__busy)
{
    struct adapter *adapter = open_one("10.1.1.1");
    char buffer[16];
    struct mr *mr;

    ok_status(mr_register(adapter, buffer, sizeof(buffer), 0, &mr), ND_SUCCESS);
    ok(mr_pin(mr));
    ok(mr_pin(mr));
    mr_unpin(mr);
    ok_status(mr_deregister(mr), ND_DEVICE_BUSY);
    ok_uint(fake_count(FAKE_ibv_dereg_mr), ==, 0);
    mr_unpin(mr);
    fake_fail_always(FAKE_ibv_dereg_mr, EINVAL); /* rxe with a bound window */
    ok_status(mr_deregister(mr), ND_DEVICE_BUSY);
    fake_fail_clear(FAKE_ibv_dereg_mr);
    ok_status(mr_deregister(mr), ND_SUCCESS); /* the record was kept */
    close_one(adapter);
}

TEST(mr__outlives_the_opener_of_its_adapter)
{
    struct adapter *adapter = open_one("10.1.1.1");
    char buffer[16];
    struct mr *mr;

    ok_status(mr_register(adapter, buffer, sizeof(buffer), 0, &mr), ND_SUCCESS);
    adapter_unref(adapter);
    steps_run();
    ok_uint(fake_live(FAKE_OBJ_PD), ==, 1);
    mr_release(mr);
    steps_run();
    ok_uint(fake_live(FAKE_OBJ_PD), ==, 0);
}
