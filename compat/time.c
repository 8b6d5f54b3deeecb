/* SPDX-License-Identifier: MIT */
#include <windows.h>

#include <errno.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "sleep.h"

#define NS_PER_S           1000000000ll
#define TICKS_PER_S        10000000ll /* FILETIME: 100 ns */
#define TICKS_1601_TO_1970 116444736000000000ll
#define GRANULARITY        65536

/* Nanoseconds, since programs of this field time single round trips of some microseconds. */
BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER *count)
{
    count->QuadPart = (LONGLONG)sleep_now();
    return TRUE;
}

BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER *frequency)
{
    frequency->QuadPart = NS_PER_S;
    return TRUE;
}

ULONGLONG WINAPI GetTickCount64(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (ULONGLONG)ts.tv_sec * 1000 + (ULONGLONG)ts.tv_nsec / 1000000;
}

DWORD WINAPI GetTickCount(void)
{
    return (DWORD)GetTickCount64();
}

static void filetime_set(LPFILETIME time, ULONGLONG ticks)
{
    time->dwLowDateTime = (DWORD)ticks;
    time->dwHighDateTime = (DWORD)(ticks >> 32);
}

VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME time)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    filetime_set(time, (ULONGLONG)(ts.tv_sec * TICKS_PER_S + ts.tv_nsec / 100 + TICKS_1601_TO_1970));
}

/* Kernel time includes idle time, as on Windows: programs compute 100 - idle * 100 / (kernel + user). */
BOOL WINAPI GetSystemTimes(LPFILETIME idle, LPFILETIME kernel, LPFILETIME user)
{
    unsigned long long t[8] = { 0 };
    long hz = sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    int fields = 0;

    if (file) {
        fields = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
                        &t[6], &t[7]);
        fclose(file);
    }
    if (fields < 4 || hz <= 0) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return FALSE;
    }
    ULONGLONG unit = (ULONGLONG)(TICKS_PER_S / hz);
    /* user nice system idle iowait irq softirq steal */
    if (idle)
        filetime_set(idle, (t[3] + t[4]) * unit);
    if (kernel)
        filetime_set(kernel, (t[2] + t[3] + t[4] + t[5] + t[6] + t[7]) * unit);
    if (user)
        filetime_set(user, (t[0] + t[1]) * unit);
    return TRUE;
}

VOID WINAPI GetSystemInfo(LPSYSTEM_INFO info)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);

    memset(info, 0, sizeof(*info));
#if defined(__x86_64__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64;
#elif defined(__i386__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_INTEL;
#elif defined(__aarch64__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_ARM64;
#elif defined(__arm__)
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_ARM;
#else
    info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_UNKNOWN;
#endif
    info->dwPageSize = page > 0 ? (DWORD)page : 4096;
    info->dwNumberOfProcessors = processors > 0 ? (DWORD)processors : 1;
    info->dwActiveProcessorMask = info->dwNumberOfProcessors >= sizeof(DWORD_PTR) * 8
                                      ? ~(DWORD_PTR)0
                                      : ((DWORD_PTR)1 << info->dwNumberOfProcessors) - 1;
    info->dwAllocationGranularity = GRANULARITY;
    info->lpMinimumApplicationAddress = (LPVOID)(uintptr_t)GRANULARITY;
#if UINTPTR_MAX > 0xffffffffu
    info->lpMaximumApplicationAddress = (LPVOID)0x7ffffffeffffull;
#else
    info->lpMaximumApplicationAddress = (LPVOID)0xfffeffffu;
#endif
}

/* A control group may have less memory than the machine. */
static ULONGLONG memory_limit(void)
{
    ULONGLONG limit = 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");

    if (file) {
        if (fscanf(file, "%llu", &limit) != 1)
            limit = 0;
        fclose(file);
    }
    return limit;
}

BOOL WINAPI GlobalMemoryStatusEx(LPMEMORYSTATUSEX status)
{
    ULONGLONG limit = memory_limit();
    struct sysinfo info;
    SYSTEM_INFO system;

    if (!status || status->dwLength != sizeof(*status)) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return FALSE;
    }
    if (sysinfo(&info) != 0) {
        SetLastError(ERROR_NOT_SUPPORTED);
        return FALSE;
    }
    GetSystemInfo(&system);
    status->ullTotalPhys = (ULONGLONG)info.totalram * info.mem_unit;
    if (limit && limit < status->ullTotalPhys)
        status->ullTotalPhys = limit;
    status->ullAvailPhys = ((ULONGLONG)info.freeram + info.bufferram) * info.mem_unit;
    if (status->ullAvailPhys > status->ullTotalPhys)
        status->ullAvailPhys = status->ullTotalPhys;
    status->ullTotalPageFile = status->ullTotalPhys + (ULONGLONG)info.totalswap * info.mem_unit;
    status->ullAvailPageFile = status->ullAvailPhys + (ULONGLONG)info.freeswap * info.mem_unit;
    status->ullTotalVirtual = (ULONGLONG)(uintptr_t)system.lpMaximumApplicationAddress;
    status->ullAvailVirtual = status->ullTotalVirtual;
    status->ullAvailExtendedVirtual = 0;
    status->dwMemoryLoad = (DWORD)(100 - status->ullAvailPhys * 100 / status->ullTotalPhys);
    return TRUE;
}
