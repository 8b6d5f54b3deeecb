/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "text.h"

/* Environment, conversion of text, debug output. Source: win32-surface.md section 4.3. */

DWORD WINAPI GetEnvironmentVariableA(LPCSTR name, LPSTR value, DWORD size)
{
    const char *found = name ? getenv(name) : NULL;
    size_t length;

    if (!found) {
        SetLastError(ERROR_ENVVAR_NOT_FOUND);
        return 0;
    }
    length = strlen(found);
    if (!value || length >= size)
        return (DWORD)length + 1;
    memcpy(value, found, length + 1);
    return (DWORD)length;
}

DWORD WINAPI GetEnvironmentVariableW(LPCWSTR name, LPWSTR value, DWORD size)
{
    char *narrow_name = text_narrow_dup(name);
    const char *found = narrow_name ? getenv(narrow_name) : NULL;
    size_t bytes, length;

    free(narrow_name);
    if (!found) {
        SetLastError(ERROR_ENVVAR_NOT_FOUND);
        return 0;
    }
    bytes = strlen(found);
    length = text_widen(found, bytes, NULL, 0, NULL);
    if (!value || length >= size)
        return (DWORD)length + 1;
    text_widen(found, bytes, value, length, NULL);
    value[length] = L'\0';
    return (DWORD)length;
}

BOOL WINAPI SetEnvironmentVariableA(LPCSTR name, LPCSTR value)
{
    int saved = errno, result;

    if (!name || !*name || strchr(name, '=')) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (!value && !getenv(name)) {
        SetLastError(ERROR_ENVVAR_NOT_FOUND);
        return FALSE;
    }
    result = value ? setenv(name, value, 1) : unsetenv(name);
    errno = saved;
    if (result != 0)
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return result == 0;
}

BOOL WINAPI SetEnvironmentVariableW(LPCWSTR name, LPCWSTR value)
{
    char *narrow_name = text_narrow_dup(name), *narrow_value = text_narrow_dup(value);
    BOOL set;

    if ((name && !narrow_name) || (value && !narrow_value)) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        set = FALSE;
    } else {
        set = SetEnvironmentVariableA(narrow_name, narrow_value);
    }
    free(narrow_name);
    free(narrow_value);
    return set;
}

/* The expanded text, for free(). */
static char *expand(const char *text)
{
    char *expanded = NULL;
    size_t size;
    FILE *out = open_memstream(&expanded, &size);

    if (!out)
        return NULL;
    while (*text) {
        const char *end = *text == '%' ? strchr(text + 1, '%') : NULL, *value = NULL;

        if (end && end > text + 1) {
            char *name = strndup(text + 1, (size_t)(end - text - 1));

            value = name ? getenv(name) : NULL;
            free(name);
        }
        if (value) {
            fputs(value, out);
            text = end + 1;
        } else if (end) {
            /* The second sign may begin the next name. */
            fwrite(text, 1, (size_t)(end - text), out);
            text = end;
            if (!strchr(text + 1, '%')) {
                fputs(text, out);
                break;
            }
        } else {
            fputc(*text++, out);
        }
    }
    fclose(out);
    return expanded;
}

DWORD WINAPI ExpandEnvironmentStringsA(LPCSTR text, LPSTR to, DWORD size)
{
    char *expanded = text ? expand(text) : NULL;
    DWORD needed;

    if (!expanded) {
        SetLastError(text ? ERROR_NOT_ENOUGH_MEMORY : ERROR_INVALID_PARAMETER);
        return 0;
    }
    needed = (DWORD)strlen(expanded) + 1;
    if (to && size)
        strcpy_s(to, size, expanded);
    free(expanded);
    return needed;
}

DWORD WINAPI ExpandEnvironmentStringsW(LPCWSTR text, LPWSTR to, DWORD size)
{
    char *narrow = text_narrow_dup(text), *expanded = narrow ? expand(narrow) : NULL;
    wchar_t *wide = text_widen_dup(expanded);
    DWORD needed = 0;

    if (wide) {
        needed = (DWORD)wcslen(wide) + 1;
        if (to && size)
            wcscpy_s(to, size, wide);
    } else {
        SetLastError(text ? ERROR_NOT_ENOUGH_MEMORY : ERROR_INVALID_PARAMETER);
    }
    free(wide);
    free(expanded);
    free(narrow);
    return needed;
}

static bool page_known(UINT page)
{
    return page == CP_ACP || page == CP_OEMCP || page == CP_THREAD_ACP || page == CP_UTF8;
}

/* The end that both directions share: `needed` characters into `size`. */
static int conversion_result(size_t needed, int size, size_t bad, bool strict)
{
    DWORD error = 0;

    if (bad && strict)
        error = ERROR_NO_UNICODE_TRANSLATION;
    else if (needed > INT_MAX)
        error = ERROR_INVALID_PARAMETER;
    else if (size && needed > (size_t)size)
        error = ERROR_INSUFFICIENT_BUFFER;
    if (!error)
        return (int)needed;
    SetLastError(error);
    return 0;
}

int WINAPI MultiByteToWideChar(UINT page, DWORD flags, LPCCH from, int from_length, LPWSTR to, int to_size)
{
    size_t length, needed, bad;

    if (!from || from_length == 0 || to_size < 0 || (to_size && !to) || (const void *)from == (const void *)to ||
        !page_known(page)) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    if (flags & ~(DWORD)(MB_ERR_INVALID_CHARS | (page == CP_UTF8 ? 0 : MB_PRECOMPOSED))) {
        SetLastError(ERROR_INVALID_FLAGS);
        return 0;
    }
    length = from_length < 0 ? strlen(from) + 1 : (size_t)from_length;
    needed = text_widen(from, length, to, (size_t)to_size, &bad);
    return conversion_result(needed, to_size, bad, flags & MB_ERR_INVALID_CHARS);
}

int WINAPI WideCharToMultiByte(UINT page, DWORD flags, LPCWCH from, int from_length, LPSTR to, int to_size,
                               LPCCH replacement, LPBOOL used_default)
{
    size_t length, needed, bad;

    if (!from || from_length == 0 || to_size < 0 || (to_size && !to) || (const void *)from == (const void *)to ||
        !page_known(page) || (page == CP_UTF8 && (replacement || used_default))) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return 0;
    }
    if (flags & ~(DWORD)(WC_ERR_INVALID_CHARS | (page == CP_UTF8 ? 0 : WC_NO_BEST_FIT_CHARS))) {
        SetLastError(ERROR_INVALID_FLAGS);
        return 0;
    }
    length = from_length < 0 ? wcslen(from) + 1 : (size_t)from_length;
    needed = text_narrow(from, length, to, (size_t)to_size, &bad);
    if (used_default)
        *used_default = bad != 0;
    return conversion_result(needed, to_size, bad, flags & WC_ERR_INVALID_CHARS);
}

int WINAPI lstrlenA(LPCSTR text)
{
    return text ? (int)strlen(text) : 0;
}

int WINAPI lstrlenW(LPCWSTR text)
{
    return text ? (int)wcslen(text) : 0;
}

static bool debug_output(void)
{
    const char *wish = getenv("NDVERBS_DEBUG_OUTPUT");

    return wish && *wish && strcmp(wish, "0") != 0;
}

VOID WINAPI OutputDebugStringA(LPCSTR text)
{
    if (text && debug_output())
        fputs(text, stderr);
}

VOID WINAPI OutputDebugStringW(LPCWSTR text)
{
    if (text && debug_output())
        fputws(text, stderr);
}

BOOL WINAPI IsDebuggerPresent(VOID)
{
    return FALSE;
}

VOID WINAPI DebugBreak(VOID)
{
    raise(SIGTRAP);
}
