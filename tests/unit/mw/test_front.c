/* SPDX-License-Identifier: MIT */

/* IND2MemoryWindow, and Bind and Invalidate of IND2QueuePair: the COM side. */

#include <arpa/inet.h>
#include <string.h>

#include "core/module.h"
#include "nd2/nd2.h"
#include "pair.h"

static IND2CompletionQueue *cq;
static IND2QueuePair *qp;
static IND2MemoryRegion *mr;
static IND2MemoryWindow *mw;
static OVERLAPPED ov;

static void make(void)
{
    struct qp_config config;
    struct cq *core;

    memset(&pair, 0, sizeof(pair));
    pair.adapter = rig_open(RIG_IB);
    ok_status(nd2_cq_create(pair.adapter, rig_file, 16, 0, 0, &cq), ND_SUCCESS);
    core = nd2_cq_core(unsafe_impl_from_IND2CompletionQueue((IUnknown *)cq));
    config = rig_config(pair.adapter, core, core, 4);
    ok_status(nd2_qp_create(&config, &qp), ND_SUCCESS);
    ok_status(nd2_mr_create(pair.adapter, rig_file, &mr), ND_SUCCESS);
    ok_status(nd2_mw_create(pair.adapter, &mw), ND_SUCCESS);
    ok_status(mr->lpVtbl->Register(mr, pair_bytes, sizeof(pair_bytes), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov), ND_PENDING);
    pair_connect(unsafe_impl_from_IND2QueuePair((IUnknown *)qp)->qp, NULL);
}

static unsigned complete(void)
{
    return fake_qp_complete(qp_verbs(unsafe_impl_from_IND2QueuePair((IUnknown *)qp)->qp), FAKE_SEND, 99, IBV_WC_SUCCESS,
                            0);
}

static HRESULT bind_window(IUnknown *region, IUnknown *window)
{
    return qp->lpVtbl->Bind(qp, rig_ctx(1), region, window, pair_bytes + 10, 20, ND_OP_FLAG_ALLOW_READ);
}

static void ok_next(ND2_REQUEST_TYPE type, HRESULT status)
{
    ND2_RESULT result;

    ok_uint(cq->lpVtbl->GetResults(cq, &result, 1), ==, 1);
    ok_int(result.RequestType, ==, type);
    ok_status(result.Status, status);
    ok_ptr(result.RequestContext, ==, rig_ctx(1));
    ok_ptr(result.QueuePairContext, ==, RIG_CONTEXT);
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

TEST(front__window)
{
    static const GUID foreign = { 1, 2, 3, { 4 } };
    IUnknown *region, *window;
    UINT32 token;
    void *out;

    make();
    region = (IUnknown *)mr;
    window = (IUnknown *)mw;
    ok_status(mw->lpVtbl->QueryInterface(mw, &IID_IND2MemoryWindow, &out), S_OK);
    ok_ptr(out, ==, mw);
    ok_status(mw->lpVtbl->QueryInterface(mw, &IID_IUnknown, &out), S_OK);
    ok_uint(mw->lpVtbl->Release(mw), ==, 2);
    ok_uint(mw->lpVtbl->Release(mw), ==, 1);
    ok_status(mw->lpVtbl->QueryInterface(mw, &foreign, &out), E_NOINTERFACE);
    ok_status(mw->lpVtbl->QueryInterface(mw, &IID_IND2Overlapped, &out), E_NOINTERFACE);
    ok_status(mw->lpVtbl->QueryInterface(mw, &IID_IUnknown, NULL), E_POINTER);

    ok_uint(mw->lpVtbl->GetRemoteToken(mw), ==, 0);
    ok_status(bind_window(region, window), ND_SUCCESS);
    token = mw->lpVtbl->GetRemoteToken(mw);
    ok_uint(ntohl(token), ==, pair_last_post()->rkey);
    ok_uint(pair_last_post()->bind_info.mw_access_flags, ==, IBV_ACCESS_REMOTE_READ);
    ok_uint(complete(), ==, 1);
    ok_next(Nd2RequestTypeBind, ND_SUCCESS);
    ok_status(bind_window(region, window), ND_INVALID_DEVICE_REQUEST);
    ok_status(mr->lpVtbl->Deregister(mr, &ov), ND_DEVICE_BUSY);
    ok_status(qp->lpVtbl->Invalidate(qp, rig_ctx(1), window, 0), ND_SUCCESS);
    ok_uint(complete(), ==, 1);
    ok_next(Nd2RequestTypeInvalidate, ND_SUCCESS);
    ok_status(mr->lpVtbl->Deregister(mr, &ov), ND_PENDING);
    ok_status(bind_window(region, window), ND_INVALID_PARAMETER_2); /* not registered */
    ok_uint(mw->lpVtbl->Release(mw), ==, 0);
    ok_uint(mr->lpVtbl->Release(mr), ==, 0);
    ok_uint(qp->lpVtbl->Release(qp), ==, 0);
    ok_uint(cq->lpVtbl->Release(cq), ==, 0);
    rig_close(pair.adapter);
}

TEST(front__foreign_pointers)
{
    IUnknown *region, *window;

    make();
    region = (IUnknown *)mr;
    window = (IUnknown *)mw;
    ok_status(bind_window(NULL, window), ND_INVALID_PARAMETER_2);
    ok_status(bind_window(window, region), ND_INVALID_PARAMETER_2);
    ok_status(bind_window(region, NULL), ND_INVALID_PARAMETER_3);
    ok_status(bind_window(region, region), ND_INVALID_PARAMETER_3);
    ok_status(qp->lpVtbl->Bind(qp, NULL, region, window, pair_bytes, 1, 0x40), ND_INVALID_PARAMETER_6);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, region, 0), ND_INVALID_PARAMETER_2);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, NULL, 0), ND_INVALID_PARAMETER_2);
    ok_status(qp->lpVtbl->Invalidate(qp, NULL, window, ND_OP_FLAG_ALLOW_WRITE), ND_INVALID_PARAMETER_3);
    ok_status(bind_window(region, window), ND_SUCCESS);
    ok_uint(complete(), ==, 1);
    ok_next(Nd2RequestTypeBind, ND_SUCCESS);
    /* The usual order of samples: region first. */
    ok_uint(mr->lpVtbl->Release(mr), ==, 0);
    ok_uint(mw->lpVtbl->Release(mw), ==, 0);
    ok_uint(cq->lpVtbl->Release(cq), ==, 0);
    ok_uint(qp->lpVtbl->Release(qp), ==, 0);
    rig_close(pair.adapter);
}
