/* SPDX-License-Identifier: MIT */

/* Texts of error codes (win32-surface.md 4.3, 5). */

#include <windows.h>

#include "harness.h"
#include "message.h"

extern const struct {
    const char *name;
    DWORD code;
} codes[];
extern const unsigned codes_count;

TEST(FormatMessage__knows_every_code)
{
    char text[200];

    ok_uint(codes_count, >, 200);
    for (unsigned i = 0; i < codes_count; i++) {
        DWORD length = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, codes[i].code,
                                      0, text, sizeof(text), NULL);

        ok_msg(length > 4, "%s has no text", codes[i].name);
        ok_str(text + length - 3, ".\r\n");
        /* The same by HRESULT and by module. */
        if (codes[i].code && codes[i].code < 0x10000)
            ok_str(message_text((DWORD)HRESULT_FROM_WIN32(codes[i].code)), message_text(codes[i].code));
        ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_HMODULE, LoadLibraryA("ntdll.dll"), codes[i].code, 0, text,
                               sizeof(text), NULL),
                ==, length);
    }
}

/* Sorted, or the search misses some. */
TEST(message_text__unknown)
{
    ok_ptr(message_text(0x12345678), ==, NULL);
    ok_ptr(message_text(0x8007ffff), ==, NULL);
    ok_ptr(message_text(0xffffffff), ==, NULL);
    ok_str(message_text(6), "the handle is not valid");
}

TEST(FormatMessage__on_one_line)
{
    char text[200];
    DWORD length = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_MAX_WIDTH_MASK, NULL, 6, 0, text,
                                  sizeof(text), NULL);

    ok_uint(length, ==, strlen(text));
    ok_str(text, "The handle is not valid. ");
}

static DWORD format(char *to, const char *message, ...)
{
    va_list args;
    DWORD length;

    va_start(args, message);
    length = FormatMessageA(FORMAT_MESSAGE_FROM_STRING, message, 0, 0, to, 100, &args);
    va_end(args);
    return length;
}

TEST(FormatMessage__variable_arguments)
{
    char text[100];

    ok_uint(format(text, "%2 %1!4d!|%n%t%b%.%!%3!S!", 7, "two", L"wide"), ==, strlen(text));
    ok_str(text, "two    7|\r\n\t .!wide");
    /* An insert is as wide as a pointer. */
#if UINTPTR_MAX > UINT32_MAX
    ok_uint(format(text, "%1!I64x!", 0x123456789abcull), ==, 12);
    ok_str(text, "123456789abc");
#else
    ok_uint(format(text, "%1!I64x!", 0x12345678), ==, 8);
    ok_str(text, "12345678");
#endif
    /* Inserts without arguments, and no source at all. */
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_STRING, "%1", 0, 0, text, sizeof(text), NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_STRING, NULL, 0, 0, text, sizeof(text), NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_uint(FormatMessageA(0, NULL, 6, 0, text, sizeof(text), NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, NULL, 6, 0, NULL, 0, NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
}
