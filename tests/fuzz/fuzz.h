/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_FUZZ_H
#define NDVERBS_FUZZ_H

/* What the fuzzers share: reading their input. A property that does not hold ends the process, which libFuzzer reports with
 * the input. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
    const uint8_t *next, *end;
};

/* 0 behind the end, so that every input is whole. */
static inline uint8_t input_byte(struct input *input)
{
    return input->next < input->end ? *input->next++ : 0;
}

static inline uint64_t input_u64(struct input *input)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | input_byte(input);
    return value;
}

static inline size_t input_left(const struct input *input)
{
    return (size_t)(input->end - input->next);
}

#define must(expr)                                                                   \
    do {                                                                             \
        if (!(expr)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #expr); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
