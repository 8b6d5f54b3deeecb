/* SPDX-License-Identifier: MIT */
#ifndef _INC_TCHAR
#define _INC_TCHAR

/* Text that is wide under _UNICODE. Source: win32-surface.md sections 4.5 and 7.2. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "ndvcompat/crt_stdio.h"
#include "ndvcompat/crt_stdlib.h"
#include "ndvcompat/crt_string.h"

#ifdef _UNICODE

typedef wchar_t _TCHAR, _TSCHAR, _TUCHAR, _TXCHAR;
typedef wint_t _TINT;
#define __T(text) L##text
#define _TEOF     WEOF
#define _tmain    wmain
/* Gives the application's C++ definition C linkage. The start-up code, which converts the arguments and calls wmain, comes
 * with the library; it also knows the forms that are not declared here (with an environment, with const). */
#ifdef __cplusplus
extern "C" int wmain(int, wchar_t **);
#endif
#define NDV_TCHAR(narrow, wide) wide

#else

typedef char _TCHAR;
typedef signed char _TSCHAR;
typedef unsigned char _TUCHAR, _TXCHAR;
typedef int _TINT;
#define __T(text)               text
#define _TEOF                   EOF
#define _tmain                  main
#define NDV_TCHAR(narrow, wide) narrow

#endif

#define _T(text)    __T(text)
#define _TEXT(text) __T(text)

#define _tcslen    NDV_TCHAR(strlen, wcslen)
#define _tcsnlen   NDV_TCHAR(strnlen, wcsnlen)
#define _tcscmp    NDV_TCHAR(strcmp, wcscmp)
#define _tcsncmp   NDV_TCHAR(strncmp, wcsncmp)
#define _tcsicmp   NDV_TCHAR(_stricmp, _wcsicmp)
#define _tcsnicmp  NDV_TCHAR(_strnicmp, _wcsnicmp)
#define _tcsncicmp NDV_TCHAR(_strnicmp, _wcsnicmp)
#define _tcschr    NDV_TCHAR(strchr, wcschr)
#define _tcsrchr   NDV_TCHAR(strrchr, wcsrchr)
#define _tcsstr    NDV_TCHAR(strstr, wcsstr)
#define _tcsspn    NDV_TCHAR(strspn, wcsspn)
#define _tcscspn   NDV_TCHAR(strcspn, wcscspn)
#define _tcspbrk   NDV_TCHAR(strpbrk, wcspbrk)
#define _tcscpy    NDV_TCHAR(strcpy, wcscpy)
#define _tcsncpy   NDV_TCHAR(strncpy, wcsncpy)
#define _tcscat    NDV_TCHAR(strcat, wcscat)
#define _tcsdup    NDV_TCHAR(_strdup, _wcsdup)
#define _tcslwr    NDV_TCHAR(_strlwr, _wcslwr)
#define _tcsupr    NDV_TCHAR(_strupr, _wcsupr)
#define _tcscpy_s  NDV_TCHAR(strcpy_s, wcscpy_s)
#define _tcsncpy_s NDV_TCHAR(strncpy_s, wcsncpy_s)
#define _tcscat_s  NDV_TCHAR(strcat_s, wcscat_s)
#define _tcsncat_s NDV_TCHAR(strncat_s, wcsncat_s)
#define _tcstok_s  NDV_TCHAR(strtok_s, wcstok_s)

#define _tcstol    NDV_TCHAR(strtol, wcstol)
#define _tcstoul   NDV_TCHAR(strtoul, wcstoul)
#define _tcstod    NDV_TCHAR(strtod, wcstod)
#define _tcstoi64  NDV_TCHAR(_strtoi64, _wcstoi64)
#define _tcstoui64 NDV_TCHAR(_strtoui64, _wcstoui64)
#define _ttoi      NDV_TCHAR(atoi, _wtoi)
#define _tstoi     NDV_TCHAR(atoi, _wtoi)
#define _ttol      NDV_TCHAR(_ndv_atol, _wtol)
#define _tstol     NDV_TCHAR(_ndv_atol, _wtol)
#define _ttoi64    NDV_TCHAR(_atoi64, _wtoi64)
#define _tstoi64   NDV_TCHAR(_atoi64, _wtoi64)
#define _tstof     NDV_TCHAR(atof, _wtof)
#define _ttof      NDV_TCHAR(atof, _wtof)
#define _totlower  NDV_TCHAR(tolower, towlower)
#define _totupper  NDV_TCHAR(toupper, towupper)
#define _istdigit  NDV_TCHAR(isdigit, iswdigit)
#define _istspace  NDV_TCHAR(isspace, iswspace)
#define _istalpha  NDV_TCHAR(isalpha, iswalpha)
#define _istalnum  NDV_TCHAR(isalnum, iswalnum)
#define _istxdigit NDV_TCHAR(isxdigit, iswxdigit)
#ifndef _UNICODE
#include <ctype.h>
#endif

#define _tprintf      NDV_TCHAR(printf, wprintf)
#define _ftprintf     NDV_TCHAR(fprintf, fwprintf)
#define _vtprintf     NDV_TCHAR(vprintf, vwprintf)
#define _vftprintf    NDV_TCHAR(vfprintf, vfwprintf)
#define _tprintf_s    NDV_TCHAR(printf_s, wprintf_s)
#define _ftprintf_s   NDV_TCHAR(fprintf_s, fwprintf_s)
#define _stprintf_s   NDV_TCHAR(sprintf_s, swprintf_s)
#define _vstprintf_s  NDV_TCHAR(vsprintf_s, vswprintf_s)
#define _sntprintf    NDV_TCHAR(_snprintf, _snwprintf)
#define _vsntprintf   NDV_TCHAR(_vsnprintf, _vsnwprintf)
#define _sntprintf_s  NDV_TCHAR(_snprintf_s, _snwprintf_s)
#define _vsntprintf_s NDV_TCHAR(_vsnprintf_s, _vsnwprintf_s)
#define _sctprintf    NDV_TCHAR(_scprintf, _scwprintf)
#define _fputts       NDV_TCHAR(fputs, fputws)
#define _puttchar     NDV_TCHAR(putchar, putwchar)
#define _tfopen       NDV_TCHAR(fopen, _wfopen)
#define _tfopen_s     NDV_TCHAR(fopen_s, _wfopen_s)
#define _tfreopen     NDV_TCHAR(freopen, _wfreopen)
#define _tdupenv_s    NDV_TCHAR(_dupenv_s, _wdupenv_s)

#endif
