/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_CRT_STDIO_H
#define NDVCOMPAT_CRT_STDIO_H

/* Additions to <stdio.h>: see crt_types.h. Formats are those of printf_bind.h. */

#include <stdarg.h>

#include "crt_types.h"

#define printf_s   printf
#define fprintf_s  fprintf
#define vprintf_s  vprintf
#define vfprintf_s vfprintf
#define wprintf_s  wprintf
#define fwprintf_s fwprintf

/* Characters written, or -1 with errno ERANGE or EINVAL and an empty string. */
NDV_API int sprintf_s(char *to, size_t size, const char *format, ...) NDV_SYM(sprintf_s);
NDV_API int vsprintf_s(char *to, size_t size, const char *format, va_list args) NDV_SYM(vsprintf_s);
NDV_API int swprintf_s(wchar_t *to, size_t size, const wchar_t *format, ...) NDV_SYM(swprintf_s);
NDV_API int vswprintf_s(wchar_t *to, size_t size, const wchar_t *format, va_list args) NDV_SYM(vswprintf_s);

/* At most `count` characters. -1 if that was not all; no terminator then, nor if exactly `count` were written. NULL and 0: the
 * characters that the text would have. */
NDV_API int _snprintf(char *to, size_t count, const char *format, ...) NDV_SYM(_snprintf);
NDV_API int _vsnprintf(char *to, size_t count, const char *format, va_list args) NDV_SYM(_vsnprintf);
NDV_API int _snwprintf(wchar_t *to, size_t count, const wchar_t *format, ...) NDV_SYM(_snwprintf);
NDV_API int _vsnwprintf(wchar_t *to, size_t count, const wchar_t *format, va_list args) NDV_SYM(_vsnwprintf);

/* At most `count` (_TRUNCATE: as much as fits) and always a terminator. -1 if that was not all. */
NDV_API int _snprintf_s(char *to, size_t size, size_t count, const char *format, ...) NDV_SYM(_snprintf_s);
NDV_API int _vsnprintf_s(char *to, size_t size, size_t count, const char *format, va_list args) NDV_SYM(_vsnprintf_s);
NDV_API int _snwprintf_s(wchar_t *to, size_t size, size_t count, const wchar_t *format, ...) NDV_SYM(_snwprintf_s);
NDV_API int _vsnwprintf_s(wchar_t *to, size_t size, size_t count, const wchar_t *format, va_list args)
    NDV_SYM(_vsnwprintf_s);

/* Characters that the text would have. */
NDV_API int _scprintf(const char *format, ...) NDV_SYM(_scprintf);
NDV_API int _vscprintf(const char *format, va_list args) NDV_SYM(_vscprintf);
NDV_API int _scwprintf(const wchar_t *format, ...) NDV_SYM(_scwprintf);
NDV_API int _vscwprintf(const wchar_t *format, va_list args) NDV_SYM(_vscwprintf);

/* sscanf, where each %s, %c and %[ takes a second argument, the size of its buffer (an unsigned). A text that does not fit
 * ends the scan, and its buffer holds an empty string. %I64d and the like as in printf. */
NDV_API int sscanf_s(const char *text, const char *format, ...) NDV_SYM(sscanf_s);
NDV_API int vsscanf_s(const char *text, const char *format, va_list args) NDV_SYM(vsscanf_s);

/* Files. Names and modes are UTF-8; "t" and "ccs=" in a mode are dropped. */
NDV_API FILE *_wfopen(const wchar_t *name, const wchar_t *mode) NDV_SYM(_wfopen);
NDV_API FILE *_wfreopen(const wchar_t *name, const wchar_t *mode, FILE *stream) NDV_SYM(_wfreopen);
NDV_API errno_t fopen_s(FILE **stream, const char *name, const char *mode) NDV_SYM(fopen_s);
NDV_API errno_t _wfopen_s(FILE **stream, const wchar_t *name, const wchar_t *mode) NDV_SYM(_wfopen_s);
NDV_API errno_t freopen_s(FILE **stream, const char *name, const char *mode, FILE *old) NDV_SYM(freopen_s);
/* Both write out what the streams of the process hold; 0. On Windows the first also closes them (all but the standard
 * ones), which the C library here cannot do without closing those too: they stay open until the process ends. */
NDV_API int _fcloseall(void) NDV_SYM(_fcloseall);
NDV_API int _flushall(void) NDV_SYM(_flushall);
NDV_API int _fileno(FILE *stream) NDV_SYM(_fileno);

#ifdef __cplusplus
extern "C++" {
template <size_t N> inline int vsprintf_s(char (&to)[N], const char *format, va_list args)
{
    return vsprintf_s(to, N, format, args);
}
template <size_t N> inline int vswprintf_s(wchar_t (&to)[N], const wchar_t *format, va_list args)
{
    return vswprintf_s(to, N, format, args);
}
template <size_t N> inline int sprintf_s(char (&to)[N], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int written = vsprintf_s(to, N, format, args);
    va_end(args);
    return written;
}
template <size_t N> inline int swprintf_s(wchar_t (&to)[N], const wchar_t *format, ...)
{
    va_list args;

    va_start(args, format);
    int written = vswprintf_s(to, N, format, args);
    va_end(args);
    return written;
}
template <size_t N> inline int _snprintf_s(char (&to)[N], size_t count, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int written = _vsnprintf_s(to, N, count, format, args);
    va_end(args);
    return written;
}
template <size_t N> inline int _snwprintf_s(wchar_t (&to)[N], size_t count, const wchar_t *format, ...)
{
    va_list args;

    va_start(args, format);
    int written = _vsnwprintf_s(to, N, count, format, args);
    va_end(args);
    return written;
}
}
#endif

#endif
