/* SPDX-License-Identifier: MIT */
#include "cq_take.h"

#include <string.h>

#include "log.h"
#include "mw.h"
#include "qp.h"
#include "srq_priv.h"
#include "status.h"

static inline bool is_alert(const ND2_RESULT *result)
{
    return result->RequestType == Nd2RequestTypeReceive || result->Status != ND_SUCCESS;
}

static inline uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- the stash ---- */

static void count_in(struct cq *cq, bool alert, uint32_t n)
{
    if (alert)
        cq->alerts += n;
    else
        cq->others += n;
}

/* The oldest results of a kind are the announced ones, so what leaves takes its announcement along. One that nobody was told
 * of is what a pending Notify waits for: its event may still be on the way. */
static void count_out(struct cq *cq, bool alert)
{
    uint32_t *count = alert ? &cq->alerts : &cq->others, *announced = alert ? &cq->told_alerts : &cq->told_others;
    bool told = *announced != 0;

    --*count;
    *announced -= told;
    if (!told && (cq->slow & CQ_WAITING)) {
        cq->taken++;
        cq->taken_alerts += alert;
    }
}

static void tell_of_locked(struct cq *cq, const ND2_RESULT *result)
{
    if (is_alert(result))
        cq->told_alerts++;
    else
        cq->told_others++;
}

/* `wc`: NULL for a request that no completion tells of. */
static void detail_from(struct cq_detail *detail, const struct ibv_wc *wc, HRESULT status)
{
    *detail = (struct cq_detail){ .status = status == ND_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR };
    if (!wc)
        return;
    detail->vendor_code = wc->vendor_err;
    detail->status = (uint8_t)wc->status;
    if (wc->status != IBV_WC_SUCCESS)
        return; /* nothing else means anything */
    detail->imm_data = wc->imm_data;
    detail->source_qp = wc->src_qp;
    detail->flags = wc->wc_flags;
    detail->pkey_index = wc->pkey_index;
    detail->slid = wc->slid;
    detail->opcode = (uint8_t)wc->opcode;
    detail->sl = wc->sl;
    detail->dlid_path_bits = wc->dlid_path_bits;
}

static void push_locked(struct cq *cq, const ND2_RESULT *result, const struct ibv_wc *wc)
{
    uint32_t at;

    if (unlikely(cq->stash_count == cq->stash_size)) {
        cq->slow |= CQ_SPILLED;
        return;
    }
    at = cq_stash_at_locked(cq, cq->stash_count++);
    if (unlikely(cq->details != NULL))
        detail_from(&cq->details[at], wc, result->Status);
    cq->stash[at] = *result;
    cq->slow |= CQ_STASH;
    count_in(cq, is_alert(result), 1);
}

static uint32_t take_stash_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t got = lower(n, cq->stash_count);

    for (uint32_t i = 0; i < got; i++) {
        results[i] = cq->stash[cq->stash_head];
        cq->stash_head = cq_stash_at_locked(cq, 1);
        count_out(cq, is_alert(&results[i]));
    }
    cq->stash_count -= got;
    if (!cq->stash_count)
        cq->slow &= ~(uint32_t)CQ_STASH;
    return got;
}

static void fill(ND2_RESULT *result, const struct queue *queue, const struct slot *slot, HRESULT status, uint32_t bytes)
{
    result->Status = status;
    result->BytesTransferred = bytes;
    result->QueuePairContext = queue->context;
    result->RequestContext = slot->context;
    result->RequestType = (ND2_REQUEST_TYPE)slot->type;
#if UINTPTR_MAX == UINT64_MAX
    memset((char *)result + 28, 0, 4);
#endif
}

void cq_push_slot_locked(struct cq *cq, struct queue *queue, const struct slot *slot, HRESULT status)
{
    ND2_RESULT result;

    fill(&result, queue, slot, status, status == ND_SUCCESS ? slot->length : 0);
    push_locked(cq, &result, NULL);
}

/* ---- results that wait in their slots ---- */

void cq_ready_locked(struct cq *cq, struct queue *queue, uint32_t n)
{
    if (!n)
        return;
    queue->ready += n;
    count_in(cq, true, n);
    if (!list_linked(&queue->ready_link))
        list_add_tail(&cq->ready, &queue->ready_link);
    cq->slow |= CQ_READY;
}

static void ready_end_locked(struct cq *cq, struct queue *queue)
{
    list_del(&queue->ready_link);
    if (list_empty(&cq->ready))
        cq->slow &= ~(uint32_t)CQ_READY;
}

void cq_unready_locked(struct cq *cq, struct queue *queue)
{
    if (!queue->ready)
        return;
    cq->alerts -= queue->ready;
    queue->ready = 0;
    ready_end_locked(cq, queue);
}

void cq_forget_ready_locked(struct cq *cq, struct queue *queue)
{
    /* With their announcements: one too few wakes somebody once more, one too many never. */
    cq->told_alerts -= lower(cq->told_alerts, queue->ready);
    cq_unready_locked(cq, queue);
}

static uint32_t take_ready_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t got = 0;

    while (got < n && (cq->slow & CQ_READY)) {
        struct queue *queue = list_entry(cq->ready.next, struct queue, ready_link);

        fill(&results[got++], queue, &queue->ring[queue->tail & queue->ring_mask], ND_CANCELED, 0);
        count_out(cq, true);
        __atomic_store_n(&queue->tail, queue->tail + 1, __ATOMIC_RELEASE);
        if (--queue->ready == 0)
            ready_end_locked(cq, queue);
    }
    return got;
}

/* ---- results of windows that the peer invalidated ---- */

void cq_revoked_locked(struct cq *cq, struct list *link)
{
    list_add_tail(&cq->revoked, link);
    count_in(cq, false, 1);
    cq->slow |= CQ_REVOKED;
}

void cq_unrevoked_locked(struct cq *cq, struct list *link)
{
    list_del(link);
    count_out(cq, false);
    if (list_empty(&cq->revoked))
        cq->slow &= ~(uint32_t)CQ_REVOKED;
}

static uint32_t take_revoked_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t got = 0;

    while (got < n && (cq->slow & CQ_REVOKED)) {
        struct list *node = cq->revoked.next;

        cq_unrevoked_locked(cq, node);
        mw_take_revoked_locked(node, &results[got++]);
    }
    return got;
}

/* ---- completions ---- */

/* A request whose completion never came although a later one did: a CQ that overran. In order, an initiator request before
 * a successful one has succeeded; what happened to others cannot be known. */
static HRESULT skipped_status(const struct slot *slot, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS && slot->type != Nd2RequestTypeReceive)
        return ND_SUCCESS;
    return ND_CANCELED;
}

static void note_failure_locked(struct cq *cq, struct qp *qp)
{
    if (!qp_outlives_failures(qp) && qp_note_error(qp)) {
        qp_ref(qp);
        list_add_tail(&cq->failed, qp_failed_link(qp));
        cq->slow |= CQ_FAILED;
    }
}

/* siw says of all that stops a request as it goes out what other devices say of a bad local key, and mostly it is the peer, who
 * closes: it is over like those behind it then. A request whose memory was bad is marked. */
static void reinterpret_locked(const struct cq *cq, const struct slot *slot, struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_LOC_QP_OP_ERR && device_is_siw(cq->adapter->device) &&
        slot->type != Nd2RequestTypeReceive && slot->spare != SLOT_KEYS_BAD && !adapter_port_down(cq->adapter))
        wc->status = IBV_WC_WR_FLUSH_ERR;
}

/* A receive out of an SRQ, whose QP only its number tells. A QP takes its number along when the last completion of it has
 * been polled, so one without a QP would be a device's fault; the slot is free again all the same. */
static bool convert_shared_locked(struct cq *cq, const struct ibv_wc *wc, struct slot *slot, ND2_RESULT *result)
{
    struct queue *queue = cq_find_number_locked(cq, wc->qp_num);
    HRESULT status = ND_SUCCESS;

    if (unlikely(slot->seq != SLOT_POSTED)) /* came twice */
        return false;
    if (likely(queue != NULL)) {
        if (unlikely(wc->status != IBV_WC_SUCCESS)) {
            status = status_from_wc(wc->status, Nd2RequestTypeReceive, false);
            note_failure_locked(cq, queue->qp);
        }
        fill(result, queue, slot, status, status == ND_SUCCESS ? wc->byte_len : 0);
    }
    if (srq_give_back_locked(slot->queue->srq, slot))
        cq->slow |= CQ_LOW;
    return queue != NULL;
}

/* Any completion. True: *result is to be delivered. *extra: results of earlier requests went to the stash, so this one
 * must follow them there. Silent successes end here. */
static bool convert_locked(struct cq *cq, struct ibv_wc *wc, ND2_RESULT *result, bool *extra)
{
    struct slot *slot = slot_from_wr_id(wc->wr_id);
    struct queue *queue = slot->queue;
    uint32_t tail = queue->tail, seq;
    HRESULT status = ND_SUCCESS;
    bool silent;

    *extra = false;
    if (!queue->qp)
        return convert_shared_locked(cq, wc, slot, result);
    seq = tail + (((uint32_t)(slot - queue->ring) - tail) & queue->ring_mask);
    silent = slot->seq != seq;
    if (queue->kind == QUEUE_LOST || qp_swallows_locked(queue, wc))
        return false;
    if (unlikely((slot->seq ^ seq) & ~SLOT_SILENT)) /* came twice */
        return false;
    for (uint32_t i = tail; i != seq; i++) {
        struct slot *before = &queue->ring[i & queue->ring_mask];

        if (before->seq == i) {
            cq_push_slot_locked(cq, queue, before, skipped_status(before, wc));
            *extra = true;
        }
    }
    if (unlikely(wc->status != IBV_WC_SUCCESS)) {
        /* Of a failed completion only wr_id, status and qp_num mean anything. */
        reinterpret_locked(cq, slot, wc);
        status = status_from_wc(wc->status, (ND2_REQUEST_TYPE)slot->type, adapter_port_down(cq->adapter));
        note_failure_locked(cq, queue->qp);
        fill(result, queue, slot, status, 0);
    } else {
        /* An Invalidate that may not reach the device (mw.c) went as something else, with a length. */
        if (unlikely(silent && slot->type == Nd2RequestTypeInvalidate && slot->length))
            status = ND_INVALID_DEVICE_REQUEST;
        fill(result, queue, slot, status,
             slot->type == Nd2RequestTypeReceive ? wc->byte_len
             : status == ND_SUCCESS              ? slot->length
                                                 : 0);
    }
    __atomic_store_n(&queue->tail, seq + 1, __ATOMIC_RELEASE);
    return status != ND_SUCCESS || !silent;
}

static void stash_locked(struct cq *cq, struct ibv_wc *wc, uint32_t count)
{
    ND2_RESULT result;
    bool extra;

    for (uint32_t i = 0; i < count; i++) {
        if (convert_locked(cq, &wc[i], &result, &extra))
            push_locked(cq, &result, &wc[i]);
    }
}

/* The general case of the loop below, for one completion: the number of results written (0 or 1), or -1 if it went to the
 * stash, where the rest of the batch must follow. */
static __attribute__((noinline)) int convert_one_locked(struct cq *cq, struct ibv_wc *wc, ND2_RESULT *result)
{
    ND2_RESULT made;
    bool extra;

    if (!convert_locked(cq, wc, &made, &extra))
        return extra ? -1 : 0;
    if (extra) {
        push_locked(cq, &made, wc);
        return -1;
    }
    *result = made;
    return 1;
}

/* Runs of successes of one queue, in order, take two compares and a few stores each; whatever else there is (failures,
 * silent ones, gaps) goes the long way. wc[count].wr_id must be 0: no slot, so a run ends there too.
 * Returns the end of the results. */
static inline ND2_RESULT *convert_all_locked(struct cq *cq, struct ibv_wc *wc, uint32_t count, ND2_RESULT *results)
{
    const struct ibv_wc *end = wc + count;
    ND2_RESULT *out = results;

    while (wc != end) {
        struct queue *queue = slot_from_wr_id(wc->wr_id)->queue;
        const struct slot *slot = &queue->ring[queue->tail & queue->ring_mask];
        void *context = queue->context;
        ND2_RESULT *first = out;
        int made;

        if (queue->kind == QUEUE_RECEIVES) {
            for (; wc->wr_id == (uintptr_t)slot && likely(wc->status == IBV_WC_SUCCESS); wc++, out++, slot++) {
                out->Status = ND_SUCCESS;
                out->BytesTransferred = wc->byte_len;
                out->QueuePairContext = context;
                copy_tail(out, slot);
            }
        } else if (likely(queue->kind == QUEUE_SENDS)) {
            for (; wc->wr_id == (uintptr_t)slot && likely(wc->status == IBV_WC_SUCCESS); wc++, out++, slot++) {
                out->Status = ND_SUCCESS;
                out->BytesTransferred = slot->length;
                out->QueuePairContext = context;
                copy_tail(out, slot);
            }
        }
        if (likely(out != first)) {
            __atomic_store_n(&queue->tail, queue->tail + (uint32_t)(out - first), __ATOMIC_RELEASE);
            continue;
        }
        made = convert_one_locked(cq, wc, out);
        wc++;
        if (unlikely(made < 0)) {
            stash_locked(cq, wc, (uint32_t)(end - wc));
            break;
        }
        out += made;
    }
    return out;
}

static inline uint32_t poll_locked(struct cq *cq, uint32_t n, struct ibv_wc *wc)
{
    int got = ibv_poll_cq(cq->verbs, (int)n, wc);

    return likely(got >= 0) ? (uint32_t)got : 0;
}

/* ---- GetResults ---- */

/* Results that went from the device to the application. The first of them is none that a Notify waits for if one has been
 * completed for it already; if there are none, it has been taken by somebody else. */
static void note_taken_locked(struct cq *cq, uint32_t polled, uint32_t got, uint32_t alerts, bool first_alert)
{
    bool owed = cq->slow & CQ_OWED && got;

    cq->slow &= ~(uint32_t)CQ_OWED;
    if (!(cq->slow & CQ_WAITING))
        return;
    cq->consumed += polled;
    cq->taken += got - owed;
    cq->taken_alerts += alerts - (owed && first_alert);
    if (!__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE))
        cq->slow &= ~(uint32_t)CQ_WAITING;
}

static uint32_t take_device_locked(struct cq *cq, ND2_RESULT *results, uint32_t n, bool *more)
{
    struct ibv_wc wc[CQ_BATCH + 1];
    uint32_t polled, got, alerts = 0;

    *more = false;
    if (cq->slow & CQ_GONE)
        return 0;
    polled = poll_locked(cq, n, wc);
    wc[polled].wr_id = 0;
    got = (uint32_t)(convert_all_locked(cq, wc, polled, results) - results);
    if (cq->slow & CQ_WINDOWS)
        mw_look_locked(cq, wc, polled);
    *more = polled == n || (cq->slow & CQ_KEPT);
    if (cq->slow & (CQ_WAITING | CQ_OWED)) {
        for (uint32_t i = 0; i < got; i++)
            alerts += is_alert(&results[i]);
        note_taken_locked(cq, polled, got, alerts, got && is_alert(&results[0]));
    }
    return got;
}

/* What there is without a poll; before the device's, and the stash first: the order of each queue's results. */
static inline uint32_t take_kept_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t got = take_stash_locked(cq, results, n);

    if (!got)
        got = take_ready_locked(cq, results, n);
    if (!got)
        got = take_revoked_locked(cq, results, n);
    return got;
}

static uint32_t take_locked(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t filled = 0, slow;
    bool more;

    for (;;) {
        uint32_t want = lower(CQ_BATCH, n - filled), got = 0;

        if (cq->slow & CQ_KEPT)
            got = take_kept_locked(cq, results + filled, want);
        more = got != 0;
        if (!got && want)
            got = take_device_locked(cq, results + filled, want, &more);
        slow = cq->slow;
        cq_unlock(cq);
        filled += got;
        if (!more || filled >= n)
            break;
        cq_lock(cq);
    }
    if (slow & CQ_REPORTS)
        cq_report(cq);
    return filled;
}

/* The first call after a Notify was completed finds that nobody waits any more, and that the result which was told of, if it
 * was left to the device, is about to be taken: from there on nothing is set aside. */
uint32_t cq_take_slow(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    cq_lock(cq); /* without results too: gate_pass */
    if (results && n && !(cq->slow & ~(uint32_t)(CQ_WAITING | CQ_OWED)) &&
        !__atomic_load_n(&cq->waiting, __ATOMIC_ACQUIRE)) {
        cq->slow = 0;
        return cq_take_locked(cq, results, n);
    }
    return take_locked(cq, results, results ? n : 0);
}

uint32_t cq_deliver(struct wanted *wanted, uint32_t polled)
{
    struct taking *taking = (struct taking *)((char *)wanted - offsetof(struct taking, wanted));
    struct cq *cq = wanted->cq;
    uint32_t got = 0, slow;

    taking->wc[polled].wr_id = 0;
    if (likely(wanted->results != NULL))
        got = (uint32_t)(convert_all_locked(cq, taking->wc, polled, wanted->results) - OPAQUE(wanted)->results);
    else
        stash_locked(cq, taking->wc, polled);
    slow = cq->slow;
    if (likely(!slow))
        gate_unlock(&cq->lock, GATE_OPEN);
    else
        gate_unlock(&cq->lock, GATE_SHUT);
    if (likely(got == polled && !slow))
        return got;
    /* Fewer than asked tells the application that nothing is left: silent ones look again. */
    if (!slow && (polled < wanted->n || got == wanted->n))
        return got;
    return wanted->results ? got + cq_take_slow(cq, wanted->results + got, wanted->n - got) : 0;
}

uint32_t cq_leave(struct cq *cq, uint32_t got)
{
    gate_leave(&cq->lock, GATE_OPEN);
    return got;
}

uint32_t cq_take_many(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    uint32_t got = 0, more;

    do {
        more = cq_get_results(cq, results ? results + got : NULL, lower(CQ_BATCH, n - got));
        got += more;
    } while (more == CQ_BATCH && got < n);
    return got;
}

uint32_t cq_get_results(struct cq *cq, ND2_RESULT *results, uint32_t n)
{
    return cq_take(cq, results, n);
}

/* ---- the same with details: always the general way ---- */

static uint32_t take_detailed_locked(struct cq *cq, struct cq_completion *out, uint32_t n)
{
    uint32_t got = lower(n, cq->stash_count);

    for (uint32_t i = 0; i < got; i++) {
        out[i].detail = cq->details[cq->stash_head];
        take_stash_locked(cq, &out[i].result, 1);
    }
    while (got < n && !cq->stash_count && take_ready_locked(cq, &out[got].result, 1))
        detail_from(&out[got++].detail, NULL, ND_CANCELED);
    return got;
}

static uint32_t take_device_detailed_locked(struct cq *cq, struct cq_completion *out, uint32_t n, bool *more)
{
    struct ibv_wc wc[CQ_BATCH];
    uint32_t polled, got = 0, alerts = 0;
    bool extra = false;

    if (cq->slow & CQ_GONE)
        return 0;
    polled = poll_locked(cq, n, wc);
    if (cq->slow & CQ_WINDOWS)
        mw_look_locked(cq, wc, polled);
    for (uint32_t i = 0; i < polled && !extra; i++) {
        bool wanted = convert_locked(cq, &wc[i], &out[got].result, &extra);

        if (extra) {
            if (wanted)
                push_locked(cq, &out[got].result, &wc[i]);
            stash_locked(cq, wc + i + 1, polled - i - 1);
        } else if (wanted) {
            alerts += is_alert(&out[got].result);
            detail_from(&out[got++].detail, &wc[i], ND_SUCCESS);
        }
    }
    *more = polled == n || (cq->slow & (CQ_STASH | CQ_READY));
    note_taken_locked(cq, polled, got, alerts, got && is_alert(&out[0].result));
    return got;
}

uint32_t cq_get_completions(struct cq *cq, struct cq_completion *completions, uint32_t n)
{
    uint32_t filled = 0, slow;
    bool more;

    do {
        uint32_t want = lower(CQ_BATCH, n - filled), got;

        cq_lock(cq);
        got = take_detailed_locked(cq, completions + filled, want);
        more = got != 0;
        if (!got && want)
            got = take_device_detailed_locked(cq, completions + filled, want, &more);
        slow = cq->slow;
        cq_unlock(cq);
        filled += got;
    } while (more && filled < n);
    if (slow & CQ_REPORTS)
        cq_report(cq);
    return filled;
}

/* ---- internal polls ---- */

uint32_t cq_pull_locked(struct cq *cq, uint32_t n)
{
    struct ibv_wc wc[CQ_BATCH];
    uint32_t polled, had;

    if (cq->slow & CQ_GONE)
        return 0;
    polled = poll_locked(cq, n, wc);
    had = cq->stash_count;
    stash_locked(cq, wc, polled);
    cq->consumed += polled;
    if (cq->slow & CQ_OWED) {
        cq->slow &= ~(uint32_t)CQ_OWED;
        if (cq->stash_count != had)
            tell_of_locked(cq, &cq->stash[cq_stash_at_locked(cq, had)]);
    }
    if (cq->slow & CQ_WINDOWS)
        mw_look_locked(cq, wc, polled);
    return polled;
}

bool cq_pull(struct cq *cq)
{
    uint32_t count, polled = 0;

    cq_lock(cq);
    count = cq_count_locked(cq);
    if (count < cq->depth)
        polled = cq_pull_locked(cq, lower(CQ_BATCH, cq->depth - count));
    cq_unlock(cq);
    return polled != 0;
}

/* Ends when the device has nothing, or after as many completions as its CQ can hold: those that were there at the start,
 * whatever other queue pairs add meanwhile. */
bool cq_collect(struct cq *cq, bool drain)
{
    uint32_t left = __atomic_load_n(&cq->entries, __ATOMIC_RELAXED), polled = 1;
    bool all = true;

    while (polled && left) {
        uint32_t room, want;

        cq_lock(cq);
        if (drain)
            room = cq_stash_room_locked(cq);
        else
            room = cq->depth - lower(cq->depth, cq_count_locked(cq));
        if (drain && room < CQ_BATCH) {
            cq_unlock(cq);
            /* Only an application that posts on and on without taking its results comes here. */
            if (!cq_grow(cq, CQ_BATCH))
                log_warn("no memory for the results of a completion queue");
            cq_lock(cq);
            room = CQ_BATCH;
        }
        want = lower(CQ_BATCH, lower(left, room));
        polled = want ? cq_pull_locked(cq, want) : 0;
        cq_unlock(cq);
        left -= polled;
        all = want != 0;
    }
    cq_report(cq);
    return all;
}

void cq_report(struct cq *cq)
{
    struct list failed, unbound;
    struct list *node;
    uint32_t reports;

    list_init(&failed);
    list_init(&unbound);
    cq_lock(cq);
    list_splice_tail(&failed, &cq->failed);
    list_splice_tail(&unbound, &cq->unbound);
    reports = cq->slow & CQ_REPORTS;
    cq->slow &= ~(uint32_t)CQ_REPORTS;
    cq_unlock(cq);
    mw_report(&unbound);
    while ((node = list_pop(&failed)) != NULL)
        qp_report_error(qp_from_failed_link(node));
    if (reports & CQ_SPILLED)
        cq_overrun(cq);
    if (reports & CQ_LOW) {
        pthread_mutex_lock(&cq->control);
        list_for_each (link, &cq->shares)
            srq_fire_if_low(list_entry(link, struct cq_share, cq_link)->srq);
        pthread_mutex_unlock(&cq->control);
    }
}
