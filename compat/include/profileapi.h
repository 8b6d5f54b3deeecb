/* SPDX-License-Identifier: MIT */
#ifndef _PROFILEAPI_H_
#define _PROFILEAPI_H_

#include "winnt.h"

/* A monotonic clock and its ticks per second; both always succeed. Any thread. Source: win32-surface.md 4.3. */
NDV_API BOOL WINAPI QueryPerformanceCounter(_Out_ LARGE_INTEGER *count) NDV_SYM(QueryPerformanceCounter);
NDV_API BOOL WINAPI QueryPerformanceFrequency(_Out_ LARGE_INTEGER *frequency) NDV_SYM(QueryPerformanceFrequency);

#endif
