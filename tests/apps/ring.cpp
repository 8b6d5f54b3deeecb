// In the manner of the RDMA read/write sample: C++, UNICODE, _tmain, a memory window bound by the server to a part of its
// region and invalidated at the end, the window's token sent in the first message, the client Writes into it and Reads it
// back. Call sequence: ndspi-v2.md 13 "ndrping": a receive is posted before Listen; Accept, then CreateMemoryWindow, Bind
// and poll.
//
//   ring -s IP port        ring -c IP port
#include <ndsupport.h>
#include <ws2tcpip.h>
#include <tchar.h>
#include <stdio.h>
#include <stdlib.h>

const SIZE_T x_WindowOffset = 4096;
const SIZE_T x_WindowSize = 32 * 1024;
const SIZE_T x_MemorySize = 64 * 1024;
const ULONG x_Rounds = 10;

struct PeerInfo
{
    UINT64 remoteAddress;
    UINT32 remoteToken;
    UINT32 length;
};

static void LogIfError(HRESULT hr, HRESULT expected, const TCHAR *what, int line)
{
    if (hr != expected)
    {
        wprintf(L"ring: %s: expected 0x%08x, got 0x%08x (line %d)\n", what, expected, hr, line);
        exit(line % 200 + 1);
    }
}
#define EXPECT(call, expected) LogIfError((call), (expected), _T(#call), __LINE__)

class NdTest
{
public:
    explicit NdTest(const struct sockaddr_in &local)
    {
        ULONG size = sizeof(m_info);

        memset(&m_Ov, 0, sizeof(m_Ov));
        m_Ov.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
        EXPECT(NdOpenAdapter(IID_IND2Adapter, (const struct sockaddr *)&local, sizeof(local), (void **)&m_pAdapter), ND_SUCCESS);
        m_info.InfoVersion = ND_VERSION_2;
        EXPECT(m_pAdapter->Query(&m_info, &size), ND_SUCCESS);
        EXPECT(m_pAdapter->CreateOverlappedFile(&m_hFile), ND_SUCCESS);
        m_pMemory = (char *)HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, x_MemorySize);
        EXPECT(m_pAdapter->CreateMemoryRegion(IID_IND2MemoryRegion, m_hFile, (VOID **)&m_pMr), ND_SUCCESS);
        Wait(m_pMr, m_pMr->Register(m_pMemory, x_MemorySize,
                                    ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE |
                                        ND_MR_FLAG_RDMA_READ_SINK,
                                    &m_Ov));
        EXPECT(m_pAdapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_hFile, 32, 0, 0, (VOID **)&m_pCq), ND_SUCCESS);
        EXPECT(m_pAdapter->CreateQueuePair(IID_IND2QueuePair, m_pCq, m_pCq, NULL, 8, 8, 2, 1, 0, (VOID **)&m_pQp), ND_SUCCESS);
        EXPECT(m_pAdapter->CreateConnector(IID_IND2Connector, m_hFile, (VOID **)&m_pConnector), ND_SUCCESS);
    }

    ~NdTest()
    {
        m_pConnector->Disconnect(&m_Ov);
        m_pMr->Deregister(&m_Ov);
        m_pMr->Release();
        if (m_pMw != nullptr)
        {
            m_pMw->Release();
        }
        m_pCq->Release();
        m_pQp->Release();
        m_pConnector->Release();
        if (m_pListen != nullptr)
        {
            m_pListen->Release();
        }
        CloseHandle(m_hFile);
        m_pAdapter->Release();
        CloseHandle(m_Ov.hEvent);
        HeapFree(GetProcessHeap(), 0, m_pMemory);
    }

    void Serve(const struct sockaddr_in &address)
    {
        PostReceive(0);
        EXPECT(m_pAdapter->CreateListener(IID_IND2Listener, m_hFile, (VOID **)&m_pListen), ND_SUCCESS);
        EXPECT(m_pListen->Bind((const struct sockaddr *)&address, sizeof(address)), ND_SUCCESS);
        EXPECT(m_pListen->Listen(0), ND_SUCCESS);
        _tprintf(_T("ring: listening\n"));
        fflush(stdout);
        Wait(m_pListen, m_pListen->GetConnectionRequest(m_pConnector, &m_Ov));
        Wait(m_pConnector, m_pConnector->Accept(m_pQp, m_info.MaxInboundReadLimit, 0, NULL, 0, &m_Ov));

        EXPECT(m_pAdapter->CreateMemoryWindow(IID_IND2MemoryWindow, (VOID **)&m_pMw), ND_SUCCESS);
        EXPECT(m_pQp->Bind((void *)1, m_pMr, m_pMw, m_pMemory + x_WindowOffset, x_WindowSize,
                           ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE),
               ND_SUCCESS);
        Result((void *)1, Nd2RequestTypeBind, ND_SUCCESS);

        PeerInfo info = { (UINT64)(ULONG_PTR)(m_pMemory + x_WindowOffset), m_pMw->GetRemoteToken(), (UINT32)x_WindowSize };
        memcpy(m_pMemory, &info, sizeof(info));
        Send(0, sizeof(info));
        Result(m_pMemory, Nd2RequestTypeSend, ND_SUCCESS);
        // The client says when it is through.
        Result(m_pMemory, Nd2RequestTypeReceive, ND_SUCCESS);
        for (SIZE_T i = 0; i < x_WindowSize; i++)
        {
            EXPECT(m_pMemory[x_WindowOffset + i] == (char)(i * 3 + x_Rounds - 1) ? ND_SUCCESS : E_FAIL, ND_SUCCESS);
        }
        // Deregistering under a bound window is refused; behind the invalidation it is not.
        EXPECT(m_pMr->Deregister(&m_Ov), ND_DEVICE_BUSY);
        EXPECT(m_pQp->Invalidate((void *)2, m_pMw, 0), ND_SUCCESS);
        Result((void *)2, Nd2RequestTypeInvalidate, ND_SUCCESS);
        PostReceive(0);
        // What the client writes then ends the connection, perhaps before the acknowledgement of this message is in.
        Send(0, 1);
        Wait(m_pConnector, m_pConnector->NotifyDisconnect(&m_Ov));
    }

    void Dial(const struct sockaddr_in &local, const struct sockaddr_in &address)
    {
        EXPECT(m_pConnector->Bind((const struct sockaddr *)&local, sizeof(local)), ND_SUCCESS);
        PostReceive(0);
        Wait(m_pConnector, m_pConnector->Connect(m_pQp, (const struct sockaddr *)&address, sizeof(address), 0,
                                                 m_info.MaxOutboundReadLimit, NULL, 0, &m_Ov));
        Wait(m_pConnector, m_pConnector->CompleteConnect(&m_Ov));
        Result(m_pMemory, Nd2RequestTypeReceive, ND_SUCCESS);
        PeerInfo info;
        memcpy(&info, m_pMemory, sizeof(info));
        for (ULONG round = 0; round < x_Rounds; round++)
        {
            ND2_SGE out = { m_pMemory + 4096, info.length / 2, m_pMr->GetLocalToken() };
            ND2_SGE in = { m_pMemory, info.length / 2, m_pMr->GetLocalToken() };

            for (ULONG half = 0; half < 2; half++)
            {
                const SIZE_T offset = half * info.length / 2;

                for (SIZE_T i = 0; i < info.length / 2; i++)
                {
                    m_pMemory[4096 + i] = (char)((offset + i) * 3 + round);
                }
                EXPECT(m_pQp->Write((void *)3, &out, 1, info.remoteAddress + offset, info.remoteToken, 0), ND_SUCCESS);
                Result((void *)3, Nd2RequestTypeWrite, ND_SUCCESS);
                in.Buffer = m_pMemory + 32 * 1024;
                EXPECT(m_pQp->Read((void *)4, &in, 1, info.remoteAddress + offset, info.remoteToken, ND_OP_FLAG_READ_FENCE),
                       ND_SUCCESS);
                Result((void *)4, Nd2RequestTypeRead, ND_SUCCESS);
                EXPECT(memcmp(in.Buffer, out.Buffer, info.length / 2) == 0 ? ND_SUCCESS : E_FAIL, ND_SUCCESS);
            }
        }
        PostReceive(0);
        Send(0, 1);
        Result(m_pMemory, Nd2RequestTypeSend, ND_SUCCESS);
        Result(m_pMemory, Nd2RequestTypeReceive, ND_SUCCESS);
        // The window is gone.
        ND2_SGE out = { m_pMemory, 16, m_pMr->GetLocalToken() };
        EXPECT(m_pQp->Write((void *)5, &out, 1, info.remoteAddress, info.remoteToken, 0), ND_SUCCESS);
        Result((void *)5, Nd2RequestTypeWrite, ND_ACCESS_VIOLATION);
        _tprintf(_T("ring: %u rounds of %Iu bytes\n"), x_Rounds, x_WindowSize);
    }

private:
    void Wait(IND2Overlapped *pObject, HRESULT hr)
    {
        if (hr == ND_PENDING)
        {
            hr = pObject->GetOverlappedResult(&m_Ov, TRUE);
        }
        EXPECT(hr, ND_SUCCESS);
    }

    void PostReceive(SIZE_T offset)
    {
        // Two entries: the second takes what does not fit the first.
        ND2_SGE sgl[2] = { { m_pMemory + offset, 8, m_pMr->GetLocalToken() },
                           { m_pMemory + offset + 8, 56, m_pMr->GetLocalToken() } };
        EXPECT(m_pQp->Receive(m_pMemory + offset, sgl, 2), ND_SUCCESS);
    }

    void Send(SIZE_T offset, SIZE_T length)
    {
        ND2_SGE sge = { m_pMemory + offset, (ULONG)length, m_pMr->GetLocalToken() };
        EXPECT(m_pQp->Send(m_pMemory + offset, &sge, 1, 0), ND_SUCCESS);
    }

    // The next result of that type; others of the time before are kept in mind.
    void Result(void *context, ND2_REQUEST_TYPE type, HRESULT expected)
    {
        for (;;)
        {
            if (m_kept && m_keptResult.RequestType == type)
            {
                m_kept = false;
                EXPECT(m_keptResult.Status, expected);
                return;
            }
            ND2_RESULT result;
            if (m_pCq->GetResults(&result, 1) == 0)
            {
                Wait(m_pCq, m_pCq->Notify(ND_CQ_NOTIFY_ANY, &m_Ov));
                continue;
            }
            if (result.RequestType != type)
            {
                m_keptResult = result;
                m_kept = true;
                continue;
            }
            EXPECT(result.Status, expected);
            EXPECT(result.RequestContext == context ? ND_SUCCESS : E_FAIL, ND_SUCCESS);
            return;
        }
    }

    OVERLAPPED m_Ov;
    ND2_ADAPTER_INFO m_info = {};
    IND2Adapter *m_pAdapter = nullptr;
    HANDLE m_hFile = NULL;
    char *m_pMemory = nullptr;
    IND2MemoryRegion *m_pMr = nullptr;
    IND2MemoryWindow *m_pMw = nullptr;
    IND2CompletionQueue *m_pCq = nullptr;
    IND2QueuePair *m_pQp = nullptr;
    IND2Connector *m_pConnector = nullptr;
    IND2Listener *m_pListen = nullptr;
    bool m_kept = false;
    ND2_RESULT m_keptResult;
};

int __cdecl _tmain(int argc, TCHAR *argv[])
{
    struct sockaddr_in address = {}, local;
    INT length = sizeof(address);
    WSADATA wsaData;

    if (argc != 4 || ::WSAStartup(MAKEWORD(2, 2), &wsaData) != 0 ||
        WSAStringToAddress(argv[2], AF_INET, NULL, (struct sockaddr *)&address, &length) != 0)
    {
        wprintf(L"usage: %s -s|-c IP port\n", argv[0]);
        return 2;
    }
    local = address;
    address.sin_port = htons((USHORT)_ttol(argv[3]));
    EXPECT(NdStartup(), ND_SUCCESS);
    {
        NdTest test(local);

        if (wcscmp(argv[1], L"-s") == 0)
        {
            test.Serve(address);
        }
        else
        {
            test.Dial(local, address);
        }
    }
    EXPECT(NdCleanup(), ND_SUCCESS);
    WSACleanup();
    return 0;
}
