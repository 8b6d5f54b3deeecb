/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/address.h"
#include "core/connector.h"
#include "core/datagram.h"
#include "core/status.h"
#include "sleep.h"

/* ---- an engine without a thread of its own ---- */

static struct list ios = { &ios, &ios }, leaving = { &leaving, &leaving };
static struct engine_call *calls, **calls_end = &calls;
static struct engine_work *works, **works_end = &works;
static _Thread_local bool on_loop;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;

#define TIMERS 64
static struct {
    struct engine_timer *timer;
    uint64_t at;
} timers[TIMERS];

static uint64_t now = 1000000000; /* ns; atomic: threads of a test read it while the loop's advances it */

static uint64_t rig_now(void)
{
    return __atomic_load_n(&now, __ATOMIC_RELAXED);
}

static const struct sleep_hooks hooks = { .now = rig_now };

NTSTATUS engine_start(void)
{
    return ND_SUCCESS;
}

bool engine_dead(void)
{
    return false;
}

bool engine_watch_fork(void)
{
    return true;
}

bool engine_on_loop(void)
{
    return on_loop;
}

void engine_io_add(struct engine_io *io, int fd, void (*ready)(struct engine_io *io))
{
    io->fd = fd;
    io->ready = ready;
    list_add_tail(&ios, &io->link);
}

void engine_io_remove(struct engine_io *io, void (*removed)(struct engine_io *io))
{
    io->removed = removed;
    list_del(&io->link);
    list_add_tail(&leaving, &io->link);
}

bool engine_post(struct engine_call *call, void (*run)(struct engine_call *call))
{
    bool fresh;

    pthread_mutex_lock(&calls_lock);
    fresh = !call->queued;
    if (fresh) {
        call->queued = 1;
        call->run = run;
        call->next = NULL;
        *calls_end = call;
        calls_end = &call->next;
    }
    pthread_mutex_unlock(&calls_lock);
    return fresh;
}

NTSTATUS engine_work(enum engine_lane lane, struct engine_work *work, void (*run)(struct engine_work *work))
{
    (void)lane;
    work->run = run;
    work->next = NULL;
    pthread_mutex_lock(&calls_lock);
    *works_end = work;
    works_end = &work->next;
    pthread_mutex_unlock(&calls_lock);
    return ND_SUCCESS;
}

void engine_timer_start(struct engine_timer *timer, uint32_t ms, void (*fire)(struct engine_timer *timer))
{
    int slot = -1;

    ok(on_loop);
    for (int i = 0; i < TIMERS; i++) {
        if (timers[i].timer == timer || (slot < 0 && !timers[i].timer))
            slot = i;
        if (timers[i].timer == timer)
            break;
    }
    ok_int(slot, >=, 0);
    timer->fire = fire;
    timers[slot].timer = timer;
    timers[slot].at = rig_now() + ms * 1000000ull;
}

void engine_timer_stop(struct engine_timer *timer)
{
    for (int i = 0; i < TIMERS; i++) {
        if (timers[i].timer == timer)
            timers[i].timer = NULL;
    }
}

static struct engine_call *next_call(void)
{
    struct engine_call *call;

    pthread_mutex_lock(&calls_lock);
    call = calls;
    if (call) {
        calls = call->next;
        if (!calls)
            calls_end = &calls;
        call->queued = 0;
    }
    pthread_mutex_unlock(&calls_lock);
    return call;
}

unsigned rig_calls(void)
{
    struct engine_call *call;
    unsigned count = 0;

    while ((call = next_call()) != NULL) {
        on_loop = true;
        call->run(call);
        on_loop = false;
        count++;
    }
    return count;
}

unsigned rig_ready(void)
{
    unsigned count = 0;

    list_for_each_safe (node, &ios) {
        struct engine_io *io = list_entry(node, struct engine_io, link);
        struct pollfd fd = { .fd = io->fd, .events = POLLIN };

        if (poll(&fd, 1, 0) != 1)
            continue;
        on_loop = true;
        io->ready(io);
        on_loop = false;
        count++;
        if (!list_linked(node_next) && node_next != &ios)
            break;
    }
    return count;
}

static unsigned run_leaving(void)
{
    struct list *node;
    unsigned count = 0;

    while ((node = list_pop(&leaving)) != NULL) {
        struct engine_io *io = list_entry(node, struct engine_io, link);

        on_loop = true;
        if (io->removed)
            io->removed(io);
        on_loop = false;
        count++;
    }
    return count;
}

static struct engine_work *next_work(void)
{
    struct engine_work *work;

    pthread_mutex_lock(&calls_lock);
    work = works;
    if (work) {
        works = work->next;
        if (!works)
            works_end = &works;
    }
    pthread_mutex_unlock(&calls_lock);
    return work;
}

static unsigned run_works(void)
{
    struct engine_work *work;
    unsigned count = 0;

    while ((work = next_work()) != NULL) {
        work->run(work);
        count++;
    }
    return count;
}

void rig_run(void)
{
    while (rig_calls() + run_leaving() + rig_ready() + run_works() > 0)
        ;
}

unsigned rig_timers(void)
{
    unsigned count = 0;

    for (int i = 0; i < TIMERS; i++)
        count += timers[i].timer != NULL;
    return count;
}

void rig_advance(uint32_t ms)
{
    rig_run();
    for (; ms && rig_timers(); ms--) {
        bool fired = false;

        __atomic_add_fetch(&now, 1000000, __ATOMIC_RELAXED);
        for (int i = 0; i < TIMERS; i++) {
            struct engine_timer *timer = timers[i].timer;

            if (!timer || timers[i].at > rig_now())
                continue;
            timers[i].timer = NULL;
            on_loop = fired = true;
            timer->fire(timer);
            on_loop = false;
        }
        if (fired)
            rig_run();
    }
    __atomic_add_fetch(&now, ms * 1000000ull, __ATOMIC_RELAXED);
}

/* ---- stand-ins for what is not linked ---- */

unsigned rig_connectors_told;

void connector_device_removed(struct device *device)
{
    (void)device;
}

void datagram_device_removed(struct device *device)
{
    (void)device;
}

void listener_device_removed(struct device *device)
{
    (void)device;
}

void connector_comm_established(struct qp *qp)
{
    (void)qp;
}

void connector_qp_failed(struct qp *qp)
{
    (void)qp;
}

void connector_qp_released(struct qp *qp)
{
    (void)qp;
    rig_connectors_told++;
}

/* ---- fixture ---- */

struct file *rig_file;

__attribute__((constructor)) static void name_statuses(void)
{
    harness_status_text = status_name;
}

void rig_start(void)
{
    fake_reset();
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    fake_loop_test(engine_on_loop);
    sleep_hooks = &hooks;
    rig_file = file_create();
    ok(rig_file != NULL);
}

void rig_end(void)
{
    rig_advance(2000);
    file_unref(rig_file);
    ok_uint(rig_timers(), ==, 0);
    ok_str(fake_violations(), "");
    ok_str(fake_leaks(), "");
}

struct adapter *rig_open(const char *text)
{
    union address address = { .v4 = { .sin_family = AF_INET } };
    struct address_entry entry;
    struct adapter *adapter;

    ok_int(inet_pton(AF_INET, text, &address.v4.sin_addr), ==, 1);
    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    ok_status(adapter_open(entry.adapter_id, &adapter), ND_SUCCESS);
    return adapter;
}

void rig_close(struct adapter *adapter)
{
    rig_run();
    adapter_unref(adapter);
    rig_run();
}

struct cq *rig_cq(struct adapter *adapter, uint32_t depth)
{
    struct cq *cq;

    ok_status(cq_create(adapter, depth, 0, 0, &cq), ND_SUCCESS);
    return cq;
}

struct qp_config rig_config(struct adapter *adapter, struct cq *recv_cq, struct cq *send_cq, uint32_t depth)
{
    struct qp_config config = {
        .adapter = adapter,
        .recv_cq = recv_cq,
        .send_cq = send_cq,
        .context = RIG_CONTEXT,
        .recv_depth = depth,
        .send_depth = depth,
        .recv_sge = 1,
        .send_sge = 1,
        .inline_size = 64,
    };

    return config;
}

struct qp *rig_qp(struct adapter *adapter, struct cq *recv_cq, struct cq *send_cq, uint32_t depth)
{
    struct qp_config config = rig_config(adapter, recv_cq, send_cq, depth);
    struct qp *qp;

    ok_status(qp_create(&config, &qp), ND_SUCCESS);
    return qp;
}

void rig_connect(struct qp *qp)
{
    struct ibv_qp_attr attr;

    ok_status(qp_claim(qp), ND_SUCCESS);
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = 99;
    ok_int(qp_modify(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
           ==, 0);
    attr.qp_state = IBV_QPS_RTS;
    ok_int(qp_modify(qp, &attr,
                     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MAX_QP_RD_ATOMIC),
           ==, 0);
    qp_set_connected(qp);
}

void rig_drop(struct qp *qp)
{
    qp_release(qp);
    qp_unref(qp);
}

HRESULT rig_send(struct qp *qp, uintptr_t n, uint32_t flags)
{
    return qp_send(qp, rig_ctx(n), NULL, 0, flags);
}

HRESULT rig_recv(struct qp *qp, uintptr_t n)
{
    return qp_receive(qp, rig_ctx(n), NULL, 0);
}

void rig_result(const char *file, int line, struct cq *cq, ND2_REQUEST_TYPE type, uintptr_t n, HRESULT status)
{
    ND2_RESULT result;

    memset(&result, 0xee, sizeof(result));
    if (cq_get_results(cq, &result, 1) != 1)
        harness_fail(file, line, "no result");
    if (result.RequestType != type || result.RequestContext != rig_ctx(n) || result.QueuePairContext != RIG_CONTEXT)
        harness_fail(file, line, "result of type %d for %zu, QP %p", result.RequestType,
                     (size_t)(uintptr_t)result.RequestContext, result.QueuePairContext);
    if (result.Status != status)
        harness_fail_status(file, line, "Status", "expected", result.Status, status);
    if (status != ND_SUCCESS && result.BytesTransferred)
        harness_fail(file, line, "%u bytes in a failed result", (unsigned)result.BytesTransferred);
}

void rig_none(const char *file, int line, struct cq *cq)
{
    ND2_RESULT result;

    if (cq_get_results(cq, &result, 1))
        harness_fail(file, line, "result of type %d for %zu, status 0x%x", result.RequestType,
                     (size_t)(uintptr_t)result.RequestContext, (unsigned)result.Status);
}

void rig_notify(struct cq *cq, uint32_t type, struct notify *notify)
{
    memset(notify, 0, sizeof(*notify));
    ok_status(cq_notify(cq, type, rig_file, &notify->ov), ND_PENDING);
}

bool rig_pending(const struct notify *notify)
{
    return (NTSTATUS)notify->ov.Internal == ND_PENDING;
}
