// Notification and cancellation on completion queues, as the sample unit test of completion queues checks it: two queues on
// one completion port, several notifications each, cancelled in both orders; every packet must be there when the cancel has
// returned, in order. Call sequence: ndspi.md 2.5, ndspi-v2.md 13 "ndcq". One process, no peer.
//
//   notify IP
#include <ndsupport.h>
#include <tchar.h>
#include <stdio.h>

#define CHECK(hr, what) CheckResult((hr), (what), __LINE__)

static void CheckResult(HRESULT hr, const TCHAR *what, int line)
{
    if (hr != ND_SUCCESS)
    {
        wprintf(L"line %d: %s: %08x\n", line, what, hr);
        exit(line);
    }
}

static void Expect(bool condition, int line)
{
    if (!condition)
    {
        printf("line %d: not as expected, last error %u\n", line, GetLastError());
        exit(line);
    }
}
#define EXPECT(condition) Expect((condition), __LINE__)

class Queues
{
public:
    explicit Queues(const struct sockaddr_in &address)
    {
        CHECK(NdOpenAdapter(IID_IND2Adapter, (const struct sockaddr *)&address, sizeof(address), (void **)&m_pAdapter),
              L"NdOpenAdapter");
        CHECK(m_pAdapter->CreateOverlappedFile(&m_hOv), L"CreateOverlappedFile");
        m_hIocp = CreateIoCompletionPort(m_hOv, NULL, (ULONG_PTR)this, 0);
        EXPECT(m_hIocp != NULL);
        for (int i = 0; i < 2; i++)
        {
            CHECK(m_pAdapter->CreateCompletionQueue(IID_IND2CompletionQueue, m_hOv, 16, 0, 0, (void **)&m_pCq[i]),
                  L"CreateCompletionQueue");
        }
    }

    ~Queues()
    {
        EXPECT(m_pCq[0]->Release() == 0);
        EXPECT(m_pCq[1]->Release() == 0);
        EXPECT(CloseHandle(m_hOv));
        EXPECT(CloseHandle(m_hIocp));
        EXPECT(m_pAdapter->Release() == 0);
    }

    void Start(int queue, int request, ULONG type)
    {
        EXPECT(m_pCq[queue]->Notify(type, &m_Ov[queue][request]) == ND_PENDING);
        EXPECT(m_pCq[queue]->GetOverlappedResult(&m_Ov[queue][request], FALSE) == ND_PENDING);
    }

    // The packet must be there by now: the time-out is zero.
    void Cancelled(int queue, int request)
    {
        OVERLAPPED *pOv = (OVERLAPPED *)~(ULONG_PTR)0;
        ULONG_PTR key = 0;
        DWORD bytes = 99;

        EXPECT(GetQueuedCompletionStatus(m_hIocp, &bytes, &key, &pOv, 0) == FALSE);
        EXPECT(pOv == &m_Ov[queue][request]);
        EXPECT(GetLastError() == ERROR_OPERATION_ABORTED);
        EXPECT(key == (ULONG_PTR)this);
        EXPECT(m_pCq[queue]->GetOverlappedResult(pOv, FALSE) == ND_CANCELED);
        EXPECT(m_pCq[queue]->GetOverlappedResult(pOv, TRUE) == ND_CANCELED);
    }

    void Cancel(int queue)
    {
        CHECK(m_pCq[queue]->CancelOverlappedRequests(), L"CancelOverlappedRequests");
    }

    void Empty()
    {
        OVERLAPPED *pOv = (OVERLAPPED *)~(ULONG_PTR)0;
        ULONG_PTR key;
        DWORD bytes;

        EXPECT(GetQueuedCompletionStatus(m_hIocp, &bytes, &key, &pOv, 0) == FALSE);
        EXPECT(pOv == NULL && GetLastError() == WAIT_TIMEOUT);
    }

private:
    IND2Adapter *m_pAdapter = nullptr;
    HANDLE m_hOv = nullptr, m_hIocp = nullptr;
    IND2CompletionQueue *m_pCq[2] = {};
    OVERLAPPED m_Ov[2][3] = {};
};

static void Run(const struct sockaddr_in &address)
{
    Queues q(address);

    // Nothing pending: still a success, and no packet.
    q.Cancel(0);
    q.Empty();

    // Per queue in the order of Notify.
    q.Start(0, 0, ND_CQ_NOTIFY_ERRORS);
    q.Start(0, 1, ND_CQ_NOTIFY_ANY);
    q.Start(0, 2, ND_CQ_NOTIFY_SOLICITED);
    q.Cancel(0);
    q.Cancelled(0, 0);
    q.Cancelled(0, 1);
    q.Cancelled(0, 2);
    q.Empty();

    // Over queues in the order of the cancels, whatever the order of the notifications was.
    for (int first = 0; first < 2; first++)
    {
        q.Start(0, 0, ND_CQ_NOTIFY_ANY);
        q.Start(1, 0, ND_CQ_NOTIFY_ANY);
        q.Start(0, 1, ND_CQ_NOTIFY_ANY);
        q.Start(1, 1, ND_CQ_NOTIFY_ANY);
        q.Cancel(first);
        q.Cancel(1 - first);
        q.Cancelled(first, 0);
        q.Cancelled(first, 1);
        q.Cancelled(1 - first, 0);
        q.Cancelled(1 - first, 1);
        q.Empty();
    }

    // And again with the same OVERLAPPEDs, often.
    for (int i = 0; i < 10000; i++)
    {
        q.Start(i % 2, 0, ND_CQ_NOTIFY_ANY);
        q.Cancel(i % 2);
        q.Cancelled(i % 2, 0);
    }
    q.Empty();
    _tprintf(_T("%I64u packets in order\n"), (UINT64)10000 + 3 + 8);
}

int _tmain(int argc, TCHAR *argv[])
{
    struct sockaddr_in address = {};
    INT length = sizeof(address);
    WSADATA data;

    if (argc != 2 || WSAStartup(MAKEWORD(2, 2), &data) != 0 ||
        WSAStringToAddress(argv[1], AF_INET, NULL, (struct sockaddr *)&address, &length) == SOCKET_ERROR)
    {
        wprintf(L"usage: %s IP\n", argv[0]);
        return 1;
    }
    CHECK(NdStartup(), L"NdStartup");
    Run(address);
    CHECK(NdCleanup(), L"NdCleanup");
    WSACleanup();
    return 0;
}
