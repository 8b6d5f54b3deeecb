/* SPDX-License-Identifier: MIT */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "message.h"

/* Sorted by value (as unsigned); where an ND and an NT or WV name share a value the ND name stands. Values, not names, so
 * that the table needs no header of a front. Source: ndspi-status.md 1 to 3, winverbs.md 10.1. */
static const struct {
    uint32_t value;
    const char *name;
    const char *text; /* NULL: what the code says by itself (compat/message.h) */
} table[] = {
    { 0x00000000, "ND_SUCCESS", "done" },
    { 0x00000001, "S_FALSE", "done, the answer is no" },
    { 0x00000080, "STATUS_ABANDONED", "given up before it was done" },
    { 0x00000102, "ND_TIMEOUT", "the peer did not answer in time" },
    { 0x00000103, "ND_PENDING", "started; the result comes through the OVERLAPPED" },
    { 0x40000012, "STATUS_EVENT_DONE", NULL },
    { 0x80000005, "ND_BUFFER_OVERFLOW", NULL },
    { 0x80000011, "ND_DEVICE_BUSY", NULL },
    { 0x8000001A, "ND_NO_MORE_ENTRIES", NULL },
    { 0x80004002, "E_NOINTERFACE", NULL },
    { 0x80004003, "E_POINTER", NULL },
    { 0x80040110, "CLASS_E_NOAGGREGATION", NULL },
    { 0x80070002, "WV_FILE_NOT_FOUND", NULL },
    { 0x8007000E, "E_OUTOFMEMORY", NULL },
    { 0x80070035, "WV_BAD_NETPATH", NULL },
    { 0x80070047, "WV_REJECTED", NULL },
    { 0x800703E5, "WV_IO_PENDING", NULL },
    { 0x80070490, "WV_NOT_FOUND", NULL },
    { 0xC0000001, "ND_UNSUCCESSFUL", NULL },
    { 0xC0000005, "ND_ACCESS_VIOLATION", NULL },
    { 0xC0000008, "ND_INVALID_HANDLE", NULL },
    { 0xC000000D, "ND_INVALID_PARAMETER", NULL },
    { 0xC0000010, "ND_INVALID_DEVICE_REQUEST", NULL },
    { 0xC0000017, "ND_NO_MEMORY", NULL },
    { 0xC0000022, "STATUS_ACCESS_DENIED", NULL },
    { 0xC0000023, "STATUS_BUFFER_TOO_SMALL", NULL },
    { 0xC0000030, "ND_INVALID_PARAMETER_MIX", NULL },
    { 0xC000003C, "ND_DATA_OVERRUN", NULL },
    { 0xC000003E, "STATUS_DATA_ERROR", NULL },
    { 0xC0000043, "ND_SHARING_VIOLATION", NULL },
    { 0xC000009A, "ND_INSUFFICIENT_RESOURCES", NULL },
    { 0xC00000A3, "ND_DEVICE_NOT_READY", NULL },
    { 0xC00000B5, "ND_IO_TIMEOUT", NULL },
    { 0xC00000BB, "ND_NOT_SUPPORTED", NULL },
    { 0xC00000C1, "STATUS_TOO_MANY_COMMANDS", NULL },
    { 0xC00000CC, "STATUS_BAD_NETWORK_NAME", NULL },
    { 0xC00000E5, "ND_INTERNAL_ERROR", NULL },
    { 0xC00000EF, "ND_INVALID_PARAMETER_1", NULL },
    { 0xC00000F0, "ND_INVALID_PARAMETER_2", NULL },
    { 0xC00000F1, "ND_INVALID_PARAMETER_3", NULL },
    { 0xC00000F2, "ND_INVALID_PARAMETER_4", NULL },
    { 0xC00000F3, "ND_INVALID_PARAMETER_5", NULL },
    { 0xC00000F4, "ND_INVALID_PARAMETER_6", NULL },
    { 0xC00000F5, "ND_INVALID_PARAMETER_7", NULL },
    { 0xC00000F6, "ND_INVALID_PARAMETER_8", NULL },
    { 0xC00000F7, "ND_INVALID_PARAMETER_9", NULL },
    { 0xC00000F8, "ND_INVALID_PARAMETER_10", NULL },
    { 0xC0000108, "STATUS_CONNECTION_IN_USE", NULL },
    { 0xC0000120, "ND_CANCELED", NULL },
    { 0xC000013D, "ND_REMOTE_ERROR", NULL },
    { 0xC0000141, "ND_INVALID_ADDRESS", NULL },
    { 0xC0000184, "ND_INVALID_DEVICE_STATE", NULL },
    { 0xC0000206, "ND_INVALID_BUFFER_SIZE", NULL },
    { 0xC0000209, "ND_TOO_MANY_ADDRESSES", NULL },
    { 0xC000020A, "ND_ADDRESS_ALREADY_EXISTS", NULL },
    { 0xC000020C, "STATUS_CONNECTION_DISCONNECTED", NULL },
    { 0xC0000225, "STATUS_NOT_FOUND", NULL },
    { 0xC0000236, "ND_CONNECTION_REFUSED", NULL },
    { 0xC0000238, "STATUS_ADDRESS_ALREADY_ASSOCIATED", NULL },
    { 0xC000023A, "ND_CONNECTION_INVALID", NULL },
    { 0xC000023B, "ND_CONNECTION_ACTIVE", NULL },
    { 0xC000023C, "ND_NETWORK_UNREACHABLE", NULL },
    { 0xC000023D, "ND_HOST_UNREACHABLE", NULL },
    { 0xC0000241, "ND_CONNECTION_ABORTED", NULL },
    { 0xC00002B6, "ND_DEVICE_REMOVED", NULL },
    { 0xC0380001, "WV_LOCAL_LENGTH", NULL },
    { 0xC0380002, "WV_INVALIDATION_ERROR", NULL },
    { 0xC0380003, "WV_LOCAL_OP_ERROR", NULL },
    { 0xC0380004, "WV_LOCAL_PROTECTION_ERROR", NULL },
    { 0xC0380005, "WV_WR_FLUSHED_ERROR", NULL },
    { 0xC0380006, "WV_BIND_WINDOW_ERROR", NULL },
    { 0xC0380007, "WV_REMOTE_ACCESS_ERROR", NULL },
    { 0xC0380008, "WV_REMOTE_OP_ERROR", NULL },
    { 0xC0380009, "WV_RNR_RETRY_ERROR", NULL },
    { 0xC038000A, "WV_TIMEOUT_RETRY_ERROR", NULL },
    { 0xC038000B, "WV_REMOTE_INVALID_REQUEST_ERROR", NULL },
    { 0xC038000C, "WV_BAD_RESPONSE_ERROR", NULL },
    { 0xC038000D, "WV_LOCAL_ACCESS_ERROR", NULL },
    { 0xC038000E, "WV_UNKNOWN_ERROR", NULL },
};

static int find(HRESULT status)
{
    size_t low = 0, high = sizeof(table) / sizeof(table[0]);

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (table[middle].value == (uint32_t)status)
            return (int)middle;
        if (table[middle].value < (uint32_t)status)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const char *status_name(HRESULT status)
{
    int index = find(status);

    return index < 0 ? NULL : table[index].name;
}

const char *status_text(HRESULT status)
{
    int index = find(status);

    if (index < 0)
        return NULL;
    return table[index].text ? table[index].text : message_text(table[index].value);
}

HRESULT status_report(enum log_level level, const char *where, int error, HRESULT status, const char *format, ...)
{
    const char *name = status_name(status);
    int saved_errno = errno;
    char text[256];
    va_list args;

    if (LOG_ENABLED(level)) {
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        log_line(level, where, "%s: %s: %s", text, strerror(error), name ? name : "no status of ours");
    }
    errno = saved_errno;
    return status;
}
