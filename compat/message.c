/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <windows.h>

#include "text.h"

/* FormatMessage: builds the message as UTF-8 in a memory stream, then hands it over as the caller wants it.
 * Source: win32-surface.md section 4.3. */

#define INSERTS 99 /* %1 to %99 */

struct inserts {
    uintptr_t values[INSERTS];
    bool wide; /* texts are wide unless their format says otherwise */
};

/* The number of an insert at `p` (behind the '%'), 0 if it is none. */
static unsigned insert_number(const char **p)
{
    unsigned number = 0;

    for (int i = 0; i < 2 && isdigit((unsigned char)**p); i++)
        number = number * 10 + (unsigned)(*(*p)++ - '0');
    return number;
}

static unsigned inserts_used(const char *text)
{
    unsigned most = 0;

    while ((text = strchr(text, '%'))) {
        text++;
        if (*text >= '1' && *text <= '9') {
            unsigned number = insert_number(&text);

            most = number > most ? number : most;
        } else if (*text) {
            text++;
        }
    }
    return most;
}

/* One insert in the printf format that the message gives for it ("!08x!"), or as a text. */
static void insert_write(FILE *out, const struct inserts *inserts, unsigned number, const char *spec, size_t length)
{
    uintptr_t value = inserts->values[number - 1];
    char format[32];
    char kind;

    if (length == 0) {
        spec = "s";
        length = 1;
    }
    if (length + 2 > sizeof(format))
        return;
    format[0] = '%';
    memcpy(format + 1, spec, length);
    format[length + 1] = '\0';
    kind = spec[length - 1];
    if (kind == 's' || kind == 'S') {
        char before = length > 1 ? spec[length - 2] : '\0';
        bool wide = before == 'h' ? false : before == 'l' || before == 'w' ? true : inserts->wide != (kind == 'S');
        const char *text = value ? NULL : "(null)";
        char *narrow = NULL;

        if (!text)
            text = wide ? (narrow = text_narrow_dup((const wchar_t *)value)) : (const char *)value;
        /* What is left is a narrow text, with its flags and widths. */
        format[before == 'h' || before == 'l' || before == 'w' ? length - 1 : length] = 's';
        format[before == 'h' || before == 'l' || before == 'w' ? length : length + 1] = '\0';
        fprintf(out, format, text ? text : "");
        free(narrow);
    } else if (kind == 'p') {
        fprintf(out, format, value);
    } else if (strstr(format, "I64") || strstr(format, "ll")) {
        fprintf(out, format, (uint64_t)value);
    } else if (strchr("diouxXc", kind)) {
        fprintf(out, format, (unsigned)value);
    } else {
        fwrite(format, 1, length + 1, out);
    }
}

/* The escapes of a message text; false at "%0", which ends it. */
static bool escape_write(FILE *out, const char **text, const struct inserts *inserts)
{
    const char *p = *text;

    if (*p >= '1' && *p <= '9') {
        unsigned number = insert_number(&p);
        const char *spec = p, *end = *p == '!' ? strchr(p + 1, '!') : NULL;

        if (end) {
            insert_write(out, inserts, number, spec + 1, (size_t)(end - spec - 1));
            p = end + 1;
        } else {
            insert_write(out, inserts, number, NULL, 0);
        }
        *text = p;
        return true;
    }
    *text = *p ? p + 1 : p;
    switch (*p) {
    case '0':
        return false;
    case 'n':
        fputs("\r\n", out);
        break;
    case 'r':
        fputc('\r', out);
        break;
    case 't':
        fputc('\t', out);
        break;
    case 'b':
        fputc(' ', out);
        break;
    case '\0':
        break;
    default:
        fputc(*p, out);
        break;
    }
    return true;
}

static void message_write(FILE *out, const char *text, DWORD flags, const struct inserts *inserts)
{
    bool one_line = (flags & FORMAT_MESSAGE_MAX_WIDTH_MASK) == FORMAT_MESSAGE_MAX_WIDTH_MASK;

    while (*text) {
        if (one_line && (*text == '\r' || *text == '\n')) {
            text += text[0] == '\r' && text[1] == '\n' ? 2 : 1;
            fputc(' ', out);
        } else if (*text == '%' && !(flags & FORMAT_MESSAGE_IGNORE_INSERTS)) {
            text++;
            if (!escape_write(out, &text, inserts))
                return;
        } else {
            fputc(*text++, out);
        }
    }
}

static bool inserts_take(struct inserts *inserts, const char *text, DWORD flags, va_list *args)
{
    unsigned used = flags & FORMAT_MESSAGE_IGNORE_INSERTS ? 0 : inserts_used(text);

    if (used && !args)
        return false;
    for (unsigned i = 0; i < used; i++) {
        if (flags & FORMAT_MESSAGE_ARGUMENT_ARRAY)
            inserts->values[i] = ((const uintptr_t *)(const void *)args)[i];
        else
            inserts->values[i] = va_arg(*args, uintptr_t);
    }
    return true;
}

/* The whole message as UTF-8, for free(); NULL with *error set. */
static char *message_build(DWORD flags, const char *source, DWORD code, va_list *args, bool wide, DWORD *error)
{
    struct inserts inserts = { .wide = wide };
    const char *phrase = NULL;
    char *sentence = NULL, *built = NULL;
    size_t size;
    FILE *out;

    *error = ERROR_INVALID_PARAMETER;
    if (flags & FORMAT_MESSAGE_FROM_STRING) {
        if (!source)
            return NULL;
    } else if (flags & (FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_FROM_HMODULE)) {
        phrase = message_text(code);
        if (!phrase) {
            *error = ERROR_MR_MID_NOT_FOUND;
            return NULL;
        }
    } else {
        return NULL;
    }
    *error = ERROR_NOT_ENOUGH_MEMORY;
    if (phrase) {
        sentence = malloc(strlen(phrase) + 4);
        if (!sentence)
            return NULL;
        sprintf(sentence, "%c%s.\r\n", toupper((unsigned char)phrase[0]), phrase + 1);
        source = sentence;
        flags |= FORMAT_MESSAGE_IGNORE_INSERTS;
    }
    if (!inserts_take(&inserts, source, flags, args)) {
        *error = ERROR_INVALID_PARAMETER;
        goto out;
    }
    out = open_memstream(&built, &size);
    if (out) {
        message_write(out, source, flags, &inserts);
        fclose(out);
    }
out:
    free(sentence);
    return built;
}

/* Hands `length` characters of `each` bytes and a terminator to the caller. */
static DWORD message_give(DWORD flags, const void *text, size_t length, size_t each, void *buffer, DWORD size)
{
    void *copy;
    size_t room;

    if (!(flags & FORMAT_MESSAGE_ALLOCATE_BUFFER)) {
        if (length >= size) {
            SetLastError(ERROR_INSUFFICIENT_BUFFER);
            return 0;
        }
        memcpy(buffer, text, (length + 1) * each);
        return (DWORD)length;
    }
    /* `size` is the least that the buffer must hold. */
    room = length + 1 > size ? length + 1 : size;
    copy = LocalAlloc(LPTR, room * each);
    if (!copy)
        return 0;
    memcpy(copy, text, (length + 1) * each);
    *(void **)buffer = copy;
    return (DWORD)length;
}

DWORD WINAPI FormatMessageA(DWORD flags, LPCVOID source, DWORD code, DWORD language, LPSTR buffer, DWORD size,
                            va_list *args)
{
    DWORD error, length;
    char *text;

    (void)language;
    if (!buffer) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    text = message_build(flags, source, code, args, false, &error);
    if (!text) {
        SetLastError(error);
        return 0;
    }
    length = message_give(flags, text, strlen(text), 1, buffer, size);
    free(text);
    return length;
}

DWORD WINAPI FormatMessageW(DWORD flags, LPCVOID source, DWORD code, DWORD language, LPWSTR buffer, DWORD size,
                            va_list *args)
{
    char *narrow_source = NULL, *text;
    wchar_t *wide = NULL;
    DWORD error, length = 0;

    (void)language;
    if (!buffer) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    if (flags & FORMAT_MESSAGE_FROM_STRING)
        narrow_source = text_narrow_dup(source);
    text = message_build(flags, narrow_source, code, args, true, &error);
    if (text) {
        wide = text_widen_dup(text);
        error = ERROR_NOT_ENOUGH_MEMORY;
    }
    if (wide)
        length = message_give(flags, wide, wcslen(wide), sizeof(*wide), buffer, size);
    else
        SetLastError(error);
    free(wide);
    free(text);
    free(narrow_source);
    return length;
}

/* Local memory is fixed here: the handle is the block, as for the only kind that is still used on Windows. */
HLOCAL WINAPI LocalAlloc(UINT flags, SIZE_T size)
{
    void *memory = flags & LMEM_ZEROINIT ? calloc(1, size ? size : 1) : malloc(size ? size : 1);

    if (!memory)
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return memory;
}

HLOCAL WINAPI LocalFree(HLOCAL memory)
{
    free(memory);
    return NULL;
}
