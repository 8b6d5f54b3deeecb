/* SPDX-License-Identifier: MIT */
#include "role.h"

#include <ntstatus.h>
#include <pthread.h>

#include "thread.h"

/* Period at which the background thread looks whether an application thread still drives (unless the source has another), and after how many looks at
 * the same driver it stops looking (design.md 2 rule 12). */
#define GUARD_PERIOD_NS  2000000
#define GUARD_SAME_LOOKS 4

enum role_holder {
    HOLDER_NONE,
    HOLDER_BACKGROUND,
    HOLDER_WAITER,
    HOLDER_HOST, /* in role_dispatch() */
};

/* role.background, a futex word. */
enum {
    BACKGROUND_DRIVING,
    BACKGROUND_GUARD,
    BACKGROUND_PARKED,
};

static struct {
    struct wordlock lock; /* a leaf lock, for everything below */
    enum role_holder holder;
    struct waiter *driver; /* HOLDER_WAITER: which */
    struct waiter *want;   /* the follower that the background thread has to give way to; read without the lock */
    struct list followers; /* waiter.role_link, newest first */
    uint64_t changes;      /* of holder or driver */
    uint32_t background;
    uint32_t host; /* a host is declared; read without the lock */
    bool missed;   /* it came while somebody else held the role */
    uint32_t dead; /* forked child; checked before the lock */
    const struct role_source *source;
} role = { .followers = { &role.followers, &role.followers }, .background = BACKGROUND_DRIVING };

void (*role_hook)(enum role_point point, struct waiter *waiter);

static inline void step(enum role_point point, struct waiter *waiter)
{
    if (__builtin_expect(role_hook != NULL, 0))
        role_hook(point, waiter);
}

static void hold_locked(enum role_holder holder, struct waiter *driver)
{
    role.holder = holder;
    role.driver = driver;
    role.changes++;
}

/* What an exit has to do after unlocking. */
struct role_exit {
    struct waiter *next;
    bool wake_background;
    bool kick_host;
    bool left;
};

static struct waiter *newest_follower_locked(void)
{
    return list_empty(&role.followers) ? NULL : list_entry(role.followers.next, struct waiter, role_link);
}

/* The holder gives the role away: to whoever wants it, else to the newest follower, else to nobody. */
static void pass_on_locked(struct role_exit *exit)
{
    struct waiter *next = role.want ? role.want : newest_follower_locked();

    __atomic_store_n(&role.want, NULL, __ATOMIC_RELAXED);
    if (next) {
        list_del(&next->role_link);
        hold_locked(HOLDER_WAITER, next);
        waiter_mark_role(next);
        exit->next = next;
        return;
    }
    hold_locked(HOLDER_NONE, NULL);
    exit->left = true;
    if (role.host) {
        exit->kick_host = role.missed;
        role.missed = false;
    } else if (role.background == BACKGROUND_PARKED) {
        __atomic_store_n(&role.background, BACKGROUND_GUARD, __ATOMIC_RELAXED);
        exit->wake_background = true;
    }
}

static void exit_finish(const struct role_exit *exit, struct waiter *waiter)
{
    if (exit->next) {
        step(ROLE_GIVES, waiter);
        waiter_wake_parked(exit->next);
    }
    if (exit->left)
        step(ROLE_LEFT, waiter);
    if (exit->kick_host)
        role.source->kick();
    if (exit->wake_background)
        futex_wake(&role.background, 1);
}

static bool expired(uint64_t deadline)
{
    return deadline != SLEEP_FOREVER && sleep_now() >= deadline;
}

static bool wanted(void)
{
    return __atomic_load_n(&role.want, __ATOMIC_RELAXED) != NULL;
}

/* Whatever ends the wait ends this too: the result, the deadline, and who asks for the role. What others have queued for the
 * loop waits for the end of it. True: the wait is to be looked at again, before any poll. */
static bool spin(struct waiter *waiter, uint64_t deadline)
{
    uint64_t ns = role.source->spin_ns ? role.source->spin_ns() : 0, end;

    if (!ns)
        return false;
    end = sleep_now() + ns;
    end = end < deadline ? end : deadline;
    do {
        role.source->look();
        step_point();
        if (waiter_signalled(waiter) || wanted())
            return true;
    } while (sleep_now() < end);
    return expired(deadline);
}

/* `driving` is stored before the look for a result: see waiter_wake(). */
static void drive(struct waiter *waiter, uint64_t deadline)
{
    __atomic_store_n(&waiter->driving, 1, __ATOMIC_SEQ_CST);
    step_point();
    while (!waiter_signalled(waiter) && !expired(deadline) && !wanted()) {
        if (spin(waiter, deadline))
            continue;
        step(ROLE_RUNS, waiter);
        role.source->run(deadline);
        step(ROLE_RAN, waiter);
    }
    __atomic_store_n(&waiter->driving, 0, __ATOMIC_SEQ_CST);
}

static void role_wait(struct waiter *waiter, uint64_t deadline)
{
    struct role_exit exit = { 0 };
    bool mine = false, kick = false;

    if (__atomic_load_n(&role.dead, __ATOMIC_RELAXED)) {
        waiter_park(waiter, deadline);
        return;
    }
    wordlock_lock(&role.lock);
    if (role.holder == HOLDER_NONE) {
        hold_locked(HOLDER_WAITER, waiter);
        mine = true;
    } else {
        list_add_head(&role.followers, &waiter->role_link);
        if (role.holder == HOLDER_BACKGROUND && !role.want) {
            __atomic_store_n(&role.want, waiter, __ATOMIC_RELAXED);
            kick = true;
        }
    }
    wordlock_unlock(&role.lock);
    step(mine ? ROLE_TOOK : kick ? ROLE_WANTS : ROLE_FOLLOWS, waiter);
    if (kick)
        role.source->kick();

    for (;;) {
        bool done;

        if (mine)
            drive(waiter, deadline);
        else
            waiter_park(waiter, deadline);
        done = waiter_signalled(waiter) || expired(deadline);
        if (done)
            step(ROLE_LEAVES, waiter);

        wordlock_lock(&role.lock);
        mine = role.driver == waiter;
        waiter_clear_role(waiter);
        if (mine && (done || role.want)) {
            pass_on_locked(&exit);
            mine = false;
            if (!done)
                list_add_head(&role.followers, &waiter->role_link);
        } else if (done) {
            list_del(&waiter->role_link);
            if (role.want == waiter)
                __atomic_store_n(&role.want, newest_follower_locked(), __ATOMIC_RELAXED);
        }
        wordlock_unlock(&role.lock);
        exit_finish(&exit, waiter);
        if (done)
            return;
        exit = (struct role_exit){ 0 };
        if (mine)
            step(ROLE_WAS_GIVEN, waiter);
    }
}

static void role_kick(void)
{
    role.source->kick();
}

static const struct wait_driver role_driver = {
    .wait = role_wait,
    .kick = role_kick,
};

void role_init(const struct role_source *source)
{
    role.source = source;
    wait_register(&role_driver);
}

void role_host(bool declared)
{
    bool leave, wake = false;

    wordlock_lock(&role.lock);
    __atomic_store_n(&role.host, declared, __ATOMIC_RELAXED);
    leave = declared && role.holder == HOLDER_BACKGROUND;
    if (!declared && role.background == BACKGROUND_PARKED) {
        __atomic_store_n(&role.background, BACKGROUND_GUARD, __ATOMIC_RELAXED);
        wake = true;
    }
    wordlock_unlock(&role.lock);
    if (leave)
        role.source->kick();
    if (wake)
        futex_wake(&role.background, 1);
}

bool role_dispatch(void)
{
    struct role_exit exit = { 0 };
    bool mine;

    if (__atomic_load_n(&role.dead, __ATOMIC_RELAXED))
        return false;
    wordlock_lock(&role.lock);
    mine = role.holder == HOLDER_NONE;
    if (mine)
        hold_locked(HOLDER_HOST, NULL);
    else
        role.missed = true;
    wordlock_unlock(&role.lock);
    if (!mine)
        return false;
    step(ROLE_TOOK, NULL);
    role.source->run(0);
    step(ROLE_RAN, NULL);
    wordlock_lock(&role.lock);
    pass_on_locked(&exit);
    wordlock_unlock(&role.lock);
    exit_finish(&exit, NULL);
    return true;
}

void role_fork_child(void)
{
    __atomic_store_n(&role.dead, 1, __ATOMIC_RELAXED);
}

bool role_is_idle(void)
{
    bool idle;

    wordlock_lock(&role.lock);
    idle = role.holder != HOLDER_WAITER && !role.want && list_empty(&role.followers);
    wordlock_unlock(&role.lock);
    return idle;
}

void role_reset(void)
{
    hold_locked(HOLDER_NONE, NULL);
    role.background = BACKGROUND_DRIVING;
    role.host = role.missed = false;
}

static bool visited(void)
{
    return !__atomic_load_n(&wait_unvisited, __ATOMIC_RELAXED);
}

static bool host_declared(void)
{
    return __atomic_load_n(&role.host, __ATOMIC_RELAXED);
}

/* Takes the role if it is free and no host is to have it. */
static bool background_take(void)
{
    bool taken = false;

    wordlock_lock(&role.lock);
    if (role.holder == HOLDER_NONE && !role.host) {
        hold_locked(HOLDER_BACKGROUND, NULL);
        __atomic_store_n(&role.background, BACKGROUND_DRIVING, __ATOMIC_RELAXED);
        __atomic_store_n(&wait_unvisited, 1, __ATOMIC_RELAXED);
        taken = true;
    }
    wordlock_unlock(&role.lock);
    return taken;
}

/* Until it is told to leave, or a thread has waited that found its result there: on a busy machine this thread is always
 * faster than one that starts something and then waits for it, and both then meet at every event. When it has left, that
 * thread drives. */
static void background_drive(void)
{
    struct role_exit exit = { 0 };

    step(ROLE_TOOK, NULL);
    for (;;) {
        while (!wanted() && !host_declared() && !visited()) {
            step(ROLE_RUNS, NULL);
            role.source->run(SLEEP_FOREVER);
            step(ROLE_RAN, NULL);
        }
        wordlock_lock(&role.lock);
        if (role.want || role.host || visited())
            break;
        /* The one that wanted it timed out meanwhile. */
        wordlock_unlock(&role.lock);
    }
    pass_on_locked(&exit);
    __atomic_store_n(&wait_unvisited, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&role.background, role.host ? BACKGROUND_PARKED : BACKGROUND_GUARD, __ATOMIC_RELAXED);
    wordlock_unlock(&role.lock);
    exit_finish(&exit, NULL);
}

static uint64_t guard_period(void)
{
    return role.source->guard_ns ? role.source->guard_ns() : GUARD_PERIOD_NS;
}

/* Watches application threads drive until none did for a whole period. */
static void background_guard(void)
{
    uint64_t seen, changes;
    bool nobody;
    int same = 0;

    wordlock_lock(&role.lock);
    seen = role.changes;
    wordlock_unlock(&role.lock);
    for (;;) {
        futex_wait(SLEEP_LIBRARY, &role.background, BACKGROUND_GUARD, sleep_now() + guard_period());
        wordlock_lock(&role.lock);
        nobody = role.holder == HOLDER_NONE && !role.host;
        changes = role.changes;
        if (role.host || (!nobody && changes == seen && ++same == GUARD_SAME_LOOKS)) {
            same = 0;
            __atomic_store_n(&role.background, BACKGROUND_PARKED, __ATOMIC_RELAXED);
        }
        wordlock_unlock(&role.lock);
        if (nobody && changes == seen)
            return;
        if (changes != seen)
            same = 0;
        seen = changes;
        while (__atomic_load_n(&role.background, __ATOMIC_RELAXED) == BACKGROUND_PARKED)
            futex_wait(SLEEP_LIBRARY, &role.background, BACKGROUND_PARKED, SLEEP_FOREVER);
    }
}

void *role_background_main(void *arg)
{
    for (;;) {
        if (background_take())
            background_drive();
        background_guard();
    }
    return arg;
}

NTSTATUS role_start_background(void)
{
    return thread_start_detached(role_background_main, NULL) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}
