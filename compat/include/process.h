/* SPDX-License-Identifier: MIT */
#ifndef _INC_PROCESS
#define _INC_PROCESS

/* Threads of Microsoft's C run time. Included by many programs that use nothing of it. Any thread.
 * Source: win32-surface.md section 4.2. */

#include "windows.h"

/* CreateThread under another name: a handle for CloseHandle, or 0 with errno EAGAIN or EINVAL. */
NDV_API uintptr_t __cdecl _beginthreadex(void *security, unsigned stack, unsigned (*start)(void *), void *parameter,
                                         unsigned flags, unsigned *id) NDV_SYM(_beginthreadex);
NDV_API void __cdecl _endthreadex(unsigned code) NDV_SYM(_endthreadex);

/* The handle is closed by the thread: only compare it with -1, the failure (errno EAGAIN or EINVAL). */
NDV_API uintptr_t __cdecl _beginthread(void (*start)(void *), unsigned stack, void *parameter) NDV_SYM(_beginthread);
NDV_API void __cdecl _endthread(void) NDV_SYM(_endthread);

NDV_API int __cdecl _getpid(void) NDV_SYM(_getpid);

#endif
