/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_ADDRESS_H
#define NDVERBS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <winsock2.h>

/* Local RDMA addresses: an adapter is a local IP address that rdma_cm can bind to a device (design.md section 6). */

union address {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct address_entry {
    union address address; /* port 0 */
    char netdev[16];       /* `interface` is a macro of the Windows headers */
    char device[64];       /* empty when excluded */
    uint8_t port;
    uint64_t guid;
    uint64_t adapter_id; /* node GUID + (port - 1) */
    const char *reason;  /* NULL when usable, else one line why not (static text) */
    int error;           /* errno behind the reason, 0 if none */
};

struct address_list {
    uint32_t refs;
    int error; /* errno if the system's addresses could not be read, else 0 */
    size_t count;
    struct address_entry entries[];
};

/* The current list, usable entries first, in a deterministic order (device, port, family, address), with a reference
 * taken. Built anew when netlink reported a change of addresses or links, after address_list_invalidate, and when it is
 * older than a second (a device made or removed tells nobody). Without devices, rdma_cm or the right to open them no entry
 * is usable, and one log line says what is missing. One that lacks addresses since memory or descriptors are wanting does
 * not take the place of the one before, and the next call looks again. NULL: out of memory, or a forked child. Any thread;
 * on loop it does not probe but returns what is known. */
struct address_list *address_list_get(void);
void address_list_put(struct address_list *list);
void address_list_invalidate(void); /* any thread, on loop too */

/* The usable entries as a SOCKET_ADDRESS_LIST: bytes needed (at least sizeof(SOCKET_ADDRESS_LIST)), and the list with its
 * pointers into the same buffer. `adapter_id` NULL: of all adapters. */
size_t address_list_bytes(const struct address_list *list, const uint64_t *adapter_id);
void address_list_export(const struct address_list *list, const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out);

/* The size contract of the QueryAddressList methods on top of them. *size: bytes of the buffer, then of the list.
 * ND_SUCCESS, ND_BUFFER_OVERFLOW (also for an empty list and no buffer: ndspi.md A29), ND_NO_MEMORY (*size 0). Any thread. */
NTSTATUS address_list_query(const uint64_t *adapter_id, SOCKET_ADDRESS_LIST *out, size_t *size);

size_t address_length(const struct sockaddr *address); /* 16 or 28; 0 for another family */
bool address_equal(const struct sockaddr *a,
                   const struct sockaddr *b); /* family, IP, scope if both name one; no port */
bool address_is_any(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);
uint16_t address_port(const struct sockaddr *address); /* host order */
void address_set_port(struct sockaddr *address, uint16_t port);
const char *address_text(const struct sockaddr *address, char *buffer, size_t size); /* for logs */

/* status_info (status.h) of a call with an address, which the line names. */
HRESULT address_report(const char *where, int error, HRESULT status, const char *call, const struct sockaddr *address)
    __attribute__((cold));
#define address_info(error, status, call, address) address_report(__func__, error, status, call, address)

/* The usable entry for a local address (port ignored; a scope id of 0 fits any). An address that is not in the list is
 * looked for once more in a new one. ND_SUCCESS with *out filled, ND_INVALID_ADDRESS. Any thread. */
NTSTATUS address_find(const struct sockaddr *address, struct address_entry *out);

/* The same for an address that is to be bound to: it gets the scope with which the entry has it, without which the kernel
 * takes no link-local one. */
NTSTATUS address_find_own(union address *address, struct address_entry *out);

/* First usable entry of that adapter; from a new list if the known one has none. ND_SUCCESS, ND_INVALID_PARAMETER. */
NTSTATUS address_find_adapter(uint64_t adapter_id, struct address_entry *out);

/* The scope id with which that adapter has the IPv6 address; 0 if it has none, or not the address. */
uint32_t address_scope(uint64_t adapter_id, const struct sockaddr *address);

/* First usable entry of that device, whatever the port. False if none. */
bool address_of_device(const char *device, struct address_entry *out);

/* Is that device one that may be used (NDVERBS_ONLY_DEVICE)? */
bool address_device_allowed(const char *device);

/* First usable address of that adapter and family (AF_UNSPEC: any). ND_INVALID_ADDRESS if none. */
NTSTATUS address_of_adapter(uint64_t adapter_id, int family, union address *out);

/* Validates an application's address: length and family. ND_SUCCESS, ND_INVALID_ADDRESS. Copies into *out. */
NTSTATUS address_import(const struct sockaddr *address, size_t length, union address *out);

/* Local source address towards `remote` by a route look-up without traffic. ND_SUCCESS, ND_NETWORK_UNREACHABLE,
 * ND_INVALID_ADDRESS (bad argument), ND_UNSUCCESSFUL. The result need not be an RDMA address. */
NTSTATUS address_route(const struct sockaddr *remote, union address *local);

/* The same look-up for an address that has been imported, without its result, and cheaper; from the address `local`, whose
 * port is not looked at, as rules may want it (NULL or of another family: from any). ND_UNSUCCESSFUL also if no socket can
 * have that address. Not in a forked child: it would share a socket with its parent. Any thread. */
NTSTATUS address_reachable(const union address *local, const union address *remote);

/* Opens what address_reachable() keeps, so that a connection leaves no descriptor behind. Tries once. Any thread. */
void address_prepare(void);

#endif
