/* SPDX-License-Identifier: MIT */
#include "connection_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "sleep.h"
#include "status.h"

#define BUSY_MS      100
#define BUSY_BARE_MS 15000
#define BUSY_STEP_MS 5

/* A call of rdma_connect that blocks (iWARP), made by a worker on its own copy of everything it needs. Events of the id
 * that arrive before the call has returned wait in it, so that one id never sees two calls at a time. When the
 * connection gives the attempt up meanwhile, the attempt keeps the QP until the kernel has let go of it. */
struct attempt {
    struct engine_work work;
    struct connection *conn; /* one reference */
    struct cmid *cmid;       /* pinned while running */
    struct qp *held;         /* named by its number in `param` while running; one reference. NULL: not ours */
    struct qp *qp;           /* given up: ours to replace and unclaim */
    bool running;
    struct rdma_conn_param param;
    uint8_t data[CONNECTION_REPLY_MAX];
    uint32_t events;
    struct cm_event event[3];
};

bool connection_new_attempt(struct connection *conn)
{
    struct attempt *attempt = calloc(1, sizeof(*attempt));

    if (!attempt)
        return false;
    conn->owner->ref(conn);
    attempt->conn = conn;
    conn->attempt = attempt;
    return true;
}

static bool in_call(const struct connection *conn)
{
    return conn->attempt && conn->attempt->running;
}

bool connection_hold_event(struct connection *conn, const struct cm_event *cm)
{
    struct attempt *attempt = conn->attempt;

    if (!in_call(conn))
        return false;
    if (attempt->events < sizeof(attempt->event) / sizeof(attempt->event[0]))
        attempt->event[attempt->events++] = *cm;
    return true;
}

static void attempt_free(struct attempt *attempt)
{
    struct connection *conn = attempt->conn;

    free(attempt);
    conn->owner->unref(conn);
}

/* The worker's half goes on alone; or there is none yet, and the record goes. */
void connection_orphan_attempt(struct connection *conn)
{
    struct attempt *attempt = conn->attempt;

    conn->attempt = NULL;
    if (!attempt)
        return;
    if (!attempt->running) {
        attempt_free(attempt);
        return;
    }
    attempt->qp = conn->qp;
    conn->qp = NULL;
    conn->qp_moved = false;
}

static bool wanted(struct attempt *attempt)
{
    struct connection *conn = attempt->conn;
    bool still;

    pthread_mutex_lock(&conn->lock);
    still = conn->attempt == attempt && !adapter_removed(conn->adapter);
    pthread_mutex_unlock(&conn->lock);
    return still;
}

/* The kernel may still have the TCP connection of the last attempt between the same two ports: it closes it a moment after a
 * refusal. */
static int connect_when_free(struct attempt *attempt)
{
    uint64_t until = sleep_deadline(attempt->conn->bare ? BUSY_BARE_MS : BUSY_MS);
    uint32_t never = 0;
    int error;

    for (;;) {
        error = rdma_connect(attempt->cmid->id, &attempt->param) == 0 ? 0 : errno;
        if (error != EADDRNOTAVAIL || sleep_now() >= until || !wanted(attempt))
            return error;
        futex_wait(SLEEP_LIBRARY, &never, 0, sleep_deadline(BUSY_STEP_MS));
    }
}

static void let_device(struct attempt *attempt)
{
    if (!attempt->held)
        return;
    qp_let_device(attempt->held);
    qp_unref(attempt->held);
    attempt->held = NULL;
}

/* siw sends its request, and then finds that what has come from the peer meanwhile, its answer and the end of the stream, has used
 * up what it would note the time-out of the answer with: ENOMEM. The answer is lost; a peer that closes behind it has refused. */
static NTSTATUS connect_status(int error)
{
    return error == ENOMEM ? ND_CONNECTION_REFUSED : connection_connect_status(error);
}

/* The kernel may have the TCP connection between the two ports for long: that of another connector stands, a request that
 * nobody has answered goes after ten seconds, and where our end was the first to close, TCP keeps the two ports for a minute.
 * The attempt goes on from another port then. A bare one names its port itself. */
static bool move_on(struct connection *conn)
{
    return !conn->bare && connection_new_attempt(conn) &&
           connection_try_again(conn, connection_move_id, "TCP has a connection between the two ports");
}

/* A removal is told by a flag first, and to each connection later. */
static void go_on_or_fail(struct connection *conn, int error)
{
    bool removed = adapter_removed(conn->adapter);

    if (error == EADDRNOTAVAIL && !removed && move_on(conn))
        return;
    connection_fail(conn, status_info(error, removed ? ND_DEVICE_REMOVED : connect_status(error), "rdma_connect"));
}

static void attempt_run(struct engine_work *work)
{
    struct attempt *attempt = (struct attempt *)((char *)work - offsetof(struct attempt, work));
    struct connection *conn = attempt->conn;
    int error = connect_when_free(attempt);

    engine_connect_over();
    let_device(attempt);
    pthread_mutex_lock(&conn->lock);
    attempt->running = false;
    if (conn->attempt == attempt) {
        conn->attempt = NULL;
        if (error)
            go_on_or_fail(conn, error);
        for (uint32_t i = 0; !error && i < attempt->events && conn->cmid == attempt->cmid; i++)
            connection_deliver(conn, &attempt->event[i]);
    }
    conn->owner->unlock(conn);
    if (attempt->qp)
        connection_give_back_qp(attempt->qp, true);
    cmid_unpin(attempt->cmid);
    attempt_free(attempt);
}

NTSTATUS connection_start_attempt(struct connection *conn)
{
    struct attempt *attempt = conn->attempt;
    NTSTATUS status;

    if (!conn->bare)
        connection_qp_prepare_iw(conn);
    memcpy(attempt->data, conn->data, conn->data_length);
    connection_fill_param(conn, &attempt->param, attempt->data, conn->data_length);
    attempt->cmid = conn->cmid;
    attempt->running = true;
    if (conn->qp) {
        attempt->held = qp_ref(conn->qp);
        qp_hold_device(attempt->held);
    }
    cmid_pin(conn->cmid);
    status = engine_work(ENGINE_LANE_CONNECT, &attempt->work, attempt_run);
    if (status != ND_SUCCESS) {
        attempt->running = false;
        let_device(attempt);
        cmid_unpin(conn->cmid);
    }
    return status;
}
