/* SPDX-License-Identifier: MIT */
/* Format strings of Microsoft's C run time, in the narrow and the wide functions. Every argument is the address of a text
 * that may be read as narrow and as wide, so that no conversion is wrong for it, and those of floating-point conversions,
 * which 64-bit machines pass apart, are numbers; %n, * and L are left out, widths are kept small. The text that arrives in a
 * small buffer must be the beginning of the one in a large buffer. */
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

#include "fuzz.h"

#define FORMAT_MAX 64
#define TEXT_MAX   8192
#define DIGITS_MAX 2

/* Of the library; bound by name, as fuzzers are compiled without the application's headers' renaming in the way. */
int ndv_snprintf(char *to, size_t size, const char *format, ...);
int ndv_swprintf(wchar_t *to, size_t size, const wchar_t *format, ...);

#define ARGUMENTS      text, text, text, text, text, text, text, text, 0.5, -1e300, 3.0, 1e-9, 0.0, 12345.678, -7.0, 1e20
#define ARGUMENT_COUNT 8 /* of each kind */

/* Copies what is safe to have as a format; at most as many conversions as there are arguments. */
static void sanitize(struct input *input, char *format)
{
    size_t length = 0;
    int digits = 0, conversions = 0;

    while (input_left(input) && length < FORMAT_MAX) {
        char c = (char)input_byte(input);

        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (c == 'n' || c == '*' || c == '$' || c == 'L' || !c || digits > DIGITS_MAX)
            continue;
        if (c == '%' && ++conversions > ARGUMENT_COUNT)
            continue;
        format[length++] = c;
    }
    /* A % that nothing follows is undefined. */
    while (length && format[length - 1] == '%')
        length--;
    format[length] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const wchar_t text[4] = { L'n', L'd', L'v', 0 };
    struct input input = { data, data + size };
    char format[FORMAT_MAX + 1], large[TEXT_MAX], small[64];
    wchar_t wide_format[FORMAT_MAX + 1], wide_large[TEXT_MAX], wide_small[64];
    size_t room = input_byte(&input) % sizeof(small);
    int n, again;

    sanitize(&input, format);
    for (size_t i = 0; i <= strlen(format); i++)
        wide_format[i] = (wchar_t)(unsigned char)format[i];

    n = ndv_snprintf(large, sizeof(large), format, ARGUMENTS);
    memset(small, 0x7e, sizeof(small));
    again = ndv_snprintf(small, room, format, ARGUMENTS);
    must((n < 0) == (again < 0));
    if (n >= 0) {
        must((size_t)n < sizeof(large) && strlen(large) <= (size_t)n);
        must(again == n);
        if (room > 0) {
            size_t kept = (size_t)n < room - 1 ? (size_t)n : room - 1;

            must(memcmp(small, large, kept) == 0);
        }
    }
    for (size_t i = room; i < sizeof(small); i++)
        must(small[i] == 0x7e);

    n = ndv_swprintf(wide_large, TEXT_MAX, wide_format, ARGUMENTS);
    wmemset(wide_small, 0x7e, 64);
    again = ndv_swprintf(wide_small, room, wide_format, ARGUMENTS);
    if (n >= 0 && (size_t)n < room) {
        must(again == n);
        must(wmemcmp(wide_small, wide_large, (size_t)n) == 0);
    }
    for (size_t i = room; i < 64; i++)
        must(wide_small[i] == 0x7e);
    return 0;
}
