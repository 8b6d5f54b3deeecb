/* SPDX-License-Identifier: MIT */

/* The engine on libev with real descriptors and threads. */

#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <ntstatus.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <windows.h>

#include "core/engine.h"
#include "harness.h"
#include "overlapped.h"
#include "sleep.h"
#include "wait.h"
#include "wordlock.h"

/* libev's calls come here: what the steady state must not do is counted. */
static uint32_t epoll_ctls;

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    __atomic_add_fetch(&epoll_ctls, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

/* A device of sorts: each readiness of an eventfd completes the oldest pending request. */
static struct device {
    struct engine_io io;
    int fd;
    struct wordlock lock;
    struct list pending;
    struct file *file;
    HANDLE file_handle;
    pthread_t ran_by;
    uint32_t ready, removed;
} device;

static struct request *pending_pop(void)
{
    struct list *link;

    wordlock_lock(&device.lock);
    link = list_pop(&device.pending);
    wordlock_unlock(&device.lock);
    return link ? list_entry(link, struct request, link) : NULL;
}

static void device_ready(struct engine_io *io)
{
    struct request *request;
    uint64_t value;

    ok(engine_on_loop());
    __atomic_add_fetch(&device.ready, 1, __ATOMIC_RELAXED);
    if (read(io->fd, &value, sizeof(value)) != sizeof(value))
        return;
    device.ran_by = pthread_self();
    request = pending_pop();
    if (request)
        request_complete(request, STATUS_SUCCESS, 1);
}

static void device_removed(struct engine_io *io)
{
    ok(io == &device.io && engine_on_loop());
    __atomic_store_n(&device.removed, 1, __ATOMIC_RELEASE);
}

static void device_cancel(struct request *request)
{
    bool linked;

    wordlock_lock(&device.lock);
    linked = list_linked(&request->link);
    list_del(&request->link);
    wordlock_unlock(&device.lock);
    if (linked)
        request_complete(request, STATUS_CANCELLED, 0);
}

static void device_begin(OVERLAPPED *ov)
{
    struct request *request;

    ok_status(request_alloc(device.file, ov, device_cancel, NULL, &request), STATUS_SUCCESS);
    request_start(request);
    wordlock_lock(&device.lock);
    list_add_tail(&device.pending, &request->link);
    wordlock_unlock(&device.lock);
}

static void device_raise(void)
{
    uint64_t one = 1;

    ok_int(write(device.fd, &one, sizeof(one)), ==, sizeof(one));
}

static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

SETUP
{
    ok(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    ok_status(engine_start(), STATUS_SUCCESS);
    ok_status(engine_start(), STATUS_SUCCESS);
    list_init(&device.pending);
    /* A semaphore: one readiness, one completion. */
    device.fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    device.file = file_create();
    device.file_handle = file_open_handle(device.file, 0);
    engine_io_add(&device.io, device.fd, device_ready);
}

/* A thread that raises readiness once somebody polls for us. */
static DWORD WINAPI raise_later(LPVOID arg)
{
    (void)arg;
    Sleep(20);
    device_raise();
    return 0;
}

static HANDLE raise_from_another_thread(void)
{
    return CreateThread(NULL, 0, raise_later, NULL, 0, NULL);
}

static void finish(HANDLE thread)
{
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    CloseHandle(thread);
}

/* siw raises it in the thread that posts to a peer that is gone. */
TEST(start__ignores_broken_pipes)
{
    ok(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}

TEST(waiter__runs_the_completing_callback_itself__event)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    HANDLE thread;

    device_begin(&ov);
    thread = raise_from_another_thread();
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    ok(pthread_equal(device.ran_by, pthread_self()));
    finish(thread);
}

TEST(waiter__runs_the_completing_callback_itself__port)
{
    HANDLE port = CreateIoCompletionPort(device.file_handle, NULL, 3, 0), thread;
    OVERLAPPED ov = { 0 }, *got;
    ULONG_PTR key;
    DWORD bytes;

    device_begin(&ov);
    thread = raise_from_another_thread();
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, INFINITE));
    ok_ptr(got, ==, &ov);
    ok(pthread_equal(device.ran_by, pthread_self()));
    finish(thread);
}

TEST(waiter__runs_the_completing_callback_itself__result)
{
    OVERLAPPED ov = { 0 };
    HANDLE thread;

    device_begin(&ov);
    thread = raise_from_another_thread();
    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_SUCCESS);
    ok(pthread_equal(device.ran_by, pthread_self()));
    finish(thread);
}

TEST(waiter__runs_the_completing_callback_itself__multiple)
{
    HANDLE events[2] = { CreateEventW(NULL, FALSE, FALSE, NULL), CreateEventW(NULL, TRUE, FALSE, NULL) };
    OVERLAPPED ov = { .hEvent = events[1] };
    HANDLE thread;

    device_begin(&ov);
    thread = raise_from_another_thread();
    ok_uint(WaitForMultipleObjects(2, events, FALSE, INFINITE), ==, WAIT_OBJECT_0 + 1);
    ok(pthread_equal(device.ran_by, pthread_self()));
    finish(thread);
}

/* The application only polls: the background thread delivers. */
TEST(background__drives_while_nobody_waits)
{
    OVERLAPPED ov = { 0 };

    device_begin(&ov);
    device_raise();
    ok_eventually(overlapped_result(&ov, FALSE, NULL) != STATUS_PENDING);
    ok(!pthread_equal(device.ran_by, pthread_self()));
}

/* Waits that have nothing to do with us park and leave the loop to the background thread. */
TEST(background__drives_while_others_wait)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov = { 0 };
    uint64_t polls = sleep_counted_here(SLEEP_POLL);

    device_begin(&ov);
    device_raise();
    ok_uint(WaitForSingleObject(event, 30), ==, WAIT_TIMEOUT);
    ok_uint(sleep_counted_here(SLEEP_POLL), ==, polls);
    ok_eventually(overlapped_result(&ov, FALSE, NULL) != STATUS_PENDING);
}

/* After a wait has driven, the background thread comes back. */
TEST(background__takes_over_after_a_wait)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    for (int i = 0; i < 20; i++) {
        device_begin(&ov);
        ok_uint(WaitForSingleObject(ov.hEvent, 3), ==, WAIT_TIMEOUT);
        device_raise();
        ok_eventually(overlapped_result(&ov, FALSE, NULL) != STATUS_PENDING);
        /* Set behind the result, perhaps only now: not in the middle of the next wait. */
        ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
    }
}

/* The same after a wait so long that the background thread has parked. */
TEST(background__wakes_from_parked)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    device_begin(&ov);
    ok_uint(WaitForSingleObject(ov.hEvent, 60), ==, WAIT_TIMEOUT);
    device_raise();
    ok_eventually(overlapped_result(&ov, FALSE, NULL) != STATUS_PENDING);
}

/* A thread that waits finds its result there, since the background thread was faster: it gets the loop, and not only when it
 * happens to come first one day. */
TEST(background__gives_way_to_a_wait_that_found_its_result)
{
    OVERLAPPED ov[3] = { { 0 } };
    uint64_t looks = 0;

    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            ok_eventually(__atomic_load_n(&wait_unvisited, __ATOMIC_RELAXED) == 1);
            looks = sleep_counted(SLEEP_LIBRARY);
        }
        device_begin(&ov[i]);
        device_raise();
        ok_eventually(overlapped_result(&ov[i], FALSE, NULL) != STATUS_PENDING);
        ok(!pthread_equal(device.ran_by, pthread_self()));
        if (i == 1) {
            /* A look without a wait does not count. */
            ok_uint(__atomic_load_n(&wait_unvisited, __ATOMIC_RELAXED), ==, 1);
            ok_status(overlapped_result(&ov[1], TRUE, NULL), STATUS_SUCCESS);
            ok_uint(__atomic_load_n(&wait_unvisited, __ATOMIC_RELAXED), ==, 0);
        }
    }
    ok_eventually(sleep_counted(SLEEP_LIBRARY) > looks); /* now it looks whether others drive */
}

/* Wake-ups are counted where threads go to sleep again. */
static uint64_t library_sleeps(void)
{
    return sleep_counted(SLEEP_LIBRARY) + sleep_counted(SLEEP_POLL);
}

/* On a busy machine a thread of the library may take long until it first goes to sleep. */
static void settle(void)
{
    uint64_t before;

    ok_eventually(sleep_counted(SLEEP_LIBRARY) && sleep_counted(SLEEP_POLL));
    for (int i = 0; i < 10; i++) {
        before = library_sleeps();
        Sleep(200);
        if (library_sleeps() == before)
            return;
    }
}

static void ok_idle(void)
{
    uint64_t library, polls, waits;

    settle();
    library = sleep_counted(SLEEP_LIBRARY);
    polls = sleep_counted(SLEEP_POLL);
    waits = sleep_counted(SLEEP_WAIT);
    Sleep(300);
    ok_uint(sleep_counted(SLEEP_LIBRARY), ==, library);
    ok_uint(sleep_counted(SLEEP_POLL), ==, polls);
    ok_uint(sleep_counted(SLEEP_WAIT), ==, waits + 1);
}

TEST(idle__nobody_wakes_up)
{
    ok_idle();
}

static DWORD WINAPI wait_for(LPVOID event)
{
    return WaitForSingleObject(event, INFINITE);
}

TEST(idle__nobody_wakes_up_while_a_waiter_drives)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    HANDLE thread;

    device_begin(&ov);
    thread = CreateThread(NULL, 0, wait_for, ov.hEvent, 0, NULL);
    ok_idle();
    device_raise();
    finish(thread);
}

/* tests/lists: D70. */
TEST(steady_state__no_epoll_ctl)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    uint32_t before = 0;

    for (int i = 0; i < 2000; i++) {
        device_begin(&ov);
        device_raise();
        ok_uint(WaitForSingleObject(ov.hEvent, i % 2 ? INFINITE : 60000), ==, WAIT_OBJECT_0);
        if (i == 100)
            before = __atomic_load_n(&epoll_ctls, __ATOMIC_RELAXED);
    }
    ok_uint(__atomic_load_n(&epoll_ctls, __ATOMIC_RELAXED), ==, before);
}

/* An application's thread sleeps in wait_block only: parked, or in the loop's poll (D88). */
TEST(sleeps__none_outside_wait_block)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL), port, thread;
    OVERLAPPED ov = { .hEvent = event }, *got;
    HANDLE both[2] = { event, NULL };
    uint64_t here[SLEEP_CLASSES];
    ULONG_PTR key;
    DWORD bytes;

    port = CreateIoCompletionPort(device.file_handle, NULL, 0, 0);
    for (int class = 0; class < SLEEP_CLASSES; class ++)
        here[class] = sleep_counted_here((enum sleep_class) class);

    device_begin(&ov);
    ok_uint(WaitForSingleObject(event, 5), ==, WAIT_TIMEOUT);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, 5));
    both[1] = CreateEventW(NULL, TRUE, FALSE, NULL);
    ok_uint(WaitForMultipleObjects(2, both, FALSE, 5), ==, WAIT_TIMEOUT);
    ok_uint(WaitForMultipleObjects(2, both, TRUE, 5), ==, WAIT_TIMEOUT);
    ok(!GetOverlappedResultEx(device.file_handle, &ov, &bytes, 5, FALSE));
    thread = raise_from_another_thread();
    ok(GetOverlappedResult(device.file_handle, &ov, &bytes, TRUE));
    finish(thread);
    Sleep(5);
    ok(!WaitOnAddress(&bytes, &bytes, sizeof(bytes), 5));

    ok_uint(sleep_counted_here(SLEEP_WAIT), >=, here[SLEEP_WAIT] + 2);
    ok_uint(sleep_counted_here(SLEEP_POLL), >=, here[SLEEP_POLL] + 1);
    ok_uint(sleep_counted_here(SLEEP_WORD), ==, here[SLEEP_WORD]);
    ok_uint(sleep_counted_here(SLEEP_LIBRARY), ==, here[SLEEP_LIBRARY]);
}

/* Commands. */

static uint32_t order[65], ordered;
static struct numbered {
    struct engine_call call;
    uint32_t number;
} numbered[64];

static void number_note(struct engine_call *call)
{
    ok(engine_on_loop());
    order[ordered] = ((struct numbered *)call)->number;
    __atomic_add_fetch(&ordered, 1, __ATOMIC_RELEASE);
}

TEST(post__runs_in_order)
{
    for (uint32_t i = 0; i < 64; i++) {
        numbered[i].number = i;
        ok(engine_post(&numbered[i].call, number_note));
    }
    ok_eventually(__atomic_load_n(&ordered, __ATOMIC_ACQUIRE) == 64);
    for (uint32_t i = 0; i < 64; i++)
        ok_uint(order[i], ==, i);
    /* One that has run may be posted again. */
    ok(engine_post(&numbered[0].call, number_note));
    ok_eventually(__atomic_load_n(&ordered, __ATOMIC_ACQUIRE) == 65);
    ok_uint(order[64], ==, 0);
}

static struct engine_call chained;
static uint32_t chain_length;

static void chain_on(struct engine_call *call)
{
    if (__atomic_add_fetch(&chain_length, 1, __ATOMIC_RELEASE) < 100)
        ok(engine_post(call, chain_on));
}

TEST(post__again_from_inside)
{
    ok(engine_post(&chained, chain_on));
    ok_eventually(__atomic_load_n(&chain_length, __ATOMIC_ACQUIRE) == 100);
}

static struct engine_call gate, behind_gate;
static uint32_t gate_open, passed;

static void gate_wait(struct engine_call *call)
{
    (void)call;
    while (!__atomic_load_n(&gate_open, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void gate_pass(struct engine_call *call)
{
    (void)call;
    __atomic_add_fetch(&passed, 1, __ATOMIC_RELEASE);
}

TEST(post__queued_already)
{
    ok(engine_post(&gate, gate_wait));
    ok(engine_post(&behind_gate, gate_pass));
    ok(!engine_post(&behind_gate, gate_pass));
    __atomic_store_n(&gate_open, 1, __ATOMIC_RELEASE);
    ok_eventually(__atomic_load_n(&passed, __ATOMIC_ACQUIRE) == 1);
    ok_eventually(engine_post(&behind_gate, gate_pass));
    ok_eventually(__atomic_load_n(&passed, __ATOMIC_ACQUIRE) == 2);
}

/* Descriptors. */

TEST(io_remove__no_ready_afterwards)
{
    uint32_t ready;

    device_raise();
    ok_eventually(__atomic_load_n(&device.ready, __ATOMIC_RELAXED) == 1);
    engine_io_remove(&device.io, device_removed);
    ok_eventually(__atomic_load_n(&device.removed, __ATOMIC_ACQUIRE));
    ready = device.ready;
    device_raise();
    Sleep(20);
    ok_uint(device.ready, ==, ready);
    close(device.fd);
}

static struct engine_io short_lived;
static uint32_t short_lived_ready, short_lived_gone;

static void short_ready(struct engine_io *io)
{
    uint64_t value;

    short_lived_ready++;
    ok(read(io->fd, &value, sizeof(value)) == sizeof(value));
}

static void short_removed(struct engine_io *io)
{
    (void)io;
    __atomic_store_n(&short_lived_gone, 1, __ATOMIC_RELEASE);
}

TEST(io_remove__before_it_started)
{
    int fd = eventfd(1, EFD_NONBLOCK);

    ok(engine_post(&gate, gate_wait));
    engine_io_add(&short_lived, fd, short_ready);
    engine_io_remove(&short_lived, short_removed);
    __atomic_store_n(&gate_open, 1, __ATOMIC_RELEASE);
    ok_eventually(__atomic_load_n(&short_lived_gone, __ATOMIC_ACQUIRE));
    ok_uint(short_lived_ready, ==, 0);
    close(fd);
}

/* Timers. */

static struct engine_timer timer, stopped_timer;
static struct engine_call timer_call;
static uint64_t timer_due, timer_fired_at;

static void timer_note(struct engine_timer *t)
{
    ok(t == &timer && engine_on_loop());
    __atomic_store_n(&timer_fired_at, sleep_now(), __ATOMIC_RELEASE);
}

static void timer_never(struct engine_timer *t)
{
    (void)t;
    ok(!"a stopped timer fired");
}

static void timers_start(struct engine_call *call)
{
    (void)call;
    engine_timer_start(&stopped_timer, 5, timer_never);
    engine_timer_start(&timer, 1, timer_note);
    /* Moves it. */
    timer_due = sleep_now() + 20 * 1000000ull;
    engine_timer_start(&timer, 20, timer_note);
    engine_timer_stop(&stopped_timer);
    engine_timer_stop(&stopped_timer);
}

TEST(timer__never_early)
{
    for (int i = 0; i < 10; i++) {
        __atomic_store_n(&timer_fired_at, 0, __ATOMIC_RELEASE);
        ok(engine_post(&timer_call, timers_start));
        ok_eventually(__atomic_load_n(&timer_fired_at, __ATOMIC_ACQUIRE));
        ok_uint(timer_fired_at, >=, timer_due);
    }
}

TEST(timer__fires_while_a_waiter_drives)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    device_begin(&ov);
    ok(engine_post(&timer_call, timers_start));
    ok_uint(WaitForSingleObject(ov.hEvent, 60), ==, WAIT_TIMEOUT);
    ok(__atomic_load_n(&timer_fired_at, __ATOMIC_ACQUIRE) >= timer_due);
}

/* Descriptors that are ready all the time and a call that posts itself again take turns, and keep neither timers nor an expired
 * wait waiting, whoever runs the loop. */
static struct engine_io busy[2];
static uint32_t busy_ready[2], busy_passed, busy_gone;
static struct engine_call busy_call;

static void busy_note(struct engine_io *io)
{
    __atomic_add_fetch(&busy_ready[io - busy], 1, __ATOMIC_RELAXED);
}

static void busy_removed(struct engine_io *io)
{
    (void)io;
    __atomic_add_fetch(&busy_gone, 1, __ATOMIC_RELEASE);
}

static void busy_run(struct engine_call *call)
{
    __atomic_add_fetch(&busy_passed, 1, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&busy_gone, __ATOMIC_ACQUIRE))
        ok(engine_post(call, busy_run));
}

TEST(busy__everything_has_its_turn)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    int fds[2];

    device_begin(&ov);
    for (int i = 0; i < 2; i++) {
        fds[i] = eventfd(1, EFD_NONBLOCK);
        engine_io_add(&busy[i], fds[i], busy_note);
    }
    ok(engine_post(&busy_call, busy_run));
    for (int waiter = 0; waiter < 2; waiter++) {
        uint32_t before = __atomic_load_n(&busy_passed, __ATOMIC_ACQUIRE);

        __atomic_store_n(&timer_fired_at, 0, __ATOMIC_RELEASE);
        ok(engine_post(&timer_call, timers_start));
        for (int i = 0; i < 2; i++)
            __atomic_store_n(&busy_ready[i], 0, __ATOMIC_RELAXED);
        while (!__atomic_load_n(&timer_fired_at, __ATOMIC_ACQUIRE) ||
               __atomic_load_n(&busy_ready[0], __ATOMIC_RELAXED) < 10 ||
               __atomic_load_n(&busy_ready[1], __ATOMIC_RELAXED) < 10) {
            if (waiter)
                ok_uint(WaitForSingleObject(ov.hEvent, 5), ==, WAIT_TIMEOUT);
            else
                sched_yield();
        }
        ok_uint(__atomic_load_n(&busy_passed, __ATOMIC_ACQUIRE), >, before);
    }
    for (int i = 0; i < 2; i++)
        engine_io_remove(&busy[i], busy_removed);
    ok_eventually(__atomic_load_n(&busy_gone, __ATOMIC_ACQUIRE) == 2);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
}

TEST(wait__never_early)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    device_begin(&ov);
    for (DWORD ms = 1; ms < 12; ms++) {
        uint64_t start = sleep_now();

        ok_uint(WaitForSingleObject(ov.hEvent, ms), ==, WAIT_TIMEOUT);
        ok_uint(sleep_now() - start, >=, ms * 1000000ull);
    }
}

/* Workers. */

static uint32_t blocked, release, destroyed;

static void work_block(struct engine_work *work)
{
    (void)work;
    ok(!engine_on_loop());
    __atomic_add_fetch(&blocked, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&release, __ATOMIC_ACQUIRE))
        futex_wait(SLEEP_LIBRARY, &release, 0, SLEEP_FOREVER);
    __atomic_sub_fetch(&blocked, 1, __ATOMIC_RELEASE);
}

static void work_count(struct engine_work *work)
{
    (void)work;
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELEASE);
}

static uint32_t allocations;

static void *count_allocation(void *memory, long size)
{
    __atomic_add_fetch(&allocations, size > 0, __ATOMIC_RELAXED);
    if (size > 0)
        return realloc(memory, (size_t)size);
    free(memory);
    return NULL;
}

#define MANY_IOS    30
#define MANY_TIMERS 200

static struct engine_timer many_timers[MANY_TIMERS];
static uint32_t timers_done, ios_done;

static void many_fired(struct engine_timer *which)
{
    (void)which;
    __atomic_add_fetch(&timers_done, 1, __ATOMIC_RELEASE);
}

static void many_start(struct engine_call *call)
{
    (void)call;
    for (int i = 0; i < MANY_TIMERS; i++)
        engine_timer_start(&many_timers[i], 1, many_fired);
}

static void many_ready(struct engine_io *io)
{
    uint64_t value;

    if (read(io->fd, &value, sizeof(value)) == sizeof(value))
        __atomic_add_fetch(&ios_done, 1, __ATOMIC_RELEASE);
}

/* libev ends the process where there is no memory for more, so the loop needs none of it. */
TEST(loop__its_tables_are_large_enough_from_the_start)
{
    static struct engine_io ios[MANY_IOS];
    static struct engine_call call;
    uint64_t one = 1;

    ev_set_allocator(count_allocation);
    for (int i = 0; i < MANY_IOS; i++) {
        int fd = eventfd(0, EFD_NONBLOCK), high = fcntl(fd, F_DUPFD, 1024 - MANY_IOS);

        ok(high >= 1024 - MANY_IOS && high < 1024);
        close(fd);
        engine_io_add(&ios[i], high, many_ready);
        ok_int(write(high, &one, sizeof(one)), ==, sizeof(one));
    }
    ok(engine_post(&call, many_start));
    ok_eventually(__atomic_load_n(&ios_done, __ATOMIC_ACQUIRE) == MANY_IOS);
    ok_eventually(__atomic_load_n(&timers_done, __ATOMIC_ACQUIRE) == MANY_TIMERS);
    ok_uint(__atomic_load_n(&allocations, __ATOMIC_RELAXED), ==, 0);
}

static void work_release(void)
{
    __atomic_store_n(&release, 1, __ATOMIC_RELEASE);
    futex_wake(&release, INT32_MAX);
}

TEST(work__64_connects_then_declined_destroys_go_on)
{
    static struct engine_work connects[64], another, destroys[100];

    for (int i = 0; i < 64; i++)
        ok_status(engine_work(ENGINE_LANE_CONNECT, &connects[i], work_block), STATUS_SUCCESS);
    ok_status(engine_work(ENGINE_LANE_CONNECT, &another, work_block), STATUS_INSUFFICIENT_RESOURCES);
    for (int i = 0; i < 100; i++)
        ok_status(engine_work(ENGINE_LANE_DESTROY, &destroys[i], work_count), STATUS_SUCCESS);
    ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == 100);
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 64);
    work_release();
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 0);
    ok_eventually(engine_work(ENGINE_LANE_CONNECT, &another, work_block) == STATUS_SUCCESS);
}

static void work_connect_and_block(struct engine_work *work)
{
    engine_connect_over();
    engine_connect_over(); /* it has but one place to give */
    work_block(work);
}

TEST(work__a_connect_that_is_over_gives_its_place_away)
{
    static struct engine_work over[2], connects[64], another;

    for (int i = 0; i < 2; i++)
        ok_status(engine_work(ENGINE_LANE_CONNECT, &over[i], work_connect_and_block), STATUS_SUCCESS);
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 2);
    for (int i = 0; i < 64; i++)
        ok_status(engine_work(ENGINE_LANE_CONNECT, &connects[i], work_block), STATUS_SUCCESS);
    ok_status(engine_work(ENGINE_LANE_CONNECT, &another, work_block), STATUS_INSUFFICIENT_RESOURCES);
    work_release();
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 0);
}

TEST(work__destroys_go_on_behind_a_slow_one)
{
    static struct engine_work slow, destroys[10];

    engine_work(ENGINE_LANE_DESTROY, &slow, work_block);
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 1);
    for (int i = 0; i < 10; i++)
        engine_work(ENGINE_LANE_DESTROY, &destroys[i], work_count);
    ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == 10);
    work_release();
    ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 0);
}

/* Nor does one wait for the other that were given right after each other: the first may be waiting for what the second brings. */
TEST(work__destroys_go_on_behind_one_that_blocks_at_once)
{
    static struct engine_work slow, quick;

    for (uint32_t round = 0; round < 50; round++) {
        __atomic_store_n(&release, 0, __ATOMIC_RELEASE);
        engine_work(ENGINE_LANE_DESTROY, &slow, work_block);
        engine_work(ENGINE_LANE_DESTROY, &quick, work_count);
        ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == round + 1);
        ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 1);
        work_release();
        ok_eventually(__atomic_load_n(&blocked, __ATOMIC_ACQUIRE) == 0);
        Sleep(round & 1 ? 10 : 0); /* the worker waits for more, or sleeps */
    }
}

/* What can wait comes with the next that cannot, or by itself, whether the worker has just worked or has slept for long. */
TEST(work__later_ones)
{
    static struct engine_work work[6];

    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 6; i++) {
            bool urgent = i == 0 || i == 3;

            engine_work(urgent ? ENGINE_LANE_DESTROY : ENGINE_LANE_LATER, &work[i], work_count);
            if (urgent)
                ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == 6 * round + i + 1);
        }
        ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == 6 * round + 6);
    }
    Sleep(20);
    engine_work(ENGINE_LANE_LATER, &work[0], work_count);
    ok_eventually(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) == 121);
}

/* Threads of ours take no signal of the application's. */
TEST(threads__block_all_signals)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned others = 0;

    ok(tasks != NULL);
    while ((entry = readdir(tasks))) {
        unsigned long long mask = 0;
        char path[300], line[256];
        FILE *file;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        while (fgets(line, sizeof(line), file)) {
            if (sscanf(line, "SigBlk: %llx", &mask) == 1)
                break;
        }
        fclose(file);
        /* All but SIGKILL, SIGSTOP and those glibc keeps for itself (32, 33). A sanitizer's thread is not ours. */
        if (sanitized() && !(mask & 1))
            continue;
        others++;
        ok_uint(mask | 1ull << 8 | 1ull << 18 | 3ull << 31, ==, ~0ull);
    }
    closedir(tasks);
    ok_uint(others, >=, 2);
}

TEST(fork__the_child_is_dead)
{
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };
    int status;
    pid_t pid;

    if (sanitized())
        harness_skip("a sanitizer's run time does not survive fork from a process with threads");
    device_begin(&ov);
    ok(!engine_dead());
    pid = fork();
    if (pid == 0) {
        bool good = engine_dead() && engine_start() == STATUS_DEVICE_REMOVED &&
                    WaitForSingleObject(ov.hEvent, 5) == WAIT_TIMEOUT && sleep_counted_here(SLEEP_POLL) == 0;

        _exit(good ? 0 : 1);
    }
    ok(waitpid(pid, &status, 0) == pid);
    ok_int(status, ==, 0);
    /* And the parent goes on. */
    device_raise();
    ok_uint(WaitForSingleObject(ov.hEvent, INFINITE), ==, WAIT_OBJECT_0);
}

/* Callbacks run on borrowed stacks: a completion with everything at it takes at most 8 KiB. */

#define STACK_LIMIT 8192
#define STACK_PAINT (4 * STACK_LIMIT)

static __attribute__((noinline)) void stack_paint(void)
{
    volatile unsigned char area[STACK_PAINT];

    for (size_t i = 0; i < sizeof(area); i++)
        area[i] = 0xa5;
}

static __attribute__((noinline)) size_t stack_used(void)
{
    volatile unsigned char area[STACK_PAINT];
    size_t i = 0;

    /* Reads what the painting and the measured call left there: not initialised on purpose. */
    __asm__ volatile("" : : "r"(area) : "memory");
    while (i < sizeof(area) && area[i] == 0xa5)
        i++;
    return sizeof(area) - i;
}

static size_t stack_measured;
static struct engine_call stack_call;

static void stack_measure(struct engine_call *call)
{
    struct request *request = pending_pop();

    (void)call;
    stack_paint();
    request_complete(request, STATUS_SUCCESS, 1);
    __atomic_store_n(&stack_measured, stack_used(), __ATOMIC_RELEASE);
}

TEST(completion__takes_little_stack)
{
    HANDLE port = CreateIoCompletionPort(device.file_handle, NULL, 3, 0);
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, FALSE, FALSE, NULL) };

    if (sanitized())
        harness_skip("sanitizers make frames larger");
    device_begin(&ov);
    ok(engine_post(&stack_call, stack_measure));
    ok_status(overlapped_result(&ov, TRUE, NULL), STATUS_SUCCESS);
    /* The completion ends the wait before the callback has measured. */
    ok_eventually(__atomic_load_n(&stack_measured, __ATOMIC_ACQUIRE) > 0);
    ok_uint(stack_measured, <=, STACK_LIMIT);
    CloseHandle(port);
}

/* Many threads: waits of all kinds, cancels, third-party sets, and readiness from outside. */

#define STRESS_THREADS 8
#define STRESS_ROUNDS  2000
static HANDLE stress_port;

static DWORD WINAPI stress_thread(LPVOID arg)
{
    unsigned kind = (unsigned)(uintptr_t)arg, seed = kind;
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    OVERLAPPED ov, *got;
    ULONG_PTR key;
    DWORD bytes;

    for (int i = 0; i < STRESS_ROUNDS; i++) {
        memset(&ov, 0xcc, sizeof(ov));
        ov.hEvent = (HANDLE)((uintptr_t)event | 1);
        device_begin(&ov);
        device_raise();
        switch (kind % 4) {
        case 0:
            while (overlapped_result(&ov, FALSE, NULL) == STATUS_PENDING)
                WaitForSingleObject(event, rand_r(&seed) % 3 + 1);
            break;
        case 1:
            overlapped_result(&ov, TRUE, NULL);
            break;
        case 2:
            PostQueuedCompletionStatus(stress_port, 1, kind, NULL);
            ok(GetQueuedCompletionStatus(stress_port, &bytes, &key, &got, INFINITE));
            overlapped_result(&ov, TRUE, NULL);
            break;
        default:
            if (rand_r(&seed) % 2)
                CancelIoEx(device.file_handle, &ov);
            else
                SetEvent(event);
            while (!GetOverlappedResultEx(device.file_handle, &ov, &bytes, 1, FALSE) &&
                   overlapped_result(&ov, FALSE, NULL) == STATUS_PENDING)
                ;
            break;
        }
        ok_status(overlapped_result(&ov, FALSE, NULL) == STATUS_CANCELLED ? STATUS_SUCCESS : (NTSTATUS)ov.Internal,
                  STATUS_SUCCESS);
    }
    CloseHandle(event);
    return 0;
}

TEST(stress__eight_threads)
{
    HANDLE threads[STRESS_THREADS];
    int more = 1;

    stress_port = CreateIoCompletionPort(device.file_handle, NULL, 0, 0);
    for (unsigned i = 0; i < STRESS_THREADS; i++)
        threads[i] = CreateThread(NULL, 0, stress_thread, (LPVOID)(uintptr_t)i, 0, NULL);
    /* Cancelled requests leave readiness behind and take none, so keep raising until all are through. */
    while (more) {
        more = WaitForMultipleObjects(STRESS_THREADS, threads, TRUE, 10) != WAIT_OBJECT_0;
        device_raise();
    }
    for (unsigned i = 0; i < STRESS_THREADS; i++)
        CloseHandle(threads[i]);
    CloseHandle(stress_port);
}

HARNESS_MAIN
