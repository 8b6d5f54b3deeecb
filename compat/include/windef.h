/* SPDX-License-Identifier: MIT */
#ifndef _WINDEF_
#define _WINDEF_

/* The scalar types and small macros that every Windows header assumes. Source: win32-surface.md sections 2 and 3. */

#include <wchar.h>

#include "basetsd.h"
#include "sal.h"

/* Compiled so, an application would not fit the library: its texts and structures would have other sizes. */
#if defined(__SIZEOF_WCHAR_T__) && __SIZEOF_WCHAR_T__ != 4
#error "WCHAR is the system's wchar_t of 4 bytes: compile without -fshort-wchar"
#endif
enum ndv_enumeration {
    NDV_ENUMERATION
};
#ifdef __cplusplus
static_assert(sizeof(enum ndv_enumeration) == sizeof(int), "compile without -fshort-enums");
#else
_Static_assert(sizeof(enum ndv_enumeration) == sizeof(int), "compile without -fshort-enums");
#endif

typedef char CHAR, CCHAR, *PCHAR, *LPCH, *PCH;
typedef signed char SCHAR;
typedef unsigned char UCHAR, *PUCHAR;
typedef int16_t SHORT, *PSHORT;
typedef uint16_t USHORT, *PUSHORT;
typedef int32_t LONG, *PLONG, *LPLONG;
typedef uint32_t ULONG, *PULONG;
typedef int INT, *PINT, *LPINT;
typedef unsigned int UINT, *PUINT;
typedef long long LONGLONG, *PLONGLONG;
typedef unsigned long long ULONGLONG, *PULONGLONG, DWORDLONG, *PDWORDLONG;
typedef unsigned char BYTE, *PBYTE, *LPBYTE;
typedef uint16_t WORD, *PWORD, *LPWORD;
typedef uint32_t DWORD, *PDWORD, *LPDWORD;
typedef int BOOL, *PBOOL, *LPBOOL; /* never the C++ bool: size and overloads differ */
typedef BYTE BOOLEAN, *PBOOLEAN;
typedef float FLOAT, *PFLOAT;
typedef double DOUBLE;
typedef int32_t HRESULT;
typedef int32_t NTSTATUS, *PNTSTATUS;
typedef int32_t SCODE;

#define VOID void
#ifndef CONST
#define CONST const
#endif
typedef void *PVOID, *LPVOID;
typedef const void *LPCVOID, *PCVOID;

/* wchar_t has 4 bytes here: literals, wcscmp and std::wstring work unchanged; nothing surveyed puts wide text on a wire
 * (win32-surface.md 7.2). */
typedef wchar_t WCHAR, *PWCHAR, *LPWCH, *PWCH;
typedef CHAR *LPSTR, *PSTR, *NPSTR;
typedef const CHAR *LPCSTR, *PCSTR, *LPCCH;
typedef WCHAR *LPWSTR, *PWSTR;
typedef const WCHAR *LPCWSTR, *PCWSTR, *LPCWCH;

#ifdef UNICODE
typedef WCHAR TCHAR, *PTCHAR, TBYTE;
typedef LPWSTR LPTSTR, PTSTR;
typedef LPCWSTR LPCTSTR, PCTSTR;
#define NDV_TEXT(quote) L##quote
#else
typedef char TCHAR, *PTCHAR;
typedef unsigned char TBYTE;
typedef LPSTR LPTSTR, PTSTR;
typedef LPCSTR LPCTSTR, PCTSTR;
#define NDV_TEXT(quote) quote
#endif
#ifndef TEXT
#define TEXT(quote) NDV_TEXT(quote)
#endif

/* void *, because C++ applications hold handles in unique_ptr<remove_pointer_t<HANDLE>>. */
typedef void *HANDLE, **PHANDLE, **LPHANDLE;
typedef HANDLE HGLOBAL, HLOCAL;
#define DECLARE_HANDLE(name) \
    struct name##__ {        \
        int unused;          \
    };                       \
    typedef struct name##__ *name
DECLARE_HANDLE(HINSTANCE);
DECLARE_HANDLE(HWND);
typedef HINSTANCE HMODULE;
typedef INT_PTR(WINAPI *FARPROC)(void);

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif

#define MAKEWORD(low, high) ((WORD)(((BYTE)(low)) | ((WORD)((BYTE)(high))) << 8))
#define MAKELONG(low, high) ((LONG)(((WORD)(low)) | ((DWORD)((WORD)(high))) << 16))
#define LOWORD(value)       ((WORD)((DWORD_PTR)(value)&0xffff))
#define HIWORD(value)       ((WORD)(((DWORD_PTR)(value) >> 16) & 0xffff))
#define LOBYTE(value)       ((BYTE)((DWORD_PTR)(value)&0xff))
#define HIBYTE(value)       ((BYTE)(((DWORD_PTR)(value) >> 8) & 0xff))

#ifndef MAX_PATH
#define MAX_PATH 260
#endif

#include "ndvcompat/minmax.h"

#endif
