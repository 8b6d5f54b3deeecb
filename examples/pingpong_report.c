/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pingpong.h"

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t pp_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t pp_cpu(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The smallest sample that at least `percent` of all samples do not exceed. */
static uint64_t percentile(const uint64_t *sorted, size_t n, unsigned int percent)
{
    return sorted[((uint64_t)n * percent + 99) / 100 - 1];
}

struct pp_latency pp_latency_from(uint64_t *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), compare);
    return (struct pp_latency){
        .p50 = percentile(samples, n, 50),
        .p99 = percentile(samples, n, 99),
        .max = samples[n - 1],
    };
}

void pp_report_begin(struct pp_report *report)
{
    const struct pp_options *options = report->options;

    report->terminal = isatty(STDERR_FILENO);
    if (options->json) {
        printf("{\n  \"interface\": \"%s\", \"device\": \"%s\", \"local\": \"%s\", \"remote\": \"%s\",\n"
               "  \"operation\": \"%s\", \"wait\": \"%s\", \"depth\": %" PRIu32 ", \"verify\": %s,\n  \"results\": [\n",
               report->interface, report->device, report->local, report->remote, pp_op_name(options->op),
               pp_wait_name(options->wait), options->depth, options->verify ? "true" : "false");
    } else {
        printf("%s: %s to %s over %s, %s, %s, depth %" PRIu32 "%s\n", report->interface, report->local, report->remote,
               report->device, pp_op_name(options->op), pp_wait_name(options->wait), options->depth,
               options->verify ? ", every byte verified" : "");
        printf("%10s %10s %10s %10s %10s %10s\n", "size", "iterations", "p50 [us]", "p99 [us]", "max [us]", "[MB/s]");
    }
    fflush(stdout);
}

void pp_report_progress(struct pp_report *report, uint32_t size, uint32_t done, uint32_t total, uint64_t now)
{
    if (!report->terminal || now - report->last_progress < 200000000)
        return;
    report->last_progress = now;
    fprintf(stderr, "\r%10" PRIu32 " %10" PRIu32 " of %" PRIu32 " ", size, done, total);
    fflush(stderr);
}

void pp_report_size(struct pp_report *report, uint32_t size, uint64_t *samples, uint32_t n, uint64_t elapsed,
                    uint64_t cpu)
{
    static const unsigned int shown[] = { 1, 5, 10, 25, 50, 75, 90, 95, 99, 100 };
    struct pp_latency latency = pp_latency_from(samples, n);
    /* Bytes in one direction; a ping-pong moves as many in the other. */
    double bandwidth = (double)size * n * 1000 / (double)(elapsed ? elapsed : 1);

    if (report->terminal && report->last_progress)
        fprintf(stderr, "\r%40s\r", "");
    if (report->options->json) {
        printf("%s    { \"size\": %" PRIu32 ", \"iterations\": %" PRIu32
               ", \"p50_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f, \"mb_per_s\": %.3f, \"cpu_us\": %.3f,\n"
               "      \"percentiles_us\": { ",
               report->rows ? ",\n" : "", size, n, (double)latency.p50 / 1000, (double)latency.p99 / 1000,
               (double)latency.max / 1000, bandwidth, (double)cpu / 1000 / n);
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
            printf("%s\"%u\": %.3f", i ? ", " : "", shown[i], (double)percentile(samples, n, shown[i]) / 1000);
        printf(" } }");
    } else {
        printf("%10" PRIu32 " %10" PRIu32 " %10.2f %10.2f %10.2f %10.2f\n", size, n, (double)latency.p50 / 1000,
               (double)latency.p99 / 1000, (double)latency.max / 1000, bandwidth);
    }
    report->rows++;
    fflush(stdout);
}

void pp_report_end(struct pp_report *report, uint64_t verified)
{
    if (report->options->json)
        printf("\n  ],\n  \"verified_bytes\": %" PRIu64 "\n}\n", verified);
    else if (report->options->verify)
        printf("%" PRIu64 " bytes verified here\n", verified);
    fflush(stdout);
}
