/* SPDX-License-Identifier: MIT */
/* The id of the interface as data, for clients that do not define INITGUID. */
#include <initguid.h>
#include "cm_ifc.h"

#include "core/engine.h"
#include "core/module.h"
#include "core/status.h"

/* What user space has no way to do: alternate paths, service id resolution. */
static NTSTATUS not_supported(iba_cm_id *p_id)
{
    struct cm_id *id;
    NTSTATUS status = cm_id_enter(p_id, &id);

    if (status != STATUS_SUCCESS)
        return status;
    cm_id_leave(id);
    return STATUS_NOT_SUPPORTED;
}

static NTSTATUS cm_send_lap(iba_cm_id *p_id, iba_cm_lap *p_lap)
{
    (void)p_lap;
    return not_supported(p_id);
}

static NTSTATUS cm_send_apr(iba_cm_id *p_id, iba_cm_apr *p_apr)
{
    (void)p_apr;
    return not_supported(p_id);
}

static NTSTATUS cm_send_sidr_req(iba_cm_id *p_id, iba_cm_sidr_req *p_req)
{
    (void)p_req;
    return not_supported(p_id);
}

static NTSTATUS cm_send_sidr_rep(iba_cm_id *p_id, iba_cm_sidr_rep *p_rep)
{
    (void)p_rep;
    return not_supported(p_id);
}

static NTSTATUS cm_migrate(iba_cm_id *p_id)
{
    return not_supported(p_id);
}

static const iba_cm_interface table = {
    .create_id = cm_create_id,
    .destroy_id = cm_destroy_id,
    .listen = cm_listen,
    .get_request = cm_get_request,
    .send_req = cm_send_req,
    .send_rep = cm_send_rep,
    .send_rtu = cm_send_rtu,
    .send_dreq = cm_send_dreq,
    .send_drep = cm_send_drep,
    .send_rej = cm_send_rej,
    .send_mra = cm_send_mra,
    .send_lap = cm_send_lap,
    .send_apr = cm_send_apr,
    .send_sidr_req = cm_send_sidr_req,
    .send_sidr_rep = cm_send_sidr_rep,
    .get_qp_attr = cm_get_qp_attr,
    .migrate = cm_migrate,
    .established = cm_established,
    .cancel_listen = cm_cancel_listen,
    .format_rep = cm_format_rep,
    .send_formatted_rep = cm_send_formatted_rep,
    .get_request_ex = cm_get_request_ex,
};

/* The context is the table: there is one provider, and all it counts is its users. */
static void reference(void *context)
{
    (void)context;
    module_object_made();
    cm_use();
}

static void dereference(void *context)
{
    (void)context;
    cm_unuse();
    module_object_gone();
}

NTSTATUS iba_cm_query_interface(const GUID *guid, USHORT size, USHORT version, INFINIBAND_INTERFACE_CM *pInterface)
{
    if (!guid || !pInterface)
        return STATUS_INVALID_PARAMETER;
    if (engine_dead())
        return ND_DEVICE_REMOVED;
    if (!IsEqualGUID(guid, &GUID_INFINIBAND_INTERFACE_CM) || version != INFINIBAND_INTERFACE_CM_VERSION)
        return STATUS_NOT_SUPPORTED;
    if (size < sizeof(*pInterface))
        return STATUS_BUFFER_TOO_SMALL;
    pInterface->InterfaceHeader = (INTERFACE){
        .Size = sizeof(*pInterface),
        .Version = INFINIBAND_INTERFACE_CM_VERSION,
        .Context = (void *)(uintptr_t)&table,
        .InterfaceReference = reference,
        .InterfaceDereference = dereference,
    };
    pInterface->CM = table;
    reference(pInterface->InterfaceHeader.Context);
    return STATUS_SUCCESS;
}
