/* SPDX-License-Identifier: MIT */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "early.h"

#define CASES_MAX  256
#define CHANNEL_FD 3 /* to the other side */
#define REPORT_FD  4 /* to the frame: why the process ends, and notes */
#define EXIT_FAIL  1
#define EXIT_SKIP  77

struct device_case {
    const char *name;
    void (*run[ROLES])(void);
    bool is_long;
};

static struct device_case cases[CASES_MAX];
static size_t n_cases;
static const char *program;       /* path of this executable */
static const char *program_name;  /* its last part */
static enum runner_role own_role; /* in a process of a case */
static const char *own_case = "?";
const char *(*harness_status_text)(int32_t status);

static const char gone[] = "the other side is gone";
static const char *const role_names[ROLES] = { "alone", "server", "client" };

void runner_add(const char *name, enum runner_role role, void (*run)(void), bool is_long)
{
    size_t i;

    for (i = 0; i < n_cases; i++)
        if (!strcmp(cases[i].name, name))
            break;
    if (i == n_cases) {
        if (n_cases == CASES_MAX)
            abort();
        cases[n_cases++].name = name;
    }
    cases[i].run[role] = run;
    cases[i].is_long = is_long;
}

/* What a process of a case calls. */

static void report(char kind, const char *text)
{
    char line[1024];
    int length = snprintf(line, sizeof(line), "%c%s", kind, text);

    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    for (int i = 0; i < length; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[length++] = '\n';
    if (write(REPORT_FD, line, (size_t)length) < 0)
        _exit(EXIT_FAIL);
}

/* _exit: what the library does at exit is no part of a failed case. */
static void fail_text(const char *file, int line, const char *text)
{
    char whole[900];
    const char *base = strrchr(file, '/');

    snprintf(whole, sizeof(whole), "%s:%d: %s: %s", base ? base + 1 : file, line, role_names[own_role], text);
    report('F', whole);
    fflush(NULL);
    _exit(EXIT_FAIL);
}

void harness_fail(const char *file, int line, const char *format, ...)
{
    char text[700];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fail_text(file, line, text);
    _exit(EXIT_FAIL);
}

void harness_fail_status(const char *file, int line, const char *expr, const char *wanted, int32_t is, int32_t should)
{
    const char *text = harness_status_text ? harness_status_text(is) : "";

    harness_fail(file, line, "%s == %s: is 0x%08x (%s), should be 0x%08x", expr, wanted, (uint32_t)is, text,
                 (uint32_t)should);
}

void harness_fail_memory(const char *file, int line, const char *a, const char *b, const void *pa, const void *pb,
                         size_t length)
{
    const uint8_t *x = pa, *y = pb;
    size_t i = 0;

    while (i < length && x[i] == y[i])
        i++;
    harness_fail(file, line, "%s == %s: byte %zu of %zu is 0x%02x and 0x%02x", a, b, i, length, i < length ? x[i] : 0,
                 i < length ? y[i] : 0);
}

void harness_skip(const char *reason)
{
    report('S', reason);
    fflush(NULL);
    _exit(EXIT_SKIP);
}

void harness_yield(void)
{
    sched_yield();
}

const char *harness_name(void)
{
    return own_case;
}

void runner_note(const char *format, ...)
{
    char text[700];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report('N', text);
}

void runner_pair(const char *method, const char *status)
{
    char text[200];

    snprintf(text, sizeof(text), "%s %s", method, status);
    report('P', text);
}

enum runner_role runner_role(void)
{
    return own_role;
}

void runner_put_to(int channel, const void *data, size_t size)
{
    const char *at = data;

    while (size) {
        ssize_t sent = send(channel, at, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        ok_msg(sent > 0, "%s (%s)", gone, strerror(errno));
        at += sent;
        size -= (size_t)sent;
    }
}

void runner_get_from(int channel, void *data, size_t size)
{
    char *at = data;

    while (size) {
        ssize_t got = recv(channel, at, size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        ok_msg(got > 0, "%s", gone);
        at += got;
        size -= (size_t)got;
    }
}

void runner_put(const void *data, size_t size)
{
    runner_put_to(CHANNEL_FD, data, size);
}

void runner_get(void *data, size_t size)
{
    runner_get_from(CHANNEL_FD, data, size);
}

void runner_sync(void)
{
    char byte = 's';

    runner_put(&byte, 1);
    runner_get(&byte, 1);
    ok_msg(byte == 's', "the two sides are out of step");
}

void runner_settle(void)
{
    if (runner_iwarp())
        runner_sync();
}

/* Starting processes. */

static void close_from(int first)
{
    for (int fd = first; fd < 256; fd++)
        close(fd);
}

/* In the new process, between fork and exec. */
static void become(const char *name, enum runner_role role, int channel, int report_to)
{
    char role_text[2] = { (char)('0' + role), 0 };

    /* Both out of the way of the two fixed numbers first. */
    channel = fcntl(channel, F_DUPFD, 16);
    report_to = fcntl(report_to, F_DUPFD, 16);
    dup2(channel, CHANNEL_FD);
    dup2(report_to, REPORT_FD);
    close_from(REPORT_FD + 1);
    execl(program, program, "--role", role_text, name, (char *)NULL);
    _exit(127);
}

static pid_t spawn(const char *name, enum runner_role role, int channel, int report_to, int output, pid_t group)
{
    pid_t pid = fork();

    if (pid == 0) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setpgid(0, group);
        if (output >= 0) {
            dup2(output, STDOUT_FILENO);
            dup2(output, STDERR_FILENO);
        }
        become(name, role, channel, report_to);
    }
    if (pid > 0)
        setpgid(pid, group ? group : pid);
    return pid;
}

int runner_spawn(const char *name, enum runner_role role, int *channel)
{
    int ends[2];
    pid_t pid;

    ok_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ==, 0);
    pid = spawn(name, role, ends[1], REPORT_FD, -1, getpgrp());
    ok_int(pid, >, 0);
    close(ends[1]);
    *channel = ends[0];
    return pid;
}

void runner_built(const char *name, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);

    ok_int(length, >, 0);
    ok((size_t)length < size);
    path[length] = 0;
    for (int i = 0; i < 3; i++) /* tests/device/PROGRAM */
        *strrchr(path, '/') = 0;
    ok(strlen(path) + strlen(name) + 2 < size);
    strcat(strcat(path, "/"), name);
}

int runner_exec(const char *const argv[])
{
    pid_t pid = fork();

    if (pid == 0) {
        close_from(CHANNEL_FD);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    ok_int(pid, >, 0);
    return pid;
}

int runner_command(const char *format, ...)
{
    char command[1000];
    const char *argv[] = { "sh", "-c", command, NULL };
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    return runner_wait(runner_exec(argv));
}

int runner_wait(int pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        ok_int(errno, ==, EINTR);
    return status;
}

void runner_kill(int pid)
{
    kill(pid, SIGKILL);
}

void runner_stop(int pid)
{
    int status;

    ok_int(kill(pid, SIGSTOP), ==, 0);
    /* Its threads run on until each has seen the signal. */
    while (waitpid(pid, &status, WUNTRACED) < 0)
        ok_int(errno, ==, EINTR);
    ok(WIFSTOPPED(status));
}

void runner_continue(int pid)
{
    kill(pid, SIGCONT);
}

/* The frame. */

struct player {
    pid_t pid; /* 0: none, or ended */
    int report;
    int status;
    bool ended;
    bool cut_off; /* the frame ended it, as the other one had ended */
    char fail[1100], skip[1100];
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_reports(const char *name, struct player *player)
{
    char line[1100];
    FILE *file;

    lseek(player->report, 0, SEEK_SET);
    file = fdopen(dup(player->report), "r");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 'F' && !player->fail[0])
            snprintf(player->fail, sizeof(player->fail), "%s", line + 1);
        else if (line[0] == 'S' && !player->skip[0])
            snprintf(player->skip, sizeof(player->skip), "%s", line + 1);
        else if (line[0] == 'N')
            printf("note %s.%s: %s\n", program_name, name, line + 1);
    }
    fclose(file);
}

/* The pairs of a case that passed; its reports have been read. */
static void keep_pairs(const char *name, const struct player *player)
{
    const char *out = runner_env("NDVERBS_OUT");
    char path[4096], line[1100];
    FILE *from, *to;

    if (!out)
        return;
    snprintf(path, sizeof(path), "%s/pairs.txt", out);
    lseek(player->report, 0, SEEK_SET);
    from = fdopen(dup(player->report), "r");
    to = fopen(path, "a");
    while (from && to && fgets(line, sizeof(line), from)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == 'P')
            fprintf(to, "%s %s.%s\n", line + 1, program_name, name);
    }
    if (from)
        fclose(from);
    if (to)
        fclose(to);
}

static void print_output(int fd)
{
    char buffer[16384];
    ssize_t size = lseek(fd, 0, SEEK_END), got;

    if (size <= 0)
        return;
    /* The end says why. */
    lseek(fd, size > (ssize_t)sizeof(buffer) ? size - (ssize_t)sizeof(buffer) : 0, SEEK_SET);
    got = read(fd, buffer, sizeof(buffer));
    if (got <= 0)
        return;
    printf("  | ");
    for (ssize_t i = 0; i < got; i++) {
        putchar(buffer[i]);
        if (buffer[i] == '\n' && i + 1 < got)
            printf("  | ");
    }
    if (buffer[got - 1] != '\n')
        putchar('\n');
}

static void print_stacks(pid_t pid)
{
    char command[300];

    if (system("command -v gdb >/dev/null") != 0)
        return;
    printf("  stacks of process %d:\n", (int)pid);
    fflush(stdout);
    /* A thread that waits in the kernel uninterruptibly cannot be looked at by a debugger, which waits for it for ever. */
    snprintf(command, sizeof(command),
             "for t in /proc/%d/task/*; do ! grep -q '^State:.D' $t/status || { echo \"  | ${t##*/} waits in\"; "
             "sed 's/^/  | /' $t/stack; }; done",
             (int)pid);
    (void)!system(command);
    snprintf(
        command, sizeof(command),
        "timeout -k 5 120 gdb -p %d -batch -nx -ex 'set print frame-arguments scalars' -ex 'thread apply all bt 24' "
        "2>/dev/null | grep -E '^(#|Thread)' | sed 's/^/  | /'",
        (int)pid);
    if (system(command) != 0)
        printf("  (none)\n");
}

/* Waits for the players; true if the watchdog had to end them. */
static bool wait_for_players(struct player *players, int n, double watchdog)
{
    double deadline = now() + watchdog;
    bool hung = false;

    for (;;) {
        struct timespec slice = { 0, 50 * 1000 * 1000 };
        sigset_t child;
        int alive = 0, status;
        bool failed = false;

        for (int i = 0; i < n; i++) {
            if (!players[i].ended && waitpid(players[i].pid, &status, WNOHANG) == players[i].pid) {
                players[i].ended = true;
                players[i].status = status;
            }
            alive += !players[i].ended;
            failed |= players[i].ended && players[i].status != 0;
        }
        if (!alive)
            return hung;
        /* Once one side has failed the other has no more to say; it gets a moment to notice and to end by itself. */
        if (failed && deadline > now() + 5)
            deadline = now() + 5;
        if (now() > deadline) {
            for (int i = 0; i < n; i++) {
                if (!players[i].ended && !failed)
                    print_stacks(players[i].pid);
                players[i].cut_off |= !players[i].ended && failed;
            }
            hung = !failed;
            kill(-players[0].pid, SIGKILL);
            deadline = now() + 120;
        }
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigtimedwait(&child, NULL, &slice);
    }
}

static int temporary(void)
{
    char path[] = "/tmp/ndverbs-device-XXXXXX";
    int fd = mkstemp(path);

    if (fd < 0) {
        perror("mkstemp");
        exit(2);
    }
    unlink(path);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_APPEND);
    return fd;
}

/* Adds why a player failed; "the other side is gone" only if nobody has more to say. */
static void explain(const struct player *player, char *why, size_t size)
{
    char text[1100] = "";
    size_t length;

    if (player->fail[0])
        snprintf(text, sizeof(text), "%s", player->fail);
    else if (WIFSIGNALED(player->status) && WTERMSIG(player->status) != SIGKILL)
        snprintf(text, sizeof(text), "died of signal %d (%s)", WTERMSIG(player->status),
                 strsignal(WTERMSIG(player->status)));
    else if (WIFEXITED(player->status))
        snprintf(text, sizeof(text), "ended with status %d", WEXITSTATUS(player->status));
    if (!text[0] || (why[0] && strstr(text, gone)))
        return;
    if (strstr(why, gone))
        why[0] = 0;
    length = strlen(why);
    snprintf(why + length, size - length, "%s%s", length ? "; " : "", text);
}

/* Whether it failed by itself. The other side of one that skips the case is left alone, and says or shows just that. */
static bool failed_itself(const struct player *player)
{
    if (player->fail[0])
        return !strstr(player->fail, gone);
    if (player->skip[0] && WIFEXITED(player->status) && WEXITSTATUS(player->status) == EXIT_SKIP)
        return false;
    return player->status != 0 && !player->cut_off;
}

/* 0 passed, 1 failed, 2 skipped. */
static int run_case(const struct device_case *test, double watchdog)
{
    struct player players[2] = { 0 };
    int channel[2], n = 0, output = temporary(), verdict = 0;
    char why[2400] = "", skip[1100] = "";
    double start = now();
    bool hung;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0) {
        perror("socketpair");
        exit(2);
    }
    fflush(stdout);
    for (int role = 0; role < ROLES; role++) {
        if (!test->run[role])
            continue;
        players[n].report = temporary();
        players[n].pid =
            spawn(test->name, (enum runner_role)role, channel[n], players[n].report, output, n ? players[0].pid : 0);
        if (players[n].pid < 0) {
            perror("fork");
            exit(2);
        }
        n++;
    }
    close(channel[0]);
    close(channel[1]);
    hung = wait_for_players(players, n, watchdog);
    kill(-players[0].pid, SIGKILL); /* what a case started and left behind */
    for (int i = 0; i < n; i++)
        read_reports(test->name, &players[i]);

    for (int i = 0; i < n; i++)
        if (players[i].skip[0]) {
            verdict = 2;
            snprintf(skip, sizeof(skip), "%s", players[i].skip);
        }
    /* A skip by one side hides no failure of the other. */
    for (int i = 0; i < n; i++)
        if (skip[0] ? failed_itself(&players[i]) : players[i].status != 0) {
            verdict = 1;
            explain(&players[i], why, sizeof(why));
        }
    if (verdict == 2)
        snprintf(why, sizeof(why), "%s", skip);
    if (hung && verdict == 1)
        snprintf(why, sizeof(why), "still running after %.0f s", watchdog);
    printf("%s %s.%s%s%s (%.1f s)\n",
           verdict == 0   ? "ok"
           : verdict == 1 ? "FAIL"
                          : "SKIP",
           program_name, test->name, why[0] ? ": " : "", why, now() - start);
    if (verdict == 1)
        print_output(output);
    for (int i = 0; i < n; i++) {
        if (verdict == 0)
            keep_pairs(test->name, &players[i]);
        close(players[i].report);
    }
    close(output);
    fflush(stdout);
    return verdict;
}

static int run_role(const char *name, int role)
{
    for (size_t i = 0; i < n_cases; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        own_case = cases[i].name;
        own_role = (enum runner_role)role;
        setvbuf(stdout, NULL, _IOLBF, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cases[i].run[role]();
        early_none();
        return 0;
    }
    return 2;
}

/* A server without a client is a part that other cases start (runner_spawn). */
static bool chosen(const struct device_case *test, int argc, char **argv)
{
    if (!test->run[ROLE_ALONE] && !test->run[ROLE_CLIENT])
        return false;
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++)
        if (!fnmatch(argv[i], test->name, 0))
            return true;
    return false;
}

int runner_main(int argc, char **argv)
{
    static char path[4096];
    const char *text = runner_env("NDVERBS_WATCHDOG");
    double watchdog = text && atoi(text) > 0 ? atoi(text) : 120;
    bool run_long = runner_env("NDVERBS_LONG") != NULL;
    int count[3] = { 0, 0, 0 }, n = 0;
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    sigset_t child;

    program = length > 0 ? path : argv[0];
    program_name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    if (argc == 4 && !strcmp(argv[1], "--role"))
        return run_role(argv[3], atoi(argv[2]));
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (size_t i = 0; i < n_cases; i++)
            if (chosen(&cases[i], 1, argv))
                printf("%s%s\n", cases[i].name, cases[i].is_long ? " (long)" : "");
        return 0;
    }
    if (!runner_env("NDVERBS_ADDR")) {
        fprintf(stderr,
                "%s: NDVERBS_ADDR is not set: run me by tests/device/run, or name a local address of an RDMA device\n",
                program_name);
        return 2;
    }
    setenv("NDVERBS_LOG", "warn", 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    for (size_t i = 0; i < n_cases; i++) {
        if (!chosen(&cases[i], argc, argv))
            continue;
        n++;
        if (cases[i].is_long && !run_long) {
            printf("SKIP %s.%s: takes long, NDVERBS_LONG=1 runs it\n", program_name, cases[i].name);
            count[2]++;
            continue;
        }
        count[run_case(&cases[i], cases[i].is_long ? watchdog * 10 : watchdog)]++;
    }
    printf("%d passed, %d failed, %d skipped\n", count[0], count[1], count[2]);
    if (!n) {
        fprintf(stderr, "%s: no case has such a name\n", program_name);
        return 2;
    }
    return count[1] ? 1 : n == count[2] ? 77 : 0;
}
