/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_CRT_STDLIB_H
#define NDVCOMPAT_CRT_STDLIB_H

/* Additions to <stdlib.h> and <malloc.h>: see crt_types.h. */

#include <stddef.h>
#include <stdint.h>

#include "crt_types.h"

#ifndef _countof
#define _countof(array) (sizeof(array) / sizeof((array)[0]))
#endif

/* Results are saturated to their width; 0 for a text that is no number. */
NDV_API int32_t _wtoi(const wchar_t *text) NDV_SYM(_wtoi);
NDV_API int32_t _wtol(const wchar_t *text) NDV_SYM(_wtol);
NDV_API long long _wtoi64(const wchar_t *text) NDV_SYM(_wtoi64);
NDV_API double _wtof(const wchar_t *text) NDV_SYM(_wtof);
NDV_API long long _atoi64(const char *text) NDV_SYM(_atoi64);
/* atol with the 32-bit result of Windows: for _ttol. */
NDV_API int32_t _ndv_atol(const char *text) NDV_SYM(_ndv_atol);
NDV_API long long _strtoi64(const char *text, char **end, int base) NDV_SYM(_strtoi64);
NDV_API unsigned long long _strtoui64(const char *text, char **end, int base) NDV_SYM(_strtoui64);
NDV_API long long _wcstoi64(const wchar_t *text, wchar_t **end, int base) NDV_SYM(_wcstoi64);
NDV_API unsigned long long _wcstoui64(const wchar_t *text, wchar_t **end, int base) NDV_SYM(_wcstoui64);

/* Bases 2 to 36; a minus sign in base 10 only. The buffer must be large enough (33 or 65 characters); it is returned. */
NDV_API char *_itoa(int value, char *to, int base) NDV_SYM(_itoa);
NDV_API char *_ultoa(uint32_t value, char *to, int base) NDV_SYM(_ultoa);
NDV_API char *_i64toa(long long value, char *to, int base) NDV_SYM(_i64toa);
NDV_API char *_ui64toa(unsigned long long value, char *to, int base) NDV_SYM(_ui64toa);

/* Blocks are aligned to `alignment`, a power of two; the arguments are reversed from aligned_alloc, and size need not be a
 * multiple. Blocks go back through _aligned_free only. NULL with errno EINVAL or ENOMEM. */
NDV_API void *_aligned_malloc(size_t size, size_t alignment) NDV_SYM(_aligned_malloc);
NDV_API void _aligned_free(void *block) NDV_SYM(_aligned_free);

#define _alloca(size) __builtin_alloca(size)
#ifndef alloca
#define alloca(size) __builtin_alloca(size)
#endif

/* Environment. *length counts the terminator; 0: there is no such variable. _dupenv_s gives a copy for free(). */
NDV_API errno_t getenv_s(size_t *length, char *to, rsize_t size, const char *name) NDV_SYM(getenv_s);
NDV_API errno_t _dupenv_s(char **value, size_t *length, const char *name) NDV_SYM(_dupenv_s);
NDV_API errno_t _wdupenv_s(wchar_t **value, size_t *length, const wchar_t *name) NDV_SYM(_wdupenv_s);
/* An empty value removes the variable. */
NDV_API errno_t _putenv_s(const char *name, const char *value) NDV_SYM(_putenv_s);

static inline uint16_t _byteswap_ushort(uint16_t value)
{
    return __builtin_bswap16(value);
}
static inline uint32_t _byteswap_ulong(uint32_t value)
{
    return __builtin_bswap32(value);
}
static inline unsigned long long _byteswap_uint64(unsigned long long value)
{
    return __builtin_bswap64(value);
}
/* immintrin.h of gcc and clang has macros of these names, and clang with -fms-extensions has them built in. */
#if !defined(_rotl) && !NDV_HAS_BUILTIN(_rotl)
static inline unsigned int _rotl(unsigned int value, int shift)
{
    return value << (shift & 31) | value >> (-shift & 31);
}
#endif
#if !defined(_rotr) && !NDV_HAS_BUILTIN(_rotr)
static inline unsigned int _rotr(unsigned int value, int shift)
{
    return value >> (shift & 31) | value << (-shift & 31);
}
#endif
#if !NDV_HAS_BUILTIN(_rotl64)
static inline unsigned long long _rotl64(unsigned long long value, int shift)
{
    return value << (shift & 63) | value >> (-shift & 63);
}
#endif
#if !NDV_HAS_BUILTIN(_rotr64)
static inline unsigned long long _rotr64(unsigned long long value, int shift)
{
    return value >> (shift & 63) | value << (-shift & 63);
}
#endif

#endif
