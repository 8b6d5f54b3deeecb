/* SPDX-License-Identifier: MIT */
#ifndef _ib_cm_ifc_h_
#define _ib_cm_ifc_h_

/* The CM-only interface: the connection manager as a table of functions, for clients that have queue pairs of their own
 * (raw verbs) and want nothing but connections. Source: iba-cm.md; what Linux' connection manager cannot do, and what
 * happens instead: lib/doc/deviations.md. More entry points (events without callbacks, private data at any time, an
 * asynchronous destroy): ndverbs.h.
 *
 * Every function: any thread, also inside of a callback. A pointer that is no id, or the id of a destroyed one, gives
 * STATUS_INVALID_HANDLE; a call that the id's state does not allow STATUS_INVALID_DEVICE_STATE; private data longer than
 * the message takes STATUS_INVALID_PARAMETER; in a forked child everything STATUS_DEVICE_REMOVED. When the device goes,
 * the ids of its connections are past use, as after a disconnect: STATUS_INVALID_DEVICE_STATE (STATUS_DEVICE_REMOVED from a
 * call that meets the removal).
 *
 * Callbacks run on a thread of the library, for one id one at a time, and never in a wait of the application. The event
 * and what it points to are valid until the callback returns (ndverbs_cm_copy_event() makes a copy to keep). A failing
 * status from a callback destroys the id after it. An id without callback keeps its events until it has one, or until
 * ndverbs_cm_get_event() takes them. */

#include "ib_types.h"
#include "ib_al.h"

static inline USHORT IbaCmVersion(UINT8 Major, UINT8 Minor)
{
    return (USHORT)(Major << 8 | Minor);
}

static inline UINT8 IbaCmVersionMajor(USHORT Version)
{
    return (UINT8)(Version >> 8);
}

static inline UINT8 IbaCmVersionMinor(USHORT Version)
{
    return (UINT8)Version;
}

#define INFINIBAND_INTERFACE_CM_VERSION IbaCmVersion(1, 1)

/* ---- Messages ---- */

/* A connection request to send. Windows needs p_primary_path to find the port; here the addresses come from the IP
 * header in front of p_pdata (ib_cm_rdma_req_t), or from the path's GIDs if they are IP addresses. */
typedef struct _iba_cm_req {
    ib_net64_t service_id;
    ib_path_rec_t *p_primary_path;
    ib_path_rec_t *p_alt_path; /* NULL: none */
    net32_t qpn;
    ib_qp_type_t qp_type;
    net32_t starting_psn;
    const void *p_pdata;
    uint8_t pdata_len;
    uint8_t max_cm_retries;
    uint8_t resp_res;
    uint8_t init_depth;
    uint8_t remote_resp_timeout;
    uint8_t flow_ctrl;
    uint8_t local_resp_timeout;
    uint8_t rnr_retry_cnt;
    uint8_t retry_cnt;
    uint8_t srq;
} iba_cm_req;

/* resp_res and init_depth are the receiver's: reads it must serve, reads it may issue. */
typedef struct _iba_cm_req_event {
    ib_net64_t service_id;
    ib_path_rec_t primary_path;
    ib_path_rec_t alt_path;
    net32_t qpn;
    ib_qp_type_t qp_type;
    net32_t starting_psn;
    uint8_t pdata[IB_REQ_PDATA_SIZE];
    uint8_t max_cm_retries;
    uint8_t resp_res;
    uint8_t init_depth;
    uint8_t remote_resp_timeout;
    uint8_t flow_ctrl;
    uint8_t local_resp_timeout;
    uint8_t rnr_retry_cnt;
    uint8_t retry_cnt;
    uint8_t srq;
    net64_t local_ca_guid;
    net64_t remote_ca_guid;
    uint16_t pkey_index;
    uint8_t port_num;
} iba_cm_req_event;

typedef struct _iba_cm_rep {
    net32_t qpn;
    net32_t starting_psn;
    const void *p_pdata;
    uint8_t pdata_len;
    ib_cm_failover_t failover_accepted;
    uint8_t resp_res;
    uint8_t init_depth;
    uint8_t flow_ctrl;
    uint8_t rnr_retry_cnt;
    uint8_t srq;
} iba_cm_rep;

typedef struct _iba_cm_rep_event {
    iba_cm_rep rep;
    net64_t ca_guid;
    uint8_t target_ack_delay;
} iba_cm_rep_event;

typedef struct _iba_cm_pdata {
    void *p_pdata;
    uint8_t pdata_len;
} iba_cm_pdata, iba_cm_rtu_event, iba_cm_dreq_event, iba_cm_drep_event;

typedef struct _iba_cm_rej_event {
    void *ari;
    void *p_pdata;
    ib_rej_status_t reason;
    uint8_t ari_length;
    uint8_t pdata_len;
} iba_cm_rej_event;

typedef struct _iba_cm_mra_event {
    void *p_pdata;
    uint8_t pdata_len;
    uint8_t service_timeout;
} iba_cm_mra_event;

typedef struct _iba_cm_lap {
    ib_path_rec_t *p_alt_path;
    void *p_pdata;
    uint8_t pdata_len;
    uint8_t remote_resp_timeout;
} iba_cm_lap, iba_cm_lap_event;

typedef struct _iba_cm_apr {
    void *p_pdata;
    ib_apr_info_t *p_info;
    uint8_t pdata_len;
    uint8_t info_length;
    ib_apr_status_t status;
} iba_cm_apr, iba_cm_apr_event;

typedef struct _iba_cm_sidr_req {
    ib_net64_t service_id;
    ib_path_rec_t *p_path;
    void *p_pdata;
    uint8_t pdata_len;
    uint8_t max_cm_retries;
    uint32_t timeout;
} iba_cm_sidr_req;

typedef struct _iba_cm_sidr_req_event {
    iba_cm_sidr_req sidr_req;
    net64_t ca_guid;
    uint16_t pkey_index;
    uint8_t port_num;
} iba_cm_sidr_req_event;

typedef struct _iba_cm_sidr_rep {
    net32_t qpn;
    net32_t qkey;
    void *p_pdata;
    void *p_info;
    uint8_t pdata_len;
    uint8_t info_len;
    ib_sidr_status_t status;
} iba_cm_sidr_rep, iba_cm_sidr_rep_event;

typedef enum _iba_cm_event_type {
    iba_cm_req_error,
    iba_cm_req_received,
    iba_cm_rep_error,
    iba_cm_rep_received,
    iba_cm_rtu_received,
    iba_cm_dreq_error,
    iba_cm_dreq_received,
    iba_cm_drep_received,
    iba_cm_rej_received,
    iba_cm_mra_received,
    iba_cm_lap_error,
    iba_cm_lap_received,
    iba_cm_apr_received,
    iba_cm_sidr_req_error,
    iba_cm_sidr_req_received,
    iba_cm_sidr_rep_received
} iba_cm_event_type;

typedef struct _iba_cm_event {
    iba_cm_event_type type;
    union {
        iba_cm_req_event req;
        iba_cm_rep_event rep;
        iba_cm_rtu_event rtu;
        iba_cm_dreq_event dreq;
        iba_cm_drep_event drep;
        iba_cm_rej_event rej;
        iba_cm_mra_event mra;
        iba_cm_lap_event lap;
        iba_cm_apr_event apr;
        iba_cm_sidr_req_event sidr_req;
        iba_cm_sidr_rep_event sidr_rep;
    } data;
} iba_cm_event;

/* ---- Ids ---- */

/* Made and freed by the interface alone. `context` and `callback` may be written by the client: `context` first, and
 * before the call that lets events come. */
typedef struct _iba_cm_id {
    void *context;
    NTSTATUS (*callback)(struct _iba_cm_id *p_id, struct _iba_cm_event *p_event);
    net32_t cid;
} iba_cm_id;

typedef struct _iba_cm_interface {
    /* An id in state idle. STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES (no thread for callbacks),
     * STATUS_INVALID_PARAMETER. `callback` may be NULL. */
    NTSTATUS(*create_id)
    (NTSTATUS (*callback)(iba_cm_id *p_id, iba_cm_event *p_event), void *context, iba_cm_id **pp_id);

    /* Ends what the id has (request refused, connection disconnected, listen ended) and frees it. Waits for a running
     * callback, after which none runs. Inside of the id's own callback it returns at once, and the id goes when the
     * callback has returned. */
    void (*destroy_id)(iba_cm_id *p_id);

    /* Listens on all ports for requests to a service id of the IP range, TCP (0x000000000106pppp, port not 0), others:
     * STATUS_NOT_SUPPORTED. `p_compare_buf`: NULL, or an ib_cm_rdma_req_t (at least its header) of which version and what
     * `compare_offset` names (IB_REQ_CM_RDMA_CMP_*) must be in a request; requests that nobody listens for are refused.
     * STATUS_INVALID_PARAMETER: a bad buffer, the service id is in use, or an overlap with another listen.
     * STATUS_INVALID_ADDRESS: the local address compared with is none of an RDMA device. STATUS_INSUFFICIENT_RESOURCES,
     * STATUS_NO_MEMORY, STATUS_DEVICE_NOT_READY, STATUS_ACCESS_DENIED (port below 1024). */
    NTSTATUS(*listen)
    (iba_cm_id *p_id, net64_t service_id, void *p_compare_buf, uint8_t compare_len, uint8_t compare_offset);

    /* The oldest request that nobody has taken. The new id has no callback, and the listening id for context; it has no
     * event before the client answers. `p_event` is the client's and stays as it is. STATUS_NO_MORE_ENTRIES: there is
     * none; from then on a new request is told by the callback again. STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES:
     * the request is lost, its sender sees a refusal. */
    NTSTATUS (*get_request)(iba_cm_id *p_listen_id, iba_cm_id **pp_id, iba_cm_event *p_event);

    /* From idle. Returns when the request is on its way; then rep_received, rej_received or req_error. STATUS_NOT_SUPPORTED:
     * the service id is not in TCP's range, or the queue pair not a reliable connected one. STATUS_INVALID_PARAMETER: no
     * path, or nothing that says where to. STATUS_INVALID_ADDRESS: no RDMA device has the local address.
     * STATUS_NETWORK_UNREACHABLE. STATUS_INVALID_DEVICE_REQUEST: the id has been connected before.
     * STATUS_INSUFFICIENT_RESOURCES, STATUS_NO_MEMORY, STATUS_DEVICE_NOT_READY. */
    NTSTATUS (*send_req)(iba_cm_id *p_id, iba_cm_req *p_req);

    /* format_rep without attributes, and send_formatted_rep. The statuses of both. */
    NTSTATUS (*send_rep)(iba_cm_id *p_id, iba_cm_rep *p_rep);

    /* After rep_received, with the queue pair in RTS. Private data is checked and not sent, as in the next two. */
    NTSTATUS (*send_rtu)(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);

    /* From established; then drep_received or dreq_error. */
    NTSTATUS (*send_dreq)(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);

    /* After dreq_received. */
    NTSTATUS (*send_drep)(iba_cm_id *p_id, const void *p_pdata, uint8_t pdata_len);

    /* Refuses a request, or a reply after rep_received. The peer sees IB_REJ_USER_DEFINED whatever `status`. */
    NTSTATUS(*send_rej)
    (iba_cm_id *p_id, ib_rej_status_t status, const void *p_ari, uint8_t ari_len, const void *p_pdata,
     uint8_t pdata_len);

    /* Once each after a request, format_rep, and rep_received. The kernel asks for time by itself. */
    NTSTATUS (*send_mra)(iba_cm_id *p_id, uint8_t service_timeout, const void *p_pdata, uint8_t pdata_len);

    /* STATUS_NOT_SUPPORTED: no alternate paths, no service id resolution. */
    NTSTATUS (*send_lap)(iba_cm_id *p_id, iba_cm_lap *p_lap);
    NTSTATUS (*send_apr)(iba_cm_id *p_id, iba_cm_apr *p_apr);
    NTSTATUS (*send_sidr_req)(iba_cm_id *p_id, iba_cm_sidr_req *p_req);
    NTSTATUS (*send_sidr_rep)(iba_cm_id *p_id, iba_cm_sidr_rep *p_rep);

    /* Attributes for the client's queue pair: IB_QPS_INIT from send_req or the request on, IB_QPS_RTR and IB_QPS_RTS when
     * the peer's part is known; other states STATUS_INVALID_PARAMETER. After format_rep they are those of the reply. On
     * iWARP the kernel moves the queue pair: only INIT's access rights mean something. ndverbs_cm_qp_attr() turns them
     * into verbs attributes. */
    NTSTATUS (*get_qp_attr)(iba_cm_id *p_id, ib_qp_state_t state, ib_qp_mod_t *p_attr);

    /* STATUS_NOT_SUPPORTED. */
    NTSTATUS (*migrate)(iba_cm_id *p_id);

    /* The queue pair has received something before rtu_received: established, without a callback. */
    NTSTATUS (*established)(iba_cm_id *p_id);

    /* Back to idle; requests that wait are refused. STATUS_INVALID_HANDLE only. */
    NTSTATUS (*cancel_listen)(iba_cm_id *p_id);

    /* Keeps the reply (its private data too) and gives the attributes for INIT, unless NULL. The kernel chooses the
     * starting sequence number: it is written back to p_rep->starting_psn. May be repeated. resp_res 0: as the request
     * asked; both limits are cut to what device and request allow. */
    NTSTATUS (*format_rep)(iba_cm_id *p_id, iba_cm_rep *p_rep, ib_qp_mod_t *p_init);

    /* Sends it, with the queue pair in RTS; then rtu_received, rej_received or rep_error.
     * STATUS_INVALID_DEVICE_STATE: not formatted, or the peer has given up. */
    NTSTATUS (*send_formatted_rep)(iba_cm_id *p_id);

    /* get_request that gives the new id callback and context. */
    NTSTATUS(*get_request_ex)
    (iba_cm_id *p_listen_id, NTSTATUS (*callback)(iba_cm_id *p_id, iba_cm_event *p_event), void *context,
     iba_cm_id **pp_id, iba_cm_event *p_event);
} iba_cm_interface;

/* ---- The interface ---- */

#ifndef _NDV_INTERFACE_DEFINED
#define _NDV_INTERFACE_DEFINED
/* The head of every interface between Windows drivers. */
#undef INTERFACE
typedef VOID (*PINTERFACE_REFERENCE)(PVOID Context);
typedef VOID (*PINTERFACE_DEREFERENCE)(PVOID Context);
typedef struct _INTERFACE {
    USHORT Size;
    USHORT Version;
    PVOID Context;
    PINTERFACE_REFERENCE InterfaceReference;
    PINTERFACE_DEREFERENCE InterfaceDereference;
} INTERFACE, *PINTERFACE;
#endif

typedef struct _INFINIBAND_INTERFACE_CM {
    INTERFACE InterfaceHeader;
    iba_cm_interface CM;
} INFINIBAND_INTERFACE_CM;

/* Fills the table, with one reference taken: the client calls InterfaceDereference(Context) when it has destroyed its
 * last id. `size`: of *pInterface, or more. STATUS_BUFFER_TOO_SMALL, STATUS_NOT_SUPPORTED (another version or interface),
 * STATUS_INVALID_PARAMETER, STATUS_DEVICE_REMOVED (a forked child). On Windows a driver sends a query for the interface
 * to the bus; this function takes its place. Any thread. */
NDV_API NTSTATUS iba_cm_query_interface(const GUID *guid, USHORT size, USHORT version,
                                        INFINIBAND_INTERFACE_CM *pInterface);

#endif

#include <guiddef.h>
DEFINE_GUID(GUID_INFINIBAND_INTERFACE_CM, 0x6a11d060, 0x8957, 0x49e6, 0xbe, 0x2a, 0x01, 0xed, 0xf1, 0xbd, 0x22, 0xb3);
