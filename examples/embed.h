/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_EXAMPLE_EMBED_H
#define NDVERBS_EXAMPLE_EMBED_H

/* A Network Direct session without a thread and without a wait of its own: both ends in one process, every request ends as
 * a packet of one completion port. The examples ndembed_epoll and ndembed_libev put two kinds of event loops around it. */

#include <stdbool.h>
#include <winsock2.h>

struct embed;

/* Opens the adapter of a local address (NULL: the first there is), starts to listen and to connect. The process ends with a
 * message if something fails, here and below. */
struct embed *embed_open(const char *address, unsigned rounds);

/* Its completion port. */
HANDLE embed_port(struct embed *embed);

/* Handles the packets that are there. False when the session is over. */
bool embed_step(struct embed *embed);

void embed_close(struct embed *embed);

/* The status by its name, then exit(1). */
void embed_fail(const char *what, HRESULT status);

#endif
