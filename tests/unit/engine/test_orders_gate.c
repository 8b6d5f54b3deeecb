/* SPDX-License-Identifier: MIT */

/* Orders of threads that pass a gate if it is open, take its lock if it is not, and leave it open or shut: one at a time is
 * inside, who passes finds nothing set aside, and none sleeps for ever. */

#include <stdio.h>

#include "gate.h"
#include "harness.h"
#include "orders.h"
#include "sleep.h"
#include "step.h"

static struct {
    struct gate gate;
    int inside;
    bool aside; /* something is set aside: the gate is shut */
    unsigned passed, locked, entered;
} world;

static struct sched_counts counts;

static void set_up(void)
{
    memset(&world, 0, sizeof(world));
    gate_init(&world.gate);
}

static void set_up_shut(void)
{
    set_up();
    gate_lock(&world.gate);
    world.aside = true;
    gate_unlock(&world.gate, GATE_SHUT);
}

static void enter(void)
{
    sched_ok(world.inside++ == 0);
    world.entered++;
    step_point();
}

static void leave(void)
{
    sched_ok(--world.inside == 0);
    gate_unlock(&world.gate, world.aside ? GATE_SHUT : GATE_OPEN);
}

/* What a poll does. */
static void pass(void)
{
    if (gate_pass(&world.gate)) {
        world.passed++;
        enter();
        sched_ok(!world.aside);
    } else {
        gate_lock(&world.gate);
        world.locked++;
        enter();
    }
    leave();
}

static void body_pass(void)
{
    pass();
}

static void body_pass_twice(void)
{
    pass();
    pass();
}

static void body_shut(void)
{
    gate_lock(&world.gate);
    enter();
    world.aside = true;
    leave();
}

static void body_open(void)
{
    gate_lock(&world.gate);
    enter();
    world.aside = false;
    leave();
}

static void body_shut_and_open(void)
{
    body_shut();
    body_open();
}

static void check(void)
{
    sched_ok(world.inside == 0);
    sched_ok(gate_pass(&world.gate) == !world.aside);
    if (world.aside)
        sched_ok(gate_trylock(&world.gate));
    sched_ok(!gate_trylock(&world.gate));
    gate_unlock(&world.gate, GATE_OPEN);
    sched_ok(gate_pass(&world.gate));
}

static void explore(const struct sched_scenario *scenario)
{
    uint64_t before = counts.executions;

    sched_explore(scenario, &counts);
    printf("%s: %llu orders\n", scenario->name, (unsigned long long)(counts.executions - before));
    ok_uint(counts.executions - before, >, 1);
}

TEST(gate__passers)
{
    static const struct sched_scenario scenario = {
        .name = "three that pass",
        .setup = set_up,
        .check = check,
        .threads = { { "A", body_pass_twice, false }, { "B", body_pass, false }, { "C", body_pass, false } },
        .preemptions = 4,
    };

    explore(&scenario);
}

TEST(gate__shut_and_opened_meanwhile)
{
    static const struct sched_scenario scenario = {
        .name = "two that pass, one that shuts and opens",
        .setup = set_up,
        .check = check,
        .threads = { { "A", body_pass, false }, { "B", body_pass, false }, { "C", body_shut_and_open, false } },
        .preemptions = 4,
    };

    explore(&scenario);
}

TEST(gate__shut_by_one_opened_by_another)
{
    static const struct sched_scenario scenario = {
        .name = "two that pass, one that shuts, one that opens",
        .setup = set_up_shut,
        .check = check,
        .threads = { { "A", body_pass, false },
                     { "B", body_pass, false },
                     { "C", body_open, false },
                     { "D", body_shut, false } },
        .preemptions = 2,
    };

    explore(&scenario);
}
