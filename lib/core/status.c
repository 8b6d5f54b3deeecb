/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <errno.h>
#include <ntstatus.h>
#include <iba/ib_types.h>

/* Statuses that this file returns for every errno it does not know are members of the lists of all methods that can meet
 * them; a program that switches over the documented codes never sees another one (demand.md 26). */

HRESULT status_from_wc(enum ibv_wc_status wc, ND2_REQUEST_TYPE type, bool port_down)
{
    switch (wc) {
    case IBV_WC_SUCCESS:
        return ND_SUCCESS;
    case IBV_WC_WR_FLUSH_ERR:
        return ND_CANCELED;
    case IBV_WC_LOC_LEN_ERR:
        return ND_DATA_OVERRUN;
    case IBV_WC_LOC_QP_OP_ERR:
        if (type == Nd2RequestTypeReceive)
            return ND_DATA_OVERRUN;
        if (type == Nd2RequestTypeBind || type == Nd2RequestTypeInvalidate)
            return ND_INVALID_DEVICE_REQUEST;
        return port_down ? ND_IO_TIMEOUT : ND_ACCESS_VIOLATION;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_REM_ACCESS_ERR:
        return ND_ACCESS_VIOLATION;
    case IBV_WC_REM_INV_REQ_ERR:
        if (type == Nd2RequestTypeReceive)
            return ND_DATA_OVERRUN;
        return type == Nd2RequestTypeSend ? (HRESULT)STATUS_DATA_ERROR : ND_REMOTE_ERROR;
    case IBV_WC_REM_OP_ERR:
        return type == Nd2RequestTypeSend ? (HRESULT)STATUS_DATA_ERROR : ND_REMOTE_ERROR;
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return ND_REMOTE_ERROR;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return ND_IO_TIMEOUT;
    default:
        return ND_INTERNAL_ERROR;
    }
}

HRESULT status_from_reg_errno(int error)
{
    switch (error) {
    case EFAULT:
        return ND_ACCESS_VIOLATION;
    case EINVAL:
        return ND_INVALID_PARAMETER;
    case ENODEV:
    case EIO:
        return ND_DEVICE_REMOVED;
    default: /* ENOMEM: memory or RLIMIT_MEMLOCK; EPERM: a limit of 0; EAGAIN: the rdma cgroup */
        return ND_INSUFFICIENT_RESOURCES;
    }
}

/* A device that refuses says EINVAL or ENOMEM for whatever limit was met: the application is to ask for less. */
HRESULT status_from_create_errno(int error)
{
    return error == ENODEV || error == EIO ? ND_DEVICE_REMOVED : ND_INSUFFICIENT_RESOURCES;
}

HRESULT status_from_post_errno(int error)
{
    if (error == 0)
        return ND_SUCCESS;
    return error == ENOMEM ? ND_NO_MORE_ENTRIES : ND_UNSUCCESSFUL;
}

static bool is_resource(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOBUFS;
}

HRESULT status_from_resolve_errno(int error)
{
    if (is_resource(error))
        return ND_INSUFFICIENT_RESOURCES;
    switch (error) {
    case EINVAL:
        return (HRESULT)STATUS_BAD_NETWORK_NAME;
    case EAFNOSUPPORT:
        return ND_INVALID_ADDRESS;
    case ENETUNREACH:
    case ENODEV:
    case EADDRNOTAVAIL:
        return ND_NETWORK_UNREACHABLE;
    default: /* EHOSTUNREACH, ETIMEDOUT: the neighbour does not answer */
        return ND_HOST_UNREACHABLE;
    }
}

HRESULT status_from_route_errno(int error)
{
    if (is_resource(error))
        return ND_INSUFFICIENT_RESOURCES;
    return error == ETIMEDOUT ? ND_IO_TIMEOUT : ND_HOST_UNREACHABLE;
}

HRESULT status_from_connect_errno(int error)
{
    if (error == ETIMEDOUT)
        return ND_IO_TIMEOUT;
    if (error == ECONNREFUSED || error == ECONNRESET || error == EPIPE)
        return ND_CONNECTION_REFUSED;
    return status_from_resolve_errno(error);
}

HRESULT status_from_bind_errno(int error, bool known, uint16_t port)
{
    switch (error) {
    case EADDRINUSE:
    case EACCES:
        return ND_SHARING_VIOLATION;
    case EADDRNOTAVAIL:
        if (!known)
            return ND_INVALID_ADDRESS;
        return port ? ND_SHARING_VIOLATION : ND_TOO_MANY_ADDRESSES;
    case ENODEV:
    case EINVAL:
    case EAFNOSUPPORT:
        return ND_INVALID_ADDRESS;
    default:
        return ND_INSUFFICIENT_RESOURCES;
    }
}

HRESULT status_from_reject(int reason, bool passive)
{
    /* Reasons of the CM's REJ message (InfiniBand specification 12.6.7.2). */
    enum {
        REJECT_TIMEOUT = 4,
        REJECT_CONSUMER = 28,
    };

    if (reason == REJECT_CONSUMER)
        return ND_CONNECTION_REFUSED;
    if (passive)
        return ND_CONNECTION_ABORTED;
    return reason == REJECT_TIMEOUT ? ND_IO_TIMEOUT : ND_CONNECTION_REFUSED;
}

int post_errno(int result)
{
    if (result == 0)
        return 0;
    if (result == -1 && errno)
        return errno;
    return result < 0 ? -result : result;
}

HRESULT status_without_no_memory(HRESULT status)
{
    return status == ND_NO_MEMORY ? ND_INSUFFICIENT_RESOURCES : status;
}

HRESULT status_v1(HRESULT status)
{
    return status == ND_IO_TIMEOUT ? ND_TIMEOUT : status;
}

HRESULT status_from_ib(int ib_status)
{
    switch (ib_status) {
    case IB_SUCCESS:
        return STATUS_SUCCESS;
    case IB_INSUFFICIENT_RESOURCES:
    case IB_MAX_MCAST_QPS_REACHED:
        return STATUS_INSUFFICIENT_RESOURCES;
    case IB_INSUFFICIENT_MEMORY:
        return STATUS_NO_MEMORY;
    case IB_INVALID_PARAMETER:
    case IB_INVALID_SETTING:
    case IB_INVALID_PKEY:
    case IB_INVALID_LKEY:
    case IB_INVALID_RKEY:
    case IB_INVALID_MAX_WRS:
    case IB_INVALID_MAX_SGE:
    case IB_INVALID_CQ_SIZE:
    case IB_INVALID_SRQ_SIZE:
    case IB_INVALID_SERVICE_TYPE:
    case IB_INVALID_GID:
    case IB_INVALID_LID:
    case IB_INVALID_GUID:
    case IB_INVALID_WR_TYPE:
    case IB_INVALID_PORT:
    case IB_INVALID_INDEX:
        return STATUS_INVALID_PARAMETER;
    case IB_NO_MATCH:
    case IB_NOT_FOUND:
        return STATUS_NOT_FOUND;
    case IB_TIMEOUT:
        return STATUS_TIMEOUT;
    case IB_CANCELED:
        return STATUS_CANCELLED;
    case IB_INTERRUPTED:
    case IB_NOT_DONE:
        return STATUS_ABANDONED;
    case IB_INVALID_PERMISSION:
        return STATUS_ACCESS_DENIED;
    case IB_UNSUPPORTED:
    case IB_QP_IN_TIMEWAIT:
    case IB_EE_IN_TIMEWAIT:
        return STATUS_INVALID_DEVICE_REQUEST;
    case IB_OVERFLOW:
        return STATUS_BUFFER_OVERFLOW;
    case IB_INVALID_QP_STATE:
        return STATUS_CONNECTION_INVALID;
    case IB_INVALID_APM_STATE:
    case IB_INVALID_PORT_STATE:
    case IB_INVALID_STATE:
        return STATUS_INVALID_DEVICE_STATE;
    case IB_RESOURCE_BUSY:
        return STATUS_DEVICE_BUSY;
    case IB_INVALID_CA_HANDLE:
    case IB_INVALID_AV_HANDLE:
    case IB_INVALID_CQ_HANDLE:
    case IB_INVALID_QP_HANDLE:
    case IB_INVALID_SRQ_HANDLE:
    case IB_INVALID_PD_HANDLE:
    case IB_INVALID_MR_HANDLE:
    case IB_INVALID_FMR_HANDLE:
    case IB_INVALID_MW_HANDLE:
    case IB_INVALID_MCAST_HANDLE:
    case IB_INVALID_AL_HANDLE:
    case IB_INVALID_HANDLE:
    case IB_INVALID_CALLBACK:
        return STATUS_INVALID_HANDLE;
    case IB_VERBS_PROCESSING_DONE:
        return STATUS_EVENT_DONE;
    case IB_PENDING:
        return STATUS_PENDING;
    default: /* IB_ERROR, IB_REMOTE_ERROR, IB_INVALID_GUID_MASK, IB_UNKNOWN_ERROR */
        return STATUS_UNSUCCESSFUL;
    }
}

HRESULT status_from_cm_errno(int error)
{
    switch (error) {
    case 0:
        return STATUS_SUCCESS;
    case EINVAL:
    case EADDRINUSE: /* a second listen */
        return STATUS_INVALID_PARAMETER;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    case ENODEV:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return STATUS_INVALID_ADDRESS;
    case EPERM:
    case EACCES:
        return STATUS_ACCESS_DENIED;
    case EBUSY:
        return STATUS_DEVICE_BUSY;
    case ENOSYS:
    case EOPNOTSUPP:
        return STATUS_NOT_SUPPORTED;
    case ETIMEDOUT:
        return STATUS_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOBUFS:
        return STATUS_INSUFFICIENT_RESOURCES;
    default:
        return STATUS_UNSUCCESSFUL;
    }
}

HRESULT status_cm(HRESULT status)
{
    switch (status) {
    case ND_CONNECTION_ABORTED: /* the peer has given up, of which the client may not have heard yet */
    case ND_CONNECTION_INVALID:
    case ND_CONNECTION_ACTIVE:
        return STATUS_INVALID_DEVICE_STATE;
    case ND_SHARING_VIOLATION:
    case (HRESULT)STATUS_BAD_NETWORK_NAME:
        return STATUS_INVALID_PARAMETER;
    case ND_TOO_MANY_ADDRESSES:
        return STATUS_INSUFFICIENT_RESOURCES;
    default:
        return status;
    }
}

HRESULT status_wv(HRESULT status)
{
    switch (status) {
    case ND_PENDING:
        return WV_IO_PENDING;
    case ND_SHARING_VIOLATION:
    case ND_TOO_MANY_ADDRESSES:
        return WV_ADDRESS_ALREADY_EXISTS;
    case ND_NETWORK_UNREACHABLE:
    case (HRESULT)STATUS_BAD_NETWORK_NAME:
        return WV_HOST_UNREACHABLE;
    case (HRESULT)STATUS_ADDRESS_ALREADY_ASSOCIATED:
        return WV_NOT_SUPPORTED;
    default:
        return status;
    }
}

HRESULT status_wv_post(HRESULT status)
{
    switch (status) {
    case ND_SUCCESS:
        return WV_SUCCESS;
    case ND_NO_MORE_ENTRIES: /* the queue is full */
    case ND_DATA_OVERRUN:    /* too many entries */
        return WV_INSUFFICIENT_RESOURCES;
    case ND_DEVICE_REMOVED:
        return WV_DEVICE_REMOVED;
    default: /* the state, the size of inline data or of the message, an argument the device refused */
        return WV_INVALID_PARAMETER;
    }
}

HRESULT status_wv_endpoint(HRESULT status, bool connect, bool notify)
{
    if (connect && status == ND_IO_TIMEOUT)
        return WV_TIMEOUT;
    if (notify && status == (HRESULT)STATUS_CONNECTION_DISCONNECTED)
        return WV_SUCCESS;
    return status_wv(status);
}
