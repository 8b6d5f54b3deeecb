/* SPDX-License-Identifier: MIT */

/* Heap, pages, time, last error, messages, environment, text conversion: win32-surface.md 4.3, 5, 6.11. */

#ifdef _WIN32
#include <winsock2.h>
#endif
#include <windows.h>

#include <malloc.h>
#include <stdlib.h>
#include <wchar.h>

#include "harness.h"

TEST(HeapAlloc__blocks)
{
    HANDLE heaps[2];

    heaps[0] = GetProcessHeap();
    heaps[1] = HeapCreate(0, 0, 0);
    for (int i = 0; i < 2; i++) {
        unsigned char *block = (unsigned char *)HeapAlloc(heaps[i], HEAP_ZERO_MEMORY, 1000);

        ok(block != NULL && (uintptr_t)block % 16 == 0);
        for (int k = 0; k < 1000; k++)
            ok_uint(block[k], ==, 0);
        ok_uint(HeapSize(heaps[i], 0, block), ==, 1000);
        memset(block, 7, 1000);
        block = (unsigned char *)HeapReAlloc(heaps[i], HEAP_ZERO_MEMORY, block, 3000);
        ok(block != NULL && block[999] == 7 && block[1000] == 0 && block[2999] == 0);
        ok_int(HeapFree(heaps[i], 0, block), ==, TRUE);
        ok(HeapFree(heaps[i], 0, NULL));
    }
    /* What is left goes with the heap. */
    ok(HeapAlloc(heaps[1], 0, 10) != NULL && HeapAlloc(heaps[1], 0, 0) != NULL);
    ok_int(HeapDestroy(heaps[1]), ==, TRUE);
}

TEST(_aligned_malloc__alignment)
{
    for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
        char *block = (char *)_aligned_malloc(100, alignment);

        ok(block != NULL && (uintptr_t)block % alignment == 0);
        memset(block, 1, 100);
        _aligned_free(block);
    }
    _aligned_free(NULL);
}

TEST(VirtualAlloc__reserve_and_commit)
{
    SYSTEM_INFO info;
    MEMORY_BASIC_INFORMATION memory;
    char *block;

    GetSystemInfo(&info);
    ok_uint(info.dwAllocationGranularity, ==, 65536);
    ok_uint(info.dwNumberOfProcessors, >, 0);
    block = (char *)VirtualAlloc(NULL, 3 * info.dwPageSize, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    ok(block != NULL && (uintptr_t)block % 65536 == 0);
    ok_int(block[0], ==, 0);
    block[3 * info.dwPageSize - 1] = 1;
    ok_uint(VirtualQuery(block + info.dwPageSize, &memory, sizeof(memory)), ==, sizeof(memory));
    ok(memory.BaseAddress == block + info.dwPageSize && memory.AllocationBase == block);
    ok_uint(memory.RegionSize, ==, 2 * info.dwPageSize);
    ok_uint(memory.State, ==, MEM_COMMIT);
    ok_uint(memory.Protect, ==, PAGE_READWRITE);
    ok_uint(memory.Type, ==, MEM_PRIVATE);
    ok(!VirtualFree(block, info.dwPageSize, MEM_RELEASE));
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_int(VirtualFree(block, 0, MEM_RELEASE), ==, TRUE);

    block = (char *)VirtualAlloc(NULL, 65536, MEM_RESERVE, PAGE_READWRITE);
    ok(block != NULL);
    ok_uint(VirtualQuery(block, &memory, sizeof(memory)), ==, sizeof(memory));
    ok_uint(memory.State, ==, MEM_RESERVE);
    ok(VirtualAlloc(block, info.dwPageSize, MEM_COMMIT, PAGE_READWRITE) == block);
    block[0] = 1;
    ok_uint(VirtualQuery(block, &memory, sizeof(memory)), ==, sizeof(memory));
    ok_uint(memory.State, ==, MEM_COMMIT);
    ok_uint(memory.RegionSize, ==, info.dwPageSize);
    ok(VirtualFree(block, 0, MEM_RELEASE));
    ok_uint(VirtualQuery(block, &memory, sizeof(memory)), ==, sizeof(memory));
    ok_uint(memory.State, ==, MEM_FREE);
}

TEST(GlobalMemoryStatusEx__totals)
{
    MEMORYSTATUSEX status;

    memset(&status, 0, sizeof(status));
    ok(!GlobalMemoryStatusEx(&status));
    status.dwLength = sizeof(status);
    ok(GlobalMemoryStatusEx(&status));
    ok(status.ullTotalPhys > 1 << 20 && status.ullAvailPhys <= status.ullTotalPhys && status.dwMemoryLoad <= 100);
}

static ULONGLONG ticks(FILETIME time)
{
    return (ULONGLONG)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

TEST(time__clocks)
{
    LARGE_INTEGER a, b, frequency;
    FILETIME now, idle, kernel, user;
    ULONGLONG tick = GetTickCount64();
    DWORD tick32 = GetTickCount();

    ok(QueryPerformanceFrequency(&frequency) && frequency.QuadPart > 0);
    ok(QueryPerformanceCounter(&a));
    Sleep(20);
    ok(QueryPerformanceCounter(&b));
    ok(b.QuadPart > a.QuadPart);
    ok_uint(GetTickCount64() - tick, >=, 1);
    ok_uint(GetTickCount() - tick32, >=, 1);
    GetSystemTimeAsFileTime(&now);
    /* Between 2020 and 2120. */
    ok(ticks(now) > 132223104000000000ull && ticks(now) < 163780000000000000ull);
    ok(GetSystemTimes(&idle, &kernel, &user));
    /* Kernel time includes idle time. */
    ok(ticks(kernel) >= ticks(idle));
}

static DWORD WINAPI other_error(LPVOID arg)
{
    DWORD before = GetLastError();

    (void)arg;
    SetLastError(222);
    return before == 0 ? GetLastError() : 1;
}

TEST(last_error__of_the_thread)
{
    HANDLE thread;
    DWORD code;

    thread = CreateThread(NULL, 0, other_error, NULL, 0, NULL);
    SetLastError(111);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(GetLastError(), ==, 111);
    ok(GetExitCodeThread(thread, &code) && code == 222);
    CloseHandle(thread);
    SetLastError(0xdeadbeef);
    ok_uint(GetLastError(), ==, 0xdeadbeef);
}

/* Calls that succeed leave it alone. */
TEST(last_error__survives_success)
{
    HANDLE event = CreateEventW(NULL, TRUE, TRUE, NULL);

    SetLastError(4711);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(ResetEvent(event) && SetEvent(event));
    ok_uint(WaitForMultipleObjects(1, &event, FALSE, 5), ==, WAIT_OBJECT_0);
    Sleep(1);
    ok_uint(GetLastError(), ==, 4711);
    CloseHandle(event);
}

TEST(HRESULT__macros)
{
    ok(SUCCEEDED(S_OK) && SUCCEEDED(S_FALSE) && FAILED(E_FAIL) && SUCCEEDED((HRESULT)0x103));
    ok_int(HRESULT_FROM_WIN32(ERROR_SUCCESS), ==, S_OK);
    ok_int(HRESULT_FROM_WIN32(ERROR_ACCESS_DENIED), ==, E_ACCESSDENIED);
    ok_int(HRESULT_FROM_WIN32(ERROR_INVALID_HANDLE), ==, E_HANDLE);
    ok_int(HRESULT_FROM_WIN32(ERROR_INVALID_PARAMETER), ==, E_INVALIDARG);
    ok_int(HRESULT_FROM_WIN32((DWORD)E_INVALIDARG), ==, E_INVALIDARG);
    ok_int(HRESULT_FROM_NT(0x103), ==, (HRESULT)0x10000103);
    ok_int(HRESULT_CODE(E_INVALIDARG), ==, ERROR_INVALID_PARAMETER);
    ok_int(HRESULT_FACILITY(E_INVALIDARG), ==, FACILITY_WIN32);
    ok(E_NOTIMPL < 0 && sizeof(E_NOTIMPL) == 4);
}

TEST(FormatMessage__system)
{
    char text[300], *allocated = NULL;
    wchar_t wide[300];
    DWORD length;

    length = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, ERROR_INVALID_HANDLE, 0,
                            text, sizeof(text), NULL);
    ok_uint(length, >, 4);
    ok_uint(strlen(text), ==, length);
    ok_str(text + length - 2, "\r\n");
    length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, ERROR_INVALID_HANDLE,
                            MAKELANGID(LANG_NEUTRAL, SUBLANG_DEFAULT), wide, 300, NULL);
    ok_uint(wcslen(wide), ==, length);
    length = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_ALLOCATE_BUFFER, NULL,
                            (DWORD)HRESULT_FROM_WIN32(ERROR_INVALID_HANDLE), 0, (LPSTR)&allocated, 0, NULL);
    ok(allocated != NULL);
    ok_uint(strlen(allocated), ==, length);
    ok_str(allocated, text);
    ok(LocalFree(allocated) == NULL);
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, NULL, 0x2fffffff, 0, text, sizeof(text), NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_MR_MID_NOT_FOUND);
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, NULL, ERROR_INVALID_HANDLE, 0, text, 3, NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INSUFFICIENT_BUFFER);
}

TEST(FormatMessage__inserts)
{
    DWORD_PTR values[3];
    char text[100];
    wchar_t wide[100];

    values[0] = (DWORD_PTR) "one";
    values[1] = 0xbeef;
    values[2] = (DWORD_PTR)L"wide";
    ok_uint(FormatMessageA(FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY, "%1 %2!08x! %3!ls! 100%%%0!", 0,
                           0, text, sizeof(text), (va_list *)values),
            ==, strlen("one 0000beef wide 100%"));
    ok_str(text, "one 0000beef wide 100%");
    values[0] = (DWORD_PTR)L"one";
    ok(FormatMessageW(FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY, L"%1!6s!|%2!d!|%1", 0, 0, wide, 100,
                      (va_list *)values));
    ok(wcscmp(wide, L"   one|48879|one") == 0);
    ok(FormatMessageA(FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_IGNORE_INSERTS, "%1 %2", 0, 0, text, sizeof(text),
                      NULL));
    ok_str(text, "%1 %2");
}

TEST(environment__get_set_expand)
{
    char text[64];
    wchar_t wide[64];

    ok_uint(GetEnvironmentVariableA("CONFORMANCE_X", text, sizeof(text)), ==, 0);
    ok_uint(GetLastError(), ==, 203); /* ERROR_ENVVAR_NOT_FOUND */
    ok(SetEnvironmentVariableA("CONFORMANCE_X", "value"));
    ok_uint(GetEnvironmentVariableA("CONFORMANCE_X", NULL, 0), ==, 6);
    ok_uint(GetEnvironmentVariableA("CONFORMANCE_X", text, 5), ==, 6);
    ok_uint(GetEnvironmentVariableA("CONFORMANCE_X", text, 6), ==, 5);
    ok_str(text, "value");
    ok_uint(GetEnvironmentVariableW(L"CONFORMANCE_X", wide, 64), ==, 5);
    ok(wcscmp(wide, L"value") == 0);
    /* Counts the terminator. */
    ok_uint(ExpandEnvironmentStringsA("a%CONFORMANCE_X%b%CONFORMANCE_NONE%", NULL, 0), ==,
            strlen("avalueb%CONFORMANCE_NONE%") + 1);
    ok_uint(ExpandEnvironmentStringsA("a%CONFORMANCE_X%b%CONFORMANCE_NONE%c%", text, sizeof(text)), ==,
            strlen("avalueb%CONFORMANCE_NONE%c%") + 1);
    ok_str(text, "avalueb%CONFORMANCE_NONE%c%");
    ok_uint(ExpandEnvironmentStringsW(L"%CONFORMANCE_X%", wide, 64), ==, 6);
    ok(wcscmp(wide, L"value") == 0);
    ok(SetEnvironmentVariableW(L"CONFORMANCE_X", NULL));
    ok_uint(GetEnvironmentVariableW(L"CONFORMANCE_X", wide, 64), ==, 0);
}

TEST(MultiByteToWideChar__utf8)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac";
    static const wchar_t wide[] = { 'a', 0xe4, 0x20ac, 0 };
    char back[20];
    wchar_t to[20];

    ok_int(MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0), ==, 4);
    ok_int(MultiByteToWideChar(CP_UTF8, 0, text, -1, to, 20), ==, 4);
    ok(wcscmp(to, wide) == 0);
    ok_int(MultiByteToWideChar(CP_UTF8, 0, text, 3, to, 20), ==, 2);
    ok_int(MultiByteToWideChar(CP_UTF8, 0, text, -1, to, 3), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INSUFFICIENT_BUFFER);
    ok_int(MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, "\xff", -1, to, 20), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_NO_UNICODE_TRANSLATION);
    ok_int(MultiByteToWideChar(CP_UTF8, 0, "\xff", -1, to, 20), ==, 2);
    ok_uint(to[0], ==, 0xfffd);
    ok_int(MultiByteToWideChar(CP_UTF8, 0, text, 0, to, 20), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);

    ok_int(WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL), ==, 7);
    ok_int(WideCharToMultiByte(CP_UTF8, 0, wide, -1, back, 20, NULL, NULL), ==, 7);
    ok_str(back, text);
    ok_int(WideCharToMultiByte(CP_UTF8, 0, wide, 1, back, 20, NULL, NULL), ==, 1);
    ok_int(WideCharToMultiByte(CP_UTF8, 0, wide, -1, back, 6, NULL, NULL), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INSUFFICIENT_BUFFER);
    ok_int(WideCharToMultiByte(CP_ACP, 0, L"abc", -1, back, 20, NULL, NULL), ==, 4);
    ok_str(back, "abc");
}

TEST(LoadLibrary__errors)
{
    HMODULE module;

    ok(LoadLibraryW(L"no-such-library-anywhere.dll") == NULL);
    ok_uint(GetLastError(), ==, ERROR_MOD_NOT_FOUND);
    ok(LoadLibraryExW(L"no-such-library-anywhere.dll", NULL, 0) == NULL);
    module = GetModuleHandleW(NULL);
    ok(module != NULL);
    ok(GetProcAddress(module, "NoSuchFunctionAnywhere") == NULL);
    ok_uint(GetLastError(), ==, ERROR_PROC_NOT_FOUND);
    ok(GetModuleHandleA("no-such-library-anywhere.dll") == NULL);
    ok_uint(GetLastError(), ==, ERROR_MOD_NOT_FOUND);
    /* Of an own system library, under its Windows name. */
    module = LoadLibraryA("KERNEL32.dll");
    ok(module != NULL);
    ok(GetProcAddress(module, "AddSecureMemoryCacheCallbackX") == NULL);
    ok(FreeLibrary(module));
}

TEST(debug__output)
{
    ok_int(IsDebuggerPresent(), ==, FALSE);
    OutputDebugStringA("");
}
