/* SPDX-License-Identifier: MIT */
/* Events, completion ports and waits beside what Linux has for the same: a futex, an eventfd, a mutex with a condition
 * variable. One thread: the price of the call; two threads: of handing over to another one that sleeps. No device. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <windows.h>

/* One flag in four ways: `set` raises it, `wait` sleeps until it is raised and lowers it. */
struct flag {
    const struct flag_ops *ops;
    HANDLE event, port;
    int fd;
    uint32_t word;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool raised;
};

struct flag_ops {
    const char *name;
    void (*set)(struct flag *flag);
    void (*wait)(struct flag *flag);
};

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "primitives: %s failed: %s\n", what, strerror(errno));
    exit(1);
}

static void event_set(struct flag *flag)
{
    SetEvent(flag->event);
}

static void event_wait(struct flag *flag)
{
    check(WaitForSingleObject(flag->event, INFINITE) == WAIT_OBJECT_0, "WaitForSingleObject");
}

static void port_set(struct flag *flag)
{
    check(PostQueuedCompletionStatus(flag->port, 1, 2, NULL), "PostQueuedCompletionStatus");
}

static void port_wait(struct flag *flag)
{
    OVERLAPPED *overlapped;
    ULONG_PTR key;
    DWORD bytes;

    check(GetQueuedCompletionStatus(flag->port, &bytes, &key, &overlapped, INFINITE), "GetQueuedCompletionStatus");
}

static void eventfd_set(struct flag *flag)
{
    uint64_t one = 1;

    check(write(flag->fd, &one, sizeof(one)) == sizeof(one), "write");
}

static void eventfd_wait(struct flag *flag)
{
    uint64_t value;

    check(read(flag->fd, &value, sizeof(value)) == sizeof(value), "read");
}

/* 0: lowered, 1: raised, 2: somebody sleeps. */
static void futex_set(struct flag *flag)
{
    if (__atomic_exchange_n(&flag->word, 1, __ATOMIC_SEQ_CST) == 2)
        syscall(SYS_futex, &flag->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void futex_wait(struct flag *flag)
{
    uint32_t lowered;

    for (;;) {
        if (__atomic_load_n(&flag->word, __ATOMIC_RELAXED) == 1) {
            __atomic_store_n(&flag->word, 0, __ATOMIC_SEQ_CST);
            return;
        }
        lowered = 0;
        if (__atomic_compare_exchange_n(&flag->word, &lowered, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
            lowered == 2)
            syscall(SYS_futex, &flag->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
}

static void condition_set(struct flag *flag)
{
    pthread_mutex_lock(&flag->mutex);
    flag->raised = true;
    pthread_cond_signal(&flag->condition);
    pthread_mutex_unlock(&flag->mutex);
}

static void condition_wait(struct flag *flag)
{
    pthread_mutex_lock(&flag->mutex);
    while (!flag->raised)
        pthread_cond_wait(&flag->condition, &flag->mutex);
    flag->raised = false;
    pthread_mutex_unlock(&flag->mutex);
}

static const struct flag_ops kinds[] = {
    { "event", event_set, event_wait },
    { "port", port_set, port_wait },
    { "futex", futex_set, futex_wait },
    { "eventfd", eventfd_set, eventfd_wait },
    { "condition", condition_set, condition_wait },
};

static void flag_init(struct flag *flag, const struct flag_ops *ops)
{
    memset(flag, 0, sizeof(*flag));
    flag->ops = ops;
    flag->event = CreateEvent(NULL, FALSE, FALSE, NULL);
    flag->port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    flag->fd = eventfd(0, EFD_CLOEXEC);
    check(flag->event && flag->port && flag->fd >= 0, "set-up");
    pthread_mutex_init(&flag->mutex, NULL);
    pthread_cond_init(&flag->condition, NULL);
}

static void flag_free(struct flag *flag)
{
    CloseHandle(flag->event);
    CloseHandle(flag->port);
    close(flag->fd);
    pthread_mutex_destroy(&flag->mutex);
    pthread_cond_destroy(&flag->condition);
}

static uint64_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static double alone(const struct flag_ops *ops, unsigned int n)
{
    struct flag flag;
    uint64_t start;

    flag_init(&flag, ops);
    start = now();
    for (unsigned int i = 0; i < n; i++) {
        ops->set(&flag);
        ops->wait(&flag);
    }
    start = now() - start;
    flag_free(&flag);
    return (double)start / n;
}

struct pair {
    struct flag there, back;
    unsigned int n;
};

static void *answer(void *arg)
{
    struct pair *pair = arg;

    for (unsigned int i = 0; i < pair->n; i++) {
        pair->there.ops->wait(&pair->there);
        pair->back.ops->set(&pair->back);
    }
    return NULL;
}

/* There and back. */
static double handed_over(const struct flag_ops *ops, unsigned int n)
{
    struct pair pair = { .n = n };
    pthread_t thread;
    uint64_t start;

    flag_init(&pair.there, ops);
    flag_init(&pair.back, ops);
    check(pthread_create(&thread, NULL, answer, &pair) == 0, "pthread_create");
    start = now();
    for (unsigned int i = 0; i < n; i++) {
        ops->set(&pair.there);
        ops->wait(&pair.back);
    }
    start = now() - start;
    pthread_join(thread, NULL);
    flag_free(&pair.there);
    flag_free(&pair.back);
    return (double)start / n;
}

/* primitives [N [KIND]]: N calls alone, N/100 round trips; with a kind, N calls of that alone and nothing else, for those who
 * count what they do. */
int main(int argc, char **argv)
{
    unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000000;
    const char *only = argc > 2 ? argv[2] : NULL;

    check(n >= 100, "a number of at least 100 as the first argument");
    printf("{");
    for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (only && strcmp(only, kinds[i].name) != 0)
            continue;
        if (only)
            printf(" \"%s\": { \"alone_ns\": %.1f }", kinds[i].name, alone(&kinds[i], n));
        else
            printf("%s\n  \"%s\": { \"alone_ns\": %.1f, \"round_trip_ns\": %.1f }", i ? "," : "", kinds[i].name,
                   alone(&kinds[i], n), handed_over(&kinds[i], n / 100));
    }
    printf("\n}\n");
    return 0;
}
