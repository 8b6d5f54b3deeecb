/* SPDX-License-Identifier: MIT */
/* Every way to wait for a request: polling, events, ports, GetOverlappedResult. ndspi.md 2. */
#include "session.h"

#include <sys/mman.h>

enum style {
    STYLE_POLL,
    STYLE_EVENT,
    STYLE_MANUAL_EVENT,
    STYLE_MULTIPLE,
    STYLE_PORT,
    STYLE_PORT_MANY,
    STYLE_BLOCK, /* GetOverlappedResult(TRUE), hEvent NULL; all styles end with it */
    STYLE_BLOCK_EVENT,
    STYLE_LOW_BIT, /* on a port, event with the low bit set: no packet */
    STYLE_WIN32    /* the Win32 function of the same name */
};

struct waiter {
    enum style style;
    HANDLE port, event, never;
    struct host *host;
};

static void waiter_make(struct waiter *waiter, enum style style, struct host *host)
{
    memset(waiter, 0, sizeof(*waiter));
    waiter->style = style;
    waiter->host = host;
    waiter->never = event_auto();
    if (style == STYLE_PORT || style == STYLE_PORT_MANY || style == STYLE_LOW_BIT) {
        waiter->port = CreateIoCompletionPort(host->file, NULL, 0x1234, 0);
        ok(waiter->port != NULL);
    }
    if (style == STYLE_MANUAL_EVENT)
        waiter->event = CreateEvent(NULL, TRUE, FALSE, NULL);
    else if (style == STYLE_EVENT || style == STYLE_MULTIPLE || style == STYLE_BLOCK_EVENT || style == STYLE_LOW_BIT ||
             style == STYLE_WIN32)
        waiter->event = event_auto();
}

static void waiter_drop(struct waiter *waiter)
{
    if (waiter->port)
        ok(CloseHandle(waiter->port));
    if (waiter->event)
        ok(CloseHandle(waiter->event));
    ok(CloseHandle(waiter->never));
}

/* Uninitialised but for hEvent (A5). */
static void waiter_prepare(struct waiter *waiter, OVERLAPPED *ov)
{
    HANDLE event = waiter->event;

    if (waiter->style == STYLE_LOW_BIT)
        event = (HANDLE)((ULONG_PTR)event | 1);
    overlapped_rubbish(ov, event);
}

static void no_packet(HANDLE port)
{
    OVERLAPPED *out = (OVERLAPPED *)&port;
    ULONG_PTR key;
    DWORD bytes;

    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
    ok_ptr(out, ==, NULL);
    ok_int(GetLastError(), ==, WAIT_TIMEOUT);
}

static HRESULT waiter_wait(struct waiter *waiter, void *object, HRESULT started, OVERLAPPED *ov)
{
    IND2Overlapped *overlapped = object;
    HANDLE handles[2] = { waiter->never, waiter->event };
    OVERLAPPED_ENTRY entries[4];
    OVERLAPPED *out = NULL;
    ULONG_PTR key = 0;
    DWORD bytes = 77, n;
    BOOL done;

    if (started != ND_PENDING) {
        ok(FAILED(started));
        return started;
    }
    switch (waiter->style) {
    case STYLE_POLL:
        while (CALL(overlapped, GetOverlappedResult, ov, FALSE) == ND_PENDING)
            SwitchToThread();
        break;
    case STYLE_EVENT:
        ok_int(WaitForSingleObject(waiter->event, INFINITE), ==, WAIT_OBJECT_0);
        ok_int(WaitForSingleObject(waiter->event, 0), ==, WAIT_TIMEOUT); /* set once */
        break;
    case STYLE_MANUAL_EVENT:
        ok_int(WaitForSingleObject(waiter->event, INFINITE), ==, WAIT_OBJECT_0);
        ok_int(WaitForSingleObject(waiter->event, 0), ==, WAIT_OBJECT_0);
        break;
    case STYLE_MULTIPLE:
        ok_int(WaitForMultipleObjects(2, handles, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 1);
        break;
    case STYLE_PORT:
        done = GetQueuedCompletionStatus(waiter->port, &bytes, &key, &out, INFINITE);
        ok_ptr(out, ==, ov);
        ok_uint(key, ==, 0x1234);
        ok_int(done, ==, SUCCEEDED((HRESULT)ov->Internal));
        no_packet(waiter->port);
        break;
    case STYLE_PORT_MANY:
        ok(GetQueuedCompletionStatusEx(waiter->port, entries, 4, &n, INFINITE, FALSE));
        ok_int(n, ==, 1);
        ok_ptr(entries[0].lpOverlapped, ==, ov);
        ok_uint(entries[0].lpCompletionKey, ==, 0x1234);
        ok_uint((DWORD)entries[0].Internal, ==, (DWORD)ov->Internal);
        break;
    case STYLE_BLOCK:
        break;
    case STYLE_BLOCK_EVENT:
        break;
    case STYLE_LOW_BIT:
        ok_int(WaitForSingleObject(waiter->event, INFINITE), ==, WAIT_OBJECT_0);
        no_packet(waiter->port);
        break;
    case STYLE_WIN32:
        done = GetOverlappedResult(waiter->host->file, ov, &bytes, TRUE);
        ok_int(done, ==, SUCCEEDED((HRESULT)ov->Internal));
        break;
    }
    /* Legal after any of them, twice, blocking or not. */
    (void)CALL(overlapped, GetOverlappedResult, ov, TRUE);
    return CALL(overlapped, GetOverlappedResult, ov, FALSE);
}

#define WAIT(object, call) (waiter_prepare(&waiter, &ov), waiter_wait(&waiter, (object), (call), &ov))

/* Registration, refusal, a connection both ways, a notification and the disconnect, all waited for in one style. */
static void whole_session(enum style style)
{
    struct session session;
    struct link *link = &session.link;
    IND2Connector *connector;
    struct waiter waiter;
    OVERLAPPED ov;
    HRESULT hr;

    host_open(&session.host);
    link_make(link, &session.host, NULL);
    waiter_make(&waiter, style, &session.host);
    connector = link->connector;
    ok_status(WAIT(link->mr, CALL(link->mr, Deregister, &ov)), ND_SUCCESS);
    ok_status(WAIT(link->mr, CALL(link->mr, Register, link->buffer, 4096, ND_MR_FLAG_ALLOW_REMOTE_WRITE, &ov)),
              ND_SUCCESS);
    link->token = CALL(link->mr, GetLocalToken);
    for (uintptr_t i = 0; i < 2; i++)
        post_receive(link, i, 0, 64);
    if (runner_role() == ROLE_SERVER) {
        IND2Listener *listener = listen_any(&session.host);

        ok_status(WAIT(listener, CALL(listener, GetConnectionRequest, (IUnknown *)connector, &ov)), ND_SUCCESS);
        ok_status(CALL(connector, Reject, NULL, 0), ND_SUCCESS);
        release_last(connector);
        link_make_connector(link);
        connector = link->connector;
        ok_status(WAIT(listener, CALL(listener, GetConnectionRequest, (IUnknown *)connector, &ov)), ND_SUCCESS);
        ok_status(WAIT(connector, CALL(connector, Accept, (IUnknown *)link->qp, 0, 0, NULL, 0, &ov)), ND_SUCCESS);
        runner_settle();
        release_last(listener);
    } else {
        union endpoint to = listener_of_peer();

        link_bind(link);
        for (int i = 0; i < 2; i++)
            ok_status(WAIT(connector, CALL(connector, Connect, (IUnknown *)link->qp, &to.any, endpoint_size(&to), 0, 0,
                                           NULL, 0, &ov)),
                      i ? ND_SUCCESS : ND_CONNECTION_REFUSED);
        ok_status(WAIT(connector, CALL(connector, CompleteConnect, &ov)), ND_SUCCESS);
        runner_settle();
        post_send(link, 7, 64, 64, 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 7);
        runner_sync();
    }
    /* The answer comes while the client sleeps in its wait; progress needs no call of its own. */
    ok_status(WAIT(link->cq, CALL(link->cq, Notify, ND_CQ_NOTIFY_ANY, &ov)), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_SUCCESS, 0);
    if (runner_role() == ROLE_SERVER) {
        /* Else the answer may reach the client's queue before the completion of its own Send. */
        runner_sync();
        post_send(link, 7, 64, 64, 0);
        ok_result(link->cq, Nd2RequestTypeSend, ND_SUCCESS, 7);
        runner_settle();
        ok_status(WAIT(connector, CALL(connector, NotifyDisconnect, &ov)), ND_SUCCESS);
        ok_status(WAIT(connector, CALL(connector, Disconnect, &ov)), ND_SUCCESS);
    } else {
        runner_settle();
        ok_status(WAIT(connector, CALL(connector, Disconnect, &ov)), ND_SUCCESS);
    }
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    /* A request that ends in an error reaches the port as one. */
    waiter_prepare(&waiter, &ov);
    hr = CALL(link->cq, Notify, ND_CQ_NOTIFY_ERRORS, &ov);
    ok_status(CALL(link->cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(waiter_wait(&waiter, link->cq, hr, &ov), ND_CANCELED);
    waiter_drop(&waiter);
    /* link_drop's own requests use its event. */
    session_drop(&session);
}

#define STYLE(name, style)    \
    SERVER(name)              \
    {                         \
        whole_session(style); \
    }                         \
    CLIENT(name)              \
    {                         \
        whole_session(style); \
    }

/* tests/lists: A3, A28. */
STYLE(poll, STYLE_POLL)
STYLE(event, STYLE_EVENT)
STYLE(manual_event, STYLE_MANUAL_EVENT)
STYLE(multiple, STYLE_MULTIPLE)
STYLE(port, STYLE_PORT)
STYLE(port_many, STYLE_PORT_MANY)
STYLE(block_without_event, STYLE_BLOCK)
STYLE(block_with_event, STYLE_BLOCK_EVENT)
STYLE(event_low_bit, STYLE_LOW_BIT)
STYLE(win32_result, STYLE_WIN32)

/* On a port with an ordinary event: both are told. Bound to the port after the request began. */
ALONE(event_and_port)
{
    struct host host;
    struct link link;
    OVERLAPPED *out;
    ULONG_PTR key;
    HANDLE port;
    DWORD bytes;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    port = CreateIoCompletionPort(host.file, NULL, 5, 0);
    ok(port != NULL);
    ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 0));
    ok_ptr(out, ==, &link.ov);
    ok_uint(key, ==, 5);
    ok_int(GetLastError(), ==, ERROR_OPERATION_ABORTED);
    ok_int(WaitForSingleObject(link.event, 0), ==, WAIT_OBJECT_0);
    ok(CloseHandle(port));
    link_drop(&link);
    host_close(&host);
}

/* ndconn: GetOverlappedResult(TRUE) on an OVERLAPPED of zeros that never pended (A4). */
ALONE(never_started)
{
    OVERLAPPED zero = { 0 };
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL((IND2Overlapped *)link.connector, GetOverlappedResult, &zero, TRUE), ND_SUCCESS);
    ok_status(CALL((IND2Overlapped *)link.connector, GetOverlappedResult, &zero, FALSE), ND_SUCCESS);
    link_drop(&link);
    host_close(&host);
}

/* An error at the call leaves the OVERLAPPED and the event alone. */
ALONE(errors_leave_the_overlapped_alone)
{
    struct host host;
    struct link link;
    OVERLAPPED before;

    host_open(&host);
    link_make(&link, &host, NULL);
    overlapped_rubbish(&link.ov, link.event);
    ok(ResetEvent(link.event)); /* link_make registered with it */
    before = link.ov;
    ok_status(CALL(link.connector, Disconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.connector, NotifyDisconnect, &link.ov), ND_CONNECTION_INVALID);
    ok_status(CALL(link.cq, Notify, 9, &link.ov), ND_INVALID_PARAMETER_1);
    ok_status(CALL(link.mr, Register, link.buffer, 10, 0, &link.ov), ND_INVALID_DEVICE_STATE);
    ok_mem(&before, &link.ov, sizeof(before));
    ok_int(WaitForSingleObject(link.event, 0), ==, WAIT_TIMEOUT);
    link_drop(&link);
    host_close(&host);
}

/* A request that pends resets its event; an event that does not exist does no harm. */
ALONE(event_is_reset)
{
    struct host host;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok(SetEvent(link.event));
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    ok_int(WaitForSingleObject(link.event, 0), ==, WAIT_TIMEOUT);
    ok_int(WaitForSingleObject(link.event, 30), ==, WAIT_TIMEOUT);
    ok_pending(link.cq, &link.ov);
    ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
    ok_int(WaitForSingleObject(link.event, 0), ==, WAIT_OBJECT_0);
    link_drop(&link);
    host_close(&host);
}

/* The application closes the file while requests pend on it, and closes it again: nobody is hurt. */
ALONE(file_closed_early)
{
    struct host host, second;
    struct link link;

    host_open(&host);
    link_make(&link, &host, NULL);
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    ok(CloseHandle(host.file));
    host_open(&second); /* may get the same slot, not the same handle */
    ok(!CloseHandle(host.file));
    ok_int(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_pending(link.cq, &link.ov);
    ok_status(CALL(link.qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
    ok_status(CALL(link.qp, Flush), ND_SUCCESS);
    ok_status(finish(link.cq, ND_PENDING, &link.ov), ND_SUCCESS);
    ok_result(link.cq, Nd2RequestTypeReceive, ND_CANCELED, 1);
    link_drop(&link);
    release_last(host.adapter);
    ok_status(NdCleanup(), S_OK);
    host_close(&second);
}

/* A thread sleeps in a port wait while another one starts the requests: the sleeper gets every packet. */

struct sleeper {
    HANDLE port;
    OVERLAPPED *seen[64];
    volatile LONG n;
};

static DWORD WINAPI sleep_at_port(void *argument)
{
    struct sleeper *sleeper = argument;

    for (;;) {
        OVERLAPPED *out = NULL;
        ULONG_PTR key;
        DWORD bytes;

        (void)GetQueuedCompletionStatus(sleeper->port, &bytes, &key, &out, INFINITE);
        if (!out)
            return 0; /* posted by the case */
        sleeper->seen[sleeper->n] = out;
        InterlockedIncrement(&sleeper->n);
    }
}

/* tests/lists: D65. */
ALONE(sleeping_port_thread)
{
    struct sleeper sleeper = { 0 };
    struct link active, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;
    HANDLE thread;

    host_open(&host);
    link_make(&active, &host, NULL);
    link_make(&passive, &host, NULL);
    sleeper.port = CreateIoCompletionPort(host.file, NULL, 0, 0);
    thread = CreateThread(NULL, 0, sleep_at_port, &sleeper, 0, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    self_connect(&active, &passive, listener, &to);
    ok_eventually(sleeper.n == 4);
    ok_ptr(sleeper.seen[0], ==, &passive.ov); /* the request; Connect, CompleteConnect and Accept follow */
    if (!runner_iwarp())                      /* there Accept may be the first */
        ok_ptr(sleeper.seen[1], ==, &active.ov);
    ok(PostQueuedCompletionStatus(sleeper.port, 0, 0, NULL));
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    release_last(listener);
    link_drop(&active);
    link_drop(&passive);
    ok(CloseHandle(sleeper.port));
    host_close(&host);
}

/* Once Cancel or the last Release has returned, the OVERLAPPEDs are the application's: they lie in memory that goes away
 * then (MS-MPI frees them without draining the port), and another request may use the same one at once. */
ALONE(overlapped_freed_after_cancel)
{
    struct link link;
    struct host host;
    IND2Listener *listener;
    HANDLE port;

    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    port = CreateIoCompletionPort(host.file, NULL, 7, 0);
    ok(port != NULL);
    for (int i = 0; i < 6; i++) {
        OVERLAPPED *ov = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ULONG n = 0, packets = 0;
        OVERLAPPED_ENTRY entries[4];

        ok_ptr(ov, !=, MAP_FAILED);
        memset(ov, 0xa5, 2 * sizeof(*ov));
        ov[0].hEvent = ov[1].hEvent = NULL;
        ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &ov[0]), ND_PENDING);
        ok_status(CALL(listener, GetConnectionRequest, (IUnknown *)link.connector, &ov[1]), ND_PENDING);
        if (i == 5) {
            release_last(listener);
            release_last(link.qp);
            release_last(link.cq);
            link.qp = NULL;
            link.cq = NULL;
        } else {
            ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
            ok_status(CALL(listener, CancelOverlappedRequests), ND_SUCCESS);
        }
        ok_uint(ov[0].Internal, ==, (DWORD)ND_CANCELED);
        ok_uint(ov[1].Internal, ==, (DWORD)ND_CANCELED);
        if (i % 2) /* used again before the packet of its first request is fetched */
            ok_status(CALL(link.mr, Deregister, &ov[0]), ND_PENDING);
        if (i % 2)
            ok_status(CALL((IND2Overlapped *)link.mr, GetOverlappedResult, &ov[0], TRUE), ND_SUCCESS);
        ok_int(munmap(ov, 4096), ==, 0);
        while (GetQueuedCompletionStatusEx(port, entries, 4, &n, 0, FALSE)) {
            for (ULONG k = 0; k < n; k++)
                ok(entries[k].lpOverlapped == &ov[0] || entries[k].lpOverlapped == &ov[1]);
            packets += n;
        }
        ok_uint(packets, ==, i % 2 ? 3 : 2);
        if (i % 2 && i != 5) {
            link.ov.hEvent = (HANDLE)((ULONG_PTR)link.event | 1); /* no packet */
            ok_status(finish(link.mr,
                             CALL(link.mr, Register, link.buffer, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &link.ov),
                             &link.ov),
                      ND_SUCCESS);
        }
    }
    release_last(link.mr);
    link.mr = NULL;
    ok(CloseHandle(port));
    link_drop(&link);
    host_close(&host);
}

/* Connections come and go while a thread waits for a completion: that is none of its business (D55). */

static DWORD WINAPI wait_for_completion(void *argument)
{
    struct link *link = argument;

    ok_status(CALL((IND2Overlapped *)link->cq, GetOverlappedResult, &link->ov, TRUE), ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeReceive, ND_CANCELED, 3);
    return 0;
}

ALONE(connections_wake_no_wait_for_completions)
{
    struct link waits, active, passive;
    IND2Listener *listener;
    union endpoint to;
    struct host host;
    HANDLE thread;

    host_open(&host);
    link_make(&waits, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    ok_status(CALL(waits.qp, Receive, (void *)3, NULL, 0), ND_SUCCESS);
    ok_status(CALL(waits.cq, Notify, ND_CQ_NOTIFY_ANY, &waits.ov), ND_PENDING);
    thread = CreateThread(NULL, 0, wait_for_completion, &waits, 0, NULL);
    for (int i = 0; i < 5; i++) {
        link_make(&active, &host, NULL);
        link_make(&passive, &host, NULL);
        self_connect(&active, &passive, listener, &to);
        link_disconnect(&active);
        link_drop(&active);
        link_drop(&passive);
        ok_int(WaitForSingleObject(thread, 0), ==, WAIT_TIMEOUT);
    }
    ok_status(CALL(waits.qp, Flush), ND_SUCCESS);
    ok_int(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    release_last(listener);
    link_drop(&waits);
    host_close(&host);
}

/* Time-outs of the waits themselves, with requests pending. */
ALONE(wait_timeouts)
{
    struct host host;
    struct link link;
    OVERLAPPED *out = &link.ov;
    ULONG_PTR key;
    ULONGLONG start;
    HANDLE port;
    DWORD bytes;

    host_open(&host);
    link_make(&link, &host, NULL);
    port = CreateIoCompletionPort(host.file, NULL, 0, 0);
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ANY, &link.ov), ND_PENDING);
    start = GetTickCount64();
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &out, 60));
    ok_ptr(out, ==, NULL);
    ok_int(GetLastError(), ==, WAIT_TIMEOUT);
    ok_uint(GetTickCount64() - start, >=, 44); /* never early, but for the tick's grain */
    start = GetTickCount64();
    ok_int(WaitForSingleObject(link.event, 60), ==, WAIT_TIMEOUT);
    ok_uint(GetTickCount64() - start, >=, 44);
    ok_status(CALL(link.cq, CancelOverlappedRequests), ND_SUCCESS);
    ok(CloseHandle(port));
    link_drop(&link);
    host_close(&host);
}

RUNNER_MAIN
