/* SPDX-License-Identifier: MIT */
#ifndef TESTS_ABI_SOCKETS_H
#define TESTS_ABI_SOCKETS_H

#include <winsock2.h>

#include <cstdio>

int native_failures(void);

/* The calls with a length of int, on no socket. How many did not leave `expected` as the last error. */
static int failures_of(const char *whose, int expected)
{
    SOCKADDR_IN address;
    SOCKADDR *any = reinterpret_cast<SOCKADDR *>(&address);
    int length = sizeof(address), failures = 0;
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
        if (result != SOCKET_ERROR || WSAGetLastError() != expected) {
            std::printf("FAIL %s call %d: %d, last error %d\n", whose, i, result, WSAGetLastError());
            failures++;
        }
    }
    return failures;
}

#endif
