/* SPDX-License-Identifier: MIT */

/* Posting: what the device gets, and the status of each bad call. */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;
static char bytes[4096];

static void make(uint32_t depth)
{
    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 64);
    qp = rig_qp(adapter, cq, cq, depth);
}

static void unmake(void)
{
    ND2_RESULT results[16];

    rig_drop(qp);
    while (cq_get_results(cq, results, 16))
        ;
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

static const struct fake_wr *last(enum fake_fn fn)
{
    return &fake_log_find(fn, -1)->arg.wr;
}

/* As the application gave them: no copy is made where the layouts are the same, which they are not for 32 bits. */
static void ok_entries(const struct fake_wr *wr, const ND2_SGE *sge, int n)
{
    ok_int(wr->num_sge, ==, n);
    for (int i = 0; i < n; i++) {
        ok_uint(wr->sge[i].addr, ==, (uintptr_t)sge[i].Buffer);
        ok_uint(wr->sge[i].length, ==, sge[i].BufferLength);
        ok_uint(wr->sge[i].lkey, ==, sge[i].MemoryRegionToken);
    }
}

TEST(Send__what_the_device_gets)
{
    static const struct {
        uint32_t flags;
        unsigned device;
    } rows[] = {
        { 0, IBV_SEND_SIGNALED },
        { ND_OP_FLAG_READ_FENCE, IBV_SEND_SIGNALED | IBV_SEND_FENCE },
        { ND_OP_FLAG_SEND_AND_SOLICIT_EVENT, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED },
        { ND_OP_FLAG_INLINE, IBV_SEND_SIGNALED | IBV_SEND_INLINE },
        { ND_OP_FLAG_SILENT_SUCCESS, 0 },
        { ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT | ND_OP_FLAG_INLINE,
          IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE },
    };
    ND2_SGE sge[2] = { { bytes, 10, 0x1234 }, { bytes + 20, 30, 0x5678 } };

    make(16);
    rig_connect(qp);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct fake_wr *wr;

        ok_status(qp_send(qp, rig_ctx(i), sge, 2, rows[i].flags), ND_SUCCESS);
        wr = last(FAKE_ibv_post_send);
        ok_int(wr->opcode, ==, IBV_WR_SEND);
        ok_uint(wr->send_flags, ==, rows[i].device);
        ok_entries(wr, sge, 2);
    }
    unmake();
}

/* tests/lists: D80. */
TEST(ReadWrite__what_the_device_gets)
{
    ND2_SGE sge = { bytes, 100, 7 };
    const struct fake_wr *wr;

    make(16);
    rig_connect(qp);
    ok_status(qp_read(qp, NULL, &sge, 1, 0x123456789abcdef0, htonl(0x11223344), ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    wr = last(FAKE_ibv_post_send);
    ok_int(wr->opcode, ==, IBV_WR_RDMA_READ);
    ok_uint(wr->send_flags, ==, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    ok_uint(wr->remote_addr, ==, 0x123456789abcdef0);
    ok_uint(wr->rkey, ==, 0x11223344);
    ok_status(qp_write(qp, NULL, &sge, 1, 0x40, htonl(0x55667788), ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    wr = last(FAKE_ibv_post_send);
    ok_int(wr->opcode, ==, IBV_WR_RDMA_WRITE);
    ok_uint(wr->send_flags, ==, 0);
    ok_uint(wr->remote_addr, ==, 0x40);
    ok_uint(wr->rkey, ==, 0x55667788);
    ok_entries(wr, &sge, 1);
    unmake();
}

TEST(Receive__what_the_device_gets)
{
    ND2_SGE sge[3] = { { bytes, 1, 1 }, { bytes + 1, 2, 2 }, { bytes + 3, 3, 3 } };
    const struct fake_wr *wr;

    make(16);
    ok_status(qp_receive(qp, rig_ctx(1), sge, 3), ND_SUCCESS);
    wr = last(FAKE_ibv_post_recv);
    ok_entries(wr, sge, 3);
    ok_status(qp_receive(qp, rig_ctx(2), NULL, 0), ND_SUCCESS);
    ok_int(last(FAKE_ibv_post_recv)->num_sge, ==, 0);
    unmake();
}

/* Every flag bit alone and its complement, per method. */
TEST(flags__table)
{
    static const uint32_t send =
        ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT | ND_OP_FLAG_INLINE;
    static const uint32_t read = ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE;
    static const uint32_t write = ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_INLINE;

    make(64);
    /* Flags are looked at before the state. */
    ok_status(qp_send(qp, NULL, NULL, 0, 0x40), ND_INVALID_PARAMETER_4);
    ok_status(qp_read(qp, NULL, NULL, 0, 0, 0, 0x40), ND_INVALID_PARAMETER_6);
    ok_status(qp_write(qp, NULL, NULL, 0, 0, 0, 0x40), ND_INVALID_PARAMETER_6);
    rig_connect(qp);
    for (uint32_t bit = 0; bit < 32; bit++) {
        uint32_t flag = 1u << bit;

        ok_status(qp_send(qp, NULL, NULL, 0, flag), flag & send ? ND_SUCCESS : ND_INVALID_PARAMETER_4);
        ok_status(qp_read(qp, NULL, NULL, 0, 0, 0, flag), flag & read ? ND_SUCCESS : ND_INVALID_PARAMETER_6);
        ok_status(qp_write(qp, NULL, NULL, 0, 0, 0, flag), flag & write ? ND_SUCCESS : ND_INVALID_PARAMETER_6);
    }
    ok_status(qp_send(qp, NULL, NULL, 0, send), ND_SUCCESS);
    ok_status(qp_read(qp, NULL, NULL, 0, 0, 0, read), ND_SUCCESS);
    ok_status(qp_write(qp, NULL, NULL, 0, 0, 0, write), ND_SUCCESS);
    ok_status(qp_send(qp, NULL, NULL, 0, send | ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_4);
    unmake();
}

TEST(post__never_connected)
{
    ND2_SGE sge = { bytes, 8, 1 };

    make(4);
    for (int i = 0; i < 10; i++) {
        ok_status(qp_send(qp, NULL, &sge, 1, 0), ND_CONNECTION_INVALID);
        ok_status(qp_send(qp, NULL, &sge, 1, ND_OP_FLAG_INLINE | ND_OP_FLAG_SILENT_SUCCESS), ND_CONNECTION_INVALID);
        ok_status(qp_read(qp, NULL, &sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
        ok_status(qp_write(qp, NULL, &sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    }
    /* A send that rxe gets too early is refused and transmitted later. */
    ok_uint(fake_count(FAKE_ibv_post_send), ==, 0);
    ok_status(qp_receive(qp, NULL, &sge, 1), ND_SUCCESS);
    rig_connect(qp);
    ok_status(qp_send(qp, NULL, &sge, 1, 0), ND_SUCCESS);
    unmake();
}

/* One entry was asked for: at least four are there, and the limit is the real one (A44). */
TEST(sge__capacity_is_rounded_up)
{
    ND2_SGE sge[64];
    uint32_t most;

    memset(sge, 0, sizeof(sge));
    make(16);
    rig_connect(qp);
    most = adapter->limits.max_send_sge;
    ok_uint(most, <, 64);
    for (uint32_t n = 0; n <= 4; n++) {
        ok_status(qp_send(qp, NULL, sge, n, 0), ND_SUCCESS);
        ok_status(qp_receive(qp, NULL, sge, n), ND_SUCCESS);
    }
    ok_status(qp_send(qp, NULL, sge, most + 1, 0), ND_DATA_OVERRUN);
    ok_status(qp_write(qp, NULL, sge, most + 1, 0, 0, 0), ND_DATA_OVERRUN);
    ok_status(qp_read(qp, NULL, sge, most + 1, 0, 0, 0), ND_DATA_OVERRUN);
    ok_status(qp_receive(qp, NULL, sge, 33), ND_DATA_OVERRUN);
    ok_status(qp_send(qp, NULL, sge, ~0u, 0), ND_DATA_OVERRUN);
    ok_status(qp_send(qp, NULL, NULL, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(qp_receive(qp, NULL, NULL, 1), ND_INVALID_PARAMETER_2);
    ok_status(qp_send(qp, NULL, NULL, 60, ND_OP_FLAG_INLINE), ND_INVALID_PARAMETER_2);
    /* The queue pair is still usable. */
    ok_status(qp_send(qp, NULL, sge, 4, 0), ND_SUCCESS);
    unmake();
}

TEST(length__beyond_the_limit_and_beyond_32_bits)
{
    ND2_SGE sge[4];
    uint32_t most;

    make(16);
    rig_connect(qp);
    most = adapter->limits.max_transfer;
    memset(sge, 0, sizeof(sge));
    sge[0].BufferLength = most;
    ok_status(qp_send(qp, NULL, sge, 4, 0), ND_SUCCESS);
    ok_status(qp_receive(qp, NULL, sge, 4), ND_SUCCESS);
    sge[3].BufferLength = 1;
    ok_status(qp_send(qp, NULL, sge, 4, 0), ND_BUFFER_OVERFLOW);
    ok_status(qp_read(qp, NULL, sge, 4, 0, 0, 0), ND_BUFFER_OVERFLOW);
    ok_status(qp_write(qp, NULL, sge, 4, 0, 0, 0), ND_BUFFER_OVERFLOW);
    ok_status(qp_receive(qp, NULL, sge, 4), ND_BUFFER_OVERFLOW);
    /* Sums that a 32-bit counter would find small. */
    for (int i = 0; i < 4; i++)
        sge[i].BufferLength = 0x40000000;
    ok_status(qp_send(qp, NULL, sge, 4, 0), ND_BUFFER_OVERFLOW);
    ok_status(qp_send(qp, NULL, sge, 4, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    ok_status(qp_receive(qp, NULL, sge, 4), ND_BUFFER_OVERFLOW);
    unmake();
}

TEST(inline__exactly_the_limit)
{
    ND2_SGE sge = { bytes, 64, 0xdeadbeef };

    make(16);
    rig_connect(qp);
    ok_status(qp_send(qp, NULL, &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_status(qp_write(qp, NULL, &sge, 1, 0, 0, ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_uint(last(FAKE_ibv_post_send)->send_flags & IBV_SEND_INLINE, !=, 0);
    sge.BufferLength = 65;
    ok_status(qp_send(qp, NULL, &sge, 1, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    ok_status(qp_write(qp, NULL, &sge, 1, 0, 0, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    /* Without a byte there is nothing to copy. */
    sge.BufferLength = 0;
    ok_status(qp_send(qp, NULL, &sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_status(qp_send(qp, NULL, NULL, 0, ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_int(last(FAKE_ibv_post_send)->num_sge, ==, 0);
    ok_uint(last(FAKE_ibv_post_send)->send_flags, ==, IBV_SEND_SIGNALED);
    unmake();
}

static char seen[64];
static uint32_t seen_length;

static void copy_hook(struct fake_call *call, void *arg)
{
    const struct ibv_sge *sge = &call->arg.wr.sge[0];

    (void)arg;
    ok_int(call->arg.wr.num_sge, ==, 1);
    seen_length = sge->length;
    memcpy(seen, (const void *)(uintptr_t)sge->addr, sge->length);
}

/* More entries than the queue pair has, from memory that nobody registered. */
TEST(inline__gathers)
{
    ND2_SGE sge[50];
    char expected[50];

    make(16);
    rig_connect(qp);
    ok_uint(adapter->limits.max_send_sge, <, 50);
    for (unsigned i = 0; i < 50; i++) {
        expected[i] = bytes[i * 3] = (char)(i + 1);
        sge[i].Buffer = bytes + i * 3;
        sge[i].BufferLength = 1;
        sge[i].MemoryRegionToken = 0xbad;
    }
    sge[7].BufferLength = 0;
    sge[7].Buffer = NULL;
    memmove(expected + 7, expected + 8, 42);
    fake_on(FAKE_ibv_post_send, copy_hook, NULL);
    ok_status(qp_send(qp, rig_ctx(5), sge, 50, ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_uint(seen_length, ==, 49);
    ok_mem(seen, expected, 49);
    fake_on(FAKE_ibv_post_send, copy_hook, NULL);
    ok_status(qp_write(qp, rig_ctx(6), sge, 50, 0x77, htonl(9), ND_OP_FLAG_INLINE), ND_SUCCESS);
    ok_uint(last(FAKE_ibv_post_send)->remote_addr, ==, 0x77);
    sge[0].BufferLength = 16;
    ok_status(qp_send(qp, NULL, sge, 50, ND_OP_FLAG_INLINE), ND_SUCCESS);
    sge[0].BufferLength = 17;
    ok_status(qp_send(qp, NULL, sge, 50, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 3, IBV_WC_SUCCESS, 0);
    ok_result(cq, Send, 5, ND_SUCCESS);
    ok_result(cq, Write, 6, ND_SUCCESS);
    unmake();
}

TEST(full__exactly_the_depth)
{
    for (uint32_t depth = 0; depth <= 9; depth++) {
        make(depth);
        rig_connect(qp);
        for (uint32_t i = 0; i < depth; i++) {
            ok_status(rig_send(qp, i, 0), ND_SUCCESS);
            ok_status(rig_recv(qp, i), ND_SUCCESS);
        }
        for (int i = 0; i < 3; i++) {
            ok_status(rig_send(qp, 99, 0), ND_NO_MORE_ENTRIES);
            ok_status(rig_recv(qp, 99), ND_NO_MORE_ENTRIES);
        }
        ok_uint(fake_count(FAKE_ibv_post_send), ==, depth);
        ok_uint(fake_count(FAKE_ibv_post_recv), ==, depth);
        unmake();
        fake_reset_script();
    }
}

/* What the device has finished no longer fills the queue, even if nobody has taken the result. */
TEST(full__completed_requests_make_room)
{
    make(4);
    rig_connect(qp);
    for (uintptr_t i = 0; i < 4; i++)
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
    ok_status(rig_send(qp, 4, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 5, 0), ND_SUCCESS);
    ok_status(rig_send(qp, 6, 0), ND_NO_MORE_ENTRIES);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
    for (uintptr_t i = 0; i < 6; i++)
        ok_result(cq, Send, i, ND_SUCCESS);
    ok_no_result(cq);
    unmake();
}

TEST(post__foreign_failures)
{
    static const struct {
        int error;
        HRESULT status;
    } rows[] = { { ENOMEM, ND_NO_MORE_ENTRIES }, { EINVAL, ND_UNSUCCESSFUL }, { EIO, ND_UNSUCCESSFUL } };
    ND2_SGE sge = { bytes, 1, 1 };

    for (int negative = 0; negative < 2; negative++) {
        fake_device_quirks("fake_ib", negative ? FAKE_QUIRK_NEGATIVE_POST : 0);
        make(4);
        rig_connect(qp);
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            fake_fail(FAKE_ibv_post_send, 1, rows[i].error);
            ok_status(rig_send(qp, 50, 0), rows[i].status);
            fake_fail(FAKE_ibv_post_recv, 1, rows[i].error);
            ok_status(qp_receive(qp, rig_ctx(50), &sge, 1), rows[i].status);
        }
        /* No slot is lost. */
        for (uintptr_t i = 0; i < 4; i++) {
            ok_status(rig_send(qp, i, 0), ND_SUCCESS);
            ok_status(rig_recv(qp, 10 + i), ND_SUCCESS);
        }
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
        fake_qp_complete(qp_verbs(qp), FAKE_RECV, 4, IBV_WC_SUCCESS, 0);
        for (uintptr_t i = 0; i < 4; i++)
            ok_result(cq, Send, i, ND_SUCCESS);
        for (uintptr_t i = 0; i < 4; i++)
            ok_result(cq, Receive, 10 + i, ND_SUCCESS);
        unmake();
    }
}

/* The receiver of a completion may be another thread that polls while the post is still inside the provider. */
static void complete_hook(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Send, 1, ND_SUCCESS);
}

TEST(post__completed_before_the_post_returns)
{
    make(2);
    rig_connect(qp);
    for (int i = 0; i < 9; i++) {
        fake_after(FAKE_ibv_post_send, complete_hook, NULL);
        ok_status(rig_send(qp, 1, 0), ND_SUCCESS);
    }
    ok_no_result(cq);
    unmake();
}

/* A region goes while requests name it: exactly the queue pairs whose device still has such a request end. */
TEST(fail_users__only_those_with_the_key_posted)
{
    ND2_SGE sge[2] = { { bytes, 4, 0x500 }, { bytes, 4, 0x600 } };
    struct qp *other;

    make(4);
    other = rig_qp(adapter, cq, cq, 4);
    rig_connect(qp);
    rig_connect(other);
    ok_status(qp_send(qp, rig_ctx(1), sge, 1, 0), ND_SUCCESS);
    ok_status(qp_receive(other, rig_ctx(2), sge + 1, 1), ND_SUCCESS);
    ok_status(qp_send(other, rig_ctx(3), sge, 1, ND_OP_FLAG_INLINE), ND_SUCCESS);
    qp_fail_users(adapter, 0x700);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Send, 1, ND_SUCCESS);
    qp_fail_users(adapter, 0x500);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_RTS);
    ok_int(fake_qp_state(qp_verbs(other)), ==, IBV_QPS_RTS);
    qp_fail_users(adapter, 0x600);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_RTS);
    ok_int(fake_qp_state(qp_verbs(other)), ==, IBV_QPS_ERR);
    /* The device is done with a request whose result nobody has taken yet. */
    ok_result(cq, Send, 3, ND_CANCELED);
    ok_result(cq, Receive, 2, ND_CANCELED);
    ok_status(qp_send(qp, rig_ctx(4), sge, 1, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(qp), FAKE_SEND, 1, IBV_WC_SUCCESS, 0);
    qp_fail_users(adapter, 0x500);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_RTS);
    ok_result(cq, Send, 4, ND_SUCCESS);
    /* Several entries: their keys are not told, so any may be meant. */
    ok_status(qp_send(qp, rig_ctx(4), sge, 2, 0), ND_SUCCESS);
    qp_fail_users(adapter, 0x900);
    rig_run();
    ok_int(fake_qp_state(qp_verbs(qp)), ==, IBV_QPS_ERR);
    rig_drop(other);
    unmake();
}

/* siw refuses a receive without entries: it gets one without a byte. */
TEST(Receive__without_entries_on_siw)
{
    make(4);
    fake_fail(FAKE_ibv_post_recv, 1, EINVAL);
    ok_status(rig_recv(qp, 1), ND_SUCCESS);
    ok_int(last(FAKE_ibv_post_recv)->num_sge, ==, 1);
    ok_uint(last(FAKE_ibv_post_recv)->sge[0].length, ==, 0);
    fake_qp_complete(qp_verbs(qp), FAKE_RECV, 1, IBV_WC_SUCCESS, 0);
    ok_result(cq, Receive, 1, ND_SUCCESS);
    fake_fail(FAKE_ibv_post_recv, 1, EINVAL);
    fake_fail(FAKE_ibv_post_recv, 2, EINVAL);
    ok_status(rig_recv(qp, 1), ND_UNSUCCESSFUL);
    unmake();
}
