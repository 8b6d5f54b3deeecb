/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <arpa/inet.h>

#include "object.h"

#include "core/cq.h"
#include "core/datagram.h"
#include "core/engine.h"
#include "core/srq.h"
#include "core/status.h"
#include "core/tunable.h"

/* ---- Engine ---- */

static struct list ios = { &ios, &ios };
static struct engine_call *calls, **calls_end = &calls;
static struct engine_work *works[3], **works_end[3] = { &works[0], &works[1], &works[2] };
static unsigned later;
static struct engine_timer *timers[32];
static uint64_t deadlines[32], now;
static bool dead, on_loop, lane_full;

NTSTATUS engine_start(void)
{
    return ND_SUCCESS;
}

bool engine_dead(void)
{
    return dead;
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
    list_del(&io->link);
    if (removed)
        removed(io);
}

bool engine_post(struct engine_call *call, void (*run)(struct engine_call *call))
{
    if (call->queued)
        return false;
    call->queued = 1;
    call->run = run;
    call->next = NULL;
    *calls_end = call;
    calls_end = &call->next;
    return true;
}

NTSTATUS engine_work(enum engine_lane lane, struct engine_work *work, void (*run)(struct engine_work *work))
{
    if (lane == ENGINE_LANE_CONNECT && lane_full)
        return ND_INSUFFICIENT_RESOURCES;
    if (lane == ENGINE_LANE_LATER) {
        later++;
        lane = ENGINE_LANE_DESTROY;
    }
    work->run = run;
    work->next = NULL;
    *works_end[lane] = work;
    works_end[lane] = &work->next;
    return ND_SUCCESS;
}

void engine_connect_over(void)
{
}

void engine_timer_start(struct engine_timer *timer, uint32_t ms, void (*fire)(struct engine_timer *timer))
{
    ok(on_loop);
    timer->fire = fire;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < 32; i++) {
            if (timers[i] == (pass ? NULL : timer)) {
                timers[i] = timer;
                deadlines[i] = now + ms;
                return;
            }
        }
    }
    ok_msg(false, "too many timers");
}

void engine_timer_stop(struct engine_timer *timer)
{
    ok(on_loop);
    for (size_t i = 0; i < 32; i++) {
        if (timers[i] == timer)
            timers[i] = NULL;
    }
}

void rig_advance(uint32_t ms)
{
    now += ms;
    for (size_t i = 0; i < 32; i++) {
        struct engine_timer *timer = timers[i];

        if (!timer || deadlines[i] > now)
            continue;
        timers[i] = NULL;
        on_loop = true;
        timer->fire(timer);
        on_loop = false;
    }
}

unsigned rig_timers(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < 32; i++)
        count += timers[i] != NULL;
    return count;
}

unsigned rig_calls(void)
{
    unsigned count = 0;

    while (calls) {
        struct engine_call *call = calls;

        calls = call->next;
        if (!calls)
            calls_end = &calls;
        call->queued = 0;
        on_loop = true;
        call->run(call);
        on_loop = false;
        count++;
    }
    return count;
}

static unsigned lane_run(enum engine_lane lane)
{
    unsigned count = 0;

    while (works[lane]) {
        struct engine_work *work = works[lane];

        works[lane] = work->next;
        if (!works[lane])
            works_end[lane] = &works[lane];
        work->run(work);
        count++;
    }
    return count;
}

unsigned rig_later(void)
{
    return later;
}

unsigned rig_destroys(void)
{
    return lane_run(ENGINE_LANE_DESTROY);
}

unsigned rig_connects(void)
{
    return lane_run(ENGINE_LANE_CONNECT);
}

/* Who waits for destructions sees them happen: the library's one wait here is for the destroy lane. */
bool __wrap_signal_wait(struct object *object, uint64_t deadline);
bool __real_signal_wait(struct object *object, uint64_t deadline);
bool __wrap_signal_wait(struct object *object, uint64_t deadline)
{
    rig_destroys();
    return __real_signal_wait(object, deadline);
}

void rig_lane_full(bool full)
{
    lane_full = full;
}

unsigned rig_events(void)
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
    }
    return count;
}

void rig_run(void)
{
    while (rig_calls() + rig_events() + rig_destroys() + rig_connects() > 0)
        ;
}

void rig_set_dead(bool is_dead)
{
    dead = is_dead;
}

/* ---- Queue pairs ---- */

static struct qp *qps[64];

static void step(struct qp *qp, enum rig_step what)
{
    if (qp->hook)
        qp->hook(qp, what);
    qp->count[what]++;
}

static struct ibv_qp *make_verbs(struct qp *qp)
{
    struct ibv_qp_init_attr init = { .qp_context = qp,
                                     .send_cq = qp->cq,
                                     .recv_cq = qp->cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {
                                         .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
    struct ibv_qp *verbs = ibv_create_qp(qp->adapter->pd, &init);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = qp->adapter->port };

    ok(verbs != NULL);
    ok_int(ibv_modify_qp(verbs, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), ==, 0);
    return verbs;
}

struct qp *rig_qp(struct adapter *adapter)
{
    struct qp *qp = calloc(1, sizeof(*qp));

    ok(qp != NULL);
    qp->refs = 1;
    qp->adapter = adapter;
    list_init(&qp->drains);
    qp->cq = ibv_create_cq(adapter->device->verbs, 64, NULL, NULL, 0);
    ok(qp->cq != NULL);
    qp->verbs = make_verbs(qp);
    for (size_t i = 0; i < 64; i++) {
        if (!qps[i]) {
            qps[i] = qp;
            return qp;
        }
    }
    ok_msg(false, "too many queue pairs");
    return NULL;
}

static void free_qps(void)
{
    for (size_t i = 0; i < 64 && qps[i]; i++) {
        ok_msg(qps[i]->refs == 1, "queue pair %zu has %u references", i, qps[i]->refs);
        ok_msg(!qps[i]->held, "queue pair %zu is still held", i);
        if (qps[i]->verbs)
            ibv_destroy_qp(qps[i]->verbs);
        ibv_destroy_cq(qps[i]->cq);
        free(qps[i]);
        qps[i] = NULL;
    }
}

bool rig_qp_ready(struct qp *qp)
{
    return !qp->claimed && !qp->used && fake_qp_state(qp->verbs) == IBV_QPS_INIT;
}

struct qp *qp_ref(struct qp *qp)
{
    ok_uint(qp->refs, >, 0);
    qp->refs++;
    return qp;
}

struct qp *qp_ref_live(struct qp *qp)
{
    return qp_ref(qp);
}

void qp_unref(struct qp *qp)
{
    ok_uint(qp->refs, >, 1); /* the test holds one */
    qp->refs--;
}

void qp_release(struct qp *qp)
{
    if (qp->held)
        qp->grave = qp->verbs;
    else
        ibv_destroy_qp(qp->verbs);
    qp->verbs = NULL;
}

void qp_hold_device(struct qp *qp)
{
    ok(!qp->held && qp->verbs);
    qp->held = true;
}

void qp_let_device(struct qp *qp)
{
    ok(qp->held);
    qp->held = false;
    if (qp->grave)
        ibv_destroy_qp(qp->grave);
    qp->grave = NULL;
}

struct adapter *qp_adapter(const struct qp *qp)
{
    return qp->adapter;
}

uint32_t qp_number(const struct qp *qp)
{
    return qp->verbs ? qp->verbs->qp_num : 0;
}

bool qp_has_srq(const struct qp *qp)
{
    return qp->srq;
}

struct ibv_qp *qp_verbs(const struct qp *qp)
{
    return qp->verbs;
}

enum ibv_qp_state qp_state(struct qp *qp)
{
    return qp->verbs ? qp->verbs->state : IBV_QPS_ERR;
}

NTSTATUS qp_claim(struct qp *qp)
{
    if (qp->claimed || qp->used)
        return ND_CONNECTION_ACTIVE;
    step(qp, RIG_CLAIM);
    qp->claimed = true;
    return ND_SUCCESS;
}

void qp_unclaim(struct qp *qp)
{
    ok(qp->claimed);
    step(qp, RIG_UNCLAIM);
    qp->claimed = false;
    qp->tried = true;
}

bool qp_tried(struct qp *qp)
{
    return qp->tried && qp->adapter->device->transport != DEVICE_IW;
}

int qp_modify(struct qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return qp->verbs ? ibv_modify_qp(qp->verbs, attr, mask) : EINVAL;
}

void datagram_device_removed(struct device *device)
{
    (void)device;
}

uint8_t qp_port(struct qp *qp)
{
    return qp->adapter->port;
}

void qp_limit_reads(struct qp *qp, uint32_t most)
{
    qp->reads = most;
}

void qp_set_connected(struct qp *qp)
{
    step(qp, RIG_CONNECTED);
    qp->used = true;
}

void qp_close_posts(struct qp *qp)
{
    step(qp, RIG_CLOSE_POSTS);
}

void qp_collect(struct qp *qp)
{
    step(qp, RIG_COLLECT);
}

void qp_drain(struct qp *qp, struct qp_drain *drain, void (*done)(struct qp_drain *drain))
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    step(qp, RIG_DRAIN);
    qp->used = true;
    drain->done = done;
    list_add_tail(&qp->drains, &drain->link);
    if (qp->verbs)
        ibv_modify_qp(qp->verbs, &attr, IBV_QP_STATE);
    if (!qp->hold_drain)
        rig_drained(qp);
}

void rig_drained(struct qp *qp)
{
    bool before = on_loop;

    on_loop = true;
    while (!list_empty(&qp->drains)) {
        struct qp_drain *drain = list_entry(list_pop(&qp->drains), struct qp_drain, link);

        drain->done(drain);
    }
    on_loop = before;
}

int qp_replace(struct qp *qp)
{
    step(qp, RIG_REPLACE);
    if (qp->replace_error)
        return qp->replace_error;
    ibv_destroy_qp(qp->verbs);
    qp->verbs = make_verbs(qp);
    return 0;
}

void qp_async_error(struct qp *qp)
{
    (void)qp;
}

void qp_last_wqe_reached(struct qp *qp)
{
    (void)qp;
}

void qp_device_removed(struct qp *qp)
{
    (void)qp;
}

struct srq *srq_ref_live(struct srq *srq)
{
    (void)srq;
    return NULL;
}

void srq_unref(struct srq *srq)
{
    (void)srq;
}

void srq_limit_event(struct srq *srq)
{
    (void)srq;
}

void srq_error_event(struct srq *srq)
{
    (void)srq;
}

void srq_device_removed(struct srq *srq)
{
    (void)srq;
}

struct cq *cq_ref_live(struct cq *cq)
{
    (void)cq;
    return NULL;
}

void cq_unref(struct cq *cq)
{
    (void)cq;
}

void cq_event(struct cq *cq)
{
    (void)cq;
}

void cq_overrun(struct cq *cq)
{
    (void)cq;
}

void cq_device_removed(struct cq *cq)
{
    (void)cq;
}

/* ---- Objects ---- */

struct adapter *ib, *iw;
struct file *file;
const struct connector_policy nd_policy = {
    .qp_owner = true,
    .auto_drep = true,
    .flush_on_peer = true,
    .cancel_abandons = true,
    .disconnect_timeout_status = ND_SUCCESS,
};
const struct connector_policy wv_policy = { .disconnect_timeout_status = ND_TIMEOUT, .wv = true };
const struct connector_policy v1_policy = {
    .qp_owner = true,
    .auto_drep = true,
    .flush_on_peer = true,
    .cancel_abandons = true,
    .disconnect_timeout_status = ND_SUCCESS,
    .v1_timeouts = true,
};

static struct adapter *open_adapter(const char *text)
{
    union address address = rig_address(text, 0);
    struct address_entry entry;
    struct adapter *adapter;

    ok_status(address_find(&address.sa, &entry), ND_SUCCESS);
    ok_status(adapter_open(entry.adapter_id, &adapter), ND_SUCCESS);
    return adapter;
}

static const char *status_words(int32_t status)
{
    const char *name = status_name(status);

    return name ? name : "";
}

/* Also several times in a process: the library keeps its event channel, which a reset would take away. */
void rig_begin(void)
{
    static bool begun;

    harness_status_text = status_words;
    if (begun)
        fake_reset_script();
    else
        fake_reset();
    begun = true;
    fake_loop_test(engine_on_loop);
    ib = open_adapter("10.1.1.1");
    iw = open_adapter("10.1.2.1");
    file = file_create();
    ok(file != NULL);
    rig_run();
}

void rig_end(void)
{
    rig_run();
    free_qps();
    adapter_unref(ib);
    adapter_unref(iw);
    file_unref(file);
    rig_run();
    ok_uint(rig_timers(), ==, 0);
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
}

struct connector *rig_connector(struct adapter *adapter, const struct connector_policy *policy)
{
    struct connector *c;

    ok_status(connector_create(adapter, file, policy, &c), ND_SUCCESS);
    return c;
}

void rig_drop(struct connector *c)
{
    connector_release(c);
    connector_unref(c);
}

union address rig_address(const char *text, uint16_t port)
{
    union address address = { 0 };

    if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1)
        address.sa.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) == 1)
        address.sa.sa_family = AF_INET6;
    else
        ok_msg(false, "%s is no address", text);
    address_set_port(&address.sa, port);
    return address;
}

struct rdma_cm_id *rig_id(struct connector *c)
{
    ok(c->wire.cmid != NULL);
    return c->wire.cmid->id;
}

bool pending(const OVERLAPPED *ov)
{
    return (NTSTATUS)ov->Internal == ND_PENDING;
}

void event(struct connector *c, enum rdma_cm_event_type type, int status)
{
    fake_cm_simple(rig_id(c), type, status);
    rig_run();
}

/* ---- Scripts ---- */

void active_start(struct active *a, struct adapter *adapter, const struct connector_policy *policy)
{
    union address local = rig_address(adapter == ib ? "10.1.1.1" : "10.1.2.1", 0);
    union address peer = rig_address(adapter == ib ? "10.1.1.200" : "10.1.2.200", 4711);

    memset(a, 0, sizeof(*a));
    a->adapter = adapter;
    a->connect.Internal = a->complete.Internal = a->notify.Internal = a->disconnect.Internal = UNTOUCHED;
    a->c = rig_connector(adapter, policy);
    a->qp = rig_qp(adapter);
    fake_auto_resolve(false);
    ok_status(connector_bind(a->c, &local.sa, 16), ND_SUCCESS);
    ok_status(connector_connect(a->c, a->qp, &peer.sa, 16, 4, 3, "hello", 5, &a->connect), ND_PENDING);
    ok_pending(&a->connect);
    ok_int(a->c->wire.state, ==, WIRE_ADDRESS);
}

void active_route(struct active *a)
{
    event(a->c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    ok_int(a->c->wire.state, ==, WIRE_ROUTE);
}

void active_request_out(struct active *a, struct adapter *adapter, const struct connector_policy *policy)
{
    active_start(a, adapter, policy);
    active_route(a);
    event(a->c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    ok_int(a->c->wire.state, ==, WIRE_REQUEST_OUT);
    ok_pending(&a->connect);
}

void active_reply_in(struct active *a, struct adapter *adapter, const struct connector_policy *policy)
{
    struct fake_cm reply = { .event = adapter == ib ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED,
                             .private_data = "world",
                             .private_data_len = 5,
                             .responder_resources = 2,
                             .initiator_depth = 1,
                             .qp_num = 77 };

    active_request_out(a, adapter, policy);
    fake_cm_event(rig_id(a->c), &reply);
    rig_run();
    ok_int(a->c->wire.state, ==, WIRE_REPLY_IN);
    ok_done(&a->connect, ND_SUCCESS);
}

void active_established(struct active *a, struct adapter *adapter, const struct connector_policy *policy)
{
    active_reply_in(a, adapter, policy);
    ok_status(connector_complete_connect(a->c, &a->complete), ND_PENDING);
    ok_done(&a->complete, ND_SUCCESS);
    ok_int(a->c->wire.state, ==, WIRE_ESTABLISHED);
}

/* A connection that still stands gets its answer, so that nothing stays behind. */
static void end_connector(struct connector *c)
{
    connector_ref(c);
    rig_drop(c);
    rig_run();
    if (c->wire.state == WIRE_DREQ_OUT)
        event(c, RDMA_CM_EVENT_DISCONNECTED, 0);
    connector_unref(c);
    rig_run();
}

void active_end(struct active *a)
{
    end_connector(a->c);
}

void passive_request_in(struct passive *p, struct adapter *adapter, const struct connector_policy *policy)
{
    union address local = rig_address(adapter == ib ? "10.1.1.1" : "10.1.2.1", 4711);
    struct fake_cm request = { .event = RDMA_CM_EVENT_CONNECT_REQUEST,
                               .private_data = "hello",
                               .private_data_len = 5,
                               .responder_resources = 4,
                               .initiator_depth = 3,
                               .qp_num = 78 };

    memset(p, 0, sizeof(*p));
    p->adapter = adapter;
    p->request.Internal = p->accept.Internal = p->notify.Internal = p->disconnect.Internal = UNTOUCHED;
    p->c = rig_connector(adapter, policy);
    p->qp = rig_qp(adapter);
    ok_status(listener_create(adapter, file, &p->l), ND_SUCCESS);
    ok_status(listener_bind(p->l, &local.sa, 16), ND_SUCCESS);
    ok_status(listener_listen(p->l, 0), ND_SUCCESS);
    ok_status(listener_get_connection_request(p->l, p->c, &p->request), ND_PENDING);
    ok_pending(&p->request);
    p->child = fake_cm_request(fake_object(FAKE_OBJ_ID, -1), &request, adapter == ib ? "10.1.1.200" : "10.1.2.200");
    rig_run();
    ok_done(&p->request, ND_SUCCESS);
    ok_int(p->c->wire.state, ==, WIRE_REQUEST_IN);
    ok_ptr(rig_id(p->c), ==, p->child);
}

void passive_reply_out(struct passive *p, struct adapter *adapter, const struct connector_policy *policy)
{
    passive_request_in(p, adapter, policy);
    ok_status(connector_accept(p->c, p->qp, 2, 9, "world", 5, &p->accept), ND_PENDING);
    ok_pending(&p->accept);
    ok_int(p->c->wire.state, ==, WIRE_REPLY_OUT);
}

void passive_established(struct passive *p, struct adapter *adapter, const struct connector_policy *policy)
{
    struct fake_cm established = { .event = RDMA_CM_EVENT_ESTABLISHED, .responder_resources = 3, .initiator_depth = 4 };

    passive_reply_out(p, adapter, policy);
    fake_cm_event(rig_id(p->c), &established);
    rig_run();
    ok_done(&p->accept, ND_SUCCESS);
    ok_int(p->c->wire.state, ==, WIRE_ESTABLISHED);
}

void passive_end(struct passive *p)
{
    end_connector(p->c);
    listener_release(p->l);
    listener_unref(p->l);
    rig_run();
}
