/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_WVSIDE_H
#define NDVERBS_DEVICE_WVSIDE_H

/* What the WinVerbs device tests build their sessions from: as session.h, with the calls of WinVerbs. Every function asserts
 * what must hold; those that return a status leave the decision to the case. */

#include "session.h"

#include "rdma/winverbs.h"

/* The device behind an address. */
struct wvhost {
    IWVProvider *provider;
    IWVDevice *device;
    IWVProtectionDomain *pd;
    WV_DEVICE_ADDRESS where;
    WV_DEVICE_ATTRIBUTES attributes;
    union endpoint address;
};
void wv_open(struct wvhost *host);
void wv_open_at(struct wvhost *host, const union endpoint *address);
void wv_close(struct wvhost *host); /* each last Release gives 0 */

/* Objects of one connection: one completion queue for both directions, a registered buffer, an RC queue pair in INIT, an
 * endpoint. */
struct wvshape {
    SIZE_T depth; /* of both queues; 0: 16 */
    SIZE_T sge;   /* of both; 0: 2 */
    SIZE_T size;  /* of the buffer; 0: 4096 */
    SIZE_T reads; /* both limits */
    DWORD flags;  /* of the queue pair; by default its sends are signalled */
    bool unsignalled;
    IWVSharedReceiveQueue *srq;
    bool impatient; /* no retry of a message that finds no receive */
};
struct wvlink {
    struct wvhost *host;
    struct wvshape shape;
    IWVCompletionQueue *cq;
    IWVConnectQueuePair *qp;
    IWVConnectEndpoint *endpoint;
    BYTE *buffer;
    WV_MEMORY_KEYS keys;
    HANDLE event;
    OVERLAPPED ov;
    struct {
        NET64 address;
        NET32 rkey;
    } remote; /* the peer's buffer */
};
void wv_make(struct wvlink *link, struct wvhost *host, const struct wvshape *shape);
void wv_drop(struct wvlink *link);
IWVConnectQueuePair *wv_make_qp(struct wvlink *link); /* in RESET */
IWVConnectEndpoint *wv_make_endpoint(struct wvhost *host);
IWVDatagramEndpoint *wv_make_datagram(struct wvhost *host);

/* An RC queue pair to INIT, any to ERROR. */
void wv_to_init(struct wvlink *link, IWVConnectQueuePair *qp);
HRESULT wv_to_error(IWVConnectQueuePair *qp, OVERLAPPED *ov);
WV_QP_STATE wv_state(IWVConnectQueuePair *qp);

/* The result of an overlapped call that returned `started`; waits if it pends. */
HRESULT wv_finish(HRESULT started, OVERLAPPED *ov, IWVOverlapped *object);
#define WV_FINISH(object, ov, call) wv_finish((call), (ov), (IWVOverlapped *)(object))

/* A started request that must still be pending. */
#define ok_io_pending(object, ov) \
    ok_status(CALL((IWVOverlapped *)(object), GetOverlappedResult, (ov), NULL, FALSE), WV_PENDING)

/* Listens on any port of the address, which a server tells to its client (listener_of_peer). */
IWVConnectEndpoint *wv_listen(struct wvhost *host);
union endpoint wv_listener(IWVConnectEndpoint *listener);
void wv_bind(struct wvlink *link); /* any port */

WV_CONNECT_PARAM wv_param(const struct wvlink *link);
HRESULT wv_try_connect(struct wvlink *link, const union endpoint *to); /* until the reply */
HRESULT wv_complete(struct wvlink *link);
void wv_request(struct wvlink *link, IWVConnectEndpoint *listener);
HRESULT wv_try_accept(struct wvlink *link);

/* Two connected links of this process: 0, the active one, at the client's address, 1 at the server's. They know each other's
 * buffers. */
struct wvpair {
    struct wvhost host[2];
    struct wvlink link[2];
    IWVConnectEndpoint *listener;
    union endpoint to;
};
void wv_pair_make(struct wvpair *pair, const struct wvshape *shape); /* not connected yet */
void wv_pair_connect(struct wvpair *pair);
void wv_pair_meet(struct wvpair *pair);                         /* the same; the caller is bound */
void wv_pair(struct wvpair *pair, const struct wvshape *shape); /* both */
void wv_pair_drop(struct wvpair *pair);
void wv_settle(void); /* runner_settle of one process with itself */

/* The active side of a session with a PART that does wv_part_begin. */
struct wvsession {
    struct wvhost host;
    struct wvlink link;
};
void wv_beside(struct wvsession *session, int channel, const struct wvshape *shape);
void wv_part_begin(struct wvsession *session, const struct wvshape *shape);
void wv_session_drop(struct wvsession *session);

/* A UD queue pair in RTS with Q_Key WV_CM_UDP_QKEY, and places of `size` bytes behind WV_GRH: the first `depth` are posted as
 * receives with their number as identifier, the one after them is to send from. */
#define WV_GRH 40 /* in front of what is received */
struct wvud {
    struct wvhost *host;
    IWVCompletionQueue *cq;
    IWVDatagramQueuePair *qp;
    NET32 qpn;
    SIZE_T depth, size;
    BYTE *buffer;
    WV_MEMORY_KEYS keys;
    IWVAddressHandle *ah;
    ULONG_PTR ah_key;
    NET32 peer_qpn, peer_qkey;
};
void wv_ud_make(struct wvud *ud, struct wvhost *host, SIZE_T depth, SIZE_T size);
void wv_ud_drop(struct wvud *ud);
BYTE *wv_ud_place(const struct wvud *ud, UINT64 i);
void wv_ud_receive(struct wvud *ud, UINT64 i);
void wv_ud_to(struct wvud *ud, const WV_DATAGRAM_PARAM *param);               /* where messages go from now on */
void wv_ud_back(struct wvud *ud, const WV_COMPLETION *completion, NET32 qpn); /* to who sent that one */
void wv_ud_send(struct wvud *ud, UINT64 id, DWORD flags, NET32 immediate);

/* Work requests and completions. */
NET64 wv_net64(UINT64 value);
NET64 wv_remote(const struct wvlink *link, SIZE_T offset);
WV_SGE wv_sge(const struct wvlink *link, SIZE_T offset, SIZE_T length);
void wv_receive(struct wvlink *link, UINT64 id, SIZE_T offset, SIZE_T length);
void wv_send(struct wvlink *link, UINT64 id, SIZE_T offset, SIZE_T length, DWORD flags);
WV_COMPLETION wv_next(IWVCompletionQueue *cq);
WV_COMPLETION wv_next_of(IWVCompletionQueue *cq, WV_OPCODE opcode); /* as result_of in session.h */
void wv_none(IWVCompletionQueue *cq);
#define ok_completion(cq, opcode, status, id)           \
    do {                                                \
        WV_COMPLETION ok_c_ = wv_next_of(cq, (opcode)); \
        ok_int(ok_c_.Status, ==, (status));             \
        ok_int(ok_c_.Opcode, ==, (opcode));             \
        ok_uint(ok_c_.WrId, ==, (UINT64)(id));          \
    } while (0)

#endif
