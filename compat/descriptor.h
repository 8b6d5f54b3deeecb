/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DESCRIPTOR_H
#define NDVERBS_DESCRIPTOR_H

/* Descriptors for programs with an event loop of their own: an eventfd that is readable while an object is set, or while
 * a completion port has packets. Made on first request only, so that an object costs no descriptor otherwise. */

#include "object.h"

/* Makes it; true if it is there now. The lock that covers object->raised is held. */
bool descriptor_make_locked(struct object *object);

/* Makes it readable or not; nothing without a descriptor. The lock that covers object->raised is held. */
void descriptor_change_locked(struct object *object, bool readable);
static inline void descriptor_follow_locked(struct object *object, bool readable)
{
    if (__builtin_expect(object->descriptor >= 0 && object->raised != readable, 0))
        descriptor_change_locked(object, readable);
}

/* With the last reference. */
void descriptor_close(struct object *object);

/* The descriptor of what a handle names: an event, a thread, an overlapped file or a completion port. It belongs to the
 * object. STATUS_INVALID_HANDLE, STATUS_INSUFFICIENT_RESOURCES (no descriptor left). Any thread. */
NTSTATUS handle_descriptor(HANDLE handle, int *fd);

#endif
