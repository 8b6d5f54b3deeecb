/* SPDX-License-Identifier: MIT */

/* WSASocket, WSAIoctl and notifications (win32-surface.md 4.4). */

#include <winsock2.h>
#include <ws2tcpip.h>

#include <errno.h>

#include "harness.h"
#include "handle.h"

TEST(WSASocket__makes_sockets)
{
    WSAPROTOCOL_INFOW info = { .iAddressFamily = AF_INET, .iSocketType = SOCK_DGRAM, .iProtocol = IPPROTO_UDP };
    SOCKET socket = WSASocketW(AF_INET6, SOCK_STREAM, 0, NULL, 0, WSA_FLAG_OVERLAPPED);
    ULONG pending = 9;
    DWORD bytes = 9;

    ok(socket != INVALID_SOCKET);
    ok_int(WSAIoctl(socket, (DWORD)FIONBIO, &pending, sizeof(pending), NULL, 0, &bytes, NULL, NULL), ==, 0);
    ok_int(closesocket(socket), ==, 0);
    socket = WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, &info, 0, 0);
    ok(socket != INVALID_SOCKET);
    ok_int(WSAIoctl(socket, (DWORD)FIONREAD, NULL, 0, &pending, sizeof(pending), &bytes, NULL, NULL), ==, 0);
    ok_uint(pending, ==, 0);
    ok_uint(bytes, ==, sizeof(pending));
    ok_int(closesocket(socket), ==, 0);
    errno = 4711;
    ok_int(WSASocketA(12345, SOCK_STREAM, 0, NULL, 0, 0), ==, INVALID_SOCKET);
    ok_int(WSAGetLastError(), ==, WSAEAFNOSUPPORT);
    ok_int(errno, ==, 4711);
}

TEST(WSAIoctl__routing_interface)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(80) }, local;
    SOCKET socket = WSASocketW(AF_INET, SOCK_DGRAM, 0, NULL, 0, 0);
    DWORD bytes = 0;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ok_int(WSAIoctl(socket, SIO_ROUTING_INTERFACE_QUERY, &to, sizeof(to), &local, sizeof(local), &bytes, NULL, NULL),
           ==, 0);
    ok_uint(bytes, ==, sizeof(local));
    ok_uint(local.sin_addr.s_addr, ==, htonl(INADDR_LOOPBACK));
    ok_uint(local.sin_port, ==, 0);
    ok_int(WSAIoctl(socket, SIO_ROUTING_INTERFACE_QUERY, &to, sizeof(to), &local, 3, &bytes, NULL, NULL), ==,
           SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    ok_uint(bytes, ==, sizeof(local));
    ok_int(WSAIoctl(socket, SIO_ROUTING_INTERFACE_QUERY, &to, 3, &local, sizeof(local), &bytes, NULL, NULL), ==,
           SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    closesocket(socket);
}

/* The list and its addresses in one buffer; what is needed if that is too small. */
TEST(WSAIoctl__address_list)
{
    SOCKET socket = WSASocketW(AF_INET, SOCK_DGRAM, 0, NULL, 0, 0);
    SOCKET_ADDRESS_LIST *list;
    DWORD needed = 0, bytes = 0;

    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_QUERY, NULL, 0, NULL, 0, &needed, NULL, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    ok_uint(needed, >=, offsetof(SOCKET_ADDRESS_LIST, Address));
    list = malloc(needed);
    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_QUERY, NULL, 0, list, needed, &bytes, NULL, NULL), ==, 0);
    ok_uint(bytes, ==, needed);
    for (INT i = 0; i < list->iAddressCount; i++) {
        ok_int(list->Address[i].iSockaddrLength, ==, sizeof(struct sockaddr_in));
        ok_int(list->Address[i].lpSockaddr->sa_family, ==, AF_INET);
        ok((char *)list->Address[i].lpSockaddr >= (char *)list &&
           (char *)list->Address[i].lpSockaddr + sizeof(struct sockaddr_in) <= (char *)list + needed);
    }
    free(list);
    closesocket(socket);
}

TEST(WSAIoctl__bad_calls)
{
    SOCKET socket = WSASocketW(AF_INET, SOCK_DGRAM, 0, NULL, 0, 0);
    OVERLAPPED ov = { .hEvent = (HANDLE)0x1000 };
    DWORD bytes;

    ok_int(WSAIoctl(socket, 0x12345678, NULL, 0, NULL, 0, &bytes, NULL, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEOPNOTSUPP);
    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_CHANGE, NULL, 0, NULL, 0, &bytes, NULL, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEOPNOTSUPP);
    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_CHANGE, NULL, 0, NULL, 0, &bytes, &ov, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSA_INVALID_HANDLE);
    closesocket(socket);
    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_QUERY, NULL, 0, NULL, 0, &bytes, NULL, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAENOTSOCK);
}

/* Pending until the socket is closed. */
TEST(WSAIoctl__address_list_change)
{
    SOCKET socket = WSASocketW(AF_INET, SOCK_DGRAM, 0, NULL, 0, 0);
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
    DWORD bytes, flags;

    ok_int(WSAIoctl(socket, SIO_ADDRESS_LIST_CHANGE, NULL, 0, NULL, 0, &bytes, &ov, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSA_IO_PENDING);
    ok(!WSAGetOverlappedResult(socket, &ov, &bytes, FALSE, &flags));
    ok_int(WSAGetLastError(), ==, WSA_IO_INCOMPLETE);
    ok_int(closesocket(socket), ==, 0);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    ok(!WSAGetOverlappedResult(socket, &ov, &bytes, TRUE, &flags));
    ok_int(WSAGetLastError(), ==, WSA_OPERATION_ABORTED);
    CloseHandle(ov.hEvent);
    ok_uint(handle_count(), ==, 0);
}

TEST(WSAIoctl__reports_a_success_through_the_structure)
{
    SOCKET socket = WSASocketW(AF_INET, SOCK_DGRAM, 0, NULL, 0, 0);
    OVERLAPPED ov = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
    DWORD bytes = 0, flags;
    ULONG pending;

    ok_int(WSAIoctl(socket, (DWORD)FIONREAD, NULL, 0, &pending, sizeof(pending), NULL, &ov, NULL), ==, 0);
    ok_uint(WaitForSingleObject(ov.hEvent, 0), ==, WAIT_OBJECT_0);
    ok(WSAGetOverlappedResult(socket, &ov, &bytes, TRUE, &flags));
    ok_uint(bytes, ==, sizeof(pending));
    CloseHandle(ov.hEvent);
    closesocket(socket);
}

TEST(WSAProviderConfigChange__never_happens)
{
    HANDLE notification = NULL;

    ok_int(WSAProviderConfigChange(&notification, NULL, NULL), ==, 0);
    ok_ptr(notification, !=, NULL);
    ok_uint(WaitForSingleObject(notification, 0), ==, WAIT_TIMEOUT);
    ok_int(WSAProviderConfigChange(NULL, NULL, NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    CloseHandle(notification);
}

/* Its request belongs to the handle: the end of that ends it, and that of a socket does not. */
TEST(WSAProviderConfigChange__ends_with_its_handle)
{
    HANDLE notifications[2] = { NULL, NULL };
    OVERLAPPED ov[2];
    DWORD bytes, flags;

    memset(ov, 0, sizeof(ov));
    for (int i = 0; i < 2; i++) {
        ov[i].hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
        ok_int(WSAProviderConfigChange(&notifications[i], &ov[i], NULL), ==, SOCKET_ERROR);
        ok_int(WSAGetLastError(), ==, WSA_IO_PENDING);
    }
    ok_int(closesocket(INVALID_SOCKET), ==, SOCKET_ERROR);
    ok_uint(WaitForSingleObject(ov[0].hEvent, 0), ==, WAIT_TIMEOUT);
    ok(CloseHandle(notifications[0]));
    ok_uint(WaitForSingleObject(ov[0].hEvent, 0), ==, WAIT_OBJECT_0);
    ok(!WSAGetOverlappedResult(INVALID_SOCKET, &ov[0], &bytes, FALSE, &flags));
    ok_int(WSAGetLastError(), ==, WSA_OPERATION_ABORTED);
    ok_uint(WaitForSingleObject(ov[1].hEvent, 0), ==, WAIT_TIMEOUT);
    ok(CloseHandle(notifications[1]));
    ok_uint(WaitForSingleObject(ov[1].hEvent, 0), ==, WAIT_OBJECT_0);
    ok_int(WSAProviderConfigChange(&notifications[1], &ov[1], NULL), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSA_INVALID_HANDLE);
    CloseHandle(ov[0].hEvent);
    CloseHandle(ov[1].hEvent);
    ok_uint(handle_count(), ==, 0);
}
