/* SPDX-License-Identifier: MIT */
#ifndef _HEAPAPI_H_
#define _HEAPAPI_H_

/* Heaps. Blocks are aligned to 16 bytes. Any thread. Source: win32-surface.md section 6.11. */

#include "minwinbase.h"

NDV_API HANDLE WINAPI GetProcessHeap(void) NDV_SYM(GetProcessHeap);

/* A private heap; sizes are hints. HeapDestroy frees every block that is left in it. */
NDV_API HANDLE WINAPI HeapCreate(_In_ DWORD options, _In_ SIZE_T initial, _In_ SIZE_T maximum) NDV_SYM(HeapCreate);
NDV_API BOOL WINAPI HeapDestroy(_In_ HANDLE heap) NDV_SYM(HeapDestroy);

/* HEAP_ZERO_MEMORY clears the block (HeapReAlloc: the part that is new). NULL: out of memory or a bad heap. */
NDV_API LPVOID WINAPI HeapAlloc(_In_ HANDLE heap, _In_ DWORD flags, _In_ SIZE_T size) NDV_SYM(HeapAlloc);
NDV_API LPVOID WINAPI HeapReAlloc(_In_ HANDLE heap, _In_ DWORD flags, _In_ LPVOID block, _In_ SIZE_T size)
    NDV_SYM(HeapReAlloc);
NDV_API BOOL WINAPI HeapFree(_In_ HANDLE heap, _In_ DWORD flags, _In_opt_ LPVOID block) NDV_SYM(HeapFree);
/* (SIZE_T)-1 for a bad block. */
NDV_API SIZE_T WINAPI HeapSize(_In_ HANDLE heap, _In_ DWORD flags, _In_ const VOID *block) NDV_SYM(HeapSize);

/* Not supported: FALSE with ERROR_CALL_NOT_IMPLEMENTED. */
NDV_API BOOL WINAPI HeapLock(_In_ HANDLE heap) NDV_SYM(HeapLock);
NDV_API BOOL WINAPI HeapUnlock(_In_ HANDLE heap) NDV_SYM(HeapUnlock);
NDV_API BOOL WINAPI HeapWalk(_In_ HANDLE heap, _Inout_ LPPROCESS_HEAP_ENTRY entry) NDV_SYM(HeapWalk);

#endif
