/* SPDX-License-Identifier: MIT */
#include "winverbs/wv.h"

#include <arpa/inet.h>
#include <string.h>
#include <iba/ib_types.h>
#include <iba/ibat.h>

#include "core/address.h"
#include "core/resolve.h"

/* Source: winverbs.md section 8.3, iba-cm.md section 2.4. */

_Static_assert(sizeof(ib_path_rec_t) == sizeof(IBAT_PATH_BLOB), "the blob is a path record");

static uint8_t selected(uint8_t selector, uint8_t value)
{
    return (uint8_t)(selector << 6 | (value & 0x3f));
}

static void path_export(const struct ibv_sa_path_rec *from, IBAT_PATH_BLOB *blob)
{
    ib_path_rec_t path = { 0 };

    memcpy(&path.dgid, &from->dgid, sizeof(path.dgid));
    memcpy(&path.sgid, &from->sgid, sizeof(path.sgid));
    path.dlid = from->dlid;
    path.slid = from->slid;
    path.hop_flow_raw =
        htonl((from->raw_traffic ? 1u << 31 : 0) | (ntohl(from->flow_label) & 0xfffff) << 8 | from->hop_limit);
    path.tclass = from->traffic_class;
    /* In the bit above the number: whether the way back is the same. */
    path.num_path = (uint8_t)((from->reversible ? 0x80 : 0) | (from->numb_path & 0x7f));
    path.pkey = from->pkey;
    path.qos_class_sl = htons(from->sl & 0xf);
    path.mtu = selected(from->mtu_selector, from->mtu);
    path.rate = selected(from->rate_selector, from->rate);
    path.pkt_life = selected(from->packet_life_time_selector, from->packet_life_time);
    path.preference = from->preference;
    memcpy(blob, &path, sizeof(*blob));
}

HRESULT IbatQueryPath(const SOCKADDR *source, const SOCKADDR *destination, IBAT_PATH_BLOB *blob)
{
    union address local, remote;
    struct ibv_sa_path_rec path;
    NTSTATUS status;

    log_trace("%p", (void *)blob);
    if (!blob)
        return WV_INVALID_PARAMETER;
    memset(blob, 0, sizeof(*blob));
    if (!source || !destination)
        return WV_INVALID_PARAMETER;
    if (wv_dead())
        return WV_DEVICE_REMOVED;
    status = address_import(source, address_length(source), &local);
    if (status == ND_SUCCESS)
        status = address_import(destination, address_length(destination), &remote);
    if (status == ND_SUCCESS)
        status = resolve_path(&local, &remote, &path);
    if (status == ND_SUCCESS)
        path_export(&path, blob);
    return status_wv_endpoint(status, true, false);
}
