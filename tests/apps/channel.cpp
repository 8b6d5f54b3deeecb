// In the manner of an MPI channel: C++, a completion "set" on one port whose keys select a processor, OVERLAPPED as base
// class, one completion queue for all queue pairs, Notify then poll, registration by the event with the low bit set,
// packets of its own posted with a result written into Internal. Call sequence: ndspi-v2.md 13 "MS-MPI v2".
//
//   channel listen IP peers          prints the port it got;   channel join IP port peers
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ntstatus.h>
#include <stdio.h>
#include <memory>
#include <new>
#include <vector>

#define EX_KEY_CONNECT 1
#define EX_KEY_PROGRESS 2

static const ULONG kSends = 16, kReads = 16, kReceives = 128;
static const ULONG kEager = 1024;
static const UINT32 kMagic = 0x4d504931;

struct Overlapped : public OVERLAPPED
{
    typedef HRESULT (*Routine)(class Channel *channel, Overlapped *self);

    explicit Overlapped(Routine routine) : m_routine(routine)
    {
        Internal = InternalHigh = 0;
        Pointer = nullptr;
        hEvent = nullptr;
    }
    Routine m_routine;
};

static HRESULT Fatal(const char *where, HRESULT hr)
{
    fprintf(stderr, "channel: %s: 0x%08x\n", where, static_cast<unsigned>(hr));
    exit(5);
    return hr;
}

#define TRY(expression)                                \
    do                                                 \
    {                                                  \
        HRESULT hr_ = (expression);                    \
        if (FAILED(hr_))                               \
            Fatal(#expression, hr_);                   \
    } while (0)

struct Hello
{
    UINT32 magic;
    UINT32 rank;
    UINT64 base;
    UINT32 token;
};

class Channel;

struct Peer
{
    static HRESULT OnConnected(Channel *channel, Overlapped *ov);
    static HRESULT OnDisconnected(Channel *channel, Overlapped *ov);

    Peer() : connect(OnConnected), disconnect(OnDisconnected) {}

    IND2Connector *connector = nullptr;
    IND2QueuePair *qp = nullptr;
    Overlapped connect, disconnect;
    bool active = false, completing = false, read = false, released = false, leaving = false;
    ULONG received = 0;
    UINT8 *into = nullptr; // where the Read puts the peer's window
    Hello hello = {};
};

class Channel
{
public:
    Channel(const SOCKADDR_INET &local, ULONG peers) : m_peers(peers), m_notify(OnNotify), m_request(OnRequest)
    {
        ULONG size = sizeof(m_info);

        // All file operations report here; the processor of a packet is selected by its key.
        m_port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, static_cast<DWORD>(-1));
        TRY(NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const struct sockaddr *>(&local), sizeof(local.Ipv4),
                          reinterpret_cast<void **>(&m_adapter)));
        m_info.InfoVersion = ND_VERSION_2;
        TRY(m_adapter->Query(&m_info, &size));
        if (m_info.MaxCompletionQueueDepth < kSends + kReads + kReceives || m_info.MaxInitiatorQueueDepth < kSends + kReads ||
            m_info.MaxReceiveQueueDepth < kReceives)
            Fatal("the adapter is too small", E_FAIL);
        TRY(m_adapter->CreateOverlappedFile(&m_file));
        if (CreateIoCompletionPort(m_file, m_port, EX_KEY_CONNECT, 0) != m_port)
            Fatal("attaching to the set", HRESULT_FROM_WIN32(GetLastError()));

        TRY(m_adapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_file,
                                             min((kSends + kReads + kReceives) * peers, m_info.MaxCompletionQueueDepth), 0, 0,
                                             reinterpret_cast<void **>(&m_queue)));
        m_private = Register(m_pool, sizeof(m_pool), ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_DO_NOT_SECURE_VM);
        m_user = Register(m_window, sizeof(m_window),
                          ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_RDMA_READ_SINK);
        for (ULONG i = 0; i < sizeof(m_window); i++)
            m_window[i] = static_cast<UINT8>(i * 7);
    }

    ~Channel()
    {
        // Abandons what is left: Flush, Cancel, then the memory goes without a look at the port.
        for (auto &peer : m_list)
        {
            peer->qp->Flush();
            peer->connector->CancelOverlappedRequests();
            peer->qp->Release();
            peer->connector->Release();
        }
        m_queue->CancelOverlappedRequests();
        if (m_listener)
        {
            m_listener->CancelOverlappedRequests();
            m_listener->Release();
        }
        Unregister(m_private);
        Unregister(m_user);
        m_queue->Release();
        CloseHandle(m_file);
        m_adapter->Release();
        CloseHandle(m_port);
    }

    void Listen(SOCKADDR_INET local)
    {
        ULONG size = sizeof(m_address);

        TRY(m_adapter->CreateListener(IID_IND2Listener, m_file, reinterpret_cast<void **>(&m_listener)));
        TRY(m_listener->Bind(reinterpret_cast<struct sockaddr *>(&local), sizeof(local.Ipv4)));
        TRY(m_listener->GetLocalAddress(reinterpret_cast<struct sockaddr *>(&m_address), &size));
        TRY(m_listener->Listen(0));
        Arm();
    }

    void Connect(const SOCKADDR_INET &local, const SOCKADDR_INET &to)
    {
        Peer *peer = AddPeer();
        const Hello hello = { kMagic, static_cast<UINT32>(m_list.size()), reinterpret_cast<UINT64>(m_window),
                              m_user->GetRemoteToken() };

        peer->active = true;
        TRY(peer->connector->Bind(reinterpret_cast<const struct sockaddr *>(&local), sizeof(local.Ipv4)));
        HRESULT hr = peer->connector->Connect(peer->qp, reinterpret_cast<const struct sockaddr *>(&to), sizeof(to.Ipv4),
                                              min(16u, m_info.MaxInboundReadLimit), min(16u, m_info.MaxOutboundReadLimit),
                                              &hello, sizeof(hello), &peer->connect);
        Later(hr, peer->connect);
    }

    // Runs the set until all peers have said and read everything and are gone.
    void Run()
    {
        for (;;)
        {
            OVERLAPPED *ov = nullptr;
            ULONG_PTR key = 0;
            DWORD bytes = 0;
            bool fSuccess = GetQueuedCompletionStatus(m_port, &bytes, &key, &ov, INFINITE);

            if (ov == nullptr && !fSuccess)
                Fatal("GetQueuedCompletionStatus", HRESULT_FROM_WIN32(GetLastError()));
            if (key != EX_KEY_CONNECT && key != EX_KEY_PROGRESS)
                Fatal("key", E_UNEXPECTED);
            Overlapped *op = static_cast<Overlapped *>(ov);
            TRY(op->m_routine(this, op));
            if (m_gone == m_peers)
                return;
        }
    }

    USHORT Port() const
    {
        return ntohs(m_address.Ipv4.sin_port);
    }

    static HRESULT OnRequest(Channel *self, Overlapped *ov)
    {
        Peer *peer = self->m_next;
        Hello mine = { kMagic, 0, reinterpret_cast<UINT64>(self->m_window), self->m_user->GetRemoteToken() };
        ULONG size = sizeof(peer->hello);

        TRY(self->m_listener->GetOverlappedResult(ov, FALSE));
        HRESULT hr = peer->connector->GetPrivateData(&peer->hello, &size);
        if ((FAILED(hr) && hr != ND_BUFFER_OVERFLOW) || peer->hello.magic != kMagic)
            return Fatal("the private data of a peer", hr);
        self->PostReceives(peer);
        self->Later(peer->connector->Accept(peer->qp, min(16u, self->m_info.MaxInboundReadLimit),
                                            min(16u, self->m_info.MaxOutboundReadLimit), &mine, sizeof(mine), &peer->connect),
                    peer->connect);
        if (self->m_list.size() < self->m_peers)
            self->Arm();
        return S_OK;
    }

    static HRESULT OnNotify(Channel *self, Overlapped *ov)
    {
        TRY(self->m_queue->GetOverlappedResult(ov, FALSE));
        self->m_armed = false;
        self->Poll();
        return S_OK;
    }

    void Connected(Peer *peer)
    {
        HRESULT hr = peer->connector->GetOverlappedResult(&peer->connect, FALSE);
        ULONG inbound = 0, outbound = 0;

        if (FAILED(hr))
            Fatal("a connection", hr);
        if (peer->active && !peer->completing)
        {
            ULONG size = sizeof(peer->hello);

            hr = peer->connector->GetPrivateData(&peer->hello, &size);
            if ((FAILED(hr) && hr != ND_BUFFER_OVERFLOW) || peer->hello.magic != kMagic)
                Fatal("the private data of the listener", hr);
            PostReceives(peer);
            peer->completing = true;
            Later(peer->connector->CompleteConnect(&peer->connect), peer->connect);
            return;
        }
        TRY(peer->connector->GetReadLimits(&inbound, &outbound));
        if (outbound == 0)
            Fatal("read limits", E_FAIL);
        for (ULONG i = 0; i < kSends; i++)
        {
            ND2_SGE sge = { m_pool, kEager, m_private->GetLocalToken() };
            TRY(peer->qp->Send(peer, &sge, 1, i % 4 ? ND_OP_FLAG_SILENT_SUCCESS : 0));
        }
        peer->into = m_pool + kEager * (1 + m_reads++ % 8);
        ND2_SGE into = { peer->into, kEager, m_private->GetLocalToken() };
        TRY(peer->qp->Read(peer, &into, 1, peer->hello.base + 4096, peer->hello.token, 0));
        Poll();
    }

    void Disconnected(Peer *peer)
    {
        TRY(peer->connector->GetOverlappedResult(&peer->disconnect, TRUE));
        m_gone++;
    }

private:
    IND2MemoryRegion *Register(void *base, SIZE_T size, ULONG flags)
    {
        IND2MemoryRegion *region;
        OVERLAPPED ov = {};

        TRY(m_adapter->CreateMemoryRegion(IID_IND2MemoryRegion, m_file, reinterpret_cast<void **>(&region)));
        HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
        ov.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event) | 1); // keeps it off the set
        HRESULT hr = region->Register(base, size, flags, &ov);
        if (hr == ND_PENDING)
            hr = region->GetOverlappedResult(&ov, TRUE);
        TRY(hr);
        CloseHandle(ov.hEvent);
        return region;
    }

    void Unregister(IND2MemoryRegion *region)
    {
        OVERLAPPED ov = {};

        ov.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(CreateEvent(nullptr, FALSE, FALSE, nullptr)) | 1);
        if (region->Deregister(&ov) == ND_PENDING)
            region->GetOverlappedResult(&ov, TRUE);
        region->Release();
        CloseHandle(ov.hEvent);
    }

    Peer *AddPeer()
    {
        m_list.push_back(std::unique_ptr<Peer>(new Peer));
        Peer *peer = m_list.back().get();

        TRY(m_adapter->CreateConnector(IID_IND2Connector, m_file, reinterpret_cast<void **>(&peer->connector)));
        TRY(m_adapter->CreateQueuePair(IID_IND2QueuePair, m_queue, m_queue, peer, kReceives, kSends + kReads, 1, 1,
                                       m_info.InlineRequestThreshold, reinterpret_cast<void **>(&peer->qp)));
        return peer;
    }

    void Arm()
    {
        m_next = AddPeer();
        // Always pending.
        if (m_listener->GetConnectionRequest(m_next->connector, &m_request) != ND_PENDING)
            Fatal("GetConnectionRequest", E_UNEXPECTED);
    }

    // A result that is known at once takes the same way as one that comes later.
    void Later(HRESULT hr, Overlapped &ov)
    {
        if (hr == ND_PENDING)
            return;
        ov.Internal = static_cast<ULONG_PTR>(static_cast<UINT32>(hr));
        ov.InternalHigh = 0;
        PostQueuedCompletionStatus(m_port, 0, EX_KEY_PROGRESS, &ov);
    }

    void PostReceives(Peer *peer)
    {
        for (ULONG i = 0; i < kSends + 4; i++)
        {
            ND2_SGE sge = { m_pool + 16 * kEager + (i % 16) * kEager, kEager, m_private->GetLocalToken() };
            TRY(peer->qp->Receive(peer, &sge, 1));
        }
    }

    // Notify first, then poll: a result that comes in between is not missed.
    void Poll()
    {
        ND2_RESULT results[16];
        ULONG count;

        if (!m_armed)
        {
            HRESULT hr = m_queue->Notify(ND_CQ_NOTIFY_ANY, &m_notify);
            if (FAILED(hr))
                Fatal("Notify", hr);
            m_armed = true;
        }
        while ((count = m_queue->GetResults(results, 16)) != 0)
        {
            for (ULONG i = 0; i < count; i++)
                Result(results[i]);
        }
    }

    void Result(const ND2_RESULT &result)
    {
        Peer *peer = static_cast<Peer *>(result.QueuePairContext);

        if (result.Status == ND_CANCELED)
            return;
        if (result.Status != ND_SUCCESS)
            Fatal("a request", result.Status);
        switch (result.RequestType)
        {
        case Nd2RequestTypeReceive:
            if (result.BytesTransferred == kEager)
                peer->received++;
            else if (result.BytesTransferred == 0)
                peer->released = true; // the peer has all it wants
            break;
        case Nd2RequestTypeRead:
            for (ULONG i = 0; i < kEager; i++)
                if (peer->into[i] != static_cast<UINT8>((4096 + i) * 7))
                    Fatal("the bytes that were read", E_FAIL);
            peer->read = true;
            TRY(peer->qp->Send(peer, nullptr, 0, 0)); // nothing more to read from you
            break;
        default:
            break;
        }
        if (peer->received == kSends && peer->read && peer->released && !peer->leaving)
        {
            peer->leaving = true;
            Later(peer->connector->Disconnect(&peer->disconnect), peer->disconnect);
        }
    }

    ULONG m_peers, m_gone = 0, m_reads = 0;
    bool m_armed = false;
    HANDLE m_port = nullptr, m_file = nullptr;
    IND2Adapter *m_adapter = nullptr;
    IND2CompletionQueue *m_queue = nullptr;
    IND2Listener *m_listener = nullptr;
    IND2MemoryRegion *m_private = nullptr, *m_user = nullptr;
    ND2_ADAPTER_INFO m_info = {};
    SOCKADDR_INET m_address = {};
    Overlapped m_notify, m_request;
    Peer *m_next = nullptr;
    std::vector<std::unique_ptr<Peer>> m_list;
    UINT8 m_pool[kEager * 32] = {};
    UINT8 m_window[64 * 1024];
};

HRESULT Peer::OnConnected(Channel *channel, Overlapped *ov)
{
    channel->Connected(CONTAINING_RECORD(ov, Peer, connect));
    return S_OK;
}

HRESULT Peer::OnDisconnected(Channel *channel, Overlapped *ov)
{
    channel->Disconnected(CONTAINING_RECORD(ov, Peer, disconnect));
    return S_OK;
}

int main(int argc, char *argv[])
{
    SOCKADDR_INET local = {}, remote = {};
    SIZE_T size = sizeof(local);
    INT length = sizeof(remote);
    WSADATA data;

    if (!(argc == 4 && strcmp(argv[1], "listen") == 0) && !(argc == 5 && strcmp(argv[1], "join") == 0))
    {
        printf("usage: channel listen IP peers | channel join IP port peers\n");
        return 2;
    }
    WSAStartup(MAKEWORD(2, 2), &data);
    if (WSAStringToAddressA(argv[2], AF_INET, nullptr, reinterpret_cast<struct sockaddr *>(&remote), &length) != 0)
        return Fatal(argv[2], HRESULT_FROM_WIN32(WSAGetLastError()));
    TRY(NdStartup());
    if (argc == 4)
    {
        std::unique_ptr<Channel> channel(new Channel(remote, atoi(argv[3])));

        channel->Listen(remote);
        printf("channel: port %u\n", channel->Port());
        fflush(stdout);
        channel->Run();
    }
    else
    {
        remote.Ipv4.sin_port = htons(static_cast<USHORT>(atoi(argv[3])));
        TRY(NdResolveAddress(reinterpret_cast<struct sockaddr *>(&remote), sizeof(remote.Ipv4),
                             reinterpret_cast<struct sockaddr *>(&local), &size));
        std::unique_ptr<Channel> channel(new Channel(local, atoi(argv[4])));

        for (int i = 0; i < atoi(argv[4]); i++)
            channel->Connect(local, remote);
        channel->Run();
    }
    TRY(NdCleanup());
    WSACleanup();
    printf("channel: done\n");
    return 0;
}
