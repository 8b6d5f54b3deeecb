/* SPDX-License-Identifier: MIT */

/* Orders of {a host's dispatch, a waiter that drives, the background thread, events}: nothing is left lying, whoever has
 * the role when it comes. */

#include <ntstatus.h>
#include <stdio.h>
#include <windows.h>

#include "core/role.h"
#include "handle.h"
#include "harness.h"
#include "overlapped.h"
#include "orders.h"
#include "sleep.h"

#define TIMEOUT_MS 10

static struct {
    struct file *file;
    struct request *request;
    OVERLAPPED ov;
    HANDLE interesting, plain; /* the event of a pending request, and one that nothing of ours will set */
    DWORD timed, untimed;
} world;

static struct sched_counts counts;

static void set_up(void)
{
    memset(&world, 0, sizeof(world));
    world.timed = WAIT_TIMEOUT; /* where nobody waits */
    world.file = file_create();
    world.interesting = CreateEventW(NULL, FALSE, FALSE, NULL);
    world.plain = CreateEventW(NULL, FALSE, FALSE, NULL);
    world.ov.hEvent = world.interesting;
    sched_ok(request_alloc(world.file, &world.ov, NULL, NULL, &world.request) == STATUS_SUCCESS);
    request_start(world.request);
}

static void set_up_with_host(void)
{
    set_up();
    role_host(true);
}

static void check(void)
{
    sched_ok(source_drain() == 0);
    sched_ok(HasOverlappedIoCompleted(&world.ov));
    sched_ok(world.untimed == WAIT_OBJECT_0);
    sched_ok((WaitForSingleObject(world.interesting, 0) == WAIT_OBJECT_0) == (world.timed == WAIT_TIMEOUT));
    CloseHandle(world.interesting);
    CloseHandle(world.plain);
    file_unref(world.file);
    sched_ok(handle_count() == 0);
}

static void complete(void *arg)
{
    (void)arg;
    request_complete(world.request, STATUS_SUCCESS, 1);
}

static void set_plain(void *arg)
{
    (void)arg;
    SetEvent(world.plain);
}

static void body_wait_interested(void)
{
    world.timed = WaitForSingleObject(world.interesting, TIMEOUT_MS);
}

/* Never drives: ends only if somebody else runs the event. */
static void body_wait_plain(void)
{
    world.untimed = WaitForSingleObject(world.plain, INFINITE);
}

static void body_device(void)
{
    source_push(complete, NULL);
    source_push(set_plain, NULL);
}

static void body_host(void)
{
    bool ran = true;

    for (;;) {
        source_host_poll(!ran);
        ran = role_dispatch();
    }
}

static void body_host_declares(void)
{
    role_host(true);
    body_host();
}

static void body_host_leaves(void)
{
    role_host(true);
    role_dispatch();
    role_host(false);
}

static void body_background(void)
{
    role_background_main(NULL);
}

static void explore(const struct sched_scenario *scenario)
{
    uint64_t before = counts.executions;

    sched_explore(scenario, &counts);
    printf("%s: %llu orders\n", scenario->name, (unsigned long long)(counts.executions - before));
    ok_uint(counts.executions - before, >, 1);
}

TEST(order__host_beside_a_waiter)
{
    static const struct sched_scenario scenario = {
        .name = "host, waiter that times out, events",
        .setup = set_up_with_host,
        .check = check,
        .threads = { { "A", body_wait_interested, false },
                     { "P", body_wait_plain, false },
                     { "dev", body_device, false },
                     { "host", body_host, true },
                     { "bg", body_background, true } },
        .preemptions = 1,
        .clock_jumps = 1,
    };

    explore(&scenario);
}

TEST(order__host_takes_over_from_the_background)
{
    static const struct sched_scenario scenario = {
        .name = "host is declared while the background thread drives",
        .setup = set_up,
        .check = check,
        .threads = { { "P", body_wait_plain, false },
                     { "dev", body_device, false },
                     { "host", body_host_declares, true },
                     { "bg", body_background, true } },
        .preemptions = 1,
        .clock_jumps = 0,
    };

    explore(&scenario);
}

TEST(order__host_leaves)
{
    static const struct sched_scenario scenario = {
        .name = "host is declared, dispatches once and leaves",
        .setup = set_up,
        .check = check,
        .threads = { { "A", body_wait_interested, false },
                     { "P", body_wait_plain, false },
                     { "dev", body_device, false },
                     { "host", body_host_leaves, false },
                     { "bg", body_background, true } },
        .preemptions = 1,
        .clock_jumps = 1,
    };

    explore(&scenario);
}
