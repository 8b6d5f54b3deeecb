/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_DEVICE_V1SIDE_H
#define NDVERBS_DEVICE_V1SIDE_H

/* One side of a version 1 connection: as session.h, with the calls of version 1. */

#include "session.h"

struct v1 {
    INDAdapter *adapter;
    ND_ADAPTER_INFO info;
    union endpoint address;
    INDCompletionQueue *cq;
    INDConnector *connector;
    INDEndpoint *endpoint;
    ND_MR_HANDLE mr;
    BYTE *buffer;
    SIZE_T size;
    SIZE_T inline_size;
    HANDLE event;
    OVERLAPPED ov;
    ND_RESULT *receives[16]; /* of v1_receive, not taken yet */
};

/* RegisterMemory, finished. */
HRESULT v1_register(struct v1 *v1, const void *buffer, SIZE_T size, ND_MR_HANDLE *mr);

/* Adapter, completion queue, a registered buffer of `size` bytes. Connector and endpoint are made when needed. */
void v1_open(struct v1 *v1, SIZE_T size);
void v1_open_at(struct v1 *v1, const union endpoint *address, SIZE_T size);
void v1_make_connector(struct v1 *v1);
void v1_make_endpoint(struct v1 *v1); /* 16 requests each way, 2 entries each, 1 read each way */
void v1_drop(struct v1 *v1);          /* connector and endpoint; each last Release gives 0 */
void v1_close(struct v1 *v1);

/* The status of an overlapped call: never ND_SUCCESS at once; waits if it pends. */
HRESULT v1_finish(void *object, HRESULT started, OVERLAPPED *ov);
#define V1_FINISH(v1, call) v1_finish((v1)->connector, (call), &(v1)->ov)

/* Listens on any port, which is told to the client. */
INDListen *v1_listen(struct v1 *v1);
union endpoint v1_listener(const struct v1 *v1, USHORT port); /* of this process; port in network order */

void v1_request(struct v1 *v1, INDListen *listen); /* takes the next request */
HRESULT v1_try_accept(struct v1 *v1);              /* makes the endpoint if there is none */
HRESULT v1_try_connect(struct v1 *v1, const union endpoint *to);
void v1_accept(struct v1 *v1, INDListen *listen);
void v1_connect(struct v1 *v1, const union endpoint *to);
void v1_disconnect(struct v1 *v1);

/* Two sides of one process, with what they lack of connectors and endpoints. */
void v1_self_connect(struct v1 *active, struct v1 *passive);

/* Both sides of a plain session of two processes; the client disconnects. */
void v1_begin(struct v1 *v1, SIZE_T size);
void v1_end(struct v1 *v1);

ND_SGE v1_sge(const struct v1 *v1, SIZE_T offset, SIZE_T length);
void v1_receive(struct v1 *v1, ND_RESULT *result, SIZE_T offset, SIZE_T length);
void v1_send(struct v1 *v1, ND_RESULT *result, SIZE_T offset, SIZE_T length, DWORD flags);

/* The next result; waits for it by polling. The next of the receives or of everything else, as the given one is: see result_of in
 * session.h; only receives of v1_receive are known as such. */
ND_RESULT *v1_next(struct v1 *v1);
ND_RESULT *v1_next_like(struct v1 *v1, const ND_RESULT *result);
void v1_none(struct v1 *v1);
#define ok_v1_result(v1, result, status)               \
    do {                                               \
        ND_RESULT *ok_r_ = v1_next_like(v1, (result)); \
        ok_ptr(ok_r_, ==, (result));                   \
        ok_status(ok_r_->Status, (status));            \
    } while (0)

#endif
