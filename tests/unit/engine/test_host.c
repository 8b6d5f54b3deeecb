/* SPDX-License-Identifier: MIT */

/* The engine driven by a program's own loop: everything that is to happen shows on its descriptor. */

#include <fcntl.h>
#include <ndstatus.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <windows.h>

#include "core/engine.h"
#include "core/engine_host.h"
#include "harness.h"
#include "overlapped.h"
#include "sleep.h"
#include "wait.h"

static int loop_fd;
static pthread_t ran_by;

/* An eventfd as device: each readiness counts. */
static struct source {
    struct engine_io io;
    int fd;
    uint32_t ready, removed;
} source;

static void source_ready(struct engine_io *io)
{
    uint64_t value;

    ok(engine_on_loop());
    ok(read(io->fd, &value, sizeof(value)) == sizeof(value));
    ran_by = pthread_self();
    __atomic_add_fetch(&source.ready, 1, __ATOMIC_RELEASE);
}

static void source_removed(struct engine_io *io)
{
    (void)io;
    __atomic_store_n(&source.removed, 1, __ATOMIC_RELEASE);
}

static void source_raise(void)
{
    uint64_t one = 1;

    ok(write(source.fd, &one, sizeof(one)) == sizeof(one));
}

static uint32_t ready_count(void)
{
    return __atomic_load_n(&source.ready, __ATOMIC_ACQUIRE);
}

static bool readable(int timeout)
{
    struct pollfd poll_fd = { .fd = loop_fd, .events = POLLIN };

    ok_int(poll(&poll_fd, 1, timeout), >=, 0);
    return poll_fd.revents & POLLIN;
}

/* What a host does: one dispatch for each readiness, until there is none. Returns their number. */
static unsigned dispatch_all(void)
{
    unsigned count = 0;

    while (readable(0)) {
        ok_status(engine_host_dispatch(), ND_SUCCESS);
        ok_uint(++count, <, 1000);
    }
    return count;
}

/* The background thread has let go. */
static void host_begin(void)
{
    ok_status(engine_host_start(&loop_fd), ND_SUCCESS);
    ok_eventually(engine_host_dispatch() == ND_SUCCESS);
    dispatch_all();
}

static void source_begin(void)
{
    source.fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    engine_io_add(&source.io, source.fd, source_ready);
}

TEST(host__only_its_dispatch_runs_callbacks)
{
    ok_status(engine_start(), ND_SUCCESS);
    ok_status(engine_host_dispatch(), ND_DEVICE_NOT_READY);
    source_begin(); /* watched before the host is declared */
    source_raise();
    ok_eventually(ready_count() == 1);
    ok(!pthread_equal(ran_by, pthread_self()));
    host_begin();
    ok(!readable(0));
    for (unsigned i = 2; i < 20; i++) {
        source_raise();
        ok(readable(-1));
        Sleep(i == 2 ? 30 : 0); /* nobody else takes it */
        ok_uint(ready_count(), ==, i - 1);
        ok_uint(dispatch_all(), ==, 1);
        ok_uint(ready_count(), ==, i);
        ok(pthread_equal(ran_by, pthread_self()));
    }
}

TEST(host__same_descriptor_each_time)
{
    int again = -1;

    host_begin();
    ok_status(engine_host_start(&again), ND_SUCCESS);
    ok_int(again, ==, loop_fd);
    ok(fcntl(loop_fd, F_GETFD) & FD_CLOEXEC);
    engine_host_stop();
    ok_status(engine_host_dispatch(), ND_DEVICE_NOT_READY);
    ok_status(engine_host_start(&again), ND_SUCCESS);
    ok_int(again, ==, loop_fd);
}

/* Watched and unwatched while the host drives. */
TEST(host__descriptors_come_and_go)
{
    host_begin();
    for (int i = 0; i < 3; i++) {
        source.ready = source.removed = 0;
        source_begin();
        ok(readable(0));
        dispatch_all();
        source_raise();
        source_raise();
        ok_uint(dispatch_all(), ==, 2);
        ok_uint(ready_count(), ==, 2);
        engine_io_remove(&source.io, source_removed);
        ok(!source.removed);
        dispatch_all();
        ok(source.removed);
        source_raise();
        ok(!readable(0));
        close(source.fd);
    }
}

static struct engine_call call;
static uint32_t called;

static void call_note(struct engine_call *c)
{
    (void)c;
    __atomic_add_fetch(&called, 1, __ATOMIC_RELEASE);
}

static DWORD WINAPI post_from_thread(LPVOID arg)
{
    (void)arg;
    engine_post(&call, call_note);
    return 0;
}

/* Work that no kernel event announces. */
TEST(host__posted_calls)
{
    HANDLE thread;

    host_begin();
    for (unsigned i = 1; i < 50; i++) {
        thread = CreateThread(NULL, 0, post_from_thread, NULL, 0, NULL);
        ok(readable(-1));
        dispatch_all();
        ok_uint(called, ==, i);
        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
        ok(!readable(0));
    }
}

static struct engine_timer timers[3];
static struct engine_call timer_call;
static uint32_t fired[3], fire_order[3], fires;

static void timer_note(struct engine_timer *timer)
{
    fired[timer - timers]++;
    fire_order[fires++] = (uint32_t)(timer - timers);
}

static void timers_start(struct engine_call *c)
{
    (void)c;
    engine_timer_start(&timers[0], 40, timer_note);
    engine_timer_start(&timers[1], 20, timer_note);
    engine_timer_start(&timers[2], 10, timer_note);
    engine_timer_stop(&timers[2]);
}

/* No event announces a timer either; one that was stopped costs a run and does not fire. */
TEST(host__timers)
{
    uint64_t begin;

    host_begin();
    ok(engine_post(&timer_call, timers_start));
    begin = sleep_now();
    while (fires < 2) {
        ok(readable(-1));
        dispatch_all();
    }
    ok_uint(sleep_now() - begin, >=, 40 * 1000000ull);
    ok_uint(fire_order[0], ==, 1);
    ok_uint(fire_order[1], ==, 0);
    ok_uint(fired[2], ==, 0);
    dispatch_all();
    ok(!readable(30));
}

/* Timers that were started before the host came. */
TEST(host__timer_started_before)
{
    ok_status(engine_start(), ND_SUCCESS);
    ok(engine_post(&timer_call, timers_start));
    ok_eventually(!__atomic_load_n(&timer_call.queued, __ATOMIC_ACQUIRE));
    host_begin();
    while (fires < 2) {
        ok(readable(-1));
        dispatch_all();
    }
}

/* A thread that waits in a Windows call drives meanwhile; then the host does again. */
TEST(host__beside_a_waiter)
{
    struct file *file = file_create();
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct request *request;

    host_begin();
    source_begin();
    dispatch_all();
    ok_status(request_alloc(file, &ov, NULL, NULL, &request), ND_SUCCESS);
    request_start(request);
    for (unsigned i = 1; i < 10; i++) {
        source_raise();
        /* This thread drives in its wait. */
        ok_uint(WaitForSingleObject(ov.hEvent, 5), ==, WAIT_TIMEOUT);
        ok_uint(ready_count(), ==, 2 * i - 1);
        source_raise();
        ok(readable(-1));
        dispatch_all();
        ok_uint(ready_count(), ==, 2 * i);
    }
    request_complete(request, ND_SUCCESS, 0);
    file_unref(file);
}

static uint32_t hold, holding;

static void hold_loop(struct engine_call *c)
{
    (void)c;
    __atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&hold, __ATOMIC_ACQUIRE))
        sched_yield();
}

static DWORD WINAPI wait_short(LPVOID event)
{
    return WaitForSingleObject(event, 20);
}

/* Somebody else has the loop: the host hears of it when it is free. */
TEST(host__busy)
{
    struct file *file = file_create();
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    struct request *request;
    HANDLE thread;

    host_begin();
    ok_status(request_alloc(file, &ov, NULL, NULL, &request), ND_SUCCESS);
    request_start(request);
    __atomic_store_n(&hold, 1, __ATOMIC_RELEASE);
    ok(engine_post(&call, hold_loop));
    thread = CreateThread(NULL, 0, wait_short, ov.hEvent, 0, NULL);
    ok_eventually(__atomic_load_n(&holding, __ATOMIC_ACQUIRE));
    ok_status(engine_host_dispatch(), ND_DEVICE_BUSY);
    ok(!readable(0));
    __atomic_store_n(&hold, 0, __ATOMIC_RELEASE);
    ok(readable(-1));
    dispatch_all();
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
    request_complete(request, ND_SUCCESS, 0);
    file_unref(file);
}

/* No thread of the library wakes up while the host drives, and one drives when it has left. */
TEST(host__background_parked_until_it_leaves)
{
    uint64_t library;

    host_begin();
    source_begin();
    dispatch_all();
    Sleep(50);
    library = sleep_counted(SLEEP_LIBRARY);
    for (unsigned i = 0; i < 100; i++) {
        source_raise();
        ok_uint(dispatch_all(), ==, 1);
    }
    Sleep(50);
    ok_uint(sleep_counted(SLEEP_LIBRARY), ==, library);
    engine_host_stop();
    source_raise();
    ok_eventually(ready_count() == 101);
    ok(!pthread_equal(ran_by, pthread_self()));
    host_begin();
    source_raise();
    ok(readable(-1));
    dispatch_all();
    ok_uint(ready_count(), ==, 102);
    ok(pthread_equal(ran_by, pthread_self()));
}
