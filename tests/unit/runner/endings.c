/* SPDX-License-Identifier: MIT */
/* Cases of the device tests' frame that end in every way; test_runner knows what has to be said of each. No device. */
#include "tests/device/early.h"
#include "tests/device/runner.h"

#include <stdlib.h>
#include <unistd.h>

static void wait_for_the_other(void)
{
    char byte;

    runner_get(&byte, 1);
}

#define CASE(name, server, client) \
    SERVER(name)                   \
    {                              \
        server;                    \
    }                              \
    CLIENT(name)                   \
    {                              \
        client;                    \
    }

ALONE(passes)
{
}

CASE(both_pass, runner_sync(), runner_sync())
CASE(both_skip, harness_skip("one reason"), harness_skip("one reason"))
CASE(server_skips, harness_skip("server's reason"), wait_for_the_other())
CASE(client_skips, wait_for_the_other(), harness_skip("client's reason"))
CASE(skip_beside_one_that_passes, harness_skip("server's reason"), (void)0)
CASE(skip_beside_one_that_waits_for_ever, harness_skip("server's reason"), pause())
CASE(server_skips_client_fails, harness_skip("server's reason"), ok_msg(false, "client's failure"))
CASE(client_skips_server_fails, ok_msg(false, "server's failure"), harness_skip("client's reason"))
CASE(skip_beside_a_crash, abort(), harness_skip("client's reason"))
CASE(skip_beside_an_exit, harness_skip("server's reason"), _exit(3))
CASE(one_fails, wait_for_the_other(), ok_msg(false, "client's failure"))

/* Of two queues, each asked for in its own order of arrival. */
ALONE(early_results_asked_for)
{
    static const int queues[2];
    int value;

    for (value = 0; value < 4; value++)
        early_put(&queues[0], value % 2 ? EARLY_RECEIVE : EARLY_OTHER, &value, sizeof(value));
    early_put(&queues[1], EARLY_RECEIVE, &value, sizeof(value));
    ok(!early_take(&queues[1], EARLY_OTHER, &value, sizeof(value)));
    ok(early_take(&queues[0], EARLY_RECEIVE, &value, sizeof(value)) && value == 1);
    ok(early_take(&queues[0], EARLY_ANY, &value, sizeof(value)) && value == 0);
    ok(early_take(&queues[0], EARLY_OTHER, &value, sizeof(value)) && value == 2);
    ok(early_take(&queues[0], EARLY_ANY, &value, sizeof(value)) && value == 3);
    ok(!early_take(&queues[0], EARLY_ANY, &value, sizeof(value)));
    ok(early_take(&queues[1], EARLY_RECEIVE, &value, sizeof(value)) && value == 4);
}

ALONE(early_result_left)
{
    early_put("a queue", EARLY_OTHER, "", 1);
}

RUNNER_MAIN
