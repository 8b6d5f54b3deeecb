/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_EXAMPLES_PINGPONG_ND_H
#define NDVERBS_EXAMPLES_PINGPONG_ND_H

/* What the two versions of ndpingpong share: how it ends when a call fails, and addresses. */

#include <stdbool.h>

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

#include "pingpong.h"

#define PROGRAM "ndpingpong"

/* End the program: for a failed call, or with a reason. `check`: unless it is ND_SUCCESS. */
void __attribute__((noreturn)) fail(const char *what, HRESULT status);
void __attribute__((noreturn)) refuse(const char *what, const char *why);
void check(const char *what, HRESULT status);

struct address {
    union {
        SOCKADDR any;
        SOCKADDR_IN v4;
        SOCKADDR_IN6 v6;
    };
    ULONG length;
    char text[80];
};

void address_name(struct address *address);
void address_parse(struct address *address, const char *text);
void address_set_port(struct address *address, USHORT port);

/* The address given with -b, else the one towards the server, else the first; `exclude` is for NdQueryAddressList. */
void address_local(struct address *local, const struct pp_options *options, const struct address *remote,
                   DWORD exclude);

/* ndpingpong_v1.c: the two sides by way of Network Direct version 1. False: data did not verify. */
bool v1_run_client(const struct pp_options *options);
bool v1_run_server(const struct pp_options *options);

#endif
