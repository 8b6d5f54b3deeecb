/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_EXAMPLES_WVPINGPONG_H
#define NDVERBS_EXAMPLES_WVPINGPONG_H

#include <rdma/winverbs.h>
#include <ndsupport.h>
#include <ndverbs.h>

#include "pingpong.h"

#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))

struct wv_address {
    WV_SOCKADDR sock;
    char text[80];
};

/* The device behind the local address. */
struct wv_host {
    struct wv_address local;
    IWVProvider *provider;
    IWVDevice *device;
    IWVProtectionDomain *pd;
    WV_DEVICE_ADDRESS where;
    WV_DEVICE_ATTRIBUTES attributes;
};
void wv_host_open(struct wv_host *host, const struct pp_options *options);
void wv_host_close(struct wv_host *host);

void wv_address_parse(struct wv_address *address, const char *text, USHORT port);

/* End the program with a message. */
void wv_fail(const char *what, HRESULT hr) __attribute__((noreturn));
void wv_refuse(const char *what, const char *why) __attribute__((noreturn));
void wv_check(const char *what, HRESULT hr);

/* Datagrams. False: data did not verify, or too many were lost. */
bool wv_run_ud(const struct pp_options *options);

#endif
