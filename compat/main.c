/* SPDX-License-Identifier: MIT */

/* The start of a program whose entry is wmain (or _tmain with _UNICODE). An archive member of its own, so that the linker
 * takes it only for a program without main. Source: win32-surface.md section 7.2. */

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

/* Whichever the program has: with C linkage, as <tchar.h> declares it, or as a C++ function that it did not see declared. */
#define ENTRY(name, symbol, ...) extern int name(__VA_ARGS__) __asm__(symbol) __attribute__((weak))
ENTRY(entry_c, "wmain", int, wchar_t **, wchar_t **);
ENTRY(entry_none, "_Z5wmainv", void);
ENTRY(entry_two, "_Z5wmainiPPw", int, wchar_t **);
ENTRY(entry_three, "_Z5wmainiPPwS0_", int, wchar_t **, wchar_t **);
ENTRY(entry_const, "_Z5wmainiPPKw", int, wchar_t **);
ENTRY(entry_const_both, "_Z5wmainiPKPKw", int, wchar_t **);

static wchar_t *widen(const char *text)
{
    int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *wide = malloc((size_t)length * sizeof(*wide));

    if (wide)
        MultiByteToWideChar(CP_UTF8, 0, text, -1, wide, length);
    return wide;
}

static wchar_t **widen_all(char **texts)
{
    wchar_t **wide;
    size_t count = 0;

    while (texts[count])
        count++;
    wide = calloc(count + 1, sizeof(*wide));
    for (size_t i = 0; wide && i < count; i++) {
        wide[i] = widen(texts[i]);
        if (!wide[i])
            return NULL;
    }
    return wide;
}

int main(int argc, char **argv, char **envp)
{
    /* Kept while the process lives: the program may keep pointers to them, and a leak checker is to find them. */
    static wchar_t **volatile arguments, **volatile environment;

    /* Characters as the user has them; numbers stay in the "C" locale, as on Windows. */
    setlocale(LC_CTYPE, "");
    arguments = widen_all(argv);
    environment = widen_all(envp);
    if (!arguments || !environment) {
        fputs("no memory for the arguments\n", stderr);
        return 1;
    }
    if (entry_c)
        return entry_c(argc, arguments, environment);
    if (entry_two)
        return entry_two(argc, arguments);
    if (entry_three)
        return entry_three(argc, arguments, environment);
    if (entry_const)
        return entry_const(argc, arguments);
    if (entry_const_both)
        return entry_const_both(argc, arguments);
    if (entry_none)
        return entry_none();
    fputs("the program has neither main nor wmain\n", stderr);
    return 1;
}
