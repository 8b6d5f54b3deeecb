/* SPDX-License-Identifier: MIT */
#ifndef _LIBLOADERAPI_H_
#define _LIBLOADERAPI_H_

/* Modules are shared objects of the system's loader: names are those of dlopen, a soname or a path. The names of Windows'
 * system libraries (kernel32, ntdll, ws2_32, ..., with or without .dll, in any case) stand for this library, whose
 * functions GetProcAddress finds by their Windows names. Any thread. Source: win32-surface.md section 4.3. */

#include "minwinbase.h"

/* A module with one reference, for FreeLibrary; NULL with ERROR_MOD_NOT_FOUND, ERROR_INVALID_PARAMETER. The Ex forms: `file`
 * and the flags are accepted and have no effect. */
NDV_API HMODULE WINAPI LoadLibraryA(_In_ LPCSTR name) NDV_SYM(LoadLibraryA);
NDV_API HMODULE WINAPI LoadLibraryW(_In_ LPCWSTR name) NDV_SYM(LoadLibraryW);
NDV_API HMODULE WINAPI LoadLibraryExA(_In_ LPCSTR name, HANDLE file, _In_ DWORD flags) NDV_SYM(LoadLibraryExA);
NDV_API HMODULE WINAPI LoadLibraryExW(_In_ LPCWSTR name, HANDLE file, _In_ DWORD flags) NDV_SYM(LoadLibraryExW);
/* FALSE with ERROR_INVALID_HANDLE for NULL. Another value must be a module that is loaded. */
NDV_API BOOL WINAPI FreeLibrary(_In_ HMODULE module) NDV_SYM(FreeLibrary);

/* The function, or NULL with ERROR_PROC_NOT_FOUND; ordinals (names below 0x10000) are never found. */
NDV_API FARPROC WINAPI GetProcAddress(_In_ HMODULE module, _In_ LPCSTR name) NDV_SYM(GetProcAddress);

/* A module that is loaded already (NULL: the program), without a reference; NULL with ERROR_MOD_NOT_FOUND. The Ex forms take
 * a reference unless told not to; FROM_ADDRESS: `name` is an address in the module. */
#define GET_MODULE_HANDLE_EX_FLAG_PIN                0x00000001
#define GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT 0x00000002
#define GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS       0x00000004
NDV_API HMODULE WINAPI GetModuleHandleA(_In_opt_ LPCSTR name) NDV_SYM(GetModuleHandleA);
NDV_API HMODULE WINAPI GetModuleHandleW(_In_opt_ LPCWSTR name) NDV_SYM(GetModuleHandleW);
NDV_API BOOL WINAPI GetModuleHandleExA(_In_ DWORD flags, _In_opt_ LPCSTR name, _Out_ HMODULE *module)
    NDV_SYM(GetModuleHandleExA);
NDV_API BOOL WINAPI GetModuleHandleExW(_In_ DWORD flags, _In_opt_ LPCWSTR name, _Out_ HMODULE *module)
    NDV_SYM(GetModuleHandleExW);

/* The path of a module (NULL: of the program). Characters without the terminator; `size` if it was cut, with
 * ERROR_INSUFFICIENT_BUFFER; 0 with ERROR_MOD_NOT_FOUND. */
NDV_API DWORD WINAPI GetModuleFileNameA(_In_opt_ HMODULE module, _Out_ LPSTR path, _In_ DWORD size)
    NDV_SYM(GetModuleFileNameA);
NDV_API DWORD WINAPI GetModuleFileNameW(_In_opt_ HMODULE module, _Out_ LPWSTR path, _In_ DWORD size)
    NDV_SYM(GetModuleFileNameW);

#define DONT_RESOLVE_DLL_REFERENCES         0x00000001
#define LOAD_LIBRARY_AS_DATAFILE            0x00000002
#define LOAD_WITH_ALTERED_SEARCH_PATH       0x00000008
#define LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR    0x00000100
#define LOAD_LIBRARY_SEARCH_APPLICATION_DIR 0x00000200
#define LOAD_LIBRARY_SEARCH_SYSTEM32        0x00000800
#define LOAD_LIBRARY_SEARCH_DEFAULT_DIRS    0x00001000

#ifdef UNICODE
#define LoadLibrary       LoadLibraryW
#define LoadLibraryEx     LoadLibraryExW
#define GetModuleHandle   GetModuleHandleW
#define GetModuleHandleEx GetModuleHandleExW
#define GetModuleFileName GetModuleFileNameW
#else
#define LoadLibrary       LoadLibraryA
#define LoadLibraryEx     LoadLibraryExA
#define GetModuleHandle   GetModuleHandleA
#define GetModuleHandleEx GetModuleHandleExA
#define GetModuleFileName GetModuleFileNameA
#endif

#endif
