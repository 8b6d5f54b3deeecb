/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_FAKES_H
#define NDVERBS_FAKES_H

/* Programmable fakes of libibverbs and librdmacm, linked instead of the real libraries. By default they behave like two
 * small well-behaved devices; a test scripts failures, events, completions and the order of steps, and reads back a
 * call log, live objects and violations. What kernel and rdma-core do is taken from spec/rdma-mapping.md.
 *
 * Threads: every function may be called from any thread (one recursive lock inside); the fakes start no thread and call
 * the code under test only from hooks (fake_on), which run on the thread that made the call, without the lock.
 * Pointers that the functions return stay valid until fake_reset(); destroyed objects are kept, so that a use after
 * destroy is reported and not a crash (under AddressSanitizer their public part is poisoned).
 * Units: statuses of cm events as the kernel gives them (negative errno, or the IB reject reason). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every call that is counted, logged, and can be failed or hooked. Inline functions of verbs.h have the name the caller
 * writes; ibv_reg_mr stands for ibv_reg_mr_iova and ibv_reg_mr_iova2 too, since the header picks one of them. */
#define FAKE_CALLS(X)             \
    X(ibv_get_device_list)        \
    X(ibv_free_device_list)       \
    X(ibv_open_device)            \
    X(ibv_close_device)           \
    X(ibv_query_device)           \
    X(ibv_query_port)             \
    X(ibv_query_gid)              \
    X(ibv_query_gid_table)        \
    X(ibv_query_pkey)             \
    X(ibv_alloc_pd)               \
    X(ibv_dealloc_pd)             \
    X(ibv_reg_mr)                 \
    X(ibv_dereg_mr)               \
    X(ibv_alloc_mw)               \
    X(ibv_bind_mw)                \
    X(ibv_dealloc_mw)             \
    X(ibv_create_comp_channel)    \
    X(ibv_destroy_comp_channel)   \
    X(ibv_get_cq_event)           \
    X(ibv_ack_cq_events)          \
    X(ibv_create_cq)              \
    X(ibv_resize_cq)              \
    X(ibv_destroy_cq)             \
    X(ibv_poll_cq)                \
    X(ibv_req_notify_cq)          \
    X(ibv_create_srq)             \
    X(ibv_modify_srq)             \
    X(ibv_query_srq)              \
    X(ibv_destroy_srq)            \
    X(ibv_post_srq_recv)          \
    X(ibv_create_ah)              \
    X(ibv_destroy_ah)             \
    X(ibv_attach_mcast)           \
    X(ibv_detach_mcast)           \
    X(ibv_create_qp)              \
    X(ibv_modify_qp)              \
    X(ibv_query_qp)               \
    X(ibv_destroy_qp)             \
    X(ibv_post_send)              \
    X(ibv_post_recv)              \
    X(ibv_get_async_event)        \
    X(ibv_ack_async_event)        \
    X(ibv_fork_init)              \
    X(rdma_create_event_channel)  \
    X(rdma_destroy_event_channel) \
    X(rdma_get_cm_event)          \
    X(rdma_ack_cm_event)          \
    X(rdma_create_id)             \
    X(rdma_destroy_id)            \
    X(rdma_bind_addr)             \
    X(rdma_resolve_addr)          \
    X(rdma_resolve_route)         \
    X(rdma_listen)                \
    X(rdma_connect)               \
    X(rdma_establish)             \
    X(rdma_accept)                \
    X(rdma_reject)                \
    X(rdma_notify)                \
    X(rdma_disconnect)            \
    X(rdma_init_qp_attr)          \
    X(rdma_set_option)            \
    X(rdma_migrate_id)            \
    X(rdma_join_multicast)        \
    X(rdma_leave_multicast)       \
    X(rdma_get_devices)           \
    X(rdma_free_devices)          \
    X(getifaddrs)                 \
    X(socket)                     \
    X(sched_getaffinity)

#define FAKE_CALL_ENUM(name) FAKE_##name,
enum fake_fn {
    FAKE_CALLS(FAKE_CALL_ENUM)
    /* number of calls */ FAKE_CALL_COUNT
};
#undef FAKE_CALL_ENUM

/* ---- The world -------------------------------------------------------------------------------------------------- */

/* Back to the state of a fresh process: all objects freed (live ones too), devices, addresses, switches, log, failures,
 * hooks and violations as at the start. Nobody may be inside a fake call or own a fake object. */
void fake_reset(void);

/* Only the script: pending failures, hooks, log, counters and violations. Objects stay. */
void fake_reset_script(void);

/* The devices of the start: "fake_ib" (IB transport, Ethernet link layer, RoCE-like, windows, resize) with addresses
 * 10.1.1.1 and fd00:1:1::1, and "fake_iw" (iWARP: no windows, no resize, kernel-driven QPs) with 10.1.2.1, one port
 * each. NULL if there is no such device. */
struct ibv_device *fake_device(const char *name);

/* One more device; `ports` 1 or 2. */
struct ibv_device *fake_device_add(const char *name, enum ibv_transport_type transport, unsigned ports);

/* What the device reports; change it before the code under test asks. */
struct ibv_device_attr *fake_device_attr(const char *name);
struct ibv_port_attr *fake_port_attr(const char *name, unsigned port);

/* The largest max_inline_data that ibv_create_qp grants (default 512; fake_iw 80): more is refused with EINVAL. */
void fake_device_max_inline(const char *name, uint32_t bytes);

/* Node GUID (host order). The default is derived from the name. */
void fake_device_guid(const char *name, uint64_t guid);

/* Oddities of the software devices, off at the start except where named. */
enum fake_quirk {
    FAKE_QUIRK_LATE_RECV_STUCK = 1 << 0,   /* rxe: a receive posted in ERROR waits for the next modify to ERROR */
    FAKE_QUIRK_DEAD_POST_LOST = 1 << 1,    /* siw: work posted in ERROR never completes */
    FAKE_QUIRK_SOLICITED_NO_SEND = 1 << 2, /* rxe: a failed or flushed send does not fire a solicited-only arm */
    FAKE_QUIRK_SOLICITED_NO_RECV = 1 << 3, /* siw: a receive never fires a solicited-only arm */
    FAKE_QUIRK_QUERY_RESET = 1 << 4,       /* siw: ibv_query_qp always reports RESET */
    FAKE_QUIRK_LAST_WQE = 1 << 5,          /* HCA: QP_LAST_WQE_REACHED when a QP with a SRQ goes to ERROR */
    FAKE_QUIRK_NEGATIVE_POST = 1 << 6,     /* siw: post calls fail with a negative errno value */
    FAKE_QUIRK_ROUND_UP = 1 << 7,          /* queues and CQs get a power of two less one, as rxe makes them */
    FAKE_QUIRK_SOLICITED_BY_FLAG = 1 << 8, /* rxe: nor does a receive that fails by a message without the flag */
    FAKE_QUIRK_RESET_CLEANS = 1 << 9,      /* HCA: RESET takes the QP's completions out of its CQs */
    FAKE_QUIRK_ROCE_V1 = 1 << 10,          /* HCA: each GID is there twice, for RoCE v1 and then for v2 */
    FAKE_QUIRK_RXE =
        FAKE_QUIRK_LATE_RECV_STUCK | FAKE_QUIRK_SOLICITED_NO_SEND | FAKE_QUIRK_ROUND_UP | FAKE_QUIRK_SOLICITED_BY_FLAG,
    FAKE_QUIRK_SIW =
        FAKE_QUIRK_DEAD_POST_LOST | FAKE_QUIRK_SOLICITED_NO_RECV | FAKE_QUIRK_QUERY_RESET | FAKE_QUIRK_NEGATIVE_POST,
};
void fake_device_quirks(const char *name, unsigned quirks);

/* The device goes away: DEVICE_FATAL on every context of it, DEVICE_REMOVAL on every id bound to it (and not hidden), no
 * longer listed, new binds to its addresses fail with ENODEV. */
void fake_device_remove(const char *name);

/* A local address on a device's port, seen by getifaddrs (which is wrapped) and rdma_bind_addr. `device` NULL: an
 * address of a netdev without RDMA (bind: ENODEV). 127.0.0.1 and ::1 are always there, without a device, as on Linux.
 * IPv6 text may carry %scope (a number). A change sends a message to every open NETLINK_ROUTE socket (socket and bind are
 * wrapped for these, so the host's own changes do not reach the test). fake_address_add: false if the text is no
 * address. */
bool fake_address_add(const char *text, const char *device, unsigned port);
void fake_address_remove(const char *text);
void fake_address_clear(void);

/* Route look-ups by a connected UDP socket (connect, bind and getsockname are wrapped for AF_INET/AF_INET6 datagram sockets; bound
 * ones keep their address, and binding to one that is not local fails with EADDRNOTAVAIL):
 * a destination that is a fake local address answers itself, one in the same /24 (/64) as a fake address answers that
 * address, others get ENETUNREACH; a route added here comes first. `local` NULL: ENETUNREACH. */
void fake_route_add(const char *destination, const char *local);

/* A rule for a source address: the destination is found by a socket that is bound to `source`, besides what all find. */
void fake_route_from(const char *source, const char *destination);

/* What ibv_is_fork_initialized says (default IBV_FORK_UNNEEDED). */
void fake_fork_status(enum ibv_fork_status status);

/* ---- Failures, hooks, blocking ---------------------------------------------------------------------------------- */

/* The nth next call (1: the next one) fails in the way of its kind (NULL, -1, errno value or result -1) with this errno
 * and has no effect. Several may be pending for one call. Calls that cannot fail (acks, frees) ignore it. */
void fake_fail(enum fake_fn fn, unsigned nth, int errnum);
void fake_fail_always(enum fake_fn fn, int errnum); /* until fake_fail_clear() */
void fake_fail_clear(enum fake_fn fn);
unsigned fake_fail_pending(enum fake_fn fn); /* failures not used up yet */

/* A step played inside a call, on the caller's thread, without the lock: it may use everything of the fakes and of the
 * code under test, and may block. `call` shows function, object and arguments. Before: the call has had no effect yet.
 * After: it had its effect, `result` is set. Each runs once, for the next call of `fn` (`fake_on_every`: before each
 * call until fake_reset_script; a later one replaces it). A before-hook that sets call->result to an errno makes the call fail with it. */
struct fake_call;
typedef void (*fake_hook)(struct fake_call *call, void *arg);
void fake_on(enum fake_fn fn, fake_hook hook, void *arg);
void fake_after(enum fake_fn fn, fake_hook hook, void *arg);
void fake_on_every(enum fake_fn fn, fake_hook hook, void *arg);

/* "Is the calling thread running a loop callback?", for instance engine_on_loop. Calls that may block (rdma_destroy_id,
 * rdma_connect of an iWARP id, rdma_migrate_id, ibv_reg_mr, ibv_dereg_mr, ibv_close_device, and what fake_blocking adds)
 * made while it says true are violations. NULL: no check. */
void fake_loop_test(bool (*on_loop)(void));
void fake_blocking(enum fake_fn fn, bool blocking);

/* ---- What happened ---------------------------------------------------------------------------------------------- */

struct fake_conn_param {
    struct rdma_conn_param param; /* private_data points into `data` */
    uint8_t data[256];
};

#define FAKE_MAX_SGE 32
struct fake_wr {
    uint64_t wr_id;
    enum ibv_wr_opcode opcode; /* sends only */
    unsigned int send_flags;
    int num_sge;
    struct ibv_sge sge[FAKE_MAX_SGE];
    uint64_t remote_addr;
    uint32_t rkey; /* remote key; BIND_MW: the new key; LOCAL_INV, SEND_WITH_INV: the key to invalidate */
    __be32 imm_data;
    uint64_t compare_add, swap; /* atomics */
    struct ibv_mw *mw;
    struct ibv_mw_bind_info bind_info;
};

struct fake_call {
    enum fake_fn fn;
    uint64_t seq;       /* position in the order of all calls, from 1 */
    const void *object; /* what the call was made on: first argument; for a posted ack the event's object */
    void *created;      /* object a successful call made */
    int result;         /* 0, or the (positive) errno */
    bool on_loop;       /* as fake_loop_test said */
    union {
        struct {
            struct ibv_qp_attr attr;
            int mask;
        } modify_qp;
        struct {
            struct ibv_qp_init_attr attr;
        } create_qp;
        struct {
            void *addr;
            size_t length;
            unsigned int access;
        } reg_mr;
        struct {
            int cqe;
            void *context;
            struct ibv_comp_channel *channel;
            int vector;
        } create_cq; /* resize_cq: cqe */
        struct {
            enum ibv_mw_type type;
        } alloc_mw;
        struct {
            struct ibv_srq_attr attr;
            int mask;
        } srq; /* create_srq, modify_srq */
        struct {
            int solicited_only;
        } notify_cq;
        struct {
            struct sockaddr_storage addr; /* bind: the address; resolve_addr: destination */
            struct sockaddr_storage source;
            int timeout_ms; /* resolve_route too */
        } addr;
        struct {
            int backlog;
        } listen;
        struct fake_conn_param conn; /* connect, accept; reject: only private data */
        struct {
            int level, name;
            uint64_t value;
        } option;
        struct {
            enum ibv_event_type event;
        } notify;
        struct fake_wr wr; /* post_send, post_recv, post_srq_recv: the first of the chain */
    } arg;
};

/* Calls since the last reset, failed ones included. */
unsigned fake_count(enum fake_fn fn);
const char *fake_name(enum fake_fn fn);

/* The nth logged call of `fn` (0: the first; -1: the last), of `object` only unless NULL. NULL: none. ibv_poll_cq and
 * the get-event calls that found nothing are counted but not logged. The log keeps the first 16384 calls. */
const struct fake_call *fake_log_find(enum fake_fn fn, int nth);
const struct fake_call *fake_log_find_on(enum fake_fn fn, const void *object, int nth);

/* The last call of `first` came before the last call of `second` (both were made). */
bool fake_log_before(enum fake_fn first, enum fake_fn second);
size_t fake_log_length(void);
const struct fake_call *fake_log_at(size_t index);
void fake_log_print(FILE *to);

/* Objects. Handles a test did not create itself are found by kind, in order of creation among the live ones. */
enum fake_kind {
    FAKE_OBJ_DEVICE_LIST, /* also the array of rdma_get_devices */
    FAKE_OBJ_CONTEXT,     /* struct ibv_context of ibv_open_device */
    FAKE_OBJ_PD,
    FAKE_OBJ_MR,
    FAKE_OBJ_MW,
    FAKE_OBJ_AH,
    FAKE_OBJ_COMP_CHANNEL,
    FAKE_OBJ_CQ,
    FAKE_OBJ_SRQ,
    FAKE_OBJ_QP,
    FAKE_OBJ_EVENT_CHANNEL, /* struct rdma_event_channel */
    FAKE_OBJ_ID,            /* struct rdma_cm_id, requests that nobody has fetched included */
    FAKE_OBJ_CM_EVENT,      /* fetched and not acknowledged */
    FAKE_KIND_COUNT
};
unsigned fake_live(enum fake_kind kind);
void *fake_object(enum fake_kind kind, int nth); /* nth live one; -1: the newest; NULL: none */

/* Number of live objects of all kinds but those ignored; must be 0 at the end of a test. fake_leaks(): one line for each
 * of them (kind, number, creating call's seq), "" if none. */
unsigned fake_live_objects(void);
const char *fake_leaks(void);

/* Objects of this kind that live as long as the process by design (the engine's event channel) are not leaks. */
void fake_live_ignore(enum fake_kind kind);

/* Descriptors of the process now, less those at the last fake_reset (or the first call into the fakes). */
int fake_open_fds(void);

/* What correct code never does, one line each, "" if nothing: double destroy, use after destroy, destroy with children,
 * calls that would hang (destroy by the thread that has not acknowledged an event of the object, a get-event call on a
 * blocking descriptor without event), blocking calls on the loop, more acks than events, a send posted before RTS,
 * an invalidate of an unbound window (kernel panic), destroying a QP with a bound window (50 s), two calls on one id at the
 * same time. fake_violation_count(): number of lines. */
const char *fake_violations(void);
unsigned fake_violation_count(void);
void fake_violations_clear(void);

/* ---- Queue pairs and completion queues -------------------------------------------------------------------------- */

enum fake_queue {
    FAKE_SEND,
    FAKE_RECV,
};

/* Work posted and not completed yet; `index` 0 is the oldest. */
unsigned fake_qp_posted(struct ibv_qp *qp, enum fake_queue queue);
bool fake_qp_wr(struct ibv_qp *qp, enum fake_queue queue, unsigned index, struct fake_wr *out);
unsigned fake_srq_posted(struct ibv_srq *srq);

/* Completes the `n` oldest requests of a queue (fewer if there are not so many): returns how many. Unsignalled sends
 * retire without a completion unless `status` is an error. byte_len is reported as given. Binds and invalidates take
 * effect. An error status puts the QP into ERROR, as the device does, so the rest flushes. A QP with a SRQ takes its
 * receives from there. */
unsigned fake_qp_complete(struct ibv_qp *qp, enum fake_queue queue, unsigned n, enum ibv_wc_status status,
                          uint32_t byte_len);
/* The same with everything of the completion but wr_id and qp_num under the test's control. */
unsigned fake_qp_complete_wc(struct ibv_qp *qp, enum fake_queue queue, const struct ibv_wc *wc, bool solicited);

/* iWARP: the kernel has connected it, to nobody here. */
void fake_qp_established(struct ibv_qp *qp);

/* The QP fails by itself: to ERROR without a modify; posted work flushes (if automatic). */
void fake_qp_fail(struct ibv_qp *qp);

/* When a QP goes to ERROR its posted work flushes at once (true, the default) or stays until fake_qp_flush(). */
void fake_auto_flush(bool on);
unsigned fake_qp_flush(struct ibv_qp *qp); /* number of requests flushed */

enum ibv_qp_state fake_qp_state(struct ibv_qp *qp);
struct ibv_qp *fake_qp_from_num(uint32_t qp_num); /* live ones */
void fake_qp_next_num(uint32_t qp_num);           /* what ibv_create_qp gives next; devices use numbers again */

/* Attributes of the last successful modify into `state`; NULL if there was none. `mask` may be NULL. */
const struct ibv_qp_attr *fake_qp_attr(struct ibv_qp *qp, enum ibv_qp_state state, int *mask);

/* Makes a completion appear. False: the CQ was full, the completion is lost, CQ_ERR is raised. */
bool fake_cq_push(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited);
unsigned fake_cq_entries(struct ibv_cq *cq); /* completions not polled yet */

enum fake_arm {
    FAKE_ARM_NONE,
    FAKE_ARM_SOLICITED,
    FAKE_ARM_ANY,
};
enum fake_arm fake_cq_armed(struct ibv_cq *cq);
void fake_cq_event(struct ibv_cq *cq); /* an event without cause on the CQ's channel; disarms */

/* Completion events not fetched yet, and fetched but not acknowledged. */
unsigned fake_cq_events_queued(struct ibv_cq *cq);
unsigned fake_cq_events_unacked(struct ibv_cq *cq);

bool fake_mw_bound(struct ibv_mw *mw);

/* Asynchronous events: on the context that owns the object; port and device events on every context of the device. */
void fake_async_cq(struct ibv_cq *cq, enum ibv_event_type type);
void fake_async_qp(struct ibv_qp *qp, enum ibv_event_type type);
void fake_async_srq(struct ibv_srq *srq, enum ibv_event_type type);
void fake_async_port(const char *device, unsigned port, enum ibv_event_type type);

/* ---- Connection manager ----------------------------------------------------------------------------------------- */

/* rdma_resolve_addr and rdma_resolve_route answer by themselves with *_RESOLVED (true, the default), or not at all. */
void fake_auto_resolve(bool on);

/* Resolving this destination ends in ADDR_ERROR (or, route = true, ROUTE_ERROR) with this status. */
void fake_resolve_error(const char *destination, bool route, int status);

/* An event for an id. Unset fields are zero; private_data_len 0 on an IB-type id gives the zero-padded block of the
 * event's kind as the kernel does. It also moves the id's state as the kernel's would be (CONNECT_RESPONSE: rdma_establish
 * is legal, REJECTED: the attempt is over, ...). Not subject to the rule that a child id gets no event before accept. */
struct fake_cm {
    enum rdma_cm_event_type event;
    int status;
    const void *private_data;
    uint8_t private_data_len;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t retry_count;
    uint8_t rnr_retry_count;
    uint8_t srq;
    uint32_t qp_num;
    /* Of ids in RDMA_PS_UDP, with private data and qp_num. */
    struct ibv_ah_attr ah_attr;
    uint32_t qkey;
    void *group; /* MULTICAST_*: fake_cm_group() */
};
void *fake_cm_group(struct rdma_cm_id *id); /* context of the id's last rdma_join_multicast */
void fake_cm_event(struct rdma_cm_id *id, const struct fake_cm *event);
void fake_cm_simple(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status);

/* A connection request from a peer that is not in this process: CONNECT_REQUEST on the listener, with a new child id,
 * which is returned. `peer` is the peer's address (NULL: 10.1.1.200, fd00:1:1::200), `event` its parameters in the
 * orientation of the event (NULL: qp_num 0x1234 and limits 1/1). */
struct rdma_cm_id *fake_cm_request(struct rdma_cm_id *listener, const struct fake_cm *event, const char *peer);

/* Parameters of the last rdma_connect or rdma_accept of the id, private data of the last rdma_reject; NULL: none. */
const struct fake_conn_param *fake_cm_conn(struct rdma_cm_id *id);

enum fake_cm_state {
    FAKE_CM_IDLE,
    FAKE_CM_BOUND,
    FAKE_CM_LISTEN,
    FAKE_CM_ADDR_QUERY,
    FAKE_CM_ADDR_RESOLVED,
    FAKE_CM_ROUTE_QUERY,
    FAKE_CM_ROUTE_RESOLVED,
    FAKE_CM_REQ_SENT,
    FAKE_CM_REP_RECEIVED,
    FAKE_CM_REQ_RECEIVED,
    FAKE_CM_REP_SENT,
    FAKE_CM_ESTABLISHED,
    FAKE_CM_DREQ_SENT,
    FAKE_CM_DREQ_RECEIVED,
    FAKE_CM_CLOSED, /* attempt failed, or disconnected */
};
enum fake_cm_state fake_cm_state(struct rdma_cm_id *id);
unsigned fake_cm_queued(struct rdma_event_channel *channel); /* events not fetched yet */

/* ---- The wire: connections and data inside the process ---------------------------------------------------------- */

/* With the wire on, ids of this process connect to listeners of this process (REQ, REP, RTU, REJ, DREQ, DREP, their
 * rules for IB-type and iWARP-type ids), and work on connected QPs is carried out: sends matched with receives and the
 * data copied, reads and writes checked against keys, rights and ranges. A send without a receive at the peer waits for
 * one (as with rnr_retry 7); one to a QP that is in ERROR or gone stays posted, as while retrying (end it with
 * fake_qp_complete). Messages to addresses that are not of this process vanish. Default off. */
void fake_wire(bool on);

enum fake_msg {
    FAKE_MSG_REQ,
    FAKE_MSG_REP,
    FAKE_MSG_RTU,
    FAKE_MSG_REJ,
    FAKE_MSG_DREQ,
    FAKE_MSG_DREP,
};

/* Held: messages queue up until delivered one by one, oldest first. fake_wire_deliver: how many were delivered.
 * fake_wire_hold(false) delivers what is there. */
void fake_wire_hold(bool on);
unsigned fake_wire_deliver(unsigned n);
unsigned fake_wire_held(void);
bool fake_wire_next(enum fake_msg *msg); /* kind of the oldest held message */

/* The next message of this kind is lost (no resend). */
void fake_wire_drop(enum fake_msg msg);

/* Data stands still while held. */
void fake_wire_hold_data(bool on);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* malloc, calloc, realloc, aligned_alloc, posix_memalign, strdup and strndup of the test program's own objects (not of
 * shared libraries) fail: the nth next one of the calling thread (1: the next), or of any thread. The fakes' own
 * allocations do not count. A test that walks n = 1, 2, ... stops when fake_alloc_pending() is still true after the
 * operation: there were fewer than n allocations. */
void fake_alloc_fail(unsigned nth);
void fake_alloc_fail_any(unsigned nth);
bool fake_alloc_pending(void);
void fake_alloc_clear(void);
unsigned long fake_alloc_count(void); /* allocations so far, all threads */

#ifdef __cplusplus
}
#endif

#endif
