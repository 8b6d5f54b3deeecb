/* SPDX-License-Identifier: MIT */
#ifndef _SYNCHAPI_H_
#define _SYNCHAPI_H_

/* Events, waits and locks. All calls: any thread. Times are in milliseconds on a monotonic clock, rounded up, never
 * early; INFINITE waits for ever. Source: win32-surface.md sections 4.1, 4.2, 6.2, 6.3, 6.10. */

#include "minwinbase.h"

#ifndef INFINITE
#define INFINITE 0xFFFFFFFF
#endif
#define WAIT_OBJECT_0      0
#define WAIT_ABANDONED     0x00000080
#define WAIT_ABANDONED_0   0x00000080
#define WAIT_IO_COMPLETION 0x000000C0
#define WAIT_TIMEOUT       258
#define WAIT_FAILED        0xFFFFFFFF

/* An event: manual-reset (a set releases every waiter and stays) or auto-reset (a set releases one waiter, or stays for
 * the next wait). `name` must be NULL (else NULL and ERROR_NOT_SUPPORTED): no two processes share events here.
 * NULL with ERROR_NOT_ENOUGH_MEMORY when the handle table is full. */
NDV_API HANDLE WINAPI CreateEventW(_In_opt_ LPSECURITY_ATTRIBUTES security, _In_ BOOL manual_reset,
                                   _In_ BOOL initial_state, _In_opt_ LPCWSTR name) NDV_SYM(CreateEventW);
NDV_API HANDLE WINAPI CreateEventA(_In_opt_ LPSECURITY_ATTRIBUTES security, _In_ BOOL manual_reset,
                                   _In_ BOOL initial_state, _In_opt_ LPCSTR name) NDV_SYM(CreateEventA);
NDV_API BOOL WINAPI SetEvent(_In_ HANDLE event) NDV_SYM(SetEvent);
NDV_API BOOL WINAPI ResetEvent(_In_ HANDLE event) NDV_SYM(ResetEvent);

/* Waits for an event, a thread or an overlapped file. WAIT_OBJECT_0, WAIT_TIMEOUT, or WAIT_FAILED with
 * ERROR_INVALID_HANDLE. A time-out of 0 tests, and consumes an auto-reset event. Nothing queues APCs, so an alertable
 * wait is a plain one. */
NDV_API DWORD WINAPI WaitForSingleObject(_In_ HANDLE handle, _In_ DWORD milliseconds) NDV_SYM(WaitForSingleObject);
NDV_API DWORD WINAPI WaitForSingleObjectEx(_In_ HANDLE handle, _In_ DWORD milliseconds, _In_ BOOL alertable)
    NDV_SYM(WaitForSingleObjectEx);

/* Any: the lowest index that is set, and only that object is consumed. All: returns when all are set at one instant and
 * consumes them together; until then none is touched. WAIT_FAILED with ERROR_INVALID_PARAMETER for a count of 0 or above
 * MAXIMUM_WAIT_OBJECTS and for a duplicate handle with `all`. */
NDV_API DWORD WINAPI WaitForMultipleObjects(_In_ DWORD count, _In_reads_(count) const HANDLE *handles, _In_ BOOL all,
                                            _In_ DWORD milliseconds) NDV_SYM(WaitForMultipleObjects);
NDV_API DWORD WINAPI WaitForMultipleObjectsEx(_In_ DWORD count, _In_reads_(count) const HANDLE *handles, _In_ BOOL all,
                                              _In_ DWORD milliseconds, _In_ BOOL alertable)
    NDV_SYM(WaitForMultipleObjectsEx);

/* 0 yields; INFINITE sleeps for ever. */
NDV_API VOID WINAPI Sleep(_In_ DWORD milliseconds) NDV_SYM(Sleep);

/* Recursive lock owned by a thread. Leaving it on a thread that does not own it is an application error. */
NDV_API VOID WINAPI InitializeCriticalSection(_Out_ LPCRITICAL_SECTION lock) NDV_SYM(InitializeCriticalSection);
NDV_API BOOL WINAPI InitializeCriticalSectionAndSpinCount(_Out_ LPCRITICAL_SECTION lock, _In_ DWORD spin_count)
    NDV_SYM(InitializeCriticalSectionAndSpinCount);
NDV_API BOOL WINAPI InitializeCriticalSectionEx(_Out_ LPCRITICAL_SECTION lock, _In_ DWORD spin_count, _In_ DWORD flags)
    NDV_SYM(InitializeCriticalSectionEx);
NDV_API VOID WINAPI EnterCriticalSection(_Inout_ LPCRITICAL_SECTION lock) NDV_SYM(EnterCriticalSection);
NDV_API BOOL WINAPI TryEnterCriticalSection(_Inout_ LPCRITICAL_SECTION lock) NDV_SYM(TryEnterCriticalSection);
NDV_API VOID WINAPI LeaveCriticalSection(_Inout_ LPCRITICAL_SECTION lock) NDV_SYM(LeaveCriticalSection);
NDV_API VOID WINAPI DeleteCriticalSection(_Inout_ LPCRITICAL_SECTION lock) NDV_SYM(DeleteCriticalSection);

/* Reader-writer lock of one pointer, not recursive. */
NDV_API VOID WINAPI InitializeSRWLock(_Out_ PSRWLOCK lock) NDV_SYM(InitializeSRWLock);
NDV_API VOID WINAPI AcquireSRWLockExclusive(_Inout_ PSRWLOCK lock) NDV_SYM(AcquireSRWLockExclusive);
NDV_API VOID WINAPI ReleaseSRWLockExclusive(_Inout_ PSRWLOCK lock) NDV_SYM(ReleaseSRWLockExclusive);
NDV_API BOOLEAN WINAPI TryAcquireSRWLockExclusive(_Inout_ PSRWLOCK lock) NDV_SYM(TryAcquireSRWLockExclusive);
NDV_API VOID WINAPI AcquireSRWLockShared(_Inout_ PSRWLOCK lock) NDV_SYM(AcquireSRWLockShared);
NDV_API VOID WINAPI ReleaseSRWLockShared(_Inout_ PSRWLOCK lock) NDV_SYM(ReleaseSRWLockShared);
NDV_API BOOLEAN WINAPI TryAcquireSRWLockShared(_Inout_ PSRWLOCK lock) NDV_SYM(TryAcquireSRWLockShared);

/* Condition variables. Sleep* return FALSE with ERROR_TIMEOUT when the time is up; spurious returns are allowed. */
#define CONDITION_VARIABLE_LOCKMODE_SHARED 0x1
NDV_API VOID WINAPI InitializeConditionVariable(_Out_ PCONDITION_VARIABLE condition)
    NDV_SYM(InitializeConditionVariable);
NDV_API VOID WINAPI WakeConditionVariable(_Inout_ PCONDITION_VARIABLE condition) NDV_SYM(WakeConditionVariable);
NDV_API VOID WINAPI WakeAllConditionVariable(_Inout_ PCONDITION_VARIABLE condition) NDV_SYM(WakeAllConditionVariable);
NDV_API BOOL WINAPI SleepConditionVariableCS(_Inout_ PCONDITION_VARIABLE condition, _Inout_ PCRITICAL_SECTION lock,
                                             _In_ DWORD milliseconds) NDV_SYM(SleepConditionVariableCS);
NDV_API BOOL WINAPI SleepConditionVariableSRW(_Inout_ PCONDITION_VARIABLE condition, _Inout_ PSRWLOCK lock,
                                              _In_ DWORD milliseconds, _In_ ULONG flags)
    NDV_SYM(SleepConditionVariableSRW);

/* Sleeps while the `size` (1, 2, 4, 8) bytes at `address` equal those at `compare`. Spurious returns are allowed. FALSE
 * with ERROR_TIMEOUT when the time is up, with ERROR_INVALID_PARAMETER for another size. */
NDV_API BOOL WINAPI WaitOnAddress(_In_ volatile VOID *address, _In_ PVOID compare, _In_ SIZE_T size,
                                  _In_ DWORD milliseconds) NDV_SYM(WaitOnAddress);
NDV_API VOID WINAPI WakeByAddressSingle(_In_ PVOID address) NDV_SYM(WakeByAddressSingle);
NDV_API VOID WINAPI WakeByAddressAll(_In_ PVOID address) NDV_SYM(WakeByAddressAll);

#ifdef UNICODE
#define CreateEvent CreateEventW
#else
#define CreateEvent CreateEventA
#endif

#endif
