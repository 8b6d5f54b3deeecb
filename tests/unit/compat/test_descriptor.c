/* SPDX-License-Identifier: MIT */

/* Descriptors of events, threads, files and ports: readable exactly while there is something to take. */

#include <fcntl.h>
#include <ntstatus.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <windows.h>

#include "descriptor.h"
#include "handle.h"
#include "harness.h"
#include "overlapped.h"

static int descriptor_of(HANDLE handle)
{
    int fd = -1, again = -1;

    ok_status(handle_descriptor(handle, &fd), STATUS_SUCCESS);
    ok_status(handle_descriptor(handle, &again), STATUS_SUCCESS);
    ok_int(fd, >=, 0);
    ok_int(again, ==, fd);
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    return fd;
}

static bool readable(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    ok_int(poll(&poll_fd, 1, 0), >=, 0);
    return poll_fd.revents & POLLIN;
}

TEST(descriptor__auto_reset_event)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    int fd = descriptor_of(event);

    ok(!readable(fd));
    ok(SetEvent(event) && SetEvent(event));
    ok(readable(fd) && readable(fd));
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(!readable(fd));
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_TIMEOUT);
    ok(SetEvent(event) && ResetEvent(event));
    ok(!readable(fd));
    ok(CloseHandle(event));
    ok_int(fcntl(fd, F_GETFD), ==, -1);
}

TEST(descriptor__manual_reset_event)
{
    HANDLE event = CreateEventW(NULL, TRUE, TRUE, NULL);
    int fd = descriptor_of(event);

    ok(readable(fd));
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(readable(fd));
    ok(ResetEvent(event));
    ok(!readable(fd));
    ok(CloseHandle(event));
}

/* A wait on several objects consumes without the object's own lock. */
TEST(descriptor__multiple_wait)
{
    HANDLE events[2] = { CreateEventW(NULL, FALSE, TRUE, NULL), CreateEventW(NULL, FALSE, FALSE, NULL) };
    int fds[2] = { descriptor_of(events[0]), descriptor_of(events[1]) };

    ok_uint(WaitForMultipleObjects(2, events, TRUE, 0), ==, WAIT_TIMEOUT);
    ok(readable(fds[0]) && !readable(fds[1]));
    ok(SetEvent(events[1]));
    ok_uint(WaitForMultipleObjects(2, events, TRUE, 0), ==, WAIT_OBJECT_0);
    ok(!readable(fds[0]) && !readable(fds[1]));
    ok(SetEvent(events[1]));
    ok_uint(WaitForMultipleObjects(2, events, FALSE, 0), ==, WAIT_OBJECT_0 + 1);
    ok(!readable(fds[1]));
    CloseHandle(events[0]);
    CloseHandle(events[1]);
}

static DWORD WINAPI wait_for(LPVOID event)
{
    return WaitForSingleObject(event, INFINITE);
}

/* The signal that goes to a waiter is not shown to the loop. */
TEST(descriptor__a_waiter_takes_the_signal)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), thread = CreateThread(NULL, 0, wait_for, event, 0, NULL);
    int fd = descriptor_of(event), ended = descriptor_of(thread);
    DWORD code;

    ok(!readable(ended));
    while (WaitForSingleObject(thread, 10) == WAIT_TIMEOUT)
        ok(SetEvent(event));
    ok(readable(ended));
    ok(GetExitCodeThread(thread, &code) && code == WAIT_OBJECT_0);
    ResetEvent(event);
    ok(!readable(fd));
    CloseHandle(thread);
    CloseHandle(event);
}

TEST(descriptor__port)
{
    HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    OVERLAPPED_ENTRY entries[8];
    ULONG got;
    int fd;

    ok(PostQueuedCompletionStatus(port, 1, 1, NULL));
    fd = descriptor_of(port);
    ok(readable(fd));
    for (ULONG_PTR i = 2; i <= 5; i++)
        ok(PostQueuedCompletionStatus(port, 1, i, NULL));
    ok(GetQueuedCompletionStatusEx(port, entries, 2, &got, 0, FALSE));
    ok_uint(got, ==, 2);
    ok(readable(fd));
    ok(GetQueuedCompletionStatusEx(port, entries, 8, &got, 0, FALSE));
    ok_uint(got, ==, 3);
    ok(!readable(fd));
    ok(!GetQueuedCompletionStatusEx(port, entries, 8, &got, 0, FALSE));
    ok(PostQueuedCompletionStatus(port, 1, 6, NULL));
    ok(readable(fd));
    ok(CloseHandle(port));
    ok_int(fcntl(fd, F_GETFD), ==, -1);
}

static void no_cancel(struct request *request)
{
    (void)request;
}

/* Both ways by which a request tells: its event and its packet. */
TEST(descriptor__requests)
{
    struct file *file = file_create();
    HANDLE handle = file_open_handle(file, 0), port = CreateIoCompletionPort(handle, NULL, 9, 0);
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, TRUE, NULL) }, *done;
    int event_fd = descriptor_of(ov.hEvent), port_fd = descriptor_of(port);
    struct request *request;
    ULONG_PTR key;
    DWORD bytes;

    ok(readable(event_fd));
    ok_status(request_alloc(file, &ov, no_cancel, NULL, &request), STATUS_SUCCESS);
    request_start(request);
    ok(!readable(event_fd) && !readable(port_fd));
    request_complete(request, STATUS_SUCCESS, 7);
    ok(readable(event_fd) && readable(port_fd));
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &done, 0));
    ok_ptr(done, ==, &ov);
    ok(!readable(port_fd));
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    ok(!readable(event_fd));
    CloseHandle(ov.hEvent);
    CloseHandle(port);
    CloseHandle(handle);
    file_unref(file);
    ok_uint(handle_count(), ==, 0);
}

TEST(descriptor__bad_handles)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    int fd = -1;

    ok(CloseHandle(event));
    ok_status(handle_descriptor(event, &fd), STATUS_INVALID_HANDLE);
    ok_status(handle_descriptor(NULL, &fd), STATUS_INVALID_HANDLE);
    ok_status(handle_descriptor(INVALID_HANDLE_VALUE, &fd), STATUS_INVALID_HANDLE);
    ok_int(fd, ==, -1);
}

/* Events take no descriptor by themselves, and without one left they still work. */
TEST(descriptor__none_left)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL),
           port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    struct rlimit limit = { 0, 0 }, before;
    int fd = -1;

    ok_int(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    limit.rlim_max = before.rlim_max;
    ok_int(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    ok_status(handle_descriptor(event, &fd), STATUS_INSUFFICIENT_RESOURCES);
    ok_status(handle_descriptor(port, &fd), STATUS_INSUFFICIENT_RESOURCES);
    ok(SetEvent(event));
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok_int(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    fd = descriptor_of(event);
    ok(!readable(fd) && SetEvent(event) && readable(fd));
    CloseHandle(event);
    CloseHandle(port);
}

/* Four setters and two takers: at rest the descriptor says what the event says. */

static HANDLE shared;
static uint32_t stop;

static DWORD WINAPI set_often(LPVOID arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++)
        SetEvent(shared);
    return 0;
}

static DWORD WINAPI take_often(LPVOID arg)
{
    DWORD taken = 0;

    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        if (WaitForSingleObject(shared, taken % 2) == WAIT_OBJECT_0)
            taken++;
    }
    return taken;
}

TEST(descriptor__many_threads)
{
    HANDLE setters[4], takers[2];
    int fd;

    shared = CreateEventW(NULL, FALSE, FALSE, NULL);
    for (int i = 0; i < 2; i++)
        takers[i] = CreateThread(NULL, 0, take_often, NULL, 0, NULL);
    for (int i = 0; i < 4; i++)
        setters[i] = CreateThread(NULL, 0, set_often, NULL, 0, NULL);
    fd = descriptor_of(shared);
    ok_uint(WaitForMultipleObjects(4, setters, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    ok_uint(WaitForMultipleObjects(2, takers, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    WaitForSingleObject(shared, 0);
    ok(!readable(fd));
    ok(SetEvent(shared) && readable(fd));
    for (int i = 0; i < 4; i++)
        CloseHandle(setters[i]);
    for (int i = 0; i < 2; i++)
        CloseHandle(takers[i]);
    CloseHandle(shared);
}
