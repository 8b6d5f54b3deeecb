// In the manner of the asio wrappers for Network Direct: C++20, a completion port as executor, coroutines that await
// overlapped requests, ComPtr, handles in unique_ptr<remove_pointer_t<HANDLE>>, CancelIoEx for one request and for a file,
// an error category over ND statuses.
//
//   coro IP          (server and client are coroutines of one process)
#include <WinSock2.h>
#include <WS2tcpip.h>
#include <Windows.h>
#include <wrl/client.h>
#include <ndspi.h>
#include <ndsupport.h>

#include <array>
#include <concepts>
#include <coroutine>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

using Microsoft::WRL::ComPtr;

namespace nd
{

enum class errc : int
{
    success = ND_SUCCESS,
    canceled = ND_CANCELED,
    refused = ND_CONNECTION_REFUSED,
    invalid = ND_CONNECTION_INVALID,
};

class category_impl final : public std::error_category
{
public:
    const char *name() const noexcept override
    {
        return "nd";
    }
    std::string message(int value) const override
    {
        switch (value)
        {
        case ND_CANCELED:
            return "canceled";
        case ND_CONNECTION_REFUSED:
            return "connection refused";
        default:
            return "status " + std::to_string(static_cast<unsigned>(value));
        }
    }
};

const std::error_category &category()
{
    static category_impl instance;
    return instance;
}

std::error_code make_error_code(errc value)
{
    return { static_cast<int>(value), category() };
}

void check(HRESULT hr, const char *what)
{
    if (FAILED(hr))
        throw std::system_error(hr, category(), what);
}

struct handle_deleter
{
    void operator()(HANDLE handle) const noexcept
    {
        if (handle != nullptr || handle != INVALID_HANDLE_VALUE)
            ::CloseHandle(handle);
    }
};
using unique_handle = std::unique_ptr<std::remove_pointer_t<HANDLE>, handle_deleter>;

// The executor.
class context
{
public:
    struct operation : OVERLAPPED
    {
        operation() : OVERLAPPED{} {}
        virtual void complete(HRESULT status, DWORD bytes) = 0;

    protected:
        ~operation() = default;
    };

    context() : port_(::CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 1))
    {
        if (!port_)
            throw std::system_error(static_cast<int>(::GetLastError()), std::system_category());
    }

    void attach(HANDLE file)
    {
        if (::CreateIoCompletionPort(file, port_.get(), 0, 0) != port_.get())
            throw std::system_error(static_cast<int>(::GetLastError()), std::system_category());
    }

    void post(operation *op)
    {
        ::PostQueuedCompletionStatus(port_.get(), 0, 1, op);
    }

    void run()
    {
        while (work_ != 0)
        {
            DWORD bytes = 0;
            ULONG_PTR key = 0;
            LPOVERLAPPED ov = nullptr;
            const BOOL good = ::GetQueuedCompletionStatus(port_.get(), &bytes, &key, &ov, INFINITE);

            if (ov == nullptr)
                throw std::system_error(static_cast<int>(::GetLastError()), std::system_category());
            static_cast<operation *>(ov)->complete(good ? S_OK : static_cast<HRESULT>(ov->Internal), bytes);
        }
    }

    unsigned work_ = 0;

private:
    unique_handle port_;
};

// A coroutine that starts at once and counts as work until it ends.
struct task
{
    struct promise_type
    {
        template <typename... Args> explicit promise_type(context &ctx, Args &&...) : ctx_(ctx)
        {
            ctx_.work_++;
        }
        ~promise_type()
        {
            ctx_.work_--;
        }
        task get_return_object() noexcept
        {
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void() noexcept {}
        void unhandled_exception()
        {
            throw;
        }
        context &ctx_;
    };
};

template <std::invocable<OVERLAPPED *> Start> class awaitable final : public context::operation
{
public:
    awaitable(context &ctx, IND2Overlapped *object, Start start) : ctx_(ctx), object_(object), start_(std::move(start)) {}

    bool await_ready() const noexcept
    {
        return false;
    }
    bool await_suspend(std::coroutine_handle<> handle)
    {
        handle_ = handle;
        const HRESULT hr = start_(static_cast<OVERLAPPED *>(this));
        if (hr == ND_PENDING)
            return true;
        result_ = hr;
        return false;
    }
    std::error_code await_resume() const noexcept
    {
        return { result_, category() };
    }
    void complete(HRESULT, DWORD) override
    {
        result_ = object_->GetOverlappedResult(this, FALSE);
        handle_.resume();
    }

private:
    context &ctx_;
    IND2Overlapped *object_;
    Start start_;
    std::coroutine_handle<> handle_;
    HRESULT result_ = ND_PENDING;
};

class adapter
{
public:
    adapter(context &ctx, const sockaddr_in &address) : ctx_(ctx)
    {
        check(NdOpenAdapter(IID_IND2Adapter, reinterpret_cast<const sockaddr *>(&address), sizeof(address),
                            reinterpret_cast<void **>(adapter_.GetAddressOf())),
              "NdOpenAdapter");
    }

    unique_handle file()
    {
        HANDLE handle = nullptr;
        check(adapter_->CreateOverlappedFile(&handle), "CreateOverlappedFile");
        unique_handle owned(handle);
        ctx_.attach(handle);
        return owned;
    }

    context &ctx_;
    ComPtr<IND2Adapter> adapter_;
};

class socket
{
public:
    explicit socket(adapter &on, std::size_t size = 4096) : ctx_(on.ctx_), file_(on.file()), buffer_(size)
    {
        check(on.adapter_->CreateMemoryRegion(__uuidof(IND2MemoryRegion), file_.get(),
                                              reinterpret_cast<void **>(region_.ReleaseAndGetAddressOf())),
              "CreateMemoryRegion");
        check(on.adapter_->CreateCompletionQueue(IID_IND2CompletionQueue, file_.get(), 16, 0, 0,
                                                 reinterpret_cast<void **>(queue_.ReleaseAndGetAddressOf())),
              "CreateCompletionQueue");
        check(on.adapter_->CreateQueuePair(IID_IND2QueuePair, queue_.Get(), queue_.Get(), this, 4, 4, 1, 1, 0,
                                           reinterpret_cast<void **>(pair_.ReleaseAndGetAddressOf())),
              "CreateQueuePair");
        check(on.adapter_->CreateConnector(IID_IND2Connector, file_.get(),
                                           reinterpret_cast<void **>(connector_.ReleaseAndGetAddressOf())),
              "CreateConnector");
    }

    template <typename T, typename Start> auto request(const ComPtr<T> &object, Start start)
    {
        return awaitable<Start>(ctx_, object.Get(), std::move(start));
    }
    auto enroll()
    {
        return request(region_, [this](OVERLAPPED *ov) {
            return region_->Register(buffer_.data(), buffer_.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, ov);
        });
    }
    auto withdraw()
    {
        return request(region_, [this](OVERLAPPED *ov) { return region_->Deregister(ov); });
    }
    auto connect(const sockaddr_in &to)
    {
        return request(connector_, [this, to](OVERLAPPED *ov) {
            return connector_->Connect(pair_.Get(), reinterpret_cast<const sockaddr *>(&to), sizeof(to), 0, 0, nullptr, 0, ov);
        });
    }
    auto complete_connect()
    {
        return request(connector_, [this](OVERLAPPED *ov) { return connector_->CompleteConnect(ov); });
    }
    auto accept()
    {
        return request(connector_, [this](OVERLAPPED *ov) { return connector_->Accept(pair_.Get(), 0, 0, nullptr, 0, ov); });
    }
    auto disconnect()
    {
        return request(connector_, [this](OVERLAPPED *ov) { return connector_->Disconnect(ov); });
    }
    auto notify()
    {
        return request(queue_, [this](OVERLAPPED *ov) {
            notifying_ = ov;
            return queue_->Notify(ND_CQ_NOTIFY_ANY, ov);
        });
    }

    ND2_SGE sge(std::size_t offset, std::size_t length)
    {
        return { buffer_.data() + offset, static_cast<ULONG>(length), region_->GetLocalToken() };
    }

    context &ctx_;
    unique_handle file_;
    std::vector<char> buffer_;
    ComPtr<IND2MemoryRegion> region_;
    ComPtr<IND2CompletionQueue> queue_;
    ComPtr<IND2QueuePair> pair_;
    ComPtr<IND2Connector> connector_;
    OVERLAPPED *notifying_ = nullptr;
};

void need(std::error_code error, const char *what)
{
    if (error)
        throw std::system_error(error, what);
}

constexpr std::size_t half = 2048;
constexpr int rounds = 25;

task serve(context &ctx, socket &s, ComPtr<IND2Listener> listener)
{
    need(co_await s.enroll(), "Register");
    need(co_await s.request(listener,
                            [&](OVERLAPPED *ov) { return listener->GetConnectionRequest(s.connector_.Get(), ov); }),
         "GetConnectionRequest");
    ND2_SGE in = s.sge(0, half);
    check(s.pair_->Receive(nullptr, &in, 1), "Receive");
    need(co_await s.accept(), "Accept");
    for (int i = 0; i < rounds;)
    {
        std::array<ND2_RESULT, 4> results;
        const ULONG n = s.queue_->GetResults(results.data(), 4);
        if (n == 0)
        {
            need(co_await s.notify(), "Notify");
            continue;
        }
        for (const ND2_RESULT &r : std::span(results.data(), n))
        {
            check(r.Status, "a request");
            if (r.RequestType != Nd2RequestTypeReceive)
                continue;
            std::memcpy(s.buffer_.data() + half, s.buffer_.data(), r.BytesTransferred);
            ND2_SGE out = s.sge(half, r.BytesTransferred);
            check(s.pair_->Receive(nullptr, &in, 1), "Receive");
            check(s.pair_->Send(nullptr, &out, 1, 0), "Send");
            i++;
        }
    }
    need(co_await s.request(s.connector_, [&](OVERLAPPED *ov) { return s.connector_->NotifyDisconnect(ov); }), "NotifyDisconnect");
    need(co_await s.disconnect(), "Disconnect");
    need(co_await s.withdraw(), "Deregister");
    (void)ctx;
}

// Waits for a result; cancelled from outside by CancelIoEx.
task wait_for_nothing(context &ctx, socket &s, std::optional<std::error_code> &end)
{
    end = co_await s.notify();
    (void)ctx;
}

task dial(context &ctx, adapter &on, socket &s, sockaddr_in from, sockaddr_in to, int &done)
{
    need(co_await s.enroll(), "Register");

    // A port where nobody listens: the error arrives as a value.
    check(s.connector_->Bind(reinterpret_cast<sockaddr *>(&from), sizeof(from)), "Bind");
    sockaddr_in nobody = to;
    nobody.sin_port = htons(static_cast<u_short>(ntohs(to.sin_port) + 1));
    std::error_code error = co_await s.connect(nobody);
    if (error != make_error_code(errc::refused))
        throw std::system_error(error, "Connect to nobody");
    need(co_await s.connect(to), "Connect");
    need(co_await s.complete_connect(), "CompleteConnect");

    for (int i = 0; i < rounds; i++)
    {
        ND2_SGE in = s.sge(0, half), out = s.sge(half, half - static_cast<std::size_t>(i));
        std::memset(out.Buffer, i + 1, half);
        check(s.pair_->Receive(nullptr, &in, 1), "Receive");
        check(s.pair_->Send(nullptr, &out, 1, 0), "Send");
        for (bool back = false; !back;)
        {
            ND2_RESULT r;
            if (s.queue_->GetResults(&r, 1) == 0)
            {
                need(co_await s.notify(), "Notify");
                continue;
            }
            check(r.Status, "a request");
            back = r.RequestType == Nd2RequestTypeReceive;
            if (back && (r.BytesTransferred != out.BufferLength || std::memcmp(in.Buffer, out.Buffer, r.BytesTransferred) != 0))
                throw std::runtime_error("wrong bytes");
        }
    }

    // Cancellation slots: one request, then all of a file, then nothing is left.
    socket idle(on);
    std::optional<std::error_code> end;
    wait_for_nothing(ctx, idle, end);
    if (!::CancelIoEx(idle.file_.get(), idle.notifying_))
        throw std::runtime_error("CancelIoEx");
    wait_for_nothing(ctx, idle, end);
    if (!::CancelIoEx(idle.file_.get(), nullptr))
        throw std::runtime_error("CancelIoEx of a file");
    if (::CancelIoEx(idle.file_.get(), nullptr) || ::GetLastError() != ERROR_NOT_FOUND)
        throw std::runtime_error("CancelIoEx of nothing");
    if (end)
        throw std::runtime_error("a cancelled request came back too early");
    struct yield final : context::operation
    {
        explicit yield(context &c) : ctx(c) {}
        bool await_ready() const noexcept
        {
            return false;
        }
        void await_suspend(std::coroutine_handle<> h)
        {
            handle = h;
            ctx.post(this);
        }
        void await_resume() const noexcept {}
        void complete(HRESULT, DWORD) override
        {
            handle.resume();
        }
        context &ctx;
        std::coroutine_handle<> handle;
    };
    co_await yield(ctx); // behind the packets of the cancelled requests
    if (!end || *end != make_error_code(errc::canceled))
        throw std::runtime_error("a cancelled request");

    need(co_await s.disconnect(), "Disconnect");
    need(co_await s.withdraw(), "Deregister");
    done++;
}

void run(const char *text)
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    if (InetPtonA(AF_INET, text, &address.sin_addr) != 1)
        throw std::runtime_error("address");

    context ctx;
    adapter on(ctx, address);
    socket server(on), client(on);
    ComPtr<IND2Listener> listener;
    unique_handle file = on.file();
    check(on.adapter_->CreateListener(IID_IND2Listener, file.get(), reinterpret_cast<void **>(listener.ReleaseAndGetAddressOf())), "CreateListener");
    check(listener->Bind(reinterpret_cast<sockaddr *>(&address), sizeof(address)), "Bind");
    check(listener->Listen(0), "Listen");
    sockaddr_in to = {}, from = address;
    ULONG length = sizeof(to);
    check(listener->GetLocalAddress(reinterpret_cast<sockaddr *>(&to), &length), "GetLocalAddress");

    ComPtr<IUnknown> unknown;
    check(listener.As(&unknown), "As");
    int done = 0;
    serve(ctx, server, listener);
    dial(ctx, on, client, from, to, done);
    ctx.run();
    if (done != 1)
        throw std::runtime_error("a coroutine did not end");
    std::printf("coro: %d messages there and back\n", rounds);
}

} // namespace nd

int main(int argc, char **argv)
{
    WSADATA data;
    int status = 1;

    if (argc != 2)
    {
        std::fprintf(stderr, "usage: coro IP\n");
        return 2;
    }
    ::WSAStartup(MAKEWORD(2, 2), &data);
    if (FAILED(NdStartup()))
        return 1;
    try
    {
        nd::run(argv[1]);
        status = 0;
    }
    catch (const std::exception &error)
    {
        std::fprintf(stderr, "coro: %s\n", error.what());
    }
    NdCleanup();
    ::WSACleanup();
    return status;
}
