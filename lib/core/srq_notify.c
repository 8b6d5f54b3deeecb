/* SPDX-License-Identifier: MIT */
#include "srq_priv.h"

#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "status.h"

/* Notify of an SRQ: fewer receives are posted than the threshold. Two see that: the device, when a receive is taken with its
 * limit armed (rxe and siw not when fewer were there already), and the poller, when a taken one completes. The device's
 * event comes without anybody polling; the poller's count is the one that the application can check. Whoever is first
 * completes all pending requests and resets `low`; the other finds nothing to do.
 *
 * The notify lock covers the list and `low` and is held while requests are completed; it is one of a few static locks for
 * the reason given in notify.c. */

const struct srq_policy srq_policy_nd = { .arms_on_notify = true, .limit = ND_SUCCESS, .error = ND_INTERNAL_ERROR };

#define L PTHREAD_MUTEX_INITIALIZER
static pthread_mutex_t notify_locks[4] = { L, L, L, L };
#undef L

static pthread_mutex_t *notify_lock(const void *srq)
{
    uintptr_t address = (uintptr_t)srq;

    return &notify_locks[(address >> 7 ^ address >> 9) & 3];
}

static struct request *request_of(struct list *node)
{
    return list_entry(node, struct request, link);
}

static void complete_all_locked(struct srq *srq, NTSTATUS status)
{
    struct list *node;

    while ((node = list_pop(&srq->notifies)) != NULL)
        request_complete(request_of(node), status, 0);
}

static void notify_cancel(struct request *request)
{
    struct srq *srq = request->owner;
    pthread_mutex_t *lock = notify_lock(srq);

    pthread_mutex_lock(lock);
    if (list_linked(&request->link)) {
        list_del(&request->link);
        request_complete(request, ND_CANCELED, 0);
    }
    pthread_mutex_unlock(lock);
}

void srq_cancel_notifies(struct srq *srq, NTSTATUS status)
{
    pthread_mutex_t *lock = notify_lock(srq);

    pthread_mutex_lock(lock);
    if (srq->policy->arms_on_notify)
        __atomic_store_n(&srq->low, 0, __ATOMIC_SEQ_CST);
    complete_all_locked(srq, status);
    pthread_mutex_unlock(lock);
}

void srq_die(struct srq *srq, NTSTATUS status)
{
    pthread_mutex_t *lock = notify_lock(srq);

    pthread_mutex_lock(lock);
    if (!srq->dead)
        __atomic_store_n(&srq->dead, status, __ATOMIC_RELEASE);
    __atomic_store_n(&srq->low, 0, __ATOMIC_SEQ_CST);
    complete_all_locked(srq, srq->dead);
    pthread_mutex_unlock(lock);
}

#define SLACK_ANY UINT32_MAX

/* Completes what waits if fewer than `low` and `slack` are outstanding. */
static void fire(struct srq *srq, uint32_t slack)
{
    pthread_mutex_t *lock = notify_lock(srq);

    pthread_mutex_lock(lock);
    if (srq->low && __atomic_load_n(&srq->outstanding, __ATOMIC_SEQ_CST) < (uint64_t)srq->low + slack) {
        __atomic_store_n(&srq->low, 0, __ATOMIC_SEQ_CST);
        complete_all_locked(srq, srq->policy->limit);
    }
    pthread_mutex_unlock(lock);
}

void srq_fire_if_low(struct srq *srq)
{
    fire(srq, 0);
}

/* Arms the device, then looks: what was taken before the arm shows in the count. */
static void arm(struct srq *srq)
{
    struct ibv_srq_attr attr = { 0 };
    int error = 0;

    pthread_mutex_lock(&srq->control);
    attr.srq_limit = __atomic_load_n(&srq->low, __ATOMIC_SEQ_CST);
    if (attr.srq_limit > srq->capacity)
        attr.srq_limit = srq->capacity;
    if (attr.srq_limit)
        error = post_errno(ibv_modify_srq(srq->verbs, &attr, IBV_SRQ_LIMIT));
    pthread_mutex_unlock(&srq->control);
    if (error)
        log_warn("ibv_modify_srq with a limit of %u: %s; only results that are taken are counted", attr.srq_limit,
                 strerror(error));
    fire(srq, srq_collect(srq) ? 0 : SLACK_ANY);
}

void srq_threshold_changed(struct srq *srq)
{
    uint32_t threshold = __atomic_load_n(&srq->threshold, __ATOMIC_RELAXED);
    pthread_mutex_t *lock = notify_lock(srq);

    pthread_mutex_lock(lock);
    if (srq->dead || (srq->policy->arms_on_notify && list_empty(&srq->notifies)))
        threshold = 0;
    __atomic_store_n(&srq->low, threshold, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(lock);
    if (threshold)
        arm(srq);
}

/* An event may be an old one: its threshold was seen to be passed by the poller first, and since then receives and another
 * Notify came. Once everything is polled, only what the QPs are filling just now, about one each, is taken and still
 * counted; with more than that outstanding, the event is none of these requests'. Their own arm stands. */
void srq_limit_event(struct srq *srq)
{
    if (!__atomic_load_n(&srq->low, __ATOMIC_SEQ_CST))
        return;
    fire(srq, srq_collect(srq) ? __atomic_load_n(&srq->users, __ATOMIC_RELAXED) : SLACK_ANY);
}

void srq_last_wqe(struct srq *srq)
{
    pthread_mutex_t *lock = notify_lock(srq);

    if (!srq->policy->last_wqe)
        return;
    pthread_mutex_lock(lock);
    complete_all_locked(srq, srq->policy->last_wqe);
    pthread_mutex_unlock(lock);
}

NTSTATUS srq_notify(struct srq *srq, struct file *file, OVERLAPPED *ov)
{
    pthread_mutex_t *lock = notify_lock(srq);
    uint32_t threshold;
    struct request *request;
    bool alive, first = false;
    NTSTATUS status;

    if (!ov)
        return ND_INVALID_PARAMETER;
    status = __atomic_load_n(&srq->dead, __ATOMIC_ACQUIRE);
    if (status)
        return status;
    status = request_alloc(file, ov, notify_cancel, srq, &request);
    if (status != ND_SUCCESS)
        return status;
    /* Whoever is told by the completion may release the SRQ at once. */
    srq_ref(srq);
    pthread_mutex_lock(lock);
    /* A cancel that finds the request started finds it in the list. */
    request_start(request);
    alive = !srq->dead;
    if (alive) {
        list_add_tail(&srq->notifies, &request->link);
        /* Whoever changes it after this look finds the request. */
        threshold = __atomic_load_n(&srq->threshold, __ATOMIC_RELAXED);
        first = srq->policy->arms_on_notify && !srq->low && threshold;
        if (first)
            __atomic_store_n(&srq->low, threshold, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(lock);
    if (!alive)
        request_complete(request, __atomic_load_n(&srq->dead, __ATOMIC_ACQUIRE), 0);
    else if (first)
        arm(srq);
    srq_unref(srq);
    return ND_PENDING;
}
