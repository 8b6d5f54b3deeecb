/* SPDX-License-Identifier: MIT */
/* Memory windows: what they grant, what they end, and what happens when things go in another order. ndspi.md 5.8. */
#include "holdings.h"
#include "session.h"

#include <stdlib.h>

#define READ_WRITE (ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE)

/* The window's range in the buffer of 4,096 bytes: its end is not the region's. */
#define AT   1024
#define SIZE 2048

static IND2MemoryWindow *make_window(struct host *host)
{
    IND2MemoryWindow *window;

    ok_status(CALL(host->adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
    return window;
}

/* A region with local rights alone, as the owner of a window has it. */
static IND2MemoryRegion *make_region(struct link *link, void *buffer, SIZE_T size, ULONG flags)
{
    IND2MemoryRegion *mr;

    ok_status(CALL(link->host->adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, link->host->file, (void **)&mr),
              ND_SUCCESS);
    ok_status(finish(mr, CALL(mr, Register, buffer, size, flags, &link->ov), &link->ov), ND_SUCCESS);
    return mr;
}

static HRESULT deregister(struct link *link, IND2MemoryRegion *mr)
{
    return finish(mr, CALL(mr, Deregister, &link->ov), &link->ov);
}

static HRESULT bind_window(struct link *link, uintptr_t context, IND2MemoryRegion *mr, IND2MemoryWindow *window,
                           SIZE_T at, SIZE_T size, ULONG flags)
{
    return CALL(link->qp, Bind, (void *)context, (IUnknown *)mr, (IUnknown *)window, link->buffer + at, size, flags);
}

static HRESULT invalidate(struct link *link, uintptr_t context, IND2MemoryWindow *window, ULONG flags)
{
    return CALL(link->qp, Invalidate, (void *)context, (IUnknown *)window, flags);
}

/* Bind, completed; the token. */
static UINT32 bound(struct link *link, IND2MemoryRegion *mr, IND2MemoryWindow *window, SIZE_T at, SIZE_T size,
                    ULONG flags)
{
    UINT32 token;

    ok_status(bind_window(link, 1, mr, window, at, size, flags), ND_SUCCESS);
    token = CALL(window, GetRemoteToken);
    ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    return token;
}

/* The other side reads or writes [at, at + size) of the owner's buffer, to or from the beginning of its own. */
static HRESULT touch(struct link *link, bool read, UINT32 token, SIZE_T at, SIZE_T size)
{
    ND2_SGE sge = sge_of(link, 0, size);
    ND2_RESULT result;
    HRESULT hr;

    if (read)
        hr = CALL(link->qp, Read, (void *)5, &sge, 1, link->remote.address + at, token, 0);
    else
        hr = CALL(link->qp, Write, (void *)5, &sge, 1, link->remote.address + at, token, 0);
    ok_status(hr, ND_SUCCESS);
    result = result_next(link->cq);
    ok_uint((uintptr_t)result.RequestContext, ==, 5);
    ok_int(result.RequestType, ==, read ? Nd2RequestTypeRead : Nd2RequestTypeWrite);
    return result.Status;
}

/* An access that the owner's device refuses ends the connection; on iWARP a Write succeeds first. */
static void refused(struct link *link, bool read, UINT32 token, SIZE_T at, SIZE_T size)
{
    HRESULT status = touch(link, read, token, at, size);

    if (runner_iwarp())
        runner_note("%s: 0x%08x %s", read ? "Read" : "Write", (unsigned)status, ndverbs_status_text(status));
    else
        ok_status(status, ND_ACCESS_VIOLATION);
    ok(!runner_iwarp() || !read || FAILED(status));
}

/* ---- two processes: what a window grants ---- */

struct owner {
    struct session session;
    IND2MemoryRegion *mr;
    IND2MemoryWindow *window;
};

static void owner_begin(struct owner *owner)
{
    session_begin(&owner->session, &(struct shape){ .reads = 4 });
    owner->mr = make_region(&owner->session.link, owner->session.link.buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    owner->window = make_window(&owner->session.host);
    pattern_fill(owner->session.link.buffer, 4096, 1);
}

static void owner_release(struct owner *owner)
{
    release_last(owner->window);
    ok_status(deregister(&owner->session.link, owner->mr), ND_SUCCESS);
    release_last(owner->mr);
}

SERVER(read_and_write)
{
    struct owner owner;
    struct link *link = &owner.session.link;
    static BYTE pattern[4096];
    UINT32 token;

    owner_begin(&owner);
    pattern_fill(pattern, 4096, 1);
    ok_uint(CALL(owner.window, GetRemoteToken), ==, 0);
    ok_status(bind_window(link, 1, owner.mr, owner.window, AT, SIZE, READ_WRITE), ND_SUCCESS);
    token = CALL(owner.window, GetRemoteToken); /* right at once */
    runner_put(&token, sizeof(token));
    ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
    runner_sync(); /* the peer has read and written */
    runner_sync();
    ok_mem(link->buffer, pattern, AT);
    ok_mem(link->buffer + AT + SIZE, pattern + AT + SIZE, 4096 - AT - SIZE);
    for (SIZE_T i = 0; i < SIZE; i++)
        ok_int(link->buffer[AT + i], ==, (BYTE)(i * 3 + 1));
    ok_status(invalidate(link, 2, owner.window, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
    result_none(link->cq);
    owner_release(&owner);
    session_end(&owner.session);
}

CLIENT(read_and_write)
{
    struct session session;
    struct link *link = &session.link;
    static BYTE expected[4096];
    UINT32 token;

    session_begin(&session, &(struct shape){ .reads = 4 });
    runner_get(&token, sizeof(token));
    runner_sync(); /* the Bind has completed */
    ok_status(touch(link, true, token, AT, SIZE), ND_SUCCESS);
    pattern_fill(expected, 4096, 1);
    ok_mem(link->buffer, expected + AT, SIZE);
    for (SIZE_T i = 0; i < SIZE; i++)
        link->buffer[i] = (BYTE)(i * 3 + 1);
    ok_status(touch(link, false, token, AT + SIZE - 1, 1), ND_SUCCESS);
    ok_status(touch(link, false, token, AT, SIZE), ND_SUCCESS);
    ok_status(touch(link, true, token, AT + SIZE - 1, 1), ND_SUCCESS); /* behind the writes */
    runner_sync();
    session_end(&session);
}

/* What ends in a refusal: the owner binds so, the other side does one thing. */
struct trespass {
    SIZE_T at, size; /* of the window */
    ULONG flags;
    bool read;
    SIZE_T touch_at, touch_size;
    bool invalidated, rebound, released, other_pair;
};

static void owner(const struct trespass *what)
{
    struct owner owner;
    struct link *link = &owner.session.link;
    UINT32 token;

    owner_begin(&owner);
    post_receive(link, 7, 0, 64);
    token = bound(link, owner.mr, owner.window, what->at, what->size, what->flags);
    if (what->invalidated || what->rebound) {
        ok_status(invalidate(link, 2, owner.window, 0), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
    }
    if (what->rebound)
        ok_uint(bound(link, owner.mr, owner.window, what->at, what->size, what->flags), !=, token);
    if (what->released) {
        release_last(owner.window);
        owner.window = make_window(&owner.session.host);
    }
    runner_put(&token, sizeof(token));
    /* The connection breaks. */
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 7);
    pattern_check(link->buffer, 4096, 1);
    runner_sync();
    owner_release(&owner);
    session_drop(&owner.session);
}

static void trespasser(const struct trespass *what)
{
    struct session session;
    UINT32 token;

    if (what->read && !(what->flags & ND_OP_FLAG_ALLOW_READ) && runner_iwarp())
        harness_skip("siw does not check the right to read");
    session_begin(&session, &(struct shape){ .reads = 4 });
    runner_get(&token, sizeof(token));
    refused(&session.link, what->read, token, what->touch_at, what->touch_size);
    runner_sync();
    session_drop(&session);
}

#define TRESPASS(name, ...)                                    \
    static const struct trespass name##_row = { __VA_ARGS__ }; \
    SERVER(name)                                               \
    {                                                          \
        owner(&name##_row);                                    \
    }                                                          \
    CLIENT(name)                                               \
    {                                                          \
        trespasser(&name##_row);                               \
    }

TRESPASS(write_past_the_end, .at = 2048, .size = 2048, .flags = READ_WRITE, .touch_at = 4032, .touch_size = 65)
TRESPASS(read_past_the_end, .at = 2048, .size = 2048, .flags = READ_WRITE, .read = true, .touch_at = 4095,
         .touch_size = 2)
TRESPASS(write_without_right, .at = AT, .size = SIZE, .flags = ND_OP_FLAG_ALLOW_READ, .touch_at = AT, .touch_size = 8)
TRESPASS(read_without_right, .at = AT, .size = SIZE, .flags = ND_OP_FLAG_ALLOW_WRITE, .read = true, .touch_at = AT,
         .touch_size = 8)
TRESPASS(no_rights_at_all, .at = AT, .size = SIZE, .touch_at = AT, .touch_size = 8)
TRESPASS(write_after_invalidate, .at = AT, .size = SIZE, .flags = READ_WRITE, .touch_at = AT, .touch_size = 8,
         .invalidated = true)
TRESPASS(read_after_invalidate, .at = AT, .size = SIZE, .flags = READ_WRITE, .read = true, .touch_at = AT,
         .touch_size = 8, .invalidated = true)
TRESPASS(old_token_after_rebind, .at = AT, .size = SIZE, .flags = READ_WRITE, .touch_at = AT, .touch_size = 8,
         .rebound = true)
TRESPASS(write_after_release, .at = AT, .size = SIZE, .flags = READ_WRITE, .touch_at = AT, .touch_size = 8,
         .released = true)

/* Outside of the window, inside of the region: the device's matter (README.md). What it says, it does. */

SERVER(outside_in_the_region)
{
    struct owner owner;
    struct link *link = &owner.session.link;
    bool allowed;
    UINT32 token;

    owner_begin(&owner);
    token = bound(link, owner.mr, owner.window, AT, SIZE, READ_WRITE);
    runner_put(&token, sizeof(token));
    runner_get(&allowed, sizeof(allowed));
    if (!allowed)
        pattern_check(link->buffer, 4096, 1);
    runner_sync();
    owner_release(&owner);
    session_drop(&owner.session);
}

CLIENT(outside_in_the_region)
{
    struct session session;
    ND2_RESULT result;
    HRESULT status;
    bool allowed;
    UINT32 token;

    session_begin(&session, &(struct shape){ .reads = 4 });
    runner_get(&token, sizeof(token));
    status = touch(&session.link, false, token, AT - 64, 64);
    /* A message behind it tells whether the connection has survived. */
    ok_status(
        CALL(session.link.qp, Write, (void *)6, NULL, 0, session.link.remote.address, session.link.remote.token, 0),
        ND_SUCCESS);
    result = result_next(session.link.cq);
    allowed = status == ND_SUCCESS && result.Status == ND_SUCCESS;
    runner_note("a Write outside of the window: 0x%08x %s, the next: 0x%08x %s", (unsigned)status,
                ndverbs_status_text(status), (unsigned)result.Status, ndverbs_status_text(result.Status));
    runner_put(&allowed, sizeof(allowed));
    runner_sync();
    session_drop(&session);
}

/* ---- one process, both ends ---- */

struct two {
    struct host host;
    IND2Listener *listener;
    union endpoint to;
    struct link near, far;
    IND2MemoryRegion *mr; /* of near.buffer, local rights */
    IND2MemoryWindow *window;
};

static void two_connect(struct two *two, struct link *near, struct link *far)
{
    struct shape shape = { .reads = 4 };

    link_make(near, &two->host, &shape);
    link_make(far, &two->host, &shape);
    self_connect(near, far, two->listener, &two->to);
    far->remote.address = (UINT64)(uintptr_t)near->buffer;
}

static void two_begin(struct two *two)
{
    memset(two, 0, sizeof(*two));
    host_open(&two->host);
    two->listener = listen_at(&two->host, &two->host.address, 0);
    two->to = listener_endpoint(two->listener);
    two_connect(two, &two->near, &two->far);
    two->mr = make_region(&two->near, two->near.buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    two->window = make_window(&two->host);
}

static void two_end(struct two *two)
{
    if (two->window)
        release_last(two->window);
    if (two->near.qp)
        link_disconnect(&two->near);
    link_drop(&two->near);
    link_drop(&two->far);
    if (two->mr)
        release_last(two->mr);
    release_last(two->listener);
    host_close(&two->host);
}

ALONE(statuses)
{
    struct two two;
    struct link *link = &two.near;
    IND2MemoryRegion *mr, *other_mr, *unregistered, *read_only;
    IND2MemoryWindow *window, *other_window;
    struct link fresh;
    struct host other;
    struct link other_link;

    two_begin(&two);
    mr = two.mr;
    window = two.window;
    host_open(&other);
    link_make(&other_link, &other, NULL);
    other_mr = other_link.mr;
    other_window = make_window(&other);
    read_only = make_region(link, link->buffer, 4096, 0);
    ok_status(CALL(two.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, two.host.file, (void **)&unregistered),
              ND_SUCCESS);

    ok_status(bind_window(link, 1, NULL, window, 0, 64, 0), ND_INVALID_PARAMETER_2);
    ok_status(bind_window(link, 1, unregistered, window, 0, 64, 0), ND_INVALID_PARAMETER_2);
    ok_status(bind_window(link, 1, other_mr, window, 0, 64, 0), ND_INVALID_PARAMETER_2);
    ok_status(bind_window(link, 1, mr, NULL, 0, 64, 0), ND_INVALID_PARAMETER_3);
    ok_status(bind_window(link, 1, mr, other_window, 0, 64, 0), ND_INVALID_PARAMETER_3);
    ok_status(bind_window(link, 1, mr, window, 4096, 64, 0), ND_INVALID_PARAMETER_4);
    ok_status(bind_window(link, 1, mr, window, 4000, 97, 0), ND_INVALID_PARAMETER_5);
    ok_status(bind_window(link, 1, mr, window, 0, 0, 0), ND_INVALID_PARAMETER_5);
    ok_status(bind_window(link, 1, mr, window, 0, 64, ND_OP_FLAG_INLINE), ND_INVALID_PARAMETER_6);
    ok_status(bind_window(link, 1, read_only, window, 0, 64, ND_OP_FLAG_ALLOW_WRITE), ND_ACCESS_VIOLATION);
    ok_status(invalidate(link, 1, NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(invalidate(link, 1, other_window, 0), ND_INVALID_PARAMETER_2);
    ok_status(invalidate(link, 1, window, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_3);
    link_make(&fresh, &two.host, NULL);
    ok_status(bind_window(&fresh, 1, fresh.mr, window, 0, 64, 0), ND_CONNECTION_INVALID);
    ok_status(invalidate(&fresh, 1, window, 0), ND_CONNECTION_INVALID);
    link_drop(&fresh);
    result_none(link->cq);
    ok_uint(CALL(window, GetRemoteToken), ==, 0);

    /* A queue pair of 16. */
    for (uintptr_t i = 1; i <= 16; i++) {
        HRESULT hr = i % 2 ? bind_window(link, i, mr, window, 0, 64, 0) : invalidate(link, i, window, 0);

        ok_msg(hr == ND_SUCCESS, "request %u: 0x%08x", (unsigned)i, (unsigned)hr);
    }
    for (uintptr_t i = 1; i <= 16; i++)
        ok_result(link->cq, i % 2 ? Nd2RequestTypeBind : Nd2RequestTypeInvalidate, ND_SUCCESS, i);

    /* Bound already; invalidated twice; never bound. */
    bound(link, mr, window, 0, 64, 0);
    ok_status(bind_window(link, 1, mr, window, 64, 64, 0), ND_INVALID_DEVICE_REQUEST);
    ok_status(deregister(link, mr), ND_DEVICE_BUSY);
    ok_status(invalidate(link, 2, window, 0), ND_SUCCESS);
    ok_status(invalidate(link, 3, window, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_INVALID_DEVICE_REQUEST, 3);
    ok_status(invalidate(link, 4, window, ND_OP_FLAG_SILENT_SUCCESS), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_INVALID_DEVICE_REQUEST, 4);
    ok_status(deregister(link, mr), ND_SUCCESS);

    /* The connection has not suffered. */
    post_receive(&two.far, 5, 0, 64);
    post_send(link, 6, 0, 64, 0);
    ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 6);
    ok_result(two.far.cq, Nd2RequestTypeReceive, ND_SUCCESS, 5);
    release_last(read_only);
    release_last(unregistered);
    release_last(other_window);
    link_drop(&other_link);
    host_close(&other);
    two_end(&two);
}

/* Sixteen Sends that wait for their receives: neither request finds a place before they are answered. */
ALONE(full)
{
    struct two two;
    struct link *link = &two.near;

    if (runner_iwarp())
        harness_skip("siw ends the connection where a receive is missing");
    setenv("NDVERBS_MIN_RNR_TIMER", "31", 1); /* asked for again after 0.5 s, six times */
    two_begin(&two);
    for (uintptr_t i = 0; i < 16; i++)
        ok_status(CALL(link->qp, Send, (void *)i, NULL, 0, 0), ND_SUCCESS);
    ok_status(bind_window(link, 20, two.mr, two.window, 0, 64, READ_WRITE), ND_NO_MORE_ENTRIES);
    ok_status(invalidate(link, 21, two.window, 0), ND_NO_MORE_ENTRIES);
    ok_uint(CALL(two.window, GetRemoteToken), ==, 0);
    ok_status(deregister(link, two.mr), ND_SUCCESS); /* not held by what was refused */
    release_last(two.mr);
    two.mr = make_region(link, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (uintptr_t i = 0; i < 16; i++)
        post_receive(&two.far, i, 0, 8);
    for (uintptr_t i = 0; i < 16; i++)
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, i);
    for (uintptr_t i = 0; i < 16; i++)
        ok_result(two.far.cq, Nd2RequestTypeReceive, ND_SUCCESS, i);
    result_none(link->cq);
    ok_status(touch(&two.far, true, bound(link, two.mr, two.window, 0, 64, READ_WRITE), 0, 64), ND_SUCCESS);
    two_end(&two);
}

/* Where a window is a registration of its part of the region, the part counts once more. */
ALONE(over_the_memory_lock_limit)
{
    const SIZE_T size = 600 * 1024;
    struct two two;
    struct link *link = &two.near;
    IND2MemoryRegion *mr;
    BYTE *memory = aligned_alloc(4096, size);

    if (!runner_iwarp())
        harness_skip("a window of the device takes no memory of the process");
    limit_locked_memory(1 << 20);
    two_begin(&two);
    mr = make_region(link, memory, size, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    ok_status(CALL(link->qp, Bind, (void *)1, (IUnknown *)mr, (IUnknown *)two.window, memory, size, READ_WRITE),
              ND_INSUFFICIENT_RESOURCES);
    ok_uint(CALL(two.window, GetRemoteToken), ==, 0);
    result_none(link->cq);
    /* There is room for a smaller part; and once that is gone, the region is free. */
    ok_status(CALL(link->qp, Bind, (void *)2, (IUnknown *)mr, (IUnknown *)two.window, memory, size / 3, READ_WRITE),
              ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 2);
    ok_status(deregister(link, mr), ND_DEVICE_BUSY);
    ok_status(invalidate(link, 3, two.window, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 3);
    ok_status(deregister(link, mr), ND_SUCCESS);
    release_last(mr);
    two_end(&two);
    free(memory);
}

/* Busy while bound; not after the Invalidate, after the window's release, after the end of the connection. */
ALONE(deregister_while_bound)
{
    struct two two;
    struct link *link = &two.near;

    two_begin(&two);
    for (int by_release = 0; by_release < 2; by_release++) {
        bound(link, two.mr, two.window, 0, 64, READ_WRITE);
        ok_status(deregister(link, two.mr), ND_DEVICE_BUSY);
        if (by_release) {
            release_last(two.window);
            two.window = make_window(&two.host);
        } else {
            ok_status(invalidate(link, 2, two.window, 0), ND_SUCCESS);
            ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
        }
        ok_status(deregister(link, two.mr), ND_SUCCESS);
        release_last(two.mr);
        two.mr = make_region(link, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    }
    bound(link, two.mr, two.window, 0, 64, READ_WRITE);
    ok_status(CALL(link->qp, Flush), ND_SUCCESS);
    ok_status(deregister(link, two.mr), ND_SUCCESS);
    two_end(&two);
}

/* One window, bound on one connection after the other, to one region after the other. */
ALONE(rebind_elsewhere)
{
    struct two two;
    struct link near, far;
    IND2MemoryRegion *mr;
    UINT32 token, other;

    two_begin(&two);
    two_connect(&two, &near, &far);
    mr = make_region(&near, near.buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (int i = 0; i < 4; i++) {
        token = bound(&two.near, two.mr, two.window, 0, 4096, READ_WRITE);
        memset(two.far.buffer, 16 + i, 64);
        ok_status(touch(&two.far, false, token, 0, 64), ND_SUCCESS);
        ok_status(touch(&two.far, true, token, 0, 64), ND_SUCCESS); /* the write is there */
        ok_int(two.near.buffer[63], ==, 16 + i);
        ok_status(bind_window(&near, 1, mr, two.window, 0, 4096, READ_WRITE), ND_INVALID_DEVICE_REQUEST);
        ok_status(invalidate(&two.near, 2, two.window, 0), ND_SUCCESS);
        ok_result(two.near.cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
        other = bound(&near, mr, two.window, 1024, 1024, READ_WRITE);
        ok_uint(other, !=, token);
        memset(far.buffer, 32 + i, 64);
        ok_status(touch(&far, false, other, 1024, 64), ND_SUCCESS);
        ok_status(touch(&far, true, other, 1024, 64), ND_SUCCESS);
        ok_int(near.buffer[1024 + 63], ==, 32 + i);
        ok_status(invalidate(&near, 3, two.window, 0), ND_SUCCESS);
        ok_result(near.cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 3);
    }
    ok_status(deregister(&near, mr), ND_SUCCESS);
    ok_status(deregister(&two.near, two.mr), ND_SUCCESS);
    release_last(mr);
    link_disconnect(&near);
    link_drop(&near);
    link_drop(&far);
    two_end(&two);
}

/* A silent request takes its place in the queue until the device has answered it: one more is posted once there is room. */
#define ok_when_there_is_room(call)                         \
    do {                                                    \
        HRESULT ok_posted_;                                 \
        while ((ok_posted_ = (call)) == ND_NO_MORE_ENTRIES) \
            harness_yield();                                \
        ok_status(ok_posted_, ND_SUCCESS);                  \
    } while (0)

/* Without looking at a single completion: silent, queue after queue, while the other side writes through each binding. */
ALONE(silent_stream)
{
    struct two two;
    struct link *link = &two.near;
    UINT32 last = 0;
    ND2_SGE sge;

    two_begin(&two);
    sge = sge_of(link, 0, 8);
    for (int i = 0; i < 200; i++) {
        UINT32 token;

        ok_when_there_is_room(
            bind_window(link, 1, two.mr, two.window, 16 * (SIZE_T)i, 16, READ_WRITE | ND_OP_FLAG_SILENT_SUCCESS));
        token = CALL(two.window, GetRemoteToken);
        if (token == last) {
            ND2_RESULT result;

            /* A queue that has ended binds nothing: what ended it? */
            while (CALL(link->cq, GetResults, &result, 1) || CALL(two.far.cq, GetResults, &result, 1))
                runner_note("binding %d: type %u, 0x%08x", i, result.RequestType, (unsigned)result.Status);
        }
        ok_uint(token, !=, last);
        last = token;
        if (i % 10 == 0) {
            /* In order behind the Bind. */
            post_receive(&two.far, 5, 64, 64);
            ok_when_there_is_room(CALL(link->qp, Send, (void *)2, &sge, 1, 0));
            ok_result(two.far.cq, Nd2RequestTypeReceive, ND_SUCCESS, 5);
            ok_status(touch(&two.far, false, token, 16 * (SIZE_T)i, 16), ND_SUCCESS);
            ok_status(touch(&two.far, true, token, 16 * (SIZE_T)i, 16), ND_SUCCESS); /* the write is there */
            ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
        }
        ok_when_there_is_room(invalidate(link, 3, two.window, ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE));
    }
    result_none(link->cq);
    ok_when_there_is_room(invalidate(link, 4, two.window, 0));
    ok_result(link->cq, Nd2RequestTypeInvalidate, ND_INVALID_DEVICE_REQUEST, 4);
    ok_status(deregister(link, two.mr), ND_SUCCESS);
    two_end(&two);
}

/* Many windows on one region, overlapping, all at once. */
ALONE(many_windows)
{
    struct two two;
    struct link *link = &two.near;
    IND2MemoryWindow *windows[64];
    UINT32 tokens[64];

    two_begin(&two);
    for (int i = 0; i < 64; i++) {
        windows[i] = make_window(&two.host);
        tokens[i] = bound(link, two.mr, windows[i], (SIZE_T)i * 16, 1024, READ_WRITE);
    }
    for (int i = 0; i < 64; i++) {
        two.far.buffer[0] = (BYTE)(100 + i);
        ok_status(touch(&two.far, false, tokens[i], (SIZE_T)i * 16 + 1023, 1), ND_SUCCESS);
        ok_status(touch(&two.far, true, tokens[i], (SIZE_T)i * 16 + 1023, 1), ND_SUCCESS);
        ok_int(link->buffer[i * 16 + 1023], ==, 100 + i);
    }
    for (int i = 0; i < 64; i += 2) {
        ok_status(invalidate(link, 2, windows[i], 0), ND_SUCCESS);
        ok_result(link->cq, Nd2RequestTypeInvalidate, ND_SUCCESS, 2);
    }
    ok_status(touch(&two.far, false, tokens[63], 63 * 16, 1), ND_SUCCESS);
    ok_status(touch(&two.far, true, tokens[63], 63 * 16, 1), ND_SUCCESS);
    ok_status(deregister(link, two.mr), ND_DEVICE_BUSY);
    for (int i = 0; i < 64; i++)
        release_last(windows[i]);
    ok_status(deregister(link, two.mr), ND_SUCCESS);
    two_end(&two);
}

RUNNER_MAIN
