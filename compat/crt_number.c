/* SPDX-License-Identifier: MIT */

/* Numbers and the environment, as Microsoft's C run time has them. Source: win32-surface.md section 4.5. */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "text.h"

/* `long` has 32 bits on Windows: larger values saturate there. */
static int32_t saturate(long long value)
{
    if (value > INT32_MAX || value < INT32_MIN) {
        errno = ERANGE;
        return value > 0 ? INT32_MAX : INT32_MIN;
    }
    return (int32_t)value;
}

int32_t _wtoi(const wchar_t *text)
{
    return saturate(wcstoll(text, NULL, 10));
}

int32_t _wtol(const wchar_t *text)
{
    return saturate(wcstoll(text, NULL, 10));
}

int32_t _ndv_atol(const char *text)
{
    return saturate(strtoll(text, NULL, 10));
}

long long _wtoi64(const wchar_t *text)
{
    return wcstoll(text, NULL, 10);
}

double _wtof(const wchar_t *text)
{
    return wcstod(text, NULL);
}

long long _atoi64(const char *text)
{
    return strtoll(text, NULL, 10);
}

long long _strtoi64(const char *text, char **end, int base)
{
    return strtoll(text, end, base);
}

unsigned long long _strtoui64(const char *text, char **end, int base)
{
    return strtoull(text, end, base);
}

long long _wcstoi64(const wchar_t *text, wchar_t **end, int base)
{
    return wcstoll(text, end, base);
}

unsigned long long _wcstoui64(const wchar_t *text, wchar_t **end, int base)
{
    return wcstoull(text, end, base);
}

char *_ui64toa(unsigned long long value, char *to, int base)
{
    char digits[65];
    size_t length = 0;

    if (!to || base < 2 || base > 36) {
        errno = EINVAL;
        return to;
    }
    do {
        digits[length++] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % (unsigned)base];
        value /= (unsigned)base;
    } while (value);
    for (size_t i = 0; i < length; i++)
        to[i] = digits[length - 1 - i];
    to[length] = '\0';
    return to;
}

char *_i64toa(long long value, char *to, int base)
{
    if (!to || base != 10 || value >= 0)
        return _ui64toa((unsigned long long)value, to, base);
    to[0] = '-';
    _ui64toa(0 - (unsigned long long)value, to + 1, base);
    return to;
}

char *_itoa(int value, char *to, int base)
{
    return base == 10 ? _i64toa(value, to, base) : _ui64toa((unsigned)value, to, base);
}

char *_ultoa(uint32_t value, char *to, int base)
{
    return _ui64toa(value, to, base);
}

errno_t getenv_s(size_t *length, char *to, rsize_t size, const char *name)
{
    const char *value;

    if (!length || !name || (!to && size)) {
        errno = EINVAL;
        return EINVAL;
    }
    if (to)
        to[0] = '\0';
    value = getenv(name);
    *length = value ? strlen(value) + 1 : 0;
    if (!value || size == 0)
        return 0;
    return strcpy_s(to, size, value);
}

errno_t _dupenv_s(char **value, size_t *length, const char *name)
{
    const char *found;

    if (!value || !name) {
        errno = EINVAL;
        return EINVAL;
    }
    *value = NULL;
    if (length)
        *length = 0;
    found = getenv(name);
    if (!found)
        return 0;
    *value = strdup(found);
    if (!*value)
        return ENOMEM;
    if (length)
        *length = strlen(found) + 1;
    return 0;
}

errno_t _wdupenv_s(wchar_t **value, size_t *length, const wchar_t *name)
{
    char *narrow_name, *narrow = NULL;
    errno_t error;

    if (!value || !name) {
        errno = EINVAL;
        return EINVAL;
    }
    *value = NULL;
    if (length)
        *length = 0;
    narrow_name = text_narrow_dup(name);
    error = narrow_name ? _dupenv_s(&narrow, NULL, narrow_name) : ENOMEM;
    if (narrow) {
        *value = text_widen_dup(narrow);
        if (!*value)
            error = ENOMEM;
        else if (length)
            *length = wcslen(*value) + 1;
    }
    free(narrow);
    free(narrow_name);
    return error;
}

errno_t _putenv_s(const char *name, const char *value)
{
    if (!name || !value) {
        errno = EINVAL;
        return EINVAL;
    }
    if ((*value ? setenv(name, value, 1) : unsetenv(name)) != 0)
        return errno;
    return 0;
}
