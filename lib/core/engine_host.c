/* SPDX-License-Identifier: MIT */
#include "engine_host.h"

#include <errno.h>
#include <ndstatus.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "log.h"
#include "role.h"
#include "sleep.h"

#define NS_PER_S 1000000000ull

static struct {
    struct wordlock lock; /* making the descriptors */
    int made;             /* they are there, for the rest of the process */
    int epoll, kick, timer;
    uint32_t active; /* a host is declared */
    uint32_t kicked; /* `kick` was written to and not read since */
    uint64_t armed;  /* when `timer` fires, SLEEP_FOREVER: never; written by the holder of the role */
    struct engine_call attach;
} host = { .armed = SLEEP_FOREVER };

static bool active(void)
{
    return __atomic_load_n(&host.active, __ATOMIC_ACQUIRE);
}

static bool made(void)
{
    return __atomic_load_n(&host.made, __ATOMIC_ACQUIRE);
}

static bool add(int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

    return epoll_ctl(host.epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

/* All three or none, as the caller has one failure to report. */
static bool make_locked(void)
{
    host.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (host.epoll < 0)
        goto err;
    host.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (host.kick < 0)
        goto err_epoll;
    host.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (host.timer < 0)
        goto err_kick;
    if (!add(host.kick) || !add(host.timer))
        goto err_timer;
    __atomic_store_n(&host.made, 1, __ATOMIC_RELEASE);
    return true;

err_timer:
    close(host.timer);
err_kick:
    close(host.kick);
err_epoll:
    close(host.epoll);
err:
    log_error("no descriptor for the event loop of the program: errno %d", errno);
    return false;
}

static void arm(uint64_t due)
{
    struct itimerspec when = { .it_value = { 0, 0 } };

    if (due != SLEEP_FOREVER) {
        when.it_value.tv_sec = (time_t)(due / NS_PER_S);
        when.it_value.tv_nsec = (long)(due % NS_PER_S);
    }
    timerfd_settime(host.timer, TFD_TIMER_ABSTIME, &when, NULL);
    __atomic_store_n(&host.armed, due, __ATOMIC_RELAXED);
}

void host_watch(int fd)
{
    if (active() && !add(fd))
        log_error("epoll_ctl failed for the event loop of the program: errno %d", errno);
}

/* Also without a host: one that is declared again later must not find it in there. */
void host_unwatch(int fd)
{
    if (made())
        epoll_ctl(host.epoll, EPOLL_CTL_DEL, fd, NULL);
}

void host_timer(uint64_t due)
{
    if (active() && due < __atomic_load_n(&host.armed, __ATOMIC_RELAXED))
        arm(due);
}

static bool timer_due(void)
{
    uint64_t armed = __atomic_load_n(&host.armed, __ATOMIC_RELAXED);

    return armed != SLEEP_FOREVER && sleep_now() >= armed;
}

/* A timer that was stopped leaves `armed` too early: that costs one run for nothing. */
void host_ran(void)
{
    if (active() && timer_due())
        arm(engine_next_timer());
}

void host_kick(void)
{
    uint64_t one = 1;
    ssize_t done;

    if (!active() || __atomic_exchange_n(&host.kicked, 1, __ATOMIC_SEQ_CST))
        return;
    done = write(host.kick, &one, sizeof(one));
    (void)done;
}

static void drain(int fd)
{
    uint64_t value;
    ssize_t done = read(fd, &value, sizeof(value));

    (void)done;
}

static void attach_on_loop(struct engine_call *call)
{
    (void)call;
    engine_each_watched(host_watch);
    if (active())
        arm(engine_next_timer());
}

NTSTATUS engine_host_start(int *fd)
{
    NTSTATUS status = engine_start();
    int saved = errno;
    bool there;

    if (status != ND_SUCCESS)
        return status;
    wordlock_lock(&host.lock);
    there = made() || make_locked();
    wordlock_unlock(&host.lock);
    errno = saved;
    if (!there)
        return ND_INSUFFICIENT_RESOURCES;
    *fd = host.epoll;
    if (active())
        return ND_SUCCESS;
    /* Active first: what is watched from here on is added at once, the rest by the call. */
    __atomic_store_n(&host.active, 1, __ATOMIC_RELEASE);
    role_host(true);
    engine_post(&host.attach, attach_on_loop);
    return ND_SUCCESS;
}

void engine_host_stop(void)
{
    __atomic_store_n(&host.active, 0, __ATOMIC_RELEASE);
    role_host(false);
}

NTSTATUS engine_host_dispatch(void)
{
    int saved = errno;
    bool ran;

    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!active())
        return ND_DEVICE_NOT_READY;
    /* Read first, then the flag, then the run: who finds the flag still set has queued its work before the run, and who
     * finds it clear makes the descriptor readable again. */
    drain(host.kick);
    __atomic_store_n(&host.kicked, 0, __ATOMIC_SEQ_CST);
    if (timer_due())
        drain(host.timer);
    ran = role_dispatch();
    errno = saved;
    return ran ? ND_SUCCESS : ND_DEVICE_BUSY;
}
