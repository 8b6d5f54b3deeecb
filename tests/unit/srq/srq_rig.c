/* SPDX-License-Identifier: MIT */
#include "srq_rig.h"

#include <string.h>

struct srq *rig_srq(struct adapter *adapter, uint32_t depth, uint32_t threshold)
{
    struct srq_config config = {
        .adapter = adapter, .depth = depth, .max_sge = 1, .threshold = threshold, .policy = &srq_policy_nd
    };
    struct srq *srq;

    ok_status(srq_create(&config, &srq), ND_SUCCESS);
    return srq;
}

struct qp *rig_shared_qp(struct adapter *adapter, struct srq *srq, struct cq *cq, uintptr_t context)
{
    struct qp_config config = rig_config(adapter, cq, cq, 4);
    struct qp *qp;

    config.srq = srq;
    config.context = rig_ctx(context);
    ok_status(qp_create(&config, &qp), ND_SUCCESS);
    if (adapter->device->transport == DEVICE_IB)
        rig_connect(qp);
    return qp;
}

HRESULT rig_share(struct srq *srq, uintptr_t n)
{
    return srq_receive(srq, rig_ctx(n), NULL, 0);
}

void rig_share_many(struct srq *srq, uintptr_t from, uintptr_t n)
{
    for (uintptr_t i = from; i < from + n; i++)
        ok_status(rig_share(srq, i), ND_SUCCESS);
}

void rig_fill(struct qp *qp, unsigned n)
{
    ok_uint(fake_qp_complete(qp_verbs(qp), FAKE_RECV, n, IBV_WC_SUCCESS, 7), ==, n);
}

void rig_shared_result(const char *file, int line, struct cq *cq, uintptr_t qp_context, uintptr_t n, HRESULT status)
{
    ND2_RESULT result;

    memset(&result, 0xee, sizeof(result));
    if (cq_get_results(cq, &result, 1) != 1)
        harness_fail(file, line, "no result");
    if (result.RequestType != Nd2RequestTypeReceive || result.RequestContext != rig_ctx(n) ||
        result.QueuePairContext != rig_ctx(qp_context))
        harness_fail(file, line, "result of type %d for %zu, QP %zu", result.RequestType,
                     (size_t)(uintptr_t)result.RequestContext, (size_t)(uintptr_t)result.QueuePairContext);
    if (result.Status != status)
        harness_fail_status(file, line, "Status", "expected", result.Status, status);
    if (result.BytesTransferred != (status == ND_SUCCESS ? 7 : 0))
        harness_fail(file, line, "%u bytes", (unsigned)result.BytesTransferred);
}

void rig_srq_notify(struct srq *srq, struct notify *notify)
{
    memset(notify, 0, sizeof(*notify));
    ok_status(srq_notify(srq, rig_file, &notify->ov), ND_PENDING);
}

struct ibv_srq *rig_device_srq(void)
{
    return fake_object(FAKE_OBJ_SRQ, -1);
}
