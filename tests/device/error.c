/* SPDX-License-Identifier: MIT */
/* Requests that fail on the way: statuses of both sides, and what becomes of the rest. ndspi.md 5.5, ndspi-status.md 4. */
#include "session.h"

#include <stdlib.h>

/* After an error completion the connection is broken: the rest comes back cancelled, later posts too. */
static void broken(struct link *link, uintptr_t first_send, uintptr_t sends, uintptr_t first_receive,
                   uintptr_t receives)
{
    ND2_SGE sge = sge_of(link, 0, 8);

    for (uintptr_t left = sends + receives; left; left--) {
        ND2_RESULT result = result_next(link->cq);

        ok_status(result.Status, ND_CANCELED);
        ok_ptr(result.QueuePairContext, ==, link);
        if (result.RequestType == Nd2RequestTypeReceive)
            ok_uint((uintptr_t)result.RequestContext, ==, first_receive++);
        else
            ok_uint((uintptr_t)result.RequestContext, ==, first_send++);
    }
    ok_status(CALL(link->qp, Send, (void *)900, &sge, 1, 0), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeSend, ND_CANCELED, 900);
    ok_status(CALL(link->qp, Receive, (void *)901, &sge, 1), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 901);
    result_none(link->cq);
}

/* A Send that is longer than the Receive (1,024 bytes into 1,023) (A11, A12, D35). */

SERVER(send_too_long)
{
    struct session session;
    ND2_RESULT result;

    session_begin(&session, NULL);
    post_receive(&session.link, 1, 0, 1023);
    post_receive(&session.link, 2, 0, 1023);
    runner_sync();
    result = result_next(session.link.cq);
    ok_status(result.Status, ND_DATA_OVERRUN);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_uint((uintptr_t)result.RequestContext, ==, 1);
    broken(&session.link, 0, 0, 2, 1);
    runner_sync();
    session_drop(&session);
}

CLIENT(send_too_long)
{
    struct session session;
    ND2_RESULT result;

    session_begin(&session, NULL);
    post_receive(&session.link, 7, 2048, 64);
    runner_sync();
    post_send(&session.link, 1, 0, 1024, 0);
    result = result_next(session.link.cq);
    if (runner_iwarp()) {
        /* The stream has taken the bytes: success is allowed. */
        ok_msg(result.Status == ND_SUCCESS || result.Status == STATUS_DATA_ERROR || result.Status == ND_CANCELED,
               "Send: 0x%08x", (unsigned)result.Status);
        runner_note("Send: 0x%08x %s", (unsigned)result.Status, ndverbs_status_text(result.Status));
    } else {
        /* rxe gives the receiver its completion before it sends the negative acknowledgement, and drops that one if the
         * receiver's queue pair is in ERROR by then. */
        ok_msg(result.Status == STATUS_DATA_ERROR || result.Status == ND_IO_TIMEOUT, "Send: 0x%08x",
               (unsigned)result.Status);
        runner_note("Send: 0x%08x %s", (unsigned)result.Status, ndverbs_status_text(result.Status));
    }
    broken(&session.link, 2, 0, 7, 1);
    runner_sync();
    session_drop(&session);
}

/* Remote access that is not allowed. */

enum trespass {
    TRESPASS_PAST_THE_END,
    TRESPASS_BAD_TOKEN,
    TRESPASS_NO_RIGHT
};

static void victim(enum trespass kind)
{
    struct session session;
    struct link *link = &session.link;

    session_begin(&session, &(struct shape){ .reads = 4 });
    post_receive(link, 1, 0, 64);
    post_receive(link, 2, 0, 64);
    if (kind == TRESPASS_NO_RIGHT) {
        /* The same buffer, registered for nothing remote. */
        IND2MemoryRegion *mr;
        UINT32 token;

        ok_status(
            CALL(session.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, session.host.file, (void **)&mr),
            ND_SUCCESS);
        ok_status(
            finish(mr, CALL(mr, Register, link->buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &link->ov), &link->ov),
            ND_SUCCESS);
        token = CALL(mr, GetRemoteToken);
        runner_put(&token, sizeof(token));
        runner_sync();
        broken(link, 0, 0, 1, 2);
        release_last(mr);
    } else {
        runner_sync();
        broken(link, 0, 0, 1, 2);
    }
    runner_sync();
    link_disconnect(link);
    session_drop(&session);
}

static void trespasser(enum trespass kind, bool read)
{
    struct session session;
    struct link *link = &session.link;
    UINT64 address;
    UINT32 token;
    ND2_SGE sge;

    if (kind == TRESPASS_NO_RIGHT && read && runner_iwarp())
        harness_skip("siw does not check the right to read");
    session_begin(&session, &(struct shape){ .reads = 4 });
    post_receive(link, 7, 0, 64);
    address = link->remote.address;
    token = link->remote.token;
    if (kind == TRESPASS_PAST_THE_END)
        address += link->remote.size - 32;
    else if (kind == TRESPASS_BAD_TOKEN)
        token ^= htonl(0x5a5a5a00);
    else
        runner_get(&token, sizeof(token));
    runner_sync();
    sge = sge_of(link, 0, 64);
    if (read)
        ok_status(CALL(link->qp, Read, (void *)1, &sge, 1, address, token, 0), ND_SUCCESS);
    else
        ok_status(CALL(link->qp, Write, (void *)1, &sge, 1, address, token, 0), ND_SUCCESS);
    /* On iWARP a Write succeeds once the stream has it; the connection breaks all the same. */
    if (runner_iwarp() && !read) {
        ND2_RESULT result = result_next(link->cq);

        ok_int(result.RequestType, ==, Nd2RequestTypeWrite);
        runner_note("Write: 0x%08x %s", (unsigned)result.Status, ndverbs_status_text(result.Status));
    } else {
        ND2_RESULT result = result_next(link->cq);

        ok_int(result.RequestType, ==, read ? Nd2RequestTypeRead : Nd2RequestTypeWrite);
        ok_uint((uintptr_t)result.RequestContext, ==, 1);
        if (runner_iwarp())
            runner_note("Read: 0x%08x %s", (unsigned)result.Status, ndverbs_status_text(result.Status));
        else
            ok_status(result.Status, ND_ACCESS_VIOLATION);
        ok(FAILED(result.Status));
    }
    broken(link, 2, 0, 7, 1);
    runner_sync();
    session_drop(&session);
}

#define TRESPASS(name, kind, read) \
    SERVER(name)                   \
    {                              \
        victim(kind);              \
    }                              \
    CLIENT(name)                   \
    {                              \
        trespasser(kind, read);    \
    }

/* tests/lists: A13. */
TRESPASS(read_past_the_end, TRESPASS_PAST_THE_END, true)
TRESPASS(write_past_the_end, TRESPASS_PAST_THE_END, false)
TRESPASS(read_bad_token, TRESPASS_BAD_TOKEN, true)
TRESPASS(write_bad_token, TRESPASS_BAD_TOKEN, false)
TRESPASS(read_without_right, TRESPASS_NO_RIGHT, true)
TRESPASS(write_without_right, TRESPASS_NO_RIGHT, false)

/* Local memory that may not be used so. */

enum local_fault {
    FAULT_SEND_TOKEN,
    FAULT_SEND_RANGE,
    FAULT_WRITE_TOKEN,
    FAULT_READ_SINK,
    FAULT_OTHER_ADAPTER
};

static void bystander(void)
{
    struct session session;

    session_begin(&session, &(struct shape){ .reads = 4 });
    post_receive(&session.link, 1, 0, 64);
    runner_sync();
    runner_sync();
    session_drop(&session);
}

static void local_fault(enum local_fault fault)
{
    struct session session;
    struct link *link = &session.link;
    ND2_REQUEST_TYPE type = Nd2RequestTypeSend;
    IND2MemoryRegion *mr = NULL;
    ND2_RESULT result;
    struct host other;
    HRESULT hr;
    ND2_SGE sge;

    if (fault == FAULT_OTHER_ADAPTER)
        host_open(&other);
    session_begin(&session, &(struct shape){ .reads = 4 });
    sge = sge_of(link, 0, 64);
    runner_sync();
    switch (fault) {
    case FAULT_SEND_TOKEN:
        sge.MemoryRegionToken ^= 0x5a5a5a00;
        hr = CALL(link->qp, Send, (void *)1, &sge, 1, 0);
        break;
    case FAULT_SEND_RANGE:
        sge.Buffer = link->buffer + 4096 - 32;
        hr = CALL(link->qp, Send, (void *)1, &sge, 1, 0);
        break;
    case FAULT_WRITE_TOKEN:
        type = Nd2RequestTypeWrite;
        sge.MemoryRegionToken ^= 0x5a5a5a00;
        hr = CALL(link->qp, Write, (void *)1, &sge, 1, link->remote.address, link->remote.token, 0);
        break;
    default:
        /* A region without local write, or of another adapter object (another protection domain). */
        ok_status(CALL(fault == FAULT_READ_SINK ? session.host.adapter : other.adapter, CreateMemoryRegion,
                       &IID_IND2MemoryRegion, fault == FAULT_READ_SINK ? session.host.file : other.file, (void **)&mr),
                  ND_SUCCESS);
        ok_status(finish(mr, CALL(mr, Register, link->buffer, 4096, 0, &link->ov), &link->ov), ND_SUCCESS);
        sge.MemoryRegionToken = CALL(mr, GetLocalToken);
        if (fault == FAULT_READ_SINK) {
            type = Nd2RequestTypeRead;
            hr = CALL(link->qp, Read, (void *)1, &sge, 1, link->remote.address, link->remote.token, 0);
        } else {
            hr = CALL(link->qp, Send, (void *)1, &sge, 1, 0);
        }
        break;
    }
    ok_status(hr, ND_SUCCESS);
    result = result_next(link->cq);
    ok_status(result.Status, ND_ACCESS_VIOLATION);
    ok_int(result.RequestType, ==, type);
    ok_uint((uintptr_t)result.RequestContext, ==, 1);
    broken(link, 2, 0, 0, 0);
    runner_sync();
    if (mr)
        release_last(mr);
    session_drop(&session);
    if (fault == FAULT_OTHER_ADAPTER)
        host_close(&other);
}

#define LOCAL_FAULT(name, kind) \
    SERVER(name)                \
    {                           \
        bystander();            \
    }                           \
    CLIENT(name)                \
    {                           \
        local_fault(kind);      \
    }

/* tests/lists: D7. */
LOCAL_FAULT(send_bad_token, FAULT_SEND_TOKEN)
LOCAL_FAULT(send_past_the_end, FAULT_SEND_RANGE)
LOCAL_FAULT(write_bad_local_token, FAULT_WRITE_TOKEN)
LOCAL_FAULT(read_into_read_only, FAULT_READ_SINK)
LOCAL_FAULT(send_from_other_adapters_region, FAULT_OTHER_ADAPTER)

/* Memory of a Receive that may not be used so: the message that arrives for it finds out. rxe tells it as a message that is too
 * long; siw's status for it says nothing of its kind. */

SERVER(receive_bad_token)
{
    struct session session;
    struct link *link = &session.link;
    ND2_RESULT result;
    ND2_SGE sge;

    session_begin(&session, NULL);
    sge = sge_of(link, 0, 64);
    sge.MemoryRegionToken ^= 0x5a5a5a00;
    ok_status(CALL(link->qp, Receive, (void *)1, &sge, 1), ND_SUCCESS);
    post_receive(link, 2, 64, 64);
    memset(link->buffer, 0xcc, 128);
    runner_sync();
    result = result_next(link->cq);
    ok_status(result.Status, runner_iwarp() ? ND_INTERNAL_ERROR : ND_DATA_OVERRUN);
    ok_int(result.RequestType, ==, Nd2RequestTypeReceive);
    ok_uint((uintptr_t)result.RequestContext, ==, 1);
    broken(link, 0, 0, 2, 1);
    for (int i = 0; i < 128; i++)
        ok_int(link->buffer[i], ==, 0xcc);
    runner_sync();
    session_drop(&session);
}

CLIENT(receive_bad_token)
{
    struct session session;
    ND2_RESULT result;

    session_begin(&session, NULL);
    post_receive(&session.link, 7, 2048, 64);
    runner_sync();
    post_send(&session.link, 1, 0, 64, 0);
    /* As in send_too_long. */
    result = result_next(session.link.cq);
    runner_note("Send: 0x%08x %s", (unsigned)result.Status, ndverbs_status_text(result.Status));
    ok_int(result.RequestType, ==, Nd2RequestTypeSend);
    ok_uint((uintptr_t)result.RequestContext, ==, 1);
    ok_msg(result.Status == STATUS_DATA_ERROR || result.Status == ND_IO_TIMEOUT ||
               (runner_iwarp() && (result.Status == ND_SUCCESS || result.Status == ND_CANCELED)),
           "Send: 0x%08x", (unsigned)result.Status);
    broken(&session.link, 2, 0, 7, 1);
    runner_sync();
    session_drop(&session);
}

/* No receive at the peer: the retries end (NdSendNoReceive, A14) (D25). */

SERVER(no_receive)
{
    struct session session;

    if (runner_iwarp())
        harness_skip("siw has no receiver-not-ready: it ends the connection");
    setenv("NDVERBS_MIN_RNR_TIMER", "12", 1);
    session_begin(&session, NULL);
    runner_sync();
    runner_sync();
    session_drop(&session);
}

CLIENT(no_receive)
{
    struct session session;

    setenv("NDVERBS_RNR_RETRY", "2", 1);
    session_begin(&session, NULL);
    post_receive(&session.link, 5, 0, 64);
    runner_sync();
    post_send(&session.link, 1, 0, 64, 0);
    post_send(&session.link, 2, 0, 64, ND_OP_FLAG_SILENT_SUCCESS);
    ok_result(session.link.cq, Nd2RequestTypeSend, ND_IO_TIMEOUT, 1);
    broken(&session.link, 2, 1, 5, 1);
    runner_sync();
    session_drop(&session);
}

/* A receive that comes late, but within the retries, loses nothing. */

SERVER(late_receive)
{
    struct session session;

    if (runner_iwarp())
        harness_skip("siw has no receiver-not-ready: it ends the connection");
    setenv("NDVERBS_MIN_RNR_TIMER", "31", 1); /* asked for again after 0.5 s, six times */
    session_begin(&session, NULL);
    runner_sync();
    Sleep(20);
    post_receive(&session.link, 1, 0, 64);
    ok_result(session.link.cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    session_end(&session);
}

CLIENT(late_receive)
{
    struct session session;

    session_begin(&session, NULL);
    post_send(&session.link, 1, 0, 64, 0);
    runner_sync();
    ok_result(session.link.cq, Nd2RequestTypeSend, ND_SUCCESS, 1);
    session_end(&session);
}

RUNNER_MAIN
