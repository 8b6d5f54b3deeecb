/* SPDX-License-Identifier: MIT */
#ifndef _PROCESSENV_
#define _PROCESSENV_

/* Environment variables; texts are UTF-8. Names keep their case here. As getenv: no other thread may change the environment
 * meanwhile. Source: win32-surface.md section 4.3. */

#include "windef.h"

/* Characters without the terminator; if `size` is too small, the size that is needed with the terminator. 0 with
 * ERROR_ENVVAR_NOT_FOUND. */
NDV_API DWORD WINAPI GetEnvironmentVariableA(_In_ LPCSTR name, _Out_opt_ LPSTR value, _In_ DWORD size)
    NDV_SYM(GetEnvironmentVariableA);
NDV_API DWORD WINAPI GetEnvironmentVariableW(_In_ LPCWSTR name, _Out_opt_ LPWSTR value, _In_ DWORD size)
    NDV_SYM(GetEnvironmentVariableW);
/* NULL removes the variable. */
NDV_API BOOL WINAPI SetEnvironmentVariableA(_In_ LPCSTR name, _In_opt_ LPCSTR value) NDV_SYM(SetEnvironmentVariableA);
NDV_API BOOL WINAPI SetEnvironmentVariableW(_In_ LPCWSTR name, _In_opt_ LPCWSTR value) NDV_SYM(SetEnvironmentVariableW);

/* Replaces %NAME% by its value; names that do not exist stay. The size of the result with its terminator, whether it fitted
 * or not (nothing but an empty string is written then); 0 with ERROR_INVALID_PARAMETER. */
NDV_API DWORD WINAPI ExpandEnvironmentStringsA(_In_ LPCSTR text, _Out_opt_ LPSTR to, _In_ DWORD size)
    NDV_SYM(ExpandEnvironmentStringsA);
NDV_API DWORD WINAPI ExpandEnvironmentStringsW(_In_ LPCWSTR text, _Out_opt_ LPWSTR to, _In_ DWORD size)
    NDV_SYM(ExpandEnvironmentStringsW);

#ifdef UNICODE
#define GetEnvironmentVariable   GetEnvironmentVariableW
#define SetEnvironmentVariable   SetEnvironmentVariableW
#define ExpandEnvironmentStrings ExpandEnvironmentStringsW
#else
#define GetEnvironmentVariable   GetEnvironmentVariableA
#define SetEnvironmentVariable   SetEnvironmentVariableA
#define ExpandEnvironmentStrings ExpandEnvironmentStringsA
#endif

#endif
