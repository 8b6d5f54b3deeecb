/* SPDX-License-Identifier: MIT */
#include <ws2spi.h>

#include "ndspi.h"

/* The Winsock catalogue as programs walk it that do not use the helper library: one entry for each version and address
 * family, all of this library (win32-surface.md 6.9, ndspi-helpers.md 3). */

/* {5B8DBB1A-2F0E-4C56-9D3B-6A170C52E841} and, as each version is a provider of its own there,
 * {5B8DBB1A-2F0E-4C56-9D3B-6A170C52E842}. DllGetClassObject takes them and needs them not. */
static const GUID provider_v2 = { 0x5b8dbb1a, 0x2f0e, 0x4c56, { 0x9d, 0x3b, 0x6a, 0x17, 0x0c, 0x52, 0xe8, 0x41 } };
static const GUID provider_v1 = { 0x5b8dbb1a, 0x2f0e, 0x4c56, { 0x9d, 0x3b, 0x6a, 0x17, 0x0c, 0x52, 0xe8, 0x42 } };

/* The name under which this very library is loaded: the loader knows it by that, wherever the file lies, and no buffer of
 * MAX_PATH is too short for it. */
static const WCHAR module_name[] = L"" NDVERBS_SONAME;

/* Version 2 first: programs that take the first entry of a family mean that. */
static const struct {
    const GUID *id;
    int version;
    int family;
    int address_size;
    const WCHAR *name;
} entries[] = {
    { &provider_v2, ND_VERSION_2, AF_INET, sizeof(struct sockaddr_in), L"ndverbs Network Direct 2 (IPv4)" },
    { &provider_v2, ND_VERSION_2, AF_INET6, sizeof(struct sockaddr_in6), L"ndverbs Network Direct 2 (IPv6)" },
    { &provider_v1, ND_VERSION_1, AF_INET, sizeof(struct sockaddr_in), L"ndverbs Network Direct 1 (IPv4)" },
    { &provider_v1, ND_VERSION_1, AF_INET6, sizeof(struct sockaddr_in6), L"ndverbs Network Direct 1 (IPv6)" },
};

#define FIRST_ID    1001 /* of the catalogue; any number but 0 */
#define NO_LIMIT    0xFFFFFFFF
#define BASE_LENGTH 1 /* of a protocol chain: a protocol by itself */

static void describe(size_t i, WSAPROTOCOL_INFOW *info)
{
    *info = (WSAPROTOCOL_INFOW){
        .dwServiceFlags1 = XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA,
        .dwProviderFlags = PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER,
        .ProviderId = *entries[i].id,
        .dwCatalogEntryId = FIRST_ID + (DWORD)i,
        .ProtocolChain = { .ChainLen = BASE_LENGTH },
        .iVersion = entries[i].version,
        .iAddressFamily = entries[i].family,
        .iMaxSockAddr = entries[i].address_size,
        .iMinSockAddr = entries[i].address_size,
        .iSocketType = -1,
        .dwMessageSize = NO_LIMIT,
    };
    wcscpy(info->szProtocol, entries[i].name);
}

static int failed(int error, LPINT out)
{
    *out = error;
    return SOCKET_ERROR;
}

int WSPAPI WSCEnumProtocols(LPINT protocols, LPWSAPROTOCOL_INFOW buffer, LPDWORD length, LPINT error)
{
    const DWORD needed = sizeof(entries) / sizeof(entries[0]) * sizeof(*buffer);

    if (!error)
        return SOCKET_ERROR;
    if (!length)
        return failed(WSAEFAULT, error);
    /* Ours are of protocol 0, which ends such a list and so is never asked for by number. */
    if (protocols) {
        *length = 0;
        return 0;
    }
    if (!buffer || *length < needed) {
        *length = needed;
        return failed(WSAENOBUFS, error);
    }
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        describe(i, &buffer[i]);
    return sizeof(entries) / sizeof(entries[0]);
}

int WSPAPI WSCGetProviderPath(LPGUID id, LPWSTR path, LPINT length, LPINT error)
{
    const INT needed = sizeof(module_name) / sizeof(module_name[0]);

    if (!error)
        return SOCKET_ERROR;
    if (!id || !length)
        return failed(WSAEFAULT, error);
    if (!IsEqualGUID(id, &provider_v2) && !IsEqualGUID(id, &provider_v1))
        return failed(WSAEINVAL, error);
    if (!path || *length < needed) {
        *length = needed;
        return failed(WSAEFAULT, error);
    }
    wcscpy(path, module_name);
    *length = needed;
    return 0;
}
