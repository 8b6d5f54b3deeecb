/* SPDX-License-Identifier: MIT */
/* The system's <stdio.h> with the printf family of Microsoft's C run time, and what that run time adds to the header.
 * Source: win32-surface.md sections 4.5 and 7.1. */
#pragma GCC system_header
#include "ndvcompat/printf_bind.h"

/* The checked forms of _FORTIFY_SOURCE are inline functions that would silently take the place of those bound above. */
#include <features.h>
#pragma push_macro("__USE_FORTIFY_LEVEL")
#ifndef ND_COMPAT_NATIVE_STDIO
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0
#endif
#include_next <stdio.h>
#pragma pop_macro("__USE_FORTIFY_LEVEL")

#include "ndvcompat/crt_stdio.h"
