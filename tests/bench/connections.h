/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_BENCH_CONNECTIONS_H
#define NDVERBS_BENCH_CONNECTIONS_H

/* What connections cost: connections.c decides what is done when and measures it; connections_nd.c does it by Network
 * Direct, connections_raw.c by verbs and librdmacm, step for step the same. Either ends the program with a message where a
 * step fails. */

#include <stdbool.h>
#include <stdint.h>

#define DEPTH   16 /* of each queue */
#define MESSAGE 64

extern const char *const side_program, *const side_interface;

/* The adapter at the address: its objects that all connections share. The server listens on the port. */
void side_open(const char *address, uint16_t port, bool server);

/* Sleeps until a completion queue that was armed has something new. Any thread, several at a time. */
struct conn *side_wait(void);

/* A completion queue for 2 * DEPTH results. */
struct conn *conn_new(void);

/* A queue pair and what it is connected by; and both gone again. */
void conn_make(struct conn *conn);
void conn_drop(struct conn *conn);

void conn_connect(struct conn *conn);    /* client */
void conn_accept(struct conn *conn);     /* server: makes it for the next request */
void conn_disconnect(struct conn *conn); /* client: until the server has answered */
void conn_ended(struct conn *conn);      /* server: waits for the client's disconnect and answers it */

/* Asks for the completion queue's next event. */
void conn_arm(struct conn *conn);

/* Signalled, of MESSAGE bytes, not inline. */
void conn_receive(struct conn *conn);
void conn_send(struct conn *conn);

/* Takes what has completed, and asks for the next event; how many of the results were receives. Verbs ask first and
 * Network Direct last: the order in which each of them loses nothing. */
unsigned int conn_take(struct conn *conn);

#endif
