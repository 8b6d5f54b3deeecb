/* SPDX-License-Identifier: MIT */

/* The frame of every faked call: lock, hooks, failures, log; violations. */

#include "fake_internal.h"

#include <stdarg.h>
#include <stdlib.h>

#define LOG_CAPACITY 16384u

struct failure {
    struct list link;
    enum fake_fn fn;
    unsigned nth; /* 0: always */
    int errnum;
};

struct hook {
    struct list link;
    enum fake_fn fn;
    bool after;
    bool every;
    fake_hook run;
    void *arg;
};

bool (*fake_on_loop)(void);

static struct list failures = { &failures, &failures };
static struct list hooks = { &hooks, &hooks };
static pthread_mutex_t lock;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned counts[FAKE_CALL_COUNT];
static bool blocking[FAKE_CALL_COUNT];
static struct fake_call **log_calls;
static size_t log_length;
static uint64_t last_seq;
static char *violations;
static unsigned violation_count;

#define CALL_NAME(name) #name,
static const char *const names[] = { FAKE_CALLS(CALL_NAME) };

static void set_blocking(void)
{
    memset(blocking, 0, sizeof(blocking));
    blocking[FAKE_rdma_destroy_id] = true;
    blocking[FAKE_rdma_migrate_id] = true;
    blocking[FAKE_ibv_reg_mr] = true;
    blocking[FAKE_ibv_dereg_mr] = true;
    blocking[FAKE_ibv_close_device] = true;
}

static void init(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
    set_blocking();
    fake_fds_mark();
    fake_devices_init();
    fake_net_reset();
}

void fake_lock(void)
{
    pthread_once(&once, init);
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_wait(void)
{
    pthread_cond_wait(&changed, &lock);
}

void fake_wake(void)
{
    pthread_cond_broadcast(&changed);
}

uint64_t fake_seq(void)
{
    return last_seq;
}

int fake_return(int err)
{
    if (!err)
        return 0;
    errno = err;
    return -1;
}

const char *fake_name(enum fake_fn fn)
{
    return fn < FAKE_CALL_COUNT ? names[fn] : "?";
}

/* ---- hooks and failures ---- */

static struct hook *take_hook(enum fake_fn fn, bool after, uint64_t *mark)
{
    list_for_each (node, &hooks) {
        struct hook *hook = list_entry(node, struct hook, link);

        if (hook->fn != fn || hook->after != after)
            continue;
        if (!hook->every) {
            list_del(&hook->link);
            return hook;
        }
        if (!*mark) {
            *mark = 1;
            return hook;
        }
    }
    return NULL;
}

/* Called with the lock held, which it drops around each hook. */
static void run_hooks(struct fake_call *call, bool after)
{
    struct hook *hook;
    uint64_t every_done = 0;

    while ((hook = take_hook(call->fn, after, &every_done)) != NULL) {
        fake_hook run = hook->run;
        void *arg = hook->arg;

        if (!hook->every)
            fake_free(hook);
        fake_unlock();
        run(call, arg);
        fake_lock();
    }
}

static void add_hook(enum fake_fn fn, bool after, bool every, fake_hook run, void *arg)
{
    struct hook *hook = (struct hook *)fake_malloc(sizeof(*hook));

    hook->fn = fn;
    hook->after = after;
    hook->every = every;
    hook->run = run;
    hook->arg = arg;
    fake_lock();
    list_for_each_safe (node, &hooks) {
        struct hook *old = list_entry(node, struct hook, link);

        if (every && old->every && old->fn == fn) {
            list_del(node);
            fake_free(old);
        }
    }
    list_add_tail(&hooks, &hook->link);
    fake_unlock();
}

void fake_on(enum fake_fn fn, fake_hook hook, void *arg)
{
    add_hook(fn, false, false, hook, arg);
}

void fake_after(enum fake_fn fn, fake_hook hook, void *arg)
{
    add_hook(fn, true, false, hook, arg);
}

void fake_on_every(enum fake_fn fn, fake_hook hook, void *arg)
{
    add_hook(fn, false, true, hook, arg);
}

static void add_failure(enum fake_fn fn, unsigned nth, int errnum)
{
    struct failure *failure = (struct failure *)fake_malloc(sizeof(*failure));

    failure->fn = fn;
    failure->nth = nth;
    failure->errnum = errnum;
    fake_lock();
    list_add_tail(&failures, &failure->link);
    fake_unlock();
}

void fake_fail(enum fake_fn fn, unsigned nth, int errnum)
{
    add_failure(fn, nth ? nth : 1, errnum);
}

void fake_fail_always(enum fake_fn fn, int errnum)
{
    add_failure(fn, 0, errnum);
}

void fake_fail_clear(enum fake_fn fn)
{
    fake_lock();
    list_for_each_safe (node, &failures) {
        struct failure *failure = list_entry(node, struct failure, link);

        if (failure->fn == fn) {
            list_del(&failure->link);
            fake_free(failure);
        }
    }
    fake_unlock();
}

unsigned fake_fail_pending(enum fake_fn fn)
{
    unsigned count = 0;

    fake_lock();
    list_for_each (node, &failures)
        count += list_entry(node, struct failure, link)->fn == fn;
    fake_unlock();
    return count;
}

static int next_failure(enum fake_fn fn)
{
    int errnum = 0;

    list_for_each_safe (node, &failures) {
        struct failure *failure = list_entry(node, struct failure, link);

        if (failure->fn != fn)
            continue;
        if (failure->nth == 0) {
            errnum = errnum ? errnum : failure->errnum;
        } else if (--failure->nth == 0) {
            errnum = failure->errnum;
            list_del(&failure->link);
            fake_free(failure);
        }
    }
    return errnum;
}

void fake_loop_test(bool (*on_loop)(void))
{
    fake_lock();
    fake_on_loop = on_loop;
    fake_unlock();
}

void fake_blocking(enum fake_fn fn, bool is_blocking)
{
    fake_lock();
    blocking[fn] = is_blocking;
    fake_unlock();
}

/* ---- the frame ---- */

int fake_enter(struct fake_call *call)
{
    int err;

    fake_lock();
    call->on_loop = fake_on_loop && fake_on_loop();
    if (call->on_loop && blocking[call->fn])
        fake_violation("%s may block and was called on the loop", names[call->fn]);
    run_hooks(call, false);
    counts[call->fn]++;
    call->seq = ++last_seq;
    err = next_failure(call->fn);
    return call->result ? call->result : err;
}

int fake_leave_quiet(struct fake_call *call, int err)
{
    call->result = err;
    run_hooks(call, true);
    fake_unlock();
    return err;
}

int fake_leave(struct fake_call *call, int err)
{
    call->result = err;
    if (log_length < LOG_CAPACITY) {
        struct fake_call *copy = (struct fake_call *)fake_copy(call, sizeof(*call));

        if (!log_calls)
            log_calls = (struct fake_call **)fake_malloc(LOG_CAPACITY * sizeof(*log_calls));
        /* Private data is found through the copy, which outlives the caller's buffer. */
        if (call->fn == FAKE_rdma_connect || call->fn == FAKE_rdma_accept || call->fn == FAKE_rdma_reject)
            copy->arg.conn.param.private_data = copy->arg.conn.data;
        log_calls[log_length++] = copy;
    }
    return fake_leave_quiet(call, err);
}

unsigned fake_count(enum fake_fn fn)
{
    unsigned count;

    fake_lock();
    count = counts[fn];
    fake_unlock();
    return count;
}

const struct fake_call *fake_log_find_on(enum fake_fn fn, const void *object, int nth)
{
    const struct fake_call *found = NULL;

    fake_lock();
    for (size_t i = 0; i < log_length; i++) {
        const struct fake_call *call = nth >= 0 ? log_calls[i] : log_calls[log_length - 1 - i];

        if (call->fn != fn || (object && call->object != object))
            continue;
        if (nth == 0 || nth == -1) {
            found = call;
            break;
        }
        nth += nth > 0 ? -1 : 1;
    }
    fake_unlock();
    return found;
}

const struct fake_call *fake_log_find(enum fake_fn fn, int nth)
{
    return fake_log_find_on(fn, NULL, nth);
}

bool fake_log_before(enum fake_fn first, enum fake_fn second)
{
    const struct fake_call *a = fake_log_find(first, -1), *b = fake_log_find(second, -1);

    return a && b && a->seq < b->seq;
}

size_t fake_log_length(void)
{
    size_t length;

    fake_lock();
    length = log_length;
    fake_unlock();
    return length;
}

const struct fake_call *fake_log_at(size_t index)
{
    const struct fake_call *call;

    fake_lock();
    call = index < log_length ? log_calls[index] : NULL;
    fake_unlock();
    return call;
}

void fake_log_print(FILE *to)
{
    fake_lock();
    for (size_t i = 0; i < log_length; i++) {
        const struct fake_call *call = log_calls[i];

        fprintf(to, "%6llu %s(%p)", (unsigned long long)call->seq, names[call->fn], call->object);
        if (call->created)
            fprintf(to, " = %p", call->created);
        if (call->result)
            fprintf(to, " fails: %s", strerror(call->result));
        fprintf(to, "%s\n", call->on_loop ? " [on loop]" : "");
    }
    fake_unlock();
}

/* ---- violations ---- */

void fake_violation(const char *format, ...)
{
    char line[400];
    size_t have = violations ? strlen(violations) : 0, more;
    char *text;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    more = strlen(line);
    text = (char *)fake_malloc(have + more + 2);
    if (violations)
        memcpy(text, violations, have);
    memcpy(text + have, line, more);
    memcpy(text + have + more, "\n", 2);
    fake_free(violations);
    violations = text;
    violation_count++;
}

const char *fake_violations(void)
{
    const char *text;

    fake_lock();
    text = violations ? violations : "";
    fake_unlock();
    return text;
}

unsigned fake_violation_count(void)
{
    unsigned count;

    fake_lock();
    count = violation_count;
    fake_unlock();
    return count;
}

void fake_violations_clear(void)
{
    fake_lock();
    fake_free(violations);
    violations = NULL;
    violation_count = 0;
    fake_unlock();
}

/* ---- reset ---- */

void fake_reset_script(void)
{
    fake_lock();
    list_for_each_safe (node, &failures) {
        list_del(node);
        fake_free(list_entry(node, struct failure, link));
    }
    list_for_each_safe (node, &hooks) {
        list_del(node);
        fake_free(list_entry(node, struct hook, link));
    }
    for (size_t i = 0; i < log_length; i++)
        fake_free(log_calls[i]);
    fake_free(log_calls);
    log_calls = NULL;
    log_length = 0;
    memset(counts, 0, sizeof(counts));
    fake_violations_clear();
    fake_alloc_clear();
    fake_unlock();
}

void fake_reset(void)
{
    fake_lock();
    fake_reset_script();
    fake_cm_wire_reset();
    fake_objects_reset();
    set_blocking();
    fake_on_loop = NULL;
    fake_cm_reset();
    fake_wire_reset();
    fake_flush_automatic = true;
    fake_devices_reset();
    fake_net_reset();
    fake_fds_mark();
    fake_unlock();
}
