/* SPDX-License-Identifier: MIT */

/* Random calls on a few windows, regions and queue pairs, carried out by the device now and then, with connections that
 * break and messages that invalidate. Whatever the order: the fakes see nothing that would panic or stall a kernel, a live
 * connection never breaks, each request comes back once. */

#include "pair.h"

#define WINDOWS 3
#define REGIONS 2
#define LINKS   2
#define STEPS   400

static struct {
    struct qp *near, *far;
    unsigned posted, back; /* requests of `near` */
    bool broken;
} links[LINKS];
static struct mw *windows[WINDOWS];
static struct mr *regions[REGIONS];
static uint64_t state;

static uint32_t roll(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    rig_end();
}

static void make_link(unsigned i)
{
    links[i].near = rig_qp(pair.adapter, pair.cq, pair.cq, 8);
    links[i].far = rig_qp(pair.adapter, pair.peer_cq, pair.peer_cq, 8);
    pair_connect(links[i].near, links[i].far);
    pair_connect(links[i].far, links[i].near);
    links[i].broken = false;
}

/* Contexts: link + 1; a window's own result has PAIR_REVOKED. */
static void take(void)
{
    ND2_RESULT results[4];
    uint32_t n = cq_get_results(pair.cq, results, 1 + roll(4));

    for (uint32_t i = 0; i < n; i++) {
        uintptr_t link = (uintptr_t)results[i].RequestContext - 1;

        if (results[i].RequestContext == PAIR_REVOKED)
            continue;
        ok_uint(link, <, LINKS);
        links[link].back++;
        ok(links[link].back <= links[link].posted);
        if (!links[link].broken && results[i].Status != ND_SUCCESS) {
            ok_status(results[i].Status, ND_INVALID_DEVICE_REQUEST);
            ok_int(results[i].RequestType, ==, Nd2RequestTypeInvalidate);
        }
    }
}

static void count(unsigned link, HRESULT status)
{
    if (status == ND_SUCCESS)
        links[link].posted++;
    else
        ok_msg(status == ND_NO_MORE_ENTRIES || status == ND_INVALID_DEVICE_REQUEST, "status 0x%x", (unsigned)status);
}

static void step(void)
{
    unsigned link = roll(LINKS), window = roll(WINDOWS), region = roll(REGIONS);
    struct qp *near = links[link].near;

    switch (roll(14)) {
    case 0:
    case 1:
    case 2:
        count(link, mw_bind(near, rig_ctx(link + 1), regions[region], windows[window], pair_bytes + 8 * window, 8,
                            ND_OP_FLAG_ALLOW_READ, NULL));
        break;
    case 3:
    case 4:
    case 5:
        count(link, mw_invalidate(near, rig_ctx(link + 1), windows[window], 0));
        break;
    case 6:
        qp_send_invalidate(links[link].far, NULL, NULL, 0, mw_token(windows[window]), ND_OP_FLAG_SILENT_SUCCESS);
        break;
    case 7:
        if (rig_recv(near, link + 1) == ND_SUCCESS)
            links[link].posted++;
        break;
    case 8:
        pair_run();
        break;
    case 9:
        take();
        break;
    case 10:
        rig_run();
        break;
    case 11:
        mw_release(windows[window]);
        windows[window] = pair_window();
        break;
    case 12:
        if (mr_deregister(regions[region]) == ND_SUCCESS)
            regions[region] = pair_region(pair_bytes, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
        /* The device said no once, if a window went on from here and its connection broke before the invalidate was carried
         * out: then we free the window. */
        fake_violations_clear();
        break;
    default:
        if (roll(4))
            break;
        links[link].broken = true;
        if (roll(2))
            ok_status(qp_flush(near), ND_SUCCESS);
        else
            fake_qp_fail(qp_verbs(near));
        if (roll(2))
            rig_run();
        while (links[link].back < links[link].posted) {
            rig_advance(5);
            take();
        }
        rig_drop(near);
        rig_drop(links[link].far);
        pair_discard(pair.peer_cq);
        make_link(link);
    }
    for (unsigned i = 0; i < LINKS; i++)
        ok(links[i].broken || fake_qp_state(qp_verbs(links[i].near)) == IBV_QPS_RTS);
}

static void play(enum device_kind kind, uint64_t seed)
{
    state = seed;
    pair_make(kind);
    for (unsigned i = 0; i < LINKS; i++) {
        links[i].posted = links[i].back = 0;
        make_link(i);
    }
    for (unsigned i = 0; i < WINDOWS; i++)
        windows[i] = pair_window();
    for (unsigned i = 0; i < REGIONS; i++)
        regions[i] = pair_region(pair_bytes, 64, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    for (unsigned i = 0; i < STEPS; i++) {
        step();
        ok_msg(!*fake_violations(), "kind %d, seed %llu, step %u: %s", kind, (unsigned long long)seed, i,
               fake_violations());
    }
    for (unsigned i = 0; i < WINDOWS; i++)
        mw_release(windows[i]);
    for (unsigned i = 0; i < LINKS; i++) {
        rig_drop(links[i].near);
        rig_drop(links[i].far);
    }
    for (unsigned i = 0; i < REGIONS; i++)
        ok_status(mr_deregister(regions[i]), ND_SUCCESS);
    pair_unmake();
}

TEST(model__random_orders)
{
    for (unsigned kind = KIND_RXE; kind <= KIND_EMULATED; kind++) {
        for (uint64_t seed = 1; seed <= 60; seed++) {
            play((enum device_kind)kind, seed);
        }
    }
}
