/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* Events without callbacks, events to keep, private data and limits at any time, statuses: ndverbs.h. */

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

static bool readable(int fd, int timeout)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, timeout) == 1;
}

static iba_cm_event *take(iba_cm_id *id, int fd, iba_cm_event_type type)
{
    iba_cm_event *event = NULL;

    ok(readable(fd, -1));
    ok_status(ndverbs_cm_get_event(id, &event), STATUS_SUCCESS);
    ok_int(event->type, ==, type);
    return event;
}

/* A whole connection, both sides and the listener by descriptors alone. */
TEST(Events__without_callbacks)
{
    iba_cm_id *listener, *active, *passive;
    iba_cm_event request, *event, *rep, *rtu;
    iba_cm_rep reply = reply_of("world");
    struct asked r;
    int lfd, afd, pfd, again;

    fake_wire(true);
    ok_status(CM.create_id(NULL, NULL, &listener), STATUS_SUCCESS);
    ok_status(CM.create_id(NULL, NULL, &active), STATUS_SUCCESS);
    ok_status(ndverbs_cm_event_fd(listener, &lfd), STATUS_SUCCESS);
    ok_status(ndverbs_cm_event_fd(listener, &again), STATUS_SUCCESS);
    ok_int(lfd, ==, again);
    ok_status(ndverbs_cm_event_fd(listener, NULL), STATUS_INVALID_PARAMETER);
    ok_status(ndverbs_cm_event_fd(active, &afd), STATUS_SUCCESS);
    ok(!readable(lfd, 0));
    ok_status(ndverbs_cm_get_event(listener, &event), STATUS_NO_MORE_ENTRIES);
    ok_status(ndverbs_cm_get_event(listener, NULL), STATUS_INVALID_PARAMETER);
    ok_status(CM.listen(listener, service_of(PORT), NULL, 0, 0), STATUS_SUCCESS);
    request_fill(&r, NULL, "10.1.1.1", "hello");
    ok_status(CM.send_req(active, &r.req), STATUS_SUCCESS);
    event = take(listener, lfd, iba_cm_req_received);
    ndverbs_cm_free_event(event);
    ok(!readable(lfd, 0));
    ok_status(CM.get_request_ex(listener, NULL, NULL, &passive, &request), STATUS_SUCCESS);
    ok_status(CM.send_rep(passive, &reply), STATUS_SUCCESS);
    rep = take(active, afd, iba_cm_rep_received);
    ok_status(CM.send_rtu(active, NULL, 0), STATUS_SUCCESS);
    ok_status(ndverbs_cm_event_fd(passive, &pfd), STATUS_SUCCESS); /* late: what is there already shows */
    rtu = take(passive, pfd, iba_cm_rtu_received);
    ok_status(CM.send_dreq(passive, NULL, 0), STATUS_SUCCESS);
    event = take(active, afd, iba_cm_dreq_received);
    ok_status(CM.send_drep(active, NULL, 0), STATUS_SUCCESS);
    ndverbs_cm_free_event(event);
    event = take(passive, pfd, iba_cm_drep_received);
    CM.destroy_id(active);
    CM.destroy_id(passive);
    CM.destroy_id(listener);
    /* Kept beyond the ids. */
    ok_str(rep->data.rep.rep.p_pdata, "world");
    ok_uint(rtu->data.rtu.pdata_len, ==, IB_RTU_PDATA_SIZE);
    ndverbs_cm_free_event(rep);
    ndverbs_cm_free_event(rtu);
    ndverbs_cm_free_event(event);
    ndverbs_cm_free_event(NULL);
}

TEST(get_event__with_a_callback)
{
    struct client client;
    iba_cm_event *event;

    client_make(&client);
    ok_status(ndverbs_cm_get_event(client.id, &event), STATUS_INVALID_DEVICE_STATE);
    client_end(&client);
}

TEST(event_fd__no_descriptor)
{
    struct client client;
    int fd[2048], count = 0, out;

    client_make(&client);
    while (count < 2048 && (fd[count] = dup(2)) >= 0)
        count++;
    if (count < 2048)
        ok_status(ndverbs_cm_event_fd(client.id, &out), STATUS_INSUFFICIENT_RESOURCES);
    while (count)
        close(fd[--count]);
    ok_status(ndverbs_cm_event_fd(client.id, &out), STATUS_SUCCESS);
    client_end(&client);
}

TEST(copy_event__every_type)
{
    uint8_t data[IB_RTU_PDATA_SIZE], ari[IB_ARI_SIZE];
    iba_cm_event event, *copy;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i + 1);
    memset(ari, 7, sizeof(ari));
    ok_status(ndverbs_cm_copy_event(NULL, &copy), STATUS_INVALID_PARAMETER);
    ok_status(ndverbs_cm_copy_event(&event, NULL), STATUS_INVALID_PARAMETER);
    for (int type = iba_cm_req_error; type <= iba_cm_sidr_rep_received; type++) {
        memset(&event, 0, sizeof(event));
        event.type = (iba_cm_event_type)type;
        switch (event.type) {
        case iba_cm_req_received:
            memcpy(event.data.req.pdata, data, sizeof(event.data.req.pdata));
            break;
        case iba_cm_rep_received:
            event.data.rep.rep.p_pdata = data;
            event.data.rep.rep.pdata_len = IB_REP_PDATA_SIZE;
            break;
        case iba_cm_rtu_received:
        case iba_cm_drep_received:
            event.data.rtu = (iba_cm_rtu_event){ data, IB_RTU_PDATA_SIZE };
            break;
        case iba_cm_dreq_received:
            event.data.dreq = (iba_cm_dreq_event){ data, IB_DREQ_PDATA_SIZE };
            break;
        case iba_cm_rej_received:
            event.data.rej = (iba_cm_rej_event){ ari, data, IB_REJ_USER_DEFINED, IB_ARI_SIZE, IB_REJ_PDATA_SIZE };
            break;
        case iba_cm_mra_received:
            event.data.mra = (iba_cm_mra_event){ data, IB_MRA_PDATA_SIZE, 3 };
            break;
        default:
            break;
        }
        ok_status(ndverbs_cm_copy_event(&event, &copy), STATUS_SUCCESS);
        ok_int(copy->type, ==, type);
        switch (event.type) {
        case iba_cm_rep_received:
            ok_ptr(copy->data.rep.rep.p_pdata, !=, data);
            ok_mem(copy->data.rep.rep.p_pdata, data, IB_REP_PDATA_SIZE);
            break;
        case iba_cm_rtu_received:
        case iba_cm_dreq_received:
        case iba_cm_drep_received:
            ok_ptr(copy->data.rtu.p_pdata, !=, data);
            ok_mem(copy->data.rtu.p_pdata, data, event.data.rtu.pdata_len);
            break;
        case iba_cm_rej_received:
            ok_mem(copy->data.rej.p_pdata, data, IB_REJ_PDATA_SIZE);
            ok_mem(copy->data.rej.ari, ari, IB_ARI_SIZE);
            ok_uint(copy->data.rej.reason, ==, IB_REJ_USER_DEFINED);
            break;
        case iba_cm_mra_received:
            ok_mem(copy->data.mra.p_pdata, data, IB_MRA_PDATA_SIZE);
            break;
        default:
            ok_mem(copy, &event, sizeof(event));
            break;
        }
        ndverbs_cm_free_event(copy);
    }
    fake_alloc_fail(1);
    ok_status(ndverbs_cm_copy_event(&event, &copy), STATUS_NO_MEMORY);
}

TEST(get_pdata__at_any_time)
{
    uint8_t data[IB_REP_PDATA_SIZE], length = sizeof(data), in, out;
    struct pair pair;
    iba_cm_rep rep = reply_of("world");

    pair_request(&pair, false);
    ok_status(ndverbs_cm_get_pdata(pair.active.id, data, &length), STATUS_INVALID_DEVICE_STATE);
    ok_status(ndverbs_cm_get_read_limits(pair.active.id, &in, &out), STATUS_INVALID_DEVICE_STATE);
    ok_status(ndverbs_cm_get_pdata(pair.passive.id, data, NULL), STATUS_INVALID_PARAMETER);
    ok_status(ndverbs_cm_get_pdata(pair.passive.id, data, &length), STATUS_SUCCESS);
    ok_uint(length, ==, IB_REQ_PDATA_SIZE);
    ok_mem(data, pair.request.data.req.pdata, IB_REQ_PDATA_SIZE);
    ok_status(ndverbs_cm_get_read_limits(pair.passive.id, &in, &out), STATUS_SUCCESS);
    ok_uint(in, ==, 3);
    ok_uint(out, ==, 4);
    ok_status(CM.send_rep(pair.passive.id, &rep), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rep_received);
    ok_status(CM.send_rtu(pair.active.id, NULL, 0), STATUS_SUCCESS);
    client_event(&pair.passive, 0, iba_cm_rtu_received);
    /* Long after the event, not in the callback. */
    length = 3;
    memset(data, 0xee, sizeof(data));
    ok_status(ndverbs_cm_get_pdata(pair.active.id, data, &length), STATUS_BUFFER_OVERFLOW);
    ok_uint(length, ==, IB_REP_PDATA_SIZE);
    ok_mem(data, "wor\xee", 4);
    ok_status(ndverbs_cm_get_pdata(pair.active.id, data, &length), STATUS_SUCCESS);
    ok_str((char *)data, "world");
    length = 0;
    ok_status(ndverbs_cm_get_pdata(pair.active.id, NULL, &length), STATUS_BUFFER_OVERFLOW);
    ok_uint(length, ==, IB_REP_PDATA_SIZE);
    ok_status(ndverbs_cm_get_read_limits(pair.active.id, &in, &out), STATUS_SUCCESS);
    ok_uint(in, ==, 1);
    ok_uint(out, ==, 2);
    ok_status(ndverbs_cm_get_read_limits(pair.passive.id, &in, NULL), STATUS_SUCCESS);
    ok_uint(in, ==, 2);
    length = sizeof(data);
    ok_status(ndverbs_cm_get_pdata(pair.passive.id, data, &length), STATUS_SUCCESS);
    ok_str((char *)data + 36, "hello");
    pair_end(&pair);
}

TEST(get_pdata__of_a_rejection)
{
    uint8_t data[IB_REP_PDATA_SIZE], length = sizeof(data);
    struct pair pair;

    pair_request(&pair, false);
    ok_status(CM.send_rej(pair.passive.id, IB_REJ_USER_DEFINED, NULL, 0, "no", 3), STATUS_SUCCESS);
    client_event(&pair.active, 0, iba_cm_rej_received);
    ok_status(ndverbs_cm_get_pdata(pair.active.id, data, &length), STATUS_SUCCESS);
    ok_uint(length, ==, IB_REJ_PDATA_SIZE);
    ok_str((char *)data, "no");
    pair_end(&pair);
}

/* All 55 codes of iba-cm.md 8, in their order. */
TEST(cm_status__every_code)
{
    static const uint32_t wanted[] = {
        0x00000000, 0xC000009A, 0xC0000017, 0xC000000D, 0xC000000D, 0xC0000225, 0x00000102, 0xC0000120,
        0x00000080, 0xC0000022, 0xC0000010, 0x80000005, 0xC000009A, 0xC000023A, 0xC0000184, 0xC0000184,
        0xC0000184, 0x80000011, 0xC000000D, 0xC000000D, 0xC000000D, 0xC000000D, 0xC000000D, 0xC000000D,
        0xC000000D, 0xC000000D, 0xC000000D, 0xC000000D, 0xC000000D, 0xC0000001, 0xC0000008, 0xC0000008,
        0xC0000008, 0xC0000008, 0xC0000008, 0xC0000008, 0xC0000008, 0xC0000008, 0xC0000008, 0xC0000008,
        0xC0000008, 0xC0000008, 0xC0000008, 0xC0000001, 0xC0000001, 0x40000012, 0xC000000D, 0xC0000010,
        0xC0000010, 0xC000000D, 0x00000080, 0xC000000D, 0xC0000225, 0x00000103, 0xC0000001,
    };
    static const struct {
        int error;
        uint32_t status;
    } rows[] = {
        { 0, 0 },
        { EINVAL, 0xC000000D },
        { EADDRINUSE, 0xC000000D },
        { ENOMEM, 0xC0000017 },
        { ENODEV, 0xC0000141 },
        { EADDRNOTAVAIL, 0xC0000141 },
        { EPERM, 0xC0000022 },
        { EACCES, 0xC0000022 },
        { EBUSY, 0x80000011 },
        { ENOSYS, 0xC00000BB },
        { EOPNOTSUPP, 0xC00000BB },
        { ETIMEDOUT, 0x00000102 },
        { -ETIMEDOUT, 0x00000102 },
        { EMFILE, 0xC000009A },
        { EIO, 0xC0000001 },
    };

    ok_uint(sizeof(wanted) / sizeof(wanted[0]), ==, IB_UNKNOWN_ERROR + 1);
    for (int i = 0; i <= IB_UNKNOWN_ERROR; i++) {
        ok_uint((uint32_t)ndverbs_cm_status(i), ==, wanted[i]);
        ok(strcmp(ndverbs_status_text(ndverbs_cm_status(i)), "unknown status") != 0);
    }
    ok_uint((uint32_t)ndverbs_cm_status(55), ==, 0xC0000001);
    ok_uint((uint32_t)ndverbs_cm_status(-1), ==, 0xC0000001);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ok_uint((uint32_t)ndverbs_cm_errno_status(rows[i].error), ==, rows[i].status);
}
