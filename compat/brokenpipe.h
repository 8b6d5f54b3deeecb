/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_BROKENPIPE_H
#define NDVERBS_BROKENPIPE_H

/* Windows has no SIGPIPE: who sends to a peer that is gone gets a status. Here the signal would end the process, and not only from
 * send(): siw transmits on the thread that posts, modifies or disconnects, and its socket raises the signal there. So it is
 * ignored from now on, unless the program has said what is to become of it. Any thread, any number of times; a program that sets
 * its own disposition later keeps that. */
void broken_pipe_ignore(void);

#endif
