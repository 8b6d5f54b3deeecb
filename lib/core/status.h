/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_STATUS_H
#define NDVERBS_STATUS_H

#include <stdbool.h>
#include <windows.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "nddef.h"
#include "ndstatus.h"
#include "rdma/wvstatus.h"

#include "log.h"

/* The one place where foreign errors become statuses (spec/ndspi-status.md sections 4 to 6; lib/doc/status-map.md lists
 * the rows for users). core speaks Network Direct v2 statuses; the v1 and WinVerbs fronts translate the few that differ
 * (ND_IO_TIMEOUT -> ND_TIMEOUT, ...) with status_v1(). All functions: any thread, no side effects. */

/* Work completion to status. `type`: the request's kind (from our slot: wc.opcode is invalid on errors). */
HRESULT status_from_wc(enum ibv_wc_status wc, ND2_REQUEST_TYPE type, bool port_down);

/* errno (positive) of a failed foreign call. */
HRESULT status_from_reg_errno(int error);     /* ibv_reg_mr */
HRESULT status_from_create_errno(int error);  /* ibv_create_*, ibv_alloc_*, rdma_create_id */
HRESULT status_from_post_errno(int error);    /* ibv_post_*; normalised first: see post_errno() */
HRESULT status_from_resolve_errno(int error); /* rdma_resolve_addr, ADDR_ERROR (pass -status) */
HRESULT status_from_route_errno(int error);   /* rdma_resolve_route, ROUTE_ERROR (pass -status) */
HRESULT status_from_connect_errno(int error); /* UNREACHABLE (pass -status), rdma_connect on iWARP */

/* rdma_bind_addr. `known`: the address is in our list of RDMA addresses; `port`: the port asked for (host order). */
HRESULT status_from_bind_errno(int error, bool known, uint16_t port);

/* REJECTED: `passive` for the accepting side after its reply. */
HRESULT status_from_reject(int reason, bool passive);

/* siw posts return negative errno values or -1 with errno set, rxe positive ones: the positive errno, 0 for success. */
int post_errno(int result);

/* The CM-only interface (iba-cm.md 8): statuses of the access layer (ib_api_status_t), errno of its calls, and what a
 * client of it gets for a status of core. */
HRESULT status_from_ib(int ib_status);
HRESULT status_from_cm_errno(int error);
HRESULT status_cm(HRESULT status);

/* Of a call whose page has no ND_NO_MEMORY. */
HRESULT status_without_no_memory(HRESULT status);

/* v2 status -> v1 status. */
HRESULT status_v1(HRESULT status);

/* v2 status -> WinVerbs: of a call (ND_PENDING becomes WV_IO_PENDING), of posting a request, of an overlapped request of a
 * connect endpoint (`connect`: of Connect; `notify`: of NotifyDisconnect). */
HRESULT status_wv(HRESULT status);
HRESULT status_wv_post(HRESULT status);
HRESULT status_wv_endpoint(HRESULT status, bool connect, bool notify);

/* The line of a failed foreign call: what the arguments say, its errno text, and the status that comes of it, which is returned.
 * Where the status is chosen, so that there is one line. errno is preserved. */
HRESULT status_report(enum log_level level, const char *where, int error, HRESULT status, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));
#define status_warn(error, status, ...) status_report(LOG_WARN, __func__, error, status, __VA_ARGS__)
#define status_info(error, status, ...) status_report(LOG_INFO, __func__, error, status, __VA_ARGS__)

/* Name and one-line text of any status of the tables (ND, NTSTATUS, WinVerbs), or NULL. */
const char *status_name(HRESULT status);
const char *status_text(HRESULT status);

#endif
