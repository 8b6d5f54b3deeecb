/* SPDX-License-Identifier: MIT */
#include "brokenpipe.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static void ignore_once(void)
{
    struct sigaction action;

    if (sigaction(SIGPIPE, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

void broken_pipe_ignore(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, ignore_once);
}
