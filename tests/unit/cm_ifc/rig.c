/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdlib.h>

#include "core/engine.h"
#include "core/status.h"

INFINIBAND_INTERFACE_CM cm_ifc_table;

static const char *status_words(int32_t status)
{
    const char *name = status_name(status);

    return name ? name : "";
}

static bool removed;

void rig_remove(const char *device)
{
    removed = true;
    fake_device_remove(device);
}

void rig_begin(void)
{
    removed = false;
    harness_status_text = status_words;
    fake_reset();
    fake_loop_test(engine_on_loop);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(cm_ifc_table),
                                     INFINIBAND_INTERFACE_CM_VERSION, &cm_ifc_table),
              STATUS_SUCCESS);
}

void rig_end(void)
{
    cm_ifc_table.InterfaceHeader.InterfaceDereference(cm_ifc_table.InterfaceHeader.Context);
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    /* On a worker, which looks at the list of devices behind the end of one that was removed. */
    ok_eventually(fake_live(FAKE_OBJ_ID) == 0 && fake_live(FAKE_OBJ_CONTEXT) == 0);
    if (removed && fake_count(FAKE_ibv_close_device))
        ok_eventually(fake_count(FAKE_rdma_free_devices) && fake_live(FAKE_OBJ_DEVICE_LIST) == 0);
    ok_str(fake_leaks(), "");
    ok_str(fake_violations(), "");
}

NTSTATUS record(iba_cm_id *id, iba_cm_event *event)
{
    struct client *client = id->context;
    uint32_t count = __atomic_load_n(&client->count, __ATOMIC_RELAXED);

    ok_uint(__atomic_exchange_n(&client->inside, 1, __ATOMIC_SEQ_CST), ==, 0);
    ok(!engine_on_loop());
    ok_uint(count, <, 32);
    if (!client->id)
        client->id = id;
    ok_ptr(client->id, ==, id);
    ok_status(ndverbs_cm_copy_event(event, &client->event[count]), STATUS_SUCCESS);
    if (client->hook)
        client->hook(client, event);
    __atomic_store_n(&client->inside, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&client->count, count + 1, __ATOMIC_RELEASE);
    return client->result;
}

void client_make(struct client *client)
{
    memset(client, 0, sizeof(*client));
    ok_status(CM.create_id(record, client, &client->id), STATUS_SUCCESS);
}

uint32_t client_count(struct client *client)
{
    return __atomic_load_n(&client->count, __ATOMIC_ACQUIRE);
}

void client_end(struct client *client)
{
    if (client->id)
        CM.destroy_id(client->id);
    client->id = NULL;
    for (uint32_t i = 0; i < client_count(client); i++)
        ndverbs_cm_free_event(client->event[i]);
    client->count = 0;
}

iba_cm_event *client_event(struct client *client, unsigned int n, iba_cm_event_type type)
{
    ok_eventually(client_count(client) > n);
    ok_int(client->event[n]->type, ==, type);
    return client->event[n];
}

static void settled(void *arg)
{
    __atomic_store_n((uint32_t *)arg, 1, __ATOMIC_RELEASE);
}

void rig_settle(void)
{
    for (int round = 0; round < 2; round++) {
        uint32_t done = 0;
        iba_cm_id *id;

        ok_status(CM.create_id(record, NULL, &id), STATUS_SUCCESS);
        ok_status(ndverbs_cm_destroy_id(id, settled, &done), STATUS_SUCCESS);
        ok_eventually(__atomic_load_n(&done, __ATOMIC_ACQUIRE));
    }
}

static struct cm_id *inner(struct client *client)
{
    return CONTAINING_RECORD(client->id, struct cm_id, pub);
}

struct rdma_cm_id *client_rdma_id(struct client *client)
{
    struct rdma_cm_id *id;

    cm_id_lock(inner(client));
    ok(inner(client)->wire.cmid != NULL);
    id = inner(client)->wire.cmid->id;
    cm_id_unlock(inner(client));
    return id;
}

bool client_in(struct client *client, enum cm_state state)
{
    bool right;

    cm_id_lock(inner(client));
    right = cm_id_state_locked(inner(client)) == state;
    cm_id_unlock(inner(client));
    return right;
}

net64_t service_of(uint16_t port)
{
    return ib_cm_rdma_cm_sid(6, htons(port));
}

void request_fill(struct asked *r, const char *from, const char *to, const char *text)
{
    memset(r, 0, sizeof(*r));
    r->data.ipv = IB_REQ_CM_RDMA_IPV4;
    if (from)
        ok_int(inet_pton(AF_INET, from, &r->data.src_ip_addr[3]), ==, 1);
    ok_int(inet_pton(AF_INET, to, &r->data.dst_ip_addr[3]), ==, 1);
    strcpy((char *)r->data.pdata, text);
    r->req.service_id = service_of(PORT);
    r->req.p_primary_path = &r->path;
    r->req.qpn = htonl(0x1234);
    r->req.p_pdata = &r->data;
    r->req.pdata_len = sizeof(r->data);
    r->req.resp_res = 4;
    r->req.init_depth = 3;
    r->req.retry_cnt = 5;
    r->req.rnr_retry_cnt = 6;
    r->req.max_cm_retries = 15;
}

iba_cm_rep reply_of(const char *text)
{
    return (iba_cm_rep){ .qpn = htonl(0x5678),
                         .p_pdata = text,
                         .pdata_len = (uint8_t)(strlen(text) + 1),
                         .resp_res = 2,
                         .init_depth = 1,
                         .rnr_retry_cnt = 4 };
}

static void make_qps(struct pair *pair)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
    };

    ok((pair->context = ibv_open_device(fake_device("fake_iw"))) != NULL);
    ok((pair->pd = ibv_alloc_pd(pair->context)) != NULL);
    ok((pair->cq = ibv_create_cq(pair->context, 8, NULL, NULL, 0)) != NULL);
    init.send_cq = init.recv_cq = pair->cq;
    for (int i = 0; i < 2; i++)
        ok((pair->qp[i] = ibv_create_qp(pair->pd, &init)) != NULL);
}

void pair_listen(struct pair *pair, bool iw)
{
    memset(pair, 0, sizeof(*pair));
    pair->iw = iw;
    fake_wire(true);
    if (iw)
        make_qps(pair);
    client_make(&pair->listener);
    ok_status(CM.listen(pair->listener.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    client_make(&pair->active);
}

void pair_request(struct pair *pair, bool iw)
{
    struct asked r;

    pair_listen(pair, iw);
    request_fill(&r, NULL, iw ? "10.1.2.1" : "10.1.1.1", "hello");
    if (iw)
        r.req.qpn = htonl(pair->qp[0]->qp_num);
    ok_status(CM.send_req(pair->active.id, &r.req), STATUS_SUCCESS);
    client_event(&pair->listener, 0, iba_cm_req_received);
    ok_status(CM.get_request_ex(pair->listener.id, record, &pair->passive, &pair->passive.id, &pair->request),
              STATUS_SUCCESS);
    ok(client_in(&pair->passive, CM_REQ_RCVD));
}

void pair_reply(struct pair *pair, bool iw)
{
    iba_cm_rep rep = reply_of("world");

    pair_request(pair, iw);
    if (iw)
        rep.qpn = htonl(pair->qp[1]->qp_num);
    ok_status(CM.send_rep(pair->passive.id, &rep), STATUS_SUCCESS);
    client_event(&pair->active, 0, iba_cm_rep_received);
    ok(client_in(&pair->active, CM_REP_RCVD));
}

void pair_established(struct pair *pair, bool iw)
{
    pair_reply(pair, iw);
    ok_status(CM.send_rtu(pair->active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair->passive, 0, iba_cm_rtu_received);
    ok(client_in(&pair->active, CM_ESTABLISHED));
    ok(client_in(&pair->passive, CM_ESTABLISHED));
}

void pair_end(struct pair *pair)
{
    client_end(&pair->active);
    client_end(&pair->passive);
    client_end(&pair->listener);
    if (!pair->iw)
        return;
    ok_eventually(fake_live(FAKE_OBJ_ID) <= 1); /* the adapter's */
    for (int i = 0; i < 2; i++)
        ok_int(ibv_destroy_qp(pair->qp[i]), ==, 0);
    ok_int(ibv_destroy_cq(pair->cq), ==, 0);
    ok_int(ibv_dealloc_pd(pair->pd), ==, 0);
    ok_int(ibv_close_device(pair->context), ==, 0);
}
