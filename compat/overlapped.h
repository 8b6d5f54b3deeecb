/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_OVERLAPPED_H
#define NDVERBS_OVERLAPPED_H

/* Overlapped files and requests: what providers (lib/core and the fronts) see of compat. overlapped.c is the only code
 * that touches an application's OVERLAPPED. */

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "list.h"

struct file;
struct request;

/* Called by CancelIoEx/CancelIo, no lock held, on any thread, with a reference on the request held by the caller. The
 * owner unlinks the request under its own lock if it is still linked there, undoes what the operation had started, and
 * calls request_complete(STATUS_CANCELLED). If it is no longer linked, somebody else is completing it: do nothing. */
typedef void (*request_cancel_fn)(struct request *request);

/* The part of a request that its owner (the object that started it) may use. */
struct request {
    struct list link; /* for the owner's list of pending requests, under the owner's lock */
    void *owner;      /* the owner's object; the owner keeps it alive while the request is pending */
    uint32_t tag;     /* the owner's use (notify type, operation kind) */
    request_cancel_fn cancel;
    /* private to compat from here on: struct request is embedded at the head of a larger record */
};

/* Creates a file object for overlapped requests with one reference. Any thread. NULL: out of memory.
 * Source: win32-surface.md 6.5. */
struct file *file_create(void);
struct file *file_ref(struct file *file);
void file_unref(struct file *file);

/* Opens a new handle to the file (which holds its own reference). `modes`: FILE_SKIP_* notification modes, stored in
 * the file. NULL: handle table full or out of memory. Any thread. */
HANDLE file_open_handle(struct file *file, UCHAR modes);

/* The file behind a handle (low two bits ignored) with a reference taken, or NULL if the handle is stale or no file. */
struct file *file_from_handle(HANDLE handle);

/* Takes a request from the file's pool. Does not touch *ov. The request holds a reference on the file.
 * ND_INVALID_PARAMETER: ov NULL. ND_INVALID_HANDLE: ov->hEvent names no event. ND_INSUFFICIENT_RESOURCES. Any thread. */
NTSTATUS request_alloc(struct file *file, OVERLAPPED *ov, request_cancel_fn cancel, void *owner, struct request **out);

/* Gives back a request that was never started; *ov stays untouched. */
void request_discard(struct request *request);

/* Starts it: Internal = STATUS_PENDING, InternalHigh = 0, event reset, visible to CancelIoEx. From here on exactly one
 * request_complete() must follow, on success, failure, cancel or release alike. Cannot fail. Call it before the
 * operation becomes able to complete. */
void request_start(struct request *request);

/* Completes it exactly once, in the order of design.md 2 rule 14 (InternalHigh, Internal with release, event, packet,
 * waiters), and drops the operation's reference. Leaf locks only: may be called on the loop and with object locks held.
 * The caller must have unlinked `link` before, and calls this under the same hold of its lock: a cancel that takes the
 * lock and finds the request unlinked then knows that it has been delivered. Cannot fail. */
void request_complete(struct request *request, NTSTATUS status, ULONG_PTR bytes);

/* The same for an operation that is over before the call that started it returns, when the call itself will return the
 * status: a success then sends no packet on a file with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS (and one otherwise). */
void request_complete_returned(struct request *request, NTSTATUS status, ULONG_PTR bytes);

/* Additional references, for an owner that must wait for a completion that another thread is delivering. */
struct request *request_ref(struct request *request);
void request_unref(struct request *request);

/* Waits (short spin, then a futex on the request) until the completion that another thread has begun is delivered and
 * the OVERLAPPED will not be touched again. No object lock may be held. */
void request_wait_done(struct request *request);

/* Result of an overlapped call: Internal as status; STATUS_PENDING if unfinished and !wait. With wait it blocks in
 * wait_block(). *bytes (may be NULL) gets InternalHigh. Works for any hEvent, for NULL, for a structure that was never
 * started. Source: ndspi.md 2.4, design.md 2 rule 3. */
NTSTATUS overlapped_result(OVERLAPPED *ov, BOOL wait, ULONG_PTR *bytes);

#endif
