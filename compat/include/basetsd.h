/* SPDX-License-Identifier: MIT */
#ifndef _BASETSD_H_
#define _BASETSD_H_

/* Integer types of fixed and of pointer width. The widths are the Windows ones; `long` is never used, because it has
 * 8 bytes on LP64 Linux. 64-bit types are `long long`, so that %llu, %I64d and C++ overloads agree with each other.
 * Source: win32-surface.md section 2. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ndvcompat/compiler.h"

typedef signed char INT8, *PINT8;
typedef unsigned char UINT8, *PUINT8;
typedef int16_t INT16, *PINT16;
typedef uint16_t UINT16, *PUINT16;
typedef int32_t INT32, *PINT32;
typedef uint32_t UINT32, *PUINT32;
typedef long long INT64, *PINT64;
typedef unsigned long long UINT64, *PUINT64;

typedef int32_t LONG32, *PLONG32;
typedef uint32_t ULONG32, *PULONG32;
typedef uint32_t DWORD32, *PDWORD32;
typedef long long LONG64, *PLONG64;
typedef unsigned long long ULONG64, *PULONG64;
typedef unsigned long long DWORD64, *PDWORD64;

/* size_t, so that %zu, sizeof and std::min match. */
typedef size_t SIZE_T, *PSIZE_T;
typedef ssize_t SSIZE_T, *PSSIZE_T;

typedef intptr_t INT_PTR, *PINT_PTR;
typedef uintptr_t UINT_PTR, *PUINT_PTR;
typedef intptr_t LONG_PTR, *PLONG_PTR;
typedef uintptr_t ULONG_PTR, *PULONG_PTR;
typedef uintptr_t DWORD_PTR, *PDWORD_PTR;
typedef uintptr_t KAFFINITY, *PKAFFINITY;

#endif
