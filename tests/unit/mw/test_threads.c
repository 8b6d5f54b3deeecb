/* SPDX-License-Identifier: MIT */

/* Binds, invalidates, deregistrations, messages of the peer, polls, the device and the worker at the same time, on the same
 * windows; mainly for the thread sanitizer. The connection lives, and each request comes back. */

#include <pthread.h>

#include "pair.h"

#define WINDOWS 3
#define ROUNDS  1500

static struct mw *windows[WINDOWS];
static unsigned posted, taken;
static bool over;

static void *device_thread(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        pair_run();
        rig_run();
        harness_yield();
    }
    return NULL;
}

static void *peer_thread(void *arg)
{
    ND2_RESULT results[16];

    (void)arg;
    for (unsigned i = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
        if (rig_recv(pair.qp, 1) == ND_SUCCESS) {
            __atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
            while (qp_send_invalidate(pair.peer, rig_ctx(1), NULL, 0, mw_token(windows[i % WINDOWS]),
                                      ND_OP_FLAG_SILENT_SUCCESS) == ND_NO_MORE_ENTRIES &&
                   !__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                harness_yield();
        }
        cq_get_results(pair.peer_cq, results, 16);
        harness_yield();
    }
    return NULL;
}

static void *poll_thread(void *arg)
{
    ND2_RESULT results[16];

    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        uint32_t got = cq_get_results(pair.cq, results, 16);

        for (uint32_t i = 0; i < got; i++) {
            if (results[i].RequestContext == PAIR_REVOKED)
                continue;
            __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
            ok(results[i].Status == ND_SUCCESS || results[i].Status == ND_INVALID_DEVICE_REQUEST);
        }
        if (!got)
            harness_yield();
    }
    return NULL;
}

static void *user_thread(void *arg)
{
    struct mr *mr = pair_region(pair_bytes, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    unsigned which = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct mw *mw = windows[(i / 2 + which) % WINDOWS];
        HRESULT hr;

        if (i % 2 == which)
            hr = mw_bind(pair.qp, rig_ctx(1), mr, mw, pair_bytes, 64, ND_OP_FLAG_ALLOW_WRITE, NULL);
        else
            hr = mw_invalidate(pair.qp, rig_ctx(1), mw, 0);
        if (hr == ND_SUCCESS)
            __atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
        else if (hr == ND_NO_MORE_ENTRIES)
            harness_yield();
        else
            ok_status(hr, ND_INVALID_DEVICE_REQUEST);
        if (i % 7 == 0 && mr_deregister(mr) == ND_SUCCESS)
            mr = pair_region(pair_bytes, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    }
    return mr;
}

static void play(enum device_kind kind)
{
    pthread_t device, peer, poll, users[2];
    void *mr[2];

    pair_make(kind);
    posted = taken = 0;
    over = false;
    for (unsigned i = 0; i < WINDOWS; i++)
        windows[i] = pair_window();
    ok_int(pthread_create(&device, NULL, device_thread, NULL), ==, 0);
    ok_int(pthread_create(&peer, NULL, peer_thread, NULL), ==, 0);
    ok_int(pthread_create(&poll, NULL, poll_thread, NULL), ==, 0);
    for (unsigned i = 0; i < 2; i++)
        ok_int(pthread_create(&users[i], NULL, user_thread, (void *)(uintptr_t)i), ==, 0);
    for (unsigned i = 0; i < 2; i++)
        ok_int(pthread_join(users[i], &mr[i]), ==, 0);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    ok_int(pthread_join(peer, NULL), ==, 0);
    ok_int(pthread_join(device, NULL), ==, 0);
    ok_int(pthread_join(poll, NULL), ==, 0);
    ok_int(fake_qp_state(qp_verbs(pair.qp)), ==, IBV_QPS_RTS);
    over = false;
    ok_status(qp_flush(pair.qp), ND_SUCCESS);
    rig_run();
    while (taken < posted) {
        ND2_RESULT result;

        ok_uint(cq_get_results(pair.cq, &result, 1), ==, 1);
        taken += result.RequestContext != PAIR_REVOKED;
    }
    /* The peer's last messages may have revoked windows behind the last request. */
    for (ND2_RESULT result; cq_get_results(pair.cq, &result, 1);)
        ok_ptr(result.RequestContext, ==, PAIR_REVOKED);
    for (unsigned i = 0; i < WINDOWS; i++)
        mw_release(windows[i]);
    for (unsigned i = 0; i < 2; i++)
        ok_status(mr_deregister(mr[i]), ND_SUCCESS);
    pair_unmake();
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

TEST(threads__windows)
{
    play(KIND_RXE);
}

TEST(threads__emulated_windows)
{
    play(KIND_EMULATED);
}
