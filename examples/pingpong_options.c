/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong.h"

uint32_t pp_spin = 4096;

const char *pp_op_name(enum pp_op op)
{
    static const char *const names[] = { "send", "write", "read" };

    return names[op];
}

const char *pp_wait_name(enum pp_wait wait)
{
    static const char *const names[] = { "poll", "event", "port", "result" };

    return names[wait];
}

static void usage(const char *program, bool has_port, FILE *to)
{
    fprintf(to,
            "usage: %s -s [-b LOCALADDR] [-p PORT] [-k]\n"
            "       %s -c ADDR [-b LOCALADDR] [-p PORT] [OPTIONS]\n"
            "\n"
            "  -s, --server           wait for a client and do what it asks for\n"
            "  -c, --connect ADDR     connect to a server: IPv4 or IPv6 address\n"
            "  -b, --bind LOCALADDR   local address (default: the first, or the one towards the server)\n"
            "  -p, --port-number PORT port of the server (default 20886)\n"
            "  -k, --keep             server: go on with the next client\n"
            "      --spin N           polls without a result before it yields (default 4096)\n"
            "\n"
            "  --send                 messages: Send and Receive (default)\n"
            "  --write                RDMA writes; the peer polls the last byte, or waits for an empty message\n"
            "  --read                 RDMA reads of the server's memory\n"
            "  --poll                 poll for completions (default)\n"
            "  --event                wait for them on %s\n"
            "%s"
            "%s"
            "  -n, --iterations N     per size (default 1000)\n"
            "  -w, --warm-up N        more, not measured (default 16)\n"
            "  -S, --size SIZE[,...]  bytes; K and M are accepted (default 64)\n"
            "  -q, --depth N          messages under way at a time, 1 to %d (default 1)\n"
            "  -I, --inline N         send up to N bytes inline (default 64, at most what the device has)\n"
            "  -V, --verify           compare every byte; the data changes with iteration and offset\n"
            "  --json                 results as JSON\n"
            "\n"
            "Latency is half a round trip for send and write, and the whole operation for read.\n",
            program, program, has_port ? "an event" : "a completion channel",
            has_port ? "  --port                 wait for them on a completion port\n"
                       "  --result               wait for them in GetOverlappedResult\n"
                     : "",
            has_port ? "  --v1                   by way of Network Direct version 1; --write needs it on both sides\n"
                       "  --ud                   wvpingpong: datagrams, on both sides\n"
                     : "",
            PP_MAX_DEPTH);
}

static void __attribute__((noreturn)) bad(const struct pp_options *options, const char *what, const char *value)
{
    fprintf(stderr, "%s: %s: %s (--help shows the options)\n", options->program, what, value);
    exit(2);
}

static uint32_t number(const struct pp_options *options, const char *what, const char *text, uint32_t low,
                       uint32_t high)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (end != text && (*end == 'k' || *end == 'K') && !end[1]) {
        value *= 1024;
        end++;
    } else if (end != text && (*end == 'm' || *end == 'M') && !end[1]) {
        value *= 1024 * 1024;
        end++;
    }
    if (end == text || *end || errno || *text == '-' || value < low || value > high)
        bad(options, what, text);
    return (uint32_t)value;
}

static void sizes_parse(struct pp_options *options, const char *text)
{
    char *copy = strdup(text), *rest = NULL, *word;

    options->size_count = 0;
    for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (options->size_count == PP_MAX_SIZES)
            bad(options, "too many sizes", text);
        options->sizes[options->size_count++] = number(options, "bad size", word, 0, 1u << 30);
    }
    if (!options->size_count)
        bad(options, "bad size", text);
    free(copy);
}

void pp_options_parse(struct pp_options *options, const char *program, bool has_port, int argc, char **argv)
{
    enum {
        OPT_SEND = 256,
        OPT_WRITE,
        OPT_READ,
        OPT_POLL,
        OPT_EVENT,
        OPT_PORT,
        OPT_RESULT,
        OPT_JSON,
        OPT_V1,
        OPT_SPIN,
    };
    static const struct option names[] = {
        { "server", no_argument, NULL, 's' },
        { "connect", required_argument, NULL, 'c' },
        { "bind", required_argument, NULL, 'b' },
        { "port-number", required_argument, NULL, 'p' },
        { "keep", no_argument, NULL, 'k' },
        { "iterations", required_argument, NULL, 'n' },
        { "warm-up", required_argument, NULL, 'w' },
        { "size", required_argument, NULL, 'S' },
        { "depth", required_argument, NULL, 'q' },
        { "inline", required_argument, NULL, 'I' },
        { "verify", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { "send", no_argument, NULL, OPT_SEND },
        { "write", no_argument, NULL, OPT_WRITE },
        { "read", no_argument, NULL, OPT_READ },
        { "poll", no_argument, NULL, OPT_POLL },
        { "event", no_argument, NULL, OPT_EVENT },
        { "port", no_argument, NULL, OPT_PORT },
        { "result", no_argument, NULL, OPT_RESULT },
        { "json", no_argument, NULL, OPT_JSON },
        { "v1", no_argument, NULL, OPT_V1 },
        { "spin", required_argument, NULL, OPT_SPIN },
        { NULL, 0, NULL, 0 },
    };
    int option;

    *options = (struct pp_options){
        .program = program,
        .port = 20886,
        .iterations = 1000,
        .warmup = 16,
        .depth = 1,
        .inline_size = 64,
        .sizes = { 64 },
        .size_count = 1,
    };
    while ((option = getopt_long(argc, argv, "sc:b:p:kn:w:S:q:I:Vh", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options->server = true;
            break;
        case 'c':
            options->connect = optarg;
            break;
        case 'b':
            options->bind = optarg;
            break;
        case 'p':
            options->port = (uint16_t)number(options, "bad port", optarg, 1, 65535);
            break;
        case 'k':
            options->keep = true;
            break;
        case 'n':
            options->iterations = number(options, "bad number of iterations", optarg, 1, 100000000);
            break;
        case 'w':
            options->warmup = number(options, "bad number of iterations", optarg, 0, 1000000);
            break;
        case 'S':
            sizes_parse(options, optarg);
            break;
        case 'q':
            options->depth = number(options, "bad depth", optarg, 1, PP_MAX_DEPTH);
            break;
        case 'I':
            options->inline_size = number(options, "bad inline size", optarg, 0, 65536);
            break;
        case 'V':
            options->verify = true;
            break;
        case OPT_SEND:
            options->op = PP_SEND;
            break;
        case OPT_WRITE:
            options->op = PP_WRITE;
            break;
        case OPT_READ:
            options->op = PP_READ;
            break;
        case OPT_POLL:
            options->wait = PP_POLL;
            break;
        case OPT_EVENT:
            options->wait = PP_EVENT;
            break;
        case OPT_PORT:
            if (!has_port)
                bad(options, "not on this interface", "--port");
            options->wait = PP_PORT;
            break;
        case OPT_RESULT:
            if (!has_port)
                bad(options, "not on this interface", "--result");
            options->wait = PP_RESULT;
            break;
        case OPT_JSON:
            options->json = true;
            break;
        case OPT_V1:
            if (!has_port)
                bad(options, "not on this interface", "--v1");
            options->v1 = true;
            break;
        case OPT_SPIN:
            pp_spin = number(options, "bad number of polls", optarg, 1, 1u << 30);
            break;
        case 'h':
            usage(program, has_port, stdout);
            exit(0);
        default:
            exit(2);
        }
    }
    if (optind < argc)
        bad(options, "unexpected argument", argv[optind]);
    if (options->server == (options->connect != NULL)) {
        usage(program, has_port, stderr);
        exit(2);
    }
}
