/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_CRT_TYPES_H
#define NDVCOMPAT_CRT_TYPES_H

/* Shared by the crt_*.h headers: what Microsoft's C run time has beyond the standard. Any thread.
 * Secure functions. Where Windows ends the process (a buffer that is too small, a NULL argument), these return ERANGE or
 * EINVAL, set errno to it and leave an empty string. In C++ the size of an array that is the destination may be left out.
 * Source: win32-surface.md sections 4.5 and 7.2. */

#include <stddef.h>

#include "compiler.h"

typedef int errno_t;
#ifndef __STDC_LIB_EXT1__
typedef size_t rsize_t;
#endif

/* As the count: as much as fits. STRUNCATE is the result if that was not all. */
#ifndef _TRUNCATE
#define _TRUNCATE ((size_t)-1)
#endif
#ifndef STRUNCATE
#define STRUNCATE 80
#endif

#endif
