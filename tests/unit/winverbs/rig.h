/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TEST_WINVERBS_RIG_H
#define NDVERBS_TEST_WINVERBS_RIG_H

#include <ntstatus.h>

#include "fakes.h"
#include "harness.h"
#include "ndverbs.h"
#include "rdma/winverbs.h"

/* p->lpVtbl->Method(p, ...) */
#define CALL(object, method, ...) ((object)->lpVtbl->method((object), ##__VA_ARGS__))

HRESULT DllCanUnloadNow(void);

/* A provider, fake_ib opened, a protection domain and a completion queue of 64 entries. */
extern IWVProvider *provider;
extern IWVDevice *device;
extern IWVProtectionDomain *pd;
extern IWVCompletionQueue *cq;

void rig_setup(void);
void rig_teardown(void); /* nothing lives, nothing was done wrong */

SOCKADDR_IN6 rig_v6(const char *text, USHORT port); /* no scope */
SOCKADDR_IN rig_v4(const char *text, USHORT port);
NET64 rig_guid(const char *address);
IWVDevice *rig_open(NET64 guid);

WV_QP_CREATE rig_shape(WV_QP_TYPE type); /* depths 8, entries 2, the rig's CQ */
IWVConnectQueuePair *rig_qp(void);       /* RC, in RESET */
IWVDatagramQueuePair *rig_ud(void);      /* in RTS, Q_Key 0x11111111 */
struct ibv_qp *rig_newest_qp(void);
void rig_to(IWVConnectQueuePair *qp, WV_QP_STATE state); /* by way of the states before it */

/* An OVERLAPPED with rubbish in it, no event. */
OVERLAPPED rig_overlapped(void);

/* Result of an overlapped call that returned `started`. */
HRESULT rig_finish(HRESULT started, OVERLAPPED *ov);

#define ok_io_pending(ov) ok_status(CALL(device, GetOverlappedResult, (ov), NULL, FALSE), WV_PENDING)

void rig_release(void *object); /* its last reference */

#endif
