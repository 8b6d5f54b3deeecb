/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pingpong_nd.h"

void __attribute__((noreturn)) fail(const char *what, HRESULT status)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s (0x%08X)\n", PROGRAM, what, ndverbs_status_text(status), (unsigned int)status);
    exit(1);
}

void __attribute__((noreturn)) refuse(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", PROGRAM, what, why);
    exit(1);
}

void check(const char *what, HRESULT status)
{
    if (status != ND_SUCCESS)
        fail(what, status);
}

void address_name(struct address *address)
{
    DWORD length = sizeof(address->text);

    if (WSAAddressToStringA(&address->any, address->length, NULL, address->text, &length) != 0)
        strcpy(address->text, "?");
}

void address_parse(struct address *address, const char *text)
{
    INT length = sizeof(address->v6);

    if (WSAStringToAddressA((LPSTR)text, AF_INET, NULL, &address->any, &length) != 0) {
        length = sizeof(address->v6);
        if (WSAStringToAddressA((LPSTR)text, AF_INET6, NULL, &address->any, &length) != 0)
            refuse(text, "no IPv4 or IPv6 address");
    }
    address->length = (ULONG)length;
}

void address_set_port(struct address *address, USHORT port)
{
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons(port);
    else
        address->v6.sin6_port = htons(port);
}

void address_local(struct address *local, const struct pp_options *options, const struct address *remote, DWORD exclude)
{
    SOCKET_ADDRESS_LIST *list;
    SIZE_T size = 0;
    HRESULT status;

    if (options->bind) {
        address_parse(local, options->bind);
    } else if (remote) {
        size = sizeof(local->v6);
        check("finding the local address towards the server",
              NdResolveAddress(&remote->any, remote->length, &local->any, &size));
        local->length = (ULONG)size;
    } else {
        status = NdQueryAddressList(exclude, NULL, &size);
        if (status == ND_SUCCESS)
            refuse("no adapter", "ndlist --all says which addresses there are and why they cannot be used");
        if (status != ND_BUFFER_OVERFLOW)
            fail("NdQueryAddressList", status);
        list = HeapAlloc(GetProcessHeap(), 0, size);
        check("NdQueryAddressList", NdQueryAddressList(exclude, list, &size));
        local->length = (ULONG)list->Address[0].iSockaddrLength;
        memcpy(&local->any, list->Address[0].lpSockaddr, local->length);
        HeapFree(GetProcessHeap(), 0, list);
    }
    address_set_port(local, options->server ? options->port : 0);
    address_name(local);
}
