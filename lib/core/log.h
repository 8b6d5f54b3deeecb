/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_LOG_H
#define NDVERBS_LOG_H

/* One line per failure or decline, to stderr, chosen by NDVERBS_LOG=none|error|warn|info|debug|trace (default warn).
 * error: the library cannot work; warn: a foreign call failed (its name and errno text) or the device misbehaved;
 * info: a decline with its reason (address, device, limit, flag); debug: connection events; trace: method entries,
 * compiled in by -Dtrace=true only. A failure is logged once, where it happened and with the status that comes of it
 * (status_warn and status_info in status.h); callers add nothing. Any thread,
 * loop callbacks included. errno is preserved. */
enum log_level {
    LOG_NONE,
    LOG_ERROR,
    LOG_WARN,
    LOG_INFO,
    LOG_DEBUG,
    LOG_TRACE,
};

extern int log_threshold; /* read without a lock; -1 until the environment was read */

int log_init(void);
void log_line(enum log_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#define LOG_ENABLED(level) __builtin_expect((log_threshold < 0 ? log_init() : log_threshold) >= (int)(level), 0)
#define LOG_AT(level, ...)                          \
    do {                                            \
        if (LOG_ENABLED(level))                     \
            log_line(level, __func__, __VA_ARGS__); \
    } while (0)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#ifdef NDVERBS_TRACE
#define log_trace(...) LOG_AT(LOG_TRACE, __VA_ARGS__)
#else
/* Compiled and thrown away, so that the arguments count as used. */
#define log_trace(...)                                  \
    do {                                                \
        if (0)                                          \
            log_line(LOG_TRACE, __func__, __VA_ARGS__); \
    } while (0)
#endif

#endif
