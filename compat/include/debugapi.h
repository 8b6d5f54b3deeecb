/* SPDX-License-Identifier: MIT */
#ifndef _APISETDEBUG_
#define _APISETDEBUG_

#include "windef.h"

/* To stderr if NDVERBS_DEBUG_OUTPUT is set and not 0, else nowhere. Any thread. */
NDV_API VOID WINAPI OutputDebugStringA(_In_opt_ LPCSTR text) NDV_SYM(OutputDebugStringA);
NDV_API VOID WINAPI OutputDebugStringW(_In_opt_ LPCWSTR text) NDV_SYM(OutputDebugStringW);

/* FALSE: programs ask to decide whether to break into a debugger, which here takes a signal that ends them. */
NDV_API BOOL WINAPI IsDebuggerPresent(VOID) NDV_SYM(IsDebuggerPresent);
/* Stops the program for the debugger that runs it, else ends it. */
NDV_API VOID WINAPI DebugBreak(VOID) NDV_SYM(DebugBreak);

#ifdef UNICODE
#define OutputDebugString OutputDebugStringW
#else
#define OutputDebugString OutputDebugStringA
#endif

#endif
