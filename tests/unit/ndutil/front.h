/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TEST_FRONT_H
#define NDVERBS_TEST_FRONT_H

/* Tests of the whole library on the fakes, through the interfaces that an application has. */

#include "fakes.h"
#include "harness.h"
#include "ndsupport.h"
#include "ndverbs.h"

/* p->lpVtbl->Method(p, ...) */
#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))
#define COUNT(array)              (sizeof(array) / sizeof((array)[0]))

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);
HRESULT DllCanUnloadNow(void);

/* "10.1.1.1" of fake_ib, "10.1.2.1" of fake_iw, any other text. */
struct sockaddr_in front_v4(const char *text);
struct sockaddr_in6 front_v6(const char *text);

void front_setup(void);    /* fresh fakes, NdStartup */
void front_teardown(void); /* NdCleanup; nothing lives, nothing was done wrong */

IND2Adapter *front_open(const char *text);
HANDLE front_file(IND2Adapter *adapter);

/* Takes an object that must have one reference: its Release returns 0. */
void front_release(void *object);

/* An object of somebody else, for arguments of type IUnknown. */
extern IUnknown front_foreign;

#endif
