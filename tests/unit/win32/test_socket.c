/* SPDX-License-Identifier: MIT */

/* Socket calls with Winsock's codes and ways: win32-surface.md 4.4, 5.1. */

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#ifndef _WIN32
#include <unistd.h>
#endif

#ifndef _WIN32
#include <signal.h>
#include <sys/time.h>
#endif

#include "file.h"
#include "harness.h"

/* Windows: int, Linux: socklen_t. */
#ifdef _WIN32
#define LENGTH(of) int of
#else
#define LENGTH(of) socklen_t of
#endif

static void start(void)
{
    WSADATA data;

    ok_int(WSAStartup(MAKEWORD(2, 2), &data), ==, 0);
}

static struct sockaddr_in loopback(void)
{
    struct sockaddr_in address;

    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A bound socket of 127.0.0.1 and its address. */
static SOCKET bound(int type, struct sockaddr_in *address)
{
    SOCKET s = socket(AF_INET, type, 0);
    LENGTH(length) = sizeof(*address);

    ok(s != INVALID_SOCKET);
    *address = loopback();
    ok_int(bind(s, (struct sockaddr *)address, sizeof(*address)), ==, 0);
    ok_int(getsockname(s, (struct sockaddr *)address, &length), ==, 0);
    ok_uint(length, ==, sizeof(*address));
    return s;
}

static void pair(SOCKET ends[2])
{
    struct sockaddr_in address;
    SOCKET listener = bound(SOCK_STREAM, &address);
    LENGTH(length) = sizeof(address);

    ok_int(listen(listener, 1), ==, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    ok_int(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), ==, 0);
    ends[1] = accept(listener, (struct sockaddr *)&address, &length);
    ok(ends[1] != INVALID_SOCKET);
    ok_int(closesocket(listener), ==, 0);
}

static void unblock(SOCKET s)
{
    u_long on = 1;

    ok_int(ioctlsocket(s, (int)FIONBIO, &on), ==, 0);
}

#define FAILS(call, code)                      \
    do {                                       \
        WSASetLastError(4711);                 \
        ok_int((int)(call), ==, SOCKET_ERROR); \
        ok_int(WSAGetLastError(), ==, code);   \
    } while (0)

TEST(socket__failures_set_the_last_error)
{
    struct sockaddr_in address, taken;
    SOCKET s, other;
    char byte = 0;
    LENGTH(length) = sizeof(address);

    start();
    FAILS(socket(12345, SOCK_STREAM, 0), WSAEAFNOSUPPORT);
    s = socket(AF_INET, SOCK_STREAM, 0);
    FAILS(getpeername(s, (struct sockaddr *)&address, &length), WSAENOTCONN);
    /* Wine makes one code of Linux' EPIPE, whatever it means. */
    FAILS(send(s, &byte, 1, 0), under_wine() ? WSAECONNRESET : WSAENOTCONN);
    FAILS(recv(s, &byte, 1, 0), WSAENOTCONN);
    FAILS(shutdown(s, 17), WSAEINVAL);
    FAILS(setsockopt(s, IPPROTO_TCP, 4711, &byte, 4), WSAENOPROTOOPT);
    other = bound(SOCK_STREAM, &taken);
    ok_int(listen(other, 1), ==, 0);
    FAILS(bind(s, (struct sockaddr *)&taken, sizeof(taken)), WSAEADDRINUSE);
    address = loopback();
    address.sin_addr.s_addr = htonl(0x01020304);
    FAILS(bind(s, (struct sockaddr *)&address, sizeof(address)), WSAEADDRNOTAVAIL);
    ok_int(closesocket(other), ==, 0);
    FAILS(connect(s, (struct sockaddr *)&taken, sizeof(taken)), WSAECONNREFUSED);
    ok_int(closesocket(s), ==, 0);
    FAILS(listen(s, 1), WSAENOTSOCK);
    FAILS(bind(s, (struct sockaddr *)&taken, sizeof(taken)), WSAENOTSOCK);
    FAILS(recv(s, &byte, 1, 0), WSAENOTSOCK);
    FAILS(accept(s, NULL, NULL), WSAENOTSOCK);
    WSACleanup();
}

#ifndef _WIN32 /* Windows does not say, Wine clears it. */
TEST(socket__success_leaves_the_last_error)
{
    SOCKET s;

    WSASetLastError(4711);
    s = socket(AF_INET, SOCK_STREAM, 0);
    ok_int(closesocket(s), ==, 0);
    ok_int(WSAGetLastError(), ==, 4711);
}
#endif

TEST(socket__that_does_not_block)
{
    struct sockaddr_in address;
    SOCKET listener, s, accepted;
    struct timeval time = { 20, 0 };
    fd_set writable, failed;
    char byte = 7;
    int error = 4711;
    LENGTH(length) = sizeof(error);

    start();
    listener = bound(SOCK_STREAM, &address);
    ok_int(listen(listener, 1), ==, 0);
    unblock(listener);
    FAILS(accept(listener, NULL, NULL), WSAEWOULDBLOCK);
    s = socket(AF_INET, SOCK_STREAM, 0);
    unblock(s);
    FAILS(connect(s, (struct sockaddr *)&address, sizeof(address)), WSAEWOULDBLOCK);
    FD_ZERO(&writable);
    FD_SET(s, &writable);
    failed = writable;
    ok_int(select(0, NULL, &writable, &failed, &time), ==, 1);
    ok(FD_ISSET(s, &writable) && !FD_ISSET(s, &failed));
    ok_int(getsockopt(s, SOL_SOCKET, SO_ERROR, (char *)&error, &length), ==, 0);
    ok_int(error, ==, 0);
    FD_ZERO(&writable);
    FD_SET(listener, &writable);
    ok_int(select(0, &writable, NULL, NULL, NULL), ==, 1);
    accepted = accept(listener, NULL, NULL);
    ok(accepted != INVALID_SOCKET);
    FAILS(recv(s, &byte, 1, 0), WSAEWOULDBLOCK);
    ok_int(closesocket(accepted), ==, 0);
    ok_int(closesocket(listener), ==, 0);
    ok_int(closesocket(s), ==, 0);
    WSACleanup();
}

TEST(ioctlsocket__tells_what_can_be_read)
{
    SOCKET ends[2];
    u_long waiting = (u_long)-1;

    start();
    pair(ends);
    ok_int(ioctlsocket(ends[1], (int)FIONREAD, &waiting), ==, 0);
    ok_uint(waiting, ==, 0);
    ok_int(send(ends[0], "12345", 5, 0), ==, 5);
    ok_eventually(ioctlsocket(ends[1], (int)FIONREAD, &waiting) == 0 && waiting != 0);
    ok_uint(waiting, ==, 5);
    closesocket(ends[0]);
    closesocket(ends[1]);
    FAILS(ioctlsocket(ends[1], (int)FIONREAD, &waiting), WSAENOTSOCK);
    WSACleanup();
}

TEST(gethostname__sets_the_last_error)
{
    char name[256] = "";

    start();
    ok_int(gethostname(name, sizeof(name)), ==, 0);
    ok(name[0] != 0);
    FAILS(gethostname(name, 1), WSAEFAULT);
    WSACleanup();
}

TEST(select__a_refused_connect_is_in_the_third_set)
{
    struct sockaddr_in address;
    SOCKET s = INVALID_SOCKET;
    struct timeval time = { 20, 0 };
    fd_set writable, failed;
    int error = 0;
    LENGTH(length) = sizeof(error);

    start();
    s = bound(SOCK_STREAM, &address); /* a port that nobody listens at */
    closesocket(s);
    s = socket(AF_INET, SOCK_STREAM, 0);
    unblock(s);
    FAILS(connect(s, (struct sockaddr *)&address, sizeof(address)), WSAEWOULDBLOCK);
    FD_ZERO(&writable);
    FD_SET(s, &writable);
    failed = writable;
    ok_int(select(0, NULL, &writable, &failed, &time), ==, 1);
    ok(!FD_ISSET(s, &writable) && FD_ISSET(s, &failed));
    ok_int(getsockopt(s, SOL_SOCKET, SO_ERROR, (char *)&error, &length), ==, 0);
    ok_int(error, ==, WSAECONNREFUSED);
    closesocket(s);
    WSACleanup();
}

TEST(select__time_and_sets)
{
    SOCKET ends[2];
    struct timeval time = { 0, 30000 };
    fd_set readable, none;
    uint64_t begun;
    char byte = 1;

    start();
    pair(ends);
    FD_ZERO(&none);
    FAILS(select(0, NULL, NULL, NULL, &time), WSAEINVAL);
    FD_ZERO(&readable);
    FD_SET(ends[0], &readable);
    FD_SET(ends[1], &readable);
    begun = GetTickCount64();
    ok_int(select(0, &readable, NULL, NULL, &time), ==, 0);
    ok_uint(GetTickCount64() - begun + 16, >=, 30);
    ok(!FD_ISSET(ends[0], &readable) && !FD_ISSET(ends[1], &readable));
    ok(time.tv_sec == 0 && time.tv_usec == 30000);
    ok_int(send(ends[0], &byte, 1, 0), ==, 1);
    FD_SET(ends[0], &readable);
    FD_SET(ends[1], &readable);
    ok_int(select(0, &readable, NULL, NULL, NULL), ==, 1);
    ok(!FD_ISSET(ends[0], &readable) && FD_ISSET(ends[1], &readable));
    closesocket(ends[0]);
    FD_ZERO(&readable);
    FD_SET(ends[1], &readable);
    none = readable;
    ok_int(select(0, &readable, &none, NULL, NULL), ==, 2);
    ok_int(recv(ends[1], &byte, 1, 0), ==, 1);
    ok_int(recv(ends[1], &byte, 1, 0), ==, 0);
    closesocket(ends[1]);
    FAILS(select(0, &readable, NULL, NULL, NULL), WSAENOTSOCK);
    WSACleanup();
}

TEST(recv__time_of_the_option)
{
    SOCKET ends[2];
    DWORD ms = 30;
    char byte;
    LENGTH(length) = sizeof(ms);

    start();
    pair(ends);
    ok_int(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, (char *)&ms, sizeof(ms)), ==, 0);
    FAILS(recv(ends[0], &byte, 1, 0), WSAETIMEDOUT);
    ms = 0;
    ok_int(getsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, (char *)&ms, &length), ==, 0);
    ok_uint(ms, >=, 30);
    ok_uint(ms, <=, 40); /* in units of the system's clock */
    closesocket(ends[0]);
    closesocket(ends[1]);
    WSACleanup();
}

TEST(recvfrom__longer_datagrams)
{
    struct sockaddr_in address, from;
    SOCKET s;
    char sent[8] = "1234567", got[8] = "";
    LENGTH(length) = sizeof(from);

    start();
    s = bound(SOCK_DGRAM, &address);
    for (int i = 0; i < 3; i++)
        ok_int(sendto(s, sent, sizeof(sent), 0, (struct sockaddr *)&address, sizeof(address)), ==, sizeof(sent));
    FAILS(recvfrom(s, got, 3, 0, (struct sockaddr *)&from, &length), WSAEMSGSIZE);
    ok(memcmp(got, "123\0", 4) == 0);
    FAILS(recv(s, got, 3, 0), WSAEMSGSIZE);
    length = sizeof(from);
    ok_int(recvfrom(s, got, sizeof(got), 0, (struct sockaddr *)&from, &length), ==, sizeof(sent));
    ok(strcmp(got, sent) == 0);
    ok_uint(length, ==, sizeof(from));
    ok(from.sin_port == address.sin_port && from.sin_addr.s_addr == address.sin_addr.s_addr);
    closesocket(s);
    WSACleanup();
}

#ifdef __SANITIZE_THREAD__
/* A program of Windows may close a socket that other threads wait for, and the kernel knows how to; the sanitizer holds it for a
 * race. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:ndv_closesocket\n";
}
#endif

static DWORD WINAPI accept_one(LPVOID argument)
{
    SOCKET s = accept(*(SOCKET *)argument, NULL, NULL);

    return s == INVALID_SOCKET ? (DWORD)WSAGetLastError() : 0;
}

static DWORD WINAPI receive_one(LPVOID argument)
{
    char byte;

    return recv(*(SOCKET *)argument, &byte, 1, 0) == 1;
}

TEST(closesocket__wakes_those_who_wait)
{
    struct sockaddr_in address;
    SOCKET listener, ends[2];
    HANDLE threads[2];
    DWORD code = 4711;

    start();
    listener = bound(SOCK_STREAM, &address);
    ok_int(listen(listener, 1), ==, 0);
    pair(ends);
    threads[0] = CreateThread(NULL, 0, accept_one, &listener, 0, NULL);
    threads[1] = CreateThread(NULL, 0, receive_one, &ends[0], 0, NULL);
    Sleep(100);
    ok_int(closesocket(listener), ==, 0);
    ok_int(closesocket(ends[0]), ==, 0);
    ok_uint(WaitForMultipleObjects(2, threads, TRUE, INFINITE), ==, WAIT_OBJECT_0);
    ok_int(GetExitCodeThread(threads[0], &code), ==, TRUE);
    ok(code == WSAEINTR || (under_wine() && code == ERROR_OPERATION_ABORTED));
    ok_int(GetExitCodeThread(threads[1], &code), ==, TRUE);
    ok_uint(code, ==, 0);
    CloseHandle(threads[0]);
    CloseHandle(threads[1]);
    closesocket(ends[1]);
    WSACleanup();
}

TEST(setsockopt__exclusive_use)
{
    SOCKET s;
    BOOL on = TRUE;

    start();
    s = socket(AF_INET, SOCK_STREAM, 0);
    ok_int(setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (char *)&on, sizeof(on)), ==, 0);
    closesocket(s);
    WSACleanup();
}

TEST(send__to_a_peer_that_is_gone)
{
    SOCKET ends[2];
    char byte = 1;
    int result, code = 0;

    start();
    pair(ends);
    ok_int(shutdown(ends[1], SD_SEND), ==, 0);
    FAILS(send(ends[1], &byte, 1, 0), WSAESHUTDOWN);
    closesocket(ends[1]);
    do {
        result = (int)send(ends[0], &byte, 1, 0);
        code = WSAGetLastError();
    } while (result == 1);
    ok(code == WSAECONNRESET || code == WSAECONNABORTED);
    closesocket(ends[0]);
    WSACleanup();
}

TEST(accept__takes_over_whether_the_listener_blocks)
{
    struct sockaddr_in address;
    SOCKET listener, s[2], accepted;
    DWORD ms = 100;
    u_long off = 0;
    char byte = 7;
    fd_set readable;

    start();
    listener = bound(SOCK_STREAM, &address);
    ok_int(listen(listener, 2), ==, 0);
    unblock(listener);
    for (int i = 0; i < 2; i++) {
        s[i] = socket(AF_INET, SOCK_STREAM, 0);
        ok_int(connect(s[i], (struct sockaddr *)&address, sizeof(address)), ==, 0);
    }
    FD_ZERO(&readable);
    FD_SET(listener, &readable);
    ok_int(select(0, &readable, NULL, NULL, NULL), ==, 1);
    accepted = accept(listener, NULL, NULL);
    ok(accepted != INVALID_SOCKET);
    /* One that blocks ends here with another code. */
    ok_int(setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, (char *)&ms, sizeof(ms)), ==, 0);
    FAILS(recv(accepted, &byte, 1, 0), WSAEWOULDBLOCK);
    closesocket(accepted);
    ok_int(ioctlsocket(listener, (int)FIONBIO, &off), ==, 0);
    accepted = accept(listener, NULL, NULL);
    ok(accepted != INVALID_SOCKET);
    closesocket(listener);
    closesocket(s[0]);
    closesocket(s[1]);
    ok_int(recv(accepted, &byte, 1, 0), ==, 0);
    closesocket(accepted);
    WSACleanup();
}

#ifndef _WIN32 /* A file is none of the integers there. */
TEST(closesocket__of_a_file)
{
    int ends[2];
    char byte = 5;

    ok_int(pipe(ends), ==, 0);
    FAILS(closesocket(ends[0]), WSAENOTSOCK);
    ok_int(write(ends[1], &byte, 1), ==, 1);
    ok_int(read(ends[0], &byte, 1), ==, 1);
    close(ends[0]);
    close(ends[1]);
    FAILS(closesocket(ends[0]), WSAENOTSOCK);
    FAILS(closesocket(INVALID_SOCKET), WSAENOTSOCK);
}
#endif

TEST(socket__of_IPv6_takes_IPv6_alone)
{
    start();
    for (int i = 0; i < 4; i++) {
        int type = i % 2 ? SOCK_STREAM : SOCK_DGRAM;
        SOCKET s = i < 2 ? socket(AF_INET6, type, 0) : WSASocketW(AF_INET6, type, 0, NULL, 0, WSA_FLAG_OVERLAPPED);
        int only = 0;
        LENGTH(length) = sizeof(only);

        ok(s != INVALID_SOCKET);
        ok_int(getsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, (char *)&only, &length), ==, 0);
        ok_int(only, ==, 1);
        closesocket(s);
    }
    WSACleanup();
}

#ifndef _WIN32 /* which has no signals */
static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

TEST(select__goes_on_after_a_signal)
{
    struct sockaddr_in address;
    struct timeval time = { 0, 200000 };
    struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
    struct sigaction action;
    SOCKET s = bound(SOCK_DGRAM, &address);
    fd_set readable;
    uint64_t begun = GetTickCount64();

    memset(&action, 0, sizeof(action));
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    ok_int(sigaction(SIGALRM, &action, NULL), ==, 0);
    ok_int(setitimer(ITIMER_REAL, &timer, NULL), ==, 0);
    FD_ZERO(&readable);
    FD_SET(s, &readable);
    ok_int(select(0, &readable, NULL, NULL, &time), ==, 0);
    ok_int(signals, ==, 1);
    ok_uint(GetTickCount64() - begun + 16, >=, 200);
    closesocket(s);
}
#endif

TEST(send__of_a_socket_that_is_only_bound)
{
    struct sockaddr_in address;
    SOCKET s;
    char byte = 1;

    start();
    s = bound(SOCK_STREAM, &address);
    /* As above. */
    FAILS(send(s, &byte, 1, 0), under_wine() ? WSAECONNRESET : WSAENOTCONN);
    closesocket(s);
    WSACleanup();
}

TEST(bind__over_connections_that_have_ended)
{
    struct sockaddr_in address;
    SOCKET listener, second, ends[2];
    char byte;

    start();
    listener = bound(SOCK_STREAM, &address);
    /* Also before it listens. */
    second = socket(AF_INET, SOCK_STREAM, 0);
    FAILS(bind(second, (struct sockaddr *)&address, sizeof(address)), WSAEADDRINUSE);
    ok_int(listen(listener, 1), ==, 0);
    FAILS(bind(second, (struct sockaddr *)&address, sizeof(address)), WSAEADDRINUSE);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    ok_int(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), ==, 0);
    ends[1] = accept(listener, NULL, NULL);
    ok(ends[1] != INVALID_SOCKET);
    /* The side of the listener closes first: it is the one that the connection waits at. */
    closesocket(ends[1]);
    ok_int(recv(ends[0], &byte, 1, 0), ==, 0);
    closesocket(ends[0]);
    closesocket(listener);
    ok_int(bind(second, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    FAILS(bind(listener, (struct sockaddr *)&address, sizeof(address)), WSAEADDRINUSE);
    ok_int(listen(second, 1), ==, 0);
    closesocket(listener);
    closesocket(second);
    WSACleanup();
}
