/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include "core/log.h"

/* What one attempt may bring: a reply or its failure, and the end of the connection; on the passive side RTU and the
 * end. One more, so that a request that arrives while a client still holds an event in its callback finds room too. */
#define RESERVE 3

static struct cm_message *message_alloc(size_t room)
{
    struct cm_message *message = calloc(1, sizeof(*message) + room);

    if (message) {
        message->room = room;
        list_init(&message->link);
    }
    return message;
}

NTSTATUS message_reserve_locked(struct cm_id *id)
{
    while (id->spare_count < RESERVE) {
        struct cm_message *message = message_alloc(IB_RTU_PDATA_SIZE);

        if (!message)
            return STATUS_NO_MEMORY;
        list_add_tail(&id->spares, &message->link);
        id->spare_count++;
    }
    return STATUS_SUCCESS;
}

struct cm_message *message_take_locked(struct cm_id *id, iba_cm_event_type type)
{
    struct list *link = list_pop(&id->spares);
    struct cm_message *message = link ? list_entry(link, struct cm_message, link) : message_alloc(IB_RTU_PDATA_SIZE);

    if (link)
        id->spare_count--;
    if (!message) {
        log_error("no memory for an event of a connection");
        return NULL;
    }
    memset(&message->event, 0, sizeof(message->event));
    memset(message->data, 0, message->room);
    message->event.type = type;
    return message;
}

void message_deliver_locked(struct cm_id *id, struct cm_message *message)
{
    list_add_tail(&id->events, &message->link);
    message_fd_update_locked(id);
    callback_post(id);
}

struct cm_message *message_pop_locked(struct cm_id *id)
{
    struct list *link = list_pop(&id->events);

    if (!link)
        return NULL;
    message_fd_update_locked(id);
    return list_entry(link, struct cm_message, link);
}

void message_recycle_locked(struct cm_id *id, struct cm_message *message)
{
    if (id->spare_count >= RESERVE) {
        free(message);
        return;
    }
    list_add_tail(&id->spares, &message->link);
    id->spare_count++;
}

static void free_list(struct list *list)
{
    while (!list_empty(list))
        free(list_entry(list_pop(list), struct cm_message, link));
}

void message_free_all(struct cm_id *id)
{
    free_list(&id->events);
    free_list(&id->spares);
}

void message_fd_update_locked(struct cm_id *id)
{
    bool wanted = !list_empty(&id->events);
    eventfd_t value;

    if (id->fd < 0 || wanted == id->fd_set)
        return;
    id->fd_set = wanted;
    if ((wanted ? eventfd_write(id->fd, 1) : eventfd_read(id->fd, &value)) != 0)
        log_warn("eventfd: %m");
}

struct cm_message *message_of_event(iba_cm_event *event)
{
    return (struct cm_message *)((char *)event - offsetof(struct cm_message, event));
}

/* ---- Copies ---- */

/* The pointers of an event: which bytes, and where the pointer is. */
struct part {
    void **pointer;
    size_t length;
};

static unsigned int parts_of(iba_cm_event *event, struct part part[2])
{
    switch (event->type) {
    case iba_cm_rep_received:
        part[0] = (struct part){ (void **)(uintptr_t)&event->data.rep.rep.p_pdata, event->data.rep.rep.pdata_len };
        return 1;
    case iba_cm_rtu_received:
    case iba_cm_dreq_received:
    case iba_cm_drep_received:
        part[0] = (struct part){ &event->data.rtu.p_pdata, event->data.rtu.pdata_len };
        return 1;
    case iba_cm_rej_received:
        part[0] = (struct part){ &event->data.rej.p_pdata, event->data.rej.pdata_len };
        part[1] = (struct part){ &event->data.rej.ari, event->data.rej.ari_length };
        return 2;
    case iba_cm_mra_received:
        part[0] = (struct part){ &event->data.mra.p_pdata, event->data.mra.pdata_len };
        return 1;
    default: /* what never arrives here (LAP, APR, SIDR), or has no pointers */
        return 0;
    }
}

NTSTATUS message_copy(const iba_cm_event *event, struct cm_message **out)
{
    iba_cm_event copy = *event;
    struct part part[2];
    unsigned int count = parts_of(&copy, part);
    struct cm_message *message;
    size_t room = 0;

    for (unsigned int i = 0; i < count; i++)
        room += *part[i].pointer ? part[i].length : 0;
    message = message_alloc(room);
    if (!message)
        return STATUS_NO_MEMORY;
    message->event = copy;
    count = parts_of(&message->event, part);
    room = 0;
    for (unsigned int i = 0; i < count; i++) {
        if (!*part[i].pointer)
            continue;
        memcpy(message->data + room, *part[i].pointer, part[i].length);
        *part[i].pointer = message->data + room;
        room += part[i].length;
    }
    *out = message;
    return STATUS_SUCCESS;
}
