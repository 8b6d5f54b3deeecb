/* SPDX-License-Identifier: MIT */

/* Posters, pollers of two completion queues, a notifier, changes of depth and queue pairs that come and go, all at once:
 * mainly for the thread sanitizer. Every receive that was filled comes once, and each Notify ends. */

#include <pthread.h>

#include "srq_rig.h"

#define RECEIVES 6000
#define QPS      3

static struct adapter *adapter;
static struct cq *cq[2];
static struct srq *srq;
static struct qp *qps[QPS];
static pthread_mutex_t qp_locks[QPS] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                         PTHREAD_MUTEX_INITIALIZER };
static unsigned char seen[2 * RECEIVES];
static unsigned taken, wrong, notified, lowered, replaced;
static bool over;

static bool is_over(void)
{
    return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

/* Device and loop. */
static void *device_thread(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !is_over(); i++) {
        pthread_mutex_lock(&qp_locks[i % QPS]);
        fake_qp_complete(qp_verbs(qps[i % QPS]), FAKE_RECV, 1 + i % 5, IBV_WC_SUCCESS, 7);
        pthread_mutex_unlock(&qp_locks[i % QPS]);
        rig_run();
        harness_yield();
    }
    return NULL;
}

static void *post_thread(void *arg)
{
    uintptr_t from = (uintptr_t)arg * RECEIVES;

    for (uintptr_t i = from; i < from + RECEIVES;) {
        HRESULT hr = rig_share(srq, i);

        if (hr == ND_SUCCESS) {
            i++;
        } else {
            ok_status(hr, ND_NO_MORE_ENTRIES);
            harness_yield();
        }
    }
    return NULL;
}

static void *poll_thread(void *arg)
{
    uintptr_t which = (uintptr_t)arg;
    ND2_RESULT results[9];

    while (!is_over()) {
        uint32_t got = cq_get_results(cq[which], results, 9);

        for (uint32_t i = 0; i < got; i++) {
            __atomic_add_fetch(&seen[(uintptr_t)results[i].RequestContext], 1, __ATOMIC_RELAXED);
            if (results[i].Status != ND_SUCCESS || (uintptr_t)results[i].QueuePairContext % 2 != which)
                __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
        }
        __atomic_add_fetch(&taken, got, __ATOMIC_RELAXED);
        if (!got)
            harness_yield();
    }
    return NULL;
}

static void *notify_thread(void *arg)
{
    struct notify n;

    (void)arg;
    for (unsigned i = 0; !is_over(); i++) {
        rig_srq_notify(srq, &n);
        while ((NTSTATUS)__atomic_load_n(&n.ov.Internal, __ATOMIC_ACQUIRE) == ND_PENDING) {
            if (i % 5 == 0 || is_over())
                srq_cancel_notifies(srq, ND_CANCELED);
            harness_yield();
        }
        if ((NTSTATUS)n.ov.Internal == ND_SUCCESS)
            __atomic_add_fetch(&lowered, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&notified, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *change_thread(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; !is_over(); i++) {
        uint32_t depth = 20 + i % 17, threshold = 1 + i % 9, which = i % QPS;
        NTSTATUS status = srq_modify(srq, &depth, i % 2 ? &threshold : NULL);

        if (status != ND_BUFFER_OVERFLOW)
            ok_status(status, ND_SUCCESS);
        if (i % 8 == 0) {
            struct qp *made = rig_shared_qp(adapter, srq, cq[which % 2], which), *old;

            pthread_mutex_lock(&qp_locks[which]);
            old = qps[which];
            qps[which] = made;
            pthread_mutex_unlock(&qp_locks[which]);
            rig_drop(old);
            __atomic_add_fetch(&replaced, 1, __ATOMIC_RELAXED);
        }
        harness_yield();
    }
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

TEST(srq_threads__everything_at_once)
{
    pthread_t device, posters[2], pollers[3], notifier, changer;

    adapter = rig_open(RIG_IB);
    cq[0] = rig_cq(adapter, 64);
    cq[1] = rig_cq(adapter, 64);
    srq = rig_srq(adapter, 20, 5);
    for (uintptr_t i = 0; i < QPS; i++)
        qps[i] = rig_shared_qp(adapter, srq, cq[i % 2], i);
    pthread_create(&device, NULL, device_thread, NULL);
    pthread_create(&notifier, NULL, notify_thread, NULL);
    pthread_create(&changer, NULL, change_thread, NULL);
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&posters[i], NULL, post_thread, (void *)i);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&pollers[i], NULL, poll_thread, (void *)(i % 2));
    for (int i = 0; i < 2; i++)
        pthread_join(posters[i], NULL);
    ok_eventually(__atomic_load_n(&taken, __ATOMIC_RELAXED) >= 2 * RECEIVES);
    /* They may start late; the queue is empty now, so that a Notify completes. */
    ok_eventually(__atomic_load_n(&lowered, __ATOMIC_RELAXED) && __atomic_load_n(&replaced, __ATOMIC_RELAXED));
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++)
        pthread_join(pollers[i], NULL);
    pthread_join(notifier, NULL);
    pthread_join(changer, NULL);
    pthread_join(device, NULL);
    ok_uint(taken, ==, 2 * RECEIVES);
    ok_uint(wrong, ==, 0);
    ok_uint(notified, >, 0);
    ok_uint(lowered, >, 0);
    ok_uint(replaced, >, 0);
    for (unsigned i = 0; i < 2 * RECEIVES; i++)
        ok_uint(seen[i], ==, 1);
    for (int i = 0; i < QPS; i++)
        rig_drop(qps[i]);
    ok_no_result(cq[0]);
    ok_no_result(cq[1]);
    srq_unref(srq);
    cq_unref(cq[0]);
    cq_unref(cq[1]);
    rig_close(adapter);
}
