/* SPDX-License-Identifier: MIT */
/* IWVMemoryWindow and IWVConnectQueuePair::BindMemoryWindow. */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>

#include "session.h"

static struct session s;
static IWVMemoryWindow *window;
static WV_MEMORY_KEYS keys;
static char memory[4096];

SETUP
{
    rig_setup();
    fake_wire(true);
    session_connect(&s);
    ok_status(
        CALL(s.pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_LOCAL_WRITE | WV_ACCESS_MW_BIND, NULL, &keys),
        WV_SUCCESS);
    ok_status(CALL(s.pd, AllocateMemoryWindow, &window), WV_SUCCESS);
}

TEARDOWN
{
    session_end(&s);
    rig_teardown();
}

static HRESULT bind_at(UINT64 id, SIZE_T offset, SIZE_T length, DWORD access, NET32 *rkey)
{
    return CALL(s.qp[1], BindMemoryWindow, window, id, keys.Lkey, access, WV_SEND_SIGNALED,
                (const void *)((uintptr_t)memory + offset), length, rkey);
}

static void done(WV_OPCODE opcode, UINT64 id, WV_WC_STATUS status)
{
    WV_COMPLETION completion;

    ok_uint(CALL(s.cq, Poll, &completion, 1), ==, 1);
    ok_int(completion.Opcode, ==, opcode);
    ok_uint(completion.WrId, ==, id);
    ok_int(completion.Status, ==, status);
}

/* What the active side may do by that key. */
static WV_WC_STATUS write_by(NET32 rkey, SIZE_T offset)
{
    static char target[16];
    UINT64 address = (UINT64)(uintptr_t)(memory + offset);
    NET64 remote = (NET64)htonl((UINT32)address) << 32 | htonl((UINT32)(address >> 32));
    WV_SGE sge = { .pAddress = target, .Length = sizeof(target) };
    WV_MEMORY_KEYS mine;
    WV_COMPLETION completion;

    ok_status(CALL(s.pd, RegisterMemory, target, sizeof(target), WV_ACCESS_LOCAL_WRITE, NULL, &mine), WV_SUCCESS);
    sge.Lkey = mine.Lkey;
    ok_status(CALL(s.qp[0], Write, 77, &sge, 1, WV_SEND_SIGNALED, 0, remote, rkey), WV_SUCCESS);
    ok_uint(CALL(s.cq, Poll, &completion, 1), ==, 1);
    ok_uint(completion.WrId, ==, 77);
    ok_status(CALL(s.pd, DeregisterMemory, mine.Lkey, NULL), WV_SUCCESS);
    return completion.Status;
}

TEST(AllocateMemoryWindow__statuses)
{
    IWVMemoryWindow *other = NULL;
    IUnknown *unknown;

    ok_int(fake_log_find(FAKE_ibv_alloc_mw, -1)->arg.alloc_mw.type, ==, IBV_MW_TYPE_1);
    ok_status(CALL(window, QueryInterface, &IID_IWVMemoryWindow, (void **)&unknown), WV_SUCCESS);
    ok_uint(CALL(unknown, Release), ==, 1);
    ok_status(CALL(window, QueryInterface, &IID_IWVOverlapped, (void **)&unknown), E_NOINTERFACE);
    ok_status(CALL(s.pd, AllocateMemoryWindow, NULL), WV_INVALID_PARAMETER);
    fake_fail(FAKE_ibv_alloc_mw, 1, ENOMEM);
    ok_status(CALL(s.pd, AllocateMemoryWindow, &other), WV_INSUFFICIENT_RESOURCES);
    ok_ptr(other, ==, NULL);
    fake_alloc_fail(1);
    ok_status(CALL(s.pd, AllocateMemoryWindow, &other), WV_NO_MEMORY);
    fake_alloc_clear();
    rig_release(window);
}

/* The new key is there when the call returns, before the device has done the request or anybody polled; bound again without an
 * invalidate. */
TEST(BindMemoryWindow__key_at_return)
{
    NET32 first = 0, second = 0;

    fake_wire_hold_data(true);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, &first), WV_SUCCESS);
    ok_uint(first, ==, htonl(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.rkey));
    ok_status(bind_at(2, 64, 64, WV_ACCESS_REMOTE_READ | WV_ACCESS_REMOTE_WRITE, &second), WV_SUCCESS);
    ok_uint(second, !=, first);
    ok_uint(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.bind_info.mw_access_flags, ==,
            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    ok_uint(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.bind_info.length, ==, 64);
    fake_wire_hold_data(false);
    done(WvBindWindow, 1, WvWcSuccess);
    done(WvBindWindow, 2, WvWcSuccess);
    ok_int(write_by(second, 64), ==, WvWcSuccess);
    ok_status(CALL(s.pd, DeregisterMemory, keys.Lkey, NULL), WV_DEVICE_BUSY);
    rig_release(window);
    ok_status(CALL(s.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
}

static void bind_fails(enum ibv_wc_status ibv, WV_WC_STATUS wv)
{
    NET32 rkey = 0;

    fake_wire_hold_data(true);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, &rkey), WV_SUCCESS);
    ok_uint(fake_qp_complete(s.verbs[1], FAKE_SEND, 1, ibv, 0), ==, 1);
    done(WvBindWindow, 1, wv);
    fake_wire_hold_data(false);
    rig_release(window);
}

TEST(BindMemoryWindow__refused_by_the_device)
{
    bind_fails(IBV_WC_MW_BIND_ERR, WvWcMwBindError);
}

TEST(BindMemoryWindow__fails_on_the_device)
{
    bind_fails(IBV_WC_FATAL_ERR, WvWcError);
}

/* Length 0 unbinds: the key is dead, the region free. */
TEST(BindMemoryWindow__unbind)
{
    NET32 rkey = 0, after = 0;

    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_WRITE, &rkey), WV_SUCCESS);
    done(WvBindWindow, 1, WvWcSuccess);
    ok_int(write_by(rkey, 0), ==, WvWcSuccess);
    ok_status(CALL(s.qp[1], BindMemoryWindow, window, 2, 0, 0, WV_SEND_SIGNALED, NULL, 0, &after), WV_SUCCESS);
    done(WvBindWindow, 2, WvWcSuccess);
    ok_status(CALL(s.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_int(write_by(rkey, 0), ==, WvWcRemoteAccessError);
    rig_release(window);
}

/* Signalled as other sends are. */
TEST(BindMemoryWindow__silent)
{
    WV_COMPLETION completion;
    NET32 rkey;

    ok_status(CALL(s.qp[1], BindMemoryWindow, window, 1, keys.Lkey, WV_ACCESS_REMOTE_WRITE, 0, memory, 64, &rkey),
              WV_SUCCESS);
    ok_uint(CALL(s.cq, Poll, &completion, 1), ==, 0);
    ok_int(write_by(rkey, 0), ==, WvWcSuccess);
    ok_status(CALL(s.qp[1], BindMemoryWindow, window, 2, keys.Lkey, WV_ACCESS_REMOTE_READ,
                   WV_SEND_FENCE | WV_SEND_SIGNALED, memory, 64, &rkey),
              WV_SUCCESS);
    ok_uint(fake_log_find(FAKE_ibv_bind_mw, -1)->arg.wr.send_flags, ==, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    done(WvBindWindow, 2, WvWcSuccess);
    rig_release(window);
}

TEST(BindMemoryWindow__statuses)
{
    IWVMemoryWindow *foreign;
    WV_MEMORY_KEYS read_only;
    NET32 rkey = 0x77;
    IWVConnectQueuePair *qp;

    ok_status(CALL(s.qp[1], BindMemoryWindow, NULL, 1, keys.Lkey, 0, 0, memory, 64, &rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(s.qp[1], BindMemoryWindow, (IWVMemoryWindow *)s.cq, 1, keys.Lkey, 0, 0, memory, 64, &rkey),
              WV_INVALID_PARAMETER);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, NULL), WV_INVALID_PARAMETER);
    ok_status(bind_at(1, 4090, 64, WV_ACCESS_REMOTE_READ, &rkey), WV_INVALID_PARAMETER);
    ok_status(bind_at(1, 5000, 8, WV_ACCESS_REMOTE_READ, &rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(s.qp[1], BindMemoryWindow, window, 1, ~keys.Lkey, 0, 0, memory, 64, &rkey), WV_INVALID_PARAMETER);
    ok_status(CALL(pd, AllocateMemoryWindow, &foreign), WV_SUCCESS);
    ok_status(CALL(s.qp[1], BindMemoryWindow, foreign, 1, keys.Lkey, 0, 0, memory, 64, &rkey), WV_INVALID_PARAMETER);
    rig_release(foreign);
    ok_status(CALL(s.pd, RegisterMemory, memory, 64, WV_ACCESS_MW_BIND, NULL, &read_only), WV_SUCCESS);
    ok_status(CALL(s.qp[1], BindMemoryWindow, window, 1, read_only.Lkey, WV_ACCESS_REMOTE_WRITE, 0, memory, 64, &rkey),
              WV_ACCESS_VIOLATION);
    ok_status(CALL(s.pd, DeregisterMemory, read_only.Lkey, NULL), WV_SUCCESS);
    fake_fail(FAKE_ibv_bind_mw, 1, ENOMEM);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, &rkey), WV_INSUFFICIENT_RESOURCES);
    fake_fail(FAKE_ibv_bind_mw, 1, EINVAL);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, &rkey), WV_INVALID_PARAMETER);
    ok_uint(rkey, ==, 0x77); /* untouched by all of them */
    ok_status(CALL(s.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    ok_status(CALL(s.pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_MW_BIND, NULL, &keys), WV_SUCCESS);
    /* Before there is a connection. */
    {
        WV_QP_CREATE shape = rig_shape(WvQpTypeRc);

        shape.pSendCq = shape.pReceiveCq = s.cq;
        ok_status(CALL(s.pd, CreateConnectQueuePair, &shape, &qp), WV_SUCCESS);
    }
    ok_status(CALL(qp, BindMemoryWindow, window, 1, keys.Lkey, WV_ACCESS_REMOTE_READ, 0, memory, 64, &rkey),
              WV_INVALID_PARAMETER);
    rig_release(qp);
    rig_release(window);
}

/* In the error state it comes back, and the window stays unbound. */
TEST(BindMemoryWindow__in_error)
{
    WV_QP_ATTRIBUTES error = { .QpState = WvQpStateError };
    NET32 rkey = 0;

    ok_status(CALL(s.qp[1], Modify, &error, 0, NULL), WV_SUCCESS);
    ok_status(bind_at(1, 0, 64, WV_ACCESS_REMOTE_READ, &rkey), WV_SUCCESS);
    done(WvBindWindow, 1, WvWcFlushed);
    ok_status(CALL(s.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
    rig_release(window);
}

/* A device without windows: neither is emulated. */
TEST(AllocateMemoryWindow__device_without)
{
    IWVProtectionDomain *domain;
    IWVMemoryWindow *other = NULL;
    IWVDevice *poor;

    fake_device_add("fake_poor", IBV_TRANSPORT_IB, 1);
    fake_device_attr("fake_poor")->max_mw = 0;
    fake_device_attr("fake_poor")->device_cap_flags &=
        ~(unsigned)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    poor = rig_open(ibv_get_device_guid(fake_device("fake_poor")));
    ok_status(CALL(poor, AllocateProtectionDomain, &domain), WV_SUCCESS);
    ok_status(CALL(domain, AllocateMemoryWindow, &other), WV_NOT_SUPPORTED);
    ok_ptr(other, ==, NULL);
    rig_release(domain);
    rig_release(poor);
    rig_release(window);
}
