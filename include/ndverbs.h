/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_H
#define NDVERBS_H

/* What ndverbs has beyond the Windows interfaces. Portable applications need none of it. Any thread. */

#include <winsock2.h>
#include <unknwn.h>

#define NDVERBS_VERSION_MAJOR 0
#define NDVERBS_VERSION_MINOR 1
#define NDVERBS_VERSION_PATCH 0
#define NDVERBS_VERSION       (NDVERBS_VERSION_MAJOR << 16 | NDVERBS_VERSION_MINOR << 8 | NDVERBS_VERSION_PATCH)

#define NDVERBS_API NDV_API

/* NDVERBS_VERSION of the library that is loaded. */
NDVERBS_API unsigned int ndverbs_version(void);

/* Name of a status, "ND_CONNECTION_REFUSED", for messages: static text, "unknown status" for a value that none of the
 * interfaces returns. */
NDVERBS_API const char *ndverbs_status_text(HRESULT status);

/* What stands behind a local address, for lists and messages. */
struct ndverbs_adapter_description {
    UINT32 size;        /* set by the caller: sizeof(struct ndverbs_adapter_description) */
    UINT32 port;        /* of the device, from 1; 0 if the address has no device */
    char device[64];    /* name of the RDMA device, "rxe0"; empty if the address has none */
    char netdev[16];    /* network interface, "eth0" */
    char transport[32]; /* "InfiniBand", "RoCE", "iWARP"; empty if the address has no device */
    char state[32];     /* of the port, "active", "down"; empty if the address has no device */
    char reason[128];   /* why the address cannot be used; empty if it can */
};

/* Describes a local address; the port number in it is ignored. ND_SUCCESS: it can be used. ND_INVALID_ADDRESS: it cannot,
 * and `reason` says why (it may still have a device, a port and a state). ND_INVALID_PARAMETER: NULL or a wrong `size`,
 * nothing is written. Other statuses: opening the adapter failed. */
NDVERBS_API HRESULT ndverbs_adapter_describe(_In_reads_bytes_(length) const struct sockaddr *address,
                                             _In_ SIZE_T length,
                                             _Inout_ struct ndverbs_adapter_description *description);

/* For programs with an event loop of their own (epoll, libev, libuv, ...): descriptors to poll for reading, level-triggered.
 * They belong to the library: do not read, write or close them. A forked child must not use them. */

/* The descriptor that is readable while an event is set, a thread has ended, or a completion port has packets; made on the
 * first call, the same on each. When it is readable take the signal or the packets as usual, with a time-out of 0. It is
 * closed with the object: take it out of the loop before CloseHandle. ND_SUCCESS, ND_INVALID_PARAMETER (NULL),
 * ND_INVALID_HANDLE, ND_INSUFFICIENT_RESOURCES (no descriptor left), ND_DEVICE_REMOVED (forked child). */
NDVERBS_API HRESULT ndverbs_handle_fd(_In_ HANDLE handle, _Out_ int *fd);

/* Declares that the program's own loop drives the library from now on: *fd is readable when the library has something to do,
 * and the program calls ndverbs_engine_dispatch() then. No thread of the library runs the event loop meanwhile, so nothing
 * completes while the program neither dispatches nor waits in a Windows call. The descriptor stays the same for the life of
 * the process. ND_SUCCESS, ND_INVALID_PARAMETER (NULL), ND_INSUFFICIENT_RESOURCES, ND_NO_MEMORY, ND_DEVICE_REMOVED. */
NDVERBS_API HRESULT ndverbs_engine_fd(_Out_ int *fd);

/* Handles what is ready and returns without waiting. Completions are then found in events, ports, completion queues and
 * GetOverlappedResult as ever; no function of the program is called. ND_SUCCESS. ND_DEVICE_BUSY: a thread that waits in a
 * Windows call handles it; the descriptor becomes readable again if anything is left. ND_DEVICE_NOT_READY:
 * ndverbs_engine_fd() was not called. ND_DEVICE_REMOVED. */
NDVERBS_API HRESULT ndverbs_engine_dispatch(void);

/* The program's loop no longer drives; a thread of the library does, until ndverbs_engine_fd() is called again.
 * ND_SUCCESS. */
NDVERBS_API HRESULT ndverbs_engine_leave(void);
/* ---- Beside the CM-only interface (iba/ib_cm_ifc.h) ----
 *
 * Statuses as there: STATUS_INVALID_HANDLE (no id, or a destroyed one), STATUS_DEVICE_REMOVED (a forked child), and those
 * named. Also inside of callbacks. */
struct _iba_cm_id;
struct _iba_cm_event;
struct _ib_qp_mod;
struct ibv_context;
struct ibv_qp_attr;

/* Events without callbacks, for ids whose callback is NULL: a descriptor that is readable while the id has events (for
 * poll and epoll only; it belongs to the id and is closed with it), and the oldest event, which is the caller's until
 * ndverbs_cm_free_event(). STATUS_NO_MORE_ENTRIES: none. STATUS_INVALID_DEVICE_STATE: the id has a callback.
 * STATUS_INSUFFICIENT_RESOURCES (no descriptor), STATUS_NO_MEMORY, STATUS_INVALID_PARAMETER. */
NDVERBS_API NTSTATUS ndverbs_cm_event_fd(struct _iba_cm_id *id, int *fd);
NDVERBS_API NTSTATUS ndverbs_cm_get_event(struct _iba_cm_id *id, struct _iba_cm_event **event);

/* A copy of an event and of all that it points to, to be kept beyond the callback; freed by ndverbs_cm_free_event() (which
 * takes NULL). STATUS_NO_MEMORY, STATUS_INVALID_PARAMETER. */
NDVERBS_API NTSTATUS ndverbs_cm_copy_event(const struct _iba_cm_event *event, struct _iba_cm_event **copy);
NDVERBS_API void ndverbs_cm_free_event(struct _iba_cm_event *event);

/* Callback and context of an id, at any time: events that wait for a callback are delivered. */
NDVERBS_API NTSTATUS ndverbs_cm_set_callback(struct _iba_cm_id *id,
                                             NTSTATUS (*callback)(struct _iba_cm_id *id, struct _iba_cm_event *event),
                                             void *context);

/* Private data of the peer's last request (92 bytes, with the IP header), reply (196) or rejection (148), at any time after
 * it; zero-padded. `*length`: in the buffer's size, out the data's. STATUS_BUFFER_OVERFLOW: as much as there is room for.
 * STATUS_INVALID_DEVICE_STATE: nothing has come. STATUS_INVALID_PARAMETER: no `length`. */
NDVERBS_API NTSTATUS ndverbs_cm_get_pdata(struct _iba_cm_id *id, void *buffer, UINT8 *length);

/* Reads that this side must serve and may issue: of the request or reply, then as agreed. STATUS_INVALID_DEVICE_STATE:
 * not known yet. */
NDVERBS_API NTSTATUS ndverbs_cm_get_read_limits(struct _iba_cm_id *id, UINT8 *resp_res, UINT8 *init_depth);

/* destroy_id that never waits: `done` (may be NULL) is called on the thread of the callbacks when no callback of the id
 * runs and none will; the id is gone then. No `done` unless the status is STATUS_SUCCESS. */
NDVERBS_API NTSTATUS ndverbs_cm_destroy_id(struct _iba_cm_id *id, void (*done)(void *arg), void *arg);

/* Attributes of get_qp_attr as ibv_modify_qp() takes them, for a queue pair of that context. *mask 0: nothing is to be
 * modified (the kernel does it, on iWARP). STATUS_INVALID_PARAMETER: a state other than INIT, RTR, RTS, or the context's
 * device has not the source address. */
NDVERBS_API NTSTATUS ndverbs_cm_qp_attr(struct ibv_context *context, const struct _ib_qp_mod *mod,
                                        struct ibv_qp_attr *attr, int *mask);

/* The NTSTATUS of an ib_api_status_t, and of an errno of verbs and connection manager calls (of either sign). */
NDVERBS_API NTSTATUS ndverbs_cm_status(int ib_api_status);
NDVERBS_API NTSTATUS ndverbs_cm_errno_status(int error);

/* --- WinVerbs --- */

#ifdef __cplusplus
struct IWVConnectQueuePair;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wsuggest-override"
#else
typedef struct IWVConnectQueuePair IWVConnectQueuePair;
#endif

/* What an IWVConnectEndpoint of this library can do beyond WinVerbs: ask it by QueryInterface. */
/* clang-format off */
DEFINE_GUID(IID_INdvConnectEndpoint, 0x4b7b5fe3, 0x20fd, 0x4b4f, 0x9c, 0x7e, 0x5e, 0x0d, 0x1c, 0x6a, 0x93, 0x2b);
#undef INTERFACE
#define INTERFACE INdvConnectEndpoint
DECLARE_INTERFACE_(INdvConnectEndpoint, IUnknown)
{
    /* IUnknown */
    IFACEMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID FAR *ppvObj) PURE;
    IFACEMETHOD_(ULONG, AddRef)(THIS) PURE;
    IFACEMETHOD_(ULONG, Release)(THIS) PURE;

    /* Ends the connection and the work on its queue pair as one overlapped request: asks the peer to disconnect (or answers
     * it), waits for its answer or the time-out, completes NotifyDisconnect, moves the queue pair to the error state, and
     * completes when everything that was posted has come back to the completion queues. pQp is the queue pair of the
     * connection; NULL means the same. Other threads may post, modify and release the queue pair meanwhile.
     * WV_IO_PENDING, then WV_SUCCESS or WV_TIMEOUT (the peer did not answer; flushed all the same) or WV_CANCELLED (the
     * disconnect goes on); pOverlapped NULL: waits. WV_CONNECTION_INVALID: never connected. WV_INVALID_PARAMETER: another queue
     * pair. STATUS_INVALID_DEVICE_STATE: it has ended already. WV_DEVICE_REMOVED. Any thread. */
    STDMETHOD(DisconnectAndFlush)(THIS_ IWVConnectQueuePair *pQp, OVERLAPPED *pOverlapped) PURE;
};
/* clang-format on */
#undef INTERFACE

#ifdef __cplusplus
NDV_UUID(INdvConnectEndpoint);
#pragma GCC diagnostic pop
#endif

#endif
