/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TEST_ND1_SIDE_H
#define NDVERBS_TEST_ND1_SIDE_H

/* One side of a version 1 connection on the fakes. */

#include "front.h"

#include <ntstatus.h>

struct side {
    INDAdapter *adapter;
    INDCompletionQueue *cq;
    INDConnector *connector;
    INDEndpoint *endpoint;
    ND_MR_HANDLE mr;
    uint8_t buffer[256];
    OVERLAPPED ov;
    ND_RESULT result;
};

INDAdapter *side_adapter(const char *text);
void side_open(struct side *s, const char *text); /* adapter, registered buffer, completion queue */
void side_connector(struct side *s);
void side_endpoint(struct side *s); /* 4 requests each way, limits 1/1 */
void side_drop(struct side *s);     /* connector and endpoint */
void side_close(struct side *s);

/* The status of an overlapped call on an object. */
#define FINISH(object, ov_, call) side_finish((INDOverlapped *)(object), ov_, call)
HRESULT side_finish(INDOverlapped *object, OVERLAPPED *ov, HRESULT started);

/* Connects two sides over the fake wire; the listener is made and released. */
INDListen *side_listen(struct side *s, struct sockaddr_in *address);
void side_connect(struct side *client, struct side *server);

/* A request of the whole buffer, or of a text. Its result is r. */
HRESULT side_receive(struct side *s, ND_RESULT *r);
HRESULT side_send(struct side *s, ND_RESULT *r, size_t length, DWORD flags);

/* The next result must be this one. */
void side_result(const char *file, int line, struct side *s, const ND_RESULT *r, HRESULT status);
#define ok_result(s, r, status) side_result(__FILE__, __LINE__, s, r, status)
#define ok_no_result(s)                                       \
    do {                                                      \
        ND_RESULT *ok_r_;                                     \
        ok_uint(CALL((s)->cq, GetResults, &ok_r_, 1), ==, 0); \
    } while (0)

#define UNTOUCHED ((ULONG_PTR)0x5a5a)
static inline void overlapped_fresh(OVERLAPPED *ov)
{
    memset(ov, 0, sizeof(*ov));
    ov->Internal = ov->InternalHigh = UNTOUCHED;
}
#define ok_untouched(ov) ok_uint((ov)->Internal, ==, UNTOUCHED)

#endif
