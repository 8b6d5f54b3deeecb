/* SPDX-License-Identifier: MIT */
#ifndef _PROCESSTHREADSAPI_H_
#define _PROCESSTHREADSAPI_H_

/* Threads. Source: win32-surface.md sections 4.2, 4.3, 6.10. */

#include "minwinbase.h"

#define STILL_ACTIVE     259
#define CREATE_SUSPENDED 0x00000004

#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x00010000

/* Starts a thread. The handle is the caller's to close, also while the thread runs; it is set once the thread has
 * finished. `stack` 0: default size; at least 2 MiB without STACK_SIZE_PARAM_IS_A_RESERVATION. CREATE_SUSPENDED: NULL with
 * ERROR_NOT_SUPPORTED. `id` may be NULL. */
NDV_API HANDLE WINAPI CreateThread(_In_opt_ LPSECURITY_ATTRIBUTES security, _In_ SIZE_T stack,
                                   _In_ LPTHREAD_START_ROUTINE start, _In_opt_ LPVOID parameter, _In_ DWORD flags,
                                   _Out_opt_ LPDWORD id) NDV_SYM(CreateThread);

/* Ends the calling thread with that code, as if its function had returned. Destructors of C++ objects are run. */
NDV_API VOID WINAPI ExitThread(_In_ DWORD code) NDV_SYM(ExitThread);

/* The value the thread returned, STILL_ACTIVE while it runs. */
NDV_API BOOL WINAPI GetExitCodeThread(_In_ HANDLE thread, _Out_ LPDWORD code) NDV_SYM(GetExitCodeThread);

/* THREAD_PRIORITY_*: as a nice value of the thread where the system allows it; asking for more than it allows succeeds and
 * changes nothing. FALSE with ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER. GetThreadPriority gives what was last set,
 * THREAD_PRIORITY_ERROR_RETURN for a bad handle. */
NDV_API BOOL WINAPI SetThreadPriority(_In_ HANDLE thread, _In_ int priority) NDV_SYM(SetThreadPriority);
NDV_API int WINAPI GetThreadPriority(_In_ HANDLE thread) NDV_SYM(GetThreadPriority);

/* The id of a thread, 0 with ERROR_INVALID_HANDLE. */
NDV_API DWORD WINAPI GetThreadId(_In_ HANDLE thread) NDV_SYM(GetThreadId);

NDV_API DWORD WINAPI GetCurrentThreadId(void) NDV_SYM(GetCurrentThreadId);
NDV_API DWORD WINAPI GetCurrentProcessId(void) NDV_SYM(GetCurrentProcessId);

/* Pseudo-handles (-1 and -2): nothing to close. */
NDV_API HANDLE WINAPI GetCurrentProcess(void) NDV_SYM(GetCurrentProcess);
NDV_API HANDLE WINAPI GetCurrentThread(void) NDV_SYM(GetCurrentThread);

/* Offers the processor to another thread; TRUE (whether one took it is not known here). */
NDV_API BOOL WINAPI SwitchToThread(void) NDV_SYM(SwitchToThread);

/* Time of all processors since boot, in units of 100 ns. Kernel time includes idle time. */
NDV_API BOOL WINAPI GetSystemTimes(_Out_opt_ LPFILETIME idle, _Out_opt_ LPFILETIME kernel, _Out_opt_ LPFILETIME user)
    NDV_SYM(GetSystemTimes);

#endif
