/* SPDX-License-Identifier: MIT */
#include "pairs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ndverbs.h"
#include "runner.h"

#define NOTED   1024 /* a power of two; far more than there are pairs */
#define PENDING 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What was told already. Names are literals of this program, but each of its files has its own copy. */
static struct {
    char method[48];
    HRESULT status;
} noted[NOTED];

/* Which method the OVERLAPPED, or the ND_RESULT, was given to last. */
static struct {
    const void *given;
    char method[48];
} pending[PENDING];

/* The two interfaces share most values and have names of their own for them. */
static const char *wv_name(const char *name)
{
    static const struct {
        const char *nd, *wv;
    } others[] = {
        { "ND_CANCELED", "WV_CANCELLED" },
        { "ND_DEVICE_NOT_READY", "WV_NOT_INITIALIZED" },
        { "ND_INVALID_DEVICE_REQUEST", "STATUS_INVALID_DEVICE_REQUEST" },
        { "ND_SHARING_VIOLATION", "STATUS_SHARING_VIOLATION" },
        { "ND_INVALID_DEVICE_STATE", "STATUS_INVALID_DEVICE_STATE" },
        { "ND_INVALID_BUFFER_SIZE", "STATUS_INVALID_BUFFER_SIZE" },
        { "ND_TOO_MANY_ADDRESSES", "STATUS_TOO_MANY_ADDRESSES" },
        { "ND_NETWORK_UNREACHABLE", "STATUS_NETWORK_UNREACHABLE" },
    };
    static char same[64];

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcmp(name, others[i].nd))
            return others[i].wv;
    if (strncmp(name, "ND_", 3))
        return name;
    snprintf(same, sizeof(same), "WV_%s", name + 3);
    return same;
}

static void tell_locked(const char *method, HRESULT status)
{
    static const char *const completions[] = {
        "WvWcSuccess",
        "WvWcLocalLengthError",
        "WvWcLocalOpError",
        "WvWcLocalProtectionError",
        "WvWcFlushed",
        "WvWcMwBindError",
        "WvWcRemoteAccessError",
        "WvWcRemoteOpError",
        "WvWcRnrRetryError",
        "WvWcTimeoutRetryError",
        "WvWcRemoteInvalidRequest",
        "WvWcBadResponse",
        "WvWcLocalAccessError",
        "WvWcError",
    };
    const char *text = ndverbs_status_text(status);
    char value[16];

    if (!strncmp(method, "Completion::", 12) && (ULONG)status < sizeof(completions) / sizeof(completions[0])) {
        runner_pair(method, completions[status]);
        return;
    }
    snprintf(value, sizeof(value), "0x%08x", (unsigned)status);
    if (strchr(text, ' '))
        text = value;
    runner_pair(method, !strncmp(method, "IWV", 3) || !strncmp(method, "INdv", 4) || !strncmp(method, "Wv", 2) ||
                                !strncmp(method, "Ibat", 4)
                            ? wv_name(text)
                            : text);
}

static void note_locked(const char *method, HRESULT status)
{
    unsigned at = (unsigned)status;

    for (const char *c = method; *c; c++)
        at = at * 31 + (unsigned char)*c;
    for (unsigned tries = 0; tries < NOTED; tries++) {
        at %= NOTED;
        if (!noted[at].method[0])
            break;
        if (noted[at].status == status && !strcmp(noted[at].method, method))
            return;
        at++;
    }
    at %= NOTED;
    snprintf(noted[at].method, sizeof(noted[at].method), "%s", method);
    noted[at].status = status;
    tell_locked(method, status);
}

static unsigned pending_slot(const void *given)
{
    unsigned at = (unsigned)((uintptr_t)given >> 3) % PENDING;

    for (unsigned tries = 0; tries < PENDING && pending[at].given && pending[at].given != given; tries++)
        at = (at + 1) % PENDING;
    return at;
}

static void given_locked(const void *given, const char *interface, const char *method)
{
    unsigned at = pending_slot(given);

    pending[at].given = given;
    snprintf(pending[at].method, sizeof(pending[at].method), "%s::%s", interface, method);
}

static void over_locked(const void *given, HRESULT status)
{
    unsigned at = pending_slot(given);

    if (pending[at].given == given)
        note_locked(pending[at].method, status);
}

void pair_note(const char *interface, const char *method, HRESULT status, const void *last, const void *first,
               const void *result)
{
    char name[48];

    if (!interface)
        return;
    snprintf(name, sizeof(name), "%s::%s", interface, method);
    pthread_mutex_lock(&lock);
    note_locked(name, status);
    if (!strcmp(method, "GetOverlappedResult")) {
        if (first && status != ND_PENDING)
            over_locked(first, status);
    } else if (last && (status == ND_PENDING || status == WV_IO_PENDING)) {
        given_locked(last, interface, method);
    } else if (result && status == ND_SUCCESS) {
        given_locked(result, "INDResult", method);
    }
    pthread_mutex_unlock(&lock);
}

HRESULT pair_function(const char *name, HRESULT status)
{
    pthread_mutex_lock(&lock);
    note_locked(name, status);
    pthread_mutex_unlock(&lock);
    return status;
}

void pair_internal(const OVERLAPPED *overlapped)
{
    pthread_mutex_lock(&lock);
    over_locked(overlapped, (HRESULT)overlapped->Internal);
    pthread_mutex_unlock(&lock);
}

void pair_result_v1(const ND_RESULT *result)
{
    pthread_mutex_lock(&lock);
    over_locked(result, result->Status);
    pthread_mutex_unlock(&lock);
}

void pair_result(const ND2_RESULT *result)
{
    static const char *const types[] = { "Result::Receive",    "Result::Send", "Result::Bind",
                                         "Result::Invalidate", "Result::Read", "Result::Write" };

    if ((unsigned)result->RequestType >= sizeof(types) / sizeof(types[0]))
        return;
    pthread_mutex_lock(&lock);
    note_locked(types[result->RequestType], result->Status);
    pthread_mutex_unlock(&lock);
}

void pair_completion(const WV_COMPLETION *completion)
{
    static const char *const sends[] = { "Completion::Send",     "Completion::Write",
                                         "Completion::Read",     "Completion::CompareExchange",
                                         "Completion::FetchAdd", "Completion::Bind" };
    const char *name = completion->Opcode & WvReceive ? "Completion::Receive" : NULL;

    if ((unsigned)completion->Opcode < sizeof(sends) / sizeof(sends[0]))
        name = sends[completion->Opcode];
    if (!name)
        return;
    pthread_mutex_lock(&lock);
    note_locked(name, (HRESULT)completion->Status);
    pthread_mutex_unlock(&lock);
}
