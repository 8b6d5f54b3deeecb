/* SPDX-License-Identifier: MIT */

/* The printf family: rewrites a format of Microsoft's C run time to one of the C library's and calls that. Wide output is
 * formatted first and written as UTF-8 bytes: a stream that has been written to with the C library's wide functions would
 * refuse narrow ones, and every Network Direct sample mixes both. Source: win32-surface.md section 7.1. */

#define ND_COMPAT_NATIVE_STDIO 1
#include "printf.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Longer formats and texts go to the heap. */
#define FORMAT_ROOM 256
#define TEXT_ROOM   512

/* The two kinds of format string as one. */
struct format {
    bool wide;      /* a wide function: %s is a wide string */
    bool crossing;  /* it has a conversion between wide and narrow text, for which the C library needs a locale */
    bool different; /* the rewritten format is another */
    const char *narrow_in;
    const wchar_t *wide_in;
    char *narrow_out;
    wchar_t *wide_out;
    size_t in, out;
};

static uint32_t peek(const struct format *format)
{
    return format->wide ? (uint32_t)format->wide_in[format->in]
                        : (uint32_t)(unsigned char)format->narrow_in[format->in];
}

static bool next_is(const struct format *format, const char *word)
{
    for (size_t i = 0; word[i]; i++) {
        uint32_t c = format->wide ? (uint32_t)format->wide_in[format->in + i]
                                  : (uint32_t)(unsigned char)format->narrow_in[format->in + i];

        if (c != (unsigned char)word[i])
            return false;
    }
    return true;
}

static void put(struct format *format, uint32_t c)
{
    if (format->wide)
        format->wide_out[format->out++] = (wchar_t)c;
    else
        format->narrow_out[format->out++] = (char)c;
}

static void copy(struct format *format)
{
    put(format, peek(format));
    format->in++;
}

static bool is_one_of(uint32_t c, const char *set)
{
    return c && c < 128 && strchr(set, (int)c);
}

/* %s, %c, %S, %C. Without a prefix the small letters are the family's own kind of text and the capital ones the other;
 * h makes it narrow, l and w wide. */
static void rewrite_text(struct format *format, uint32_t prefix, uint32_t c)
{
    bool capital = c == 'S' || c == 'C';
    bool wide = prefix == 'h' ? false : prefix == 'l' || prefix == 'w' ? true : format->wide != capital;

    if (wide)
        put(format, 'l');
    put(format, c == 'S' ? 's' : c == 'C' ? 'c' : c);
    format->in++;
    format->crossing |= wide != format->wide;
    format->different = true;
}

/* One conversion; format->in is behind its '%', which has been copied. */
static void rewrite_conversion(struct format *format)
{
    uint32_t c, prefix = 0;

    while (is_one_of(peek(format), "-+ #0'"))
        copy(format);
    while (is_one_of(peek(format), "0123456789*.$"))
        copy(format);
    if (peek(format) == 'I') {
        bool is64 = next_is(format, "I64"), is32 = next_is(format, "I32");
        size_t in = format->in;

        format->in += is64 || is32 ? 3 : 1;
        if (is_one_of(peek(format), "dioxXu")) {
            format->different = true;
            if (is64)
                put(format, 'l');
            if (!is32)
                put(format, is64 ? 'l' : 'z');
        } else {
            format->in = in;
        }
    } else if (is_one_of(peek(format), "hlw")) {
        prefix = peek(format);
        format->in++;
        if (is_one_of(peek(format), "sScC")) {
            rewrite_text(format, prefix, peek(format));
            return;
        }
        put(format, prefix);
    }
    while (is_one_of(peek(format), "hlLjztq"))
        copy(format);
    c = peek(format);
    if (is_one_of(c, "sScC"))
        rewrite_text(format, 0, c);
    else if (c)
        copy(format);
}

static void rewrite(struct format *format)
{
    while (peek(format)) {
        uint32_t c = peek(format);

        copy(format);
        if (c != '%')
            continue;
        if (peek(format) == '%')
            copy(format);
        else
            rewrite_conversion(format);
    }
    put(format, 0);
}

/* A program in the "C" locale, where every program starts, gets UTF-8 for the texts of one call. In another locale the
 * program has said what its narrow text is. Numbers are formatted as before. */
static locale_t locale_enter(const struct format *format)
{
    static locale_t utf8;
    locale_t made, none = (locale_t)0;
    const char *name;

    if (!format->crossing || MB_CUR_MAX > 1 || uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
        return (locale_t)0;
    name = setlocale(LC_CTYPE, NULL);
    if (!name || (strcmp(name, "C") != 0 && strcmp(name, "POSIX") != 0))
        return (locale_t)0;
    if (!__atomic_load_n(&utf8, __ATOMIC_ACQUIRE)) {
        made = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
        if (!made)
            return (locale_t)0;
        if (!__atomic_compare_exchange_n(&utf8, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            freelocale(made);
    }
    return uselocale(utf8);
}

static void locale_leave(locale_t old)
{
    if (old)
        uselocale(old);
}

/* Whether a narrow format can need rewriting: the usual one cannot, and costs one look. */
static bool narrow_needs_rewriting(const char *format)
{
    const char *p = format;

    while ((p = strchr(p, '%'))) {
        p += 1 + strspn(p + 1, "-+ #0'123456789*.$");
        if (*p == 'I' || *p == 'w' || *p == 'S' || *p == 'C' || *p == 'h' || *p == 'l')
            return true;
        if (*p)
            p++;
    }
    return false;
}

/* Calls the C library with the rewritten format: to the stream, or to the buffer if there is none. */
static int narrow_format(FILE *stream, char *to, size_t size, const char *text, va_list args)
{
    char room[FORMAT_ROOM], *rewritten = room;
    struct format format = { .narrow_in = text };
    locale_t old;
    size_t length;
    int result;

    if (!narrow_needs_rewriting(text))
        return stream ? vfprintf(stream, text, args) : vsnprintf(to, size, text, args);
    /* No conversion becomes longer than twice its length. */
    length = strlen(text) * 2 + 1;
    if (length > sizeof(room)) {
        rewritten = malloc(length);
        if (!rewritten)
            return -1;
    }
    format.narrow_out = rewritten;
    rewrite(&format);
    old = locale_enter(&format);
    result = stream ? vfprintf(stream, rewritten, args) : vsnprintf(to, size, rewritten, args);
    locale_leave(old);
    if (rewritten != room)
        free(rewritten);
    return result;
}

/* The wide functions. `write` gets the rewritten format. */
static int wide_format(const wchar_t *text, va_list args,
                       int (*write)(void *context, const wchar_t *rewritten, va_list args), void *context)
{
    wchar_t room[FORMAT_ROOM], *rewritten = room;
    struct format format = { .wide = true, .wide_in = text };
    size_t length = wcslen(text) * 2 + 1;
    locale_t old;
    int result;

    if (length > FORMAT_ROOM) {
        rewritten = malloc(length * sizeof(*rewritten));
        if (!rewritten)
            return -1;
    }
    format.wide_out = rewritten;
    rewrite(&format);
    old = locale_enter(&format);
    result = write(context, rewritten, args);
    locale_leave(old);
    if (rewritten != room)
        free(rewritten);
    return result;
}

static bool write_bytes(FILE *stream, const wchar_t *text, size_t length)
{
    char room[TEXT_ROOM], *bytes = room;
    size_t size = text_narrow(text, length, room, sizeof(room), NULL);
    bool written;

    if (size > sizeof(room)) {
        bytes = malloc(size);
        if (!bytes)
            return false;
        text_narrow(text, length, bytes, size, NULL);
    }
    written = fwrite(bytes, 1, size, stream) == size;
    if (bytes != room)
        free(bytes);
    return written;
}

static int write_stream(void *context, const wchar_t *rewritten, va_list args)
{
    wchar_t room[TEXT_ROOM], *text = room;
    FILE *stream = context, *memory;
    size_t size;
    va_list again;
    int length;

    /* Somebody else made it a wide stream: it takes nothing else. */
    if (fwide(stream, 0) > 0)
        return vfwprintf(stream, rewritten, args);
    va_copy(again, args);
    length = vswprintf(room, TEXT_ROOM, rewritten, args);
    if (length < 0) {
        /* Too long, or no text at all; which of both shows now. */
        memory = open_wmemstream(&text, &size);
        if (memory) {
            length = vfwprintf(memory, rewritten, again);
            fclose(memory);
        } else {
            text = room;
        }
    }
    va_end(again);
    if (length > 0 && !write_bytes(stream, text, (size_t)length))
        length = -1;
    if (text != room)
        free(text);
    return length;
}

struct buffer {
    wchar_t *to;
    size_t size;
};

static int write_buffer(void *context, const wchar_t *rewritten, va_list args)
{
    struct buffer *buffer = context;
    int length = vswprintf(buffer->to, buffer->size, rewritten, args);

    if (length < 0 && buffer->size)
        buffer->to[buffer->size - 1] = L'\0';
    return length;
}

/* Only the length. */
static int write_nothing(void *context, const wchar_t *rewritten, va_list args)
{
    wchar_t *text = NULL;
    size_t size;
    FILE *memory = open_wmemstream(&text, &size);
    int length;

    (void)context;
    if (!memory)
        return -1;
    length = vfwprintf(memory, rewritten, args);
    fclose(memory);
    free(text);
    return length;
}

int ndv__vscwprintf(const wchar_t *format, va_list args)
{
    return wide_format(format, args, write_nothing, NULL);
}

int ndv_vfprintf(FILE *stream, const char *format, va_list args)
{
    return narrow_format(stream, NULL, 0, format, args);
}

int ndv_vprintf(const char *format, va_list args)
{
    return narrow_format(stdout, NULL, 0, format, args);
}

int ndv_vsnprintf(char *to, size_t size, const char *format, va_list args)
{
    return narrow_format(NULL, to, size, format, args);
}

int ndv_vsprintf(char *to, const char *format, va_list args)
{
    return narrow_format(NULL, to, INT32_MAX, format, args);
}

int ndv_vfwprintf(FILE *stream, const wchar_t *format, va_list args)
{
    return wide_format(format, args, write_stream, stream);
}

int ndv_vwprintf(const wchar_t *format, va_list args)
{
    return wide_format(format, args, write_stream, stdout);
}

int ndv_vswprintf(wchar_t *to, size_t size, const wchar_t *format, va_list args)
{
    struct buffer buffer = { to, size };

    return wide_format(format, args, write_buffer, &buffer);
}

/* Body of a function with variable arguments that passes them on. */
#define FORWARD(call)       \
    va_list args;           \
    int written;            \
                            \
    va_start(args, format); \
    written = call;         \
    va_end(args);           \
    return written

int ndv_printf(const char *format, ...)
{
    FORWARD(ndv_vfprintf(stdout, format, args));
}

int ndv_fprintf(FILE *stream, const char *format, ...)
{
    FORWARD(ndv_vfprintf(stream, format, args));
}

int ndv_sprintf(char *to, const char *format, ...)
{
    FORWARD(ndv_vsprintf(to, format, args));
}

int ndv_snprintf(char *to, size_t size, const char *format, ...)
{
    FORWARD(ndv_vsnprintf(to, size, format, args));
}

int ndv_wprintf(const wchar_t *format, ...)
{
    FORWARD(ndv_vfwprintf(stdout, format, args));
}

int ndv_fwprintf(FILE *stream, const wchar_t *format, ...)
{
    FORWARD(ndv_vfwprintf(stream, format, args));
}

int ndv_swprintf(wchar_t *to, size_t size, const wchar_t *format, ...)
{
    FORWARD(ndv_vswprintf(to, size, format, args));
}

int ndv_fputws(const wchar_t *text, FILE *stream)
{
    if (fwide(stream, 0) > 0)
        return fputws(text, stream);
    return write_bytes(stream, text, wcslen(text)) ? 0 : EOF;
}

wint_t ndv_fputwc(wchar_t character, FILE *stream)
{
    if (fwide(stream, 0) > 0)
        return fputwc(character, stream);
    return write_bytes(stream, &character, 1) ? (wint_t)character : WEOF;
}

wint_t ndv_putwc(wchar_t character, FILE *stream)
{
    return ndv_fputwc(character, stream);
}

wint_t ndv_putwchar(wchar_t character)
{
    return ndv_fputwc(character, stdout);
}
