/* SPDX-License-Identifier: MIT */

/* IND2MemoryRegion: ndspi-v2.md section 8, ndspi.md 5.8. */

#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static IND2Adapter *adapter;
static IND2MemoryRegion *region;
static HANDLE file;
static char buffer[4096];

SETUP
{
    front_setup();
    adapter = front_open("10.1.1.1");
    file = front_file(adapter);
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&region), ND_SUCCESS);
}

TEARDOWN
{
    CloseHandle(file);
    front_release(region);
    front_release(adapter);
    front_teardown();
}

static void poison(OVERLAPPED *ov)
{
    memset(ov, 0xa5, sizeof(*ov));
    ov->hEvent = NULL;
}

static void ok_untouched(const OVERLAPPED *ov)
{
    ok_uint(ov->Internal, ==, (ULONG_PTR)0xa5a5a5a5a5a5a5a5u);
    ok_uint(ov->InternalHigh, ==, (ULONG_PTR)0xa5a5a5a5a5a5a5a5u);
}

TEST(Register__tokens_are_right_when_it_returns)
{
    const struct ibv_mr *mr;
    OVERLAPPED ov;

    ok_uint(CALL(region, GetLocalToken), ==, 0);
    poison(&ov);
    ok_status(CALL(region, Register, buffer, sizeof(buffer), ND_MR_FLAG_ALLOW_REMOTE_WRITE, &ov), ND_PENDING);
    mr = fake_object(FAKE_OBJ_MR, -1);
    ok_uint(CALL(region, GetLocalToken), ==, mr->lkey);
    ok_uint(CALL(region, GetRemoteToken), ==, htonl(mr->rkey));
    ok_status(CALL(region, GetOverlappedResult, &ov, FALSE), ND_SUCCESS);
    ok_status(CALL(region, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    ok_ptr(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.addr, ==, buffer);
    ok_uint(fake_log_find(FAKE_ibv_reg_mr, -1)->arg.reg_mr.length, ==, sizeof(buffer));
    poison(&ov);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING);
    ok_status(CALL(region, GetOverlappedResult, &ov, FALSE), ND_SUCCESS);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    ok_uint(CALL(region, GetLocalToken), ==, 0);
    ok_uint(CALL(region, GetRemoteToken), ==, 0);
}

TEST(Register__completes_through_event_and_port)
{
    HANDLE event = CreateEventW(NULL, FALSE, FALSE, NULL);
    HANDLE port = CreateIoCompletionPort(file, NULL, 77, 0);
    OVERLAPPED ov, *got = NULL;
    ULONG_PTR key = 0;
    DWORD bytes = 1;

    poison(&ov);
    ov.hEvent = event;
    ok_status(CALL(region, Register, buffer, 1, 0, &ov), ND_PENDING);
    ok_uint(WaitForSingleObject(event, 0), ==, WAIT_OBJECT_0);
    ok(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
    ok_ptr(got, ==, &ov);
    ok_uint(key, ==, 77);
    ok_uint(bytes, ==, 0);
    /* The low bit of the event keeps it from the port. */
    poison(&ov);
    ov.hEvent = (HANDLE)((ULONG_PTR)event | 1);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING);
    ok(!GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
    ok_ptr(got, ==, NULL);
    ok_status(CALL(region, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    CloseHandle(event);
    CloseHandle(port);
}

TEST(Register__errors)
{
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    ULONG size = sizeof(info);
    OVERLAPPED ov;

    ok_status(CALL(adapter, Query, &info, &size), ND_SUCCESS);
    {
        const struct {
            const void *buffer;
            SIZE_T length;
            ULONG flags;
            int error; /* of ibv_reg_mr */
            HRESULT status;
        } rows[] = {
            { NULL, 0, 0, 0, ND_INVALID_PARAMETER },
            { buffer, 0, 0, 0, ND_INVALID_BUFFER_SIZE },
            { NULL, 16, 0, 0, ND_ACCESS_VIOLATION },
            /* 32 bits: all that there are can be registered, and one more is none. */
            { buffer, info.MaxRegistrationSize + 1, 0, 0,
              info.MaxRegistrationSize < SIZE_MAX ? ND_INVALID_PARAMETER : ND_INVALID_BUFFER_SIZE },
            { buffer, 16, 0x40, 0, ND_INVALID_PARAMETER },
            { buffer, 16, 0, EFAULT, ND_ACCESS_VIOLATION },
            { buffer, 16, 0, ENOMEM, ND_INSUFFICIENT_RESOURCES },
            { buffer, 16, 0, EPERM, ND_INSUFFICIENT_RESOURCES },
            { buffer, 16, 0, EAGAIN, ND_INSUFFICIENT_RESOURCES },
            { buffer, 16, 0, EINVAL, ND_INVALID_PARAMETER },
            { buffer, 16, 0, EIO, ND_DEVICE_REMOVED },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
            HRESULT status;

            poison(&ov);
            if (rows[i].error)
                fake_fail(FAKE_ibv_reg_mr, 1, rows[i].error);
            status = CALL(region, Register, rows[i].buffer, rows[i].length, rows[i].flags, &ov);
            ok_msg(status == rows[i].status, "row %zu: %s, not %s", i, ndverbs_status_text(status),
                   ndverbs_status_text(rows[i].status));
            ok_untouched(&ov);
        }
    }
    ok_status(CALL(region, Register, buffer, 16, 0, NULL), ND_INVALID_PARAMETER);
    poison(&ov);
    ov.hEvent = (HANDLE)(ULONG_PTR)0x4444; /* no event */
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_INVALID_HANDLE);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    ok_uint(CALL(region, GetLocalToken), ==, 0);
    poison(&ov);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING); /* still usable */
}

TEST(Register__out_of_memory)
{
    unsigned n = 1;
    OVERLAPPED ov;

    for (;; n++) {
        HRESULT status;

        poison(&ov);
        fake_alloc_fail(n);
        status = CALL(region, Register, buffer, 16, 0, &ov);
        if (fake_alloc_pending())
            break;
        fake_alloc_clear();
        ok_status(status, ND_INSUFFICIENT_RESOURCES);
        ok_untouched(&ov);
        ok_uint(fake_live(FAKE_OBJ_MR), ==, 0);
    }
    fake_alloc_clear();
    ok_uint(n, >, 1);
}

TEST(Register__states)
{
    OVERLAPPED ov, other;

    poison(&ov);
    ok_status(CALL(region, Deregister, &ov), ND_INVALID_DEVICE_STATE); /* every fixture does it at the end */
    ok_untouched(&ov);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING);
    poison(&other);
    ok_status(CALL(region, Register, buffer, 16, 0, &other), ND_INVALID_DEVICE_STATE);
    ok_untouched(&other);
    ok_status(CALL(region, Deregister, NULL), ND_INVALID_PARAMETER);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING);
    ok_status(CALL(region, Deregister, &ov), ND_INVALID_DEVICE_STATE);
    for (int i = 0; i < 100; i++) { /* cycles on one object */
        ok_status(CALL(region, Register, buffer, sizeof(buffer), 0, &ov), ND_PENDING);
        ok_status(CALL(region, Deregister, &ov), ND_PENDING);
    }
}

static void register_again(struct fake_call *call, void *arg)
{
    OVERLAPPED ov;

    (void)call;
    (void)arg;
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_INVALID_DEVICE_STATE);
    ok_status(CALL(region, Deregister, &ov), ND_INVALID_DEVICE_STATE);
}

TEST(Register__while_another_is_at_it)
{
    OVERLAPPED ov;

    poison(&ov);
    fake_on(FAKE_ibv_reg_mr, register_again, NULL);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING);
    fake_on(FAKE_ibv_dereg_mr, register_again, NULL);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING);
}

TEST(Deregister__device_refuses)
{
    UINT32 token;
    OVERLAPPED ov;

    ok_status(CALL(region, Register, buffer, 16, 0, memset(&ov, 0, sizeof(ov))), ND_PENDING);
    token = CALL(region, GetLocalToken);
    poison(&ov);
    fake_fail(FAKE_ibv_dereg_mr, 1, EINVAL);
    ok_status(CALL(region, Deregister, &ov), ND_DEVICE_BUSY);
    ok_untouched(&ov);
    ok_uint(CALL(region, GetLocalToken), ==, token);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING);
}

TEST(Release__deregisters)
{
    IND2MemoryRegion *second;
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&second), ND_SUCCESS);
    ok_status(CALL(second, Register, buffer, 16, 0, &ov), ND_PENDING);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING); /* the same memory twice */
    ok(CALL(region, GetLocalToken) != CALL(second, GetLocalToken));
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 2);
    front_release(second);
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
}

/* design.md 3: the requests that name the region come back before it goes, those of others stay. */
TEST(Release__while_posted)
{
    IND2CompletionQueue *cq;
    IND2MemoryRegion *second;
    IND2QueuePair *user, *other;
    ND2_RESULT result;
    OVERLAPPED ov;
    ND2_SGE sge;

    memset(&ov, 0, sizeof(ov));
    ok_status(CALL(adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, file, 16, 0, 0, (void **)&cq), ND_SUCCESS);
    ok_status(CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq, (void *)1, 4, 4, 1, 1,
                   0, (void **)&user),
              ND_SUCCESS);
    ok_status(CALL(adapter, CreateQueuePair, &IID_IND2QueuePair, (IUnknown *)cq, (IUnknown *)cq, (void *)2, 4, 4, 1, 1,
                   0, (void **)&other),
              ND_SUCCESS);
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&second), ND_SUCCESS);
    ok_status(CALL(second, Register, buffer, 16, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov), ND_PENDING);
    ok_status(CALL(region, Register, buffer, 16, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov), ND_PENDING);
    sge = (ND2_SGE){ buffer, 16, CALL(second, GetLocalToken) };
    ok_status(CALL(user, Receive, (void *)11, &sge, 1), ND_SUCCESS);
    sge.MemoryRegionToken = CALL(region, GetLocalToken);
    ok_status(CALL(other, Receive, (void *)22, &sge, 1), ND_SUCCESS);
    front_release(second);
    ok_uint(CALL(cq, GetResults, &result, 1), ==, 1);
    ok_status(result.Status, ND_CANCELED);
    ok_ptr(result.QueuePairContext, ==, (void *)1);
    ok_ptr(result.RequestContext, ==, (void *)11);
    ok_uint(CALL(cq, GetResults, &result, 1), ==, 0);
    ok(fake_log_before(FAKE_ibv_modify_qp, FAKE_ibv_dereg_mr));
    ok_uint(fake_live(FAKE_OBJ_MR), ==, 1);
    front_release(user);
    front_release(other);
    front_release(cq);
}

TEST(Cancel_and_GetOverlappedResult__rows)
{
    OVERLAPPED ov;

    ok_status(CALL(region, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(region, GetOverlappedResult, NULL, FALSE), ND_INVALID_PARAMETER);
    memset(&ov, 0, sizeof(ov)); /* never started: Internal is 0 */
    ok_status(CALL(region, GetOverlappedResult, &ov, TRUE), ND_SUCCESS);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING);
    ok_status(CALL(region, CancelOverlappedRequests), ND_SUCCESS);
    ok_status(CALL(region, GetOverlappedResult, &ov, FALSE), ND_SUCCESS);
}

TEST(region__outlives_file_and_adapter)
{
    IND2Adapter *other = front_open("10.1.2.1");
    HANDLE handle = front_file(other);
    IND2MemoryRegion *orphan;
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    ok_status(CALL(other, CreateMemoryRegion, &IID_IND2MemoryRegion, handle, (void **)&orphan), ND_SUCCESS);
    ok(CloseHandle(handle));
    front_release(other);
    ok_status(CALL(orphan, Register, buffer, 16, ND_MR_FLAG_RDMA_READ_SINK, &ov), ND_PENDING);
    ok_status(CALL(orphan, Deregister, &ov), ND_PENDING);
    front_release(orphan);
}

TEST(region__device_removed)
{
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    ULONG size = sizeof(info);
    IND2MemoryRegion *second;
    OVERLAPPED ov;

    memset(&ov, 0, sizeof(ov));
    ok_status(CALL(adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, file, (void **)&second), ND_SUCCESS);
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING);
    fake_device_remove("fake_ib");
    ok_eventually(CALL(adapter, Query, &info, &size) == ND_DEVICE_REMOVED);
    ok_status(CALL(second, Register, buffer, 16, 0, &ov), ND_DEVICE_REMOVED);
    ok_status(CALL(region, Deregister, &ov), ND_PENDING); /* cleaning up still works */
    ok_status(CALL(region, GetOverlappedResult, &ov, FALSE), ND_SUCCESS);
    front_release(second);
}

TEST(region__forked_child)
{
    OVERLAPPED ov;
    pid_t child;
    int status;

    memset(&ov, 0, sizeof(ov));
    ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_PENDING);
    child = fork();
    if (child == 0) {
        ok_status(CALL(region, Register, buffer, 16, 0, &ov), ND_DEVICE_REMOVED);
        ok_status(CALL(region, Deregister, &ov), ND_DEVICE_REMOVED);
        ok_status(CALL(region, CancelOverlappedRequests), ND_DEVICE_REMOVED);
        ok_status(CALL(region, GetOverlappedResult, &ov, FALSE), ND_DEVICE_REMOVED);
        front_release(region);
        _exit(0);
    }
    ok_int(waitpid(child, &status, 0), ==, child);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
