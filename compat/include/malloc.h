/* SPDX-License-Identifier: MIT */
/* The system's <malloc.h> and what Microsoft's C run time adds to it: _alloca, _aligned_malloc. */
#pragma GCC system_header
#include_next <malloc.h>
#include "ndvcompat/crt_stdlib.h"
