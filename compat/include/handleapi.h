/* SPDX-License-Identifier: MIT */
#ifndef _HANDLEAPI_H_
#define _HANDLEAPI_H_

/* Handles: multiples of four whose two low bits are ignored by every call. NULL and INVALID_HANDLE_VALUE name no object;
 * a stale or closed handle gives FALSE and ERROR_INVALID_HANDLE, never a crash. All calls: any thread.
 * Source: win32-surface.md section 6.1. */

#include "minwinbase.h"

#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)

/* Drops the handle; the object lives on while a request or a wait needs it. Closing the process pseudo-handle (which is
 * INVALID_HANDLE_VALUE) succeeds and does nothing. */
NDV_API BOOL WINAPI CloseHandle(_In_ HANDLE handle) NDV_SYM(CloseHandle);

/* Within this process and with DUPLICATE_SAME_ACCESS only (others: ERROR_NOT_SUPPORTED). The new handle is the caller's
 * to close. Pseudo-handles of the current thread and process are accepted as source. */
NDV_API BOOL WINAPI DuplicateHandle(_In_ HANDLE source_process, _In_ HANDLE source, _In_ HANDLE target_process,
                                    _Out_ LPHANDLE target, _In_ DWORD access, _In_ BOOL inherit, _In_ DWORD options)
    NDV_SYM(DuplicateHandle);

#endif
