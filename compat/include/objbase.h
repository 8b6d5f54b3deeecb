/* SPDX-License-Identifier: MIT */
#ifndef _OBJBASE_H_
#define _OBJBASE_H_

/* COM of a process that has no apartments: what is called here needs no initialisation. Any thread.
 * Source: win32-surface.md section 3.4. */

#include "combaseapi.h"
#include "unknwn.h"

#define COINIT_APARTMENTTHREADED 0x2
#define COINIT_MULTITHREADED     0x0
#define COINIT_DISABLE_OLE1DDE   0x4
#define COINIT_SPEED_OVER_MEMORY 0x8

/* S_OK. */
NDV_API HRESULT WINAPI CoInitialize(_In_opt_ LPVOID reserved) NDV_SYM(CoInitialize);
NDV_API HRESULT WINAPI CoInitializeEx(_In_opt_ LPVOID reserved, _In_ DWORD mode) NDV_SYM(CoInitializeEx);
NDV_API VOID WINAPI CoUninitialize(VOID) NDV_SYM(CoUninitialize);

/* "{XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX}" and a terminator: 39, or 0 if `size` is less. */
NDV_API int WINAPI StringFromGUID2(_In_ REFGUID guid, _Out_ LPWSTR text, _In_ int size) NDV_SYM(StringFromGUID2);
/* S_OK, E_INVALIDARG (NULL), CO_E_CLASSSTRING (not of that form; *guid is zeros). */
NDV_API HRESULT WINAPI CLSIDFromString(_In_ LPCWSTR text, _Out_ LPCLSID guid) NDV_SYM(CLSIDFromString);
NDV_API HRESULT WINAPI IIDFromString(_In_ LPCWSTR text, _Out_ LPIID guid) NDV_SYM(IIDFromString);

/* malloc and free. */
NDV_API LPVOID WINAPI CoTaskMemAlloc(_In_ SIZE_T size) NDV_SYM(CoTaskMemAlloc);
NDV_API VOID WINAPI CoTaskMemFree(_In_opt_ LPVOID memory) NDV_SYM(CoTaskMemFree);

#endif
