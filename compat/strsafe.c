/* SPDX-License-Identifier: MIT */
#include <strsafe.h>

#include <stdbool.h>

static HRESULT copied(errno_t result)
{
    return result == 0 ? S_OK : result == STRUNCATE ? STRSAFE_E_INSUFFICIENT_BUFFER : STRSAFE_E_INVALID_PARAMETER;
}

static bool size_good(size_t size)
{
    return size > 0 && size <= STRSAFE_MAX_CCH;
}

HRESULT WINAPI StringCchCopyA(LPSTR to, size_t size, LPCSTR from)
{
    return size_good(size) ? copied(strncpy_s(to, size, from, _TRUNCATE)) : STRSAFE_E_INVALID_PARAMETER;
}

HRESULT WINAPI StringCchCopyW(LPWSTR to, size_t size, LPCWSTR from)
{
    return size_good(size) ? copied(wcsncpy_s(to, size, from, _TRUNCATE)) : STRSAFE_E_INVALID_PARAMETER;
}

HRESULT WINAPI StringCchCatA(LPSTR to, size_t size, LPCSTR from)
{
    return size_good(size) ? copied(strncat_s(to, size, from, _TRUNCATE)) : STRSAFE_E_INVALID_PARAMETER;
}

HRESULT WINAPI StringCchCatW(LPWSTR to, size_t size, LPCWSTR from)
{
    return size_good(size) ? copied(wcsncat_s(to, size, from, _TRUNCATE)) : STRSAFE_E_INVALID_PARAMETER;
}

HRESULT WINAPI StringCchVPrintfA(LPSTR to, size_t size, LPCSTR format, va_list args)
{
    if (!size_good(size))
        return STRSAFE_E_INVALID_PARAMETER;
    return _vsnprintf_s(to, size, _TRUNCATE, format, args) >= 0 ? S_OK : STRSAFE_E_INSUFFICIENT_BUFFER;
}

HRESULT WINAPI StringCchVPrintfW(LPWSTR to, size_t size, LPCWSTR format, va_list args)
{
    if (!size_good(size))
        return STRSAFE_E_INVALID_PARAMETER;
    return _vsnwprintf_s(to, size, _TRUNCATE, format, args) >= 0 ? S_OK : STRSAFE_E_INSUFFICIENT_BUFFER;
}

HRESULT WINAPI StringCchPrintfA(LPSTR to, size_t size, LPCSTR format, ...)
{
    va_list args;
    HRESULT result;

    va_start(args, format);
    result = StringCchVPrintfA(to, size, format, args);
    va_end(args);
    return result;
}

HRESULT WINAPI StringCchPrintfW(LPWSTR to, size_t size, LPCWSTR format, ...)
{
    va_list args;
    HRESULT result;

    va_start(args, format);
    result = StringCchVPrintfW(to, size, format, args);
    va_end(args);
    return result;
}

HRESULT WINAPI StringCchLengthA(LPCSTR text, size_t size, size_t *length)
{
    size_t count = text && size <= STRSAFE_MAX_CCH ? strnlen(text, size) : size;

    if (length)
        *length = count < size ? count : 0;
    return count < size ? S_OK : STRSAFE_E_INVALID_PARAMETER;
}

HRESULT WINAPI StringCchLengthW(LPCWSTR text, size_t size, size_t *length)
{
    size_t count = text && size <= STRSAFE_MAX_CCH ? wcsnlen(text, size) : size;

    if (length)
        *length = count < size ? count : 0;
    return count < size ? S_OK : STRSAFE_E_INVALID_PARAMETER;
}
