/* SPDX-License-Identifier: MIT */
/* A C application as it would be written for Windows. */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>
#include <stdio.h>

static unsigned passed, failed;

static void check(int right, const char *what)
{
    if (right) {
        passed++;
    } else {
        failed++;
        printf("FAIL C: %s\n", what);
    }
}

int main(void)
{
    SOCKET_ADDRESS_LIST *list = NULL;
    SIZE_T size = 0;
    ULONG bytes;
    WSADATA data;
    HRESULT hr;
    HANDLE event, port;
    OVERLAPPED *ov;
    ULONG_PTR key;

    check(WSAStartup(MAKEWORD(2, 2), &data) == 0 && data.wVersion == MAKEWORD(2, 2), "WSAStartup");
    check(ndverbs_version() == NDVERBS_VERSION, "library and headers are of one version");
    check(!strcmp(ndverbs_status_text(ND_CONNECTION_REFUSED), "ND_CONNECTION_REFUSED"), "ndverbs_status_text");

    check(NdQueryAddressList(0, NULL, &size) == ND_DEVICE_NOT_READY, "NdQueryAddressList before NdStartup");
    check(NdStartup() == S_OK, "NdStartup");
    hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, NULL, &size);
    check(hr == ND_BUFFER_OVERFLOW || (hr == ND_SUCCESS && !size), "NdQueryAddressList for the size");
    while (hr == ND_BUFFER_OVERFLOW) {
        free(list);
        list = (SOCKET_ADDRESS_LIST *)malloc(size);
        hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, list, &size);
    }
    check(hr == ND_SUCCESS, "NdQueryAddressList");
    for (int i = 0; list && i < list->iAddressCount; i++) {
        IND2Adapter *adapter = NULL;
        ND2_ADAPTER_INFO info = { .InfoVersion = ND_VERSION_2 };

        hr = NdOpenAdapter(&IID_IND2Adapter, list->Address[i].lpSockaddr, list->Address[i].iSockaddrLength,
                           (void **)&adapter);
        check(hr == ND_SUCCESS, "NdOpenAdapter");
        if (hr != ND_SUCCESS)
            continue;
        bytes = sizeof(info);
        check(adapter->lpVtbl->Query(adapter, &info, &bytes) == ND_SUCCESS && info.MaxCompletionQueueDepth, "Query");
        check(adapter->lpVtbl->Release(adapter) == 0, "Release");
    }
    free(list);
    check(NdCleanup() == S_OK, "NdCleanup");
    check(NdCleanup() == ND_DEVICE_NOT_READY, "NdCleanup without NdStartup");

    event = CreateEventW(NULL, FALSE, TRUE, NULL);
    check(event && WaitForSingleObject(event, 0) == WAIT_OBJECT_0 && WaitForSingleObject(event, 0) == WAIT_TIMEOUT,
          "an auto-reset event");
    check(CloseHandle(event), "CloseHandle");
    port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);
    check(port && PostQueuedCompletionStatus(port, 7, 42, NULL), "a completion port");
    check(GetQueuedCompletionStatus(port, (LPDWORD)&bytes, &key, &ov, INFINITE) && bytes == 7 && key == 42 && !ov,
          "its packet");
    check(CloseHandle(port) && !CloseHandle(port) && GetLastError() == ERROR_INVALID_HANDLE, "a stale handle");
    check(WSACleanup() == 0, "WSACleanup");

    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
