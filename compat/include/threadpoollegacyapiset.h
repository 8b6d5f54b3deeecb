/* SPDX-License-Identifier: MIT */
#ifndef _THREADPOOLLEGACYAPISET_H_
#define _THREADPOOLLEGACYAPISET_H_

#include "minwinbase.h"

#define WT_EXECUTEDEFAULT      0x00000000
#define WT_EXECUTEINIOTHREAD   0x00000001
#define WT_EXECUTELONGFUNCTION 0x00000010

/* Calls `function` on a thread of the library's pool, that of BindIoCompletionCallback, which has up to 500. The flags are
 * hints. FALSE with ERROR_INVALID_PARAMETER (no function) or ERROR_NOT_ENOUGH_MEMORY. Any thread. */
NDV_API BOOL WINAPI QueueUserWorkItem(_In_ LPTHREAD_START_ROUTINE function, _In_opt_ PVOID parameter, _In_ ULONG flags)
    NDV_SYM(QueueUserWorkItem);

#endif
