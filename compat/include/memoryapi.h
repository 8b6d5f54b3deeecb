/* SPDX-License-Identifier: MIT */
#ifndef _MEMORYAPI_H_
#define _MEMORYAPI_H_

/* Pages. Source: win32-surface.md section 4.3. */

#include "winnt.h"

/* Reserves and commits whole pages, aligned to 64 KiB, filled with zeros. MEM_RESERVE, MEM_COMMIT or both; committing
 * again inside of a reserved range succeeds. NULL with ERROR_NOT_ENOUGH_MEMORY or ERROR_INVALID_PARAMETER. Any thread. */
NDV_API LPVOID WINAPI VirtualAlloc(_In_opt_ LPVOID address, _In_ SIZE_T size, _In_ DWORD type, _In_ DWORD protect)
    NDV_SYM(VirtualAlloc);

/* MEM_RELEASE with size 0 gives the whole allocation back; MEM_DECOMMIT drops the content of a range. */
NDV_API BOOL WINAPI VirtualFree(_In_ LPVOID address, _In_ SIZE_T size, _In_ DWORD type) NDV_SYM(VirtualFree);

/* Describes the pages from `address` on that have one protection and belong to one allocation, or the free range there.
 * The number of bytes written, or 0 with ERROR_INVALID_PARAMETER (address out of range), ERROR_BAD_LENGTH (`length` too
 * small), ERROR_NOT_SUPPORTED (no /proc). A snapshot: other threads may change it at once. */
NDV_API SIZE_T WINAPI VirtualQuery(_In_opt_ LPCVOID address, _Out_ PMEMORY_BASIC_INFORMATION information,
                                   _In_ SIZE_T length) NDV_SYM(VirtualQuery);

#endif
