/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_SESSION_H
#define NDVERBS_DEVICE_SESSION_H

/* What the device tests build their sessions from; Windows and Network Direct calls only. Every function here asserts what
 * must hold (a failed call ends the case) and returns statuses only where the case decides. */

#include <ntstatus.h>
#include <ws2tcpip.h>

#include "ndspi.h"
#include "ndsupport.h"
#include "ndverbs.h"
#include "pairs.h"
#include "runner.h"

union endpoint {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
ULONG endpoint_size(const union endpoint *endpoint);
USHORT endpoint_port(const union endpoint *endpoint);
void endpoint_set_port(union endpoint *endpoint, USHORT port);
union endpoint endpoint_from(const char *text); /* "10.0.0.1", "fd00::1"; port 0 */

/* The address of this side: NDVERBS_ADDR, on the server NDVERBS_PEER_ADDR. */
union endpoint own_endpoint(void);
const char *own_address(void);

/* An opened adapter. */
struct host {
    IND2Adapter *adapter;
    HANDLE file;
    ND2_ADAPTER_INFO info;
    union endpoint address;
};
void host_open(struct host *host);
void host_open_at(struct host *host, const union endpoint *address);
void host_close(struct host *host); /* the adapter's last Release gives 0 */

/* Objects of one connection: one completion queue for both directions, a buffer of `size` bytes registered with every
 * right, a queue pair and a connector. */
struct shape {
    ULONG depth; /* of both queues; 0: 16 */
    ULONG sge;   /* of both queues; 0: 1 */
    ULONG inline_size;
    ULONG cq_depth;              /* 0: 2 * depth */
    SIZE_T size;                 /* 0: 4096 */
    ULONG reads;                 /* both limits */
    IND2CompletionQueue *cq;     /* an existing one to use */
    IND2SharedReceiveQueue *srq; /* the receives come from there */
    bool split;                  /* a second queue for the initiator's results: initiator_cq */
    void *context;               /* QueuePairContext; NULL: the link itself */
};
struct link {
    struct host *host;
    struct shape shape;
    IND2CompletionQueue *cq;
    IND2CompletionQueue *initiator_cq; /* shape.split only */
    IND2QueuePair *qp;
    IND2Connector *connector;
    IND2MemoryRegion *mr;
    BYTE *buffer;
    UINT32 token; /* local */
    HANDLE event;
    OVERLAPPED ov;
    struct {
        UINT64 address;
        UINT64 size;
        UINT32 token;
    } remote; /* the peer's buffer, after link_trade */
};
void link_make(struct link *link, struct host *host, const struct shape *shape);
void link_make_qp(struct link *link); /* another queue pair (the old one is the caller's) */
void link_make_connector(struct link *link);
void link_drop(struct link *link); /* releases what is there; each last Release gives 0 */

/* Listener on the host's address and any port; the port is told to the client. */
IND2Listener *listen_any(struct host *host);
IND2Listener *listen_at(struct host *host, const union endpoint *address, ULONG backlog);
union endpoint listener_endpoint(IND2Listener *listener);

/* After the last Release of a listener (of any interface) there: waits until the kernel of iWARP has let go of it. A worker of the
 * library ends it, and what reaches it as it ends is dropped without a word (README.md). */
void listener_gone(const union endpoint *at);

/* Client: address of the server's listener (peer's address of the environment, port from the server). */
union endpoint listener_of_peer(void);

/* Passive side: takes the next request and accepts it. */
void link_request(struct link *link, IND2Listener *listener);
void link_accept(struct link *link, IND2Listener *listener);
HRESULT link_try_accept(struct link *link);

/* Active side: binds, connects, completes. */
void link_bind(struct link *link);
HRESULT link_try_connect(struct link *link, const union endpoint *to);
void link_connect(struct link *link, const union endpoint *to);

/* Both sides tell each other where their buffers are. */
void link_trade(struct link *link);

/* Disconnect by this side, asserted to succeed. */
void link_disconnect(struct link *link);

/* The two sides of a plain session: open, make, connect, trade. `session_end`: both sides in step, the client disconnects,
 * everything is released. */
struct session {
    struct host host;
    struct link link;
};
void session_begin(struct session *session, const struct shape *shape);
void session_beside(struct session *session, int channel, const struct shape *shape); /* see session.c */
void session_end(struct session *session);
void session_drop(struct session *session); /* no disconnect: release everything */

/* Two connected links of one process on its own address; self_meet leaves Bind to the caller, or to Connect. */
void self_connect(struct link *active, struct link *passive, IND2Listener *listener, const union endpoint *to);
void self_meet(struct link *active, struct link *passive, IND2Listener *listener, const union endpoint *to);

/* For iWARP, which connects over TCP: a socket of that address that answers `calls` callers with something that is no answer, and
 * waits until each has closed. */
struct stranger {
    SOCKET socket;
    HANDLE thread;
    int calls;
    union endpoint at;
};
void stranger_begin(struct stranger *stranger, const union endpoint *address, int calls);
void stranger_end(struct stranger *stranger);

/* The status of an overlapped call: never ND_SUCCESS at once; waits if it pends. */
HRESULT finish(void *object, HRESULT started, OVERLAPPED *ov);
#define FINISH(link, call) finish((link)->connector, (call), &(link)->ov)

/* A started request that must still be pending. */
#define ok_pending(object, ov)                                                                                    \
    ok_status(((IND2Overlapped *)(object))->lpVtbl->GetOverlappedResult((IND2Overlapped *)(object), (ov), FALSE), \
              ND_PENDING)

/* A fresh OVERLAPPED, filled with rubbish but for the event. */
void overlapped_rubbish(OVERLAPPED *ov, HANDLE event);
HANDLE event_auto(void);

/* Results. `result_of` leaves a success of the other queue that comes first for a later call (early.h); `result_next` takes any, those
 * first. */
ND2_RESULT result_next(IND2CompletionQueue *cq);
ND2_RESULT result_of(IND2CompletionQueue *cq, ND2_REQUEST_TYPE type);
void result_none(IND2CompletionQueue *cq);
#define ok_result(cq, type, status, context)                                \
    do {                                                                    \
        ND2_RESULT ok_r_ = result_of(cq, (type));                           \
        ok_status(ok_r_.Status, (status));                                  \
        ok_int(ok_r_.RequestType, ==, (type));                              \
        ok_uint((uintptr_t)ok_r_.RequestContext, ==, (uintptr_t)(context)); \
    } while (0)

ND2_SGE sge_of(const struct link *link, SIZE_T offset, SIZE_T length);
void post_receive(struct link *link, uintptr_t context, SIZE_T offset, SIZE_T length);
void post_send(struct link *link, uintptr_t context, SIZE_T offset, SIZE_T length, ULONG flags);

/* The length of a Read that goes on after its call has returned. rxe is done with a shorter one by then: only what is more than it
 * does at a time is left to a thread of the kernel's. Over the wire that many packets at once would be more than its queue takes. */
SIZE_T read_that_lasts(void);

/* A pattern that differs by seed and by position. */
void pattern_fill(void *memory, SIZE_T size, ULONG seed);
void pattern_check(const void *memory, SIZE_T size, ULONG seed);

void release_last(void *object); /* Release gives 0 */

/* Is it an adapter's? What opening it gives; why it is none (empty: it is one). */
bool address_is_listed(const union endpoint *address);
HRESULT address_try(const union endpoint *address);
const char *address_reason(const char *text);

/* In the machine: waits until the device that NDVERBS_DEVICE names is deleted, and makes it again. */
void device_make_anew(void);

#endif
