/* SPDX-License-Identifier: MIT */

/* siw completes whatever it cannot send as other devices complete a request with a bad local key, and mostly it is the peer that
 * has closed. Only a request whose memory was bad when it was posted has done something wrong. */

#include <errno.h>

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;
static struct mr *region, *other;
static char all[192], *const memory = all + 64, more[64]; /* there are bytes around the region's */
#define LENGTH 64

static void make(bool soft)
{
    struct qp_config config;

    fake_device_quirks("fake_iw", FAKE_QUIRK_SIW);
    adapter = rig_open(RIG_IW);
    adapter->device->soft = soft;
    cq = rig_cq(adapter, 16);
    ok_status(cq_keep_details(cq), ND_SUCCESS);
    config = rig_config(adapter, cq, cq, 8);
    config.send_sge = 2;
    ok_status(qp_create(&config, &qp), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_established(qp_verbs(qp));
    qp_set_connected(qp);
    ok_status(mr_register(adapter, memory, LENGTH, 0, &region), ND_SUCCESS);
    ok_status(mr_register(adapter, more, sizeof(more), 0, &other), ND_SUCCESS);
}

static void unmake(void)
{
    rig_drop(qp);
    if (region)
        ok_status(mr_deregister(region), ND_SUCCESS);
    ok_status(mr_deregister(other), ND_SUCCESS);
    cq_unref(cq);
    rig_close(adapter);
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

enum way {
    BY_SEND,
    BY_SILENT_SEND,
    BY_SOLICITED_SEND,
    BY_INVALIDATE,
    BY_WRITE,
    BY_FENCED_WRITE,
    BY_BATCH,
    BY_WINVERBS,
    WAYS,
};

static void post(enum way way, const ND2_SGE *sge, uint32_t n)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

    switch (way) {
    case BY_SEND:
        ok_status(qp_send(qp, rig_ctx(1), sge, n, 0), ND_SUCCESS);
        break;
    case BY_SILENT_SEND:
        ok_status(qp_send(qp, rig_ctx(1), sge, n, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        break;
    case BY_SOLICITED_SEND:
        ok_status(qp_send(qp, rig_ctx(1), sge, n, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_SUCCESS);
        break;
    case BY_INVALIDATE:
        ok_status(qp_send_invalidate(qp, rig_ctx(1), sge, n, 0x77, 0), ND_SUCCESS);
        break;
    case BY_WRITE:
        ok_status(qp_write(qp, rig_ctx(1), sge, n, 0x40, 7, 0), ND_SUCCESS);
        break;
    case BY_FENCED_WRITE:
        ok_status(qp_write(qp, rig_ctx(1), sge, n, 0x40, 7, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
        break;
    case BY_BATCH:
        qp_batch_start(qp);
        ok_status(qp_send(qp, rig_ctx(1), sge, n, 0), ND_SUCCESS);
        qp_batch_submit(qp);
        break;
    default:
        ok_status(qp_initiate(qp, rig_ctx(1), Nd2RequestTypeWrite, sge, n, 0, &wr), ND_SUCCESS);
        break;
    }
}

static void ok_outcome(enum way way, HRESULT status)
{
    struct cq_completion completion;

    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_LOC_QP_OP_ERR, 0), ==, 1);
    ok_uint(cq_get_completions(cq, &completion, 1), ==, 1);
    ok_msg(completion.result.Status == status, "way %d: 0x%08x", (int)way, (unsigned)completion.result.Status);
    ok_uint((uintptr_t)completion.result.RequestContext, ==, 1);
    ok_int(completion.detail.status, ==, status == ND_CANCELED ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR);
    ok_uint(cq_get_completions(cq, &completion, 1), ==, 0);
    /* A failure it is all the same. */
    rig_run();
    ok_int(qp_state(qp), ==, IBV_QPS_ERR);
}

TEST(good_memory__is_not_to_blame)
{
    for (enum way way = 0; way < WAYS; way++) {
        for (uint32_t n = 0; n <= 2; n++) {
            for (int soft = 0; soft < 2; soft++) {
                ND2_SGE sge[2];

                make(soft != 0);
                sge[0] = (ND2_SGE){ memory, LENGTH, region->mr->lkey };
                sge[1] = (ND2_SGE){ more + 63, 1, other->mr->lkey };
                post(way, sge, n);
                ok_outcome(way, soft ? ND_CANCELED : ND_ACCESS_VIOLATION);
                unmake();
            }
        }
    }
}

TEST(bad_memory__is)
{
    for (enum way way = 0; way < WAYS; way++) {
        for (int fault = 0; fault < 6; fault++) {
            uint32_t good, unknown, n = 2;
            ND2_SGE sge[2];

            make(true);
            good = region->mr->lkey;
            unknown = good ^ 0x5a5a5a00;
            sge[0] = (ND2_SGE){ more, 1, other->mr->lkey };
            sge[1] = (ND2_SGE){ memory, LENGTH, good };
            switch (fault) {
            case 0:
                sge[1].MemoryRegionToken = unknown;
                break;
            case 1:
                sge[1].BufferLength++;
                break;
            case 2:
                sge[1] = (ND2_SGE){ memory - 1, 2, good };
                break;
            case 3:
                sge[1] = (ND2_SGE){ memory + LENGTH + 1, 1, good };
                break;
            case 4:
                sge[0] = (ND2_SGE){ memory, 8, 0 };
                n = 1;
                break;
            default:
                ok_status(mr_deregister(region), ND_SUCCESS);
                region = NULL;
                break;
            }
            post(way, sge, n);
            ok_outcome(way, ND_ACCESS_VIOLATION);
            unmake();
        }
    }
}

TEST(good_memory__whose_deregistration_failed)
{
    ND2_SGE sge;

    make(true);
    sge = (ND2_SGE){ memory, LENGTH, region->mr->lkey };
    fake_fail(FAKE_ibv_dereg_mr, 1, EBUSY);
    ok_status(mr_deregister(region), ND_DEVICE_BUSY);
    post(BY_SEND, &sge, 1);
    ok_outcome(BY_SEND, ND_CANCELED);
    unmake();
}

/* The device looks at none of their keys. */
TEST(keys_that_do_not_count)
{
    ND2_SGE sge[2] = { { memory, 0, 0x1234 }, { memory, 8, 0x1234 } };

    make(true);
    post(BY_WRITE, sge, 1);
    ok_outcome(BY_WRITE, ND_CANCELED);
    unmake();
    for (uint32_t n = 1; n <= 2; n++) {
        make(true);
        ok_status(qp_send(qp, rig_ctx(1), sge + 2 - n, n, ND_OP_FLAG_INLINE), ND_SUCCESS);
        ok_outcome(BY_SEND, ND_CANCELED);
        unmake();
    }
}

/* Of a Read it is the answer that finds out about the memory, with another status. */
TEST(Read)
{
    ND2_SGE sge = { memory, 8, 0x1234 };

    make(true);
    ok_status(qp_read(qp, rig_ctx(1), &sge, 1, 0x40, 7, 0), ND_SUCCESS);
    ok_outcome(BY_SEND, ND_CANCELED);
    unmake();
}

/* What the port's state explains it explains here too. */
TEST(port_down)
{
    struct cq_completion completion;
    ND2_SGE sge;

    make(true);
    sge = (ND2_SGE){ memory, 8, region->mr->lkey };
    post(BY_SEND, &sge, 1);
    __atomic_store_n(&adapter->device->ports_down, 1u << (adapter->port - 1), __ATOMIC_RELAXED);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_LOC_QP_OP_ERR, 0);
    ok_uint(cq_get_completions(cq, &completion, 1), ==, 1);
    ok_status(completion.result.Status, ND_IO_TIMEOUT);
    __atomic_store_n(&adapter->device->ports_down, 0, __ATOMIC_RELAXED);
    unmake();
}

/* A region that ends while a request with bad memory is under way ends that one too: the slot does not tell whose memory it is. */
TEST(region_released)
{
    ND2_SGE sge[2];

    make(true);
    sge[0] = (ND2_SGE){ memory, 8, region->mr->lkey };
    sge[1] = (ND2_SGE){ memory, 8, 0x1234 };
    post(BY_SEND, sge, 2);
    qp_fail_users(adapter, region->mr->lkey);
    ok_int(qp_state(qp), ==, IBV_QPS_ERR);
    unmake();
}
