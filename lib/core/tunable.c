/* SPDX-License-Identifier: MIT */
#include "tunable.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* name, default, smallest, largest. The reasons for the defaults: rdma-mapping.md 1 and 14 (T-R), design.md 5. A
 * retry_count of 7 would mean "for ever" on rxe. */
#define NUMBERS(X)                                                       \
    X(retry_count, RETRY_COUNT, 6, 0, 6)                                 \
    X(rnr_retry, RNR_RETRY, 6, 0, 7)                                     \
    X(min_rnr_timer, MIN_RNR_TIMER, 20, 0, 31)                           \
    X(min_rnr_timer_srq, MIN_RNR_TIMER_SRQ, 12, 0, 31)                   \
    X(ack_timeout, ACK_TIMEOUT, 18, 0, 31)                               \
    X(ack_timeout_srq, ACK_TIMEOUT_SRQ, 20, 0, 31)                       \
    X(connect_timeout_ms, CONNECT_TIMEOUT_MS, 0, 0, 86400000)            \
    X(resolve_timeout_ms, RESOLVE_TIMEOUT_MS, 5000, 1, 86400000)         \
    X(disconnect_timeout_ms, DISCONNECT_TIMEOUT_MS, 100000, 1, 86400000) \
    X(listen_queue_max, LISTEN_QUEUE_MAX, 1024, 1, 1048576)              \
    X(cq_safety_poll_ms, CQ_SAFETY_POLL_MS, 0, 0, 86400000)              \
    X(spin_us, SPIN_US, 0, 0, 1000000)                                   \
    X(guard_ms, GUARD_MS, 2, 1, 10000)                                   \
    X(v1_inline_size, V1_INLINE_SIZE, 160, 0, 1024)                      \
    X(trim_private_data, TRIM_PRIVATE_DATA, 0, 0, 1)

static struct tunables values;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t read_number(const char *name, uint32_t fallback, uint32_t low, uint32_t high)
{
    const char *text = getenv(name);
    unsigned long long number;
    char *end;

    if (!text || !*text)
        return fallback;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || number < low || number > high) {
        log_warn("%s=%.32s is no number from %u to %u; %u is used", name, text, low, high, fallback);
        return fallback;
    }
    return (uint32_t)number;
}

/* Copied: an application may change its environment later. */
static const char *read_text(const char *name, char *copy, size_t size)
{
    const char *text = getenv(name);

    if (!text || !*text)
        return NULL;
    if (strlen(text) >= size)
        log_warn("%s is longer than %zu characters and is cut off", name, size - 1);
    snprintf(copy, size, "%s", text);
    return copy;
}

static void read_all(void)
{
    static char only_device[1024], only_address[1024];

#define READ_NUMBER(field, name, fallback, low, high) values.field = read_number("NDVERBS_" #name, fallback, low, high);
    NUMBERS(READ_NUMBER)
#undef READ_NUMBER
    values.only_device = read_text("NDVERBS_ONLY_DEVICE", only_device, sizeof(only_device));
    values.only_address = read_text("NDVERBS_ONLY_ADDRESS", only_address, sizeof(only_address));
}

const struct tunables *tunables(void)
{
    pthread_once(&once, read_all);
    return &values;
}

void tunables_reload(void)
{
    tunables();
    read_all();
}
