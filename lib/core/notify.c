/* SPDX-License-Identifier: MIT */
#include "cq_priv.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "spin.h"
#include "status.h"
#include "tunable.h"

/* Notify: poll, arm, poll, decide (ndspi.md 5.7, rdma-mapping.md 5). Every entry completes at most one round of Notify
 * requests; an entry that nobody was told of completes the next one at once. The device's event is only a hint that
 * something came: what came is looked at, because it may be a silent request, or already taken by a polling thread.
 *
 * The notify lock covers the list and the armed state, and is held while requests are completed: whoever gets it next
 * (cancel, release) knows that nothing is under way. It is one of a few static locks, so that a cancel, which holds a
 * reference on the request but none on the CQ, can take it before it knows that the CQ still exists: a request that is
 * linked proves it. */

enum cq_arm {
    ARM_NONE,
    ARM_SOLICITED,
    ARM_ANY,
};

/* request->tag: the type, and how many results had been taken from the device when the request came. */
#define TAG_TYPE(tag)   ((tag)&3)
#define TAG_MARK(taken) ((taken) << 2)

/* A type of our own: the mark is the number of results that are waited for. */
#define NOTIFY_BATCH   3
#define TAG_COUNT(tag) ((tag) >> 2)

static struct notify_lock {
    _Alignas(CACHE_LINE) struct wordlock word;
} notify_locks[16];

static struct wordlock *notify_lock(const void *cq)
{
    uintptr_t address = (uintptr_t)cq;

    return &notify_locks[(address >> 7 ^ address >> 11) & 15].word;
}

static struct request *request_of(struct list *node)
{
    return list_entry(node, struct request, link);
}

static void complete_locked(struct cq *cq, struct request *request, NTSTATUS status)
{
    list_del(&request->link);
    cq->armed_for = NULL;
    if (TAG_TYPE(request->tag) != ND_CQ_NOTIFY_ERRORS)
        __atomic_sub_fetch(&cq->waiting, 1, __ATOMIC_RELEASE);
    request_complete(request, status, 0);
}

static void notify_cancel(struct request *request)
{
    struct cq *cq = request->owner;
    struct wordlock *lock = notify_lock(cq);

    wordlock_lock(lock);
    if (list_linked(&request->link))
        complete_locked(cq, request, ND_CANCELED);
    wordlock_unlock(lock);
}

void cq_cancel_notifies(struct cq *cq, NTSTATUS status)
{
    struct wordlock *lock = notify_lock(cq);

    wordlock_lock(lock);
    while (!list_empty(&cq->notifies))
        complete_locked(cq, request_of(cq->notifies.next), status);
    wordlock_unlock(lock);
}

void cq_die(struct cq *cq, NTSTATUS status)
{
    struct wordlock *lock = notify_lock(cq);

    wordlock_lock(lock);
    if (!cq->dead)
        __atomic_store_n(&cq->dead, status, __ATOMIC_RELEASE);
    while (!list_empty(&cq->notifies))
        complete_locked(cq, request_of(cq->notifies.next), cq->dead);
    wordlock_unlock(lock);
}

/* What the pending requests need of the device. */
static enum cq_arm strength_locked(const struct cq *cq)
{
    enum cq_arm need = ARM_NONE;

    list_for_each (node, &cq->notifies) {
        uint32_t type = TAG_TYPE(request_of(node)->tag);

        if (type == ND_CQ_NOTIFY_ANY || type == NOTIFY_BATCH)
            return ARM_ANY;
        if (type == ND_CQ_NOTIFY_SOLICITED)
            need = ARM_SOLICITED;
    }
    return need == ARM_SOLICITED && !cq->adapter->device->solicited_arms ? ARM_ANY : need;
}

/* What pending requests wait for. */
struct wanted {
    bool any, solicited;
    uint32_t batch; /* the least of the numbers, 0: none */
};

static struct wanted find_wanted(struct cq *cq)
{
    struct wordlock *lock = notify_lock(cq);
    struct wanted wanted = { false, false, 0 };

    wordlock_lock(lock);
    list_for_each (node, &cq->notifies) {
        uint32_t tag = request_of(node)->tag;

        wanted.any |= TAG_TYPE(tag) == ND_CQ_NOTIFY_ANY;
        wanted.solicited |= TAG_TYPE(tag) == ND_CQ_NOTIFY_SOLICITED;
        if (TAG_TYPE(tag) == NOTIFY_BATCH && (!wanted.batch || TAG_COUNT(tag) < wanted.batch))
            wanted.batch = TAG_COUNT(tag);
    }
    wordlock_unlock(lock);
    return wanted;
}

/* Polls into the stash until it holds `count` results or the device is empty. */
static void look_for(struct cq *cq, uint32_t count)
{
    uint32_t have, want, polled, reports;

    do {
        cq_lock(cq);
        have = cq_count_locked(cq);
        want = have < count ? count - have : 0;
        want = want < CQ_BATCH ? want : CQ_BATCH;
        polled = want ? cq_pull_locked(cq, want) : 0;
        reports = cq->slow & CQ_REPORTS;
        cq_unlock(cq);
    } while (want && polled == want);
    if (unlikely(reports))
        cq_report(cq);
}

/* Polls into the stash until it holds news or the device is empty. With a full stash one result at a time goes into the
 * room kept for drains, to learn whether there is one. True: no room even for that, so something must be there. */
static bool look(struct cq *cq, bool any)
{
    bool full = false, news;
    uint32_t count, room, want, polled, reports;

    do {
        polled = want = 0;
        cq_lock(cq);
        news = cq_news_locked(cq, any);
        if (!news) {
            count = cq_count_locked(cq);
            room = cq_stash_room_locked(cq);
            want = count < cq->depth ? cq->depth - count : 1;
            want = want < CQ_BATCH ? want : CQ_BATCH;
            want = want < room ? want : room;
            full = !want;
            polled = want ? cq_pull_locked(cq, want) : 0;
            news = cq_news_locked(cq, any);
        }
        reports = cq->slow & CQ_REPORTS;
        cq_unlock(cq);
    } while (!news && want && polled == want);
    if (unlikely(reports))
        cq_report(cq);
    return full;
}

/* Completes what may complete: all requests together, ANY draws SOLICITED along. `event`: results that were taken since a
 * request came count for it too. True if any completed. */
static bool decide(struct cq *cq, bool event, bool full)
{
    struct wordlock *lock = notify_lock(cq);
    bool has_any = false, has_alert = false, any = false, alert = false, batch = false;
    uint32_t count;

    wordlock_lock(lock);
    cq_lock(cq);
    count = cq_count_locked(cq);
    list_for_each (node, &cq->notifies) {
        uint32_t tag = request_of(node)->tag;

        if (TAG_TYPE(tag) == ND_CQ_NOTIFY_ANY) {
            has_any = true;
            any |= full || (event && tag - TAG_MARK(cq->taken) != ND_CQ_NOTIFY_ANY);
        } else if (TAG_TYPE(tag) == ND_CQ_NOTIFY_SOLICITED) {
            has_alert = true;
            alert |= full || (event && tag - TAG_MARK(cq->taken_alerts) != ND_CQ_NOTIFY_SOLICITED);
        }
    }
    if (has_any && cq_news_locked(cq, true)) {
        cq_tell_locked(cq, true);
        any = true;
    } else if (has_alert && !has_any && cq_news_locked(cq, false)) {
        cq_tell_locked(cq, false);
        alert = true;
    }
    cq_unlock(cq);
    list_for_each_safe (node, &cq->notifies) {
        uint32_t tag = request_of(node)->tag, type = TAG_TYPE(tag);
        bool enough = type == NOTIFY_BATCH && TAG_COUNT(tag) <= count;

        if (enough || (type == ND_CQ_NOTIFY_ANY && any) || (type == ND_CQ_NOTIFY_SOLICITED && (any || alert)))
            complete_locked(cq, request_of(node), ND_SUCCESS);
        batch |= enough;
    }
    wordlock_unlock(lock);
    return any || alert || batch;
}

/* The device is about to be armed with `need`; if it is armed already, less than that, two events may come. */
static bool claim_locked(struct cq *cq, enum cq_arm need)
{
    if (cq->armed >= need)
        return false;
    if (cq->armed != ARM_NONE)
        cq->rearmed = true;
    cq->armed = need;
    cq->armed_for = NULL;
    return true;
}

/* True: the caller is to arm the device with *need; who sees it armed leaves it to the thread that is at it, whose poll
 * after the arm serves all requests. */
static bool claim_arm(struct cq *cq, enum cq_arm *need)
{
    struct wordlock *lock = notify_lock(cq);
    bool claimed;

    wordlock_lock(lock);
    *need = strength_locked(cq);
    claimed = claim_locked(cq, *need);
    wordlock_unlock(lock);
    return claimed;
}

static void arm_failed(struct cq *cq, int error)
{
    struct wordlock *lock = notify_lock(cq);

    status_warn(error, ND_INTERNAL_ERROR, "ibv_req_notify_cq");
    wordlock_lock(lock);
    cq->armed = ARM_NONE;
    cq->armed_for = NULL;
    list_for_each_safe (node, &cq->notifies) {
        if (TAG_TYPE(request_of(node)->tag) != ND_CQ_NOTIFY_ERRORS)
            complete_locked(cq, request_of(node), ND_INTERNAL_ERROR);
    }
    wordlock_unlock(lock);
}

/* False: a failure, which the requests were told. */
static bool arm(struct cq *cq, enum cq_arm need)
{
    int error = post_errno(ibv_req_notify_cq(cq->verbs, need == ARM_SOLICITED));

    if (unlikely(error))
        arm_failed(cq, error);
    return !error;
}

enum outcome {
    RUN_DONE,    /* completed, or left to the thread that arms */
    RUN_ARM,     /* the caller is to arm the device, and look again */
    RUN_GENERAL, /* more than one look at one request: nothing is decided yet */
};

/* The usual case, one request for anything or for solicited results and a device that has little or nothing: find_wanted,
 * look, decide and claim_arm under one hold of each lock. */
static enum outcome run_one(struct cq *cq, bool event, enum cq_arm *need)
{
    struct wordlock *lock = notify_lock(cq);
    enum outcome outcome = RUN_GENERAL;
    struct request *request;
    uint32_t type, count, room, want, taken, consumed;
    bool any, news;

    wordlock_lock(lock);
    if (list_empty(&cq->notifies)) {
        outcome = RUN_DONE;
        goto unlock;
    }
    request = request_of(cq->notifies.next);
    type = TAG_TYPE(request->tag);
    any = type == ND_CQ_NOTIFY_ANY;
    if (request->link.next != &cq->notifies || (!any && type != ND_CQ_NOTIFY_SOLICITED))
        goto unlock;
    cq_lock(cq);
    news = cq_news_locked(cq, any);
    if (!news) {
        count = cq_count_locked(cq);
        room = cq_stash_room_locked(cq);
        want = count < cq->depth ? cq->depth - count : 0;
        want = want < CQ_BATCH ? want : CQ_BATCH;
        want = want < room ? want : room;
        if (!want || cq_pull_locked(cq, want) == want || (cq->slow & CQ_REPORTS)) {
            cq_unlock(cq);
            goto unlock;
        }
        news = cq_news_locked(cq, any);
    }
    taken = any ? cq->taken : cq->taken_alerts;
    consumed = cq->consumed;
    if (news)
        cq_tell_locked(cq, any);
    cq_unlock(cq);
    outcome = RUN_DONE;
    if (news || (event && request->tag - TAG_MARK(taken) != type)) {
        complete_locked(cq, request, ND_SUCCESS);
    } else {
        *need = any ? ARM_ANY : strength_locked(cq);
        if (claim_locked(cq, *need)) {
            outcome = RUN_ARM;
            cq->armed_for = any ? request : NULL;
            cq->armed_at = consumed;
        }
    }
unlock:
    wordlock_unlock(lock);
    return outcome;
}

static void run_general(struct cq *cq, bool event)
{
    for (;;) {
        struct wanted wanted = find_wanted(cq);
        enum cq_arm need;
        bool full = false;

        if (wanted.batch)
            look_for(cq, wanted.batch);
        else if (!wanted.any && !wanted.solicited)
            return;
        if (wanted.any || wanted.solicited)
            full = look(cq, wanted.any);
        if (decide(cq, event, full)) {
            if (!wanted.batch)
                return;
            continue; /* completing one kind leaves the other waiting */
        }
        if (!claim_arm(cq, &need) || !arm(cq, need))
            return;
    }
}

static void run(struct cq *cq, bool event)
{
    enum outcome outcome;
    enum cq_arm need;

    while ((outcome = run_one(cq, event, &need)) == RUN_ARM) {
        if (!arm(cq, need))
            return;
    }
    if (outcome == RUN_GENERAL)
        run_general(cq, event);
}

static void look_again(struct cq *cq, bool event)
{
    if (__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE))
        run(cq, event);
}

/* As an event of the device: a polling thread may have taken the results before they were announced. */
void cq_kick(struct cq *cq)
{
    look_again(cq, true);
}

/* The device's event says that a completion came after the arm. If nobody has taken one since, it is still there, and if it
 * can only be a result, the one request that the arm was for completes without a look: GetResults, which comes next, takes
 * it straight from the device. Whoever polls first finds by CQ_OWED that it has been told of. */
static bool complete_by_event_locked(struct cq *cq)
{
    struct request *request = cq->armed_for;
    bool sure;

    if (!request || cq->rearmed || cq->notifies.next != &request->link || request->link.next != &cq->notifies)
        return false;
    cq_lock(cq);
    sure = cq->slow == CQ_WAITING && cq->consumed == cq->armed_at && !__atomic_load_n(&cq->unsure, __ATOMIC_SEQ_CST);
    if (sure)
        cq->slow |= CQ_OWED;
    cq_unlock(cq);
    if (sure)
        complete_locked(cq, request, ND_SUCCESS);
    return sure;
}

void cq_event(struct cq *cq)
{
    struct wordlock *lock = notify_lock(cq);
    bool completed;

    cq->events++;
    wordlock_lock(lock);
    cq->armed = ARM_NONE;
    completed = complete_by_event_locked(cq);
    cq->armed_for = NULL;
    wordlock_unlock(lock);
    if (!completed)
        run(cq, true);
}

/* ---- the safety poll: an event that the kernel lost for want of memory (tunable, off by default) ---- */

static void safety_fire(struct engine_timer *timer)
{
    struct cq *cq = (struct cq *)((char *)timer - offsetof(struct cq, safety_timer));

    if (__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE)) {
        run(cq, false);
        engine_timer_start(timer, tunables()->cq_safety_poll_ms, safety_fire);
    } else {
        cq->safety_on = false;
        cq_unref(cq);
    }
}

static void safety_start(struct engine_call *call)
{
    struct cq *cq = (struct cq *)((char *)call - offsetof(struct cq, safety_call));

    if (!cq->safety_on) {
        cq->safety_on = true;
        cq_ref(cq);
        engine_timer_start(&cq->safety_timer, tunables()->cq_safety_poll_ms, safety_fire);
    }
    cq_unref(cq);
}

static void safety(struct cq *cq)
{
    if (likely(!tunables()->cq_safety_poll_ms) || !__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE))
        return;
    cq_ref(cq);
    if (!engine_post(&cq->safety_call, safety_start))
        cq_unref(cq);
}

/* ---- spinning: a thread that drives looks at the queues with a Notify before it sleeps (tunable, off by default) ---- */

#define SPIN_BATCH 4

static struct wordlock spin_lock; /* a leaf lock, for the list */
static struct list spun = { &spun, &spun };

/* A few at a time, each in its turn. A queue that nobody waits for any more leaves the list. */
static void look_at_spun(void)
{
    struct cq *batch[SPIN_BATCH];
    unsigned int n = 0;

    wordlock_lock(&spin_lock);
    list_for_each_safe (node, &spun) {
        struct cq *cq = list_entry(node, struct cq, spin_link);

        if (n == SPIN_BATCH)
            break;
        list_del(node);
        if (!__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE) || !cq_ref_live(cq))
            continue;
        batch[n++] = cq;
    }
    for (unsigned int i = 0; i < n; i++)
        list_add_tail(&spun, &batch[i]->spin_link);
    wordlock_unlock(&spin_lock);
    for (unsigned int i = 0; i < n; i++) {
        look_again(batch[i], false);
        cq_unref(batch[i]);
    }
}

static void spin_remember(struct cq *cq)
{
    wordlock_lock(&spin_lock);
    if (!list_linked(&cq->spin_link))
        list_add_head(&spun, &cq->spin_link);
    wordlock_unlock(&spin_lock);
    spin_register(look_at_spun);
}

void cq_spin_forget(struct cq *cq)
{
    wordlock_lock(&spin_lock);
    list_del(&cq->spin_link);
    wordlock_unlock(&spin_lock);
}

/* ---- Notify ---- */

/* Starts the request and puts it into the list at once, so that a cancel which finds it started finds it there; with the mark of
 * what had been taken before. False: the CQ died meanwhile. */
static bool enlist(struct cq *cq, struct request *request, uint32_t type, uint32_t count)
{
    struct wordlock *lock = notify_lock(cq);
    bool alive;

    request->tag = type;
    if (type != ND_CQ_NOTIFY_ERRORS)
        __atomic_add_fetch(&cq->waiting, 1, __ATOMIC_RELEASE);
    wordlock_lock(lock);
    if (type != ND_CQ_NOTIFY_ERRORS) {
        cq_lock(cq);
        cq->slow |= CQ_WAITING;
        if (type == NOTIFY_BATCH)
            request->tag += TAG_MARK(count);
        else
            request->tag += TAG_MARK(type == ND_CQ_NOTIFY_ANY ? cq->taken : cq->taken_alerts);
        cq_unlock(cq);
    }
    request_start(request);
    alive = !cq->dead;
    if (alive)
        list_add_tail(&cq->notifies, &request->link);
    wordlock_unlock(lock);
    if (!alive && type != ND_CQ_NOTIFY_ERRORS)
        __atomic_sub_fetch(&cq->waiting, 1, __ATOMIC_RELEASE);
    return alive;
}

static NTSTATUS notify(struct cq *cq, uint32_t type, uint32_t count, struct file *file, OVERLAPPED *ov)
{
    struct request *request;
    NTSTATUS status;

    if (!ov)
        return ND_INVALID_PARAMETER;
    status = __atomic_load_n(&cq->dead, __ATOMIC_ACQUIRE);
    if (status)
        return status;
    if (!cq->verbs->channel)
        return ND_NOT_SUPPORTED;
    status = request_alloc(file, ov, notify_cancel, cq, &request);
    if (status != ND_SUCCESS)
        return status;
    /* Whoever is told by the completion may release the CQ at once. */
    cq_ref(cq);
    if (!enlist(cq, request, type, count)) {
        request_complete(request, __atomic_load_n(&cq->dead, __ATOMIC_ACQUIRE), 0);
    } else if (type != ND_CQ_NOTIFY_ERRORS) {
        run(cq, false);
        if (__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE)) {
            safety(cq);
            if (unlikely(tunables()->spin_us))
                spin_remember(cq);
        }
    }
    cq_unref(cq);
    return ND_PENDING;
}

NTSTATUS cq_notify(struct cq *cq, uint32_t type, struct file *file, OVERLAPPED *ov)
{
    if (type > ND_CQ_NOTIFY_SOLICITED)
        return ND_INVALID_PARAMETER_1;
    return notify(cq, type, 0, file, ov);
}

NTSTATUS cq_notify_batch(struct cq *cq, uint32_t count, struct file *file, OVERLAPPED *ov)
{
    if (!count || count > cq_depth(cq))
        return ND_INVALID_PARAMETER;
    return notify(cq, NOTIFY_BATCH, count, file, ov);
}
