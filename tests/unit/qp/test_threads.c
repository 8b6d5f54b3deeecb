/* SPDX-License-Identifier: MIT */

/* Posters, two pollers, a notifier and the loop at the same time, mainly for the thread sanitizer. Nothing is lost, nothing
 * comes twice, and each Notify ends. */

#include <pthread.h>

#include "rig.h"

#define REQUESTS 4000

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;
static unsigned char seen[2][REQUESTS];
static unsigned taken, failures, notified;
static bool over;

/* One thread plays device and loop. Time passes: a silent request that succeeded just before the failure has no completion
 * that would tell, and is given up on after a while. */
static void *device_thread(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        fake_qp_complete(qp_verbs(qp), FAKE_SEND, 3, IBV_WC_SUCCESS, 0);
        fake_qp_complete(qp_verbs(qp), FAKE_RECV, 2, IBV_WC_SUCCESS, 0);
        rig_advance(1);
        harness_yield();
    }
    return NULL;
}

static void *post_thread(void *arg)
{
    unsigned which = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < REQUESTS;) {
        HRESULT hr;

        if (which == FAKE_RECV)
            hr = rig_recv(qp, i + 1);
        else
            hr = rig_send(qp, i + 1, i % 3 == 1 ? ND_OP_FLAG_SILENT_SUCCESS : 0);
        if (hr == ND_SUCCESS)
            i++;
        else
            harness_yield();
    }
    return NULL;
}

static void *poll_thread(void *arg)
{
    ND2_RESULT results[20];

    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        uint32_t got = cq_get_results(cq, results, 20);

        for (uint32_t i = 0; i < got; i++) {
            unsigned which = results[i].RequestType == Nd2RequestTypeReceive;

            __atomic_add_fetch(&seen[which][(uintptr_t)results[i].RequestContext - 1], 1, __ATOMIC_RELAXED);
            if (results[i].Status != ND_SUCCESS)
                __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
        }
        __atomic_add_fetch(&taken, got, __ATOMIC_RELAXED);
        if (!got)
            harness_yield();
    }
    return NULL;
}

static bool finished(const struct notify *n)
{
    return (NTSTATUS)__atomic_load_n(&n->ov.Internal, __ATOMIC_ACQUIRE) != ND_PENDING;
}

static void *notify_thread(void *arg)
{
    struct notify n;
    unsigned i = 0;

    (void)arg;
    do {
        rig_notify(cq, 1 + i % 2, &n);
        while (!finished(&n)) {
            if (i % 5 == 0 || __atomic_load_n(&over, __ATOMIC_ACQUIRE))
                cq_cancel_notifies(cq, ND_CANCELED);
            harness_yield();
        }
        __atomic_add_fetch(&notified, 1, __ATOMIC_RELAXED);
        i++;
    } while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)); /* once at least, if it starts late */
    return NULL;
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(threads__post_poll_notify)
{
    pthread_t device, posters[2], pollers[2], notifier;
    unsigned loud = REQUESTS + REQUESTS - REQUESTS / 3;

    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 64);
    qp = rig_qp(adapter, cq, cq, 20);
    rig_connect(qp);
    pthread_create(&device, NULL, device_thread, NULL);
    pthread_create(&notifier, NULL, notify_thread, NULL);
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_create(&posters[i], NULL, post_thread, (void *)i);
        pthread_create(&pollers[i], NULL, poll_thread, NULL);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(posters[i], NULL);
    ok_eventually(__atomic_load_n(&taken, __ATOMIC_RELAXED) >= loud);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(pollers[i], NULL);
    pthread_join(notifier, NULL);
    pthread_join(device, NULL);
    ok_uint(failures, ==, 0);
    ok_uint(taken, ==, loud);
    ok_uint(notified, >, 0);
    for (unsigned i = 0; i < REQUESTS; i++) {
        ok_uint(seen[0][i], ==, i % 3 != 1);
        ok_uint(seen[1][i], ==, 1);
    }
    rig_drop(qp);
    ok_no_result(cq);
    cq_unref(cq);
    rig_close(adapter);
}

/* The queue pair fails and is flushed in the middle of it all; the application keeps posting until it has posted enough. */
TEST(threads__failure_in_the_middle)
{
    pthread_t device, posters[2], pollers[2], notifier;

    adapter = rig_open(RIG_IB);
    cq = rig_cq(adapter, 64);
    qp = rig_qp(adapter, cq, cq, 20);
    rig_connect(qp);
    pthread_create(&device, NULL, device_thread, NULL);
    pthread_create(&notifier, NULL, notify_thread, NULL);
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_create(&posters[i], NULL, post_thread, (void *)i);
        pthread_create(&pollers[i], NULL, poll_thread, NULL);
    }
    ok_eventually(__atomic_load_n(&taken, __ATOMIC_RELAXED) > 1000);
    fake_qp_fail(qp_verbs(qp));
    ok_eventually(__atomic_load_n(&taken, __ATOMIC_RELAXED) > 2000);
    qp_flush(qp);
    for (int i = 0; i < 2; i++)
        pthread_join(posters[i], NULL);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(pollers[i], NULL);
    pthread_join(notifier, NULL);
    pthread_join(device, NULL);
    rig_drop(qp);
    __atomic_store_n(&over, false, __ATOMIC_RELEASE);
    for (ND2_RESULT result; cq_get_results(cq, &result, 1);)
        seen[result.RequestType == Nd2RequestTypeReceive][(uintptr_t)result.RequestContext - 1]++;
    for (unsigned i = 0; i < REQUESTS; i++) {
        ok_uint(seen[1][i], ==, 1);
        ok_uint(seen[0][i], <=, 1);
        if (i % 3 != 1)
            ok_uint(seen[0][i], ==, 1);
    }
    ok_uint(failures, >, 0);
    cq_unref(cq);
    rig_close(adapter);
}
