/* SPDX-License-Identifier: MIT */
#ifndef _SYSINFOAPI_H_
#define _SYSINFOAPI_H_

/* Clocks and system properties. Any thread. Source: win32-surface.md section 4.3. */

#include "minwinbase.h"

typedef struct _SYSTEM_INFO {
    __extension__ union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors;
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

#define PROCESSOR_ARCHITECTURE_INTEL   0
#define PROCESSOR_ARCHITECTURE_ARM     5
#define PROCESSOR_ARCHITECTURE_AMD64   9
#define PROCESSOR_ARCHITECTURE_ARM64   12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xFFFF

/* Page size, processors online and their mask, allocation granularity (64 KiB) and address range are filled in. */
NDV_API VOID WINAPI GetSystemInfo(_Out_ LPSYSTEM_INFO info) NDV_SYM(GetSystemInfo);

/* Milliseconds since boot; the 32-bit form wraps after 49.7 days. */
NDV_API DWORD WINAPI GetTickCount(void) NDV_SYM(GetTickCount);
NDV_API ULONGLONG WINAPI GetTickCount64(void) NDV_SYM(GetTickCount64);

/* Units of 100 ns since 1601-01-01 UTC. */
NDV_API VOID WINAPI GetSystemTimeAsFileTime(_Out_ LPFILETIME time) NDV_SYM(GetSystemTimeAsFileTime);

/* Memory of the machine (of its control group, if that has less) and address space of the process, in bytes. FALSE with
 * ERROR_INVALID_PARAMETER unless dwLength is the size of the structure. */
typedef struct _MEMORYSTATUSEX {
    DWORD dwLength;
    DWORD dwMemoryLoad; /* percent */
    DWORDLONG ullTotalPhys;
    DWORDLONG ullAvailPhys;
    DWORDLONG ullTotalPageFile;
    DWORDLONG ullAvailPageFile;
    DWORDLONG ullTotalVirtual;
    DWORDLONG ullAvailVirtual;
    DWORDLONG ullAvailExtendedVirtual;
} MEMORYSTATUSEX, *LPMEMORYSTATUSEX;
NDV_API BOOL WINAPI GlobalMemoryStatusEx(_Inout_ LPMEMORYSTATUSEX status) NDV_SYM(GlobalMemoryStatusEx);

#endif
