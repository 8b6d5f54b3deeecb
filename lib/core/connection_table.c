/* SPDX-License-Identifier: MIT */
#include "connection.h"

/* The wire tables: one row per state, one cell per event. A cell that is not written leaves the state and tells nobody.
 * What the kernel sends in which state, and the oddities behind some cells: rdma-mapping.md 2 and 3. */

#define CELL(event, state, message) [WIRE_EV_##event] = { .next = WIRE_##state, .note = NOTE_##message }

/* clang-format off */

/* Both transports: nothing is on the wire while address and route are looked up. */
#define ROW_ADDRESS                                  \
    [WIRE_ADDRESS] = {                               \
        CELL(ADDR_RESOLVED, ROUTE, RESOLVE_ROUTE),   \
        CELL(ADDR_ERROR, OVER, CONNECT_FAILED),      \
        CELL(TIMER, OVER, CONNECT_FAILED),           \
        CELL(CALL_FAILED, OVER, CONNECT_FAILED),     \
        CELL(REMOVED, OVER, REMOVED),                \
    }
#define ROW_ROUTE                                    \
    [WIRE_ROUTE] = {                                 \
        CELL(ROUTE_RESOLVED, REQUEST_OUT, SEND_REQUEST), \
        CELL(ROUTE_ERROR, OVER, CONNECT_FAILED),     \
        CELL(UNREACHABLE, OVER, CONNECT_FAILED),     \
        CELL(TIMER, OVER, CONNECT_FAILED),           \
        CELL(CALL_FAILED, OVER, CONNECT_FAILED),     \
        CELL(REMOVED, OVER, REMOVED),                \
    }

/* The kernel holds back every event of a request that is not accepted; only the device's end can reach it. */
#define ROW_REQUEST_IN                               \
    [WIRE_REQUEST_IN] = {                            \
        CELL(REMOVED, OVER, REMOVED),                \
    }

/* A DREQ that overtakes a lost RTU: the connection stood, and data may have come by it. */
#define ROW_REPLY_OUT(...)                           \
    [WIRE_REPLY_OUT] = {                             \
        CELL(ESTABLISHED, ESTABLISHED, ACCEPTED),    \
        CELL(DISCONNECTED, DREQ_IN, ACCEPTED_CLOSED), \
        CELL(REJECTED, OVER, ACCEPT_FAILED),         \
        CELL(STALE, OVER, ACCEPT_FAILED),            \
        CELL(UNREACHABLE, OVER, ACCEPT_FAILED),      \
        CELL(CONNECT_ERROR, OVER, ACCEPT_FAILED),    \
        CELL(REMOVED, OVER, REMOVED),                \
        __VA_ARGS__                                  \
    }

/* UNREACHABLE here is the kernel's reaction to a changed neighbour, not a loss: the data path decides. A second
 * ESTABLISHED (after rdma_notify) means nothing. A reject of a standing connection comes from a peer that restarted. */
#define ROW_ESTABLISHED(...)                         \
    [WIRE_ESTABLISHED] = {                           \
        CELL(DISCONNECTED, DREQ_IN, PEER_CLOSED),    \
        CELL(REJECTED, DREQ_IN, PEER_CLOSED),        \
        CELL(STALE, DREQ_IN, PEER_CLOSED),           \
        CELL(CONNECT_ERROR, DREQ_IN, LOST),          \
        CELL(REMOVED, OVER, REMOVED),                \
        __VA_ARGS__                                  \
    }

/* DISCONNECTED is the DREP, the peer's crossing DREQ, or the kernel's time-out. */
#define ROW_DREQ_OUT                                 \
    [WIRE_DREQ_OUT] = {                              \
        CELL(DISCONNECTED, OVER, CLOSED),            \
        CELL(REJECTED, OVER, CLOSED),                \
        CELL(STALE, OVER, CLOSED),                   \
        CELL(CONNECT_ERROR, OVER, CLOSED),           \
        CELL(TIMER, OVER, CLOSED),                   \
        CELL(CALL_FAILED, OVER, CLOSED),             \
        CELL(REMOVED, OVER, REMOVED),                \
    }
#define ROW_DREQ_IN                                  \
    [WIRE_DREQ_IN] = {                               \
        CELL(REMOVED, OVER, REMOVED),                \
    }
#define ROW_IDLE                                     \
    [WIRE_IDLE] = {                                  \
        CELL(REMOVED, OVER, REMOVED),                \
    }
/* A Disconnect may still wait for the flush. */
#define ROW_OVER                                     \
    [WIRE_OVER] = {                                  \
        CELL(REMOVED, OVER, REMOVED),                \
    }

/* InfiniBand, RoCE, rxe: REP is the reply, RTU is ours to send. A queue pair that fails leaves the connection of the ids
 * standing, which both sides still have to end. */
static const struct wire_cell ib_cells[WIRE_STATES][WIRE_EVENTS] = {
    ROW_IDLE,
    ROW_ADDRESS,
    ROW_ROUTE,
    [WIRE_REQUEST_OUT] = {
        CELL(RESPONSE, REPLY_IN, REPLY),
        CELL(REJECTED, OVER, CONNECT_FAILED),
        CELL(STALE, OVER, RETRY),
        CELL(UNREACHABLE, OVER, CONNECT_FAILED),
        CELL(CONNECT_ERROR, OVER, CONNECT_FAILED),
        CELL(DISCONNECTED, OVER, CONNECT_FAILED),
        CELL(TIMER, OVER, CONNECT_FAILED),
        CELL(CALL_FAILED, OVER, CONNECT_FAILED),
        CELL(REMOVED, OVER, REMOVED),
    },
    /* UNREACHABLE: as in the established state. */
    [WIRE_REPLY_IN] = {
        CELL(REJECTED, OVER, REPLY_LOST),
        CELL(STALE, OVER, REPLY_LOST),
        CELL(CONNECT_ERROR, OVER, REPLY_LOST),
        CELL(DISCONNECTED, OVER, REPLY_LOST),
        CELL(REMOVED, OVER, REMOVED),
    },
    ROW_REQUEST_IN,
    ROW_REPLY_OUT(CELL(QP_FAILED, REPLY_OUT, LOST)),
    ROW_ESTABLISHED(CELL(QP_FAILED, ESTABLISHED, LOST)),
    ROW_DREQ_OUT,
    ROW_DREQ_IN,
    ROW_OVER,
};

/* iWARP, siw: there is no REP; ESTABLISHED is the reply, and the connection stands in the kernel from then on. On siw the
 * reply is passed on by the timer (connection.c). Whatever ends the connection, the kernel says DISCONNECTED; siw says that the
 * queue pair has failed, too, where the peer has closed while something was being sent. */
static const struct wire_cell iw_cells[WIRE_STATES][WIRE_EVENTS] = {
    ROW_IDLE,
    ROW_ADDRESS,
    ROW_ROUTE,
    [WIRE_REQUEST_OUT] = {
        CELL(ESTABLISHED, REPLY_IN, REPLY),
        CELL(REJECTED, OVER, CONNECT_FAILED),
        CELL(STALE, OVER, CONNECT_FAILED),
        CELL(UNREACHABLE, OVER, CONNECT_FAILED),
        CELL(CONNECT_ERROR, OVER, CONNECT_FAILED),
        CELL(DISCONNECTED, OVER, CONNECT_FAILED),
        CELL(TIMER, OVER, CONNECT_FAILED),
        CELL(CALL_FAILED, OVER, CONNECT_FAILED),
        CELL(REMOVED, OVER, REMOVED),
    },
    [WIRE_REPLY_IN] = {
        CELL(TIMER, REPLY_IN, REPLY),
        CELL(REJECTED, OVER, REPLY_LOST),
        CELL(STALE, OVER, REPLY_LOST),
        CELL(CONNECT_ERROR, OVER, REPLY_LOST),
        CELL(DISCONNECTED, OVER, REPLY_LOST),
        CELL(REMOVED, OVER, REMOVED),
    },
    ROW_REQUEST_IN,
    ROW_REPLY_OUT(),
    ROW_ESTABLISHED(),
    ROW_DREQ_OUT,
    ROW_DREQ_IN,
    ROW_OVER,
};

/* clang-format on */

struct wire_cell wire_cell(enum device_transport transport, enum wire_state state, enum wire_event event)
{
    struct wire_cell cell = transport == DEVICE_IW ? iw_cells[state][event] : ib_cells[state][event];

    if (cell.note == NOTE_NONE)
        cell.next = (uint8_t)state;
    return cell;
}
