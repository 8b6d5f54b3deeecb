/* SPDX-License-Identifier: MIT */
/* Lists the adapters: address, device, port, and every limit. --v1 asks by way of Network Direct version 1; -v names the
 * local addresses and RDMA devices too that are no adapter, and why; --json writes JSON. Exit status 0 if there is an
 * adapter, 1 if there is none, 2 for a wrong argument. */
#include <dirent.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <winsock2.h>
#include <ws2tcpip.h>
#include <ndsupport.h>
#include <ndverbs.h>

static bool json, all, v1;
static char used[64][64]; /* names of the devices of the adapters */
static size_t n_used;

struct limit {
    const char *name;
    size_t offset, size;
};

static const struct limit limits_v2[] = {
#define LIMIT(field) #field, FIELD_OFFSET(ND2_ADAPTER_INFO, field), sizeof(((ND2_ADAPTER_INFO *)0)->field)
    { LIMIT(MaxRegistrationSize) },
    { LIMIT(MaxWindowSize) },
    { LIMIT(MaxInitiatorSge) },
    { LIMIT(MaxReceiveSge) },
    { LIMIT(MaxReadSge) },
    { LIMIT(MaxTransferLength) },
    { LIMIT(MaxInlineDataSize) },
    { LIMIT(MaxInboundReadLimit) },
    { LIMIT(MaxOutboundReadLimit) },
    { LIMIT(MaxReceiveQueueDepth) },
    { LIMIT(MaxInitiatorQueueDepth) },
    { LIMIT(MaxSharedReceiveQueueDepth) },
    { LIMIT(MaxCompletionQueueDepth) },
    { LIMIT(InlineRequestThreshold) },
    { LIMIT(LargeRequestThreshold) },
    { LIMIT(MaxCallerData) },
    { LIMIT(MaxCalleeData) },
#undef LIMIT
};

static const struct limit limits_v1[] = {
#define LIMIT(field) #field, FIELD_OFFSET(ND_ADAPTER_INFO, field), sizeof(((ND_ADAPTER_INFO *)0)->field)
    { LIMIT(MaxInboundSge) },         { LIMIT(MaxInboundRequests) },  { LIMIT(MaxInboundLength) },
    { LIMIT(MaxOutboundSge) },        { LIMIT(MaxOutboundRequests) }, { LIMIT(MaxOutboundLength) },
    { LIMIT(MaxInlineData) },         { LIMIT(MaxInboundReadLimit) }, { LIMIT(MaxOutboundReadLimit) },
    { LIMIT(MaxCqEntries) },          { LIMIT(MaxRegistrationSize) }, { LIMIT(MaxWindowSize) },
    { LIMIT(LargeRequestThreshold) }, { LIMIT(MaxCallerData) },       { LIMIT(MaxCalleeData) },
#undef LIMIT
};

/* What an adapter says of itself, by either version. */
struct adapter_info {
    const struct limit *limits;
    size_t count;
    unsigned int vendor, device;
    union {
        ND2_ADAPTER_INFO v2;
        ND_ADAPTER_INFO v1;
    };
};

static const struct {
    const char *name;
    ULONG flag;
} flags[] = {
    { "IN_ORDER_DMA_SUPPORTED", ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED },
    { "CQ_INTERRUPT_MODERATION_SUPPORTED", ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED },
    { "MULTI_ENGINE_SUPPORTED", ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED },
    { "CQ_RESIZE_SUPPORTED", ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED },
    { "LOOPBACK_CONNECTIONS_SUPPORTED", ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED },
};

static void fail(const char *what, HRESULT status)
{
    fprintf(stderr, "ndlist: %s: %s (0x%08X)\n", what, ndverbs_status_text(status), (unsigned int)status);
}

static const char *address_text(const struct sockaddr *address, ULONG length, char *text, DWORD size)
{
    if (WSAAddressToStringA((LPSOCKADDR)address, length, NULL, text, &size) != 0)
        return "?";
    return text;
}

/* JSON text of names from the system: printable ASCII in practice, escaped all the same. */
static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static unsigned long long limit_value(const struct adapter_info *info, size_t i)
{
    const BYTE *at = (const BYTE *)&info->v2 + info->limits[i].offset;
    UINT64 wide;
    ULONG narrow;

    if (info->limits[i].size == sizeof(wide)) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

static void print_adapter_json(const char *address, const struct ndverbs_adapter_description *description,
                               const struct adapter_info *info, bool first)
{
    bool first_flag = true;

    printf("%s\n    {\n      \"address\": ", first ? "" : ",");
    print_string(address);
    printf(",\n      \"device\": ");
    print_string(description->device);
    printf(",\n      \"port\": %u,\n      \"interface\": ", description->port);
    print_string(description->netdev);
    printf(",\n      \"transport\": ");
    print_string(description->transport);
    printf(",\n      \"state\": ");
    print_string(description->state);
    printf(",\n      \"version\": %u", v1 ? 1 : 2);
    if (!v1)
        printf(",\n      \"AdapterId\": \"0x%016llx\"", (unsigned long long)info->v2.AdapterId);
    printf(",\n      \"VendorId\": %u,\n      \"DeviceId\": %u", info->vendor, info->device);
    for (size_t i = 0; i < info->count; i++)
        printf(",\n      \"%s\": %llu", info->limits[i].name, limit_value(info, i));
    if (!v1) {
        printf(",\n      \"AdapterFlags\": [");
        for (size_t i = 0; i < _countof(flags); i++) {
            if (info->v2.AdapterFlags & flags[i].flag) {
                printf("%s\"%s\"", first_flag ? "" : ", ", flags[i].name);
                first_flag = false;
            }
        }
        printf("]");
    }
    printf("\n    }");
}

static void print_adapter(const char *address, const struct ndverbs_adapter_description *description,
                          const struct adapter_info *info)
{
    printf("%s\n  %-28s %s port %u (%s, %s, port %s)\n", address, "device", description->device, description->port,
           description->netdev, description->transport, description->state);
    if (!v1)
        printf("  %-28s 0x%016llx\n", "AdapterId", (unsigned long long)info->v2.AdapterId);
    printf("  %-28s 0x%04x/0x%04x\n", "VendorId/DeviceId", info->vendor, info->device);
    for (size_t i = 0; i < info->count; i++)
        printf("  %-28s %llu\n", info->limits[i].name, limit_value(info, i));
    if (!v1) {
        printf("  %-28s 0x%08x", "AdapterFlags", info->v2.AdapterFlags);
        for (size_t i = 0; i < _countof(flags); i++) {
            if (info->v2.AdapterFlags & flags[i].flag)
                printf(" %s", flags[i].name);
        }
        printf("\n");
    }
    printf("\n");
}

static HRESULT ask_v2(const struct sockaddr *address, ULONG length, struct adapter_info *info)
{
    ULONG size = sizeof(info->v2);
    IND2Adapter *adapter;
    HRESULT status;

    info->limits = limits_v2;
    info->count = _countof(limits_v2);
    info->v2.InfoVersion = ND_VERSION_2;
    status = NdOpenAdapter(&IID_IND2Adapter, address, length, (void **)&adapter);
    if (status != ND_SUCCESS)
        return status;
    status = adapter->lpVtbl->Query(adapter, &info->v2, &size);
    adapter->lpVtbl->Release(adapter);
    info->vendor = info->v2.VendorId;
    info->device = info->v2.DeviceId;
    return status;
}

static HRESULT ask_v1(const struct sockaddr *address, ULONG length, struct adapter_info *info)
{
    SIZE_T size = sizeof(info->v1);
    INDAdapter *adapter;
    HRESULT status;

    info->limits = limits_v1;
    info->count = _countof(limits_v1);
    status = NdOpenV1Adapter(address, length, &adapter);
    if (status != ND_SUCCESS)
        return status;
    status = adapter->lpVtbl->Query(adapter, 1, &info->v1, &size);
    adapter->lpVtbl->Release(adapter);
    info->vendor = info->v1.VendorId;
    info->device = info->v1.DeviceId;
    return status;
}

/* True if the adapter could be asked. */
static bool list_adapter(const struct sockaddr *address, ULONG length, bool first)
{
    struct ndverbs_adapter_description description = { .size = sizeof(description) };
    struct adapter_info info = { .count = 0 };
    char buffer[80];
    const char *text = address_text(address, length, buffer, sizeof(buffer));
    HRESULT status;

    status = v1 ? ask_v1(address, length, &info) : ask_v2(address, length, &info);
    if (status == ND_SUCCESS)
        status = ndverbs_adapter_describe(address, length, &description);
    if (status != ND_SUCCESS) {
        fail(text, status);
        return false;
    }
    if (n_used < _countof(used))
        memcpy(used[n_used++], description.device, sizeof(used[0]));
    if (json)
        print_adapter_json(text, &description, &info, first);
    else
        print_adapter(text, &description, &info);
    return true;
}

static unsigned int list_adapters(void)
{
    const DWORD others = v1 ? ND_QUERY_EXCLUDE_NDv2_ADDRESSES : ND_QUERY_EXCLUDE_NDv1_ADDRESSES;
    SOCKET_ADDRESS_LIST *list = NULL;
    SIZE_T size = 0;
    HRESULT status;
    unsigned int n = 0;

    /* Addresses may come and go between the two calls. */
    while ((status = NdQueryAddressList(others, list, &size)) == ND_BUFFER_OVERFLOW) {
        if (list)
            HeapFree(GetProcessHeap(), 0, list);
        list = HeapAlloc(GetProcessHeap(), 0, size);
        if (!list) {
            status = ND_NO_MEMORY;
            break;
        }
    }
    if (status != ND_SUCCESS)
        fail("NdQueryAddressList", status);
    else if (size)
        for (INT i = 0; i < list->iAddressCount; i++)
            n += list_adapter(list->Address[i].lpSockaddr, (ULONG)list->Address[i].iSockaddrLength, !n);
    if (list)
        HeapFree(GetProcessHeap(), 0, list);
    return n;
}

/* The local addresses that are no adapter. */
static void list_others(FILE *to)
{
    struct ifaddrs *interfaces;
    bool first = true;

    if (getifaddrs(&interfaces) != 0)
        return;
    for (struct ifaddrs *i = interfaces; i; i = i->ifa_next) {
        struct ndverbs_adapter_description description = { .size = sizeof(description) };
        char buffer[80];
        const char *text;
        ULONG length;

        if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        length = i->ifa_addr->sa_family == AF_INET ? sizeof(SOCKADDR_IN) : sizeof(SOCKADDR_IN6);
        if (ndverbs_adapter_describe(i->ifa_addr, length, &description) == ND_SUCCESS)
            continue;
        text = address_text(i->ifa_addr, length, buffer, sizeof(buffer));
        if (json) {
            printf("%s\n    { \"address\": ", first ? "" : ",");
            print_string(text);
            printf(", \"interface\": ");
            print_string(i->ifa_name);
            printf(", \"reason\": ");
            print_string(description.reason);
            printf(" }");
        } else {
            fprintf(to, "%s (%s) is no adapter: %s\n", text, i->ifa_name, description.reason);
        }
        first = false;
    }
    freeifaddrs(interfaces);
}

/* First line of a file below /sys/class, empty if there is none. */
static const char *attribute(char *line, int size, const char *path, const char *name, const char *file)
{
    char whole[600];
    FILE *from;

    snprintf(whole, sizeof(whole), "/sys/class/%s/%s/%s", path, name, file);
    from = fopen(whole, "r");
    if (!from || !fgets(line, size, from))
        line[0] = 0;
    if (from)
        fclose(from);
    line[strcspn(line, "\n")] = 0;
    return line;
}

static bool has_active_port(const char *device)
{
    char line[80], file[40];

    for (int port = 1; port < 256; port++) {
        snprintf(file, sizeof(file), "ports/%d/state", port);
        if (!*attribute(line, sizeof(line), "infiniband", device, file))
            return false;
        if (strstr(line, "ACTIVE"))
            return true;
    }
    return false;
}

/* The device file by which programs use the device; false if there is none. */
static bool verbs_file(const char *device, char *path, size_t size)
{
    DIR *directory = opendir("/sys/class/infiniband_verbs");
    struct dirent *entry;
    bool found = false;
    char line[80];

    while (directory && !found && (entry = readdir(directory))) {
        found = !strcmp(attribute(line, sizeof(line), "infiniband_verbs", entry->d_name, "ibdev"), device);
        if (found)
            snprintf(path, size, "/dev/infiniband/%s", entry->d_name);
    }
    if (directory)
        closedir(directory);
    return found;
}

static const char *device_reason(const char *device)
{
    static char text[340];
    char line[80], path[300];

    attribute(line, sizeof(line), "infiniband", device, "node_guid");
    if (strspn(line, "0:") == strlen(line))
        return "its node GUID is 0, which rdma_cm cannot handle";
    if (!has_active_port(device))
        return "no port is active";
    if (!verbs_file(device, path, sizeof(path)))
        return "it has no device file: is ib_uverbs loaded?";
    if (access(path, R_OK | W_OK) != 0) {
        snprintf(text, sizeof(text), "no access to %s", path);
        return text;
    }
    if (getenv("NDVERBS_ONLY_DEVICE") && !strstr(getenv("NDVERBS_ONLY_DEVICE"), device))
        return "not named by NDVERBS_ONLY_DEVICE";
    return "none of its addresses can be used";
}

/* The devices that carry no adapter. */
static void list_devices(FILE *to)
{
    DIR *directory = opendir("/sys/class/infiniband");
    struct dirent *entry;
    bool first = true;

    while (directory && (entry = readdir(directory))) {
        bool is_used = entry->d_name[0] == '.';

        for (size_t i = 0; i < n_used; i++)
            is_used |= !strcmp(used[i], entry->d_name);
        if (is_used)
            continue;
        if (json) {
            printf("%s\n    { \"device\": ", first ? "" : ",");
            print_string(entry->d_name);
            printf(", \"reason\": ");
            print_string(device_reason(entry->d_name));
            printf(" }");
        } else {
            fprintf(to, "%s carries no adapter: %s\n", entry->d_name, device_reason(entry->d_name));
        }
        first = false;
    }
    if (directory)
        closedir(directory);
}

int main(int argc, char **argv)
{
    unsigned int n;
    WSADATA data;
    HRESULT status;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--all") || !strcmp(argv[i], "-v")) {
            all = true;
        } else if (!strcmp(argv[i], "--v1")) {
            v1 = true;
        } else {
            bool help = !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");

            fprintf(help ? stdout : stderr, "usage: ndlist [--json] [-v] [--v1]\n"
                                            "  --json     write JSON\n"
                                            "  -v, --all  name the local addresses and RDMA devices too that are no\n"
                                            "             adapter, and why\n"
                                            "  --v1       ask by way of Network Direct version 1\n");
            return help ? 0 : 2;
        }
    }
    WSAStartup(MAKEWORD(2, 2), &data);
    status = NdStartup();
    if (status != ND_SUCCESS) {
        fail("NdStartup", status);
        return 1;
    }
    if (json)
        printf("{\n  \"adapters\": [");
    n = list_adapters();
    if (json)
        printf("%s]", n ? "\n  " : "");
    if (json && all) {
        printf(",\n  \"others\": [");
        list_others(stdout);
        printf("\n  ],\n  \"devices\": [");
        list_devices(stdout);
        printf("\n  ]");
    }
    if (json)
        printf("\n}\n");
    if (!n && !json)
        fprintf(stderr, "ndlist: no adapter\n");
    if (!json && (all || !n)) {
        list_others(n ? stdout : stderr);
        list_devices(n ? stdout : stderr);
    }
    NdCleanup();
    WSACleanup();
    return n ? 0 : 1;
}
