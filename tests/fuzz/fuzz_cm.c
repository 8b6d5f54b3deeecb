/* SPDX-License-Identifier: MIT */
/* The connection manager's side: events of every kind, status and private data in every state of a connector, between the
 * application's calls. Every request that was started ends exactly once, what is copied out keeps to its buffer, nothing is
 * left over, and no call is made that the fakes know to be wrong. */
#include "fuzz.h"
#include "tests/unit/connection/rig.h"

#define OVERLAPPEDS 32

/* The frame that the rig expects, without Check: a failed assertion is a finding. */

const char *(*harness_status_text)(int32_t status);

void harness_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

void harness_fail_status(const char *file, int line, const char *expr, const char *wanted, int32_t is, int32_t should)
{
    harness_fail(file, line, "%s == %s: is 0x%08x, should be 0x%08x", expr, wanted, (uint32_t)is, (uint32_t)should);
}

void harness_fail_memory(const char *file, int line, const char *a, const char *b, const void *pa, const void *pb,
                         size_t length)
{
    (void)pa;
    (void)pb;
    harness_fail(file, line, "%s and %s differ within %zu bytes", a, b, length);
}

/* An overlapped request must be pending or over; one that is not pending may be used again. */
static OVERLAPPED overlappeds[OVERLAPPEDS];

static OVERLAPPED *free_overlapped(void)
{
    for (int i = 0; i < OVERLAPPEDS; i++) {
        if (!pending(&overlappeds[i]))
            return &overlappeds[i];
    }
    return NULL;
}

static void inject(struct input *input, struct connector *c)
{
    static uint8_t data[256];
    struct fake_cm cm = { .event = (enum rdma_cm_event_type)(input_byte(input) % (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)) };
    uint8_t how = input_byte(input);

    /* What the kernel never delivers to a connector's id. */
    if (cm.event == RDMA_CM_EVENT_CONNECT_REQUEST || !c->wire.cmid || !c->wire.cmid->id)
        return;
    cm.status = how & 1 ? -(int)input_byte(input) : 0;
    if (cm.event == RDMA_CM_EVENT_REJECTED)
        cm.status = input_byte(input);
    cm.responder_resources = input_byte(input);
    cm.initiator_depth = input_byte(input);
    cm.srq = how >> 7;
    cm.qp_num = 77;
    cm.private_data_len = input_byte(input);
    for (unsigned i = 0; i < cm.private_data_len; i++)
        data[i] = (uint8_t)(how + i);
    cm.private_data = data;
    fake_cm_event(c->wire.cmid->id, &cm);
}

static void read_back(struct input *input, struct connector *c)
{
    ULONG room = input_byte(input), length = room, inbound, outbound;
    uint8_t *buffer = malloc(room + 1);
    union address address;
    NTSTATUS status;

    /* A block of that size: one byte too many shows. */
    status = connector_get_private_data(c, buffer, &length);
    must(status == ND_SUCCESS ? length <= room : status == ND_BUFFER_OVERFLOW ? length > room : length == 0);
    free(buffer);
    connector_get_read_limits(c, &inbound, &outbound);
    length = sizeof(address);
    connector_get_local_address(c, &address.sa, &length);
    length = sizeof(address);
    connector_get_peer_address(c, &address.sa, &length);
}

static void step(struct input *input, struct connector *c, struct qp *qp, struct adapter *adapter)
{
    uint8_t operation = input_byte(input), length = input_byte(input);
    union address to = rig_address(adapter == ib ? "10.1.1.200" : "10.1.2.200", 4711);
    OVERLAPPED *ov = free_overlapped();
    static uint8_t data[256];

    if (!ov)
        operation = 0;
    switch (operation % 16) {
    case 1:
        connector_connect(c, qp, &to.sa, sizeof(to.v4), length & 7, length >> 3 & 7, data, length, ov);
        break;
    case 2:
        connector_complete_connect(c, ov);
        break;
    case 3:
        connector_accept(c, qp, length & 7, length >> 3 & 7, data, length, ov);
        break;
    case 4:
        connector_reject(c, data, length);
        break;
    case 5:
        connector_notify_disconnect(c, ov);
        break;
    case 6:
        connector_disconnect(c, ov);
        break;
    case 7:
        connector_cancel(c);
        break;
    case 8:
        read_back(input, c);
        break;
    case 9:
        rig_advance(length * 1000u);
        break;
    case 10:
        rig_run();
        break;
    default:
        inject(input, c);
        if (operation & 0x80)
            rig_run();
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct connector_policy *const policies[] = { &nd_policy, &wv_policy, &v1_policy };
    struct input input = { bytes, bytes + (size > 256 ? 256 : size) };
    uint8_t how = input_byte(&input);
    struct adapter *adapter;
    struct passive passive;
    struct connector *c;
    struct qp *qp;
    bool is_passive = how & 2;

    memset(overlappeds, 0, sizeof(overlappeds));
    rig_begin();
    adapter = how & 1 ? iw : ib;
    if (is_passive) {
        passive_request_in(&passive, adapter, policies[(how >> 2) % 3]);
        c = passive.c;
        qp = passive.qp;
    } else {
        union address local = rig_address(adapter == ib ? "10.1.1.1" : "10.1.2.1", 0);

        fake_auto_resolve(how & 0x80);
        c = rig_connector(adapter, policies[(how >> 2) % 3]);
        qp = rig_qp(adapter);
        must(connector_bind(c, &local.sa, sizeof(local.v4)) == ND_SUCCESS);
    }
    while (input_left(&input))
        step(&input, c, qp, adapter);

    /* The end in any state: what hangs on the peer is given its answer. */
    connector_ref(c);
    rig_drop(c);
    for (int i = 0; i < OVERLAPPEDS; i++)
        must(!pending(&overlappeds[i]));
    rig_run();
    if (c->wire.state == WIRE_DREQ_OUT && c->wire.cmid)
        event(c, RDMA_CM_EVENT_DISCONNECTED, 0);
    connector_unref(c);
    rig_run();
    if (is_passive) {
        listener_release(passive.l);
        listener_unref(passive.l);
        rig_run();
    }
    rig_end();
    return 0;
}
