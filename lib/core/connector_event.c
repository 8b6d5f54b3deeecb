/* SPDX-License-Identifier: MIT */
#include "connector_priv.h"

#include <ntstatus.h>

#include "status.h"

/* One row per note; the other columns count when the policy has the flag. Reasons: design.md 5. */
static const struct {
    uint8_t always, qp_owner, flush_on_peer, auto_drep, wv;
} reactions[WIRE_NOTES] = {
    [NOTE_REPLY] = { .always = DO_CONNECT },
    [NOTE_CONNECT_FAILED] = { .always = DO_CONNECT },
    [NOTE_REPLY_LOST] = { .always = DO_CONNECT }, /* siw: before Connect has completed */
    [NOTE_ACCEPTED] = { .always = DO_ACCEPT },
    [NOTE_ACCEPT_FAILED] = { .always = DO_ACCEPT, .qp_owner = DO_DRAIN },
    [NOTE_ACCEPTED_CLOSED] = { .always = DO_ACCEPT | DO_NOTIFY,
                               .flush_on_peer = DO_COLLECT | DO_DRAIN,
                               .auto_drep = DO_ANSWER },
    [NOTE_PEER_CLOSED] = { .always = DO_NOTIFY, .flush_on_peer = DO_COLLECT | DO_DRAIN, .auto_drep = DO_ANSWER },
    [NOTE_LOST] = { .always = DO_NOTIFY, .qp_owner = DO_DRAIN },
    [NOTE_CLOSED] = { .always = DO_NOTIFY | DO_ANSWER | DO_DISCONNECT, .qp_owner = DO_DRAIN, .wv = DO_DRAIN },
    [NOTE_REMOVED] = { .always = DO_ALL },
};

uint32_t connector_reaction(const struct connector_policy *policy, enum wire_note note)
{
    uint32_t what = reactions[note].always;

    if (policy->qp_owner)
        what |= reactions[note].qp_owner;
    if (policy->flush_on_peer)
        what |= reactions[note].flush_on_peer;
    if (policy->auto_drep)
        what |= reactions[note].auto_drep;
    if (!policy->qp_owner)
        what &= ~(uint32_t)DO_DRAIN;
    if (policy->wv)
        what |= reactions[note].wv;
    return what;
}

void connector_finish_locked(struct connector *c, struct request *request, NTSTATUS status)
{
    list_del(&request->link);
    if (c->policy->wv)
        status = status_wv_endpoint(status, request->tag == OP_CONNECT, request->tag == OP_NOTIFY);
    request_complete(request, c->policy->v1_timeouts ? status_v1(status) : status, 0);
}

void connector_finish_all_locked(struct connector *c, enum connector_op op, NTSTATUS status)
{
    list_for_each_safe (node, &c->pending) {
        struct request *request = list_entry(node, struct request, link);

        if (op == OP_ANY || request->tag == op)
            connector_finish_locked(c, request, status);
    }
}

/* Once per connection; a QP that the application has released needs none. */
void connector_want_drain_locked(struct connector *c)
{
    if (!c->wire.qp || c->draining || c->drained)
        return;
    if (qp_verbs(c->wire.qp))
        c->drain_wanted = true;
    else
        c->drained = true;
}

/* When nothing is left to come back: Disconnect completes, and the id goes once the peer has its answer. */
void connector_settle_locked(struct connector *c)
{
    struct connection *wire = &c->wire;

    if (c->drain_wanted || c->draining)
        return;
    if (wire->state == WIRE_OVER || wire->state == WIRE_DREQ_IN)
        connector_finish_all_locked(c, OP_DISCONNECT,
                                    wire->timed_out ? c->policy->disconnect_timeout_status : ND_SUCCESS);
    if (wire->state == WIRE_OVER || (wire->state == WIRE_DREQ_IN && c->answered)) {
        if (c->answered)
            connection_part(wire);
        else
            connection_close(wire);
        connection_drop_qp(wire);
    }
}

static void drained(struct qp_drain *drain)
{
    struct connector *c = (struct connector *)((char *)drain - offsetof(struct connector, drain));

    pthread_mutex_lock(&c->wire.lock);
    c->draining = false;
    c->drained = true;
    connector_settle_locked(c);
    connector_unlock(c);
    connector_unref(c);
}

/* The table of QPs in use follows whatever happened under the lock. */
static void list_qp_locked(struct connector *c)
{
    if (c->qp_listed == c->wire.qp)
        return;
    if (c->qp_listed)
        cm_entry_del(&c->qp_entry);
    c->qp_listed = c->wire.qp;
    if (c->qp_listed)
        cm_entry_add(&c->qp_entry, CM_CONNECTOR_QP, c->qp_listed, c, &c->refs);
}

/* The drain starts without the lock: it may be over before qp_drain returns. */
void connector_unlock(struct connector *c)
{
    struct qp *qp = NULL;

    if (c->drain_wanted) {
        c->drain_wanted = false;
        c->draining = true;
        qp = qp_ref(c->wire.qp);
        connector_ref(c);
    }
    list_qp_locked(c);
    pthread_mutex_unlock(&c->wire.lock);
    if (qp) {
        qp_drain(qp, &c->drain, drained);
        qp_unref(qp);
    }
}

static void wire_note(struct connection *conn, enum wire_note note, NTSTATUS status)
{
    struct connector *c = connector_from_wire(conn);
    uint32_t what = connector_reaction(c->policy, note);

    if (note == NOTE_REPLY_LOST)
        c->reply_lost = true;
    if (note == NOTE_REMOVED)
        c->removed = true;
    if (note == NOTE_LOST)
        c->lost = true;
    if (note == NOTE_ACCEPTED || note == NOTE_ACCEPTED_CLOSED) {
        c->was_connected = true;
        status = ND_SUCCESS;
    }
    /* Whoever hears of the end may post at once, before the drain begins: that is never sent (A38). */
    if ((what & DO_DRAIN) && c->policy->qp_owner && conn->qp)
        qp_close_posts(conn->qp);
    if (what & DO_ALL)
        connector_finish_all_locked(c, OP_ANY, status);
    if (what & DO_CONNECT)
        connector_finish_all_locked(c, OP_CONNECT, status);
    if (what & DO_ACCEPT)
        connector_finish_all_locked(c, OP_ACCEPT, status);
    if ((what & DO_COLLECT) && conn->qp)
        qp_collect(conn->qp);
    if (what & DO_NOTIFY)
        connector_finish_all_locked(c, OP_NOTIFY, c->lost ? STATUS_CONNECTION_DISCONNECTED : ND_SUCCESS);
    if (what & DO_ANSWER) {
        if (!conn->timed_out)
            connection_answer(conn);
        c->answered = true;
    }
    /* A released endpoint leaves the application's queue pair alone. */
    if ((what & DO_DRAIN) && !(c->policy->wv && c->released))
        connector_want_drain_locked(c);
    connector_settle_locked(c);
}

static void wire_unlock(struct connection *conn)
{
    connector_unlock(connector_from_wire(conn));
}

static void wire_ref(struct connection *conn)
{
    connector_ref(connector_from_wire(conn));
}

static void wire_unref(struct connection *conn)
{
    connector_unref(connector_from_wire(conn));
}

const struct connection_owner connector_wire_owner = {
    .data_max = CONNECTION_DATA_MAX,
    .note = wire_note,
    .unlock = wire_unlock,
    .ref = wire_ref,
    .unref = wire_unref,
};
