/* SPDX-License-Identifier: MIT */

/* Random operations against a model: several queue pairs on two completion queues, with posts of every kind, completions,
 * failures, late and lost flushes, Flush, drain, release and polls. The model knows which requests were accepted and which
 * results came; per queue the order is that of posting, a loud request comes back exactly once, a silent one at most once and
 * never successfully, nothing comes after a failure but failures. */

#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define PAIRS    4
#define REQUESTS 4096

struct model_request {
    bool silent, done;
};

struct model_queue {
    struct model_request request[REQUESTS];
    unsigned posted, next; /* next: the first that may still come back */
    unsigned untaken;      /* loud and not come back */
    bool failed;
};

struct model_pair {
    struct qp *qp;
    struct model_queue queue[2]; /* FAKE_SEND, FAKE_RECV */
    bool connected, closed, draining, gone;
    unsigned depth;
    struct qp_drain drain;
};

static struct model_pair *pairs;
static struct adapter *adapter;
static struct cq *queues[2];
static uint64_t state;
static unsigned drains_done, drains_begun, results_seen, failures_seen;

static uint32_t roll(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void on_drained(struct qp_drain *drain)
{
    (void)drain;
    drains_done++;
}

static uintptr_t name_of(unsigned pair, enum fake_queue queue, unsigned request)
{
    return ((uintptr_t)pair << 24 | (uintptr_t)queue << 20 | request) + 1;
}

static void start_pair(unsigned index)
{
    struct model_pair *pair = &pairs[index];
    struct qp_config config;

    memset(pair, 0, sizeof(*pair));
    pair->depth = 1 + roll(9);
    config = rig_config(adapter, queues[roll(2)], queues[roll(2)], pair->depth);
    config.context = rig_ctx(index);
    ok_status(qp_create(&config, &pair->qp), ND_SUCCESS);
}

static void post(unsigned index, enum fake_queue which)
{
    struct model_pair *pair = &pairs[index];
    struct model_queue *queue = &pair->queue[which];
    struct model_request *request = &queue->request[queue->posted];
    bool silent = which == FAKE_SEND && roll(2);
    uintptr_t name = name_of(index, which, queue->posted);
    HRESULT hr;

    if (queue->posted == REQUESTS)
        return;
    if (which == FAKE_RECV) {
        hr = rig_recv(pair->qp, name);
    } else {
        uint32_t flags = silent ? ND_OP_FLAG_SILENT_SUCCESS : 0;

        hr = roll(2) ? rig_send(pair->qp, name, flags) : qp_write(pair->qp, rig_ctx(name), NULL, 0, 0, 0, flags);
    }
    if (which == FAKE_SEND && !pair->connected) {
        ok_status(hr, ND_CONNECTION_INVALID);
        return;
    }
    if (hr == ND_NO_MORE_ENTRIES) {
        /* Refused only if the device still works on something, or results wait that nobody takes. */
        ok(fake_qp_posted(qp_verbs(pair->qp), which) || queue->untaken || pair->draining || queue->failed ||
           pair->closed);
        return;
    }
    ok_status(hr, ND_SUCCESS);
    request->silent = silent;
    request->done = false;
    queue->untaken += !silent;
    queue->posted++;
}

static void check_result(const ND2_RESULT *result)
{
    uintptr_t name = (uintptr_t)result->RequestContext - 1;
    unsigned index = (unsigned)(name >> 24), number = name & 0xfffff;
    enum fake_queue which = (enum fake_queue)(name >> 20 & 1);
    struct model_queue *queue = &pairs[index].queue[which];
    struct model_request *request = &queue->request[number];

    ok_uint(index, <, PAIRS);
    ok_ptr(result->QueuePairContext, ==, rig_ctx(index));
    ok_int(result->RequestType == Nd2RequestTypeReceive, ==, which == FAKE_RECV);
    ok_msg(number < queue->posted && number >= queue->next, "request %u of %u, next is %u", number, queue->posted,
           queue->next);
    ok(!request->done);
    for (unsigned i = queue->next; i < number; i++)
        ok_msg(queue->request[i].silent || queue->request[i].done, "request %u is missing before %u", i, number);
    if (request->silent)
        ok_status(result->Status == ND_SUCCESS ? ND_SUCCESS : ND_CANCELED, ND_CANCELED);
    if (result->Status == ND_SUCCESS)
        ok_msg(!queue->failed, "success of %u after a failure", number);
    else
        queue->failed = true;
    failures_seen += result->Status != ND_SUCCESS;
    request->done = true;
    queue->next = number + 1;
    queue->untaken -= !request->silent;
    results_seen++;
}

static void take(struct cq *cq, uint32_t n)
{
    ND2_RESULT results[20];
    uint32_t got;

    memset(results, 0xaa, sizeof(results));
    got = cq_get_results(cq, results, n);
    ok_uint(got, <=, n);
    for (uint32_t i = 0; i < got; i++)
        check_result(&results[i]);
}

/* After the end of a pair everything loud has come back once the queues were emptied. */
static void finish_pair(unsigned index)
{
    struct model_pair *pair = &pairs[index];

    rig_drop(pair->qp);
    for (int i = 0; i < 200; i++) {
        take(queues[0], 20);
        take(queues[1], 20);
    }
    for (int which = 0; which < 2; which++) {
        struct model_queue *queue = &pair->queue[which];

        ok_uint(queue->untaken, ==, 0);
        for (unsigned i = 0; i < queue->posted; i++)
            ok(queue->request[i].silent || queue->request[i].done);
    }
    rig_run();
}

static void step(void)
{
    unsigned index = roll(PAIRS);
    struct model_pair *pair = &pairs[index];
    struct ibv_qp *verbs = qp_verbs(pair->qp);
    enum fake_queue which = roll(2) ? FAKE_SEND : FAKE_RECV;
    bool error = fake_qp_state(verbs) == IBV_QPS_ERR;

    switch (roll(40)) {
    case 0:
    case 1:
        if (!pair->connected && !error && !pair->draining) {
            rig_connect(pair->qp);
            pair->connected = true;
        }
        break;
    case 2:
        if (!error)
            fake_qp_complete(verbs, which, 1, which == FAKE_SEND ? IBV_WC_RETRY_EXC_ERR : IBV_WC_LOC_LEN_ERR, 0);
        break;
    case 3:
        qp_flush(pair->qp);
        pair->draining = true;
        break;
    case 4:
        if (pair->connected) {
            qp_close_posts(pair->qp);
            pair->closed = true;
        }
        break;
    case 5:
        if (!pair->gone) {
            pair->gone = pair->draining = true;
            drains_begun++;
            qp_drain(pair->qp, &pair->drain, on_drained);
        }
        break;
    case 6:
        finish_pair(index);
        start_pair(index);
        break;
    case 7:
        rig_advance(roll(4) ? 1 : 1100);
        break;
    case 8:
    case 9:
        if (error)
            fake_qp_flush(verbs);
        break;
    case 10:
        if (!error && pair->connected)
            fake_qp_fail(verbs);
        break;
    case 11:
        qp_collect(pair->qp);
        break;
    case 12:
        fake_auto_flush(roll(2));
        break;
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
        take(queues[roll(2)], roll(20));
        break;
    case 18:
        rig_run();
        break;
    case 19:
    case 20:
    case 21:
    case 22:
    case 23:
        if (!error)
            fake_qp_complete(verbs, which, 1 + roll(6), IBV_WC_SUCCESS, roll(100));
        break;
    default:
        post(index, which);
    }
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

static void play(uint64_t seed, unsigned quirks)
{
    state = seed;
    drains_done = drains_begun = 0;
    fake_device_quirks("fake_ib", quirks);
    adapter = rig_open(RIG_IB);
    queues[0] = rig_cq(adapter, 2 + roll(40));
    queues[1] = rig_cq(adapter, 2 + roll(40));
    for (unsigned i = 0; i < PAIRS; i++)
        start_pair(i);
    for (unsigned i = 0; i < 3000; i++)
        step();
    for (unsigned i = 0; i < PAIRS; i++)
        finish_pair(i);
    ok_uint(drains_done, ==, drains_begun);
    ok_no_result(queues[0]);
    ok_no_result(queues[1]);
    cq_unref(queues[0]);
    cq_unref(queues[1]);
    rig_close(adapter);
    fake_auto_flush(true);
    fake_reset_script();
}

TEST(model__random_operations)
{
    static const uint64_t seeds[] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 0xfeedface };
    const char *one = getenv("NDVERBS_TEST_SEED");

    pairs = calloc(PAIRS, sizeof(*pairs));
    ok(pairs != NULL);
    if (one) {
        play(strtoull(one, NULL, 0), 0);
        play(strtoull(one, NULL, 0), FAKE_QUIRK_RXE);
    }
    for (unsigned i = 0; !one && i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        play(seeds[i], 0);
        play(seeds[i], FAKE_QUIRK_RXE);
    }
    ok_uint(results_seen, >, 1000);
    ok_uint(failures_seen, >, 100);
    free(pairs);
}
