/* SPDX-License-Identifier: MIT */

/* A source that knows the system's sockets keeps them (ndvcompat/socket_bind.h). */

#include <sys/socket.h>

#include <winsock2.h>

#include "harness.h"

TEST(socket__of_a_source_that_knows_the_system)
{
    SetLastError(4711);
    ok_int(socket(12345, SOCK_STREAM, 0), ==, -1);
    ok_int(WSAGetLastError(), ==, 4711);
}
