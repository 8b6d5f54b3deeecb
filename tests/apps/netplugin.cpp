// In the manner of a collective library's net plugin: C++, its own walk of the Winsock catalogue, DllGetClassObject for the
// provider directly, an overlapped file of its own for each registered region, polling of GetOverlappedResult(FALSE) with
// GetTickCount64 as the guard, blocking results with hEvent NULL, SRW locks in zeroed memory.
//
//   netplugin recv IP port        netplugin send IP port
#define NOMINMAX
#define INITGUID
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ws2spi.h>
#include <windows.h>
#include <ndspi.h>
#include <ndstatus.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

typedef int ncclResult;
enum { kSuccess = 0, kSystemError = 2 };

#define NDCHECK(call)                                                                   \
  do {                                                                                  \
    HRESULT hr_ = (call);                                                               \
    if (FAILED(hr_)) {                                                                  \
      std::fprintf(stderr, "netplugin: %s: 0x%08lx\n", #call, (unsigned long)(ULONG)hr_); \
      return kSystemError;                                                              \
    }                                                                                   \
  } while (0)
#define CHECK(call)                    \
  do {                                 \
    ncclResult r_ = (call);            \
    if (r_ != kSuccess) return r_;     \
  } while (0)

typedef HRESULT(STDAPICALLTYPE *PFN_DllGetClassObject)(REFCLSID, REFIID, LPVOID *);

struct Device {
  IND2Provider *provider;
  IND2Adapter *adapter;
  HANDLE file;
  ND2_ADAPTER_INFO info;
  SRWLOCK lock;
};

static const ULONGLONG kGuardMs = 60000;

// Every overlapped request of the control path: poll, as the proxy thread has more than one thing to do.
static ncclResult pollResult(IND2Overlapped *object, OVERLAPPED *ov, HRESULT hr, const char *what) {
  ULONGLONG start = GetTickCount64();
  while (hr == ND_PENDING) {
    hr = object->GetOverlappedResult(ov, FALSE);
    if (hr == ND_PENDING) {
      if (GetTickCount64() - start > kGuardMs) {
        std::fprintf(stderr, "netplugin: %s hangs\n", what);
        return kSystemError;
      }
      SwitchToThread();
    }
  }
  if (FAILED(hr)) std::fprintf(stderr, "netplugin: %s: 0x%08x\n", what, (unsigned)hr);
  return FAILED(hr) ? kSystemError : kSuccess;
}

static ncclResult loadProviders(std::vector<IND2Provider *> &providers) {
  DWORD length = 0;
  INT error = 0;
  if (WSCEnumProtocols(nullptr, nullptr, &length, &error) != SOCKET_ERROR || error != WSAENOBUFS) return kSystemError;
  std::vector<BYTE> buffer(length);
  auto *protocols = reinterpret_cast<LPWSAPROTOCOL_INFOW>(buffer.data());
  int count = WSCEnumProtocols(nullptr, protocols, &length, &error);
  std::map<std::wstring, HMODULE> modules;
  for (int i = 0; i < count; i++) {
    const WSAPROTOCOL_INFOW &p = protocols[i];
    if (!(p.dwProviderFlags & PFL_NETWORKDIRECT_PROVIDER) || p.iVersion < 2) continue;
    if (p.iAddressFamily != AF_INET && p.iAddressFamily != AF_INET6) continue;
    WCHAR path[MAX_PATH], full[MAX_PATH];
    INT pathLength = MAX_PATH;
    GUID id = p.ProviderId;
    if (WSCGetProviderPath(&id, path, &pathLength, &error) != 0) return kSystemError;
    if (ExpandEnvironmentStringsW(path, full, MAX_PATH) == 0) return kSystemError;
    HMODULE module = LoadLibraryExW(full, nullptr, 0);
    if (module == nullptr) {
      std::fprintf(stderr, "netplugin: LoadLibrary: %lu\n", (unsigned long)GetLastError());
      return kSystemError;
    }
    modules[full] = module;
    auto get = reinterpret_cast<PFN_DllGetClassObject>(reinterpret_cast<void *>(GetProcAddress(module, "DllGetClassObject")));
    if (get == nullptr || GetProcAddress(module, "NoSuchFunction") != nullptr || GetLastError() != ERROR_PROC_NOT_FOUND)
      return kSystemError;
    IND2Provider *provider = nullptr;
    NDCHECK(get(id, IID_IND2Provider, reinterpret_cast<void **>(&provider)));
    providers.push_back(provider);
  }
  // Both families are one library.
  if (providers.empty() || modules.size() != 1) return kSystemError;
  return kSuccess;
}

static ncclResult openDevice(const sockaddr_in &address, Device **out) {
  // Zeroed memory is an unlocked lock.
  Device *dev = static_cast<Device *>(std::calloc(1, sizeof(Device)));
  std::vector<IND2Provider *> providers;
  UINT64 id = 0;
  CHECK(loadProviders(providers));
  AcquireSRWLockExclusive(&dev->lock);
  for (IND2Provider *provider : providers) {
    if (dev->adapter == nullptr &&
        SUCCEEDED(provider->ResolveAddress(reinterpret_cast<const sockaddr *>(&address), sizeof(address), &id)) &&
        SUCCEEDED(provider->OpenAdapter(IID_IND2Adapter, id, reinterpret_cast<void **>(&dev->adapter)))) {
      dev->provider = provider;
      continue;
    }
    provider->Release();
  }
  ReleaseSRWLockExclusive(&dev->lock);
  if (dev->adapter == nullptr) return kSystemError;
  ULONG size = sizeof(dev->info);
  dev->info.InfoVersion = ND_VERSION_2;
  NDCHECK(dev->adapter->Query(&dev->info, &size));
  NDCHECK(dev->adapter->CreateOverlappedFile(&dev->file));
  *out = dev;
  return kSuccess;
}

struct Region {
  IND2MemoryRegion *mr = nullptr;
  HANDLE file = nullptr; // its own: requests with hEvent NULL are told apart by their file
};

static ncclResult regMr(Device *dev, void *data, size_t size, Region &region) {
  OVERLAPPED ov = {};
  NDCHECK(dev->adapter->CreateOverlappedFile(&region.file));
  NDCHECK(dev->adapter->CreateMemoryRegion(IID_IND2MemoryRegion, region.file, reinterpret_cast<void **>(&region.mr)));
  HRESULT hr = region.mr->Register(data, size, ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE, &ov);
  // hEvent is NULL and this blocks.
  if (hr == ND_PENDING) hr = static_cast<IND2Overlapped *>(region.mr)->GetOverlappedResult(&ov, TRUE);
  NDCHECK(hr);
  return kSuccess;
}

static ncclResult deregMr(Region &region) {
  OVERLAPPED ov = {};
  HRESULT hr = region.mr->Deregister(&ov);
  if (hr == ND_PENDING) hr = region.mr->GetOverlappedResult(&ov, TRUE);
  NDCHECK(hr);
  if (region.mr->Release() != 0 || !CloseHandle(region.file)) return kSystemError;
  return kSuccess;
}

struct Comm {
  Device *dev = nullptr;
  IND2CompletionQueue *cq = nullptr;
  IND2QueuePair *qp = nullptr;
  IND2Connector *connector = nullptr;
  OVERLAPPED ov = {};
};

static ncclResult makeComm(Device *dev, Comm &comm) {
  comm.dev = dev;
  ULONG depth = std::min<ULONG>(dev->info.MaxInitiatorQueueDepth, 64);
  NDCHECK(dev->adapter->CreateCompletionQueue(IID_IND2CompletionQueue, dev->file, 2 * depth, 0, 0, (void **)&comm.cq));
  NDCHECK(dev->adapter->CreateQueuePair(IID_IND2QueuePair, comm.cq, comm.cq, &comm, depth, depth, 1, 1, 0, (void **)&comm.qp));
  NDCHECK(dev->adapter->CreateConnector(IID_IND2Connector, dev->file, (void **)&comm.connector));
  return kSuccess;
}

struct Handle {
  UINT64 address;
  UINT32 token;
  UINT32 slots;
};

static const size_t kChunk = 32768;
static const UINT32 kSlots = 8, kChunks = 40;

static ncclResult test(Comm &comm, ND2_REQUEST_TYPE wanted) {
  ND2_RESULT result;
  ULONGLONG start = GetTickCount64();
  for (;;) {
    if (comm.cq->GetResults(&result, 1) == 1) {
      NDCHECK(result.Status);
      if (result.RequestType == wanted) return kSuccess;
      continue;
    }
    if (GetTickCount64() - start > kGuardMs) return kSystemError;
    YieldProcessor();
  }
}

static ncclResult finish(Comm &comm, Region &region, Region &control) {
  CHECK(pollResult(comm.connector, &comm.ov, comm.connector->Disconnect(&comm.ov), "Disconnect"));
  comm.qp->Release();
  comm.cq->Release();
  comm.connector->Release();
  CHECK(deregMr(region));
  CHECK(deregMr(control));
  CloseHandle(comm.dev->file);
  if (comm.dev->adapter->Release() != 0 || comm.dev->provider->Release() != 0) return kSystemError;
  std::free(comm.dev);
  return kSuccess;
}

// The receiver's window, written to by the sender a slot at a time; a message says that a slot is full, another that it is
// free again.
static ncclResult runRecv(Device *dev, const sockaddr_in &address) {
  std::vector<UINT32> window(kSlots * kChunk / 4), words(2 * kSlots);
  Region data, control;
  Comm comm;
  CHECK(makeComm(dev, comm));
  CHECK(regMr(dev, window.data(), kSlots * kChunk, data));
  CHECK(regMr(dev, words.data(), words.size() * 4, control));
  IND2Listener *listener = nullptr;
  NDCHECK(dev->adapter->CreateListener(IID_IND2Listener, dev->file, reinterpret_cast<void **>(&listener)));
  NDCHECK(listener->Bind(reinterpret_cast<const sockaddr *>(&address), sizeof(address)));
  NDCHECK(listener->Listen(1));
  std::printf("netplugin: listening\n");
  std::fflush(stdout);
  CHECK(pollResult(listener, &comm.ov, listener->GetConnectionRequest(comm.connector, &comm.ov), "GetConnectionRequest"));
  for (UINT32 i = 0; i < kSlots; i++) {
    ND2_SGE sge = { &words[i], 4, control.mr->GetLocalToken() };
    NDCHECK(comm.qp->Receive(nullptr, &sge, 1));
  }
  Handle handle = { reinterpret_cast<UINT64>(window.data()), data.mr->GetRemoteToken(), kSlots };
  CHECK(pollResult(comm.connector, &comm.ov,
                   comm.connector->Accept(comm.qp, 0, 0, &handle, sizeof(handle), &comm.ov), "Accept"));
  for (UINT32 chunk = 0; chunk < kChunks; chunk++) {
    UINT32 slot = chunk % kSlots;
    CHECK(test(comm, Nd2RequestTypeReceive));
    for (size_t i = 0; i < kChunk / 4; i++)
      if (window[slot * kChunk / 4 + i] != chunk * 1000003u + i) {
        std::fprintf(stderr, "netplugin: wrong data in chunk %u at %zu\n", chunk, i);
        return kSystemError;
      }
    ND2_SGE sge = { &words[slot], 4, control.mr->GetLocalToken() };
    NDCHECK(comm.qp->Receive(nullptr, &sge, 1));
    ND2_SGE ack = { &words[kSlots + slot], 4, control.mr->GetLocalToken() };
    NDCHECK(comm.qp->Send(nullptr, &ack, 1, ND_OP_FLAG_SILENT_SUCCESS));
  }
  // The sender hangs up when it has all acknowledgements.
  CHECK(pollResult(comm.connector, &comm.ov, comm.connector->NotifyDisconnect(&comm.ov), "NotifyDisconnect"));
  listener->Release();
  CHECK(finish(comm, data, control));
  std::printf("netplugin: received %I64u bytes\n", (UINT64)kChunk * kChunks);
  return kSuccess;
}

static ncclResult runSend(Device *dev, const sockaddr_in &local, const sockaddr_in &address) {
  std::vector<UINT32> source(kChunk / 4), words(2 * kSlots);
  Region data, control;
  Comm comm;
  CHECK(makeComm(dev, comm));
  CHECK(regMr(dev, source.data(), kChunk, data));
  CHECK(regMr(dev, words.data(), words.size() * 4, control));
  NDCHECK(comm.connector->Bind(reinterpret_cast<const sockaddr *>(&local), sizeof(local)));
  CHECK(pollResult(comm.connector, &comm.ov,
                   comm.connector->Connect(comm.qp, reinterpret_cast<const sockaddr *>(&address), sizeof(address), 0, 0,
                                           nullptr, 0, &comm.ov),
                   "Connect"));
  Handle handle = {};
  ULONG size = sizeof(handle);
  HRESULT hr = comm.connector->GetPrivateData(&handle, &size);
  if (hr != ND_BUFFER_OVERFLOW) NDCHECK(hr);
  for (UINT32 i = 0; i < kSlots; i++) {
    ND2_SGE sge = { &words[i], 4, control.mr->GetLocalToken() };
    NDCHECK(comm.qp->Receive(nullptr, &sge, 1));
  }
  CHECK(pollResult(comm.connector, &comm.ov, comm.connector->CompleteConnect(&comm.ov), "CompleteConnect"));
  UINT32 credits = handle.slots;
  for (UINT32 chunk = 0; chunk < kChunks; chunk++) {
    if (credits == 0) {
      CHECK(test(comm, Nd2RequestTypeReceive));
      ND2_SGE sge = { &words[chunk % kSlots], 4, control.mr->GetLocalToken() };
      NDCHECK(comm.qp->Receive(nullptr, &sge, 1));
      credits++;
    }
    credits--;
    for (size_t i = 0; i < kChunk / 4; i++) source[i] = static_cast<UINT32>(chunk * 1000003u + i);
    ND2_SGE sge = { source.data(), static_cast<ULONG>(kChunk), data.mr->GetLocalToken() };
    NDCHECK(comm.qp->Write(nullptr, &sge, 1, handle.address + chunk % kSlots * kChunk, handle.token, 0));
    ND2_SGE note = { &words[kSlots + chunk % kSlots], 4, control.mr->GetLocalToken() };
    NDCHECK(comm.qp->Send(nullptr, &note, 1, ND_OP_FLAG_SILENT_SUCCESS));
    // The source is used again: wait for the write, counting what else comes.
    ND2_RESULT result;
    bool written = false;
    while (!written) {
      if (comm.cq->GetResults(&result, 1) == 0) continue;
      NDCHECK(result.Status);
      if (result.RequestType == Nd2RequestTypeWrite) written = true;
      if (result.RequestType == Nd2RequestTypeReceive) {
        credits++;
        ND2_SGE again = { &words[0], 4, control.mr->GetLocalToken() };
        NDCHECK(comm.qp->Receive(nullptr, &again, 1));
      }
    }
  }
  while (credits < handle.slots) {
    CHECK(test(comm, Nd2RequestTypeReceive));
    credits++;
  }
  CHECK(finish(comm, data, control));
  return kSuccess;
}

int main(int argc, char **argv) {
  WSADATA wsa;
  if (argc != 4 || WSAStartup(MAKEWORD(2, 2), &wsa) != 0) {
    std::printf("usage: netplugin recv|send IP port\n");
    return 1;
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, argv[2], &address.sin_addr);
  Device *dev = nullptr;
  sockaddr_in local = address;
  CHECK(openDevice(address, &dev));
  address.sin_port = htons(static_cast<unsigned short>(std::atoi(argv[3])));
  ncclResult result = std::string(argv[1]) == "recv" ? runRecv(dev, address) : runSend(dev, local, address);
  WSACleanup();
  return result;
}
