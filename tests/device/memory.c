/* SPDX-License-Identifier: MIT */
/* Memory registration. ndspi-v2.md 8, ndspi.md 5.8. */
#include "holdings.h"
#include "session.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct region {
    struct host host;
    IND2MemoryRegion *mr;
    HANDLE event;
    OVERLAPPED ov;
    BYTE *buffer;
};

#define SIZE 65536

static void region_make(struct region *region)
{
    host_open(&region->host);
    ok_status(
        CALL(region->host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, region->host.file, (void **)&region->mr),
        ND_SUCCESS);
    region->event = event_auto();
    overlapped_rubbish(&region->ov, region->event);
    region->buffer = aligned_alloc(4096, SIZE);
    memset(region->buffer, 1, SIZE);
}

static void region_drop(struct region *region)
{
    release_last(region->mr);
    free(region->buffer);
    ok(CloseHandle(region->event));
    host_close(&region->host);
}

static HRESULT region_register(struct region *region, const void *buffer, SIZE_T size, ULONG flags)
{
    return finish(region->mr, CALL(region->mr, Register, buffer, size, flags, &region->ov), &region->ov);
}

static HRESULT region_deregister(struct region *region)
{
    return finish(region->mr, CALL(region->mr, Deregister, &region->ov), &region->ov);
}

ALONE(register_cycles)
{
    static const ULONG flags[] = {
        0,
        ND_MR_FLAG_ALLOW_LOCAL_WRITE,
        ND_MR_FLAG_ALLOW_REMOTE_READ,
        ND_MR_FLAG_ALLOW_REMOTE_WRITE,
        ND_MR_FLAG_RDMA_READ_SINK,
        ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_DO_NOT_SECURE_VM,
        ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE |
            ND_MR_FLAG_RDMA_READ_SINK,
    };
    struct region region;

    region_make(&region);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        /* Odd addresses and lengths too. */
        ok_status(region_register(&region, region.buffer + i, SIZE - 3 * i, flags[i]), ND_SUCCESS);
        ok_status(region_deregister(&region), ND_SUCCESS);
    }
    region_drop(&region);
}

/* The keys are right when Register has returned, not only when it has completed (design.md 4). */
ALONE(keys_right_at_return)
{
    struct region region;
    UINT32 local, remote;
    HRESULT hr;

    region_make(&region);
    for (int i = 0; i < 20; i++) {
        hr = CALL(region.mr, Register, region.buffer, SIZE, ND_MR_FLAG_ALLOW_REMOTE_WRITE, &region.ov);
        local = CALL(region.mr, GetLocalToken);
        remote = CALL(region.mr, GetRemoteToken);
        ok_status(hr, ND_PENDING);
        ok_status(finish(region.mr, hr, &region.ov), ND_SUCCESS);
        ok_uint(CALL(region.mr, GetLocalToken), ==, local);
        ok_uint(CALL(region.mr, GetRemoteToken), ==, remote);
        ok_status(region_deregister(&region), ND_SUCCESS);
    }
    region_drop(&region);
}

ALONE(register_bad_arguments)
{
    struct region region;
    void *hole, *read_only;
    HRESULT hr;

    region_make(&region);
    hole = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    read_only = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ok(hole != MAP_FAILED && read_only != MAP_FAILED);

    ok_status(region_register(&region, NULL, 0, 0), ND_INVALID_PARAMETER);
    ok_status(region_register(&region, region.buffer, 0, 0), ND_INVALID_BUFFER_SIZE);
    ok_status(region_register(&region, hole, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_ACCESS_VIOLATION);
    ok_status(region_register(&region, read_only, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_ACCESS_VIOLATION);
    ok_int(munmap(hole, SIZE), ==, 0);
    ok_status(region_register(&region, hole, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_ACCESS_VIOLATION);
    ok_int(munmap(read_only, SIZE), ==, 0);
    if (region.host.info.MaxRegistrationSize < SIZE_MAX)
        ok_status(region_register(&region, region.buffer, region.host.info.MaxRegistrationSize + 1, 0),
                  ND_INVALID_PARAMETER);
    hr = region_register(&region, region.buffer, SIZE_MAX - 4096, 0); /* wraps */
    ok_msg(hr == ND_INVALID_PARAMETER || hr == ND_ACCESS_VIOLATION, "0x%08x", (unsigned)hr);
    ok(FAILED(CALL(region.mr, Register, region.buffer, SIZE, 0x4000, &region.ov)));
    ok_status(CALL(region.mr, Register, region.buffer, SIZE, 0, NULL), ND_INVALID_PARAMETER);
    ok_status(region_deregister(&region), ND_INVALID_DEVICE_STATE);

    /* The object is as good as new. */
    ok_status(region_register(&region, region.buffer, SIZE, 0), ND_SUCCESS);
    ok_status(region_register(&region, region.buffer, SIZE, 0), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(region.mr, Deregister, NULL), ND_INVALID_PARAMETER);
    ok_status(region_deregister(&region), ND_SUCCESS);
    ok_status(region_deregister(&region), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(region.mr, CancelOverlappedRequests), ND_SUCCESS);
    region_drop(&region);
}

/* Samples deregister without waiting, release at once and free the buffer; or only release. */
ALONE(release_without_waiting)
{
    struct region region;

    region_make(&region);
    ok_status(region_register(&region, region.buffer, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_SUCCESS);
    ok_status(CALL(region.mr, Deregister, &region.ov), ND_PENDING);
    release_last(region.mr);
    memset(&region.ov, 0, sizeof(region.ov));
    region.ov.hEvent = region.event;

    for (int i = 0; i < 2; i++) {
        ok_status(
            CALL(region.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, region.host.file, (void **)&region.mr),
            ND_SUCCESS);
        if (i)
            break;
        ok_status(CALL(region.mr, Register, region.buffer, SIZE, 0, &region.ov), ND_PENDING);
        release_last(region.mr);
    }
    region_drop(&region);
}

ALONE(one_buffer_many_regions)
{
    IND2MemoryRegion *more[8];
    struct region region;

    region_make(&region);
    ok_status(region_register(&region, region.buffer, SIZE, ND_MR_FLAG_ALLOW_REMOTE_WRITE), ND_SUCCESS);
    for (int i = 0; i < 8; i++) {
        ok_status(
            CALL(region.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, region.host.file, (void **)&more[i]),
            ND_SUCCESS);
        ok_status(finish(more[i],
                         CALL(more[i], Register, region.buffer, SIZE,
                              i % 2 ? ND_MR_FLAG_ALLOW_REMOTE_READ : ND_MR_FLAG_ALLOW_LOCAL_WRITE, &region.ov),
                         &region.ov),
                  ND_SUCCESS);
        ok_uint(CALL(more[i], GetLocalToken), !=, CALL(region.mr, GetLocalToken));
    }
    for (int i = 0; i < 8; i++)
        release_last(more[i]);
    region_drop(&region);
}

/* Registering and releasing many times pins nothing in the end. */
ALONE(nothing_stays_pinned)
{
    struct region region;
    unsigned long pinned;
    int descriptors;

    region_make(&region);
    ok_status(region_register(&region, region.buffer, SIZE, 0), ND_SUCCESS);
    ok_status(region_deregister(&region), ND_SUCCESS);
    pinned = process_status("VmPin") + process_status("VmLck");
    descriptors = open_descriptors();
    for (int i = 0; i < 200; i++) {
        IND2MemoryRegion *mr;

        ok_status(CALL(region.host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, region.host.file, (void **)&mr),
                  ND_SUCCESS);
        ok_status(
            finish(mr, CALL(mr, Register, region.buffer, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &region.ov), &region.ov),
            ND_SUCCESS);
        if (i == 0)
            ok_uint(process_status("VmPin") + process_status("VmLck"), >, pinned);
        release_last(mr);
    }
    ok_uint(process_status("VmPin") + process_status("VmLck"), ==, pinned);
    ok_int(open_descriptors(), ==, descriptors);
    region_drop(&region);
}

/* The process's memory lock limit (microsoft/NetworkDirect#14): the status, and the line that says which limit that was (D5). */
ALONE(memory_lock_limit)
{
    static const char log[] = "/tmp/ndverbs-memlock.log";
    struct region region;
    void *large;

    runner_log_to(log);
    limit_locked_memory(1 << 20);
    region_make(&region);
    large = aligned_alloc(4096, 4 << 20);
    ok(large != NULL);
    memset(large, 1, 4 << 20);
    ok_status(region_register(&region, large, 4 << 20, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_INSUFFICIENT_RESOURCES);
    ok_int(runner_log_lines(log, "ibv_reg_mr of 4194304 bytes on "), ==, 1);
    ok_int(runner_log_lines(log, " (RLIMIT_MEMLOCK, \"ulimit -l\", is 1048576 bytes): Cannot allocate memory: "
                                 "ND_INSUFFICIENT_RESOURCES"),
           ==, 1);
    ok_status(region_register(&region, region.buffer, SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE), ND_SUCCESS);
    ok_status(region_deregister(&region), ND_SUCCESS);
    free(large);
    region_drop(&region);
}

RUNNER_MAIN
