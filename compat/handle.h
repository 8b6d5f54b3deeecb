/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_HANDLE_H
#define NDVERBS_HANDLE_H

/* The process-wide table behind HANDLE values. The two low bits of a handle are ignored, a stale value never names
 * another object. Source: win32-surface.md 6.1. */

#include "object.h"

/* Opens a handle; the handle takes a reference of its own. NULL: table full or out of memory (no last error set). */
HANDLE handle_open(struct object *object);

/* The object behind a handle, held until handle_unpin(handle); closing the handle meanwhile is allowed. One
 * compare-and-swap each. NULL if stale, never valid, or not of the type `ops` (NULL: any type). Sets no last error. */
struct object *handle_pin(HANDLE handle, const struct object_ops *ops);
void handle_unpin(HANDLE handle);

/* The same with a reference instead of a pin, for keeping. */
struct object *handle_ref(HANDLE handle, const struct object_ops *ops);

/* Open handles, for leak checks in tests. */
uint32_t handle_count(void);

#endif
