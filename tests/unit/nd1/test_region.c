/* SPDX-License-Identifier: MIT */

/* RegisterMemory and DeregisterMemory: ndspi-v1.md section 5, ndspi.md 5.8. */

#include "side.h"

#include <errno.h>

#include "nd1/nd1.h"

static INDAdapter *adapter;
static char buffer[4096];

SETUP
{
    front_setup();
    adapter = side_adapter("10.1.1.1");
}

TEARDOWN
{
    front_release(adapter);
    front_teardown();
}

/* The key that posts will name. */
static uint32_t key_of(ND_MR_HANDLE mr)
{
    return nd1_lkey(mr);
}

/* tests/lists: A37. */
/* A37: *phMr is filled before the call returns, and only on success (RegisterMemory__errors). */
TEST(RegisterMemory__key_is_right_when_it_returns)
{
    const struct fake_call *call;
    const struct ibv_mr *mr;
    ND_MR_HANDLE handle = NULL;
    OVERLAPPED ov;

    overlapped_fresh(&ov);
    ok_status(CALL(adapter, RegisterMemory, buffer, sizeof(buffer), &ov, &handle), ND_PENDING);
    mr = fake_object(FAKE_OBJ_MR, -1);
    ok(handle != NULL);
    ok_uint(key_of(handle), ==, mr->lkey);
    ok_status(CALL(adapter, GetOverlappedResult, &ov, NULL, FALSE), ND_SUCCESS);
    call = fake_log_find(FAKE_ibv_reg_mr, -1);
    ok_ptr(call->arg.reg_mr.addr, ==, buffer);
    ok_uint(call->arg.reg_mr.length, ==, sizeof(buffer));
    /* Remote rights come by windows alone. */
    ok_uint(call->arg.reg_mr.access, ==, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_PENDING);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    ok_uint(key_of(handle), ==, 0);
}

TEST(RegisterMemory__errors)
{
    ND_ADAPTER_INFO info;
    SIZE_T size = sizeof(info);
    OVERLAPPED ov;

    ok_status(CALL(adapter, Query, 1, &info, &size), ND_SUCCESS);
    {
        const struct {
            const void *buffer;
            SIZE_T length;
            int error; /* of ibv_reg_mr */
            HRESULT status;
        } rows[] = {
            { NULL, 0, 0, ND_INVALID_PARAMETER_2 },
            { buffer, 0, 0, ND_INVALID_PARAMETER_2 },
            { NULL, 16, 0, ND_ACCESS_VIOLATION },
            { buffer, info.MaxRegistrationSize + 1, 0, ND_INVALID_PARAMETER_2 },
            { buffer, 16, EFAULT, ND_ACCESS_VIOLATION },
            { buffer, 16, ENOMEM, ND_INSUFFICIENT_RESOURCES },
            { buffer, 16, EINVAL, ND_INVALID_PARAMETER_2 },
            { buffer, 16, EIO, ND_DEVICE_REMOVED },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
            ND_MR_HANDLE handle = NULL;
            HRESULT status;

            if (info.MaxRegistrationSize == (SIZE_T)-1 && rows[i].length == 0 && i == 3)
                continue;
            overlapped_fresh(&ov);
            if (rows[i].error)
                fake_fail(FAKE_ibv_reg_mr, 1, rows[i].error);
            status = CALL(adapter, RegisterMemory, rows[i].buffer, rows[i].length, &ov, &handle);
            ok_msg(status == rows[i].status, "row %zu: %s, not %s", i, ndverbs_status_text(status),
                   ndverbs_status_text(rows[i].status));
            ok_untouched(&ov);
            ok_ptr((void *)handle, ==, NULL);
        }
    }
    overlapped_fresh(&ov);
    ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, NULL), ND_INVALID_PARAMETER_4);
    ok_status(CALL(adapter, RegisterMemory, buffer, 16, NULL, &(ND_MR_HANDLE){ NULL }), ND_INVALID_PARAMETER);
    ov.hEvent = (HANDLE)(ULONG_PTR)0x4444; /* no event */
    ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &(ND_MR_HANDLE){ NULL }), ND_INVALID_HANDLE);
    ok_untouched(&ov);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
}

/* The request and core's region have no other word for it; our record has. */
TEST(RegisterMemory__no_memory)
{
    static const struct {
        unsigned nth;
        HRESULT status;
    } rows[] = {
        { 1, ND_INSUFFICIENT_RESOURCES }, /* the request */
        { 2, ND_NO_MEMORY },              /* the records, of which there are none yet */
        { 1, ND_NO_MEMORY },              /* the file has kept the request */
        { 2, ND_INSUFFICIENT_RESOURCES }, /* the region */
        { 1, ND_INSUFFICIENT_RESOURCES }, /* the records are there */
    };
    ND_MR_HANDLE handle = NULL;
    OVERLAPPED ov;

    for (size_t i = 0; i < COUNT(rows); i++) {
        HRESULT status;

        overlapped_fresh(&ov);
        fake_alloc_fail(rows[i].nth);
        status = CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle);
        ok(!fake_alloc_pending());
        fake_alloc_clear();
        ok_msg(status == rows[i].status, "row %zu: %s, not %s", i, ndverbs_status_text(status),
               ndverbs_status_text(rows[i].status));
        ok_untouched(&ov);
        ok_ptr((void *)handle, ==, NULL);
    }
    ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle), ND_PENDING);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_PENDING);
}

/* A registration that fails leaves nothing, wherever it fails: no record waits for somebody to ask for its result. */
TEST(RegisterMemory__failure_leaks_nothing)
{
    ND_MR_HANDLE kept[200], handle;
    unsigned n = 1;
    OVERLAPPED ov = { 0 };

    /* What this thread and the file need once. */
    ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle), ND_PENDING);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_PENDING);
    for (;; n++) {
        HRESULT status;

        overlapped_fresh(&ov);
        fake_alloc_fail(n);
        status = CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok(status == ND_INSUFFICIENT_RESOURCES || status == ND_NO_MEMORY);
        ok_untouched(&ov);
        ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    }
    fake_alloc_clear();
    ok_uint(n, >, 1);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_PENDING);
    /* The records of a thousand failures: as many as of none. */
    for (int i = 0; i < 1000; i++) {
        fake_fail(FAKE_ibv_reg_mr, 1, ENOMEM);
        ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle), ND_INSUFFICIENT_RESOURCES);
    }
    n = (unsigned)fake_alloc_count();
    for (int i = 0; i < 1000; i++) {
        fake_fail(FAKE_ibv_reg_mr, 1, ENOMEM);
        ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &handle), ND_INSUFFICIENT_RESOURCES);
    }
    ok_uint(fake_alloc_count() - n, ==, 1000); /* core's own record, freed */
    for (size_t i = 0; i < COUNT(kept); i++)
        ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &kept[i]), ND_PENDING);
    for (size_t i = 0; i < COUNT(kept); i++)
        ok_status(CALL(adapter, DeregisterMemory, kept[i], &ov), ND_PENDING);
}

TEST(DeregisterMemory__rows)
{
    INDAdapter *other = side_adapter("10.1.1.1");
    ND_MR_HANDLE handle, second;
    uint32_t key;
    OVERLAPPED ov;

    ok_status(CALL(adapter, RegisterMemory, buffer, 16, memset(&ov, 0, sizeof(ov)), &handle), ND_PENDING);
    overlapped_fresh(&ov);
    ok_status(CALL(adapter, DeregisterMemory, NULL, &ov), ND_INVALID_HANDLE);
    ok_status(CALL(adapter, DeregisterMemory, (ND_MR_HANDLE)(void *)&ov, &ov), ND_INVALID_HANDLE);
    ok_status(CALL(adapter, DeregisterMemory, (ND_MR_HANDLE)(ULONG_PTR)0x1234, &ov), ND_INVALID_HANDLE);
    ok_status(CALL(other, DeregisterMemory, handle, &ov), ND_INVALID_HANDLE); /* not this adapter's */
    ok_untouched(&ov);
    ok_status(CALL(adapter, DeregisterMemory, handle, NULL), ND_INVALID_PARAMETER);
    key = key_of(handle);
    fake_fail(FAKE_ibv_dereg_mr, 1, EINVAL);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_DEVICE_BUSY);
    ok_untouched(&ov);
    ok_uint(key_of(handle), ==, key);
    ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_PENDING);
    /* Stale, also while others come and go. */
    for (int i = 0; i < 30; i++) {
        ok_status(CALL(adapter, RegisterMemory, buffer, 16, &ov, &second), ND_PENDING);
        ok_ptr((void *)second, !=, (void *)handle);
        overlapped_fresh(&ov);
        ok_status(CALL(adapter, DeregisterMemory, handle, &ov), ND_INVALID_HANDLE);
        ok_untouched(&ov);
        ok_status(CALL(adapter, DeregisterMemory, second, &ov), ND_PENDING);
    }
    front_release(other);
}

TEST(Adapter_v1_Release__deregisters)
{
    INDAdapter *other = side_adapter("10.1.1.1");
    ND_MR_HANDLE handles[100];
    OVERLAPPED ov = { 0 };

    for (size_t i = 0; i < COUNT(handles); i++)
        ok_status(CALL(other, RegisterMemory, buffer, 16, &ov, &handles[i]), ND_PENDING);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, COUNT(handles));
    front_release(other);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
}
