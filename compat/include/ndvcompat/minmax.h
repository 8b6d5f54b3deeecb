/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_MINMAX_H
#define NDVCOMPAT_MINMAX_H

/* min and max of two values of possibly different types. Macros in C; templates in C++, where macros would break every
 * header of the C++ library that follows. They lose against std::min by being less specialised, so `using namespace std`
 * stays unambiguous. NOMINMAX leaves them out. Source: win32-surface.md section 3.3. */
#ifndef NOMINMAX
#ifdef __cplusplus
extern "C++" {
#include <type_traits>
template <typename A, typename B> constexpr typename std::common_type<A, B>::type min(const A &a, const B &b)
{
    typedef typename std::common_type<A, B>::type common;
    return static_cast<common>(b) < static_cast<common>(a) ? static_cast<common>(b) : static_cast<common>(a);
}
template <typename A, typename B> constexpr typename std::common_type<A, B>::type max(const A &a, const B &b)
{
    typedef typename std::common_type<A, B>::type common;
    return static_cast<common>(a) < static_cast<common>(b) ? static_cast<common>(b) : static_cast<common>(a);
}
}
#else
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif
#endif

#endif
