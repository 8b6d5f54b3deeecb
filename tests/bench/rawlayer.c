/* SPDX-License-Identifier: MIT */
#include "rawlayer.h"

#include <errno.h>
#include <stdlib.h>

static bool queue_init(struct layer_queue *queue, uint32_t depth, void *qp_context)
{
    uint32_t size = 1;

    while (size < depth)
        size <<= 1;
    *queue = (struct layer_queue){ .depth = depth, .mask = size - 1, .qp_context = qp_context };
    pthread_mutex_init(&queue->lock, NULL);
    queue->slots = calloc(size, sizeof(*queue->slots));
    for (uint32_t i = 0; queue->slots && i < size; i++)
        queue->slots[i].queue = queue;
    return queue->slots;
}

struct layer *layer_new(uint32_t depth, void *qp_context)
{
    struct layer *layer = calloc(1, sizeof(*layer));

    if (!layer)
        return NULL;
    pthread_mutex_init(&layer->lock, NULL);
    if (queue_init(&layer->send, depth, qp_context) && queue_init(&layer->receive, depth, qp_context))
        return layer;
    layer_free(layer);
    return NULL;
}

void layer_free(struct layer *layer)
{
    if (!layer)
        return;
    free(layer->send.slots);
    free(layer->receive.slots);
    free(layer);
}

/* Locked: the slot of the next request; NULL: the queue is full. */
static struct layer_slot *slot_next(struct layer_queue *queue, uintptr_t context, uint32_t kind, uint32_t bytes)
{
    struct layer_slot *slot = &queue->slots[queue->posted & queue->mask];

    if (queue->posted - __atomic_load_n(&queue->taken, __ATOMIC_ACQUIRE) == queue->depth)
        return NULL;
    slot->context = context;
    slot->kind = kind;
    slot->bytes = bytes;
    return slot;
}

int layer_post_send(struct layer *layer, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct layer_queue *queue = &layer->send;
    struct ibv_send_wr *bad;
    struct layer_slot *slot;
    int error = ENOMEM;

    pthread_mutex_lock(&queue->lock);
    slot = slot_next(queue, (uintptr_t)wr->wr_id, wr->opcode, wr->num_sge ? wr->sg_list->length : 0);
    if (slot) {
        wr->wr_id = (uintptr_t)slot;
        error = ibv_post_send(qp, wr, &bad);
        queue->posted += !error;
    }
    pthread_mutex_unlock(&queue->lock);
    return error;
}

int layer_post_recv(struct layer *layer, struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
    struct layer_queue *queue = &layer->receive;
    struct ibv_recv_wr *bad;
    struct layer_slot *slot;
    int error = ENOMEM;

    pthread_mutex_lock(&queue->lock);
    slot = slot_next(queue, (uintptr_t)wr->wr_id, IBV_WC_RECV, 0);
    if (slot) {
        wr->wr_id = (uintptr_t)slot;
        error = ibv_post_recv(qp, wr, &bad);
        queue->posted += !error;
    }
    pthread_mutex_unlock(&queue->lock);
    return error;
}

int layer_results(struct layer *layer, struct ibv_cq *cq, struct layer_result *results, unsigned int n)
{
    struct ibv_wc wc[16];
    int got;

    pthread_mutex_lock(&layer->lock);
    got = ibv_poll_cq(cq, n < 16 ? (int)n : 16, wc);
    for (int i = 0; i < got; i++) {
        struct layer_slot *slot = (struct layer_slot *)(uintptr_t)wc[i].wr_id;
        struct layer_queue *queue = slot->queue;

        results[i] = (struct layer_result){
            .status = wc[i].status,
            .bytes = slot->kind == IBV_WC_RECV ? wc[i].byte_len : slot->bytes,
            .kind = slot->kind,
            .qp_context = queue->qp_context,
            .context = slot->context,
        };
        __atomic_store_n(&queue->taken, queue->taken + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&layer->lock);
    return got;
}
