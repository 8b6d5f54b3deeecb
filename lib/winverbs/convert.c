/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/device_query.h"

/* Source: winverbs.md sections 2, 4.1, 5 and 7.4. The numbers differ from those of verbs nearly everywhere. */

#if defined(__LP64__)
_Static_assert(sizeof(WV_SGE) == sizeof(ND2_SGE) && offsetof(WV_SGE, Length) == offsetof(ND2_SGE, BufferLength) &&
                   offsetof(WV_SGE, Lkey) == offsetof(ND2_SGE, MemoryRegionToken),
               "WV_SGE is ND2_SGE is struct ibv_sge");
const ND2_SGE *wv_sgl(ND2_SGE *copy, const WV_SGE *sgl, SIZE_T count)
{
    (void)copy, (void)count;
    return (const ND2_SGE *)sgl;
}
#else
const ND2_SGE *wv_sgl(ND2_SGE *copy, const WV_SGE *sgl, SIZE_T count)
{
    if (!sgl || count > WV_SGE_COPIES)
        return NULL;
    for (SIZE_T i = 0; i < count; i++) {
        copy[i].Buffer = sgl[i].pAddress;
        copy[i].BufferLength = sgl[i].Length;
        copy[i].MemoryRegionToken = sgl[i].Lkey;
    }
    return copy;
}
#endif

/* "16.28.4512" as one number; 0 for text of another kind. */
static UINT64 firmware_version(const char *text)
{
    UINT64 part[3] = { 0, 0, 0 };

    for (int i = 0; i < 3 && *text; i++) {
        char *end;

        part[i] = strtoull(text, &end, 10);
        if (end == text)
            return 0;
        text = *end == '.' ? end + 1 : end;
    }
    return part[0] << 32 | (part[1] & 0xffff) << 16 | (part[2] & 0xffff);
}

static DWORD capability_flags(unsigned caps)
{
    static const struct {
        unsigned ibv;
        DWORD wv;
    } map[] = {
        { IBV_DEVICE_RESIZE_MAX_WR, WV_DEVICE_RESIZE_MAX_WR },
        { IBV_DEVICE_BAD_PKEY_CNTR, WV_DEVICE_BAD_PKEY_COUNTER },
        { IBV_DEVICE_BAD_QKEY_CNTR, WV_DEVICE_BAD_QKEY_COUNTER },
        { IBV_DEVICE_AUTO_PATH_MIG, WV_DEVICE_PATH_MIGRATION },
        { IBV_DEVICE_CHANGE_PHY_PORT, WV_DEVICE_CHANGE_PHYSICAL_PORT },
        { IBV_DEVICE_UD_AV_PORT_ENFORCE, WV_DEVICE_AH_PORT_CHECKING },
        { IBV_DEVICE_CURR_QP_STATE_MOD, WV_DEVICE_QP_STATE_MODIFIER },
        { IBV_DEVICE_SHUTDOWN_PORT, WV_DEVICE_SHUTDOWN_PORT },
        { IBV_DEVICE_INIT_TYPE, WV_DEVICE_INIT_TYPE },
        { IBV_DEVICE_PORT_ACTIVE_EVENT, WV_DEVICE_PORT_ACTIVE_EVENT },
        { IBV_DEVICE_SYS_IMAGE_GUID, WV_DEVICE_SYSTEM_IMAGE_GUID },
        { IBV_DEVICE_RC_RNR_NAK_GEN, WV_DEVICE_RC_RNR_NAK_GENERATION },
        { IBV_DEVICE_SRQ_RESIZE, WV_DEVICE_SRQ_RESIZE },
    };
    DWORD flags = WV_DEVICE_BATCH_NOTIFY_CQ;

    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++) {
        if (caps & map[i].ibv)
            flags |= map[i].wv;
    }
    return flags;
}

static SIZE_T positive(int value)
{
    return value > 0 ? (SIZE_T)value : 0;
}

void wv_device_attributes(const struct adapter *adapter, WV_DEVICE_ATTRIBUTES *out)
{
    const struct ibv_device_attr *attr = &adapter->device->attr;
    const struct adapter_limits *limits = &adapter->limits;

    memset(out, 0, sizeof(*out));
    out->FwVersion = firmware_version(attr->fw_ver);
    out->NodeGuid = attr->node_guid;
    out->SystemImageGuid = attr->sys_image_guid;
    out->VendorId = attr->vendor_id;
    out->VendorPartId = attr->vendor_part_id;
    out->HwVersion = attr->hw_ver;
    out->CapabilityFlags = capability_flags(attr->device_cap_flags);
    out->AtomicCapability = attr->atomic_cap == IBV_ATOMIC_NONE  ? WvAtomicNone
                            : attr->atomic_cap == IBV_ATOMIC_HCA ? WvAtomicDevice
                                                                 : WvAtomicNode;
    out->PageSizeCapabilityFlags = (DWORD)attr->page_size_cap;
    out->MaxMrSize = (SIZE_T)limits->max_registration;
    out->MaxQp = positive(attr->max_qp);
    out->MaxQpWr = limits->max_send_depth < limits->max_recv_depth ? limits->max_send_depth : limits->max_recv_depth;
    out->MaxSge = limits->max_send_sge < limits->max_recv_sge ? limits->max_send_sge : limits->max_recv_sge;
    out->MaxCq = positive(attr->max_cq);
    out->MaxCqEntries = limits->max_cq_depth;
    out->MaxMr = positive(attr->max_mr);
    out->MaxPd = positive(attr->max_pd);
    out->MaxQpResponderResources = limits->max_inbound_reads;
    out->MaxResponderResources = positive(attr->max_res_rd_atom);
    out->MaxQpInitiatorDepth = limits->max_outbound_reads;
    out->MaxInlineSend = limits->max_inline;
    out->MaxMw = positive(attr->max_mw);
    out->MaxMulticast = positive(attr->max_mcast_grp);
    out->MaxQpAttach = positive(attr->max_mcast_qp_attach);
    out->MaxMulticastQp = positive(attr->max_total_mcast_qp_attach);
    out->MaxAh = positive(attr->max_ah);
    out->MaxSrq = positive(attr->max_srq);
    out->MaxSrqWr = limits->max_srq_depth;
    out->MaxSrqSge = limits->max_srq_sge;
    out->MaxPkeys = attr->max_pkeys;
    out->DeviceType = adapter->device->transport == DEVICE_IW ? WvDeviceIwarp : WvDeviceInfiniband;
    out->LocalAckDelay = attr->local_ca_ack_delay;
    out->PhysPortCount = attr->phys_port_cnt;
}

void wv_port_attributes(const struct device *device, const struct ibv_port_attr *attr, WV_PORT_ATTRIBUTES *out)
{
    memset(out, 0, sizeof(*out));
    out->PortCabilityFlags = attr->port_cap_flags;
    out->State = (WV_PORT_STATE)attr->state;
    out->MaxMtu = wv_mtu_from_ibv(attr->max_mtu);
    out->ActiveMtu = wv_mtu_from_ibv(attr->active_mtu);
    out->GidTableLength = (UINT32)attr->gid_tbl_len;
    out->MaxMessageSize = attr->max_msg_sz;
    out->BadPkeyCounter = attr->bad_pkey_cntr;
    out->QkeyViolationCounter = attr->qkey_viol_cntr;
    out->PkeyTableLength = attr->pkey_tbl_len ? attr->pkey_tbl_len : 1; /* see device_query_pkey */
    out->Lid = htons(attr->lid);
    out->SmLid = htons(attr->sm_lid);
    out->Lmc = attr->lmc;
    out->MaxVls = attr->max_vl_num;
    out->SmSl = attr->sm_sl;
    out->SubnetTimeout = attr->subnet_timeout;
    out->InitTypeReply = attr->init_type_reply;
    out->ActiveWidth = attr->active_width;
    out->ActiveSpeed = attr->active_speed;
    out->PhysicalState = attr->phys_state;
    if (device->transport == DEVICE_IW)
        out->Transport = WvPortTransportIwarp;
    else
        out->Transport = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? WvPortTransportRdmaoe : WvPortTransportIb;
}

int wv_access_to_ibv(DWORD access)
{
    int flags = 0;

    if (access & WV_ACCESS_REMOTE_READ)
        flags |= IBV_ACCESS_REMOTE_READ;
    /* Both need the local right, and WinVerbs' flag for writing has it in it. */
    if (access & (WV_ACCESS_REMOTE_WRITE & ~WV_ACCESS_LOCAL_WRITE))
        flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
    if (access & WV_ACCESS_REMOTE_ATOMIC)
        flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
    if (access & WV_ACCESS_LOCAL_WRITE)
        flags |= IBV_ACCESS_LOCAL_WRITE;
    if (access & WV_ACCESS_MW_BIND)
        flags |= IBV_ACCESS_MW_BIND;
    return flags;
}

DWORD wv_access_from_ibv(unsigned access)
{
    DWORD flags = 0;

    if (access & IBV_ACCESS_REMOTE_READ)
        flags |= WV_ACCESS_REMOTE_READ;
    if (access & IBV_ACCESS_REMOTE_WRITE)
        flags |= WV_ACCESS_REMOTE_WRITE;
    if (access & IBV_ACCESS_REMOTE_ATOMIC)
        flags |= WV_ACCESS_REMOTE_ATOMIC;
    if (access & IBV_ACCESS_LOCAL_WRITE)
        flags |= WV_ACCESS_LOCAL_WRITE;
    if (access & IBV_ACCESS_MW_BIND)
        flags |= WV_ACCESS_MW_BIND;
    return flags;
}

WV_WC_STATUS wv_wc_status(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return WvWcSuccess;
    case IBV_WC_LOC_LEN_ERR:
        return WvWcLocalLengthError;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
        return WvWcLocalOpError;
    case IBV_WC_LOC_PROT_ERR:
        return WvWcLocalProtectionError;
    case IBV_WC_WR_FLUSH_ERR:
        return WvWcFlushed;
    case IBV_WC_MW_BIND_ERR:
        return WvWcMwBindError;
    case IBV_WC_BAD_RESP_ERR:
        return WvWcBadResponse;
    case IBV_WC_LOC_ACCESS_ERR:
        return WvWcLocalAccessError;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
        return WvWcRemoteInvalidRequest;
    case IBV_WC_REM_ACCESS_ERR:
        return WvWcRemoteAccessError;
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return WvWcRemoteOpError;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return WvWcTimeoutRetryError;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return WvWcRnrRetryError;
    default:
        return WvWcError;
    }
}

UINT32 wv_mtu_from_ibv(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

bool wv_mtu_to_ibv(UINT32 bytes, enum ibv_mtu *mtu)
{
    for (int i = IBV_MTU_256; i <= IBV_MTU_4096; i++) {
        if (128u << i != bytes)
            continue;
        *mtu = (enum ibv_mtu)i;
        return true;
    }
    return false;
}

HRESULT wv_av_to_ibv(struct device *device, const WV_ADDRESS_VECTOR *vector, struct ibv_ah_attr *attr)
{
    const WV_NETWORK_ROUTE *route = &vector->Route;
    union ibv_gid gid;
    uint32_t index;
    NTSTATUS status;

    memset(attr, 0, sizeof(*attr));
    attr->dlid = ntohs(vector->DLid);
    attr->sl = vector->ServiceLevel;
    attr->src_path_bits = vector->SourcePathBits;
    attr->static_rate = vector->StaticRate;
    attr->port_num = vector->PortNumber;
    if (!route->Valid)
        return WV_SUCCESS;
    memcpy(&gid, &route->SGid, sizeof(gid));
    status = device_find_source_gid(device, vector->PortNumber, &gid, &index);
    if (status != ND_SUCCESS)
        return status == ND_INVALID_ADDRESS ? WV_INVALID_PARAMETER_2 : status_wv(status);
    attr->is_global = 1;
    attr->grh.flow_label = ntohl(route->FlowLabel);
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = route->HopLimit;
    attr->grh.traffic_class = route->TrafficClass;
    memcpy(&attr->grh.dgid, &route->DGid, sizeof(attr->grh.dgid));
    return WV_SUCCESS;
}

void wv_av_from_ibv(struct device *device, const struct ibv_ah_attr *attr, WV_ADDRESS_VECTOR *vector)
{
    WV_NETWORK_ROUTE *route = &vector->Route;
    union ibv_gid gid;

    memset(vector, 0, sizeof(*vector));
    vector->DLid = htons(attr->dlid);
    vector->ServiceLevel = attr->sl;
    vector->SourcePathBits = attr->src_path_bits;
    vector->StaticRate = attr->static_rate;
    vector->PortNumber = attr->port_num;
    if (!attr->is_global)
        return;
    route->Valid = 1;
    route->HopLimit = attr->grh.hop_limit;
    route->TrafficClass = attr->grh.traffic_class;
    route->FlowLabel = htonl(attr->grh.flow_label);
    memcpy(&route->DGid, &attr->grh.dgid, sizeof(route->DGid));
    if (device_query_gid(device, attr->port_num, attr->grh.sgid_index, &gid) == ND_SUCCESS)
        memcpy(&route->SGid, &gid, sizeof(route->SGid));
}
