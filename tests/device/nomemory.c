/* SPDX-License-Identifier: MIT */
/* What the process may not have any more: address space, and memory. Each call says so with the status that its page has, and works
 * once there is some again. */
#include "holdings.h"
#include "stock.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

/* ---- address space ---- */

static void need_plain_malloc(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    harness_skip("the sanitizer ends a process that has no memory");
#endif
    /* One heap for all threads, and what is large always gets its pages from the kernel. */
    ok(mallopt(M_ARENA_MAX, 1));
    ok(mallopt(M_MMAP_THRESHOLD, 64 << 10));
    ok(mallopt(M_TRIM_THRESHOLD, 64 << 10));
}

static void space_leave(SIZE_T room)
{
    struct rlimit limit;

    ok_int(getrlimit(RLIMIT_AS, &limit), ==, 0);
    limit.rlim_cur = (process_status("VmSize") << 10) + room;
    ok_int(setrlimit(RLIMIT_AS, &limit), ==, 0);
}

#define STEP (128 << 10)

/* ---- queues that grow ---- */

/* No room for the library's part: the queue is as before, and grows when there is some. */
ALONE(no_room_to_grow)
{
    const ND2_ADAPTER_INFO *info;
    struct stock stock;
    SIZE_T entries;

    need_plain_malloc();
    stock_make(&stock);
    info = &stock.host.info;
    for (int i = 0; i < 2; i++) {
        HRESULT wanted = i ? ND_SUCCESS : ND_INSUFFICIENT_RESOURCES;

        if (!i)
            space_leave(0);
        ok_status(CALL(stock.srq, Modify, info->MaxSharedReceiveQueueDepth, 0), wanted);
        /* A completion queue of siw does not grow; what it lacks first is still memory. */
        if (!i || !runner_iwarp()) {
            ok_status(CALL(stock.link[0].cq, Resize, info->MaxCompletionQueueDepth), wanted);
            ok_status(CALL(stock.v1.cq, Resize, stock.v1.info.MaxCqEntries), wanted);
            entries = stock.wv.attributes.MaxCqEntries;
            ok_status(CALL(stock.wvlink.cq, Resize, &entries), wanted);
        }
        limit_free(RLIMIT_AS);
        for (ULONG n = 0; n < 16; n++)
            ok_status(CALL(stock.srq, Receive, (void *)1, NULL, 0), ND_SUCCESS);
        if (!i)
            ok_status(CALL(stock.srq, Receive, (void *)1, NULL, 0), ND_NO_MORE_ENTRIES);
        release_last(stock.srq);
        ok_status(make_srq(&stock, false, (void **)&stock.srq), ND_SUCCESS);
    }
    stock_used(&stock);
    stock_drop(&stock);
}

/* Room for the library's part and none to map the device's: rxe's provider has lost the queue then. Whoever waits is told, and
 * nothing looks at what is not there any more. */

#define WITH_ROOM(room, call)  \
    ({                         \
        HRESULT with_room_;    \
                               \
        space_leave(room);     \
        with_room_ = (call);   \
        limit_free(RLIMIT_AS); \
        with_room_;            \
    })

static void need_lost_mapping(void)
{
    if (runner_iwarp())
        harness_skip("the queues of siw do not grow");
    need_plain_malloc();
}

ALONE(lost_completion_queue)
{
    OVERLAPPED pending, later;
    IND2CompletionQueue *cq;
    struct stock stock;
    bool lost = false;

    need_lost_mapping();
    stock_make(&stock);
    for (SIZE_T room = 0; !lost; room += STEP / 4) {
        overlapped_rubbish(&pending, NULL);
        overlapped_rubbish(&later, NULL);
        ok_status(make_cq(&stock, false, (void **)&cq), ND_SUCCESS);
        ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ERRORS, &pending), ND_PENDING);
        ok_status(WITH_ROOM(room, CALL(cq, Resize, stock.host.info.MaxCompletionQueueDepth)),
                  ND_INSUFFICIENT_RESOURCES);
        lost = CALL(cq, GetOverlappedResult, &pending, FALSE) != ND_PENDING;
        if (!lost) {
            ok_status(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
            ok_status(CALL(cq, GetOverlappedResult, &pending, TRUE), ND_CANCELED);
        } else {
            ok_status(CALL(cq, GetOverlappedResult, &pending, FALSE), ND_INTERNAL_ERROR);
            ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &later), ND_INTERNAL_ERROR);
            result_none(cq);
            runner_note("with %zu kB", (size_t)room >> 10);
        }
        release_last(cq);
    }
    stock_used(&stock);
    stock_drop(&stock);
}

ALONE(v1_lost_completion_queue)
{
    INDCompletionQueue *cq;
    OVERLAPPED pending;
    bool lost = false;
    struct stock stock;
    ND_RESULT *result;
    SIZE_T bytes;

    need_lost_mapping();
    stock_make(&stock);
    for (SIZE_T room = 0; !lost; room += STEP / 4) {
        overlapped_rubbish(&pending, NULL);
        ok_status(make_v1_cq(&stock, false, (void **)&cq), ND_SUCCESS);
        ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ERRORS, &pending), ND_PENDING);
        ok_status(WITH_ROOM(room, CALL(cq, Resize, stock.v1.info.MaxCqEntries)), ND_INSUFFICIENT_RESOURCES);
        lost = CALL(cq, GetOverlappedResult, &pending, &bytes, FALSE) != ND_PENDING;
        if (!lost) {
            ok_status(CALL(cq, CancelOverlappedRequests), ND_SUCCESS);
            ok_status(CALL(cq, GetOverlappedResult, &pending, &bytes, TRUE), ND_CANCELED);
        } else {
            ok_status(CALL(cq, GetOverlappedResult, &pending, &bytes, FALSE), ND_INTERNAL_ERROR);
            ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &pending), ND_INTERNAL_ERROR);
            ok_uint(CALL(cq, GetResults, &result, 1), ==, 0);
        }
        release_last(cq);
    }
    stock_used(&stock);
    stock_drop(&stock);
}

ALONE(lost_shared_receive_queue)
{
    struct stock stock;
    bool lost = false;
    OVERLAPPED ov;

    need_lost_mapping();
    stock_make(&stock);
    for (SIZE_T room = 0; !lost; room += STEP / 4) {
        HRESULT status;

        overlapped_rubbish(&ov, NULL);
        ok_status(CALL(stock.srq, Receive, (void *)1, NULL, 0), ND_SUCCESS);
        ok_status(WITH_ROOM(room, CALL(stock.srq, Modify, stock.host.info.MaxSharedReceiveQueueDepth, 0)),
                  ND_INSUFFICIENT_RESOURCES);
        status =
            stock.srq->lpVtbl->Receive(stock.srq, (void *)2, NULL, 0); /* not noted: its page has no status for this */
        lost = status != ND_SUCCESS;
        if (lost) {
            ok_status(CALL(stock.srq, Notify, &ov), ND_INTERNAL_ERROR);
            runner_note("with %zu kB", (size_t)room >> 10);
        }
        release_last(stock.srq);
        ok_status(make_srq(&stock, false, (void **)&stock.srq), ND_SUCCESS);
    }
    stock_used(&stock);
    stock_drop(&stock);
}

/* ---- memory ---- */

struct block {
    struct block *next;
};

/* Every block that malloc has, of each size, and none comes to it. */
static struct block *memory_take(void)
{
    struct block *taken = NULL, *block;
    struct rlimit limit;

    ok_int(getrlimit(RLIMIT_AS, &limit), ==, 0);
    limit.rlim_cur = 0;
    ok_int(setrlimit(RLIMIT_AS, &limit), ==, 0);
    for (size_t size = 1 << 20; size >= 16; size = size > 2048 ? size / 2 : size - 16) {
        while ((block = malloc(size)) != NULL) {
            block->next = taken;
            taken = block;
        }
    }
    return taken;
}

static void memory_give(struct block *taken)
{
    while (taken) {
        struct block *next = taken->next;

        free(taken);
        taken = next;
    }
    limit_free(RLIMIT_AS);
}

/* The stack grows no more either. */
static void stack_touch(void)
{
    volatile char space[256 << 10];

    for (size_t i = 0; i < sizeof(space); i += 1024)
        space[i] = 1;
}

/* Of NdOpenAdapter the first part, its provider, is too small for a status of its own. There are more places of its size than other
 * threads may take, each between two that are in use, so that no larger one comes of them. */
#define SMALL 128

/* `flush`: it looks for the addresses anew, for which there is no memory. */
static HRESULT open_in_small(struct openers *openers, bool flush)
{
    struct block *taken;
    void *small[SMALL];
    HRESULT status;
    IUnknown *made;

    for (int k = 0; k < SMALL; k++)
        ok((small[k] = malloc(16)) != NULL);
    if (flush)
        NdFlushProviders();
    taken = memory_take();
    for (int k = 0; k < SMALL; k += 2)
        free(small[k]);
    status = open_by(openers, 0, &made);
    memory_give(taken);
    for (int k = 1; k < SMALL; k += 2)
        free(small[k]);
    ok_ptr(made, ==, NULL);
    return status;
}

ALONE(no_memory)
{
    static BYTE memory[4096];
    struct openers openers;
    IClassFactory *factory;
    void *object;
    struct block *taken;
    WV_MEMORY_KEYS keys;
    struct stock stock;
    SIZE_T size = 0;
    IUnknown *made;

    need_plain_malloc();
    stack_touch();
    openers_make(&openers);
    stock_make(&stock);
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IClassFactory, (void **)&factory), S_OK);
    taken = memory_take();
    for (size_t i = 0; i < kinds_count; i++) {
        HRESULT status;

        if (kind_missing(i))
            continue;
        status = make_one(&stock, i, false);
        ok_msg(status == kinds[i].no_memory, "%s: 0x%08x (%s)", kinds[i].name, (unsigned)status,
               ndverbs_status_text(status));
    }
    ok_status(CALL(stock.wv.pd, RegisterMemory, memory, sizeof(memory), 0, NULL, &keys), WV_NO_MEMORY);
    for (int way = 1; way < WAYS; way++) {
        HRESULT status = open_by(&openers, way, &made);

        ok_msg(status == (way < BY_GUID ? ND_NO_MEMORY : WV_FILE_NOT_FOUND), "way %d: 0x%08x (%s)", way,
               (unsigned)status, ndverbs_status_text(status));
        ok_ptr(made, ==, NULL);
    }
    ok_status(WvGetObject(&IID_IWVProvider, &object), WV_NO_MEMORY);
    ok_ptr(object, ==, NULL);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, &object), E_OUTOFMEMORY);
    NdFlushProviders();
    ok_status(NdQueryAddressList(0, NULL, &size), ND_NO_MEMORY);
    ok_uint(size, ==, 0);
    ok_status(CALL(openers.v1, QueryAddressList, NULL, &size), ND_NO_MEMORY);
    memory_give(taken);
    ok_status(open_in_small(&openers, false), ND_NO_MEMORY);
    ok_status(open_in_small(&openers, true), ND_NO_MEMORY);
    make_all(&stock, ND_SUCCESS);
    all_ways(&openers, ND_SUCCESS);
    release_last(factory);
    stock_used(&stock);
    stock_drop(&stock);
    openers_drop(&openers);
}

/* The largest that there are: without memory, and then with a little more address space each time, until the device's part can be
 * mapped, too. */
ALONE(no_address_space)
{
    struct block *taken;
    struct stock stock;

    need_plain_malloc();
    stack_touch();
    stock_make(&stock);
    for (size_t i = 0; i < kinds_count; i++) {
        unsigned refused = 0;
        SIZE_T room = 0;
        HRESULT status;

        if (!kinds[i].sized || kind_missing(i))
            continue;
        taken = memory_take();
        status = make_one(&stock, i, true);
        memory_give(taken);
        ok_msg(status == ND_NO_MEMORY, "%s: 0x%08x (%s)", kinds[i].name, (unsigned)status, ndverbs_status_text(status));
        for (; status != ND_SUCCESS; room += STEP) {
            space_leave(room);
            status = make_one(&stock, i, true);
            limit_free(RLIMIT_AS);
            refused += status == ND_INSUFFICIENT_RESOURCES;
            ok_msg(status == ND_SUCCESS || status == ND_NO_MEMORY || status == ND_INSUFFICIENT_RESOURCES,
                   "%s: 0x%08x (%s)", kinds[i].name, (unsigned)status, ndverbs_status_text(status));
        }
        runner_note("%s: %u times refused, made with %zu kB", kinds[i].name, refused, (size_t)(room - STEP) >> 10);
        ok_msg(refused, "%s was not refused", kinds[i].name);
    }
    stock_used(&stock);
    stock_drop(&stock);
}

/* A request needs a record; each file keeps those that it had. */

#define REQUESTS 256

struct waiting {
    OVERLAPPED ov[REQUESTS];
    unsigned count;
};

/* Starts so many until there is no record for the next one. */
#define waiting_fill(waiting, object, method, type)                               \
    do {                                                                          \
        HRESULT fill_;                                                            \
                                                                                  \
        for ((waiting)->count = 0;; (waiting)->count++) {                         \
            ok_uint((waiting)->count, <, REQUESTS);                               \
            overlapped_rubbish(&(waiting)->ov[(waiting)->count], NULL);           \
            fill_ = CALL(object, method, type, &(waiting)->ov[(waiting)->count]); \
            if (fill_ != ND_PENDING && fill_ != WV_IO_PENDING)                    \
                break;                                                            \
        }                                                                         \
        ok_status(fill_, ND_INSUFFICIENT_RESOURCES);                              \
    } while (0)

#define waiting_end(waiting, object)                                                         \
    do {                                                                                     \
        ok_status(CALL(object, CancelOverlappedRequests), ND_SUCCESS);                       \
        while ((waiting)->count--)                                                           \
            ok_eventually((HRESULT)(waiting)->ov[(waiting)->count].Internal == ND_CANCELED); \
    } while (0)

ALONE(no_memory_for_requests)
{
    static struct waiting waiting;
    union endpoint own = own_endpoint(), to;
    IND2Connector *connector;
    IND2Listener *listener;
    struct block *taken;
    struct stock stock;
    struct link *link;
    OVERLAPPED ov;

    need_plain_malloc();
    stack_touch();
    stock_make(&stock);
    link = &stock.link[0];
    listener = listen_any(&stock.host);
    to = listener_endpoint(listener);
    ok_status(make_connector(&stock, false, (void **)&connector), ND_SUCCESS);
    ok_status(CALL(connector, Bind, &own.any, endpoint_size(&own)), ND_SUCCESS);
    overlapped_rubbish(&ov, NULL);
    taken = memory_take();
    waiting_fill(&waiting, link->cq, Notify, ND_CQ_NOTIFY_ERRORS);
    ok_status(CALL(stock.srq, Notify, &ov), ND_INSUFFICIENT_RESOURCES);
    ok_status(CALL(connector, Connect, (IUnknown *)link->qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &ov),
              ND_INSUFFICIENT_RESOURCES);
    memory_give(taken);
    waiting_end(&waiting, link->cq);
    release_last(connector);
    release_last(listener);
    stock_used(&stock);
    stock_drop(&stock);
}

/* Version 1 keeps records of memory, too, some of them in advance. */
#define RECORDS 64

ALONE(v1_no_memory_for_requests)
{
    static struct waiting waiting;
    static BYTE memory[4096];
    struct block *taken;
    union endpoint to;
    INDListen *listen, *other;
    struct v1 a, b;
    USHORT port;
    HRESULT hr;
    ND_MR_HANDLE mr;

    need_plain_malloc();
    stack_touch();
    v1_open(&a, 4096);
    v1_open(&b, 4096);
    v1_make_connector(&a);
    v1_make_endpoint(&a);
    ok_status(CALL(b.adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(&b, port);
    release_last(listen);
    listener_gone(&to);
    ok_status(v1_try_connect(&a, &to), ND_CONNECTION_REFUSED); /* from now on it has its port */
    /* Last, and done with in the call: the record of the Connect may come back after its completion. */
    for (int i = 2; i < RECORDS; i++)
        ok_status(v1_register(&a, memory, sizeof(memory), &mr), ND_SUCCESS);
    taken = memory_take();
    ok_status(v1_register(&a, memory, sizeof(memory), &mr), ND_NO_MEMORY);
    waiting_fill(&waiting, a.cq, Notify, ND_CQ_NOTIFY_ERRORS);
    ok_status(v1_register(&a, memory, sizeof(memory), &mr), ND_INSUFFICIENT_RESOURCES);
    ok_status(CALL(a.adapter, Listen, 0, 123, 0, &port, &other), ND_NO_MEMORY);
    ok_ptr(other, ==, NULL);
    hr = CALL(a.connector, Connect, a.endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &a.ov);
    ok_status(hr, ND_INSUFFICIENT_RESOURCES);
    memory_give(taken);
    waiting_end(&waiting, a.cq);
    v1_self_connect(&a, &b);
    v1_disconnect(&a);
    v1_close(&a);
    v1_close(&b);
}

#define ok_refused(object, method, ...) ok_status(CALL(object, method, ##__VA_ARGS__), WV_INSUFFICIENT_RESOURCES)

ALONE(wv_no_memory_for_requests)
{
    static struct waiting waiting;
    INdvConnectEndpoint *extension;
    WV_QP_ATTRIBUTES error = { 0 };
    WV_CONNECT_PARAM param;
    IWVSharedReceiveQueue *srq;
    IWVConnectEndpoint *fresh, *passive;
    struct block *taken;
    struct wvpair pair;
    struct wvlink *a = &pair.link[0];
    DWORD flags;
    OVERLAPPED ov;

    need_plain_malloc();
    stack_touch();
    wv_pair(&pair, NULL);
    error.QpState = WvQpStateError;
    param = wv_param(a);
    overlapped_rubbish(&ov, NULL);
    ok_status(CALL(pair.host[0].pd, CreateSharedReceiveQueue, 16, 1, 0, &srq), WV_SUCCESS);
    fresh = wv_make_endpoint(&pair.host[0]);
    passive = wv_make_endpoint(&pair.host[1]);
    endpoint_set_port(&pair.host[0].address, 0);
    ok_status(CALL(fresh, BindAddress, &pair.host[0].address.any), WV_SUCCESS);
    ok_status(CALL(a->endpoint, QueryInterface, &IID_INdvConnectEndpoint, (void **)&extension), WV_SUCCESS);
    taken = memory_take();
    waiting_fill(&waiting, a->cq, Notify, WvCqError);
    ok_refused(a->cq, BatchNotify, 4, &ov);
    ok_refused(srq, Notify, &ov);
    ok_refused(pair.host[0].device, Notify, pair.host[0].where.PortNumber, &ov, &flags);
    ok_refused(pair.host[0].pd, DeregisterMemory, a->keys.Lkey, &ov);
    ok_refused(a->qp, Modify, &error, WV_QP_ATTR_STATE, &ov);
    ok_refused(fresh, Connect, a->qp, &pair.to.any, &param, &ov);
    ok_refused(a->endpoint, NotifyDisconnect, &ov);
    ok_refused(a->endpoint, Disconnect, &ov);
    ok_refused(extension, DisconnectAndFlush, NULL, &ov);
    memory_give(taken);
    waiting_end(&waiting, a->cq);
    /* The listener's provider is another one, with a file of its own. */
    taken = memory_take();
    waiting_fill(&waiting, pair.link[1].cq, Notify, WvCqError);
    ok_refused(pair.listener, GetRequest, passive, &ov);
    memory_give(taken);
    waiting_end(&waiting, pair.link[1].cq);
    CALL(extension, Release);
    release_last(fresh);
    release_last(passive);
    release_last(srq);
    /* What was refused did nothing: a message. */
    wv_receive(&pair.link[1], 1, 0, 64);
    wv_send(a, 2, 0, 64, 0);
    ok_completion(pair.link[1].cq, WvReceive, WvWcSuccess, 1);
    ok_completion(a->cq, WvSend, WvWcSuccess, 2);
    wv_pair_drop(&pair);
}

ALONE(wv_no_memory_for_datagrams)
{
    static struct waiting waiting;
    union endpoint group = endpoint_from("239.7.7.9");
    IWVDatagramEndpoint *service, *caller, *request;
    WV_QP_ATTRIBUTES error = { 0 };
    WV_DATAGRAM_ATTRIBUTES at;
    struct block *taken;
    struct wvhost host;
    struct wvud ud;
    OVERLAPPED ov;
    WV_GID gid;

    if (runner_iwarp())
        harness_skip("iWARP has no datagrams");
    need_plain_malloc();
    stack_touch();
    wv_open(&host);
    wv_ud_make(&ud, &host, 4, 64);
    error.QpState = WvQpStateError;
    overlapped_rubbish(&ov, NULL);
    service = wv_make_datagram(&host), caller = wv_make_datagram(&host), request = wv_make_datagram(&host);
    endpoint_set_port(&host.address, 0);
    ok_status(CALL(caller, BindAddress, &host.address.any), WV_SUCCESS);
    ok_status(CALL(service, BindAddress, &host.address.any), WV_SUCCESS);
    ok_status(CALL(service, Listen, 1), WV_SUCCESS);
    ok_status(WV_FINISH(caller, &ov, CALL(caller, JoinMulticast, &group.any, &ov)), WV_SUCCESS);
    memset(&at, 0, sizeof(at));
    memcpy(&at.PeerAddress, &group, sizeof(at.PeerAddress));
    ok_status(CALL(caller, Query, &at), WV_SUCCESS);
    gid = at.Param.AddressVector.Route.DGid;
    taken = memory_take();
    waiting_fill(&waiting, ud.cq, Notify, WvCqError);
    ok_refused(ud.qp, Modify, &error, WV_QP_ATTR_STATE, &ov);
    ok_refused(ud.qp, AttachMulticast, &gid, 0, &ov);
    ok_refused(ud.qp, DetachMulticast, &gid, 0, &ov);
    ok_refused(service, GetRequest, request, &ov);
    ok_refused(caller, LeaveMulticast, &group.any, &ov);
    ok_refused(request, Lookup, &host.address.any, NULL, 0, &ov);
    memory_give(taken);
    waiting_end(&waiting, ud.cq);
    ok_status(CALL(ud.qp, AttachMulticast, &gid, 0, NULL), WV_SUCCESS);
    ok_status(CALL(ud.qp, DetachMulticast, &gid, 0, NULL), WV_SUCCESS);
    release_last(service);
    release_last(caller);
    release_last(request);
    wv_ud_drop(&ud);
    wv_close(&host);
}

/* The id of the connection manager that Bind makes, or version 1's Connect. */
ALONE(no_memory_to_bind)
{
    union endpoint own = own_endpoint(), to = own;
    IND2Connector *connector;
    IND2Listener *listener;
    INDEndpoint *endpoint;
    struct block *taken;
    struct stock stock;

    need_plain_malloc();
    stack_touch();
    stock_make(&stock);
    ok_status(make_listener(&stock, false, (void **)&listener), ND_SUCCESS);
    ok_status(make_connector(&stock, false, (void **)&connector), ND_SUCCESS);
    ok_status(make_v1_endpoint(&stock, false, (void **)&endpoint), ND_SUCCESS);
    endpoint_set_port(&to, 5000);
    taken = memory_take();
    ok_status(CALL(connector, Bind, &own.any, endpoint_size(&own)), ND_INSUFFICIENT_RESOURCES);
    ok_status(CALL(listener, Bind, &own.any, endpoint_size(&own)), ND_INSUFFICIENT_RESOURCES);
    ok_status(CALL(stock.v1.connector, Connect, endpoint, &to.any, endpoint_size(&to), 123, 0, NULL, 0, &stock.v1.ov),
              ND_INSUFFICIENT_RESOURCES);
    memory_give(taken);
    ok_status(CALL(connector, Bind, &own.any, endpoint_size(&own)), ND_SUCCESS);
    ok_status(CALL(listener, Bind, &own.any, endpoint_size(&own)), ND_SUCCESS);
    ok_status(CALL(listener, Listen, 0), ND_SUCCESS);
    release_last(connector);
    release_last(listener);
    release_last(endpoint);
    stock_used(&stock);
    stock_drop(&stock);
}

RUNNER_MAIN
