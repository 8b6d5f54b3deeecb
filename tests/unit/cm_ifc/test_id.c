/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

/* The interface and the life of ids: iba-cm.md 1 and 5. */

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

TEST(query_interface__results)
{
    static const GUID other = { 1, 2, 3, { 4 } };
    INFINIBAND_INTERFACE_CM table;

    ok_status(iba_cm_query_interface(NULL, sizeof(table), 0x0101, &table), STATUS_INVALID_PARAMETER);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table), 0x0101, NULL),
              STATUS_INVALID_PARAMETER);
    ok_status(iba_cm_query_interface(&other, sizeof(table), 0x0101, &table), STATUS_NOT_SUPPORTED);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table), 0x0100, &table),
              STATUS_NOT_SUPPORTED);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table), 0x0102, &table),
              STATUS_NOT_SUPPORTED);
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table) - 1, 0x0101, &table),
              STATUS_BUFFER_TOO_SMALL);
    memset(&table, 0, sizeof(table));
    ok_status(iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table) + 8, 0x0101, &table), STATUS_SUCCESS);
    ok_uint(table.InterfaceHeader.Size, ==, sizeof(table));
    ok_uint(table.InterfaceHeader.Version, ==, 0x0101);
    for (size_t i = 0; i < sizeof(iba_cm_interface) / sizeof(void *); i++)
        ok(((void **)(void *)(&table.InterfaceHeader + 1))[i] != NULL);
    table.InterfaceHeader.InterfaceReference(table.InterfaceHeader.Context);
    table.InterfaceHeader.InterfaceDereference(table.InterfaceHeader.Context);
    table.InterfaceHeader.InterfaceDereference(table.InterfaceHeader.Context);
    ok_uint(IbaCmVersionMajor(0x0203), ==, 2);
    ok_uint(IbaCmVersionMinor(0x0203), ==, 3);
}

TEST(create_id__results)
{
    iba_cm_id *a, *b;

    ok_status(CM.create_id(record, NULL, NULL), STATUS_INVALID_PARAMETER);
    fake_alloc_fail(1);
    ok_status(CM.create_id(record, NULL, &a), STATUS_NO_MEMORY);
    ok_status(CM.create_id(record, &a, &a), STATUS_SUCCESS);
    ok_status(CM.create_id(NULL, NULL, &b), STATUS_SUCCESS);
    ok(a->callback == record && a->context == &a && !b->callback && !b->context);
    ok_uint(a->cid, !=, b->cid);
    CM.destroy_id(a);
    CM.destroy_id(b);
    CM.destroy_id(NULL);
}

/* Each entry, on something that is no id or in a state that does not allow it. */
static void every_entry(iba_cm_id *id, NTSTATUS wanted)
{
    bool idle = wanted == STATUS_INVALID_DEVICE_STATE;
    struct asked r;
    iba_cm_rep rep = reply_of("x");
    iba_cm_event event;
    ib_qp_mod_t mod;
    iba_cm_id *child;

    request_fill(&r, NULL, "10.1.1.1", "x");
    if (!idle) {
        ok_status(CM.listen(id, service_of(PORT), NULL, 0, 0), wanted);
        ok_status(CM.cancel_listen(id), wanted);
        ok_status(CM.send_req(id, &r.req), wanted);
    }
    ok_status(CM.get_request(id, &child, &event), wanted);
    ok_status(CM.get_request_ex(id, record, NULL, &child, &event), wanted);
    ok_status(CM.send_rep(id, &rep), wanted);
    ok_status(CM.format_rep(id, &rep, &mod), wanted);
    ok_status(CM.send_formatted_rep(id), wanted);
    ok_status(CM.send_rtu(id, NULL, 0), wanted);
    ok_status(CM.send_dreq(id, NULL, 0), wanted);
    ok_status(CM.send_drep(id, NULL, 0), wanted);
    ok_status(CM.send_rej(id, IB_REJ_USER_DEFINED, NULL, 0, NULL, 0), wanted);
    ok_status(CM.send_mra(id, 10, NULL, 0), wanted);
    ok_status(CM.established(id), wanted);
    ok_status(CM.get_qp_attr(id, IB_QPS_INIT, &mod), wanted);
    ok_status(CM.get_qp_attr(id, IB_QPS_RTR, &mod), wanted);
    ok_status(CM.get_qp_attr(id, IB_QPS_RTS, &mod), wanted);
    wanted = idle ? STATUS_NOT_SUPPORTED : wanted;
    ok_status(CM.send_lap(id, NULL), wanted);
    ok_status(CM.send_apr(id, NULL), wanted);
    ok_status(CM.send_sidr_req(id, NULL), wanted);
    ok_status(CM.send_sidr_rep(id, NULL), wanted);
    ok_status(CM.migrate(id), wanted);
}

TEST(every_entry__no_id)
{
    iba_cm_id foreign = { 0 };
    struct client client;
    iba_cm_id *old;
    iba_cm_event *event;
    uint8_t length = 0, limit;
    int fd;

    every_entry(NULL, STATUS_INVALID_HANDLE);
    every_entry(&foreign, STATUS_INVALID_HANDLE);
    client_make(&client);
    old = client.id;
    client_end(&client);
    every_entry(old, STATUS_INVALID_HANDLE);
    CM.destroy_id(old);
    ok_status(ndverbs_cm_event_fd(old, &fd), STATUS_INVALID_HANDLE);
    ok_status(ndverbs_cm_get_event(old, &event), STATUS_INVALID_HANDLE);
    ok_status(ndverbs_cm_set_callback(old, record, NULL), STATUS_INVALID_HANDLE);
    ok_status(ndverbs_cm_get_pdata(old, &limit, &length), STATUS_INVALID_HANDLE);
    ok_status(ndverbs_cm_get_read_limits(old, &limit, &limit), STATUS_INVALID_HANDLE);
    ok_status(ndverbs_cm_destroy_id(old, NULL, NULL), STATUS_INVALID_HANDLE);
}

/* Nothing of the parent's may be used: every call says so, and nothing hangs. */
static int forked_child(iba_cm_id *id)
{
    INFINIBAND_INTERFACE_CM table;
    iba_cm_id *other;
    ib_qp_mod_t mod;

    if (iba_cm_query_interface(&GUID_INFINIBAND_INTERFACE_CM, sizeof(table), 0x0101, &table) != STATUS_DEVICE_REMOVED)
        return 1;
    if (CM.create_id(record, NULL, &other) != STATUS_DEVICE_REMOVED)
        return 2;
    if (CM.get_qp_attr(id, IB_QPS_INIT, &mod) != STATUS_DEVICE_REMOVED)
        return 3;
    if (CM.listen(id, service_of(PORT), NULL, 0, 0) != STATUS_DEVICE_REMOVED)
        return 4;
    if (ndverbs_cm_destroy_id(id, NULL, NULL) != STATUS_DEVICE_REMOVED)
        return 5;
    CM.destroy_id(id);
    return 0;
}

TEST(every_entry__in_a_forked_child)
{
    struct pair pair;
    int status;
    pid_t pid;

    pair_request(&pair, false);
    pid = fork();
    if (pid == 0)
        _exit(forked_child(pair.active.id));
    ok_int(pid, >, 0);
    ok_int(waitpid(pid, &status, 0), ==, pid);
    ok_int(status, ==, 0);
    pair_end(&pair);
}

TEST(every_entry__idle)
{
    struct client client;

    client_make(&client);
    every_entry(client.id, STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.cancel_listen(client.id), STATUS_SUCCESS);
    ok_uint(client_count(&client), ==, 0);
    client_end(&client);
}

/* ---- Callbacks and destroy ---- */

struct stop {
    uint32_t inside, go, destroyed;
    iba_cm_id *id;
};

static void stop_hook(struct client *client, iba_cm_event *event)
{
    struct stop *stop = client->arg;

    (void)event;
    __atomic_store_n(&stop->inside, 1, __ATOMIC_SEQ_CST);
    ok_eventually(__atomic_load_n(&stop->go, __ATOMIC_SEQ_CST));
    ok_uint(__atomic_load_n(&stop->destroyed, __ATOMIC_SEQ_CST), ==, 0);
}

static void *destroyer(void *arg)
{
    struct stop *stop = arg;

    CM.destroy_id(stop->id);
    __atomic_store_n(&stop->destroyed, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(destroy_id__waits_for_the_callback)
{
    struct stop stop = { 0 };
    struct pair pair;
    iba_cm_rep rep = reply_of("x");
    ib_qp_mod_t mod;
    pthread_t thread;

    pair_request(&pair, false);
    pair.active.hook = stop_hook;
    pair.active.arg = &stop;
    stop.id = pair.active.id;
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    ok_eventually(__atomic_load_n(&stop.inside, __ATOMIC_SEQ_CST));
    ok_int(pthread_create(&thread, NULL, destroyer, &stop), ==, 0);
    ok_eventually(CM.get_qp_attr(stop.id, IB_QPS_INIT, &mod) == STATUS_INVALID_HANDLE); /* it is inside */
    for (int i = 0; i < 1000; i++)
        harness_yield();
    ok_uint(__atomic_load_n(&stop.destroyed, __ATOMIC_SEQ_CST), ==, 0);
    __atomic_store_n(&stop.go, 1, __ATOMIC_SEQ_CST);
    ok_int(pthread_join(thread, NULL), ==, 0);
    ok_uint(client_count(&pair.active), ==, 1);
    pair.active.id = NULL;
    client_event(&pair.passive, 0, iba_cm_rej_received);
    pair_end(&pair);
}

static void destroy_hook(struct client *client, iba_cm_event *event)
{
    ib_qp_mod_t mod;

    CM.destroy_id(client->id);
    ok_status(CM.get_qp_attr(client->id, IB_QPS_INIT, &mod), STATUS_INVALID_HANDLE);
    ok_int(event->type, ==, client->event[client->count]->type); /* still there */
    client->id = NULL;
}

TEST(destroy_id__in_its_own_callback)
{
    struct pair pair;
    iba_cm_rep rep = reply_of("x");

    pair_request(&pair, false);
    pair.active.hook = destroy_hook;
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    ok_eventually(client_count(&pair.active) == 1);
    client_event(&pair.passive, 0, iba_cm_rej_received);
    rig_settle();
    ok_uint(client_count(&pair.active), ==, 1);
    pair_end(&pair);
}

TEST(callback__a_failing_one_destroys)
{
    struct pair pair;
    iba_cm_rep rep = reply_of("x");
    iba_cm_id *id;
    ib_qp_mod_t mod;

    pair_request(&pair, false);
    pair.active.result = STATUS_UNSUCCESSFUL;
    id = pair.active.id;
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rep_received);
    client_event(&pair.passive, 0, iba_cm_rej_received);
    rig_settle();
    ok_status(CM.get_qp_attr(id, IB_QPS_INIT, &mod), STATUS_INVALID_HANDLE);
    pair.active.id = NULL;
    pair_end(&pair);
}

static void destroyed(void *arg)
{
    struct stop *stop = arg;

    ok_uint(__atomic_load_n(&stop->go, __ATOMIC_SEQ_CST), ==, 1);
    __atomic_store_n(&stop->destroyed, 1, __ATOMIC_SEQ_CST);
}

TEST(destroy_id__tells_when_it_is_done)
{
    struct stop stop = { 0 };
    struct pair pair;
    iba_cm_rep rep = reply_of("x");

    pair_request(&pair, false);
    pair.active.hook = stop_hook;
    pair.active.arg = &stop;
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    ok_eventually(__atomic_load_n(&stop.inside, __ATOMIC_SEQ_CST));
    ok_status(ndverbs_cm_destroy_id(pair.active.id, destroyed, &stop), STATUS_SUCCESS); /* does not wait */
    ok_status(ndverbs_cm_destroy_id(pair.active.id, destroyed, &stop), STATUS_INVALID_HANDLE);
    __atomic_store_n(&stop.go, 1, __ATOMIC_SEQ_CST);
    ok_eventually(__atomic_load_n(&stop.destroyed, __ATOMIC_SEQ_CST));
    pair.active.id = NULL;
    pair_end(&pair);
}

/* A request's id has no callback until the client writes one: the event in between is not lost. */
TEST(get_request__callback_written_late)
{
    struct pair pair;
    struct asked r;
    iba_cm_rep rep = reply_of("x");

    pair_listen(&pair, false);
    request_fill(&r, NULL, "10.1.1.1", "x");
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    client_event(&pair.listener, 0, iba_cm_req_received);
    ok_status(CM.get_request(pair.listener.id, &pair.passive.id, &pair.request), STATUS_SUCCESS);
    ok(!pair.passive.id->callback && pair.passive.id->context == pair.listener.id);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rep_received);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_eventually(client_in(&pair.passive, CM_ESTABLISHED));
    ok_uint(client_count(&pair.passive), ==, 0);
    pair.passive.id->context = &pair.passive;
    __atomic_store_n(&pair.passive.id->callback, record, __ATOMIC_RELEASE);
    client_event(&pair.passive, 0, iba_cm_rtu_received);
    pair_end(&pair);
}

TEST(set_callback__late)
{
    struct pair pair;
    struct asked r;
    iba_cm_rep rep = reply_of("x");

    pair_listen(&pair, false);
    request_fill(&r, NULL, "10.1.1.1", "x");
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    client_event(&pair.listener, 0, iba_cm_req_received);
    ok_status(CM.get_request_ex(pair.listener.id, NULL, NULL, &pair.passive.id, &pair.request), STATUS_SUCCESS);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rep_received);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    ok_eventually(client_in(&pair.passive, CM_ESTABLISHED));
    ok_status(ndverbs_cm_set_callback(pair.passive.id, record, &pair.passive), STATUS_SUCCESS);
    client_event(&pair.passive, 0, iba_cm_rtu_received);
    pair_end(&pair);
}
