/* SPDX-License-Identifier: MIT */
#include "connections.h"

#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum mode {
    CYCLES,  /* connect and disconnect, one after the other */
    MANY,    /* that many at once: how time and memory grow, and what an idle process does */
    THREADS, /* a ping-pong in which several threads wait for the completions */
};

static struct {
    enum mode mode;
    const char *server; /* NULL: this is the server */
    const char *address;
    uint16_t port;
    unsigned int n, warmup, threads, idle;
} options = { .port = 20990, .n = 100, .warmup = 10, .threads = 4, .idle = 10 };

static void __attribute__((noreturn)) usage(FILE *to)
{
    fprintf(to,
            "usage: %s --server ADDR | --client ADDR  MODE [-p PORT] [-n N]\n"
            "  --cycles     connect and disconnect N times, one after the other (and --warm-up more before)\n"
            "  --many       N connections at once; then --idle S seconds with every completion queue armed\n"
            "  --threads T  a ping-pong of N messages, T threads wait for completions\n"
            "A server serves any number of clients of its mode, until it is ended.\n",
            side_program);
    exit(to == stdout ? 0 : 2);
}

static void options_parse(int argc, char **argv)
{
    static const struct option names[] = {
        { "server", required_argument, NULL, 's' },
        { "client", required_argument, NULL, 'c' },
        { "cycles", no_argument, NULL, 'C' },
        { "many", no_argument, NULL, 'M' },
        { "threads", required_argument, NULL, 'T' },
        { "warm-up", required_argument, NULL, 'w' },
        { "idle", required_argument, NULL, 'i' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    bool client = false;

    while ((option = getopt_long(argc, argv, "s:c:p:n:w:h", names, NULL)) != -1) {
        switch (option) {
        case 's':
        case 'c':
            options.address = optarg;
            client = option == 'c';
            break;
        case 'p':
            options.port = (uint16_t)atoi(optarg);
            break;
        case 'n':
            options.n = (unsigned int)atoi(optarg);
            break;
        case 'w':
            options.warmup = (unsigned int)atoi(optarg);
            break;
        case 'C':
            options.mode = CYCLES;
            break;
        case 'M':
            options.mode = MANY;
            break;
        case 'T':
            options.mode = THREADS;
            options.threads = (unsigned int)atoi(optarg);
            break;
        case 'i':
            options.idle = (unsigned int)atoi(optarg);
            break;
        case 'h':
            usage(stdout);
        default:
            usage(stderr);
        }
    }
    if (!options.address || optind < argc || !options.n || !options.threads || options.threads > 64)
        usage(stderr);
    options.server = client ? options.address : NULL;
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double median_us(uint64_t *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), compare);
    return (double)samples[n / 2] / 1000;
}

static uint64_t *samples_for(size_t n)
{
    uint64_t *samples = calloc(n, sizeof(*samples));

    if (!samples) {
        fprintf(stderr, "%s: no memory for %zu samples\n", side_program, n);
        exit(1);
    }
    return samples;
}

/* --- one after the other --- */

static void cycles_client(void)
{
    uint64_t *connects = samples_for(options.n), *ends = samples_for(options.n), *all = samples_for(options.n);
    struct conn *conn = conn_new();

    for (unsigned int i = 0; i < options.warmup + options.n; i++) {
        uint64_t start = now(), connected, ended, released;

        conn_make(conn);
        conn_connect(conn);
        connected = now();
        conn_disconnect(conn);
        ended = now();
        conn_drop(conn);
        released = now();
        if (i < options.warmup)
            continue;
        connects[i - options.warmup] = connected - start;
        ends[i - options.warmup] = ended - connected;
        all[i - options.warmup] = released - start;
    }
    printf("{ \"interface\": \"%s\", \"cycles\": %u, \"connect_us\": %.1f, \"disconnect_us\": %.1f, \"cycle_us\": %.1f "
           "}\n",
           side_interface, options.n, median_us(connects, options.n), median_us(ends, options.n),
           median_us(all, options.n));
    free(connects);
    free(ends);
    free(all);
}

static void __attribute__((noreturn)) cycles_server(void)
{
    struct conn *conn = conn_new();

    for (;;) {
        conn_accept(conn);
        conn_ended(conn);
        conn_drop(conn);
    }
}

/* --- many at once --- */

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Voluntary and involuntary context switches so far of all threads but the caller's. */
static unsigned long switches_of_others(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned long sum = 0, value;
    struct dirent *entry;

    while (tasks && (entry = readdir(tasks))) {
        char path[300], line[128];
        FILE *file;

        if (atoi(entry->d_name) == 0 || atoi(entry->d_name) == gettid())
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        while (file && fgets(line, sizeof(line), file)) {
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &value) == 1 ||
                sscanf(line, "nonvoluntary_ctxt_switches: %lu", &value) == 1)
                sum += value;
        }
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

/* What grew between two numbers of connections, for each connection. */
static void many_client(void)
{
    struct conn **conns = (struct conn **)samples_for(options.n);
    uint64_t *connects = samples_for(options.n), sum = 0;
    size_t empty, queues, notifies;
    unsigned long before, after;
    unsigned int from = 0, step = options.n < 10 ? 1 : options.n / 10;

    /* The first of everything makes what all share. */
    conns[0] = conn_new();
    conn_make(conns[0]);
    conn_connect(conns[0]);
    empty = allocated();
    for (unsigned int i = 1; i < options.n; i++)
        conns[i] = conn_new();
    queues = allocated();
    printf("{ \"interface\": \"%s\", \"connections\": %u, \"cq_bytes\": %.0f,\n  \"growth\": [", side_interface,
           options.n, options.n > 1 ? (double)(queues - empty) / (options.n - 1) : 0);
    for (unsigned int i = 1; i < options.n; i++) {
        uint64_t start = now();

        conn_make(conns[i]);
        conn_connect(conns[i]);
        connects[i] = now() - start;
        sum += connects[i];
        if ((i + 1) % step == 0 || i + 1 == options.n) {
            unsigned int n = i - from;

            printf("%s\n    { \"connections\": %u, \"connect_us\": %.1f, \"bytes\": %.0f }", from ? "," : "", i + 1,
                   median_us(connects + from + 1, n), (double)(allocated() - queues) / i);
            fflush(stdout);
            from = i;
        }
    }
    notifies = allocated();
    printf("\n  ],\n  \"connection_bytes\": %.0f, \"connect_s\": %.3f,\n",
           options.n > 1 ? (double)(notifies - queues) / (options.n - 1) : 0, (double)sum / 1e9);
    for (unsigned int i = 0; i < options.n; i++)
        conn_arm(conns[i]);
    printf("  \"armed_bytes\": %.0f,\n", (double)(allocated() - notifies) / options.n);
    fflush(stdout);
    sleep(1); /* what connecting has started comes to rest */
    before = switches_of_others();
    sleep(options.idle);
    after = switches_of_others();
    printf("  \"idle_s\": %u, \"idle_switches\": %lu }\n", options.idle, after - before);
    fflush(stdout);
    /* The kernel takes it all apart. */
    _exit(0);
}

static void __attribute__((noreturn)) accept_for_ever(void)
{
    for (;;)
        conn_accept(conn_new());
}

/* --- several threads wait --- */

static unsigned int arrived; /* messages, atomic */
static uint64_t *round_trips, last_arrival;

/* arg: a connection to look at before the first wait, or NULL. */
static void *pingpong_thread(void *arg)
{
    struct conn *first = arg;
    bool client = options.server != NULL;
    unsigned int taken, total = options.warmup + options.n;

    for (;;) {
        struct conn *conn = first ? first : side_wait();

        first = NULL;
        taken = conn_take(conn);
        /* One message is under way at a time, so this is one thread at a time. */
        for (; taken; taken--) {
            uint64_t time = now();
            unsigned int i = __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);

            if (client && i >= options.warmup)
                round_trips[i - options.warmup] = time - last_arrival;
            last_arrival = time;
            if (client && i + 1 == total) {
                printf("{ \"interface\": \"%s\", \"threads\": %u, \"messages\": %u, \"round_trip_us\": %.2f }\n",
                       side_interface, options.threads, options.n, median_us(round_trips, options.n));
                fflush(stdout);
                _exit(0); /* the other threads sleep */
            }
            conn_receive(conn);
            conn_send(conn);
        }
    }
    return arg;
}

static void __attribute__((noreturn)) threads_run(void)
{
    struct conn *conn = conn_new();
    bool client = options.server != NULL;
    pthread_t thread;

    if (client) {
        round_trips = samples_for(options.n);
        conn_make(conn);
        conn_receive(conn);
        conn_connect(conn);
    } else {
        conn_accept(conn);
        conn_receive(conn); /* a message that comes sooner is sent again */
    }
    for (unsigned int i = 1; i < options.threads; i++) {
        if (pthread_create(&thread, NULL, pingpong_thread, NULL) != 0)
            exit(1);
    }
    if (client) {
        last_arrival = now();
        conn_send(conn);
    }
    /* What came before anything was armed has no event. */
    pingpong_thread(conn);
    exit(1);
}

int main(int argc, char **argv)
{
    options_parse(argc, argv);
    side_open(options.address, options.port, !options.server);
    if (!options.server) {
        printf("ready\n");
        fflush(stdout);
    }
    if (options.mode == THREADS)
        threads_run();
    else if (!options.server && options.mode == CYCLES)
        cycles_server();
    else if (!options.server)
        accept_for_ever();
    else if (options.mode == CYCLES)
        cycles_client();
    else
        many_client();
    return 0;
}
