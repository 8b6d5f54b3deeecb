/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ERROR_H
#define NDVERBS_ERROR_H

#include <windows.h>

/* The Win32 error of an NTSTATUS (also of ND and WinVerbs statuses): what GetLastError() gives after a failed dequeue.
 * ERROR_MR_MID_NOT_FOUND (317) for values the table does not hold. Any thread. Source: win32-surface.md 5.2. */
DWORD error_from_status(NTSTATUS status);

/* Winsock code of an errno value. Source: win32-surface.md 5.1. */
DWORD error_from_errno(int error);

#endif
