/* SPDX-License-Identifier: MIT */
/* The system's <string.h> and what Microsoft's C run time adds to it. */
#pragma GCC system_header
#include_next <string.h>
#include "ndvcompat/crt_string.h"
