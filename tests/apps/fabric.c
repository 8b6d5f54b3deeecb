/* In the manner of libfabric's netdir provider: C with lpVtbl, the catalogue walk and the class factory, requests on the
 * heap that are completed on thread pool threads (BindIoCompletionCallback), read limits at the adapter's maxima, the data
 * of a rejection, critical sections, Interlocked* and WaitOnAddress. Call sequence: ndspi-v2.md 13 "libfabric netdir".
 *
 *   fabric -l IP port            fabric -d IP port
 */
#define INITGUID
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ws2spi.h>
#include <windows.h>
#include <stdio.h>
#include <ndspi.h>

#define ND_FLAG_SERVICE \
	(XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA)

typedef HRESULT (*can_unload_t)(void);
typedef HRESULT (*get_class_t)(REFCLSID, REFIID, LPVOID *);

typedef struct nd_event {
	OVERLAPPED ov;
	void (*done)(struct nd_event *event, DWORD status);
	struct nd_ep *ep;
} nd_event;

typedef struct nd_ep {
	IND2Connector *connector;
	IND2QueuePair *qp;
	IND2CompletionQueue *cq;
	CRITICAL_SECTION lock;
	volatile LONG state;    /* of enum */
	volatile LONG64 rx;     /* messages; waited for by address */
	LONG refs;
	struct nd_ep *next;
} nd_ep;

enum { EP_IDLE, EP_UP, EP_REFUSED, EP_DOWN };

static struct {
	IND2Provider *provider;
	IND2Adapter *adapter;
	ND2_ADAPTER_INFO info;
	HANDLE file;
	IND2MemoryRegion *mr;
	IND2Listener *listener;
	HMODULE module;
	can_unload_t can_unload;
	char *buffer;
	volatile LONG connections;
} nd;

#define BUFFER_SIZE (1 << 16)
#define SLOT        4096

static void fail(const char *what, HRESULT hr)
{
	char text[128] = "";

	FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, (DWORD)hr, 0, text, sizeof(text), NULL);
	fprintf(stderr, "fabric: %s: 0x%08lx %s\n", what, (unsigned long)(ULONG)hr, text);
	exit(1);
}

#define CHECK(call)               \
	do {                          \
		HRESULT hr_ = (call);     \
		if (FAILED(hr_))          \
			fail(#call, hr_);     \
	} while (0)

/* One callback for everything that the adapter's file reports. */
static void CALLBACK io_cb(DWORD err, DWORD bytes, LPOVERLAPPED ov)
{
	nd_event *event = CONTAINING_RECORD(ov, nd_event, ov);

	(void)bytes;
	event->done(event, err);
}

static nd_event *event_new(nd_ep *ep, void (*done)(nd_event *, DWORD))
{
	nd_event *event = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(*event));

	if (!event)
		fail("HeapAlloc", E_OUTOFMEMORY);
	event->done = done;
	event->ep = ep;
	if (ep)
		InterlockedIncrement(&ep->refs);
	return event;
}

static void ep_unref(nd_ep *ep)
{
	if (InterlockedDecrement(&ep->refs))
		return;
	ep->connector->lpVtbl->Release(ep->connector);
	ep->qp->lpVtbl->Release(ep->qp);
	ep->cq->lpVtbl->Release(ep->cq);
	DeleteCriticalSection(&ep->lock);
	HeapFree(GetProcessHeap(), 0, ep);
}

static void event_free(nd_event *event)
{
	if (event->ep)
		ep_unref(event->ep);
	HeapFree(GetProcessHeap(), 0, event);
}

static void ep_state(nd_ep *ep, LONG state)
{
	InterlockedExchange(&ep->state, state);
	WakeByAddressAll((void *)&ep->state);
}

static LONG ep_wait(nd_ep *ep, LONG while_state)
{
	LONG old = while_state;

	while (ep->state == while_state)
		WaitOnAddress(&ep->state, &old, sizeof(old), INFINITE);
	return ep->state;
}

static nd_ep *ep_new(void)
{
	nd_ep *ep = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(*ep));

	InitializeCriticalSection(&ep->lock);
	ep->refs = 1;
	CHECK(nd.adapter->lpVtbl->CreateCompletionQueue(nd.adapter, &IID_IND2CompletionQueue, nd.file, 32, 0, 0, (void **)&ep->cq));
	CHECK(nd.adapter->lpVtbl->CreateQueuePair(nd.adapter, &IID_IND2QueuePair, (IUnknown *)ep->cq, (IUnknown *)ep->cq, ep, 8, 8,
		1, 1, 0, (void **)&ep->qp));
	CHECK(nd.adapter->lpVtbl->CreateConnector(nd.adapter, &IID_IND2Connector, nd.file, (void **)&ep->connector));
	return ep;
}

static void ep_receive(nd_ep *ep, int slot)
{
	ND2_SGE sge = { nd.buffer + slot * SLOT, SLOT, nd.mr->lpVtbl->GetLocalToken(nd.mr) };

	CHECK(ep->qp->lpVtbl->Receive(ep->qp, (void *)(INT_PTR)slot, &sge, 1));
}

static void ep_send(nd_ep *ep, int slot, ULONG bytes)
{
	ND2_SGE sge = { nd.buffer + slot * SLOT, bytes, nd.mr->lpVtbl->GetLocalToken(nd.mr) };

	CHECK(ep->qp->lpVtbl->Send(ep->qp, (void *)(INT_PTR)slot, &sge, 1, 0));
}

static void ep_progress(nd_ep *ep);

static void on_notify(nd_event *event, DWORD status)
{
	nd_ep *ep = event->ep;

	if (status == ND_SUCCESS)
		ep_progress(ep);
	event_free(event);
}

/* Arm, then look; on whatever pool thread comes. */
static void ep_progress(nd_ep *ep)
{
	nd_event *event = event_new(ep, on_notify);
	ND2_RESULT result[4];
	HRESULT hr;
	ULONG i, n;

	hr = ep->cq->lpVtbl->Notify(ep->cq, ND_CQ_NOTIFY_ANY, &event->ov);
	if (FAILED(hr))
		event_free(event);
	/* What was to cancel it may have come before there was a request. */
	if (InterlockedCompareExchange(&ep->state, EP_DOWN, EP_DOWN) == EP_DOWN)
		ep->cq->lpVtbl->CancelOverlappedRequests(ep->cq);
	EnterCriticalSection(&ep->lock);
	while ((n = ep->cq->lpVtbl->GetResults(ep->cq, result, 4)) != 0) {
		for (i = 0; i < n; i++) {
			if (result[i].Status == ND_CANCELED || result[i].RequestType != Nd2RequestTypeReceive)
				continue;
			if (result[i].Status != ND_SUCCESS)
				fail("a receive", result[i].Status);
			InterlockedIncrement64(&ep->rx);
			WakeByAddressAll((void *)&ep->rx);
		}
	}
	LeaveCriticalSection(&ep->lock);
}

static void on_disconnected(nd_event *event, DWORD status)
{
	if (FAILED((HRESULT)status) && status != (DWORD)ND_CANCELED)
		fail("NotifyDisconnect", (HRESULT)status);
	ep_state(event->ep, EP_DOWN);
	event_free(event);
}

static void ep_up(nd_ep *ep)
{
	nd_event *event = event_new(ep, on_disconnected);
	HRESULT hr = ep->connector->lpVtbl->NotifyDisconnect(ep->connector, &event->ov);

	if (FAILED(hr))
		fail("NotifyDisconnect", hr);
	ep_state(ep, EP_UP);
}

static void on_completed(nd_event *event, DWORD status)
{
	if (status != ND_SUCCESS)
		fail("CompleteConnect or Accept", (HRESULT)status);
	ep_up(event->ep);
	event_free(event);
}

static void on_connected(nd_event *event, DWORD status)
{
	nd_ep *ep = event->ep;
	char data[64];
	ULONG size = sizeof(data);
	HRESULT hr;

	if (status == (DWORD)ND_CONNECTION_REFUSED) {
		/* What the peer said with its rejection. */
		hr = ep->connector->lpVtbl->GetPrivateData(ep->connector, data, &size);
		if ((FAILED(hr) && hr != ND_BUFFER_OVERFLOW) || strcmp(data, "busy, come again"))
			fail("the data of the rejection", hr);
		ep_state(ep, EP_REFUSED);
	} else if (status != ND_SUCCESS) {
		fail("Connect", (HRESULT)status);
	} else {
		nd_event *complete = event_new(ep, on_completed);

		CHECK(ep->connector->lpVtbl->CompleteConnect(ep->connector, &complete->ov));
	}
	event_free(event);
}

/* Enumerates the providers as they are registered, not through the helper library. */
static void find_provider(int family)
{
	WSAPROTOCOL_INFOW *protocols;
	WCHAR path[MAX_PATH], expanded[MAX_PATH];
	IClassFactory *factory;
	get_class_t get_class;
	DWORD len = 0;
	int err = 0, n, i, path_len;

	if (WSCEnumProtocols(NULL, NULL, &len, &err) != SOCKET_ERROR || err != WSAENOBUFS)
		fail("WSCEnumProtocols", HRESULT_FROM_WIN32(err));
	protocols = malloc(len);
	n = WSCEnumProtocols(NULL, protocols, &len, &err);
	for (i = 0; i < n; i++) {
		if ((protocols[i].dwServiceFlags1 & ND_FLAG_SERVICE) != ND_FLAG_SERVICE ||
		    !(protocols[i].dwProviderFlags & PFL_NETWORKDIRECT_PROVIDER) || protocols[i].iVersion != ND_VERSION_2 ||
		    protocols[i].iAddressFamily != family || protocols[i].iSocketType != -1 || protocols[i].iProtocol != 0)
			continue;
		path_len = MAX_PATH;
		if (WSCGetProviderPath(&protocols[i].ProviderId, path, &path_len, &err))
			fail("WSCGetProviderPath", HRESULT_FROM_WIN32(err));
		if (!ExpandEnvironmentStringsW(path, expanded, MAX_PATH))
			fail("ExpandEnvironmentStrings", HRESULT_FROM_WIN32(GetLastError()));
		nd.module = LoadLibraryW(expanded);
		if (!nd.module)
			fail("LoadLibrary", HRESULT_FROM_WIN32(GetLastError()));
		get_class = (get_class_t)GetProcAddress(nd.module, "DllGetClassObject");
		nd.can_unload = (can_unload_t)GetProcAddress(nd.module, "DllCanUnloadNow");
		if (!get_class || !nd.can_unload)
			fail("GetProcAddress", HRESULT_FROM_WIN32(GetLastError()));
		CHECK(get_class(&protocols[i].ProviderId, &IID_IClassFactory, (void **)&factory));
		CHECK(factory->lpVtbl->CreateInstance(factory, NULL, &IID_IND2Provider, (void **)&nd.provider));
		factory->lpVtbl->Release(factory);
		break;
	}
	free(protocols);
	if (!nd.provider)
		fail("no provider", E_FAIL);
}

static void open_adapter(const SOCKADDR_IN *address)
{
	SOCKET_ADDRESS_LIST *list = NULL;
	ULONG size = 0, i;
	UINT64 id = 0;
	OVERLAPPED ov = { 0 };
	HRESULT hr;
	BOOL listed = FALSE;

	hr = nd.provider->lpVtbl->QueryAddressList(nd.provider, NULL, &size);
	while (hr == ND_BUFFER_OVERFLOW) {
		free(list);
		list = malloc(size);
		hr = nd.provider->lpVtbl->QueryAddressList(nd.provider, list, &size);
	}
	CHECK(hr);
	for (i = 0; i < (ULONG)list->iAddressCount; i++) {
		SOCKADDR_IN *in = (SOCKADDR_IN *)list->Address[i].lpSockaddr;

		listed |= in->sin_family == AF_INET && in->sin_addr.s_addr == address->sin_addr.s_addr;
	}
	free(list);
	if (!listed)
		fail("the address is not listed", E_FAIL);
	CHECK(nd.provider->lpVtbl->ResolveAddress(nd.provider, (struct sockaddr *)address, sizeof(*address), &id));
	CHECK(nd.provider->lpVtbl->OpenAdapter(nd.provider, &IID_IND2Adapter, id, (void **)&nd.adapter));
	nd.provider->lpVtbl->Release(nd.provider);
	nd.info.InfoVersion = ND_VERSION_2;
	size = sizeof(nd.info);
	CHECK(nd.adapter->lpVtbl->Query(nd.adapter, &nd.info, &size));
	CHECK(nd.adapter->lpVtbl->CreateOverlappedFile(nd.adapter, &nd.file));

	/* Registered before the pool is bound: this request has an event. */
	nd.buffer = VirtualAlloc(NULL, BUFFER_SIZE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	CHECK(nd.adapter->lpVtbl->CreateMemoryRegion(nd.adapter, &IID_IND2MemoryRegion, nd.file, (void **)&nd.mr));
	ov.hEvent = CreateEvent(NULL, TRUE, FALSE, NULL);
	hr = nd.mr->lpVtbl->Register(nd.mr, nd.buffer, BUFFER_SIZE, ND_MR_FLAG_ALLOW_LOCAL_WRITE, &ov);
	if (hr == ND_PENDING)
		hr = nd.mr->lpVtbl->GetOverlappedResult(nd.mr, &ov, TRUE);
	CHECK(hr);
	CloseHandle(ov.hEvent);
	if (!BindIoCompletionCallback(nd.file, io_cb, 0))
		fail("BindIoCompletionCallback", HRESULT_FROM_WIN32(GetLastError()));
	if (BindIoCompletionCallback(nd.file, io_cb, 0) || GetLastError() != ERROR_INVALID_PARAMETER)
		fail("a second BindIoCompletionCallback", E_UNEXPECTED);
}

static void close_adapter(void)
{
	OVERLAPPED ov = { 0 };

	ov.hEvent = (HANDLE)((ULONG_PTR)CreateEvent(NULL, TRUE, FALSE, NULL) | 1);
	if (nd.mr->lpVtbl->Deregister(nd.mr, &ov) == ND_PENDING)
		nd.mr->lpVtbl->GetOverlappedResult(nd.mr, &ov, TRUE);
	nd.mr->lpVtbl->Release(nd.mr);
	CloseHandle(ov.hEvent);
	if (nd.can_unload() != S_FALSE)
		fail("DllCanUnloadNow with an open adapter", E_UNEXPECTED);
	CloseHandle(nd.file);
	nd.adapter->lpVtbl->Release(nd.adapter);
	while (nd.can_unload() != S_OK)
		SwitchToThread(); /* a pool thread that is just finishing its callback */
	FreeLibrary(nd.module);
	VirtualFree(nd.buffer, 0, MEM_RELEASE);
}

static void wait_messages(nd_ep *ep, LONG64 count)
{
	LONG64 seen;

	while ((seen = InterlockedAdd64(&ep->rx, 0)) < count)
		WaitOnAddress(&ep->rx, &seen, sizeof(seen), INFINITE);
}

static nd_ep *volatile accepted;

static void listener_arm(void);

static void on_request(nd_event *event, DWORD status)
{
	static const char busy[] = "busy, come again";
	nd_ep *ep = event->ep;

	if (status == (DWORD)ND_CANCELED) {
		event_free(event);
		return;
	}
	if (status != ND_SUCCESS)
		fail("GetConnectionRequest", (HRESULT)status);
	if (InterlockedIncrement(&nd.connections) == 1) {
		/* The first is refused, to be told why. */
		CHECK(ep->connector->lpVtbl->Reject(ep->connector, busy, sizeof(busy)));
		listener_arm();
	} else {
		nd_event *accept = event_new(ep, on_completed);

		ep_receive(ep, 0);
		ep_progress(ep);
		CHECK(ep->connector->lpVtbl->Accept(ep->connector, (IUnknown *)ep->qp, nd.info.MaxInboundReadLimit,
			nd.info.MaxOutboundReadLimit, "hello", 6, &accept->ov));
		InterlockedIncrement(&ep->refs);
		InterlockedExchangePointer((void *volatile *)&accepted, ep);
		WakeByAddressAll((void *)&accepted);
	}
	event_free(event);
}

static void listener_arm(void)
{
	nd_ep *ep = ep_new();
	nd_event *event = event_new(ep, on_request);

	CHECK(nd.listener->lpVtbl->GetConnectionRequest(nd.listener, (IUnknown *)ep->connector, &event->ov));
	ep_unref(ep); /* the event has it */
}

static void finish(nd_ep *ep)
{
	nd_event *event = event_new(ep, on_disconnected);
	HRESULT hr = ep->connector->lpVtbl->Disconnect(ep->connector, &event->ov);

	if (FAILED(hr))
		fail("Disconnect", hr);
	ep_wait(ep, EP_UP);
	ep->cq->lpVtbl->CancelOverlappedRequests(ep->cq);
	/* The last callback drops the endpoint; here is one reference more. */
	while (InterlockedCompareExchange(&ep->refs, 1, 1) != 1)
		Sleep(1);
	ep_unref(ep);
}

static void serve(const SOCKADDR_IN *address)
{
	nd_ep *none = NULL, *ep;

	CHECK(nd.adapter->lpVtbl->CreateListener(nd.adapter, &IID_IND2Listener, nd.file, (void **)&nd.listener));
	CHECK(nd.listener->lpVtbl->Bind(nd.listener, (const struct sockaddr *)address, sizeof(*address)));
	CHECK(nd.listener->lpVtbl->Listen(nd.listener, 0));
	listener_arm();
	printf("fabric: listening\n");
	fflush(stdout);
	while (!accepted)
		WaitOnAddress((volatile VOID *)&accepted, (PVOID)&none, sizeof(none), INFINITE);
	ep = accepted;
	ep_wait(ep, EP_IDLE);
	wait_messages(ep, 1);
	memcpy(nd.buffer + SLOT, nd.buffer, SLOT);
	ep_send(ep, 1, SLOT);
	ep_wait(ep, EP_UP);
	finish(ep);
	nd.listener->lpVtbl->CancelOverlappedRequests(nd.listener);
	nd.listener->lpVtbl->Release(nd.listener);
}

static void dial(const SOCKADDR_IN *address)
{
	SOCKADDR_IN local = *address;
	LONG state = EP_REFUSED;
	nd_event *event;
	nd_ep *ep = NULL;
	int attempts = 0, i;

	local.sin_port = 0;
	while (state == EP_REFUSED) {
		ep = ep_new();
		ep_receive(ep, 2);
		CHECK(ep->connector->lpVtbl->Bind(ep->connector, (struct sockaddr *)&local, sizeof(local)));
		event = event_new(ep, on_connected);
		CHECK(ep->connector->lpVtbl->Connect(ep->connector, (IUnknown *)ep->qp, (const struct sockaddr *)address,
			sizeof(*address), nd.info.MaxInboundReadLimit, nd.info.MaxOutboundReadLimit, "dial", 5, &event->ov));
		state = ep_wait(ep, EP_IDLE);
		attempts++;
		if (state == EP_REFUSED)
			ep_unref(ep);
	}
	if (attempts != 2)
		fail("number of attempts", E_UNEXPECTED);
	ep_progress(ep);
	for (i = 0; i < SLOT; i++)
		nd.buffer[3 * SLOT + i] = (char)(i * 3);
	ep_send(ep, 3, SLOT);
	wait_messages(ep, 1);
	if (memcmp(nd.buffer + 2 * SLOT, nd.buffer + 3 * SLOT, SLOT))
		fail("wrong bytes", E_FAIL);
	finish(ep);
	printf("fabric: %d attempts, %d bytes there and back\n", attempts, SLOT);
}

int main(int argc, char **argv)
{
	SOCKADDR_IN address;
	WSADATA data;

	if (argc != 4 || (strcmp(argv[1], "-l") && strcmp(argv[1], "-d"))) {
		fprintf(stderr, "usage: fabric -l|-d IP port\n");
		return 2;
	}
	if (WSAStartup(MAKEWORD(2, 2), &data))
		return 1;
	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_port = htons((u_short)atoi(argv[3]));
	if (InetPtonA(AF_INET, argv[2], &address.sin_addr) != 1)
		fail(argv[2], HRESULT_FROM_WIN32(WSAGetLastError()));
	find_provider(AF_INET6); /* one entry for each family; either gives a provider of both */
	nd.provider->lpVtbl->Release(nd.provider);
	nd.provider = NULL;
	find_provider(AF_INET);
	open_adapter(&address);
	if (!strcmp(argv[1], "-l"))
		serve(&address);
	else
		dial(&address);
	close_adapter();
	WSACleanup();
	return 0;
}
