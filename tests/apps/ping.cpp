// In the manner of the Network Direct sample programs: C++, UNICODE, _tmain, one OVERLAPPED and one auto-reset event for
// everything, blocking results. Call sequence: ndspi-v2.md 13, "ndping".
//
//   ping -s IP[:port]        ping -c IP[:port] [-l bytes] [-n count] [-b]
#include <ndsupport.h>
#include <ws2tcpip.h>
#include <stdio.h>
#include <tchar.h>
#include <process.h>

#define PING_PORT      54321
#define MAX_XFER       (64 * 1024)
#define RECV_DEPTH     32

#define EXIT_USAGE     2
#define REQUEST_RECV   ((void *)0x11)
#define REQUEST_SEND   ((void *)0x22)

static void Fail(const char *what, HRESULT hr)
{
    printf("ping: %s failed with %08x\n", what, hr);
    exit(__LINE__ % 100 + 10);
}

class PingBase
{
public:
    PingBase(bool blocking) : m_blocking(blocking)
    {
        m_Ov.hEvent = CreateEvent(nullptr, FALSE, FALSE, nullptr);
        if (m_Ov.hEvent == nullptr)
        {
            Fail("CreateEvent", HRESULT_FROM_WIN32(GetLastError()));
        }
    }

    // Disconnect and Deregister one after the other on the same OVERLAPPED, without waiting; then everything goes.
    ~PingBase()
    {
        if (m_pConnector != nullptr)
        {
            m_pConnector->Disconnect(&m_Ov);
        }
        if (m_pMr != nullptr)
        {
            m_pMr->Deregister(&m_Ov);
            m_pMr->Release();
        }
        if (m_pCq != nullptr)
        {
            m_pCq->Release();
        }
        if (m_pQp != nullptr)
        {
            m_pQp->Release();
        }
        if (m_pConnector != nullptr)
        {
            m_pConnector->Release();
        }
        if (m_hAdapterFile != nullptr)
        {
            CloseHandle(m_hAdapterFile);
        }
        if (m_pAdapter != nullptr)
        {
            m_pAdapter->Release();
        }
        CloseHandle(m_Ov.hEvent);
        if (m_Buf != nullptr)
        {
            HeapFree(GetProcessHeap(), 0, m_Buf);
        }
    }

protected:
    void Open(_In_ const struct sockaddr_in &v4)
    {
        HRESULT hr = NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const struct sockaddr *>(&v4), sizeof(v4),
                                   reinterpret_cast<void **>(&m_pAdapter));
        if (FAILED(hr))
        {
            Fail("NdOpenAdapter", hr);
        }
        hr = m_pAdapter->CreateOverlappedFile(&m_hAdapterFile);
        if (FAILED(hr))
        {
            Fail("CreateOverlappedFile", hr);
        }
        m_Buf = static_cast<char *>(HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 2 * MAX_XFER));
        if (m_Buf == nullptr)
        {
            Fail("HeapAlloc", E_OUTOFMEMORY);
        }
        hr = m_pAdapter->CreateMemoryRegion(IID_IND2MemoryRegion, m_hAdapterFile, reinterpret_cast<VOID **>(&m_pMr));
        if (FAILED(hr))
        {
            Fail("CreateMemoryRegion", hr);
        }
        Finish("Register", m_pMr,
               m_pMr->Register(m_Buf, 2 * MAX_XFER, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &m_Ov));

        ULONG size = sizeof(m_info);
        m_info.InfoVersion = ND_VERSION_2;
        hr = m_pAdapter->Query(&m_info, &size);
        if (FAILED(hr))
        {
            Fail("Query", hr);
        }
        m_depth = min(m_info.MaxReceiveQueueDepth, RECV_DEPTH);
        hr = m_pAdapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_hAdapterFile, 2 * m_depth, 0, 0,
                                               reinterpret_cast<VOID **>(&m_pCq));
        if (FAILED(hr))
        {
            Fail("CreateCompletionQueue", hr);
        }
        hr = m_pAdapter->CreateConnector(IID_IND2Connector, m_hAdapterFile, reinterpret_cast<VOID **>(&m_pConnector));
        if (FAILED(hr))
        {
            Fail("CreateConnector", hr);
        }
        hr = m_pAdapter->CreateQueuePair(IID_IND2QueuePair, m_pCq, m_pCq, nullptr, m_depth, m_depth, 1, 1,
                                         m_info.InlineRequestThreshold, reinterpret_cast<VOID **>(&m_pQp));
        if (FAILED(hr))
        {
            Fail("CreateQueuePair", hr);
        }
    }

    // Every overlapped call ends in here.
    void Finish(const char *what, IND2Overlapped *object, HRESULT hr)
    {
        if (hr == ND_PENDING)
        {
            hr = object->GetOverlappedResult(&m_Ov, TRUE);
        }
        if (FAILED(hr))
        {
            Fail(what, hr);
        }
    }

    void Receive()
    {
        ND2_SGE sge = { m_Buf, MAX_XFER, m_pMr->GetLocalToken() };
        HRESULT hr = m_pQp->Receive(REQUEST_RECV, &sge, 1);
        if (FAILED(hr))
        {
            Fail("Receive", hr);
        }
    }

    void Send(ULONG bytes)
    {
        ND2_SGE sge = { m_Buf + MAX_XFER, bytes, m_pMr->GetLocalToken() };
        ULONG flags = bytes < m_info.InlineRequestThreshold ? ND_OP_FLAG_INLINE : 0;
        HRESULT hr = m_pQp->Send(REQUEST_SEND, bytes == 0 ? nullptr : &sge, bytes == 0 ? 0 : 1, flags);
        if (FAILED(hr))
        {
            Fail("Send", hr);
        }
    }

    // One result; sleeps for it when asked to.
    void Next(ND2_RESULT &result)
    {
        while (m_pCq->GetResults(&result, 1) == 0)
        {
            if (m_blocking)
            {
                Finish("Notify", m_pCq, m_pCq->Notify(ND_CQ_NOTIFY_ANY, &m_Ov));
            }
        }
    }

    bool m_blocking;
    OVERLAPPED m_Ov = {};
    IND2Adapter *m_pAdapter = nullptr;
    HANDLE m_hAdapterFile = nullptr;
    IND2MemoryRegion *m_pMr = nullptr;
    IND2CompletionQueue *m_pCq = nullptr;
    IND2QueuePair *m_pQp = nullptr;
    IND2Connector *m_pConnector = nullptr;
    ND2_ADAPTER_INFO m_info = {};
    ULONG m_depth = 0;
    char *m_Buf = nullptr;
};

class PingServer : public PingBase
{
public:
    PingServer() : PingBase(true)
    {
    }

    ~PingServer()
    {
        if (m_pListener != nullptr)
        {
            m_pListener->Release();
        }
    }

    void Run(const struct sockaddr_in &v4)
    {
        ND2_RESULT result;
        ULONGLONG bytes = 0;
        ULONG messages = 0;

        Open(v4);
        HRESULT hr = m_pAdapter->CreateListener(IID_IND2Listener, m_hAdapterFile, reinterpret_cast<VOID **>(&m_pListener));
        if (FAILED(hr))
        {
            Fail("CreateListener", hr);
        }
        hr = m_pListener->Bind(reinterpret_cast<const sockaddr *>(&v4), sizeof(v4));
        if (FAILED(hr))
        {
            Fail("Bind", hr);
        }
        hr = m_pListener->Listen(0);
        if (FAILED(hr))
        {
            Fail("Listen", hr);
        }
        wprintf(L"ping: waiting for a client\n");
        fflush(stdout);
        Finish("GetConnectionRequest", m_pListener, m_pListener->GetConnectionRequest(m_pConnector, &m_Ov));
        for (ULONG i = 0; i < m_depth; i++)
        {
            Receive();
        }
        Finish("Accept", m_pConnector, m_pConnector->Accept(m_pQp, 0, 0, &m_depth, sizeof(m_depth), &m_Ov));

        for (;;)
        {
            Next(result);
            if (result.Status == ND_CANCELED)
            {
                break;
            }
            if (result.Status != ND_SUCCESS)
            {
                Fail("a request", result.Status);
            }
            if (result.RequestType == Nd2RequestTypeReceive)
            {
                memcpy(m_Buf + MAX_XFER, m_Buf, result.BytesTransferred);
                Receive();
                Send(result.BytesTransferred);
                bytes += result.BytesTransferred;
                messages++;
            }
        }
        printf("%9Id messages, %I64d bytes\n", static_cast<SIZE_T>(messages), bytes);
    }

private:
    IND2Listener *m_pListener = nullptr;
};

class PingClient : public PingBase
{
public:
    PingClient(bool blocking) : PingBase(blocking)
    {
    }

    void Run(const struct sockaddr_in &v4Src, const struct sockaddr_in &v4Dst, ULONG bytes, ULONG count)
    {
        LARGE_INTEGER start, end, frequency;
        ULONG peerDepth = 0, size = 0;
        ND2_RESULT result;

        Open(v4Src);
        HRESULT hr = m_pConnector->Bind(reinterpret_cast<const sockaddr *>(&v4Src), sizeof(v4Src));
        if (FAILED(hr))
        {
            Fail("Bind", hr);
        }
        Finish("Connect", m_pConnector,
               m_pConnector->Connect(m_pQp, reinterpret_cast<const sockaddr *>(&v4Dst), sizeof(v4Dst), 0, 0, nullptr, 0,
                                     &m_Ov));
        hr = m_pConnector->GetPrivateData(nullptr, &size);
        if (hr != ND_BUFFER_OVERFLOW || size < sizeof(peerDepth))
        {
            Fail("GetPrivateData", hr);
        }
        size = sizeof(peerDepth);
        hr = m_pConnector->GetPrivateData(&peerDepth, &size);
        if ((FAILED(hr) && hr != ND_BUFFER_OVERFLOW) || peerDepth == 0)
        {
            Fail("GetPrivateData", hr);
        }
        Finish("CompleteConnect", m_pConnector, m_pConnector->CompleteConnect(&m_Ov));
        Receive();
        Receive();

        QueryPerformanceFrequency(&frequency);
        QueryPerformanceCounter(&start);
        for (ULONG i = 0; i < count; i++)
        {
            bool sent = false, received = false;

            for (ULONG j = 0; j < bytes; j++)
            {
                m_Buf[MAX_XFER + j] = static_cast<char>(i + j);
            }
            Send(bytes);
            while (!sent || !received)
            {
                Next(result);
                if (result.Status != ND_SUCCESS)
                {
                    Fail("a request", result.Status);
                }
                (result.RequestContext == REQUEST_SEND ? sent : received) = true;
            }
            if (memcmp(m_Buf, m_Buf + MAX_XFER, bytes) != 0)
            {
                Fail("comparing", E_FAIL);
            }
            Receive();
        }
        QueryPerformanceCounter(&end);
        wprintf(L"%-8s %u bytes, %u times, %I64d us each\n", L"ping", bytes, count,
                (end.QuadPart - start.QuadPart) * 1000000 / frequency.QuadPart / (count * 2));
    }
};

static int Usage(const TCHAR *name)
{
    _tprintf(_T("%s -s IP[:port] | -c IP[:port] [-l bytes] [-n count] [-b]\n"), name);
    return EXIT_USAGE;
}

int __cdecl _tmain(int argc, TCHAR *argv[])
{
    struct sockaddr_in v4 = {}, v4Src = {};
    bool server = false, client = false, blocking = false;
    ULONG bytes = 1024, count = 20;
    WSADATA wsaData;

    if (WSAStartup(MAKEWORD(2, 2), &wsaData) != 0)
    {
        return 1;
    }
    for (int i = 1; i < argc; i++)
    {
        TCHAR *arg = argv[i];

        if ((_tcscmp(arg, _T("-s")) == 0 || _tcscmp(arg, _T("-c")) == 0) && i + 1 < argc)
        {
            INT len = sizeof(v4);

            (arg[1] == _T('s') ? server : client) = true;
            if (WSAStringToAddress(argv[++i], AF_INET, nullptr, reinterpret_cast<struct sockaddr *>(&v4), &len) != 0)
            {
                return Usage(argv[0]);
            }
        }
        else if (_tcscmp(arg, _T("-l")) == 0 && i + 1 < argc)
        {
            bytes = min(static_cast<ULONG>(_ttol(argv[++i])), MAX_XFER);
        }
        else if (_tcscmp(arg, _T("-n")) == 0 && i + 1 < argc)
        {
            count = static_cast<ULONG>(_ttol(argv[++i]));
        }
        else if (_tcsicmp(arg, _T("-B")) == 0)
        {
            blocking = true;
        }
        else
        {
            return Usage(argv[0]);
        }
    }
    if (server == client)
    {
        return Usage(argv[0]);
    }
    if (v4.sin_port == 0)
    {
        v4.sin_port = htons(PING_PORT);
    }

    HRESULT hr = NdStartup();
    if (FAILED(hr))
    {
        Fail("NdStartup", hr);
    }
    if (server)
    {
        PingServer ping;
        ping.Run(v4);
    }
    else
    {
        SIZE_T len = sizeof(v4Src);
        hr = NdResolveAddress(reinterpret_cast<const struct sockaddr *>(&v4), sizeof(v4),
                              reinterpret_cast<struct sockaddr *>(&v4Src), &len);
        if (FAILED(hr))
        {
            Fail("NdResolveAddress", hr);
        }
        PingClient ping(blocking);
        ping.Run(v4Src, v4, bytes, count);
    }
    hr = NdCleanup();
    if (FAILED(hr))
    {
        Fail("NdCleanup", hr);
    }
    _fcloseall();
    WSACleanup();
    return 0;
}
