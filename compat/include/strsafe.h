/* SPDX-License-Identifier: MIT */
#ifndef _STRSAFE_H_INCLUDED_
#define _STRSAFE_H_INCLUDED_

/* Safe strings: what fits is written, always with a terminator. S_OK, STRSAFE_E_INSUFFICIENT_BUFFER (the text was cut),
 * STRSAFE_E_INVALID_PARAMETER (no room for a terminator, or an impossible one). Sizes count characters. Any thread. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "windows.h"

#define STRSAFE_MAX_CCH               2147483647
#define STRSAFE_E_INSUFFICIENT_BUFFER ((HRESULT)0x8007007A)
#define STRSAFE_E_INVALID_PARAMETER   ((HRESULT)0x80070057)
#define STRSAFE_E_END_OF_FILE         ((HRESULT)0x80070026)

NDV_API HRESULT WINAPI StringCchCopyA(LPSTR to, size_t size, LPCSTR from) NDV_SYM(StringCchCopyA);
NDV_API HRESULT WINAPI StringCchCopyW(LPWSTR to, size_t size, LPCWSTR from) NDV_SYM(StringCchCopyW);
NDV_API HRESULT WINAPI StringCchCatA(LPSTR to, size_t size, LPCSTR from) NDV_SYM(StringCchCatA);
NDV_API HRESULT WINAPI StringCchCatW(LPWSTR to, size_t size, LPCWSTR from) NDV_SYM(StringCchCatW);
NDV_API HRESULT WINAPI StringCchVPrintfA(LPSTR to, size_t size, LPCSTR format, va_list args) NDV_SYM(StringCchVPrintfA);
NDV_API HRESULT WINAPI StringCchVPrintfW(LPWSTR to, size_t size, LPCWSTR format, va_list args)
    NDV_SYM(StringCchVPrintfW);
NDV_API HRESULT WINAPI StringCchPrintfA(LPSTR to, size_t size, LPCSTR format, ...) NDV_SYM(StringCchPrintfA);
NDV_API HRESULT WINAPI StringCchPrintfW(LPWSTR to, size_t size, LPCWSTR format, ...) NDV_SYM(StringCchPrintfW);
NDV_API HRESULT WINAPI StringCchLengthA(LPCSTR text, size_t size, size_t *length) NDV_SYM(StringCchLengthA);
NDV_API HRESULT WINAPI StringCchLengthW(LPCWSTR text, size_t size, size_t *length) NDV_SYM(StringCchLengthW);

#ifdef UNICODE
#define StringCchCopy    StringCchCopyW
#define StringCchCat     StringCchCatW
#define StringCchVPrintf StringCchVPrintfW
#define StringCchPrintf  StringCchPrintfW
#define StringCchLength  StringCchLengthW
#else
#define StringCchCopy    StringCchCopyA
#define StringCchCat     StringCchCatA
#define StringCchVPrintf StringCchVPrintfA
#define StringCchPrintf  StringCchPrintfA
#define StringCchLength  StringCchLengthA
#endif

#endif
