/* SPDX-License-Identifier: MIT */
/* A C++ application as it would be written for Windows. Without INITGUID: the ids come from the library. */
#include <functional>
#include <windows.h>
#include <ndsupport.h>
#include <ndverbs.h>
#include <iba/ibat.h>
#include <map>
#include <memory>
#include <vector>

static unsigned passed, failed;

static void check(bool right, const char *what)
{
    if (right) {
        passed++;
    } else {
        failed++;
        std::printf("FAIL C++: %s\n", what);
    }
}

struct Releaser {
    void operator()(IUnknown *object) const
    {
        object->Release();
    }
};

int main()
{
    SIZE_T size = 0;
    std::vector<char> buffer;
    HRESULT hr;
    SOCKADDR_INET none = {};
    IBAT_PATH_BLOB path;

    check(NdStartup() == S_OK, "NdStartup");
    while ((hr = NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES,
                                    size ? reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data()) : nullptr, &size)) ==
           ND_BUFFER_OVERFLOW)
        buffer.resize(size);
    check(hr == ND_SUCCESS, "NdQueryAddressList");
    if (size) {
        auto list = reinterpret_cast<SOCKET_ADDRESS_LIST *>(buffer.data());

        for (int i = 0; i < list->iAddressCount; i++) {
            IND2Adapter *raw = nullptr;

            hr = NdOpenAdapter(IID_IND2Adapter, list->Address[i].lpSockaddr,
                               static_cast<SIZE_T>(list->Address[i].iSockaddrLength), reinterpret_cast<void **>(&raw));
            check(SUCCEEDED(hr), "NdOpenAdapter");
            if (FAILED(hr))
                continue;

            std::unique_ptr<IND2Adapter, Releaser> adapter(raw);
            HANDLE file = nullptr;
            IND2CompletionQueue *cq = nullptr;

            check(adapter->CreateOverlappedFile(&file) == ND_SUCCESS, "CreateOverlappedFile");
            check(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 16, 0, 0,
                                                 reinterpret_cast<void **>(&cq)) == ND_SUCCESS,
                  "CreateCompletionQueue");
            if (cq) {
                ND2_RESULT result;

                check(cq->GetResults(&result, 1) == 0, "GetResults of an empty queue");
                check(cq->Release() == 0, "Release");
            }
            CloseHandle(file);
        }
    }
    none.Ipv4.sin_family = AF_INET;
    check(NdCheckAddress(reinterpret_cast<const SOCKADDR *>(&none), sizeof(none.Ipv4)) == ND_INVALID_ADDRESS,
          "NdCheckAddress of 0.0.0.0");
    check(IBAT::QueryPath(reinterpret_cast<const SOCKADDR *>(&none), reinterpret_cast<const SOCKADDR *>(&none),
                          &path) == WV_INVALID_ADDRESS,
          "IBAT::QueryPath from 0.0.0.0");
    check(IBAT::QueryPath(nullptr, nullptr, &path) == WV_INVALID_PARAMETER, "IBAT::QueryPath from nowhere");
    check(NdCleanup() == S_OK, "NdCleanup");
    check(min(1u, 2u) == 1, "min");

    std::printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
