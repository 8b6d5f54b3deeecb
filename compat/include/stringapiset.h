/* SPDX-License-Identifier: MIT */
#ifndef _APISETSTRING_
#define _APISETSTRING_

/* Between narrow and wide text. Every code page is UTF-8. Lengths: -1 means "up to and with the terminator". The result is
 * the number of characters written, or needed if the destination's size is 0; 0 with ERROR_INSUFFICIENT_BUFFER,
 * ERROR_INVALID_PARAMETER, ERROR_INVALID_FLAGS (CP_UTF8 takes no other flags), or, with the flag that asks for it,
 * ERROR_NO_UNICODE_TRANSLATION. Bad input becomes U+FFFD. Any thread. Source: win32-surface.md section 4.3. */

#include "windef.h"

#define CP_ACP               0
#define CP_OEMCP             1
#define CP_THREAD_ACP        3
#define CP_UTF8              65001
#define MB_PRECOMPOSED       0x00000001
#define MB_ERR_INVALID_CHARS 0x00000008
#define WC_ERR_INVALID_CHARS 0x00000080
#define WC_NO_BEST_FIT_CHARS 0x00000400

NDV_API int WINAPI MultiByteToWideChar(_In_ UINT page, _In_ DWORD flags, _In_ LPCCH from, _In_ int from_length,
                                       _Out_opt_ LPWSTR to, _In_ int to_size) NDV_SYM(MultiByteToWideChar);
/* *used_default: whether something was replaced. With CP_UTF8 it and `replacement` must be NULL. */
NDV_API int WINAPI WideCharToMultiByte(_In_ UINT page, _In_ DWORD flags, _In_ LPCWCH from, _In_ int from_length,
                                       _Out_opt_ LPSTR to, _In_ int to_size, _In_opt_ LPCCH replacement,
                                       _Out_opt_ LPBOOL used_default) NDV_SYM(WideCharToMultiByte);

/* The system's functions under Windows' names. */
NDV_API int WINAPI lstrlenA(_In_opt_ LPCSTR text) NDV_SYM(lstrlenA);
NDV_API int WINAPI lstrlenW(_In_opt_ LPCWSTR text) NDV_SYM(lstrlenW);

#ifdef UNICODE
#define lstrlen lstrlenW
#else
#define lstrlen lstrlenA
#endif

#endif
