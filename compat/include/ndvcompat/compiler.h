/* SPDX-License-Identifier: MIT */
#ifndef NDVCOMPAT_COMPILER_H
#define NDVCOMPAT_COMPILER_H

/* What the Microsoft compiler has and gcc and clang lack: calling conventions, __declspec, sized integer keywords.
 * Source: win32-surface.md section 3. _WIN32, _WIN64 and _MSC_VER stay undefined: the C++ library, Boost and the
 * applications branch on them. */

/* Functions of the library under Windows names are exported under a prefix, so that a process may also load other Win32
 * libraries (WinPR, Wine) without a clash. The compiler keeps the Windows name, the linker sees ndv_<name>. */
#ifdef __cplusplus
#define NDV_API extern "C" __attribute__((visibility("default")))
#else
#define NDV_API extern __attribute__((visibility("default")))
#endif
#define NDV_SYM(name) __asm__("ndv_" #name)

/* A definition that may meet others of the same name in other objects: the first one wins. */
#define NDV_SELECTANY __attribute__((weak, visibility("default")))
#define NDV_VISIBLE   __attribute__((visibility("default")))

#ifdef __cplusplus
#define EXTERN_C       extern "C"
#define EXTERN_C_START extern "C" {
#define EXTERN_C_END   }
#else
#define EXTERN_C extern
#define EXTERN_C_START
#define EXTERN_C_END
#endif

/* One native convention everywhere, 32-bit included: application and library are built by the same kind of compiler. */
#ifndef __stdcall
#define __stdcall
#endif
#ifndef _stdcall
#define _stdcall
#endif
#ifndef __cdecl
#define __cdecl
#endif
#ifndef _cdecl
#define _cdecl
#endif
#ifndef __fastcall
#define __fastcall
#endif
#define WINAPI
#define WINAPIV
#define CALLBACK
#define APIENTRY
#define APIPRIVATE
#define PASCAL
#define CDECL
#define WSAAPI
#define WSPAPI
#define NTAPI
#define STDMETHODCALLTYPE
#define STDMETHODVCALLTYPE
#define STDAPICALLTYPE
#define STDAPIVCALLTYPE
#define FAR
#define NEAR
#define WINBASEAPI
#define WINUSERAPI
#define WINSOCK_API_LINKAGE

#ifndef __int64
#define __int64 long long
#endif
#ifndef __int32
#define __int32 int
#endif
#ifndef __int16
#define __int16 short
#endif
#ifndef __int8
#define __int8 char
#endif
#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#ifndef FORCEINLINE
#define FORCEINLINE static inline __attribute__((always_inline))
#endif

/* __declspec(x): dispatches on the word by token pasting, so that a macro named noreturn (stdnoreturn.h) does no harm.
 * One word per __declspec, which is how the applications surveyed write it. The words stand within the attribute, so that
 * deprecated can go without a text and with one; thread, which is none, ends it. */
#ifndef __declspec
#define __declspec(x) __attribute__((NDV_DECLSPEC_##x))
#endif
#define NDV_DECLSPEC_novtable
#define NDV_DECLSPEC_dllimport __visibility__("default")
#define NDV_DECLSPEC_dllexport __visibility__("default")
#define NDV_DECLSPEC_align(n)  __aligned__(n)
#define NDV_DECLSPEC_noreturn  __noreturn__
#define NDV_DECLSPEC_noinline  __noinline__
#define NDV_DECLSPEC_nothrow   __nothrow__
#define NDV_DECLSPEC_selectany __weak__
#define NDV_DECLSPEC_restrict
#define NDV_DECLSPEC_noalias
#define NDV_DECLSPEC_uuid(text)
#define NDV_DECLSPEC_deprecated __deprecated__
#ifdef __cplusplus
#define NDV_DECLSPEC_thread )) thread_local __attribute__((
#else
#define NDV_DECLSPEC_thread )) __thread __attribute__((
#endif

#define DECLSPEC_ALIGN(n)  __attribute__((aligned(n)))
#define DECLSPEC_NOINLINE  __attribute__((noinline))
#define DECLSPEC_NORETURN  __attribute__((noreturn))
#define DECLSPEC_SELECTANY __attribute__((weak))

/* What clang has built in with -fms-extensions is not to be defined once more. */
#ifdef __has_builtin
#define NDV_HAS_BUILTIN(name) __has_builtin(name)
#else
#define NDV_HAS_BUILTIN(name) 0
#endif

#ifdef __cplusplus
/* For overloads that take a variable of this type alone, and neither NULL nor another pointer. */
extern "C++" {
template <typename T, typename Wanted> struct ndv_only {
};
template <typename Wanted> struct ndv_only<Wanted, Wanted> {
    typedef int type;
};
}
#endif

#endif
