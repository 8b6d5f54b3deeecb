/* SPDX-License-Identifier: MIT */
#ifndef __IB_TYPES_H__
#define __IB_TYPES_H__

/* What the CM-only interface (ib_cm_ifc.h) needs of the InfiniBand types of WinOF: names, values and layouts are theirs.
 * A name that begins with net or ib_net is in network byte order. Source: iba-cm.md sections 1, 2.4, 2.5 and 8. */

#include <windows.h>

typedef uint16_t net16_t, ib_net16_t;
typedef uint32_t net32_t, ib_net32_t;
typedef uint64_t net64_t, ib_net64_t;
typedef int boolean_t;

/* Constants in network byte order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NDV_NET16(x) ((ib_net16_t)((((x)&0xff) << 8) | (((x) >> 8) & 0xff)))
#define NDV_NET64(x) ((ib_net64_t)__builtin_bswap64(x))
#else
#define NDV_NET16(x) ((ib_net16_t)(x))
#define NDV_NET64(x) ((ib_net64_t)(x))
#endif

/* ---- Statuses of the access layer; NTSTATUS of each: ndverbs_cm_status() in ndverbs.h ---- */

typedef enum _ib_api_status_t {
    IB_SUCCESS,
    IB_INSUFFICIENT_RESOURCES,
    IB_INSUFFICIENT_MEMORY,
    IB_INVALID_PARAMETER,
    IB_INVALID_SETTING,
    IB_NOT_FOUND,
    IB_TIMEOUT,
    IB_CANCELED,
    IB_INTERRUPTED,
    IB_INVALID_PERMISSION,
    IB_UNSUPPORTED,
    IB_OVERFLOW,
    IB_MAX_MCAST_QPS_REACHED,
    IB_INVALID_QP_STATE,
    IB_INVALID_APM_STATE,
    IB_INVALID_PORT_STATE,
    IB_INVALID_STATE,
    IB_RESOURCE_BUSY,
    IB_INVALID_PKEY,
    IB_INVALID_LKEY,
    IB_INVALID_RKEY,
    IB_INVALID_MAX_WRS,
    IB_INVALID_MAX_SGE,
    IB_INVALID_CQ_SIZE,
    IB_INVALID_SRQ_SIZE,
    IB_INVALID_SERVICE_TYPE,
    IB_INVALID_GID,
    IB_INVALID_LID,
    IB_INVALID_GUID,
    IB_INVALID_GUID_MASK,
    IB_INVALID_CA_HANDLE,
    IB_INVALID_AV_HANDLE,
    IB_INVALID_CQ_HANDLE,
    IB_INVALID_QP_HANDLE,
    IB_INVALID_SRQ_HANDLE,
    IB_INVALID_PD_HANDLE,
    IB_INVALID_MR_HANDLE,
    IB_INVALID_FMR_HANDLE,
    IB_INVALID_MW_HANDLE,
    IB_INVALID_MCAST_HANDLE,
    IB_INVALID_CALLBACK,
    IB_INVALID_AL_HANDLE,
    IB_INVALID_HANDLE,
    IB_ERROR,
    IB_REMOTE_ERROR,
    IB_VERBS_PROCESSING_DONE,
    IB_INVALID_WR_TYPE,
    IB_QP_IN_TIMEWAIT,
    IB_EE_IN_TIMEWAIT,
    IB_INVALID_PORT,
    IB_NOT_DONE,
    IB_INVALID_INDEX,
    IB_NO_MATCH,
    IB_PENDING,
    IB_UNKNOWN_ERROR
} ib_api_status_t;

/* ---- Addresses and paths ---- */

typedef union _ib_gid {
    uint8_t raw[16];
    struct _ib_gid_unicast {
        ib_net64_t prefix;
        ib_net64_t interface_id;
    } unicast;
    struct _ib_gid_multicast {
        uint8_t header[2];
        uint8_t raw_group_id[14];
    } multicast;
} __attribute__((packed, aligned(1))) ib_gid_t;

/* mtu, rate, pkt_life: selector in the top two bits; qos_class_sl: service level in the low four; hop_flow_raw: raw
 * traffic bit 31, flow label bits 8 to 27, hop limit bits 0 to 7. */
typedef struct _ib_path_rec {
    ib_net64_t service_id;
    ib_gid_t dgid;
    ib_gid_t sgid;
    ib_net16_t dlid;
    ib_net16_t slid;
    ib_net32_t hop_flow_raw;
    uint8_t tclass;
    uint8_t num_path;
    ib_net16_t pkey;
    ib_net16_t qos_class_sl;
    uint8_t mtu;
    uint8_t rate;
    uint8_t pkt_life;
    uint8_t preference;
    uint8_t resv2[6];
} __attribute__((packed, aligned(8))) ib_path_rec_t;

#define IB_PATH_SELECTOR_EXACTLY 2

typedef struct _ib_grh {
    ib_net32_t ver_class_flow;
    uint16_t resv1;
    uint8_t resv2;
    uint8_t hop_limit;
    ib_gid_t src_gid;
    ib_gid_t dest_gid;
} __attribute__((packed, aligned(1))) ib_grh_t;

typedef struct _ib_av_attr {
    uint8_t port_num;
    uint8_t sl;
    ib_net16_t dlid;
    boolean_t grh_valid;
    ib_grh_t grh;
    uint8_t static_rate;
    uint8_t path_bits;
    struct _av_conn {
        uint8_t path_mtu;
        uint8_t local_ack_timeout;
        uint8_t seq_err_retry_cnt;
        uint8_t rnr_retry_cnt;
    } conn;
} ib_av_attr_t;

#define IB_MTU_LEN_256  1
#define IB_MTU_LEN_512  2
#define IB_MTU_LEN_1024 3
#define IB_MTU_LEN_2048 4
#define IB_MTU_LEN_4096 5

/* ---- Queue pairs ---- */

typedef enum _ib_qp_type {
    IB_QPT_RELIABLE_CONN,
    IB_QPT_UNRELIABLE_CONN,
    IB_QPT_RELIABLE_DGRM,
    IB_QPT_UNRELIABLE_DGRM
} ib_qp_type_t;

typedef uint32_t ib_qp_state_t;
#define IB_QPS_RESET        0x00000001
#define IB_QPS_INIT         0x00000002
#define IB_QPS_RTR          0x00000004
#define IB_QPS_RTS          0x00000008
#define IB_QPS_SQD          0x00000010
#define IB_QPS_SQD_DRAINING 0x00000030
#define IB_QPS_SQD_DRAINED  0x00000050
#define IB_QPS_SQERR        0x00000080
#define IB_QPS_ERROR        0x00000100
#define IB_QPS_TIME_WAIT    0xDEAD0000

typedef uint32_t ib_access_t;
#define IB_AC_RDMA_READ   0x00000001
#define IB_AC_RDMA_WRITE  0x00000002
#define IB_AC_ATOMIC      0x00000004
#define IB_AC_LOCAL_WRITE 0x00000008
#define IB_AC_MW_BIND     0x00000010

typedef enum _ib_apm_state {
    IB_APM_MIGRATED = 1,
    IB_APM_REARM,
    IB_APM_ARMED
} ib_apm_state_t;

typedef uint32_t ib_qp_opts_t;
#define IB_MOD_QP_ALTERNATE_AV      0x00000001
#define IB_MOD_QP_PKEY              0x00000002
#define IB_MOD_QP_APM_STATE         0x00000004
#define IB_MOD_QP_PRIMARY_AV        0x00000008
#define IB_MOD_QP_RNR_NAK_TIMEOUT   0x00000010
#define IB_MOD_QP_RESP_RES          0x00000020
#define IB_MOD_QP_INIT_DEPTH        0x00000040
#define IB_MOD_QP_PRIMARY_PORT      0x00000080
#define IB_MOD_QP_ACCESS_CTRL       0x00000100
#define IB_MOD_QP_QKEY              0x00000200
#define IB_MOD_QP_SQ_DEPTH          0x00000400
#define IB_MOD_QP_RQ_DEPTH          0x00000800
#define IB_MOD_QP_CURRENT_STATE     0x00001000
#define IB_MOD_QP_RETRY_CNT         0x00002000
#define IB_MOD_QP_LOCAL_ACK_TIMEOUT 0x00004000
#define IB_MOD_QP_RNR_RETRY_CNT     0x00008000
#define IB_MOD_QP_GENERATE_PRIO_TAG 0x00010000

typedef struct _ib_qp_mod {
    ib_qp_state_t req_state;
    union _qp_mod {
        struct _qp_init {
            uint8_t primary_port;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
        } init;
        struct _qp_rtr {
            ib_net32_t rq_psn;
            ib_net32_t dest_qp;
            ib_av_attr_t primary_av;
            uint8_t resp_res;
            uint8_t rnr_nak_timeout;
            ib_qp_opts_t opts;
            ib_av_attr_t alternate_av;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
            uint32_t sq_depth;
            uint32_t rq_depth;
        } rtr;
        struct _qp_rts {
            ib_net32_t sq_psn;
            uint8_t retry_cnt;
            uint8_t rnr_retry_cnt;
            uint8_t local_ack_timeout;
            uint8_t init_depth;
            ib_qp_opts_t opts;
            uint8_t rnr_nak_timeout;
            ib_qp_state_t current_state;
            ib_net32_t qkey;
            ib_access_t access_ctrl;
            uint8_t resp_res;
            ib_av_attr_t primary_av;
            ib_av_attr_t alternate_av;
            uint32_t sq_depth;
            uint32_t rq_depth;
            ib_apm_state_t apm_state;
            uint8_t primary_port;
            uint16_t pkey_index;
        } rts;
        struct _qp_sqd {
            boolean_t sqd_event;
        } sqd;
    } state;
} ib_qp_mod_t;

/* ---- Connection messages ---- */

#define IB_REQ_PDATA_SIZE      92
#define IB_MRA_PDATA_SIZE      222
#define IB_REJ_PDATA_SIZE      148
#define IB_REP_PDATA_SIZE      196
#define IB_RTU_PDATA_SIZE      224
#define IB_DREQ_PDATA_SIZE     220
#define IB_DREP_PDATA_SIZE     224
#define IB_SIDR_REQ_PDATA_SIZE 216
#define IB_SIDR_REP_PDATA_SIZE 136
#define IB_LAP_PDATA_SIZE      168
#define IB_APR_PDATA_SIZE      148
#define IB_ARI_SIZE            72
#define IB_APR_INFO_SIZE       72
#define IB_SIDR_REP_INFO_SIZE  72

typedef uint8_t ib_cm_failover_t;
#define IB_FAILOVER_ACCEPT_SUCCESS     0
#define IB_FAILOVER_ACCEPT_UNSUPPORTED 1
#define IB_FAILOVER_ACCEPT_ERROR       2

typedef ib_net16_t ib_rej_status_t;
#define IB_REJ_INSUF_QP                NDV_NET16(1)
#define IB_REJ_INSUF_EEC               NDV_NET16(2)
#define IB_REJ_INSUF_RESOURCES         NDV_NET16(3)
#define IB_REJ_TIMEOUT                 NDV_NET16(4)
#define IB_REJ_UNSUPPORTED             NDV_NET16(5)
#define IB_REJ_INVALID_COMM_ID         NDV_NET16(6)
#define IB_REJ_INVALID_COMM_INST       NDV_NET16(7)
#define IB_REJ_INVALID_SID             NDV_NET16(8)
#define IB_REJ_INVALID_XPORT           NDV_NET16(9)
#define IB_REJ_STALE_CONN              NDV_NET16(10)
#define IB_REJ_RDC_NOT_EXIST           NDV_NET16(11)
#define IB_REJ_INVALID_GID             NDV_NET16(12)
#define IB_REJ_INVALID_LID             NDV_NET16(13)
#define IB_REJ_INVALID_SL              NDV_NET16(14)
#define IB_REJ_INVALID_TRAFFIC_CLASS   NDV_NET16(15)
#define IB_REJ_INVALID_HOP_LIMIT       NDV_NET16(16)
#define IB_REJ_INVALID_PKT_RATE        NDV_NET16(17)
#define IB_REJ_INVALID_ALT_GID         NDV_NET16(18)
#define IB_REJ_INVALID_ALT_LID         NDV_NET16(19)
#define IB_REJ_INVALID_ALT_SL          NDV_NET16(20)
#define IB_REJ_INVALID_ALT_TRAFFIC_CLS NDV_NET16(21)
#define IB_REJ_INVALID_ALT_HOP_LIMIT   NDV_NET16(22)
#define IB_REJ_INVALID_ALT_PKT_RATE    NDV_NET16(23)
#define IB_REJ_PORT_REDIRECT           NDV_NET16(24)
#define IB_REJ_INVALID_MTU             NDV_NET16(26)
#define IB_REJ_INSUFFICIENT_RESP_RES   NDV_NET16(27)
#define IB_REJ_USER_DEFINED            NDV_NET16(28)
#define IB_REJ_INVALID_RNR_RETRY       NDV_NET16(29)
#define IB_REJ_DUPLICATE_LOCAL_COMM_ID NDV_NET16(30)
#define IB_REJ_INVALID_CLASS_VER       NDV_NET16(31)
#define IB_REJ_INVALID_FLOW_LBL        NDV_NET16(32)
#define IB_REJ_INVALID_ALT_FLOW_LBL    NDV_NET16(33)
#define IB_REJ_SERVICE_HANDOFF         NDV_NET16(65535)

typedef struct _ib_apr_info {
    uint8_t data[IB_APR_INFO_SIZE];
} ib_apr_info_t;

typedef uint8_t ib_apr_status_t;
#define IB_AP_SUCCESS         0
#define IB_AP_INVALID_COMM_ID 1
#define IB_AP_UNSUPPORTED     2
#define IB_AP_REJECT          3
#define IB_AP_REDIRECT        4
#define IB_AP_IS_CURRENT      5
#define IB_AP_INVALID_QPN     6
#define IB_AP_INVALID_LID     7
#define IB_AP_INVALID_GID     8
#define IB_AP_INVALID_FLOW    9
#define IB_AP_INVALID_TCLASS  10
#define IB_AP_INVALID_HOP     11
#define IB_AP_INVALID_RATE    12
#define IB_AP_INVALID_SL      13

typedef uint8_t ib_sidr_status_t;
#define IB_SIDR_SUCCESS     0
#define IB_SIDR_UNSUPPORTED 1
#define IB_SIDR_REJECT      2
#define IB_SIDR_NO_QP       3
#define IB_SIDR_REDIRECT    4
#define IB_SIDR_UNSUP_VER   5

/* ---- IP addressing of connection requests: the first 36 bytes of a request's private data ---- */

#define IB_REQ_CM_RDMA_SID_PREFIX 0x0000000001000000ull
#define IB_REQ_CM_RDMA_SID_MASK   0xFFFFFFFFFF000000ull
#define IB_REQ_CM_RDMA_PDATA_SIZE 56
#define IB_REQ_CM_RDMA_VER        0
#define IB_REQ_CM_RDMA_IPV4       0x40
#define IB_REQ_CM_RDMA_IPV6       0x60

/* compare_offset of listen(), for service ids of this range. */
#define IB_REQ_CM_RDMA_CMP_SRC_PORT 0x1
#define IB_REQ_CM_RDMA_CMP_SRC_IP   0x2
#define IB_REQ_CM_RDMA_CMP_DST_IP   0x4

typedef struct _ib_cm_rdma_req {
    uint8_t maj_min_ver;
    uint8_t ipv;
    ib_net16_t src_port;
    ib_net32_t src_ip_addr[4]; /* IPv4: in the last */
    ib_net32_t dst_ip_addr[4];
    uint8_t pdata[IB_REQ_CM_RDMA_PDATA_SIZE];
} ib_cm_rdma_req_t;

/* The service id of an IP protocol (6: TCP) and a port in network byte order. */
static inline ib_net64_t ib_cm_rdma_cm_sid(uint8_t protocol, ib_net16_t port)
{
    uint64_t number = NDV_NET16(port); /* a swap is its own reverse */

    return NDV_NET64(IB_REQ_CM_RDMA_SID_PREFIX | (uint64_t)protocol << 16 | number);
}

#endif
