/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CM_IFC_H
#define NDVERBS_CM_IFC_H

/* The CM-only interface: ids on the wire machine of core (connection.h), with the queue pair left to the client, and the
 * thread that calls the client back. Source: iba-cm.md.
 *
 * Locks, outermost first: services (service.c), an id's wire.lock, the callback thread's queue (callback.c). */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>
#include <ntstatus.h>
#include <iba/ib_cm_ifc.h>

#include "core/cm_registry.h"
#include "core/connection.h"
#include "object.h"

struct service;

/* An event on its way to the client, with room for what it points to. */
struct cm_message {
    struct list link;
    iba_cm_event event;
    size_t room;
    uint8_t data[];
};

/* A request that nobody has taken from a listening id. */
struct cm_request {
    struct list link;
    struct cmid *cmid;
    struct cm_event event;
};

/* Which message the private data in wire.data came with. */
enum cm_data {
    CM_DATA_NONE,
    CM_DATA_REQ,
    CM_DATA_REP,
    CM_DATA_REJ,
};

/* The states of iba-cm.md 6, as far as user space has them. */
enum cm_state {
    CM_IDLE,
    CM_LISTEN,
    CM_REQ_SENT,
    CM_REQ_RCVD,
    CM_REP_FORMATTED,
    CM_REP_SENT,
    CM_REP_RCVD,
    CM_ESTABLISHED,
    CM_DREQ_SENT,
    CM_DREQ_RCVD,
    CM_TIMEWAIT,
};

struct cm_id {
    struct connection wire; /* first; its lock covers everything below but what says otherwise */
    iba_cm_id pub;
    uint32_t refs; /* the client's claim, the wire machine's, the callback thread's, calls under way */
    struct cm_entry entry;

    struct list events; /* not delivered yet, oldest first */
    struct list spares; /* messages kept for what may come: an event cannot be lost for lack of memory */
    uint32_t spare_count;
    int fd; /* readable while there are events; -1: nobody asked for it */
    bool fd_set;
    bool taken_by_call;  /* ndverbs_cm_get_event is used: no callback is to be waited for */
    bool lacks_callback; /* from get_request: the client will write one, whenever it likes */
    bool running;        /* its callback runs */
    bool destroying;     /* by the client, or by a failing callback */
    bool finish;         /* the callback thread drops the client's claim */
    struct object idle;  /* set when the callback has returned */
    void (*done)(void *arg);
    void *done_arg;
    bool queued; /* in the callback thread's queue, with a reference; under the queue's lock */
    struct list ready_link;

    enum cm_data data;
    enum cm_state before; /* when the lock was last released: what the end of a device interrupted */
    bool formatted, mra_sent;
    bool spent; /* has been connected: no further attempt */
    iba_cm_rep rep;
    uint8_t rep_data[IB_REP_PDATA_SIZE];

    struct service *service; /* listening; under the services' lock too */
    struct list listen_link;
    bool listening, told; /* told: the notification is out, and the queue was not seen empty since */
    uint32_t requests_queued;
    struct list requests;
    ib_cm_rdma_req_t compare; /* ipv 0: there was no header */
    uint8_t compare_mask;
    net64_t service_id;
};

static inline struct cm_id *cm_from_wire(struct connection *conn)
{
    return (struct cm_id *)conn;
}

/* id.c */
NTSTATUS cm_id_new(NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context, struct cm_id **out);
NTSTATUS cm_id_enter(iba_cm_id *p_id, struct cm_id **out); /* with a reference and the lock; cm_id_leave */
void cm_id_leave(struct cm_id *id);
void cm_id_ref(struct cm_id *id);
void cm_id_unref(struct cm_id *id);
void cm_id_lock(struct cm_id *id);
void cm_id_unlock(struct cm_id *id);
enum cm_state cm_id_state_locked(const struct cm_id *id);
void cm_id_end_locked(struct cm_id *id); /* whatever stands on the wire */
NTSTATUS cm_id_destroy(struct cm_id *id, bool wait, void (*done)(void *arg), void *arg);
NTSTATUS cm_create_id(NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context, iba_cm_id **pp_id);
void cm_destroy_id(iba_cm_id *p_id);

/* callback.c. `start`: STATUS_INSUFFICIENT_RESOURCES. `post`: the id has something to deliver or to finish. `runs_here`:
 * the calling thread is inside of the id's callback. */
NTSTATUS callback_start(void);
void callback_post(struct cm_id *id);
bool callback_runs_here(const struct cm_id *id);

/* message.c. `reserve`: spares for what one attempt may bring; STATUS_NO_MEMORY. The others with the lock held. */
NTSTATUS message_reserve_locked(struct cm_id *id);
struct cm_message *message_take_locked(struct cm_id *id, iba_cm_event_type type);
void message_deliver_locked(struct cm_id *id, struct cm_message *message);
struct cm_message *message_pop_locked(struct cm_id *id);
void message_recycle_locked(struct cm_id *id, struct cm_message *message);
void message_free_all(struct cm_id *id);
void message_fd_update_locked(struct cm_id *id);
NTSTATUS message_copy(const iba_cm_event *event, struct cm_message **out);
struct cm_message *message_of_event(iba_cm_event *event);

/* event.c: from notes of the wire to events of the client. */
extern const struct connection_owner cm_wire_owner;
void cm_req_event_fill_locked(struct cm_id *id, const struct cm_event *request, iba_cm_event *event);
uint8_t cm_data_export_locked(struct cm_id *id, void *to); /* to: IB_REP_PDATA_SIZE; the number of bytes */

/* service.c: listening. */
void service_stop(struct cm_id *id);                      /* takes the services' lock; nothing if it does not listen */
void service_device_removed(const struct device *device); /* its requests go; on loop */
NTSTATUS cm_listen(iba_cm_id *p_id, net64_t service_id, void *p_compare_buf, uint8_t compare_len,
                   uint8_t compare_offset);
NTSTATUS cm_cancel_listen(iba_cm_id *p_id);
NTSTATUS cm_get_request(iba_cm_id *p_listen_id, iba_cm_id **pp_id, iba_cm_event *p_event);
NTSTATUS cm_get_request_ex(iba_cm_id *p_listen_id, NTSTATUS (*callback)(iba_cm_id *, iba_cm_event *), void *context,
                           iba_cm_id **pp_id, iba_cm_event *p_event);

/* path.c: service ids, the IP header and paths. */
bool cm_port_of_service(net64_t service_id, uint16_t *port); /* false: not in TCP's range */
bool cm_header_read(const void *data, size_t length, union address *source, union address *destination);
void cm_header_write(ib_cm_rdma_req_t *header, const union address *source, const union address *destination);
bool cm_gid_to_address(const ib_gid_t *gid, union address *address);
void cm_path_fill(const struct connection *conn, const struct ibv_qp_attr *rtr, ib_path_rec_t *path);

/* adapters.c: one adapter of core per device and port, kept while the interface or an id is used. */
NTSTATUS cm_adapter_get(const struct sockaddr *local, struct adapter **out); /* a reference for the caller */
void cm_use(void);
void cm_unuse(void);

/* connect.c */
NTSTATUS cm_send_req(iba_cm_id *p_id, iba_cm_req *p_req);
NTSTATUS cm_send_rep(iba_cm_id *p_id, iba_cm_rep *p_rep);
NTSTATUS cm_format_rep(iba_cm_id *p_id, iba_cm_rep *p_rep, ib_qp_mod_t *p_init);
NTSTATUS cm_send_formatted_rep(iba_cm_id *p_id);
NTSTATUS cm_send_rtu(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);
NTSTATUS cm_send_dreq(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);
NTSTATUS cm_send_drep(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);
NTSTATUS cm_send_rej(iba_cm_id *p_id, ib_rej_status_t status, const void *p_ari, uint8_t ari_len, const void *p_pdata,
                     uint8_t pdata_len);
NTSTATUS cm_send_mra(iba_cm_id *p_id, uint8_t service_timeout, const void *p_pdata, uint8_t pdata_len);
NTSTATUS cm_established(iba_cm_id *p_id);

/* qp_attr.c */
NTSTATUS cm_get_qp_attr(iba_cm_id *p_id, ib_qp_state_t state, ib_qp_mod_t *p_attr);
NTSTATUS cm_qp_attr_locked(struct cm_id *id, ib_qp_state_t state, ib_qp_mod_t *out);

#endif
