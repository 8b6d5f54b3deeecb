/* SPDX-License-Identifier: MIT */

/* Foreign errors become statuses: every row of ndspi-status.md sections 4 to 6, as lib/doc/status-map.md lists them. */

#include <errno.h>
#include <fcntl.h>
#include <ntstatus.h>
#include <unistd.h>
#include "harness.h"

#include "core/status.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* tests/lists: A30. */
TEST(status_from_wc__every_row)
{
    static const struct {
        enum ibv_wc_status wc;
        HRESULT receive, send, bind, invalidate, read, write;
    } rows[] = {
        { IBV_WC_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_SUCCESS, ND_SUCCESS },
        { IBV_WC_LOC_LEN_ERR, ND_DATA_OVERRUN, ND_DATA_OVERRUN, ND_DATA_OVERRUN, ND_DATA_OVERRUN, ND_DATA_OVERRUN,
          ND_DATA_OVERRUN },
        { IBV_WC_LOC_QP_OP_ERR, ND_DATA_OVERRUN, ND_ACCESS_VIOLATION, ND_INVALID_DEVICE_REQUEST,
          ND_INVALID_DEVICE_REQUEST, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION },
        { IBV_WC_LOC_PROT_ERR, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION,
          ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION },
        { IBV_WC_LOC_ACCESS_ERR, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION,
          ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION },
        { IBV_WC_MW_BIND_ERR, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION,
          ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION },
        { IBV_WC_WR_FLUSH_ERR, ND_CANCELED, ND_CANCELED, ND_CANCELED, ND_CANCELED, ND_CANCELED, ND_CANCELED },
        { IBV_WC_REM_ACCESS_ERR, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION,
          ND_ACCESS_VIOLATION, ND_ACCESS_VIOLATION },
        { IBV_WC_REM_INV_REQ_ERR, ND_DATA_OVERRUN, STATUS_DATA_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR,
          ND_REMOTE_ERROR },
        { IBV_WC_REM_OP_ERR, ND_REMOTE_ERROR, STATUS_DATA_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR,
          ND_REMOTE_ERROR },
        { IBV_WC_BAD_RESP_ERR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR,
          ND_REMOTE_ERROR },
        { IBV_WC_REM_ABORT_ERR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR, ND_REMOTE_ERROR,
          ND_REMOTE_ERROR },
        { IBV_WC_RETRY_EXC_ERR, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT,
          ND_IO_TIMEOUT },
        { IBV_WC_RNR_RETRY_EXC_ERR, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT,
          ND_IO_TIMEOUT },
        { IBV_WC_RESP_TIMEOUT_ERR, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT, ND_IO_TIMEOUT,
          ND_IO_TIMEOUT },
        { IBV_WC_FATAL_ERR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR,
          ND_INTERNAL_ERROR, ND_INTERNAL_ERROR },
        { IBV_WC_GENERAL_ERR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR,
          ND_INTERNAL_ERROR, ND_INTERNAL_ERROR },
        { IBV_WC_LOC_EEC_OP_ERR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR,
          ND_INTERNAL_ERROR, ND_INTERNAL_ERROR },
        { (enum ibv_wc_status)999, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR, ND_INTERNAL_ERROR,
          ND_INTERNAL_ERROR, ND_INTERNAL_ERROR },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bool down = i % 2; /* decides for one row only */

        if (rows[i].wc == IBV_WC_LOC_QP_OP_ERR)
            down = false;
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeReceive, down), rows[i].receive);
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeSend, down), rows[i].send);
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeBind, down), rows[i].bind);
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeInvalidate, down), rows[i].invalidate);
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeRead, down), rows[i].read);
        ok_status(status_from_wc(rows[i].wc, Nd2RequestTypeWrite, down), rows[i].write);
    }
}

/* An early provider of version 2 gave 0x00010000 for flushed requests; nobody expects it (A31, D26). */
TEST(status_from_wc__nothing_beyond_the_documented_statuses)
{
    static const HRESULT documented[] = { ND_SUCCESS,    ND_DATA_OVERRUN,           ND_ACCESS_VIOLATION,
                                          ND_CANCELED,   ND_INVALID_DEVICE_REQUEST, ND_INTERNAL_ERROR,
                                          ND_IO_TIMEOUT, ND_REMOTE_ERROR,           (HRESULT)STATUS_DATA_ERROR };

    for (int wc = 0; wc < 256; wc++)
        for (int type = Nd2RequestTypeReceive; type <= Nd2RequestTypeWrite; type++) {
            HRESULT status = status_from_wc((enum ibv_wc_status)wc, (ND2_REQUEST_TYPE)type, wc % 2);
            bool found = false;

            for (size_t i = 0; i < COUNT(documented); i++)
                found |= documented[i] == status;
            ok_msg(found, "work completion %d of type %d is %s", wc, type, status_name(status));
        }
}

TEST(status_from_wc__own_link_down)
{
    ok_status(status_from_wc(IBV_WC_LOC_QP_OP_ERR, Nd2RequestTypeSend, true), ND_IO_TIMEOUT);
    ok_status(status_from_wc(IBV_WC_LOC_QP_OP_ERR, Nd2RequestTypeRead, true), ND_IO_TIMEOUT);
    ok_status(status_from_wc(IBV_WC_LOC_QP_OP_ERR, Nd2RequestTypeWrite, true), ND_IO_TIMEOUT);
    ok_status(status_from_wc(IBV_WC_LOC_QP_OP_ERR, Nd2RequestTypeReceive, true), ND_DATA_OVERRUN);
    ok_status(status_from_wc(IBV_WC_LOC_QP_OP_ERR, Nd2RequestTypeBind, true), ND_INVALID_DEVICE_REQUEST);
}

struct row {
    int error;
    HRESULT status;
};

static void check_rows(const char *what, HRESULT (*function)(int), const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ok_msg(function(rows[i].error) == rows[i].status, "%s(%d) is %s, not %s", what, rows[i].error,
               status_name(function(rows[i].error)), status_name(rows[i].status));
}

TEST(status_from_reg_errno__every_row)
{
    static const struct row rows[] = {
        { EFAULT, ND_ACCESS_VIOLATION },
        { EINVAL, ND_INVALID_PARAMETER },
        { ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { EPERM, ND_INSUFFICIENT_RESOURCES },
        { EAGAIN, ND_INSUFFICIENT_RESOURCES },
        { ENODEV, ND_DEVICE_REMOVED },
        { EIO, ND_DEVICE_REMOVED },
        { EBADF, ND_INSUFFICIENT_RESOURCES },
    };

    check_rows("status_from_reg_errno", status_from_reg_errno, rows, COUNT(rows));
}

TEST(status_from_create_errno__every_row)
{
    static const struct row rows[] = {
        { ENOMEM, ND_INSUFFICIENT_RESOURCES }, { EINVAL, ND_INSUFFICIENT_RESOURCES },
        { EMFILE, ND_INSUFFICIENT_RESOURCES }, { EAGAIN, ND_INSUFFICIENT_RESOURCES },
        { ENODEV, ND_DEVICE_REMOVED },         { EIO, ND_DEVICE_REMOVED },
    };

    check_rows("status_from_create_errno", status_from_create_errno, rows, COUNT(rows));
}

TEST(status_from_post_errno__every_row)
{
    static const struct row rows[] = {
        { 0, ND_SUCCESS },
        { ENOMEM, ND_NO_MORE_ENTRIES },
        { EINVAL, ND_UNSUCCESSFUL },
        { ENOTCONN, ND_UNSUCCESSFUL },
    };

    check_rows("status_from_post_errno", status_from_post_errno, rows, COUNT(rows));
}

TEST(post_errno__signs)
{
    errno = ENOTCONN;
    ok_int(post_errno(-1), ==, ENOTCONN); /* siw */
    ok_int(post_errno(-ENOMEM), ==, ENOMEM);
    ok_int(post_errno(ENOMEM), ==, ENOMEM);
    ok_int(post_errno(0), ==, 0);
    errno = 0;
    ok_int(post_errno(-1), ==, 1);
}

TEST(status_from_resolve_errno__every_row)
{
    static const struct row rows[] = {
        { EINVAL, STATUS_BAD_NETWORK_NAME },       { EAFNOSUPPORT, ND_INVALID_ADDRESS },
        { ENETUNREACH, ND_NETWORK_UNREACHABLE },   { ENODEV, ND_NETWORK_UNREACHABLE },
        { EADDRNOTAVAIL, ND_NETWORK_UNREACHABLE }, { EHOSTUNREACH, ND_HOST_UNREACHABLE },
        { ETIMEDOUT, ND_HOST_UNREACHABLE },        { ENOMEM, ND_INSUFFICIENT_RESOURCES },
        { EMFILE, ND_INSUFFICIENT_RESOURCES },     { EAGAIN, ND_INSUFFICIENT_RESOURCES },
        { EPROTO, ND_HOST_UNREACHABLE },
    };

    check_rows("status_from_resolve_errno", status_from_resolve_errno, rows, COUNT(rows));
}

TEST(status_from_route_errno__every_row)
{
    static const struct row rows[] = {
        { ETIMEDOUT, ND_IO_TIMEOUT },
        { EINVAL, ND_HOST_UNREACHABLE },
        { ENODEV, ND_HOST_UNREACHABLE },
        { ENOMEM, ND_INSUFFICIENT_RESOURCES },
    };

    check_rows("status_from_route_errno", status_from_route_errno, rows, COUNT(rows));
}

TEST(status_from_connect_errno__every_row)
{
    static const struct row rows[] = {
        { ETIMEDOUT, ND_IO_TIMEOUT },          { ECONNREFUSED, ND_CONNECTION_REFUSED },
        { ECONNRESET, ND_CONNECTION_REFUSED }, { EPIPE, ND_CONNECTION_REFUSED },
        { EHOSTUNREACH, ND_HOST_UNREACHABLE }, { ENETUNREACH, ND_NETWORK_UNREACHABLE },
        { ENOMEM, ND_INSUFFICIENT_RESOURCES }, { EPROTO, ND_HOST_UNREACHABLE },
    };

    check_rows("status_from_connect_errno", status_from_connect_errno, rows, COUNT(rows));
}

TEST(status_from_bind_errno__every_row)
{
    static const struct {
        int error;
        bool known;
        uint16_t port;
        HRESULT status;
    } rows[] = {
        { EADDRINUSE, true, 5000, ND_SHARING_VIOLATION },  { EADDRINUSE, false, 0, ND_SHARING_VIOLATION },
        { EADDRNOTAVAIL, false, 0, ND_INVALID_ADDRESS },   { EADDRNOTAVAIL, false, 5000, ND_INVALID_ADDRESS },
        { ENODEV, false, 0, ND_INVALID_ADDRESS },          { ENODEV, true, 0, ND_INVALID_ADDRESS },
        { EADDRNOTAVAIL, true, 0, ND_TOO_MANY_ADDRESSES }, { EADDRNOTAVAIL, true, 5000, ND_SHARING_VIOLATION },
        { EACCES, true, 80, ND_SHARING_VIOLATION },        { EINVAL, false, 0, ND_INVALID_ADDRESS },
        { EAFNOSUPPORT, false, 0, ND_INVALID_ADDRESS },    { ENOMEM, true, 0, ND_INSUFFICIENT_RESOURCES },
        { EMFILE, true, 0, ND_INSUFFICIENT_RESOURCES },    { EAGAIN, true, 0, ND_INSUFFICIENT_RESOURCES },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        ok_status(status_from_bind_errno(rows[i].error, rows[i].known, rows[i].port), rows[i].status);
}

TEST(status_from_reject__every_row)
{
    static const int others[] = { 3, 5, 8, 9, 10, 12, 13, 26, 27, 31, -ECONNRESET, -ECONNREFUSED };

    ok_status(status_from_reject(28, false), ND_CONNECTION_REFUSED);
    ok_status(status_from_reject(28, true), ND_CONNECTION_REFUSED);
    ok_status(status_from_reject(4, false), ND_IO_TIMEOUT);
    ok_status(status_from_reject(4, true), ND_CONNECTION_ABORTED);
    for (size_t i = 0; i < COUNT(others); i++) {
        ok_status(status_from_reject(others[i], false), ND_CONNECTION_REFUSED);
        ok_status(status_from_reject(others[i], true), ND_CONNECTION_ABORTED);
    }
}

/* tests/lists: A14. */
TEST(status_v1__only_the_timeout_differs)
{
    ok_status(status_v1(ND_IO_TIMEOUT), ND_TIMEOUT);
    ok_status(status_v1(ND_SUCCESS), ND_SUCCESS);
    ok_status(status_v1(ND_CONNECTION_REFUSED), ND_CONNECTION_REFUSED);
}

/* What the library has written to stderr since the last look; nothing else writes there meanwhile. */
static const char *said(int from)
{
    static char text[1024];
    ssize_t length = read(from, text, sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* The line of a failed call, D4: the call, its errno and the status. */
TEST(status_report__call_errno_and_status)
{
    int ends[2], saved = dup(STDERR_FILENO);
    char wanted[256];

    ok_int(pipe2(ends, O_NONBLOCK | O_CLOEXEC), ==, 0);
    ok_int(dup2(ends[1], STDERR_FILENO), ==, STDERR_FILENO);
    errno = EDOM;
    ok_status(status_warn(ENOMEM, ND_INSUFFICIENT_RESOURCES, "ibv_alloc_mw on %s", "fake"), ND_INSUFFICIENT_RESOURCES);
    ok_int(errno, ==, EDOM);
    snprintf(wanted, sizeof(wanted), "ndverbs[%d] warn: %s: ibv_alloc_mw on fake: %s: ND_INSUFFICIENT_RESOURCES\n",
             (int)getpid(), __func__, strerror(ENOMEM));
    ok_str(said(ends[0]), wanted);
    ok_status(status_info(ENOMEM, ND_NO_MEMORY, "a decline"), ND_NO_MEMORY); /* not asked for */
    ok_str(said(ends[0]), "");
    ok_status(status_warn(EIO, (HRESULT)0xdead0001, "odd"), (HRESULT)0xdead0001);
    ok(strstr(said(ends[0]), ": odd: ") != NULL);
    dup2(saved, STDERR_FILENO);
}

/* tests/lists: D4. */
TEST(status_name__all_statuses)
{
#define NAMED(status)   \
    {                   \
        status, #status \
    }
    static const struct {
        HRESULT status;
        const char *name;
    } rows[] = {
        NAMED(ND_SUCCESS),
        NAMED(ND_TIMEOUT),
        NAMED(ND_PENDING),
        NAMED(ND_BUFFER_OVERFLOW),
        NAMED(ND_DEVICE_BUSY),
        NAMED(ND_NO_MORE_ENTRIES),
        NAMED(ND_UNSUCCESSFUL),
        NAMED(ND_ACCESS_VIOLATION),
        NAMED(ND_INVALID_HANDLE),
        NAMED(ND_INVALID_PARAMETER),
        NAMED(ND_INVALID_DEVICE_REQUEST),
        NAMED(ND_NO_MEMORY),
        NAMED(ND_INVALID_PARAMETER_MIX),
        NAMED(ND_DATA_OVERRUN),
        NAMED(ND_SHARING_VIOLATION),
        NAMED(ND_INSUFFICIENT_RESOURCES),
        NAMED(ND_DEVICE_NOT_READY),
        NAMED(ND_IO_TIMEOUT),
        NAMED(ND_NOT_SUPPORTED),
        NAMED(ND_INTERNAL_ERROR),
        NAMED(ND_INVALID_PARAMETER_1),
        NAMED(ND_INVALID_PARAMETER_2),
        NAMED(ND_INVALID_PARAMETER_3),
        NAMED(ND_INVALID_PARAMETER_4),
        NAMED(ND_INVALID_PARAMETER_5),
        NAMED(ND_INVALID_PARAMETER_6),
        NAMED(ND_INVALID_PARAMETER_7),
        NAMED(ND_INVALID_PARAMETER_8),
        NAMED(ND_INVALID_PARAMETER_9),
        NAMED(ND_INVALID_PARAMETER_10),
        NAMED(ND_CANCELED),
        NAMED(ND_REMOTE_ERROR),
        NAMED(ND_INVALID_ADDRESS),
        NAMED(ND_INVALID_DEVICE_STATE),
        NAMED(ND_INVALID_BUFFER_SIZE),
        NAMED(ND_TOO_MANY_ADDRESSES),
        NAMED(ND_ADDRESS_ALREADY_EXISTS),
        NAMED(ND_CONNECTION_REFUSED),
        NAMED(ND_CONNECTION_INVALID),
        NAMED(ND_CONNECTION_ACTIVE),
        NAMED(ND_NETWORK_UNREACHABLE),
        NAMED(ND_HOST_UNREACHABLE),
        NAMED(ND_CONNECTION_ABORTED),
        NAMED(ND_DEVICE_REMOVED),
        NAMED(STATUS_BAD_NETWORK_NAME),
        NAMED(STATUS_ADDRESS_ALREADY_ASSOCIATED),
        NAMED(STATUS_CONNECTION_DISCONNECTED),
        NAMED(STATUS_DATA_ERROR),
        NAMED(S_FALSE),
        NAMED(E_NOINTERFACE),
        NAMED(E_POINTER),
        NAMED(E_OUTOFMEMORY),
        NAMED(CLASS_E_NOAGGREGATION),
    };
#undef NAMED

    for (size_t i = 0; i < COUNT(rows); i++) {
        ok_str(status_name(rows[i].status), rows[i].name);
        ok(status_text(rows[i].status) && *status_text(rows[i].status));
    }
    ok_ptr(status_name((HRESULT)0xC0FFEE00), ==, NULL);
    ok_ptr(status_text((HRESULT)0x7FFFFFFF), ==, NULL);
    ok_str(status_name((HRESULT)0xC038000E), "WV_UNKNOWN_ERROR"); /* the last row */
}
