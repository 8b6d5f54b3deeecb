/* SPDX-License-Identifier: MIT */
#ifndef SPECSTRINGS_H
#define SPECSTRINGS_H

/* Annotation words of the first generation (SAL1). Two of them, __in and __out, are parameter names inside the C++
 * library and the C library's socket headers: those headers are included here first, so that what an application
 * includes later is already done (measured with libstdc++ 12 and glibc 2.36; win32-surface.md section 3.2).
 * ND_COMPAT_NO_SAL1 leaves the words out, and with them the time to read these headers. */

#include "sal.h"

#ifndef ND_COMPAT_NO_SAL1

#ifdef __cplusplus
extern "C++" {
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <locale>
#include <memory>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#if __cplusplus >= 202002L
#include <ranges>
#if __has_include(<stop_token>)
#include <stop_token>
#endif
#endif
}
#endif
#include "ndvcompat/socket_bind.h"
#include <arpa/inet.h>
#include <netinet/in.h>

#define __in
#define __in_opt
#define __in_z
#define __in_bcount(...)
#define __in_bcount_opt(...)
#define __in_ecount(...)
#define __in_ecount_opt(...)
#define __out
#define __out_opt
#define __out_bcount(...)
#define __out_bcount_opt(...)
#define __out_bcount_part(...)
#define __out_bcount_part_opt(...)
#define __out_ecount(...)
#define __out_ecount_opt(...)
#define __out_ecount_part(...)
#define __out_ecount_part_opt(...)
#define __inout
#define __inout_opt
#define __inout_bcount(...)
#define __inout_bcount_opt(...)
#define __inout_bcount_part(...)
#define __inout_bcount_part_opt(...)
#define __inout_ecount(...)
#define __inout_ecount_opt(...)
#define __deref_in
#define __deref_out
#define __deref_out_opt
#define __deref_opt_out
#define __deref_out_bcount(...)
#define __deref_out_ecount(...)
#define __deref_inout
#define __checkReturn
#define __callback
#define __drv_aliasesMem

#endif

/* Not annotations in the strict sense, and free of collisions. */
#ifndef __fallthrough
#define __fallthrough __attribute__((fallthrough))
#endif

#endif
