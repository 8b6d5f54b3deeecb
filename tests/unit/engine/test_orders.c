/* SPDX-License-Identifier: MIT */

/* Every order of {completion, time-out, SetEvent by a third thread, cancel, second waiter, hand-over} (design.md 2
 * rule 16), on a fake progress source. */

#include <ntstatus.h>
#include <stdio.h>
#include <windows.h>

#include "core/role.h"
#include "handle.h"
#include "harness.h"
#include "overlapped.h"
#include "orders.h"
#include "sleep.h"
#include "wordlock.h"

#define REQUESTS   3
#define TIMEOUT_MS 10
#define BYTES      77

/* An owner of requests as those in core are: pending ones linked under its lock. */
static struct {
    struct wordlock lock;
    struct list pending;
    struct file *file;
    HANDLE file_handle, port;
    HANDLE event[REQUESTS];
    OVERLAPPED ov[REQUESTS];
    DWORD wait[SCHED_THREADS];
    DWORD error[SCHED_THREADS];
    OVERLAPPED *got[SCHED_THREADS];
    ULONG_PTR key[SCHED_THREADS];
    NTSTATUS status[SCHED_THREADS];
    BOOL cancelled;
    uint64_t ended[SCHED_THREADS];
} world;

static struct sched_counts counts;

static void request_cancel(struct request *request)
{
    bool linked;

    wordlock_lock(&world.lock);
    linked = list_linked(&request->link);
    list_del(&request->link);
    if (linked)
        request_complete(request, STATUS_CANCELLED, 0);
    wordlock_unlock(&world.lock);
}

static void complete_first(void *arg)
{
    struct list *link;

    (void)arg;
    wordlock_lock(&world.lock);
    link = list_pop(&world.pending);
    if (link)
        request_complete(list_entry(link, struct request, link), STATUS_SUCCESS, BYTES);
    wordlock_unlock(&world.lock);
}

static void start(unsigned i)
{
    struct request *request;

    sched_ok(request_alloc(world.file, &world.ov[i], request_cancel, NULL, &request) == STATUS_SUCCESS);
    request_start(request);
    list_add_tail(&world.pending, &request->link);
}

static void set_up(unsigned requests, bool port, bool events)
{
    memset(&world, 0, sizeof(world));
    list_init(&world.pending);
    world.file = file_create();
    world.file_handle = file_open_handle(world.file, 0);
    if (port)
        world.port = CreateIoCompletionPort(world.file_handle, NULL, 5, 0);
    for (unsigned i = 0; i < requests; i++) {
        if (events) {
            world.event[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
            world.ov[i].hEvent = world.event[i];
        }
        start(i);
    }
}

/* Closes all; every request must have been completed by now. */
static void tear_down(void)
{
    sched_ok(list_empty(&world.pending));
    for (unsigned i = 0; i < REQUESTS; i++) {
        sched_ok(HasOverlappedIoCompleted(&world.ov[i]));
        if (world.event[i])
            CloseHandle(world.event[i]);
    }
    if (world.port)
        CloseHandle(world.port);
    CloseHandle(world.file_handle);
    file_unref(world.file);
    sched_ok(handle_count() == 0);
}

static void explore(const struct sched_scenario *scenario)
{
    uint64_t before = counts.executions;

    sched_explore(scenario, &counts);
    printf("%s: %llu orders\n", scenario->name, (unsigned long long)(counts.executions - before));
    ok_uint(counts.executions - before, >, 1);
}

/* Steps of threads. */

static void body_wait_event_timed(void)
{
    int i = sched_current();

    world.wait[i] = WaitForSingleObject(world.event[0], TIMEOUT_MS);
    world.ended[i] = sched_now();
}

static void body_wait_event(void)
{
    world.wait[sched_current()] = WaitForSingleObject(world.event[0], INFINITE);
}

static void body_wait_event1(void)
{
    world.wait[sched_current()] = WaitForSingleObject(world.event[1], INFINITE);
}

static void body_result0(void)
{
    world.status[sched_current()] = overlapped_result(&world.ov[0], TRUE, NULL);
}

static void body_result1(void)
{
    world.status[sched_current()] = overlapped_result(&world.ov[1], TRUE, NULL);
}

static void get_packet(DWORD ms)
{
    int i = sched_current();
    DWORD bytes;

    world.wait[i] = (DWORD)GetQueuedCompletionStatus(world.port, &bytes, &world.key[i], &world.got[i], ms);
    world.error[i] = GetLastError();
    world.ended[i] = sched_now();
}

static void body_packet_timed(void)
{
    get_packet(TIMEOUT_MS);
}

static void body_packet(void)
{
    get_packet(INFINITE);
}

static void body_device(void)
{
    source_push(complete_first, NULL);
}

static void body_device_twice(void)
{
    source_push(complete_first, NULL);
    source_push(complete_first, NULL);
}

static void body_set_event(void)
{
    SetEvent(world.event[0]);
}

static void body_post(void)
{
    PostQueuedCompletionStatus(world.port, 1, 9, NULL);
}

static void body_cancel(void)
{
    world.cancelled = CancelIoEx(world.file_handle, NULL);
}

static void body_close_port(void)
{
    CloseHandle(world.port);
}

static void body_background(void)
{
    role_background_main(NULL);
}

#define BACKGROUND                  \
    {                               \
        "bg", body_background, true \
    }

/* Completion against time-out: the event's signal is either taken or still there, never lost, never both. */

static void one_request_with_event(void)
{
    set_up(1, false, true);
}

static void check_event_timed(void)
{
    source_drain();
    sched_ok(world.wait[0] == WAIT_OBJECT_0 || world.wait[0] == WAIT_TIMEOUT);
    if (world.wait[0] == WAIT_TIMEOUT)
        sched_ok(world.ended[0] >= 1000000000ull + TIMEOUT_MS * 1000000ull);
    sched_ok((WaitForSingleObject(world.event[0], 0) == WAIT_OBJECT_0) == (world.wait[0] == WAIT_TIMEOUT));
    sched_ok(world.ov[0].Internal == STATUS_SUCCESS && world.ov[0].InternalHigh == BYTES);
    tear_down();
}

TEST(order__complete_and_time_out)
{
    static const struct sched_scenario scenario = {
        .name = "complete, time-out",
        .setup = one_request_with_event,
        .check = check_event_timed,
        .threads = { { "A", body_wait_event_timed, false }, { "dev", body_device, false } },
        .preemptions = 4,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

TEST(order__complete_and_time_out_with_background)
{
    static const struct sched_scenario scenario = {
        .name = "complete, time-out, hand-over",
        .setup = one_request_with_event,
        .check = check_event_timed,
        .threads = { { "A", body_wait_event_timed, false }, { "dev", body_device, false }, BACKGROUND },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

/* Nobody but the waiters drives here: whoever leaves must hand the loop on, or the other sleeps for ever. */

static void two_requests(void)
{
    set_up(2, false, false);
}

static void check_two_results(void)
{
    sched_ok(source_drain() == 0);
    sched_ok(world.status[0] == STATUS_SUCCESS && world.status[1] == STATUS_SUCCESS);
    tear_down();
}

TEST(order__second_waiter_and_hand_over)
{
    static const struct sched_scenario scenario = {
        .name = "second waiter, hand-over",
        .setup = two_requests,
        .check = check_two_results,
        .threads = { { "A", body_result0, false }, { "B", body_result1, false }, { "dev", body_device_twice, false } },
        .preemptions = 2,
    };

    explore(&scenario);
}

TEST(order__second_waiter_and_background)
{
    static const struct sched_scenario scenario = {
        .name = "second waiter, hand-over from the background thread",
        .setup = two_requests,
        .check = check_two_results,
        .threads = { { "A", body_result0, false },
                     { "B", body_result1, false },
                     { "dev", body_device_twice, false },
                     BACKGROUND },
        .preemptions = 1,
    };

    explore(&scenario);
}

/* A waits with a time-out and may be the one that drives, or the one the background thread makes way for; B relies on
 * being driven. */

static void two_requests_with_events(void)
{
    set_up(2, false, true);
}

static void check_leaver(void)
{
    source_drain();
    sched_ok(world.wait[1] == WAIT_OBJECT_0);
    sched_ok((WaitForSingleObject(world.event[0], 0) == WAIT_OBJECT_0) == (world.wait[0] == WAIT_TIMEOUT));
    tear_down();
}

TEST(order__driver_times_out_second_waiter_goes_on)
{
    static const struct sched_scenario scenario = {
        .name = "time-out, second waiter, hand-over",
        .setup = two_requests_with_events,
        .check = check_leaver,
        .threads = { { "A", body_wait_event_timed, false },
                     { "B", body_wait_event1, false },
                     { "dev", body_device_twice, false } },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

TEST(order__wanting_waiter_times_out)
{
    static const struct sched_scenario scenario = {
        .name = "time-out, second waiter, background thread",
        .setup = two_requests_with_events,
        .check = check_leaver,
        .threads = { { "A", body_wait_event_timed, false },
                     { "B", body_wait_event1, false },
                     { "dev", body_device_twice, false },
                     BACKGROUND },
        .preemptions = 1,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

/* A third thread sets the event early: the wait ends, the result is still waited for. */

static void body_wait_event_then_result(void)
{
    body_wait_event();
    body_result0();
}

static void check_set_event(void)
{
    sched_ok(source_drain() == 0);
    sched_ok(world.wait[0] == WAIT_OBJECT_0 && world.status[0] == STATUS_SUCCESS);
    tear_down();
}

TEST(order__set_event_by_third_thread)
{
    static const struct sched_scenario scenario = {
        .name = "SetEvent, complete",
        .setup = one_request_with_event,
        .check = check_set_event,
        .threads = { { "A", body_wait_event_then_result, false },
                     { "set", body_set_event, false },
                     { "dev", body_device, false } },
        .preemptions = 3,
    };

    explore(&scenario);
}

static void check_set_event_alone(void)
{
    sched_ok(world.wait[0] == WAIT_OBJECT_0);
    complete_first(NULL);
    tear_down();
}

/* Nothing completes before A is gone: only the kick ends its poll. */
TEST(order__set_event_wakes_the_driver)
{
    static const struct sched_scenario scenario = {
        .name = "SetEvent alone",
        .setup = one_request_with_event,
        .check = check_set_event_alone,
        .threads = { { "A", body_wait_event, false }, { "set", body_set_event, false } },
        .preemptions = 5,
    };

    explore(&scenario);
}

/* Completion against cancel: one packet, one status, and after the cancel returned nothing is delivered any more. */

static void one_request_with_port(void)
{
    set_up(1, true, true);
}

static unsigned packets_left(void)
{
    unsigned packets = 0;
    ULONG_PTR key;
    OVERLAPPED *ov;
    DWORD bytes;

    while (GetQueuedCompletionStatus(world.port, &bytes, &key, &ov, 0) || ov)
        packets++;
    return packets;
}

static void check_cancel(void)
{
    NTSTATUS status = (NTSTATUS)world.ov[0].Internal;

    source_drain();
    sched_ok(status == STATUS_SUCCESS || status == STATUS_CANCELLED);
    sched_ok(world.status[0] == status);
    sched_ok(status != STATUS_CANCELLED || world.cancelled);
    sched_ok(packets_left() == 1);
    tear_down();
}

TEST(order__cancel_and_complete)
{
    static const struct sched_scenario scenario = {
        .name = "cancel, complete",
        .setup = one_request_with_port,
        .check = check_cancel,
        .threads = { { "A", body_result0, false }, { "cancel", body_cancel, false }, { "dev", body_device, false } },
        .preemptions = 3,
    };

    explore(&scenario);
}

static void body_cancel_and_overwrite(void)
{
    body_cancel();
    world.error[sched_current()] = (DWORD)HasOverlappedIoCompleted(&world.ov[0]);
    memset(&world.ov[0], 0xee, sizeof(world.ov[0]));
}

static void body_poll_loop(void)
{
    /* Drives by waiting for a port where nothing of interest arrives but the completion. */
    get_packet(TIMEOUT_MS);
}

static void check_overwrite(void)
{
    source_drain();
    sched_ok(world.error[0] == 1);
    for (unsigned i = 0; i < sizeof(world.ov[0]); i++)
        sched_ok(((unsigned char *)&world.ov[0])[i] == 0xee);
    sched_ok(packets_left() + (world.wait[1] || world.got[1]) == 1);
    tear_down();
}

/* The application frees the structure as soon as the cancel has returned (ndspi.md 2.5). */
TEST(order__cancel_then_memory_is_free)
{
    static const struct sched_scenario scenario = {
        .name = "cancel, complete, memory reused",
        .setup = one_request_with_port,
        .check = check_overwrite,
        .threads = { { "cancel", body_cancel_and_overwrite, false },
                     { "B", body_poll_loop, false },
                     { "dev", body_device, false } },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

/* An owner without a lock that cancels nothing: what has begun to be delivered is out when the cancel returns. */

static void complete_first_unlocked(void *arg)
{
    struct list *link = list_pop(&world.pending);

    (void)arg;
    request_complete(list_entry(link, struct request, link), STATUS_SUCCESS, BYTES);
}

static void body_device_unlocked(void)
{
    source_push(complete_first_unlocked, NULL);
    source_push(complete_first_unlocked, NULL);
}

static void cancel_nothing(struct request *request)
{
    (void)request;
}

static void two_requests_not_cancelled(void)
{
    set_up(2, false, true);
    list_for_each (node, &world.pending)
        list_entry(node, struct request, link)->cancel = cancel_nothing;
}

static void body_cancel_and_look(void)
{
    int i = sched_current();

    /* Delivery may begin while the cancel is at it; only what had begun before is sure to be out. */
    world.status[i] = overlapped_result(&world.ov[0], FALSE, NULL);
    body_cancel();
    world.wait[i] = WaitForSingleObject(world.event[0], 0);
}

static void check_look(void)
{
    source_drain();
    sched_ok(world.status[0] == STATUS_PENDING || world.wait[0] == WAIT_OBJECT_0);
    sched_ok(world.wait[1] == WAIT_OBJECT_0);
    tear_down();
}

TEST(order__cancel_waits_for_delivery)
{
    static const struct sched_scenario scenario = {
        .name = "cancel, complete under way",
        .setup = two_requests_not_cancelled,
        .check = check_look,
        .threads = { { "cancel", body_cancel_and_look, false },
                     { "B", body_wait_event1, false },
                     { "dev", body_device_unlocked, false } },
        .preemptions = 2,
    };

    explore(&scenario);
}

/* Ports: two packets, two threads, one of which may time out: each packet is got once or still there. */

static void check_packets(void)
{
    unsigned got;

    source_drain();
    sched_ok(world.wait[1] == TRUE);
    sched_ok(world.wait[0] == TRUE || (world.error[0] == WAIT_TIMEOUT && !world.got[0]));
    got = (world.wait[0] == TRUE) + (world.wait[1] == TRUE);
    if (world.wait[0] == TRUE)
        sched_ok(world.key[0] != world.key[1]);
    sched_ok(got + packets_left() == 2);
    tear_down();
}

TEST(order__packets_of_completion_and_third_thread)
{
    static const struct sched_scenario scenario = {
        .name = "packets: complete, post, time-out, second waiter",
        .setup = one_request_with_port,
        .check = check_packets,
        .threads = { { "A", body_packet_timed, false },
                     { "B", body_packet, false },
                     { "post", body_post, false },
                     { "dev", body_device, false } },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

static void check_port_closed(void)
{
    source_drain();
    sched_ok(world.wait[0] == TRUE
                 ? world.got[0] == &world.ov[0]
                 : world.error[0] == ERROR_ABANDONED_WAIT_0 || world.error[0] == ERROR_INVALID_HANDLE);
    world.port = NULL;
    tear_down();
}

TEST(order__port_closed_while_waiting)
{
    static const struct sched_scenario scenario = {
        .name = "port closed, complete",
        .setup = one_request_with_port,
        .check = check_port_closed,
        .threads = { { "A", body_packet, false }, { "close", body_close_port, false }, { "dev", body_device, false } },
        .preemptions = 4,
    };

    explore(&scenario);
}

/* A driver that completes what it waits for gets it itself, without a hop (rule 11). */

static int runner;

static void complete_and_note(void *arg)
{
    complete_first(arg);
    runner = source_last_runner();
}

static void body_device_note(void)
{
    source_push(complete_and_note, NULL);
}

static void check_driver_first(void)
{
    sched_ok(runner == 0 || runner == 1);
    /* Whoever drove got the packet; the other times out. */
    sched_ok(world.wait[runner] == TRUE);
    sched_ok(world.wait[1 - runner] == FALSE && world.error[1 - runner] == WAIT_TIMEOUT);
    tear_down();
}

TEST(order__driver_gets_its_packet)
{
    static const struct sched_scenario scenario = {
        .name = "driver first",
        .setup = one_request_with_port,
        .check = check_driver_first,
        .threads = { { "A", body_packet_timed, false },
                     { "B", body_packet_timed, false },
                     { "dev", body_device_note, false } },
        .preemptions = 2,
    };

    explore(&scenario);
}

/* A wait for all takes nothing before both are set, against single waiters of the same events. */

static void two_plain_events(void)
{
    set_up(0, false, false);
    for (unsigned i = 0; i < 2; i++)
        world.event[i] = CreateEventW(NULL, FALSE, FALSE, NULL);
}

static void body_wait_all(void)
{
    world.wait[sched_current()] = WaitForMultipleObjects(2, world.event, TRUE, TIMEOUT_MS);
}

static void body_set_both(void)
{
    SetEvent(world.event[0]);
    SetEvent(world.event[1]);
}

static void check_wait_all(void)
{
    bool first = WaitForSingleObject(world.event[0], 0) == WAIT_OBJECT_0;
    bool second = WaitForSingleObject(world.event[1], 0) == WAIT_OBJECT_0;

    /* The second event goes to the wait for all only. */
    sched_ok(second == (world.wait[0] == WAIT_TIMEOUT));
    sched_ok((world.wait[0] == WAIT_OBJECT_0) + (world.wait[1] == WAIT_OBJECT_0) + first == 1);
    tear_down();
}

TEST(order__wait_all_and_single_wait)
{
    static const struct sched_scenario scenario = {
        .name = "wait for all, single wait, SetEvent, time-out",
        .setup = two_plain_events,
        .check = check_wait_all,
        .threads = { { "all", body_wait_all, false },
                     { "one", body_wait_event_timed, false },
                     { "set", body_set_both, false } },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

static void body_wait_any(void)
{
    world.wait[sched_current()] = WaitForMultipleObjects(2, world.event, FALSE, TIMEOUT_MS);
}

static void check_wait_any(void)
{
    bool first = WaitForSingleObject(world.event[0], 0) == WAIT_OBJECT_0;
    bool second = WaitForSingleObject(world.event[1], 0) == WAIT_OBJECT_0;

    /* Two sets of different events, no set lost: each is taken once or there. */
    sched_ok((world.wait[0] != WAIT_TIMEOUT) + (world.wait[1] == WAIT_OBJECT_0) + first + second == 2);
    sched_ok(second == (world.wait[0] != WAIT_OBJECT_0 + 1));
    tear_down();
}

TEST(order__wait_any_and_single_wait)
{
    static const struct sched_scenario scenario = {
        .name = "wait for any, single wait, SetEvent, time-out",
        .setup = two_plain_events,
        .check = check_wait_any,
        .threads = { { "any", body_wait_any, false },
                     { "one", body_wait_event_timed, false },
                     { "set", body_set_both, false } },
        .preemptions = 2,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

/* All at once. */

static void everything(void)
{
    set_up(2, true, true);
}

static void check_everything(void)
{
    source_drain();
    sched_ok(world.wait[0] == WAIT_OBJECT_0 || world.wait[0] == WAIT_TIMEOUT);
    sched_ok(world.wait[1] == TRUE || (world.got[1] && world.error[1] == ERROR_OPERATION_ABORTED));
    sched_ok(packets_left() == 1);
    tear_down();
}

TEST(order__everything)
{
    static const struct sched_scenario scenario = {
        .name = "complete, time-out, SetEvent, cancel, second waiter, hand-over",
        .setup = everything,
        .check = check_everything,
        .threads = { { "A", body_wait_event_timed, false },
                     { "B", body_packet, false },
                     { "dev", body_device_twice, false },
                     { "set", body_set_event, false },
                     { "cancel", body_cancel, false },
                     BACKGROUND },
        .preemptions = 0,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

/* The scenarios reach every point where the role changes. */
TEST(order__every_role_point_is_reached)
{
    static const struct sched_scenario scenario = {
        .name = "role points",
        .setup = two_requests_with_events,
        .check = check_leaver,
        .threads = { { "A", body_wait_event_timed, false },
                     { "B", body_wait_event1, false },
                     { "dev", body_device_twice, false },
                     BACKGROUND },
        .preemptions = 1,
        .clock_jumps = 1,
    };

    explore(&scenario);
    for (int point = 0; point < ROLE_POINTS; point++)
        ok_msg(counts.points[point] > 0, "role point %d was never reached", point);
}

HARNESS_MAIN
