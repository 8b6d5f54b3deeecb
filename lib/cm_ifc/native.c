/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "core/engine.h"
#include "core/log.h"
#include "core/status.h"
#include "ndverbs.h"

/* What ndverbs.h has beside the 22 entries. */

NTSTATUS ndverbs_cm_event_fd(struct _iba_cm_id *p_id, int *fd)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!fd) {
        status = STATUS_INVALID_PARAMETER;
    } else if (id->fd < 0) {
        id->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (id->fd < 0) {
            log_warn("eventfd: %s", strerror(errno));
            status = STATUS_INSUFFICIENT_RESOURCES;
        }
        message_fd_update_locked(id);
    }
    if (status == STATUS_SUCCESS)
        *fd = id->fd;
    id->taken_by_call = true;
    cm_id_leave(id);
    return status;
}

/* A listening id keeps the message that its next notification needs. */
static NTSTATUS give_event_locked(struct cm_id *id, iba_cm_event **event)
{
    struct cm_message *copy, *message;

    if (list_empty(&id->events))
        return STATUS_NO_MORE_ENTRIES;
    message = list_entry(id->events.next, struct cm_message, link);
    if (message->event.type == iba_cm_req_received) {
        if (message_copy(&message->event, &copy) != STATUS_SUCCESS)
            return STATUS_NO_MEMORY;
        message_recycle_locked(id, message_pop_locked(id));
        message = copy;
    } else {
        message_pop_locked(id);
    }
    *event = &message->event;
    return STATUS_SUCCESS;
}

NTSTATUS ndverbs_cm_get_event(struct _iba_cm_id *p_id, struct _iba_cm_event **event)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    id->taken_by_call = true;
    if (!event)
        status = STATUS_INVALID_PARAMETER;
    else if (__atomic_load_n(&id->pub.callback, __ATOMIC_ACQUIRE))
        status = STATUS_INVALID_DEVICE_STATE;
    else
        status = give_event_locked(id, event);
    cm_id_leave(id);
    return status;
}

NTSTATUS ndverbs_cm_copy_event(const struct _iba_cm_event *event, struct _iba_cm_event **copy)
{
    struct cm_message *message;
    NTSTATUS status;

    if (!event || !copy)
        return STATUS_INVALID_PARAMETER;
    status = message_copy(event, &message);
    if (status == STATUS_SUCCESS)
        *copy = &message->event;
    return status;
}

void ndverbs_cm_free_event(struct _iba_cm_event *event)
{
    if (event)
        free(message_of_event(event));
}

NTSTATUS ndverbs_cm_set_callback(struct _iba_cm_id *p_id,
                                 NTSTATUS (*callback)(struct _iba_cm_id *, struct _iba_cm_event *), void *context)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    id->pub.context = context;
    __atomic_store_n(&id->pub.callback, callback, __ATOMIC_RELEASE);
    id->lacks_callback = false;
    if (callback && !list_empty(&id->events))
        callback_post(id);
    cm_id_leave(id);
    return STATUS_SUCCESS;
}

NTSTATUS ndverbs_cm_get_pdata(struct _iba_cm_id *p_id, void *buffer, UINT8 *length)
{
    uint8_t data[IB_REP_PDATA_SIZE], have, room;
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    have = cm_data_export_locked(id, data);
    cm_id_leave(id);
    if (!length)
        return STATUS_INVALID_PARAMETER;
    if (!have)
        return STATUS_INVALID_DEVICE_STATE;
    room = buffer ? *length : 0;
    *length = have;
    if (room)
        memcpy(buffer, data, room < have ? room : have);
    return room < have ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

NTSTATUS ndverbs_cm_get_read_limits(struct _iba_cm_id *p_id, UINT8 *resp_res, UINT8 *init_depth)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    if (!id->wire.peer_known) {
        status = STATUS_INVALID_DEVICE_STATE;
    } else {
        if (resp_res)
            *resp_res = (UINT8)id->wire.inbound;
        if (init_depth)
            *init_depth = (UINT8)id->wire.outbound;
    }
    cm_id_leave(id);
    return status;
}

NTSTATUS ndverbs_cm_destroy_id(struct _iba_cm_id *p_id, void (*done)(void *arg), void *arg)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_unlock(id);
    return cm_id_destroy(id, false, done, arg);
}

NTSTATUS ndverbs_cm_status(int ib_api_status)
{
    return status_from_ib(ib_api_status);
}

NTSTATUS ndverbs_cm_errno_status(int error)
{
    return status_from_cm_errno(error < 0 ? -error : error);
}
