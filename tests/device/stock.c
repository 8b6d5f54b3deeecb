/* SPDX-License-Identifier: MIT */
#include "stock.h"

#include <sys/resource.h>

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

/* ---- opening ---- */

void openers_make(struct openers *openers)
{
    IClassFactory *factory;

    harness_status_text = ndverbs_status_text;
    openers->own = own_endpoint();
    ok_status(NdStartup(), S_OK);
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IND2Provider, (void **)&openers->v2), S_OK);
    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, (void **)&openers->v1), S_OK);
    release_last(factory);
    ok_status(WvGetObject(&IID_IWVProvider, (void **)&openers->wv), WV_SUCCESS);
    ok_status(CALL(openers->v2, ResolveAddress, &openers->own.any, endpoint_size(&openers->own), &openers->id),
              ND_SUCCESS);
    ok_status(CALL(openers->wv, TranslateAddress, &openers->own.any, &openers->where), WV_SUCCESS);
}

void openers_drop(struct openers *openers)
{
    release_last(openers->v2);
    release_last(openers->v1);
    release_last(openers->wv);
    ok_status(NdCleanup(), S_OK);
}

HRESULT open_by(struct openers *openers, int way, IUnknown **made)
{
    const union endpoint *own = &openers->own;
    WV_DEVICE_ATTRIBUTES attributes;

    *made = NULL;
    switch (way) {
    case 0:
        return NdOpenAdapter(&IID_IND2Adapter, &own->any, endpoint_size(own), (void **)made);
    case 1:
        return CALL(openers->v2, OpenAdapter, &IID_IND2Adapter, openers->id, (void **)made);
    case 2:
        return NdOpenV1Adapter(&own->any, endpoint_size(own), (INDAdapter **)made);
    case 3:
        return CALL(openers->v1, OpenAdapter, &own->any, endpoint_size(own), (INDAdapter **)made);
    case 4:
        return CALL(openers->wv, OpenDevice, openers->where.DeviceGuid, (IWVDevice **)made);
    default:
        return CALL(openers->wv, QueryDevice, openers->where.DeviceGuid, &attributes);
    }
}

void all_ways(struct openers *openers, HRESULT wanted)
{
    for (int way = 0; way < WAYS; way++) {
        IUnknown *made;
        HRESULT status = open_by(openers, way, &made);

        ok_msg(status == wanted, "way %d: 0x%08x (%s)", way, (unsigned)status, ndverbs_status_text(status));
        ok(!made || status == ND_SUCCESS);
        if (made)
            release_last(made);
    }
}

/* ---- what is made of an open device ---- */

void stock_make(struct stock *stock)
{
    SIZE_T entries;

    memset(stock, 0, sizeof(*stock));
    host_open(&stock->host);
    for (int i = 0; i < 2; i++)
        link_make(&stock->link[i], &stock->host, NULL);
    ok_status(CALL(stock->host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, stock->host.file, 16, 1,
                   0, 0, 0, (void **)&stock->srq),
              ND_SUCCESS);
    v1_open(&stock->v1, 4096);
    v1_make_connector(&stock->v1);
    wv_open(&stock->wv);
    wv_make(&stock->wvlink, &stock->wv, NULL);
    ok_status(CALL(stock->host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, stock->host.file,
                   stock->host.info.MaxCompletionQueueDepth, 0, 0, (void **)&stock->large),
              ND_SUCCESS);
    ok_status(CALL(stock->v1.adapter, CreateCompletionQueue, stock->v1.info.MaxCqEntries, &stock->v1_large),
              ND_SUCCESS);
    entries = stock->wv.attributes.MaxCqEntries;
    ok_status(CALL(stock->wv.device, CreateCompletionQueue, &entries, &stock->wv_large), WV_SUCCESS);
    stock->vector.Route.Valid = 1;
    stock->vector.Route.HopLimit = 64;
    ok_status(CALL(stock->wv.device, QueryGid, stock->wv.where.PortNumber, 0, &stock->vector.Route.SGid), WV_SUCCESS);
    stock->vector.Route.DGid = stock->vector.Route.SGid;
    stock->vector.PortNumber = stock->wv.where.PortNumber;
}

void stock_used(struct stock *stock)
{
    struct link *a = &stock->link[0], *b = &stock->link[1];
    IND2Listener *listener = listen_any(&stock->host);
    union endpoint to = listener_endpoint(listener);

    self_connect(a, b, listener, &to);
    wv_settle();
    pattern_fill(a->buffer, 64, 1);
    post_receive(b, 1, 0, 64);
    post_send(a, 2, 0, 64, 0);
    ok_result(b->cq, Nd2RequestTypeReceive, ND_SUCCESS, 1);
    ok_result(a->cq, Nd2RequestTypeSend, ND_SUCCESS, 2);
    pattern_check(b->buffer, 64, 1);
    link_disconnect(a);
    release_last(listener);
}

void stock_drop(struct stock *stock)
{
    release_last(stock->large);
    release_last(stock->v1_large);
    release_last(stock->wv_large);
    wv_drop(&stock->wvlink);
    wv_close(&stock->wv);
    v1_close(&stock->v1);
    release_last(stock->srq);
    for (int i = 0; i < 2; i++)
        link_drop(&stock->link[i]);
    host_close(&stock->host);
}

/* Each makes one, `most`: as large as the device has them. */

static HRESULT make_file(struct stock *stock, bool most, void **out)
{
    HANDLE file = NULL;
    HRESULT status = CALL(stock->host.adapter, CreateOverlappedFile, &file);

    (void)most, (void)out;
    if (file)
        ok(CloseHandle(file));
    return status;
}

HRESULT make_cq(struct stock *stock, bool most, void **out)
{
    return CALL(stock->host.adapter, CreateCompletionQueue, &IID_IND2CompletionQueue, stock->host.file,
                most ? stock->host.info.MaxCompletionQueueDepth : 16, 0, 0, out);
}

static HRESULT make_region(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->host.adapter, CreateMemoryRegion, &IID_IND2MemoryRegion, stock->host.file, out);
}

static HRESULT make_window(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->host.adapter, CreateMemoryWindow, &IID_IND2MemoryWindow, out);
}

HRESULT make_srq(struct stock *stock, bool most, void **out)
{
    const ND2_ADAPTER_INFO *info = &stock->host.info;

    return CALL(stock->host.adapter, CreateSharedReceiveQueue, &IID_IND2SharedReceiveQueue, stock->host.file,
                most ? info->MaxSharedReceiveQueueDepth : 16, most ? info->MaxReceiveSge : 1, 0, 0, 0, out);
}

static HRESULT make_qp(struct stock *stock, bool most, void **out)
{
    const ND2_ADAPTER_INFO *info = &stock->host.info;
    IUnknown *cq = (IUnknown *)stock->large;

    return CALL(stock->host.adapter, CreateQueuePair, &IID_IND2QueuePair, cq, cq, NULL,
                most ? info->MaxReceiveQueueDepth : 16, most ? info->MaxInitiatorQueueDepth : 16, 1, 1, 0, out);
}

static HRESULT make_qp_srq(struct stock *stock, bool most, void **out)
{
    IUnknown *cq = (IUnknown *)stock->large;

    return CALL(stock->host.adapter, CreateQueuePairWithSrq, &IID_IND2QueuePair, cq, cq, (IUnknown *)stock->srq, NULL,
                most ? stock->host.info.MaxInitiatorQueueDepth : 16, 1, 0, out);
}

HRESULT make_connector(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->host.adapter, CreateConnector, &IID_IND2Connector, stock->host.file, out);
}

HRESULT make_listener(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->host.adapter, CreateListener, &IID_IND2Listener, stock->host.file, out);
}

HRESULT make_v1_cq(struct stock *stock, bool most, void **out)
{
    return CALL(stock->v1.adapter, CreateCompletionQueue, most ? stock->v1.info.MaxCqEntries : 16,
                (INDCompletionQueue **)out);
}

static HRESULT make_v1_window(struct stock *stock, bool most, void **out)
{
    static ND_RESULT revoked;

    (void)most;
    return CALL(stock->v1.adapter, CreateMemoryWindow, &revoked, (INDMemoryWindow **)out);
}

static HRESULT make_v1_connector(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->v1.adapter, CreateConnector, (INDConnector **)out);
}

HRESULT make_v1_endpoint(struct stock *stock, bool most, void **out)
{
    const ND_ADAPTER_INFO *info = &stock->v1.info;
    struct v1 *v1 = &stock->v1;

    return CALL(v1->connector, CreateEndpoint, stock->v1_large, stock->v1_large, most ? info->MaxInboundRequests : 16,
                most ? info->MaxOutboundRequests : 16, 1, 1, 0, 0, &v1->inline_size, (INDEndpoint **)out);
}

static HRESULT make_wv_pd(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->wv.device, AllocateProtectionDomain, (IWVProtectionDomain **)out);
}

static HRESULT make_wv_cq(struct stock *stock, bool most, void **out)
{
    SIZE_T entries = most ? stock->wv.attributes.MaxCqEntries : 16;

    return CALL(stock->wv.device, CreateCompletionQueue, &entries, (IWVCompletionQueue **)out);
}

static HRESULT make_wv_srq(struct stock *stock, bool most, void **out)
{
    return CALL(stock->wv.pd, CreateSharedReceiveQueue, most ? stock->wv.attributes.MaxSrqWr : 16, 1, 0,
                (IWVSharedReceiveQueue **)out);
}

static WV_QP_CREATE wv_qp_of(const struct stock *stock, bool most)
{
    WV_QP_CREATE create = { 0 };

    create.pSendCq = create.pReceiveCq = stock->wv_large;
    create.SendDepth = create.ReceiveDepth = most ? stock->wv.attributes.MaxQpWr : 16;
    create.SendSge = create.ReceiveSge = 1;
    return create;
}

static HRESULT make_wv_qp(struct stock *stock, bool most, void **out)
{
    WV_QP_CREATE create = wv_qp_of(stock, most);

    create.QpType = WvQpTypeRc;
    return CALL(stock->wv.pd, CreateConnectQueuePair, &create, (IWVConnectQueuePair **)out);
}

static HRESULT make_wv_ud(struct stock *stock, bool most, void **out)
{
    WV_QP_CREATE create = wv_qp_of(stock, most);

    create.QpType = WvQpTypeUd;
    return CALL(stock->wv.pd, CreateDatagramQueuePair, &create, (IWVDatagramQueuePair **)out);
}

static HRESULT make_wv_window(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->wv.pd, AllocateMemoryWindow, (IWVMemoryWindow **)out);
}

static HRESULT make_wv_ah(struct stock *stock, bool most, void **out)
{
    ULONG_PTR key;

    (void)most;
    return CALL(stock->wv.pd, CreateAddressHandle, &stock->vector, (IWVAddressHandle **)out, &key);
}

static HRESULT make_wv_endpoint(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->wv.provider, CreateConnectEndpoint, (IWVConnectEndpoint **)out);
}

static HRESULT make_wv_datagram(struct stock *stock, bool most, void **out)
{
    (void)most;
    return CALL(stock->wv.provider, CreateDatagramEndpoint, (IWVDatagramEndpoint **)out);
}

const struct kind kinds[] = {
    { "CreateOverlappedFile", make_file, NONE, false, ND_NO_MEMORY },
    { "CreateCompletionQueue", make_cq, EACH, true, ND_NO_MEMORY },
    { "CreateMemoryRegion", make_region, NONE, false, ND_NO_MEMORY },
    { "CreateMemoryWindow", make_window, RXE, false, ND_INSUFFICIENT_RESOURCES },
    { "CreateSharedReceiveQueue", make_srq, EACH, true, ND_NO_MEMORY },
    { "CreateQueuePair", make_qp, EACH, true, ND_NO_MEMORY },
    { "CreateQueuePairWithSrq", make_qp_srq, EACH, true, ND_NO_MEMORY },
    { "CreateConnector", make_connector, NONE, false, ND_NO_MEMORY },
    { "CreateListener", make_listener, NONE, false, ND_NO_MEMORY },
    { "v1 CreateCompletionQueue", make_v1_cq, EACH, true, ND_NO_MEMORY },
    { "v1 CreateMemoryWindow", make_v1_window, RXE, false, ND_NO_MEMORY },
    { "v1 CreateConnector", make_v1_connector, NONE, false, ND_NO_MEMORY },
    { "v1 CreateEndpoint", make_v1_endpoint, EACH, true, ND_NO_MEMORY },
    { "AllocateProtectionDomain", make_wv_pd, EACH, false, WV_NO_MEMORY },
    { "wv CreateCompletionQueue", make_wv_cq, EACH, true, WV_NO_MEMORY },
    { "wv CreateSharedReceiveQueue", make_wv_srq, EACH, true, WV_NO_MEMORY },
    { "CreateConnectQueuePair", make_wv_qp, EACH, true, WV_NO_MEMORY },
    { "CreateDatagramQueuePair", make_wv_ud, ONLY_RXE, true, WV_NO_MEMORY },
    { "AllocateMemoryWindow", make_wv_window, ONLY_RXE, false, WV_NO_MEMORY },
    { "CreateAddressHandle", make_wv_ah, ONLY_RXE, false, WV_NO_MEMORY },
    { "CreateConnectEndpoint", make_wv_endpoint, NONE, false, WV_NO_MEMORY },
    { "CreateDatagramEndpoint", make_wv_datagram, NONE, false, WV_NO_MEMORY },
};

const size_t kinds_count = sizeof(kinds) / sizeof(kinds[0]);

bool kind_missing(size_t kind)
{
    return kinds[kind].of_device == ONLY_RXE && runner_iwarp();
}

HRESULT make_one(struct stock *stock, size_t kind, bool most)
{
    void *made = NULL;
    HRESULT status = kinds[kind].make(stock, most, &made);

    if (status == ND_SUCCESS && made)
        release_last(made);
    ok_msg(!made || status == ND_SUCCESS, "%s: 0x%08x, and an object", kinds[kind].name, (unsigned)status);
    return status;
}

void make_all(struct stock *stock, HRESULT without_device)
{
    for (size_t i = 0; i < kinds_count; i++) {
        HRESULT wanted =
            kinds[i].of_device == NONE || (kinds[i].of_device == RXE && runner_iwarp()) ? ND_SUCCESS : without_device;
        HRESULT status;

        if (kind_missing(i))
            continue;
        status = make_one(stock, i, false);
        ok_msg(status == wanted, "%s: 0x%08x (%s)", kinds[i].name, (unsigned)status, ndverbs_status_text(status));
    }
}

void register_all(struct stock *stock, HRESULT wanted)
{
    static BYTE memory[4096];
    struct link *link = &stock->link[0];
    IND2MemoryRegion *region;
    WV_MEMORY_KEYS keys;
    ND_MR_HANDLE mr;

    ok_status(make_region(stock, false, (void **)&region), ND_SUCCESS);
    ok_status(finish(region, CALL(region, Register, memory, sizeof(memory), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &link->ov),
                     &link->ov),
              wanted);
    if (wanted == ND_SUCCESS)
        ok_status(finish(region, CALL(region, Deregister, &link->ov), &link->ov), ND_SUCCESS);
    release_last(region);
    ok_status(v1_register(&stock->v1, memory, sizeof(memory), &mr), wanted);
    if (wanted == ND_SUCCESS)
        ok_status(
            v1_finish(stock->v1.adapter, CALL(stock->v1.adapter, DeregisterMemory, mr, &stock->v1.ov), &stock->v1.ov),
            ND_SUCCESS);
    ok_status(CALL(stock->wv.pd, RegisterMemory, memory, sizeof(memory), WV_ACCESS_REMOTE_READ, NULL, &keys), wanted);
    if (wanted == ND_SUCCESS)
        ok_status(CALL(stock->wv.pd, DeregisterMemory, keys.Lkey, NULL), WV_SUCCESS);
}

void limit_free(int resource)
{
    struct rlimit limit;

    ok_int(getrlimit(resource, &limit), ==, 0);
    limit.rlim_cur = limit.rlim_max;
    ok_int(setrlimit(resource, &limit), ==, 0);
}
