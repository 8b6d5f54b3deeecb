/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32) && !defined(HARNESS_PLAIN)
#define HARNESS_PLAIN 1
#endif

#ifdef _WIN32
#include <windows.h>
#else
#include <sched.h>
#include <sys/mman.h>
#endif
#ifndef HARNESS_PLAIN
#include <check.h>
#endif

enum verdict {
    VERDICT_NONE,
    VERDICT_SKIPPED,
    VERDICT_FAILED,
};

const char *(*harness_status_text)(int32_t status);

static struct harness_case *first_case, **last_case = &first_case;
static struct harness_fixture *fixtures;
static struct harness_case **selected; /* the cases to run, in order */
static struct harness_case *current;
static unsigned char *verdicts; /* one per selected case, shared with the child processes */
static jmp_buf skip_jump;
#ifdef HARNESS_PLAIN
static jmp_buf fail_jump;
#endif

void harness_add(struct harness_case *test)
{
    *last_case = test;
    last_case = &test->next;
}

void harness_add_fixture(struct harness_fixture *fixture)
{
    fixture->next = fixtures;
    fixtures = fixture;
}

const char *harness_name(void)
{
    return current ? current->name : "";
}

void harness_yield(void)
{
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}

#ifndef HARNESS_PLAIN
/* Of the fakes, where the program has them: a failure that is still pending must not hit the report. */
extern void fake_alloc_clear(void) __attribute__((weak));
#endif

void harness_fail(const char *file, int line, const char *format, ...)
{
    char text[2000];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
#ifdef HARNESS_PLAIN
    printf("FAIL %s: %s:%d: %s\n", harness_name(), file, line, text);
    fflush(stdout);
    longjmp(fail_jump, 1);
#else
    if (fake_alloc_clear)
        fake_alloc_clear();
    _ck_assert_failed(file, line, "", "%s", text);
    abort(); /* not reached */
#endif
}

void harness_fail_status(const char *file, int line, const char *expr, const char *wanted, int32_t is, int32_t should)
{
    const char *text = harness_status_text ? harness_status_text(is) : "";

    harness_fail(file, line, "%s is 0x%08x%s%s, not %s (0x%08x)", expr, (unsigned)is, *text ? " " : "", text, wanted,
                 (unsigned)should);
}

void harness_fail_memory(const char *file, int line, const char *a, const char *b, const void *pa, const void *pb,
                         size_t length)
{
    const unsigned char *bytes_a = (const unsigned char *)pa, *bytes_b = (const unsigned char *)pb;
    size_t i = 0;

    while (i < length - 1 && bytes_a[i] == bytes_b[i])
        i++;
    harness_fail(file, line, "%s and %s differ at byte %lu of %lu: 0x%02x and 0x%02x", a, b, (unsigned long)i,
                 (unsigned long)length, bytes_a[i], bytes_b[i]);
}

void harness_skip(const char *reason)
{
    printf("SKIP %s: %s\n", harness_name(), reason);
    fflush(stdout);
    longjmp(skip_jump, 1);
}

static void run_fixtures(bool teardown)
{
    for (struct harness_fixture *fixture = fixtures; fixture; fixture = fixture->next) {
        if (fixture->teardown == teardown && strcmp(fixture->file, current->file) == 0)
            fixture->run();
    }
}

/* Runs the case with its fixtures; a failure leaves by a jump or with the process. */
static void run_case(size_t index)
{
    current = selected[index];
    if (setjmp(skip_jump) != 0) {
        verdicts[index] = VERDICT_SKIPPED;
        return;
    }
    run_fixtures(false);
    current->run();
    run_fixtures(true);
}

static bool matches(const char *pattern, const char *name)
{
    if (*pattern == '*')
        return matches(pattern + 1, name) || (*name && matches(pattern, name + 1));
    if (*pattern == '\0')
        return *name == '\0';
    return *name && (*pattern == '?' || *pattern == *name) && matches(pattern + 1, name + 1);
}

static bool wanted(const struct harness_case *test, int argc, char **argv)
{
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++) {
        if (matches(argv[i], test->name))
            return true;
    }
    return false;
}

#ifdef HARNESS_PLAIN
static void run_all(size_t count)
{
    for (volatile size_t i = 0; i < count; i++) {
        if (setjmp(fail_jump) != 0) {
            verdicts[i] = VERDICT_FAILED;
            continue;
        }
        run_case(i);
    }
}
#else
static void check_case(int index)
{
    run_case((size_t)index);
}

/* A case's result is read by its place, since Check names only the file and line of failures. */
static void take_results(SRunner *runner, size_t count)
{
    TestResult **results = srunner_failures(runner);
    int failures = srunner_ntests_failed(runner);

    for (int i = 0; i < failures; i++) {
        const char *name = tr_tcname(results[i]);

        printf("FAIL %s: %s:%d: %s\n", name, tr_lfile(results[i]), tr_lno(results[i]), tr_msg(results[i]));
        for (size_t k = 0; k < count; k++) {
            if (strcmp(selected[k]->name, name) == 0)
                verdicts[k] = VERDICT_FAILED;
        }
    }
    free(results);
}

static void run_all(size_t count)
{
    const char *guard = getenv("CK_DEFAULT_TIMEOUT");
    Suite *suite = suite_create("");
    SRunner *runner = srunner_create(suite);
    TTest *tests = (TTest *)calloc(count ? count : 1, sizeof(*tests));

    if (!tests)
        abort();
    for (volatile size_t i = 0; i < count; i++) {
        TCase *tcase = tcase_create(selected[i]->name);

        tests[i].name = selected[i]->name;
        tests[i].fn = check_case;
        tests[i].file = selected[i]->file;
        tests[i].line = selected[i]->line;
        tcase_set_timeout(tcase, guard ? atof(guard) : 300);
        _tcase_add_test(tcase, &tests[i], 0, 0, (int)i, (int)i + 1);
        suite_add_tcase(suite, tcase);
    }
    fflush(NULL);
    srunner_run_all(runner, CK_SILENT);
    take_results(runner, count);
    srunner_free(runner);
    free(tests);
}
#endif

static unsigned char *shared_bytes(size_t count)
{
#ifdef _WIN32
    return (unsigned char *)calloc(count + 1, 1);
#else
    void *memory = mmap(NULL, count + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : (unsigned char *)memory;
#endif
}

int harness_main(int argc, char **argv)
{
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    size_t count = 0, failed = 0, skipped = 0, total = 0;

    for (struct harness_case *test = first_case; test; test = test->next) {
        total++;
        if (list)
            printf("%s\n", test->name);
        for (struct harness_case *other = first_case; other != test; other = other->next) {
            if (strcmp(other->name, test->name) == 0) {
                fprintf(stderr, "two cases are named %s\n", test->name);
                return 2;
            }
        }
    }
    if (list)
        return 0;
    selected = (struct harness_case **)calloc(total + 1, sizeof(*selected));
    if (!selected)
        return 2;
    for (struct harness_case *test = first_case; test; test = test->next) {
        if (wanted(test, argc, argv))
            selected[count++] = test;
    }
    if (count == 0) {
        fprintf(stderr, "no such case; --list names them\n");
        return 2;
    }
    verdicts = shared_bytes(count);
    if (!verdicts)
        return 2;
    run_all(count);
    for (size_t i = 0; i < count; i++) {
        failed += verdicts[i] == VERDICT_FAILED;
        skipped += verdicts[i] == VERDICT_SKIPPED;
    }
    printf("%lu passed, %lu failed, %lu skipped\n", (unsigned long)(count - failed - skipped), (unsigned long)failed,
           (unsigned long)skipped);
    free(selected);
    if (failed)
        return 1;
    return skipped == count ? 77 : 0;
}
