/* SPDX-License-Identifier: MIT */

/* Devices, contexts, queries and asynchronous events. */

#include "fake_internal.h"

#include <endian.h>
#include <stdlib.h>

struct device_list {
    struct fake_object object;
    void *entries[16];
};

struct list fake_devices = { &fake_devices, &fake_devices };
static enum ibv_fork_status fork_status = IBV_FORK_UNNEEDED;

/* ---- the set of devices ---- */

struct fake_device *fake_device_by_name(const char *name)
{
    list_for_each (node, &fake_devices) {
        struct fake_device *device = list_entry(node, struct fake_device, link);

        if (strcmp(device->device.name, name) == 0)
            return device;
    }
    fprintf(stderr, "fakes: no device %s\n", name);
    abort();
}

struct ibv_device *fake_device(const char *name)
{
    struct ibv_device *found = NULL;

    fake_lock();
    list_for_each (node, &fake_devices) {
        struct fake_device *device = list_entry(node, struct fake_device, link);

        if (strcmp(device->device.name, name) == 0)
            found = &device->device;
    }
    fake_unlock();
    return found;
}

bool fake_device_is_iwarp(const struct fake_device *device)
{
    return device->device.transport_type == IBV_TRANSPORT_IWARP;
}

/* Figures in the size of the kernel's software devices: rxe for IB, siw for iWARP. */
static void set_attributes(struct fake_device *device)
{
    bool iwarp = fake_device_is_iwarp(device);
    struct ibv_device_attr *attr = &device->attr;

    strcpy(attr->fw_ver, "1.0");
    attr->node_guid = htobe64(device->guid);
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = 4096;
    attr->vendor_id = 0x1234;
    attr->vendor_part_id = 1;
    attr->max_qp = 4096;
    attr->max_qp_wr = iwarp ? 32768 : 65536;
    attr->device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
    if (!iwarp)
        attr->device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_SRQ_RESIZE;
    attr->max_sge = iwarp ? 6 : FAKE_MAX_SGE;
    attr->max_sge_rd = iwarp ? 1 : FAKE_MAX_SGE;
    attr->max_cq = 4096;
    attr->max_cqe = 32767;
    attr->max_mr = 65536;
    attr->max_pd = 4096;
    attr->max_qp_rd_atom = 128;
    attr->max_qp_init_rd_atom = 128;
    attr->max_res_rd_atom = 65536;
    attr->atomic_cap = IBV_ATOMIC_NONE;
    attr->max_mw = iwarp ? 0 : 4096;
    attr->max_srq = 1024;
    attr->max_srq_wr = 32768;
    attr->max_srq_sge = iwarp ? 6 : 27;
    attr->max_pkeys = 64;
    attr->phys_port_cnt = (uint8_t)device->port_count;
    for (unsigned i = 0; i < device->port_count; i++) {
        struct ibv_port_attr *port = &device->ports[i];

        port->state = IBV_PORT_ACTIVE;
        port->max_mtu = IBV_MTU_4096;
        port->active_mtu = IBV_MTU_1024;
        port->gid_tbl_len = 16;
        port->max_msg_sz = iwarp ? UINT32_MAX : 8u << 20;
        port->pkey_tbl_len = 1;
        port->active_width = 1;
        port->active_speed = 1;
        port->phys_state = 5;
        port->link_layer = IBV_LINK_LAYER_ETHERNET;
    }
}

static struct fake_device *device_new(const char *name, enum ibv_transport_type transport, unsigned ports)
{
    struct fake_device *device = (struct fake_device *)fake_malloc(sizeof(*device));

    device->device.node_type = transport == IBV_TRANSPORT_IWARP ? IBV_NODE_RNIC : IBV_NODE_CA;
    device->device.transport_type = transport;
    snprintf(device->device.name, sizeof(device->device.name), "%s", name);
    snprintf(device->device.dev_name, sizeof(device->device.dev_name), "uverbs_%.50s", name);
    device->port_count = ports < 1 ? 1 : ports > FAKE_MAX_PORTS ? FAKE_MAX_PORTS : ports;
    device->guid = 0xfa4e000000000000u;
    for (const char *c = name; *c; c++)
        device->guid =
            (device->guid & 0xffff000000000000u) | ((device->guid * 31 + (unsigned char)*c) & 0xffffffffffffu);
    device->max_inline = transport == IBV_TRANSPORT_IWARP ? 80 : 512;
    set_attributes(device);
    list_add_tail(&fake_devices, &device->link);
    return device;
}

void fake_devices_init(void)
{
    device_new("fake_ib", IBV_TRANSPORT_IB, 1);
    device_new("fake_iw", IBV_TRANSPORT_IWARP, 1);
}

void fake_devices_reset(void)
{
    list_for_each_safe (node, &fake_devices) {
        list_del(node);
        fake_free(list_entry(node, struct fake_device, link));
    }
    fork_status = IBV_FORK_UNNEEDED;
    fake_devices_init();
}

struct ibv_device *fake_device_add(const char *name, enum ibv_transport_type transport, unsigned ports)
{
    struct fake_device *device;

    fake_lock();
    device = device_new(name, transport, ports);
    fake_unlock();
    return &device->device;
}

struct ibv_device_attr *fake_device_attr(const char *name)
{
    struct fake_device *device;

    fake_lock();
    device = fake_device_by_name(name);
    fake_unlock();
    return &device->attr;
}

struct ibv_port_attr *fake_port_attr(const char *name, unsigned port)
{
    struct fake_device *device;

    fake_lock();
    device = fake_device_by_name(name);
    fake_unlock();
    return port >= 1 && port <= device->port_count ? &device->ports[port - 1] : NULL;
}

void fake_device_max_inline(const char *name, uint32_t bytes)
{
    fake_lock();
    fake_device_by_name(name)->max_inline = bytes;
    fake_unlock();
}

void fake_device_guid(const char *name, uint64_t guid)
{
    struct fake_device *device;

    fake_lock();
    device = fake_device_by_name(name);
    device->guid = guid;
    device->attr.node_guid = htobe64(guid);
    fake_unlock();
}

void fake_device_quirks(const char *name, unsigned quirks)
{
    fake_lock();
    fake_device_by_name(name)->quirks = quirks;
    fake_unlock();
}

void fake_fork_status(enum ibv_fork_status status)
{
    fake_lock();
    fork_status = status;
    fake_unlock();
}

uint32_t fake_number(uint32_t n, const struct fake_device *device)
{
    uint32_t power = 2;

    if (!(device->quirks & FAKE_QUIRK_ROUND_UP))
        return n;
    while (power - 1 < n)
        power *= 2;
    return power - 1;
}

/* ---- contexts ---- */

struct fake_context *fake_context_of(struct ibv_context *context)
{
    return (struct fake_context *)((char *)context - offsetof(struct fake_context, verbs.context));
}

struct fake_context *fake_context_check(struct ibv_context *context, enum fake_fn fn)
{
    if (!context) {
        fake_violation("%s: NULL for a context", fake_name(fn));
        return NULL;
    }
    return (struct fake_context *)fake_object_check(fake_public(&fake_context_of(context)->object), FAKE_OBJ_CONTEXT,
                                                    fn);
}

static int op_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    struct fake_call call = { .fn = FAKE_ibv_query_port, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);

    if (!err && (!ctx || port < 1 || port > ctx->device->port_count))
        err = EINVAL;
    if (!err)
        memcpy(attr, &ctx->device->ports[port - 1], size < sizeof(*attr) ? size : sizeof(*attr));
    return fake_leave(&call, err);
}

static int op_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                              struct ibv_device_attr_ex *attr, size_t size)
{
    (void)input;
    memset(attr, 0, size);
    return ibv_query_device(context, &attr->orig_attr);
}

static void context_release(struct fake_object *object)
{
    struct fake_context *ctx = (struct fake_context *)object;

    fake_signal_close(&ctx->async);
    fake_async_drop(ctx);
}

static struct fake_context *context_new(struct fake_device *device)
{
    struct fake_context *ctx =
        (struct fake_context *)fake_object_new(sizeof(*ctx), sizeof(ctx->verbs), FAKE_OBJ_CONTEXT);
    struct ibv_context *context = &ctx->verbs.context;

    ctx->device = device;
    ctx->object.release = context_release;
    list_init(&ctx->async_events);
    fake_signal_open(&ctx->async);
    ctx->verbs.sz = sizeof(ctx->verbs);
    ctx->verbs.query_port = op_query_port;
    ctx->verbs.query_device_ex = op_query_device_ex;
    context->device = &device->device;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->async_fd = ctx->async.fd;
    context->cmd_fd = -1;
    context->num_comp_vectors = 2;
    context->ops.poll_cq = fake_poll_cq;
    context->ops.req_notify_cq = fake_req_notify_cq;
    context->ops.post_send = fake_post_send;
    context->ops.post_recv = fake_post_recv;
    context->ops.post_srq_recv = fake_post_srq_recv;
    context->ops.dealloc_mw = fake_dealloc_mw;
    if (!fake_device_is_iwarp(device)) {
        context->ops.alloc_mw = fake_alloc_mw;
        context->ops.bind_mw = fake_bind_mw;
    }
    return ctx;
}

struct ibv_context *fake_cm_context(struct fake_device *device)
{
    if (!device->cm_context) {
        device->cm_context = context_new(device);
        device->cm_context->object.hidden = true;
    }
    return &device->cm_context->verbs.context;
}

static struct device_list *device_list_new(void)
{
    return (struct device_list *)fake_object_new(sizeof(struct device_list), sizeof(((struct device_list *)0)->entries),
                                                 FAKE_OBJ_DEVICE_LIST);
}

struct ibv_device **ibv_get_device_list(int *count)
{
    struct fake_call call = { .fn = FAKE_ibv_get_device_list };
    int err = fake_enter(&call), n = 0;
    struct device_list *entries = NULL;

    if (!err) {
        entries = device_list_new();
        call.created = entries->entries;
        list_for_each (node, &fake_devices) {
            struct fake_device *device = list_entry(node, struct fake_device, link);

            if (!device->removed && n < 15)
                entries->entries[n++] = &device->device;
        }
    }
    if (count)
        *count = n;
    if (fake_return(fake_leave(&call, err)) != 0)
        return NULL;
    return (struct ibv_device **)entries->entries;
}

void ibv_free_device_list(struct ibv_device **list)
{
    struct fake_call call = { .fn = FAKE_ibv_free_device_list, .object = list };
    struct fake_object *object;

    fake_enter(&call);
    object = (struct fake_object *)fake_object_check(list, FAKE_OBJ_DEVICE_LIST, call.fn);
    if (object)
        fake_object_destroy(object);
    fake_leave(&call, 0);
}

struct ibv_context **rdma_get_devices(int *count)
{
    struct fake_call call = { .fn = FAKE_rdma_get_devices };
    int err = fake_enter(&call), n = 0;
    struct device_list *entries = NULL;

    if (!err) {
        entries = device_list_new();
        call.created = entries->entries;
        list_for_each (node, &fake_devices) {
            struct fake_device *device = list_entry(node, struct fake_device, link);

            if (!device->removed && n < 15)
                entries->entries[n++] = fake_cm_context(device);
        }
    }
    if (count)
        *count = n;
    if (fake_return(fake_leave(&call, err)) != 0)
        return NULL;
    return (struct ibv_context **)entries->entries;
}

void rdma_free_devices(struct ibv_context **list)
{
    struct fake_call call = { .fn = FAKE_rdma_free_devices, .object = list };
    struct fake_object *object;

    fake_enter(&call);
    object = (struct fake_object *)fake_object_check(list, FAKE_OBJ_DEVICE_LIST, call.fn);
    if (object)
        fake_object_destroy(object);
    fake_leave(&call, 0);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct fake_call call = { .fn = FAKE_ibv_open_device, .object = device };
    int err = fake_enter(&call);
    struct fake_device *fake = (struct fake_device *)device;
    struct fake_context *ctx = NULL;

    if (!err && fake->removed)
        err = ENODEV;
    if (!err) {
        ctx = context_new(fake);
        call.created = &ctx->verbs.context;
    }
    return fake_return(fake_leave(&call, err)) ? NULL : &ctx->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
    struct fake_call call = { .fn = FAKE_ibv_close_device, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);

    if (!ctx)
        return fake_return(fake_leave(&call, EINVAL));
    if (!err) {
        if (ctx->object.hidden)
            fake_violation("ibv_close_device: the context belongs to librdmacm");
        if (ctx->children)
            fake_violation("ibv_close_device: %u objects of the context are still there", ctx->children);
        fake_signal_close(&ctx->async);
        fake_object_destroy(&ctx->object);
    }
    return fake_return(fake_leave(&call, err));
}

/* ---- queries ---- */

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(((struct fake_device *)device)->guid);
}

int ibv_get_device_index(struct ibv_device *device)
{
    int index = 1;

    fake_lock();
    list_for_each (node, &fake_devices) {
        if (list_entry(node, struct fake_device, link) == (struct fake_device *)device)
            break;
        index++;
    }
    fake_unlock();
    return index;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct fake_call call = { .fn = FAKE_ibv_query_device, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);

    if (!err && !ctx)
        err = EINVAL;
    if (!err)
        *attr = ctx->device->attr;
    return fake_leave(&call, err);
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return op_query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* Entry 0 is made of the node GUID; on a RoCE port the others are its addresses in order, IPv4 ones mapped. */
static bool gid_entry(struct fake_device *device, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
    struct fake_address *address;

    memset(entry, 0, sizeof(*entry));
    entry->gid_index = index;
    entry->port_num = port;
    entry->gid_type = fake_device_is_iwarp(device) ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
    entry->ndev_ifindex = port;
    if (device->quirks & FAKE_QUIRK_ROCE_V1) {
        if (index % 2 == 0)
            entry->gid_type = IBV_GID_TYPE_ROCE_V1;
        index /= 2;
    }
    if (index == 0) {
        entry->gid.global.subnet_prefix = htobe64(0xfe80000000000000u);
        entry->gid.global.interface_id = htobe64(device->guid);
        return true;
    }
    address = fake_device_is_iwarp(device) ? NULL : fake_address_nth(device, port, index - 1);
    if (!address)
        return false;
    if (address->addr.ss_family == AF_INET) {
        entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
        memcpy(&entry->gid.raw[12], &((struct sockaddr_in *)&address->addr)->sin_addr, 4);
    } else {
        memcpy(entry->gid.raw, &((struct sockaddr_in6 *)&address->addr)->sin6_addr, 16);
    }
    return true;
}

static int query_gid(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
    struct fake_call call = { .fn = FAKE_ibv_query_gid, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);

    if (!err && (!ctx || port < 1 || port > ctx->device->port_count ||
                 index >= (uint32_t)ctx->device->ports[port - 1].gid_tbl_len))
        err = EINVAL;
    if (!err && !gid_entry(ctx->device, port, index, entry))
        err = ENODATA;
    return fake_leave(&call, err);
}

/* An empty entry reads as zeros here and is ENODATA in the extended query, as in the kernel. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;
    int err = query_gid(context, port, (uint32_t)index, &entry);

    if (!err)
        *gid = entry.gid;
    else if (err == ENODATA)
        memset(gid, 0, sizeof(*gid));
    return fake_return(err == ENODATA ? 0 : err);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    struct ibv_gid_entry found;
    int err = flags ? EINVAL : query_gid(context, port, index, &found);

    if (!err)
        memcpy(entry, &found, size < sizeof(found) ? size : sizeof(found));
    return err;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                             size_t size)
{
    struct fake_call call = { .fn = FAKE_ibv_query_gid_table, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);
    struct ibv_gid_entry entry;
    size_t count = 0;

    if (!err && (!ctx || flags || size > sizeof(entry)))
        err = EINVAL;
    for (uint32_t port = 1; !err && port <= ctx->device->port_count; port++) {
        for (uint32_t i = 0; i < (uint32_t)ctx->device->ports[port - 1].gid_tbl_len && count < max; i++) {
            if (gid_entry(ctx->device, port, i, &entry))
                memcpy((char *)entries + count++ * size, &entry, size);
        }
    }
    fake_leave(&call, err);
    return err ? -err : (ssize_t)count;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    struct fake_call call = { .fn = FAKE_ibv_query_pkey, .object = context };
    int err = fake_enter(&call);
    struct fake_context *ctx = fake_context_check(context, call.fn);

    if (!err && (!ctx || port < 1 || port > ctx->device->port_count || index != 0))
        err = EINVAL;
    if (!err)
        *pkey = htobe16(0xffff);
    return fake_return(fake_leave(&call, err));
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 first;

    if (ibv_query_pkey(context, port, 0, &first) == 0 && first == pkey)
        return 0;
    errno = EINVAL;
    return -1;
}

/* ---- fork ---- */

int ibv_fork_init(void)
{
    struct fake_call call = { .fn = FAKE_ibv_fork_init };
    int err = fake_enter(&call);

    if (!err && fork_status == IBV_FORK_DISABLED)
        fork_status = IBV_FORK_ENABLED;
    return fake_leave(&call, err);
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    enum ibv_fork_status status;

    fake_lock();
    status = fork_status;
    fake_unlock();
    return status;
}
