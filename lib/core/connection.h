/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CONNECTION_H
#define NDVERBS_CONNECTION_H

/* The wire machine: one connection attempt and the connection that comes of it. Ids, messages, timers and the QP's way
 * from INIT to RTS; knows nothing of fronts, requests or OVERLAPPEDs. What happens on (state, event) is one table per
 * transport type; the owner (connector.c, or the CM-only interface) is told by notes. For these two only.
 * Source: design.md 5, rdma-mapping.md 1 to 3. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "address.h"
#include "cmid.h"
#include "device.h"
#include "engine.h"
#include "qp.h"

/* Private data that the connectors of the fronts keep and deliver at most: MaxCalleeData; and what a reply has room for. */
#define CONNECTION_DATA_MAX  148
#define CONNECTION_REPLY_MAX 196

enum wire_state {
    WIRE_IDLE,        /* no attempt; bound or not */
    WIRE_ADDRESS,     /* active: address being resolved */
    WIRE_ROUTE,       /* active: route being resolved */
    WIRE_REQUEST_OUT, /* active: REQ sent (or being sent by a worker) */
    WIRE_REPLY_IN,    /* active: REP received; iWARP: established, not completed by the application */
    WIRE_REQUEST_IN,  /* passive: REQ in hand */
    WIRE_REPLY_OUT,   /* passive: REP sent */
    WIRE_ESTABLISHED,
    WIRE_DREQ_OUT, /* we disconnect */
    WIRE_DREQ_IN,  /* the peer has disconnected */
    WIRE_OVER,     /* the attempt or the connection has ended; nothing follows */
    WIRE_STATES
};

enum wire_event {
    WIRE_EV_ADDR_RESOLVED,
    WIRE_EV_ADDR_ERROR,
    WIRE_EV_ROUTE_RESOLVED,
    WIRE_EV_ROUTE_ERROR,
    WIRE_EV_RESPONSE, /* CONNECT_RESPONSE */
    WIRE_EV_ESTABLISHED,
    WIRE_EV_REJECTED,
    WIRE_EV_STALE, /* REJECTED 10: the peer still knows our QP number from before */
    WIRE_EV_UNREACHABLE,
    WIRE_EV_CONNECT_ERROR,
    WIRE_EV_DISCONNECTED,
    WIRE_EV_TIMER,       /* our own deadline */
    WIRE_EV_CALL_FAILED, /* a call of ours failed; connection.failure tells how */
    WIRE_EV_REMOVED,     /* DEVICE_REMOVAL */
    WIRE_EV_QP_FAILED,   /* an asynchronous event of the QP, of which rdma_cm knows nothing */
    WIRE_EV_OTHER,       /* ADDR_CHANGE, TIMEWAIT_EXIT, what newer libraries add */
    WIRE_EVENTS
};

/* What the owner is told (or, the first three, what connection.c does next itself). */
enum wire_note {
    NOTE_NONE,
    NOTE_RESOLVE_ROUTE,
    NOTE_SEND_REQUEST,
    NOTE_RETRY,           /* stale: once more with a new id, then NOTE_CONNECT_FAILED */
    NOTE_REPLY,           /* Connect succeeded; data and limits are there */
    NOTE_CONNECT_FAILED,  /* with status; the id is gone or renewed, the QP is given back */
    NOTE_REPLY_LOST,      /* the peer took its reply back before CompleteConnect */
    NOTE_ACCEPTED,        /* Accept succeeded */
    NOTE_ACCEPTED_CLOSED, /* Accept succeeded, and the peer has disconnected already */
    NOTE_ACCEPT_FAILED,   /* with status; the QP has left INIT */
    NOTE_PEER_CLOSED,     /* the peer disconnected; its DREQ is not answered yet */
    NOTE_LOST,            /* the connection broke without a disconnect; more notes may follow */
    NOTE_CLOSED,          /* our disconnect is answered, crossed, or timed out (connection.timed_out) */
    NOTE_REMOVED,         /* the device is gone */
    WIRE_NOTES
};

struct wire_cell {
    uint8_t next; /* enum wire_state */
    uint8_t note; /* enum wire_note */
};

/* The cell of the transport's table. Any thread. */
struct wire_cell wire_cell(enum device_transport transport, enum wire_state state, enum wire_event event);

struct connection;
struct attempt;

/* What the owner gives. `note` runs with the lock held, on loop or on whatever thread made the call that failed. `unlock`
 * releases the lock and then does what must be done without it. */
struct connection_owner {
    uint16_t data_max; /* received private data beyond this is cut off */
    void (*note)(struct connection *conn, enum wire_note note, NTSTATUS status);
    void (*unlock)(struct connection *conn);
    void (*ref)(struct connection *conn);
    void (*unref)(struct connection *conn);
};

/* A queue pair that is not ours: its owner moves it from INIT to RTS, we only name it (the CM-only interface). */
struct bare_qp {
    uint32_t number;
    uint8_t retry_count, rnr_retry_count, flow_control, srq;
};

struct connection {
    pthread_mutex_t lock; /* covers everything here and in the owner; order: threading.md */
    const struct connection_owner *owner;
    struct adapter *adapter; /* NULL: not known yet (bare) */
    enum wire_state state;
    struct cmid *cmid;       /* NULL: not bound, being renewed later, or over */
    struct attempt *attempt; /* iWARP: the connect call that a worker is making */

    bool bound, passive, peer_known;
    uint16_t wire_port;  /* not 0: the id's, instead of the one in `local` */
    union address local; /* with port; valid if bound or passive */
    union address peer;  /* active: the destination; passive: the caller */

    struct qp *qp;                   /* claimed by this attempt (one reference), or NULL */
    bool bare;                       /* bare_qp instead of qp, for the life of the connection */
    struct bare_qp bare_qp, peer_qp; /* the peer's: what its request or reply said */
    bool qp_moved;                   /* the QP has left INIT: only ERROR is ahead of it */
    bool peer_srq;                   /* the peer's REQ or REP carried srq = 1 */
    bool retried;                    /* after REJECTED 10; iWARP: from another port */
    bool data_in;                    /* `data` is the peer's (else what Connect sends) */
    bool timed_out;                  /* our DREQ was not answered */
    bool parted;                     /* nobody waits for the id to go */
    bool settling;                   /* siw: the reply is in and not passed on yet */
    bool as_given;                   /* limits and retries are the application's, not agreed or ours (WinVerbs) */
    bool once;                       /* a refusal ends it; else it can try again */
    bool timer_running;
    uint16_t data_length;
    uint32_t inbound, outbound;                      /* read limits: asked, then agreed; our point of view */
    uint8_t retry, rnr_retry;                        /* with as_given: what we say to the peer */
    uint8_t told_in, told_out, told_retry, told_rnr; /* the peer's last words, as they came */
    uint8_t data[CONNECTION_REPLY_MAX];
    NTSTATUS failure; /* status of WIRE_EV_CALL_FAILED */
    int reject;       /* of the last REJECTED: reason, or negative errno (iWARP) */

    uint32_t timer_ms; /* wanted; 0: none */
    struct engine_timer timer;
    struct engine_call timer_call;
};

/* Without lock. The connection holds an adapter reference. `adapter` NULL makes it bare, unless the caller takes that back:
 * then connection_set_adapter comes before anything else but connection_take, which brings an adapter. */
void connection_init(struct connection *conn, struct adapter *adapter, const struct connection_owner *owner);
void connection_fini(struct connection *conn); /* when the owner's last reference is gone */

/* Every function from here on: any thread, with the lock held, no wait. */

void connection_set_adapter(struct connection *conn, struct adapter *adapter);
void connection_forget_adapter(struct connection *conn); /* another one keeps it alive for who looks without the lock */

/* Binds. Statuses of Bind (ndspi-v2.md 11). A busy port that belongs to a listener of this process is accepted: the id
 * takes another port, the address shown stays the one asked for (A20). */
NTSTATUS connection_bind(struct connection *conn, const union address *address);

/* Bare, idle or over: as new, on this adapter, for one more attempt. */
void connection_renew(struct connection *conn, struct adapter *adapter);

/* Starts an attempt: claims the QP, resolves the address. Synchronous statuses of Connect; nothing has changed then. The
 * limits are clipped to the adapter's. Bare: `qp` is NULL, bare_qp is set. */
NTSTATUS connection_connect(struct connection *conn, struct qp *qp, const union address *dest, uint32_t inbound,
                            uint32_t outbound, const void *data, size_t length);

/* QP to RTS and RTU. On failure the connection is over and its QP given back, or in need of a drain (qp_moved); bare: it
 * is as before, and what the peer did comes as a note. ND_CONNECTION_ABORTED, ND_DEVICE_REMOVED. */
NTSTATUS connection_complete(struct connection *conn);

/* Takes over a request: state WIRE_REQUEST_IN, data and limits from the event. `cmid` becomes ours. */
void connection_take(struct connection *conn, struct adapter *adapter, struct cmid *cmid,
                     const struct cm_event *request);

/* QP to RTS and REP. ND_CONNECTION_ACTIVE (QP in use; nothing has changed); others as connection_complete. */
NTSTATUS connection_accept(struct connection *conn, struct qp *qp, uint32_t inbound, uint32_t outbound,
                           const void *data, size_t length);

/* Rejects from WIRE_REQUEST_IN or WIRE_REPLY_IN; the connection is over whatever the status: ND_SUCCESS,
 * ND_CONNECTION_ABORTED (the peer was gone), ND_DEVICE_REMOVED. */
NTSTATUS connection_reject(struct connection *conn, const void *data, size_t length);

/* From WIRE_ESTABLISHED: sends DREQ, starts the deadline. NOTE_CLOSED may come before it returns. */
void connection_disconnect(struct connection *conn);

/* From WIRE_DREQ_OUT: waits for the answer no longer. NOTE_CLOSED comes before it returns. */
void connection_disconnect_now(struct connection *conn);

/* Answers the peer's DREQ (DREP). Harmless if there is nothing to answer. */
void connection_answer(struct connection *conn);

/* Gives an attempt up before it is established: the peer sees a reject or an abort. `keep`: the connection can try
 * again from the same local port (WIRE_IDLE), else it is over. A QP in INIT is given back. */
void connection_abandon(struct connection *conn, bool keep);

/* The device is gone (NOTE_REMOVED unless over already); a receive completed, or the device said so, before the RTU came
 * (makes the kernel take the connection for established). */
void connection_device_removed(struct connection *conn);
void connection_comm_established(struct connection *conn);

/* The QP is past use: NOTE_LOST, once the connection may stand. The ids still have to say that it is over. */
void connection_qp_failed(struct connection *conn);

/* Bare, from WIRE_REPLY_OUT: established without waiting for the RTU, which is not told then. */
void connection_establish_bare(struct connection *conn);

/* The attributes of a bare connection's QP as rdma_cm has them, cleared of what a device refuses. 0 or errno; EINVAL: the
 * peer's part is not known, or the attempt is over. */
int connection_qp_attr(struct connection *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask);

/* Without lock. The device of bare connections (CM_BARE) is gone; NOTE_REMOVED as above. On loop. */
void connection_bare_removed(struct device *device);

/* What their owner calls to let go of what else it has on a device that is gone; called behind the notes, on loop. */
void connection_bare_watch(void (*removed)(struct device *device));

/* Ends what is left: the id goes to a worker, WIRE_OVER. The QP reference stays until connection_drop_qp. */
void connection_close(struct connection *conn);
void connection_part(struct connection *conn); /* the same, after both sides have said that it is over */
void connection_drop_qp(struct connection *conn);

/* connection_qp.c: the QP's part. `connection_qp_ready`: INIT to RTS on IB-type, posts let through; sets qp_moved once the
 * QP has left INIT. `connection_qp_establish`: the same and RTU. False: a call failed (logged). `connection_qp_prepare_iw`:
 * access rights; the kernel does the rest. `connection_set_ack_timeout`: before the route is resolved; on a child only where
 * the QP is not ours. */
bool connection_qp_ready(struct connection *conn);
bool connection_qp_establish(struct connection *conn);
void connection_qp_prepare_iw(struct connection *conn);
void connection_set_ack_timeout(struct cmid *cmid, bool peer_srq);

#endif
