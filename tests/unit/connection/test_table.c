/* SPDX-License-Identifier: MIT */
#include "rig.h"

/* The tables cell by cell: what is listed here must be there, everything else must be silent and stay. */

#define BOTH (1 << DEVICE_IB | 1 << DEVICE_IW)
#define IB   (1 << DEVICE_IB)
#define IW   (1 << DEVICE_IW)

static const struct {
    unsigned transports;
    enum wire_state state;
    enum wire_event event;
    enum wire_state next;
    enum wire_note note;
} cells[] = {
    { BOTH, WIRE_IDLE, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_ADDRESS, WIRE_EV_ADDR_RESOLVED, WIRE_ROUTE, NOTE_RESOLVE_ROUTE },
    { BOTH, WIRE_ADDRESS, WIRE_EV_ADDR_ERROR, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ADDRESS, WIRE_EV_TIMER, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ADDRESS, WIRE_EV_CALL_FAILED, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ADDRESS, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_ROUTE, WIRE_EV_ROUTE_RESOLVED, WIRE_REQUEST_OUT, NOTE_SEND_REQUEST },
    { BOTH, WIRE_ROUTE, WIRE_EV_ROUTE_ERROR, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ROUTE, WIRE_EV_UNREACHABLE, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ROUTE, WIRE_EV_TIMER, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ROUTE, WIRE_EV_CALL_FAILED, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_ROUTE, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { IB, WIRE_REQUEST_OUT, WIRE_EV_RESPONSE, WIRE_REPLY_IN, NOTE_REPLY },
    { IW, WIRE_REQUEST_OUT, WIRE_EV_ESTABLISHED, WIRE_REPLY_IN, NOTE_REPLY },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_REJECTED, WIRE_OVER, NOTE_CONNECT_FAILED },
    { IB, WIRE_REQUEST_OUT, WIRE_EV_STALE, WIRE_OVER, NOTE_RETRY },
    { IW, WIRE_REQUEST_OUT, WIRE_EV_STALE, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_UNREACHABLE, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_CONNECT_ERROR, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_DISCONNECTED, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_TIMER, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_CALL_FAILED, WIRE_OVER, NOTE_CONNECT_FAILED },
    { BOTH, WIRE_REQUEST_OUT, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { IW, WIRE_REPLY_IN, WIRE_EV_TIMER, WIRE_REPLY_IN, NOTE_REPLY },
    { BOTH, WIRE_REPLY_IN, WIRE_EV_REJECTED, WIRE_OVER, NOTE_REPLY_LOST },
    { BOTH, WIRE_REPLY_IN, WIRE_EV_STALE, WIRE_OVER, NOTE_REPLY_LOST },
    { BOTH, WIRE_REPLY_IN, WIRE_EV_CONNECT_ERROR, WIRE_OVER, NOTE_REPLY_LOST },
    { BOTH, WIRE_REPLY_IN, WIRE_EV_DISCONNECTED, WIRE_OVER, NOTE_REPLY_LOST },
    { BOTH, WIRE_REPLY_IN, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_REQUEST_IN, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_REPLY_OUT, WIRE_EV_ESTABLISHED, WIRE_ESTABLISHED, NOTE_ACCEPTED },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_DISCONNECTED, WIRE_DREQ_IN, NOTE_ACCEPTED_CLOSED },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_REJECTED, WIRE_OVER, NOTE_ACCEPT_FAILED },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_STALE, WIRE_OVER, NOTE_ACCEPT_FAILED },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_UNREACHABLE, WIRE_OVER, NOTE_ACCEPT_FAILED },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_CONNECT_ERROR, WIRE_OVER, NOTE_ACCEPT_FAILED },
    { IB, WIRE_REPLY_OUT, WIRE_EV_QP_FAILED, WIRE_REPLY_OUT, NOTE_LOST },
    { BOTH, WIRE_REPLY_OUT, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_ESTABLISHED, WIRE_EV_DISCONNECTED, WIRE_DREQ_IN, NOTE_PEER_CLOSED },
    { BOTH, WIRE_ESTABLISHED, WIRE_EV_REJECTED, WIRE_DREQ_IN, NOTE_PEER_CLOSED },
    { BOTH, WIRE_ESTABLISHED, WIRE_EV_STALE, WIRE_DREQ_IN, NOTE_PEER_CLOSED },
    { BOTH, WIRE_ESTABLISHED, WIRE_EV_CONNECT_ERROR, WIRE_DREQ_IN, NOTE_LOST },
    { IB, WIRE_ESTABLISHED, WIRE_EV_QP_FAILED, WIRE_ESTABLISHED, NOTE_LOST },
    { BOTH, WIRE_ESTABLISHED, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_DREQ_OUT, WIRE_EV_DISCONNECTED, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_REJECTED, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_STALE, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_CONNECT_ERROR, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_TIMER, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_CALL_FAILED, WIRE_OVER, NOTE_CLOSED },
    { BOTH, WIRE_DREQ_OUT, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_DREQ_IN, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },

    { BOTH, WIRE_OVER, WIRE_EV_REMOVED, WIRE_OVER, NOTE_REMOVED },
};

static void check_transport(enum device_transport transport)
{
    unsigned found = 0, listed = 0;

    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        listed += (cells[i].transports >> transport) & 1;
    for (int state = 0; state < WIRE_STATES; state++) {
        for (int event = 0; event < WIRE_EVENTS; event++) {
            enum wire_state next = (enum wire_state)state;
            enum wire_note note = NOTE_NONE;
            struct wire_cell cell = wire_cell(transport, (enum wire_state)state, (enum wire_event)event);

            for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
                if (((cells[i].transports >> transport) & 1) && cells[i].state == (enum wire_state)state &&
                    cells[i].event == (enum wire_event)event) {
                    next = cells[i].next;
                    note = cells[i].note;
                    found++;
                }
            }
            ok_msg(cell.note == note, "state %d event %d: note %d, not %d", state, event, cell.note, note);
            ok_msg(cell.next == next, "state %d event %d: to state %d, not %d", state, event, cell.next, next);
        }
    }
    ok_uint(found, ==, listed);
}

/* tests/lists: D64. */
TEST(wire_table__ib)
{
    check_transport(DEVICE_IB);
}

TEST(wire_table__iw)
{
    check_transport(DEVICE_IW);
}

/* Columns: Network Direct, WinVerbs. */
static const struct {
    enum wire_note note;
    uint32_t nd, wv;
} reactions[] = {
    { NOTE_NONE, 0, 0 },
    { NOTE_RESOLVE_ROUTE, 0, 0 },
    { NOTE_SEND_REQUEST, 0, 0 },
    { NOTE_RETRY, 0, 0 },
    { NOTE_REPLY, DO_CONNECT, DO_CONNECT },
    { NOTE_CONNECT_FAILED, DO_CONNECT, DO_CONNECT },
    { NOTE_REPLY_LOST, DO_CONNECT, DO_CONNECT },
    { NOTE_ACCEPTED, DO_ACCEPT, DO_ACCEPT },
    { NOTE_ACCEPTED_CLOSED, DO_ACCEPT | DO_COLLECT | DO_NOTIFY | DO_ANSWER | DO_DRAIN, DO_ACCEPT | DO_NOTIFY },
    { NOTE_ACCEPT_FAILED, DO_ACCEPT | DO_DRAIN, DO_ACCEPT },
    { NOTE_PEER_CLOSED, DO_COLLECT | DO_NOTIFY | DO_ANSWER | DO_DRAIN, DO_NOTIFY },
    { NOTE_LOST, DO_NOTIFY | DO_DRAIN, DO_NOTIFY },
    { NOTE_CLOSED, DO_NOTIFY | DO_ANSWER | DO_DRAIN | DO_DISCONNECT, DO_NOTIFY | DO_ANSWER | DO_DRAIN | DO_DISCONNECT },
    { NOTE_REMOVED, DO_ALL, DO_ALL },
};

TEST(policy_table)
{
    ok_uint(sizeof(reactions) / sizeof(reactions[0]), ==, WIRE_NOTES);
    for (size_t i = 0; i < WIRE_NOTES; i++) {
        uint32_t nd = connector_reaction(&nd_policy, reactions[i].note);
        uint32_t wv = connector_reaction(&wv_policy, reactions[i].note);

        ok_uint(reactions[i].note, ==, i);
        ok_msg(nd == reactions[i].nd, "note %zu: 0x%x, not 0x%x", i, nd, reactions[i].nd);
        ok_msg(wv == reactions[i].wv, "note %zu (WinVerbs): 0x%x, not 0x%x", i, wv, reactions[i].wv);
        ok_uint(connector_reaction(&v1_policy, reactions[i].note), ==, nd);
    }
}

TEST(policy_table__each_flag_alone)
{
    struct connector_policy policy = { .auto_drep = true };

    ok_uint(connector_reaction(&policy, NOTE_PEER_CLOSED), ==, DO_NOTIFY | DO_ANSWER);
    policy = (struct connector_policy){ .flush_on_peer = true };
    ok_uint(connector_reaction(&policy, NOTE_PEER_CLOSED), ==, DO_NOTIFY | DO_COLLECT);
    policy = (struct connector_policy){ .qp_owner = true };
    ok_uint(connector_reaction(&policy, NOTE_PEER_CLOSED), ==, DO_NOTIFY);
    ok_uint(connector_reaction(&policy, NOTE_CLOSED), ==, DO_NOTIFY | DO_ANSWER | DO_DRAIN | DO_DISCONNECT);
}
