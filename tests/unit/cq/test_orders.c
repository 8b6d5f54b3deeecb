/* SPDX-License-Identifier: MIT */

/* Every order of requests of each kind, entries of each kind, polls and runs of the loop, up to a length; an entry may also
 * come in the middle of a request: just before the device is armed, just after, or between two polls of the call. What must
 * hold is said here from the interface's rules (ndspi.md 5.7) and not from the way the library keeps count. */

#include "rig.h"

static struct adapter *adapter;
static struct cq *cq;
static struct qp *qp;

SETUP
{
    rig_start();
    adapter = rig_open(RIG_IB);
}

TEARDOWN
{
    rig_close(adapter);
    rig_end();
}

enum step {
    REQUEST_ANY,
    REQUEST_SOLICITED,
    REQUEST_ERRORS,
    RECEIVED, /* a receive of a solicited send completes */
    SENT,     /* a send completes */
    POLL,     /* one result is taken */
    LOOP,
    CANCEL, /* of all requests */
    STEPS,
    /* Within the next request: */
    EARLY = STEPS, /* a receive completes just before the arm */
    LATE,          /* just after it */
    ALL_STEPS
};

#define MAX_STEPS 6

/* What happened, in numbers of steps. */
struct entry {
    bool alert;
    int came, taken; /* taken: INT_MAX while it is in the queue */
};

struct asked {
    struct notify notify;
    uint32_t type;
    int came, done; /* done: INT_MAX while it pends */
    bool canceled;
};

static struct entry entries[MAX_STEPS];
static struct asked asked[MAX_STEPS];
static unsigned n_entries, n_asked;
static int now;
static char trace[MAX_STEPS + 1];

#define NEVER 1000

static void came(bool alert)
{
    struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = alert ? IBV_WC_RECV : IBV_WC_SEND };

    entries[n_entries++] = (struct entry){ .alert = alert, .came = now, .taken = NEVER };
    fake_qp_complete_wc(qp_verbs(qp), alert ? FAKE_RECV : FAKE_SEND, &wc, alert);
}

static void come_inside(struct fake_call *call, void *arg)
{
    (void)call, (void)arg;
    came(true);
}

static void note_done(void)
{
    for (unsigned i = 0; i < n_asked; i++) {
        if (asked[i].done == NEVER && !rig_pending(&asked[i].notify)) {
            asked[i].canceled = (HRESULT)asked[i].notify.ov.Internal == ND_CANCELED;
            if (!asked[i].canceled)
                ok_status((HRESULT)asked[i].notify.ov.Internal, ND_SUCCESS);
            asked[i].done = now;
        }
    }
}

static void poll(void)
{
    ND2_RESULT result;

    if (!cq_get_results(cq, &result, 1))
        return;
    /* Sends and receives come in the order of the device. */
    for (unsigned i = 0; i < n_entries; i++) {
        if (entries[i].taken == NEVER) {
            ok_msg(entries[i].alert == (result.RequestType == Nd2RequestTypeReceive), "%s: order of results", trace);
            entries[i].taken = now;
            return;
        }
    }
    ok_msg(false, "%s: a result of nothing", trace);
}

static void play(enum step step)
{
    switch (step) {
    case REQUEST_ANY:
    case REQUEST_SOLICITED:
    case REQUEST_ERRORS:
        asked[n_asked].type = step == REQUEST_ANY         ? ND_CQ_NOTIFY_ANY
                              : step == REQUEST_SOLICITED ? ND_CQ_NOTIFY_SOLICITED
                                                          : ND_CQ_NOTIFY_ERRORS;
        asked[n_asked].came = now;
        asked[n_asked].done = NEVER;
        asked[n_asked].canceled = false;
        n_asked++;
        rig_notify(cq, asked[n_asked - 1].type, &asked[n_asked - 1].notify);
        break;
    case RECEIVED:
    case SENT:
        came(step == RECEIVED);
        break;
    case POLL:
        poll();
        break;
    case LOOP:
        rig_run();
        break;
    case CANCEL:
        cq_cancel_notifies(cq, ND_CANCELED);
        break;
    case EARLY:
        fake_on(FAKE_ibv_req_notify_cq, come_inside, NULL);
        break;
    case LATE:
        fake_after(FAKE_ibv_req_notify_cq, come_inside, NULL);
        break;
    default:
        break;
    }
    note_done();
}

/* Could this entry end that request in step `at`? One that was taken before the request was made does not. A send ends a
 * SOLICITED one only along with an ANY that it ends. */
static bool fits(const struct entry *entry, const struct asked *request, int at)
{
    if (request->type == ND_CQ_NOTIFY_ANY || (request->type == ND_CQ_NOTIFY_SOLICITED && entry->alert))
        return entry->taken >= request->came;
    for (unsigned i = 0; request->type == ND_CQ_NOTIFY_SOLICITED && i < n_asked; i++) {
        const struct asked *any = &asked[i];

        if (any->type == ND_CQ_NOTIFY_ANY && !any->canceled && any->came <= at && any->done >= at &&
            entry->taken >= any->came)
            return true;
    }
    return false;
}

/* No lost wake-up: after the last run of the loop nothing pends that an entry younger than it, or younger than the last event
 * before it, is there for. */
static void check_nothing_lost(void)
{
    for (unsigned i = 0; i < n_asked; i++) {
        int last_event = -1;

        if (asked[i].done != NEVER)
            continue;
        for (unsigned k = 0; k < n_asked; k++) {
            if (!asked[k].canceled && asked[k].done < asked[i].came && asked[k].done > last_event)
                last_event = asked[k].done;
        }
        for (unsigned k = 0; k < n_entries; k++)
            ok_msg(!fits(&entries[k], &asked[i], now) || entries[k].came <= last_event,
                   "%s: request %u was not told of entry %u", trace, i, k);
    }
}

/* An event completes all that pend; one of them must have been waiting for the entry. */
static bool fits_event(const struct entry *entry, int at)
{
    for (unsigned i = 0; i < n_asked; i++) {
        if (asked[i].done == at && !asked[i].canceled && fits(entry, &asked[i], at))
            return true;
    }
    return false;
}

/* The events from step `at` on can be given an entry each, none twice. */
static bool explained(int at, unsigned used)
{
    bool event = false;

    for (; at <= now; at++) {
        for (unsigned i = 0; i < n_asked; i++)
            event |= asked[i].done == at && !asked[i].canceled;
        if (event)
            break;
    }
    if (!event)
        return true;
    for (unsigned k = 0; k < n_entries; k++) {
        if (!(used & 1u << k) && entries[k].came <= at && fits_event(&entries[k], at) &&
            explained(at + 1, used | 1u << k))
            return true;
    }
    return false;
}

/* No second event: requests that are completed in one step are one event, and each needs an entry of its own. */
static void check_one_event_each(void)
{
    ok_msg(explained(0, 0), "%s: an event without an entry", trace);
}

/* All that pend complete together, but for ERRORS. */
static void check_together(void)
{
    for (unsigned i = 0; i < n_asked; i++) {
        if (asked[i].canceled)
            continue;
        if (asked[i].type == ND_CQ_NOTIFY_ERRORS)
            ok_msg(asked[i].done == NEVER, "%s: ERRORS completed", trace);
        for (unsigned k = 0; k < n_asked; k++) {
            if (asked[k].type != asked[i].type || asked[k].type == ND_CQ_NOTIFY_ERRORS || asked[k].came > asked[i].done)
                continue;
            ok_msg(asked[k].done <= asked[i].done, "%s: request %u stayed behind", trace, k);
        }
    }
}

static void play_order(unsigned code, unsigned length, unsigned kinds)
{
    static const char names[] = "ASERsplcxy";

    n_entries = n_asked = 0;
    cq = rig_cq(adapter, 16);
    qp = rig_qp(adapter, cq, cq, 8);
    rig_connect(qp);
    for (uintptr_t i = 0; i < MAX_STEPS; i++) {
        ok_status(rig_recv(qp, i), ND_SUCCESS);
        ok_status(rig_send(qp, i, 0), ND_SUCCESS);
    }
    for (unsigned i = 0; i < length; i++, code /= kinds)
        trace[i] = names[code % kinds];
    trace[length] = 0;
    for (now = 0; now < (int)length; now++) {
        const char *at = trace + now;

        for (unsigned kind = 0; kind < kinds; kind++) {
            if (names[kind] == *at)
                play((enum step)kind);
        }
    }
    ok_str(fake_violations(), "");
    fake_reset_script(); /* an entry that found no arm to come with */
    rig_run();
    note_done();
    check_nothing_lost();
    check_one_event_each();
    check_together();
    cq_cancel_notifies(cq, ND_CANCELED);
    rig_drop(qp);
    cq_unref(cq);
    rig_run();
}

static unsigned power(unsigned base, unsigned exponent)
{
    return exponent ? base * power(base, exponent - 1) : 1;
}

/* Only orders that have a request and an entry tell anything. */
static bool worth_it(unsigned code, unsigned length, unsigned kinds)
{
    bool request = false, entry = false;

    for (unsigned i = 0; i < length; i++, code /= kinds) {
        request |= code % kinds <= REQUEST_ERRORS;
        entry |= code % kinds == RECEIVED || code % kinds == SENT || code % kinds >= EARLY;
    }
    return request && entry;
}

static void play_all(unsigned length, unsigned kinds)
{
    unsigned played = 0;

    for (unsigned code = 0; code < power(kinds, length); code++) {
        if (!worth_it(code, length, kinds))
            continue;
        play_order(code, length, kinds);
        played++;
    }
    ok_uint(played, >, 1000);
}

TEST(orders__five_steps)
{
    play_all(5, STEPS);
}

TEST(orders__four_steps_with_entries_inside_a_request)
{
    play_all(4, ALL_STEPS);
}
