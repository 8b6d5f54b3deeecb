/* SPDX-License-Identifier: MIT */
/* Every way to open the device, and one of each object that is made of an open one, in all three interfaces. */
#ifndef NDVERBS_TESTS_DEVICE_STOCK_H
#define NDVERBS_TESTS_DEVICE_STOCK_H

#include "v1side.h"
#include "wvside.h"

struct openers {
    union endpoint own;
    IND2Provider *v2;
    INDProvider *v1;
    IWVProvider *wv;
    UINT64 id;
    WV_DEVICE_ADDRESS where;
};

#define WAYS    6 /* to open the device */
#define BY_GUID 4 /* the first of those that look for it in libibverbs' list */

void openers_make(struct openers *openers);
void openers_drop(struct openers *openers);
HRESULT open_by(struct openers *openers, int way, IUnknown **made);
void all_ways(struct openers *openers, HRESULT wanted); /* each gives that status */

struct stock {
    struct host host;
    struct link link[2];
    IND2SharedReceiveQueue *srq;
    IND2CompletionQueue *large; /* these have room for any queue pair */
    INDCompletionQueue *v1_large;
    IWVCompletionQueue *wv_large;
    struct v1 v1;
    struct wvhost wv;
    struct wvlink wvlink;
    WV_ADDRESS_VECTOR vector;
};

void stock_make(struct stock *stock);
/* A message from one queue pair of the adapter to another: it is usable as ever. */
void stock_used(struct stock *stock);
void stock_drop(struct stock *stock);

/* Each makes one, `most`: as large as the device has them. */
HRESULT make_cq(struct stock *stock, bool most, void **out);
HRESULT make_srq(struct stock *stock, bool most, void **out);
HRESULT make_connector(struct stock *stock, bool most, void **out);
HRESULT make_listener(struct stock *stock, bool most, void **out);
HRESULT make_v1_cq(struct stock *stock, bool most, void **out);
HRESULT make_v1_endpoint(struct stock *stock, bool most, void **out);

/* What of the device's it takes. NONE: it is memory of the process alone; RXE: it is that on siw, which has no windows; ONLY_RXE: siw
 * has none at all. */
enum of_device {
    NONE,
    EACH,
    RXE,
    ONLY_RXE,
};

struct kind {
    const char *name;
    HRESULT (*make)(struct stock *stock, bool most, void **out);
    enum of_device of_device;
    bool sized;
    HRESULT no_memory;
};
extern const struct kind kinds[];
extern const size_t kinds_count;

bool kind_missing(size_t kind); /* the device has none of those */
/* Makes one, which goes again; a failure leaves nothing in `out`. */
HRESULT make_one(struct stock *stock, size_t kind, bool most);
void make_all(struct stock *stock, HRESULT without_device); /* those that need nothing of the device succeed */
void register_all(struct stock *stock, HRESULT wanted);

/* As much of RLIMIT_... again as the process may have. */
void limit_free(int resource);

#endif
