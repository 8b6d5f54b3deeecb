/* SPDX-License-Identifier: MIT */
/* The system's <stdlib.h> and what Microsoft's C run time adds to it. */
#pragma GCC system_header
#include_next <stdlib.h>
#include "ndvcompat/crt_stdlib.h"
