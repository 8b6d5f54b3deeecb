/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_CRT_STRING_H
#define NDVCOMPAT_CRT_STRING_H

/* Additions to <string.h> and <wchar.h>: see crt_types.h. */

#include <stddef.h>

#include "crt_types.h"

NDV_API errno_t strcpy_s(char *to, rsize_t size, const char *from) NDV_SYM(strcpy_s);
NDV_API errno_t strcat_s(char *to, rsize_t size, const char *from) NDV_SYM(strcat_s);
NDV_API errno_t strncpy_s(char *to, rsize_t size, const char *from, rsize_t count) NDV_SYM(strncpy_s);
NDV_API errno_t strncat_s(char *to, rsize_t size, const char *from, rsize_t count) NDV_SYM(strncat_s);
NDV_API errno_t wcscpy_s(wchar_t *to, rsize_t size, const wchar_t *from) NDV_SYM(wcscpy_s);
NDV_API errno_t wcscat_s(wchar_t *to, rsize_t size, const wchar_t *from) NDV_SYM(wcscat_s);
NDV_API errno_t wcsncpy_s(wchar_t *to, rsize_t size, const wchar_t *from, rsize_t count) NDV_SYM(wcsncpy_s);
NDV_API errno_t wcsncat_s(wchar_t *to, rsize_t size, const wchar_t *from, rsize_t count) NDV_SYM(wcsncat_s);

/* On failure the destination is filled with zeros. */
NDV_API errno_t memcpy_s(void *to, rsize_t size, const void *from, rsize_t count) NDV_SYM(memcpy_s);
NDV_API errno_t memmove_s(void *to, rsize_t size, const void *from, rsize_t count) NDV_SYM(memmove_s);

/* The POSIX strtok_r and wcstok. */
NDV_API char *strtok_s(char *text, const char *delimiters, char **context) NDV_SYM(strtok_s);
NDV_API wchar_t *wcstok_s(wchar_t *text, const wchar_t *delimiters, wchar_t **context) NDV_SYM(wcstok_s);
NDV_API size_t strnlen_s(const char *text, size_t size) NDV_SYM(strnlen_s);
NDV_API size_t wcsnlen_s(const wchar_t *text, size_t size) NDV_SYM(wcsnlen_s);
NDV_API errno_t strerror_s(char *to, rsize_t size, int error) NDV_SYM(strerror_s);

/* Without regard to case. */
NDV_API int _stricmp(const char *a, const char *b) NDV_SYM(_stricmp);
NDV_API int _strnicmp(const char *a, const char *b, size_t count) NDV_SYM(_strnicmp);
NDV_API int _wcsicmp(const wchar_t *a, const wchar_t *b) NDV_SYM(_wcsicmp);
NDV_API int _wcsnicmp(const wchar_t *a, const wchar_t *b, size_t count) NDV_SYM(_wcsnicmp);
NDV_API int _memicmp(const void *a, const void *b, size_t count) NDV_SYM(_memicmp);
#define _strcmpi _stricmp

/* The copy is the caller's, for free(). */
NDV_API char *_strdup(const char *text) NDV_SYM(_strdup);
NDV_API wchar_t *_wcsdup(const wchar_t *text) NDV_SYM(_wcsdup);

/* In place; the argument is returned. */
NDV_API char *_strlwr(char *text) NDV_SYM(_strlwr);
NDV_API char *_strupr(char *text) NDV_SYM(_strupr);
NDV_API wchar_t *_wcslwr(wchar_t *text) NDV_SYM(_wcslwr);
NDV_API wchar_t *_wcsupr(wchar_t *text) NDV_SYM(_wcsupr);

#ifdef __cplusplus
extern "C++" {
template <size_t N> inline errno_t strcpy_s(char (&to)[N], const char *from)
{
    return strcpy_s(to, N, from);
}
template <size_t N> inline errno_t strcat_s(char (&to)[N], const char *from)
{
    return strcat_s(to, N, from);
}
template <size_t N> inline errno_t strncpy_s(char (&to)[N], const char *from, rsize_t count)
{
    return strncpy_s(to, N, from, count);
}
template <size_t N> inline errno_t strncat_s(char (&to)[N], const char *from, rsize_t count)
{
    return strncat_s(to, N, from, count);
}
template <size_t N> inline errno_t wcscpy_s(wchar_t (&to)[N], const wchar_t *from)
{
    return wcscpy_s(to, N, from);
}
template <size_t N> inline errno_t wcscat_s(wchar_t (&to)[N], const wchar_t *from)
{
    return wcscat_s(to, N, from);
}
template <size_t N> inline errno_t wcsncpy_s(wchar_t (&to)[N], const wchar_t *from, rsize_t count)
{
    return wcsncpy_s(to, N, from, count);
}
template <size_t N> inline errno_t wcsncat_s(wchar_t (&to)[N], const wchar_t *from, rsize_t count)
{
    return wcsncat_s(to, N, from, count);
}
template <size_t N> inline errno_t strerror_s(char (&to)[N], int error)
{
    return strerror_s(to, N, error);
}
}
#endif

#endif
