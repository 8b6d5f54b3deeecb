/* SPDX-License-Identifier: MIT */
#include "connector_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <ntstatus.h>

#include "log.h"
#include "status.h"

/* What fits beside rdma_cm's own header; adapter_limits has the same. */
#define MAX_CALLER_DATA 56
#define MAX_CALLEE_DATA CONNECTION_DATA_MAX

NTSTATUS connector_create(struct adapter *adapter, struct file *file, const struct connector_policy *policy,
                          struct connector **out)
{
    struct connector *c;

    if (engine_dead() || (adapter && adapter_removed(adapter)))
        return ND_DEVICE_REMOVED;
    c = calloc(1, sizeof(*c));
    if (!c)
        return ND_NO_MEMORY;
    connection_init(&c->wire, adapter, &connector_wire_owner);
    c->wire.bare = false;
    c->wire.as_given = c->wire.once = policy->wv;
    c->refs = 1;
    c->file = file_ref(file);
    c->policy = policy;
    list_init(&c->pending);
    list_init(&c->waiting);
    list_init(&c->drain.link);
    cm_entry_add(&c->entry, CM_CONNECTOR, c, c, &c->refs);
    *out = c;
    return ND_SUCCESS;
}

struct connector *connector_ref(struct connector *connector)
{
    __atomic_add_fetch(&connector->refs, 1, __ATOMIC_RELAXED);
    return connector;
}

void connector_unref(struct connector *connector)
{
    if (__atomic_sub_fetch(&connector->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    cm_entry_del(&connector->entry);
    cm_entry_del(&connector->qp_entry);
    connection_fini(&connector->wire);
    file_unref(connector->file);
    free(connector);
}

static void lock(struct connector *c)
{
    pthread_mutex_lock(&c->wire.lock);
}

static bool gone(struct connector *c)
{
    struct adapter *adapter = __atomic_load_n(&c->wire.adapter, __ATOMIC_ACQUIRE);

    return engine_dead() || (adapter && adapter_removed(adapter));
}

/* The QP is one that this connector may use. */
static bool fits(const struct connector *c, const struct qp *qp)
{
    const struct adapter *adapter = c->wire.adapter;

    if (c->policy->wv)
        return !adapter || qp_adapter(qp)->device == adapter->device;
    return qp_adapter(qp) == adapter;
}

/* The connector has never had anything to do with a connection, or its last attempt may be repeated. */
static bool idle(const struct connector *c)
{
    return c->wire.state == WIRE_IDLE && !c->listener && !c->released;
}

/* The application knows of the reply: Connect has completed. */
static bool reply_in(const struct connector *c)
{
    return c->wire.state == WIRE_REPLY_IN && !c->wire.settling;
}

/* The state does not allow the call. */
static NTSTATUS out_of_turn(const struct connector *c, NTSTATUS status)
{
    return c->removed ? ND_DEVICE_REMOVED : c->policy->wv ? ND_NOT_SUPPORTED : status;
}

/* ---- Cancelling ---- */

static void cancel_one_locked(struct connector *c, struct request *request)
{
    struct connection *wire = &c->wire;

    if (c->policy->wv) {
        connector_finish_locked(c, request, ND_CANCELED);
        return;
    }
    switch (request->tag) {
    case OP_CONNECT:
        if (!c->policy->cancel_abandons)
            return;
        connection_abandon(wire, true);
        connector_finish_locked(c, request, ND_CANCELED);
        break;
    case OP_ACCEPT:
        if (!c->policy->cancel_abandons)
            return;
        connection_abandon(wire, false);
        if (c->policy->qp_owner)
            connector_want_drain_locked(c);
        connector_finish_locked(c, request, ND_CANCELED);
        break;
    case OP_DISCONNECT:
        /* Not taken back but made to finish: the DREQ is on its way, only its answer is not waited for. */
        if (c->policy->qp_owner)
            connector_want_drain_locked(c);
        connector_finish_locked(c, request, ND_SUCCESS);
        break;
    default:
        connector_finish_locked(c, request, ND_CANCELED);
        break;
    }
    connector_settle_locked(c);
}

/* CancelIoEx. The connector may be going at this moment; then its release completes the request. */
static void cancel_request(struct request *request)
{
    struct connector *c = cm_entry_find(CM_CONNECTOR, request->owner);

    if (!c)
        return;
    lock(c);
    if (list_linked(&request->link))
        cancel_one_locked(c, request);
    connector_unlock(c);
    connector_unref(c);
}

NTSTATUS connector_cancel(struct connector *c)
{
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    lock(c);
    list_for_each_safe (node, &c->pending)
        cancel_one_locked(c, list_entry(node, struct request, link));
    connector_unlock(c);
    return ND_SUCCESS;
}

/* ---- Requests ---- */

static NTSTATUS prepare(struct connector *c, OVERLAPPED *ov, struct request **out)
{
    if (c->removed)
        return ND_DEVICE_REMOVED;
    return request_alloc(c->file, ov, cancel_request, c, out);
}

static void start_locked(struct connector *c, struct request *request, enum connector_op op)
{
    request->tag = op;
    request_start(request);
    list_add_tail(&c->pending, &request->link);
}

/* The long way, for sandboxes and emulators without process_vm_readv. `length` fits a pipe. */
static ssize_t read_by_pipe(void *to, const void *from, size_t length)
{
    int ends[2], error;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    got = write(ends[1], from, length);
    if (got > 0)
        got = read(ends[0], to, (size_t)got);
    error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return got;
}

/* Copies the application's private data. The kernel reads it for us, so that a bad pointer is a status and no crash. */
static NTSTATUS import_data(uint8_t *to, const void *data, size_t length, uint32_t most)
{
    struct iovec local = { to, length }, remote = { (void *)(uintptr_t)data, length };
    ssize_t got;

    if (length > most || length > CONNECTION_DATA_MAX)
        return ND_INVALID_BUFFER_SIZE;
    if (!length)
        return ND_SUCCESS;
    if (!data)
        return ND_ACCESS_VIOLATION;
    got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got < 0 && errno != EFAULT) {
        got = read_by_pipe(to, data, length);
        if (got < 0 && errno != EFAULT)
            return ND_INSUFFICIENT_RESOURCES;
    }
    return got == (ssize_t)length ? ND_SUCCESS : ND_ACCESS_VIOLATION;
}

/* ---- Establishing ---- */

/* `status`: of the address so far. That the connector is bound already goes before it. */
static NTSTATUS bind_once(struct connector *c, const union address *local, NTSTATUS status)
{
    lock(c);
    if (!idle(c) || c->wire.bound)
        status = STATUS_ADDRESS_ALREADY_ASSOCIATED;
    else if (status == ND_SUCCESS)
        status = connection_bind(&c->wire, local);
    connector_unlock(c);
    return status;
}

NTSTATUS connector_bind(struct connector *c, const struct sockaddr *address, size_t length)
{
    union address local;
    struct address_entry entry;
    uint64_t mark = cmid_mark();
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    status = address_import(address, length, &local);
    if (status != ND_SUCCESS)
        return status;
    if (address_is_any(&local.sa)) {
        uint16_t port = address_port(&local.sa);

        status = address_of_adapter(c->wire.adapter->id, local.sa.sa_family, &local);
        address_set_port(&local.sa, port);
    } else {
        status = address_find_own(&local, &entry);
        if (status == ND_SUCCESS && entry.adapter_id != c->wire.adapter->id)
            status = ND_INVALID_ADDRESS;
    }
    status = bind_once(c, &local, status);
    /* The port's last owner may be ours and on its way out. */
    if (status == ND_SHARING_VIOLATION && cmid_settle(mark))
        status = bind_once(c, &local, ND_SUCCESS);
    return status;
}

NTSTATUS connector_connect(struct connector *c, struct qp *qp, const struct sockaddr *dest, size_t length,
                           uint32_t inbound, uint32_t outbound, const void *data, size_t data_length, OVERLAPPED *ov)
{
    uint8_t copy[CONNECTION_DATA_MAX];
    struct request *request;
    union address target;
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    if (!fits(c, qp))
        return ND_INVALID_PARAMETER_1;
    status = import_data(copy, data, data_length, MAX_CALLER_DATA);
    if (status == ND_SUCCESS)
        status = address_import(dest, length, &target);
    if (status != ND_SUCCESS)
        return status;
    /* The id of the last attempt tells the peer that it is over, as it is destroyed; a request that comes before that is
     * refused as one of a queue pair that the peer knows already. */
    if (qp_tried(qp))
        cmid_settle(cmid_mark());
    lock(c);
    status = idle(c) ? prepare(c, ov, &request) : out_of_turn(c, ND_CONNECTION_ACTIVE);
    if (status != ND_SUCCESS)
        goto out;
    c->attempted = true;
    status = connection_connect(&c->wire, qp, &target, inbound, outbound, copy, data_length);
    if (status != ND_SUCCESS) {
        request_discard(request);
        goto out;
    }
    start_locked(c, request, OP_CONNECT);
    status = ND_PENDING;
out:
    connector_unlock(c);
    return status;
}

NTSTATUS connector_complete_connect(struct connector *c, OVERLAPPED *ov)
{
    struct request *request;
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    lock(c);
    if (!reply_in(c)) {
        status = c->reply_lost && !c->removed ? ND_CONNECTION_ABORTED : out_of_turn(c, ND_CONNECTION_INVALID);
        goto out;
    }
    status = prepare(c, ov, &request);
    if (status != ND_SUCCESS)
        goto out;
    status = connection_complete(&c->wire);
    if (status != ND_SUCCESS) {
        request_discard(request);
        if (c->policy->qp_owner)
            connector_want_drain_locked(c);
        connector_settle_locked(c);
        goto out;
    }
    c->was_connected = true;
    request_start(request);
    request_complete(request, ND_SUCCESS, 0);
    status = ND_PENDING;
out:
    connector_unlock(c);
    return status;
}

NTSTATUS connector_accept(struct connector *c, struct qp *qp, uint32_t inbound, uint32_t outbound, const void *data,
                          size_t data_length, OVERLAPPED *ov)
{
    uint8_t copy[CONNECTION_DATA_MAX];
    struct request *request;
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    if (!fits(c, qp))
        return ND_INVALID_PARAMETER_1;
    status = import_data(copy, data, data_length, MAX_CALLEE_DATA);
    if (status != ND_SUCCESS)
        return status;
    lock(c);
    if (c->wire.state != WIRE_REQUEST_IN) {
        status =
            c->wire.state == WIRE_IDLE || c->wire.state == WIRE_OVER ? ND_CONNECTION_INVALID : ND_CONNECTION_ACTIVE;
        status = out_of_turn(c, status);
        goto out;
    }
    status = prepare(c, ov, &request);
    if (status != ND_SUCCESS)
        goto out;
    status = connection_accept(&c->wire, qp, inbound, outbound, copy, data_length);
    if (status != ND_SUCCESS) {
        request_discard(request);
        if (c->policy->qp_owner && c->wire.qp_moved)
            connector_want_drain_locked(c);
        connector_settle_locked(c);
        goto out;
    }
    start_locked(c, request, OP_ACCEPT);
    status = ND_PENDING;
out:
    connector_unlock(c);
    return status;
}

NTSTATUS connector_reject(struct connector *c, const void *data, size_t data_length)
{
    uint8_t copy[CONNECTION_DATA_MAX];
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    status = import_data(copy, data, data_length, MAX_CALLEE_DATA);
    if (status != ND_SUCCESS)
        return status;
    lock(c);
    if (c->wire.state == WIRE_REQUEST_IN || reply_in(c))
        status = connection_reject(&c->wire, copy, data_length);
    else
        status = c->reply_lost && !c->removed ? ND_CONNECTION_ABORTED : out_of_turn(c, ND_CONNECTION_INVALID);
    connector_unlock(c);
    return status;
}

/* ---- What is known of the connection ---- */

NTSTATUS connector_get_read_limits(struct connector *c, ULONG *inbound, ULONG *outbound)
{
    NTSTATUS status = ND_CONNECTION_INVALID;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    lock(c);
    if (c->wire.state >= WIRE_REPLY_IN && c->wire.state <= WIRE_DREQ_IN) {
        if (inbound)
            *inbound = c->wire.inbound;
        if (outbound)
            *outbound = c->wire.outbound;
        status = ND_SUCCESS;
    }
    connector_unlock(c);
    return status;
}

static NTSTATUS nothing(ULONG *length)
{
    if (length)
        *length = 0;
    return ND_DEVICE_REMOVED;
}

NTSTATUS connector_get_private_data(struct connector *c, void *buffer, ULONG *length)
{
    NTSTATUS status = ND_CONNECTION_INVALID;
    ULONG room;

    if (engine_dead())
        return nothing(length);
    if (!length)
        return ND_INVALID_PARAMETER_2;
    lock(c);
    room = buffer ? *length : 0;
    *length = 0; /* a caller that looks at it after a failure finds nothing */
    if (c->wire.data_in) {
        *length = c->wire.data_length;
        status = room < c->wire.data_length ? ND_BUFFER_OVERFLOW : ND_SUCCESS;
        if (room > c->wire.data_length)
            room = c->wire.data_length;
        if (room)
            memcpy(buffer, c->wire.data, room);
    }
    connector_unlock(c);
    return status;
}

static NTSTATUS copy_address(const union address *address, bool known, struct sockaddr *buffer, ULONG *length)
{
    ULONG need = known ? (ULONG)address_length(&address->sa) : 0, room = buffer ? *length : 0;

    *length = need;
    if (!known)
        return ND_CONNECTION_INVALID;
    if (room < need)
        return ND_BUFFER_OVERFLOW;
    memcpy(buffer, address, need);
    return ND_SUCCESS;
}

NTSTATUS connector_get_local_address(struct connector *c, struct sockaddr *buffer, ULONG *length)
{
    NTSTATUS status;

    if (engine_dead())
        return nothing(length);
    if (!length)
        return ND_INVALID_PARAMETER_2;
    lock(c);
    status = copy_address(&c->wire.local, c->wire.bound || c->wire.passive, buffer, length);
    connector_unlock(c);
    return status;
}

NTSTATUS connector_get_peer_address(struct connector *c, struct sockaddr *buffer, ULONG *length)
{
    NTSTATUS status;

    if (engine_dead())
        return nothing(length);
    if (!length)
        return ND_INVALID_PARAMETER_2;
    lock(c);
    status = copy_address(&c->wire.peer, c->wire.peer_known, buffer, length);
    connector_unlock(c);
    return status;
}

bool connector_uses(struct connector *c, const struct qp *qp)
{
    bool uses;

    lock(c);
    uses = c->wire.qp == qp;
    connector_unlock(c);
    return uses;
}

bool connector_spent(struct connector *c, uint16_t port)
{
    bool spent;

    lock(c);
    if (c->wire.state == WIRE_OVER)
        spent = !c->removed && list_empty(&c->pending) && !c->drain_wanted && !c->draining;
    else
        spent = idle(c) && c->wire.bound && port && port != address_port(&c->wire.local.sa);
    connector_unlock(c);
    return spent;
}

/* ---- Ending ---- */

NTSTATUS connector_notify_disconnect(struct connector *c, OVERLAPPED *ov)
{
    struct request *request;
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    lock(c);
    status = c->was_connected || (c->policy->wv && c->wire.state == WIRE_OVER) ? prepare(c, ov, &request)
                                                                               : out_of_turn(c, ND_CONNECTION_INVALID);
    if (status != ND_SUCCESS) {
        if (c->removed)
            status = ND_DEVICE_REMOVED;
        goto out;
    }
    start_locked(c, request, OP_NOTIFY);
    if (c->lost || (c->wire.state != WIRE_ESTABLISHED && c->wire.state != WIRE_DREQ_OUT))
        connector_finish_locked(c, request, c->lost ? STATUS_CONNECTION_DISCONNECTED : ND_SUCCESS);
    status = ND_PENDING;
out:
    connector_unlock(c);
    return status;
}

/* From WIRE_ESTABLISHED: no more posts to the device, then the DREQ. */
static void disconnect_locked(struct connector *c)
{
    if (c->policy->qp_owner && c->wire.qp)
        qp_close_posts(c->wire.qp);
    connection_disconnect(&c->wire);
}

/* May Disconnect be called now? */
static NTSTATUS may_disconnect(const struct connector *c)
{
    if (!c->policy->wv)
        return c->was_connected && !c->disconnect_called ? ND_SUCCESS : ND_CONNECTION_INVALID;
    if (c->wire.state == WIRE_ESTABLISHED || c->wire.state == WIRE_DREQ_OUT || c->wire.state == WIRE_DREQ_IN)
        return ND_SUCCESS;
    return c->wire.state == WIRE_IDLE ? ND_CONNECTION_INVALID : ND_INVALID_DEVICE_STATE;
}

NTSTATUS connector_disconnect(struct connector *c, OVERLAPPED *ov)
{
    return connector_disconnect_qp(c, NULL, ov);
}

NTSTATUS connector_disconnect_qp(struct connector *c, struct qp *qp, OVERLAPPED *ov)
{
    struct request *request;
    NTSTATUS status;

    if (gone(c))
        return ND_DEVICE_REMOVED;
    if (!ov)
        return ND_INVALID_PARAMETER;
    lock(c);
    status = may_disconnect(c);
    if (status == ND_SUCCESS && qp && c->wire.qp && qp != c->wire.qp)
        status = ND_INVALID_PARAMETER;
    if (status == ND_SUCCESS)
        status = prepare(c, ov, &request);
    if (status != ND_SUCCESS) {
        if (c->removed)
            status = ND_DEVICE_REMOVED;
        goto out;
    }
    c->disconnect_called = true;
    start_locked(c, request, OP_DISCONNECT);
    if (c->wire.state == WIRE_ESTABLISHED) {
        disconnect_locked(c);
    } else if (c->wire.state == WIRE_DREQ_IN && !c->answered) {
        connection_answer(&c->wire);
        c->answered = true;
        if (c->policy->wv)
            connector_want_drain_locked(c);
    } else if (c->policy->wv && c->wire.state == WIRE_DREQ_OUT) {
        connection_disconnect_now(&c->wire);
    }
    connector_settle_locked(c);
    status = ND_PENDING;
out:
    connector_unlock(c);
    return status;
}

void connector_release(struct connector *c)
{
    struct listener *listener;

    if (engine_dead())
        return;
    lock(c);
    c->released = true;
    listener = c->listener ? listener_ref(c->listener) : NULL;
    connector_finish_all_locked(c, OP_ANY, ND_CANCELED);
    switch (c->wire.state) {
    case WIRE_ESTABLISHED:
        disconnect_locked(c);
        break;
    case WIRE_DREQ_OUT:
        break; /* the answer, or the deadline, ends it */
    case WIRE_DREQ_IN:
        if (!c->answered)
            connection_answer(&c->wire);
        c->answered = true;
        break;
    case WIRE_REPLY_OUT:
        connection_abandon(&c->wire, false);
        if (c->policy->qp_owner)
            connector_want_drain_locked(c);
        break;
    case WIRE_IDLE:
    case WIRE_OVER:
        connection_close(&c->wire);
        break;
    default:
        connection_abandon(&c->wire, false);
        break;
    }
    connector_settle_locked(c);
    connector_unlock(c);
    if (listener) {
        listener_withdraw(listener, c, ND_CANCELED);
        listener_unref(listener);
    }
}

/* An implicit disconnect; an attempt ends, since it cannot succeed any more. */
static void qp_released_locked(struct connector *c)
{
    struct connection *wire = &c->wire;

    switch (wire->state) {
    case WIRE_ADDRESS:
    case WIRE_ROUTE:
    case WIRE_REQUEST_OUT:
        connection_abandon(wire, true);
        connector_finish_all_locked(c, OP_CONNECT, ND_CANCELED);
        break;
    case WIRE_REPLY_IN:
        connection_abandon(wire, false);
        connector_finish_all_locked(c, OP_CONNECT, ND_CANCELED);
        break;
    case WIRE_REPLY_OUT:
        connection_abandon(wire, false);
        connector_finish_all_locked(c, OP_ACCEPT, ND_CANCELED);
        break;
    case WIRE_ESTABLISHED:
        connection_disconnect(wire);
        break;
    default:
        break;
    }
    /* The release itself brings back everything that is posted. */
    if (wire->qp && !c->draining) {
        c->drain_wanted = false;
        c->drained = true;
    }
    connector_settle_locked(c);
}

void connector_qp_released(struct qp *qp)
{
    struct connector *c;

    if (engine_dead())
        return;
    c = cm_entry_find(CM_CONNECTOR_QP, qp);
    if (!c)
        return;
    lock(c);
    if (c->wire.qp == qp)
        qp_released_locked(c);
    connector_unlock(c);
    connector_unref(c);
}

void connector_comm_established(struct qp *qp)
{
    struct connector *c = cm_entry_find(CM_CONNECTOR_QP, qp);

    if (!c)
        return;
    lock(c);
    if (c->wire.qp == qp)
        connection_comm_established(&c->wire);
    connector_unlock(c);
    connector_unref(c);
}

void connector_qp_failed(struct qp *qp)
{
    struct connector *c = cm_entry_find(CM_CONNECTOR_QP, qp);

    if (!c)
        return;
    lock(c);
    if (c->wire.qp == qp)
        connection_qp_failed(&c->wire);
    connector_unlock(c);
    connector_unref(c);
}

static void device_removed(void *object, void *arg)
{
    struct connector *c = object;

    lock(c);
    if (c->wire.adapter && c->wire.adapter->device == arg)
        connection_device_removed(&c->wire);
    connector_unlock(c);
    connector_unref(c);
}

void connector_device_removed(struct device *device)
{
    cm_entry_each(CM_CONNECTOR, device_removed, device);
    connection_bare_removed(device);
}

/* ---- For the listener ---- */

NTSTATUS connector_queue(struct connector *c, struct listener *listener)
{
    NTSTATUS status = ND_CONNECTION_ACTIVE;

    lock(c);
    if (idle(c) && !c->wire.bound) {
        c->listener = listener;
        status = ND_SUCCESS;
    }
    connector_unlock(c);
    return status;
}

void connector_unqueue(struct connector *c)
{
    lock(c);
    c->listener = NULL;
    connector_unlock(c);
}

bool connector_give(struct connector *c, struct adapter *adapter, struct cmid *cmid, const struct cm_event *request)
{
    bool taken;

    lock(c);
    taken = !c->released;
    c->listener = NULL;
    if (taken)
        connection_take(&c->wire, adapter, cmid, request);
    connector_unlock(c);
    return taken;
}
