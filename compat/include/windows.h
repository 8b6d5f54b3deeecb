/* SPDX-License-Identifier: MIT */
#ifndef _WINDOWS_
#define _WINDOWS_

/* The Win32 subset that RDMA applications use, in 32-bit-exact types. It holds no RDMA; sockets are in <winsock2.h>.
 * ND_COMPAT_NO_SAL1 and NOMINMAX leave out words that collide with other code. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C++" {
#include <new> /* std::nothrow */
}
#endif

/* Also where a C++ header includes the system's own of these names. */
#include "ndvcompat/crt_stdio.h"
#include "ndvcompat/crt_stdlib.h"
#include "ndvcompat/crt_string.h"

#include "winnt.h"
#include "winbase.h"

#endif
