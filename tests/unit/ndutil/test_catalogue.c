/* SPDX-License-Identifier: MIT */

/* The second door: the provider catalogue, the class factory, and that both doors lead to the same adapters. */

#include <wchar.h>
#include <ws2spi.h>

#include "front.h"

SETUP
{
    front_setup();
}

TEARDOWN
{
    front_teardown();
}

static DWORD catalogue(WSAPROTOCOL_INFOW *info, DWORD count)
{
    DWORD length = count * (DWORD)sizeof(*info);
    INT error = 0;
    int found = WSCEnumProtocols(NULL, info, &length, &error);

    ok_int(found, >=, 0);
    return (DWORD)found;
}

TEST(WSCEnumProtocols__size_contract)
{
    WSAPROTOCOL_INFOW info[8];
    DWORD length = 0, needed;
    INT error = 0, none[2] = { IPPROTO_TCP, 0 };

    ok_int(WSCEnumProtocols(NULL, NULL, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAENOBUFS);
    needed = length;
    ok_uint(needed, ==, 4 * sizeof(info[0]));
    length = needed - 1;
    ok_int(WSCEnumProtocols(NULL, info, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAENOBUFS);
    ok_uint(length, ==, needed);
    ok_int(WSCEnumProtocols(NULL, info, &length, &error), ==, 4);
    ok_int(WSCEnumProtocols(none, info, &length, &error), ==, 0);
    ok_int(WSCEnumProtocols(NULL, info, NULL, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAEFAULT);
    ok_int(WSCEnumProtocols(NULL, info, &length, NULL), ==, SOCKET_ERROR);
}

/* The filters of the reference helper library and of the applications that walk the catalogue. tests/lists: A2. */
TEST(WSCEnumProtocols__what_applications_look_for)
{
    const DWORD service = XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA;
    WSAPROTOCOL_INFOW info[8];
    unsigned rows[2][2] = { { 0 } };

    ok_uint(catalogue(info, 8), ==, 4);
    for (int i = 0; i < 4; i++) {
        bool v1 = info[i].iVersion == ND_VERSION_1, v6 = info[i].iAddressFamily == AF_INET6;

        ok_uint(info[i].dwServiceFlags1 & service, ==, service);
        ok_uint(info[i].dwProviderFlags, ==, PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER);
        ok(v1 || info[i].iVersion == ND_VERSION_2);
        ok(v6 || info[i].iAddressFamily == AF_INET);
        rows[v1][v6]++;
        ok_int(info[i].iSocketType, ==, -1);
        ok_int(info[i].iProtocol, ==, 0);
        ok_int(info[i].iProtocolMaxOffset, ==, 0);
        ok(wcslen(info[i].szProtocol) > 0);
        /* One provider for each version, and it serves both families. */
        for (int k = 0; k < i; k++) {
            ok(info[i].dwCatalogEntryId != info[k].dwCatalogEntryId);
            ok_int(IsEqualGUID(&info[i].ProviderId, &info[k].ProviderId) != 0, ==,
                   info[i].iVersion == info[k].iVersion);
        }
    }
    ok(rows[0][0] == 1 && rows[0][1] == 1 && rows[1][0] == 1 && rows[1][1] == 1);
    /* A program that does not look at the version and takes the first means version 2. */
    ok_int(info[0].iVersion, ==, ND_VERSION_2);
}

/* As the walk of version 1 goes: its entry, the class factory of the module, the provider. */
TEST(WSCEnumProtocols__leads_to_version_1)
{
    WSAPROTOCOL_INFOW info[8];
    IClassFactory *factory;
    INDProvider *provider = NULL;
    WCHAR path[MAX_PATH];
    INT length = MAX_PATH, error = 0;
    int i = 0;

    catalogue(info, 8);
    while (info[i].iVersion != ND_VERSION_1)
        i++;
    ok_int(WSCGetProviderPath(&info[i].ProviderId, path, &length, &error), ==, 0);
    ok_status(DllGetClassObject(&info[i].ProviderId, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_INDProvider, (void **)&provider), S_OK);
    ok(provider != NULL);
    front_release(provider);
    front_release(factory);
}

TEST(WSCGetProviderPath__statuses)
{
    WSAPROTOCOL_INFOW info[8];
    WCHAR path[MAX_PATH];
    INT length = 0, error = 0, needed;
    GUID other = IID_IUnknown;

    catalogue(info, 8);
    ok_int(WSCGetProviderPath(&info[0].ProviderId, NULL, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAEFAULT);
    needed = length;
    length = needed - 1;
    ok_int(WSCGetProviderPath(&info[0].ProviderId, path, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAEFAULT);
    ok_int(length, ==, needed);
    ok_int(WSCGetProviderPath(&info[1].ProviderId, path, &length, &error), ==, 0);
    ok_int(wcslen(path) + 1, ==, needed);
    ok(!wcsncmp(path, L"libndverbs.so", 13));
    length = MAX_PATH;
    ok_int(WSCGetProviderPath(&other, path, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAEINVAL);
    ok_int(WSCGetProviderPath(NULL, path, &length, &error), ==, SOCKET_ERROR);
    ok_int(error, ==, WSAEFAULT);
    ok_int(WSCGetProviderPath(&other, path, NULL, &error), ==, SOCKET_ERROR);
    ok_int(WSCGetProviderPath(&other, path, &length, NULL), ==, SOCKET_ERROR);
}

TEST(factory__makes_providers)
{
    IClassFactory *factory = NULL;
    IND2Provider *provider = NULL;
    void *object = &object;

    ok_status(DllGetClassObject(&IID_IUnknown, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(DllCanUnloadNow(), S_FALSE);
    ok_status(CALL(factory, QueryInterface, &IID_IClassFactory, &object), S_OK);
    ok_ptr(object, ==, factory);
    ok_uint(CALL(factory, Release), ==, 1);
    ok_status(CALL(factory, QueryInterface, &IID_IND2Provider, &object), E_NOINTERFACE);
    ok_ptr(object, ==, NULL);
    ok_status(CALL(factory, QueryInterface, &IID_IUnknown, NULL), E_POINTER);

    ok_status(CALL(factory, CreateInstance, &front_foreign, &IID_IND2Provider, (void **)&provider),
              CLASS_E_NOAGGREGATION);
    ok_ptr(provider, ==, NULL);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_IND2Adapter, &object), E_NOINTERFACE);
    ok_ptr(object, ==, NULL);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_IND2Provider, NULL), E_POINTER);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_IND2Provider, (void **)&provider), S_OK);
    front_release(factory);
    ok_status(DllCanUnloadNow(), S_FALSE);
    front_release(provider);
    ok_status(DllCanUnloadNow(), S_OK);
}

TEST(factory__lock_and_no_memory)
{
    IClassFactory *factory = NULL;
    void *object = &object;

    ok_status(DllGetClassObject(NULL, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, LockServer, TRUE), S_OK);
    fake_alloc_fail(1);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_IND2Provider, &object), E_OUTOFMEMORY);
    fake_alloc_clear();
    ok_ptr(object, ==, NULL);
    fake_alloc_fail(1);
    ok_status(DllGetClassObject(NULL, &IID_IClassFactory, &object), E_OUTOFMEMORY);
    fake_alloc_clear();
    ok_ptr(object, ==, NULL);
    ok_status(CALL(factory, LockServer, FALSE), S_OK);
    front_release(factory);
    ok_status(DllCanUnloadNow(), S_OK);
}

/* An adapter is the same by whichever door. */
TEST(factory__same_adapters_as_NdOpenAdapter)
{
    struct sockaddr_in address = front_v4("10.1.1.1");
    ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };
    ULONG size = sizeof(info);
    IClassFactory *factory;
    IND2Provider *provider;
    IND2Adapter *adapter, *other;
    UINT64 id = 0;

    ok_status(DllGetClassObject(NULL, &IID_IClassFactory, (void **)&factory), S_OK);
    ok_status(CALL(factory, CreateInstance, NULL, &IID_IND2Provider, (void **)&provider), S_OK);
    ok_status(CALL(provider, ResolveAddress, (struct sockaddr *)&address, sizeof(address), &id), ND_SUCCESS);
    ok_status(CALL(provider, OpenAdapter, &IID_IND2Adapter, id, (void **)&adapter), ND_SUCCESS);
    front_release(provider);
    front_release(factory);
    other = front_open("10.1.1.1");
    ok_status(CALL(other, Query, &info, &size), ND_SUCCESS);
    ok_uint(info.AdapterId, ==, id);
    front_release(adapter);
    front_release(other);
}
