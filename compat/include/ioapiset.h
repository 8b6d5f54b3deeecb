/* SPDX-License-Identifier: MIT */
#ifndef _IO_APISET_H_
#define _IO_APISET_H_

/* Completion ports and overlapped requests. All calls: any thread. Source: win32-surface.md sections 4.1, 6.4 to 6.8. */

#include "minwinbase.h"

/* With INVALID_HANDLE_VALUE as file: a new port. With a file: binds it to `port`, or to a new port if that is NULL, and
 * returns the port's handle. `concurrency` is accepted and not enforced. NULL with ERROR_INVALID_PARAMETER if the file is
 * bound already, ERROR_INVALID_HANDLE for a bad handle. The file's port is looked up when a request completes. */
NDV_API HANDLE WINAPI CreateIoCompletionPort(_In_ HANDLE file, _In_opt_ HANDLE port, _In_ ULONG_PTR key,
                                             _In_ DWORD concurrency) NDV_SYM(CreateIoCompletionPort);

/* The oldest packet. TRUE: a packet of success severity, or a posted one. FALSE with *overlapped set: the packet of a
 * failed request, last error is the Win32 twin of its status. FALSE with *overlapped NULL: WAIT_TIMEOUT,
 * ERROR_ABANDONED_WAIT_0 (the port was closed) or ERROR_INVALID_HANDLE; *bytes and *key are untouched then. */
NDV_API BOOL WINAPI GetQueuedCompletionStatus(_In_ HANDLE port, _Out_ LPDWORD bytes, _Out_ PULONG_PTR key,
                                              _Out_ LPOVERLAPPED *overlapped, _In_ DWORD milliseconds)
    NDV_SYM(GetQueuedCompletionStatus);

/* Up to `count` packets; the status of each is in entry.Internal, and TRUE is returned for failed requests too. FALSE
 * with *removed 0 and the errors of GetQueuedCompletionStatus. */
NDV_API BOOL WINAPI GetQueuedCompletionStatusEx(_In_ HANDLE port,
                                                _Out_writes_to_(count, *removed) LPOVERLAPPED_ENTRY entries,
                                                _In_ ULONG count, _Out_ PULONG removed, _In_ DWORD milliseconds,
                                                _In_ BOOL alertable) NDV_SYM(GetQueuedCompletionStatusEx);

/* Queues a packet of the application's own; `overlapped` is passed through and never read. FALSE with
 * ERROR_INVALID_HANDLE or ERROR_NOT_ENOUGH_MEMORY. */
NDV_API BOOL WINAPI PostQueuedCompletionStatus(_In_ HANDLE port, _In_ DWORD bytes, _In_ ULONG_PTR key,
                                               _In_opt_ LPOVERLAPPED overlapped) NDV_SYM(PostQueuedCompletionStatus);

/* Cancels the pending requests of that file (CancelIoEx: one of them if `overlapped` is given; CancelIo: those started
 * by the calling thread). They complete as usual, with ND_CANCELED. FALSE with ERROR_NOT_FOUND if CancelIoEx found none;
 * CancelIo succeeds then. */
NDV_API BOOL WINAPI CancelIoEx(_In_ HANDLE file, _In_opt_ LPOVERLAPPED overlapped) NDV_SYM(CancelIoEx);
NDV_API BOOL WINAPI CancelIo(_In_ HANDLE file) NDV_SYM(CancelIo);

/* The result of a request in Win32 form (Network Direct objects have a method of the same name). FALSE with
 * ERROR_IO_INCOMPLETE if it runs and !wait, with WAIT_TIMEOUT when the time is up, else with the Win32 twin of its
 * status. */
NDV_API BOOL WINAPI GetOverlappedResult(_In_ HANDLE file, _In_ LPOVERLAPPED overlapped, _Out_ LPDWORD bytes,
                                        _In_ BOOL wait) NDV_SYM(GetOverlappedResult);
NDV_API BOOL WINAPI GetOverlappedResultEx(_In_ HANDLE file, _In_ LPOVERLAPPED overlapped, _Out_ LPDWORD bytes,
                                          _In_ DWORD milliseconds, _In_ BOOL alertable) NDV_SYM(GetOverlappedResultEx);

#define HasOverlappedIoCompleted(overlapped) ((DWORD)(overlapped)->Internal != 0x103)

#endif
