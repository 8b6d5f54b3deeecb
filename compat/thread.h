/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_THREAD_H
#define NDVERBS_THREAD_H

#include <stdbool.h>

#include "object.h"

/* Starts a detached thread of the library with all signals blocked: an application's signals are never delivered on
 * threads it does not know. False: no resources. Any thread. */
bool thread_start_detached(void *(*start)(void *arg), void *arg);

/* The same for a thread that calls functions of the application: its stack is that of a thread of Windows. */
bool thread_start_callbacks(void *(*start)(void *arg), void *arg);

/* The object of the calling thread, with a reference for the caller; also of a thread that the system started. NULL: out of
 * memory. */
struct object *thread_object(void);

#endif
