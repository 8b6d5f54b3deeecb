/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_CM_REGISTRY_H
#define NDVERBS_CM_REGISTRY_H

/* Finds living connectors and listeners: by their own address (a cancel may come when the object is just going), by the
 * queue pair a connector uses, and all of them (the end of a device). One leaf lock; any thread. */

#include <stdint.h>

#include "list.h"

enum cm_kind {
    CM_CONNECTOR,    /* key: the connector */
    CM_CONNECTOR_QP, /* key: the struct qp; object: the connector */
    CM_LISTENER,     /* key: the listener */
    CM_BARE,         /* key: an id of the CM-only interface; object: its struct connection */
    CM_DATAGRAM,     /* key: the datagram endpoint */
};

/* Embedded in the object. `refs` is the object's count: a reference is taken only while it is not 0. */
struct cm_entry {
    struct list link;
    enum cm_kind kind;
    uint32_t visit;
    const void *key;
    void *object;
    uint32_t *refs;
};

void cm_entry_add(struct cm_entry *entry, enum cm_kind kind, const void *key, void *object, uint32_t *refs);
void cm_entry_del(struct cm_entry *entry); /* added or never added and zero */

/* The object with a reference taken, or NULL. */
void *cm_entry_find(enum cm_kind kind, const void *key);

/* Calls `fn` once for each object of the kind, with a reference that fn gives back, without the lock. One walk at a
 * time: on loop only. */
void cm_entry_each(enum cm_kind kind, void (*fn)(void *object, void *arg), void *arg);

#endif
