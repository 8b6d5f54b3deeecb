/* SPDX-License-Identifier: MIT */
#ifndef _ERRHANDLINGAPI_H_
#define _ERRHANDLINGAPI_H_

/* The calling thread's last error, a Win32 code. Calls that succeed leave it unchanged unless they say otherwise.
 * Source: win32-surface.md section 6.11. */

#include "windef.h"

NDV_API DWORD WINAPI GetLastError(void) NDV_SYM(GetLastError);
NDV_API VOID WINAPI SetLastError(_In_ DWORD error) NDV_SYM(SetLastError);

#endif
