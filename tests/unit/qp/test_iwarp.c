/* SPDX-License-Identifier: MIT */

/* iWARP: a failed attempt costs the device's queue pair its life, but not ours. */

#include <errno.h>
#include <string.h>

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;

static void make(void)
{
    fake_device_quirks("fake_iw", FAKE_QUIRK_SIW);
    adapter = rig_open(RIG_IW);
    cq = rig_cq(adapter, 16);
    qp = rig_qp(adapter, cq, cq, 4);
}

static void unmake(void)
{
    rig_drop(qp);
    ok_no_result(cq);
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

TEST(create__access_before_the_connection)
{
    const struct ibv_qp_attr *attr;
    int mask;

    make();
    attr = fake_qp_attr(qp_verbs(qp), IBV_QPS_INIT, &mask);
    ok_int(mask, ==, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
    ok_uint(attr->qp_access_flags, ==, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    unmake();
}

/* Reads take one entry only; the rest has more. */
TEST(sge__read_limit)
{
    ND2_SGE sge[2];

    memset(sge, 0, sizeof(sge));
    make();
    adapter->device->attr.max_sge_rd = 1;
    ok_uint(adapter->limits.max_read_sge, ==, 1);
    ok_status(qp_read(qp, NULL, sge, 2, 0, 0, 0), ND_DATA_OVERRUN);
    ok_status(qp_read(qp, NULL, sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(qp_send(qp, NULL, sge, 2, 0), ND_CONNECTION_INVALID);
    unmake();
}

static void make_connected(void)
{
    make();
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_established(qp_verbs(qp));
    qp_set_connected(qp);
}

/* siw's kernel gives a Read one entry whatever it has, and that would be the one of the slot's last request. */
TEST(Read__without_entries)
{
    for (int batch = 0; batch < 2; batch++) {
        struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
        struct fake_wr posted;

        make_connected();
        if (batch)
            qp_batch_start(qp);
        ok_status(qp_read(qp, rig_ctx(0), NULL, 0, 0x40, 7, 0), ND_SUCCESS);
        ok_status(qp_read(qp, rig_ctx(1), NULL, 0, 0x40, 7, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(qp_initiate(qp, rig_ctx(2), Nd2RequestTypeRead, NULL, 0, 0, &wr), ND_SUCCESS); /* WinVerbs */
        ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
        if (batch)
            qp_batch_submit(qp);
        for (unsigned i = 0; i < 3; i++) {
            ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, i, &posted));
            ok_int(posted.opcode, ==, IBV_WR_RDMA_READ);
            ok_int(posted.num_sge, ==, 1);
            ok_uint(posted.sge[0].addr, ==, 0);
            ok_uint(posted.sge[0].length, ==, 0);
            ok_uint(posted.sge[0].lkey, ==, 0);
        }
        ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, 3, &posted));
        ok_int(posted.num_sge, ==, 0);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
        ok_result(cq, Read, 0, ND_SUCCESS);
        ok_result(cq, Read, 2, ND_SUCCESS);
        ok_result(cq, Send, 3, ND_SUCCESS);
        unmake();
    }
}

static void ok_fences(unsigned n, unsigned fenced)
{
    struct fake_wr posted;

    for (unsigned i = 0; i < n; i++) {
        ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, i, &posted));
        ok_uint((posted.send_flags & IBV_SEND_FENCE) != 0, ==, fenced >> i & 1);
    }
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_SEND, n, IBV_WC_SUCCESS, 0), ==, n);
}

/* siw is done with what is behind a Read before the Read is answered, if that has no fence. */
TEST(fence__behind_reads_on_siw)
{
    ND2_SGE sge = { (void *)(uintptr_t)0x1000, 4, 7 };

    for (int soft = 0; soft < 2; soft++) {
        struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
        struct adapter *device = rig_open(RIG_IW);
        bool was = device->device->soft;

        device->device->soft = soft != 0;
        make_connected();
        ok_status(qp_read(qp, rig_ctx(0), &sge, 1, 0x40, 7, 0), ND_SUCCESS);
        ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
        ok_status(qp_write(qp, rig_ctx(2), &sge, 1, 0x40, 7, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(qp_write(qp, rig_ctx(3), &sge, 1, 0x40, 7, 0), ND_SUCCESS);
        ok_fences(4, soft ? 0xe : 0);
        ok_result(cq, Read, 0, ND_SUCCESS);
        ok_result(cq, Send, 1, ND_SUCCESS);
        ok_result(cq, Write, 3, ND_SUCCESS);
        ok_status(qp_initiate(qp, rig_ctx(4), Nd2RequestTypeWrite, &sge, 1, 0, &wr), ND_SUCCESS); /* WinVerbs */
        qp_batch_start(qp);
        ok_status(rig_send(qp, 5, 0), ND_SUCCESS);
        ok_status(qp_read(qp, rig_ctx(6), &sge, 1, 0x40, 7, 0), ND_SUCCESS);
        qp_batch_submit(qp);
        ok_fences(3, soft ? 0x3 : 0);
        ok_result(cq, Write, 4, ND_SUCCESS);
        ok_result(cq, Send, 5, ND_SUCCESS);
        ok_result(cq, Read, 6, ND_SUCCESS);
        unmake();
        device->device->soft = was;
        rig_close(device);
    }
}

/* siw takes no fenced Read; a target answers Reads in their order. */
TEST(Read__fenced)
{
    static const uint32_t fence = ND_OP_FLAG_READ_FENCE;
    ND2_SGE sge = { (void *)(uintptr_t)0x1000, 0, 0 };

    for (int batch = 0; batch < 2; batch++) {
        struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
        struct fake_wr posted;

        make_connected();
        if (batch)
            qp_batch_start(qp);
        ok_status(qp_read(qp, rig_ctx(0), &sge, 1, 0x40, 7, fence), ND_SUCCESS);
        ok_status(qp_read(qp, rig_ctx(1), NULL, 0, 0x40, 7, fence | ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
        ok_status(qp_initiate(qp, rig_ctx(2), Nd2RequestTypeRead, &sge, 1, fence, &wr), ND_SUCCESS); /* WinVerbs */
        ok_status(rig_send(qp, 3, fence), ND_SUCCESS);
        if (batch)
            qp_batch_submit(qp);
        for (unsigned i = 0; i < 4; i++) {
            ok(fake_qp_wr(qp_verbs(qp), FAKE_SEND, i, &posted));
            ok_int(posted.opcode, ==, i == 3 ? IBV_WR_SEND : IBV_WR_RDMA_READ);
            ok_uint(posted.send_flags & IBV_SEND_FENCE, ==, i == 3 ? IBV_SEND_FENCE : 0);
        }
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
        ok_result(cq, Read, 0, ND_SUCCESS);
        ok_result(cq, Read, 2, ND_SUCCESS);
        ok_result(cq, Send, 3, ND_SUCCESS);
        unmake();
    }
}

static void ok_no_reads(void)
{
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ };
    ND2_SGE sge = { (void *)(uintptr_t)0x1000, 0, 0 };

    for (uint32_t flags = 0; flags <= (ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SILENT_SUCCESS); flags++) {
        ok_status(qp_read(qp, NULL, &sge, 1, 0x40, 7, flags), ND_INVALID_DEVICE_REQUEST);
        ok_status(qp_read(qp, NULL, NULL, 0, 0x40, 7, flags), ND_INVALID_DEVICE_REQUEST);
        ok_status(qp_initiate(qp, NULL, Nd2RequestTypeRead, &sge, 1, flags, &wr), ND_INVALID_DEVICE_REQUEST);
    }
    /* What is wrong with the call itself comes first. */
    ok_status(qp_read(qp, NULL, NULL, 0, 0x40, 7, 0x40), ND_INVALID_PARAMETER_6);
    ok_status(qp_read(qp, NULL, &sge, 1000, 0x40, 7, 0), ND_DATA_OVERRUN);
    ok_status(qp_read(qp, NULL, NULL, 1, 0x40, 7, 0), ND_INVALID_PARAMETER_2);
    sge.BufferLength = adapter->limits.max_transfer + 1;
    ok_status(qp_read(qp, NULL, &sge, 1, 0x40, 7, 0), ND_BUFFER_OVERFLOW);
}

/* siw would keep a Read that the connection does not allow, and all behind it, for ever. Once nothing reaches the device it is
 * as any other request. */
TEST(Read__none_allowed)
{
    make();
    adapter->device->soft = true;
    qp_limit_reads(qp, 0);
    ok_status(qp_read(qp, NULL, NULL, 0, 0x40, 7, 0), ND_CONNECTION_INVALID);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_established(qp_verbs(qp));
    qp_set_connected(qp);
    ok_no_reads();
    qp_batch_start(qp);
    ok_no_reads();
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, 1);
    qp_close_posts(qp);
    ok_status(qp_read(qp, rig_ctx(2), NULL, 0, 0x40, 7, 0), ND_SUCCESS);
    ok_status(qp_flush(qp), ND_SUCCESS);
    ok_result(cq, Send, 1, ND_CANCELED);
    ok_result(cq, Read, 2, ND_CANCELED);
    unmake();
}

/* The devices of rxe do so too; others have an answer of their own. The limit comes with the state there. */
TEST(Read__none_allowed_on_ib)
{
    for (int soft = 0; soft < 2; soft++) {
        adapter = rig_open(RIG_IB);
        adapter->device->soft = soft != 0;
        cq = rig_cq(adapter, 16);
        qp = rig_qp(adapter, cq, cq, 4);
        rig_connect(qp); /* with a limit of 0 */
        if (soft)
            ok_no_reads();
        else
            ok_status(qp_read(qp, rig_ctx(1), NULL, 0, 0x40, 7, 0), ND_SUCCESS);
        qp_limit_reads(qp, 1);
        ok_status(qp_read(qp, rig_ctx(2), NULL, 0, 0x40, 7, 0), ND_SUCCESS);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
        if (!soft)
            ok_result(cq, Read, 1, ND_SUCCESS);
        ok_result(cq, Read, 2, ND_SUCCESS);
        unmake();
    }
}

/* Atomics count as Reads. */
TEST(Atomics__none_allowed)
{
    static const struct {
        uint32_t type;
        enum ibv_wr_opcode opcode;
    } kinds[] = { { REQUEST_COMPARE_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP },
                  { REQUEST_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD } };
    ND2_SGE sge = { (void *)(uintptr_t)0x1000, 8, 0 };

    for (int soft = 0; soft < 2; soft++) {
        adapter = rig_open(RIG_IB);
        adapter->device->soft = soft != 0;
        cq = rig_cq(adapter, 16);
        qp = rig_qp(adapter, cq, cq, 4);
        rig_connect(qp); /* with a limit of 0 */
        for (size_t i = 0; i < 2; i++) {
            struct ibv_send_wr wr = { .opcode = kinds[i].opcode };

            ok_status(qp_initiate(qp, rig_ctx(1), kinds[i].type, &sge, 1, 0, &wr),
                      soft ? ND_INVALID_DEVICE_REQUEST : ND_SUCCESS);
        }
        ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, soft ? 0 : 2);
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
        for (size_t i = 0; i < 2 && !soft; i++) {
            ND2_RESULT result;

            ok_uint(cq_get_results(cq, &result, 1), ==, 1);
            ok_status(result.Status, ND_SUCCESS);
        }
        unmake();
    }
}

/* Rejected: the kernel flushed the receives. They are posted again, in order, with their entries, and nobody saw it. */
TEST(replace__receives_survive)
{
    static char bytes[64];
    struct ibv_qp *before;
    struct fake_wr wr;
    struct notify n;

    make();
    for (uintptr_t i = 0; i < 3; i++) {
        ND2_SGE sge[2] = { { bytes + i, 5, 50 + (UINT32)i }, { bytes + 10 + i, 6, 60 } };

        ok_status(qp_receive(qp, rig_ctx(i), sge, (ULONG)i % 3), ND_SUCCESS);
    }
    rig_notify(cq, ND_CQ_NOTIFY_ANY, &n);
    before = qp_verbs(qp);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_fail(before);
    /* Some of the flushes are seen before the attempt is over, some after. */
    ok_no_result(cq);
    ok_int(qp_replace(qp), ==, 0);
    qp_unclaim(qp);
    rig_run();
    ok_pending(&n);
    ok_no_result(cq);
    ok_ptr(qp_verbs(qp), !=, before);
    ok_uint(qp_number(qp), ==, qp_verbs(qp)->qp_num);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 1);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_RECV), ==, 3);
    ok(fake_qp_wr(qp_verbs(qp), FAKE_RECV, 2, &wr));
    ok_int(wr.num_sge, ==, 2);
    ok_uint(wr.sge[0].addr, ==, (uintptr_t)bytes + 2);
    ok_uint(wr.sge[0].lkey, ==, 52);
    ok_uint(wr.sge[1].length, ==, 6);
    ok_status(rig_recv(qp, 3), ND_SUCCESS);
    ok_status(rig_recv(qp, 4), ND_NO_MORE_ENTRIES);
    /* A second attempt, which succeeds. */
    ok_status(qp_claim(qp), ND_SUCCESS);
    qp_set_connected(qp);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 4, IBV_WC_SUCCESS, 1);
    for (uintptr_t i = 0; i < 4; i++)
        ok_result(cq, Receive, i, ND_SUCCESS);
    rig_run();
    ok_done(&n, ND_SUCCESS);
    unmake();
}

static void post_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    ok_status(rig_recv(qp, 2), ND_SUCCESS);
}

/* A receive posted while the replacement is being made waits for it, in its place. */
TEST(replace__receive_posted_meanwhile)
{
    make();
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_fail(qp_verbs(qp));
    fake_on(FAKE_ibv_create_qp, post_hook, NULL);
    ok_int(qp_replace(qp), ==, 0);
    qp_unclaim(qp);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_RECV), ==, 2);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 2, IBV_WC_SUCCESS, 1);
    ok_result(cq, Receive, 1, ND_SUCCESS);
    ok_result(cq, Receive, 2, ND_SUCCESS);
    unmake();
}

static void flush_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    qp_close_posts(qp);
}

TEST(replace__closed_meanwhile)
{
    make();
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_fail(qp_verbs(qp));
    fake_on(FAKE_ibv_create_qp, flush_hook, NULL);
    ok_int(qp_replace(qp), ==, 0);
    ok_status(qp_flush(qp), ND_SUCCESS);
    rig_run();
    ok_result(cq, Receive, 1, ND_CANCELED);
    unmake();
}

static bool destroyed;

static void destroy_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    destroyed = true;
}

/* siw destroys a queue pair only once its connection manager has given the attempt up: that is a worker's to wait for, and
 * what is posted again goes to the new one meanwhile. */
TEST(replace__does_not_wait_for_the_kernel)
{
    make();
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    destroyed = false;
    fake_on(FAKE_ibv_destroy_qp, destroy_hook, NULL);
    ok_int(qp_replace(qp), ==, 0);
    qp_unclaim(qp);
    ok(!destroyed);
    ok_no_result(cq);
    ok_status(qp_claim(qp), ND_SUCCESS);
    qp_set_connected(qp);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 1);
    ok_result(cq, Receive, 1, ND_SUCCESS);
    rig_run();
    ok(destroyed);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 1);
    unmake();
}

/* A worker names it by its number: what was posted comes back, the device queue pair stays until the worker is through. */
TEST(release__while_the_device_is_held)
{
    make();
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    qp_hold_device(qp_ref(qp));
    destroyed = false;
    fake_on(FAKE_ibv_destroy_qp, destroy_hook, NULL);
    rig_drop(qp);
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_no_result(cq);
    rig_run();
    ok(!destroyed);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 1);
    qp_let_device(qp);
    qp_unref(qp);
    cq_unref(cq);
    rig_run();
    ok(destroyed);
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 0);
    rig_close(adapter);
}

/* Nobody released it: nothing is destroyed. */
TEST(let__of_a_living_queue_pair)
{
    make();
    ok_status(qp_claim(qp), ND_SUCCESS);
    qp_hold_device(qp);
    qp_let_device(qp);
    rig_run();
    ok_uint(fake_live(FAKE_OBJ_QP), ==, 1);
    qp_unclaim(qp);
    unmake();
}

/* No new queue pair to be had: the receives come back, once. */
TEST(replace__failures)
{
    for (int step = 0; step < 3; step++) {
        make();
        ok_status(rig_recv(qp, 1), ND_SUCCESS);
        ok_status(rig_recv(qp, 2), ND_SUCCESS);
        ok_status(qp_claim(qp), ND_SUCCESS);
        fake_qp_fail(qp_verbs(qp));
        ok_no_result(cq);
        if (step == 0)
            fake_fail(FAKE_ibv_create_qp, 1, ENOMEM);
        else if (step == 1)
            fake_fail(FAKE_ibv_modify_qp, 1, EINVAL);
        else
            fake_fail(FAKE_ibv_post_recv, 2, ENOMEM);
        ok_int(qp_replace(qp), !=, 0);
        qp_unclaim(qp);
        rig_advance(1100);
        ok_result(cq, Receive, 1, ND_CANCELED);
        ok_result(cq, Receive, 2, ND_CANCELED);
        ok_status(rig_recv(qp, 3), ND_SUCCESS);
        ok_result(cq, Receive, 3, ND_CANCELED);
        ok_int(qp_replace(qp), ==, EINVAL);
        unmake();
    }
}

/* Accepted, and closed by the peer, before we heard of either: what arrived is there, what was flushed comes back. */
TEST(connected__peer_already_gone)
{
    make();
    for (uintptr_t i = 0; i < 3; i++)
        ok_status(rig_recv(qp, i), ND_SUCCESS);
    ok_status(qp_claim(qp), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 1);
    fake_qp_fail(qp_verbs(qp));
    ok_result(cq, Receive, 0, ND_SUCCESS);
    ok_no_result(cq);
    qp_set_connected(qp);
    rig_run();
    ok_result(cq, Receive, 1, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    ok_status(rig_send(qp, 5, 0), ND_SUCCESS);
    ok_result(cq, Send, 5, ND_CANCELED);
    unmake();
}

/* The attempt failed and nobody tries again: Flush and Release get the receives back. */
TEST(failed__flushed_or_released_without_a_replacement)
{
    for (int flush = 0; flush < 2; flush++) {
        make();
        ok_status(rig_recv(qp, 1), ND_SUCCESS);
        ok_status(qp_claim(qp), ND_SUCCESS);
        fake_qp_fail(qp_verbs(qp));
        ok_no_result(cq);
        qp_unclaim(qp);
        if (flush)
            ok_status(qp_flush(qp), ND_SUCCESS);
        else
            qp_release(qp);
        ok_result(cq, Receive, 1, ND_CANCELED);
        unmake();
    }
}

/* IB-type queue pairs need none. */
TEST(replace__not_on_ib)
{
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 16);
    qp = rig_qp(adapter, cq, cq, 4);
    ok_int(qp_replace(qp), ==, EINVAL);
    rig_run();
    unmake();
}

/* ---- a post that finds the connection on its way out ---- */

static int (*post_send)(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static bool connected;
static int refusal;

/* siw: in the ring, and the kernel that was told of it says no. */
static int post_send_late(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    int error = post_send(verbs, wr, bad);

    *bad = NULL;
    return error || connected ? error : refusal;
}

static void make_late(int error)
{
    refusal = error;
    make_connected();
    post_send = qp_verbs(qp)->context->ops.post_send;
    qp_verbs(qp)->context->ops.post_send = post_send_late;
    connected = true;
    ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    connected = false;
}

static void ok_sends_cancelled(uintptr_t count)
{
    for (uintptr_t i = 1; i <= count; i++)
        ok_result(cq, Send, i, ND_CANCELED);
    ok_no_result(cq);
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_ERR);
    qp_verbs(qp)->context->ops.post_send = post_send;
    unmake();
}

TEST(post__late_and_flushed)
{
    make_late(ENOTCONN);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS); /* not for the device any more */
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, 2);
    rig_run();
    ok_sends_cancelled(3);
}

/* The kernel refuses what is at the ring's head, and leaves it there. */
TEST(post__stays_at_the_head)
{
    make_late(EINVAL);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, 2);
    rig_run();
    ok_sends_cancelled(3);
}

TEST(post__batch_stays_at_the_head)
{
    make_late(EINVAL);
    qp_batch_start(qp);
    for (uintptr_t i = 2; i <= 3; i++)
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, 3);
    rig_run();
    ok_sends_cancelled(3);
}

/* The kernel had flushed the ring already. */
TEST(post__late_and_lost)
{
    make_late(ENOTCONN);
    fake_auto_flush(false);
    ok_status(rig_send(qp, 2, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 3, 0), ND_SUCCESS);
    rig_run();
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_WR_FLUSH_ERR, 0);
    rig_advance(900);
    rig_advance(900);
    rig_advance(101);
    ok_sends_cancelled(3);
}

TEST(post__late_batch)
{
    make_late(ENOTCONN);
    qp_batch_start(qp);
    for (uintptr_t i = 2; i <= 3; i++)
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
    qp_batch_submit(qp);
    ok_uint(fake_qp_posted(qp_verbs(qp), FAKE_SEND), ==, 3);
    ok_status(rig_send(qp, 4, 0), ND_SUCCESS);
    rig_run();
    ok_sends_cancelled(4);
}
