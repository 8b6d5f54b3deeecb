/* SPDX-License-Identifier: MIT */
#include "cm_ifc.h"

#include <endian.h>
#include <string.h>
#include <infiniband/sa.h>

#define PROTOCOL_TCP 6

bool cm_port_of_service(net64_t service_id, uint16_t *port)
{
    uint64_t number = be64toh(service_id);

    if ((number & IB_REQ_CM_RDMA_SID_MASK) != IB_REQ_CM_RDMA_SID_PREFIX || ((number >> 16) & 0xff) != PROTOCOL_TCP)
        return false;
    *port = (uint16_t)number;
    return true;
}

/* ---- The IP header of a request's private data ---- */

static void read_ip(union address *to, bool v6, const ib_net32_t ip[4])
{
    memset(to, 0, sizeof(*to));
    if (v6) {
        to->sa.sa_family = AF_INET6;
        memcpy(&to->v6.sin6_addr, ip, sizeof(to->v6.sin6_addr));
    } else {
        to->sa.sa_family = AF_INET;
        to->v4.sin_addr.s_addr = ip[3];
    }
}

bool cm_header_read(const void *data, size_t length, union address *source, union address *destination)
{
    ib_cm_rdma_req_t header = { 0 };

    if (!data || length < offsetof(ib_cm_rdma_req_t, pdata))
        return false;
    memcpy(&header, data, offsetof(ib_cm_rdma_req_t, pdata));
    if (header.maj_min_ver != IB_REQ_CM_RDMA_VER ||
        (header.ipv != IB_REQ_CM_RDMA_IPV4 && header.ipv != IB_REQ_CM_RDMA_IPV6))
        return false;
    read_ip(source, header.ipv == IB_REQ_CM_RDMA_IPV6, header.src_ip_addr);
    read_ip(destination, header.ipv == IB_REQ_CM_RDMA_IPV6, header.dst_ip_addr);
    address_set_port(&source->sa, ntohs(header.src_port));
    return true;
}

static void write_ip(ib_net32_t ip[4], const union address *from)
{
    memset(ip, 0, 4 * sizeof(ip[0]));
    if (from->sa.sa_family == AF_INET6)
        memcpy(ip, &from->v6.sin6_addr, sizeof(from->v6.sin6_addr));
    else
        ip[3] = from->v4.sin_addr.s_addr;
}

void cm_header_write(ib_cm_rdma_req_t *header, const union address *source, const union address *destination)
{
    header->maj_min_ver = IB_REQ_CM_RDMA_VER;
    header->ipv = source->sa.sa_family == AF_INET6 ? IB_REQ_CM_RDMA_IPV6 : IB_REQ_CM_RDMA_IPV4;
    header->src_port = htons(address_port(&source->sa));
    write_ip(header->src_ip_addr, source);
    write_ip(header->dst_ip_addr, destination);
}

/* ---- Paths ---- */

/* RoCE's GIDs are IP addresses. */
bool cm_gid_to_address(const ib_gid_t *gid, union address *address)
{
    static const uint8_t none[16], mapped[12] = { [10] = 0xff, [11] = 0xff };

    memset(address, 0, sizeof(*address));
    if (!memcmp(gid->raw, none, sizeof(none)))
        return false;
    if (!memcmp(gid->raw, mapped, sizeof(mapped))) {
        address->sa.sa_family = AF_INET;
        memcpy(&address->v4.sin_addr, gid->raw + 12, 4);
    } else {
        address->sa.sa_family = AF_INET6;
        memcpy(&address->v6.sin6_addr, gid->raw, 16);
    }
    return true;
}

/* From the receiver's point of view: the destination is the peer. An id of a request has no path record of its own;
 * what it lacks comes from the attributes for the queue pair. */
void cm_path_fill(const struct connection *conn, const struct ibv_qp_attr *rtr, ib_path_rec_t *path)
{
    const struct rdma_cm_id *id = conn->cmid->id;
    const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;
    const struct ibv_sa_path_rec *record = id->route.num_paths ? id->route.path_rec : NULL;
    uint32_t flow = 0, hops = 0;

    memset(path, 0, sizeof(*path));
    memcpy(&path->dgid, &ib->dgid, sizeof(path->dgid));
    memcpy(&path->sgid, &ib->sgid, sizeof(path->sgid));
    path->pkey = ib->pkey;
    path->num_path = 1;
    if (rtr) {
        flow = rtr->ah_attr.grh.flow_label;
        hops = rtr->ah_attr.grh.hop_limit;
        path->dlid = htons(rtr->ah_attr.dlid);
        path->tclass = rtr->ah_attr.grh.traffic_class;
        path->qos_class_sl = htons(rtr->ah_attr.sl);
        path->mtu = (uint8_t)(IB_PATH_SELECTOR_EXACTLY << 6 | rtr->path_mtu);
        path->rate = (uint8_t)(IB_PATH_SELECTOR_EXACTLY << 6 | (rtr->ah_attr.static_rate & 0x3f));
    }
    if (record) {
        /* As in resolve.c: on Ethernet, where the other LID is none, librdmacm leaves pieces of a MAC address there, and flags of its
         * own are the preference. */
        path->slid = path->dlid ? record->slid : 0;
        path->pkt_life = (uint8_t)(record->packet_life_time_selector << 6 | record->packet_life_time);
    }
    path->hop_flow_raw = htonl((flow & 0xfffff) << 8 | hops);
}
