/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_PRINTF_H
#define NDVERBS_PRINTF_H

/* The functions behind ndvcompat/printf_bind.h by the names they are exported under. printf.c needs the C library's own
 * beside them, so it may not see that header. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#define PRINTF_API __attribute__((visibility("default")))

PRINTF_API int ndv_printf(const char *format, ...);
PRINTF_API int ndv_fprintf(FILE *stream, const char *format, ...);
PRINTF_API int ndv_sprintf(char *to, const char *format, ...);
PRINTF_API int ndv_snprintf(char *to, size_t size, const char *format, ...);
PRINTF_API int ndv_vprintf(const char *format, va_list args);
PRINTF_API int ndv_vfprintf(FILE *stream, const char *format, va_list args);
PRINTF_API int ndv_vsprintf(char *to, const char *format, va_list args);
PRINTF_API int ndv_vsnprintf(char *to, size_t size, const char *format, va_list args);
PRINTF_API int ndv_wprintf(const wchar_t *format, ...);
PRINTF_API int ndv_fwprintf(FILE *stream, const wchar_t *format, ...);
PRINTF_API int ndv_swprintf(wchar_t *to, size_t size, const wchar_t *format, ...);
PRINTF_API int ndv_vwprintf(const wchar_t *format, va_list args);
PRINTF_API int ndv_vfwprintf(FILE *stream, const wchar_t *format, va_list args);
PRINTF_API int ndv_vswprintf(wchar_t *to, size_t size, const wchar_t *format, va_list args);
PRINTF_API int ndv__vscwprintf(const wchar_t *format, va_list args);
PRINTF_API int ndv_fputws(const wchar_t *text, FILE *stream);
PRINTF_API wint_t ndv_fputwc(wchar_t character, FILE *stream);
PRINTF_API wint_t ndv_putwc(wchar_t character, FILE *stream);
PRINTF_API wint_t ndv_putwchar(wchar_t character);

#endif
