/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_INTEROP_H
#define NDVERBS_DEVICE_INTEROP_H

/* What interop.c and rawpeer.c agree on; includes nothing of either side. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTEROP_CALLER_DATA "from the caller"
#define INTEROP_CALLEE_DATA "from the one called, which may be longer than the caller's data can be: 148 bytes"
#define INTEROP_MESSAGE     1500
#define INTEROP_BLOCK       10000

/* The buffer of each side. */
#define INTEROP_OUT      0
#define INTEROP_IN       2048
#define INTEROP_INFO_OUT 4096
#define INTEROP_INFO_IN  4160
#define INTEROP_BYTE_IN  4224
#define INTEROP_SOURCE   8192
#define INTEROP_SINK     (8192 + 16384)
#define INTEROP_TARGET   (8192 + 32768)
#define INTEROP_BUFFER   (8192 + 49152)

/* Rawpeer's part "solicited": so many messages of a byte, each answered by one; the last one of four is solicited. */
#define INTEROP_MESSAGES 12

static inline bool interop_solicited(size_t message)
{
    return message % 4 == 3;
}

/* As rping has it: all in network byte order. */
struct interop_info {
    uint64_t address;
    uint32_t token;
    uint32_t size;
};

static inline void interop_fill(uint8_t *at, size_t size, int seed)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(i * 31 + (i >> 8) + (size_t)seed);
}

static inline bool interop_same(const uint8_t *at, size_t size, int seed)
{
    for (size_t i = 0; i < size; i++)
        if (at[i] != (uint8_t)(i * 31 + (i >> 8) + (size_t)seed))
            return false;
    return true;
}

#endif
