/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_BENCH_RAWLAYER_H
#define NDVERBS_BENCH_RAWLAYER_H

/* What Network Direct asks for above verbs, written plainly and without the library: any thread may post and take results (a mutex
 * of libc for each queue), what is more than the depth is refused, and a result names its request, its kind, its queue pair's
 * context and its bytes, with errors too, whose completions carry nothing but wr_id. rawpingpong uses it with
 * RAWPINGPONG_LAYER=1, rawconnections with RAWCONNECTIONS_LAYER=1. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct layer_slot {
    struct layer_queue *queue;
    uintptr_t context;
    uint32_t kind, bytes;
};

struct layer_queue {
    pthread_mutex_t lock;
    struct layer_slot *slots;
    void *qp_context;
    uint32_t depth, mask, posted, taken;
};

struct layer {
    pthread_mutex_t lock; /* of the completion queue */
    struct layer_queue send, receive;
};

struct layer_result {
    int status;
    uint32_t bytes, kind;
    void *qp_context;
    uintptr_t context;
};

struct layer *layer_new(uint32_t depth, void *qp_context); /* NULL: out of memory */
void layer_free(struct layer *layer);

/* 0 or errno. `wr->wr_id` is the request's context. */
int layer_post_send(struct layer *layer, struct ibv_qp *qp, struct ibv_send_wr *wr);
int layer_post_recv(struct layer *layer, struct ibv_qp *qp, struct ibv_recv_wr *wr);
/* At most 16 at a time; -1: the queue failed. */
int layer_results(struct layer *layer, struct ibv_cq *cq, struct layer_result *results, unsigned int n);

#endif
