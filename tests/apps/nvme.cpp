// In the manner of a storage initiator: C++, INITGUID, results and completion queue polled under a GetTickCount64 guard with
// SwitchToThread, VirtualAlloc for what is registered, sprintf_s for messages; commands as small Sends, data by RDMA Read
// and Write from the target.
//
//   nvme target IP port        nvme host IP port
#define INITGUID
#include <WinSock2.h>
#include <WS2tcpip.h>
#include <Windows.h>
#include <initguid.h>
#include <ndspi.h>
#include <ndsupport.h>

#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_MS   60000
#define QUEUE_DEPTH  16
#define BLOCK        8192
#define BLOCKS       32

#pragma pack(push, 1)
typedef struct _COMMAND {
    UINT8 opcode; /* 1 write, 2 read, 3 end */
    UINT8 reserved;
    UINT16 id;
    UINT32 block;
    UINT64 address;
    UINT32 length;
    UINT32 key;
} COMMAND;

typedef struct _RESPONSE {
    UINT16 id;
    UINT16 status;
    UINT32 crc;
} RESPONSE;
#pragma pack(pop)

C_ASSERT(sizeof(COMMAND) == 24);
C_ASSERT(sizeof(RESPONSE) == 8);

struct Queue {
    IND2Adapter *Adapter = nullptr;
    HANDLE File = nullptr;
    IND2CompletionQueue *Cq = nullptr;
    IND2QueuePair *Qp = nullptr;
    IND2Connector *Connector = nullptr;
    IND2Listener *Listener = nullptr;
    IND2MemoryRegion *Mr = nullptr;
    OVERLAPPED Ov = {};
    UCHAR *Memory = nullptr; /* capsules, then blocks */
};

static const SIZE_T CapsuleSize = 64;
static const SIZE_T DataOffset = 64 * 1024;
static const SIZE_T MemorySize = DataOffset + BLOCK * BLOCKS;

static void Report(const char *Where, HRESULT Status)
{
    char text[80];

    sprintf_s(text, sizeof(text), "%s: status 0x%08X", Where, (unsigned)Status);
    fprintf(stderr, "nvme: %s\n", text);
}

/* ND_PENDING is a success code: compare, do not use SUCCEEDED. */
static bool PollOverlapped(IND2Overlapped *Object, OVERLAPPED *Ov, HRESULT Status, const char *Where)
{
    ULONGLONG deadline = GetTickCount64() + TIMEOUT_MS;

    while (Status == ND_PENDING && GetTickCount64() < deadline) {
        Status = Object->GetOverlappedResult(Ov, FALSE);
        if (Status == ND_PENDING)
            SwitchToThread();
    }
    if (Status != ND_SUCCESS)
        Report(Where, Status);
    return Status == ND_SUCCESS;
}

static bool PollResult(Queue *Q, ND2_RESULT *Result)
{
    ULONGLONG deadline = GetTickCount64() + TIMEOUT_MS;

    while (Q->Cq->GetResults(Result, 1) == 0) {
        if (GetTickCount64() >= deadline) {
            Report("a completion", ND_IO_TIMEOUT);
            return false;
        }
        SwitchToThread();
    }
    return true;
}

static bool Open(Queue *Q, const sockaddr_in *Address)
{
    HRESULT status = NdOpenAdapter(IID_IND2Adapter, (const sockaddr *)Address, sizeof(*Address), (void **)&Q->Adapter);

    if (FAILED(status)) {
        Report("NdOpenAdapter", status);
        return false;
    }
    Q->Memory = (UCHAR *)VirtualAlloc(NULL, MemorySize, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    if (!Q->Memory || FAILED(status = Q->Adapter->CreateOverlappedFile(&Q->File)) ||
        FAILED(status = Q->Adapter->CreateMemoryRegion(IID_IND2MemoryRegion, Q->File, (void **)&Q->Mr)) ||
        FAILED(status = Q->Adapter->CreateCompletionQueue(IID_IND2CompletionQueue, Q->File, QUEUE_DEPTH * 3, 0, 0,
                                                          (void **)&Q->Cq)) ||
        FAILED(status = Q->Adapter->CreateQueuePair(IID_IND2QueuePair, Q->Cq, Q->Cq, Q, QUEUE_DEPTH, QUEUE_DEPTH * 2, 1, 1, 0,
                                                    (void **)&Q->Qp)) ||
        FAILED(status = Q->Adapter->CreateConnector(IID_IND2Connector, Q->File, (void **)&Q->Connector))) {
        Report("creating the queue", status);
        return false;
    }
    return PollOverlapped(Q->Mr, &Q->Ov,
                          Q->Mr->Register(Q->Memory, MemorySize,
                                          ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
                                              ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_RDMA_READ_SINK,
                                          &Q->Ov),
                          "Register");
}

static bool Close(Queue *Q)
{
    OVERLAPPED ov = {};
    bool good = PollOverlapped(Q->Connector, &Q->Ov, Q->Connector->Disconnect(&Q->Ov), "Disconnect");

    Q->Qp->Release();
    Q->Cq->Release();
    Q->Connector->Release();
    if (Q->Listener)
        Q->Listener->Release();
    good &= PollOverlapped(Q->Mr, &ov, Q->Mr->Deregister(&ov), "Deregister");
    Q->Mr->Release();
    good &= CloseHandle(Q->File) == TRUE;
    good &= Q->Adapter->Release() == 0;
    good &= VirtualFree(Q->Memory, 0, MEM_RELEASE) == TRUE;
    return good;
}

static HRESULT PostReceive(Queue *Q, ULONG Slot)
{
    ND2_SGE sge = { Q->Memory + Slot * CapsuleSize, (ULONG)CapsuleSize, Q->Mr->GetLocalToken() };

    return Q->Qp->Receive((PVOID)(ULONG_PTR)Slot, &sge, 1);
}

static HRESULT PostSend(Queue *Q, ULONG Slot, const void *Data, ULONG Length, ULONG Flags)
{
    UCHAR *from = Q->Memory + (QUEUE_DEPTH + Slot) * CapsuleSize;
    ND2_SGE sge = { from, Length, Q->Mr->GetLocalToken() };

    memcpy(from, Data, Length);
    return Q->Qp->Send(NULL, &sge, 1, Flags);
}

static UINT32 Sum(const UCHAR *Data, SIZE_T Length)
{
    UINT32 sum = 1;

    for (SIZE_T i = 0; i < Length; i++)
        sum = sum * 31 + Data[i];
    return sum;
}

static bool Target(Queue *Q, const sockaddr_in *Address)
{
    ULONG served = 0;
    HRESULT status;

    if (FAILED(status = Q->Adapter->CreateListener(IID_IND2Listener, Q->File, (void **)&Q->Listener)) ||
        FAILED(status = Q->Listener->Bind((const sockaddr *)Address, sizeof(*Address))) ||
        FAILED(status = Q->Listener->Listen(0))) {
        Report("listening", status);
        return false;
    }
    printf("nvme: listening\n");
    fflush(stdout);
    if (!PollOverlapped(Q->Listener, &Q->Ov, Q->Listener->GetConnectionRequest(Q->Connector, &Q->Ov), "GetConnectionRequest"))
        return false;
    for (ULONG i = 0; i < QUEUE_DEPTH; i++)
        if (FAILED(PostReceive(Q, i)))
            return false;
    if (!PollOverlapped(Q->Connector, &Q->Ov, Q->Connector->Accept(Q->Qp, 4, 4, NULL, 0, &Q->Ov), "Accept"))
        return false;
    for (;;) {
        COMMAND command;
        RESPONSE response = {};
        ND2_RESULT result;
        ULONG slot;

        if (!PollResult(Q, &result))
            return false;
        if (result.Status == ND_CANCELED)
            break;
        if (result.Status != ND_SUCCESS) {
            Report("a request", result.Status);
            return false;
        }
        if (result.RequestType != Nd2RequestTypeReceive)
            continue;
        slot = (ULONG)(ULONG_PTR)result.RequestContext;
        memcpy(&command, Q->Memory + slot * CapsuleSize, sizeof(command));
        ND2_SGE data = { Q->Memory + DataOffset + command.block * BLOCK, command.length, Q->Mr->GetLocalToken() };
        if (command.opcode == 1)
            status = Q->Qp->Read(&command, &data, 1, command.address, command.key, 0);
        else
            status = Q->Qp->Write(&command, &data, 1, command.address, command.key, 0);
        if (FAILED(status)) {
            Report("moving data", status);
            return false;
        }
        /* Receives may come first; they are answered in order, so they wait here: the depth is the host's limit of one. */
        if (!PollResult(Q, &result) || result.Status != ND_SUCCESS || result.RequestContext != &command) {
            Report("the data", result.Status);
            return false;
        }
        response.id = command.id;
        response.crc = Sum((UCHAR *)data.Buffer, command.length);
        if (FAILED(PostReceive(Q, slot)) || FAILED(PostSend(Q, slot, &response, sizeof(response), ND_OP_FLAG_SILENT_SUCCESS)))
            return false;
        served++;
    }
    printf("nvme: %lu commands\n", (unsigned long)served);
    return served == 2 * BLOCKS;
}

static bool Command(Queue *Q, UINT8 Opcode, UINT32 Block, UINT32 Expected)
{
    UCHAR *data = Q->Memory + DataOffset + Block * BLOCK;
    COMMAND command = { Opcode, 0, (UINT16)Block, Block, (UINT64)(ULONG_PTR)data, BLOCK, Q->Mr->GetRemoteToken() };
    const RESPONSE *response;
    ND2_RESULT result;

    if (FAILED(PostReceive(Q, 0)) || FAILED(PostSend(Q, 0, &command, sizeof(command), ND_OP_FLAG_SILENT_SUCCESS)))
        return false;
    if (!PollResult(Q, &result) || result.Status != ND_SUCCESS || result.RequestType != Nd2RequestTypeReceive)
        return false;
    response = (const RESPONSE *)Q->Memory;
    return response->id == Block && response->status == 0 && response->crc == Expected;
}

static bool Host(Queue *Q, const sockaddr_in *Local, const sockaddr_in *Address)
{
    HRESULT status = Q->Connector->Bind((const sockaddr *)Local, sizeof(*Local));

    if (FAILED(status)) {
        Report("Bind", status);
        return false;
    }
    if (!PollOverlapped(Q->Connector, &Q->Ov,
                        Q->Connector->Connect(Q->Qp, (const sockaddr *)Address, sizeof(*Address), 4, 4, NULL, 0, &Q->Ov),
                        "Connect") ||
        !PollOverlapped(Q->Connector, &Q->Ov, Q->Connector->CompleteConnect(&Q->Ov), "CompleteConnect"))
        return false;
    for (UINT32 block = 0; block < BLOCKS; block++) {
        UCHAR *data = Q->Memory + DataOffset + block * BLOCK;

        for (ULONG i = 0; i < BLOCK; i++)
            data[i] = (UCHAR)(i * 5 + block);
        if (!Command(Q, 1, block, Sum(data, BLOCK)))
            return false;
    }
    for (UINT32 block = 0; block < BLOCKS; block++) {
        UCHAR *data = Q->Memory + DataOffset + block * BLOCK;
        UINT32 sum = Sum(data, BLOCK);

        SecureZeroMemory(data, BLOCK);
        if (!Command(Q, 2, block, sum) || Sum(data, BLOCK) != sum)
            return false;
    }
    printf("nvme: %d blocks there and back\n", BLOCKS);
    return true;
}

int main(int argc, char *argv[])
{
    sockaddr_in address = {}, local;
    Queue queue;
    WSADATA wsa;
    bool good;

    if (argc != 4) {
        printf("usage: nvme target|host IP port\n");
        return 2;
    }
    if (WSAStartup(MAKEWORD(2, 2), &wsa) != 0 || FAILED(NdStartup()))
        return 1;
    address.sin_family = AF_INET;
    inet_pton(AF_INET, argv[2], &address.sin_addr);
    local = address;
    address.sin_port = htons((USHORT)atoi(argv[3]));
    if (!Open(&queue, &local))
        return 1;
    good = _stricmp(argv[1], "target") == 0 ? Target(&queue, &address) : Host(&queue, &local, &address);
    good &= Close(&queue);
    NdCleanup();
    WSACleanup();
    return good ? 0 : 1;
}
