// Both ranks connect to each other at the same time; the higher rank rejects the connection that comes in and drops its own
// attempt when the lower rank's wins. Completion port, requests tagged with the low bit of hEvent, Reject, release of a
// connection whose Connect is pending, Disconnect from both ends after four messages.
// Call sequence: ndspi-v2.md 13 "ndmpic".
//
//   cross rank IP port0 port1 rounds          (rank 0 or 1; each listens on its own port)
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <stdio.h>

const ULONG c_messages = 4;
const ULONG c_bytes = 512;

enum class Kind { Listen, Connect, Complete, Accept, Disconnect, Notify };

struct Operation : OVERLAPPED
{
    Operation(Kind k, struct Link *l) : OVERLAPPED(), kind(k), link(l) {}
    Kind kind;
    struct Link *link;
};

struct Link
{
    Link() = default;
    IND2Connector *connector = nullptr;
    IND2QueuePair *qp = nullptr;
};

class Rank
{
public:
    Rank(int rank, sockaddr_in own, sockaddr_in peer) : m_rank(rank), m_own(own), m_peer(peer)
    {
        ULONG size = sizeof(m_info);

        Need(NdOpenAdapter(IID_IND2Adapter, (sockaddr *)&m_own, sizeof(m_own), (void **)&m_adapter), "NdOpenAdapter");
        m_info.InfoVersion = ND_VERSION_2;
        Need(m_adapter->Query(&m_info, &size), "Query");
        Need(m_adapter->CreateOverlappedFile(&m_file), "CreateOverlappedFile");
        m_port = CreateIoCompletionPort(m_file, NULL, 0, 0);
        m_event.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
        // Registration reports by its event alone.
        m_event.hEvent = (HANDLE)((SIZE_T)m_event.hEvent | 0x1);
        Need(m_adapter->CreateMemoryRegion(IID_IND2MemoryRegion, m_file, (void **)&m_region), "CreateMemoryRegion");
        Wait(m_region, m_region->Register(m_buffer, sizeof(m_buffer), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &m_event));
        Need(m_adapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_file, 64, 0, 0, (void **)&m_queue), "queue");
        Need(m_adapter->CreateListener(IID_IND2Listener, m_file, (void **)&m_listener), "CreateListener");
        Need(m_listener->Bind((sockaddr *)&m_own, sizeof(m_own)), "Bind");
        Need(m_listener->Listen(4), "Listen");
    }

    ~Rank()
    {
        m_region->Deregister(&m_event);
        m_region->Release();
        m_queue->Release();
        m_listener->Release();
        CloseHandle(m_file);
        m_adapter->Release();
        CloseHandle(m_event.hEvent); // with the low bit still set
        CloseHandle(m_port);
    }

    // One connection between the two, whichever attempt makes it.
    void Round()
    {
        Link *out = NewLink(), *in = NewLink(), *won = nullptr;
        Operation listen(Kind::Listen, in), connect(Kind::Connect, out);
        Operation accept(Kind::Accept, in), complete(Kind::Complete, out);
        bool listening = true, connecting = true, accepted = false;
        Operation *op;
        HRESULT hr;

        MustPend(m_listener->GetConnectionRequest(in->connector, &listen), "GetConnectionRequest");
        StartConnect(out, connect);
        while (!won)
        {
            hr = Next(op);
            switch (op->kind)
            {
            case Kind::Listen:
                Need(hr, "GetConnectionRequest");
                listening = false;
                if (m_rank == 1)
                {
                    // Our own attempt loses: it goes while it is pending, and the lower rank's request is taken.
                    PostReceives(in->qp);
                    MustPend(in->connector->Accept(in->qp, 0, 0, &m_rank, sizeof(m_rank), &accept), "Accept");
                    if (connecting)
                    {
                        out->connector->CancelOverlappedRequests();
                    }
                    while (!accepted || connecting)
                    {
                        hr = Next(op);
                        accepted |= op == &accept;
                        connecting &= op != &connect;
                    }
                    Need(in->connector->GetOverlappedResult(&accept, FALSE), "Accept");
                    won = in;
                    break;
                }
                // The lower rank refuses: its own attempt is to win.
                hr = in->connector->Reject(&m_rank, sizeof(m_rank));
                if (hr != ND_SUCCESS && hr != ND_CONNECTION_ABORTED) // the other side may have given up by itself
                {
                    Die("Reject", hr);
                }
                FreeLink(in);
                in = NewLink();
                MustPend(m_listener->GetConnectionRequest(in->connector, &listen), "GetConnectionRequest");
                listening = true;
                break;

            case Kind::Connect:
                connecting = false;
                hr = out->connector->GetOverlappedResult(&connect, FALSE);
                if (hr == ND_SUCCESS)
                {
                    if (m_rank == 1)
                    {
                        Die("the higher rank's attempt won", hr);
                    }
                    PostReceives(out->qp);
                    MustPend(out->connector->CompleteConnect(&complete), "CompleteConnect");
                    do
                    {
                        hr = Next(op);
                        if (op == &listen && SUCCEEDED(hr))
                        {
                            in->connector->Reject(nullptr, 0);
                            FreeLink(in);
                            in = NewLink();
                            listening = false;
                        }
                    } while (op != &complete);
                    Need(hr, "CompleteConnect");
                    won = out;
                }
                else if (m_rank == 1)
                {
                    // Refused, as it should be; the lower rank's request comes.
                    if (hr != ND_CONNECTION_REFUSED && hr != ND_CANCELED)
                    {
                        Die("Connect", hr);
                    }
                }
                else
                {
                    // The peer does not listen yet.
                    if (hr != ND_CONNECTION_REFUSED)
                    {
                        Die("Connect", hr);
                    }
                    Sleep(10);
                    StartConnect(out, connect);
                    connecting = true;
                }
                break;

            default:
                Die("an operation that was not asked for", hr);
            }
        }
        if (listening)
        {
            m_listener->CancelOverlappedRequests();
            do
            {
                hr = Next(op);
            } while (op != &listen);
            if (SUCCEEDED(hr))
            {
                in->connector->Reject(nullptr, 0); // it came in between
            }
        }
        Talk(won);
        Hangup(won);
        FreeLink(in);
        FreeLink(out);
    }

private:
    static void Die(const char *what, HRESULT hr)
    {
        printf("cross: %s: %08x\n", what, (unsigned)hr);
        exit(4);
    }
    static void Need(HRESULT hr, const char *what)
    {
        if (hr != ND_SUCCESS)
            Die(what, hr);
    }
    static void MustPend(HRESULT hr, const char *what)
    {
        if (hr != ND_PENDING)
            Die(what, hr);
    }
    void Wait(IND2Overlapped *object, HRESULT hr)
    {
        if (hr == ND_PENDING)
            hr = object->GetOverlappedResult(&m_event, TRUE);
        Need(hr, "waiting");
    }

    HRESULT Next(Operation *&op)
    {
        OVERLAPPED *ov;
        ULONG_PTR key;
        DWORD bytes;
        BOOL good = GetQueuedCompletionStatus(m_port, &bytes, &key, &ov, INFINITE);

        if (!ov)
            Die("GetQueuedCompletionStatus", HRESULT_FROM_WIN32(GetLastError()));
        op = static_cast<Operation *>(ov);
        return good ? ND_SUCCESS : (HRESULT)ov->Internal;
    }

    Link *NewLink()
    {
        Link *link = new Link;

        Need(m_adapter->CreateConnector(IID_IND2Connector, m_file, (void **)&link->connector), "CreateConnector");
        Need(m_adapter->CreateQueuePair(IID_IND2QueuePair, m_queue, m_queue, link, c_messages, c_messages, 1, 1, 0,
                                        (void **)&link->qp),
             "CreateQueuePair");
        return link;
    }

    static void FreeLink(Link *link)
    {
        link->connector->Release();
        link->qp->Release();
        delete link;
    }

    void StartConnect(Link *link, Operation &op)
    {
        sockaddr_in any = m_own;

        any.sin_port = 0;
        HRESULT hr = link->connector->Bind((sockaddr *)&any, sizeof(any));
        if (hr != ND_SUCCESS && hr != (HRESULT)0xC0000238) // bound since the last time
            Die("Bind", hr);
        MustPend(link->connector->Connect(link->qp, (sockaddr *)&m_peer, sizeof(m_peer), 0, 0, &m_rank, sizeof(m_rank), &op),
                 "Connect");
    }

    void PostReceives(IND2QueuePair *qp)
    {
        for (ULONG i = 0; i < c_messages; i++)
        {
            ND2_SGE sge = { m_buffer + i * c_bytes, c_bytes, m_region->GetLocalToken() };
            Need(qp->Receive((void *)(SIZE_T)i, &sge, 1), "Receive");
        }
    }

    void Talk(Link *link)
    {
        ULONG sent = 0, received = 0;

        for (ULONG i = 0; i < c_messages; i++)
        {
            char *from = m_buffer + (c_messages + i) * c_bytes;
            ND2_SGE sge = { from, c_bytes, m_region->GetLocalToken() };

            memset(from, (int)(m_rank * 16 + i + 1), c_bytes);
            Need(link->qp->Send((void *)(SIZE_T)i, &sge, 1, 0), "Send");
        }
        while (sent < c_messages || received < c_messages)
        {
            ND2_RESULT results[8];
            ULONG n = m_queue->GetResults(results, 8);

            for (ULONG i = 0; i < n; i++)
            {
                if (results[i].QueuePairContext != link)
                    continue; // flushed from an attempt that lost
                Need(results[i].Status, "a message");
                if (results[i].RequestType == Nd2RequestTypeSend)
                {
                    sent++;
                    continue;
                }
                const char *to = m_buffer + received * c_bytes;
                if (to[0] != (char)((1 - m_rank) * 16 + received + 1) || memcmp(to, to + 1, c_bytes - 1) != 0)
                    Die("wrong bytes", E_FAIL);
                received++;
            }
            if (n == 0)
                SwitchToThread();
        }
    }

    // Both ends do it.
    void Hangup(Link *link)
    {
        Operation disconnect(Kind::Disconnect, link), *op;

        MustPend(link->connector->Disconnect(&disconnect), "Disconnect");
        do
            Next(op);
        while (op != &disconnect);
        Need(link->connector->GetOverlappedResult(&disconnect, FALSE), "Disconnect");
        ND2_RESULT left[16];
        while (m_queue->GetResults(left, 16) != 0)
        {
        }
    }

    int m_rank;
    sockaddr_in m_own, m_peer;
    ND2_ADAPTER_INFO m_info = {};
    IND2Adapter *m_adapter = nullptr;
    HANDLE m_file = nullptr, m_port = nullptr;
    IND2MemoryRegion *m_region = nullptr;
    IND2CompletionQueue *m_queue = nullptr;
    IND2Listener *m_listener = nullptr;
    OVERLAPPED m_event = {};
    char m_buffer[2 * c_messages * c_bytes] = {};
};

int __cdecl main(int argc, char **argv)
{
    sockaddr_in address[2] = {};
    WSADATA data;

    if (argc != 6)
    {
        printf("usage: cross rank IP port0 port1 rounds\n");
        return 2;
    }
    int rank = atoi(argv[1]) != 0;
    WSAStartup(MAKEWORD(2, 2), &data);
    for (int i = 0; i < 2; i++)
    {
        INT length = sizeof(address[i]);

        if (WSAStringToAddressA(argv[2], AF_INET, NULL, (sockaddr *)&address[i], &length) != 0)
        {
            printf("cross: %s: error %d\n", argv[2], WSAGetLastError());
            return 2;
        }
        address[i].sin_port = htons((USHORT)atoi(argv[3 + i]));
    }
    if (NdStartup() != ND_SUCCESS)
    {
        return 1;
    }
    {
        Rank self(rank, address[rank], address[1 - rank]);

        printf("cross: rank %d is ready\n", rank);
        fflush(stdout);
        for (int i = 0; i < atoi(argv[5]); i++)
        {
            self.Round();
        }
    }
    NdCleanup();
    WSACleanup();
    printf("cross: rank %d is done\n", rank);
    return 0;
}
