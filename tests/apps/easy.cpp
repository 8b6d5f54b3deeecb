// In the manner of a session library with its own threads: C++, std::thread, an alertable WaitForSingleObjectEx on the
// event followed by the blocking result, _aligned_malloc buffers, a CQ thread that sleeps in Notify, cancellation to end it.
//
//   easy listen IP port        easy connect IP port
#include <winsock2.h>
#include <ws2tcpip.h>
#include <malloc.h>
#include <ndspi.h>
#include <ndsupport.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace easyrdma
{

class RdmaException : public std::runtime_error
{
public:
    RdmaException(const char *where, HRESULT hr) : std::runtime_error(where), status(hr) {}
    const HRESULT status;
};

#define HandleHR(expression)                      \
    do {                                          \
        HRESULT _hr = (expression);               \
        if (FAILED(_hr)) {                        \
            throw RdmaException(#expression, _hr); \
        }                                         \
    } while (0)

class AutoRef
{
public:
    ~AutoRef()
    {
        if (unknown) {
            unknown->Release();
        }
    }
    IUnknown *unknown = nullptr;
};

template <typename T> class RefPtr : private AutoRef
{
public:
    void **Out()
    {
        return reinterpret_cast<void **>(&unknown);
    }
    T *operator->() const
    {
        return static_cast<T *>(unknown);
    }
    operator T *() const
    {
        return static_cast<T *>(unknown);
    }
};

class OverlappedWait
{
public:
    OverlappedWait()
    {
        overlapped.hEvent = CreateEventW(nullptr, FALSE, FALSE, nullptr);
        if (!overlapped.hEvent) {
            throw RdmaException("CreateEvent", HRESULT_FROM_WIN32(GetLastError()));
        }
    }
    ~OverlappedWait()
    {
        CloseHandle(overlapped.hEvent);
    }
    HRESULT Wait(IND2Overlapped *object, DWORD timeoutMs)
    {
        DWORD result = WaitForSingleObjectEx(overlapped.hEvent, timeoutMs, TRUE);
        if (result == WAIT_TIMEOUT) {
            return ND_TIMEOUT;
        }
        if (result != WAIT_OBJECT_0) {
            throw RdmaException("WaitForSingleObjectEx", HRESULT_FROM_WIN32(GetLastError()));
        }
        return object->GetOverlappedResult(&overlapped, TRUE);
    }
    HRESULT Finish(IND2Overlapped *object, HRESULT hr)
    {
        while (hr == ND_PENDING || hr == ND_TIMEOUT) {
            hr = Wait(object, 1000);
        }
        return hr;
    }
    OVERLAPPED overlapped = {};
};

struct AlignedFree {
    void operator()(void *block) const
    {
        _aligned_free(block);
    }
};

struct Buffer {
    std::unique_ptr<char, AlignedFree> memory;
    ULONG used = 0;
    bool receive = false;
};

class Session
{
public:
    static constexpr ULONG kBufferSize = 16384;
    static constexpr ULONG kBuffers = 8;

    explicit Session(const sockaddr_in &address)
    {
        sockaddr_in local = address;
        local.sin_port = 0;
        HandleHR(NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const sockaddr *>(&local), sizeof(local), adapter.Out()));
        HandleHR(adapter->CreateOverlappedFile(&file));
        HandleHR(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 2 * kBuffers, 0, 0, queue.Out()));
        HandleHR(adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, this, kBuffers, kBuffers, 1, 1, 0, pair.Out()));
        HandleHR(adapter->CreateConnector(IID_IND2Connector, file, connector.Out()));
        HandleHR(adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, region.Out()));
        pool.reset(static_cast<char *>(_aligned_malloc(2 * kBuffers * kBufferSize, 4096)));
        HandleHR(wait.Finish(region, region->Register(pool.get(), 2 * kBuffers * kBufferSize, ND_MR_FLAG_ALLOW_LOCAL_WRITE,
                                                      &wait.overlapped)));
        for (ULONG i = 0; i < kBuffers; i++) {
            QueueReceive(i);
            freeSends.push_back(kBuffers + i);
        }
    }

    ~Session()
    {
        try {
            Close();
        } catch (...) {
        }
        CloseHandle(file);
    }

    void Listen(const sockaddr_in &address)
    {
        RefPtr<IND2Listener> listener;
        HandleHR(adapter->CreateListener(IID_IND2Listener, file, listener.Out()));
        HandleHR(listener->Bind(reinterpret_cast<const sockaddr *>(&address), sizeof(address)));
        HandleHR(listener->Listen(0));
        std::printf("easy: listening\n");
        std::fflush(stdout);
        HandleHR(wait.Finish(listener, listener->GetConnectionRequest(connector, &wait.overlapped)));
        HandleHR(wait.Finish(connector, connector->Accept(pair, 0, 0, nullptr, 0, &wait.overlapped)));
        Start();
    }

    void Connect(const sockaddr_in &address)
    {
        sockaddr_in local = address;
        local.sin_port = 0;
        HandleHR(connector->Bind(reinterpret_cast<const sockaddr *>(&local), sizeof(local)));
        HandleHR(wait.Finish(connector, connector->Connect(pair, reinterpret_cast<const sockaddr *>(&address), sizeof(address), 0,
                                                           0, nullptr, 0, &wait.overlapped)));
        HandleHR(wait.Finish(connector, connector->CompleteConnect(&wait.overlapped)));
        Start();
    }

    // Any thread. Blocks while all send buffers are on their way.
    void Send(const std::string &text)
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return !freeSends.empty() || ended; });
        if (ended) {
            throw RdmaException("Send", ND_CONNECTION_INVALID);
        }
        ULONG slot = freeSends.front();
        freeSends.pop_front();
        std::memcpy(pool.get() + slot * kBufferSize, text.data(), text.size());
        ND2_SGE sge = { pool.get() + slot * kBufferSize, static_cast<ULONG>(text.size()), region->GetLocalToken() };
        HandleHR(pair->Send(reinterpret_cast<void *>(static_cast<size_t>(slot)), &sge, 1, 0));
    }

    // False when the connection has ended.
    bool Receive(std::string &text)
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return !arrived.empty() || ended; });
        if (arrived.empty()) {
            return false;
        }
        ULONG slot = arrived.front().first;
        text.assign(pool.get() + slot * kBufferSize, arrived.front().second);
        arrived.pop_front();
        if (!ended) {
            QueueReceive(slot);
        }
        return true;
    }

    void Close()
    {
        if (closed.exchange(true)) {
            return;
        }
        OverlappedWait last;
        HRESULT hr = last.Finish(connector, connector->Disconnect(&last.overlapped));
        stop = true;
        queue->CancelOverlappedRequests();
        if (poller.joinable()) {
            poller.join();
        }
        HandleHR(hr);
        HandleHR(last.Finish(region, region->Deregister(&last.overlapped)));
    }

private:
    void QueueReceive(ULONG slot)
    {
        ND2_SGE sge = { pool.get() + slot * kBufferSize, kBufferSize, region->GetLocalToken() };
        HandleHR(pair->Receive(reinterpret_cast<void *>(static_cast<size_t>(slot)), &sge, 1));
    }

    void Start()
    {
        poller = std::thread(&Session::PollThread, this);
    }

    void PollThread()
    {
        OverlappedWait notified;

        while (!stop) {
            ND2_RESULT results[8];
            ULONG count = queue->GetResults(results, 8);
            if (count == 0) {
                HRESULT hr = queue->Notify(ND_CQ_NOTIFY_ANY, &notified.overlapped);
                if (stop) { // perhaps since the look above, and then Close has cancelled before there was a request
                    queue->CancelOverlappedRequests();
                }
                hr = notified.Finish(queue, hr);
                if (FAILED(hr) && hr != ND_CANCELED) {
                    std::terminate();
                }
                continue;
            }
            std::lock_guard<std::mutex> guard(lock);
            for (ULONG i = 0; i < count; i++) {
                ULONG slot = static_cast<ULONG>(reinterpret_cast<size_t>(results[i].RequestContext));
                if (results[i].Status != ND_SUCCESS) {
                    ended = true;
                } else if (results[i].RequestType == Nd2RequestTypeReceive) {
                    arrived.emplace_back(slot, results[i].BytesTransferred);
                } else {
                    freeSends.push_back(slot);
                }
            }
            changed.notify_all();
        }
    }

    // The order of the members is the order of their end, backwards.
    std::unique_ptr<char, AlignedFree> pool;
    OverlappedWait wait;
    HANDLE file = nullptr;
    RefPtr<IND2Adapter> adapter;
    RefPtr<IND2MemoryRegion> region;
    RefPtr<IND2CompletionQueue> queue;
    RefPtr<IND2QueuePair> pair;
    RefPtr<IND2Connector> connector;
    std::mutex lock;
    std::condition_variable changed;
    std::deque<ULONG> freeSends;
    std::deque<std::pair<ULONG, ULONG>> arrived;
    bool ended = false;
    std::atomic<bool> stop{ false }, closed{ false };
    std::thread poller;
};

} // namespace easyrdma

int main(int argc, char **argv)
{
    using namespace easyrdma;
    WSADATA data;
    sockaddr_in address = {};
    INT length = sizeof(address);
    int status = 1;

    if (argc != 4) {
        std::printf("usage: easy listen|connect IP port\n");
        return 2;
    }
    WSAStartup(MAKEWORD(2, 2), &data);
    if (FAILED(NdStartup())) {
        return 1;
    }
    std::string text = std::string(argv[2]) + ":" + argv[3];
    if (WSAStringToAddressA(&text[0], AF_INET, nullptr, reinterpret_cast<sockaddr *>(&address), &length) != 0) {
        return 2;
    }
    try {
        Session session(address);

        if (std::string(argv[1]) == "listen") {
            unsigned count = 0;
            session.Listen(address);
            while (session.Receive(text)) {
                session.Send(text + "!");
                count++;
            }
            session.Close();
            std::printf("easy: %u messages\n", count);
            status = count == 200 ? 0 : 1;
        } else {
            // Two threads send, this one receives.
            session.Connect(address);
            std::atomic<unsigned> credits{ 6 };
            std::vector<std::thread> senders;
            for (int id = 0; id < 2; id++) {
                senders.emplace_back([&session, &credits, id] {
                    for (int i = 0; i < 100; i++) {
                        unsigned now = credits;
                        while (now == 0 || !credits.compare_exchange_weak(now, now - 1)) {
                            SwitchToThread();
                            now = credits;
                        }
                        session.Send(std::string(100 + 50 * static_cast<size_t>(i), static_cast<char>('a' + id)));
                    }
                });
            }
            size_t sizes[2] = {};
            for (int i = 0; i < 200; i++) {
                if (!session.Receive(text) || text.back() != '!') {
                    throw std::runtime_error("an answer is missing");
                }
                sizes[text[0] - 'a'] += text.size() - 1;
                credits++;
            }
            for (auto &sender : senders) {
                sender.join();
            }
            session.Close();
            status = sizes[0] == sizes[1] && sizes[0] == 100 * 100 + 50 * 4950 ? 0 : 1;
            std::printf("easy: %zu bytes each way\n", sizes[0] + sizes[1]);
        }
    } catch (const RdmaException &e) {
        std::printf("easy: %s: %08x\n", e.what(), static_cast<unsigned>(e.status));
    } catch (const std::exception &e) {
        std::printf("easy: %s\n", e.what());
    }
    NdCleanup();
    WSACleanup();
    return status;
}
