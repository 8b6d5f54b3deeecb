/* SPDX-License-Identifier: MIT */

/* lib/doc/status-map.md is what the code does: the tables between its marks are made here, from the functions of core/status.c
 * and from connectors that meet each failure, and compared. With NDVERBS_WRITE_STATUS_MAP=1 the page gets them. */

#include <errno.h>
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>
#include <iba/ib_types.h>

#include "core/connection_priv.h"
#include "core/status.h"
#include "rig.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

SETUP
{
    rig_begin();
}

TEARDOWN
{
    rig_end();
}

/* The rig has room for a case; here are many in one. */
static void begin_again(void)
{
    rig_end();
    rig_begin();
}

/* ---- Text ---- */

static char *page;
static size_t page_length;
static FILE *out;

static const char *name_of(HRESULT status)
{
    const char *name = status_name(status);

    ok_msg(name != NULL, "0x%08x has no name", (unsigned)status);
    return name;
}

/* Statuses that are no status: a row that is left out. */
#define NONE ((HRESULT)0x7fffffff)

#define ERRNO_MAX 133 /* of Linux; what is above is "any other" */

/* A row per status that `map` gives, with the errnos that it gives it for, in the order of the first of them. */
static void errno_rows(const char *call, HRESULT (*map)(int error))
{
    HRESULT is[ERRNO_MAX + 1], other = map(ERRNO_MAX + 1);
    bool done[ERRNO_MAX + 1] = { false };

    for (int error = 1; error <= ERRNO_MAX; error++) {
        is[error] = map(error);
        done[error] = is[error] == other || !strerrorname_np(error);
    }
    for (int first = 1; first <= ERRNO_MAX; first++) {
        if (done[first])
            continue;
        fprintf(out, "| %s | %s", call, strerrorname_np(first));
        call = "";
        for (int error = first + 1; error <= ERRNO_MAX; error++) {
            if (done[error] || is[error] != is[first])
                continue;
            fprintf(out, ", %s", strerrorname_np(error));
            done[error] = true;
        }
        fprintf(out, " | %s |\n", name_of(is[first]));
    }
    fprintf(out, "| %s | any other | %s |\n", call, name_of(other));
}

/* ---- Work completions ---- */

#define WC(name)             \
    {                        \
        IBV_WC_##name, #name \
    }
static const struct {
    enum ibv_wc_status status;
    const char *name;
} wcs[] = {
    WC(SUCCESS),
    WC(LOC_LEN_ERR),
    WC(LOC_QP_OP_ERR),
    WC(LOC_EEC_OP_ERR),
    WC(LOC_PROT_ERR),
    WC(WR_FLUSH_ERR),
    WC(MW_BIND_ERR),
    WC(BAD_RESP_ERR),
    WC(LOC_ACCESS_ERR),
    WC(REM_INV_REQ_ERR),
    WC(REM_ACCESS_ERR),
    WC(REM_OP_ERR),
    WC(RETRY_EXC_ERR),
    WC(RNR_RETRY_EXC_ERR),
    WC(LOC_RDD_VIOL_ERR),
    WC(REM_INV_RD_REQ_ERR),
    WC(REM_ABORT_ERR),
    WC(INV_EECN_ERR),
    WC(INV_EEC_STATE_ERR),
    WC(FATAL_ERR),
    WC(RESP_TIMEOUT_ERR),
    WC(GENERAL_ERR),
    WC(TM_ERR),
    WC(TM_RNDV_INCOMPLETE),
};

static const ND2_REQUEST_TYPE requests[] = { Nd2RequestTypeReceive,    Nd2RequestTypeSend, Nd2RequestTypeBind,
                                             Nd2RequestTypeInvalidate, Nd2RequestTypeRead, Nd2RequestTypeWrite };

static bool same_completion(enum ibv_wc_status a, enum ibv_wc_status b)
{
    bool same = true;

    for (size_t i = 0; i < COUNT(requests); i++)
        for (int down = 0; down < 2; down++)
            same &= status_from_wc(a, requests[i], down) == status_from_wc(b, requests[i], down);
    return same;
}

static void wc_cell(enum ibv_wc_status wc, ND2_REQUEST_TYPE type)
{
    HRESULT status = status_from_wc(wc, type, false), down = status_from_wc(wc, type, true);

    fprintf(out, " %s", name_of(status));
    if (down != status)
        fprintf(out, "; %s while the port is down", name_of(down));
    fprintf(out, " |");
}

static void wc_cells(enum ibv_wc_status wc)
{
    /* Two columns stand for two requests each. */
    for (int down = 0; down < 2; down++) {
        ok_status(status_from_wc(wc, Nd2RequestTypeInvalidate, down), status_from_wc(wc, Nd2RequestTypeBind, down));
        ok_status(status_from_wc(wc, Nd2RequestTypeWrite, down), status_from_wc(wc, Nd2RequestTypeRead, down));
    }
    wc_cell(wc, Nd2RequestTypeReceive);
    wc_cell(wc, Nd2RequestTypeSend);
    wc_cell(wc, Nd2RequestTypeBind);
    wc_cell(wc, Nd2RequestTypeRead);
    fprintf(out, "\n");
}

static void make_completions(void)
{
    const enum ibv_wc_status other = (enum ibv_wc_status)COUNT(wcs);

    fprintf(out, "| `ibv_wc` status | Receive | Send | Bind, Invalidate | Read, Write |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < COUNT(wcs); i++) {
        bool first = !same_completion(wcs[i].status, other);

        ok_uint(wcs[i].status, ==, i);
        for (size_t k = 0; k < i; k++)
            first &= !same_completion(wcs[i].status, wcs[k].status);
        if (!first)
            continue;
        fprintf(out, "| %s", wcs[i].name);
        for (size_t k = i + 1; k < COUNT(wcs); k++)
            if (same_completion(wcs[i].status, wcs[k].status))
                fprintf(out, ", %s", wcs[k].name);
        fprintf(out, " |");
        wc_cells(wcs[i].status);
    }
    fprintf(out, "| any other |");
    wc_cells(other);
}

/* ---- Calls ---- */

static HRESULT bind_fixed(int error)
{
    return status_from_bind_errno(error, true, 77);
}

static HRESULT bind_any(int error)
{
    return status_from_bind_errno(error, true, 0);
}

static HRESULT bind_unknown(int error)
{
    return status_from_bind_errno(error, false, 0);
}

/* The status of a Connect whose request rdma_connect refuses to send. */
static HRESULT connect_fails(struct adapter *adapter, int error)
{
    struct active a;
    HRESULT status;

    active_start(&a, adapter, &nd_policy);
    active_route(&a);
    fake_fail(FAKE_rdma_connect, 1, error);
    event(a.c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    status = (HRESULT)a.connect.Internal;
    active_end(&a);
    begin_again();
    return status;
}

static HRESULT connect_ib(int error)
{
    return connect_fails(ib, error);
}

static HRESULT connect_iw(int error)
{
    /* It is waited for, and tried again. */
    return error == EADDRNOTAVAIL ? connection_connect_status(error) : connect_fails(iw, error);
}

static void make_calls(void)
{
    fprintf(out, "| call | errno | status |\n|---|---|---|\n");
    errno_rows("`ibv_reg_mr`", status_from_reg_errno);
    errno_rows("`ibv_create_*`, `ibv_alloc_*`, `rdma_create_id`", status_from_create_errno);
    errno_rows("`ibv_post_*`, `ibv_bind_mw`", status_from_post_errno);
    errno_rows("`rdma_bind_addr`, `rdma_listen`: a fixed port", bind_fixed);
    errno_rows("the same: port 0", bind_any);
    errno_rows("the same: not an RDMA address", bind_unknown);
    errno_rows("`rdma_resolve_addr`, ADDR_ERROR", status_from_resolve_errno);
    errno_rows("`rdma_resolve_route`, ROUTE_ERROR", status_from_route_errno);
    errno_rows("UNREACHABLE", status_from_connect_errno);
    errno_rows("`rdma_connect`", connect_ib);
    errno_rows("`rdma_connect`, iWARP", connect_iw);
}

/* ---- Events ---- */

static HRESULT connect_meets(enum rdma_cm_event_type type, int status)
{
    struct active a;
    HRESULT result;

    active_request_out(&a, ib, &nd_policy);
    event(a.c, type, status);
    result = (HRESULT)a.connect.Internal;
    active_end(&a);
    begin_again();
    return result;
}

static HRESULT accept_meets(enum rdma_cm_event_type type, int status)
{
    struct passive p;
    HRESULT result;

    passive_reply_out(&p, ib, &nd_policy);
    event(p.c, type, status);
    result = (HRESULT)p.accept.Internal;
    passive_end(&p);
    begin_again();
    return result;
}

static void event_row(const char *text, enum rdma_cm_event_type type, int status)
{
    HRESULT connect = connect_meets(type, status), accept = accept_meets(type, status);

    fprintf(out, "| %s | %s | %s |\n", text, name_of(connect), name_of(accept));
}

#define REASON_MAX 40 /* of a REJ */

static void make_events(void)
{
    HRESULT other = status_from_reject(0, false), other_passive = status_from_reject(0, true);

    fprintf(out, "| event | Connect | Accept |\n|---|---|---|\n");
    for (int reason = 1; reason < REASON_MAX; reason++) {
        HRESULT active = status_from_reject(reason, false), passive = status_from_reject(reason, true);

        if (active == other && passive == other_passive)
            continue;
        fprintf(out, "| REJECTED, reason %d%s | %s | %s |\n", reason,
                reason == 4    ? " (time-out)"
                : reason == 28 ? " (consumer)"
                               : "",
                name_of(active), name_of(passive));
        ok_status(connect_meets(RDMA_CM_EVENT_REJECTED, reason), active);
        ok_status(accept_meets(RDMA_CM_EVENT_REJECTED, reason), passive);
    }
    event_row("REJECTED, any other reason", RDMA_CM_EVENT_REJECTED, 8);
    ok_status(connect_meets(RDMA_CM_EVENT_REJECTED, 8), other);
    event_row("CONNECT_ERROR", RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
    event_row("UNREACHABLE, ETIMEDOUT", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    event_row("DISCONNECTED", RDMA_CM_EVENT_DISCONNECTED, 0);
    fprintf(out, "| ESTABLISHED |  | %s |\n", name_of(accept_meets(RDMA_CM_EVENT_ESTABLISHED, 0)));
    fprintf(out, "| CONNECT_RESPONSE | %s |  |\n", name_of(connect_meets(RDMA_CM_EVENT_CONNECT_RESPONSE, 0)));
    event_row("DEVICE_REMOVAL", RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* ---- From core to the other interfaces ---- */

static HRESULT wv_connect(HRESULT status)
{
    return status_wv_endpoint(status, true, false);
}

static HRESULT wv_notify(HRESULT status)
{
    return status_wv_endpoint(status, false, true);
}

static HRESULT wv_disconnect(HRESULT status)
{
    return status_wv_endpoint(status, false, false);
}

/* What the maps below leave out is passed on; of a post `other`. `but`: what another row has said already. */
static void translated_rows(const char *text, HRESULT (*map)(HRESULT), HRESULT other, HRESULT (*but)(HRESULT))
{
    static const uint32_t starts[] = { 0, 0x40000000, 0x80000000, 0x80004000, 0x80040100, 0x80070000, 0xc0000000 };

    for (size_t i = 0; i < COUNT(starts); i++) {
        for (uint32_t value = starts[i]; value < starts[i] + 0x1000; value++) {
            HRESULT status = (HRESULT)value, to = map(status);

            if (!status_name(status) || to == (other == NONE ? status : other) || (but && to == but(status)))
                continue;
            fprintf(out, "| %s | %s | %s |\n", text, name_of(status), name_of(to));
            text = "";
        }
    }
    if (other != NONE)
        fprintf(out, "| %s | any other | %s |\n", text, name_of(other));
}

static void make_translations(void)
{
    fprintf(out, "| interface | status | becomes |\n|---|---|---|\n");
    translated_rows("version 1", status_v1, NONE, NULL);
    translated_rows("WinVerbs", status_wv, NONE, NULL);
    translated_rows("WinVerbs, Connect", wv_connect, NONE, status_wv);
    translated_rows("WinVerbs, NotifyDisconnect", wv_notify, NONE, status_wv);
    translated_rows("WinVerbs, other requests of an endpoint", wv_disconnect, NONE, status_wv);
    translated_rows("WinVerbs, posting", status_wv_post, WV_INVALID_PARAMETER, NULL);
    translated_rows("CM-only interface", status_cm, NONE, NULL);
}

static void make_cm_errnos(void)
{
    fprintf(out, "| | errno | status |\n|---|---|---|\n");
    ok_status(status_from_cm_errno(0), STATUS_SUCCESS);
    errno_rows("", status_from_cm_errno);
}

#define IB(name)               \
    {                          \
        IB_##name, "IB_" #name \
    }
static const struct {
    ib_api_status_t status;
    const char *name;
} ibs[] = {
    IB(SUCCESS),
    IB(INSUFFICIENT_RESOURCES),
    IB(INSUFFICIENT_MEMORY),
    IB(INVALID_PARAMETER),
    IB(INVALID_SETTING),
    IB(NOT_FOUND),
    IB(TIMEOUT),
    IB(CANCELED),
    IB(INTERRUPTED),
    IB(INVALID_PERMISSION),
    IB(UNSUPPORTED),
    IB(OVERFLOW),
    IB(MAX_MCAST_QPS_REACHED),
    IB(INVALID_QP_STATE),
    IB(INVALID_APM_STATE),
    IB(INVALID_PORT_STATE),
    IB(INVALID_STATE),
    IB(RESOURCE_BUSY),
    IB(INVALID_PKEY),
    IB(INVALID_LKEY),
    IB(INVALID_RKEY),
    IB(INVALID_MAX_WRS),
    IB(INVALID_MAX_SGE),
    IB(INVALID_CQ_SIZE),
    IB(INVALID_SRQ_SIZE),
    IB(INVALID_SERVICE_TYPE),
    IB(INVALID_GID),
    IB(INVALID_LID),
    IB(INVALID_GUID),
    IB(INVALID_GUID_MASK),
    IB(INVALID_CA_HANDLE),
    IB(INVALID_AV_HANDLE),
    IB(INVALID_CQ_HANDLE),
    IB(INVALID_QP_HANDLE),
    IB(INVALID_SRQ_HANDLE),
    IB(INVALID_PD_HANDLE),
    IB(INVALID_MR_HANDLE),
    IB(INVALID_FMR_HANDLE),
    IB(INVALID_MW_HANDLE),
    IB(INVALID_MCAST_HANDLE),
    IB(INVALID_CALLBACK),
    IB(INVALID_AL_HANDLE),
    IB(INVALID_HANDLE),
    IB(ERROR),
    IB(REMOTE_ERROR),
    IB(VERBS_PROCESSING_DONE),
    IB(INVALID_WR_TYPE),
    IB(QP_IN_TIMEWAIT),
    IB(EE_IN_TIMEWAIT),
    IB(INVALID_PORT),
    IB(NOT_DONE),
    IB(INVALID_INDEX),
    IB(NO_MATCH),
    IB(PENDING),
    IB(UNKNOWN_ERROR),
};

static void make_ib(void)
{
    HRESULT other = status_from_ib((int)COUNT(ibs));

    fprintf(out, "| `ib_api_status_t` | status |\n|---|---|\n");
    for (size_t i = 0; i < COUNT(ibs); i++) {
        HRESULT status = status_from_ib(ibs[i].status);
        bool first = status != other;

        ok_uint(ibs[i].status, ==, i);
        for (size_t k = 0; k < i; k++)
            first &= status_from_ib(ibs[k].status) != status;
        if (!first)
            continue;
        fprintf(out, "| %s", ibs[i].name);
        for (size_t k = i + 1; k < COUNT(ibs); k++)
            if (status_from_ib(ibs[k].status) == status)
                fprintf(out, ", %s", ibs[k].name);
        fprintf(out, " | %s |\n", name_of(status));
    }
    fprintf(out, "| any other | %s |\n", name_of(other));
}

/* ---- The page ---- */

static const struct {
    const char *name;
    void (*make)(void);
} parts[] = {
    { "completions", make_completions },   { "calls", make_calls },         { "events", make_events },
    { "translations", make_translations }, { "cm errnos", make_cm_errnos }, { "cm statuses", make_ib },
};

static void read_page(void)
{
    FILE *stream = fopen(STATUS_MAP, "r");

    ok_msg(stream != NULL, "%s: %s", STATUS_MAP, strerror(errno));
    page = calloc(1, 65536);
    page_length = fread(page, 1, 65535, stream);
    ok_uint(page_length, <, 65535);
    fclose(stream);
}

/* What stands between the marks of a part, and where. */
static char *part_of_page(const char *name, size_t *length)
{
    char mark[64], *begin, *end;

    snprintf(mark, sizeof(mark), "<!-- %s -->\n\n", name);
    begin = strstr(page, mark);
    ok_msg(begin != NULL, "the page has no %s", name);
    begin += strlen(mark);
    end = strstr(begin, "\n<!-- end -->");
    ok_msg(end != NULL, "%s does not end", name);
    *length = (size_t)(end - begin);
    return begin;
}

static void replace(size_t at, size_t length, const char *text)
{
    FILE *stream = fopen(STATUS_MAP, "w");

    ok_msg(stream != NULL, "%s: %s", STATUS_MAP, strerror(errno));
    fwrite(page, 1, at, stream);
    fputs(text, stream);
    fwrite(page + at + length, 1, page_length - at - length, stream);
    fclose(stream);
}

static void check_part(const char *name, void (*make)(void))
{
    char *made = NULL, *is;
    size_t made_length = 0, length, line = 0;

    read_page();
    out = open_memstream(&made, &made_length);
    make();
    fclose(out);
    is = part_of_page(name, &length);
    if (getenv("NDVERBS_WRITE_STATUS_MAP")) {
        replace((size_t)(is - page), length, made);
    } else {
        for (size_t i = 0; i < made_length && i < length && made[i] == is[i]; i++)
            line = made[i] == '\n' ? i + 1 : line;
        ok_msg(made_length == length && memcmp(made, is, length) == 0, "%s: the code has \"%.*s\", the page \"%.*s\"",
               name, (int)strcspn(made + line, "\n"), made + line,
               (int)strcspn(is + (line < length ? line : length), "\n"), is + (line < length ? line : length));
    }
    free(made);
    free(page);
}

TEST(status_map__is_the_page)
{
    for (size_t i = 0; i < COUNT(parts); i++)
        check_part(parts[i].name, parts[i].make);
}
