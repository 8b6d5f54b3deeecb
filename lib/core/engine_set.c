/* SPDX-License-Identifier: MIT */
#include "engine_set.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "sleep.h"

#define NS_PER_MS 1000000ull

static struct {
    int epoll, kick;
    uint32_t sleeping; /* a thread is, or is about to be, in epoll_wait */
    uint32_t written;  /* `kick` was written to and not read since */
    bool skipped;      /* the last call did not look at the descriptors */
} set;

static bool add(int fd, struct engine_io *io)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = io } };

    return epoll_ctl(set.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool set_make(void)
{
    set.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (set.epoll < 0)
        return false;
    set.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set.kick >= 0) {
        if (add(set.kick, NULL))
            return true;
        close(set.kick);
    }
    close(set.epoll);
    return false;
}

void set_watch(struct engine_io *io)
{
    if (!add(io->fd, io))
        log_error("epoll_ctl: %s; what comes from descriptor %d is not seen", strerror(errno), io->fd);
}

void set_unwatch(struct engine_io *io)
{
    epoll_ctl(set.epoll, EPOLL_CTL_DEL, io->fd, NULL);
}

/* Rounded up: who looks at the clock afterwards finds the time over. */
static int milliseconds(uint64_t until)
{
    uint64_t now, ms;

    if (until == SLEEP_FOREVER)
        return -1;
    now = sleep_now();
    if (until <= now)
        return 0;
    ms = (until - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Read first, then the flag: who finds it set has stored its work before the caller looks for work, and who finds it clear
 * writes again. */
static void drain_kick(void)
{
    uint64_t value;
    ssize_t done = read(set.kick, &value, sizeof(value));

    (void)done;
    __atomic_store_n(&set.written, 0, __ATOMIC_SEQ_CST);
}

struct engine_io *set_sleep(uint64_t until, bool (*kicked)(void))
{
    struct epoll_event event = { .events = 0 };
    struct engine_io *ready = NULL;
    bool work;

    __atomic_store_n(&set.sleeping, 1, __ATOMIC_SEQ_CST);
    work = kicked();
    set.skipped = work && !set.skipped;
    if (!set.skipped && epoll_wait(set.epoll, &event, 1, work ? 0 : milliseconds(until)) == 1) {
        ready = event.data.ptr;
        if (!ready)
            drain_kick();
    }
    __atomic_store_n(&set.sleeping, 0, __ATOMIC_RELAXED);
    return ready;
}

void set_kick(void)
{
    uint64_t one = 1;
    ssize_t done;

    if (!__atomic_load_n(&set.sleeping, __ATOMIC_SEQ_CST) || __atomic_exchange_n(&set.written, 1, __ATOMIC_SEQ_CST))
        return;
    done = write(set.kick, &one, sizeof(one));
    (void)done;
}
