/* SPDX-License-Identifier: MIT */

/* Address text, sockets start-up, error codes (win32-surface.md 4.4, 5). */

#include <errno.h>
#include <ntstatus.h>
#include <signal.h>
#include <unistd.h>
#include <wchar.h>
#include <winsock2.h>
#include <ws2tcpip.h>

#include "error.h"
#include "harness.h"

TEST(WSAStringToAddress__good)
{
    static const struct {
        const char *text;
        int family;
        const char *ip;
        unsigned port, scope;
    } rows[] = {
        { "1.2.3.4", AF_INET, "1.2.3.4", 0, 0 },
        { "1.2.3.4:54321", AF_INET, "1.2.3.4", 54321, 0 },
        { "255.255.255.255:65535", AF_INET, "255.255.255.255", 65535, 0 },
        { "::1", AF_INET6, "::1", 0, 0 },
        { "[::1]", AF_INET6, "::1", 0, 0 },
        { "[::1]:9", AF_INET6, "::1", 9, 0 },
        { "fe80::1%7", AF_INET6, "fe80::1", 0, 7 },
        { "[fe80::1%lo]:80", AF_INET6, "fe80::1", 80, 1 },
        { "::ffff:1.2.3.4", AF_INET6, "::ffff:1.2.3.4", 0, 0 },
    };

    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        for (int wide_form = 0; wide_form < 2; wide_form++) {
            SOCKADDR_STORAGE storage;
            INT length = sizeof(storage);
            wchar_t wide[100];
            char text[100], ip[INET6_ADDRSTRLEN];

            memset(&storage, 0xff, sizeof(storage));
            swprintf(wide, 100, L"%hs", rows[i].text);
            strcpy(text, rows[i].text);
            ok_int(wide_form ? WSAStringToAddressW(wide, rows[i].family, NULL, (LPSOCKADDR)&storage, &length)
                             : WSAStringToAddressA(text, rows[i].family, NULL, (LPSOCKADDR)&storage, &length),
                   ==, 0);
            ok_int(storage.ss_family, ==, rows[i].family);
            if (rows[i].family == AF_INET) {
                struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;

                ok_int(length, ==, sizeof(*v4));
                ok_str(inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof(ip)), rows[i].ip);
                ok_uint(ntohs(v4->sin_port), ==, rows[i].port);
            } else {
                struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;

                ok_int(length, ==, sizeof(*v6));
                ok_str(inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof(ip)), rows[i].ip);
                ok_uint(ntohs(v6->sin6_port), ==, rows[i].port);
                ok_uint(v6->sin6_scope_id, ==, rows[i].scope);
                ok_uint(v6->sin6_flowinfo, ==, 0);
            }
        }
    }
}

TEST(WSAStringToAddress__bad)
{
    static const char *const v4[] = { "", "1.2.3", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:x", "a", "::1", "1.2.3.4 " };
    static const char *const v6[] = { "",       "1.2.3.4",     "[::1", "[::1]x",
                                      "[::1]:", "[::1]:70000", "::1%", "fe80::1%nonexist" };
    SOCKADDR_STORAGE storage;
    INT length = sizeof(storage);
    char text[300];

    for (size_t i = 0; i < ARRAYSIZE(v4); i++) {
        strcpy(text, v4[i]);
        WSASetLastError(0);
        ok_int(WSAStringToAddressA(text, AF_INET, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
        ok_int(WSAGetLastError(), ==, WSAEINVAL);
    }
    for (size_t i = 0; i < ARRAYSIZE(v6); i++) {
        strcpy(text, v6[i]);
        WSASetLastError(0);
        ok_int(WSAStringToAddressA(text, AF_INET6, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
        ok_int(WSAGetLastError(), ==, WSAEINVAL);
    }
    memset(text, '1', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    ok_int(WSAStringToAddressA(text, AF_INET, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
    ok_int(WSAStringToAddressW((LPWSTR)L"1.2.3.\x0664", AF_INET, NULL, (LPSOCKADDR)&storage, &length), ==,
           SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEINVAL);
    strcpy(text, "1.2.3.4");
    ok_int(WSAStringToAddressA(text, AF_UNIX, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
    length = 15;
    ok_int(WSAStringToAddressA(text, AF_INET, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    ok_int(length, ==, 16);
    ok_int(WSAStringToAddressA(NULL, AF_INET, NULL, (LPSOCKADDR)&storage, &length), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
}

TEST(WSAAddressToString__round_trip)
{
    static const char *const rows[] = { "1.2.3.4", "1.2.3.4:54321", "::1", "[::1]:9", "fe80::1%7", "[fe80::1%7]:80" };

    for (size_t i = 0; i < ARRAYSIZE(rows); i++) {
        int family = strstr(rows[i], "::") ? AF_INET6 : AF_INET;
        SOCKADDR_STORAGE storage;
        INT size = sizeof(storage);
        wchar_t wide[64], wanted[64];
        char text[64];
        DWORD length = sizeof(text);

        strcpy(text, rows[i]);
        ok_int(WSAStringToAddressA(text, family, NULL, (LPSOCKADDR)&storage, &size), ==, 0);
        memset(text, 'x', sizeof(text));
        ok_int(WSAAddressToStringA((LPSOCKADDR)&storage, (DWORD)size, NULL, text, &length), ==, 0);
        ok_str(text, rows[i]);
        ok_uint(length, ==, strlen(rows[i]) + 1);
        /* Exactly enough, and one too few. */
        ok_int(WSAAddressToStringW((LPSOCKADDR)&storage, (DWORD)size, NULL, wide, &length), ==, 0);
        swprintf(wanted, 64, L"%hs", rows[i]);
        ok_int(wcscmp(wide, wanted), ==, 0);
        length--;
        ok_int(WSAAddressToStringA((LPSOCKADDR)&storage, (DWORD)size, NULL, text, &length), ==, SOCKET_ERROR);
        ok_int(WSAGetLastError(), ==, WSAEFAULT);
        ok_uint(length, ==, strlen(rows[i]) + 1);
        ok_int(WSAAddressToStringA((LPSOCKADDR)&storage, 3, NULL, text, &length), ==, SOCKET_ERROR);
        ok_int(WSAGetLastError(), ==, WSAEINVAL);
    }
}

TEST(InetPton__and_back)
{
    struct in_addr v4;
    struct in6_addr v6;
    char text[64];
    wchar_t wide[64];

    ok_int(InetPtonA(AF_INET, "1.2.3.4", &v4), ==, 1);
    ok_int(InetPtonW(AF_INET6, L"fe80::2", &v6), ==, 1);
    ok_int(InetPtonA(AF_INET, "1.2.3.4.5", &v4), ==, 0);
    ok_int(InetPtonW(AF_INET, L"\x0661.2.3.4", &v4), ==, 0);
    ok_int(InetPtonA(AF_UNIX, "1.2.3.4", &v4), ==, -1);
    ok_int(WSAGetLastError(), ==, WSAEAFNOSUPPORT);
    ok_int(InetPtonA(AF_INET, NULL, &v4), ==, -1);
    ok_int(WSAGetLastError(), ==, WSAEFAULT);
    ok_int(InetPtonA(AF_INET, "1.2.3.4", &v4), ==, 1);
    ok_str(InetNtopA(AF_INET, &v4, text, sizeof(text)), "1.2.3.4");
    ok_ptr(InetNtopW(AF_INET6, &v6, wide, 64), ==, wide);
    ok_int(wcscmp(wide, L"fe80::2"), ==, 0);
    ok_ptr(InetNtopW(AF_INET6, &v6, wide, 7), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_ptr(InetNtopA(AF_INET, &v4, text, 7), ==, NULL);
    ok_uint(GetLastError(), ==, ERROR_INVALID_PARAMETER);
    ok_ptr(InetNtopA(AF_UNIX, &v4, text, sizeof(text)), ==, NULL);
    ok_uint(GetLastError(), ==, WSAEAFNOSUPPORT);
}

TEST(WSAStartup__counted)
{
    WSADATA data;

    ok_int(WSACleanup(), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSANOTINITIALISED);
    ok_int(WSAStartup(0, &data), ==, WSAVERNOTSUPPORTED);
    ok_int(WSAStartup(MAKEWORD(2, 2), NULL), ==, WSAEFAULT);
    ok_int(WSAStartup(MAKEWORD(2, 2), &data), ==, 0);
    ok_int(WSAStartup(MAKEWORD(1, 1), &data), ==, 0);
    ok_uint(data.wHighVersion, ==, MAKEWORD(2, 2));
    ok_int(WSACleanup(), ==, 0);
    ok_int(WSACleanup(), ==, 0);
    ok_int(WSACleanup(), ==, SOCKET_ERROR);
}

static void own_handler(int number)
{
    (void)number;
}

/* A peer that is gone is a status, as on Windows, and not the end of the process. */
TEST(send__to_a_peer_that_is_gone)
{
    WSADATA data;
    int fds[2];

    ok(signal(SIGPIPE, SIG_DFL) != SIG_ERR); /* whatever this process was started with */
    ok_int(WSAStartup(MAKEWORD(2, 2), &data), ==, 0);
    ok_int(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    ok_int(closesocket(fds[1]), ==, 0);
    ok_int(send(fds[0], "x", 1, 0), ==, SOCKET_ERROR);
    ok_int(errno, ==, EPIPE);
    ok_int(closesocket(fds[0]), ==, 0);
    ok_int(WSACleanup(), ==, 0);
    /* What the program wants from now on stands. */
    ok(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
    ok_int(WSAStartup(MAKEWORD(2, 2), &data), ==, 0);
    ok(signal(SIGPIPE, SIG_DFL) == SIG_DFL);
    ok_int(WSACleanup(), ==, 0);
}

TEST(WSAStartup__leaves_a_handler_of_the_program)
{
    WSADATA data;

    ok(signal(SIGPIPE, own_handler) != SIG_ERR);
    ok_int(WSAStartup(MAKEWORD(2, 2), &data), ==, 0);
    ok(signal(SIGPIPE, SIG_DFL) == own_handler);
    ok_int(WSACleanup(), ==, 0);
}

TEST(closesocket__codes_and_errno)
{
    int fds[2];
    ULONG value = 1;

    ok_int(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    errno = 4711;
    ok_int(ioctlsocket(fds[0], (int)FIONBIO, &value), ==, 0);
    ok_int(write(fds[1], "abc", 3), ==, 3);
    ok_int(ioctlsocket(fds[0], (int)FIONREAD, &value), ==, 0);
    ok_uint(value, ==, 3);
    ok_int(ioctlsocket(fds[0], 0x1234, &value), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAEOPNOTSUPP);
    ok_int(closesocket(fds[0]), ==, 0);
    ok_int(closesocket(fds[0]), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAENOTSOCK);
    ok_int(ioctlsocket(fds[0], (int)FIONBIO, &value), ==, SOCKET_ERROR);
    ok_int(WSAGetLastError(), ==, WSAENOTSOCK);
    ok_int(errno, ==, 4711);
    closesocket(fds[1]);
}

/* Every row of win32-surface.md 5.2. */
TEST(error_from_status__table)
{
    static const struct {
        ULONG status;
        DWORD error;
    } rows[] = {
        { 0x00000000, 0 },    { 0x00000103, 997 },  { 0x80000005, 234 },  { 0x80000011, 170 },  { 0x8000001A, 259 },
        { 0xC0000001, 31 },   { 0xC0000005, 998 },  { 0xC0000008, 6 },    { 0xC000000D, 87 },   { 0xC0000010, 1 },
        { 0xC0000017, 8 },    { 0xC0000030, 87 },   { 0xC000003C, 1117 }, { 0xC000003E, 23 },   { 0xC0000043, 32 },
        { 0xC000009A, 1450 }, { 0xC00000A3, 21 },   { 0xC00000B5, 121 },  { 0xC00000BB, 50 },   { 0xC00000E5, 1359 },
        { 0xC0000120, 995 },  { 0xC000013D, 51 },   { 0xC0000141, 59 },   { 0xC0000184, 22 },   { 0xC0000206, 1784 },
        { 0xC0000209, 68 },   { 0xC000020A, 52 },   { 0xC0000236, 1225 }, { 0xC000023A, 1229 }, { 0xC000023B, 1230 },
        { 0xC000023C, 1231 }, { 0xC000023D, 1232 }, { 0xC0000241, 1236 }, { 0xC00002B6, 1617 }, { 0xC0FFEE00, 317 },
    };

    for (size_t i = 0; i < ARRAYSIZE(rows); i++)
        ok_uint(error_from_status((NTSTATUS)rows[i].status), ==, rows[i].error);
    for (ULONG status = 0xC00000EF; status <= 0xC00000F8; status++)
        ok_uint(error_from_status((NTSTATUS)status), ==, 87);
    ok_uint(error_from_status((NTSTATUS)0x80070490), ==, 1168);
}

static DWORD WINAPI other_error(LPVOID arg)
{
    SetLastError((DWORD)(uintptr_t)arg);
    return GetLastError();
}

TEST(last_error__per_thread_and_shared_with_winsock)
{
    HANDLE thread;
    DWORD code;

    SetLastError(111);
    thread = CreateThread(NULL, 0, other_error, (LPVOID)222, 0, NULL);
    ok_uint(WaitForSingleObject(thread, INFINITE), ==, WAIT_OBJECT_0);
    ok(GetExitCodeThread(thread, &code) && code == 222);
    ok_uint(GetLastError(), ==, 111);
    WSASetLastError(333);
    ok_uint(GetLastError(), ==, 333);
    CloseHandle(thread);
}
