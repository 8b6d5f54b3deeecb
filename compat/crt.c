/* SPDX-License-Identifier: MIT */

/* Text and file functions of Microsoft's C run time. Source: win32-surface.md section 4.5. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <strings.h>
#include <wctype.h>

#include "text.h"

static errno_t failed(errno_t error)
{
    errno = error;
    return error;
}

/* Each secure function for both kinds of characters. `from` is read no further than `count`. A destination that cannot
 * hold the text and its terminator is left empty, unless the caller asked for what fits. */
#define SECURE_COPY(name, type, length_of, copy)                                            \
    static errno_t name(type *to, size_t size, size_t used, const type *from, size_t count) \
    {                                                                                       \
        bool truncate = count == _TRUNCATE;                                                 \
        size_t room, length;                                                                \
                                                                                            \
        if (!to || size == 0)                                                               \
            return failed(EINVAL);                                                          \
        if (used == size) { /* not terminated */                                            \
            to[0] = 0;                                                                      \
            return failed(EINVAL);                                                          \
        }                                                                                   \
        if (!from && count) {                                                               \
            to[0] = 0;                                                                      \
            return failed(EINVAL);                                                          \
        }                                                                                   \
        room = size - used;                                                                 \
        length = count ? length_of(from, count < room ? count : room) : 0;                  \
        if (length < room) {                                                                \
            copy(to + used, from ? from : to, length);                                      \
            to[used + length] = 0;                                                          \
            return 0;                                                                       \
        }                                                                                   \
        if (truncate) {                                                                     \
            copy(to + used, from, room - 1);                                                \
            to[size - 1] = 0;                                                               \
            return STRUNCATE;                                                               \
        }                                                                                   \
        to[0] = 0;                                                                          \
        return failed(ERANGE);                                                              \
    }
SECURE_COPY(copy_narrow, char, strnlen, memmove)
SECURE_COPY(copy_wide, wchar_t, wcsnlen, wmemmove)

/* No text is longer: unlike _TRUNCATE it does not ask for what fits. */
#define WHOLE ((size_t)-2)

errno_t strcpy_s(char *to, rsize_t size, const char *from)
{
    return copy_narrow(to, size, 0, from, WHOLE);
}

errno_t strncpy_s(char *to, rsize_t size, const char *from, rsize_t count)
{
    return copy_narrow(to, size, 0, from, count);
}

errno_t strcat_s(char *to, rsize_t size, const char *from)
{
    return copy_narrow(to, size, to ? strnlen(to, size) : 0, from, WHOLE);
}

errno_t strncat_s(char *to, rsize_t size, const char *from, rsize_t count)
{
    return copy_narrow(to, size, to ? strnlen(to, size) : 0, from, count);
}

errno_t wcscpy_s(wchar_t *to, rsize_t size, const wchar_t *from)
{
    return copy_wide(to, size, 0, from, WHOLE);
}

errno_t wcsncpy_s(wchar_t *to, rsize_t size, const wchar_t *from, rsize_t count)
{
    return copy_wide(to, size, 0, from, count);
}

errno_t wcscat_s(wchar_t *to, rsize_t size, const wchar_t *from)
{
    return copy_wide(to, size, to ? wcsnlen(to, size) : 0, from, WHOLE);
}

errno_t wcsncat_s(wchar_t *to, rsize_t size, const wchar_t *from, rsize_t count)
{
    return copy_wide(to, size, to ? wcsnlen(to, size) : 0, from, count);
}

errno_t memmove_s(void *to, rsize_t size, const void *from, rsize_t count)
{
    if (count == 0)
        return 0;
    if (!to)
        return failed(EINVAL);
    if (!from || count > size) {
        memset(to, 0, size);
        return failed(from ? ERANGE : EINVAL);
    }
    memmove(to, from, count);
    return 0;
}

errno_t memcpy_s(void *to, rsize_t size, const void *from, rsize_t count)
{
    return memmove_s(to, size, from, count);
}

char *strtok_s(char *text, const char *delimiters, char **context)
{
    return strtok_r(text, delimiters, context);
}

wchar_t *wcstok_s(wchar_t *text, const wchar_t *delimiters, wchar_t **context)
{
    return wcstok(text, delimiters, context);
}

size_t strnlen_s(const char *text, size_t size)
{
    return text ? strnlen(text, size) : 0;
}

size_t wcsnlen_s(const wchar_t *text, size_t size)
{
    return text ? wcsnlen(text, size) : 0;
}

errno_t strerror_s(char *to, rsize_t size, int error)
{
    char room[256];

    return copy_narrow(to, size, 0, strerror_r(error, room, sizeof(room)), _TRUNCATE) == EINVAL ? EINVAL : 0;
}

int _stricmp(const char *a, const char *b)
{
    return strcasecmp(a, b);
}

int _strnicmp(const char *a, const char *b, size_t count)
{
    return strncasecmp(a, b, count);
}

int _wcsicmp(const wchar_t *a, const wchar_t *b)
{
    return wcscasecmp(a, b);
}

int _wcsnicmp(const wchar_t *a, const wchar_t *b, size_t count)
{
    return wcsncasecmp(a, b, count);
}

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}

static int upper(int c)
{
    return c >= 'a' && c <= 'z' ? c + 'A' - 'a' : c;
}

int _memicmp(const void *a, const void *b, size_t count)
{
    const unsigned char *pa = a, *pb = b;

    for (size_t i = 0; i < count; i++) {
        int difference = lower(pa[i]) - lower(pb[i]);

        if (difference)
            return difference;
    }
    return 0;
}

char *_strdup(const char *text)
{
    return text ? strdup(text) : NULL;
}

wchar_t *_wcsdup(const wchar_t *text)
{
    return text ? wcsdup(text) : NULL;
}

char *_strlwr(char *text)
{
    for (char *p = text; *p; p++)
        *p = (char)lower(*p);
    return text;
}

char *_strupr(char *text)
{
    for (char *p = text; *p; p++)
        *p = (char)upper(*p);
    return text;
}

wchar_t *_wcslwr(wchar_t *text)
{
    for (wchar_t *p = text; *p; p++)
        *p = (wchar_t)towlower((wint_t)*p);
    return text;
}

wchar_t *_wcsupr(wchar_t *text)
{
    for (wchar_t *p = text; *p; p++)
        *p = (wchar_t)towupper((wint_t)*p);
    return text;
}

/* The secure printf functions. */

int vsprintf_s(char *to, size_t size, const char *format, va_list args)
{
    int length = -1;

    if (!to || !size || !format) {
        if (to && size)
            to[0] = '\0';
        failed(EINVAL);
        return -1;
    }
    length = vsnprintf(to, size, format, args);
    if (length >= 0 && (size_t)length < size)
        return length;
    to[0] = '\0';
    if (length >= 0)
        failed(ERANGE);
    return -1;
}

/* The C library does not say whether a wide text is too long or none at all: ERANGE unless it left another reason. */
int vswprintf_s(wchar_t *to, size_t size, const wchar_t *format, va_list args)
{
    int length, saved = errno;

    if (!to || !size || !format) {
        if (to && size)
            to[0] = L'\0';
        failed(EINVAL);
        return -1;
    }
    errno = 0;
    length = vswprintf(to, size, format, args);
    if (length >= 0) {
        errno = saved;
        return length;
    }
    to[0] = L'\0';
    if (errno != EILSEQ)
        errno = ERANGE;
    return -1;
}

/* At most `count` characters of the text into `to`, then a terminator if there is room for one. Without a buffer the length
 * is asked for. */
int _vsnprintf(char *to, size_t count, const char *format, va_list args)
{
    char room[512], *text = room;
    va_list again;
    int length;

    if (!to && !count)
        return _vscprintf(format, args);
    va_copy(again, args);
    length = vsnprintf(room, sizeof(room), format, args);
    if (length >= 0 && (size_t)length >= sizeof(room)) {
        text = malloc((size_t)length + 1);
        length = text ? vsnprintf(text, (size_t)length + 1, format, again) : -1;
    }
    va_end(again);
    if (length >= 0) {
        memcpy(to, text, (size_t)length < count ? (size_t)length + 1 : count);
        if ((size_t)length > count)
            length = -1;
    }
    if (text != room)
        free(text);
    return length;
}

int _vsnwprintf(wchar_t *to, size_t count, const wchar_t *format, va_list args)
{
    va_list again;
    wchar_t *text;
    int length;

    if (!to && !count)
        return _vscwprintf(format, args);
    va_copy(again, args);
    length = _vscwprintf(format, args);
    text = length < 0 ? NULL : malloc(((size_t)length + 1) * sizeof(*text));
    length = text ? vswprintf(text, (size_t)length + 1, format, again) : -1;
    va_end(again);
    if (length >= 0) {
        wmemcpy(to, text, (size_t)length < count ? (size_t)length + 1 : count);
        if ((size_t)length > count)
            length = -1;
    }
    free(text);
    return length;
}

/* A text longer than the buffer is an error unless `count` says that less is enough. */
int _vsnprintf_s(char *to, size_t size, size_t count, const char *format, va_list args)
{
    size_t most = count < size ? count : size - 1;
    int length;

    if (!to || !size || !format) {
        failed(EINVAL);
        return -1;
    }
    length = vsnprintf(to, most + 1, format, args);
    if (length >= 0 && (size_t)length <= most)
        return length;
    if (length < 0 || (count >= size && count != _TRUNCATE)) {
        to[0] = '\0';
        if (length >= 0)
            failed(ERANGE);
    }
    return -1;
}

int _vsnwprintf_s(wchar_t *to, size_t size, size_t count, const wchar_t *format, va_list args)
{
    size_t most = count < size ? count : size - 1;
    int length;

    if (!to || !size || !format) {
        failed(EINVAL);
        return -1;
    }
    to[0] = L'\0';
    length = _vsnwprintf(to, most, format, args);
    if (length >= 0) {
        to[length] = L'\0';
        return length;
    }
    to[count >= size && count != _TRUNCATE ? 0 : most] = L'\0';
    if (count >= size && count != _TRUNCATE)
        failed(ERANGE);
    return -1;
}

int _vscprintf(const char *format, va_list args)
{
    return vsnprintf(NULL, 0, format, args);
}

#define FORWARD(call)       \
    va_list args;           \
    int written;            \
                            \
    va_start(args, format); \
    written = call;         \
    va_end(args);           \
    return written

int sprintf_s(char *to, size_t size, const char *format, ...)
{
    FORWARD(vsprintf_s(to, size, format, args));
}

int swprintf_s(wchar_t *to, size_t size, const wchar_t *format, ...)
{
    FORWARD(vswprintf_s(to, size, format, args));
}

int _snprintf(char *to, size_t count, const char *format, ...)
{
    FORWARD(_vsnprintf(to, count, format, args));
}

int _snwprintf(wchar_t *to, size_t count, const wchar_t *format, ...)
{
    FORWARD(_vsnwprintf(to, count, format, args));
}

int _snprintf_s(char *to, size_t size, size_t count, const char *format, ...)
{
    FORWARD(_vsnprintf_s(to, size, count, format, args));
}

int _snwprintf_s(wchar_t *to, size_t size, size_t count, const wchar_t *format, ...)
{
    FORWARD(_vsnwprintf_s(to, size, count, format, args));
}

int _scprintf(const char *format, ...)
{
    FORWARD(_vscprintf(format, args));
}

int _scwprintf(const wchar_t *format, ...)
{
    FORWARD(_vscwprintf(format, args));
}
