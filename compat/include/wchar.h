/* SPDX-License-Identifier: MIT */
/* The system's <wchar.h> with the printf family of Microsoft's C run time, and what that run time adds to the header.
 * Source: win32-surface.md sections 4.5 and 7.1. */
#pragma GCC system_header
#include "ndvcompat/printf_bind.h"

/* As in <stdio.h>. */
#include <features.h>
#pragma push_macro("__USE_FORTIFY_LEVEL")
#ifndef ND_COMPAT_NATIVE_STDIO
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0
#endif
#include_next <wchar.h>
#pragma pop_macro("__USE_FORTIFY_LEVEL")

#include "ndvcompat/crt_string.h"
