/* SPDX-License-Identifier: MIT */
/* A program whose entry is _tmain; START_FORM says how it is written. It prints its arguments. */
#ifndef START_UNDECLARED
#include <tchar.h>
#endif
#include <windows.h>

static int show(int argc, const wchar_t *const *argv)
{
    wprintf(L"%d", argc);
    for (int i = 1; i < argc; i++)
        wprintf(L" [%s]", argv[i]);
    printf(" %.1f\n", 1.5);
    return argc;
}

#if START_FORM == 1
int __cdecl _tmain(int argc, TCHAR *argv[])
{
    return show(argc, (const wchar_t *const *)argv);
}
#elif START_FORM == 2
int __cdecl _tmain(int argc, TCHAR *argv[], TCHAR *envp[])
{
    return envp[0] ? show(argc, (const wchar_t *const *)argv) : 99;
}
#elif START_FORM == 3
#ifdef __cplusplus
int wmain(int argc, const wchar_t *argv[])
#else
int wmain(int argc, const wchar_t *argv[]);
int wmain(int argc, const wchar_t *argv[])
#endif
{
    return show(argc, argv);
}
#else
/* A program of its own, which must not be given another start. */
int main(int argc, char **argv)
{
    static wchar_t text[10][100];
    wchar_t *wide[10];

    for (int i = 0; i < argc && i < 10; i++) {
        wide[i] = text[i];
        MultiByteToWideChar(CP_UTF8, 0, argv[i], -1, wide[i], 100);
    }
    return show(argc, (const wchar_t *const *)wide);
}
#endif
