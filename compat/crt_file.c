/* SPDX-License-Identifier: MIT */

/* Files and scanning, as Microsoft's C run time has them. Source: win32-surface.md section 4.5. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "text.h"

/* A mode that the C library knows: text mode is the only one there is, the encoding is UTF-8, the hints are hints. */
static void mode_reduce(const char *mode, char *to, size_t size)
{
    size_t length = 0;

    for (; *mode && *mode != ',' && length < size - 1; mode++) {
        if (strchr("rwab+xe", *mode))
            to[length++] = *mode;
    }
    to[length] = '\0';
}

static FILE *file_open(const char *name, const char *mode, FILE *stream)
{
    char reduced[8];

    if (!name || !mode) {
        errno = EINVAL;
        return NULL;
    }
    mode_reduce(mode, reduced, sizeof(reduced));
    return stream ? freopen(name, reduced, stream) : fopen(name, reduced);
}

static FILE *file_open_wide(const wchar_t *name, const wchar_t *mode, FILE *stream)
{
    char *narrow_name = text_narrow_dup(name), *narrow_mode = text_narrow_dup(mode);
    FILE *file = file_open(narrow_name, narrow_mode, stream);
    int saved = errno;

    free(narrow_name);
    free(narrow_mode);
    errno = saved;
    return file;
}

FILE *_wfopen(const wchar_t *name, const wchar_t *mode)
{
    return file_open_wide(name, mode, NULL);
}

FILE *_wfreopen(const wchar_t *name, const wchar_t *mode, FILE *stream)
{
    return file_open_wide(name, mode, stream);
}

errno_t fopen_s(FILE **stream, const char *name, const char *mode)
{
    if (!stream) {
        errno = EINVAL;
        return EINVAL;
    }
    *stream = file_open(name, mode, NULL);
    return *stream ? 0 : errno;
}

errno_t _wfopen_s(FILE **stream, const wchar_t *name, const wchar_t *mode)
{
    if (!stream) {
        errno = EINVAL;
        return EINVAL;
    }
    *stream = file_open_wide(name, mode, NULL);
    return *stream ? 0 : errno;
}

errno_t freopen_s(FILE **stream, const char *name, const char *mode, FILE *old)
{
    if (!stream || !old) {
        errno = EINVAL;
        return EINVAL;
    }
    *stream = file_open(name, mode, old);
    return *stream ? 0 : errno;
}

int _fcloseall(void)
{
    fflush(NULL);
    return 0;
}

int _flushall(void)
{
    fflush(NULL);
    return 0;
}

int _fileno(FILE *stream)
{
    return fileno(stream);
}

/* One conversion of a scan format, as the C library has it. */
struct conversion {
    char spec[64]; /* "%", what it is made of, "%n" */
    bool assigns, text, counts;
    char kind;
    unsigned width; /* 0: none given */
};

/* Reads the conversion at *format (behind its '%'); false if it is too long or cut off. */
static bool conversion_read(const char **format, struct conversion *conversion)
{
    const char *p = *format, *set;
    size_t length = 0, set_length = 0;
    char prefix[4] = "";

    memset(conversion, 0, sizeof(*conversion));
    conversion->assigns = *p != '*';
    if (*p == '*')
        p++;
    while (isdigit((unsigned char)*p) && conversion->width < INT_MAX / 10)
        conversion->width = conversion->width * 10 + (unsigned)(*p++ - '0');
    if (strncmp(p, "I64", 3) == 0) {
        strcpy(prefix, "ll");
        p += 3;
    } else if (strncmp(p, "I32", 3) == 0) {
        p += 3;
    } else if (*p == 'I') {
        strcpy(prefix, "z");
        p++;
    } else {
        while (*p && strchr("hlLjztw", *p) && length < 2) {
            prefix[length++] = *p == 'w' ? 'l' : *p;
            p++;
        }
        prefix[length] = '\0';
    }
    conversion->kind = *p;
    if (!*p)
        return false;
    set = p++;
    if (*set == '[') {
        p += *p == '^';
        p += *p == ']';
        while (*p && *p != ']')
            p++;
        if (!*p)
            return false;
        p++;
    }
    set_length = (size_t)(p - set);
    conversion->text = strchr("scSC[", conversion->kind) != NULL;
    conversion->counts = conversion->kind == 'n';
    /* Room for the width, which the caller may lower to the size of a buffer. */
    if (set_length + 24 > sizeof(conversion->spec))
        return false;
    snprintf(conversion->spec, sizeof(conversion->spec), "%s%.*s%%n", prefix, (int)set_length, set);
    *format = p;
    return true;
}

/* Converts at *text. 1: done and assigned, 0: no match, EOF: nothing left; *text moves on. */
static int conversion_scan(const char **text, const struct conversion *conversion, void *to, unsigned width)
{
    char spec[96], number[16] = "";
    int used = -1, result;

    if (width)
        snprintf(number, sizeof(number), "%u", width);
    snprintf(spec, sizeof(spec), "%%%s%s%s", conversion->assigns ? "" : "*", number, conversion->spec);
    result = conversion->assigns ? sscanf(*text, spec, to, &used) : sscanf(*text, spec, &used);
    if (used < 0)
        return result == EOF ? EOF : 0;
    *text += used;
    return 1;
}

/* A text into a buffer of `size` characters. One character more than fits is asked for, to see whether it does. */
static int text_scan(const char **text, const struct conversion *conversion, void *to, unsigned size)
{
    bool wide =
        strstr(conversion->spec, "ls") == conversion->spec || strstr(conversion->spec, "lc") == conversion->spec ||
        strstr(conversion->spec, "l[") == conversion->spec || conversion->kind == 'S' || conversion->kind == 'C';
    size_t each = wide ? sizeof(wchar_t) : 1;
    bool single = conversion->kind == 'c' || conversion->kind == 'C';
    unsigned width = conversion->width ? conversion->width : single ? 1 : size;
    size_t length;
    void *room;
    int result;

    if (width > size)
        width = size;
    if (single && conversion->width > size)
        width = 0;
    if (!size || !width)
        goto err_short;
    room = calloc((size_t)width + 1, each);
    if (!room)
        return 0;
    result = conversion_scan(text, conversion, room, width);
    if (result == 1) {
        length = single ? width : wide ? wcslen(room) : strlen(room);
        if (!single && length >= size) {
            free(room);
            goto err_short;
        }
        memcpy(to, room, (length + !single) * each);
    }
    free(room);
    return result;

err_short:
    if (size)
        memset(to, 0, each);
    errno = ENOMEM;
    return 0;
}

int vsscanf_s(const char *text, const char *format, va_list args)
{
    const char *start = text;
    int assigned = 0, result;

    if (!text || !format) {
        errno = EINVAL;
        return EOF;
    }
    while (*format) {
        struct conversion conversion;
        void *to = NULL;

        if (isspace((unsigned char)*format)) {
            while (isspace((unsigned char)*format))
                format++;
            while (isspace((unsigned char)*text))
                text++;
            continue;
        }
        if (*format != '%' || format[1] == '%') {
            format += *format == '%';
            if (*text != *format)
                return !*text && !assigned ? EOF : assigned;
            format++;
            text++;
            continue;
        }
        format++;
        if (!conversion_read(&format, &conversion))
            return assigned;
        if (conversion.assigns)
            to = va_arg(args, void *);
        if (conversion.counts) {
            *(int *)to = (int)(text - start);
            continue;
        }
        if (conversion.assigns && conversion.text)
            result = text_scan(&text, &conversion, to, va_arg(args, unsigned));
        else
            result = conversion_scan(&text, &conversion, to, conversion.width);
        if (result != 1)
            return result == EOF && !assigned ? EOF : assigned;
        assigned += conversion.assigns;
    }
    return assigned;
}

int sscanf_s(const char *text, const char *format, ...)
{
    va_list args;
    int assigned;

    va_start(args, format);
    assigned = vsscanf_s(text, format, args);
    va_end(args);
    return assigned;
}
