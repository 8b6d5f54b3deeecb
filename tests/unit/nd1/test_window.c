/* SPDX-License-Identifier: MIT */

/* INDMemoryWindow, and the endpoint's calls that use it: ndspi-v1.md sections 7 and 8. A42: the id is version 2's window's. */

#include "side.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>

static struct side s, peer;
static INDMemoryWindow *window;
static ND_RESULT revoked, bound, other;

SETUP
{
    front_setup();
    fake_wire(true);
    side_open(&s, "10.1.1.1");
    side_open(&peer, "10.1.1.1");
    revoked = (ND_RESULT){ 77, 77 };
    ok_status(CALL(s.adapter, CreateMemoryWindow, &revoked, &window), ND_SUCCESS);
}

TEARDOWN
{
    front_release(window);
    side_close(&s);
    side_close(&peer);
    front_teardown();
}

#define RIGHTS (ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)

TEST(CreateMemoryWindow_v1__rows)
{
    INDMemoryWindow *out = window;
    IND2MemoryWindow *two;

    ok_status(CALL(s.adapter, CreateMemoryWindow, NULL, &out), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.adapter, CreateMemoryWindow, &revoked, NULL), ND_INVALID_PARAMETER_2);
    fake_alloc_fail(1);
    ok_status(CALL(s.adapter, CreateMemoryWindow, &revoked, &out), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_ptr(out, ==, NULL);
    out = window;
    fake_fail(FAKE_ibv_alloc_mw, 1, ENOMEM);
    ok_status(CALL(s.adapter, CreateMemoryWindow, &revoked, &out), ND_INSUFFICIENT_RESOURCES);
    ok_ptr(out, ==, NULL);
    ok_status(CALL(window, QueryInterface, &IID_IND2MemoryWindow, (void **)&two), S_OK);
    ok_ptr(two, ==, window);
    ok_uint(CALL(two, GetRemoteToken), ==, 0);
    ok_uint(CALL(two, Release), ==, 1);
}

TEST(Bind_v1__bad_arguments)
{
    ND_MW_DESCRIPTOR mw;

    side_connector(&s);
    side_endpoint(&s);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer, 16, RIGHTS, &mw), ND_CONNECTION_INVALID);
    side_drop(&s);
    side_connect(&s, &peer);
    ok_status(CALL(s.endpoint, Bind, NULL, s.mr, window, s.buffer, 16, RIGHTS, &mw), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Bind, &bound, NULL, window, s.buffer, 16, RIGHTS, &mw), ND_INVALID_PARAMETER_2);
    ok_status(CALL(s.endpoint, Bind, &bound, peer.mr, window, s.buffer, 16, RIGHTS, &mw), ND_INVALID_PARAMETER_2);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, NULL, s.buffer, 16, RIGHTS, &mw), ND_INVALID_PARAMETER_3);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, (INDMemoryWindow *)&front_foreign, s.buffer, 16, RIGHTS, &mw),
              ND_INVALID_PARAMETER_3);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer - 1, 16, RIGHTS, &mw), ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer + 8, sizeof(s.buffer), RIGHTS, &mw),
              ND_INVALID_PARAMETER_5);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer, 16, 0x20, &mw), ND_INVALID_PARAMETER_6);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer, 16, RIGHTS, NULL), ND_INVALID_PARAMETER_7);
    ok_status(CALL(s.endpoint, Invalidate, NULL, window, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, Invalidate, &bound, NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(s.endpoint, Invalidate, &bound, window, RIGHTS), ND_INVALID_PARAMETER_3);
    ok_status(CALL(s.endpoint, SendAndInvalidate, NULL, NULL, 0, &mw, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(s.endpoint, SendAndInvalidate, &bound, NULL, 0, NULL, 0), ND_INVALID_PARAMETER_4);
    ok_status(CALL(s.endpoint, SendAndInvalidate, &bound, NULL, 0, &mw, RIGHTS), ND_INVALID_PARAMETER_5);
    ok_no_result(&s);
}

/* The descriptor is right when Bind has returned; a bound window holds its region. */
TEST(Bind_v1__descriptor_and_busy)
{
    ND_MW_DESCRIPTOR mw, again;
    IND2MemoryWindow *two = (IND2MemoryWindow *)window;

    side_connect(&s, &peer);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer + 8, 64, RIGHTS, &mw), ND_SUCCESS);
    ok_uint(be64toh(mw.Base), ==, (uintptr_t)s.buffer + 8);
    ok_uint(be64toh(mw.Length), ==, 64);
    ok_uint(mw.Token, ==, CALL(two, GetRemoteToken));
    ok_result(&s, &bound, ND_SUCCESS);
    ok_uint(bound.BytesTransferred, ==, 0);
    again = mw;
    ok_status(CALL(s.endpoint, Bind, &other, s.mr, window, s.buffer, 64, RIGHTS, &again), ND_INVALID_DEVICE_REQUEST);
    ok_mem(&again, &mw, sizeof(mw));
    ok_status(CALL(s.adapter, DeregisterMemory, s.mr, &s.ov), ND_DEVICE_BUSY);
    ok_status(CALL(s.endpoint, Invalidate, &other, window, 0), ND_SUCCESS);
    ok_result(&s, &other, ND_SUCCESS);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer, 64, RIGHTS, &again), ND_SUCCESS);
    ok(again.Token != mw.Token);
    ok_result(&s, &bound, ND_SUCCESS);
    ok_status(revoked.Status, 77); /* only the peer's invalidation completes it */
}

/* A window bound in a batch goes out behind what the batch has kept, before what comes after, and so its Invalidate. */
TEST(Bind_v1__in_a_batch)
{
    static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_BIND_MW, IBV_WR_SEND, IBV_WR_LOCAL_INV };
    ND_RESULT first, last, ended;
    ND_MW_DESCRIPTOR mw;
    struct ibv_qp *qp;

    fake_wire_hold_data(true);
    side_connect(&s, &peer);
    qp = fake_object(FAKE_OBJ_QP, 0);
    CALL(s.endpoint, StartRequestBatch);
    ok_status(side_send(&s, &first, 200, 0), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Bind, &bound, s.mr, window, s.buffer, 64, RIGHTS, &mw), ND_SUCCESS);
    ok_status(side_send(&s, &last, 200, 0), ND_SUCCESS);
    ok_status(CALL(s.endpoint, Invalidate, &ended, window, 0), ND_SUCCESS);
    CALL(s.endpoint, SubmitRequestBatch);
    for (unsigned i = 0; i < COUNT(opcodes); i++) {
        struct fake_wr wr;

        ok(fake_qp_wr(qp, FAKE_SEND, i, &wr));
        ok_int(wr.opcode, ==, opcodes[i]);
        if (wr.opcode == IBV_WR_BIND_MW)
            ok_uint(wr.rkey, ==, ntohl(mw.Token));
    }
    fake_qp_complete(qp, FAKE_SEND, 4, IBV_WC_SUCCESS, 0);
    ok_result(&s, &first, ND_SUCCESS);
    ok_result(&s, &bound, ND_SUCCESS);
    ok_result(&s, &last, ND_SUCCESS);
    ok_result(&s, &ended, ND_SUCCESS);
    fake_wire_hold_data(false);
}
