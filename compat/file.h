/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_FILE_H
#define NDVERBS_FILE_H

/* Inside of the overlapped file, for overlapped.c, iocp.c and the callback pool; everybody else: overlapped.h. */

#include "iocp.h"
#include "object.h"
#include "overlapped.h"

struct record;

struct file {
    struct object object; /* its signal is the event of requests that have none of their own (manual-reset) */
    struct port *port;    /* set once, released with the file; `key` is written before */
    ULONG_PTR key;
    uint8_t modes; /* FILE_SKIP_*; bits are only ever added */
    struct wordlock lock;
    /* under `lock` */
    struct list pending; /* records in the order of their start */
    uint64_t next_sequence;
    struct record *pool;
};

extern const struct object_ops file_ops;

/* Binds once. False: bound already. Takes a reference on the port. */
bool file_bind(struct file *file, struct port *port, ULONG_PTR key);

/* Frees the pool of a file that goes away. */
void records_free(struct record *pool);

#endif
