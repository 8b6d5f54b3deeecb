/* SPDX-License-Identifier: MIT */
#ifndef _WINNT_
#define _WINNT_

/* Structures and constants of the kernel interface that user programs see. Source: win32-surface.md sections 2 and 3. */

#include "windef.h"
#include "guiddef.h"
#include "specstrings.h"
#include "ndvcompat/interlocked.h"

#define FIELD_OFFSET(type, field)   ((LONG) __builtin_offsetof(type, field))
#define RTL_FIELD_SIZE(type, field) (sizeof(((type *)0)->field))
#define RTL_NUMBER_OF(array)        (sizeof(array) / sizeof((array)[0]))
#define ARRAYSIZE(array)            RTL_NUMBER_OF(array)
#ifndef _countof
#define _countof(array) RTL_NUMBER_OF(array)
#endif
#ifdef __cplusplus
/* Types with bases or virtual functions as well, without the warning: every compiler here lays them out like the others. */
#define NDV_OFFSET(type, field)                                     \
    (__extension__({                                                \
        _Pragma("GCC diagnostic push");                             \
        _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"");   \
        const size_t ndv_offset_ = __builtin_offsetof(type, field); \
        _Pragma("GCC diagnostic pop");                              \
        ndv_offset_;                                                \
    }))
#define CONTAINING_RECORD(address, type, field) ((type *)((char *)(address)-NDV_OFFSET(type, field)))
#else
#define CONTAINING_RECORD(address, type, field) ((type *)((char *)(address) - __builtin_offsetof(type, field)))
#endif
#ifdef __cplusplus
#define C_ASSERT(condition) static_assert(condition, #condition)
#else
#define C_ASSERT(condition) _Static_assert(condition, #condition)
#endif
#define UNREFERENCED_PARAMETER(parameter)     ((void)(parameter))
#define UNREFERENCED_LOCAL_VARIABLE(variable) ((void)(variable))
#define DBG_UNREFERENCED_PARAMETER(parameter) ((void)(parameter))

#define RtlZeroMemory(to, size)       memset((to), 0, (size))
#define RtlCopyMemory(to, from, size) memcpy((to), (from), (size))
#define RtlMoveMemory(to, from, size) memmove((to), (from), (size))
#define RtlFillMemory(to, size, byte) memset((to), (byte), (size))
#define RtlEqualMemory(a, b, size)    (!memcmp((a), (b), (size)))
#define ZeroMemory                    RtlZeroMemory
#define CopyMemory                    RtlCopyMemory
#define MoveMemory                    RtlMoveMemory
#define FillMemory                    RtlFillMemory

/* Stays also where nobody reads the memory again. */
static inline PVOID RtlSecureZeroMemory(PVOID to, SIZE_T size)
{
    memset(to, 0, size);
    __asm__ volatile("" : : "r"(to) : "memory");
    return to;
}
#define SecureZeroMemory RtlSecureZeroMemory

typedef union _LARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        LONG HighPart;
    };
    struct {
        DWORD LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        DWORD HighPart;
    };
    struct {
        DWORD LowPart;
        DWORD HighPart;
    } u;
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

typedef struct _SINGLE_LIST_ENTRY {
    struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

typedef struct _LUID {
    DWORD LowPart;
    LONG HighPart;
} LUID, *PLUID;

typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    WORD Group;
    WORD Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

typedef struct _MEMORY_BASIC_INFORMATION {
    PVOID BaseAddress;
    PVOID AllocationBase;
    DWORD AllocationProtect;
#ifdef __LP64__
    WORD PartitionId;
#endif
    SIZE_T RegionSize;
    DWORD State;   /* MEM_COMMIT, MEM_RESERVE (of VirtualAlloc), MEM_FREE */
    DWORD Protect; /* PAGE_*; 0 unless committed */
    DWORD Type;    /* MEM_PRIVATE, MEM_MAPPED (a file); 0 if free */
} MEMORY_BASIC_INFORMATION, *PMEMORY_BASIC_INFORMATION;

#define MAXIMUM_WAIT_OBJECTS 64

/* The library knows one language. */
#define LANG_NEUTRAL             0x00
#define LANG_ENGLISH             0x09
#define SUBLANG_NEUTRAL          0x00
#define SUBLANG_DEFAULT          0x01
#define SUBLANG_SYS_DEFAULT      0x02
#define SUBLANG_ENGLISH_US       0x01
#define MAKELANGID(primary, sub) ((((WORD)(sub)) << 10) | (WORD)(primary))

#define DLL_PROCESS_DETACH 0
#define DLL_PROCESS_ATTACH 1
#define DLL_THREAD_ATTACH  2
#define DLL_THREAD_DETACH  3

/* Assertions of kernel style sources: nothing is recorded, and a failed one stops here. */
#define __annotation(...) ((void)0)
#define __int2c()         __builtin_trap()

#define FILE_SKIP_COMPLETION_PORT_ON_SUCCESS 0x1
#define FILE_SKIP_SET_EVENT_ON_HANDLE        0x2

#define DUPLICATE_CLOSE_SOURCE 0x00000001
#define DUPLICATE_SAME_ACCESS  0x00000002

#define HEAP_NO_SERIALIZE          0x00000001
#define HEAP_GROWABLE              0x00000002
#define HEAP_GENERATE_EXCEPTIONS   0x00000004
#define HEAP_ZERO_MEMORY           0x00000008
#define HEAP_REALLOC_IN_PLACE_ONLY 0x00000010
#define HEAP_CREATE_ENABLE_EXECUTE 0x00040000

#define PAGE_NOACCESS          0x01
#define PAGE_READONLY          0x02
#define PAGE_READWRITE         0x04
#define PAGE_WRITECOPY         0x08
#define PAGE_EXECUTE           0x10
#define PAGE_EXECUTE_READ      0x20
#define PAGE_EXECUTE_READWRITE 0x40
#define PAGE_GUARD             0x100
#define PAGE_NOCACHE           0x200
#define MEM_COMMIT             0x00001000
#define MEM_RESERVE            0x00002000
#define MEM_DECOMMIT           0x00004000
#define MEM_RELEASE            0x00008000
#define MEM_FREE               0x00010000
#define MEM_PRIVATE            0x00020000
#define MEM_MAPPED             0x00040000
#define MEM_RESET              0x00080000
#define MEM_TOP_DOWN           0x00100000
#define MEM_LARGE_PAGES        0x20000000
#define MEM_IMAGE              0x01000000

/* The few NTSTATUS values that Windows defines without <ntstatus.h>; the same spelling as there, so that both may be
 * included in any order. */
#ifndef WIN32_NO_STATUS
#define STATUS_WAIT_0            ((NTSTATUS)0x00000000)
#define STATUS_ABANDONED_WAIT_0  ((NTSTATUS)0x00000080)
#define STATUS_USER_APC          ((NTSTATUS)0x000000C0)
#define STATUS_TIMEOUT           ((NTSTATUS)0x00000102)
#define STATUS_PENDING           ((NTSTATUS)0x00000103)
#define STATUS_ACCESS_VIOLATION  ((NTSTATUS)0xC0000005)
#define STATUS_INVALID_HANDLE    ((NTSTATUS)0xC0000008)
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xC000000D)
#define STATUS_NO_MEMORY         ((NTSTATUS)0xC0000017)
#endif

#endif
