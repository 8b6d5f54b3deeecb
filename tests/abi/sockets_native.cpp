/* SPDX-License-Identifier: MIT */

/* The other source of sockets_bound.cpp. */

#define ND_COMPAT_NATIVE_SOCKETS 1
#include <winsock2.h>

#include <cstdio>

int native_failures(void);

int native_failures(void)
{
    struct sockaddr_in address;
    struct sockaddr *any = reinterpret_cast<struct sockaddr *>(&address);
    int length = sizeof(address), failures = 0;
    char byte;

    for (int i = 0; i < 5; i++) {
        int result = 0;

        WSASetLastError(4711);
        switch (i) {
        case 0:
            result = accept(-1, any, &length);
            break;
        case 1:
            result = getpeername(-1, any, &length);
            break;
        case 2:
            result = getsockname(-1, any, &length);
            break;
        case 3:
            result = getsockopt(-1, SOL_SOCKET, SO_ERROR, &byte, &length);
            break;
        case 4:
            result = static_cast<int>(recvfrom(-1, &byte, 1, 0, any, &length));
            break;
        }
        if (result != -1 || WSAGetLastError() != 4711) {
            std::printf("FAIL the system's call %d: %d, last error %d\n", i, result, WSAGetLastError());
            failures++;
        }
    }
    return failures;
}
