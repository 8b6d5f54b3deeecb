/* SPDX-License-Identifier: MIT */
#include "early.h"

#include <pthread.h>
#include <string.h>

#include "tests/unit/harness.h"

static struct early {
    const void *cq;
    enum early_kind kind;
    char bytes[128];
} waiting[256];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void early_put(const void *cq, enum early_kind kind, const void *result, size_t size)
{
    bool room;

    ok_uint(size, <=, sizeof(waiting[0].bytes));
    pthread_mutex_lock(&lock);
    room = count < sizeof(waiting) / sizeof(waiting[0]);
    if (room) {
        waiting[count].cq = cq;
        waiting[count].kind = kind;
        memcpy(waiting[count++].bytes, result, size);
    }
    pthread_mutex_unlock(&lock);
    ok_msg(room, "too many results that nobody has asked for");
}

bool early_take(const void *cq, enum early_kind kind, void *result, size_t size)
{
    size_t i = 0;
    bool found;

    pthread_mutex_lock(&lock);
    while (i < count && (waiting[i].cq != cq || (kind != EARLY_ANY && waiting[i].kind != kind)))
        i++;
    found = i < count;
    if (found) {
        memcpy(result, waiting[i].bytes, size);
        memmove(&waiting[i], &waiting[i + 1], (--count - i) * sizeof(waiting[0]));
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void early_none(void)
{
    size_t left;

    pthread_mutex_lock(&lock);
    left = count;
    pthread_mutex_unlock(&lock);
    ok_msg(left == 0, "%zu results came that nobody has asked for", left);
}
