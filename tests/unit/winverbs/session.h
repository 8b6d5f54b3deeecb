/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_TEST_WINVERBS_SESSION_H
#define NDVERBS_TEST_WINVERBS_SESSION_H

#include "rig.h"

/* Two connect endpoints of this process and their queue pairs (0: active, 1: passive) over the fakes' wire, taken step by
 * step. */
struct session {
    SOCKADDR_IN address, *from; /* the listener's; where the active side binds, NULL: the same address, any port */
    IWVConnectEndpoint *listener, *active, *passive;
    IWVConnectQueuePair *qp[2];
    struct ibv_qp *verbs[2];
    WV_CONNECT_PARAM param, answer;
    OVERLAPPED request, connect, accept;
    /* of the address's device */
    IWVDevice *device;
    IWVProtectionDomain *pd;
    IWVCompletionQueue *cq;
};

IWVConnectEndpoint *session_endpoint(void);

void session_listen(struct session *s, const char *address);
void session_listen_at(struct session *s, const char *address, const char *listen_at);
void session_start(struct session *s);   /* GetRequest, Connect; both pending */
void session_request(struct session *s); /* and GetRequest has completed */
void session_accept_only(struct session *s);
void session_accept(struct session *s); /* and Connect has completed */
void session_complete(struct session *s);
void session_connect(struct session *s); /* all of it at 10.1.1.1 */

/* One message from the side; everything of it is checked. */
void session_send(struct session *s, int from);

/* The active side disconnects, the passive side answers; everything is released. */
void session_end(struct session *s);
void session_drop(struct session *s);

#endif
