/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SOCK_H
#define NDVERBS_SOCK_H

#include <winsock2.h>

/* Ends the requests that wait on a socket which is about to be closed (sockio.c). Any thread. */
void sock_closing(SOCKET socket);

#endif
