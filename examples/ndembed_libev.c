/* SPDX-License-Identifier: MIT */
/* Network Direct in a single-threaded libev program that drives the library itself: one descriptor says when the library
 * has something to do, and no thread of the library runs. Usage: ndembed_libev [LOCALADDR] */
#include <ev.h>
#include <stdio.h>

#include <ndstatus.h>
#include <ndverbs.h>

#include "embed.h"

#define ROUNDS 100
#define TICKS  0.01 /* s; what the program does besides */

static struct embed *embed;
static unsigned long ticks;

static void tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
    ticks++;
}

/* Packets that the application's own calls have queued are no kernel event, so they are looked for after each turn. */
static void take_packets(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)prepare;
    (void)events;
    if (!embed_step(embed))
        ev_break(loop, EVBREAK_ALL);
}

static void library_ready(struct ev_loop *loop, ev_io *io, int events)
{
    HRESULT status = ndverbs_engine_dispatch();

    (void)loop;
    (void)io;
    (void)events;
    if (status != ND_SUCCESS && status != ND_DEVICE_BUSY)
        embed_fail("ndverbs_engine_dispatch", status);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = ev_default_loop(0);
    ev_prepare prepare;
    ev_timer timer;
    HRESULT status;
    ev_io io;
    int fd;

    status = ndverbs_engine_fd(&fd);
    if (status != ND_SUCCESS)
        embed_fail("ndverbs_engine_fd", status);
    embed = embed_open(argc > 1 ? argv[1] : NULL, ROUNDS);
    ev_io_init(&io, library_ready, fd, EV_READ);
    ev_io_start(loop, &io);
    ev_timer_init(&timer, tick, TICKS, TICKS);
    ev_timer_start(loop, &timer);
    ev_prepare_init(&prepare, take_packets);
    ev_prepare_start(loop, &prepare);
    ev_run(loop, 0);

    /* What is left to be torn down is the library's own thread's again. */
    ndverbs_engine_leave();
    embed_close(embed);
    printf("%d messages there and back, %lu ticks\n", ROUNDS, ticks);
    return 0;
}
