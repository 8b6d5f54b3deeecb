/* SPDX-License-Identifier: MIT */

/* INDEndpoint and what comes back through INDCompletionQueue: ndspi-v1.md sections 6 and 8. */

#include "side.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>

static struct side s, peer;
static ND_RESULT results[32];

SETUP
{
    front_setup();
    fake_wire(true);
    memset(results, 0, sizeof(results));
    side_open(&s, "10.1.1.1");
    side_open(&peer, "10.1.1.1");
}

TEARDOWN
{
    side_close(&s);
    side_close(&peer);
    front_teardown();
}

static struct ibv_qp *device_qp(void)
{
    return fake_object(FAKE_OBJ_QP, 0); /* the client's is made first */
}

static const struct fake_wr *last_send(void)
{
    return &fake_log_find(FAKE_ibv_post_send, -1)->arg.wr;
}

TEST(CreateEndpoint__rows)
{
    INDAdapter *other = side_adapter("10.1.1.1");
    INDEndpoint *out = (void *)other;
    INDCompletionQueue *foreign;
    ND_ADAPTER_INFO info;
    SIZE_T size = sizeof(info), inlined = 0;

    ok_status(CALL(other, CreateCompletionQueue, 4, &foreign), ND_SUCCESS);
    ok_status(CALL(s.adapter, Query, 1, &info, &size), ND_SUCCESS);
    side_connector(&s);
    {
        INDCompletionQueue *bad = (INDCompletionQueue *)&front_foreign;
        const struct {
            INDCompletionQueue *in, *out;
            SIZE_T args[6];
            HRESULT status;
        } rows[] = {
            { NULL, s.cq, { 4, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_1 },
            { bad, s.cq, { 4, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_1 },
            { foreign, s.cq, { 4, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_1 },
            { s.cq, NULL, { 4, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_2 },
            { s.cq, foreign, { 4, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_2 },
            { s.cq, s.cq, { info.MaxInboundRequests + 1, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_3 },
            { s.cq, s.cq, { 4, info.MaxOutboundRequests + 1, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_4 },
            { s.cq, s.cq, { 4, 4, info.MaxInboundSge + 1, 1, 0, 0 }, ND_INVALID_PARAMETER_5 },
            { s.cq, s.cq, { 4, 4, 1, info.MaxOutboundSge + 1, 0, 0 }, ND_INVALID_PARAMETER_6 },
            { s.cq, s.cq, { 4, 4, 1, 1, info.MaxInboundReadLimit + 1, 0 }, ND_INVALID_PARAMETER_7 },
            { s.cq, s.cq, { 4, 4, 1, 1, 0, info.MaxOutboundReadLimit + 1 }, ND_INVALID_PARAMETER_8 },
            { s.cq, s.cq, { (SIZE_T)-1, 4, 1, 1, 0, 0 }, ND_INVALID_PARAMETER_3 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
            const SIZE_T *a = rows[i].args;
            HRESULT status = CALL(s.connector, CreateEndpoint, rows[i].in, rows[i].out, a[0], a[1], a[2], a[3], a[4],
                                  a[5], &inlined, &out);

            ok_msg(status == rows[i].status, "row %zu: %s", i, ndverbs_status_text(status));
            ok_ptr(out, ==, NULL);
        }
    }
    ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, 4, 4, 1, 1, 0, 0, NULL, NULL), ND_INVALID_PARAMETER_10);
    fake_fail_always(FAKE_ibv_create_qp, ENOMEM);
    ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, 4, 4, 1, 1, 0, 0, NULL, &out), ND_INSUFFICIENT_RESOURCES);
    fake_fail_clear(FAKE_ibv_create_qp);
    for (unsigned n = 1; n <= 2; n++) {
        fake_alloc_fail(n);
        ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, 4, 4, 1, 1, 0, 0, NULL, &out), ND_NO_MEMORY);
        fake_alloc_clear();
    }
    ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, info.MaxInboundRequests, info.MaxOutboundRequests,
                   info.MaxInboundSge, info.MaxOutboundSge, info.MaxInboundReadLimit, info.MaxOutboundReadLimit,
                   &inlined, &s.endpoint),
              ND_SUCCESS);
    ok_uint(inlined, ==, info.MaxInlineData < 160 ? info.MaxInlineData : 160);
    /* One at a time. */
    ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, 4, 4, 1, 1, 0, 0, NULL, &out), ND_NOT_SUPPORTED);
    front_release(s.endpoint);
    side_endpoint(&s);
    front_release(foreign);
    front_release(other);
}

TEST(Endpoint_v1__bad_posts)
{
    ND_MW_DESCRIPTOR mw = { 0 };
    ND_SGE sge[80], good = { s.buffer, 1, s.mr };
    ND_RESULT *r = &results[0];

    for (size_t i = 0; i < COUNT(sge); i++)
        sge[i] = (ND_SGE){ s.buffer, 1, s.mr };
    side_connector(&s);
    side_endpoint(&s);
    ok_status(CALL(s.endpoint, Send, NULL, &good, 1, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Receive, NULL, &good, 1), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Read, NULL, &good, 1, &mw, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Write, NULL, &good, 1, &mw, 0, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Send, r, NULL, 1, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(s.endpoint, Send, r, &good, 1, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.endpoint, Send, r, &good, 1, 0x20), ND_INVALID_PARAMETER_4); /* no INLINE in version 1 */
    ok_status(CALL(s.endpoint, Write, r, &good, 1, &mw, 0, 0x20), ND_INVALID_PARAMETER_6);
    ok_status(CALL(s.endpoint, Write, r, &good, 1, &mw, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_INVALID_PARAMETER_6);
    ok_status(CALL(s.endpoint, Read, r, &good, 1, &mw, 0, 0x20), ND_INVALID_PARAMETER_6);
    ok_status(CALL(s.endpoint, Read, r, &good, 1, NULL, 0, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.endpoint, Write, r, &good, 1, NULL, 0, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.endpoint, Send, r, sge, 40, 0), ND_DATA_OVERRUN);
    ok_status(CALL(s.endpoint, Send, r, sge, 80, 0), ND_DATA_OVERRUN);
    ok_status(CALL(s.endpoint, Receive, r, sge, 80), ND_DATA_OVERRUN);
    ok_status(CALL(s.endpoint, Read, r, sge, 80, &mw, 0, 0), ND_DATA_OVERRUN);
    if (sizeof(SIZE_T) > 4) {
        sge[0].Length = (SIZE_T)UINT32_MAX + 1;
        ok_status(CALL(s.endpoint, Send, r, sge, 1, 0), ND_BUFFER_OVERFLOW);
        ok_status(CALL(s.endpoint, Receive, r, sge, 1), ND_BUFFER_OVERFLOW);
    }
    sge[0].Length = UINT32_MAX;
    ok_status(CALL(s.endpoint, Write, r, sge, 2, &mw, 0, 0), ND_BUFFER_OVERFLOW);
    /* Never connected. */
    ok_status(CALL(s.endpoint, Send, r, &good, 1, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(s.endpoint, Write, r, &good, 1, &mw, 0, 0), ND_CONNECTION_INVALID);
    ok_status(CALL(s.endpoint, Read, r, &good, 1, &mw, 0, 0), ND_CONNECTION_INVALID);
    for (int i = 0; i < 4; i++)
        ok_status(side_receive(&s, &results[i]), ND_SUCCESS);
    ok_status(side_receive(&s, &results[4]), ND_NO_MORE_ENTRIES);
    ok_status(CALL(s.endpoint, Flush), ND_SUCCESS);
    for (int i = 0; i < 4; i++)
        ok_result(&s, &results[i], ND_CANCELED);
    ok_no_result(&s);
}

TEST(Endpoint_v1__results_are_the_applications)
{
    struct mine {
        ND_RESULT result; /* first: programs derive theirs from it */
        int number;
    } in = { .number = 1 }, out = { .number = 2 };
    ND_RESULT *got[4];

    side_connect(&s, &peer);
    ok_status(side_receive(&peer, &in.result), ND_SUCCESS);
    memset(&out.result, 0x5a, sizeof(out.result));
    ok_status(side_send(&s, &out.result, 200, 0), ND_SUCCESS);
    ok_eventually(CALL(peer.cq, GetResults, got, 4) == 1);
    ok_ptr(got[0], ==, &in.result);
    ok_int(((struct mine *)got[0])->number, ==, 1);
    ok_status(in.result.Status, ND_SUCCESS);
    ok_uint(in.result.BytesTransferred, ==, 200);
    ok_eventually(CALL(s.cq, GetResults, got, 1) == 1);
    ok_ptr(got[0], ==, &out.result);
    ok_status(out.result.Status, ND_SUCCESS);
    ok_uint(out.result.BytesTransferred, ==, 200);
    /* Silent ones do not come back. */
    ok_status(side_receive(&peer, &in.result), ND_SUCCESS);
    ok_status(side_send(&s, &out.result, 3, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_result(&peer, &in.result, ND_SUCCESS);
    ok_uint(in.result.BytesTransferred, ==, 3);
    ok_no_result(&s);
}

/* More results than are fetched from core at a time. A36: Flush cancels, as in version 2. */
TEST(Endpoint_v1__many_results)
{
    ND_RESULT *got[32];
    SIZE_T n;

    side_connector(&s);
    ok_status(CALL(s.cq, Resize, 64), ND_SUCCESS);
    ok_status(CALL(s.connector, CreateEndpoint, s.cq, s.cq, 32, 4, 1, 1, 0, 0, NULL, &s.endpoint), ND_SUCCESS);
    for (int i = 0; i < 32; i++)
        ok_status(CALL(s.endpoint, Receive, &results[i], NULL, 0), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Flush), ND_SUCCESS);
    n = CALL(s.cq, GetResults, got, 31);
    ok_uint(n, ==, 31);
    n += CALL(s.cq, GetResults, got + n, 32 - n);
    ok_uint(n, ==, 32);
    for (int i = 0; i < 32; i++) {
        ok_ptr(got[i], ==, &results[i]);
        ok_status(results[i].Status, ND_CANCELED);
    }
}

/* Requests of small size are inlined unasked, others are not; a read never. */
TEST(Endpoint_v1__inlines)
{
    ND_SGE two[2] = { { s.buffer, 80, NULL }, { s.buffer, 80, NULL } };
    ND_MW_DESCRIPTOR mw = { 0 };

    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    ok_status(side_send(&s, &results[0], 160, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    ok_uint(last_send()->send_flags, ==, IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SIGNALED);
    ok_status(side_send(&s, &results[1], 161, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_SUCCESS);
    ok_uint(last_send()->send_flags, ==, IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
    ok_uint(last_send()->sge[0].lkey, ==, ((struct ibv_mr *)fake_object(FAKE_OBJ_MR, 0))->lkey);
    ok_status(CALL(s.endpoint, Send, &results[2], NULL, 0, 0), ND_SUCCESS);
    ok_uint(last_send()->send_flags, ==, IBV_SEND_SIGNALED);
    ok_int(last_send()->num_sge, ==, 0);
    ok_status(CALL(s.endpoint, Read, &results[3], &(ND_SGE){ s.buffer, 8, s.mr }, 1, &mw, 0, 0), ND_SUCCESS);
    ok_uint(last_send()->send_flags, ==, IBV_SEND_SIGNALED);
    ok_int(last_send()->opcode, ==, IBV_WR_RDMA_READ);
    fake_qp_complete(device_qp(), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
    for (int i = 0; i < 4; i++)
        ok_result(&s, &results[i], ND_SUCCESS);
    ok_status(CALL(s.endpoint, Write, &results[4], two, 1, &mw, 0, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_uint(last_send()->send_flags & IBV_SEND_INLINE, ==, IBV_SEND_INLINE);
    ok_int(last_send()->opcode, ==, IBV_WR_RDMA_WRITE);
    /* More entries than asked for go by their keys. */
    ok_status(CALL(s.endpoint, Write, &results[5], two, 2, &mw, 0, 0), ND_SUCCESS);
    ok_uint(last_send()->send_flags & IBV_SEND_INLINE, ==, 0);
    fake_wire_hold_data(false);
}

/* A descriptor is in network byte order, its base is added to. */
TEST(Endpoint_v1__descriptors)
{
    ND_MW_DESCRIPTOR mw = { htobe64(0x1122334455660000u), htobe64(4096), htonl(0xabcd01) };
    ND_SGE sge = { s.buffer, 200, s.mr };

    ok_uint(sizeof(mw), ==, 20);
    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    ok_status(CALL(s.endpoint, Read, &results[0], &sge, 1, &mw, 0x77, 0), ND_SUCCESS);
    ok_uint(last_send()->remote_addr, ==, 0x1122334455660077u);
    ok_uint(last_send()->rkey, ==, 0xabcd01);
    ok_status(CALL(s.endpoint, Write, &results[1], &sge, 1, &mw, 0, 0), ND_SUCCESS);
    ok_uint(last_send()->remote_addr, ==, 0x1122334455660000u);
    ok_uint(last_send()->rkey, ==, 0xabcd01);
    fake_qp_complete(device_qp(), FAKE_SEND, 2, IBV_WC_SUCCESS, 0);
    ok_result(&s, &results[0], ND_SUCCESS);
    ok_uint(results[0].BytesTransferred, ==, 200);
    ok_result(&s, &results[1], ND_SUCCESS);
    fake_wire_hold_data(false);
}

typedef HRESULT (*post_fn)(ND_RESULT *result);

static HRESULT post_send(ND_RESULT *result)
{
    return CALL(s.endpoint, Send, result, &(ND_SGE){ s.buffer, 200, s.mr }, 1, 0);
}

static HRESULT post_send_and_invalidate(ND_RESULT *result)
{
    ND_MW_DESCRIPTOR mw = { 0 };

    return CALL(s.endpoint, SendAndInvalidate, result, &(ND_SGE){ s.buffer, 200, s.mr }, 1, &mw, 0);
}

static HRESULT post_receive(ND_RESULT *result)
{
    return CALL(s.endpoint, Receive, result, &(ND_SGE){ s.buffer, 200, s.mr }, 1);
}

static HRESULT post_read(ND_RESULT *result)
{
    ND_MW_DESCRIPTOR mw = { 0 };

    return CALL(s.endpoint, Read, result, &(ND_SGE){ s.buffer, 200, s.mr }, 1, &mw, 0, 0);
}

static HRESULT post_write(ND_RESULT *result)
{
    ND_MW_DESCRIPTOR mw = { 0 };

    return CALL(s.endpoint, Write, result, &(ND_SGE){ s.buffer, 200, s.mr }, 1, &mw, 0, 0);
}

static const post_fn posts[] = { post_send, post_send_and_invalidate, post_receive, post_read, post_write };

/* What the device refuses when it is called, and the next one works. */
TEST(Endpoint_v1__foreign_failures)
{
    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    for (size_t i = 0; i < COUNT(posts); i++) {
        fake_fail(posts[i] == post_receive ? FAKE_ibv_post_recv : FAKE_ibv_post_send, 1, EINVAL);
        ok_status(posts[i](&results[i]), ND_UNSUCCESSFUL);
    }
    ok_no_result(&s);
    for (size_t i = 0; i < COUNT(posts); i++)
        ok_status(posts[i](&results[i]), ND_SUCCESS);
    fake_wire_hold_data(false);
}

/* The rows of ndspi-status.md section 4 where version 1 has a status of its own, and one where it has not. */
static void fails_with(enum ibv_wc_status wc, HRESULT status)
{
    for (size_t i = 0; i < COUNT(posts); i++) {
        side_connect(&s, &peer);
        ok_status(posts[i](&results[0]), ND_SUCCESS);
        ok_uint(fake_qp_complete(device_qp(), posts[i] == post_receive ? FAKE_RECV : FAKE_SEND, 1, wc, 0), ==, 1);
        ok_result(&s, &results[0], status);
        side_drop(&s);
        side_drop(&peer);
    }
}

TEST(Endpoint_v1__completion_statuses)
{
    fake_wire_hold_data(true);
    fails_with(IBV_WC_RETRY_EXC_ERR, ND_TIMEOUT);
    fails_with(IBV_WC_RNR_RETRY_EXC_ERR, ND_TIMEOUT);
    fails_with(IBV_WC_RESP_TIMEOUT_ERR, ND_TIMEOUT);
    fails_with(IBV_WC_LOC_LEN_ERR, ND_LOCAL_LENGTH);
    fails_with(IBV_WC_REM_ACCESS_ERR, ND_ACCESS_VIOLATION);
    fails_with(IBV_WC_REM_ABORT_ERR, ND_REMOTE_ERROR);
    fails_with(IBV_WC_FATAL_ERR, ND_INTERNAL_ERROR);
    fake_wire_hold_data(false);
}

/* A region that is gone names no key: the device refuses, nobody crashes. */
TEST(Endpoint_v1__stale_region)
{
    ND_MR_HANDLE stale;
    char buffer[8] = { 0 };
    OVERLAPPED ov = { 0 };
    ND_SGE sge;

    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    ok_status(CALL(s.adapter, RegisterMemory, buffer, 8, &ov, &stale), ND_PENDING);
    ok_status(CALL(s.adapter, DeregisterMemory, stale, &ov), ND_PENDING);
    sge = (ND_SGE){ buffer, 200, stale };
    ok_status(CALL(s.endpoint, Send, &results[0], &sge, 1, 0), ND_SUCCESS);
    ok_uint(last_send()->sge[0].lkey, ==, 0);
    fake_wire_hold_data(false);
}

/* ---- batches ---- */

TEST(Endpoint_v1__batch_is_one_post)
{
    ND_SGE sge = { s.buffer, 200, s.mr };
    ND_MW_DESCRIPTOR mw = { 0 };
    unsigned sends, receives;

    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    sends = fake_count(FAKE_ibv_post_send);
    receives = fake_count(FAKE_ibv_post_recv);
    CALL(s.endpoint, StartRequestBatch);
    ok_status(side_send(&s, &results[0], 200, 0), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Write, &results[1], &sge, 1, &mw, 0, 0), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Read, &results[2], &sge, 1, &mw, 0, 0), ND_SUCCESS);
    ok_status(side_send(&s, &results[3], 5, 0), ND_SUCCESS); /* inlined */
    memset(s.buffer, 0xff, sizeof(s.buffer));
    ok_status(side_send(&s, &results[4], 5, 0), ND_NO_MORE_ENTRIES); /* the depth counts */
    for (int i = 5; i < 9; i++)
        ok_status(side_receive(&s, &results[i]), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_post_recv), ==, receives);
    CALL(s.endpoint, SubmitRequestBatch);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, sends + 1);
    ok_uint(fake_count(FAKE_ibv_post_recv), ==, receives + 1);
    ok_uint(fake_qp_posted(device_qp(), FAKE_SEND), ==, 4);
    ok_uint(fake_qp_posted(device_qp(), FAKE_RECV), ==, 4);
    fake_qp_complete(device_qp(), FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
    for (int i = 0; i < 4; i++)
        ok_result(&s, &results[i], ND_SUCCESS);
    /* The batch is over. */
    ok_status(side_send(&s, &results[0], 200, 0), ND_SUCCESS);
    ok_uint(fake_count(FAKE_ibv_post_send), ==, sends + 2);
    fake_wire_hold_data(false);
}
