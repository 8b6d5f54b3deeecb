/* SPDX-License-Identifier: MIT */

/* IND2CompletionQueue and IND2QueuePair: the COM side, and each method with bad input. */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/module.h"
#include "nd2/nd2.h"
#include "rig.h"

static struct adapter *adapter;
static IND2CompletionQueue *cq;
static IND2QueuePair *qp;

static struct cq *core_cq(void)
{
    return nd2_cq_core(unsafe_impl_from_IND2CompletionQueue((IUnknown *)cq));
}

static void make(void)
{
    struct qp_config config;

    adapter = rig_open(RIG_IB);
    ok_status(nd2_cq_create(adapter, rig_file, 16, 0, 0, &cq), ND_SUCCESS);
    config = rig_config(adapter, core_cq(), core_cq(), 4);
    ok_status(nd2_qp_create(&config, &qp), ND_SUCCESS);
}

static struct qp *core_qp(void)
{
    return unsafe_impl_from_IND2QueuePair((IUnknown *)qp)->qp;
}

SETUP
{
    rig_start();
}

TEARDOWN
{
    ok_uint(module_objects(), ==, 0);
    rig_end();
}

static void check_interfaces(IUnknown *object, const GUID *own, bool overlapped)
{
    static const GUID foreign = { 1, 2, 3, { 4 } };
    const GUID *good[3] = { &IID_IUnknown, own, &IID_IND2Overlapped };
    void *out;

    for (int i = 0; i < (overlapped ? 3 : 2); i++) {
        out = NULL;
        ok_status(object->lpVtbl->QueryInterface(object, good[i], &out), S_OK);
        ok_ptr(out, ==, object);
        ok_uint(object->lpVtbl->Release(object), ==, 1);
    }
    out = object;
    ok_status(object->lpVtbl->QueryInterface(object, &foreign, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    out = object;
    ok_status(object->lpVtbl->QueryInterface(object, &IID_IND2Adapter, &out), E_NOINTERFACE);
    ok_ptr(out, ==, NULL);
    if (!overlapped)
        ok_status(object->lpVtbl->QueryInterface(object, &IID_IND2Overlapped, &out), E_NOINTERFACE);
    ok_status(object->lpVtbl->QueryInterface(object, own, NULL), E_POINTER);
    ok_uint(object->lpVtbl->AddRef(object), ==, 2);
    ok_uint(object->lpVtbl->Release(object), ==, 1);
}

TEST(front__interfaces_and_counts)
{
    make();
    ok_uint(module_objects(), ==, 2);
    check_interfaces((IUnknown *)cq, &IID_IND2CompletionQueue, true);
    check_interfaces((IUnknown *)qp, &IID_IND2QueuePair, false);
    /* Pointers of other objects are told apart. */
    ok_ptr(unsafe_impl_from_IND2CompletionQueue((IUnknown *)qp), ==, NULL);
    ok_ptr(unsafe_impl_from_IND2QueuePair((IUnknown *)cq), ==, NULL);
    ok_ptr(unsafe_impl_from_IND2CompletionQueue(NULL), ==, NULL);
    ok_ptr(unsafe_impl_from_IND2QueuePair(NULL), ==, NULL);
    /* The queue first: the count it returns is the application's. */
    ok_uint(cq->lpVtbl->Release(cq), ==, 0);
    ok_uint(qp->lpVtbl->Release(qp), ==, 0);
    ok_uint(rig_connectors_told, ==, 1);
    ok_uint(fake_live(FAKE_OBJ_CQ), ==, 0);
    rig_close(adapter);
}

TEST(front__release_cancels)
{
    struct notify n;

    make();
    memset(&n, 0, sizeof(n));
    ok_status(cq->lpVtbl->Notify(cq, ND_CQ_NOTIFY_ANY, &n.ov), ND_PENDING);
    ok_status(cq->lpVtbl->GetOverlappedResult(cq, &n.ov, FALSE), ND_PENDING);
    ok_status(cq->lpVtbl->CancelOverlappedRequests(cq), ND_SUCCESS);
    ok_status(cq->lpVtbl->GetOverlappedResult(cq, &n.ov, FALSE), ND_CANCELED);
    ok_status(cq->lpVtbl->GetOverlappedResult(cq, &n.ov, TRUE), ND_CANCELED);
    ok_status(cq->lpVtbl->Notify(cq, ND_CQ_NOTIFY_ANY, &n.ov), ND_PENDING);
    ok_uint(cq->lpVtbl->Release(cq), ==, 0);
    ok_done(&n, ND_CANCELED);
    qp->lpVtbl->Release(qp);
    rig_close(adapter);
}

/* Method by method: bad input gets its documented status, and the object goes on working. */
TEST(front__bad_input)
{
    ND2_SGE sge[40];
    OVERLAPPED ov;
    KAFFINITY affinity;
    USHORT group;
    ND2_RESULT result;

    memset(sge, 0, sizeof(sge));
    memset(&ov, 0, sizeof(ov));
    make();
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, NULL, &affinity), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, &group, NULL), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->Resize(cq, 0), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->Resize(cq, adapter->limits.max_cq_depth + 1), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->Resize(cq, 20), ND_SUCCESS);
    ok_status(cq->lpVtbl->Notify(cq, 3, &ov), ND_INVALID_PARAMETER_1);
    ok_status(cq->lpVtbl->Notify(cq, ND_CQ_NOTIFY_ANY, NULL), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->GetOverlappedResult(cq, NULL, FALSE), ND_INVALID_PARAMETER);
    ok_status(cq->lpVtbl->GetOverlappedResult(cq, &ov, TRUE), ND_SUCCESS); /* never started */
    ok_uint(cq->lpVtbl->GetResults(cq, NULL, 4), ==, 0);
    ok_uint(cq->lpVtbl->GetResults(cq, &result, 0), ==, 0);

    ok_status(qp->lpVtbl->Send(qp, NULL, sge, 1, 0x8), ND_INVALID_PARAMETER_4);
    ok_status(qp->lpVtbl->Send(qp, NULL, sge, 1, 0), ND_CONNECTION_INVALID);
    ok_status(qp->lpVtbl->Send(qp, NULL, sge, 40, 0), ND_DATA_OVERRUN);
    ok_status(qp->lpVtbl->Read(qp, NULL, sge, 1, 0, 0, ND_OP_FLAG_INLINE), ND_INVALID_PARAMETER_6);
    ok_status(qp->lpVtbl->Read(qp, NULL, sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(qp->lpVtbl->Write(qp, NULL, sge, 1, 0, 0, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT), ND_INVALID_PARAMETER_6);
    ok_status(qp->lpVtbl->Write(qp, NULL, sge, 1, 0, 0, 0), ND_CONNECTION_INVALID);
    ok_status(qp->lpVtbl->Receive(qp, NULL, sge, 40), ND_DATA_OVERRUN);
    ok_status(qp->lpVtbl->Bind(qp, NULL, (IUnknown *)cq, NULL, sge, 8, 0x20), ND_INVALID_PARAMETER_6);
    ok_status(qp->lpVtbl->Bind(qp, NULL, (IUnknown *)cq, NULL, sge, 8, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_2);
    ok_status(qp->lpVtbl->Bind(qp, NULL, NULL, NULL, sge, 8, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_2);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, NULL, ND_OP_FLAG_ALLOW_READ), ND_INVALID_PARAMETER_3);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, (IUnknown *)cq, 0), ND_INVALID_PARAMETER_2);

    ok_status(qp->lpVtbl->Receive(qp, rig_ctx(1), sge, 1), ND_SUCCESS);
    ok_status(qp->lpVtbl->Flush(qp), ND_SUCCESS);
    ok_status(qp->lpVtbl->Flush(qp), ND_SUCCESS);
    ok_uint(cq->lpVtbl->GetResults(cq, &result, 1), ==, 1);
    ok_status(result.Status, ND_CANCELED);
    ok_ptr(result.RequestContext, ==, rig_ctx(1));
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}

TEST(front__data_path)
{
    ND2_RESULT results[4];
    char byte = 0;
    ND2_SGE sge = { &byte, 1, 3 };

    make();
    rig_connect(core_qp());
    ok_status(qp->lpVtbl->Receive(qp, rig_ctx(1), &sge, 1), ND_SUCCESS);
    ok_status(qp->lpVtbl->Send(qp, rig_ctx(2), &sge, 1, 0), ND_SUCCESS);
    ok_status(qp->lpVtbl->Read(qp, rig_ctx(3), &sge, 1, 8, 9, 0), ND_SUCCESS);
    ok_status(qp->lpVtbl->Write(qp, rig_ctx(4), &sge, 1, 8, 9, 0), ND_SUCCESS);
    fake_qp_complete(qp_verbs(core_qp()), FAKE_SEND, 3, IBV_WC_SUCCESS, 0);
    fake_qp_complete(qp_verbs(core_qp()), FAKE_RECV, 1, IBV_WC_SUCCESS, 1);
    ok_uint(cq->lpVtbl->GetResults(cq, results, 4), ==, 4);
    ok_int(results[0].RequestType, ==, Nd2RequestTypeSend);
    ok_int(results[1].RequestType, ==, Nd2RequestTypeRead);
    ok_int(results[2].RequestType, ==, Nd2RequestTypeWrite);
    ok_int(results[3].RequestType, ==, Nd2RequestTypeReceive);
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}

/* More processors than the mask has room for. */
TEST(front__notify_affinity_unknown)
{
    KAFFINITY affinity = 5;
    USHORT group = 7;

    make();
    fake_fail(FAKE_sched_getaffinity, 1, EINVAL);
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, &group, &affinity), ND_NOT_SUPPORTED);
    ok_uint(group, ==, 7);
    ok_uint(affinity, ==, 5);
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, &group, &affinity), ND_SUCCESS);
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}

TEST(front__notify_affinity_is_the_process_mask)
{
    KAFFINITY affinity = 0;
    USHORT group = 7;
    cpu_set_t set;

    make();
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, &group, &affinity), ND_SUCCESS);
    ok_uint(group, ==, 0);
    ok_int(sched_getaffinity(0, sizeof(set), &set), ==, 0);
    for (unsigned i = 0; i < 8 * sizeof(affinity); i++)
        ok_int((affinity >> i & 1) != 0, ==, CPU_ISSET(i, &set) != 0);
    fake_device_remove("fake_ib");
    rig_run();
    ok_status(cq->lpVtbl->GetNotifyAffinity(cq, &group, &affinity), ND_DEVICE_REMOVED);
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}

TEST(front__no_memory)
{
    struct qp_config config;
    IND2CompletionQueue *other;
    IND2QueuePair *pair;

    make();
    fake_alloc_fail(1);
    ok_status(nd2_cq_create(adapter, rig_file, 16, 0, 0, &other), ND_NO_MEMORY);
    fake_alloc_fail(2);
    ok_status(nd2_cq_create(adapter, rig_file, 16, 0, 0, &other), ND_NO_MEMORY);
    config = rig_config(adapter, core_cq(), core_cq(), 4);
    fake_alloc_fail(1);
    ok_status(nd2_qp_create(&config, &pair), ND_NO_MEMORY);
    fake_alloc_fail(2);
    ok_status(nd2_qp_create(&config, &pair), ND_NO_MEMORY);
    fake_alloc_clear();
    ok_uint(module_objects(), ==, 2);
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}

/* A forked child shares the rings with its parent, and must not write to them. */
TEST(front__forked_child)
{
    ND2_RESULT result;
    int status = 0;
    pid_t pid;

    make();
    rig_connect(core_qp());
    pid = fork();
    ok_int(pid, >=, 0);
    if (pid == 0) {
        bool refused = qp->lpVtbl->Send(qp, NULL, NULL, 0, 0) == ND_DEVICE_REMOVED &&
                       qp->lpVtbl->Receive(qp, NULL, NULL, 0) == ND_DEVICE_REMOVED &&
                       qp->lpVtbl->Read(qp, NULL, NULL, 0, 0, 0, 0) == ND_DEVICE_REMOVED &&
                       qp->lpVtbl->Write(qp, NULL, NULL, 0, 0, 0, 0) == ND_DEVICE_REMOVED &&
                       cq->lpVtbl->GetResults(cq, &result, 1) == 0;

        _exit(refused ? 0 : 1);
    }
    ok_int(waitpid(pid, &status, 0), ==, pid);
    ok_int(status, ==, 0);
    ok_status(qp->lpVtbl->Send(qp, NULL, NULL, 0, 0), ND_SUCCESS);
    qp->lpVtbl->Release(qp);
    cq->lpVtbl->Release(cq);
    rig_close(adapter);
}
