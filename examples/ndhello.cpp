/* SPDX-License-Identifier: MIT */
/* The smallest whole Network Direct session, with the interfaces as C++ classes: one process connects to itself over its
 * adapter, sends a greeting, and writes into the other end's memory. Usage: ndhello [LOCALADDR] */
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

namespace
{

void check(HRESULT status, const char *what)
{
    if (status != ND_SUCCESS)
        throw std::runtime_error(std::string(what) + ": " + ndverbs_status_text(status));
}

/* Holds one reference. */
template <typename T> class Ref
{
  public:
    Ref() = default;
    Ref(Ref &&other) noexcept : object(other.object)
    {
        other.object = nullptr;
    }
    Ref(const Ref &) = delete;
    Ref &operator=(const Ref &) = delete;
    ~Ref()
    {
        if (object)
            object->Release();
    }
    T *operator->() const
    {
        return object;
    }
    operator T *() const
    {
        return object;
    }
    void **out()
    {
        return reinterpret_cast<void **>(&object);
    }

  private:
    T *object = nullptr;
};

class Event
{
  public:
    Event() : handle(CreateEvent(nullptr, FALSE, FALSE, nullptr))
    {
        if (!handle)
            throw std::runtime_error("CreateEvent");
        overlapped.hEvent = handle;
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event()
    {
        CloseHandle(handle);
    }
    /* The outcome of an overlapped call that was given `overlapped`. */
    HRESULT finish(IND2Overlapped *object, HRESULT status)
    {
        return status == ND_PENDING ? object->GetOverlappedResult(&overlapped, TRUE) : status;
    }

    OVERLAPPED overlapped = {};

  private:
    HANDLE handle;
};

class Adapter
{
  public:
    explicit Adapter(const std::vector<char> &local)
    {
        info.InfoVersion = ND_VERSION_2;
        ULONG size = sizeof(info);

        check(NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const SOCKADDR *>(local.data()), local.size(),
                            adapter.out()),
              "NdOpenAdapter");
        check(adapter->Query(&info, &size), "Query");
        check(adapter->CreateOverlappedFile(&file), "CreateOverlappedFile");
    }
    Adapter(const Adapter &) = delete;
    Adapter &operator=(const Adapter &) = delete;
    ~Adapter()
    {
        CloseHandle(file);
    }

    Ref<IND2Adapter> adapter;
    HANDLE file = nullptr;
    ND2_ADAPTER_INFO info = {};
};

/* One end of the connection: a buffer, a queue pair and a connector. */
class End
{
  public:
    explicit End(Adapter &on) : buffer(4096)
    {
        check(on.adapter->CreateMemoryRegion(IID_IND2MemoryRegion, on.file, region.out()), "CreateMemoryRegion");
        check(event.finish(region, region->Register(buffer.data(), buffer.size(),
                                                    ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE,
                                                    &event.overlapped)),
              "Register");
        check(on.adapter->CreateCompletionQueue(IID_IND2CompletionQueue, on.file, 8, 0, 0, queue.out()),
              "CreateCompletionQueue");
        check(on.adapter->CreateQueuePair(IID_IND2QueuePair, queue, queue, this, 4, 4, 1, 1, 0, pair.out()),
              "CreateQueuePair");
        check(on.adapter->CreateConnector(IID_IND2Connector, on.file, connector.out()), "CreateConnector");
    }
    ~End()
    {
        event.finish(region, region->Deregister(&event.overlapped));
    }

    ND2_SGE sge(ULONG length)
    {
        return { buffer.data(), length, region->GetLocalToken() };
    }

    /* The next result; sleeps until there is one. */
    ND2_RESULT result()
    {
        ND2_RESULT next;

        while (!queue->GetResults(&next, 1))
            check(event.finish(queue, queue->Notify(ND_CQ_NOTIFY_ANY, &event.overlapped)), "Notify");
        check(next.Status, "a request");
        return next;
    }

    std::vector<char> buffer;
    Event event;
    Ref<IND2MemoryRegion> region;
    Ref<IND2CompletionQueue> queue;
    Ref<IND2QueuePair> pair;
    Ref<IND2Connector> connector;
};

std::vector<char> local_address(const char *text)
{
    std::vector<char> address(sizeof(SOCKADDR_IN6));

    if (text) {
        for (INT family : { AF_INET, AF_INET6 }) {
            INT length = static_cast<INT>(address.size());

            if (WSAStringToAddressA(const_cast<char *>(text), family, nullptr,
                                    reinterpret_cast<SOCKADDR *>(address.data()), &length) == 0) {
                address.resize(static_cast<size_t>(length));
                return address;
            }
        }
        throw std::runtime_error(std::string(text) + ": no IPv4 or IPv6 address");
    }

    std::vector<char> buffer;
    SIZE_T size = 0;
    HRESULT status;

    while ((status = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES,
                                        size ? reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data()) : nullptr,
                                        &size)) == ND_BUFFER_OVERFLOW)
        buffer.resize(size);
    check(status, "NdQueryAddressList");
    if (!size)
        throw std::runtime_error("no adapter (ndlist --all says why)");
    auto list = reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data());
    auto first = reinterpret_cast<const char *>(list->Address[0].lpSockaddr);
    return { first, first + list->Address[0].iSockaddrLength };
}

void hello(const char *text)
{
    std::vector<char> local = local_address(text);
    Adapter adapter(local);
    End active(adapter), passive(adapter);
    Event listening;
    Ref<IND2Listener> listener;
    ULONG length = static_cast<ULONG>(local.size());
    auto address = reinterpret_cast<SOCKADDR *>(local.data());

    if (!(adapter.info.AdapterFlags & ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED))
        throw std::runtime_error("this adapter makes no connections to itself");

    /* Port 0: the listener tells which one it got, and `local` becomes the address to connect to. */
    check(adapter.adapter->CreateListener(IID_IND2Listener, adapter.file, listener.out()), "CreateListener");
    check(listener->Bind(address, length), "Bind");
    check(active.connector->Bind(address, length), "Bind");
    check(listener->Listen(0), "Listen");
    check(listener->GetLocalAddress(address, &length), "GetLocalAddress");
    HRESULT request = listener->GetConnectionRequest(passive.connector, &listening.overlapped);

    /* The passive side must have a receive posted before the active side may send. */
    ND2_SGE into = passive.sge(64);
    check(passive.pair->Receive(nullptr, &into, 1), "Receive");

    /* Connect finishes when the passive side accepts, Accept when the active side completes. The token tells the active
     * side where it may write. */
    struct {
        UINT64 address;
        UINT32 token;
    } window = { reinterpret_cast<UINT64>(passive.buffer.data()), passive.region->GetRemoteToken() }, received = {};
    HRESULT connect =
        active.connector->Connect(active.pair, address, length, 0, 0, nullptr, 0, &active.event.overlapped);
    check(listening.finish(listener, request), "GetConnectionRequest");
    HRESULT accept = passive.connector->Accept(passive.pair, 0, 0, &window, sizeof(window), &passive.event.overlapped);
    check(active.event.finish(active.connector, connect), "Connect");
    ULONG size = sizeof(received);
    HRESULT data = active.connector->GetPrivateData(&received, &size);
    if (data != ND_SUCCESS && data != ND_BUFFER_OVERFLOW)
        check(data, "GetPrivateData");
    check(active.event.finish(active.connector, active.connector->CompleteConnect(&active.event.overlapped)),
          "CompleteConnect");
    check(passive.event.finish(passive.connector, accept), "Accept");

    static const char written[] = "and this was written by RDMA";
    static const char greeting[] = "hello over Network Direct";

    /* A write, and a message behind it: when the message is there, so is what was written. */
    memcpy(active.buffer.data(), written, sizeof(written));
    ND2_SGE from = active.sge(sizeof(written));
    check(active.pair->Write(nullptr, &from, 1, received.address + 1024, received.token, 0), "Write");
    active.result();
    memcpy(active.buffer.data(), greeting, sizeof(greeting));
    from = active.sge(sizeof(greeting));
    check(active.pair->Send(nullptr, &from, 1, 0), "Send");
    active.result();
    ND2_RESULT arrived = passive.result();

    if (arrived.QueuePairContext != &passive || arrived.RequestType != Nd2RequestTypeReceive ||
        arrived.BytesTransferred != sizeof(greeting) || strcmp(passive.buffer.data(), greeting) != 0 ||
        strcmp(passive.buffer.data() + 1024, written) != 0)
        throw std::runtime_error("something else arrived than was sent");
    std::printf("%s\n%s\n", passive.buffer.data(), passive.buffer.data() + 1024);

    check(active.event.finish(active.connector, active.connector->Disconnect(&active.event.overlapped)), "Disconnect");
    check(passive.event.finish(passive.connector, passive.connector->Disconnect(&passive.event.overlapped)),
          "Disconnect");
}

} // namespace

int main(int argc, char **argv)
{
    WSADATA data;
    int result = 0;

    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        std::fprintf(stderr, "usage: ndhello [LOCALADDR]\n");
        return 2;
    }
    WSAStartup(MAKEWORD(2, 2), &data);
    try {
        check(NdStartup(), "NdStartup");
        hello(argc > 1 ? argv[1] : nullptr);
        check(NdCleanup(), "NdCleanup");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "ndhello: %s\n", error.what());
        result = 1;
    }
    WSACleanup();
    return result;
}
