/* SPDX-License-Identifier: MIT */
/* Version 1 against rawpeer, which is plain librdmacm and libibverbs: interop.c's cases of what a device of its own can see and
 * refuse. */
#include "v1side.h"

#include <endian.h>
#include <stdlib.h>

#include "foreign.h"
#include "interop.h"

/* Starts rawpeer's part and tries until it listens. The receive is posted before. */
static int begin(struct v1 *v1, const char *part, ND_RESULT *received)
{
    union endpoint to = endpoint_from(peer_address());
    const char *port = free_port();
    int pid = start_rawpeer("server", part, peer_address(), port, NULL);
    HRESULT hr;

    endpoint_set_port(&to, (USHORT)atoi(port));
    v1_open(v1, 4096);
    v1_make_connector(v1);
    v1_make_endpoint(v1);
    if (received)
        v1_receive(v1, received, 0, 64);
    while ((hr = v1_try_connect(v1, &to)) == ND_CONNECTION_REFUSED)
        Sleep(20);
    ok_status(hr, ND_SUCCESS);
    ok_status(V1_FINISH(v1, CALL(v1->connector, CompleteConnect, &v1->ov)), ND_SUCCESS);
    return pid;
}

static void end(struct v1 *v1, int pid)
{
    v1_disconnect(v1);
    all_was_well(pid);
    v1_none(v1);
    v1_close(v1);
}

ALONE(solicited)
{
    struct v1 v1;
    int pid;

    if (runner_iwarp())
        harness_skip("siw has no event for solicited receives only");
    pid = begin(&v1, "solicited", NULL);
    for (size_t i = 0; i < INTEROP_MESSAGES; i++) {
        ND_RESULT sent, received;

        v1_receive(&v1, &received, 0, 1);
        v1_send(&v1, &sent, 64, 1, interop_solicited(i) ? ND_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0);
        for (int left = 2; left; left--) {
            ND_RESULT *result = v1_next(&v1);

            ok(result == &sent || result == &received);
            ok_status(result->Status, ND_SUCCESS);
        }
    }
    end(&v1, pid);
}

static void no_access(bool read)
{
    ND_MW_DESCRIPTOR mw = { .Base = htobe64(4096), .Length = htobe64(4096), .Token = 1 };
    ND_RESULT result, received;
    struct v1 v1;
    ND_SGE sge;
    int pid;

    if (runner_iwarp())
        harness_skip("siw does not look at the queue pair's rights");
    pid = begin(&v1, "no_access", &received);
    sge = v1_sge(&v1, 0, 64);
    if (read)
        ok_status(CALL(v1.endpoint, Read, &result, &sge, 1, &mw, 0, 0), ND_SUCCESS);
    else
        ok_status(CALL(v1.endpoint, Write, &result, &sge, 1, &mw, 0, 0), ND_SUCCESS);
    ok_v1_result(&v1, &result, ND_REMOTE_ERROR);
    ok_v1_result(&v1, &received, ND_CANCELED);
    end(&v1, pid);
}

ALONE(read_refused_by_the_queue_pair)
{
    no_access(true);
}

ALONE(write_refused_by_the_queue_pair)
{
    no_access(false);
}

ALONE(receive_of_a_refused_write)
{
    ND_RESULT received;
    struct v1 v1;
    int pid;

    if (runner_iwarp())
        harness_skip("siw has no immediate data");
    pid = begin(&v1, "bad_immediate", &received);
    ok_v1_result(&v1, &received, ND_ACCESS_VIOLATION);
    end(&v1, pid);
}

RUNNER_MAIN
