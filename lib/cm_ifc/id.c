/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/engine.h"
#include "core/module.h"
#include "core/status.h"
#include "sleep.h"

static uint32_t last_cid;

/* The event is a part of the id. */
static void idle_destroy(struct object *object)
{
    (void)object;
}

static const struct object_ops idle_ops = {
    .waitable = true,
    .destroy = idle_destroy,
};

NTSTATUS cm_id_new(NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context, struct cm_id **out)
{
    NTSTATUS status = callback_start();
    struct cm_id *id;

    if (status != STATUS_SUCCESS)
        return status;
    id = calloc(1, sizeof(*id));
    if (!id)
        return STATUS_NO_MEMORY;
    connection_init(&id->wire, NULL, &cm_wire_owner);
    id->pub.context = context;
    id->pub.callback = callback;
    id->pub.cid = htonl(__atomic_add_fetch(&last_cid, 1, __ATOMIC_RELAXED));
    id->refs = 1;
    id->fd = -1;
    object_init(&id->idle, &idle_ops, SIGNAL_MANUAL);
    list_init(&id->events);
    list_init(&id->spares);
    list_init(&id->ready_link);
    list_init(&id->listen_link);
    list_init(&id->requests);
    cm_use();
    module_object_made();
    cm_entry_add(&id->entry, CM_BARE, &id->pub, id, &id->refs);
    *out = id;
    return STATUS_SUCCESS;
}

void cm_id_ref(struct cm_id *id)
{
    __atomic_add_fetch(&id->refs, 1, __ATOMIC_RELAXED);
}

void cm_id_unref(struct cm_id *id)
{
    if (__atomic_sub_fetch(&id->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    cm_entry_del(&id->entry);
    message_free_all(id);
    if (id->fd >= 0)
        close(id->fd);
    connection_fini(&id->wire);
    free(id);
    module_object_gone();
    cm_unuse();
}

void cm_id_lock(struct cm_id *id)
{
    pthread_mutex_lock(&id->wire.lock);
}

void cm_id_unlock(struct cm_id *id)
{
    id->before = cm_id_state_locked(id);
    pthread_mutex_unlock(&id->wire.lock);
}

/* A pointer that is no living id is found out without touching what it points to. */
NTSTATUS cm_id_enter(iba_cm_id *p_id, struct cm_id **out)
{
    struct cm_id *id;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    id = cm_entry_find(CM_BARE, p_id);
    if (!id)
        return STATUS_INVALID_HANDLE;
    cm_id_lock(id);
    if (id->destroying) {
        cm_id_leave(id);
        return STATUS_INVALID_HANDLE;
    }
    *out = id;
    return STATUS_SUCCESS;
}

void cm_id_leave(struct cm_id *id)
{
    cm_id_unlock(id);
    cm_id_unref(id);
}

enum cm_state cm_id_state_locked(const struct cm_id *id)
{
    switch (id->wire.state) {
    case WIRE_ADDRESS:
    case WIRE_ROUTE:
    case WIRE_REQUEST_OUT:
        return CM_REQ_SENT;
    case WIRE_REPLY_IN:
        return id->wire.settling ? CM_REQ_SENT : CM_REP_RCVD;
    case WIRE_REQUEST_IN:
        return id->formatted ? CM_REP_FORMATTED : CM_REQ_RCVD;
    case WIRE_REPLY_OUT:
        return CM_REP_SENT;
    case WIRE_ESTABLISHED:
        return CM_ESTABLISHED;
    case WIRE_DREQ_OUT:
        return CM_DREQ_SENT;
    case WIRE_DREQ_IN:
        return CM_DREQ_RCVD;
    default:
        break;
    }
    if (id->listening)
        return CM_LISTEN;
    return id->spent ? CM_TIMEWAIT : CM_IDLE;
}

/* The kernel says the right thing to the peer when the id goes: REJ, DREQ or DREP (iba-cm.md 5). */
void cm_id_end_locked(struct cm_id *id)
{
    connection_close(&id->wire);
}

static void wait_for_callback_locked(struct cm_id *id)
{
    while (id->running) {
        signal_reset(&id->idle);
        cm_id_unlock(id);
        signal_wait(&id->idle, SLEEP_FOREVER);
        cm_id_lock(id);
    }
}

/* `id` comes with a reference, which is given back. The client's claim goes here, or in the callback thread when a callback of
 * this very id is running here or the client wants to be told. */
NTSTATUS cm_id_destroy(struct cm_id *id, bool wait, void (*done)(void *arg), void *arg)
{
    bool later;

    cm_id_lock(id);
    if (id->destroying) {
        cm_id_leave(id);
        return STATUS_INVALID_HANDLE;
    }
    id->destroying = true;
    cm_id_unlock(id);
    service_stop(id);
    cm_id_lock(id);
    cm_id_end_locked(id);
    later = !wait || callback_runs_here(id);
    if (later) {
        id->finish = true;
        id->done = done;
        id->done_arg = arg;
        callback_post(id);
    } else {
        wait_for_callback_locked(id);
    }
    cm_id_leave(id);
    if (!later)
        cm_id_unref(id);
    return STATUS_SUCCESS;
}

NTSTATUS cm_create_id(NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context, iba_cm_id **pp_id)
{
    struct cm_id *id;
    NTSTATUS status;

    if (!pp_id)
        return STATUS_INVALID_PARAMETER;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    status = cm_id_new(callback, context, &id);
    if (status == STATUS_SUCCESS)
        *pp_id = &id->pub;
    return status;
}

void cm_destroy_id(iba_cm_id *p_id)
{
    struct cm_id *id = engine_dead() ? NULL : cm_entry_find(CM_BARE, p_id);

    if (id)
        (void)cm_id_destroy(id, true, NULL, NULL);
}
