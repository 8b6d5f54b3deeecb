/* SPDX-License-Identifier: MIT */
/* What the process may not have any more: contexts and objects of the device (the rdma control group), descriptors, address space,
 * memory. Each call says so with the status that its page has, and works once there is some again. */
#include "stock.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

/* ---- the control group ---- */

#define GROUPS "/run/ndverbs-groups"

static bool write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return written;
}

static bool kernel_has_groups(void)
{
    char text[512] = "";
    FILE *file = fopen(GROUPS "/cgroup.controllers", "re");

    ok(file != NULL);
    if (!fgets(text, sizeof(text), file))
        text[0] = '\0';
    fclose(file);
    return strstr(text, "rdma") != NULL;
}

static void group_file(char *path, size_t size, const char *name)
{
    snprintf(path, size, GROUPS "/%d%s%s", (int)getpid(), name ? "/" : "", name ? name : "");
}

/* What the process gets of the device from now on is counted in a group of its own. */
static void group_enter(void)
{
    char path[128];

    if (!runner_machine())
        harness_skip("the control groups of this host are not ours to change");
    ok(mkdir(GROUPS, 0700) == 0 || errno == EEXIST);
    ok(mount("none", GROUPS, "cgroup2", 0, NULL) == 0 || errno == EBUSY);
    if (!kernel_has_groups())
        harness_skip("the kernel has no rdma control group (CONFIG_CGROUP_RDMA)");
    ok(write_to(GROUPS "/cgroup.subtree_control", "+rdma"));
    group_file(path, sizeof(path), NULL);
    ok_int(mkdir(path, 0700), ==, 0);
    group_file(path, sizeof(path), "cgroup.procs");
    ok(write_to(path, "0"));
}

/* So many contexts and objects in all, each a number or "max". Less than there are is a limit, too: none comes any more. */
static void group_limit(const char *contexts, const char *objects)
{
    char path[128], text[128];

    group_file(path, sizeof(path), "rdma.max");
    snprintf(text, sizeof(text), "%s hca_handle=%s hca_object=%s", runner_env("NDVERBS_DEVICE"), contexts, objects);
    ok(write_to(path, text));
}

/* Back to where it was; the group goes with the last that was counted in it. */
static void group_leave(void)
{
    char path[128];

    group_limit("max", "max");
    ok(write_to(GROUPS "/cgroup.procs", "0"));
    group_file(path, sizeof(path), NULL);
    ok_int(rmdir(path), ==, 0);
}

/* ---- objects of the device ---- */

/* No context for the device. librdmacm has its own from the list of addresses on. */
ALONE(open_without_contexts)
{
    struct openers openers;
    IUnknown *made;

    openers_make(&openers);
    group_enter();
    group_limit("0", "max");
    all_ways(&openers, ND_INSUFFICIENT_RESOURCES);
    group_limit("max", "max");
    all_ways(&openers, ND_SUCCESS);
    /* No protection domain for another adapter of a device that is open. */
    ok_status(open_by(&openers, 0, &made), ND_SUCCESS);
    group_limit("max", "0");
    all_ways(&openers, ND_INSUFFICIENT_RESOURCES);
    group_limit("max", "max");
    all_ways(&openers, ND_SUCCESS);
    release_last(made);
    openers_drop(&openers);
    group_leave();
}

ALONE(no_objects)
{
    struct stock stock;

    stock_make(&stock);
    group_enter();
    for (int i = 0; i < 2; i++) {
        group_limit("max", "0");
        make_all(&stock, ND_INSUFFICIENT_RESOURCES);
        register_all(&stock, ND_INSUFFICIENT_RESOURCES);
        group_limit("max", "max");
        make_all(&stock, ND_SUCCESS);
        register_all(&stock, ND_SUCCESS);
    }
    stock_used(&stock);
    stock_drop(&stock);
    group_leave();
}

/* A window whose queue pair went while it was bound needs another one of the kernel, or another registration on siw. */

static void refused_then_bound(struct link *link, IND2MemoryWindow *window)
{
    group_limit("max", "0");
    ok_status(CALL(link->qp, Bind, (void *)2, (IUnknown *)link->mr, (IUnknown *)window, link->buffer, 64,
                   ND_OP_FLAG_ALLOW_READ),
              ND_INSUFFICIENT_RESOURCES);
    result_none(link->cq);
    group_limit("max", "max");
    ok_status(CALL(link->qp, Bind, (void *)3, (IUnknown *)link->mr, (IUnknown *)window, link->buffer, 64,
                   ND_OP_FLAG_ALLOW_READ),
              ND_SUCCESS);
    ok_result(link->cq, Nd2RequestTypeBind, ND_SUCCESS, 3);
}

ALONE(no_window_to_bind)
{
    IND2MemoryWindow *window;
    IND2Listener *listener;
    struct link a, b;
    union endpoint to;
    struct host host;

    host_open(&host);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    ok_status(CALL(host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, (void **)&window), ND_SUCCESS);
    group_enter();
    for (int i = 0; i < 2; i++) {
        link_make(&a, &host, NULL);
        link_make(&b, &host, NULL);
        self_connect(&a, &b, listener, &to);
        wv_settle();
        if (i) {
            refused_then_bound(&a, window);
        } else {
            ok_status(
                CALL(a.qp, Bind, (void *)1, (IUnknown *)a.mr, (IUnknown *)window, a.buffer, 64, ND_OP_FLAG_ALLOW_READ),
                ND_SUCCESS);
            ok_result(a.cq, Nd2RequestTypeBind, ND_SUCCESS, 1);
        }
        link_disconnect(&a);
        link_drop(&a);
        link_drop(&b);
    }
    release_last(window);
    release_last(listener);
    host_close(&host);
    group_leave();
}

ALONE(v1_no_window_to_bind)
{
    ND_MW_DESCRIPTOR descriptor;
    INDMemoryWindow *window;
    ND_RESULT revoked, result;
    struct v1 a, b;

    v1_open(&a, 4096);
    v1_open(&b, 4096);
    ok_status(CALL(a.adapter, CreateMemoryWindow, &revoked, &window), ND_SUCCESS);
    group_enter();
    for (int i = 0; i < 2; i++) {
        v1_self_connect(&a, &b);
        wv_settle();
        if (i) {
            group_limit("max", "0");
            ok_status(CALL(a.endpoint, Bind, &result, a.mr, window, a.buffer, 64, ND_OP_FLAG_ALLOW_READ, &descriptor),
                      ND_INSUFFICIENT_RESOURCES);
            v1_none(&a);
            group_limit("max", "max");
        }
        ok_status(CALL(a.endpoint, Bind, &result, a.mr, window, a.buffer, 64, ND_OP_FLAG_ALLOW_READ, &descriptor),
                  ND_SUCCESS);
        ok_v1_result(&a, &result, ND_SUCCESS);
        v1_disconnect(&a);
        v1_drop(&a);
        v1_drop(&b);
    }
    release_last(window);
    v1_close(&a);
    v1_close(&b);
    group_leave();
}

static HRESULT bind_wv(struct wvlink *link, IWVMemoryWindow *window, UINT64 id, SIZE_T length)
{
    NET32 key;

    return CALL(link->qp, BindMemoryWindow, window, id, link->keys.Lkey, WV_ACCESS_REMOTE_READ, 0, link->buffer, length,
                &key);
}

/* The same of a window that was being unbound when its queue pair went: nobody has looked since. */
ALONE(wv_no_window_to_bind)
{
    struct wvpair pair;
    struct wvlink *a = &pair.link[0];
    IWVMemoryWindow *window;

    wv_pair(&pair, NULL);
    if (!pair.host[0].attributes.MaxMw) {
        wv_pair_drop(&pair);
        harness_skip("the device has no memory windows");
    }
    ok_status(CALL(pair.host[0].pd, AllocateMemoryWindow, &window), WV_SUCCESS);
    ok_status(bind_wv(a, window, 1, 64), WV_SUCCESS);
    ok_status(bind_wv(a, window, 2, 0), WV_SUCCESS);
    ok_completion(a->cq, WvBindWindow, WvWcSuccess, 1);
    ok_completion(a->cq, WvBindWindow, WvWcSuccess, 2);
    group_enter();
    for (int i = 0; i < 2; i++) {
        struct wvlink *link = &pair.link[i];

        release_last(link->qp);
        release_last(link->endpoint);
        link->qp = wv_make_qp(link);
        wv_to_init(link, link->qp);
        link->endpoint = wv_make_endpoint(link->host);
    }
    wv_pair_connect(&pair);
    group_limit("max", "0");
    ok_status(bind_wv(a, window, 3, 64), WV_INSUFFICIENT_RESOURCES);
    wv_none(a->cq);
    group_limit("max", "max");
    ok_status(bind_wv(a, window, 4, 64), WV_SUCCESS);
    ok_completion(a->cq, WvBindWindow, WvWcSuccess, 4);
    release_last(window);
    wv_pair_drop(&pair);
    group_leave();
}

/* ---- descriptors ---- */

static void descriptors_leave(int free)
{
    struct rlimit limit;
    int fd = 0;

    ok_int(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    while (fcntl(fd, F_GETFD) >= 0 || free-- > 0)
        fd++;
    limit.rlim_cur = (rlim_t)fd;
    ok_int(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

static void limit_free(int resource)
{
    struct rlimit limit;

    ok_int(getrlimit(resource, &limit), ==, 0);
    limit.rlim_cur = limit.rlim_max;
    ok_int(setrlimit(resource, &limit), ==, 0);
}

/* With one descriptor more each time, until there are enough. Without any, libibverbs says that the kernel has no devices. */
ALONE(open_without_descriptors)
{
    struct openers openers;

    openers_make(&openers);
    for (int way = 0; way < WAYS; way++) {
        HRESULT status = ND_INSUFFICIENT_RESOURCES;
        int left = 0, before;
        IUnknown *made;

        for (; status != ND_SUCCESS; left++) {
            before = open_descriptors();
            ok_status(NdCheckAddress(&openers.own.any, endpoint_size(&openers.own)),
                      ND_SUCCESS); /* as nothing is kept */
            descriptors_leave(left);
            status = open_by(&openers, way, &made);
            limit_free(RLIMIT_NOFILE);
            if (status != ND_SUCCESS) {
                HRESULT wanted = way >= BY_GUID && !left ? WV_FILE_NOT_FOUND : ND_INSUFFICIENT_RESOURCES;

                ok_msg(status == wanted, "way %d, %d left: 0x%08x (%s)", way, left, (unsigned)status,
                       ndverbs_status_text(status));
                ok_ptr(made, ==, NULL);
            }
        }
        runner_note("way %d: %d descriptors", way, left - 1);
        ok_int(left, >, 1);
        before = open_descriptors();
        if (made)
            release_last(made);
        if (made)
            ok_eventually(open_descriptors() < before);
    }
    openers_drop(&openers);
}

/* Two are left, which the context of the device takes: none is for its completion channel. All else is there from before. */
ALONE(open_without_a_channel)
{
    union endpoint own = own_endpoint();
    IND2CompletionQueue *cq;
    struct host host;
    struct link link;
    OVERLAPPED ov;
    int before;

    host_open(&host);
    before = open_descriptors();
    host_close(&host);
    ok_eventually(open_descriptors() <= before - 3);
    ok_status(NdStartup(), S_OK);
    ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
    descriptors_leave(2);
    host_open(&host);
    limit_free(RLIMIT_NOFILE);
    overlapped_rubbish(&ov, NULL);
    ok_status(CALL(host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, host.file, 16, 0, 0, (void **)&cq),
              ND_SUCCESS);
    ok_status(CALL(cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_NOT_SUPPORTED);
    release_last(cq);
    link_make(&link, &host, NULL); /* and the rest of the device is as ever */
    ok_status(CALL(link.cq, Notify, ND_CQ_NOTIFY_ERRORS, &ov), ND_NOT_SUPPORTED);
    link_drop(&link);
    host_close(&host);
    ok_status(NdCleanup(), S_OK);
}

ALONE(no_socket)
{
    union endpoint own = own_endpoint(), local;
    SIZE_T size = sizeof(local);
    IBAT_PATH_BLOB blob;
    int before;

    harness_status_text = ndverbs_status_text;
    ok_status(NdStartup(), S_OK);
    ok_status(NdCheckAddress(&own.any, endpoint_size(&own)), ND_SUCCESS);
    ok_status(IbatQueryPath(&own.any, &own.any, &blob), WV_SUCCESS);
    before = open_descriptors();
    descriptors_leave(0);
    ok_status(NdResolveAddress(&own.any, endpoint_size(&own), &local.any, &size), ND_UNSUCCESSFUL);
    ok_uint(size, ==, 0);
    ok_status(IbatQueryPath(&own.any, &own.any, &blob), WV_INSUFFICIENT_RESOURCES);
    ok_uint(blob.byte[8], ==, 0);
    limit_free(RLIMIT_NOFILE);
    ok_int(open_descriptors(), ==, before);
    size = sizeof(local);
    ok_status(NdResolveAddress(&own.any, endpoint_size(&own), &local.any, &size), ND_SUCCESS);
    ok_status(IbatQueryPath(&own.any, &own.any, &blob), WV_SUCCESS);
    ok_status(NdCleanup(), S_OK);
}

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

/* Of NdOpenAdapter the first part, its provider, is too small for a status of its own. */
#define SMALL 10

ALONE(no_memory)
{
    static BYTE memory[4096];
    void *small[SMALL], *object;
    struct openers openers;
    IClassFactory *factory;
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
    for (int i = 0; i < SMALL; i++)
        ok((small[i] = malloc(16)) != NULL);
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
    ok_status(NdCheckAddress(&openers.own.any, endpoint_size(&openers.own)), ND_SUCCESS);
    taken = memory_take();
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
    ok_status(open_by(&openers, 0, &made), ND_NO_MEMORY);
    memory_give(taken);
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
    for (int i = 2; i < RECORDS; i++)
        ok_status(v1_register(&a, memory, sizeof(memory), &mr), ND_SUCCESS);
    v1_make_connector(&a);
    v1_make_endpoint(&a);
    ok_status(CALL(b.adapter, Listen, 0, 123, 0, &port, &listen), ND_SUCCESS);
    to = v1_listener(&b, port);
    release_last(listen);
    ok_status(v1_try_connect(&a, &to), ND_CONNECTION_REFUSED); /* from now on it has its port */
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

/* ---- the local address ---- */

/* A Connect that fails, or is cancelled, keeps its port, which the next one takes over: not without the address. */
ALONE(address_is_gone)
{
    union endpoint away = endpoint_from("10.66.9.1"), to;
    const char *netdev = runner_env("NDVERBS_NETDEV");
    IND2Listener *listener;
    struct host host;
    struct link link;
    HRESULT hr;

    if (!runner_machine())
        harness_skip("the addresses of this host are not ours to change");
    if (runner_iwarp())
        harness_skip("iWARP: what is cancelled was answered before");
    ok_int(runner_command("ip addr add 10.66.9.1/24 dev %s", netdev), ==, 0);
    host_open(&host);
    link_make(&link, &host, NULL);
    listener = listen_any(&host);
    to = listener_endpoint(listener);
    ok_eventually(CALL(link.connector, Bind, &away.any, endpoint_size(&away)) == ND_SUCCESS);
    hr = CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov);
    ok_status(hr, ND_PENDING); /* nobody takes the request */
    ok_int(runner_command("ip addr del 10.66.9.1/24 dev %s", netdev), ==, 0);
    ok_status(CALL(link.connector, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(FINISH(&link, hr), ND_CANCELED);
    for (int i = 0; i < 2; i++)
        ok_status(
            CALL(link.connector, Connect, (IUnknown *)link.qp, &to.any, endpoint_size(&to), 0, 0, NULL, 0, &link.ov),
            ND_INSUFFICIENT_RESOURCES);
    /* The queue pair is as before, with another connector. */
    {
        struct link passive;

        link_make(&passive, &host, NULL);
        release_last(link.connector);
        link_make_connector(&link);
        release_last(listener);
        listener = listen_any(&host);
        to = listener_endpoint(listener);
        self_connect(&link, &passive, listener, &to);
        link_disconnect(&link);
        link_drop(&passive);
    }
    link_drop(&link);
    release_last(listener);
    host_close(&host);
}

RUNNER_MAIN
