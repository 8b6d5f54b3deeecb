/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_FAKE_INTERNAL_H
#define NDVERBS_FAKE_INTERNAL_H

/* Shared by the fakes' own files. Everything here is under fake_lock unless it says otherwise. */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "fakes.h"
#include "list.h"

#define FAKE_MAX_PORTS 2

/* ---- fake_core.c ---- */

/* Head of every object that the fakes hand out; the public structure follows it directly, so that any public pointer
 * leads back to its head. Objects stay allocated until fake_reset(). */
struct fake_object {
    struct list link; /* while it lives in fake_objects, in order of creation */
    enum fake_kind kind;
    uint32_t magic;
    bool live;
    bool hidden; /* librdmacm's own: counts as nobody's object */
    uint64_t seq;
    size_t public_size;
    unsigned unacked; /* events of this object fetched and not acknowledged */
    pthread_t fetcher;
    void (*release)(struct fake_object *object); /* frees what hangs on it, at reset */
} __attribute__((aligned(16)));

extern struct list fake_objects;

void fake_lock(void);
void fake_unlock(void);
void fake_wait(void); /* until fake_wake(); the lock is given up meanwhile (held once) */
void fake_wake(void);
uint64_t fake_seq(void); /* of the call under way */

/* The frame of every call. fake_enter: runs the before-hooks, takes the lock, counts; returns the errno the call must
 * fail with (0: carry it out). fake_leave: logs (unless `quiet`), drops the lock, runs the after-hooks; returns `err`. */
int fake_enter(struct fake_call *call);
int fake_leave(struct fake_call *call, int err);
int fake_leave_quiet(struct fake_call *call, int err);

/* -1 with errno set, or 0. */
int fake_return(int err);

void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- fake_object.c ---- */

void fake_objects_reset(void);
void fake_fds_mark(void); /* fake_open_fds() counts from here */

/* New object whose public part begins after the head; NULL never (the fakes abort when the test runs out of memory). */
void *fake_object_new(size_t size, size_t public_size, enum fake_kind kind);
void fake_object_destroy(struct fake_object *object);

/* The object behind a public pointer if it is a live one of this kind, else NULL and a violation that names `fn`. */
void *fake_object_check(const void *pointer, enum fake_kind kind, enum fake_fn fn);

static inline struct fake_object *fake_head(const void *pointer)
{
    return (struct fake_object *)((char *)(uintptr_t)pointer - sizeof(struct fake_object));
}

static inline void *fake_public(struct fake_object *object)
{
    return object + 1;
}

/* An event of the object was fetched or acknowledged. */
void fake_fetched(struct fake_object *object);
void fake_acked(struct fake_object *object, unsigned n, enum fake_fn fn);

/* Waits as the real destroy does until all events are acknowledged; by the very thread that fetched one: a violation
 * instead of the hang. */
void fake_wait_acked(struct fake_object *object, enum fake_fn fn);

/* Allocations that fake_alloc_fail() does not see. */
void *fake_malloc(size_t size);
void fake_free(void *memory);
void *fake_copy(const void *data, size_t size);

/* A descriptor readable exactly while `count` > 0. */
struct fake_signal {
    int fd;
    unsigned count;
};
void fake_signal_open(struct fake_signal *signal);
void fake_signal_close(struct fake_signal *signal);
void fake_signal_raise(struct fake_signal *signal);
void fake_signal_lower(struct fake_signal *signal);

/* EAGAIN for an empty queue; a blocking descriptor makes it a violation. */
int fake_signal_empty(struct fake_signal *signal, enum fake_fn fn);

/* ---- fake_net.c, fake_net_calls.c ---- */

struct fake_device;
struct fake_address {
    struct list link;
    struct sockaddr_storage addr;
    struct fake_device *device; /* NULL: no RDMA */
    unsigned port;
};
bool fake_parse(const char *text, struct sockaddr_storage *addr);
bool fake_same_ip(const struct sockaddr *a, const struct sockaddr *b);
bool fake_any_ip(const struct sockaddr *addr);
bool fake_loopback_ip(const struct sockaddr *addr);
uint16_t fake_port_of(const struct sockaddr *addr); /* host order */
void fake_set_port(struct sockaddr *addr, uint16_t port);
socklen_t fake_sockaddr_size(const struct sockaddr *addr);
struct fake_address *fake_address_find(const struct sockaddr *addr);
struct fake_address *fake_address_for(const struct sockaddr *destination); /* the route's local address */
struct fake_address *fake_address_nth(const struct fake_device *device, unsigned port, unsigned n);
extern struct list fake_addresses;
void fake_net_reset(void);
void fake_net_announce(void); /* something changed: a message to each netlink socket */
bool fake_rule_for(const struct sockaddr *source, const struct sockaddr *destination);
int fake_net_fds(void); /* descriptors that the fakes hold for netlink sockets */

/* ---- fake_device.c, fake_async.c ---- */

struct fake_device {
    struct ibv_device device;
    struct list link;
    struct ibv_device_attr attr;
    struct ibv_port_attr ports[FAKE_MAX_PORTS];
    unsigned port_count;
    uint64_t guid;
    unsigned quirks;
    uint32_t max_inline;
    bool removed;
    struct fake_context *cm_context; /* the one librdmacm opens for the process */
};

struct fake_context {
    struct fake_object object;
    struct verbs_context verbs;
    struct fake_device *device;
    struct fake_signal async;
    struct list async_events;
    unsigned children;
};

extern struct list fake_devices;
void fake_devices_init(void);
void fake_devices_reset(void);
struct fake_device *fake_device_by_name(const char *name);
struct fake_context *fake_context_of(struct ibv_context *context);
struct fake_context *fake_context_check(struct ibv_context *context, enum fake_fn fn);
struct ibv_context *fake_cm_context(struct fake_device *device);
bool fake_device_is_iwarp(const struct fake_device *device);
void fake_async_raise(struct fake_context *context, enum ibv_event_type type, void *element, int port);
void fake_async_drop(struct fake_context *context);
void fake_async_purge(struct fake_context *context, const void *element);
uint32_t fake_number(uint32_t n, const struct fake_device *device); /* what the device makes of an asked depth */

/* ---- fake_memory.c ---- */

struct fake_pd {
    struct fake_object object;
    struct ibv_pd pd;
    unsigned children;
};

struct fake_mr {
    struct fake_object object;
    struct ibv_mr mr;
    unsigned access;
    unsigned windows; /* bound to it */
};

struct fake_mw {
    struct fake_object object;
    struct ibv_mw mw;
    struct fake_mr *mr; /* NULL: not bound */
    struct fake_qp *qp; /* type 2: the queue pair it is bound on */
    uint64_t addr, length;
    unsigned access;
    uint32_t rkey;     /* of the last executed bind */
    bool posted_bound; /* as it will be when all posted work is done */
};

struct fake_ah {
    struct fake_object object;
    struct ibv_ah ah;
    struct ibv_ah_attr attr;
};

struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int fake_dealloc_mw(struct ibv_mw *mw);
int fake_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void fake_mw_unbind(struct fake_mw *mw);
struct fake_mw *fake_mw_by_rkey(uint32_t rkey);

/* IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, or for remote keys IBV_WC_REM_ACCESS_ERR. */
enum ibv_wc_status fake_check_local(struct ibv_pd *pd, const struct ibv_sge *sge, int count, bool write);
enum ibv_wc_status fake_check_remote(struct fake_qp *qp, uint32_t rkey, uint64_t addr, uint64_t length,
                                     unsigned access);
enum ibv_wc_status fake_execute_bind(struct fake_qp *qp, const struct fake_wr *wr);
enum ibv_wc_status fake_execute_invalidate(struct fake_qp *qp, uint32_t rkey);

/* ---- fake_cq.c ---- */

struct fake_channel {
    struct fake_object object;
    struct ibv_comp_channel channel;
    struct fake_signal signal;
    struct list events;
};

struct fake_cq {
    struct fake_object object;
    struct ibv_cq cq;
    struct ibv_wc *ring;
    unsigned head, count, capacity;
    enum fake_arm arm;
    unsigned users;
    unsigned events_queued;
    unsigned events_unacked; /* completion events; the object's count has async events too */
};

int fake_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void fake_cq_clean(struct fake_cq *cq, uint32_t qp_num); /* completions of that queue pair go */
bool fake_cq_add(struct fake_cq *cq, const struct ibv_wc *wc, bool solicited);

/* ---- fake_qp.c, fake_post.c, fake_srq.c ---- */

struct fake_posted {
    struct list link;
    struct fake_wr wr;
    uint8_t *inlined; /* copy of the data of an inline send */
    bool lost;        /* FAKE_QUIRK_DEAD_POST_LOST: never completes */
};

struct fake_srq {
    struct fake_object object;
    struct ibv_srq srq;
    struct ibv_srq_attr attr;
    struct list posted;
    unsigned count;
    unsigned users;
    bool limit_armed;
};

struct fake_qp {
    struct fake_object object;
    struct ibv_qp qp;
    struct ibv_qp_init_attr init;
    enum ibv_qp_state state;
    struct ibv_qp_attr attr[IBV_QPS_ERR + 1];
    int mask[IBV_QPS_ERR + 1]; /* 0: never modified into it */
    struct list posted[2];
    unsigned count[2];
    uint32_t peer_qpn;
    unsigned access;
    unsigned windows;  /* bound on it */
    unsigned attached; /* multicast groups */
};

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct fake_device *fake_qp_device(const struct fake_qp *qp);
struct fake_qp *fake_qp_by_num(uint32_t qp_num);
unsigned fake_qp_flush_queue(struct fake_qp *qp, enum fake_queue queue); /* how many */
void fake_qp_to_error(struct fake_qp *qp);
void fake_qp_connected(struct fake_qp *qp, uint32_t peer_qpn); /* iWARP: the kernel takes it to RTS */
void fake_qp_finish_send(struct fake_qp *qp, enum ibv_wc_status status, uint32_t byte_len);
/* Does it fire an arm for solicited completions? `flag`: the message has the flag. */
bool fake_qp_alerts(const struct fake_qp *qp, enum ibv_wc_status status, bool flag);
void fake_qp_finish_recv(struct fake_qp *qp, const struct ibv_wc *from, bool solicited);
struct fake_posted *fake_qp_next_send(struct fake_qp *qp); /* NULL: none */
struct fake_posted *fake_qp_next_recv(struct fake_qp *qp); /* its own or the SRQ's; NULL: none */
struct fake_posted *fake_posted_recv(const struct ibv_recv_wr *wr);
void fake_posted_free(struct fake_posted *posted);
int fake_post_result(const struct fake_device *device, int err);
void fake_recv_to_wr(const struct ibv_recv_wr *from, struct fake_wr *to);
void fake_srq_taken(struct fake_srq *srq);

/* ---- fake_wire.c: data ---- */

void fake_wire_progress(struct fake_qp *qp); /* something was posted on it, or its state changed */
void fake_wire_progress_srq(struct fake_srq *srq);
extern bool fake_wire_on;
void fake_wire_reset(void);

/* ---- fake_cm_id.c, fake_cm_addr.c, fake_cm.c, fake_cm_wire.c ---- */

struct fake_event_channel {
    struct fake_object object;
    struct rdma_event_channel channel;
    struct fake_signal signal;
    struct list events;
    unsigned ids;
};

struct fake_id {
    struct fake_object object;
    struct rdma_cm_id id;
    enum fake_cm_state state;
    struct fake_device *device;
    struct fake_event_channel *own_channel; /* made for an id created without one */
    bool iwarp;
    bool bound;
    bool reuseaddr;
    bool child;
    bool accepted;        /* a child's events are hidden before */
    bool disconnect_told; /* DISCONNECTED was reported */
    bool has_conn;
    struct fake_conn_param conn;                  /* of the last connect, accept or reject */
    struct rdma_conn_param remote;                /* of the peer's REQ or REP, in this side's orientation */
    uint8_t responder_resources, initiator_depth; /* what rdma_init_qp_attr gives */
    int backlog;
    struct fake_id *listener; /* of a child that is neither accepted nor rejected */
    unsigned pending;         /* such children of a listener */
    struct fake_id *peer;     /* wire: the id at the other end; may be destroyed */
    uint32_t psn;
    uint8_t ack_timeout; /* 0: not set */
    unsigned busy;
    pthread_t busy_thread;
    struct ibv_sa_path_rec path;
    void *group; /* context of the last join */
    unsigned groups;
};

struct fake_event {
    struct fake_object object;
    struct rdma_cm_event event;
    struct list link;      /* in its channel until fetched */
    struct fake_id *owner; /* the id in whose count it is: the listener for CONNECT_REQUEST */
    uint8_t data[256];
};

/* The frame of the calls on ids; notes that the id is in use. `err` as of fake_enter(); NULL: no live id. fake_id_leave
 * returns 0 or -1 with errno set. */
struct fake_id *fake_id_enter(struct fake_call *call, struct rdma_cm_id *id, int *err);
int fake_id_leave(struct fake_call *call, struct fake_id *id, int err);
void fake_id_bind_device(struct fake_id *id, struct fake_device *device, unsigned port);

/* Queues an event and moves the id's state; `listener` only for CONNECT_REQUEST. */
void fake_event_queue(struct fake_id *id, struct fake_id *listener, const struct fake_cm *from);

/* A child of the listener for a request from `remote`; the wildcard's device is found from `local`. */
struct fake_id *fake_child_new(struct fake_id *listener, const struct sockaddr *local, const struct sockaddr *remote);

/* The child was accepted, rejected or destroyed: room in the backlog. */
void fake_child_settled(struct fake_id *child);
void fake_cm_removed(struct fake_device *device);
struct fake_qp *fake_id_qp(struct fake_id *id); /* by the number given at connect or accept; NULL: none */

/* What the calls send; carried out at once, queued when held, nothing when the wire is off. */
int fake_wire_connect(struct fake_id *id);
void fake_wire_accept(struct fake_id *id);
void fake_wire_establish(struct fake_id *id);
void fake_wire_reject(struct fake_id *id, const void *data, uint8_t length);
void fake_wire_disconnect(struct fake_id *id);
void fake_wire_destroy(struct fake_id *id); /* by its state */
void fake_wire_backlog(struct fake_id *listener);
void fake_cm_wire_reset(void);
void fake_cm_reset(void);

/* ---- rules the test sets ---- */

extern bool (*fake_on_loop)(void);
extern bool fake_flush_automatic;

#endif
