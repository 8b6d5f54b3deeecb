/* SPDX-License-Identifier: MIT */
/* What the ping-pong programs share, on a link of plain memory between two threads: that every kind of session comes to an
 * end with the right counts, that wrong data is noticed on the side that gets it, that the figures are exact. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>

#include "examples/pingpong.h"
#include "tests/unit/harness.h"

#define QUEUE 1024

struct entry {
    uintptr_t context;
    size_t offset;
    uint32_t length;
};

struct queue {
    struct entry entries[QUEUE];
    unsigned int head, tail;
};

struct side {
    struct pp_link link;
    struct pp_session session;
    struct side *peer;
    struct queue receives, sends; /* sends: waiting for a receive of the peer */
    struct pp_result results[QUEUE];
    unsigned int results_head, results_tail;
    unsigned int corrupt; /* the n-th transfer of data towards this side arrives with a wrong byte; 0: none */
    unsigned int data_transfers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static struct side *side_from(struct pp_link *link)
{
    return (struct side *)link;
}

static void push(struct queue *queue, uintptr_t context, size_t offset, uint32_t length)
{
    ok(queue->tail - queue->head < QUEUE);
    queue->entries[queue->tail++ % QUEUE] = (struct entry){ context, offset, length };
}

static void result(struct side *side, uintptr_t context, uint32_t bytes)
{
    ok(side->results_tail - side->results_head < QUEUE);
    side->results[side->results_tail++ % QUEUE] = (struct pp_result){ context, bytes };
    pthread_cond_broadcast(&changed);
}

/* Lengths of 20 are control messages: the sizes of the tests are others. The last byte is put last. */
static void move(struct side *to, size_t offset, const uint8_t *from, uint32_t length)
{
    uint8_t *at = to->link.memory + offset;
    bool wrong = length && length != 20 && ++to->data_transfers == to->corrupt;

    if (!length)
        return;
    memcpy(at, from, length - 1);
    if (wrong)
        at[length / 2] ^= 0x10;
    if (!wrong || length / 2 != length - 1)
        __atomic_store_n(at + length - 1, from[length - 1], __ATOMIC_RELEASE);
    else
        at[length - 1] = from[length - 1] ^ 0x10;
}

static void match(struct side *from)
{
    struct side *to = from->peer;

    while (from->sends.head != from->sends.tail && to->receives.head != to->receives.tail) {
        struct entry *send = &from->sends.entries[from->sends.head++ % QUEUE];
        struct entry *receive = &to->receives.entries[to->receives.head++ % QUEUE];

        ok(send->length <= receive->length);
        move(to, receive->offset, from->link.memory + send->offset, send->length);
        result(to, receive->context, send->length);
        result(from, send->context, 0);
    }
}

static void memory_send(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    pthread_mutex_lock(&lock);
    push(&side_from(link)->sends, context, offset, length);
    match(side_from(link));
    pthread_mutex_unlock(&lock);
}

static void memory_receive(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length)
{
    pthread_mutex_lock(&lock);
    push(&side_from(link)->receives, context, offset, length);
    match(side_from(link)->peer);
    pthread_mutex_unlock(&lock);
}

static void memory_write(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct side *side = side_from(link);

    pthread_mutex_lock(&lock);
    ok(remote + length <= pp_memory_size(&side->session));
    move(side->peer, remote, link->memory + offset, length);
    result(side, context, 0);
    pthread_mutex_unlock(&lock);
}

static void memory_read(struct pp_link *link, uintptr_t context, size_t offset, uint32_t length, size_t remote)
{
    struct side *side = side_from(link);

    pthread_mutex_lock(&lock);
    ok(remote + length <= pp_memory_size(&side->session));
    move(side, offset, side->peer->link.memory + remote, length);
    result(side, context, 0);
    pthread_mutex_unlock(&lock);
}

static unsigned int memory_results(struct pp_link *link, struct pp_result *results, unsigned int n)
{
    struct side *side = side_from(link);
    unsigned int got = 0;

    pthread_mutex_lock(&lock);
    while (got < n && side->results_head != side->results_tail)
        results[got++] = side->results[side->results_head++ % QUEUE];
    pthread_mutex_unlock(&lock);
    return got;
}

static void memory_wait(struct pp_link *link)
{
    struct side *side = side_from(link);

    pthread_mutex_lock(&lock);
    while (side->results_head == side->results_tail)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void memory_yield(void)
{
    sched_yield();
}

static const struct pp_link_ops memory_ops = {
    .send = memory_send,
    .receive = memory_receive,
    .write = memory_write,
    .read = memory_read,
    .results = memory_results,
    .wait = memory_wait,
    .yield = memory_yield,
};

static struct side client, server;
static bool server_right;

static void *serve(void *unused)
{
    (void)unused;
    server_right = pp_server(&server.link, &server.session);
    return NULL;
}

/* Runs one session; the client's verdict. Its report goes to *text. */
static bool play(const struct pp_options *options, char *text, size_t size)
{
    struct pp_report report = { .options = options, .interface = "memory", .device = "d", .local = "a", .remote = "b" };
    struct pp_hello hello;
    struct pp_welcome welcome;
    pthread_t thread;
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    size_t n;
    bool right;

    ok(file && saved >= 0);
    pp_session_from_options(&client.session, options);
    pp_hello_fill(&hello, &client.session, client.session.notify, 0x1234, 0x5678);
    ok_ptr(pp_hello_read(&hello, sizeof(hello), &server.session), ==, NULL);
    ok_uint(server.session.remote_address, ==, 0x1234);
    ok_uint(server.session.remote_token, ==, 0x5678);
    pp_welcome_fill(&welcome, false, 0x9abc, 0xdef0);
    ok_ptr(pp_welcome_read(&welcome, sizeof(welcome), &client.session), ==, NULL);
    client.link.ops = server.link.ops = &memory_ops;
    client.peer = &server;
    server.peer = &client;
    client.link.memory = calloc(1, pp_memory_size(&client.session));
    server.link.memory = calloc(1, pp_memory_size(&server.session));
    ok_uint(pp_memory_size(&client.session), ==, pp_memory_size(&server.session));
    pp_server_prepare(&server.link);

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    pthread_create(&thread, NULL, serve, NULL);
    right = pp_client(&client.link, &client.session, options, &report);
    pthread_join(thread, NULL);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    n = fread(text, 1, size - 1, file);
    text[n] = 0;
    fclose(file);
    ok_uint(client.results_head, ==, client.results_tail);
    ok_uint(server.results_head, ==, server.results_tail);
    free(client.link.memory);
    free(server.link.memory);
    return right;
}

static const struct pp_options base = {
    .iterations = 40,
    .warmup = 3,
    .sizes = { 0, 1, 7, 8, 9, 63, 64, 65, 1000 },
    .size_count = 9,
    .verify = true,
    .depth = 1,
};

static void play_all(enum pp_op op)
{
    static const uint32_t depths[] = { 1, 2, 5, 43, 100 };
    char text[4096];

    for (int wait = PP_POLL; wait <= PP_RESULT; wait++) {
        for (unsigned int i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
            struct pp_options options = base;
            uint64_t bytes = (uint64_t)(0 + 1 + 7 + 8 + 9 + 63 + 64 + 65 + 1000) * (40 + 3);

            options.op = op;
            options.wait = (enum pp_wait)wait;
            options.depth = depths[i];
            memset(&client, 0, sizeof(client));
            memset(&server, 0, sizeof(server));
            ok(play(&options, text, sizeof(text)));
            ok(server_right);
            ok_uint(client.session.verified, ==, bytes);
            ok_uint(server.session.verified, ==, op == PP_READ ? 0 : bytes);
        }
    }
}

TEST(send__every_wait_style_and_depth)
{
    play_all(PP_SEND);
}

TEST(write__every_wait_style_and_depth)
{
    play_all(PP_WRITE);
}

TEST(read__every_wait_style_and_depth)
{
    play_all(PP_READ);
}

/* One wrong bit, in one transfer, towards one side. */
static void corrupt(enum pp_op op, enum pp_wait wait, unsigned int towards_client, unsigned int towards_server)
{
    struct pp_options options = base;
    char text[4096];

    options.op = op;
    options.wait = wait;
    options.depth = 3;
    options.sizes[0] = 100;
    options.size_count = 1;
    memset(&client, 0, sizeof(client));
    memset(&server, 0, sizeof(server));
    client.corrupt = towards_client;
    server.corrupt = towards_server;
    ok(!play(&options, text, sizeof(text)));
    ok_int(server_right, ==, !towards_server);
}

TEST(verify__wrong_bit_towards_the_client)
{
    corrupt(PP_SEND, PP_POLL, 1, 0);
    corrupt(PP_SEND, PP_EVENT, 43, 0);
    corrupt(PP_WRITE, PP_POLL, 20, 0);
    corrupt(PP_WRITE, PP_EVENT, 20, 0);
    corrupt(PP_READ, PP_POLL, 20, 0);
}

TEST(verify__wrong_bit_towards_the_server)
{
    corrupt(PP_SEND, PP_POLL, 0, 1);
    corrupt(PP_SEND, PP_EVENT, 0, 43);
    corrupt(PP_WRITE, PP_POLL, 0, 20);
    corrupt(PP_WRITE, PP_EVENT, 0, 20);
}

TEST(verify__off_sees_nothing)
{
    struct pp_options options = base;
    char text[4096];

    options.verify = false;
    memset(&client, 0, sizeof(client));
    memset(&server, 0, sizeof(server));
    client.corrupt = 5;
    ok(play(&options, text, sizeof(text)));
    ok_uint(client.session.verified, ==, 0);
}

TEST(report__json_has_a_row_per_size)
{
    struct pp_options options = base;
    char text[4096];
    const char *at = text;
    unsigned int rows = 0;

    options.json = true;
    memset(&client, 0, sizeof(client));
    memset(&server, 0, sizeof(server));
    ok(play(&options, text, sizeof(text)));
    while ((at = strstr(at, "\"p99_us\"")) != NULL) {
        rows++;
        at++;
    }
    ok_uint(rows, ==, options.size_count);
    ok(strstr(text, "\"iterations\": 40,") != NULL);
    ok(strstr(text, "\"verified_bytes\": 52331") != NULL); /* 1217 bytes x 43 */
}

TEST(latency__percentiles_are_samples)
{
    uint64_t one[] = { 7 }, hundred[100], many[1000];
    struct pp_latency latency = pp_latency_from(one, 1);

    ok_uint(latency.p50, ==, 7);
    ok_uint(latency.p99, ==, 7);
    ok_uint(latency.max, ==, 7);
    for (unsigned int i = 0; i < 100; i++)
        hundred[i] = 100 - i;
    latency = pp_latency_from(hundred, 100);
    ok_uint(latency.p50, ==, 50);
    ok_uint(latency.p99, ==, 99);
    ok_uint(latency.max, ==, 100);
    for (unsigned int i = 0; i < 1000; i++)
        many[i] = i * 7919 % 1000;
    latency = pp_latency_from(many, 1000);
    ok_uint(latency.p50, ==, 499);
    ok_uint(latency.p99, ==, 989);
    ok_uint(latency.max, ==, 999);
}

TEST(hello__foreign_or_broken)
{
    struct pp_session session, read;
    struct pp_hello hello, bad;
    struct pp_welcome welcome;
    struct pp_options options = base;

    pp_session_from_options(&session, &options);
    pp_hello_fill(&hello, &session, false, 0, 0);
    ok_ptr(pp_hello_read(&hello, sizeof(hello), &read), ==, NULL);
    ok(pp_hello_read(&hello, sizeof(hello) - 1, &read) != NULL);
    bad = hello;
    bad.magic++;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.version++;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.op = PP_READ + 1;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.wait = PP_RESULT + 1;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.depth = 0;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.depth = 0xffffffff;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    bad = hello;
    bad.max_size = 0xffffffff;
    ok(pp_hello_read(&bad, sizeof(bad), &read) != NULL);
    ok(sizeof(hello) <= 56); /* what a connection request carries */

    pp_welcome_fill(&welcome, true, 0, 0);
    ok(!session.notify);
    ok_ptr(pp_welcome_read(&welcome, sizeof(welcome), &session), ==, NULL);
    ok(session.notify);
    ok(pp_welcome_read(&welcome, sizeof(welcome) - 1, &session) != NULL);
    welcome.magic = hello.magic + 1;
    ok(pp_welcome_read(&welcome, sizeof(welcome), &session) != NULL);
}

HARNESS_MAIN
