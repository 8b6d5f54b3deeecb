/* SPDX-License-Identifier: MIT */

/* Two sources of a program, of which one has Winsock's calls and the other the system's: each keeps its own, also those with a
 * length of int. Linked in both orders. */

#include <winsock2.h>

#include <cstdio>

int native_failures(void);

int main(void)
{
    SOCKADDR_IN address;
    SOCKADDR *any = reinterpret_cast<SOCKADDR *>(&address);
    int length = sizeof(address), failures = native_failures();
    char byte;

    for (int i = 0; i < 5; i++) {
        int result = 0;

        WSASetLastError(4711);
        switch (i) {
        case 0:
            result = accept(INVALID_SOCKET, any, &length);
            break;
        case 1:
            result = getpeername(INVALID_SOCKET, any, &length);
            break;
        case 2:
            result = getsockname(INVALID_SOCKET, any, &length);
            break;
        case 3:
            result = getsockopt(INVALID_SOCKET, SOL_SOCKET, SO_ERROR, &byte, &length);
            break;
        case 4:
            result = static_cast<int>(recvfrom(INVALID_SOCKET, &byte, 1, 0, any, &length));
            break;
        }
        if (result != SOCKET_ERROR || WSAGetLastError() != WSAENOTSOCK) {
            std::printf("FAIL Winsock's call %d: %d, last error %d\n", i, result, WSAGetLastError());
            failures++;
        }
    }
    std::printf("%d passed, %d failed, 0 skipped\n", 10 - failures, failures);
    return failures != 0;
}
