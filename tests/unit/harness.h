/* SPDX-License-Identifier: MIT */
#ifndef NDVERBS_HARNESS_H
#define NDVERBS_HARNESS_H

/* The frame of the unit tests: cases register themselves, a test program is one or more files of cases and HARNESS_MAIN
 * in one of them. On Linux it runs on Check, each case in a process of its own unless CK_FORK=no; with HARNESS_PLAIN (and
 * always under _WIN32) one after the other in the same process, without Check.
 *
 *     SETUP { ... }                            before each case of this file (optional)
 *     TEARDOWN { ... }                         after each case of this file that did not fail (optional)
 *     TEST(Connect__busy_port) { ok_status(hr, ND_SHARING_VIOLATION); }
 *     HARNESS_MAIN
 *
 * Arguments: names or patterns (* and ?) of the cases to run; --list prints the names. Output: FAIL and SKIP lines, and
 * as the last line "N passed, N failed, N skipped". Exit status 0, 1 if a case failed, 77 if all were skipped, 2 if no
 * case has such a name. A case has no time limit of its own; a hang is ended after CK_DEFAULT_TIMEOUT (default 300)
 * seconds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct harness_case {
    struct harness_case *next;
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
};

struct harness_fixture {
    struct harness_fixture *next;
    const char *file;
    bool teardown;
    void (*run)(void);
};

/* Called by the macros before main. */
void harness_add(struct harness_case *test);
void harness_add_fixture(struct harness_fixture *fixture);
int harness_main(int argc, char **argv);

#define HARNESS_MAIN                     \
    int main(int argc, char **argv)      \
    {                                    \
        return harness_main(argc, argv); \
    }

#define TEST(name_)                                                                                \
    static void test_##name_(void);                                                                \
    __attribute__((constructor)) static void test_add_##name_(void)                                \
    {                                                                                              \
        static struct harness_case test_case = { NULL, #name_, __FILE__, __LINE__, test_##name_ }; \
        harness_add(&test_case);                                                                   \
    }                                                                                              \
    static void test_##name_(void)

#define HARNESS_FIXTURE(kind, is_teardown)                                                       \
    static void harness_##kind(void);                                                            \
    __attribute__((constructor)) static void harness_add_##kind(void)                            \
    {                                                                                            \
        static struct harness_fixture fixture = { NULL, __FILE__, is_teardown, harness_##kind }; \
        harness_add_fixture(&fixture);                                                           \
    }                                                                                            \
    static void harness_##kind(void)
#define SETUP    HARNESS_FIXTURE(setup, false)
#define TEARDOWN HARNESS_FIXTURE(teardown, true)

/* Ends the case as failed. Any thread of the case (from a thread that is not the case's own only on Check with fork). */
void harness_fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));

/* Ends the case as skipped, with one line that says why. The case's own thread only. */
void harness_skip(const char *reason) __attribute__((noreturn));

/* Gives the processor away, for waiting on another thread's step. */
void harness_yield(void);

/* Name of the running case. */
const char *harness_name(void);

/* Text for a status in ok_status messages, "" by default. */
extern const char *(*harness_status_text)(int32_t status);
void harness_fail_status(const char *file, int line, const char *expr, const char *wanted, int32_t is, int32_t should)
    __attribute__((noreturn));
void harness_fail_memory(const char *file, int line, const char *a, const char *b, const void *pa, const void *pb,
                         size_t length) __attribute__((noreturn));

#define ok(expr)                                           \
    do {                                                   \
        if (!(expr))                                       \
            harness_fail(__FILE__, __LINE__, "%s", #expr); \
    } while (0)

#define ok_msg(expr, ...)                                  \
    do {                                                   \
        if (!(expr))                                       \
            harness_fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

/* Signed integers up to 64 bits: ok_int(a, ==, b). */
#define ok_int(a, op, b)                                                                            \
    do {                                                                                            \
        long long ok_a_ = (long long)(a), ok_b_ = (long long)(b);                                   \
        if (!(ok_a_ op ok_b_))                                                                      \
            harness_fail(__FILE__, __LINE__, "%s " #op " %s: %lld and %lld", #a, #b, ok_a_, ok_b_); \
    } while (0)

#define ok_uint(a, op, b)                                                                               \
    do {                                                                                                \
        unsigned long long ok_a_ = (unsigned long long)(a), ok_b_ = (unsigned long long)(b);            \
        if (!(ok_a_ op ok_b_))                                                                          \
            harness_fail(__FILE__, __LINE__, "%s " #op " %s: 0x%llx and 0x%llx", #a, #b, ok_a_, ok_b_); \
    } while (0)

#define ok_ptr(a, op, b)                                                                        \
    do {                                                                                        \
        const void *ok_a_ = (a), *ok_b_ = (b);                                                  \
        if (!(ok_a_ op ok_b_))                                                                  \
            harness_fail(__FILE__, __LINE__, "%s " #op " %s: %p and %p", #a, #b, ok_a_, ok_b_); \
    } while (0)

#define ok_str(a, b)                                                                                          \
    do {                                                                                                      \
        const char *ok_a_ = (a), *ok_b_ = (b);                                                                \
        if (!ok_a_ || !ok_b_ || strcmp(ok_a_, ok_b_) != 0)                                                    \
            harness_fail(__FILE__, __LINE__, "%s == %s: \"%s\" and \"%s\"", #a, #b, ok_a_ ? ok_a_ : "(null)", \
                         ok_b_ ? ok_b_ : "(null)");                                                           \
    } while (0)

/* Reports the first byte that differs. */
#define ok_mem(a, b, length)                                                           \
    do {                                                                               \
        const void *ok_a_ = (a), *ok_b_ = (b);                                         \
        size_t ok_length_ = (length);                                                  \
        if (memcmp(ok_a_, ok_b_, ok_length_) != 0)                                     \
            harness_fail_memory(__FILE__, __LINE__, #a, #b, ok_a_, ok_b_, ok_length_); \
    } while (0)

/* HRESULT and NTSTATUS values. */
#define ok_status(hr, wanted)                                                          \
    do {                                                                               \
        int32_t ok_is_ = (int32_t)(hr), ok_should_ = (int32_t)(wanted);                \
        if (ok_is_ != ok_should_)                                                      \
            harness_fail_status(__FILE__, __LINE__, #hr, #wanted, ok_is_, ok_should_); \
    } while (0)

/* Waits until another thread made it true; only the guard against hangs ends it otherwise. */
#define ok_eventually(expr)  \
    do {                     \
        while (!(expr))      \
            harness_yield(); \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
