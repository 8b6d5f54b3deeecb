/* SPDX-License-Identifier: MIT */
#ifndef _WINBASE_
#define _WINBASE_

/* Everything a program gets from <windows.h>, by area; plus the functions that Windows declares here and in no header of
 * their own. */

#include "minwinbase.h"
#include "winerror.h"
#include "handleapi.h"
#include "errhandlingapi.h"
#include "synchapi.h"
#include "ioapiset.h"
#include "processthreadsapi.h"
#include "heapapi.h"
#include "memoryapi.h"
#include "profileapi.h"
#include "sysinfoapi.h"
#include "libloaderapi.h"
#include "processenv.h"
#include "stringapiset.h"
#include "debugapi.h"
#include "threadpoollegacyapiset.h"

/* FILE_SKIP_* modes of an overlapped file; once set they stay. FALSE with ERROR_INVALID_HANDLE or
 * ERROR_INVALID_PARAMETER. Any thread. Source: win32-surface.md 4.1, 6.4. */
NDV_API BOOL WINAPI SetFileCompletionNotificationModes(_In_ HANDLE file, _In_ UCHAR flags)
    NDV_SYM(SetFileCompletionNotificationModes);

/* Calls `function` on a thread of the library's pool for every completed request of the file. `error` is the request's
 * NTSTATUS, not a Win32 code. FALSE with ERROR_INVALID_PARAMETER if the file is bound already.
 * Source: win32-surface.md section 6.7. */
typedef VOID(WINAPI *LPOVERLAPPED_COMPLETION_ROUTINE)(DWORD error, DWORD bytes, LPOVERLAPPED overlapped);
NDV_API BOOL WINAPI BindIoCompletionCallback(_In_ HANDLE file, _In_ LPOVERLAPPED_COMPLETION_ROUTINE function,
                                             _In_ ULONG flags) NDV_SYM(BindIoCompletionCallback);

/* The text of a code (FROM_SYSTEM and FROM_HMODULE: Win32, Winsock, HRESULT and NTSTATUS values alike, in English), or a
 * text of the caller's with inserts %1 to %99 and their formats (FROM_STRING). Characters written, without the terminator;
 * 0 with ERROR_MR_MID_NOT_FOUND, ERROR_INSUFFICIENT_BUFFER, ERROR_INVALID_PARAMETER. ALLOCATE_BUFFER: `buffer` is a pointer
 * to the pointer that gets the text, for LocalFree. Any thread. Source: win32-surface.md section 4.3. */
#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100
#define FORMAT_MESSAGE_IGNORE_INSERTS  0x00000200
#define FORMAT_MESSAGE_FROM_STRING     0x00000400
#define FORMAT_MESSAGE_FROM_HMODULE    0x00000800
#define FORMAT_MESSAGE_FROM_SYSTEM     0x00001000
#define FORMAT_MESSAGE_ARGUMENT_ARRAY  0x00002000
#define FORMAT_MESSAGE_MAX_WIDTH_MASK  0x000000FF
NDV_API DWORD WINAPI FormatMessageA(_In_ DWORD flags, _In_opt_ LPCVOID source, _In_ DWORD code, _In_ DWORD language,
                                    _Out_ LPSTR buffer, _In_ DWORD size, _In_opt_ va_list *args)
    NDV_SYM(FormatMessageA);
NDV_API DWORD WINAPI FormatMessageW(_In_ DWORD flags, _In_opt_ LPCVOID source, _In_ DWORD code, _In_ DWORD language,
                                    _Out_ LPWSTR buffer, _In_ DWORD size, _In_opt_ va_list *args)
    NDV_SYM(FormatMessageW);

/* Fixed memory of malloc's. LocalFree: NULL. */
#define LMEM_FIXED    0x0000
#define LMEM_ZEROINIT 0x0040
#define LPTR          (LMEM_FIXED | LMEM_ZEROINIT)
NDV_API HLOCAL WINAPI LocalAlloc(_In_ UINT flags, _In_ SIZE_T size) NDV_SYM(LocalAlloc);
NDV_API HLOCAL WINAPI LocalFree(_In_opt_ HLOCAL memory) NDV_SYM(LocalFree);

/* Priorities of a thread: see SetThreadPriority. */
#define THREAD_PRIORITY_IDLE          (-15)
#define THREAD_PRIORITY_LOWEST        (-2)
#define THREAD_PRIORITY_BELOW_NORMAL  (-1)
#define THREAD_PRIORITY_NORMAL        0
#define THREAD_PRIORITY_ABOVE_NORMAL  1
#define THREAD_PRIORITY_HIGHEST       2
#define THREAD_PRIORITY_TIME_CRITICAL 15
#define THREAD_PRIORITY_ERROR_RETURN  0x7fffffff

/* Restricts the thread to these processors; the mask it had, or 0 with ERROR_INVALID_PARAMETER or ERROR_INVALID_HANDLE (also
 * for a thread that has finished). Source: win32-surface.md section 4.2. */
NDV_API DWORD_PTR WINAPI SetThreadAffinityMask(_In_ HANDLE thread, _In_ DWORD_PTR mask) NDV_SYM(SetThreadAffinityMask);

#ifdef UNICODE
#define FormatMessage FormatMessageW
#else
#define FormatMessage FormatMessageA
#endif

#endif
