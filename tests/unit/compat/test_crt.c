/* SPDX-License-Identifier: MIT */

/* Text functions where Windows would end the process, and text beyond ASCII (win32-surface.md 4.5, 7). */

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <objbase.h>
#include <process.h>
#include <strsafe.h>
#include <windows.h>

#include "harness.h"
#include "text.h"

TEST(strcpy_s__refuses)
{
    char text[4] = "xyz";
    wchar_t wide[4] = L"xyz";

    ok_int(strcpy_s(text, 4, "1234"), ==, ERANGE);
    ok_int(errno, ==, ERANGE);
    ok_str(text, "");
    ok_int(strcpy_s(text, 0, "1"), ==, EINVAL);
    ok_int(strcpy_s(NULL, 4, "1"), ==, EINVAL);
    strcpy(text, "xyz");
    ok_int(strcpy_s(text, 4, NULL), ==, EINVAL);
    ok_str(text, "");
    ok_int(wcscpy_s(wide, 4, L"1234"), ==, ERANGE);
    ok_uint(wide[0], ==, 0);
    strcpy(text, "ab");
    ok_int(strcat_s(text, 4, "cd"), ==, ERANGE);
    ok_str(text, "");
    memset(text, 'x', 4);
    ok_int(strcat_s(text, 4, "c"), ==, EINVAL);
    ok_int(strncpy_s(text, 4, "abcdef", 4), ==, ERANGE);
    ok_int(strncpy_s(text, 4, NULL, 0), ==, 0);
    ok_str(text, "");
    ok_int(strncat_s(text, 4, "abcdef", _TRUNCATE), ==, STRUNCATE);
    ok_str(text, "abc");
}

TEST(sprintf_s__refuses)
{
    char text[4] = "xyz";
    wchar_t wide[4] = L"xyz";

    ok_int(sprintf_s(text, 4, "%d", 1234), ==, -1);
    ok_int(errno, ==, ERANGE);
    ok_str(text, "");
    ok_int(sprintf_s(NULL, 4, "%d", 1), ==, -1);
    ok_int(errno, ==, EINVAL);
    ok_int(swprintf_s(wide, 4, L"%d", 1234), ==, -1);
    ok_int(errno, ==, ERANGE);
    ok_uint(wide[0], ==, 0);
    ok_int(_snprintf_s(text, 4, _TRUNCATE, "%d", 12345), ==, -1);
    ok_str(text, "123");
    ok_int(_snprintf_s(text, 4, 2, "%d", 12345), ==, -1);
    ok_str(text, "12");
    ok_int(_snprintf_s(text, 4, 9, "%d", 12345), ==, -1);
    ok_str(text, "");
    ok_int(_snwprintf_s(wide, 4, _TRUNCATE, L"%d", 12345), ==, -1);
    ok(wcscmp(wide, L"123") == 0);
    ok_int(_snwprintf_s(wide, 4, 3, L"%d", 123), ==, 3);
    ok(wcscmp(wide, L"123") == 0);
}

TEST(memcpy_s__refuses)
{
    char text[4] = "xyz";

    ok_int(memcpy_s(text, 4, "ab", 3), ==, 0);
    ok_str(text, "ab");
    ok_int(memcpy_s(text, 4, "abcdef", 5), ==, ERANGE);
    ok_mem(text, "\0\0\0\0", 4);
    ok_int(memcpy_s(NULL, 4, "a", 1), ==, EINVAL);
    ok_int(memcpy_s(NULL, 0, NULL, 0), ==, 0);
}

TEST(sscanf_s__refuses_what_does_not_fit)
{
    char word[4] = "xyz";
    long long big = 0;
    int number = 5;

    ok_int(sscanf_s("four 7", "%s %d", word, 4u, &number), ==, 0);
    ok_str(word, "");
    ok_int(number, ==, 5);
    ok_int(sscanf_s("abc7", "%3c%d", word, 3u, &number), ==, 2);
    ok_mem(word, "abc", 3);
    ok_int(number, ==, 7);
    ok_int(sscanf_s("abc", "%3c", word, 2u), ==, 0);
    ok_int(sscanf_s("5000000000", "%I64d", &big), ==, 1);
    ok_int(big, ==, 5000000000ll);
    ok_int(sscanf_s("1 2", "%*d %d", &number), ==, 1);
    ok_int(number, ==, 2);
    ok_int(sscanf_s("ab", "%2s%n", word, 4u, &number), ==, 1);
    ok_int(number, ==, 2);
    ok_int(sscanf_s("x", "%", &number), ==, 0);
    ok_int(sscanf_s("%5", "%%%d", &number), ==, 1);
    ok_int(number, ==, 5);
}

#define EURO      "\xe2\x82\xac"
#define EURO_WIDE L"\x20ac"

/* In the "C" locale, where every program starts, text beyond ASCII is UTF-8. */
TEST(printf__beyond_ascii_in_the_c_locale)
{
    wchar_t wide[32];
    char text[32];

    ok_str(setlocale(LC_ALL, NULL), "C");
    ok_int(snprintf(text, sizeof(text), "%S|%ls|%s", EURO_WIDE, EURO_WIDE, EURO), ==, 11);
    ok_str(text, EURO "|" EURO "|" EURO);
    ok_int(swprintf(wide, 32, L"%S|%hs|%s", EURO, EURO, EURO_WIDE), ==, 5);
    ok(wcscmp(wide, EURO_WIDE L"|" EURO_WIDE L"|" EURO_WIDE) == 0);
    /* Numbers are not touched by it. */
    ok_int(snprintf(text, sizeof(text), "%.2f%S", 1.5, EURO_WIDE), ==, 7);
    ok_str(text, "1.50" EURO);
    ok_str(setlocale(LC_ALL, NULL), "C");
}

TEST(printf__what_needs_no_rewriting)
{
    char text[64];

    ok_int(snprintf(text, sizeof(text), "%5.1f%%%-4d|%c%*d%zu%td%hhd%p", 2.25, 7, 'x', 3, 5, (size_t)1, (ptrdiff_t)2, 3,
                    NULL),
           >, 0);
    ok(strncmp(text, "  2.2%7   |x  5123", 18) == 0);
    ok_int(snprintf(text, 4, "%s", "12345"), ==, 5);
    ok_str(text, "123");
    ok_int(snprintf(NULL, 0, "%I64d", 123ll), ==, 3);
    /* Long formats, and a stray sign at the end. */
    ok_int(snprintf(text, sizeof(text), "%I64d%", 5ll), !=, 0);
}

TEST(printf__long_formats_and_texts)
{
    static char format[3000], text[4000];
    static wchar_t wide_format[3000], wide[4000];

    memset(format, 'x', sizeof(format) - 6);
    strcpy(format + sizeof(format) - 6, "%I64d");
    ok_int(snprintf(text, sizeof(text), format, 77ll), ==, 2996);
    ok_str(text + 2994, "77");
    wmemset(wide_format, L'x', 2994);
    wcscpy(wide_format + 2994, L"%I64d");
    ok_int(swprintf(wide, 4000, wide_format, 77ll), ==, 2996);
    ok(wcscmp(wide + 2994, L"77") == 0);
    ok_int(_scwprintf(wide_format, 77ll), ==, 2996);
    ok_int(_scprintf("%I64d", 77ll), ==, 2);
}

TEST(text__bad_input_is_replaced)
{
    static const struct {
        const char *bytes;
        size_t length, count, bad;
    } rows[] = {
        { "", 0, 0, 0 },
        { "abc", 3, 3, 0 },
        { "\xc3\xa4", 2, 1, 0 },
        { "\xf0\x9f\x98\x80", 4, 1, 0 },
        { "\xc3", 1, 1, 1 },
        { "\xe2\x82", 2, 2, 2 },
        { "\xc0\x80", 2, 2, 2 },         /* longer than needed */
        { "\xed\xa0\x80", 3, 3, 3 },     /* half of a pair */
        { "\xf5\x80\x80\x80", 4, 4, 4 }, /* beyond Unicode */
        { "\xff"
          "a",
          2, 2, 1 },
        { "a\0b", 3, 3, 0 },
    };
    static const wchar_t impossible[] = { 'a', 0xd800, 0x110000, -1, 'b' };
    wchar_t wide[8];
    char text[16];
    size_t bad;

    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        ok_uint(text_widen(rows[i].bytes, rows[i].length, wide, 8, &bad), ==, rows[i].count);
        ok_uint(bad, ==, rows[i].bad);
    }
    ok_uint(text_narrow(impossible, 5, text, sizeof(text), &bad), ==, 11);
    ok_uint(bad, ==, 3);
    ok_mem(text,
           "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
           "b",
           11);
    /* Whole characters only. */
    memset(text, '#', sizeof(text));
    ok_uint(text_narrow(L"ab\x20ac"
                        L"c",
                        4, text, 4, NULL),
            ==, 6);
    ok_mem(text, "ab##", 4);
}

TEST(files__wide_names_and_modes)
{
    FILE *file = NULL;
    char line[16];

    ok_int(_wfopen_s(&file, L"wide-\x00e4.tmp", L"wt, ccs=UTF-8"), ==, 0);
    fputs("line", file);
    fclose(file);
    file = fopen("wide-\xc3\xa4.tmp", "r");
    ok(file != NULL);
    ok(_wfreopen(L"wide-\x00e4.tmp", L"a+", file) == file);
    ok(fgets(line, sizeof(line), file) != NULL);
    ok_str(line, "line");
    ok_int(_fileno(file), ==, fileno(file));
    fclose(file);
    remove("wide-\xc3\xa4.tmp");
    ok_int(fopen_s(&file, "/nonexistent/x", "r"), ==, ENOENT);
    ok_ptr(file, ==, NULL);
    ok_int(fopen_s(NULL, "x", "r"), ==, EINVAL);
    ok_int(_fcloseall(), ==, 0);
}

TEST(numbers__saturate_to_32_bits)
{
    char digits[70];

    ok_int(_wtol(L"5000000000"), ==, INT32_MAX);
    ok_int(_wtoi(L"-5000000000"), ==, INT32_MIN);
    ok_int(_ndv_atol("5000000000"), ==, INT32_MAX);
    ok_str(_itoa(-10, digits, 10), "-10");
    ok_str(_itoa(-1, digits, 16), "ffffffff");
    ok_str(_i64toa(LLONG_MIN, digits, 10), "-9223372036854775808");
    ok_str(_ui64toa(~0ull, digits, 2), "1111111111111111111111111111111111111111111111111111111111111111");
}

TEST(environment__crt_forms)
{
    char text[8], *copy;
    wchar_t *wide;
    size_t length;

    ok_int(_putenv_s("CRT_X", "12345"), ==, 0);
    ok_int(getenv_s(&length, text, sizeof(text), "CRT_X"), ==, 0);
    ok_uint(length, ==, 6);
    ok_str(text, "12345");
    ok_int(getenv_s(&length, text, 3, "CRT_X"), ==, ERANGE);
    ok_int(_dupenv_s(&copy, &length, "CRT_X"), ==, 0);
    ok_str(copy, "12345");
    free(copy);
    ok_int(_wdupenv_s(&wide, &length, L"CRT_X"), ==, 0);
    ok(wcscmp(wide, L"12345") == 0);
    free(wide);
    ok_int(_putenv_s("CRT_X", ""), ==, 0);
    ok_int(_dupenv_s(&copy, &length, "CRT_X"), ==, 0);
    ok_ptr(copy, ==, NULL);
    ok_uint(length, ==, 0);
}

TEST(StringCch__results)
{
    wchar_t wide[4];
    char text[4];
    size_t length;

    ok_status(StringCchCopyA(text, 4, "123"), S_OK);
    ok_status(StringCchCopyA(text, 4, "12345"), STRSAFE_E_INSUFFICIENT_BUFFER);
    ok_str(text, "123");
    ok_status(StringCchCatA(text, 4, "x"), STRSAFE_E_INSUFFICIENT_BUFFER);
    ok_status(StringCchCopyA(text, 0, "x"), STRSAFE_E_INVALID_PARAMETER);
    ok_status(StringCchPrintfA(text, 4, "%I64d", 12345ll), STRSAFE_E_INSUFFICIENT_BUFFER);
    ok_str(text, "123");
    ok_status(StringCchPrintfW(wide, 4, L"%s", L"ab"), S_OK);
    ok_status(StringCchCatW(wide, 4, L"c"), S_OK);
    ok_status(StringCchLengthW(wide, 4, &length), S_OK);
    ok_uint(length, ==, 3);
    ok_status(StringCchLengthW(wide, 3, &length), STRSAFE_E_INVALID_PARAMETER);
}

TEST(StringFromGUID2__and_back)
{
    wchar_t text[39];
    GUID guid;

    ok_int(StringFromGUID2(&IID_IClassFactory, text, 39), ==, 39);
    ok(wcscmp(text, L"{00000001-0000-0000-C000-000000000046}") == 0);
    ok_int(StringFromGUID2(&IID_IClassFactory, text, 38), ==, 0);
    ok_status(IIDFromString(text, &guid), S_OK);
    ok(IsEqualGUID(&guid, &IID_IClassFactory));
    ok_status(CLSIDFromString(L"{00000001-0000-0000-C000-00000000004}", &guid), CO_E_CLASSSTRING);
    ok_status(CLSIDFromString(L"{00000001-0000-0000-C000-0000000000467}", &guid), CO_E_CLASSSTRING);
    ok_status(CLSIDFromString(NULL, &guid), E_INVALIDARG);
    ok_status(CoInitialize(NULL), S_OK);
    CoUninitialize();
}
