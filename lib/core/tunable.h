/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TUNABLE_H
#define NDVERBS_TUNABLE_H

#include <stdint.h>

/* Values that the environment may change (NDVERBS_<NAME in upper case>), read once at first use. The table with
 * defaults, units and ranges is in tunable.c; lib/doc/environment.md lists it for users. An unusable value is logged
 * and the default kept. */
struct tunables {
    uint32_t retry_count;           /* RTS retry_cnt, 0..6 */
    uint32_t rnr_retry;             /* RTS rnr_retry, 0..7 */
    uint32_t min_rnr_timer;         /* RTR min_rnr_timer of plain QPs, 0..31 */
    uint32_t min_rnr_timer_srq;     /* the same of QPs with a shared receive queue */
    uint32_t ack_timeout;           /* 4.096 us * 2^n, plain QPs */
    uint32_t ack_timeout_srq;       /* towards a peer with a shared receive queue */
    uint32_t connect_timeout_ms;    /* 0: the kernel's policy */
    uint32_t resolve_timeout_ms;    /* address and route resolution */
    uint32_t disconnect_timeout_ms; /* safety timer behind the kernel's own */
    uint32_t listen_queue_max;      /* requests kept beyond the application's backlog */
    uint32_t cq_safety_poll_ms;     /* 0: none */
    uint32_t spin_us;               /* a waiting thread looks for completions so long before it sleeps; 0: not at all */
    uint32_t guard_ms;              /* so long nobody has to have waited until the background thread runs the loop */
    uint32_t v1_inline_size;        /* version 1: Sends and Writes up to this size (bytes) are inlined */
    uint32_t trim_private_data;     /* 1: trim trailing zeros of received private data (debugging aid) */
    const char *only_device;  /* NDVERBS_ONLY_DEVICE: use only these RDMA devices (names, comma-separated); NULL: all */
    const char *only_address; /* NDVERBS_ONLY_ADDRESS: use only these local addresses; NULL: all */
};
const struct tunables *tunables(void);

/* Reads the environment again, for unit tests: not while another thread uses the library. */
void tunables_reload(void);

#endif
