/* In the manner of a uDAPL provider: C with lpVtbl, one callback for all requests of the adapter's file, a late Accept (the
 * consumer decides some time after the request came), cancellation of the pending NotifyDisconnect and then Disconnect on
 * the live connector, release of a connector right after its NotifyDisconnect fired; Release is tested only with FAILED and
 * ND_PENDING. Call sequence: ndspi-v2.md 13 "uDAPL ND".
 *
 *   dapl psp IP port        dapl ep IP port
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <initguid.h>
#include <ntstatus.h>
#include <ndspi.h>
#include <ndsupport.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum { EVT_REQUEST, EVT_ESTABLISHED, EVT_DISCONNECTED, EVT_CANCELED, EVT_DTO, EVT_GONE } EVENT;
typedef enum { OP_LISTEN, OP_ACCEPT, OP_CONNECT, OP_COMPLETE, OP_NOTIFY, OP_CQ, OP_DISCONNECT } OP;

typedef struct _DAPL_OVERLAPPED {
    OVERLAPPED ov;
    OP op;
} DAPL_OVERLAPPED;

static IND2Adapter *ia;
static HANDLE file;
static IND2MemoryRegion *lmr;
static IND2CompletionQueue *evd_cq;
static IND2QueuePair *qp;
static IND2Connector *conn;
static DAPL_OVERLAPPED ovs[OP_DISCONNECT + 1];
static char memory[8192];

/* The event dispatcher: a queue of the consumer's thread. */
static CRITICAL_SECTION evd_lock;
static HANDLE evd_event;
static EVENT evd_queue[64];
static unsigned evd_head, evd_tail;

static void evd_post(EVENT event)
{
    EnterCriticalSection(&evd_lock);
    evd_queue[evd_tail++ % 64] = event;
    LeaveCriticalSection(&evd_lock);
    SetEvent(evd_event);
}

static EVENT evd_wait(void)
{
    EVENT event;

    for (;;) {
        EnterCriticalSection(&evd_lock);
        if (evd_head != evd_tail) {
            event = evd_queue[evd_head++ % 64];
            LeaveCriticalSection(&evd_lock);
            return event;
        }
        LeaveCriticalSection(&evd_lock);
        if (WaitForSingleObject(evd_event, INFINITE) != WAIT_OBJECT_0)
            abort();
    }
}

static void quit(const char *what, HRESULT hr)
{
    fprintf(stderr, "dapl: %s %08x\n", what, (unsigned)hr);
    exit(1);
}

static void expect(EVENT wanted)
{
    EVENT event = evd_wait();

    if (event != wanted) {
        fprintf(stderr, "dapl: event %d instead of %d\n", (int)event, (int)wanted);
        exit(1);
    }
}

static OVERLAPPED *overlapped(OP op)
{
    memset(&ovs[op], 0, sizeof(ovs[op]));
    ovs[op].op = op;
    return &ovs[op].ov;
}

static void pend(const char *what, HRESULT hr)
{
    if (hr != ND_PENDING)
        quit(what, hr);
}

/* `error` is the request's NTSTATUS. */
static VOID CALLBACK io_callback(DWORD error, DWORD bytes, LPOVERLAPPED ov)
{
    DAPL_OVERLAPPED *dov = CONTAINING_RECORD(ov, DAPL_OVERLAPPED, ov);

    UNREFERENCED_PARAMETER(bytes);
    switch ((NTSTATUS)error) {
    case STATUS_SUCCESS:
        break;
    case ND_CANCELED:
        evd_post(EVT_CANCELED);
        return;
    case STATUS_CONNECTION_DISCONNECTED:
        if (dov->op == OP_NOTIFY)
            break;
        /* fall through */
    default:
        quit("a request ended with", (HRESULT)error);
    }
    switch (dov->op) {
    case OP_LISTEN:
        evd_post(EVT_REQUEST);
        break;
    case OP_CONNECT:
        pend("CompleteConnect", conn->lpVtbl->CompleteConnect(conn, overlapped(OP_COMPLETE)));
        break;
    case OP_ACCEPT:
    case OP_COMPLETE:
        pend("NotifyDisconnect", conn->lpVtbl->NotifyDisconnect(conn, overlapped(OP_NOTIFY)));
        evd_post(EVT_ESTABLISHED);
        break;
    case OP_NOTIFY:
        evd_post(EVT_DISCONNECTED);
        break;
    case OP_CQ:
        evd_post(EVT_DTO);
        break;
    case OP_DISCONNECT:
        evd_post(EVT_GONE);
        break;
    }
}

static void release(IUnknown *object)
{
    HRESULT hr = (HRESULT)object->lpVtbl->Release(object);

    if (hr == ND_PENDING || FAILED(hr))
        quit("Release", hr);
}
#define RELEASE(object) release((IUnknown *)(object))

static void post(BOOL receive, ULONG offset, ULONG length)
{
    ND2_SGE sge = { memory + offset, length, lmr->lpVtbl->GetLocalToken(lmr) };
    HRESULT hr = receive ? qp->lpVtbl->Receive(qp, memory + offset, &sge, 1) : qp->lpVtbl->Send(qp, memory + offset, &sge, 1, 0);

    if (hr != ND_SUCCESS)
        quit(receive ? "Receive" : "Send", hr);
}

/* The next transfer that is done: poll, arm, poll, sleep. */
static void dto(ND2_REQUEST_TYPE wanted)
{
    ND2_RESULT result;

    for (;;) {
        while (evd_cq->lpVtbl->GetResults(evd_cq, &result, 1) == 1) {
            if (result.Status != ND_SUCCESS)
                quit("a transfer", result.Status);
            if (result.RequestType == wanted)
                return;
        }
        pend("Notify", evd_cq->lpVtbl->Notify(evd_cq, ND_CQ_NOTIFY_ANY, overlapped(OP_CQ)));
        expect(EVT_DTO);
    }
}

static void ia_open(const struct sockaddr_in *address)
{
    OVERLAPPED ov = { .hEvent = CreateEvent(NULL, FALSE, FALSE, NULL) };
    HRESULT hr;

    InitializeCriticalSection(&evd_lock);
    evd_event = CreateEvent(NULL, FALSE, FALSE, NULL);
    hr = NdOpenAdapter(&IID_IND2Adapter, (const struct sockaddr *)address, sizeof(*address), (VOID **)&ia);
    if (FAILED(hr) || FAILED(hr = ia->lpVtbl->CreateOverlappedFile(ia, &file)) ||
        FAILED(hr = ia->lpVtbl->CreateMemoryRegion(ia, &IID_IND2MemoryRegion, file, (VOID **)&lmr)) ||
        FAILED(hr = ia->lpVtbl->CreateCompletionQueue(ia, &IID_IND2CompletionQueue, file, 16, 0, 0, (VOID **)&evd_cq)) ||
        FAILED(hr = ia->lpVtbl->CreateQueuePair(ia, &IID_IND2QueuePair, (IUnknown *)evd_cq, (IUnknown *)evd_cq, NULL, 4, 4, 1, 1,
                                                0, (VOID **)&qp)) ||
        FAILED(hr = ia->lpVtbl->CreateConnector(ia, &IID_IND2Connector, file, (VOID **)&conn)))
        quit("opening", hr);
    hr = lmr->lpVtbl->Register(lmr, memory, sizeof(memory), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov);
    if (hr == ND_PENDING)
        hr = lmr->lpVtbl->GetOverlappedResult(lmr, &ov, TRUE);
    if (FAILED(hr))
        quit("Register", hr);
    CloseHandle(ov.hEvent);
    if (!BindIoCompletionCallback(file, io_callback, 0))
        quit("BindIoCompletionCallback", HRESULT_FROM_WIN32(GetLastError()));
}

static void ia_close(void)
{
    OVERLAPPED ov = { .hEvent = (HANDLE)((ULONG_PTR)CreateEvent(NULL, FALSE, FALSE, NULL) | 1) };

    if (lmr->lpVtbl->Deregister(lmr, &ov) == ND_PENDING)
        lmr->lpVtbl->GetOverlappedResult(lmr, &ov, TRUE);
    RELEASE(lmr);
    RELEASE(qp);
    RELEASE(evd_cq);
    CloseHandle(file);
    RELEASE(ia);
    CloseHandle(ov.hEvent);
    CloseHandle(evd_event);
    DeleteCriticalSection(&evd_lock);
}

static void passive(const struct sockaddr_in *address)
{
    IND2Listener *listener;
    HRESULT hr = ia->lpVtbl->CreateListener(ia, &IID_IND2Listener, file, (VOID **)&listener);

    if (FAILED(hr) || FAILED(hr = listener->lpVtbl->Bind(listener, (const struct sockaddr *)address, sizeof(*address))) ||
        FAILED(hr = listener->lpVtbl->Listen(listener, 4)))
        quit("listening", hr);
    pend("GetConnectionRequest",
         listener->lpVtbl->GetConnectionRequest(listener, (IUnknown *)conn, overlapped(OP_LISTEN)));
    printf("dapl: listening\n");
    fflush(stdout);
    expect(EVT_REQUEST);
    /* The listener may go; the request that was taken stays. */
    RELEASE(listener);
    Sleep(300);
    post(TRUE, 0, 512);
    pend("Accept", conn->lpVtbl->Accept(conn, (IUnknown *)qp, 1, 1, "late", 5, overlapped(OP_ACCEPT)));
    expect(EVT_ESTABLISHED);
    dto(Nd2RequestTypeReceive);
    if (strcmp(memory, "to whom it may concern") != 0)
        quit("the message", E_FAIL);
    post(FALSE, 0, 64);
    dto(Nd2RequestTypeSend);
    expect(EVT_DISCONNECTED);
    RELEASE(conn);
}

static void active(const struct sockaddr_in *address)
{
    struct sockaddr_in local = *address;
    HRESULT hr;

    local.sin_port = 0;
    hr = conn->lpVtbl->Bind(conn, (struct sockaddr *)&local, sizeof(local));
    if (FAILED(hr))
        quit("Bind", hr);
    post(TRUE, 1024, 512);
    pend("Connect", conn->lpVtbl->Connect(conn, (IUnknown *)qp, (const struct sockaddr *)address, sizeof(*address), 1, 1, NULL, 0,
                                          overlapped(OP_CONNECT)));
    expect(EVT_ESTABLISHED);
    strcpy(memory, "to whom it may concern");
    post(FALSE, 0, 64);
    dto(Nd2RequestTypeReceive);
    if (strcmp(memory + 1024, memory) != 0)
        quit("the answer", E_FAIL);
    /* The notification is cancelled, the connection is not; then it is ended. */
    hr = conn->lpVtbl->CancelOverlappedRequests(conn);
    if (hr != ND_SUCCESS)
        quit("CancelOverlappedRequests", hr);
    expect(EVT_CANCELED);
    pend("Disconnect", conn->lpVtbl->Disconnect(conn, overlapped(OP_DISCONNECT)));
    expect(EVT_GONE);
    RELEASE(conn);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    WSADATA data;

    if (argc != 4) {
        fprintf(stderr, "usage: dapl psp|ep IP port\n");
        return 2;
    }
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0 || FAILED(NdStartup()))
        return 1;
    inet_pton(AF_INET, argv[2], &address.sin_addr);
    ia_open(&address);
    address.sin_port = htons((USHORT)atoi(argv[3]));
    if (strcmp(argv[1], "psp") == 0)
        passive(&address);
    else
        active(&address);
    ia_close();
    NdCleanup();
    WSACleanup();
    printf("dapl: done\n");
    return 0;
}
