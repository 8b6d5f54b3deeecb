/* SPDX-License-Identifier: MIT */
/* The same with datagrams: the client looks the server up, sends it messages one by one and waits for each to come back.
 * Datagrams may be lost: what does not come back in time is sent again. */
#include "wvpingpong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRH_SIZE 40 /* in front of every datagram that is received */
#define WINDOW   16
#define AGAIN_MS 200
#define TRIES    50

/* What a datagram begins with; an answer repeats it. */
struct head {
    UINT32 number, qpn; /* qpn: the sender's, network order */
};

struct ud {
    struct wv_host host;
    IWVCompletionQueue *cq;
    IWVDatagramQueuePair *qp;
    IWVAddressHandle *ah;
    ULONG_PTR ah_key;
    NET32 own_qpn, peer_qpn, peer_qkey;
    BYTE *memory; /* WINDOW places to receive, one to send from */
    WV_MEMORY_KEYS keys;
    SIZE_T place;
    UINT32 size;
};

static BYTE *receive_place(const struct ud *ud, UINT64 i)
{
    return ud->memory + i * ud->place;
}

static BYTE *send_place(const struct ud *ud)
{
    return ud->memory + WINDOW * ud->place;
}

static void post_receive(struct ud *ud, UINT64 i)
{
    WV_SGE sge = { .pAddress = receive_place(ud, i), .Length = (UINT32)ud->place, .Lkey = ud->keys.Lkey };

    wv_check("PostReceive", CALL(ud->qp, PostReceive, i, &sge, 1));
}

static void post_send(struct ud *ud, UINT32 length)
{
    WV_SGE sge = { .pAddress = send_place(ud), .Length = length, .Lkey = ud->keys.Lkey };
    WV_SEND_DATAGRAM send = { .WrId = WINDOW,
                              .AhKey = ud->ah_key,
                              .pSgl = &sge,
                              .nSge = 1,
                              .Flags = WV_SEND_SIGNALED,
                              .DestinationQpn = ud->peer_qpn,
                              .DestinationQkey = ud->peer_qkey };

    wv_check("SendMessage", CALL(ud->qp, SendMessage, &send));
}

static void prepare(struct ud *ud, const struct pp_options *options)
{
    WV_QP_CREATE create = { 0 };
    WV_QP_ATTRIBUTES attributes = { 0 };
    WV_PORT_ATTRIBUTES port;
    SIZE_T entries = 4 * WINDOW;

    wv_host_open(&ud->host, options);
    wv_check("QueryPort", CALL(ud->host.device, QueryPort, ud->host.where.PortNumber, &port));
    ud->size = options->sizes[0] < sizeof(struct head) ? (UINT32)sizeof(struct head) : options->sizes[0];
    if (ud->size > port.ActiveMtu)
        wv_refuse("-S", "a datagram is no longer than the port's MTU");
    ud->place = GRH_SIZE + port.ActiveMtu;
    ud->memory = VirtualAlloc(NULL, (WINDOW + 1) * ud->place, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!ud->memory)
        wv_refuse("VirtualAlloc", "out of memory");
    wv_check("RegisterMemory", CALL(ud->host.pd, RegisterMemory, ud->memory, (WINDOW + 1) * ud->place,
                                    WV_ACCESS_LOCAL_WRITE, NULL, &ud->keys));
    wv_check("CreateCompletionQueue", CALL(ud->host.device, CreateCompletionQueue, &entries, &ud->cq));
    create.pSendCq = create.pReceiveCq = ud->cq;
    create.SendDepth = create.ReceiveDepth = WINDOW;
    create.SendSge = create.ReceiveSge = 1;
    create.QpType = WvQpTypeUd;
    wv_check("CreateDatagramQueuePair", CALL(ud->host.pd, CreateDatagramQueuePair, &create, &ud->qp));
    attributes.QpState = WvQpStateInit;
    attributes.AddressVector.PortNumber = ud->host.where.PortNumber;
    attributes.Qkey = htonl(WV_CM_UDP_QKEY);
    wv_check("FindPkey",
             CALL(ud->host.device, FindPkey, ud->host.where.PortNumber, ud->host.where.Pkey, &attributes.PkeyIndex));
    wv_check("Modify to INIT", CALL(ud->qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL));
    attributes.QpState = WvQpStateRtr;
    wv_check("Modify to RTR", CALL(ud->qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL));
    attributes.QpState = WvQpStateRts;
    wv_check("Modify to RTS", CALL(ud->qp, Modify, &attributes, WV_QP_ATTR_STATE, NULL));
    wv_check("Query", CALL(ud->qp, Query, &attributes));
    ud->own_qpn = attributes.Qpn;
    for (UINT64 i = 0; i < WINDOW; i++)
        post_receive(ud, i);
}

static void finish(struct ud *ud)
{
    if (ud->ah)
        CALL(ud->ah, Release);
    CALL(ud->qp, Release);
    CALL(ud->cq, Release);
    CALL(ud->host.pd, DeregisterMemory, ud->keys.Lkey, NULL);
    wv_host_close(&ud->host);
    VirtualFree(ud->memory, 0, MEM_RELEASE);
}

/* The place of the next datagram that arrived, -1: none in so many milliseconds. */
static int next_datagram(struct ud *ud, DWORD wait, WV_COMPLETION *completion)
{
    ULONGLONG until = GetTickCount64() + wait;

    do {
        while (CALL(ud->cq, Poll, completion, 1)) {
            if (completion->Status != WvWcSuccess)
                wv_refuse("a datagram", "its request failed");
            if (completion->Opcode & WvReceive)
                return (int)completion->WrId;
        }
        SwitchToThread();
    } while (GetTickCount64() < until);
    return -1;
}

static void fill(const struct ud *ud, UINT32 number)
{
    struct head head = { number, ud->own_qpn };
    BYTE *at = send_place(ud);

    for (UINT32 i = 0; i < ud->size; i++)
        at[i] = (BYTE)(number + i);
    memcpy(at, &head, sizeof(head));
}

static bool run_client(struct ud *ud, const struct pp_options *options)
{
    struct pp_report report = { .options = options, .interface = "WinVerbs, datagrams", .device = "" };
    uint64_t *samples = calloc(options->iterations, sizeof(*samples));
    WV_DATAGRAM_ATTRIBUTES attributes = { 0 };
    IWVDatagramEndpoint *endpoint;
    struct wv_address remote;
    WV_COMPLETION completion;
    UINT64 cpu, started, verified = 0;
    bool right = true;

    if (!samples)
        wv_refuse("-n", "out of memory");
    wv_address_parse(&remote, options->connect, options->port);
    wv_check("CreateDatagramEndpoint", CALL(ud->host.provider, CreateDatagramEndpoint, &endpoint));
    wv_check(ud->host.local.text, CALL(endpoint, BindAddress, &ud->host.local.sock.Sa));
    wv_check(remote.text, CALL(endpoint, Lookup, &remote.sock.Sa, NULL, 0, NULL));
    wv_check("Query", CALL(endpoint, Query, &attributes));
    ud->peer_qpn = attributes.Param.Qpn;
    ud->peer_qkey = attributes.Param.Qkey;
    wv_check("CreateAddressHandle",
             CALL(ud->host.pd, CreateAddressHandle, &attributes.Param.AddressVector, &ud->ah, &ud->ah_key));
    report.local = ud->host.local.text;
    report.remote = remote.text;
    pp_report_begin(&report);
    cpu = pp_cpu();
    started = pp_now();
    for (UINT32 n = 0; n < options->iterations; n++) {
        struct head head = { 0, 0 };
        int place = -1, tries = 0;
        UINT64 at = pp_now();

        fill(ud, n);
        while (head.number != n || place < 0) {
            if (place < 0 && ++tries > TRIES)
                wv_refuse(remote.text, "does not answer");
            if (place < 0)
                post_send(ud, ud->size);
            else
                post_receive(ud, (UINT64)place); /* an answer that came twice */
            place = next_datagram(ud, AGAIN_MS, &completion);
            if (place >= 0)
                memcpy(&head, receive_place(ud, (UINT64)place) + GRH_SIZE, sizeof(head));
        }
        samples[n] = (pp_now() - at) / 2;
        if (options->verify) {
            right = right && completion.Length == ud->size + GRH_SIZE &&
                    memcmp(receive_place(ud, (UINT64)place) + GRH_SIZE, send_place(ud), ud->size) == 0;
            verified += ud->size;
        }
        post_receive(ud, (UINT64)place);
    }
    pp_report_size(&report, ud->size, samples, options->iterations, pp_now() - started, pp_cpu() - cpu);
    pp_report_end(&report, verified);
    /* The last one says so; an answer is not waited for. */
    memset(send_place(ud), 0xff, sizeof(struct head));
    for (int i = 0; i < 3; i++)
        post_send(ud, sizeof(struct head));
    Sleep(50);
    CALL(endpoint, Release);
    free(samples);
    return right;
}

/* The way back to whoever sent it, out of the header in front of the datagram. */
static void answer_to(struct ud *ud, const WV_COMPLETION *completion, const WV_ADDRESS_VECTOR *vector)
{
    if (!ud->ah)
        wv_check("CreateAddressHandle",
                 CALL(ud->host.pd, CreateAddressHandle, (WV_ADDRESS_VECTOR *)vector, &ud->ah, &ud->ah_key));
    ud->peer_qpn = completion->SourceQpn;
    ud->peer_qkey = htonl(WV_CM_UDP_QKEY);
}

static void vector_from_header(struct ud *ud, const BYTE *header, const WV_COMPLETION *completion,
                               WV_ADDRESS_VECTOR *vector)
{
    WV_PORT_ATTRIBUTES port;

    memset(vector, 0, sizeof(*vector));
    wv_check("QueryPort", CALL(ud->host.device, QueryPort, ud->host.where.PortNumber, &port));
    vector->PortNumber = ud->host.where.PortNumber;
    vector->DLid = completion->SLid;
    vector->ServiceLevel = completion->SL;
    if (!(completion->Flags & WV_WC_GRH_VALID))
        return;
    vector->Route.Valid = 1;
    vector->Route.HopLimit = 64;
    memcpy(&vector->Route.DGid, header + 8, 16);  /* where it came from */
    memcpy(&vector->Route.SGid, header + 24, 16); /* which of ours it was sent to */
    if (port.Transport == WvPortTransportRdmaoe && header[0] != 0x60) {
        /* RoCE over IPv4: an IP header at the end of the 40 bytes; both addresses as mapped GIDs. */
        memset(&vector->Route.DGid, 0, 16);
        memset(&vector->Route.SGid, 0, 16);
        vector->Route.DGid.Raw[10] = vector->Route.DGid.Raw[11] = 0xff;
        vector->Route.SGid.Raw[10] = vector->Route.SGid.Raw[11] = 0xff;
        memcpy(&vector->Route.DGid.Raw[12], header + 32, 4);
        memcpy(&vector->Route.SGid.Raw[12], header + 36, 4);
    }
}

static bool run_server(struct ud *ud)
{
    IWVDatagramEndpoint *listener, *endpoint;
    WV_DATAGRAM_PARAM param = { 0 };
    WV_ADDRESS_VECTOR vector;
    WV_COMPLETION completion;
    UINT64 answered = 0;

    wv_check("CreateDatagramEndpoint", CALL(ud->host.provider, CreateDatagramEndpoint, &listener));
    wv_check("CreateDatagramEndpoint", CALL(ud->host.provider, CreateDatagramEndpoint, &endpoint));
    wv_check(ud->host.local.text, CALL(listener, BindAddress, &ud->host.local.sock.Sa));
    wv_check("Listen", CALL(listener, Listen, 4));
    printf("listening on %s\n", ud->host.local.text);
    fflush(stdout);
    wv_check("GetRequest", CALL(listener, GetRequest, endpoint, NULL));
    param.Qpn = ud->own_qpn;
    param.Qkey = htonl(WV_CM_UDP_QKEY);
    wv_check("Accept", CALL(endpoint, Accept, &param, NULL));
    for (;;) {
        int place = next_datagram(ud, 60000, &completion);
        struct head head;

        if (place < 0)
            wv_refuse("the client", "has said nothing for a minute");
        memcpy(&head, receive_place(ud, (UINT64)place) + GRH_SIZE, sizeof(head));
        if (head.number == UINT32_MAX)
            break;
        vector_from_header(ud, receive_place(ud, (UINT64)place), &completion, &vector);
        answer_to(ud, &completion, &vector);
        memcpy(send_place(ud), receive_place(ud, (UINT64)place) + GRH_SIZE, completion.Length - GRH_SIZE);
        post_receive(ud, (UINT64)place);
        post_send(ud, completion.Length - GRH_SIZE);
        answered++;
    }
    printf("%llu datagrams answered\n", (unsigned long long)answered);
    CALL(endpoint, Release);
    CALL(listener, Release);
    return true;
}

bool wv_run_ud(const struct pp_options *options)
{
    struct ud ud = { 0 };
    bool right;

    prepare(&ud, options);
    right = options->server ? run_server(&ud) : run_client(&ud, options);
    finish(&ud);
    return right;
}
