/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <errno.h>

/* listen, cancel_listen, get_request: iba-cm.md 4 to 6. */

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

static void compare_fill(ib_cm_rdma_req_t *compare, uint16_t port, const char *source, const char *destination)
{
    memset(compare, 0, sizeof(*compare));
    compare->ipv = IB_REQ_CM_RDMA_IPV4;
    compare->src_port = htons(port);
    inet_pton(AF_INET, source, &compare->src_ip_addr[3]);
    inet_pton(AF_INET, destination, &compare->dst_ip_addr[3]);
}

/* The header has no room for the scope, the address list has it. */
TEST(listen__link_local)
{
    struct client client;
    ib_cm_rdma_req_t compare;

    ok(fake_address_add("fe80::5%3", "fake_ib", 1));
    client_make(&client);
    memset(&compare, 0, sizeof(compare));
    compare.ipv = IB_REQ_CM_RDMA_IPV6;
    inet_pton(AF_INET6, "fe80::5", compare.dst_ip_addr);
    ok_status(CM.listen(client.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_DST_IP), STATUS_SUCCESS);
    client_end(&client);
}

TEST(listen__arguments)
{
    struct client client, other;
    ib_cm_rdma_req_t compare;

    client_make(&client);
    client_make(&other);
    ok_status(CM.listen(client.id, htobe64(0x106), NULL, 0, 0), STATUS_NOT_SUPPORTED);
    ok_status(CM.listen(client.id, ib_cm_rdma_cm_sid(0x11, htons(PORT)), NULL, 0, 0), STATUS_NOT_SUPPORTED);
    ok_status(CM.listen(client.id, service_of(0), NULL, 0, 0), STATUS_INVALID_PARAMETER);
    compare_fill(&compare, 0, "10.1.1.200", "10.1.1.1");
    ok_status(CM.listen(client.id, service_of(PORT), &compare, 35, IB_REQ_CM_RDMA_CMP_SRC_IP),
              STATUS_INVALID_PARAMETER);
    ok_status(CM.listen(client.id, service_of(PORT), &compare, 36, 0x8), STATUS_INVALID_PARAMETER);
    compare.maj_min_ver = 1;
    ok_status(CM.listen(client.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_IP),
              STATUS_INVALID_PARAMETER);
    compare_fill(&compare, 0, "10.1.1.200", "10.1.9.9");
    ok_status(CM.listen(client.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_DST_IP), STATUS_INVALID_ADDRESS);
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    ok(client_in(&client, CM_LISTEN));
    ok_status(CM.listen(client.id, service_of(PORT + 1), NULL, 0, 0), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.listen(other.id, service_of(PORT), NULL, 0, 0), STATUS_INVALID_PARAMETER); /* overlap */
    ok_status(CM.listen(other.id, service_of(PORT + 1), NULL, 0, 0), STATUS_SUCCESS);
    client_end(&client);
    client_end(&other);
}

TEST(listen__foreign_failures)
{
    struct client client;

    client_make(&client);
    fake_fail(FAKE_rdma_bind_addr, 1, EACCES);
    ok_status(CM.listen(client.id, service_of(80), NULL, 0, 0), STATUS_ACCESS_DENIED);
    fake_fail_always(FAKE_rdma_listen, EADDRINUSE);
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_INVALID_PARAMETER);
    fake_fail_clear(FAKE_rdma_listen);
    fake_fail_always(FAKE_rdma_bind_addr, EADDRNOTAVAIL);
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_INVALID_PARAMETER);
    fake_fail_clear(FAKE_rdma_bind_addr);
    fake_fail(FAKE_rdma_create_id, 1, ENOMEM);
    ok(CM.listen(client.id, service_of(PORT), NULL, 0, 0) < 0);
    fake_fail(FAKE_rdma_bind_addr, 2, EAFNOSUPPORT); /* no IPv6: goes without */
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    client_end(&client);
}

TEST(listen__no_memory)
{
    struct client client;
    NTSTATUS status = STATUS_NO_MEMORY;
    unsigned int n;

    client_make(&client);
    for (n = 1; n < 30 && status != STATUS_SUCCESS; n++) {
        fake_alloc_fail(n);
        status = CM.listen(client.id, service_of(PORT), NULL, 0, 0);
        ok(status == STATUS_SUCCESS || status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES);
    }
    fake_alloc_clear();
    ok_uint(n, >, 3);
    client_end(&client);
}

static struct rdma_cm_id *listening_id_of(int family)
{
    for (int i = 0;; i++) {
        struct rdma_cm_id *id = fake_object(FAKE_OBJ_ID, i);

        ok(id != NULL);
        if (fake_cm_state(id) == FAKE_CM_LISTEN && id->route.addr.src_addr.sa_family == family)
            return id;
    }
}

static struct rdma_cm_id *listening_id(void)
{
    return listening_id_of(AF_INET);
}

static uint32_t requests_of(struct client *client)
{
    struct cm_id *id = CONTAINING_RECORD(client->id, struct cm_id, pub);
    uint32_t count;

    cm_id_lock(id);
    count = id->requests_queued;
    cm_id_unlock(id);
    return count;
}

/* Edge-triggered: one notification until the queue was seen empty. */
TEST(get_request__notifications)
{
    struct client listener, child[3] = { { 0 } };
    iba_cm_event event;
    iba_cm_id *id;

    client_make(&listener);
    ok_status(CM.listen(listener.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    ok_status(CM.get_request(listener.id, NULL, &event), STATUS_INVALID_PARAMETER);
    ok_status(CM.get_request(listener.id, &id, NULL), STATUS_INVALID_PARAMETER);
    ok_status(CM.get_request_ex(listener.id, record, NULL, NULL, &event), STATUS_INVALID_PARAMETER);
    ok_status(CM.get_request(listener.id, &id, &event), STATUS_NO_MORE_ENTRIES);
    fake_cm_request(listening_id(), NULL, NULL);
    client_event(&listener, 0, iba_cm_req_received);
    fake_cm_request(listening_id(), NULL, NULL);
    ok_status(CM.get_request_ex(listener.id, record, &child[0], &child[0].id, &event), STATUS_SUCCESS);
    ok_ptr(child[0].id->context, ==, &child[0]);
    ok(child[0].id->callback == record);
    ok_eventually(CM.get_request_ex(listener.id, record, &child[1], &child[1].id, &event) == STATUS_SUCCESS ||
                  (client_count(&listener) > 1 && child[1].id));
    ok_status(CM.get_request(listener.id, &id, &event), STATUS_NO_MORE_ENTRIES);
    rig_settle();
    /* The second one came while the first was in the queue, or the queue was seen empty before it. */
    ok_uint(client_count(&listener), <=, 2);
    fake_cm_request(listening_id(), NULL, NULL);
    ok_eventually(CM.get_request_ex(listener.id, record, &child[2], &child[2].id, &event) == STATUS_SUCCESS);
    for (int i = 0; i < 3; i++)
        client_end(&child[i]);
    client_end(&listener);
}

/* Requests of one service id go to the id whose comparison they meet; others are refused. */
TEST(listen__compare)
{
    struct client a, b, child = { 0 };
    ib_cm_rdma_req_t compare;
    iba_cm_event event;
    struct rdma_cm_id *request;

    client_make(&a);
    client_make(&b);
    compare_fill(&compare, 0, "10.1.1.200", "10.1.1.1");
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP),
              STATUS_SUCCESS);
    ok_status(CM.listen(b.id, service_of(PORT), &compare, 92, IB_REQ_CM_RDMA_CMP_DST_IP), STATUS_INVALID_PARAMETER);
    compare_fill(&compare, 0, "10.1.1.201", "10.1.1.1");
    ok_status(CM.listen(b.id, service_of(PORT), &compare, 92, IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP),
              STATUS_SUCCESS);
    fake_cm_request(listening_id(), NULL, "10.1.1.201");
    client_event(&b, 0, iba_cm_req_received);
    ok_status(CM.get_request_ex(b.id, record, &child, &child.id, &event), STATUS_SUCCESS);
    ok_uint(((ib_cm_rdma_req_t *)(void *)event.data.req.pdata)->src_ip_addr[3], ==, inet_addr("10.1.1.201"));
    request = fake_cm_request(listening_id(), NULL, "10.1.1.202");
    ok_eventually(fake_log_find_on(FAKE_rdma_reject, request, 0) != NULL);
    rig_settle();
    ok_uint(client_count(&a), ==, 0);
    ok_uint(client_count(&b), ==, 1);
    client_end(&child);
    client_end(&a);
    client_end(&b);
}

/* Whatever the mask says, the version in the header counts. */
TEST(listen__compare_version)
{
    struct client a, b, c;
    ib_cm_rdma_req_t compare;
    struct rdma_cm_id *request;

    client_make(&a);
    client_make(&b);
    client_make(&c);
    compare_fill(&compare, 0, "0.0.0.0", "0.0.0.0");
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, 0), STATUS_SUCCESS);
    request = fake_cm_request(listening_id_of(AF_INET6), NULL, NULL);
    ok_eventually(fake_log_find_on(FAKE_rdma_reject, request, 0) != NULL || client_count(&a));
    ok_uint(client_count(&a), ==, 0);
    ok_status(CM.listen(b.id, service_of(PORT), &compare, 36, 0), STATUS_INVALID_PARAMETER);
    compare.ipv = IB_REQ_CM_RDMA_IPV6;
    ok_status(CM.listen(b.id, service_of(PORT), &compare, 36, 0), STATUS_SUCCESS);
    ok_status(CM.listen(c.id, service_of(PORT), NULL, 0, 0), STATUS_INVALID_PARAMETER);
    fake_cm_request(listening_id_of(AF_INET6), NULL, NULL);
    client_event(&b, 0, iba_cm_req_received);
    ok_uint(client_count(&a), ==, 0);
    fake_cm_request(listening_id(), NULL, NULL);
    client_event(&a, 0, iba_cm_req_received);
    ok_uint(client_count(&b), ==, 1);
    client_end(&a);
    client_end(&b);
    client_end(&c);
}

TEST(listen__compare_source_port)
{
    struct client a;
    ib_cm_rdma_req_t compare;
    struct rdma_cm_id *request;

    client_make(&a);
    compare_fill(&compare, 50001, "0.0.0.0", "0.0.0.0"); /* the fakes' requests come from port 50000 */
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_PORT), STATUS_SUCCESS);
    request = fake_cm_request(listening_id(), NULL, NULL);
    ok_eventually(fake_log_find_on(FAKE_rdma_reject, request, 0) != NULL);
    ok_status(CM.cancel_listen(a.id), STATUS_SUCCESS);
    compare.src_port = htons(50000);
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_PORT), STATUS_SUCCESS);
    fake_cm_request(listening_id(), NULL, NULL);
    client_event(&a, 0, iba_cm_req_received);
    client_end(&a);
}

/* Waiting requests are refused, the port is free at once, the id is as new. */
TEST(cancel_listen__results)
{
    struct client client, other;
    struct rdma_cm_id *request;
    iba_cm_event event;
    iba_cm_id *id;

    client_make(&client);
    client_make(&other);
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    request = fake_cm_request(listening_id(), NULL, NULL);
    client_event(&client, 0, iba_cm_req_received);
    ok_status(CM.cancel_listen(client.id), STATUS_SUCCESS);
    ok(fake_log_find_on(FAKE_rdma_reject, request, 0) != NULL);
    ok(client_in(&client, CM_IDLE));
    ok_status(CM.get_request(client.id, &id, &event), STATUS_INVALID_DEVICE_STATE);
    ok_status(CM.cancel_listen(client.id), STATUS_SUCCESS);
    ok_status(CM.listen(other.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    ok_status(CM.listen(client.id, service_of(PORT + 1), NULL, 0, 0), STATUS_SUCCESS);
    client_end(&client);
    client_end(&other);
}

TEST(destroy_id__listening)
{
    struct client client;
    struct rdma_cm_id *request;

    client_make(&client);
    ok_status(CM.listen(client.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    request = fake_cm_request(listening_id(), NULL, NULL);
    client_event(&client, 0, iba_cm_req_received);
    client_end(&client);
    ok(fake_log_find_on(FAKE_rdma_reject, request, 0) != NULL);
}

static void listen_hook(struct client *client, iba_cm_event *event)
{
    (void)event;
    ok_status(CM.listen(client->id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
}

/* The refused id is as new: it may listen, and its callback may fail all the same. */
TEST(callback__a_failing_one_that_listens)
{
    const struct fake_cm rejected = { .event = RDMA_CM_EVENT_REJECTED, .status = 28 };
    struct client client, other;
    struct asked r;

    client_make(&client);
    client_make(&other);
    client.hook = listen_hook;
    client.result = STATUS_UNSUCCESSFUL;
    request_fill(&r, NULL, "10.1.1.200", "hello");
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS);
    ok_eventually(fake_count(FAKE_rdma_connect) == 1);
    fake_cm_event(client_rdma_id(&client), &rejected);
    client_event(&client, 0, iba_cm_rej_received);
    rig_settle();
    ok_status(CM.cancel_listen(client.id), STATUS_INVALID_HANDLE);
    ok_status(CM.listen(other.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    fake_cm_request(listening_id(), NULL, NULL);
    client_event(&other, 0, iba_cm_req_received);
    client.id = NULL;
    client_end(&client);
    client_end(&other);
}

/* The kernel waits for what nobody has fetched too; the other device's requests stay. */
TEST(Device__removed_with_requests_of_a_wildcard)
{
    struct client client;
    struct rdma_cm_id *gone[2];
    struct pair pair;
    struct asked r;

    pair_listen(&pair, true);
    client_make(&client);
    request_fill(&r, NULL, "10.1.1.200", "");
    ok_status(CM.send_req(client.id, &r.req), STATUS_SUCCESS); /* opens the device */
    client_end(&client);
    gone[0] = fake_cm_request(listening_id(), NULL, NULL);
    client_event(&pair.listener, 0, iba_cm_req_received);
    request_fill(&r, NULL, "10.1.2.1", "hello");
    r.req.qpn = htonl(pair.qp[0]->qp_num);
    ok_status(CM.send_req(pair.active.id, &r.req), STATUS_SUCCESS);
    ok_eventually(requests_of(&pair.listener) == 2);
    gone[1] = fake_cm_request(listening_id(), NULL, NULL);
    ok_eventually(requests_of(&pair.listener) == 3);
    rig_remove("fake_ib");
    ok_eventually(fake_log_find_on(FAKE_rdma_destroy_id, gone[0], 0) != NULL);
    ok_eventually(fake_log_find_on(FAKE_rdma_destroy_id, gone[1], 0) != NULL);
    ok_uint(requests_of(&pair.listener), ==, 1);
    ok_status(CM.get_request_ex(pair.listener.id, record, &pair.passive, &pair.passive.id, &pair.request),
              STATUS_SUCCESS);
    ok_uint(((struct sockaddr_in *)(void *)rdma_get_local_addr(client_rdma_id(&pair.passive)))->sin_addr.s_addr, ==,
            inet_addr("10.1.2.1"));
    pair_end(&pair);
}

/* The address comes back with another device: a listen that begins then hears its requests. */
TEST(listen__behind_a_device_that_is_gone)
{
    struct client a, b;
    ib_cm_rdma_req_t compare;
    unsigned listens;

    client_make(&a);
    client_make(&b);
    compare_fill(&compare, 0, "10.1.1.201", "10.1.1.1");
    ok_status(CM.listen(b.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP),
              STATUS_SUCCESS);
    compare_fill(&compare, 0, "10.1.1.200", "10.1.1.1");
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP),
              STATUS_SUCCESS);
    listens = fake_count(FAKE_rdma_listen);
    ok_uint(listens, ==, 1);
    rig_remove("fake_ib");
    fake_device_add("fake_new", IBV_TRANSPORT_IB, 1);
    fake_address_remove("10.1.1.1");
    ok(fake_address_add("10.1.1.1", "fake_new", 1));
    ok_eventually(fake_live(FAKE_OBJ_ID) == 0);
    ok_status(CM.cancel_listen(a.id), STATUS_SUCCESS);
    ok_status(CM.listen(a.id, service_of(PORT), &compare, 36, IB_REQ_CM_RDMA_CMP_SRC_IP | IB_REQ_CM_RDMA_CMP_DST_IP),
              STATUS_SUCCESS);
    ok_uint(fake_count(FAKE_rdma_listen), ==, listens + 1);
    fake_cm_request(listening_id(), NULL, "10.1.1.200");
    client_event(&a, 0, iba_cm_req_received);
    client_end(&b);
    client_end(&a);
}

TEST(get_request__no_memory)
{
    struct client listener, child = { 0 };
    iba_cm_event event;
    NTSTATUS status = STATUS_NO_MEMORY;

    client_make(&listener);
    ok_status(CM.listen(listener.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    for (unsigned int n = 1; n < 60 && status != STATUS_SUCCESS; n++) {
        fake_cm_request(listening_id(), NULL, NULL);
        ok_eventually(client_count(&listener) >= n);
        fake_alloc_fail(n);
        status = CM.get_request_ex(listener.id, record, &child, &child.id, &event);
        ok(status == STATUS_SUCCESS || status == STATUS_NO_MEMORY || status == STATUS_INSUFFICIENT_RESOURCES ||
           status == STATUS_INVALID_ADDRESS);
        fake_alloc_clear();
        ok_status(CM.get_request(listener.id, &child.id, &event), STATUS_NO_MORE_ENTRIES);
        if (n == 30)
            break;
    }
    client_end(&child);
    client_end(&listener);
}

TEST(listen__ipv6)
{
    struct client listener, active;
    struct asked r;
    iba_cm_event event;
    struct client child = { 0 };

    fake_wire(true);
    client_make(&listener);
    client_make(&active);
    ok_status(CM.listen(listener.id, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    request_fill(&r, NULL, "10.1.1.1", "six");
    r.data.ipv = IB_REQ_CM_RDMA_IPV6;
    inet_pton(AF_INET6, "fd00:1:1::1", r.data.dst_ip_addr);
    ok_status(CM.send_req(active.id, &r.req), STATUS_SUCCESS);
    client_event(&listener, 0, iba_cm_req_received);
    ok_status(CM.get_request_ex(listener.id, record, &child, &child.id, &event), STATUS_SUCCESS);
    ok_uint(event.data.req.pdata[1], ==, IB_REQ_CM_RDMA_IPV6);
    ok_mem(event.data.req.pdata + 20, r.data.dst_ip_addr, 16);
    ok_str((char *)event.data.req.pdata + 36, "six");
    client_end(&child);
    client_end(&active);
    client_end(&listener);
}
