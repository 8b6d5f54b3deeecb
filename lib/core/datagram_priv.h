/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DATAGRAM_PRIV_H
#define NDVERBS_DATAGRAM_PRIV_H

/* What datagram.c (calls) and datagram_event.c (events) share. */

#include <pthread.h>

#include "cm_registry.h"
#include "cmid.h"
#include "datagram.h"

enum datagram_state {
    DATAGRAM_IDLE, /* bound or not */
    DATAGRAM_LISTENING,
    DATAGRAM_QUEUED,     /* waits for a request at a listening one */
    DATAGRAM_REQUEST_IN, /* has one */
    DATAGRAM_ADDRESS,    /* looking the address up */
    DATAGRAM_ROUTE,
    DATAGRAM_LOOKUP_OUT,
    DATAGRAM_DONE, /* found, or answered */
    DATAGRAM_OVER, /* rejected, released, or the device is gone */
};

/* request.tag */
enum datagram_op {
    DATAGRAM_OP_LOOKUP,
    DATAGRAM_OP_JOIN,
};

/* What a peer or a group is reached by. */
struct datagram_path {
    struct ibv_ah_attr ah_attr;
    uint32_t qp_num, qkey;
};

struct datagram_group {
    struct list link;
    union address address;
    struct request *request; /* while joining */
    bool joined;
    struct datagram_path path;
};

/* Leaves it, for the kernel too if there is an id. 0 or errno. */
int datagram_drop_group_locked(struct datagram *d, struct datagram_group *group);

/* A request that nobody has fetched yet. */
struct datagram_inquiry {
    struct list link;
    struct cmid *cmid;
    struct cm_event event;
};

struct datagram {
    pthread_mutex_t lock; /* a listening one's before that of the one it gives a request to */
    uint32_t refs;
    struct cm_entry entry;
    struct file *file;
    enum datagram_state state;
    struct cmid *cmid; /* NULL: not made yet, or given up */
    bool bound, known, removed;
    union address local, peer;
    struct datagram_path path; /* with `known` */
    uint16_t data_length;
    uint8_t data[DATAGRAM_DATA_MAX]; /* ours until `known`, then the peer's */
    struct list pending;             /* struct request.link: lookups and joins */
    struct list groups;

    /* listening */
    struct list waiting; /* struct datagram.wait_link, with a reference each */
    struct list inquiries;
    uint32_t queued_count, queue_limit;

    /* queued: under the listening one's lock */
    struct datagram *listener;
    struct list wait_link;
    struct request *queued;
};

/* datagram_event.c */
void datagram_event(struct cmid *cmid, const struct cm_event *event);
void datagram_gone(struct cmid *cmid);
void datagram_finish_locked(struct request *request, NTSTATUS status);
/* Listening one's lock held: the target waits no longer, and is as it was. */
void datagram_withdraw_locked(struct datagram *target, NTSTATUS status);
bool datagram_give_locked(struct datagram *d, struct cmid *child, const struct cm_event *event);
void datagram_turn_away(struct cmid *child);
/* Two ids may have one port if both were asked: that of a bound endpoint on its way out, and its successor. */
void datagram_share_port(struct cmid *cmid);

void datagram_lookup_failed_locked(struct datagram *d, NTSTATUS status);
void datagram_drop_locked(struct datagram *d, NTSTATUS status); /* everything pending, groups, ids */

#endif
