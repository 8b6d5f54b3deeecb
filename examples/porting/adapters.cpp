// Lists the Network Direct adapters of this machine with their limits. A small console program as Visual Studio makes it:
// precompiled header, UNICODE, _tmain, a C file beside the C++ file. Usage: adapters [/v]
#include "stdafx.h"
#include "report.h"

#pragma comment(lib, "ws2_32.lib")
#pragma comment(lib, "ndutil.lib")

static bool g_verbose = false;

static HRESULT ShowAdapter(const SOCKET_ADDRESS &address)
{
    WCHAR text[64];
    DWORD length = ARRAYSIZE(text);
    IND2Adapter *pAdapter = nullptr;
    ND2_ADAPTER_INFO info = {};
    ULONG size = sizeof(info);

    if (WSAAddressToStringW(address.lpSockaddr, address.iSockaddrLength, nullptr, text, &length) != 0)
    {
        return HRESULT_FROM_WIN32(WSAGetLastError());
    }
    HRESULT hr = NdOpenAdapter(IID_IND2Adapter, address.lpSockaddr, address.iSockaddrLength,
                               reinterpret_cast<void **>(&pAdapter));
    if (FAILED(hr))
    {
        return hr;
    }
    info.InfoVersion = ND_VERSION_2;
    hr = pAdapter->Query(&info, &size);
    if (SUCCEEDED(hr))
    {
        wprintf(L"%s: queue pairs of %u and %u requests\n", text, info.MaxReceiveQueueDepth, info.MaxInitiatorQueueDepth);
        if (g_verbose)
        {
            ReportAdapter(&info);
        }
    }
    pAdapter->Release();
    return hr;
}

int _tmain(int argc, TCHAR *argv[])
{
    WSADATA data;
    SIZE_T size = 0;
    int count = 0;

    for (int i = 1; i < argc; i++)
    {
        if (_tcsicmp(argv[i], _T("/v")) == 0)
        {
            g_verbose = true;
        }
    }
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
    {
        return 1;
    }
    HRESULT hr = NdStartup();
    if (SUCCEEDED(hr))
    {
        hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, nullptr, &size);
        if (hr == ND_BUFFER_OVERFLOW)
        {
            SOCKET_ADDRESS_LIST *pList = static_cast<SOCKET_ADDRESS_LIST *>(HeapAlloc(GetProcessHeap(), 0, size));

            hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, pList, &size);
            for (int i = 0; SUCCEEDED(hr) && i < pList->iAddressCount; i++)
            {
                hr = ShowAdapter(pList->Address[i]);
                count++;
            }
            HeapFree(GetProcessHeap(), 0, pList);
        }
        NdCleanup();
    }
    if (FAILED(hr))
    {
        wprintf(L"failed: 0x%08x\n", hr);
        return 1;
    }
    _tprintf(_T("%d adapters\n"), count);
    WSACleanup();
    return 0;
}
