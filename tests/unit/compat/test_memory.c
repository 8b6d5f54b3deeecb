/* SPDX-License-Identifier: MIT */

/* Heaps, pages, clocks (win32-surface.md 4.3, 6.11). */

#include <time.h>
#include <unistd.h>
#include <windows.h>

#include "harness.h"

TEST(HeapAlloc__alignment_zero_and_size)
{
    HANDLE heap = GetProcessHeap();

    ok_ptr(heap, !=, NULL);
    for (SIZE_T size = 0; size < 300; size += 7) {
        unsigned char *block = HeapAlloc(heap, HEAP_ZERO_MEMORY, size);

        ok_ptr(block, !=, NULL);
        ok_uint((uintptr_t)block % 16, ==, 0);
        ok_uint(HeapSize(heap, 0, block), ==, size);
        for (SIZE_T i = 0; i < size; i++)
            ok_uint(block[i], ==, 0);
        memset(block, 0xff, size);
        block = HeapReAlloc(heap, HEAP_ZERO_MEMORY, block, size + 100);
        for (SIZE_T i = 0; i < size + 100; i++)
            ok_uint(block[i], ==, i < size ? 0xff : 0);
        ok_ptr(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, size + 1000), ==, NULL);
        ok_ptr(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, size), ==, block);
        ok_int(HeapFree(heap, 0, block), ==, 1);
    }
    ok(HeapFree(heap, 0, NULL));
    ok_ptr(HeapAlloc(heap, 0, (SIZE_T)-1), ==, NULL);
    ok_ptr(HeapAlloc(NULL, 0, 1), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok(!HeapDestroy(heap));
}

/* What is left in a private heap goes with it (seen by leak checkers). */
TEST(HeapDestroy__frees_blocks)
{
    HANDLE heap = HeapCreate(0, 0, 0), other = HeapCreate(0, 4096, 0);
    void *kept = NULL;

    for (int i = 0; i < 100; i++) {
        void *block = HeapAlloc(heap, 0, 100);

        if (i % 3 == 0)
            HeapFree(heap, 0, block);
        else
            kept = HeapReAlloc(heap, 0, block, 1000);
    }
    ok(!HeapFree(other, 0, kept));
    ok_uint(HeapSize(other, 0, kept), ==, (SIZE_T)-1);
    ok_int(HeapDestroy(heap), ==, 1);
    ok_int(HeapDestroy(other), ==, 1);
}

TEST(aligned_malloc__alignment)
{
    for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        void *block = _aligned_malloc(100, alignment);

        ok_ptr(block, !=, NULL);
        ok_uint((uintptr_t)block % alignment, ==, 0);
        memset(block, 1, 100);
        _aligned_free(block);
    }
    ok_ptr(_aligned_malloc(100, 3), ==, NULL);
    _aligned_free(NULL);
}

TEST(VirtualAlloc__reserve_commit_release)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *one = VirtualAlloc(NULL, 1, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE), *two;

    ok_ptr(one, !=, NULL);
    ok_uint((uintptr_t)one % 65536, ==, 0);
    for (size_t i = 0; i < page; i++)
        ok_uint(one[i], ==, 0);
    memset(one, 7, page);
    two = VirtualAlloc(NULL, 10 * page, MEM_RESERVE, PAGE_NOACCESS);
    ok_ptr(two, !=, NULL);
    ok_ptr(VirtualAlloc(two + 3 * page + 5, 10, MEM_COMMIT, PAGE_READWRITE), ==, two + 3 * page);
    two[3 * page] = 1;
    ok_ptr(VirtualAlloc(two + 9 * page, 2 * page, MEM_COMMIT, PAGE_READWRITE), ==, NULL);
    ok(VirtualFree(two + 3 * page, page, MEM_DECOMMIT));
    ok_ptr(VirtualAlloc(two + 3 * page, page, MEM_COMMIT, PAGE_READWRITE), !=, NULL);
    ok_uint(two[3 * page], ==, 0);
    ok(!VirtualFree(two + page, 0, MEM_RELEASE));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok(!VirtualFree(two, page, MEM_RELEASE));
    ok_int(VirtualFree(two, 0, MEM_RELEASE), ==, 1);
    ok_int(VirtualFree(one, 0, MEM_RELEASE), ==, 1);
    ok(!VirtualFree(one, 0, MEM_RELEASE));
    ok_ptr(VirtualAlloc(NULL, 0, MEM_COMMIT, PAGE_READWRITE), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_ptr(VirtualAlloc(NULL, page, MEM_COMMIT, 0x12345), ==, NULL);
}

TEST(clocks__advance_and_agree)
{
    LARGE_INTEGER frequency, first, second;
    ULONGLONG ticks = GetTickCount64();
    FILETIME idle, kernel, user, now;
    ULARGE_INTEGER t;

    ok(QueryPerformanceFrequency(&frequency) && frequency.QuadPart > 0);
    ok(QueryPerformanceCounter(&first));
    Sleep(10);
    ok(QueryPerformanceCounter(&second));
    ok_int((second.QuadPart - first.QuadPart) * 1000 / frequency.QuadPart, >=, 10);
    ok_uint(GetTickCount64() - ticks, >=, 9);
    ok_uint(GetTickCount() - (DWORD)ticks, >=, 9);
    GetSystemTimeAsFileTime(&now);
    t.LowPart = now.dwLowDateTime;
    t.HighPart = now.dwHighDateTime;
    ok_int(t.QuadPart / 10000000 - 11644473600ull - (ULONGLONG)time(NULL) + 1, <=, 2);
    ok(GetSystemTimes(&idle, &kernel, &user));
    ok(kernel.dwHighDateTime > idle.dwHighDateTime ||
       (kernel.dwHighDateTime == idle.dwHighDateTime && kernel.dwLowDateTime >= idle.dwLowDateTime));
    ok(GetSystemTimes(NULL, NULL, NULL));
}

TEST(GetSystemInfo__page_and_processors)
{
    SYSTEM_INFO info;

    GetSystemInfo(&info);
    ok_uint(info.dwPageSize, ==, (DWORD)sysconf(_SC_PAGESIZE));
    ok_uint(info.dwNumberOfProcessors, ==, (DWORD)sysconf(_SC_NPROCESSORS_ONLN));
    ok_uint(info.dwAllocationGranularity, ==, 65536);
    ok_uint(info.dwActiveProcessorMask & 1, ==, 1);
}
