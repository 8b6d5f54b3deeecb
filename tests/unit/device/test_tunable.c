/* SPDX-License-Identifier: MIT */

/* What the environment may change, and the log. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "harness.h"

#include "core/log.h"
#include "core/tunable.h"

static char captured[4096];
static int saved_stderr = -1, capture_fd[2];

static void capture_start(void)
{
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    ok_int(pipe(capture_fd), ==, 0);
    dup2(capture_fd[1], STDERR_FILENO);
    close(capture_fd[1]);
}

static const char *capture_end(void)
{
    ssize_t got;
    size_t length = 0;

    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    while ((got = read(capture_fd[0], captured + length, sizeof(captured) - 1 - length)) > 0)
        length += (size_t)got;
    captured[length] = '\0';
    close(capture_fd[0]);
    return captured;
}

static unsigned lines(const char *text)
{
    unsigned count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

SETUP
{
    log_threshold = LOG_WARN;
}

TEST(tunables__defaults)
{
    const struct tunables *values = tunables();

    ok_uint(values->retry_count, ==, 6);
    ok_uint(values->rnr_retry, ==, 6);
    ok_uint(values->min_rnr_timer, ==, 20);
    ok_uint(values->min_rnr_timer_srq, ==, 12);
    ok_uint(values->ack_timeout, ==, 18);
    ok_uint(values->ack_timeout_srq, ==, 20);
    ok_uint(values->connect_timeout_ms, ==, 0);
    ok_uint(values->listen_queue_max, ==, 1024);
    ok_uint(values->cq_safety_poll_ms, ==, 0);
    ok_uint(values->trim_private_data, ==, 0);
    ok_ptr(values->only_device, ==, NULL);
    ok_ptr(values->only_address, ==, NULL);
}

TEST(tunables__from_the_environment)
{
    setenv("NDVERBS_RETRY_COUNT", "0", 1);
    setenv("NDVERBS_ACK_TIMEOUT", "14", 1);
    setenv("NDVERBS_LISTEN_QUEUE_MAX", "1048576", 1);
    setenv("NDVERBS_ONLY_DEVICE", "rxe0", 1);
    setenv("NDVERBS_ONLY_ADDRESS", "", 1); /* empty is not set */
    tunables_reload();
    setenv("NDVERBS_ONLY_DEVICE", "other", 1); /* later changes do not reach the copy */
    ok_uint(tunables()->retry_count, ==, 0);
    ok_uint(tunables()->ack_timeout, ==, 14);
    ok_uint(tunables()->listen_queue_max, ==, 1048576);
    ok_str(tunables()->only_device, "rxe0");
    ok_ptr(tunables()->only_address, ==, NULL);
}

TEST(tunables__unusable_values_keep_the_default)
{
    static const char *const bad[] = { "7", "-1", "6 ", " 6", "0x6", "six", "99999999999999999999", "6.0" };

    tunables();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("NDVERBS_RETRY_COUNT", bad[i], 1); /* 7 would be "for ever" on rxe */
        capture_start();
        tunables_reload();
        capture_end();
        ok_uint(tunables()->retry_count, ==, 6);
        ok_uint(lines(captured), ==, 1);
        ok(strstr(captured, "NDVERBS_RETRY_COUNT"));
    }
}

TEST(log__levels)
{
    static const char *const names[] = { "none", "error", "warn", "info", "debug" };

    for (int level = LOG_NONE; level <= LOG_DEBUG; level++) {
        setenv("NDVERBS_LOG", names[level], 1);
        log_threshold = -1;
        capture_start();
        log_error("e");
        log_warn("w");
        log_info("i");
        log_debug("d");
        capture_end();
        ok_uint(lines(captured), ==, (unsigned)level);
    }
}

TEST(log__unknown_level_is_reported_and_warn_is_used)
{
    setenv("NDVERBS_LOG", "chatty", 1);
    log_threshold = -1;
    capture_start();
    log_warn("shown");
    log_info("hidden");
    capture_end();
    ok_uint(lines(captured), ==, 2);
    ok(strstr(captured, "chatty") && strstr(captured, "shown") && !strstr(captured, "hidden"));
}

TEST(log__keeps_errno_and_cuts_long_lines)
{
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    errno = ERANGE;
    capture_start();
    errno = ERANGE;
    log_warn("%s", text);
    ok_int(errno, ==, ERANGE);
    capture_end();
    ok_uint(lines(captured), ==, 1);
    ok_uint(strlen(captured), <=, 512);
    ok(strstr(captured, "xxxx"));
    ok_int(captured[strlen(captured) - 1], ==, '\n');
}
