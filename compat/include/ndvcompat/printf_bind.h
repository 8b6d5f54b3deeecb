/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_PRINTF_BIND_H
#define NDVCOMPAT_PRINTF_BIND_H

/* The printf family as Microsoft's C run time has it: %I64d, %Id and %I32d; %s in the wide functions is a wide string and
 * %S the other kind; wide and narrow output mix on one stream, as UTF-8. Done by assembler names and not by macros, since
 * the C++ library undefines macros of such names and std::printf is to work as well. These declarations come before the
 * system's: what declares a function again keeps its assembler name, also where the system's headers already use it.
 * ND_COMPAT_NATIVE_STDIO leaves the system's functions. Source: win32-surface.md section 7.1. */

#ifndef ND_COMPAT_NATIVE_STDIO

#include <features.h>
#include <stdarg.h>
#include <stddef.h>
#include <bits/types/FILE.h>

#include "compiler.h"

/* C++ demands the exception specification of the system's declaration in each one. */
#if defined(__cplusplus) && defined(__THROWNL)
#define NDV_THROWNL __THROWNL
#else
#define NDV_THROWNL
#endif

NDV_API int printf(const char *format, ...) NDV_SYM(printf);
NDV_API int fprintf(FILE *stream, const char *format, ...) NDV_SYM(fprintf);
NDV_API int sprintf(char *buffer, const char *format, ...) NDV_THROWNL NDV_SYM(sprintf);
NDV_API int snprintf(char *buffer, size_t size, const char *format, ...) NDV_THROWNL NDV_SYM(snprintf);
NDV_API int vprintf(const char *format, __builtin_va_list args) NDV_SYM(vprintf);
NDV_API int vfprintf(FILE *stream, const char *format, __builtin_va_list args) NDV_SYM(vfprintf);
NDV_API int vsprintf(char *buffer, const char *format, __builtin_va_list args) NDV_THROWNL NDV_SYM(vsprintf);
NDV_API int vsnprintf(char *buffer, size_t size, const char *format, __builtin_va_list args) NDV_THROWNL
    NDV_SYM(vsnprintf);

/* Sizes and results of the wide functions count characters. */
NDV_API int wprintf(const wchar_t *format, ...) NDV_SYM(wprintf);
NDV_API int fwprintf(FILE *stream, const wchar_t *format, ...) NDV_SYM(fwprintf);
NDV_API int swprintf(wchar_t *buffer, size_t size, const wchar_t *format, ...) NDV_THROWNL NDV_SYM(swprintf);
NDV_API int vwprintf(const wchar_t *format, __builtin_va_list args) NDV_SYM(vwprintf);
NDV_API int vfwprintf(FILE *stream, const wchar_t *format, __builtin_va_list args) NDV_SYM(vfwprintf);
NDV_API int vswprintf(wchar_t *buffer, size_t size, const wchar_t *format, __builtin_va_list args) NDV_THROWNL
    NDV_SYM(vswprintf);

/* Would turn the stream to wide orientation, after which printf prints nothing. */
NDV_API int fputws(const wchar_t *text, FILE *stream) NDV_SYM(fputws);
NDV_API __WINT_TYPE__ fputwc(wchar_t character, FILE *stream) NDV_SYM(fputwc);
NDV_API __WINT_TYPE__ putwc(wchar_t character, FILE *stream) NDV_SYM(putwc);
NDV_API __WINT_TYPE__ putwchar(wchar_t character) NDV_SYM(putwchar);

#endif

#endif
