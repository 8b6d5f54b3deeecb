/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ABI_OBJECT_H
#define TESTS_ABI_OBJECT_H

#include <ndspi.h>

/* What an object saw of the last call: enough to notice a wrong slot or a shifted argument. */
struct seen {
    const char *method;
    const void *self;
    uint64_t arguments[10];
};

#ifdef __cplusplus
extern "C" {
#endif

extern struct seen seen;

/* Objects in C. Their last Release gives nothing back: they are static. */
IND2MemoryRegion *c_region(void);
IND2Adapter *c_adapter(void);

/* Calls every method of an object through lpVtbl; the number of calls that did not arrive as made. `calls` counts all. */
unsigned drive_region_c(IND2MemoryRegion *region, unsigned *calls);
unsigned drive_adapter_c(IND2Adapter *adapter, unsigned *calls);

#ifdef __cplusplus
}
#endif

/* The values that both drivers pass and both objects return. */
#define REGION_LOCAL_TOKEN  0x80000001u
#define REGION_REMOTE_TOKEN 0xfedcba98u
#define REGION_LENGTH       ((SIZE_T)-4096)

#endif
