/* SPDX-License-Identifier: MIT */
#include "engine_poll.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "sleep.h"

static struct {
    int epoll, kick;
    uint32_t sleeping; /* a thread is, or is about to be, in epoll_wait */
    uint32_t written;  /* `kick` was written to and not read since */
    bool skipped;      /* the last call did not look at the descriptors */
} poller;

static bool add(int fd, struct engine_io *io)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = io } };

    return epoll_ctl(poller.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool poller_make(void)
{
    poller.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (poller.epoll < 0)
        return false;
    poller.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller.kick >= 0) {
        if (add(poller.kick, NULL))
            return true;
        close(poller.kick);
    }
    close(poller.epoll);
    return false;
}

void poller_watch(struct engine_io *io)
{
    if (!add(io->fd, io))
        log_error("epoll_ctl: %s; what comes from descriptor %d is not seen", strerror(errno), io->fd);
}

void poller_unwatch(struct engine_io *io)
{
    epoll_ctl(poller.epoll, EPOLL_CTL_DEL, io->fd, NULL);
}

/* Read first, then the flag: who finds it set has stored its work before the caller looks for work, and who finds it clear
 * writes again. */
static void drain_kick(void)
{
    uint64_t value;
    ssize_t done = read(poller.kick, &value, sizeof(value));

    (void)done;
    __atomic_store_n(&poller.written, 0, __ATOMIC_SEQ_CST);
}

struct engine_io *poller_sleep(uint64_t until, bool (*kicked)(void))
{
    struct epoll_event event = { .events = 0 };
    struct engine_io *ready = NULL;
    bool work;

    __atomic_store_n(&poller.sleeping, 1, __ATOMIC_SEQ_CST);
    work = kicked();
    poller.skipped = work && !poller.skipped;
    if (!poller.skipped && epoll_wait(poller.epoll, &event, 1, work ? 0 : sleep_poll_ms(until)) == 1) {
        ready = event.data.ptr;
        if (!ready)
            drain_kick();
    }
    __atomic_store_n(&poller.sleeping, 0, __ATOMIC_RELAXED);
    return ready;
}

void poller_kick(void)
{
    uint64_t one = 1;
    ssize_t done;

    if (!__atomic_load_n(&poller.sleeping, __ATOMIC_SEQ_CST) ||
        __atomic_exchange_n(&poller.written, 1, __ATOMIC_SEQ_CST))
        return;
    done = write(poller.kick, &one, sizeof(one));
    (void)done;
}
