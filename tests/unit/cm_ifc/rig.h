/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CM_IFC_RIG_H
#define NDVERBS_CM_IFC_RIG_H

/* What the tests of the CM-only interface stand on: the whole library with its threads over the fakes, clients that record
 * their events, and the two sides of a connection. */

#include <stdbool.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <endian.h>
#include <ntstatus.h>
#include <iba/ib_cm_ifc.h>
#include "ndverbs.h"

#include "fakes.h"
#include "harness.h"

#include "cm_ifc/cm_ifc.h"

#define PORT 4711

extern INFINIBAND_INTERFACE_CM cm_ifc_table;
#define CM (cm_ifc_table.CM)

void rig_begin(void);
void rig_end(void);                  /* nothing leaked, no violation */
void rig_remove(const char *device); /* rig_end waits for what that brings about */

/* A client's view of one id: pass it as context, with `record` as callback. */
struct client {
    iba_cm_id *id;
    uint32_t count; /* events so far; atomic */
    uint32_t inside;
    iba_cm_event *event[32]; /* copies */
    NTSTATUS result;         /* what the callback returns */
    void (*hook)(struct client *client, iba_cm_event *event);
    void *arg;
};
NTSTATUS record(iba_cm_id *id, iba_cm_event *event);
void client_make(struct client *client); /* an idle id */
void client_end(struct client *client);  /* destroys the id if there is one, frees the copies */

/* Waits for the nth event (0: the first), which must be of this type. */
iba_cm_event *client_event(struct client *client, unsigned int n, iba_cm_event_type type);
uint32_t client_count(struct client *client);

/* Every callback that was due has run: an id of our own has been through the callback thread. */
void rig_settle(void);

struct rdma_cm_id *client_rdma_id(struct client *client);
bool client_in(struct client *client, enum cm_state state);

/* A request to 10.1.1.1 (10.1.2.1 on iWARP), as a Windows client would fill it in; points into itself. */
struct asked {
    iba_cm_req req;
    ib_path_rec_t path;
    ib_cm_rdma_req_t data;
};
void request_fill(struct asked *request, const char *from, const char *to, const char *text);
net64_t service_of(uint16_t port);
iba_cm_rep reply_of(const char *text);

/* The two sides over the fakes' wire. `iw`: on the iWARP device. Each leaves both in the state of its name. */
struct pair {
    struct client listener, active, passive;
    iba_cm_event request;
    bool iw;
    struct ibv_qp *qp[2]; /* iWARP: the kernel wants to know them */
    struct ibv_cq *cq;
    struct ibv_pd *pd;
    struct ibv_context *context;
};
void pair_listen(struct pair *pair, bool iw);
void pair_request(struct pair *pair, bool iw); /* request taken, with callback */
void pair_reply(struct pair *pair, bool iw);   /* rep_received; on iWARP rtu_received too */
void pair_established(struct pair *pair, bool iw);
void pair_end(struct pair *pair);

#endif
