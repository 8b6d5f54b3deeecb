/* SPDX-License-Identifier: MIT */

/* Text of the C run time: win32-surface.md 4.5, 7.1. */

#include <windows.h>
#include <tchar.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "harness.h"

/* What a text stream holds after some output. */
static FILE *out;
static char written[400];
static char name[64];

static FILE *begin(void)
{
    _snprintf(name, sizeof(name), "text-%u.tmp", (unsigned)GetCurrentProcessId());
    out = fopen(name, "w");
    ok(out != NULL);
    return out;
}

static const char *end(void)
{
    size_t length;

    fclose(out);
    out = fopen(name, "rb");
    ok(out != NULL);
    length = fread(written, 1, sizeof(written) - 1, out);
    written[length] = '\0';
    fclose(out);
    remove(name);
    return written;
}

TEST(printf__sizes_of_integers)
{
    SIZE_T size = 12345;
    long long big = 5000000000ll;

    fprintf(begin(), "[%I64d][%I64u][%I64x][%12I64d]", big, (unsigned long long)big, big, big);
    ok_str(end(), "[5000000000][5000000000][12a05f200][  5000000000]");
    fprintf(begin(), "[%9Id][%Iu][%-8Ix][%08Ix]%s", size, size, size, size, "after");
    ok_str(end(), "[    12345][12345][3039    ][00003039]after");
    fprintf(begin(), "[%I32d][%I32u]%d", -1, 0xffffffffu, 7);
    ok_str(end(), "[-1][4294967295]7");
    fprintf(begin(), "[%llu][%lld]", 1ull << 63, -1ll);
    ok_str(end(), "[9223372036854775808][-1]");
}

TEST(printf__errors_and_results)
{
    SetLastError(5);
    fprintf(begin(), "%u %08x", (unsigned)GetLastError(), (unsigned)E_INVALIDARG);
    ok_str(end(), "5 80070057");
}

TEST(printf__both_kinds_of_text)
{
    fprintf(begin(), "[%s][%S][%ls][%hs][%c][%C][%10ls][%.2ls]", "narrow", L"wide", L"wide", "narrow", 'a', L'b',
            L"wide", L"wide");
    ok_str(end(), "[narrow][wide][wide][narrow][a][b][      wide][wi]");
    fwprintf(begin(), L"[%s][%S][%ls][%hs][%c][%C]", L"wide", "narrow", L"wide", "narrow", L'a', 'b');
    ok_str(end(), "[wide][narrow][wide][narrow][a][b]");
}

static void both(FILE *stream)
{
    fprintf(stream, "a%d", 1);
    fwprintf(stream, L"b%d", 2);
    fputs("c", stream);
    fputws(L"d", stream);
    fprintf(stream, "e%I64d", 3ll);
    fwprintf(stream, L"f%I64d%s", 4ll, L"!");
}

/* Narrow and wide output on one stream, in either order. */
TEST(printf__mixed_on_one_stream)
{
    both(begin());
    ok_str(end(), "a1b2cde3f4!");
    fwprintf(begin(), L"w");
    both(out);
    ok_str(end(), "wa1b2cde3f4!");
}

TEST(wprintf__results)
{
    wchar_t text[2000];

    ok_int(fwprintf(begin(), L"%s-%d", L"four", 5), ==, 6);
    ok_str(end(), "four-5");
    wmemset(text, L'x', 1999);
    text[1999] = L'\0';
    ok_int(fwprintf(begin(), L"%s", text), ==, 1999);
    end();
    ok_int(strspn(written, "x"), ==, sizeof(written) - 1);
    /* Into a buffer: the size counts characters. */
    ok_int(swprintf(text, 10, L"%s%I64d", L"ab", 12ll), ==, 4);
    ok(wcscmp(text, L"ab12") == 0);
    ok_int(swprintf(text, 4, L"%s", L"too long"), <, 0);
}

TEST(_snprintf__does_not_terminate_on_overflow)
{
    char text[8];

    memset(text, '#', sizeof(text));
    ok_int(_snprintf(text, 4, "%s", "abcdef"), ==, -1);
    ok_mem(text, "abcd####", 8);
    ok_int(_snprintf(text, 4, "%s", "abcd"), ==, 4);
    ok_mem(text, "abcd####", 8);
    ok_int(_snprintf(text, 4, "%s", "abc"), ==, 3);
    ok_str(text, "abc");
}

TEST(_snprintf__tells_the_length_without_a_buffer)
{
    char text[4] = "#";

    ok_int(_snprintf(NULL, 0, "%s-%d", "abcdef", 12), ==, 9);
    ok_int(_snprintf(text, 0, "%s", "abc"), ==, -1);
    ok_int(_snprintf(text, 0, "%s", ""), ==, 0);
    ok_str(text, "#");
    ok_int(_snwprintf(NULL, 0, L"%s-%d", L"abcdef", 12), ==, 9);
    ok_int(_snwprintf((wchar_t *)text, 0, L"%s", L"abc"), ==, -1);
    ok_str(text, "#");
}

TEST(strings__without_case)
{
    ok_int(_stricmp("AbC", "aBc"), ==, 0);
    ok_int(_stricmp("a", "b"), <, 0);
    ok_int(_strnicmp("ABCx", "abcy", 3), ==, 0);
    ok_int(_wcsicmp(L"AbC", L"aBc"), ==, 0);
    ok_int(_wcsicmp(L"b", L"a"), >, 0);
    ok_int(_tcsicmp(_T("X"), _T("x")), ==, 0);
    ok_int(_tcsnicmp(_T("Xa"), _T("xb"), 1), ==, 0);
}

TEST(strings__copies)
{
    char *narrow = _strdup("text");
    wchar_t *wide = _wcsdup(L"text");

    ok_str(narrow, "text");
    ok(wcscmp(wide, L"text") == 0);
    free(narrow);
    free(wide);
}

TEST(numbers__of_text)
{
    ok_int(_ttol(_T("-17x")), ==, -17);
    ok_int(_ttol(_T("")), ==, 0);
    ok_int(_ttoi(_T("42")), ==, 42);
    ok_int(_wtol(L"2147483647"), ==, 2147483647);
    ok_int(_wtoi64(L"5000000000"), ==, 5000000000ll);
    ok_int(_atoi64("-5000000000"), ==, -5000000000ll);
    ok_uint(_strtoui64("ffffffffffffffff", NULL, 16), ==, ~0ull);
}

TEST(_byteswap__values)
{
    ok_uint(_byteswap_uint64(0x0102030405060708ull), ==, 0x0807060504030201ull);
    ok_uint(_byteswap_ulong(0x01020304), ==, 0x04030201);
    ok_uint(_byteswap_ushort(0x0102), ==, 0x0201);
}

TEST(_alloca__is_aligned)
{
    for (size_t i = 1; i < 40; i += 7) {
        char *block = (char *)_alloca(i);

        ok_uint((uintptr_t)block % 8, ==, 0);
        memset(block, 1, i);
    }
}

TEST(strcpy_s__that_fits)
{
    char text[6];
    wchar_t wide[6];

    ok_int(strcpy_s(text, 6, "12345"), ==, 0);
    ok_str(text, "12345");
    ok_int(wcscpy_s(wide, 6, L"12345"), ==, 0);
    ok(wcscmp(wide, L"12345") == 0);
    ok_int(strcpy_s(text, 6, ""), ==, 0);
    ok_int(strcat_s(text, 6, "ab"), ==, 0);
    ok_int(strcat_s(text, 6, "cd"), ==, 0);
    ok_str(text, "abcd");
    ok_int(strncpy_s(text, 6, "123456789", 3), ==, 0);
    ok_str(text, "123");
    ok_int(strncpy_s(text, 6, "123456789", _TRUNCATE), ==, STRUNCATE);
    ok_str(text, "12345");
    ok_int(sprintf_s(text, 6, "%d%s", 12, "abc"), ==, 5);
    ok_str(text, "12abc");
    ok_int(swprintf_s(wide, 6, L"%d%s", 12, L"abc"), ==, 5);
    ok(wcscmp(wide, L"12abc") == 0);
}

TEST(sscanf_s__sizes)
{
    char word[8], c[2], set[8];
    int a = 0, b = 0;

    ok_int(sscanf_s(" 12 hello,x 0x1f", "%d %[a-z],%c %x", &a, set, 8u, c, 1u, &b), ==, 4);
    ok(a == 12 && b == 0x1f && c[0] == 'x');
    ok_str(set, "hello");
    ok_int(sscanf_s("word", "%s", word, 8u), ==, 1);
    ok_str(word, "word");
    ok_int(sscanf_s("", "%d", &a), ==, EOF);
    ok_int(sscanf_s("x", "%d", &a), ==, 0);
    ok_int(sscanf_s("7:8", "%d:%d", &a, &b), ==, 2);
    ok(a == 7 && b == 8);
    ok_int(sscanf_s("7;8", "%d:%d", &a, &b), ==, 1);
}
