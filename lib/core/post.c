/* SPDX-License-Identifier: MIT */
#include "qp_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "log.h"
#include "ndstatus.h"
#include "sge.h"
#include "status.h"

#define OP_FLAGS_KNOWN                                                                                               \
    (ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT | ND_OP_FLAG_ALLOW_READ | \
     ND_OP_FLAG_ALLOW_WRITE | ND_OP_FLAG_INLINE)
_Static_assert(OP_FLAGS_KNOWN == 0x3f, "flags");

/* ---- the ring ---- */

/* Queue lock held, ring full as far as known: a new look at the tail, then at the device, whose completions wait for a
 * poll. An application that only posts silently never polls, and must not run dry. */
static __attribute__((noinline)) bool make_room(struct queue *queue)
{
    do {
        queue->limit = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) + queue->depth;
        if (queue->head != queue->limit)
            return true;
    } while (cq_pull(queue->cq));
    return false;
}

static inline struct slot *next_slot(struct queue *queue, void *context)
{
    struct slot *slot = &queue->slots[queue->head & queue->mask];

    slot->context = context;
    return slot;
}

/* What slot.spare says of the memory that a request uses. */
static inline uint32_t key_of(const ND2_SGE *sge, uint32_t n, uint32_t flags)
{
    if (!n || (flags & ND_OP_FLAG_INLINE))
        return 0;
    return n == 1 ? sge->MemoryRegionToken : SLOT_KEYS_MANY;
}

/* Queue lock held. A request that the device never sees. */
static HRESULT keep_locked(struct queue *queue, void *context, ND2_REQUEST_TYPE type)
{
    struct slot *slot;

    if (!queue->closed) {
        queue->closed = 1;
        queue->closed_at = queue->head - batch_drop_locked(queue);
    }
    if (queue->head == queue->limit && !make_room(queue))
        return ND_NO_MORE_ENTRIES;
    slot = next_slot(queue, context);
    slot->seq = queue->head ^ SLOT_SILENT;
    slot->length = 0;
    slot->type = type;
    slot->spare = 0;
    queue->head++;
    if (queue->flushed) {
        cq_lock(queue->cq);
        cq_ready_locked(queue->cq, queue, 1);
        cq_unlock(queue->cq);
    }
    return ND_SUCCESS;
}

/* After the queue's lock is gone: what polling found, and whom a new result may concern. */
static HRESULT settle(struct queue *queue, HRESULT status, bool fresh)
{
    cq_report(queue->cq);
    if (fresh && status == ND_SUCCESS)
        cq_kick(queue->cq);
    return status;
}

/* ---- initiator ---- */

static HRESULT post_failed(const struct queue *queue, int result)
{
    int error = post_errno(result);
    HRESULT status = status_from_post_errno(error);

    return error == ENOMEM ? status : status_warn(error, status, "posting to QP %u", queue->qp->number);
}

/* Queue lock held, released here. */
static __attribute__((noinline)) HRESULT post_failed_locked(struct queue *queue, int result, const void *bad)
{
    if (queue_took_all_the_same(queue, post_errno(result), bad)) {
        queue->head++;
        wordlock_unlock(&queue->lock);
        queue_failed(queue);
        return ND_SUCCESS;
    }
    wordlock_unlock(&queue->lock);
    return post_failed(queue, result);
}

/* ND_OP_FLAG_* as flags of the device. */
#define F(flags)                                                            \
    (((flags)&ND_OP_FLAG_READ_FENCE ? IBV_SEND_FENCE : 0) |                 \
     ((flags)&ND_OP_FLAG_SEND_AND_SOLICIT_EVENT ? IBV_SEND_SOLICITED : 0) | \
     ((flags)&ND_OP_FLAG_INLINE ? IBV_SEND_INLINE : 0) | ((flags)&ND_OP_FLAG_SILENT_SUCCESS ? 0 : IBV_SEND_SIGNALED))
#define F8(flags)                                                                                             \
    F(flags), F((flags) + 1), F((flags) + 2), F((flags) + 3), F((flags) + 4), F((flags) + 5), F((flags) + 6), \
        F((flags) + 7)
static const uint8_t device_flags[64] = { F8(0), F8(8), F8(16), F8(24), F8(32), F8(40), F8(48), F8(56) };
#undef F8
#undef F

/* Windows of type 1 have a verb of their own. */
static __attribute__((noinline)) int bind_type1(const struct queue *sq, struct ibv_send_wr *wr,
                                                struct ibv_send_wr **bad)
{
    struct ibv_mw_bind bind = { .wr_id = wr->wr_id, .send_flags = wr->send_flags, .bind_info = wr->bind_mw.bind_info };

    *bad = wr;
    return ibv_bind_mw(sq->verbs, wr->bind_mw.mw, &bind);
}

/* Queue lock held; the queue has room. */
static inline void prepare_locked(struct queue *sq, void *context, ND2_REQUEST_TYPE type, uint32_t length, uint32_t key,
                                  uint32_t flags, struct ibv_send_wr *wr)
{
    struct slot *slot = next_slot(sq, context);

    wr->wr_id = (uintptr_t)slot;
    wr->next = NULL;
    wr->send_flags = device_flags[flags];
    if (type != Nd2RequestTypeRead)
        wr->send_flags |= sq->fence;
    /* A relaxed atomic so that no compiler joins it with the length by way of a vector register. */
    __atomic_store_n(&slot->seq, sq->head, __ATOMIC_RELAXED);
    slot->length = length;
    slot->type = type;
    slot->spare = key;
    if (flags & ND_OP_FLAG_SILENT_SUCCESS) {
        cq_unsure(sq->cq);
        wr->wr_id |= WR_ID_SILENT;
        slot->seq ^= SLOT_SILENT;
        /* Without a completion now and then the device's and our ring would fill up; and of those of windows the end is to
         * be seen. */
        if (++sq->silent >= sq->period || is_window(type)) {
            sq->silent = 0;
            wr->send_flags |= IBV_SEND_SIGNALED;
            if (!is_window(type))
                slot->length = SLOT_SIGNALLED;
        }
    }
}

/* Queue lock held, released here; the queue is live and has room. */
static inline HRESULT post_locked(struct queue *sq, void *context, ND2_REQUEST_TYPE type, uint32_t length, uint32_t key,
                                  uint32_t flags, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int result;

    prepare_locked(sq, context, type, length, key, flags, wr);
    if (is_window(type) && wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->type == IBV_MW_TYPE_1)
        result = bind_type1(sq, wr, &bad);
    else
        result = ibv_post_send(sq->verbs, wr, &bad);
    if (unlikely(result))
        return post_failed_locked(sq, result, bad);
    sq->head++;
    wordlock_unlock(&sq->lock);
    return ND_SUCCESS;
}

/* What a post finds: it is over with the caller's status, or the queue's lock is held and there is room, in a live queue or in
 * one with a batch open. */
enum found {
    POST_OVER,
    POST_LIVE,
    POST_BATCH,
};

/* Queue lock held, released here if over. What a batch holds back will not make room by itself. */
static __attribute__((noinline)) enum found begin_not_live(struct queue *sq, void *context, ND2_REQUEST_TYPE type,
                                                           HRESULT *status)
{
    bool failed = false, fresh = false;

    if (__atomic_load_n(&sq->mode, __ATOMIC_RELAXED) == QUEUE_IDLE) {
        wordlock_unlock(&sq->lock);
        *status = ND_CONNECTION_INVALID;
        return POST_OVER;
    }
    *status = ND_SUCCESS;
    if (__atomic_load_n(&sq->mode, __ATOMIC_RELAXED) == QUEUE_BATCH && sq->head == sq->limit) {
        failed = !batch_post_locked(sq);
        if (!make_room(sq))
            *status = ND_NO_MORE_ENTRIES;
    }
    if (*status == ND_SUCCESS && __atomic_load_n(&sq->mode, __ATOMIC_RELAXED) == QUEUE_BATCH)
        return POST_BATCH;
    if (*status == ND_SUCCESS) {
        *status = keep_locked(sq, context, type);
        fresh = true;
    }
    wordlock_unlock(&sq->lock);
    if (failed)
        queue_failed(sq);
    *status = settle(sq, *status, fresh);
    return POST_OVER;
}

static inline enum found begin_post(struct queue *sq, void *context, ND2_REQUEST_TYPE type, HRESULT *status)
{
    wordlock_lock(&sq->lock);
    if (unlikely(__atomic_load_n(&sq->mode, __ATOMIC_RELAXED) != QUEUE_LIVE))
        return begin_not_live(sq, context, type, status);
    if (likely(sq->head != sq->limit))
        return POST_LIVE;
    if (!make_room(sq)) {
        wordlock_unlock(&sq->lock);
        *status = settle(sq, ND_NO_MORE_ENTRIES, false);
        return POST_OVER;
    }
    /* What made room may have been the first failure. */
    if (__atomic_load_n(&sq->mode, __ATOMIC_RELAXED) == QUEUE_LIVE)
        return POST_LIVE;
    return begin_not_live(sq, context, type, status);
}

static HRESULT post_wr(struct queue *sq, void *context, ND2_REQUEST_TYPE type, uint32_t length, uint32_t key,
                       uint32_t flags, struct ibv_send_wr *wr)
{
    enum found found;
    HRESULT status;
    bool failed;

    found = begin_post(sq, context, type, &status);
    if (found == POST_OVER)
        return status;
    if (unlikely(found == POST_BATCH)) {
        prepare_locked(sq, context, type, length, key, flags, wr);
        failed = !batch_send_locked(sq, wr);
        wordlock_unlock(&sq->lock);
        if (failed)
            queue_failed(sq);
        return ND_SUCCESS;
    }
    return post_locked(sq, context, type, length, key, flags, wr);
}

HRESULT qp_post_window(struct qp *qp, void *context, struct window_post *post)
{
    struct queue *sq = &qp->sq;
    uint32_t flags = post->flags;
    enum found found;
    HRESULT status;
    int error;

    post->posted = false;
    found = begin_post(sq, context, post->type, &status);
    if (found == POST_OVER)
        return status;
    /* In order behind what a batch holds back. */
    if (found == POST_BATCH && !batch_post_locked(sq)) {
        status = keep_locked(sq, context, post->type);
        wordlock_unlock(&sq->lock);
        queue_failed(sq);
        return settle(sq, status, true);
    }
    post->posted = true;
    post->position = sq->head;
    if (post->revoke) {
        error = ibv_dereg_mr(post->revoke);
        if (error && !adapter_removed(qp->adapter))
            log_warn("ibv_dereg_mr of a window's memory: %s", strerror(error));
    }
    /* The poller takes the long way for a silent one, and finds the length there. */
    if (post->refused)
        flags |= ND_OP_FLAG_SILENT_SUCCESS;
    return post_locked(sq, context, post->type, post->refused, post->local_key, flags, &post->wr);
}

/* More entries than the device takes: one copy, one entry. */
static __attribute__((noinline)) HRESULT send_gathered(struct queue *sq, void *context, ND2_REQUEST_TYPE type,
                                                       const ND2_SGE *sge, uint32_t n, uint32_t flags,
                                                       struct ibv_send_wr *wr)
{
    uint64_t total = total_length(sge, n);
    struct ibv_sge one;
    char *end;

    if (total > sq->inline_size)
        return ND_BUFFER_OVERFLOW;
    if (!total) {
        wr->sg_list = NULL;
        wr->num_sge = 0;
        return post_wr(sq, context, type, 0, 0, flags & ~(uint32_t)ND_OP_FLAG_INLINE, wr);
    }

    char copy[total];

    end = copy;
    for (uint32_t i = 0; i < n; i++) {
        if (sge[i].BufferLength)
            end = mempcpy(end, sge[i].Buffer, sge[i].BufferLength);
    }
    one.addr = (uintptr_t)copy;
    one.length = (uint32_t)total;
    one.lkey = 0;
    wr->sg_list = &one;
    wr->num_sge = 1;
    return post_wr(sq, context, type, (uint32_t)total, 0, flags, wr);
}

/* An initiator request, but for its entries. */
struct op {
    ND2_REQUEST_TYPE type;
    enum ibv_wr_opcode opcode;
    uint64_t address;
    uint32_t token;
};

/* Without an immediate no device reads imm_data. */
static inline void describe(struct ibv_send_wr *wr, const struct op *op)
{
    wr->opcode = op->opcode;
    if (op->type != Nd2RequestTypeSend) {
        wr->wr.rdma.remote_addr = op->address;
        wr->wr.rdma.rkey = ntohl(op->token);
    } else if (op->opcode == IBV_WR_SEND_WITH_IMM) {
        wr->imm_data = op->token;
    } else if (op->opcode == IBV_WR_SEND_WITH_INV) {
        wr->invalidate_rkey = ntohl(op->token);
        wr->wr.rdma.rkey = ntohl(op->token); /* where siw looks for it */
    }
}

/* The connection allows none, nor atomics, which count as Reads. */
static __attribute__((noinline)) HRESULT refuse_read(struct queue *sq, void *context, ND2_REQUEST_TYPE type)
{
    HRESULT status;

    if (begin_post(sq, context, type, &status) == POST_OVER)
        return status;
    wordlock_unlock(&sq->lock);
    return ND_INVALID_DEVICE_REQUEST;
}

static inline bool no_reads(const struct queue *sq)
{
    return unlikely(__atomic_load_n(&sq->no_reads, __ATOMIC_RELAXED));
}

/* key_of, and on siw whether the memory is good, which its completions do not tell (reinterpret_locked). A Read's is looked at
 * when the answer comes, and has a status of its own. */
static uint32_t looked_up_key(const struct queue *sq, ND2_REQUEST_TYPE type, const ND2_SGE *sge, uint32_t n,
                              uint32_t flags)
{
    struct adapter *adapter = sq->qp->adapter;
    bool unknown = device_is_siw(adapter->device) && type != Nd2RequestTypeRead && !(flags & ND_OP_FLAG_INLINE);

    return unknown && !mr_cover(adapter, sge, n) ? SLOT_KEYS_BAD : key_of(sge, n, flags);
}

/* All but the entries is in `wr`. */
static __attribute__((noinline)) HRESULT initiate_wr(struct queue *sq, void *context, ND2_REQUEST_TYPE type,
                                                     const ND2_SGE *sge, uint32_t n, uint32_t flags,
                                                     struct ibv_send_wr *wr)
{
    struct ibv_sge copy[SGE_COPIES], nothing;
    uint64_t total;

    if (n > (type == Nd2RequestTypeRead ? sq->max_read_sge : sq->max_sge)) {
        if (!(flags & ND_OP_FLAG_INLINE))
            return ND_DATA_OVERRUN;
        if (!sge)
            return ND_INVALID_PARAMETER_2;
        return send_gathered(sq, context, type, sge, n, flags, wr);
    }
    if (!sge && n)
        return ND_INVALID_PARAMETER_2;
    total = total_length(sge, n);
    if (total > sq->max_transfer)
        return ND_BUFFER_OVERFLOW;
    if (no_reads(sq) && (type == Nd2RequestTypeRead || type == (ND2_REQUEST_TYPE)REQUEST_COMPARE_SWAP ||
                         type == (ND2_REQUEST_TYPE)REQUEST_FETCH_ADD))
        return refuse_read(sq, context, type);
    /* Entries without a byte need no valid token when inline, which the device does not know. */
    if ((flags & ND_OP_FLAG_INLINE) && (total > sq->inline_size || !total))
        return send_gathered(sq, context, type, sge, n, flags, wr);
    wr->sg_list = device_sges(copy, sge, n);
    wr->num_sge = (int)n;
    /* An iWARP Read has one sink. siw's kernel takes it from the ring whatever num_sge says: the last request's buffer. */
    if (!n && type == Nd2RequestTypeRead && sq->qp->iwarp) {
        nothing = (struct ibv_sge){ 0, 0, 0 };
        wr->sg_list = &nothing;
        wr->num_sge = 1;
    }
    return post_wr(sq, context, type, (uint32_t)total, looked_up_key(sq, type, sge, n, flags), flags, wr);
}

static inline HRESULT initiate_any(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n, uint32_t flags,
                                   struct op op)
{
    struct ibv_send_wr wr;

    describe(&wr, &op);
    return initiate_wr(sq, context, op.type, sge, n, flags, &wr);
}

/* An iWARP target answers Reads in the order of their requests, each once those before are answered: an earlier Read that a
 * fence would wait for is over when the later one's memory is looked at, and when its bytes come. siw's kernel takes no fenced
 * Read, and leaves it at the head of its queue. */
static inline uint32_t read_flags(const struct queue *sq, uint32_t flags)
{
    return sq->qp->iwarp ? flags & ~(uint32_t)ND_OP_FLAG_READ_FENCE : flags;
}

HRESULT qp_initiate(struct qp *qp, void *context, uint32_t type, const ND2_SGE *sge, uint32_t n, uint32_t flags,
                    struct ibv_send_wr *wr)
{
    if (type == Nd2RequestTypeRead)
        flags = read_flags(&qp->sq, flags);
    return initiate_wr(&qp->sq, context, (ND2_REQUEST_TYPE)type, sge, n, flags, wr);
}

/* One entry of a legal length: the short way. What else there is goes the long way, out of line, so that this one has few
 * registers to save. */
static inline bool is_short(const ND2_SGE *sge, uint32_t n, uint32_t most)
{
    return likely(n == 1 && sge && sge->BufferLength <= most);
}

/* Queue lock held. */
static inline bool takes_one_locked(const struct queue *queue)
{
    return likely(__atomic_load_n(&queue->mode, __ATOMIC_RELAXED) == QUEUE_LIVE && queue->head != queue->limit);
}

static inline HRESULT initiate_one_locked(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t flags,
                                          struct op op)
{
    struct ibv_sge copy[1];
    struct ibv_send_wr wr;

    describe(&wr, &op);
    wr.sg_list = device_sges(copy, sge, 1);
    wr.num_sge = 1;
    return post_locked(sq, context, op.type, sge->BufferLength, key_of(sge, 1, flags), flags, &wr);
}

/* The length that needs no second look. */
static inline uint32_t short_way_most(const struct queue *sq, uint32_t flags)
{
    return unlikely(flags & ND_OP_FLAG_INLINE) ? sq->inline_size : sq->short_most;
}

static __attribute__((noinline)) HRESULT send_any(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n,
                                                  uint32_t flags, bool locked)
{
    if (locked)
        wordlock_unlock(&sq->lock);
    return initiate_any(sq, context, sge, n, flags, (struct op){ Nd2RequestTypeSend, IBV_WR_SEND, 0, 0 });
}

static __attribute__((noinline)) HRESULT send_flagged(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n,
                                                      uint32_t flags)
{

    if (unlikely(flags & ~(uint32_t)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE |
                                     ND_OP_FLAG_SEND_AND_SOLICIT_EVENT | ND_OP_FLAG_INLINE)))
        return ND_INVALID_PARAMETER_4;
    if (unlikely(!is_short(sge, n, short_way_most(sq, flags))))
        return send_any(sq, context, sge, n, flags, false);
    if (unlikely(!wordlock_trylock(&sq->lock)))
        return send_any(sq, context, sge, 1, flags, false);
    if (unlikely(!takes_one_locked(sq)))
        return send_any(sq, context, sge, 1, flags, true);
    return initiate_one_locked(sq, context, sge, flags, (struct op){ Nd2RequestTypeSend, IBV_WR_SEND, 0, 0 });
}

/* Here and below a request without flags has a copy of the way of its own, where what the flags decide is constant. */
HRESULT qp_send(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint32_t flags)
{
    struct queue *sq = &qp->sq;

    if (unlikely(flags))
        return send_flagged(sq, context, sge, n, flags);
    if (unlikely(!is_short(sge, n, sq->short_most)))
        return send_any(sq, context, sge, n, 0, false);
    if (unlikely(!wordlock_trylock(&sq->lock)))
        return send_any(sq, context, sge, 1, 0, false);
    if (unlikely(!takes_one_locked(sq)))
        return send_any(sq, context, sge, 1, 0, true);
    return initiate_one_locked(sq, context, sge, 0, (struct op){ Nd2RequestTypeSend, IBV_WR_SEND, 0, 0 });
}

HRESULT qp_send_invalidate(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint32_t token, uint32_t flags)
{
    static const enum ibv_wr_opcode opcodes[] = {
        [INVALIDATE_NOT] = IBV_WR_SEND,
        [INVALIDATE_SEND] = IBV_WR_SEND_WITH_INV,
        [INVALIDATE_IMMEDIATE] = IBV_WR_SEND_WITH_IMM,
    };
    const struct device *device = qp->adapter->device;

    if (flags & ~(uint32_t)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_SEND_AND_SOLICIT_EVENT |
                            ND_OP_FLAG_INLINE))
        return ND_INVALID_PARAMETER_5;
    if (!device->inlines_invalidate)
        flags &= ~(uint32_t)ND_OP_FLAG_INLINE;
    return initiate_any(&qp->sq, context, sge, n, flags,
                        (struct op){ Nd2RequestTypeSend, opcodes[device->invalidates], 0, token });
}

static inline struct op one_sided(ND2_REQUEST_TYPE type, uint64_t address, uint32_t token)
{
    return (struct op){ type, type == Nd2RequestTypeRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, address, token };
}

/* Not given a struct op, which the callers would have to put into memory before they know that they come here. */
static __attribute__((noinline)) HRESULT read_write_any(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n,
                                                        uint32_t flags, ND2_REQUEST_TYPE type, uint64_t address,
                                                        uint32_t token, bool locked)
{
    if (locked)
        wordlock_unlock(&sq->lock);
    return initiate_any(sq, context, sge, n, flags, one_sided(type, address, token));
}

static inline HRESULT read_write(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n, uint32_t flags,
                                 uint32_t most, ND2_REQUEST_TYPE type, uint64_t address, uint32_t token)
{
    if (unlikely(!is_short(sge, n, most)))
        return read_write_any(sq, context, sge, n, flags, type, address, token, false);
    if (unlikely(!wordlock_trylock(&sq->lock)))
        return read_write_any(sq, context, sge, 1, flags, type, address, token, false);
    if (unlikely(!takes_one_locked(sq)))
        return read_write_any(sq, context, sge, 1, flags, type, address, token, true);
    return initiate_one_locked(sq, context, sge, flags, one_sided(type, address, token));
}

static __attribute__((noinline)) HRESULT read_flagged(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n,
                                                      uint64_t address, uint32_t token, uint32_t flags)
{
    if (unlikely(flags & ~(uint32_t)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE)))
        return ND_INVALID_PARAMETER_6;
    flags = read_flags(sq, flags);
    if (no_reads(sq))
        return read_write_any(sq, context, sge, n, flags, Nd2RequestTypeRead, address, token, false);
    return read_write(sq, context, sge, n, flags, sq->max_transfer, Nd2RequestTypeRead, address, token);
}

HRESULT qp_read(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint64_t address, uint32_t token,
                uint32_t flags)
{
    struct queue *sq = &qp->sq;

    /* One branch for both. */
    if (unlikely(flags | __atomic_load_n(&sq->no_reads, __ATOMIC_RELAXED)))
        return read_flagged(sq, context, sge, n, address, token, flags);
    return read_write(sq, context, sge, n, 0, sq->max_transfer, Nd2RequestTypeRead, address, token);
}

static __attribute__((noinline)) HRESULT write_flagged(struct queue *sq, void *context, const ND2_SGE *sge, uint32_t n,
                                                       uint64_t address, uint32_t token, uint32_t flags)
{
    if (unlikely(flags & ~(uint32_t)(ND_OP_FLAG_SILENT_SUCCESS | ND_OP_FLAG_READ_FENCE | ND_OP_FLAG_INLINE)))
        return ND_INVALID_PARAMETER_6;
    return read_write(sq, context, sge, n, flags, short_way_most(sq, flags), Nd2RequestTypeWrite, address, token);
}

HRESULT qp_write(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n, uint64_t address, uint32_t token,
                 uint32_t flags)
{
    struct queue *sq = &qp->sq;

    if (unlikely(flags))
        return write_flagged(sq, context, sge, n, address, token, flags);
    return read_write(sq, context, sge, n, 0, sq->short_most, Nd2RequestTypeWrite, address, token);
}

/* ---- receive ---- */

static inline int post_recv(struct queue *rq, struct slot *slot, struct ibv_sge *sges, uint32_t n)
{
    struct ibv_sge nothing = { 0, 0, 0 };
    struct ibv_recv_wr wr, *bad;
    int result;

    wr.wr_id = (uintptr_t)slot;
    wr.next = NULL;
    wr.sg_list = sges;
    wr.num_sge = (int)n;
    result = ibv_post_recv(rq->verbs, &wr, &bad);
    /* siw refuses a receive without entries, and takes one of no bytes. */
    if (!n && result && post_errno(result) == EINVAL) {
        wr.sg_list = &nothing;
        wr.num_sge = 1;
        result = ibv_post_recv(rq->verbs, &wr, &bad);
    }
    return result;
}

int queue_repost_locked(struct queue *rq)
{
    uint32_t tail = __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE);

    for (uint32_t i = tail; i != rq->head; i++) {
        uint32_t index = i & rq->mask;
        int error =
            post_errno(post_recv(rq, &rq->slots[index], &rq->sges[(size_t)index * rq->max_sge], rq->sge_counts[index]));

        if (error)
            return error;
    }
    return 0;
}

/* Queue lock held. Before the connection on iWARP: the entries are kept, the request may have to be posted again. */
static HRESULT receive_saved_locked(struct queue *rq, void *context, const ND2_SGE *sge, uint32_t n, bool post)
{
    uint32_t index = rq->head & rq->mask;
    struct ibv_sge *kept = &rq->sges[(size_t)index * rq->max_sge];
    struct slot *slot;
    int result = 0;

    if (rq->head == rq->limit && !make_room(rq))
        return ND_NO_MORE_ENTRIES;
    if (n)
        memcpy(kept, device_sges(kept, sge, n), n * sizeof(*kept));
    rq->sge_counts[index] = n;
    slot = next_slot(rq, context);
    slot->seq = rq->head;
    slot->spare = key_of(sge, n, 0);
    if (post)
        result = post_recv(rq, slot, kept, n);
    if (result)
        return post_failed(rq, result);
    rq->head++;
    return ND_SUCCESS;
}

/* Queue lock held, ring full: what a batch holds back will not make room by itself. */
static bool make_room_in_batch(struct queue *queue, bool *failed)
{
    *failed = !batch_post_locked(queue);
    return make_room(queue);
}

/* Queue lock held. */
static bool receive_batched_locked(struct queue *rq, void *context, const ND2_SGE *sge, uint32_t n)
{
    struct ibv_sge copy[SGE_COPIES];
    struct slot *slot = next_slot(rq, context);

    slot->seq = rq->head;
    slot->spare = key_of(sge, n, 0);
    return batch_receive_locked(rq, (uintptr_t)slot, device_sges(copy, sge, n), n);
}

/* Queue lock held, released here. */
static __attribute__((noinline)) HRESULT receive_not_live(struct queue *rq, void *context, const ND2_SGE *sge,
                                                          uint32_t n)
{
    uint32_t mode = __atomic_load_n(&rq->mode, __ATOMIC_RELAXED);
    bool failed = false, soft = false;
    HRESULT status = ND_SUCCESS;

    if (mode == QUEUE_IDLE) {
        wordlock_unlock(&rq->lock);
        return ND_CONNECTION_INVALID;
    }
    if (mode == QUEUE_BATCH && rq->head == rq->limit && !make_room_in_batch(rq, &failed))
        status = ND_NO_MORE_ENTRIES;
    else
        mode = __atomic_load_n(&rq->mode, __ATOMIC_RELAXED);
    if (status != ND_SUCCESS) {
        /* Full. */
    } else if (mode == QUEUE_BATCH) {
        failed = !receive_batched_locked(rq, context, sge, n);
    } else if (mode == QUEUE_SOFT) {
        status = keep_locked(rq, context, Nd2RequestTypeReceive);
        soft = true;
    } else {
        status = receive_saved_locked(rq, context, sge, n, mode == QUEUE_SAVE);
    }
    wordlock_unlock(&rq->lock);
    if (failed)
        queue_failed(rq);
    return settle(rq, status, soft);
}

/* Queue lock held, released here; the queue is live and has room. */
static inline HRESULT receive_locked(struct queue *rq, void *context, const ND2_SGE *sge, struct ibv_sge *sges,
                                     uint32_t n)
{
    struct slot *slot = next_slot(rq, context);
    int result;

    slot->seq = rq->head;
    slot->spare = key_of(sge, n, 0);
    result = post_recv(rq, slot, sges, n);
    if (unlikely(result))
        return post_failed_locked(rq, result, NULL);
    rq->head++;
    wordlock_unlock(&rq->lock);
    return ND_SUCCESS;
}

static __attribute__((noinline)) HRESULT receive_any(struct queue *rq, void *context, const ND2_SGE *sge, uint32_t n,
                                                     bool locked)
{
    struct ibv_sge copy[SGE_COPIES];

    if (locked)
        wordlock_unlock(&rq->lock);
    if (rq->srq) /* never live with room, so every call comes here */
        return ND_INVALID_DEVICE_REQUEST;
    if (n > rq->max_sge)
        return ND_DATA_OVERRUN;
    if (!sge && n)
        return ND_INVALID_PARAMETER_2;
    if (total_length(sge, n) > rq->max_transfer)
        return ND_BUFFER_OVERFLOW;
    wordlock_lock(&rq->lock);
    if (__atomic_load_n(&rq->mode, __ATOMIC_RELAXED) != QUEUE_LIVE)
        return receive_not_live(rq, context, sge, n);
    if (rq->head == rq->limit) {
        if (!make_room(rq)) {
            wordlock_unlock(&rq->lock);
            return settle(rq, ND_NO_MORE_ENTRIES, false);
        }
        if (__atomic_load_n(&rq->mode, __ATOMIC_RELAXED) != QUEUE_LIVE)
            return receive_not_live(rq, context, sge, n);
    }
    return receive_locked(rq, context, sge, device_sges(copy, sge, n), n);
}

/* The same for one entry. */
static inline HRESULT receive_one_locked(struct queue *rq, void *context, const ND2_SGE *sge)
{
    struct slot *slot = next_slot(rq, context);
    struct ibv_sge copy[1];
    int result;

    slot->seq = rq->head;
    slot->spare = sge->MemoryRegionToken;
    rq->one.wr_id = (uintptr_t)slot;
    rq->one.sg_list = device_sges(copy, sge, 1);
    result = ibv_post_recv(rq->verbs, &rq->one, &rq->bad);
    if (unlikely(result))
        return post_failed_locked(rq, result, NULL);
    rq->head++;
    wordlock_unlock(&rq->lock);
    return ND_SUCCESS;
}

HRESULT qp_receive(struct qp *qp, void *context, const ND2_SGE *sge, uint32_t n)
{
    struct queue *rq = OPAQUE(&qp->rq);

    if (unlikely(!is_short(sge, n, rq->max_transfer)))
        return receive_any(rq, context, sge, n, false);
    if (unlikely(!wordlock_trylock(&rq->lock)))
        return receive_any(rq, context, sge, 1, false);
    if (unlikely(!takes_one_locked(rq)))
        return receive_any(rq, context, sge, 1, true);
    return receive_one_locked(rq, context, sge);
}
