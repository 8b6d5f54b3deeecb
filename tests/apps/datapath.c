/* In the manner of a QUIC stack's RDMA data path: C with lpVtbl, a worker thread with one completion port that serves an
 * adapter file for each listener and connection, FILE_SKIP_* modes, GetQueuedCompletionStatusEx, a packet of its own for
 * results that are known at once.
 *
 *   datapath server IP port connections        datapath client IP port connections
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndspi.h>
#include <ndsupport.h>
#include <stdio.h>
#include <stdlib.h>

#define RING_SIZE     (16 * 1024)
#define DATAGRAM      1200
#define DATAGRAMS     50
#define RECV_DEPTH    16
#define IO_BATCH      8

typedef enum IO_TYPE {
    IO_GET_REQUEST,
    IO_ACCEPT,
    IO_CONNECT,
    IO_COMPLETE_CONNECT,
    IO_CQ,
    IO_DISCONNECT,
    IO_DISCONNECT_SEEN,
    IO_SHUTDOWN
} IO_TYPE;

typedef struct SQE {
    OVERLAPPED Overlapped;
    struct CONNECTION *Connection;
    IO_TYPE Type;
} SQE;

typedef struct CONNECTION {
    HANDLE File;
    IND2Connector *Connector;
    IND2CompletionQueue *Cq;
    IND2QueuePair *Qp;
    IND2MemoryRegion *Region;
    UINT8 *Ring;
    UINT32 Received, Sent, Credits;
    BOOLEAN Server, Closing, CqArmed;
    SQE Control, Notify, Close, Seen;
    ULONG Pending;
    struct CONNECTION *Next;
} CONNECTION;

static struct {
    IND2Adapter *Adapter;
    ND2_ADAPTER_INFO Info;
    HANDLE Port;
    HANDLE ListenerFile;
    IND2Listener *Listener;
    HANDLE Thread;
    LONG volatile Closed;
    LONG Wanted;
    LONG Accepted;
    SOCKADDR_INET Address;
    BOOLEAN Server;
} Path;

static void Die(const char *Where, HRESULT Status)
{
    fprintf(stderr, "datapath: %s: 0x%x, last error %u\n", Where, (unsigned)Status, (unsigned)GetLastError());
    exit(3);
}

static void Sqe(SQE *Sqe, CONNECTION *Connection, IO_TYPE Type)
{
    ZeroMemory(&Sqe->Overlapped, sizeof(Sqe->Overlapped));
    Sqe->Connection = Connection;
    Sqe->Type = Type;
    Connection->Pending++;
}

/* ND_SUCCESS is not followed by a packet, because of the notification modes: here is one. */
static void Submitted(SQE *Sqe, HRESULT Status, const char *Where)
{
    if (Status == ND_PENDING)
        return;
    if (Status != ND_SUCCESS)
        Die(Where, Status);
    if (!PostQueuedCompletionStatus(Path.Port, 0, 0, &Sqe->Overlapped))
        Die("PostQueuedCompletionStatus", HRESULT_FROM_WIN32(GetLastError()));
}

static HANDLE NewFile(void)
{
    HANDLE File;
    HRESULT Status = Path.Adapter->lpVtbl->CreateOverlappedFile(Path.Adapter, &File);

    if (Status != ND_SUCCESS)
        Die("CreateOverlappedFile", Status);
    if (CreateIoCompletionPort(File, Path.Port, 0, 0) != Path.Port)
        Die("CreateIoCompletionPort", E_FAIL);
    if (!SetFileCompletionNotificationModes(File, FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE))
        Die("SetFileCompletionNotificationModes", E_FAIL);
    return File;
}

#define MUST(call)                       \
    do {                                 \
        HRESULT Status_ = (call);        \
        if (Status_ != ND_SUCCESS)       \
            Die(#call, Status_);         \
    } while (0)

static CONNECTION *NewConnection(BOOLEAN Server)
{
    CONNECTION *C = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(*C));
    IND2Adapter *A = Path.Adapter;
    OVERLAPPED Ov = { 0 };
    HRESULT Status;

    C->Server = Server;
    C->File = NewFile();
    C->Ring = _aligned_malloc(2 * RING_SIZE + RECV_DEPTH * 2048, 64);
    MUST(A->lpVtbl->CreateMemoryRegion(A, &IID_IND2MemoryRegion, C->File, (void **)&C->Region));
    Ov.hEvent = (HANDLE)((UINT_PTR)CreateEventW(NULL, TRUE, FALSE, NULL) | 1);
    Status = C->Region->lpVtbl->Register(C->Region, C->Ring, 2 * RING_SIZE + RECV_DEPTH * 2048, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &Ov);
    if (Status == ND_PENDING)
        Status = C->Region->lpVtbl->GetOverlappedResult(C->Region, &Ov, TRUE);
    MUST(Status);
    CloseHandle(Ov.hEvent);
    MUST(A->lpVtbl->CreateCompletionQueue(A, &IID_IND2CompletionQueue, C->File, 64, 0, 0, (void **)&C->Cq));
    MUST(A->lpVtbl->CreateQueuePair(A, &IID_IND2QueuePair, (IUnknown *)C->Cq, (IUnknown *)C->Cq, C, RECV_DEPTH, RECV_DEPTH, 1, 1,
        0, (void **)&C->Qp));
    MUST(A->lpVtbl->CreateConnector(A, &IID_IND2Connector, C->File, (void **)&C->Connector));
    return C;
}

static void Receive(CONNECTION *C, UINT64 Slot)
{
    ND2_SGE Sge = { C->Ring + 2 * RING_SIZE + Slot * 2048, 2048, C->Region->lpVtbl->GetLocalToken(C->Region) };

    MUST(C->Qp->lpVtbl->Receive(C->Qp, (void *)(UINT_PTR)Slot, &Sge, 1));
}

static void Send(CONNECTION *C, UINT32 Number)
{
    UINT8 *From = C->Ring + Number % 8 * 2048;
    ND2_SGE Sge = { From, DATAGRAM, C->Region->lpVtbl->GetLocalToken(C->Region) };

    memset(From, (int)Number, DATAGRAM);
    MUST(C->Qp->lpVtbl->Send(C->Qp, NULL, &Sge, 1, 0));
}

static void StartClose(CONNECTION *C)
{
    if (C->Closing)
        return;
    C->Closing = TRUE;
    Sqe(&C->Close, C, IO_DISCONNECT);
    Submitted(&C->Close, C->Connector->lpVtbl->Disconnect(C->Connector, &C->Close.Overlapped), "Disconnect");
}

/* The client sends one datagram at a time, the server sends each back. */
static void Poll(CONNECTION *C)
{
    ND2_RESULT Results[IO_BATCH];
    ULONG Count;

    if (!C->CqArmed && !C->Closing) {
        C->CqArmed = TRUE;
        Sqe(&C->Notify, C, IO_CQ);
        Submitted(&C->Notify, C->Cq->lpVtbl->Notify(C->Cq, ND_CQ_NOTIFY_ANY, &C->Notify.Overlapped), "Notify");
    }
    while ((Count = C->Cq->lpVtbl->GetResults(C->Cq, Results, IO_BATCH)) != 0) {
        for (ULONG i = 0; i < Count; i++) {
            UINT64 Slot = (UINT_PTR)Results[i].RequestContext;
            const UINT8 *Data = C->Ring + 2 * RING_SIZE + Slot * 2048;

            if (Results[i].Status == ND_CANCELED)
                continue;
            if (Results[i].Status != ND_SUCCESS)
                Die("a request", Results[i].Status);
            if (Results[i].RequestType != Nd2RequestTypeReceive)
                continue;
            if (Results[i].BytesTransferred != DATAGRAM || Data[0] != (UINT8)C->Received ||
                memcmp(Data, Data + 1, DATAGRAM - 1) != 0)
                Die("a datagram", E_FAIL);
            Receive(C, Slot);
            C->Received++;
            if (C->Server || C->Received < DATAGRAMS)
                Send(C, C->Server ? C->Received - 1 : C->Received);
            else
                StartClose(C);
        }
    }
}

static void Established(CONNECTION *C)
{
    Sqe(&C->Seen, C, IO_DISCONNECT_SEEN);
    Submitted(&C->Seen, C->Connector->lpVtbl->NotifyDisconnect(C->Connector, &C->Seen.Overlapped), "NotifyDisconnect");
    if (!C->Server)
        Send(C, 0);
    Poll(C);
}

static void Accept(void)
{
    CONNECTION *C;

    if (Path.Accepted++ == Path.Wanted)
        return;
    C = NewConnection(TRUE);
    Sqe(&C->Control, C, IO_GET_REQUEST);
    Submitted(&C->Control, Path.Listener->lpVtbl->GetConnectionRequest(Path.Listener, (IUnknown *)C->Connector,
        &C->Control.Overlapped), "GetConnectionRequest");
}

static void Free(CONNECTION *C)
{
    OVERLAPPED Ov = { 0 };

    C->Qp->lpVtbl->Release(C->Qp);
    C->Cq->lpVtbl->Release(C->Cq);
    C->Connector->lpVtbl->Release(C->Connector);
    Ov.hEvent = (HANDLE)((UINT_PTR)CreateEventW(NULL, TRUE, FALSE, NULL) | 1);
    if (C->Region->lpVtbl->Deregister(C->Region, &Ov) == ND_PENDING)
        C->Region->lpVtbl->GetOverlappedResult(C->Region, &Ov, TRUE);
    C->Region->lpVtbl->Release(C->Region);
    CloseHandle(Ov.hEvent);
    CloseHandle(C->File);
    _aligned_free(C->Ring);
    if (C->Received != DATAGRAMS)
        Die("the number of datagrams", E_FAIL);
    HeapFree(GetProcessHeap(), 0, C);
    InterlockedIncrement(&Path.Closed);
}

static void Complete(SQE *Sqe_, NTSTATUS Status)
{
    CONNECTION *C = Sqe_->Connection;

    C->Pending--;
    if (Status < 0 && Status != ND_CANCELED)
        Die("an operation", Status);
    switch (Sqe_->Type) {
    case IO_GET_REQUEST:
        for (UINT64 i = 0; i < RECV_DEPTH; i++)
            Receive(C, i);
        Sqe(&C->Control, C, IO_ACCEPT);
        Submitted(&C->Control, C->Connector->lpVtbl->Accept(C->Connector, (IUnknown *)C->Qp, 0, 0, NULL, 0,
            &C->Control.Overlapped), "Accept");
        Accept();
        break;
    case IO_CONNECT:
        Sqe(&C->Control, C, IO_COMPLETE_CONNECT);
        Submitted(&C->Control, C->Connector->lpVtbl->CompleteConnect(C->Connector, &C->Control.Overlapped), "CompleteConnect");
        break;
    case IO_ACCEPT:
    case IO_COMPLETE_CONNECT:
        Established(C);
        break;
    case IO_CQ:
        C->CqArmed = FALSE;
        Poll(C);
        break;
    case IO_DISCONNECT_SEEN:
        StartClose(C);
        break;
    case IO_DISCONNECT:
        C->Cq->lpVtbl->CancelOverlappedRequests(C->Cq);
        break;
    default:
        Die("a packet", E_UNEXPECTED);
    }
    if (C->Closing && C->Pending == 0)
        Free(C);
}

static DWORD WINAPI Worker(LPVOID Context)
{
    SQE *Stop = Context;

    for (;;) {
        OVERLAPPED_ENTRY Entries[IO_BATCH];
        ULONG Count = 0;

        if (!GetQueuedCompletionStatusEx(Path.Port, Entries, IO_BATCH, &Count, INFINITE, FALSE))
            Die("GetQueuedCompletionStatusEx", E_FAIL);
        for (ULONG i = 0; i < Count; i++) {
            SQE *Done = CONTAINING_RECORD(Entries[i].lpOverlapped, SQE, Overlapped);

            if (Done == Stop)
                return 42;
            Complete(Done, (NTSTATUS)Entries[i].Internal);
        }
        if (Path.Closed == Path.Wanted) {
            WakeByAddressAll((PVOID)&Path.Closed);
        }
    }
}

int main(int argc, char **argv)
{
    SOCKADDR_INET Local;
    SQE Stop = { .Type = IO_SHUTDOWN };
    ULONG Size = sizeof(Path.Info);
    DWORD Code;
    LONG Seen;
    WSADATA Data;

    if (argc != 5) {
        fprintf(stderr, "usage: datapath server|client IP port connections\n");
        return 2;
    }
    Path.Server = strcmp(argv[1], "server") == 0;
    Path.Wanted = atoi(argv[4]);
    if (WSAStartup(MAKEWORD(2, 2), &Data) != 0)
        return 1;
    MUST(NdStartup());
    Path.Address.si_family = AF_INET;
    inet_pton(AF_INET, argv[2], &Path.Address.Ipv4.sin_addr);
    Local = Path.Address;
    Path.Address.Ipv4.sin_port = htons((USHORT)atoi(argv[3]));
    MUST(NdOpenAdapter(&IID_IND2Adapter, (const struct sockaddr *)&Local, sizeof(Local.Ipv4), (void **)&Path.Adapter));
    Path.Info.InfoVersion = ND_VERSION_2;
    MUST(Path.Adapter->lpVtbl->Query(Path.Adapter, &Path.Info, &Size));
    Path.Port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    if (Path.Server) {
        Path.ListenerFile = NewFile();
        MUST(Path.Adapter->lpVtbl->CreateListener(Path.Adapter, &IID_IND2Listener, Path.ListenerFile, (void **)&Path.Listener));
        MUST(Path.Listener->lpVtbl->Bind(Path.Listener, (struct sockaddr *)&Path.Address, sizeof(Path.Address.Ipv4)));
        MUST(Path.Listener->lpVtbl->Listen(Path.Listener, 16));
        Accept();
        printf("datapath: listening\n");
        fflush(stdout);
    } else {
        for (LONG i = 0; i < Path.Wanted; i++) {
            CONNECTION *C = NewConnection(FALSE);

            for (UINT64 j = 0; j < RECV_DEPTH; j++)
                Receive(C, j);
            MUST(C->Connector->lpVtbl->Bind(C->Connector, (struct sockaddr *)&Local, sizeof(Local.Ipv4)));
            Sqe(&C->Control, C, IO_CONNECT);
            Submitted(&C->Control, C->Connector->lpVtbl->Connect(C->Connector, (IUnknown *)C->Qp,
                (struct sockaddr *)&Path.Address, sizeof(Path.Address.Ipv4), 0, 0, NULL, 0, &C->Control.Overlapped), "Connect");
        }
    }
    /* Requests were started before; the worker takes over from here. */
    Path.Thread = CreateThread(NULL, 0, Worker, &Stop, 0, NULL);
    while ((Seen = Path.Closed) != Path.Wanted)
        WaitOnAddress(&Path.Closed, &Seen, sizeof(Seen), INFINITE);
    PostQueuedCompletionStatus(Path.Port, 0, 0, &Stop.Overlapped);
    if (WaitForSingleObject(Path.Thread, INFINITE) != WAIT_OBJECT_0 || !GetExitCodeThread(Path.Thread, &Code) || Code != 42)
        Die("the worker", E_FAIL);
    CloseHandle(Path.Thread);
    if (Path.Listener) {
        Path.Listener->lpVtbl->Release(Path.Listener);
        CloseHandle(Path.ListenerFile);
    }
    CloseHandle(Path.Port);
    if (Path.Adapter->lpVtbl->Release(Path.Adapter) != 0)
        Die("the adapter is still in use", E_FAIL);
    MUST(NdCleanup());
    WSACleanup();
    printf("datapath: %ld connections\n", (long)Path.Closed);
    return 0;
}
