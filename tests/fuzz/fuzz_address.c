/* SPDX-License-Identifier: MIT */
/* Address text: whatever is taken for an address is printed and read again as the same one, buffers are kept to, and a
 * refusal says why. First byte: family, form, room; the rest is text. */
#include <ws2tcpip.h>

#include "fuzz.h"

#define ROOM 80

static void print_and_read_again(const struct sockaddr_storage *address, INT length, INT family, DWORD room)
{
    struct sockaddr_storage again = { 0 };
    char narrow[ROOM + 1];
    WCHAR wide[ROOM + 1];
    DWORD needed = room;
    INT size = sizeof(again);

    memset(narrow, 0x7f, sizeof(narrow));
    if (WSAAddressToStringA((LPSOCKADDR)address, (DWORD)length, NULL, narrow, &needed) != 0) {
        must(WSAGetLastError() == WSAEFAULT && needed > room);
        for (size_t i = 0; i <= room; i++)
            must(narrow[i] == 0x7f);
        must(needed <= ROOM);
        must(WSAAddressToStringA((LPSOCKADDR)address, (DWORD)length, NULL, narrow, &needed) == 0);
    }
    must(needed <= ROOM && strlen(narrow) + 1 == needed);
    needed = ROOM;
    must(WSAAddressToStringW((LPSOCKADDR)address, (DWORD)length, NULL, wide, &needed) == 0);
    must(wcslen(wide) == strlen(narrow));
    must(WSAStringToAddressA(narrow, family, NULL, (LPSOCKADDR)&again, &size) == 0);
    must(size == length && memcmp(&again, address, (size_t)length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { data, data + size };
    uint8_t how = input_byte(&input);
    INT family = how & 1 ? AF_INET6 : AF_INET,
        length = how & 4 ? (INT)(how >> 3) : (INT)sizeof(struct sockaddr_storage);
    INT given = length, wanted = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    struct sockaddr_storage address;
    size_t left = input_left(&input), i;
    char *narrow = malloc(left + 1);
    WCHAR *wide = malloc((left + 1) * sizeof(*wide));
    uint8_t binary[sizeof(struct in6_addr)];
    INT status;

    /* In blocks of their own, so that reading past the end shows. */
    memcpy(narrow, input.next, left);
    narrow[left] = 0;
    for (i = 0; i <= left; i++)
        wide[i] = (WCHAR)(how & 0x80 && i < left ? (WCHAR)((uint8_t)narrow[i] * 257u) : (unsigned char)narrow[i]);
    memset(&address, 0xa5, sizeof(address));
    WSASetLastError(0);
    if (how & 2)
        status = WSAStringToAddressW(wide, family, NULL, (LPSOCKADDR)&address, &length);
    else
        status = WSAStringToAddressA(narrow, family, NULL, (LPSOCKADDR)&address, &length);
    if (status == 0) {
        must(length == wanted && given >= wanted);
        must(address.ss_family == family);
        print_and_read_again(&address, length, family, how >> 2);
    } else {
        must(status == SOCKET_ERROR);
        must(WSAGetLastError() == WSAEINVAL || (WSAGetLastError() == WSAEFAULT && length == wanted && given < wanted));
        for (i = 0; i < sizeof(address); i++)
            must(((uint8_t *)&address)[i] == 0xa5);
    }
    if (InetPtonA(family, narrow, binary) == 1) {
        char text[INET6_ADDRSTRLEN];
        uint8_t again[sizeof(binary)];

        must(InetNtopA(family, binary, text, sizeof(text)) == text);
        must(InetPtonA(family, text, again) == 1);
        must(memcmp(binary, again, family == AF_INET ? 4 : 16) == 0);
    }
    InetPtonW(family, wide, binary);
    free(narrow);
    free(wide);
    return 0;
}
