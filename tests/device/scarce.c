/* SPDX-License-Identifier: MIT */
/* What the process may not have any more: contexts and objects of the device (the rdma control group), descriptors, its local address.
 * Each call says so with the status that its page has, and works once there is some again. */
#include "holdings.h"
#include "stock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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
    ok_eventually(rmdir(path) == 0); /* a thread that has just ended is counted there a moment longer */
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

/* With one descriptor more each time, until there are enough. Without any, libibverbs says that the kernel has no devices. `flush`:
 * the call looks for the addresses anew. */
static void open_with_few(bool flush)
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
            if (flush)
                NdFlushProviders();
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

ALONE(open_without_descriptors)
{
    open_with_few(false);
}

ALONE(look_and_open_without_descriptors)
{
    open_with_few(true);
}

/* The addresses are the same where they cannot be looked for. */
ALONE(query_addresses_without_descriptors)
{
    SIZE_T size = 0, during;

    ok_status(NdStartup(), S_OK);
    ok_status(NdQueryAddressList(0, NULL, &size), ND_BUFFER_OVERFLOW);
    for (int left = 0; left < 8; left++) {
        NdFlushProviders();
        descriptors_leave(left);
        during = 0;
        ok_status(NdQueryAddressList(0, NULL, &during), ND_BUFFER_OVERFLOW);
        limit_free(RLIMIT_NOFILE);
        ok_uint(during, ==, size);
    }
    ok_status(NdCleanup(), ND_SUCCESS);
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
