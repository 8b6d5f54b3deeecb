/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int log_threshold = -1;

static const char *const level_names[] = { "none", "error", "warn", "info", "debug", "trace" };

/* Reads the environment. Several threads may do it at the same time: all store the same value. */
int log_init(void)
{
    const char *value = getenv("NDVERBS_LOG");
    int threshold = LOG_WARN;
    bool known = !value || !*value;

    for (int level = LOG_NONE; !known && level <= LOG_TRACE; level++) {
        if (strcasecmp(value, level_names[level]) == 0) {
            threshold = level;
            known = true;
        }
    }
    __atomic_store_n(&log_threshold, threshold, __ATOMIC_RELAXED);
    if (!known)
        log_line(LOG_WARN, __func__, "NDVERBS_LOG=%.32s is none of none, error, warn, info, debug, trace", value);
    return threshold;
}

/* One write per line, so that lines of several threads and processes do not mix. */
void log_line(enum log_level level, const char *where, const char *format, ...)
{
    int saved_errno = errno;
    char line[512];
    size_t length, room;
    ssize_t written;
    va_list args;

    length = (size_t)snprintf(line, sizeof(line), "ndverbs[%d] %s: %s: ", (int)getpid(), level_names[level], where);
    if (length > sizeof(line) / 2)
        length = sizeof(line) / 2;
    room = sizeof(line) - length - 1;
    va_start(args, format);
    vsnprintf(line + length, room, format, args);
    va_end(args);
    length += strlen(line + length);
    line[length++] = '\n';
    do {
        written = write(STDERR_FILENO, line, length);
    } while (written < 0 && errno == EINTR);
    errno = saved_errno;
}
