/* SPDX-License-Identifier: MIT */
/* Completion queues: what a completion says, Notify and BatchNotify. */
#include "rig.h"

#include <arpa/inet.h>

static IWVConnectQueuePair *qp;
static struct ibv_qp *verbs;
static char memory[256];
static WV_SGE sge;

SETUP
{
    rig_setup();
    qp = rig_qp();
    verbs = rig_newest_qp();
    rig_to(qp, WvQpStateRts);
    sge.pAddress = memory;
    sge.Length = 16;
    sge.Lkey = 0x1234;
}

TEARDOWN
{
    rig_release(qp);
    rig_teardown();
}

static void receives(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ok_status(CALL(qp, PostReceive, 100 + i, &sge, 1), WV_SUCCESS);
}

static void arrive(unsigned n)
{
    ok_uint(fake_qp_complete(verbs, FAKE_RECV, n, IBV_WC_SUCCESS, 16), ==, n);
}

TEST(Poll__everything_the_device_says)
{
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS,
                         .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                         .byte_len = 99,
                         .imm_data = htonl(0x11223344),
                         .src_qp = 0x567,
                         .wc_flags = IBV_WC_WITH_IMM | IBV_WC_GRH,
                         .pkey_index = 3,
                         .slid = 0x1357,
                         .sl = 5,
                         .dlid_path_bits = 2,
                         .vendor_err = 0 };
    WV_COMPLETION completion[2];

    receives(1);
    ok_uint(fake_qp_complete_wc(verbs, FAKE_RECV, &wc, false), ==, 1);
    ok_uint(CALL(cq, Poll, completion, 2), ==, 1);
    ok_ptr(completion->QpContext, ==, (void *)0x5150);
    ok_uint(completion->WrId, ==, 100);
    ok_int(completion->Opcode, ==, WvReceiveRdmaWrite);
    ok(completion->Opcode & WvReceive);
    ok_uint(completion->Length, ==, 99);
    ok_int(completion->Status, ==, WvWcSuccess);
    ok_uint(completion->Flags, ==, WV_WC_IMMEDIATE | WV_WC_GRH_VALID);
    ok_uint(completion->ImmediateData, ==, htonl(0x11223344));
    ok_uint(completion->SourceQpn, ==, htonl(0x567));
    ok_uint(completion->PkeyIndex, ==, 3);
    ok_uint(completion->SLid, ==, htons(0x1357));
    ok_uint(completion->SL, ==, 5);
    ok_uint(completion->DLidPathBits, ==, 2);
    ok_uint(CALL(cq, Poll, completion, 2), ==, 0);
    ok_uint(CALL(cq, Poll, NULL, 2), ==, 0);
    ok_uint(CALL(cq, Poll, completion, 0), ==, 0);
}

/* The same when the result has been in the stash meanwhile. */
TEST(Poll__details_survive_the_stash)
{
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = 7, .src_qp = 0x99 };
    WV_COMPLETION completion;
    SIZE_T count;

    receives(1);
    ok_uint(fake_qp_complete_wc(verbs, FAKE_RECV, &wc, false), ==, 1);
    ok_status(CALL(cq, Peek, &count), WV_SUCCESS);
    ok_uint(count, ==, 1);
    ok_uint(fake_cq_entries(verbs->recv_cq), ==, 0);
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 1);
    ok_uint(completion.SourceQpn, ==, htonl(0x99));
    ok_uint(completion.Length, ==, 7);
    ok_status(CALL(cq, Peek, &count), WV_SUCCESS);
    ok_uint(count, ==, 0);
    ok_status(CALL(cq, Peek, NULL), WV_INVALID_PARAMETER);
}

/* Each kind of request but Bind, which needs a window: test_window.c. */
static const struct kind {
    WV_OPCODE opcode;
    enum fake_queue queue;
} kinds[] = {
    { WvSend, FAKE_SEND },      { WvReceive, FAKE_RECV },         { WvRdmaRead, FAKE_SEND },
    { WvRdmaWrite, FAKE_SEND }, { WvCompareExchange, FAKE_SEND }, { WvFetchAdd, FAKE_SEND },
};

static HRESULT post_kind(IWVConnectQueuePair *own, const struct kind *kind)
{
    WV_SGE eight = { .pAddress = memory, .Length = 8, .Lkey = 0x1234 };

    switch (kind->opcode) {
    case WvSend:
        return CALL(own, Send, 55, &sge, 1, WV_SEND_SIGNALED, 0);
    case WvReceive:
        return CALL(own, PostReceive, 55, &sge, 1);
    case WvRdmaRead:
        return CALL(own, Read, 55, &sge, 1, WV_SEND_SIGNALED, 0, 0);
    case WvRdmaWrite:
        return CALL(own, Write, 55, &sge, 1, WV_SEND_SIGNALED, 0, 0, 0);
    case WvCompareExchange:
        return CALL(own, CompareExchange, 55, &eight, WV_SEND_SIGNALED, 0, 0, 0, 0);
    default:
        return CALL(own, FetchAdd, 55, &eight, WV_SEND_SIGNALED, 0, 0, 0);
    }
}

static void fails_with(const struct kind *kind, enum ibv_wc_status ibv, WV_WC_STATUS wv)
{
    IWVConnectQueuePair *own = rig_qp();
    struct ibv_qp *own_verbs = rig_newest_qp();
    WV_COMPLETION completion;

    rig_to(own, WvQpStateRts);
    ok_status(post_kind(own, kind), WV_SUCCESS);
    ok_uint(fake_qp_complete(own_verbs, kind->queue, 1, ibv, 0), ==, 1);
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 1);
    ok_int(completion.Status, ==, wv);
    ok_int(completion.Opcode, ==, kind->opcode);
    ok_uint(completion.WrId, ==, 55);
    rig_release(own);
    while (CALL(cq, Poll, &completion, 1))
        ;
}

TEST(Poll__each_status)
{
    static const struct {
        enum ibv_wc_status ibv;
        WV_WC_STATUS wv;
    } statuses[] = {
        { IBV_WC_LOC_LEN_ERR, WvWcLocalLengthError },
        { IBV_WC_LOC_QP_OP_ERR, WvWcLocalOpError },
        { IBV_WC_LOC_EEC_OP_ERR, WvWcLocalOpError },
        { IBV_WC_LOC_PROT_ERR, WvWcLocalProtectionError },
        { IBV_WC_WR_FLUSH_ERR, WvWcFlushed },
        { IBV_WC_MW_BIND_ERR, WvWcMwBindError },
        { IBV_WC_BAD_RESP_ERR, WvWcBadResponse },
        { IBV_WC_LOC_ACCESS_ERR, WvWcLocalAccessError },
        { IBV_WC_REM_INV_REQ_ERR, WvWcRemoteInvalidRequest },
        { IBV_WC_REM_ACCESS_ERR, WvWcRemoteAccessError },
        { IBV_WC_REM_OP_ERR, WvWcRemoteOpError },
        { IBV_WC_RETRY_EXC_ERR, WvWcTimeoutRetryError },
        { IBV_WC_RNR_RETRY_EXC_ERR, WvWcRnrRetryError },
        { IBV_WC_REM_INV_RD_REQ_ERR, WvWcRemoteInvalidRequest },
        { IBV_WC_REM_ABORT_ERR, WvWcRemoteOpError },
        { IBV_WC_RESP_TIMEOUT_ERR, WvWcTimeoutRetryError },
        { IBV_WC_FATAL_ERR, WvWcError },
        { IBV_WC_GENERAL_ERR, WvWcError },
    };

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            fails_with(&kinds[k], statuses[i].ibv, statuses[i].wv);
}

/* Verbs do not tell the direction of what failed or was flushed; we do. */
TEST(Poll__direction_of_flushes)
{
    WV_QP_ATTRIBUTES error = { .QpState = WvQpStateError };
    WV_COMPLETION completion[8];
    unsigned sends = 0, received = 0;

    receives(2);
    ok_status(CALL(qp, Send, 1, &sge, 1, 0, 0), WV_SUCCESS);
    ok_status(CALL(qp, Write, 2, &sge, 1, 0, 0, 0, 0), WV_SUCCESS);
    ok_status(CALL(qp, Modify, &error, 0, NULL), WV_SUCCESS);
    ok_status(CALL(qp, Send, 3, &sge, 1, 0, 0), WV_SUCCESS); /* as verbs: comes back flushed */
    ok_status(CALL(qp, PostReceive, 102, &sge, 1), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 8), ==, 6);
    for (int i = 0; i < 6; i++) {
        ok_int(completion[i].Status, ==, WvWcFlushed);
        ok_ptr(completion[i].QpContext, ==, (void *)0x5150);
        if (completion[i].Opcode & WvReceive) {
            ok_uint(completion[i].WrId, ==, 100 + received++);
        } else {
            sends++;
            ok_uint(completion[i].WrId, ==, sends);
            ok_int(completion[i].Opcode, ==, sends == 2 ? WvRdmaWrite : WvSend);
        }
    }
    ok_uint(sends, ==, 3);
    ok_uint(received, ==, 3);
}

TEST(Poll__more_than_a_batch)
{
    WV_COMPLETION completion[64];
    SIZE_T got;

    for (unsigned round = 0; round < 5; round++) {
        receives(8);
        arrive(8);
    }
    got = CALL(cq, Poll, completion, 33);
    ok_uint(got, ==, 33);
    got = CALL(cq, Poll, completion, 64);
    ok_uint(got, ==, 7);
}

/* ---- Notify ---- */

TEST(Notify__next_and_solicited_together)
{
    OVERLAPPED next = rig_overlapped(), solicited = rig_overlapped(), error = rig_overlapped();
    WV_COMPLETION completion;

    ok_status(CALL(cq, Notify, WvCqError, &error), WV_IO_PENDING);
    ok_status(CALL(cq, Notify, WvCqSolicited, &solicited), WV_IO_PENDING);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_int(fake_cq_armed(verbs->recv_cq), ==, FAKE_ARM_ANY);
    receives(1);
    arrive(1);
    ok_status(CALL(cq, GetOverlappedResult, &next, NULL, TRUE), WV_SUCCESS);
    ok_status(CALL(cq, GetOverlappedResult, &solicited, NULL, TRUE), WV_SUCCESS);
    ok_io_pending(&error);
    ok_uint(CALL(cq, Poll, &completion, 1), ==, 1);
    ok_status(CALL(cq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(cq, GetOverlappedResult, &error, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(cq, Notify, (WV_CQ_NOTIFY_TYPE)3, &next), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, Notify, (WV_CQ_NOTIFY_TYPE)-1, &next), WV_INVALID_PARAMETER);
}

static DWORD WINAPI arrive_later(void *argument)
{
    (void)argument;
    arrive(1);
    return 0;
}

TEST(Notify__waits_without_overlapped)
{
    HANDLE thread;

    receives(1);
    thread = CreateThread(NULL, 0, arrive_later, NULL, 0, NULL);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, NULL), WV_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
}

TEST(Notify__queue_overrun)
{
    OVERLAPPED next = rig_overlapped(), error = rig_overlapped();

    ok_status(CALL(cq, Notify, WvCqError, &error), WV_IO_PENDING);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    fake_async_cq(verbs->recv_cq, IBV_EVENT_CQ_ERR);
    ok_status(CALL(cq, GetOverlappedResult, &error, NULL, TRUE), STATUS_UNEXPECTED_IO_ERROR);
    ok_status(CALL(cq, GetOverlappedResult, &next, NULL, TRUE), STATUS_UNEXPECTED_IO_ERROR);
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &next), STATUS_UNEXPECTED_IO_ERROR);
}

TEST(Notify__release_cancels)
{
    IWVCompletionQueue *own;
    OVERLAPPED next = rig_overlapped(), batch = rig_overlapped();
    SIZE_T entries = 4;

    ok_status(CALL(device, CreateCompletionQueue, &entries, &own), WV_SUCCESS);
    ok_status(CALL(own, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_status(CALL(own, BatchNotify, 2, &batch), WV_IO_PENDING);
    rig_release(own);
    ok_status(CALL(cq, GetOverlappedResult, &next, NULL, FALSE), WV_CANCELLED);
    ok_status(CALL(cq, GetOverlappedResult, &batch, NULL, FALSE), WV_CANCELLED);
}

/* ---- BatchNotify ---- */

TEST(BatchNotify__fires_at_the_count)
{
    OVERLAPPED three = rig_overlapped(), five = rig_overlapped(), next = rig_overlapped();
    WV_COMPLETION completion[8];

    receives(8);
    ok_status(CALL(cq, BatchNotify, 3, &three), WV_IO_PENDING);
    ok_status(CALL(cq, BatchNotify, 5, &five), WV_IO_PENDING);
    arrive(1);
    ok_eventually(fake_cq_entries(verbs->recv_cq) == 0 && fake_cq_armed(verbs->recv_cq) == FAKE_ARM_ANY);
    ok_io_pending(&three);
    arrive(1);
    ok_eventually(fake_cq_entries(verbs->recv_cq) == 0 && fake_cq_armed(verbs->recv_cq) == FAKE_ARM_ANY);
    ok_io_pending(&three);
    arrive(1);
    ok_status(CALL(cq, GetOverlappedResult, &three, NULL, TRUE), WV_SUCCESS);
    ok_io_pending(&five);
    /* Another kind of Notify neither disturbs nor is disturbed. */
    ok_status(CALL(cq, Notify, WvCqNextCompletion, &next), WV_IO_PENDING);
    ok_status(CALL(cq, GetOverlappedResult, &next, NULL, TRUE), WV_SUCCESS);
    ok_io_pending(&five);
    arrive(2);
    ok_status(CALL(cq, GetOverlappedResult, &five, NULL, TRUE), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 8), ==, 5);
}

TEST(BatchNotify__at_once_and_arguments)
{
    OVERLAPPED ov = rig_overlapped();
    WV_COMPLETION completion[8];

    receives(4);
    arrive(4);
    ok_status(CALL(cq, BatchNotify, 4, &ov), WV_IO_PENDING);
    ok_status(CALL(cq, GetOverlappedResult, &ov, NULL, FALSE), WV_SUCCESS);
    ok_status(CALL(cq, BatchNotify, 2, NULL), WV_SUCCESS);
    ok_uint(CALL(cq, Poll, completion, 8), ==, 4);
    ok_status(CALL(cq, BatchNotify, 0, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, BatchNotify, 65, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, BatchNotify, (SIZE_T)-1, &ov), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, BatchNotify, 64, &ov), WV_IO_PENDING);
    ok_status(CALL(cq, CancelOverlappedRequests), WV_SUCCESS);
    ok_status(CALL(cq, GetOverlappedResult, &ov, NULL, FALSE), WV_CANCELLED);
}

TEST(Resize__in_and_out)
{
    WV_DEVICE_ATTRIBUTES attributes;
    SIZE_T entries = 128;

    ok_status(CALL(cq, Resize, &entries), WV_SUCCESS);
    ok_uint(entries, >=, 128);
    receives(8);
    arrive(8);
    entries = 2;
    ok_status(CALL(cq, Resize, &entries), WV_BUFFER_OVERFLOW);
    entries = 0;
    ok_status(CALL(cq, Resize, &entries), WV_INVALID_PARAMETER);
    ok_status(CALL(cq, Resize, NULL), WV_INVALID_PARAMETER);
    ok_status(CALL(device, Query, &attributes), WV_SUCCESS);
    entries = attributes.MaxCqEntries + 1;
    ok_status(CALL(cq, Resize, &entries), WV_INSUFFICIENT_RESOURCES);
}
