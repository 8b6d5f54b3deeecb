/* SPDX-License-Identifier: MIT */

/* Spinning (off by default): the thread that drives looks before it polls. */

#include <ntstatus.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <windows.h>

#include "core/engine.h"
#include "core/spin.h"
#include "core/tunable.h"
#include "harness.h"
#include "overlapped.h"
#include "sleep.h"

static struct file *file;
static struct request *pending;
static struct engine_io io;
static int fd;
static uint32_t looks;

static void begin(OVERLAPPED *ov)
{
    struct request *request;

    ok_status(request_alloc(file, ov, NULL, NULL, &request), STATUS_SUCCESS);
    request_start(request);
    __atomic_store_n(&pending, request, __ATOMIC_RELEASE);
}

static void complete(void)
{
    struct request *request = __atomic_exchange_n(&pending, NULL, __ATOMIC_ACQ_REL);

    if (request)
        request_complete(request, STATUS_SUCCESS, 1);
}

static void ready(struct engine_io *from)
{
    uint64_t value;

    if (read(from->fd, &value, sizeof(value)) == sizeof(value))
        complete();
}

static void spin_for(const char *us)
{
    ok_int(setenv("NDVERBS_SPIN_US", us, 1), ==, 0);
    tunables_reload();
}

static void look_in_vain(void)
{
    __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
}

static void look_third_time(void)
{
    if (__atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) % 3 == 0)
        complete();
}

static void spin_start(void (*look)(void))
{
    ok_status(engine_start(), STATUS_SUCCESS);
    file = file_create();
    fd = eventfd(0, EFD_NONBLOCK);
    engine_io_add(&io, fd, ready);
    spin_register(look);
}

static DWORD WINAPI raise_later(LPVOID first_looks)
{
    uint64_t one = 1;

    do
        Sleep(20);
    while (__atomic_load_n(&looks, __ATOMIC_RELAXED) < *(uint32_t *)first_looks);
    ok(write(fd, &one, sizeof(one)) == sizeof(one));
    return 0;
}

/* The request is completed by the loop alone; once the waiting thread has looked that often. */
static void wait_for_raise(OVERLAPPED *ov, uint32_t first_looks)
{
    HANDLE thread;

    begin(ov);
    thread = CreateThread(NULL, 0, raise_later, &first_looks, 0, NULL);
    ok_uint(WaitForSingleObject(ov->hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
}

TEST(spin__no_poll_if_it_finds)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    uint64_t polls = sleep_counted_here(SLEEP_POLL);

    spin_start(look_third_time);
    spin_for("1000000");
    for (int i = 0; i < 20; i++) {
        begin(&ov);
        ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    }
    ok_uint(looks, >=, 60);
    ok_uint(sleep_counted_here(SLEEP_POLL), ==, polls);
}

TEST(spin__sleeps_if_it_does_not)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    spin_start(look_in_vain);
    spin_for("1000");
    wait_for_raise(&ov, 1);
}

TEST(spin__not_by_default)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    spin_start(look_in_vain);
    wait_for_raise(&ov, 0);
    ok_uint(looks, ==, 0);
}

static DWORD WINAPI set_later(LPVOID event)
{
    Sleep(20);
    SetEvent(event);
    return 0;
}

TEST(spin__ends_with_the_wait)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    uint64_t polls = sleep_counted_here(SLEEP_POLL);
    HANDLE thread;

    spin_start(look_in_vain);
    spin_for("1000000");
    begin(&ov);
    ok_uint(WaitForSingleObject(ov.hEvent, 5), ==, WAIT_TIMEOUT);
    ok_uint(sleep_counted_here(SLEEP_POLL), ==, polls);

    /* By a third thread, long before the second is over (the poll would end it too). */
    thread = CreateThread(NULL, 0, set_later, ov.hEvent, 0, NULL);
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
    complete();
}
