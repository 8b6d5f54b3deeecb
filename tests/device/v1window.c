/* SPDX-License-Identifier: MIT */
/* Version 1 memory windows: what a descriptor grants, what revokes it, and how windows end. ndspi-v1.md 7 and 8, ndspi.md
 * 5.8. A window on siw is a registration of its part of the region (lib/doc/deviations.md); the cases are the same. */
#include "holdings.h"
#include "v1side.h"

#include <endian.h>
#include <stdlib.h>

#define READ_WRITE (ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)

/* The window's range in the buffer of 4,096 bytes: its end is not the region's. */
#define AT   1024
#define SIZE 2048

static INDMemoryWindow *make_window(struct v1 *v1, ND_RESULT *revoked)
{
    INDMemoryWindow *window;

    ok_status(CALL(v1->adapter, CreateMemoryWindow, revoked, &window), ND_SUCCESS);
    return window;
}

static HRESULT deregister(struct v1 *v1, ND_MR_HANDLE mr)
{
    return v1_finish(v1->adapter, CALL(v1->adapter, DeregisterMemory, mr, &v1->ov), &v1->ov);
}

/* Bind, completed. */
static ND_MW_DESCRIPTOR bound(struct v1 *v1, INDMemoryWindow *window, SIZE_T at, SIZE_T size, DWORD flags)
{
    ND_MW_DESCRIPTOR mw;
    ND_RESULT result;

    ok_status(CALL(v1->endpoint, Bind, &result, v1->mr, window, v1->buffer + at, size, flags, &mw), ND_SUCCESS);
    ok_uint(be64toh(mw.Length), ==, size);
    ok_v1_result(v1, &result, ND_SUCCESS);
    ok_uint(result.BytesTransferred, ==, 0);
    return mw;
}

static void invalidate(struct v1 *v1, INDMemoryWindow *window, HRESULT status)
{
    ND_RESULT result;

    ok_status(CALL(v1->endpoint, Invalidate, &result, window, 0), ND_SUCCESS);
    ok_v1_result(v1, &result, status);
}

/* The other side reads or writes through the descriptor, to or from the beginning of its own buffer. */
static HRESULT touch(struct v1 *v1, bool read, const ND_MW_DESCRIPTOR *mw, ULONGLONG offset, SIZE_T size)
{
    ND_SGE sge = v1_sge(v1, 0, size);
    ND_RESULT result;
    HRESULT hr;

    if (read)
        hr = CALL(v1->endpoint, Read, &result, &sge, 1, mw, offset, 0);
    else
        hr = CALL(v1->endpoint, Write, &result, &sge, 1, mw, offset, 0);
    ok_status(hr, ND_SUCCESS);
    ok_ptr(v1_next(v1), ==, &result);
    return result.Status;
}

/* An access that the owner's device refuses ends the connection; on iWARP a Write succeeds first. */
static void refused(struct v1 *v1, bool read, const ND_MW_DESCRIPTOR *mw, ULONGLONG offset, SIZE_T size)
{
    HRESULT status = touch(v1, read, mw, offset, size);

    if (runner_iwarp())
        ok(!read || FAILED(status));
    else
        ok_status(status, ND_ACCESS_VIOLATION);
}

/* ---- two processes: a descriptor in a message, as its applications use it ---- */

/* The owner binds and sends the descriptor in one batch; the other side reads, writes, and gives the window back. */

SERVER(message_with_a_descriptor)
{
    ND_RESULT binding, sent, received, revoked;
    static BYTE pattern[4096];
    INDMemoryWindow *window;
    ND_MW_DESCRIPTOR mw;
    struct v1 v1;
    ND_SGE sge;

    v1_begin(&v1, 4096);
    window = make_window(&v1, &revoked);
    pattern_fill(v1.buffer, 4096, 1);
    memcpy(pattern, v1.buffer, 4096);
    v1_receive(&v1, &received, 0, 64);
    runner_sync();
    CALL_VOID(v1.endpoint, StartRequestBatch);
    ok_status(CALL(v1.endpoint, Bind, &binding, v1.mr, window, v1.buffer + AT, SIZE, READ_WRITE, &mw), ND_SUCCESS);
    sge = (ND_SGE){ &mw, sizeof(mw), NULL }; /* small enough to be inlined: needs no region */
    if (v1.inline_size < sizeof(mw)) {
        memcpy(v1.buffer + 512, &mw, sizeof(mw));
        memcpy(pattern + 512, &mw, sizeof(mw));
        sge = v1_sge(&v1, 512, sizeof(mw));
    }
    ok_status(CALL(v1.endpoint, Send, &sent, &sge, 1, 0), ND_SUCCESS);
    CALL_VOID(v1.endpoint, SubmitRequestBatch);
    ok_v1_result(&v1, &binding, ND_SUCCESS);
    ok_v1_result(&v1, &sent, ND_SUCCESS);
    ok_v1_result(&v1, &received, ND_SUCCESS);
    ok_uint(received.BytesTransferred, ==, 10);
    if (!runner_iwarp()) {
        revoked.BytesTransferred = 77;
        ok_v1_result(&v1, &revoked, ND_SUCCESS); /* behind the message that did it */
        ok_uint(revoked.BytesTransferred, ==, 0);
    }
    ok_mem(v1.buffer + 64, pattern + 64, AT - 64);
    ok_mem(v1.buffer + AT + SIZE, pattern + AT + SIZE, 4096 - AT - SIZE);
    for (SIZE_T i = 0; i < SIZE; i++)
        ok_int(v1.buffer[AT + i], ==, (BYTE)(i * 3 + 1));
    /* Not bound any more. siw has ended its use without telling. */
    invalidate(&v1, window, runner_iwarp() ? ND_SUCCESS : ND_INVALIDATION_ERROR);
    ok_status(deregister(&v1, v1.mr), ND_SUCCESS);
    v1.mr = NULL;
    v1_none(&v1);
    release_last(window);
    v1_end(&v1);
}

CLIENT(message_with_a_descriptor)
{
    static BYTE expected[4096];
    ND_RESULT received, sent;
    ND_MW_DESCRIPTOR mw;
    struct v1 v1;
    ND_SGE sge;

    v1_begin(&v1, 4096);
    v1_receive(&v1, &received, 0, 64);
    runner_sync();
    ok_v1_result(&v1, &received, ND_SUCCESS);
    ok_uint(received.BytesTransferred, ==, sizeof(mw));
    memcpy(&mw, v1.buffer, sizeof(mw));
    ok_uint(be64toh(mw.Length), ==, SIZE);
    ok_status(touch(&v1, true, &mw, 0, SIZE), ND_SUCCESS);
    pattern_fill(expected, 4096, 1);
    ok_mem(v1.buffer, expected + AT, SIZE);
    for (SIZE_T i = 0; i < SIZE; i++)
        v1.buffer[i] = (BYTE)(i * 3 + 1);
    ok_status(touch(&v1, false, &mw, 0, SIZE), ND_SUCCESS);
    v1.buffer[0] = (BYTE)((SIZE - 1) * 3 + 1);
    ok_status(touch(&v1, false, &mw, SIZE - 1, 1), ND_SUCCESS); /* its last byte */
    ok_status(touch(&v1, true, &mw, SIZE - 1, 1), ND_SUCCESS);
    sge = v1_sge(&v1, 100, 10);
    ok_status(CALL(v1.endpoint, SendAndInvalidate, &sent, &sge, 1, &mw, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    ok_v1_result(&v1, &sent, ND_SUCCESS);
    ok_uint(sent.BytesTransferred, ==, 10);
    v1_end(&v1);
}

/* ---- one process, both ends: what is refused ---- */

struct two {
    struct v1 near, far; /* the owner and the other side, an adapter each */
    INDMemoryWindow *window;
    ND_RESULT revoked;
};

static void two_begin(struct two *two)
{
    v1_open(&two->near, 4096);
    v1_open(&two->far, 4096);
    v1_self_connect(&two->near, &two->far);
    two->window = make_window(&two->near, &two->revoked);
    pattern_fill(two->near.buffer, 4096, 1);
    if (runner_iwarp())
        Sleep(50); /* its accept may still be at work (runner.h, runner_settle) */
}

static void two_end(struct two *two)
{
    release_last(two->window);
    v1_close(&two->near);
    v1_close(&two->far);
}

/* One message each way: the connection has not suffered. */
static void still_connected(struct two *two)
{
    ND_RESULT in, out;

    v1_receive(&two->far, &in, 0, 64);
    v1_send(&two->near, &out, 0, 64, 0);
    ok_v1_result(&two->near, &out, ND_SUCCESS);
    ok_v1_result(&two->far, &in, ND_SUCCESS);
    v1_receive(&two->near, &in, 0, 64);
    v1_send(&two->far, &out, 0, 64, 0);
    ok_v1_result(&two->far, &out, ND_SUCCESS);
    ok_v1_result(&two->near, &in, ND_SUCCESS);
}

struct trespass {
    SIZE_T at, size; /* of the window */
    DWORD flags;
    bool read;
    ULONGLONG offset;
    SIZE_T touched;
    bool invalidated, rebound, released, over;
};

static void trespass(const struct trespass *what)
{
    ND_MW_DESCRIPTOR mw;
    ND_RESULT received;
    struct two two;
    struct v1 *near = &two.near;

    if (what->read && !(what->flags & ND_OP_FLAG_ALLOW_READ) && runner_iwarp())
        harness_skip("siw does not check the right to read");
    two_begin(&two);
    v1_receive(near, &received, 0, 64);
    mw = bound(near, two.window, what->at, what->size, what->flags);
    if (what->invalidated || what->rebound)
        invalidate(near, two.window, ND_SUCCESS);
    if (what->rebound)
        ok_uint(bound(near, two.window, what->at, what->size, what->flags).Token, !=, mw.Token);
    if (what->released) {
        release_last(two.window);
        two.window = make_window(near, &two.revoked);
    }
    refused(&two.far, what->read, &mw, what->offset, what->touched);
    ok_v1_result(near, &received, ND_CANCELED); /* the connection breaks */
    pattern_check(near->buffer, 4096, 1);
    two_end(&two);
}

#define TRESPASS(name, ...)                                \
    ALONE(name)                                            \
    {                                                      \
        trespass(&(const struct trespass){ __VA_ARGS__ }); \
    }

TRESPASS(write_past_the_end, .at = 2048, .size = 2048, .flags = READ_WRITE, .offset = 1984, .touched = 65)
TRESPASS(long_write_past_the_end, .at = 0, .size = 4096, .flags = READ_WRITE, .offset = 2048, .touched = 2049)
TRESPASS(read_past_the_end, .at = 2048, .size = 2048, .flags = READ_WRITE, .read = true, .offset = 2047, .touched = 2)
TRESPASS(write_before_the_region, .at = 0, .size = 2048, .flags = READ_WRITE, .offset = (ULONGLONG)-8, .touched = 8)
TRESPASS(write_without_right, .at = AT, .size = SIZE, .flags = ND_OP_FLAG_ALLOW_READ, .touched = 8)
TRESPASS(read_without_right, .at = AT, .size = SIZE, .flags = ND_OP_FLAG_ALLOW_WRITE, .read = true, .touched = 8)
TRESPASS(write_after_invalidate, .at = AT, .size = SIZE, .flags = READ_WRITE, .touched = 8, .invalidated = true)
TRESPASS(read_after_invalidate, .at = AT, .size = SIZE, .flags = READ_WRITE, .read = true, .touched = 8,
         .invalidated = true)
TRESPASS(old_descriptor_after_rebind, .at = AT, .size = SIZE, .flags = READ_WRITE, .touched = 8, .rebound = true)
TRESPASS(write_after_release, .at = AT, .size = SIZE, .flags = READ_WRITE, .touched = 8, .released = true)

/* Outside of the window, inside of the region: the device's matter (README.md). What it says, it does. */
ALONE(outside_in_the_region)
{
    HRESULT status, next;
    ND_MW_DESCRIPTOR mw;
    struct two two;

    two_begin(&two);
    mw = bound(&two.near, two.window, AT, SIZE, READ_WRITE);
    memset(two.far.buffer, 0xab, 64);
    status = touch(&two.far, false, &mw, (ULONGLONG)-64, 64);
    next = touch(&two.far, true, &mw, 0, 8); /* tells whether the connection has survived */
    runner_note("a Write outside of the window: 0x%08x %s, the next: 0x%08x %s", (unsigned)status,
                ndverbs_status_text(status), (unsigned)next, ndverbs_status_text(next));
    if (status == ND_SUCCESS && next == ND_SUCCESS)
        ok_mem(two.near.buffer + AT - 64, memset(two.far.buffer, 0xab, 64), 64);
    else
        pattern_check(two.near.buffer, 4096, 1);
    two_end(&two);
}

/* ---- the other side's invalidation ---- */

/* Each form of the message; the window is bound again after each, and what the last one revoked is refused. */
ALONE(revoked_by_the_peer)
{
    static const struct {
        SIZE_T size;
        DWORD flags;
    } rows[] = {
        { 0, 0 },
        { 8, ND_OP_FLAG_READ_FENCE },
        { 1000, ND_OP_FLAG_SILENT_SUCCESS },
        { 8, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT },
    };
    ND_MW_DESCRIPTOR mw, last = { 0 };
    ND_RESULT received, sent;
    struct two two;
    struct v1 *near = &two.near, *far = &two.far;

    two_begin(&two);
    for (size_t i = 0; i < _countof(rows); i++) {
        ND_SGE sge = v1_sge(far, 0, rows[i].size);

        mw = bound(near, two.window, AT, SIZE, READ_WRITE);
        ok_uint(mw.Token, !=, last.Token);
        last = mw;
        ok_status(touch(far, false, &mw, 0, 16), ND_SUCCESS);
        ok_status(touch(far, true, &mw, 0, 16), ND_SUCCESS);
        v1_receive(near, &received, 0, 1000);
        ok_status(CALL(far->endpoint, SendAndInvalidate, &sent, &sge, 1, &mw, rows[i].flags), ND_SUCCESS);
        if (!(rows[i].flags & ND_OP_FLAG_SILENT_SUCCESS))
            ok_v1_result(far, &sent, ND_SUCCESS);
        ok_v1_result(near, &received, ND_SUCCESS);
        ok_uint(received.BytesTransferred, ==, rows[i].size);
        if (runner_iwarp())
            invalidate(near, two.window, ND_SUCCESS); /* siw does not tell */
        else
            ok_v1_result(near, &two.revoked, ND_SUCCESS);
        v1_none(near);
    }
    v1_none(far);
    still_connected(&two);
    /* Without the owner's doing anything: moments later. */
    pattern_fill(near->buffer, 4096, 1);
    mw = bound(near, two.window, AT, SIZE, ND_OP_FLAG_ALLOW_READ);
    v1_receive(near, &received, 0, 0);
    ok_status(CALL(far->endpoint, SendAndInvalidate, &sent, NULL, 0, &mw, 0), ND_SUCCESS);
    ok_v1_result(far, &sent, ND_SUCCESS);
    ok_v1_result(near, &received, ND_SUCCESS);
    if (!runner_iwarp())
        ok_v1_result(near, &two.revoked, ND_SUCCESS);
    while (touch(far, true, &mw, 0, 8) == ND_SUCCESS)
        Sleep(1);
    two_end(&two);
}

/* The ND_RESULT of the window may be that of its Invalidate; what was never taken goes with the window. */
ALONE(one_result_for_both)
{
    ND_MW_DESCRIPTOR mw;
    ND_RESULT received, sent;
    struct two two;
    struct v1 *near = &two.near, *far = &two.far;

    if (runner_iwarp())
        harness_skip("siw does not tell of a peer's invalidation");
    two_begin(&two);
    bound(near, two.window, AT, SIZE, ND_OP_FLAG_ALLOW_READ);
    ok_status(CALL(near->endpoint, Invalidate, &two.revoked, two.window, 0), ND_SUCCESS);
    ok_v1_result(near, &two.revoked, ND_SUCCESS);
    for (int i = 0; i < 2; i++) {
        mw = bound(near, two.window, AT, SIZE, ND_OP_FLAG_ALLOW_READ);
        v1_receive(near, &received, 0, 8);
        ok_status(CALL(far->endpoint, SendAndInvalidate, &sent, NULL, 0, &mw, 0), ND_SUCCESS);
        ok_v1_result(far, &sent, ND_SUCCESS);
        ok_v1_result(near, &received, ND_SUCCESS);
        if (i == 0)
            ok_v1_result(near, &two.revoked, ND_SUCCESS);
    }
    release_last(two.window);
    v1_none(near);
    two.window = make_window(near, &two.revoked);
    still_connected(&two);
    two_end(&two);
}

/* ---- statuses ---- */

ALONE(statuses)
{
    ND_RESULT r, second, posted[16];
    INDMemoryWindow *foreign, *out;
    struct v1 fresh;
    ND_MW_DESCRIPTOR mw;
    struct two two;
    struct v1 *v1 = &two.near;

    two_begin(&two);
    ok_status(CALL(v1->adapter, CreateMemoryWindow, NULL, &out), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1->adapter, CreateMemoryWindow, &r, NULL), ND_INVALID_PARAMETER_2);
    foreign = make_window(&two.far, &second);
#define BIND(result, mr, window, at, size, flags, out_mw) \
    CALL(v1->endpoint, Bind, (result), (mr), (window), v1->buffer + (at), (size), (flags), (out_mw))
    ok_status(BIND(NULL, v1->mr, two.window, 0, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_1);
    ok_status(BIND(&r, NULL, two.window, 0, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_2);
    ok_status(BIND(&r, two.far.mr, two.window, 0, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_2);
    ok_status(BIND(&r, v1->mr, NULL, 0, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_3);
    ok_status(BIND(&r, v1->mr, foreign, 0, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_3);
    ok_status(BIND(&r, v1->mr, two.window, 4096, 64, READ_WRITE, &mw), ND_INVALID_PARAMETER_4);
    ok_status(BIND(&r, v1->mr, two.window, 4000, 97, READ_WRITE, &mw), ND_INVALID_PARAMETER_5);
    ok_status(BIND(&r, v1->mr, two.window, 0, 0, READ_WRITE, &mw), ND_INVALID_PARAMETER_5);
    ok_status(BIND(&r, v1->mr, two.window, 0, 64, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT, &mw), ND_INVALID_PARAMETER_6);
    ok_status(BIND(&r, v1->mr, two.window, 0, 64, READ_WRITE, NULL), ND_INVALID_PARAMETER_7);
    ok_status(CALL(v1->endpoint, Invalidate, NULL, two.window, 0), ND_INVALID_PARAMETER_1);
    ok_status(CALL(v1->endpoint, Invalidate, &r, NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1->endpoint, Invalidate, &r, foreign, 0), ND_INVALID_PARAMETER_2);
    ok_status(CALL(v1->endpoint, Invalidate, &r, two.window, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_3);
    v1_open(&fresh, 4096);
    v1_make_connector(&fresh);
    v1_make_endpoint(&fresh);
    out = make_window(&fresh, &second);
    ok_status(CALL(fresh.endpoint, Bind, &r, fresh.mr, out, fresh.buffer, 64, READ_WRITE, &mw), ND_CONNECTION_INVALID);
    ok_status(CALL(fresh.endpoint, Invalidate, &r, out, 0), ND_CONNECTION_INVALID);
    release_last(out);
    v1_close(&fresh);
    v1_none(v1);

    /* An endpoint of 16. */
    for (int i = 0; i < 16; i++) {
        if (i % 2)
            ok_status(CALL(v1->endpoint, Invalidate, &posted[i], two.window, 0), ND_SUCCESS);
        else
            ok_status(BIND(&posted[i], v1->mr, two.window, 0, 64, READ_WRITE, &mw), ND_SUCCESS);
    }
    for (int i = 0; i < 16; i++)
        ok_v1_result(v1, &posted[i], ND_SUCCESS);

    /* Bound already; its region is busy; invalidated twice, the second time silently. */
    mw = bound(v1, two.window, 0, 64, READ_WRITE);
    ok_status(BIND(&r, v1->mr, two.window, 64, 64, READ_WRITE, &mw), ND_INVALID_DEVICE_REQUEST);
#undef BIND
    ok_status(deregister(v1, v1->mr), ND_DEVICE_BUSY);
    ok_status(CALL(v1->endpoint, Invalidate, &r, two.window, ND_OP_FLAG_READ_FENCE), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, Invalidate, &second, two.window, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_v1_result(v1, &r, ND_SUCCESS);
    ok_v1_result(v1, &second, ND_INVALIDATION_ERROR);
    still_connected(&two);
    release_last(foreign);
    two_end(&two);
}

/* Sixteen Sends that wait for their receives: nothing else goes in before they are answered. */
ALONE(full)
{
    ND_RESULT sent[16], received[16], r;
    ND_MW_DESCRIPTOR mw = { 0 };
    struct two two;
    struct v1 *v1 = &two.near;

    if (runner_iwarp())
        harness_skip("siw ends the connection where a receive is missing");
    setenv("NDVERBS_MIN_RNR_TIMER", "31", 1); /* asked for again after 0.5 s, six times */
    two_begin(&two);
    for (int i = 0; i < 16; i++)
        ok_status(CALL(v1->endpoint, Send, &sent[i], NULL, 0, 0), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, Send, &r, NULL, 0, 0), ND_NO_MORE_ENTRIES);
    ok_status(CALL(v1->endpoint, SendAndInvalidate, &r, NULL, 0, &mw, 0), ND_NO_MORE_ENTRIES);
    ok_status(CALL(v1->endpoint, Bind, &r, v1->mr, two.window, v1->buffer, 64, READ_WRITE, &mw), ND_NO_MORE_ENTRIES);
    ok_status(CALL(v1->endpoint, Invalidate, &r, two.window, 0), ND_NO_MORE_ENTRIES);
    ok_status(CALL(v1->endpoint, Write, &r, NULL, 0, &mw, 0, 0), ND_NO_MORE_ENTRIES);
    ok_status(CALL(v1->endpoint, Read, &r, NULL, 0, &mw, 0, 0), ND_NO_MORE_ENTRIES);
    for (int i = 0; i < 16; i++)
        v1_receive(&two.far, &received[i], 0, 8);
    for (int i = 0; i < 16; i++)
        ok_v1_result(v1, &sent[i], ND_SUCCESS);
    for (int i = 0; i < 16; i++)
        ok_v1_result(&two.far, &received[i], ND_SUCCESS);
    mw = bound(v1, two.window, 0, 64, READ_WRITE);
    ok_status(touch(&two.far, true, &mw, 0, 64), ND_SUCCESS);
    two_end(&two);
}

/* READ_FENCE: what a Read brings is what the fenced Send behind it sends; the first Read is what reads.fence_holds_back has it
 * for. By calls, and in a batch. */
ALONE(fence_holds_back)
{
    const SIZE_T size = 16384, first_size = read_that_lasts();
    ND_RESULT revoked, first, read, sent, received;
    INDMemoryWindow *window;
    ND_MW_DESCRIPTOR mw;
    struct v1 near, far;

    v1_open(&near, first_size);
    v1_open(&far, size + first_size);
    v1_self_connect(&near, &far);
    if (runner_iwarp())
        Sleep(50);
    window = make_window(&near, &revoked);
    mw = bound(&near, window, 0, first_size, ND_OP_FLAG_ALLOW_READ);
    for (ULONG round = 0; round < 16; round++) {
        ND_SGE sge = v1_sge(&far, 0, size), first_sge = v1_sge(&far, size, first_size);

        pattern_fill(near.buffer, size, round);
        memset(near.buffer + size, 0xcc, size);
        v1_receive(&near, &received, size, size);
        if (round % 2)
            CALL_VOID(far.endpoint, StartRequestBatch);
        ok_status(CALL(far.endpoint, Read, &first, &first_sge, 1, &mw, 0, 0), ND_SUCCESS);
        ok_status(CALL(far.endpoint, Read, &read, &sge, 1, &mw, 0, 0), ND_SUCCESS);
        v1_send(&far, &sent, 0, size, ND_OP_FLAG_READ_FENCE);
        if (round % 2)
            CALL_VOID(far.endpoint, SubmitRequestBatch);
        ok_v1_result(&far, &first, ND_SUCCESS);
        ok_v1_result(&far, &read, ND_SUCCESS);
        ok_v1_result(&far, &sent, ND_SUCCESS);
        ok_v1_result(&near, &received, ND_SUCCESS);
        pattern_check(near.buffer + size, size, round);
    }
    release_last(window);
    v1_disconnect(&far);
    v1_close(&near);
    v1_close(&far);
}

/* Where a window is a registration of its part of the region, the part counts once more. */
ALONE(over_the_memory_lock_limit)
{
    const SIZE_T size = 600 * 1024;
    ND_RESULT revoked, r;
    struct v1 near, far;
    INDMemoryWindow *window;
    ND_MW_DESCRIPTOR mw;

    if (!runner_iwarp())
        harness_skip("a window of the device takes no memory of the process");
    limit_locked_memory(1 << 20);
    v1_open(&near, size);
    v1_open(&far, 4096);
    v1_self_connect(&near, &far);
    window = make_window(&near, &revoked);
    ok_status(CALL(near.endpoint, Bind, &r, near.mr, window, near.buffer, size, READ_WRITE, &mw),
              ND_INSUFFICIENT_RESOURCES);
    v1_none(&near);
    bound(&near, window, 0, size / 3, READ_WRITE); /* there is room for that */
    release_last(window);
    v1_disconnect(&near);
    v1_close(&near);
    v1_close(&far);
}

/* Busy while bound; not after the Invalidate, the window's release, the end of the connection. */
ALONE(deregister_while_bound)
{
    struct two two;
    struct v1 *v1 = &two.near;

    two_begin(&two);
    for (int by_release = 0; by_release < 2; by_release++) {
        bound(v1, two.window, 0, 64, READ_WRITE);
        ok_status(deregister(v1, v1->mr), ND_DEVICE_BUSY);
        if (by_release) {
            release_last(two.window);
            two.window = make_window(v1, &two.revoked);
        } else {
            invalidate(v1, two.window, ND_SUCCESS);
        }
        ok_status(deregister(v1, v1->mr), ND_SUCCESS);
        ok_status(v1_register(v1, v1->buffer, v1->size, &v1->mr), ND_SUCCESS);
    }
    bound(v1, two.window, 0, 64, READ_WRITE);
    v1_disconnect(v1);
    ok_status(deregister(v1, v1->mr), ND_SUCCESS);
    v1->mr = NULL;
    two_end(&two);
}

/* ---- ends ---- */

enum stage {
    STAGE_BIND_POSTED,
    STAGE_BOUND,
    STAGE_INVALIDATE_POSTED,
    STAGES
};

/* Applications release bound windows with their endpoint, without an Invalidate. On rxe a queue pair with a bound window takes
 * the kernel 50 s and a warning: `run` looks at its log. */
ALONE(release_orders)
{
    static const char *const orders[] = { "wec", "wce", "ewc", "ecw", "cwe", "cew" };
    struct v1 near, far;

    v1_open(&near, 4096);
    v1_open(&far, 4096);
    for (int round = 0; round < 6 * STAGES; round++) {
        ND_RESULT revoked, binding, invalidating, *rest[4];
        INDMemoryWindow *window = make_window(&near, &revoked);
        ND_MW_DESCRIPTOR mw;

        v1_self_connect(&near, &far);
        ok_status(CALL(near.endpoint, Bind, &binding, near.mr, window, near.buffer, 64, READ_WRITE, &mw), ND_SUCCESS);
        if (round / 6 != STAGE_BIND_POSTED)
            ok_v1_result(&near, &binding, ND_SUCCESS);
        if (round / 6 == STAGE_INVALIDATE_POSTED)
            ok_status(CALL(near.endpoint, Invalidate, &invalidating, window, 0), ND_SUCCESS);
        for (const char *what = orders[round % 6]; *what; what++) {
            if (*what == 'w') {
                release_last(window);
            } else if (*what == 'e') {
                release_last(near.endpoint);
                near.endpoint = NULL;
            } else {
                release_last(near.connector);
                near.connector = NULL;
            }
        }
        CALL(near.cq, GetResults, rest, 4);
        v1_drop(&far);
        CALL(far.cq, GetResults, rest, 4);
        ok_status(deregister(&near, near.mr), ND_SUCCESS);
        ok_status(v1_register(&near, near.buffer, near.size, &near.mr), ND_SUCCESS);
    }
    v1_close(&near);
    v1_close(&far);
}

/* On an endpoint whose connection is over posts succeed and come back; the window serves the next one. */
ALONE(after_the_end)
{
    ND_RESULT results[5];
    ND_MW_DESCRIPTOR mw;
    struct two two;
    struct v1 *v1 = &two.near;

    two_begin(&two);
    bound(v1, two.window, 0, 64, READ_WRITE);
    v1_disconnect(v1);
    ok_status(CALL(v1->endpoint, Bind, &results[0], v1->mr, two.window, v1->buffer, 64, READ_WRITE, &mw), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, Invalidate, &results[1], two.window, 0), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, SendAndInvalidate, &results[2], NULL, 0, &mw, 0), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, Read, &results[3], NULL, 0, &mw, 0, 0), ND_SUCCESS);
    ok_status(CALL(v1->endpoint, Write, &results[4], NULL, 0, &mw, 0, 0), ND_SUCCESS);
    for (int i = 0; i < 5; i++)
        ok_v1_result(v1, &results[i], ND_CANCELED);
    v1_none(v1);
    v1_drop(v1);
    v1_drop(&two.far);
    v1_self_connect(v1, &two.far);
    mw = bound(v1, two.window, 0, 64, READ_WRITE);
    if (runner_iwarp())
        Sleep(50);
    ok_status(touch(&two.far, false, &mw, 0, 64), ND_SUCCESS);
    ok_status(touch(&two.far, true, &mw, 0, 64), ND_SUCCESS);
    two_end(&two);
}

RUNNER_MAIN
