/* SPDX-License-Identifier: MIT */
#include "front.h"

#include <arpa/inet.h>

#include "core/address.h"
#include "core/engine.h"
#include "core/status.h"

struct sockaddr_in front_v4(const char *text)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    ok_int(inet_pton(AF_INET, text, &address.sin_addr), ==, 1);
    return address;
}

struct sockaddr_in6 front_v6(const char *text)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6 };

    ok_int(inet_pton(AF_INET6, text, &address.sin6_addr), ==, 1);
    return address;
}

void front_setup(void)
{
    fake_reset();
    fake_live_ignore(FAKE_OBJ_EVENT_CHANNEL);
    fake_loop_test(engine_on_loop);
    address_list_invalidate();
    ok_status(NdStartup(), S_OK);
}

void front_teardown(void)
{
    ok_status(NdCleanup(), S_OK);
    ok_eventually(fake_live_objects() == 0); /* ids and contexts go on a worker */
    ok_status(DllCanUnloadNow(), S_OK);
    ok_str(fake_violations(), "");
}

IND2Adapter *front_open(const char *text)
{
    struct sockaddr_in address = front_v4(text);
    IND2Adapter *adapter = NULL;

    ok_status(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&address, sizeof(address), (void **)&adapter), S_OK);
    ok(adapter != NULL);
    return adapter;
}

HANDLE front_file(IND2Adapter *adapter)
{
    HANDLE file = NULL;

    ok_status(CALL(adapter, CreateOverlappedFile, &file), ND_SUCCESS);
    ok(file != NULL);
    return file;
}

void front_release(void *object)
{
    ok_uint(CALL((IUnknown *)object, Release), ==, 0);
}

static HRESULT STDMETHODCALLTYPE foreign_QueryInterface(IUnknown *iface, REFIID iid, void **out)
{
    (void)iface;
    (void)iid;
    *out = NULL;
    return E_NOINTERFACE;
}

static ULONG STDMETHODCALLTYPE foreign_count(IUnknown *iface)
{
    (void)iface;
    return 1;
}

static const IUnknownVtbl foreign_vtbl = { foreign_QueryInterface, foreign_count, foreign_count };
IUnknown front_foreign = { &foreign_vtbl };

__attribute__((constructor)) static void name_statuses(void)
{
    harness_status_text = status_name;
}

HARNESS_MAIN
