/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"

/* --- data: every eight bytes depend on who sent them, in which iteration, and where they are --- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

static uint64_t key_of(bool server, uint32_t size, uint32_t iteration)
{
    return mix((uint64_t)size << 33 | (uint64_t)iteration << 1 | server);
}

static void fill(uint8_t *at, size_t length, uint64_t key)
{
    uint64_t word;

    for (size_t i = 0; i < length; i += sizeof(word)) {
        word = mix(key + i);
        memcpy(at + i, &word, length - i < sizeof(word) ? length - i : sizeof(word));
    }
}

/* Offset of the first byte that is not what `fill` with that key would have put at `base` + offset, or `length`. `base`
 * is a multiple of 8. */
static size_t differs(const uint8_t *at, size_t length, uint64_t key, size_t base)
{
    uint64_t word;

    for (size_t i = 0; i < length; i += sizeof(word)) {
        size_t n = length - i < sizeof(word) ? length - i : sizeof(word);

        word = mix(key + base + i);
        if (memcmp(at + i, &word, n) != 0) {
            while (at[i] == ((const uint8_t *)&word)[i % 8])
                i++;
            return i;
        }
    }
    return length;
}

/* --- memory: control messages, `depth` slots to send from and to receive into, and what Reads come from --- */

#define CONTROL_SEND    0
#define CONTROL_RECEIVE 64
#define SLOTS           128
#define READ_STEPS      509 /* Reads start at this many different places, 8 bytes apart */

static size_t stride(const struct pp_session *session)
{
    return session->max_size < 64 ? 64 : ((size_t)session->max_size + 63) & ~(size_t)63;
}

static size_t send_slot(const struct pp_session *session, uint32_t slot)
{
    return SLOTS + slot * stride(session);
}

static size_t receive_slot(const struct pp_session *session, uint32_t slot)
{
    return SLOTS + (session->depth + slot) * stride(session);
}

static size_t read_source(const struct pp_session *session)
{
    return SLOTS + 2 * (size_t)session->depth * stride(session);
}

size_t pp_memory_size(const struct pp_session *session)
{
    return read_source(session) + stride(session) + 8 * READ_STEPS;
}

/* --- control messages: they frame each size --- */

enum control_kind {
    START,  /* client: size, number of iterations, how writes are announced */
    READY,  /* server: receives are posted */
    REPORT, /* client: all iterations are done */
    DONE,   /* server: failed = data did not verify here */
    END,    /* client: that was the last size */
};

struct control {
    uint32_t kind, size, total, notify, failed;
};

enum context_kind {
    CONTROL_SENT = 1,
    CONTROL_RECEIVED,
    DATA_SENT,
    DATA_WRITTEN, /* a message follows that counts */
    DATA_RECEIVED,
    DATA_READ,
};
#define CONTEXT(kind, slot) ((uintptr_t)(kind) << 16 | (slot))

/* One size, on either side. */
struct run {
    struct pp_link *link;
    struct pp_session *session;
    struct pp_report *report; /* client */
    uint32_t size, total;
    bool notify;        /* writes are followed by an empty message */
    bool memory;        /* arrivals are seen in memory */
    uint32_t sent;      /* posted */
    uint32_t sent_done; /* completed */
    uint32_t arrived;
    uint32_t receives; /* posted, of data */
    bool control_sent, control_received;
    bool failed;
    unsigned int idle;
    uint32_t warmup;
    uint64_t started[PP_MAX_DEPTH];
    uint64_t first;    /* start of the first measured iteration */
    uint64_t *samples; /* client: one per measured iteration */
    uint64_t last;
    uint64_t cpu; /* processor time, from the first to the last */
};

/* The byte that announces a write: never 0, never what was there before. */
static uint8_t announcement(const struct run *run, uint32_t iteration)
{
    return (uint8_t)(1 + iteration / run->session->depth % 255);
}

static void post_receive(struct run *run)
{
    uint32_t slot = run->receives++ % run->session->depth;

    run->link->ops->receive(run->link, CONTEXT(DATA_RECEIVED, slot), receive_slot(run->session, slot),
                            run->session->op == PP_SEND ? run->size : 0);
}

static void post_control_receive(struct run *run)
{
    run->link->ops->receive(run->link, CONTEXT(CONTROL_RECEIVED, 0), CONTROL_RECEIVE, sizeof(struct control));
}

/* Notices the next message of the peer: compares it, takes the time, and makes room for another. */
static void arrive(struct run *run)
{
    const struct pp_session *session = run->session;
    uint32_t iteration = run->arrived, slot = iteration % session->depth;
    const uint8_t *data = run->link->memory + receive_slot(session, slot);
    size_t length = run->size - (run->memory ? 1 : 0), bad = length;

    if (session->verify) {
        if (session->op == PP_READ)
            bad = differs(data, length, key_of(true, run->size, 0), iteration % READ_STEPS * 8);
        else
            bad = differs(data, length, key_of(!session->server, run->size, iteration), 0);
        run->session->verified += run->size;
        if (bad != length && !run->failed) {
            run->failed = true;
            fprintf(stderr, "iteration %" PRIu32 " of size %" PRIu32 ": byte %zu is 0x%02x: data did not verify\n",
                    iteration, run->size, bad, data[bad]);
        }
    }
    if (run->samples && iteration >= run->warmup) {
        run->last = pp_now();
        run->samples[iteration - run->warmup] = (run->last - run->started[slot]) / (session->op == PP_READ ? 1 : 2);
        if (iteration == run->total - 1)
            run->cpu = pp_cpu() - run->cpu;
        pp_report_progress(run->report, run->size, iteration - run->warmup + 1, run->total - run->warmup, run->last);
    }
    run->arrived++;
    if (session->op == PP_READ || run->memory)
        return;
    if (run->receives < run->total) {
        post_receive(run);
        if (session->server && run->receives == run->total)
            post_control_receive(run);
    }
}

static void send_next(struct run *run)
{
    const struct pp_session *session = run->session;
    const struct pp_link_ops *ops = run->link->ops;
    uint32_t iteration = run->sent++, slot = iteration % session->depth;
    size_t offset = send_slot(session, slot);
    uint8_t *data = run->link->memory + offset;

    if (session->verify && session->op != PP_READ)
        fill(data, run->size, key_of(session->server, run->size, iteration));
    if (run->memory && session->op == PP_WRITE)
        data[run->size - 1] = announcement(run, iteration);
    if (run->samples) {
        if (iteration == run->warmup)
            run->cpu = pp_cpu();
        run->started[slot] = pp_now();
        if (iteration == run->warmup)
            run->first = run->started[slot];
    }
    switch (session->op) {
    case PP_SEND:
        ops->send(run->link, CONTEXT(DATA_SENT, slot), offset, run->size);
        break;
    case PP_WRITE:
        ops->write(run->link, CONTEXT(run->notify ? DATA_WRITTEN : DATA_SENT, slot), offset, run->size,
                   receive_slot(session, slot));
        if (run->notify)
            ops->send(run->link, CONTEXT(DATA_SENT, slot), offset, 0);
        break;
    case PP_READ:
        ops->read(run->link, CONTEXT(DATA_READ, slot), receive_slot(session, slot), run->size,
                  read_source(session) + iteration % READ_STEPS * 8);
        break;
    }
}

static bool written(const struct run *run)
{
    const struct pp_session *session = run->session;
    const uint8_t *data = run->link->memory + receive_slot(session, run->arrived % session->depth);

    return run->arrived < run->total &&
           __atomic_load_n(data + run->size - 1, __ATOMIC_ACQUIRE) == announcement(run, run->arrived);
}

/* Takes in what has happened; waits, or spins once, if nothing has. */
static void progress(struct run *run)
{
    struct pp_result results[16];
    unsigned int n;
    bool seen = false;

    while (run->memory && written(run)) {
        arrive(run);
        seen = true;
    }
    n = run->link->ops->results(run->link, results, 16);
    for (unsigned int i = 0; i < n; i++) {
        switch (results[i].context >> 16) {
        case CONTROL_SENT:
            run->control_sent = true;
            break;
        case CONTROL_RECEIVED:
            run->control_received = true;
            break;
        case DATA_SENT:
            run->sent_done++;
            break;
        case DATA_READ:
            run->sent_done++;
            arrive(run);
            break;
        case DATA_RECEIVED:
            if (results[i].bytes != (run->session->op == PP_SEND ? run->size : 0)) {
                fprintf(stderr, "a message of %" PRIu32 " bytes came as %" PRIu32 "\n", run->size, results[i].bytes);
                run->failed = true;
            }
            arrive(run);
            break;
        }
    }
    if (n || seen) {
        run->idle = 0;
    } else if (run->session->wait != PP_POLL) {
        run->link->ops->wait(run->link);
    } else if (++run->idle % pp_spin == 0) {
        /* The peer may need this very processor. */
        run->link->ops->yield();
    }
}

/* The window of messages: the client starts `depth` and answers each arrival, the server answers only. */
static void exchange(struct run *run)
{
    uint32_t depth = run->session->depth;

    while (run->arrived < run->total || run->sent_done < run->total) {
        while (run->sent < run->total && run->sent < run->sent_done + depth &&
               run->sent < run->arrived + (run->session->server ? 0 : depth))
            send_next(run);
        progress(run);
    }
}

static void control_send(struct run *run, enum control_kind kind)
{
    struct control control = {
        .kind = htonl(kind),
        .size = htonl(run->size),
        .total = htonl(run->total),
        .notify = htonl(run->notify),
        .failed = htonl(run->failed),
    };

    memcpy(run->link->memory + CONTROL_SEND, &control, sizeof(control));
    run->control_sent = false;
    run->link->ops->send(run->link, CONTEXT(CONTROL_SENT, 0), CONTROL_SEND, sizeof(control));
}

static struct control control_receive(struct run *run)
{
    struct control control;
    bool memory = run->memory;

    run->memory = false;
    while (!run->control_received)
        progress(run);
    run->memory = memory;
    run->control_received = false;
    memcpy(&control, run->link->memory + CONTROL_RECEIVE, sizeof(control));
    return (struct control){
        .kind = ntohl(control.kind),
        .size = ntohl(control.size),
        .total = ntohl(control.total),
        .notify = ntohl(control.notify),
        .failed = ntohl(control.failed),
    };
}

static void control_flush(struct run *run)
{
    bool memory = run->memory;

    run->memory = false;
    while (!run->control_sent)
        progress(run);
    run->memory = memory;
}

static void __attribute__((noreturn)) out_of_step(uint32_t kind)
{
    fprintf(stderr, "the peer is out of step: control message %" PRIu32 "\n", kind);
    exit(1);
}

static void size_begin(struct run *run)
{
    struct pp_session *session = run->session;
    uint8_t *memory = run->link->memory;
    size_t slots = session->depth * stride(session);

    run->memory = session->op == PP_WRITE && !run->notify;
    run->sent = run->sent_done = run->arrived = run->receives = 0;
    run->failed = false;
    memset(memory + receive_slot(session, 0), 0, slots);
    if (session->op == PP_READ && session->server)
        fill(memory + read_source(session), (size_t)run->size + 8 * READ_STEPS, key_of(true, run->size, 0));
    else if (!session->verify)
        fill(memory + send_slot(session, 0), slots, key_of(session->server, run->size, 0));
}

static void size_receives(struct run *run)
{
    if (run->session->op == PP_READ || run->memory)
        return;
    while (run->receives < run->total && run->receives < run->session->depth)
        post_receive(run);
}

bool pp_client(struct pp_link *link, struct pp_session *session, const struct pp_options *options,
               struct pp_report *report)
{
    struct run run = { .link = link, .session = session, .report = report, .warmup = options->warmup };
    struct control control;
    bool right = true;

    run.samples = calloc(options->iterations, sizeof(*run.samples));
    if (!run.samples) {
        fprintf(stderr, "out of memory for %" PRIu32 " samples\n", options->iterations);
        return false;
    }
    pp_report_begin(report);
    for (unsigned int i = 0; i < options->size_count; i++) {
        run.size = options->sizes[i];
        run.total = options->warmup + options->iterations;
        run.notify = session->notify || !run.size;
        size_begin(&run);
        post_control_receive(&run);
        control_send(&run, START);
        control = control_receive(&run);
        control_flush(&run);
        if (control.kind != READY)
            out_of_step(control.kind);
        size_receives(&run);
        if (session->op == PP_READ) {
            while (run.arrived < run.total) {
                while (run.sent < run.total && run.sent < run.arrived + session->depth)
                    send_next(&run);
                progress(&run);
            }
        } else {
            exchange(&run);
        }
        post_control_receive(&run);
        control_send(&run, REPORT);
        control = control_receive(&run);
        control_flush(&run);
        if (control.kind != DONE)
            out_of_step(control.kind);
        if (control.failed)
            fprintf(stderr, "size %" PRIu32 ": data did not verify at the server\n", run.size);
        right = right && !run.failed && !control.failed;
        pp_report_size(report, run.size, run.samples, options->iterations, run.last - run.first, run.cpu);
    }
    run.memory = false;
    control_send(&run, END);
    control_flush(&run);
    pp_report_end(report, session->verified);
    free(run.samples);
    return right;
}

void pp_server_prepare(struct pp_link *link)
{
    struct run run = { .link = link };

    post_control_receive(&run);
}

bool pp_server(struct pp_link *link, struct pp_session *session)
{
    struct run run = { .link = link, .session = session };
    struct control control;
    bool right = true;

    for (;;) {
        run.memory = false;
        control = control_receive(&run);
        if (control.kind == END)
            return right;
        if (control.kind != START || control.size > session->max_size)
            out_of_step(control.kind);
        run.size = control.size;
        run.total = control.total;
        run.notify = control.notify != 0;
        size_begin(&run);
        size_receives(&run);
        if (run.receives == run.total || run.memory || session->op == PP_READ)
            post_control_receive(&run);
        control_send(&run, READY);
        control_flush(&run);
        if (session->op != PP_READ)
            exchange(&run);
        control = control_receive(&run);
        if (control.kind != REPORT)
            out_of_step(control.kind);
        right = right && !run.failed;
        post_control_receive(&run);
        control_send(&run, DONE);
        control_flush(&run);
    }
}
