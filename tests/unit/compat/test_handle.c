/* SPDX-License-Identifier: MIT */

/* Handles and threads (win32-surface.md 6.1, 6.10). */

#include <pthread.h>
#include <sys/resource.h>
#include <windows.h>

#include "handle.h"
#include "harness.h"
#include "sleep.h"

static HANDLE tagged(HANDLE handle, uintptr_t bits)
{
    return (HANDLE)((uintptr_t)handle | bits);
}

TEST(handle__low_bits_are_ignored)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);

    ok_uint((uintptr_t)event & 3, ==, 0);
    for (uintptr_t bits = 1; bits <= 3; bits++) {
        ok(SetEvent(tagged(event, bits)));
        ok_uint(WaitForSingleObject(tagged(event, bits), 0), ==, WAIT_OBJECT_0);
    }
    ok(CloseHandle(tagged(event, 1)));
    ok_uint(handle_count(), ==, 0);
}

TEST(CloseHandle__twice)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);

    ok_int(CloseHandle(event), ==, 1);
    SetLastError(0);
    ok_int(CloseHandle(event), ==, 0);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
}

TEST(handle__stale_value_names_nothing_new)
{
    /* In 32 bits there is room for 4095 generations. */
    const int lives = UINTPTR_MAX > UINT32_MAX ? 10000 : 4000;
    HANDLE old = CreateEventW(NULL, TRUE, TRUE, NULL);

    CloseHandle(old);
    for (int i = 0; i < lives; i++) {
        HANDLE event = CreateEventW(NULL, TRUE, TRUE, NULL);

        ok_ptr(event, !=, old);
        ok_uint(WaitForSingleObject(old, 0), ==, WAIT_FAILED);
        ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
        ok(!SetEvent(old));
        CloseHandle(event);
    }
}

TEST(handle__never_valid_values)
{
    static const uintptr_t values[] = { 0, 1, 2, 3, 4, 0x1000, 0x12345678, ~(uintptr_t)0 - 3, ~(uintptr_t)0 - 7 };
    OVERLAPPED *ov = (OVERLAPPED *)1;
    DWORD bytes = 77;
    ULONG_PTR key = 88;

    for (size_t i = 0; i < ARRAYSIZE(values); i++) {
        HANDLE handle = (HANDLE)values[i];

        ok_int(SetEvent(handle), ==, 0);
        ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
        ok_int(ResetEvent(handle), ==, 0);
        ok_uint(WaitForSingleObject(handle, 0), ==, WAIT_FAILED);
        ok_int(CloseHandle(handle), ==, 0);
        ok(!GetQueuedCompletionStatus(handle, &bytes, &key, &ov, 0) && !ov && bytes == 77 && key == 88);
        ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
        ok(!PostQueuedCompletionStatus(handle, 0, 0, NULL));
        ok(!CancelIoEx(handle, NULL));
        ok(!CancelIo(handle));
        ok(!SetFileCompletionNotificationModes(handle, 0));
    }
    /* The pseudo-handles close without effect. */
    ok_int(CloseHandle(INVALID_HANDLE_VALUE), ==, 1);
    ok_int(CloseHandle(GetCurrentThread()), ==, 1);
}

TEST(handle__wrong_type)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL),
           port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);

    ok(!SetEvent(port));
    ok(!PostQueuedCompletionStatus(event, 0, 0, NULL));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_uint(WaitForSingleObject(port, 0), ==, WAIT_FAILED);
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    CloseHandle(event);
    CloseHandle(port);
}

TEST(DuplicateHandle__counts)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), copy = NULL, third;

    ok(DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    ok_ptr(copy, !=, event);
    CloseHandle(event);
    ok(SetEvent(copy));
    ok(DuplicateHandle(GetCurrentProcess(), copy, GetCurrentProcess(), &third, 0, FALSE,
                       DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE));
    ok(!SetEvent(copy));
    ok_uint(WaitForSingleObject(third, 0), ==, WAIT_OBJECT_0);
    CloseHandle(third);
    ok(!DuplicateHandle(GetCurrentProcess(), third, GetCurrentProcess(), &copy, 0, FALSE, 0));
    ok_uint(GetLastError(), ==, ERROR_INVALID_HANDLE);
    ok_uint(handle_count(), ==, 0);
}

/* Events take no descriptor each (D85). */
TEST(CreateEvent__100000_under_a_descriptor_limit)
{
    static HANDLE events[100000];
    struct rlimit limit = { 64, 64 };

    ok_int(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    for (size_t i = 0; i < ARRAYSIZE(events); i++) {
        events[i] = CreateEventW(NULL, FALSE, TRUE, NULL);
        ok_ptr(events[i], !=, NULL);
    }
    ok_uint(handle_count(), ==, ARRAYSIZE(events));
    for (size_t i = 0; i < ARRAYSIZE(events); i++) {
        ok_uint(WaitForSingleObject(events[i], 0), ==, WAIT_OBJECT_0);
        ok(CloseHandle(events[i]));
    }
    ok_uint(handle_count(), ==, 0);
}

static HANDLE waited;
static DWORD wait_result;

static DWORD WINAPI wait_for_it(LPVOID arg)
{
    (void)arg;
    wait_result = WaitForSingleObject(waited, 50);
    return 5;
}

TEST(CloseHandle__while_waited_for)
{
    uint64_t parked = sleep_counted(SLEEP_WAIT);
    HANDLE thread;

    waited = CreateEventW(NULL, FALSE, FALSE, NULL);
    thread = CreateThread(NULL, 0, wait_for_it, NULL, 0, NULL);
    ok_eventually(sleep_counted(SLEEP_WAIT) > parked);
    ok(CloseHandle(waited));
    ok(!SetEvent(waited));
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(wait_result, ==, WAIT_TIMEOUT);
    CloseHandle(thread);
}

static uint32_t go, gone;

static DWORD WINAPI thread_until_go(LPVOID arg)
{
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        SwitchToThread();
    *(DWORD *)arg = GetCurrentThreadId();
    __atomic_store_n(&gone, 1, __ATOMIC_RELEASE);
    return 0x80000001;
}

TEST(CreateThread__exit_code_and_id)
{
    DWORD id = 0, seen = 0, code = 0;
    HANDLE thread = CreateThread(NULL, 1, thread_until_go, &seen, STACK_SIZE_PARAM_IS_A_RESERVATION, &id);

    ok_ptr(thread, !=, NULL);
    ok(GetExitCodeThread(thread, &code));
    ok_uint(code, ==, STILL_ACTIVE);
    ok_uint(WaitForSingleObject(thread, 0), ==, WAIT_TIMEOUT);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    /* It stays set. */
    ok_uint(WaitForSingleObject(thread, 0), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code));
    ok_uint(code, ==, 0x80000001);
    ok_uint(id, ==, seen);
    ok_uint(id, !=, GetCurrentThreadId());
    CloseHandle(thread);
    ok(!GetExitCodeThread(thread, &code));
    ok_uint(handle_count(), ==, 0);
}

TEST(CreateThread__handle_closed_while_running)
{
    DWORD seen = 0;

    CloseHandle(CreateThread(NULL, 0, thread_until_go, &seen, 0, NULL));
    ok_uint(handle_count(), ==, 0);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    ok_eventually(__atomic_load_n(&gone, __ATOMIC_ACQUIRE));
}

TEST(CreateThread__suspended)
{
    ok_ptr(CreateThread(NULL, 0, thread_until_go, NULL, CREATE_SUSPENDED, NULL), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_NOT_SUPPORTED);
}

TEST(Sleep__never_early)
{
    uint64_t start = sleep_now();

    Sleep(0);
    Sleep(5);
    ok_uint(sleep_now() - start, >=, 5000000);
}

static void *foreign_thread(void *arg)
{
    ok(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), (HANDLE *)arg, 0, FALSE,
                       DUPLICATE_SAME_ACCESS));
    return NULL;
}

TEST(DuplicateHandle__of_a_thread_that_the_system_started)
{
    HANDLE thread = NULL;
    pthread_t started;

    ok_int(pthread_create(&started, NULL, foreign_thread, &thread), ==, 0);
    ok_int(pthread_join(started, NULL), ==, 0);
    ok_uint(WaitForSingleObject(thread, 0), ==, WAIT_OBJECT_0);
    ok(CloseHandle(thread));
    ok_uint(handle_count(), ==, 0);
}
