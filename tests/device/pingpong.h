/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_PINGPONG_H
#define NDVERBS_DEVICE_PINGPONG_H

/* Runs two of the ping-pong programs (examples, bench; "i386": $NDVERBS_I386) against each other, `how` one of their options for the client, `kind`
 * one for both or NULL: both have to end well, every byte verified. The client is tried again until the server listens; a
 * server serves one client and ends. Skips the case where the programs are not built. */
void pingpong_pair(const char *server, const char *client, const char *how, const char *kind);

#endif
