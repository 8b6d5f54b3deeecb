/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

/* The character at the head of `length` > 0 bytes; *used bytes of it. A bad head is one byte. */
static uint32_t decode(const unsigned char *from, size_t length, size_t *used, bool *good)
{
    static const uint32_t smallest[] = { 0, 0x80, 0x800, 0x10000 };
    unsigned char head = from[0];
    size_t more = head < 0x80 ? 0 : head < 0xc0 ? 4 : head < 0xe0 ? 1 : head < 0xf0 ? 2 : head < 0xf8 ? 3 : 4;
    uint32_t value = more == 0 ? head : head & (0x3fu >> more);

    *used = 1;
    *good = false;
    if (more == 4 || more >= length)
        return REPLACEMENT;
    for (size_t i = 1; i <= more; i++) {
        if ((from[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        value = value << 6 | (from[i] & 0x3f);
    }
    /* Longer than needed, half of a surrogate pair, or beyond Unicode. */
    if (value < smallest[more] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
        return REPLACEMENT;
    *used = 1 + more;
    *good = true;
    return value;
}

static size_t encode(uint32_t value, char *to)
{
    if (value < 0x80) {
        to[0] = (char)value;
        return 1;
    }
    if (value < 0x800) {
        to[0] = (char)(0xc0 | value >> 6);
        to[1] = (char)(0x80 | (value & 0x3f));
        return 2;
    }
    if (value < 0x10000) {
        to[0] = (char)(0xe0 | value >> 12);
        to[1] = (char)(0x80 | (value >> 6 & 0x3f));
        to[2] = (char)(0x80 | (value & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | value >> 18);
    to[1] = (char)(0x80 | (value >> 12 & 0x3f));
    to[2] = (char)(0x80 | (value >> 6 & 0x3f));
    to[3] = (char)(0x80 | (value & 0x3f));
    return 4;
}

size_t text_widen(const char *from, size_t length, wchar_t *to, size_t size, size_t *bad)
{
    size_t count = 0, wrong = 0, used;
    bool good;

    for (size_t i = 0; i < length; i += used) {
        uint32_t value = decode((const unsigned char *)from + i, length - i, &used, &good);

        wrong += !good;
        if (count < size)
            to[count] = (wchar_t)value;
        count++;
    }
    if (bad)
        *bad = wrong;
    return count;
}

size_t text_narrow(const wchar_t *from, size_t length, char *to, size_t size, size_t *bad)
{
    size_t count = 0, wrong = 0;
    bool full = false;

    for (size_t i = 0; i < length; i++) {
        uint32_t value = (uint32_t)from[i];
        char bytes[4];
        size_t n;

        if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
            value = REPLACEMENT;
            wrong++;
        }
        n = encode(value, bytes);
        full = full || count + n > size;
        if (!full)
            memcpy(to + count, bytes, n);
        count += n;
    }
    if (bad)
        *bad = wrong;
    return count;
}

wchar_t *text_widen_dup(const char *from)
{
    size_t length, count;
    wchar_t *to;

    if (!from)
        return NULL;
    length = strlen(from);
    to = malloc((length + 1) * sizeof(*to));
    if (to) {
        count = text_widen(from, length, to, length, NULL);
        to[count] = L'\0';
    }
    return to;
}

char *text_narrow_dup(const wchar_t *from)
{
    size_t length, count;
    char *to;

    if (!from)
        return NULL;
    length = wcslen(from);
    to = malloc(length * 4 + 1);
    if (to) {
        count = text_narrow(from, length, to, length * 4, NULL);
        to[count] = '\0';
    }
    return to;
}
