/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_EXAMPLES_PINGPONG_H
#define NDVERBS_EXAMPLES_PINGPONG_H

/* What a ping-pong does, apart from the interface it runs on. ndpingpong puts it on Network Direct, tests/bench/rawpingpong
 * on verbs and librdmacm; both speak the same protocol on the wire, so each can be the other's peer and a comparison
 * compares nothing but the interfaces. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pp_op {
    PP_SEND,
    PP_WRITE,
    PP_READ,
};

enum pp_wait {
    PP_POLL,
    PP_EVENT,
    PP_PORT, /* this and the next on Windows' interfaces only: on verbs they are PP_EVENT */
    PP_RESULT,
};

#define PP_MAX_SIZES 32
#define PP_MAX_DEPTH 256

struct pp_options {
    const char *program;
    bool server;
    bool keep;           /* server: serve one client after the other */
    const char *connect; /* client: the server's address */
    const char *bind;    /* local address; NULL: found */
    uint16_t port;
    enum pp_op op;
    enum pp_wait wait;
    uint32_t iterations, warmup;
    uint32_t depth; /* messages under way at a time */
    uint32_t inline_size;
    uint32_t sizes[PP_MAX_SIZES];
    unsigned int size_count;
    bool verify, json;
    bool v1; /* by way of Network Direct version 1 */
};

/* Reads the command line; prints usage or an error and exits if that is all there is to do. */
void pp_options_parse(struct pp_options *options, const char *program, bool has_port, int argc, char **argv);
extern uint32_t pp_spin; /* polls that find nothing before the processor is given away: either side's own */
const char *pp_op_name(enum pp_op op);
const char *pp_wait_name(enum pp_wait wait);

/* --- the session, as both sides agree on it at connection time --- */

/* Private data of the connection request: what the client wants, and where its memory is. Network byte order; a token
 * is the four bytes of a Network Direct remote token, which are the rkey in network byte order. */
struct pp_hello {
    uint32_t magic;
    uint8_t version, op, wait, flags;
    uint32_t depth, max_size, inline_size;
    uint32_t token;
    uint64_t address;
};

/* Private data of the reply. */
struct pp_welcome {
    uint32_t magic;
    uint8_t version, flags, reserved[2];
    uint32_t token;
    uint32_t gap; /* a 32-bit compiler leaves none */
    uint64_t address;
};

#define PP_FLAG_VERIFY 0x1
#define PP_FLAG_WINDOW 0x4 /* the sender's memory is named by a message (a version 1 descriptor), not here */
#define PP_FLAG_NOTIFY 0x2 /* an RDMA write needs a message behind it: its last byte may come first here */

struct pp_session {
    enum pp_op op;
    enum pp_wait wait;
    bool server, verify;
    bool notify; /* either side asked for it */
    bool window; /* the peer's memory comes by a message */
    uint32_t depth, max_size, inline_size;
    uint64_t remote_address;
    uint32_t remote_token;
    uint64_t verified; /* bytes compared on this side */
};

void pp_session_from_options(struct pp_session *session, const struct pp_options *options);
void pp_hello_fill(struct pp_hello *hello, const struct pp_session *session, bool notify, uint64_t address,
                   uint32_t token);
/* NULL, or why the peer cannot be talked to. */
const char *pp_hello_read(const void *data, size_t length, struct pp_session *session);
void pp_welcome_fill(struct pp_welcome *welcome, bool notify, uint64_t address, uint32_t token);
const char *pp_welcome_read(const void *data, size_t length, struct pp_session *session);

/* Queue lengths and memory that a session needs: two control messages beside the window. */
#define PP_QUEUE_DEPTH(session) (2 * (session)->depth + 2) /* a write and its message */
#define PP_CQ_DEPTH(session)    (2 * PP_QUEUE_DEPTH(session))
size_t pp_memory_size(const struct pp_session *session);

/* --- what a program gives --- */

struct pp_result {
    uintptr_t context;
    uint32_t bytes; /* of a receive */
};

struct pp_report;

struct pp_link {
    const struct pp_link_ops *ops;
    uint8_t *memory;
};

/* Offsets are into this side's memory, and into the peer's for `remote`. Each posts one signalled request, inline where
 * it is short enough, or ends the program with a message. */
struct pp_link_ops {
    void (*send)(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length);
    void (*receive)(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length);
    void (*write)(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote);
    void (*read)(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote);
    /* What has completed, without waiting; a failed request ends the program. */
    unsigned int (*results)(struct pp_link *link, struct pp_result *results, unsigned int n);
    /* Returns when there may be a result; returns at once when the session polls. */
    void (*wait)(struct pp_link *link);
    /* Lets another process have the processor; called after every pp_spin polls that found nothing. */
    void (*yield)(void);
};

/* Server, before it accepts: posts the receive that the client's first message needs. */
void pp_server_prepare(struct pp_link *link);

/* The whole session after the connection stands. Client: measures each size and reports it; server: until the client
 * says that was all. False: data did not verify. */
bool pp_client(struct pp_link *link, struct pp_session *session, const struct pp_options *options,
               struct pp_report *report);
bool pp_server(struct pp_link *link, struct pp_session *session);

/* --- results --- */

uint64_t pp_now(void); /* ns, monotonic */
uint64_t pp_cpu(void); /* ns, processor time of this process */

/* In ns: exact, from all samples (which are sorted). */
struct pp_latency {
    uint64_t p50, p99, max;
};
struct pp_latency pp_latency_from(uint64_t *samples, size_t n);

struct pp_report {
    const struct pp_options *options;
    const char *interface;
    const char *device, *local, *remote;
    unsigned int rows;
    bool terminal;
    uint64_t last_progress;
};
void pp_report_begin(struct pp_report *report);
void pp_report_progress(struct pp_report *report, uint32_t size, uint32_t done, uint32_t total, uint64_t now);
/* `samples` has one entry per iteration, in ns; `elapsed` and `cpu` (processor time) are of all of them. */
void pp_report_size(struct pp_report *report, uint32_t size, uint64_t *samples, uint32_t n, uint64_t elapsed,
                    uint64_t cpu);
void pp_report_end(struct pp_report *report, uint64_t verified);

#endif
