// A connection storm on a completion port with a pool of threads: C++, OVERLAPPED as a base class with a virtual handler,
// one-shot connectors, GetConnectionRequest re-armed with a new connector each time, NotifyDisconnect posted when Accept
// has completed. Call sequence: ndspi-v2.md 13, "ndconn".
//
//   conn server IP port count        conn client IP port count
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace
{
const DWORD cThreads = 2;

IND2Adapter *g_pAdapter;
IND2CompletionQueue *g_pCq;
HANDLE g_hFile, g_hIocp, g_hDone;
volatile long g_nDone, g_nFailed;
long g_nTotal;

void Die(const char *what, HRESULT hr)
{
    std::printf("conn: %s: %#x\n", what, static_cast<unsigned>(hr));
    std::exit(3);
}

void Check(const char *what, HRESULT hr)
{
    if (FAILED(hr))
        Die(what, hr);
}

class Request : public OVERLAPPED
{
public:
    Request()
    {
        memset(static_cast<OVERLAPPED *>(this), 0, sizeof(OVERLAPPED));
    }
    virtual void Done(HRESULT hr) = 0;

protected:
    virtual ~Request() {}
};

void OneDone(bool good)
{
    if (!good)
        InterlockedIncrement(&g_nFailed);
    if (InterlockedIncrement(&g_nDone) == g_nTotal)
        SetEvent(g_hDone);
}

// A connection: a state machine that the pool's threads step through. A reference for each pending request.
class Connection
{
public:
    Connection() : m_connect(this), m_notify(this), m_disconnect(this)
    {
        Check("CreateConnector",
              g_pAdapter->CreateConnector(IID_IND2Connector, g_hFile, reinterpret_cast<void **>(&m_pConnector)));
        Check("CreateQueuePair",
              g_pAdapter->CreateQueuePair(IID_IND2QueuePair, g_pCq, g_pCq, this, 1, 1, 1, 1, 0,
                                          reinterpret_cast<void **>(&m_pQp)));
    }

    void Arm(IND2Listener *pListener);

    void Connect(const SOCKADDR_IN &from, const SOCKADDR_IN &to)
    {
        m_fActive = true;
        Check("Bind", m_pConnector->Bind(reinterpret_cast<const sockaddr *>(&from), sizeof(from)));
        InterlockedIncrement(&m_nRefs);
        Check("Connect", m_pConnector->Connect(m_pQp, reinterpret_cast<const sockaddr *>(&to), sizeof(to), 0, 0, nullptr, 0,
                                               &m_connect));
    }

private:
    enum Step { Requested, Accepted, Connecting, Completing };

    struct Stepper : public Request
    {
        explicit Stepper(Connection *p) : m_p(p) {}
        void Done(HRESULT hr) override { m_p->OnStep(hr); }
        Connection *m_p;
    };
    struct Notifier : public Request
    {
        explicit Notifier(Connection *p) : m_p(p) {}
        void Done(HRESULT hr) override { m_p->OnNotify(hr); }
        Connection *m_p;
    };
    struct Disconnecter : public Request
    {
        explicit Disconnecter(Connection *p) : m_p(p) {}
        void Done(HRESULT hr) override { m_p->OnDisconnected(hr); }
        Connection *m_p;
    };

    void OnStep(HRESULT hr)
    {
        if (FAILED(hr))
            Die(m_fActive ? "Connect" : "Accept", hr);
        if (m_fActive)
        {
            if (m_step != Completing)
            {
                m_step = Completing;
                hr = m_pConnector->CompleteConnect(&m_connect);
                if (hr == ND_PENDING)
                    return;
                Check("CompleteConnect", hr);
            }
            Watch();
            // The active side is the one that hangs up.
            Hangup();
        }
        else if (m_step == Requested)
        {
            if (m_pListener)
                (new Connection())->Arm(m_pListener);
            m_step = Accepted;
            hr = m_pConnector->Accept(m_pQp, 0, 0, nullptr, 0, &m_connect);
            if (hr != ND_PENDING)
                Die("Accept", hr);
            return;
        }
        else
        {
            Watch();
        }
        Drop();
    }

    void Watch()
    {
        InterlockedIncrement(&m_nRefs);
        HRESULT hr = m_pConnector->NotifyDisconnect(&m_notify);
        if (hr != ND_PENDING)
        {
            // The peer was faster.
            m_fBad = hr != ND_CONNECTION_INVALID && hr != ND_SUCCESS;
            Hangup();
            Drop();
        }
    }

    void Hangup()
    {
        if (InterlockedExchange(&m_nHangups, 1) != 0)
            return;
        InterlockedIncrement(&m_nRefs);
        HRESULT hr = m_pConnector->Disconnect(&m_disconnect);
        if (hr != ND_PENDING)
        {
            m_fBad = true;
            Drop();
        }
    }

    void OnNotify(HRESULT hr)
    {
        if (FAILED(hr) && hr != ND_CANCELED)
            m_fBad = true;
        Hangup(); // both ends disconnect
        Drop();
    }

    void OnDisconnected(HRESULT hr)
    {
        if (FAILED(hr))
            m_fBad = true;
        // Whatever the notification did, it has an end now.
        m_pConnector->CancelOverlappedRequests();
        Drop();
    }

    void Drop()
    {
        if (InterlockedDecrement(&m_nRefs) != 0)
            return;
        // Not all OVERLAPPEDs were waited for by their event: there is none. All have a result.
        if (m_pConnector->GetOverlappedResult(&m_connect, TRUE) != ND_SUCCESS)
            m_fBad = true;
        m_pQp->Release();
        m_pConnector->Release();
        OneDone(!m_fBad);
        delete this;
    }

    IND2Connector *m_pConnector = nullptr;
    IND2QueuePair *m_pQp = nullptr;
    IND2Listener *m_pListener = nullptr;
    Step m_step = Requested;
    bool m_fActive = false, m_fBad = false;
    volatile LONG m_nRefs = 0, m_nHangups = 0;
    Stepper m_connect;
    Notifier m_notify;
    Disconnecter m_disconnect;

    static volatile LONG s_nArmed;
};

volatile LONG Connection::s_nArmed;

void Connection::Arm(IND2Listener *pListener)
{
    if (InterlockedIncrement(&s_nArmed) > g_nTotal)
    {
        m_pQp->Release();
        m_pConnector->Release();
        delete this;
        return;
    }
    m_pListener = pListener;
    InterlockedIncrement(&m_nRefs);
    HRESULT hr = pListener->GetConnectionRequest(m_pConnector, &m_connect);
    if (hr != ND_PENDING)
        Die("GetConnectionRequest", hr);
}

class Pool
{
public:
    static DWORD WINAPI Thread(LPVOID)
    {
        for (;;)
        {
            DWORD bytes;
            ULONG_PTR key;
            OVERLAPPED *pOv = nullptr;
            BOOL fSuccess = GetQueuedCompletionStatus(g_hIocp, &bytes, &key, &pOv, INFINITE);

            if (pOv == nullptr)
            {
                if (fSuccess == TRUE)
                    return 0; // the signal to end
                Die("GetQueuedCompletionStatus", HRESULT_FROM_WIN32(GetLastError()));
            }
            static_cast<Request *>(pOv)->Done(fSuccess ? ND_SUCCESS : static_cast<HRESULT>(pOv->Internal));
        }
    }
};
} // namespace

int main(int argc, char *argv[])
{
    SOCKADDR_IN to = {}, from = {};
    INT length = sizeof(to);
    WSADATA data;

    if (argc != 5 || (strcmp(argv[1], "server") != 0 && strcmp(argv[1], "client") != 0))
    {
        std::printf("usage: conn server|client IP port count\n");
        return 2;
    }
    bool server = _stricmp(argv[1], "SERVER") == 0;
    if (::WSAStartup(MAKEWORD(2, 2), &data) != 0 ||
        ::WSAStringToAddressA(argv[2], AF_INET, nullptr, reinterpret_cast<sockaddr *>(&to), &length) != 0)
        Die("address", HRESULT_FROM_WIN32(WSAGetLastError()));
    to.sin_port = htons(static_cast<USHORT>(atoi(argv[3])));
    g_nTotal = atol(argv[4]);

    Check("NdStartup", NdStartup());
    SIZE_T fromLength = sizeof(from);
    if (server)
        from = to;
    else
        Check("NdResolveAddress", NdResolveAddress(reinterpret_cast<sockaddr *>(&to), sizeof(to),
                                                   reinterpret_cast<sockaddr *>(&from), &fromLength));
    Check("NdOpenAdapter", NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<sockaddr *>(&from), sizeof(from),
                                         reinterpret_cast<void **>(&g_pAdapter)));
    Check("CreateOverlappedFile", g_pAdapter->CreateOverlappedFile(&g_hFile));
    Check("CreateCompletionQueue", g_pAdapter->CreateCompletionQueue(IID_IND2CompletionQueue, g_hFile, 64, 0, 0,
                                                                     reinterpret_cast<void **>(&g_pCq)));
    g_hDone = CreateEvent(nullptr, TRUE, FALSE, nullptr);

    // Make a port and bind the file in one call.
    g_hIocp = CreateIoCompletionPort(g_hFile, nullptr, 0, cThreads);
    if (g_hIocp == nullptr || g_hDone == nullptr)
        Die("CreateIoCompletionPort", HRESULT_FROM_WIN32(GetLastError()));

    HANDLE threads[cThreads];
    for (DWORD i = 0; i < cThreads; i++)
        threads[i] = CreateThread(nullptr, 0, Pool::Thread, nullptr, 0, nullptr);

    IND2Listener *pListener = nullptr;
    if (server)
    {
        Check("CreateListener",
              g_pAdapter->CreateListener(IID_IND2Listener, g_hFile, reinterpret_cast<void **>(&pListener)));
        Check("Bind", pListener->Bind(reinterpret_cast<sockaddr *>(&to), sizeof(to)));
        Check("Listen", pListener->Listen(0));
        (new Connection())->Arm(pListener);
        (new Connection())->Arm(pListener);
        std::printf("conn: listening for %ld connections\n", g_nTotal);
        std::fflush(stdout);
    }
    else
    {
        for (long i = 0; i < g_nTotal; i++)
            (new Connection())->Connect(from, to);
    }
    WaitForSingleObject(g_hDone, INFINITE);

    for (DWORD i = 0; i < cThreads; i++)
        PostQueuedCompletionStatus(g_hIocp, 0, 0, nullptr);
    for (DWORD i = 0; i < cThreads; i++)
    {
        WaitForSingleObject(threads[i], INFINITE);
        CloseHandle(threads[i]);
    }
    if (pListener)
        pListener->Release();
    g_pCq->Release();
    CloseHandle(g_hFile);
    CloseHandle(g_hIocp);
    g_pAdapter->Release();
    CloseHandle(g_hDone);
    Check("NdCleanup", NdCleanup());
    std::printf("conn: %ld done, %ld failed\n", static_cast<long>(g_nDone), static_cast<long>(g_nFailed));
    WSACleanup();
    return g_nFailed == 0 ? 0 : 1;
}
