/* SPDX-License-Identifier: MIT */
/* What the CM-only interface reads from its clients and from the wire: service ids, the IP header in front of private data,
 * GIDs. First byte: which; the rest is the thing itself, in a block of its size. */
#include "cm_ifc/cm_ifc.h"
#include "fuzz.h"

static void check_header(const uint8_t *data, size_t size)
{
    union address source, destination, source_again, destination_again;
    ib_cm_rdma_req_t header;

    if (!cm_header_read(data, size, &source, &destination))
        return;
    must(size >= offsetof(ib_cm_rdma_req_t, pdata));
    must(source.sa.sa_family == destination.sa.sa_family);
    must(source.sa.sa_family == AF_INET || source.sa.sa_family == AF_INET6);
    memset(&header, 0, sizeof(header));
    cm_header_write(&header, &source, &destination);
    must(cm_header_read(&header, sizeof(header), &source_again, &destination_again));
    must(!memcmp(&source, &source_again, sizeof(source)) && !memcmp(&destination, &destination_again, sizeof(source)));
}

static void check_gid(const uint8_t *data)
{
    union address address;
    ib_gid_t gid;

    memcpy(&gid, data, sizeof(gid));
    if (!cm_gid_to_address(&gid, &address))
        return;
    must(!address_is_any(&address.sa) || address.sa.sa_family == AF_INET);
    must(address_port(&address.sa) == 0);
}

static void check_service(uint64_t number)
{
    uint16_t port;

    if (!cm_port_of_service(htobe64(number), &port))
        return;
    /* 0x000000000106pppp: the prefix of IP, TCP, the port. */
    must(number == (0x01060000u | port));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = { bytes, bytes + size };
    uint8_t how = input_byte(&input);
    size_t left = input_left(&input);
    uint8_t *data = malloc(left + 1);

    memcpy(data, input.next, left);
    data = realloc(data, left ? left : 1);
    switch (how % 3) {
    case 0:
        check_header(data, left);
        break;
    case 1:
        if (left >= sizeof(ib_gid_t))
            check_gid(data);
        break;
    default:
        check_service(input_u64(&input));
        break;
    }
    free(data);
    return 0;
}
