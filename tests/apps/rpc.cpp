// In the manner of an RPC transport bolted onto a TCP program: C++, NdQueryAddressList and NdResolveAddress, spinning on
// GetResults with YieldProcessor, then Notify with WaitForSingleObject(hEvent, 200), keeping the one pending Notify across
// time-outs; _aligned_malloc, InetPtonA and InetNtopA; a destructor that tears down in any state.
//
//   rpc server IP port        rpc client IP port
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndsupport.h>
#include <ndstatus.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#pragma comment(lib, "ws2_32.lib")

struct nd_globals {
    bool started = false;
    nd_globals() {
        WSADATA wsa;
        started = WSAStartup(MAKEWORD(2, 2), &wsa) == 0 && SUCCEEDED(NdStartup());
    }
    ~nd_globals() {
        if (started) {
            NdCleanup();
            WSACleanup();
        }
    }
};

static bool nd_log(const char * what, HRESULT hr) {
    fprintf(stderr, "rpc: %s failed: 0x%08lX\n", what, (unsigned long) hr);
    return false;
}

// ND_PENDING has success severity: SUCCEEDED() is no test for "done".
static bool nd_wait(IND2Overlapped * obj, OVERLAPPED * ov, HRESULT hr) {
    if (hr == ND_PENDING) {
        hr = obj->GetOverlappedResult(ov, TRUE);
    }
    return hr == ND_SUCCESS || nd_log("operation", hr);
}

static constexpr size_t RDMA_CHUNK    = 64 * 1024;
static constexpr int    RDMA_RX_DEPTH = 8;
static constexpr int    RDMA_SPIN     = 10000;

struct rdma_conn {
    IND2Adapter *         adapter   = nullptr;
    IND2MemoryRegion *    mr        = nullptr;
    IND2CompletionQueue * cq        = nullptr;
    IND2QueuePair *       qp        = nullptr;
    IND2Connector *       connector = nullptr;
    IND2Listener *        listener  = nullptr;
    HANDLE                file      = nullptr;
    OVERLAPPED            ov        = {};
    OVERLAPPED            notify    = {};
    bool                  notify_pending = false;
    uint8_t *             rx = nullptr;
    uint8_t *             tx = nullptr;
    int                   rx_head = 0;
    uint32_t              rx_fill[RDMA_RX_DEPTH] = {};
    int                   rx_ready = 0;
    bool                  tx_done = true;
    bool                  broken  = false;
    unsigned              timeouts = 0;

    bool open(const sockaddr * local, size_t len) {
        ov.hEvent     = CreateEventA(nullptr, FALSE, FALSE, nullptr);
        notify.hEvent = CreateEventA(nullptr, FALSE, FALSE, nullptr);
        HRESULT hr = NdOpenAdapter(IID_IND2Adapter, local, len, reinterpret_cast<void **>(&adapter));
        if (FAILED(hr)) {
            return nd_log("NdOpenAdapter", hr);
        }
        ND2_ADAPTER_INFO info = {};
        info.InfoVersion = ND_VERSION_2;
        ULONG size = sizeof(info);
        if (FAILED(hr = adapter->Query(&info, &size)) || !(info.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED)) {
            return nd_log("Query", hr);
        }
        if (FAILED(hr = adapter->CreateOverlappedFile(&file)) ||
            FAILED(hr = adapter->CreateMemoryRegion(IID_IND2MemoryRegion, file, reinterpret_cast<void **>(&mr))) ||
            FAILED(hr = adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, RDMA_RX_DEPTH * 4, 0, 0,
                                                       reinterpret_cast<void **>(&cq))) ||
            FAILED(hr = adapter->CreateQueuePair(IID_IND2QueuePair, cq, cq, this, RDMA_RX_DEPTH, RDMA_RX_DEPTH, 1, 1, 0,
                                                 reinterpret_cast<void **>(&qp))) ||
            FAILED(hr = adapter->CreateConnector(IID_IND2Connector, file, reinterpret_cast<void **>(&connector)))) {
            return nd_log("creating", hr);
        }
        rx = static_cast<uint8_t *>(_aligned_malloc((RDMA_RX_DEPTH + 1) * RDMA_CHUNK, 4096));
        tx = rx + RDMA_RX_DEPTH * RDMA_CHUNK;
        if (((uintptr_t) rx & 4095) != 0) {
            return nd_log("_aligned_malloc", E_FAIL);
        }
        return nd_wait(mr, &ov, mr->Register(rx, (RDMA_RX_DEPTH + 1) * RDMA_CHUNK, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov)) &&
               post_all();
    }

    ~rdma_conn() {
        if (notify_pending) {
            cq->CancelOverlappedRequests();
            cq->GetOverlappedResult(&notify, TRUE);
        }
        if (connector) { connector->Disconnect(&ov); connector->Release(); }
        if (qp) { qp->Release(); }
        if (cq) { cq->Release(); }
        if (mr) { mr->Deregister(&ov); mr->Release(); }
        if (listener) { listener->Release(); }
        if (file) { CloseHandle(file); }
        if (adapter) { adapter->Release(); }
        if (ov.hEvent) { CloseHandle(ov.hEvent); }
        if (notify.hEvent) { CloseHandle(notify.hEvent); }
        _aligned_free(rx);
    }

    bool post(int slot) {
        ND2_SGE sge = { rx + slot * RDMA_CHUNK, (ULONG) RDMA_CHUNK, mr->GetLocalToken() };
        HRESULT hr = qp->Receive(reinterpret_cast<void *>((intptr_t) slot), &sge, 1);
        return SUCCEEDED(hr) || nd_log("Receive", hr);
    }

    bool post_all() {
        for (int i = 0; i < RDMA_RX_DEPTH; i++) {
            if (!post(i)) {
                return false;
            }
        }
        return true;
    }

    bool poll() {
        ND2_RESULT res[4];
        ULONG n = cq->GetResults(res, 4);
        for (ULONG i = 0; i < n; i++) {
            if (res[i].Status != ND_SUCCESS) {
                broken = true;
            } else if (res[i].RequestType == Nd2RequestTypeReceive) {
                rx_fill[(intptr_t) res[i].RequestContext] = res[i].BytesTransferred;
                rx_ready++;
            } else {
                tx_done = true;
            }
        }
        return n > 0;
    }

    // Spin for a while, then sleep; the pending notification outlives a time-out.
    void progress() {
        for (int i = 0; i < RDMA_SPIN; i++) {
            if (poll()) {
                return;
            }
            YieldProcessor();
        }
        if (!notify_pending) {
            HRESULT hr = cq->Notify(ND_CQ_NOTIFY_ANY, &notify);
            if (hr != ND_PENDING) {
                broken = FAILED(hr);
                return;
            }
            notify_pending = true;
            if (poll()) {
                return; // came in between; the notification stays for the next time
            }
        }
        DWORD r = WaitForSingleObject(notify.hEvent, 200);
        if (r == WAIT_OBJECT_0) {
            notify_pending = false;
            if (FAILED(cq->GetOverlappedResult(&notify, FALSE))) {
                broken = true;
            }
        } else if (r == WAIT_TIMEOUT) {
            timeouts++;
        } else {
            broken = true;
        }
    }

    bool send(const void * data, size_t size) {
        const uint8_t * p = static_cast<const uint8_t *>(data);
        while (size > 0) {
            size_t chunk = size < RDMA_CHUNK ? size : RDMA_CHUNK;
            while (!tx_done && !broken) {
                progress();
            }
            if (broken) {
                return false;
            }
            memcpy(tx, p, chunk);
            ND2_SGE sge = { tx, (ULONG) chunk, mr->GetLocalToken() };
            tx_done = false;
            HRESULT hr = qp->Send(nullptr, &sge, 1, 0);
            if (FAILED(hr)) {
                return nd_log("Send", hr);
            }
            p += chunk;
            size -= chunk;
        }
        while (!tx_done && !broken) {
            progress();
        }
        return !broken;
    }

    // A stream over messages: the receive ring is used in order.
    size_t rx_taken = 0;
    bool recv(void * data, size_t size) {
        uint8_t * p = static_cast<uint8_t *>(data);
        while (size > 0) {
            while (rx_ready == 0 && !broken) {
                progress();
            }
            if (rx_ready == 0) {
                return false;
            }
            size_t left = rx_fill[rx_head] - rx_taken;
            size_t n = size < left ? size : left;
            memcpy(p, rx + rx_head * RDMA_CHUNK + rx_taken, n);
            p += n;
            size -= n;
            rx_taken += n;
            if (rx_taken == rx_fill[rx_head]) {
                if (!broken && !post(rx_head)) {
                    return false;
                }
                rx_head = (rx_head + 1) % RDMA_RX_DEPTH;
                rx_taken = 0;
                rx_ready--;
            }
        }
        return true;
    }
};

static bool is_nd_address(const in_addr & wanted) {
    std::vector<char> buffer;
    SIZE_T size = 0;
    HRESULT hr = NdQueryAddressList(ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES, nullptr, &size);
    if (hr == ND_SUCCESS && size == 0) {
        return false;
    }
    while (hr == ND_BUFFER_OVERFLOW) {
        buffer.resize(size);
        hr = NdQueryAddressList(ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES, reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data()),
                                &size);
    }
    auto * list = reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data());
    bool found = false;
    for (INT i = 0; SUCCEEDED(hr) && i < list->iAddressCount; i++) {
        if (list->Address[i].lpSockaddr->sa_family != AF_INET) {
            continue;
        }
        auto * in = reinterpret_cast<sockaddr_in *>(list->Address[i].lpSockaddr);
        char text[INET_ADDRSTRLEN];
        printf("rpc: adapter %s\n", InetNtopA(AF_INET, &in->sin_addr, text, sizeof(text)));
        found = found || memcmp(&in->sin_addr, &wanted, sizeof(wanted)) == 0;
    }
    return found;
}

int main(int argc, char ** argv) {
    nd_globals globals;
    sockaddr_in addr = {}, local = {};
    SIZE_T len = sizeof(local);

    if (argc != 4 || !globals.started) {
        fprintf(stderr, "usage: rpc server|client IP port\n");
        return 2;
    }
    addr.sin_family = AF_INET;
    if (InetPtonA(AF_INET, argv[2], &addr.sin_addr) != 1) {
        return 2;
    }
    HRESULT hr = NdResolveAddress(reinterpret_cast<sockaddr *>(&addr), sizeof(addr), reinterpret_cast<sockaddr *>(&local), &len);
    if (FAILED(hr) || !is_nd_address(local.sin_addr)) {
        nd_log("NdResolveAddress", hr);
        return 1;
    }
    std::unique_ptr<rdma_conn> conn(new rdma_conn);
    if (!conn->open(reinterpret_cast<sockaddr *>(&local), len)) {
        return 1;
    }
    addr.sin_port = htons((uint16_t) std::stoi(argv[3]));
    uint32_t size = 0;
    if (std::string(argv[1]) == "server") {
        hr = conn->adapter->CreateListener(IID_IND2Listener, conn->file, reinterpret_cast<void **>(&conn->listener));
        if (FAILED(hr) || FAILED(hr = conn->listener->Bind(reinterpret_cast<sockaddr *>(&addr), sizeof(addr))) ||
            FAILED(hr = conn->listener->Listen(1))) {
            nd_log("listening", hr);
            return 1;
        }
        printf("rpc: listening\n");
        fflush(stdout);
        if (!nd_wait(conn->listener, &conn->ov, conn->listener->GetConnectionRequest(conn->connector, &conn->ov)) ||
            !nd_wait(conn->connector, &conn->ov, conn->connector->Accept(conn->qp, 0, 0, nullptr, 0, &conn->ov))) {
            return 1;
        }
        std::vector<uint8_t> data;
        unsigned calls = 0;
        while (conn->recv(&size, sizeof(size))) {
            data.resize(size);
            if (!conn->recv(data.data(), size)) {
                return 1;
            }
            for (auto & byte : data) {
                byte ^= 0x5a;
            }
            if (!conn->send(&size, sizeof(size)) || !conn->send(data.data(), size)) {
                return 1;
            }
            calls++;
        }
        printf("rpc: %u calls, slept %u times for nothing\n", calls, conn->timeouts);
        return calls == 5 ? 0 : 1;
    }
    if (FAILED(hr = conn->connector->Bind(reinterpret_cast<sockaddr *>(&local), (ULONG) len)) ||
        !nd_wait(conn->connector, &conn->ov,
                 conn->connector->Connect(conn->qp, reinterpret_cast<sockaddr *>(&addr), sizeof(addr), 0, 0, nullptr, 0,
                                          &conn->ov)) ||
        !nd_wait(conn->connector, &conn->ov, conn->connector->CompleteConnect(&conn->ov))) {
        return 1;
    }
    for (uint32_t wanted : { 1u, 100u, 65536u, 300000u, 7u }) {
        std::vector<uint8_t> data(wanted), back(wanted);
        for (uint32_t i = 0; i < wanted; i++) {
            data[i] = (uint8_t) (i * 11 + wanted);
        }
        if (wanted == 7u) {
            Sleep(500); // the other side runs into its time-out
        }
        if (!conn->send(&wanted, sizeof(wanted)) || !conn->send(data.data(), wanted) || !conn->recv(&size, sizeof(size)) ||
            size != wanted || !conn->recv(back.data(), wanted)) {
            return 1;
        }
        for (uint32_t i = 0; i < wanted; i++) {
            if (back[i] != (data[i] ^ 0x5a)) {
                return 1;
            }
        }
    }
    printf("rpc: done\n");
    return 0;
}
