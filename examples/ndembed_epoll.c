/* SPDX-License-Identifier: MIT */
/* Network Direct in a program with a plain epoll loop: the completion port is a descriptor among others. A thread of the
 * library turns kernel events into packets. Usage: ndembed_epoll [LOCALADDR] */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ndstatus.h>
#include <ndverbs.h>

#include "embed.h"

#define ROUNDS 100
#define TICKS  10000000 /* ns; what the program does besides */

int main(int argc, char **argv)
{
    struct epoll_event event = { .events = EPOLLIN }, ready[4];
    struct itimerspec period = { { 0, TICKS }, { 0, TICKS } };
    int loop = epoll_create1(EPOLL_CLOEXEC), ticker = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), port_fd;
    struct embed *embed = embed_open(argc > 1 ? argv[1] : NULL, ROUNDS);
    unsigned long ticks = 0;
    bool going = true;
    HRESULT status;

    status = ndverbs_handle_fd(embed_port(embed), &port_fd);
    if (status != ND_SUCCESS)
        embed_fail("ndverbs_handle_fd", status);
    timerfd_settime(ticker, 0, &period, NULL);
    event.data.fd = port_fd;
    epoll_ctl(loop, EPOLL_CTL_ADD, port_fd, &event);
    event.data.fd = ticker;
    epoll_ctl(loop, EPOLL_CTL_ADD, ticker, &event);
    while (going) {
        int count = epoll_wait(loop, ready, 4, -1);

        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == port_fd) {
                going = embed_step(embed);
            } else {
                uint64_t expired;

                if (read(ticker, &expired, sizeof(expired)) == sizeof(expired))
                    ticks += expired;
            }
        }
    }
    epoll_ctl(loop, EPOLL_CTL_DEL, port_fd, NULL);
    embed_close(embed);
    close(ticker);
    close(loop);
    printf("%d messages there and back, %lu ticks\n", ROUNDS, ticks);
    return 0;
}
