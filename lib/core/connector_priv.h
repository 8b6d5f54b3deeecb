/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CONNECTOR_PRIV_H
#define NDVERBS_CONNECTOR_PRIV_H

/* What connector.c, connector_event.c, listener.c and connection.c share. */

#include "cm_registry.h"
#include "connection.h"
#include "connector.h"

/* request.tag of a connector's requests. */
enum connector_op {
    OP_CONNECT,
    OP_ACCEPT,
    OP_NOTIFY,
    OP_DISCONNECT,
    OP_ANY, /* not a tag: all of them */
};

struct connector {
    struct connection wire; /* first; its lock covers everything below but what says otherwise */
    uint32_t refs;
    struct cm_entry entry, qp_entry;
    struct qp *qp_listed; /* the QP of qp_entry */
    struct file *file;
    const struct connector_policy *policy;
    struct list pending; /* struct request.link, in the order the calls were made */

    struct listener *listener; /* waits for a request there */
    struct list waiting;       /* in listener->waiting, with `queued`: under the listener's lock */
    struct request *queued;

    bool released;          /* the application is gone; the wire may still have something to finish */
    bool removed;           /* the device is gone */
    bool reply_lost;        /* between the reply and CompleteConnect */
    bool was_connected;     /* got as far as WIRE_ESTABLISHED */
    bool disconnect_called; /* by the application */
    bool lost;              /* the connection broke without a disconnect */
    bool answered;          /* the peer's DREQ */
    bool attempted;         /* a Connect has been made */
    bool drain_wanted, draining, drained;
    struct qp_drain drain;
};

static inline struct connector *connector_from_wire(struct connection *conn)
{
    return (struct connector *)conn;
}

/* What a note asks for under a policy: bits. The order in which connector_event.c does them is the order here. */
enum connector_reaction {
    DO_ALL = 1 << 0,        /* every request completes with the note's status */
    DO_CONNECT = 1 << 1,    /* Connect completes with the note's status */
    DO_ACCEPT = 1 << 2,     /* Accept completes with the note's status */
    DO_COLLECT = 1 << 3,    /* arrived work goes to the CQs' stashes */
    DO_NOTIFY = 1 << 4,     /* NotifyDisconnect completes */
    DO_ANSWER = 1 << 5,     /* DREP */
    DO_DRAIN = 1 << 6,      /* QP to ERROR, everything posted comes back */
    DO_DISCONNECT = 1 << 7, /* Disconnect completes, after the drain */
};
uint32_t connector_reaction(const struct connector_policy *policy, enum wire_note note);

/* connector_event.c. With the lock held; unlock also starts the drain that is wanted. */
extern const struct connection_owner connector_wire_owner;
void connector_unlock(struct connector *c);
void connector_finish_locked(struct connector *c, struct request *request, NTSTATUS status);
void connector_finish_all_locked(struct connector *c, enum connector_op op, NTSTATUS status);
void connector_want_drain_locked(struct connector *c);
void connector_settle_locked(struct connector *c);

/* For listener.c, with the listener's lock held (order: listener, connector). */
NTSTATUS connector_queue(struct connector *c, struct listener *listener); /* ND_CONNECTION_ACTIVE: not fresh */
void connector_unqueue(struct connector *c);                              /* fresh again */
bool connector_give(struct connector *c, struct adapter *adapter, struct cmid *cmid,
                    const struct cm_event *request); /* false: released */

/* listener.c. Takes a queued connector back: its request completes with `status`, unless that is happening already. */
void listener_withdraw(struct listener *listener, struct connector *c, NTSTATUS status);

#endif
