/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_SOCK_H
#define NDVERBS_SOCK_H

#include <winsock2.h>

/* Gives a new socket what Winsock's have by default. Changes no error. Any thread. */
void sock_made(SOCKET socket, int family);

/* Ends the requests that wait on a socket which is about to be closed (sockio.c). Any thread. */
void sock_closing(SOCKET socket);

#endif
